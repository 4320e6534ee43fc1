/* Details of models, bounded: members of the result object, shorter where they are many. */
#include "catalog/catalog.h"

#include "catalog/places.h"
#include "os/path.h"
#include "support/files.h"
#include "support/hints.h"
#include "support/models.h"
#include "support/words.h"

#include <stdio.h>
#include <string.h>

/* Bytes that a model may take in the mean, its row included: what some leave, others use. A model
 * that would take more is written with shorter texts and lists, LEVELS - 1 times at most. */
#define MEAN_BYTES 1800
#define FIRST_BYTES 65536 /* so that small catalogues have everything */
#define LEVELS 4

#define DEPTH_MOST 8
#define MEMBERS_MOST 48 /* of an object */
#define KEY_MOST 64     /* bytes; longer ones are left out with their values */
#define VALUES_MOST 512 /* of a member of a section, what is in it included */
#define ITEMS_LEAST 3   /* of a list, of a text, at the last level */
#define BYTES_LEAST 64
#define KEYS_MOST 32
#define OTHERS_MOST 3
#define OTHER_BYTES 96
#define SOURCE_BYTES 160

enum {
    WHOLE = 1,  /* as long at every level: what is copied, and digests */
    NAMES = 2,  /* of paths only the last part */
    SHARED = 4  /* many models have the same */
};

/* A member of the result object, and how much of it is kept. */
typedef struct detail_section {
    const char *key;
    uint16_t items, bytes; /* of each list in it; of each text */
    int how;
    const char *without;   /* members that the page does not need, a blank around each */
    const char *minor;     /* members that go first */
} detail_section;

static const detail_section sections[] = {
    { "file", 24, 64, WHOLE, " header_bytes data_offset data_bytes alignment unaligned shards ",
      "" },
    { "model", 32, 512, 0, "", " evidence notes components version_description " },
    { "adapter", 12, 96, 0, "", " components targets blocks " },
    { "trigger_words", 32, 512, WHOLE, " words others ", " folder group coverage " },
    { "prompts", 4, 1024, WHOLE, "", "" },
    { "frequent_tags", 24, 80, 0, "", " coverage " },
    { "example_prompts", 4, 512, 0, "", " negative seed " },
    { "civitai", 8, 200, WHOLE, " url ", " air published_at " },
    { "links", 4, 200, WHOLE, "", "" },
    { "training", 8, 200, 0, "",
      " tool_version session_id buckets network_args vae comment datasets " },
    { "merge", 12, 200, 0, "", "" },
    { "import", 12, 120, 0, "", "" },
    { "hashes", 32, 128, WHOLE, " lookup_url ", "" },
    { "sidecars", 8, 160, NAMES, "", "" },
    { "privacy", 8, 80, SHARED, "", "" },
    { "conflicts", 6, 120, 0, "", "" },
    { "dataset", 24, 120, 0, "", "" },
};
#define SECTIONS (sizeof sections / sizeof *sections)

static const sft_span no_text = { "", 0 };

/* ── What is kept ── */

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

static bool is_word_of(const char *words, sft_span key) {
    if (!*words) return false;
    for (const char *at = words; key.len && (at = strchr(at, ' ')) && *++at;)
        if (strncmp(at, key.data, key.len) == 0 && at[key.len] == ' ') return true;
    return false;
}

static void note_cut(catalog_details *out, sft_span key) {
    for (size_t i = 0; i < out->cut_count; i++)
        if (sft_span_equal(key, out->cuts[i])) return;
    if (key.len && out->cut_count < DETAILS_CUTS) out->cuts[out->cut_count++] = key;
}

/* How much of a value is kept. */
typedef struct detail_bounds {
    const detail_section *section;
    sft_span name; /* what it is called when it is cut */
    size_t items, bytes, values;
} detail_bounds;

static detail_bounds bounds_of(const catalog_details *out, const detail_section *section,
                               sft_span name) {
    detail_bounds bounds = { section, name, section->items, section->bytes, VALUES_MOST };
    if (cli_is(name, "description")) bounds.bytes = DETAILS_TEXT;
    if (!(section->how & WHOLE)) {
        bounds.items >>= out->level;
        bounds.bytes >>= out->level;
        bounds.values >>= out->level;
    }
    if (bounds.items < ITEMS_LEAST) bounds.items = ITEMS_LEAST;
    if (bounds.bytes < BYTES_LEAST) bounds.bytes = BYTES_LEAST;
    return bounds;
}

static bool is_fact(const sft_node *node) {
    return node->type == SFT_NODE_OBJECT && sft_node_get(node, "value")
        && sft_node_get(node, "trust");
}

/* Whether there are few enough values in it, of lists those that are kept. JSON of the file may be
 * of any shape, with 48 members in 48 in 48. */
