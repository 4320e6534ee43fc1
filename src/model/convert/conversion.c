/* Conversions of whole models: what happens to each tensor. Tests: test_convert.c. */
#include "convert/conversion.h"

#include "base/announce.h"
#include "base/checked.h"
#include "base/json.h"
#include "base/options.h"
#include "convert/adapter.h"
#include "convert/computed.h"
#include "convert/dropped.h"
#include "keys/digest_keys.h"
#include "keys/listed.h"
#include "safetensors_report.h"

#include <string.h>

/* ── What happens to each tensor ── */

static bool is_made(const sfti_converted *row) {
    return row->action == SFT_CONVERT_CAST || row->action == SFT_CONVERT_DEQUANTIZE;
}

/* Whether its bytes come from the conversion's source. */
static bool is_streamed(const sfti_converted *row) {
    return is_made(row) || row->action == SFT_CONVERT_REFUSED;
}

static bool is_dropped(const sft_conversion *c, size_t i) {
    return c->rows[i].action == SFT_CONVERT_DROP;
}

static bool is_integer(sft_kind kind) {
    return kind == SFT_KIND_INT || kind == SFT_KIND_UINT;
}

/* Scalars that a narrower float would change, and that a model is wrong as a whole by. */
static bool keeps_dtype(const sft_conversion *c, const sft_tensor *tensor) {
    static const char *const ends[] = { ".alpha", ".dora_scale", ".lora_magnitude_vector",
                                        ".lora_magnitude_vector.weight", ".rescale" };
    const sft_dtype_info *from = sft_dtype_describe(tensor->dtype);
    const sft_dtype_info *to = sft_dtype_describe(c->to);
    if (from->kind != SFT_KIND_FLOAT || to->kind != SFT_KIND_FLOAT || to->bits > from->bits
        || (c->options.match && c->options.lossy))
        return false;
    if (tensor->rank == 0 || (to->bits <= 8 && tensor->rank == 1 && tensor->shape[0] <= 16))
        return true;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++)
        if (tensor->name.len > strlen(ends[i]) && sfti_name_ends(tensor->name, ends[i]))
            return true;
    return false;
}

static sft_convert_action decide(const sft_conversion *c, size_t i, sfti_converted *row) {
    const sft_tensor *tensor = sft_set_tensor_at(c->set, i);
    sft_convert_action action = SFT_CONVERT_CAST;
    sft_kind from = sft_dtype_describe(tensor->dtype)->kind, to = sft_dtype_describe(c->to)->kind;
    bool wanted = c->options.match ? c->options.match(c->options.match_ctx, tensor)
                                   : from == to || (is_integer(from) && is_integer(to));
    if (!wanted) return SFT_CONVERT_OTHER;
    if (tensor->dtype == c->to) return SFT_CONVERT_SAME;
    row->overruled = sfti_conversion_beside(c, i, &action) && c->options.scaled;
    if (row->overruled) return SFT_CONVERT_CAST;
    return action == SFT_CONVERT_CAST && keeps_dtype(c, tensor) ? SFT_CONVERT_KEPT : action;
}

/* Size of tensor i once it is cast, or its values are computed. */
static sft_code measure_made(const sft_conversion *c, size_t i, uint64_t *bytes, sft_error *err) {
    const sft_tensor *tensor = sft_set_tensor_at(c->set, i);
    bool casts = c->rows[i].action == SFT_CONVERT_CAST;
    sft_spec spec = casts ? sft_part_of(tensor, NULL).spec : c->quants[i]->spec;
    if (casts && !sft_cast_exists(tensor->dtype, c->to)) {
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, tensor->name,
                                "expected a tensor that can become %s, found one of %s",
                                sft_dtype_describe(c->to)->name,
                                sft_dtype_describe(tensor->dtype)->name);
    }
    sft_code code = sft_shape_size(c->to, spec.shape, spec.rank, NULL, bytes, err);
    if (!code || !err) return code;
    sfti_error_tensor(err, tensor->name);
    if (casts) err->hint = SFT_HINT_CHOOSE_TENSORS;
    return code;
}

