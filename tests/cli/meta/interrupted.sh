# A journal beside a file whose header is neither the old nor the new one.
t() { printf '{"%s":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}' $1; }
st m.safetensors "$(t aazz)" 4
python3 - "$(t aaaa)" "$(t zzzz)" $(identity m.safetensors) <<'P'
import struct, sys, zlib
old, new = (struct.pack("<Q", len(t)) + t.encode() for t in sys.argv[1:3])
b = b"sft-edit" + struct.pack("<10Q", 2, 1, *map(int, sys.argv[3:]), len(old) + 4, 0, len(old), len(new), 0, 0) + old + new
open(".m.safetensors.sft-journal", "wb").write(b + struct.pack("<Q", zlib.crc32(b)))
P
cp m.safetensors keep; cp .m.safetensors.sft-journal journal
for c in info ls check "hash --algo autov3" "meta list"; do $SFT $c m.safetensors; echo $?; done
$SFT meta set m.safetensors k v --dry-run; echo $?
cmp m.safetensors keep; cmp .m.safetensors.sft-journal journal
$SFT meta recover m.safetensors; echo $?
$SFT ls --tsv m.safetensors; ls -A | grep sft-
$SFT meta recover m.safetensors; echo $?
cat keep >m.safetensors; cp journal .m.safetensors.sft-journal
$SFT rename m.safetensors --map zzzz=yyyy; $SFT ls --tsv m.safetensors; ls -A | grep sft-
printf X | dd of=journal conv=notrunc bs=1 seek=115 2>/dev/null; cat keep >m.safetensors; cp journal .m.safetensors.sft-journal
$SFT meta recover m.safetensors; echo $?
cmp m.safetensors keep; cmp .m.safetensors.sft-journal journal
