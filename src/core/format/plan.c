/* Lays out a file: order, offsets and header text. Tests: test_plan.c. */

#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/options.h"
#include "base/order.h"
#include "base/splice.h"
#include "base/utf8.h"
#include "format/format.h"

#include <string.h>

struct sft_plan {
    sfti_arena arena;
    size_t count;
    sft_tensor *tensors; /* in file order */
    uint32_t *position;  /* spec -> place in tensors */
    char *head;
    size_t head_len;
    uint64_t data_bytes;
};

/* A plan being made; `work` holds what is freed when it is done. */
typedef struct planner {
    const char *specs;
    size_t spec_stride; /* bytes from one to the next */
    size_t count;
    bool copies; /* the plan gets its own names and shapes */
    const sft_pair *pairs; /* unless the options have pair_at */
    size_t pair_count;
    sft_plan_options options;
    sfti_arena work;
    uint32_t *order;      /* of specs */
    uint32_t *pair_order; /* of pairs */
    uint32_t *scratch;    /* as long as the longer of the two */
    sft_plan *plan;
} planner;

static const sft_span metadata_name = { "__metadata__", 12 };

static const sft_spec *spec_of(const planner *p, size_t i) {
    return (const sft_spec *)(const void *)(p->specs + i * p->spec_stride);
}

static sft_pair pair_of(const planner *p, size_t i) {
    return p->options.pair_at ? p->options.pair_at(p->options.pair_ctx, i) : p->pairs[i];
}

/* ── Checks ── */

static sft_code check_options(planner *p, const sft_plan_options *options, sft_error *err) {
    sft_plan_options own;
    sft_code code = sfti_take_plan(options, &own, err);
    if (own.align == 0) own.align = 8;
    if (own.max_header_bytes == 0) own.max_header_bytes = SFT_MAX_HEADER_BYTES;
    if (own.max_header_bytes > SFTI_MOST_HEADER) own.max_header_bytes = SFTI_MOST_HEADER;
    p->options = own;
    if (code) return code;
    if (own.align >= 8 && (own.align & (own.align - 1)) == 0) return SFT_OK;
    return sfti_misuse(err, "expected an alignment that is a power of two from 8 on, found %u",
                       (unsigned)own.align);
}

static bool is_utf8(sft_span text) {
    return text.len == 0 || sfti_utf8_check(text.data, text.len) == text.len;
}

/* Also refuses what a reader of this level would refuse. */
static sft_code check_spec(const sft_spec *spec, sft_level level, sft_error *err) {
    if (spec->name.len > 0 && !spec->name.data)
        return sfti_misuse(err, "expected a tensor's name, found NULL");
    if (!is_utf8(spec->name))
        return sfti_fail_tensor(err, SFT_HEADER_UTF8, SFT_NO_OFFSET, spec->name,
                                "expected a tensor's name in UTF-8, found \"%.*s\"",
                                spec->name.len < 128 ? (int)spec->name.len : 128,
                                spec->name.data);
    if (sft_span_equal(spec->name, metadata_name))
        return sfti_fail_tensor(err, SFT_NAME_RESERVED, SFT_NO_OFFSET, spec->name,
                                "expected a tensor's name, found the reserved __metadata__");
    sft_code code = sft_shape_size(spec->dtype, spec->shape, spec->rank, NULL, NULL, err);
    if (code) {
        sfti_error_tensor(err, spec->name);
        return code;
    }
    if (level >= SFT_LEVEL_DEFAULT && spec->rank > SFT_MAX_RANK)
        return sfti_fail_tensor(err, SFT_RANK_TOO_LARGE, SFT_NO_OFFSET, spec->name,
                                "expected rank of at most %d, found %u", SFT_MAX_RANK,
                                (unsigned)spec->rank);
    if (level < SFT_LEVEL_STRICT || !sfti_utf8_has_control(spec->name)) return SFT_OK;
    return sfti_fail_tensor(err, SFT_STRICT_NAME, SFT_NO_OFFSET, spec->name,
                            "expected a tensor's name without control characters, found some");
}

static sft_code check_pairs(planner *p, sft_error *err) {
    for (size_t i = 0; i < p->pair_count; i++) {
        sft_pair pair = pair_of(p, i);
        sft_span key = pair.key, value = pair.value;
        if ((key.len > 0 && !key.data) || (value.len > 0 && !value.data)) {
            return sfti_misuse(err, "expected metadata of keys and values, found NULL");
        }
        if (is_utf8(key) && is_utf8(value)) continue;
        return sfti_fail(err, SFT_HEADER_UTF8,
                         "expected metadata in UTF-8, found other bytes in the %s of \"%.*s\"",
                         is_utf8(key) ? "value" : "key", key.len < 128 ? (int)key.len : 128,
                         key.len > 0 ? key.data : "");
    }
    return SFT_OK;
}

