/* info: describe a model. */
#include "commands/commands.h"
#include "commands/dataset/dataset.h"
#include "commands/info/online.h"
#include "commands/info/beside.h"
#include "commands/info/label.h"
#include "commands/info/list.h"
#include "commands/info/save_as.h"
#include "support/cli.h"
#include "support/fields.h"
#include "support/models.h"
#include "support/records.h"
#include "support/remote.h"
#include "support/words.h"

#include <inttypes.h>
#include <string.h>

typedef struct info_run {
    cli *c;
    size_t models;         /* how many there are */
    size_t shown, known;   /* results shown; values of -f that were not null */
    size_t unreadable;
    uint64_t bytes;        /* of those shown */
    bool refused;          /* the usage was wrong */
    cli_fields fields;
    cli_list list;
    cli_compute compute;
    cli_update_counts updates;
    uint64_t mismatches;   /* without a known cause */
    uint64_t least;        /* trust for --save-as */
    size_t pickles;        /* that call something when they are loaded */
} info_run;

/* ── One model ── */

static void show_fields(info_run *run, const cli_model *model, const sft_node *root) {
    cli *c = run->c;
    bool tsv = c->set.format == CLI_TSV;
    bool has_path = cli_is(run->fields.names[0], "path");
    if (!tsv && run->models > 1 && !has_path) {
        cli_field_text(&c->out, sft_span_cstr(model->path));
        cli_text(&c->out, "\t");
    }
    run->known += cli_fields_line(c, root, &run->fields,
                                  tsv && c->set.csv_safe);
}

/* A dataset has the label that `dataset info` prints. */
static void show_label(cli *c, const cli_model *model, const sft_node *root, bool with_path) {
    if (!model->is_dataset) {
        cli_label(c, model, root, with_path);
        return;
    }
    dataset_label(c, model->path, sft_node_get(root, "dataset"));
    cli_text(&c->out, "  more            safetensors dataset ls, verify, gc or compact ");
    cli_path_text(&c->out, sft_span_cstr(model->path));
    cli_text(&c->out, "\n");
}

/* A row of the list with the digests beneath it; what has another form is put into order. */
static void show_listed(info_run *run, const cli_model *model, const sft_node *root) {
    cli *c = run->c;
    sft_buffer text = { .alloc = c->alloc };
    sft_error err = SFT_ERROR_INIT;
    bool is_row = run->fields.count == 0 && !run->list.labels;
    cli_capture(&c->out, &text);
    if (is_row) cli_label_digests(c, root, true);
    else if (run->fields.count > 0) show_fields(run, model, root);
    else show_label(c, model, root, true);
    if (cli_captured(&c->out)) {
        cli_list_add(&run->list, model, root, (sft_span){ text.data, text.len }, !is_row);
    } else {
        sfti_fail_memory(&err, text.len);
        cli_complain(c, model->path, &err);
    }
    sft_buffer_free(&text);
}

static void show_model(info_run *run, cli_model *model, const sft_node *root) {
    cli *c = run->c;
    uint64_t bytes;
    const sft_import_global *global = model->import ? sft_import_global_at(model->import, 0) : NULL;
    run->pickles += global && global->calls > 0;
    if (cli_model_bytes(root, &bytes)) run->bytes += bytes;
    if (cli_is_json(c)) {
        (void)cli_result_begin(c);
        c->in_result = run->fields.count == 0; /* only what was asked for */
        if (run->fields.count == 0) cli_print_model_json(c, model);
        else run->known += cli_fields_json(c, root, &run->fields);
        cli_result_end(c, model->path, SFT_OK, NULL);
        run->shown++;
        return;
    }
    bool fields = run->fields.count > 0;
    bool label = !fields && (run->models == 1 || c->set.longer || c->set.verbose);
    bool row = !fields && !label, digests = c->set.hash || c->set.verify || c->set.online;
    run->list.labels = label;
    if (c->set.format == CLI_TSV && run->shown == 0) cli_fields_header(&c->out, &run->fields);
    if (label && !run->list.holds && run->shown > 0) cli_text(&c->out, "\n");
    if (row && !digests) cli_list_add(&run->list, model, root, (sft_span){ "", 0 }, false);
    else if (row || run->list.holds) show_listed(run, model, root);
    else if (fields) show_fields(run, model, root);
    else show_label(c, model, root, run->models > 1);
    c->results++;
    run->shown++;
}

