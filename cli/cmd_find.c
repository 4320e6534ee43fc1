/* find: which models have a hash, a word, a fact. */
#include "cli.h"

#include "fields.h"
#include "group.h"
#include "models.h"
#include "os/os.h"
#include "where.h"

#include <string.h>

#define HEX_LEAST 8
#define HITS_MOST 16

typedef struct find_hit {
    const char *field;
    sft_span value, source;
} find_hit;

typedef struct find_run {
    cli *c;
    sft_span word; /* empty: only --where */
    bool is_hex;
    size_t models, found;
    cli_where where[CLI_WORDS_MOST];
    size_t where_count;
    find_hit hits[HITS_MOST];
    size_t hit_count;
} find_run;

/* ── What fits ── */

static void add_hit(find_run *run, const char *field, sft_span value, sft_span source) {
    if (run->hit_count < HITS_MOST)
        run->hits[run->hit_count++] = (find_hit){ field, value, source };
}

static bool is_prefix(sft_span value, sft_span prefix) {
    return value.len >= prefix.len
        && cli_text_has((sft_span){ value.data, prefix.len }, prefix);
}

static void find_hashes(find_run *run, const cli_node *root) {
    const cli_node *list = cli_doc_at(root, "hashes.recorded");
    for (const cli_node *one = list ? list->first : NULL; one; one = one->next) {
        sft_span value = cli_doc_text(one, "value");
        if (is_prefix(value, run->word)) add_hit(run, "hash", value, cli_doc_text(one, "source"));
    }
}

static void find_in(find_run *run, const char *field, sft_span text, sft_span source) {
    if (text.len && cli_text_has(text, run->word)) add_hit(run, field, text, source);
}

static void find_words(find_run *run, const cli_model *model, const cli_node *root) {
    const cli_node *words = cli_doc_get(root, "trigger_words");
    const cli_node *tags = cli_doc_at(root, "model.tags.value");
    sft_span none = { "", 0 };
    find_in(run, "name", cli_doc_text(root, "model.name"),
            cli_doc_text(root, "model.name.source"));
    find_in(run, "path", cli_name_of(model->path), none);
    for (const cli_node *one = words ? words->first : NULL; one; one = one->next)
        find_in(run, "trigger_words", cli_doc_text(one, "text"), cli_doc_text(one, "source"));
    for (const cli_node *one = tags ? tags->first : NULL; one; one = one->next)
        find_in(run, "tags", one->text, cli_doc_text(root, "model.tags.source"));
}

static bool is_found(find_run *run, const cli_model *model, const cli_node *root) {
    run->hit_count = 0;
    for (size_t i = 0; i < run->where_count; i++) {
        if (!cli_where_fits(&run->where[i], root)) return false;
        add_hit(run, "where", run->where[i].field, (sft_span){ "", 0 });
    }
    if (!run->word.len) return true;
    run->hit_count = 0;
    if (run->is_hex) find_hashes(run, root);
    find_words(run, model, root);
    return run->hit_count > 0;
}

/* ── What is shown ── */

static void show_hit_json(const find_run *run, const cli_model *model, const cli_node *root) {
    cli *c = run->c;
    sft_sink sink = cli_out_sink(&c->out);
    sfti_json_writer w;
    cli_result_begin(c);
    sfti_json_write(&w, &sink, 0, NULL);
    sfti_json_open(&w, '{');
    if (cli_result_command(c)) {
        sfti_json_key(&w, "schema");
        sfti_json_uint(&w, 1);
        sfti_json_key(&w, "command");
        sfti_json_cstr(&w, cli_result_command(c));
    }
    cli_json_path(&w, model->path);
    sfti_json_key(&w, "ok");
    sfti_json_bool(&w, true);
    sfti_json_key(&w, "name");
    sft_span name = cli_doc_text(root, "model.name");
    if (name.len) sfti_json_span(&w, name);
    else sfti_json_null(&w);
    sfti_json_key(&w, "matches");
    sfti_json_open(&w, '[');
    for (size_t i = 0; i < run->hit_count && run->word.len; i++) {
        const find_hit *hit = &run->hits[i];
        sfti_json_open(&w, '{');
        sfti_json_key(&w, "field");
        sfti_json_cstr(&w, hit->field);
        sfti_json_key(&w, "value");
        sfti_json_span(&w, hit->value);
        sfti_json_key(&w, "source");
        if (hit->source.len) sfti_json_span(&w, hit->source);
        else sfti_json_null(&w);
        sfti_json_close(&w, '}');
    }
    sfti_json_close(&w, ']');
    sfti_json_close(&w, '}');
    (void)sfti_json_done(&w);
    cli_result_end(c);
}

