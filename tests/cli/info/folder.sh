# A folder is entered one level; its index speaks for the shards.
mkdir top && cp -r sharded/* top && cp every-dtype.safetensors top/A10.SFT && cp every-dtype.safetensors top/a9.safetensors
cp every-dtype.safetensors top/._a9.safetensors
mkdir top/deeper && cp every-dtype.safetensors top/deeper
$SFT info --jsonl top | python3 -c 'import json, sys
for line in sys.stdin: print(json.loads(line)["path"])'
