/* Elements of rows out of Arrow's arrays. Tests: test_dataset_arrow.c. */
#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "dataset/arrow/arrow.h"

#include <string.h>

/* Positions below are logical: element i of an array is at offset + i of its buffers. */

static uint64_t rows_place(const struct ArrowArray *array, uint64_t i) {
    return (uint64_t)array->offset + i;
}

static sft_code rows_broken(sft_error *err, const char *what) {
    return sfti_misuse(err, "expected an array that keeps Arrow's rules, found %s", what);
}

static sft_code rows_null(sft_error *err) {
    return sfti_fail(err, SFT_ROW_NULL, "expected a value, found null");
}

/* ── Nulls ── */

static const uint8_t *rows_valid(const struct ArrowArray *array) {
    return array->null_count == 0 || array->n_buffers < 1 ? NULL : array->buffers[0];
}

bool sfti_arrow_null(const struct ArrowArray *array, uint64_t i) {
    const uint8_t *bits = rows_valid(array);
    uint64_t at = rows_place(array, i);
    return bits && !(bits[at / 8] >> (at % 8) & 1);
}

static bool rows_any_null(const struct ArrowArray *array, uint64_t begin, uint64_t end) {
    const uint8_t *bits = rows_valid(array);
    uint64_t word, at = rows_place(array, begin), last = rows_place(array, end);
    for (; bits && at < last; at++) {
        for (; at % 8 == 0 && last - at >= 64; at += 64) {
            memcpy(&word, bits + at / 8, sizeof word);
            if (~word) break;
        }
        if (at < last && !(bits[at / 8] >> (at % 8) & 1)) return true;
    }
    return false;
}

/* ── Whether an array is one of the type ── */

static bool check_node(const struct ArrowArray *array, int64_t buffers, int64_t children) {
    if (!array || array->length < 0 || array->offset < 0 ||
        array->offset > INT64_MAX - array->length || array->n_buffers < buffers ||
        array->n_children < children || !array->buffers || (children && !array->children))
        return false;
    for (int64_t i = 1; i < buffers && i < 2 && array->length; i++)
        if (!array->buffers[i]) return false;
    return true;
}

sft_code sfti_arrow_check_list(const sfti_arrow_list *list, const struct ArrowArray *array,
                               sft_error *err) {
    if (check_node(array, list->fixed ? 1 : list->view ? 3 : 2, 1) &&
        !(list->view && array->length && !array->buffers[2]))
        return SFT_OK;
    return rows_broken(err, "a list without its buffers");
}

sft_code sfti_arrow_check_struct(const struct ArrowArray *array, size_t children, sft_error *err) {
    bool good = check_node(array, 1, 0) && (uint64_t)array->n_children == children &&
                (!children || array->children);
    for (size_t i = 0; good && i < children; i++) good = sfti_arrow_has_child(array, i);
    return good ? SFT_OK : rows_broken(err, "a struct without its children");
}

sft_code sfti_arrow_check(const sfti_arrow_type *type, const struct ArrowArray *array,
                          sft_error *err) {
    for (uint32_t level = 0; level < type->depth; level++) {
        sft_code code = sfti_arrow_check_list(&type->list[level], array, err);
        if (code) return code;
        array = array->children[0];
    }
    if (type->dictionary && (!check_node(array, 2, 0) || !array->dictionary))
        return rows_broken(err, "a dictionary's array without its buffers");
    int64_t buffers = type->leaf == SFTI_LEAF_BYTES ? 3 : type->leaf == SFTI_LEAF_STRUCT ? 1 : 2;
    if (check_node(type->dictionary ? array->dictionary : array, buffers, 0)) return SFT_OK;
    return rows_broken(err, "an array without its buffers");
}

bool sfti_arrow_has_child(const struct ArrowArray *array, size_t i) {
    const struct ArrowArray *child = array->children[i];
    return child && child->length >= 0 && array->offset <= child->length &&
           array->length <= child->length - array->offset;
}

/* ── Numbers of 32 or 64 bits in a buffer ── */

static int64_t rows_offset(const void *buffer, bool large, uint64_t at) {
    int32_t narrow;
    int64_t wide;
    if (large) memcpy(&wide, (const char *)buffer + at * 8, 8);
    else memcpy(&narrow, (const char *)buffer + at * 4, 4), wide = narrow;
    return wide;
}

