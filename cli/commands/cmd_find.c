/* find: find models by hash, word or fact. Tests: tests/cli/find. */
#include "base/json_lex.h"
#include "base/order.h"
#include "commands/commands.h"
#include "os/os.h"
#include "support/companions.h"
#include "support/fields.h"
#include "support/files.h"
#include "support/models.h"
#include "support/print.h"
#include "support/records.h"
#include "support/remote.h"
#include "support/titles.h"
#include "support/where.h"
#include "support/words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define HEX_LEAST 8
#define HITS_MOST 16
#define FIT_COLUMNS 9

/* What fits the word. */
typedef struct find_hit {
    const char *field, *algo; /* algo: of hashes */
    sft_span value, source;
} find_hit;

typedef struct find_found {
    const char *path;
    sft_span name;
    const find_hit *hits; /* at least one, if there is a word */
    size_t hit_count;
    sft_fit fit;          /* with --fits */
    const char *reason;   /* NULL without */
} find_found;

/* A digest that was computed, or remembered. */
typedef struct find_digest {
    struct find_digest *next;
    sft_hash_algo algo;
    char value[SFT_HASH_TEXT_SIZE];
    sft_span source;
} find_digest;

typedef struct find_run {
    cli *c;
    sft_span word; /* empty: only --where */
    bool is_hex;
    size_t models, found;
    cli_wheres where;
    find_hit hits[HITS_MOST];
    size_t hit_count;
    char title[CLI_TITLE_SIZE]; /* that a hit refers to */
    cli_digests digests;
    const cli_model *settled; /* of which it is known whether it is found without hashing */
    bool is_settled;
    char **paths;    /* operands without the word */
    size_t path_count;
    const sft_info *with; /* the model of --fits, or NULL */
    bool refused;         /* --fits is not one model */
    sfti_arena arena;     /* of what fits it, kept until all are known */
    find_found *rows;
    size_t row_count, capacity, good, unknown; /* good: that can be used with it */
    bool failed;          /* out of memory */
} find_run;

/* ── As JSON ── */

/* A text, or null where there is none. */
static void put_some(sfti_json_writer *w, const char *key, sft_span text) {
    sfti_json_put_text(w, key, text.len ? text : (sft_span){ NULL, 0 });
}

