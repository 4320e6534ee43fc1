/* What both exports do before they write. */
#include "base/names.h"
#include "base/options.h"
#include "base/utf8.h"
#include "bytes/source.h"
#include "formats/zip/zip_write.h"
#include "os/io.h"

#include <string.h>

#define EXPORT_NAME_MOST 60000 /* a zip archive's names have at most 65,535 bytes */

static SFTI_OPTIONS_TAKE(take_export, sft_export_options, SFT_EXPORT_OPTIONS_INIT, alloc)

static sft_span name_of_part(const void *ctx, uint32_t i) {
    return ((const sft_part *)ctx)[i].spec.name;
}

sft_code sfti_export_begin(sfti_export *x, const sft_part *parts, size_t count, size_t more,
                           const sft_export_options *options, const sft_job *job,
                           sft_error *err) {
    memset(x, 0, sizeof *x);
    x->err = err;
    sft_code code = take_export(options, &x->options, err);
    if (!code) code = sfti_take_job(job, &x->job, err);
    x->arena.alloc = sfti_allocator(x->options.alloc);
    if (code) return code;
    x->members = sfti_arena_array(&x->arena, (uint64_t)count + more, sizeof *x->members);
    if (!x->members) return sfti_fail_memory(err, count * sizeof *x->members);
    if (!sfti_names_draw(&x->names, count, name_of_part, parts, &x->arena))
        return sfti_fail_memory(x->err, count * sizeof(sfti_slot));
    for (uint32_t i = 0; i < count; i++) {
        sft_span name = parts[i].spec.name;
        if (sfti_utf8_check(name.data, name.len) < name.len)
            return sfti_fail_tensor(x->err, SFT_FOREIGN_NAME, SFT_NO_OFFSET, name,
                                    "expected a name in UTF-8, found other bytes");
        if (!sfti_source_usable(parts[i].source))
            return sfti_fail_tensor(x->err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET, name,
                                    "expected a source of bytes, found none");
        if (parts[i].spec.rank > SFT_MAX_RANK)
            return sfti_fail_tensor(x->err, SFT_RANK_TOO_LARGE, SFT_NO_OFFSET, name,
                                    "expected at most %d dimensions, found %u", SFT_MAX_RANK,
                                    parts[i].spec.rank);
        if (sfti_names_add(&x->names, name, i) != i)
            return sfti_fail_tensor(x->err, SFT_TENSOR_DUPLICATE, SFT_NO_OFFSET, name,
                                    "expected each name once, found it twice");
    }
    return SFT_OK;
}

sft_code sfti_export_add(sfti_export *x, const char *folder, sft_span name, const char *suffix,
                         sft_span head, const sft_part *part) {
    size_t before = strlen(folder), after = strlen(suffix);
    if (name.len > EXPORT_NAME_MOST || (name.len > 0 && memchr(name.data, '\0', name.len)))
        return sfti_fail_tensor(x->err, SFT_FOREIGN_NAME, SFT_NO_OFFSET, name,
                                "expected a name that a zip archive can hold, found one with a "
                                "NUL byte or of more than 60,000 bytes");
    char *text = sfti_arena_array(&x->arena, before + name.len + after, 1);
    if (!text) return sfti_fail_memory(x->err, name.len);
    memcpy(text, folder, before);
    if (name.len > 0) memcpy(text + before, name.data, name.len);
    memcpy(text + before + name.len, suffix, after);
    sfti_zip_member *m = &x->members[x->count++];
    *m = (sfti_zip_member){ .name = { text, before + name.len + after }, .head = head,
                            .part = part };
    if (!part) return SFT_OK;
    sft_code code = sft_shape_size(part->spec.dtype, part->spec.shape, part->spec.rank, NULL,
                                   &m->bytes, x->err);
    if (code && x->err) sfti_error_tensor(x->err, part->spec.name);
    return code;
}

sft_code sfti_export_refuse(sfti_export *x, const sft_part *part, const char *library) {
    const sft_dtype_info *info = sft_dtype_describe(part->spec.dtype);
    return sfti_fail_tensor(x->err, SFT_CAST_DTYPE, SFT_NO_OFFSET, part->spec.name,
                            "expected a dtype that %s has, found %s", library,
                            info ? info->name : "a number that is none");
}

sft_code sfti_export_end(sfti_export *x, sft_code code, sfti_zip_layout layout, sft_sink sink) {
    if (code) sft_sink_abandon(&sink);
    else
        code = sfti_zip_write(x->members, x->count, layout, sink, &x->arena.alloc, &x->job,
                              x->err);
    sfti_arena_free(&x->arena);
    return code;
}
