/* Marks of exports: values by their place, origins that are there, marks that strangers write. */
#include "text/derived.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sfti_arena arena;

static int set_up(void **state) {
    (void)state;
    arena = (sfti_arena){ .alloc = sfti_allocator(NULL) };
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    sfti_arena_free(&arena);
    return 0;
}

static uint64_t digest_of(const char *pointer, sfti_json_type type, const char *text) {
    return sfti_derived_digest(sft_span_cstr(pointer), type, sft_span_cstr(text));
}

/* The text lies in memory of exactly its length, so that a sanitizer sees any overrun. */
static sft_span exact(const char *text, size_t len) {
    char *copy = sfti_arena_take(&arena, len + !len);
    memcpy(copy, text, len);
    return (sft_span){ copy, len };
}

static sfti_derived all_of(const char *text) {
    sfti_derived all;
    assert_true(sfti_derived_of(exact(text, strlen(text)), &arena, &all));
    for (size_t i = 1; i < all.count; i++) assert_true(all.digests[i - 1] <= all.digests[i]);
    return all;
}

static bool is_named_here(void *ctx, sft_span origin) {
    const char *const *here = ctx;
    for (; *here; here++)
        if (sft_span_equal(origin, sft_span_cstr(*here))) return true;
    return false;
}

static size_t count_read(const char *text, const char *const *here) {
    sfti_derived set;
    assert_true(sfti_derived_read(exact(text, strlen(text)), &arena,
                                  here ? is_named_here : NULL, (void *)here, &set));
    return set.count;
}

/* ── Values by their place ── */

static void values_have_a_place(void **state) {
    (void)state;
    sfti_derived all = all_of("{\"a\":{\"b\":[1.50,{\"c\":\"x\\n\"}]},\"d\":null,\"e\":[[true]]}");
    assert_int_equal(all.count, 4);
    assert_true(sfti_derived_has(&all, digest_of("/a/b/0", SFTI_JSON_NUMBER, "1.5")));
    assert_true(sfti_derived_has(&all, digest_of("/a/b/7/c", SFTI_JSON_STRING, "x\n")));
    assert_true(sfti_derived_has(&all, digest_of("/d", SFTI_JSON_NULL, "null")));
    assert_true(sfti_derived_has(&all, digest_of("/e/0/0", SFTI_JSON_TRUE, "true")));
    assert_false(sfti_derived_has(&all, digest_of("/a/b/0", SFTI_JSON_STRING, "1.5")));
    assert_false(sfti_derived_has(&all, digest_of("/a/b/7/c", SFTI_JSON_STRING, "y\n")));
    assert_false(sfti_derived_has(&all, digest_of("/c", SFTI_JSON_STRING, "x\n")));
    assert_int_equal(all_of("").count + all_of("{}").count + all_of("[[],{}]").count, 0);
}

static void names_of_any_length(void **state) {
    (void)state;
    char text[1400];
    for (size_t len = 480; len < 540; len++) {
        int size = snprintf(text, sizeof text, "{\"%0*d\":{\"%0*d\":1},\"b\":2}", (int)len, 0,
                            (int)len, 0);
        sfti_derived all;
        assert_true(sfti_derived_of(exact(text, (size_t)size), &arena, &all));
        assert_int_equal(all.count, 2);
        assert_true(sfti_derived_has(&all, digest_of("/b", SFTI_JSON_UINT, "2")));
    }
}

static void deep_and_broken_text_ends(void **state) {
    (void)state;
    char text[300];
    for (size_t depth = 100; depth < 140; depth++) {
        memset(text, '[', depth);
        text[depth] = '1';
        memset(text + depth + 1, ']', depth);
        sfti_derived all;
        assert_true(sfti_derived_of(exact(text, 2 * depth + 1), &arena, &all));
        assert_int_equal(all.count, depth <= SFTI_JSON_DEPTH);
    }
    const char *whole = "{\"a\":[1,\"\\u0041\",{\"b\":true}],\"c\":-0.5e1}";
    for (size_t len = 0; len < strlen(whole); len++) {
        sfti_derived all;
        assert_true(sfti_derived_of(exact(whole, len), &arena, &all));
        assert_true(all.count <= 4);
    }
}

