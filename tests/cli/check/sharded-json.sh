cut_to sharded/model-00002-of-00003.safetensors 1000
$SFT check --json sharded >out.json
echo $?
python3 - <<'P'
import json
r, = json.load(open("out.json"))["results"]
print(r["path"], r["ok"], r["error"]["code"], r["findings"][0]["rule"], r["deep"])
for s in r["shards"]:
    print(s["path"], s["ok"], s["error"] and s["error"]["code"])
P
