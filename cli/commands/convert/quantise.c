/* convert --quantize: which matrices are quantised, and what is told of it. Tests:
 * tests/cli/convert, tests/quant. */
#include "base/number.h"
#include "base/order.h"
#include "commands/convert/convert.h"
#include "convert/quantise.h"
#include "formats/parts/blocks.h"
#include "safetensors_info.h"
#include "support/hints.h"
#include "support/records.h"

#include <inttypes.h>
#include <string.h>

#define WORST 10
#define LEAST_VALUES 4096 /* of a matrix that is worth it */
#define LEAST_SIDE 32

typedef struct quantise_run {
    convert_run *run;
    const sfti_quant_target *target;
    sfti_quantising *plan;
    sft_info *info;
    sft_span architecture;
    size_t only;      /* tensors that --only names */
    size_t named;     /* tensors that --spare names */
    uint32_t *order;  /* of tensors that are quantised, worst first */
    size_t count;
    double *errors;   /* of all tensors of the model */
    double error;     /* of all that are quantised together */
} quantise_run;

/* ── Which ── */

/* Parts of a checkpoint that hold no layers of its denoiser. */
static const char *const other_parts[] = {
    "first_stage_model.", "vae.", "audio_vae.", "vocoder.", "cond_stage_model.", "conditioner.",
    "text_encoder.", "text_encoder_2.", "text_encoder_3.", "text_encoders.", "model_ema.",
    "image_encoder.", "clip_vision.",
};

/* sfti_quantise_options.spares */
static const char *why_spared(void *ctx, size_t i, const sft_spec *values) {
    quantise_run *q = ctx;
    const cli_settings *set = &q->run->c->set;
    sft_span name = values->name, pattern;
    bool only = set->only.count > 0 && cli_matches_any(&set->only, name);
    (void)i;
    bool named = cli_matches_any(&set->spare, name);
    q->only += only;
    q->named += named;
    if (values->rank != 2 || name.len < 8 || memcmp(name.data + name.len - 7, ".weight", 7) != 0)
        return only ? "no matrix of a layer" : "";
    if (set->only.count > 0 && !only) return "not of --only";
    if (named) return "--spare";
    if (only) return NULL;
    for (size_t k = 0; k < sizeof other_parts / sizeof *other_parts; k++) {
        size_t len = strlen(other_parts[k]);
        if (name.len > len && memcmp(name.data, other_parts[k], len) == 0)
            return "of a VAE, a text encoder or another part";
    }
    if (sfti_spared(cli_records(), q->architecture, name, &pattern)) return "by a record";
    if (values->shape[0] < LEAST_SIDE || values->shape[1] < LEAST_SIDE
        || values->shape[0] * values->shape[1] < LEAST_VALUES)
        return "small";
    return NULL;
}

/* What is known of the model. An adapter is refused. */
static sft_code look_at_model(quantise_run *q, sft_error *err) {
    const cli *c = q->run->c;
    sft_info_options options = SFT_INFO_OPTIONS_INIT;
    sft_span kind = { "", 0 };
    options.header_only = true;
    options.alloc = &c->alloc;
    options.records = c->records;
    sft_code code = sft_info_open(q->run->parts.sets[0], NULL, NULL, &options, &q->info, err);
    if (code) return code;
    (void)sft_info_fact(q->info, SFT_FACT_KIND, &kind, NULL, NULL);
    (void)sft_info_fact(q->info, SFT_FACT_ARCHITECTURE, &q->architecture, NULL, NULL);
    if (c->set.architecture) {
        const sfti_record *asked = sfti_record_find(cli_records(), SFTI_MODEL,
                                                    sft_span_cstr(c->set.architecture));
        if (!asked)
            return cli_usage_error(err, "expected an architecture of the records for "
                                   "--architecture, found \"%s\"", c->set.architecture);
        q->architecture = sft_span_cstr(asked->id);
    }
    bool adapter = sft_span_equal(kind, sft_span_cstr("adapter"))
                || sft_span_equal(kind, sft_span_cstr("control_lora"));
    if (!adapter || c->set.lossy) return SFT_OK;
    sfti_fail(err, SFT_CAST_DTYPE,
              "expected a model, found an adapter: the product of its matrices multiplies their "
              "errors, and no program loads a quantised one");
    cli_hint(err, CLI_HINT_QUANTIZE_LOSSY);
    return SFT_CAST_DTYPE;
}

