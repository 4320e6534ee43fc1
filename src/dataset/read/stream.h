/* The shards of a manifest one after another, and their names as a set, in little memory: what
 * verify and gc need. Of segments one is in memory at a time, of names 24 bytes each. */
#ifndef SFTI_DATASET_STREAM_H
#define SFTI_DATASET_STREAM_H

#include "dataset/read/segment.h"

/* Zeroed except storage, m, and the arenas' alloc. */
typedef struct sfti_ds_stream {
    const sft_storage *storage;
    const sfti_ds_manifest *m; /* its segments need not be loaded */
    sfti_arena texts, array;   /* of the current segment */
    const sfti_ds_shard *shards;
    const uint32_t *order; /* of a whole manifest: of samples */
    size_t segment, at, count;
    uint64_t last; /* first_sample of the last shard */
    sfti_ds_sums sums;
} sfti_ds_stream;

/* The next shard in the order of samples, valid until the next call; NULL at the end, where the
 * sums are those of the manifest. SFT_DATASET_SHARD: a segment is missing or damaged.
 * SFT_MANIFEST_TYPE: what it says is wrong. */
sft_code sfti_ds_stream_next(sfti_ds_stream *stream, const sft_dataset_shard **out,
                             sft_error *err);
void sfti_ds_stream_close(sfti_ds_stream *stream);

/* Zeroed except alloc, m and several. own: set once those of m are added. The names of a whole
 * manifest itself are not in it. */
typedef struct sfti_ds_names {
    sft_allocator alloc;
    const sfti_ds_manifest *m;
    bool several; /* of other manifests, too: those from `own` on may be there again */
    size_t own;
    char (*digests)[16]; /* of the names */
    size_t count, cap;
    uint32_t *order; /* both halves of what sfti_sort needs */
} sfti_ds_names;

sft_code sfti_ds_names_add(sfti_ds_names *names, const char *name, sft_error *err);
/* Add all that a manifest names, which need not be m. Errors as sfti_ds_stream_next. */
sft_code sfti_ds_names_add_all(sfti_ds_names *names, const sft_storage *storage,
                               const sfti_ds_manifest *manifest, sft_error *err);
/* Add the files of its columns, after `own` is set: a file may be named for several columns. */
sft_code sfti_ds_names_add_columns(sfti_ds_names *names, const sft_storage *storage,
                                   const sfti_ds_manifest *manifest, sft_error *err);
/* After the last one. SFT_MANIFEST_TYPE: one is there twice. */
sft_code sfti_ds_names_sort(sfti_ds_names *names, sft_error *err);
/* Whether a shard of this name is among them. Fails out of memory only. */
sft_code sfti_ds_names_has(const sfti_ds_names *names, const char *name, bool *has,
                           sft_error *err);
void sfti_ds_names_free(sfti_ds_names *names);

#endif
