"""Marks of quantised weights, and plain models whose names only look like it."""
from compose import Model, tensors
from parts import flux_model, llama

LAYER = "model.layers.{0-3}.self_attn.{q|k|v|o}_proj"
FRAME = """
model.embed_tokens.weight F16 32000,4096
model.layers.{0-3}.input_layernorm.weight F16 4096
model.layers.{0-3}.post_attention_layernorm.weight F16 4096
model.norm.weight F16 4096
lm_head.weight F16 32000,4096
"""
MLP = "model.layers.{0-3}.mlp.{gate|up|down}_proj.weight F16 4096,4096\n"


def packed(text):
    return Model(FRAME + MLP + text.replace("LAYER", LAYER))


def flux(dtype, text=""):
    rows = [(n, dtype if len(s) == 2 and n.startswith(("double", "single")) else d, s, v)
            for n, d, s, v in flux_model()]
    return Model(rows + tensors(text))


CASES = {
    "plain": packed("LAYER.weight F16 4096,4096"),
    "fp8": flux("F8_E4M3"),
    "fp8-scaled": flux("F8_E4M3", "scaled_fp8 F8_E4M3 0\n"
                                  "double_blocks.{0-18}.img_attn.qkv.scale_weight F32 1"),
    "fp8-block": Model(FRAME + MLP.replace("F16", "F8_E4M3")
                       + "model.layers.{0-3}.mlp.{gate|up|down}_proj.weight_scale_inv F32 32,32\n"
                       + LAYER + ".weight F8_E4M3 4096,4096\n"
                       + LAYER + ".weight_scale_inv F32 32,32"),
    "bnb-nf4": packed("LAYER.weight U8 8388608,1\nLAYER.weight.absmax U8 262144\n"
                      "LAYER.weight.quant_map F32 16\nLAYER.weight.nested_absmax F32 1024\n"
                      "LAYER.weight.quant_state.bitsandbytes__nf4 U8 90"),
    "bnb-fp4": packed("LAYER.weight U8 8388608,1\nLAYER.weight.absmax F32 262144\n"
                      "LAYER.weight.quant_map F32 16\n"
                      "LAYER.weight.quant_state.bitsandbytes__fp4 U8 90"),
    "bnb-int8": packed("LAYER.weight I8 4096,4096\nLAYER.SCB F32 4096"),
    "gptq": packed("LAYER.qweight I32 512,4096\nLAYER.qzeros I32 32,512\n"
                   "LAYER.scales F16 32,4096\nLAYER.g_idx I32 4096"),
    "gptq-8": packed("LAYER.qweight I32 1024,4096\nLAYER.qzeros I32 32,1024\n"
                     "LAYER.scales F16 32,4096\nLAYER.g_idx I32 4096"),
    "awq": packed("LAYER.qweight I32 4096,512\nLAYER.qzeros I32 32,512\n"
                  "LAYER.scales F16 32,4096"),
    "compressed-tensors": packed("LAYER.weight_packed I32 4096,512\n"
                                 "LAYER.weight_scale F16 4096,32\n"
                                 "LAYER.weight_shape I64 2 =4096"),
    # layers of several widths are counted each by its own
    "gptq-mixed": packed(
        "model.layers.{0-1}.self_attn.{q|k|v|o}_proj.qweight I32 512,4096\n"
        "model.layers.{0-1}.self_attn.{q|k|v|o}_proj.g_idx I32 4096\n"
        "model.layers.2.self_attn.{q|k|v|o}_proj.qweight I32 1024,4096\n"
        "model.layers.2.self_attn.{q|k|v|o}_proj.g_idx I32 4096\n"
        "model.layers.3.self_attn.{q|k|v|o}_proj.qweight I32 384,4096\n"
        "model.layers.3.self_attn.{q|k|v|o}_proj.qzeros I32 32,384\n"
        "model.layers.{0-3}.self_attn.{q|k|v|o}_proj.scales F16 32,4096"),
    "awq-mixed": packed("model.layers.{0-2}.self_attn.{q|k|v|o}_proj.qweight I32 4096,512\n"
                        "model.layers.3.self_attn.{q|k|v|o}_proj.qweight I32 4096,1024\n"
                        "LAYER.qzeros I32 32,512\nLAYER.scales F16 32,4096"),
    "compressed-tensors-mixed": packed(
        "model.layers.{0-2}.self_attn.{q|k|v|o}_proj.weight_packed I32 4096,512\n"
        "model.layers.3.self_attn.{q|k|v|o}_proj.weight_packed I32 4096,1024\n"
        "LAYER.weight_scale F16 4096,32\n"
        "model.layers.0.self_attn.q_proj.weight_zero_point I32 512,32"),
    # nothing tells how wide its codes are
    "compressed-tensors.hidden": packed("LAYER.weight_packed I32 4096,512\n"
                                        "LAYER.weight_scale F16 4096,32"),
    # codes that nothing explains, of a whole model and of a part
    "bitnet": packed("LAYER.weight U8 1024,4096\nLAYER.weight_scale BF16 1"),
    "flux-t5-awq": flux("BF16", "text_encoders.t5xxl.transformer.encoder.block.{0-23}.layer.0."
                                "SelfAttention.{q|k|v|o}.qweight I16 1024,4096\n"
                                "text_encoders.t5xxl.transformer.encoder.block.{0-23}.layer.0."
                                "SelfAttention.{q|k|v|o}.scales BF16 32,4096"),
    # rotated codes of 4 bits or whole bytes: nothing declares which
    "int8-undeclared": Model([(n, "I8" if len(s) == 2 and n.startswith(("double", "single"))
                                   else d, s, v) for n, d, s, v in flux_model()]
                                 + tensors("double_blocks.{0-18}.img_attn.qkv.weight_scale "
                                           "F32 9216")),
    "nvfp4": Model([(n, "U8", (9216, 1536), v) if n.endswith("img_attn.qkv.weight")
                    else (n, d, s, v) for n, d, s, v in flux_model()]
                   + tensors("double_blocks.{0-18}.img_attn.qkv.weight_scale F8_E4M3 9216,192\n"
                             "double_blocks.{0-18}.img_attn.qkv.weight_scale_2 F32 -")),
    "svdquant-int4": Model("single_transformer_blocks.{0-37}.qkv_proj.qweight I8 9216,1536\n"
                           "single_transformer_blocks.{0-37}.qkv_proj.wscales BF16 48,9216\n"
                           "single_transformer_blocks.{0-37}.qkv_proj.smooth_factor BF16 3072\n"
                           "single_transformer_blocks.{0-37}.qkv_proj.proj_down BF16 3072,32\n"
                           "single_transformer_blocks.{0-37}.qkv_proj.proj_up BF16 9216,32"),
    "svdquant-fp4": Model("single_transformer_blocks.{0-37}.qkv_proj.qweight I8 9216,1536\n"
                          "single_transformer_blocks.{0-37}.qkv_proj.wscales F8_E4M3 192,9216\n"
                          "single_transformer_blocks.{0-37}.qkv_proj.wtscale BF16 1\n"
                          "single_transformer_blocks.{0-37}.qkv_proj.smooth_factor BF16 3072"),
    "near.scales-name": packed("LAYER.weight F16 4096,4096\nmodel.layers.0.scales F16 4096"),
    "near.int8-alone": Model("table I8 100,100\nother.weight F32 4,4"),
    "mixed": packed("LAYER.weight F32 4096,4096"),
}
