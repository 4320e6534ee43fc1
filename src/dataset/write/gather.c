/* Rows gathered for a file, node by node. Tests: test_dataset_shards.c, test_dataset_nested.c. */
#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "dataset/write/writer.h"

#include <string.h>

/* ── Where rows are ── */

uint64_t sfti_gather_end_of(const shard_column *c, uint64_t row) {
    return row ? sfti_get_u64(c->ends.data + 8 * row) : 0;
}

uint64_t sfti_gather_row_of(const sft_shard_writer *w, size_t k, uint64_t row) {
    for (size_t i = w->column[k].node->parent; i != SFTI_NO_NODE; i = w->column[i].node->parent) {
        const shard_column *c = &w->column[i];
        uint64_t low = 0, high = c->rows;
        if (c->asked->form == SFTI_FORM_STRUCT) continue;
        while (low < high) { /* the first row that ends behind it */
            uint64_t middle = low + (high - low) / 2;
            if (sfti_gather_end_of(c, middle + 1) > row) high = middle;
            else low = middle + 1;
        }
        row = low;
    }
    return row;
}

bool sfti_gather_used(const sft_shard_writer *w, size_t k) {
    while (w->column[k].node->spare) {
        k = w->column[k].node->parent;
        if (w->column[k].asked->form == SFTI_FORM_ARRAY) return w->column[k].chained;
    }
    return true;
}

/* Whether its rows are lists of the next node's rows. */
static bool gather_is_list(const shard_column *c) {
    return c->chained || c->asked->form == SFTI_FORM_LIST;
}

/* The message of the node's next row. */
static sft_code gather_fail(const sft_shard_writer *w, size_t k, sft_code code,
                            const sft_error *inner, sft_error *err) {
    const shard_column *c = &w->column[k];
    return sfti_shard_row_fail(err, code, c->asked->name,
                               w->file_row + sfti_gather_row_of(w, k, c->rows), inner);
}

static sft_code gather_put(sft_shard_writer *w, size_t k, shard_range range, sft_error *err) {
    shard_column *c = &w->column[k];
    shard_range *last = c->range_count ? &c->ranges[c->range_count - 1] : NULL;
    if (!range.count) return SFT_OK;
    if (last && last->null == range.null &&
        (range.null || last->begin + last->count == range.begin)) {
        last->count += range.count;
        return SFT_OK;
    }
    shard_range *grown =
        sfti_grow(&w->alloc, c->ranges, c->range_count, 1, &c->range_cap, sizeof *grown);
    if (!grown) return sfti_fail_memory(err, sizeof *grown);
    c->ranges = grown;
    grown[c->range_count++] = range;
    return SFT_OK;
}

/* ── Rows of values ── */

static sft_code value_differs(const shard_column *c, const shard_value *v, sft_error *err) {
    char want[SFTI_SHAPE_TEXT], have[SFTI_SHAPE_TEXT];
    sfti_ds_shape_text(c->shape + 1, c->rank, want);
    sfti_ds_shape_text(v->shape, v->rank, have);
    return sfti_fail(err, SFT_ROW_SHAPE, "expected %s %s as in the rows before it, found %s %s",
                     sft_dtype_describe(c->from)->name, want, sft_dtype_describe(v->from)->name,
                     have);
}

/* The first rows of a file set what all of them have. */
static sft_code value_first(shard_column *c, const shard_value *v, sft_error *err) {
    c->begun = true;
    c->from = v->from;
    c->dtype = c->asked->has_dtype ? c->asked->dtype : v->from;
    c->rank = v->rank;
    if (v->rank) memcpy(c->shape + 1, v->shape, v->rank * sizeof *c->shape);
    c->row_elements = v->elements;
    c->row_bytes = v->len / v->rows;
    if (c->varying || c->asked->form == SFTI_FORM_BYTES) return SFT_OK;
    return sfti_shard_agrees(c, c->dtype, c->rank, c->shape + 1, err);
}

