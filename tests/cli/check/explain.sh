st f.safetensors '{"a":{"dtype":"F32","shape":[3],"data_offsets":[0,8]},"b":{"dtype":"F99","shape":[1],"data_offsets":[8,9]},"a":{"dtype":"U8","shape":[1],"data_offsets":[9,10]}}' 10
$SFT check --explain f.safetensors
