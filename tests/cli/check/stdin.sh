cat every-dtype.safetensors | $SFT check -
echo $?
head -c 3000 every-dtype.safetensors | $SFT check -
echo $?
cat every-dtype.safetensors - <<<x | $SFT check -
