/* Factors on their way to OUT, OUT itself, and what is told of it. Tests: tests/adapter/factors.py,
 * tests/cli/lora/factors. */
#include "commands/lora/spool.h"

#include "adapter/merge.h"
#include "base/error.h"
#include "base/number.h"
#include "keys/digest_keys.h"
#include "os/io.h"
#include "safetensors_io.h"
#include "support/files.h"
#include "support/words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define WORST_MOST 10
#define CONFIG_KEY "lora_adapter_metadata"

/* ── The spool ── */

void lora_spool_open(lora_factoring *f, const char *path) {
    sfti_arena arena = { .alloc = f->c->alloc };
    sft_span folder = path ? cli_folder_of(path) : (sft_span){ NULL, 0 };
    char *text = path ? sfti_arena_copy(&arena, folder.data, folder.len) : NULL;
    if (text && sfti_os_open_unnamed(folder.len ? text : ".", 0600, &f->fd) != 0) f->fd = -1;
    sfti_arena_free(&arena);
}

void lora_spool_close(lora_factoring *f) {
    sft_source_close(&f->source);
    if (f->fd >= 0) sfti_os_close(f->fd);
    f->fd = -1;
    sft_buffer_free(&f->memory);
}

sft_code lora_spool_put(lora_factoring *f, uint64_t at, const void *bytes, uint64_t len,
                        sft_error *err) {
    const char *from = bytes;
    if (f->c->set.dry_run) return SFT_OK;
    if (f->fd < 0) { /* in order: the offset is where the memory ends */
        return sfti_buffer_put(&f->memory, bytes, (size_t)len) ? SFT_OK
                                                               : sfti_fail_memory(err, len);
    }
    while (len > 0) {
        size_t put = 0;
        int error = sfti_os_pwrite(f->fd, from, (size_t)len, at, &put);
        if (error || put == 0) return sfti_io_fail(err, SFT_IO_WRITE, error, "write");
        from += put, at += put, len -= put;
    }
    return SFT_OK;
}

/* ── Tensors of OUT ── */

static void put_part(lora_factoring *f, const char *name, const uint64_t *shape, uint32_t rank,
                     sft_dtype dtype, uint64_t begin) {
    f->parts.parts[f->parts.count++] =
        (sft_part){ { sft_span_cstr(name), dtype, rank, shape }, &f->source, begin };
}

static sft_code list_parts(lora_factoring *f, sft_error *err) {
    cli_parts *p = &f->parts;
    uint64_t count = 3 * (uint64_t)f->count + f->kept_count;
    p->parts = sfti_arena_array(&f->arena, count, sizeof *p->parts);
    if (!p->parts) return sfti_fail_memory(err, count * sizeof *p->parts);
    p->count = 0;
    for (size_t i = 0; i < f->count; i++) {
        lora_layer *layer = &f->layers[i];
        if (layer->left_out) continue;
        uint64_t ups = sft_dtype_describe(layer->dtype)->bits / 8; /* its bytes */
        layer->up_shape[layer->turned ? 0 : 1] = layer->rank;
        layer->down_shape[layer->turned ? 1 : 0] = layer->rank;
        for (uint32_t k = 0; k < layer->up_dims; k++) ups *= layer->up_shape[k];
        if (layer->alpha)
            put_part(f, layer->alpha, NULL, 0, layer->alpha_dtype, layer->begin);
        put_part(f, layer->down, layer->down_shape, layer->down_dims, layer->dtype,
                 layer->begin + 4 + ups);
        put_part(f, layer->up, layer->up_shape, layer->up_dims, layer->dtype, layer->begin + 4);
    }
    for (size_t i = 0; i < f->kept_count; i++) p->parts[p->count++] = f->kept[i];
    p->changed = true;
    return SFT_OK;
}

/* ── Metadata ── */

static sft_span pair_named(const sft_file *file, const char *key) {
    sft_span value = { NULL, 0 };
    if (file) (void)sft_file_metadata_get_cstr(file, key, &value);
    return value;
}

