/* Items become tensors of the result, in this order:
 *   1. names: the prefix is taken off; dtypes: options.as is asked
 *   2. names are compared: two of one name are SFT_FOREIGN_NAME, also if they share bytes
 *   3. what shares bytes is found, and all but one of several names left out (alias), unless
 *      nothing would take their record for one
 *   4. the result's size is limited, before anything is computed
 *   5. each gets its source
 *   6. metadata: of two values of a key the first counts */
#include "base/names.h"
#include "base/order.h"
#include "formats/parts/state.h"
#include "keys/renamed.h"
#include "os/io.h"

#include <string.h>

/* ── 1 ── */

/* Strides that say what row-major means are none, either. */
static void strip_item(const sfti_import *im, sfti_item *item) {
    sft_span prefix = sft_span_cstr(im->options.strip_prefix);
    if (prefix.len > 0 && item->name.len > prefix.len &&
        memcmp(item->name.data, prefix.data, prefix.len) == 0) {
        item->name.data += prefix.len;
        item->name.len -= prefix.len;
    }
    uint64_t packed = 1;
    for (uint32_t d = item->rank; item->strides && d-- > 0;) {
        if (item->shape[d] != 1 && item->strides[d] != packed) return;
        packed *= item->shape[d];
    }
    item->strides = NULL;
}

static sft_code refuse_item(sfti_import *im, sfti_item *item, sft_code code, const char *expected) {
    item->dropped = true;
    return sfti_import_refuse(im, item->name, item->stored, code, item->at, "%s", expected);
}

static sft_code settle_dtype(sfti_import *im, sfti_item *item) {
    sft_spec spec = { item->name, item->dtype, item->rank, item->shape };
    sft_dtype dtype = item->dtype;
    bool told = !item->codec && im->options.as && im->options.as(im->options.as_ctx, &spec, &dtype);
    const sft_dtype_info *to = sft_dtype_describe(dtype);
    if (told && (!to || to->bits != sft_dtype_describe(item->dtype)->bits))
        return sfti_fail_tensor(im->err, SFT_CAST_DTYPE, item->at, item->name,
                                "expected a dtype of %u bits, found %s",
                                sft_dtype_describe(item->dtype)->bits, to ? to->name : "none");
    if (item->opaque && !told)
        return refuse_item(im, item, SFT_FOREIGN_OPAQUE,
                           "expected a dtype, found elements of which only the width is known");
    if (told) item->dtype = dtype;
    if (item->opaque && !item->note) item->note = "opaque";
    return SFT_OK;
}

/* ── 2 ── */

static sft_code compare_names(sfti_import *im) {
    sfti_item *items = im->items.at;
    sfti_names names;
    if (!sfti_names_draw(&names, im->items.count, sfti_item_name, items, &im->arena))
        return sfti_fail_memory(im->err, im->items.count);
    for (uint32_t i = 0; i < im->items.count; i++) {
        if (items[i].dropped || sfti_names_add(&names, items[i].name, i) == i) continue;
        sft_code code = refuse_item(im, &items[i], SFT_FOREIGN_NAME,
                                    "expected a name of its own, found that of another tensor");
        if (code) return code;
    }
    return SFT_OK;
}

/* ── 3 ── */

/* Where an item begins in its storage, then what it is: items that are the same stand together,
 * in file order. */
static int compare_u64(uint64_t a, uint64_t b) {
    return (a > b) - (a < b);
}

static int compare_form(const sfti_item *a, const sfti_item *b) {
    int order = (int)a->dtype - (int)b->dtype;
    if (order == 0) order = (int)a->rank - (int)b->rank;
    if (order == 0) order = (int)a->swap - (int)b->swap;
    if (order == 0) order = (a->conj - b->conj) * 2 + (a->neg - b->neg);
    if (order == 0) order = (a->strides != NULL) - (b->strides != NULL);
    for (uint32_t d = 0; order == 0 && d < a->rank; d++) {
        order = compare_u64(a->shape[d], b->shape[d]);
        if (order == 0 && a->strides) order = compare_u64(a->strides[d], b->strides[d]);
    }
    return order;
}

static int compare_items(const void *ctx, uint32_t x, uint32_t y) {
    const sfti_item *items = ctx, *a = &items[x], *b = &items[y];
    int order = compare_u64(a->shard, b->shard);
    if (order == 0) order = compare_u64(a->storage, b->storage);
    if (order == 0) order = compare_u64(a->begin, b->begin);
    return order ? order : compare_form(a, b);
}

