/* The table of architectures. Rows are tried from the first; what is more particular stands
 * before what is more general. The language of the clauses: signatures.h. */
#include "info/tensors/signatures.h"

#define UNET_IN "input_blocks.0.0.weight ; "
#define ATTN2 ".transformer_blocks.0.attn2.to_k.weight"
#define FLUX_LDM \
    "double_blocks.#.img_attn.norm.key_norm.scale | " \
    "double_blocks.#.img_attn.norm.key_norm.weight ; "
#define FLUX_DIFFUSERS \
    "single_transformer_blocks.#.attn.norm_k.weight ; " \
    "transformer_blocks.#.attn.norm_added_k.weight ; "
#define FLUX_NUNCHAKU \
    "single_transformer_blocks.#.qkv_proj.weight ; " \
    "transformer_blocks.#.qkv_proj_context.weight ; "
#define WAN "head.modulation ; "
#define WAN_DIFFUSERS \
    "condition_embedder.time_embedder.linear_1.weight ; patch_embedding.weight ; "

/* ── What stands on a base, or changes one: before adapters ── */

const sfti_signature sfti_special_rows[] = {
    { "control_lora", "sdxl", 100,
      "lora_controlnet ; input_blocks.4.1.transformer_blocks.0.attn2.to_k.down[*,2048]" },
    { "control_lora", "sd-2", 100,
      "lora_controlnet ; input_blocks.1.1.transformer_blocks.0.attn2.to_k.down[*,1024]" },
    { "control_lora", "sd-1", 100,
      "lora_controlnet ; input_blocks.1.1.transformer_blocks.0.attn2.to_k.down[*,768]" },
    { "control_lora", NULL, 100, "lora_controlnet" },
    { "controlnet", "sdxl", 100, "lllite_unet_input_blocks_4_1_transformer_blocks_1_*" },
    { "controlnet", NULL, 100, "lllite_unet_* | lllite_dit_*" },

    { "controlnet", "flux.1", 100,
      "controlnet_blocks.0.weight | controlnet_blocks.0.linear.weight ; double_blocks.0.*" },
    { "controlnet", "sd-3.5-large", 100,
      "controlnet_blocks.0.weight ; transformer_blocks.0.adaLN_modulation.1.bias" },
    { "controlnet", "sd-3", 100, "controlnet_blocks.0.weight ; pos_embed_input.proj.weight" },
    { "controlnet", "qwen-image", 100,
      "controlnet_blocks.0.weight ; transformer_blocks.0.img_mlp.net.0.proj.weight" },
    { "controlnet", "flux.1", 100, "controlnet_blocks.0.weight ; controlnet_x_embedder.weight" },
    { "controlnet", "hunyuan-dit", 100, "after_proj_list.18.bias" },
    { "controlnet", "z-image", 100,
      "control_all_x_embedder.2-1.weight | control_layers.14.adaLN_modulation.0.weight" },
    { "controlnet", NULL, 100, "control_to_base_for_conv_in.weight" },
    { "controlnet", "sdxl", 100,
      "controlnet_cond_embedding.conv_in.weight ; "
      "down_blocks.1.attentions.0" ATTN2 "[*,2048]" },
    { "controlnet", "sd-2", 100,
      "controlnet_cond_embedding.conv_in.weight ; "
      "down_blocks.0.attentions.0" ATTN2 "[*,1024]" },
    { "controlnet", "sd-1", 100,
      "controlnet_cond_embedding.conv_in.weight ; "
      "down_blocks.0.attentions.0" ATTN2 "[*,768]" },
    { "controlnet", NULL, 100,
      "controlnet_cond_embedding.conv_in.weight | controlnet_mid_block.bias | "
      "controlnet_blocks.0.weight" },
    { "controlnet", "sdxl", 100,
      "input_hint_block.0.weight ; zero_convs.0.0.weight ; input_blocks.4.1" ATTN2 "[*,2048]" },
    { "controlnet", "sd-2", 100,
      "input_hint_block.0.weight ; zero_convs.0.0.weight ; input_blocks.1.1" ATTN2 "[*,1024]" },
    { "controlnet", "sd-1", 100,
      "input_hint_block.0.weight ; zero_convs.0.0.weight ; input_blocks.1.1" ATTN2 "[*,768]" },
    { "controlnet", NULL, 100, "input_hint_block.0.weight ; zero_convs.0.0.weight" },

    { "ip_adapter", "flux.1", 100, "ip_adapter_proj_model.*" },
    { "ip_adapter", "sdxl", 100, "image_proj.* ; ip_adapter.1.to_k_ip.weight[*,2048]" },
    { "ip_adapter", "sd-2", 100, "image_proj.* ; ip_adapter.1.to_k_ip.weight[*,1024]" },
    { "ip_adapter", "sd-1", 100, "image_proj.* ; ip_adapter.1.to_k_ip.weight[*,768]" },
    { "ip_adapter", NULL, 100, "image_proj.* ; ip_adapter.*" },

    { "t2i_adapter", "sdxl", 70,
      "adapter.body.0.resnets.0.block1.weight ; adapter.conv_in.weight[*,768|256,*,*]" },
    { "t2i_adapter", "sd-1", 70,
      "adapter.body.0.resnets.0.block1.weight ; adapter.conv_in.weight[*,192|64,*,*]" },
    { "t2i_adapter", NULL, 100, "adapter.body.0.resnets.0.block1.weight" },
    { "t2i_adapter", "sdxl", 70,
      "body.0.in_conv.weight | body.0.block1.weight ; conv_in.weight[*,768|256,*,*]" },
    { "t2i_adapter", "sd-1", 70,
      "body.0.in_conv.weight | body.0.block1.weight ; conv_in.weight[*,192|64,*,*]" },

    { "motion_module", "sdxl", 100,
      "down_blocks.0.motion_modules.0.temporal_transformer.* ; "
      "up_blocks.2.motion_modules.0.* ; !up_blocks.3.*" },
    { "motion_module", "sd-1", 100,
      "down_blocks.0.motion_modules.0.temporal_transformer.* ; up_blocks.3.*" },
    { "motion_module", NULL, 100, "down_blocks.0.motion_modules.0.temporal_transformer.*" },
    { NULL, NULL, 0, NULL },
};

