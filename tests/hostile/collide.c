#include "collide.h"

#include <stdlib.h>
#include <string.h>

uint32_t hash_djb2(uint32_t state, uint8_t byte) {
    return state * 33 + byte;
}

uint32_t hash_fnv1a(uint32_t state, uint8_t byte) {
    return (state ^ byte) * UINT32_C(16777619);
}

/* The low half of the 64-bit FNV-1a depends on nothing but itself. */
uint32_t hash_fnv1a_64_low(uint32_t state, uint8_t byte) {
    return (state ^ byte) * UINT32_C(0x1b3);
}

uint32_t hash_crc32(uint32_t state, uint8_t byte) {
    state ^= byte;
    for (int i = 0; i < 8; i++) state = state >> 1 ^ (UINT32_C(0xEDB88320) & (0 - (state & 1)));
    return state;
}

/* The n-th block: printable characters but quote and backslash, well spread. */
static void spell(uint32_t n, char out[BLOCK]) {
    uint64_t number = (uint64_t)n * UINT64_C(0x9E3779B97F4A7C15) >> 31;
    for (int i = 0; i < BLOCK; i++, number /= 92) {
        out[i] = (char)(' ' + number % 92 + (number % 92 > 1));
        if (out[i] >= '\\') out[i]++;
    }
}

static uint32_t hash_block(hash_step step, uint32_t state, const char block[BLOCK]) {
    for (int i = 0; i < BLOCK; i++) state = step(state, (uint8_t)block[i]);
    return state;
}

/* Blocks already tried, by hash; number + 1, so that 0 is an empty place. */
typedef struct tried { uint32_t hash, number; } tried;
#define TRIED_MAX (UINT32_C(1) << 20)
#define TRIED_ROOM (2 * TRIED_MAX)

static int find_pair(hash_step step, uint32_t *state, tried *seen, char pair[2][BLOCK]) {
    memset(seen, 0, TRIED_ROOM * sizeof *seen);
    for (uint32_t n = 0; n < TRIED_MAX; n++) {
        spell(n, pair[1]);
        uint32_t hash = hash_block(step, *state, pair[1]);
        uint32_t place = hash * UINT32_C(2654435761) % TRIED_ROOM;
        while (seen[place].number && seen[place].hash != hash) place = (place + 1) % TRIED_ROOM;
        if (seen[place].number) {
            spell(seen[place].number - 1, pair[0]);
            *state = hash;
            return 0;
        }
        seen[place] = (tried){ hash, n + 1 };
    }
    return -1;
}

int collide(hash_step step, uint32_t start, collision *out) {
    tried *seen = malloc(TRIED_ROOM * sizeof *seen);
    int bad = seen ? 0 : -1;
    for (int i = 0; i < STAGES && !bad; i++) bad = find_pair(step, &start, seen, out->block[i]);
    free(seen);
    return bad;
}

void collide_name(const collision *c, uint32_t i, char out[COLLIDE_NAME]) {
    for (int stage = 0; stage < STAGES; stage++)
        memcpy(out + stage * BLOCK, c->block[stage][i >> stage & 1], BLOCK);
}