static void show_json(cli *c, const find_found *found) {
    cli_object object;
    sfti_json_writer *w = cli_object_begin(&object, c, found->path);
    put_some(w, "name", found->name);
    if (found->reason) {
        sfti_json_put_cstr(w, "fit", sft_fit_name(found->fit));
        sfti_json_put_cstr(w, "reason", found->reason);
    }
    sfti_json_put_open(w, "matches", '[');
    for (size_t i = 0; i < found->hit_count; i++) {
        const find_hit *hit = &found->hits[i];
        sfti_json_open(w, '{');
        sfti_json_put_cstr(w, "field", hit->field);
        sfti_json_put_cstr(w, "algo", hit->algo);
        sfti_json_put_text(w, "value", hit->value);
        put_some(w, "source", hit->source);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    cli_object_end(&object);
}

/* ── As a table ── */

static void put_cell(cli *c, bool first, sft_span text) {
    if (!first) cli_text(&c->out, "\t");
    if (c->set.csv_safe) cli_cell_guard(&c->out, text);
    cli_field_text(&c->out, text);
}

static void show_row(cli *c, const find_found *found) {
    put_cell(c, true, sft_span_cstr(found->path));
    put_cell(c, false, found->name);
    if (found->reason) {
        put_cell(c, false, sft_span_cstr(sft_fit_name(found->fit)));
        put_cell(c, false, sft_span_cstr(found->reason));
    }
    if (found->hit_count > 0) {
        put_cell(c, false, sft_span_cstr(found->hits[0].field));
        put_cell(c, false, found->hits[0].value);
        put_cell(c, false, found->hits[0].source);
    }
    cli_text(&c->out, "\n");
}

/* ── As a line ── */

static void show_line(cli *c, const find_found *found) {
    bool fits = found->reason && !c->set.paths_only;
    cli_fit fit;
    cli_fit_begin(&fit, c, 4);
    if (fits) {
        cli_styled(&c->out, CLI_BOLD, sft_fit_name(found->fit));
        cli_pad(&c->out, FIT_COLUMNS - strlen(sft_fit_name(found->fit)));
    }
    cli_path_text(&c->out, sft_span_cstr(found->path));
    if (!c->set.paths_only) {
        cli_text(&c->out, "  ");
        cli_escaped_cut(&c->out, found->name, 40);
    }
    if (!c->set.paths_only && found->hit_count > 0) {
        bool name = strcmp(found->hits[0].field, "name") == 0;
        cli_printf(&c->out, "  (%s%s", found->hits[0].field, name ? "" : " ");
        if (!name) cli_escaped_cut(&c->out, found->hits[0].value, 64);
        cli_text(&c->out, ")");
    }
    if (fits) cli_fill(&c->out, "  (%)", sft_span_cstr(found->reason));
    cli_text(&c->out, "\n");
    cli_fit_end(&fit);
}

static void show_found(cli *c, const find_found *found) {
    if (cli_is_json(c)) show_json(c, found);
    else if (c->set.nul) cli_put(&c->out, found->path, strlen(found->path) + 1);
    else if (c->set.format == CLI_TSV) show_row(c, found);
    else show_line(c, found);
}

/* ── --fits: kept, and shown best first ── */

static const char *kept_bytes(find_run *run, const void *bytes, size_t len) {
    const char *copy = sfti_arena_copy(&run->arena, bytes, len);
    run->failed |= !copy;
    return copy;
}

static sft_span kept_span(find_run *run, sft_span text) {
    return (sft_span){ kept_bytes(run, text.data, text.len), text.len };
}

/* Keeps what was found if it fits, or with --all may or does not. info NULL: it has no facts. */
static void keep_fit(find_run *run, const sft_info *info, const find_found *found) {
    char reason[256];
    sft_fit fit = info ? sft_info_fits(run->with, info, reason, sizeof reason) : SFT_FIT_NONE;
    bool good = fit >= SFT_FIT_LOADS;
    run->unknown += fit == SFT_FIT_UNKNOWN;
    if (!good && (fit == SFT_FIT_NONE || !run->c->set.all)) return;
    find_found *rows = sfti_arena_grow(&run->arena, run->rows, run->row_count, 1, &run->capacity,
                                       sizeof *rows);
    if (rows) run->rows = rows;
    find_hit *hits = sfti_arena_array(&run->arena, found->hit_count, sizeof *hits);
    run->failed |= !rows || !hits;
    if (!rows || !hits) return;
    for (size_t i = 0; i < found->hit_count; i++) {
        hits[i] = found->hits[i]; /* the names of fields are static */
        hits[i].value = kept_span(run, hits[i].value);
        hits[i].source = kept_span(run, hits[i].source);
    }
    rows[run->row_count++] = (find_found){
        kept_bytes(run, found->path, strlen(found->path)), kept_span(run, found->name),
        hits, found->hit_count, fit, kept_bytes(run, reason, strlen(reason))
    };
    run->good += good;
}

static int compare_rows(const void *a, const void *b) {
    const find_found *x = a, *y = b;
    if (x->fit != y->fit) return x->fit > y->fit ? -1 : 1;
    return sfti_natural_compare(sft_span_cstr(x->path), sft_span_cstr(y->path));
}

static void show_fits(find_run *run) {
    size_t count = run->failed ? 0 : run->row_count;
    if (run->failed) cli_complain_memory(run->c, sizeof *run->rows);
    if (count > 0) qsort(run->rows, count, sizeof *run->rows, compare_rows);
    for (size_t i = 0; i < count; i++) show_found(run->c, &run->rows[i]);
    if (run->good == 0 && run->unknown > 0 && !run->c->set.all) {
        /* an empty answer does not say that nothing fits */
        cli_flush(&run->c->out);
        cli_printf(&run->c->err, "safetensors: note: of %zu model%s it is not known whether they "
                                  "fit: --all lists them\n", run->unknown,
                   run->unknown == 1 ? "" : "s");
        cli_flush(&run->c->err);
    }
    sfti_arena_free(&run->arena);
}

/* ── What fits ── */

/* algo: of a hash, else NULL. */
static void add_hit(find_run *run, const char *field, const char *algo, sft_span value,
                    sft_span source) {
    if (run->hit_count < HITS_MOST)
        run->hits[run->hit_count++] = (find_hit){ field, algo, value, source };
}

static bool is_prefix(sft_span value, sft_span prefix) {
    return value.len >= prefix.len
        && cli_text_has((sft_span){ value.data, prefix.len }, prefix);
}

static void find_recorded(find_run *run, const sft_node *root) {
    for (const sft_node *one = cli_first(root, "hashes.recorded"); one; one = one->next) {
        sft_span value = sft_node_text(one, "value");
        unsigned algo = cli_algo_named(sft_node_text(one, "algo"));
        if (is_prefix(value, run->word))
            add_hit(run, "hash", algo < SFT_HASH_COUNT ? sft_hash_name((sft_hash_algo)algo) : NULL,
                    value, sft_node_text(one, "source"));
    }
    for (const sft_node *one = cli_first(root, "parts"); one; one = one->next)
        find_recorded(run, one);
}

/* Keeps those digests that fit. of: path of the file, given if the model has several. */
static void keep_digests(find_run *run, cli_model *model, const sft_hashes *hashes,
                         const char *how, const char *of) {
    sft_span name = of ? cli_name_of(of) : (sft_span){ "", 0 };
    size_t len = strlen(how), size = len + name.len + 2;
    for (unsigned i = SFT_HASH_COUNT; i-- > 0;) { /* the list is in the order of algorithms */
        const char *known = sft_hashes_get(hashes, (sft_hash_algo)i);
        if (!known || !is_prefix(sft_span_cstr(known), run->word)) continue;
        find_digest *digest = sfti_arena_take(&model->arena, sizeof *digest);
        char *source = sfti_arena_take(&model->arena, size);
        if (!digest || !source) {
            sfti_fail_memory(&model->err, sizeof *digest);
            return;
        }
        snprintf(source, size, "%s%s%.*s", how, of ? ":" : "", (int)name.len, name.data);
        *digest = (find_digest){ model->found, (sft_hash_algo)i, "", sft_span_cstr(source) };
        memcpy(digest->value, known, strlen(known) + 1);
        model->found = digest;
    }
}

static void keep_answer(find_run *run, cli_model *model, const char *path,
                        const sft_hash_result *result, const char *how) {
    keep_digests(run, model, &result->hashes, how, model->count > 1 ? path : NULL);
    for (size_t i = 0; i < result->shard_count; i++)
        keep_digests(run, model, &result->shards[i], how, result->shard_paths[i]);
}

/* Digests that such a prefix can be of. */
static uint32_t algos_of_prefix(const find_run *run) {
    uint32_t algos = 0;
    for (unsigned i = 0; i < SFT_HASH_COUNT; i++)
        if (sft_hash_digits((sft_hash_algo)i) >= run->word.len) algos |= SFT_HASH_BIT(i);
    return algos;
}

typedef struct cached_answer {
    find_run *run;
    cli_model *model;
    const char *path;
} cached_answer;

static bool take_cached(void *ctx, const sft_hash_result *result) {
    const cached_answer *to = ctx;
    if (!result->error) keep_answer(to->run, to->model, to->path, result, "cache");
    return true;
}

static void find_remembered(find_run *run, cli_model *model) {
    sft_hash_options options = run->digests.hashing.options;
    sft_job job = SFT_JOB_INIT;
    options.only_cached = true;
    for (size_t i = 0; options.cache && !model->found && i < cli_unit_count(model); i++) {
        cached_answer to = { run, model, cli_unit_path(model, i) };
        sft_hash_request ask = { to.path, algos_of_prefix(run) };
        if (!ask.path || !ask.algos) continue;
        if (sft_hash_paths(&ask, 1, &options, take_cached, &to, &job, &model->err)) return;
    }
}

/* Without the extension of a file, which all of them have. */
static sft_span stem_of(sft_span name) {
    for (size_t i = 0; cli_model_ends[i]; i++)
        if (cli_ends_with(name, cli_model_ends[i]))
            return (sft_span){ name.data, name.len - strlen(cli_model_ends[i]) };
    return name;
}

static void find_in(find_run *run, const char *field, sft_span text, sft_span source) {
    if (text.len && cli_loose_has(stem_of(text), run->word))
        add_hit(run, field, NULL, text, source);
}

static void find_fact(find_run *run, const sft_node *root, const char *field) {
    const sft_node *fact = sft_node_get(sft_node_get(root, "model"), field);
    find_in(run, field, sft_node_text(fact, "value"), sft_node_text(fact, "source"));
}

static void find_words(find_run *run, const cli_model *model, const sft_node *root) {
    static const char *const facts[] = { "base_model", "base_checkpoint", "author", "architecture",
                                         "repo" };
    sft_span none = { "", 0 };
    find_fact(run, root, "name");
    find_in(run, "path", cli_name_of(model->path), none);
    for (const sft_node *one = cli_first(root, "trigger_words"); one; one = one->next)
        find_in(run, "trigger_words", sft_node_text(one, "text"), sft_node_text(one, "source"));
    for (const sft_node *one = cli_first(root, "model.tags.value"); one; one = one->next)
        find_in(run, "tags", one->text, sft_node_text(root, "model.tags.source"));
    for (const sft_node *one = cli_first(root, "model.notes"); one; one = one->next)
        find_in(run, "notes", sft_node_text(one, "text"), sft_node_text(one, "source"));
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) find_fact(run, root, facts[i]);
    find_in(run, "title", cli_title(root, run->title), none);
}

