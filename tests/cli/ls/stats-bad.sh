# A pipe, and a file that is cut short: nothing is said of either.
$SFT ls --stats - <every-dtype.safetensors
echo $?
cut_to every-dtype.safetensors 3000
$SFT ls --stats every-dtype.safetensors
echo $?
