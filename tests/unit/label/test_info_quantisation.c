/* What is packed how, what sizes are behind it, and what a language model's shapes tell. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/compose.h"

#define K ".transformer_blocks.0.attn2.to_k.weight"
#define F8(name) name ".weight:F8_E4M3[64,64] " name ".weight_scale:F32[] "
#define NV4(name) \
    name ".weight:U8[64,32] " name ".weight_scale:F8_E4M3[64,4] " name ".weight_scale_2:F32[] "
#define GUIDED "guidance_in.in_layer.weight[3072,256] "
#define LLAMA(l) \
    "model.layers.{0-" l "}.self_attn.q_proj.weight[4096,4096] " \
    "model.layers.{0-" l "}.self_attn.k_proj.weight[1024,4096] " \
    "model.layers.{0-" l "}.self_attn.o_proj.weight[4096,4096] " \
    "model.layers.{0-" l "}.mlp.gate_proj.weight[14336,4096] " \
    "model.layers.{0-" l "}.input_layernorm.weight[4096] " \
    "model.embed_tokens.weight[128256,4096] model.norm.weight[4096] "

static void expect_facts(const char *tensors, const char *expected) {
    char got[256];
    composed *made = compose(tensors);
    if (strcmp(compose_facts(&made->info, got, sizeof got), expected) != 0)
        fail_msg("%s: expected %s, found %s", tensors, expected, got);
    compose_end(made);
}

static void precision_is_what_most_bytes_are(void **state) {
    static const struct { const char *tensors, *precision; } cases[] = {
        { "a[1000] b:F32[10]", "fp16" },     { "a[100] b:F32[100]", "mixed" },
        { "a:BF16[100]", "bf16" },           { "a:F32[100] b:I64[2]", "fp32" },
        { "a.weight:F8_E4M3[100,1]", "fp8" }, { "a:F64[4]", "fp64" },
        /* some layers quantised, or not alike; scales are a part of what they scale */
        { F8("a") "b.weight[64,3]", "fp8" }, { F8("a") "b.weight[64,64]", "mixed" },
        { F8("a") "b.weight[64,640]", "fp16" }, { NV4("a.{0-9}"), "fp4" },
        { NV4("a.{0-9}") F8("b.{0-9}"), "mixed" }, { NV4("a") F8("b.{0-29}"), "fp8" },
        { "a.weight:I8[64,64] a.weight_scale:F32[64,1] b.weight[64,64]", "mixed" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        composed *made = compose(cases[i].tensors);
        assert_string_equal(made->info.precision, cases[i].precision);
        compose_end(made);
    }
}

/* ── Quantisation ── */

/* What is not told by names is told by nobody: neither where bits are a guess. */
static void precision_of_packed_weights(void **state) {
    static const struct { const char *tensors, *precision; } cases[] = {
        { "a.weight_packed:U8[64,32] a.weight_scale:U8[64,2]", "fp4" },
        { "a.qweight:I32[8,64] a.qzeros:I32[1,8] a.scales[1,64] a.g_idx:I32[64]", "int4" },
        { "a.qweight:I32[8,64] a.qzeros:I32[8] a.scales[64] a.g_idx:I32[64,1]", NULL },
        { "a.weight:U32[64,8] a.scales:U8[64,2]", "fp4" },
        { "a.weight:U32[64,16] a.scales:U8[64,2]", "fp8" },
        { "a.weight:I8[64,32] a.weight_scale:F32[64]", NULL },
        /* layers of several widths, and one of ten that is wider */
        { "a.{0-1}.qweight:I32[8,64] a.{0-1}.g_idx:I32[64] b.qweight:I32[16,64] b.g_idx:I32[64]",
          "mixed" },
        { "a.{0-29}.qweight:I32[8,64] a.{0-29}.g_idx:I32[64] b.qweight:I32[16,64] b.g_idx:I32[64]",
          "int4" },
        /* codes that nothing explains */
        { "a.weight:I8[64,32] a.per_channel_scale[64]", NULL },
        { "a.weight[64,16] a.weights_scaling_factor[1,64]", NULL },
        { "a.weight:I16[16,64] a.scales[64,1] a.tables[16]", NULL },
        { "a.weight_packed:U8[64,32] a.weight_scale:U8[64,2] b.weight:F8_E4M3[64,32] "
          "b.weight_scale:F32[64,1]", "mixed" },
        { "a.weight:U32[64,8] a.scales[64] a.biases[64]", NULL }, { "a:F16[0]", NULL },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        composed *made = compose(cases[i].tensors);
        const char *got = made->info.precision, *want = cases[i].precision;
        if (!got != !want || (got && strcmp(got, want) != 0))
            fail_msg("%s: %s", cases[i].tensors, got ? got : "(none)");
        compose_end(made);
    }
}

