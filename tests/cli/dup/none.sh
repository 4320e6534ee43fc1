mkdir empty
$SFT dup .
$SFT dup --json quantised.safetensors nope empty - lora
echo $?
$SFT dup --json lora
