/* The cache of digests: what programs call (cache.c), over its file (cache_file.c), over its table
 * (cache_table.c). */
#ifndef SFTI_HASH_CACHE_H
#define SFTI_HASH_CACHE_H

#include "hash/hash.h"

#define SFTI_CACHE_ENTRIES ((size_t)1 << 18)
#define SFTI_CACHE_DIGESTS 160 /* bytes of all digests of a file */

typedef struct sfti_cache_mark {
    uint64_t time;
    char name[SFT_HASH_MARK_SIZE]; /* "": none */
} sfti_cache_mark;

/* Kept small: a hostile file of short lines costs a few times its size. */
typedef struct sfti_cache_entry {
    sfti_hash_key key;
    uint64_t used; /* the greater, the later */
    sfti_cache_mark mark;
    uint32_t known;
    uint8_t digests[SFTI_CACHE_DIGESTS]; /* of each algorithm, at its place */
} sfti_cache_entry;

struct sft_hash_cache {
    sft_allocator alloc;
    char *path;
    size_t path_size;
    uint64_t seed[2]; /* of the table, so that no file can choose keys that collide */
    uint64_t clock;
    sfti_cache_entry *entries;
    uint32_t *slots; /* entry + 1 by hash of its key; a power of two of them */
    size_t count, cap, slot_count;
    bool changed;
    sft_error note; /* code SFT_OK: none */
};

/* The entry of a key, the last to be used from now on; made if there is none. NULL when out of
 * memory. */
sfti_cache_entry *sfti_cache_entry_of(sft_hash_cache *cache, const sfti_hash_key *key);
/* The entry of a key, or NULL. */
sfti_cache_entry *sfti_cache_find(const sft_hash_cache *cache, const sfti_hash_key *key);
/* Room for so many entries: at least those there are, at most SFTI_CACHE_ENTRIES. False when out
 * of memory. */
bool sfti_cache_reserve(sft_hash_cache *cache, size_t cap);
/* Forget all. */
void sfti_cache_drop(sft_hash_cache *cache);
/* Entries from the one used longest ago to the latest, then as many of scratch; there must be
 * one. NULL when out of memory. */
uint32_t *sfti_cache_order(const sft_hash_cache *cache);

void sfti_cache_hashes(const sfti_cache_entry *entry, sft_hashes *out);
/* text: hex digits, lower case, as many as the algorithm has. */
void sfti_cache_put_digest(sfti_cache_entry *entry, sft_hash_algo algo, const char *text);

#endif
