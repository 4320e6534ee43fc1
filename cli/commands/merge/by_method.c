/* merge --method: models merged by value. */
#include "commands/merge/merge.h"
#include "support/adapters.h"
#include "support/hints.h"
#include "support/models.h"
#include "support/output.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>

/* ── Models ── */

static sft_code open_input(merge_run *run, size_t i, sft_error *err) {
    cli *c = run->c;
    merge_input *in = &run->inputs[i];
    const cli_input *input;
    sft_code code = SFT_OK;
    in->path = run->blame = run->paths[i];
    if (i == run->recipe.reference) {
        code = cli_parts_open_one(c, run->paths[i], false, &run->parts, err);
        run->blame = run->parts.path ? run->parts.path : run->paths[i];
        if (!code) code = cli_parts_tell(c, &run->parts, err);
        if (code) return code;
        in->path = sft_set_index_path(run->parts.sets[0]);
        if (!in->path) in->path = run->parts.paths[0];
        in->set = run->parts.sets[0];
    } else {
        code = cli_open_operand(c, run->paths[i], &in->inputs, &input, &in->set, err);
        if (code) return code;
        in->path = input->path;
    }
    in->path = sfti_arena_copy(&run->arena, in->path, strlen(in->path)); /* outlives its set */
    if (!in->path) return sfti_fail_memory(err, 1);
    run->blame = in->path;
    in->stored = in->set;
    code = sfti_merge_model_open(&in->set, NULL, in->path, c->open.files, &run->arena,
                                 &run->models[i], err);
    if (i == run->recipe.reference) {
        run->parts.sets[0] = in->set;
        run->parts.set_count = in->set != NULL;
    }
    return code;
}

static sft_code open_all(merge_run *run, sft_error *err) {
    size_t count = run->recipe.count;
    run->models = sfti_arena_array(&run->arena, count, sizeof *run->models);
    if (!run->models) return sfti_fail_memory(err, count * sizeof *run->models);
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < count; i++) code = open_input(run, i, err);
    sft_span names[SFTI_MERGE_MODELS];
    for (size_t i = 0; !code && i < count; i++) {
        run->blame = run->inputs[i].path;
        if (!run->inputs[i].name.data)
            code = sfti_merge_name(sfti_merge_called(run->inputs[i].path), names, i,
                                   &run->arena, &run->inputs[i].name, err);
        names[i] = run->inputs[i].name;
    }
    const sft_set *reference = code ? NULL : run->models[run->recipe.reference].set;
    for (size_t i = 0; !code && i < count; i++) {
        merge_input *in = &run->inputs[i];
        if (i == run->recipe.reference) continue;
        run->blame = in->path;
        code = sfti_merge_model_rename(&in->set, reference, &run->arena, &run->models[i], err);
    }
    return code;
}

/* ── The plan ── */

static sft_code plan_merge(merge_run *run, sft_error *err) {
    cli *c = run->c;
    sft_dtype dtype = SFT_DTYPE_COUNT;
    const sft_dtype_info *info;
    size_t who = SIZE_MAX;
    sft_code code = SFT_OK;
    run->blame = NULL;
    if (run->recipe.dtype.len) code = cli_dtype_read(run->recipe.dtype, &dtype, err);
    info = sft_dtype_describe(dtype);
    if (!code && info && (info->kind != SFT_KIND_FLOAT || info->bits < 16))
        code = cli_usage_error(err, "expected a dtype of F64, F32, F16 or BF16, found %s; "
                               "convert --quantize makes it smaller", info->name);
    if (code) return code;
    uint64_t threads = 0;
    if (c->set.threads && (!cli_parse_number(c->set.threads, 1024, &threads) || threads == 0))
        return cli_usage_error(err, "expected --threads of 1 to 1024, found \"%s\"",
                               c->set.threads);
    run->threads = (uint32_t)threads;
    const sfti_merge_plan plan = sfti_merge_plan_of(&run->recipe, run->models, dtype, run->threads,
                                                    &c->alloc);
    code = sfti_merged_new(&plan, &run->merged, &who, err);
    if (code == SFT_TENSOR_NOT_FOUND) cli_hint(err, CLI_HINT_IGNORE_MISSING);
    bool quantised = who < plan.count && plan.models[who].computed && !run->recipe.dtype.len;
    if (code == SFT_CAST_DTYPE && quantised) cli_hint(err, CLI_HINT_MERGE_DTYPE);
    run->blame = who == SIZE_MAX ? NULL : run->inputs[who].path;
    return code;
}

