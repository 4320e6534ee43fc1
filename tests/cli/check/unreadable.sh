$SFT check nosuch.safetensors every-dtype.safetensors
echo $?
mkdir folder.safetensors
$SFT check folder.safetensors
echo $?
st bad.safetensors '[]'
$SFT check bad.safetensors nosuch.safetensors
