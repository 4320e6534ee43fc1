/* convert: models in other formats, into safetensors without casts; and what results say, also of
 * values that casts to fewer bits have lost. */
#include "commands/convert/convert.h"
#include "support/files.h"

#include <inttypes.h>

static cli_loss loss_at(const void *ctx, size_t i) {
    const sft_conversion *conversion = ((const convert_run *)ctx)->conversion;
    return (cli_loss){ sft_conversion_lost(conversion, i, SFT_LOSS_OF),
                       sft_conversion_lost(conversion, i, SFT_LOSS_ZERO),
                       sft_conversion_lost(conversion, i, SFT_LOSS_INFINITE),
                       sft_conversion_lost(conversion, i, SFT_LOSS_SATURATED) };
}

static sft_span tensor_name(const void *ctx, size_t i) {
    return sft_set_tensor_at(((const convert_run *)ctx)->parts.sets[0], i)->name;
}

static cli_losses losses_of(const convert_run *run) {
    return (cli_losses){ sft_set_tensor_count(run->parts.sets[0]), loss_at, tensor_name, run };
}

void convert_warn_lost(const convert_run *run) {
    cli_losses losses = losses_of(run);
    cli_warn_lost(run->c, run->input, sft_dtype_describe(run->to)->name, &losses);
}

void convert_put_more(void *ctx, sfti_json_writer *w) {
    const convert_run *run = ctx;
    if (run->conversion && !run->c->set.dry_run) {
        cli_losses losses = losses_of(run);
        cli_put_lost(&losses, w);
    }
    if (run->c->import) cli_put_import(run->c, w, run->input, run->c->import);
}

void convert_say_file(convert_run *run, const char *path, const sft_part *parts, size_t count) {
    cli_written_file file = cli_written_parts(path, parts, count, NULL, 0);
    cli_written written = { .input = run->input, .output = path, .files = &file, .file_count = 1,
                            .dtype = SFT_DTYPE_COUNT, .more = convert_put_more, .ctx = run };
    cli_say_written(run->c, &written);
}

/* ── Imports: into one file, or into a folder ── */

static sft_code import_file(convert_run *run, sft_error *err) {
    cli *c = run->c;
    cli_output out;
    cli_progress progress;
    sft_sink sink;
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    sft_code code = cli_output_begin(&out, c, run->input, CLI_TARGET_NEW, err);
    if (!code) code = cli_output_sources(c, &run->parts, &out, err);
    if (code) {
        run->parts.path = out.blame;
        return code;
    }
    if (!c->set.dry_run) code = cli_output_sink(&out, &sink, err);
    if (!code && !c->set.dry_run) {
        plan.alloc = &c->alloc;
        sft_job job = cli_progress_begin(&progress, c, out.path);
        code = sft_import_save(c->import, sink, &plan, &job, err);
        cli_progress_end(&progress);
    }
    if (!code) convert_say_file(run, out.path, run->parts.parts, run->parts.count);
    if (cli_output_failed(code)) run->parts.path = out.path;
    return code;
}

sft_code convert_import(convert_run *run, sft_error *err) {
    const cli *c = run->c;
    cli_parts *p = &run->parts; /* its lists become those of the import */
    uint32_t used;
    sft_code code = SFT_OK;
    p->count = sft_import_tensor_count(c->import);
    p->parts = sfti_arena_array(&p->arena, p->count, sizeof *p->parts);
    p->shard = sfti_arena_array(&p->arena, p->count, sizeof *p->shard);
    if (!p->parts || !p->shard) return sfti_fail_memory(err, p->count);
    for (size_t i = 0; i < p->count; i++) {
        p->parts[i] = sft_import_part(c->import, i);
        p->shard[i] = (uint32_t)sft_import_shard(c->import, i);
    }
    size_t shards = sft_import_shard_count(c->import);
    if (shards <= 1 || !c->set.output || cli_output_is_file(c))
        return import_file(run, err);
    /* shards without any tensor (all of them are aliases) are not written */
    if (!cli_renumber(&p->arena, p->shard, p->count, shards, &used))
        code = sfti_fail_memory(err, shards);
    if (!code && !c->set.dry_run) {
        cli_progress progress;
        sft_save_set_options options = SFT_SAVE_SET_OPTIONS_INIT;
        options.no_sync = c->set.no_sync != 0;
        options.in_place_unsafe = c->set.in_place_unsafe != 0;
        options.mode = sft_set_output_mode(run->parts.sets[0], NULL);
        sft_job job = cli_progress_begin(&progress, run->c, c->set.output);
        code = sft_import_verify(c->import, &job, err);
        if (!code)
            code = sft_save_set(c->set.output, p->parts, p->shard, p->count, used,
                                sft_import_metadata(c->import),
                                sft_import_metadata_count(c->import), &options, &job, err);
        cli_progress_end(&progress);
    } else if (!code) {
        code = cli_check_folder(c, c->set.output, err);
    }
    if (cli_output_failed(code)) p->path = c->set.output;
    cli_written written = { .input = run->input, .dtype = SFT_DTYPE_COUNT,
                            .more = convert_put_more, .ctx = run };
    return code ? code : cli_say_shards(run->c, p, used, NULL, written, err);
}

/* ── --list ── */

void convert_list_branches(const convert_run *run) {
    cli *c = run->c;
    const sft_import *import = c->import;
    char buffer[CLI_NUMBER_SIZE];
    const sft_import_branch *branch;
    size_t count = sft_import_tensor_count(import);
    if (cli_is_json(c)) {
        sft_error err = SFT_ERROR_INIT;
        sft_sink sink = cli_result_begin(c);
        cli_result_end(c, run->input, sft_import_json(import, run->input, &sink, &err), &err);
        return;
    }
    cli_path(&c->out, run->input, ": %s, %zu tensor%s\n",
             sft_import_format_describe(sft_import_format_of(import))->title, count,
             count == 1 ? "" : "s");
    for (size_t i = 0; (branch = sft_import_branch_at(import, i)) != NULL; i++) {
        cli_text(&c->out, branch->chosen ? "* " : "  ");
        if (branch->path.len > 0) cli_escaped(&c->out, branch->path);
        else cli_text(&c->out, "(all)");
        cli_printf(&c->out, ": %" PRIu64 " tensor%s, %s\n", branch->tensors,
                   branch->tensors == 1 ? "" : "s", cli_size_text(branch->bytes, buffer));
    }
    cli_say_import(c, run->input, import);
}
