/* Factors of another rank: what each verb makes of small adapters and models, and what it
 * refuses. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/adapter_spell.h"

typedef struct verb_case {
    const char *what;
    sft_adapter_verb verb;
    sft_adapter_factors_options how; /* dtype 0: as before */
    const char *inputs[3], *config;
    sft_code code;
    const char *want; /* the tensors, or words of the message */
} verb_case;

static sft_code run(const void *ctx, const sft_allocator *alloc, char *out, size_t cap,
                    sft_error *err) {
    const verb_case *one = ctx;
    test_file files[3];
    sft_set *sets[3];
    sft_adapter_factors_options how = one->how;
    sft_adapter_factors *f;
    sft_buffer file = { 0 };
    size_t count = 0;
    how.size = sizeof how;
    how.alloc = alloc;
    if (how.dtype == 0) how.dtype = SFT_DTYPE_COUNT;
    sft_code code = sft_adapter_factors_new(one->verb, &how, &f, err);
    for (; count < 3 && one->inputs[count]; count++) {
        sft_adapter_use use = SFT_ADAPTER_USE_INIT;
        files[count] = spell_file(one->inputs[count]);
        sets[count] = adapter_set(&files[count], NULL);
        use.name = "named";
        if (one->config && count == 0) use.config = sft_span_cstr(one->config);
        assert_non_null(sets[count]);
        if (!code) code = sft_adapter_factors_add(f, sets[count], &use, err);
    }
    if (!code) code = sft_adapter_factors_save(f, sft_sink_memory(&file), NULL, err);
    if (!code) spell_buffer(&file, out, cap);
    sft_adapter_factors_free(f);
    sft_buffer_free(&file);
    while (count-- > 0) {
        sft_set_close(sets[count]);
        free_file(&files[count]);
    }
    return code;
}

static void check(const verb_case *cases, size_t count) {
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong += !spell_case(i, run, &cases[i], cases[i].what, cases[i].code, cases[i].want);
    assert_int_equal(wrong, 0);
}
#define CHECK(cases) check(cases, sizeof(cases) / sizeof *(cases))

/* A change of 16 0 / 0 1, in two ranks. */
#define DIAGONAL(name, more) \
    name ".lora_down.weight F32 2,2 1 0 0 1;" name ".lora_up.weight F32 2,2 16 0 0 1;" more
#define ONE(name, more) \
    name ".lora_down.weight F32 1,2 1 0;" name ".lora_up.weight F32 2,1 4 0;" more
#define OF_PEFT(name, more) \
    name ".lora_A.weight F32 1,2 1 0;" name ".lora_B.weight F32 2,1 4 0;" more
#define LOHA(name) \
    name ".hada_w1_a F32 2,1 2 0;" name ".hada_w1_b F32 1,2 2 0;" \
    name ".hada_w2_a F32 2,1 2 0;" name ".hada_w2_b F32 1,2 2 0;"

