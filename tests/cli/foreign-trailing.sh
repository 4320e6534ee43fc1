st f.safetensors "$one" 18
$SFT check f.safetensors
echo $?
$SFT info f.safetensors
