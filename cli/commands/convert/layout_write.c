/* convert --layout diffusers|comfy: the folder. Tests: tests/cli/layout. */
#include "base/number.h"
#include "base/sink.h"
#include "commands/convert/layout.h"
#include "keys/digest_keys.h"
#include "os/io.h"
#include "support/files.h"
#include "support/words.h"

#include <errno.h>
#include <string.h>

/* ── Metadata ── */

static bool is_renamed(const layout_run *run) {
    for (size_t i = 0; i < run->groups.count; i++)
        if (run->groups.items[i].part && run->groups.items[i].side != run->to) return true;
    return false;
}

/* Those of the files, `format` for transformers, and the prefix that the names had. */
sft_code layout_metadata(layout_run *run, const sfti_layout_group *one, sft_error *err) {
    cli_parts *p = &run->parts;
    size_t count = 0;
    p->pairs = NULL;
    p->changed = true;
    sft_code code = cli_parts_drop_digests(run->c, p, true, err);
    sft_pair *pairs = sfti_arena_array(&p->arena, (uint64_t)p->metadata_count + 3, sizeof *pairs);
    if (!code && !pairs) code = sfti_fail_memory(err, p->metadata_count * sizeof *pairs);
    if (code) return code;
    bool format = false;
    for (size_t i = 0; i < p->metadata_count; i++) {
        sft_pair pair = cli_parts_pair(p, i);
        if (cli_is(pair.key, SFTI_LAYOUT_PREFIX_KEY) || cli_is(pair.key, SFTI_LAYOUT_PART_KEY))
            continue;
        if (cli_is(pair.key, SFTI_DECLARED_KEY) && is_renamed(run))
            return sfti_fail(err, SFT_SIZE_MISMATCH,
                             "expected a model that is not quantised, found "
                             "%.*s, which names layers as they were; safetensors convert "
                             "--dequantize first", SFTI_CLIP(pair.key, 40));
        format = format || cli_is(pair.key, "format");
        pairs[count++] = pair;
    }
    if (!run->single && !format)
        pairs[count++] = (sft_pair){ sft_span_cstr("format"), sft_span_cstr("pt") };
    if (one && one->side == SFTI_ORIGINAL && one->prefix.len > 0)
        pairs[count++] = (sft_pair){ sft_span_cstr(SFTI_LAYOUT_PREFIX_KEY), one->prefix };
    if (one && one->side == SFTI_ORIGINAL && run->to == SFTI_DIFFUSERS
        && sfti_layout_is_variant(&run->layouts, one->part))
        pairs[count++] = (sft_pair){ sft_span_cstr(SFTI_LAYOUT_PART_KEY), one->part->id };
    run->pairs = pairs;
    run->pair_count = count;
    return SFT_OK;
}

/* ── Files ── */

typedef struct layout_files {
    layout_run *run;
    cli_written_file *files;
    char **made; /* files and folders, to be removed again after a failure */
    bool *is_folder;
    size_t count, made_count, most;
} layout_files;

static char *joined(layout_files *f, sft_span folder, sft_span name) {
    char *text = sfti_arena_copy(&f->run->parts.arena, name.data, name.len);
    return text ? cli_join_path(&f->run->parts.arena, folder, text) : NULL;
}

static sft_code make_folder(layout_files *f, char *path, sft_error *err) {
    if (!path) return sfti_fail_memory(err, 1);
    int error = sfti_os_make_folder(path, 0);
    if (error == EEXIST) return SFT_OK;
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "make the folder");
    f->is_folder[f->made_count] = true;
    f->made[f->made_count++] = path;
    return SFT_OK;
}

static sft_code write_text(layout_files *f, char *path, const sft_buffer *text, sft_error *err) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_sink sink;
    if (!path) return sfti_fail_memory(err, 1);
    options.no_sync = f->run->c->set.no_sync != 0;
    options.no_clobber = true;
    options.in_place_unsafe = f->run->c->set.in_place_unsafe != 0;
    sft_code code = sft_sink_path(path, &options, &sink, err);
    if (!code) code = sfti_sink_fill(&sink, (sft_span){ text->data, text->len }, err);
    if (!code) f->made[f->made_count++] = path;
    return code;
}

static int any_entry(void *ctx, const char *name, os_kind kind) {
    (void)ctx, (void)name, (void)kind;
    return 1;
}