static uint64_t rows_key(const void *buffer, uint32_t bytes, uint64_t at) {
    uint64_t key = 0;
    const uint8_t *from = (const uint8_t *)buffer + at * bytes;
    uint16_t b2;
    uint32_t b4;
    switch (bytes) {
    case 1: key = *from; break;
    case 2: memcpy(&b2, from, 2), key = b2; break;
    case 4: memcpy(&b4, from, 4), key = b4; break;
    default: memcpy(&key, from, 8); break;
    }
    return key;
}

/* ── Text and bytes ── */

/* A view is 16 bytes: an int32 length, then up to 12 bytes inline, or 4 of them, an int32 buffer
 * index and an int32 offset. Buffers: validity, views, data…, int64 lengths of the data buffers. */
static bool bytes_viewed(const struct ArrowArray *array, uint64_t at, sft_span *out) {
    const char *view = (const char *)array->buffers[1] + 16 * at;
    int64_t len = rows_offset(view, false, 0), number, place, cap;
    if (len < 0) return false;
    *out = (sft_span){ view + 4, (size_t)len };
    if (len <= 12) return true;
    number = rows_offset(view, false, 2);
    place = rows_offset(view, false, 3);
    const void *rooms = array->buffers[array->n_buffers - 1];
    if (number < 0 || number >= array->n_buffers - 3 || place < 0 || !rooms) return false;
    cap = rows_offset(rooms, true, (uint64_t)number);
    const char *base = array->buffers[2 + number];
    out->data = base ? base + place : NULL;
    return base && place <= cap && len <= cap - place;
}

static bool bytes_plain(sfti_arrow_width width, const struct ArrowArray *array, uint64_t i,
                        sft_span *out) {
    uint64_t at = rows_place(array, i);
    if (i >= (uint64_t)array->length) return false;
    if (width == SFTI_ARROW_VIEW) return bytes_viewed(array, at, out);
    int64_t begin = rows_offset(array->buffers[1], width == SFTI_ARROW_64, at);
    int64_t end = rows_offset(array->buffers[1], width == SFTI_ARROW_64, at + 1);
    if (begin < 0 || end < begin) return false;
    const char *base = array->buffers[2];
    *out = (sft_span){ base ? base + begin : "", (size_t)(end - begin) };
    return base || begin == end;
}

bool sfti_arrow_bytes(const sfti_arrow_type *type, const struct ArrowArray *array, uint64_t i,
                      sft_span *out) {
    if (i >= (uint64_t)array->length || sfti_arrow_null(array, i)) return false;
    if (!type->dictionary) return bytes_plain(type->width, array, i, out);
    const struct ArrowArray *values = array->dictionary;
    uint64_t key = rows_key(array->buffers[1], type->key_bytes, rows_place(array, i));
    return key < (uint64_t)values->length && !sfti_arrow_null(values, key) &&
           bytes_plain(type->width, values, key, out);
}

bool sfti_arrow_row_null(const sfti_arrow_type *type, const struct ArrowArray *array,
                         uint64_t i) {
    if (i >= (uint64_t)array->length) return false;
    if (sfti_arrow_null(array, i)) return true;
    if (!type->dictionary || type->depth) return false;
    uint64_t key = rows_key(array->buffers[1], type->key_bytes, rows_place(array, i));
    return key < (uint64_t)array->dictionary->length && sfti_arrow_null(array->dictionary, key);
}

/* ── Lists ── */

sft_code sfti_arrow_list_range(const sfti_arrow_list *list, const struct ArrowArray *array,
                               uint64_t i, uint64_t *begin, uint64_t *end, sft_error *err) {
    uint64_t at = rows_place(array, i);
    if (i >= (uint64_t)array->length) return rows_broken(err, "a list beyond its array");
    if (sfti_arrow_null(array, i)) return rows_null(err);
    if (list->fixed) {
        if (!sfti_mul(at, list->length, begin) || !sfti_add(*begin, list->length, end))
            return rows_broken(err, "lists beyond 64 bits");
    } else {
        int64_t from = rows_offset(array->buffers[1], list->large, at);
        int64_t to = rows_offset(array->buffers[list->view ? 2 : 1], list->large,
                                 list->view ? at : at + 1);
        if (from < 0 || to < (list->view ? 0 : from))
            return rows_broken(err, "offsets that do not ascend");
        *begin = (uint64_t)from;
        *end = (uint64_t)to + (list->view ? *begin : 0);
    }
    if (*end <= (uint64_t)array->children[0]->length) return SFT_OK;
    return rows_broken(err, "offsets beyond the elements");
}

/* The elements of consecutive lists of one level and one length. */
typedef struct list_run {
    uint64_t begin, end, length;
    bool apart; /* not contiguous: begin is that of the first */
} list_run;

