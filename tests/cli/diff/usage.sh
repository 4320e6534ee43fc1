st a.safetensors "$one" 8
for words in "--atol x" "--rtol -1" "--atol 1e999" "--atol 0x1p3" "--rtol nan"; do
    $SFT diff a.safetensors a.safetensors $words; echo $?
done
$SFT diff a.safetensors; echo $?
$SFT diff a.safetensors -; echo $?
mkdir empty; $SFT diff empty a.safetensors; echo $?
