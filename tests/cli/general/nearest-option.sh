$SFT ls --mtach x every-dtype.safetensors
echo $?
$SFT --jsn every-dtype.safetensors
