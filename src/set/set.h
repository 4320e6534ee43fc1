/* What an open set is made of. A set of one keeps no tables of its own. */
#ifndef SFTI_SET_H
#define SFTI_SET_H

#include "base/mem.h"
#include "safetensors_set.h"
#include "set/names.h"

struct sft_set {
    sfti_arena arena; /* holds everything below, and the set itself is from its allocator */
    size_t shard_count;
    sft_file **files; /* those not open yet are NULL */
    const char **paths;
    const char *index_path;
    sft_span index_metadata;
    size_t count;
    /* NULL in a set of one: */
    const sft_tensor **tensors;
    uint32_t *shard_of;
    sfti_names names;
};

/* The allocator of the options, or the system's. */
sft_allocator sfti_set_allocator(const sft_allocator *alloc);
/* SFT_BAD_ARGUMENT for a path that is NULL. */
sft_code sfti_set_path_fail(sft_error *err);

#endif