static void quantisation_and_true_parameters(void **state) {
    static const struct { const char *tensors, *id; uint64_t parameters; } cases[] = {
        { "a.weight:U8[2048,1] a.weight.absmax:U8[64] a.weight.quant_map:F32[16] "
          "a.weight.quant_state.bitsandbytes__nf4:U8[90]", "bnb-nf4", 4096 },
        { "a.weight:U8[2048,1] a.weight.quant_state.bitsandbytes__fp4:U8[90]", "bnb-fp4", 4096 },
        { "a.weight:U8[2048,1] a.weight.absmax:U8[64]", "-", 4096 },
        { "a.weight:I8[64,64] a.SCB:F32[64]", "bnb-int8", 4096 },
        /* tokenizers, which are files, and what is called alike */
        { "a.weight[64,64] spiece_model:U8[9] te.tekken_model:U8[9]", "-", 4096 },
        { "a.weight[64,64] spiece_model:U8[3,3] tekken_model:I8[9] spiece_model.x:U8[9]", "-",
          4096 + 27 },
        { "a.qweight:I32[8,64] a.qzeros:I32[1,8] a.scales[1,64] a.g_idx:I32[64]", "gptq-4bit",
        4096 },
        { "a.qweight:I32[16,64] a.qzeros:I32[1,16] a.scales[1,64] a.g_idx:I32[64]",
        "gptq-8bit", 4096 },
        { "a.qweight:I32[64,8] a.qzeros:I32[1,8] a.scales[1,64]", "awq-4bit", 4096 },
        { "a.qweight:I32[64,8]", "-", 0 },
        { "a.qweight:I8[64,32] a.wscales[1,64] a.smooth_factor[64]", "svdquant-int4", 4096 },
        { "a.qweight:I8[64,32] a.wtscale[1] a.wscales:F8_E4M3[4,64]", "svdquant-fp4", 4096 },
        { "a.weight:U8[64,32] a.weight_scale:F8_E4M3[64,4] a.weight_scale_2:F32[]", "nvfp4", 4096 },
        /* ModelOpt's W4A8_AWQ: codes of two rows, factors of 128 columns */
        { "a.weight:U8[32,128] a.weight_scale:BF16[64,1] a.weight_scale_2:F32[]", "-", 0 },
        { "a.weight:U8[32,128] a.weight_scale:F8_E4M3[64,1] a.weight_scale_2:F32[]", "-", 0 },
        { "a.weight_packed:I32[64,8] a.weight_scale:BF16[64,1] a.weight_shape:I64[2]",
          "compressed-tensors", 0 },
        { "a.weight_packed:U8[64,32] a.weight_scale:F8_E4M3[64,4] a.weight_global_scale:F32[1]",
          "nvfp4", 4096 },
        { "a.weight:F8_E4M3[64,64] a.weight_scale_inv:F32[1,1]", "fp8-block", 4096 },
        { "a.weight:F8_E4M3[64,64] a.scale_weight:F32[] scaled_fp8:F8_E4M3[2]", "fp8-scaled",
        4096 },
        { "a.weight:F8_E4M3[64,64] a.weight_scale:F32[]", "fp8-scaled", 4096 },
        { "a.weight:F8_E4M3[64,64] a.weight_scale:U8[64,2]", "mxfp8", 4096 },
        { "a.weight:F8_E4M3[64,64] a.bias[64]", "fp8", 4160 },
        { "a.weight:F8_E4M3[4,4] b.weight[64,64]", "-", 4112 },
        { "a.weight:I8[64,64] a.weight_scale:F32[64,1]", "int8", 4096 },
        { "m.mlp.experts.gate_up_proj_blocks:U8[2,4,16] m.mlp.experts.gate_up_proj_scales:U8[2,4]",
          "mxfp4", 256 },
        { "a.weight:U32[64,8] a.scales[64,1] a.biases[64,1]", "mlx-4bit@60", 0 },
        { "model.embed_tokens.weight:U32[10,16] model.embed_tokens.scales[10,1] "
          "model.embed_tokens.biases[10,1] model.norm.weight[64]", "mlx-8bit", 704 },
        { "a.weight[64,64] a.biases[64,1]", "-", 4160 },
        /* companions that have other ranks, or are not there: nothing tells how many there are */
        { "a.qweight:I32[8,64] a.qzeros:I32[1,8] a.scales[1,64] a.g_idx:I32[64,1]", "gptq-4bit",
          4096 },
        { "a.qweight:I32[8,64] a.qzeros:I32[8] a.scales[1,64] a.g_idx:I32[64,1]", "gptq-4bit@60",
          0 },
        { "a.qweight:I32[8,64] a.qzeros:I32[1,8] a.scales[64] a.g_idx:I32[64,1]", "gptq-4bit@60",
          0 },
        { "a.qweight:I32[512] a.qzeros:I32[1,8] a.scales[1,64] a.g_idx:I32[64]", "gptq-4bit@60",
          0 },
        { "a.qweight:I32[6,64] a.qzeros:I32[1,6] a.scales[1,64] a.g_idx:I32[64]", "gptq-3bit",
          4096 },
        { "a.qweight:I32[8,64] a.qzeros:I32[1,8] a.scales[1,64] a.g_idx:I32[0]", "gptq-4bit@60",
          4096 },
        { "a.qweight:I32[64,8] a.qzeros:I32[1,8] a.scales[64]", "awq-4bit@60", 0 },
        { "a.qweight:I32[512] a.qzeros:I32[1,8] a.scales[1,64]", "awq-4bit@60", 0 },
        { "a.qweight:I32[64,8] a.qzeros:I32[1,8] a.scales[1,4]", "awq-4bit@60", 0 },
        { "qweight:I32[64,8] a.qzeros:I32[1,8] a.scales[1,64]", "-", 512 + 8 + 64 },
        { "a.weight:U32[64,8] a.scales:U8[64,2] a.biases[64,2]", "mlx-4bit", 4096 },
        { "a.weight:U32[64,16] a.scales:U8[64,2] a.biases[64,2]", "mlx-8bit", 4096 },
        { "a.weight:U32[64,16] a.scales:U8[64,0] a.biases[64,2]", "mlx-4bit@60", 0 },
        { "a.weight:U32[64,8] a.scales[64] a.biases[64]", "mlx-4bit@60", 0 },
        { "model.embed_tokens.weight:U32[10,16] model.embed_tokens.scales[10,1] "
          "model.embed_tokens.biases[10,1] model.norm.weight[8,8]", "mlx-8bit@60", 0 },
        { "model.embed_tokens.weight:U32[10,16] model.embed_tokens.scales[10,3] "
          "model.embed_tokens.biases[10,3] model.norm.weight[64]", "mlx-2bit@60", 0 },
        { "a.weight_packed:I32[64,8] a.weight_scale:BF16[64] a.weight_shape:I64[2]",
          "compressed-tensors", 0 },
        { "a.weight_packed:I32[512] a.weight_scale:BF16[64,1] a.weight_shape:I64[2]",
          "compressed-tensors", 0 },
        { "a.weight_packed:I32[64,8] a.weight_scale:BF16[64,2] a.weight_zero_point:I32[8,2] a.wei"
          "ght_shape:I64[2]",
          "compressed-tensors", 4096 },
        { "a.weight_packed:U8[64,32] a.weight_scale:U8[64,2]", "compressed-tensors", 4096 },
        /* MLX: mxfp4, nvfp4, mxfp8; rows that are packed without an index of groups */
        { "a.weight:U32[64,8] a.scales:U8[64,2]", "mlx-4bit", 4096 },
        { "a.weight:U32[64,8] a.scales:U8[64,4]", "mlx-4bit", 4096 },
        { "a.weight:U32[64,16] a.scales:U8[64,2]", "mlx-8bit", 4096 },
        { "a.qweight:I32[16,64] a.qzeros:I32[1,16] a.scales[1,64]", "gptq-8bit@60", 4096 },
        { "a.qweight:I32[4,64] a.qzeros:I32[1,4] a.scales[1,64]", "gptq-2bit@60", 4096 },
        /* MXFP4 of Quark and of DeepSeek V4 */
        { "a.weight:U8[64,32] a.weight_scale:U8[64,2]", "-", 4096 },
        { "a.weight:I8[64,32] a.scale:F8_E8M0[64,2] b.weight[4]", "-", 4100 },
        { "a.weight:I8[4,64,32] a.scale:F8_E8M0[4,64,2]", "-", 16384 },
        { "a.weight:BF16[1024,1] a.weight.absmax:U8[64] a.weight.quant_map:F32[16] "
          "a.weight.quant_state.bitsandbytes__nf4:U8[90]", "bnb-nf4", 4096 },
        /* codes of which nothing proves what they stand for */
        { "a.weight:U8[16,64] a.weight_scale:BF16[1] b.weight[64,64]", "-", 0 },
        { "a.W_q:U8[32,64] a.scale[64,1] a.zero[64,1]", "-", 0 },
        { "a.codes:I16[64,8,1] a.codebooks[1,65536,1,8] a.scales[64,1,1,1]", "-", 0 },
        { "a.trellis:I16[4,4,64] a.suh[64] a.svh[64]", "-", 0 },
        { "a.qweight:U8[64,32] a.scales:U8[64,2] a.weight_global_scale:F32[1]", "-", 0 },
        { "a.qweight:I16[16,64] a.scales:BF16[1,64] a.scaled_zeros:BF16[1,64]", "-", 0 },
        { "a.weight._data._data:U8[16,128] a.weight._scale[32,1] a.weight._shift[32,1]", "-", 0 },
        { "a.weight.compressed:BF16[64,32] a.weight.bitmask:U8[64,8]", "-", 0 },
        { "a.weight_packed:I32[2,128] a.scale_packed[1,64] a.meta:I16[2,128]",
          "compressed-tensors", 0 },
        { "a.dense_weights:I64[512] a.row_offsets:I32[65]", "-", 0 },
        { "a.B:I32[4,128] a.s[1,64]", "-", 0 },
        { "a.weight:I8[64,64] a.weight_scales[64]", "-", 0 },
        { "a.strange:I16[8,64] a.row_scales[64]", "-", 0 },
        /* TensorRT-LLM: whole bytes or halves, words of halves; and bytes that are floats */
        { "a.weight:I8[64,32] a.per_channel_scale[64]", "-", 0 },
        { "a.weight[64,16] a.weights_scaling_factor[1,64] a.prequant_scaling_factor[64]", "-", 0 },
        { "a.weight:F8_E4M3[64,64] a.weights_scaling_factor:F32[1] "
          "a.activation_scaling_factor:F32[1]", "fp8", 4096 },
        { "a.weight:F8_E4M3[64,64] a.odd_scale:F32[64]", "fp8", 4096 },
        /* one factor a row in one dimension: bytes of one code, or of two that nothing declares */
        { "a.weight:I8[64,32] a.weight_scale:F32[64]", "int8@60", 0 },
        { "a.weight:I8[64,32] a.weight_scale:F32[64] a.comfy_quant:U8[9]", "int4", 4096 },
        { "a.weight:I8[64,64] a.weight_scale:F32[1]", "int8", 4096 },
        /* whole numbers that are none */
        { "a.weight[64,64] m.position_ids:I64[1,77] m.num_batches_tracked:I64[]", "-", 4174 },
        { "h.attn.bias:U8[1,1,64,64] h.attn.masked_bias[] h.ln.weight[64]", "-", 4161 },
        { "t.position_ids:I32[1,77] t.scale:F32[] t.weight[64]", "-", 142 },
        { "a.attn.relative_position_index:I64[49,49] a.attn.logit_scale[4,1,1]", "-", 2405 },
        { "t.scaled_fp8:F8_E4M3[0] t.spiece_model:U8[77] t.a.weight:F8_E4M3[64,64]", "fp8-scaled",
          4096 },
        { "a.weight:I8[64,64] a.bias[64]", "-", 4160 },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char got[64];
        composed *made = compose(cases[i].tensors);
        compose_fact(&made->info, SFT_FACT_QUANTIZATION, got, sizeof got);
        const sfti_weights *weights = &made->info.weights;
        uint64_t told = weights->hidden || weights->undecided ? 0 : weights->known;
        if (strcmp(got, cases[i].id) != 0 || told != cases[i].parameters)
            fail_msg("%s: %s %llu", cases[i].tensors, got, (unsigned long long)told);
        compose_end(made);
    }
}