/* A number's other spellings are it; what only looks so is not. */
static void numbers_as_others_spell_them(void **state) {
    (void)state;
    static const struct { const char *a, *b; bool same; } rows[] = {
        { "1.50", "1.5", true }, { "1.00", "1", true }, { "1.0e2", "1e2", false },
        { "1.0E2", "1E2", false }, { "100", "1", false }, { "0.0", "0", true },
        { "1.05", "1.5", false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(digest_of("/a", SFTI_JSON_NUMBER, rows[i].a)
                             == digest_of("/a", SFTI_JSON_NUMBER, rows[i].b), rows[i].same);
    assert_true(digest_of("/a", SFTI_JSON_STRING, "1.50")
                != digest_of("/a", SFTI_JSON_STRING, "1.5"));
}

/* ── Origins ── */

static void origins_must_all_be_there(void **state) {
    (void)state;
    const char *text = "{\"model\":[\"0000000000000001\"],\"a.json\":[\"0000000000000002\"],"
                       "\"a.json/b.info\":[\"0000000000000003\",\"00000000000000ff\"]}";
    const char *const none[] = { NULL }, *const a[] = { "a.json", NULL };
    const char *const both[] = { "a.json", "b.info", NULL };
    assert_int_equal(count_read(text, none), 1);
    assert_int_equal(count_read(text, a), 2);
    assert_int_equal(count_read(text, both), 4);
    assert_int_equal(count_read(text, NULL), 4);
    assert_int_equal(count_read("{\"\":[\"0000000000000001\"]}", a), 0);
    assert_int_equal(count_read("{\"/\":[\"0000000000000001\"]}", a), 0);
}

static void only_digests_count(void **state) {
    (void)state;
    static const char *const rows[] = {
        "", "null", "[]", "7", "{\"model\":7}", "{\"model\":\"0000000000000001\"}",
        "{\"model\":[1,null,\"\",\"1\",\"000000000000000g\",\"00000000000000001\"]}",
        "{\"model\":{\"model\":\"\\u0030000000000000001\"}}",
        "{\"model\":[[\"0000000000000001\"]]}",
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        assert_int_equal(count_read(rows[i], NULL), 0);
    assert_int_equal(count_read("{\"model\":[\"0000000000000001\"", NULL), 1);
}

/* What guards or is compared is read, whatever a stranger's mark says. */
static void some_values_are_never_marked(void **state) {
    (void)state;
    static const char *const never[] = {
        "/sha256", "/nsfw", "/model/nsfw", "/images/0/nsfwLevel", "/files/0/hashes/SHA256",
        "/civitai/files/0/sizeKB", "/size", "/preview_nsfw_level",
    };
    static const char *const may[] = { "", "/", "/name", "/files", "/model/name", "/civitai/name" };
    for (size_t i = 0; i < sizeof never / sizeof *never; i++)
        assert_false(sfti_derived_may(sft_span_cstr(never[i])));
    for (size_t i = 0; i < sizeof may / sizeof *may; i++)
        assert_true(sfti_derived_may(sft_span_cstr(may[i])));
}

/* More digests than a mark may have: those that fit. */
static void marks_have_a_limit(void **state) {
    (void)state;
    size_t count = SFTI_DERIVED_MOST + 9, size = 32 + 20 * count;
    char *text = malloc(size);
    size_t at = (size_t)snprintf(text, size, "{\"model\":[");
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, size - at, "%s\"%016zx\"", i ? "," : "", count - i);
    snprintf(text + at, size - at, "]}");
    assert_int_equal(count_read(text, NULL), SFTI_DERIVED_MOST);
    free(text);
}

static void the_mark_is_a_member(void **state) {
    (void)state;
    static const struct { const char *text, *origins; } rows[] = {
        { "{\"a\":{\"libsafetensors\":1},"
          "\"libsafetensors\":{\"x\":1,\"derived\":{\"m\":[]}},\"b\":",
          "{\"m\":[]}" },
        { "{\"libsafetensors\":{\"derived\":7}}", "7" },
        { "{\"libsafetensors\":{}}", NULL }, { "{\"libsafetensors\":[\"derived\",{}]}", NULL },
        { "{\"libsafetensors\":", NULL }, { "{\"a\":{\"libsafetensors\":{\"derived\":{}}}}", NULL },
        { "[{\"libsafetensors\":{\"derived\":{}}}]", NULL }, { "", NULL }, { "x", NULL },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_span origins;
        bool found = sfti_derived_find(exact(rows[i].text, strlen(rows[i].text)), &origins);
        assert_int_equal(found, rows[i].origins != NULL);
        if (found) assert_true(sft_span_equal(origins, sft_span_cstr(rows[i].origins)));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(values_have_a_place, set_up, tear_down),
        cmocka_unit_test_setup_teardown(names_of_any_length, set_up, tear_down),
        cmocka_unit_test(numbers_as_others_spell_them),
        cmocka_unit_test_setup_teardown(deep_and_broken_text_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(origins_must_all_be_there, set_up, tear_down),
        cmocka_unit_test_setup_teardown(only_digests_count, set_up, tear_down),
        cmocka_unit_test_setup_teardown(some_values_are_never_marked, set_up, tear_down),
        cmocka_unit_test_setup_teardown(marks_have_a_limit, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_mark_is_a_member, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
