#include "catalog/more.h"

#include "catalog/text.h"
#include "support/files.h"
#include "support/nodes.h"
#include "support/words.h"

#include <stdio.h>
#include <string.h>

#define DEPTH_MOST 8
#define KEYS_MOST 32
#define OTHERS_MOST 3
#define OTHER_TEXT 96

/* A member of the result object, and how much of it is kept. */
typedef struct more_section {
    const char *key;
    uint16_t items, bytes; /* of each list and object in it; of each text */
    const char *without;   /* members that the page does not need, with blanks around each */
} more_section;

static const more_section sections[] = {
    { "file", 24, 64, " header_bytes data_offset data_bytes alignment unaligned shards " },
    { "model", 48, 512, " parameters_by_dtype " },
    { "adapter", 24, 96, "" },
    { "trigger_words", 32, 512, " words others " },
    { "prompts", 4, 1024, "" },
    { "frequent_tags", 24, 64, "" },
    { "example_prompts", 16, 512, "" },
    { "civitai", 16, 200, " url " },
    { "links", 4, 200, "" },
    { "training", 24, 200, "" },
    { "merge", 12, 200, "" },
    { "import", 24, 120, "" },
    { "hashes", 12, 128, " lookup_url " },
    { "sidecars", 8, 160, "" },
    { "privacy", 8, 80, "" },
    { "conflicts", 6, 120, "" },
    { "dataset", 24, 120, "" },
};

/* Longer texts and shorter lists than their section has. */
static const more_section members[] = {
    { "description", 1, MORE_TEXT, "" },
    { "version_description", 1, 400, "" },
    { "evidence", 2, 120, "" },
    { "targets", 8, 48, "" },
    { "blocks", 8, 48, "" },
    { "buckets", 6, 32, "" },
    { "example_prompts", 2, 512, "" },
};

/* ── What is there, and what is cut ── */

static bool is_container(const sft_node *node) {
    return node->type == SFT_NODE_LIST || node->type == SFT_NODE_OBJECT;
}

/* Whether anything but null and empty texts is in it. */
static bool has_content(const sft_node *top) {
    for (const sft_node *node = top;;) {
        bool empty = is_container(node) || node->type == SFT_NODE_NULL;
        if (!empty && (node->type != SFT_NODE_TEXT || node->text.len)) return true;
        if (node->first) {
            node = node->first;
            continue;
        }
        while (node != top && !node->next) node = node->parent;
        if (node == top) return false;
        node = node->next;
    }
}

static bool is_without(const more_section *section, sft_span key) {
    for (const char *at = section->without; key.len && (at = strstr(at, " ")) && at[1];) {
        at++;
        if (strncmp(at, key.data, key.len) == 0 && at[key.len] == ' ') return true;
    }
    return false;
}

static void note_cut(catalog_more *more, sft_span key) {
    for (size_t i = 0; i < more->cut_count; i++)
        if (cli_is(key, more->cuts[i])) return;
    const char *copy = more->cut_count < MORE_CUTS && key.len
                     ? sfti_arena_copy(&more->arena, key.data, key.len) : NULL;
    if (copy) more->cuts[more->cut_count++] = copy;
}

static void put_text(catalog_more *more, sft_span key, sft_span text, size_t most) {
    sft_span kept = text_cut(text, most < MORE_TEXT ? most : MORE_TEXT, more->buffer);
    if (kept.len != text.len || kept.data != text.data) note_cut(more, key);
    sfti_json_span(&more->w, kept);
}

static void put_source(catalog_more *more, sft_span source) {
    static const char prefix[] = "sidecar:";
    size_t head = sizeof prefix - 1, stem = more->stem.len;
    uint32_t number;
    if (stem && source.len > head + stem && memcmp(source.data, prefix, head) == 0
        && memcmp(source.data + head, more->stem.data, stem) == 0
        && source.data[head + stem] == '.' && source.len - stem < MORE_TEXT) {
        memcpy(more->buffer, prefix, head);
        more->buffer[head] = '*';
        memcpy(more->buffer + head + 1, source.data + head + stem, source.len - head - stem);
        source = (sft_span){ more->buffer, source.len - stem + 1 };
    }
    source = text_cut(source, 160, more->buffer);
    if (!dict_put(&more->sources, source, (sft_span){ "", 0 }, &number) && !more->w.code)
        more->w.code = sfti_fail_memory(more->err, source.len);
    sfti_json_uint(&more->w, number == DICT_NONE ? 0 : number);
}

static void put_scalar(catalog_more *more, const sft_node *node, sft_span key, size_t bytes) {
    if (node->type == SFT_NODE_TEXT) put_text(more, key, node->text, bytes);
    else if (node->type == SFT_NODE_NULL) sfti_json_null(&more->w);
    else sfti_json_raw(&more->w, node->text);
}