/* ── Order ── */

static int compare_specs(const void *ctx, uint32_t a, uint32_t b) {
    return sfti_bytes_compare(spec_of(ctx, a)->name, spec_of(ctx, b)->name);
}

static int compare_pairs(const void *ctx, uint32_t a, uint32_t b) {
    return sfti_bytes_compare(pair_of(ctx, a).key, pair_of(ctx, b).key);
}

static void in_order_given(uint32_t *order, size_t count) {
    for (size_t i = 0; i < count; i++) order[i] = (uint32_t)i;
}

/* Position of the dtype in file order: descending, as the official writer sorts. */
static size_t dtype_place(const sft_spec *spec) {
    return SFT_DTYPE_COUNT - 1 - sft_dtype_describe(spec->dtype)->order;
}

static sft_code order_specs(planner *p, sft_error *err) {
    in_order_given(p->order, p->count);
    sfti_sort(p->order, p->scratch, p->count, compare_specs, p);
    for (size_t i = 1; i < p->count; i++) {
        sft_span name = spec_of(p, p->order[i])->name;
        if (!sft_span_equal(spec_of(p, p->order[i - 1])->name, name)) continue;
        return sfti_fail_tensor(err, SFT_TENSOR_DUPLICATE, SFT_NO_OFFSET, name,
                                "expected each tensor's name once, found it twice");
    }
    if (p->options.keep_order) {
        in_order_given(p->order, p->count);
        return SFT_OK;
    }
    /* They are by name: a stable counting sort by dtype keeps names in order within each. */
    size_t next[SFT_DTYPE_COUNT + 1] = { 0 };
    for (size_t i = 0; i < p->count; i++) next[dtype_place(spec_of(p, i)) + 1]++;
    for (size_t d = 0; d < SFT_DTYPE_COUNT; d++) next[d + 1] += next[d];
    for (size_t i = 0; i < p->count; i++) {
        uint32_t spec = p->order[i];
        p->scratch[next[dtype_place(spec_of(p, spec))]++] = spec;
    }
    if (p->count > 0) memcpy(p->order, p->scratch, p->count * sizeof *p->order);
    return SFT_OK;
}

static sft_code order_pairs(planner *p, sft_error *err) {
    in_order_given(p->pair_order, p->pair_count);
    sfti_sort(p->pair_order, p->scratch, p->pair_count, compare_pairs, p);
    for (size_t i = 1; i < p->pair_count; i++) {
        sft_span key = pair_of(p, p->pair_order[i]).key;
        if (!sft_span_equal(pair_of(p, p->pair_order[i - 1]).key, key)) continue;
        return sfti_fail(err, SFT_METADATA_KEY_DUPLICATE,
                         "expected each metadata key once, found \"%.*s\" twice",
                         key.len < 128 ? (int)key.len : 128, key.len > 0 ? key.data : "");
    }
    return SFT_OK;
}

/* ── Layout ── */

static sft_code lay_out(planner *p, sft_error *err) {
    sft_plan *plan = p->plan;
    uint64_t at = 0, bytes;
    plan->count = p->count;
    plan->tensors = sfti_arena_array(&plan->arena, p->count, sizeof *plan->tensors);
    plan->position = sfti_arena_array(&plan->arena, p->count, sizeof *plan->position);
    if (!plan->tensors || !plan->position)
        return sfti_fail_memory(err, p->count * sizeof *plan->tensors);
    for (size_t i = 0; i < p->count; i++) {
        const sft_spec *spec = spec_of(p, p->order[i]);
        sft_tensor *tensor = &plan->tensors[i];
        plan->position[p->order[i]] = (uint32_t)i;
        *tensor = (sft_tensor){ .name = spec->name, .dtype = spec->dtype, .rank = spec->rank,
                                .shape = spec->shape };
        if (p->copies) {
            char *name = sfti_arena_take(&plan->arena, spec->name.len);
            uint64_t *shape = sfti_arena_array(&plan->arena, spec->rank, sizeof *shape);
            if (!name || !shape) return sfti_fail_memory(err, spec->name.len);
            if (spec->name.len > 0) memcpy(name, spec->name.data, spec->name.len);
            if (spec->rank > 0) memcpy(shape, spec->shape, spec->rank * sizeof *shape);
            tensor->name.data = name;
            tensor->shape = shape;
        }
        sft_code code = sft_shape_size(spec->dtype, spec->shape, spec->rank, NULL, &bytes, err);
        if (sfti_never(code)) return code; /* as in check_spec */
        tensor->begin = at;
        if (!sfti_add(at, bytes, &at)) {
            return sfti_fail_tensor(err, SFT_SIZE_OVERFLOW, SFT_NO_OFFSET, spec->name,
                                    "expected tensors of at most 2^64 - 1 bytes, found more");
        }
        tensor->end = at;
    }
    plan->data_bytes = at;
    return SFT_OK;
}

