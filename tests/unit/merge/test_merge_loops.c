/* The loops of merging: what is written for this processor gives the bits that portable C does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "merge/loops.h"

#include <string.h>

#define COUNT 1027

static uint64_t random_state = 7;

static uint64_t random_bits(void) {
    uint64_t z = (random_state += UINT64_C(0x9E3779B97F4A7C15));
    z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
    return z ^ z >> 31;
}

/* Of all sizes: ordinary ones, exact ones of F32, tiny and huge ones, zeros of both signs. */
static double random_value(void) {
    static const uint64_t odd[] = { 0, UINT64_C(1) << 63, 1, UINT64_C(0x5FEFFFFFFFFFFFFF),
                                    UINT64_C(0x47EFFFFFFFFFFFFF), UINT64_C(0x36A0000000000001),
                                    UINT64_C(0xB690000000000000) };
    uint64_t bits = random_bits(), how = random_bits() % 8;
    double value;
    if (how == 0) bits = odd[bits % (sizeof odd / sizeof *odd)];
    else if (how < 6) bits = (bits & ~(UINT64_C(0x7FF) << 52)) | (UINT64_C(1000) + bits % 40) << 52;
    else bits = (bits & ~(UINT64_C(0x7FF) << 52)) | (UINT64_C(520) + bits % 1000) << 52;
    if (how == 5) bits &= ~((UINT64_C(1) << 29) - 1);
    memcpy(&value, &bits, sizeof value);
    return value;
}

static double a[COUNT], b[COUNT], c[COUNT];

static void fill(void) {
    for (size_t i = 0; i < COUNT; i++) {
        a[i] = random_value();
        b[i] = random_value();
        c[i] = random_value();
    }
}

/* The portable ones (0), and others. */
static void check_equal(const sfti_merge_loops *other, size_t n) {
    static double one[2][COUNT], two[2][COUNT], three[2][COUNT], norms[2][3];
    static float floats[2][COUNT];
    static uint32_t keys[2][COUNT], spread[2][COUNT], picked[2][COUNT];
    static uint8_t kept[2][COUNT], drawn[2][COUNT];
    double *x[3] = { a, b, c };
    for (int k = 0; k < 2; k++) {
        const sfti_merge_loops *loops = k ? other : &sfti_merge_portable;
        memset(norms[k], 0, sizeof norms[k]);
        loops->to_odd(a, n, floats[k]);
        assert_true(loops->widen(floats[k], n, three[k]));
        loops->keys(a, b, n, keys[k]);
        loops->variances(x, 3, c, n, spread[k]);
        loops->mark(keys[k], n, keys[0][n / 2], kept[k]);
        loops->mark_ties(keys[k], n, keys[0][n / 3], 3, 7, kept[k]);
        loops->draw(n, n * 5, UINT64_C(1) << 52, n, drawn[k]);
        loops->norms(a, b, drawn[k], n, norms[k]);
        norms[k][2] = loops->product(a, b, n);
        memcpy(one[k], a, sizeof a);
        loops->differences(one[k], b, kept[k], n);
        loops->multiply(one[k], 0.7, n, two[k]);
        loops->add(c, 0.7, n, two[k]);
        loops->agree(a, b, -0.3, 0.9, 0.4, n, one[k], two[k]);
        loops->finish(a, one[k], two[k], 1e-6, 0.6, n, three[k]);
        loops->subtract(one[k], three[k], n);
    }
    assert_int_equal(other->greatest(a, n), sfti_merge_portable.greatest(a, n));
    uint64_t lost[2][2] = { { 1, 2 }, { 1, 2 } };
    for (size_t i = 0; i < 2; i++) (i ? &sfti_merge_portable : other)->vanish(a, n, 0.5, lost[i]);
    assert_memory_equal(lost[0], lost[1], sizeof lost[0]);
    for (size_t i = 0; i < n; i += 1 + n / 5) {
        uint32_t least = keys[0][i] & 0xFFFF8000u;
        for (uint32_t span = 1; span <= 1u << 15; span <<= 5)
            assert_int_equal(other->within(keys[0], n, keys[0][i], span),
                             sfti_merge_portable.within(keys[0], n, keys[0][i], span));
        size_t all = sfti_merge_portable.pick(keys[0], n, least, 1u << 15, picked[0]);
        assert_true(all > 0);
        assert_int_equal(sfti_merge_portable.within(keys[0], n, least, 1u << 15), all);
        assert_int_equal(other->pick(keys[0], n, least, 1u << 15, picked[1]), all);
        assert_memory_equal(picked[0], picked[1], all * sizeof **picked);
    }
    assert_memory_equal(floats[0], floats[1], n * sizeof(float));
    assert_memory_equal(keys[0], keys[1], n * sizeof(uint32_t));
    assert_memory_equal(spread[0], spread[1], n * sizeof(uint32_t));
    assert_memory_equal(kept[0], kept[1], n);
    assert_memory_equal(drawn[0], drawn[1], n);
    assert_memory_equal(norms[0], norms[1], sizeof norms[0]);
    assert_memory_equal(one[0], one[1], n * sizeof(double));
    assert_memory_equal(two[0], two[1], n * sizeof(double));
    assert_memory_equal(three[0], three[1], n * sizeof(double));
}