/* The fast path: lists of a fixed length without nulls. */
static bool list_quick(const sfti_arrow_list *list, const struct ArrowArray *array,
                       uint64_t begin, uint64_t end, list_run *out) {
    if (!list->fixed || begin == end) return false;
    /* What is in lists was found to lie in their child, and rows in their array. */
    if (sfti_never(end > (uint64_t)array->length) || rows_any_null(array, begin, end)) return false;
    *out = (list_run){ 0, 0, list->length, false };
    return sfti_mul(rows_place(array, begin), list->length, &out->begin) &&
           sfti_mul(rows_place(array, end), list->length, &out->end) &&
           out->end <= (uint64_t)array->children[0]->length;
}

/* As many of *rows lists as have one length and are contiguous; fails only if the first does. */
static sft_code list_first(const sfti_arrow_list *list, const struct ArrowArray *array,
                           uint64_t first, uint64_t *rows, list_run *out, sft_error *err) {
    uint64_t from, to, i = 0;
    if (list_quick(list, array, first, first + *rows, out)) return SFT_OK;
    for (; i < *rows; i++) {
        sft_code code = sfti_arrow_list_range(list, array, first + i, &from, &to, i ? NULL : err);
        if (code && i == 0) return code;
        if (i == 0) *out = (list_run){ from, from, to - from, false };
        if (code || to - from != out->length || (out->length && from != out->end)) break;
        if (out->length) out->end = to;
    }
    *rows = i;
    return SFT_OK;
}

static sft_code list_ragged(uint64_t expected, uint64_t found, sft_error *err) {
    return sfti_fail(err, SFT_ROW_SHAPE, "expected lists of one length (%llu), found %llu",
                     (unsigned long long)expected, (unsigned long long)found);
}

/* All of them. */
static sft_code list_span(const sfti_arrow_list *list, const struct ArrowArray *array,
                          uint64_t begin, uint64_t end, list_run *out, sft_error *err) {
    uint64_t from = 0, to = 0;
    *out = (list_run){ 0, 0, list->fixed ? list->length : 0, false };
    if (list_quick(list, array, begin, end, out)) return SFT_OK;
    for (uint64_t i = begin; i < end; i++) {
        sft_code code = sfti_arrow_list_range(list, array, i, &from, &to, err);
        if (code) return code;
        if (i == begin) *out = (list_run){ from, from, to - from, false };
        if (to - from != out->length) return list_ragged(out->length, to - from, err);
        out->apart = out->apart || (out->length && from != out->end);
        if (out->length) out->end = to;
    }
    return SFT_OK;
}

/* ── Leaves ── */

/* Files are little-endian; Arrow's memory has the host's byte order. */
static bool rows_big_endian(void) {
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 0;
}

static bool leaf_turns(const sfti_arrow_type *type) {
    return type->bytes > 1 && (!type->opaque || type->swapped) && rows_big_endian();
}

static void leaf_turn(const sfti_arrow_type *type, char *bytes, uint64_t count) {
    const uint32_t each = type->bytes;
    for (; count && leaf_turns(type); count--, bytes += each)
        for (uint32_t i = 0; i < each / 2; i++) {
            char kept = bytes[i];
            bytes[i] = bytes[each - 1 - i];
            bytes[each - 1 - i] = kept;
        }
}

static sft_code leaf_check(const struct ArrowArray *array, uint64_t begin, uint64_t end,
                           sft_error *err) {
    /* As for lists above. */
    if (sfti_never(end > (uint64_t)array->length))
        return rows_broken(err, "elements beyond their array");
    return rows_any_null(array, begin, end) ? rows_null(err) : SFT_OK;
}

/* Element i of an array of values to `to`. A bool8 holds any byte; a BOOL holds 0 or 1. */
static void leaf_one(const sfti_arrow_type *type, const struct ArrowArray *array, uint64_t i,
                     char *to) {
    uint64_t at = rows_place(array, i);
    const uint8_t *from = array->buffers[1];
    if (type->leaf == SFTI_LEAF_BITS) *to = (char)(from[at / 8] >> (at % 8) & 1);
    else if (type->dtype == SFT_BOOL) *to = from[at] != 0;
    else memcpy(to, from + at * type->bytes, type->bytes);
}

static sft_code leaf_lookup(const sfti_arrow_type *type, const struct ArrowArray *array,
                            uint64_t i, char *to, sft_error *err) {
    const struct ArrowArray *values = array->dictionary;
    uint64_t key = rows_key(array->buffers[1], type->key_bytes, rows_place(array, i));
    if (key >= (uint64_t)values->length)
        return rows_broken(err, "a number beyond its dictionary");
    if (sfti_arrow_null(values, key)) return rows_null(err);
    leaf_one(type, values, key, to);
    return SFT_OK;
}