/* ── Header text ── */

/* With `at` NULL, only counts; a length above `most` is not exact. */
typedef struct head_text {
    char *at;
    uint64_t len, most;
} head_text;

static void head_put(head_text *h, const char *bytes, size_t len) {
    if (h->at) {
        memcpy(h->at, bytes, len);
        h->at += len;
    }
    if (h->len <= h->most) h->len += len; /* cannot overflow: `most` and one string */
}

static void head_cstr(head_text *h, const char *text) {
    head_put(h, text, strlen(text));
}

static void head_number(head_text *h, uint64_t value) {
    char digits[SFTI_UINT_SIZE];
    head_put(h, digits, sfti_uint_text(value, 0, digits));
}

static void head_string(head_text *h, sft_span text) {
    uint64_t len = sfti_spell(text, h->at);
    if (h->at) h->at += len;
    if (h->len <= h->most) h->len += len;
}

static void head_metadata(head_text *h, const planner *p) {
    head_string(h, metadata_name);
    head_put(h, ":{", 2);
    for (size_t i = 0; i < p->pair_count; i++) {
        sft_pair pair = pair_of(p, p->pair_order[i]);
        if (i > 0) head_put(h, ",", 1);
        head_string(h, pair.key);
        head_put(h, ":", 1);
        head_string(h, pair.value);
    }
    head_put(h, "}", 1);
}

static void head_tensor(head_text *h, const sft_tensor *tensor) {
    head_string(h, tensor->name);
    head_cstr(h, ":{\"dtype\":\"");
    head_cstr(h, sft_dtype_describe(tensor->dtype)->name);
    head_cstr(h, "\",\"shape\":[");
    for (uint32_t d = 0; d < tensor->rank; d++) {
        if (d > 0) head_put(h, ",", 1);
        head_number(h, tensor->shape[d]);
    }
    head_cstr(h, "],\"data_offsets\":[");
    head_number(h, tensor->begin);
    head_put(h, ",", 1);
    head_number(h, tensor->end);
    head_put(h, "]}", 2);
}

static void head_object(head_text *h, const planner *p) {
    bool metadata = p->pair_count > 0 || p->options.has_metadata;
    head_put(h, "{", 1);
    if (metadata) head_metadata(h, p);
    for (size_t i = 0; i < p->count && h->len <= h->most; i++) {
        if (metadata || i > 0) head_put(h, ",", 1);
        head_tensor(h, &p->plan->tensors[i]);
    }
    head_put(h, "}", 1);
}

/* The header's length: its text, the spaces that the options ask for, and those that align the
 * data's start. */
static sft_code measure_head(const planner *p, uint64_t *text, uint64_t *padded,
                             sft_error *err) {
    const sft_plan_options *o = &p->options;
    head_text count = { NULL, 0, o->max_header_bytes };
    uint64_t start = 0;
    head_object(&count, p);
    *text = count.len;
    bool fits = sfti_add(count.len, o->spare, &start);
    if (start < o->min_header_bytes) start = o->min_header_bytes;
    fits = fits && start <= SFTI_MOST_HEADER;
    if (!fits) start = SFTI_MOST_HEADER;
    (void)sfti_align_up(start + SFTI_PREFIX, o->align, &start); /* start is under 2^31 */
    *padded = start - SFTI_PREFIX;
    if (fits && *padded <= o->max_header_bytes) return SFT_OK;
    return sfti_fail(err, SFT_HEADER_TOO_LARGE,
                     "expected a header of at most %llu bytes, found %s%llu",
                     (unsigned long long)o->max_header_bytes,
                     !fits || count.len > count.most ? "at least " : "",
                     (unsigned long long)*padded);
}

uint64_t sfti_plan_entry(const sft_tensor *tensor) {
    head_text count = { NULL, 0, UINT64_MAX - 1 };
    head_tensor(&count, tensor);
    return count.len;
}

