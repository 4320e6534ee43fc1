#include "base/checked.h"
#include "base/error.h"
#include "dataset/arrow.h"

#include <string.h>

/* Positions below are logical: element i of an array stands at offset + i of its buffers. */

bool sfti_arrow_null(const struct ArrowArray *array, uint64_t i) {
    if (array->null_count == 0 || array->n_buffers < 1 || !array->buffers[0]) return false;
    uint64_t at = (uint64_t)array->offset + i;
    return !(((const uint8_t *)array->buffers[0])[at / 8] >> (at % 8) & 1);
}

static sft_code rows_broken(sft_error *err, const char *what) {
    return sfti_fail(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET,
                     "expected an array that keeps Arrow's rules, found %s", what);
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
    uint8_t b1;
    uint16_t b2;
    uint32_t b4;
    switch (bytes) {
    case 1: memcpy(&b1, from, 1), key = b1; break;
    case 2: memcpy(&b2, from, 2), key = b2; break;
    case 4: memcpy(&b4, from, 4), key = b4; break;
    default: memcpy(&key, from, 8); break;
    }
    return key;
}

/* ── Text and bytes ── */

typedef struct bytes_view { /* as Arrow lays it out */
    int32_t len;
    union {
        char inlined[12];
        struct {
            char prefix[4];
            int32_t buffer, offset;
        } far;
    } u;
} bytes_view;

static bool bytes_viewed(const struct ArrowArray *array, uint64_t at, sft_span *out) {
    const bytes_view *view = (const bytes_view *)array->buffers[1] + at;
    if (view->len < 0) return false;
    out->len = (size_t)view->len;
    if (view->len <= 12) {
        out->data = view->u.inlined;
        return true;
    }
    /* buffers: validity, views, data…, lengths of the data */
    if (view->u.far.buffer < 0 || view->u.far.buffer >= array->n_buffers - 3) return false;
    out->data = (const char *)array->buffers[2 + view->u.far.buffer] + view->u.far.offset;
    return view->u.far.offset >= 0;
}

static bool bytes_plain(sfti_arrow_width width, const struct ArrowArray *array, uint64_t i,
                        sft_span *out) {
    uint64_t at = (uint64_t)array->offset + i;
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
    if (sfti_arrow_null(array, i)) return false;
    if (!type->dictionary) return bytes_plain(type->width, array, i, out);
    uint64_t key = rows_key(array->buffers[1], type->key_bytes, (uint64_t)array->offset + i);
    const struct ArrowArray *values = array->dictionary;
    return values && !sfti_arrow_null(values, key) && bytes_plain(type->width, values, key, out);
}

/* ── Lists ── */

/* Elements of list i: [*begin, *end) of the child. */
static sft_code list_range(const sfti_arrow_list *list, const struct ArrowArray *array,
                           uint64_t i, uint64_t *begin, uint64_t *end, sft_error *err) {
    uint64_t at = (uint64_t)array->offset + i;
    int64_t from, to;
    if (i >= (uint64_t)array->length || array->n_children != 1)
        return rows_broken(err, "a list beyond its array");
    if (sfti_arrow_null(array, i))
        return sfti_fail(err, SFT_ROW_NULL, SFT_NO_OFFSET, "expected a value, found null");
    if (list->fixed) {
        *begin = at * list->length;
        *end = *begin + list->length;
        return SFT_OK;
    }
    from = rows_offset(array->buffers[1], list->large, at);
    if (list->view) to = from + rows_offset(array->buffers[2], list->large, at);
    else to = rows_offset(array->buffers[1], list->large, at + 1);
    if (from < 0 || to < from || to > array->children[0]->length)
        return rows_broken(err, "offsets that do not ascend");
    *begin = (uint64_t)from;
    *end = (uint64_t)to;
    return SFT_OK;
}

/* Lists [begin, end) of one level, all of one length and one behind the other: their elements.
 * *apart: they do not lie so (views). */
