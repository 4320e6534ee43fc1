/* Tensors of a set in the order of their names. Tests: test_set.c. */
#include "base/order.h"

#include "base/error.h"
#include "set/set.h"

static int tensor_name_order(const void *ctx, uint32_t a, uint32_t b) {
    return sfti_bytes_compare(sft_set_tensor_at(ctx, a)->name, sft_set_tensor_at(ctx, b)->name);
}

static int tensor_natural_order(const void *ctx, uint32_t a, uint32_t b) {
    return sfti_natural_compare(sft_set_tensor_at(ctx, a)->name, sft_set_tensor_at(ctx, b)->name);
}

sft_code sft_set_order(const sft_set *set, sft_order order, uint32_t *out, sft_error *err) {
    bool names = order == SFT_ORDER_NAME || order == SFT_ORDER_NATURAL;
    if (set->shard_count > 1 && names) {
        const sft_allocator *alloc = &set->arena.alloc;
        uint32_t *scratch = set->count ? sfti_take(alloc, set->count * sizeof *scratch) : NULL;
        if (set->count && !scratch) return sfti_fail_memory(err, set->count * sizeof *scratch);
        for (size_t i = 0; i < set->count; i++) out[i] = (uint32_t)i;
        sfti_sort(out, scratch, set->count,
                  order == SFT_ORDER_NAME ? tensor_name_order : tensor_natural_order, set);
        sfti_release(alloc, scratch, set->count * sizeof *scratch);
        return SFT_OK;
    }
    /* Each shard's own order, numbered in the set. */
    for (size_t s = 0, at = 0; s < set->shard_count; s++) {
        size_t count = sft_file_tensor_count(set->files[s]);
        sft_code code = sft_file_order(set->files[s], order, out + at, err);
        if (code) return code;
        for (size_t i = 0; i < count; i++) out[at + i] += (uint32_t)at;
        at += count;
    }
    return SFT_OK;
}
