/* Adapters: formats, types, ranks, alphas, and what model each is for; near misses beside. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/compose.h"

/* A pair in kohya's, PEFT's and diffusers' naming. */
#define KO(m, r, in, out) m ".lora_down.weight[" r "," in "] " m ".lora_up.weight[" out "," r "] "
#define PE(m, r, in, out) m ".lora_A.weight[" r "," in "] " m ".lora_B.weight[" out "," r "] "
#define DI(m, r, in, out) \
    m "_lora.down.weight[" r "," in "] " m "_lora.up.weight[" out "," r "] "
#define UNET "lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_"
#define XL "lora_unet_input_blocks_4_1_transformer_blocks_0_"
#define DM "diffusion_model."
#define TF "transformer."
#define LLM "base_model.model.model.layers."

typedef struct adapter_case {
    const char *tensors, *expected; /* kind architecture variant, type format rank modules */
    const char *near, *instead;
} adapter_case;

static const adapter_case adapter_cases[] = {
    /* U-Nets by the width of the text */
    { KO(UNET "attn2_to_k", "8", "768", "320"), "adapter sd-1 - lora kohya 8 1",
      KO(UNET "attn2_to_k", "8", "1024", "320"), "adapter sd-2@60 - lora kohya 8 1" },
    { KO(XL "attn2_to_k", "8", "2048", "640"), "adapter sdxl@60 - lora kohya 8 1",
      KO(XL "attn2_to_k", "8", "1280", "640"), "adapter - - lora kohya 8 1" },
    { KO(UNET "attn1_to_k", "8", "320", "320"), "adapter - - lora kohya 8 1",
      KO(XL "attn1_to_k", "8", "640", "640") KO(XL "ff_net_2", "8", "2560", "640")
      KO(XL "attn2_to_v", "8", "2048", "640"), "adapter sdxl@60 - lora kohya 8 3" },
    { KO("lora_unet_down_blocks_2_attentions_0_transformer_blocks_4_attn1_to_k", "8", "1280",
      "1280"),
      "adapter sdxl@60 - lora kohya 8 1", /* KOALA has as many */
      KO("lora_unet_down_blocks_2_attentions_0_transformer_blocks_9_attn1_to_k", "8", "1280",
      "1280"),
      "adapter sdxl - lora kohya 8 1" },
    { KO("lora_unet_down_blocks_2_attentions_0_transformer_blocks_2_attn1_to_k", "8", "1280",
      "1280"),
      "adapter sdxl@60 - lora kohya 8 1",
      KO("lora_unet_down_blocks_2_attentions_0_transformer_blocks_0_attn1_to_k", "8", "1280",
      "1280"),
      "adapter - - lora kohya 8 1" },
    { KO("lora_te_text_model_encoder_layers_0_self_attn_q_proj", "4", "768", "768"),
      "adapter sd-1 - lora kohya 4 1",
      KO("lora_te_text_model_encoder_layers_0_self_attn_q_proj", "4", "1024", "1024"),
      "adapter sd-2 - lora kohya 4 1" },
    { KO("lora_te1_text_model_encoder_layers_0_self_attn_q_proj", "4", "768", "768")
      KO("lora_te2_text_model_encoder_layers_0_self_attn_q_proj", "4", "1280", "1280"),
      "adapter sdxl@60 - lora kohya 4 2",
      KO("lora_te1_text_model_encoder_layers_0_self_attn_q_proj", "4", "768", "768"),
      "adapter - - lora kohya 4 1" },
    /* diffusers, old and new */
    { DI("unet.down_blocks.0.attentions.0.transformer_blocks.0.attn2.processor.to_k", "4",
      "768", "320"),
      "adapter sd-1 - lora diffusers 4 1",
      DI("unet.down_blocks.0.attentions.0.transformer_blocks.0.attn2.processor.to_q", "4",
      "320", "320"),
      "adapter - - lora diffusers 4 1" },
    { DI("down_blocks.0.attentions.0.transformer_blocks.0.attn2.processor.to_k", "4", "1024",
      "320"),
      "adapter sd-2@60 - lora diffusers 4 1",
      "down_blocks.0.attentions.0.transformer_blocks.0.attn2.processor.to_k_lora.down.weight"
      "[4,1024]",
      "unknown - - - - - 0" },
    { PE("unet.unet.down_blocks.1.attentions.0.transformer_blocks.0.attn2.to_v", "4", "2048",
      "640"),
      "adapter sdxl@60 - lora diffusers 4 1",
      PE("unit.down_blocks.1.attentions.0.transformer_blocks.0.attn2.to_v", "4", "2048", "640"),
      "adapter - - lora peft 4 1" },
    { "unet.down_blocks.1.attentions.0.transformer_blocks.0.attn2.to_k.lora.down.weight[4,2048] "
      "unet.down_blocks.1.attentions.0.transformer_blocks.0.attn2.to_k.lora.up.weight[640,4]",
      "adapter sdxl@60 - lora diffusers 4 1",
      "text_encoder.text_model.encoder.layers.0.self_attn.q_proj.lora_linear_layer.down.weight"
      "[4,768] "
      "text_encoder.text_model.encoder.layers.0.self_attn.q_proj.lora_linear_layer.up.weight"
      "[768,4]",
      "adapter - - lora diffusers 4 1" },
    /* the first scripts */
    { "unet:0:down[4,320] unet:0:up[320,4] text_encoder:0:down[4,768] text_encoder:0:up[768,4]",
      "adapter sd-1 - lora cloneofsimo 4 2",
      "unet:0:down[4,320] unet:0:up[320,4] text_encoder:0:down[4,1024] text_encoder:0:up[1024,4]",
      "adapter sd-2 - lora cloneofsimo 4 2" },
    { "unet:0:down[4,320] unet:0:up[320,4]", "adapter - - lora cloneofsimo 4 1",
      "unet:0:down[4,320]", "unknown - - - - - 0" },
    /* types */
    { UNET "attn2_to_k.hada_w1_a[320,4] " UNET "attn2_to_k.hada_w1_b[4,768] "
      UNET "attn2_to_k.hada_w2_a[320,4] " UNET "attn2_to_k.hada_w2_b[4,768]",
      "adapter sd-1 - loha kohya 4 1",
      UNET "attn2_to_k.hada_w1_b[4,768]", "unknown - - - - - 0" },
    { UNET "attn2_to_k.lokr_w1[16,16] " UNET "attn2_to_k.lokr_w2_a[20,8] "
      UNET "attn2_to_k.lokr_w2_b[8,48]", "adapter sd-1 - lokr kohya 8 1",
      UNET "attn2_to_k.lokr_w1[16,16] " UNET "attn2_to_k.lokr_w2_a[20,8] "
      UNET "attn2_to_k.lokr_w2_b[8,64]", "adapter sd-2@60 - lokr kohya 8 1" },
    { XL "attn2_to_k.lokr_w1[16,16] " XL "attn2_to_k.lokr_w2[40,128]",
      "adapter sdxl@60 - lokr kohya - 1",
      XL "attn2_to_k.lokr_w1[16,16]", "unknown - - - - - 0" },
    { "lora_unet_mid_block_x.a1.weight[8,320] lora_unet_mid_block_x.a2.weight[320,8] "
      "lora_unet_mid_block_x.b1.weight[8,320] lora_unet_mid_block_x.b2.weight[320,8]",
      "adapter - - glora kohya 8 1",
      "lora_unet_mid_block_x.a1.weight[8,320] lora_unet_mid_block_x.a2.weight[320,8]",
      "unknown - - - - - 0" },
    { UNET "attn1_to_q.oft_blocks[8,40,40] " UNET "attn1_to_q.alpha[]",
      "adapter - - oft kohya - 1", UNET "attn1_to_q.oft_blocks[3,8,40,40]",
      "adapter - - boft kohya - 1" },
    { UNET "attn1_to_q.weight[320] " UNET "attn1_to_q.on_input[]", "adapter - - ia3 kohya - 1",
      UNET "attn1_to_q.weight[320]", "unknown - - - - - 0" },
    { LLM "0.self_attn.k_proj.ia3_l[1024,1]", "adapter llama@60 - ia3 peft - 1",
      LLM "0.self_attn.k_proj.ia3[1024,1]", "unknown - - - - - 0" },
    { UNET "attn2_to_k.diff[320,768]", "adapter sd-1 - full kohya - 1",
      UNET "attn2_to_k.diff[320,768] " KO(UNET "attn2_to_v", "4", "768", "320"),
      "adapter sd-1 - lora kohya 4 2" },
    { "lora_unet_mid_block_x.lora_down.weight[4,8,3,3] "
      "lora_unet_mid_block_x.lora_up.weight[8,4,1,1]",
      "adapter - - locon kohya 4 1",
      "lora_unet_mid_block_x.lora_down.weight[4,8,1,1] "
      "lora_unet_mid_block_x.lora_up.weight[8,4,1,1]",
      "adapter - - lora kohya 4 1" },
    { "lora_unet_mid_block_x.lora_down.weight[4,8,1,1] "
      "lora_unet_mid_block_x.lora_up.weight[8,4,1,1] "
      "lora_unet_mid_block_x.lora_mid.weight[4,4,3,3]", "adapter - - locon kohya 4 1",
      KO(UNET "attn2_to_k", "4", "768", "320")
      UNET "attn2_to_v.hada_w1_a[320,4] " UNET "attn2_to_v.hada_w1_b[4,768] "
      UNET "attn2_to_v.hada_w2_a[320,4] " UNET "attn2_to_v.hada_w2_b[4,768]",
      "adapter sd-1 - mixed kohya 4 2" },
    /* other PEFT types */
    { "base_model.unilora_theta_d:F32[23040]", "adapter - - unilora peft - -",
      "base_model.theta_d:F32[23040]", "unknown - - - - - 0" },
    { LLM "0.self_attn.q_proj.vera_lambda_b[4096] " LLM "0.self_attn.q_proj.vera_lambda_d[256] "
      "base_model.vera_A[256,4096] base_model.vera_B[4096,256]",
      "adapter llama@60 - vera peft 256 1", "base_model.x.boft_R[1,4,8,8] base_model.x.boft_s[8,1]",
      "adapter - - boft peft - 1" },
    { "prompt_embeddings[20,4096]", "adapter - - - - - 0", "prompt_embeddinks[20,4096]",
      "unknown - - - - - 0" },
    { LLM "0.self_attn.q_proj.hra_u[4096,8]", "adapter llama@60 - hra peft 8 1",
      LLM "0.self_attn.q_proj.oft_R.weight[128,496]", "adapter llama@60 - oft peft - 1" },
    /* FLUX.1, HunyuanVideo */
    { KO("lora_unet_double_blocks_{0-18}_img_attn_qkv", "16", "3072", "9216")
      KO("lora_unet_double_blocks_{0-18}_img_mlp_0", "16", "3072", "12288"),
      "adapter flux.1@60 - lora kohya 16 38",
      KO("lora_unet_double_blocks_{0-19}_img_attn_qkv", "16", "3072", "9216"),
      "adapter hunyuan-video@60 - lora kohya 16 20" },
    { KO("lora_unet_double_blocks_0_img_attn_qkv", "16", "3072", "9216"),
      "adapter - - lora kohya 16 1",
      KO("lora_unet_double_blocks_0_img_mlp_fc1", "16", "3072", "12288"),
      "adapter hunyuan-video@60 - lora kohya 16 1" },
    { PE(DM "double_blocks.0.img_attn.qkv", "16", "3072", "9216"),
      "adapter - - lora bfl 16 1",
      PE(DM "double_blocks.0.img_attn.qkv", "16", "3072", "9216")
      PE(DM "vector_in.in_layer", "16", "768", "3072") PE(DM "single_blocks.39.linear2", "16",
      "15360", "3072"), "adapter hunyuan-video@60 - lora bfl 16 3" },
    { PE(DM "single_blocks.{0-37}.linear1", "16", "3072", "21504")
      PE(DM "double_blocks.{0-18}.img_attn.proj", "16", "3072", "3072"),
      "adapter flux.1@60 - lora bfl 16 57",
      PE(DM "single_blocks.{0-39}.linear1", "16", "3072", "21504"),
      "adapter hunyuan-video@60 - lora bfl 16 40" },
    { PE(TF "single_transformer_blocks.{0-37}.attn.to_q", "16", "3072", "3072"),
      "adapter flux.1@60 - lora diffusers 16 38",
      PE(TF "single_transformer_blocks.{0-39}.attn.to_q", "16", "3072", "3072"),
      "adapter hunyuan-video@60 - lora diffusers 16 40" },
    { PE(TF "single_transformer_blocks.0.attn.to_q", "16", "3072", "3072"),
      "adapter - - lora diffusers 16 1",
      PE(TF "single_transformer_blocks.0.attn.to_q", "16", "3072", "3072")
      PE(TF "x_embedder", "16", "384", "3072"), "adapter flux.1 fill lora diffusers 16 2" },
    { PE(DM "txt_in.individual_token_refiner.blocks.0.self_attn.qkv", "8", "3072", "9216"),
      "adapter hunyuan-video@60 - lora bfl 8 1",
      PE(DM "distilled_guidance_layer.layers.0.in_layer", "8", "5120", "5120"),
      "adapter chroma@60 - lora bfl 8 1" },
    { PE(DM "guidance_in.in_layer", "8", "256", "3072")
      PE(DM "double_blocks.0.img_attn.proj", "8", "3072", "3072"),
      "adapter - - lora bfl 8 2",
      PE(DM "double_blocks.0.img_attn.proj", "8", "3072", "3072"),
      "adapter - - lora bfl 8 1" },
    { KO("lora_transformer_single_transformer_blocks_0_attn_to_q", "8", "3072", "3072"),
      "adapter - - lora onetrainer 8 1",
      KO("lora_transformed_single_blocks_0_x", "8", "3072", "3072"), "adapter - - lora - 8 1" },
    { "double_blocks.0.processor.qkv_lora1.down.weight[16,3072] "
      "double_blocks.0.processor.qkv_lora1.up.weight[9216,16] "
      "double_blocks.0.processor.qkv_lora2.down.weight[16,3072] "
      "double_blocks.0.processor.qkv_lora2.up.weight[9216,16]",
      "adapter flux.1 - lora xlabs 16 2",
      PE("double_blocks.0.img_attn.qkv", "16", "3072", "9216"),
      "adapter - - lora bfl 16 1" },
    { PE("img_in", "128", "128", "3072") "img_in.lora_B.bias[3072] "
      PE("double_blocks.{0-18}.img_mlp.0", "128", "3072", "12288")
      "double_blocks.0.img_attn.norm.key_norm.scale[128]",
      "control_lora flux.1-dev control lora bfl 128 20",
      PE("img_in", "128", "64", "3072")
      PE("double_blocks.{0-18}.img_mlp.0", "128", "3072", "12288"),
      "adapter flux.1@60 - lora bfl 128 20" },
    /* FLUX.2 */
    { PE(DM "double_blocks.0.img_attn.proj", "8", "6144", "6144"),
      "adapter flux.2-dev - lora bfl 8 1", PE(DM "double_blocks.0.img_mlp.0", "8", "4096",
      "24576"),
      "adapter flux.2-klein-9b - lora bfl 8 1" },
    { PE(DM "double_blocks.0.img_mlp.0", "8", "3072", "18432"),
      "adapter flux.2-klein-4b - lora bfl 8 1", PE(DM "double_blocks.0.img_mlp.0", "8", "3072",
      "12288"),
      "adapter - - lora bfl 8 1" },
    { PE(TF "single_transformer_blocks.0.attn.to_qkv_mlp_proj", "8", "6144", "55296"),
      "adapter flux.2-dev - lora diffusers 8 1",
      PE(TF "single_transformer_blocks.0.attn.to_qkv_mlp_proj", "8", "5120", "46080"),
      "adapter - - lora diffusers 8 1" },
    /* SD 3, Qwen-Image */
    { KO("lora_unet_joint_blocks_{0-37}_x_block_attn_qkv", "8", "2432", "7296"),
      "adapter sd-3.5-large - lora kohya 8 38",
      KO("lora_unet_joint_blocks_{0-23}_x_block_attn_qkv", "8", "1536", "4608"),
      "adapter sd-3 - lora kohya 8 24" },
    { PE(TF "transformer_blocks.0.attn.add_k_proj", "8", "1536", "1536"),
      "adapter sd-3 - lora diffusers 8 1",
      PE(TF "transformer_blocks.0.attn.add_k_proj", "8", "1536", "1536")
      PE(TF "transformer_blocks.0.attn2.to_q", "8", "1536", "1536"),
      "adapter sd-3.5-medium - lora diffusers 8 2" },
    { PE(TF "transformer_blocks.0.img_mlp.net.0.proj", "8", "3072", "12288"),
      "adapter qwen-image@60 - lora diffusers 8 1",
      PE(TF "transformer_blocks.0.attn.add_k_proj", "8", "3072", "3072"),
      "adapter - - lora diffusers 8 1" },
    { PE(TF "transformer_blocks.{0-59}.attn.add_k_proj", "8", "3072", "3072"),
      "adapter qwen-image - lora diffusers 8 60",
      PE(TF "transformer_blocks.{0-23}.attn.add_k_proj", "8", "3072", "3072"),
      "adapter qwen-image@60 - lora diffusers 8 24" },
    /* nunchaku; with the rank at other sides, or at none, they are not known */
    { "transformer_blocks.{0-18}.qkv_proj_context.lora_down[3072,16] "
      "transformer_blocks.{0-18}.qkv_proj_context.lora_up[9216,16]",
      "adapter - - lora diffusers 16 19",
      "layers.{0-3}.q.lora_down[8,512] layers.{0-3}.q.lora_up[768,8]", "unknown - - - - - 0" },
    { "transformer_blocks.0.attn.to_qkv.proj_down[3072,32] "
      "transformer_blocks.0.attn.to_qkv.proj_up[9216,32]", "adapter - - lora diffusers 32 1",
      "blocks.{0-3}.proj_down[512,512] blocks.{0-3}.proj_up[512,512]", "unknown - - - - - 0" },
    /* Wan, Cosmos */
    { PE(DM "blocks.0.cross_attn.k", "8", "5120", "5120"), "adapter wan 14b lora bfl 8 1",
      PE(DM "blocks.0.cross_attn.k", "8", "1536", "1536"), "adapter wan 1.3b lora bfl 8 1" },
    { KO("lora_unet_blocks_0_cross_attn_k", "8", "5120", "5120")
      KO("lora_unet_blocks_0_cross_attn_k_img", "8", "5120", "5120"),
      "adapter wan 14b lora kohya 8 2", /* and i2v, with a trust of 60 */
      KO("lora_unet_blocks_0_cross_attn_k", "8", "3072", "3072"),
      "adapter wan-2.2 5b lora kohya 8 1" },
    { PE(TF "blocks.0.attn2.to_k", "8", "5120", "5120"), "adapter wan 14b lora diffusers 8 1",
      PE(TF "blocks.0.attn2.to_k", "8", "999", "999"), "adapter - - lora diffusers 8 1" },
    { PE(DM "blocks.0.cross_attn.k_proj", "8", "1024", "2048")
      PE(DM "blocks.0.self_attn.q_proj", "8", "2048", "2048"),
      "adapter cosmos-predict2@60 2b@60 lora bfl 8 2",
      PE(DM "blocks.0.self_attn.q_proj", "8", "2048", "2048")
      PE(DM "llm_adapter.blocks.0.cross_attn.q_proj", "8", "1024", "1024"),
      "adapter anima - lora bfl 8 2" },
    /* Z-Image, Lumina, LTX, Sana, others */
    { PE(DM "layers.0.attention.qkv", "8", "3840", "11520"), "adapter z-image@60 - lora bfl 8 1",
      PE(DM "layers.0.attention.qkv", "8", "2304", "3840"), "adapter lumina-2@60 - lora bfl 8 1" },
    { PE(DM "transformer_blocks.0.attn1.to_k", "8", "2048", "2048")
      PE(DM "transformer_blocks.0.attn2.to_k", "8", "2048", "2048"),
      "adapter ltx-video 2b lora bfl 8 2",
      PE(DM "transformer_blocks.0.attn1.to_k", "8", "1152", "1152")
      PE(DM "transformer_blocks.0.attn2.to_k", "8", "1152", "1152"),
      "adapter pixart-alpha@60 - lora bfl 8 2" },
    { PE(TF "transformer_blocks.0.attn1.to_k", "8", "2240", "2240")
      PE(TF "transformer_blocks.0.attn2.to_k", "8", "2240", "2240"),
      "adapter sana@60 - lora diffusers 8 2",
      PE(TF "transformer_blocks.0.attn1.to_k", "8", "4096", "4096")
      PE(TF "transformer_blocks.0.attn2.to_k", "8", "4096", "4096"),
      "adapter ltx-video@60 13b@60 lora diffusers 8 2" },
    { PE(DM "transformer_blocks.0.audio_attn1.to_k", "8", "2048", "2048"),
      "adapter ltx-2 - lora bfl 8 1",
      PE(TF "transformer_blocks.0.attn1.to_k", "8", "3072", "3072"),
      "adapter - - lora diffusers 8 1" },
    { PE(TF "joint_transformer_blocks.0.attn.to_q", "8", "3072", "3072"),
      "adapter auraflow - lora diffusers 8 1",
      PE(TF "double_stream_blocks.0.block.attn1.to_q", "8", "2560", "2560"),
      "adapter hidream-i1 - lora diffusers 8 1" },
    { KO("lora_prior_unet_down_blocks_0_2_attention_attn_to_q", "8", "2048", "2048"),
      "adapter stable-cascade-c - lora onetrainer 8 1",
      KO("lora_unet_visual_transformer_blocks_0_self_attention_to_query", "8", "1792", "1792"),
      "adapter - - lora kohya 8 1" },
    { KO("lycoris_transformer_blocks_0_img_mlp_net_0_proj", "8", "3072", "12288"),
      "adapter qwen-image@60 - lora lycoris 8 1",
      KO("lycoris_down_blocks_0_attentions_0_transformer_blocks_0_attn2_to_k", "8", "768", "320"),
      "adapter sd-1 - lora lycoris 8 1" },
    { KO("lora_unet_txtfusion_projector", "32", "12", "1"), "adapter krea-2 - lora kohya 32 1",
      KO("lora_unet_nerf_blocks_0_param_generator", "32", "64", "64"),
      "adapter - - lora kohya 32 1" },
    /* around the blocks: many have such a layer, one of them of these sizes */
    /* language models */
    { PE(LLM "0.self_attn.q_proj", "16", "4096", "4096"), "adapter llama@60 - lora peft 16 1",
      PE("base_model.model.transformer.h.0.attn.c_attn", "16", "768", "2304"),
      "adapter gpt-2@60 - lora peft 16 1" },
    { PE(LLM "0.block_sparse_moe.experts.0.w1", "16", "4096", "14336"),
      "adapter mixtral@60 - lora peft 16 1",
      PE(LLM "0.self_attn.kv_b_proj", "16", "512", "32768"),
      "adapter deepseek-v3@60 - lora peft 16 1" },
    { PE("base_model.model.roberta.encoder.layer.0.attention.self.query", "8", "768", "768"),
      "adapter roberta@60 - lora peft 8 1",
      PE("base_model.model.bert.encoder.layer.0.attention.self.query", "8", "768", "768"),
      "adapter bert@60 - lora peft 8 1" },
    { "model.layers.0.self_attn.q_proj.lora_a:F32[4096,8] "
      "model.layers.0.self_attn.q_proj.lora_b:F32[8,4096]",
      "adapter llama@60 - lora mlx 8 1", "model.layers.0.self_attn.q_proj.lora_a:F32[4096,8]",
      "unknown - - - - - 0" },
    { "model.layers.0.self_attn.q_proj.lora_A.default.weight[8,4096] "
      "model.layers.0.self_attn.q_proj.lora_B.default.weight[4096,8]",
      "adapter llama@60 - lora peft 8 1",
      "model.layers.0.self_attn.q_proj.lora_A.default.weight[8,4096]", "unknown - - - - - 0" },
    { "blocks.0.attn.x.lora_A[8,3072] blocks.0.attn.x.lora_B[3072,8]", "adapter - - lora peft 8 1",
      "blocks.0.attn.x.lora_A[8] blocks.0.attn.x.lora_B[8]", "unknown - - - - - 0" },
    /* blocks of Anima are those of Cosmos, those of Chroma FLUX.1's */
    { KO("lora_unet_blocks_{0-27}_self_attn_q_proj", "16", "2048", "2048")
      KO("lora_unet_blocks_{0-27}_mlp_layer1", "16", "2048", "8192"),
      "adapter cosmos-predict2@60 2b@60 lora kohya 16 56",
      KO("lora_unet_blocks_{0-27}_self_attn_q_proj", "16", "2048", "2048")
      KO("lora_unet_llm_adapter_blocks_0_self_attn_q_proj", "16", "1024", "1024"),
      "adapter anima - lora kohya 16 29" },
    { PE(DM "double_blocks.{0-18}.img_attn.qkv", "16", "3072", "9216")
      PE(DM "single_blocks.{0-37}.linear1", "16", "3072", "21504"),
      "adapter flux.1@60 - lora bfl 16 57",
      PE(DM "double_blocks.{0-18}.img_attn.qkv", "16", "3072", "9216")
      PE(DM "double_blocks.{0-18}.img_mod.lin", "16", "3072", "18432")
      PE(DM "single_blocks.{0-37}.linear1", "16", "3072", "21504"),
      "adapter flux.1 - lora bfl 16 76" },
    { PE(TF "transformer_blocks.{0-47}.attn1.to_k", "16", "4096", "4096")
      PE(TF "transformer_blocks.{0-47}.attn2.to_k", "16", "4096", "4096"),
      "adapter ltx-video@60 13b@60 lora diffusers 16 96",
      PE(TF "transformer_blocks.{0-27}.attn1.to_k", "16", "2048", "2048")
      PE(TF "transformer_blocks.{0-27}.attn2.to_k", "16", "2048", "2048"),
      "adapter ltx-video 2b lora diffusers 16 56" },
    { PE(DM "layers.{0-25}.attention.qkv", "16", "2304", "3840"),
      "adapter lumina-2@60 - lora bfl 16 26",
      PE(DM "layers.{0-35}.attention.qkv", "16", "2304", "3840"),
      "adapter newbie - lora bfl 16 36" },
    /* blocks that others have more of are no proof; a module without known sizes lowers it */
    { PE(TF "transformer_blocks.{0-53}.attn.add_q_proj", "16", "2048", "2048"),
      "adapter hunyuan-video-1.5 - lora diffusers 16 54",
      PE(TF "transformer_blocks.{0-35}.attn.add_q_proj", "16", "2048", "2048"),
      "adapter hunyuan-video-1.5@60 - lora diffusers 16 36" },
    { KO("lora_unet_blocks_0_ffn_0", "16", "5120", "13824"), "adapter wan 14b lora kohya 16 1",
      KO("lora_unet_blocks_0_ffn_0", "16", "5120", "13824")
      KO("lora_unet_blocks_0_ffn_9", "16", "5120", "13824"),
      "adapter wan@60 14b@60 lora kohya 16 2" },
    /* what is more model than adapter */
    { KO(UNET "attn2_to_k", "8", "768", "320") "bundle_emb.cat.clip_l[4,768]",
      "adapter sd-1 - lora kohya 8 1",
      "a.x[1] a.y[1] a.z[1] a.u[1] a.v[1] " KO(UNET "attn2_to_k", "8", "768", "320"),
      "unknown - - - - - 0" },
    { "vocoder.act.0.alpha[1] vocoder.act.0.beta[1]", "unknown - - - - - 0",
      KO("vocoder.act", "4", "8", "8") "vocoder.act.0.alpha[1]", "adapter - - lora - 4 1" },
    /* control LoRA */
    { "lora_controlnet[0] input_blocks.4.1.transformer_blocks.0.attn2.to_k.down[256,2048] "
      "input_blocks.4.1.transformer_blocks.0.attn2.to_k.up[640,256] zero_convs.0.0.weight[1] "
      "input_hint_block.0.weight[1] a[1] b[1] c[1] d[1]",
      "control_lora sdxl - lora - 256 1",
      "input_blocks.4.1.transformer_blocks.0.attn2.to_k.down[256,2048] "
      "input_blocks.4.1.transformer_blocks.0.attn2.to_k.up[640,256] zero_convs.0.0.weight[1] "
      "input_hint_block.0.weight[1] a[1] b[1] c[1] d[1]", "controlnet - - - - - 0" },
};

