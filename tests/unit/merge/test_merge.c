/* Merging: arithmetic of its own, exact selection, and the same bytes on every machine and for any
 * number of threads, by digests that were made on x86-64. Values are compared with mergekit's in
 * tests/merge. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "merge/work.h"
#include "base/endian.h"
#include "safetensors_hash.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ── Arithmetic ── */

static void computes_angles(void **unused) {
    (void)unused;
    for (int i = -4000; i <= 4000; i++) {
        double x = (double)i / 371;
        assert_true(fabs(sfti_merge_sine(x) - sin(x)) < 1e-14);
        assert_true(fabs(sfti_merge_cosine(x) - cos(x)) < 1e-14);
    }
    for (int i = -1000; i <= 1000; i++) {
        double x = (double)i / 1000;
        assert_true(fabs(sfti_merge_arc_cosine(x) - acos(x)) < 1e-14);
    }
    assert_true(fabs(sfti_merge_arc_cosine(1 - 1e-12) - acos(1 - 1e-12)) < 1e-15);
    assert_true(sfti_merge_sine(1e300) == 0 && sfti_merge_cosine(-1e9) == 0);
}

static void multiplies(void **unused) {
    double a[37], b[37], want[3] = { 0 }, sums[3];
    double *x[2] = { a, b };
    (void)unused;
    for (int i = 0; i < 37; i++) {
        a[i] = i - 11, b[i] = 3 * i + 1;
        want[0] += a[i] * a[i], want[1] += a[i] * b[i], want[2] += b[i] * b[i];
    }
    sfti_merge_products(x, 2, 0, 37, sums);
    for (int i = 0; i < 3; i++) assert_true(!(sums[i] < want[i]) && !(sums[i] > want[i]));
}

/* ── Settings ── */

static void spreads_over_layers(void **unused) {
    static const double list[] = { 0, 1, 0.5 }, plain[] = { 7 };
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_merge_settings all = { .count = 0 };
    sfti_merge_setting one = { .param = SFTI_MERGE_T, .model = SFTI_MERGE_ALL, .values = list,
                               .count = 3, .filter = SFTI_FILTER_PART,
                               .text = sft_span_cstr("attn") };
    sfti_merge_setting other = { .param = SFTI_MERGE_T, .model = SFTI_MERGE_ALL, .values = plain,
                                 .count = 1 };
    double value = 0;
    (void)unused;
    assert_int_equal(sfti_merge_setting_add(&all, &arena, &one, NULL), SFT_OK);
    assert_int_equal(sfti_merge_setting_add(&all, &arena, &other, NULL), SFT_OK);
    static const struct { const char *name; uint64_t layer, layers; double want; } rows[] = {
        { "x.attn.w", 0, 5, 0 }, { "x.attn.w", 1, 5, 0.5 }, { "x.attn.w", 3, 5, 0.75 },
        { "x.attn.w", 4, 5, 0.5 }, { "x.attn.w", 0, 1, 0.5 }, { "x.attn.w", 0, 0, 0 },
        { "x.mlp.w", 3, 5, 7 },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const sfti_merge_row row = { .spec.name = sft_span_cstr(rows[i].name),
                                     .layer = rows[i].layer, .layers = rows[i].layers };
        assert_true(sfti_merge_setting_find(&all, SFTI_MERGE_T, 3, &row, row.spec.name,
                                            &value));
        assert_true(fabs(value - rows[i].want) < 1e-15);
    }
    const sfti_merge_row none = { .spec.name = sft_span_cstr("x") };
    assert_false(sfti_merge_setting_find(&all, SFTI_MERGE_ALPHA, 3, &none, none.spec.name,
                                         &value));
    sfti_arena_free(&arena);
}

static void knows_layers(void **unused) {
    static const struct { const char *name, *stack; uint64_t layer; } rows[] = {
        { "model.layers.17.mlp.weight", "model.layers", 17 },
        { "model.diffusion_model.input_blocks.3.1.w", "model.diffusion_model.input_blocks", 3 },
        { "blocks.0.x", "blocks", 0 }, { "lm_head.weight", NULL, 0 }, { "3.weight", NULL, 0 },
        { "a.99999999999.w", NULL, 0 }, { "a.1", NULL, 0 }, { "", NULL, 0 },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_span stack;
        uint64_t layer;
        bool found = sfti_merge_layer(sft_span_cstr(rows[i].name), &stack, &layer);
        assert_true(found == (rows[i].stack != NULL));
        if (!found) continue;
        assert_int_equal(stack.len, strlen(rows[i].stack));
        assert_memory_equal(stack.data, rows[i].stack, stack.len);
        assert_int_equal(layer, rows[i].layer);
    }
}