/* ── Denoisers ── */

const sfti_signature sfti_denoiser_rows[] = {
    /* UNets as first published */
    { "diffusion_model", "svd", 100,
      "input_blocks.1.0.time_stack.emb_layers.1.bias | input_blocks.1.0.time_mixer.mix_factor" },
    { "diffusion_model", "playground-2.5", 100,
      "label_emb.0.0.weight[*,2816] ; ^edm_mean ; input_blocks.4.1" ATTN2 "[*,2048]" },
    { "diffusion_model", "sdxl-refiner", 100,
      "input_blocks.0.0.weight[384,*,*,*] ; label_emb.0.0.weight[*,2560]" },
    { "diffusion_model", "koala", 100,
      UNET_IN "label_emb.0.0.weight[*,2816] ; input_blocks.5.1.transformer_blocks.4.* ; "
                  "!input_blocks.7.*" },
    { "diffusion_model", "ssd-1b", 100,
      UNET_IN "label_emb.0.0.weight[*,2816] ; !middle_block.1.* ; "
                  "output_blocks.3.1.transformer_blocks.1.*" },
    { "diffusion_model", "segmind-vega", 100,
      UNET_IN "label_emb.0.0.weight[*,2816] ; !middle_block.1.* ; output_blocks.0.* ; "
                  "!output_blocks.3.1.transformer_blocks.1.*" },
    { "diffusion_model", "kolors", 100,
      UNET_IN "label_emb.0.0.weight[*,5632] ; input_blocks.4.1" ATTN2 "[*,2048]" },
    { "diffusion_model", "sdxl", 100,
      UNET_IN "label_emb.0.0.weight[*,2816] ; input_blocks.4.1" ATTN2 "[*,2048]" },
    { "diffusion_model", "sd-2", 100,
      UNET_IN "input_blocks.2.1" ATTN2 "[*,1024] | input_blocks.1.1" ATTN2 "[*,1024] | "
                  "input_blocks.4.1" ATTN2 "[*,1024]" },
    { "diffusion_model", "sd-1", 100,
      UNET_IN "input_blocks.2.1" ATTN2 "[*,768] | input_blocks.1.1" ATTN2 "[*,768] ; "
                  "!label_emb.*" },
    /* and as diffusers saves them */
    { "diffusion_model", "svd", 100,
      "conv_in.weight ; down_blocks.0.attentions.0.temporal_transformer_blocks.0.*" },
    { "diffusion_model", "sdxl-refiner", 100,
      "conv_in.weight ; add_embedding.linear_1.weight[*,2560] ; up_blocks.*" },
    { "diffusion_model", "kolors", 100,
      "conv_in.weight ; add_embedding.linear_1.weight[*,5632] ; up_blocks.*" },
    { "diffusion_model", "koala", 100,
      "conv_in.weight ; add_embedding.linear_1.weight[*,2816] ; "
      "down_blocks.2.attentions.0.transformer_blocks.4.* ; !down_blocks.2.attentions.1.*" },
    { "diffusion_model", "ssd-1b", 100,
      "conv_in.weight ; add_embedding.linear_1.weight[*,2816] ; !mid_block.attentions.* ; "
      "down_blocks.2.attentions.0.transformer_blocks.3.*" },
    { "diffusion_model", "segmind-vega", 100,
      "conv_in.weight ; add_embedding.linear_1.weight[*,2816] ; !mid_block.attentions.* ; "
      "up_blocks.* ; !down_blocks.2.attentions.0.transformer_blocks.3.*" },
    { "diffusion_model", "sdxl", 100,
      "conv_in.weight ; add_embedding.linear_1.weight[*,2816] ; "
      "down_blocks.2.attentions.0" ATTN2 "[*,2048]" },
    { "diffusion_model", "sd-2", 100,
      "conv_in.weight ; down_blocks.0.attentions.0" ATTN2 "[*,1024] | "
      "down_blocks.1.attentions.0" ATTN2 "[*,1024] ; up_blocks.* | mid_block.* | conv_out.weight ; "
      "!down_blocks.0.temp_attentions.*" },
    { "diffusion_model", "sd-1", 100,
      "conv_in.weight ; down_blocks.0.attentions.0" ATTN2 "[*,768] ; !add_embedding.* ; "
      "up_blocks.* | mid_block.* | conv_out.weight" },
    /* Stable Diffusion 3 */
    { "diffusion_model", "sd-3.5-medium", 100,
      "joint_blocks.0.context_block.attn.qkv.weight ; joint_blocks.0.x_block.attn2.qkv.weight" },
    { "diffusion_model", "sd-3.5-large", 100,
      "joint_blocks.0.context_block.attn.qkv.weight ; joint_blocks.37.* ; "
      "joint_blocks.0.context_block.attn.ln_q.weight" },
    { "diffusion_model", "sd-3.5-large", 100,
      "joint_blocks.0.context_block.attn.qkv.weight ; x_embedder.proj.weight[2432,*,*,*]" },
    { "diffusion_model", "sd-3-medium", 100,
      "joint_blocks.0.context_block.attn.qkv.weight ; x_embedder.proj.weight[1536,*,*,*] ; "
      "!joint_blocks.0.context_block.attn.ln_q.weight" },
    { "diffusion_model", "sd-3", 70, "joint_blocks.0.context_block.attn.qkv.weight" },
    { "diffusion_model", "sd-3.5-medium", 100,
      "transformer_blocks.0.attn.add_q_proj.weight ; pos_embed.proj.weight ; "
      "transformer_blocks.0.attn2.to_q.weight" },
    { "diffusion_model", "sd-3.5-large", 100,
      "transformer_blocks.0.attn.add_q_proj.weight ; pos_embed.proj.weight[2432,*,*,*]" },
    { "diffusion_model", "sd-3-medium", 100,
      "transformer_blocks.0.attn.add_q_proj.weight ; pos_embed.proj.weight[1536,*,*,*] ; "
      "!transformer_blocks.0.attn.norm_q.weight" },
    { "diffusion_model", "sd-3", 70,
      "transformer_blocks.0.attn.add_q_proj.weight ; pos_embed.proj.weight" },
    /* Stable Cascade */
    { "diffusion_model", "stable-cascade-c", 100, "clip_txt_mapper.weight ; clf.1.weight" },
    { "diffusion_model", "stable-cascade-b", 60, "clip_mapper.weight ; clf.1.weight" },
    { "diffusion_model", "stable-cascade-b", 100,
      "clip_mapper.weight ; down_blocks.1.0.channelwise.0.weight" },
    /* HunyuanVideo and Image, before FLUX */
    { "diffusion_model", "hunyuan-video-1.5", 100,
      "vision_in.proj.0.weight ; cond_type_embedding.weight" },
    { "diffusion_model", "hunyuan-image-2.1", 100,
      "txt_in.individual_token_refiner.blocks.0.norm1.weight ; byt5_in.fc1.weight" },
    { "diffusion_model", "hunyuan-image-2.1", 100,
      "txt_in.individual_token_refiner.* ; time_r_in.*" },
    { "diffusion_model", "hunyuan-video", 100,
      "txt_in.individual_token_refiner.blocks.0.norm1.weight | "
      "txt_in.individual_token_refiner.blocks.0.adaLN_modulation.1.bias" },
    { "diffusion_model", "hunyuan-video-1.5", 100,
      "context_embedder.token_refiner.* ; cond_type_embed.weight" },
    { "diffusion_model", "hunyuan-image-2.1", 100,
      "context_embedder.token_refiner.* ; time_guidance_embed.*" },
    { "diffusion_model", "hunyuan-video", 100,
      "context_embedder.token_refiner.* ; transformer_blocks.0.*" },
    /* FLUX and its children */
    { "diffusion_model", "chroma-radiance", 100,
      "distilled_guidance_layer.* ; nerf_blocks.0.norm.scale | "
      "nerf_image_embedder.embedder.0.bias" },
    { "diffusion_model", "chroma", 100,
      "distilled_guidance_layer.* ; double_blocks.0.* | transformer_blocks.0.*" },
    { "diffusion_model", "flux.2-dev", 100,
      "double_stream_modulation_img.lin.weight[36864,*] | "
      "double_stream_modulation_img.linear.weight[36864,*]" },
    { "diffusion_model", "flux.2-klein-4b", 100,
      "double_stream_modulation_img.lin.weight[18432,*] | "
      "double_stream_modulation_img.linear.weight[18432,*]" },
    { "diffusion_model", "flux.2-klein-9b", 100,
      "double_stream_modulation_img.lin.weight[24576,*] | "
      "double_stream_modulation_img.linear.weight[24576,*]" },
    { "diffusion_model", "flux.2", 100,
      "double_stream_modulation_img.* | single_stream_modulation.lin.weight" },
    { "diffusion_model", "ovis-image", 100, "double_blocks.0.img_mlp.gate_proj.weight" },
    { "diffusion_model", "longcat-image", 100,
      FLUX_LDM "txt_in.weight[*,3584] ; !vector_in.*" },
    { "diffusion_model", "lens", 100,
      "transformer_blocks.0.attn.norm_added_q.weight ; transformer_blocks.0.img_mlp.w1.weight" },
    { "diffusion_model", "flux.1-dev", 100, FLUX_LDM "guidance_in.in_layer.weight" },
    { "diffusion_model", "flux.1-schnell", 100, FLUX_LDM "img_in.weight ; vector_in.*" },
    { "diffusion_model", "flux.1", 70, FLUX_LDM "!guidance_in.*" },
    { "diffusion_model", "flux.1-dev", 100,
      FLUX_DIFFUSERS "time_text_embed.guidance_embedder.linear_1.weight" },
    { "diffusion_model", "flux.1-schnell", 100,
      FLUX_DIFFUSERS "x_embedder.weight ; time_text_embed.*" },
    { "diffusion_model", "flux.1", 70, FLUX_DIFFUSERS "!time_text_embed.*" },
    { "diffusion_model", "flux.1-dev", 100,
      FLUX_NUNCHAKU "time_text_embed.guidance_embedder.linear_1.weight" },
    { "diffusion_model", "flux.1-schnell", 100,
      FLUX_NUNCHAKU "x_embedder.weight ; time_text_embed.*" },
    { "diffusion_model", "flux.1", 70, FLUX_NUNCHAKU "!time_text_embed.*" },
    /* Qwen-Image and what resembles it */
    { "diffusion_model", "mage-flow", 100, "txt_norm.weight[2560] ; transformer_blocks.*" },
    { "diffusion_model", "qwen-image", 100,
      "txt_norm.weight[3584] ; transformer_blocks.* ; !transformer_blocks.#.encoder_proj.weight" },
    { "diffusion_model", "qwen-image", 100, "txt_in.text_norm.weight ; modulation.1.weight" },
    /* PixArt, Hunyuan-DiT */
    { "diffusion_model", "pixart-alpha", 100,
      "t_block.1.weight ; ar_embedder.mlp.0.weight | y_embedder.y_embedding[120,*]" },
    { "diffusion_model", "pixart-sigma", 100, "t_block.1.weight ; !plucker_embedder.*" },
    { "diffusion_model", "pixart-alpha", 100,
      "adaln_single.emb.timestep_embedder.linear_1.bias ; pos_embed.proj.bias ; "
      "adaln_single.emb.resolution_embedder.linear_1.weight" },
    { "diffusion_model", "pixart-sigma", 60,
      "adaln_single.emb.timestep_embedder.linear_1.bias ; pos_embed.proj.bias ; "
      "!temporal_transformer_blocks.*" },
    { "diffusion_model", "hunyuan-dit", 100, "mlp_t5.0.weight" },
    /* Wan */
    { "diffusion_model", "wan-2.2", 100, WAN "head.head.weight[192,*]" },
    { "diffusion_model", "wan-2.2", 100,
      WAN "face_adapter.fuser_blocks.0.k_norm.weight | casual_audio_encoder.*" },
    { "diffusion_model", "wan-2.1", 60, WAN "img_emb.proj.0.bias" },
    { "diffusion_model", "wan-2.1", 100, WAN "patch_embedding.weight[1536,*,*,*,*]" },
    { "diffusion_model", "wan-2.2", 100,
      WAN "patch_embedding.weight[5120,36,*,*,*] ; !vace_patch_embedding.weight ; "
          "!control_adapter.* ; !ref_conv.*" },
    { "diffusion_model", "wan", 100, WAN "blocks.*" },
    { "diffusion_model", "wan-2.2", 100, WAN_DIFFUSERS "proj_out.weight[192,*]" },
    { "diffusion_model", "wan-2.2", 60, WAN_DIFFUSERS "face_adapter.*" },
    { "diffusion_model", "wan-2.1", 100, WAN_DIFFUSERS "condition_embedder.image_embedder.*" },
    { "diffusion_model", "wan-2.1", 100,
      WAN_DIFFUSERS "patch_embedding.weight[1536,*,*,*,*]" },
    { "diffusion_model", "wan-2.2", 100,
      WAN_DIFFUSERS "patch_embedding.weight[5120,36,*,*,*]" },
    { "diffusion_model", "wan", 100, WAN_DIFFUSERS "blocks.#.attn2.to_k.weight" },
    /* LTX */
    { "diffusion_model", "ltx-2", 100,
      "audio_adaln_single.linear.weight | "
      "transformer_blocks.#.audio_to_video_attn.k_norm.weight | "
      "av_ca_a2v_gate_adaln_single.emb.timestep_embedder.linear_1.weight" },
    { "diffusion_model", "ltx-video", 100,
      "adaln_single.emb.timestep_embedder.linear_1.bias ; !pos_embed.* ; "
      "patchify_proj.weight | proj_in.weight | transformer_blocks.#.attn2.to_k.weight" },
    /* Cosmos */
    { "diffusion_model", "cosmos-1", 100,
      "blocks.block0.blocks.0.block.attn.to_q.0.weight | "
      "blocks.block1.blocks.0.block.attn.to_q.0.weight" },
    { "diffusion_model", "anima", 100, "llm_adapter.blocks.0.cross_attn.q_proj.weight" },
    { "diffusion_model", "cosmos-predict2", 100,
      "blocks.0.mlp.layer1.weight ; x_embedder.proj.1.weight | "
      "blocks.0.self_attn.q_proj.weight" },
    /* Lumina and what resembles it */
    { "diffusion_model", "newbie", 100,
      "cap_embedder.1.weight ; clip_text_pooled_proj.0.weight" },
    { "diffusion_model", "z-image", 100,
      "cap_embedder.1.weight[3840,*] ; noise_refiner.0.attention.k_norm.weight | "
      "noise_refiner.0.attention.norm_k.weight" },
    { "diffusion_model", "z-image", 100, "cap_pad_token ; layers.0.adaLN_modulation.0.weight" },
    { "diffusion_model", "z-image", 100, "dec_net.cond_embed.weight ; layers.0.*" },
    { "diffusion_model", "lumina-2", 100,
      "cap_embedder.1.weight[2304,*] ; noise_refiner.0.attention.k_norm.weight" },
    { "diffusion_model", "lumina-2", 100,
      "time_caption_embed.timestep_embedder.linear_1.bias ; x_embedder.weight[2304,*]" },
    { "diffusion_model", "boogu", 100,
      "double_stream_layers.0.img_instruct_attn.processor.img_to_q.weight" },
    { "diffusion_model", "omnigen-2", 100,
      "time_caption_embed.timestep_embedder.linear_1.bias ; !patch_embedder.*" },
    /* and the others */
    { "diffusion_model", "auraflow", 100,
      "double_layers.0.attn.w1q.weight ; cond_seq_linear.weight | positional_encoding" },
    { "diffusion_model", "auraflow", 100,
      "joint_transformer_blocks.0.attn.add_k_proj.weight" },
    { "diffusion_model", "mochi", 100, "t5_yproj.weight | blocks.0.attn.norm_k_x.weight" },
    { "diffusion_model", "mochi", 100,
      "blocks.0.attn.k_norm_x.weight | blocks.0.attn.qkv_x.weight" },
    { "diffusion_model", "cogvideox", 100,
      "blocks.0.norm1.linear.weight | transformer_blocks.0.norm1.linear.weight ; "
      "patch_embed.text_proj.weight ; !time_condition_embed.*" },
    { "diffusion_model", "hidream-i1", 100,
      "caption_projection.0.linear.weight ; double_stream_blocks.0.*" },
    { "diffusion_model", "hidream-o1", 100, "t_embedder1.mlp.0.weight ; x_embedder.proj1.weight" },
    { "diffusion_model", "sana", 100,
      "attention_y_norm.weight ; !plucker_embedder.* ; blocks.0.attn.proj.weight | "
      "blocks.0.cross_attn.q_linear.weight" },
    { "diffusion_model", "sana", 100,
      "caption_norm.weight ; transformer_blocks.0.ff.conv_inverted.weight ; "
      "!transformer_blocks.0.ff.conv_temp.weight" },
    { "diffusion_model", "sana-video", 100,
      "caption_norm.weight ; transformer_blocks.0.ff.conv_temp.weight" },
    { "diffusion_model", "kandinsky-5", 100,
      "visual_transformer_blocks.0.cross_attention.key_norm.weight" },
    { "diffusion_model", "ideogram-4", 100, "embed_image_indicator.weight" },
    { "diffusion_model", "krea-2", 100, "txtfusion.projector.weight" },
    { "diffusion_model", "ernie-image", 100, "layers.0.adaLN_sa_ln.weight" },
    { "diffusion_model", "minimax-h3", 100, "video_patch_proj.weight ; audio_patch_proj.weight" },
    { "diffusion_model", "seedvr2", 100,
      "blocks.31.mlp.all.proj_in_gate.weight | blocks.35.mlp.all.proj_in_gate.weight | "
      "blocks.31.mlp.vid.proj_in_gate.weight | blocks.35.mlp.vid.proj_in_gate.weight" },
    { "diffusion_model", "stable-audio", 100, "transformer.rotary_pos_emb.inv_freq" },
    { "diffusion_model", "ace-step", 100,
      "genre_embedder.weight | encoder.lyric_encoder.layers.0.input_layernorm.weight" },
    { "diffusion_model", "hunyuan-3d", 100,
      "latent_in.weight ; double_blocks.0.* | single_blocks.0.* | cond_in.weight" },
    { "diffusion_model", "hunyuan-3d", 100,
      "t_embedder.mlp.2.weight ; blocks.0.attn1.k_norm.weight" },
    { NULL, NULL, 0, NULL },
};

