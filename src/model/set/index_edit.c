/* Changes to the text of an index. Tests: test_set.c. */
#include "base/error.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/options.h"
#include "base/portable.h"
#include "base/sink.h"
#include "base/splice.h"
#include "base/utf8.h"
#include "bytes/hold.h"
#include "set/index_edit.h"
#include "set/set.h"

#include <string.h>

/* Changes to an index's text; everything is allocated in the arena of the index. */
typedef struct index_edit {
    sfti_index index;
    sft_index_changes changes;
    uint64_t seed[2];
    sfti_changes metadata, tensors, shards, places;
    sfti_cuts cuts;
    bool met_metadata;
    sft_error *err;
} index_edit;

static sft_code edit_memory(const index_edit *e) {
    return sfti_fail_memory(e->err, sizeof(sfti_change));
}

/* ── Tables ── */

/* total: the number to set "total_size" to, or NULL. */
static sft_code edit_table(index_edit *e, const sft_pair *pairs, size_t count,
                           const uint64_t *total, sfti_changes *out) {
    sfti_arena *arena = &e->index.arena;
    sfti_change *items = sfti_arena_array(arena, (uint64_t)count + 1, sizeof *items);
    for (size_t i = 0; i < 2 * count; i++) {
        sft_span text = i % 2 ? pairs[i / 2].value : pairs[i / 2].key;
        if (text.len > 0 && sfti_utf8_check(text.data, text.len) < text.len)
            return sfti_fail(e->err, SFT_HEADER_UTF8,
                             "expected changes in UTF-8, found other bytes");
    }
    if (!items) return edit_memory(e);
    for (size_t i = 0; i < count; i++)
        items[i] = (sfti_change){ pairs[i].key, pairs[i].value };
    if (!sfti_changes_spell(items, count, arena)) return edit_memory(e);
    if (total) {
        char digits[SFTI_UINT_SIZE];
        size_t len = sfti_uint_text(*total, 0, digits);
        const char *text = sfti_arena_copy(arena, digits, len);
        if (!text) return edit_memory(e);
        items[count++] = (sfti_change){ { "total_size", 10 }, { text, len } };
    }
    return sfti_changes_begin(out, items, count, e->seed, arena) ? SFT_OK : edit_memory(e);
}

static sft_span edit_name_of(const void *ctx, uint32_t entry) {
    return ((const sft_span *)ctx)[entry];
}

/* Fails if two tensors would have the same name afterwards. */
static sft_code edit_collisions(index_edit *e) {
    const sfti_index *index = &e->index;
    sfti_names names;
    sft_span *now = sfti_arena_array(&e->index.arena, index->count, sizeof *now);
    sfti_changes to = { NULL, 0, { NULL, 0, { 0, 0 }, NULL, NULL } };
    sfti_change *items = sfti_arena_array(&e->index.arena, e->changes.tensor_count, sizeof *items);
    if (!now || !items) return edit_memory(e);
    for (size_t i = 0; i < e->changes.tensor_count; i++)
        items[i] = (sfti_change){ e->changes.tensors[i].key, e->changes.tensors[i].value };
    if (!sfti_changes_begin(&to, items, e->changes.tensor_count, e->seed, &e->index.arena))
        return edit_memory(e);
    sft_code code =
        sfti_set_names(&names, index->count, edit_name_of, now, &e->index.arena, e->err);
    for (uint32_t i = 0; !code && i < index->count; i++) {
        uint32_t found = sfti_names_find(&to.names, index->entries[i].tensor);
        now[i] = found == SFTI_NO_NAME ? index->entries[i].tensor : items[found].value;
        if (sfti_names_add(&names, now[i], i) == i) continue;
        code = sfti_fail_tensor(e->err, SFT_TENSOR_DUPLICATE, SFT_NO_OFFSET, now[i],
                                "expected a free name, found that two tensors would have it");
    }
    return code;
}

/* New names of shards: each one that every system takes, and none that differs from another one's
 * by case alone. Those that are there may stay. */
static sft_code edit_check_shard(const index_edit *e, sft_span name) {
    const sfti_index *index = &e->index;
    const char *why = NULL;
    if (!name.data) return SFT_OK;
    for (size_t i = 0; i < index->shard_count; i++) {
        if (sft_span_equal(name, index->shards[i])) return SFT_OK;
        if (sfti_name_compare_folded(name, index->shards[i]) == 0)
            why = "a shard's name differs from it by case alone";
    }
    if (!why && sfti_name_portable(name, &why)) return SFT_OK;
    return sfti_fail(e->err, SFT_INDEX_PATH,
                     "expected a file name that every system takes, found \"%.*s\": %s",
                     SFTI_CLIP(name, 200), why);
}

static sft_code edit_tables(index_edit *e) {
    const sft_index_changes *c = &e->changes;
    sfti_seed_draw(e, e->seed);
    const struct {
        const sft_pair *pairs;
        size_t count;
        const uint64_t *total;
        sfti_changes *out;
    } tables[] = {
        { c->metadata, c->metadata_count, c->has_total_size ? &c->total_size : NULL, &e->metadata },
        { c->tensors, c->tensor_count, NULL, &e->tensors },
        { c->shards, c->shard_count, NULL, &e->shards },
        { c->places, c->place_count, NULL, &e->places },
    };
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        sft_code code = edit_table(e, tables[i].pairs, tables[i].count, tables[i].total,
                                   tables[i].out);
        if (code) return code;
    }
    for (size_t i = 0; i < c->shard_count; i++) {
        sft_code code = edit_check_shard(e, c->shards[i].value);
        if (code) return code;
    }
    for (size_t i = 0; i < c->place_count; i++) {
        sft_span name = c->places[i].value;
        bool again = i > 0 && sft_span_equal(name, c->places[i - 1].value);
        sft_code code = again ? SFT_OK : edit_check_shard(e, name);
        if (code) return code;
    }
    return c->tensor_count == 0 ? SFT_OK : edit_collisions(e);
}

