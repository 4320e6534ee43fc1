st f.safetensors '{}'
$SFT info f.safetensors
