/* Operands as inputs: folders are walked, and shards that an index names left out. */
#include "support/input.h"

#include "base/error.h"
#include "base/files.h"
#include "base/glob.h"
#include "base/json_lex.h"
#include "base/order.h"
#include "base/portable.h"
#include "os/io.h"
#include "os/path.h"
#include "safetensors_import.h"
#include "safetensors_index.h"
#include "safetensors_remote.h"
#include "support/files.h"
#include "support/hints.h"
#include "support/shards.h"
#include "support/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct found {
    struct found *next;
    cli_input input;
    bool is_shard;
    bool is_other; /* in another format */
    bool is_guess; /* told by its name alone so far */
} found;

/* A folder still to be entered, or entered; parents are kept to see loops. */
typedef struct folder {
    struct folder *next, *parent;
    const char *path;
    uint64_t device, inode;
} folder;

typedef struct walk {
    sfti_arena *arena;
    cli_inputs *out;
    const sft_open_options *open;
    const sft_files *files; /* its, or NULL */
    cli_depth depth;
    int others; /* CLI_AND_OTHERS, CLI_ELSE_OTHERS or 0 */
    bool enter; /* folders of the folder now walked */
    bool has_except;
    os_info except;
    found *first;
    size_t count;
    folder *waiting;
    folder *now;
} walk;

/* ── Names ── */

#define TORCH_INDEX ".bin.index.json"

static void count_passed(walk *w, const char *name) {
    size_t format = cli_other_format(sft_span_cstr(name));
    if (format < CLI_OTHER_FORMATS) w->out->passed[format]++;
}

/* ── The walk ── */

static bool add_found(walk *w, cli_input_kind kind, const char *path) {
    found *f = sfti_arena_take(w->arena, sizeof *f);
    if (!f || !path) return false;
    *f = (found){ .next = w->first, .input = { .kind = kind, .path = path } };
    w->first = f;
    w->count++;
    return true;
}

static bool block_input(walk *w, cli_input *input, const sft_error *err) {
    sft_error *kept = sfti_arena_take(w->arena, sizeof *kept);
    if (!kept) return false;
    *kept = *err;
    input->kind = CLI_BLOCKED;
    input->err = kept;
    return true;
}

static bool add_blocked(walk *w, const char *path, const sft_error *err) {
    return add_found(w, CLI_FILE, path) && block_input(w, &w->first->input, err);
}

static bool add_folder(walk *w, folder *parent, const char *path) {
    folder *f = sfti_arena_take(w->arena, sizeof *f);
    if (!f || !path) return false;
    *f = (folder){ w->waiting, parent, path, 0, 0 };
    w->waiting = f;
    return true;
}

/* What is not a file is reported, never opened: opening a pipe would block. */
static bool add_no_file(walk *w, const char *path, os_kind kind) {
    sft_error err = SFT_ERROR_INIT;
    sfti_fail(&err, SFT_IO_NOT_FILE, "expected a file, found %s",
              kind == OS_PIPE ? "a pipe" : "a device or socket");
    return add_blocked(w, path, &err);
}

/* A link counts as what it leads to; a dangling one is kept, to be reported. */
static os_kind kind_behind(const char *path, const char *name, os_kind kind) {
    os_info info;
    const char *why;
    /* Windows opens a device for such a name ("con.sft"), which a folder of other systems may
     * list. */
    bool device = kind == OS_FILE && SFTI_OS_PATHS == SFTI_PATHS_WINDOWS
               && !sfti_name_portable(sft_span_cstr(name), &why);
    if (kind != OS_LINK && !device) return kind;
    if (sfti_os_info_path(path, true, &info) != 0) return device ? OS_OTHER : kind;
    return info.kind;
}

/* Where others count only for want of models, they must be sound. */
static bool is_other(const walk *w, const char *path) {
    sft_import_format format;
    if (w->others == CLI_AND_OTHERS) return cli_is_other_model(path, w->open);
    return !sft_import_recognise(path, w->files, &format, NULL) && format
        && cli_is_other_model(path, w->open);
}

