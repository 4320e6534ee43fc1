/* Rows of a batch's file that vary in length or may be null. Tests: test_dataset_rows.c. */
#include "base/endian.h"
#include "base/error.h"
#include "base/utf8.h"
#include "dataset/maintain/results.h"

#include <string.h>

#define ROWS_BYTES ((size_t)1 << 18) /* read at once; a multiple of 8 */

typedef struct rows_check {
    const sft_file *file;
    char *buffer; /* ROWS_BYTES */
    sfti_arena *arena;
    sft_error *err;
} rows_check;

static sft_code rows_wrong(const rows_check *r, const sft_tensor *t, const char *what) {
    return sfti_fail(r->err, SFT_DATASET_SHARD, "tensor %.*s: expected %s",
                     SFTI_CLIP(t->name, 100), what);
}

static uint64_t rows_bytes(const sft_tensor *t) { return t->end - t->begin; }

/* The next bytes of a tensor into the buffer; *len 0 at its end. */
static sft_code rows_read(const rows_check *r, const sft_tensor *t, uint64_t at, char *to,
                          size_t most, size_t *len) {
    uint64_t left = rows_bytes(t) - at;
    *len = left < most ? (size_t)left : most;
    return *len ? sft_read_bytes(r->file, t->offset + at, to, *len, r->err) : SFT_OK;
}

/* Offsets begin with 0, ascend and end with the number of elements. Without values any number. */
static sft_code rows_offsets(const rows_check *r, const sft_tensor *offsets,
                             const sft_tensor *values, uint64_t *elements_out) {
    uint64_t last = 0, elements = values ? values->shape[0] : INT64_MAX; /* of rank 1 */
    size_t len = 0;
    for (uint64_t at = 0;; at += len) {
        sft_code code = rows_read(r, offsets, at, r->buffer, ROWS_BYTES, &len);
        if (code) return code;
        for (size_t i = 0; i < len; i += 8) {
            uint64_t end = sfti_get_u64(r->buffer + i);
            if (at + i == 0 && end) return rows_wrong(r, offsets, "0 as the first offset");
            if (end < last || end > elements)
                return rows_wrong(r, offsets, "offsets that ascend to the end of the values");
            last = end;
        }
        if (!len) break;
    }
    if (elements_out) *elements_out = last;
    return !values || last == elements ? SFT_OK
                            : rows_wrong(r, offsets, "the number of values as the last offset");
}

static sft_code rows_marks(const rows_check *r, const sft_tensor *valid) {
    size_t len = 0;
    for (uint64_t at = 0;; at += len) {
        sft_code code = rows_read(r, valid, at, r->buffer, ROWS_BYTES, &len);
        if (code || !len) return code;
        for (size_t i = 0; i < len; i++)
            if ((uint8_t)r->buffer[i] > 1) return rows_wrong(r, valid, "only 0 and 1");
    }
}

/* All values are UTF-8 and no row begins inside a character, so each row is. */
static sft_code rows_text(const rows_check *r, const sft_tensor *offsets,
                          const sft_tensor *values) {
    char ends[4096];
    uint64_t at = 0, ends_at = 0;
    size_t kept = 0, len = 0, got = 0, next = 0;
    do {
        sft_code code =
            rows_read(r, values, at + kept, r->buffer + kept, ROWS_BYTES - kept, &len);
        if (code) return code;
        len += kept;
        size_t good = sfti_utf8_check(r->buffer, len);
        bool last = at + len == rows_bytes(values);
        if (good != len && (last || len - good > 3)) return rows_wrong(r, values, "UTF-8");
        for (;;) {
            if (next == got) {
                code = rows_read(r, offsets, ends_at, ends, sizeof ends, &got);
                if (code) return code;
                ends_at += got;
                next = 0;
                if (!got) break;
            }
            uint64_t end = sfti_get_u64(ends + next);
            if (end >= at + good) break;
            if (((uint8_t)r->buffer[end - at] & 0xc0) == 0x80)
                return rows_wrong(r, offsets, "rows of whole characters");
            next += 8;
        }
        kept = len - good;
        memmove(r->buffer, r->buffer + good, kept);
        at += good;
    } while (at < rows_bytes(values));
    return SFT_OK;
}

/* NULL when there is none. The buffer takes its name. */
static const sft_tensor *rows_part(const rows_check *r, sft_span name, sfti_ds_part part) {
    const char *suffix = sfti_ds_part_suffix(part);
    const size_t len = strlen(suffix);
    if (name.len > ROWS_BYTES - len) return NULL;
    if (name.len) memcpy(r->buffer, name.data, name.len);
    memcpy(r->buffer + name.len, suffix, len);
    return sft_file_find(r->file, (sft_span){ r->buffer, name.len + len });
}

