$SFT ls -v quantised.safetensors
