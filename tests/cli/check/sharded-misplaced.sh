sed -i '0,/model-00001-of/s//model-00003-of/' sharded/model.safetensors.index.json
$SFT check sharded
echo $?
$SFT check --json sharded | pyjson 'j["results"][0]["error"]["code"], [s["ok"] for s in j["results"][0]["shards"]]'
