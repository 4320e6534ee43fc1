$SFT ls --sort size quantised.safetensors | head -n 5
$SFT ls --sort size --json quantised.safetensors