static void count_mismatches(info_run *run, const sft_node *root) {
    for (const sft_node *one = cli_first(root, "hashes.mismatches"); one; one = one->next)
        run->mismatches += sft_node_text(one, "known").len == 0;
    for (const sft_node *one = cli_first(root, "parts"); one; one = one->next)
        count_mismatches(run, one);
}

static void each_info(void *ctx, cli_model *model) {
    info_run *run = ctx;
    cli *c = run->c;
    if (c->set.workflow_file && run->models > 1) {
        sft_error err = SFT_ERROR_INIT;
        if (run->refused) return;
        run->refused = true;
        cli_usage_error(&err, "expected one model for --export-workflow, found %zu", run->models);
        cli_fail_usage(c, &err);
        return;
    }
    if (!cli_compute_has_tree(&run->compute, model)) {
        run->unreadable++;
        cli_fail_model(c, model);
        return;
    }
    if (cli_compute_only_counts(c)) return;
    const sft_node *root = sft_tree_root(model->tree);
    if (!cli_wheres_fit(c, &run->compute.where, root)) return;
    if (c->set.verify) count_mismatches(run, root);
    if (c->set.save_as) cli_save_model(c, model, run->least);
    else if (c->set.updates) cli_update_show(&run->compute.online, model, &run->updates);
    else show_model(run, model, root);
    if (model->is_dataset) return;
    if (c->set.preview_folder) cli_export_previews(c, model, c->set.preview_folder);
    if (c->set.workflow_file) cli_export_workflow(c, model, c->set.workflow_file);
}

/* ── The command ── */

static sft_code read_options(info_run *run, char **operands, size_t count, sft_error *err) {
    cli *c = run->c;
    const char *list = c->set.fields;
    sft_code code = cli_compute_read(&run->compute, c, err);
    bool digests = c->set.hash || c->set.verify || c->set.online;
    bool ordered = c->set.sort || c->set.reverse || c->set.group_by;
    if (!code && !c->set.online
        && (c->set.save || c->set.updates || (c->set.dry_run && !c->set.save_as)))
        code = cli_usage_error(err, "expected --online with --%s", c->set.save ? "save"
                               : c->set.updates ? "updates" : "dry-run");
    if (!code && c->set.same_base && !c->set.updates)
        code = cli_usage_error(err, "expected --updates with --same-base");
    if (!code && c->set.dry_run && (c->set.preview_folder || c->set.workflow_file))
        code = cli_usage_error(err, "expected --dry-run without --export-preview and "
                               "--export-workflow, found both");
    if (!code && c->set.updates && (c->set.save || c->set.save_as || c->set.fields
                                    || c->set.format == CLI_TSV))
        code = cli_usage_error(err, "expected --updates without --save, --save-as, -f and --tsv");
    for (size_t i = 0; !code && (digests || c->set.save_as) && i < count; i++)
        if (strcmp(operands[i], "-") == 0)
            code = cli_usage_error(err, "expected files for --hash, --verify, --online and "
                                   "--save-as, found standard input");
    for (size_t i = 0; !code && (c->set.save || c->set.save_as) && i < count; i++)
        if (cli_is_remote(c, operands[i]))
            code = cli_usage_error(err, "expected files for --save and --save-as, which write "
                                   "beside the model, found a URL");
    if (!code) code = cli_save_read(c, &run->least, err);
    if (code) return code;
    if (ordered && cli_is_json(c)) {
        code = cli_usage_error(err, "expected --sort, --reverse and --group-by without --json "
                                    "and --jsonl, found both");
    } else if (c->set.group_by && (list || c->set.format == CLI_TSV)) {
        code = cli_usage_error(err, "expected --group-by without --tsv and -f, found both");
    }
    if (!list && c->set.format == CLI_TSV) list = cli_default_columns;
    if (!code && list) code = cli_fields_parse(list, &run->fields, err);
    if (!code) code = cli_where_read(c, &run->compute.where, err);
    for (size_t i = 0; i < run->fields.count; i++)
        c->wants_metadata = c->wants_metadata || cli_field_is_metadata(run->fields.names[i]);
    return code;
}

