/* Exact sums: integers wide enough for any number of doubles and of their squares. */
#ifndef SFTI_WIDE_H
#define SFTI_WIDE_H

#include <stdbool.h>
#include <stdint.h>

/* Units of a sum are 2^-SFTI_WIDE_POINT, the least double; those of a sum of squares its square.
 * 2^64 squares of the greatest double, times 2^64, fit. */
#define SFTI_WIDE_POINT 1074
#define SFTI_WIDE_LIMBS 140

/* Not negative; the least limb first. All zero is 0. */
typedef struct sfti_wide {
    uint32_t limb[SFTI_WIDE_LIMBS];
} sfti_wide;

/* to += value * 2^bit, in units. */
void sfti_wide_add(sfti_wide *to, unsigned bit, uint64_t value);
void sfti_wide_sum(sfti_wide *to, const sfti_wide *more);

/* a / n as a number (not in units), rounded to nearest. n is not 0. */
double sfti_wide_mean(const sfti_wide *a, uint64_t n);
/* a - b; *negative if b is greater, and then b - a. */
sfti_wide sfti_wide_difference(const sfti_wide *a, const sfti_wide *b, bool *negative);
/* sqrt(n * squares - sum^2) / n: squares in units of squares. */
double sfti_wide_deviation(const sfti_wide *squares, const sfti_wide *sum, uint64_t n);

#endif
