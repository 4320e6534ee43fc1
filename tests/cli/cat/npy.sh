for t in 19.f64 00.bool 18.c64; do $SFT cat --as npy every-dtype.safetensors "tensor.$t" >x.npy; head -c 128 x.npy | tail -c +11 | tr -s ' '; wc -c <x.npy | tr -d ' '; done
$SFT cat --as npy every-dtype.safetensors 'tensor.21.u64[0, 1:3]' | head -c 128 | tail -c +11 | tr -s ' '
$SFT cat --as npy every-dtype.safetensors 'tensor.21.u64[0, 1]' | head -c 128 | tail -c +11 | tr -s ' '
# Its header is that of convert, which is numpy's, with space for the first size to grow.
st ones.safetensors '{"a":{"dtype":"F32","shape":[1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,2],"data_offsets":[0,8]}}' 8
$SFT convert ones.safetensors -o ones.npz >written
$SFT cat --as npy ones.safetensors a >ones.npy
python3 -c 'import zipfile; print(zipfile.ZipFile("ones.npz").read("a.npy") == open("ones.npy", "rb").read())'
$SFT cat --as npy every-dtype.safetensors tensor.14.bf16
