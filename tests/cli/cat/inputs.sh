cat every-dtype.safetensors | $SFT cat - tensor.15.i32
echo $?
$SFT cat . tensor.15.i32
echo $?
$SFT cat every-dtype.safetensors
echo $?
$SFT cat every-dtype.safetensors a b
