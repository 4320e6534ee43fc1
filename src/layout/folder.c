/* A model as a folder of diffusers or ComfyUI. Tests: test_layout_public.c, tests/cli/layout. */
#include "layout/conversion.h"

#include "base/error.h"
#include "base/files.h"
#include "base/job.h"
#include "base/options.h"
#include "base/sink.h"
#include "os/io.h"
#include "os/path.h"
#include "safetensors_report.h"

#include <errno.h>
#include <string.h>

#define STEM_MOST 512
#define SHARD_BYTES UINT64_C(10000000000) /* as diffusers */

static char *path_in(sfti_arena *arena, const char *folder, sft_span name, char joint) {
    char *first = sfti_arena_join(arena, sft_span_cstr(folder), (sft_span){ &joint, joint != 0 });
    return first ? sfti_arena_join(arena, sft_span_cstr(first), name) : NULL;
}

static char *path_on_host(sfti_arena *arena, const char *folder, const char *name) {
    return path_in(arena, folder, sft_span_cstr(name), sfti_path_joint(sft_span_cstr(folder)));
}

/* ── What is to be written ── */

/* A component's folder, how its files begin, the shards of its tensors. */
typedef struct layout_shards {
    const char *folder, *stem;
    uint32_t *shard, count;
} layout_shards;

static sft_code cut_component(sft_layout_conversion *run, const sfti_layout_group *one,
                              layout_shards *out, sft_error *err) {
    bool comfy = run->options.to == SFT_LAYOUT_COMFY;
    bool text = one->name.len > 4 && memcmp(one->name.data, "text", 4) == 0;
    sft_span folder = comfy ? one->part->comfy : one->name;
    out->folder = sfti_arena_copy(&run->arena, folder.data, folder.len);
    out->stem = comfy ? sfti_arena_copy(&run->arena, one->name.data, one->name.len)
              : text ? "model" : "diffusion_pytorch_model";
    out->shard = sfti_arena_array(&run->arena, one->made, sizeof *out->shard);
    out->count = 1;
    if (!out->folder || !out->stem || !out->shard)
        return sfti_fail_memory(err, one->made * sizeof *out->shard);
    memset(out->shard, 0, one->made * sizeof *out->shard);
    uint64_t most = run->options.max_bytes ? run->options.max_bytes : SHARD_BYTES;
    return comfy ? SFT_OK
                 : sft_cut_parts(run->out.parts + one->first, one->made, most, out->shard,
                                 &out->count, err);
}

static char *component_shard(sfti_arena *arena, const layout_shards *of, uint32_t i) {
    char name[STEM_MOST];
    size_t len = sft_shard_name(of->stem, i, of->count, name, sizeof name);
    return len < sizeof name ? path_in(arena, of->folder, (sft_span){ name, len }, '/') : NULL;
}

static bool is_written(const sfti_layout_group *one) { return one->part && one->made > 0; }

sft_code sfti_layout_list_files(sft_layout_conversion *run, sft_error *err) {
    size_t room = run->out.count + run->component_count + 1;
    run->files = sfti_arena_array(&run->arena, room, sizeof *run->files);
    if (!run->files) return sfti_fail_memory(err, room * sizeof *run->files);
    for (size_t i = 0; i < run->component_count; i++) {
        const sfti_layout_group *one = run->component_groups[i];
        layout_shards cut;
        if (!is_written(one)) continue;
        sft_code code = cut_component(run, one, &cut, err);
        if (code) return code;
        sft_layout_file *first = &run->files[run->file_count];
        for (uint32_t s = 0; s < cut.count; s++) {
            sft_layout_file *file = &run->files[run->file_count++];
            *file = (sft_layout_file){ .path = component_shard(&run->arena, &cut, s) };
            if (!file->path) return sfti_fail_memory(err, STEM_MOST);
        }
        for (size_t k = 0; k < one->made; k++) {
            first[cut.shard[k]].tensors++;
            first[cut.shard[k]].bytes += sfti_layout_bytes(&run->out.parts[one->first + k].spec);
        }
        if (run->components[i].config.len == 0) continue;
        sft_layout_file *config = &run->files[run->file_count++];
        *config = (sft_layout_file){ path_in(&run->arena, cut.folder,
                                             sft_span_cstr("config.json"), '/'), 0,
                                     run->components[i].config.len };
        if (!config->path) return sfti_fail_memory(err, STEM_MOST);
    }
    if (run->told.index.len > 0)
        run->files[run->file_count++] = (sft_layout_file){ "model_index.json", 0,
                                                           run->told.index.len };
    return SFT_OK;
}

static int any_entry(void *ctx, const char *name, os_kind kind) {
    (void)ctx, (void)name, (void)kind;
    return 1;
}

