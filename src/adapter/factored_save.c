/* What factors of another rank become: their store, tensors and metadata of the new adapter.
 * Tests: tests/adapter/factors.py, test_adapter_factors.c. */
#include "adapter/factored.h"

#include "base/error.h"
#include "base/utf8.h"
#include "os/io.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* ── The store ── */

/* An unnamed file, or memory where there is no folder or the system has no such files. */
void sfti_factored_open_store(sft_adapter_factors *f) {
    const char *folder = f->options.scratch;
    if (!folder || f->options.measure) return;
    if (sfti_os_open_unnamed(*folder ? folder : ".", 0600, &f->fd) != 0) f->fd = -1;
}

void sfti_factored_close_store(sft_adapter_factors *f) {
    sft_source_close(&f->source);
    if (f->fd >= 0) sfti_os_close(f->fd);
    f->fd = -1;
    f->size = 0;
    sft_buffer_free(&f->memory);
}

sft_code sfti_factored_store(sft_adapter_factors *f, uint64_t at, const void *bytes, uint64_t len,
                             sft_error *err) {
    const char *from = bytes;
    if (f->options.measure) return SFT_OK;
    if (f->fd < 0) /* in order: the offset is where the memory ends */
        return sfti_buffer_put(&f->memory, bytes, (size_t)len) ? SFT_OK
                                                               : sfti_fail_memory(err, len);
    while (len > 0) {
        size_t put = 0;
        int error = sfti_os_pwrite(f->fd, from, (size_t)len, at, &put);
        if (error || put == 0) return sfti_io_fail(err, SFT_IO_WRITE, error ? error : EIO,
                                                     "write the factors to a temporary file");
        from += put, at += put, len -= put;
    }
    return SFT_OK;
}

/* ── Tensors ── */

static void put_part(sft_adapter_factors *f, const char *name, const uint64_t *shape, uint32_t rank,
                     sft_dtype dtype, uint64_t begin) {
    f->parts[f->part_count++] =
        (sft_part){ { sft_span_cstr(name), dtype, rank, shape }, &f->source, begin };
}

static sft_code list_factors(sft_adapter_factors *f, sft_error *err) {
    uint64_t count = 3 * (uint64_t)f->count + f->kept_count;
    f->parts = sfti_arena_array(&f->arena, count, sizeof *f->parts);
    if (!f->parts) return sfti_fail_memory(err, count * sizeof *f->parts);
    f->part_count = 0;
    for (size_t i = 0; i < f->count; i++) {
        sfti_factor *layer = &f->layers[i];
        if (layer->told.left_out) continue;
        uint64_t ups = sft_dtype_describe(layer->dtype)->bits / 8; /* its bytes */
        layer->up_shape[layer->turned ? 0 : 1] = layer->told.rank;
        layer->down_shape[layer->turned ? 1 : 0] = layer->told.rank;
        for (uint32_t k = 0; k < layer->up_dims; k++) ups *= layer->up_shape[k];
        if (layer->alpha)
            put_part(f, layer->alpha, NULL, 0, layer->alpha_dtype, layer->begin);
        put_part(f, layer->down, layer->down_shape, layer->down_dims, layer->dtype,
                 layer->begin + 4 + ups);
        put_part(f, layer->up, layer->up_shape, layer->up_dims, layer->dtype, layer->begin + 4);
    }
    for (size_t i = 0; i < f->kept_count; i++) f->parts[f->part_count++] = f->kept[i];
    return SFT_OK;
}

/* ── Metadata ── */

static sft_span value_named(const sft_file *file, const char *key) {
    sft_span value = { NULL, 0 };
    if (file) (void)sft_file_metadata_get_cstr(file, key, &value);
    return value;
}

static const char *const verb_names[] = { "resize", "stack", "extract", "simplify" };

static void put_rule(const sft_adapter_factors *f, sfti_json_writer *w) {
    static const char *const names[] = { NULL, "sv-ratio", "sv-fro", "sv-cumulative", "error",
                                         "exact" };
    const sft_adapter_factors_options *o = &f->options;
    bool exact = o->rule == SFT_ADAPTER_EXACT;
    sfti_json_put_known(w, "rank", o->rank && !exact ? o->rank : UINT64_MAX);
    sfti_json_put_known(w, "conv_rank", o->conv_rank && !exact ? o->conv_rank : UINT64_MAX);
    sfti_json_put_cstr(w, "rule", exact && !f->has_rule ? NULL : names[o->rule]);
    if (o->rule != SFT_ADAPTER_RANK && !exact) sfti_json_put_double(w, "value", o->value);
    else sfti_json_put_null(w, "value");
    sfti_json_put_cstr(w, "compat", o->kohya ? "kohya" : NULL);
    if (o->clamp_quantile > 0) sfti_json_put_double(w, "clamp_quantile", o->clamp_quantile);
}

