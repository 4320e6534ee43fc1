/* trash: models to the trash, with everything that is their own. Tests: tests/cli/trash. */
#include "commands/commands.h"
#include "os/os.h"
#include "os/path.h"
#include "support/adapters.h"
#include "support/files.h"
#include "support/records.h"
#include "support/trash.h"
#include "support/where.h"

#include <string.h>

typedef struct trash_run {
    cli *c;
    cli_wheres where;
    sfti_arena arena;
    size_t found;
} trash_run;

/* stays: what other models may need. */
static void tell(trash_run *run, const cli_unit *unit, const char *const *stays, size_t left) {
    cli *c = run->c;
    if (cli_is_json(c)) {
        cli_object object;
        sfti_json_writer *w = cli_object_begin(&object, c, unit->path);
        sfti_json_put_bool(w, "dry_run", c->set.dry_run != 0);
        sfti_json_put_open(w, "files", '[');
        for (size_t i = 0; i < unit->count; i++) sfti_json_cstr(w, unit->items[i].path);
        sfti_json_close(w, ']');
        sfti_json_put_open(w, "stays", '[');
        for (size_t i = 0; i < left; i++) sfti_json_cstr(w, stays[i]);
        sfti_json_close(w, ']');
        cli_object_end(&object);
        return;
    }
    cli_path(&c->out, unit->path, ": %smoved to the trash", c->set.dry_run ? "would be " : "");
    if (unit->count > 1)
        cli_printf(&c->out, ", with %zu file%s", unit->count - 1, unit->count == 2 ? "" : "s");
    if (left > 0)
        cli_printf(&c->out, "; %zu file%s that others may need stay%s", left, left == 1 ? "" : "s",
                   left == 1 ? "s" : "");
    cli_text(&c->out, "\n");
    for (size_t i = 1; c->set.verbose && i < unit->count; i++)
        cli_fill(&c->out, "  %\n", sft_span_cstr(unit->items[i].path));
    for (size_t i = 0; c->set.verbose && i < left; i++)
        cli_fill(&c->out, "  %: stays\n", sft_span_cstr(stays[i]));
}

/* Whether it is a file that was named and is no model: it goes alone. One that an edit left in two
 * states does not, nor one of which nothing is known, as it could not be read, nor a part of a
 * model whose first part is there. */
static bool is_broken(const trash_run *run, const cli_model *model) {
    sft_code code = model->err.code;
    os_info info;
    return code && !model->err.os_errno && code != SFT_OUT_OF_MEMORY && code != SFT_CANCELLED
        && code != SFT_EDIT_INTERRUPTED && code != SFT_EDIT_BUSY && run->where.count == 0
        && model->input->kind == CLI_FILE && !model->input->is_found
        && !cli_is_later_part(model->path, &run->c->open)
        && !sfti_os_info_path(model->path, true, &info) && info.kind == OS_FILE;
}

/* ── Configurations of adapters ── */

/* 1: the folder has another file that adapter_config.json beside it is of. */
static int find_adapter(void *ctx, const char *name, os_kind kind) {
    const cli_unit *unit = ctx;
    bool is_model = false;
    if (kind == OS_DIR || !cli_is_adapter_model(name)) return 0;
    for (size_t i = 0; cli_model_ends[i]; i++)
        is_model |= cli_ends_with(sft_span_cstr(name), cli_model_ends[i]);
    for (size_t i = 0; i < unit->count && is_model; i++)
        is_model = strcmp(cli_name_of(unit->items[i].path).data, name) != 0;
    return is_model;
}

/* adapter_config.json goes with the adapter_model beside it, unless another there needs it. */
static sft_code take_config(cli_unit *unit, sfti_arena *arena, sft_error *err) {
    sft_span folder = cli_folder_of(unit->path);
    os_info info;
    if (unit->is_folder || !cli_is_adapter_model(unit->path)) return SFT_OK;
    char *config = sfti_arena_join(arena, (sft_span){ unit->path, sfti_folder_len(unit->path) },
                                   sft_span_cstr(CLI_ADAPTER_CONFIG));
    char *listed = sfti_arena_join(arena, folder, sft_span_cstr(folder.len ? "" : "."));
    cli_companion *items = sfti_arena_array(arena, unit->count + 1, sizeof *items);
    if (!config || !listed || !items) return sfti_fail_memory(err, folder.len);
    if (sfti_os_info_path(config, false, &info) || info.kind != OS_FILE) return SFT_OK;
    if (sfti_os_list(listed, find_adapter, unit)) return SFT_OK;
    memcpy(items, unit->items, unit->count * sizeof *items);
    items[unit->count++] = (cli_companion){ .path = config };
    unit->items = items;
    unit->capacity = unit->count;
    return SFT_OK;
}

