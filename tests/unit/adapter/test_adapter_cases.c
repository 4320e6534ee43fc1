/* Adapters of each method, merged into one small layer: what comes of it, value by value, and what
 * is refused. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/adapter_spell.h"

typedef struct merge_case {
    const char *what, *model, *adapter, *config;
    sft_code code;
    const char *want; /* the tensors, or words of the message */
} merge_case;

static sft_code merge(const void *ctx, const sft_allocator *alloc, char *out, size_t cap,
                    sft_error *err) {
    const merge_case *one = ctx;
    test_file f = spell_file(one->model), g = spell_file(one->adapter);
    sft_set *model = adapter_set(&f, NULL), *adapter = adapter_set(&g, NULL);
    sft_adapter_use use = SFT_ADAPTER_USE_INIT;
    sft_adapter_merge_options how = SFT_ADAPTER_MERGE_OPTIONS_INIT;
    sft_adapter_merge *made;
    sft_buffer file = { 0 };
    assert_non_null(model);
    assert_non_null(adapter);
    if (one->config) use.config = sft_span_cstr(one->config);
    how.alloc = alloc;
    how.threads = 1;
    sft_code code = sft_adapter_merge_new(model, &how, &made, err);
    if (!code) code = sft_adapter_merge_add(made, adapter, &use, err);
    if (!code) code = sft_adapter_merge_save(made, sft_sink_memory(&file), NULL, err);
    if (!code) spell_buffer(&file, out, cap);
    sft_adapter_merge_free(made);
    sft_buffer_free(&file);
    sft_set_close(model);
    sft_set_close(adapter);
    free_file(&f);
    free_file(&g);
    return code;
}

static void check(const merge_case *cases, size_t count) {
    size_t wrong = 0;
    for (size_t i = 0; i < count; i++)
        wrong += !spell_case(i, merge, &cases[i], cases[i].what, cases[i].code, cases[i].want);
    assert_int_equal(wrong, 0);
}
#define CHECK(cases) check(cases, sizeof(cases) / sizeof *(cases))

#define TALL "c.weight F32 4,2 1 2 3 4 5 6 7 8" /* the layer of most cases */
#define ZEROS "c.weight F32 2,2"
#define A "c.lora_A.weight F32 1,2 10 20;"
#define B "c.lora_B.weight F32 2,1 1 2;"

