# A folder with a model_index.json is one model; its components are its parts.
mkdir -p p/unet p/vae p/.cache p/empty
echo '{"_class_name":"StableDiffusionXLPipeline","_diffusers_version":"0.30.0","unet":["diffusers","UNet2DConditionModel"],"vae":["diffusers","AutoencoderKL"]}' >p/model_index.json
st p/unet/diffusion_pytorch_model.safetensors "$one" 8
st p/vae/diffusion_pytorch_model.safetensors "$one" 8
st p/.cache/x.safetensors "$one" 8
st p/other.safetensors "$one" 8
cp -r p q && rm q/model_index.json
for d in p "-r p" p/ "-r ." q; do
    echo "info $d"
    $SFT info --json $d 2>/dev/null | pyjson '"\n".join("%s %s %s" % (r["path"], r.get("model") and r["model"]["kind"] and r["model"]["kind"]["value"], [p["path"] for p in r.get("parts", [])]) for r in j["results"] if "model" in r)'
done
$SFT info --json p | pyjson '[r["file"]["tensors"] for r in j["results"]], [c["part"] for c in j["results"][1]["model"]["components"]]'
$SFT info --long p
# The parts of one file, in the words of the title.
st siglip.safetensors '{"text_model.embeddings.token_embedding.weight":{"dtype":"F16","shape":[2,1152],"data_offsets":[2304,6912]},"vision_model.head.probe":{"dtype":"F16","shape":[1,1,1152],"data_offsets":[0,2304]}}' 6912
$SFT siglip.safetensors