static int visit_other(walk *w, const char *name, os_kind kind) {
    sft_span text = sft_span_cstr(name);
    bool named = cli_other_format(text) < CLI_OTHER_FORMATS || cli_ends_with(text, TORCH_INDEX);
    if (!named || !w->others || strncmp(name, "._", 2) == 0) {
        count_passed(w, name);
        return 0;
    }
    char *path = cli_join_path(w->arena, sft_span_cstr(w->now->path), name);
    if (!path) return ENOMEM;
    bool remote = sfti_files_claim(w->files, path, NULL);
    if (!remote) kind = kind_behind(path, name, kind);
    if (cli_is_later_part(path, w->open)) return 0;
    bool lost = kind != OS_FILE && kind != OS_DIR && w->others == CLI_AND_OTHERS
             && cli_is_model_name(text);
    if (!remote && !lost && (kind != OS_FILE || !is_other(w, path))) {
        count_passed(w, name);
        return 0;
    }
    if (lost && kind != OS_LINK) return add_no_file(w, path, kind) ? 0 : ENOMEM;
    if (!add_found(w, CLI_FILE, path)) return ENOMEM;
    w->first->is_other = true;
    w->first->is_guess = remote;
    return 0;
}

static int visit_entry(void *ctx, const char *name, os_kind kind) {
    walk *w = ctx;
    char *path;
    if (kind == OS_DIR) {
        if (!w->enter || name[0] == '.') return 0;
        path = cli_join_path(w->arena, sft_span_cstr(w->now->path), name);
        return add_folder(w, w->now, path) ? 0 : ENOMEM;
    }
    sft_span text = sft_span_cstr(name);
    bool model = cli_ends_with(text, ".safetensors") || cli_ends_with(text, ".sft")
              || sft_path_is_index(name);
    if (!model || strncmp(name, "._", 2) == 0) return visit_other(w, name, kind);
    path = cli_join_path(w->arena, sft_span_cstr(w->now->path), name);
    if (!path) return ENOMEM;
    if (!sfti_files_claim(w->files, path, NULL)) kind = kind_behind(path, name, kind);
    if (kind == OS_DIR) return 0;
    if (kind == OS_PIPE || kind == OS_OTHER) return add_no_file(w, path, kind) ? 0 : ENOMEM;
    return add_found(w, sft_path_is_index(name) ? CLI_INDEX : CLI_FILE, path) ? 0 : ENOMEM;
}

#define DEPTH_UNKNOWN 64 /* folders within one another, of a share that does not number them */

/* Whether the folder is one of those it lies in. */
static bool is_loop(folder *f) {
    os_info info;
    unsigned depth = 0;
    if (sfti_os_info_path(f->path, true, &info) != 0) return false;
    f->device = info.device;
    f->inode = info.inode;
    for (folder *up = f->parent; up; up = up->parent, depth++) {
        if (up->device == f->device && up->inode == f->inode && f->inode) return true;
    }
    return !f->inode && depth >= DEPTH_UNKNOWN;
}

/* ── What a folder is ── */

#define PIPELINE_FILE "model_index.json"
#define DATASET_FILE "dataset_manifest.json"
#define SAVED_MODEL_FILE "saved_model.pb"

static sft_span without_slash(sft_span path) {
    while (path.len > 0 && sfti_is_separator(path.data[path.len - 1])) path.len--;
    return path;
}

static const cli_listed *listed_folder(const cli_inputs *inputs, sft_span folder) {
    const cli_listed *one = inputs->listed;
    folder = without_slash(folder);
    while (one && !sft_span_equal(one->path, folder)) one = one->next;
    return one;
}

bool cli_was_listed(const cli_inputs *inputs, sft_span folder) {
    return listed_folder(inputs, folder) != NULL;
}

