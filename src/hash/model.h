/* One thing to be hashed, a file or a model in many, while it is in hand. */
#ifndef SFTI_HASH_MODEL_H
#define SFTI_HASH_MODEL_H

#include "base/mem.h"
#include "hash/hash.h"

/* A file to be read once for some algorithms. */
typedef struct sfti_hash_unit {
    sft_source source;
    uint64_t size;
    const sft_file *file; /* NULL: no model */
    uint32_t algos;
    uint8_t (*digests)[32];
    sft_hashes *into;
    bool is_uncounted; /* another unit counts these bytes for the progress */
} sfti_hash_unit;

/* What the cache is told afterwards, if the file is still the same. */
typedef struct sfti_hash_memo {
    const char *path; /* NULL: of a set's shard, or of the set itself */
    int fd;           /* path NULL: the shard's, or -1 */
    sfti_hash_key key;
    sft_hashes *hashes;
    bool valid;
} sfti_hash_memo;

typedef struct sfti_hash_model {
    struct sfti_hash_model *next; /* among those with units nobody has claimed */
    sft_hash_request ask;
    sfti_arena arena; /* all of it but the struct */
    int fd;           /* -1: none */
    sft_source source;
    sft_file *file;
    sft_set *opened;    /* ours */
    const sft_set *set; /* opened, or the caller's; NULL: one file */
    uint8_t (*digests)[32];
    sfti_hash_unit *units;
    size_t unit_count, claimed, finished;
    sfti_hash_memo *memos;
    size_t memo_count;
    /* the answer */
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
    const sfti_hash_impl *impl;
    size_t split; /* threads that may read one file side by side */
    /* Looks into the cache; NULL when there is none. */
    void (*recall)(void *ctx, const sfti_hash_key *key, sft_hashes *hashes);
    void *ctx;
} sfti_hash_how;

/* Open what an ask names and list what is to be read. Never fails: error says so. */
void sfti_hash_model_open(sfti_hash_model *model, sft_hash_request ask,
                          const sfti_hash_how *opening);
/* The same for a set that is open already. */
void sfti_hash_model_borrow(sfti_hash_model *model, const sft_set *set, uint32_t algos,
                            const sfti_hash_how *opening);
/* All units are read: content, and whether the files are still the same. */
void sfti_hash_model_finish(sfti_hash_model *model, const sfti_hash_how *opening);
/* Close the files; the answer stays. */
void sfti_hash_model_close(sfti_hash_model *model);
void sfti_hash_model_free(sfti_hash_model *model);
void sfti_hash_model_result(const sfti_hash_model *model, sft_hash_result *out);

#endif
