# One model as it is, copied, linked, with other metadata, in another order, with other
# values; one cut into files and in one; two files that are no models.
python3 - <<'P'
import glob, json, os, random, shutil, struct

def read(path):
    b = open(path, "rb").read()
    n, = struct.unpack("<Q", b[:8])
    return json.loads(b[8:8 + n]), b[8 + n:]

def write(path, head, data):
    text = json.dumps(head, separators=(",", ":")).encode()
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)

def joined(parts):
    out, all_ = {}, b""
    for head, data, names in parts:
        for name in names:
            a, b = head[name]["data_offsets"]
            out[name] = dict(head[name], data_offsets=[len(all_), len(all_) + b - a])
            all_ += data[a:b]
    return out, all_

os.mkdir("d")
head, data = read("lora/neon-city.safetensors")
names = [n for n in head if n != "__metadata__"]
shutil.copy("lora/neon-city.safetensors", "d/copy.safetensors")
os.link("d/copy.safetensors", "d/hard.safetensors")
os.symlink("copy.safetensors", "d/soft.safetensors")
write("d/metadata.safetensors", dict(head, __metadata__={"x": "y"}), data)
random.Random(1).shuffle(names)
write("d/order.safetensors", *joined([(head, data, names)]))
write("d/values.safetensors", head, bytes(reversed(data)))
parts = [read(p) for p in sorted(glob.glob("sharded/*.safetensors"))]
write("d/one.safetensors", *joined([(h, d, [n for n in h if n != "__metadata__"]) for h, d in parts]))
for name, text in (("x", "junk!"), ("y", "junk!"), ("z", "junk?")):
    open("d/%s.safetensors" % name, "w").write(text)
P
$SFT dup -r .
echo $?
$SFT dup --json -r . | pyjson 'j["bytes_wasted"], j["models"], [(g["by"], g["paths"], g["bytes_wasted"]) for g in j["groups"]]'
$SFT dup --jsonl d | cut -c1-80
