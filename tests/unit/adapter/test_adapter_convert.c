/* Adapters under other names: what is written, value by value, and what is refused. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/adapter_spell.h"

#define KOHYA SFT_ADAPTER_KOHYA
#define PEFT SFT_ADAPTER_PEFT
#define DIFFUSERS SFT_ADAPTER_DIFFUSERS
#define COMFY SFT_ADAPTER_COMFY

/* Up and down of rank 1 for 6 x 2, and for 2 x 2. */
#define UP6 ".lora_up.weight F32 6,1 1 2 3 4 5 6;"
#define DOWN2 ".lora_down.weight F32 1,2 10 20;"
#define UP2 ".lora_up.weight F32 2,1 1 2;"
#define B2 ".lora_B.weight F32 2,1 1 2;"
#define A2 ".lora_A.weight F32 1,2 10 20;"
#define QKV "lora_unet_double_blocks_0_img_attn_qkv"
#define ATTN "transformer.transformer_blocks.0.attn"
#define ADALN "lora_unet_final_layer_adaLN_modulation_1"

typedef struct convert_case {
    const char *what, *architecture;
    sft_adapter_format to;
    const char *adapter, *config;
    sft_code code;
    const char *want; /* the tensors, or words of the message */
} convert_case;

static sft_code convert(const void *ctx, const sft_allocator *alloc, char *out, size_t cap,
                        sft_error *err) {
    const convert_case *one = ctx;
    test_file f = spell_file(one->adapter);
    sft_set *set = adapter_set(&f, NULL);
    sft_adapter_conversion_options how = SFT_ADAPTER_CONVERSION_OPTIONS_INIT;
    sft_adapter_conversion *made;
    sft_buffer file = { 0 };
    how.to = one->to;
    how.architecture = one->architecture;
    how.alloc = alloc;
    if (one->config) how.config = sft_span_cstr(one->config);
    assert_non_null(set);
    sft_code code = sft_adapter_conversion_new(set, &how, &made, err);
    if (!code) code = sft_adapter_conversion_save(made, sft_sink_memory(&file), NULL, err);
    if (!code) spell_buffer(&file, out, cap);
    sft_adapter_conversion_free(made);
    sft_buffer_free(&file);
    sft_set_close(set);
    free_file(&f);
    return code;
}

static void check(const convert_case *cases, size_t count) {
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong += !spell_case(i, convert, &cases[i], cases[i].what, cases[i].code, cases[i].want);
    assert_int_equal(wrong, 0);
}

