/* catalog: models as a page for a browser. Tests: tests/cli/catalog, tests/page. */
#include "base/sink.h"
#include "catalog/catalog.h"
#include "commands/commands.h"
#include "commands/info/online.h"
#include "os/io.h"
#include "support/output.h"
#include "support/records.h"
#include "support/remote.h"
#include "safetensors_io.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

typedef struct catalog_command {
    catalog_run run;
    cli_output output;
    const char *blame; /* of a failed beginning: the path it is about */
    cli_compute compute;
    cli_progress progress;
    char title[CLI_TITLE_SIZE];
    catalog_rows rows;
    catalog_details details;
    size_t models, seen, broken; /* there are; delivered so far; of the page */
    size_t empty;                /* folders without models */
    sfti_arena arena;
    catalog_dict paths;          /* of those that were delivered */
    bool is_empty;               /* no model matches --where */
    sft_code code;               /* the first failure of the page, with err */
    sft_error err;
} catalog_command;

/* ── The page ── */

#define TITLE_ROOTS 3

/* What is behind the first "…" is not taken. */
static void add_title(catalog_command *run, sft_span text) {
    size_t used = strlen(run->title), most = sizeof run->title - 1 - used;
    if (most < 4 || !text.len) return;
    text = text_cut(text, most, run->title + used);
    memmove(run->title + used, text.data, text.len);
    run->title[used + text.len] = 0;
}

/* Embedded pictures are written at once, details as soon as they fill a block, the columns at the
 * end. */
static sft_code add_to_page(catalog_command *run, const cli_model *model) {
    sfti_arena arena = { .alloc = run->run.c->alloc };
    catalog_picture *pictures = NULL;
    size_t count = 0;
    sft_span path;
    sft_error *err = &run->err;
    bool broken = !model->tree || model->err.code;
    sft_code code = catalog_path(&run->run.places, model->path, &arena, &path, err);
    if (!code && !broken)
        code = pictures_of(&run->run.pictures, model, &arena, &pictures, &count, err);
    if (!code) code = rows_add(&run->rows, model, pictures, count, err);
    if (!code)
        code = details_add(&run->details, model, path, pictures, count,
                           rows_last_bytes(&run->rows));
    sfti_arena_free(&arena);
    return code;
}

/* Whether a model was delivered before (one that is named, in a folder that is given too), or
 * run->code says why that is not known. */
static bool is_listed(catalog_command *run, const cli_model *model) {
    sfti_arena arena = { .alloc = run->run.c->alloc };
    sft_span path;
    uint32_t number = DICT_NONE;
    sft_code code = catalog_path(&run->run.places, model->path, &arena, &path, &run->err);
    if (!code && !dict_put(&run->paths, path, (sft_span){ "", 0 }, &number))
        code = sfti_fail_memory(&run->err, path.len);
    sfti_arena_free(&arena);
    run->code = code;
    return code || (number != DICT_NONE && run->paths.entries[number].uses > 1);
}

/* A folder without models has no row; anything else that cannot be read has one that says why. */
static void add_model(void *ctx, cli_model *model) {
    catalog_command *run = ctx;
    cli *c = run->run.c;
    cli_progress_count(&run->progress, ++run->seen, run->models);
    bool whole = cli_compute_has_tree(&run->compute, model);
    if (run->code) return;
    if (is_listed(run, model)) { /* reported already; being named counts, whichever came first */
        bool named = !model->input->is_found && model->input->kind != CLI_EMPTY;
        if (!run->code && named && !whole) cli_status(c, CLI_FAILED);
        return;
    }
    if (model->input->kind == CLI_EMPTY && !model->is_dataset && !model->input->err) {
        run->empty++;
        return;
    }
    if (whole && !cli_wheres_fit(c, &run->compute.where, sft_tree_root(model->tree))) return;
    if (!whole && model->input->err) model->err = *model->input->err;
    if (model->err.code == SFT_OUT_OF_MEMORY || model->err.os_errno == EMFILE
        || model->err.os_errno == ENFILE) { /* nothing is wrong with the model */
        run->err = model->err;
        run->code = model->err.code;
        return;
    }
    if (!whole) {
        cli_progress_end(&run->progress);
        if (model->input->is_found) cli_fail_found(c, model->input, model->path, &model->err);
        else cli_fail_input(c, model->path, &model->err);
        /* what a link out of the folders leads to is not quoted in the page, as messages do */
        char real[CLI_REAL_SIZE];
        if (!cli_is_remote(c, model->path) && places_real(&run->run.places, model->path, real)
            && !places_has(&run->run.places, real))
            (void)sfti_fail(&model->err, model->err.code, "%s",
                            sft_code_describe(model->err.code)->sentence);
        run->broken++;
    }
    if (whole || !run->compute.where.count)
        run->code = sft_sink_limit_mode(&run->run.sink, cli_output_mode_of_model(model), &run->err);
    if (!run->code && (whole || !run->compute.where.count))
        run->code = add_to_page(run, model);
}

