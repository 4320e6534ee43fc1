/* Masks are read and asked. Tests: test_dataset_delete.c. */
#include "dataset/read/masks.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"

#include <string.h>

/* ── Asking ── */

const sfti_ds_mask *sfti_ds_mask_find(const sfti_ds_masks *masks, const char *shard) {
    size_t low = 0, high = masks->mask ? (size_t)masks->shards : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(masks->mask[middle].shard, shard);
        if (order == 0) return &masks->mask[middle];
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return NULL;
}

uint64_t sfti_ds_mask_next(const sfti_ds_mask *mask, uint64_t bit, uint64_t end) {
    while (bit < end && sfti_ds_mask_has(mask, bit)) {
        bool full = bit % 8 == 0 && mask->at[bit / 8] == 0xff;
        bit += full ? 8 : 1;
    }
    return bit < end ? bit : end;
}

uint64_t sfti_ds_mask_run(const sfti_ds_mask *mask, uint64_t at, uint64_t end, uint64_t *begin) {
    *begin = mask ? sfti_ds_mask_next(mask, at, end) : at;
    if (!mask) return end;
    uint64_t stop = *begin;
    while (stop < end && !sfti_ds_mask_has(mask, stop)) stop++;
    return stop;
}

/* ── Reading ── */

static sft_code masks_wrong(const char *what, const char *expected, const char *found,
                            sft_error *err) {
    return sfti_fail(err, SFT_DATASET_SHARD, "%s: expected %s, found %s", what, expected, found);
}

/* False: they are not as masks.h says. */
static bool masks_fill(const sft_file *file, const char *bytes, sfti_ds_masks *masks,
                       sfti_ds_mask *all) {
    const sft_tensor *bits = sfti_ds_addressed_tensor(file, "bits", SFT_U64, 1);
    const sft_tensor *deleted = sfti_ds_addressed_tensor(file, "deleted", SFT_U64, 1);
    const sft_tensor *marks = sfti_ds_addressed_tensor(file, "masks", SFT_U8, 1);
    const sft_tensor *texts = sfti_ds_addressed_tensor(file, "names", SFT_U8, 1);
    if (!bits || !deleted || !marks || !texts || bits->shape[0] != masks->shards ||
        deleted->shape[0] != masks->shards)
        return false;
    const char *at = bytes + marks->offset, *names = bytes + texts->offset;
    uint64_t len = marks->shape[0], names_len = texts->shape[0], total = 0;
    for (size_t i = 0; i < masks->shards; i++) {
        sfti_ds_mask *m = &all[i];
        const char *nul = memchr(names, '\0', (size_t)names_len);
        if (!nul) return false;
        const sft_span name = { names, (size_t)(nul - names) };
        *m = (sfti_ds_mask){ names, sfti_get_u64(bytes + bits->offset + 8 * i),
                             sfti_get_u64(bytes + deleted->offset + 8 * i), (const uint8_t *)at };
        const uint64_t size = sfti_ds_mask_bytes(m->bits);
        if (!sfti_ds_is_bare(name) || size > len) return false;
        if (i && strcmp(all[i - 1].shard, m->shard) >= 0) return false;
        if (m->bits % 8 && m->at[size - 1] >> m->bits % 8) return false;
        uint64_t set = 0;
        for (uint64_t k = 0; k < size; k++)
            for (unsigned byte = m->at[k]; byte; byte &= byte - 1) set++;
        if (set != m->deleted || !set) return false;
        sfti_total_add(&total, set);
        at += size;
        len -= size;
        names_len -= name.len + 1;
        names = nul + 1;
    }
    return len == 0 && names_len == 0 && total == masks->deleted;
}

sft_code sfti_ds_masks_read(const sft_storage *storage, sfti_arena *arena, sfti_ds_masks *masks,
                            sft_error *err) {
    char name[SFTI_SEGMENT_FILE_NAME];
    sft_span bytes = { NULL, 0 };
    sft_file *file = NULL;
    if (!*masks->sha256) return SFT_OK;
    sfti_ds_addressed_name(SFTI_MASKS_FILE, masks->sha256, name);
    sft_code code = sfti_ds_addressed_open(storage, name, masks->sha256, masks->bytes, "masks",
                                           arena, &bytes, &file, err);
    if (code) return code;
    /* Each shard has eight bytes in two tensors: the file bounds their number. */
    sfti_ds_mask *all = masks->shards <= bytes.len / 8
                            ? sfti_arena_array(arena, masks->shards, sizeof *all) : NULL;
    bool good = all && masks_fill(file, bytes.data, masks, all);
    sft_close(file);
    if (!all && masks->shards <= bytes.len / 8) return sfti_fail_memory(err, bytes.len);
    if (good) masks->mask = all;
    else code = masks_wrong(name, "masks of as many rows as the manifest says", "others", err);
    return code;
}

sft_code sfti_ds_mask_check(const sfti_ds_mask *mask, const sft_dataset_shard *shard,
                            sft_dataset_mode mode, sft_error *err) {
    const bool kv = mode == SFT_DATASET_KV;
    const uint64_t bits = kv ? shard->tensors : shard->samples;
    const uint64_t end = kv ? bits : shard->valid_samples;
    bool good = mask->bits == bits;
    for (uint64_t i = end; good && i < bits; i++) good = !sfti_ds_mask_has(mask, i);
    if (good) return SFT_OK;
    return sfti_fail(err, SFT_DATASET_SHARD,
                     "%s: expected a mask of %llu %s, found another of %llu", shard->name,
                     (unsigned long long)end, kv ? "tensors" : "rows",
                     (unsigned long long)mask->bits);
}

sft_code sfti_ds_masks_load(const sft_storage *storage, sfti_arena *arena, sfti_ds_manifest *m,
                            sft_error *err) {
    uint64_t used = 0;
    sft_code code = sfti_ds_masks_read(storage, arena, &m->masks, err);
    for (size_t i = 0; !code && *m->masks.sha256 && i < m->shard_count; i++) {
        sft_dataset_shard *shard = &m->shards[i].facts;
        const sfti_ds_mask *mask = sfti_ds_mask_find(&m->masks, shard->name);
        if (!mask) continue;
        used++;
        shard->deleted = mask->deleted;
        code = sfti_ds_mask_check(mask, shard, m->mode, err);
    }
    if (!code && *m->masks.sha256 && used != m->masks.shards)
        return masks_wrong(SFTI_DATASET_MANIFEST, "masks of its shards", "others", err);
    return code;
}
