"""Models of diffusers saved and loaded: whole, half, sharded, and LoRA weights. usage: FOLDER"""
import os
import sys

import torch
from diffusers import AutoencoderKL, UNet2DConditionModel

import safetensors
from safetensors.torch import load_file, save_file

FOLDER = sys.argv[1]


def same(a, b):
    a, b = a.state_dict(), b.state_dict()
    assert a.keys() == b.keys()
    for name in a:
        assert a[name].dtype == b[name].dtype and torch.equal(a[name], b[name]), name


def round_trip(name, model, sharded=False, **options):
    folder = os.path.join(FOLDER, name)
    model.save_pretrained(folder, **options)
    found = [f for f in os.listdir(folder) if f.endswith(".safetensors")]
    assert len(found) > 1 if sharded else len(found) == 1, found
    again = type(model).from_pretrained(
        folder, torch_dtype=model.dtype, low_cpu_mem_usage=not sharded,
        variant=options.get("variant"))
    same(model, again)


torch.manual_seed(0)
vae = AutoencoderKL(block_out_channels=(8, 16), norm_num_groups=4, latent_channels=4,
                    down_block_types=("DownEncoderBlock2D",) * 2,
                    up_block_types=("UpDecoderBlock2D",) * 2)
round_trip("vae", vae)
round_trip("half", vae.half(), variant="fp16")
unet = UNet2DConditionModel(block_out_channels=(8, 16), norm_num_groups=4, cross_attention_dim=8,
                            attention_head_dim=4, sample_size=8, layers_per_block=1,
                            down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
                            up_block_types=("CrossAttnUpBlock2D", "UpBlock2D"))
round_trip("unet", unet)
round_trip("sharded", unet, sharded=True, max_shard_size="60KB")

lora = {"unet.a.lora_A.weight": torch.randn(4, 8), "unet.a.lora_B.weight": torch.randn(8, 4)}
path = os.path.join(FOLDER, "lora.safetensors")
save_file(lora, path, metadata={"format": "pt"})
assert all(torch.equal(lora[k], v) for k, v in load_file(path).items())

print("ok", safetensors.safe_open.__module__)
