$SFT cat every-dtype.safetensors tensor.15.i23
echo $?
$SFT cat every-dtype.safetensors 'completely.else[0]'
