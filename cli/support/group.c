/* Which inputs are one model: shards without an index, components, shards of a dataset. */
#include "support/models.h"

#include "base/files.h"
#include "os/os.h"
#include "os/path.h"
#include "support/files.h"
#include "support/words.h"
#include "safetensors_index.h"

#include <errno.h>
#include <string.h>

/* ── Components ── */

typedef bool (*folder_is)(const cli_inputs *inputs, sft_span folder);

/* What a folder is. The answer for the folder asked before is kept. */
typedef struct folder_memory {
    sft_span folder;
    bool known, yes;
} folder_memory;

static bool remembered(folder_memory *memory, const cli_inputs *inputs, sft_span folder,
                       folder_is is) {
    if (!memory->known || !sft_span_equal(memory->folder, folder))
        *memory = (folder_memory){ folder, true, is(inputs, folder) };
    return memory->yes;
}

/* The folder that an input is a part of; false if it is none's. */
typedef bool (*folder_of)(const cli_inputs *inputs, const cli_input *input, folder_memory *memory,
                          sft_span *out);

/* That of the pipeline that an input is a component of. */
static bool pipeline_of(const cli_inputs *inputs, const cli_input *input, folder_memory *memory,
                        sft_span *out) {
    sft_span folder = cli_folder_of(input->path);
    if (folder.len == 0 || !cli_input_is_path(input)) return false;
    *out = sfti_path_above(folder);
    return remembered(memory, inputs, *out, cli_is_pipeline);
}

/* ── Shards of datasets ── */

static bool dataset_of(const cli_inputs *inputs, const cli_input *input, folder_memory *memory,
                       sft_span *out) {
    return input->kind == CLI_FILE && cli_dataset_folder(input->path, out)
        && remembered(memory, inputs, *out, cli_is_dataset);
}

/* ── Models ── */

static cli_model *add_model(cli_models *models, const cli_input *input) {
    cli_model *items = sfti_arena_grow(&models->arena, models->items, models->count, 1,
                                       &models->capacity, sizeof *items);
    if (!items) return NULL;
    models->items = items;
    cli_model *model = &items[models->count++];
    memset(model, 0, sizeof *model);
    model->input = input;
    model->path = input->path;
    model->count = 1;
    return model;
}

/* The model is the folder, of the inputs from i on that are parts of it by `of`; list can hold all
 * that follow. */
static cli_model *add_folder(cli_models *models, const cli_inputs *inputs, size_t i, bool *taken,
                       sft_span folder, folder_of of, const cli_input **list) {
    folder_memory memory = { { NULL, 0 }, false, false };
    cli_model *model = add_model(models, inputs->items[i]);
    sft_span other;
    size_t n = 0;
    if (!model) return NULL;
    for (size_t k = i; k < inputs->count; k++) {
        const cli_input *input = inputs->items[k];
        if (strncmp(input->path, folder.data, folder.len) != 0) break;
        if (taken[k] || !of(inputs, input, &memory, &other)) continue;
        if (!sft_span_equal(other, folder)) continue;
        taken[k] = true;
        list[n++] = input;
    }
    model->count = n;
    if (folder.len == 0) folder = sft_span_cstr(".");
    model->path = sfti_arena_copy(&models->arena, folder.data, folder.len);
    return model->path ? model : NULL;
}

bool cli_group_inputs(cli_models *models, const cli_inputs *inputs, bool found) {
    folder_memory memory = { { NULL, 0 }, false, false }, datasets = memory;
    bool *taken = sfti_arena_take(&models->arena, inputs->count + 1);
    const cli_input **list = sfti_arena_take(&models->arena, (inputs->count + 1) * sizeof *list);
    sft_span folder;
    if (!taken || !list) return false;
    memset(taken, 0, inputs->count + 1);
    for (size_t i = 0; i < inputs->count; i++) {
        const cli_input *input = inputs->items[i];
        if (taken[i]) continue;
        bool pipeline = found && pipeline_of(inputs, input, &memory, &folder);
        bool shard = !pipeline && found
                  && dataset_of(inputs, input, &datasets, &folder);
        bool empty = input->kind == CLI_EMPTY /* its path is the folder */
                  && cli_is_dataset(inputs, sft_span_cstr(input->path));
        size_t count = pipeline || shard || !found ? 0 : cli_shards_from(inputs, i, taken, list);
        cli_model *model = pipeline || shard
                             ? add_folder(models, inputs, i, taken, folder,
                                          pipeline ? pipeline_of : dataset_of, list)
                             : add_model(models, input);
        if (!model) return false;
        model->is_pipeline = pipeline;
        model->is_dataset = shard || empty;
        if (model->is_dataset) model->count = 0;
        if (count > 0) model->count = count;
        if (!pipeline && count == 0) continue;
        const cli_input **own = sfti_arena_take(&models->arena, model->count * sizeof *own);
        if (!own) return false;
        memcpy(own, list, model->count * sizeof *own);
        model->inputs = own;
    }
    return true;
}

/* ── What is not there ── */

static bool missing_of_index(cli_model *model, const sft_open_options *open, const char **names,
                             sfti_arena *arena) {
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    sft_index *index = NULL;
    bool ok = true;
    /* To look for those of a server would take a request each. */
    if (sfti_files_claim(open->files, model->input->path, NULL)) return true;
    options.open = open;
    if (sft_index_open(model->input->path, &options, &index, NULL)) return true;
    for (size_t i = 0; ok && i < sft_index_shard_count(index); i++) {
        const char *name = sft_index_shard_at(index, i), *folder = sft_index_folder(index);
        int fd, error = sfti_os_open_beneath(folder, name, OS_BENEATH_READ, &fd);
        if (!error) sfti_os_close(fd);
        if (!error || error == EACCES) continue; /* a file that may not be read is there */
        char *kept = cli_join_path(arena, sft_span_cstr(""), cli_name_of(name).data);
        ok = kept != NULL;
        if (ok) names[model->missing_count++] = kept;
    }
    sft_index_close(index);
    return ok;
}

bool cli_find_missing(cli_model *model, const sft_open_options *open, sfti_arena *arena) {
    cli_shard_name first;
    bool by_name = model->inputs && !model->is_pipeline && cli_parse_shard(model->path, &first);
    if (!by_name && model->input->kind != CLI_INDEX) return true;
    size_t most = by_name ? (size_t)first.of : SFT_MAX_SHARDS;
    const char **names = sfti_arena_take(arena, most * sizeof *names);
    if (!names) return false;
    model->missing = names;
    return by_name ? cli_shards_missing(model->inputs, model->count, names, &model->missing_count,
                                     arena)
                   : missing_of_index(model, open, names, arena);
}
