#include "base/order.h"

#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static void natural_order_counts(void **state) {
    (void)state;
    static const char *const sorted[] = {
        "", "a", "a0", "a00", "a01", "a1", "a1b", "a2", "a10", "a10b", "a18446744073709551617",
        "b", "layer.2.w", "layer.10.w", "layer.10.x", "layer.x",
    };
    size_t count = sizeof sorted / sizeof *sorted;
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++) {
            int sign = sfti_natural_compare(sft_span_cstr(sorted[i]), sft_span_cstr(sorted[k]));
            int want = (i > k) - (i < k);
            if ((sign > 0) - (sign < 0) != want) fail_msg("%s, %s", sorted[i], sorted[k]);
        }
}

static void bytes_are_unsigned(void **state) {
    (void)state;
    assert_true(sfti_bytes_compare(sft_span_cstr("\xc3"), sft_span_cstr("z")) > 0);
    assert_true(sfti_bytes_compare(sft_span_cstr("ab"), sft_span_cstr("a")) > 0);
    assert_int_equal(sfti_bytes_compare(sft_span_cstr(""), sft_span_cstr("")), 0);
}

/* Compares the high halves only, so that the low ones show whether equals keep place. */
static int compare_high(const void *ctx, uint32_t a, uint32_t b) {
    const uint32_t *keys = ctx;
    return (keys[a] > keys[b]) - (keys[a] < keys[b]);
}

static void sort_is_stable(void **state) {
    (void)state;
    static uint32_t keys[1000], order[1000], scratch[1000];
    for (uint32_t count = 0; count < 1000; count += 37) {
        for (uint32_t i = 0; i < count; i++) {
            keys[i] = (i * 7919 + count) % 31;
            order[i] = i;
        }
        sfti_sort(order, scratch, count, compare_high, keys);
        for (uint32_t i = 1; i < count; i++) {
            assert_true(keys[order[i - 1]] <= keys[order[i]]);
            if (keys[order[i - 1]] == keys[order[i]]) assert_true(order[i - 1] < order[i]);
        }
    }
}

static void copies_of_spans(void **state) {
    (void)state;
    char into[8];
    const sft_span none = { NULL, 0 }, literal = SFT_SPAN_INIT("word"), nul = { "a\0b", 3 };
    assert_int_equal(literal.len, 4);
    memset(into, 'x', sizeof into);
    assert_int_equal(sft_span_copy(literal, into, sizeof into), 4);
    assert_string_equal(into, "word");
    assert_int_equal(sft_span_copy(literal, into, 5), 4);
    assert_string_equal(into, "word");
    assert_int_equal(sft_span_copy(literal, into, 4), 4); /* cut: 4 are as much as cap */
    assert_string_equal(into, "wor");
    assert_int_equal(sft_span_copy((sft_span){ "m\xc3\xa9", 3 }, into, 3), 3);
    assert_string_equal(into, "m");
    assert_int_equal(sft_span_copy(none, into, 1), 0);
    assert_string_equal(into, "");
    assert_int_equal(sft_span_copy(nul, into, sizeof into), 3);
    assert_memory_equal(into, "a\0b\0", 4);
    assert_int_equal(sft_span_copy(literal, NULL, 0), 4);
    (void)snprintf(into, sizeof into, "<" SFT_FMT ">", SFT_ARG(literal));
    assert_string_equal(into, "<word>");
}

static void escapes_of_spans(void **state) {
    (void)state;
    static const char text[] = "a\x1b\n\xc3\xa9\xff\\\0";
    static const char whole[] = "a\\x1b\\n\xc3\xa9\\xff\\\\\\x00";
    const size_t ends[] = { 0, 1, 5, 7, 9, 13, 15, 19 }; /* of whole escapes and characters */
    const sft_span span = { text, sizeof text - 1 }, none = { NULL, 0 };
    char into[32];
    for (size_t cap = 0; cap <= sizeof into; cap++) {
        size_t fits = 0;
        for (size_t i = 0; i < 8; i++) fits = ends[i] < cap ? ends[i] : fits;
        memset(into, 'x', sizeof into);
        assert_int_equal(sft_span_escape(span, cap ? into : NULL, cap), sizeof whole - 1);
        assert_memory_equal(into, cap ? whole : "x", cap ? fits : 1);
        assert_int_equal(into[fits], cap ? '\0' : 'x');
    }
    assert_int_equal(sft_span_escape(none, into, 1), 0);
    assert_string_equal(into, "");
    /* Texts longer than a piece: 100 escapes of 4 bytes. */
    char zeros[100] = { 0 }, all[401];
    for (size_t cap = 240; cap <= 270; cap++) {
        assert_int_equal(sft_span_escape((sft_span){ zeros, 100 }, all, cap), 400);
        assert_int_equal(strlen(all), (cap - 1) / 4 * 4);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(natural_order_counts),
        cmocka_unit_test(bytes_are_unsigned),
        cmocka_unit_test(sort_is_stable),
        cmocka_unit_test(copies_of_spans),
        cmocka_unit_test(escapes_of_spans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
