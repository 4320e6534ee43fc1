/* Factors of another rank and other names, by the calls of safetensors_adapter.h. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "unit/adapter_case.h"
#include "unit/temp_model.h"

#include <math.h>
#include <stdio.h>

/* The product of a pair of factors of a file in memory, times alpha / rank. */
static void product_of(const sft_set *set, const char *module, double out[4]) {
    char name[128];
    float up[8], down[8], alpha = 0;
    size_t shard;
    const struct { const char *end; float *into; } all[] = {
        { ".lora_up.weight", up }, { ".lora_down.weight", down }, { ".alpha", &alpha },
    };
    uint64_t rank = 0;
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "%s%s", module, all[i].end);
        const sft_tensor *tensor = sft_set_find(set, sft_span_cstr(name), &shard);
        assert_non_null(tensor);
        if (i == 0) rank = tensor->shape[1];
        assert_int_equal(sft_read_bytes(sft_set_shard_at(set, shard), tensor->offset, all[i].into,
                                        (size_t)(tensor->end - tensor->begin), NULL), SFT_OK);
    }
    for (size_t i = 0; i < 4; i++) {
        out[i] = 0;
        for (size_t k = 0; k < rank; k++)
            out[i] += (double)up[i / 2 * rank + k] * (double)down[k * 2 + i % 2]
                    * (double)alpha / (double)rank;
    }
}

static void assert_product(const sft_buffer *file, const char *module, const double want[4]) {
    test_file f = { .bytes = (uint8_t *)file->data, .len = file->len };
    sft_set *set = adapter_set(&f, NULL);
    double found[4];
    assert_non_null(set);
    product_of(set, module, found);
    for (size_t i = 0; i < 4; i++) assert_true(fabs(found[i] - want[i]) < 1e-5);
    sft_set_close(set);
}

