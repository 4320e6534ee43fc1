mkdir empty
$SFT hash nope quantised.safetensors empty
