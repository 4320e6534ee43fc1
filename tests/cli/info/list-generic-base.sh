# A base checkpoint called model.safetensors tells nothing: the list shows the architecture, and
# does not put LoRAs for different models into one group.
meta='{"__metadata__":{"ss_network_module":"networks.lora","ss_base_model_version":"%s","ss_sd_model_name":"%s"},"lora_unet_a.lora_down.weight":{"dtype":"F16","shape":[4,8],"data_offsets":[0,64]},"lora_unet_a.lora_up.weight":{"dtype":"F16","shape":[8,4],"data_offsets":[64,128]}}'
st castle.safetensors "$(printf "$meta" sdxl_base_v1-0 model.safetensors)" 128
st harbour.safetensors "$(printf "$meta" sd_v1 base.safetensors)" 128
st meadow.safetensors "$(printf "$meta" sd_v1 realistic-vision.safetensors)" 128
$SFT info castle.safetensors harbour.safetensors meadow.safetensors
$SFT info --group-by base castle.safetensors harbour.safetensors meadow.safetensors | grep 'model,'
