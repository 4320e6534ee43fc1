/* Conventions of __metadata__ as tables: one row a key (label/cursor.h), one table a family of
 * producers. Inside src/label only. */
#ifndef SFTI_INFO_HEADER_H
#define SFTI_INFO_HEADER_H

#include "label/cursor.h"

/* Rows of keys with a prefix, which is cut off before comparing. Of several families that
 * know a key, the first takes it. */
typedef struct sfti_key_table {
    const char *prefix;
    const sfti_row *rows;
    size_t count;
    bool any_case;
} sfti_key_table;

extern const sfti_key_table sfti_kohya_keys;     /* ss_, and sshs_ */
extern const sfti_key_table sfti_modelspec_keys; /* modelspec. */
extern const sfti_key_table sfti_bare_keys;      /* the same without prefix */
extern const sfti_key_table sfti_trainer_keys;
extern const sfti_key_table sfti_ssmd_keys;
extern const sfti_key_table sfti_merge_keys;
extern const sfti_key_table sfti_graph_keys;
extern const sfti_key_table sfti_gguf_keys;
extern const sfti_key_table sfti_generic_keys;   /* keys without a convention */

/* Paths in a pair's value that tell of somebody's machine. */
void sfti_private_paths(sfti_cursor *pair);

/* When all pairs were seen: what needs several. */
void sfti_kohya_finish(sft_info *info);
void sfti_kohya_datasets(sft_info *info); /* data sets and buckets; a part of kohya_finish */
void sfti_merges_finish(sft_info *info);

#endif
