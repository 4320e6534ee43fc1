/* Which tensors a later shard replaces, and which are of deleted rows. */
#include "base/error.h"
#include "base/options.h"
#include "base/order.h"
#include "dataset/read/masks.h"

struct sft_dataset_replaced {
    sfti_arena arena;
    sft_span *names; /* of the tensors of all shards, shard by shard */
    bool *is, *gone; /* replaced; of deleted rows */
    size_t *first; /* number of each shard's first tensor, and of the end */
    size_t shards, cap;
};

static int replaced_order(const void *ctx, uint32_t a, uint32_t b) {
    const sft_span *names = ctx;
    int way = sfti_bytes_compare(names[a], names[b]);
    return way ? way : a < b ? -1 : a > b;
}

/* Adds the names of a shard's tensors. The manifest's count is believed once the file has it. */
static sft_code replaced_names(sft_dataset_replaced *r, const sft_dataset *dataset, size_t shard,
                               const sft_open_options *open, sft_error *err) {
    sft_file *file = NULL;
    const sft_dataset_shard *facts = sft_dataset_shard_at(dataset, shard);
    size_t first = r->first[shard], count = 0;
    sft_code code = sft_dataset_shard_open(dataset, shard, open, &file, err);
    if (!code) count = sft_file_tensor_count(file);
    if (!code && facts->tensors != count)
        code = sfti_fail(err, SFT_DATASET_SHARD,
                         "%s: tensors: expected %llu by the manifest, found %zu", facts->name,
                         (unsigned long long)facts->tensors, count);
    if (!code && count >= UINT32_MAX / 4 - first) code = sfti_fail_memory(err, SIZE_MAX);
    sft_span *names = code ? NULL : sfti_arena_grow(&r->arena, r->names, first, count, &r->cap,
                                                    sizeof *names);
    if (!code && !names) code = sfti_fail_memory(err, count * sizeof *names);
    if (!code) r->names = names;
    for (size_t i = 0; !code && i < count; i++) {
        sft_span name = sft_file_tensor_at(file, i)->name;
        char *copy = sfti_arena_copy(&r->arena, name.data, name.len);
        if (!copy) code = sfti_fail_memory(err, name.len);
        r->names[first + i] = (sft_span){ copy, name.len };
    }
    r->first[shard + 1] = first + count;
    sft_close(file);
    return code;
}

static sft_code replaced_fill(sft_dataset_replaced *r, const sft_dataset *dataset,
                              const sft_open_options *open, sft_error *err) {
    size_t shards = sft_dataset_shard_count(dataset);
    const sfti_ds_masks *masks = &sfti_ds_manifest_of(dataset)->masks;
    bool hidden = sft_dataset_get_mode(dataset) == SFT_DATASET_KV && *masks->sha256;
    for (size_t i = 0; i < shards; i++)
        hidden = hidden || sft_dataset_shard_at(dataset, i)->shadowed;
    if (!hidden) return SFT_OK;
    r->first = sfti_arena_array(&r->arena, (uint64_t)shards + 1, sizeof *r->first);
    if (!r->first) return sfti_fail_memory(err, shards * sizeof *r->first);
    r->first[0] = 0;
    for (r->shards = 0; r->shards < shards; r->shards++) {
        sft_code code = replaced_names(r, dataset, r->shards, open, err);
        if (code) return code;
    }

    size_t count = r->first[r->shards];
    r->is = sfti_arena_array(&r->arena, count, sizeof *r->is);
    r->gone = sfti_arena_array(&r->arena, count, sizeof *r->gone);
    if (!r->is || !r->gone) return sfti_fail_memory(err, count);
    for (size_t i = 0; i < count; i++) r->is[i] = r->gone[i] = false;
    sfti_arena work = { .alloc = r->arena.alloc };
    const uint32_t *order = sfti_arena_sorted(&work, count, replaced_order, r->names);
    uint64_t *passed = sfti_arena_array(&work, shards, sizeof *passed); /* tensors of each shard */
    for (size_t i = 0; passed && i < shards; i++) passed[i] = 0;
    for (size_t i = 0; order && passed && i < count; i++) {
        size_t low = 0, high = shards; /* the shard of this tensor */
        while (high - low > 1) {
            size_t middle = low + (high - low) / 2;
            if (r->first[middle] <= order[i]) low = middle;
            else high = middle;
        }
        const char *name = sft_dataset_shard_at(dataset, low)->name;
        const sfti_ds_mask *mask = sfti_ds_mask_find(masks, name);
        r->gone[order[i]] = sfti_ds_mask_has(mask, passed[low]++);
        if (i && sft_span_equal(r->names[order[i - 1]], r->names[order[i]]) &&
            !r->gone[order[i - 1]])
            r->is[order[i - 1]] = true;
    }
    sfti_arena_free(&work);
    return order && passed ? SFT_OK : sfti_fail_memory(err, count * sizeof *order);
}

sft_code sft_dataset_find_replaced(const sft_dataset *dataset, const sft_open_options *open,
                                   sft_dataset_replaced **out, sft_error *err) {
    sft_allocator alloc = sfti_allocator(NULL);
    sft_open_options own;
    if (!dataset || !out)
        return sfti_misuse(err, "expected a dataset and a place for the result, found NULL");
    *out = NULL;
    sft_code code = sfti_take_open(open, &own, err);
    if (code) return code;
    sft_dataset_replaced *r = sfti_take(&alloc, sizeof *r);
    if (!r) return sfti_fail_memory(err, sizeof *r);
    *r = (sft_dataset_replaced){ .arena.alloc = alloc };
    code = replaced_fill(r, dataset, &own, err);
    if (code) sft_dataset_replaced_free(r);
    else *out = r;
    return code;
}

bool sft_dataset_is_replaced(const sft_dataset_replaced *r, size_t shard, size_t tensor) {
    return r && r->is && shard < r->shards && tensor < r->first[shard + 1] - r->first[shard] &&
           r->is[r->first[shard] + tensor];
}

bool sft_dataset_is_deleted(const sft_dataset_replaced *r, size_t shard, size_t tensor) {
    return r && r->gone && shard < r->shards && tensor < r->first[shard + 1] - r->first[shard] &&
           r->gone[r->first[shard] + tensor];
}

void sft_dataset_replaced_free(sft_dataset_replaced *replaced) {
    if (!replaced) return;
    sft_allocator alloc = replaced->arena.alloc;
    sfti_arena_free(&replaced->arena);
    sfti_release(&alloc, replaced, sizeof *replaced);
}