/* The parts of the reference become those of the result. Put together of slices it is one file. */
static sft_code take_merged(merge_run *run, sft_error *err) {
    cli_parts *p = &run->parts;
    const sft_set *set = run->models[run->recipe.reference].set;
    size_t count = sfti_merged_count(run->merged);
    bool computed = set != run->inputs[run->recipe.reference].stored;
    p->parts = sfti_arena_array(&p->lists, count, sizeof *p->parts);
    p->shard = sfti_arena_array(&p->lists, count, sizeof *p->shard);
    p->file = sfti_arena_array(&p->lists, count, sizeof *p->file);
    if (!p->parts || !p->shard || !p->file)
        return sfti_fail_memory(err, count * sizeof *p->parts);
    for (size_t i = 0; i < count; i++) {
        const sfti_merge_row *row = sfti_merged_row(run->merged, i);
        size_t shard = sft_set_tensor_shard(run->models[row->from].set, row->tensor);
        p->parts[i] = sfti_merged_part(run->merged, i);
        p->shard[i] = p->file[i] = row->slice ? 0 : (uint32_t)shard;
    }
    p->count = count;
    p->changed = true;
    if (!computed) return SFT_OK;
    /* what declares quantised layers is not in the metadata of their values */
    p->files[0] = sft_set_shard_at(set, 0);
    p->path_count = 1;
    p->picks = NULL;
    p->only = 0;
    p->metadata_count = sft_file_metadata_count(p->files[0]);
    return SFT_OK;
}

static void note(merge_run *run, size_t count, sft_span name, const char *what) {
    cli *c = run->c;
    if (count == 0) return;
    cli_flush(&c->out);
    cli_printf(&c->err, "safetensors: note: %zu tensor%s %s (", count, count == 1 ? "" : "s", what);
    cli_quoted(&c->err, name);
    cli_text(&c->err, count > 1 ? " and others)\n" : ")\n");
    cli_flush(&c->err);
}

static void tell_notes(merge_run *run) {
    const sfti_merge_notes *n = sfti_merged_notes(run->merged);
    note(run, n->missing, n->missing_name, "not in all models: merged without those");
    note(run, n->extra, n->extra_name, "left out, for the model that gives names lacks them");
    note(run, n->unlike, n->unlike_name, "of integers in a model, not the same in all: copied");
    bool mask = false;
    for (size_t i = 0; i < run->recipe.settings.count; i++)
        mask = mask || run->recipe.settings.items[i].param == SFTI_MERGE_INT8_MASK;
    if (mask) cli_text(&run->c->err, "safetensors: note: int8_mask is of no effect here\n");
    if (n->cut == 0) return;
    note(run, n->cut, n->cut_name, "of unlike vocabularies cut to the rows that all have");
    cli_printf(&run->c->err, "safetensors: note: %" PRIu64 " of up to %" PRIu64 " rows are left: "
               "the same words must stand in them\n", n->cut_rows[0], n->cut_rows[1]);
    cli_flush(&run->c->err);
}

/* ── Results ── */

static cli_loss loss_at(const void *ctx, size_t i) {
    const sfti_merged *merged = ((const merge_run *)ctx)->merged;
    cli_loss sum = { 0, 0, 0, 0 };
    for (size_t k = i == SIZE_MAX ? 0 : i; k < sfti_merged_count(merged); k++) {
        const sfti_merge_row *row = sfti_merged_row(merged, k);
        sum.values += row->losses[0];
        sum.zero += row->losses[1];
        if (k == i) break;
    }
    return sum;
}

