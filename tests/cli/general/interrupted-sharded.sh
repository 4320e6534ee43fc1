# A model with an index, of which one file was torn while it was edited.
st1='{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
st2='{"b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
mkdir m
cat >tear.py <<'P'
import struct, sys, zlib
name = "m-00002-of-00002.safetensors"
bytes = open("m/" + name, "rb").read()
open("m/" + name, "wb").write(bytes[:-4] + b"nnoo")
b = b"sft-edit" + struct.pack("<12Q", 2, 1, *map(int, sys.argv[1:]), len(bytes), 0, len(bytes) - 4,
                              len(bytes) - 4, 1, 4, len(bytes) - 4, 4)
b += bytes[:-4] * 2 + b"oooonnnn"
open("m/." + name + ".sft-journal", "wb").write(b + struct.pack("<Q", zlib.crc32(b)))
P
torn() {
    rm -rf m && mkdir m
    st m/m-00001-of-00002.safetensors "$st1" 4; st m/m-00002-of-00002.safetensors "$st2" 4
    echo '{"metadata":{"total_size":8},"weight_map":{"a":"m-00001-of-00002.safetensors","b":"m-00002-of-00002.safetensors"}}' >m/m.safetensors.index.json
    python3 tear.py $(identity m/m-00002-of-00002.safetensors)
}
i=m/m.safetensors.index.json f=m/m-00002-of-00002.safetensors
whole() { tail -c 4 m/m-00002*.safetensors; echo; ls -A m | grep -c journal; }
torn; cp -r m keep
# What reads tells of it, by whatever way it opens the file, and changes nothing.
for c in info ls check "hash --algo sha256" "hash --algo all" dup "find --compute 00000000" "info --hash sha256" "info --verify"; do
    echo "-- $c"; $SFT $c $f >out 2>err; echo $?; cat out err | grep -c interrupted
done
for c in info ls "hash --algo sha256" "hash --algo content" "merge -o one.safetensors" "split -o two --count 2" "diff m"; do
    echo "-- $c, the model"; $SFT $c m >out 2>err; echo $?; cat out err | grep -c 'interrupted.*recover'
done
cmp $f keep/m-00002-of-00002.safetensors; ls one* two* 2>/dev/null
echo 0000000000000000000000000000000000000000000000000000000000000000 \ $f >sums; $SFT hash -c sums; echo $?
$SFT meta recover $i; echo $?; whole
torn; $SFT meta recover m; whole
# A command that changes the model recovers it first.
torn; $SFT meta set $i k v --each-shard --dry-run; echo $?; ls -A m | grep -c journal
$SFT meta set $i k v --each-shard | cut -d " " -f 1,2; whole
torn; printf abcd | $SFT put m a; whole
torn; $SFT rename m --map a=c; whole
torn; $SFT select m --in-place --keep '*'; whole
torn; $SFT convert m --in-place --dtype F16 --match a; whole
torn; $SFT convert $f --in-place --dtype F16 --match x; whole
torn; $SFT repair $f --in-place; whole
# A shard that cannot be recovered does not stop the recovery of the others.
torn; echo x >>m/.m-00002-of-00002.safetensors.sft-journal; cp m/.m-00002-of-00002.safetensors.sft-journal m/.m-00001-of-00002.safetensors.sft-journal
$SFT meta recover m; echo $?
$SFT put m b <sums; echo $?; $SFT rename m --add-prefix x; echo $?