/* ── Variants: all that hold, joined ── */

#define WAN_PLAIN \
    "!vace_patch_embedding.weight ; !casual_audio_encoder.* ; !audio_proj.* ; " \
    "!face_adapter.* ; !control_adapter.* ; !ref_conv.* ; !img_emb.* ; " \
    "!condition_embedder.image_embedder.*"

const sfti_variant sfti_variant_rows[] = {
    { "sd-1", "inpaint", "input_blocks.0.0.weight[*,9,*,*] | conv_in.weight[*,9,*,*]" },
    { "sd-1", "edit",
      "input_blocks.0.0.weight[*,8,*,*] | conv_in.weight[*,8,*,*] ; !^cc_projection.weight" },
    { "sd-2", "inpaint", "input_blocks.0.0.weight[*,9,*,*] | conv_in.weight[*,9,*,*]" },
    { "sd-2", "depth",
      "input_blocks.0.0.weight[*,5,*,*] | conv_in.weight[*,5,*,*] | ^depth_model.*" },
    { "sd-2", "upscale", "input_blocks.0.0.weight[*,7,*,*] | conv_in.weight[*,7,*,*]" },
    { "sd-2", "unclip", "label_emb.0.0.weight[*,1536|2048]" },
    { "sd-2", "unclip", "class_embedding.linear_1.weight[*,1536|2048] ; conv_in.weight" },
    { "sdxl", "inpaint", "input_blocks.0.0.weight[*,9,*,*] | conv_in.weight[*,9,*,*]" },
    { "sdxl", "edit", "input_blocks.0.0.weight[*,8,*,*] | conv_in.weight[*,8,*,*]" },
    { "flux.1-dev", "fill", "img_in.weight[*,384] | x_embedder.weight[*,384]" },
    { "flux.1-dev", "control", "img_in.weight[*,128] | x_embedder.weight[*,128]" },
    { "hunyuan-video", "t2v", "img_in.proj.weight[*,16,*,*,*]" },
    { "hunyuan-video", "i2v", "img_in.proj.weight[*,32|33,*,*,*]" },
    { "qwen-image", "edit", "__index_timestep_zero__ | ^__index_timestep_zero__" },
    { "qwen-image", "layered", "time_text_embed.addition_t_embedding.weight" },
    { "wan*", "1.3b", "patch_embedding.weight[1536,*,*,*,*]" },
    { "wan*", "14b", "patch_embedding.weight[5120,*,*,*,*]" },
    { "wan*", "5b", "patch_embedding.weight[3072,*,*,*,*]" },
    { "wan*", "ti2v", "head.head.weight[192,*] | proj_out.weight[192,*]" },
    { "wan*", "t2v", "patch_embedding.weight[*,16,*,*,*] ; " WAN_PLAIN },
    { "wan*", "i2v",
      "patch_embedding.weight[*,36,*,*,*] ; !face_adapter.* ; !img_emb.emb_pos ; "
      "!vace_patch_embedding.weight ; !control_adapter.* ; !ref_conv.*" },
    { "wan*", "i2v",
      "condition_embedder.image_embedder.* ; !condition_embedder.image_embedder.pos_embed" },
    { "wan*", "flf2v", "img_emb.emb_pos | condition_embedder.image_embedder.pos_embed" },
    { "wan*", "vace", "vace_patch_embedding.weight | vace_blocks.0.after_proj.bias" },
    { "wan*", "camera", "control_adapter.conv.weight" },
    { "wan*", "s2v", "casual_audio_encoder.*" },
    { "wan*", "humo", "audio_proj.audio_proj_glob_1.layer.bias" },
    { "wan*", "animate",
      "face_adapter.fuser_blocks.0.k_norm.weight | motion_encoder.dec.direction.weight" },
    { "wan*", "control", "ref_conv.weight" },
    { "ltx-video", "2b", "transformer_blocks.#.attn2.to_k.weight[2048,*]" },
    { "ltx-video", "13b", "transformer_blocks.#.attn2.to_k.weight[4096,*]" },
    { "cosmos-1", "14b",
      "blocks.block0.blocks.0.block.attn.to_q.0.weight[5120,*] | "
      "x_embedder.proj.1.weight[5120,*]" },
    { "cosmos-1", "t2v", "x_embedder.proj.1.weight[*,68]" },
    { "cosmos-1", "i2v", "x_embedder.proj.1.weight[*,72]" },
    { "cosmos-predict2", "2b", "x_embedder.proj.1.weight[2048,*]" },
    { "cosmos-predict2", "14b", "x_embedder.proj.1.weight[5120,*]" },
    { "cogvideox", "2b",
      "blocks.0.norm1.linear.weight[11520,*] | "
      "transformer_blocks.0.norm1.linear.weight[11520,*]" },
    { "cogvideox", "5b",
      "blocks.0.norm1.linear.weight[18432,*] | "
      "transformer_blocks.0.norm1.linear.weight[18432,*]" },
    { "cogvideox", "i2v",
      "ofs_embedding_linear_1.weight | ofs_embedding.linear_1.weight" },
    { NULL, NULL, NULL },
};

