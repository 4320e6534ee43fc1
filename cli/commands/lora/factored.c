/* Factors of another rank: options, layers, the threads that compute them. Tests:
 * tests/adapter/factors.py, tests/cli/lora/factors. */
#include "commands/lora/factored.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/number.h"
#include "commands/lora/spool.h"
#include "os/os.h"
#include "os/workers.h"
#include "safetensors_cast.h"
#include "support/files.h"
#include "support/hash.h"
#include "support/hints.h"
#include "support/values.h"
#include "support/words.h"

#include <stdlib.h>
#include <string.h>

#define RANK_LIMIT UINT64_C(65536)
#define RULE_MOST 128 /* where a rule has no --rank, of what has no rank of its own */

/* ── Options ── */

sft_code lora_number(const char *text, const char *option, double *out, sft_error *err) {
    char *end = NULL;
    bool plain = strspn(text, "0123456789.") > 0 && text[strspn(text, "0123456789.eE+-")] == '\0';
    *out = plain ? strtod(text, &end) : 0;
    if (plain && !*end && *out > 0 && *out - *out == 0) return SFT_OK;
    return cli_usage_hint(err, CLI_HINT_HELP_LORA, "expected a positive number for --%s, found "
                          "\"%s\"", option, text);
}

static sft_code read_rank(const char *text, const char *option, uint64_t *out, sft_error *err) {
    if (cli_parse_number(text, RANK_LIMIT, out) && *out > 0) return SFT_OK;
    return cli_usage_hint(err, CLI_HINT_HELP_LORA, "expected a rank from 1 to 65536 for --%s, "
                          "found \"%s\"", option, text);
}

sft_code lora_factoring_begin(lora_factoring *f, cli *c, const char *verb, bool needs,
                              sft_error *err) {
    const cli_settings *set = &c->set;
    const struct { const char *option, *text; sfti_rank_by by; double most; } rules[] = {
        { "sv-ratio", set->sv_ratio, SFTI_RANK_RATIO, 1e30 },
        { "sv-fro", set->sv_fro, SFTI_RANK_FRO, 1 },
        { "sv-cumulative", set->sv_cumulative, SFTI_RANK_CUMULATIVE, 1 },
        { "error", set->error, SFTI_RANK_ERROR, 1 },
    };
    sft_code code = SFT_OK;
    *f = (lora_factoring){ .c = c, .verb = verb, .fd = -1 };
    f->arena.alloc = c->alloc;
    f->memory.alloc = f->recipe.alloc = f->texts.alloc = c->alloc;
    f->rule.kohya = set->compat != 0;
    if (set->rank && strcmp(set->rank, "exact") == 0) f->exact = true;
    else if (set->rank) code = read_rank(set->rank, "rank", &f->rule.most, err);
    if (!code && set->conv_rank)
        code = read_rank(set->conv_rank, "conv-rank", &f->rule.most_conv, err);
    for (size_t i = 0; !code && i < SFTI_COUNT(rules); i++) {
        if (!rules[i].text) continue;
        if (f->rule.by != SFTI_RANK_ALL || f->exact)
            return cli_usage_hint(err, CLI_HINT_HELP_LORA, "expected one rule for the rank, found "
                                  "two");
        f->rule.by = rules[i].by;
        code = lora_number(rules[i].text, rules[i].option, &f->rule.value, err);
        if (!code && f->rule.value > rules[i].most)
            code = cli_usage_hint(err, CLI_HINT_HELP_LORA, "expected a number up to 1 for --%s, "
                                  "found \"%s\"", rules[i].option, rules[i].text);
    }
    f->has_rule = f->exact || f->rule.most || f->rule.most_conv || f->rule.by != SFTI_RANK_ALL;
    if (!code && needs && !f->has_rule)
        code = cli_usage_hint(err, CLI_HINT_HELP_LORA, "expected --rank, --sv-ratio, --sv-fro, "
                              "--sv-cumulative or --error, found none");
    return code;
}