static sft_code write_recipe(sft_adapter_factors *f, const char *key, const sft_file *file,
                             sft_error *err) {
    sft_sink sink = sft_sink_memory(&f->recipe);
    sfti_json_writer w;
    f->recipe.len = 0;
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    sfti_json_put_open(&w, "adapters", '[');
    for (size_t i = 0; i < f->adapters; i++) {
        sft_code code = sfti_recipe_adapter(&w, f->inputs[i], !f->options.measure, err);
        if (code) f->blames = i;
        if (code) return code;
    }
    sfti_json_close(&w, ']');
    sfti_json_put_open(&w, "models", '[');
    for (size_t i = f->adapters; i < f->input_count; i++)
        sfti_recipe_model(&w, f->inputs[i]->stored, f->inputs[i]->name);
    sfti_json_close(&w, ']');
    put_rule(f, &w);
    if (file) sfti_recipe_before(&w, f->inputs[0]->set, key, true);
    sfti_json_close(&w, '}');
    return sfti_json_done(&w);
}

typedef struct common_ranks {
    bool any, differ;
    double value;
} common_ranks;

static void add_rank(common_ranks *all, double value) {
    all->differ = all->differ || (all->any && (value < all->value || value > all->value));
    all->value = value;
    all->any = true;
}

/* "8", or "Dynamic" where layers differ, as kohya's scripts write it; conv: of convolutions with a
 * kernel, else of the others. Empty: there are none. */
static void common_number(const sft_adapter_factors *f, bool of_rank, bool conv, char text[32]) {
    common_ranks all = { .any = false };
    for (size_t i = 0; i < f->count; i++) {
        const sfti_factor *layer = &f->layers[i];
        if (!layer->told.left_out && layer->conv == conv)
            add_rank(&all, of_rank ? (double)layer->told.rank : layer->told.alpha);
    }
    for (size_t i = 0; i < f->plain_count; i++) {
        const sfti_lora_module *m = f->plain[i];
        if ((m->kernel > 1) == conv)
            add_rank(&all, of_rank ? (double)m->rank : m->scale * (double)m->rank);
    }
    if (!all.any) *text = '\0';
    else if (all.differ) memcpy(text, "Dynamic", sizeof "Dynamic");
    else snprintf(text, 32, "%.9g", all.value);
}

/* That of the layers without a kernel; of those with one where they are all there is. */
static const char *network_number(const sft_adapter_factors *f, bool of_rank, char text[32]) {
    common_number(f, of_rank, false, text);
    if (!*text) common_number(f, of_rank, true, text);
    return text;
}

static bool add_own_pair(sft_adapter_factors *f, sft_pair *pairs, size_t *count, const char *key,
                     const char *value) {
    char *kept = value ? sfti_arena_copy(&f->arena, value, strlen(value)) : NULL;
    if (kept) pairs[(*count)++] = (sft_pair){ sft_span_cstr(key), sft_span_cstr(kept) };
    return kept != NULL;
}

/* Arguments of training: the ranks and alphas of convolutions are those that there are now, those
 * of blocks and a core are gone. A text that is no object of JSON tells nothing. */
