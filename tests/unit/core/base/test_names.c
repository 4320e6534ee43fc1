#include "base/names.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 5000

static char texts[COUNT][24];

static sft_span text_of(const void *ctx, uint32_t entry) {
    (void)ctx;
    return sft_span_cstr(texts[entry]);
}

static void names_are_found_again(void **state) {
    (void)state;
    const uint64_t seed[2] = { 1, 2 };
    sfti_arena arena = { 0 };
    sfti_names names;
    arena.alloc = sfti_allocator(NULL);
    assert_true(sfti_names_begin(&names, COUNT, seed, text_of, NULL, &arena));
    for (uint32_t i = 0; i < COUNT; i++) {
        (void)snprintf(texts[i], sizeof texts[i], "%.*s.%u", (int)(i % 17),
                       "a.very.long.prefix", i);
        sft_span name = text_of(NULL, i);
        assert_int_equal(sfti_names_put(&names, name, sfti_names_hash(name, seed), i), i);
    }
    for (uint32_t i = 0; i < COUNT; i++) {
        sft_span name = text_of(NULL, i);
        assert_int_equal(sfti_names_find(&names, name), i);
        assert_int_equal(sfti_names_put(&names, name, sfti_names_hash(name, seed), 1), i);
    }
    assert_int_equal(sfti_names_find(&names, sft_span_cstr("absent")), SFTI_NO_NAME);
    memcpy(texts[7], texts[9], sizeof texts[7]);
    sfti_names_replace(&names, text_of(NULL, 9), 7);
    assert_int_equal(sfti_names_find(&names, text_of(NULL, 9)), 7);
    sfti_arena_free(&arena);
}

static void no_names_are_a_table_too(void **state) {
    (void)state;
    const uint64_t seed[2] = { 1, 2 };
    sfti_arena arena = { 0 };
    sfti_names names;
    arena.alloc = sfti_allocator(NULL);
    assert_true(sfti_names_begin(&names, 0, seed, text_of, NULL, &arena));
    assert_int_equal(sfti_names_find(&names, sft_span_cstr("")), SFTI_NO_NAME);
    assert_int_equal(arena.bytes, 0);
}

/* More names than memory has bytes for, at each place where that shows. */
static void no_table_is_too_large_to_refuse(void **state) {
    (void)state;
    static const size_t counts[] = { SIZE_MAX, SIZE_MAX / 8 * 7, SIZE_MAX / 2, SIZE_MAX / 8,
                                     SIZE_MAX / 32 };
    const uint64_t seed[2] = { 1, 2 };
    sfti_arena arena = { 0 };
    sfti_names names;
    arena.alloc = sfti_allocator(NULL);
    for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
        assert_false(sfti_names_begin(&names, counts[i], seed, text_of, NULL, &arena));
    assert_int_equal(arena.bytes, 0);
}

/* Every length and every bit counts, and so does the seed. */
static void hash_sees_every_bit(void **state) {
    (void)state;
    const uint64_t seed[2] = { 3, 4 }, other[2] = { 3, 5 };
    for (size_t len = 0; len < 80; len++) {
        char text[80] = { 0 };
        sft_span span = { text, len };
        uint64_t hash = sfti_names_hash(span, seed);
        assert_int_not_equal(hash, sfti_names_hash(span, other));
        for (size_t bit = 0; bit < len * 8; bit++) {
            text[bit / 8] = (char)(1 << (bit % 8));
            assert_int_not_equal(hash, sfti_names_hash(span, seed));
            text[bit / 8] = 0;
        }
        span.len = len + 1;
        if (span.len < sizeof text) assert_int_not_equal(hash, sfti_names_hash(span, seed));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_found_again),
        cmocka_unit_test(no_names_are_a_table_too),
        cmocka_unit_test(no_table_is_too_large_to_refuse),
        cmocka_unit_test(hash_sees_every_bit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