/* Fills row i and sets where the next one begins. */
static sft_code fill_row(sft_conversion *c, size_t i, sft_error *err) {
    sfti_converted *row = &c->rows[i], *next = &c->rows[i + 1];
    const sft_tensor *tensor = sft_set_tensor_at(c->set, i);
    uint64_t before = tensor->end - tensor->begin, bytes = before;
    sft_convert_action action;
    sft_code code = SFT_OK;
    *row = (sfti_converted){ .begin = row->begin };
    if (!c->quants) action = decide(c, i, row);
    else action = c->quants[i] ? SFT_CONVERT_DEQUANTIZE
                : c->search.taken[i] == SFTI_QUANT_REFUSED ? SFT_CONVERT_REFUSED
                : c->search.taken[i] ? SFT_CONVERT_DROP
                : c->computed && c->computed[i] && tensor->dtype != c->to ? SFT_CONVERT_CAST
                : SFT_CONVERT_OTHER;
    row->action = (uint8_t)action;
    next->begin = row->begin;
    if (action == SFT_CONVERT_DROP) bytes = 0;
    if (is_made(row)) code = measure_made(c, i, &bytes, err);
    if (code) return code;
    if (is_streamed(row)) {
        if (!sfti_add(row->begin, bytes, &next->begin))
            return sfti_fail_tensor(err, SFT_SIZE_OVERFLOW, SFT_NO_OFFSET, tensor->name,
                                    "expected tensors of at most 2^64 - 1 bytes, found more");
    }
    c->by_action[row->action]++;
    c->bytes_before += before;
    c->bytes_after += bytes;
    return SFT_OK;
}

/* ── Declarations that end ── */

/* Whether tensors whose names begin so are dequantised, and no quantised one is left. */
static bool are_all_taken(const sft_conversion *c, sft_span prefix) {
    size_t taken = 0;
    for (size_t i = 0; i < c->count; i++) {
        const sft_tensor *tensor = sft_set_tensor_at(c->set, i);
        sft_convert_action action = SFT_CONVERT_OTHER;
        if (tensor->name.len < prefix.len
            || (prefix.len > 0 && memcmp(tensor->name.data, prefix.data, prefix.len) != 0))
            continue;
        taken += c->rows[i].action == SFT_CONVERT_DEQUANTIZE;
        if (c->rows[i].action != SFT_CONVERT_DEQUANTIZE && sfti_quant_has(tensor)
            && sfti_conversion_beside(c, i, &action)
            && action == SFT_CONVERT_SCALED)
            return false;
    }
    return taken > 0;
}

/* "scaled_fp8": all F8 with a scale beneath its prefix are what the old ComfyUI format has. It
 * goes once none of them is left. */
static void drop_marker(sft_conversion *c, size_t marker) {
    const sft_tensor *tensor = sft_set_tensor_at(c->set, marker);
    const char *end = "scaled_fp8";
    if (!sfti_name_ends(tensor->name, end) || c->rows[marker].action != SFT_CONVERT_OTHER) return;
    size_t prefix = tensor->name.len - strlen(end);
    if (prefix > 0 && tensor->name.data[prefix - 1] != '.') return;
    if (!are_all_taken(c, (sft_span){ tensor->name.data, prefix })) return;
    c->rows[marker].action = SFT_CONVERT_DROP;
    c->by_action[SFT_CONVERT_OTHER]--;
    c->by_action[SFT_CONVERT_DROP]++;
    c->bytes_after -= tensor->end - tensor->begin;
}

/* The value of a metadata pair that is written: *value NULL for its own. False when out of memory;
 * an empty value is left out. */
