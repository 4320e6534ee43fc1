cp sharded/model.safetensors.index.json sharded/f.safetensors
cd sharded
$SFT check f.safetensors
echo $?
$SFT info f.safetensors
