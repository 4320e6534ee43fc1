/* Sources of tensors that stand at strides, big-endian or under flags: compared with elements taken
 * one by one, over random boxes, ranges of any length, and blocks larger than the workspace. */
#define _GNU_SOURCE
#include "formats/objects/rebuild_parts.h"
#include "formats/parts/state.h"
#include "os/os.h"
#include "safetensors_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

static uint64_t random_state = 88172645463325252u;

static uint64_t draw(uint64_t below) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state % below;
}

static void begin(sft_import *im, sft_error *err) {
    *im = (sft_import){ .arena = { .alloc = sfti_allocator(NULL) }, .alloc = sfti_allocator(NULL),
                        .err = err };
    assert_int_equal(sfti_os_mutex_init(&im->work.mutex), 0);
}

static void end(sft_import *im) {
    for (sfti_held *held = im->held; held; held = held->next) sft_source_close(&held->source);
    if (im->work.in) (void)sfti_os_resize(NULL, im->work.in, 2 * SFTI_WORK_BYTES, 0);
    sfti_os_mutex_free(&im->work.mutex);
    sfti_arena_free(&im->arena);
}

/* Element n (row-major) of the item, changed as the item says. */
static void naive(const sfti_item *item, uint32_t width, const uint8_t *stored, uint64_t n,
                  uint8_t *out) {
    uint64_t at = item->begin;
    for (uint32_t d = item->rank; d-- > 0; n /= item->shape[d])
        at += n % item->shape[d] * item->strides[d] * width;
    memcpy(out, stored + at, width);
    for (uint32_t i = 0; item->swap && i < width; i += item->swap)
        for (uint32_t a = i, b = i + item->swap - 1u; a < b; a++, b--) {
            uint8_t kept = out[a];
            out[a] = out[b];
            out[b] = kept;
        }
    int kind = (int)sft_dtype_describe(item->dtype)->kind;
    bool integer = kind == SFT_KIND_INT || kind == SFT_KIND_UINT;
    if (item->neg && !integer) out[width - 1] ^= 0x80;
    uint64_t number = 0;
    for (uint32_t i = width; i-- > 0;) number = number << 8 | out[i];
    for (uint32_t i = 0; item->neg && integer && i < width; i++)
        out[i] = (uint8_t)((0 - number) >> 8 * i);
}

static void compare(const sfti_item *item, const uint8_t *stored, uint64_t limit) {
    sft_error err = SFT_ERROR_INIT;
    sft_import im;
    const sft_source *source;
    uint32_t width = sft_dtype_describe(item->dtype)->bits / 8;
    begin(&im, &err);
    assert_int_equal(sfti_view_source(&im, item, &source), SFT_OK);
    uint8_t *all = malloc((size_t)source->size + 1), one[8];
    for (uint64_t at = 0; at < source->size;) {
        uint64_t left = source->size - at, some = 1 + draw(limit);
        size_t got;
        if (some > left) some = left;
        assert_int_equal(sft_source_read(source, at, all + at, (size_t)some, &got, &err), SFT_OK);
        assert_int_equal(got, some);
        at += some;
    }
    uint64_t count = source->size / width, step = count > 100000 ? count / 50021 : 1;
    for (uint64_t n = 0; n < count; n += step) {
        naive(item, width, stored, n, one);
        assert_memory_equal(all + n * width, one, width);
    }
    free(all);
    end(&im);
}

static void test_random_boxes(void **state) {
    static const sft_dtype dtypes[] = { SFT_U8,  SFT_F16, SFT_F32, SFT_F64,
                                        SFT_I16, SFT_I32, SFT_I64 };
    for (int round = 0; round < 2000; round++) {
        uint64_t shape[6], stride[6], reach = 1;
        sfti_item item = { .dtype = dtypes[draw(7)], .rank = (uint32_t)draw(6), .shape = shape,
                           .strides = stride, .begin = draw(3) * 8 };
        uint32_t width = sft_dtype_describe(item.dtype)->bits / 8;
        for (uint32_t d = 0; d < item.rank; d++) {
            shape[d] = 1 + draw(7);
            stride[d] = draw(3) == 0 ? draw(60) : draw(4) == 0 ? draw(3000) : reach;
            reach += (shape[d] - 1) * stride[d];
        }
        size_t bytes = (size_t)(item.begin + reach * width);
        uint8_t *stored = malloc(bytes);
        for (size_t i = 0; i < bytes; i++) stored[i] = (uint8_t)draw(256);
        sft_source source = sft_source_memory(stored, bytes);
        item.source = &source;
        item.stored = bytes - item.begin;
        item.swap = draw(2) && width > 1 ? (uint8_t)width : 0;
        item.neg = draw(3) == 0;
        compare(&item, stored, 200);
        free(stored);
    }
    (void)state;
}

