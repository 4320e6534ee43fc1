$SFT lora/neon-city.safetensors
