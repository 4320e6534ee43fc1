/* PyTorch's quantised and sparse tensors. Tests: test_import_torch.c. */
#include "base/endian.h"
#include "base/number.h"
#include "formats/objects/rebuild_parts.h"
#include "formats/parts/blocks.h"

#include <string.h>

/* Tells that an item is computed from the others. */
static sft_code computed_from(sfti_rebuild *r, sfti_item *item, const sfti_item *read,
                              const sfti_item *const *loaded, uint32_t count) {
    const sfti_item **from = sfti_arena_array(&r->im->arena, (uint64_t)count + 2, sizeof *from);
    if (!from) return sfti_fail_memory(r->im->err, count);
    from[0] = read;
    for (uint32_t i = 0; i < count; i++) from[i + 1] = loaded[i];
    from[count + 1] = NULL;
    item->from = from;
    return SFT_OK;
}

/* The same elements, packed and little-endian: the item itself, or another over a view of it. *out
 * NULL: they need more than is stored. */
static sft_code pack_item(sfti_rebuild *r, const sfti_item *item, const sfti_item **out) {
    uint64_t need, bytes;
    *out = NULL;
    if (!sfti_item_reach(item, &need) || need > item->stored
        || sft_shape_size(item->dtype, item->shape, item->rank, NULL, &bytes, NULL))
        return SFT_OK;
    *out = item;
    if (bytes == 0 || !(item->strides || item->swap || item->conj || item->neg)) return SFT_OK;
    sfti_item *packed = sfti_arena_take(&r->im->arena, sizeof *packed);
    if (!packed) return sfti_fail_memory(r->im->err, sizeof *packed);
    *packed = (sfti_item){ .dtype = item->dtype, .rank = item->rank, .shape = item->shape,
                           .stored = bytes, .at = item->at };
    *out = packed;
    return sfti_view_source(r->im, item, &packed->source);
}

/* ── Quantised: integers with a scale ── */

static sfti_value *number_tensor(sfti_rebuild *r, const sfti_value *number) {
    static const uint64_t no_shape[1] = { 0 };
    sfti_value *value = sfti_rebuild_value(r, SFTI_VALUE_NONE, number->at);
    uint8_t *bytes = sfti_arena_take(&r->im->arena, 8);
    uint64_t bits = (uint64_t)number->u.integer;
    if (!value || !bytes) return NULL;
    if (number->kind == SFTI_VALUE_FLOAT) memcpy(&bits, &number->u.real, 8);
    sfti_put_u64(bytes, bits);
    sft_dtype dtype = number->kind == SFTI_VALUE_FLOAT ? SFT_F64 : SFT_I64;
    return sfti_rebuild_memory(r, value, dtype, no_shape, 0, bytes, 8) ? NULL : value;
}

/* (scheme, scale, zero point) or (scheme, scales, zero points, axis), as tensors in that order.
 * *count 0: they are something else. */
static sft_code quantised_parts(sfti_rebuild *r, const sfti_value *how, sfti_value **parts,
                                uint32_t *count) {
    *count = 0;
    if (how->kind != SFTI_VALUE_TUPLE || how->count < 3) return SFT_OK;
    sfti_value **items = how->u.items;
    bool whole = how->count == 3 && items[1]->kind == SFTI_VALUE_FLOAT &&
                 items[2]->kind == SFTI_VALUE_INT;
    bool channels = how->count == 4 && items[1]->kind == SFTI_VALUE_TENSOR &&
                    items[2]->kind == SFTI_VALUE_TENSOR && items[3]->kind == SFTI_VALUE_INT;
    if (!whole && !channels) return SFT_OK;
    parts[0] = whole ? number_tensor(r, items[1]) : items[1];
    parts[1] = whole ? number_tensor(r, items[2]) : items[2];
    parts[2] = channels ? number_tensor(r, items[3]) : NULL;
    if (!parts[0] || !parts[1] || (channels && !parts[2])) return SFT_OUT_OF_MEMORY;
    *count = whole ? 2 : 3;
    return SFT_OK;
}

/* All numbers of a tensor, as doubles. *out NULL: it is too short, or complex, which is two
 * doubles. */