static sft_code write_head(planner *p, sft_error *err) {
    sft_plan *plan = p->plan;
    uint64_t text, padded, total;
    sft_code code = measure_head(p, &text, &padded, err);
    if (code) return code;
    plan->head_len = (size_t)padded + SFTI_PREFIX;
    if (!sfti_add(plan->data_bytes, plan->head_len, &total))
        return sfti_fail(err, SFT_SIZE_OVERFLOW,
                         "expected a file of at most 2^64 - 1 bytes, found more");
    plan->head = sfti_arena_take(&plan->arena, plan->head_len);
    if (!plan->head) return sfti_fail_memory(err, plan->head_len);
    sfti_put_u64(plan->head, padded);
    head_text out = { plan->head + SFTI_PREFIX, 0, UINT64_MAX };
    head_object(&out, p);
    memset(out.at, ' ', (size_t)(padded - text));
    for (size_t i = 0; i < p->count; i++)
        plan->tensors[i].offset = plan->head_len + plan->tensors[i].begin;
    return SFT_OK;
}

/* ── All together ── */

static sft_code plan_new(planner *p, const sft_plan_options *options, sft_plan **out,
                         sft_error *err) {
    if (!out) return sfti_misuse(err, "expected a place for the plan, found NULL");
    *out = NULL;
    sft_code code = check_options(p, options, err);
    if (code) return code;
    if ((p->count > 0 && !p->specs) || (p->pair_count > 0 && !p->pairs && !p->options.pair_at))
        return sfti_misuse(err, "expected arrays of tensors and of metadata, found NULL");
    if (p->count >= UINT32_MAX || p->pair_count >= UINT32_MAX)
        return sfti_fail(err, SFT_TOO_MANY_TENSORS,
                         "expected fewer than 2^32 - 1 tensors and pairs, found more");
    p->work.alloc = sfti_allocator(p->options.alloc);
    p->plan = sfti_take(&p->work.alloc, sizeof *p->plan);
    if (!p->plan) return sfti_fail_memory(err, sizeof *p->plan);
    memset(p->plan, 0, sizeof *p->plan);
    p->plan->arena.alloc = p->work.alloc;

    for (size_t i = 0; i < p->count && !code; i++)
        code = check_spec(spec_of(p, i), p->options.level, err);
    if (!code) code = check_pairs(p, err);
    if (!code) {
        size_t most = p->count > p->pair_count ? p->count : p->pair_count;
        p->order = sfti_arena_array(&p->work, p->count, sizeof *p->order);
        p->pair_order = sfti_arena_array(&p->work, p->pair_count, sizeof *p->pair_order);
        p->scratch = sfti_arena_array(&p->work, most, sizeof *p->scratch);
        if (!p->order || !p->pair_order || !p->scratch)
            code = sfti_fail_memory(err, (uint64_t)most * sizeof *p->scratch);
    }
    if (!code) code = order_specs(p, err);
    if (!code) code = order_pairs(p, err);
    if (!code) code = lay_out(p, err);
    if (!code) code = write_head(p, err);

    sfti_arena_free(&p->work);
    if (code) sft_plan_free(p->plan);
    else *out = p->plan;
    return code;
}

sft_code sft_plan_new(const sft_spec *specs, size_t count, const sft_pair *metadata,
                      size_t metadata_count, const sft_plan_options *options, sft_plan **out,
                      sft_error *err) {
    planner p = { .specs = (const char *)specs, .spec_stride = sizeof *specs, .count = count,
                   .copies = true, .pairs = metadata, .pair_count = metadata_count };
    return plan_new(&p, options, out, err);
}

sft_code sfti_plan_parts(const sft_part *parts, size_t count, const sft_pair *metadata,
                         size_t metadata_count, const sft_plan_options *options, sft_plan **out,
                         sft_error *err) {
    planner p = { .specs = parts ? (const char *)parts + offsetof(sft_part, spec) : NULL,
                   .spec_stride = sizeof *parts, .count = count, .pairs = metadata,
                   .pair_count = metadata_count };
    return plan_new(&p, options, out, err);
}

void sft_plan_free(sft_plan *plan) {
    if (!plan) return;
    sft_allocator alloc = plan->arena.alloc;
    sfti_arena_free(&plan->arena);
    sfti_release(&alloc, plan, sizeof *plan);
}

uint64_t sft_plan_total(const sft_plan *plan) {
    return plan->head_len + plan->data_bytes;
}

sft_span sft_plan_head(const sft_plan *plan) {
    sft_span head = { plan->head, plan->head_len };
    return head;
}

size_t sft_plan_tensor_count(const sft_plan *plan) {
    return plan->count;
}

const sft_tensor *sft_plan_tensor_at(const sft_plan *plan, size_t i) {
    return i < plan->count ? &plan->tensors[i] : NULL;
}

size_t sft_plan_position(const sft_plan *plan, size_t spec) {
    return spec < plan->count ? plan->position[spec] : SIZE_MAX;
}

const sft_allocator *sfti_plan_allocator(const sft_plan *plan) {
    return &plan->arena.alloc;
}
