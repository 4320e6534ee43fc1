# A training checkpoint: which branches, one of them, all of them, names without the prefix.
foreign training run.ckpt
$SFT convert run.ckpt --list
$SFT convert run.ckpt -o model.safetensors --strip-prefix module.
$SFT ls --tsv model.safetensors | cut -f 2,4
$SFT convert run.ckpt -o ema.safetensors --root ema
$SFT cat ema.safetensors encoder.bias
$SFT convert run.ckpt -o all.safetensors --all --separator /
$SFT ls --tsv all.safetensors | cut -f 2
$SFT convert run.ckpt -o scalars.safetensors --all --scalars -v
$SFT ls --tsv scalars.safetensors | cut -f 2-4 | grep -v '[.]weight'
$SFT convert run.ckpt -o none.safetensors --root ema_2
echo $?
ls none.safetensors 2>/dev/null
true
