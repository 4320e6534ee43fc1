/* Tensors as NumPy's archive of arrays. */
#include "base/npy.h"
#include "import/zip_write.h"

/* Of dtypes that NumPy does not have: how it saves ml_dtypes' arrays. */
static const char *opaque_code(sft_dtype dtype) {
    const sft_dtype_info *info = sft_dtype_describe(dtype);
    unsigned bits = info ? info->bits : 0;
    return bits == 16 ? "<V2" : bits == 8 ? "<V1" : NULL;
}

static sft_code npz_head(sfti_export *x, const sft_part *part, sft_span *out) {
    const sft_spec *spec = &part->spec;
    const char *code = sfti_npy_code(spec->dtype);
    char head[SFTI_NPY_SIZE];
    if (!code && x->options.opaque) code = opaque_code(spec->dtype);
    if (!code) return sfti_export_refuse(x, part, "NumPy");
    size_t len = sfti_npy_head(code, spec->shape, spec->rank, head);
    *out = (sft_span){ sfti_arena_copy(&x->arena, head, len), len };
    return out->data ? SFT_OK : sfti_fail_memory(x->err, len);
}

sft_code sft_export_npz(const sft_part *parts, size_t count, const sft_export_options *options,
                        sft_sink sink, const sft_job *job, sft_error *err) {
    sfti_export x;
    sft_code code = sfti_export_begin(&x, parts, count, 0, options, job, err);
    for (size_t i = 0; !code && i < count; i++) {
        sft_span head = { NULL, 0 };
        code = npz_head(&x, &parts[i], &head);
        if (!code) code = sfti_export_add(&x, "", parts[i].spec.name, ".npy", head, &parts[i]);
    }
    return sfti_export_end(&x, code, SFTI_ZIP_NUMPY, sink);
}