static void total_line(const info_run *run) {
    char buffer[CLI_NUMBER_SIZE];
    cli *c = run->c;
    cli_printf(&c->out, "%zu model%s, %s", run->shown, run->shown == 1 ? "" : "s",
               cli_size_text(run->bytes, buffer));
    if (run->list.wrong)
        cli_printf(&c->out, ", %zu with conflicts (!: see info FILE)", run->list.wrong);
    if (run->unreadable) cli_printf(&c->out, ", %zu unreadable", run->unreadable);
    cli_text(&c->out, "\n");
    if (run->pickles)
        cli_printf(&c->out, "%zu pickle%s would call code when loaded (see info FILE)\n",
                   run->pickles, run->pickles == 1 ? "" : "s");
}

static void run_info(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    info_run run = { .c = c };
    if (read_options(&run, operands, count, &err)) {
        cli_fail_usage(c, &err);
        return;
    }
    if (count == 0) { /* --hash, which is told first, may have taken the only PATH */
        cli_usage_error(&err, "expected PATH..., found none");
        cli_refuse_usage(c, &err);
        return;
    }
    c->counts_unread = true;
    bool usable = cli_compute_begin(&run.compute, count == 1 ? operands[0] : "info");
    bool counts = cli_compute_only_counts(c);
    cli_list_begin(&run.list, c, operands, count);
    if (usable)
        cli_each_model(c, operands, count, &run.models, &run.compute.digests, each_info, &run);
    cli_list_end(&run.list);
    bool rows = c->set.format == CLI_HUMAN && run.fields.count == 0 && !run.refused;
    if (usable && rows && !c->set.save_as && !c->set.updates && !counts && !cli_is_over(c)) {
        if (run.models > 1 && !c->set.longer && !c->set.verbose) total_line(&run);
        cli_passed_line(c, &c->out);
    }
    if (usable && c->set.updates && !counts) cli_update_total(c, &run.updates);
    if (usable && counts) cli_online_summary(&run.compute.online);
    else if (counts) c->no_results = true;
    cli_compute_end(&run.compute);
    if (c->set.fields && run.shown > 0 && run.known == 0) cli_status(c, CLI_NO);
    if (c->set.fields && run.shown > 0 && run.known == 0 && c->set.format == CLI_HUMAN) {
        /* an empty line is no answer */
        sfti_fail(&err, SFT_NOT_FOUND, "expected a value of %s, found none in %zu model%s",
                  c->set.fields, run.shown, run.shown == 1 ? "" : "s");
        cli_refuse(c, NULL, &err);
    }
    if (c->set.verify && run.mismatches > 0) cli_status(c, CLI_NO);
}

