$SFT ls --match '*nosuch*' every-dtype.safetensors quantised.safetensors
