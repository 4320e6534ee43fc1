st f.safetensors '{"layer.10.w":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"layer.2.w":{"dtype":"U8","shape":[1],"data_offsets":[1,2]},"layer.02.w":{"dtype":"U8","shape":[1],"data_offsets":[2,3]},"embed":{"dtype":"U8","shape":[1],"data_offsets":[3,4]}}' 4
$SFT ls f.safetensors
$SFT ls --sort name f.safetensors
$SFT ls --sort=name --json f.safetensors | pyjson '[t["name"] for t in j["results"][0]["tensors"]]'
