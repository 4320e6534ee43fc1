/* How a model is built, where several models are built so: its family. Clauses as in
 * targets.c; a model's tensors are looked at by their names without ".weight". */
#include "label/tensors/adapters.h"

#include <string.h>

#define EXPERTS \
    "layers_#_experts_ | mlp_experts_ | feed_forward_experts_ | block_sparse_moe_ | " \
    "mlp_shared_expert | moe_experts_ | layers_#_moe_"

/* In all its layers, none of another kind between them. */
#define LLAMA_ATTENTION \
    "layers_#_self_attn_q_proj$[each] | layers_#_self_attn_qkv_proj$[each] ; " \
    "layers_#_self_attn_o_proj$[each] | layers_#_self_attn_out_proj$[each] ; "

#define TIMED \
    "timestep_embedder | time_embed | t_embedder | time_proj | time_text_embed | t_embedding | " \
    "time_emb_proj | adaln | adaLN | norm1_linear | norm1_emb | scale_shift_table"

/* The names of diffusers, and those of the first U-Nets, which most LoRAs for SDXL have. */
#define DOWN_BLOCKS "down_blocks_# | input_blocks_# ; "
#define UP_BLOCKS "up_blocks_# | output_blocks_# ; "

#define DIT_BLOCKS \
    "blocks_#_attn | blocks_#_self_attn | blocks_#_cross_attn | blocks_#_self_attention | " \
    "blocks_#_attention_img_qkv | ^double_stream_blocks_#_block_attn1 | " \
    "layers_#_attention_to_ | layers_#_attn_to_ | layers_#_self_attn_to_ | " \
    "layers_#_self_attention_to_ | layers_#_attn1_to_ ; " \
    "!down_block | input_blocks_# | middle_block_# | output_blocks_# ; " \
    "!temporal_attn ; "

#define SIGHT "vision | visual | image_ | pixel | patch_embed | patch_conv"
#define LANGUAGE \
    "language_model | embed_tokens | lm_head | text_model | text_encoder | text_decoder | " \
    "word_embeddings | qformer | wte"

#define CONVNET \
    "conv | features_# ; !attn | attention | qkv | q_proj | query | to_q | to_k | queries | " \
    "lstm | rnn | mixer | self_att | mlp_tokens | embed_tokens | word_embeddings"

#define MODELS SFTI_OF_MODELS, 100
#define ADAPTERS SFTI_OF_ADAPTERS, 60
#define FOR_BOTH SFTI_OF_MODELS | SFTI_OF_ADAPTERS, 100

/* The first that holds. Its kind is a guess at 60, where nothing better is known. */
const sfti_structure sfti_structure_rows[] = {
    /* of images and video */
    { "flux", "diffusion_model",
      "^transformer_blocks_#_ | ^transformer_transformer_blocks_#_ ; "
      "single_transformer_blocks_#_", FOR_BOTH },
    { "wan", "diffusion_model",
      "^blocks_#_attn1_to_q$ ; ^blocks_#_attn2_to_k$ ; ^blocks_#_ffn_net_#_proj$ ; "
      "^condition_embedder_time_embedder_ ; ^scale_shift_table$", MODELS },
    { "autoencoder", "vae",
      "^decoder_ ; ^encoder_ ; !self_attn_q_proj ; "
      "^decoder_conv | ^decoder_up_blocks_ | ^decoder_up_#_ | ^decoder_block_#_conv", MODELS },
    { "unet", "diffusion_model",
      DOWN_BLOCKS UP_BLOCKS "_attn1_ | _attn2_ | _attentions_# | _attention_ ; "
      "time_emb | time_proj | timestep | t_embed", MODELS },
    { "unet", NULL,
      DOWN_BLOCKS UP_BLOCKS "_attn1_ | _attn2_ | _attentions_# | _attention_", ADAPTERS },
    { "dit", "diffusion_model", DIT_BLOCKS TIMED, MODELS },
    { "dit", NULL, DIT_BLOCKS "_to_q$ | _to_k$ | _to_v$ | " TIMED, ADAPTERS },
    /* of language */
    { "mla-like", "language_model",
      "layers_#_self_attn_kv_a_proj_with_mqa$[each] ; layers_#_self_attn_kv_b_proj$[each] ; "
      "layers_#_self_attn_o_proj$[each]", MODELS },
    { "moe-llama-like", "language_model",
      LLAMA_ATTENTION EXPERTS " ; !encoder_layers_#_ffn_experts ; !self_attn_#_ ; "
      "!layers_#_self_attn_kv_a_proj_with_mqa", MODELS },
    { "llama-like", "language_model",
      LLAMA_ATTENTION "layers_#_mlp_gate_proj$[each] | layers_#_mlp_gate_up_proj$[each] ; "
      "layers_#_mlp_down_proj$[each] ; !" EXPERTS, MODELS },
    { "llama-like", "language_model",
      "layers_#_self_attn_q_proj$ ; layers_#_mlp_gate_proj ; layers_#_mlp_down_proj ; !"
      EXPERTS, ADAPTERS },
    { "bart-like", NULL,
      "encoder_layers_#_self_attn_q_proj ; decoder_layers_#_encoder_attn_q_proj ; "
      "decoder_layers_#_fc1", MODELS },
    { "t5-like", NULL, "coder_block_#_layer_#_SelfAttention_q", FOR_BOTH },
    { "bert-like", "language_model",
      "encoder_layer_#_attention_self_query | encoder_layers_#_attention_self_query ; "
      "encoder_layer_#_intermediate_dense | encoder_layers_#_intermediate_dense ; !" SIGHT,
      FOR_BOTH },
    { "gpt-2-like", NULL, "h_#_attn_c_attn | h_#_mlp_c_fc", FOR_BOTH },
    { "mamba-like", "language_model", "mixer_in_proj ; mixer_A_log | mixer_conv1d", FOR_BOTH },
    /* of sight */
    { "clip-like", NULL,
      "text_model_encoder_layers_#_self_attn_q_proj | "
      "vision_model_encoder_layers_#_self_attn_q_proj ; mlp_fc1 ; "
      "!language_model | lm_head | qformer | text_model_layers_#_", MODELS },
    { "vit", "vision_model",
      "patch_embed | patch_embedding ; "
      "blocks_#_attn | layers_#_attn | layer_#_attention | layers_#_attention | "
      "layers_#_self_attn | resblocks_#_attn | blocks_#_self_attn | blocks_#_attention ; "
      "!queries_keys_values ; !network_#_ ; !timestep | time_embed | t_embedder | vace_ ; "
      "!" LANGUAGE,
      MODELS },
    { "swin-like", NULL, "relative_position_bias_table ; attn_qkv$ | attention_self_query",
      MODELS },
    { "convnet", "vision_model",
      CONVNET " ; ^fc$ | ^classifier$ | ^head_fc$ | ^head_linear$ | ^last_linear$", MODELS },
    { "convnet", NULL, CONVNET, MODELS },
    { NULL, NULL, NULL, 0, 0 },
};

