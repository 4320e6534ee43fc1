/* Blocks of GGUF: values as gguf-py computes them, and the same from every variant. */
#include "base/crc32.h"
#include "base/endian.h"
#include "formats/gguf/gguf.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#define TYPES 43
#define BLOCKS 2000

/* Checksums of the F32 of 2,000 blocks of random bytes, every NaN as 0x7fc00000: of gguf-py 0.19.0,
 * with which tests/import/gguf_cases.py compares this table. */
static const struct golden {
    uint32_t number, crc32;
} golden[] = {
    { 2, 0xd7ee88f0 }, /* Q4_0 */
    { 3, 0xeec92adc }, /* Q4_1 */
    { 6, 0xb0f5dbe2 }, /* Q5_0 */
    { 7, 0xf252896e }, /* Q5_1 */
    { 8, 0xbcccf398 }, /* Q8_0 */
    { 10, 0xbb4d46e2 }, /* Q2_K */
    { 11, 0x55af054e }, /* Q3_K */
    { 12, 0x2ef4bd77 }, /* Q4_K */
    { 13, 0x578fa262 }, /* Q5_K */
    { 14, 0xc66465c6 }, /* Q6_K */
    { 16, 0xaaa1cbe0 }, /* IQ2_XXS */
    { 17, 0x503aa931 }, /* IQ2_XS */
    { 18, 0xa1fe5163 }, /* IQ3_XXS */
    { 19, 0x3d438426 }, /* IQ1_S */
    { 20, 0x9af66240 }, /* IQ4_NL */
    { 21, 0xc59bb531 }, /* IQ3_S */
    { 22, 0x791a6350 }, /* IQ2_S */
    { 23, 0xed21a19e }, /* IQ4_XS */
    { 29, 0x7525bd9c }, /* IQ1_M */
    { 34, 0x3932624f }, /* TQ1_0 */
    { 35, 0x63e6f0ee }, /* TQ2_0 */
    { 39, 0xde311796 }, /* MXFP4 */
    { 40, 0x0c1115b3 }, /* NVFP4 */
};

static void fill_random(uint64_t seed, uint8_t *out, size_t len) {
    for (uint64_t i = 0; i < len; i += 8) {
        uint64_t z = seed + (i / 8 + 1) * UINT64_C(0x9e3779b97f4a7c15);
        z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
        z ^= z >> 31;
        for (uint64_t b = 0; b < 8 && i + b < len; b++) out[i + b] = (uint8_t)(z >> (8 * b));
    }
}

/* The bits, little-endian; all NaN alike. */
static void put_bits(const float *values, size_t count, uint8_t *out) {
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        sfti_put_u32(out + 4 * i, values[i] != values[i] ? 0x7fc00000 : bits);
    }
}

static uint8_t *unpack(sfti_gguf_unpack function, const sfti_codec *codec, const uint8_t *in,
                       size_t count) {
    size_t values = count * codec->elements;
    float *out = malloc(sizeof *out * (values + 1));
    uint8_t *bits = malloc(4 * values);
    assert_non_null(out);
    assert_non_null(bits);
    out[values] = 12345;
    function(in, out, count);
    assert_true(out[values] == 12345);
    put_bits(out, values, bits);
    free(out);
    return bits;
}

static void test_values(void **state) {
    sfti_crc32_table table;
    (void)state;
    sfti_crc32_begin(&table, false);
    for (size_t i = 0; i < sizeof golden / sizeof *golden; i++) {
        const sfti_codec *codec = &sfti_gguf_type_of(golden[i].number)->codec;
        uint8_t *in = malloc((size_t)codec->stored * BLOCKS);
        assert_non_null(in);
        fill_random(golden[i].number, in, (size_t)codec->stored * BLOCKS);
        uint8_t *bits = unpack(codec->unpack, codec, in, BLOCKS);
        uint32_t crc32 = sfti_crc32_add(&table, 0, bits, (size_t)4 * codec->elements * BLOCKS);
        if (crc32 != golden[i].crc32) fail_msg("%s: 0x%08x", codec->name, crc32);
        free(bits);
        free(in);
    }
}