static void takes_methods(void **unused) {
    (void)unused;
#define LOHA(r) "c.hada_w1_a F32 4," r " 1;c.hada_w1_b F32 " r ",2 1 2;"
#define CORE "c.hada_t1 F32 1,1,1,1 2;c.hada_t2 F32 1,1,1,1 3;"
#define GLORA(a1, a2, b1, b2) \
    "c.a1.weight F32 " a1 " 1;c.a2.weight F32 " a2 " 1;c.b1.weight F32 " b1 " 1;" \
    "c.b2.weight F32 " b2 " 1"
    static const merge_case cases[] = {
        { "blocks, then a rescale", TALL, "c.oft_blocks F32 2,2,2;c.rescale F32 4,1 1 2 3 4", NULL,
          SFT_OK,
          "c.weight F32 4,2 1 2 6 8 15 18 28 32" },
        { "a rescale, then butterflies", TALL, "c.rescale F32 4,1 2;c.oft_blocks F32 1,2,2,2", NULL,
          SFT_OK,
          "c.weight F32 4,2 2 4 6 8 10 12 14 16" },
        { "butterflies, then a rescale", TALL, "c.oft_blocks F32 1,2,2,2;c.rescale F32 4,1 2", NULL,
          SFT_OK,
          "c.weight F32 4,2 2 4 6 8 10 12 14 16" },
        { "a rescale of another size", TALL, "c.oft_blocks F32 2,2,2;c.rescale F32 3,1", NULL,
          SFT_SIZE_MISMATCH, "expected 4 elements" },
        { "a rescale alone", TALL, "c.rescale F32 4,1 2", NULL, SFT_INCOMPLETE, "oft_blocks" },
        { "blocks of two dimensions", TALL, "c.oft_blocks F32 4,4", NULL, SFT_SIZE_MISMATCH,
          "square blocks" },
        { "blocks of five", TALL, "c.oft_blocks F32 1,1,1,2,2", NULL, SFT_SIZE_MISMATCH,
          "square blocks" },
        { "blocks without elements", TALL, "c.oft_blocks F32 0,2,2", NULL, SFT_SIZE_MISMATCH,
          "without elements" },
        { "a rescale without elements", TALL, "c.oft_blocks F32 2,2,2;c.rescale F32 0", NULL,
          SFT_SIZE_MISMATCH, "without elements" },
        { "rotations of columns", TALL, "c.oft_R.weight F32 1,1 1", NULL, SFT_OK,
          "c.weight F32 4,2 0 0 0 0 0 0 0 0" },
        { "exact ones", TALL, "c.oft_R.weight F32 1,1 1", "{\"use_cayley_neumann\":false}", SFT_OK,
          "c.weight F32 4,2 -2 1 -4 3 -6 5 -8 7" },
        { "of three terms", TALL, "c.oft_R.weight F32 1,1 1", "{\"num_cayley_neumann_terms\":3}",
          SFT_OK,
          "c.weight F32 4,2 1 -3 1 -7 1 -11 1 -15" },
        { "of one", TALL, "c.oft_R.weight F32 1,1 1", "{\"num_cayley_neumann_terms\":1}", SFT_OK,
          "c.weight F32 4,2 1 2 3 4 5 6 7 8" },
        { "of too many", TALL, "c.oft_R.weight F32 1,1 1", "{\"num_cayley_neumann_terms\":65}",
          SFT_CAST_DTYPE, "found \"num_cayley_neumann_terms\"" },
        { "of half a term", TALL, "c.oft_R.weight F32 1,1 1", "{\"num_cayley_neumann_terms\":1.5}",
          SFT_CAST_DTYPE, "a whole number" },
        { "rotations of more columns", TALL, "c.oft_R.weight F32 1,3 1", NULL, SFT_SIZE_MISMATCH,
          "blocks that divide a layer of 4 x 2" },
        { "more rotations than columns", TALL, "c.oft_R.weight F32 2,1 1", NULL, SFT_SIZE_MISMATCH,
          "blocks that divide" },
        { "rotations of a convolution", "c.weight F32 1,2,2,1", "c.oft_R.weight F32 1,1 1", NULL,
          SFT_SIZE_MISMATCH, "blocks that divide" },
        { "rotations told to be LoRA", TALL, "c.oft_R.weight F32 1,1 1", "{\"peft_type\":\"LORA\"}",
          SFT_CAST_DTYPE, "found oft without" },
        { "rotations that are not numbers", TALL, "c.oft_R.weight F32 1,1 nan", NULL,
          SFT_CAST_VALUE, "found NaN at element 0" },
        { "PEFT's LoKr of a 1-D convolution", "c.weight F32 4,2,1",
          "base_model.model.c.lokr_w1 F32 2,1 1;base_model.model.c.lokr_w2 F32 2,2,1 1", NULL,
          SFT_CAST_DTYPE, "whole w2 of a 1-D one" },
        { "LyCORIS's", "c.weight F32 4,2,1", "c.lokr_w1 F32 2,1 1;c.lokr_w2 F32 2,2,1 1", NULL,
          SFT_OK, "c.weight F32 4,2,1 1 1 1 1 1 1 1 1" },
        { "LoHa", TALL, LOHA("1") "c.hada_w2_a F32 4,1 2;c.hada_w2_b F32 1,2 1", NULL, SFT_OK,
          "c.weight F32 4,2 3 6 5 8 7 10 9 12" },
        { "LoHa of two ranks", TALL, "c.hada_w1_a F32 4,2;c.hada_w1_b F32 1,2;"
          "c.hada_w2_a F32 4,1;c.hada_w2_b F32 1,2", NULL, SFT_SIZE_MISMATCH, "(the rank)" },
        { "LoHa of two layers", TALL, LOHA("1") "c.hada_w2_a F32 3,1;c.hada_w2_b F32 1,2", NULL,
          SFT_SIZE_MISMATCH, "rows of the layer" },
        { "LoHa of two inputs", TALL, LOHA("1") "c.hada_w2_a F32 4,1;c.hada_w2_b F32 1,3", NULL,
          SFT_SIZE_MISMATCH, "columns of the layer" },
        { "half of LoHa", TALL, LOHA("1") "c.hada_w2_a F32 4,1", NULL, SFT_INCOMPLETE,
          "hada_w2_b" },
        { "LoHa without elements", TALL, LOHA("1") "c.hada_w2_a F32 4,0;c.hada_w2_b F32 0,2", NULL,
          SFT_SIZE_MISMATCH, "without elements" },
        { "cores", TALL, "c.hada_w1_a F32 1,4 1;c.hada_w1_b F32 1,2 1;" CORE
          "c.hada_w2_a F32 1,4 1;c.hada_w2_b F32 1,2 1", NULL, SFT_OK,
          "c.weight F32 4,2 7 8 9 10 11 12 13 14" },
        { "one core", TALL, LOHA("1")
          "c.hada_w2_a F32 1,4;c.hada_w2_b F32 1,2;c.hada_t2 F32 1,1,1,1", NULL, SFT_INCOMPLETE,
          "hada_t1 and hada_t2" },
        { "a core of a matrix", TALL, LOHA("1") "c.hada_w2_a F32 4,1;c.hada_w2_b F32 1,2;"
          "c.hada_t1 F32 1,1;c.hada_t2 F32 1,1", NULL, SFT_SIZE_MISMATCH, "found rank 2" },
        { "a core of other rows", TALL, LOHA("1") "c.hada_w2_a F32 4,1;c.hada_w2_b F32 1,2;" CORE,
          NULL, SFT_SIZE_MISMATCH, "expected 1 rows" },
        { "a core of other columns", TALL, "c.hada_w1_a F32 1,4;c.hada_w1_b F32 2,2;" CORE
          "c.hada_w2_a F32 1,4;c.hada_w2_b F32 1,2", NULL, SFT_SIZE_MISMATCH, "expected 1 rows" },
        { "LoKr", TALL, "c.lokr_w1 F32 2,1 1 2;c.lokr_w2 F32 2,2 1 2 3 4", NULL, SFT_OK,
          "c.weight F32 4,2 2 4 6 8 7 10 13 16" },
        { "LoKr of one dimension", TALL, "c.lokr_w1 F32 2 1 2;c.lokr_w2 F32 2,2 1 2 3 4", NULL,
          SFT_OK,
          "c.weight F32 4,2 2 4 6 8 7 10 13 16" },
        { "LoKr of a convolution", TALL, "c.lokr_w1 F32 2,1,3,3;c.lokr_w2 F32 2,2", NULL,
          SFT_SIZE_MISMATCH, "elements of a kernel in w1" },
        { "half of w1", TALL, "c.lokr_w1_a F32 2,1;c.lokr_w2 F32 2,2", NULL, SFT_INCOMPLETE,
          "either lokr_w1, or" },
        { "half of w2", TALL, "c.lokr_w1 F32 2,1;c.lokr_w2_b F32 1,2", NULL, SFT_INCOMPLETE,
          "either lokr_w2, or" },
        { "w2 and its core", TALL, "c.lokr_w1 F32 2,1;c.lokr_w2 F32 2,2;c.lokr_t2 F32 1,1,1,1",
          NULL, SFT_INCOMPLETE, "either lokr_w2, or" },
        { "w2 of two ranks", TALL, "c.lokr_w1 F32 2,1;c.lokr_w2_a F32 2,1;c.lokr_w2_b F32 2,2",
          NULL, SFT_SIZE_MISMATCH, "(the rank)" },
        { "a core of w2", "c.weight F32 4,2,1,1", "c.lokr_w1 F32 2,1 1 2;c.lokr_w2_a F32 1,2 1 2;"
          "c.lokr_w2_b F32 1,2 3 4;c.lokr_t2 F32 1,1,1,1 5;c.alpha F32 - 1", NULL, SFT_OK,
          "c.weight F32 4,2,1,1 15 20 30 40 30 40 60 80" },
        { "a core of w2 that is a matrix", TALL, "c.lokr_w1 F32 2,1;c.lokr_w2_a F32 1,2;"
          "c.lokr_w2_b F32 1,2;c.lokr_t2 F32 1,1", NULL, SFT_SIZE_MISMATCH, "found rank 2" },
        { "a core of w2 of other rows", TALL, "c.lokr_w1 F32 2,1;c.lokr_w2_a F32 2,2;"
          "c.lokr_w2_b F32 1,2;c.lokr_t2 F32 1,1,1", NULL, SFT_SIZE_MISMATCH, "expected 1 rows" },
        { "a core of w2 of other columns", TALL, "c.lokr_w1 F32 2,1;c.lokr_w2_a F32 1,2;"
          "c.lokr_w2_b F32 2,2;c.lokr_t2 F32 1,1,1", NULL, SFT_SIZE_MISMATCH, "expected 1 rows" },
        { "w1 without elements", TALL, "c.lokr_w1 F32 0,1;c.lokr_w2 F32 2,2", NULL,
          SFT_SIZE_MISMATCH, "without elements" },
        { "w1_a without elements", TALL,
          "c.lokr_w1_a F32 0,1;c.lokr_w1_b F32 1,1;c.lokr_w2 F32 2,2",
          NULL, SFT_SIZE_MISMATCH, "without elements" },
        { "w2_b without elements", TALL,
          "c.lokr_w1 F32 2,1;c.lokr_w2_a F32 2,1;c.lokr_w2_b F32 1,0",
          NULL, SFT_SIZE_MISMATCH, "without elements" },
        { "a core without elements", TALL, "c.lokr_w1 F32 2,1;c.lokr_w2_a F32 2,1;"
          "c.lokr_w2_b F32 1,2;c.lokr_t2 F32 0,1,1", NULL, SFT_SIZE_MISMATCH, "without elements" },
        { "GLoRA", TALL, GLORA("2,1", "1,2", "4,1", "1,2"), NULL, SFT_OK,
          "c.weight F32 4,2 5 6 11 12 17 18 23 24" },
        { "GLoRA, the other way round", TALL, GLORA("1,2", "2,1", "1,2", "4,1"), NULL, SFT_OK,
          "c.weight F32 4,2 5 6 11 12 17 18 23 24" },
        { "GLoRA with alpha", TALL, GLORA("2,1", "1,2", "4,1", "1,2") ";c.alpha F32 - 0.5", NULL,
          SFT_OK,
          "c.weight F32 4,2 3 4 7 8 11 12 15 16" },
        { "GLoRA with a core", TALL, GLORA("2,1", "1,2", "4,1", "1,2") ";c.bm.weight F32 1,1",
          NULL, SFT_CAST_DTYPE, "GLoRA without a core" },
        { "GLoRA without elements", TALL, GLORA("2,1", "1,2", "4,1", "0,2"), NULL,
          SFT_SIZE_MISMATCH, "without elements" },
        { "GLoRA of two ranks", TALL, GLORA("2,1", "3,2", "4,1", "1,2"), NULL, SFT_SIZE_MISMATCH,
          "factors for a layer of 4 x 2" },
        { "of two ranks below", TALL, GLORA("2,1", "1,2", "4,1", "2,2"), NULL, SFT_SIZE_MISMATCH,
          "factors for a layer of 4 x 2" },
        { "one rank for each side", TALL, GLORA("2,1", "1,2", "4,2", "2,2"), NULL,
          SFT_SIZE_MISMATCH, "factors for a layer of 4 x 2" },
        { "GLoRA of another input", TALL, GLORA("3,1", "1,2", "4,1", "1,2"), NULL,
          SFT_SIZE_MISMATCH, "factors for a layer of 4 x 2" },
        { "and of one behind it", TALL, GLORA("2,1", "1,3", "4,1", "1,2"), NULL,
          SFT_SIZE_MISMATCH, "factors for a layer of 4 x 2" },
        { "GLoRA of other rows", TALL, GLORA("2,1", "1,2", "5,1", "1,2"), NULL,
          SFT_SIZE_MISMATCH, "factors for a layer of 4 x 2" },
        { "GLoRA of other columns", TALL, GLORA("2,1", "1,2", "4,1", "1,3"), NULL,
          SFT_SIZE_MISMATCH, "factors for a layer of 4 x 2" },
        { "the old GLoRA of another input", TALL, GLORA("1,2", "3,1", "1,2", "4,1"), NULL,
          SFT_SIZE_MISMATCH, "factors for a layer of 4 x 2" },
        { "the old GLoRA of other rows", TALL, GLORA("1,2", "2,1", "1,2", "5,1"), NULL,
          SFT_SIZE_MISMATCH, "factors for a layer of 4 x 2" },
        { "factors of rows", TALL, "c.ia3_l F32 4,1 1 2 3 4", NULL, SFT_OK,
          "c.weight F32 4,2 1 2 6 8 15 18 28 32" },
        { "factors of rows, in one dimension", TALL, "c.ia3_l F32 4 1 2 3 4", NULL, SFT_OK,
          "c.weight F32 4,2 1 2 6 8 15 18 28 32" },
        { "factors of columns", TALL, "c.ia3_l F32 1,2 1 2", NULL, SFT_OK,
          "c.weight F32 4,2 1 4 3 8 5 12 7 16" },
        { "factors of other columns", TALL, "c.ia3_l F32 1,3 1 2", NULL, SFT_SIZE_MISMATCH,
          "a factor for each column of the layer, 4 x 2, found 3" },
        { "LyCORIS's of rows", TALL, "c.on_input F32 1 0;c.weight F32 4,1 1 2 3 4", NULL, SFT_OK,
          "c.weight F32 4,2 2 4 9 12 20 24 35 40" },
        { "LyCORIS's of columns", TALL, "c.on_input F32 1 1;c.weight F32 2 1 2", NULL, SFT_OK,
          "c.weight F32 4,2 2 6 6 12 10 18 14 24" },
        { "LyCORIS's of what is no number", TALL, "c.on_input F32 1 nan;c.weight F32 2 1 2", NULL,
          SFT_CAST_VALUE, "found NaN" },
        { "factors of rows, and of the bias", TALL ";c.bias F32 4 1", "c.ia3_l F32 4,1 1 2 3 4",
          NULL, SFT_OK,
          "c.bias F32 4 1 2 3 4; c.weight F32 4,2 1 2 6 8 15 18 28 32" },
        { "factors of rows of a convolution, and of the bias",
          "c.weight F32 3,2,1,1 1 2 3 4 5 6;c.bias F32 3 1", "c.ia3_l F32 1,3,1,1 1 2 3",
          NULL, SFT_OK, "c.bias F32 3 1 2 3; c.weight F32 3,2,1,1 1 2 6 8 15 18" },
        { "of a convolution that may have two groups", "c.weight F32 4,2,1,1 1",
          "c.ia3_l F32 1,4,1,1 1 2 3 4", NULL, SFT_CAST_DTYPE, "as many of both, by its groups" },
        { "of one that may be depthwise", "c.weight F32 3,1,1,1 1;c.bias F32 3 1",
          "c.ia3_l F32 1,3,1,1 1 2 3", NULL, SFT_CAST_DTYPE, "as many of both, by its groups" },
        { "factors of columns of a convolution",
          "c.weight F32 4,2,1,1 1 2 3 4 5 6 7 8;c.bias F32 4 1", "c.ia3_l F32 1,2,1,1 1 2",
          NULL, SFT_OK, "c.bias F32 4 1 1 1 1; c.weight F32 4,2,1,1 1 4 3 8 5 12 7 16" },
        { "factors of a convolution of as many rows as columns",
          "c.weight F32 2,2,1,1 1 2 3 4", "c.ia3_l F32 1,2,1,1 1 2", NULL, SFT_CAST_DTYPE,
          "may have as many of both, by its groups" },
        { "a difference", TALL, "c.diff F32 4,2 1", NULL, SFT_OK,
          "c.weight F32 4,2 2 3 4 5 6 7 8 9" },
        { "a difference without elements", TALL, "c.diff F32 0,2", NULL, SFT_SIZE_MISMATCH,
          "without elements" },
        { "of a bias without elements", TALL ";c.bias F32 4", "c.diff_b F32 0", NULL,
          SFT_SIZE_MISMATCH, "without elements" },
        { "a difference of the bias", TALL ";c.bias F32 4 1", "c.diff_b F32 4 1 2 3 4", NULL,
          SFT_OK,
          "c.bias F32 4 2 3 4 5; c.weight F32 4,2 1 2 3 4 5 6 7 8" },
        { "of a bias of another size", TALL ";c.bias F32 4 1", "c.diff_b F32 3 1 2 3", NULL,
          SFT_SIZE_MISMATCH, "expected a layer of 4 x 2" },
        { "of a bias that is a matrix", TALL ";c.bias F32 4,2 1", "c.diff_b F32 4 1 2 3", NULL,
          SFT_SIZE_MISMATCH, "one of another size" },
        { "a bias of attention", "a.in_proj_weight F32 3,1 1;a.in_proj_bias F32 3 1",
          "a.in_proj_weight.diff_b F32 3 1 2 3", NULL, SFT_OK,
          "a.in_proj_bias F32 3 2 3 4; a.in_proj_weight F32 3,1 1 1 1" },
        { "a bias of nothing", "c F32 4,2", "c.diff_b F32 4 1 2 3 4", NULL, SFT_SIZE_MISMATCH,
          "expected a bias beside c of the model, found none" },
        { "DoRA of columns", "c.weight F32 2,2 3 4 4 3", "c.lora_down.weight F32 1,2;"
          "c.lora_up.weight F32 2,1;c.dora_scale F32 1,2 10 5", NULL, SFT_OK,
          "c.weight F32 2,2 6 4 8 3" },
        { "DoRA of alpha 0", "c.weight F32 2,2 3 4 4 3", "c.lora_down.weight F32 1,2 7 8;"
          "c.lora_up.weight F32 2,1 5 6;c.alpha F32 - 0;c.dora_scale F32 2,1 10 5", NULL, SFT_OK,
          "c.weight F32 2,2 6 8 4 3" },
        { "DoRA of rows", "c.weight F32 2,2 3 4 4 3", "c.lora_down.weight F32 1,2;"
          "c.lora_up.weight F32 2,1;c.dora_scale F32 2,1 10 5", NULL, SFT_OK,
          "c.weight F32 2,2 6 8 4 3" },
        { "DoRA of columns, and others", "c.weight F32 2,2 3 4 4 3", "c.lora_down.weight F32 1,2;"
          "c.lora_up.weight F32 2,1;c.dora_scale F32 1,3 10 5 1", NULL, SFT_SIZE_MISMATCH,
          "a magnitude for each row or column" },
        { "LoRA beside a weight", ZEROS, A B "c.weight F32 2 1", NULL, SFT_TENSOR_NOT_FOUND,
          "found none for 1" },
        { "LoRA with a bias", ZEROS ";c.bias F32 2", A B "c.lora_B.bias F32 2 3 4;c.alpha F32 - 2",
          NULL, SFT_OK,
          "c.bias F32 2 6 8; c.weight F32 2,2 20 40 40 80" },
        { "a bias of other rows", ZEROS ";c.bias F32 2", A B "c.lora_B.bias F32 3 3 4", NULL,
          SFT_SIZE_MISMATCH, "expected 2 elements" },
        { "a bias without elements", ZEROS ";c.bias F32 2", A B "c.lora_B.bias F32 0", NULL,
          SFT_SIZE_MISMATCH, "without elements" },
        { "no up", ZEROS, A, NULL, SFT_INCOMPLETE, "an up (B) matrix" },
        { "no down", ZEROS, B, NULL, SFT_INCOMPLETE, "a down (A) matrix" },
        { "two downs", ZEROS, A B "c.lora_A.default.weight F32 1,2 1", NULL, SFT_TENSOR_DUPLICATE,
          "found two" },
        { "LoRA and a difference", ZEROS, A B "c.diff F32 2,2 1", NULL, SFT_CAST_DTYPE,
          "tensors of two" },
        { "LoRA and LoHa", ZEROS, A B "c.hada_w1_a F32 2,1 1", NULL, SFT_CAST_DTYPE,
          "tensors of two" },
        { "magnitudes and alpha alone", ZEROS, A B "d.dora_scale F32 2,1;d.alpha F32 -", NULL,
          SFT_TENSOR_NOT_FOUND, "found none for 2" },
        { "two alphas", ZEROS, A B "c.alpha F32 2 1", NULL, SFT_SIZE_MISMATCH,
          "one number as alpha" },
        { "no alpha in it", ZEROS, A B "c.alpha F32 0", NULL, SFT_SIZE_MISMATCH,
          "one number as alpha" },
        { "half of the second of LoHa", TALL, LOHA("1") "c.hada_w2_b F32 1,2", NULL,
          SFT_INCOMPLETE, "hada_w2_a" },
        { "w2 twice", TALL, "c.lokr_w1 F32 2,1;c.lokr_w2 F32 2,2;c.lokr_w2_b F32 1,2", NULL,
          SFT_INCOMPLETE, "either lokr_w2, or" },
        { "the other half of w1", TALL, "c.lokr_w1_b F32 1,1;c.lokr_w2 F32 2,2", NULL,
          SFT_INCOMPLETE, "either lokr_w1, or" },
        { "three of GLoRA", TALL, "c.a1.weight F32 2,1;c.a2.weight F32 1,2;c.b1.weight F32 4,1",
          NULL, SFT_INCOMPLETE, "all of a1" },
        { "blocks that are not square", TALL, "c.oft_blocks F32 2,2,1", NULL, SFT_SIZE_MISMATCH,
          "square blocks" },
        { "blocks of another height", TALL, "c.oft_blocks F32 3,2,2", NULL, SFT_SIZE_MISMATCH,
          "an adapter of another model" },
        { "(IA)^3 without a weight", TALL, "c.on_input F32 1", NULL, SFT_INCOMPLETE, "a weight" },
        { "an embedding", ZEROS, "c.lora_embedding_A F32 1,2 1 2;c.lora_embedding_B F32 2,1 10 30",
          NULL, SFT_OK, "c.weight F32 2,2 10 30 20 60" },
        { "DoRA of one", ZEROS, "c.lora_embedding_A F32 1,2 1 2;c.lora_embedding_B F32 2,1 10 20;"
          "c.lora_magnitude_vector F32 2 1", NULL, SFT_CAST_DTYPE, "stored the other way round" },
        { "codes that no layout explains", "c.weight F8_E4M3 2,2;c.weight_scale F16 3 1", A B, NULL,
          SFT_CAST_DTYPE, "c" },
        { "no rank", ZEROS, "c.lora_A.weight F32 0,2;c.lora_B.weight F32 2,0", NULL,
          SFT_SIZE_MISMATCH, "without elements" },
        { "a core", ZEROS, "c.lora_down.weight F32 1,2 10 20;c.lora_up.weight F32 2,1 1 2;"
          "c.lora_mid.weight F32 1,1,1,1 3", NULL, SFT_OK,
          "c.weight F32 2,2 30 60 60 120" },
        { "a core without elements", ZEROS, "c.lora_down.weight F32 1,2;c.lora_up.weight F32 2,1;"
          "c.lora_mid.weight F32 1,1,1,0", NULL, SFT_SIZE_MISMATCH, "without elements" },
        { "a core of another rank below", ZEROS, "c.lora_down.weight F32 1,2;"
          "c.lora_up.weight F32 2,1;c.lora_mid.weight F32 1,2,1,1", NULL, SFT_SIZE_MISMATCH,
          "expected 2 rows" },
    };
    CHECK(cases);
}