/* up 3 0 / 0 1, down the identity, alpha 2: a change of 3 0 / 0 1. */
static test_file diagonal(bool loha) {
    static const float values[9] = { 2, 1, 0, 0, 1, 3, 0, 0, 1 };
    static const float hada[8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    if (loha)
        return make_file("{" ADAPTER_F32("a.hada_w1_a", "[2,1]", 0, 8) ","
                         ADAPTER_F32("a.hada_w1_b", "[1,2]", 8, 16) ","
                         ADAPTER_F32("a.hada_w2_a", "[2,1]", 16, 24) ","
                         ADAPTER_F32("a.hada_w2_b", "[1,2]", 24, 32) "}", hada, sizeof hada);
    return make_file("{\"__metadata__\":{\"kept\":\"yes\",\"sshs_model_hash\":\"ab\"},"
                     ADAPTER_F32("a.alpha", "[]", 0, 4) ","
                     ADAPTER_F32("a.lora_down.weight", "[2,2]", 4, 20) ","
                     ADAPTER_F32("a.lora_up.weight", "[2,2]", 20, 36) "}", values, sizeof values);
}

static sft_adapter_factors *factors_of(sft_adapter_verb verb, const sft_set *const *sets,
                                       const double *strengths, size_t count,
                                       const sft_adapter_factors_options *how, sft_code *code) {
    sft_adapter_factors *factors;
    *code = sft_adapter_factors_new(verb, how, &factors, NULL);
    for (size_t k = 0; !*code && k < count; k++) {
        sft_adapter_use use = SFT_ADAPTER_USE_INIT;
        use.name = "named";
        if (strengths) use.strength = strengths[k];
        *code = sft_adapter_factors_add(factors, sets[k], &use, NULL);
    }
    return factors;
}

static void resizes(void **unused) {
    (void)unused;
    static const double want[4] = { 3, 0, 0, 0 };
    test_file f = diagonal(false);
    const sft_set *set = adapter_set(&f, NULL);
    temp_folder t;
    temp_begin(&t);
    sft_adapter_factors_options how = SFT_ADAPTER_FACTORS_OPTIONS_INIT;
    sft_code code;
    size_t count = 1;
    how.rank = 1;
    for (int in_file = 0; in_file < 2; in_file++) {
        sft_buffer out = { 0 };
        how.scratch = in_file ? t.path : NULL;
        sft_adapter_factors *factors = factors_of(SFT_ADAPTER_RESIZE, &set, NULL, 1, &how, &code);
        assert_int_equal(code, SFT_OK);
        assert_int_equal(sft_adapter_factors_count(factors), 0);
        assert_null(sft_adapter_factors_parts(factors, &count));
        assert_int_equal(count, 0);
        assert_int_equal(sft_adapter_factors_plan(factors, NULL), SFT_OK);
        assert_int_equal(sft_adapter_factors_add(factors, set, NULL, NULL), SFT_BAD_ARGUMENT);
        assert_true(sft_adapter_factors_at(factors, 0)->has_alpha);
        assert_int_equal(sft_adapter_factors_compute(factors, NULL, NULL), SFT_OK);
        const sft_adapter_factor *told = sft_adapter_factors_at(factors, 0);
        assert_null(sft_adapter_factors_at(factors, 1));
        assert_int_equal(told->rank_before, 2);
        assert_int_equal(told->rank, 1);
        assert_true(told->alpha == 1 && fabs(told->norm - sqrt(10)) < 1e-6);
        assert_true(fabs(told->lost - 1) < 1e-6 && !told->left_out);
        assert_non_null(sft_adapter_factors_parts(factors, &count));
        assert_int_equal(count, 3);
        assert_non_null(sft_adapter_factors_pairs(factors, &count));
        assert_int_equal(count, 2); /* what was kept, and the recipe */
        for (int again = 0; again < 2; again++) {
            sft_buffer_free(&out);
            assert_int_equal(sft_adapter_factors_save(factors, sft_sink_memory(&out), NULL, NULL),
                             SFT_OK);
            assert_product(&out, "a", want);
        }
        sft_adapter_factors_free(factors);
        sft_buffer_free(&out);
    }
    how.measure = true;
    sft_buffer none = { 0 };
    sft_adapter_factors *factors = factors_of(SFT_ADAPTER_RESIZE, &set, NULL, 1, &how, &code);
    assert_int_equal(sft_adapter_factors_save(factors, sft_sink_memory(&none), NULL, NULL),
                     SFT_BAD_ARGUMENT);
    assert_true(fabs(sft_adapter_factors_at(factors, 0)->lost - 1) < 1e-6);
    sft_adapter_factors_free(factors);
    sft_adapter_factors_free(NULL);
    temp_end(&t);
    sft_set_close((sft_set *)set);
    free_file(&f);
}

static void stacks(void **unused) {
    (void)unused;
    static const double want[4] = { 6 - 5, -10, -10, 2 - 20 };
    static const double strengths[2] = { 2, -1 };
    test_file f = diagonal(false), g = adapter_file(false);
    const sft_set *sets[2] = { adapter_set(&f, NULL), adapter_set(&g, NULL) };
    sft_buffer out = { 0 };
    sft_code code;
    sft_adapter_factors *factors = factors_of(SFT_ADAPTER_STACK, sets, strengths, 2, NULL, &code);
    assert_int_equal(code, SFT_OK);
    assert_int_equal(sft_adapter_factors_save(factors, sft_sink_memory(&out), NULL, NULL), SFT_OK);
    assert_int_equal(sft_adapter_factors_at(factors, 0)->rank, 3);
    assert_true(sft_adapter_factors_at(factors, 0)->norm < 0);
    assert_product(&out, "a", want);
    sft_adapter_factors_free(factors);
    sft_buffer_free(&out);
    /* more modules, of which none is common: their names may be two for the same layers */
    free_file(&g);
    sft_set_close((sft_set *)sets[1]);
    g = diagonal(true);
    sets[1] = adapter_set(&g, NULL);
    factors = factors_of(SFT_ADAPTER_STACK, sets, strengths, 2, NULL, &code);
    assert_int_equal(sft_adapter_factors_plan(factors, NULL), SFT_CAST_DTYPE);
    assert_int_equal(sft_adapter_factors_blames(factors), 1);
    sft_adapter_factors_free(factors);
    sft_set_close((sft_set *)sets[0]);
    sft_set_close((sft_set *)sets[1]);
    free_file(&f);
    free_file(&g);
}

static void simplifies(void **unused) {
    (void)unused;
    static const double want[4] = { 1 * 3 * 5 * 7, 1 * 4 * 5 * 8, 2 * 3 * 6 * 7, 2 * 4 * 6 * 8 };
    test_file f = diagonal(true), g = diagonal(false);
    const sft_set *set = adapter_set(&f, NULL), *plain = adapter_set(&g, NULL);
    sft_adapter_factors_options how = SFT_ADAPTER_FACTORS_OPTIONS_INIT;
    sft_buffer out = { 0 };
    sft_code code;
    how.rule = SFT_ADAPTER_EXACT;
    sft_adapter_factors *factors = factors_of(SFT_ADAPTER_SIMPLIFY, &set, NULL, 1, &how, &code);
    assert_int_equal(sft_adapter_factors_save(factors, sft_sink_memory(&out), NULL, NULL), SFT_OK);
    test_file again = { .bytes = (uint8_t *)out.data, .len = out.len };
    sft_set *made = adapter_set(&again, NULL);
    double found[4];
    product_of(made, "a", found);
    for (size_t i = 0; i < 4; i++) assert_true(fabs(found[i] / want[i] - 1) < 1e-5);
    sft_set_close(made);
    sft_adapter_factors_free(factors);
    sft_buffer_free(&out);
    factors = factors_of(SFT_ADAPTER_SIMPLIFY, &plain, NULL, 1, &how, &code);
    assert_int_equal(sft_adapter_factors_compute(factors, NULL, NULL), SFT_TENSOR_NOT_FOUND);
    assert_int_equal(sft_adapter_factors_blames(factors), 0);
    sft_adapter_factors_free(factors);
    sft_set_close((sft_set *)set);
    sft_set_close((sft_set *)plain);
    free_file(&f);
    free_file(&g);
}

/* What an adapter added to a model, taken out of the sum. */
static void extracts(void **unused) {
    (void)unused;
    static const double want[4] = { 5, 10, 10, 20 };
    test_file f = adapter_model(), g = adapter_file(false);
    sft_set *base = adapter_set(&f, NULL), *adapter = adapter_set(&g, NULL);
    sft_adapter_merge *merge;
    sft_buffer sum = { 0 }, out = { 0 };
    assert_int_equal(sft_adapter_merge_new(base, NULL, &merge, NULL), SFT_OK);
    assert_int_equal(sft_adapter_merge_add(merge, adapter, NULL, NULL), SFT_OK);
    assert_int_equal(sft_adapter_merge_save(merge, sft_sink_memory(&sum), NULL, NULL), SFT_OK);
    sft_adapter_merge_free(merge);
    test_file t = { .bytes = (uint8_t *)sum.data, .len = sum.len };
    const sft_set *sets[2] = { adapter_set(&t, NULL), base };
    sft_adapter_factors_options how = SFT_ADAPTER_FACTORS_OPTIONS_INIT;
    sft_code code;
    how.rank = 1;
    sft_adapter_factors *factors = factors_of(SFT_ADAPTER_EXTRACT, sets, NULL, 2, &how, &code);
    assert_int_equal(sft_adapter_factors_save(factors, sft_sink_memory(&out), NULL, NULL), SFT_OK);
    assert_int_equal(sft_adapter_factors_note(factors, SFT_ADAPTER_LEFT_OTHERS), 0);
    assert_int_equal(sft_adapter_factors_note(factors, (sft_adapter_note)99), 0);
    assert_int_equal(sft_adapter_factors_unmatched(factors), 0);
    assert_int_equal(sft_adapter_factors_unmatched_at(factors, 0).len, 0);
    assert_product(&out, "lora_unet_a", want);
    sft_adapter_factors_free(factors);
    sft_set_close((sft_set *)sets[0]);
    sets[0] = base, sets[1] = adapter; /* a base that lacks the layer */
    factors = factors_of(SFT_ADAPTER_EXTRACT, sets, NULL, 2, &how, &code);
    assert_int_equal(sft_adapter_factors_plan(factors, NULL), SFT_OK);
    assert_int_equal(sft_adapter_factors_unmatched(factors), 1);
    assert_memory_equal(sft_adapter_factors_unmatched_at(factors, 0).data, "a.weight", 8);
    assert_int_equal(sft_adapter_factors_compute(factors, NULL, NULL), SFT_TENSOR_NOT_FOUND);
    assert_int_equal(sft_adapter_factors_add(factors, base, NULL, NULL), SFT_BAD_ARGUMENT);
    sft_adapter_factors_free(factors);
    sft_buffer_free(&sum);
    sft_buffer_free(&out);
    sft_set_close(base);
    sft_set_close(adapter);
    free_file(&f);
    free_file(&g);
}

static void refuses_options(void **unused) {
    (void)unused;
    const sft_adapter_factors_options init = SFT_ADAPTER_FACTORS_OPTIONS_INIT;
    sft_adapter_factors *factors;
    for (int i = 0; i < 11; i++) {
        sft_adapter_factors_options how = init;
        sft_adapter_verb verb = SFT_ADAPTER_RESIZE;
        if (i > 0) how.rank = 1;
        if (i == 1) how.rank = 65537;
        if (i == 2) how.conv_rank = 65537;
        if (i == 3) how.rule = 6;
        if (i == 4) how.rule = SFT_ADAPTER_FRO, how.value = 1.5;
        if (i == 5) how.rule = SFT_ADAPTER_ERROR, how.value = NAN;
        if (i == 6) how.rule = SFT_ADAPTER_EXACT;
        if (i == 7) how.dtype = SFT_I32;
        if (i == 8) how.clamp_quantile = 1.5;
        if (i == 9) how.min_diff = -1;
        if (i == 10) verb = (sft_adapter_verb)4;
        assert_int_equal(sft_adapter_factors_new(verb, &how, &factors, NULL), SFT_BAD_ARGUMENT);
        assert_null(factors);
    }
    assert_int_equal(sft_adapter_factors_new(SFT_ADAPTER_STACK, NULL, &factors, NULL), SFT_OK);
    assert_int_equal(sft_adapter_factors_plan(factors, NULL), SFT_BAD_ARGUMENT);
    sft_adapter_factors_free(factors);
}

static void converts(void **unused) {
    (void)unused;
    test_file f = adapter_of_flux();
    sft_set *set = adapter_set(&f, NULL);
    sft_adapter_conversion_options how = SFT_ADAPTER_CONVERSION_OPTIONS_INIT;
    sft_adapter_conversion *conversion;
    sft_buffer out = { 0 }, back = { 0 };
    size_t count;
    assert_int_equal(sft_adapter_conversion_new(set, &how, &conversion, NULL),
                     SFT_TENSOR_NOT_FOUND);
    assert_null(conversion);
    how.architecture = "no such model";
    assert_int_equal(sft_adapter_conversion_new(set, &how, &conversion, NULL), SFT_BAD_ARGUMENT);
    how.architecture = "flux.1";
    for (uint32_t to = 0; to < 6; to += 5) {
        how.to = to;
        assert_int_equal(sft_adapter_conversion_new(set, &how, &conversion, NULL),
                         SFT_BAD_ARGUMENT);
    }
    how.to = SFT_ADAPTER_PEFT;
    assert_int_equal(sft_adapter_conversion_new(set, &how, &conversion, NULL), SFT_OK);
    assert_true(sft_adapter_conversion_config(conversion).len > 10);
    sft_adapter_conversion_free(conversion);
    how.to = SFT_ADAPTER_DIFFUSERS;
    assert_int_equal(sft_adapter_conversion_new(set, &how, &conversion, NULL), SFT_OK);
    const sft_adapter_conversion_facts *told = sft_adapter_conversion_told(conversion);
    assert_string_equal(told->architecture, "flux.1");
    assert_true(told->modules == 3 && told->split == 1 && told->joined == 0 && told->folded == 0);
    assert_int_equal(sft_adapter_conversion_unmatched(conversion), 0);
    assert_int_equal(sft_adapter_conversion_unmatched_at(conversion, 0).len, 0);
    assert_int_equal(sft_adapter_conversion_config(conversion).len, 0);
    assert_non_null(sft_adapter_conversion_parts(conversion, &count));
    assert_int_equal(count, 6);
    assert_non_null(sft_adapter_conversion_pairs(conversion, &count));
    assert_int_equal(count, 4); /* kept, format, alpha's form, the configuration */
    assert_int_equal(sft_adapter_conversion_save(conversion, sft_sink_memory(&out), NULL, NULL),
                     SFT_OK);
    sft_adapter_conversion_free(conversion);
    sft_adapter_conversion_free(NULL);
    test_file g = { .bytes = (uint8_t *)out.data, .len = out.len };
    sft_set *other = adapter_set(&g, NULL);
    how.to = SFT_ADAPTER_KOHYA;
    assert_int_equal(sft_adapter_conversion_new(other, &how, &conversion, NULL), SFT_OK);
    assert_int_equal(sft_adapter_conversion_save(conversion, sft_sink_memory(&back), NULL, NULL),
                     SFT_OK);
    sft_adapter_conversion_free(conversion);
    test_file h = { .bytes = (uint8_t *)back.data, .len = back.len };
    sft_set *again = adapter_set(&h, NULL);
    assert_int_equal(sft_set_tensor_count(again), 3);
    for (size_t i = 0; i < 3; i++) {
        const sft_tensor *want = sft_set_tensor_at(set, i);
        const sft_tensor *found = sft_set_find(again, want->name, &count);
        assert_non_null(found);
        assert_memory_equal((char *)back.data + found->offset, (char *)f.bytes + want->offset,
                            want->end - want->begin);
    }
    sft_set_close(again);
    sft_set_close(other);
    sft_set_close(set);
    sft_buffer_free(&out);
    sft_buffer_free(&back);
    free_file(&f);
}

static void ends_without_memory(void **unused) {
    (void)unused;
    test_file f = diagonal(false), g = adapter_of_flux();
    const sft_set *set = adapter_set(&f, NULL), *flux = adapter_set(&g, NULL);
    for (int what = 0; what < 2; what++) {
        sft_code code = SFT_OUT_OF_MEMORY;
        size_t steps = 0;
        for (; code == SFT_OUT_OF_MEMORY; steps++) {
            short_memory memory = { .left = steps };
            sft_allocator alloc = { short_resize, &memory };
            sft_buffer out = { .alloc = alloc };
            sft_adapter_factors_options how = SFT_ADAPTER_FACTORS_OPTIONS_INIT;
            sft_adapter_conversion_options other = SFT_ADAPTER_CONVERSION_OPTIONS_INIT;
            sft_adapter_factors *factors = NULL;
            sft_adapter_conversion *conversion = NULL;
            how.rank = 1;
            how.alloc = other.alloc = &alloc;
            other.architecture = "flux.1";
            if (what == 0) {
                factors = factors_of(SFT_ADAPTER_RESIZE, &set, NULL, 1, &how, &code);
                if (!code)
                    code = sft_adapter_factors_save(factors, sft_sink_memory(&out), NULL, NULL);
            } else {
                code = sft_adapter_conversion_new(flux, &other, &conversion, NULL);
                if (!code)
                    code = sft_adapter_conversion_save(conversion, sft_sink_memory(&out), NULL,
                                                       NULL);
            }
            sft_adapter_factors_free(factors);
            sft_adapter_conversion_free(conversion);
            sft_buffer_free(&out);
            assert_int_equal(memory.taken, 0);
        }
        assert_int_equal(code, SFT_OK);
        assert_true(steps > 10);
    }
    sft_set_close((sft_set *)set);
    sft_set_close((sft_set *)flux);
    free_file(&f);
    free_file(&g);
}

/* What failed for want of memory is done in full once there is some. */
static void go_on(sft_adapter_verb verb, const sft_set *const *sets, size_t count,
                  sft_adapter_factors_options how) {
    sft_buffer want = { 0 };
    sft_job job = SFT_JOB_INIT;
    sft_code code, tried = SFT_OUT_OF_MEMORY;
    sft_adapter_factors *factors = factors_of(verb, sets, NULL, count, &how, &code);
    assert_int_equal(code, SFT_OK);
    assert_int_equal(sft_adapter_factors_save(factors, sft_sink_memory(&want), NULL, NULL), SFT_OK);
    sft_adapter_factors_free(factors);
    job.threads = 1;
    for (size_t steps = 0; tried == SFT_OUT_OF_MEMORY; steps++) {
        short_memory memory = { .left = SIZE_MAX };
        sft_allocator alloc = { short_resize, &memory };
        sft_buffer out = { 0 };
        how.alloc = &alloc;
        factors = factors_of(verb, sets, NULL, count, &how, &code);
        assert_int_equal(code, SFT_OK);
        memory.left = steps;
        tried = sft_adapter_factors_compute(factors, &job, NULL);
        memory.left = SIZE_MAX;
        assert_int_equal(sft_adapter_factors_save(factors, sft_sink_memory(&out), &job, NULL),
                         SFT_OK);
        assert_int_equal(out.len, want.len);
        assert_memory_equal(out.data, want.data, want.len);
        sft_adapter_factors_free(factors);
        sft_buffer_free(&out);
        assert_int_equal(memory.taken, 0);
    }
    assert_int_equal(tried, SFT_OK);
    sft_buffer_free(&want);
}

static void goes_on_with_memory(void **unused) {
    (void)unused;
    test_file files[4] = { adapter_of_flux(), diagonal(true), adapter_model(), adapter_model() };
    sft_set *sets[4];
    files[2].bytes[files[2].len - 24] ^= 64; /* the lowest byte of a.weight */
    for (size_t i = 0; i < 4; i++) sets[i] = adapter_set(&files[i], NULL);
    sft_adapter_factors_options how = SFT_ADAPTER_FACTORS_OPTIONS_INIT;
    how.rank = 1;
    go_on(SFT_ADAPTER_RESIZE, (const sft_set *[]){ sets[0] }, 1, how);
    go_on(SFT_ADAPTER_SIMPLIFY, (const sft_set *[]){ sets[1] }, 1, how);
    go_on(SFT_ADAPTER_SIMPLIFY, (const sft_set *[]){ sets[1], sets[3] }, 2, how);
    go_on(SFT_ADAPTER_EXTRACT, (const sft_set *[]){ sets[2], sets[3] }, 2, how);
    how.rank = 0;
    how.names = SFT_ADAPTER_DIFFUSERS;
    how.architecture = "flux.1";
    go_on(SFT_ADAPTER_STACK, (const sft_set *[]){ sets[0], sets[0] }, 2, how);
    for (size_t i = 0; i < 4; i++) {
        sft_set_close(sets[i]);
        free_file(&files[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(resizes),
        cmocka_unit_test(stacks),
        cmocka_unit_test(simplifies),
        cmocka_unit_test(extracts),
        cmocka_unit_test(refuses_options),
        cmocka_unit_test(converts),
        cmocka_unit_test(ends_without_memory),
        cmocka_unit_test(goes_on_with_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
