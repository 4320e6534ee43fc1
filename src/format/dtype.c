#include "base/checked.h"
#include "base/error.h"
#include "safetensors.h"

#include <string.h>

/* In the official sort order; position = sft_dtype. */
static const sft_dtype_info dtype_table[SFT_DTYPE_COUNT] = {
    { "BOOL", 8, SFT_KIND_BOOL },
    { "F4", 4, SFT_KIND_FLOAT },
    { "F6_E2M3", 6, SFT_KIND_FLOAT },
    { "F6_E3M2", 6, SFT_KIND_FLOAT },
    { "U8", 8, SFT_KIND_UINT },
    { "I8", 8, SFT_KIND_INT },
    { "F8_E5M2", 8, SFT_KIND_FLOAT },
    { "F8_E4M3", 8, SFT_KIND_FLOAT },
    { "F8_E8M0", 8, SFT_KIND_FLOAT },
    { "F8_E4M3FNUZ", 8, SFT_KIND_FLOAT },
    { "F8_E5M2FNUZ", 8, SFT_KIND_FLOAT },
    { "I16", 16, SFT_KIND_INT },
    { "U16", 16, SFT_KIND_UINT },
    { "F16", 16, SFT_KIND_FLOAT },
    { "BF16", 16, SFT_KIND_FLOAT },
    { "I32", 32, SFT_KIND_INT },
    { "U32", 32, SFT_KIND_UINT },
    { "F32", 32, SFT_KIND_FLOAT },
    { "C64", 64, SFT_KIND_COMPLEX },
    { "F64", 64, SFT_KIND_FLOAT },
    { "I64", 64, SFT_KIND_INT },
    { "U64", 64, SFT_KIND_UINT },
};

const sft_dtype_info *sft_dtype_describe(sft_dtype dtype) {
    return (unsigned)dtype < SFT_DTYPE_COUNT ? &dtype_table[dtype] : NULL;
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

/* The product is taken from left to right and stops at nothing: [0, 2^63, 4] is empty,
 * [2^63, 4, 0] overflows, as the official reader has it. */
static bool count_elements(const uint64_t *shape, uint32_t rank, uint64_t *out) {
    uint64_t product = 1;
    for (uint32_t d = 0; d < rank; d++)
        if (!sfti_mul(product, shape[d], &product)) return false;
    *out = product;
    return true;
}

sft_code sft_shape_size(sft_dtype dtype, const uint64_t *shape, uint32_t rank,
                        uint64_t *elements, uint64_t *bytes, sft_error *err) {
    const sft_dtype_info *info = sft_dtype_describe(dtype);
    uint64_t count, bits;
    if (elements) *elements = 0;
    if (bytes) *bytes = 0;
    if (!info || (rank > 0 && !shape))
        return sfti_fail(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET,
                         "expected a dtype and a shape, found %s", info ? "no shape" : "none");
    if (!count_elements(shape, rank, &count) || !sfti_mul(count, info->bits, &bits))
        return sfti_fail(err, SFT_SIZE_OVERFLOW, SFT_NO_OFFSET,
                         "expected a shape of at most 2^64 - 1 bits, found more");
    if (bits % 8 != 0)
        return sfti_fail(err, SFT_SIZE_PARTIAL_BYTE, SFT_NO_OFFSET,
                         "expected whole bytes, found %llu bits of %s",
                         (unsigned long long)bits, info->name);
    if (elements) *elements = count;
    if (bytes) *bytes = bits / 8;
    return SFT_OK;
}
