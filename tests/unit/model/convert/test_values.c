/* Values of quantised tensors as a set: names, slices, what cannot be computed, threads, memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "safetensors_convert.h"
#include "safetensors_stats.h"
#include "unit/make_file.h"

#include <stdio.h>

#define TENSOR(name, dtype, shape, begin, end) \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":[" #begin "," #end \
    "]}"

/* a: 6 codes by a factor of 0.5. b: two codes of GPTQ, which are in no matrix. c: its factors have
 * another shape than is declared. d: plain. */
#define MARKER "{\"format\":\"float8_e4m3fn\"}"
static const char values_header[] =
    "{" TENSOR("a.weight", "F8_E4M3", "[2,3]", 0, 6) "," TENSOR("d", "I8", "[2]", 6, 8) ","
    TENSOR("a.weight_scale", "F32", "[]", 8, 12) "," TENSOR("b.codes", "I16", "[1]", 12, 14) ","
    TENSOR("b.codebooks", "I8", "[2]", 14, 16) ","
    TENSOR("c.weight", "F8_E4M3", "[2,2]", 16, 20) ","
    TENSOR("c.weight_scale", "F32", "[3]", 20, 32) ","
    TENSOR("c.comfy_quant", "U8", "[26]", 32, 58) ","
    "\"__metadata__\":{\"kept\":\"yes\"}}";
static const uint8_t values_data[58] = {
    0x38, 0x40, 0xb8, 0x3c, 0, 0x7e, 5, 250, 0, 0, 0, 0x3f, 1, 0, 7, 8, 0x38, 0x38, 0x38, 0x38,
    0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f, 0, 0, 0x80, 0x3f, '{', '"', 'f', 'o', 'r', 'm', 'a', 't',
    '"', ':', '"', 'f', 'l', 'o', 'a', 't', '8', '_', 'e', '4', 'm', '3', 'f', 'n', '"', '}'
};

static sft_set *stored_set(const test_file *f, const sft_allocator *alloc) {
    sft_open_options how = SFT_OPEN_OPTIONS_INIT;
    sft_file *file;
    sft_set *set;
    how.alloc = alloc;
    if (sft_open_memory(f->bytes, f->len, &how, &file, NULL)) return NULL;
    assert_int_equal(sft_set_from_file(file, NULL, &set, NULL), SFT_OK);
    return set;
}

static sft_code open_values(const test_file *f, const sft_allocator *alloc, bool partial,
                            sft_conversion **conversion, sft_set **out, sft_error *err) {
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    sft_set *set = stored_set(f, alloc);
    *out = NULL;
    if (!set) return SFT_OUT_OF_MEMORY;
    options.dequantize = true;
    options.partial = partial;
    options.alloc = alloc;
    sft_code code = sft_conversion_new(set, SFT_F32, &options, conversion, err);
    if (code) sft_set_close(set);
    return code ? code : sft_conversion_set(*conversion, set, "shown", out, err);
}

static void reads_values(void **unused) {
    test_file f = make_file(values_header, values_data, sizeof values_data);
    sft_error err = SFT_ERROR_INIT;
    sft_conversion *c;
    sft_set *set;
    sft_span kept;
    sft_slice slice;
    size_t shard;
    float v[6];
    (void)unused;
    assert_int_equal(open_values(&f, NULL, true, &c, &set, &err), SFT_OK);
    assert_string_equal(sft_set_shard_path(set, 0), "shown");
    const sft_file *file = sft_set_shard_at(set, 0);
    assert_true(sft_file_metadata_get(file, sft_span_cstr("kept"), &kept));
    const sft_tensor *a = sft_set_find(set, sft_span_cstr("a.weight"), &shard);
    assert_true(a && a->dtype == SFT_F32 && a->rank == 2 && a->shape[0] == 2 && a->shape[1] == 3);
    assert_null(sft_set_find(set, sft_span_cstr("a.weight_scale"), NULL));
    assert_int_equal(sft_read_bytes(file, a->offset, v, sizeof v, NULL), SFT_OK);
    assert_true(v[0] == .5f && v[1] == 1 && v[2] == -.5f && v[3] == .75f && v[5] == 224);
    sft_span last = sft_span_cstr("[::-1, 1]");
    assert_int_equal(sft_slice_parse(a->shape, 2, last, &slice, NULL), SFT_OK);
    assert_int_equal(sft_slice_read(file, a, &slice, v, 8, NULL), SFT_OK);
    assert_true(v[0] == 0 && v[1] == 1);
    const sft_tensor *d = sft_set_find(set, sft_span_cstr("d"), NULL);
    assert_true(d && d->dtype == SFT_I8);
    assert_int_equal(sft_read_bytes(file, d->offset, v, 2, NULL), SFT_OK);
    assert_memory_equal(v, "\x05\xfa", 2);
    sft_set_close(set);
    free_file(&f);
}