static const cli_option info_options[] = {
    CLI_ON('v', "verbose", verbose,
      "every fact with its sources, in groups: identity, use, training, files, provenance, "
      "metadata; also lists models in folders that cannot be read"),
    CLI_ON(0, "long", longer, "full labels even for several models"),
    { 0, "sort", "path|name|date|size|base|rank", CLI_CHOICE, 0, offsetof(cli_settings, sort),
      "order of models; dates: newest first, sizes (in bytes) and ranks: largest first; unknown "
      "ones last" },
    CLI_ON(0, "reverse", reverse, "reverse the order"),
    { 0, "group-by", "none|base|kind|folder", CLI_CHOICE, 0, offsetof(cli_settings, group_by),
      "in groups, each with a heading that counts its models and their bytes" },
    CLI_TAKES('f', "fields", "LIST", fields,
      "only these facts, separated by commas: name,rank,training.epoch (bytes is the size of the "
      "file; size is full or pruned)"),
    CLI_TAKES_MANY(0, "where", "FIELD=VALUE", where, CLI_WHERE_HELP),
    { 0, "tsv", NULL, CLI_FLAG, CLI_TSV, offsetof(cli_settings, format),
      "a table, values separated by tabs" },
    CLI_ON(0, "csv-safe", csv_safe, CLI_CSV_SAFE_HELP),
    CLI_ON(0, "full", full, "with --json: metadata values over 4096 bytes too"),
    CLI_ON(0, "deep", deep, "read every alpha of an adapter, not only eight"),
    CLI_TAKES(0, "hash", "LIST", hash,
      "compute these digests in one pass: names as for hash --algo, separated by commas, or all"),
    CLI_ON(0, "verify", verify,
      "compute the digests that the header and sidecars record, and compare"),
    CLI_TAKES(0, "export-preview", "DIR", preview_folder,
      "write the preview images of the models into a folder"),
    CLI_TAKES(0, "export-workflow", "FILE", workflow_file,
      "write the workflow of the model to a file"),
    CLI_ON(0, "force", force,
      "overwrite existing files when exporting; with --save-as: replace values, and add to a "
      "sidecar that exists"),
    CLI_OPTIONS_END,
};

static const cli_option info_online_options[] = {
    CLI_ON(0, "updates", updates,
      "with --online: report newer versions, deleted models and changed permissions"),
    CLI_ON(0, "same-base", same_base, "with --updates: only versions for the same base model"),
    CLI_ON(0, "save", save,
      "with --online: save the answers as NAME.civitai.info and the first image as NAME.preview"),
    CLI_ON(0, "dry-run", dry_run,
      "with --online: only print what would be hashed and requested; with --save-as: what would "
      "be written"),
    CLI_OPTIONS_END,
};

static const cli_example info_examples[] = {
    { "safetensors info model.safetensors", "name, kind, base model, trigger words, origin" },
    { "safetensors info -r ~/models", "a list of every model in a tree" },
    { "safetensors info -r --group-by base --sort size ~/models",
      "by base model, the largest first" },
    { "safetensors info -f a1111 lora.safetensors",
      "\"<lora:NAME:WEIGHT> trigger words\", ready to paste" },
    { "safetensors info -r --where architecture=sdxl --tsv ~/models",
      "a table of matching models" },
    { "safetensors info --json model.safetensors", "everything, for programs" },
    { "safetensors info --verify model.safetensors", "do the recorded digests match?" },
    { "safetensors info -r --save-as a1111 --dry-run ~/models",
      "what would be written as NAME.json for A1111" },
    { "safetensors info -r --online --updates ~/models", "newer versions on CivitAI" },
    { "safetensors info hf://openai-community/gpt2", "a repository on the Hugging Face Hub" },
    { "curl -s URL | safetensors info -", "from a pipe: only the header is read" },
    { NULL, NULL },
};

