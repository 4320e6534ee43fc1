#include "support/fields.h"

#include "safetensors_info.h"
#include "support/words.h"

#include <stdlib.h>
#include <string.h>

const char cli_default_columns[] =
    "path,kind,architecture,base_model,name,trigger_words,rank,civitai.version_id,bytes";

/* ── Names ── */

static const struct field_alias { const char *name, *path; } field_aliases[] = {
    { "rank", "adapter.rank.mode" }, { "alpha", "adapter.alpha.mode" },
    { "prompt", "trigger_words.prompt" }, { "bytes", "file.bytes" },
    { "tensors", "file.tensors" }, { "parameters", "model.parameters" },
    { "precision", "model.precision" }, { "size", "model.size" }, { "tool", "training.tool" },
    { "type", "adapter.type" }, { "format", "adapter.format" }, { "epoch", "training.epoch" },
    { "steps", "training.steps" }, { "images", "training.images" },
    { "model_id", "civitai.model_id" }, { "version_id", "civitai.version_id" },
    { "air", "civitai.air" }, { "url", "civitai.url" }, { "notes", "model.notes" },
    { "rating", "model.rating" }, { "nsfw_level", "model.nsfw_level" },
    { "components", "model.components" }, { "evidence", "model.evidence" },
    { "vectors", "model.vectors" }, { "negative", "model.negative" }, { "llm", "model.llm" },
};

static const char *const top_fields[] = {
    "path", "path_bytes", "ok", "error", "complete", "file", "metadata", "metadata_cut",
    "shards", "set", "missing", "parts", "model", "adapter", "trigger_words", "frequent_tags",
    "example_prompts", "civitai", "links", "training", "merge", "provenance", "hashes",
    "previews", "sidecars", "privacy", "conflicts",
};

const char *cli_field_alias(sft_span name) {
    for (size_t i = 0; i < sizeof field_aliases / sizeof *field_aliases; i++) {
        if (cli_is(name, field_aliases[i].name))
            return field_aliases[i].path;
    }
    return NULL;
}

size_t cli_field_fact(sft_span name) {
    size_t i = 0;
    while (i < SFT_FACT_COUNT && !cli_is(name, sft_fact_name((sft_fact)i))) i++;
    return i;
}

static bool is_fact(sft_span name) {
    return cli_field_fact(name) < SFT_FACT_COUNT;
}

static bool is_top(sft_span name) {
    for (size_t i = 0; i < sizeof top_fields / sizeof *top_fields; i++) {
        if (cli_is(name, top_fields[i])) return true;
    }
    return false;
}

bool cli_field_is_metadata(sft_span name) {
    static const char word[] = "metadata";
    size_t len = sizeof word - 1;
    return name.len >= len && memcmp(name.data, word, len) == 0;
}

bool cli_field_known(sft_span name) {
    const char *dot = name.len ? memchr(name.data, '.', name.len) : NULL;
    if (dot) return is_top((sft_span){ name.data, (size_t)(dot - name.data) });
    return is_fact(name) || cli_field_alias(name) || is_top(name);
}

sft_code cli_field_unknown(sft_span name, sft_error *err) {
    cli_guess guess = cli_guess_begin(name);
    for (int i = 0; i < SFT_FACT_COUNT; i++)
        cli_guess_try(&guess, sft_span_cstr(sft_fact_name((sft_fact)i)));
    for (size_t i = 0; i < sizeof field_aliases / sizeof *field_aliases; i++)
        cli_guess_try(&guess, sft_span_cstr(field_aliases[i].name));
    for (size_t i = 0; i < sizeof top_fields / sizeof *top_fields; i++)
        cli_guess_try(&guess, sft_span_cstr(top_fields[i]));
    return cli_usage_error(
        err, "expected a field such as name or training.epoch, found \"%.*s\"%s", (int)name.len,
        name.data, cli_guess_text(&guess, "\"", "\""));
}

sft_code cli_fields_parse(const char *list, cli_fields *out, sft_error *err) {
    out->count = 0;
    for (;;) {
        size_t len = strcspn(list, ",");
        sft_span name = { list, len };
        if (!cli_field_known(name)) return cli_field_unknown(name, err);
        if (out->count == CLI_FIELDS_MOST) {
            return cli_usage_error(err, "expected at most %d fields", CLI_FIELDS_MOST);
        }
        out->names[out->count++] = name;
        if (!list[len]) return SFT_OK;
        list += len + 1;
    }
}

