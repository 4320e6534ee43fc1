/* Adapters by the calls of safetensors_adapter.h. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "adapter/adapter.h"
#include "unit/adapter_case.h"
#include "unit/temp_model.h"

#include <math.h>
#include <stdio.h>

static void assert_span(sft_span span, const char *text) {
    assert_int_equal(span.len, strlen(text));
    assert_memory_equal(span.data, text, span.len);
}

static void tells_modules(void **unused) {
    (void)unused;
    test_file f = adapter_file(true);
    sft_set *set = adapter_set(&f, NULL);
    sft_adapter *adapter;
    double norm = 0;
    assert_int_equal(sft_adapter_open(set, NULL, &adapter, NULL), SFT_OK);
    assert_int_equal(sft_adapter_module_count(adapter), 2);
    const sft_adapter_module *m = sft_adapter_module_at(adapter, 0);
    assert_span(m->name, "a");
    assert_string_equal(m->method, "lora");
    assert_true(m->has_alpha && !m->dora);
    assert_true(m->alpha == 0.5 && m->scale == 0.5);
    assert_true(m->rank == 1 && m->out == 2 && m->in == 2);
    assert_false(sft_adapter_module_at(adapter, 1)->has_alpha);
    assert_null(sft_adapter_module_at(adapter, 2));
    assert_int_equal(sft_adapter_other_count(adapter), 0);
    assert_int_equal(sft_adapter_other_at(adapter, 0).len, 0);
    assert_int_equal(sft_adapter_module_norm(adapter, 0, &norm, NULL), SFT_OK);
    assert_true(fabs(norm - 0.5 * sqrt(5) * sqrt(500)) < 1e-5);
    assert_int_equal(sft_adapter_module_norm(adapter, 2, &norm, NULL), SFT_BAD_ARGUMENT);
    sft_adapter_close(adapter);
    sft_adapter_close(NULL);
    sft_set_close(set);
    free_file(&f);
    f = adapter_model();
    set = adapter_set(&f, NULL);
    assert_int_equal(sft_adapter_open(set, NULL, &adapter, NULL), SFT_TENSOR_NOT_FOUND);
    assert_null(adapter);
    sft_set_close(set);
    free_file(&f);
}

static void takes_a_configuration(void **unused) {
    (void)unused;
    static const float values[4] = { 1, 2, 3, 4 };
    test_file f = make_file("{" ADAPTER_F32("base_model.model.a.lora_A.weight", "[1,2]", 0, 8) ","
                            ADAPTER_F32("base_model.model.a.lora_B.weight", "[2,1]", 8, 16) "}",
                            values, sizeof values);
    sft_set *set = adapter_set(&f, NULL);
    sft_adapter_options how = SFT_ADAPTER_OPTIONS_INIT;
    sft_adapter *adapter;
    how.config = sft_span_cstr("{\"lora_alpha\":3}");
    assert_int_equal(sft_adapter_open(set, &how, &adapter, NULL), SFT_OK);
    assert_true(sft_adapter_module_at(adapter, 0)->scale == 3);
    sft_adapter_close(adapter);
    sft_set_close(set);
    free_file(&f);
}

static sft_adapter_merge *merge_of(const sft_set *model, const sft_set *adapter, double strength,
                                   bool ignores, const sft_allocator *alloc, sft_code *code) {
    sft_adapter_merge_options how = SFT_ADAPTER_MERGE_OPTIONS_INIT;
    sft_adapter_use use = SFT_ADAPTER_USE_INIT;
    sft_adapter_merge *merge;
    how.ignore_unmatched = ignores;
    how.alloc = alloc;
    use.strength = strength;
    use.name = "named";
    *code = sft_adapter_merge_new(model, &how, &merge, NULL);
    if (!*code) *code = sft_adapter_merge_add(merge, adapter, &use, NULL);
    return merge;
}

static void merges_sums(void **unused) {
    (void)unused;
    static const float want[6] = { 11, 22, 23, 44, 5, 6 };
    test_file f = adapter_model(), g = adapter_file(false);
    sft_set *model = adapter_set(&f, NULL), *adapter = adapter_set(&g, NULL);
    sft_buffer out = { 0 };
    uint64_t changed = 1, lost = 1;
    sft_code code;
    sft_adapter_merge *merge = merge_of(model, adapter, 2, false, NULL, &code);
    assert_int_equal(code, SFT_OK);
    assert_int_equal(sft_adapter_merge_changed(merge), 0);
    assert_int_equal(sft_adapter_merge_modules(merge, 0), 1);
    assert_int_equal(sft_adapter_merge_matched(merge, 0), 1);
    assert_int_equal(sft_adapter_merge_unmatched(merge, 0), 0);
    assert_int_equal(sft_adapter_merge_modules(merge, 1), 0);
    assert_null(sft_adapter_merge_part(merge, 0).source);
    assert_int_equal(sft_adapter_merge_plan(merge, NULL), SFT_OK);
    assert_int_equal(sft_adapter_merge_changed(merge), 1);
    assert_non_null(sft_adapter_merge_part(merge, 0).source);
    assert_null(sft_adapter_merge_part(merge, 2).source);
    assert_int_equal(sft_adapter_merge_add(merge, adapter, NULL, NULL), SFT_BAD_ARGUMENT);
    for (int again = 0; again < 2; again++) {
        sft_buffer_free(&out);
        assert_int_equal(sft_adapter_merge_save(merge, sft_sink_memory(&out), NULL, NULL), SFT_OK);
        assert_memory_equal(out.data + out.len - sizeof want, want, sizeof want);
    }
    out.data[out.len - sizeof want] = 0;
    assert_non_null(strstr((char *)out.data + 8, "\\\"name\\\":\\\"named\\\""));
    assert_non_null(strstr((char *)out.data + 8, "\"kept\":\"yes\""));
    sft_adapter_merge_lost(merge, &changed, &lost);
    assert_true(changed == 0 && lost == 0);
    assert_true(sft_adapter_merge_blames(merge) == SIZE_MAX);
    sft_adapter_merge_free(merge);
    sft_adapter_merge_free(NULL);
    sft_buffer_free(&out);
    sft_set_close(model);
    sft_set_close(adapter);
    free_file(&f);
    free_file(&g);
}

static void refuses_what_is_unmatched(void **unused) {
    (void)unused;
    test_file f = adapter_model(), g = adapter_file(true);
    sft_set *model = adapter_set(&f, NULL), *adapter = adapter_set(&g, NULL);
    sft_buffer out = { 0 };
    sft_code code;
    sft_adapter_merge *merge = merge_of(model, adapter, 1, false, NULL, &code);
    assert_int_equal(sft_adapter_merge_unmatched(merge, 0), 1);
    assert_span(sft_adapter_merge_unmatched_at(merge, 0, 0), "c");
    assert_int_equal(sft_adapter_merge_unmatched_at(merge, 0, 1).len, 0);
    assert_int_equal(sft_adapter_merge_save(merge, sft_sink_memory(&out), NULL, NULL),
                     SFT_TENSOR_NOT_FOUND);
    assert_int_equal(out.len, 0);
    assert_int_equal(sft_adapter_merge_blames(merge), 0);
    sft_adapter_merge_free(merge);
    merge = merge_of(model, adapter, 1, true, NULL, &code);
    assert_int_equal(sft_adapter_merge_save(merge, sft_sink_memory(&out), NULL, NULL), SFT_OK);
    sft_adapter_merge_free(merge);
    merge = merge_of(model, model, 1, true, NULL, &code);
    assert_int_equal(code, SFT_TENSOR_NOT_FOUND);
    assert_int_equal(sft_adapter_merge_blames(merge), 0);
    assert_int_equal(sft_adapter_merge_plan(merge, NULL), SFT_BAD_ARGUMENT);
    sft_adapter_merge_free(merge);
    merge = merge_of(model, adapter, NAN, true, NULL, &code);
    assert_int_equal(code, SFT_BAD_ARGUMENT);
    sft_adapter_use use = SFT_ADAPTER_USE_INIT;
    use.blocks = "nothing*=1";
    assert_int_equal(sft_adapter_merge_add(merge, adapter, &use, NULL), SFT_BAD_ARGUMENT);
    sft_adapter_merge_free(merge);
    sft_adapter_merge_options how = SFT_ADAPTER_MERGE_OPTIONS_INIT;
    how.dora = 2;
    assert_int_equal(sft_adapter_merge_new(model, &how, &merge, NULL), SFT_BAD_ARGUMENT);
    sft_buffer_free(&out);
    sft_set_close(model);
    sft_set_close(adapter);
    free_file(&f);
    free_file(&g);
}

static void writes_a_folder(void **unused) {
    (void)unused;
    test_file f = adapter_model(), g = adapter_file(false);
    sft_set *model = adapter_set(&f, NULL), *adapter = adapter_set(&g, NULL), *again;
    temp_folder t;
    char folder[128], file[160];
    sft_code code;
    temp_begin(&t);
    snprintf(folder, sizeof folder, "%s/out", t.path);
    snprintf(file, sizeof file, "%s/model.safetensors", folder);
    sft_adapter_merge *merge = merge_of(model, adapter, 1, false, NULL, &code);
    assert_int_equal(sft_adapter_merge_save_set(merge, folder, NULL, NULL, NULL), SFT_OK);
    assert_int_equal(sft_set_open(file, NULL, &again, NULL), SFT_OK);
    assert_int_equal(sft_set_tensor_count(again), 2);
    sft_set_close(again);
    sft_adapter_merge_free(merge);
    assert_int_equal(remove(file), 0);
    assert_int_equal(remove(folder), 0);
    temp_end(&t);
    sft_set_close(model);
    sft_set_close(adapter);
    free_file(&f);
    free_file(&g);
}

/* Every variant of the code has the sums of a plain loop, bit for bit. */
static void multiplies_in_order(void **unused) {
    (void)unused;
    static const uint64_t sizes[][3] = { { 1, 1, 1 }, { 3, 2, 5 }, { 17, 32, 70 }, { 40, 7, 300 },
                                         { 24, 96, 64 }, { 33, 97, 129 }, { 16, 3000, 33 } };
    for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
        uint64_t rows = sizes[n][0], inner = sizes[n][1], cols = sizes[n][2], seed = n + 1;
        uint64_t stride = inner + n % 3;
        float *a = malloc(rows * stride * sizeof *a), *b = malloc(inner * cols * sizeof *b);
        float *into = malloc(rows * cols * sizeof *into);
        float *want = malloc(rows * cols * sizeof *want);
        uint32_t most = 0, word;
        float *arrays[] = { a, b, into };
        uint64_t counts[] = { rows * stride, inner * cols, rows * cols };
        for (int k = 0; k < 3; k++)
            for (uint64_t i = 0; i < counts[k]; i++) {
                seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
                arrays[k][i] = (float)(int32_t)(seed >> 32) / 1e9f;
            }
        for (uint64_t i = 0; i < rows * cols; i++) {
            float sum = 0;
            for (uint64_t k = 0; k < inner; k++) {
                float product = a[i / cols * stride + k] * b[k * cols + i % cols];
                sum += product;
            }
            float product = 0.3f * sum;
            want[i] = into[i] + product;
        }
        sfti_matrix_add_product(a, stride, b, rows, inner, cols, 0.3f, into);
        assert_memory_equal(into, want, rows * cols * sizeof *want);
        for (uint64_t i = 0; i < rows * cols; i++) {
            memcpy(&word, &want[i], sizeof word);
            if ((word & 0x7fffffff) > most) most = word & 0x7fffffff;
        }
        assert_int_equal(sfti_floats_greatest(into, rows * cols), most);
        free(a);
        free(b);
        free(into);
        free(want);
    }
}