/* A packed shape is no shape: the family only, never a wrong member of it. */
static void packed_shapes_decide_nothing(void **state) {
    (void)state;
    expect_facts("input_blocks.0.0.weight[320,4,3,3] input_blocks.1.1" K ":U8[122880,1]",
                 "diffusion_model - -");
    expect_facts("double_blocks.{0-18}.img_attn.norm.key_norm.scale[128] single_blocks.37.x[1] "
                 "vector_in.x[1] img_in.weight:U8[98304,1] img_in.bias[3072] " GUIDED,
                 "diffusion_model flux.1-dev -");
    expect_facts("head.modulation[1,2,5120] head.head.weight:U8[9,1] "
                 "patch_embedding.weight:U8[9,1] blocks.0.x[1]", "diffusion_model wan@60 -");
    expect_facts("single_transformer_blocks.{0-37}.qkv_proj.qweight:I8[9216,1536] "
                 "single_transformer_blocks.0.qkv_proj.wscales[48,9216] "
                 "single_transformer_blocks.0.qkv_proj.lora_down[3072,32] "
                 "single_transformer_blocks.0.qkv_proj.lora_up[9216,32] "
                 "transformer_blocks.{0-18}.qkv_proj_context.qweight:I8[9216,1536] "
                 "x_embedder.weight[3072,64] "
                 "time_text_embed.guidance_embedder.linear_1.weight[3072,256]",
                 "diffusion_model flux.1-dev -");
}