static bool lasting_value(const sft_conversion *c, sft_pair pair, sfti_arena *arena,
                          const sft_span **value) {
    static const char plain_class[] = "{\"_type\": \"Tensor\"}";
    static const sft_span none = { "", 0 }, plain = { plain_class, sizeof plain_class - 1 };
    *value = NULL;
    if (!c->quants) return true;
    bool declares = sft_span_equal(pair.key, sft_span_cstr(SFTI_DECLARED_KEY));
    bool computed = sfti_conversion_classed(c, pair);
    bool classed = computed
                || (pair.value.len > 9 && memcmp(pair.value.data, "{\"_type\":", 9) == 0);
    if (sfti_convert_ends_alias(c, pair)) *value = &none;
    if (!declares && !classed && !sft_span_equal(pair.key, sft_span_cstr(SFTI_LISTED_KEY))
        && !sft_span_equal(pair.key, sft_span_cstr(SFTI_QUANTISER_KEY)))
        return true;
    if (are_all_taken(c, none)) *value = &none;
    else if (computed) *value = &plain;
    if (!declares || *value) return true;
    sft_span *rest = sfti_arena_take(arena, sizeof *rest);
    *value = rest;
    return rest && sfti_declared_rest(&c->declared, c->set, pair.value, false, arena, rest);
}

/* ── Metadata of all shards ── */

/* Digests that do not hold for what shards [first, end) become: all, unless it is one whose data
 * is written as it is. */
static unsigned stale_digests(const sft_conversion *c, size_t first, size_t end) {
    if (end - first != 1) return SFTI_DIGESTS_OF_DATA;
    for (size_t i = 0; i < c->count; i++)
        if (sft_set_tensor_shard(c->set, i) == first && (is_made(&c->rows[i]) || is_dropped(c, i)))
            return SFTI_DIGESTS_OF_DATA;
    bool same = sfti_has_official_layout(sft_set_shard_at(c->set, first));
    return same ? 0 : SFTI_DIGESTS_OF_DATA;
}

sft_pair sfti_conversion_pair(const void *conversion, size_t i) {
    const sft_conversion *c = conversion;
    const sfti_convert_pick *pick = &c->picks[i];
    sft_pair pair = sft_file_metadata_at(sft_set_shard_at(c->set, pick->shard), pick->pair);
    if (pick->value) pair.value = *pick->value;
    return pair;
}

static sft_code gather_metadata(sft_conversion *c, sft_error *err) {
    size_t shards = sft_set_shard_count(c->set), most = 0;
    unsigned stale = stale_digests(c, 0, shards);
    for (size_t s = 0; s < shards; s++) {
        const sft_file *file = sft_set_shard_at(c->set, s);
        c->has_metadata = c->has_metadata || sft_file_has_metadata(file);
        most += sft_file_metadata_count(file);
    }
    c->picks = sfti_arena_array(&c->arena, most, sizeof *c->picks);
    if (!c->picks) return sfti_fail_memory(err, most * sizeof *c->picks);
    for (size_t s = 0; s < shards; s++) {
        const sft_file *file = sft_set_shard_at(c->set, s);
        c->dropped |= sfti_digests_in(file, stale);
        for (size_t i = 0; i < sft_file_metadata_count(file); i++) {
            sft_pair pair = sft_file_metadata_at(file, i);
            const sft_span *value;
            sft_span before;
            bool again = false;
            if (sfti_digest_key_of(pair.key) & stale) continue;
            for (size_t b = 0; b < s && !again; b++)
                again = sft_file_metadata_get(sft_set_shard_at(c->set, b), pair.key, &before);
            if (again) {
                if (sft_span_equal(pair.value, before)) continue;
                if (sft_span_equal(pair.key, sft_span_cstr(SFTI_LORA_CONFIG_KEY)))
                    c->two_configs = true;
                else c->two_declared |= sfti_is_reading_key(pair.key)
                                     && !(c->quants && are_all_taken(c, (sft_span){ "", 0 }));
                continue;
            }
            sft_code code = sfti_convert_rename_alias(c, pair, err);
            if (code) return code;
            if (!lasting_value(c, pair, &c->arena, &value))
                return sfti_fail_memory(err, pair.value.len);
            if (value && value->len == 0) continue;
            c->picks[c->metadata_count++] = (sfti_convert_pick){ (uint32_t)s, (uint32_t)i, value };
        }
    }
    return sfti_conversion_join_lists(c, err);
}

size_t sfti_conversion_pairs(const sft_conversion *c) { return c->metadata_count; }

unsigned sfti_conversion_dropped(const sft_conversion *conversion) { return conversion->dropped; }

/* ── A conversion ── */

