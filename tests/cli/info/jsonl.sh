$SFT info --jsonl every-dtype.safetensors nosuch.safetensors quantised.safetensors >out.jsonl
echo $?
python3 - <<'P'
import json
for line in open("out.jsonl"):
    r = json.loads(line)
    assert r["schema"] == 1 and r["command"] == "info"
    print(r["path"], r["ok"], r.get("error"))
P
