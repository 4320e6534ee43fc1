/* The header of a NumPy array. Tests: test_import_npy.c. */
#include "formats/arrays/npy_head.h"

#include "base/number.h"

#include <string.h>

#define NPY_ALIGN 64
#define NPY_GROWTH 21 /* digits of the first size, for which numpy leaves space */

static const sfti_npy_type npy_types[] = {
    { "|b1", SFT_BOOL, 0, false }, { "|i1", SFT_I8, 0, false },  { "|u1", SFT_U8, 0, false },
    { "<i2", SFT_I16, 2, false },  { "<u2", SFT_U16, 2, false }, { "<i4", SFT_I32, 4, false },
    { "<u4", SFT_U32, 4, false },  { "<i8", SFT_I64, 8, false }, { "<u8", SFT_U64, 8, false },
    { "<f2", SFT_F16, 2, false },  { "<f4", SFT_F32, 4, false }, { "<f8", SFT_F64, 8, false },
    { "<c8", SFT_C64, 4, false },  { "|V1", SFT_U8, 0, true },   { "<V2", SFT_U16, 2, true },
};

const sfti_npy_type *sfti_npy_type_named(sft_span code) {
    for (size_t i = 0; i < sizeof npy_types / sizeof *npy_types; i++)
        if (sft_span_equal(code, sft_span_cstr(npy_types[i].code + 1))) return &npy_types[i];
    return NULL;
}

const char *sfti_npy_code(sft_dtype dtype) {
    for (size_t i = 0; i < sizeof npy_types / sizeof *npy_types; i++) /* opaque ones come last */
        if (npy_types[i].dtype == dtype) return npy_types[i].code;
    return NULL;
}

static char *npy_put(char *at, const char *text) {
    size_t len = strlen(text);
    memcpy(at, text, len);
    return at + len;
}

size_t sfti_npy_head(const char *code, const uint64_t *shape, uint32_t rank,
                     char out[SFTI_NPY_SIZE]) {
    char digits[SFTI_UINT_SIZE];
    char *at = npy_put(out + 10, "{'descr': '");
    at = npy_put(at, code);
    at = npy_put(at, "', 'fortran_order': False, 'shape': (");
    for (uint32_t d = 0; d < rank; d++) {
        at += sfti_uint_text(shape[d], 0, at);
        at = npy_put(at, d + 1 < rank ? ", " : rank == 1 ? "," : "");
    }
    at = npy_put(at, "), }");
    size_t n = (size_t)(at - out);
    size_t spaces = rank > 0 ? NPY_GROWTH - sfti_uint_text(shape[0], 0, digits) : 0;
    spaces += NPY_ALIGN - (n + spaces + 1) % NPY_ALIGN;
    memset(out + n, ' ', spaces);
    n += spaces;
    out[n++] = '\n';
    memcpy(out, "\x93NUMPY\1\0", 8);
    out[8] = (char)((n - 10) & 0xff);
    out[9] = (char)((n - 10) >> 8);
    return n;
}
