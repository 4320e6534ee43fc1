/* find: find models by hash, word or fact. */
#include "base/json_lex.h"
#include "commands/commands.h"
#include "os/os.h"
#include "support/cli.h"
#include "support/fields.h"
#include "support/files.h"
#include "support/group.h"
#include "support/models.h"
#include "support/nodes.h"
#include "support/where.h"

#include <stdio.h>
#include <string.h>

#define HEX_LEAST 8
#define HITS_MOST 16

typedef struct find_hit {
    const char *field, *algo; /* algo: of hashes */
    sft_span value, source;
} find_hit;

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
    cli_digests digests;
    const cli_model *settled; /* of which it is known whether it is found without hashing */
    bool is_settled;
} find_run;

/* ── What fits ── */

static void add_hit(find_run *run, const char *field, sft_span value, sft_span source) {
    if (run->hit_count < HITS_MOST)
        run->hits[run->hit_count++] = (find_hit){ field, NULL, value, source };
}

static void add_hash(find_run *run, const char *algo, sft_span value, sft_span source) {
    size_t before = run->hit_count;
    add_hit(run, "hash", value, source);
    if (run->hit_count > before) run->hits[before].algo = algo;
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
            add_hash(run, algo < SFT_HASH_COUNT ? sft_hash_name((sft_hash_algo)algo) : NULL, value,
                     sft_node_text(one, "source"));
    }
    for (const sft_node *one = cli_first(root, "parts"); one; one = one->next)
        find_recorded(run, one);
}

/* Of these digests, those that fit. of: path of the file, given if the model has several. */
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

static void find_hashes(find_run *run, cli_model *model, const sft_node *root) {
    find_recorded(run, root);
    if (run->hit_count == 0) find_remembered(run, model);
    for (const find_digest *one = model->found; one; one = one->next)
        add_hash(run, sft_hash_name(one->algo), sft_span_cstr(one->value), one->source);
}

static void find_in(find_run *run, const char *field, sft_span text, sft_span source) {
    if (text.len && cli_text_has(text, run->word)) add_hit(run, field, text, source);
}

static void find_words(find_run *run, const cli_model *model, const sft_node *root) {
    sft_span none = { "", 0 };
    find_in(run, "name", sft_node_text(root, "model.name"),
            sft_node_text(root, "model.name.source"));
    find_in(run, "path", cli_name_of(model->path), none);
    for (const sft_node *one = cli_first(root, "trigger_words"); one; one = one->next)
        find_in(run, "trigger_words", sft_node_text(one, "text"), sft_node_text(one, "source"));
    for (const sft_node *one = cli_first(root, "model.tags.value"); one; one = one->next)
        find_in(run, "tags", one->text, sft_node_text(root, "model.tags.source"));
}

