/* Tensors written as .npz and .pt, and read again. numpy and torch read them in
 * tests/import/export_cases.py. */
#define _GNU_SOURCE
#include "safetensors_import.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef sft_code (*export_fn)(const sft_part *parts, size_t count,
                              const sft_export_options *options, sft_sink sink,
                              const sft_job *job, sft_error *err);
static const export_fn exports[] = { sft_export_npz, sft_export_pt };

#define BIG ((uint64_t)700000) /* elements of a tensor larger than the buffer */

static const uint64_t shape_big[] = { BIG }, shape_two[] = { 2, 3 }, shape_none[] = { 4, 0 };
static uint8_t *data;
static sft_source source;

static int fill_data(void **state) {
    (void)state;
    data = malloc(4 * BIG);
    for (size_t i = 0; i < 4 * BIG; i++) data[i] = (uint8_t)(i * 2654435761u >> 13);
    source = sft_source_memory(data, 4 * BIG);
    return 0;
}

static int free_data(void **state) {
    (void)state;
    free(data);
    return 0;
}

static sft_part part(const char *name, sft_dtype dtype, uint32_t rank, const uint64_t *shape,
                     uint64_t begin) {
    return (sft_part){ { sft_span_cstr(name), dtype, rank, shape }, &source, begin };
}

/* ── Read again ── */

static void compare_parts(sft_span file, const sft_part *parts, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    sft_import *im;
    assert_int_equal(sft_import_open_source(sft_source_memory(file.data, file.len), NULL, &im,
                                            &err), SFT_OK);
    assert_int_equal(sft_import_verify(im, NULL, &err), SFT_OK);
    assert_int_equal(sft_import_tensor_count(im), count);
    for (size_t i = 0; i < count; i++) {
        sft_part found = sft_import_part(im, i);
        uint64_t bytes;
        size_t got = 0;
        assert_true(sft_span_equal(found.spec.name, parts[i].spec.name));
        assert_int_equal(found.spec.dtype, parts[i].spec.dtype);
        assert_int_equal(found.spec.rank, parts[i].spec.rank);
        for (uint32_t d = 0; d < found.spec.rank; d++)
            assert_int_equal(found.spec.shape[d], parts[i].spec.shape[d]);
        assert_int_equal(sft_shape_size(found.spec.dtype, found.spec.shape, found.spec.rank, NULL,
                                        &bytes, &err), SFT_OK);
        uint8_t *into = malloc((size_t)bytes + 1);
        if (bytes > 0)
            assert_int_equal(sft_source_read(found.source, found.begin, into, (size_t)bytes, &got,
                                             &err), SFT_OK);
        assert_int_equal(got, bytes);
        assert_memory_equal(into, data + parts[i].begin, got);
        free(into);
    }
    sft_import_close(im);
}

static sft_code append(void *ctx, const void *bytes, size_t len, sft_error *err) {
    (void)err;
    sft_buffer *buffer = ctx;
    buffer->data = realloc(buffer->data, buffer->len + len);
    memcpy(buffer->data + buffer->len, bytes, len);
    buffer->len += len;
    return SFT_OK;
}

/* To a sink that seeks and to one that does not. */
static void export_both_ways(export_fn export, const sft_part *parts, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    sft_buffer seekable = { 0 }, forward = { 0 };
    sft_sink sink;
    assert_int_equal(export(parts, count, NULL, sft_sink_memory(&seekable), NULL, &err), SFT_OK);
    compare_parts((sft_span){ seekable.data, seekable.len }, parts, count);
    assert_int_equal(sft_sink_callback(append, &forward, NULL, &sink, &err), SFT_OK);
    assert_int_equal(export(parts, count, NULL, sink, NULL, &err), SFT_OK);
    compare_parts((sft_span){ forward.data, forward.len }, parts, count);
    sft_buffer_free(&seekable);
    free(forward.data);
}

static void test_dtypes(void **state) {
    static const sft_dtype common[] = {
        SFT_BOOL, SFT_U8, SFT_I8, SFT_I16, SFT_U16, SFT_F16, SFT_I32, SFT_U32, SFT_F32, SFT_C64,
        SFT_F64, SFT_I64, SFT_U64, /* and of torch: */ SFT_BF16, SFT_F8_E5M2, SFT_F8_E4M3,
        SFT_F8_E8M0, SFT_F8_E4M3FNUZ, SFT_F8_E5M2FNUZ,
    };
    char names[64][8];
    sft_part parts[64];
    size_t count = 0, of_numpy = 0;
    (void)state;
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) {
        for (uint32_t form = 0; form < 3; form++, count++) {
            (void)snprintf(names[count], sizeof names[count], "t%zu", count);
            parts[count] = part(names[count], common[i], form == 0 ? 0 : 2,
                                form == 1 ? shape_two : shape_none, 3 * count);
        }
        if (common[i] == SFT_U64) of_numpy = count;
    }
    parts[count++] = part("big", SFT_F32, 1, shape_big, 0);
    export_both_ways(sft_export_pt, parts, count);
    parts[of_numpy++] = parts[count - 1];
    export_both_ways(sft_export_npz, parts, of_numpy);
}

