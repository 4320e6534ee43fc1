/* Parts of diffusion models: autoencoders, encoders of text and of images. Clauses as in
 * signatures.h. */
#include "label/tensors/signatures.h"

/* ── Autoencoders ── */

const sfti_signature sfti_vae_rows[] = {
    { "vae", "stable-cascade-a", 100, "vquantizer.codebook.weight" },
    { "vae", "stable-cascade-a", 100,
      "vquantizer.embedding.weight ; in_block.1.weight ; up_blocks.0.0.weight" },
    { "vae", "taesd", 100, "taesd_decoder.1.weight | taesd_encoder.0.weight" },
    { "vae", "taesd", 100,
      "decoder.layers.0.weight[64,4|16,3,3] ; encoder.layers.0.weight[64,3,3,3]" },
    { "vae", "vae-svd", 100, "decoder.mid.block_1.mix_factor" },
    { "vae", "vae-svd", 100,
      "decoder.time_conv_out.weight ; decoder.mid_block.resnets.0.time_mixer.mix_factor" },
    { "vae", "vae-wan-2.2", 100,
      "decoder.middle.0.residual.0.gamma ; decoder.conv1.weight[1024,48,...,3]" },
    { "vae", "vae-wan", 100,
      "decoder.middle.0.residual.0.gamma ; !decoder.conv1.weight[1024,48,...,3]" },
    { "vae", "vae-wan-2.2", 100,
      "decoder.mid_block.resnets.0.norm1.gamma ; decoder.conv_in.weight[1024,48,...,3]" },
    { "vae", "vae-qwen-image-2.1", 100,
      "decoder.mid_block.resnets.0.norm1.gamma ; decoder.conv_in.weight[1152,64,3,3]" },
    { "vae", "vae-wan", 100,
      "decoder.mid_block.resnets.0.norm1.gamma ; decoder.conv_in.weight[384,16,...,3] ; "
      "post_quant_conv.weight[16,16,...,1]" },
    { "vae", "dc-ae", 100,
      "decoder.up_blocks.0.0.conv.weight ; encoder.down_blocks.0.0.conv1.weight" },
    { "vae", "vae-cosmos", 100, "encoder.conv_in.conv_s.weight ; decoder.conv_in.conv_t.weight" },
    { "vae", "vae-mochi", 100, "encoder.proj_in.weight ; decoder.up_blocks.0.proj.weight" },
    { "vae", "vae-allegro", 100, "encoder.temp_conv_in.weight ; decoder.temp_conv_in.weight" },
    { "vae", "vae-magvit", 100,
      "decoder.mid_block.convs.0.norm1.weight ; encoder.mid_block.convs.0.norm1.weight" },
    { "vae", "vae-hunyuan-image", 100,
      "decoder.up_blocks.3.conv.weight ; encoder.down_blocks.2.conv.weight" },
    { "vae", "vae-hunyuan-video-1.5", 60,
      "decoder.norm_out.gamma ; decoder.conv_in.conv.weight[1024,32,3,3,3]" },
    { "vae", "vae-stable-audio", 100,
      "encoder.conv1.weight_v ; decoder.block.0.snake1.alpha ; encoder.snake1.beta" },
    { "vae", "vae-same", 100,
      "bottleneck.running_std ; encoder.proj.weight ; decoder.proj.weight" },
    { "vae", "mmaudio-vae", 100, "vae.data_mean ; mel_converter.mel_basis" },
    { "vae", "ace-step-audio-tokenizer", 100,
      "attention_pooler.special_token ; audio_acoustic_proj.weight" },
    { "vae", "ace-step-audio-token-detokenizer", 100,
      "special_tokens ; proj_out.weight ; layers.0.*" },
    { "vae", "vae-minimax-h3", 100,
      "decoder.register_tokens ; decoder.proj_in.weight ; decoder.transformer_blocks.0.*" },
    { "vae", "vae-ltx", 100,
      "decoder.up_blocks.0.res_blocks.0.conv1.conv.weight | "
      "decoder.up_blocks.9.res_blocks.0.conv1.conv.weight | decoder.last_scale_shift_table" },
    { "vae", "vae-cosmos", 100, "decoder.unpatcher3d.wavelets" },
    { "vae", "vae-mochi", 100,
      "^blocks.2.blocks.3.stack.5.weight | decoder.blocks.2.blocks.3.stack.5.weight" },
    { "vae", "vae-ltx-2", 100,
      "decoder.conv_in.conv.weight[1024,128,...,3] ; decoder.mid_block.* ; latents_mean" },
    { "vae", "vae-cogvideox", 100, "decoder.mid_block.resnets.0.norm1.conv_b.conv.weight" },
    { "vae", "vae-ltx", 100, "decoder.conv_in.conv.weight[*,128,...,3] ; decoder.mid_block.*" },
    { "vae", "vae-hunyuan-video", 100,
      "decoder.conv_in.conv.weight[512,16,3,3,3] ; decoder.mid.* | decoder.mid_block.* ; "
      "!decoder.mid_block.resnets.0.norm1.conv_y.conv.weight ; "
      "!decoder.mid_block.resnets.0.norm1.conv_b.conv.weight" },
    { "vae", NULL, 100, "decoder.conv_in.conv.weight ; decoder.mid.* | decoder.mid_block.*" },
    { "vae", "vae-sd", 100,
      "decoder.conv_in.weight[512,4,3,3] ; decoder.mid* | decoder.up* | encoder.* | "
      "quant_conv.weight ; !decoder.temp_conv_in.weight ; !encoder.temp_conv_in.weight" },
    { "vae", "vae-flux", 100,
      "decoder.conv_in.weight[512,16,3,3] ; decoder.mid* | decoder.up* | encoder.*" },
    { "vae", "vae-flux.2", 100, "decoder.conv_in.weight[*,32,*,*] ; bn.running_mean" },
    { "vae", NULL, 100,
      "decoder.conv_in.weight ; decoder.mid.block_1.norm1.weight | "
      "decoder.up_blocks.0.resnets.0.norm1.weight | decoder.up.0.block.0.norm1.weight" },
    { "vae", "vae-stable-audio", 60, "decoder.layers.1.layers.0.beta" },
    { "vae", "dc-ae", 100, "decoder.stages.1.op_list.0.main.conv.conv.bias" },
    { NULL, NULL, 0, NULL },
};