static sft_span tensor_name(const void *ctx, size_t i) {
    return sfti_merged_row(((const merge_run *)ctx)->merged, i)->spec.name;
}

static cli_losses losses_of(const merge_run *run) {
    return (cli_losses){ sfti_merged_count(run->merged), loss_at, tensor_name, run, false };
}

static void put_merged(void *ctx, sfti_json_writer *w) {
    const merge_run *run = ctx;
    const sfti_merge_notes *n = sfti_merged_notes(run->merged);
    sft_span names[SFTI_MERGE_MODELS];
    for (size_t i = 0; i < run->recipe.count; i++) names[i] = run->inputs[i].name;
    size_t computed = sfti_merged_computed(run->merged);
    sfti_json_put_uint(w, "merged", computed);
    sfti_json_put_uint(w, "copied", sfti_merged_count(run->merged) - computed);
    sfti_json_put_uint(w, "renamed", n->renamed);
    sfti_json_put_uint(w, "missing", n->missing);
    sfti_json_put_uint(w, "left_out", n->extra);
    sfti_json_put_uint(w, "cut", n->cut);
    sfti_json_put_uint(w, "unlike", n->unlike);
    cli_losses losses = losses_of(run);
    if (!run->c->set.dry_run) cli_put_lost(&losses, w);
    sfti_json_key(w, "recipe");
    sfti_merge_recipe_write(&run->recipe, names, w);
}

static void say_merged(const merge_run *run) {
    cli *c = run->c;
    size_t computed = sfti_merged_computed(run->merged);
    cli_losses losses = losses_of(run);
    if (!cli_is_json(c))
        cli_printf(&c->out, "%s of %zu models: %zu tensor%s %smerged, %zu copied\n",
                   run->recipe.method->name, run->recipe.count, computed, computed == 1 ? "" : "s",
                   c->set.dry_run ? "would be " : "", sfti_merged_count(run->merged) - computed);
    cli_warn_lost(c, c->set.output, "the result's dtype", &losses);
}

/* ── Writing ── */

static bool models_hold(void *ctx, bool last) {
    merge_run *run = ctx;
    if (last && merge_record_end(run, &run->change)) return false;
    return !sfti_merge_models_check(run->models, run->recipe.count, &run->changed, &run->change);
}

/* What configures the reference is read with the others'. */
static sft_code check_configs(merge_run *run, sft_error *err) {
    const char *paths[SFTI_MERGE_MODELS];
    for (size_t i = 0; i < run->recipe.count; i++) paths[i] = run->inputs[i].path;
    run->parts.configured = true;
    run->blame = run->c->set.output;
    return cli_check_adapter_config(run->c, paths, run->recipe.count,
                                    cli_output_is_stream(run->c) ? NULL : run->c->set.output, err);
}

static sft_code write_merged(merge_run *run, sft_error *err) {
    cli *c = run->c;
    cli_parts *p = &run->parts;
    const char *input = run->inputs[run->recipe.reference].path;
    const sft_set *set = run->models[run->recipe.reference].set;
    bool shards = sft_set_index_path(set) && !cli_output_is_file(c) && !run->recipe.slice_count;
    cli_written written = CLI_WRITTEN_INIT;
    cli_output out;
    char stem[CLI_STEM_SIZE];
    uint32_t used = 1;
    sft_code code = SFT_OK;
    written.input = input;
    written.more = put_merged;
    written.ctx = run;
    p->untold = true;
    p->holds = models_hold;
    p->ctx = run;
    run->changed = SIZE_MAX;
    if (shards && !cli_renumber(&p->arena, p->shard, p->count, sft_set_shard_count(set), &used))
        return sfti_fail_memory(err, p->count);
    if (!shards) {
        code = cli_output_begin(&out, c, input, CLI_TARGET_NEW, err);
        run->blame = code ? out.blame : input;
        if (!code) code = cli_output_sources(c, p, &out, err);
    }
    if (!code) code = merge_hash(run, !shards && !cli_output_is_stream(c), err);
    if (!code) code = merge_record(run, used == 1, err);
    if (code) return code;
    run->blame = c->set.output;
    if (shards) {
        code = cli_output_set(c, p, used, err);
        return code ? code : cli_say_shards(c, p, used, cli_index_stem(input, stem), written, err);
    }
    code = cli_output_parts(&out, c, p, err);
    if (code) return code;
    cli_say_parts(c, p, out.path, written);
    return SFT_OK;
}