/* ── Trees ── */

/* All of a value within its bounds; name is what it is called where it is cut. */
static void put_tree(catalog_more *more, const sft_node *top, const more_section *section,
                     sft_span name, size_t items, size_t bytes) {
    size_t count[DEPTH_MOST] = { 0 }, depth = 0;
    for (const sft_node *node = top;;) {
        bool wanted = node == top || (has_content(node) && !is_without(section, node->key));
        bool fits = depth == 0 || count[depth] < items;
        fits = fits && !(is_container(node) && depth + 1 == DEPTH_MOST);
        if (wanted && !fits) note_cut(more, name);
        if (wanted && fits) {
            count[depth]++;
            if (node != top && node->parent->type == SFT_NODE_OBJECT)
                sfti_json_key_span(&more->w, node->key);
            if (is_container(node)) {
                sfti_json_open(&more->w, node->type == SFT_NODE_OBJECT ? '{' : '[');
                if (node->first) {
                    count[++depth] = 0;
                    node = node->first;
                    continue;
                }
                sfti_json_close(&more->w, node->type == SFT_NODE_OBJECT ? '}' : ']');
            } else if (cli_is(node->key, "source") && node->type == SFT_NODE_TEXT) {
                put_source(more, node->text);
            } else {
                put_scalar(more, node, name, bytes);
            }
        }
        while (node != top && !node->next) {
            node = node->parent;
            depth--;
            sfti_json_close(&more->w, node->type == SFT_NODE_OBJECT ? '}' : ']');
        }
        if (node == top) return;
        node = node->next;
    }
}

static bool is_fact(const sft_node *node) {
    return node->type == SFT_NODE_OBJECT && sft_node_get(node, "value")
        && sft_node_get(node, "trust");
}

static void put_candidate(catalog_more *more, const sft_node *fact, const more_section *section,
                          sft_span name, size_t items, size_t bytes) {
    put_tree(more, sft_node_get(fact, "value"), section, name, items, bytes);
    put_source(more, sft_node_text(fact, "source"));
    sfti_json_raw(&more->w, sft_node_text(fact, "trust"));
}

/* CompactFact. */
static void put_fact(catalog_more *more, const sft_node *fact, const more_section *section,
                     sft_span name, size_t items, size_t bytes) {
    const sft_node *other = cli_first(fact, "others");
    sfti_json_open(&more->w, '[');
    put_candidate(more, fact, section, name, items, bytes);
    if (other) sfti_json_open(&more->w, '[');
    for (size_t i = 0; other && i < OTHERS_MOST; other = other->next, i++) {
        sfti_json_open(&more->w, '[');
        put_candidate(more, other, section, (sft_span){ "", 0 }, 8, OTHER_TEXT);
        sfti_json_close(&more->w, ']');
        if (!other->next || i + 1 == OTHERS_MOST) sfti_json_close(&more->w, ']');
    }
    sfti_json_close(&more->w, ']');
}

/* The bounds of a member: those of its section, or its own. */
static void bounds_of(const more_section *section, sft_span key, size_t *items, size_t *bytes) {
    *items = section->items;
    *bytes = section->bytes;
    for (size_t i = 0; i < sizeof members / sizeof *members; i++) {
        if (!cli_is(key, members[i].key)) continue;
        *items = members[i].items;
        *bytes = members[i].bytes;
    }
}

static void put_member(catalog_more *more, const sft_node *node, const more_section *section) {
    size_t items, bytes;
    bounds_of(section, node->key, &items, &bytes);
    sfti_json_key_span(&more->w, node->key);
    if (is_fact(node)) put_fact(more, node, section, node->key, items, bytes);
    else put_tree(more, node, section, node->key, items, bytes);
}

static void put_section(catalog_more *more, const sft_node *root, const more_section *section) {
    const sft_node *node = sft_node_get(root, section->key);
    if (!node || !has_content(node)) return;
    if (node->type != SFT_NODE_OBJECT) {
        put_member(more, node, section);
        return;
    }
    sfti_json_key(&more->w, section->key);
    sfti_json_open(&more->w, '{');
    for (const sft_node *one = node->first; one; one = one->next)
        if (has_content(one) && !is_without(section, one->key)) put_member(more, one, section);
    sfti_json_close(&more->w, '}');
}

/* ── One model ── */

static void put_error(catalog_more *more, const sft_error *err) {
    sfti_json_writer *w = &more->w;
    const char *hint = sft_hint_text(err->hint);
    sfti_json_key(w, "error");
    sfti_json_open(w, '{');
    sfti_json_put_cstr(w, "code", sft_code_describe(err->code)->name);
    sfti_json_put_cstr(w, "message", err->message);
    if (hint) sfti_json_put_cstr(w, "hint", hint);
    sfti_json_close(w, '}');
}