static bool has_few(const sft_node *top, const detail_bounds *bounds) {
    size_t before[DEPTH_MOST] = { 0 }, depth = 0, left = bounds->values;
    for (const sft_node *node = top;;) {
        bool is_item = node != top && node->parent->type == SFT_NODE_LIST;
        if (!is_item || before[depth]++ < bounds->items) {
            if (left-- == 0) return false;
            if (node->first && depth + 1 < DEPTH_MOST) {
                before[++depth] = 0;
                node = node->first;
                continue;
            }
        }
        for (; node != top && !node->next; node = node->parent) depth--;
        if (node == top) return true;
        node = node->next;
    }
}

/* In an object or list; `before` siblings are kept. */
static bool is_kept(catalog_details *out, const sft_node *node, const detail_bounds *bounds,
                    size_t before, size_t depth) {
    bool is_member = node->parent->type == SFT_NODE_OBJECT;
    /* A word or tag that is empty: an item of a list, whose first member is its text. */
    const sft_node *first = node->type == SFT_NODE_OBJECT && !is_member ? node->first : NULL;
    if (!has_content(node)) return false;
    if (first && !has_content(first)
        && (cli_is(first->key, "text") || cli_is(first->key, "tag")))
        return false;
    if (is_member && is_word_of(bounds->section->without, node->key)) return false;
    bool minor = is_member && out->level > 1 && is_word_of(bounds->section->minor, node->key);
    bool fits = before < (is_member ? MEMBERS_MOST : bounds->items) && !minor
             && !(is_member && node->key.len > KEY_MOST)
             && !(is_container(node) && depth + 1 >= DEPTH_MOST)
             && (depth > 1 || is_fact(node) || has_few(node, bounds));
    if (!fits) note_cut(out, bounds->name);
    return fits;
}

/* ── Values ── */

static void put_text(catalog_details *out, sft_span text, size_t most, sft_span name) {
    sft_span kept = text_cut(text, most < DETAILS_TEXT ? most : DETAILS_TEXT, out->buffer);
    if (kept.data != text.data) note_cut(out, name);
    pack_text(&out->pack, kept);
}

/* With "*" instead of the model's name. */
static void put_source(catalog_details *out, sft_span source) {
    static const char prefix[] = "sidecar:";
    size_t head = sizeof prefix - 1, stem = out->stem.len;
    uint32_t number;
    if (stem && source.len > head + stem && memcmp(source.data, prefix, head) == 0
        && memcmp(source.data + head, out->stem.data, stem) == 0
        && source.data[head + stem] == '.' && source.len - stem < DETAILS_TEXT) {
        memcpy(out->buffer, prefix, head);
        out->buffer[head] = '*';
        memcpy(out->buffer + head + 1, source.data + head + stem, source.len - head - stem);
        source = (sft_span){ out->buffer, source.len - stem + 1 };
    }
    source = text_cut(source, SOURCE_BYTES, out->buffer);
    if (!source.len) source = sft_span_cstr("?");
    if (dict_put(&out->sources, source, no_text, &number)) sfti_json_uint(&out->pack.w, number);
    else if (!out->pack.w.code) out->pack.w.code = sfti_fail_memory(out->err, source.len);
}

static void put_scalar(catalog_details *out, const sft_node *node, const detail_bounds *bounds) {
    sfti_json_writer *w = &out->pack.w;
    sft_span text = node->text;
    bool is_path = (bounds->section->how & NAMES) && cli_is(node->key, "path");
    if (is_path) text = sfti_path_name(text);
    if (node->type != SFT_NODE_TEXT) sfti_json_raw(w, text);
    else if (cli_is(node->key, "source")) put_source(out, text);
    else put_text(out, text, bounds->bytes, bounds->name);
}

/* ── Objects ── */

/* Keys are collected before the values are written. */
static void begin_keys(catalog_details *out) {
    out->keys.len = 0;
    out->key_sink = sft_sink_memory(&out->keys);
    sfti_json_write(&out->key_writer, &out->key_sink, 0, out->err);
    sfti_json_open(&out->key_writer, '[');
}

static void add_key(catalog_details *out, sft_span key) { sfti_json_span(&out->key_writer, key); }

static void open_object(catalog_details *out) {
    sfti_json_close(&out->key_writer, ']');
    sft_code code = sfti_json_done(&out->key_writer);
    if (code && !out->pack.w.code) out->pack.w.code = code;
    pack_object(&out->pack, (sft_span){ out->keys.data, out->keys.len });
}