/* An error where it is read, and why; the others are there. */
static void refuses_single_ones(void **unused) {
    test_file f = make_file(values_header, values_data, sizeof values_data);
    sft_error err = SFT_ERROR_INIT;
    sft_conversion *c;
    sft_set *set;
    size_t refused = 0, computed = 0;
    (void)unused;
    assert_int_equal(open_values(&f, NULL, false, &c, &set, &err), SFT_CAST_DTYPE);
    assert_int_equal(open_values(&f, NULL, true, &c, &set, NULL), SFT_OK);
    assert_int_equal(sft_conversion_count(c, SFT_CONVERT_REFUSED), 2);
    assert_int_equal(sft_conversion_count(c, SFT_CONVERT_DEQUANTIZE), 1);
    for (size_t i = 0; i < 9; i++) {
        bool unfit = true;
        sft_error why = SFT_ERROR_INIT;
        sft_convert_action action = sft_conversion_action(c, i, NULL);
        sft_code code = sft_conversion_refusal(c, i, &unfit, &why);
        sft_span layout = sft_conversion_layout(c, i);
        assert_int_equal(code, action == SFT_CONVERT_REFUSED ? SFT_CAST_DTYPE : SFT_OK);
        assert_int_equal(layout.len > 0, action == SFT_CONVERT_DEQUANTIZE);
        computed += layout.len > 0;
        if (!code) continue;
        refused++;
        bool is_c = why.tensor[0] == 'c';
        assert_int_equal(unfit, is_c);
        assert_non_null(strstr(why.message, is_c ? "found [3]" : "aqlm"));
        const sft_tensor *t = sft_set_find(set, sft_span_cstr(is_c ? "c.weight" : "b.codes"), NULL);
        char byte;
        assert_non_null(t);
        assert_int_equal(t->dtype, is_c ? SFT_F8_E4M3 : SFT_I16);
        sft_code read = sft_read_bytes(sft_set_shard_at(set, 0), t->offset, &byte, 1, &err);
        assert_int_equal(read, SFT_CAST_DTYPE);
        assert_string_equal(err.message, why.message);
    }
    assert_true(refused == 2 && computed == 1);
    assert_int_equal(sft_conversion_refusal(c, SIZE_MAX, NULL, NULL), SFT_OK);
    assert_int_equal(sft_conversion_layout(c, SIZE_MAX).len, 0);
    sft_set_close(set);
    free_file(&f);
}

/* Threads that read at once get what one gets. */
static void serves_threads(void **unused) {
    enum { VALUES = 1 << 20 };
    uint8_t *data = malloc(2 * VALUES + 8);
    (void)unused;
    assert_non_null(data);
    for (size_t i = 0; i < 2 * VALUES; i++) data[i] = (uint8_t)(i * 2654435761u >> 13 & 0x7e);
    memcpy(data + 2 * VALUES, "\0\0\0\x3f\0\0\x40\x40", 8);
    test_file f = make_file(
        "{" TENSOR("a", "F8_E4M3", "[1024,1024]", 0, 1048576) ","
        TENSOR("b", "F8_E4M3", "[1024,1024]", 1048576, 2097152) ","
        TENSOR("a_scale", "F32", "[]", 2097152, 2097156) ","
        TENSOR("b_scale", "F32", "[]", 2097156, 2097160) "}", data, 2 * VALUES + 8);
    sft_conversion *c;
    sft_set *set;
    sft_statistics *found[2];
    assert_int_equal(open_values(&f, NULL, true, &c, &set, NULL), SFT_OK);
    sft_source source = sft_file_source(sft_set_shard_at(set, 0));
    sft_part parts[2] = { sft_part_of(sft_set_tensor_at(set, 0), &source),
                          sft_part_of(sft_set_tensor_at(set, 1), &source) };
    for (uint32_t k = 0; k < 2; k++) {
        sft_job job = SFT_JOB_INIT;
        job.threads = 1 + 7 * k;
        assert_int_equal(sft_statistics_new(parts, 2, NULL, &job, &found[k], NULL), SFT_OK);
    }
    for (size_t i = 0; i < 2; i++) {
        const sft_stats *one = sft_statistics_at(found[0], i);
        const sft_stats *all = sft_statistics_at(found[1], i);
        assert_true(one->values == VALUES && one->mean > 0 && one->max == (i ? 1344 : 224));
        assert_memory_equal(one, all, offsetof(sft_stats, histogram));
    }
    sft_statistics_free(found[0]);
    sft_statistics_free(found[1]);
    sft_set_close(set);
    free_file(&f);
    free(data);
}

/* The n-th allocation fails, for every n: an error, and nothing is kept. */
static void survives_lack_of_memory(void **unused) {
    test_file f = make_file(values_header, values_data, sizeof values_data);
    bool done = false;
    (void)unused;
    for (size_t n = 1; !done; n++) {
        test_memory memory = { 0, 0, 0, n };
        sft_allocator alloc = { resize_test_memory, &memory };
        sft_conversion *c;
        sft_set *set;
        float v[6];
        sft_code code = open_values(&f, &alloc, true, &c, &set, NULL);
        if (!code) {
            const sft_tensor *a = sft_set_find(set, sft_span_cstr("a.weight"), NULL);
            code = sft_read_bytes(sft_set_shard_at(set, 0), a->offset, v, sizeof v, NULL);
            assert_true(code || v[5] == 224);
        }
        sft_set_close(set);
        assert_true(code == SFT_OK || code == SFT_OUT_OF_MEMORY);
        assert_int_equal(memory.held, 0);
        done = memory.calls < n;
        assert_true(!done || !code);
    }
    free_file(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reads_values), cmocka_unit_test(refuses_single_ones),
        cmocka_unit_test(serves_threads), cmocka_unit_test(survives_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
