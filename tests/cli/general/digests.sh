# Digests that the header records go when what they cover changes; our own --verify holds on our
# own output.
export SFT
cat > make.py <<'P'
import json, os, struct, subprocess, sys
def model(path, tensors, metadata):
    at, head, data = 0, {"__metadata__": metadata}, b""
    for name, raw in tensors:
        head[name] = {"dtype": "F32", "shape": [len(raw) // 4], "data_offsets": [at, at + len(raw)]}
        at, data = at + len(raw), data + raw
    text = json.dumps(head).encode()
    text += b" " * (-len(text) % 8)
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)
def tensors(k):
    return [("%s.%s" % (n, k), struct.pack("<64f", *[i + k for i in range(64)])) for n in "ab"]
def made(path, k):
    meta = {"format": "pt", "ss_epoch": "1", "sshs_model_hash": "0" * 64}
    model(path, tensors(k), meta)
    sums = json.loads(subprocess.run([os.environ["SFT"], "hash", "--algo", "sshs_model,sshs_legacy", "--json", path],
                                     capture_output=True).stdout)["results"][0]["computed"]
    meta.update(sshs_model_hash=sums["sshs_model"], sshs_legacy_hash=sums["sshs_legacy"],
                **{"modelspec.hash_sha256": "0x" + sums["sshs_model"]})
    model(path, tensors(k), meta)
made("m.safetensors", 0)
os.mkdir("set")
for i in (1, 2):
    made("set/model-0000%d-of-00002.safetensors" % i, i)
json.dump({"metadata": {}, "weight_map": {"%s.%d" % (n, i): "model-0000%d-of-00002.safetensors" % i
           for i in (1, 2) for n in "ab"}}, open("set/model.safetensors.index.json", "w"))
import numpy
numpy.save("x.npy", numpy.ones(4, "f4")) if "numpy" in sys.modules else None
P
sed -i '/numpy/d' make.py
python3 make.py
printf '\223NUMPY\1\0v\0%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }" > x.npy; head -c 4 /dev/zero >> x.npy
head -c 256 /dev/zero > zeros
verify() {
    for f in "$@"; do "$SFT" info --verify -f path "$f" > out 2>&1 || { echo "$f: $?"; cat out; }; done
    "$SFT" meta get "$1" sshs_model_hash sshs_legacy_hash modelspec.hash_sha256 2>/dev/null | cut -d: -f1 | tr '\n' ' '; echo
}
try() { echo "$ $*"; "$SFT" "$@" > said 2>&1 < zeros || cat said; grep note: said; }
verify m.safetensors
try convert m.safetensors -o c.safetensors --dtype F16; verify c.safetensors
try convert m.safetensors -o same.safetensors --dtype F32 --copy; verify same.safetensors
try select m.safetensors -o s.safetensors --keep 'a.*'; verify s.safetensors
try rm-tensor m.safetensors a.0 -o r.safetensors; verify r.safetensors
try add m.safetensors x=x.npy -o a.safetensors; verify a.safetensors
try split m.safetensors -o parts --count 2; verify parts/*-of-*.safetensors
try merge set/model.safetensors.index.json -o one.safetensors; verify one.safetensors
cp m.safetensors p.safetensors; try put p.safetensors a.0; verify p.safetensors
cp m.safetensors n.safetensors; try rename n.safetensors --add-prefix x.; verify n.safetensors
cp m.safetensors t.safetensors; try meta set t.safetensors ss_epoch 2; verify t.safetensors
cp m.safetensors u.safetensors; try meta set u.safetensors ss_epoch 1 author me; verify u.safetensors
cp m.safetensors v.safetensors; try meta rm v.safetensors 'ss_*'; verify v.safetensors
cp m.safetensors o.safetensors; try convert o.safetensors --in-place --dtype BF16; verify o.safetensors
cp -r set s1; try convert s1 --in-place --dtype F16; verify s1/*-of-*.safetensors
cp -r set s2; try select s2 --in-place --drop a.1; verify s2/*00001-of*.safetensors s2/*00002-of*.safetensors
cp -r set s3; try rename s3/model.safetensors.index.json --map a.1=z.1; verify s3/*-of-*.safetensors
cp -r set s4; try add s4 x=x.npy; verify s4/*00002-of*.safetensors
try convert set -o s5 --dtype F16; verify s5/*-of-*.safetensors
"$SFT" convert m.safetensors -o j.safetensors --dtype F16 --json | grep -o '"dropped":.*]'
"$SFT" put p.safetensors b.0 --json < zeros | grep -c dropped
"$SFT" put m.safetensors b.0 --json < zeros | grep -o '"dropped":.*]'
