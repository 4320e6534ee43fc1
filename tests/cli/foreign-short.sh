printf 'abc' >f.safetensors
$SFT check f.safetensors
echo $?
$SFT info f.safetensors