static sft_code list_span(const sfti_arrow_list *list, const struct ArrowArray *array,
                          uint64_t *begin, uint64_t *end, uint64_t *length, bool *apart,
                          sft_error *err) {
    uint64_t first = 0, next = 0, from, to;
    *length = list->fixed ? list->length : 0;
    for (uint64_t i = *begin; i < *end; i++) {
        sft_code code = list_range(list, array, i, &from, &to, err);
        if (code) return code;
        if (i == *begin) first = next = from, *length = to - from;
        if (to - from != *length)
            return sfti_fail(err, SFT_ROW_SHAPE, SFT_NO_OFFSET,
                             "expected lists of one length (%llu), found %llu",
                             (unsigned long long)*length, (unsigned long long)(to - from));
        *apart = *apart || from != next;
        next = to;
    }
    *begin = first;
    *end = next;
    return SFT_OK;
}

/* ── Leaves ── */

static sft_code leaf_check(const struct ArrowArray *array, uint64_t begin, uint64_t end,
                           sft_error *err) {
    if (end > (uint64_t)array->length) return rows_broken(err, "elements beyond their array");
    if (array->null_count == 0 || !array->buffers[0]) return SFT_OK;
    for (uint64_t i = begin; i < end; i++)
        if (sfti_arrow_null(array, i))
            return sfti_fail(err, SFT_ROW_NULL, SFT_NO_OFFSET,
                             "expected values, found null among the elements");
    return SFT_OK;
}

/* Element i of an array of values to `to`. */
static void leaf_one(const sfti_arrow_type *type, const struct ArrowArray *array, uint64_t i,
                     char *to) {
    uint64_t at = (uint64_t)array->offset + i;
    const uint8_t *from = array->buffers[1];
    if (type->leaf == SFTI_LEAF_BITS) *to = (char)(from[at / 8] >> (at % 8) & 1);
    else memcpy(to, from + at * type->bytes, type->bytes);
}

static sft_code leaf_lookup(const sfti_arrow_type *type, const struct ArrowArray *array,
                            uint64_t i, char *to, sft_error *err) {
    const struct ArrowArray *values = array->dictionary;
    uint64_t key = rows_key(array->buffers[1], type->key_bytes, (uint64_t)array->offset + i);
    if (!values || key >= (uint64_t)values->length)
        return rows_broken(err, "a number beyond its dictionary");
    if (sfti_arrow_null(values, key))
        return sfti_fail(err, SFT_ROW_NULL, SFT_NO_OFFSET, "expected a value, found null");
    leaf_one(type, values, key, to);
    return SFT_OK;
}

static sft_code leaf_gather(const sfti_arrow_type *type, const struct ArrowArray *array,
                            uint64_t begin, uint64_t end, sft_buffer *buffer, sft_error *err) {
    uint64_t bytes;
    sft_code code = leaf_check(array, begin, end, err);
    if (code) return code;
    if (!sfti_mul(end - begin, type->bytes, &bytes) || !sfti_fits_size(bytes) ||
        !sfti_buffer_room(buffer, (size_t)bytes))
        return sfti_fail_memory(err, (end - begin) * type->bytes);
    for (uint64_t i = begin; code == SFT_OK && i < end; i++) {
        char *to = buffer->data + buffer->len;
        if (type->dictionary) code = leaf_lookup(type, array, i, to, err);
        else leaf_one(type, array, i, to);
        buffer->len += type->bytes;
    }
    return code;
}

/* A bool8 holds any byte; a BOOL holds 0 or 1. */
static bool leaf_packed(const sfti_arrow_type *type) {
    return type->leaf == SFTI_LEAF_NUMBER && !type->dictionary && type->dtype != SFT_BOOL;
}

