$SFT info sharded/model.safetensors.index.json