static bool gather_begin_ends(shard_column *c) {
    static const char zero[8] = { 0 };
    return c->ends.len || sfti_buffer_put(&c->ends, zero, 8);
}

/* Marks the next rows as null or not. The first null finds the rows before it without a mark. */
static bool gather_mark(shard_column *c, uint64_t rows, bool null) {
    const uint64_t before = c->rows - c->valid.len;
    uint64_t more;
    if (!null && c->valid.len == 0) return true;
    if (!sfti_add(rows, before, &more) || !sfti_fits_size(more) ||
        !sfti_buffer_reserve(&c->valid, (size_t)more))
        return false;
    char *to = c->valid.data + c->valid.len;
    if (before) memset(to, 1, (size_t)before);
    if (rows) memset(to + before, !null, (size_t)rows);
    c->valid.len += (size_t)more;
    return true;
}

/* Counts rows with so many elements each, or null ones. */
static sft_code gather_count(shard_column *c, uint64_t rows, uint64_t elements, bool null,
                             sft_error *err) {
    if (c->listed || c->chained) {
        uint64_t bytes, at;
        if (!sfti_mul(rows, 8, &bytes) || !sfti_fits_size(bytes) || !gather_begin_ends(c) ||
            !sfti_buffer_reserve(&c->ends, (size_t)bytes))
            return sfti_fail_memory(err, rows);
        at = sfti_gather_end_of(c, c->rows);
        for (uint64_t i = 0; i < rows; i++, c->ends.len += 8) {
            if (!sfti_add(at, elements, &at)) return sfti_ds_overflow("a batch", err);
            sfti_put_u64(c->ends.data + c->ends.len, at);
        }
    }
    if (!gather_mark(c, rows, null)) return sfti_fail_memory(err, rows);
    c->rows += rows;
    return SFT_OK;
}

/* Null rows have no elements, or zeros where the type says how many. */
static sft_code value_null(sft_shard_writer *w, shard_column *c, sft_error *err) {
    static const uint64_t nothing = 0;
    shard_value v = { .from = c->asked->from, .rows = 1, .elements = c->elements,
                      .rank = c->asked->rank, .shape = c->asked->shape };
    if (c->listed) {
        v.elements = 0;
        v.rank = 1;
        v.shape = &nothing;
        c->varying = true;
    }
    if (!sfti_mul(v.elements, c->listed || c->asked->opaque ? 1 : c->type.bytes, &v.len))
        return sfti_ds_overflow("a row", err);
    v.piece.len = v.len;
    sft_code code = c->begun ? SFT_OK : value_first(c, &v, err);
    if (!code && !sfti_pieces_put(&c->pieces, v.piece, &w->alloc))
        code = sfti_fail_memory(err, sizeof v.piece);
    return code ? code : gather_count(c, 1, v.elements, true, err);
}

/* Rows of text, bytes, or lists that already differ in length. *rows 0: none. */
static sft_code value_run(sft_shard_writer *w, size_t k, shard_held *held, uint64_t i,
                          uint64_t most, uint64_t *rows, sft_error *err) {
    shard_column *c = &w->column[k];
    shard_piece piece;
    if (!gather_begin_ends(c)) return sfti_fail_memory(err, 8);
    sft_code code = sfti_shard_run(w, k, held, i, most, sfti_gather_end_of(c, c->rows), &c->ends,
                                   &piece, rows, err);
    if (code || !*rows) return code;
    if (!sfti_pieces_put(&c->pieces, piece, &w->alloc) || !gather_mark(c, *rows, false))
        return sfti_fail_memory(err, *rows);
    c->rows += *rows;
    return SFT_OK;
}

static sft_code value_bytes(sft_shard_writer *w, size_t k, shard_held *held, uint64_t i,
                            sft_error *err) {
    shard_column *c = &w->column[k];
    shard_piece piece;
    sft_error inner;
    sft_code code = sfti_shard_bytes(w, k, held, i, &piece, &inner);
    if (code) return gather_fail(w, k, code, &inner, err);
    if (!sfti_pieces_put(&c->pieces, piece, &w->alloc)) return sfti_fail_memory(err, sizeof piece);
    return gather_count(c, 1, piece.len, false, err);
}