static bool in_one_storage(const sfti_item *a, const sfti_item *b) {
    return a && a->storage == b->storage && a->shard == b->shard && a->source == b->source;
}

/* The end of an item's bytes; it was added, so it has one. */
static uint64_t item_end(const sfti_item *item) {
    uint64_t elements = 1, last = 0, bytes;
    for (uint32_t d = 0; d < item->rank; d++) {
        if (item->shape[d] == 0) return item->begin;
        elements *= item->shape[d];
        if (item->strides) last += (item->shape[d] - 1) * item->strides[d];
    }
    bytes = item->codec ? elements / item->codec->elements * item->codec->stored
                        : (item->strides ? last + 1 : elements)
                              * sft_dtype_describe(item->dtype)->bits / 8;
    return item->begin + bytes;
}

static sft_code add_alias(sfti_import *im, sfti_item *item, const sfti_item *of, bool partial) {
    sft_pair record = { item->name, of->name };
    bool copied = partial || im->options.shared == SFT_IMPORT_COPY || !sfti_may_be_alias(record);
    if (im->options.shared == SFT_IMPORT_REFUSE)
        return sfti_fail_tensor(im->err, SFT_FOREIGN_SHARED, item->at, item->name,
                                "expected bytes of its own, found %s of the bytes of \"%.*s\"",
                                partial ? "some" : "all", SFTI_CLIP(of->name, 200));
    sft_import_alias *alias = sfti_list_more(im, &im->aliases, sizeof *alias);
    if (!alias) return SFT_OUT_OF_MEMORY;
    *alias = (sft_import_alias){ item->name, of->name, copied, partial };
    if (copied) return SFT_OK;
    sft_pair *pair = sfti_list_more(im, &im->metadata, sizeof *pair);
    if (!pair) return SFT_OUT_OF_MEMORY;
    *pair = record;
    item->dropped = true;
    return SFT_OK;
}

static sft_code find_aliases(sfti_import *im) {
    sfti_item *items = im->items.at;
    uint32_t *order = sfti_arena_sorted(&im->arena, im->items.count, compare_items, items);
    if (!order) return sfti_fail_memory(im->err, im->items.count * sizeof *order);
    const sfti_item *widest = NULL, *first = NULL; /* of this storage, of these bytes */
    for (size_t i = 0; i < im->items.count; i++) {
        sfti_item *item = &items[order[i]];
        if (item->storage == 0 || item->dropped || item_end(item) == item->begin) continue;
        bool same = in_one_storage(first, item) && first->begin == item->begin &&
                    compare_form(first, item) == 0;
        bool inside = !same && in_one_storage(widest, item) && item->begin < item_end(widest);
        sft_code code = same     ? add_alias(im, item, first, false)
                        : inside ? add_alias(im, item, widest, true)
                                 : SFT_OK;
        if (code) return code;
        if (!same) first = item;
        if (!in_one_storage(widest, item) || item_end(item) > item_end(widest))
            widest = item;
    }
    return SFT_OK;
}

/* ── 4 ── */

static sft_dtype result_dtype(const sfti_import *im, const sfti_item *item) {
    return item->codec ? im->options.dequantised : item->dtype;
}

/* The bytes that count towards the limit. */
static sft_code add_output(sfti_import *im, sfti_item *item, uint64_t *sum) {
    uint64_t bytes;
    sft_code code = sft_shape_size(result_dtype(im, item), item->shape, item->rank, NULL, &bytes,
                                   im->err);
    if (code) {
        sfti_error_tensor(im->err, item->name);
        return code;
    }
    sfti_total_add(sum, item->codec ? item_end(item) - item->begin : bytes);
    return SFT_OK;
}

static sft_code limit_output(sfti_import *im) {
    uint64_t most = im->options.max_output, sum = 0;
    if (most == 0 && !sfti_mul(im->input_bytes, 8, &most)) most = UINT64_MAX;
    if (im->options.max_output == 0 && most < UINT64_C(1) << 30) most = UINT64_C(1) << 30;
    for (size_t i = 0; i < im->items.count; i++) {
        sfti_item *item = &im->items.at[i];
        sft_code code = item->dropped ? SFT_OK : add_output(im, item, &sum);
        if (code) return code;
        if (sum > most)
            return sfti_fail_tensor(im->err, SFT_FOREIGN_OUTPUT, item->at, item->name,
                                    "expected at most %llu bytes of tensors from %llu bytes of "
                                    "input, found %llu or more",
                                    (unsigned long long)most, (unsigned long long)im->input_bytes,
                                    (unsigned long long)sum);
    }
    return SFT_OK;
}