/* More entries than the end record counts without ZIP64. */
static void test_many(void **state) {
    enum { COUNT = 66000 };
    sft_part *parts = malloc(COUNT * sizeof *parts);
    char(*names)[8] = malloc(COUNT * sizeof *names);
    sft_buffer out = { 0 };
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    for (size_t i = 0; i < COUNT; i++) {
        (void)snprintf(names[i], sizeof names[i], "%zu", i);
        parts[i] = part(names[i], SFT_U8, 0, NULL, i);
    }
    for (size_t e = 0; e < 2; e++) {
        assert_int_equal(exports[e](parts, COUNT, NULL, sft_sink_memory(&out), NULL, &err),
                         SFT_OK);
        compare_parts((sft_span){ out.data, out.len }, parts, COUNT);
    }
    sft_buffer_free(&out);
    free(parts);
    free(names);
}

static void test_nothing(void **state) {
    sft_buffer out = { 0 };
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    assert_int_equal(sft_export_npz(NULL, 0, NULL, sft_sink_memory(&out), NULL, &err), SFT_OK);
    assert_int_equal(out.len, 22);
    assert_int_equal(sft_export_pt(NULL, 0, NULL, sft_sink_memory(&out), NULL, &err), SFT_OK);
    compare_parts((sft_span){ out.data, out.len }, NULL, 0);
    sft_buffer_free(&out);
}

/* Data of PyTorch's archive begin at multiples of 64, as its readers compute. */
static void test_aligned(void **state) {
    sft_part parts[] = { part("a", SFT_F32, 2, shape_two, 0), part("b", SFT_F8_E4M3, 2, shape_two,
                                                                   64) };
    sft_buffer out = { 0 };
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    assert_int_equal(sft_export_pt(parts, 2, NULL, sft_sink_memory(&out), NULL, &err), SFT_OK);
    const char *first = memmem(out.data, out.len, data, 24);
    const char *second = memmem(out.data, out.len, data + 64, 6);
    assert_non_null(first);
    assert_non_null(second);
    assert_int_equal((first - out.data) % 64, 0);
    assert_int_equal((second - out.data) % 64, 0);
    sft_buffer_free(&out);
}

/* ── Refused ── */

typedef struct refused_case {
    sft_part part;
    sft_code npz, pt;
} refused_case;

static void refuse(export_fn export, const sft_part *parts, size_t count, sft_code code) {
    sft_buffer out = { 0 };
    sft_error err = SFT_ERROR_INIT;
    sft_code found = export(parts, count, NULL, sft_sink_memory(&out), NULL, &err);
    assert_int_equal(found, code);
    if (!code) {
        sft_buffer_free(&out);
        return;
    }
    assert_int_equal(err.code, code);
    assert_int_equal(out.len, 0);
    sft_span name = parts[count - 1].spec.name;
    assert_in_range(err.tensor_len, 1, name.len);
    if (code != SFT_FOREIGN_NAME) assert_memory_equal(err.tensor, name.data, name.len);
}

