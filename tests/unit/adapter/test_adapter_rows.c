/* Fused layers of methods that are divided and joined by rows (convert_rows.c): the tensors that
 * have rows, those that pieces have in common, and what cannot follow. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/adapter_spell.h"

typedef struct rows_case {
    const char *what, *adapter;
    sft_code code;
    const char *want; /* the tensors, or words of the message */
} rows_case;

static sft_code convert_to(const void *ctx, const char *architecture, sft_adapter_format to,
                           const sft_allocator *alloc, char *out, size_t cap, sft_error *err) {
    const rows_case *one = ctx;
    test_file f = spell_file(one->adapter);
    sft_set *set = adapter_set(&f, NULL);
    sft_adapter_conversion_options how = SFT_ADAPTER_CONVERSION_OPTIONS_INIT;
    sft_adapter_conversion *made;
    sft_buffer file = { 0 };
    how.to = to;
    how.architecture = architecture;
    how.alloc = alloc;
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

static sft_code to_kohya(const void *one, const sft_allocator *alloc, char *out, size_t cap,
                         sft_error *err) {
    return convert_to(one, "flux.1", SFT_ADAPTER_KOHYA, alloc, out, cap, err);
}

static sft_code to_comfy(const void *one, const sft_allocator *alloc, char *out, size_t cap,
                         sft_error *err) {
    return convert_to(one, "sdxl", SFT_ADAPTER_COMFY, alloc, out, cap, err);
}

static sft_code of_clip(const void *one, const sft_allocator *alloc, char *out, size_t cap,
                        sft_error *err) {
    return convert_to(one, "sdxl", SFT_ADAPTER_KOHYA, alloc, out, cap, err);
}

static void check(const rows_case *cases, size_t count, spell_run *run) {
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong += !spell_case(i, run, &cases[i], cases[i].what, cases[i].code, cases[i].want);
    assert_int_equal(wrong, 0);
}
#define CHECK(cases, run) check(cases, sizeof(cases) / sizeof *(cases), run)

#define CANNOT SFT_CAST_DTYPE, "neither divides nor fuses"

/* q, k and v of OpenCLIP, of 6 x 2. */
static void divides(void **unused) {
    (void)unused;
#define IN "lora_te2_transformer_resblocks_0_attn_in_proj_weight"
#define LORA6 IN ".lora_down.weight F32 1,2 1 2;" IN ".lora_up.weight F32 6,1 1 2 3 4 5 6;"
#define OFT IN ".oft_blocks F32 3,2,2 0 1 0 0 0 0 0 0 0 2 0 0;"
    static const rows_case cases[] = {
        { "a difference", IN ".diff F32 6,2 1 2 3 4 0 0 0 0 9 10 11 12", SFT_OK,
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.diff F32 2,2 1 2 3 4; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.diff F32 2,2 9 10 11 12" },
        { "and one of the bias", IN ".diff F32 6,2 1 2 3 4 0 0 0 0 9 10 11 12;"
          IN ".diff_b F32 6 0 0 3 4 5 6", SFT_OK,
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.diff F32 2,2 0 0 0 0; "
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.diff_b F32 2 3 4; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.diff F32 2,2 1 2 3 4; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.diff_b F32 2 0 0; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.diff F32 2,2 9 10 11 12; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.diff_b F32 2 5 6" },
        { "a bias of another size", IN ".diff F32 6,2 1;" IN ".diff_b F32 5 1", CANNOT },
        { "a bias of half bytes", IN ".diff F32 6,2 1;" IN ".diff_b F4 6 1", CANNOT },
        { "a bias of no dimension", IN ".diff F32 6,2 1;" IN ".diff_b F32 - 1", CANNOT },
        { "seven rows", IN ".diff F32 7,2 1", SFT_CAST_DTYPE, "rows that divide" },
        { "a scalar", IN ".diff F32 - 1", SFT_CAST_DTYPE, "rows that divide" },
        { "LoKr", IN ".lokr_w1 F32 3,1 1 2 3;" IN ".lokr_w2 F32 2,2 1 2 3 4", SFT_OK,
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.lokr_w1 F32 1,1 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.lokr_w2 F32 2,2 1 2 3 4; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.lokr_w1 F32 1,1 1; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.lokr_w2 F32 2,2 1 2 3 4; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.lokr_w1 F32 1,1 3; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.lokr_w2 F32 2,2 1 2 3 4" },
        { "LoKr of factors", IN ".lokr_w1_a F32 3,1 1 2 3;" IN ".lokr_w1_b F32 1,1 5;"
          IN ".lokr_w2 F32 2,2 1 2 3 4;" IN ".alpha F32 - 2", SFT_OK,
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.alpha F32 - 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.lokr_w1_a F32 1,1 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.lokr_w1_b F32 1,1 5; "
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.lokr_w2 F32 2,2 1 2 3 4; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.alpha F32 - 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.lokr_w1_a F32 1,1 1; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.lokr_w1_b F32 1,1 5; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.lokr_w2 F32 2,2 1 2 3 4; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.alpha F32 - 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.lokr_w1_a F32 1,1 3; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.lokr_w1_b F32 1,1 5; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.lokr_w2 F32 2,2 1 2 3 4" },
        { "LoKr of two rows", IN ".lokr_w1 F32 2,1 1 2;" IN ".lokr_w2 F32 3,2 1", CANNOT },
        { "rotations", OFT, SFT_OK,
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.oft_blocks F32 1,2,2 0 1 0 0; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.oft_blocks F32 1,2,2 0 2 0 0" },
        { "and a rescale", OFT IN ".rescale F32 6,1 1 2 3 4 5 6", SFT_OK,
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.oft_blocks F32 1,2,2 0 0 0 0; "
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.rescale F32 2,1 3 4; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.oft_blocks F32 1,2,2 0 1 0 0; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.rescale F32 2,1 1 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.oft_blocks F32 1,2,2 0 2 0 0; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.rescale F32 2,1 5 6" },
        { "and an alpha that is 0", OFT IN ".alpha F32 - 0", SFT_OK,
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.alpha F32 - 0; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.oft_blocks F32 1,2,2 0 1 0 0; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.alpha F32 - 0; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.oft_blocks F32 1,2,2 0 2 0 0" },
        { "with a cap", OFT IN ".alpha F32 - 1", CANNOT },
        { "with a cap below 0", OFT IN ".alpha F32 - -1", CANNOT },
        { "rotations of three rows", IN ".oft_blocks F32 2,3,3 0 1", CANNOT },
        { "rotations of columns", IN ".oft_R.weight F32 1,1 1", CANNOT },
        { "butterflies", IN ".oft_blocks F32 1,3,2,2 0 1", CANNOT },
        { "factors of rows", IN ".on_input F32 1 0;" IN ".weight F32 6,1 1 2 0 0 5 6", SFT_OK,
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.on_input F32 1 0; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.weight F32 2,1 1 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.on_input F32 1 0; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.weight F32 2,1 5 6" },
        { "factors of columns", IN ".on_input F32 1 1;" IN ".weight F32 2 1 2", CANNOT },
        { "factors of PEFT", IN ".ia3_l F32 6,1 1", CANNOT },
        { "on no number", IN ".on_input F32 1 nan;" IN ".weight F32 6,1 1", SFT_CAST_VALUE,
          "found NaN" },
        { "LoRA and a difference of the bias", LORA6 IN ".diff_b F32 6 1 2 3 4 5 6;"
          IN ".alpha F32 - 0.5", SFT_OK,
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.alpha F32 - 0.5; "
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.diff_b F32 2 3 4; "
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.lora_down.weight F32 1,2 1 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.lora_up.weight F32 2,1 3 4; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.alpha F32 - 0.5; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.diff_b F32 2 1 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.lora_down.weight F32 1,2 1 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.lora_up.weight F32 2,1 1 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.alpha F32 - 0.5; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.diff_b F32 2 5 6; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.lora_down.weight F32 1,2 1 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.lora_up.weight F32 2,1 5 6" },
        { "a core", IN ".lora_down.weight F32 1,2 1 2;" IN ".lora_mid.weight F32 1,1,1,1 7;"
          IN ".lora_up.weight F32 6,1 0 0 3 4 5 6", SFT_OK,
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.lora_down.weight F32 1,2 1 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.lora_mid.weight F32 1,1,1,1 "
          "7; lora_te2_text_model_encoder_layers_0_self_attn_k_proj.lora_up.weight F32 2,1 3 "
          "4; lora_te2_text_model_encoder_layers_0_self_attn_v_proj.lora_down.weight F32 1,2 1 "
          "2; lora_te2_text_model_encoder_layers_0_self_attn_v_proj.lora_mid.weight F32 "
          "1,1,1,1 7; lora_te2_text_model_encoder_layers_0_self_attn_v_proj.lora_up.weight F32 "
          "2,1 5 6" },
        { "a core and magnitudes", IN ".lora_down.weight F32 1,2 1 2;"
          IN ".lora_mid.weight F32 1,1,1,1 7;" IN ".lora_up.weight F32 6,1 0 0 3 4 5 6;"
          IN ".dora_scale F32 6,1 1 2 3 4 5 6", SFT_OK,
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.dora_scale F32 2,1 3 4; "
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.lora_down.weight F32 1,2 1 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.lora_mid.weight F32 1,1,1,1 "
          "7; lora_te2_text_model_encoder_layers_0_self_attn_k_proj.lora_up.weight F32 2,1 3 "
          "4; lora_te2_text_model_encoder_layers_0_self_attn_q_proj.dora_scale F32 2,1 1 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.lora_down.weight F32 1,2 1 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.lora_mid.weight F32 1,1,1,1 "
          "7; lora_te2_text_model_encoder_layers_0_self_attn_q_proj.lora_up.weight F32 2,1 0 "
          "0; lora_te2_text_model_encoder_layers_0_self_attn_v_proj.dora_scale F32 2,1 5 6; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.lora_down.weight F32 1,2 1 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.lora_mid.weight F32 1,1,1,1 "
          "7; lora_te2_text_model_encoder_layers_0_self_attn_v_proj.lora_up.weight F32 2,1 5 6" },
        { "both differences of a bias", LORA6 IN ".diff_b F32 6 1;" IN ".dora_scale F32 6,1 1",
          CANNOT },
        { "two biases", LORA6 IN ".diff_b F32 6 1;" IN ".lora_B.bias F32 6 1", CANNOT },
        { "GLoRA", IN ".a1.weight F32 2,1 1;" IN ".a2.weight F32 1,2 1;" IN ".b1.weight F32 6,1 1;"
          IN ".b2.weight F32 1,2 1", CANNOT },
        { "LoHa with cores", IN ".hada_w1_a F32 1,6 1;" IN ".hada_w1_b F32 1,2 1;"
          IN ".hada_w2_a F32 1,6 1;" IN ".hada_w2_b F32 1,2 1;" IN ".hada_t1 F32 1,1,1,1 1;"
          IN ".hada_t2 F32 1,1,1,1 1", CANNOT },
        { "LoHa", IN ".hada_w1_a F32 6,1 1 2 3 4 0 0;" IN ".hada_w1_b F32 1,2 1;"
          IN ".hada_w2_a F32 6,1 1;" IN ".hada_w2_b F32 1,2 1 2", SFT_OK,
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.hada_w1_a F32 2,1 3 4; "
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.hada_w1_b F32 1,2 1 1; "
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.hada_w2_a F32 2,1 1 1; "
          "lora_te2_text_model_encoder_layers_0_self_attn_k_proj.hada_w2_b F32 1,2 1 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.hada_w1_a F32 2,1 1 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.hada_w1_b F32 1,2 1 1; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.hada_w2_a F32 2,1 1 1; "
          "lora_te2_text_model_encoder_layers_0_self_attn_q_proj.hada_w2_b F32 1,2 1 2; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.hada_w1_a F32 2,1 0 0; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.hada_w1_b F32 1,2 1 1; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.hada_w2_a F32 2,1 1 1; "
          "lora_te2_text_model_encoder_layers_0_self_attn_v_proj.hada_w2_b F32 1,2 1 2" },
        { "LoHa of a difference more", IN ".hada_w1_a F32 6,1 1;" IN ".hada_w1_b F32 1,2 1;"
          IN ".hada_w2_a F32 6,1 1;" IN ".hada_w2_b F32 1,2 1;" IN ".diff_b F32 6 1", CANNOT },
    };
    static const rows_case comfy[] = {
        { "a core for ComfyUI", IN ".lora_down.weight F32 1,2 1 2;"
          IN ".lora_mid.weight F32 1,1,1,1 7;" IN ".lora_up.weight F32 6,1 0 0 3 4 5 6", CANNOT },
    };
    CHECK(cases, of_clip);
    CHECK(comfy, to_comfy);
}

/* q, k and v of FLUX, of 2 x 2 each. */
static void joins(void **unused) {
    (void)unused;
#define TO(x) "transformer.transformer_blocks.0.attn.to_" x
#define DIFF(x, more) TO(x) ".diff F32 2,2 " more ";"
#define W2(x) TO(x) ".lokr_w2 F32 2,2 1 2 3 4;"
#define TURN(x, more) TO(x) ".oft_blocks F32 1,2,2 0 " more ";"
#define CORE(x, more) TO(x) ".lora_down.weight F32 1,2 1 2;" \
    TO(x) ".lora_mid.weight F32 1,1,1,1 7;" TO(x) ".lora_up.weight F32 2,1 " more ";"
    static const rows_case cases[] = {
        { "differences", DIFF("q", "1") DIFF("k", "2") DIFF("v", "3"), SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.diff F32 6,2 1 1 1 1 2 2 2 2 3 3 3 3" },
        { "of one alone", DIFF("k", "2"), SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.diff F32 6,2 0 0 0 0 2 2 2 2 0 0 0 0" },
        { "and of biases", DIFF("q", "1") TO("q") ".diff_b F32 2 4;" DIFF("k", "2")
          TO("k") ".diff_b F32 2 5", SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.diff F32 6,2 1 1 1 1 2 2 2 2 0 0 0 0; "
          "lora_unet_double_blocks_0_img_attn_qkv.diff_b F32 6 4 4 5 5 0 0" },
        { "of a bias of one", DIFF("q", "1") TO("q") ".diff_b F32 2 4;" DIFF("k", "2"), CANNOT },
        { "of a bias alone", DIFF("q", "1") TO("k") ".diff_b F32 2 4", CANNOT },
        { "of biases of another size", DIFF("q", "1") TO("q") ".diff_b F32 3 4", CANNOT },
        { "of half bytes", TO("q") ".diff F4 2,2 1", CANNOT },
        { "of a scalar", TO("q") ".diff F32 - 1", CANNOT },
        { "of two dtypes", DIFF("q", "1") TO("k") ".diff F16 2,2 1", CANNOT },
        { "of two ranks", DIFF("q", "1") TO("k") ".diff F32 2,2,1 1", CANNOT },
        { "of two inputs", DIFF("q", "1") TO("k") ".diff F32 2,3 1", CANNOT },
        { "of two forms of one input", TO("q") ".diff F32 2,2,1 1;" TO("k") ".diff F32 2,1,2 1",
          CANNOT },
        { "of other rows", DIFF("q", "1") TO("k") ".diff F32 3,2 1", SFT_CAST_DTYPE,
          "rows as the other layout divides them" },
        { "LoKr of one w2", TO("q") ".lokr_w1 F32 1,1 1;" W2("q")
          TO("k") ".lokr_w1 F32 1,1 2;" W2("k"),
          SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.lokr_w1 F32 3,1 1 2 0; "
          "lora_unet_double_blocks_0_img_attn_qkv.lokr_w2 F32 2,2 1 2 3 4" },
        { "LoKr of another w2", TO("q") ".lokr_w1 F32 1,1 1;" W2("q") TO("k") ".lokr_w1 F32 1,1 2;"
          TO("k") ".lokr_w2 F32 2,2 1 2 3 5", CANNOT },
        { "of another dtype", TO("q") ".lokr_w1 F32 1,1 1;" W2("q") TO("k") ".lokr_w1 F32 1,1 2;"
          TO("k") ".lokr_w2 F16 2,2 1 2 3 4", CANNOT },
        { "of another shape", TO("q") ".lokr_w1 F32 1,1 1;" W2("q") TO("k") ".lokr_w1 F32 1,1 2;"
          TO("k") ".lokr_w2 F32 2,2,1 1 2 3 4", CANNOT },
        { "of other sizes", TO("q") ".lokr_w1 F32 1,2 1;" TO("q") ".lokr_w2 F32 2,2 1;"
          TO("k") ".lokr_w1 F32 1,2 2;" TO("k") ".lokr_w2 F32 4,1 1", CANNOT },
        { "in factors", TO("q") ".lokr_w1_a F32 1,1 1;" TO("q") ".lokr_w1_b F32 1,1 2;" W2("q")
          TO("q") ".alpha F32 - 2;" TO("k") ".lokr_w1_a F32 1,1 3;" TO("k") ".lokr_w1_b F32 1,1 2;"
          W2("k") TO("k") ".alpha F32 - 2", SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.alpha F32 - 2; "
          "lora_unet_double_blocks_0_img_attn_qkv.lokr_w1_a F32 3,1 1 3 0; "
          "lora_unet_double_blocks_0_img_attn_qkv.lokr_w1_b F32 1,1 2; "
          "lora_unet_double_blocks_0_img_attn_qkv.lokr_w2 F32 2,2 1 2 3 4" },
        { "in factors and whole", TO("q") ".lokr_w1_a F32 1,1 1;" TO("q") ".lokr_w1_b F32 1,1 2;"
          W2("q") TO("k") ".lokr_w1 F32 1,1 3;" W2("k"), CANNOT },
        { "of two scales", TO("q") ".lokr_w1_a F32 1,1 1;" TO("q") ".lokr_w1_b F32 1,1 2;" W2("q")
          TO("q") ".alpha F32 - 2;" TO("k") ".lokr_w1_a F32 1,1 3;" TO("k") ".lokr_w1_b F32 1,1 2;"
          W2("k") TO("k") ".alpha F32 - 3", CANNOT },
        { "of two ranks, and more", TO("q") ".lokr_w1_a F32 1,1 1;" TO("q") ".lokr_w1_b F32 1,1 2;"
          W2("q") TO("k") ".lokr_w1_a F32 1,2 3;" TO("k") ".lokr_w1_b F32 2,1 2;" W2("k"), CANNOT },
        { "rotations of all", TURN("q", "1 0 0") TURN("k", "2 0 0") TURN("v", "0 3 0"), SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.oft_blocks F32 3,2,2 0 1 0 0 0 2 0 0 0 0 3 0" },
        { "of one", TURN("k", "2 0 0"), SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.oft_blocks F32 3,2,2 0 0 0 0 0 2 0 0 0 0 0 0" },
        { "rotations of all, and rescales", TURN("q", "1 0 0") TO("q") ".rescale F32 2,1 1 2;"
          TURN("k", "2 0 0") TO("k") ".rescale F32 2,1 3 4;" TURN("v", "0 3 0")
          TO("v") ".rescale F32 2,1 5 6", SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.oft_blocks F32 3,2,2 0 1 0 0 0 2 0 0 0 0 3 "
          "0; lora_unet_double_blocks_0_img_attn_qkv.rescale F32 6,1 1 2 3 4 5 6" },
        { "rescales of some", TURN("q", "1 0 0") TO("q") ".rescale F32 2,1 1 2;" TURN("k", "2 0 0")
          TO("k") ".rescale F32 2,1 3 4", CANNOT },
        { "a rescale of one", TURN("q", "1 0 0") TO("q") ".rescale F32 2,1 1 2;" TURN("k", "2 0 0")
          TURN("v", "0 3 0"), CANNOT },
        { "rotations of two sizes", TURN("q", "1 0 0") TO("k") ".oft_blocks F32 2,1,1", CANNOT },
        { "factors of rows of some", TO("q") ".on_input F32 1 0;" TO("q") ".weight F32 2,1 1 2;"
          TO("k") ".on_input F32 1 0;" TO("k") ".weight F32 2,1 3 4", SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.on_input F32 1 0; "
          "lora_unet_double_blocks_0_img_attn_qkv.weight F32 6,1 1 2 3 4 0 0" },
        { "LoRA with differences of biases", TO("q") ".lora_down.weight F32 1,2 1 2;"
          TO("q") ".lora_up.weight F32 2,1 3 4;" TO("q") ".diff_b F32 2 5 6;"
          TO("k") ".lora_down.weight F32 1,2 1 2;" TO("k") ".lora_up.weight F32 2,1 7 8;"
          TO("k") ".diff_b F32 2 9 10", SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.diff_b F32 6 5 6 9 10 0 0; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_down.weight F32 1,2 1 2; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_up.weight F32 6,1 3 4 7 8 0 0" },
        { "of which one has none", TO("q") ".lora_down.weight F32 1,2 1 2;"
          TO("q") ".lora_up.weight F32 2,1 3 4;" TO("q") ".diff_b F32 2 5 6;"
          TO("k") ".lora_down.weight F32 1,2 1 2;" TO("k") ".lora_up.weight F32 2,1 7 8", CANNOT },
        { "cores", CORE("q", "1 2") CORE("k", "3 4"), SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.lora_down.weight F32 1,2 1 2; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_mid.weight F32 1,1,1,1 7; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_up.weight F32 6,1 1 2 3 4 0 0" },
        { "cores with alphas", CORE("q", "1 2") TO("q") ".alpha F32 - 3;" CORE("k", "3 4")
          TO("k") ".alpha F32 - 3;", SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.alpha F32 - 3; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_down.weight F32 1,2 1 2; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_mid.weight F32 1,1,1,1 7; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_up.weight F32 6,1 1 2 3 4 0 0" },
        { "cores, and one", CORE("q", "1 2") TO("k") ".lora_down.weight F32 1,2 1 2;"
          TO("k") ".lora_up.weight F32 2,1 1 2", CANNOT },
        { "cores of two ranks", CORE("q", "1 2") TO("k") ".lora_down.weight F32 2,2 1 2;"
          TO("k") ".lora_mid.weight F32 1,2,1,1 7;" TO("k") ".lora_up.weight F32 2,1 1", CANNOT },
        { "cores and magnitudes of all", CORE("q", "1 2") TO("q") ".dora_scale F32 2,1 1 2;"
          CORE("k", "3 4") TO("k") ".dora_scale F32 2,1 3 4;" CORE("v", "5 6")
          TO("v") ".dora_scale F32 2,1 5 6", SFT_OK,
          "lora_unet_double_blocks_0_img_attn_qkv.dora_scale F32 6,1 1 2 3 4 5 6; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_down.weight F32 1,2 1 2; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_mid.weight F32 1,1,1,1 7; "
          "lora_unet_double_blocks_0_img_attn_qkv.lora_up.weight F32 6,1 1 2 3 4 5 6" },
        { "cores and magnitudes of some", CORE("q", "1 2") TO("q") ".dora_scale F32 2,1 1 2;"
          CORE("k", "3 4") TO("k") ".dora_scale F32 2,1 3 4", CANNOT },
    };
    CHECK(cases, to_kohya);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(divides),
        cmocka_unit_test(joins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