static bool is_found(find_run *run, cli_model *model, const sft_node *root) {
    run->hit_count = 0;
    if (!cli_wheres_fit(run->c, &run->where, root)) return false;
    if (!run->word.len) return true;
    if (run->is_hex) {
        find_recorded(run, root);
        if (run->hit_count == 0) find_remembered(run, model);
        for (const find_digest *one = model->found; one; one = one->next)
            add_hit(run, "hash", sft_hash_name(one->algo), sft_span_cstr(one->value), one->source);
    }
    find_words(run, model, root);
    return run->hit_count > 0;
}

/* ── What is computed ── */

/* Whether there is nothing to be gained by hashing. */
static bool is_settled(find_run *run, cli_model *model) {
    if (run->settled == model) return run->is_settled;
    const sft_node *root = model->tree ? sft_tree_root(model->tree) : NULL;
    run->settled = model;
    run->is_settled = !root || !cli_wheres_fit(run->c, &run->where, root)
                   || is_found(run, model, root);
    return run->is_settled;
}

static uint32_t wanted_digests(void *ctx, cli_model *model, size_t unit) {
    find_run *run = ctx;
    (void)unit;
    return is_settled(run, model) ? 0 : algos_of_prefix(run);
}

static void take_digests(void *ctx, cli_model *model, size_t unit,
                         const sft_hash_result *result) {
    keep_answer(ctx, model, cli_unit_path(model, unit), result, "computed");
}

