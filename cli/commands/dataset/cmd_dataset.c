/* dataset: inspect and maintain folders of shards with a manifest. Tests: tests/cli/dataset. */
#include "base/error.h"
#include "base/mem.h"
#include "commands/commands.h"
#include "commands/dataset/dataset.h"
#include "os/io.h"
#include "support/hints.h"
#include "support/models.h"
#include "support/output.h"
#include "support/words.h"

#include <string.h>

/* One folder and its result. */
typedef struct dataset_run {
    cli *c;
    const char *path;
    sft_storage storage;
    sft_job job;
    sft_tree *tree; /* the result */
    sft_error err;
} dataset_run;

static void dataset_warn(void *ctx, const sft_error *what) {
    dataset_run *run = ctx;
    cli *c = run->c;
    cli_flush(&c->out);
    cli_text(&c->err, "safetensors: ");
    cli_path(&c->err, run->path, ": warning: ");
    cli_error_text(&c->err, what);
    cli_text(&c->err, "\n");
    cli_flush(&c->err);
}

static sft_code parse_version(const char *text, const char *option, uint64_t *out,
                              sft_error *err) {
    *out = 0;
    if (!text || (cli_parse_number(text, UINT64_MAX, out) && *out)) return SFT_OK;
    return cli_usage_error(err, "expected a number from 1 on for --%s, found \"%s\"", option, text);
}

static sft_code folder_open(dataset_run *run, sft_dataset **out) {
    uint64_t version;
    sft_code code = parse_version(run->c->set.at, "at", &version, &run->err);
    if (code) return code;
    return sft_dataset_open_version(&run->storage, version, 0, &run->c->alloc, dataset_warn, run,
                                    out, &run->err);
}

/* ── Verbs that make a result object ── */

static sft_code verb_info(dataset_run *run) {
    sft_dataset *dataset = NULL;
    sft_code code = folder_open(run, &dataset);
    if (!code) code = sft_dataset_info_tree(dataset, run->path, run->tree, &run->err);
    sft_dataset_close(dataset);
    return code;
}

static sft_code verb_verify(dataset_run *run) {
    bool whole = false;
    sft_code code = sft_dataset_verify_tree(&run->storage, run->c->set.deep != 0,
                                            &run->c->open, run->path, run->tree, &whole,
                                            &run->job, &run->err);
    if (!code && !whole) cli_status(run->c, CLI_NO);
    return code;
}

/* "3600", "90s", "15m", "24h", "7d" */
static sft_code parse_age(const char *text, const char *option, uint64_t *out, sft_error *err) {
    static const char units[] = "smhd";
    static const uint64_t seconds[] = { 1, 60, 60 * 60, 24 * 60 * 60 };
    size_t len = strspn(text, "0123456789");
    const char *unit = text[len] ? strchr(units, text[len]) : units;
    *out = 0;
    if (len == 0 || len > 9 || !unit || strlen(text) > len + 1)
        return cli_usage_error(err, "expected an age such as 90s, 15m, 24h or 7d for --%s, "
                                    "found \"%s\"", option, text);
    for (size_t i = 0; i < len; i++) *out = *out * 10 + (uint64_t)(text[i] - '0');
    *out *= seconds[unit - units];
    return SFT_OK;
}

static sft_code verb_gc(dataset_run *run) {
    sft_gc_options how = SFT_GC_OPTIONS_INIT;
    cli_settings *set = &run->c->set;
    sft_code code = parse_version(set->keep_last, "keep", &how.keep, &run->err);
    if (!code && set->grace) code = parse_age(set->grace, "grace", &how.grace_s, &run->err);
    if (!code && set->older) {
        code = parse_age(set->older, "older", &how.older_s, &run->err);
        if (!code && !how.older_s)
            code = cli_usage_error(&run->err, "expected an age above 0 for --older, found \"%s\"; "
                                   "--keep 1 keeps the version in force only", set->older);
    }
    how.remove = set->remove && !set->dry_run;
    if (code) return code;
    return sft_dataset_gc_tree(&run->storage, &how, run->path, run->tree, &run->err);
}

static sft_code verb_versions(dataset_run *run) {
    return sft_dataset_versions_tree(&run->storage, run->path, run->tree, &run->err);
}