static sft_code write_list(catalog_command *run, char **operands, size_t count) {
    cli *c = run->run.c;
    html_page *page = &run->run.page;
    const catalog_places *places = &run->run.places;
    /* --title, or the names of the folders. */
    if (c->set.title) add_title(run, sft_span_cstr(c->set.title));
    for (size_t i = 0; !c->set.title && i < places->labels && i < TITLE_ROOTS; i++) {
        if (i) add_title(run, sft_span_cstr(", "));
        add_title(run, places_label(places, i));
    }
    if (!c->set.title && places->labels > TITLE_ROOTS)
        add_title(run, sft_span_cstr(", \xE2\x80\xA6"));
    if (!*run->title) add_title(run, sft_span_cstr("Models"));
    run->run.pictures.page = page;
    rows_begin(&run->rows, c, places);
    html_begin(page, HTML_CATALOG, run->run.sink, run->title, &c->alloc, &run->err);
    details_begin(&run->details, page, &c->alloc, &run->err);
    run->code = page->code;
    (void)cli_progress_begin(&run->progress, c, run->output.path);
    if (!run->code)
        cli_each_model(c, operands, count, &run->models, &run->compute.digests, add_model, run);
    cli_progress_end(&run->progress);
    if (!run->code && cli_is_over(c))
        run->code = sfti_fail(&run->err, SFT_CANCELLED, "cancelled");
    if (!run->code && run->rows.count == 0 && run->compute.where.count) {
        run->is_empty = true;
        run->code = sfti_fail(&run->err, SFT_NOT_FOUND, "expected models that match --where, "
                                                        "found none");
    }
    if (!run->code) run->code = details_end(&run->details);
    if (!run->code)
        run->code = rows_write(&run->rows, page, run->title, DETAILS_MODELS, &run->err);
    if (!run->code) run->code = html_end(page);
    rows_free(&run->rows);
    details_free(&run->details);
    return run->code;
}

/* Without the cards of those that could not be read. */
static size_t count_models(const catalog_command *run) {
    bool cards = run->compute.where.count == 0;
    return run->run.c->set.model ? 1 : run->rows.count - (cards ? run->broken : 0);
}

static void say_page(const catalog_command *run) {
    cli *c = run->run.c;
    char size[CLI_NUMBER_SIZE];
    size_t models = count_models(run), pictures = run->run.pictures.count;
    bool is_list = !c->set.model;
    cli_path(&c->out, run->output.path, ": ");
    if (is_list) cli_printf(&c->out, "%zu model%s, ", models, models == 1 ? "" : "s");
    if (run->empty)
        cli_printf(&c->out, "%zu folder%s without models, ", run->empty,
                   run->empty == 1 ? "" : "s");
    if (run->broken) cli_printf(&c->out, "%zu unreadable, ", run->broken);
    cli_text(&c->out, cli_size_text(run->run.page.at, size));
    if (pictures)
        cli_printf(&c->out, ", %zu picture%s embedded (%s)", pictures, pictures == 1 ? "" : "s",
                   cli_size_text(run->run.pictures.bytes, size));
    cli_text(&c->out, run->output.stream ? "\n" : "; open it in a browser\n");
    if (is_list) cli_passed_line(c, &c->out);
}

static void write_page(catalog_command *run, char **operands, size_t count) {
    cli *c = run->run.c;
    const char *path = run->output.path;
    sft_code code = cli_output_sink(&run->output, &run->run.sink, &run->err);
    if (!code) {
        code = c->set.model ? catalog_write_model(&run->run, c->set.model, &run->err)
                            : write_list(run, operands, count);
        if (code && c->set.model) path = c->set.model;
        code = sfti_sink_end(&run->run.sink, code, &run->err);
    }
    if (code && !run->is_empty) cli_status(c, CLI_FAILED);
    if (run->is_empty && run->broken < run->seen) cli_refuse(c, NULL, &run->err);
    else if (run->is_empty) cli_complain(c, NULL, &run->err);
    else if (code) cli_fail_input(c, path, &run->err);
    else if (!cli_is_json(c)) say_page(run);
    if (code || run->is_empty || !cli_is_json(c)) return;
    cli_object object;
    sfti_json_writer *w = cli_object_begin(&object, c, path);
    sfti_json_put_uint(w, "models", count_models(run));
    sfti_json_put_uint(w, "unreadable", run->broken);
    sfti_json_put_uint(w, "bytes", run->run.page.at);
    sfti_json_put_uint(w, "embedded_pictures", run->run.pictures.count);
    sfti_json_put_uint(w, "embedded_bytes", run->run.pictures.bytes);
    cli_object_end(&object);
}

