/* Metadata that name tensors follow their new names, or are refused. */
#include "keys/renamed.h"
#include "safetensors_codes.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <string.h>

#define LORA "lora_adapter_metadata"
#define DECLARED "_quantization_metadata"
#define CONFIG "quantization_config"

/* Memory for so many allocations; those that follow fail. */
static void *resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    size_t *left = ctx;
    (void)old_size;
    if (new_size == 0) free(ptr);
    if (new_size == 0 || *left == 0) return NULL;
    --*left;
    return realloc(ptr, new_size);
}

typedef struct row {
    const char *names;   /* "OLD=NEW ..." of tensors; "~OLD=NEW" of aliases */
    const char *key, *value;
    const char *now_key, *now_value; /* NULL: the pair goes; value NULL: refused */
    sft_code code;
    sft_hint hint;
} row;

static const row rows[] = {
    /* aliases: both sides */
    { "e.w=m.e.w", "h.w", "e.w", "h.w", "m.e.w", SFT_OK, SFT_HINT_NONE },
    { "e.w=m.e.w ~h.w=m.h.w", "h.w", "e.w", "m.h.w", "m.e.w", SFT_OK, SFT_HINT_NONE },
    { "e.w=h.w", "h.w", "e.w", NULL, "", SFT_OK, SFT_HINT_NONE },
    { "e.w=h.w ~h.w=e.w", "h.w", "e.w", "e.w", "h.w", SFT_OK, SFT_HINT_NONE },
    { "e.w=e.w x.w=h.w", "h.w", "e.w", "", NULL, SFT_TENSOR_DUPLICATE, SFT_HINT_NONE },
    /* no dot: any text */
    { "clip_l=text", "encoder", "clip_l", "encoder", "clip_l", SFT_OK, SFT_HINT_NONE },
    { "e.w=m.w", "format", "pt", "format", "pt", SFT_OK, SFT_HINT_NONE },
    /* components of adapters */
    { "t.a.w=u.a.w t.b.w=u.b.w", LORA, "{\"t.r\": 4, \"t.alpha_pattern\": {\"a\": 1}}", LORA,
      "{\"u.r\": 4, \"u.alpha_pattern\": {\"a\": 1}}", SFT_OK, SFT_HINT_NONE },
    { "t.a.w=a.w", LORA, "{\"t.r\":4,\"u.r\":[1]}", LORA, "{\"r\":4,\"u.r\":[1]}", SFT_OK,
      SFT_HINT_NONE },
    { "t.a.w=a.w u.a.w=u.a.w", LORA, "{\"t.r\":4,\"u.r\":1}", "", NULL, SFT_BAD_ARGUMENT,
      SFT_HINT_LORA_NAMES }, /* "u" would have two */
    { "t.a.w=u.a.w", LORA, "{\"t.r\":4,\"u.r\":1}", "", NULL, SFT_BAD_ARGUMENT,
      SFT_HINT_LORA_NAMES },
    { "t.a.w=u.t.a.w", LORA, "{\"t.r\":4,\"u.r\":1}", "", NULL, SFT_BAD_ARGUMENT,
      SFT_HINT_LORA_NAMES },
    { "t.a.w=x\"y.t.a.w", LORA, "{\"t.r\":4}", LORA, "{\"x\\\"y.t.r\":4}", SFT_OK, SFT_HINT_NONE },
    { "a.w=t.a.w", LORA, "{\"r\":4}", LORA, "{\"r\":4}", SFT_OK, SFT_HINT_NONE },
    { "t.a.w=t.a.w t.b.w=u.b.w", LORA, "{\"t.r\":4}", "", NULL, SFT_BAD_ARGUMENT,
      SFT_HINT_LORA_NAMES },
    { "t.a.w=t.b.w", LORA, "{\"t.r\":4}", "", NULL, SFT_BAD_ARGUMENT, SFT_HINT_LORA_NAMES },
    { "t.a.w=t.a.w x.w=t.x.w", LORA, "{\"t.r\":4}", "", NULL, SFT_BAD_ARGUMENT,
      SFT_HINT_LORA_NAMES }, /* it would get an alpha */
    { "t.a.w=a.w x.w=x.w", LORA, "{\"t.r\":4}", "", NULL, SFT_BAD_ARGUMENT, SFT_HINT_LORA_NAMES },
    { "a.w=b.w", LORA, "{\"alpha_pattern\":{\"a\":1}}", "", NULL, SFT_BAD_ARGUMENT,
      SFT_HINT_LORA_NAMES },
    { "a.w=b.w", LORA, "{\"alpha_pattern\":{}}", LORA, "{\"alpha_pattern\":{}}", SFT_OK,
      SFT_HINT_NONE },
    { "t.a.w=u.a.w", LORA, "[\"t.r\"]", LORA, "[\"t.r\"]", SFT_OK, SFT_HINT_NONE },
    { "t.a.w=u.a.w", LORA, "{\"t.r\":", LORA, "{\"t.r\":", SFT_OK, SFT_HINT_NONE },
    /* quantised layers */
    { "a.weight=m.a.weight a.scale=m.a.scale", DECLARED,
      "{\"v\":[1],\"layers\":{\"a\":{\"format\":\"x\"},\"none\":{}}}", DECLARED,
      "{\"v\":[1],\"layers\":{\"m.a\":{\"format\":\"x\"},\"none\":{}}}", SFT_OK, SFT_HINT_NONE },
    { "unet.a.weight=a.weight", DECLARED, "{\"layers\":{\"a\":{}}}", DECLARED,
      "{\"layers\":{\"a\":{}}}", SFT_OK, SFT_HINT_NONE },
    { "unet.a.weight=x.a.weight", DECLARED, "{\"layers\":{\"a\":{}}}", DECLARED,
      "{\"layers\":{\"x.a\":{}}}", SFT_OK, SFT_HINT_NONE },
    { "a.weight=b.weight a.scale=a.scale", DECLARED, "{\"layers\":{\"a\":{}}}", "", NULL,
      SFT_BAD_ARGUMENT, SFT_HINT_DECLARED_NAMES },
    { "a.weight=weight", DECLARED, "{\"layers\":{\"a\":{}}}", "", NULL, SFT_BAD_ARGUMENT,
      SFT_HINT_DECLARED_NAMES },
    { "a.weight=b.weight", DECLARED, "{\"layers\":[\"a\"]}", DECLARED, "{\"layers\":[\"a\"]}",
      SFT_OK, SFT_HINT_NONE },
    /* torchao's classes */
    { "a._weight_qdata=m.a._weight_qdata a._weight_scale=m.a._weight_scale", "a.weight",
      "{\"_type\": \"Float8Tensor\"}", "m.a.weight", "{\"_type\": \"Float8Tensor\"}", SFT_OK,
      SFT_HINT_NONE },
    { "a._weight_qdata=b._weight_qdata a._weight_scale=a._weight_scale", "a.weight",
      "{\"_type\": \"Float8Tensor\"}", "", NULL, SFT_BAD_ARGUMENT, SFT_HINT_DECLARED_NAMES },
    { "a._weight_qdata=m.a._weight_qdata b.w=m.b.w", "tensor_names", "[\"a.weight\", \"b.w\", 1]",
      "tensor_names", "[\"a.weight\", \"b.w\", 1]", SFT_OK, SFT_HINT_NONE },
    { "a._weight_qdata=m.a._weight_qdata b.w=m.b.w", "tensor_names", "[\"a.weight\", \"b.w\"]",
      "tensor_names", "[\"m.a.weight\", \"m.b.w\"]", SFT_OK, SFT_HINT_NONE },
    /* what names layers in a quantization_config */
    { "m.a.weight=a.b.weight m.a.scales=a.b.scales", CONFIG,
      "{\"bits\":4,\"m.a\":{\"bits\":8},\"skip\":[\"m.a\",\"lm_head\",\"m.a.weight\"]}", CONFIG,
      "{\"bits\":4,\"a.b\":{\"bits\":8},\"skip\":[\"a.b\",\"lm_head\",\"a.b.weight\"]}", SFT_OK,
      SFT_HINT_NONE },
    { "m.a.weight=b.weight m.a.scales=m.a.scales", CONFIG, "{\"m.a\":{\"bits\":8}}", "", NULL,
      SFT_BAD_ARGUMENT, SFT_HINT_DECLARED_NAMES },
    { "m.weight=weight", CONFIG, "{\"m\":{}}", "", NULL, SFT_BAD_ARGUMENT,
      SFT_HINT_DECLARED_NAMES },
    { "m.a.weight=b.weight", CONFIG, "{\"ignore\":[\"re:.*lm_head\"]}", "", NULL, SFT_BAD_ARGUMENT,
      SFT_HINT_DECLARED_NAMES },
    { "m.a.weight=b.weight", CONFIG, "{\"dynamic\":{\"-:m\":{}}}", "", NULL, SFT_BAD_ARGUMENT,
      SFT_HINT_DECLARED_NAMES },
    { "m.a.weight=m.a.weight", CONFIG, "{\"ignore\":[\"re:.*\",\"m.a\"]}", CONFIG,
      "{\"ignore\":[\"re:.*\",\"m.a\"]}", SFT_OK, SFT_HINT_NONE },
    { "m.a.weight=b.weight", CONFIG, "{\"m.a\":", CONFIG, "{\"m.a\":", SFT_OK, SFT_HINT_NONE },
    { "m.a.weight=b.weight", CONFIG,
      "{\"meta\":{\"quantizer\":[\"a:2.0+cu124\"]},\"version\":\"1+\",\"skip\":[\"m.a\"]}", CONFIG,
      "{\"meta\":{\"quantizer\":[\"a:2.0+cu124\"]},\"version\":\"1+\",\"skip\":[\"b\"]}", SFT_OK,
      SFT_HINT_NONE },
};

