printf 'GGUF\003\000\000\000\001\000\000\000\000\000\000\000\000\000\000\000\000\000\000\000' >f.safetensors
$SFT check f.safetensors
echo $?
$SFT info f.safetensors
