$SFT nosuch.safetensors
echo $?
$SFT some/where