static bool folder_has(const cli_inputs *inputs, sft_span folder, const char *name) {
    os_info info;
    char path[4096], joint[2] = { sfti_path_joint(folder), '\0' };
    if (folder.len + strlen(name) + 2 > sizeof path) return false;
    snprintf(path, sizeof path, "%.*s%s%s", (int)folder.len, folder.len ? folder.data : "", joint,
             name);
    return !(inputs && sfti_files_claim(inputs->files, path, NULL))
        && sfti_os_info_path(path, true, &info) == 0 && info.kind == OS_FILE;
}

bool cli_is_pipeline(const cli_inputs *inputs, sft_span folder) {
    const cli_listed *listed = listed_folder(inputs, folder);
    return listed ? listed->is_pipeline : folder_has(inputs, folder, PIPELINE_FILE);
}

bool cli_is_component(const char *path) {
    char file[4096];
    os_info info;
    int folder = (int)sfti_folder_len(path);
    int len = snprintf(file, sizeof file, "%.*s../" PIPELINE_FILE, folder, path);
    return len > 0 && (size_t)len < sizeof file && !sfti_os_info_path(file, true, &info);
}

bool cli_is_dataset(const cli_inputs *inputs, sft_span folder) {
    bool listed = cli_was_listed(inputs, folder);
    return !listed && folder_has(inputs, folder, DATASET_FILE);
}

bool cli_dataset_folder(const char *path, sft_span *folder) {
    static const char job[] = "_job-", part[] = "part-";
    const char *name = path + sfti_folder_len(path);
    if (*name == '.') name++;
    if (strncmp(name, part, sizeof part - 1) != 0
        || !sfti_glob_match(sft_span_cstr("part-[0-9]*-[0-9]*-*.safetensors"),
                            sft_span_cstr(name)))
        return false;
    *folder = cli_folder_of(path);
    if (strncmp(sfti_path_name(*folder).data, job, sizeof job - 1) == 0)
        *folder = sfti_path_above(*folder);
    return true;
}

sft_code cli_check_dataset(const char *path, sft_error *err) {
    char real[4096];
    os_info info;
    sft_span folder;
    if (sfti_os_info_path(path, false, &info) == 0 && info.kind == OS_LINK
        && !sfti_os_real_path(path, real, sizeof real))
        path = real;
    if (!cli_dataset_folder(path, &folder) || !folder_has(NULL, folder, DATASET_FILE))
        return SFT_OK;
    return cli_fail_hint(err, SFT_BAD_ARGUMENT, CLI_HINT_DATASET,
                         "expected a model, found a file of the dataset %.*s, which could not be "
                         "read without it as it is",
                         SFTI_CLIP(folder.len ? folder : sft_span_cstr("."), (size_t)200));
}

static bool is_entered(walk *w) {
    if (w->depth != CLI_WITH_PARTS) return w->depth == CLI_ALL_LEVELS;
    return !w->now->parent && cli_is_pipeline(w->out, sft_span_cstr(w->now->path));
}

/* ── Remote folders ── */

typedef struct remote_entry {
    struct remote_entry *next;
    const char *name;
    bool folder;
} remote_entry;

typedef struct remote_listing {
    sfti_arena *arena;
    remote_entry *first;
    cli_listed *listed;
    bool full; /* memory ran out */
} remote_listing;

static bool keep_entry(void *ctx, const sft_listed *entry) {
    remote_listing *l = ctx;
    remote_entry *kept = sfti_arena_take(l->arena, sizeof *kept);
    char *name = sfti_arena_copy(l->arena, entry->name, strlen(entry->name));
    l->full = !kept || !name;
    if (l->full) return false;
    *kept = (remote_entry){ l->first, name, entry->folder };
    l->first = kept;
    l->listed->is_pipeline |= !entry->folder && strcmp(name, PIPELINE_FILE) == 0;
    l->listed->is_saved_model |= !entry->folder && strcmp(name, SAVED_MODEL_FILE) == 0;
    return true;
}

