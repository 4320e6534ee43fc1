"""Adapter formats and the models they are for, each beside a look-alike."""
from compose import Model, lora, peft, tensors
from parts import (FLUX_DOUBLE, FLUX_SINGLE, HUNYUAN, SD1_UNET, SDXL_TE, SDXL_UNET, flux_bfl,
                   flux_diffusers, flux_kohya, hada, lokr, pairs, sd1_lora, sdxl_lora)

SDXL_640 = "\n".join(line for line in SDXL_UNET.splitlines() if line.endswith(" 640 640"))
CONV = "lora_unet_down_blocks_0_resnets_{0|1}_conv{1|2} 320 320 3"
SD1 = SD1_UNET.replace("CTX", "768")


def wan(width, image=False, form="diffusion_model.blocks"):
    text = """
%s.{0-N}.cross_attn.{q|k|v|o} D D
%s.{0-N}.self_attn.{q|k|v|o} D D
%s.{0-N}.ffn.0 D %d
""" % (form, form, form, {1536: 8960, 3072: 14336, 5120: 13824}[width])
    if image:
        text += "%s.{0-N}.cross_attn.k_img D D\n" % form
    return peft(text.replace(" D", " %d" % width).replace("-N}", "-%d}" % (39 if width == 5120
                                                                       else 29)), 16)


def sets(modules, suffixes):
    """Tensors of other suffixes than pairs: (suffix, shape) for each module."""
    return [(name[:-len(".lora_down.weight")] + suffix, "F16", shape, None)
            for name, _, _, _ in lora(modules, 1) if name.endswith("lora_down.weight")
            for suffix, shape in suffixes]


