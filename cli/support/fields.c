/* Values of fields out of trees of facts: as lines, and as JSON. Tests: tests/cli/info. */
#include "support/fields.h"

#include <stdlib.h>
#include <string.h>

#define LISTS_MOST 16

const char cli_default_columns[] =
    "path,kind,architecture,base_model,name,trigger_words,rank,civitai.version_id,bytes,family,"
    "variant,prediction_type,quantization,base_checkpoint,adapter.type,version_name,author,license,"
    "date,parameters,precision,conflicts";

/* ── Names ── */

bool cli_field_is_metadata(sft_span name) {
    static const char word[] = "metadata";
    size_t len = sizeof word - 1;
    return name.len >= len && memcmp(name.data, word, len) == 0;
}

sft_code cli_field_unknown(sft_span name, sft_error *err) {
    sfti_guess guess;
    return cli_usage_error(
        err, "expected a field such as name or training.epoch, found \"%.*s\"%s", (int)name.len,
        name.data, cli_field_guess(&guess, name));
}

sft_code cli_fields_parse(const char *list, cli_fields *out, sft_error *err) {
    cli_field_place place;
    out->count = 0;
    for (;;) {
        size_t len = strcspn(list, ",");
        sft_span name = { list, len };
        if (!cli_field_place_of(name, &place)) return cli_field_unknown(name, err);
        if (out->count == CLI_FIELDS_MOST) {
            return cli_usage_error(err, "expected at most %d fields", CLI_FIELDS_MOST);
        }
        out->names[out->count++] = name;
        if (!list[len]) return SFT_OK;
        list += len + 1;
    }
}

/* ── Nodes ── */

/* The item of a list that the path's first part counts. */
static const sft_node *item_at(const sft_node *list, sft_span *path) {
    const sft_node *one = list->first;
    size_t used = 0;
    uint64_t index = 0;
    for (; used < path->len && path->data[used] != '.'; used++)
        if (index <= UINT32_MAX) index = index * 10 + (uint64_t)(path->data[used] - '0');
    for (; one && index > 0; index--) one = one->next;
    if (used < path->len) used++;
    path->data += used;
    path->len -= used;
    return one;
}

/* A key of `metadata` may hold dots: the longest member that fits wins. */
static const sft_node *member_at(const sft_node *node, sft_span *path) {
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

/* Nodes at a path. Lists on the way are entered: the path goes on in every item. Lists nested
 * deeper than LISTS_MOST, which only a merge recipe can have, are not. */
static void each_node(const sft_node *node, sft_span path, node_fn take, void *ctx) {
    struct { const sft_node *next; sft_span rest; } lists[LISTS_MOST];
    size_t depth = 0;
    for (;;) {
        /* Along keys and indices to the end of the path, or to a list that is to be entered. */
        bool enters = false;
        while (node && path.len > 0 && !enters) {
            size_t digits = 0;
            while (digits < path.len && path.data[digits] >= '0' && path.data[digits] <= '9')
                digits++;
            bool is_index = digits > 0 && (digits == path.len || path.data[digits] == '.');
            if (node->type == SFT_NODE_OBJECT) node = member_at(node, &path);
            else if (node->type != SFT_NODE_LIST) node = NULL;
            else if (is_index) node = item_at(node, &path);
            else enters = true;
        }
        if (node && path.len > 0) {
            if (depth < LISTS_MOST) {
                lists[depth].next = node->first;
                lists[depth++].rest = path;
            }
        } else if (node && node->type != SFT_NODE_NULL && !take(ctx, node)) {
            return;
        }
        while (depth > 0 && !lists[depth - 1].next) depth--;
        if (depth == 0) return;
        node = lists[depth - 1].next;
        path = lists[depth - 1].rest;
        lists[depth - 1].next = node->next;
    }
}

static void each_named(const sft_node *root, sft_span name, node_fn take, void *ctx) {
    cli_field_place place;
    if (!cli_field_place_of(name, &place)) return;
    if (place.in_model) root = sft_node_get(root, "model");
    each_node(root, place.path, take, ctx);
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

/* Escaped, but these characters as a backslash and a letter; letters NULL: as they are. */
static void put_marked(cli_out *out, sft_span text, const char *marks, const char *letters) {
    while (text.len) {
        size_t len = 0;
        while (len < text.len && !(text.data[len] && strchr(marks, text.data[len]))) len++;
        cli_escaped(out, (sft_span){ text.data, len });
        if (len < text.len) {
            if (letters) cli_text(out, "\\");
            const char *at = strchr(marks, text.data[len]);
            cli_put(out, letters ? letters + (at - marks) : at, 1);
            len++;
        }
        text.data += len;
        text.len -= len;
    }
}

void cli_field_text(cli_out *out, sft_span text) {
    put_marked(out, text, "\t\n\r\\", "tnr\\");
}

void cli_pasted(cli_out *out, sft_span text) { put_marked(out, text, "\\", NULL); }

typedef struct line_take {
    cli_out *out;
    const char *between;
    size_t count;
    bool csv_safe, is_pasted;
} line_take;

static bool put_value(void *ctx, sft_span text) {
    line_take *line = ctx;
    if (line->count++) cli_text(line->out, line->between);
    else if (line->csv_safe) cli_cell_guard(line->out, text);
    if (line->is_pasted) cli_pasted(line->out, text);
    else cli_field_text(line->out, text);
    return true;
}

size_t cli_fields_line(cli *c, const sft_node *root, const cli_fields *fields,
                       bool csv_safe) {
    size_t known = 0;
    cli_out *out = &c->out;
    for (size_t i = 0; i < fields->count; i++) {
        sft_span name = fields->names[i];
        bool prompt = cli_is(name, "prompt");
        bool pasted = prompt || cli_is(name, "a1111") || cli_is(name, "comfy");
        line_take line = { out, prompt ? ", " : " | ", 0, csv_safe,
                           pasted && c->set.format != CLI_TSV };
        if (i) cli_text(out, "\t");
        cli_field_values(c, root, name, put_value, &line);
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