static void takes_configurations(void **unused) {
    (void)unused;
#define RS "{\"lora_alpha\":4,\"use_rslora\":true}"
#define SAID(text) "=lora_adapter_metadata " text ";"
#define T "transformer.c"
    static const merge_case cases[] = {
        { "alpha", ZEROS, A B, "{\"lora_alpha\":0.5}", SFT_OK,
          "c.weight F32 2,2 5 10 10 20" },
        { "alpha by another name", ZEROS, A B, "{\"alpha\":2,\"other\":[1,{}]}", SFT_OK,
          "c.weight F32 2,2 20 40 40 80" },
        { "that of PEFT where there is none", ZEROS, A B, "{\"peft_type\":\"LORA\"}", SFT_OK,
          "c.weight F32 2,2 80 160 160 320" },
        { "of LoHa", ZEROS, "c.hada_w1_a F32 2,1 1;c.hada_w1_b F32 1,2 1;c.hada_w2_a F32 2,1 1;"
          "c.hada_w2_b F32 1,2 1", "{\"peft_type\":\"LOHA\"}", SFT_OK,
          "c.weight F32 2,2 8 8 8 8" },
        { "of whole LoKr, and its rank", ZEROS, "c.lokr_w1 F32 1,1 1;c.lokr_w2 F32 2,2 1",
          "{\"peft_type\":\"LOKR\",\"alpha\":4}", SFT_OK, "c.weight F32 2,2 0.5 0.5 0.5 0.5" },
        { "of whole LoKr", ZEROS, "c.lokr_w1 F32 1,1 1;c.lokr_w2 F32 2,2 1",
          "{\"peft_type\":\"LOKR\",\"r\":2}", SFT_OK, "c.weight F32 2,2 4 4 4 4" },
        { "null, which is none", ZEROS, A B, "{\"peft_type\":\"LORA\",\"lora_alpha\":null}", SFT_OK,
          "c.weight F32 2,2 10 20 20 40" },
        { "that of the method counts", ZEROS, A B, "{\"alpha\":3,\"lora_alpha\":2}", SFT_OK,
          "c.weight F32 2,2 20 40 40 80" },
        { "LoKr's", ZEROS, "c.lokr_w1 F32 1,1 1;c.lokr_w2_a F32 2,1 1;c.lokr_w2_b F32 1,2 1",
          "{\"lora_alpha\":2,\"alpha\":3,\"r\":1,\"peft_type\":\"LOKR\"}", SFT_OK,
          "c.weight F32 2,2 3 3 3 3" },
        { "LoRA's, which is none", ZEROS, A B, "{\"alpha\":3,\"peft_type\":\"LORA\"}", SFT_OK,
          "c.weight F32 2,2 80 160 160 320" },
        { "none", ZEROS, A B, "{\"lora_alpha\":null,\"alpha_pattern\":null}", SFT_OK,
          "c.weight F32 2,2 10 20 20 40" },
        { "the root of the rank", ZEROS, "c.lora_A.weight F32 4,2 1;c.lora_B.weight F32 2,4 1", RS,
          SFT_OK,
          "c.weight F32 2,2 8 8 8 8" },
        { "another scale than a tensor tells", ZEROS, "c.lora_A.weight F32 4,2 1;"
          "c.lora_B.weight F32 2,4 1;c.alpha F32 - 4", RS, SFT_CAST_DTYPE,
          "found 1 by its alpha and 2 by adapter_config.json" },
        { "the scale that a tensor tells", ZEROS, "c.lora_A.weight F32 4,2 1;"
          "c.lora_B.weight F32 2,4 1;c.alpha F32 - 8", RS, SFT_OK, "c.weight F32 2,2 8 8 8 8" },
        { "an alpha that BF16 rounds", ZEROS, A B "c.alpha BF16 - 1.6", "{\"lora_alpha\":1.6}",
          SFT_OK, "c.weight F32 2,2 16.016 32.031 32.031 64.062" },
        { "an alpha of a whole LoKr", ZEROS, "c.lokr_w1 F32 1,1 1;c.lokr_w2 F32 2,2 1;"
          "c.alpha F32 - 4", "{\"peft_type\":\"LOKR\",\"r\":2,\"alpha\":4}", SFT_CAST_DTYPE,
          "found 1 by its alpha and 2 by adapter_config.json" },
        { "beside metadata that tell the same", ZEROS,
          SAID("{\"r\":1,\"lora_alpha\":2}") A B, "{\"peft_type\":\"LORA\",\"lora_alpha\":2}",
          SFT_OK, "c.weight F32 2,2 20 40 40 80" },
        { "beside metadata that tell what it does not", ZEROS,
          SAID("{\"lora_alpha\":2}") A B, "{\"r\":1}", SFT_OK, "c.weight F32 2,2 20 40 40 80" },
        { "beside metadata of another alpha", ZEROS, SAID("{\"lora_alpha\":2}") A B,
          "{\"lora_alpha\":3}", SFT_CAST_DTYPE,
          "found 3 by adapter_config.json and 2 by lora_adapter_metadata" },
        { "beside metadata of another alpha of one layer", ZEROS,
          SAID("{\"lora_alpha\":2,\"alpha_pattern\":{\"c\":4}}") A B, "{\"lora_alpha\":2}",
          SFT_CAST_DTYPE, "found 2 by adapter_config.json and 4 by lora_adapter_metadata" },
        { "beside metadata of a component", ZEROS, SAID("{\"transformer.lora_alpha\":2}")
          T ".lora_A.weight F32 1,2 10 20;" T ".lora_B.weight F32 2,1 1 2", "{\"lora_alpha\":3}",
          SFT_CAST_DTYPE, "found 3 by adapter_config.json and 2 by lora_adapter_metadata" },
        { "of a component, and another of all", ZEROS,
          SAID("{\"transformer.lora_alpha\":2,\"lora_alpha\":3}")
          T ".lora_A.weight F32 1,2 10 20;" T ".lora_B.weight F32 2,1 1 2", NULL, SFT_CAST_DTYPE,
          "by lora_adapter_metadata" },
        { "beside metadata of another root", ZEROS, SAID("{\"use_rslora\":true}")
          A B, "{\"lora_alpha\":2}", SFT_CAST_DTYPE, "expected configurations that agree" },
        { "beside metadata of another type", ZEROS, SAID("{\"peft_type\":\"LOHA\"}")
          A B, "{\"peft_type\":\"LORA\",\"lora_alpha\":8}", SFT_CAST_DTYPE,
          "without that \"peft_type\"" },
        { "beside metadata of another rank", ZEROS, SAID("{\"r\":2}") A B, "{\"r\":1}",
          SFT_SIZE_MISMATCH, "expected a rank of 2" },
        { "of a name", ZEROS, A B, "{\"alpha_pattern\":{\"c\":2}}", SFT_OK,
          "c.weight F32 2,2 20 40 40 80" },
        { "the end of a name", ZEROS, "base_model.model." A "base_model.model." B,
          "{\"lora_alpha\":1,\"alpha_pattern\":{\"c\":2,\"c\":3}}", SFT_OK,
          "c.weight F32 2,2 30 60 60 120" },
        { "the last list of names", ZEROS, A B,
          "{\"alpha_pattern\":{\"c\":2},\"lora_alpha\":1,\"lora_alpha\":5,\"alpha_pattern\":null}",
          SFT_OK, "c.weight F32 2,2 50 100 100 200" },
        { "a whole name", ZEROS, "base_model.model." A "base_model.model." B,
          "{\"alpha_pattern\":{\"^c\":2,\"c\":3}}", SFT_OK,
          "c.weight F32 2,2 20 40 40 80" },
        { "a dot for any character", "layers.sq.weight F32 2,2", "layers.sq.lora_A.weight F32 1,2 "
          "10 20;layers.sq.lora_B.weight F32 2,1 1 2", "{\"alpha_pattern\":{\"q.\":5,\"^s.\":4,"
          "\"s.\":2,\"sq\":3}}", SFT_OK, "layers.sq.weight F32 2,2 20 40 40 80" },
        { "for one within a name", "a1xq.weight F32 2,2", "a1xq.lora_A.weight F32 1,2 10 20;"
          "a1xq.lora_B.weight F32 2,1 1 2", "{\"alpha_pattern\":{\"1.q\":3,\"^a1.q\":2}}", SFT_OK,
          "a1xq.weight F32 2,2 20 40 40 80" },
        { "for one beyond ASCII", "\xc3\xa9q.weight F32 2,2", "\xc3\xa9q.lora_A.weight F32 1,2 10 "
          "20;\xc3\xa9q.lora_B.weight F32 2,1 1 2", "{\"alpha_pattern\":{\"..q\":3,\".q\":2}}",
          SFT_OK, "\xc3\xa9q.weight F32 2,2 20 40 40 80" },
        { "another name", ZEROS, A B, "{\"lora_alpha\":5,\"alpha_pattern\":{\"d\":2,\"^d\":3}}",
          SFT_OK,
          "c.weight F32 2,2 50 100 100 200" },
        { "a name of nothing", ZEROS, A B, "{\"alpha_pattern\":{\"\":2}}", SFT_CAST_DTYPE,
          "regular expressions are not read" },
        { "an end that is one", ZEROS, A B, "{\"alpha_pattern\":{\"a^c\":2}}", SFT_CAST_DTYPE,
          "regular expressions are not read" },
        { "an object that ends", ZEROS, A B, "{\"alpha_pattern\":{\"c\":", SFT_JSON_SYNTAX,
          "of the adapter's configuration" },
        { "ranks that end", ZEROS, A B, "{\"rank_pattern\":{\"c\":", SFT_JSON_SYNTAX,
          "of the adapter's configuration" },
        { "ranks that are no object", ZEROS, A B, "{\"rank_pattern\":[]}", SFT_OK,
          "c.weight F32 2,2 10 20 20 40" },
        { "a rank that is no number", ZEROS, A B, "{\"r\":\"8\",\"peft_type\":7}", SFT_OK,
          "c.weight F32 2,2 10 20 20 40" },
        { "a text that is no UTF-8", ZEROS, A B, "{\"a\":\"\xff\"}", SFT_HEADER_UTF8,
          "expected UTF-8" },
        { "no object", ZEROS, A B, "7", SFT_HEADER_NOT_OBJECT, "found something else" },
        { "DoRA that is a number", ZEROS, A B, "{\"use_dora\":1}", SFT_CAST_DTYPE,
          "true or false as \"use_dora\"" },
        { "DoRA without magnitudes", ZEROS, A B, "{\"use_dora\":true}", SFT_CAST_DTYPE,
          "found lora without DoRA's magnitudes" },
        { "magnitudes without DoRA", ZEROS, A B "c.lora_magnitude_vector F32 2 1",
          "{\"lora_alpha\":1,\"use_dora\":false}", SFT_CAST_DTYPE, "ignores without it" },
        { "magnitudes, and nothing of DoRA", ZEROS, A B "c.lora_magnitude_vector F32 2 1",
          "{\"lora_alpha\":1}", SFT_CAST_DTYPE, "ignores without it" },
        { "LoRA that is LoHa", ZEROS, "c.hada_w1_a F32 2,1 1;c.hada_w1_b F32 1,2 1;"
          "c.hada_w2_a F32 2,1 1;c.hada_w2_b F32 1,2 1", "{\"peft_type\":\"LORA\"}",
          SFT_CAST_DTYPE, "found loha without that \"peft_type\"" },
        { "another rank of LoHa", ZEROS, "c.hada_w1_a F32 2,1 1;c.hada_w1_b F32 1,2 1;"
          "c.hada_w2_a F32 2,1 1;c.hada_w2_b F32 1,2 1", "{\"peft_type\":\"LOHA\",\"r\":4}",
          SFT_SIZE_MISMATCH, "expected a rank of 4" },
        { "another rank of LoKr", ZEROS, "c.lokr_w1 F32 1,1 1;c.lokr_w2_a F32 2,1 1;"
          "c.lokr_w2_b F32 1,2 1", "{\"peft_type\":\"LOKR\",\"r\":4}", SFT_SIZE_MISMATCH,
          "expected a rank of 4" },
        { "LoHa that is LoRA", ZEROS, A B, "{\"peft_type\":\"LOHA\"}", SFT_CAST_DTYPE,
          "without that \"peft_type\"" },
        { "a type of its own", ZEROS, A B, "{\"peft_type\":\"XLORA\"}", SFT_CAST_DTYPE,
          "found \"peft_type\"" },
        { "plain weights", ZEROS, A B, "{\"init_lora_weights\":\"gaussian\",\"coft\":false}",
          SFT_OK,
          "c.weight F32 2,2 10 20 20 40" },
        { "weights of OLoRA", ZEROS, A B, "{\"init_lora_weights\":\"OLoRA\"}", SFT_CAST_DTYPE,
          "found \"init_lora_weights\"" },
        { "by an escape", ZEROS, A B, "{\"init_lora_weights\":\"ol\\u006fra\"}", SFT_CAST_DTYPE,
          "found \"init_lora_weights\"" },
        { "a type by an escape", ZEROS, A B, "{\"peft_type\":\"LOR\\u0041\",\"lora_alpha\":1}",
          SFT_OK,
          "c.weight F32 2,2 10 20 20 40" },
        { "eight layers twice", ZEROS, A B, "{\"layer_replication\":[[0,8]]}", SFT_CAST_DTYPE,
          "found \"layer_replication\"" },
        { "a rank of eight", ZEROS, A B, "{\"r\":8}", SFT_SIZE_MISMATCH, "expected a rank of 8" },
        { "which some layers have", ZEROS, A B, "{\"r\":8,\"rank_pattern\":{\"c\":1}}", SFT_OK,
          "c.weight F32 2,2 10 20 20 40" },
        { "of a component", ZEROS, SAID("{\"transformer.lora_alpha\":2,\"unet.lora_alpha\":3}")
          T ".lora_A.weight F32 1,2 10 20;" T ".lora_B.weight F32 2,1 1 2", NULL, SFT_OK,
          "c.weight F32 2,2 20 40 40 80" },
        { "of components under other names", ZEROS,
          SAID("{\"transformer.lora_alpha\":2,\"text_encoder.r\":1}") A B, NULL, SFT_CAST_DTYPE,
          "tells of (transformer, text_encoder), found ones that begin with \"c\"" },
        { "of one that begins so", ZEROS, SAID("{\"transform.lora_alpha\":2,\"lora_alpha\":3}")
          T ".lora_A.weight F32 1,2 10 20;" T ".lora_B.weight F32 2,1 1 2", NULL, SFT_OK,
          "c.weight F32 2,2 30 60 60 120" },
        { "of the whole name", ZEROS, SAID("{\"c.lora_alpha\":2}") A B, NULL, SFT_CAST_DTYPE,
          "tells of (c), found ones that begin with \"c\"" },
        { "a name of a component", ZEROS,
          SAID("{\"transformer.alpha_pattern\":{\"^c\":2}}") T ".lora_A.weight F32 1,2 10 20;"
          T ".lora_B.weight F32 2,1 1 2", NULL, SFT_OK,
          "c.weight F32 2,2 20 40 40 80" },
        { "nine components", ZEROS, SAID("{\"a.r\":1,\"b.r\":1,\"c.r\":1,\"d.r\":1,\"e.r\":1,"
          "\"f.r\":1,\"g.r\":1,\"h.r\":1,\"i.r\":1}") A B, NULL, SFT_CAST_DTYPE,
          "at most 8 components" },
        { "a component without an end", ZEROS, SAID("{\"a.r\":") A B, NULL, SFT_JSON_SYNTAX,
          "expected a JSON value" },
        { "turned", "c.weight F32 3,2", "c.lora_A.weight F32 1,3 1 2 3;c.lora_B.weight F32 2,1 1 2",
          "{\"fan_in_fan_out\":true}", SFT_OK,
          "c.weight F32 3,2 1 2 2 4 3 6" },
        { "square, and turned", "c_fc.weight F32 2,2", "c_fc.lora_A.weight F32 1,2 10 30;"
          "c_fc.lora_B.weight F32 2,1 1 2", "{\"fan_in_fan_out\":true}", SFT_OK,
          "c_fc.weight F32 2,2 10 20 30 60" },
        { "square, and not known", ZEROS, "c.lora_A.weight F32 1,2 10 30;" B,
          "{\"fan_in_fan_out\":true}", SFT_CAST_DTYPE, "found c.weight of 2 x 2" },
        { "(IA)^3 of a convolution's outputs", "c.weight F32 2,1,1,1 1 2;c.bias F32 2 3 4",
          "base_model.model.c.ia3_l F32 1,2,1,1 2 3", "{\"feedforward_modules\":[\"d\"]}", SFT_OK,
          "c.bias F32 2 6 12; c.weight F32 2,1,1,1 2 6" },
        { "of inputs", "c.weight F32 2,2,1,1 1 2 3 4;c.bias F32 2 3 4",
          "base_model.model.c.ia3_l F32 1,2,1,1 2 3", "{\"feedforward_modules\":[\"d\",\"c\"]}",
          SFT_OK, "c.bias F32 2 3 4; c.weight F32 2,2,1,1 2 6 6 12" },
        { "of inputs of groups", "c.weight F32 2,1,1,1 1 2",
          "base_model.model.c.ia3_l F32 1,2,1,1 2 3", "{\"feedforward_modules\":[\"c\"]}",
          SFT_SIZE_MISMATCH, "a factor for each column" },
        { "told by a regular expression", "c.weight F32 2,1,1,1 1 2",
          "base_model.model.c.ia3_l F32 1,2,1,1 2 3", "{\"feedforward_modules\":\"d\"}",
          SFT_CAST_DTYPE, "as many of both, by its groups" },
        { "told by no names", "c.weight F32 2,1,1,1 1 2",
          "base_model.model.c.ia3_l F32 1,2,1,1 2 3", "{\"feedforward_modules\":[1]}",
          SFT_CAST_DTYPE, "expected a list of names" },
        { "square (IA)^3, and not known", ZEROS, "c.ia3_l F32 2,1 1", "{\"fan_in_fan_out\":true}",
          SFT_CAST_DTYPE, "found c.weight of 2 x 2" },
        { "square as another that is turned", "a.c.weight F32 2,2;b.c.weight F32 3,2",
          "a.c.lora_A.weight F32 1,2 10 30;a.c.lora_B.weight F32 2,1 1 2;"
          "b.c.lora_A.weight F32 1,3 1 2 3;b.c.lora_B.weight F32 2,1 1 2",
          "{\"fan_in_fan_out\":true}", SFT_OK,
          "a.c.weight F32 2,2 10 20 30 60; b.c.weight F32 3,2 1 2 2 4 3 6" },
        { "square as another that is not", "a.c_fc.weight F32 2,2;b.c_fc.weight F32 3,2",
          "a.c_fc.lora_A.weight F32 1,2 10 30;a.c_fc.lora_B.weight F32 2,1 1 2;"
          "b.c_fc.lora_A.weight F32 1,2 1 2;b.c_fc.lora_B.weight F32 3,1 1 2 3",
          "{\"fan_in_fan_out\":true}", SFT_OK,
          "a.c_fc.weight F32 2,2 10 30 20 60; b.c_fc.weight F32 3,2 1 2 2 4 3 6" },
        { "turned, and another layer", "c.weight F32 3,2", "c.lora_A.weight F32 1,4 1;"
          "c.lora_B.weight F32 2,1 1", "{\"fan_in_fan_out\":true}", SFT_SIZE_MISMATCH,
          "an adapter of another model?" },
        { "turned, with other outputs", "c.weight F32 3,2", "c.lora_A.weight F32 1,3 1;"
          "c.lora_B.weight F32 4,1 1", "{\"fan_in_fan_out\":true}", SFT_SIZE_MISMATCH,
          "an adapter of another model?" },
        { "turned LoKr", "c.weight F32 3,2", "c.lokr_w1 F32 1,1;c.lokr_w2 F32 2,3",
          "{\"fan_in_fan_out\":true}", SFT_SIZE_MISMATCH, "an adapter of another model?" },
        { "DoRA of what is turned", "c.weight F32 3,2", "c.lora_A.weight F32 1,3 1;"
          "c.lora_B.weight F32 2,1 1;c.lora_magnitude_vector F32 2 1",
          "{\"fan_in_fan_out\":true,\"use_dora\":true}", SFT_CAST_DTYPE,
          "stored the other way round" },
    };
    CHECK(cases);
}