static sft_code verb_compact(dataset_run *run) {
    sft_compact_options options = SFT_COMPACT_OPTIONS_INIT;
    const char *size = run->c->set.target, *form = run->c->set.manifest;
    sft_code code = size ? cli_parse_size(size, &options.target_bytes, &run->err) : SFT_OK;
    if (code) return code;
    if (form && strcmp(form, "segments") == 0) options.form = SFT_FORM_SEGMENTS;
    else if (form && strcmp(form, "whole") == 0) options.form = SFT_FORM_WHOLE;
    else if (form)
        return cli_usage_error(&run->err, "expected whole or segments for --manifest, found \"%s\"",
                               form);
    code = parse_version(run->c->set.rows, "batch-size", &options.batch_size, &run->err);
    if (code) return code;
    options.dry_run = run->c->set.dry_run != 0;
    options.drop_old = run->c->set.drop_old != 0;
    options.warn = dataset_warn;
    options.warn_ctx = run;
    options.open = &run->c->open;
    return sft_dataset_compact_tree(&run->storage, &options, run->path, run->tree, &run->job,
                                    &run->err);
}

/* "3", "10:20" (from 10 on, before 20), and several of them with commas between */
static sft_code parse_range(const char **at, sft_row_range *out) {
    char text[48];
    const size_t len = strcspn(*at, ",");
    const char *colon = memchr(*at, ':', len);
    bool good = len < sizeof text;
    if (good) {
        memcpy(text, *at, len);
        text[len] = '\0';
        if (colon) text[colon - *at] = '\0';
        good = cli_parse_number(text, UINT64_MAX - 1, &out->first);
        out->end = out->first + 1;
        if (colon) good = good && cli_parse_number(text + (colon - *at) + 1, UINT64_MAX, &out->end);
    }
    *at += len + ((*at)[len] == ',');
    return good && out->first <= out->end ? SFT_OK : SFT_BAD_ARGUMENT;
}

static sft_code verb_delete(dataset_run *run) {
    sft_delete_options how = SFT_DELETE_OPTIONS_INIT;
    const cli_settings *set = &run->c->set;
    const char *at = set->numbers;
    sft_span keys[CLI_WORDS_MOST];
    size_t count = 1;
    if (!at == !set->keys.count)
        return cli_usage_error(&run->err, "expected rows to delete, as --rows or --key, found %s",
                               at ? "both" : "neither");
    sft_code code = parse_version(set->at, "at", &how.version, &run->err);
    for (const char *c = at; c && *c; c++) count += *c == ',';
    sft_row_range *rows = sfti_take(&run->c->alloc, count * sizeof *rows);
    if (!code && !rows) code = sfti_fail_memory(&run->err, count * sizeof *rows);
    while (!code && at && (*at || !how.row_count)) {
        code = parse_range(&at, &rows[how.row_count++]);
        if (code)
            code = cli_usage_error(&run->err, "expected numbers of rows such as 3 or 3,10:20 for "
                                   "--rows, found \"%s\"", set->numbers);
    }
    for (size_t i = 0; i < set->keys.count; i++) keys[i] = sft_span_cstr(set->keys.items[i]);
    how.rows = rows;
    how.keys = keys;
    how.key_count = set->keys.count;
    how.dry_run = set->dry_run != 0;
    how.warn = dataset_warn;
    how.warn_ctx = run;
    how.open = &run->c->open;
    if (!code)
        code = sft_dataset_delete_tree(&run->storage, &how, run->path, run->tree, &run->job,
                                       &run->err);
    sfti_release(&run->c->alloc, rows, count * sizeof *rows);
    return code;
}

static sft_code verb_add_column(dataset_run *run) {
    sft_add_options how = SFT_ADD_OPTIONS_INIT;
    const cli_settings *set = &run->c->set;
    sft_span columns[CLI_WORDS_MOST];
    sft_storage values;
    if (!set->values_from)
        return cli_usage_error(&run->err,
                               "expected the dataset that has the values, as --from DIR, found "
                               "none");
    sft_code code = parse_version(set->at, "at", &how.version, &run->err);
    if (!code)
        code = sft_storage_local(set->values_from, true, &run->c->alloc, &values, &run->err);
    if (code) return code;
    for (size_t i = 0; i < set->columns.count; i++)
        columns[i] = sft_span_cstr(set->columns.items[i]);
    how.columns = columns;
    how.column_count = set->columns.count;
    how.dry_run = set->dry_run != 0;
    how.warn = dataset_warn;
    how.warn_ctx = run;
    how.open = &run->c->open;
    code = sft_dataset_add_tree(&run->storage, &values, &how, run->path, run->tree, &run->job,
                                &run->err);
    sft_storage_close(&values);
    return code;
}

/* ── Their results ── */