/* Whether Arrow's memory holds the elements as a file does. */
static bool leaf_dense(const sfti_arrow_type *type) {
    return type->leaf == SFTI_LEAF_NUMBER && !type->dictionary && type->dtype != SFT_BOOL;
}

static const char *leaf_base(const sfti_arrow_type *type, const struct ArrowArray *array,
                             uint64_t i) {
    const char *base = array->buffers[1];
    return base ? base + rows_place(array, i) * type->bytes : ""; /* NULL: no element */
}

static sft_code leaf_copy(const sfti_arrow_type *type, const struct ArrowArray *array,
                          uint64_t begin, uint64_t end, char *to, sft_error *err) {
    sft_code code = SFT_OK;
    if (leaf_dense(type)) {
        if (end > begin)
            memcpy(to, leaf_base(type, array, begin), (size_t)(end - begin) * type->bytes);
        return SFT_OK;
    }
    for (uint64_t i = begin; !code && i < end; i++, to += type->bytes) {
        if (type->dictionary) code = leaf_lookup(type, array, i, to, err);
        else leaf_one(type, array, i, to);
    }
    return code;
}

static sft_code leaf_gather(const sfti_arrow_type *type, const struct ArrowArray *array,
                            uint64_t begin, uint64_t end, sft_buffer *buffer, sft_error *err) {
    uint64_t bytes;
    sft_code code = leaf_check(array, begin, end, err);
    if (code) return code;
    if (!sfti_mul(end - begin, type->bytes, &bytes) || !sfti_fits_size(bytes) ||
        !sfti_buffer_reserve(buffer, (size_t)bytes))
        return sfti_fail_memory(err, (end - begin) * type->bytes);
    char *to = buffer->data + buffer->len;
    code = leaf_copy(type, array, begin, end, to, err);
    if (code) return code;
    leaf_turn(type, to, end - begin);
    buffer->len += (size_t)bytes;
    return SFT_OK;
}

/* ── Runs of rows that differ in length ── */

bool sfti_arrow_has_runs(const sfti_arrow_type *type) {
    if (type->dictionary) return false;
    if (type->leaf == SFTI_LEAF_BYTES) return type->width != SFTI_ARROW_VIEW; /* in no lists */
    return type->depth == 1 && !type->list[0].fixed && !type->list[0].view && leaf_dense(type) &&
           !leaf_turns(type);
}

bool sfti_arrow_run(const sfti_arrow_type *type, const struct ArrowArray *array, uint64_t first,
                    uint64_t most, uint64_t from, sft_buffer *ends, uint64_t *rows, sft_span *out) {
    const bool bytes = type->leaf == SFTI_LEAF_BYTES;
    const bool wide = bytes ? type->width == SFTI_ARROW_64 : type->list[0].large;
    const uint64_t at = rows_place(array, first), each = bytes ? 1 : type->bytes;
    uint64_t count = 0, need;
    *rows = 0;
    if (first >= (uint64_t)array->length || most > (uint64_t)array->length - first) return true;
    if (!sfti_mul(most, 8, &need) || !sfti_fits_size(need) ||
        !sfti_buffer_reserve(ends, (size_t)need))
        return false;

    const struct ArrowArray *values = bytes ? NULL : array->children[0];
    const char *base = bytes ? array->buffers[2] : leaf_base(type, values, 0);
    const int64_t begin = rows_offset(array->buffers[1], wide, at);
    int64_t limit = from < INT64_MAX ? INT64_MAX - (int64_t)from : 0; /* of ends: no overflow */
    if (!base) limit = begin;
    if (values && values->length < limit) limit = values->length;
    if (begin < 0 || begin > limit || (values && rows_valid(values))) return true;
    char *to = ends->data + ends->len;
    int64_t end = begin;
    for (; count < most; count++) {
        const int64_t next = rows_offset(array->buffers[1], wide, at + count + 1);
        if (next < end || next > limit) break;
        sfti_put_u64(to + 8 * count, from + (uint64_t)(next - begin));
        end = next;
    }
    ends->len += (size_t)count * 8;
    *rows = count;
    *out = (sft_span){ base ? base + (uint64_t)begin * each : "",
                       (size_t)((uint64_t)(end - begin) * each) };
    return true;
}

/* ── A row whose inner lists do not lie one behind the other ── */