/* Matrices of another format whose bytes are codes: blocks of GGUF, quantised ones of PyTorch. */
static sft_code refuse_codes(const sft_import *import, sft_error *err) {
    const char *own = sft_import_format_of(import) == SFT_IMPORT_GGUF ? NULL : SFTI_NOTE_VALUES;
    for (size_t i = 0; i < sft_import_tensor_count(import); i++) {
        const char *note = sft_import_note(import, i);
        sft_part part = sft_import_part(import, i);
        if (!note || part.spec.rank < 2) continue;
        if (own ? strcmp(note, own) != 0 : strcmp(note, "big-endian") == 0) continue;
        sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, part.spec.name,
                         "expected a model that is not quantised, found %s", note);
        cli_hint(err, CLI_HINT_FROM_QUANTISED);
        return SFT_CAST_DTYPE;
    }
    return SFT_OK;
}

/* ── What is told ── */

static int compare_errors(const void *ctx, uint32_t a, uint32_t b) {
    const quantise_run *q = ctx;
    return (q->errors[a] < q->errors[b]) - (q->errors[a] > q->errors[b]);
}

static sft_code sum_errors(quantise_run *q, sft_error *err) {
    const sft_set *set = q->run->parts.sets[0];
    sfti_arena *arena = &q->run->parts.arena;
    size_t count = sft_set_tensor_count(set);
    double errors = 0, powers = 0;
    q->errors = sfti_arena_array(arena, count, sizeof *q->errors);
    if (!q->errors) return sfti_fail_memory(err, count * sizeof *q->errors);
    for (size_t i = 0; i < count; i++) {
        double error, power;
        sfti_quantising_squares(q->plan, i, &error, &power);
        q->errors[i] = power > 0 ? sfti_root(error / power) : 0;
        errors += error;
        powers += power;
    }
    q->error = powers > 0 ? sfti_root(errors / powers) : 0;
    q->order = sfti_arena_sorted(arena, count, compare_errors, q);
    if (!q->order) return sfti_fail_memory(err, count * sizeof *q->order);
    for (size_t i = 0; i < count; i++) {
        const char *why;
        if (sfti_quantising_action(q->plan, q->order[i], &why) == SFTI_QUANTISE_CODES)
            q->order[q->count++] = q->order[i];
    }
    return SFT_OK;
}

/* The next tensor that is spared and worth telling. */
static bool next_spared(const quantise_run *q, size_t *i, const char **why) {
    size_t count = sft_set_tensor_count(q->run->parts.sets[0]);
    for (; *i < count; ++*i)
        if (sfti_quantising_action(q->plan, *i, why) != SFTI_QUANTISE_CODES && *why && **why)
            return true;
    return false;
}