static const char *adapter_facts(const sft_info *info, char *out, size_t size) {
    char facts[128], rank[32] = "-", modules[24] = "-";
    const sfti_adapter *a = &info->adapter;
    if (a->rank.known) snprintf(rank, sizeof rank, "%g", a->rank.mode);
    if (a->modules != UINT64_MAX)
        snprintf(modules, sizeof modules, "%llu", (unsigned long long)a->modules);
    snprintf(out, size, "%s %s %s %s %s", compose_facts(info, facts, sizeof facts),
             a->type ? a->type : "-", a->format ? a->format : "-", rank, modules);
    return out;
}

static void expect_adapter(const char *tensors, const char *expected) {
    char got[256];
    composed *made = compose(tensors);
    if (strcmp(adapter_facts(&made->info, got, sizeof got), expected) != 0)
        fail_msg("%s: expected %s, found %s", tensors, expected, got);
    bool adapter = strncmp(got, "adapter", 7) == 0 || strncmp(got, "control_lora", 12) == 0;
    assert_int_equal(made->info.adapter.present, adapter);
    compose_end(made);
}

/* What names a method of PEFT: on a layer of a language model, unless it begins with "base". */
static const struct { const char *tensors, *type_and_rank; } method_cases[] = {
    { "vera_lambda_d[256]", "vera 256" }, { "pvera_lambda_d[512]", "pvera -" },
    { "fourierft_spectrum[1000]", "fourierft -" }, { "waveft_spectrum[1024]", "waveft -" },
    { "vblora_logits_A[4,48,256]", "vblora 4" },
    { "vblora_logits_A_topk_indices:U8[4,48,2]", "vblora 4" },
    { "base_model.unilora_theta_d[256]", "unilora -" }, { "hra_u[3072,8]", "hra 8" },
    { "bone_block[64,512]", "bone 64" }, { "miss_block[64,512]", "miss 64" },
    { "randlora_lambda[32,16]", "randlora 32" }, { "shira_weight[81920]", "shira -" },
    { "c3a_kernel[8,32,64]", "c3a -" }, { "road_theta[256]", "road -" },
    { "adaption_prompt[1,10,2048]", "adaption_prompt -" }, { "hira_A[32,2048]", "hira 32" },
    { "delora_A[8,2048]", "delora 8" }, { "deft_R[8,2048]", "deft 8" },
    { "gralora_A[2,1024,32]", "gralora 32" }, { "lily_A.weight[32,2048]", "lily 32" },
    { "peanut_A.weight[32,512]", "peanut 32" }, { "poly_lora_A[1,4,2048,8]", "poly 8" },
    { "psoft_R.weight[496]", "psoft -" }, { "tinylora_A[2,2048]", "tinylora 2" },
    { "adamss_newB[100,2048]", "adamss -" }, { "beft_bias[1,512]", "beft -" },
    { "frod_lambda_l[2048]", "frod -" }, { "osf_svd_params.S_low[256]", "osf 256" },
    { "ln_tuning_layers.weight[2048]", "ln_tuning -" },
    { "shadow_down.default.weight[8,2048]", "shadow 8" },
    { "supertuning_values[10485]", "supertuning -" },
    { "trainable_tokens_delta[3,2048]", "trainable_tokens -" },
    { "glora_A.Xu[8,2048]", "glora 8" }, { "glora_A.X[1]", "glora -" },
    { "glora_A.zeros[512]", "glora -" }, { "ia3_l[512,1]", "ia3 -" },
    { "hada_w1_a[512,8] " LLM "0.self_attn.k_proj.hada_w1_b[8,2048]", "loha 8" },
    { "lokr_w1[16,32] " LLM "0.self_attn.k_proj.lokr_w2[32,64]", "lokr -" },
    { "oft_R.weight[64,496]", "oft -" }, { "boft_R[1,512,4,4]", "boft -" },
    { "lora_A.weight[8,2048] " LLM "0.self_attn.k_proj.lora_B.weight[512,8]", "lora 8" },
    { "lora_A[12,2048] " LLM "0.self_attn.k_proj.lora_B[512,12] "
      LLM "0.self_attn.k_proj.lora_E[12,1]", "adalora 12" },
    { "base_model.internal_xlora_classifier.layers.0.weight[8,2048]", "xlora -" },
    /* tokens beside a LoRA leave it one */
    { "lora_A.weight[8,2048] " LLM "0.self_attn.k_proj.lora_B.weight[512,8] "
      "base_model.model.model.embed_tokens.token_adapter.trainable_tokens_delta[3,2048]",
      "lora 8" },
};