static void put_rule(const lora_factoring *f, sfti_json_writer *w) {
    static const char *const names[] = { NULL, "sv-ratio", "sv-fro", "sv-cumulative", "error" };
    sfti_json_put_known(w, "rank", f->rule.most ? f->rule.most : UINT64_MAX);
    sfti_json_put_known(w, "conv_rank", f->rule.most_conv ? f->rule.most_conv : UINT64_MAX);
    sfti_json_put_cstr(w, "rule", f->exact ? "exact" : names[f->rule.by]);
    if (f->rule.by != SFTI_RANK_ALL) sfti_json_put_double(w, "value", f->rule.value);
    else sfti_json_put_null(w, "value");
    sfti_json_put_cstr(w, "compat", f->rule.kohya ? "kohya" : NULL);
    if (f->c->set.clamp_quantile)
        sfti_json_put_cstr(w, "clamp_quantile", f->c->set.clamp_quantile);
}

static sft_code write_recipe(lora_factoring *f, const char *key, const sft_file *file,
                             sft_error *err) {
    sft_sink sink = sft_sink_memory(&f->recipe);
    sft_span before = pair_named(file, key);
    sfti_json_writer w;
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_open(&w, '{');
    sfti_json_put_open(&w, "adapters", '[');
    for (size_t i = 0; i < f->adapter_count; i++) {
        const lora_adapter *adapter = &f->adapters[i];
        sfti_merge_input input = { .set = adapter->set, .strength = adapter->strength,
                                   .name = cli_name_of(adapter->path) };
        f->blame = adapter->path;
        sft_code code = sfti_recipe_adapter(&w, &input, !f->c->set.dry_run, err);
        if (code) return code;
    }
    sfti_json_close(&w, ']');
    sfti_json_put_open(&w, "models", '[');
    for (size_t i = 0; i < 2 && f->models[i]; i++)
        sfti_recipe_model(&w, f->models[i], cli_name_of(f->model_paths[i]));
    sfti_json_close(&w, ']');
    put_rule(f, &w);
    if (before.data) {
        sfti_json_key(&w, "before");
        sfti_json_text(&w, before);
    }
    sfti_json_close(&w, '}');
    return sfti_json_done(&w);
}

/* "8", or "Dynamic" where layers differ, as kohya's scripts write it. */
static const char *common_number(const lora_factoring *f, bool of_rank, char text[32]) {
    double value = 0;
    bool any = false;
    for (size_t i = 0; i < f->count; i++) {
        const lora_layer *layer = &f->layers[i];
        double one = of_rank ? (double)layer->rank : layer->alpha_value;
        if (layer->left_out || layer->conv) continue;
        if (any && (one < value || one > value)) return "Dynamic";
        value = one;
        any = true;
    }
    snprintf(text, 32, "%.9g", value);
    return text;
}

static bool put_pair(lora_factoring *f, sft_pair *pairs, size_t *count, const char *key,
                     const char *value) {
    char *kept = value ? sfti_arena_copy(&f->arena, value, strlen(value)) : NULL;
    if (kept) pairs[(*count)++] = (sft_pair){ sft_span_cstr(key), sft_span_cstr(kept) };
    return kept != NULL;
}

