/* Sines, angles and products that are the same on every machine: additions, multiplications and
 * divisions of F64 in an order of their own. Tests: test_merge.c. */
#include "merge/work.h"

#include "base/number.h"

#define HALF_PI 1.57079632679489655800e+00
#define HALF_PI_REST 6.12323399573676603587e-17
#define TURNS_MOST 1e6 /* quarter turns: beyond them nothing is left of an angle's digits */

/* For an angle of at most an eighth of a turn. */
static double small_sine(double x) {
    double square = x * x, term = x, sum = x;
    for (int k = 2; k < 20; k += 2) {
        term = -term * square / (double)(k * (k + 1));
        sum += term;
    }
    return sum;
}

static double small_cosine(double x) {
    double square = x * x, term = 1, sum = 1;
    for (int k = 1; k < 19; k += 2) {
        term = -term * square / (double)(k * (k + 1));
        sum += term;
    }
    return sum;
}

static double turned(double x, int quarters) {
    double turns = x / HALF_PI;
    if (!(turns < TURNS_MOST && turns > -TURNS_MOST)) return 0;
    int64_t whole = (int64_t)(turns + (turns < 0 ? -0.5 : 0.5));
    double rest = x - (double)whole * HALF_PI - (double)whole * HALF_PI_REST;
    switch ((whole + quarters) & 3) {
    case 0: return small_sine(rest);
    case 1: return small_cosine(rest);
    case 2: return -small_sine(rest);
    default: return -small_cosine(rest);
    }
}

double sfti_merge_sine(double x) { return turned(x, 0); }
double sfti_merge_cosine(double x) { return turned(x, 1); }

/* By the tangent of half the angle, which is halved twice. */
double sfti_merge_arc_cosine(double x) {
    if (x < 0) return 2 * HALF_PI - sfti_merge_arc_cosine(-x);
    if (x >= 1) return 0;
    double t = sfti_root((1 - x) / (1 + x));
    for (int i = 0; i < 2; i++) t = t / (1 + sfti_root(1 + t * t));
    double square = t * t, power = t, sum = 0;
    for (int k = 1; k < 27; k += 2) {
        sum += power / (double)k;
        power = -power * square;
    }
    return 8 * sum;
}

void sfti_merge_products(double *const *x, size_t count, uint64_t first, uint64_t n, double *sums) {
    const sfti_merge_loops *loops = sfti_merge_loops_best();
    for (size_t i = 0; i < count; i++)
        for (size_t k = i; k < count; k++)
            *sums++ = loops->product(x[i] + first, x[k] + first, (size_t)n);
}