/* ── Language models ── */

static void sizes_of_language_models(void **state) {
    static const struct { const char *tensors; uint64_t sizes[5]; } cases[] = {
        { LLAMA("31"), { 32, 4096, 32, 8, 128256 } },
        { "model.layers.{0-23}.self_attn.q_proj.weight[896,896] "
          "model.layers.{0-23}.self_attn.k_proj.weight[128,896] "
          "model.layers.{0-23}.self_attn.o_proj.weight[896,896] "
          "model.layers.0.self_attn.q_proj.bias[1] "
          "model.layers.0.self_attn.k_proj.bias[1] model.layers.0.mlp.gate_proj.weight[1,1] "
          "model.embed_tokens.weight[151936,896]", { 24, 896, 14, 2, 151936 } },
        { "model.layers.{0-27}.self_attn.q_proj.weight[2048,1024] "
          "model.layers.{0-27}.self_attn.k_proj.weight[1024,1024] "
          "model.layers.{0-27}.self_attn.o_proj.weight[1024,2048] "
          "model.layers.0.self_attn.q_norm.weight[128] model.layers.0.input_layernorm.weight[1024] "
          "model.layers.0.mlp.gate_proj.weight[1,1] model.embed_tokens.weight[151936,1024]",
          { 28, 1024, 16, 8, 151936 } },
        { "h.{0-11}.attn.c_attn.weight[768,2304] h.{0-11}.attn.c_proj.weight[768,768] "
          "h.0.mlp.c_fc.weight[1,1] wte.weight[50257,768]",
          { 12, 768, 12, 12, 50257 } },
        { "model.layers.{0-31}.self_attn.qkv_proj.weight[9216,3072] "
          "model.layers.{0-31}.self_attn.o_proj.weight[3072,3072] "
        "model.layers.0.mlp.gate_up_proj.weight[1,1] "
          "model.embed_tokens.weight[32064,3072]", { 32, 3072, 32, 32, 32064 } },
        { "bert.embeddings.word_embeddings.weight[30522,768] "
          "bert.encoder.layer.{0-11}.attention.self.query.weight[768,768] "
          "bert.encoder.layer.{0-11}.attention.output.dense.weight[768,768] "
          "bert.encoder.layer.{0-11}.attention.self.key.weight[768,768]",
          { 12, 768, 12, 12, 30522 } },
        { "model.layers.{0-9}.self_attn.q_proj.weight[3000,3000] "
        "model.layers.0.self_attn.k_proj.weight[3000,3000] "
          "model.layers.0.mlp.gate_proj.weight[1,1] model.layers.0.input_layernorm.weight[3000]",
          { 10, 3000, 0, 0, 0 } },
        { "model.layers.{0-9}.self_attn.q_proj.weight[3000] "
          "model.layers.0.self_attn.k_proj.weight[3000,3000] model.layers.1000000.x[1] "
          "model.layers.x.y[1] model.layers.0.mlp.gate_proj.weight[1,1] "
          "model.layers.0.input_layernorm.weight[3000] model.norm.weight[3000] "
          "model.embed_tokens.weight[100,3000]", { 10, 3000, 0, 0, 100 } },
        { "model.layers.{0-1}.self_attn.q_proj.weight[1024,1024] "
          "model.layers.{0-1}.self_attn.k_proj.weight[1024,1024] "
          "model.layers.0.self_attn.q_norm.weight[1024] model.layers.0.input_layernorm.weight[102"
          "4] "
          "model.layers.0.mlp.gate_proj.weight[1,1] model.embed_tokens.weight[100,1024]",
          { 2, 1024, 0, 0, 100 } },
        { "model.layers.{0-1}.self_attn.q_proj.weight[1024,1024] "
          "model.layers.{0-1}.self_attn.k_proj.weight[512,1024] "
          "model.layers.{0-1}.self_attn.o_proj.weight[1024,1024] "
          "model.layers.0.self_attn.rotary_emb.inv_freq[32] model.layers.0.input_layernorm.weight"
          "[1024] "
          "model.layers.0.mlp.gate_proj.weight[1,1] model.embed_tokens.weight[100,1024]",
          { 2, 1024, 0, 0, 100 } },
        /* a number for each head: sinks of gpt-oss, T5's biases */
        { "model.layers.{0-1}.self_attn.q_proj.weight[4096,2880] "
          "model.layers.{0-1}.self_attn.k_proj.weight[512,2880] "
          "model.layers.{0-1}.self_attn.o_proj.weight[2880,4096] "
          "model.layers.{0-1}.self_attn.sinks[64] model.embed_tokens.weight[100,2880]",
          { 2, 2880, 64, 8, 100 } },
        { "encoder.block.{0-1}.layer.0.SelfAttention.q.weight[4096,1024] "
          "encoder.block.{0-1}.layer.0.SelfAttention.k.weight[4096,1024] "
          "encoder.block.{0-1}.layer.0.SelfAttention.o.weight[1024,4096] "
          "encoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight[32,32] "
          "decoder.block.{0-1}.layer.0.SelfAttention.q.weight[4096,1024] "
          "decoder.block.0.layer.0.SelfAttention.relative_attention_bias.weight[32,32] "
          "shared.weight[32128,1024]", { 2, 1024, 32, 32, 32128 } },
        /* embeddings narrower than layers; a layer at the end that predicts more tokens */
        { "electra.embeddings.word_embeddings.weight[30522,128] "
          "electra.encoder.layer.{0-11}.attention.self.query.weight[256,256] "
          "electra.encoder.layer.{0-11}.attention.self.key.weight[256,256]",
          { 12, 256, 0, 0, 30522 } },
        { LLAMA("2") "model.layers.2.eh_proj.weight[4096,8192]", { 2, 4096, 32, 8, 128256 } },
        { LLAMA("2") "model.layers.1.eh_proj.weight[4096,8192]", { 3, 4096, 32, 8, 128256 } },
        /* a gate beside the queries (Qwen3-Next); norms by head (StableLM 2 12B); one head for
         * keys and values (StarCoder); layers that differ in theirs (DeciLM) or are not all
         * there */
        { "model.layers.3.self_attn.q_proj.weight[8192,2048] "
          "model.layers.3.self_attn.k_proj.weight[512,2048] "
          "model.layers.3.self_attn.o_proj.weight[2048,4096] "
          "model.layers.3.self_attn.q_norm.weight[256] "
          "model.layers.{0-3}.input_layernorm.weight[2048] "
          "model.layers.0.mlp.gate_proj.weight[1,1] model.embed_tokens.weight[100,2048]",
          { 4, 2048, 16, 2, 100 } },
        { "model.layers.{0-1}.self_attn.q_proj.weight[5120,5120] "
          "model.layers.{0-1}.self_attn.k_proj.weight[1280,5120] "
          "model.layers.{0-1}.self_attn.o_proj.weight[5120,5120] "
          "model.layers.{0-1}.self_attn.q_layernorm.norms.0.weight[160] "
          "model.layers.0.mlp.gate_proj.weight[1,1] model.layers.0.input_layernorm.weight[5120]",
          { 2, 5120, 32, 8, 0 } },
        { "h.{0-1}.attn.c_attn.weight[896,768] h.{0-1}.attn.c_proj.weight[768,768] "
          "h.0.mlp.c_fc.weight[1,1] wte.weight[49152,768]", { 2, 768, 12, 1, 49152 } },
        { LLAMA("2") "model.layers.3.self_attn.q_proj.weight[4096,4096] "
          "model.layers.3.self_attn.o_proj.weight[4096,4096] "
          "model.layers.3.self_attn.k_proj.weight[256,4096]", { 4, 4096, 32, 0, 128256 } },
        { LLAMA("2") "model.layers.4.input_layernorm.weight[4096]", { 0, 4096, 32, 8, 128256 } },
        { LLAMA("2") "model.layers.03.input_layernorm.weight[4096]", { 3, 4096, 32, 8, 128256 } },
        /* keys wider than values */
        { "model.layers.{0-1}.self_attn.q_proj.weight[12288,4096] "
          "model.layers.{0-1}.self_attn.k_proj.weight[768,4096] "
          "model.layers.{0-1}.self_attn.o_proj.weight[4096,8192] "
          "model.layers.0.mlp.gate_proj.weight[1,1] model.layers.0.input_layernorm.weight[4096]",
          { 2, 4096, 0, 0, 0 } },
        /* codes whose shape nothing proves: EETQ's are turned, TensorRT-LLM's two a byte, HIGGS has
         * words of 16 bits */
        { "model.layers.{0-1}.self_attn.q_proj.weight:I8[4096,4096] "
          "model.layers.{0-1}.self_attn.q_proj.weight_scales[4096] "
          "model.layers.{0-1}.self_attn.k_proj.weight:I8[4096,1024] "
          "model.layers.{0-1}.self_attn.k_proj.weight_scales[1024] "
          "model.layers.{0-1}.self_attn.o_proj.weight:I8[4096,4096] "
          "model.layers.{0-1}.self_attn.o_proj.weight_scales[4096] "
          "model.layers.0.input_layernorm.weight[4096] model.norm.weight[4096]",
          { 2, 4096, 0, 0, 0 } },
        { "model.layers.{0-1}.self_attn.q_proj.weight:I8[4096,2048] "
          "model.layers.{0-1}.self_attn.q_proj.per_channel_scale[4096] "
          "model.layers.0.self_attn.k_proj.weight[1,1] model.layers.0.mlp.gate_proj.weight[1,1] "
          "model.layers.0.input_layernorm.weight[4096] model.embed_tokens.weight[100,512]",
          { 2, 0, 0, 0, 100 } },
        { "model.layers.{0-1}.self_attn.q_proj.weight:I16[1024,4096] "
          "model.layers.{0-1}.self_attn.k_proj.weight:I16[256,4096] "
          "model.layers.{0-1}.self_attn.o_proj.weight:I16[1024,4096] "
          "model.layers.0.input_layernorm.weight[4096] model.norm.weight[4096]",
          { 2, 4096, 0, 0, 0 } },
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        composed *made = compose(cases[i].tensors);
        const sft_info *info = &made->info;
        uint64_t got[5] = { info->llm.layers, info->llm.hidden, info->llm.heads,
                            info->llm.kv_heads, info->llm.vocab };
        assert_true(info->has_llm);
        for (int k = 0; k < 5; k++)
            if (got[k] != cases[i].sizes[k])
                fail_msg("case %zu size %d: %llu", i, k, (unsigned long long)got[k]);
        compose_end(made);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(precision_is_what_most_bytes_are),
        cmocka_unit_test(precision_of_packed_weights),
        cmocka_unit_test(quantisation_and_true_parameters),
        cmocka_unit_test(packed_shapes_decide_nothing),
        cmocka_unit_test(sizes_of_language_models),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