static const struct dataset_verb {
    const char *name;
    sft_code (*result)(dataset_run *run); /* NULL: ls, which has no tree */
    void (*print)(cli *c, const char *path, const sft_node *result);
} dataset_verbs[] = {
    { "info", verb_info, dataset_print_info },
    { "verify", verb_verify, dataset_print_verify },
    { "ls", NULL, NULL },
    { "versions", verb_versions, dataset_print_versions },
    { "gc", verb_gc, dataset_print_gc },
    { "compact", verb_compact, dataset_print_compact },
    { "delete", verb_delete, dataset_print_delete },
    { "add-column", verb_add_column, dataset_print_add },
};

static void run_result(dataset_run *run, const struct dataset_verb *verb) {
    cli *c = run->c;
    cli_progress progress;
    sft_code code = sft_tree_new(&c->alloc, &run->tree, &run->err);
    if (!code) {
        run->job = cli_progress_begin(&progress, c, run->path);
        code = verb->result(run);
        cli_progress_end(&progress);
    }
    const sft_node *result = code ? NULL : sft_tree_root(run->tree);
    if (code) {
        cli_fail_input(c, run->path, &run->err);
    } else if (cli_is_json(c)) {
        sft_sink sink = cli_result_begin(c);
        code = sft_node_json(result, NULL, NULL, &sink, 0, NULL, &run->err);
        cli_result_end(c, run->path, code, &run->err);
    } else {
        verb->print(c, run->path, result);
    }
    /* what could not be read is a finding of verify, and no answer: the status is 2 */
    size_t unread = 0;
    bool verifies = result && verb->result == verb_verify;
    const sft_node *one = verifies ? cli_first(result, "findings") : NULL;
    for (; one; one = one->next) {
        sft_span found = sft_node_text(one, "code");
        unread += found.len > 3 && memcmp(found.data, "io_", 3) == 0;
    }
    if (unread) {
        sfti_fail(&run->err, SFT_IO_READ,
                  "expected to read every shard, found %zu that cannot be read", unread);
        cli_complain(c, run->path, &run->err);
    }
    sft_tree_free(run->tree);
}

/* ── ls: as much as there is, so nothing is kept ── */

static bool ls_match(void *ctx, const sft_tensor *tensor) {
    cli *c = ctx;
    if (!cli_is_matched(&c->set, tensor->name)) return false;
    c->matched++;
    return !cli_is_over(c);
}

/* Tensors of the files beside a shard, each once. */
static sft_code ls_columns(dataset_run *run, const sft_dataset *dataset,
                           const dataset_listed *shard) {
    size_t count;
    const sft_dataset_place *of = sft_dataset_shard_places(dataset, shard->shard, &count);
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < count; i++) {
        dataset_listed listed = *shard;
        sft_file *file = NULL;
        bool again = !of[i].file;
        for (size_t k = 0; !again && k < i; k++)
            again = of[k].file && strcmp(of[k].file, of[i].file) == 0;
        if (again) continue;
        code = sft_dataset_place_open(dataset, &of[i], &run->c->open, &file, &run->err);
        listed.name = of[i].file;
        listed.file = file;
        if (!code) dataset_print_shard(run->c, &listed);
        sft_close(file);
    }
    return code;
}

static sft_code ls_lines(dataset_run *run, const sft_dataset *dataset) {
    size_t count = sft_dataset_shard_count(dataset);
    sft_dataset_replaced *replaced = NULL;
    dataset_listed listed = { .path = run->path };
    sft_code code = sft_dataset_find_replaced(dataset, &run->c->open, &replaced, &run->err);
    listed.replaced = replaced;
    for (size_t i = 0; !code && i < count && !cli_is_over(run->c); i++) {
        const sft_dataset_shard *shard = sft_dataset_shard_at(dataset, i);
        sft_file *file = NULL;
        code = sft_dataset_shard_open(dataset, i, &run->c->open, &file, &run->err);
        listed.name = shard->name;
        listed.file = file;
        listed.shard = i;
        listed.deleted = sft_dataset_get_mode(dataset) == SFT_DATASET_KV ? 0 : shard->deleted;
        if (!code) dataset_print_shard(run->c, &listed);
        sft_close(file);
        if (!code) code = ls_columns(run, dataset, &listed);
    }
    sft_dataset_replaced_free(replaced);
    return code;
}

static void run_ls(dataset_run *run) {
    cli *c = run->c;
    sft_dataset *dataset = NULL;
    sft_code code = folder_open(run, &dataset);
    if (!code && cli_is_json(c)) {
        sft_sink sink = cli_result_begin(c);
        sft_code written = sft_dataset_ls_json(dataset, &c->open, run->path, ls_match, c, &sink,
                                               &run->err);
        cli_result_end(c, run->path, written, &run->err);
    } else if (!code) {
        code = ls_lines(run, dataset);
    }
    if (code) cli_fail_input(run->c, run->path, &run->err);
    sft_dataset_close(dataset);
}

