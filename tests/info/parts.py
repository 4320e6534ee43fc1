"""Tensors of known models and adapters, by the lines of compose.tensors and compose.lora."""
from compose import lora, peft, tensors

def sd1_level(side, blocks, attentions, width):
    """Attention of one level of SD 1's U-Net."""
    name = "lora_unet_%s_blocks_%s_attentions_{%s}_" % (side, blocks, attentions)
    block = name + "transformer_blocks_0_"
    return "".join(line.replace("W", str(width)) + "\n" for line in (
        name + "proj_in W W", block + "attn1_{to_q|to_k|to_v|to_out_0} W W",
        block + "attn2_{to_k|to_v} CTX W", block + "attn2_{to_q|to_out_0} W W",
        block + "ff_net_0_proj W %d" % (8 * width), block + "ff_net_2 %d W" % (4 * width)))


SD1_UNET = "".join(sd1_level("down", n, "0|1", 320 << n) for n in range(3)) + """
lora_unet_mid_block_attentions_0_transformer_blocks_0_attn2_{to_k|to_v} CTX 1280
""" + "".join(sd1_level("up", n, "0|1|2", 1280 >> n - 1) for n in range(1, 4))
TE = """
lora_te_text_model_encoder_layers_{0-11}_self_attn_{q_proj|k_proj|v_proj|out_proj} DIM DIM
lora_te_text_model_encoder_layers_{0-11}_mlp_fc1 DIM 3072
lora_te_text_model_encoder_layers_{0-11}_mlp_fc2 3072 DIM
"""
SDXL_UNET = """
lora_unet_input_blocks_4_1_transformer_blocks_{0|1}_attn1_{to_q|to_k|to_v|to_out_0} 640 640
lora_unet_input_blocks_4_1_transformer_blocks_{0|1}_attn2_{to_k|to_v} 2048 640
lora_unet_input_blocks_7_1_transformer_blocks_{0-9}_attn1_{to_q|to_k|to_v|to_out_0} 1280 1280
lora_unet_input_blocks_7_1_transformer_blocks_{0-9}_attn2_{to_k|to_v} 2048 1280
lora_unet_middle_block_1_transformer_blocks_{0-9}_attn2_{to_k|to_v} 2048 1280
lora_unet_output_blocks_0_1_transformer_blocks_{0-9}_ff_net_0_proj 1280 10240
"""
SDXL_TE = """
lora_te1_text_model_encoder_layers_{0-11}_self_attn_{q_proj|k_proj} 768 768
lora_te2_text_model_encoder_layers_{0-31}_self_attn_{q_proj|k_proj} 1280 1280
"""
FLUX_DOUBLE = """
lora_unet_double_blocks_{RANGE}_{img|txt}_attn_qkv 3072 9216
lora_unet_double_blocks_{RANGE}_{img|txt}_attn_proj 3072 3072
lora_unet_double_blocks_{RANGE}_{img|txt}_mlp_0 3072 12288
lora_unet_double_blocks_{RANGE}_{img|txt}_mlp_2 12288 3072
lora_unet_double_blocks_{RANGE}_{img|txt}_mod_lin 3072 18432
"""
FLUX_SINGLE = """
lora_unet_single_blocks_{RANGE}_linear1 3072 21504
lora_unet_single_blocks_{RANGE}_linear2 15360 3072
lora_unet_single_blocks_{RANGE}_modulation_lin 3072 9216
"""
HUNYUAN = """
lora_unet_double_blocks_{0-19}_{img|txt}_attn_qkv 3072 9216
lora_unet_double_blocks_{0-19}_{img|txt}_mlp_fc1 3072 12288
lora_unet_double_blocks_{0-19}_{img|txt}_mlp_fc2 12288 3072
lora_unet_single_blocks_{0-39}_linear1 3072 21504
"""


def sd1_lora(rank=32, alpha=16, context=768, width=768):
    return lora(SD1_UNET.replace("CTX", str(context)), rank, alpha) \
        + lora(TE.replace("DIM", str(width)), rank, alpha)


def sdxl_lora(rank=16, alpha=8):
    return lora(SDXL_UNET + SDXL_TE, rank, alpha)


