st f.safetensors '{"scalar":{"dtype":"F64","shape":[],"data_offsets":[0,8]},"none":{"dtype":"F32","shape":[0,18446744073709551615],"data_offsets":[8,8]}}' 8
$SFT ls f.safetensors