static void renames(void **unused) {
    (void)unused;
    static const convert_case cases[] = {
        { "halves change places", "flux.1", DIFFUSERS,
          ADALN ".lora_up.weight F32 4,1 1 2 3 4;" ADALN DOWN2, NULL, SFT_OK,
          "transformer.norm_out.linear.lora_A.weight F32 1,2 10 20; "
          "transformer.norm_out.linear.lora_B.weight F32 4,1 3 4 1 2" },
        { "and so does a bias", "flux.1", DIFFUSERS,
          "diffusion_model.final_layer.adaLN_modulation.1.lora_B.weight F32 4,1 1 2 3 4;"
          "diffusion_model.final_layer.adaLN_modulation.1.lora_B.bias F32 4 1 2 3 4;"
          "diffusion_model.final_layer.adaLN_modulation.1.lora_A.weight F32 1,2 10 20", NULL,
          SFT_OK,
          "transformer.norm_out.linear.lora_A.weight F32 1,2 10 20; "
          "transformer.norm_out.linear.lora_B.bias F32 4 3 4 1 2; "
          "transformer.norm_out.linear.lora_B.weight F32 4,1 3 4 1 2" },
        { "and the difference of one", "flux.1", KOHYA,
          "transformer.norm_out.linear.lora_B.weight F32 4,1 1 2 3 4;"
          "transformer.norm_out.linear.diff_b F32 4 1 2 3 4;"
          "transformer.norm_out.linear.lora_A.weight F32 1,2 10 20", NULL, SFT_OK,
          "lora_unet_final_layer_adaLN_modulation_1.diff_b F32 4 3 4 1 2; "
          "lora_unet_final_layer_adaLN_modulation_1.lora_down.weight F32 1,2 10 20; "
          "lora_unet_final_layer_adaLN_modulation_1.lora_up.weight F32 4,1 3 4 1 2" },
        { "not of an odd number", "flux.1", DIFFUSERS,
          ADALN ".lora_up.weight F32 3,1 1 2 3;" ADALN DOWN2, NULL, SFT_CAST_DTYPE,
          "an even number of rows" },
        { "not of half a byte", "flux.1", DIFFUSERS,
          ADALN ".lora_up.weight F4 2,1 1 2;" ADALN DOWN2, NULL, SFT_CAST_DTYPE,
          "of whole bytes" },
        { "not of a bias alone", "flux.1", KOHYA,
          "transformer.norm_out.linear.diff_b F32 4 1 2 3 4", NULL, SFT_CAST_DTYPE, "LoRA only" },
        { "not of DoRA", "flux.1", DIFFUSERS,
          ADALN ".lora_up.weight F32 4,1 1 2 3 4;" ADALN DOWN2 ADALN ".dora_scale F32 4,1 1",
          NULL, SFT_CAST_DTYPE, "a layer without DoRA" },
        { "a pair", "sd-3", DIFFUSERS,
          "lora_unet_joint_blocks_0_context_block_adaLN_modulation_1.lora_up.weight F32 4,1 1;"
          "lora_unet_joint_blocks_0_context_block_adaLN_modulation_1" DOWN2, NULL, SFT_CAST_DTYPE,
          "the same in both layouts" },
        { "a projection to kohya", "sdxl", KOHYA, "text_encoder_2.text_projection" B2
          "text_encoder_2.text_projection" A2, NULL, SFT_OK,
          "lora_te2_text_projection.lora_down.weight F32 1,2 10 20; "
          "lora_te2_text_projection.lora_up.weight F32 2,1 1 2" },
        { "a projection to ComfyUI", "sdxl", COMFY, "lora_te2_text_projection" UP2
          "lora_te2_text_projection" DOWN2, NULL, SFT_OK,
          "text_encoders.clip_g.transformer.text_projection.lora_A.weight F32 1,2 10 20; "
          "text_encoders.clip_g.transformer.text_projection.lora_B.weight F32 2,1 1 2" },
        { "a projection to diffusers", "sdxl", DIFFUSERS, "lora_te2_text_projection" UP2
          "lora_te2_text_projection" DOWN2, NULL, SFT_OK,
          "text_encoder_2.text_projection.lora_A.weight F32 1,2 10 20; "
          "text_encoder_2.text_projection.lora_B.weight F32 2,1 1 2" },
        { "positions", "sdxl", DIFFUSERS, "lora_te2_positional_embedding" UP2
          "lora_te2_positional_embedding" DOWN2, NULL, SFT_OK,
          "text_encoder_2.text_model.embeddings.position_embedding.lora_A.weight F32 1,2 10 20; "
          "text_encoder_2.text_model.embeddings.position_embedding.lora_B.weight F32 2,1 1 2" },
        { "a norm, as a layer", "flux.1", COMFY, ATTN ".norm_q.diff F32 2 1 2", NULL, SFT_OK,
          "diffusion_model.double_blocks.0.img_attn.norm.query_norm.scale.diff F32 2 1 2" },
        { "and as its tensor", "flux.1", COMFY, ATTN ".norm_q.weight.diff F32 2 1 2", NULL, SFT_OK,
          "diffusion_model.double_blocks.0.img_attn.norm.query_norm.scale.diff F32 2 1 2" },
        { "a norm to kohya", "flux.1", KOHYA,
          "diffusion_model.double_blocks.0.img_attn.norm.query_norm.scale.diff F32 2 1 2", NULL,
          SFT_OK, "lora_unet_double_blocks_0_img_attn_norm_query_norm_scale.diff F32 2 1 2" },
        { "and to ComfyUI", "flux.1", COMFY,
          "lora_unet_double_blocks_0_img_attn_norm_query_norm_scale.diff F32 2 1 2", NULL, SFT_OK,
          "diffusion_model.double_blocks.0.img_attn.norm.query_norm.scale.diff F32 2 1 2" },
        { "LyCORIS's norm", "sdxl", KOHYA,
          "lora_unet_down_blocks_1_attentions_0_norm.b_norm F32 2 3 4;"
          "lora_unet_down_blocks_1_attentions_0_norm.w_norm F32 2 1 2", NULL, SFT_OK,
          "lora_unet_input_blocks_4_1_norm.b_norm F32 2 3 4; "
          "lora_unet_input_blocks_4_1_norm.w_norm F32 2 1 2" },
        { "LoHa for PEFT", "flux.1", PEFT,
          "lora_unet_img_in.hada_w1_a F32 2,1 1;lora_unet_img_in.hada_w1_b F32 1,2 1;"
          "lora_unet_img_in.hada_w2_a F32 2,1 1;lora_unet_img_in.hada_w2_b F32 1,2 1", NULL,
          SFT_CAST_DTYPE, "LoRA only" },
        { "a core for PEFT", "sd-1", PEFT,
          "lora_unet_conv_in.lora_up.weight F32 2,1,1,1 1;"
          "lora_unet_conv_in.lora_down.weight F32 1,2,1,1 1;"
          "lora_unet_conv_in.lora_mid.weight F32 1,1,3,3 1", NULL, SFT_CAST_DTYPE,
          "matrices that the other format has a place for" },
        { "magnitudes for PEFT", "flux.1", PEFT,
          "lora_unet_img_in" UP2 "lora_unet_img_in" DOWN2 "lora_unet_img_in.dora_scale F32 2,1 7 8",
          NULL, SFT_OK,
          "base_model.model.x_embedder.lora_A.weight F32 1,2 10 20; "
          "base_model.model.x_embedder.lora_B.weight F32 2,1 1 2; "
          "base_model.model.x_embedder.lora_magnitude_vector F32 2 7 8" },
        { "magnitudes of columns for PEFT", "flux.1", PEFT,
          "lora_unet_img_in" UP2 "lora_unet_img_in" DOWN2 "lora_unet_img_in.dora_scale F32 1,2 7 8",
          NULL, SFT_CAST_DTYPE, "a magnitude for each row" },
        { "magnitudes of PEFT", "flux.1", KOHYA,
          "base_model.model.x_embedder" B2 "base_model.model.x_embedder" A2
          "base_model.model.x_embedder.lora_magnitude_vector F32 2 7 8", NULL, SFT_OK,
          "lora_unet_img_in.dora_scale F32 2,1 7 8; lora_unet_img_in.lora_down.weight F32 1,2 "
          "10 20; lora_unet_img_in.lora_up.weight F32 2,1 1 2" },
        { "magnitudes of a convolution for PEFT", "sd-1", PEFT,
          "lora_unet_conv_in.lora_up.weight F32 2,1,1,1 1 2;"
          "lora_unet_conv_in.lora_down.weight F32 1,2,1,1 10 20;"
          "lora_unet_conv_in.dora_scale F32 2,1,1,1 7 8", NULL, SFT_OK,
          "base_model.model.conv_in.lora_A.weight F32 1,2,1,1 10 20; "
          "base_model.model.conv_in.lora_B.weight F32 2,1,1,1 1 2; "
          "base_model.model.conv_in.lora_magnitude_vector F32 1,2,1,1 7 8" },
        { "magnitudes of a convolution of PEFT", "sd-1", COMFY,
          "base_model.model.conv_in.lora_B.weight F32 2,1,1,1 1 2;"
          "base_model.model.conv_in.lora_A.weight F32 1,2,1,1 10 20;"
          "base_model.model.conv_in.lora_magnitude_vector F32 1,2,1,1 7 8", NULL, SFT_OK,
          "diffusion_model.input_blocks.0.0.dora_scale F32 2,1,1,1 7 8; "
          "diffusion_model.input_blocks.0.0.lora_A.weight F32 1,2,1,1 10 20; "
          "diffusion_model.input_blocks.0.0.lora_B.weight F32 2,1,1,1 1 2" },
        { "magnitudes of some for PEFT", "flux.1", PEFT,
          "lora_unet_img_in" UP2 "lora_unet_img_in" DOWN2 "lora_unet_img_in.dora_scale F32 2,1 7 8;"
          "lora_unet_txt_in" UP2 "lora_unet_txt_in" DOWN2, NULL, SFT_CAST_DTYPE,
          "found modules without" },
        { "magnitudes and a bias for PEFT", "flux.1", DIFFUSERS,
          "lora_unet_img_in" UP2 "lora_unet_img_in" DOWN2 "lora_unet_img_in.dora_scale F32 2,1 7 8;"
          "lora_unet_img_in.lora_B.bias F32 2 7 8", NULL, SFT_CAST_DTYPE, "found a bias" },
        { "biases for kohya", "flux.1", KOHYA,
          "base_model.model.x_embedder" B2 "base_model.model.x_embedder" A2
          "base_model.model.x_embedder.lora_B.bias F32 2 7 8", NULL, SFT_OK,
          "lora_unet_img_in.lora_B.bias F32 2 7 8; lora_unet_img_in.lora_down.weight F32 1,2 "
          "10 20; lora_unet_img_in.lora_up.weight F32 2,1 1 2" },
        { "turned", "flux.1", KOHYA,
          "base_model.model.x_embedder" B2 "base_model.model.x_embedder" A2,
          "{\"fan_in_fan_out\":true}", SFT_CAST_DTYPE, "stored the other way round" },
        { "not turned", "flux.1", KOHYA,
          "base_model.model.x_embedder" B2 "base_model.model.x_embedder" A2,
          "{\"fan_in_fan_out\":false,\"lora_alpha\":3}", SFT_OK,
          "lora_unet_img_in.alpha F32 - 3; lora_unet_img_in.lora_down.weight F32 1,2 10 20; "
          "lora_unet_img_in.lora_up.weight F32 2,1 1 2" },
        { "an embedding", "flux.1", KOHYA,
          "base_model.model.x_embedder.lora_embedding_A F32 1,2 1 2;"
          "base_model.model.x_embedder.lora_embedding_B F32 2,1 1 2", NULL, SFT_CAST_DTYPE,
          "stored the other way round" },
        { "another rank", "flux.1", KOHYA,
          "base_model.model.x_embedder" B2 "base_model.model.x_embedder" A2, "{\"r\":4}",
          SFT_SIZE_MISMATCH, "expected a rank of 4" },
        { "names of XLabs", "flux.1", DIFFUSERS,
          "double_blocks.0.processor.proj_lora1.down.weight F32 1,2 10 20;"
          "double_blocks.0.processor.proj_lora1.up.weight F32 2,1 1 2", NULL, SFT_OK,
          "transformer.transformer_blocks.0.attn.to_out.0.lora_A.weight F32 1,2 10 20; "
          "transformer.transformer_blocks.0.attn.to_out.0.lora_B.weight F32 2,1 1 2" },
        { "and those that are divided", "flux.1", DIFFUSERS,
          "double_blocks.0.processor.qkv_lora2.down.weight F32 1,2 10 20;"
          "double_blocks.0.processor.qkv_lora2.up.weight F32 6,1 1 2 3 4 5 6", NULL, SFT_OK,
          "transformer.transformer_blocks.0.attn.add_k_proj.lora_A.weight F32 1,2 10 20; "
          "transformer.transformer_blocks.0.attn.add_k_proj.lora_B.weight F32 2,1 3 4; "
          "transformer.transformer_blocks.0.attn.add_q_proj.lora_A.weight F32 1,2 10 20; "
          "transformer.transformer_blocks.0.attn.add_q_proj.lora_B.weight F32 2,1 1 2; "
          "transformer.transformer_blocks.0.attn.add_v_proj.lora_A.weight F32 1,2 10 20; "
          "transformer.transformer_blocks.0.attn.add_v_proj.lora_B.weight F32 2,1 5 6" },
        { "attention's output without its number", "flux.1", KOHYA,
          ATTN ".to_out" B2 ATTN ".to_out" A2, NULL, SFT_OK,
          "lora_unet_double_blocks_0_img_attn_proj.lora_down.weight F32 1,2 10 20; "
          "lora_unet_double_blocks_0_img_attn_proj.lora_up.weight F32 2,1 1 2" },
        { "and without dots", "flux.1", COMFY,
          "lora_unet_transformer_blocks_0_attn_to_out" UP2
          "lora_unet_transformer_blocks_0_attn_to_out" DOWN2, NULL, SFT_OK,
          "diffusion_model.double_blocks.0.img_attn.proj.lora_A.weight F32 1,2 10 20; "
          "diffusion_model.double_blocks.0.img_attn.proj.lora_B.weight F32 2,1 1 2" },
        { "names of processors", "sd-1", KOHYA,
          "unet.mid_block.attentions.0.transformer_blocks.0.attn1.processor.to_q_lora.up.weight "
          "F32 2,1 1 2;"
          "unet.mid_block.attentions.0.transformer_blocks.0.attn1.processor.to_q_lora.down.weight "
          "F32 1,2 10 20", NULL, SFT_OK,
          "lora_unet_mid_block_attentions_0_transformer_blocks_0_attn1_to_q.lora_down.weight "
          "F32 1,2 10 20; "
          "lora_unet_mid_block_attentions_0_transformer_blocks_0_attn1_to_q.lora_up.weight F32 "
          "2,1 1 2" },
        { "no module that is known", "flux.1", KOHYA,
          "lora_unet_nothing" UP2 "lora_unet_nothing" DOWN2, NULL, SFT_TENSOR_NOT_FOUND,
          "expected modules of flux.1, found none among 1" },
        { "one that is not known", "flux.1", KOHYA,
          "lora_unet_img_in" UP2 "lora_unet_img_in" DOWN2 "lora_unet_nothing" UP2
          "lora_unet_nothing" DOWN2, NULL, SFT_TENSOR_NOT_FOUND, "found 1 others" },
        { "a tensor that is not known", "flux.1", KOHYA,
          "lora_unet_img_in" UP2 "lora_unet_img_in" DOWN2 "other F32 1 1", NULL,
          SFT_TENSOR_NOT_FOUND, "found 1 others" },
        { "no adapter", "flux.1", KOHYA, "other F32 1 1", NULL, SFT_TENSOR_NOT_FOUND,
          "expected an adapter" },
        { "no architecture", "none", KOHYA, "lora_unet_img_in" UP2 "lora_unet_img_in" DOWN2, NULL,
          SFT_BAD_ARGUMENT, "found \"none\"" },
        { "two components for PEFT", "flux.1", PEFT,
          "transformer.x_embedder" B2 "transformer.x_embedder" A2
          "text_encoder.text_model.encoder.layers.0.self_attn.q_proj" B2
          "text_encoder.text_model.encoder.layers.0.self_attn.q_proj" A2, NULL, SFT_CAST_DTYPE,
          "one component for PEFT" },
        { "encoders of SDXL for PEFT", "sdxl", PEFT,
          "lora_te1_text_model_encoder_layers_0_self_attn_q_proj" UP2
          "lora_te1_text_model_encoder_layers_0_self_attn_q_proj" DOWN2
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj" UP2
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj" DOWN2, NULL, SFT_CAST_DTYPE,
          "one component for PEFT" },
        { "encoders of SDXL", "sdxl", COMFY,
          "lora_te1_text_model_encoder_layers_0_self_attn_q_proj" UP2
          "lora_te1_text_model_encoder_layers_0_self_attn_q_proj" DOWN2
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj" UP2
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj" DOWN2, NULL, SFT_OK,
          ""
          "text_encoders.clip_g.transformer.text_model.encoder.layers.0.self_attn.q_proj"
          ".lora_A.weight "
          "F32 1,2 10 20; "
          "text_encoders.clip_g.transformer.text_model.encoder.layers.0.self_attn.q_proj"
          ".lora_B.weight "
          "F32 2,1 1 2; "
          "text_encoders.clip_l.transformer.text_model.encoder.layers.0.self_attn.q_proj"
          ".lora_A.weight "
          "F32 1,2 10 20; "
          "text_encoders.clip_l.transformer.text_model.encoder.layers.0.self_attn.q_proj"
          ".lora_B.weight "
          "F32 2,1 1 2" },
        { "encoders of SD 3", "sd-3", KOHYA,
          "text_encoder.text_model.encoder.layers.0.self_attn.q_proj" B2
          "text_encoder.text_model.encoder.layers.0.self_attn.q_proj" A2
          "text_encoder_2.text_model.encoder.layers.0.self_attn.q_proj" B2
          "text_encoder_2.text_model.encoder.layers.0.self_attn.q_proj" A2
          "text_encoder_3.encoder.block.0.layer.0.SelfAttention.q" B2
          "text_encoder_3.encoder.block.0.layer.0.SelfAttention.q" A2, NULL, SFT_OK,
          "lora_te1_text_model_encoder_layers_0_self_attn_q_proj.lora_down.weight F32 1,2 10 "
          "20; lora_te1_text_model_encoder_layers_0_self_attn_q_proj.lora_up.weight F32 2,1 1 "
          "2; lora_te2_text_model_encoder_layers_0_self_attn_q_proj.lora_down.weight F32 1,2 "
          "10 20; lora_te2_text_model_encoder_layers_0_self_attn_q_proj.lora_up.weight F32 2,1 "
          "1 2; lora_te3_encoder_block_0_layer_0_SelfAttention_q.lora_down.weight F32 1,2 10 "
          "20; lora_te3_encoder_block_0_layer_0_SelfAttention_q.lora_up.weight F32 2,1 1 2" },
        { "the only encoder", "sd-1", KOHYA,
          "text_encoder.text_model.encoder.layers.0.self_attn.q_proj" B2
          "text_encoder.text_model.encoder.layers.0.self_attn.q_proj" A2, NULL, SFT_OK,
          "lora_te_text_model_encoder_layers_0_self_attn_q_proj.lora_down.weight F32 1,2 10 "
          "20; lora_te_text_model_encoder_layers_0_self_attn_q_proj.lora_up.weight F32 2,1 1 2" },
        { "a level with attention", "sd-1", COMFY,
          "lora_unet_up_blocks_0_upsamplers_0_conv" UP2
          "lora_unet_up_blocks_0_upsamplers_0_conv" DOWN2
          "lora_unet_up_blocks_0_attentions_2_proj_in" UP2
          "lora_unet_up_blocks_0_attentions_2_proj_in" DOWN2, NULL, SFT_OK,
          "diffusion_model.output_blocks.2.1.proj_in.lora_A.weight F32 1,2 10 20; "
          "diffusion_model.output_blocks.2.1.proj_in.lora_B.weight F32 2,1 1 2; "
          "diffusion_model.output_blocks.2.2.conv.lora_A.weight F32 1,2 10 20; "
          "diffusion_model.output_blocks.2.2.conv.lora_B.weight F32 2,1 1 2" },
        { "a level without attention", "sd-1", COMFY,
          "lora_unet_up_blocks_0_upsamplers_0_conv" UP2
          "lora_unet_up_blocks_0_upsamplers_0_conv" DOWN2
          "lora_unet_up_blocks_1_attentions_2_proj_in" UP2
          "lora_unet_up_blocks_1_attentions_2_proj_in" DOWN2, NULL, SFT_OK,
          "diffusion_model.output_blocks.2.1.conv.lora_A.weight F32 1,2 10 20; "
          "diffusion_model.output_blocks.2.1.conv.lora_B.weight F32 2,1 1 2; "
          "diffusion_model.output_blocks.5.1.proj_in.lora_A.weight F32 1,2 10 20; "
          "diffusion_model.output_blocks.5.1.proj_in.lora_B.weight F32 2,1 1 2" },
        { "a level that nothing tells of", "sd-1", COMFY,
          "lora_unet_up_blocks_0_upsamplers_0_conv" UP2
          "lora_unet_up_blocks_0_upsamplers_0_conv" DOWN2
          "lora_unet_conv_in" UP2 "lora_unet_conv_in" DOWN2, NULL, SFT_CAST_DTYPE,
          "whether this level of the U-Net has attention" },
    };
    check(cases, sizeof cases / sizeof *cases);
}