/* ── The command ── */

static sft_code check_options(const cli_settings *set, const char *verb, sft_error *err) {
    const cli_verb_option rows[] = {
        { set->deep != 0, "deep", "verify" },
        { set->remove != 0, "delete", "gc" },
        { set->grace != NULL, "grace", "gc" },
        { set->at != NULL, "at", "info ls delete add-column" },
        { set->keep_last != NULL, "keep", "gc" },
        { set->older != NULL, "older", "gc" },
        { set->drop_old != 0, "drop-old", "compact" },
        { set->target != NULL, "target", "compact" },
        { set->rows != NULL, "batch-size", "compact" },
        { set->manifest != NULL, "manifest", "compact" },
        { set->numbers != NULL, "rows", "delete" },
        { set->keys.count > 0, "key", "delete" },
        { set->values_from != NULL, "from", "add-column" },
        { set->columns.count > 0, "column", "add-column" },
        { set->dry_run != 0, "dry-run", "compact delete add-column gc" },
        { set->no_sync != 0, "no-sync", "compact delete add-column gc" },
        { set->match.count > 0, "match", "ls" },
        { set->exclude.count > 0, "exclude", "ls" },
        { set->format == CLI_TSV, "tsv", "ls" },
    };
    return cli_verb_options(rows, sizeof rows / sizeof *rows, verb, err);
}

static void run_folder(cli *c, const char *path, const struct dataset_verb *verb) {
    dataset_run run = { .c = c, .path = path, .err = SFT_ERROR_INIT };
    os_info info;
    int error = sfti_os_info_path(path, true, &info);
    sft_code code = error ? sfti_io_fail(&run.err, SFT_IO_OPEN, error, "open") : SFT_OK;
    if (!error && info.kind != OS_DIR)
        code = sfti_fail(&run.err, SFT_IO_NOT_FILE,
                         "expected the folder of a dataset, found a file");
    if (!code)
        code = sft_storage_local(path, c->set.no_sync != 0, &c->alloc, &run.storage, &run.err);
    if (code) {
        cli_fail_input(c, path, &run.err);
        return;
    }
    if (verb->result) run_result(&run, verb);
    else run_ls(&run);
    sft_storage_close(&run.storage);
}

static void run_dataset(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    const struct dataset_verb *verb = NULL;
    for (size_t i = 0; i < sizeof dataset_verbs / sizeof *dataset_verbs; i++)
        if (strcmp(dataset_verbs[i].name, operands[0]) == 0) verb = &dataset_verbs[i];
    sft_code code = SFT_OK;
    if (!verb)
        code = cli_usage_hint(&err, CLI_HINT_HELP_DATASET,
                              "expected info, verify, ls, versions, gc, compact, delete or "
                              "add-column, found \"%s\"", operands[0]);
    else if (count < 2)
        code = cli_usage_hint(&err, CLI_HINT_HELP_DATASET, "expected DIR, found none");
    else if (verb->result == verb_delete && count > 2)
        code = cli_usage_error(&err, "expected one DIR to delete rows of, found %zu", count - 1);
    else if (verb->result == verb_add_column && count > 2)
        code = cli_usage_error(&err, "expected one DIR to add columns to, found %zu", count - 1);
    else
        code = check_options(&c->set, verb->name, &err);
    if (code) {
        cli_fail_usage(c, &err);
        return;
    }
    for (size_t i = 1; i < count && !cli_is_over(c); i++) run_folder(c, operands[i], verb);
    if (!verb->result && cli_is_matching(&c->set) && c->matched == 0) cli_status(c, CLI_NO);
}