static void ends_without_memory(void **unused) {
    (void)unused;
    test_file f = adapter_model(), g = adapter_file(false);
    sft_set *model = adapter_set(&f, NULL), *adapter = adapter_set(&g, NULL);
    sft_code code = SFT_OUT_OF_MEMORY;
    size_t steps = 0;
    for (; code == SFT_OUT_OF_MEMORY; steps++) {
        short_memory memory = { .left = steps };
        sft_allocator alloc = { short_resize, &memory };
        sft_buffer out = { .alloc = alloc };
        sft_adapter *told = NULL;
        sft_adapter_options how = SFT_ADAPTER_OPTIONS_INIT;
        how.alloc = &alloc;
        code = sft_adapter_open(adapter, &how, &told, NULL);
        sft_adapter_close(told);
        sft_adapter_merge *merge = NULL;
        if (!code) merge = merge_of(model, adapter, 1, false, &alloc, &code);
        if (!code) code = sft_adapter_merge_save(merge, sft_sink_memory(&out), NULL, NULL);
        sft_adapter_merge_free(merge);
        sft_buffer_free(&out);
        assert_int_equal(memory.taken, 0);
    }
    assert_int_equal(code, SFT_OK);
    assert_true(steps > 10);
    sft_set_close(model);
    sft_set_close(adapter);
    free_file(&f);
    free_file(&g);
}