/* All of it is known before the first of it is looked at: a request is not made twice. */
static bool walk_remote(walk *w) {
    sft_error err = SFT_ERROR_INIT;
    const char *path = w->now->path;
    cli_listed *listed = sfti_arena_take(w->arena, sizeof *listed);
    remote_listing l = { w->arena, NULL, listed, false };
    if (!listed) return false;
    *listed = (cli_listed){ w->out->listed, without_slash(sft_span_cstr(path)), false, false };
    sft_code code = sfti_files_list(w->files, path, keep_entry, &l, &err);
    if (l.full || code == SFT_OUT_OF_MEMORY) return false;
    if (code == SFT_IO_NOT_FILE && !w->now->parent) return add_found(w, CLI_FILE, path);
    if (code) return add_blocked(w, path, &err);
    w->out->listed = listed;
    w->enter = is_entered(w);
    for (remote_entry *e = l.first; e; e = e->next)
        if (visit_entry(w, e->name, e->folder ? OS_DIR : OS_FILE) == ENOMEM) return false;
    return true;
}

static bool walk_folders(walk *w) {
    while (w->waiting) {
        w->now = w->waiting;
        w->waiting = w->now->next;
        if (sfti_files_claim(w->files, w->now->path, NULL)) {
            if (!walk_remote(w)) return false;
            continue;
        }
        if (is_loop(w->now)) continue;
        if (w->has_except && w->now->parent && w->now->device == w->except.device
            && w->now->inode == w->except.inode)
            continue;
        w->enter = is_entered(w);
        int error = sfti_os_list(w->now->path, visit_entry, w);
        if (error == ENOMEM) return false;
        sft_error err = SFT_ERROR_INIT;
        if (error) sfti_io_fail(&err, SFT_IO_OPEN, error, "list the folder");
        if (error && !add_blocked(w, w->now->path, &err)) return false;
    }
    return true;
}

/* Takes out others that do not count: all, or guesses that their contents prove wrong. */
static void drop_others(walk *w, bool all) {
    for (found **at = &w->first; *at;) {
        found *f = *at;
        if (all ? !f->is_other : !f->is_guess || is_other(w, f->input.path)) {
            at = &f->next;
            continue;
        }
        count_passed(w, f->input.path);
        *at = f->next;
        w->count--;
    }
}

#define EXPECTED_MOST 64 /* files whose beginnings are fetched ahead */

static void expect_files(const walk *w, const char *const *paths, size_t count) {
    sfti_files_expect(w->files, paths, count < EXPECTED_MOST ? count : EXPECTED_MOST, NULL);
}

/* Guesses by names become what their contents say; they are fetched together. */
static bool settle_guesses(walk *w) {
    const char **paths = sfti_arena_take(w->arena, (w->count + 1) * sizeof *paths);
    bool indexed = false;
    size_t count = 0;
    if (!paths) return false;
    for (const found *f = w->first; f && !indexed; f = f->next)
        indexed = cli_ends_with(sft_span_cstr(f->input.path), TORCH_INDEX);
    for (found *f = w->first; f; f = f->next) {
        /* The index speaks for shards of PyTorch models. */
        if (indexed && strstr(cli_name_of(f->input.path).data, "-of-")) f->is_guess = false;
        if (f->is_guess) paths[count++] = f->input.path;
    }
    expect_files(w, paths, count);
    drop_others(w, false);
    return true;
}

/* ── Order, and shards that their index speaks for ── */

static int compare_paths(const void *ctx, uint32_t a, uint32_t b) {
    found *const *items = ctx;
    return sfti_natural_compare(sft_span_cstr(items[a]->input.path),
                                sft_span_cstr(items[b]->input.path));
}

static found *find_path(found **sorted, size_t count, const char *path) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int way = sfti_natural_compare(sft_span_cstr(sorted[middle]->input.path),
                                       sft_span_cstr(path));
        if (way == 0) return sorted[middle];
        if (way < 0) low = middle + 1;
        else high = middle;
    }
    return NULL;
}