/* ── 5 ── */

static sft_code make_part(sfti_import *im, size_t i) {
    sfti_item *item = &im->items.at[i];
    const sft_source *source = item->source;
    sft_code code = SFT_OK;
    sft_part *part = sfti_list_more(im, &im->parts, sizeof *part);
    if (!part) return SFT_OUT_OF_MEMORY;
    if (!item->note)
        item->note = item->codec     ? item->codec->name
                     : item->conj    ? "conjugated"
                     : item->neg     ? "negated"
                     : item->swap    ? "big-endian"
                     : item->strides ? "strided" : NULL;
    bool empty = item_end(item) == item->begin;
    bool computed = item->codec || item->strides || item->swap || item->conj || item->neg;
    sft_dtype dtype = result_dtype(im, item);
    if (!empty && item->codec) code = sfti_codec_source(im, item, dtype, &source);
    else if (!empty && computed) code = sfti_view_source(im, item, &source);
    *part = (sft_part){ { item->name, dtype, item->rank, item->shape }, source,
                        empty || computed ? 0 : item->begin };
    im->item_of[im->parts.count - 1] = (uint32_t)i;
    return code;
}

/* ── 6 ── */

static int compare_keys(const void *ctx, uint32_t a, uint32_t b) {
    const sft_pair *pairs = ctx;
    return sfti_bytes_compare(pairs[a].key, pairs[b].key);
}

/* Those that a loader would have called come first. */
static sft_code order_globals(sfti_import *im) {
    size_t count = im->globals.count, at = 0;
    sft_import_global *sorted = sfti_arena_array(&im->arena, count, sizeof *sorted);
    if (!sorted) return sfti_fail_memory(im->err, count * sizeof *sorted);
    for (int calls = 1; calls >= 0; calls--)
        for (size_t i = 0; i < count; i++)
            if ((im->globals.at[i].calls > 0) == calls) sorted[at++] = im->globals.at[i];
    im->globals.at = sorted;
    return SFT_OK;
}

/* The chosen branch, unless there are several, gets the numbers of the result. */
static void count_chosen(sfti_import *im) {
    sft_import_branch *only = NULL;
    uint64_t bytes;
    for (size_t i = 0; i < im->branches.count; i++) {
        sft_import_branch *branch = &im->branches.at[i];
        if (branch->chosen && only) return;
        if (branch->chosen) only = branch;
    }
    if (!only) return;
    only->tensors = im->parts.count;
    only->bytes = 0;
    for (size_t i = 0; i < im->parts.count; i++) {
        const sft_spec *spec = &im->parts.at[i].spec;
        if (!sft_shape_size(spec->dtype, spec->shape, spec->rank, NULL, &bytes, NULL))
            sfti_total_add(&only->bytes, bytes);
    }
}

sft_code sfti_import_settle(sfti_import *im) {
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < im->items.count; i++) {
        strip_item(im, &im->items.at[i]);
        code = settle_dtype(im, &im->items.at[i]);
    }
    if (!code) code = compare_names(im);
    if (!code) code = find_aliases(im);
    if (!code) code = limit_output(im);
    im->item_of = code ? NULL : sfti_arena_array(&im->arena, im->items.count, sizeof *im->item_of);
    if (!code && !im->item_of) code = sfti_fail_memory(im->err, im->items.count);
    for (size_t i = 0; !code && i < im->items.count; i++)
        if (!im->items.at[i].dropped) code = make_part(im, i);
    if (!code) code = sfti_checks_begin(im);
    if (code) return code;
    size_t count = im->metadata.count, kept = 0;
    uint32_t *order = sfti_arena_sorted(&im->arena, count, compare_keys, im->metadata.at);
    sft_pair *pairs = sfti_arena_array(&im->arena, count, sizeof *pairs);
    if (!order || !pairs) return sfti_fail_memory(im->err, count * sizeof *pairs);
    for (size_t i = 0; i < count; i++) {
        sft_pair pair = im->metadata.at[order[i]];
        if (kept == 0 || !sft_span_equal(pairs[kept - 1].key, pair.key)) pairs[kept++] = pair;
    }
    im->metadata.at = pairs;
    im->metadata.count = kept;
    count_chosen(im);

    if (!code) code = order_globals(im);
    if (!code && im->more_globals)
        code = sfti_import_leave(im, SFT_IMPORT_LEFT_NOTE, sft_span_cstr("globals"),
                                 im->more_globals, 0, "more globals than are listed");
    return code;
}
