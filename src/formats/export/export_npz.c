/* Tensors as NumPy's archive of arrays. */
#include "formats/arrays/npy_head.h"
#include "base/portable.h"
#include "formats/zip/zip_write.h"

#include <string.h>

static sft_code npz_head(sfti_export *x, const sft_part *part, sft_span *out) {
    const sft_spec *spec = &part->spec;
    const sft_dtype_info *info = sft_dtype_describe(spec->dtype);
    const char *code = sfti_npy_code(spec->dtype);
    char head[SFTI_NPY_SIZE];
    /* Dtypes that NumPy does not have, as it saves ml_dtypes' arrays. */
    if (!code && x->options.opaque && info)
        code = info->bits == 16 ? "<V2" : info->bits == 8 ? "<V1" : NULL;
    if (!code) return sfti_export_refuse(x, part, "NumPy");
    size_t len = sfti_npy_head(code, spec->shape, spec->rank, head);
    *out = (sft_span){ sfti_arena_copy(&x->arena, head, len), len };
    return out->data ? SFT_OK : sfti_fail_memory(x->err, len);
}

/* Names of entries, which unzip makes paths of. And numpy.load gives the array of an entry's name
 * where that is also what another entry's name begins with: "a" of a.npy for a.npy.npy. */
static sft_code npz_name(sfti_export *x, sft_span entry, const sft_part *part) {
    static const char end[] = ".npy.npy";
    sft_span name = part->spec.name;
    if (!sfti_name_inside(entry))
        return sfti_fail_tensor(x->err, SFT_FOREIGN_NAME, SFT_NO_OFFSET, name,
                                "expected a name that stays in a folder when the archive is "
                                "unpacked, found one that leads out of it, is absolute or has an "
                                "empty part, a backslash or a drive");
    if (entry.len < sizeof end - 1 || memcmp(entry.data + entry.len - (sizeof end - 1), end,
                                             sizeof end - 1) != 0)
        return SFT_OK;
    name.len -= 4;
    if (sfti_names_find(&x->names, name) == SFTI_NO_NAME) return SFT_OK;
    return sfti_fail_tensor(x->err, SFT_FOREIGN_NAME, SFT_NO_OFFSET, part->spec.name,
                            "expected names that numpy.load tells apart, found \"%.*s\" and the "
                            "same with .npy", SFTI_CLIP(name, 200));
}

sft_code sft_export_npz(const sft_part *parts, size_t count, const sft_export_options *options,
                        sft_sink sink, const sft_job *job, sft_error *err) {
    sfti_export x;
    sft_code code = sfti_export_begin(&x, parts, count, 0, options, job, err);
    for (size_t i = 0; !code && i < count; i++) {
        sft_span head = { NULL, 0 };
        code = npz_head(&x, &parts[i], &head);
        if (!code) code = sfti_export_add(&x, "", parts[i].spec.name, ".npy", head, &parts[i]);
        if (!code) code = npz_name(&x, x.members[i].name, &parts[i]);
    }
    return sfti_export_end(&x, code, SFTI_ZIP_NUMPY, sink);
}