void lora_factoring_end(lora_factoring *f) {
    lora_spool_close(f);
    sft_buffer_free(&f->recipe);
    sft_buffer_free(&f->texts);
    for (size_t i = 0; f->adapters && i < f->adapter_count; i++) lora_close(&f->adapters[i]);
    cli_parts_free(&f->parts);
    sfti_arena_free(&f->arena);
}

void lora_factoring_finish(lora_factoring *f, sft_code code, sft_error *err) {
    const char *unread = atomic_load(&f->parts.unread);
    if (code == SFT_BAD_ARGUMENT && !f->blame) cli_fail_usage(f->c, err);
    else if (code) lora_fail(f->c, unread ? unread : f->blame, err);
    lora_factoring_end(f);
}

/* ── Layers ── */

lora_layer *lora_layer_add(lora_factoring *f) {
    lora_layer *grown = sfti_arena_grow(&f->arena, f->layers, f->count, 1, &f->capacity,
                                        sizeof *grown);
    if (!grown) return NULL;
    f->layers = grown;
    grown[f->count] = (lora_layer){ .dtype = SFT_F32, .alpha_dtype = SFT_F32, .scale = 1 };
    return &grown[f->count++];
}

bool lora_keep(lora_factoring *f, sft_part part) {
    sft_part *grown = sfti_arena_grow(&f->arena, f->kept, f->kept_count, 1,
                                      &f->kept_capacity, sizeof *grown);
    if (!grown) return false;
    f->kept = grown;
    grown[f->kept_count++] = part;
    return true;
}

sft_dtype lora_dtype(const lora_factoring *f, sft_dtype of) {
    sft_dtype asked;
    if (f->c->set.dtype && !cli_dtype_read(sft_span_cstr(f->c->set.dtype), &asked, NULL))
        return asked;
    if (of == SFT_F32 || of == SFT_F16 || of == SFT_BF16) return of;
    return of == SFT_F64 ? SFT_F32 : SFT_BF16;
}

static const char *copy(lora_factoring *f, sft_span text) {
    return sfti_arena_copy(&f->arena, text.data, text.len);
}

sft_code lora_layer_like(lora_factoring *f, lora_layer *layer, const sfti_lora *lora,
                         const sfti_lora_module *m, sft_error *err) {
    const sft_tensor *up = sfti_lora_tensor(lora, m, SFTI_SLOT_UP);
    const sft_tensor *down = sfti_lora_tensor(lora, m, SFTI_SLOT_DOWN);
    const sft_tensor *mid = sfti_lora_tensor(lora, m, SFTI_SLOT_MID);
    const sft_tensor *alpha = sfti_lora_tensor(lora, m, SFTI_SLOT_ALPHA);
    const sft_tensor *kernel = m->tucker ? mid : down; /* [rank, in, kernel...] */
    layer->name = m->name;
    layer->up = copy(f, up->name);
    layer->down = copy(f, down->name);
    layer->alpha = alpha ? copy(f, alpha->name) : NULL;
    if (!layer->up || !layer->down || (alpha && !layer->alpha))
        return sfti_fail_memory(err, up->name.len + down->name.len);
    layer->turned = sfti_ends(up->name, ".lora_embedding_A")
                 || sfti_ends(up->name, ".lora_embedding_B");
    layer->up_dims = up->rank > 2 ? up->rank : 2;
    layer->down_dims = kernel->rank;
    if (layer->up_dims > LORA_DIMS || layer->down_dims > LORA_DIMS || layer->down_dims < 2)
        return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, up->offset, up->name,
                                "expected factors of 2 to %d dimensions, found others", LORA_DIMS);
    for (uint32_t i = 0; i < layer->up_dims; i++) layer->up_shape[i] = 1;
    layer->up_shape[layer->turned ? 1 : 0] = m->out;
    for (uint32_t i = 0; i < layer->down_dims; i++) layer->down_shape[i] = kernel->shape[i];
    if (!layer->turned) layer->down_shape[1] = down->shape[1];
    layer->conv = m->kernel > 1;
    layer->scale = m->scale;
    layer->rank_before = m->rank;
    layer->dtype = lora_dtype(f, up->dtype);
    if (alpha && (alpha->dtype == SFT_F16 || alpha->dtype == SFT_BF16))
        layer->alpha_dtype = alpha->dtype;
    return SFT_OK;
}

