cp every-dtype.safetensors f.safetensors && cut_to f.safetensors 2000
$SFT check f.safetensors
echo $?
$SFT info f.safetensors