static void open_container(catalog_details *out, const sft_node *node, const detail_bounds *bounds,
                           size_t depth) {
    size_t kept = 0;
    if (node->type == SFT_NODE_LIST) {
        pack_list(&out->pack);
        return;
    }
    begin_keys(out);
    for (const sft_node *one = node->first; one; one = one->next) {
        if (!is_kept(out, one, bounds, kept, depth + 1)) continue;
        add_key(out, one->key);
        kept++;
    }
    open_object(out);
}

/* All of a value within its bounds. Without recursion: down into what is kept, else on to the
 * next, else up. */
static void put_value(catalog_details *out, const sft_node *top, const detail_bounds *bounds) {
    size_t kept[DEPTH_MOST] = { 0 }, depth = 0;
    for (const sft_node *node = top;;) {
        if (node == top || is_kept(out, node, bounds, kept[depth], depth)) {
            kept[depth]++;
            if (is_container(node)) {
                open_container(out, node, bounds, depth);
                if (node->first) {
                    kept[++depth] = 0;
                    node = node->first;
                    continue;
                }
                pack_close(&out->pack);
            } else {
                put_scalar(out, node, bounds);
            }
        }
        while (node != top && !node->next) {
            node = node->parent;
            depth--;
            pack_close(&out->pack);
        }
        if (node == top) return;
        node = node->next;
    }
}

/* ── Facts ── */

static void put_candidate(catalog_details *out, const sft_node *fact, const detail_bounds *bounds) {
    pack_list(&out->pack);
    put_value(out, sft_node_get(fact, "value"), bounds);
    put_source(out, sft_node_text(fact, "source"));
    sfti_json_raw(&out->pack.w, sft_node_text(fact, "trust"));
}

/* CompactFact. */
static void put_fact(catalog_details *out, const sft_node *fact, const detail_bounds *bounds) {
    const sft_node *other = cli_first(fact, "others");
    detail_bounds short_ones = { bounds->section, no_text, 8, OTHER_BYTES >> out->level,
                               VALUES_MOST };
    put_candidate(out, fact, bounds);
    if (other) pack_list(&out->pack);
    for (size_t i = 0; other; other = other->next, i++) {
        if (i < OTHERS_MOST >> (out->level > 1) && has_content(sft_node_get(other, "value"))) {
            put_candidate(out, other, &short_ones);
            pack_close(&out->pack);
        }
        if (!other->next) pack_close(&out->pack);
    }
    pack_close(&out->pack);
}

/* ── Sections ── */

/* Members of an object have bounds of their own, and may be facts. */
static void put_section(catalog_details *out, const sft_node *node, const detail_section *section) {
    detail_bounds bounds = bounds_of(out, section, node->key);
    size_t kept = 0;
    if (node->type != SFT_NODE_OBJECT) {
        if (section->how & SHARED) pack_shared_begin(&out->pack);
        put_value(out, node, &bounds);
        if (section->how & SHARED) pack_shared_end(&out->pack);
        return;
    }
    open_container(out, node, &bounds, 0);
    for (const sft_node *one = node->first; one; one = one->next) {
        if (!is_kept(out, one, &bounds, kept, 1)) continue;
        detail_bounds own = bounds_of(out, section, one->key);
        if (is_fact(one)) put_fact(out, one, &own);
        else put_value(out, one, &own);
        kept++;
    }
    pack_close(&out->pack);
}

static void put_metadata_keys(catalog_details *out, const sft_file *file) {
    static const char name[] = "metadata_keys";
    size_t count = sft_file_metadata_count(file), most = KEYS_MOST >> out->level;
    pack_shared_begin(&out->pack);
    pack_list(&out->pack);
    for (size_t i = 0; i < count && i < most; i++)
        put_text(out, sft_file_metadata_at(file, i).key, 64, sft_span_cstr(name));
    pack_close(&out->pack);
    pack_shared_end(&out->pack);
    if (count > most) note_cut(out, sft_span_cstr(name));
}

/* ── One model ── */

typedef struct detail_model {
    const sft_node *sections[SECTIONS]; /* NULL: none */
    const sft_file *file;               /* with metadata, or NULL */
    const sft_error *err;               /* or NULL */
    sft_span path;
    size_t files;
    const catalog_picture *pictures;
    size_t picture_count;
} detail_model;

static detail_model model_of(const cli_model *model, sft_span path,
                             const catalog_picture *pictures, size_t count) {
    detail_model found = { .path = path, .pictures = pictures, .picture_count = count };
    bool broken = !model->tree || model->err.code;
    const sft_node *root = broken ? NULL : sft_tree_root(model->tree);
    const sft_file *file = model->set ? sft_set_shard_at(model->set, 0) : NULL;
    if (broken) found.err = &model->err;
    for (size_t i = 0; root && i < SECTIONS; i++) {
        const sft_node *node = sft_node_get(root, sections[i].key);
        found.sections[i] = node && has_content(node) ? node : NULL;
    }
    if (root && file && sft_file_metadata_count(file)) found.file = file;
    found.files = model->set ? sft_set_shard_count(model->set) : model->count;
    return found;
}