static void finds_layers(void **unused) {
    (void)unused;
    static const merge_case cases[] = {
        { "a processor", "d.processor.c.weight F32 2,2", "d.c.lora_A.weight F32 1,2 10 20;"
          "d.c.lora_B.weight F32 2,1 1 2", NULL, SFT_OK,
          "d.processor.c.weight F32 2,2 10 20 20 40" },
        { "what begins like one", "d.processors.c.weight F32 2,2",
          "d.c.lora_A.weight F32 1,2 10 20;"
          "d.c.lora_B.weight F32 2,1 1 2", NULL, SFT_TENSOR_NOT_FOUND, "none among 1" },
        { "two layers of a name", "a_b.weight F32 2,2;a.b.weight F32 2,2",
          "lora_unet_a_b.lora_down.weight F32 1,2 1;lora_unet_a_b.lora_up.weight F32 2,1 1", NULL,
          SFT_CAST_DTYPE, "found a_b.weight and a.b.weight" },
        { "a head's prefix that the file lacks", "h.0.c.weight F32 2,2;h.1.c.weight F32 2,2",
          "base_model.model.bert.h.0.c.lora_A.weight F32 1,2 10 20;"
          "base_model.model.bert.h.0.c.lora_B.weight F32 2,1 1 2;"
          "base_model.model.bert.h.1.c.lora_A.weight F32 1,2 1 1;"
          "base_model.model.bert.h.1.c.lora_B.weight F32 2,1 1 2", NULL, SFT_OK,
          "h.0.c.weight F32 2,2 10 20 20 40; h.1.c.weight F32 2,2 1 1 2 2" },
        { "not of all modules", "h.0.c.weight F32 2,2",
          "base_model.model.bert.h.0.c.lora_A.weight F32 1,2 10 20;"
          "base_model.model.bert.h.0.c.lora_B.weight F32 2,1 1 2;"
          "base_model.model.h.2.c.lora_A.weight F32 1,2 1 1;"
          "base_model.model.h.2.c.lora_B.weight F32 2,1 1 2", NULL, SFT_TENSOR_NOT_FOUND,
          "none among 2" },
        { "not beside one that has none", "h.0.c.weight F32 2,2",
          "base_model.model.bert.h.0.c.lora_A.weight F32 1,2 10 20;"
          "base_model.model.bert.h.0.c.lora_B.weight F32 2,1 1 2;"
          "base_model.model.bert.h.2.c.lora_A.weight F32 1,2 1 1;"
          "base_model.model.bert.h.2.c.lora_B.weight F32 2,1 1 2", NULL, SFT_TENSOR_NOT_FOUND,
          "none among 2" },
        { "a head's prefix that the adapter lacks", "bert.h.0.c.weight F32 2,2;c.weight F32 2,2",
          "base_model.model.h.0.c.lora_A.weight F32 1,2 10 20;"
          "base_model.model.h.0.c.lora_B.weight F32 2,1 1 2", NULL, SFT_OK,
          "bert.h.0.c.weight F32 2,2 10 20 20 40; c.weight F32 2,2 0 0 0 0" },
        { "not one of two", "bert.h.0.c.weight F32 2,2;other.h.0.c.weight F32 2,2",
          "base_model.model.h.0.c.lora_A.weight F32 1,2 10 20;"
          "base_model.model.h.0.c.lora_B.weight F32 2,1 1 2", NULL, SFT_TENSOR_NOT_FOUND,
          "none among 1" },
        { "a third of a fused layer", "double_blocks.0.img_attn.qkv.weight F32 6,2;"
          "single_blocks.0.linear1.weight F32 14,2;vector_in.in_layer.weight F32 2,2",
          "transformer.transformer_blocks.0.attn.to_k.lora_A.weight F32 1,2 10 20;"
          "transformer.transformer_blocks.0.attn.to_k.lora_B.weight F32 2,1 1 2", NULL, SFT_OK,
          "double_blocks.0.img_attn.qkv.weight F32 6,2 0 0 0 0 10 20 20 40 0 0 0 0; "
          "single_blocks.0.linear1.weight F32 14,2 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "
          "0 0 0 0 0 0; vector_in.in_layer.weight F32 2,2 0 0 0 0" },
        { "factors of a third", "double_blocks.0.img_attn.qkv.weight F32 6,2 1;"
          "single_blocks.0.linear1.weight F32 14,2;vector_in.in_layer.weight F32 2,2",
          "transformer.transformer_blocks.0.attn.to_k.ia3_l F32 2,1 2 3", NULL, SFT_OK,
          "double_blocks.0.img_attn.qkv.weight F32 6,2 1 1 1 1 2 2 3 3 1 1 1 1; "
          "single_blocks.0.linear1.weight F32 14,2 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "
          "0 0 0 0 0 0; vector_in.in_layer.weight F32 2,2 0 0 0 0" },
        { "a fused adapter of three layers", "transformer_blocks.0.attn.to_q.weight F32 2,2;"
          "transformer_blocks.0.attn.to_k.weight F32 2,2;"
          "transformer_blocks.0.attn.to_v.weight F32 2,2;"
          "transformer_blocks.0.attn.add_q_proj.weight F32 2,2;"
          "single_transformer_blocks.0.proj_mlp.weight F32 2,2;"
          "time_text_embed.text_embedder.linear_1.weight F32 2,2",
          "lora_unet_double_blocks_0_img_attn_qkv.lora_down.weight F32 1,2 10 20;"
          "lora_unet_double_blocks_0_img_attn_qkv.lora_up.weight F32 6,1 1 2 3 4 5 6", NULL,
          SFT_OK,
          "single_transformer_blocks.0.proj_mlp.weight F32 2,2 0 0 0 0; "
          "time_text_embed.text_embedder.linear_1.weight F32 2,2 0 0 0 0; "
          "transformer_blocks.0.attn.add_q_proj.weight F32 2,2 0 0 0 0; "
          "transformer_blocks.0.attn.to_k.weight F32 2,2 30 60 40 80; "
          "transformer_blocks.0.attn.to_q.weight F32 2,2 10 20 20 40; "
          "transformer_blocks.0.attn.to_v.weight F32 2,2 50 100 60 120" },
        { "an encoder in a file of its own", "text_model.embeddings.position_embedding.weight F32 "
          "2,2;text_model.q.weight F32 2,2", "lora_te_text_model_q.lora_down.weight F32 1,2 10 20;"
          "lora_te_text_model_q.lora_up.weight F32 2,1 1 2", NULL, SFT_OK,
          "text_model.embeddings.position_embedding.weight F32 2,2 0 0 0 0; "
          "text_model.q.weight F32 2,2 10 20 20 40" },
        { "the second one", "text_model.embeddings.position_embedding.weight F32 1,1280;"
          "text_model.q.weight F32 2,2", "lora_te1_text_model_q.lora_down.weight F32 1,2 10 20;"
          "lora_te1_text_model_q.lora_up.weight F32 2,1 1 2", NULL, SFT_TENSOR_NOT_FOUND,
          "none among 1" },
        { "T5", "encoder.block.0.layer.0.SelfAttention.q.weight F32 2,2",
          "lora_te3_encoder_block_0_layer_0_SelfAttention_q.lora_down.weight F32 1,2 10 20;"
          "lora_te3_encoder_block_0_layer_0_SelfAttention_q.lora_up.weight F32 2,1 1 2", NULL,
          SFT_OK,
          "encoder.block.0.layer.0.SelfAttention.q.weight F32 2,2 10 20 20 40" },
        { "positions of one dimension", "text_model.embeddings.position_embedding.weight F32 2;"
          "text_model.q.weight F32 2,2", "lora_te_text_model_q.lora_down.weight F32 1,2 10 20;"
          "lora_te_text_model_q.lora_up.weight F32 2,1 1 2", NULL, SFT_TENSOR_NOT_FOUND,
          "none among 1" },
        { "a layer without elements", "c.weight F32 0,2", A B, NULL, SFT_TENSOR_NOT_FOUND,
          "none among 1" },
        { "a difference of other rows", TALL, "c.diff F32 3,2 1", NULL, SFT_SIZE_MISMATCH,
          "found 3 x 2" },
        { "of other columns", TALL, "c.diff F32 4,3 1", NULL, SFT_SIZE_MISMATCH, "found 4 x 3" },
        { "a scalar", "c.weight F32 -", "c.diff F32 - 2", NULL, SFT_OK,
          "c.weight F32 - 2" },
        { "no floats", "c.weight I32 2,2", A B, NULL, SFT_CAST_DTYPE, "I32" },
        { "codes", ZEROS, "c.lora_A.weight I8 1,2 10 20;" B, NULL, SFT_CAST_DTYPE,
          "expected floats, found I8" },
        { "codes of a difference", ZEROS, "c.diff I32 2,2 1", NULL, SFT_CAST_DTYPE, "found I32" },
        { "an alpha that is a whole number", ZEROS, A B "c.alpha I64 - 2", NULL, SFT_OK,
          "c.weight F32 2,2 20 40 40 80" },
        { "magnitudes of a difference", ZEROS, "c.diff F32 2,2 1;c.dora_scale F32 2,1 1", NULL,
          SFT_CAST_DTYPE, "magnitudes beside LoRA, LoHa or LoKr, found them beside full" },
        { "magnitudes of a bias", ZEROS, "c.diff_b F32 2 1;c.dora_scale F32 2,1 1", NULL,
          SFT_CAST_DTYPE, "beside full" },
        { "magnitudes of (IA)^3", ZEROS, "c.ia3_l F32 2,1 1;c.lora_magnitude_vector F32 2 1", NULL,
          SFT_CAST_DTYPE, "beside ia3" },
        { "magnitudes of rotations", ZEROS, "c.oft_blocks F32 1,2,2;c.dora_scale F32 2,1 1", NULL,
          SFT_CAST_DTYPE, "beside oft" },
        { "factors of half bytes", ZEROS, "c.lora_A.weight F4 1,2 1;c.lora_B.weight F32 2,1 1",
          NULL, SFT_CAST_DTYPE, "floats of 8 bits or more, found F4" },
    };
    CHECK(cases);
}

