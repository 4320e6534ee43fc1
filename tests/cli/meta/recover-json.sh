# recover tells in JSON what it found; of an index, of each of its files.
cp every-dtype.safetensors m.safetensors
$SFT meta recover --json m.safetensors nosuch.safetensors | pyjson '[(r["ok"], r.get("recovered"), r.get("error", {}).get("code")) for r in j["results"]]'
$SFT meta recover --jsonl m.safetensors
python3 - $(identity m.safetensors) <<'P'
import os, struct, subprocess, sys, zlib
path = "m.safetensors"
content, place = open(path, "rb").read(), [int(word) for word in sys.argv[1:]]
n = 8 + struct.unpack("<Q", content[:8])[0]
old = content[:n]
for new, found in ((old, "old"), (old.replace(b"BF16", b"F16 ").replace(b'"F16 "', b'"F16" '), "new")):
    text = b"sft-edit" + struct.pack("<10Q", 2, 1, *place, len(content), 0, n, n, 0, 0) + old + new
    with open(".m.safetensors.sft-journal", "wb") as file:
        file.write(text + struct.pack("<Q", zlib.crc32(text)))
    if found == "new":
        with open(path, "r+b") as file:
            file.write(new[:n // 2])
    print(subprocess.run([os.environ["SFT"], "meta", "recover", "--jsonl", path], capture_output=True, text=True).stdout, end="")
P
$SFT meta recover --jsonl sharded/model.safetensors.index.json
