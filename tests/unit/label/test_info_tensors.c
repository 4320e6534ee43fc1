/* What names and shapes tell of a model: each case beside one that must answer otherwise. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/compose.h"

#define LDM "model.diffusion_model."
#define K ".transformer_blocks.0.attn2.to_k.weight"
#define SDXL_LDM(ch) \
    "input_blocks.0.0.weight[320," ch ",3,3] label_emb.0.0.weight[1280,2816] " \
    "input_blocks.4.1" K "[640,2048] middle_block.1.proj_in.weight[1280,1280] "
#define REFINER(in) in "input_blocks.0.0.weight[384,4,3,3] " in "label_emb.0.0.weight[1536,2560] "
#define SD1_LDM(ch) \
    "input_blocks.0.0.weight[320," ch ",3,3] input_blocks.1.1" K "[320,768] "
#define SD2_LDM(ch) \
    "input_blocks.0.0.weight[320," ch ",3,3] input_blocks.2.1" K "[320,1024] "
#define SD1_CKPT(ch) \
    LDM "input_blocks.0.0.weight[320," ch ",3,3] " LDM "input_blocks.1.1" K "[320,768] " \
    "first_stage_model.decoder.conv_in.weight[512,4,3,3] first_stage_model.decoder.up.3.x[1] " \
    "first_stage_model.decoder.conv_out.weight[3,128,3,3] " \
    "first_stage_model.decoder.mid.block_1.norm1.weight[512] " \
    "cond_stage_model.transformer.text_model.encoder.layers.{0-11}.mlp.fc1.weight[3072,768] "
#define DIFFUSERS(ch, width) \
    "conv_in.weight[320," ch ",3,3] up_blocks.0.resnets.0.norm1.weight[640] " \
    "down_blocks.0.attentions.0" K "[320," width "] "
#define FLUX(img) \
    "double_blocks.{0-18}.img_attn.norm.key_norm.scale[128] " \
    "single_blocks.{0-37}.linear1.weight[21504,3072] img_in.weight[3072," img "] " \
    "vector_in.in_layer.weight[3072,768] txt_in.weight[3072,4096] "
#define GUIDED "guidance_in.in_layer.weight[3072,256] "
#define WAN(dim, in, out) \
    "head.modulation[1,2," dim "] head.head.weight[" out "," dim "] " \
    "patch_embedding.weight[" dim "," in ",1,2,2] blocks.{0-39}.cross_attn.norm_k.weight[" dim "] "
#define LLAMA(l) \
    "model.layers.{0-" l "}.self_attn.q_proj.weight[4096,4096] " \
    "model.layers.{0-" l "}.self_attn.k_proj.weight[1024,4096] " \
    "model.layers.{0-" l "}.mlp.gate_proj.weight[14336,4096] " \
    "model.layers.{0-" l "}.input_layernorm.weight[4096] " \
    "model.embed_tokens.weight[128256,4096] model.norm.weight[4096] "
#define CLIP(l, wide, inner) \
    "text_model.encoder.layers.{0-" l "}.mlp.fc1.weight[" inner "," wide "] " \
    "text_model.embeddings.position_embedding.weight[77," wide "] " \
    "text_model.embeddings.token_embedding.weight[49408," wide "] "
#define VISION(l, wide, inner) \
    "vision_model.encoder.layers.{0-" l "}.mlp.fc1.weight[" inner "," wide "] " \
    "vision_model.encoder.layers.0.self_attn.q_proj.weight[" wide "," wide "] " \
    "vision_model.embeddings.class_embedding[" wide "] " \
    "vision_model.pre_layrnorm.weight[" wide "] " \
    "vision_model.embeddings.position_embedding.weight[257," wide "] " \
    "vision_model.embeddings.patch_embedding.weight[" wide ",3,14,14] "
#define LUMINA(dim) \
    "cap_embedder.1.weight[" dim ",2560] noise_refiner.0.attention.k_norm.weight[128] "
#define COSMOS(dim) "blocks.0.mlp.layer1.weight[1,1] x_embedder.proj.1.weight[" dim ",68] "
#define CONTROL(l, wide) \
    "controlnet_cond_embedding.conv_in.weight[16,3,3,3] conv_in.weight[320,4,3,3] " \
    "down_blocks." l ".attentions.0" K "[320," wide "] "

typedef struct tensor_case {
    const char *tensors, *expected; /* kind architecture variant */
    const char *near, *instead;
} tensor_case;