static bool is_found(find_run *run, cli_model *model, const sft_node *root) {
    run->hit_count = 0;
    if (!cli_wheres_fit(run->c, &run->where, root)) return false;
    if (!run->word.len) return true;
    if (run->is_hex) find_hashes(run, model, root);
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

/* A text, or null where there is none. */
static void put_some(sfti_json_writer *w, const char *key, sft_span text) {
    sfti_json_put_text(w, key, text.len ? text : (sft_span){ NULL, 0 });
}

static void show_hit_json(const find_run *run, const cli_model *model, const sft_node *root) {
    cli_object object;
    sfti_json_writer *w = cli_object_begin(&object, run->c, model->path);
    put_some(w, "name", sft_node_text(root, "model.name"));
    sfti_json_key(w, "matches");
    sfti_json_open(w, '[');
    for (size_t i = 0; i < run->hit_count && run->word.len; i++) {
        const find_hit *hit = &run->hits[i];
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

static void tsv_row(cli *c, const cli_model *model, sft_span name, const find_hit *hit) {
    static const find_hit none = { "", NULL, { "", 0 }, { "", 0 } };
    if (!hit) hit = &none;
    sft_span cells[] = { sft_span_cstr(model->path), name, sft_span_cstr(hit->field),
                         sft_span_cstr(hit->algo ? hit->algo : ""), hit->value, hit->source };
    for (size_t i = 0; i < sizeof cells / sizeof *cells; i++) {
        if (i > 0) cli_text(&c->out, "\t");
        cli_cell(c, cells[i]);
    }
    cli_text(&c->out, "\n");
}

/* A row for each match; one where no word was given. */
static void show_hit_tsv(const find_run *run, const cli_model *model, const sft_node *root) {
    cli *c = run->c;
    sft_span name = sft_node_text(root, "model.name");
    if (run->found == 1) cli_text(&c->out, "path\tname\tfield\talgo\tvalue\tsource\n");
    if (!run->word.len) tsv_row(c, model, name, NULL);
    for (size_t i = 0; i < run->hit_count && run->word.len; i++)
        tsv_row(c, model, name, &run->hits[i]);
}

static void show_hit(const find_run *run, const cli_model *model, const sft_node *root) {
    cli *c = run->c;
    sft_span name = sft_node_text(root, "model.name");
    if (c->set.nul) {
        cli_put(&c->out, model->path, strlen(model->path) + 1);
        return;
    }
    cli_escaped(&c->out, sft_span_cstr(model->path));
    if (!c->set.paths_only) {
        cli_text(&c->out, "  ");
        cli_escaped_cut(&c->out, name, 40);
        if (run->word.len) {
            const char *field = run->hits[0].field;
            cli_printf(&c->out, "  (%s%s", field, strcmp(field, "name") == 0 ? ")" : " ");
            if (strcmp(field, "name") != 0) {
                cli_escaped_cut(&c->out, run->hits[0].value, 64);
                cli_text(&c->out, ")");
            }
        }
    }
    cli_text(&c->out, "\n");
}

static void each_find(void *ctx, cli_model *model) {
    find_run *run = ctx;
    cli *c = run->c;
    if (!model->tree || model->err.code) {
        cli_fail_model(c, model);
        return;
    }
    const sft_node *root = sft_tree_root(model->tree);
    if (!is_found(run, model, root) || model->err.code) return;
    run->found++;
    if (cli_is_json(c)) show_hit_json(run, model, root);
    else if (c->set.format == CLI_TSV) show_hit_tsv(run, model, root);
    else show_hit(run, model, root);
}

/* ── The command ── */

static bool is_hex_word(sft_span word) {
    for (size_t i = 0; i < word.len; i++)
        if (sfti_lex_hex_digit(word.data[i]) < 0) return false;
    return word.len >= HEX_LEAST;
}

/* With --where a first operand that is a path is no word. */
static bool takes_word(const cli *c, const char *operand) {
    os_info info;
    return c->set.where.count == 0
        || (strcmp(operand, "-") != 0 && os_info_path(operand, true, &info) != 0);
}

static sft_code read_find(find_run *run, char **operands, size_t count, sft_error *err) {
    cli *c = run->c;
    sft_code code = cli_where_read(c, &run->where, err);
    if (code) return code;
    if (takes_word(c, operands[0])) run->word = sft_span_cstr(operands[0]);
    run->is_hex = is_hex_word(run->word);
    size_t paths = count - (run->word.data != NULL);
    if (paths > 0 && (run->word.len > 0 || !run->word.data)) return SFT_OK;
    return cli_usage_error(err, paths > 0 ? "expected a word, found nothing"
                                          : "expected [HEX|WORD] PATH..., found no path");
}

static void run_find(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    find_run run = { .c = c };
    if (read_find(&run, operands, count, &err)) {
        cli_fail_usage(c, &err);
        return;
    }
    size_t first = run.word.data != NULL;
    if (run.is_hex && c->set.compute) run.digests.wanted = wanted_digests;
    run.digests.answer = take_digests;
    run.digests.ctx = &run;
    cli_hash_run_begin(&run.digests.hashing, c, count - first == 1 ? operands[first] : "find");
    if (run.digests.hashing.usable)
        cli_each_model(c, operands + first, count - first, &run.models, &run.digests, each_find,
                       &run);
    cli_hash_run_end(&run.digests.hashing);
    if (run.found == 0) cli_status(c, CLI_NO);
}

static const cli_option find_options[] = {
    { 0, "where", "FIELD=VALUE", CLI_MANY, 0, offsetof(cli_settings, where),
      "only models that match; also FIELD~PART, FIELD<VALUE, FIELD>VALUE" },
    { 0, "compute", NULL, CLI_FLAG, 1, offsetof(cli_settings, compute),
      "hash models that recorded and cached digests do not find" },
    { 'l', "list", NULL, CLI_FLAG, 1, offsetof(cli_settings, paths_only), "print only paths" },
    { '0', "null", NULL, CLI_FLAG, 1, offsetof(cli_settings, nul),
      "print only paths, each followed by a NUL byte, for xargs -0" },
    { 0, NULL, NULL, CLI_FLAG, 0, 0, NULL },
};

static const cli_example find_examples[] = {
    { "safetensors find 6ce0161689 ~/models", "by the first digits of a hash" },
    { "safetensors find --compute --cache ~/.hashes 6ce0161689 -r ~/models",
      "even if no file records it" },
    { "safetensors find neon -r ~/models", "by a word in name, trigger words or tags" },
    { "safetensors find -l --where base_model=Pony -r ~/models", "paths, by a fact" },
    { NULL, NULL },
};

const cli_command cli_find_command = {
    "find", "[HEX|WORD] PATH...", "find models by hash, word or fact",
    "Eight or more hexadecimal digits are the beginning of a hash. Models are found by any hash "
    "that they or their sidecars record, then by those in --cache; no tensor data is read. "
    "--compute hashes the other models.\n"
    "Any other word is looked up in file names, names, trigger words and tags, ignoring case.\n"
    "With --where the word may be omitted; the fields are those of info -f.",
    find_examples,
    { find_options, cli_hash_run_options, cli_input_options, cli_json_options, cli_table_options,
      cli_reading_options, cli_common_options },
    { "a model was found", "no model was found", "a model could not be read, or a usage error" },
    1, SIZE_MAX, run_find,
};
