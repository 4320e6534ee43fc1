/* Names that collide under the hashes a naive table would use: at each stage two blocks of
 * five characters that lead from the same state to the same next one, so that every choice
 * of blocks gives the same hash. */
#ifndef HOSTILE_COLLIDE_H
#define HOSTILE_COLLIDE_H

#include <stdint.h>

#define STAGES 20 /* 2^20 names */
#define BLOCK 5
#define COLLIDE_NAME (STAGES * BLOCK)

typedef uint32_t (*hash_step)(uint32_t state, uint8_t byte);

uint32_t hash_djb2(uint32_t state, uint8_t byte);
uint32_t hash_fnv1a(uint32_t state, uint8_t byte);
uint32_t hash_fnv1a_64_low(uint32_t state, uint8_t byte);
uint32_t hash_crc32(uint32_t state, uint8_t byte);

typedef struct collision {
    char block[STAGES][2][BLOCK];
} collision;

/* 0, or -1 when out of memory or luck. */
int collide(hash_step step, uint32_t start, collision *out);
/* The i-th of 2^STAGES names. */
void collide_name(const collision *c, uint32_t i, char out[COLLIDE_NAME]);

#endif