/* Strengths of blocks: of vectors, and of patterns; a bias has that of its weight. */
static void takes_blocks(void **unused) {
    (void)unused;
#define IN01 "input_blocks.1.0.in_layers.2"
    static const char unet[] = "model.diffusion_model." IN01 ".weight F32 2,2;"
                               "model.diffusion_model." IN01 ".bias F32 2;"
                               "model.diffusion_model.out.2.weight F32 2,2";
    static const char change[] = IN01 ".diff F32 2,2 1;" IN01 ".diff_b F32 2 1;"
                                 "out.2.diff F32 2,2 1";
#define ZEROS8 "0,0,0,0,0,0,0,0,"
    static const struct { const char *model, *adapter, *blocks; sft_code code; const char *want; }
    cases[] = {
        { unet, change, "9,0,3," ZEROS8 ZEROS8 "0,0,0,0,0,0,0", SFT_OK,
          "model.diffusion_model.input_blocks.1.0.in_layers.2.bias F32 2 3 3; "
          "model.diffusion_model.input_blocks.1.0.in_layers.2.weight F32 2,2 3 3 3 3; "
          "model.diffusion_model.out.2.weight F32 2,2 1 1 1 1" },
        { unet, change, "*.in_layers*=2,*=4", SFT_OK,
          "model.diffusion_model.input_blocks.1.0.in_layers.2.bias F32 2 2 2; "
          "model.diffusion_model.input_blocks.1.0.in_layers.2.weight F32 2,2 2 2 2 2; "
          "model.diffusion_model.out.2.weight F32 2,2 4 4 4 4" },
        { TALL, "c.diff F32 4,2 1", "1,1,1,1,1,1,1,1,1,1,1,1", SFT_BAD_ARGUMENT,
          "expected blocks of a U-Net for 12 strengths" },
        { TALL, "c.diff F32 4,2 1", "1,1", SFT_BAD_ARGUMENT, "12, 17, 20 or 26 strengths of" },
        { TALL, "c.diff F32 4,2 1", "", SFT_BAD_ARGUMENT, "found 0" },
        { TALL, "c.diff F32 4,2 1", "1,x", SFT_BAD_ARGUMENT, "found \"x\"" },
        { TALL, "c.diff F32 4,2 1", "c*=1,2", SFT_BAD_ARGUMENT, "found \"2\"" },
        { TALL, "c.diff F32 4,2 1", "1,c*=2", SFT_BAD_ARGUMENT, "found \"c*=2\"" },
        { TALL, "c.diff F32 4,2 1", "=1", SFT_BAD_ARGUMENT, "found \"=1\"" },
        { TALL, "c.diff F32 4,2 1", "c*=1,d*=2", SFT_BAD_ARGUMENT, "found \"d*\"" },
        { TALL, "c.diff F32 4,2 1", ZEROS8 ZEROS8 ZEROS8 ZEROS8 ZEROS8 ZEROS8 ZEROS8 ZEROS8 "0",
          SFT_BAD_ARGUMENT, "at most 64 strengths" },
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_file f = spell_file(cases[i].model), g = spell_file(cases[i].adapter);
        sft_set *model = adapter_set(&f, NULL), *adapter = adapter_set(&g, NULL);
        sft_adapter_use use = SFT_ADAPTER_USE_INIT;
        sft_adapter_merge *made;
        sft_buffer file = { 0 };
        sft_error err;
        char text[1024];
        use.blocks = cases[i].blocks;
        assert_int_equal(sft_adapter_merge_new(model, NULL, &made, NULL), SFT_OK);
        sft_code code = sft_adapter_merge_add(made, adapter, &use, &err);
        assert_int_equal(code, cases[i].code);
        if (code && !strstr(err.message, cases[i].want)) fail_msg("%s", err.message);
        if (!code) {
            assert_int_equal(sft_adapter_merge_save(made, sft_sink_memory(&file), NULL, NULL),
                             SFT_OK);
            spell_buffer(&file, text, sizeof text);
            assert_string_equal(text, cases[i].want);
        }
        sft_adapter_merge_free(made);
        sft_buffer_free(&file);
        sft_set_close(model);
        sft_set_close(adapter);
        free_file(&f);
        free_file(&g);
    }
}