/* ── Nodes ── */

/* A key of `metadata` may hold dots: the longest member that fits wins. */
static const sft_node *step(const sft_node *node, sft_span *path) {
    for (size_t len = path->len; len > 0; len--) {
        if (len < path->len && path->data[len] != '.') continue;
        for (const sft_node *one = node->first; one; one = one->next) {
            if (one->key.len != len || memcmp(one->key.data, path->data, len) != 0) continue;
            size_t used = len < path->len ? len + 1 : len;
            path->data += used;
            path->len -= used;
            return one;
        }
    }
    return NULL;
}

typedef bool (*node_fn)(void *ctx, const sft_node *node);

static bool each_leaf(const sft_node *node, node_fn take, void *ctx) {
    return node->type == SFT_NODE_NULL || take(ctx, node);
}

/* Nodes at a path. One array on the way is entered: the path goes on in every element. */
static void each_node(const sft_node *node, sft_span path, node_fn take, void *ctx) {
    while (node && path.len > 0 && node->type == SFT_NODE_OBJECT) node = step(node, &path);
    if (!node) return;
    if (path.len == 0) {
        each_leaf(node, take, ctx);
        return;
    }
    if (node->type != SFT_NODE_LIST) return;
    for (const sft_node *one = node->first; one; one = one->next) {
        sft_span rest = path;
        const sft_node *inner = one;
        while (inner && rest.len > 0 && inner->type == SFT_NODE_OBJECT)
            inner = step(inner, &rest);
        if (inner && rest.len == 0 && !each_leaf(inner, take, ctx)) return;
    }
}

static void each_named(const sft_node *root, sft_span name, node_fn take, void *ctx) {
    const char *path = cli_field_alias(name);
    const sft_node *model = sft_node_get(root, "model");
    if (path) {
        each_node(root, sft_span_cstr(path), take, ctx);
    } else if (model && is_fact(name)) {
        each_node(model, name, take, ctx);
    } else {
        each_node(root, name, take, ctx);
    }
}

/* ── Values ── */

sft_span cli_node_words(cli *c, const sft_node *node, sft_buffer *buffer) {
    sft_error err = SFT_ERROR_INIT;
    if (node->type != SFT_NODE_LIST && node->type != SFT_NODE_OBJECT) return node->text;
    buffer->alloc = c->alloc;
    sft_sink sink = sft_sink_memory(buffer);
    if (sft_node_json(node, NULL, NULL, &sink, 0, NULL, &err)) {
        cli_complain(c, c->command->name, &err);
        return sft_span_cstr("(not enough memory)");
    }
    return (sft_span){ buffer->data, buffer->len };
}

typedef struct value_take {
    cli *c;
    cli_value_fn take;
    void *ctx;
} value_take;

/* What an object in a list is called by. */
static const sft_node *spoken(const sft_node *node) {
    static const char *const keys[] = { "value", "text", "tag", "url", "path", "positive",
                                        "field", "key", "part", "name", "folder", "algo" };
    if (node->type != SFT_NODE_OBJECT) return node;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const sft_node *found = sft_node_get(node, keys[i]);
        if (found && found->type != SFT_NODE_NULL) return found;
    }
    return node;
}

static bool take_text(const value_take *to, const sft_node *node) {
    sft_buffer buffer = { .len = 0 };
    bool more = node->type == SFT_NODE_NULL
             || to->take(to->ctx, cli_node_words(to->c, node, &buffer));
    sft_buffer_free(&buffer);
    return more;
}

static bool take_values(void *ctx, const sft_node *node) {
    const value_take *to = ctx;
    const sft_node *value = sft_node_get(node, "value");
    if (value) node = value;
    if (node->type != SFT_NODE_LIST) return take_text(to, node);
    for (node = node->first; node; node = node->next)
        if (!take_text(to, spoken(node))) return false;
    return true;
}

void cli_field_values(cli *c, const sft_node *root, sft_span name, cli_value_fn take, void *ctx) {
    value_take to = { c, take, ctx };
    each_named(root, name, take_values, &to);
}

/* ── Lines ── */

void cli_field_text(cli_out *out, sft_span text) {
    static const char plain[] = "\t\n\r\\", letters[] = "tnr\\";
    while (text.len) {
        size_t len = 0;
        while (len < text.len && !(text.data[len] && strchr(plain, text.data[len]))) len++;
        cli_escaped(out, (sft_span){ text.data, len });
        if (len < text.len) {
            char pair[2] = { '\\', letters[strchr(plain, text.data[len]) - plain] };
            cli_put(out, pair, 2);
            len++;
        }
        text.data += len;
        text.len -= len;
    }
}

