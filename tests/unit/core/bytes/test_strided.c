/* Sources over elements at distances: the bytes are those of a packed copy, however they are
 * read. */
#include "safetensors.h"
#include "safetensors_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

/* The slow way: one element after another. */
static size_t pack(const uint64_t *shape, const int64_t *strides, uint32_t rank, size_t width,
                   const char *base, char *out) {
    uint64_t at[SFT_MAX_RANK] = { 0 };
    size_t len = 0;
    for (uint32_t d = 0; d < rank; d++)
        if (shape[d] == 0) return 0;
    for (;;) {
        const char *from = base;
        for (uint32_t d = 0; d < rank; d++) from += (ptrdiff_t)at[d] * (ptrdiff_t)strides[d];
        memcpy(out + len, from, width);
        len += width;
        uint32_t d = rank;
        while (d > 0 && ++at[d - 1] == shape[d - 1]) at[--d] = 0;
        if (d == 0) return len;
    }
}

static char memory[1 << 16], packed[1 << 16], found[1 << 16];

static void fill(void) {
    for (size_t i = 0; i < sizeof memory; i++) memory[i] = (char)(i * 31 + i / 251);
}

static void expect(sft_dtype dtype, size_t width, const uint64_t *shape, const int64_t *strides,
                   uint32_t rank, size_t base) {
    static const size_t pieces[] = { 1, 3, 8, 100, 1 << 16 };
    sft_source source;
    size_t len = pack(shape, strides, rank, width, memory + base, packed);
    assert_int_equal(sft_source_strided(dtype, shape, rank, memory + base, strides, NULL, &source,
                                        NULL), SFT_OK);
    assert_int_equal(source.size, len);
    for (size_t p = 0; p < sizeof pieces / sizeof *pieces; p++) {
        memset(found, 0xee, len);
        for (size_t at = 0, got; at < len; at += got) {
            size_t want = len - at < pieces[p] ? len - at : pieces[p];
            assert_int_equal(sft_source_read(&source, at, found + at, want, &got, NULL), SFT_OK);
            assert_int_equal(got, want);
        }
        assert_memory_equal(found, packed, len);
    }
    sft_source_close(&source);
}

static void test_shapes(void **state) {
    (void)state;
    fill();
    expect(SFT_F32, 4, (uint64_t[]){ 3, 5 }, (int64_t[]){ 20, 4 }, 2, 0);  /* packed */
    expect(SFT_F32, 4, (uint64_t[]){ 5, 3 }, (int64_t[]){ 4, 20 }, 2, 0);  /* transposed */
    expect(SFT_F32, 4, (uint64_t[]){ 3, 5 }, (int64_t[]){ 64, 4 }, 2, 0);  /* rows with holes */
    expect(SFT_U8, 1, (uint64_t[]){ 7, 4, 3 }, (int64_t[]){ 1, 7, 28 }, 3, 5);
    expect(SFT_I64, 8, (uint64_t[]){ 4, 6 }, (int64_t[]){ -48, -8 }, 2, 4000); /* backwards */
    expect(SFT_F16, 2, (uint64_t[]){ 6, 5 }, (int64_t[]){ 0, 2 }, 2, 9);   /* broadcast */
    expect(SFT_F16, 2, (uint64_t[]){ 6, 5 }, (int64_t[]){ 0, 0 }, 2, 9);
    expect(SFT_BF16, 2, (uint64_t[]){ 2, 1, 3, 1 }, (int64_t[]){ 6, 999, 2, -999 }, 4, 0);
    expect(SFT_C64, 8, (uint64_t[]){ 2, 3, 4 }, (int64_t[]){ 400, 100, 10 }, 3, 1); /* unaligned */
    expect(SFT_F64, 8, (uint64_t[]){ 2, 0, 4 }, (int64_t[]){ 1, 1, 1 }, 3, 0);
    expect(SFT_F64, 8, NULL, NULL, 0, 3);
}

static void test_many(void **state) {
    static const sft_dtype dtypes[] = { SFT_U8, SFT_F16, SFT_F32, SFT_I64 };
    static const size_t widths[] = { 1, 2, 4, 8 };
    (void)state;
    fill();
    srand(7);
    for (int n = 0; n < 3000; n++) {
        uint64_t shape[4];
        int64_t strides[4];
        uint32_t rank = (uint32_t)(rand() % 5);
        int kind = rand() % 4;
        for (uint32_t d = 0; d < rank; d++) {
            shape[d] = (uint64_t)(rand() % 5);
            strides[d] = rand() % 400 - 200;
            if (rand() % 3 == 0) strides[d] = (int64_t)widths[kind];
        }
        for (uint32_t d = rank; d-- > 1;)
            if (rand() % 2) strides[d - 1] = strides[d] * (int64_t)shape[d];
        bool far = false;
        for (uint32_t d = 0; d < rank; d++) far = far || strides[d] > 3000 || strides[d] < -3000;
        if (!far) expect(dtypes[kind], widths[kind], shape, strides, rank, 30000);
    }
}

static void test_refused(void **state) {
    sft_source source;
    uint64_t shape[65] = { 2, 2 };
    int64_t strides[65] = { INT64_MAX, 4 };
    (void)state;
    assert_int_equal(sft_source_strided(SFT_F4, shape, 2, memory, strides, NULL, &source, NULL),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(sft_source_strided(SFT_U8, shape, 65, memory, strides, NULL, &source, NULL),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(sft_source_strided(SFT_U8, shape, 2, memory, NULL, NULL, &source, NULL),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(sft_source_strided(SFT_U8, shape, 2, NULL, strides, NULL, &source, NULL),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(sft_source_strided(SFT_U8, shape, 2, memory, strides, NULL, NULL, NULL),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(sft_source_strided(SFT_U8, shape, 2, memory, strides, NULL, &source, NULL),
                     SFT_ADDRESS_SPACE);
    strides[0] = INT64_MIN;
    assert_int_equal(sft_source_strided(SFT_U8, shape, 2, memory, strides, NULL, &source, NULL),
                     SFT_ADDRESS_SPACE);
    assert_null(source.vtable);
    shape[0] = UINT64_MAX;
    assert_int_equal(sft_source_strided(SFT_U8, shape, 2, memory, strides, NULL, &source, NULL),
                     SFT_SIZE_OVERFLOW);
}

/* A transposed tensor goes to a file without a copy of it being made. */
static void test_saved(void **state) {
    static const uint64_t shape[] = { 30, 20 };
    static const int64_t strides[] = { 2, 60 };
    sft_buffer buffer = { 0 };
    sft_source source;
    sft_file *file = NULL;
    (void)state;
    fill();
    assert_int_equal(sft_source_strided(SFT_F16, shape, 2, memory, strides, NULL, &source, NULL),
                     SFT_OK);
    sft_part part = { { { "w", 1 }, SFT_F16, 2, shape }, &source, 0 };
    assert_int_equal(sft_save_parts(&part, 1, NULL, 0, NULL, sft_sink_memory(&buffer), NULL, NULL),
                     SFT_OK);
    sft_source_close(&source);
    assert_int_equal(sft_open_memory(buffer.data, buffer.len, NULL, &file, NULL), SFT_OK);
    size_t len = pack(shape, strides, 2, 2, memory, packed);
    assert_int_equal(sft_read_into(file, sft_file_tensor_at(file, 0), found, len, NULL), SFT_OK);
    assert_memory_equal(found, packed, len);
    sft_close(file);
    sft_buffer_free(&buffer);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),
        cmocka_unit_test(test_many),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_saved),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
