/* Exact sums of doubles and of their squares, and rounding them once. Tests: test_stats.c. */
#include "stats/stats.h"

#include <string.h>

/* ── Sums ── */

void sfti_wide_add(sfti_wide *to, unsigned bit, uint64_t value) {
    unsigned shift = bit % 32, at = bit / 32;
    uint64_t low = value << shift, high = shift ? value >> (64 - shift) : 0;
    uint32_t parts[3] = { (uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high };
    uint64_t carry = 0;
    for (unsigned i = 0; (i < 3 || carry) && at + i < SFTI_WIDE_LIMBS; i++) {
        carry += (uint64_t)to->limb[at + i] + (i < 3 ? parts[i] : 0);
        to->limb[at + i] = (uint32_t)carry;
        carry >>= 32;
    }
}

void sfti_wide_sum(sfti_wide *to, const sfti_wide *more) {
    uint64_t carry = 0;
    for (unsigned i = 0; i < SFTI_WIDE_LIMBS; i++) {
        carry += (uint64_t)to->limb[i] + more->limb[i];
        to->limb[i] = (uint32_t)carry;
        carry >>= 32;
    }
}

sfti_wide sfti_wide_difference(const sfti_wide *a, const sfti_wide *b, bool *negative) {
    sfti_wide out;
    uint64_t borrow = 0;
    unsigned top = SFTI_WIDE_LIMBS;
    while (top > 0 && a->limb[top - 1] == b->limb[top - 1]) top--;
    *negative = top > 0 && a->limb[top - 1] < b->limb[top - 1];
    if (*negative) {
        const sfti_wide *other = a;
        a = b;
        b = other;
    }
    for (unsigned i = 0; i < SFTI_WIDE_LIMBS; i++) {
        uint64_t part = (uint64_t)a->limb[i] - b->limb[i] - borrow;
        out.limb[i] = (uint32_t)part;
        borrow = part >> 63;
    }
    return out;
}

/* ── Products ── */

/* Limbs up to the last that is not 0. */
static unsigned wide_length(const sfti_wide *a) {
    unsigned length = SFTI_WIDE_LIMBS;
    while (length > 0 && a->limb[length - 1] == 0) length--;
    return length;
}

static sfti_wide wide_square(const sfti_wide *a) {
    sfti_wide out;
    unsigned length = wide_length(a), first = 0;
    memset(&out, 0, sizeof out);
    while (first < length && a->limb[first] == 0) first++;
    for (unsigned i = first; i < length; i++) {
        uint64_t carry = 0;
        unsigned at = i + first;
        for (unsigned j = first; j < length; j++, at++) {
            if (at >= SFTI_WIDE_LIMBS) break;
            carry += (uint64_t)a->limb[i] * a->limb[j] + out.limb[at];
            out.limb[at] = (uint32_t)carry;
            carry >>= 32;
        }
        for (; carry && at < SFTI_WIDE_LIMBS; at++) {
            carry += out.limb[at];
            out.limb[at] = (uint32_t)carry;
            carry >>= 32;
        }
    }
    return out;
}

/* ── Rounding ── */

/* (high * 2^64 + low) * 2^exponent, and a little more if `rest`. */
typedef struct wide_head {
    uint64_t high, low;
    int exponent;
    bool rest;
} wide_head;

static unsigned wide_bits(uint64_t value) {
    unsigned bits = 0;
    for (; value; value >>= 1) bits++;
    return bits;
}

static uint64_t wide_limb(const sfti_wide *a, int at) {
    return at >= 0 && at < SFTI_WIDE_LIMBS ? a->limb[at] : 0;
}

/* The 64 bits from `bit` on, which may lie below 0. */
static uint64_t wide_sixty_four(const sfti_wide *a, int bit) {
    int at = bit >= 0 ? bit / 32 : -((31 - bit) / 32);
    unsigned shift = (unsigned)(bit - 32 * at);
    uint64_t low = wide_limb(a, at) | wide_limb(a, at + 1) << 32;
    return shift ? low >> shift | wide_limb(a, at + 2) << (64 - shift) : low;
}

/* The highest `bits` (at most 128) bits of a, one less if that makes the exponent even and `even`
 * asks for it. */
static wide_head wide_head_of(const sfti_wide *a, int bits, int point, bool even) {
    unsigned length = wide_length(a);
    int all = length ? (int)(32 * (length - 1) + wide_bits(a->limb[length - 1])) : 0;
    int from = all - bits;
    if (even && (from - point) % 2 != 0) from++;
    bool below = from > 0 && from % 32
                 && (wide_limb(a, from / 32) & ((UINT32_C(1) << from % 32) - 1)) != 0;
    for (int i = 0; !below && i < from / 32 && i < SFTI_WIDE_LIMBS; i++) below = a->limb[i] != 0;
    return (wide_head){ wide_sixty_four(a, from + 64), wide_sixty_four(a, from), from - point,
                        below };
}

static void head_divide(wide_head *head, uint64_t n) {
    uint64_t left = head->high % n, low = 0;
    head->high /= n;
    for (int i = 63; i >= 0; i--) {
        bool over = left >> 63;
        left = left << 1 | (head->low >> i & 1);
        bool fits = over || left >= n;
        if (fits) left -= n;
        low = low << 1 | fits;
    }
    head->low = low;
    head->rest = head->rest || left != 0;
}

/* To nearest, ties to even. A result in the range of the doubles that were summed: never too
 * large. */
static double head_round(const wide_head *head) {
    int bits = head->high ? 64 + (int)wide_bits(head->high) : (int)wide_bits(head->low);
    int drop = bits - 53, least = -SFTI_WIDE_POINT - head->exponent;
    double value;
    if (bits == 0) return 0; /* what is left is below half the least double */
    if (drop < least) drop = least;
    if (drop > 127) return 0;
    uint64_t kept, half = 0;
    bool below = head->rest;
    if (drop <= 0) {
        kept = head->low << -drop;
    } else {
        kept = drop >= 64 ? head->high >> (drop - 64)
                          : head->low >> drop | head->high << (64 - drop);
        int at = drop - 1;
        half = (at >= 64 ? head->high >> (at - 64) : head->low >> at) & 1;
        if (at >= 64) below = below || head->low || (head->high & ((UINT64_C(1) << (at - 64)) - 1));
        else below = below || (head->low & ((UINT64_C(1) << at) - 1));
    }
    kept += half && (below || (kept & 1));
    /* A kept bit 52 is the implicit one of exponent 1; a carry moves on to the next exponent. */
    int exponent = drop + head->exponent + SFTI_WIDE_POINT;
    uint64_t pattern = kept + ((uint64_t)exponent << 52);
    memcpy(&value, &pattern, sizeof value);
    return value;
}

double sfti_wide_mean(const sfti_wide *a, uint64_t n) {
    wide_head head = wide_head_of(a, 128, SFTI_WIDE_POINT, false);
    head_divide(&head, n);
    return head_round(&head);
}

/* Turns the head of an even exponent and at most 122 bits into its root, of at most 61 bits. */
static void head_root(wide_head *head) {
    uint64_t root = 0, left = 0;
    for (int i = 60; i >= 0; i--) {
        uint64_t pair = 2 * i >= 64 ? head->high >> (2 * i - 64) : head->low >> (2 * i);
        left = left << 2 | (pair & 3);
        uint64_t trial = root << 2 | 1;
        bool fits = left >= trial;
        if (fits) left -= trial;
        root = root << 1 | fits;
    }
    head->high = root << 3;
    head->low = 0;
    head->exponent = head->exponent / 2 - 67;
    head->rest = head->rest || left != 0;
}

double sfti_wide_deviation(const sfti_wide *squares, const sfti_wide *sum, uint64_t n) {
    bool negative;
    sfti_wide all, square = wide_square(sum);
    memset(&all, 0, sizeof all);
    for (unsigned i = 0, length = wide_length(squares); i < length; i++) {
        sfti_wide_add(&all, 32 * i, (uint64_t)squares->limb[i] * (uint32_t)n);
        sfti_wide_add(&all, 32 * i + 32, (uint64_t)squares->limb[i] * (n >> 32));
    }
    sfti_wide variance = sfti_wide_difference(&all, &square, &negative);
    wide_head head = wide_head_of(&variance, 122, 2 * SFTI_WIDE_POINT, true);
    head_root(&head);
    head_divide(&head, n);
    return head_round(&head);
}