def flux_kohya(rank=16, alpha=16, double="0-18", single="0-37"):
    text = FLUX_DOUBLE.replace("RANGE", double) + FLUX_SINGLE.replace("RANGE", single)
    return lora(text, rank, alpha)


def flux_bfl(rank=16):
    return peft("""
diffusion_model.double_blocks.{0-18}.{img|txt}_attn.qkv 3072 9216
diffusion_model.double_blocks.{0-18}.{img|txt}_attn.proj 3072 3072
diffusion_model.double_blocks.{0-18}.{img|txt}_mlp.0 3072 12288
diffusion_model.double_blocks.{0-18}.{img|txt}_mlp.2 12288 3072
diffusion_model.single_blocks.{0-37}.linear1 3072 21504
diffusion_model.single_blocks.{0-37}.linear2 15360 3072
""", rank)


def flux_diffusers(rank=16):
    return peft("""
transformer.transformer_blocks.{0-18}.attn.{to_q|to_k|to_v|to_out.0|add_k_proj} 3072 3072
transformer.single_transformer_blocks.{0-37}.attn.{to_q|to_k|to_v} 3072 3072
""", rank)


def pairs(modules, rank):
    """(name, rank, in, out) of each module."""
    shapes = {name: shape for name, _, shape, _ in lora(modules, rank)}
    for name, shape in shapes.items():
        if name.endswith(".lora_down.weight"):
            up = shapes[name.replace("lora_down", "lora_up")]
            yield name[:-len(".lora_down.weight")], shape[0], shape[1], up[0]