static const tensor_case tensor_cases[] = {
    /* U-Nets */
    { SD1_LDM("4"), "diffusion_model sd-1 -", SD2_LDM("4"), "diffusion_model sd-2 -" },
    /* IC-Light, GeoWizard and InstructPix2Pix have 8 channels */
    { SD1_LDM("9"), "diffusion_model sd-1 inpaint", SD1_LDM("8"), "diffusion_model sd-1 -" },
    { SD1_LDM("8") "cc_projection.weight[768,772]", "diffusion_model stable-zero123 -",
      SD1_LDM("4") "cc_projection.weight[768,772]", "diffusion_model sd-1 -" },
    { SD2_LDM("5"), "diffusion_model sd-2 depth", SD2_LDM("7"),
      "diffusion_model sd-2@60 upscale@60" },
    { SD2_LDM("4") "label_emb.0.0.weight[1280,2048]", "diffusion_model sd-2 unclip",
      SD2_LDM("4") "label_emb.0.0.weight[1280,1000]", "diffusion_model sd-2@60 -" },
    { SDXL_LDM("4"), "diffusion_model sdxl -", SDXL_LDM("9"), "diffusion_model sdxl inpaint" },
    { SDXL_LDM("4") "edm_mean[4] edm_std[4]", "diffusion_model playground-2.5 -",
      SDXL_LDM("4") "edm_mian[4]", "diffusion_model sdxl -" },
    { "input_blocks.0.0.weight[384,4,3,3] label_emb.0.0.weight[1536,2560]",
      "diffusion_model sdxl-refiner -",
      "input_blocks.0.0.weight[320,4,3,3] label_emb.0.0.weight[1536,2560]", "unknown - -" },
    { "input_blocks.0.0.weight[320,4,3,3] label_emb.0.0.weight[1280,2816] "
      "output_blocks.3.1.transformer_blocks.1.x[1] output_blocks.0.0.x[1]",
      "diffusion_model ssd-1b -",
      "input_blocks.0.0.weight[320,4,3,3] label_emb.0.0.weight[1280,2816] "
      "output_blocks.0.0.x[1]", "diffusion_model segmind-vega -" },
    { "input_blocks.0.0.weight[320,4,3,3] label_emb.0.0.weight[1280,2816] "
      "input_blocks.5.1.transformer_blocks.{0-4}.norm1.weight[1280]",
      "diffusion_model koala -",
      "input_blocks.0.0.weight[320,4,3,3] label_emb.0.0.weight[1280,2000] "
      "input_blocks.5.1.transformer_blocks.{0-4}.norm1.weight[1280]", "unknown - -" },
    { "input_blocks.1.0.time_stack.emb_layers.1.bias[320] input_blocks.0.0.weight[320,8,3,3] "
      "input_blocks.1.1.transformer_blocks.0.attn2.to_k.weight[320,1024]",
      "diffusion_model svd -",
      "input_blocks.1.0.emb_layers.1.bias[320] input_blocks.0.0.weight[320,8,3,3]",
      "unknown - -" },
    { DIFFUSERS("4", "768"), "diffusion_model sd-1 -", DIFFUSERS("4", "1024"),
      "diffusion_model sd-2 -" },
    { DIFFUSERS("9", "768"), "diffusion_model sd-1 inpaint", DIFFUSERS("4", "512"), "unknown - -" },
    { DIFFUSERS("4", "512") "time_embedding.linear_1.weight[1280,320]", "diffusion_model@60 - -",
      DIFFUSERS("4", "512") "space_embedding.linear_1.weight[1280,320]", "unknown - -" },
    { "unet." "conv_in.weight[320,4,3,3] unet.up_blocks.0.x[1] "
      "unet.down_blocks.0.attentions.0" K "[320,768]", "diffusion_model sd-1 -",
      "tenu.conv_in.weight[320,4,3,3] tenu.up_blocks.0.x[1]", "unknown - -" },
    { "conv_in.weight[320,4,3,3] add_embedding.linear_1.weight[1280,2816] up_blocks.0.x[1] "
      "down_blocks.2.attentions.0" K "[1280,2048] mid_block.attentions.0.x[1]",
      "diffusion_model sdxl -",
      "conv_in.weight[320,4,3,3] add_embedding.linear_1.weight[1280,5632] up_blocks.0.x[1] "
      "down_blocks.2.attentions.0" K "[1280,2048] mid_block.attentions.0.x[1]",
      "diffusion_model kolors -" },
    /* checkpoints */
    { SD1_CKPT("4"), "checkpoint sd-1 -", SD1_CKPT("9"), "checkpoint sd-1 inpaint" },
    { LDM "x.weight[1] first_stage_model.y[1]", "checkpoint - -", LDM "x.weight[1]",
      "diffusion_model - -" },
    /* Stable Diffusion 3 */
    { "joint_blocks.0.context_block.attn.qkv.weight[4608,1536] "
      "x_embedder.proj.weight[1536,16,2,2]", "diffusion_model sd-3-medium -",
      "joint_blocks.0.context_block.attn.qkv.weight[4608,1536]", "diffusion_model sd-3 -" },
    { "joint_blocks.0.context_block.attn.qkv.weight[7296,2432] "
      "x_embedder.proj.weight[2432,16,2,2]", "diffusion_model sd-3.5-large -",
      "joint_blocks.0.context_block.attn.qkv.weight[7296,2432]", "diffusion_model sd-3 -" },
    { "joint_blocks.0.context_block.attn.qkv.weight[4608,1536] "
      "joint_blocks.{0-12}.x_block.attn2.qkv.weight[4608,1536]",
      "diffusion_model sd-3.5-medium -", "joint_blocks.0.x_block.attn2.qkv.weight[4608,1536]",
      "unknown - -" },
    { "transformer_blocks.0.attn.add_q_proj.weight[1536,1536] pos_embed.proj.weight[1536,16,2,2]",
      "diffusion_model sd-3-medium -",
      "transformer_blocks.0.attn.add_q_proj.weight[2432,2432] pos_embed.proj.weight[2432,16,2,2]",
      "diffusion_model sd-3.5-large -" },
    /* Stable Cascade */
    { "clf.1.weight[64,2048,1,1] clip_txt_mapper.weight[2048,1280]",
      "diffusion_model stable-cascade-c@60 -", "clf.1.weight[64,2048,1,1] clip_mapper.weight[1,1]",
      "diffusion_model stable-cascade-b@60 -" },
    { "vquantizer.codebook.weight[8192,4]", "vae stable-cascade-a -",
      "vquantizer.codebooks.weight[8192,4]", "unknown - -" },
    /* FLUX and its kin */
    { FLUX("64") GUIDED, "diffusion_model flux.1-dev -", FLUX("64"),
      "diffusion_model flux.1 -" },
    { FLUX("384") GUIDED, "diffusion_model flux.1-dev fill", FLUX("128") GUIDED,
      "diffusion_model flux.1-dev control" },
    { LDM "double_blocks.{0-18}.img_attn.norm.key_norm.weight[128] " LDM "single_blocks.37.x[1] "
      LDM "img_in.bias[3072] " LDM "vector_in.x[1] " LDM GUIDED
      "vae.decoder.conv_in.weight[512,16,3,3] vae.decoder.mid.block_1.norm1.weight[512]",
      "checkpoint flux.1-dev -",
      LDM "double_blocks.0.img_attn.norm.query_norm.weight[128] " LDM GUIDED,
      "diffusion_model - -" },
    { "single_transformer_blocks.{0-37}.attn.norm_k.weight[128] "
      "transformer_blocks.{0-18}.attn.norm_added_k.weight[128] x_embedder.weight[3072,64] "
      "time_text_embed.guidance_embedder.linear_1.weight[3072,256] "
      "time_text_embed.text_embedder.x[1]",
      "diffusion_model flux.1-dev -",
      "single_transformer_blocks.{0-37}.attn.norm_k.weight[128] "
      "transformer_blocks.{0-18}.attn.norm_added_k.weight[128] x_embedder.weight[3072,64] "
      "time_text_embed.timestep_embedder.linear_1.weight[3072,256]",
      "diffusion_model flux.1 -" },
    { "single_transformer_blocks.0.attn.norm_k.weight[128] "
      "transformer_blocks.0.attn.norm_added_k.weight[128]", "diffusion_model flux.1@60 -",
      "single_transformer_blocks.0.attn.norm_k.weight[128]", "unknown - -" },
    { "double_blocks.{0-18}.img_attn.norm.key_norm.scale[128] "
      "distilled_guidance_layer.norms.0.scale[5120]",
      "diffusion_model chroma -",
      "double_blocks.{0-18}.img_attn.norm.key_norm.scale[128] nerf_blocks.0.norm.scale[64] "
      "distilled_guidance_layer.norms.0.scale[5120]", "diffusion_model chroma-radiance -" },
    { FLUX("64") "double_blocks.0.img_mlp.gate_proj.weight[1,1]", "diffusion_model ovis-image@60 -",
      "double_blocks.0.img_attn.norm.key_norm.scale[128] txt_in.weight[3072,3584] "
      "img_in.weight[3072,64]", "diffusion_model longcat-image -" },
    { "double_stream_modulation_img.lin.weight[36864,6144]", "diffusion_model flux.2-dev -",
      "double_stream_modulation_img.lin.weight[24576,4096]",
      "diffusion_model flux.2-klein-9b -" },
    { "double_stream_modulation_img.lin.weight[18432,3072]", "diffusion_model flux.2-klein-4b -",
      "double_stream_modulation_img.lin.weight[9999,3072]", "diffusion_model flux.2@60 -" },
    { "txt_norm.weight[3584] transformer_blocks.0.attn.add_k_proj.bias[3072] "
      "img_in.weight[3072,64]",
      "diffusion_model qwen-image -",
      "txt_norm.weight[2560] transformer_blocks.0.attn.add_k_proj.bias[3072]",
      "diffusion_model mage-flow -" },
    { "txt_norm.weight[3584] transformer_blocks.0.x[1] __index_timestep_zero__[0]",
      "diffusion_model qwen-image edit",
      "txt_norm.weight[3584] transformer_blocks.0.x[1] "
      "time_text_embed.addition_t_embedding.weight[2,3072]",
      "diffusion_model qwen-image layered" },
    /* HunyuanVideo and its kin */
    { "txt_in.individual_token_refiner.blocks.0.norm1.weight[3072] "
      "img_in.proj.weight[3072,16,1,2,2] double_blocks.0.img_attn_qkv.weight[9216,3072]",
      "diffusion_model hunyuan-video -",
      "txt_in.individual_token_refiner.blocks.0.norm1.weight[3072] "
      "img_in.proj.weight[3072,33,1,2,2]", "diffusion_model hunyuan-video i2v" },
    { "vision_in.proj.0.weight[1152] cond_type_embedding.weight[3,2048]",
      "diffusion_model hunyuan-video-1.5 -",
      "txt_in.individual_token_refiner.blocks.0.norm1.weight[3584] byt5_in.fc1.weight[1,1] "
      "img_in.proj.weight[3584,64,1,1]", "diffusion_model hunyuan-image-2.1@60 -" },
    { "mlp_t5.0.weight[8192,2048]", "diffusion_model hunyuan-dit -", "mlp_t6.0.weight[8192,2048]",
      "unknown - -" },
    /* PixArt, LTX, Sana */
    { "t_block.1.weight[6912,1152] ar_embedder.mlp.0.weight[384,256]",
      "diffusion_model pixart-alpha -",
      "t_block.1.weight[6912,1152] y_embedder.y_embedding[300,4096]",
      "diffusion_model pixart-sigma -" },
    { "adaln_single.emb.timestep_embedder.linear_1.bias[2048] patchify_proj.weight[2048,128] "
      "transformer_blocks.{0-27}.attn2.to_k.weight[2048,2048]", "diffusion_model ltx-video 2b",
      "adaln_single.emb.timestep_embedder.linear_1.bias[1152] pos_embed.proj.bias[1152] "
      "transformer_blocks.{0-27}.attn2.to_k.weight[1152,1152]",
      "diffusion_model pixart-sigma@60 -" },
    { "adaln_single.emb.timestep_embedder.linear_1.bias[4096] "
      "transformer_blocks.{0-47}.attn2.to_k.weight[4096,4096]", "diffusion_model ltx-video 13b",
      "adaln_single.emb.timestep_embedder.linear_1.bias[4096] "
      "transformer_blocks.1.audio_to_video_attn.k_norm.weight[2048]",
      "diffusion_model ltx-2 -" },
    { "attention_y_norm.weight[2240] blocks.0.attn.proj.weight[2240,2240]",
      "diffusion_model sana -", "blocks.0.attn.proj.weight[2240,2240]", "unknown - -" },
    /* Wan */
    { WAN("1536", "16", "64"), "diffusion_model wan-2.1 1.3b+t2v", WAN("5120", "16", "64"),
      "diffusion_model wan 14b+t2v" },
    { WAN("5120", "36", "64") "img_emb.proj.0.bias[1280]", "diffusion_model wan-2.1 14b+i2v",
      WAN("5120", "36", "64"), "diffusion_model wan-2.2 14b+i2v" },
    { WAN("5120", "36", "64") "img_emb.proj.0.bias[1280] img_emb.emb_pos[1,514,1280]",
      "diffusion_model wan-2.1 14b+flf2v", WAN("3072", "48", "192"),
      "diffusion_model wan-2.2 5b+ti2v" },
    { WAN("5120", "16", "64") "vace_patch_embedding.weight[5120,96,1,2,2]",
      "diffusion_model wan 14b+vace", WAN("5120", "16", "64") "control_adapter.conv.weight[1]",
      "diffusion_model wan 14b+camera" },
    { WAN("5120", "16", "64") "casual_audio_encoder.x.weight[1]",
      "diffusion_model wan-2.2 14b+s2v",
      WAN("5120", "16", "64") "audio_proj.audio_proj_glob_1.layer.bias[1]",
      "diffusion_model humo 17b" },
    { WAN("5120", "36", "64") "img_emb.proj.0.bias[1] face_adapter.fuser_blocks.0.k_norm.weight[1]",
      "diffusion_model wan-2.2 14b+animate", WAN("1536", "48", "64") "ref_conv.weight[1]",
      "diffusion_model wan-2.1 1.3b+control" },
    { "head.modulation[1,2,5120]", "unknown - -", LDM WAN("1536", "16", "64"),
      "diffusion_model - -" },
    /* others */
    { "net.blocks.block0.blocks.0.block.attn.to_q.0.weight[5120,5120] "
      "net.x_embedder.proj.1.weight[5120,68]", "diffusion_model cosmos-1 14b+t2v",
      "net.blocks.block0.blocks.0.block.attn.to_q.0.weight[4096,4096] "
      "net.x_embedder.proj.1.weight[4096,72]", "diffusion_model cosmos-1 i2v" },
    { COSMOS("2048"), "diffusion_model cosmos-predict2@60 2b@60",
      COSMOS("2048") "llm_adapter.blocks.0.cross_attn.q_proj.weight[1,1]",
      "diffusion_model anima@60 -" },
    { LUMINA("2304"), "diffusion_model lumina-2 -", LUMINA("3840"), "diffusion_model z-image -" },
    { LUMINA("2304") "clip_text_pooled_proj.0.weight[1]", "diffusion_model newbie -",
      LUMINA("1024"), "unknown - -" },
    { "model.double_layers.0.attn.w1q.weight[3072,3072] model.cond_seq_linear.weight[3072,2048]",
      "diffusion_model auraflow -", "model.double_layers.0.attn.w1q.weight[3072,3072]",
      "unknown - -" },
    { "t5_yproj.weight[1536,4096]", "diffusion_model mochi -", "t5_zproj.weight[1536,4096]",
      "unknown - -" },
    { "blocks.0.norm1.linear.weight[11520,512] patch_embed.text_proj.weight[1920,4096]",
      "diffusion_model cogvideox@60 2b@60",
      "blocks.0.norm1.linear.weight[18432,512] patch_embed.text_proj.weight[3072,4096]",
      "diffusion_model cogvideox@60 5b@60" },
    { "caption_projection.0.linear.weight[2560,4096] "
      "double_stream_blocks.0.block.ff_i.shared_experts.w1.weight[1]",
      "diffusion_model hidream-i1 -", "t_embedder1.mlp.0.weight[1] x_embedder.proj1.weight[1]",
      "diffusion_model hidream-o1 -" },
    { "time_caption_embed.timestep_embedder.linear_1.bias[1024] x_embedder.weight[2520,64] "
      "ref_image_patch_embedder.weight[2520,64]",
      "diffusion_model omnigen-2 -",
      "time_caption_embed.timestep_embedder.linear_1.bias[1024] x_embedder.weight[2304,64]",
      "diffusion_model lumina-2 -" },
    { "visual_transformer_blocks.0.cross_attention.key_norm.weight[64]",
      "diffusion_model kandinsky-5 -", "embed_image_indicator.weight[1]",
      "diffusion_model ideogram-4 -" },
    { "txtfusion.projector.weight[1]", "diffusion_model krea-2 -",
      "layers.0.adaLN_sa_ln.weight[1]", "diffusion_model ernie-image -" },
    { "video_patch_proj.weight[1] audio_patch_proj.weight[1]", "diffusion_model minimax-h3 -",
      "video_patch_proj.weight[1]", "unknown - -" },
    { "model.model.transformer.rotary_pos_emb.inv_freq[32]", "diffusion_model stable-audio -",
      "genre_embedder.weight[1]", "diffusion_model ace-step -" },
    /* autoencoders */
    { "decoder.conv_in.weight[512,4,3,3] decoder.up.3.x[1] decoder.conv_out.weight[3,128,3,3]",
      "vae vae-sd -",
      "decoder.conv_in.weight[512,16,3,3] decoder.up.3.x[1] decoder.conv_out.weight[3,128,3,3]",
      "vae vae-flux@60 -" },
    { "decoder.conv_in.weight[512,32,3,3] bn.running_mean[128] decoder.mid.block_1.norm1.weight[1]",
      "vae vae-flux.2 -",
      "decoder.conv_in.weight[512,32,3,3] decoder.mid.block_1.norm1.weight[1]", "vae - -" },
    { "first_stage_model.decoder.middle.0.residual.0.gamma[384]", "vae vae-wan@60 -",
      "decoder.middle.0.residual.0.beta[384]", "unknown - -" },
    { "decoder.conv_in.conv.weight[1,1] decoder.up_blocks.0.res_blocks.0.conv1.conv.weight[1,1]",
      "vae vae-ltx -", "decoder.conv_in.conv.weight[512,16,3,3,3] decoder.mid.x[1]",
      "vae vae-hunyuan-video -" },
    { "decoder.layers.0.weight[64,4,3,3] encoder.layers.0.weight[64,3,3,3]", "vae taesd -",
      "decoder.layers.0.weight[64,4,3,3]", "unknown - -" },
    { "transformer_blocks.0.norm1.linear.weight[11520,512] patch_embed.text_proj.weight[1,1]",
      "diffusion_model cogvideox@60 2b@60",
      "transformer_blocks.0.norm1.linear.weight[11520,512] patch_embed.text_proj.weight[1,1] "
      "time_condition_embed.x[1]", "unknown - -" },
    { "taesd_decoder.1.weight[64,4,3,3]", "vae taesd -", "decoder.1.weight[64,4,3,3]",
      "unknown - -" },
    { "decoder.middle.0.residual.0.gamma[384] encoder.conv1.weight[96,4,3,3,3]",
      "vae vae-qwen-image -", "decoder.middle.0.residual.0.gamma[384] "
      "decoder.upsamples.0.upsamples.0.residual.2.weight[1] decoder.head.2.weight[4,96,1,3,3]",
      "vae vae-qwen-image-2.1 -" },
    { "decoder.up_blocks.2.upsamplers.0.upscale_conv.weight[1]", "vae vae-seedvr2 -",
      "vid_in.proj.weight[1] emb_in.proj_hid.weight[1] blocks.0.ada.vid.attn_shift[1]",
      "diffusion_model seedvr2 -" },
    { "decoder.conv_in_x_t.weight[1]", "vae vae-ltx-2.4 -",
      "decoder.transformer_blocks.0.scale1[1] encoder.down.5.block.0.conv1.weight[1]",
      "vae vae-minimax-h3 -" },
    { "decoder.22.bias[3] decoder.1.weight[256,16,3,3]", "vae taehv -",
      "decoder.22.bias[3] decoder.1.weight[256,16]", "unknown - -" },
    { "decoder.layers.1.layers.0.beta[1] decoder.layers.2.layers.1.weight_v[1,1,16]",
      "vae vae-stable-audio@60 -",
      "decoder.layers.1.layers.0.beta[1] decoder.layers.2.layers.1.weight_v[1,1,12]",
      "vae vae-ace-step-1.5 -" },
    { "decoder.layers.1.layers.0.beta[1] decoder.layers.6.layers.1.weight_v[1,1,4]",
      "vae vae-yue-2 -", "vocoder.backbone.channel_layers.0.0.bias[1]", "vae vae-ace-step -" },
    { "decoder.layers.3.transformers.0.pre_norm.alpha[1]", "vae vae-same -",
      "dec_in_proj.weight[1] decoder.model.0.weight_g[1]", "vae vae-minimax-music-3 -" },
    { "shape_dec.blocks.1.16.to_subdiv.weight[1]", "vae vae-trellis-2 -",
      "img2shape.t_embedder.mlp.0.weight[1]", "diffusion_model trellis-2 -" },
    { "cam_out_layer.weight[1] repo_layers.0.final_map.weight[1]",
      "diffusion_model triposplat -",
      "gs.base_offset_scale[1] octree.out_proj.weight[1]", "vae vae-triposplat -" },
    { "lq_proj.latent_proj.0.weight[1] core.pixel_embedder.proj.weight[1]",
      "diffusion_model pid -", "core.pixel_embedder.proj.weight[1] "
      "core.patch_blocks.0.attn.qkv_y.weight[1]", "diffusion_model pixeldit -" },
    { "control_blocks.0.after_proj.weight[1] control_img_in.weight[1]",
      "controlnet qwen-image -",
      "control_model.input_hint_block.0.weight[1] "
      "model.diffusion_model.project_modules.0.norm.weight[1]", "controlnet supir -" },
    { "mixins.adaln_layer.adaLN_modulations.0.1.weight[1] mixins.patch_embed.text_proj.weight[1]",
      "diffusion_model cogvideox -",
      "vae2llm.weight[1] llm2vae.weight[1] latent_pos_embed.pe[1]", "diffusion_model yue-2 -" },
    { "dec_net.cond_embed.weight[1] layers.0.x[1]", "diffusion_model zeta-chroma -",
      "controlnet_cond_embedding.conv_in.weight[1] add_embedding.linear_1.weight[1280,2816]",
      "controlnet sdxl -" },
    { "head.modulation[1,2,5120] patch_embedding_pose.weight[1]", "diffusion_model scail -",
      "head.modulation[1,2,5120] patch_embedding_mask.weight[1] patch_embedding_pose.weight[1]",
      "diffusion_model scail-2 -" },
    /* encoders */
    { CLIP("11", "768", "3072"), "text_encoder clip-l -", CLIP("31", "1280", "5120"),
      "text_encoder clip-g -" },
    { CLIP("22", "1024", "4096"), "text_encoder clip-h -", CLIP("5", "512", "2048"),
      "text_encoder - -" },
    { "encoder.block.{0-23}.layer.0.SelfAttention.k.weight[4096,4096] "
      "encoder.block.{0-23}.layer.1.DenseReluDense.wi_1.weight[10240,4096] "
      "shared.weight[32128,4096]",
      "text_encoder t5-xxl -",
      "encoder.block.{0-23}.layer.0.SelfAttention.k.weight[2048,2048] "
      "encoder.block.{0-23}.layer.1.DenseReluDense.wi_1.weight[5120,2048]",
      "text_encoder t5 -" },
    { "encoder.block.0.layer.0.SelfAttention.k.weight[4096,4096] shared.weight[256384,4096]",
      "text_encoder umt5 -",
      "encoder.block.0.layer.0.SelfAttention.k.weight[512,512] shared.weight[32128,512] "
      "decoder.block.0.layer.0.SelfAttention.k.weight[512,512]",
      "language_model t5-seq2seq -" },
    { VISION("23", "1024", "4096"),
      "image_encoder clip-l -",
      VISION("31", "1280", "5120"),
      "image_encoder clip-h -" },
    { "text_model.encoder.layers.0.mlp.fc1.weight[4304,1152] vision_model.head.probe[1,1,1152]",
      "image_encoder siglip -",
      VISION("47", "1664", "8192"),
      "image_encoder clip-g -" },
    /* SigLIP is as deep as CLIP-H, and has no class */
    { "vision_model.encoder.layers.{0-39}.x[1] vision_model.embeddings.patch_embedding.weight[1]",
      "image_encoder - -",
      "vision_model.encoder.layers.{0-23}.x[1] vision_model.embeddings.class_embedding[1024] "
      "language_model.x[1]", "unknown - -" },
    { "dinov2.encoder.layer.0.layer_scale1.lambda1[1024]", "image_encoder dinov2@60 -",
      "vit.embeddings.patch_embeddings.projection.weight[768,3,16,16] vit.encoder.layer.0.x[1] "
      "vit.embeddings.cls_token[1,1,768]", "vision_model vit@60 -" },
    /* controls */
    { CONTROL("0", "768"), "controlnet sd-1 -", CONTROL("1", "2048"), "controlnet sdxl -" },
    { "control_model.input_hint_block.0.weight[16,3,3,3] control_model.zero_convs.0.0.weight[1] "
      "control_model.input_blocks.1.1" K "[320,768]", "controlnet sd-1 -",
      "control_model.input_blocks.1.1" K "[320,768]", "unknown - -" },
    { "controlnet_blocks.0.weight[3072,3072] double_blocks.0.x[1]", "controlnet flux.1 -",
      "controlnet_blocks.0.weight[1] transformer_blocks.0.img_mlp.net.0.proj.weight[1]",
      "controlnet qwen-image -" },
    { "controlnet_blocks.0.weight[1] pos_embed_input.proj.weight[1]", "controlnet sd-3 -",
      "controlnet_blocks.0.weight[1] transformer_blocks.0.adaLN_modulation.1.bias[1]",
      "controlnet sd-3.5-large -" },
    { "lllite_unet_input_blocks_4_1_transformer_blocks_1_attn1_to_q.down.0.weight[32,640]",
      "controlnet sdxl -", "lllite_dit_blocks_0_x.down.0.weight[32,640]", "controlnet - -" },
    { "image_proj.proj.weight[3072,1024] ip_adapter.1.to_k_ip.weight[320,768]",
      "ip_adapter sd-1 -",
      "image_proj.proj.weight[8192,1280] ip_adapter.1.to_k_ip.weight[640,2048]",
      "ip_adapter sdxl -" },
    { "image_proj.layers.0.0.to_out.weight[2048,2048] ip_adapter.1.to_k_ip.weight[640,2048]",
      "ip_adapter kolors -",
      "image_proj.layers.0.0.to_out.weight[1280,1280] ip_adapter.1.to_k_ip.weight[640,2048]",
      "ip_adapter sdxl -" },
    { "ip_adapter_proj_model.norm.weight[4096]", "ip_adapter flux.1 -",
      "image_proj.proj.weight[3072,1024]", "unknown - -" },
    { "adapter.body.0.resnets.0.block1.weight[1] adapter.conv_in.weight[320,192,3,3]",
      "t2i_adapter sd-1@60 -",
      "adapter.body.0.resnets.0.block1.weight[1] adapter.conv_in.weight[320,768,3,3]",
      "t2i_adapter sdxl@60 -" },
    { "down_blocks.0.motion_modules.0.temporal_transformer.norm.bias[320] up_blocks.3.x[1]",
      "motion_module sd-1 -",
      "down_blocks.0.motion_modules.0.temporal_transformer.norm.bias[320] "
      "up_blocks.2.motion_modules.0.x[1]", "motion_module sdxl -" },
    /* upscalers, detectors */
    { "model.0.weight[64,3,3,3] model.1.sub.0.RDB1.conv1.0.weight[32,64,3,3]",
      "upscaler esrgan -", "model.0.weight[64,3,3,3] model.1.sub.0.RDB2.conv1.0.weight[1]",
      "unknown - -" },
    { "conv_first.weight[180,3,3,3] layers.0.residual_group.blocks.0.norm1.weight[180] "
      "layers.0.residual_group.blocks.0.attn.relative_position_bias_table[225,6]",
      "upscaler swinir -",
      "conv_first.weight[180,3,3,3] layers.0.residual_group.blocks.0.norm1.weight[180] "
      "layers.0.residual_group.blocks.0.conv_block.cab.0.weight[60,180,3,3]", "upscaler hat -" },
    { "body.0.weight[64,3,3,3] body.1.weight[64] body.2.weight[64,64,3,3]", "upscaler srvgg -",
      "body.0.weight[64,16,3,3] body.1.weight[64] body.2.weight[64,64,3,3]", "unknown - -" },
    { "block_1.c1_r.eval_conv.weight[48,3,3,3]", "upscaler span -",
      "detector.backbone.vision_backbone.trunk.blocks.0.attn.qkv.weight[1]", "detector sam-3 -" },
    { "model.encoder.conv1.weight[512,80,3] model.encoder.layers.0.x[1] "
      "model.decoder.embed_tokens.weight[51865,512]", "audio_model whisper -",
      "model.encoder.layers.0.self_attn.k_proj.weight[768,768] "
      "model.decoder.layers.0.encoder_attn.k_proj.weight[768,768]", "language_model@70 bart@60 -" },
    { "stft_conv.weight:F32[258,1,256] lstm_cell.weight_ih:F32[512,128] "
      "final_conv.weight:F32[1,128,1]", "audio_model silero-vad -",
      "stft_conv.weight:F32[514,1,512] lstm_cell.weight_ih:F32[512,128] "
      "final_conv.weight:F32[1,128,1]", "unknown - -" },
    { "mel_80:F32[80,201]", "unknown - -", "tokens:I64[1,982,33] mask:U8[1,982,33]",
      "unknown - -" },
    /* language models */
    { LLAMA("3") "lm_head.weight[128256,4096]", "language_model llama@60 -",
      LLAMA("3") "lm_head.weight[128256,4096] model.layers.0.self_attn.q_norm.weight[128]",
      "language_model qwen3@60 -" },
    { LLAMA("1") "model.layers.0.self_attn.q_proj.bias[4096] "
      "model.layers.0.self_attn.k_proj.bias[1024] lm_head.weight[1,1]", "language_model qwen2@60 -",
      LLAMA("1") "model.layers.0.self_attn.q_proj.bias[4096] "
      "model.layers.0.self_attn.k_proj.bias[1024] model.layers.0.self_attn.o_proj.bias[1] "
      "lm_head.weight[1,1]", "language_model llama@60 -" },
    { LLAMA("1") "model.layers.0.pre_feedforward_layernorm.weight[1]",
      "language_model@70 gemma-2@60 -",
      LLAMA("1") "model.layers.0.pre_feedforward_layernorm.weight[1] "
      "model.layers.0.self_attn.q_norm.weight[256]", "language_model@70 gemma-3@60 -" },
    { "model.layers.0.block_sparse_moe.gate.weight[8,4096]", "language_model@70 mixtral@60 -",
      "model.layers.0.self_attn.q_norm.weight[128] model.layers.0.mlp.gate.weight[128,2048]",
      "language_model@70 qwen3-moe@60 -" },
    { "model.layers.0.self_attn.kv_a_proj_with_mqa.weight[576,7168] "
      "model.layers.3.mlp.gate.e_score_correction_bias[256]", "language_model@70 deepseek-v3@60 -",
      "model.layers.0.self_attn.kv_a_proj_with_mqa.weight[576,5120]",
      "language_model@70 deepseek-v2@60 -" },
    { "model.layers.0.self_attn.qkv_proj.weight[9216,3072] "
      "model.layers.0.mlp.gate_up_proj.weight[16384,3072]", "language_model@70 phi-3 -",
      "model.layers.0.self_attn.dense.weight[2560,2560] model.layers.0.mlp.fc1.weight[10240,2560]",
      "language_model@70 phi -" },
    { "transformer.h.0.attn.c_attn.weight[768,2304] transformer.h.0.mlp.c_fc.weight[768,3072]",
      "language_model@70 gpt-2@60 -", "h.0.self_attention.query_key_value.weight[4672,4544]",
      "language_model@70 falcon -" },
    { "gpt_neox.layers.0.attention.query_key_value.weight[1536,512] embed_out.weight[50304,512] "
      "gpt_neox.layers.0.mlp.dense_h_to_4h.weight[2048,512]", "language_model gpt-neox@60 -",
      "transformer.h.0.self_attention.query_key_value.weight[1,1] "
      "transformer.word_embeddings_layernorm.weight[1]", "language_model@70 bloom -" },
    { "bert.embeddings.word_embeddings.weight[30522,768] "
      "bert.encoder.layer.0.attention.self.query.weight[768,768]", "language_model@70 bert@60 -",
      "roberta.embeddings.word_embeddings.weight[50265,768] "
      "roberta.encoder.layer.0.attention.self.query.weight[768,768]",
      "language_model@70 roberta@60 -" },
    { "backbone.layers.0.mixer.A_log[1536] backbone.layers.0.mixer.in_proj.weight[3072,768]",
      "language_model@70 mamba@60 -", "backbone.layers.0.mixer.A_log[1536]", "unknown - -" },
    /* embeddings */
    { "emb_params:F32[5,768]", "embedding sd-1 -", "emb_params:F32[5,1024]", "embedding sd-2 -" },
    { "clip_l[2,768] clip_g[2,1280]", "embedding sdxl@60 -", "clip_l[2,768] clip_g[2,768]",
      "unknown - -" },
    { "<cat-toy>:F32[768]", "embedding sd-1@60 -", "cat-toy:F32[768]", "unknown - -" },
    { "<cat-toy>:F32[1,1280]", "embedding sdxl@60 -", "<cat-toy>[2,1024]", "embedding sd-2 -" },
    { "emb_params:F32[5,1280]", "embedding sdxl@60 -", "<cat>[768] emb_params[768]",
      "embedding - -" },
    { "clip_l[2,768] clip_g[2,1280] t5xxl[2,4096]", "embedding sd-3@60 -",
      "clip_l[2,768] t5xxl[2,4096]", "embedding flux.1@60 -" },
    { "clip_l[2,768] clip_g[2,1280] t5[2,4096] llama[2,4096]", "embedding hidream-i1 -",
      "clip_l[2,768] llama[2,4096]", "embedding hunyuan-video@60 -" },
    { "clip_l[2,768] t5[2,4096] clip_l_out[2,768] t5_out[3,4096]", "embedding flux.1@60 -",
      "emp_params[2,768] emp_params_out[1,768]", "embedding sd-1 -" },
    { "gemma[2,2304]", "embedding sana@60 -", "gemma[2,4096]", "unknown - -" },
    { "clip_g_out[2,1280]", "embedding - -", "_out[2,1280]", "unknown - -" },
    { "emb_params:I64[5,768]", "unknown - -", "emb_params[5,3,768]", "unknown - -" },
};

