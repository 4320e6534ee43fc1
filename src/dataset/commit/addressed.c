/* Masks and places of a version are made, put and removed. Tests: test_dataset_delete.c,
 * test_dataset_add.c. */
#include "dataset/commit/addressed.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "base/json_lex.h"
#include "base/order.h"

#include <string.h>

/* ── One file ── */

typedef struct addressed_tensor {
    const char *name;
    sft_dtype dtype;
    uint32_t rank;
    uint64_t shape[2];
    sft_buffer data;
} addressed_tensor;

/* Takes the tensors' data. good: there was memory for all of it. */
static sft_code addressed_make(addressed_tensor *tensors, size_t count, bool good,
                               const char *mode, const char *commit, const sft_allocator *alloc,
                               sft_buffer *bytes, char sha256[65], sft_error *err) {
    sft_part parts[4];
    sft_source sources[4];
    const sft_pair metadata[] = {
        { sft_span_cstr(SFTI_DATASET_MARK), sft_span_cstr("1") },
        { sft_span_cstr("attempt"), sft_span_cstr(commit) },
        { sft_span_cstr("commit"), sft_span_cstr(commit) },
        { sft_span_cstr("mode"), sft_span_cstr(mode) },
    };
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    options.alloc = alloc;
    bytes->len = 0;
    for (size_t i = 0; i < count; i++) {
        const addressed_tensor *t = &tensors[i];
        sources[i] = sft_source_memory(t->data.data, t->data.len);
        parts[i] = (sft_part){ { sft_span_cstr(t->name), t->dtype, t->rank, t->shape },
                               &sources[i], 0 };
    }
    sft_code code = good ? sft_save_parts(parts, count, metadata, 4, &options,
                                          sft_sink_memory(bytes), NULL, err)
                         : sfti_fail_memory(err, 0);
    if (!code) code = sfti_ds_digest((sft_span){ bytes->data, bytes->len }, alloc, sha256, err);
    for (size_t i = 0; i < count; i++) sft_buffer_free(&tensors[i].data);
    return code;
}

static bool addressed_number(sft_buffer *to, uint64_t value) {
    char number[8];
    sfti_put_u64(number, value);
    return sfti_buffer_put(to, number, sizeof number);
}

static bool addressed_text(sft_buffer *to, const char *text) {
    return sfti_buffer_put(to, text, strlen(text) + 1);
}

/* ── Masks ── */

static int masks_order(const void *masks, uint32_t a, uint32_t b) {
    const sfti_ds_mask *all = masks;
    return strcmp(all[a].shard, all[b].shard);
}

sft_code sfti_ds_masks_make(const sfti_ds_mask *mask, size_t count, const char *commit,
                            const sft_allocator *alloc, sft_buffer *bytes, sfti_ds_masks *out,
                            sft_error *err) {
    addressed_tensor t[] = { { "bits", SFT_U64, 1, { count }, { .alloc = *alloc } },
                             { "deleted", SFT_U64, 1, { count }, { .alloc = *alloc } },
                             { "masks", SFT_U8, 1, { 0 }, { .alloc = *alloc } },
                             { "names", SFT_U8, 1, { 0 }, { .alloc = *alloc } } };
    sfti_arena arena = { .alloc = *alloc };
    *out = (sfti_ds_masks){ .shards = count };
    bytes->len = 0;
    if (!count) return SFT_OK;
    const uint32_t *order = sfti_arena_sorted(&arena, count, masks_order, mask);
    bool good = order != NULL;
    for (size_t i = 0; good && i < count; i++) {
        const sfti_ds_mask *m = &mask[order[i]];
        sfti_total_add(&out->deleted, m->deleted);
        good = addressed_number(&t[0].data, m->bits) && addressed_number(&t[1].data, m->deleted) &&
               sfti_buffer_put(&t[2].data, m->at, (size_t)sfti_ds_mask_bytes(m->bits)) &&
               addressed_text(&t[3].data, m->shard);
    }
    sfti_arena_free(&arena);
    t[2].shape[0] = t[2].data.len;
    t[3].shape[0] = t[3].data.len;
    sft_code code =
        addressed_make(t, 4, good, "masks", commit, alloc, bytes, out->sha256, err);
    out->bytes = bytes->len;
    return code;
}

