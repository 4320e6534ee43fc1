/* The table of dtypes, and the size of a shape. Tests: test_dtype.c. */
#include "base/checked.h"
#include "base/error.h"
#include "base/number.h"
#include "safetensors.h"

#include <string.h>

/* The last column is the official sort order, ascending. */
static const sft_dtype_info dtype_table[SFT_DTYPE_COUNT] = {
    [SFT_BOOL] = { "BOOL", 8, SFT_KIND_BOOL, SFT_BOOL, 0 },
    [SFT_F4] = { "F4", 4, SFT_KIND_FLOAT, SFT_F4, 1 },
    [SFT_F6_E2M3] = { "F6_E2M3", 6, SFT_KIND_FLOAT, SFT_F6_E2M3, 2 },
    [SFT_F6_E3M2] = { "F6_E3M2", 6, SFT_KIND_FLOAT, SFT_F6_E3M2, 3 },
    [SFT_U8] = { "U8", 8, SFT_KIND_UINT, SFT_U8, 4 },
    [SFT_I8] = { "I8", 8, SFT_KIND_INT, SFT_I8, 5 },
    [SFT_F8_E5M2] = { "F8_E5M2", 8, SFT_KIND_FLOAT, SFT_F8_E5M2, 6 },
    [SFT_F8_E4M3] = { "F8_E4M3", 8, SFT_KIND_FLOAT, SFT_F8_E4M3, 7 },
    [SFT_F8_E8M0] = { "F8_E8M0", 8, SFT_KIND_FLOAT, SFT_F8_E8M0, 8 },
    [SFT_F8_E4M3FNUZ] = { "F8_E4M3FNUZ", 8, SFT_KIND_FLOAT, SFT_F8_E4M3FNUZ, 9 },
    [SFT_F8_E5M2FNUZ] = { "F8_E5M2FNUZ", 8, SFT_KIND_FLOAT, SFT_F8_E5M2FNUZ, 10 },
    [SFT_I16] = { "I16", 16, SFT_KIND_INT, SFT_I16, 11 },
    [SFT_U16] = { "U16", 16, SFT_KIND_UINT, SFT_U16, 12 },
    [SFT_F16] = { "F16", 16, SFT_KIND_FLOAT, SFT_F16, 13 },
    [SFT_BF16] = { "BF16", 16, SFT_KIND_FLOAT, SFT_BF16, 14 },
    [SFT_I32] = { "I32", 32, SFT_KIND_INT, SFT_I32, 15 },
    [SFT_U32] = { "U32", 32, SFT_KIND_UINT, SFT_U32, 16 },
    [SFT_F32] = { "F32", 32, SFT_KIND_FLOAT, SFT_F32, 17 },
    [SFT_C64] = { "C64", 64, SFT_KIND_COMPLEX, SFT_C64, 18 },
    [SFT_F64] = { "F64", 64, SFT_KIND_FLOAT, SFT_F64, 19 },
    [SFT_I64] = { "I64", 64, SFT_KIND_INT, SFT_I64, 20 },
    [SFT_U64] = { "U64", 64, SFT_KIND_UINT, SFT_U64, 21 },
};

const sft_dtype_info *sft_dtype_describe(sft_dtype dtype) {
    return (unsigned)dtype < SFT_DTYPE_COUNT ? &dtype_table[dtype] : NULL;
}

const sft_dtype_info *sft_dtype_at(size_t order) {
    for (int i = 0; i < SFT_DTYPE_COUNT; i++)
        if (dtype_table[i].order == order) return &dtype_table[i];
    return NULL;
}

bool sft_dtype_parse(sft_span name, sft_dtype *out) {
    for (int i = 0; i < SFT_DTYPE_COUNT; i++) {
        const char *row = dtype_table[i].name;
        if (strlen(row) == name.len && memcmp(row, name.data, name.len) == 0) {
            *out = (sft_dtype)i;
            return true;
        }
    }
    return false;
}

sft_code sft_shape_size(sft_dtype dtype, const uint64_t *shape, uint32_t rank,
                        uint64_t *elements, uint64_t *bytes, sft_error *err) {
    const sft_dtype_info *info = sft_dtype_describe(dtype);
    uint64_t count = 1, bits;
    if (elements) *elements = 0;
    if (bytes) *bytes = 0;
    if (!info)
        return sfti_misuse(err, "expected a dtype and a shape, found dtype %lld",
                           (long long)dtype);
    if (rank > 0 && !shape)
        return sfti_misuse(err, "expected a dtype and a shape, found no shape");

    /* The product is taken from left to right, up to the first dimension of 0: [0, 2^63, 4] is
     * empty, [2^63, 4, 0] overflows, as the official reader has it. */
    bool fits = true;
    for (uint32_t d = 0; d < rank && fits && count > 0; d++)
        fits = sfti_mul(count, shape[d], &count);
    if (!fits || !sfti_mul(count, info->bits, &bits))
        return sfti_fail(err, SFT_SIZE_OVERFLOW,
                         "expected a shape of at most 2^64 - 1 bits, found more");
    if (bits % 8 != 0)
        return sfti_fail(err, SFT_SIZE_PARTIAL_BYTE, "expected whole bytes, found %llu bits of %s",
                         (unsigned long long)bits, info->name);
    if (elements) *elements = count;
    if (bytes) *bytes = bits / 8;
    return SFT_OK;
}

static size_t shape_put(char *into, size_t cap, size_t at, const char *text, size_t len) {
    for (size_t i = 0; i < len && at + i + 1 < cap; i++) into[at + i] = text[i];
    return at + len;
}

size_t sft_shape_text(const uint64_t *shape, uint32_t rank, char *into, size_t cap) {
    char number[SFTI_UINT_SIZE];
    size_t len = shape_put(into, cap, 0, "[", 1);
    for (uint32_t d = 0; d < rank; d++) {
        if (d > 0) len = shape_put(into, cap, len, ", ", 2);
        len = shape_put(into, cap, len, number, sfti_uint_text(shape[d], 0, number));
    }
    len = shape_put(into, cap, len, "]", 1);
    if (cap > 0) into[len < cap ? len : cap - 1] = '\0';
    return len;
}