/* An index that breaks a rule names nothing: its own opening will say why. */
static bool mark_shards(walk *w, found **sorted, cli_input *input) {
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_index *names = NULL;
    const char *index = input->path;
    bool ok = true;
    options.open = w->open;
    if (sft_index_open(index, &options, &names, &err))
        return err.code < 300 || block_input(w, input, &err);
    for (size_t i = 0; ok && i < sft_index_shard_count(names); i++) {
        char *path = cli_join_path(w->arena, (sft_span){ index, sfti_folder_len(index) },
                                   sft_index_shard_at(names, i));
        found *f = path ? find_path(sorted, w->count, path) : NULL;
        if (f) f->is_shard = true;
        ok = path != NULL;
    }
    sft_index_close(names);
    return ok;
}

/* M of "-00002-of-0000M.safetensors", or 0. */
static unsigned shards_by_name(const char *tail) {
    static const char form[] = "-ddddd-of-ddddd.safetensors";
    unsigned of = 0;
    size_t i = 0;
    for (; form[i] && tail[i]; i++) {
        bool digit = sfti_lex_digit(tail[i]);
        if (form[i] == 'd' ? !digit : tail[i] != form[i]) return 0;
        if (digit && i > 6) of = of * 10 + (unsigned)(tail[i] - '0');
    }
    return form[i] || tail[i] ? 0 : of;
}

/* A remote index need not be read for its shards if they are all there by the names that writers
 * give them. */
static bool mark_by_name(const walk *w, found **sorted, const cli_input *index) {
    static const char end[] = ".safetensors.index.json";
    sft_span path = sft_span_cstr(index->path);
    unsigned of = 0, count = 0;
    if (!sfti_files_claim(w->files, index->path, NULL)) return false;
    if (w->count == 1) return true;
    if (!cli_ends_with(path, end)) return false;
    size_t stem = path.len - (sizeof end - 1);
    for (int marking = 0; marking < 2; marking++) {
        for (size_t i = 0; i < w->count; i++) {
            const char *name = sorted[i]->input.path;
            unsigned told = strncmp(name, path.data, stem) ? 0 : shards_by_name(name + stem);
            if (!told) continue;
            if (marking) sorted[i]->is_shard = true;
            if (count > 0 && told != of) return false;
            of = told;
            count += !marking;
        }
        if (!of || count != of) return false;
    }
    return true;
}

static bool keep_models(walk *w, cli_inputs *out) {
    size_t n = 0;
    found **listed = sfti_arena_array(w->arena, w->count, sizeof(found *));
    found **sorted = sfti_arena_array(w->arena, w->count, sizeof(found *));
    out->items = sfti_arena_array(w->arena, w->count, sizeof(cli_input *));
    if (!listed || !sorted || !out->items || w->count > UINT32_MAX / 32) return false;
    for (found *f = w->first; f; f = f->next) listed[n++] = f;
    uint32_t *order = sfti_arena_sorted(w->arena, n, compare_paths, listed);
    if (!order) return false;
    for (size_t i = 0; i < n; i++) sorted[i] = listed[order[i]];
    for (size_t i = 0; i < w->count; i++) {
        bool other = sorted[i]->is_other
                     && cli_ends_with(sft_span_cstr(sorted[i]->input.path), TORCH_INDEX);
        if (sorted[i]->input.kind != CLI_INDEX && !other) continue;
        if (!mark_by_name(w, sorted, &sorted[i]->input)
            && !mark_shards(w, sorted, &sorted[i]->input))
            return false;
    }
    for (size_t i = 0; i < w->count; i++) {
        if (!sorted[i]->is_shard) out->items[out->count++] = &sorted[i]->input;
    }
    return true;
}

/* In a repository a name without extension is more likely a folder's than a file's, and listing it
 * tells. */
bool cli_is_folder_url(const char *name) {
    sft_span last = cli_name_of(name);
    bool hub = strncmp(name, "hf://", 5) == 0;
    return sft_remote_is_folder(name) || (hub && !memchr(last.data, '.', last.len));
}

