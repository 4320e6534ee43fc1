for t in $($SFT ls --tsv every-dtype.safetensors | tail -n +2 | cut -f 2); do echo "$t"; $SFT cat every-dtype.safetensors "$t[0]"; done