/* Layers that the other layout divides or fuses. */
static void divides_and_fuses(void **unused) {
    (void)unused;
#define TO(x) ATTN ".to_" x
#define SINGLE "transformer.single_transformer_blocks.0."
    static const convert_case cases[] = {
        { "by rows", "flux.1", DIFFUSERS, QKV UP6 QKV DOWN2 QKV ".alpha F32 - 0.5", NULL, SFT_OK,
          "transformer.transformer_blocks.0.attn.to_k.lora_A.weight F32 1,2 10 20; "
          "transformer.transformer_blocks.0.attn.to_k.lora_B.weight F32 2,1 3 4; "
          "transformer.transformer_blocks.0.attn.to_q.lora_A.weight F32 1,2 10 20; "
          "transformer.transformer_blocks.0.attn.to_q.lora_B.weight F32 2,1 1 2; "
          "transformer.transformer_blocks.0.attn.to_v.lora_A.weight F32 1,2 10 20; "
          "transformer.transformer_blocks.0.attn.to_v.lora_B.weight F32 2,1 5 6" },
        { "by blocks", "flux.1", DIFFUSERS,
          QKV ".lora_up.weight F32 6,3 1 0 0 2 0 0 0 0 0 0 0 0 0 3 4 0 5 6;"
          QKV ".lora_down.weight F32 3,2 1 2 3 4 5 6", NULL, SFT_OK,
          "transformer.transformer_blocks.0.attn.to_q.lora_A.weight F32 1,2 1 2; "
          "transformer.transformer_blocks.0.attn.to_q.lora_B.weight F32 2,1 1 2; "
          "transformer.transformer_blocks.0.attn.to_v.lora_A.weight F32 2,2 3 4 5 6; "
          "transformer.transformer_blocks.0.attn.to_v.lora_B.weight F32 2,2 3 4 5 6" },
        { "by rows, for its blocks are in another order", "flux.1", DIFFUSERS,
          QKV ".lora_up.weight F32 6,2 0 1 0 1 2 0 2 0 0 0 0 0;"
          QKV ".lora_down.weight F32 2,2 1 2 3 4", NULL, SFT_OK,
          "transformer.transformer_blocks.0.attn.to_k.lora_A.weight F32 2,2 1 2 3 4; "
          "transformer.transformer_blocks.0.attn.to_k.lora_B.weight F32 2,2 2 0 2 0; "
          "transformer.transformer_blocks.0.attn.to_q.lora_A.weight F32 2,2 1 2 3 4; "
          "transformer.transformer_blocks.0.attn.to_q.lora_B.weight F32 2,2 0 1 0 1; "
          "transformer.transformer_blocks.0.attn.to_v.lora_A.weight F32 2,2 1 2 3 4; "
          "transformer.transformer_blocks.0.attn.to_v.lora_B.weight F32 2,2 0 0 0 0" },
        { "rows that do not divide", "flux.1", DIFFUSERS,
          QKV ".lora_up.weight F32 7,1 1;" QKV DOWN2, NULL, SFT_CAST_DTYPE, "rows that divide" },
        { "a convolution", "flux.1", DIFFUSERS,
          QKV ".lora_up.weight F32 6,1,1,1 1;" QKV ".lora_down.weight F32 1,2,1,1 1", NULL,
          SFT_CAST_DTYPE, "matrices of a linear layer" },
        { "half bytes", "flux.1", DIFFUSERS, QKV ".lora_up.weight F4 6,1 1;" QKV DOWN2, NULL,
          SFT_CAST_DTYPE, "matrices of a linear layer" },
        { "half bytes below", "flux.1", DIFFUSERS, QKV UP6 QKV ".lora_down.weight F4 1,2 1", NULL,
          SFT_CAST_DTYPE, "matrices of a linear layer" },
        { "magnitudes", "flux.1", DIFFUSERS, QKV UP6 QKV DOWN2
          QKV ".dora_scale F32 6,1 1 2 3 4 5 6",
          NULL, SFT_OK,
          "transformer.transformer_blocks.0.attn.to_k.lora_A.weight F32 1,2 10 20; "
          "transformer.transformer_blocks.0.attn.to_k.lora_B.weight F32 2,1 3 4; "
          "transformer.transformer_blocks.0.attn.to_k.lora_magnitude_vector F32 2 3 4; "
          "transformer.transformer_blocks.0.attn.to_q.lora_A.weight F32 1,2 10 20; "
          "transformer.transformer_blocks.0.attn.to_q.lora_B.weight F32 2,1 1 2; "
          "transformer.transformer_blocks.0.attn.to_q.lora_magnitude_vector F32 2 1 2; "
          "transformer.transformer_blocks.0.attn.to_v.lora_A.weight F32 1,2 10 20; "
          "transformer.transformer_blocks.0.attn.to_v.lora_B.weight F32 2,1 5 6; "
          "transformer.transformer_blocks.0.attn.to_v.lora_magnitude_vector F32 2 5 6" },
        { "magnitudes of columns", "flux.1", DIFFUSERS, QKV UP6 QKV DOWN2
          QKV ".dora_scale F32 1,2 1", NULL, SFT_CAST_DTYPE, "a magnitude for each row" },
        { "a magnitude for several rows", "flux.1", DIFFUSERS, QKV UP6 QKV DOWN2
          QKV ".dora_scale F32 6,2 1", NULL, SFT_CAST_DTYPE, "a magnitude for each row" },
        { "half a byte for each row", "flux.1", DIFFUSERS, QKV UP6 QKV DOWN2
          QKV ".dora_scale F4 6,1 1", NULL, SFT_CAST_DTYPE, "a magnitude for each row" },
        { "LoHa", "flux.1", PEFT, QKV ".hada_w1_a F32 6,1 1;" QKV ".hada_w1_b F32 1,2 1;"
          QKV ".hada_w2_a F32 6,1 1;" QKV ".hada_w2_b F32 1,2 1", NULL, SFT_CAST_DTYPE,
          "neither divides nor fuses" },
        { "fused", "flux.1", KOHYA, TO("q") B2 TO("q") A2 TO("k") B2 TO("k") A2 TO("v") B2
          TO("v") A2,
          NULL, SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.lora_down.weight F32 1,2 10 20; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_up.weight F32 6,1 1 2 1 2 1 2" },
        { "and stacked", "flux.1", KOHYA, TO("q") B2 TO("q") A2
          TO("v.lora_B.weight F32 2,1 3 4;") TO("v.lora_A.weight F32 1,2 30 40"), NULL, SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.lora_down.weight F32 2,2 10 20 30 40; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_up.weight F32 6,2 1 0 2 0 0 0 0 0 0 3 0 "
          "4" },
        { "of two ranks", "flux.1", KOHYA, TO("q") B2 TO("q") A2
          TO("k.lora_B.weight F32 2,2 5 6 7 8;") TO("k.lora_A.weight F32 2,2 1 2 3 4;")
          TO("v") B2 TO("v") A2, NULL, SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.lora_down.weight F32 4,2 10 20 1 2 3 4 10 "
          "20; lora_unet_double_blocks_0_img_attn_qkv.lora_up.weight F32 6,4 1 0 0 0 2 0 0 0 0 "
          "5 6 0 0 7 8 0 0 0 0 1 0 0 0 2" },
        { "of two scales", "flux.1", KOHYA, TO("q") B2 TO("q") A2 TO("q.alpha F32 - 2;")
          TO("k") B2 TO("k") A2 TO("k.alpha F32 - 1;") TO("v") B2 TO("v") A2, NULL, SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.alpha F32 - 6; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_down.weight F32 3,2 10 20 10 20 10 20; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_up.weight F32 6,3 1 0 0 2 0 0 0 0.5 0 0 "
          "1 0 0 0 0.5 0 0 1" },
        { "of no scale", "flux.1", KOHYA, TO("q") B2 TO("q") A2 TO("q.alpha F32 - 0;")
          TO("k") B2 TO("k") A2 TO("k.alpha F32 - 0;"), NULL, SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.alpha F32 - 0; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_down.weight F32 2,2 10 20 10 20; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_up.weight F32 6,2 1 0 2 0 0 1 0 2 0 0 0 "
          "0" },
        { "scaled beyond their dtype", "flux.1", KOHYA,
          TO("q.lora_B.weight F16 2,1 1;") TO("q.lora_A.weight F16 1,2 1;") TO("q.alpha F32 - 1;")
          TO("k.lora_B.weight F16 2,1 60000;") TO("k.lora_A.weight F16 1,2 1;")
          TO("k.alpha F32 - 2"), NULL, SFT_CAST_VALUE, "values that F16 can hold, found larger" },
        { "scaled to nothing", "flux.1", KOHYA,
          TO("q.lora_B.weight F16 2,1 1;") TO("q.lora_A.weight F16 1,2 1;") TO("q.alpha F32 - 1;")
          TO("k.lora_B.weight F16 2,1 1;") TO("k.lora_A.weight F16 1,2 1;")
          TO("k.alpha F32 - 1e-9"), NULL, SFT_CAST_VALUE, "values that F16 can hold, found only" },
        { "scaled, and zeros", "flux.1", KOHYA,
          TO("q.lora_B.weight F16 2,1 1;") TO("q.lora_A.weight F16 1,2 1;") TO("q.alpha F32 - 1;")
          TO("k.lora_B.weight F16 2,1;") TO("k.lora_A.weight F16 1,2 1;")
          TO("k.alpha F32 - 1e-9"), NULL, SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.alpha F32 - 2; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_down.weight F16 2,2 1 1 1 1; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_up.weight F16 6,2 1 0 1 0 0 0 0 0 0 0 0 "
          "0" },
        { "scaled, and not a number", "flux.1", KOHYA,
          TO("q.lora_B.weight F32 2,1 1;") TO("q.lora_A.weight F32 1,2 1;") TO("q.alpha F32 - 1;")
          TO("k.lora_B.weight F32 2,1 nan;") TO("k.lora_A.weight F32 1,2 1;")
          TO("k.alpha F32 - 2"), NULL, SFT_CAST_VALUE, "found NaN" },
        { "magnitudes fused", "flux.1", KOHYA,
          TO("q") B2 TO("q") A2 TO("q.lora_magnitude_vector F32 2 1 2;")
          TO("k") B2 TO("k") A2 TO("k.lora_magnitude_vector F32 2 3 4;")
          TO("v") B2 TO("v") A2 TO("v.lora_magnitude_vector F32 2 5 6"), NULL, SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.dora_scale F32 6,1 1 2 3 4 5 6; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_down.weight F32 1,2 10 20; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_up.weight F32 6,1 1 2 1 2 1 2" },
        { "magnitudes of one only", "flux.1", KOHYA,
          TO("q") B2 TO("q") A2 TO("q.lora_magnitude_vector F32 2 1 2;") TO("k") B2 TO("k") A2
          TO("v") B2 TO("v") A2, NULL, SFT_CAST_DTYPE, "a magnitude for each row of all layers" },
        { "magnitudes of two dtypes", "flux.1", KOHYA,
          TO("q") B2 TO("q") A2 TO("q.lora_magnitude_vector F32 2 1 2;")
          TO("k") B2 TO("k") A2 TO("k.lora_magnitude_vector F16 2 3 4;")
          TO("v") B2 TO("v") A2 TO("v.lora_magnitude_vector F32 2 5 6"), NULL, SFT_CAST_DTYPE,
          "a magnitude for each row of all layers" },
        { "magnitudes for other rows", "flux.1", KOHYA,
          TO("q") B2 TO("q") A2 TO("q.lora_magnitude_vector F32 3 1 2;")
          TO("k") B2 TO("k") A2 TO("k.lora_magnitude_vector F32 2 3 4;")
          TO("v") B2 TO("v") A2 TO("v.lora_magnitude_vector F32 2 5 6"), NULL, SFT_CAST_DTYPE,
          "a magnitude for each row of all layers" },
        { "biases of two scales", "flux.1", KOHYA,
          TO("q") B2 TO("q") A2 TO("q.alpha F32 - 2;") TO("q.lora_B.bias F32 2 1 2;")
          TO("k") B2 TO("k") A2 TO("k.alpha F32 - 1;") TO("k.lora_B.bias F32 2 3 4;")
          TO("v") B2 TO("v") A2 TO("v.alpha F32 - 2;") TO("v.lora_B.bias F32 2 5 6"), NULL,
          SFT_CAST_DTYPE, "biases of one scale" },
        { "biases", "flux.1", COMFY,
          TO("q") B2 TO("q") A2 TO("q.lora_B.bias F32 2 1 2;") TO("k") B2 TO("k") A2
          TO("k.lora_B.bias F32 2 3 4;") TO("v") B2 TO("v") A2 TO("v.lora_B.bias F32 2 5 6"), NULL,
          SFT_OK,
          "diffusion_model.double_blocks.0.img_attn.qkv.lora_A.weight F32 1,2 10 20; "
          "diffusion_model.double_blocks.0.img_attn.qkv.lora_B.bias F32 6 1 2 3 4 5 6; "
          "diffusion_model.double_blocks.0.img_attn.qkv.lora_B.weight F32 6,1 1 2 1 2 1 2" },
        { "two modules of one layer, and all others", "flux.1", KOHYA,
          TO("q") B2 TO("q") A2 TO("k") B2 TO("k") A2 TO("v") B2 TO("v") A2
          "lora_unet_transformer_blocks_0_attn_to_q" UP2
          "lora_unet_transformer_blocks_0_attn_to_q" DOWN2, NULL, SFT_CAST_DTYPE,
          "one module for each layer" },
        { "two modules of one layer", "flux.1", KOHYA, TO("q") B2 TO("q") A2
          "lora_unet_transformer_blocks_0_attn_to_q" UP2
          "lora_unet_transformer_blocks_0_attn_to_q" DOWN2, NULL, SFT_CAST_DTYPE,
          "one module for each layer" },
        { "two methods", "flux.1", KOHYA, TO("q") B2 TO("q") A2 TO("k.hada_w1_a F32 2,1 1;")
          TO("k.hada_w1_b F32 1,2 1;") TO("k.hada_w2_a F32 2,1 1;") TO("k.hada_w2_b F32 1,2 1"),
          NULL, SFT_CAST_DTYPE, "one method in the layers" },
        { "two inputs", "flux.1", KOHYA, TO("q") B2 TO("q") A2 TO("k") B2
          TO("k.lora_A.weight F32 1,3 1"), NULL, SFT_CAST_DTYPE, "linear layers of one input" },
        { "two dtypes", "flux.1", KOHYA, TO("q") B2 TO("q") A2 TO("k.lora_B.weight F16 2,1 1;")
          TO("k") A2, NULL, SFT_CAST_DTYPE, "of one dtype" },
        { "two dtypes below", "flux.1", KOHYA, TO("q") B2 TO("q") A2 TO("k") B2
          TO("k.lora_A.weight F16 1,2 1"), NULL, SFT_CAST_DTYPE, "of one dtype" },
        { "convolutions", "flux.1", KOHYA, TO("q.lora_B.weight F32 2,1,1,1 1;")
          TO("q.lora_A.weight F32 1,2,1,1 1"), NULL, SFT_CAST_DTYPE, "linear layers of one input" },
        { "rows of layers that are not there", "flux.1", KOHYA, SINGLE "attn.to_q" B2
          SINGLE "attn.to_q" A2, NULL, SFT_CAST_DTYPE, "are not known" },
        { "rows of another number", "flux.1", KOHYA, TO("q") B2 TO("q") A2
          TO("k.lora_B.weight F32 3,1 1;") TO("k") A2, NULL, SFT_CAST_DTYPE,
          "rows as the other layout divides them" },
        { "rows of the rest", "flux.1", KOHYA, SINGLE "proj_mlp.lora_B.weight F32 3,1 1 2 3;"
          SINGLE "proj_mlp" A2, NULL, SFT_OK,
          "lora_unet_single_blocks_0_linear1.lora_down.weight F32 1,2 10 20; "
          "lora_unet_single_blocks_0_linear1.lora_up.weight F32 9,1 0 0 0 0 0 0 1 2 3" },
    };
    check(cases, sizeof cases / sizeof *cases);
}

static void writes_alphas(void **unused) {
    (void)unused;
#define IMG_IN(more) "lora_unet_img_in" UP2 "lora_unet_img_in" DOWN2 more
#define X_EMB(more) "base_model.model.x_embedder" B2 "base_model.model.x_embedder" A2 more
    static const convert_case cases[] = {
        { "F16 that holds it", "flux.1", COMFY, IMG_IN("lora_unet_img_in.alpha F16 - 0.5"), NULL,
          SFT_OK,
          "diffusion_model.img_in.lora_A.weight F32 1,2 10 20; "
          "diffusion_model.img_in.lora_B.weight F32 2,1 1 2; diffusion_model.img_in.alpha F16 "
          "- 0.5" },
        { "of one dimension", "flux.1", COMFY, IMG_IN("lora_unet_img_in.alpha F32 1 0.5"), NULL,
          SFT_OK,
          "diffusion_model.img_in.alpha F32 1 0.5; diffusion_model.img_in.lora_A.weight F32 "
          "1,2 10 20; diffusion_model.img_in.lora_B.weight F32 2,1 1 2" },
        { "of two", "flux.1", COMFY, IMG_IN("lora_unet_img_in.alpha F32 1,1 0.5"), NULL, SFT_OK,
          "diffusion_model.img_in.alpha F32 - 0.5; diffusion_model.img_in.lora_A.weight F32 "
          "1,2 10 20; diffusion_model.img_in.lora_B.weight F32 2,1 1 2" },
        { "integers", "flux.1", COMFY, IMG_IN("lora_unet_img_in.alpha U8 - 3"), NULL, SFT_OK,
          "diffusion_model.img_in.alpha F32 - 3; diffusion_model.img_in.lora_A.weight F32 1,2 "
          "10 20; diffusion_model.img_in.lora_B.weight F32 2,1 1 2" },
        { "said to have been F16", "flux.1", KOHYA, X_EMB("=sft_lora_alpha F16 0"),
          "{\"lora_alpha\":4}", SFT_OK,
          "lora_unet_img_in.lora_down.weight F32 1,2 10 20; lora_unet_img_in.lora_up.weight "
          "F32 2,1 1 2; lora_unet_img_in.alpha F16 - 4" },
        { "which cannot hold it", "flux.1", KOHYA, X_EMB("=sft_lora_alpha F16 0"),
          "{\"lora_alpha\":4097}", SFT_OK,
          "lora_unet_img_in.alpha F32 - 4097; lora_unet_img_in.lora_down.weight F32 1,2 10 20; "
          "lora_unet_img_in.lora_up.weight F32 2,1 1 2" },
        { "of one dimension, too small", "flux.1", KOHYA, X_EMB("=sft_lora_alpha F16 1"),
          "{\"lora_alpha\":100000}", SFT_OK,
          "lora_unet_img_in.alpha F32 1 1e+05; lora_unet_img_in.lora_down.weight F32 1,2 10 "
          "20; lora_unet_img_in.lora_up.weight F32 2,1 1 2" },
        { "said to have been none", "flux.1", KOHYA, X_EMB("=sft_lora_alpha none"),
          "{\"lora_alpha\":1}", SFT_OK,
          "lora_unet_img_in.lora_down.weight F32 1,2 10 20; lora_unet_img_in.lora_up.weight "
          "F32 2,1 1 2" },
        { "which is no longer true", "flux.1", KOHYA, X_EMB("=sft_lora_alpha none"),
          "{\"lora_alpha\":2}", SFT_OK,
          "lora_unet_img_in.alpha F32 - 2; lora_unet_img_in.lora_down.weight F32 1,2 10 20; "
          "lora_unet_img_in.lora_up.weight F32 2,1 1 2" },
        { "said to be nothing known", "flux.1", KOHYA, X_EMB("=sft_lora_alpha QQ 0"),
          "{\"lora_alpha\":1}", SFT_OK,
          "lora_unet_img_in.alpha F32 - 1; lora_unet_img_in.lora_down.weight F32 1,2 10 20; "
          "lora_unet_img_in.lora_up.weight F32 2,1 1 2" },
    };
    check(cases, sizeof cases / sizeof *cases);
}

/* The configuration of PEFT, which takes the first pattern that a name ends in. */
static void writes_configurations(void **unused) {
    (void)unused;
#define M(name) name B2 name A2
    static const struct { const char *adapter, *want; } cases[] = {
        { M("x_embedder") M("proj_out"), "{\"peft_type\":\"LORA\",\"task_type\":null,"
          "\"bias\":\"none\",\"r\":1,\"lora_alpha\":1,\"target_modules\":[\"x_embedder\","
          "\"proj_out\"],\"rank_pattern\":{},\"alpha_pattern\":{}}" },
        { M("x_embedder") M("proj_out") "proj_out.alpha F32 - 2;"
          M("single_transformer_blocks.0.proj_out"),
          "{\"peft_type\":\"LORA\",\"task_type\":null,\"bias\":\"none\",\"r\":1,"
          "\"lora_alpha\":1,\"target_modules\":[\"x_embedder\",\"proj_out\","
          "\"single_transformer_blocks.0.proj_out\"],\"rank_pattern\":{},\"alpha_pattern\":"
          "{\"single_transformer_blocks.0.proj_out\":1,\"proj_out\":2}}" },
        { M("x_embedder") "proj_out.lora_A.weight F32 2,2 1;proj_out.lora_B.weight F32 2,2 1;"
          "proj_out.alpha F32 - 0.5",
          "{\"peft_type\":\"LORA\",\"task_type\":null,\"bias\":\"none\",\"r\":1,"
          "\"lora_alpha\":1,\"target_modules\":[\"x_embedder\",\"proj_out\"],"
          "\"rank_pattern\":{\"proj_out\":2},\"alpha_pattern\":{\"proj_out\":0.5}}" },
        { M("x_embedder") "x_embedder.dora_scale F32 2,1 7 8", "{\"peft_type\":\"LORA\","
          "\"task_type\":null,\"bias\":\"none\",\"r\":1,\"lora_alpha\":1,\"target_modules\":"
          "[\"x_embedder\"],\"rank_pattern\":{},\"alpha_pattern\":{},\"use_dora\":true}" },
        { M("x_embedder") "x_embedder.lora_B.bias F32 2 7 8", "{\"peft_type\":\"LORA\","
          "\"task_type\":null,\"bias\":\"none\",\"r\":1,\"lora_alpha\":1,\"target_modules\":"
          "[\"x_embedder\"],\"rank_pattern\":{},\"alpha_pattern\":{},\"lora_bias\":true}" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_file f = spell_file(cases[i].adapter);
        sft_set *set = adapter_set(&f, NULL);
        sft_adapter_conversion_options how = SFT_ADAPTER_CONVERSION_OPTIONS_INIT;
        sft_adapter_conversion *made;
        how.to = PEFT;
        how.architecture = "flux.1";
        assert_int_equal(sft_adapter_conversion_new(set, &how, &made, NULL), SFT_OK);
        sft_span found = sft_adapter_conversion_config(made);
        if (!sft_span_equal(found, sft_span_cstr(cases[i].want)))
            fail_msg("%.*s", (int)found.len, found.data);
        assert_non_null(sft_adapter_conversion_parts(made, NULL));
        assert_non_null(sft_adapter_conversion_pairs(made, NULL));
        assert_int_equal(sft_adapter_conversion_unmatched_at(made, 0).len, 0);
        sft_adapter_conversion_free(made);
        sft_set_close(set);
        free_file(&f);
    }
    sft_adapter_conversion_free(NULL);
}

/* What is not known is named, modules before other tensors, and left out if that is asked for. */
static void leaves_out(void **unused) {
    (void)unused;
    test_file f = spell_file("other F32 1;" M("x_embedder") M("none") "=format pt");
    sft_set *set = adapter_set(&f, NULL);
    sft_adapter_conversion_options how = SFT_ADAPTER_CONVERSION_OPTIONS_INIT;
    sft_adapter_conversion *made;
    sft_buffer out = { 0 };
    char text[1024];
    size_t count;
    how.to = DIFFUSERS;
    how.architecture = "flux.1";
    how.ignore_unmatched = true;
    assert_int_equal(sft_adapter_conversion_new(set, &how, &made, NULL), SFT_OK);
    assert_int_equal(sft_adapter_conversion_unmatched(made), 2);
    assert_true(sft_span_equal(sft_adapter_conversion_unmatched_at(made, 0),
                               sft_span_cstr("none")));
    assert_true(sft_span_equal(sft_adapter_conversion_unmatched_at(made, 1),
                               sft_span_cstr("other")));
    assert_int_equal(sft_adapter_conversion_config(made).len, 0);
    const sft_pair *pairs = sft_adapter_conversion_pairs(made, &count);
    assert_int_equal(count, 3); /* format, the form of alphas, the configuration */
    assert_true(sft_span_equal(pairs[2].value, sft_span_cstr(
        "{\"transformer.r\":1,\"transformer.lora_alpha\":1,\"transformer.target_modules\":"
        "[\"x_embedder\"],\"transformer.rank_pattern\":{},\"transformer.alpha_pattern\":{}}")));
    assert_int_equal(sft_adapter_conversion_save(made, sft_sink_memory(&out), NULL, NULL), SFT_OK);
    spell_buffer(&out, text, sizeof text);
    assert_string_equal(text, "transformer.x_embedder.lora_A.weight F32 1,2 10 20; "
                              "transformer.x_embedder.lora_B.weight F32 2,1 1 2");
    sft_buffer_free(&out);
    sft_adapter_conversion_free(made);
    sft_set_close(set);
    free_file(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(renames),
        cmocka_unit_test(writes_configurations),
        cmocka_unit_test(leaves_out),
        cmocka_unit_test(divides_and_fuses),
        cmocka_unit_test(writes_alphas),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
