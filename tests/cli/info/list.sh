# More than one model: a line each, a total; labels with --long.
$SFT info -r .
echo ---
$SFT info --long lora quantised.safetensors
