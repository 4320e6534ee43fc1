# A URL among values is a value, and the operands behind the first are tensors.
st m.safetensors '{"__metadata__":{"a":"b"},"https://x/y":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 1
$SFT meta set m.safetensors source https://host/model?token=x >/dev/null && $SFT meta get m.safetensors source
$SFT cat m.safetensors https://x/y
$SFT find https://host .
$SFT rm-tensor m.safetensors hf://no/tensor --dry-run 2>&1