static sft_code load_numbers(sfti_rebuild *r, const sfti_value *value, const sfti_item *item,
                             uint64_t count, double **out) {
    uint8_t *bytes;
    uint64_t elements, need;
    const sfti_item *packed = NULL;
    *out = NULL;
    if (item->dtype == SFT_C64 ||
        sft_shape_size(item->dtype, item->shape, item->rank, &elements, &need, NULL) ||
        elements != count)
        return SFT_OK;
    sft_code code = sfti_rebuild_copy(r, value, count);
    if (!code) code = pack_item(r, item, &packed);
    if (code || !packed) return code;
    item = packed;
    code = sfti_import_load(r->im, item->source, item->begin, need, &bytes);
    if (code) return code;
    double *numbers = sfti_arena_array(&r->im->arena, count, sizeof *numbers);
    if (!numbers) return sfti_fail_memory(r->im->err, count * sizeof *numbers);
    sfti_to_doubles(item->dtype, bytes, 0, (size_t)count, numbers);
    *out = numbers;
    return SFT_OK;
}

static sft_code quantised_values(sfti_rebuild *r, sfti_value *value, const sfti_item *integers,
                                 sfti_value *const *parts, uint32_t count) {
    const sfti_item *packed;
    sft_code code = pack_item(r, integers, &packed);
    if (code || !packed) return code;
    sfti_dequantise how = { .from = packed->source, .begin = packed->begin, .inner = 1,
                            .dtype = packed->dtype, .channels = 1, .one = count == 2 };
    code = sft_shape_size(packed->dtype, packed->shape, packed->rank, &how.elements, NULL,
                          r->im->err);
    if (code) return code;
    if (count == 3) {
        int64_t at = 0;
        uint8_t bytes[8];
        code = sfti_import_read(r->im, parts[2]->u.item->source, 0, bytes, 8);
        if (code) return code;
        at = (int64_t)sfti_get_u64(bytes);
        if (at < 0 || at >= integers->rank)
            return sfti_rebuild_refuse(r, value, SFT_FOREIGN_OBJECT, SFT_HINT_IMPORT_QUANTISED, 0,
                                       "expected channels of one of %u dimensions, found those of "
                                       "%lld", integers->rank, (long long)at);
        how.channels = integers->shape[at];
        for (uint32_t d = (uint32_t)at + 1; d < integers->rank; d++)
            if (!sfti_mul(how.inner, integers->shape[d], &how.inner)) how.inner = 0;
    }
    code = load_numbers(r, value, parts[0]->u.item, how.channels, &how.scales);
    if (!code) code = load_numbers(r, value, parts[1]->u.item, how.channels, &how.zeros);
    if (code) return code;
    if (!how.scales || !how.zeros || how.inner == 0 || how.channels == 0)
        return sfti_rebuild_refuse(r, value, SFT_FOREIGN_OBJECT, SFT_HINT_IMPORT_QUANTISED, 0,
                                   "expected a scale and a zero point for each channel");
    if (count == 2) how.scales[0] = (float)how.scales[0]; /* PyTorch: of channels alone F64 */
    const sft_source *source;
    code = sfti_dequantise_source(r->im, &how, &source);
    sfti_item *item = code ? NULL : sfti_rebuild_tensor(r, value);
    if (!item) return code ? code : SFT_OUT_OF_MEMORY;
    *item = (sfti_item){ .at = integers->at, .dtype = SFT_F32, .rank = packed->rank,
                         .shape = packed->shape, .source = source, .stored = how.elements * 4,
                         .note = SFTI_NOTE_VALUES };
    const sfti_item *const loaded[] = { parts[0]->u.item, parts[1]->u.item };
    return computed_from(r, item, integers, loaded, 2);
}

sft_code sfti_rebuild_quantised(sfti_rebuild *r, sfti_value *value, const sfti_value *args) {
    static const char *const names[] = { "int_repr", "scale", "zero_point", "axis" };
    sft_import_special how = r->im->options.quantised;
    sfti_value *parts[4];
    uint32_t count;
    if (args->count < 5) return SFT_OK;
    if (how == SFT_IMPORT_SPECIAL_REFUSE)
        return sfti_rebuild_refuse(r, value, SFT_FOREIGN_OBJECT, SFT_HINT_IMPORT_QUANTISED, 0,
                                   "expected plain elements, found a quantised tensor");
    sfti_value place = *args;
    place.count = 4;
    if (!(parts[0] = sfti_rebuild_value(r, SFTI_VALUE_NONE, value->at))) return SFT_OUT_OF_MEMORY;
    sft_code code = sfti_rebuild_plain(r, parts[0], &place, 1);
    if (!code) code = quantised_parts(r, args->u.items[4], parts + 1, &count);
    if (code || parts[0]->kind == SFTI_VALUE_NONE) return code;
    if (parts[0]->kind != SFTI_VALUE_TENSOR || count == 0
        || !sfti_dequantise_takes(parts[0]->u.item->dtype))
        return sfti_rebuild_refuse(r, value, SFT_FOREIGN_OBJECT, SFT_HINT_NONE, 0,
                                   "expected integers with scale and zero point, found others");
    if (how == SFT_IMPORT_SPECIAL_PARTS)
        return sfti_rebuild_map(r, value, names, parts, count + 1);
    return quantised_values(r, value, parts[0]->u.item, parts + 1, count);
}