/* Pairs of the inputs but digests and what told of the old ranks; the recipe. */
static sft_code put_metadata(lora_factoring *f, sft_error *err) {
    cli_parts *p = &f->parts;
    char *key = sfti_arena_join(&f->arena, sft_span_cstr("sft_lora_"), sft_span_cstr(f->verb));
    char text[32];
    size_t count = 0;
    if (!key) return sfti_fail_memory(err, 32);
    const sft_file *file = f->keeps_metadata ? sft_set_shard_at(f->adapters[0].set, 0) : NULL;
    size_t old = file ? sft_file_metadata_count(file) : 0;
    sft_code code = write_recipe(f, key, file, err);
    sft_pair *pairs = sfti_arena_array(&f->arena, (uint64_t)old + 6, sizeof *pairs);
    if (!code && !pairs) return sfti_fail_memory(err, old * sizeof *pairs);
    if (code) return code;
    sft_span comment = pair_named(file, "ss_training_comment");
    bool has_dim = pair_named(file, "ss_network_dim").data != NULL;
    for (size_t i = 0; i < old; i++) {
        sft_pair pair = sft_file_metadata_at(file, i);
        unsigned digest = sfti_digest_key_of(pair.key) & SFTI_DIGESTS_OF_DATA;
        f->c->dropped |= digest;
        bool stale = digest || cli_is(pair.key, key) || cli_is(pair.key, CONFIG_KEY)
                  || cli_is(pair.key, "ss_network_dim") || cli_is(pair.key, "ss_network_alpha")
                  || (f->rule.kohya && cli_is(pair.key, "ss_training_comment"));
        if (!stale) pairs[count++] = pair;
    }
    bool fine = !f->is_network
             || put_pair(f, pairs, &count, "ss_network_module", "networks.lora");
    if (has_dim || f->is_network)
        fine = fine && put_pair(f, pairs, &count, "ss_network_dim", common_number(f, true, text))
            && put_pair(f, pairs, &count, "ss_network_alpha", common_number(f, false, text));
    if (file && f->rule.kohya) {
        const char *said = comment.len ? "; " : "";
        char *before = sfti_arena_join(&f->arena, sft_span_cstr("dimension is resized to "),
                                       sft_span_cstr(common_number(f, true, text)));
        char *more = before ? sfti_arena_join(&f->arena, sft_span_cstr(before),
                                              sft_span_cstr(said)) : NULL;
        char *all = more ? sfti_arena_join(&f->arena, sft_span_cstr(more), comment) : NULL;
        fine = fine && put_pair(f, pairs, &count, "ss_training_comment", all);
    }
    if (!fine) return sfti_fail_memory(err, sizeof text);
    pairs[count++] = (sft_pair){ sft_span_cstr(key), { f->recipe.data, f->recipe.len } };
    p->pairs = pairs;
    p->metadata_count = count;
    p->has_metadata = true;
    return SFT_OK;
}

/* ── Results ── */

typedef struct lora_sums {
    size_t written, left_out;
    uint64_t low, high; /* ranks */
    double norm, lost;  /* squares of those that were computed */
    bool computed;
} lora_sums;

static lora_sums sum_layers(const lora_factoring *f) {
    lora_sums sums = { 0, 0, UINT64_MAX, 0, 0, 0, false };
    for (size_t i = 0; i < f->count; i++) {
        const lora_layer *layer = &f->layers[i];
        sums.left_out += layer->left_out;
        if (layer->left_out) continue;
        sums.written++;
        if (layer->rank < sums.low) sums.low = layer->rank;
        if (layer->rank > sums.high) sums.high = layer->rank;
        if (layer->norm < 0) continue;
        sums.computed = true;
        sums.norm += layer->norm * layer->norm;
        sums.lost += layer->lost * layer->lost;
    }
    return sums;
}

static double part_of(double lost, double norm) {
    return norm > 0 ? lost / norm : 0;
}

