/* Names to entry numbers: open addressing over names that live elsewhere, keyed by a
 * random seed so that no file can choose names that collide. */
#ifndef SFTI_SET_NAMES_H
#define SFTI_SET_NAMES_H

#include "base/mem.h"
#include "safetensors.h"

#define SFTI_NO_NAME UINT32_MAX

typedef struct sfti_names_slot {
    uint32_t entry; /* SFTI_NO_NAME = empty */
    uint32_t tag;   /* bits of the hash that the place does not tell */
} sfti_names_slot;

typedef struct sfti_names {
    sfti_names_slot *slots;
    uint64_t mask;
    uint64_t seed[2];
    sft_span (*name)(const void *ctx, uint32_t entry); /* of an entry put before */
    const void *ctx;
} sfti_names;

/* Room for count names at most, from the arena; name and ctx as in the struct. */
sft_code sfti_names_begin(sfti_names *names, size_t count,
                          sft_span (*name)(const void *ctx, uint32_t entry),
                          const void *ctx, sfti_arena *arena, sft_error *err);
/* The entry already there under this name, else puts this one and returns it. */
uint32_t sfti_names_put(sfti_names *names, sft_span name, uint32_t entry);
/* SFTI_NO_NAME when there is none. */
uint32_t sfti_names_find(const sfti_names *names, sft_span name);

#endif