/* What finding will read: declarations, a tensor each. */
static void announce_markers(const sft_conversion *c) {
    sfti_announcement all = { .count = 0 };
    for (size_t i = 0; i < c->count; i++) {
        const sft_tensor *tensor = sft_set_tensor_at(c->set, i);
        const sft_file *file = sft_set_shard_at(c->set, sft_set_tensor_shard(c->set, i));
        if (sfti_name_ends(tensor->name, ".comfy_quant")) sfti_announce_tensor(&all, file, tensor);
    }
    sfti_announce_end(&all);
}

static sft_code find_all(sft_conversion *c, sft_error *err) {
    sft_code code = SFT_OK;
    if (!c->options.match) announce_markers(c);
    for (size_t i = 0; i < c->count; i++) c->quants[i] = NULL;
    for (size_t i = 0; !code && i < c->count; i++) {
        const sft_tensor *tensor = sft_set_tensor_at(c->set, i);
        sft_error own = SFT_ERROR_INIT;
        code = sfti_conversion_find(c, &c->search, i, &c->quants[i], &own);
        bool refused = code == SFT_CAST_DTYPE && c->options.partial;
        if (refused) c->search.taken[i] = SFTI_QUANT_REFUSED;
        if (refused) code = SFT_OK;
        else if (code) code = sfti_fail_as(err, code, &own);
        sfti_declared_layer *layer = sfti_declared_of(&c->declared, tensor->name, NULL);
        if (c->quants[i] && layer && layer->weight == tensor) layer->taken = true;
    }
    return code;
}

static sft_code decide_all(sft_conversion *c, sft_error *err) {
    size_t shards = sft_set_shard_count(c->set);
    c->count = sft_set_tensor_count(c->set);
    c->rows = sfti_arena_array(&c->arena, (uint64_t)c->count + 1, sizeof *c->rows);
    c->files = sfti_arena_array(&c->arena, shards, sizeof *c->files);
    if (!c->rows || !c->files) return sfti_fail_memory(err, c->count * sizeof *c->rows);
    if (c->options.dequantize) {
        c->quants = sfti_arena_array(&c->arena, c->count, sizeof *c->quants);
        if (!c->quants) return sfti_fail_memory(err, c->count * sizeof *c->quants);
    }
    for (size_t s = 0; s < shards; s++) c->files[s] = sft_file_source(sft_set_shard_at(c->set, s));
    c->rows[0].begin = 0;
    sft_code code = sfti_convert_check_aliases(c->set, &c->alloc, err);
    if (!code)
        code = sfti_declared_read(c->set, c->options.dequantize, c->options.files, &c->arena,
                                  &c->declared, err);
    if (!code && (c->quants || sfti_declared_may(c->set)))
        code = sfti_quant_begin(&c->search, c->set, &c->declared, &c->arena, err);
    if (!code && c->quants) code = find_all(c, err);
    for (size_t i = 0; !code && i < c->count; i++) code = fill_row(c, i, err);
    if (code) return code;
    for (size_t i = 0; c->quants && i < c->count; i++) drop_marker(c, i);
    c->source.ctx = c;
    c->source.size = c->rows[c->count].begin;
    c->source.vtable = &sfti_convert_source;
    return gather_metadata(c, err);
}

/* Adapters are small differences: most of their values are below what 8 bits can tell from zero.
 * Models are called adapters where info calls them so. */
static sft_code check_lossy(const sft_conversion *c, sft_error *err) {
    const sft_dtype_info *to = sft_dtype_describe(c->to);
    bool is_adapter = true;
    if (c->options.lossy || to->kind != SFT_KIND_FLOAT || to->bits > 8
        || c->by_action[SFT_CONVERT_CAST] == 0)
        return SFT_OK;
    sft_code code = SFT_OK;
    if (sfti_hook_adapter) code = sfti_hook_adapter(c->set, &c->alloc, &is_adapter, err);
    if (code || !is_adapter) return code;
    sfti_fail(err, SFT_CAST_DTYPE, "expected a dtype of at least 16 bits for an adapter, whose "
              "values are small, found %s, in which many of them become zero", to->name);
    sfti_hint(err, SFT_HINT_LOSSY);
    return SFT_CAST_DTYPE;
}

static SFTI_OPTIONS_TAKE(conversion_take, sft_convert_options, SFT_CONVERT_OPTIONS_INIT, alloc)

