rm sharded/model-00002-of-00003.safetensors
$SFT check sharded
echo $?
$SFT check --explain sharded
echo $?
$SFT check --json sharded | pyjson '[s["ok"] for s in j["results"][0]["shards"]], j["results"][0]["error"]["code"]'
$SFT info sharded