def lokr(modules, rank, alpha, dora=False, conv=None):
    """Factor 8: w1 [8,8] whole, w2 of rank."""
    rows = []
    for stem, r, width, out in pairs(modules, rank):
        rows += [(stem + ".lokr_w1", "F16", [8, 8], None),
                 (stem + ".lokr_w2_a", "F16", [out // 8, r], None),
                 (stem + ".lokr_w2_b", "F16", [r, width // 8], None),
                 (stem + ".alpha", "F16", [], alpha)]
        if dora:
            rows.append((stem + ".dora_scale", "F16", [out, 1], None))
    for stem in conv or ():
        rows += [(stem + ".lokr_w1", "F16", [8, 8], None),
                 (stem + ".lokr_w2_a", "F16", [80, 8], None),
                 (stem + ".lokr_w2_b", "F16", [8, 40 * 9], None),
                 (stem + ".alpha", "F16", [], alpha / 2)]
    return rows


def hada(modules, rank, alpha):
    rows = []
    for stem, r, width, out in pairs(modules, rank):
        for side in "12":
            rows += [(stem + ".hada_w%s_a" % side, "F16", [out, r], None),
                     (stem + ".hada_w%s_b" % side, "F16", [r, width], None)]
        rows.append((stem + ".alpha", "F16", [], alpha))
    return rows


SD_VAE = """
encoder.conv_in.weight F16 128,3,3,3
encoder.down.{0-3}.block.0.conv1.weight F16 128,128,3,3
decoder.conv_in.weight F16 512,4,3,3
decoder.conv_out.weight F16 3,128,3,3
decoder.up.{0-3}.block.0.conv1.weight F16 128,128,3,3
quant_conv.weight F16 8,8,1,1
post_quant_conv.weight F16 4,4,1,1
"""
FLUX_VAE = """
encoder.conv_in.weight BF16 128,3,3,3
encoder.down.{0-3}.block.0.conv1.weight BF16 128,128,3,3
decoder.conv_in.weight BF16 512,16,3,3
decoder.conv_out.weight BF16 3,128,3,3
decoder.up.{0-3}.block.0.conv1.weight BF16 128,128,3,3
"""
CLIP_L = """
text_model.embeddings.token_embedding.weight F16 49408,768
text_model.embeddings.position_embedding.weight F16 77,768
text_model.encoder.layers.{0-11}.mlp.fc1.weight F16 3072,768
text_model.encoder.layers.{0-11}.mlp.fc2.weight F16 768,3072
text_model.encoder.layers.{0-11}.self_attn.{q|k|v|out}_proj.weight F16 768,768
text_model.final_layer_norm.weight F16 768
"""


def sd1_unet(channels=4, context=768):
    return tensors("""
input_blocks.0.0.weight F16 320,%d,3,3
input_blocks.0.0.bias F16 320
time_embed.0.weight F16 1280,320
input_blocks.{1|2}.0.in_layers.2.weight F16 320,320,3,3
%soutput_blocks.11.0.skip_connection.weight F16 320,640,1,1
middle_block.1.transformer_blocks.0.attn2.to_k.weight F16 1280,%d
out.2.weight F16 4,320,3,3
""" % (channels, "".join("""
input_blocks.{%s}.1.proj_in.weight F16 %d,%d,1,1
input_blocks.{%s}.1.transformer_blocks.0.attn1.to_k.weight F16 %d,%d
input_blocks.{%s}.1.transformer_blocks.0.attn2.to_k.weight F16 %d,%d
output_blocks.{%s}.1.transformer_blocks.0.attn2.to_k.weight F16 %d,%d
""" % (down, width, width, down, width, width, down, width, context, up, width, context)
       for down, up, width in (("1|2", "9-11", 320), ("4|5", "6-8", 640), ("7|8", "3-5", 1280))),
       context))


def sdxl_unet(channels=4):
    return tensors("""
input_blocks.0.0.weight F16 320,%d,3,3
label_emb.0.0.weight F16 1280,2816
time_embed.0.weight F16 1280,320
input_blocks.{4|5}.1.transformer_blocks.{0|1}.attn2.to_k.weight F16 640,2048
input_blocks.{7|8}.1.transformer_blocks.{0-9}.attn2.to_k.weight F16 1280,2048
middle_block.1.transformer_blocks.{0-9}.attn2.to_k.weight F16 1280,2048
output_blocks.{0-2}.1.transformer_blocks.{0-9}.attn2.to_k.weight F16 1280,2048
output_blocks.{3-5}.1.transformer_blocks.{0|1}.attn2.to_k.weight F16 640,2048
out.2.weight F16 4,320,3,3
""" % channels)


def flux_model(channels=64, guidance=True, double=19, single=38):
    text = """
img_in.weight BF16 3072,%d
txt_in.weight BF16 3072,4096
time_in.in_layer.weight BF16 3072,256
vector_in.in_layer.weight BF16 3072,768
double_blocks.{0-%d}.img_attn.norm.key_norm.scale BF16 128
double_blocks.{0-%d}.img_attn.qkv.weight BF16 9216,3072
double_blocks.{0-%d}.img_mod.lin.weight BF16 18432,3072
double_blocks.{0-%d}.img_mlp.0.weight BF16 12288,3072
single_blocks.{0-%d}.linear1.weight BF16 21504,3072
final_layer.linear.weight BF16 64,3072
""" % (channels, double - 1, double - 1, double - 1, double - 1, single - 1)
    if guidance:
        text += "guidance_in.in_layer.weight BF16 3072,256\n"
    return tensors(text)


def llama(layers=32, hidden=4096, kv=1024, vocab=128256, head=True, bias=False, extra=""):
    text = """
model.embed_tokens.weight BF16 %d,%d
model.layers.{0-N}.self_attn.{q|o}_proj.weight BF16 %d,%d
model.layers.{0-N}.self_attn.{k|v}_proj.weight BF16 %d,%d
model.layers.{0-N}.mlp.{gate|up}_proj.weight BF16 14336,%d
model.layers.{0-N}.mlp.down_proj.weight BF16 %d,14336
model.layers.{0-N}.{input|post_attention}_layernorm.weight BF16 %d
model.norm.weight BF16 %d
""" % (vocab, hidden, hidden, hidden, kv, hidden, hidden, hidden, hidden, hidden)
    if head:
        text += "lm_head.weight BF16 %d,%d\n" % (vocab, hidden)
    if bias:
        text += "model.layers.{0-N}.self_attn.{k|v}_proj.bias BF16 %d\n" % kv
        text += "model.layers.{0-N}.self_attn.q_proj.bias BF16 %d\n" % hidden
    return tensors((text + extra).replace("-N}", "-%d}" % (layers - 1)))