/* ── What is shown ── */

static void each_find(void *ctx, cli_model *model) {
    find_run *run = ctx;
    cli *c = run->c;
    if (!model->tree || model->err.code) {
        cli_fail_model(c, model);
        return;
    }
    const sft_node *root = sft_tree_root(model->tree);
    bool fits = is_found(run, model, root);
    if (model->err.code) cli_fail_model(c, model);
    if (!fits || model->err.code) return;
    find_found found = { .path = model->path, .name = sft_node_text(root, "model.name"),
                         .hits = run->hits, .hit_count = run->word.len ? run->hit_count : 0 };
    if (run->with) {
        keep_fit(run, model->info, &found);
        return;
    }
    run->found++;
    show_found(c, &found);
}

/* ── The command ── */

/* What cannot be looked at is there: to open it says why. */
static bool is_there(const char *path) {
    os_info info;
    int error = sfti_os_info_path(path, true, &info);
    return error != ENOENT && error != ENAMETOOLONG && error != EINVAL;
}

static sft_code read_find(find_run *run, char **operands, size_t count, sft_error *err) {
    cli *c = run->c;
    if (c->set.all && !c->set.fits)
        return cli_usage_error(err, "expected --fits with --all, found none");
    if ((c->set.paths_only || c->set.nul) && c->set.format != CLI_HUMAN)
        return cli_usage_error(err, "expected -l and -0 without --json, --jsonl and --tsv, found "
                                    "both");
    sft_code code = cli_where_read(c, &run->where, err);
    if (code) return code;
    /* with --where and --fits a first operand that is a path is no word */
    bool word = (c->set.where.count == 0 && !c->set.fits)
                || (strcmp(operands[0], "-") != 0 && !cli_is_url(operands[0])
                    && !is_there(operands[0]));
    if (word) run->word = stem_of(sft_span_cstr(operands[0]));
    run->is_hex = run->word.len >= HEX_LEAST;
    for (size_t i = 0; i < run->word.len; i++)
        run->is_hex = run->is_hex && sfti_lex_hex_digit(run->word.data[i]) >= 0;
    size_t paths = count - (run->word.data != NULL);
    if (paths > 0 && (run->word.len > 0 || !run->word.data)) return SFT_OK;
    return cli_usage_error(err, paths > 0 ? "expected a word, found nothing"
                                          : "expected [HEX|WORD] PATH..., found no path "
                                            "(without a word, give --where)");
}

