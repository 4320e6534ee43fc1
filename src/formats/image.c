/* An import as a set: the file that saving would write, as a source. */
#include "base/announce.h"
#include "base/options.h"
#include "formats/parts/state.h"

#include <string.h>

/* The file that saving would write, as a source: the head of its plan, then each tensor's bytes
 * from its part. */
typedef struct image {
    sfti_import *im;
    sft_plan *plan;
    sft_span head;
    uint32_t *part_at; /* of the plan's tensors, in file order: the import's part */
} image;

/* The plan's tensor that has the byte, of those that have bytes. */
static size_t image_find(const image *m, uint64_t offset) {
    uint64_t data = offset - m->head.len;
    size_t low = 0, high = sft_plan_tensor_count(m->plan);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (sft_plan_tensor_at(m->plan, middle)->end <= data) low = middle + 1;
        else high = middle;
    }
    return low;
}

static sft_code read_image(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                           sft_error *err) {
    const image *m = ctx;
    *got = 0;
    if (offset < m->head.len) {
        *got = m->head.len - (size_t)offset < len ? m->head.len - (size_t)offset : len;
        memcpy(into, m->head.data + offset, *got);
        if (*got == len) return SFT_OK;
    }
    for (size_t i = image_find(m, offset + *got); *got < len; i++) {
        const sft_tensor *tensor = sft_plan_tensor_at(m->plan, i);
        if (!tensor) break;
        if (tensor->begin == tensor->end) continue;
        const sft_part *part = &m->im->parts.at[m->part_at[i]];
        uint64_t inside = offset + *got - tensor->offset;
        uint64_t left = tensor->end - tensor->begin - inside;
        size_t some = left < len - *got ? (size_t)left : len - *got;
        sft_code code = sfti_import_exact(part->source, part->begin + inside, (char *)into + *got,
                                          some, err);
        if (code) return code;
        *got += some;
    }
    return SFT_OK;
}

static void expect_image(void *ctx, const sft_run *runs, size_t count) {
    const image *m = ctx;
    sfti_announcement all = { .count = 0 };
    for (size_t n = 0; n < count; n++) {
        uint64_t at = runs[n].offset, end = at + runs[n].len;
        if (at < m->head.len) at = m->head.len;
        for (size_t i = image_find(m, at); at < end; i++) {
            const sft_tensor *tensor = sft_plan_tensor_at(m->plan, i);
            if (!tensor) break;
            const sft_part *part = &m->im->parts.at[m->part_at[i]];
            uint64_t inside = at - tensor->offset, last = tensor->offset + tensor->end
                                                          - tensor->begin;
            if (last > end) last = end;
            if (last <= at) continue;
            sfti_announce(&all, part->source, part->begin + inside, last - at);
            at = last;
        }
    }
    sfti_announce_end(&all);
}

static void close_image(void *ctx) {
    image *m = ctx;
    sft_plan_free(m->plan);
    sft_import_close(m->im); /* which holds the image, too */
}

static uint32_t mode_image(void *ctx) {
    return sfti_import_mode(((const image *)ctx)->im);
}

static const sft_source_vtable image_source_vtable = {
    sizeof(sft_source_vtable), read_image, close_image, expect_image, mode_image
};

static sft_code plan_image(sfti_import *im, image *m, sft_error *err) {
    size_t count = im->parts.count;
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    options.alloc = &im->budget.own;
    sft_spec *specs = sfti_arena_array(&im->arena, count, sizeof *specs);
    m->part_at = sfti_arena_array(&im->arena, count, sizeof *m->part_at);
    if (!specs || !m->part_at) return sfti_fail_memory(err, count * sizeof *specs);
    for (size_t i = 0; i < count; i++) specs[i] = im->parts.at[i].spec;
    sft_code code = sft_plan_new(specs, count, im->metadata.at, im->metadata.count, &options,
                                 &m->plan, err);
    if (code) return code;
    for (size_t i = 0; i < count; i++) m->part_at[sft_plan_position(m->plan, i)] = (uint32_t)i;
    m->head = sft_plan_head(m->plan);
    return SFT_OK;
}

sft_code sft_import_set(sft_import *import, const char *path, sft_set **out, sft_error *err) {
    sft_file *file;
    *out = NULL;
    image *m = sfti_arena_take(&import->arena, sizeof *m);
    sft_code code = m ? SFT_OK : sfti_fail_memory(err, sizeof *m);
    if (!code) *m = (image){ .im = import };
    if (!code) code = plan_image(import, m, err);
    if (code) {
        sft_import_close(import);
        return code;
    }
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    options.alloc = &import->budget.own;
    sft_source source = { m, &image_source_vtable, sft_plan_total(m->plan), NULL, false };
    code = sft_open_source(source, &options, &file, err);
    return code ? code : sft_set_from_file(file, path, out, err);
}

sft_code sft_import_open_set(const char *path, const sft_open_options *options, sft_set **out,
                             sft_error *err) {
    sft_import_options own = SFT_IMPORT_OPTIONS_INIT;
    sft_open_options open;
    sft_import *import;
    *out = NULL;
    sft_code code = sfti_take_open(options, &open, err);
    own.alloc = open.alloc;
    own.files = open.files;
    if (!code) code = sft_import_open(path, &own, &import, err);
    return code ? code : sft_import_set(import, path, out, err);
}