/* What no model of the kind has, but others that have one in them. */
static const struct excess_row {
    const char *kind, *clauses; /* kind NULL ends the table */
} excess_rows[] = {
    { "image_encoder",
      "text_model_layers_#_ | language_model | qformer | text_decoder | embed_tokens | lm_head | "
      "word_embeddings | ^decoder_" },
    { "text_encoder", "^decoder_ | audio_encoder" },
    { "diffusion_model",
      "^base_model_model_ | controlnet_ | control_ | motion_modules | ^decoder_ | ^encoder_ | "
      "decoderlayer_ | language | lm_head | embed_tokens | qformer | quantizer | "
      "special_tokens | ^visual_blocks | ^thinker_ | structure_attention | ^input_linear" },
    { "vae", "^quantize_embedding[out=1024]" },
    { "vision_model",
      "^decoder_ | patch_embeddings_projection[in=1] | audio | spectrogram | acoustic | mel_ | "
      "text_ | language | lm_head | embed_tokens | word_embeddings | embed_out | wte | merger_ | "
      "spatial_linear | time_caption | ^ln$ | post_proj_norm" },
    { "language_model",
      "^base_model_model_ | bbox | feature_extractor | embed_audio_tokens | acoustic | speech | "
      "input_ff_layer | dac_encoder | mel_conditioner | encoder_conv | encoder_subsampling | "
      "input_projection | encoder_embedder | ^weight$ | wte[out=513]" },
    /* a part of more without its head may be anything */
    { "language_model",
      "vision | visual | audio | image_ | speech | qformer ; !lm_head | score" },
    { NULL, NULL },
};

bool sfti_structure_holds(const sfti_structure *row, const sfti_forms *forms, bool adapter) {
    return (row->of & (adapter ? SFTI_OF_ADAPTERS : SFTI_OF_MODELS))
        && sfti_forms_hold(forms, row->clauses);
}

const char *sfti_forms_family(const sfti_forms *forms, bool adapter) {
    const sfti_structure *row = sfti_structure_rows;
    while (row->family && !sfti_structure_holds(row, forms, adapter)) row++;
    sfti_add_tensor_fact(forms->info, SFT_FACT_FAMILY, row->family, row->trust);
    return row->kind && !sfti_forms_exceed(forms, row->kind) ? row->kind : NULL;
}

bool sfti_forms_exceed(const sfti_forms *forms, const char *kind) {
    for (const struct excess_row *row = excess_rows; row->kind; row++)
        if (strcmp(row->kind, kind) == 0 && sfti_forms_hold(forms, row->clauses)) return true;
    return false;
}
