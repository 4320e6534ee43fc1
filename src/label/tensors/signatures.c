/* The table of architectures. Rows are tried from the first; what is more particular stands
 * before what is more general. The language of the clauses: signatures.h. */
#include "label/tensors/signatures.h"

#define UNET_IN "input_blocks.0.0.weight ; "
#define UNET_DIFFUSERS "conv_in.weight ; !controlnet_* ; !control_* ; "
#define CONTROLNET \
    "controlnet_cond_embedding.conv_in.weight ; !control_to_base_for_conv_in.weight ; "
#define ATTN2 ".transformer_blocks.0.attn2.to_k.weight"
#define FLUX_LDM \
    "double_blocks.#.img_attn.norm.key_norm.scale | " \
    "double_blocks.#.img_attn.norm.key_norm.weight ; !txt_in.individual_token_refiner.* ; "
#define FLUX_DIFFUSERS \
    "single_transformer_blocks.#.attn.norm_k.weight ; " \
    "transformer_blocks.#.attn.norm_added_k.weight ; !controlnet_* ; " \
    "!context_embedder.token_refiner.* ; "
/* The layers and the width of FLUX.1 as published: smaller ones have its names, too. */
#define FLUX_LDM_WIDTH FLUX_LDM "img_in.bias[3072] | img_in.weight[3072,*] ; "
#define FLUX_LDM_WHOLE FLUX_LDM_WIDTH "double_blocks.18.* ; single_blocks.37.* ; "
#define FLUX_DIFFUSERS_WIDTH FLUX_DIFFUSERS "x_embedder.bias[3072] | x_embedder.weight[3072,*] ; "
#define FLUX_BLOCKS "transformer_blocks.18.* ; single_transformer_blocks.37.* ; "
#define FLUX_NUNCHAKU \
    "single_transformer_blocks.#.qkv_proj.weight ; " \
    "transformer_blocks.#.qkv_proj_context.weight ; "
/* Not one that LoRAs for motion modules change. */
#define MOTION \
    "down_blocks.0.motion_modules.0.temporal_transformer.* ; " \
    "!down_blocks.0.motion_modules.0.temporal_transformer.transformer_blocks.0." \
    "attention_blocks.0.processor.* ; "
