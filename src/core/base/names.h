/* Names to entry numbers: open addressing over names that live elsewhere, keyed by a
 * random seed so that no file can choose names that collide. */
#ifndef SFTI_NAMES_H
#define SFTI_NAMES_H

#include "base/mem.h"
#include "safetensors.h"

#define SFTI_NO_NAME UINT32_MAX

/* entry + 1, so that zeroed slots are empty; tag: bits of the hash that the place does
 * not tell. */
typedef struct sfti_slot { uint32_t entry, tag; } sfti_slot;

typedef sft_span (*sfti_name_fn)(const void *ctx, uint32_t entry);

typedef struct sfti_names {
    sfti_slot *slots; /* NULL: the table of no names */
    uint64_t slot_count;
    uint64_t seed[2];
    sfti_name_fn name; /* of an entry put before */
    const void *ctx;
} sfti_names;

/* Room for count names at most. False when out of memory. */
bool sfti_names_begin(sfti_names *names, size_t count, const uint64_t seed[2],
                      sfti_name_fn name, const void *ctx, sfti_arena *arena);
/* Hash of a name under a seed: for callers that have the name at hand before the table. */
uint64_t sfti_names_hash(sft_span name, const uint64_t seed[2]);
/* Hint that a name of this hash will be put soon. */
void sfti_names_prefetch(const sfti_names *names, uint64_t hash);
/* Put an entry; the entry now under that name: this one, or an earlier one that stays. */
uint32_t sfti_names_put(sfti_names *names, sft_span name, uint64_t hash, uint32_t entry);
/* The same, with the name's hash computed. */
uint32_t sfti_names_add(sfti_names *names, sft_span name, uint32_t entry);
/* Put in place of the entry under that name, which must be there. */
void sfti_names_replace(sfti_names *names, sft_span name, uint32_t entry);
/* SFTI_NO_NAME when there is none. */
uint32_t sfti_names_find(const sfti_names *names, sft_span name);

/* Whether both key and value have a dot; without, other metadata could be taken for names. A pair
 * records an alias if, besides, its key is the name of no tensor and its value that of one.
 * Importers and the official package's save_model write it for a name of a tensor that has another
 * one, too. */
bool sfti_may_be_alias(sft_pair pair);

#endif
