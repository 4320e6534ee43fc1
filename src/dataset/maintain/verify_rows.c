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

/* Offsets begin with 0, ascend and end with the number of elements. */
static sft_code rows_offsets(const rows_check *r, const sft_tensor *offsets,
                             const sft_tensor *values) {
    uint64_t last = 0, elements = values->rank ? values->shape[0] : 0;
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
    return last == elements ? SFT_OK
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
static const sft_tensor *rows_part(const rows_check *r, const sfti_ds_column *c,
                                   sfti_ds_part part) {
    const char *suffix = sfti_ds_part_suffix(part);
    const size_t len = strlen(suffix);
    if (c->name.len > ROWS_BYTES - len) return NULL;
    if (c->name.len) memcpy(r->buffer, c->name.data, c->name.len);
    memcpy(r->buffer + c->name.len, suffix, len);
    return sft_file_find(r->file, (sft_span){ r->buffer, c->name.len + len });
}

static sft_code rows_column(const rows_check *r, const sfti_ds_column *c, uint64_t samples,
                            bool deep) {
    const sft_tensor *values = rows_part(r, c, SFTI_PART_VALUES);
    const sft_tensor *offsets = rows_part(r, c, SFTI_PART_OFFSETS);
    const sft_tensor *valid = rows_part(r, c, SFTI_PART_VALID);
    const bool varies = c->encoding != SFTI_ENCODING_FIXED;
    sft_code code = SFT_OK;
    if (!values) return SFT_OK; /* the number of columns tells */
    if (valid && c->nullable) {
        if (valid->dtype != SFT_BOOL || valid->rank != 1 || valid->shape[0] != samples)
            return rows_wrong(r, valid, "BOOL with an element a sample");
        code = rows_marks(r, valid);
    }
    if (code || !varies) return code;
    /* Lists that have one length in this file are stacked. */
    if (c->encoding == SFTI_ENCODING_LIST && !offsets && values->rank == 2 &&
        values->shape[0] == samples)
        return SFT_OK;
    if (values->rank != 1 || !offsets)
        return rows_wrong(r, values, "values end to end, with offsets");
    if (offsets->dtype != SFT_I64 || offsets->rank != 1 || offsets->shape[0] == 0 ||
        offsets->shape[0] - 1 != samples)
        return rows_wrong(r, offsets, "I64 with one more element than samples");
    code = rows_offsets(r, offsets, values);
    if (!code && deep && c->encoding == SFTI_ENCODING_UTF8 && values->dtype == SFT_U8)
        code = rows_text(r, offsets, values);
    return code;
}

sft_code sfti_verify_rows(const sft_file *file, const sfti_ds_column *columns, size_t count,
                          uint64_t samples, bool deep, const sft_allocator *alloc,
                          sft_error *err) {
    rows_check r = { file, NULL, err };
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < count; i++) {
        if (!columns[i].encoding && !columns[i].nullable) continue;
        if (!r.buffer) r.buffer = sfti_take(alloc, ROWS_BYTES);
        if (!r.buffer) return sfti_fail_memory(err, ROWS_BYTES);
        code = rows_column(&r, &columns[i], samples, deep);
    }
    sfti_release(alloc, r.buffer, ROWS_BYTES);
    return code;
}
