/* JSON of many similar objects, a block at a time. An object is a list of the number of its shape
 * (its keys) and its values; any other list begins with -1; a text or list that occurs more than
 * once is "~" and its number among `shared`. page/data.js unpacks it. */
#ifndef CATALOG_PACK_H
#define CATALOG_PACK_H

#include "base/json.h"
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
/* Decide the order: natural, or the most frequent first. */
bool dict_sort(catalog_dict *dict, bool natural);
/* Where an entry is in that order, -1 for none. */
int64_t dict_place(const catalog_dict *dict, uint32_t number);
void dict_free(catalog_dict *dict);

/* ── Objects ── */

typedef struct json_pack {
    sfti_arena arena;    /* of this block */
    catalog_dict shapes; /* keys as JSON lists */
    catalog_dict values; /* JSON of what may be shared */
    sft_buffer kept, one; /* values that are kept, a JSON list; the one that is written */
    sft_sink sink;
    sfti_json_writer w;  /* of that one */
    size_t count;        /* kept */
    bool in_shared;      /* inside of a list that is shared as a whole */
    sft_error *err;
} json_pack;

void pack_begin(json_pack *pack, const sft_allocator *alloc, sft_error *err);
void pack_free(json_pack *pack);
/* Begin a value, forgetting the last one that was not kept. Returns its writer, for numbers and
 * what the functions below do not write. */
sfti_json_writer *pack_one(json_pack *pack);
/* Bytes that the value takes, about. */
size_t pack_size(json_pack *pack);
/* Keep the value. */
sft_code pack_keep(json_pack *pack);
/* Write all that was kept as members of the object that w is in, and begin a new block. */
sft_code pack_write(json_pack *pack, sfti_json_writer *w);

/* keys: a JSON list of them. */
void pack_object(json_pack *pack, sft_span keys);
void pack_list(json_pack *pack);
/* The end of either. */
void pack_close(json_pack *pack);
void pack_text(json_pack *pack, sft_span text);
/* Around a list that may occur again as it is. */
void pack_shared_begin(json_pack *pack);
void pack_shared_end(json_pack *pack);

#endif
