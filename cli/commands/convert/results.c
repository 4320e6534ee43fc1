/* convert: models in other formats, into safetensors without casts; and what results say, also of
 * values that casts to fewer bits have lost. */
#include "commands/convert/convert.h"
#include "base/names.h"
#include "base/number.h"
#include "convert/dropped.h"
#include "formats/parts/blocks.h"
#include "os/io.h"
#include "support/adapters.h"
#include "support/files.h"

#include <inttypes.h>
#include <string.h>

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
    bool as_nan = sfti_float_form_of(run->to)->specials != SFTI_WITH_INF;
    return (cli_losses){ sft_set_tensor_count(run->parts.sets[0]), loss_at, tensor_name, run,
                         as_nan };
}

void convert_warn_lost(const convert_run *run) {
    cli_losses losses = losses_of(run);
    cli_warn_lost(run->c, run->input, sft_dtype_describe(run->to)->name, &losses);
}

uint64_t convert_count_made(const convert_run *run) {
    const sft_conversion *conversion = run->conversion;
    uint64_t made = sft_conversion_count(conversion, SFT_CONVERT_CAST)
                    + sft_conversion_count(conversion, SFT_CONVERT_DEQUANTIZE);
    for (size_t i = 0; run->computed && i < sft_set_tensor_count(run->parts.sets[0]); i++) {
        sft_convert_action action = sft_conversion_action(conversion, i, NULL);
        made += run->computed[i] && sft_set_tensor_at(run->parts.sets[0], i)->dtype == run->to
             && (action == SFT_CONVERT_SAME || action == SFT_CONVERT_OTHER);
    }
    return made;
}