#define WAN "head.modulation ; "
#define WAN_DIFFUSERS \
    "condition_embedder.time_embedder.linear_1.weight ; patch_embedding.weight ; " \
    "blocks.#.attn2.to_k.weight ; "

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
    { "controlnet", "flux.1", 100,
      "controlnet_blocks.0.weight ; controlnet_x_embedder.weight ; context_embedder.weight" },
    { "controlnet", "hunyuan-dit", 100, "after_proj_list.18.bias" },
    { "controlnet", "z-image", 100,
      "control_all_x_embedder.2-1.weight | control_layers.14.adaLN_modulation.0.weight" },
    { "controlnet", "hunyuan-dit", 100, "controlnet_blocks.0.weight ; text_embedding_padding" },
    { "controlnet", "sana", 100,
      "controlnet_blocks.0.weight ; caption_norm.weight ; input_block.weight" },
    { "controlnet", "cosmos", 100,
      "control_blocks.0.after_proj.weight ; patch_embed_base.proj.weight" },
    { "controlnet", NULL, 100, "control_to_base_for_conv_in.weight" },
    { "controlnet", "sdxl", 100,
      CONTROLNET "down_blocks.1.attentions.0" ATTN2 "[*,2048]" },
    { "controlnet", "sd-2", 100,
      CONTROLNET "down_blocks.0.attentions.0" ATTN2 "[*,1024]" },
    { "controlnet", "sd-1", 100,
      CONTROLNET "down_blocks.0.attentions.0" ATTN2 "[*,768]" },
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

    { "ip_adapter", "flux.1-redux", 100, "redux_up.weight ; redux_down.weight" },
    { "ip_adapter", "pulid-flux", 100, "pulid_encoder.* ; pulid_ca.0.to_q.weight" },
    { "ip_adapter", "pulid", 100, "id_adapter.* ; id_adapter_attn_layers.*" },
    { "ip_adapter", "photomaker", 100,
      "visual_projection_2.weight | id_encoder.visual_projection_2.weight | "
      "pmid.visual_projection_2.weight ; fuse_module.mlp1.fc1.weight | "
      "id_encoder.fuse_module.mlp1.fc1.weight | pmid.fuse_module.mlp1.fc1.weight" },

    { "t2i_adapter", "sdxl", 60,
      "adapter.body.0.resnets.0.block1.weight ; adapter.conv_in.weight[*,768|256,*,*]" },
    { "t2i_adapter", "sd-1", 60,
      "adapter.body.0.resnets.0.block1.weight ; adapter.conv_in.weight[*,192|64,*,*]" },
    { "t2i_adapter", NULL, 100, "adapter.body.0.resnets.0.block1.weight" },
    { "t2i_adapter", "sdxl", 60,
      "body.0.in_conv.weight | body.0.block1.weight ; conv_in.weight[*,768|256,*,*]" },
    { "t2i_adapter", "sd-1", 60,
      "body.0.in_conv.weight | body.0.block1.weight ; conv_in.weight[*,192|64,*,*]" },

    { "motion_module", "sdxl", 100,
      MOTION "up_blocks.2.motion_modules.0.* ; !up_blocks.3.*" },
    { "motion_module", "sd-1", 100, MOTION "up_blocks.3.*" },
    { "motion_module", NULL, 100, MOTION "down_blocks.*" },
    { "motion_module", NULL, 100, /* of diffusers */
      "down_blocks.0.motion_modules.0.proj_in.weight ; "
      "up_blocks.0.motion_modules.0.proj_in.weight ; !conv_in.weight ; !controlnet_*" },
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
      UNET_DIFFUSERS "down_blocks.0.attentions.0" ATTN2 "[*,1024] | "
      "down_blocks.1.attentions.0" ATTN2 "[*,1024] ; up_blocks.* | mid_block.* | conv_out.weight ; "
      "!down_blocks.0.temp_attentions.* ; "
      "!down_blocks.0.attentions.0.temporal_transformer_blocks.*" },
    { "diffusion_model", "sd-1", 100,
      UNET_DIFFUSERS "down_blocks.0.attentions.0" ATTN2 "[*,768] ; !add_embedding.* ; "
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
    { "diffusion_model", "sd-3", 100, "joint_blocks.0.context_block.attn.qkv.weight" },
    { "diffusion_model", "sd-3.5-medium", 100,
      "transformer_blocks.0.attn.add_q_proj.weight ; pos_embed.proj.weight ; "
      "transformer_blocks.0.attn2.to_q.weight" },
    { "diffusion_model", "sd-3.5-large", 100,
      "transformer_blocks.0.attn.add_q_proj.weight ; pos_embed.proj.weight[2432,*,*,*]" },
    { "diffusion_model", "sd-3-medium", 100,
      "transformer_blocks.0.attn.add_q_proj.weight ; pos_embed.proj.weight[1536,*,*,*] ; "
      "!transformer_blocks.0.attn.norm_q.weight" },
    { "diffusion_model", "sd-3", 60,
      "transformer_blocks.0.attn.add_q_proj.weight ; pos_embed.proj.weight" },
    /* Stable Cascade */
    { "diffusion_model", "stable-cascade-c", 100, "clip_txt_mapper.weight ; clf.1.weight" },
    { "diffusion_model", "stable-cascade-b", 100,
      "clip_txt_pooled_mapper.weight ; effnet_mapper.0.weight ; !clip_txt_mapper.weight" },
    { "diffusion_model", "stable-cascade", 100,
      "clip_txt_pooled_mapper.weight ; embedding.1.weight" },
    { "diffusion_model", "wuerstchen-prior", 100,
      "cond_mapper.0.weight ; blocks.#.mapper.weight" },
    { "diffusion_model", "wuerstchen-diffnext", 100,
      "effnet_mappers.1.weight ; clip_mapper.weight" },
    { "diffusion_model", "stable-cascade-b", 60,
      "clip_mapper.weight ; clf.1.weight ; !effnet_mappers.*" },
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
      "txt_in.individual_token_refiner.blocks.0.adaLN_modulation.1.bias ; !byt5_in.* ; "
      "!vision_in.* ; !time_r_in.*" },
    { "diffusion_model", "hunyuan-video-1.5", 100,
      "context_embedder.token_refiner.* ; cond_type_embed.weight" },
    { "diffusion_model", "hunyuan-image-2.1", 100,
      "context_embedder.token_refiner.* ; time_guidance_embed.*" },
    { "diffusion_model", "hunyuan-video", 100,
      "context_embedder.token_refiner.* ; transformer_blocks.0.* ; !cond_type_embed.* ; "
      "!time_guidance_embed.*" },
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
    { "diffusion_model", "flux.1-dev", 100, FLUX_LDM_WHOLE "guidance_in.in_layer.weight" },
    { "diffusion_model", "flux.1-schnell", 100, FLUX_LDM_WHOLE "vector_in.* ; !guidance_in.*" },
    { "diffusion_model", "flux.1", 100, FLUX_LDM_WIDTH "vector_in.*" },
    { "diffusion_model", "flux.1", 60, FLUX_LDM "!distilled_guidance_layer.*" },
    { "diffusion_model", "flux.1-dev", 100,
      FLUX_DIFFUSERS_WIDTH FLUX_BLOCKS "time_text_embed.guidance_embedder.linear_1.weight ; "
                                       "!context_embedder.proj_in.weight" },
    { "diffusion_model", "flux.1-schnell", 100,
      FLUX_DIFFUSERS_WIDTH FLUX_BLOCKS "time_text_embed.* ; "
                                       "!time_text_embed.guidance_embedder.*" },
    { "diffusion_model", "flux.1", 100,
      FLUX_DIFFUSERS_WIDTH "time_text_embed.* ; !context_embedder.proj_in.weight" },
    { "diffusion_model", "flux.1", 60,
      FLUX_DIFFUSERS "x_embedder.weight ; time_text_embed.* ; !context_embedder.proj_in.weight" },
    { "diffusion_model", "longcat-image", 100,
      FLUX_DIFFUSERS "time_embed.timestep_embedder.linear_1.weight ; "
                     "context_embedder.weight[*,3584]" },
    { "diffusion_model", "ovis-image", 100, FLUX_DIFFUSERS "context_embedder_norm.weight" },
    { "diffusion_model", "bria-fibo", 100,
      FLUX_DIFFUSERS "time_embed.timestep_embedder.linear_1.weight ; "
                     "caption_projection.0.linear.weight" },
    { "diffusion_model", "bria", 100,
      FLUX_DIFFUSERS "time_embed.timestep_embedder.linear_1.weight ; "
                     "context_embedder.weight[*,4096] ; !caption_projection.* ; "
                     "!time_embed.text_embedder.*" },
    { "diffusion_model", "flux.1", 60, FLUX_DIFFUSERS "!time_text_embed.* ; !time_embed.*" },
    { "diffusion_model", "flux.1-dev", 100,
      FLUX_NUNCHAKU FLUX_BLOCKS "time_text_embed.guidance_embedder.linear_1.weight" },
    { "diffusion_model", "flux.1-schnell", 100,
      FLUX_NUNCHAKU FLUX_BLOCKS "x_embedder.weight ; time_text_embed.* ; "
                                "!time_text_embed.guidance_embedder.*" },
    { "diffusion_model", "flux.1", 60, FLUX_NUNCHAKU "x_embedder.weight | !time_text_embed.*" },
    /* Qwen-Image and what resembles it */
    { "diffusion_model", "mage-flow", 100, "txt_norm.weight[2560] ; transformer_blocks.*" },
    { "diffusion_model", "qwen-image", 100,
      "txt_norm.weight[3584] ; transformer_blocks.* ; !transformer_blocks.#.encoder_proj.weight ; "
      "!transformer_blocks.#.img_mlp.gate.weight" },
    { "diffusion_model", "qwen-image-2.1", 100, "txt_in.text_norm.weight ; modulation.1.weight" },
    /* PixArt, Hunyuan-DiT */
    { "diffusion_model", "pixart-alpha", 100,
      "t_block.1.weight ; ar_embedder.mlp.0.weight | y_embedder.y_embedding[120,*]" },
    { "diffusion_model", "pixart-sigma", 100, "t_block.1.weight ; !plucker_embedder.*" },
    { "diffusion_model", "pixart-alpha", 100,
      "adaln_single.emb.timestep_embedder.linear_1.bias ; pos_embed.proj.bias ; "
      "adaln_single.emb.resolution_embedder.linear_1.weight" },
    { "diffusion_model", "allegro", 100,
      "adaln_single.emb.timestep_embedder.linear_1.weight[2304,*] ; pos_embed.proj.weight ; "
      "caption_projection.linear_1.weight" },
    { "diffusion_model", "latte", 100,
      "temporal_transformer_blocks.0.attn1.to_q.weight ; adaln_single.linear.weight" },
    { "diffusion_model", "pixart-sigma", 60,
      "adaln_single.emb.timestep_embedder.linear_1.bias ; pos_embed.proj.bias ; "
      "!temporal_transformer_blocks.*" },
    { "diffusion_model", "hunyuan-dit", 100, "mlp_t5.0.weight" },
    { "diffusion_model", "hunyuan-dit", 100,
      "text_embedding_padding ; blocks.#.skip_norm.weight" },
    /* Wan */
    { "diffusion_model", "wan-2.2", 100, WAN "head.head.weight[192,*]" },
    { "diffusion_model", "wan-2.2", 100,
      WAN "face_adapter.fuser_blocks.0.k_norm.weight | casual_audio_encoder.*" },
    { "diffusion_model", "wan-animate-2", 100, WAN "blocks.#.cross_attn.add_k_proj.weight" },
    { "diffusion_model", "wan-2.1", 100,
      WAN "img_emb.proj.0.bias ; !face_adapter.* ; !blocks.#.cross_attn.add_k_proj.weight" },
    { "diffusion_model", "wan-2.1", 100, WAN "patch_embedding.weight[1536,*,*,*,*]" },
    { "diffusion_model", "wan-2.2", 100,
      WAN "patch_embedding.weight[5120,36,*,*,*] ; !vace_patch_embedding.weight ; "
          "!control_adapter.* ; !ref_conv.* ; !img_emb.*" },
    { "diffusion_model", "wan", 100, WAN "blocks.*" },
    { "diffusion_model", "wan-2.2", 100, WAN_DIFFUSERS "proj_out.weight[192,*]" },
    { "diffusion_model", "wan-2.2", 100, WAN_DIFFUSERS "face_adapter.*" },
    { "diffusion_model", "wan-2.1", 100,
      WAN_DIFFUSERS "condition_embedder.image_embedder.* ; !face_adapter.*" },
    { "diffusion_model", "wan-2.1", 100,
      WAN_DIFFUSERS "patch_embedding.weight[1536,*,*,*,*]" },
    { "diffusion_model", "wan-2.2", 100,
      WAN_DIFFUSERS "patch_embedding.weight[5120,36,*,*,*] ; "
                    "!condition_embedder.image_embedder.*" },
    { "diffusion_model", "wan", 100, WAN_DIFFUSERS "blocks.#.ffn.net.0.proj.weight" },
    /* LTX */
    { "diffusion_model", "ltx-2", 100,
      "audio_adaln_single.linear.weight | "
      "transformer_blocks.#.audio_to_video_attn.k_norm.weight | "
      "av_ca_a2v_gate_adaln_single.emb.timestep_embedder.linear_1.weight" },
    { "diffusion_model", "ltx-2", 100,
      "av_cross_attn_video_scale_shift.linear.weight ; audio_proj_in.weight" },
    { "diffusion_model", "ltx-video", 100,
      "time_embed.emb.timestep_embedder.linear_1.weight ; proj_in.weight[*,128] ; "
      "transformer_blocks.0.attn2.norm_k.weight ; !audio_proj_in.weight" },
    { "diffusion_model", "ltx-video", 100,
      "adaln_single.emb.timestep_embedder.linear_1.bias ; !pos_embed.* ; "
      "patchify_proj.weight | proj_in.weight | transformer_blocks.#.attn2.to_k.weight" },
    /* Cosmos */
    { "diffusion_model", "cosmos-1", 100,
      "blocks.block0.blocks.0.block.attn.to_q.0.weight | "
      "blocks.block1.blocks.0.block.attn.to_q.0.weight" },
    { "diffusion_model", "cosmos-3", 100,
      "layers.#.mlp_moe_gen.up_proj.weight ; layers.#.self_attn.add_q_proj.weight" },
    { "diffusion_model", "cosmos-1", 100,
      "transformer_blocks.0.norm1.linear_1.weight ; learnable_pos_embed.pos_emb_h" },
    { "diffusion_model", "cosmos-predict2", 100,
      "transformer_blocks.0.norm1.linear_1.weight ; patch_embed.proj.weight ; "
      "!learnable_pos_embed.* ; !crossattn_proj.*" },
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
      "time_caption_embed.timestep_embedder.linear_1.bias ; "
      "image_index_embedding | ref_image_patch_embedder.weight" },
    /* and the others */
    { "diffusion_model", "auraflow", 100,
      "double_layers.0.attn.w1q.weight ; cond_seq_linear.weight | positional_encoding" },
    { "diffusion_model", "auraflow", 100,
      "joint_transformer_blocks.0.attn.add_k_proj.weight" },
    { "diffusion_model", "mochi", 100, "pos_frequencies ; time_embed.pooler.to_kv.weight" },
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
    { "diffusion_model", "kandinsky-6", 100,
      "video_text_transformer_blocks.0.attn.to_key.weight ; "
      "audio_out_layer.out_layer.weight" },
    { "diffusion_model", "kandinsky-6-sr", 100,
      "pooled_bias ; visual_transformer_blocks.0.feed_forward.net.0.proj.weight" },
    { "diffusion_model", "kandinsky-3", 100,
      "encoder_hid_proj.projection_linear.weight ; add_time_condition.attention.to_k.weight" },
    { "diffusion_model", "kandinsky-5", 100,
      "visual_transformer_blocks.0.cross_attention.key_norm.weight" },
    { "diffusion_model", "ideogram-4", 100, "embed_image_indicator.weight" },
    { "diffusion_model", "krea-2", 100, "time_mod_proj.weight ; text_fusion.projector.weight" },
    { "diffusion_model", "krea-2", 100, "txtfusion.projector.weight" },
    { "diffusion_model", "ernie-image", 100, "layers.0.adaLN_sa_ln.weight" },
    { "diffusion_model", "minimax-h3", 100,
      "token_refiner.final_norm.weight ; transformer_blocks.0.adaln_proj.linear.weight" },
    { "diffusion_model", "minimax-h3", 100, "video_patch_proj.weight ; audio_patch_proj.weight" },
    { "diffusion_model", "seedvr2", 100,
      "blocks.31.mlp.all.proj_in_gate.weight | blocks.35.mlp.all.proj_in_gate.weight | "
      "blocks.31.mlp.vid.proj_in_gate.weight | blocks.35.mlp.vid.proj_in_gate.weight" },
    { "diffusion_model", "stable-audio", 100,
      "timestep_proj.0.weight ; cross_attention_proj.0.weight" },
    { "diffusion_model", "stable-audio-3", 100, "to_timestep_embed.0.weight ; memory_tokens" },
    { "diffusion_model", "stable-audio", 100, "transformer.rotary_pos_emb.inv_freq" },
    { "diffusion_model", "ace-step", 100, "proj_in_conv.weight ; time_embed_r.linear_1.weight" },
    { "diffusion_model", "ace-step", 100,
      "genre_embedder.weight | encoder.lyric_encoder.layers.0.input_layernorm.weight" },
    { "diffusion_model", "hunyuan-3d", 100,
      "latent_in.weight ; double_blocks.0.* | single_blocks.0.* | cond_in.weight" },
    { "diffusion_model", "hunyuan-3d", 100,
      "t_embedder.mlp.2.weight ; blocks.0.attn1.k_norm.weight" },
    { "diffusion_model", "flux.3", 100,
      "x_embedders.image.weight ; txt_mode_blocks.0.attn.to_q.weight" },
    { "diffusion_model", "bria-fibo-2", 100,
      "perceiver.latent_queries ; layers.0.cross_attn_gate" },
    { "diffusion_model", "glm-image", 100,
      "glyph_projector.net.0.proj.weight ; prior_token_embedding.weight" },
    { "diffusion_model", "cogview4", 100,
      "time_condition_embed.condition_embedder.linear_1.weight ; "
      "patch_embed.proj.weight[4096,*]" },
    { "diffusion_model", "cogview-3", 60,
      "time_condition_embed.condition_embedder.linear_1.weight ; "
      "patch_embed.proj.weight[2560,*]" },
    { "diffusion_model", "prx", 100,
      "blocks.0.img_qkv_proj.weight ; blocks.0.txt_kv_proj.weight" },
    { "diffusion_model", "omnigen", 100,
      "time_token.linear_1.weight ; patch_embedding.output_image_proj.weight" },
    { "diffusion_model", "lumina-next", 100,
      "layers.0.attn2.to_k.weight ; layers.0.gate ; pad_token" },
    { "diffusion_model", "helios", 100, "patch_short.weight ; patch_long.weight" },
    { "diffusion_model", "anyflow", 100,
      "far_patch_embedding.weight ; condition_embedder.time_embedder.linear_1.weight" },
    { "diffusion_model", "easyanimate", 100,
      "transformer_blocks.0.txt_ff.net.2.weight ; "
      "transformer_blocks.0.attn1.add_q_proj.weight" },
    { "diffusion_model", "motif-video", 100,
      "context_embedder.linear_1.weight ; single_transformer_blocks.0.*" },
    { "diffusion_model", "nucleus-moe-image", 100,
      "transformer_blocks.#.encoder_proj.weight ; time_text_embed.norm.weight" },
    { "diffusion_model", "sana-wm", 100,
      "raymap_embedder.proj.weight ; blocks.#.attn.recall_gate" },
    { "diffusion_model", "i2vgen-xl", 100,
      "image_latents_proj_in.0.weight ; fps_embedding.0.weight" },
    { "diffusion_model", "dreamlite", 100,
      "mid_block.resnets.0.conv1.depthwise.weight ; conv_in.weight" },
    { "diffusion_model", "amused", 100, "mlm_layer.conv1.weight ; embed.conv.weight" },
    { "diffusion_model", "unidiffuser", 100,
      "clip_img_in.weight ; text_in.weight ; vae_img_out.weight" },
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
    { "wan*", "1.3b", "patch_embedding.weight[1536,*,*,*,*] ; blocks.29.*" },
    { "wan*", "14b", "patch_embedding.weight[5120,*,*,*,*] ; blocks.39.*" },
    { "wan*", "5b", "patch_embedding.weight[3072,*,*,*,*] ; blocks.29.*" },
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