static void resizes(void **unused) {
    (void)unused;
#define TO_ONE SFT_ADAPTER_RESIZE, { .rank = 1 }
    static const verb_case cases[] = {
        { "the larger half", TO_ONE, { DIAGONAL("c", "") }, NULL, SFT_OK,
          "c.lora_down.weight F32 1,2 4 0; c.lora_up.weight F32 2,1 4 0" },
        { "and alpha", TO_ONE, { DIAGONAL("c", "c.alpha F16 - 1") }, NULL, SFT_OK,
          "c.lora_down.weight F32 1,2 4 0; c.lora_up.weight F32 2,1 4 0; c.alpha F16 - 0.5" },
        { "an alpha that its dtype cannot hold", TO_ONE, { DIAGONAL("c", "c.alpha F16 - 6e-8") },
          NULL, SFT_OK,
          "c.lora_down.weight F32 1,2 4 0; c.lora_up.weight F32 2,1 1.1921e-07 0; c.alpha F16 "
          "- 1" },
        { "an alpha of 0", TO_ONE, { DIAGONAL("c", "c.alpha F32 - 0") }, NULL, SFT_OK,
          "c.alpha F32 - 0; c.lora_down.weight F32 1,2 4 0; c.lora_up.weight F32 2,1 4 0" },
        { "what has no factors", TO_ONE, { DIAGONAL("c", "d.diff_b F32 2 1 2;e.ia3_l F32 2,1 3") },
          NULL, SFT_OK,
          "c.lora_down.weight F32 1,2 4 0; c.lora_up.weight F32 2,1 4 0; d.diff_b F32 2 1 2; "
          "e.ia3_l F32 2,1 3 3" },
        { "LoHa", TO_ONE, { LOHA("c") }, NULL, SFT_CAST_DTYPE, "expected LoRA modules" },
        { "differences alone", TO_ONE, { "c.diff F32 2,2 1" }, NULL, SFT_TENSOR_NOT_FOUND,
          "expected LoRA modules, found none" },
        { "no adapter", TO_ONE, { "c F32 2,2 1" }, NULL, SFT_TENSOR_NOT_FOUND,
          "expected an adapter" },
        { "a bias", TO_ONE, { DIAGONAL("c", "c.lora_B.bias F32 2 1 2") }, NULL, SFT_OK,
          "c.lora_B.bias F32 2 1 2; c.lora_down.weight F32 1,2 4 0; c.lora_up.weight F32 2,1 4 "
          "0" },
        { "a scaled bias", TO_ONE, { DIAGONAL("c", "c.alpha F32 - 1;c.lora_B.bias F32 2 1 2") },
          NULL, SFT_CAST_DTYPE, "a scale of 1" },
        { "DoRA", TO_ONE, { DIAGONAL("c", "c.dora_scale F32 2,1 3 4") }, NULL, SFT_OK,
          "c.dora_scale F32 2,1 3 4; c.lora_down.weight F32 1,2 4 0; c.lora_up.weight F32 2,1 "
          "4 0" },
        { "nine dimensions", TO_ONE, { "c.lora_down.weight F32 1,2,1,1,1,1,1,1,1;"
          "c.lora_up.weight F32 2,1" }, NULL, SFT_SIZE_MISMATCH, "2 to 8 dimensions" },
        { "nine above", TO_ONE,
          { "c.lora_down.weight F32 1,2;c.lora_up.weight F32 2,1,1,1,1,1,1,1,1" },
          NULL, SFT_SIZE_MISMATCH, "2 to 8 dimensions" },
        { "one dimension", TO_ONE, { "c.lora_down.weight F32 2;c.lora_up.weight F32 2,2" }, NULL,
          SFT_SIZE_MISMATCH, "2 to 8 dimensions" },
        { "an embedding", TO_ONE, { "c.lora_embedding_A F32 2,2 1 0 0 1;"
          "c.lora_embedding_B F32 2,2 16 0 0 1" }, NULL, SFT_OK,
          "c.lora_embedding_A F32 1,2 4 0; c.lora_embedding_B F32 2,1 4 0" },
        { "a core", TO_ONE, { DIAGONAL("c", "c.lora_mid.weight F32 2,2,1,1 1 0 0 1") }, NULL,
          SFT_OK,
          "c.lora_down.weight F32 1,2,1,1 4 0; c.lora_up.weight F32 2,1 4 0" },
        { "a convolution keeps its rank", SFT_ADAPTER_RESIZE, { .rank = 1, .conv_rank = 2 },
          { DIAGONAL("c", "d.lora_down.weight F32 2,1,1,2 1 0 0 1;"
            "d.lora_up.weight F32 2,2,1,1 16 0 0 1") }, NULL, SFT_OK,
          "c.lora_down.weight F32 1,2 4 0; c.lora_up.weight F32 2,1 4 0; d.lora_down.weight "
          "F32 2,1,1,2 4 0 0 1; d.lora_up.weight F32 2,2,1,1 4 0 0 1" },
        { "PEFT's alpha", TO_ONE, { OF_PEFT("base_model.model.c", "") }, "{\"lora_alpha\":4}",
          SFT_OK,
          "base_model.model.c.lora_A.weight F32 1,2 2 0; base_model.model.c.lora_B.weight F32 "
          "2,1 8 0" },
        { "in F16", SFT_ADAPTER_RESIZE, { .rank = 1, .dtype = SFT_F16 },
          { "c.lora_down.weight F32 1,2 1e9 0;c.lora_up.weight F32 2,1 1e9 0" }, NULL,
          SFT_CAST_VALUE, "factors that F16 can hold, found larger ones" },
        { "in F16, and too small", SFT_ADAPTER_RESIZE, { .rank = 1, .dtype = SFT_F16 },
          { "c.lora_down.weight F32 1,2 1e-9 0;c.lora_up.weight F32 2,1 1e-9 0" }, NULL,
          SFT_CAST_VALUE, "found only smaller ones" },
        { "F64", TO_ONE, { "c.lora_down.weight F64 1,2 1 0;c.lora_up.weight F64 2,1 4 0" }, NULL,
          SFT_OK,
          "c.lora_down.weight F32 1,2 2 0; c.lora_up.weight F32 2,1 2 0" },
        { "F8", TO_ONE, { "c.lora_down.weight F8_E4M3 1,2 1 0;c.lora_up.weight F8_E4M3 2,1 4 0" },
          NULL, SFT_OK,
          "c.lora_down.weight BF16 1,2 2 0; c.lora_up.weight BF16 2,1 2 0" },
        { "no numbers", TO_ONE, { ONE("c", "d.lora_down.weight F32 1,2 nan;"
          "d.lora_up.weight F32 2,1 1") }, NULL, SFT_CAST_VALUE, "found NaN" },
        { "of another rank than told", TO_ONE, { ONE("c", "") }, "{\"r\":2}", SFT_SIZE_MISMATCH,
          "expected a rank of 2" },
        { "half of the norm", SFT_ADAPTER_RESIZE, { .rule = SFT_ADAPTER_FRO, .value = 0.5 },
          { DIAGONAL("c", "") }, NULL, SFT_OK,
          "c.lora_down.weight F32 1,2 4 0; c.lora_up.weight F32 2,1 4 0" },
        { "all but a thousandth", SFT_ADAPTER_RESIZE, { .rule = SFT_ADAPTER_ERROR, .value = 0.001 },
          { DIAGONAL("c", "") }, NULL, SFT_OK,
          "c.lora_down.weight F32 2,2 4 0 0 1; c.lora_up.weight F32 2,2 4 0 0 1" },
        { "half of the sum", SFT_ADAPTER_RESIZE, { .rule = SFT_ADAPTER_CUMULATIVE, .value = 0.5 },
          { DIAGONAL("c", "") }, NULL, SFT_OK,
          "c.lora_down.weight F32 1,2 4 0; c.lora_up.weight F32 2,1 4 0" },
        { "above a tenth", SFT_ADAPTER_RESIZE, { .rule = SFT_ADAPTER_RATIO, .value = 10 },
          { DIAGONAL("c", "") }, NULL, SFT_OK,
          "c.lora_down.weight F32 1,2 4 0; c.lora_up.weight F32 2,1 4 0" },
        { "two of which one is 0", SFT_ADAPTER_RESIZE, { .rank = 2 },
          { "c.lora_down.weight F32 2,2 1 0 0 1;c.lora_up.weight F32 2,2 16 0 0 0" }, NULL, SFT_OK,
          "c.lora_down.weight F32 1,2 4 0; c.lora_up.weight F32 2,1 4 0" },
    };
    CHECK(cases);
}

