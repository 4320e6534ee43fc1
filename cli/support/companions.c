/* What belongs to one model alone: shards and index, sidecars and pictures that begin with the
 * model's own name. Tests: tests/cli/mv. */
#include "support/companions.h"

#include "base/foreign.h"
#include "base/order.h"
#include "os/os.h"
#include "os/path.h"
#include "support/files.h"
#include "support/indexes.h"
#include "support/words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

const char *const cli_model_ends[] = { ".safetensors.index.json", ".bin.index.json", ".safetensors",
                                       ".sft", ".ckpt", ".pt", ".pth", ".bin", ".gguf", ".onnx",
                                       ".npz", ".msgpack", ".pdparams", ".h5", ".pkl", ".index",
                                       ".keras", ".pt2", NULL };

sft_span cli_stem_of(sft_span name) {
    static const char index[] = ".safetensors.index.";
    for (size_t i = 0; cli_model_ends[i]; i++) {
        size_t len = strlen(cli_model_ends[i]);
        if (cli_ends_with(name, cli_model_ends[i])) return (sft_span){ name.data, name.len - len };
    }
    for (size_t i = 0; cli_ends_with(name, ".json") && i + sizeof index - 1 < name.len; i++)
        if (memcmp(name.data + i, index, sizeof index - 1) == 0)
            return (sft_span){ name.data, i };
    for (size_t i = name.len; i > 1; i--)
        if (name.data[i - 1] == '.') return (sft_span){ name.data, i - 1 };
    return name;
}

static bool put(sfti_arena *arena, cli_unit *unit, sft_span path, bool is_model) {
    for (size_t i = 0; i < unit->count; i++)
        if (sft_span_equal(sft_span_cstr(unit->items[i].path), path)) return true;
    cli_companion *items = sfti_arena_grow(arena, unit->items, unit->count, 1, &unit->capacity,
                                           sizeof *items);
    if (items) unit->items = items;
    char *copy = items ? sfti_arena_copy(arena, path.data, path.len) : NULL;
    if (!copy) return false;
    items[unit->count++] = (cli_companion){ .path = copy, .is_model = is_model };
    return true;
}

/* What the folder is called in paths of files beside the model: "./" is left out, and more than one
 * slash. */
static sft_span folder_of(sft_span path) {
    sft_span folder = sfti_path_above(path);
    return cli_is(folder, ".") ? (sft_span){ path.data, 0 } : folder;
}

/* A file of the model's own folder whose name is the stem and more. */
static bool is_own(const cli_unit *unit, sft_span path) {
    sft_span name = sfti_path_name(path);
    return sft_span_equal(folder_of(path), folder_of(sft_span_cstr(unit->path)))
        && name.len > unit->stem.len + 1 && name.data[unit->stem.len] == '.'
        && cli_same_letters((sft_span){ name.data, unit->stem.len }, unit->stem);
}

static bool put_beside(sfti_arena *arena, cli_unit *unit, const sft_node *root,
                       const char *list) {
    for (const sft_node *one = cli_first(root, list); one; one = one->next) {
        sft_span path = sft_node_text(one, "path");
        if (path.len && is_own(unit, path)
            && !put(arena, unit, path, false))
            return false;
    }
    return true;
}

/* The other files of a model in another format, which were read with it: parts of GGUF, shards of
 * PyTorch. One that ONNX names may be another model's, too, unless it is called like the model. */
static bool put_parts(const cli_model *model, sfti_arena *arena, cli_unit *unit) {
    const sfti_foreign *import = (const void *)model->import;
    sft_span name = cli_name_of(unit->path);
    size_t folder = sfti_folder_len(unit->path);
    size_t count = import ? import->files(model->import, NULL) : 0;
    os_info info;
    if (count == 0 || sfti_os_info_path(unit->path, true, &info) || info.kind != OS_FILE)
        return true;
    bool onnx = sft_import_format_of(model->import) == SFT_IMPORT_ONNX;
    sft_span *files = sfti_arena_array(arena, count, sizeof *files);
    if (!files) return false;
    (void)import->files(model->import, files);
    for (size_t i = 0; i < count; i++) {
        sft_span file = files[i];
        while (file.len > 2 && memcmp(file.data, "./", 2) == 0) file.data += 2, file.len -= 2;
        size_t before = unit->count;
        char *path = sfti_arena_join(arena, (sft_span){ unit->path, folder }, file);
        if (!path || !put(arena, unit, sft_span_cstr(path), true)) return false;
        bool own = !onnx || (file.len > name.len && memcmp(file.data, name.data, name.len) == 0);
        if (unit->count > before) unit->items[before].is_shared = !own;
    }
    return true;
}

/* The index of PyTorch's that lies beside one of its shards; empty: there is none, or no memory. */
static sft_span torch_index(const char *path, sfti_arena *arena, bool *fine) {
    static const sft_span end = { ".bin.index.json", 15 };
    sft_span base;
    uint64_t n, of;
    os_info info;
    if (!cli_ends_with(sft_span_cstr(path), ".bin") || !cli_shard_of(path, &n, &of, &base))
        return (sft_span){ "", 0 };
    char *index = sfti_arena_join(arena, base, end);
    *fine = index != NULL;
    bool there = index && sfti_os_info_path(index, true, &info) == 0;
    return there ? sft_span_cstr(index) : (sft_span){ "", 0 };
}

