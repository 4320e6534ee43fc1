/* The length of a header, and from its entries to validated tensors in the order of their data.
 * Tests: test_header.c. */
#include "format/header.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "base/order.h"

#include <string.h>

/* ── Step 1: the frame ── */

sft_code sfti_frame(const uint8_t prefix[SFTI_PREFIX], uint64_t size, const sfti_limits *limits,
                    uint64_t *header_bytes, sft_error *err) {
    uint64_t n = sfti_get_u64(prefix);
    uint64_t most = limits->max_header_bytes ? limits->max_header_bytes : SFT_MAX_HEADER_BYTES;
    if (most > SFTI_MOST_HEADER) most = SFTI_MOST_HEADER;
    *header_bytes = 0;
    if (size < SFTI_PREFIX)
        return sfti_fail_byte(err, SFT_HEADER_TOO_SMALL, 0,
                              size == 0 ? "expected a header length, found an empty file"
                                        : "expected the 8 bytes of a header length, found %llu",
                              (unsigned long long)size);
    if (n > most)
        return sfti_fail_byte(err, SFT_HEADER_TOO_LARGE, 0,
                              "expected a header of at most %llu bytes, found %llu",
                              (unsigned long long)most, (unsigned long long)n);
    if (size != SFT_SIZE_UNKNOWN && n > size - SFTI_PREFIX)
        return sfti_fail_byte(err, SFT_HEADER_TRUNCATED, size,
                              "expected a header of %llu bytes, found %llu before the end",
                              (unsigned long long)n, (unsigned long long)(size - SFTI_PREFIX));
    *header_bytes = n;
    return SFT_OK;
}

/* ── Names ── */

const sft_tensor *sfti_model_tensor(const sfti_model *model, size_t i) {
    const sfti_tensors *t = &model->tensors;
    return sfti_tensor_at(t, t->order ? t->order[i] : i);
}

#define PREFETCH 16 /* names ahead */

static sft_span tensor_name(const void *ctx, uint32_t entry) {
    return sfti_tensor_at(&((const sfti_model *)ctx)->tensors, entry)->name;
}

const sft_tensor *sfti_model_find(const sfti_model *model, sft_span name) {
    sfti_names names = model->names;
    names.ctx = model; /* the model may have moved since */
    uint32_t entry = sfti_names_find(&names, name);
    return entry == SFTI_NO_NAME ? NULL : sfti_tensor_at(&model->tensors, entry);
}

static sft_span placed_span(const sfti_model *model, uint32_t place) {
    if (place & SFTI_DECODED) {
        const char *at = model->decoded + (place & ~SFTI_DECODED);
        uint32_t len;
        memcpy(&len, at, sizeof len);
        return (sft_span){ at + sizeof len, len };
    }
    const char *at = model->text.data + place;
    const char *quote = memchr(at, '"', model->text.len - place);
    return (sft_span){ at, (size_t)(quote - at) }; /* there is one: the string was read */
}

static sft_span pair_key(const void *ctx, uint32_t entry) {
    const sfti_model *model = ctx;
    return placed_span(model, model->metadata[entry].key);
}

sft_pair sfti_model_pair(const sfti_model *model, size_t i) {
    const sfti_pair *p = &model->metadata[i];
    sft_pair pair = { placed_span(model, p->key), placed_span(model, p->value) };
    return pair;
}

size_t sfti_model_metadata_find(const sfti_model *model, sft_span key) {
    sfti_names keys = model->keys;
    keys.ctx = model;
    uint32_t entry = sfti_names_find(&keys, key);
    return entry == SFTI_NO_NAME ? SIZE_MAX : entry;
}

/* Byte of a tensor's name in the file, when it stands there unescaped. */
static uint64_t name_offset(const sfti_parser *r, sft_span name) {
    uintptr_t at = (uintptr_t)name.data, begin = (uintptr_t)r->text.data;
    return at >= begin && at - begin < r->text.len ? SFTI_PREFIX + (at - begin) : SFT_NO_OFFSET;
}

/* A name seen before: refused, or the last one wins. The rank of the earlier record then tells
 * that it does not count. */
#define DEAD_RANK UINT32_MAX

static bool take_duplicate(sfti_parser *r, uint32_t earlier, uint32_t later) {
    sft_tensor *old = sfti_tensor_at(&r->model->tensors, earlier);
    sft_span name = sfti_tensor_at(&r->model->tensors, later)->name;
    const char *at = name_offset(r, name) == SFT_NO_OFFSET ? r->text.data : name.data;
    sfti_names_replace(&r->model->names, name, later);
    old->rank = DEAD_RANK;
    if (r->limits->level >= SFT_LEVEL_DEFAULT) {
        sft_error error;
        sfti_fail_tensor(&error, SFT_TENSOR_DUPLICATE, name_offset(r, name), name,
                         "expected one tensor of this name, found two");
        return sfti_report(r, &error);
    }
    sfti_remark(r, "duplicate_name", at, &name, "two tensors have this name; the last counts");
    return true;
}