static void find_all(find_run *run) {
    cli *c = run->c;
    if (c->set.format == CLI_TSV) {
        cli_text(&c->out, "path\tname");
        if (c->set.fits) cli_text(&c->out, "\tfit\treason");
        cli_text(&c->out, run->word.len > 0 ? "\tfield\tvalue\tsource\n" : "\n");
    }
    cli_hash_run_begin(&run->digests.hashing, c, run->path_count == 1 ? run->paths[0] : "find");
    if (run->digests.hashing.usable)
        cli_each_model(c, run->paths, run->path_count, &run->models, &run->digests, each_find, run);
    cli_hash_run_end(&run->digests.hashing);
}

/* The model of --fits, which stays open while the others are looked at. */
static void each_fits(void *ctx, cli_model *model) {
    find_run *run = ctx;
    cli *c = run->c;
    if (run->models != 1) {
        sft_error err = SFT_ERROR_INIT;
        if (run->refused) return;
        run->refused = true;
        cli_usage_error(&err, "expected one model for --fits, found %zu", run->models);
        cli_fail_usage(c, &err);
    } else if (!model->info || model->err.code) {
        cli_fail_model(c, model);
    } else {
        run->with = model->info;
        find_all(run);
        run->found = run->good;
        show_fits(run);
    }
}