/* ── Options ── */

static sft_code check_operands_of(const cli *c, char **operands, size_t count, sft_error *err) {
    if (c->set.model && count > 0)
        return cli_usage_error(err, "expected PATH... or --model FILE, found both");
    if (!c->set.model && count == 0)
        return cli_usage_error(err, "expected PATH... or --model FILE, found none");
    if (c->set.deep && !c->set.model)
        return cli_usage_error(err, "expected --model FILE with --deep, found none");
    if (c->set.values && !c->set.model)
        return cli_usage_error(err, "expected --model FILE with --values, found none");
    if (c->set.model && (c->set.hash || c->set.online || c->set.where.count))
        return cli_usage_error(err, "expected --hash, --online and --where without --model");
    for (size_t i = 0; i < count; i++)
        if (strcmp(operands[i], "-") == 0)
            return cli_usage_error(err, "expected files and folders, found standard input");
    return SFT_OK;
}

/* With --force a page is replaced, or an empty file; never a model that -o named by mistake. */
static sft_code check_replaced(const cli_output *output, sft_error *err) {
    static const char start[] = "<!DOCTYPE html>";
    char found[sizeof start - 1];
    os_info info;
    size_t got = 0;
    int fd;
    if (output->stream || sfti_os_info_path(output->path, true, &info) != 0 || info.kind != OS_FILE)
        return SFT_OK;
    int error = sfti_os_open_read(output->path, &fd);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    error = sfti_read_all(fd, found, sizeof found, 0, &got);
    sfti_os_close(fd);
    if (error) return sfti_io_fail(err, SFT_IO_READ, error, "read");
    if (got == 0 || (got == sizeof found && memcmp(found, start, got) == 0)) return SFT_OK;
    return cli_usage_error(err, "expected a page to replace, found another file: %s",
                           output->path);
}

static sft_code begin_catalog(catalog_command *run, char **operands, size_t *operand_count,
                              sfti_arena *arena) {
    size_t count = *operand_count;
    cli *c = run->run.c;
    char *model = (char *)(uintptr_t)c->set.model;
    sft_code code = check_operands_of(c, operands, count, &run->err);
    if (!code && model)
        code = cli_remote_take(c, &model, 1, CLI_URLS_ALL, "--model", &run->err);
    c->set.model = model;
    if (!code) code = cli_compute_read(&run->compute, c, &run->err);
    if (!code) code = cli_where_read(c, &run->compute.where, &run->err);
    if (!code) code = pictures_begin(&run->run.pictures, c, &run->err);
    if (code) return code;
    run->run.pictures.places = &run->run.places;
    code = cli_output_begin(&run->output, c, NULL, CLI_TARGET_OTHER, &run->err);
    run->blame = run->output.path;
    if (!code) code = check_replaced(&run->output, &run->err);
    for (size_t i = 0; !code && i < count; i++) { /* a page of a mistyped path is of little use */
        os_info info;
        int error = cli_is_remote(c, operands[i]) ? 0
                                                  : sfti_os_info_path(operands[i], true, &info);
        if (!error) continue;
        run->blame = operands[i];
        code = sfti_io_fail(&run->err, SFT_IO_OPEN, error, "open");
    }
    if (!code) code = cli_distinct_operands(c, operands, operand_count, arena, &run->err);
    if (code) return code;
    return places_begin(&run->run.places, c, model ? &model : operands,
                        model ? 1 : *operand_count, run->output.path, &run->err);
}

static void run_catalog(cli *c, char **operands, size_t count) {
    catalog_command *run = sfti_take(&c->alloc, sizeof *run);
    if (!run) {
        cli_complain_memory(c, sizeof *run);
        return;
    }
    memset(run, 0, sizeof *run);
    run->run.c = c;
    run->err = (sft_error)SFT_ERROR_INIT;
    run->arena.alloc = c->alloc;
    dict_begin(&run->paths, &run->arena);
    c->set.recursive = 1;
    c->counts_unread = true;
    sfti_arena arena = { .alloc = c->alloc };
    sft_code code = begin_catalog(run, operands, &count, &arena);
    sfti_arena_free(&arena);
    if (code == SFT_BAD_ARGUMENT) cli_fail_usage(c, &run->err);
    else if (code) cli_fail_input(c, run->blame, &run->err);
    else if (cli_compute_begin(&run->compute, run->output.path)) write_page(run, operands, count);
    if (!code) cli_compute_end(&run->compute);
    places_free(&run->run.places);
    dict_free(&run->paths);
    sfti_arena_free(&run->arena);
    sfti_release(&c->alloc, run, sizeof *run);
}

