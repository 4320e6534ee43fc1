/* Masks of a version are made and put. Tests: test_dataset_delete.c. */
#include "dataset/commit/masks.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"

#include <string.h>

enum { MASKS_BITS, MASKS_DELETED, MASKS_BYTES, MASKS_NAMES, MASKS_COLUMNS };

typedef struct masks_writer {
    const sfti_ds_mask *mask;
    size_t count;
    sft_plan *plan;
    sft_writer *writer;
    sft_error *err;
} masks_writer;

static sft_code masks_columns(const masks_writer *w) {
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < w->count; i++) {
        const sfti_ds_mask *m = &w->mask[i];
        char number[8];
        sfti_put_u64(number, m->bits);
        code = sft_writer_put(w->writer, sft_plan_position(w->plan, MASKS_BITS), number, 8, w->err);
    }
    for (size_t i = 0; !code && i < w->count; i++) {
        char number[8];
        sfti_put_u64(number, w->mask[i].deleted);
        code = sft_writer_put(w->writer, sft_plan_position(w->plan, MASKS_DELETED), number, 8,
                              w->err);
    }
    for (size_t i = 0; !code && i < w->count; i++)
        code = sft_writer_put(w->writer, sft_plan_position(w->plan, MASKS_BYTES), w->mask[i].at,
                              (size_t)sfti_ds_mask_bytes(w->mask[i].bits), w->err);
    for (size_t i = 0; !code && i < w->count; i++)
        code = sft_writer_put(w->writer, sft_plan_position(w->plan, MASKS_NAMES), w->mask[i].shard,
                              strlen(w->mask[i].shard) + 1, w->err);
    return code;
}

sft_code sfti_ds_masks_make(const sfti_ds_mask *mask, size_t count, const char *commit,
                            const sft_allocator *alloc, sft_buffer *bytes, sfti_ds_masks *out,
                            sft_error *err) {
    masks_writer w = { .mask = mask, .count = count, .err = err };
    uint64_t shards[1] = { count }, size[1] = { 0 }, names[1] = { 0 };
    *out = (sfti_ds_masks){ .shards = count };
    if (!count) return SFT_OK;
    for (size_t i = 0; i < count; i++) {
        sfti_total_add(size, sfti_ds_mask_bytes(mask[i].bits));
        sfti_total_add(names, strlen(mask[i].shard) + 1);
        sfti_total_add(&out->deleted, mask[i].deleted);
    }
    const sft_spec specs[MASKS_COLUMNS] = {
        [MASKS_BITS] = { sft_span_cstr("bits"), SFT_U64, 1, shards },
        [MASKS_DELETED] = { sft_span_cstr("deleted"), SFT_U64, 1, shards },
        [MASKS_BYTES] = { sft_span_cstr("masks"), SFT_U8, 1, size },
        [MASKS_NAMES] = { sft_span_cstr("names"), SFT_U8, 1, names },
    };
    const sft_pair metadata[] = {
        { sft_span_cstr(SFTI_DATASET_MARK), sft_span_cstr("1") },
        { sft_span_cstr("attempt"), sft_span_cstr(commit) },
        { sft_span_cstr("commit"), sft_span_cstr(commit) },
        { sft_span_cstr("mode"), sft_span_cstr("masks") },
    };
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    options.alloc = alloc;
    bytes->len = 0;
    sft_code code = sft_plan_new(specs, MASKS_COLUMNS, metadata, 4, &options, &w.plan, err);
    if (!code) code = sft_writer_begin(w.plan, sft_sink_memory(bytes), &w.writer, err);
    if (!code) {
        code = masks_columns(&w);
        if (code) sft_writer_abandon(w.writer);
        else code = sft_writer_finish(w.writer, err);
    }
    sft_plan_free(w.plan);
    out->bytes = bytes->len;
    if (code) return code;
    return sfti_ds_digest((sft_span){ bytes->data, bytes->len }, alloc, out->sha256, err);
}

sft_code sfti_ds_masks_put(const sfti_ds_masks *masks, const sft_storage *storage,
                           const sft_buffer *bytes, sft_error *err) {
    char name[SFTI_SEGMENT_FILE_NAME];
    if (!*masks->sha256) return SFT_OK;
    sfti_ds_masks_name(masks->sha256, name);
    return sfti_ds_put(storage, name, (sft_span){ bytes->data, bytes->len }, err);
}

void sfti_ds_masks_remove(const sfti_ds_masks *masks, const sft_storage *storage) {
    char name[SFTI_SEGMENT_FILE_NAME];
    sft_error ignored;
    if (!*masks->sha256) return;
    sfti_ds_masks_name(masks->sha256, name);
    (void)sfti_call(storage, remove, name, false, &ignored);
}