/* Visits each innermost list, or the outermost level without elements. Every length must be that of
 * the shape, or the row is ragged. */
static sft_code rows_scattered(const sfti_arrow_type *type, const struct ArrowArray *top,
                               uint64_t row, const uint64_t *shape, sft_buffer *buffer,
                               sft_error *err) {
    uint64_t place[SFT_MAX_RANK] = { 0 };
    uint32_t deep = 1;
    while (deep < type->depth && shape[deep - 1]) deep++;
    for (;;) {
        const struct ArrowArray *array = top;
        uint64_t i = row, begin = 0, end = 0;
        for (uint32_t level = 0; level < deep; level++) {
            sft_code code = sfti_arrow_list_range(&type->list[level], array, i, &begin, &end, err);
            if (code) return code;
            if (end - begin != shape[level]) return list_ragged(shape[level], end - begin, err);
            array = array->children[0];
            i = begin + place[level];
        }
        sft_code code = SFT_OK;
        if (deep == type->depth) code = leaf_gather(type, array, begin, end, buffer, err);
        if (code) return code;
        uint32_t level = deep - 1; /* the innermost list was copied whole */
        while (level > 0 && ++place[level - 1] == shape[level - 1]) place[--level] = 0;
        if (level == 0) return SFT_OK;
    }
}

/* Lengths of the first list at each level from `level` on, whose lists are those of `array` from
 * begin on. */
static sft_code rows_first_lengths(const sfti_arrow_type *type, const struct ArrowArray *array,
                                   uint32_t level, uint64_t begin, uint64_t *shape,
                                   sft_error *err) {
    uint64_t end;
    for (; level < type->depth; level++) {
        sft_code code = sfti_arrow_list_range(&type->list[level], array, begin, &begin, &end, err);
        if (code) return code;
        shape[level] = end - begin;
        array = array->children[0];
        if (begin == end) break;
    }
    for (level++; level < type->depth; level++)
        shape[level] = type->list[level].fixed ? type->list[level].length : 0;
    return SFT_OK;
}

/* ── Rows ── */

/* The rows' elements, given the range of the outermost lists. */
static sft_code rows_inner(const sfti_arrow_type *type, const struct ArrowArray *top,
                           uint64_t first, list_run run, sft_buffer *buffer,
                           sfti_arrow_rows *out, sft_error *err) {
    const struct ArrowArray *array = type->depth ? top->children[0] : top;
    for (uint32_t level = 1; level < type->depth; level++) {
        uint64_t begin = run.begin;
        sft_code code = list_span(&type->list[level], array, begin, run.end, &run, err);
        if (code) return code;
        out->shape[level] = run.length;
        if (run.apart && out->rows > 1) return SFT_ROW_SHAPE;
        if (run.apart) {
            code = rows_first_lengths(type, array, level, begin, out->shape, err);
            if (code) return code;
            out->bytes = NULL;
            out->at = buffer->len;
            code = rows_scattered(type, top, first, out->shape, buffer, err);
            out->elements = (buffer->len - out->at) / type->bytes;
            return code;
        }
        array = array->children[0];
    }

    out->elements = run.end - run.begin;
    if (leaf_dense(type) && !leaf_turns(type)) {
        sft_code code = leaf_check(array, run.begin, run.end, err);
        if (!code) out->bytes = leaf_base(type, array, run.begin);
        return code;
    }
    out->bytes = NULL;
    out->at = buffer->len;
    return leaf_gather(type, array, run.begin, run.end, buffer, err);
}

/* Halves the rows until they are valid or one is left. */
sft_code sfti_arrow_elements(const sfti_arrow_type *type, const struct ArrowArray *array,
                             uint64_t first, uint64_t most, sft_buffer *buffer,
                             sfti_arrow_rows *out, sft_error *err) {
    list_run run = { first, first + most, 1, false };
    size_t mark = buffer->len;
    sft_code code = SFT_OK;
    out->rows = most;
    out->rank = type->depth;
    if (first >= (uint64_t)array->length || most > (uint64_t)array->length - first)
        return rows_broken(err, "a row beyond its array");
    if (type->depth) code = list_first(&type->list[0], array, first, &out->rows, &run, err);
    if (code) return code;
    if (type->depth) out->shape[0] = run.length;
    for (;; out->rows /= 2) {
        run.end = run.begin + out->rows * run.length;
        code = rows_inner(type, array, first, run, buffer, out, out->rows > 1 ? NULL : err);
        if (code) buffer->len = mark;
        if (!code || out->rows == 1) return code;
    }
}