static void stacks(void **unused) {
    (void)unused;
#define STACK SFT_ADAPTER_STACK, { 0 }
    static const verb_case cases[] = {
        { "two", STACK, { ONE("c", "c.alpha F32 - 2"), ONE("c", "c.alpha F32 - 1") }, NULL, SFT_OK,
          "c.alpha F32 - 4; c.lora_down.weight F32 2,2 1 0 1 0; c.lora_up.weight F32 2,2 4 2 0 "
          "0" },
        { "two layers", STACK, { ONE("c", ""), ONE("c", ONE("d", "")) }, NULL, SFT_OK,
          "c.lora_down.weight F32 2,2 1 0 1 0; c.lora_up.weight F32 2,2 4 4 0 0; "
          "d.lora_down.weight F32 1,2 1 0; d.lora_up.weight F32 2,1 4 0" },
        { "of which the first adds nothing", STACK, { ONE("c", "c.alpha F32 - 0"), ONE("c", "") },
          NULL, SFT_OK,
          "c.alpha F32 - 2; c.lora_down.weight F32 2,2 1 0 1 0; c.lora_up.weight F32 2,2 0 4 0 "
          "0" },
        { "of two dtypes", STACK, { "c.lora_down.weight F16 1,2 1 0;c.lora_up.weight F16 2,1 4 0",
          ONE("c", "") }, NULL, SFT_OK,
          "c.lora_down.weight F32 2,2 1 0 1 0; c.lora_up.weight F32 2,2 4 4 0 0" },
        { "of PEFT", STACK,
          { OF_PEFT("base_model.model.c", ""), OF_PEFT("base_model.model.c", "") },
          "{\"lora_alpha\":3}", SFT_OK,
          "base_model.model.c.lora_A.weight F32 2,2 1 0 1 0; base_model.model.c.lora_B.weight "
          "F32 2,2 12 4 0 0" },
        { "and another tensor", STACK, { ONE("c", "d F32 2 1"), ONE("c", "") }, NULL,
          SFT_CAST_DTYPE, "tensors of LoRA modules alone" },
        { "of two sizes", STACK, { ONE("c", ""), "c.lora_down.weight F32 1,3 1;"
          "c.lora_up.weight F32 2,1 1" }, NULL, SFT_SIZE_MISMATCH, "a layer of 2 x 2" },
        { "of two heights", STACK, { ONE("c", ""), "c.lora_down.weight F32 1,2 1;"
          "c.lora_up.weight F32 3,1 1" }, NULL, SFT_SIZE_MISMATCH, "a layer of 2 x 2" },
        { "of two kernels", STACK,
          { "c.lora_down.weight F32 1,1,1,3 1;c.lora_up.weight F32 2,1,1,1",
          "c.lora_down.weight F32 1,1,3,1 1;c.lora_up.weight F32 2,1,1,1" }, NULL,
          SFT_SIZE_MISMATCH, "expected a kernel as" },
        { "of a kernel and none", STACK,
          { "c.lora_down.weight F32 1,1,1,2 1;c.lora_up.weight F32 2,1",
          ONE("c", "") }, NULL, SFT_SIZE_MISMATCH, "a layer of 2 x 2" },
        { "of kernels with dimensions more", STACK, { "c.lora_down.weight F32 1,1,2 1;"
          "c.lora_up.weight F32 2,1", "c.lora_down.weight F32 1,1,2,1 1;c.lora_up.weight F32 2,1" },
          NULL, SFT_SIZE_MISMATCH, "expected a kernel as" },
        { "of two layouts", STACK, { ONE("c", ""), OF_PEFT("c", "") }, NULL, SFT_TENSOR_NOT_FOUND,
          "another layout of names" },
        { "of no layer in common", STACK, { ONE("c", ""), ONE("d", "") }, NULL,
          SFT_TENSOR_NOT_FOUND, "expected names of layers as the other adapters have" },
        { "of two parts", STACK, { ONE("c", ""), ONE("lora_te_d", "") }, NULL, SFT_OK,
          "c.lora_down.weight F32 1,2 1 0; c.lora_up.weight F32 2,1 4 0; "
          "lora_te_d.lora_down.weight F32 1,2 1 0; lora_te_d.lora_up.weight F32 2,1 4 0" },
        { "DoRA", STACK, { ONE("c", "c.dora_scale F32 2,1 1"), ONE("c", "") }, NULL,
          SFT_CAST_DTYPE, "plain LoRA modules (simplify makes them), found lora with DoRA's" },
        { "a bias", STACK, { ONE("c", "c.lora_B.bias F32 2 1"), ONE("c", "") }, NULL,
          SFT_CAST_DTYPE, "plain LoRA modules" },
        { "a difference of one", STACK, { ONE("c", "c.diff_b F32 2 1"), ONE("c", "") }, NULL,
          SFT_CAST_DTYPE, "plain LoRA modules" },
        { "LoHa", STACK, { LOHA("c") , ONE("c", "") }, NULL, SFT_CAST_DTYPE, "found loha" },
        { "under names of kohya", SFT_ADAPTER_STACK, { .names = SFT_ADAPTER_KOHYA,
          .architecture = "flux.1" }, { OF_PEFT("transformer.x_embedder", ""),
          ONE("lora_unet_img_in", "") }, NULL, SFT_OK,
          "lora_unet_img_in.lora_down.weight F32 2,2 1 0 1 0; lora_unet_img_in.lora_up.weight "
          "F32 2,2 4 4 0 0" },
        { "which are not known", SFT_ADAPTER_STACK, { .names = SFT_ADAPTER_KOHYA,
          .architecture = "flux.1" }, { OF_PEFT("transformer.x_embedder", ""),
          ONE("lora_unet_img_in", ONE("lora_unet_none", "")) }, NULL, SFT_TENSOR_NOT_FOUND,
          "found 1 others" },
        { "of no architecture", SFT_ADAPTER_STACK, { .names = SFT_ADAPTER_KOHYA }, { ONE("c", "") },
          NULL, SFT_TENSOR_NOT_FOUND, "an adapter that tells its model" },
        { "of an adapter that tells it", SFT_ADAPTER_STACK, { .names = SFT_ADAPTER_COMFY },
          { "=modelspec.architecture flux-1-dev/lora;"
          ONE("lora_unet_double_blocks_0_img_attn_proj", "=ss_base_model_version flux1"),
          ONE("lora_unet_double_blocks_0_img_attn_proj", "") },
          NULL, SFT_OK,
          "diffusion_model.double_blocks.0.img_attn.proj.lora_A.weight F32 2,2 1 0 1 0; "
          "diffusion_model.double_blocks.0.img_attn.proj.lora_B.weight F32 2,2 4 4 0 0" },
        { "by a rule", SFT_ADAPTER_STACK, { .rank = 1 }, { ONE("c", ""), ONE("c", "") }, NULL,
          SFT_OK,
          "c.lora_down.weight F32 1,2 2.8284 0; c.lora_up.weight F32 2,1 2.8284 0" },
        { "exactly", SFT_ADAPTER_STACK, { .rule = SFT_ADAPTER_EXACT },
          { ONE("c", ""), ONE("c", "") },
          NULL, SFT_OK,
          "c.lora_down.weight F32 2,2 1 0 1 0; c.lora_up.weight F32 2,2 4 4 0 0" },
    };
    CHECK(cases);
}

