# Words of people: base model, author, architecture, repository, what the list calls the model.
lora() { # NAME WIDTH METADATA
    local w=$2
    st "$1.safetensors" "{\"__metadata__\":{$3},
\"lora_unet_input_blocks_4_1_transformer_blocks_0_attn2_to_k.lora_down.weight\":{\"dtype\":\"F16\",\"shape\":[4,$w],\"data_offsets\":[0,$((8*w))]},
\"lora_unet_input_blocks_4_1_transformer_blocks_0_attn2_to_k.lora_up.weight\":{\"dtype\":\"F16\",\"shape\":[640,4],\"data_offsets\":[$((8*w)),$((8*w+5120))]}}" $((8*w+5120))
}
mkdir m && cd m
lora neon_city 2048 '"modelspec.author":"Ann Other","ss_base_model_version":"sdxl_base_v1-0","ss_sd_model_name":"ponyDiffusionV6XL.safetensors"'
lora v1.5-sketch 768 '"modelspec.author":"Bob","ss_base_model_version":"sd_v1"'
lora plain-15 768 '"ss_base_model_version":"sd_v1","modelspec.title":"Sft look"'
mv plain-15.safetensors plain-15.SFT
f() { echo "$1: $($SFT find "$1" . | tr '\n' ';') $($SFT find -l "$1" . >/dev/null; echo $?)"; }
for word in safetensors SFT .safetensors tensors ft 'neon city' NEON-CITY neoncity 'neon  city' 'city neon' ann 'ann_other' bob \
            pony 'pony diffusion' ponyDiffusionV6XL.safetensors neon_city.safetensors sdxl 'sd xl' SDXL sd-1 sd1 'SD 1' 'sd 1.5' 1.5 15 v15 v1.5 \
            lora LoRA vae 'lora r4' - _ ' ' '' 'é' $'\x1b' $'\xff'; do
    f "$word" | tr -d '\033\377'
done
$SFT find --jsonl 'ann' . | pyjson '[j["matches"]]'
$SFT find --jsonl 'bob' . | pyjson '[j["matches"]]'
$SFT find --jsonl 'sd-1' v1.5-sketch.safetensors | pyjson '[(m["field"],m["value"],m["source"]) for m in j["matches"]]'
# A sharded model is not found by the ending of its index.
cd .. && for word in index json safetensors model sharded; do f "$word"; done