sft_code sfti_conversion_new(const sft_set *set, sft_dtype to, const sft_convert_options *options,
                             const bool *computed, sft_conversion **out, sft_error *err) {
    sft_convert_options own;
    if (out) *out = NULL;
    if (!set || !out || !sft_dtype_describe(to))
        return sfti_fail(err, SFT_BAD_ARGUMENT,
                         "expected a model, a dtype and a place for the conversion, found %s",
                         set && out ? "another number" : "NULL");
    sft_code code = conversion_take(options, &own, err);
    if (code) return code;
    if (own.dequantize && sft_dtype_describe(to)->kind != SFT_KIND_FLOAT)
        return sfti_misuse(err, "expected a floating-point dtype for values of quantised tensors, "
                           "found %s", sft_dtype_describe(to)->name);
    sft_allocator alloc = sfti_allocator(own.alloc);
    sft_conversion *c = sfti_take(&alloc, sizeof *c);
    if (!c) return sfti_fail_memory(err, sizeof *c);
    memset(c, 0, sizeof *c);
    c->alloc = c->arena.alloc = c->dequant.alloc = alloc;
    c->set = set;
    c->mode = sft_set_output_mode(set, NULL);
    c->to = to;
    c->options = own;
    c->options.alloc = &c->alloc;
    c->computed = computed;
    sfti_cast_kernels_fill(&c->kernels, 0);
    code = decide_all(c, err);
    if (!code) code = check_lossy(c, err);
    if (!code) *out = c;
    else sft_conversion_free(c);
    return code;
}

sft_code sft_conversion_new(const sft_set *set, sft_dtype to, const sft_convert_options *options,
                            sft_conversion **out, sft_error *err) {
    return sfti_conversion_new(set, to, options, NULL, out, err);
}

void sft_conversion_free(sft_conversion *conversion) {
    if (!conversion) return;
    sft_allocator alloc = conversion->alloc;
    sfti_convert_end(conversion);
    sfti_arena_free(&conversion->arena);
    sfti_release(&alloc, conversion, sizeof *conversion);
}

sft_convert_action sft_conversion_action(const sft_conversion *conversion, size_t i,
                                     const sft_tensor **scale) {
    if (scale) *scale = NULL;
    if (i >= conversion->count) return SFT_CONVERT_OTHER;
    sft_convert_action action = (sft_convert_action)conversion->rows[i].action;
    sft_convert_action found = action;
    if (scale && action >= SFT_CONVERT_SCALED && action <= SFT_CONVERT_DROP)
        *scale = sfti_conversion_beside(conversion, i, &found);
    return action;
}

uint64_t sft_conversion_bytes(const sft_conversion *conversion, size_t i) {
    if (i >= conversion->count) return 0;
    const sfti_converted *row = &conversion->rows[i];
    const sft_tensor *tensor = sft_set_tensor_at(conversion->set, i);
    if (row->action == SFT_CONVERT_DROP) return 0;
    return is_made(row) ? row[1].begin - row->begin : tensor->end - tensor->begin;
}

bool sft_conversion_overrules(const sft_conversion *conversion, size_t i) {
    return i < conversion->count && conversion->rows[i].overruled;
}

uint64_t sft_conversion_count(const sft_conversion *conversion, sft_convert_action action) {
    return (unsigned)action < SFTI_CONVERT_ACTIONS ? conversion->by_action[action] : 0;
}

static uint64_t loss_of(const sfti_losses *lost, sft_convert_loss what) {
    switch (what) {
    case SFT_LOSS_ZERO: return lost->zeros;
    case SFT_LOSS_INFINITE: return lost->infinite;
    case SFT_LOSS_SATURATED: return lost->saturated;
    case SFT_LOSS_OF: return lost->nonzero;
    default: return 0;
    }
}

uint64_t sft_conversion_lost(const sft_conversion *conversion, size_t i, sft_convert_loss what) {
    uint64_t sum = 0;
    if (i < conversion->count) return loss_of(&conversion->rows[i].lost, what);
    for (size_t k = 0; i == SIZE_MAX && k < conversion->count; k++)
        sum += loss_of(&conversion->rows[k].lost, what);
    return sum;
}