static void extracts(void **unused) {
    (void)unused;
#define TWICE(a, b) { a " 17 2 3 5", b " 1 2 3 4" }
#define EXTRACT(...) SFT_ADAPTER_EXTRACT, { .rank = 1, __VA_ARGS__ }
#define UNET "model.diffusion_model.input_blocks.1.1.transformer_blocks.0.attn1.to_q"
    static const verb_case cases[] = {
        { "one layer", EXTRACT(), TWICE("c.weight F32 2,2", "c.weight F32 2,2"), NULL, SFT_OK,
          "lora_unet_c.alpha F32 - 1; lora_unet_c.lora_down.weight F32 1,2 4 0; "
          "lora_unet_c.lora_up.weight F32 2,1 4 0" },
        { "for language models", EXTRACT(), TWICE("model.layers.0.c.weight F32 2,2",
          "model.layers.0.c.weight F32 2,2"), NULL, SFT_OK,
          "base_model.model.model.layers.0.c.lora_A.weight F32 1,2 4 0; "
          "base_model.model.model.layers.0.c.lora_B.weight F32 2,1 4 0" },
        { "for ComfyUI", EXTRACT(.names = SFT_ADAPTER_COMFY), TWICE(UNET ".weight F32 2,2",
          UNET ".weight F32 2,2"), NULL, SFT_OK,
          "diffusion_model.input_blocks.1.1.transformer_blocks.0.attn1.to_q.alpha F32 - 1; "
          "diffusion_model.input_blocks.1.1.transformer_blocks.0.attn1.to_q.lora_down.weight "
          "F32 1,2 4 0; "
          "diffusion_model.input_blocks.1.1.transformer_blocks.0.attn1.to_q.lora_up.weight F32 "
          "2,1 4 0" },
        { "for SD 1", EXTRACT(), TWICE("cond_stage_model.x F32 2;" UNET ".weight F32 2,2",
          UNET ".weight F32 2,2"), NULL, SFT_OK,
          "lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_q.alpha F32 - 1; "
          "lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_q.lora_down.weight "
          "F32 1,2 4 0; "
          "lora_unet_down_blocks_0_attentions_0_transformer_blocks_0_attn1_to_q.lora_up.weight "
          "F32 2,1 4 0" },
        { "the only encoder", EXTRACT(),
          TWICE("cond_stage_model.transformer.text_model.q.weight F32 2,2",
                "cond_stage_model.transformer.text_model.q.weight F32 2,2"), NULL, SFT_OK,
          "lora_te_text_model_q.alpha F32 - 1; lora_te_text_model_q.lora_down.weight F32 1,2 4 "
          "0; lora_te_text_model_q.lora_up.weight F32 2,1 4 0" },
        { "the first encoder", EXTRACT(),
          TWICE("text_encoders.clip_g.x F32 2;text_encoders.clip_l.transformer.text_model.q.weight "
                "F32 2,2", "text_encoders.clip_l.transformer.text_model.q.weight F32 2,2"), NULL,
          SFT_OK,
          "lora_te1_text_model_q.alpha F32 - 1; lora_te1_text_model_q.lora_down.weight F32 1,2 "
          "4 0; lora_te1_text_model_q.lora_up.weight F32 2,1 4 0" },
        { "the first encoder for ComfyUI", EXTRACT(.names = SFT_ADAPTER_COMFY),
          TWICE("text_encoders.clip_l.transformer.text_model.q.weight F32 2,2",
                "text_encoders.clip_l.transformer.text_model.q.weight F32 2,2"), NULL, SFT_OK,
          "text_encoders.clip_l.transformer.text_model.q.alpha F32 - 1; "
          "text_encoders.clip_l.transformer.text_model.q.lora_down.weight F32 1,2 4 0; "
          "text_encoders.clip_l.transformer.text_model.q.lora_up.weight F32 2,1 4 0" },
        { "the second encoder", EXTRACT(),
          TWICE("text_encoders.clip_g.transformer.text_model.q.weight F32 2,2",
                "text_encoders.clip_g.transformer.text_model.q.weight F32 2,2"), NULL, SFT_OK,
          "lora_te2_text_model_q.alpha F32 - 1; lora_te2_text_model_q.lora_down.weight F32 1,2 "
          "4 0; lora_te2_text_model_q.lora_up.weight F32 2,1 4 0" },
        { "the second encoder for ComfyUI", EXTRACT(.names = SFT_ADAPTER_COMFY),
          TWICE("text_encoders.clip_g.transformer.text_model.q.weight F32 2,2",
                "text_encoders.clip_g.transformer.text_model.q.weight F32 2,2"), NULL, SFT_OK,
          "text_encoders.clip_g.transformer.text_model.q.alpha F32 - 1; "
          "text_encoders.clip_g.transformer.text_model.q.lora_down.weight F32 1,2 4 0; "
          "text_encoders.clip_g.transformer.text_model.q.lora_up.weight F32 2,1 4 0" },
        { "T5", EXTRACT(),
          TWICE("text_encoders.t5xxl.transformer.encoder.block.0.layer.0.SelfAttention.q.weight "
                "F32 2,2",
                "text_encoders.t5xxl.transformer.encoder.block.0.layer.0.SelfAttention.q.weight "
                "F32 2,2"), NULL, SFT_OK,
          "lora_te3_encoder_block_0_layer_0_SelfAttention_q.alpha F32 - 1; "
          "lora_te3_encoder_block_0_layer_0_SelfAttention_q.lora_down.weight F32 1,2 4 0; "
          "lora_te3_encoder_block_0_layer_0_SelfAttention_q.lora_up.weight F32 2,1 4 0" },
        { "T5 for ComfyUI", EXTRACT(.names = SFT_ADAPTER_COMFY),
          TWICE("text_encoders.t5xxl.transformer.encoder.block.0.layer.0.SelfAttention.q.weight "
                "F32 2,2",
                "text_encoders.t5xxl.transformer.encoder.block.0.layer.0.SelfAttention.q.weight "
                "F32 2,2"), NULL, SFT_OK,
          "text_encoders.t5xxl.transformer.encoder.block.0.layer.0.SelfAttention.q.alpha F32 - "
          "1; "
          "text_encoders.t5xxl.transformer.encoder.block.0.layer.0.SelfAttention.q"
          ".lora_down.weight "
          "F32 1,2 4 0; "
          "text_encoders.t5xxl.transformer.encoder.block.0.layer.0.SelfAttention.q.lora_up.weight "
          "F32 2,1 4 0" },
        { "norms and biases", EXTRACT(.norms = true),
          { "c.weight F32 2,2 17 2 3 5;c.bias F32 2 3 4;n.weight F32 2 5 6;m F32 2 7 8",
            "c.weight F32 2,2 1 2 3 4;c.bias F32 2 1;n.weight F32 2 1;m F32 2 1" }, NULL, SFT_OK,
          "lora_unet_c.alpha F32 - 1; lora_unet_c.diff_b F32 2 2 3; "
          "lora_unet_c.lora_down.weight F32 1,2 4 0; lora_unet_c.lora_up.weight F32 2,1 4 0; "
          "lora_unet_m.diff F32 2 6 7; lora_unet_n.diff F32 2 4 5" },
        { "for PEFT without them", EXTRACT(.norms = true, .names = SFT_ADAPTER_PEFT),
          { "c.weight F32 2,2 17 2 3 5;c.bias F32 2 3 4",
            "c.weight F32 2,2 1 2 3 4;c.bias F32 2 1" },
          NULL, SFT_OK,
          "base_model.model.c.lora_A.weight F32 1,2 4 0; base_model.model.c.lora_B.weight F32 "
          "2,1 4 0" },
        { "what only one has", EXTRACT(), { "c.weight F32 2,2 1;d.weight F32 2,2 1",
          "c.weight F32 2,2 2" }, NULL, SFT_TENSOR_NOT_FOUND, "found none for 1" },
        { "unless that is of no interest", EXTRACT(.ignore_unmatched = true),
          { "c.weight F32 2,2 17 2 3 5;d.weight F32 2,2 1;e.weight F32 2 1",
            "c.weight F32 2,2 1 2 3 4" }, NULL, SFT_OK,
          "lora_unet_c.alpha F32 - 1; lora_unet_c.lora_down.weight F32 1,2 4 0; "
          "lora_unet_c.lora_up.weight F32 2,1 4 0" },
        { "of another shape", EXTRACT(), { "c.weight F32 2,2 1", "c.weight F32 2,3 2" }, NULL,
          SFT_TENSOR_NOT_FOUND, "found none for 1" },
        { "of other dimensions", EXTRACT(), { "c.weight F32 2,2 1", "c.weight F32 2,2,1 2" }, NULL,
          SFT_TENSOR_NOT_FOUND, "found none for 1" },
        { "nothing that differs", EXTRACT(), { "c.bias F32 2 1;s F32 - 3;none F32 0,2",
          "c.bias F32 2 1;s F32 - 3;none F32 0,2" }, NULL, SFT_TENSOR_NOT_FOUND,
          "expected layers with a change, found none among 0" },
        { "positions", EXTRACT(), { "c.weight F32 2,2 17 2 3 5;p I64 1,1;q I64 1;r U8 2 1",
          "c.weight F32 2,2 1 2 3 4;p I64 1,1;q I64 1;r U8 2 2" }, NULL, SFT_OK,
          "lora_unet_c.alpha F32 - 1; lora_unet_c.lora_down.weight F32 1,2 4 0; "
          "lora_unet_c.lora_up.weight F32 2,1 4 0" },
        { "integers", EXTRACT(), { "c.weight I8 2,2 1", "c.weight I8 2,2 2" }, NULL, SFT_CAST_DTYPE,
          "found a quantised one" },
        { "integers of the base", EXTRACT(), { "c.weight F32 2,2 1", "c.weight I8 2,2 2" }, NULL,
          SFT_CAST_DTYPE, "found a quantised one" },
        { "a convolution that is left out", EXTRACT(),
          { "c.weight F32 2,2 17 2 3 5;d.weight F32 2,2,3,3 1", "c.weight F32 2,2 1 2 3 4;"
            "d.weight F32 2,2,3,3 2" }, NULL, SFT_OK,
          "lora_unet_c.alpha F32 - 1; lora_unet_c.lora_down.weight F32 1,2 4 0; "
          "lora_unet_c.lora_up.weight F32 2,1 4 0" },
        { "convolutions alone", EXTRACT(.conv_rank = 1), { "d.weight F32 2,1,1,2 17 2 3 5",
          "d.weight F32 2,1,1,2 1 2 3 4" }, NULL, SFT_OK,
          "lora_unet_d.alpha F32 - 1; lora_unet_d.lora_down.weight F32 1,1,1,2 4 0; "
          "lora_unet_d.lora_up.weight F32 2,1,1,1 4 0" },
        { "a difference that is too small", EXTRACT(.min_diff = 100),
          TWICE("c.weight F32 2,2", "c.weight F32 2,2"), NULL, SFT_TENSOR_NOT_FOUND,
          "found none among 1" },
        { "clamped", EXTRACT(.clamp_quantile = 1), TWICE("c.weight F32 2,2", "c.weight F32 2,2"),
          NULL, SFT_OK,
          "lora_unet_c.alpha F32 - 1; lora_unet_c.lora_down.weight F32 1,2 4 0; "
          "lora_unet_c.lora_up.weight F32 2,1 4 0" },
        { "clamped to nothing", EXTRACT(.clamp_quantile = 1e-9), { "c.weight F32 2,2 1 2 3 4",
          "c.weight F32 2,2 17 2 3 5" }, NULL, SFT_OK,
          "lora_unet_c.alpha F32 - 1; lora_unet_c.lora_down.weight F32 1,2 0 0; "
          "lora_unet_c.lora_up.weight F32 2,1 0 0" },
        { "NaN in the base", EXTRACT(), { "c.weight F32 2,2 1", "c.weight F32 2,2 nan" }, NULL,
          SFT_CAST_VALUE, "found NaN" },
        { "NaN in a norm", EXTRACT(.norms = true), { "c.weight F32 2 nan", "c.weight F32 2 1" },
          NULL, SFT_CAST_VALUE, "found NaN" },
    };
    CHECK(cases);
}

