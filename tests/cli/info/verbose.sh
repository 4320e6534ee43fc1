$SFT -v lora/neon-city.safetensors
