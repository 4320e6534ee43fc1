"""Every kind of file beside a model, and beside each one that must not count."""
import json

from compose import Link, Model, jpeg, png
from parts import flux_diffusers, sd1_unet, CLIP_L, sdxl_lora, sd1_lora, llama

J = json.dumps
SHA = "0123456789abcdef" * 4


def model():
    return Model(sdxl_lora(8, 8), {"format": "pt"})


def beside(**files):
    """other.safetensors too, so that the folder does not speak for one model."""
    made = {"x.safetensors": model()}
    made.update({name.replace("__", "."): content for name, content in files.items()})
    return made


VERSION = {
    "id": 22, "modelId": 11, "name": "v2.0", "baseModel": "Pony", "trainedWords":
    ["<lora:x:0.8> blue fox, night,", "", "red fox"], "description": "<p>Now <b>better</b></p>",
    "publishedAt": "2024-01-02T03:04:05.678Z", "nsfwLevel": 3,
    "model": {"name": "Foxes", "type": "LORA", "nsfw": False, "poi": False},
    "files": [{"id": 5, "name": "foxes.safetensors", "sizeKB": 1.0, "primary": True,
               "hashes": {"SHA256": SHA.upper(), "AutoV3": "AABBCCDDEEFF"}}],
    "images": [{"url": "https://image.civitai.com/a.jpeg", "width": 512, "height": 512,
                "meta": {"prompt": "blue fox in snow", "negativePrompt": "blurry", "seed": 7,
                         "steps": 20, "sampler": "Euler a", "cfgScale": 6.5}}]}
SKELETON = {"id": "", "modelId": "", "name": "", "trainedWords": [], "skeleton_file": True,
            "extensions": {"sd_civitai_helper": {"version": "1.9"}}}
MANAGER = {"file_name": "x", "model_name": "Foxes (managed)", "sha256": SHA, "base_model": "Pony",
           "notes": "strong at 1", "from_civitai": True, "preview_url": "/home/me/x.png",
           "civitai": {"id": 22, "modelId": 11, "trainedWords": ["blue fox"],
                       "model": {"name": "Foxes", "type": "LORA"}},
           "tags": ["animal"], "modelDescription": "<p>All foxes</p>",
           "trainedWords": ["silver fox"], "usage_tips": J({"strength": 0.85})}
A1111 = {"description": "My own words", "sd version": "SDXL", "activation text": "fox (grey), tail",
         "preferred weight": 0.7, "negative text": "dog", "notes": "try 0.6"}
API = {"id": 11, "name": "Foxes", "description": "<p>One</p><p>Two<br>Three</p>", "type": "LORA",
       "nsfw": False, "tags": ["animal", "fox"], "creator": {"username": "foxmaker"},
       "modelVersions": [dict(VERSION)]}
CM = {"ModelId": 11, "ModelName": "Foxes", "ModelDescription": "About foxes", "Nsfw": False,
      "Tags": ["animal"], "ModelType": "LORA", "VersionId": 22, "VersionName": "v2.0",
      "BaseModel": "SDXL 1.0", "TrainedWords": ["blue fox"], "AuthorUsername": "foxmaker",
      "Hashes": {"SHA256": SHA}, "UserTitle": "Foxes for me", "Source": "Civitai"}
RGTHREE = {"file": "x.safetensors", "name": "Foxes - v2.0", "type": "LORA", "baseModel": "SDXL 1.0",
           "sha256": SHA, "trainedWords": [{"word": "blue fox", "civitai": True},
                                           {"word": "mine", "user": True},
                                           {"word": "1girl", "count": 30, "metadata": True}],
           "links": ["https://civitai.com/models/11?modelVersionId=22"], "userNote": "nice"}
README = """---
license: creativeml-openrail-m
base_model: stabilityai/stable-diffusion-xl-base-1.0
instance_prompt: fluffy fox
tags:
- lora
- text-to-image
widget:
- text: fluffy fox on a hill
language: en
---
# Fox LoRA

## Trigger words

You should use `fluffy fox` to trigger the image generation.
"""
def widgets(*urls):
    return "---\nwidget:\n%s---\n" % "".join(
        "- text: a fox\n  output:\n    url: %s\n" % url for url in urls)