/* Pairs of one key: refused, or the last value takes the first one's place. */
static bool index_keys(sfti_parser *r) {
    sfti_model *m = r->model;
    size_t count = m->metadata_count, kept = 0;
    uint64_t most = r->limits->max_name_bytes;
    uint64_t ahead[PREFETCH]; /* hashes of the pairs from i - PREFETCH on */
    if (!sfti_names_begin(&m->keys, count, r->seed, pair_key, m, r->arena))
        return sfti_report_memory(r, count * 2 * sizeof(sfti_slot));
    for (size_t i = 0; i < count + PREFETCH; i++) {
        uint64_t *hash = &ahead[i % PREFETCH];
        if (i >= PREFETCH) {
            m->metadata[kept] = m->metadata[i - PREFETCH];
            sft_span key = placed_span(m, m->metadata[kept].key);
            uint32_t first = sfti_names_put(&m->keys, key, *hash, (uint32_t)kept);
            m->metadata[first].value = m->metadata[kept].value;
            if (first == kept) {
                kept++;
            } else if (r->limits->level >= SFT_LEVEL_DEFAULT) {
                sft_error error;
                sfti_fail_byte(&error, SFT_METADATA_KEY_DUPLICATE, name_offset(r, key),
                               "expected each metadata key once, found \"%.*s\" twice",
                               key.len < 128 ? (int)key.len : 128, key.len > 0 ? key.data : "");
                if (!sfti_report(r, &error)) return false;
            }
        }
        if (i >= count) continue;
        sft_span key = placed_span(m, m->metadata[i].key);
        if (most && key.len > most) {
            const char *at = name_offset(r, key) == SFT_NO_OFFSET ? r->text.data : key.data;
            if (!sfti_report_limit(r, SFT_NAME_TOO_LONG, at, NULL, "a key length in bytes", most,
                                   key.len))
                return false;
        }
        *hash = sfti_names_hash(key, r->seed);
        sfti_names_prefetch(&m->keys, *hash);
    }
    m->metadata_count = kept;
    return true;
}

/* ── Step 3: order ── */

static int compare_offsets(const void *ctx, uint32_t a, uint32_t b) {
    const sft_tensor *left = sfti_tensor_at(ctx, a), *right = sfti_tensor_at(ctx, b);
    if (left->begin != right->begin) return left->begin < right->begin ? -1 : 1;
    return (left->end > right->end) - (left->end < right->end);
}

/* The name leads to the entry; among equal offsets entries stand in header order. */
size_t sfti_model_index(const sfti_model *model, const sft_tensor *tensor) {
    const sfti_tensors *t = &model->tensors;
    sfti_names names = model->names;
    names.ctx = model;
    uint32_t entry = sfti_names_find(&names, tensor->name);
    if (entry == SFTI_NO_NAME || sfti_tensor_at(t, entry) != tensor) return SIZE_MAX;
    if (!t->order) return entry;
    size_t low = 0, high = t->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int before = compare_offsets(t, t->order[middle], entry);
        if (before < 0 || (before == 0 && t->order[middle] < entry)) low = middle + 1;
        else high = middle;
    }
    return low;
}

static bool sort_tensors(sfti_parser *r) {
    sfti_tensors *t = &r->model->tensors;
    size_t bytes = t->count * sizeof(uint32_t), kept = 0;
    uint32_t *order = sfti_arena_take(r->arena, bytes);
    uint32_t *scratch = sfti_arena_take(r->arena, bytes);
    if (!order || !scratch) return sfti_report_memory(r, bytes);
    for (uint32_t i = 0; i < t->count; i++)
        if (sfti_tensor_at(t, i)->rank != DEAD_RANK) order[kept++] = i;
    sfti_sort(order, scratch, kept, compare_offsets, t);
    t->order = order;
    t->count = kept;
    if (r->unsorted)
        sfti_remark(r, "unsorted", r->text.data, NULL,
                    "the entries do not stand in the order of their data");
    return true;
}

/* ── Step 3: offsets and sizes ── */

static bool report_tensor(sfti_parser *r, sft_code code, const sft_tensor *t,
                          uint64_t expected, uint64_t found, const char *what) {
    sft_error error;
    sfti_fail_tensor(&error, code, name_offset(r, t->name), t->name,
                     "expected %llu %s, found %llu", (unsigned long long)expected, what,
                     (unsigned long long)found);
    return sfti_report(r, &error);
}

