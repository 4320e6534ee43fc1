/* info: what is this model? */
#include "cli.h"

#include "export.h"
#include "fields.h"
#include "label.h"
#include "where.h"

#include <inttypes.h>
#include <string.h>

typedef struct info_run {
    cli *c;
    size_t models;         /* how many there are */
    size_t shown, known;   /* results shown; values of -f that were not null */
    uint64_t bytes;        /* of those shown */
    bool refused;          /* the usage was wrong */
    cli_fields fields;
    cli_where where[CLI_WORDS_MOST];
    size_t where_count;
} info_run;

/* ── One model ── */

static bool is_wanted(const info_run *run, const cli_node *root) {
    for (size_t i = 0; i < run->where_count; i++) {
        if (!cli_where_fits(&run->where[i], root)) return false;
    }
    return true;
}

static void show_json(info_run *run, const cli_model *model, cli_node *root) {
    cli *c = run->c;
    sft_sink sink = cli_out_sink(&c->out);
    sfti_json_writer w;
    cli_result_begin(c);
    if (run->fields.count == 0) {
        cli_put(&c->out, model->json.data, model->json.len);
    } else {
        run->known += cli_fields_keep(root, &run->fields);
        sfti_json_write(&w, &sink, 0, NULL);
        cli_doc_write(root, &w);
        (void)sfti_json_done(&w);
    }
    cli_result_end(c);
}

static void show_fields(info_run *run, const cli_model *model, const cli_node *root) {
    cli *c = run->c;
    bool tsv = c->set.format == CLI_TSV;
    if (tsv && c->results == 0) cli_fields_header(&c->out, &run->fields);
    c->results++;
    bool has_path = sft_span_equal(run->fields.names[0], sft_span_cstr("path"));
    if (!tsv && run->models > 1 && !has_path) {
        cli_field_text(&c->out, sft_span_cstr(model->path));
        cli_text(&c->out, "\t");
    }
    run->known += cli_fields_line(&c->out, root, &run->fields);
}

static void show_model(info_run *run, const cli_model *model, cli_node *root) {
    cli *c = run->c;
    uint64_t bytes;
    if (cli_doc_uint(root, "file.bytes", &bytes)) run->bytes += bytes;
    run->shown++;
    if (cli_is_json(c)) show_json(run, model, root);
    else if (run->fields.count > 0) show_fields(run, model, root);
    else if (run->models == 1 || c->set.longer || c->set.verbose)
        cli_label(c, model, root, run->models > 1);
    else cli_label_line(c, model, root);
}

static void export_model(info_run *run, const cli_model *model) {
    cli *c = run->c;
    if (c->set.preview_folder) cli_export_previews(c, model, c->set.preview_folder);
    if (c->set.workflow_file) cli_export_workflow(c, model, c->set.workflow_file);
}

static void each_info(void *ctx, cli_model *model) {
    info_run *run = ctx;
    cli *c = run->c;
    sfti_arena arena = { .alloc = c->alloc };
    if (model->json.len == 0 || model->err.code) {
        cli_fail_model(c, model);
        return;
    }
    cli_node *root = cli_doc_parse((sft_span){ model->json.data, model->json.len }, &arena);
    if (!root) {
        sfti_fail_memory(&model->err, model->json.len);
        cli_fail_model(c, model);
    } else if (is_wanted(run, root)) {
        show_model(run, model, root);
        export_model(run, model);
    }
    sfti_arena_free(&arena);
}

/* ── The command ── */

static int refuse_usage(cli *c, sft_error *err) {
    cli_complain(c, c->command->name, err);
    return CLI_FAILED;
}

static sft_code read_options(info_run *run, sft_error *err) {
    cli *c = run->c;
    const char *list = c->set.fields;
    sft_code code = SFT_OK;
    if (!list && c->set.format == CLI_TSV) list = cli_default_columns;
    if (list) code = cli_fields_parse(list, &run->fields, err);
    for (size_t i = 0; !code && i < c->set.where.count; i++)
        code = cli_where_parse(c->set.where.items[i], &run->where[run->where_count++], err);
    return code;
}

static void total_line(const info_run *run) {
    char room[CLI_NUMBER_ROOM];
    cli *c = run->c;
    bool list = c->set.format == CLI_HUMAN && run->fields.count == 0 && run->models > 1;
    if (!list || run->refused || c->set.longer || c->set.verbose || cli_is_over(c)) return;
    cli_printf(&c->out, "%zu model%s, %s\n", run->shown, run->shown == 1 ? "" : "s",
               cli_size_text(run->bytes, room));
}

