#include "set/names.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
#include "os/os.h"

#include <string.h>

/* ── SipHash-1-3 ── */

static inline uint64_t sip_turn(uint64_t x, int by) {
    return x << by | x >> (64 - by);
}

static inline void sip_round(uint64_t v[4]) {
    v[0] += v[1];
    v[2] += v[3];
    v[1] = sip_turn(v[1], 13) ^ v[0];
    v[3] = sip_turn(v[3], 16) ^ v[2];
    v[0] = sip_turn(v[0], 32);
    v[2] += v[1];
    v[0] += v[3];
    v[1] = sip_turn(v[1], 17) ^ v[2];
    v[3] = sip_turn(v[3], 21) ^ v[0];
    v[2] = sip_turn(v[2], 32);
}

static inline void sip_word(uint64_t v[4], uint64_t word) {
    v[3] ^= word;
    sip_round(v);
    v[0] ^= word;
}

static uint64_t sip_last_word(sft_span text) {
    uint8_t tail[8] = { 0 };
    size_t left = text.len & 7;
    if (left) memcpy(tail, text.data + (text.len - left), left);
    return sfti_get_u64(tail) | (uint64_t)text.len << 56;
}

static uint64_t name_hash(const uint64_t seed[2], sft_span text) {
    uint64_t v[4] = { seed[0] ^ UINT64_C(0x736f6d6570736575), seed[1] ^ UINT64_C(0x646f72616e646f6d),
                      seed[0] ^ UINT64_C(0x6c7967656e657261), seed[1] ^ UINT64_C(0x7465646279746573) };
    for (size_t i = 0; i + 8 <= text.len; i += 8) sip_word(v, sfti_get_u64(text.data + i));
    sip_word(v, sip_last_word(text));
    v[2] ^= 0xff;
    for (int i = 0; i < 3; i++) sip_round(v);
    return v[0] ^ v[1] ^ v[2] ^ v[3];
}

/* ── Table ── */

/* Power of two, at least twice the names, so that an empty slot always ends a search. */
static bool names_room(size_t count, uint64_t *slots, uint64_t *bytes) {
    uint64_t least;
    if (!sfti_mul(count, 2, &least)) return false;
    *slots = 8;
    while (*slots < least)
        if (!sfti_mul(*slots, 2, slots)) return false;
    return sfti_mul(*slots, sizeof(sfti_names_slot), bytes) && sfti_fits_size(*bytes);
}

sft_code sfti_names_begin(sfti_names *names, size_t count,
                          sft_span (*name)(const void *ctx, uint32_t entry),
                          const void *ctx, sfti_arena *arena, sft_error *err) {
    uint64_t slots, bytes;
    if (count >= SFTI_NO_NAME)
        return sfti_fail(err, SFT_TOO_MANY_TENSORS, SFT_NO_OFFSET,
                         "expected fewer than 4294967295 tensors, found %llu",
                         (unsigned long long)count);
    if (!names_room(count, &slots, &bytes)) return sfti_fail_memory(err, UINT64_MAX);
    if (os_random(names->seed, sizeof names->seed)) {
        names->seed[0] = os_now_ns();
        names->seed[1] = (uint64_t)(uintptr_t)names ^ names->seed[0] << 32;
    }
    names->slots = sfti_arena_take(arena, (size_t)bytes);
    if (!names->slots) return sfti_fail_memory(err, bytes);
    memset(names->slots, 0xff, (size_t)bytes);
    names->mask = slots - 1;
    names->name = name;
    names->ctx = ctx;
    return SFT_OK;
}

/* The slot that holds the name, or the empty one where it belongs. */
static sfti_names_slot *names_slot(const sfti_names *names, sft_span name, uint32_t *tag) {
    uint64_t hash = name_hash(names->seed, name);
    *tag = (uint32_t)(hash >> 32);
    for (uint64_t at = hash & names->mask;; at = (at + 1) & names->mask) {
        sfti_names_slot *slot = &names->slots[at];
        if (slot->entry == SFTI_NO_NAME) return slot;
        if (slot->tag == *tag && sft_span_equal(names->name(names->ctx, slot->entry), name))
            return slot;
    }
}

uint32_t sfti_names_put(sfti_names *names, sft_span name, uint32_t entry) {
    uint32_t tag;
    sfti_names_slot *slot = names_slot(names, name, &tag);
    if (slot->entry == SFTI_NO_NAME) *slot = (sfti_names_slot){ entry, tag };
    return slot->entry;
}

uint32_t sfti_names_find(const sfti_names *names, sft_span name) {
    uint32_t tag;
    return names_slot(names, name, &tag)->entry;
}
