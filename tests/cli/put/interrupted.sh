# Torn data under a whole header, and the journal beside it; then the folder copied as it is.
head='{"w":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}'
mkdir d; cd d; st m.safetensors "$head" 4
cat >tear.py <<'P'
import struct, sys, zlib
bytes = open("m.safetensors", "rb").read()
open("m.safetensors", "wb").write(bytes[:-4] + b"nnoo")
b = b"sft-edit" + struct.pack("<12Q", 2, 1, *map(int, sys.argv[1:]), len(bytes), 0, len(bytes) - 4,
                              len(bytes) - 4, 1, 4, len(bytes) - 4, 4)
b += bytes[:-4] * 2 + b"oooonnnn"
open(".m.safetensors.sft-journal", "wb").write(b + struct.pack("<Q", zlib.crc32(b)))
P
python3 tear.py $(identity m.safetensors)
for c in info ls check "meta list" "convert --dtype F32 -o out"; do $SFT $c m.safetensors; echo $?; done
$SFT cat m.safetensors w; echo $?
printf abcd | $SFT put m.safetensors w --dry-run; echo $?
cd ..; cp -r d copy; cd copy
$SFT ls m.safetensors; $SFT meta recover m.safetensors; echo $?
$SFT meta recover --force m.safetensors; $SFT cat --as raw m.safetensors w; echo; ls -A | grep sft-
cd ../d; printf abcd | $SFT put m.safetensors w; $SFT cat --as raw m.safetensors w; echo; ls -A | grep sft-
python3 tear.py $(identity m.safetensors); $SFT meta recover m.safetensors; $SFT cat --as raw m.safetensors w; echo