bool lora_layer_named(lora_factoring *f, lora_layer *layer, sft_span name, bool peft, uint64_t out,
                      uint64_t in, const uint64_t *kernel, uint32_t dims) {
    sfti_arena *arena = &f->arena;
    layer->name = name;
    layer->up = sfti_arena_join(arena, name,
                                sft_span_cstr(peft ? ".lora_B.weight" : ".lora_up.weight"));
    layer->down = sfti_arena_join(arena, name,
                                  sft_span_cstr(peft ? ".lora_A.weight" : ".lora_down.weight"));
    layer->alpha = peft ? NULL : sfti_arena_join(arena, name, sft_span_cstr(".alpha"));
    if (dims > LORA_DIMS - 2) dims = 0;
    layer->up_dims = layer->down_dims = 2 + dims;
    layer->up_shape[0] = out;
    layer->down_shape[1] = in;
    for (uint32_t i = 0; i < dims; i++) {
        layer->up_shape[2 + i] = 1;
        layer->down_shape[2 + i] = kernel[i];
        if (kernel[i] > 1) layer->conv = true;
    }
    return layer->up && layer->down && (peft || layer->alpha);
}

/* ── Models ── */

sft_code lora_scales(const lora_factoring *f, const sft_set *model, sft_conversion **out,
                     sft_error *err) {
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    options.alloc = &f->c->alloc;
    return sft_conversion_new(model, SFT_F32, &options, out, err);
}

bool lora_readable(const sft_set *model, const sft_conversion *scales, size_t i) {
    static const sft_dtype floats[] = { SFT_F64, SFT_F32, SFT_F16, SFT_BF16, SFT_F8_E4M3,
                                        SFT_F8_E5M2 };
    sft_convert_action action = sft_conversion_action(scales, i, NULL);
    if (action == SFT_CONVERT_SCALED || action == SFT_CONVERT_SCALE) return false;
    for (size_t k = 0; k < SFTI_COUNT(floats); k++)
        if (sft_set_tensor_at(model, i)->dtype == floats[k]) return true;
    return false;
}

sft_code lora_not_readable(const sft_tensor *tensor, sft_error *err) {
    (void)cli_fail_hint(err, SFT_CAST_DTYPE, CLI_HINT_DEQUANTIZE,
                        "expected a tensor of floats without a scale, found a quantised one");
    if (err) sfti_error_tensor(err, tensor->name);
    return SFT_CAST_DTYPE;
}

/* Without alphas of its own, a file of PEFT's name beside PEFT's configuration gets its alpha. */
static sft_code check_beside(const lora_factoring *f, const cli_output *out, sft_error *err) {
    sfti_arena arena = { .alloc = f->c->alloc };
    sft_span name = cli_name_of(out->path);
    bool any = false, there = false;
    os_info info;
    for (size_t i = 0; i < f->count; i++) any = any || !f->layers[i].alpha;
    if (out->stream || !any || !sfti_begins(name, "adapter_model")) return SFT_OK;
    char *path = cli_join_path(&arena, cli_folder_of(out->path), "adapter_config.json");
    if (path) there = sfti_os_info_path(path, true, &info) == 0;
    sfti_arena_free(&arena);
    if (!there) return SFT_OK;
    return sfti_fail(err, SFT_BAD_ARGUMENT, "expected no adapter_config.json beside a new file of "
                     "this name, which would be read with its alpha, found one");
}

/* ── Computing ── */