static sft_code value_begin_bytes(shard_column *c, sft_error *err) {
    static const uint64_t nothing = 0;
    const shard_value v = { .from = SFT_U8, .rows = 1, .rank = 1, .shape = &nothing };
    c->varying = true;
    return c->begun ? SFT_OK : value_first(c, &v, err);
}

/* ── Lists whose rows differ in shape, or have nulls in them ── */

/* Gathers what there is so far as lists of lists, down to the numbers. */
static sft_code gather_chain(sft_shard_writer *w, size_t k, sft_error *err) {
    shard_column *c = &w->column[k], *leaf = &w->column[k + c->node->chain];
    const bool ends = c->listed;
    uint64_t rows = c->rows;
    c->chained = c->varying = true;
    if (!rows) return SFT_OK;
    shard_pieces pieces = leaf->pieces;
    leaf->pieces = c->pieces;
    c->pieces = pieces;
    leaf->begun = true;
    leaf->from = c->from;
    leaf->dtype = c->dtype;
    leaf->row_elements = 1;
    leaf->row_bytes = c->type.bytes;
    if (ends) {
        leaf->rows = sfti_gather_end_of(c, rows);
        return SFT_OK;
    }
    sft_buffer valid = c->valid; /* of the same rows */
    c->rows = c->valid.len = 0;
    sft_code code = SFT_OK;
    for (uint32_t i = 0; !code && i < c->rank; i++) {
        shard_column *at = &w->column[k + i];
        code = gather_count(at, rows, c->shape[i + 1], false, err);
        at->varying = true;
        if (!code) rows = sfti_gather_end_of(at, rows);
    }
    c->valid = valid;
    leaf->rows = rows;
    return code;
}

/* Null lists of a fixed length have elements, which are null; others have none. */
static sft_code lists_null(sft_shard_writer *w, size_t k, uint64_t rows, sft_error *err) {
    shard_column *c = &w->column[k];
    const uint64_t length = c->node->list.fixed ? c->node->list.length : 0;
    uint64_t elements;
    if (!sfti_mul(rows, length, &elements)) return sfti_ds_overflow("a batch", err);
    sft_code code = gather_count(c, rows, length, true, err);
    c->varying = true;
    return code ? code : gather_put(w, k + 1, (shard_range){ 0, elements, true }, err);
}

static sft_code gather_lists(sft_shard_writer *w, size_t k, uint64_t begin, uint64_t count,
                             sft_error *err) {
    shard_column *c = &w->column[k];
    c->varying = true;
    for (uint64_t i = begin; i < begin + count; i++) {
        uint64_t from = 0, to = 0;
        sft_error inner;
        sft_code code = sfti_arrow_list_range(&c->node->list, c->array, i, &from, &to, &inner);
        if (code && code != SFT_ROW_NULL) return gather_fail(w, k, code, &inner, err);
        if (!code) {
            code = gather_count(c, 1, to - from, false, err);
            if (!code) code = gather_put(w, k + 1, (shard_range){ from, to - from, false }, err);
        } else code = lists_null(w, k, 1, err);
        if (code) return code;
    }
    return SFT_OK;
}

/* ── Values ── */