static void put_model(catalog_details *out, const detail_model *model) {
    sfti_json_writer *w = pack_one(&out->pack);
    out->cut_count = 0;
    begin_keys(out);
    add_key(out, sft_span_cstr("path"));
    for (size_t i = 0; i < SECTIONS; i++)
        if (model->sections[i]) add_key(out, sft_span_cstr(sections[i].key));
    if (model->err) add_key(out, sft_span_cstr("error"));
    if (model->file) add_key(out, sft_span_cstr("metadata_keys"));
    if (model->files > 1) add_key(out, sft_span_cstr("files"));
    if (model->picture_count > 1) add_key(out, sft_span_cstr("pictures"));
    add_key(out, sft_span_cstr("cut"));
    open_object(out);
    pack_text(&out->pack, model->path);
    for (size_t i = 0; i < SECTIONS; i++)
        if (model->sections[i]) put_section(out, model->sections[i], &sections[i]);
    if (model->err) {
        const char *hint = cli_hint_text(model->err->hint);
        sfti_json_open(w, '{');
        sfti_json_put_cstr(w, "code", sft_code_describe(model->err->code)->name);
        sfti_json_put_cstr(w, "message", model->err->message);
        if (hint) sfti_json_put_cstr(w, "hint", hint);
        sfti_json_close(w, '}');
    }
    if (model->file) put_metadata_keys(out, model->file);
    if (model->files > 1) sfti_json_uint(&out->pack.w, model->files);
    if (model->picture_count > 1) {
        /* As plain objects, which are not unpacked. Rows have the first. */
        pack_list(&out->pack);
        for (size_t i = 0; i < model->picture_count; i++) picture_json(w, &model->pictures[i]);
        pack_close(&out->pack);
    }
    pack_shared_begin(&out->pack);
    pack_list(&out->pack);
    for (size_t i = 0; i < out->cut_count; i++) pack_text(&out->pack, out->cuts[i]);
    pack_close(&out->pack);
    pack_shared_end(&out->pack);
    pack_close(&out->pack);
}

/* ── Blocks ── */

static sft_code end_block(catalog_details *out) {
    char id[32];
    snprintf(id, sizeof id, "more-%zu", out->blocks++);
    sfti_json_writer *w = html_block_begin(out->page, id);
    sfti_json_open(w, '{');
    sfti_json_put_open(w, "sources", '[');
    for (size_t i = 0; i < out->sources.count; i++)
        sfti_json_span(w, out->sources.entries[i].text);
    sfti_json_close(w, ']');
    sft_code code = pack_write(&out->pack, w);
    sfti_json_close(w, '}');
    html_block_end(out->page);
    return code ? code : out->page->code;
}

void details_begin(catalog_details *out, html_page *page, const sft_allocator *alloc,
                   sft_error *err) {
    memset(out, 0, sizeof *out);
    out->page = page;
    out->err = err;
    out->arena.alloc = out->keys.alloc = *alloc;
    dict_begin(&out->sources, &out->arena);
    out->budget = FIRST_BYTES;
    pack_begin(&out->pack, alloc, err);
}

sft_code details_add(catalog_details *out, const cli_model *model, sft_span path,
                     const catalog_picture *pictures, size_t count, size_t row) {
    detail_model all = model_of(model, path, pictures, count);
    size_t size = 0;
    out->stem = text_stem(cli_name_of(model->path));
    out->budget += MEAN_BYTES;
    out->budget -= row < out->budget ? row : out->budget;
    for (;; out->level++) {
        put_model(out, &all);
        size = pack_size(&out->pack);
        if (size <= out->budget || out->level + 1 == LEVELS) break;
    }
    out->budget -= size < out->budget ? size : out->budget;
    /* Neighbours are alike: few models are written twice. */
    if (out->level > 0 && out->budget >= MEAN_BYTES) out->level--;
    sft_code code = pack_keep(&out->pack);
    if (code || out->pack.count < DETAILS_MODELS) return code;
    code = end_block(out);
    sft_allocator alloc = out->arena.alloc;
    dict_free(&out->sources);
    sfti_arena_free(&out->arena);
    out->arena = (sfti_arena){ .alloc = alloc };
    dict_begin(&out->sources, &out->arena);
    return code;
}

sft_code details_end(catalog_details *out) { return out->pack.count ? end_block(out) : SFT_OK; }

void details_free(catalog_details *out) {
    dict_free(&out->sources);
    sfti_arena_free(&out->arena);
    pack_free(&out->pack);
    sft_buffer_free(&out->keys);
}
