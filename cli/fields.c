#include "fields.h"

#include "safetensors_info.h"
#include "words.h"

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

static const char *alias_path(sft_span name) {
    for (size_t i = 0; i < sizeof field_aliases / sizeof *field_aliases; i++) {
        if (sft_span_equal(name, sft_span_cstr(field_aliases[i].name)))
            return field_aliases[i].path;
    }
    return NULL;
}

static bool is_fact(sft_span name) {
    for (int i = 0; i < SFT_FACT_COUNT; i++) {
        if (sft_span_equal(name, sft_span_cstr(sft_fact_name((sft_fact)i)))) return true;
    }
    return false;
}

static bool is_top(sft_span name) {
    for (size_t i = 0; i < sizeof top_fields / sizeof *top_fields; i++) {
        if (sft_span_equal(name, sft_span_cstr(top_fields[i]))) return true;
    }
    return false;
}

bool cli_field_known(sft_span name) {
    const char *dot = name.len ? memchr(name.data, '.', name.len) : NULL;
    if (dot) return is_top((sft_span){ name.data, (size_t)(dot - name.data) });
    return is_fact(name) || alias_path(name) || is_top(name);
}

static void nearer(const char *word, sft_span name, const char **best, size_t *least) {
    size_t distance = cli_distance(sft_span_cstr(word), name);
    if (distance >= *least) return;
    *least = distance;
    *best = word;
}

static sft_code unknown_field(sft_span name, sft_error *err) {
    const char *best = NULL;
    size_t least = SIZE_MAX;
    for (int i = 0; i < SFT_FACT_COUNT; i++)
        nearer(sft_fact_name((sft_fact)i), name, &best, &least);
    for (size_t i = 0; i < sizeof field_aliases / sizeof *field_aliases; i++)
        nearer(field_aliases[i].name, name, &best, &least);
    for (size_t i = 0; i < sizeof top_fields / sizeof *top_fields; i++)
        nearer(top_fields[i], name, &best, &least);
    bool near = best && cli_is_near(least, name.len);
    sfti_fail(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET,
              "expected a field such as name or training.epoch, found \"%.*s\"%s%s%s",
              (int)name.len, name.data, near ? ": did you mean \"" : "", near ? best : "",
              near ? "\"?" : "");
    if (err) err->hint = NULL;
    return SFT_BAD_ARGUMENT;
}

sft_code cli_fields_parse(const char *list, cli_fields *out, sft_error *err) {
    out->count = 0;
    for (;;) {
        size_t len = strcspn(list, ",");
        sft_span name = { list, len };
        if (!cli_field_known(name)) return unknown_field(name, err);
        if (out->count == CLI_FIELDS_MOST) {
            sfti_fail(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET, "expected at most %d fields",
                      CLI_FIELDS_MOST);
            if (err) err->hint = NULL;
            return SFT_BAD_ARGUMENT;
        }
        out->names[out->count++] = name;
        if (!list[len]) return SFT_OK;
        list += len + 1;
    }
}

/* ── Nodes ── */

/* A key of `metadata` may hold dots: the longest member that fits wins. */
static const cli_node *step(const cli_node *node, sft_span *path) {
    for (size_t len = path->len; len > 0; len--) {
        if (len < path->len && path->data[len] != '.') continue;
        const cli_node *one = cli_doc_member(node, (sft_span){ path->data, len });
        if (!one) continue;
        size_t used = len < path->len ? len + 1 : len;
        path->data += used;
        path->len -= used;
        return one;
    }
    return NULL;
}

typedef bool (*node_fn)(void *ctx, const cli_node *node);

static bool each_leaf(const cli_node *node, node_fn take, void *ctx) {
    return node->type == SFTI_JSON_NULL || take(ctx, node);
}

/* Nodes at a path. One array on the way is entered: the path goes on in every element. */
static void each_node(const cli_node *node, sft_span path, node_fn take, void *ctx) {
    while (node && path.len > 0 && node->type == SFTI_JSON_OBJECT) node = step(node, &path);
    if (!node) return;
    if (path.len == 0) {
        each_leaf(node, take, ctx);
        return;
    }
    if (node->type != SFTI_JSON_ARRAY) return;
    for (const cli_node *one = node->first; one; one = one->next) {
        sft_span rest = path;
        const cli_node *inner = one;
        while (inner && rest.len > 0 && inner->type == SFTI_JSON_OBJECT)
            inner = step(inner, &rest);
        if (inner && rest.len == 0 && !each_leaf(inner, take, ctx)) return;
    }
}

static void each_named(const cli_node *root, sft_span name, node_fn take, void *ctx) {
    const char *path = alias_path(name);
    const cli_node *model = cli_doc_get(root, "model");
    if (path) {
        each_node(root, sft_span_cstr(path), take, ctx);
    } else if (model && is_fact(name)) {
        each_node(model, name, take, ctx);
    } else {
        each_node(root, name, take, ctx);
    }
}

/* ── Values ── */

typedef struct value_take {
    cli_value_fn take;
    void *ctx;
} value_take;

/* What an object in a list is called by. */
static const cli_node *spoken(const cli_node *node) {
    static const char *const keys[] = { "value", "text", "tag", "url", "path", "positive",
                                        "field", "key", "part", "name", "folder", "algo" };
    if (node->type != SFTI_JSON_OBJECT) return node;
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const cli_node *found = cli_doc_get(node, keys[i]);
        if (found && found->type != SFTI_JSON_NULL) return found;
    }
    return node;
}

static bool take_values(void *ctx, const cli_node *node) {
    const value_take *to = ctx;
    const cli_node *value = cli_doc_get(node, "value");
    if (value) node = value;
    if (node->type != SFTI_JSON_ARRAY)
        return node->type == SFTI_JSON_NULL || to->take(to->ctx, node->text);
    for (node = node->first; node; node = node->next) {
        const cli_node *one = spoken(node);
        if (one->type != SFTI_JSON_NULL && !to->take(to->ctx, one->text)) return false;
    }
    return true;
}

void cli_field_values(const cli_node *root, sft_span name, cli_value_fn take, void *ctx) {
    value_take to = { take, ctx };
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

size_t cli_fields_line(cli_out *out, const cli_node *root, const cli_fields *fields,
                       bool csv_safe) {
    size_t known = 0;
    for (size_t i = 0; i < fields->count; i++) {
        bool prompt = sft_span_equal(fields->names[i], sft_span_cstr("prompt"));
        line_take line = { out, prompt ? ", " : " | ", 0, csv_safe };
        if (i) cli_text(out, "\t");
        cli_field_values(root, fields->names[i], put_value, &line);
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

static bool keep_node(void *ctx, const cli_node *node) {
    size_t *known = ctx;
    cli_doc_keep((cli_node *)node);
    *known += 1;
    return true;
}

size_t cli_fields_keep(cli_node *root, const cli_fields *fields) {
    static const char *const always[] = { "schema", "command", "path", "path_bytes", "ok",
                                          "error" };
    size_t known = 0;
    for (size_t i = 0; i < sizeof always / sizeof *always; i++) {
        const cli_node *node = cli_doc_get(root, always[i]);
        if (node) cli_doc_keep((cli_node *)node);
    }
    for (size_t i = 0; i < fields->count; i++)
        each_named(root, fields->names[i], keep_node, &known);
    return known;
}