static void expect_method(const char *tensors, const char *expected) {
    char got[64];
    composed *made = compose(tensors);
    const sfti_adapter *a = &made->info.adapter;
    snprintf(got, sizeof got, "%s -", a->type ? a->type : "-");
    if (a->rank.known) snprintf(got, sizeof got, "%s %g", a->type, a->rank.mode);
    if (strcmp(got, expected) != 0) fail_msg("%s: expected %s, found %s", tensors, expected, got);
    compose_end(made);
}

static void methods_of_peft(void **state) {
    char tensors[512];
    (void)state;
    for (size_t i = 0; i < sizeof method_cases / sizeof *method_cases; i++) {
        const char *name = method_cases[i].tensors;
        bool whole = strncmp(name, "base", 4) == 0;
        snprintf(tensors, sizeof tensors, "%s%s", whole ? "" : LLM "0.self_attn.k_proj.", name);
        expect_method(tensors, method_cases[i].type_and_rank);
        if (whole || strchr(name, ' ')) continue;
        /* near: a name that goes on is another */
        snprintf(tensors, sizeof tensors, LLM "0.self_attn.k_proj.%.*sx%s",
                 (int)strcspn(name, ":["), name, strpbrk(name, ":["));
        expect_method(tensors, "- -");
    }
}

