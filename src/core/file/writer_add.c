/* Writes tensors without a plan; the header comes last. Tests: test_writer_add.c. */
#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "file/file.h"
#include "format/format.h"

#include <string.h>

#define ADDED_HEADER ((uint64_t)64 << 10)
#define ADDED_FIRST 64 /* capacity for tensors at first */

/* ── Opening ── */

static bool copy_span(sfti_arena *arena, sft_span from, sft_span *to) {
    char *copy = sfti_arena_take(arena, from.len);
    if (!copy) return false;
    if (from.len > 0) memcpy(copy, from.data, from.len);
    *to = (sft_span){ copy, from.len };
    return true;
}

static sft_code added_plan(const sfti_added *a, const sft_spec *specs, size_t count,
                           sft_plan **out, sft_error *err) {
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    options.keep_order = true;
    options.align = a->options.align;
    options.max_header_bytes = a->cap;
    options.min_header_bytes = a->cap;
    options.alloc = &a->arena.alloc;
    return sft_plan_new(specs, count, a->options.metadata, a->options.metadata_count, &options,
                        out, err);
}

/* The header length that is reserved, so that the data's start is aligned, and what the metadata
 * take of it. */
static sft_code added_begin(sfti_added *a, sft_error *err) {
    sft_plan *plan = NULL;
    uint64_t align = a->options.align ? a->options.align : 8, start = 0;
    uint64_t cap = a->options.header_bytes ? a->options.header_bytes : ADDED_HEADER;
    if (cap > SFT_MAX_HEADER_BYTES || align > SFT_MAX_HEADER_BYTES || (align & (align - 1)) != 0)
        return sfti_misuse(err, "expected a header of at most %llu bytes and an alignment that is "
                           "a power of two, found %llu and %llu",
                           (unsigned long long)SFT_MAX_HEADER_BYTES, (unsigned long long)cap,
                           (unsigned long long)align);
    (void)sfti_align_up(cap + SFTI_PREFIX, align, &start); /* both are small */
    a->cap = start - SFTI_PREFIX;
    sft_code code = added_plan(a, NULL, 0, &plan, err);
    if (code) return code;
    sft_span head = sft_plan_head(plan);
    while (head.data[head.len - 1] == ' ') head.len--;
    a->text = head.len - SFTI_PREFIX;
    sft_plan_free(plan);

    size_t count = a->options.metadata_count;
    sft_pair *pairs = sfti_arena_array(&a->arena, count, sizeof *pairs);
    if (!pairs) return sfti_fail_memory(err, (uint64_t)count * sizeof *pairs);
    for (size_t i = 0; i < count; i++) {
        const sft_pair *from = &a->options.metadata[i];
        if (!copy_span(&a->arena, from->key, &pairs[i].key) ||
            !copy_span(&a->arena, from->value, &pairs[i].value))
            return sfti_fail_memory(err, from->key.len + from->value.len);
    }
    a->options.metadata = pairs;
    return SFT_OK;
}

static SFTI_OPTIONS_TAKE(added_take, sft_writer_options, SFT_WRITER_OPTIONS_INIT, alloc)

static sft_code added_open(const sft_writer_options *options, sft_sink sink, sft_writer **out,
                           sft_error *err) {
    sft_writer_options own;
    sft_code code = added_take(options, &own, err);
    if (code) return code;
    sft_allocator alloc = sfti_allocator(own.alloc);
    sft_writer *w = sfti_take(&alloc, sizeof *w);
    if (!w) return sfti_fail_memory(err, sizeof *w);
    memset(w, 0, sizeof *w);
    w->alloc = alloc;
    w->bytes = sizeof *w;
    w->sink = sink;
    w->added.arena.alloc = alloc;
    w->added.options = own;
    sfti_seed_draw(w, w->added.seed);
    sfti_error_clear(&w->failure);
    code = added_begin(&w->added, err);
    if (!code) {
        *out = w;
        return SFT_OK;
    }
    sfti_arena_free(&w->added.arena);
    sfti_release(&alloc, w, sizeof *w);
    return code;
}

sft_code sft_writer_begin_unplanned(const sft_writer_options *options, sft_sink sink,
                                    sft_writer **out, sft_error *err) {
    sft_code code;
    if (out) *out = NULL;
    if (!out)
        code = sfti_misuse(err, "expected a place for the writer, found NULL");
    else if (!sink.seekable)
        code = sfti_fail(err, SFT_OUT_OF_ORDER, "expected a sink that can seek, for the header is "
                         "written last, found one that cannot");
    else
        code = added_open(options, sink, out, err);
    if (code) sft_sink_abandon(&sink);
    return code;
}

/* ── Adding ── */

static sft_span added_name(const void *ctx, uint32_t entry) {
    return ((const sfti_added_tensor *)ctx)[entry].tensor.name;
}

