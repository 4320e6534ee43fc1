"""A model of every group of architectures, and beside it a near relation."""
from compose import Model, tensors
from parts import (CLIP_L, FLUX_VAE, SD_VAE, flux_model, llama, sd1_unet, sdxl_unet)

LDM = "model.diffusion_model."
SDXL_TEXT = tensors("conditioner.embedders.0.transformer.text_model.encoder.layers.{0-11}.mlp.fc1"
                    ".weight F16 3072,768\nconditioner.embedders.1.model.transformer.resblocks."
                    "{0-31}.mlp.c_proj.weight F16 1280,5120\n"
                    "conditioner.embedders.1.model.ln_final.bias F16 1280")
SD1_FULL = (Model(sd1_unet(), None, LDM).rows + Model(SD_VAE, None, "first_stage_model.").rows
            + Model(CLIP_L, None, "cond_stage_model.transformer.").rows)


def marked(rows, *names):
    return rows + [(name, "F32", [0], None) for name in names]


def joint(depth, width, extra=""):
    return tensors("""
joint_blocks.{0-%d}.context_block.attn.qkv.weight F16 %d,%d
joint_blocks.{0-%d}.x_block.attn.qkv.weight F16 %d,%d
x_embedder.proj.weight F16 %d,16,2,2
pos_embed F16 1,36864,%d
%s""" % (depth - 1, 3 * width, width, depth - 1, 3 * width, width, width, width, extra))


def flux2(width, rows, text, single):
    return tensors("""
double_stream_modulation_img.lin.weight BF16 %d,%d
img_in.weight BF16 %d,128
txt_in.weight BF16 %d,%d
double_blocks.{0-4}.img_attn.norm.key_norm.scale BF16 128
single_blocks.{0-%d}.linear1.weight BF16 %d,%d
""" % (rows, width, width, width, text, single - 1, 9 * width, width))


def wan(width, channels=16, out=16, extra=""):
    layers = 39 if width == 5120 else 29
    return tensors("""
head.modulation BF16 1,2,%d
head.head.weight BF16 %d,%d
patch_embedding.weight BF16 %d,%d,1,2,2
blocks.{0-%d}.ffn.0.weight BF16 %d,%d
blocks.{0-%d}.cross_attn.k.weight BF16 %d,%d
%s""" % (width, out * 4, width, width, channels, layers,
            {1536: 8960, 3072: 14336}.get(width, 13824), width, layers, width, width, extra))


def hunyuan(channels, extra=""):
    return tensors("""
txt_in.individual_token_refiner.blocks.0.norm1.weight BF16 3072
img_in.proj.weight BF16 3072,%d,1,2,2
double_blocks.{0-19}.img_attn_qkv.weight BF16 9216,3072
single_blocks.{0-39}.linear1.weight BF16 21504,3072
%s""" % (channels, extra))


def lumina(width, extra=""):
    return tensors("""
cap_embedder.1.weight BF16 %d,2304
cap_embedder.0.weight BF16 2304
noise_refiner.0.attention.k_norm.weight BF16 96
context_refiner.0.attention.k_norm.weight BF16 96
layers.{0-25}.attention.qkv.weight BF16 4608,%d
layers.0.adaLN_modulation.0.weight BF16 256,256
%s""" % (width, width, extra))


