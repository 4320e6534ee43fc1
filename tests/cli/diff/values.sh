# Values that differ: how many, by how much, within which tolerance.
python3 - <<'P'
import struct
def w(path, *values):
    h = b'{"w":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}' % (len(values), 4 * len(values))
    open(path, "wb").write(struct.pack("<Q", len(h)) + h + struct.pack("<%df" % len(values), *values))
nan = float("nan")
w("a.safetensors", 1, 2, 0, nan, 100)
w("b.safetensors", 1, 2.5, 0.25, nan, 101)
w("c.safetensors", 1, 2, -0.0, nan, 100)
w("d.safetensors", 1, 2, 0, 7, 100)
P
$SFT diff a.safetensors b.safetensors; echo $?
$SFT diff a.safetensors b.safetensors --atol 0.25; echo $?
$SFT diff a.safetensors b.safetensors --atol 0.25 --rtol 1e-1 -v; echo $?
$SFT diff a.safetensors c.safetensors; echo $?
$SFT diff a.safetensors c.safetensors --atol 0; echo $?
$SFT diff a.safetensors d.safetensors --atol 100; echo $?