/* ── Autoencoders ── */

const sfti_signature sfti_vae_rows[] = {
    { "vae", "stable-cascade-a", 100, "vquantizer.codebook.weight" },
    { "vae", NULL, 100, "taesd_decoder.1.weight | taesd_encoder.0.weight" },
    { "vae", NULL, 100,
      "decoder.layers.0.weight[64,4|16,3,3] ; encoder.layers.0.weight[64,3,3,3]" },
    { "vae", NULL, 100, "decoder.mid.block_1.mix_factor" },
    { "vae", "vae-wan", 100, "decoder.middle.0.residual.0.gamma" },
    { "vae", "vae-ltx", 100,
      "decoder.up_blocks.0.res_blocks.0.conv1.conv.weight | "
      "decoder.up_blocks.9.res_blocks.0.conv1.conv.weight | decoder.last_scale_shift_table" },
    { "vae", NULL, 100, "decoder.unpatcher3d.wavelets | ^blocks.2.blocks.3.stack.5.weight" },
    { "vae", NULL, 100, "decoder.blocks.2.blocks.3.stack.5.weight" },
    { "vae", "vae-cogvideox", 100, "decoder.mid_block.resnets.0.norm1.conv_b.conv.weight" },
    { "vae", "vae-ltx", 100, "decoder.conv_in.conv.weight[*,128,...,3] ; decoder.mid_block.*" },
    { "vae", "vae-hunyuan-video", 100,
      "decoder.conv_in.conv.weight[512,16,3,3,3] ; decoder.mid.* | decoder.mid_block.*" },
    { "vae", NULL, 100, "decoder.conv_in.conv.weight ; decoder.mid.* | decoder.mid_block.*" },
    { "vae", "vae-sd", 100,
      "decoder.conv_in.weight[512,4,3,3] ; decoder.mid* | decoder.up* | encoder.* | "
      "quant_conv.weight ; !decoder.temp_conv_in.weight" },
    { "vae", "vae-flux", 100,
      "decoder.conv_in.weight[512,16,3,3] ; decoder.mid* | decoder.up* | encoder.*" },
    { "vae", "vae-flux.2", 100, "decoder.conv_in.weight[*,32,*,*] ; bn.running_mean" },
    { "vae", NULL, 100,
      "decoder.conv_in.weight ; decoder.mid.block_1.norm1.weight | "
      "decoder.up_blocks.0.resnets.0.norm1.weight | decoder.up.0.block.0.norm1.weight" },
    { "vae", NULL, 100, "decoder.layers.1.layers.0.beta" },
    { "vae", NULL, 100, "decoder.stages.1.op_list.0.main.conv.conv.bias" },
    { NULL, NULL, 0, NULL },
};

