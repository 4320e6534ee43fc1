$SFT -v lora/neon-city.safetensors
# What has no known part has no line.
st trained.safetensors '{"__metadata__":{"ss_sd_model_name":"base.safetensors"},"emb_params":{"dtype":"F32","shape":[1,768],"data_offsets":[0,3072]}}' 3072
$SFT -v trained.safetensors | sed -n '/^training/,/^files/p'
$SFT trained.safetensors