CASES = {
    "lora": Model(sd1_lora(8, 4)),
    "locon": Model(sd1_lora(8, 4) + lora(CONV, 4, 2)),
    "locon.tucker": Model(sd1_lora(8, 4) + sets(CONV[:-2], [
        (".lora_down.weight", [4, 320, 1, 1]), (".lora_mid.weight", [4, 4, 3, 3]),
        (".lora_up.weight", [320, 4, 1, 1])])),
    "loha": Model(hada(SD1, 6, 3)),
    "lokr": Model(lokr(SDXL_UNET, 4, 2)),
    "lokr.full": Model(sets(SDXL_640, [(".lokr_w1", [8, 8]), (".lokr_w2", [80, 80]),
                                        (".alpha", [])])),
    "glora": Model(sets(SD1, [(".a1.weight", [4, 320]), (".a2.weight", [320, 4]),
                              (".b1.weight", [4, 320]), (".b2.weight", [320, 4]),
                              (".alpha", [])])),
    "ia3": Model(sets(SD1, [(".weight", [320]), (".on_input", [])])),
    "oft": Model(sets(SD1, [(".oft_blocks", [8, 40, 40]), (".alpha", [])])),
    "boft": Model(sets(SD1, [(".oft_blocks", [3, 8, 40, 40]), (".alpha", [])])),
    "full": Model([(stem + ".diff", "F16", [out, width], None)
                   for stem, _, width, out in pairs(SD1, 1)]),
    "dora-kohya": Model(sd1_lora(8, 8) + sets(SD1, [(".dora_scale", [1, 320])])),
    "dora-peft": Model(flux_diffusers(8) + [
        ("transformer.transformer_blocks.%d.attn.to_q.lora_magnitude_vector" % n, "BF16", [3072],
         None) for n in range(19)]),
    "dynamic-rank": Model(lora(SDXL_UNET, 16, 16) + lora(SDXL_TE, 4, 4)),
    "ranks-scaled": Model(lora("a 64 64", 4, 2) + lora("b 64 64", 16, 8) + lora("c 64 64", 8, 4)),
    "ranks-crossed": Model(lora("a 64 64", 4, 16) + lora("b 64 64", 16, 4)),
    "no-alpha": Model(lora(SD1, 12)),
    "half-alpha": Model(lora(SD1, 12, 6) + lora(
        "lora_unet_mid_block_attentions_9_proj_in 1280 1280", 12)),
    "sd2": Model(sd1_lora(4, 4, 1024, 1024)),
    "sd1.te-only": Model(lora("lora_te_text_model_encoder_layers_{0-11}_mlp_fc1 768 3072\n"
                              "lora_te_text_model_encoder_layers_{0-11}_self_attn_q_proj 768 768",
                              8, 8)),
    "sdxl.te-only": Model(lora(SDXL_TE, 8, 8)),
    "sdxl.diffusers-names": Model(lora(
        "lora_unet_down_blocks_2_attentions_{0|1}_transformer_blocks_{0-9}_attn1_to_q 1280 1280\n"
        "lora_unet_down_blocks_2_attentions_{0|1}_transformer_blocks_{0-9}_attn2_to_k 2048 1280",
        8, 8)),
    "diffusers-unet": Model(peft(
        "unet.down_blocks.1.attentions.{0|1}.transformer_blocks.0.attn2.{to_k|to_v} 768 640\n"
        "unet.down_blocks.1.attentions.{0|1}.transformer_blocks.0.attn1.to_q 640 640\n"
        "text_encoder.text_model.encoder.layers.{0-11}.self_attn.q_proj 768 768", 4)),
    "diffusers-attn-processor": Model(lora(
        "unet.down_blocks.0.attentions.0.transformer_blocks.0.attn1.processor.{to_q|to_k} 320 320\n"
        "unet.down_blocks.0.attentions.0.transformer_blocks.0.attn2.processor.{to_k|to_v} 768 320",
        4, None, "down", "up", form="_lora.%s.weight")),
    "diffusers-bare-processor": Model(lora(
        "down_blocks.0.attentions.0.transformer_blocks.0.attn1.processor.{to_q|to_k} 320 320\n"
        "down_blocks.0.attentions.0.transformer_blocks.0.attn2.processor.{to_k|to_v} 768 320",
        4, None, "down", "up", form="_lora.%s.weight")),
    "flux.kohya": Model(flux_kohya()),
    "flux.kohya-few-blocks": Model(flux_kohya(16, 16, "7-8", "10-12")),
    "flux.qkv-only": Model(lora("lora_unet_double_blocks_{0-18}_img_attn_qkv 3072 9216\n"
                                "lora_unet_single_blocks_{0-37}_linear1 3072 21504", 8, 8)),
    "hunyuan.kohya": Model(lora(HUNYUAN, 16, 16)),
    "hunyuan.qkv-only": Model(lora("lora_unet_double_blocks_{0-19}_img_attn_qkv 3072 9216\n"
                                   "lora_unet_single_blocks_{0-39}_linear1 3072 21504", 8, 8)),
    "hunyuan.diffusers": Model(peft(
        "transformer.transformer_blocks.{0-19}.attn.{to_q|to_k|add_q_proj} 3072 3072\n"
        "transformer.single_transformer_blocks.{0-39}.attn.to_q 3072 3072", 8)),
    "flux.diffusers": Model(flux_diffusers()),
    "flux.bfl": Model(flux_bfl()),
    "flux.onetrainer": Model(lora(
        "lora_transformer_single_transformer_blocks_{0-37}_attn_to_q 3072 3072\n"
        "lora_transformer_transformer_blocks_{0-18}_ff_net_0_proj 3072 12288\n"
        "lora_te1_text_model_encoder_layers_{0-11}_self_attn_q_proj 768 768", 8, 8)),
    "flux.xlabs": Model(lora("double_blocks.{0-18}.processor.qkv_lora{1|2} 3072 9216", 16,
                             None, "down", "up")),
    "flux.control": Model([("img_in.lora_A.weight", "BF16", [128, 128], None),
                           ("img_in.lora_B.weight", "BF16", [3072, 128], None)]
                          + peft("double_blocks.{0-18}.img_attn.qkv 3072 9216\n"
                                 "single_blocks.{0-37}.linear1 3072 21504", 128)
                          + tensors("double_blocks.{0-18}.img_attn.norm.key_norm.scale BF16 128")),
    "flux2.dev": Model(peft(
        "diffusion_model.double_blocks.{0-7}.img_attn.proj 6144 6144\n"
        "diffusion_model.single_blocks.{0-47}.linear2 24576 6144", 16)),
    "flux2.klein-9b": Model(peft(
        "diffusion_model.double_blocks.{0-7}.img_attn.proj 4096 4096\n"
        "diffusion_model.single_blocks.{0-23}.linear2 16384 4096", 16)),
    "flux2.klein-4b": Model(peft(
        "diffusion_model.double_blocks.{0-4}.img_attn.proj 3072 3072\n"
        "diffusion_model.double_blocks.{0-4}.img_mlp.0 3072 18432\n"
        "diffusion_model.single_blocks.{0-19}.linear2 12288 3072", 16)),
    "sd3.medium": Model(lora("lora_unet_joint_blocks_{0-23}_x_block_attn_{qkv|proj} 1536 4608\n"
                             "lora_unet_joint_blocks_{0-23}_context_block_attn_qkv 1536 4608",
                             8, 8)),
    "sd3.large": Model(lora("lora_unet_joint_blocks_{0-37}_x_block_attn_{qkv|proj} 2432 7296", 8,
                            8)),
    "wan.14b": Model(wan(5120)),
    "wan.14b-i2v": Model(wan(5120, True)),
    "wan.1_3b": Model(wan(1536)),
    "wan.5b": Model(wan(3072)),
    "qwen-image": Model(peft(
        "transformer_blocks.{0-59}.attn.{to_q|to_k|add_k_proj|add_q_proj} 3072 3072\n"
        "transformer_blocks.{0-59}.img_mlp.net.0.proj 3072 12288", 16)),
    "z-image": Model(peft("diffusion_model.layers.{0-29}.attention.qkv 3840 11520\n"
                          "diffusion_model.layers.{0-29}.attention.out 3840 3840\n"
                          "diffusion_model.layers.{0-29}.feed_forward.w1 3840 10240", 16)),
    "lumina-2": Model(peft("diffusion_model.layers.{0-25}.attention.qkv 2304 3840\n"
                           "diffusion_model.layers.{0-25}.feed_forward.w1 2304 9216", 16)),
    "newbie": Model(peft("diffusion_model.layers.{0-35}.attention.qkv 2304 3840", 16)),
    "ltx": Model(peft("diffusion_model.transformer_blocks.{0-27}.attn{1|2}.{to_q|to_k|to_v} "
                      "2048 2048", 16)),
    "pixart": Model(peft("transformer.transformer_blocks.{0-27}.attn{1|2}.{to_q|to_k|to_v} "
                         "1152 1152", 16)),
    "anima": Model(peft("diffusion_model.blocks.{0-27}.adaln_modulation_cross_attn.1 2048 256\n"
                        "diffusion_model.blocks.{0-27}.mlp.layer2 8192 2048\n"
                        "diffusion_model.llm_adapter.blocks.{0-5}.cross_attn.q_proj 1024 1024",
                        16)),
    "llm.qwen3": Model(peft("base_model.model.model.layers.{0-27}.self_attn.{q_proj|v_proj} "
                            "1024 2048\nbase_model.model.model.layers.{0-27}.mlp.gate_proj "
                            "1024 3072", 8)),
    "lycoris-simpletuner": Model(lokr("lycoris_transformer_blocks_{0-18}_attn_to_q 3072 3072\n"
                                      "lycoris_single_transformer_blocks_{0-37}_attn_to_q"
                                      " 3072 3072", 16, 16)),
    "control-lora": Model(lora("input_blocks.4.1.transformer_blocks.0.attn2.to_k 2048 640", 8,
                               None, "down", "up", form=".%s")
                          + [("lora_controlnet", "F16", [0], None),
                             ("input_hint_block.0.weight", "F16", [16, 3, 3, 3], None)]),
    "long-names": Model(lora("lora_unet_%s_{0-3} 320 320" % ("x" * 700), 8, 4)),
    "near.weights-only": Model("blocks.0.lora_down.bias F16 8\nother.weight F16 8,8"),
    "near.name-has-lora": Model("explora.weight F16 8,8\nexplora.bias F16 8"),
}
