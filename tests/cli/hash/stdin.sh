$SFT hash - quantised.safetensors <quantised.safetensors
head -c 3000000 /dev/zero | $SFT hash --algo blake3,crc32,autov1,autov1_civitai -
$SFT hash --algo autov3 - <quantised.safetensors