/* ── Places ── */

static int places_order(const void *places, uint32_t a, uint32_t b) {
    const sfti_ds_place *all = places;
    const int order = strcmp(all[a].shard, all[b].shard);
    return order ? order : strcmp(all[a].column, all[b].column);
}

static bool addressed_digest(sft_buffer *to, const char *hex) {
    char digest[SFTI_PLACES_DIGEST] = { 0 };
    for (size_t k = 0; hex && k < SFTI_PLACES_DIGEST; k++)
        digest[k] = (char)(16 * sfti_lex_hex_digit(hex[2 * k]) +
                           sfti_lex_hex_digit(hex[2 * k + 1]));
    return sfti_buffer_put(to, digest, sizeof digest);
}

sft_code sfti_ds_places_make(const sfti_ds_place *place, size_t count, const char *commit,
                             const sft_allocator *alloc, sft_buffer *bytes, sfti_ds_places *out,
                             sft_error *err) {
    addressed_tensor t[] = {
        { "bytes", SFT_U64, 1, { count }, { .alloc = *alloc } },
        { "sha256", SFT_U8, 2, { count, SFTI_PLACES_DIGEST }, { .alloc = *alloc } },
        { "names", SFT_U8, 1, { 0 }, { .alloc = *alloc } },
    };
    sfti_arena arena = { .alloc = *alloc };
    *out = (sfti_ds_places){ .count = count };
    bytes->len = 0;
    if (!count) return SFT_OK;
    const uint32_t *order =
        count > UINT32_MAX / 2 ? NULL : sfti_arena_sorted(&arena, count, places_order, place);
    bool good = order != NULL;
    for (size_t i = 0; good && i < count; i++) {
        const sfti_ds_place *p = &place[order[i]];
        good = addressed_number(&t[0].data, p->bytes) && addressed_digest(&t[1].data, p->sha256) &&
               addressed_text(&t[2].data, p->shard) && addressed_text(&t[2].data, p->column) &&
               addressed_text(&t[2].data, p->file ? p->file : "");
    }
    sfti_arena_free(&arena);
    t[2].shape[0] = t[2].data.len;
    sft_code code =
        addressed_make(t, 3, good, "columns", commit, alloc, bytes, out->sha256, err);
    out->bytes = bytes->len;
    return code;
}

/* ── In the folder ── */

sft_code sfti_ds_addressed_put(const sft_storage *storage, const char *kind, const char *sha256,
                               const sft_buffer *bytes, sft_error *err) {
    char name[SFTI_SEGMENT_FILE_NAME];
    if (!bytes->len) return SFT_OK;
    sfti_ds_addressed_name(kind, sha256, name);
    return sfti_ds_put(storage, name, (sft_span){ bytes->data, bytes->len }, err);
}

void sfti_ds_addressed_remove(const sft_storage *storage, const char *kind, const char *sha256,
                              const sft_buffer *bytes) {
    char name[SFTI_SEGMENT_FILE_NAME];
    sft_error ignored;
    sfti_ds_addressed_name(kind, sha256, name);
    if (bytes->len) (void)sfti_call(storage, remove, name, false, &ignored);
}

void sfti_ds_removal_addressed(sfti_ds_removal *r, const sfti_ds_manifest *old,
                               const sfti_ds_manifest *next) {
    const char *const files[][3] = {
        { SFTI_MASKS_FILE, old->masks.sha256, next->masks.sha256 },
        { SFTI_PLACES_FILE, old->places.sha256, next->places.sha256 },
    };
    char name[SFTI_SEGMENT_FILE_NAME];
    for (size_t i = 0; i < 2; i++) {
        if (!*files[i][1] || strcmp(files[i][1], files[i][2]) == 0) continue;
        sfti_ds_addressed_name(files[i][0], files[i][1], name);
        sfti_ds_removal_of(r, name);
    }
}

void sfti_ds_removal_columns(sfti_ds_removal *r, const sfti_ds_manifest *old, const char *shard) {
    size_t count;
    const sfti_ds_place *of = sfti_ds_places_of(&old->places, shard, &count);
    for (size_t i = 0; i < count; i++) {
        if (sfti_ds_place_first(of, i)) sfti_ds_removal_of(r, of[i].file);
    }
}
