printf '{"weight_map":{"a":"../every-dtype.safetensors"}}' >sharded/evil.safetensors.index.json
$SFT check sharded/evil.safetensors.index.json
echo $?
$SFT check --json sharded/evil.safetensors.index.json | pyjson 'j["results"][0]["error"], j["results"][0]["shards"]'
$SFT ls sharded/evil.safetensors.index.json