/* Doubles the capacity, with a table over it; the old ones stay in the arena. */
static bool added_grow(sfti_added *a) {
    size_t most = a->most ? a->most * 2 : ADDED_FIRST;
    if (most > UINT32_MAX / 4) return false;
    sfti_added_tensor *items = sfti_arena_array(&a->arena, most, sizeof *items);
    if (!items) return false;
    if (a->count > 0) memcpy(items, a->items, a->count * sizeof *items);
    sfti_names names;
    if (!sfti_names_begin(&names, most, a->seed, added_name, items, &a->arena)) return false;
    for (uint32_t i = 0; i < a->count; i++) {
        sft_span name = items[i].tensor.name;
        (void)sfti_names_put(&names, name, sfti_names_hash(name, a->seed), i);
    }
    a->items = items;
    a->names = names;
    a->most = most;
    return true;
}

/* What a plan of this tensor alone refuses; its bytes. */
static sft_code check_added(const sfti_added *a, const sft_spec *spec, uint64_t *bytes,
                            sft_error *err) {
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    sft_plan *plan = NULL;
    options.alloc = &a->arena.alloc;
    sft_code code = sft_plan_new(spec, 1, NULL, 0, &options, &plan, err);
    if (code) return code;
    *bytes = sft_plan_tensor_at(plan, 0)->end;
    sft_plan_free(plan);
    if (sfti_names_find(&a->names, spec->name) == SFTI_NO_NAME) return SFT_OK;
    return sfti_fail_tensor(err, SFT_TENSOR_DUPLICATE, SFT_NO_OFFSET, spec->name,
                            "expected each tensor's name once, found it twice");
}

static sft_code place_added(const sfti_added *a, sft_tensor *tensor, uint64_t bytes,
                            uint64_t *text, sft_error *err) {
    uint64_t end;
    tensor->begin = a->data;
    if (!sfti_add(a->data, bytes, &tensor->end) ||
        !sfti_add(tensor->end, a->cap + SFTI_PREFIX, &end))
        return sfti_fail_tensor(err, SFT_SIZE_OVERFLOW, SFT_NO_OFFSET, tensor->name,
                                "expected a file of at most 2^64 - 1 bytes, found more");
    tensor->offset = a->cap + SFTI_PREFIX + tensor->begin;
    bool first = a->count == 0 && a->options.metadata_count == 0;
    *text = a->text + sfti_plan_entry(tensor) + !first;
    if (*text <= a->cap) return SFT_OK;
    return sfti_fail_tensor(err, SFT_HEADER_TOO_LARGE, SFT_NO_OFFSET, tensor->name,
                            "expected a header of at most the %llu bytes kept for it, found %llu",
                            (unsigned long long)a->cap, (unsigned long long)*text);
}

sft_code sft_writer_add(sft_writer *writer, const sft_spec *spec, size_t *i, sft_error *err) {
    sfti_added *a = &writer->added;
    uint64_t bytes = 0, text = 0;
    if (writer->failure.code) {
        if (err) *err = writer->failure;
        return writer->failure.code;
    }
    if (writer->plan || !spec || !i)
        return sfti_misuse(err, "expected a tensor for a writer without a plan, found %s",
                           writer->plan ? "one with a plan" : "NULL");
    sft_tensor tensor = { .dtype = spec->dtype, .rank = spec->rank };
    sft_code code = check_added(a, spec, &bytes, err);
    if (code) return code;
    uint64_t *shape = sfti_arena_array(&a->arena, spec->rank, sizeof *shape);
    if (!shape || !copy_span(&a->arena, spec->name, &tensor.name)
        || (a->count == a->most && !added_grow(a)))
        return sfti_fail_memory(err, sizeof tensor);
    if (spec->rank > 0) memcpy(shape, spec->shape, spec->rank * sizeof *shape);
    tensor.shape = shape;
    code = place_added(a, &tensor, bytes, &text, err);
    if (code) return code;
    uint32_t at = (uint32_t)a->count++;
    a->items[at] = (sfti_added_tensor){ tensor, 0 };
    (void)sfti_names_put(&a->names, tensor.name, sfti_names_hash(tensor.name, a->seed), at);
    a->text = text;
    a->data = tensor.end;
    *i = at;
    return SFT_OK;
}

/* ── The header ── */

sft_code sfti_writer_head(sft_writer *w, sft_error *err) {
    sfti_added *a = &w->added;
    sft_plan *plan = NULL;
    sft_spec *specs = sfti_arena_array(&a->arena, a->count, sizeof *specs);
    if (!specs) return sfti_fail_memory(err, (uint64_t)a->count * sizeof *specs);
    for (size_t i = 0; i < a->count; i++) {
        const sft_tensor *t = &a->items[i].tensor;
        specs[i] = (sft_spec){ t->name, t->dtype, t->rank, t->shape };
    }
    sft_code code = added_plan(a, specs, a->count, &plan, err);
    if (code) return code;
    sft_span head = sft_plan_head(plan);
    code = sft_sink_write(&w->sink, 0, head.data, head.len, err);
    sft_plan_free(plan);
    return code;
}
