# What models are, in people's words: kinds, variants, predictions, quantisations, families.
python3 "$(dirname "$BASH_ENV")/../info/make.py" t
cd t
list() { (cd $1 && shift && $SFT info -r --sort name "$@" | sed 's/  *[0-9.]* [KMG]*B  .*//'); }
list adapters anima control-lora dora-kohya dynamic-rank flux.control flux.kohya full lokr ltx oft wan.14b-i2v z-image
list models chroma clip-l clip-vision controlnet.diffusers embedding flux.checkpoint flux.fill flux.lite flux.narrow gpt-2 \
    hunyuan-video ip-adapter llama ltx.13b motion-lora motion-module motion-module.diffusers near.detr near.uncond \
    sd2.depth sd3.5-large sdxl sdxl.playground sdxl.v-pred svd t5-xxl unet.diffusers upscaler vae.flux vae.sd vae.wan vit \
    wan.14b-i2v-2.2 wan.high-noise whisper
list marks awq bnb-fp4 bnb-int8 bnb-nf4 compressed-tensors fp8 fp8-block fp8-scaled gptq nvfp4 svdquant-int4
list worked a b c d
mkdir p
st p/x.safetensors '{"base_model.unilora_theta_d":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}}' 16
$SFT info p | head -1
# a guess is in the title, not beside the declared base
$SFT info producers/simpletuner | grep -E '^pytorch|for|base model'
