$SFT ls --json lora/neon-city.safetensors >out.json
python3 - <<'P'
import json
r, = json.load(open("out.json"))["results"]
end = 0
for t in r["tensors"]:
    b, e = t["data_offsets"]
    assert b == end and e - b == t["bytes"]
    assert t["file_offsets"][1] - t["file_offsets"][0] == t["bytes"]
    end = e
print(len(r["tensors"]), sorted(r["tensors"][0]), r["tensors"][0]["file_offsets"])
P
