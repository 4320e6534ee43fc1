cat quantised.safetensors | $SFT info -
