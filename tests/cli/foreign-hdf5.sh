{ printf '\211HDF\r\n\032\n'; head -c 100 /dev/zero; } >f.safetensors
$SFT check f.safetensors
echo $?
$SFT info f.safetensors