uint64_t sft_conversion_bytes_before(const sft_conversion *conversion) {
    return conversion->bytes_before;
}

uint64_t sft_conversion_bytes_after(const sft_conversion *conversion) {
    return conversion->bytes_after;
}

/* ── Saving ── */

static sft_part part_of_row(const sft_conversion *c, size_t i) {
    const sft_source *from = &c->files[sft_set_tensor_shard(c->set, i)];
    sft_part part = sft_part_of(sft_set_tensor_at(c->set, i), from);
    if (!is_streamed(&c->rows[i])) return part;
    if (c->rows[i].action == SFT_CONVERT_DEQUANTIZE) part.spec = c->quants[i]->spec;
    if (is_made(&c->rows[i])) part.spec.dtype = c->to;
    part.source = &c->source;
    part.begin = c->rows[i].begin;
    return part;
}

sft_part sft_conversion_part(sft_conversion *conversion, size_t i) {
    if (i >= conversion->count || is_dropped(conversion, i)) return (sft_part){ .begin = 0 };
    return part_of_row(conversion, i);
}

sft_plan_options sfti_conversion_plan(const sft_conversion *c) {
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    plan.has_metadata = c->has_metadata;
    plan.align = c->options.align;
    plan.level = SFT_LEVEL_COMPAT; /* whatever could be read can be written */
    plan.alloc = c->options.alloc;
    plan.pair_at = sfti_conversion_pair;
    plan.pair_ctx = c;
    return plan;
}

#define ALL_SHARDS SIZE_MAX

/* The parts of one shard, or of ALL_SHARDS. */
static sft_code converted_parts(const sft_conversion *c, size_t shard, sfti_arena *work,
                                sft_part **parts, size_t *count, sft_error *err) {
    size_t most = shard == ALL_SHARDS ? c->count
                                      : sft_file_tensor_count(sft_set_shard_at(c->set, shard));
    *count = 0;
    if (shard == ALL_SHARDS && c->two_configs)
        return sfti_fail(err, SFT_CAST_DTYPE, SFTI_LORA_CONFIGS_DIFFER);
    if (shard == ALL_SHARDS && c->two_declared)
        return sfti_fail(err, SFT_CAST_DTYPE,
                         "expected one declaration of quantised layers (" SFTI_DECLARED_KEY ", "
                         SFTI_QUANTISER_KEY ") in all shards, found different ones: without its "
                         "own, a layer would be read wrong");
    *parts = sfti_arena_array(work, most, sizeof **parts);
    if (!*parts) return sfti_fail_memory(err, most * sizeof **parts);
    for (size_t i = 0; i < c->count; i++)
        if (!is_dropped(c, i) && (shard == ALL_SHARDS || sft_set_tensor_shard(c->set, i) == shard))
            (*parts)[(*count)++] = part_of_row(c, i);
    return SFT_OK;
}

/* Numbers the shards that hold parts and says which each part is in. */
static sft_code converted_shards(const sft_conversion *c, sfti_arena *work, uint32_t **shard_of,
                                 uint32_t *shards, sft_error *err) {
    *shard_of = sfti_arena_array(work, c->count, sizeof **shard_of);
    if (!*shard_of) return sfti_fail_memory(err, c->count * sizeof **shard_of);
    *shards = 0;
    for (size_t i = 0, part = 0, before = 0; i < c->count; i++) {
        size_t shard = sft_set_tensor_shard(c->set, i);
        if (is_dropped(c, i)) continue;
        *shards += part == 0 || shard != before;
        before = shard;
        (*shard_of)[part++] = *shards - 1;
    }
    if (*shards == 0) *shards = 1;
    return SFT_OK;
}

static sft_code save_file(sft_conversion *c, size_t shard, size_t pairs,
                          const sft_plan_options *plan, sft_sink sink, const sft_job *job,
                          sft_error *err) {
    sfti_arena work = { .alloc = c->alloc };
    sft_part *parts;
    size_t count;
    sft_job own;
    sft_code code = sfti_take_job(job, &own, err);
    if (!code) code = converted_parts(c, shard, &work, &parts, &count, err);
    if (!code) code = sfti_convert_begin(c, &own, err);
    if (!code) code = sft_save_parts(parts, count, NULL, pairs, plan, sink, &own, err);
    else sft_sink_abandon(&sink);
    sfti_convert_end(c);
    sfti_arena_free(&work);
    return code;
}

