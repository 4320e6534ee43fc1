st bad.safetensors '{"a":1}'
$SFT info bad.safetensors every-dtype.safetensors >out
echo $?
head -n 1 out | tr -s " "
