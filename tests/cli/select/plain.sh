m=every-dtype.safetensors
$SFT select $m -o f8.safetensors --keep '*f8*' --keep '*.f4' --drop '*fnuz'; echo $?
$SFT ls --tsv f8.safetensors | cut -f2-5
$SFT select $m -o all.safetensors --copy; cmp $m all.safetensors && echo same
$SFT select $m -o none.safetensors --keep nothing; echo $?; ls none.safetensors 2>/dev/null
$SFT select sharded -o part --drop 'model.layers.*'; ls part; $SFT ls --tsv part | cut -f2
$SFT select sharded -o part.safetensors --keep '*norm*'; $SFT ls --tsv part.safetensors | cut -f2
$SFT select sharded -o more --dry-run --drop 'lm*'; ls more 2>/dev/null
$SFT select $m; echo $?
