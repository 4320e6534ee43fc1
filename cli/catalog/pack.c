/* Texts that many models share, numbered, and JSON that is packed with them. */
#include "catalog/pack.h"

#include "base/order.h"
#include "os/os.h"
#include "support/cli.h"

#include <stdio.h>
#include <string.h>

#define ENTRIES_FIRST 64

static sft_span entry_text(const void *ctx, uint32_t entry) {
    const catalog_dict *dict = ctx;
    return dict->entries[entry].text;
}

void dict_begin(catalog_dict *dict, sfti_arena *arena) {
    memset(dict, 0, sizeof *dict);
    dict->arena = arena;
    dict->table.alloc = arena->alloc;
}

/* Twice as many entries, and a table for them. */
static bool grow_entries(catalog_dict *dict) {
    uint64_t seed[2] = { 0, 0 };
    size_t capacity = dict->capacity ? 2 * dict->capacity : ENTRIES_FIRST;
    dict_entry *entries = sfti_arena_array(dict->arena, capacity, sizeof *entries);
    if (!entries || capacity > UINT32_MAX / 2 || sfti_os_random(seed, sizeof seed)) return false;
    if (dict->count) memcpy(entries, dict->entries, dict->count * sizeof *entries);
    sfti_arena_free(&dict->table);
    dict->table = (sfti_arena){ .alloc = dict->arena->alloc };
    dict->entries = entries;
    if (!sfti_names_begin(&dict->names, capacity, seed, entry_text, dict, &dict->table))
        return false;
    dict->capacity = capacity;
    for (uint32_t i = 0; i < dict->count; i++)
        (void)sfti_names_put(&dict->names, entries[i].text,
                             sfti_names_hash(entries[i].text, seed), i);
    return true;
}

static bool copy_text(sfti_arena *arena, sft_span *text) {
    if (!text->len) return true;
    text->data = sfti_arena_copy(arena, text->data, text->len);
    return text->data != NULL;
}

bool dict_put(catalog_dict *dict, sft_span text, sft_span label, uint32_t *number) {
    *number = DICT_NONE;
    if (!text.len) return true;
    if (dict->count == dict->capacity && !grow_entries(dict)) return false;
    uint32_t found = sfti_names_find(&dict->names, text);
    if (found == SFTI_NO_NAME) {
        dict_entry *entry = &dict->entries[dict->count];
        *entry = (dict_entry){ text, label, 0 };
        if (!copy_text(dict->arena, &entry->text) || !copy_text(dict->arena, &entry->label))
            return false;
        found = (uint32_t)dict->count++;
        (void)sfti_names_put(&dict->names, entry->text,
                             sfti_names_hash(entry->text, dict->names.seed), found);
    }
    dict->entries[found].uses++;
    *number = found;
    return true;
}

/* DICT_NONE if it was not put. */
static uint32_t dict_find(const catalog_dict *dict, sft_span text) {
    uint32_t found = sfti_names_find(&dict->names, text);
    return found == SFTI_NO_NAME ? DICT_NONE : found;
}

static int compare_natural(const void *ctx, uint32_t a, uint32_t b) {
    const catalog_dict *dict = ctx;
    return sfti_natural_compare(dict->entries[a].text, dict->entries[b].text);
}

static int compare_uses(const void *ctx, uint32_t a, uint32_t b) {
    const catalog_dict *dict = ctx;
    uint32_t x = dict->entries[a].uses, y = dict->entries[b].uses;
    if (x == y) return compare_natural(ctx, a, b);
    return x < y ? 1 : -1;
}

bool dict_sort(catalog_dict *dict, bool natural) {
    dict->order = sfti_arena_sorted(dict->arena, dict->count,
                                    natural ? compare_natural : compare_uses, dict);
    dict->places = sfti_arena_array(dict->arena, dict->count, sizeof *dict->places);
    if (!dict->order || !dict->places) return false;
    for (uint32_t i = 0; i < dict->count; i++) dict->places[dict->order[i]] = i;
    return true;
}

int64_t dict_place(const catalog_dict *dict, uint32_t number) {
    return number == DICT_NONE ? -1 : (int64_t)dict->places[number];
}

void dict_free(catalog_dict *dict) { sfti_arena_free(&dict->table); }

/* ── JSON of many similar objects ── */

/* What may be shared stands between two bytes that JSON does not have, and the commas that the
 * writer puts there: MARK , value , END. */
#define MARK "\x01"
#define END "\x02"
#define SHARED_LEAST 8 /* bytes; a reference takes five */
#define REFERENCE 5

static const sft_span no_label = { "", 0 };

static void begin_block(json_pack *pack) {
    dict_begin(&pack->shapes, &pack->arena);
    dict_begin(&pack->values, &pack->arena);
    pack->kept.len = 0;
    pack->count = 0;
}

static void end_block(json_pack *pack) {
    sft_allocator alloc = pack->arena.alloc;
    dict_free(&pack->shapes);
    dict_free(&pack->values);
    sfti_arena_free(&pack->arena);
    pack->arena = (sfti_arena){ .alloc = alloc };
}

void pack_begin(json_pack *pack, const sft_allocator *alloc, sft_error *err) {
    memset(pack, 0, sizeof *pack);
    pack->err = err;
    pack->arena.alloc = pack->kept.alloc = pack->one.alloc = *alloc;
    begin_block(pack);
}

void pack_free(json_pack *pack) {
    end_block(pack);
    sft_buffer_free(&pack->kept);
    sft_buffer_free(&pack->one);
}

/* ── One value ── */

