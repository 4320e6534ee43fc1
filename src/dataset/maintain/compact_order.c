/* The order of rows in a compacted shard. Tests: test_dataset_compact.c. */
#include "base/error.h"
#include "base/number.h"
#include "base/order.h"
#include "dataset/maintain/compact.h"

#include <string.h>

#define ORDER_MOST (UINT32_MAX / 2) /* rows, and shards that they came from */

static sft_code rows_put(compact_order *o, sft_span key) {
    size_t end = o->suffix.len;
    if (key.len < end || (end && memcmp(key.data + key.len - end, o->suffix.data, end) != 0))
        return SFT_OK;
    compact_row *rows = NULL;
    if (o->count < ORDER_MOST)
        rows = sfti_grow(&o->alloc, o->rows, o->count, 1, &o->cap, sizeof *rows);
    if (!rows) return sfti_fail_memory(o->err, sizeof *rows);
    o->rows = rows;
    rows[o->count++] = (compact_row){ { key.data, key.len - end }, o->next };
    return SFT_OK;
}

static int rows_by_name(const void *rows, uint32_t a, uint32_t b) {
    const compact_row *all = rows;
    return sfti_bytes_compare(all[a].name, all[b].name);
}

/* The rows from `first` on by name. */
static sft_code rows_sort(compact_order *o, uint32_t first) {
    sfti_arena arena = { .alloc = o->alloc };
    uint32_t n = o->count - first;
    const uint32_t *order = sfti_arena_sorted(&arena, n, rows_by_name, o->rows + first);
    compact_row *sorted = sfti_arena_array(&arena, n, sizeof *sorted);
    if (order && sorted) {
        for (uint32_t i = 0; i < n; i++) sorted[i] = o->rows[first + order[i]];
        if (n) memcpy(o->rows + first, sorted, n * sizeof *sorted);
    }
    sfti_arena_free(&arena);
    return order && sorted ? SFT_OK : sfti_fail_memory(o->err, n * sizeof *sorted);
}

static bool rows_number(sft_span text, uint32_t *out) {
    static const char hex[] = "0123456789abcdef";
    *out = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char *digit = memchr(hex, text.data[i], sizeof hex - 1);
        if (!digit || *out > ORDER_MOST >> 4) return false;
        *out = *out << 4 | (uint32_t)(digit - hex);
    }
    return text.len != 0;
}

/* Numbers of the rows, sorted by name, of a shard that a compaction wrote. */
static bool rows_numbers(compact_order *o, uint32_t first, sft_span text) {
    uint32_t n = o->count - first, number, top = 0;
    size_t width = n ? text.len / n : 0;
    if (n == 0 || text.len % n) return false;
    for (uint32_t i = 0; i < n; i++) {
        if (!rows_number((sft_span){ text.data + i * width, width }, &number)) return false;
        if (number > ORDER_MOST - o->next) return false;
        o->rows[first + i].number = o->next + number;
        if (number > top) top = number;
    }
    o->next += top;
    return true;
}

static void rows_drop(compact_order *o, uint32_t first,
                       bool (*shadowed)(const void *ctx, sft_span key), const void *ctx) {
    uint32_t kept = first;
    for (uint32_t i = first; i < o->count; i++) {
        sft_span name = o->rows[i].name; /* the key continues after it */
        if (!shadowed(ctx, (sft_span){ name.data, name.len + o->suffix.len }))
            o->rows[kept++] = o->rows[i];
    }
    o->count = kept;
}

sft_code sfti_compact_order_add(compact_order *o, const sft_file *file,
                                bool (*shadowed)(const void *ctx, sft_span key), const void *ctx) {
    uint32_t first = o->count;
    sft_span text;
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < sft_file_tensor_count(file); i++)
        code = rows_put(o, sft_file_tensor_at(file, i)->name);
    if (code) return code;
    if (sft_file_metadata_get_cstr(file, SFTI_DATASET_ORDER, &text)) {
        code = rows_sort(o, first);
        if (code) return code;
        if (!rows_numbers(o, first, text))
            return sfti_fail(o->err, SFT_DATASET_SHARD,
                             "expected " SFTI_DATASET_ORDER " of the %u rows of the shard, "
                             "found %zu digits",
                             (unsigned)(o->count - first), text.len);
    }
    rows_drop(o, first, shadowed, ctx);
    if (o->next == ORDER_MOST) return sfti_fail_memory(o->err, SIZE_MAX);
    o->next++;
    return SFT_OK;
}

sft_code sfti_compact_order_end(compact_order *o) {
    char digits[8];
    uint32_t top = 0, width = 1;
    bool sorted = true;
    sft_code code = rows_sort(o, 0);
    if (code) return code;
    for (uint32_t i = 0; i < o->count; i++) {
        sorted = sorted && top <= o->rows[i].number;
        if (o->rows[i].number > top) top = o->rows[i].number;
    }
    while (width < sizeof digits && top >> 4 * width) width++;
    o->text.alloc = o->alloc;
    for (uint32_t i = 0; !sorted && i < o->count; i++) {
        sfti_hex_text(o->rows[i].number, width, digits);
        if (!sfti_buffer_put(&o->text, digits, width))
            return sfti_fail_memory(o->err, (size_t)o->count * width);
    }
    return SFT_OK;
}

void sfti_compact_order_free(compact_order *o) {
    sfti_release(&o->alloc, o->rows, o->cap * sizeof *o->rows);
    sft_buffer_free(&o->text);
}