const cli_command cli_dataset_command = {
    "dataset", "info|verify|ls|versions|gc|compact|delete|add-column DIR...",
    "inspect and maintain a dataset: shards with a manifest",
    "A dataset is what libsafetensors.dataset and the Spark connectors write: shards named "
    "part-*.safetensors and dataset_manifest.json, which alone says what belongs to it.\n"
    "info prints what the manifest says. verify compares it with the files: sizes, headers, "
    "samples, totals, columns, duplicate names, the index; with --deep digests as well. ls lists "
    "the tensors of all shards, and marks those that a later shard replaces.\n"
    "versions lists the versions that are kept: each commit keeps the one that it replaces, "
    "until gc --keep or --older. info and ls read one of them with --at.\n"
    "gc lists what no manifest names: folders of failed jobs, shards that were replaced or never "
    "committed; with --keep or --older also versions, and what only they name; --delete "
    "removes it. Files that were not written by libsafetensors are never "
    "touched, and without a manifest only folders of jobs are.\n"
    "compact rewrites shards that hold shadowed tensors (a later shard has the same name), and "
    "with --target merges small ones, as a new commit; rows stored as batches are merged into "
    "batches of batch_size rows. The index is then left out. It also merges the segments of a "
    "manifest; --manifest segments stores the list of shards in segments, so that an append need "
    "not rewrite it, and --manifest whole as one list, which the Scala connector reads.\n"
    "delete deletes rows as a new commit: of batches by --rows, their numbers from 0 on, of named "
    "rows by --key. Shards stay as they are, and readers leave those rows out; compact removes "
    "them from the shards, gc --keep 1 --delete what still had them.\n"
    "add-column adds the columns of another dataset, --from, which has as many rows in the same "
    "order, to a dataset of batches, as a new commit. Shards stay as they are, with a file of the "
    "new columns beside each; compact merges both.",
    CLI_EXAMPLES(
        { "safetensors dataset info out/", "samples, shards, columns" },
        { "safetensors dataset verify --deep out/", "is every byte as written?" },
        { "safetensors dataset ls --match \"user_42__*\" out/", "which shard holds a tensor" },
        { "safetensors dataset gc --delete out/", "remove what failed jobs left" },
        { "safetensors dataset ls --at 3 out/", "the tensors of version 3" },
        { "safetensors dataset gc --keep 10 --delete out/", "forget all but the last 10 versions" },
        { "safetensors dataset compact --target 300MB --dry-run out/",
          "which shards would be merged?" },
        { "safetensors dataset compact --target 300MB out/", "fewer, larger shards" },
        { "safetensors dataset compact --manifest segments out/", "for frequent appends" },
        { "safetensors dataset delete --rows 7,100:200 --dry-run out/",
          "how many rows would be deleted?" },
        { "safetensors dataset delete --key user_42 out/", "delete a row by its name" },
        { "safetensors dataset add-column --from scores/ out/",
          "add the columns that scores/ has for the same rows" }),
    { CLI_OPTIONS(
        CLI_ON(0, "deep", deep, "verify: read every byte and compare the digests"),
        CLI_ON(0, "delete", remove, "gc: remove what is listed"),
        CLI_TAKES(0, "grace", "AGE", grace,
          "gc: keep what is younger than this (90s, 15m, 24h, 7d; default 24h)"),
        CLI_TAKES(0, "at", "N", at, "info, ls: version N instead of the one in force; delete: "
          "whose numbers --rows has; add-column: whose rows the values are of"),
        CLI_TAKES(0, "keep", "N", keep_last,
          "gc: also versions before the last N; with --older only those that are both"),
        CLI_TAKES(0, "older", "AGE", older,
          "gc: also versions that were replaced longer ago than this (12h, 30d)"),
        CLI_ON(0, "drop-old", drop_old,
          "compact: do not keep the version before; if none is kept its shards go at once"),
        CLI_TAKES(0, "target", "SIZE", target,
          "compact: merge neighbouring shards smaller than this (300MB, 1GiB)"),
        CLI_TAKES(0, "batch-size", "N", rows,
          "compact: divide rows stored as batches into batches of N rows"),
        CLI_TAKES(0, "manifest", "FORM", manifest,
          "compact: store the list of shards whole or in segments (default: as it is)"),
        CLI_TAKES(0, "rows", "LIST", numbers,
          "delete: rows of these numbers, such as 3,10:20 (from 10 on, before 20)"),
        CLI_TAKES_MANY(0, "key", "NAME", keys, "delete: the row of this name"),
        CLI_TAKES(0, "from", "DIR", values_from,
          "add-column: the dataset whose columns are added, a row for each of the rows"),
        CLI_TAKES_MANY(0, "column", "NAME", columns, "add-column: only this column of it"),
        CLI_ON(0, "dry-run", dry_run,
          "compact, delete, add-column, gc: print what would be done; write nothing"),
        CLI_ON(0, "no-sync", no_sync,
          "compact, delete, add-column: do not fsync; a power failure may then lose the result")),
      cli_match_options, cli_json_options, cli_table_options, cli_reading_options,
      cli_common_options },
    { "done; verify: the dataset is intact",
      "verify found something wrong, or --match found nothing",
      "a dataset could not be read or written, or a usage error" },
    1, SIZE_MAX, run_dataset, CLI_URLS_NONE,
};
