# Other formats, pipelines and datasets are rows, too.
mkdir m; foreign state_dict m/plain.ckpt; foreign calls m/hook.pt; foreign gguf m/small.gguf
dataset batch m/data >/dev/null
mkdir -p m/pipe/unet m/pipe/vae; cp quantised.safetensors m/pipe/unet/model.safetensors
cp every-dtype.safetensors m/pipe/vae/model.safetensors
printf '{"_class_name":"StableDiffusionPipeline","unet":["diffusers","UNet2DConditionModel"],"vae":["diffusers","AutoencoderKL"]}' >m/pipe/model_index.json
catalog m -o c.html
page c.html '"\n".join(map(str, zip(rows["file"], rows["name"], rows["folder"], [rows["dict"]["kind"][k] for k in rows["kind"]], rows["flags"])))'
page c.html '"\n".join(str(sorted(one)) for one in more)'
