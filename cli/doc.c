#include "doc.h"

#include <string.h>

static cli_node *add_node(cli_node *parent, sft_span key, const sfti_json *json,
                          sfti_arena *arena) {
    cli_node *node = sfti_arena_take(arena, sizeof *node);
    if (!node) return NULL;
    *node = (cli_node){ parent, NULL, NULL, NULL, json->type, key, json->text, CLI_DROP };
    if (json->type == SFTI_JSON_STRING) node->text = sfti_json_string(json, arena);
    if (!node->text.data) return NULL;
    if (!parent) return node;
    if (parent->last) parent->last->next = node;
    else parent->first = node;
    parent->last = node;
    return node;
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
            if (json.type == SFTI_JSON_OBJECT || json.type == SFTI_JSON_ARRAY) at = node;
        }
        }
    }
    return root;
}

static const cli_node *member(const cli_node *node, sft_span key) {
    if (!node || node->type != SFTI_JSON_OBJECT) return NULL;
    for (node = node->first; node; node = node->next) {
        if (sft_span_equal(node->key, key)) return node;
    }
    return NULL;
}

const cli_node *cli_doc_get(const cli_node *node, const char *key) {
    return member(node, sft_span_cstr(key));
}

const cli_node *cli_doc_at(const cli_node *node, const char *path) {
    while (node && *path) {
        size_t len = strcspn(path, ".");
        node = member(node, (sft_span){ path, len });
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