/* A layer of one column, of more rows than are computed at once: its norm is over all of them. */
static void decomposes_one_column(void **unused) {
    (void)unused;
    enum { ROWS = 1 << 20 };
    float *values = calloc(ROWS, sizeof *values), *zeros = calloc(ROWS + 2, sizeof *zeros);
    sft_buffer out = { 0 };
    sft_adapter_merge *made;
    assert_non_null(values);
    assert_non_null(zeros);
    for (size_t i = 0; i < ROWS; i++) values[i] = 1;
    zeros[ROWS + 1] = 2048; /* twice the norm of the column */
    test_file f = make_file("{" ADAPTER_F32("c.weight", "[1048576]", 0, 4194304) "}", values,
                            ROWS * sizeof *values);
    test_file g = make_file("{" ADAPTER_F32("c.lora_up.weight", "[1048576,1]", 0, 4194304) ","
                            ADAPTER_F32("c.lora_down.weight", "[1,1]", 4194304, 4194308) ","
                            ADAPTER_F32("c.dora_scale", "[1,1]", 4194308, 4194312) "}", zeros,
                            (ROWS + 2) * sizeof *zeros);
    sft_set *model = adapter_set(&f, NULL), *adapter = adapter_set(&g, NULL);
    assert_int_equal(sft_adapter_merge_new(model, NULL, &made, NULL), SFT_OK);
    assert_int_equal(sft_adapter_merge_add(made, adapter, NULL, NULL), SFT_OK);
    assert_int_equal(sft_adapter_merge_save(made, sft_sink_memory(&out), NULL, NULL), SFT_OK);
    memcpy(values, out.data + out.len - ROWS * sizeof *values, ROWS * sizeof *values);
    for (size_t i = 0; i < ROWS; i++) assert_true(values[i] > 1.9999f && values[i] < 2.0001f);
    sft_adapter_merge_free(made);
    sft_buffer_free(&out);
    sft_set_close(model);
    sft_set_close(adapter);
    free_file(&f);
    free_file(&g);
    free(values);
    free(zeros);
}

