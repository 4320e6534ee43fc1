# Claims that contradict one another are told.
h='"lora_unet_input_blocks_4_1_transformer_blocks_0_attn2_to_k'
st c.safetensors '{"__metadata__":{"ss_network_dim":"64","ss_network_module":"networks.lora"},'"$h.lora_down.weight\":{\"dtype\":\"F16\",\"shape\":[8,2048],\"data_offsets\":[0,32768]},$h.lora_up.weight\":{\"dtype\":\"F16\",\"shape\":[640,8],\"data_offsets\":[32768,43008]}}" 43008
sed 's/"64"/" 8"/' c.safetensors >d.safetensors
$SFT info c.safetensors
$SFT info c.safetensors d.safetensors