/* ── Text ── */

/* The last event is a key or a string: replaces it if it is in the table. */
static sft_code edit_string(index_edit *e, const sfti_json *json, const sfti_changes *table) {
    sft_span name = sfti_json_string(json, &e->index.arena);
    if (!name.data) return edit_memory(e);
    uint32_t found = sfti_names_find(&table->names, name);
    if (found == SFTI_NO_NAME) return SFT_OK;
    size_t end = (size_t)(json->at - json->begin);
    return sfti_cuts_put(&e->cuts, json->start, end, table->items[found].value) ? SFT_OK
                                                                                : edit_memory(e);
}

static sft_code edit_map(index_edit *e, sfti_json *json) {
    sft_code code = SFT_OK;
    if (e->places.count > 0) return sfti_splice_value(json, &e->places, &e->cuts, e->err);
    (void)sfti_json_next(json);
    while (!code && sfti_json_next(json) == SFTI_JSON_KEY) {
        code = edit_string(e, json, &e->tensors);
        (void)sfti_json_next(json);
        if (!code) code = edit_string(e, json, &e->shards);
    }
    return code;
}

static sft_code edit_index_text(index_edit *e) {
    sfti_json json;
    sft_code code = SFT_OK;
    sfti_json_begin(&json, e->index.text.data, e->index.text.len);
    (void)sfti_json_next(&json);
    size_t open = json.start + 1;
    while (!code && sfti_json_next(&json) == SFTI_JSON_KEY) {
        sft_span key = sfti_json_string(&json, &e->index.arena);
        if (!key.data) return edit_memory(e);
        if (sft_span_equal(key, sft_span_cstr("metadata"))) {
            e->met_metadata = true;
            code = sfti_splice_value(&json, &e->metadata, &e->cuts, e->err);
        } else if (sft_span_equal(key, sft_span_cstr("weight_map"))) {
            code = edit_map(e, &json);
        } else {
            (void)sfti_json_skip(&json);
        }
    }
    if (code || e->met_metadata || !sfti_changes_set(&e->metadata)) return code;
    return sfti_splice_first("\"metadata\":{", &e->metadata, open, false, &e->cuts, e->err);
}

/* ── Whole ── */

static sft_code edit_run(index_edit *e, const char *path, const char *to,
                         const sft_path_options *options, bool *changed) {
    sfti_set_how all;
    os_info then, now;
    bool known = sfti_os_info_path(path, true, &then) == 0;
    sft_code code = sfti_set_settle(NULL, &all, e->err);
    all.open.alloc = options->alloc;
    if (!code) code = sfti_index_load(path, &all, &e->index, e->err);
    if (code) return code;
    e->cuts.arena = &e->index.arena;
    code = edit_tables(e);
    if (!code) code = edit_index_text(e);
    bool any = !code && sfti_cuts_differ(&e->cuts, e->index.text.data);
    if (changed) *changed = any;
    if (code || e->changes.dry_run || (!any && !to)) return code;
    sft_path_options own = *options;
    if (!own.mode && to && strcmp(to, path) != 0) {
        /* The mode of the index it is made from, restricted to that of the file it replaces. */
        sfti_mode_restrict(&own.mode, path);
        sfti_mode_restrict(&own.mode, to);
    }
    sft_sink sink;
    uint64_t len = sfti_cuts_length(&e->cuts, e->index.text.len);
    char *text = sfti_arena_array(&e->index.arena, len, 1);
    if (!text) return sfti_fail_memory(e->err, len);
    sfti_cuts_apply(&e->cuts, e->index.text, text);
    if (known && (sfti_os_info_path(path, true, &now) || !sfti_is_same_file(&then, &now)))
        return sfti_fail_changed(e->err);
    code = sft_sink_path(to ? to : path, &own, &sink, e->err);
    return code ? code : sfti_sink_fill(&sink, (sft_span){ text, (size_t)len }, e->err);
}

static SFTI_OPTIONS_TAKE(index_edit_take, sft_index_changes, SFT_INDEX_CHANGES_INIT, dry_run)

static sft_code rewrite(const char *path, const sft_index_changes *changes, const char *to,
                        const sft_path_options *options, bool held, bool *changed,
                        sft_error *err) {
    index_edit e = { .err = err };
    sfti_file_lock hold = { .fd = -1 };
    sft_path_options own;
    if (changed) *changed = false;
    if (!path) return sfti_set_path_fail(err);
    sft_code code = index_edit_take(changes, &e.changes, err);
    if (!code) code = sfti_take_path(options, &own, err);
    if (code) return code;
    if (e.changes.place_count > 0 && (e.changes.tensor_count > 0 || e.changes.shard_count > 0))
        return sfti_misuse(err, "expected places or other names, found both");
    bool replaces = !e.changes.dry_run && (!to || strcmp(to, path) == 0);
    if (replaces && !held) code = sfti_hold_take(path, &hold, err);
    if (!code) code = edit_run(&e, path, to, &own, changed);
    sfti_index_release(&e.index);
    sfti_hold_end(&hold);
    return code;
}

sft_code sft_index_rewrite(const char *path, const sft_index_changes *changes, const char *to,
                           const sft_path_options *options, bool *changed, sft_error *err) {
    return rewrite(path, changes, to, options, false, changed, err);
}

sft_code sfti_index_rewrite_held(const char *path, const sft_index_changes *changes,
                                 const char *to, const sft_path_options *options, bool *changed,
                                 sft_error *err) {
    return rewrite(path, changes, to, options, true, changed, err);
}