const cli_command cli_info_command = {
    "info", "PATH...", "describe a model: name, kind, base model, trigger words",
    "Shows what a model is, whichever program made it: name, kind, architecture, base model, "
    "trigger "
    "words, CivitAI ids, training, previews. The facts come from its header, from the names and "
    "shapes of its tensors and from its sidecars, the small files next to it; each has a source "
    "and a trust level (-v, --json). Uses the network only with --online or for URLs, and reads no "
    "tensor data except up to eight alpha scalars, so it is as fast for 100 GB as for 1 MB.\n"
    "One model gives a label, several give a list: a row each, and a total. ! marks conflicting "
    "claims, ? facts of little trust. On a terminal the list fits the width: first the columns of "
    "dates, paths, bases and trigger words shrink or are dropped, in this order, then names are "
    "shortened in the middle. If the PATH column is dropped, a model is shown by its path where "
    "its name would be ambiguous: two models share it, or it lacks a word of the file name. "
    "Column widths are set by the first 1000 models, which are printed together; the others "
    "follow as they are read. --sort, --reverse and --group-by read all models first.\n"
    "-f selects facts: docs/json-info.md lists them all (name, adapter.rank.max, "
    "training.datasets.0.folder). A fact is printed as its value; lists are joined with \" | \". "
    "a1111 and comfy are lines to paste into a prompt, with the preferred weight; prompt "
    "is the trigger words alone. --tsv without -f gives a table of the most useful facts.\n"
    CLI_WHERE_ABOUT "\n"
    "--hash computes digests of the files. --verify computes those that the header and the "
    "sidecars record, and compares; sidecars that describe another file are then ignored. A "
    "mismatch with a known harmless cause (LyCORIS hashes tensors in another order) is shown but "
    "is not a failure. With --where, only matching models are hashed.\n"
    "--online asks CivitAI: by SHA-256 (a hundred files per request), by AutoV3 for files it "
    "does not know, then for their models. The answers are added to the other facts with the "
    "source online:civitai. Digests are taken from the --cache, else from a sidecar that records "
    "a matching size; otherwise the file is hashed. With --cache, unknown files are not looked "
    "up again for a week. With --where, only models that match without the answers are looked up. "
    "Nothing but "
    "digests is sent, and no proxy of the environment is used, only that of --proxy; --timeout is "
    "for a whole answer (default 60), and --retries are 3. Of a URL the SHA-256 that its server "
    "claims is looked up, and no data is read for it.\n"
    "--updates asks CivitAI whether newer versions exist, whether the model or version was "
    "deleted, and whether the permissions differ from those that a sidecar "
    "records. Where a sidecar records the CivitAI ids, the model's id is sent instead of digests, "
    "fifty in a request, and nothing is hashed. Of a newer version that is another file of the "
    "same folder, by the ids or the SHA-256 in a sidecar or by its own SHA-256, it says that you "
    "have it.\n"
    "--save-as writes what is known for another program: as a sidecar next to the model, or with "
    "modelspec as keys of the header. Only facts with a trust of at least 60 (--min-trust) are "
    "written, and digests only if --hash or --online computes them: never a guess from a file "
    "name. A sidecar that exists is left alone; with --force the known keys are set in it and all "
    "others stay. Keys of the header that have another value stay, too, unless --force is given or "
    "--save-as wrote that value from the model or from a file that still matches it. "
    "Facts that come from a sidecar are not written back to the same sidecar. When saving both, "
    "save modelspec first: changing the header changes the length that sidecars record.\n"
    "A URL of a repository (hf://OWNER/NAME) stands for the models in it, with README and config; "
    "one of a file for that file alone. No tensor data of URLs is read, not even alphas, unless "
    "--deep is given.\n"
    "A folder stands for the models in it. An index (model.safetensors.index.json) is one model "
    "with all its shards; so are shards without an index, and a folder with a model_index.json "
    "with all its components. A dataset (a folder with a dataset_manifest.json) is one row, "
    "without its shards; see safetensors help dataset. - is standard input, of which only the "
    "header is read.",
    info_examples,
    { info_options, cli_save_options, cli_online_options, info_online_options,
      cli_hash_run_options, cli_input_options, cli_json_options, cli_reading_options,
      cli_records_options, cli_remote_options, cli_network_options, cli_common_options },
    { "every model that was named was read, and of those in folders at least one",
      "no model has any of the -f facts, or there is no workflow; with --verify, a digest "
      "differs from the recorded one without a known cause; with --updates, a model has a newer "
      "version, was deleted or has other permissions",
      CLI_UNREAD_STATUS ", a sidecar exists or could not be written, the server did not "
      "answer, or a usage error" },
    0, SIZE_MAX, run_info, CLI_URLS_ALL,
};
