#include "commands/convert_import.h"

#include "support/output.h"
#include "support/progress.h"
#include "support/written.h"

#include <inttypes.h>
#include <string.h>

typedef struct import_run {
    cli *c;
    const sft_import *import;
    const char *path;
    sft_part *parts;     /* of a model in shards */
    uint32_t *shard_of;
    size_t count, shards;
} import_run;

static void put_report(void *ctx, sfti_json_writer *w) {
    const import_run *run = ctx;
    cli_put_import(run->c, w, run->path, run->import);
}

static sft_code list_parts(import_run *run, sfti_arena *arena, sft_error *err) {
    run->count = sft_import_tensor_count(run->import);
    run->shards = sft_import_shard_count(run->import);
    run->parts = sfti_arena_array(arena, run->count, sizeof *run->parts);
    run->shard_of = sfti_arena_array(arena, run->count, sizeof *run->shard_of);
    if (!run->parts || !run->shard_of) return sfti_fail_memory(err, run->count);
    for (size_t i = 0; i < run->count; i++) {
        run->parts[i] = sft_import_part(run->import, i);
        run->shard_of[i] = (uint32_t)sft_import_shard(run->import, i);
    }
    return SFT_OK;
}

/* Shards without any tensor (all of them are aliases) are not written. */
static void renumber_shards(import_run *run, uint32_t *number, uint32_t *used) {
    for (size_t s = 0; s < run->shards; s++) number[s] = UINT32_MAX;
    for (size_t i = 0; i < run->count; i++) number[run->shard_of[i]] = 0;
    for (size_t s = 0; s < run->shards; s++)
        if (number[s] == 0) number[s] = (*used)++;
    for (size_t i = 0; i < run->count; i++) run->shard_of[i] = number[run->shard_of[i]];
}

/* ── Results ── */

static sft_code say_file(import_run *run, const char *output) {
    cli_written_file file = cli_written_parts(output, run->parts, run->count, NULL, 0);
    cli_written written = CLI_WRITTEN_INIT;
    written.input = run->path;
    written.output = output;
    written.files = &file;
    written.file_count = 1;
    written.more = put_report;
    written.ctx = run;
    cli_say_written(run->c, &written);
    return SFT_OK;
}

static sft_code say_set(import_run *run, sfti_arena *arena, uint32_t shards, sft_error *err) {
    const char *folder = run->c->set.output;
    cli_written_file *files = sfti_arena_array(arena, shards, sizeof *files);
    cli_written written = CLI_WRITTEN_INIT;
    if (!files) return sfti_fail_memory(err, shards * sizeof *files);
    for (uint32_t s = 0; s < shards; s++) {
        const char *path = cli_output_shard(arena, folder, NULL, s, shards);
        if (!path) return sfti_fail_memory(err, strlen(folder));
        files[s] = cli_written_parts(path, run->parts, run->count, run->shard_of, s);
    }
    written.input = run->path;
    written.output = folder;
    written.files = files;
    written.file_count = shards;
    written.is_set = shards > 1;
    written.more = put_report;
    written.ctx = run;
    cli_say_written(run->c, &written);
    return SFT_OK;
}

/* ── Writing ── */

static sft_code save_file(import_run *run, const cli_output *out, sft_error *err) {
    cli_progress progress;
    sft_sink sink;
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    plan.alloc = &run->c->alloc;
    sft_code code = cli_output_sink(out, &sink, err);
    if (code) return code;
    sft_job job = cli_progress_begin(&progress, run->c, out->path);
    code = sft_import_save(run->import, sink, &plan, &job, err);
    cli_progress_end(&progress);
    return code;
}

static sft_code save_set(import_run *run, cli_parts *parts, uint32_t shards, sft_error *err) {
    cli_progress progress;
    const cli *c = run->c;
    sft_save_set_options options = SFT_SAVE_SET_OPTIONS_INIT;
    options.no_sync = c->set.no_sync != 0;
    options.in_place_unsafe = c->set.in_place_unsafe != 0;
    options.mode = sft_set_output_mode(parts->sets[0], NULL);
    sft_job job = cli_progress_begin(&progress, run->c, c->set.output);
    sft_code code = sft_import_verify(run->import, &job, err);
    if (!code)
        code = sft_save_set(c->set.output, run->parts, run->shard_of, run->count, shards,
                            sft_import_metadata(run->import),
                            sft_import_metadata_count(run->import), &options, &job, err);
    cli_progress_end(&progress);
    return code;
}

static sft_code import_set(import_run *run, cli_parts *parts, sft_error *err) {
    uint32_t *number = sfti_arena_array(&parts->arena, run->shards, sizeof *number), shards = 0;
    if (!number) return sfti_fail_memory(err, run->shards);
    renumber_shards(run, number, &shards);
    sft_code code = run->c->set.dry_run ? SFT_OK : save_set(run, parts, shards, err);
    return code ? code : say_set(run, &parts->arena, shards, err);
}

static sft_code import_file(import_run *run, cli_parts *parts, sft_error *err) {
    cli_output out;
    sft_code code = cli_output_begin(&out, run->c, run->path, CLI_TARGET_NEW, err);
    if (!code) code = cli_output_sources(run->c, parts, &out, err);
    if (code) {
        parts->path = out.blame;
        return code;
    }
    if (!run->c->set.dry_run) code = save_file(run, &out, err);
    if (!code) return say_file(run, out.path);
    if (code == SFT_IO_WRITE || code == SFT_IO_SYNC || code == SFT_IO_PUBLISH)
        parts->path = out.path;
    return code;
}

sft_code convert_import(cli *c, const sft_import *import, cli_parts *parts, sft_error *err) {
    import_run run = { .c = c, .import = import, .path = parts->path };
    sft_code code = list_parts(&run, &parts->arena, err);
    if (code) return code;
    bool folder = run.shards > 1 && c->set.output && !cli_output_is_file(c);
    return folder ? import_set(&run, parts, err) : import_file(&run, parts, err);
}

/* ── --list ── */

static void list_json(cli *c, const char *path, const sft_import *import) {
    sft_error err = SFT_ERROR_INIT;
    sft_sink sink = cli_result_begin(c);
    cli_result_end(c, path, sft_import_json(import, path, &sink, &err), &err);
}

void convert_list_branches(cli *c, const char *path, const sft_import *import) {
    char buffer[CLI_NUMBER_SIZE];
    const sft_import_branch *branch;
    size_t count = sft_import_tensor_count(import);
    if (cli_is_json(c)) {
        list_json(c, path, import);
        return;
    }
    cli_path(&c->out, path, ": %s, %zu tensor%s\n",
             sft_import_format_describe(sft_import_format_of(import))->title, count,
             count == 1 ? "" : "s");
    for (size_t i = 0; (branch = sft_import_branch_at(import, i)) != NULL; i++) {
        cli_text(&c->out, branch->chosen ? "* " : "  ");
        if (branch->path.len > 0) cli_escaped(&c->out, branch->path);
        else cli_text(&c->out, "(all)");
        cli_printf(&c->out, ": %" PRIu64 " tensor%s, %s\n", branch->tensors,
                   branch->tensors == 1 ? "" : "s", cli_size_text(branch->bytes, buffer));
    }
    cli_say_import(c, path, import);
}