CASES = {
    "civitai-info": beside(x__civitai__info=VERSION),
    "civitai-info.skeleton": beside(x__civitai__info=SKELETON),
    "civitai-info.broken": beside(x__civitai__info='{"id": 22, "modelId": 11, "trainedW'),
    "civitai-info.empty": beside(x__civitai__info="{}"),
    "civitai-info.other": beside(y__civitai__info=VERSION),
    "metadata-json": beside(x__metadata__json=MANAGER),
    "metadata-json.near": beside(x__metadata__json={"file_name": "x", "model_name": "x",
                                                    "sha256": "", "civitai": None,
                                                    "trainedWords": [], "usage_tips": "{}"}),
    "a1111-json": beside(x__json=A1111),
    "a1111-json.zero": beside(x__json=dict(A1111, **{"activation text": "", "description": "",
                                                     "preferred weight": 0})),
    "a1111-json.config": beside(x__json={"_class_name": "UNet2DConditionModel",
                                         "in_channels": 4, "description": 7}),
    "a1111-json.tokenizer": beside(x__json={"version": "1.0", "model": {"type": "BPE"},
                                            "normalizer": None}),
    "browser-plus": beside(x__json=dict(A1111, modelId=11, modelVersionId=22, sha256=SHA)),
    "api-info": beside(x__api_info__json=API),
    "cm-info": beside(**{"x__cm-info__json": CM}),
    "cm-info.other-source": beside(**{"x__cm-info__json": dict(
        CM, Source="OpenModelDb", ModelId=None, VersionId=None, UserTitle=None)}),
    "swarm": beside(x__swarm__json={"modelspec.title": "Swarm Fox",
                                    "modelspec.trigger_phrase": "swarmfox",
                                    "modelspec.resolution": "1024",
                                    "modelspec.date": "2024/05/01 12:30"}),
    "rgthree": beside(**{"x__safetensors__rgthree-info__json": RGTHREE}),
    "rgthree.near": beside(**{"x__rgthree-info__json": RGTHREE}),
    "txt": beside(x__txt="snow fox, long tail"),
    "txt.near": beside(x__txt="This model was made on a rainy day.\nIt took long.\n" * 10),
    "sha256": beside(x__sha256=SHA + "\n"),
    "sha256.near": beside(x__sha256="not a hash\n"),
    "preview": beside(x__preview__png=png(20, 10), x__jpg=jpeg(30, 40)),
    "preview.near": beside(x__preview__png=b"GIF", y__png=png()),
    "preview-parameters": beside(x__png=png(chunks=[("parameters",
        "red fox, snow\nNegative prompt: dog\nSteps: 30, Sampler: DPM++ 2M, CFG scale: 5,"
        " Seed: 99, Size: 512x512")])),
    "preview-parameters.near": beside(x__png=png(chunks=[("Software", "Steps: 30")])),
    "yaml": {"v.safetensors": Model(sd1_unet(4, 1024), None, "model.diffusion_model."),
             "v.yaml": "model:\n  target: ldm.LatentDiffusion\n  params:\n"
                       "    parameterization: \"v\"\n    linear_start: 0.00085\n"},
    "yaml.near": {"v.safetensors": Model(sd1_unet(4, 1024), None, "model.diffusion_model."),
                  "v.yaml": "model:\n  params:\n    linear_start: 0.00085\n"
                            "# parameterization: v\n"},
    "readme": {"fox.safetensors": model(), "README.md": README},
    "readme.images": {"fox.safetensors": model(), "images/a.png": png(30, 20), "b.jpg": jpeg(9, 8),
                      "README.md": widgets("images/a.png", "./b.jpg", "images/a.png", "c.png")},
    "readme.images-near": {"m/fox.safetensors": model(), "m/images/text.png": "no image",
                           "a.png": png(30, 20), "m/README.md": widgets(
                               "../a.png", "/a.png", "https://acme.example/a.png",
                               "images/../../a.png", "images/text.png")},
    "readme.two": {"fox.safetensors": model(), "cat.safetensors": model(), "README.md": README},
    "readme.placeholder": {"fox.safetensors": model(), "README.md":
                           "---\nlicense: other\ninstance_prompt: null\n---\nNo words.\n"},
    "adapter-config": {"a/adapter_model.safetensors": Model(flux_diffusers(4), None),
                       "a/adapter_config.json": {"peft_type": "LORA", "r": 4, "lora_alpha": 8,
                                                 "base_model_name_or_path": "a/base"}},
    "adapter-config.two": {"fox.safetensors": Model(flux_diffusers(4), None),
                           "cat.safetensors": model(),
                           "adapter_config.json": {"peft_type": "LORA", "r": 4, "lora_alpha": 8,
                                                   "base_model_name_or_path": "a/base"}},
    "config-json": {"m/model.safetensors": Model(llama(22, 2048, 256, 32000), {"format": "pt"}),
                    "m/config.json": {"architectures": ["MistralForCausalLM"],
                                      "model_type": "mistral", "hidden_size": 2048,
                                      "num_attention_heads": 32, "num_key_value_heads": 4,
                                      "torch_dtype": "bfloat16"}},
    "config-json.contradicts": {
        "m/model.safetensors": Model(llama(2), {"format": "pt"}),
        "m/config.json": '{"model_type": "mistral", "num_hidden_layers": 80, '
                         '"num_attention_heads": 64, "num_key_value_heads": 8, '
                         '"model_type": "llama"}'},
    "config-json.impossible": {
        "m/model.safetensors": Model(llama(2, 2048, 256, 32000), {"format": "pt"}),
        "m/config.json": {"model_type": "llama", "num_attention_heads": 16,
                          "num_key_value_heads": 4}},
    "config-json.gate-in-codes": {
        "m/model.safetensors": Model("""
model.embed_tokens.weight BF16 1000,2048
model.norm.weight BF16 2048
model.layers.{0-1}.input_layernorm.weight BF16 2048
model.layers.{0-1}.mlp.gate_proj.weight BF16 4,2048
model.layers.{0-1}.self_attn.q_norm.weight BF16 256
model.layers.{0-1}.self_attn.q_proj.weight U32 8192,256
model.layers.{0-1}.self_attn.q_proj.{scales|biases} BF16 8192,32
model.layers.{0-1}.self_attn.k_proj.weight U32 512,256
model.layers.{0-1}.self_attn.k_proj.{scales|biases} BF16 512,32
model.layers.{0-1}.self_attn.o_proj.weight U32 2048,512
model.layers.{0-1}.self_attn.o_proj.{scales|biases} BF16 2048,64
"""),
        "m/config.json": {"model_type": "qwen3_next", "num_attention_heads": 16,
                          "num_key_value_heads": 2}},
    "config-json.no-kv": {
        "m/model.safetensors": Model(llama(2, 2048, 256, 32000), {"format": "pt"}),
        "m/config.json": {"model_type": "mistral", "num_attention_heads": 32}},
    "config-json.part": {
        "m/model.safetensors": Model(
            llama(2, extra="model.layers.7.input_layernorm.weight F16 4096")),
        "m/config.json": {"model_type": "llama", "num_hidden_layers": 32}},
    "config-json.near": {"m/model.safetensors": Model(llama(22, 2048, 256, 32000), None)},
    "hub-cache": {"models--acme--fox-xl/snapshots/0123456789abcdef0123456789abcdef01234567/"
                  "fox.safetensors": Link("../../blobs/" + SHA),
                  "models--acme--fox-xl/blobs/" + SHA: model()},
    "hub-cache.near": {"models-acme-fox/fox.safetensors": Link("blobs/fox"),
                       "models-acme-fox/blobs/fox": model()},
    "recorded-size": beside(x__civitai__info=dict(VERSION, files=[
        dict(VERSION["files"][0], sizeKB=None)])),
    "user-over-civitai": beside(x__json=A1111, x__civitai__info=VERSION),
    "suffix-case": {"x.SafeTensors": model(), "x.Civitai.Info": J(VERSION)},
    "trained-on": beside(x__civitai__info={}, x__json=dict(
        A1111, description="Trained on https://civitai.com/models/257749 , a base model.")),
    "text-url": beside(x__json=dict(
        A1111, description="Page: https://civitai.com/models/88?modelVersionId=99")),
    "text-url.two": beside(x__json=dict(
        A1111, description="See https://civitai.com/models/88 and https://civitai.com/models/89")),
    "air": beside(x__json=dict(A1111, notes="urn:air:sdxl:lora:civitai:123@456")),
    "air.near": beside(x__json=dict(A1111, notes="urn:air:sdxl:checkpoint:civitai:123@456")),
    "html-description": beside(x__api_info__json=dict(
        API, description="<h2>Fox</h2><ul><li>one<li>two &amp; three</ul><script>x()</script>"
                         "<p>see <a href=\"https://a.example/\">here</a></p>")),
}
ASK = {"hub-cache": next(iter(CASES["hub-cache"])),
       "hub-cache.near": "models-acme-fox/fox.safetensors"}
