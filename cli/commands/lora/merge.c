/* lora merge. */
#include "adapter/merge.h"
#include "base/json.h"
#include "commands/lora/lora.h"
#include "support/hints.h"
#include "support/files.h"
#include "support/hash.h"
#include "support/output.h"
#include "support/parts.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>

#define NAMED_MOST 10

typedef struct merge_run {
    cli *c;
    cli_parts parts;
    const char *model; /* path */
    lora_adapter *adapters;
    size_t count;
    sft_adapter_merge *merge;
    uint32_t threads;
    const char *blame; /* path that an error is about */
} merge_run;

/* ── What is not matched ── */

static void name_unmatched(merge_run *run, size_t k) {
    cli *c = run->c;
    const char *path = run->adapters[k].path;
    size_t count = sft_adapter_merge_unmatched(run->merge, k);
    size_t most = c->set.verbose ? count : NAMED_MOST;
    cli_flush(&c->out);
    for (size_t i = 0; i < count && i < most; i++) {
        cli_text(&c->err, "safetensors: ");
        cli_path(&c->err, path, ": not in the model: ");
        cli_quoted(&c->err, sft_adapter_merge_unmatched_at(run->merge, k, i));
        cli_text(&c->err, "\n");
    }
    if (count > most) {
        cli_text(&c->err, "safetensors: ");
        cli_path(&c->err, path, ": and %zu more\n", count - most);
    }
    cli_flush(&c->err);
}

static sft_code check_matched(merge_run *run, size_t k, sft_error *err) {
    size_t count = sft_adapter_merge_unmatched(run->merge, k);
    if (count == 0 || sft_adapter_merge_matched(run->merge, k) == 0) return SFT_OK;
    name_unmatched(run, k);
    if (run->c->set.ignore_unmatched) return SFT_OK;
    return sfti_fail(err, SFT_TENSOR_NOT_FOUND,
                     "expected tensors of the model for every module, found none for %zu of its "
                     "modules and tensors; --ignore-unmatched leaves them out", count);
}

/* ── Another base ── */

static void warn_of_base(merge_run *run, const lora_adapter *adapter) {
    cli *c = run->c;
    sft_info_options how = SFT_INFO_OPTIONS_INIT;
    sft_info *model = NULL, *other = NULL;
    char reason[512];
    how.alloc = &c->alloc;
    how.records = c->records;
    how.header_only = true;
    bool both = !sft_info_open(run->merge->values, NULL, NULL, &how, &model, NULL)
             && !sft_info_open(adapter->set, NULL, NULL, &how, &other, NULL);
    if (both && sft_info_fits(model, other, reason, sizeof reason) == SFT_FIT_NO) {
        cli_flush(&c->out);
        cli_text(&c->err, "safetensors: ");
        cli_path(&c->err, adapter->path, ": warning: made for another model: ");
        cli_escaped(&c->err, sft_span_cstr(reason));
        cli_text(&c->err, "\n");
        cli_flush(&c->err);
    }
    sft_info_close(other);
    sft_info_close(model);
}

/* ── The recipe ── */

/* All pairs of the model but digests of its data, and the recipe. */
static sft_code put_recipe(merge_run *run, bool one_file, sft_error *err) {
    sft_adapter_merge *m = run->merge;
    sft_code code = sfti_adapter_recipe(m, cli_name_of(run->model), !run->c->set.dry_run, err);
    if (code && m->blames < run->count) run->blame = run->adapters[m->blames].path;
    if (code) return code;
    const sft_pair pairs[] = {
        { sft_span_cstr(SFTI_MERGE_NAMES), { m->names.data, m->names.len } },
        { sft_span_cstr(SFTI_MERGE_RECIPE), { m->recipe.data, m->recipe.len } },
    };
    return cli_parts_record(run->c, &run->parts, one_file, pairs, sizeof pairs / sizeof *pairs,
                            err);
}

/* ── Results ── */

