$SFT cat every-dtype.safetensors 'tensor.01.f4[0]'
$SFT cat every-dtype.safetensors 'tensor.01.f4[0, 1:]'
echo $?
$SFT cat every-dtype.safetensors tensor.02.f6_e2m3
echo $?
$SFT cat --as raw every-dtype.safetensors tensor.02.f6_e2m3 | wc -c | tr -d ' '