static void run_find(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    find_run run = { .c = c, .arena.alloc = c->alloc };
    if (read_find(&run, operands, count, &err)) {
        cli_fail_usage(c, &err);
        return;
    }
    size_t first = run.word.data != NULL;
    run.paths = operands + first;
    run.path_count = count - first;
    char *with = (char *)(uintptr_t)c->set.fits;
    sft_code code = cli_remote_take(c, run.paths, run.path_count, CLI_URLS_ALL, "find", &err);
    if (!code && with) code = cli_remote_take(c, &with, 1, CLI_URLS_ALL, "find", &err);
    if (code) {
        cli_fail_usage(c, &err);
        return;
    }
    if (run.is_hex && c->set.compute) run.digests.wanted = wanted_digests;
    run.digests.answer = take_digests;
    c->counts_unread = true;
    run.digests.ctx = &run;
    if (with) cli_each_model(c, &with, 1, &run.models, NULL, each_fits, &run);
    else find_all(&run);
    if (run.found == 0) cli_status(c, CLI_NO);
}

const cli_command cli_find_command = {
    "find", "[HEX|WORD] PATH...", "find models by hash, word, fact or what they fit",
    "Eight or more hexadecimal digits are the beginning of a hash. Models are found by any hash "
    "that they or their sidecars record, then by those in --cache; no tensor data is read. "
    "--compute hashes the other models.\n"
    "Any other word is looked up in names, file names without their extension, trigger words, "
    "tags, notes, base models, authors, architectures, repositories, and the WHAT column of "
    "info -r (\"Wan 2.2 I2V 14B\"). Case is ignored (of ASCII letters); blanks, -, _ and . are "
    "alike, and may be left out except between digits: \"flux 1\" and flux1 both find flux.1.\n"
    "With --where the word may be omitted; the fields are those of info -f.\n"
    CLI_WHERE_ABOUT "\n"
    "--fits lists, best first and with the reason, what can be used with FILE: for a checkpoint, "
    "its adapters, embeddings, ControlNets, IP-Adapters, motion modules, VAEs and text encoders; "
    "for one of these, the checkpoints and other whole models. yes: same architecture and base "
    "model, or trained on FILE. likely: no conflict found, but not everything is known. loads: "
    "made for another base, prediction or variant, so that the result may look off. --all also "
    "lists unknown and no. It compares architectures, base models, predictions, variants, recorded "
    "digests of the file trained on, and the sizes of layers that are named alike; it reads no "
    "tensor data.",
    CLI_EXAMPLES(
        { "safetensors find 6ce0161689 ~/models", "by the first digits of a hash" },
        { "safetensors find --compute --cache ~/.hashes 6ce0161689 -r ~/models",
          "even if no file records it" },
        { "safetensors find neon -r ~/models",
          "by a word in name, trigger words, tags, notes, base model" },
        { "safetensors find -l --where base_model=Pony -r ~/models", "paths, by a fact" },
        { "safetensors find --fits checkpoint.safetensors -r ~/models/loras",
          "adapters for a checkpoint, best first" }),
    { CLI_OPTIONS(
        CLI_TAKES_MANY(0, "where", "FIELD=VALUE", where, CLI_WHERE_HELP),
        CLI_TAKES(0, "fits", "FILE", fits,
          "only models that FILE can be used with: adapters of a checkpoint, or the reverse"),
        CLI_ON('a', "all", all,
          "with --fits: also those that do not fit, or of which it is not known"),
        CLI_ON(0, "compute", compute, "hash models that recorded and cached digests do not find"),
        CLI_ON('l', "list", paths_only, "print only paths"),
        CLI_ON('0', "null", nul, "print only paths, each followed by a NUL byte, for xargs -0"),
        { 0, "tsv", NULL, CLI_FLAG, CLI_TSV, offsetof(cli_settings, format),
          "a table, values separated by tabs" },
        CLI_ON(0, "csv-safe", csv_safe, CLI_CSV_SAFE_HELP)),
      cli_unread_options, cli_hash_run_options, cli_input_options, cli_json_options,
      cli_reading_options, cli_records_options, cli_remote_options, cli_network_options,
      cli_common_options },
    { "a model was found; with --fits: one that FILE can be used with",
      "no model matches; with --fits: none that FILE can be used with, whatever --all lists",
      CLI_UNREAD_STATUS ", or a usage error" },
    1, SIZE_MAX, run_find, CLI_URLS_OWN,
};