/* ── Encoders of text ── */

const sfti_signature sfti_encoder_rows[] = {
    { "text_encoder", "clip-g", 100, "text_model.encoder.layers.30.* ; !vision_model.*" },
    { "text_encoder", "clip-h", 100, "text_model.encoder.layers.22.* ; !vision_model.* ; "
                                      "!^detr_decoder.*" },
    { "text_encoder", "clip-l", 100,
      "text_model.encoder.layers.11.* ; !text_model.encoder.layers.12.* ; !vision_model.* ; "
      "text_model.encoder.layers.0.mlp.fc1.weight[*,768]" },
    { "text_encoder", NULL, 100,
      "text_model.encoder.layers.0.mlp.fc1.weight ; !vision_model.*" },
    { "text_encoder", "clip-l", 100,
      "encoder.layers.11.mlp.fc1.weight[3072,768] ; embeddings.position_embedding.weight[77,*]" },
    { "text_encoder", "clip-g", 100,
      "transformer.resblocks.30.* ; token_embedding.weight | ln_final.weight ; !visual.*" },
    { "text_encoder", "clip-h", 100,
      "transformer.resblocks.22.* ; token_embedding.weight | ln_final.weight ; !visual.*" },
    { "text_encoder", "clip-l", 100,
      "transformer.resblocks.11.* ; token_embedding.weight[49408,768] ; !visual.*" },
    { "language_model", "t5-seq2seq", 100,
      "encoder.block.0.layer.0.SelfAttention.k.weight | "
      "encoder.block.0.layer.0.SelfAttention.q.weight ; decoder.block.0.* ; !^mel_conditioner.* ; "
      "!encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight ; "
      "!encoder.block.1.layer.1.mlp.* ; !encoder.cell_2d_embedding.*" },
    { "text_encoder", "umt5", 100,
      "encoder.block.0.layer.0.SelfAttention.k.weight ; "
      "encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight | "
      "shared.weight[256384,*]" },
    { "text_encoder", "t5-xxl", 100,
      "encoder.block.23.layer.1.DenseReluDense.wi_1.weight[*,4096]" },
    { "text_encoder", "t5", 100,
      "encoder.block.0.layer.0.SelfAttention.k.weight ; !decoder.* ; "
      "!encoder.block.1.layer.1.mlp.* ; !encoder.cell_2d_embedding.*" },
    { "text_encoder", "umt5", 100,
      "blocks.0.attn.q.weight ; blocks.0.pos_embedding.embedding.weight ; token_embedding.weight" },
    { "text_encoder", NULL, 100, "encoder.layers.0.mixer.Wqkv.weight ; embeddings.*" },
    { NULL, NULL, 0, NULL },
};

