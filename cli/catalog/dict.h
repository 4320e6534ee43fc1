/* Texts that many models share, as numbers. */
#ifndef CATALOG_DICT_H
#define CATALOG_DICT_H

#include "base/names.h"

typedef struct dict_entry {
    sft_span text, label; /* label: words for people, or empty */
    uint32_t uses;
} dict_entry;

/* Zeroed but for the arena, it is empty. */
typedef struct catalog_dict {
    sfti_arena *arena; /* of the entries; the table is in one of its own */
    sfti_arena table;
    dict_entry *entries;
    size_t count, capacity;
    sfti_names names;
    uint32_t *places;  /* by dict_sort: where an entry is in that order */
    uint32_t *order;   /* and which entry is there */
} catalog_dict;

#define DICT_NONE UINT32_MAX /* no entry: of an empty text, and when memory ran out */

void dict_begin(catalog_dict *dict, sfti_arena *arena);
/* The number of a text, which is copied if it is new; false when memory ran out. */
bool dict_put(catalog_dict *dict, sft_span text, sft_span label, uint32_t *number);
/* The number of a text, DICT_NONE if it was not put. */
uint32_t dict_find(const catalog_dict *dict, sft_span text);
/* Decide the order: natural, or the most frequent first. */
bool dict_sort(catalog_dict *dict, bool natural);
/* Where an entry is in that order, -1 for none. */
int64_t dict_place(const catalog_dict *dict, uint32_t number);
void dict_free(catalog_dict *dict);

#endif