sft_code sft_conversion_save(sft_conversion *conversion, sft_sink sink, const sft_job *job,
                             sft_error *err) {
    sft_plan_options plan = sfti_conversion_plan(conversion);
    return save_file(conversion, ALL_SHARDS, conversion->metadata_count, &plan, sink, job, err);
}

static SFTI_OPTIONS_TAKE(converted_take, sft_save_set_options, SFT_SAVE_SET_OPTIONS_INIT, plan)

sft_code sft_conversion_save_set(sft_conversion *conversion, const char *folder,
                                 const sft_save_set_options *options, const sft_job *job,
                                 sft_error *err) {
    sft_conversion *c = conversion;
    sfti_arena work = { .alloc = c->alloc };
    sft_plan_options plan = sfti_conversion_plan(c);
    sft_save_set_options own;
    sft_job own_job;
    sft_part *parts;
    size_t count;
    uint32_t *shard_of = NULL, shards = 0;
    sft_code code = converted_take(options, &own, err);
    if (!code) code = sfti_take_job(job, &own_job, err);
    if (code) return code;
    own.plan = &plan;
    if (own.mode == 0) own.mode = sft_set_output_mode(c->set, NULL);
    code = converted_parts(c, ALL_SHARDS, &work, &parts, &count, err);
    if (!code) code = converted_shards(c, &work, &shard_of, &shards, err);
    if (!code) code = sfti_convert_begin(c, &own_job, err);
    if (!code)
        code = sft_save_set(folder, parts, shard_of, count, shards, NULL, c->metadata_count, &own,
                            &own_job, err);
    sfti_convert_end(c);
    sfti_arena_free(&work);
    return code;
}

/* Metadata of one shard, those that declare with another value. */
typedef struct shard_pairs {
    sfti_kept_pairs kept;
    const sft_span **values; /* NULL: its own */
} shard_pairs;

static sft_pair shard_pair(const void *ctx, size_t i) {
    const shard_pairs *pairs = ctx;
    sft_pair pair = sfti_kept_pair(&pairs->kept, i);
    if (pairs->values[i]) pair.value = *pairs->values[i];
    return pair;
}

sft_code sft_conversion_save_shard(sft_conversion *conversion, size_t shard, sft_sink sink,
                                   const sft_job *job, sft_error *err) {
    sft_plan_options plan = sfti_conversion_plan(conversion);
    const sft_file *file = sft_set_shard_at(conversion->set, shard);
    if (!file) {
        sft_sink_abandon(&sink);
        return sfti_misuse(err, "expected a shard of the set, found a higher number");
    }
    sfti_arena work = { .alloc = conversion->alloc };
    shard_pairs pairs = { .values = NULL };
    sfti_kept_pairs *kept = &pairs.kept;
    unsigned stale = stale_digests(conversion, shard, shard + 1);
    sft_code code = sfti_kept_pairs_of(file, stale, &work, kept, err);
    size_t lasting = 0;
    if (!code) pairs.values = sfti_arena_array(&work, kept->count, sizeof *pairs.values);
    if (!code && !pairs.values) code = sfti_fail_memory(err, kept->count);
    for (size_t i = 0; !code && i < kept->count; i++) {
        const sft_span *value;
        if (!lasting_value(conversion, sfti_kept_pair(kept, i), &work, &value))
            code = sfti_fail_memory(err, kept->count);
        if (code || (value && value->len == 0)) continue;
        pairs.values[lasting] = value;
        kept->at[lasting++] = kept->at[i];
    }
    kept->count = lasting;
    plan.has_metadata = sft_file_has_metadata(file);
    plan.pair_at = shard_pair;
    plan.pair_ctx = &pairs;
    if (code) sft_sink_abandon(&sink);
    else code = save_file(conversion, shard, kept->count, &plan, sink, job, err);
    sfti_arena_free(&work);
    return code;
}