const cli_command cli_catalog_command = {
    "catalog", "[PATH...] -o OUT.html", "write a folder of models as one page for a browser",
    "Writes one HTML file that shows the models below folders as cards: previews, trigger words to "
    "copy, base model, size, licence, training, every fact with its source. It can be searched, "
    "filtered and sorted, works offline from where it lies and asks no server for anything. The "
    "facts are those of info, from headers, tensor names and sidecars; other formats that info "
    "reads appear too. Folders are searched recursively.\n"
    "Previews are links to the image files below the folders, relative to the page: keep the page "
    "where it is, or use --embed. What lies outside of the folders is never linked to. Thumbnails "
    "in headers are in the page if they are no larger than --embed allows. Pictures over 64 MiB or "
    "with more than 134 million pixels are not shown.\n"
    "A model that cannot be read is a card with the reason; with --where it is only counted. As "
    "long as nothing changes, the same command writes the same bytes.\n"
    CLI_WHERE_ABOUT "\n"
    "--hash computes digests; models with the same content digest or SHA-256 are marked as copies, "
    "and so are those whose sidecars record the same SHA-256 with a size that matches. Models "
    "with other names of tensors, or in another format with more than the tensors that are read, "
    "are marked as copies only if their SHA-256 is the same. --online asks CivitAI as info "
    "--online does.\n"
    "Models are selected on the page and leave as commands to copy; stars that are set on it are "
    "kept by the browser and leave as note commands. A folder without models gives a page that "
    "says which files it takes.\n"
    "--model writes a page about one model instead: tensors as a tree with their sizes and as a "
    "map, of an adapter the ranks by block, and with --deep the statistics of each tensor, norms "
    "and singular values of an adapter.\n" CLI_VALUES_TEXT,
    CLI_EXAMPLES(
        { "safetensors catalog ~/models -o catalogue.html", "a page of all models in a tree" },
        { "safetensors catalog ~/models -o catalogue.html --force", "bring the page up to date" },
        { "safetensors catalog loras --embed -o loras.html", "with small pictures in the page" },
        { "safetensors catalog ~/models --where kind=adapter --title LoRAs -o loras.html",
          "only adapters" },
        { "safetensors catalog --model model.safetensors -o model.html",
          "the tensors of one model" }),
    { CLI_OPTIONS(
        CLI_ON('r', "recursive", recursive,
          "has no effect: folders are always searched recursively"),
        CLI_FILES_FROM,
        CLI_TAKES(0, "title", "TITLE", title,
          "title of the page; default: the names of the folders, or of the model"),
        { 0, "embed", "KB", CLI_MAYBE, 0, offsetof(cli_settings, embed),
          "put pictures of up to KB kilobytes (of 1024; default 64) into the page, which can then "
          "be sent away; larger ones stay links" },
        CLI_TAKES_MANY(0, "where", "FIELD=VALUE", where, CLI_WHERE_HELP),
        CLI_TAKES(0, "hash", "LIST", hash,
          "compute these digests, by which copies are found: names as for hash --algo, separated "
          "by commas, or all"),
        CLI_TAKES(0, "model", "FILE", model,
          "a page about one model instead: its tensors as a tree and as a map"),
        CLI_ON(0, "deep", deep,
          "with --model: read all data, for statistics of each tensor and norms of LoRA modules"),
        CLI_VALUES,
        CLI_ON(0, "force", force, "overwrite an existing file"),
        CLI_ON(0, "follow", follow, "replace the target of a symbolic link"),
        CLI_ON(0, "no-sync", no_sync, "do not fsync; a power failure may then lose the result")),
      cli_unread_options, cli_output_options, cli_hash_run_options, cli_online_options,
      cli_json_options, cli_reading_options, cli_records_options, cli_remote_options,
      cli_network_options, cli_common_options },
    { "the page was written", "no model matches --where",
      "the page was not written, a model that was named, or every one in the folders, could not "
      "be read, the server did not answer, or a usage error" },
    0, SIZE_MAX, run_catalog, CLI_URLS_ALL,
};
