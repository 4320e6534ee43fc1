# A header that records digests of its own file: they hold for what is written, or they are gone.
record() { # FILE: its digests; of other than the official order no legacy one
    local legacy=$($SFT hash --algo sshs_legacy $1 2>/dev/null | cut -d' ' -f1)
    $SFT meta set $1 sshs_model_hash $($SFT hash --algo sshs_model $1 | cut -d' ' -f1) >/dev/null
    test -z "$legacy" || $SFT meta set $1 sshs_legacy_hash $legacy >/dev/null
    $SFT meta set $1 modelspec.hash_sha256 0x$($SFT hash --algo sshs_model $1 | cut -d' ' -f1) >/dev/null
}
make() { # FILE TENSOR DTYPE...: 640 KiB each, in this order
    python3 - "$@" <<'P'
import json, struct, sys
head, data = {"__metadata__": {"format": "pt", "ss_epoch": "1", "ss_session_id": "7"}}, b""
for name, dtype in zip(sys.argv[2::2], sys.argv[3::2]):
    some = bytes((i * i + len(data)) % 63 for i in range(655360))
    size = {"F32": 4, "F16": 2}[dtype]
    head[name] = {"dtype": dtype, "shape": [len(some) // size], "data_offsets": [len(data), len(data) + len(some)]}
    data += some
text = json.dumps(head).encode()
text += b" " * (-len(text) % 8)
open(sys.argv[1], "wb").write(struct.pack("<Q", len(text)) + text + data)
P
    record $1
}
kept() { # FILE...: which are left of each, and do they hold?
    for f in "$@"; do
        $SFT meta --json $f | pyjson '[k for k in j["results"][0]["metadata"] if "hash" in k]'
        $SFT info --verify $f >/dev/null && echo holds
    done
}
spare() { sed -E 's/[0-9]+ spare/N spare/'; }
make m.safetensors a F32 b F32
make o.safetensors b F32 a F32
kept m.safetensors o.safetensors

echo convert
$SFT convert m.safetensors -o c1.safetensors -d F16 && kept c1.safetensors
$SFT convert m.safetensors -o c2.safetensors -d F16 --match a --json | pyjson 'j["results"][0]["dropped"]'; kept c2.safetensors
$SFT convert m.safetensors -o c3.safetensors -d F32 --copy && kept c3.safetensors
$SFT convert o.safetensors -o c4.safetensors -d F32 --copy && kept c4.safetensors
make w.safetensors z F32 a F16
$SFT select w.safetensors -o c7.safetensors --copy && kept c7.safetensors
make v.safetensors a F16 z F32 && $SFT select v.safetensors -o c8.safetensors --copy && kept c8.safetensors
$SFT convert m.safetensors -o c5.safetensors -d F16 --dry-run; ls c5.safetensors 2>/dev/null
cp m.safetensors c6.safetensors && $SFT convert c6.safetensors --in-place -d F16 && kept c6.safetensors

echo select and rm-tensor
$SFT select m.safetensors -o s1.safetensors --keep a && kept s1.safetensors
$SFT select m.safetensors -o s2.safetensors --keep '*' --copy && kept s2.safetensors
$SFT select o.safetensors -o s3.safetensors --keep '*' --copy && kept s3.safetensors
$SFT rm-tensor m.safetensors -o s4.safetensors b && kept s4.safetensors

echo add
python3 - <<'P'
import struct
head = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }"
head += " " * (117 - len(head)) + "\n"
open("x.npy", "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + bytes(8))
P
$SFT add m.safetensors -o a1.safetensors x=x.npy && kept a1.safetensors
$SFT add m.safetensors -o a2.safetensors --replace a=x.npy && kept a2.safetensors

echo put
cp m.safetensors p1.safetensors && head -c 655360 /dev/zero | $SFT put p1.safetensors a && kept p1.safetensors
head -c 655360 /dev/zero | $SFT put m.safetensors a -o p2.safetensors --json | pyjson 'j["results"][0]["dropped"]'; kept p2.safetensors
head -c 655360 /dev/zero | $SFT put m.safetensors a --dry-run && kept m.safetensors

echo merge and split
make n.safetensors c F32 && $SFT merge m.safetensors n.safetensors -o g1.safetensors && kept g1.safetensors
$SFT merge m.safetensors -o g2.safetensors && kept g2.safetensors
$SFT split m.safetensors -o d1 --count 2 && kept d1/*.safetensors
$SFT split m.safetensors -o d2 && kept d2/model.safetensors

echo a model in several files
hide() { sed -E 's/-[0-9a-f]{8}\.safe/-XXXXXXXX.safe/g'; }
for f in d1/*.safetensors; do record $f; done
for c in "convert --in-place -d F16 --match a" "select --in-place --drop a" "rename --map a=z"; do
    rm -rf d3; cp -r d1 d3; $SFT $c d3/model.safetensors.index.json; kept d3/*.safetensors
done
rm -rf d3; cp -r d1 d3; $SFT add d3/model.safetensors.index.json x=x.npy; kept d3/*.safetensors
$SFT convert d1 -o d4 -d F16 --match a && kept d4/*.safetensors
$SFT select d1 -o d5 --keep '*' --copy && kept d5/*.safetensors
$SFT convert d1 -o d6.safetensors -d F32 && kept d6.safetensors

echo rename
cp m.safetensors r1.safetensors && $SFT rename r1.safetensors --map a=z | spare && kept r1.safetensors
$SFT rename m.safetensors --map a=a && kept m.safetensors

echo meta
meta() { cp m.safetensors t.safetensors && $SFT meta "$@" | spare; kept t.safetensors; }
meta set t.safetensors title x
meta set t.safetensors ss_epoch 1
meta set t.safetensors ss_epoch 2
meta set t.safetensors ss_epoch 2 ss_epoch 1
meta rm t.safetensors ss_epoch
meta rm t.safetensors format
meta rm t.safetensors 'ss*_*'
meta set t.safetensors ss_epoch 2 sshs_legacy_hash e3b0c442
for f in t.safetensors -; do
    cp m.safetensors t.safetensors
    $SFT meta set t.safetensors ss_epoch 2 sshs_legacy_hash 12345678 -o $f --force >got 2>/dev/null
    test $f = - && cp got t.safetensors
    $SFT meta get t.safetensors sshs_legacy_hash
done
$SFT meta scrub m.safetensors -o u.safetensors --json | pyjson 'j["results"][0]["dropped"]'; kept u.safetensors

echo repair
{ cat m.safetensors; printf x; } >f1.safetensors
$SFT repair f1.safetensors -o f2.safetensors; kept f2.safetensors
python3 - <<'P'
import struct
b = open("m.safetensors", "rb").read()
n, = struct.unpack("<Q", b[:8])
open("f3.safetensors", "wb").write(struct.pack("<Q", n) + b[8:8 + n].rstrip() .ljust(n, b"\n") + b[8 + n:])
P
$SFT repair --level strict f3.safetensors -o f4.safetensors && kept f4.safetensors
$SFT repair o.safetensors -o f5.safetensors --copy && kept f5.safetensors
true