static void test_refused(void **state) {
    static const uint64_t huge[] = { UINT64_C(1) << 62, 2 }, many[65] = { 0 };
    static char name[60001];
    memset(name, 'n', sizeof name);
    refused_case rows[] = {
        { part("bf16", SFT_BF16, 2, shape_two, 0), SFT_CAST_DTYPE, SFT_OK },
        { part("f8", SFT_F8_E8M0, 2, shape_two, 0), SFT_CAST_DTYPE, SFT_OK },
        { part("f4", SFT_F4, 2, shape_two, 0), SFT_CAST_DTYPE, SFT_CAST_DTYPE },
        { part("f6", SFT_F6_E2M3, 2, shape_none, 0), SFT_CAST_DTYPE, SFT_CAST_DTYPE },
        { part("none", (sft_dtype)99, 2, shape_two, 0), SFT_CAST_DTYPE, SFT_CAST_DTYPE },
        { part("\xff", SFT_U8, 0, NULL, 0), SFT_FOREIGN_NAME, SFT_FOREIGN_NAME },
        { part("huge", SFT_F64, 2, huge, 0), SFT_SIZE_OVERFLOW, SFT_SIZE_OVERFLOW },
        { part("rank", SFT_U8, 65, many, 0), SFT_RANK_TOO_LARGE, SFT_RANK_TOO_LARGE },
        { part("beyond", SFT_U8, 2, shape_two, 4 * BIG - 5), SFT_IO_SHRUNK, SFT_IO_SHRUNK },
        { part("", SFT_U8, 0, NULL, 0), SFT_FOREIGN_NAME, SFT_OK },
        { part("", SFT_U8, 0, NULL, 0), SFT_FOREIGN_NAME, SFT_OK },
        { part("source", SFT_U8, 0, NULL, 0), SFT_BAD_ARGUMENT, SFT_BAD_ARGUMENT },
    };
    (void)state;
    static const sft_source none;
    rows[9].part.spec.name = (sft_span){ "n\0l", 3 };
    rows[10].part.spec.name = (sft_span){ name, sizeof name };
    rows[11].part.source = &none;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        refuse(sft_export_npz, &rows[i].part, 1, rows[i].npz);
        refuse(sft_export_pt, &rows[i].part, 1, rows[i].pt);
    }
    sft_part twice[] = { part("a", SFT_U8, 0, NULL, 0), part("a", SFT_U8, 0, NULL, 1) };
    refuse(sft_export_npz, twice, 2, SFT_TENSOR_DUPLICATE);
    refuse(sft_export_pt, twice, 2, SFT_TENSOR_DUPLICATE);
}

/* What numpy has no dtype for, as bytes without a type. */
static void test_opaque(void **state) {
    sft_part parts[] = { part("b", SFT_BF16, 2, shape_two, 0), part("f", SFT_F8_E5M2, 0, NULL, 9) };
    sft_export_options options = SFT_EXPORT_OPTIONS_INIT;
    sft_buffer out = { 0 };
    sft_error err = SFT_ERROR_INIT;
    sft_import *im;
    (void)state;
    options.opaque = true;
    assert_int_equal(sft_export_npz(parts, 2, &options, sft_sink_memory(&out), NULL, &err), SFT_OK);
    assert_non_null(memmem(out.data, out.len, "'descr': '<V2'", 14));
    assert_non_null(memmem(out.data, out.len, "'descr': '<V1'", 14));
    assert_int_equal(sft_import_open_source(sft_source_memory(out.data, out.len), NULL, &im, &err),
                     SFT_FOREIGN_OPAQUE);
    sft_buffer_free(&out);
}

/* Of widths that bytes without a type do not have. */
static void test_opaque_refused(void **state) {
    static const sft_dtype dtypes[] = { SFT_F4, SFT_F6_E3M2, (sft_dtype)99 };
    sft_export_options options = SFT_EXPORT_OPTIONS_INIT;
    (void)state;
    options.opaque = true;
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        sft_part one = part("t", dtypes[i], 2, shape_none, 0);
        sft_error err = SFT_ERROR_INIT;
        sft_buffer out = { 0 };
        assert_int_equal(sft_export_npz(&one, 1, &options, sft_sink_memory(&out), NULL, &err),
                         SFT_CAST_DTYPE);
        assert_non_null(strstr(err.message, "a dtype that NumPy has, found "));
        assert_int_equal(out.len, 0);
    }
}

/* "a" of a.npy is what numpy.load gives for "a.npy", whose entry is a.npy.npy. */
static void test_names_of_numpy(void **state) {
    sft_part alone[] = { part("a.npy", SFT_U8, 0, NULL, 0), part("b", SFT_U8, 0, NULL, 1) };
    sft_part both[] = { part("a", SFT_U8, 0, NULL, 0), part("a.npy", SFT_U8, 0, NULL, 1) };
    sft_error err = SFT_ERROR_INIT;
    sft_buffer out = { 0 };
    (void)state;
    assert_int_equal(sft_export_npz(alone, 2, NULL, sft_sink_memory(&out), NULL, &err), SFT_OK);
    sft_buffer_free(&out);
    assert_int_equal(sft_export_npz(both, 2, NULL, sft_sink_memory(&out), NULL, &err),
                     SFT_FOREIGN_NAME);
    assert_non_null(strstr(err.message, "found \"a\" and the same with .npy"));
}

