printf '\050\265\057\375\004\000\001\000\000\000\000\000\000\000\000\000' >f.safetensors
$SFT check f.safetensors
echo $?
$SFT info f.safetensors
