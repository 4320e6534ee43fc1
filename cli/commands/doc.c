#include "commands/doc.h"

#include <string.h>

static cli_node *add_node(cli_node *parent, sft_span key, const sfti_json *json,
                          sfti_arena *arena) {
    cli_node *node = sfti_arena_take(arena, sizeof *node);
    if (!node) return NULL;
    *node = (cli_node){ .parent = parent, .type = json->type, .key = key, .text = json->text,
                        .at = json->start };
    if (json->type == SFTI_JSON_STRING) node->text = sfti_json_string(json, arena);
    if (!node->text.data) return NULL;
    if (!parent) return node;
    if (!parent->last || parent->last->at < node->at) {
        if (parent->last) parent->last->next = node;
        else parent->first = node;
        parent->last = node;
        return node;
    }
    cli_node **link = &parent->first; /* read later than what stands behind it */
    while ((*link)->at < node->at) link = &(*link)->next;
    node->next = *link;
    *link = node;
    return node;
}

/* What a model's header holds as it likes. */
static bool is_metadata(const cli_node *node, const cli_node *root) {
    return node->parent == root && node->type == SFTI_JSON_OBJECT
           && (sft_span_equal(node->key, sft_span_cstr("metadata"))
               || sft_span_equal(node->key, sft_span_cstr("metadata_cut")));
}

static void end_container(cli_node *node, const sfti_json *json) {
    node->text.len = (size_t)(json->at - node->text.data);
}

cli_node *cli_doc_parse(sft_span text, sfti_arena *arena) {
    sfti_json json;
    sft_span key = { "", 0 };
    sfti_json_begin(&json, text.data, text.len);
    sfti_json_next(&json);
    cli_node *root = add_node(NULL, key, &json, arena), *at = root;
    if (!root || json.type != SFTI_JSON_OBJECT) return NULL;
    while (at) {
        switch (sfti_json_next(&json)) {
        case SFTI_JSON_ERROR:
        case SFTI_JSON_END: return NULL;
        case SFTI_JSON_KEY:
            key = sfti_json_string(&json, arena);
            if (!key.data) return NULL;
            break;
        case SFTI_JSON_OBJECT_END:
        case SFTI_JSON_ARRAY_END:
            end_container(at, &json);
            at = at->parent;
            break;
        default: {
            cli_node *node = add_node(at, key, &json, arena);
            if (!node) return NULL;
            if (is_metadata(node, root)) {
                node->unread = arena;
                if (sfti_json_skip(&json) == SFTI_JSON_ERROR) return NULL;
                end_container(node, &json);
            } else if (json.type == SFTI_JSON_OBJECT || json.type == SFTI_JSON_ARRAY) at = node;
        }
        }
    }
    return root;
}

/* The first member of that key in the text, read now; NULL too when memory ran out. */
static const cli_node *read_member(cli_node *node, sft_span key) {
    sfti_arena keys = { .alloc = node->unread->alloc };
    const cli_node *found = NULL;
    sfti_json json;
    sfti_json_begin(&json, node->text.data, node->text.len);
    sfti_json_next(&json);
    while (!found && sfti_json_next(&json) == SFTI_JSON_KEY) {
        sft_span name = sfti_json_string(&json, &keys);
        bool same = name.data && sft_span_equal(name, key);
        if (same) name = sfti_json_string(&json, node->unread);
        if (!same) (void)sfti_json_skip(&json);
        else if (name.data && sfti_json_next(&json) != SFTI_JSON_ERROR)
            found = add_node(node, name, &json, node->unread);
        if (keys.last) sfti_arena_free(&keys);
        if (same) break;
    }
    return found;
}

const cli_node *cli_doc_member(const cli_node *node, sft_span key) {
    if (!node || node->type != SFTI_JSON_OBJECT) return NULL;
    for (const cli_node *one = node->first; one; one = one->next) {
        if (sft_span_equal(one->key, key)) return one;
    }
    return node->unread ? read_member((cli_node *)(uintptr_t)node, key) : NULL;
}

static size_t count_unread(const cli_node *node) {
    sfti_json json;
    size_t count = 0;
    sfti_json_begin(&json, node->text.data, node->text.len);
    sfti_json_next(&json);
    for (; sfti_json_next(&json) == SFTI_JSON_KEY; count++) (void)sfti_json_skip(&json);
    return count;
}

const cli_node *cli_doc_get(const cli_node *node, const char *key) {
    return cli_doc_member(node, sft_span_cstr(key));
}

const cli_node *cli_doc_at(const cli_node *node, const char *path) {
    while (node && *path) {
        size_t len = strcspn(path, ".");
        node = cli_doc_member(node, (sft_span){ path, len });
        path += len + (path[len] == '.');
    }
    return node;
}

sft_span cli_doc_text(const cli_node *node, const char *path) {
    sft_span none = { "", 0 };
    node = cli_doc_at(node, path);
    const cli_node *value = cli_doc_get(node, "value");
    if (value) node = value;
    if (!node || node->type == SFTI_JSON_NULL) return none;
    return node->type == SFTI_JSON_OBJECT || node->type == SFTI_JSON_ARRAY ? none : node->text;
}

bool cli_doc_uint(const cli_node *node, const char *path, uint64_t *out) {
    sft_span text = cli_doc_text(node, path);
    *out = 0;
    if (text.len == 0 || text.len > 19) return false;
    for (size_t i = 0; i < text.len; i++) {
        if (text.data[i] < '0' || text.data[i] > '9') return false;
        *out = *out * 10 + (uint64_t)(text.data[i] - '0');
    }
    return true;
}

size_t cli_doc_count(const cli_node *node) {
    size_t count = 0;
    if (node && node->unread) return count_unread(node);
    for (node = node ? node->first : NULL; node; node = node->next) count++;
    return count;
}

void cli_doc_keep(cli_node *node) {
    node->keep = CLI_KEEP_ALL;
    for (node = node->parent; node && node->keep == CLI_DROP; node = node->parent) {
        node->keep = CLI_KEEP_SOME;
    }
}

static void write_begin(const cli_node *node, sfti_json_writer *w) {
    if (node->parent && node->parent->type == SFTI_JSON_OBJECT) sfti_json_key_span(w, node->key);
    if (node->keep != CLI_KEEP_SOME && node->type == SFTI_JSON_STRING) {
        sfti_json_span(w, node->text);
    } else if (node->keep != CLI_KEEP_SOME) {
        sfti_json_raw(w, node->text);
    } else {
        sfti_json_open(w, node->type == SFTI_JSON_OBJECT ? '{' : '[');
    }
}

/* Without recursion: down into what is kept in part, else on to the next, else up. */
void cli_doc_write(const cli_node *root, sfti_json_writer *w) {
    const cli_node *node = root;
    while (node) {
        bool down = node->keep == CLI_KEEP_SOME && node->first;
        if (node->keep != CLI_DROP) write_begin(node, w);
        if (down) {
            node = node->first;
            continue;
        }
        while (node != root && !node->next) {
            node = node->parent;
            sfti_json_close(w, node->type == SFTI_JSON_OBJECT ? '}' : ']');
        }
        node = node == root ? NULL : node->next;
    }
}