/* Larger than the workspace, so that blocks are cut: transposed, and with holes. */
static void test_large(void **state) {
    static const uint64_t shapes[][3] = { { 1, 3000, 5001 }, { 7, 1100, 2100 }, { 3, 1, 5000003 } };
    for (size_t i = 0; i < 3; i++) {
        const uint64_t *shape = shapes[i];
        uint64_t stride[3] = { shape[1] * shape[2], 1, shape[1] };
        size_t bytes = (size_t)(shape[0] * shape[1] * shape[2] * 2);
        uint8_t *stored = malloc(bytes);
        for (size_t n = 0; n < bytes; n++) stored[n] = (uint8_t)draw(256);
        sft_source source = sft_source_memory(stored, bytes);
        sfti_item item = { .dtype = SFT_F16, .rank = 3, .shape = shape, .strides = stride,
                           .source = &source, .stored = bytes };
        compare(&item, stored, 3000000);
        uint64_t half[3] = { shape[0], shape[1], shape[2] / 100 };
        uint64_t wide[3] = { shape[1] * shape[2], shape[2], 100 };
        item.shape = half;
        item.strides = wide;
        compare(&item, stored, 500000);
        free(stored);
    }
    (void)state;
}

/* A few stored bytes that are read again and again. */
static void test_expanded(void **state) {
    static const uint64_t shape[] = { 3000, 4000 }, stride[] = { 0, 0 }, rows[] = { 0, 1 };
    uint8_t stored[8000];
    for (size_t i = 0; i < sizeof stored; i++) stored[i] = (uint8_t)i;
    sft_source source = sft_source_memory(stored, sizeof stored);
    sfti_item item = { .dtype = SFT_F16, .rank = 2, .shape = shape, .strides = stride,
                       .source = &source, .stored = sizeof stored };
    compare(&item, stored, 4000000);
    item.strides = rows;
    compare(&item, stored, 4000000);
    (void)state;
}

static void test_joined(void **state) {
    sft_error err = SFT_ERROR_INIT;
    sft_import im;
    const sft_source *first, *second, *whole;
    char out[16] = { 0 };
    size_t got;
    begin(&im, &err);
    assert_int_equal(sfti_import_memory(&im, "abcdef", 6, &first), SFT_OK);
    assert_int_equal(sfti_import_memory(&im, "ghij", 4, &second), SFT_OK);
    sfti_piece pieces[] = { { first, 1, 3 }, { second, 0, 0 }, { second, 0, 4 }, { first, 0, 1 } };
    assert_int_equal(sfti_import_joined(&im, pieces, 4, &whole), SFT_OK);
    assert_int_equal(whole->size, 8);
    assert_int_equal(sft_source_read(whole, 0, out, 8, &got, &err), SFT_OK);
    assert_string_equal(out, "bcdghija");
    assert_int_equal(sft_source_read(whole, 2, out, 3, &got, &err), SFT_OK);
    assert_memory_equal(out, "dgh", 3);
    end(&im);
    (void)state;
}

static void test_paths(void **state) {
    static const char *const names[] = {
        "", "/etc/passwd", "../x", "a/../../x", "a\\b", "c:x", "a/..",
    };
    sft_error err = SFT_ERROR_INIT;
    sft_import im;
    const sft_source *source;
    begin(&im, &err);
    im.folder = "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(sfti_import_file(&im, sft_span_cstr(names[i]), &source),
                         SFT_FOREIGN_PATH);
    assert_int_equal(sfti_import_file(&im, (sft_span){ "a\0b", 3 }, &source), SFT_FOREIGN_PATH);
    end(&im);
    (void)state;
}

/* ── What is told to be read next ── */

static sft_run told;
static size_t times;

static sft_code read_zeros(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                           sft_error *err) {
    (void)ctx, (void)offset, (void)err;
    memset(into, 0, len);
    *got = len < 64 ? len : 64; /* a source that ends early */
    return SFT_OK;
}

static void keep_run(void *ctx, const sft_run *runs, size_t count) {
    (void)ctx;
    if (count > 0) told = *runs;
    times += count;
}

static const sft_source_vtable telling = { sizeof telling, read_zeros, NULL, keep_run, NULL };

/* A view announces what it lies in, once and for the whole: not of a part, not of few elements far
 * from one another. */
