# One tensor under two names: recorded, copied or refused.
foreign tied tied.pt
$SFT convert tied.pt -o alias.safetensors
$SFT meta get alias.safetensors head.weight
$SFT convert tied.pt -o copy.safetensors --shared copy
$SFT ls --tsv copy.safetensors | cut -f 2,4
$SFT convert tied.pt -o refused.safetensors --shared refuse
echo $?
ls refused.safetensors 2>/dev/null
$SFT convert tied.pt -o x.safetensors --shared other
echo $?