/* ── Encoders of images ── */

const sfti_signature sfti_image_rows[] = {
    { "image_encoder", "siglip", 100,
      "vision_model.head.probe | vision_model.head.attention.in_proj_weight" },
    { "image_encoder", "clip-g", 100, "vision_model.encoder.layers.47.*" },
    { "image_encoder", "clip-h", 100,
      "vision_model.encoder.layers.30.* ; !vision_model.encoder.layers.0.self_attn.qkv.weight" },
    { "image_encoder", "clip-l", 100, "vision_model.encoder.layers.22.* ; "
                                      "vision_model.embeddings.class_embedding" },
    { "image_encoder", NULL, 100, "vision_model.encoder.layers.0.* ; "
                                  "vision_model.embeddings.* ; !^language_model.*" },
    { "image_encoder", "clip-g", 100, "visual.transformer.resblocks.47.*" },
    { "image_encoder", "clip-h", 100, "visual.transformer.resblocks.30.*" },
    { "image_encoder", "clip-l", 100, "visual.transformer.resblocks.22.*" },
    { "image_encoder", NULL, 100, "visual.transformer.resblocks.0.attn.in_proj_weight" },
    { "image_encoder", "dinov2", 60,
      "encoder.layer.0.layer_scale1.lambda1 | encoder.layer.23.layer_scale2.lambda1 | "
      "encoder.layer.39.layer_scale2.lambda1" },
    { NULL, NULL, 0, NULL },
};