static sft_code leaf_row(const sfti_arrow_type *type, const struct ArrowArray *array,
                         uint64_t begin, uint64_t end, sft_buffer *buffer, sfti_arrow_row *out,
                         sft_error *err) {
    out->elements = end - begin;
    out->owned = !leaf_packed(type);
    if (out->owned) {
        out->at = buffer->len;
        sft_code code = leaf_gather(type, array, begin, end, buffer, err);
        bool bool8 = type->leaf == SFTI_LEAF_NUMBER && type->dtype == SFT_BOOL;
        for (size_t i = out->at; bool8 && code == SFT_OK && i < buffer->len; i++)
            buffer->data[i] = buffer->data[i] != 0;
        return code;
    }
    const char *base = array->n_buffers > 1 ? array->buffers[1] : NULL;
    if (!base && begin != end) return rows_broken(err, "an array without a buffer");
    out->bytes = base ? base + ((uint64_t)array->offset + begin) * type->bytes : "";
    return leaf_check(array, begin, end, err);
}

/* ── Rows whose inner lists do not lie one behind the other ── */

/* Walks the lists below level 1 element by element; lengths were found equal before. */
static sft_code rows_scattered(const sfti_arrow_type *type, const struct ArrowArray *top,
                               uint64_t row, const uint64_t *shape, sft_buffer *buffer,
                               sft_error *err) {
    uint64_t place[SFT_MAX_RANK] = { 0 };
    uint32_t depth = type->depth;
    for (;;) {
        const struct ArrowArray *array = top;
        uint64_t i = row, begin = 0, end = 0;
        sft_code code = SFT_OK;
        for (uint32_t level = 0; code == SFT_OK && level < depth; level++) {
            code = list_range(&type->list[level], array, i, &begin, &end, err);
            if (code == SFT_OK && end - begin != shape[level])
                return sfti_fail(err, SFT_ROW_SHAPE, SFT_NO_OFFSET,
                                 "expected lists of one length (%llu), found %llu",
                                 (unsigned long long)shape[level],
                                 (unsigned long long)(end - begin));
            array = array->children[0];
            i = begin + place[level];
        }
        if (code == SFT_OK) code = leaf_gather(type, array, begin, end, buffer, err);
        if (code) return code;
        uint32_t level = depth - 1; /* the innermost list was taken whole */
        while (level > 0 && ++place[level - 1] == shape[level - 1]) place[--level] = 0;
        if (level == 0) return SFT_OK;
    }
}

static sft_code rows_take_scattered(const sfti_arrow_type *type, const struct ArrowArray *array,
                                    uint64_t row, sft_buffer *buffer, sfti_arrow_row *out,
                                    sft_error *err) {
    out->owned = true;
    out->at = buffer->len;
    sft_code code = rows_scattered(type, array, row, out->shape, buffer, err);
    out->elements = (buffer->len - out->at) / type->bytes;
    return code;
}

sft_code sfti_arrow_elements(const sfti_arrow_type *type, const struct ArrowArray *array,
                             uint64_t row, sft_buffer *buffer, sfti_arrow_row *out,
                             sft_error *err) {
    const struct ArrowArray *top = array;
    uint64_t begin = row, end = row + 1;
    bool apart = false;
    out->rank = type->depth;
    for (uint32_t level = 0; level < type->depth; level++) {
        sft_code code = list_span(&type->list[level], array, &begin, &end, &out->shape[level],
                                  &apart, err);
        if (code) return code;
        array = array->children[0];
        if (apart) {
            /* Lengths further in are those of the first; all are compared on the walk. */
            for (uint32_t k = level + 1; k < type->depth; k++) {
                uint64_t one = begin, next = begin + (end > begin);
                bool ignored = false;
                code = list_span(&type->list[k], array, &one, &next, &out->shape[k], &ignored, err);
                if (code) return code;
                begin = one, end = next;
                array = array->children[0];
            }
            return rows_take_scattered(type, top, row, buffer, out, err);
        }
    }
    return leaf_row(type, array, begin, end, buffer, out, err);
}
