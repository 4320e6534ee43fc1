/* Writing a model as one file or several. Tests: test_save.c. */
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/number.h"
#include "base/options.h"
#include "base/order.h"
#include "base/portable.h"
#include "base/sink.h"
#include "base/utf8.h"
#include "os/io.h"
#include "os/os.h"
#include "os/path.h"
#include "set/set.h"
#include "safetensors_report.h"

#include <errno.h>
#include <string.h>

#define SAVE_PATH 4096

/* A model being written as one file or several. */
typedef struct set_save {
    const char *folder, *stem;
    const sft_part *parts;
    const uint32_t *shard_of;
    size_t count;
    uint32_t shards, published; /* published: files, including the index */
    const sft_pair *metadata;
    size_t metadata_count;
    sft_save_set_options options;
    sft_plan_options plan;
    sft_allocator alloc;
    sfti_arena arena;
    sft_part *some;  /* the current shard's parts, if they are not contiguous in parts */
    uint32_t *order; /* parts by name, with more than one shard */
    sft_job job;
    uint64_t done, total;
    bool made; /* the folder was created here */
    char path[SAVE_PATH];
} set_save;

/* ── Names ── */

/* Appends what fits in out[cap]; *len counts all of it. */
static void name_put(char *out, size_t cap, size_t *len, const char *text, size_t text_len) {
    for (size_t i = 0; i < text_len; i++, ++*len) {
        if (*len + 1 < cap) out[*len] = text[i];
    }
}

/* Five digits, or more if the number needs them. */
static void name_put_number(char *out, size_t cap, size_t *len, uint32_t value) {
    char digits[SFTI_UINT_SIZE];
    name_put(out, cap, len, digits, sfti_uint_text(value, 5, digits));
}

size_t sft_shard_name(const char *stem, uint32_t i, uint32_t n, char *out, size_t cap) {
    size_t len = 0;
    if (!stem) stem = "model";
    name_put(out, cap, &len, stem, strlen(stem));
    if (i < n && n > 1) {
        name_put(out, cap, &len, "-", 1);
        name_put_number(out, cap, &len, i + 1);
        name_put(out, cap, &len, "-of-", 4);
        name_put_number(out, cap, &len, n);
    }
    name_put(out, cap, &len, ".safetensors", 12);
    if (i >= n) name_put(out, cap, &len, ".index.json", 11);
    if (cap > 0) out[len < cap ? len : cap - 1] = '\0';
    return len;
}

/* Path of a shard, or of the index; save_check made sure that it fits. */
static const char *save_path(set_save *s, uint32_t i) {
    size_t len = strlen(s->folder);
    memcpy(s->path, s->folder, len);
    char joint = sfti_path_joint(sft_span_cstr(s->folder));
    if (joint) s->path[len++] = joint;
    (void)sft_shard_name(s->stem, i, s->shards, s->path + len, sizeof s->path - len);
    return s->path;
}

/* ── Files ── */

void sfti_mode_restrict(uint32_t *mode, const char *path) {
    os_info info;
    if (!path || sfti_os_info_path(path, true, &info) || info.kind != OS_FILE) return;
    sfti_mode_common(mode, info.mode & 0777 ? info.mode & 0777 : 0600);
}

static void restrict_to(uint32_t *mode, const sft_set *set, const char *path) {
    if (path && !sfti_files_claim(set->from, path, NULL)) sfti_mode_restrict(mode, path);
}

uint32_t sft_set_output_mode(const sft_set *set, const char *path) {
    uint32_t mode = 0;
    restrict_to(&mode, set, set->index_path);
    for (size_t i = 0; i < set->shard_count; i++) {
        restrict_to(&mode, set, set->paths[i]);
        if (!set->files[i]) continue;
        sft_source source = sft_file_source(set->files[i]);
        sfti_mode_common(&mode, sft_source_mode(&source));
    }
    if (mode) sfti_mode_restrict(&mode, path);
    return mode;
}