static void formats_types_and_targets(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof adapter_cases / sizeof *adapter_cases; i++) {
        expect_adapter(adapter_cases[i].tensors, adapter_cases[i].expected);
        expect_adapter(adapter_cases[i].near, adapter_cases[i].instead);
        assert_string_not_equal(adapter_cases[i].expected, adapter_cases[i].instead);
    }
}

/* ── Ranks ── */

static void ranks_are_told_by_module(void **state) {
    (void)state;
    composed *made = compose(KO("lora_unet_a", "4", "9", "9") KO("lora_unet_b", "8", "9", "9")
                             KO("lora_unet_c", "8", "9", "9") KO("lora_unet_d", "32", "9", "9"));
    sfti_bounds rank = made->info.adapter.rank;
    assert_true(rank.known && rank.min == 4 && rank.max == 32 && rank.mode == 8);
    assert_int_equal(made->info.adapter.conv_rank, 0);
    compose_end(made);
    made = compose(KO("lora_unet_a", "16", "9", "9") KO("lora_unet_b", "4", "9", "9"));
    assert_true(made->info.adapter.rank.mode == 4); /* ties take the lower */
    compose_end(made);
    made = compose(KO("lora_unet_a", "16", "9", "9")
                   "lora_unet_b.lora_down.weight[4,9,3,3] lora_unet_b.lora_up.weight[9,4,1,1] ");
    assert_string_equal(made->info.adapter.type, "locon");
    assert_int_equal(made->info.adapter.conv_rank, 4);
    compose_end(made);
    made = compose("lora_unet_conv1.lokr_w1[4,4] lora_unet_conv1.lokr_w2_a[80,8] "
                   "lora_unet_conv1.lokr_w2_b[8,720] lora_unet_to_q.lokr_w1[4,4] "
                   "lora_unet_to_q.lokr_w2_a[80,16] lora_unet_to_q.lokr_w2_b[16,80]");
    assert_int_equal(made->info.adapter.conv_rank, 8);
    compose_end(made);
}

