/* Sources of tensors that stand at strides, big-endian or under flags: compared with elements taken
 * one by one, over random boxes, ranges of any length, and blocks larger than the workspace. */
#define _GNU_SOURCE
#include "formats/parts/state.h"
#include "os/os.h"

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
    if (item->neg) out[width - 1] ^= 0x80;
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
    static const sft_dtype dtypes[] = { SFT_U8, SFT_F16, SFT_F32, SFT_F64 };
    for (int round = 0; round < 2000; round++) {
        uint64_t shape[6], stride[6], reach = 1;
        sfti_item item = { .dtype = dtypes[draw(4)], .rank = (uint32_t)draw(6), .shape = shape,
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
        item.neg = item.dtype != SFT_U8 && draw(3) == 0;
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_boxes), cmocka_unit_test(test_large),
        cmocka_unit_test(test_expanded),     cmocka_unit_test(test_joined),
        cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
