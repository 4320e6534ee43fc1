$SFT ls --stats every-dtype.safetensors
$SFT ls --stats --sort size -n 2 --reverse every-dtype.safetensors
$SFT ls --stats --match '*.u64' --tsv every-dtype.safetensors
