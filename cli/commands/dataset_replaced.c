#include "base/order.h"
#include "commands/dataset.h"

#include <string.h>

typedef struct name_list {
    sfti_arena *arena;
    sft_span *names; /* as many as the manifest says; those that are not there are empty */
    size_t count;
} name_list;

static int compare_names(const void *ctx, uint32_t a, uint32_t b) {
    const name_list *list = ctx;
    int way = sfti_bytes_compare(list->names[a], list->names[b]);
    return way ? way : a < b ? -1 : a > b;
}

static sft_code take_names(cli *c, const sft_dataset *dataset, size_t shard, name_list *list,
                           sft_error *err) {
    sft_file *file = NULL;
    size_t most = (size_t)sft_dataset_shard_at(dataset, shard)->tensors;
    sft_code code = sft_dataset_shard_open(dataset, shard, &c->open, &file, err);
    for (size_t i = 0; !code && i < most; i++) {
        bool there = i < sft_file_tensor_count(file);
        sft_span name = there ? sft_file_tensor_at(file, i)->name : (sft_span){ "", 0 };
        char *copy = sfti_arena_copy(list->arena, name.data, name.len);
        if (!copy) code = sfti_fail_memory(err, name.len);
        list->names[list->count++] = (sft_span){ copy, name.len };
    }
    sft_close(file);
    return code;
}

static sft_code mark_replaced(const name_list *list, dataset_replaced *out, sft_error *err) {
    size_t count = list->count;
    sfti_arena work = { .alloc = out->arena.alloc };
    uint32_t *order = sfti_arena_array(&work, 2 * (uint64_t)count, sizeof *order);
    out->is = sfti_arena_array(&out->arena, count, sizeof *out->is);
    bool fine = order && out->is;
    for (size_t i = 0; fine && i < count; i++) {
        order[i] = (uint32_t)i;
        out->is[i] = false;
    }
    if (fine) sfti_sort(order, order + count, count, compare_names, list);
    for (size_t i = 1; fine && i < count; i++)
        out->is[order[i - 1]] = sft_span_equal(list->names[order[i - 1]], list->names[order[i]]);
    out->count = fine ? count : 0;
    sfti_arena_free(&work);
    return fine ? SFT_OK : sfti_fail_memory(err, count * sizeof *order);
}

sft_code dataset_find_replaced(cli *c, const sft_dataset *dataset, dataset_replaced *out,
                               sft_error *err) {
    name_list list = { .arena = &out->arena };
    uint64_t count = 0, shadowed = 0;
    sft_code code = SFT_OK;
    *out = (dataset_replaced){ .arena.alloc = c->alloc };
    for (size_t i = 0; i < sft_dataset_shard_count(dataset); i++) {
        count += sft_dataset_shard_at(dataset, i)->tensors;
        shadowed += sft_dataset_shard_at(dataset, i)->shadowed;
    }
    if (!shadowed) return SFT_OK;
    if (count < UINT32_MAX / 4)
        list.names = sfti_arena_array(&out->arena, count, sizeof *list.names);
    if (!list.names) return sfti_fail_memory(err, count * sizeof *list.names);
    for (size_t i = 0; !code && i < sft_dataset_shard_count(dataset); i++)
        code = take_names(c, dataset, i, &list, err);
    return code ? code : mark_replaced(&list, out, err);
}