static void simplifies(void **unused) {
    (void)unused;
#define EXACT SFT_ADAPTER_SIMPLIFY, { .rule = SFT_ADAPTER_EXACT }
#define LAYER "c.weight F32 2,2 4 0 0 1"
    static const verb_case cases[] = {
        { "plain LoRA of LoHa", EXACT, { LOHA("c") }, NULL, SFT_OK,
          "c.alpha F32 - 1; c.lora_down.weight F32 1,2 4 0; c.lora_up.weight F32 2,1 4 0" },
        { "and what is plain", EXACT, { LOHA("c") ONE("d", "") "e.diff_b F32 2 1" }, NULL, SFT_OK,
          "c.alpha F32 - 1; c.lora_down.weight F32 1,2 4 0; c.lora_up.weight F32 2,1 4 0; "
          "d.lora_down.weight F32 1,2 1 0; d.lora_up.weight F32 2,1 4 0; e.diff_b F32 2 1 1" },
        { "what is plain alone", EXACT, { ONE("d", "") }, NULL, SFT_TENSOR_NOT_FOUND,
          "expected modules that are no plain LoRA, found none" },
        { "LoKr", EXACT, { "c.lokr_w1 F32 1,1 4;c.lokr_w2 F32 2,2 4 0 0 0" }, NULL, SFT_OK,
          "c.alpha F32 - 1; c.lora_down.weight F32 1,2 4 0; c.lora_up.weight F32 2,1 4 0" },
        { "LoKr in factors", EXACT, { "c.lokr_w1 F32 1,1 4;c.lokr_w2_a F32 2,1 4 0;"
          "c.lokr_w2_b F32 1,2 1 0;c.alpha F32 - 1" }, NULL, SFT_OK,
          "c.alpha F32 - 1; c.lora_down.weight F32 1,2 4 0; c.lora_up.weight F32 2,1 4 0" },
        { "a core of LoKr", EXACT, { "c.lokr_w1 F32 1,1 4;c.lokr_w2_a F32 1,2 4 0;"
          "c.lokr_w2_b F32 1,2 1 0;c.lokr_t2 F32 1,1,1,1 1;c.alpha F32 - 1" }, NULL, SFT_OK,
          "c.alpha F32 - 1; c.lora_down.weight F32 1,2,1,1 4 0; c.lora_up.weight F32 2,1,1,1 4 "
          "0" },
        { "cores of LoHa", EXACT, { "c.hada_w1_a F32 1,2 2 0;c.hada_w1_b F32 1,2 2 0;"
          "c.hada_w2_a F32 1,2 2 0;c.hada_w2_b F32 1,2 2 0;c.hada_t1 F32 1,1,1,1 1;"
          "c.hada_t2 F32 1,1,1,1 1" }, NULL, SFT_OK,
          "c.alpha F32 - 1; c.lora_down.weight F32 1,2,1,1 4 0; c.lora_up.weight F32 2,1,1,1 4 "
          "0" },
        { "a core of LoRA", EXACT, { ONE("c", "c.lora_mid.weight F32 1,1,1,1 4") }, NULL, SFT_OK,
          "c.alpha F32 - 1; c.lora_down.weight F32 1,2,1,1 4 0; c.lora_up.weight F32 2,1,1,1 4 "
          "0" },
        { "a core of LoRA, and a bias", EXACT, { ONE("c", "c.lora_mid.weight F32 1,1,1,1 4;"
          "c.lora_B.bias F32 2 1") }, NULL, SFT_CAST_DTYPE, "factors without a bias" },
        { "a difference", EXACT, { "c.diff F32 2,2 16 0 0 0;c.diff_b F32 2 1 2" }, NULL, SFT_OK,
          "c.alpha F32 - 1; c.diff_b F32 2 1 2; c.lora_down.weight F32 1,2 4 0; "
          "c.lora_up.weight F32 2,1 4 0" },
        { "the difference of a convolution", EXACT, { "c.diff F32 2,1,1,2 16 0 0 0" }, NULL, SFT_OK,
          "c.alpha F32 - 1; c.lora_down.weight F32 1,1,1,2 4 0; c.lora_up.weight F32 2,1,1,1 4 "
          "0" },
        { "an alpha of 0", EXACT, { LOHA("c") "c.alpha F32 - 0" }, NULL, SFT_TENSOR_NOT_FOUND,
          "expected layers with a change, found none among 1" },
        { "rotations", EXACT, { "c.oft_R.weight F32 1,1 1" }, NULL, SFT_CAST_DTYPE,
          "expected a model, or modules" },
        { "rotations of a model", EXACT, { "c.oft_R.weight F32 1,1 1", LAYER }, NULL, SFT_OK,
          "c.lora_A.weight F32 2,2 2 0 0 1; c.lora_B.weight F32 2,2 -2 0 0 -1" },
        { "blocks of a model", EXACT, { "c.oft_blocks F32 1,2,2 0 1 0 0;"
          "c.rescale F32 2,1 2", LAYER },
          NULL, SFT_OK,
          "c.alpha F32 - 2; c.lora_down.weight F32 2,2 2.9907 0 0 1.4953; c.lora_up.weight F32 "
          "2,2 -1.3375 -1.3375 2.675 -0.66874" },
        { "factors of rows", EXACT, { "c.ia3_l F32 2,1 5 1", LAYER }, NULL, SFT_OK,
          "c.lora_A.weight F32 1,2 4 0; c.lora_B.weight F32 2,1 4 0" },
        { "factors of rows, and a bias", EXACT, { "c.ia3_l F32 2,1 5 1", LAYER ";c.bias F32 2 1" },
          NULL, SFT_CAST_DTYPE, "a change of weights and of no bias" },
        { "LyCORIS's factors", EXACT, { "c.on_input F32 1 0;c.weight F32 2,1 4 0", LAYER }, NULL,
          SFT_OK,
          "c.alpha F32 - 1; c.lora_down.weight F32 1,2 4 0; c.lora_up.weight F32 2,1 4 0" },
        { "not of this model", EXACT, { LOHA("c"), "d.weight F32 2,2" }, NULL, SFT_TENSOR_NOT_FOUND,
          "expected a tensor of the model for this module, found none" },
        { "of a model that is quantised", EXACT, { LOHA("c"), "c.weight I8 2,2" }, NULL,
          SFT_CAST_DTYPE, "found a quantised one" },
        { "a tensor that is not known", EXACT, { LOHA("c") "d F32 1" }, NULL, SFT_TENSOR_NOT_FOUND,
          "found 1 others" },
        { "which is left out", SFT_ADAPTER_SIMPLIFY, { .rule = SFT_ADAPTER_EXACT,
          .ignore_unmatched = true }, { LOHA("c") "d F32 1" }, NULL, SFT_OK,
          "c.alpha F32 - 1; c.lora_down.weight F32 1,2 4 0; c.lora_up.weight F32 2,1 4 0" },
        { "DoRA of columns of a fused layer", EXACT, {
          "transformer.transformer_blocks.0.attn.to_k.lora_A.weight F32 1,2 1;"
          "transformer.transformer_blocks.0.attn.to_k.lora_B.weight F32 2,1 1;"
          "transformer.transformer_blocks.0.attn.to_k.dora_scale F32 1,2 1",
          "double_blocks.0.img_attn.qkv.weight F32 6,2 1;single_blocks.0.linear1.weight F32 14,2;"
          "vector_in.in_layer.weight F32 2,2" }, NULL, SFT_OK,
          "transformer.transformer_blocks.0.attn.to_k.alpha F32 - 1; "
          "transformer.transformer_blocks.0.attn.to_k.lora_down.weight F32 1,2 0.5412 0.5412; "
          "transformer.transformer_blocks.0.attn.to_k.lora_up.weight F32 2,1 -0.5412 -0.5412" },
        { "DoRA of columns of divided ones", EXACT, {
          "lora_unet_double_blocks_0_img_attn_qkv.lora_down.weight F32 1,2 1;"
          "lora_unet_double_blocks_0_img_attn_qkv.lora_up.weight F32 6,1 1;"
          "lora_unet_double_blocks_0_img_attn_qkv.dora_scale F32 1,2 1",
          "transformer_blocks.0.attn.to_q.weight F32 2,2;"
          "transformer_blocks.0.attn.to_k.weight F32 2,2;"
          "transformer_blocks.0.attn.to_v.weight F32 2,2;"
          "transformer_blocks.0.attn.add_q_proj.weight F32 2,2;"
          "single_transformer_blocks.0.proj_mlp.weight F32 2,2;"
          "time_text_embed.text_embedder.linear_1.weight F32 2,2" }, NULL, SFT_CAST_DTYPE,
          "a module whose rows change together" },
        { "names of PEFT", EXACT, { LOHA("base_model.model.c") }, NULL, SFT_OK,
          "base_model.model.c.lora_A.weight F32 1,2 4 0; base_model.model.c.lora_B.weight F32 "
          "2,1 4 0" },
    };
    CHECK(cases);
}