static void names_layers(void **unused) {
    char name[16];
    (void)unused;
    assert_int_equal(sfti_merge_layer_name(sft_span_cstr("m.3.w"), 12, name, sizeof name), 6);
    assert_memory_equal(name, "m.12.w", 6);
    assert_int_equal(sfti_merge_layer_name(sft_span_cstr("m.3.w"), 12, name, 6), 6);
    assert_int_equal(sfti_merge_layer_name(sft_span_cstr("m.3.w"), 12, name, 5), 0);
    assert_int_equal(sfti_merge_layer_name(sft_span_cstr("m.w"), 12, name, sizeof name), 0);
}

static void calls_models(void **unused) {
    static const struct { const char *path, *name; } rows[] = {
        { "a/b.safetensors", "b.safetensors" }, { "a/model.safetensors", "a" },
        { "x/a/model.safetensors.index.json", "a" }, { "model.safetensors", "model.safetensors" },
        { "/model.safetensors", "model.safetensors" }, { "memory", "memory" },
    };
    (void)unused;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_span name = sfti_merge_called(rows[i].path);
        assert_int_equal(name.len, strlen(rows[i].name));
        assert_memory_equal(name.data, rows[i].name, name.len);
    }
}

/* ── Recipes ── */

static const char yaml_recipe[] =
    "merge_method: ties\nbase_model: base.safetensors\nmodels:\n  - model: a\n    parameters:\n"
    "      weight: 0.6\n      density: [0.3, 0.7]\n  - model: 'b c'\n    parameters:\n"
    "      weight:\n        - filter: attn\n          value: 0.3\n        - value: 0.5\n"
    "parameters:\n  normalize: true\n  lambda: 1e-1 # small\ndtype: bfloat16\nseed: 7\n";

static void writes_what_it_reads(void **unused) {
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sft_buffer buffers[2] = { { .alloc = arena.alloc }, { .alloc = arena.alloc } };
    sft_span text = sft_span_cstr(yaml_recipe);
    (void)unused;
    for (int i = 0; i < 2; i++) {
        sfti_merge_recipe recipe = { .count = 0 };
        sft_sink sink = sft_sink_memory(&buffers[i]);
        sfti_json_writer w;
        assert_int_equal(sfti_merge_recipe_read(text, &arena, &recipe, NULL), SFT_OK);
        assert_int_equal(recipe.count, 3);
        assert_int_equal(recipe.base, 2);
        assert_int_equal(recipe.seed, 7);
        assert_int_equal(recipe.settings.count, 6);
        sfti_json_write(&w, &sink, 0, NULL);
        sfti_merge_recipe_write(&recipe, recipe.models, &w);
        assert_int_equal(sfti_json_done(&w), SFT_OK);
        text = (sft_span){ buffers[i].data, buffers[i].len };
    }
    assert_int_equal(buffers[0].len, buffers[1].len);
    assert_memory_equal(buffers[0].data, buffers[1].data, buffers[0].len);
    sft_buffer_free(&buffers[0]);
    sft_buffer_free(&buffers[1]);
    sfti_arena_free(&arena);
}