/* A folder of one component: its shards, their index, config.json. */
static sft_code write_component(layout_files *f, sfti_layout_group *one, const sft_job *job,
                                sft_error *err) {
    layout_run *run = f->run;
    cli *c = run->c;
    sft_span root = sft_span_cstr(c->set.output);
    bool text = one->name.len > 4 && memcmp(one->name.data, "text", 4) == 0;
    const char *stem = run->comfy ? sfti_arena_copy(&run->parts.arena, one->name.data,
                                                    one->name.len)
                     : text ? "model" : "diffusion_pytorch_model";
    char *folder = joined(f, root, run->comfy ? one->part->comfy : one->name);
    uint32_t *shard = sfti_arena_array(&run->parts.arena, one->made, sizeof *shard), shards = 0;
    if (!shard || !folder || !stem) return sfti_fail_memory(err, one->made * sizeof *shard);
    const sft_part *parts = run->out.parts + one->first;
    memset(shard, 0, one->made * sizeof *shard);
    sft_code code = run->comfy ? SFT_OK
                  : sft_cut_parts(parts, one->made, run->max_bytes, shard, &shards, err);
    if (run->comfy) shards = 1;
    if (!code) code = layout_metadata(run, one, err);
    for (uint32_t s = 0; !code && s < shards; s++) {
        char *path = cli_output_shard(&run->parts.arena, folder, stem, s, shards);
        if (!path) return sfti_fail_memory(err, 1);
        f->files[f->count++] = cli_written_parts(path, parts, one->made, shard, s);
    }
    sft_buffer config = { .alloc = c->alloc };
    one->has_config = run->to == SFTI_DIFFUSERS
                   && sfti_layout_config(&run->layouts, run->exact, one, &run->out, &config);
    if (!code && !c->set.dry_run) {
        sft_save_set_options options = SFT_SAVE_SET_OPTIONS_INIT;
        sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
        plan.alloc = &c->alloc;
        options.stem = stem;
        options.no_sync = c->set.no_sync != 0;
        options.in_place_unsafe = c->set.in_place_unsafe != 0;
        options.plan = &plan;
        run->blame = folder;
        if (run->comfy) {
            sft_sink sink;
            sft_path_options how = SFT_PATH_OPTIONS_INIT;
            how.no_sync = options.no_sync;
            how.no_clobber = true;
            how.in_place_unsafe = options.in_place_unsafe;
            code = make_folder(f, folder, err);
            char *path = cli_output_shard(&run->parts.arena, folder, stem, 0, 1);
            if (!code && !path) code = sfti_fail_memory(err, 1);
            if (!code) code = sft_sink_path(path, &how, &sink, err);
            if (!code) code = sft_save_parts(parts, one->made, run->pairs, run->pair_count, &plan,
                                             sink, job, err);
            if (!code) f->made[f->made_count++] = path;
        } else {
            code = sft_save_set(folder, parts, shard, one->made, shards, run->pairs,
                                run->pair_count, &options, job, err);
            if (!code) {
                f->is_folder[f->made_count] = true;
                f->made[f->made_count++] = folder;
                for (uint32_t s = 0; s <= shards && !(shards == 1 && s == 1); s++)
                    f->made[f->made_count++] = cli_output_shard(&run->parts.arena, folder, stem, s,
                                                                shards);
                if (one->has_config)
                    code = write_text(f, joined(f, sft_span_cstr(folder),
                                                sft_span_cstr("config.json")), &config, err);
            }
        }
    }
    sft_buffer_free(&config);
    return code;
}

/* 1. The folder, which is new or empty.
 * 2. Component by component: shards, index, config.json.
 * 3. model_index.json, which marks the whole as complete.
 * A failure removes all that was written so far. */
sft_code layout_write(layout_run *run, cli_written *written, sft_error *err) {
    cli *c = run->c;
    layout_files f = { .run = run };
    cli_progress progress;
    char *root = sfti_arena_copy(&run->parts.arena, c->set.output, strlen(c->set.output));
    f.most = (run->out.count + SFTI_LAYOUT_GROUPS) * 2 + 8;
    f.files = sfti_arena_array(&run->parts.arena, f.most, sizeof *f.files);
    f.made = sfti_arena_array(&run->parts.arena, f.most, sizeof *f.made);
    f.is_folder = sfti_arena_array(&run->parts.arena, f.most, sizeof *f.is_folder);
    if (!root || !f.files || !f.made || !f.is_folder) return sfti_fail_memory(err, f.most);
    memset(f.is_folder, 0, f.most * sizeof *f.is_folder);
    run->blame = root;
    sft_code code = SFT_OK;
    int listed = sfti_os_list(root, any_entry, NULL);
    if (listed && listed != ENOENT) {
        code = sfti_fail(err, SFT_EXISTS, "expected a new or empty folder, found %s",
                         listed == ENOTDIR ? "a file" : "files in it");
        err->hint = SFT_HINT_NEW_FOLDER;
    }
    if (!code && !c->set.dry_run) code = make_folder(&f, root, err);
    sft_job job = cli_progress_begin(&progress, c, c->set.output);
    for (size_t i = 0; i < run->out.count; i++)
        progress.all += sfti_layout_bytes(&run->out.parts[i].spec);
    for (size_t i = 0; !code && i < run->groups.count; i++) {
        sfti_layout_group *one = &run->groups.items[i];
        if (!one->part || one->made == 0) continue;
        code = write_component(&f, one, &job, err);
        for (size_t k = 0; k < one->made; k++)
            progress.before += sfti_layout_bytes(&run->out.parts[one->first + k].spec);
    }
    cli_progress_end(&progress);
    if (!code && run->to == SFTI_DIFFUSERS && run->exact && !c->set.dry_run) {
        sft_buffer text = { .alloc = c->alloc };
        code = sfti_layout_index(&run->layouts, run->exact, &run->groups, &run->out, &text, err);
        if (!code) code = write_text(&f, joined(&f, sft_span_cstr(root),
                                                sft_span_cstr("model_index.json")), &text, err);
        sft_buffer_free(&text);
    }
    while (code && f.made_count-- > 0) {
        char *path = f.made[f.made_count];
        if (!path) continue;
        if (f.is_folder[f.made_count]) (void)sfti_os_remove_folder(path);
        else (void)sfti_os_unlink(path);
    }
    written->files = f.files;
    written->file_count = f.count;
    written->is_set = f.count > 1;
    return code;
}
