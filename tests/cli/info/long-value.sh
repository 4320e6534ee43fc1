long=$(printf 'x%.0s' {1..500})
st f.safetensors '{"__metadata__":{"long":"'$long'"},"x":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}}' 1
$SFT info f.safetensors
