$SFT info every-dtype.safetensors