static void refuses_broken_recipes(void **unused) {
    static const char json[] = "{\"merge_method\":\"ties\",\"base_model\":{\"model\":\"c\"},"
        "\"models\":[{\"model\":\"a\",\"parameters\":{\"weight\":[{\"filter\":\"x\",\"value\":"
        "[0,1]},{\"value\":1}]}},{\"model\":\"b\"}],\"parameters\":{\"weight\":1},\"seed\":9}";
    char copy[sizeof yaml_recipe + sizeof json];
    size_t good = 0;
    (void)unused;
    for (uint64_t round = 0; round < 40000; round++) {
        const char *from = round & 1 ? json : yaml_recipe;
        size_t len = strlen(from);
        sfti_arena arena = { .alloc = sfti_allocator(NULL) };
        sfti_merge_recipe recipe = { .count = 0 };
        sft_error err = SFT_ERROR_INIT;
        memcpy(copy, from, len);
        for (uint64_t k = 0; k < 1 + round % 5; k++) {
            uint64_t random = sfti_merge_random(round, k);
            size_t at = (size_t)(random >> 8) % len;
            if (random & 128) copy[at] = (char)(random >> 40);
            else memmove(copy + at, copy + at + 1, --len - at);
        }
        char *own = malloc(len); /* nothing behind it */
        memcpy(own, copy, len);
        sft_code code = sfti_merge_recipe_read((sft_span){ own, len }, &arena, &recipe, &err);
        assert_true(code == SFT_OK || code == SFT_BAD_ARGUMENT || (code >= 100 && code < 300));
        assert_true(code == SFT_OK || err.message[0]);
        good += code == SFT_OK;
        free(own);
        sfti_arena_free(&arena);
    }
    assert_in_range(good, 500, 30000);
}

/* ── The same bytes everywhere ── */

#define TENSOR(name, dtype, shape, offsets) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
#define HEADER "{" TENSOR("layers.0.w", "F32", "[123,457]", "[0,224844]") "," \
               TENSOR("layers.1.v", "BF16", "[700]", "[224844,226244]") "," \
               TENSOR("layers.1.c", "F32", "[40,9,3]", "[226244,230564]") "}"
#define MODELS 4

static void put_value(uint8_t *out, bool half, uint64_t model, uint64_t i) {
    double base = (double)(sfti_merge_random(99, i) >> 40) * 0x1p-24 - 0.5;
    double noise = (double)(sfti_merge_random(model, i) >> 58) * 0x1p-9 - 0.0625;
    float value = (float)(base + (model ? noise : 0));
    uint32_t word;
    memcpy(&word, &value, sizeof word);
    if (half) out[0] = (uint8_t)(word >> 16), out[1] = (uint8_t)(word >> 24);
    else sfti_put_u32(out, word);
}