static void each_model(void *ctx, cli_model *model) {
    trash_run *run = ctx;
    cli *c = run->c;
    cli_unit unit;
    sft_error err = SFT_ERROR_INIT;
    const char *blame = model->path, **stays = NULL;
    size_t left = 0;
    sft_code code = SFT_OK;
    bool broken = is_broken(run, model);
    if (!broken && (!model->tree || model->err.code)) {
        cli_fail_model(c, model);
        return;
    }
    if (!broken && !cli_wheres_fit(c, &run->where, sft_tree_root(model->tree))) return;
    run->found++;
    if (!(broken ? cli_unit_of_file(model->path, &run->arena, &unit)
                 : cli_unit_of(model, &run->arena, &unit)))
        code = sfti_fail_memory(&err, 1);
    /* A model that is named has one, or shards without an index that is called so. */
    bool may_have = !model->input->is_found || model->inputs;
    if (!code && may_have && !cli_unit_find_index(c, &unit, &run->arena))
        code = sfti_fail_memory(&err, 1);
    if (!code) code = cli_unit_check(&unit, &err);
    if (!code && !broken) {
        stays = sfti_arena_array(&run->arena, unit.count, sizeof *stays);
        if (!stays || !cli_unit_find_shared(c, &unit, NULL, NULL)) code = sfti_fail_memory(&err, 1);
        else left = cli_unit_keep_shared(&unit, cli_unit_alone(&unit), stays);
        if (!code) code = take_config(&unit, &run->arena, &err);
    }
    if (!code && !c->set.dry_run) code = cli_trash_unit(c, &unit, NULL, &blame, &err);
    if (code) cli_fail_input(c, blame, &err);
    else tell(run, &unit, stays, left);
}

static void run_trash(cli *c, char **operands, size_t count) {
    trash_run run = { .c = c };
    sft_error err = SFT_ERROR_INIT;
    size_t models;
    os_info info;
    run.arena.alloc = c->alloc;
    c->others = CLI_AND_OTHERS | CLI_FILES_ONLY;
    c->counts_unread = true;
    sft_code code = cli_where_read(c, &run.where, &err);
    bool sure = c->set.yes || c->set.dry_run;
    for (size_t i = 0; !code && !sure && i < count; i++)
        if (!sfti_os_info_path(operands[i], true, &info) && info.kind == OS_DIR)
            code = cli_usage_error(&err, "expected --yes, or --dry-run, with the folder \"%s\": "
                                   "all models in it%s would go", operands[i],
                                   c->set.where.count ? " that --where keeps" : "");
    if (code) cli_fail_usage(c, &err);
    else cli_each_model(c, operands, count, &models, NULL, each_model, &run);
    if (!code && run.found == 0 && c->status == CLI_OK) cli_status(c, CLI_NO);
    sfti_arena_free(&run.arena);
}

const cli_command cli_trash_command = {
    "trash", "MODEL...", "move models to the trash with everything that is their own",
    "A model goes to the trash of the desktop with all its shards, its index, and the sidecars and "
    "pictures that begin with its name, and an adapter_model with its adapter_config.json; from "
    "there the desktop brings it back. What it shares with other models stays, and is counted (-v "
    "names it). Each model goes whole or not at all. A file that is named and is no model, or a "
    "broken one, goes alone; one that may not be read stays, for nobody knows what belongs to it."
    "\n"
    "For folders, --yes says that all models in them are meant, or those that --where keeps.",
    CLI_EXAMPLES(
        { "safetensors trash neon.safetensors", "with its sidecars and pictures" },
        { "safetensors trash -r ~/models --where 'rating<3' --dry-run", "which would go?" }),
    { CLI_OPTIONS(
        CLI_TAKES_MANY(0, "where", "FIELD=VALUE", where, CLI_WHERE_HELP),
        CLI_ON(0, "yes", yes, "also for folders, without asking for more"),
        CLI_ON(0, "dry-run", dry_run, "print what would go; change nothing"),
        CLI_ON('v', "verbose", verbose,
          "name every file, and models in folders that cannot be read")),
      cli_input_options, cli_json_options, cli_reading_options, cli_records_options,
      cli_common_options },
    { "all models are in the trash", "no model matches --where",
      CLI_UNREAD_STATUS ", or not moved, or a usage error" },
    1, SIZE_MAX, run_trash, CLI_URLS_NONE,
};
