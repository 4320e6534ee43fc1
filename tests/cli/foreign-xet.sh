printf '# xet version 0\nfilesize = 1024\nhash = "%064d"\n' 0 >f.safetensors
$SFT check f.safetensors
echo $?
$SFT info f.safetensors
