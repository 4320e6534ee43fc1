/* A request being worked on: a file, or a model of several files. */
#ifndef SFTI_HASH_MODEL_H
#define SFTI_HASH_MODEL_H

#include "base/mem.h"
#include "hash/hash.h"

/* One read of a file for some algorithms. */
typedef struct sfti_hash_unit {
    sft_source source;
    uint64_t size;
    const sft_file *file; /* NULL: no model */
    uint32_t algos;
    uint8_t (*digests)[32];
    sft_hashes *into;
    bool is_uncounted; /* another unit reports these bytes as progress */
    sfti_blake3_segments *segments; /* NULL: all of the file is read */
    uint64_t begin, end;            /* of the bytes read */
} sfti_hash_unit;

/* What is put into the cache afterwards if the file has not changed. */
typedef struct sfti_hash_memo {
    const char *path; /* NULL: a set's shard, or the set itself */
    int fd;           /* path NULL: the shard's, or -1 */
    sfti_hash_key key;
    sft_hashes *hashes;
    bool valid;
} sfti_hash_memo;

typedef struct sfti_hash_model {
    struct sfti_hash_model *next; /* in the list of models with unclaimed units */
    sft_hash_request request;
    sfti_arena arena; /* holds everything but the struct itself */
    int fd;           /* -1: none */
    sft_source source;
    sft_file *file;
    sft_set *opened;    /* owned */
    const sft_set *set; /* opened, or the caller's; NULL: one file */
    uint8_t (*digests)[32];
    sfti_blake3_segments *segments; /* NULL: one unit computes BLAKE3 */
    sfti_hash_unit *units;
    size_t unit_count, claimed, finished;
    sfti_hash_memo *memos;
    size_t memo_count;
    /* the result */
    bool done, is_many, is_borrowed;
    sft_error error, model_error;
    uint64_t bytes;
    sft_hashes hashes;
    const char **shard_paths;
    sft_hashes *shards;
    size_t shard_count;
} sfti_hash_model;

typedef struct sfti_hash_how {
    const sft_allocator *alloc;
    const sft_open_options *open; /* for headers; alloc below is used */
    bool only_cached;
    sft_open_other_fn open_other; /* or NULL */
    const sfti_hash_impl *impl;
    size_t split; /* threads that may read the same file at once */
    /* Looks a file up in the cache; NULL if there is no cache. */
    void (*recall)(void *ctx, const sfti_hash_key *key, sft_hashes *hashes);
    void *ctx;
} sfti_hash_how;

/* Opens what a request names and lists its units. A failure goes to model->error. */
void sfti_hash_model_open(sfti_hash_model *model, sft_hash_request request,
                          const sfti_hash_how *how);
/* The same for a set that is open already. */
void sfti_hash_model_borrow(sfti_hash_model *model, const sft_set *set, uint32_t algos,
                            const sfti_hash_how *how);
/* After all units: computes the content hash, joins BLAKE3's segments and checks that the files
 * have not changed. */
void sfti_hash_model_finish(sfti_hash_model *model, const sfti_hash_how *how);
/* Closes the files; the result stays. */
void sfti_hash_model_close(sfti_hash_model *model);
void sfti_hash_model_free(sfti_hash_model *model);
void sfti_hash_model_result(const sfti_hash_model *model, sft_hash_result *out);

#endif