static void test_view_expects(void **state) {
    static const uint64_t shape[] = { 4, 8 }, near[] = { 1, 4 }, far[] = { 1, 400 };
    static const struct {
        const uint64_t *stride;
        sft_run run;
        size_t runs, times;
    } rows[] = {
        { near, { 0, 64 }, 1, 1 }, { near, { 0, 64 }, 0, 0 }, { near, { 2, 62 }, 1, 0 },
        { near, { 0, 62 }, 1, 0 }, { far, { 0, 64 }, 1, 0 },
    };
    sft_error err = SFT_ERROR_INIT;
    sft_source from = { NULL, &telling, 100000, NULL, true };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_import im;
        const sft_source *source;
        sfti_item item = { .dtype = SFT_F16, .rank = 2, .shape = shape, .strides = rows[i].stride,
                           .source = &from, .begin = 6, .stored = 90000 };
        begin(&im, &err);
        assert_int_equal(sfti_view_source(&im, &item, &source), SFT_OK);
        times = 0;
        sft_source_expect(source, &rows[i].run, rows[i].runs);
        assert_int_equal(times, rows[i].times);
        if (times > 0) assert_true(told.offset == 6 && told.len == 64);
        end(&im);
    }
    (void)state;
}

/* Pieces announce those parts of them that are asked for. */
static void test_joined_expects(void **state) {
    sft_error err = SFT_ERROR_INIT;
    sft_source from = { NULL, &telling, 1000, NULL, true };
    sft_import im;
    const sft_source *whole;
    begin(&im, &err);
    sfti_piece pieces[] = { { &from, 100, 10 }, { &from, 300, 10 }, { &from, 500, 10 } };
    assert_int_equal(sfti_import_joined(&im, pieces, 3, &whole), SFT_OK);
    times = 0;
    sft_source_expect(whole, &(sft_run){ 12, 3 }, 1);
    assert_int_equal(times, 1);
    assert_true(told.offset == 302 && told.len == 3);
    times = 0;
    sft_source_expect(whole, &(sft_run){ 25, 5 }, 1);
    assert_int_equal(times, 1);
    assert_true(told.offset == 505 && told.len == 5);
    times = 0;
    sft_source_expect(whole, &(sft_run){ 0, 0 }, 1);
    assert_int_equal(times, 0);
    pieces[2].len = UINT64_MAX - 5;
    assert_int_equal(sfti_import_joined(&im, pieces, 3, &whole), SFT_SIZE_OVERFLOW);
    assert_non_null(strstr(err.message, "pieces of less than 2^64 bytes"));
    end(&im);
    (void)state;
}

/* ── Sources that are refused, or end early ── */

static void test_short(void **state) {
    static const struct {
        uint64_t offset;
        size_t len;
        const char *found; /* NULL: it is read */
    } rows[] = {
        { 0, 64, NULL }, { 1000, 0, NULL }, { 0, 65, "expected 65 bytes, found the end" },
        { 999, 2, "found the end of the file at byte 1000" }, { 1001, 1, "expected 1 bytes" },
    };
    sft_error err = SFT_ERROR_INIT;
    sft_source from = { NULL, &telling, 1000, NULL, true };
    char bytes[100];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_code code = sfti_import_exact(&from, rows[i].offset, bytes, rows[i].len, &err);
        assert_int_equal(code, rows[i].found ? SFT_FOREIGN_TRUNCATED : SFT_OK);
        if (code) assert_int_equal(err.offset, rows[i].offset);
        if (code && !strstr(err.message, rows[i].found)) fail_msg("%s", err.message);
    }
    sft_import im;
    uint8_t *loaded;
    begin(&im, &err);
    assert_int_equal(sfti_import_load(&im, &from, 1001, 0, &loaded), SFT_FOREIGN_TRUNCATED);
    assert_int_equal(sfti_import_load(&im, &from, 900, 101, &loaded), SFT_FOREIGN_TRUNCATED);
    assert_null(loaded);
    assert_int_equal(sfti_import_load(&im, &from, 1000, 0, &loaded), SFT_OK);

    static const uint64_t shape[] = { 2, 2 }, stride[] = { 1, 2 };
    const sft_source *source;
    sfti_item item = { .name = { "w", 1 }, .dtype = SFT_F4, .rank = 2, .shape = shape,
                       .strides = stride, .source = &from, .stored = 1000 };
    assert_int_equal(sfti_view_source(&im, &item, &source), SFT_FOREIGN_DTYPE);
    assert_non_null(strstr(err.message, "expected F4 packed in row-major order"));
    end(&im);
    (void)state;
}

/* ── Quantised and sparse ── */