static sft_code put_network_args(sft_adapter_factors *f, sft_span args, sft_pair *pairs,
                                 size_t *count, sft_error *err) {
    sft_sink sink = sft_sink_memory(&f->args);
    char text[32];
    sfti_json_writer w;
    sfti_json json;
    bool whole = sfti_utf8_check(args.data, args.len) == args.len;
    sfti_json_begin(&json, args.data, whole ? args.len : 0);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return SFT_OK;
    f->args.len = 0;
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        sft_span name = sfti_json_string(&json, &f->arena);
        if (!name.data) return sfti_fail_memory(err, args.len);
        sfti_json_next(&json);
        const char *start = json.begin + json.start;
        sfti_json_skip(&json);
        if (json.type == SFTI_JSON_ERROR) return SFT_OK;
        int stale = sfti_number_among("conv_dim conv_alpha block_dims block_alphas conv_block_dims "
                                      "conv_block_alphas use_tucker use_cp", name);
        if (stale > 1) continue;
        if (stale >= 0) common_number(f, stale == 0, true, text);
        if (stale >= 0 && !*text) continue;
        sfti_json_key_span(&w, name);
        if (stale >= 0) sfti_json_cstr(&w, text);
        else sfti_json_text(&w, (sft_span){ start, (size_t)(json.at - start) });
    }
    sfti_json_close(&w, '}');
    sft_code code = sfti_json_done(&w);
    if (!code && json.type != SFTI_JSON_ERROR)
        pairs[(*count)++] = (sft_pair){ sft_span_cstr("ss_network_args"),
                                        { f->args.data, f->args.len } };
    return code;
}

/* Pairs of the inputs but digests and what told of the old ranks; the recipe. */
static sft_code put_factor_pairs(sft_adapter_factors *f, sft_error *err) {
    char *key = sfti_arena_join(&f->arena, sft_span_cstr("sft_lora_"),
                                sft_span_cstr(verb_names[f->verb]));
    char text[32];
    size_t count = 0;
    if (!key) return sfti_fail_memory(err, 32);
    const sft_file *file = f->keeps_metadata ? sft_set_shard_at(f->inputs[0]->set, 0) : NULL;
    const bool simplifies = f->verb == SFT_ADAPTER_SIMPLIFY;
    const char *const stale[] = { SFTI_LORA_CONFIG_KEY, "ss_network_dim", "ss_network_alpha",
                                  "ss_network_args",
                                  simplifies ? "ss_network_module" : "ss_network_args",
                                  "ss_training_comment" };
    sft_pair *pairs = NULL;
    sft_code code = write_recipe(f, key, file, err);
    if (!code && file)
        code = sfti_recipe_pairs(f->inputs[0]->set, &f->arena, stale, f->options.kohya ? 6 : 5,
                                 SFTI_DROPS_LORA, &pairs, &count, err);
    if (!code && !file) pairs = sfti_arena_array(&f->arena, 5, sizeof *pairs);
    if (!code && !pairs) return sfti_fail_memory(err, 5 * sizeof *pairs);
    sft_span args = value_named(file, "ss_network_args");
    if (!code && args.data && !simplifies) code = put_network_args(f, args, pairs, &count, err);
    if (code) return code;
    bool module = f->is_network || (simplifies && value_named(file, "ss_network_module").data);
    sft_span comment = value_named(file, "ss_training_comment");
    bool has_dim = value_named(file, "ss_network_dim").data != NULL;
    bool fine = !module
             || add_own_pair(f, pairs, &count, "ss_network_module", "networks.lora");
    if (has_dim || f->is_network)
        fine = fine
            && add_own_pair(f, pairs, &count, "ss_network_dim", network_number(f, true, text))
            && add_own_pair(f, pairs, &count, "ss_network_alpha", network_number(f, false, text));
    if (file && f->options.kohya) {
        const char *said = comment.len ? "; " : "";
        char *before = sfti_arena_join(&f->arena, sft_span_cstr("dimension is resized to "),
                                       sft_span_cstr(network_number(f, true, text)));
        char *more = before ? sfti_arena_join(&f->arena, sft_span_cstr(before),
                                              sft_span_cstr(said)) : NULL;
        char *all = more ? sfti_arena_join(&f->arena, sft_span_cstr(more), comment) : NULL;
        fine = fine && add_own_pair(f, pairs, &count, "ss_training_comment", all);
    }
    if (!fine) return sfti_fail_memory(err, sizeof text);
    pairs[count++] = (sft_pair){ sft_span_cstr(key), { f->recipe.data, f->recipe.len } };
    f->pairs = pairs;
    f->pair_count = count;
    return SFT_OK;
}

sft_code sfti_factored_finish(sft_adapter_factors *f, sft_error *err) {
    sft_code code = SFT_OK;
    if (f->fd >= 0) code = sft_source_fd(f->fd, &f->alloc, &f->source, err);
    else f->source = sft_source_memory(f->memory.data, f->memory.len);
    if (!code) code = put_factor_pairs(f, err);
    return code ? code : list_factors(f, err);
}
