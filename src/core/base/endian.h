/* Little-endian integers at any address. */
#ifndef SFTI_ENDIAN_H
#define SFTI_ENDIAN_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

/* Whether integers and floats in memory are in this order. */
static inline bool sfti_is_little(void) {
    const uint16_t one = 1;
    uint8_t first;
    memcpy(&first, &one, 1);
    return first == 1;
}

static inline uint16_t sfti_get_u16(const void *at) {
    const uint8_t *b = at;
    return (uint16_t)(b[0] | b[1] << 8);
}

static inline uint32_t sfti_get_u32(const void *at) {
    const uint8_t *b = at;
    return (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
}

static inline uint64_t sfti_get_u64(const void *at) {
    const uint8_t *b = at;
    return (uint64_t)b[0] | (uint64_t)b[1] << 8 | (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24
           | (uint64_t)b[4] << 32 | (uint64_t)b[5] << 40 | (uint64_t)b[6] << 48
           | (uint64_t)b[7] << 56;
}

static inline void sfti_put_u32(void *at, uint32_t value) {
    uint8_t *b = at;
    for (int i = 0; i < 4; i++) b[i] = (uint8_t)(value >> (8 * i));
}

static inline void sfti_put_u64(void *at, uint64_t value) {
    uint8_t *b = at;
    for (int i = 0; i < 8; i++) b[i] = (uint8_t)(value >> (8 * i));
}

#endif
