mkdir empty
st bad.safetensors '{"a":1}'
$SFT ls --json empty nosuch bad.safetensors every-dtype.safetensors >out.json
echo $?
python3 - <<'P'
import json
for r in json.load(open("out.json"))["results"]:
    print(r["path"], r["ok"], sorted(r), r.get("error"))
P
