/* convert: models in other formats, into safetensors without casts. */
#include "commands/convert/convert.h"
#include "support/cli.h"
#include "support/output.h"


#include <inttypes.h>
#include <string.h>

/* The tensors of a model, and in which of its shards each is. */
typedef struct import_list {
    sft_part *parts;
    uint32_t *shard_of;
    size_t count;
    uint32_t shards;
} import_list;

/* ── Into a folder ── */

static sft_code say_set(convert_run *run, const import_list *list, sft_error *err) {
    const char *folder = run->c->set.output;
    sfti_arena *arena = &run->parts.arena;
    cli_written_file *files = sfti_arena_array(arena, list->shards, sizeof *files);
    if (!files) return sfti_fail_memory(err, list->shards * sizeof *files);
    for (uint32_t s = 0; s < list->shards; s++) {
        const char *path = cli_output_shard(arena, folder, NULL, s, list->shards);
        if (!path) return sfti_fail_memory(err, strlen(folder));
        files[s] = cli_written_parts(path, list->parts, list->count, list->shard_of, s);
    }
    cli_written written = { .input = run->input, .output = folder, .files = files,
                            .file_count = list->shards, .is_set = list->shards > 1,
                            .dtype = SFT_DTYPE_COUNT, .more = convert_put_more, .ctx = run };
    cli_say_written(run->c, &written);
    return SFT_OK;
}

/* ── Into one file ── */

static sft_code import_file(convert_run *run, const import_list *list, sft_error *err) {
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
    if (!code) convert_say_file(run, out.path, list->parts, list->count);
    if (code == SFT_IO_WRITE || code == SFT_IO_SYNC || code == SFT_IO_PUBLISH)
        run->parts.path = out.path;
    return code;
}

sft_code convert_import(convert_run *run, sft_error *err) {
    const cli *c = run->c;
    import_list list = { .shards = 0 };
    sfti_arena *arena = &run->parts.arena;
    sft_code code = SFT_OK;
    list.count = sft_import_tensor_count(c->import);
    list.parts = sfti_arena_array(arena, list.count, sizeof *list.parts);
    list.shard_of = sfti_arena_array(arena, list.count, sizeof *list.shard_of);
    if (!list.parts || !list.shard_of) return sfti_fail_memory(err, list.count);
    for (size_t i = 0; i < list.count; i++) {
        list.parts[i] = sft_import_part(c->import, i);
        list.shard_of[i] = (uint32_t)sft_import_shard(c->import, i);
    }
    size_t shards = sft_import_shard_count(c->import);
    if (shards <= 1 || !c->set.output || cli_output_is_file(c))
        return import_file(run, &list, err);
    /* shards without any tensor (all of them are aliases) are not written */
    if (!cli_renumber(arena, list.shard_of, list.count, shards, &list.shards))
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
            code = sft_save_set(c->set.output, list.parts, list.shard_of, list.count, list.shards,
                                sft_import_metadata(c->import),
                                sft_import_metadata_count(c->import), &options, &job, err);
        cli_progress_end(&progress);
    }
    return code ? code : say_set(run, &list, err);
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
