/* Compares and sorts names. Tests: test_order.c. */
#include "base/error.h"
#include "base/order.h"
#include "base/utf8.h"

#include <string.h>

sft_span sft_span_cstr(const char *text) {
    sft_span span = { text, text ? strlen(text) : 0 };
    return span;
}

bool sft_span_equal(sft_span a, sft_span b) {
    return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

size_t sft_span_copy(sft_span span, char *into, size_t cap) {
    if (cap == 0) return span.len;
    size_t len = sfti_utf8_cut(span, cap - 1);
    if (len > 0) memcpy(into, span.data, len);
    into[len] = '\0';
    return span.len;
}

size_t sft_span_escape(sft_span span, char *into, size_t cap) {
    char piece[256];
    size_t room = cap > 0 ? cap - 1 : 0, put = 0, len = 0, used = 1;
    for (; span.len > 0 && used > 0; span.data += used, span.len -= used) {
        size_t made = sfti_escape(span.data, span.len, piece, sizeof piece, &used);
        len += made;
        /* A piece that does not fit gives as many whole escapes as do, and nothing follows it. */
        if (made > room) made = sfti_escape(span.data, used, piece, room, &(size_t){ 0 });
        if (made > 0) memcpy(into + put, piece, made);
        room = put + made == len ? room - made : 0;
        put += made;
    }
    if (cap > 0) into[put] = '\0';
    return len;
}

int sfti_bytes_compare(sft_span a, sft_span b) {
    size_t len = a.len < b.len ? a.len : b.len;
    int sign = len > 0 ? memcmp(a.data, b.data, len) : 0;
    return sign != 0 ? sign : (a.len > b.len) - (a.len < b.len);
}

static bool is_digit_at(sft_span s, size_t i) {
    return i < s.len && s.data[i] >= '0' && s.data[i] <= '9';
}

/* The digits at *i without leading zeros; *i moves past them. */
static sft_span take_number(sft_span s, size_t *i) {
    while (is_digit_at(s, *i) && s.data[*i] == '0') ++*i;
    sft_span number = { s.data + *i, 0 };
    while (is_digit_at(s, *i)) {
        ++*i;
        number.len++;
    }
    return number;
}

int sfti_natural_compare(sft_span a, sft_span b) {
    size_t i = 0, k = 0;
    while (i < a.len && k < b.len) {
        int sign;
        if (is_digit_at(a, i) && is_digit_at(b, k)) {
            sft_span left = take_number(a, &i), right = take_number(b, &k);
            sign = left.len != right.len ? (left.len < right.len ? -1 : 1)
                                         : sfti_bytes_compare(left, right);
        } else {
            sign = (unsigned char)a.data[i++] - (unsigned char)b.data[k++];
        }
        if (sign != 0) return sign;
    }
    if (i < a.len || k < b.len) return i < a.len ? 1 : -1;
    return sfti_bytes_compare(a, b);
}

/* Merge from[begin, mid) and from[mid, end) into the same place of to. */
static void merge_runs(const uint32_t *from, uint32_t *to, size_t begin, size_t mid, size_t end,
                       int (*compare)(const void *, uint32_t, uint32_t), const void *ctx) {
    size_t left = begin, right = mid, at = begin;
    if (mid >= end || compare(ctx, from[mid - 1], from[mid]) <= 0) {
        memcpy(to + begin, from + begin, (end - begin) * sizeof *to);
        return;
    }
    while (left < mid && right < end)
        to[at++] = compare(ctx, from[left], from[right]) <= 0 ? from[left++] : from[right++];
    while (left < mid) to[at++] = from[left++];
    while (right < end) to[at++] = from[right++];
}

void sfti_sort(uint32_t *order, uint32_t *scratch, size_t count,
               int (*compare)(const void *ctx, uint32_t a, uint32_t b), const void *ctx) {
    uint32_t *from = order, *to = scratch;
    size_t sorted = 1;
    while (sorted < count && compare(ctx, order[sorted - 1], order[sorted]) <= 0) sorted++;
    if (sorted >= count) return;
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t begin = 0; begin < count; begin += 2 * width) {
            size_t mid = begin + width < count ? begin + width : count;
            size_t end = mid + width < count ? mid + width : count;
            merge_runs(from, to, begin, mid, end, compare, ctx);
        }
        uint32_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != order) memcpy(order, from, count * sizeof *order);
}

uint32_t *sfti_arena_sorted(sfti_arena *arena, size_t count,
                            int (*compare)(const void *ctx, uint32_t a, uint32_t b),
                            const void *ctx) {
    uint32_t *order = sfti_arena_array(arena, 2 * (uint64_t)count, sizeof *order);
    if (!order) return NULL;
    for (size_t i = 0; i < count; i++) order[i] = (uint32_t)i;
    sfti_sort(order, order + count, count, compare, ctx);
    return order;
}