T5 = """
encoder.block.{0-23}.layer.0.SelfAttention.{q|k|v|o}.weight F16 4096,4096
encoder.block.{0-23}.layer.1.DenseReluDense.wi_{0|1}.weight F16 10240,4096
encoder.final_layer_norm.weight F16 4096
shared.weight F16 VOCAB,4096
"""
VISION = """
vision_model.embeddings.class_embedding F16 1280
vision_model.embeddings.patch_embedding.weight F16 1280,3,14,14
vision_model.embeddings.position_embedding.weight F16 257,1280
vision_model.pre_layrnorm.weight F16 1280
vision_model.encoder.layers.{0-31}.self_attn.q_proj.weight F16 1280,1280
vision_model.encoder.layers.{0-31}.mlp.fc1.weight F16 5120,1280
"""
LTX = """
adaln_single.emb.timestep_embedder.linear_1.bias BF16 2048
patchify_proj.weight BF16 2048,128
transformer_blocks.{0-27}.attn{1|2}.to_{q|k|v}.weight BF16 2048,2048
transformer_blocks.{0-27}.scale_shift_table BF16 6,2048
"""
LTX_VAE = """
encoder.conv_in.conv.weight BF16 128,48,3,3,3
encoder.down_blocks.{0-8}.res_blocks.0.conv1.conv.weight BF16 128,128,3,3,3
decoder.conv_in.conv.weight BF16 512,128,3,3,3
decoder.up_blocks.{0-6}.res_blocks.0.conv1.conv.weight BF16 512,512,3,3,3
decoder.last_time_embedder.timestep_embedder.linear_1.weight BF16 256,256
"""
CASES = {
    "ace-step-1": Model("t_block.1.weight BF16 15360,2560\ngenre_embedder.weight BF16 2560,512\n"
                        "speaker_embedder.weight BF16 2560,512\n"
                        "transformer_blocks.{0-23}.attn.to_q.weight BF16 2560,2560"),
    "sd1.checkpoint": Model(SD1_FULL),
    "sd1.full": Model(marked(SD1_FULL, "model_ema.decay")),
    "sd1.unet-only": Model(sd1_unet(), None, LDM),
    "sd1.inpaint": Model(sd1_unet(9), None, LDM),
    "sd2": Model(sd1_unet(4, 1024), None, LDM),
    "sd2.depth": Model(sd1_unet(5, 1024), None, LDM),
    "sdxl": Model(Model(sdxl_unet(), None, LDM).rows + SDXL_TEXT
                  + Model(SD_VAE, None, "first_stage_model.").rows),
    "sdxl.v-pred": Model(marked(Model(sdxl_unet(), None, LDM).rows + SDXL_TEXT, "v_pred",
                                "ztsnr")),
    "sdxl.inpaint": Model(sdxl_unet(9), None, LDM),
    "sdxl.playground": Model(marked(Model(sdxl_unet(), None, LDM).rows, "edm_mean", "edm_std")),
    "sdxl-refiner": Model("""
input_blocks.0.0.weight F16 384,4,3,3
label_emb.0.0.weight F16 1536,2560
input_blocks.4.1.transformer_blocks.{0-3}.attn2.to_k.weight F16 768,1280
middle_block.1.transformer_blocks.{0-3}.attn2.to_k.weight F16 1536,1280
""", None, LDM),
    "ssd-1b": Model("""
input_blocks.0.0.weight F16 320,4,3,3
label_emb.0.0.weight F16 1280,2816
input_blocks.{4|5}.1.transformer_blocks.{0|1}.attn2.to_k.weight F16 640,2048
input_blocks.{7|8}.1.transformer_blocks.{0-3}.attn2.to_k.weight F16 1280,2048
middle_block.0.in_layers.2.weight F16 1280,1280,3,3
output_blocks.3.1.transformer_blocks.{0|1}.attn2.to_k.weight F16 640,2048
""", None, LDM),
    "svd": Model(sd1_unet(8, 1024) + tensors("""
input_blocks.1.0.time_stack.emb_layers.1.bias F16 320
input_blocks.1.1.time_mixer.mix_factor F16 1
label_emb.0.0.weight F16 1280,768
"""), None, LDM),
    "sd3.medium": Model(joint(24, 1536), None, LDM),
    "sd3.5-medium": Model(joint(24, 1536, """
joint_blocks.{0-23}.context_block.attn.ln_q.weight F16 64
joint_blocks.{0-12}.x_block.attn2.qkv.weight F16 4608,1536
"""), None, LDM),
    "sd3.5-large": Model(joint(38, 2432,
                               "joint_blocks.{0-37}.context_block.attn.ln_q.weight F16 64"),
                         None, LDM),
    "cascade.c": Model("clf.1.weight BF16 16,2048,1,1\nclip_txt_mapper.weight BF16 2048,1280\n"
                       "down_blocks.0.0.channelwise.0.weight BF16 2048,2048"),
    "cascade.b": Model("clf.1.weight BF16 16,320,1,1\nclip_mapper.weight BF16 1280,1280\n"
                       "down_blocks.1.0.channelwise.0.weight BF16 640,640\n"
                       "effnet_mapper.0.weight BF16 1280,16,1,1"),
    "flux.dev": Model(flux_model()),
    "flux.schnell": Model(flux_model(guidance=False)),
    "flux.fill": Model(flux_model(384)),
    "flux.lite": Model(flux_model(double=8)),
    "flux.lite-plain": Model(flux_model(guidance=False, double=8)),
    "flux.narrow": Model([(n, d, [1536 if size == 3072 else size for size in shape], v)
                          for n, d, shape, v in flux_model()]),
    "flux.control": Model(flux_model(128)),
    "flux.checkpoint": Model(Model(flux_model(), None, LDM).rows
                             + Model(CLIP_L, None, "text_encoders.clip_l.transformer.").rows
                             + Model(FLUX_VAE, None, "vae.").rows),
    "flux.diffusers": Model("""
single_transformer_blocks.{0-37}.attn.norm_k.weight BF16 128
single_transformer_blocks.{0-37}.attn.to_q.weight BF16 3072,3072
transformer_blocks.{0-18}.attn.norm_added_k.weight BF16 128
x_embedder.weight BF16 3072,64
time_text_embed.guidance_embedder.linear_1.weight BF16 3072,256
time_text_embed.text_embedder.linear_1.weight BF16 3072,768
"""),
    "chroma": Model([r for r in flux_model(guidance=False) if "vector_in" not in r[0]
                     and "mod" not in r[0]] + tensors("""
distilled_guidance_layer.norms.{0-4}.scale BF16 5120
distilled_guidance_layer.in_proj.weight BF16 5120,64
""")),
    "chroma-radiance": Model([r for r in flux_model(guidance=False) if "vector_in" not in r[0]
                              and "img_in" not in r[0] and "mod" not in r[0]] + tensors("""
distilled_guidance_layer.norms.{0-4}.scale BF16 5120
distilled_guidance_layer.in_proj.weight BF16 5120,64
nerf_blocks.{0-3}.norm.scale BF16 64
nerf_image_embedder.embedder.0.bias BF16 64
""")),
    "flux2.dev": Model(flux2(6144, 36864, 15360, 48)),
    "flux2.klein-4b": Model(flux2(3072, 18432, 7680, 20)),
    "flux2.klein-9b": Model(flux2(4096, 24576, 12288, 24)),
    "longcat": Model([r if r[0] != "txt_in.weight" else (r[0], r[1], [3072, 3584], None)
                      for r in flux_model() if "vector_in" not in r[0]]),
    "pixart-sigma": Model("t_block.1.weight F16 6912,1152\nx_embedder.proj.weight F16 1152,4,2,2\n"
                          "y_embedder.y_embedding F16 300,4096\n"
                          "blocks.{0-27}.attn.qkv.weight F16 3456,1152"),
    "pixart-alpha": Model("t_block.1.weight F16 6912,1152\nar_embedder.mlp.0.weight F16 384,256\n"
                          "x_embedder.proj.weight F16 1152,4,2,2\n"
                          "y_embedder.y_embedding F16 120,4096\n"
                          "blocks.{0-27}.attn.qkv.weight F16 3456,1152"),
    "hunyuan-dit": Model("mlp_t5.0.weight F16 8192,2048\nextra_embedder.0.weight F16 5632,3968\n"
                         "blocks.{0-39}.attn1.Wqkv.weight F16 4224,1408"),
    "hunyuan-video": Model(hunyuan(16)),
    "hunyuan-video.i2v": Model(hunyuan(33)),
    "hunyuan-video-1.5": Model(hunyuan(65, "vision_in.proj.0.weight BF16 1152\n"
                                           "cond_type_embedding.weight BF16 3,2048")),
    "wan.1_3b": Model(wan(1536)),
    "wan.14b-t2v": Model(wan(5120)),
    "wan.14b-i2v-2.1": Model(wan(5120, 36, 16, "img_emb.proj.0.bias BF16 1280")),
    "wan.humo": Model(wan(5120, 36, 16, "audio_proj.audio_proj_glob_1.layer.bias BF16 512")),
    "wan.14b-i2v-2.2": Model(wan(5120, 36)),
    "wan.flf2v": Model(wan(5120, 36, 16, "img_emb.proj.0.bias BF16 1280\n"
                                         "img_emb.emb_pos BF16 1,514,1280")),
    "wan.few-layers": Model([r for r in wan(5120) if "blocks.39." not in r[0]]),
    "wan.animate-2": Model(wan(5120, 36, 16, "img_emb.proj.0.bias BF16 1280"),
                           {"config": '{"transformer": {"model_type": "animate2"}}'}),
    "wan.flow-rvs": Model(wan(1536), {"config": '{"transformer": {"model_type": "flow_rvs"}}'}),
    "wan.own-type": Model(wan(1536), {"config": '{"transformer": {"model_type": "t2v"}}'}),
    "z-image.ming": Model("cap_embedder.1.weight BF16 3840,2560\n"
                          "noise_refiner.0.attention.k_norm.weight BF16 128",
                          {"config": '{"transformer": {"image_model": "ming_image"}}'}),
    "vae.qwen-layered": Model("decoder.middle.0.residual.0.gamma BF16 384,1,1,1\n"
                              "encoder.conv1.weight BF16 96,4,3,3,3\n"
                              "decoder.head.2.weight BF16 4,96,3,3,3"),
    "wan.vace-alone": Model("vace_patch_embedding.weight BF16 5120,96,1,2,2\n"
                            "vace_blocks.{0-7}.after_proj.weight BF16 5120,5120\n"
                            "vace_blocks.{0-7}.self_attn.{q|k|v|o}.weight BF16 5120,5120"),
    "wan.5b": Model(wan(3072, 48, 48)),
    "wan.vace": Model(wan(5120, 16, 16, "vace_patch_embedding.weight BF16 5120,96,1,2,2\n"
                                        "vace_blocks.0.after_proj.bias BF16 5120")),
    "wan.high-noise": {"wan2.2_t2v_high_noise_14B.safetensors": Model(wan(5120))},
    "ltx": Model("adaln_single.emb.timestep_embedder.linear_1.bias BF16 2048\n"
                 "patchify_proj.weight BF16 2048,128\n"
                 "transformer_blocks.{0-27}.attn2.to_k.weight BF16 2048,2048\n"
                 "transformer_blocks.{0-27}.scale_shift_table BF16 6,2048"),
    "ltx.checkpoint": Model(Model(LTX, None, LDM).rows + Model(LTX_VAE, None, "vae.").rows),
    "z-image.checkpoint": Model(Model(lumina(3840, "cap_pad_token BF16 1,3840"), None, LDM).rows
                                + Model(llama(), None, "text_encoders.qwen3_4b.transformer.").rows),
    "ltx.13b": Model("adaln_single.emb.timestep_embedder.linear_1.bias BF16 4096\n"
                     "patchify_proj.weight BF16 4096,128\n"
                     "transformer_blocks.{0-47}.attn2.to_k.weight BF16 4096,4096\n"
                     "transformer_blocks.{0-47}.scale_shift_table BF16 6,4096"),
    "ltx-2": Model("adaln_single.emb.timestep_embedder.linear_1.bias BF16 4096\n"
                   "audio_adaln_single.linear.weight BF16 12288,2048\n"
                   "transformer_blocks.{0-47}.attn2.to_k.weight BF16 4096,4096\n"
                   "transformer_blocks.{0-47}.audio_to_video_attn.k_norm.weight BF16 2048\n"
                   "av_ca_a2v_gate_adaln_single.emb.timestep_embedder.linear_1.weight BF16 4096,256"),
    "cosmos-predict2": Model("blocks.{0-27}.mlp.layer1.weight BF16 8192,2048\n"
                             "blocks.{0-27}.self_attn.q_proj.weight BF16 2048,2048\n"
                             "x_embedder.proj.1.weight BF16 2048,68", None, "net."),
    "anima": Model("blocks.{0-27}.mlp.layer1.weight BF16 8192,2048\n"
                   "blocks.{0-27}.self_attn.q_proj.weight BF16 2048,2048\n"
                   "x_embedder.proj.1.weight BF16 2048,68\n"
                   "llm_adapter.blocks.{0-5}.cross_attn.q_proj.weight BF16 1024,1024", None,
                   "net."),
    "lumina-2": Model(lumina(2304)),
    "z-image": Model(lumina(3840, "cap_pad_token BF16 1,3840")),
    "auraflow": Model("double_layers.{0-3}.attn.w1q.weight F16 3072,3072\n"
                      "cond_seq_linear.weight F16 3072,2048\npositional_encoding F16 1,1024,3072\n"
                      "single_layers.{0-31}.attn.w1q.weight F16 3072,3072", None, "model."),
    "qwen-image": Model("txt_norm.weight BF16 3584\nimg_in.weight BF16 3072,64\n"
                        "transformer_blocks.{0-59}.attn.add_k_proj.bias BF16 3072\n"
                        "transformer_blocks.{0-59}.attn.to_q.weight BF16 3072,3072"),
    "mochi": Model("t5_yproj.weight BF16 3072,4096\nblocks.{0-47}.attn.k_norm_x.weight BF16 128\n"
                   "blocks.{0-47}.attn.qkv_x.weight BF16 9216,3072"),
    "hidream.checkpoint": Model(Model("""
caption_projection.{0-48}.linear.weight BF16 2560,4096
double_stream_blocks.{0-15}.block.ff_i.shared_experts.w1.weight BF16 3584,2560
double_stream_blocks.{0-15}.block.attn1.to_{q|k|v}.weight BF16 2560,2560
t_embedder.timestep_embedder.linear_1.weight BF16 2560,256
""", None, LDM).rows + Model(llama(), None, "text_encoders.llama.transformer.").rows),
    "hidream": Model("caption_projection.{0-48}.linear.weight BF16 2560,4096\n"
                     "double_stream_blocks.{0-15}.block.ff_i.shared_experts.w1.weight BF16 3584,2560"),
    "vae.sd": Model(SD_VAE),
    "vae.flux": Model(FLUX_VAE),
    "vae.flux2": Model([("bn.running_mean", "F32", [128], None)] + [
        r if r[0] != "decoder.conv_in.weight" else (r[0], r[1], [512, 32, 3, 3], None)
        for r in tensors(FLUX_VAE)]),
    "vae.wan": Model("decoder.middle.0.residual.0.gamma BF16 384,1,1,1\n"
                     "decoder.conv1.weight BF16 384,16,3,3,3\n"
                     "encoder.conv1.weight BF16 96,3,3,3,3"),
    "clip-l": Model(CLIP_L),
    "clip-g": Model(CLIP_L.replace("{0-11}", "{0-31}").replace("768", "1280")
                    .replace("3072", "5120")),
    "t5-xxl": Model(T5.replace("VOCAB", "32128")),
    "umt5": Model(T5.replace("VOCAB", "256384")),
    "t5-seq2seq": Model(T5.replace("VOCAB", "32128").replace("4096", "1024")
                        + "decoder.block.{0-23}.layer.0.SelfAttention.q.weight F16 1024,1024"),
    "clip-vision": Model(VISION),
    "clip-both": Model(VISION + CLIP_L.replace("{0-11}", "{0-23}")
                        .replace("768", "1024").replace("3072", "4096") + "logit_scale F32 -"),
    "controlnet.ldm": Model("input_blocks.0.0.weight F16 320,4,3,3\n"
                            "input_blocks.1.1.transformer_blocks.0.attn2.to_k.weight F16 320,768\n"
                            "zero_convs.{0-11}.0.weight F16 320,320,1,1\n"
                            "input_hint_block.0.weight F16 16,3,3,3", None, "control_model."),
    "controlnet.diffusers": Model("conv_in.weight F16 320,4,3,3\n"
                                  "controlnet_cond_embedding.conv_in.weight F16 16,3,3,3\n"
                                  "controlnet_mid_block.bias F16 1280\n"
                                  "controlnet_down_blocks.{0-8}.weight F16 320,320,1,1\n"
                                  "down_blocks.1.attentions.0.transformer_blocks.0.attn2.to_k"
                                  ".weight F16 640,2048\n"
                            "down_blocks.2.attentions.{0|1}.transformer_blocks.{0|1}.attn2.to_k"
                            ".weight F16 1280,2048\nadd_embedding.linear_1.weight"
                                  " F16 1280,2816"),
    "unet.diffusers": Model("conv_in.weight F16 320,4,3,3\nconv_out.weight F16 4,320,3,3\n"
                            "down_blocks.1.attentions.{0|1}.transformer_blocks.{0|1}.attn2.to_k"
                            ".weight F16 640,2048\n"
                            "down_blocks.2.attentions.{0|1}.transformer_blocks.{0|1}.attn2.to_k"
                            ".weight F16 1280,2048\nadd_embedding.linear_1.weight F16 1280,2816\n"
                            "mid_block.attentions.0.transformer_blocks.{0-9}.attn2.to_k.weight"
                            " F16 1280,2048\ntime_embedding.linear_1.weight F16 1280,320"),
    "ip-adapter": Model("image_proj.proj.weight F16 3072,1024\n"
                        "ip_adapter.{1|3|5|7}.to_k_ip.weight F16 320,768\n"
                        "ip_adapter.{1|3|5|7}.to_v_ip.weight F16 320,768"),
    "ip-adapter.sdxl": Model("image_proj.proj.weight F16 8192,1280\n"
                             "ip_adapter.{1|3|5|7}.to_k_ip.weight F16 640,2048\n"
                             "ip_adapter.{1|3|5|7}.to_v_ip.weight F16 640,2048"),
    "embedding": {"easynegative.safetensors": Model("emb_params F32 8,768")},
    "embedding.sdxl": {"zpdog.safetensors": Model("clip_l F32 4,768\nclip_g F32 4,1280")},
    "embedding.near": {"easynegative.safetensors": Model("emb_params F32 8,768\nother F32 8,768")},
    "upscaler": Model("conv_first.weight F32 64,3,3,3\nconv_first.bias F32 64\n"
                      "body.{0-22}.rdb1.conv1.weight F32 32,64,3,3\n"
                      "conv_body.weight F32 64,64,3,3\nconv_last.weight F32 3,64,3,3"),
    "motion-module": Model("down_blocks.{0-3}.motion_modules.0.temporal_transformer."
                           "transformer_blocks.0.attention_blocks.0.pos_encoder.pe F16 1,24,320\n"
                           "up_blocks.{0-3}.motion_modules.0.temporal_transformer.norm.bias"
                           " F16 320"),
    "motion-module.diffusers": Model("down_blocks.{0-3}.motion_modules.0.proj_in.weight F16 320,320\n"
                                     "up_blocks.{0-3}.motion_modules.0.proj_in.weight F16 320,320\n"
                                     "down_blocks.{0-3}.motion_modules.0.transformer_blocks.0.attn1"
                                     ".to_{q|k|v}.weight F16 320,320"),
    "motion-lora": Model("down_blocks.{0-3}.motion_modules.0.temporal_transformer.transformer_blocks"
                         ".0.attention_blocks.{0|1}.processor.to_q_lora.down.weight F16 32,320\n"
                         "down_blocks.{0-3}.motion_modules.0.temporal_transformer.transformer_blocks"
                         ".0.attention_blocks.{0|1}.processor.to_q_lora.up.weight F16 320,32"),
    "ldm-names.ia3": Model("lora_unet_middle_block_1_transformer_blocks_{0-9}_attn2_to_k.weight"
                           " F16 1280,1\nlora_unet_middle_block_1_transformer_blocks_{0-9}"
                           "_attn2_to_k.on_input BOOL -"),
    "llama": Model(llama()),
    "exaone": Model(tensors("""
transformer.h.{0-31}.attn.attention.q_proj.weight BF16 4096,4096
transformer.h.{0-31}.attn.attention.out_proj.weight BF16 4096,4096
transformer.h.{0-31}.attn.attention.k_proj.weight BF16 1024,4096
transformer.h.{0-31}.attn.attention.v_proj.weight BF16 1024,4096
transformer.h.{0-31}.mlp.c_fc_0.weight BF16 14336,4096
transformer.h.{0-31}.mlp.c_fc_1.weight BF16 14336,4096
transformer.h.{0-31}.mlp.c_proj.weight BF16 4096,14336
transformer.wte.weight BF16 102400,4096
lm_head.weight BF16 102400,4096""")),
    "omnigen-v1": Model(tensors("""
llm.embed_tokens.weight BF16 32064,3072
llm.layers.{0-31}.self_attn.qkv_proj.weight BF16 9216,3072
llm.layers.{0-31}.self_attn.o_proj.weight BF16 3072,3072
llm.layers.{0-31}.mlp.gate_up_proj.weight BF16 16384,3072
llm.layers.{0-31}.mlp.down_proj.weight BF16 3072,8192
time_token.mlp.0.weight BF16 3072,256
time_token.mlp.2.weight BF16 3072,3072
t_embedder.mlp.0.weight BF16 3072,256
x_embedder.proj.weight BF16 3072,4,2,2
input_x_embedder.proj.weight BF16 3072,4,2,2
final_layer.linear.weight BF16 16,3072""")),
    "t5-xxl.half": Model(tensors("""
encoder.block.{12-23}.layer.0.SelfAttention.q.weight F16 4096,4096
encoder.block.{12-23}.layer.0.SelfAttention.k.weight F16 4096,4096
encoder.block.{12-23}.layer.1.DenseReluDense.wi_1.weight F16 10240,4096
encoder.final_layer_norm.weight F16 4096""")),
    "mistral-native": Model("tok_embeddings.weight BF16 32768,4096\noutput.weight BF16 32768,4096\n"
                            "layers.{0-31}.attention.w{q|o}.weight BF16 4096,4096\n"
                            "layers.{0-31}.attention.w{k|v}.weight BF16 1024,4096\n"
                            "layers.{0-31}.feed_forward.w{1|3}.weight BF16 14336,4096\n"
                            "layers.{0-31}.{attention|ffn}_norm.weight BF16 4096\n"
                            "norm.weight BF16 4096"),
    "qwen2": Model(llama(28, 3584, 512, 152064, bias=True)),
    "qwen3": Model(llama(28, 1024, 1024, 151936, False, extra=
                         "model.layers.{0-N}.self_attn.{q|k}_norm.weight BF16 128\n")),
    "gemma-2": Model(llama(26, 2304, 1024, 256000, False, extra=
                           "model.layers.{0-N}.{pre|post}_feedforward_layernorm.weight"
                           " BF16 2304\n")),
    "mixtral": Model("model.embed_tokens.weight BF16 32000,4096\nlm_head.weight BF16 32000,4096\n"
                     "model.layers.{0-31}.self_attn.{q|k|v|o}_proj.weight BF16 4096,4096\n"
                     "model.layers.{0-31}.block_sparse_moe.gate.weight BF16 8,4096\n"
                     "model.layers.{0-31}.block_sparse_moe.experts.{0-7}.w{1-3}.weight"
                     " BF16 14336,4096\nmodel.norm.weight BF16 4096"),
    "gpt-2": Model("wte.weight F32 50257,768\nwpe.weight F32 1024,768\n"
                   "h.{0-11}.attn.c_attn.weight F32 768,2304\nh.{0-11}.mlp.c_fc.weight"
                   " F32 768,3072\nln_f.weight F32 768"),
    "gpt-neox": Model("gpt_neox.embed_in.weight F16 50304,512\n"
                      "gpt_neox.layers.{0-5}.attention.query_key_value.weight F16 1536,512\n"
                      "embed_out.weight F16 50304,512"),
    "bert": Model("bert.embeddings.word_embeddings.weight F32 30522,768\n"
                  "bert.embeddings.token_type_embeddings.weight F32 2,768\n"
                  "bert.encoder.layer.{0-11}.attention.self.query.weight F32 768,768\n"
                  "bert.pooler.dense.weight F32 768,768"),
    "roberta": Model("roberta.embeddings.word_embeddings.weight F32 50265,768\n"
                     "roberta.encoder.layer.{0-11}.attention.self.query.weight F32 768,768"),
    "distilbert": Model("distilbert.embeddings.word_embeddings.weight F32 30522,768\n"
                        "distilbert.transformer.layer.{0-5}.attention.q_lin.weight F32 768,768"),
    "whisper": Model("model.encoder.conv1.weight F16 512,80,3\nmodel.decoder.embed_tokens.weight"
                     " F16 51865,512\nmodel.encoder.layers.{0-5}.self_attn.k_proj.weight"
                     " F16 512,512\nmodel.decoder.layers.{0-5}.self_attn.k_proj.weight"
                     " F16 512,512"),
    "bart": Model("model.shared.weight F32 50265,768\n"
                  "model.encoder.layers.{0-5}.self_attn.k_proj.weight F32 768,768\n"
                  "model.decoder.layers.{0-5}.self_attn.k_proj.weight F32 768,768"),
    "vit": Model("vit.embeddings.patch_embeddings.projection.weight F32 768,3,16,16\n"
                 "vit.embeddings.cls_token F32 1,1,768\n"
                 "vit.encoder.layer.{0-11}.attention.attention.query.weight F32 768,768\n"
                 "classifier.weight F32 1000,768"),
    "mamba": Model("backbone.embedding.weight F16 50280,768\n"
                   "backbone.layers.{0-23}.mixer.A_log F16 1536,16\n"
                   "backbone.layers.{0-23}.mixer.in_proj.weight F16 3072,768"),
    "near.olmo-2": Model(llama(16, 2048, 2048, 100352, extra=
                               "model.layers.{0-N}.self_attn.{q|k}_norm.weight BF16 2048\n"
                               "model.layers.{0-N}.post_feedforward_layernorm.weight"
                               " BF16 2048\n")),
    "near.detr": Model("model.backbone.conv_encoder.model.layer1.0.conv1.weight F32 64,64,1,1\n"
                       "model.input_projection.weight F32 256,2048,1,1\n"
                       "model.encoder.layers.{0-5}.self_attn.{q|k|v|out}_proj.weight F32 256,256\n"
                       "model.decoder.layers.{0-5}.self_attn.{q|k|v|out}_proj.weight F32 256,256\n"
                       "model.decoder.layers.{0-5}.encoder_attn.{q|k|v}_proj.weight F32 256,256\n"
                       "model.decoder.layers.{0-5}.fc1.weight F32 2048,256\n"
                       "class_labels_classifier.weight F32 92,256"),
    "near.blip-2": Model("vision_model.embeddings.class_embedding F32 1,1,1408\n"
                         "vision_model.embeddings.patch_embedding.weight F32 1408,3,14,14\n"
                         "vision_model.encoder.layers.{0-38}.self_attn.qkv.weight F32 4224,1408\n"
                         "qformer.encoder.layer.{0-11}.attention.attention.query.weight F32"
                         " 768,768\nlanguage_model.lm_head.weight F32 50272,2560"),
    "near.uncond": Model("conv_in.weight F32 320,4,3,3\n"
                         "time_embedding.linear_1.weight F32 1280,320\n"
                         "down_blocks.{0-3}.attentions.0.transformer_blocks.0.attn{1|2}.to_k.weight"
                         " F32 320,512\nup_blocks.{0-3}.attentions.0.transformer_blocks.0.attn1."
                         "to_k.weight F32 320,320"),
    "near.audio-spectrogram": Model("embeddings.cls_token F32 1,1,768\n"
                                    "embeddings.patch_embeddings.projection.weight F32"
                                    " 768,1,16,16\nencoder.layer.{0-11}.attention.attention.query"
                                    ".weight F32 768,768"),
    "adalora": Model("base_model.model.model.layers.{0-15}.self_attn.q_proj.lora_A F32 12,2048\n"
                     "base_model.model.model.layers.{0-15}.self_attn.q_proj.lora_B F32 2048,12\n"
                     "base_model.model.model.layers.{0-15}.self_attn.q_proj.lora_E F32 12,1"),
    "nothing-known": Model("alpha.weight F32 4,4\nbeta.bias F32 4"),
}
