$SFT ls --dtype torch.float16,BFLOAT16,e4m3fn --tsv every-dtype.safetensors | cut -f 2
$SFT ls --dtype f64 lora/neon-city.safetensors
echo $?
$SFT ls -n 2 --reverse --json every-dtype.safetensors | pyjson '[t["name"] for t in j["results"][0]["tensors"]]'
$SFT ls -n 0 every-dtype.safetensors
$SFT ls --sort size -n 1 --json every-dtype.safetensors | pyjson '[t["name"] for t in j["results"][0]["tensors"]]'
$SFT ls --depth 1 sharded
$SFT ls --depth 0 sharded
