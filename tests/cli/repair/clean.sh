mkdir d; cd d
: >.m.safetensors.sft-0123ab; : >.m.safetensors.sft-XYZabc; : >m.sft-abcdef; mkdir .d.sft-abcdef
$SFT repair --clean . --dry-run; echo $?
$SFT repair --clean .; echo $?
$SFT repair --clean .; echo $?
ls -A
$SFT repair --clean nosuch; echo $?
