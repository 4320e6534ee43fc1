# modelspec keys: missing ones are added, others stay without --force; the data are as they were.
h='{"__metadata__":{"ss_base_model_version":"sdxl_base_v1-0","ss_output_name":"header name","modelspec.title":"Mine","modelspec.tags":"a,b"},"lora_unet_x.lora_up.weight":{"dtype":"U8","shape":[4],"data_offsets":[0,4]}}                                                                                                                                                                                                                                                                                  '
st x.safetensors "$h" 4
echo '{"description":"Long text","activation text":"word one, two","preferred weight":0.7,"sd version":"SDXL","notes":""}' >x.json
echo '{"id":7,"modelId":70,"name":"v2","baseModel":"Pony","trainedWords":[],"model":{"name":"Site name","type":"LORA","tags":["c","d"]},"creator":{"username":"me"}}' >x.civitai.info
sum() { $SFT hash --algo sshs_model "$1" | cut -c1-64; }
was=$(sum x.safetensors)
$SFT info --save-as modelspec --dry-run x.safetensors; echo $?
$SFT info --save-as modelspec --json x.safetensors | pyjson '[j["results"][0]["saved"][k] for k in ("as", "output", "changed", "keys", "kept")]'
$SFT meta list x.safetensors | grep modelspec
$SFT check x.safetensors
test "$was" = "$(sum x.safetensors)" && echo same data
$SFT info --save-as modelspec x.safetensors; echo $?
$SFT info --save-as modelspec --force x.safetensors; echo $?
$SFT meta list x.safetensors | grep -E 'title|tags'
$SFT info --save-as modelspec --force --hash sshs_model x.safetensors; echo $?
test "$($SFT meta get x.safetensors modelspec.hash_sha256)" = "0x$was" && echo hash
rm x.json x.civitai.info
$SFT info -f name,trigger_words,description,tags,author,preferred_weight,architecture,kind x.safetensors
$SFT meta rm x.safetensors modelspec.description >/dev/null
echo '{"description":"Another","notes":"n"}' >x.json
ln x.safetensors other.safetensors
$SFT info --save-as modelspec x.safetensors; echo $?
rm other.safetensors
