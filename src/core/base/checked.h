/* Arithmetic on sizes: every function returns false, *out untouched, on overflow. */
#ifndef SFTI_CHECKED_H
#define SFTI_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool sfti_add(uint64_t a, uint64_t b, uint64_t *out) {
    if (a > UINT64_MAX - b) return false;
    *out = a + b;
    return true;
}

static inline bool sfti_mul(uint64_t a, uint64_t b, uint64_t *out) {
#if defined(__GNUC__)
    uint64_t product;
    if (__builtin_mul_overflow(a, b, &product)) return false;
    *out = product;
    return true;
#else
    if (a != 0 && b > UINT64_MAX / a) return false;
    *out = a * b;
    return true;
#endif
}

/* A sum that stops at 2^64 - 1, which is SFT_SIZE_UNKNOWN too. */
static inline void sfti_total_add(uint64_t *sum, uint64_t more) {
    if (!sfti_add(*sum, more, sum)) *sum = UINT64_MAX;
}

/* Up to the next multiple of align, a power of two. */
static inline bool sfti_align_up(uint64_t a, uint64_t align, uint64_t *out) {
    if (!sfti_add(a, align - 1, out)) return false;
    *out &= ~(align - 1);
    return true;
}

/* Whether a count of bytes is addressable on this host. */
#define sfti_fits_size(a) ((uint64_t)(a) <= (uint64_t)(SIZE_MAX >> 1))

/* What cannot be, and is checked all the same, for memory hangs on it. The condition itself; the
 * line before a use says why it never holds. In a coverage build it is false and no branch, and
 * the program stops where it does hold. */
#if defined(SFT_COVERAGE)
static inline void sfti_never_holds(bool condition) {
    if (condition) __builtin_trap(); /* unreachable */
}
#define sfti_never(condition) (sfti_never_holds(condition), false)
#else
#define sfti_never(condition) (condition)
#endif

#endif
