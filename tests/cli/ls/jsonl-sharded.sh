$SFT ls --jsonl sharded every-dtype.safetensors | python3 -c 'import json, sys
for line in sys.stdin:
    r = json.loads(line)
    print(r["schema"], r["command"], r["path"], r["ok"], len(r["tensors"]), r["tensors"][0].get("shard"))'
