# What only means something with the scale beside it stays as it is.
$SFT convert quantised.safetensors -o out.safetensors --dtype BF16
echo $?
$SFT ls --tsv out.safetensors | cut -f 2,3 | grep layers.0
$SFT convert quantised.safetensors -o all.safetensors --dtype BF16 --cast-scaled
$SFT ls --tsv all.safetensors | cut -f 2,3 | grep layers.0