static sft_code check_folder(const char *folder, sft_error *err) {
    int listed = sfti_os_list(folder, any_entry, NULL);
    if (!listed || listed == ENOENT) return SFT_OK;
    sft_code code = sfti_fail(err, SFT_EXISTS, "expected a new or empty folder, found %s",
                              listed == ENOTDIR ? "a file" : "files in it");
    sfti_hint(err, SFT_HINT_NEW_FOLDER);
    return code;
}

/* ── Writing ── */

typedef struct layout_writer {
    sft_layout_conversion *run;
    sfti_arena arena;
    const char *root;
    sft_save_set_options options;
    const int64_t *mtime; /* of all files, or NULL */
    char **made; /* files and folders, to be removed again after a failure */
    bool *is_folder;
    size_t made_count;
} layout_writer;

static void note_made(layout_writer *w, char *path, bool folder) {
    w->is_folder[w->made_count] = folder;
    w->made[w->made_count++] = path;
}

static sft_code make_folder(layout_writer *w, char *path, sft_error *err) {
    if (!path) return sfti_fail_memory(err, 1);
    int error = sfti_os_make_folder(path, 0);
    if (error == EEXIST) return SFT_OK;
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "make the folder");
    note_made(w, path, true);
    return SFT_OK;
}

static sft_code open_new(layout_writer *w, char *path, sft_sink *sink, sft_error *err) {
    sft_path_options how = SFT_PATH_OPTIONS_INIT;
    if (!path) return sfti_fail_memory(err, 1);
    how.no_sync = w->options.no_sync;
    how.in_place_unsafe = w->options.in_place_unsafe;
    how.mode = w->options.mode;
    how.no_clobber = true;
    how.has_mtime = w->mtime != NULL;
    if (w->mtime) how.mtime_ns = *w->mtime;
    how.alloc = &w->run->alloc;
    return sft_sink_path(path, &how, sink, err);
}

static sft_code write_text(layout_writer *w, char *path, sft_span text, sft_error *err) {
    sft_sink sink;
    sft_code code = open_new(w, path, &sink, err);
    if (!code) code = sfti_sink_fill(&sink, text, err);
    if (!code) note_made(w, path, false);
    return code;
}

/* Those of the files, the prefix that the names had and, for diffusers, the part that it was. */
static size_t component_pairs(sft_layout_conversion *run, const sfti_layout_group *one) {
    size_t count = run->pair_count;
    for (size_t i = 0; i < run->alias_count; i++)
        if (run->aliases[i].of == one) run->pairs[count++] = run->aliases[i].pair;
    if (one->side != SFTI_ORIGINAL) return count;
    if (one->prefix.len > 0)
        run->pairs[count++] = (sft_pair){ sft_span_cstr(SFTI_LAYOUT_PREFIX_KEY), one->prefix };
    if (run->to == SFTI_DIFFUSERS && sfti_layout_is_variant(&run->layouts, one->part))
        run->pairs[count++] = (sft_pair){ sft_span_cstr(SFTI_LAYOUT_PART_KEY), one->part->id };
    return count;
}

/* One time per shard, and one for the index. */
static sft_code repeat_mtime(layout_writer *w, uint32_t shards, const int64_t **out,
                             sft_error *err) {
    if (!w->mtime) return SFT_OK;
    int64_t *times = sfti_arena_array(&w->arena, (uint64_t)shards + 1, sizeof *times);
    if (!times) return sfti_fail_memory(err, shards * sizeof *times);
    for (uint32_t s = 0; s <= shards; s++) times[s] = *w->mtime;
    *out = times;
    return SFT_OK;
}

/* A folder of one component: its shards, their index, config.json. */
static sft_code write_component(layout_writer *w, size_t i, const sft_job *job, sft_error *err) {
    sft_layout_conversion *run = w->run;
    const sfti_layout_group *one = run->component_groups[i];
    const sft_part *parts = run->out.parts + one->first;
    sft_span config = run->components[i].config;
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    layout_shards cut;
    sft_sink sink;
    sft_code code = cut_component(run, one, &cut, err);
    char *folder = code ? NULL : path_on_host(&w->arena, w->root, cut.folder);
    size_t pairs = component_pairs(run, one);
    if (!code && !folder) code = sfti_fail_memory(err, 1);
    if (code) return code;
    plan.alloc = &run->alloc;
    if (run->options.to == SFT_LAYOUT_COMFY) {
        char name[STEM_MOST];
        size_t len = sft_shard_name(cut.stem, 0, 1, name, sizeof name);
        char *path = len < sizeof name ? path_on_host(&w->arena, folder, name) : NULL;
        code = make_folder(w, folder, err);
        if (!code) code = open_new(w, path, &sink, err);
        if (!code)
            code = sft_save_parts(parts, one->made, run->pairs, pairs, &plan, sink, job, err);
        if (!code) note_made(w, path, false);
        return code;
    }
    sft_save_set_options how = w->options;
    code = repeat_mtime(w, cut.count, &how.mtimes_ns, err);
    if (code) return code;
    how.stem = cut.stem;
    how.plan = &plan;
    code = sft_save_set(folder, parts, cut.shard, one->made, cut.count, run->pairs, pairs, &how,
                        job, err);
    if (code) return code;
    note_made(w, folder, true);
    for (uint32_t s = 0; s <= cut.count && !(cut.count == 1 && s == 1); s++) {
        char name[STEM_MOST];
        size_t len = sft_shard_name(cut.stem, s, cut.count, name, sizeof name);
        note_made(w, len < sizeof name ? path_on_host(&w->arena, folder, name) : NULL, false);
    }
    return config.len ? write_text(w, path_on_host(&w->arena, folder, "config.json"), config, err)
                      : SFT_OK;
}