static sft_code rows_nulls(const rows_check *r, const sft_tensor *valid, uint64_t rows) {
    if (valid->dtype != SFT_BOOL || valid->rank != 1 || valid->shape[0] != rows)
        return rows_wrong(r, valid, "BOOL with an element a row");
    return rows_marks(r, valid);
}

/* Offsets of so many rows of these values, or of *last elements. */
static sft_code rows_ends(const rows_check *r, const sft_tensor *offsets, uint64_t rows,
                          const sft_tensor *values, uint64_t *last) {
    if (offsets->dtype != SFT_I64 || offsets->rank != 1 || offsets->shape[0] == 0 ||
        offsets->shape[0] - 1 != rows)
        return rows_wrong(r, offsets, "I64 with one more element than rows");
    return rows_offsets(r, offsets, values, last);
}

static sft_code rows_column(const rows_check *r, const sfti_ds_column *c, uint64_t samples,
                            bool deep) {
    const sft_tensor *values = rows_part(r, c->name, SFTI_PART_VALUES);
    const sft_tensor *offsets = rows_part(r, c->name, SFTI_PART_OFFSETS);
    const sft_tensor *valid = rows_part(r, c->name, SFTI_PART_VALID);
    const bool varies = c->encoding != SFTI_ENCODING_FIXED;
    sft_code code = SFT_OK;
    if (!values) return SFT_OK; /* the number of columns tells */
    if (valid && c->nullable) code = rows_nulls(r, valid, samples);
    if (code || !varies) return code;
    /* Lists that have one length in this file are stacked. */
    if (c->encoding == SFTI_ENCODING_LIST && !offsets && values->rank == 2 &&
        values->shape[0] == samples)
        return SFT_OK;
    if (values->rank != 1 || !offsets)
        return rows_wrong(r, values, "values end to end, with offsets");
    code = rows_ends(r, offsets, samples, values, NULL);
    if (!code && deep && c->encoding == SFTI_ENCODING_UTF8 && values->dtype == SFT_U8)
        code = rows_text(r, offsets, values);
    return code;
}

/* ── Columns in columns ── */

/* Those of a nested column in this file. */
typedef struct rows_nested {
    const sfti_ds_inner *all;
    size_t count;
    uint64_t *rows; /* of each */
    bool *told;     /* its values are those of the column around it */
    uint64_t used;  /* tensors */
} rows_nested;

static sft_code rows_missing(const rows_check *r, sft_span name) {
    return sfti_fail(r->err, SFT_DATASET_SHARD, "expected a tensor of %.*s, found none",
                     SFTI_CLIP(name, 100));
}

/* The numbers in lists, which may be stacked or end to end. *is: they are. */
static sft_code rows_array(const rows_check *r, const rows_nested *n, size_t i,
                           const sft_tensor *values, const sft_tensor *offsets) {
    size_t leaf = i;
    while (n->all[leaf].form == SFTI_FORM_LIST) leaf++; /* a list has an item behind it */
    const sfti_ds_inner *one = &n->all[leaf];
    if (one->form != SFTI_FORM_PLAIN || one->width || values->dtype != one->dtype)
        return rows_wrong(r, values, "numbers as in the type");
    for (size_t k = i + 1; k <= leaf; k++) n->told[k] = true;
    for (size_t k = i; k < leaf && !offsets && values->rank == leaf - i + 1; k++)
        if (n->all[k].fixed && values->shape[k - i + 1] != n->all[k].size)
            return rows_wrong(r, values, "lists as long as the type says");
    if (offsets && values->rank == 1) return rows_ends(r, offsets, n->rows[i], values, NULL);
    if (!offsets && values->rank == leaf - i + 1 && values->shape[0] == n->rows[i]) return SFT_OK;
    return rows_wrong(r, values, "rows of lists");
}

static sft_code rows_list(const rows_check *r, rows_nested *n, size_t i) {
    const sft_tensor *values = rows_part(r, n->all[i].name, SFTI_PART_VALUES);
    const sft_tensor *offsets = rows_part(r, n->all[i].name, SFTI_PART_OFFSETS);
    if (values) n->used++;
    if (offsets) n->used++;
    if (values) return rows_array(r, n, i, values, offsets);
    if (!offsets) return rows_missing(r, n->all[i].name);
    return rows_ends(r, offsets, n->rows[i], NULL, &n->rows[i + 1]);
}