static sft_code merge_all(merge_run *run, char **operands, size_t count, sft_error *err) {
    sft_code code = cli_output_agrees(run->c, err);
    size_t most = count > SFTI_MERGE_MODELS ? count : SFTI_MERGE_MODELS;
    run->inputs = sfti_arena_array(&run->arena, most, sizeof *run->inputs);
    if (!run->inputs) return sfti_fail_memory(err, most * sizeof *run->inputs);
    memset(run->inputs, 0, most * sizeof *run->inputs);
    if (!code) code = merge_asked(run, operands, count, err);
    if (!code) code = open_all(run, err);
    if (!code && run->c->set.output) code = check_configs(run, err);
    if (!code) code = plan_merge(run, err);
    if (!code) code = take_merged(run, err);
    if (code) return code;
    tell_notes(run);
    code = merge_compared(run, err);
    if (!code) code = write_merged(run, err);
    if (!code) say_merged(run);
    size_t who = code ? sfti_merged_blames(run->merged) : SIZE_MAX;
    if (code == SFT_CANCELLED && run->change.code) {
        code = run->change.code;
        who = run->changed;
        *err = run->change;
    }
    if (who != SIZE_MAX) run->blame = run->inputs[who].path;
    if (run->unlike) run->blame = run->c->set.replay;
    return code;
}

static void fail(merge_run *run, const sft_error *found) {
    static const sft_code refusals[] = { SFT_SIZE_MISMATCH, SFT_CAST_DTYPE, SFT_CAST_VALUE,
                                         SFT_TENSOR_NOT_FOUND, SFT_TENSOR_DUPLICATE };
    sft_error err = *found;
    bool refused = false;
    for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++)
        refused = refused || err.code == refusals[i];
    if (refused && err.hint < SFT_HINT_PROGRAM) err.hint = SFT_HINT_NONE;
    if (refused) cli_refuse(run->c, run->blame, &err);
    else if (err.code == SFT_BAD_ARGUMENT && !run->blame) cli_fail_usage(run->c, &err);
    else cli_fail_input(run->c, run->blame, &err);
}

void merge_by_method(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    merge_run run = { .c = c, .arena = { .alloc = c->alloc }, .change = SFT_ERROR_INIT,
                      .parts = { .arena = { .alloc = c->alloc } } };
    run.text.alloc = c->alloc;
    c->imports_exact = c->imports_whole = true;
    sft_code code = merge_all(&run, operands, count, &err);
    if (code) run.blame = cli_parts_blame(&run.parts, code, NULL, run.blame);
    if (code) fail(&run, &err);
    sfti_merge_hash_stop(&run.hashing);
    sfti_merged_free(run.merged);
    sft_set_close(run.replayed);
    for (size_t i = 0; run.inputs && i < run.recipe.count; i++) {
        bool own = run.parts.set_count == 0 || run.inputs[i].set != run.parts.sets[0];
        if (own) sft_set_close(run.inputs[i].set);
        cli_inputs_free(&run.inputs[i].inputs);
    }
    sft_buffer_free(&run.text);
    for (size_t i = 0; i < 2; i++) sfti_merge_record_free(&run.records[i]);
    cli_parts_free(&run.parts);
    sfti_arena_free(&run.arena);
}