/* *rows 0: the column's rows are gathered as lists of lists from here on. */
static sft_code value_some(sft_shard_writer *w, size_t k, shard_held *held, uint64_t i,
                           uint64_t most, uint64_t *rows, sft_error *err) {
    shard_column *c = &w->column[k];
    shard_value v;
    sft_error inner;
    sft_code code = sfti_shard_values(w, k, held, i, most, &v, &inner);
    if (!code && !c->begun) {
        code = value_first(c, &v, err);
        if (code) return code;
    }
    if (!code &&
        (v.from != c->from || !sfti_ds_shape_same(v.shape, v.rank, c->shape + 1, c->rank))) {
        if (!c->listed) code = value_differs(c, &v, &inner);
        else c->varying = true;
    }
    *rows = 0;
    if (c->node->chain && (code == SFT_ROW_NULL || code == SFT_ROW_SHAPE))
        return gather_chain(w, k, err);
    if (code) return gather_fail(w, k, code, &inner, err);
    if (!sfti_pieces_put(&c->pieces, v.piece, &w->alloc))
        return sfti_fail_memory(err, sizeof v.piece);
    *rows = v.rows;
    return gather_count(c, v.rows, v.elements, false, err);
}

static sft_code gather_values(sft_shard_writer *w, size_t k, shard_held *held, uint64_t first,
                              uint64_t count, sft_error *err) {
    shard_column *c = &w->column[k];
    const struct ArrowArray *array = c->array;
    /* A null of any other column is an error, which reading it raises. */
    bool nulls = c->listed || (c->asked->form != SFTI_FORM_TENSOR && c->asked->has_shape);
    nulls = nulls && (c->type.dictionary || array->null_count != 0);
    const bool bytes = c->asked->form == SFTI_FORM_BYTES;
    sft_code code = bytes && count ? value_begin_bytes(c, err) : SFT_OK;
    for (uint64_t done = 0, rows = 1; !code && done < count; done += rows) {
        const bool runs = c->runs && c->varying;
        uint64_t most = count - done, until = 1;
        if (!runs) most = bytes ? 1 : most < c->ask ? most : c->ask;
        rows = 1;
        if (nulls && sfti_arrow_row_null(&c->type, array, first + done)) {
            code = value_null(w, c, err);
            continue;
        }
        while (nulls && until < most &&
               !sfti_arrow_row_null(&c->type, array, first + done + until))
            until++;
        if (nulls) most = until;
        if (runs) code = value_run(w, k, held, first + done, most, &rows, err);
        if (code || (runs && rows)) continue;
        if (bytes) {
            rows = 1;
            code = value_bytes(w, k, held, first + done, err);
            continue;
        }
        code = value_some(w, k, held, first + done, most, &rows, err);
        if (!code && c->chained) return gather_lists(w, k, first + done, count - done, err);
        if (rows < most) c->ask = 2 * rows;
        else c->ask = most > UINT64_MAX / 2 ? UINT64_MAX : 2 * most;
    }
    return code;
}

/* ── Structs ── */

/* The same rows of all fields. */
static sft_code struct_fields(sft_shard_writer *w, size_t k, shard_range range, sft_error *err) {
    const sfti_ds_node *nodes = w->columns.node;
    sft_code code = SFT_OK;
    for (size_t i = k + 1; !code && i < nodes[k].end; i = nodes[i].end)
        code = gather_put(w, i, range, err);
    return code;
}

static sft_code gather_structs(sft_shard_writer *w, size_t k, uint64_t begin, uint64_t count,
                               sft_error *err) {
    shard_column *c = &w->column[k];
    const uint64_t end = begin + count;
    /* sfti_arrow_check_struct and sfti_arrow_list_range found these rows in the array. */
    if (sfti_never(end > (uint64_t)c->array->length)) return SFT_BAD_ARGUMENT;
    for (uint64_t i = begin, until; i < end; i = until) {
        const bool null = sfti_arrow_null(c->array, i);
        until = c->array->null_count ? i + 1 : end;
        while (until < end && sfti_arrow_null(c->array, until) == null) until++;
        shard_range range = { (uint64_t)c->array->offset + i, until - i, null };
        sft_code code = gather_count(c, until - i, 0, null, err);
        if (!code) code = struct_fields(w, k, range, err);
        if (code) return code;
    }
    return SFT_OK;
}

/* ── Any node ── */