/* ── Sparse ── */

typedef struct sparse_layout {
    const char *name, *parts[3];
    uint32_t indices;
} sparse_layout;

static const sparse_layout layouts[] = {
    { "torch.sparse_coo", { "indices", "values", "shape" }, 1 },
    { "torch.sparse_csr", { "crow_indices", "col_indices", "values" }, 2 },
    { "torch.sparse_csc", { "ccol_indices", "row_indices", "values" }, 2 },
    { "torch.sparse_bsr", { "crow_indices", "col_indices", "values" }, 2 },
    { "torch.sparse_bsc", { "ccol_indices", "row_indices", "values" }, 2 },
};

static sft_code sparse_parts(sfti_rebuild *r, sfti_value *value, const sparse_layout *layout,
                             sfti_value **items, const uint64_t *shape, uint32_t rank) {
    const char *names[4] = { layout->parts[0], layout->parts[1], layout->parts[2], "shape" };
    sfti_value *parts[4] = { items[0], items[1], items[2], NULL };
    uint64_t *length = sfti_arena_array(&r->im->arena, 1, sizeof *length);
    uint8_t *bytes = sfti_arena_array(&r->im->arena, rank, 8);
    sfti_value *sizes = sfti_rebuild_value(r, SFTI_VALUE_NONE, value->at);
    if (!length || !bytes || !sizes) return sfti_fail_memory(r->im->err, rank);
    for (uint32_t d = 0; d < rank; d++) sfti_put_u64(bytes + 8 * (size_t)d, shape[d]);
    *length = rank;
    sft_code code = sfti_rebuild_memory(r, sizes, SFT_I64, length, 1, bytes, 8 * (size_t)rank);
    parts[layout->indices + 1] = sizes;
    return code ? code : sfti_rebuild_map(r, value, names, parts, layout->indices + 2);
}

/* Where the rows of values are; ascends: whether each is behind the last, as in a coalesced tensor,
 * which has one value for a place. */
static sft_code sparse_places(sfti_rebuild *r, const sfti_value *value, const double *indices,
                              uint64_t rows, uint32_t sparse, const uint64_t *shape,
                              uint64_t *places, bool *ascends) {
    *ascends = true;
    for (uint64_t row = 0; row < rows; row++) {
        uint64_t at = 0;
        bool within = true;
        for (uint32_t d = 0; d < sparse; d++) {
            double index = indices[d * rows + row];
            within = within && index >= 0 && index < (double)shape[d];
            if (within) at = at * shape[d] + (uint64_t)index;
        }
        if (!within)
            return sfti_fail_byte(r->im->err, SFT_FOREIGN_SYNTAX, value->at, "expected indices of "
                                  "a sparse tensor within its shape, found others");
        *ascends = *ascends && (row == 0 || at > places[row - 1]);
        places[row] = at;
    }
    return SFT_OK;
}

