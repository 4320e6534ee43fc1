# 7.24 billion parameters: the data is a hole.
st f.safetensors '{"w":{"dtype":"BF16","shape":[7241732096],"data_offsets":[0,14483464192]}}'
truncate -s +14483464192 f.safetensors
$SFT info f.safetensors
$SFT info -v f.safetensors