/* Options for file i; the index comes after the shards. */
static sft_path_options save_path_options(const set_save *s, uint32_t i) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    options.no_sync = s->options.no_sync;
    options.no_clobber = true;
    options.in_place_unsafe = s->options.in_place_unsafe;
    options.mode = s->options.mode;
    options.has_mtime = s->options.mtimes_ns != NULL;
    if (options.has_mtime) options.mtime_ns = s->options.mtimes_ns[i];
    options.alloc = &s->alloc;
    return options;
}

static bool save_tick(void *ctx, uint64_t done, uint64_t total) {
    const set_save *s = ctx;
    (void)total;
    return s->job.tick(s->job.ctx, s->done + done, s->total);
}

/* The shard's parts, copied only if parts of other shards lie between them. */
static sft_code save_gather(set_save *s, uint32_t shard, const sft_part **parts, size_t *count,
                            sft_error *err) {
    size_t first = 0, end = 0, at = 0;
    *count = 0;
    for (size_t i = 0; i < s->count; i++) {
        if (s->shard_of[i] != shard) continue;
        if (*count == 0) first = i;
        end = i + 1;
        ++*count;
    }
    *parts = *count > 0 ? s->parts + first : s->parts;
    if (end - first == *count) return SFT_OK;
    if (!s->some) s->some = sfti_arena_array(&s->arena, s->count, sizeof *s->some);
    if (!s->some) return sfti_fail_memory(err, s->count * sizeof *s->some);
    for (size_t i = first; i < end; i++)
        if (s->shard_of[i] == shard) s->some[at++] = s->parts[i];
    *parts = s->some;
    return SFT_OK;
}

static sft_code save_shard(set_save *s, uint32_t shard, sft_error *err) {
    sft_path_options options = save_path_options(s, shard);
    sft_job job = SFT_JOB_INIT;
    sft_sink sink;
    const sft_part *parts;
    size_t count;
    uint64_t bytes = 0;
    sft_code code = save_gather(s, shard, &parts, &count, err);
    if (!code) code = sft_sink_path(save_path(s, shard), &options, &sink, err);
    if (code) return code;
    for (size_t i = 0; i < count; i++) bytes += sfti_part_bytes(&parts[i]);
    if (s->job.tick) job.tick = save_tick;
    job.ctx = s;
    code = sft_save_parts(parts, count, s->metadata, s->metadata_count, &s->plan, sink,
                          &job, err);
    s->done += bytes;
    s->published += !code;
    return code;
}

/* ── The index, as json.dumps(index, indent=2, sort_keys=True) lays it out ── */

static void save_index_text(sfti_json_writer *w, const char *text) {
    w->comma = false;
    sfti_json_raw(w, sft_span_cstr(text));
    w->comma = false;
}

static void save_index_total(set_save *s, sfti_json_writer *w) {
    save_index_text(w, "\"total_size\": ");
    sfti_json_uint(w, s->total);
}

/* The members that are kept, in their order; total_size in its old position, or last. */
static void save_index_metadata(set_save *s, sfti_json_writer *w) {
    sft_span text = s->options.index_metadata;
    sfti_json json;
    bool met = false, any = false;
    sfti_json_begin(&json, text.data ? text.data : "", text.len);
    bool object = sfti_json_next(&json) == SFTI_JSON_OBJECT;
    while (object && sfti_json_next(&json) == SFTI_JSON_KEY) {
        /* As spelled, quotes and all. */
        sft_span key = { json.begin + json.start, json.text.len + 2 };
        char room[SFTI_JSON_WORD];
        bool total = sft_span_equal(sfti_json_word(&json, room), sft_span_cstr("total_size"));
        (void)sfti_json_next(&json);
        const char *value = json.begin + json.start;
        (void)sfti_json_skip(&json);
        if (total && met) continue;
        save_index_text(w, any ? ",\n    " : "\n    ");
        any = true;
        met = met || total;
        if (total) {
            save_index_total(s, w);
            continue;
        }
        sfti_json_raw(w, key);
        save_index_text(w, ": ");
        sfti_json_raw(w, (sft_span){ value, (size_t)(json.at - value) });
    }
    if (met) return;
    save_index_text(w, any ? ",\n    " : "\n    ");
    save_index_total(s, w);
}