static sft_code rows_values(const rows_check *r, rows_nested *n, size_t i) {
    const sfti_ds_inner *one = &n->all[i];
    const sft_tensor *values = rows_part(r, one->name, SFTI_PART_VALUES);
    if (!values) return rows_missing(r, one->name);
    n->used++;
    if (values->dtype != one->dtype || values->rank != 1 + (one->width > 0) ||
        values->shape[0] != n->rows[i] || (one->width && values->shape[1] != one->width))
        return rows_wrong(r, values, "dtype and shape of its type and rows");
    return SFT_OK;
}

static sft_code rows_bytes_of(const rows_check *r, rows_nested *n, size_t i, bool deep) {
    const sft_tensor *values = rows_part(r, n->all[i].name, SFTI_PART_VALUES);
    const sft_tensor *offsets = rows_part(r, n->all[i].name, SFTI_PART_OFFSETS);
    if (!values || !offsets) return rows_missing(r, n->all[i].name);
    n->used += 2;
    if (values->dtype != SFT_U8 || values->rank != 1)
        return rows_wrong(r, values, "bytes end to end");
    sft_code code = rows_ends(r, offsets, n->rows[i], values, NULL);
    return !code && deep && n->all[i].text ? rows_text(r, offsets, values) : code;
}

static sft_code rows_in_column(const rows_check *r, rows_nested *n, size_t i, bool deep) {
    const sfti_ds_inner *one = &n->all[i];
    const sft_tensor *valid = rows_part(r, one->name, SFTI_PART_VALID);
    sft_code code = SFT_OK;
    if (n->told[i]) return SFT_OK;
    if (i && n->all[one->parent].form == SFTI_FORM_STRUCT) n->rows[i] = n->rows[one->parent];
    if (valid) {
        n->used++;
        code = rows_nulls(r, valid, n->rows[i]);
    }
    if (code || one->form == SFTI_FORM_STRUCT) return code;
    if (one->form == SFTI_FORM_LIST) return rows_list(r, n, i);
    return one->form == SFTI_FORM_BYTES ? rows_bytes_of(r, n, i, deep) : rows_values(r, n, i);
}

static sft_code rows_nested_column(const rows_check *r, const sfti_ds_column *columns,
                                   size_t count, const sfti_ds_column *c, uint64_t samples,
                                   bool deep) {
    rows_nested n = { .count = 0 };
    sfti_ds_inner *all = NULL;
    sfti_ds_part part;
    uint64_t there = 0;
    sft_code code = sfti_ds_type_parse(c->name, c->type, r->arena, &all, &n.count, r->err);
    if (code) return code;
    n.all = all;
    n.rows = sfti_arena_array(r->arena, n.count, sizeof *n.rows);
    n.told = sfti_arena_array(r->arena, n.count, sizeof *n.told);
    if (!n.rows || !n.told) return sfti_fail_memory(r->err, n.count * sizeof *n.rows);
    memset(n.told, 0, n.count * sizeof *n.told);
    n.rows[0] = samples;
    for (size_t i = 0; !code && i < n.count; i++) code = rows_in_column(r, &n, i, deep);
    for (size_t i = 0; !code && i < sft_file_tensor_count(r->file); i++)
        there += sfti_ds_column_part(columns, count, sft_file_tensor_at(r->file, i)->name,
                                     &part) == c;
    if (code || there == n.used) return code;
    return sfti_fail(r->err, SFT_DATASET_SHARD, "column %.*s: expected %llu tensors, found %llu",
                     SFTI_CLIP(c->name, 100), (unsigned long long)n.used,
                     (unsigned long long)there);
}

sft_code sfti_verify_rows(const sft_file *file, const sfti_ds_column *columns, size_t count,
                          uint64_t samples, bool deep, const sft_allocator *alloc,
                          sft_error *err) {
    sfti_arena arena = { .alloc = *alloc };
    rows_check r = { file, NULL, &arena, err };
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < count; i++) {
        if (!columns[i].encoding && !columns[i].nullable) continue;
        if (!r.buffer) r.buffer = sfti_take(alloc, ROWS_BYTES);
        if (!r.buffer) return sfti_fail_memory(err, ROWS_BYTES);
        if (columns[i].encoding != SFTI_ENCODING_NESTED)
            code = rows_column(&r, &columns[i], samples, deep);
        else code = rows_nested_column(&r, columns, count, &columns[i], samples, deep);
    }
    sfti_arena_free(&arena);
    sfti_release(alloc, r.buffer, ROWS_BYTES);
    return code;
}