static void refuses_nothing_given(void **unused) {
    (void)unused;
    test_file f = adapter_file(true);
    sft_set *set = adapter_set(&f, NULL);
    sft_adapter_merge *merge;
    sft_adapter_conversion *conversion;
    sft_adapter *adapter;
    sft_error err;
    sft_buffer out = { 0 };
    assert_int_equal(sft_adapter_merge_new(NULL, NULL, &merge, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "a model and a place"));
    assert_null(merge);
    assert_int_equal(sft_adapter_merge_new(set, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_adapter_merge_add(NULL, set, NULL, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "a merge and an adapter"));
    assert_int_equal(sft_adapter_merge_plan(NULL, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_adapter_merge_save(NULL, sft_sink_memory(&out), NULL, &err),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(sft_adapter_merge_new(set, NULL, &merge, NULL), SFT_OK);
    assert_int_equal(sft_adapter_merge_add(merge, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_adapter_merge_plan(merge, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "expected adapters, found none"));
    assert_int_equal(sft_adapter_merge_matched(merge, 0), 0);
    assert_int_equal(sft_adapter_merge_unmatched(merge, 0), 0);
    sft_adapter_merge_free(merge);
    assert_int_equal(sft_adapter_conversion_new(NULL, NULL, &conversion, &err), SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "an adapter and a place"));
    assert_null(conversion);
    assert_int_equal(sft_adapter_conversion_new(set, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_adapter_conversion_save(NULL, sft_sink_memory(&out), NULL, &err),
                     SFT_BAD_ARGUMENT);
    assert_non_null(strstr(err.message, "expected a conversion"));
    assert_int_equal(sft_adapter_open(NULL, NULL, &adapter, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(out.len, 0);
    sft_set_close(set);
    free_file(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tells_modules),
        cmocka_unit_test(takes_a_configuration),
        cmocka_unit_test(merges_sums),
        cmocka_unit_test(refuses_what_is_unmatched),
        cmocka_unit_test(writes_a_folder),
        cmocka_unit_test(multiplies_in_order),
        cmocka_unit_test(ends_without_memory),
        cmocka_unit_test(decomposes_one_column),
        cmocka_unit_test(refuses_nothing_given),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
