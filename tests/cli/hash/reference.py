"""Digests of random models beside those of hashlib and zlib."""
import glob, hashlib, json, os, random, struct, subprocess, zlib
r = random.Random(5)
os.mkdir("many")
for i in range(9):
    shapes = [r.choice((0, 1, 7, 1000, 70001, 400000)) for _ in range(r.randrange(1, 9))]
    head, at = {"__metadata__": {"ss_x": "1", "y": "z" * r.randrange(2000)}}, 0
    for j, n in enumerate(shapes):
        head["t%02d" % j] = {"dtype": "U8", "shape": [n], "data_offsets": [at, at + n]}
        at += n
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    open("many/%d.safetensors" % i, "wb").write(struct.pack("<Q", len(text)) + text + r.randbytes(at))

def sha(data):
    return hashlib.sha256(data).hexdigest()

def content(head, data):
    out = hashlib.sha256()
    for name in sorted(k for k in head if k != "__metadata__"):
        a, b = head[name]["data_offsets"]
        out.update(struct.pack("<I", len(name)) + name.encode() + struct.pack("<I", 2) + b"U8"
                   + struct.pack("<IQ", 1, b - a) + hashlib.sha256(data[a:b]).digest())
    return out.hexdigest()

def reference(path):
    b = open(path, "rb").read()
    n, = struct.unpack("<Q", b[:8])
    d, v1, crc = b[8 + n:], sha(b[1 << 20:(1 << 20) + 65536])[:8], zlib.crc32(b)
    return {"sha256": sha(b), "autov1": v1, "autov1_civitai": v1 if len(b) >= 2 << 20 else None,
            "autov2": sha(b)[:10], "autov3": sha(d)[:12], "sshs_model": sha(d),
            "crc32": "%08x" % crc, "crc32_civitai": struct.pack("<I", crc).hex(),
            "content": content(json.loads(b[8:8 + n]), d)}

want = {path: reference(path) for path in glob.glob("many/*")}
for threads in "1", "2", "5", "0":
    out = json.loads(subprocess.check_output([os.environ["SFT"], "hash", "--threads", threads, "--json",
                                              "--algo", "all", "many"]))
    same = [all(row["computed"][k] == v for k, v in want[row["path"]].items()) for row in out["results"]]
    print(threads, [row["path"] for row in out["results"]] == sorted(want), same)