static void expect_facts(const char *tensors, const char *expected) {
    char got[256];
    composed *made = compose(tensors);
    if (strcmp(compose_facts(&made->info, got, sizeof got), expected) != 0)
        fail_msg("%s: expected %s, found %s", tensors, expected, got);
    compose_end(made);
}

static void rows_and_near_misses(void **state) {
    (void)state;
    assert_true(sizeof tensor_cases / sizeof *tensor_cases >= 80);
    for (size_t i = 0; i < sizeof tensor_cases / sizeof *tensor_cases; i++) {
        expect_facts(tensor_cases[i].tensors, tensor_cases[i].expected);
        expect_facts(tensor_cases[i].near, tensor_cases[i].instead);
        if (strcmp(tensor_cases[i].expected, "unknown - -") != 0)
            assert_string_not_equal(tensor_cases[i].expected, tensor_cases[i].instead);
    }
}

/* Whatever is found first: a file of two models is neither of them. */
static void two_denoisers(void **state) {
    static const struct { const char *tensors, *facts, *rivals[2]; } cases[] = {
        { REFINER(LDM) SDXL_LDM("4"), "diffusion_model - -", { "sdxl-refiner", "sdxl" } },
        { REFINER(LDM) REFINER(""), "diffusion_model sdxl-refiner -", { NULL, NULL } },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        expect_facts(cases[i].tensors, cases[i].facts);
        composed *made = compose(cases[i].tensors);
        const sfti_conflict *conflict = made->info.conflicts.first;
        assert_int_equal(conflict != NULL, cases[i].rivals[0] != NULL);
        const sfti_fact *fact = conflict ? conflict->facts : NULL;
        for (size_t k = 0; fact; k++, fact = fact->next)
            assert_true(sfti_is(fact->value.text, cases[i].rivals[k]));
        compose_end(made);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(rows_and_near_misses),
                                        cmocka_unit_test(two_denoisers) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
