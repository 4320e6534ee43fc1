$SFT info --frobnicate-the-whole every-dtype.safetensors
echo $?
$SFT info -z every-dtype.safetensors
echo $?
$SFT check --level loose every-dtype.safetensors
echo $?
$SFT ls --match
echo $?
$SFT info --json=yes every-dtype.safetensors
echo $?
$SFT info
