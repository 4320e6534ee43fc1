mkdir mixed; foreign state_dict mixed/plain.ckpt; foreign gguf mixed/small.gguf; cp every-dtype.safetensors mixed
$SFT find small mixed
$SFT find mixed