/* The rank that is told to trainers, of convolutions where there is nothing else. */
static void tells_ranks(void **unused) {
    (void)unused;
    static const struct { const char *tuned, *base, *dim; } cases[] = {
        { "d.weight F32 2,1,1,2 17 2 3 5", "d.weight F32 2,1,1,2 1 2 3 4", "2" },
        { "c.weight F32 2,2 17 2 3 4;d.weight F32 2,1,1,2 17 2 3 5",
          "c.weight F32 2,2 1 2 3 4;d.weight F32 2,1,1,2 1 2 3 4", "1" },
        { "c.weight F32 2,2 17 2 3 4;d.weight F32 2,2 17 2 3 5",
          "c.weight F32 2,2 1 2 3 4;d.weight F32 2,2 1 2 3 4", "Dynamic" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_file f = spell_file(cases[i].tuned), g = spell_file(cases[i].base);
        sft_set *tuned = adapter_set(&f, NULL), *base = adapter_set(&g, NULL);
        sft_adapter_factors_options how = SFT_ADAPTER_FACTORS_OPTIONS_INIT;
        sft_adapter_factors *made;
        size_t count, found = 0;
        how.conv_rank = 4;
        how.rule = SFT_ADAPTER_ERROR;
        how.value = 1e-3;
        assert_int_equal(sft_adapter_factors_new(SFT_ADAPTER_EXTRACT, &how, &made, NULL), SFT_OK);
        assert_int_equal(sft_adapter_factors_add(made, tuned, NULL, NULL), SFT_OK);
        assert_int_equal(sft_adapter_factors_add(made, base, NULL, NULL), SFT_OK);
        assert_null(sft_adapter_factors_pairs(made, NULL));
        assert_null(sft_adapter_factors_parts(made, NULL));
        assert_int_equal(sft_adapter_factors_unmatched(made), 0);
        assert_int_equal(sft_adapter_factors_compute(made, NULL, NULL), SFT_OK);
        const sft_pair *pairs = sft_adapter_factors_pairs(made, &count);
        assert_int_equal(sft_adapter_factors_note(made, (sft_adapter_note)6), 0);
        for (size_t k = 0; k < count; k++) {
            if (!sft_span_equal(pairs[k].key, sft_span_cstr("ss_network_dim"))) continue;
            assert_true(sft_span_equal(pairs[k].value, sft_span_cstr(cases[i].dim)));
            found++;
        }
        assert_int_equal(found, 1);
        sft_adapter_factors_free(made);
        sft_set_close(tuned);
        sft_set_close(base);
        free_file(&f);
        free_file(&g);
    }
    sft_error err;
    assert_int_equal(sft_adapter_factors_new(SFT_ADAPTER_EXTRACT, NULL, NULL, &err),
                     SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "a place for the factors"));
    assert_int_equal(sft_adapter_factors_plan(NULL, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_adapter_factors_add(NULL, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "factors and an input"));
    assert_int_equal(sft_adapter_factors_save(NULL, sft_sink_memory(&(sft_buffer){ 0 }), NULL,
                                              &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "expected factors, found NULL"));
}

static void refuses_options(void **unused) {
    (void)unused;
#define R SFT_ADAPTER_RESIZE
    static const verb_case cases[] = {
        { "no verb", (sft_adapter_verb)4, { .rank = 1 }, { ONE("c", "") }, NULL, SFT_BAD_ARGUMENT,
          "a verb that is known" },
        { "no rule", R, { 0 }, { ONE("c", "") }, NULL, SFT_BAD_ARGUMENT, "found none" },
        { "another rule", R, { .rule = 6 }, { ONE("c", "") }, NULL, SFT_BAD_ARGUMENT,
          "another number" },
        { "other names", R, { .rank = 1, .names = SFT_ADAPTER_DIFFUSERS }, { ONE("c", "") }, NULL,
          SFT_BAD_ARGUMENT, "another number" },
        { "other names of a stack", SFT_ADAPTER_STACK, { .names = 5 }, { ONE("c", "") }, NULL,
          SFT_BAD_ARGUMENT, "another number" },
        { "a rank that is too high", R, { .rank = 65537 }, { ONE("c", "") }, NULL, SFT_BAD_ARGUMENT,
          "ranks of at most" },
        { "a rank of convolutions", R, { .conv_rank = 65537 }, { ONE("c", "") }, NULL,
          SFT_BAD_ARGUMENT, "ranks of at most" },
        { "a norm above 1", R, { .rule = SFT_ADAPTER_FRO, .value = 1.5 }, { ONE("c", "") }, NULL,
          SFT_BAD_ARGUMENT, "found 1.5" },
        { "a norm of 0", R, { .rule = SFT_ADAPTER_FRO }, { ONE("c", "") }, NULL, SFT_BAD_ARGUMENT,
          "found 0" },
        { "a ratio above all", R, { .rule = SFT_ADAPTER_RATIO, .value = 1e31 }, { ONE("c", "") },
          NULL, SFT_BAD_ARGUMENT, "up to 1e+30" },
        { "integers", R, { .rank = 1, .dtype = SFT_I8 }, { ONE("c", "") }, NULL, SFT_BAD_ARGUMENT,
          "found another dtype" },
        { "a difference below 0", R, { .rank = 1, .min_diff = -1 }, { ONE("c", "") }, NULL,
          SFT_BAD_ARGUMENT, "numbers from 0 on" },
        { "a quantile below 0", R, { .rank = 1, .clamp_quantile = -1 }, { ONE("c", "") }, NULL,
          SFT_BAD_ARGUMENT, "numbers from 0 on" },
        { "a quantile above 1", R, { .rank = 1, .clamp_quantile = 2 }, { ONE("c", "") }, NULL,
          SFT_BAD_ARGUMENT, "numbers from 0 on" },
        { "exactly", R, { .rule = SFT_ADAPTER_EXACT }, { ONE("c", "") }, NULL, SFT_BAD_ARGUMENT,
          "found exact" },
        { "an input too many", R, { .rank = 1 }, { ONE("c", ""), ONE("c", "") }, NULL,
          SFT_BAD_ARGUMENT, "fewer inputs" },
        { "an input too few", SFT_ADAPTER_EXTRACT, { .rank = 1 }, { ONE("c", "") }, NULL,
          SFT_BAD_ARGUMENT, "expected 2 inputs for this verb, found 1" },
        { "a measurement", R, { .rank = 1, .measure = true }, { ONE("c", "") }, NULL,
          SFT_BAD_ARGUMENT, "found ones that are measured" },
    };
    CHECK(cases);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resizes),    cmocka_unit_test(stacks), cmocka_unit_test(extracts),
        cmocka_unit_test(simplifies), cmocka_unit_test(tells_ranks),
        cmocka_unit_test(refuses_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
