# A forgotten LIST takes the file.
$SFT info --hash quantised.safetensors; echo $?
$SFT info --hash quantised.safetensors lora; echo $?
$SFT info --hash sha265 lora; echo $?
$SFT info --hash nosuch.safetensors; echo $?
$SFT info --hash; echo $?
$SFT info --hash sha256; echo $?
$SFT info --hash sha256 - <quantised.safetensors; echo $?
$SFT info --verify lora - <quantised.safetensors; echo $?
$SFT info --verify --threads x lora; echo $?
touch all && $SFT info --hash all -f hashes.computed.autov2 lora; echo $?
# What cannot be read is told, the others are there.
$SFT info --hash autov2 -f path,hashes.computed.autov2 lora/neon-city.safetensors nosuch.safetensors quantised.safetensors; echo $?
