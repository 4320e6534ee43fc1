$SFT info --save-as; echo $?
$SFT info --save-as all lora; echo $?
$SFT info --min-trust 5 lora; echo $?
$SFT info --save-as a1111 --min-trust 101 lora; echo $?
$SFT info --save-as a1111 -f name lora; echo $?
$SFT info --save-as a1111 --tsv lora; echo $?
$SFT info --save-as a1111 - <lora/neon-city.safetensors; echo $?
$SFT info --dry-run lora; echo $?
$SFT info --updates lora; echo $?
$SFT info --online --updates --save lora; echo $?
$SFT info --online --updates -f name lora; echo $?
$SFT info --save-as civitai sharded; echo $?
$SFT info --save-as civitai -r --where name=nothing .; echo $?
