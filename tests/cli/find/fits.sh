# What fits a model: adapters of a checkpoint, best first, and the reverse.
# model FILE METADATA NAME:SHAPE...: F16 tensors without data that matter.
model() {
    python3 - "$@" <<'P'
import json, struct, sys
path, meta, at, header = sys.argv[1], sys.argv[2], 0, {}
if meta:
    header["__metadata__"] = json.loads("{%s}" % meta)
for word in sys.argv[3:]:
    name, shape = word.split(":")
    shape = [int(n) for n in shape.split(",")]
    size = 2
    for n in shape:
        size *= n
    header[name] = {"dtype": "F16", "shape": shape, "data_offsets": [at, at + size]}
    at += size
text = json.dumps(header).encode()
with open(path, "wb") as f:
    f.write(struct.pack("<Q", len(text)) + text)
    f.truncate(8 + len(text) + at)
P
}
lora() { # FILE METADATA WIDTH
    model $1 "$2" lora_unet_input_blocks_4_1_transformer_blocks_0_attn2_to_k.lora_down.weight:4,$3 \
        lora_unet_input_blocks_4_1_transformer_blocks_0_attn2_to_k.lora_up.weight:640,4
}
mkdir -p m/ckpt m/llm && cd m
u=model.diffusion_model
model ckpt/dream.safetensors '"modelspec.architecture":"stable-diffusion-xl-v1-base","ss_sd_model_name":"ponyV6.safetensors"' \
    $u.input_blocks.0.0.weight:320,4,3,3 $u.label_emb.0.0.weight:1280,2816 \
    $u.input_blocks.4.1.transformer_blocks.0.attn2.to_k.weight:640,2048
model ckpt/old.safetensors '' $u.input_blocks.0.0.weight:320,4,3,3 \
    $u.input_blocks.2.1.transformer_blocks.0.attn2.to_k.weight:320,768 \
    $u.input_blocks.1.1.transformer_blocks.0.attn2.to_k.weight:320,768
lora pony.safetensors '"ss_base_model_version":"sdxl_base_v1-0","ss_sd_model_name":"ponyDiffusion.safetensors"' 2048
lora illu.safetensors '"ss_base_model_version":"sdxl_base_v1-0","ss_sd_model_name":"illustriousXL.safetensors"' 2048
lora plain.safetensors '' 2048
lora trained.safetensors '"ss_sd_model_name":"dream.safetensors","ss_base_model_version":"sdxl_base_v1-0"' 2048
lora one.safetensors '' 768
lora two.safetensors '' 1024
model emb.safetensors '' clip_l:2,768 clip_g:2,1280
model nothing.safetensors '' a:1
q=self_attn.q_proj
model llm/small.safetensors '' model.embed_tokens.weight:64,32 model.layers.{0,1}.$q.weight:32,32 \
    model.layers.{0,1}.self_attn.k_proj.weight:32,32 model.layers.{0,1}.mlp.gate_proj.weight:64,32
model llm/large.safetensors '' model.embed_tokens.weight:64,48 model.layers.{0,1,2}.$q.weight:48,48 \
    model.layers.{0,1,2}.self_attn.k_proj.weight:48,48 model.layers.{0,1,2}.mlp.gate_proj.weight:64,48
model llm/lora.safetensors '' base_model.model.model.layers.{0,1}.$q.lora_A.weight:4,32 \
    base_model.model.model.layers.{0,1}.$q.lora_B.weight:32,4
model llm/deep.safetensors '' base_model.model.model.layers.{0,1,2}.$q.lora_A.weight:4,32 \
    base_model.model.model.layers.{0,1,2}.$q.lora_B.weight:32,4
f() { echo "== $*"; $SFT find "$@"; echo $?; }
f --fits ckpt/dream.safetensors -r .
f --fits ckpt/dream.safetensors -r -a .
f --fits ckpt/old.safetensors -r .
f --fits pony.safetensors -r .
f --fits pony.safetensors --all -r .
f --fits one.safetensors ckpt
f --fits two.safetensors -r .
f --fits nothing.safetensors .
f --fits llm/small.safetensors -r .
f --fits llm/large.safetensors -a llm
f --fits llm/lora.safetensors -r .
f --fits llm/deep.safetensors -r .
# With a word, a fact, other outputs.
f --fits ckpt/dream.safetensors -l .
$SFT find --fits ckpt/dream.safetensors -0 . | tr '\0' ';'; echo
f --fits ckpt/dream.safetensors pony .
f --fits ckpt/dream.safetensors --where 'base_model!=' .
f --fits ckpt/dream.safetensors --where rank=8 .
f --fits ckpt/dream.safetensors --tsv .
f --fits ckpt/dream.safetensors --tsv pony .
f --tsv pony .
f --fits ckpt/old.safetensors --json .
f --fits ckpt/dream.safetensors --jsonl illu .
# What cannot be.
f --fits ckpt .
f --fits nosuch.safetensors .
f --fits . .
f --fits ckpt/dream.safetensors
f --all pony .
f --csv-safe pony .
f --fits ckpt/dream.safetensors pony.safetensors nosuch.safetensors
printf x >bad.safetensors; f --fits bad.safetensors .
# A folder of components, an index, standard input.
mkdir -p pipe/unet && cp ckpt/old.safetensors pipe/unet/diffusion_pytorch_model.safetensors
echo '{"_class_name":"StableDiffusionPipeline","unet":["diffusers","UNet2DConditionModel"]}' >pipe/model_index.json
f --fits one.safetensors pipe
f --fits pipe one.safetensors
$SFT find --fits - one.safetensors two.safetensors <ckpt/old.safetensors; echo $?
f --fits ../sharded/model.safetensors.index.json llm
# Hostile names and bases: escaped, cut, never believed.
lora evil.safetensors "\"ss_sd_model_name\":\"$(printf 'pony%0300d' 0).safetensors\",\"modelspec.title\":\"\\u001b[2J\\u202e\",\"modelspec.tags\":\"Pony\"" 2048
f --fits ckpt/dream.safetensors evil.safetensors
f --tsv --csv-safe --fits ckpt/dream.safetensors evil.safetensors
