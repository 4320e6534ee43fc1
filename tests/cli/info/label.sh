# What a label tells: ranks, weights, notes, previews, pages, real parameters, guesses.
pair() { # MODULE RANK
    echo "\"lora_unet_$1.lora_down.weight\":{\"dtype\":\"F16\",\"shape\":[$2,2048],\"data_offsets\":[$at,$((at + 4096 * $2))]},\"lora_unet_$1.lora_up.weight\":{\"dtype\":\"F16\",\"shape\":[640,$2],\"data_offsets\":[$((at + 4096 * $2)),$((at + 5376 * $2))]}"
}
at=0 a=$(pair input_blocks_4_1_transformer_blocks_0_attn2_to_k 4)
at=$((5376 * 4)) b=$(pair input_blocks_5_1_transformer_blocks_0_attn2_to_k 32)
lora() { st $1.safetensors '{"__metadata__":{'"$2"'},'"$a,$b}" $((5376 * 36)); }
lora ranks '"modelspec.prediction_type":"v","modelspec.usage_hint":"Weight 0.6 to 0.9"'
echo '{"description":"","notes":"Try it\nwith rain","negative text":"daylight","preferred weight":0.7}' >ranks.json
echo '{"file_name":"x","sha256":"","notes":"Second note","usage_tips":"{\"strength_min\":0.6,\"strength_max\":0.9}","civitai":{"id":22,"modelId":11,"name":"v2.0"}}' >ranks.metadata.json
cp lora/neon-city.preview.png ranks.preview.png
cp lora/neon-city.preview.png ranks.png
$SFT info ranks.safetensors
$SFT info -f adapter.rank.min,adapter.rank.max,model.preferred_weight_range.max,notes ranks.safetensors
echo --- a range alone, a bound alone
lora range; echo '{"file_name":"x","sha256":"","usage_tips":"{\"strength_min\":0.6,\"strength_max\":0.9}"}' >range.metadata.json
$SFT info range.safetensors | grep weight
echo '{"file_name":"x","sha256":"","usage_tips":"{\"strength_max\":0.9}"}' >range.metadata.json
$SFT info range.safetensors | grep weight
echo --- guesses are told: by the name of a file, of another file
lora guess '"ss_sd_model_name":"ponyDiffusionV6XL.safetensors"'
$SFT info guess.safetensors | grep 'base model'
echo '{"modelId":1,"id":2,"baseModel":"Pony","model":{"name":"X","type":"LORA"},"files":[{"sizeKB":5,"hashes":{"SHA256":"'$(printf 'ab%.0s' {1..32})'"}}],"creator":{"username":"someone"}}' >range.civitai.info
$SFT info --hash sha256 range.safetensors | grep 'author\|base model'
PYTHONPATH=$(dirname "$BASH_ENV")/../info python3 -c "from compose import Model
from parts import flux_kohya
Model(flux_kohya(4)).write('my_kontext.safetensors')"
$SFT info my_kontext.safetensors | head -n 2
echo --- a repository has a page, if its name can have one
mkdir -p models--acme--fox-xl/snapshots/0123456789abcdef0123456789abcdef01234567
cp ranks.safetensors models--acme--fox-xl/snapshots/0123456789abcdef0123456789abcdef01234567/fox.safetensors
$SFT info models--acme--fox-xl/snapshots/*/fox.safetensors | grep page
echo --- real parameters of a quantised model
python3 - <<'P'
import json, struct
header, at = {}, 0
for layer in range(28):
    for name, rows, columns in (("self_attn.q_proj", 3584, 3584), ("self_attn.k_proj", 3584, 512), ("self_attn.v_proj", 3584, 512), ("self_attn.o_proj", 3584, 3584), ("mlp.gate_proj", 3584, 18944), ("mlp.up_proj", 3584, 18944), ("mlp.down_proj", 18944, 3584)):
        for end, dtype, shape, size in ((".qweight", "I32", [rows // 8, columns], 4), (".qzeros", "I32", [rows // 128, columns // 8], 4), (".scales", "F16", [rows // 128, columns], 2), (".g_idx", "I32", [rows], 4)):
            bytes = shape[0] * (shape + [1])[1] * size
            header["model.layers.%d.%s%s" % (layer, name, end)] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + bytes]}
            at += bytes
for name in ("model.embed_tokens.weight", "lm_head.weight"):
    header[name] = {"dtype": "F16", "shape": [152064, 3584], "data_offsets": [at, at + 152064 * 3584 * 2]}
    at += 152064 * 3584 * 2
text = json.dumps(header).encode()
with open("q.safetensors", "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text)
    f.truncate(8 + len(text) + at)
P
$SFT info q.safetensors
# Hostile texts.
long=$(printf 'x%.0s' {1..65536})
evil='a\u001b[31m\u202eb\r\nc\u0000\u009bd'
lora evil '"modelspec.prediction_type":"'"$evil"'","modelspec.usage_hint":"'"$evil$long"'"'
echo '{"description":"'"$evil"'","notes":"'"$evil$long"'","negative text":"'"$evil$long"'","activation text":"'"$evil"'","preferred weight":"'"$evil"'"}' >evil.json
echo '{"id":2,"modelId":1,"name":"'"$evil"'","model":{"name":"'"$evil"'","type":"LORA"},"creator":{"username":"'"$evil"'"}}' >evil.civitai.info
cp lora/neon-city.preview.png $'evil.preview.png'
$SFT info evil.safetensors
$SFT info evil.safetensors | wc -c
for o in "" -v; do
    $SFT info $o evil.safetensors | LC_ALL=C tr -d '\n -~\302-\364\200-\277' | wc -c
    $SFT info $o evil.safetensors | grep -c $'\u202e\|\u009b' || true
done