typedef struct line_take {
    cli_out *out;
    const char *between;
    size_t count;
    bool csv_safe;
} line_take;

static bool put_value(void *ctx, sft_span text) {
    line_take *line = ctx;
    if (line->count++) cli_text(line->out, line->between);
    else if (line->csv_safe) cli_cell_guard(line->out, text);
    cli_field_text(line->out, text);
    return true;
}

size_t cli_fields_line(cli *c, const sft_node *root, const cli_fields *fields,
                       bool csv_safe) {
    size_t known = 0;
    cli_out *out = &c->out;
    for (size_t i = 0; i < fields->count; i++) {
        bool prompt = cli_is(fields->names[i], "prompt");
        line_take line = { out, prompt ? ", " : " | ", 0, csv_safe };
        if (i) cli_text(out, "\t");
        cli_field_values(c, root, fields->names[i], put_value, &line);
        known += line.count > 0;
    }
    cli_text(out, "\n");
    return known;
}

void cli_fields_header(cli_out *out, const cli_fields *fields) {
    for (size_t i = 0; i < fields->count; i++) {
        if (i) cli_text(out, "\t");
        cli_field_text(out, fields->names[i]);
    }
    cli_text(out, "\n");
}

/* ── As JSON ── */

typedef struct kept_row {
    const sft_node *node;
    sft_node_keep keep;
} kept_row;

/* Which nodes are written, and in how far; sorted by their places in memory. */
typedef struct kept_rows {
    sft_buffer buffer;
    size_t count;
    size_t known; /* of fields */
    const sft_node *parent; /* of the row kept last: its ancestors have rows */
    bool failed;
} kept_rows;

static void add_kept(kept_rows *rows, const sft_node *node, sft_node_keep keep) {
    kept_row row = { node, keep };
    if (sfti_buffer_put(&rows->buffer, &row, sizeof row)) rows->count++;
    else rows->failed = true;
}

static bool keep_node(void *ctx, const sft_node *node) {
    kept_rows *rows = ctx;
    rows->known++;
    add_kept(rows, node, SFT_NODE_ALL);
    if (node->parent == rows->parent) return true;
    rows->parent = node->parent;
    for (node = node->parent; node; node = node->parent) add_kept(rows, node, SFT_NODE_SOME);
    return true;
}

/* By place; of one node the row that keeps more comes first. */
static int compare_kept(const void *a, const void *b) {
    const kept_row *x = a, *y = b;
    uintptr_t p = (uintptr_t)x->node, q = (uintptr_t)y->node;
    return p != q ? (p < q ? -1 : 1) : (int)y->keep - (int)x->keep;
}

static sft_node_keep keep_of(void *ctx, const sft_node *node) {
    const kept_rows *rows = ctx;
    const kept_row *row = (const kept_row *)(const void *)rows->buffer.data;
    size_t low = 0, high = rows->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if ((uintptr_t)row[middle].node < (uintptr_t)node) low = middle + 1;
        else high = middle;
    }
    return low < rows->count && row[low].node == node ? row[low].keep : SFT_NODE_DROP;
}

size_t cli_fields_json(cli *c, const sft_node *root, const cli_fields *fields) {
    static const char *const always[] = { "path", "path_bytes", "ok", "error" };
    sft_sink sink = cli_result_sink(c);
    sft_error err = SFT_ERROR_INIT;
    kept_rows rows = { .buffer = { .alloc = c->alloc } };
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        const sft_node *node = sft_node_get(root, always[i]);
        if (node) keep_node(&rows, node);
    }
    rows.known = 0;
    for (size_t i = 0; i < fields->count; i++)
        each_named(root, fields->names[i], keep_node, &rows);
    if (rows.count > 0) qsort(rows.buffer.data, rows.count, sizeof(kept_row), compare_kept);
    sft_code code = rows.failed ? sfti_fail_memory(&err, rows.buffer.len) : SFT_OK;
    if (!code) code = sft_node_json(root, keep_of, &rows, &sink, 0, NULL, &err);
    if (code) cli_complain(c, "info", &err);
    sft_buffer_free(&rows.buffer);
    return rows.known;
}
