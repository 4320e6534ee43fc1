m=every-dtype.safetensors
python3 - <<'P'
import struct
def npy(path, descr, shape, data, order="False", version=1):
    h = "{'descr': %s, 'fortran_order': %s, 'shape': %s, }" % (descr, order, shape)
    h += " " * (-(len(h) + (11 if version == 1 else 13)) % 64) + "\n"
    size = struct.pack("<H" if version == 1 else "<I", len(h))
    open(path, "wb").write(b"\x93NUMPY" + bytes([version, 0]) + size + h.encode() + data)
npy("f4.npy", "'<f4'", "(2, 3)", struct.pack("<6f", *range(6)))
npy("i8.npy", "'<i8'", "()", struct.pack("<q", -7), version=2)
npy("b1.npy", "'|b1'", "(3,)", b"\1\0\1")
npy("row.npy", "'<f2'", "(1, 4)", bytes(8), order="True")
npy("fortran.npy", "'<f4'", "(2, 3)", struct.pack("<6f", 0, 3, 1, 4, 2, 5), order="True")
npy("big.npy", "'>f4'", "(2, 3)", struct.pack(">6f", *range(6)))
npy("more.npy", "'<f4'", "(2, 3)", bytes(25))
npy("opaque.npy", "'<V2'", "(2, 3)", bytes(12))
npy("words.npy", "'<U3'", "(1,)", bytes(12))
npy("record.npy", "[('a', '<f4')]", "(1,)", bytes(4))
npy("short.npy", "'<f4'", "(2, 3)", bytes(23))
open("none.npy", "wb").write(b"\x93NUMPY\1\0")
P
cp $m e.safetensors
$SFT add e.safetensors x.f4=f4.npy i=i8.npy b=b1.npy r=row.npy; echo $?
$SFT diff $m e.safetensors; $SFT cat e.safetensors x.f4; $SFT cat e.safetensors i
$SFT add e.safetensors f=fortran.npy g=big.npy; $SFT cat e.safetensors f; $SFT cat e.safetensors g
for f in words record opaque short more none nosuch; do $SFT add e.safetensors z=$f.npy; echo $?; done
$SFT add e.safetensors i=f4.npy; echo $?
$SFT add e.safetensors i=f4.npy --replace; $SFT ls --tsv --match i e.safetensors | tail -n 1 | cut -f2-4
$SFT add e.safetensors -o new.safetensors j=i8.npy; $SFT diff e.safetensors new.safetensors
$SFT add sharded j=i8.npy -o one.safetensors; $SFT diff sharded one.safetensors
$SFT add e.safetensors __metadata__=i8.npy; echo $?
$SFT add e.safetensors nopath; echo $?
$SFT add e.safetensors; echo $?
ls -A | grep sft-
true