static void dora_is_seen(void **state) {
    static const struct { const char *tensors; bool dora; } cases[] = {
        { KO("lora_unet_a", "4", "9", "9") "lora_unet_a.dora_scale[1,9]", true },
        { KO("lora_unet_a", "4", "9", "9") "lora_unet_a.dora[1,9]", false },
        { PE(LLM "0.mlp.x", "4", "9", "9") LLM "0.mlp.x.lora_magnitude_vector.weight[9]", true },
        { PE(LLM "0.mlp.x", "4", "9", "9") LLM "0.mlp.x.lora_magnitude_vector[9]", true },
        { "x.dora_scale[1]", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        composed *made = compose(cases[i].tensors);
        assert_int_equal(made->info.adapter.dora, cases[i].dora);
        compose_end(made);
    }
}

/* ── Alphas ── */

/* count modules of rank 4 with F32 weights of filler bytes; alpha i has the value of values. */
static composed *with_alphas(size_t count, const float *values, unsigned wide, bool deep,
                             bool no_data) {
    char *text = calloc(count, 200);
    size_t len = 0;
    for (size_t i = 0; i < count; i++)
        len += (size_t)sprintf(text + len,
                               "lora_unet_b%04zu.alpha:F32[] "
                               "lora_unet_b%04zu.lora_down.weight:F32[4,%u] "
                               "lora_unet_b%04zu.lora_up.weight:F32[1,4] ", i, i, wide, i);
    size_t each = 4 + 16 * (size_t)wide + 16;
    char *data = calloc(count, each);
    for (size_t i = 0; i < count; i++) memcpy(data + i * each, &values[i], 4);
    composed *made = compose_with(text, NULL, 0, no_data ? NULL : data,
                                  no_data ? 0 : count * each, NULL);
    made->info.options.deep = deep;
    sfti_info_tensors(&made->info);
    assert_int_equal(made->info.code, SFT_OK);
    free(text);
    free(data);
    return made;
}

static void alphas_are_read(void **state) {
    float same[100], last[100], some[100];
    (void)state;
    for (int i = 0; i < 100; i++) same[i] = last[i] = some[i] = 2;
    some[0] = 8;
    last[50] = 1;
    /* all of them within 64 KiB */
    composed *made = with_alphas(100, same, 8, false, false);
    const sfti_adapter *a = &made->info.adapter;
    assert_true(a->alpha.known && a->alpha.min == 2 && a->alpha.max == 2 && a->alpha.mode == 2);
    assert_false(a->alpha_sampled);
    assert_true(a->scale == 0.5);
    compose_end(made);
    /* eight of them, equal */
    made = with_alphas(100, same, 500, false, false);
    assert_true(made->info.adapter.alpha_sampled && made->info.adapter.alpha.mode == 2);
    compose_end(made);
    /* eight of them, not equal: then all */
    made = with_alphas(100, some, 500, false, false);
    a = &made->info.adapter;
    assert_false(a->alpha_sampled);
    assert_true(a->alpha.min == 2 && a->alpha.max == 8 && a->alpha.mode == 2);
    compose_end(made);
    /* one between the samples is missed, but not by deep */
    made = with_alphas(100, last, 500, false, false);
    assert_true(made->info.adapter.alpha_sampled && made->info.adapter.alpha.min == 2);
    compose_end(made);
    made = with_alphas(100, last, 500, true, false);
    assert_true(!made->info.adapter.alpha_sampled && made->info.adapter.alpha.min == 1);
    compose_end(made);
    /* not there to be read */
    made = with_alphas(3, same, 8, false, true);
    assert_false(made->info.adapter.alpha.known);
    assert_true(made->info.adapter.scale < 0);
    assert_false(made->info.adapter.alpha_assumed);
    compose_end(made);
}

static void alpha_of_each_dtype(void **state) {
    static const struct {
        const char *dtype;
        unsigned char bytes[8];
        size_t len;
        double value;
        bool known;
    } cases[] = {
        { "F16", { 0x00, 0x48 }, 2, 8, true },         { "F16", { 0x00, 0xc0 }, 2, -2, true },
        { "F16", { 0x01, 0x00 }, 2, 1.0 / 16777216, true }, { "F16", { 0x00, 0x7c }, 2, 0, false },
        { "F16", { 0x00, 0x38 }, 2, 0.5, true },
        { "BF16", { 0x80, 0x3f }, 2, 1, true },        { "BF16", { 0x80, 0x41 }, 2, 16, true },
        { "BF16", { 0xc0, 0x7f }, 2, 0, false },       { "BF16", { 0x00, 0x3f }, 2, 0.5, true },
        { "F32", { 0, 0, 0x80, 0x41 }, 4, 16, true },  { "F32", { 0, 0, 0x80, 0x7f }, 4, 0, false },
        { "F64", { 0, 0, 0, 0, 0, 0, 0xf0, 0x3f }, 8, 1, true },
        { "I64", { 32 }, 8, 32, true },                { "I32", { 64 }, 4, 64, true },
        { "BOOL", { 1 }, 1, 0, false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256], data[8 + 64] = { 0 };
        bool first = cases[i].len >= 2;
        snprintf(text, sizeof text, "lora_unet_a.alpha:%s[] lora_unet_a.lora_down.weight:U8[4,4] "
                 "lora_unet_a.lora_up.weight:U8[4,4]", cases[i].dtype);
        memcpy(data + (first ? 0 : 32), cases[i].bytes, cases[i].len);
        composed *made = compose_with(text, NULL, 0, data, cases[i].len + 32, NULL);
        sfti_info_tensors(&made->info);
        const sfti_adapter *a = &made->info.adapter;
        assert_int_equal(a->alpha.known, cases[i].known);
        if (cases[i].known && (a->alpha.mode < cases[i].value || a->alpha.mode > cases[i].value))
            fail_msg("case %zu: %g", i, a->alpha.mode);
        compose_end(made);
    }
}

static void no_alpha_is_the_rank_but_for_peft(void **state) {
    static const struct { const char *tensors; bool known; double scale; } cases[] = {
        { KO("lora_unet_a", "16", "9", "9"), true, 1 },
        { PE(DM "double_blocks.0.img_attn.proj", "16", "3072", "3072"), true, 1 },
        { PE(LLM "0.self_attn.q_proj", "16", "4096", "4096"), false, -1 },
        { "unet:0:down[4,320] unet:0:up[320,4]", true, 1 },
        { "lora_unet_a.diff[4,4]", false, -1 },
        { UNET "attn1_to_q.oft_blocks[8,40,40]", false, -1 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        composed *made = compose(cases[i].tensors);
        const sfti_adapter *a = &made->info.adapter;
        assert_int_equal(a->alpha.known, cases[i].known);
        assert_int_equal(a->alpha_assumed, cases[i].known);
        assert_true(a->scale >= cases[i].scale && a->scale <= cases[i].scale);
        compose_end(made);
    }
    sft_info info = { .adapter = { .rank = { true, 16, 16, 16 }, .alpha = { true, 8, 8, 8 },
                                   .rslora = true } };
    sfti_adapter_scale(&info);
    assert_true(info.adapter.scale == 2);
    info.adapter.rslora = false;
    sfti_adapter_scale(&info);
    assert_true(info.adapter.scale == 0.5);
}

/* Names that hold the sign of a number, many numbers in one place, or nothing. */
static void names_like_forms_are_names(void **state) {
    (void)state;
    expect_adapter(PE(DM "output_blocks.#.#.transformer_blocks.#.attn1.to_k", "4", "320", "320")
                   PE(DM "output_blocks.9.1.transformer_blocks.0.attn1.to_k", "4", "320", "320"),
                   "adapter sd-1@60 - lora bfl 4 2");
    /* The second has the hash of output_blocks_#_#_transformer_blocks_#_attn1_to_k. */
    expect_adapter(PE(DM "output_blocks.9.1.transformer_blocks.0.attn1.to_q", "4", "320", "320")
                   PE(DM "bxttqpcwbquyprivxhts", "4", "320", "320"),
                   "adapter sd-1@60 - lora bfl 4 2");
    expect_adapter(PE("", "4", "320", "320"), "adapter - - lora peft 4 1");
    char *many = malloc(250 * 256), *to = many;
    assert_non_null(many);
    for (int i = 0; i < 250; i++) {
        char name[128];
        snprintf(name, sizeof name, DM "output_blocks%c%d.%s.transformer_blocks.%s.attn1.to_k",
                 i % 2 ? '.' : '_', i / 2, i ? "#" : "0", i ? "#" : "0");
        to += snprintf(to, 256, "%s.lora_A.weight[4,320] %s.lora_B.weight[320,4] ", name, name);
    }
    expect_adapter(many, "adapter sd-1@60 - lora bfl 4 250");
    free(many);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(formats_types_and_targets),
        cmocka_unit_test(methods_of_peft),
        cmocka_unit_test(ranks_are_told_by_module),
        cmocka_unit_test(dora_is_seen),
        cmocka_unit_test(alphas_are_read),
        cmocka_unit_test(alpha_of_each_dtype),
        cmocka_unit_test(no_alpha_is_the_rank_but_for_peft),
        cmocka_unit_test(names_like_forms_are_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
