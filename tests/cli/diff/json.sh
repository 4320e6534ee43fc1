st a.safetensors '{"w":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}' 2
st b.safetensors '{"__metadata__":{"k":"v"},"v":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}' 2
$SFT diff --json a.safetensors b.safetensors; echo $?
$SFT diff --jsonl a.safetensors a.safetensors; echo $?
$SFT diff --json a.safetensors nosuch.safetensors; echo $?
