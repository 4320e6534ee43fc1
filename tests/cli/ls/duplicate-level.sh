dup='{"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"a":{"dtype":"I8","shape":[1],"data_offsets":[0,1]}}'
st f.safetensors "$dup" 1
$SFT ls f.safetensors
echo $?
$SFT ls --level compat f.safetensors