/* Rows that are null because what is around them is. */
static sft_code gather_nulls(sft_shard_writer *w, size_t k, uint64_t count, sft_error *err) {
    shard_column *c = &w->column[k];
    sft_code code = SFT_OK;
    /* Lists of lists have no shape before the first one. */
    if (c->node->chain && !c->listed && !c->asked->has_shape && !c->chained)
        code = gather_chain(w, k, err);
    if (code) return code;
    if (gather_is_list(c)) return lists_null(w, k, count, err);
    if (c->asked->form == SFTI_FORM_STRUCT) {
        code = gather_count(c, count, 0, true, err);
        return code ? code : struct_fields(w, k, (shard_range){ 0, count, true }, err);
    }
    for (uint64_t i = 0; !code && i < count; i++) code = value_null(w, c, err);
    return code;
}

static sft_code gather_range(sft_shard_writer *w, size_t k, shard_held *held, shard_range range,
                             sft_error *err) {
    const shard_column *c = &w->column[k];
    if (range.null) return gather_nulls(w, k, range.count, err);
    if (gather_is_list(c)) return gather_lists(w, k, range.begin, range.count, err);
    if (c->asked->form == SFTI_FORM_STRUCT)
        return gather_structs(w, k, range.begin, range.count, err);
    return gather_values(w, k, held, range.begin, range.count, err);
}

/* Nodes are in preorder: what is around a node has put its ranges before. */
sft_code sfti_gather_rows(sft_shard_writer *w, shard_held *held, uint64_t row, uint64_t count,
                          sft_error *err) {
    const shard_range all = { (uint64_t)held->array.offset + row, count, false };
    sft_code code = SFT_OK;
    for (size_t k = 0; !code && k < w->columns.node_count; k++) {
        shard_column *c = &w->column[k];
        if (c->node->parent == SFTI_NO_NODE) code = gather_range(w, k, held, all, err);
        for (size_t i = 0; !code && i < c->range_count; i++)
            code = gather_range(w, k, held, c->ranges[i], err);
        c->range_count = 0;
    }
    return code;
}

/* ── The end of a file ── */

sft_code sfti_gather_padding(sft_shard_writer *w, uint64_t rows, sft_error *err) {
    const size_t n = w->columns.node_count;
    for (size_t k = 0; k < n; k++) {
        shard_piece zeros = { NULL, NULL, 0, 0 };
        shard_column *c = &w->column[k];
        const size_t around = c->node->parent;
        /* Rows of padding are lists without elements. */
        c->padded = around == SFTI_NO_NODE ||
                    (w->column[around].padded && w->column[around].asked->form == SFTI_FORM_STRUCT);
        if (!c->padded) continue;
        if (!c->varying && !sfti_mul(rows, c->row_bytes, &zeros.len))
            return sfti_ds_overflow("a batch", err);
        if (!sfti_pieces_put(&c->pieces, zeros, &w->alloc))
            return sfti_fail_memory(err, sizeof zeros);
        sft_code code = gather_count(c, rows, c->varying ? 0 : c->row_elements, false, err);
        if (code) return code;
    }
    return SFT_OK;
}

sft_code sfti_gather_end(sft_shard_writer *w, sft_error *err) {
    for (size_t k = 0; k < w->columns.node_count; k++) {
        shard_column *c = &w->column[k];
        sft_code code = SFT_OK;
        if (c->rows || !sfti_gather_used(w, k)) continue;
        if (c->node->chain && !c->listed && !c->asked->has_shape) code = gather_chain(w, k, err);
        c->varying = c->listed || c->chained;
        c->from = c->asked->from;
        c->dtype = c->asked->dtype;
        c->rank = c->asked->has_shape ? c->asked->rank : 1;
        if (c->asked->has_shape && c->rank)
            memcpy(c->shape + 1, c->asked->shape, c->rank * sizeof *c->shape);
        if (!code) code = gather_count(c, 0, 0, false, err);
        if (code) return code;
    }
    return SFT_OK;
}
