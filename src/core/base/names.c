/* A table of names, keyed by a random seed. Tests: test_names.c. */
#include "base/names.h"

#include <string.h>

/* Both halves of a 128-bit product, folded: the mixing step. */
static inline uint64_t hash_fold(uint64_t a, uint64_t b) {
#if defined(__SIZEOF_INT128__)
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
#else
    uint64_t al = (uint32_t)a, ah = a >> 32, bl = (uint32_t)b, bh = b >> 32;
    uint64_t low = al * bl, mid = ah * bl + (low >> 32), cross = al * bh + (uint32_t)mid;
    return (cross << 32 | (uint32_t)low) ^ (ah * bh + (mid >> 32) + (cross >> 32));
#endif
}

#define HASH_STEP UINT64_C(0x9E3779B97F4A7C15) /* 2^64 / golden ratio, odd */

/* Both secret words stand in every step, so that names cannot be chosen to collide. Words are in
 * the host's order: a hash never leaves the process. */
uint64_t sfti_names_hash(sft_span text, const uint64_t seed[2]) {
    const char *p = text.data;
    size_t left = text.len;
    uint64_t state = seed[0] ^ (uint64_t)left * HASH_STEP, key = seed[1], first = 0, last = 0;
    for (; left >= 16; left -= 16, p += 16, key += HASH_STEP) {
        memcpy(&first, p, sizeof first);
        memcpy(&last, p + 8, sizeof last);
        state = hash_fold(first ^ key, last ^ state);
    }
    first = last = 0;
    if (left >= 8) {
        memcpy(&first, p, sizeof first);
        memcpy(&last, p + left - 8, sizeof last);
    } else {
        for (size_t i = 0; i < left; i++) last = last << 8 | (uint8_t)p[i];
    }
    state = hash_fold(first ^ key ^ HASH_STEP, last ^ state);
    return hash_fold(state ^ seed[0], key ^ HASH_STEP);
}

/* So that there are at most 2^32 slots. */
#define NAMES_MOST (UINT32_MAX / 4 * 3)

/* A quarter of the slots is left empty, so that a search always ends. */
bool sfti_names_begin(sfti_names *names, size_t count, const uint64_t seed[2],
                      sfti_name_fn name, const void *ctx, sfti_arena *arena) {
    uint64_t slots = (uint64_t)count + count / 3 + 1;
    memset(names, 0, sizeof *names);
    if (count == 0) return true;
    if (count >= NAMES_MOST) return false;
    names->slots = sfti_arena_array(arena, slots, sizeof *names->slots);
    if (!names->slots) return false;
    memset(names->slots, 0, (size_t)slots * sizeof *names->slots);
    names->slot_count = slots;
    memcpy(names->seed, seed, sizeof names->seed);
    names->name = name;
    names->ctx = ctx;
    return true;
}

void sfti_names_prefetch(const sfti_names *names, uint64_t hash) {
#if defined(__GNUC__)
    __builtin_prefetch(&names->slots[(uint32_t)hash * names->slot_count >> 32], 1);
#else
    (void)names, (void)hash;
#endif
}

/* The slot that holds the name, or the empty one where it belongs. Any number of slots will do: a
 * power of two would be up to twice as many. */
static sfti_slot *find_slot(const sfti_names *names, sft_span name, uint64_t hash) {
    uint64_t first = (uint32_t)hash * names->slot_count >> 32;
    for (uint64_t i = first;; i = i + 1 < names->slot_count ? i + 1 : 0) {
        sfti_slot *slot = &names->slots[i];
        if (slot->entry == 0) return slot;
        if (slot->tag == (uint32_t)(hash >> 32)
            && sft_span_equal(names->name(names->ctx, slot->entry - 1), name))
            return slot;
    }
}

uint32_t sfti_names_put(sfti_names *names, sft_span name, uint64_t hash, uint32_t entry) {
    sfti_slot *slot = find_slot(names, name, hash);
    if (slot->entry == 0) {
        slot->entry = entry + 1;
        slot->tag = (uint32_t)(hash >> 32);
    }
    return slot->entry - 1;
}

uint32_t sfti_names_add(sfti_names *names, sft_span name, uint32_t entry) {
    return sfti_names_put(names, name, sfti_names_hash(name, names->seed), entry);
}

void sfti_names_replace(sfti_names *names, sft_span name, uint32_t entry) {
    find_slot(names, name, sfti_names_hash(name, names->seed))->entry = entry + 1;
}

uint32_t sfti_names_find(const sfti_names *names, sft_span name) {
    if (!names->slots) return SFTI_NO_NAME;
    /* an empty slot's 0 - 1 is SFTI_NO_NAME */
    return find_slot(names, name, sfti_names_hash(name, names->seed))->entry - 1;
}

bool sfti_may_be_alias(sft_pair pair) {
    return pair.key.len > 0 && memchr(pair.key.data, '.', pair.key.len) && pair.value.len > 0
        && memchr(pair.value.data, '.', pair.value.len);
}