/* Into the dtype, times a factor; false if it cannot hold a value. */
static bool store(float *values, uint64_t count, double factor, sft_dtype dtype, void *bytes,
                  sft_error *err) {
    float most = 0, told = 0;
    uint8_t code_of[4];
    for (uint64_t i = 0; i < count; i++) {
        values[i] = (float)((double)values[i] * factor);
        float size = values[i] < 0 ? -values[i] : values[i];
        if (!(size <= most)) most = size; /* NaN too */
    }
    if (!(most - most <= 0)) return false;
    sfti_floats_turn(&most, 1);
    if (sft_cast(SFT_F32, &most, dtype, code_of, 1, NULL, NULL, err)
        || sft_cast(dtype, code_of, SFT_F32, &told, 1, NULL, NULL, err))
        return false;
    sfti_floats_turn(&told, 1);
    sfti_floats_turn(values, count);
    return told - told <= 0
        && !sft_cast(SFT_F32, values, dtype, bytes, count, NULL, NULL, err);
}

static void turn(const sfti_matrix *m, float *into) {
    for (uint64_t i = 0; i < m->rows; i++)
        for (uint64_t j = 0; j < m->cols; j++) into[j * m->rows + i] = m->at[i * m->cols + j];
}

/* Alpha so that alpha / rank is the scale; what its dtype cannot hold goes into the up matrix. */
static double settle_alpha(lora_layer *layer, void *bytes, sft_error *err) {
    double scale = layer->scale, wanted = scale * (double)layer->rank;
    float value = (float)wanted;
    if (!layer->alpha) return scale;
    sfti_floats_turn(&value, 1);
    if (sft_cast(SFT_F32, &value, layer->alpha_dtype, bytes, 1, NULL, NULL, err)
        || sft_cast(layer->alpha_dtype, bytes, SFT_F32, &value, 1, NULL, NULL, err))
        return scale;
    sfti_floats_turn(&value, 1);
    layer->alpha_value = (double)value;
    bool none = !(wanted < 0) && !(wanted > 0);
    return none ? 1 : wanted / layer->alpha_value;
}

/* Whether the dimensions but that of the rank make up so many rows, or columns. */
static bool holds(const uint64_t *shape, uint32_t dims, uint32_t rank_at, uint64_t count) {
    uint64_t all = 1;
    for (uint32_t k = 0; k < dims; k++)
        if (k != rank_at && !sfti_mul(all, shape[k], &all)) return false;
    return all == count;
}

static sft_code store_layer(lora_factoring *f, sfti_workers *w, lora_layer *layer,
                            sfti_lowrank *found, sfti_arena *arena, sft_error *err) {
    uint64_t ups = found->up.rows * found->up.cols, downs = found->down.rows * found->down.cols;
    uint64_t width = sft_dtype_describe(layer->dtype)->bits / 8, size = 4 + (ups + downs) * width;
    if (!holds(layer->up_shape, layer->up_dims, layer->turned ? 0 : 1, found->up.rows)
        || !holds(layer->down_shape, layer->down_dims, layer->turned ? 1 : 0, found->down.cols))
        return sfti_fail_tensor(err, SFT_SIZE_MISMATCH, SFT_NO_OFFSET, layer->name,
                                "expected factors of 2 to %d dimensions, found others", LORA_DIMS);
    uint8_t *bytes = sfti_arena_array(arena, size, 1);
    if (!bytes) return sfti_fail_memory(err, size);
    memset(bytes, 0, 4); /* its alpha */
    layer->rank = found->up.cols;
    double size_of_scale = layer->scale < 0 ? -layer->scale : layer->scale;
    layer->norm = found->spectrum.count ? found->spectrum.norm * size_of_scale : -1;
    layer->lost = found->lost * size_of_scale;
    double factor = settle_alpha(layer, bytes, err);
    if (layer->turned) {
        float *other = sfti_arena_array(arena, ups + downs, sizeof *other);
        if (!other) return sfti_fail_memory(err, (ups + downs) * sizeof *other);
        turn(&found->up, other);
        turn(&found->down, other + ups);
        found->up.at = other, found->down.at = other + ups;
    }
    if (!store(found->up.at, ups, factor, layer->dtype, bytes + 4, err)
        || !store(found->down.at, downs, 1, layer->dtype, bytes + 4 + ups * width, err))
        return sfti_fail_tensor(err, SFT_CAST_VALUE, SFT_NO_OFFSET, layer->name,
                                "expected factors that %s can hold, found larger ones: --dtype "
                                "BF16 or F32", sft_dtype_describe(layer->dtype)->name);
    sfti_workers_lock(w);
    layer->begin = f->size;
    f->size += size;
    sft_code code = lora_spool_put(f, layer->begin, bytes, size, err);
    sfti_workers_unlock(w);
    return code;
}