static bool check_size(sfti_parser *r, const sft_tensor *t) {
    sft_error error;
    uint64_t bytes;
    sft_code code = sft_shape_size(t->dtype, t->shape, t->rank, NULL, &bytes, NULL);
    if (!code && bytes == t->end - t->begin) return true;
    if (!code)
        return report_tensor(r, SFT_SIZE_MISMATCH, t, bytes, t->end - t->begin,
                             "bytes by dtype and shape");
    code = sft_shape_size(t->dtype, t->shape, t->rank, NULL, NULL, &error);
    error.offset = name_offset(r, t->name);
    error.hint = sft_code_describe(code)->hint;
    sfti_error_tensor(&error, t->name);
    return sfti_report(r, &error);
}

/* Nothing is left to be done for entries of which each was right when it was read. */
static bool check_tensors(sfti_parser *r, uint64_t size, size_t dead) {
    sfti_tensors *tensors = &r->model->tensors;
    uint64_t data = r->model->data_offset, before = 0, end;
    bool all_right = !r->apart && dead == 0 && sfti_add(data, r->before.end, &end);
    if (all_right) before = r->before.end;
    for (size_t i = 0; i < tensors->count && !all_right; i++) {
        sft_tensor *t = sfti_tensor_at(tensors, tensors->order ? tensors->order[i] : i);
        bool goes_on = true;
        if (t->end < t->begin)
            goes_on = report_tensor(r, SFT_OFFSETS_REVERSED, t, t->begin, t->end,
                                    "or more as the end offset");
        else if (t->begin > before && !r->lost)
            goes_on = report_tensor(r, SFT_OFFSETS_GAP, t, before, t->begin,
                                    "as the begin offset");
        else if (t->begin < before)
            goes_on = report_tensor(r, SFT_OFFSETS_OVERLAP, t, before, t->begin,
                                    "as the begin offset");
        if (!goes_on) return false;
        if (t->end >= t->begin && !sfti_plain_size(t) && !check_size(r, t)) return false;
        /* Absolute offsets exist for every byte of the tensor. */
        if (!sfti_add(data, t->end, &end) || !sfti_add(data, t->begin, &t->offset))
            goes_on = report_tensor(r, SFT_SIZE_OVERFLOW, t, UINT64_MAX - data, t->end,
                                    "or less as the end offset");
        if (!goes_on) return false;
        if (t->end > before) before = t->end;
    }
    r->model->data_bytes = before;
    if (size == SFT_SIZE_UNKNOWN || size - data == before) return true;

    sft_error error;
    bool cut = size - data < before;
    if (!cut && r->lost) return true;
    sfti_fail_byte(&error, cut ? SFT_DATA_TRUNCATED : SFT_DATA_TRAILING, cut ? size : data + before,
                   "expected %llu bytes of tensor data, found %llu", (unsigned long long)before,
                   (unsigned long long)(size - data));
    if (cut) (void)sfti_add(data, before, &error.needed);
    return sfti_report(r, &error);
}

sft_code sfti_model_read(sft_span text, uint64_t size, const sfti_limits *limits,
                         const uint64_t seed[2], const sfti_watch *watch, sfti_arena *arena,
                         sfti_model *out, sft_error *err) {
    sfti_parser r;
    sfti_tensors *t = &out->tensors;
    size_t dead = 0;
    memset(&r, 0, sizeof r);
    memset(out, 0, sizeof *out);
    r.text = text;
    r.limits = limits;
    r.watch = watch;
    r.seed = seed;
    r.arena = arena;
    r.model = out;
    r.err = err;
    r.last_dtype = SFT_BF16;
    out->text = text;
    out->data_offset = SFTI_PREFIX + (uint64_t)text.len;
    sfti_header_read(&r);
    r.limits = limits;
    if (r.fatal || !index_keys(&r)) return r.first;

    /* The hash in the record of a tensor gives way to the offset, which check_tensors sets anew if
     * need be. */
    if (!sfti_names_begin(&out->names, t->count, seed, tensor_name, out, arena))
        sfti_report_memory(&r, t->count * 2 * sizeof(sfti_slot));
    for (uint32_t i = 0; i < t->count && !r.fatal; i++) {
        sft_tensor *tensor = sfti_tensor_at(t, i);
        if (t->count - i > PREFETCH)
            sfti_names_prefetch(&out->names, sfti_tensor_at(t, i + PREFETCH)->offset);
        uint32_t first = sfti_names_put(&out->names, tensor->name, tensor->offset, i);
        tensor->offset = out->data_offset + tensor->begin;
        if (first == i) continue;
        dead++;
        (void)take_duplicate(&r, first, i);
    }
    if (r.fatal) return r.first;
    if ((dead == 0 && !r.unsorted) || sort_tensors(&r)) check_tensors(&r, size, dead);
    return r.first;
}