/* Nothing becomes readable that was not. */
static uint32_t mode_of_sets(const sft_layout_conversion *run) {
    uint32_t mode = 0;
    for (size_t i = 0; i < run->set_count; i++)
        sfti_mode_common(&mode, sft_set_output_mode(run->sets[i], NULL));
    return mode;
}

static uint64_t bytes_of_group(const sft_layout_conversion *run, const sfti_layout_group *one) {
    uint64_t bytes = 0;
    for (size_t k = 0; k < one->made; k++)
        bytes += sfti_layout_bytes(&run->out.parts[one->first + k].spec);
    return bytes;
}

/* 1. The folder, which is new or empty.
 * 2. Component by component: shards, index, config.json.
 * 3. model_index.json, which marks the whole as complete.
 * A failure removes all that was written so far. */
static sft_code write_folder(layout_writer *w, const sft_job *job, sft_error *err) {
    sft_layout_conversion *run = w->run;
    size_t most = (run->out.count + SFTI_LAYOUT_GROUPS) * 2 + 8;
    uint64_t total = 0;
    sfti_stages stages;
    char *root = sfti_arena_copy(&w->arena, w->root, strlen(w->root));
    w->made = sfti_arena_array(&w->arena, most, sizeof(char *));
    w->is_folder = sfti_arena_array(&w->arena, most, sizeof *w->is_folder);
    if (!root || !w->made || !w->is_folder) return sfti_fail_memory(err, most);
    for (size_t i = 0; i < run->component_count; i++)
        total += bytes_of_group(run, run->component_groups[i]);
    sfti_stages_begin(&stages, job, total);
    sft_code code = check_folder(root, err);
    if (!code) code = make_folder(w, root, err);
    for (size_t i = 0; !code && i < run->component_count; i++) {
        if (!is_written(run->component_groups[i])) continue;
        code = write_component(w, i, &stages.job, err);
        stages.done += bytes_of_group(run, run->component_groups[i]);
    }
    if (!code && run->told.index.len > 0)
        code = write_text(w, path_on_host(&w->arena, root, "model_index.json"), run->told.index,
                          err);
    while (code && w->made_count-- > 0) {
        char *path = w->made[w->made_count];
        if (!path) continue;
        if (w->is_folder[w->made_count]) (void)sfti_os_remove_folder(path);
        else (void)sfti_os_unlink(path);
    }
    return code;
}

static SFTI_OPTIONS_TAKE(take_folder, sft_save_set_options, SFT_SAVE_SET_OPTIONS_INIT, plan)

sft_code sft_layout_conversion_save_folder(sft_layout_conversion *run, const char *folder,
                                           const sft_save_set_options *options,
                                           const sft_job *job, sft_error *err) {
    sft_save_set_options given;
    sft_job own;
    sft_code code = sfti_take_job(job, &own, err);
    if (!code) code = take_folder(options, &given, err);
    if (code) return code;
    if (!run || !folder) return sfti_misuse(err, "expected a conversion and a folder, found NULL");
    if (run->options.to == SFT_LAYOUT_SINGLE)
        return sfti_misuse(err, "expected a layout of folders, found that of a single file");
    code = sfti_layout_check_matched(run, err);
    if (code) return code;
    layout_writer w = { .run = run, .arena = { .alloc = run->alloc }, .root = folder,
                        .options = SFT_SAVE_SET_OPTIONS_INIT, .mtime = given.mtimes_ns };
    w.options.no_sync = given.no_sync;
    w.options.in_place_unsafe = given.in_place_unsafe;
    w.options.mode = given.mode ? given.mode : mode_of_sets(run);
    code = write_folder(&w, &own, err);
    sfti_arena_free(&w.arena);
    return code;
}