static void test_equal(void **state) {
    const sfti_merge_loops *other;
    (void)state;
    for (size_t i = 1; (other = sfti_merge_loops_at(i)) != NULL; i++)
        for (size_t n = 0; n < COUNT; n += n < 40 ? 1 : 329) {
            fill();
            for (size_t k = 0; k + 4 < n; k += 5) a[k + 4] = a[k], b[k + 4] = b[k]; /* equal keys */
            check_equal(other, n);
        }
}

/* What is not finite is told wherever it stands. */
static void test_widen(void **state) {
    static const uint32_t bad[] = { 0x7F800000u, 0xFF800000u, 0x7FC00000u, 0x7F800001u };
    const sfti_merge_loops *loops;
    float values[70] = { 0 };
    double out[70];
    (void)state;
    for (size_t i = 0; (loops = sfti_merge_loops_at(i)) != NULL; i++)
        for (size_t at = 0; at < 70; at++) {
            values[at] = -3.402823466e38f;
            assert_true(loops->widen(values, 70, out));
            for (size_t k = 0; k < sizeof bad / sizeof *bad; k++) {
                memcpy(&values[at], &bad[k], sizeof *bad);
                assert_false(loops->widen(values, 70, out));
                assert_true(loops->widen(values, at, out));
            }
            values[at] = 0;
        }
}

/* As one by one, wherever the last that is left stands. */
static void test_ties(void **state) {
    static uint32_t keys[COUNT];
    const sfti_merge_loops *loops;
    (void)state;
    for (size_t i = 0; i < COUNT; i++) keys[i] = (uint32_t)(random_bits() % 4);
    for (size_t i = 0; (loops = sfti_merge_loops_at(i)) != NULL; i++)
        for (uint64_t ties = 0; ties < COUNT / 3; ties += 7) {
            uint8_t kept[COUNT], want[COUNT];
            uint64_t seen = 3, all = 0;
            for (size_t k = 0; k < COUNT; k++) kept[k] = want[k] = keys[k] >= 2;
            loops->mark_ties(keys, COUNT, 2, seen, ties, kept);
            for (size_t k = 0; k < COUNT; k++) {
                if (keys[k] == 2) want[k] = seen++ < ties;
                all += keys[k] == 2;
            }
            assert_memory_equal(kept, want, COUNT);
            assert_int_equal(loops->within(keys, COUNT, 2, 1), all);
        }
}

/* By the definition: what is cut off towards zero, with an odd last bit if it was not exact. */
static void test_to_odd(void **state) {
    static float out[COUNT];
    (void)state;
    for (int round = 0; round < 50; round++) {
        fill();
        sfti_merge_loops_best()->to_odd(a, COUNT, out);
        for (size_t i = 0; i < COUNT; i++) {
            double size = a[i] < 0 ? -a[i] : a[i], back = out[i] < 0 ? -out[i] : out[i];
            uint32_t bits, next;
            float above;
            memcpy(&bits, &out[i], sizeof bits);
            if (!(back < size || back > size)) continue;
            assert_true(bits & 1);
            next = (bits & 0x7FFFFFFFu) + (back < size ? 1 : -1u);
            memcpy(&above, &next, sizeof above);
            assert_true(back < size ? (double)above > size : (double)above < size);
        }
    }
}

static void test_agree(void **state) {
    static const double values[] = { 1, -1, 2, -2, 0, -0.0 }, signs[] = { 0, -0.0, -3, -3, 1, -1 };
    double sums[6] = { 0 }, divisors[6] = { 0 };
    (void)state;
    sfti_merge_loops_best()->agree(values, signs, 1, 10, 0.5, 6, sums, divisors);
    const double want[] = { 10, 0, 0, -20, 0, 0 }, shares[] = { 0.5, 0, 0, 0.5, 0, 0 };
    for (size_t i = 0; i < 6; i++) {
        assert_true(!(sums[i] < want[i]) && !(sums[i] > want[i]));
        assert_true(!(divisors[i] < shares[i]) && !(divisors[i] > shares[i]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_equal),
        cmocka_unit_test(test_widen),
        cmocka_unit_test(test_ties),
        cmocka_unit_test(test_to_odd),
        cmocka_unit_test(test_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