/* The models in a folder, which may be one as a whole in another format: a SavedModel. */
static bool walk_operand(walk *w, const char *operand) {
    sft_import_format format;
    bool ok = add_folder(w, NULL, operand) && walk_folders(w), has_models = false;
    /* Others count where there is nothing else. */
    for (const found *f = w->first; f; f = f->next) has_models |= !f->is_other;
    if (w->others == CLI_ELSE_OTHERS && has_models) drop_others(w, true);
    ok = ok && settle_guesses(w);
    if (!ok || w->count > 0) return ok;
    const cli_listed *listed = listed_folder(w->out, sft_span_cstr(operand));
    bool may = w->others && (!listed || listed->is_saved_model);
    bool one = may && !sft_import_recognise(operand, w->files, &format, NULL) && format;
    return add_found(w, one ? CLI_FILE : CLI_EMPTY, operand);
}

sft_code cli_inputs_expand(const char *operand, cli_depth depth, const char *except,
                           const sft_open_options *open, cli_inputs *out, sft_error *err) {
    walk w = { .arena = &out->arena, .out = out, .open = open, .files = open->files,
               .depth = (cli_depth)((int)depth & 3),
               .others = (int)depth & (CLI_AND_OTHERS | CLI_ELSE_OTHERS) };
    os_info info;
    *out = (cli_inputs){ .arena.alloc = sfti_allocator(open->alloc), .files = open->files };
    w.has_except = except && sfti_os_info_path(except, true, &w.except) == 0;
    bool remote = sfti_files_claim(w.files, operand, NULL);
    bool is_there = !remote && sfti_os_info_path(operand, true, &info) == 0;
    bool is_folder = remote ? cli_is_folder_url(operand) : is_there && info.kind == OS_DIR;
    bool no_file = is_there && (info.kind == OS_PIPE || info.kind == OS_OTHER);
    bool ok;
    if (strcmp(operand, "-") == 0) ok = add_found(&w, CLI_STDIN, operand);
    else if (no_file && (int)depth & CLI_FILES_ONLY) ok = add_no_file(&w, operand, info.kind);
    else if (is_folder) ok = walk_operand(&w, operand);
    else ok = add_found(&w, sft_path_is_index(operand) ? CLI_INDEX : CLI_FILE, operand);
    ok = ok && keep_models(&w, out);
    for (size_t i = 0; ok && i < out->count; i++)
        out->items[i]->is_found = out->items[i]->path != operand;
    bool join = ((int)depth & CLI_JOIN_SHARDS) != 0;
    if (ok && is_folder && (join || ((int)depth & CLI_TELL_MISSING)))
        ok = cli_join_shards(out, join);
    /* What a remote folder gave is opened next. */
    const char **paths = NULL;
    size_t count = 0;
    if (ok && out->listed) {
        paths = sfti_arena_take(w.arena, (out->count + 1) * sizeof *paths);
        ok = paths != NULL;
    }
    for (size_t i = 0; paths && i < out->count; i++)
        if (out->items[i]->kind == CLI_FILE) paths[count++] = out->items[i]->path;
    if (count > 1) expect_files(&w, paths, count);
    return ok ? SFT_OK : sfti_fail_memory(err, sizeof(found));
}

void cli_inputs_free(cli_inputs *inputs) {
    sfti_arena_free(&inputs->arena);
}

sft_code cli_not_one(size_t count, sft_error *err) {
    return cli_usage_error(err, "expected one model, found a folder with %s",
                           count ? "several" : "none");
}

sft_code cli_inputs_one(const cli_inputs *inputs, const cli_input **out, sft_error *err) {
    const cli_input *first = inputs->items[0];
    for (size_t i = 0; i < inputs->count; i++) {
        const sft_error *why = inputs->items[i]->err;
        if (why && err) *err = *why;
        if (why) return why->code;
    }
    if (inputs->count > 1 || first->kind == CLI_EMPTY)
        return cli_not_one(inputs->count > 1 ? inputs->count : 0, err);
    *out = first;
    return SFT_OK;
}
