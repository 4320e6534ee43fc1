$SFT ls --histogram --dtype bf16,i8,f6_e2m3 every-dtype.safetensors