static bool step(sfti_workers *w, size_t thread, uint64_t *done, sft_error *err) {
    lora_factoring *f = w->ctx;
    sfti_arena arena = { .alloc = f->c->alloc };
    sfti_lowrank found;
    (void)thread;
    sfti_workers_lock(w);
    lora_layer *layer = f->next < f->count && !w->error.code ? &f->layers[f->next++] : NULL;
    sfti_workers_unlock(w);
    if (!layer) return false;
    memset(&found, 0, sizeof found);
    sfti_rank_rule rule = f->rule;
    if (layer->conv && rule.most_conv) rule.most = rule.most_conv;
    if (f->exact) {
        rule.by = SFTI_RANK_ERROR;
        rule.value = 1e-6;
    } else if (!rule.most && !layer->rank_before) {
        rule.most = RULE_MOST;
    }
    err->code = f->compute(f, layer, f->has_rule ? &rule : NULL, &arena, &found, err);
    if (err->code == SFT_CAST_VALUE && !err->message[0])
        err->code = sfti_fail_tensor(err, SFT_CAST_VALUE, SFT_NO_OFFSET, layer->name, "not exact");
    if (!err->code && !layer->left_out)
        err->code = store_layer(f, w, layer, &found, &arena, err);
    if (err->code && err->tensor_len == SFT_NO_TENSOR) sfti_error_tensor(err, layer->name);
    *done = layer->up_shape[0] * layer->down_shape[1];
    sfti_arena_free(&arena);
    return true;
}

sft_code lora_factor(lora_factoring *f, sft_error *err) {
    cli *c = f->c;
    cli_output out;
    cli_progress progress;
    sfti_workers w = { .step = step, .ctx = f };
    uint32_t threads;
    sft_dtype dtype = SFT_F32;
    const char *of = f->blame;
    f->blame = NULL;
    sft_code code = c->set.dtype ? cli_dtype_read(sft_span_cstr(c->set.dtype), &dtype, err)
                                 : SFT_OK;
    if (!code && dtype != SFT_F32 && dtype != SFT_F16 && dtype != SFT_BF16)
        code = cli_usage_error(err, "expected F32, F16 or BF16 for --dtype, found %s",
                               c->set.dtype);
    if (code) return code;
    f->blame = of;
    code = cli_output_begin(&out, c, f->input, CLI_TARGET_NEW, err);
    if (code) f->blame = out.blame;
    if (!code) code = cli_output_sources(c, &f->parts, &out, err);
    if (!code && (code = check_beside(f, &out, err)) != SFT_OK) f->blame = out.path;
    if (code) return code;
    if (!cli_parse_threads(c, &threads)) return SFT_OK;
    if (!c->set.dry_run) lora_spool_open(f, out.stream ? NULL : out.path);
    sft_job job = cli_progress_begin(&progress, c, out.path);
    job.threads = threads;
    w.job = &job;
    for (size_t i = 0; i < f->count; i++)
        w.total += f->layers[i].up_shape[0] * f->layers[i].down_shape[1];
    code = sfti_workers_run(&w, sfti_workers_count(&job, SFTI_WORKERS_MOST, f->count), err);
    cli_progress_end(&progress);
    bool any = f->kept_count > 0;
    for (size_t i = 0; i < f->count; i++) any = any || !f->layers[i].left_out;
    if (!code && !any)
        code = sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected layers with a change, found none "
                         "among %zu", f->count);
    if (!code) code = lora_write(f, &out, err);
    return code;
}