static void put_keys(catalog_more *more, const cli_model *model) {
    const sft_file *file = model->set ? sft_set_shard_at(model->set, 0) : NULL;
    size_t count = file ? sft_file_metadata_count(file) : 0;
    if (count == 0) return;
    sfti_json_key(&more->w, "metadata_keys");
    sfti_json_open(&more->w, '[');
    for (size_t i = 0; i < count && i < KEYS_MOST; i++)
        put_text(more, sft_span_cstr("metadata_keys"), sft_file_metadata_at(file, i).key, 64);
    sfti_json_close(&more->w, ']');
    if (count > KEYS_MOST) note_cut(more, sft_span_cstr("metadata_keys"));
}

static void put_pictures(catalog_more *more, const catalog_picture *pictures, size_t count) {
    if (count < 2) return; /* rows have the first */
    sfti_json_key(&more->w, "pictures");
    sfti_json_open(&more->w, '[');
    for (size_t i = 0; i < count; i++) picture_json(&more->w, &pictures[i]);
    sfti_json_close(&more->w, ']');
}

static void put_cuts(catalog_more *more) {
    if (more->cut_count == 0) return;
    sfti_json_key(&more->w, "cut");
    sfti_json_open(&more->w, '[');
    for (size_t i = 0; i < more->cut_count; i++) sfti_json_cstr(&more->w, more->cuts[i]);
    sfti_json_close(&more->w, ']');
}

static void put_facts(catalog_more *more, const cli_model *model) {
    const sft_node *root = sft_tree_root(model->tree);
    size_t files = model->set ? sft_set_shard_count(model->set) : model->count;
    for (size_t i = 0; i < sizeof sections / sizeof *sections; i++)
        put_section(more, root, &sections[i]);
    put_keys(more, model);
    if (files > 1) sfti_json_put_uint(&more->w, "files", files);
}

static sft_code end_block(catalog_more *more) {
    char id[32];
    sfti_json_close(&more->w, ']');
    sft_code code = sfti_json_done(&more->w);
    if (code) return code;
    snprintf(id, sizeof id, "more-%zu", more->blocks);
    sfti_json_writer *w = html_block_begin(more->page, id);
    sfti_json_open(w, '{');
    sfti_json_key(w, "sources");
    sfti_json_open(w, '[');
    for (size_t i = 0; i < more->sources.count; i++)
        sfti_json_span(w, more->sources.entries[i].text);
    sfti_json_close(w, ']');
    sfti_json_key(w, "models");
    sfti_json_raw(w, (sft_span){ more->text.data, more->text.len });
    sfti_json_close(w, '}');
    html_block_end(more->page);
    return more->page->code;
}

static void begin_block(catalog_more *more) {
    sft_allocator alloc = more->arena.alloc;
    dict_free(&more->sources);
    sfti_arena_free(&more->arena);
    more->arena = (sfti_arena){ .alloc = alloc };
    dict_begin(&more->sources, &more->arena);
    more->text.len = 0;
    more->count = 0;
    more->sink = sft_sink_memory(&more->text);
    sfti_json_write(&more->w, &more->sink, 0, more->err);
    sfti_json_open(&more->w, '[');
}

void more_begin(catalog_more *more, html_page *page, const sft_allocator *alloc,
                sft_error *err) {
    memset(more, 0, sizeof *more);
    more->page = page;
    more->err = err;
    more->arena.alloc = *alloc;
    more->text.alloc = *alloc;
    dict_begin(&more->sources, &more->arena);
    begin_block(more);
}

sft_code more_add(catalog_more *more, const cli_model *model, sft_span path,
                  const catalog_picture *pictures, size_t count) {
    more->stem = text_stem(cli_name_of(model->path));
    more->cut_count = 0;
    sfti_json_open(&more->w, '{');
    sfti_json_put_text(&more->w, "path", path);
    if (model->tree && !model->err.code) put_facts(more, model);
    else put_error(more, &model->err);
    put_pictures(more, pictures, count);
    put_cuts(more);
    sfti_json_close(&more->w, '}');
    if (more->w.code || ++more->count < MORE_MODELS) return more->w.code;
    sft_code code = end_block(more);
    more->blocks++;
    begin_block(more);
    return code;
}

sft_code more_end(catalog_more *more) { return more->count ? end_block(more) : SFT_OK; }

void more_free(catalog_more *more) {
    dict_free(&more->sources);
    sfti_arena_free(&more->arena);
    sft_buffer_free(&more->text);
}
