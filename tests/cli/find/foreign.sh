mkdir mixed; foreign state_dict mixed/a.ckpt; foreign gguf mixed/c.gguf; cp every-dtype.safetensors mixed
$SFT find mixed --name small
$SFT find mixed
