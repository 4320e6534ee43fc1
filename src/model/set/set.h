/* An open set. A set of one file keeps no tables of its own. */
#ifndef SFTI_SET_H
#define SFTI_SET_H

#include "base/mem.h"
#include "base/names.h"
#include "safetensors_set.h"

struct sft_set {
    sfti_arena arena; /* holds everything below, and the set itself is from its allocator */
    size_t shard_count;
    sft_file **files; /* those not open yet are NULL */
    const char **paths;
    const char *index_path;
    sft_span index_metadata;
    uint64_t input_bytes; /* of the files that an image is read from; 0: those of `files` */
    bool is_partial; /* these hold more tensors, which are not read */
    const struct image *image; /* image.c; NULL: of files */
    const sft_files *from; /* of which some paths may be; or NULL */
    size_t count;
    /* NULL in a set of one: */
    const sft_tensor **tensors;
    uint32_t *shard_of;
    sfti_names names;
};

/* The allocator of the options, or the system's. */
sft_allocator sfti_set_allocator(const sft_allocator *alloc);
/* A table of names as sfti_names_begin makes it, under a seed of its own. */
sft_code sfti_set_names(sfti_names *names, size_t count, sfti_name_fn name, const void *ctx,
                        sfti_arena *arena, sft_error *err);
/* Bytes of a part's data; 0 if its dtype and shape have no size. */
uint64_t sfti_part_bytes(const sft_part *part);

/* Options of a set and of its shards, every default filled in. */
typedef struct sfti_set_how {
    uint64_t max_index_bytes;
    uint32_t max_shards;
    sft_open_options open; /* its alloc serves the set too */
} sfti_set_how;
sft_code sfti_set_settle(const sft_set_options *from, sfti_set_how *out, sft_error *err);
/* The error for a path that is NULL. */
sft_code sfti_set_path_fail(sft_error *err);

/* Restricts *mode (0: not set yet) to the permission bits of the file at the path, 0600 if none are
 * left. Leaves it alone if the path is NULL or names no file. */
void sfti_mode_restrict(uint32_t *mode, const char *path);

/* ── An index: which tensor stands in which shard ── */

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
