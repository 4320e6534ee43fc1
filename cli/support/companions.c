/* What belongs to one model alone: shards and index, sidecars and pictures that begin with the
 * model's own name. Tests: tests/cli/mv. */
#include "support/companions.h"

#include "os/os.h"
#include "os/path.h"
#include "support/files.h"
#include "support/words.h"

#include <stdio.h>
#include <string.h>

const char *const cli_model_ends[] = { ".safetensors.index.json", ".safetensors", ".sft", ".ckpt",
                                       ".pt", ".pth", ".bin", ".gguf", ".onnx", NULL };

static sft_span stem_of_name(sft_span name) {
    for (size_t i = 0; cli_model_ends[i]; i++) {
        size_t len = strlen(cli_model_ends[i]);
        if (cli_ends_with(name, cli_model_ends[i]) && name.len > len)
            return (sft_span){ name.data, name.len - len };
    }
    return name;
}

static bool put(sfti_arena *arena, cli_unit *unit, sft_span path, bool is_model) {
    for (size_t i = 0; i < unit->count; i++)
        if (sft_span_equal(sft_span_cstr(unit->items[i].path), path)) return true;
    cli_companion *items = sfti_arena_grow(arena, unit->items, unit->count, 1, &unit->capacity,
                                           sizeof *items);
    char *copy = items ? sfti_arena_copy(arena, path.data, path.len) : NULL;
    if (!copy) return false;
    unit->items = items;
    items[unit->count++] = (cli_companion){ copy, is_model };
    return true;
}

/* A file of the model's own folder whose name is the stem and more. */
static bool is_own(const cli_unit *unit, sft_span path) {
    size_t folder = sfti_folder_len(unit->path);
    sft_span name = sfti_path_name(path);
    return path.len == folder + name.len && memcmp(path.data, unit->path, folder) == 0
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

bool cli_unit_of(const cli_model *model, sfti_arena *arena, cli_unit *out) {
    const sft_node *root = sft_tree_root(model->tree);
    *out = (cli_unit){ .path = sfti_arena_copy(arena, model->path, strlen(model->path)) };
    if (!out->path) return false;
    if (model->is_pipeline || model->is_dataset) {
        sft_span folder = model->is_dataset ? sft_span_cstr(model->path)
                                            : sfti_path_above(sft_span_cstr(model->path));
        out->is_folder = true;
        out->path = sfti_arena_copy(arena, folder.data, folder.len);
        return out->path && put(arena, out, folder, true);
    }
    out->stem = stem_of_name(cli_name_of(out->path));
    if (!put(arena, out, sft_span_cstr(model->input->path), true)) return false;
    for (size_t i = 0; model->inputs && i < model->count; i++)
        if (!put(arena, out, sft_span_cstr(model->inputs[i]->path), true)) return false;
    for (size_t i = 0; model->set && !model->import && i < sft_set_shard_count(model->set); i++) {
        const char *shard = sft_set_shard_path(model->set, i);
        if (shard && !put(arena, out, sft_span_cstr(shard), true)) return false;
    }
    return put_beside(arena, out, root, "sidecars") && put_beside(arena, out, root, "previews");
}

bool cli_unit_of_file(const char *path, sfti_arena *arena, cli_unit *out) {
    *out = (cli_unit){ .path = sfti_arena_copy(arena, path, strlen(path)) };
    if (!out->path) return false;
    out->stem = stem_of_name(cli_name_of(out->path));
    return put(arena, out, sft_span_cstr(out->path), true);
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

void cli_unit_keep_shared(cli_unit *unit) {
    size_t own = 0;
    while (own < unit->count && unit->items[own].is_model) own++;
    unit->count = own;
}
