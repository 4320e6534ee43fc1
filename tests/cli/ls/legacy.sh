st f.safetensors '{"a":{"dtype":"float16","shape":[2],"offsets":[0,4]}}' 4
$SFT ls f.safetensors
echo $?
$SFT ls --legacy f.safetensors