static sft_code save_index(set_save *s, sft_error *err) {
    sft_path_options options = save_path_options(s, s->shards);
    sfti_json_writer w;
    sft_sink sink;
    sft_code code = sft_sink_path(save_path(s, s->shards), &options, &sink, err);
    if (code) return code;
    sfti_json_write(&w, &sink, 0, err);
    save_index_text(&w, "{\n  \"metadata\": {");
    save_index_metadata(s, &w);
    save_index_text(&w, "\n  },\n  \"weight_map\": {");
    for (size_t i = 0; i < s->count && !w.code; i++) {
        uint32_t part = s->order[i];
        char name[SAVE_PATH];
        (void)sft_shard_name(s->stem, s->shard_of[part], s->shards, name, sizeof name);
        save_index_text(&w, i > 0 ? ",\n    " : "\n    ");
        sfti_json_span(&w, s->parts[part].spec.name);
        save_index_text(&w, ": ");
        sfti_json_cstr(&w, name);
    }
    save_index_text(&w, s->count > 0 ? "\n  }\n}\n" : "}\n}\n");
    code = sfti_sink_end(&sink, sfti_json_done(&w), err);
    s->published += !code;
    return code;
}

/* ── The folder ── */

static int save_any_entry(void *ctx, const char *name, os_kind kind) {
    (void)name, (void)kind;
    *(bool *)ctx = true;
    return -1;
}

/* Creates the folder, or checks that it is empty. */
static sft_code save_begin(set_save *s, sft_error *err) {
    bool found = false;
    int error = sfti_os_make_folder(s->folder, 0777);
    s->made = error == 0;
    if (s->made) return SFT_OK;
    if (error != EEXIST) return sfti_io_fail(err, SFT_IO_OPEN, error, "make the folder");
    error = sfti_os_list(s->folder, save_any_entry, &found);
    if (found || error == ENOTDIR) {
        sfti_fail(err, SFT_EXISTS, "expected a new or empty folder, found %s",
                  found ? "files in it" : "a file");
        sfti_hint(err, SFT_HINT_NEW_FOLDER);
        return SFT_EXISTS;
    }
    return error ? sfti_io_fail(err, SFT_IO_OPEN, error, "list the folder") : SFT_OK;
}

/* ── All together ── */

static int compare_part_names(const void *ctx, uint32_t a, uint32_t b) {
    const sft_part *parts = ctx;
    return sfti_bytes_compare(parts[a].spec.name, parts[b].spec.name);
}

static sft_code save_order(set_save *s, sft_error *err) {
    s->order = sfti_arena_sorted(&s->arena, s->count, compare_part_names, s->parts);
    if (!s->order) return sfti_fail_memory(err, s->count * sizeof *s->order);
    /* The plan of one shard cannot see a name that another shard has too. */
    for (size_t i = 1; i < s->count; i++) {
        sft_span name = s->parts[s->order[i]].spec.name;
        if (sft_span_equal(s->parts[s->order[i - 1]].spec.name, name))
            return sfti_fail_tensor(err, SFT_TENSOR_DUPLICATE, SFT_NO_OFFSET, name,
                                    "expected each tensor's name once, found it twice");
    }
    return SFT_OK;
}

/* 1. The shards, each under its final name once complete: a crash leaves some of them.
 * 2. The index: from here on the model can be opened.
 * 3. The folder's own name is synced.
 * A failure removes every file published so far, and the folder if it was created here. */
