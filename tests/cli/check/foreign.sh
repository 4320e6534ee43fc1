# What else comes under the name of a model: check says what it is, and so does info.
: >empty.safetensors
printf 'abc' >short.safetensors
echo 'Repository not found' >text.safetensors
printf '<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body></body></html>\n' >html.safetensors
printf 'version https://git-lfs.github.com/spec/v1\noid sha256:%064d\nsize 4200000000\n' 0 >git-lfs.safetensors
printf '# xet version 0\nfilesize = 1024\nhash = "%064d"\n' 0 >xet.safetensors
printf 'GGUF\003\000\000\000\001\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000' >gguf.safetensors
{ printf '\211HDF\r\n\032\n'; head -c 100 /dev/zero; } >hdf5.safetensors
printf "\\223NUMPY\\001\\000\\166\\000{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" >npy.safetensors
python3 -c 'import pickle
open("pickle.safetensors", "wb").write(pickle.dumps({"a": list(range(100))}))'
python3 -c 'import zipfile
with zipfile.ZipFile("torch.safetensors", "w") as z:
    z.writestr("archive/data.pkl", b"\x80\x02}q\x00."); z.writestr("archive/version", "3\n")'
python3 -c 'import zipfile
with zipfile.ZipFile("zip.safetensors", "w") as z: z.writestr("hello.txt", "hello" * 20)'
python3 -c 'import gzip
open("gzip.safetensors", "wb").write(gzip.compress(bytes(1000), mtime=0))'
printf '\050\265\057\375\004\000\001\000\000\000\000\000\000\000\000\000' >zstd.safetensors
cp sharded/model.safetensors.index.json sharded/index.safetensors
cp every-dtype.safetensors cut-header.safetensors && cut_to cut-header.safetensors 200
cp every-dtype.safetensors cut-download.safetensors && cut_to cut-download.safetensors 2000
python3 -c 'import struct
h = b"""{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}""" + bytes(11)
open("nul-padded.safetensors", "wb").write(struct.pack("<Q", len(h)) + h + b"x")'
st trailing.safetensors "$one" 18
# The length spells "PK\3\4" and the file is as long as that: safetensors it is.
python3 -c 'import struct
h = b"{}"
with open("magic-length.safetensors", "wb") as f:
    f.write(b"PK\x03\x04\0\0\0\0{}"); n = 0x04034b50
    while n > 2:
        k = min(n - 2, 1 << 20); f.write(b" " * k); n -= k'

for name in empty short text html git-lfs xet gguf hdf5 npy pickle torch zip gzip zstd \
    cut-header cut-download nul-padded trailing magic-length; do
    $SFT check $name.safetensors 2>&1
    echo "check: $?"
    $SFT info $name.safetensors 2>&1
    echo "info: $?"
done
cd sharded
$SFT check index.safetensors 2>&1
echo "check: $?"
$SFT info index.safetensors 2>&1
echo "info: $?"
