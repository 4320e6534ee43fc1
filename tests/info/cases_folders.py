"""Sets, folders of a pipeline, hidden and foreign files."""
from compose import Link, Model
from parts import CLIP_L, SD_VAE, llama, sdxl_lora

ROWS = llama(4)
INDEX = {"metadata": {"total_size": 1},
         "weight_map": {row[0]: "model-0000%d-of-00002.safetensors" % (1 if i < 20 else 2)
                        for i, row in enumerate(ROWS)}}
SHARDS = {"m/model-00001-of-00002.safetensors": Model(ROWS[:20], {"format": "pt"}),
          "m/model-00002-of-00002.safetensors": Model(ROWS[20:], {"format": "pt"})}
CONFIG = {"architectures": ["LlamaForCausalLM"], "model_type": "llama",
          "num_attention_heads": 32, "num_key_value_heads": 8}
UNET = Model("conv_in.weight F16 320,4,3,3\nconv_out.weight F16 4,320,3,3\n"
             "down_blocks.{1|2}.attentions.{0|1}.transformer_blocks.0.attn2.to_k.weight"
             " F16 640,2048\nadd_embedding.linear_1.weight F16 1280,2816\n"
             "mid_block.attentions.0.transformer_blocks.{0-9}.attn2.to_k.weight F16 1280,2048\n"
             "up_blocks.0.attentions.0.transformer_blocks.0.attn2.to_k.weight F16 1280,2048")
PIPE = {
    "fox-xl/unet/diffusion_pytorch_model.safetensors": UNET,
    "fox-xl/vae/diffusion_pytorch_model.safetensors": Model(SD_VAE),
    "fox-xl/text_encoder/model.safetensors": Model(CLIP_L),
    "fox-xl/model_index.json": {"_class_name": "StableDiffusionXLPipeline",
                                "_diffusers_version": "0.30.0",
                                "unet": ["diffusers", "UNet2DConditionModel"],
                                "vae": ["diffusers", "AutoencoderKL"],
                                "text_encoder": ["transformers", "CLIPTextModel"]},
    "fox-xl/scheduler/scheduler_config.json": {"_class_name": "EulerDiscreteScheduler",
                                               "prediction_type": "v_prediction"},
}
CASES = {
    "set": dict(SHARDS, **{"m/model.safetensors.index.json": INDEX, "m/config.json": CONFIG}),
    "set.folder": dict(SHARDS, **{"m/model.safetensors.index.json": INDEX}),
    "set.missing": {k: v for k, v in dict(SHARDS, **{
        "m/model.safetensors.index.json": INDEX}).items() if "00002-of" not in k},
    "set.no-index": SHARDS,
    "set.shard": dict(SHARDS, **{"m/model.safetensors.index.json": INDEX}),
    # the head is in another shard
    "set.shard-kind": {"m/model-00001-of-00002.safetensors": Model(llama(2, head=False)),
                       "m/config.json": {"model_type": "llama"}},
    "pipeline": PIPE,
    "hidden": {"d/x.safetensors": Model(sdxl_lora(4, 4)), "d/._x.safetensors": b"\0\5\x16\7" * 9,
               "d/.cache/y.safetensors": Model("a F32 1"), "d/notes.txt": "notes",
               "d/model.bin": b"neither", "d/z.sft": Model("a F32 1"),
               "d/Y.SAFETENSORS": Model("a F32 1")},
    "hidden.by-name": {"._x.safetensors": b"\0\5\x16\7\0\2\0\0Mac OS X        ",
                       "x.safetensors": Model("a F32 1")},
    "two-loras": {"d/one.safetensors": Model(sdxl_lora(4, 4)),
                  "d/two.safetensors": Model(sdxl_lora(8, 8)),
                  "d/README.md": "---\ninstance_prompt: zzfox\nlicense: mit\n---\n"},
    "one-lora": {"d/one.safetensors": Model(sdxl_lora(4, 4)),
                 "d/README.md": "---\ninstance_prompt: zzfox\nlicense: mit\n---\n"},
    "named-file": {"night-fox/foxes_v2.safetensors": Model("a F32 1")},
    "named-file.near": {"night-fox/v2.safetensors": Model("a F32 1")},
    "shelf": {"loras/one.safetensors": Model(sdxl_lora(4, 4))},
    "text-encoder-folder": {"text_encoder/model.safetensors": Model(llama(4)),
                            "text_encoder/config.json": CONFIG},
    "text-encoder-folder.near": {"plain/model.safetensors": Model(llama(4)),
                                 "plain/config.json": CONFIG},
    "no-head": {"m/model.safetensors": Model(llama(4, head=False)),
                "m/config.json": {"architectures": ["LlamaModel"], "model_type": "llama"}},
    "no-head.tied": {"m/model.safetensors": Model(llama(4, head=False)),
                     "m/config.json": dict(CONFIG, tie_word_embeddings=True)},
    "natural-order": {"d/m2.safetensors": Model("a F32 1"), "d/m10.safetensors": Model("a F32 1"),
                      "d/m1.safetensors": Model("a F32 1")},
    "foreign": {"page.safetensors": b"<!DOCTYPE html><html><head>" + b" " * 600,
                "x.safetensors": Model("a F32 1")},
}
ASK = {"set": "m/model.safetensors.index.json", "set.folder": "m",
       "set.missing": "m/model.safetensors.index.json", "set.no-index": "m",
       "set.shard": "m/model-00002-of-00002.safetensors",
       "set.shard-kind": "m/model-00001-of-00002.safetensors", "pipeline": "fox-xl", "hidden": "d",
       "hidden.by-name": "._x.safetensors", "two-loras": "d", "one-lora": "d",
       "natural-order": "d", "foreign": "page.safetensors"}