sfti_json_writer *pack_one(json_pack *pack) {
    pack->one.len = 0;
    pack->in_shared = false;
    pack->sink = sft_sink_memory(&pack->one);
    sfti_json_write(&pack->w, &pack->sink, 0, pack->err);
    return &pack->w;
}

/* The next value that may be shared, and what is before it; data NULL: there is none. */
static sft_span next_marked(sft_span *rest, sft_span *before) {
    const char *mark = rest->len ? memchr(rest->data, *MARK, rest->len) : NULL;
    *before = *rest;
    if (!mark) return (sft_span){ NULL, 0 };
    before->len = (size_t)(mark - rest->data);
    size_t left = rest->len - before->len;
    const char *end = memchr(mark, *END, left);
    sft_span value = { mark + 2, (size_t)(end - mark) - 3 };
    *rest = (sft_span){ end + 1, left - (size_t)(end + 1 - mark) };
    return value;
}

/* What is kept already is a reference here. */
size_t pack_size(json_pack *pack) {
    sft_span before, value, rest;
    size_t size = 0;
    if (sfti_json_done(&pack->w)) return 0;
    rest = (sft_span){ pack->one.data, pack->one.len };
    while ((value = next_marked(&rest, &before)).data) {
        bool known = dict_find(&pack->values, value) != DICT_NONE;
        size += before.len + (known ? REFERENCE : value.len);
    }
    return size + before.len;
}

static void fail_pack(json_pack *pack, size_t bytes) {
    if (!pack->w.code) pack->w.code = sfti_fail_memory(pack->err, bytes);
}

void pack_object(json_pack *pack, sft_span keys) {
    uint32_t number;
    if (!dict_put(&pack->shapes, keys, no_label, &number)) fail_pack(pack, keys.len);
    sfti_json_open(&pack->w, '[');
    sfti_json_uint(&pack->w, number);
}

void pack_list(json_pack *pack) {
    sfti_json_open(&pack->w, '[');
    sfti_json_raw(&pack->w, (sft_span){ "-1", 2 });
}

void pack_close(json_pack *pack) { sfti_json_close(&pack->w, ']'); }

void pack_shared_begin(json_pack *pack) {
    pack->in_shared = true;
    sfti_json_raw(&pack->w, (sft_span){ MARK, 1 });
}

void pack_shared_end(json_pack *pack) {
    pack->in_shared = false;
    sfti_json_raw(&pack->w, (sft_span){ END, 1 });
}

void pack_text(json_pack *pack, sft_span text) {
    bool marks = !pack->in_shared && text.len >= SHARED_LEAST;
    bool tilde = text.len && *text.data == '~';
    if (marks) sfti_json_raw(&pack->w, (sft_span){ MARK, 1 });
    if (tilde) {
        char *copy = sfti_arena_take(&pack->arena, text.len + 1);
        if (!copy) {
            fail_pack(pack, text.len);
            return;
        }
        *copy = '~';
        memcpy(copy + 1, text.data, text.len);
        text = (sft_span){ copy, text.len + 1 };
    }
    sfti_json_span(&pack->w, text);
    if (marks) sfti_json_raw(&pack->w, (sft_span){ END, 1 });
}

/* ── All that are kept ── */

sft_code pack_keep(json_pack *pack) {
    sft_span before, value, rest;
    uint32_t number;
    sft_code code = sfti_json_done(&pack->w);
    if (code) return code;
    rest = (sft_span){ pack->one.data, pack->one.len };
    while ((value = next_marked(&rest, &before)).data)
        if (!dict_put(&pack->values, value, no_label, &number))
            return sfti_fail_memory(pack->err, value.len);
    bool kept = (!pack->count || sfti_buffer_put(&pack->kept, ",", 1))
             && sfti_buffer_put(&pack->kept, pack->one.data, pack->one.len);
    if (!kept) return sfti_fail_memory(pack->err, pack->one.len);
    pack->count++;
    return SFT_OK;
}

/* Pieces of JSON one after the other: no commas between them. */
static void put_piece(sfti_json_writer *w, sft_span piece) {
    w->comma = false;
    sfti_json_raw(w, piece);
}

static void put_kept(json_pack *pack, sfti_json_writer *w, const uint32_t *places) {
    sft_span before, value, rest = { pack->kept.data, pack->kept.len };
    char reference[24];
    sfti_json_put_open(w, "models", '[');
    while ((value = next_marked(&rest, &before)).data) {
        uint32_t number = dict_find(&pack->values, value);
        put_piece(w, before);
        if (places[number] != DICT_NONE) {
            int len = snprintf(reference, sizeof reference, "\"~%u\"", (unsigned)places[number]);
            value = (sft_span){ reference, (size_t)len };
        }
        put_piece(w, value);
    }
    put_piece(w, before);
    sfti_json_close(w, ']');
}

sft_code pack_write(json_pack *pack, sfti_json_writer *w) {
    const catalog_dict *values = &pack->values;
    uint32_t *places = sfti_arena_array(&pack->arena, values->count, sizeof *places), next = 0;
    if (!places) return sfti_fail_memory(pack->err, values->count * sizeof *places);
    sfti_json_put_open(w, "shapes", '[');
    for (size_t i = 0; i < pack->shapes.count; i++) sfti_json_raw(w, pack->shapes.entries[i].text);
    sfti_json_close(w, ']');
    sfti_json_put_open(w, "shared", '[');
    for (size_t i = 0; i < values->count; i++) {
        places[i] = values->entries[i].uses > 1 ? next++ : DICT_NONE;
        if (places[i] != DICT_NONE) sfti_json_raw(w, values->entries[i].text);
    }
    sfti_json_close(w, ']');
    put_kept(pack, w, places);
    end_block(pack);
    begin_block(pack);
    return w->code;
}