static void put_quantised(void *ctx, sfti_json_writer *w) {
    const quantise_run *q = ctx;
    const sft_set *set = q->run->parts.sets[0];
    const char *why;
    sft_span config = sfti_quantising_config(q->plan);
    sfti_json_put_uint(w, "bytes_before", sfti_quantising_before(q->plan));
    sfti_json_put_open(w, "quantised", '{');
    sfti_json_put_text(w, "format", sfti_quant_target_format(q->target));
    sfti_json_put_text(w, "layout", sfti_quant_target_layout(q->target));
    sfti_json_put_text(w, "scale", sfti_quant_target_scale(q->target));
    sfti_json_put_double(w, "error", q->error);
    sfti_json_put_open(w, "tensors", '[');
    for (size_t k = 0; k < q->count; k++) {
        sfti_json_open(w, '{');
        sfti_json_put_text(w, "name", sft_set_tensor_at(set, q->order[k])->name);
        sfti_json_put_double(w, "error", q->errors[q->order[k]]);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    sfti_json_put_open(w, "spared", '[');
    for (size_t i = 0; next_spared(q, &i, &why); i++) {
        sfti_json_open(w, '{');
        sfti_json_put_text(w, "name", sft_set_tensor_at(set, i)->name);
        sfti_json_put_cstr(w, "why", why);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    sfti_json_key(w, "quantization_config");
    if (config.len) sfti_json_raw(w, config);
    else sfti_json_null(w);
    sfti_json_close(w, '}');
    if (q->run->c->import) cli_put_import(q->run->c, w, q->run->input, q->run->c->import);
}

static void print_quantised(const quantise_run *q) {
    cli_out *out = &q->run->c->out;
    const sft_set *set = q->run->parts.sets[0];
    sft_span config = sfti_quantising_config(q->plan);
    char before[CLI_NUMBER_SIZE], after[CLI_NUMBER_SIZE];
    const char *why;
    cli_printf(out, "%zu matri%s %squantised to ", q->count, q->count == 1 ? "x" : "ces",
               q->run->c->set.dry_run ? "would be " : "");
    cli_fill(out, "% for %, a scale for each %", sfti_quant_target_format(q->target),
             sfti_quant_target_layout(q->target), sfti_quant_target_scale(q->target));
    cli_printf(out, ": %s instead of %s%s, error %.3g %%\n",
               cli_size_text(sfti_quantising_after(q->plan), after),
               cli_size_text(sfti_quantising_before(q->plan), before),
               q->run->c->import ? " of values" : "", q->error * 100);
    for (size_t k = 0; k < q->count && k < WORST; k++) {
        cli_printf(out, "  %s%.3g %%  ", k == 0 ? "worst: " : "       ",
                   q->errors[q->order[k]] * 100);
        cli_escaped(out, sft_set_tensor_at(set, q->order[k])->name);
        cli_text(out, "\n");
    }
    for (size_t i = 0; next_spared(q, &i, &why); i++) {
        cli_text(out, "  spared: ");
        cli_escaped(out, sft_set_tensor_at(set, i)->name);
        cli_printf(out, " (%s)\n", why);
    }
    if (config.len == 0) return;
    cli_text(out, "for config.json: {\"quantization_config\":");
    cli_put(out, config.data, config.len);
    cli_text(out, "}\n");
}

/* About files beside OUT by which it cannot be read, other than by what it declares itself: their
 * quantization_config is of another model, or of what this one was. */
static void warn_of_configs(const quantise_run *q, const char *output) {
    cli *c = q->run->c;
    sft_set_options options = cli_set_options(c);
    sft_convert_options how = SFT_CONVERT_OPTIONS_INIT;
    sft_conversion *read = NULL;
    sft_set *set;
    how.dequantize = true;
    how.files = c->open.files;
    how.alloc = &c->alloc;
    if (sft_set_open(output, &options, &set, NULL)) return;
    sft_code code = sft_conversion_new(set, SFT_F32, &how, &read, NULL);
    sft_conversion_free(read);
    sft_set_close(set);
    if (code != SFT_CAST_DTYPE) return;
    cli_flush(&c->out);
    cli_text(&c->err, "safetensors: ");
    cli_path(&c->err, output,
             ": a quantization_config of config.json or the like beside it declares another "
             "quantisation, so that programs refuse or misread it: ");
    cli_printf(&c->err, "%s there\n", sfti_quantising_config(q->plan).len
                                        ? "put this model's in its place" : "take that out");
    cli_flush(&c->err);
}

static sft_code say_quantised(quantise_run *q, const char *output, uint32_t shards,
                              sft_error *err) {
    convert_run *run = q->run;
    cli *c = run->c;
    cli_parts *p = &run->parts;
    cli_written written = { .input = run->input, .dtype = SFT_DTYPE_COUNT,
                            .more = put_quantised, .ctx = q };
    sft_code code = sum_errors(q, err);
    if (code) return code;
    if (shards > 0) {
        char stem[CLI_STEM_SIZE];
        code = cli_say_shards(c, p, shards, cli_index_stem(sft_set_index_path(p->sets[0]), stem),
                              written, err);
    } else {
        cli_say_parts(c, p, output, written);
    }
    if (!code && !cli_is_json(c)) print_quantised(q);
    if (!code && !c->set.dry_run) warn_of_configs(q, output);
    return code;
}

/* ── All ── */

static sft_code plan_parts(quantise_run *q, sft_error *err) {
    convert_run *run = q->run;
    cli *c = run->c;
    cli_parts *p = &run->parts;
    const uint32_t *shard;
    sfti_quantise_options options = { .target = q->target, .spares = why_spared, .ctx = q,
                                      .from_quantised = c->set.from_quantised != 0,
                                      .computed = run->computed,
                                      .shard_of = run->shard_of,
                                      .files = c->open.files, .alloc = &c->alloc };
    sft_code code = sfti_quantising_new(p->sets[0], &options, &q->plan, err);
    if (code) return code;
    cli_parts_drop(p);
    const sft_part *parts = sfti_quantising_parts(q->plan, &p->count, &shard);
    p->parts = sfti_arena_array(&p->lists, p->count, sizeof *p->parts);
    p->shard = sfti_arena_array(&p->lists, p->count, sizeof *p->shard);
    p->file = p->shard;
    if (!p->parts || !p->shard) return sfti_fail_memory(err, p->count * sizeof *p->parts);
    for (size_t i = 0; i < p->count; i++) {
        p->parts[i] = parts[i];
        p->shard[i] = shard[i];
    }
    if (run->shard_of) { /* the import is one file itself */
        p->file = sfti_arena_array(&p->lists, p->count, sizeof *p->file);
        if (!p->file) return sfti_fail_memory(err, p->count * sizeof *p->file);
        memset(p->file, 0, p->count * sizeof *p->file);
    }
    p->pairs = sfti_quantising_pairs(q->plan, &p->metadata_count);
    p->has_metadata = p->has_metadata || p->metadata_count > 0;
    p->changed = p->untold = true;
    if (c->set.only.count > 0 && q->only == 0)
        return sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                         "expected tensors that match --only, found none");
    if (c->set.spare.count > 0 && q->named == 0)
        return sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                         "expected tensors that match --spare, found none");
    size_t made = 0, stays = 0;
    const char *why, *first = NULL;
    sft_span name = { "", 0 };
    for (size_t i = 0; i < sft_set_tensor_count(p->sets[0]); i++) {
        const sft_tensor *tensor = sft_set_tensor_at(p->sets[0], i);
        made += sfti_quantising_action(q->plan, i, &why) == SFTI_QUANTISE_CODES;
        if (!why || tensor->rank != 2 || stays++) continue;
        first = why;
        name = tensor->name;
    }
    if (made == 0 && first)
        return sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected matrices of layers to quantise, "
                         "found none of %zu: \"%.*s\" stays: %s", stays,
                         SFTI_CLIP(name, 100), *first ? first : "its name does not end in .weight");
    if (made == 0)
        return sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                         "expected matrices of layers to quantise, found none");
    c->dropped = sfti_quantising_dropped(q->plan);
    return SFT_OK;
}

