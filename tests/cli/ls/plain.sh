$SFT ls every-dtype.safetensors