/* "NAME SHAPE; ...", of F32, of which there is nothing but the header. */
static sft_set *huge_set(test_file *f, const char *text) {
    char header[2048] = "{", name[128], shape[64];
    size_t len = 1;
    uint64_t at = 0;
    for (int used; sscanf(text, " %127s %63[0-9,] %n", name, shape, &used) == 2; text += used) {
        uint64_t count = 4;
        for (char *c = shape, *end; *c; c = *end ? end + 1 : end) count *= strtoull(c, &end, 10);
        len += (size_t)sprintf(header + len, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%s],"
                               "\"data_offsets\":[%llu,%llu]}", len > 1 ? "," : "", name, shape,
                               (unsigned long long)at, (unsigned long long)(at + count));
        at += count;
    }
    header[len] = '}';
    *f = make_file(header, NULL, 0);
    sft_open_options how = SFT_OPEN_OPTIONS_INIT;
    sft_file *file;
    sft_set *set;
    how.header_only = true;
    assert_int_equal(sft_open_memory(f->bytes, f->len, &how, &file, NULL), SFT_OK);
    assert_int_equal(sft_set_from_file(file, NULL, &set, NULL), SFT_OK);
    return set;
}

static void refuses_what_is_huge(void **unused) {
    (void)unused;
#define LAYER4 "c.weight 4,4"
    static const struct { const char *what, *model, *adapter; sft_code code; const char *words; }
    cases[] = {
        { "columns of LoRA", LAYER4, "c.lora_down.weight 1,1099511627776 c.lora_up.weight 1,1 "
          "c.lora_mid.weight 1,1,16777216", SFT_SIZE_OVERFLOW, "fewer than 2^64" },
        { "columns of LoHa", LAYER4, "c.hada_w1_a 1,1 c.hada_w1_b 1,1099511627776 "
          "c.hada_t1 1,1,16777216 c.hada_w2_a 1,1 c.hada_w2_b 1,1 c.hada_t2 1,1,1",
          SFT_SIZE_OVERFLOW, "fewer than 2^64" },
        { "rows of LoKr", LAYER4, "c.lokr_w1 8589934592,1 c.lokr_w2 8589934592,1",
          SFT_SIZE_OVERFLOW, "fewer than 2^64" },
        { "columns of LoKr", LAYER4, "c.lokr_w1 1,8589934592 c.lokr_w2 1,8589934592",
          SFT_SIZE_OVERFLOW, "fewer than 2^64" },
        { "a row", "c.weight 1,134217728", "c.lora_down.weight 1,134217728 c.lora_up.weight 1,1",
          SFT_ADDRESS_SPACE, "67108864" },
        { "a tensor that is turned as a whole", "c.weight 1048576,1024", "c.oft_blocks 262144,4,4",
          SFT_ADDRESS_SPACE, "found" },
        { "a matrix of factors", "c.weight 1048576,4", "c.lora_up.weight 1048576,1024 "
          "c.lora_down.weight 1024,4", SFT_ADDRESS_SPACE, "at most 268435456 elements" },
        { "no data", LAYER4, "c.lora_up.weight 4,1 c.lora_down.weight 1,4", SFT_BAD_ARGUMENT,
          "found the end of the file" },
    };
    size_t wrong = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_file f, g;
        sft_set *model = huge_set(&f, cases[i].model), *adapter = huge_set(&g, cases[i].adapter);
        sft_adapter_merge *made;
        sft_error err = { .code = SFT_OK };
        assert_int_equal(sft_adapter_merge_new(model, NULL, &made, NULL), SFT_OK);
        sft_code code = sft_adapter_merge_add(made, adapter, NULL, &err);
        if (!code) code = sft_adapter_merge_plan(made, &err);
        sft_part part = { .source = NULL };
        uint8_t byte;
        size_t got;
        if (!code) part = sft_adapter_merge_part(made, 0);
        if (!code) code = sft_source_read(part.source, part.begin, &byte, 1, &got, &err);
        if (code != cases[i].code || !strstr(err.message, cases[i].words)) {
            print_error("%s: %d: %s\n", cases[i].what, (int)code, err.message);
            wrong++;
        }
        sft_adapter_merge_free(made);
        sft_set_close(model);
        sft_set_close(adapter);
        free_file(&f);
        free_file(&g);
    }
    assert_int_equal(wrong, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(takes_methods),
        cmocka_unit_test(takes_configurations),
        cmocka_unit_test(finds_layers),
        cmocka_unit_test(takes_blocks),
        cmocka_unit_test(refuses_what_is_huge),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