static sft_code write_parts(quantise_run *q, sft_error *err) {
    convert_run *run = q->run;
    cli *c = run->c;
    cli_parts *p = &run->parts;
    cli_output out;
    uint32_t shards = 0;
    sft_code code = SFT_OK;
    if (run->into_folder) {
        if (!cli_renumber(&p->arena, p->shard, p->count, convert_shard_count(run), &shards))
            return sfti_fail_memory(err, p->count);
    } else {
        code = cli_output_begin(&out, c, run->input, CLI_TARGET_EITHER, err);
        if (!code) code = cli_output_sources(c, p, &out, err);
        if (code) p->path = out.blame;
    }
    if (!code && c->set.dry_run) {
        cli_progress progress;
        sft_job job = cli_progress_begin(&progress, c, run->input);
        code = sfti_quantising_try(q->plan, &job, err);
        cli_progress_end(&progress);
    }
    if (code) return code;
    const char *output = shards > 0 ? c->set.output : out.path;
    code = shards > 0 ? cli_output_set(c, p, shards, err) : cli_output_parts(&out, c, p, err);
    if (!code) return say_quantised(q, output, shards, err);
    if (cli_output_failed(code)) p->path = output;
    return code;
}

bool convert_quantise_asked(convert_run *run, bool exports, sft_error *err) {
    const cli_settings *set = &run->c->set;
    const char *alone = set->layout ? "--layout" : set->scale ? "--scale"
                      : set->only.count ? "--only" : set->spare.count ? "--spare"
                      : set->from_quantised ? "--from-quantised" : NULL;
    const char *other = run->casts ? "--dtype or --dequantize"
                      : cli_is_matching(set) ? "--match or --exclude instead of --only or --spare"
                      : set->saturate ? "--saturate" : set->cast_scaled ? "--cast-scaled"
                      : exports ? "an OUT of another format" : NULL;
    if (!set->quantize && !alone) return true;
    if (!set->quantize && set->layout)
        return cli_usage_error(err, "expected diffusers, single or comfy for --layout without "
                               "--quantize, found \"%s\"", set->layout) == SFT_OK;
    if (!set->quantize)
        return cli_usage_error(err, "expected --quantize with %s, found none", alone) == SFT_OK;
    if (other)
        return cli_usage_error(err, "expected --quantize alone, found %s", other) == SFT_OK;
    return sfti_quant_target_find(set->layout ? set->layout : "comfy", set->quantize, set->scale,
                                  &run->parts.arena, &run->target, err) == SFT_OK;
}

sft_code convert_quantise(convert_run *run, sft_error *err) {
    const cli_settings *set = &run->c->set;
    quantise_run q = { .run = run, .target = run->target, .architecture = { "", 0 } };
    if (sft_set_index_path(run->parts.sets[0]) && set->in_place && !set->output)
        return cli_usage_error(err, "expected -o OUT with --quantize for a model in several files, "
                                    "found --in-place");
    sft_code code = look_at_model(&q, err);
    if (!code && run->c->import && !set->from_quantised) code = refuse_codes(run->c->import, err);
    if (!code) code = convert_find_computed(run, err);
    if (code) {
        sft_info_close(q.info);
        return code;
    }
    code = plan_parts(&q, err);
    if (!code) code = write_parts(&q, err);
    bool chooses = err && err->hint == SFT_HINT_CHOOSE_TENSORS;
    if (code == SFT_CAST_VALUE || (code == SFT_CAST_DTYPE && chooses))
        cli_hint(err, CLI_HINT_SPARE);
    else if (code == SFT_CAST_DTYPE && q.plan == NULL && !set->from_quantised)
        cli_hint(err, CLI_HINT_FROM_QUANTISED);
    cli_parts_drop(&run->parts); /* whose sources go */
    sft_info_close(q.info);
    sfti_quantising_free(q.plan);
    return code;
}