/* Bytes in which scales are zero, infinite, NaN or subnormal more often than in random ones. */
static void fill_edges(uint64_t seed, uint8_t *in, const sfti_codec *codec, size_t count) {
    static const uint8_t edges[] = { 0x00, 0x80, 0x7c, 0xfc, 0x7f, 0xff, 0x01, 0x7b };
    uint8_t random[4];
    fill_random(seed, in, codec->stored * count);
    for (size_t i = 0; i < count; i++) {
        fill_random(seed + i, random, sizeof random);
        for (size_t at = 0; random[0] % 4 == 0 && at < codec->stored; at++)
            if (in[i * codec->stored + at] % 8 < random[1] % 8)
                in[i * codec->stored + at] = edges[(at + random[2]) % sizeof edges];
    }
}

static void test_variants(void **state) {
    unsigned compared = 0, plain = 0;
    (void)state;
    for (uint32_t number = 0; number < TYPES; number++) {
        const sfti_codec *codec = &sfti_gguf_type_of(number)->codec;
        sfti_gguf_unpack fast = sfti_gguf_avx2(number);
        plain += codec->unpack != NULL;
        assert_true(sfti_gguf_fastest(number) == (fast ? fast : codec->unpack));
        if (!fast) continue;
        for (size_t count = 1; count <= BLOCKS; count = count * 4 + 1) {
            uint8_t *in = malloc(count * codec->stored); /* exact, for the sanitizers */
            assert_non_null(in);
            fill_edges(count, in, codec, count);
            uint8_t *first = unpack(codec->unpack, codec, in, count);
            uint8_t *second = unpack(fast, codec, in, count);
            if (memcmp(first, second, 4 * count * codec->elements) != 0)
                fail_msg("%s: %zu blocks", codec->name, count);
            free(first);
            free(second);
            free(in);
        }
        compared++;
    }
    assert_int_equal(plain, 25);
    assert_true(compared == 0 || compared >= 22); /* none where there is no AVX2 */
}

/* Types that gguf-py 0.19 does not compute: Q1_0 is a sign, the lowest bit first; Q2_0 is two bits
 * less one. */
static void test_by_hand(void **state) {
    uint8_t one[18] = { 0x00, 0xbc, 0x05 }, two[18] = { 0x00, 0x40, 0xe4 };
    float out[128];
    (void)state;
    sfti_gguf_q1_0(one, out, 1);
    for (size_t i = 0; i < 128; i++) assert_true(out[i] == (i == 0 || i == 2 ? -1.0f : 1.0f));
    sfti_gguf_q2_0(two, out, 1);
    const float first[] = { -2, 0, 2, 4 };
    for (size_t i = 0; i < 64; i++) assert_true(out[i] == (i < 4 ? first[i] : -2));
}

static void test_types(void **state) {
    (void)state;
    for (uint32_t number = 0; number < TYPES; number++) {
        const sfti_gguf_type *type = sfti_gguf_type_of(number);
        bool plain = !type->refused && !type->codec.unpack;
        assert_non_null(type->codec.name);
        assert_true(type->codec.elements > 0);
        assert_true(!type->codec.unpack || !type->refused);
        if (!plain) continue;
        assert_int_equal(type->codec.stored * 8, sft_dtype_describe(type->dtype)->bits);
        assert_string_equal(type->codec.name, sft_dtype_describe(type->dtype)->name);
    }
    assert_non_null(sfti_gguf_type_of(TYPES)->refused);
    assert_int_equal(sfti_gguf_type_of(UINT32_MAX)->codec.stored, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values), cmocka_unit_test(test_variants),
        cmocka_unit_test(test_by_hand), cmocka_unit_test(test_types),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