static sft_set *make_model(uint64_t model, uint8_t **bytes) {
    size_t head = (sizeof HEADER - 1 + 7) & ~(size_t)7, size = 8 + head + 230564, at = 8 + head;
    sft_file *file = NULL;
    sft_set *set = NULL;
    *bytes = malloc(size);
    memset(*bytes, ' ', at);
    sfti_put_u64(*bytes, head);
    memcpy(*bytes + 8, HEADER, sizeof HEADER - 1);
    for (uint64_t i = 0; i < 56211 + 700 + 1080; i++) {
        bool half = i >= 56211 && i < 56911;
        put_value(*bytes + at, half, model, i);
        at += half ? 2 : 4;
    }
    assert_int_equal(at, size);
    assert_int_equal(sft_open_memory(*bytes, size, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_set_from_file(file, NULL, &set, NULL), SFT_OK);
    return set;
}

static void digest(const sfti_merge_plan *plan, char out[17]) {
    sfti_merged *merged = NULL;
    sft_error err = SFT_ERROR_INIT;
    sft_hasher *hasher = NULL;
    sft_hashes hashes = SFT_HASHES_INIT(0);
    static uint8_t block[70001]; /* no multiple of anything */
    size_t blame, got = 1;
    sft_code code = sfti_merged_new(plan, &merged, &blame, &err);
    assert_int_equal(code, SFT_OK);
    assert_int_equal(sft_hasher_new(SFT_HASH_BIT(SFT_HASH_SHA256), NULL, &hasher, NULL), SFT_OK);
    const sft_source *source = sfti_merged_source(merged);
    for (uint64_t at = 0; at < source->size; at += got) {
        code = sft_source_read(source, at, block, sizeof block, &got, &err);
        if (code) print_message("%s\n", err.message);
        assert_int_equal(code, SFT_OK);
        sft_hasher_update(hasher, block, got);
    }
    sft_hasher_result(hasher, &hashes);
    memcpy(out, sft_hashes_get(&hashes, SFT_HASH_SHA256), 16);
    out[16] = 0;
    sft_hasher_free(hasher);
    sfti_merged_free(merged);
}

static const struct { const char *method, *digest; } digests[] = {
    { "linear", "c246013b3db3af51" },
    { "slerp", "ccecd8599e2e78f5" },
    { "nuslerp", "5445ce80d87499d3" },
    { "multislerp", "6634c6ff396e5853" },
    { "karcher", "556550b1374913e7" },
    { "task_arithmetic", "2ea66fe93661fe63" },
    { "ties", "743cfcf7351720e4" },
    { "dare_linear", "7bd3b2c5fc7e7d12" },
    { "dare_ties", "5cca813698434d65" },
    { "breadcrumbs", "5b0af5339d1886c5" },
    { "breadcrumbs_ties", "444cde0db308d012" },
    { "della", "8202e4f8c998fd08" },
    { "della_linear", "4400623ee61b06ba" },
    { "model_stock", "b7eff4d7911bbe0c" },
    { "sce", "740dd2c84c60b197" },
    { "nearswap", "e5e820dbd84d9a55" },
    { "passthrough", "f09f5664d85f0832" },
    { "add_difference", "b9eaca21d1151f20" },
};

static void add_number(sfti_merge_settings *all, sfti_arena *arena, sfti_merge_param param,
                       const double *value) {
    sfti_merge_setting one = { .param = param, .model = SFTI_MERGE_ALL, .values = value,
                               .count = 1 };
    assert_int_equal(sfti_merge_setting_add(all, arena, &one, NULL), SFT_OK);
}

static void is_the_same_everywhere(void **unused) {
    static const double half = 0.37, third = 0.31, one = 1;
    sfti_arena arena = { .alloc = sfti_allocator(NULL) };
    sfti_merge_settings settings = { .count = 0 };
    uint8_t *bytes[MODELS];
    sft_set *sets[MODELS];
    sfti_merge_model models[MODELS];
    const sfti_merge_method *method;
    size_t wrong = 0, count = 0;
    (void)unused;
    add_number(&settings, &arena, SFTI_MERGE_DENSITY, &half);
    add_number(&settings, &arena, SFTI_MERGE_SELECT_TOPK, &half);
    add_number(&settings, &arena, SFTI_MERGE_T, &third);
    add_number(&settings, &arena, SFTI_MERGE_SCALE, &third);
    add_number(&settings, &arena, SFTI_MERGE_FILTER_WISE, &one);
    for (uint64_t m = 0; m < MODELS; m++) sets[m] = make_model(m, &bytes[m]);
    for (size_t m = 0; m < MODELS; m++)
        models[m] = (sfti_merge_model){ .set = sets[m], .stored = sets[m] };
    for (; (method = sfti_merge_method_at(count)) != NULL; count++) {
        char found[17] = "", again[17];
        size_t most = method->most ? method->most : 3;
        bool base = method->base != SFTI_BASE_NONE;
        sfti_merge_plan plan = { .method = method, .models = models, .count = most + base,
                                 .base = base ? 0 : SIZE_MAX, .settings = &settings, .seed = 12,
                                 .dtype = SFT_DTYPE_COUNT, .threads = 1 };
        digest(&plan, found);
        for (plan.threads = 2; plan.threads < 5; plan.threads++) {
            digest(&plan, again);
            assert_string_equal(found, again);
        }
        bool same = count < sizeof digests / sizeof *digests
                 && strcmp(digests[count].method, method->name) == 0
                 && strcmp(digests[count].digest, found) == 0;
        if (!same) print_message("    { \"%s\", \"%s\" },\n", method->name, found);
        wrong += !same;
    }
    assert_int_equal(wrong, 0);
    assert_int_equal(count, sizeof digests / sizeof *digests);
    for (size_t m = 0; m < MODELS; m++) {
        sft_set_close(sets[m]);
        free(bytes[m]);
    }
    sfti_arena_free(&arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(computes_angles),     cmocka_unit_test(multiplies),
        cmocka_unit_test(spreads_over_layers), cmocka_unit_test(knows_layers),
        cmocka_unit_test(names_layers),        cmocka_unit_test(calls_models),
        cmocka_unit_test(writes_what_it_reads), cmocka_unit_test(refuses_broken_recipes),
        cmocka_unit_test(is_the_same_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