/* The dense form of a coalesced COO tensor; others are refused. *done false: this is another. */
static sft_code sparse_values(sfti_rebuild *r, sfti_value *value, sfti_value **items,
                              const uint64_t *shape, uint32_t rank, bool *done) {
    const sfti_item *where = items[0]->u.item, *what = items[1]->u.item;
    uint64_t limit = r->im->options.max_output, bytes, rows, size, dense = 1;
    double *indices;
    *done = false;
    if (limit == 0) limit = (uint64_t)1 << 30;
    if (where->rank != 2 || what->rank == 0) return SFT_OK;
    uint64_t sparse = where->shape[0];
    rows = where->shape[1];
    if (sparse > rank || what->rank != rank - sparse + 1 || what->shape[0] != rows) return SFT_OK;
    for (uint32_t d = 1; d < what->rank; d++) {
        if (what->shape[d] != shape[sparse + d - 1]) return SFT_OK;
        if (!sfti_mul(dense, what->shape[d], &dense)) return SFT_OK;
    }
    bool fits = !sft_shape_size(what->dtype, shape, rank, NULL, &bytes, NULL);
    if (fits) sfti_total_add(&r->dense, bytes);
    if (!fits || r->dense > limit)
        return sfti_fail_byte(r->im->err, SFT_FOREIGN_OUTPUT, value->at, "expected sparse tensors "
                              "that are at most %llu bytes if dense, found larger ones",
                              (unsigned long long)limit);
    if (sft_shape_size(what->dtype, what->shape, what->rank, NULL, &size, NULL)) return SFT_OK;
    sft_code code = load_numbers(r, value, where, sparse * rows, &indices);
    if (code || !indices) return code;
    const sfti_item *values;
    code = pack_item(r, what, &values);
    if (code || !values) return code;
    uint64_t *places = sfti_arena_array(&r->im->arena, rows, sizeof *places);
    if (!places) return sfti_fail_memory(r->im->err, rows * sizeof *places);
    bool ascends;
    code = sparse_places(r, value, indices, rows, (uint32_t)sparse, shape, places, &ascends);
    *done = !code && !ascends;
    if (*done)
        return sfti_rebuild_refuse(r, value, SFT_FOREIGN_OBJECT, SFT_HINT_NONE, 0,
                                   "expected a coalesced sparse tensor, found indices that do not "
                                   "ascend; its parts can be taken as they are");
    if (code) return code;
    const sfti_sparse from = { values->source, values->begin, rows, rows ? size / rows : 0,
                               places };
    const sft_source *source;
    code = sfti_sparse_source(r->im, &from, bytes, &source);
    sfti_item *item = code ? NULL : sfti_rebuild_tensor(r, value);
    if (!item) return code ? code : SFT_OUT_OF_MEMORY;
    item->dtype = what->dtype;
    item->shape = shape;
    item->rank = rank;
    item->stored = bytes;
    item->source = source;
    item->note = "sparse";
    *done = true;
    return computed_from(r, item, what, &where, 1);
}

sft_code sfti_rebuild_sparse(sfti_rebuild *r, sfti_value *value, const sfti_value *args) {
    sft_import_special how = r->im->options.sparse;
    uint64_t *shape;
    bool done = false;
    if (args->count < 2 || args->u.items[1]->kind != SFTI_VALUE_TUPLE) return SFT_OK;
    if (how == SFT_IMPORT_SPECIAL_REFUSE)
        return sfti_rebuild_refuse(r, value, SFT_FOREIGN_OBJECT, SFT_HINT_IMPORT_SPARSE, 0,
                                   "expected plain elements, found a sparse tensor");
    const sfti_value *is = args->u.items[0];
    bool has_layout = is->kind == SFTI_VALUE_OBJECT && sfti_value_meaning(is) == SFTI_MEANS_LAYOUT;
    const sfti_value *name = has_layout ? sfti_object_arg(is, 0) : NULL;
    const sparse_layout *layout = NULL;
    for (size_t i = 0; name && i < sizeof layouts / sizeof *layouts; i++)
        if (sfti_value_is(name, layouts[i].name)) layout = &layouts[i];
    const sfti_value *data = args->u.items[1];
    if (!layout || data->count < layout->indices + 2) return SFT_OK;
    for (uint32_t i = 0; i <= layout->indices; i++)
        if (data->u.items[i]->kind != SFTI_VALUE_TENSOR) return SFT_OK;
    const sfti_value *sizes = data->u.items[layout->indices + 1];
    if (!sfti_rebuild_sizes(r, sizes, &shape)) return SFT_OK;
    if (!shape) return SFT_OUT_OF_MEMORY;
    if (how == SFT_IMPORT_SPECIAL_PARTS)
        return sparse_parts(r, value, layout, data->u.items, shape, sizes->count);
    sft_code code = layout == &layouts[0] ? sparse_values(r, value, data->u.items, shape,
                                                          sizes->count, &done)
                                          : SFT_OK;
    if (code || done) return code;
    return sfti_rebuild_refuse(r, value, SFT_FOREIGN_OBJECT, SFT_HINT_NONE, 0,
                               "expected a sparse tensor in coordinates, found %s; its parts can "
                               "be taken as they are", layout == &layouts[0]
                               ? "indices and values that do not fit its shape"
                               : "another layout");
}