/* ── Encoders of text ── */

const sfti_signature sfti_encoder_rows[] = {
    { "text_encoder", "clip-g", 100, "text_model.encoder.layers.30.* ; !vision_model.*" },
    { "text_encoder", "clip-h", 100,
      "text_model.encoder.layers.22.* ; !text_model.encoder.layers.24.* ; !vision_model.* ; "
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
      "transformer.resblocks.22.* ; !transformer.resblocks.24.* ; "
      "token_embedding.weight | ln_final.weight ; !visual.*" },
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
      "encoder.block.23.layer.1.DenseReluDense.wi_1.weight[*,4096] ; "
      "!encoder.block.1.layer.0.SelfAttention.relative_attention_bias.weight" },
    { "text_encoder", "t5", 100,
      "encoder.block.0.layer.0.SelfAttention.k.weight ; !decoder.* ; !^decoder.* ; "
      "!encoder.block.1.layer.1.mlp.* ; !encoder.cell_2d_embedding.*" },
    { "text_encoder", "umt5", 100,
      "blocks.0.attn.q.weight ; blocks.0.pos_embedding.embedding.weight ; token_embedding.weight" },
    { "text_encoder", "ace-step-condition-encoder", 100, "silence_latent ; null_condition_emb" },
    { "text_encoder", "ltx-2-text-connectors", 100,
      "video_connector.learnable_registers ; text_proj_in.weight" },
    { "text_encoder", NULL, 100, "encoder.layers.0.mixer.Wqkv.weight ; embeddings.*" },
    { NULL, NULL, 0, NULL },
};

/* ── Encoders of images ── */

/* No part of a model of language. */
#define VISION_ALONE \
    "!^language_model.* ; !^model.language_model.* ; !^model.layers.* ; !^layers.* ; " \
    "!^qformer.* ; !^model.text_model.layers.* ; !^text_model.layers.*"
#define CLIP_VISION \
    "vision_model.embeddings.class_embedding ; " \
    "!vision_model.encoder.layers.0.self_attn.qkv.weight ; "

const sfti_signature sfti_image_rows[] = {
    { "image_encoder", "siglip", 100,
      "vision_model.head.probe | vision_model.head.attention.in_proj_weight ; " VISION_ALONE },
    { "image_encoder", "clip-g", 100,
      "vision_model.encoder.layers.47.* ; " CLIP_VISION VISION_ALONE },
    { "image_encoder", "clip-h", 100,
      "vision_model.encoder.layers.30.* ; !vision_model.encoder.layers.32.* ; "
      CLIP_VISION VISION_ALONE },
    { "image_encoder", "clip-l", 100,
      "vision_model.encoder.layers.22.* ; !vision_model.encoder.layers.24.* ; "
      CLIP_VISION VISION_ALONE },
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