/* I32; a scale and a zero for each of three channels, or one; any range is read. */
static void test_dequantised(void **state) {
    enum { COUNT = 1200 };
    static uint8_t stored[COUNT * 4];
    float wanted[COUNT], found[COUNT];
    double scales[] = { 0.5, 2, 0.25 }, zeros[] = { 0, -3, 100 };
    for (int one = 0; one < 2; one++) { /* a scale of all, a number that no float is */
        sft_error err = SFT_ERROR_INIT;
        sft_import im;
        const sft_source *source;
        zeros[0] = one ? 16777217 : 0;
        for (uint32_t i = 0; i < COUNT; i++) {
            int32_t number = (int32_t)(i * 7) - 4000;
            uint32_t channel = one ? 0 : i / 4 % 3;
            for (int b = 0; b < 4; b++) stored[4 * i + b] = (uint8_t)((uint32_t)number >> 8 * b);
            wanted[i] = (float)((float)(number - zeros[channel]) * scales[channel]);
        }
        sft_source from = sft_source_memory(stored, sizeof stored);
        sfti_dequantise how = { .from = &from, .elements = COUNT, .dtype = SFT_I32,
                                .one = one, .scales = scales, .zeros = zeros,
                                .channels = one ? 1 : 3, .inner = 4 };
        begin(&im, &err);
        assert_int_equal(sfti_dequantise_source(&im, &how, &source), SFT_OK);
        for (uint64_t at = 0; at < sizeof wanted;) {
            size_t some = (size_t)(1 + draw(3000)), got;
            if (some > sizeof wanted - at) some = (size_t)(sizeof wanted - at);
            assert_int_equal(sft_source_read(source, at, (char *)found + at, some, &got, &err),
                             SFT_OK);
            assert_int_equal(got, some);
            at += some;
        }
        assert_memory_equal(found, wanted, sizeof wanted);
        sft_source early = { NULL, &telling, sizeof stored, NULL, true };
        size_t got;
        how.from = &early;
        assert_int_equal(sfti_dequantise_source(&im, &how, &source), SFT_OK);
        assert_int_equal(sft_source_read(source, 0, found, 100, &got, &err), SFT_FOREIGN_TRUNCATED);
        assert_non_null(strstr(err.message, "found the end of the file"));
        end(&im);
    }
    assert_true(sfti_dequantise_takes(SFT_I8) && sfti_dequantise_takes(SFT_I32));
    assert_false(sfti_dequantise_takes(SFT_I64));
    (void)state;
}

/* Rows of a dense tensor that are not zero, of any width, read in ranges of any length. */
static void test_sparse(void **state) {
    for (int round = 0; round < 300; round++) {
        uint64_t rows = draw(20), row_bytes = 1 + draw(round % 3 == 0 ? 9000 : 9), places[20];
        uint64_t all = 1 + draw(4);
        for (uint64_t i = 0; i < rows; all += 1 + draw(3)) places[i++] = all - 1;
        size_t bytes = (size_t)(all * row_bytes);
        uint8_t *stored = malloc((size_t)(rows * row_bytes) + 1);
        uint8_t *wanted = calloc(bytes, 1), *found = malloc(bytes);
        for (size_t i = 0; i < rows * row_bytes; i++) stored[i] = (uint8_t)draw(256);
        for (uint64_t i = 0; i < rows; i++)
            memcpy(wanted + places[i] * row_bytes, stored + i * row_bytes, (size_t)row_bytes);
        sft_error err = SFT_ERROR_INIT;
        sft_import im;
        const sft_source *source;
        sft_source from = sft_source_memory(stored, (size_t)(rows * row_bytes));
        begin(&im, &err);
        sfti_sparse sparse = { &from, 0, rows, row_bytes, places };
        assert_int_equal(sfti_sparse_source(&im, &sparse, bytes, &source), SFT_OK);
        for (size_t at = 0, got; at < bytes; at += got) {
            size_t some = 1 + (size_t)draw(bytes);
            if (some > bytes - at) some = bytes - at;
            assert_int_equal(sft_source_read(source, at, found + at, some, &got, &err), SFT_OK);
            assert_int_equal(got, some);
        }
        assert_memory_equal(found, wanted, bytes);
        end(&im);
        free(stored);
        free(wanted);
        free(found);
    }
    (void)state;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_boxes), cmocka_unit_test(test_large),
        cmocka_unit_test(test_expanded),     cmocka_unit_test(test_joined),
        cmocka_unit_test(test_paths),        cmocka_unit_test(test_view_expects),
        cmocka_unit_test(test_joined_expects), cmocka_unit_test(test_short),
        cmocka_unit_test(test_dequantised),  cmocka_unit_test(test_sparse),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