static void put_merged(void *ctx, sfti_json_writer *w) {
    const merge_run *run = ctx;
    uint64_t moved, lost;
    sft_adapter_merge_lost(run->merge, &moved, &lost);
    sfti_json_put_uint(w, "changed", sft_adapter_merge_changed(run->merge));
    sfti_json_put_uint(w, "narrow_values", moved);
    sfti_json_put_uint(w, "narrow_lost", lost);
    sfti_json_put_open(w, "adapters", '[');
    for (size_t i = 0; i < run->count; i++) {
        const lora_adapter *adapter = &run->adapters[i];
        size_t unmatched = sft_adapter_merge_unmatched(run->merge, i);
        sfti_json_open(w, '{');
        sfti_json_path(w, adapter->path);
        sfti_json_put_double(w, "strength", adapter->strength);
        sfti_json_put_uint(w, "modules", adapter->lora.count);
        sfti_json_put_uint(w, "matched", sft_adapter_merge_matched(run->merge, i));
        sfti_json_put_open(w, "unmatched", '[');
        for (size_t k = 0; k < unmatched && k < NAMED_MOST; k++)
            sfti_json_span(w, sft_adapter_merge_unmatched_at(run->merge, i, k));
        sfti_json_close(w, ']');
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
}

static void say_merged(merge_run *run) {
    cli *c = run->c;
    if (cli_is_json(c)) return;
    for (size_t i = 0; i < run->count; i++) {
        const lora_adapter *adapter = &run->adapters[i];
        cli_path(&c->out, adapter->path, ": strength %g, %zu of %zu module%s\n", adapter->strength,
                 sft_adapter_merge_matched(run->merge, i), adapter->lora.count,
                 adapter->lora.count == 1 ? "" : "s");
    }
    size_t changed = sft_adapter_merge_changed(run->merge);
    cli_printf(&c->out, "%zu tensor%s %s\n", changed, changed == 1 ? "" : "s",
               c->set.dry_run ? "would change" : "changed");
}

/* Without scales 8 bits have no room for small changes. */
static void warn_of_lost(merge_run *run) {
    cli *c = run->c;
    uint64_t moved, lost;
    sft_adapter_merge_lost(run->merge, &moved, &lost);
    if (lost == 0 || lost < moved / 100) return;
    cli_flush(&c->out);
    cli_text(&c->err, "safetensors: ");
    cli_path(&c->err, run->model,
             ": warning: %.1f %% of the values that changed in tensors of 8 bits without scales "
             "were rounded to what they had been%s\n", 100 * (double)lost / (double)moved,
             c->set.stochastic ? "" : "; --stochastic keeps the change on average");
    cli_flush(&c->err);
}

/* ── Writing ── */

static sft_code write_file(merge_run *run, sft_error *err) {
    cli *c = run->c;
    cli_output out;
    sft_code code = cli_output_begin(&out, c, run->model, CLI_TARGET_NEW, err);
    run->blame = code ? out.blame : run->model;
    if (!code) code = cli_output_sources(c, &run->parts, &out, err);
    if (!code) code = put_recipe(run, true, err);
    if (!code) run->blame = out.path;
    if (!code) code = cli_output_parts(&out, c, &run->parts, err);
    if (code) return code;
    cli_say_parts(c, &run->parts, out.path,
                  (cli_written){ .input = run->model, .dtype = SFT_DTYPE_COUNT,
                                 .more = put_merged, .ctx = run });
    return SFT_OK;
}

static sft_code write_shards(merge_run *run, sft_error *err) {
    cli *c = run->c;
    cli_parts *p = &run->parts;
    uint32_t used;
    char stem[CLI_STEM_SIZE];
    size_t shards = sft_set_shard_count(p->sets[0]);
    if (!cli_renumber(&p->arena, p->shard, p->count, shards, &used))
        return sfti_fail_memory(err, shards * sizeof used);
    sft_code code = put_recipe(run, used == 1, err);
    run->blame = c->set.output;
    if (!code) code = cli_output_set(c, p, used, err);
    if (code) return code;
    cli_written written = CLI_WRITTEN_INIT;
    written.input = run->model;
    written.more = put_merged;
    written.ctx = run;
    return cli_say_shards(c, p, used, cli_index_stem(run->model, stem), written, err);
}

/* Tensors that change come from the merge, the others from their files. */
static void take_merged(merge_run *run) {
    cli_parts *p = &run->parts;
    const sft_set *set = p->sets[0];
    for (size_t i = 0; i < p->count; i++) {
        size_t shard;
        const sft_tensor *tensor = sft_set_find(set, p->parts[i].spec.name, &shard);
        size_t number = sft_file_tensor_index(sft_set_shard_at(set, shard), tensor);
        for (size_t s = 0; s < shard; s++)
            number += sft_file_tensor_count(sft_set_shard_at(set, s));
        sft_part part = sft_adapter_merge_part(run->merge, number);
        if (!sfti_merge_computes(run->merge, number)) continue;
        p->parts[i].source = part.source;
        p->parts[i].begin = part.begin;
    }
}

static sft_code begin_merge(merge_run *run, sft_error *err) {
    cli *c = run->c;
    sft_adapter_merge_options options = SFT_ADAPTER_MERGE_OPTIONS_INIT;
    uint64_t seed = 0;
    if (c->set.stochastic && !cli_parse_number(c->set.stochastic, UINT64_MAX, &seed))
        return cli_usage_error(err, "expected --stochastic SEED, a number below 2^64, found \"%s\"",
                               c->set.stochastic);
    options.dora = (uint32_t)c->set.dora;
    options.stochastic = c->set.stochastic != NULL;
    options.seed = seed;
    options.ignore_unmatched = c->set.ignore_unmatched != 0;
    options.threads = run->threads;
    options.files = c->open.files;
    options.alloc = &c->alloc;
    return sft_adapter_merge_new(run->parts.sets[0], &options, &run->merge, err);
}

static sft_code add_adapter(merge_run *run, size_t i, char *operand, sft_error *err) {
    cli *c = run->c;
    lora_adapter *adapter = &run->adapters[i];
    const cli_words *blocks = &c->set.blocks;
    sft_adapter_use use = SFT_ADAPTER_USE_INIT;
    sft_code code = lora_open(c, operand, true, adapter, err);
    run->blame = adapter->path;
    if (code) return code;
    sft_span name = cli_name_of(adapter->path);
    char *copy = sfti_arena_copy(&run->parts.arena, name.data, name.len);
    if (!copy) return sfti_fail_memory(err, name.len);
    use.name = copy;
    use.strength = adapter->strength;
    use.config = cli_read_text(&adapter->config);
    if (blocks->count > 0) use.blocks = blocks->items[blocks->count == 1 ? 0 : i];
    code = sft_adapter_merge_add(run->merge, adapter->set, &use, err);
    if (!code) code = check_matched(run, i, err);
    if (!code) warn_of_base(run, adapter);
    if (!code) lora_warn_of_alpha(c, adapter);
    return code;
}

static sft_code merge_all(merge_run *run, char **operands, sft_error *err) {
    cli *c = run->c;
    run->blame = operands[0];
    if (c->set.blocks.count > 1 && c->set.blocks.count != run->count)
        return cli_usage_error(err, "expected --blocks once, or once for each adapter, found it "
                               "%zu times for %zu", c->set.blocks.count, run->count);
    sft_code code = cli_output_agrees(c, err);
    if (!code) code = cli_parts_open_one(c, operands[0], false, &run->parts, err);
    if (code) return code;
    run->model = run->blame = run->parts.path;
    code = cli_parts_tell(c, &run->parts, err);
    run->adapters = sfti_arena_array(&run->parts.arena, run->count, sizeof *run->adapters);
    if (!run->adapters) {
        run->count = 0;
        return sfti_fail_memory(err, sizeof *run->adapters);
    }
    memset(run->adapters, 0, run->count * sizeof *run->adapters);
    if (!code) code = begin_merge(run, err);
    for (size_t i = 0; !code && i < run->count; i++)
        code = add_adapter(run, i, operands[1 + i], err);
    if (code) return code;
    run->blame = run->model;
    code = sft_adapter_merge_plan(run->merge, err);
    size_t who = sft_adapter_merge_blames(run->merge);
    if (code && who != SIZE_MAX) run->blame = run->adapters[who].path;
    if (code == SFT_CAST_DTYPE && who == SIZE_MAX) cli_hint(err, CLI_HINT_DEQUANTIZE);
    if (code) return code;
    take_merged(run);
    run->parts.untold = true;
    bool folder = sft_set_index_path(run->parts.sets[0]) && !cli_output_is_file(c);
    code = folder ? write_shards(run, err) : write_file(run, err);
    if (!code) say_merged(run);
    if (!code) warn_of_lost(run);
    bool computing = code == SFT_CAST_VALUE || code == SFT_SIZE_MISMATCH || code == SFT_CAST_DTYPE;
    who = computing ? sft_adapter_merge_blames(run->merge) : SIZE_MAX;
    if (computing) run->blame = who == SIZE_MAX ? run->model : run->adapters[who].path;
    return code;
}

void lora_merge(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    merge_run run = { .c = c, .count = count - 1, .parts = { .arena = { .alloc = c->alloc } } };
    if (!cli_parse_threads(c, &run.threads)) return;
    sft_code code = merge_all(&run, operands, &err);
    if (code) run.blame = cli_parts_blame(&run.parts, code, NULL, run.blame);
    if (code) lora_fail(c, run.blame, &err);
    sft_adapter_merge_free(run.merge);
    for (size_t i = 0; run.adapters && i < run.count; i++) lora_close(&run.adapters[i]);
    cli_parts_free(&run.parts);
}
