/* Texts that many models share, numbered, and their orders. */
#include "catalog/dict.h"

#include "base/order.h"
#include "os/os.h"

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

uint32_t dict_find(const catalog_dict *dict, sft_span text) {
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
