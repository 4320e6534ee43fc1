printf 'hello world' >text
$SFT hash --algo crc32,crc32_civitai,blake3 text
$SFT hash --algo all text
echo $?
$SFT hash --algo sha256,autov3 text
echo $?
$SFT hash --algo autov1_civitai,autov1 lora
echo $?