void convert_note_kept(const convert_run *run) {
    const sft_set *set = run->parts.sets[0];
    cli_out *err = &run->c->err;
    uint64_t count = sft_conversion_count(run->conversion, SFT_CONVERT_KEPT);
    uint64_t made = convert_count_made(run);
    size_t first = 0;
    if (count == 0 || (made > 0 && !cli_is_matching(&run->c->set))) return;
    while (sft_conversion_action(run->conversion, first, NULL) != SFT_CONVERT_KEPT) first++;
    cli_flush(&run->c->out);
    cli_text(err, "safetensors: note: ");
    cli_path(err, run->input, ": %" PRIu64 " tensor%s dtype (first: ", count,
             count == 1 ? " keeps its" : "s keep their");
    cli_quoted(err, sft_set_tensor_at(set, first)->name);
    cli_text(err, "): scalars, short vectors and magnitudes are cast only with --match and "
                  "--lossy\n");
    cli_flush(err);
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

/* The set that is written: tensors stay in their shards; empty shards are left out. */
static sft_code list_written(convert_run *run, bool folder, const char *path,
                             cli_written *out, sft_error *err) {
    const sft_set *set = run->parts.sets[0];
    sfti_arena *arena = &run->parts.arena;
    size_t shards = folder ? convert_shard_count(run) : 1;
    cli_written_file *files = sfti_arena_array(arena, shards, sizeof *files);
    if (!files) return sfti_fail_memory(err, shards * sizeof *files);
    memset(files, 0, shards * sizeof *files);
    for (size_t i = 0; i < sft_set_tensor_count(set); i++) {
        if (sft_conversion_action(run->conversion, i, NULL) == SFT_CONVERT_DROP) continue;
        size_t shard = run->shard_of ? run->shard_of[i] : sft_set_tensor_shard(set, i);
        cli_written_file *file = &files[folder ? shard : 0];
        file->tensors++;
        file->bytes += sft_conversion_bytes(run->conversion, i);
    }
    out->files = files;
    for (size_t s = 0; s < shards; s++)
        if (files[s].tensors > 0 || !folder) files[out->file_count++] = files[s];
    char stem[CLI_STEM_SIZE];
    const char *begin = folder ? cli_index_stem(sft_set_index_path(set), stem) : NULL;
    uint32_t count = (uint32_t)out->file_count;
    for (uint32_t i = 0; i < count; i++) {
        files[i].path = folder ? cli_output_shard(arena, path, begin, i, count) : path;
        if (!files[i].path) return sfti_fail_memory(err, strlen(path));
    }
    return SFT_OK;
}

sft_code convert_say(convert_run *run, bool folder, const char *path, sft_error *err) {
    cli_written written = CLI_WRITTEN_INIT;
    sft_code code = list_written(run, folder, path, &written, err);
    if (code) return code;
    written.input = run->input;
    written.output = path;
    written.is_set = written.file_count > 1; /* one file is written without an index */
    written.dtype = run->to;
    written.cast = convert_count_made(run);
    written.bytes_before = sft_conversion_bytes_before(run->conversion);
    written.more = convert_put_more;
    written.ctx = run;
    cli_say_written(run->c, &written);
    convert_warn_lost(run);
    return SFT_OK;
}

/* ── Imports: into one file, or into a folder ── */

size_t convert_shard_count(const convert_run *run) {
    return run->c->import ? sft_import_shard_count(run->c->import)
                          : sft_set_shard_count(run->parts.sets[0]);
}

static sft_span import_name(const void *ctx, uint32_t i) {
    return sft_import_part(ctx, i).spec.name;
}

/* Which tensor of the import each one of the set is; SFTI_NO_NAME: none. */
static sft_code find_imported(convert_run *run, uint32_t **out, sft_error *err) {
    const sft_import *import = run->c->import;
    size_t count = sft_import_tensor_count(import);
    sfti_arena work = { .alloc = run->c->alloc };
    sfti_names names;
    uint32_t *found = sfti_arena_array(&run->parts.arena, count, sizeof *found);
    if (!found || !sfti_names_draw(&names, count, import_name, import, &work)) {
        sfti_arena_free(&work);
        return sfti_fail_memory(err, count * sizeof *found);
    }
    for (uint32_t i = 0; i < count; i++) sfti_names_add(&names, import_name(import, i), i);
    for (size_t i = 0; i < count; i++) found[i] = sfti_names_find(&names, tensor_name(run, i));
    sfti_arena_free(&work);
    *out = found;
    return SFT_OK;
}

sft_code convert_import_shards(convert_run *run, sft_error *err) {
    const sft_import *import = run->c->import;
    sft_code code = find_imported(run, &run->shard_of, err);
    for (size_t i = 0; !code && i < sft_import_tensor_count(import); i++) {
        uint32_t at = run->shard_of[i];
        run->shard_of[i] = at == SFTI_NO_NAME ? 0 : (uint32_t)sft_import_shard(import, at);
    }
    return code;
}

sft_code convert_find_computed(convert_run *run, sft_error *err) {
    const sft_import *import = run->c->import;
    size_t count = import ? sft_import_tensor_count(import) : 0, computed = 0;
    uint32_t *at;
    for (size_t i = 0; i < count; i++) computed += sfti_import_is_computed(import, i);
    if (computed == 0) return SFT_OK;
    bool *out = sfti_arena_array(&run->parts.arena, count, sizeof *out);
    if (!out) return sfti_fail_memory(err, count * sizeof *out);
    sft_code code = find_imported(run, &at, err);
    for (size_t i = 0; !code && i < count; i++)
        out[i] = at[i] != SFTI_NO_NAME && sfti_import_is_computed(import, at[i])
              && (run->c->set.quantize || cli_casts_computed(run->c, tensor_name(run, i)));
    if (!code) run->computed = out;
    return code;
}

sft_code convert_import_mtimes(convert_run *run, size_t shards, const int64_t **out,
                               sft_error *err) {
    int64_t time = 0;
    if (!run->c->set.keep_mtime) return SFT_OK;
    int64_t *times = sfti_arena_array(&run->parts.arena, (uint64_t)shards + 1, sizeof *times);
    if (!times) return sfti_fail_memory(err, shards * sizeof *times);
    sft_code code = cli_output_mtime(run->c, run->input, &time, err);
    for (size_t s = 0; s <= shards; s++) times[s] = time;
    *out = times;
    return code;
}

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
    code = cli_check_adapter_config(run->c, p->opened, p->set_count, NULL, err);
    /* shards without any tensor (all of them are aliases) are not written */
    if (!code && !cli_renumber(&p->arena, p->shard, p->count, shards, &used))
        code = sfti_fail_memory(err, shards);
    if (!code && !c->set.dry_run) {
        cli_progress progress;
        sft_save_set_options options = SFT_SAVE_SET_OPTIONS_INIT;
        options.no_sync = c->set.no_sync != 0;
        options.in_place_unsafe = c->set.in_place_unsafe != 0;
        options.mode = sft_set_output_mode(run->parts.sets[0], NULL);
        code = convert_import_mtimes(run, used, &options.mtimes_ns, err);
        sft_job job = cli_progress_begin(&progress, run->c, c->set.output);
        if (!code) code = sft_import_verify(c->import, &job, err);
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

sft_code convert_save_import(convert_run *run, const sft_job *job, sft_error *err) {
    sft_save_set_options options = SFT_SAVE_SET_OPTIONS_INIT;
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    const cli *c = run->c;
    const sft_set *set = run->parts.sets[0];
    sfti_arena *arena = &run->parts.arena;
    size_t tensors = sft_set_tensor_count(set), count = 0;
    uint32_t used;
    sft_part *parts = sfti_arena_array(arena, tensors, sizeof *parts);
    uint32_t *shard = sfti_arena_array(arena, tensors, sizeof *shard);
    if (!parts || !shard) return sfti_fail_memory(err, tensors * sizeof *parts);
    for (size_t i = 0; i < tensors; i++) {
        if (sft_conversion_action(run->conversion, i, NULL) == SFT_CONVERT_DROP) continue;
        shard[count] = run->shard_of[i];
        parts[count++] = sft_conversion_part(run->conversion, i);
    }
    if (!cli_renumber(arena, shard, count, convert_shard_count(run), &used))
        return sfti_fail_memory(err, count * sizeof *shard);
    plan.pair_at = sfti_conversion_pair;
    plan.pair_ctx = run->conversion;
    plan.alloc = &c->alloc;
    options.plan = &plan;
    options.no_sync = c->set.no_sync != 0;
    options.in_place_unsafe = c->set.in_place_unsafe != 0;
    options.mode = sft_set_output_mode(set, NULL);
    sft_code code = convert_import_mtimes(run, used, &options.mtimes_ns, err);
    return code ? code
                : sft_save_set(c->set.output, parts, shard, count, used, NULL,
                               sfti_conversion_pairs(run->conversion), &options, job, err);
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
    cli_say_import(c, run->input, import, false);
}

/* They choose or name what another format has. In folders of all formats they are for the
 * others. */
const char *convert_import_option(const cli_settings *set) {
    return set->list_branches ? "--list" : set->recursive ? NULL
         : set->root ? "--root" : set->all ? "--all" : set->as_dtypes.count > 0 ? "--as"
         : set->strip_prefix ? "--strip-prefix" : set->separator ? "--separator"
         : set->quantised != SFT_IMPORT_SPECIAL_REFUSE ? "--quantised"
         : set->sparse != SFT_IMPORT_SPECIAL_REFUSE ? "--sparse"
         : set->scalars ? "--scalars" : NULL;
}