bool cli_unit_of(const cli_model *model, sfti_arena *arena, cli_unit *out) {
    const sft_node *root = sft_tree_root(model->tree);
    bool fine = true;
    *out = (cli_unit){ .path = sfti_arena_copy(arena, model->path, strlen(model->path)) };
    if (!out->path) return false;
    if (model->is_pipeline || model->is_dataset) {
        out->is_folder = true;
        return put(arena, out, sft_span_cstr(out->path), true);
    }
    out->stem = cli_stem_of(cli_name_of(out->path));
    sft_span index = sft_node_text(root, "set.index");
    out->index = (sft_span){ sfti_arena_copy(arena, index.data ? index.data : "", index.len),
                             index.len };
    if (model->import && index.len == 0) out->index = torch_index(out->path, arena, &fine);
    if (!fine || !out->index.data || !put(arena, out, sft_span_cstr(model->input->path), true))
        return false;
    for (size_t i = 0; model->inputs && i < model->count; i++)
        if (!put(arena, out, sft_span_cstr(model->inputs[i]->path), true)) return false;
    for (size_t i = 0; model->set && !model->import && i < sft_set_shard_count(model->set); i++) {
        const char *shard = sft_set_shard_path(model->set, i);
        if (shard && !put(arena, out, sft_span_cstr(shard), true)) return false;
    }
    return put_parts(model, arena, out) && put_beside(arena, out, root, "sidecars")
        && put_beside(arena, out, root, "previews");
}

bool cli_unit_of_file(const char *path, sfti_arena *arena, cli_unit *out) {
    *out = (cli_unit){ .path = sfti_arena_copy(arena, path, strlen(path)) };
    if (!out->path) return false;
    out->stem = cli_stem_of(cli_name_of(out->path));
    return put(arena, out, sft_span_cstr(out->path), true);
}

sft_code cli_unit_check(const cli_unit *unit, sft_error *err) {
    if (!unit->is_folder && cli_check_dataset(unit->path, err)) return SFT_BAD_ARGUMENT;
    if (unit->index.len == 0) return SFT_OK;
    return sfti_fail(err, SFT_BAD_ARGUMENT, "expected a model, found one of its shards: name "
                                            "%.*s instead", SFTI_CLIP(unit->index, (size_t)200));
}

bool cli_unit_alone(const cli_unit *unit) {
    char path[4096];
    os_info info;
    bool shared = false;
    int folder = (int)sfti_folder_len(unit->path);
    for (size_t i = 0; !unit->is_folder && cli_model_ends[i] && !shared; i++) {
        int len = snprintf(path, sizeof path, "%.*s%.*s%s", folder, unit->path,
                           (int)unit->stem.len, unit->stem.data, cli_model_ends[i]);
        if (len < 0 || (size_t)len >= sizeof path || sfti_os_info_path(path, true, &info)) continue;
        shared = true;
        for (size_t k = 0; k < unit->count; k++)
            if (strcmp(unit->items[k].path, path) == 0) shared = false;
    }
    return !shared;
}

/* ── Shards that another index names ── */

typedef struct index_search {
    cli_unit *unit;
    sfti_arena *named; /* the model itself is looked for: holds the name of its index; or NULL */
    bool (*counts)(void *ctx, const char *index);
    void *ctx;
} index_search;

static bool other_counts(void *ctx, const char *path) {
    index_search *search = ctx;
    return strcmp(path, search->unit->items[0].path) != 0
        && (!search->counts || search->counts(search->ctx, path));
}

static bool mark_named(void *ctx, const char *index, sft_span name) {
    index_search *search = ctx;
    cli_unit *unit = search->unit;
    size_t folder = sfti_folder_len(unit->path), len = strlen(index);
    for (size_t i = 0; !search->named && i < unit->count && unit->items[i].is_model; i++)
        if (cli_is(name, unit->items[i].path + folder)) unit->items[i].is_shared = true;
    if (!search->named || !cli_is(name, unit->items[0].path + folder)
        || (unit->index.len > 0
            && sfti_bytes_compare(unit->index, (sft_span){ index, len }) <= 0))
        return true; /* of several the first by name */
    char *copy = sfti_arena_copy(search->named, index, len);
    if (copy) unit->index = (sft_span){ copy, len };
    return copy != NULL;
}

static bool search_indexes(cli *c, index_search *search, bool by_name) {
    const char *path = search->unit->path;
    cli_indexes look = { .c = c, .folder = { path, sfti_folder_len(path) }, .by_name = by_name,
                         .counts = other_counts, .each = mark_named, .ctx = search };
    sft_error ignored = SFT_ERROR_INIT;
    return cli_indexes_each(&look, &ignored) != SFT_OUT_OF_MEMORY;
}

bool cli_unit_find_shared(cli *c, cli_unit *unit, bool (*counts)(void *ctx, const char *index),
                          void *ctx) {
    index_search search = { .unit = unit, .counts = counts, .ctx = ctx };
    return unit->is_folder || unit->count < 2 || !unit->items[1].is_model
        || search_indexes(c, &search, false);
}

/* Only a numbered file is looked for in all files of its folder: they may be many. */
bool cli_unit_find_index(cli *c, cli_unit *unit, sfti_arena *arena) {
    index_search search = { .unit = unit, .named = arena };
    uint64_t n, of;
    sft_span base;
    if (unit->is_folder || unit->index.len > 0) return true;
    return search_indexes(c, &search, !cli_shard_of(unit->path, &n, &of, &base));
}

size_t cli_unit_keep_shared(cli_unit *unit, bool alone, const char **stays) {
    size_t kept = 0, left = 0;
    for (size_t i = 0; i < unit->count; i++) {
        if (unit->items[i].is_model ? !unit->items[i].is_shared : alone)
            unit->items[kept++] = unit->items[i];
        else if (stays) stays[left++] = unit->items[i].path;
    }
    unit->count = kept;
    return left;
}
