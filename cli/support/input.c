#include "support/input.h"

#include "base/error.h"
#include "base/order.h"
#include "os/io.h"
#include "safetensors_import.h"
#include "support/files.h"
#include "support/words.h"

#include <errno.h>
#include <string.h>

typedef struct found {
    struct found *next;
    cli_input input;
    bool is_shard;
    bool is_other; /* in another format */
} found;

/* A folder still to be entered, or entered; parents are kept to see loops. */
typedef struct folder {
    struct folder *next, *parent;
    const char *path;
    uint64_t device, inode;
} folder;

typedef struct walk {
    sfti_arena *arena;
    size_t *passed;
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

static bool is_model_name(const char *name) {
    sft_span text = sft_span_cstr(name);
    if (strncmp(name, "._", 2) == 0) return false;
    return cli_ends_with(text, ".safetensors") || cli_ends_with(text, ".sft") ||
           sft_path_is_index(name);
}

const char *const cli_other_formats[CLI_OTHER_FORMATS] = {
    ".ckpt", ".pt", ".pth", ".bin", ".gguf", ".onnx", ".npz", ".msgpack", ".pdparams", ".h5",
};

#define TORCH_INDEX ".bin.index.json"

static void count_passed(walk *w, const char *name) {
    for (size_t i = 0; i < CLI_OTHER_FORMATS; i++)
        w->passed[i] += cli_ends_with(sft_span_cstr(name), cli_other_formats[i]);
}

/* ── The walk ── */

static bool add_found(walk *w, cli_input_kind kind, const char *path) {
    found *f = sfti_arena_take(w->arena, sizeof *f);
    if (!f || !path) return false;
    *f = (found){ w->first, { kind, path, NULL }, false, false };
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

static bool add_blocked_folder(walk *w, const char *path, int os_errno) {
    sft_error err = SFT_ERROR_INIT;
    sfti_io_fail(&err, SFT_IO_OPEN, os_errno, "list the folder");
    return add_found(w, CLI_FILE, path) && block_input(w, &w->first->input, &err);
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
    sfti_fail(&err, SFT_IO_NOT_FILE, SFT_NO_OFFSET, "expected a file, found %s",
              kind == OS_PIPE ? "a pipe" : "a device or socket");
    return add_found(w, CLI_FILE, path) && block_input(w, &w->first->input, &err);
}

/* A link counts as what it leads to; a dangling one is kept, to be reported. */
static os_kind kind_behind(const char *path, os_kind kind) {
    os_info info;
    if (kind != OS_LINK || os_info_path(path, true, &info) != 0) return kind;
    return info.kind;
}

/* Parts of a GGUF model after the first: it stands for all. */
static bool is_later_part(sft_span name) {
    const char *of = NULL;
    if (!cli_ends_with(name, ".gguf")) return false;
    for (size_t i = 0; i + 4 < name.len; i++)
        if (memcmp(name.data + i, "-of-", 4) == 0) of = name.data + i;
    return of && of - name.data >= 5 && memcmp(of - 5, "00001", 5) != 0;
}

/* Pickles hold anything: only opening tells whether there are tensors. */
static bool is_import(const walk *w, const char *path) {
    sft_import_format format;
    sft_import *import = NULL;
    sft_import_options options = SFT_IMPORT_OPTIONS_INIT;
    options.alloc = &w->arena->alloc;
    options.skip = true;
    if (sft_import_recognise(path, &format, NULL)) return false;
    if (format != SFT_IMPORT_PICKLE) return format != SFT_IMPORT_NONE;
    sft_code code = sft_import_open(path, &options, &import, NULL);
    sft_import_close(import);
    return code != SFT_FOREIGN_KIND;
}

/* A model in another format, told by its contents once its name speaks for it. */
static int visit_other(walk *w, const char *name, os_kind kind) {
    sft_span text = sft_span_cstr(name);
    bool named = cli_ends_with(text, TORCH_INDEX);
    for (size_t i = 0; i < CLI_OTHER_FORMATS; i++)
        named |= cli_ends_with(text, cli_other_formats[i]);
    if (!named || !w->others || strncmp(name, "._", 2) == 0) {
        count_passed(w, name);
        return 0;
    }
    char *path = cli_join_path(w->arena, sft_span_cstr(w->now->path), name);
    if (!path) return ENOMEM;
    bool is_file = kind_behind(path, kind) == OS_FILE;
    if (is_later_part(text)) return 0;
    if (!is_file || !is_import(w, path)) {
        count_passed(w, name);
        return 0;
    }
    if (!add_found(w, CLI_FILE, path)) return ENOMEM;
    w->first->is_other = true;
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
    if (!is_model_name(name)) return visit_other(w, name, kind);
    path = cli_join_path(w->arena, sft_span_cstr(w->now->path), name);
    if (!path) return ENOMEM;
    kind = kind_behind(path, kind);
    if (kind == OS_DIR) return 0;
    if (kind == OS_PIPE || kind == OS_OTHER) return add_no_file(w, path, kind) ? 0 : ENOMEM;
    return add_found(w, sft_path_is_index(name) ? CLI_INDEX : CLI_FILE, path) ? 0 : ENOMEM;
}

/* Whether the folder is one of those it lies in. */
static bool is_loop(folder *f) {
    os_info info;
    if (os_info_path(f->path, true, &info) != 0) return false;
    f->device = info.device;
    f->inode = info.inode;
    for (folder *up = f->parent; up; up = up->parent) {
        if (up->device == f->device && up->inode == f->inode) return true;
    }
    return false;
}

static bool is_except(const walk *w, const folder *f) {
    return w->has_except && f->parent && f->device == w->except.device
        && f->inode == w->except.inode;
}

static bool folder_has(sft_span folder, const char *name, sfti_arena *arena) {
    os_info info;
    char *path = cli_join_path(arena, folder, name);
    return path && os_info_path(path, true, &info) == 0 && info.kind == OS_FILE;
}

bool cli_is_pipeline(sft_span folder, sfti_arena *arena) {
    return folder_has(folder, "model_index.json", arena);
}

bool cli_is_dataset(sft_span folder, sfti_arena *arena) {
    return folder_has(folder, "dataset_manifest.json", arena);
}

static bool is_entered(walk *w) {
    if (w->depth != CLI_WITH_PARTS) return w->depth == CLI_ALL_LEVELS;
    return !w->now->parent && cli_is_pipeline(sft_span_cstr(w->now->path), w->arena);
}

static bool walk_folders(walk *w) {
    while (w->waiting) {
        w->now = w->waiting;
        w->waiting = w->now->next;
        if (is_loop(w->now) || is_except(w, w->now)) continue;
        w->enter = is_entered(w);
        int error = os_list(w->now->path, visit_entry, w);
        if (error == ENOMEM) return false;
        if (error && !add_blocked_folder(w, w->now->path, error)) return false;
    }
    return true;
}

/* A folder that is a model in another format as a whole: a SavedModel. */
static bool is_folder_model(const walk *w, const char *path) {
    sft_import_format format;
    return w->others && sft_import_recognise(path, &format, NULL) == SFT_OK && format;
}

/* Others count where there is nothing else. */
static void drop_others(walk *w) {
    bool has_models = false;
    for (found *f = w->first; f; f = f->next) has_models |= !f->is_other;
    if (w->others != CLI_ELSE_OTHERS || !has_models) return;
    for (found **at = &w->first; *at;) {
        if (!(*at)->is_other) {
            at = &(*at)->next;
            continue;
        }
        count_passed(w, (*at)->input.path);
        *at = (*at)->next;
        w->count--;
    }
}

/* ── Order, and shards that their index speaks for ── */

typedef struct path_order {
    found **items;
} path_order;

static int compare_paths(const void *ctx, uint32_t a, uint32_t b) {
    const path_order *s = ctx;
    return sfti_natural_compare(sft_span_cstr(s->items[a]->input.path),
                                sft_span_cstr(s->items[b]->input.path));
}

static found **sorted_found(walk *w) {
    size_t n = w->count;
    if (n > UINT32_MAX / 32) return NULL;
    found **listed = sfti_arena_take(w->arena, (n + 1) * sizeof(found *));
    found **sorted = sfti_arena_take(w->arena, (n + 1) * sizeof(found *));
    uint32_t *order = sfti_arena_take(w->arena, (2 * n + 1) * sizeof(uint32_t));
    path_order s = { listed };
    size_t i = 0;
    if (!listed || !sorted || !order) return NULL;
    for (found *f = w->first; f; f = f->next) listed[i++] = f;
    for (i = 0; i < n; i++) order[i] = (uint32_t)i;
    sfti_sort(order, order + n, n, compare_paths, &s);
    for (i = 0; i < n; i++) sorted[i] = listed[order[i]];
    return sorted;
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
static bool mark_shards(walk *w, found **sorted, cli_input *input,
                        const sft_set_options *options) {
    sft_error err = SFT_ERROR_INIT;
    sft_index *names = NULL;
    const char *index = input->path;
    bool ok = true;
    if (sft_index_open(index, options, &names, &err)) {
        return err.code < 300 || block_input(w, input, &err);
    }
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

static bool keep_models(walk *w, const sft_set_options *options, cli_inputs *out) {
    found **sorted = sorted_found(w);
    out->items = sfti_arena_take(w->arena, (w->count + 1) * sizeof(cli_input *));
    if (!sorted || !out->items) return false;
    for (size_t i = 0; i < w->count; i++) {
        bool other = sorted[i]->is_other
                     && cli_ends_with(sft_span_cstr(sorted[i]->input.path), TORCH_INDEX);
        if (sorted[i]->input.kind != CLI_INDEX && !other) continue;
        if (!mark_shards(w, sorted, &sorted[i]->input, options)) return false;
    }
    for (size_t i = 0; i < w->count; i++) {
        if (!sorted[i]->is_shard) out->items[out->count++] = &sorted[i]->input;
    }
    return true;
}

static bool expand_operand(const char *operand, const sft_set_options *options, walk *w,
                           cli_inputs *out) {
    os_info info;
    bool ok;
    if (strcmp(operand, "-") == 0) {
        ok = add_found(w, CLI_STDIN, operand);
    } else if (os_info_path(operand, true, &info) == 0 && info.kind == OS_DIR) {
        ok = add_folder(w, NULL, operand) && walk_folders(w);
        drop_others(w);
        if (ok && w->count == 0 && is_folder_model(w, operand))
            ok = add_found(w, CLI_FILE, operand);
        if (ok && w->count == 0) ok = add_found(w, CLI_EMPTY, operand);
    } else {
        ok = add_found(w, sft_path_is_index(operand) ? CLI_INDEX : CLI_FILE, operand);
    }
    return ok && keep_models(w, options, out);
}

sft_code cli_inputs_expand(const char *operand, cli_depth depth, const sft_set_options *options,
                           cli_inputs *out, sft_error *err) {
    return cli_inputs_expand_but(operand, depth, NULL, options, out, err);
}

sft_code cli_inputs_expand_but(const char *operand, cli_depth depth, const char *except,
                               const sft_set_options *options, cli_inputs *out, sft_error *err) {
    walk w = { .depth = (cli_depth)((int)depth & 3), .others = (int)depth & ~3 };
    w.has_except = except && os_info_path(except, true, &w.except) == 0;
    memset(out, 0, sizeof *out);
    out->arena.alloc = sfti_allocator(options->open->alloc);
    w.arena = &out->arena;
    w.passed = out->passed;
    if (expand_operand(operand, options, &w, out)) return SFT_OK;
    return sfti_fail_memory(err, sizeof(found));
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
