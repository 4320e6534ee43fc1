st f.safetensors ' {"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1],"extra":1}}' 1
$SFT check --explain --level=strict f.safetensors
