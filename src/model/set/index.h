/* Reading an index: which tensor stands in which shard. */
#ifndef SFTI_SET_INDEX_H
#define SFTI_SET_INDEX_H

#include "base/mem.h"
#include "set/set.h"

typedef struct sfti_index_entry {
    sft_span tensor;
    uint64_t at; /* of the name in the index file */
    uint32_t shard;
} sfti_index_entry;

typedef struct sfti_index {
    sfti_arena arena; /* holds everything below */
    sft_span text;     /* of the whole file */
    sft_span metadata; /* JSON text of the object, or empty */
    sfti_index_entry *entries;
    size_t count;
    sft_span *shards; /* checked names, each followed by a NUL, in natural order */
    size_t shard_count;
} sfti_index;

/* Read and check all of an index; its memory comes from options->open.alloc. Free with
 * sfti_index_release, also after a failure. */
sft_code sfti_index_load(const char *path, const sfti_set_how *options, sfti_index *out,
                         sft_error *err);
void sfti_index_release(sfti_index *index);

#endif
