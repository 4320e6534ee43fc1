$SFT check --explain quantised.safetensors