static void put_layers(void *ctx, sfti_json_writer *w) {
    const lora_factoring *f = ctx;
    lora_sums sums = sum_layers(f);
    sfti_json_put_cstr(w, "verb", f->verb);
    sfti_json_put_uint(w, "modules_written", sums.written);
    sfti_json_put_uint(w, "modules_left_out", sums.left_out);
    if (sums.computed)
        sfti_json_put_double(w, "error", part_of(sfti_root(sums.lost), sfti_root(sums.norm)));
    else sfti_json_put_null(w, "error");
    sfti_json_put_open(w, "modules", '[');
    for (size_t i = 0; i < f->count; i++) {
        const lora_layer *layer = &f->layers[i];
        if (layer->left_out) continue;
        sfti_json_open(w, '{');
        sfti_json_put_text(w, "name", layer->name);
        sfti_json_put_known(w, "rank_before", layer->rank_before ? layer->rank_before : UINT64_MAX);
        sfti_json_put_uint(w, "rank", layer->rank);
        if (layer->alpha) sfti_json_put_double(w, "alpha", layer->alpha_value);
        else sfti_json_put_null(w, "alpha");
        if (layer->norm >= 0) {
            sfti_json_put_double(w, "norm", layer->norm);
            sfti_json_put_double(w, "error", part_of(layer->lost, layer->norm));
        } else {
            sfti_json_put_null(w, "norm");
            sfti_json_put_null(w, "error");
        }
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

static void say_layer(cli *c, const lora_layer *layer) {
    cli_text(&c->out, "  ");
    cli_escaped(&c->out, layer->name);
    if (layer->rank_before)
        cli_printf(&c->out, ": rank %" PRIu64 " to %" PRIu64, layer->rank_before, layer->rank);
    else cli_printf(&c->out, ": rank %" PRIu64, layer->rank);
    if (layer->norm >= 0)
        cli_printf(&c->out, ", error %.2g %%", 100 * part_of(layer->lost, layer->norm));
    cli_text(&c->out, "\n");
}

/* All with -v, else those of the greatest errors. */
static void say_layers(lora_factoring *f) {
    cli *c = f->c;
    lora_sums sums = sum_layers(f);
    if (cli_is_json(c)) return;
    cli_printf(&c->out, "%zu module%s", sums.written, sums.written == 1 ? "" : "s");
    if (sums.low < sums.high)
        cli_printf(&c->out, ", rank %" PRIu64 " to %" PRIu64, sums.low, sums.high);
    else if (sums.written) cli_printf(&c->out, ", rank %" PRIu64, sums.low);
    if (sums.computed)
        cli_printf(&c->out, ", error %.2g %% of the whole",
                   100 * part_of(sfti_root(sums.lost), sfti_root(sums.norm)));
    if (sums.left_out) cli_printf(&c->out, "; %zu without a change left out", sums.left_out);
    cli_text(&c->out, "\n");
    if (c->set.verbose) {
        for (size_t i = 0; i < f->count; i++)
            if (!f->layers[i].left_out) say_layer(c, &f->layers[i]);
        return;
    }
    double before = 2;
    size_t last = SIZE_MAX;
    for (size_t n = 0; sums.computed && sums.lost > 0 && n < WORST_MOST; n++) {
        size_t worst = SIZE_MAX;
        double most = -1;
        for (size_t i = 0; i < f->count; i++) {
            const lora_layer *layer = &f->layers[i];
            double one = part_of(layer->lost, layer->norm);
            bool later = one < before || (!(one > before) && last != SIZE_MAX && i > last);
            if (layer->left_out || layer->norm < 0 || !later || !(one > most)) continue;
            worst = i;
            most = one;
        }
        if (worst == SIZE_MAX || !(most > 1e-6)) break;
        say_layer(c, &f->layers[worst]);
        before = most;
        last = worst;
    }
}

sft_code lora_write(lora_factoring *f, cli_output *out, sft_error *err) {
    cli *c = f->c;
    sft_code code = SFT_OK;
    if (f->fd >= 0) code = sft_source_fd(f->fd, &c->alloc, &f->source, err);
    else f->source = sft_source_memory(f->memory.data, f->memory.len);
    if (!code) code = put_metadata(f, err);
    if (!code) code = list_parts(f, err);
    if (code) return code;
    f->blame = out->path;
    f->parts.untold = true;
    code = cli_output_parts(out, c, &f->parts, err);
    if (code) return code;
    cli_say_parts(c, &f->parts, out->path,
                  (cli_written){ .input = f->input, .dtype = SFT_DTYPE_COUNT, .more = put_layers,
                                 .ctx = f });
    say_layers(f);
    return SFT_OK;
}