/* ── Upscalers, detectors, sound and sight ── */

const sfti_signature sfti_other_rows[] = {
    { "upscaler", "esrgan", 100, "model.0.weight ; model.1.sub.0.RDB1.conv1.0.weight" },
    { "upscaler", "esrgan", 100,
      "conv_first.weight ; body.0.rdb1.conv1.weight ; conv_body.weight | conv_last.weight" },
    { "upscaler", "esrgan", 100, "RRDB_trunk.0.RDB1.conv1.weight ; trunk_conv.weight" },
    { "upscaler", "span", 100, "block_1.c1_r.eval_conv.weight" },
    { "upscaler", "dat", 100,
      "before_RG.1.weight ; layers.0.blocks.0.ffn.sg.norm.weight" },
    { "upscaler", "hat", 100,
      "conv_first.weight ; layers.0.residual_group.blocks.0.conv_block.cab.0.weight" },
    { "upscaler", "swin2sr", 100,
      "layers.0.residual_group.blocks.0.norm1.weight ; conv_first.weight ; "
      "patch_embed.proj.weight" },
    { "upscaler", "srformer", 100,
      "layers.0.residual_group.blocks.0.attn.aligned_relative_position_index" },
    { "upscaler", "swinir", 100,
      "layers.0.residual_group.blocks.0.norm1.weight ; conv_first.weight" },
    { "upscaler", "omnisr", 100,
      "residual_layer.0.residual_layer.0.layer.0.fn.0.weight" },
    { "upscaler", "rcan", 100, "add_mean.weight ; body.0.body.0.body.3.conv_du.0.weight" },
    { "upscaler", "plksr", 100, "feats.1.channe_mixer.0.weight" },
    { "upscaler", "realplksr", 100, "feats.1.channel_mixer.0.weight" },
    { "upscaler", "atd", 100, "layers.0.residual_group.layers.0.attn_aca.logit_scale" },
    { "upscaler", "gfpgan", 100,
      "stylegan_decoder.style_convs.0.weight ; "
      "toRGB.0.weight | stylegan_decoder.style_convs.0.modulated_conv.weight" },
    { "upscaler", "restoreformer", 100, "quantize.embedding.weight ; decoder.up.5.attn.0.*" },
    { "upscaler", "codeformer", 100, "ft_layers.0.self_attn.in_proj_weight ; position_emb" },
    { "upscaler", "restormer", 100, "encoder_level1.0.attn.qkv_dwconv.weight ; latent.0.*" },
    { "upscaler", "scunet", 100, "m_body.0.trans_block.msa.embedding_layer.weight" },
    { "upscaler", "drct", 100, "layers.0.swin1.attn.qkv.weight ; layers.0.adjust1.weight" },
    { "upscaler", "safmn", 100, "feats.0.safm.aggr.weight" },
    { "upscaler", "moesr", 100, "blocks.0.msg.gated.0.fc2.weight" },
    { "upscaler", "mosr", 100, "gblocks.1.conv.weight ; gblocks.1.fc1.weight" },
    { "upscaler", "nafnet", 100,
      "intro.weight ; middle_blks.0.beta ; ending.weight ; !encoders.0.0.b ; "
      "!middle_blks.0.qkv.weight ; !decoders.0.0.conv5.weight[*,1,*,*]" },
    { "upscaler", "realcugan", 100,
      "unet1.conv2.seblock.conv1.weight ; unet2.conv5.weight | unet2.conv_bottom.weight" },
    { "upscaler", "ditn", 100, "UFONE.0.ITLs.0.attn.qkv.weight" },
    { "upscaler", "dncnn", 100,
      "model.0.weight ; model.2.weight ; model.45.weight ; !model.1.sub.*" },
    { "upscaler", "drunet", 100,
      "m_head.weight ; m_body.0.res.0.weight ; m_up3.0.weight ; !m_body_encoder.*" },
    { "upscaler", "fbcnn", 100, "m_body_decoder.0.res.0.weight ; qf_embed.0.weight" },
    { "upscaler", "fdat", 100,
      "groups.0.blocks.0.attn.qkv.weight ; groups.0.blocks.0.inter.sg.0.*" },
    { "upscaler", "fftformer", 100, "decoder_level1.0.attn.to_hidden.weight" },
    { "upscaler", "femasr", 100,
      "multiscale_encoder.blocks.0.1.conv.3.norm.weight ; quantize_group.0.embedding.weight ; "
      "!weight_predictor.*" },
    { "upscaler", "grl", 100, "layers.0.blocks.0.attn.stripe_attn.attn_transform1.*" },
    { "upscaler", "craft", 100, "layers.0.residual_group.hf_blocks.0.attn.kv_dwconv.weight" },
    { "upscaler", "rgt", 100, "before_RG.1.weight ; layers.0.blocks.0.gamma" },
    { "upscaler", "lama", 100, "model.model.1.ffc.convl2l.weight" },
    { "upscaler", "mat", 100, "model.synthesis.first_stage.tran.0.blocks.0.attn.k.weight" },
    { "upscaler", "ddcolor", 100, "decoder.color_decoder.color_embed.layers.0.weight" },
    { "upscaler", "aurasr", 100, "downs.0.0.0.block1.proj.weights ; style_network.net.0.weight" },
    { "upscaler", "ipt", 100, "body.position_encoding.pe.weight ; body.query_embed.weight" },
    { "upscaler", "uformer", 100, "encoderlayer_0.blocks.0.attn.qkv.to_q.weight" },
    { "upscaler", "seemore", 100, "body.0.local_block.block.moe_layer.experts.0.conv_1.weight" },
    { "upscaler", "srvgg", 100,
      "body.0.weight[*,3,3,3] ; body.1.weight[*] ; body.2.weight[*,*,3,3]" },
    { "detector", "sam-3", 100,
      "detector.backbone.vision_backbone.trunk.blocks.0.attn.qkv.weight" },
    { "detector", "rt-detr", 100, "encoder.pan_blocks.1.cv4.conv.weight" },
    { "detector", "sam", 100,
      "image_encoder.patch_embed.proj.weight ; mask_decoder.iou_token.weight" },
    { "detector", "yolo", 100, "model.0.conv.weight ; model.1.conv.weight" },
    { "vision_model", "depth-anything-3", 100,
      "backbone.embeddings.patch_embeddings.projection.weight ; head.projects.0.weight" },
    { "vision_model", NULL, 100, "concept_embeds ; special_care_embeds" },
    { "vision_model", "vit", 100,
      "embeddings.patch_embeddings.projection.weight ; embeddings.cls_token ; encoder.layer.0.*" },
    { "vision_model", "vit", 100, "^vit.embeddings.patch_embeddings.projection.weight" },
    { "vision_model", "vit", 100,
      "blocks.0.attn.qkv.weight ; patch_embed.proj.weight ; cls_token" },
    { "vision_model", "swin", 60,
      "embeddings.patch_embeddings.projection.weight ; encoder.layers.0.blocks.0.*" },
    { "vision_model", "resnet", 100,
      "layer1.0.conv1.weight ; conv1.weight ; fc.weight ; !layer1.0.convs.0.weight" },
    { "audio_model", "whisper", 100,
      "encoder.conv1.weight[*,80|128,3] ; encoder.layers.0.* | decoder.embed_tokens.weight ; "
      "decoder.*" },
    { "audio_model", "whisper", 100,
      "encoder.conv1.weight[*,80|128,3] ; encoder.blocks.0.* ; decoder.*" },
    { "audio_model", "wav2vec2", 60,
      "feature_extractor.conv_layers.0.conv.weight ; encoder.layers.0.*" },
    { "audio_model", "silero-vad", 100,
      "stft_conv.weight[258|130,1,256|128] ; lstm_cell.weight_ih ; final_conv.weight[1,128,1]" },
    { NULL, NULL, 0, NULL },
};
