for t in 19.f64 00.bool 18.c64; do $SFT cat --as npy every-dtype.safetensors "tensor.$t" >x.npy; head -c 128 x.npy | tail -c +11 | tr -s ' '; wc -c <x.npy | tr -d ' '; done
$SFT cat --as npy every-dtype.safetensors 'tensor.21.u64[0, 1:3]' | head -c 128 | tail -c +11 | tr -s ' '
$SFT cat --as npy every-dtype.safetensors 'tensor.21.u64[0, 1]' | head -c 128 | tail -c +11 | tr -s ' '
$SFT cat --as npy every-dtype.safetensors tensor.14.bf16