static void show_hit(const find_run *run, const cli_model *model, const cli_node *root) {
    cli *c = run->c;
    sft_span name = cli_doc_text(root, "model.name");
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
    sfti_arena arena = { .alloc = c->alloc };
    if (model->json.len == 0 || model->err.code) {
        cli_fail_model(c, model);
        return;
    }
    cli_node *root = cli_doc_parse((sft_span){ model->json.data, model->json.len }, &arena);
    if (!root) {
        sfti_fail_memory(&model->err, model->json.len);
        cli_fail_model(c, model);
    } else if (is_found(run, model, root)) {
        run->found++;
        if (cli_is_json(c)) show_hit_json(run, model, root);
        else show_hit(run, model, root);
    }
    sfti_arena_free(&arena);
}

/* ── The command ── */

static bool is_hex_word(sft_span word) {
    for (size_t i = 0; i < word.len; i++) {
        char ch = word.data[i];
        bool hex = (ch >= '0' && ch <= '9') || ((ch | 0x20) >= 'a' && (ch | 0x20) <= 'f');
        if (!hex) return false;
    }
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
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < c->set.where.count; i++)
        code = cli_where_parse(c->set.where.items[i], &run->where[run->where_count++], err);
    if (code) return code;
    if (takes_word(c, operands[0])) run->word = sft_span_cstr(operands[0]);
    run->is_hex = is_hex_word(run->word);
    size_t paths = count - (run->word.data != NULL);
    if (paths > 0 && (run->word.len > 0 || !run->word.data)) return SFT_OK;
    sfti_fail(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET, paths > 0
              ? "expected a word, found nothing" : "expected [HEX|WORD] PATH..., found no path");
    err->hint = NULL;
    return SFT_BAD_ARGUMENT;
}

static int run_find(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    find_run run = { .c = c };
    if (read_find(&run, operands, count, &err)) {
        cli_complain(c, "find", &err);
        return CLI_FAILED;
    }
    size_t first = run.word.data != NULL;
    cli_results_begin(c);
    cli_each_model(c, operands + first, count - first, &run.models, each_find, &run);
    cli_results_end(c);
    if (run.found == 0) cli_status(c, CLI_NO);
    return c->status;
}

static const cli_option find_options[] = {
    { 0, "where", "FIELD=VALUE", CLI_MANY, 0, offsetof(cli_settings, where),
      "only models where it holds; also FIELD~PART, FIELD<VALUE, FIELD>VALUE" },
    { 'l', "list", NULL, CLI_FLAG, 1, offsetof(cli_settings, paths_only), "only the paths" },
    { '0', "null", NULL, CLI_FLAG, 1, offsetof(cli_settings, nul),
      "only the paths, a zero byte after each, for xargs -0" },
    { 0, NULL, NULL, CLI_FLAG, 0, 0, NULL },
};

static const cli_example find_examples[] = {
    { "safetensors find 6ce0161689 ~/models", "by the first digits of a hash" },
    { "safetensors find neon -r ~/models", "by a word in name, trigger words or tags" },
    { "safetensors find -l --where base_model=Pony -r ~/models", "paths, by a fact" },
    { NULL, NULL },
};

const cli_command cli_find_command = {
    "find", "[HEX|WORD] PATH...", "which models have this hash, word or fact",
    "Eight hexadecimal digits or more are the beginning of a hash: models are found by the "
    "hashes that they or the files beside them record, of whatever kind (no data are read). "
    "Any word is looked for in file names, names, trigger words and tags, letters of any "
    "case.\n"
    "With --where the word may be left out; the fields are those of info -f.",
    find_examples,
    { find_options, cli_input_options, cli_json_options, cli_reading_options,
      cli_common_options },
    { "a model was found", "no model was found",
      "a model could not be read, or the usage was wrong" },
    1, SIZE_MAX, run_find,
};
