# The files of a model, and what does not depend on them.
$SFT hash sharded
$SFT hash --algo content,crc32 sharded/model.safetensors.index.json
$SFT hash --algo content sharded
$SFT hash --json --algo content,crc32 sharded | pyjson '[sorted(r) for r in j["results"]], j["results"][0]["computed"], [(s["path"], s["computed"]) for s in j["results"][0]["shards"]]'
