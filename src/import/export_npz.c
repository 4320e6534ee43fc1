/* Tensors as NumPy's archive of arrays. */
#include "import/zip_write.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NPY_ALIGN 64
#define NPY_GROWTH 21 /* digits of the first size, for which numpy leaves space */

/* How numpy writes each dtype; of those that it does not have, how ml_dtypes' arrays are saved. */
typedef struct npz_type {
    const char *descr;
    bool opaque;
} npz_type;

static const npz_type npz_types[] = {
    [SFT_BOOL] = { "|b1", false }, [SFT_U8] = { "|u1", false },  [SFT_I8] = { "|i1", false },
    [SFT_I16] = { "<i2", false },  [SFT_U16] = { "<u2", false }, [SFT_F16] = { "<f2", false },
    [SFT_I32] = { "<i4", false },  [SFT_U32] = { "<u4", false }, [SFT_F32] = { "<f4", false },
    [SFT_C64] = { "<c8", false },  [SFT_F64] = { "<f8", false }, [SFT_I64] = { "<i8", false },
    [SFT_U64] = { "<u8", false },  [SFT_BF16] = { "<V2", true },
    [SFT_F8_E5M2] = { "<V1", true },     [SFT_F8_E4M3] = { "<V1", true },
    [SFT_F8_E8M0] = { "<V1", true },     [SFT_F8_E4M3FNUZ] = { "<V1", true },
    [SFT_F8_E5M2FNUZ] = { "<V1", true },
};

static const char *npz_descr(const sfti_export *x, sft_dtype dtype) {
    if ((unsigned)dtype >= sizeof npz_types / sizeof *npz_types) return NULL;
    const npz_type *type = &npz_types[dtype];
    return !type->opaque || x->options.opaque ? type->descr : NULL;
}

/* The bytes before an array's data, as numpy.save of today writes them. */
static sft_code npz_head(sfti_export *x, const sft_spec *spec, const char *descr, sft_span *out) {
    size_t most = 10 + 80 + (size_t)spec->rank * 22 + NPY_GROWTH + NPY_ALIGN, n = 10;
    uint64_t first = spec->rank > 0 ? spec->shape[0] : 0;
    char *text = sfti_arena_array(&x->arena, most, 1);
    if (!text) return sfti_fail_memory(x->err, most);
    n += (size_t)snprintf(text + n, most - n, "{'descr': '%s', 'fortran_order': False, 'shape': (",
                          descr);
    for (uint32_t d = 0; d < spec->rank; d++)
        n += (size_t)snprintf(text + n, most - n, "%" PRIu64 "%s", spec->shape[d],
                              d + 1 < spec->rank ? ", " : spec->rank == 1 ? "," : "");
    n += (size_t)snprintf(text + n, most - n, "), }");
    size_t spaces = spec->rank > 0 ? NPY_GROWTH : 0;
    for (; spaces > 0 && (first > 0 || spaces == NPY_GROWTH); first /= 10) spaces--;
    spaces += NPY_ALIGN - (n + spaces + 1) % NPY_ALIGN;
    memset(text + n, ' ', spaces);
    n += spaces;
    text[n++] = '\n';
    memcpy(text, "\x93NUMPY\1\0", 8);
    text[8] = (char)((n - 10) & 0xff);
    text[9] = (char)((n - 10) >> 8);
    *out = (sft_span){ text, n };
    return SFT_OK;
}

sft_code sft_export_npz(const sft_part *parts, size_t count, const sft_export_options *options,
                        sft_sink sink, const sft_job *job, sft_error *err) {
    sfti_export x;
    sft_code code = sfti_export_begin(&x, parts, count, 0, options, job, err);
    for (size_t i = 0; !code && i < count; i++) {
        const char *descr = npz_descr(&x, parts[i].spec.dtype);
        sft_span head;
        if (!descr) code = sfti_export_refuse(&x, &parts[i], "NumPy");
        else code = npz_head(&x, &parts[i].spec, descr, &head);
        if (!code) code = sfti_export_add(&x, "", parts[i].spec.name, ".npy", head, &parts[i]);
    }
    return sfti_export_end(&x, code, SFTI_ZIP_NUMPY, sink);
}
