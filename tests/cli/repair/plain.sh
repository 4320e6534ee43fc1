# Damage with one interpretation is repaired; the result is valid at every level.
t='"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}'
st trailing.safetensors "{$t}      " 9
st hole.safetensors '{"a":{"dtype":"U8","shape":[4],"data_offsets":[3,7]}}   ' 7
st twice.safetensors "{$t,"'"a":{"dtype":"I16","shape":[2],"data_offsets":[4,8]}}  ' 8
st values.safetensors '{"__metadata__":{"step":7,"k":"v","k":"w"},'"$t}   " 4
st old.safetensors '{"a":{"dtype":"uint8","shape":[4],"offsets":[0,4]}}     ' 4
st spelled.safetensors '{"a":["U8",[4],[0,4]]}  ' 4
st fine.safetensors "{$t}" 4
for f in trailing hole twice values old spelled fine; do
    $SFT repair $f.safetensors -o fixed-$f.safetensors; echo $?
    $SFT check --level strict fixed-$f.safetensors; $SFT ls --tsv fixed-$f.safetensors | tail -n +2 | cut -f2-5
done
python3 - <<'P'
import struct
h = b'{"a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}' + 3 * b"\0"
open("zeros.safetensors", "wb").write(struct.pack("<Q", len(h)) + h + b"wxyz")
P
$SFT repair zeros.safetensors -o fixed-zeros.safetensors; $SFT cat fixed-zeros.safetensors a