/* More bytes than an archive can have, and failures without an error to be told in. */
static void test_large(void **state) {
    static const uint64_t most[] = { (UINT64_C(1) << 61) - 1 },
                          less[] = { (UINT64_C(1) << 61) - 60000 };
    static const char *const names[] = { "a", "b", "c", "d", "e", "f", "g", "h", "i" };
    (void)state;
    /* Beyond by the data of the ninth, and by the room for its header. */
    for (size_t row = 0; row < 2; row++) {
        sft_part parts[9];
        sft_error err = SFT_ERROR_INIT;
        sft_buffer out = { 0 };
        for (size_t i = 0; i < 9; i++)
            parts[i] = part(names[i], SFT_U8, 1, row == 1 && i == 7 ? less : most, 0);
        if (row == 1) parts[8].spec.rank = 0;
        assert_int_equal(sft_export_npz(parts, 9, NULL, sft_sink_memory(&out), NULL, &err),
                         SFT_SIZE_OVERFLOW);
        assert_non_null(strstr(err.message, "tensors of less than 2^64 bytes, found more"));
    }
    sft_part shrunk = part("a", SFT_U8, 1, shape_big, 4 * BIG - 5);
    static const uint64_t huge[] = { UINT64_C(1) << 62, 8 };
    sft_part over = part("a", SFT_F64, 2, huge, 0);
    for (size_t e = 0; e < 2; e++) {
        sft_buffer out = { 0 };
        assert_int_equal(exports[e](&shrunk, 1, NULL, sft_sink_memory(&out), NULL, NULL),
                         SFT_IO_SHRUNK);
        assert_int_equal(exports[e](&over, 1, NULL, sft_sink_memory(&out), NULL, NULL),
                         SFT_SIZE_OVERFLOW);
        assert_int_equal(out.len, 0);
    }
}

/* ── Failing sinks and jobs ── */

typedef struct limit {
    size_t left;
} limit;

static sft_code write_limited(void *ctx, const void *bytes, size_t len, sft_error *err) {
    limit *l = ctx;
    (void)bytes;
    if (len > l->left) return sft_error_set(err, SFT_IO_WRITE, 0, "full");
    l->left -= len;
    return SFT_OK;
}

static void test_full(void **state) {
    sft_part parts[] = { part("a", SFT_F32, 2, shape_two, 0), part("b", SFT_F32, 1, shape_big, 0) };
    (void)state;
    for (size_t e = 0; e < 2; e++) {
        for (size_t most = 0; most < 4 * BIG; most += most < 2000 ? 37 : 400000) {
            limit l = { .left = most };
            sft_error err = SFT_ERROR_INIT;
            sft_sink sink;
            assert_int_equal(sft_sink_callback(write_limited, &l, NULL, &sink, &err), SFT_OK);
            assert_int_equal(exports[e](parts, 2, NULL, sink, NULL, &err), SFT_IO_WRITE);
            assert_string_equal(err.message, "full");
        }
    }
}

typedef struct ticks {
    uint64_t last, total;
    int left;
} ticks;

static bool tick(void *ctx, uint64_t done, uint64_t total) {
    ticks *t = ctx;
    assert_true(done >= t->last && done <= total);
    t->last = done;
    t->total = total;
    return t->left-- > 0;
}

static void test_job(void **state) {
    sft_part parts[] = { part("a", SFT_F32, 2, shape_two, 0), part("b", SFT_F32, 1, shape_big, 0) };
    (void)state;
    for (size_t e = 0; e < 2; e++) {
        sft_buffer out = { 0 };
        sft_error err = SFT_ERROR_INIT;
        sft_job job = SFT_JOB_INIT;
        ticks t = { .left = 1000 };
        job.tick = tick;
        job.ctx = &t;
        assert_int_equal(exports[e](parts, 2, NULL, sft_sink_memory(&out), &job, &err), SFT_OK);
        assert_int_equal(t.total, 24 + 4 * BIG);
        assert_int_equal(t.last, t.total);
        t = (ticks){ .left = 2 };
        assert_int_equal(exports[e](parts, 2, NULL, sft_sink_memory(&out), &job, &err),
                         SFT_CANCELLED);
        assert_int_equal(out.len, 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtypes),  cmocka_unit_test(test_many),
        cmocka_unit_test(test_nothing), cmocka_unit_test(test_aligned),
        cmocka_unit_test(test_refused), cmocka_unit_test(test_opaque),
        cmocka_unit_test(test_opaque_refused), cmocka_unit_test(test_names_of_numpy),
        cmocka_unit_test(test_large),   cmocka_unit_test(test_full),
        cmocka_unit_test(test_job),
    };
    return cmocka_run_group_tests(tests, fill_data, free_data);
}
