python3 -c 'import gzip
open("f.safetensors", "wb").write(gzip.compress(bytes(1000), mtime=0))'
$SFT check f.safetensors
echo $?
$SFT info f.safetensors