static size_t read_names(const char *text, bool aliases, sft_pair *out) {
    size_t count = 0;
    while (*text) {
        const char *equals = strchr(text, '='), *end = equals + strcspn(equals, " ");
        bool alias = *text == '~';
        text += alias;
        if (alias == aliases)
            out[count++] = (sft_pair){ { text, (size_t)(equals - text) },
                                       { equals + 1, (size_t)(end - equals - 1) } };
        text = *end ? end + 1 : end;
    }
    return count;
}

static sft_code run_row(const row *row, size_t allocations, sfti_arena *arena, sft_pair *now,
                        sft_error *err) {
    sft_pair tensors[4], aliases[4];
    sfti_renamed renamed;
    *arena = (sfti_arena){ .alloc = { resize, &allocations } };
    size_t count = read_names(row->names, false, tensors);
    size_t others = read_names(row->names, true, aliases);
    if (!sfti_renamed_begin(&renamed, tensors, count, aliases, others, arena))
        return SFT_OUT_OF_MEMORY;
    sft_pair pair = { sft_span_cstr(row->key), sft_span_cstr(row->value) };
    return sfti_renamed_pair(&renamed, pair, now, err);
}

static void test_rows(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const row *row = &rows[i];
        sft_code code = SFT_OUT_OF_MEMORY;
        for (size_t n = 0; code == SFT_OUT_OF_MEMORY; n++) {
            sfti_arena arena;
            sft_error err = SFT_ERROR_INIT;
            sft_pair now;
            code = run_row(row, n, &arena, &now, &err);
            if (code != SFT_OUT_OF_MEMORY && code != row->code)
                print_error("row %zu: %s\n", i, err.message);
            if (code == row->code && code) assert_int_equal(err.hint, row->hint);
            if (!code && !row->now_key) assert_null(now.key.data);
            if (!code && row->now_key) {
                assert_true(sft_span_equal(now.key, sft_span_cstr(row->now_key)));
                if (!sft_span_equal(now.value, sft_span_cstr(row->now_value)))
                    print_error("row %zu: %.*s\n", i, (int)now.value.len, now.value.data);
                assert_true(sft_span_equal(now.value, sft_span_cstr(row->now_value)));
            }
            sfti_arena_free(&arena);
        }
        assert_int_equal(code, row->code);
    }
}

/* Names that metadata tell again and again are looked for in bounded time. */
static void test_steps(void **state) {
    size_t allocations = 100;
    sfti_arena arena = { .alloc = { resize, &allocations } };
    sft_error err = SFT_ERROR_INIT;
    sft_pair names[1], now;
    sfti_renamed renamed;
    (void)state;
    read_names("m.a.weight=b.weight", false, names);
    assert_true(sfti_renamed_begin(&renamed, names, 1, NULL, 0, &arena));
    *renamed.steps = (1u << 26) - 1;
    sft_pair once = { sft_span_cstr(CONFIG), sft_span_cstr("[\"m.a\"]") };
    sft_pair twice = { sft_span_cstr(CONFIG), sft_span_cstr("[\"m.a\",\"m.a\"]") };
    assert_int_equal(sfti_renamed_pair(&renamed, once, &now, &err), SFT_OK);
    *renamed.steps = (1u << 26) - 1;
    assert_int_equal(sfti_renamed_pair(&renamed, twice, &now, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "at most"));
    sfti_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows), cmocka_unit_test(test_steps) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
