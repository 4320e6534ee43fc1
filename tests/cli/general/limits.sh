# What only POSIX tells. A folder that cannot be read (its path is too long): the rest goes on.
mkdir t && st t/open.safetensors "$one" 8
name=$(printf 'n%.0s' {1..250})
(cd t && for i in {1..20}; do mkdir $name && cd -P $name || exit; done)
$SFT ls -r t 2>err | head -n 1
echo ${PIPESTATUS[0]}
cut -c 1-40 err && grep -o 'n: .*' err
$SFT check -r t 2>/dev/null
# The name of a file with more behind it.
$SFT hash quantised.safetensors/x; echo $?
# A limit of file sizes: nothing is left.
python3 -c 'import struct; h = b"{\"descr\": \"|u1\", \"fortran_order\": False, \"shape\": (1,), }\n"
open("x.npy", "wb").write(b"\x93NUMPY\1\0" + struct.pack("<H", len(h)) + h + b"\7")'
ls -A sharded >names; (ulimit -f 4; $SFT add sharded/model.safetensors.index.json no=x.npy) 2>&1; echo $?; ls -A sharded | cmp - names
# A word that is not UTF-8.
$SFT split every-dtype.safetensors -o odd --count 2 --name $'\xff'; echo $?; ls -d odd 2>/dev/null
true
