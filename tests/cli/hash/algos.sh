$SFT hash --algo all lora
$SFT hash --algo autov3 lora
$SFT hash --algo crc32,autov2 quantised.safetensors every-dtype.safetensors
$SFT hash --algo CRC32,AutoV2 quantised.safetensors