static sft_code save_files(set_save *s, sft_error *err) {
    sft_code code = SFT_OK;
    for (uint32_t i = 0; i < s->shards && !code; i++) code = save_shard(s, i, err);
    if (!code && s->shards > 1) code = save_index(s, err);
    if (!code && s->made && !s->options.no_sync) {
        int error = sfti_sync_parent(s->folder);
        if (error) code = sfti_io_fail(err, SFT_IO_SYNC, error, "sync the folder");
    }
    if (!code) return SFT_OK;
    while (s->published > 0) (void)sfti_os_unlink(save_path(s, --s->published));
    if (s->made) (void)sfti_os_remove_folder(s->folder);
    return code;
}

static sft_code save_check(const set_save *s, sft_error *err) {
    char none[1];
    bool fits = s->folder && s->shards > 0 && (s->count == 0 || (s->parts && s->shard_of));
    for (size_t i = 0; fits && i < s->count; i++) fits = s->shard_of[i] < s->shards;
    if (!fits || s->count >= UINT32_MAX)
        return sfti_misuse(err, "expected a folder and parts with their shards, found none");
    size_t stem = strlen(s->stem);
    if (stem == 0 || strchr(s->stem, '/') || sfti_utf8_check(s->stem, stem) < stem)
        return sfti_fail(err, SFT_BAD_ARGUMENT, /* an index is JSON */
                         "expected the beginning of file names, in UTF-8 and without \"/\", "
                         "found \"%s\"", s->stem);
    size_t len = sft_shard_name(s->stem, s->shards, s->shards, none, 0);
    /* One shard's name tells for the index, too: of a stem that is a device's name both are. */
    char name[SAVE_PATH];
    const char *why;
    (void)sft_shard_name(s->stem, s->shards > 1 ? s->shards : 0, s->shards, name, sizeof name);
    if (!sfti_name_portable(sft_span_cstr(name), &why))
        return sfti_misuse(err, "expected a file name that every system takes, found \"%s\": %s",
                           name, why);
    if (strlen(s->folder) + 1 + len + 32 < SAVE_PATH) return SFT_OK;
    return sfti_misuse(err, "expected a path of at most %d bytes, found a longer one", SAVE_PATH);
}

static SFTI_OPTIONS_TAKE(save_set_take, sft_save_set_options, SFT_SAVE_SET_OPTIONS_INIT, plan)

sft_code sft_save_set(const char *folder, const sft_part *parts, const uint32_t *shard_of,
                      size_t count, uint32_t shards, const sft_pair *metadata,
                      size_t metadata_count, const sft_save_set_options *options,
                      const sft_job *job, sft_error *err) {
    sft_save_set_options own;
    sft_plan_options plan;
    sft_job own_job;
    sft_code code = save_set_take(options, &own, err);
    if (!code) code = sfti_take_plan(own.plan, &plan, err);
    if (!code) code = sfti_take_job(job, &own_job, err);
    if (code) return code;
    sft_allocator alloc = sfti_set_allocator(plan.alloc);
    set_save *s = sfti_take(&alloc, sizeof *s);
    if (!s) return sfti_fail_memory(err, sizeof *s);
    *s = (set_save){ .folder = folder, .stem = own.stem ? own.stem : "model", .parts = parts,
                     .shard_of = shard_of, .count = count, .shards = shards,
                     .metadata = metadata, .metadata_count = metadata_count, .options = own,
                     .plan = plan, .alloc = alloc, .arena = { .alloc = alloc }, .job = own_job };
    s->plan.alloc = &s->alloc;
    code = save_check(s, err);
    if (code) goto done;
    for (size_t i = 0; i < count; i++) s->total += sfti_part_bytes(&parts[i]);
    if (shards > 1) code = save_order(s, err);
    if (!code) code = save_begin(s, err);
    if (!code) code = save_files(s, err);
done:
    sfti_arena_free(&s->arena);
    sfti_release(&alloc, s, sizeof *s);
    return code;
}