static void check_info(void *ctx, cli_model *model) {
    info_run *run = ctx;
    if (run->c->set.workflow_file && run->models > 1) {
        sft_error err = SFT_ERROR_INIT;
        if (run->refused) return;
        run->refused = true;
        sfti_fail(&err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET,
                  "expected one model for --export-workflow, found %zu", run->models);
        err.hint = NULL;
        cli_complain(run->c, "info", &err);
        return;
    }
    each_info(run, model);
}

static int run_info(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    info_run run = { .c = c };
    if (read_options(&run, &err)) return refuse_usage(c, &err);
    cli_results_begin(c);
    cli_each_model(c, operands, count, &run.models, check_info, &run);
    total_line(&run);
    cli_results_end(c);
    if (c->set.fields && run.shown > 0 && run.known == 0) cli_status(c, CLI_NO);
    return c->status;
}

#define AT(member) offsetof(cli_settings, member)

static const cli_option info_options[] = {
    { 'v', "verbose", NULL, CLI_FLAG, 1, AT(verbose),
      "sources, trust, other candidates, settings, exact numbers, metadata, shards" },
    { 0, "long", NULL, CLI_FLAG, 1, AT(longer), "whole labels for several models too" },
    { 'f', "fields", "LIST", CLI_WORD, 0, AT(fields),
      "only these facts, between commas: name,trigger_words,rank,training.epoch" },
    { 0, "where", "FIELD=VALUE", CLI_MANY, 0, AT(where),
      "only models where it holds; also FIELD~PART, FIELD<VALUE, FIELD>VALUE" },
    { 0, "tsv", NULL, CLI_FLAG, CLI_TSV, AT(format), "a table, values separated by tabs" },
    { 0, "full", NULL, CLI_FLAG, 1, AT(full), "JSON: metadata values over 4096 bytes too" },
    { 0, "deep", NULL, CLI_FLAG, 1, AT(deep), "read every alpha of an adapter, not eight" },
    { 0, "export-preview", "DIR", CLI_WORD, 0, AT(preview_folder),
      "write the pictures of the models into a folder" },
    { 0, "export-workflow", "FILE", CLI_WORD, 0, AT(workflow_file),
      "write the workflow of the model to a file" },
    { 0, "force", NULL, CLI_FLAG, 1, AT(force), "exports replace files that are there" },
    { 0, NULL, NULL, CLI_FLAG, 0, 0, NULL },
};

static const cli_example info_examples[] = {
    { "safetensors info model.safetensors", "name, kind, base model, trigger words, origin" },
    { "safetensors info -r ~/models", "a line for every model of a tree" },
    { "safetensors info -f prompt lora.safetensors", "trigger words, to be pasted" },
    { "safetensors info -r --where architecture=sdxl --tsv ~/models", "a table of some" },
    { "safetensors info --json model.safetensors", "everything, for programs" },
    { "curl -s URL | safetensors info -", "from a pipe: only the header is read" },
    { NULL, NULL },
};

const cli_command cli_info_command = {
    "info", "PATH...", "what is in this model: a label to read at a glance",
    "Tells what a model is, whoever made it: name, kind, architecture, base model, trigger "
    "words, CivitAI ids, training, previews. The facts come from its header, from the names "
    "and shapes of its tensors and from the small files beside it; each has its source and "
    "how far it can be trusted (-v, --json). Nothing is asked from the network, and no data "
    "are read but at most eight numbers, so the answer is as fast for 100 GB as for 1 MB.\n"
    "One model gives a label, several a line each; an exclamation mark tells of claims that "
    "contradict one another. -f picks facts: docs/json.md names them all; a fact's name "
    "means its value, lists are joined with \" | \".\n"
    "A folder stands for the models in it; an index (model.safetensors.index.json) is one "
    "model with all its shards, so are shards without an index, and a folder with a "
    "model_index.json with all its components; - is standard input, of which no more than "
    "the header is read.",
    info_examples,
    { info_options, cli_input_options, cli_json_options, cli_reading_options,
      cli_common_options },
    { "every model was read", "no model has any of the facts of -f, or no workflow",
      "a model could not be read, or the usage was wrong" },
    1, SIZE_MAX, run_info,
};
