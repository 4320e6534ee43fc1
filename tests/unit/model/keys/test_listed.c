/* torchao's list of tensors, of several files. */
#include "keys/listed.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <cmocka.h>

#include <string.h>

/* Memory for so many allocations; those that follow fail. */
static void *resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    size_t *left = ctx;
    (void)old_size;
    if (new_size == 0) free(ptr);
    if (new_size == 0 || *left == 0) return NULL;
    --*left;
    return realloc(ptr, new_size);
}

static void test_joined(void **state) {
    (void)state;
    static const struct { const char *lists[3], *all; } rows[] = {
        { { "[\"a\"]", "[\"b\", \"a\"]", "[\"c\"]" }, "[\"a\", \"b\", \"c\"]" },
        { { "[]", "[\"b\"]" }, "[\"b\"]" },
        { { "[]", "[]" }, "[]" },
        { { "[\"a\\u0022\"]", "[\"\\u0061\\\"\"]" }, "[\"a\\\"\"]" },
        { { "[\"a\"]", "[1]" }, NULL },
        { { "[\"a\"]", "{}" }, NULL },
        { { "[\"a\"]", "[\"b\"" }, NULL },
        { { "[\"a\"] 1", "[\"b\"]" }, NULL },
        { { NULL }, NULL },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        bool good = false;
        for (size_t n = 0; !good; n++) {
            size_t left = n, count = 0;
            sfti_arena arena = { .alloc = { resize, &left } };
            sft_span lists[3], all;
            while (count < 3 && rows[i].lists[count])
                lists[count] = sft_span_cstr(rows[i].lists[count]), count++;
            good = sfti_lists_joined(lists, count, &arena, &all);
            if (good && !rows[i].all) assert_null(all.data);
            else if (good) assert_true(sft_span_equal(all, sft_span_cstr(rows[i].all)));
            sfti_arena_free(&arena);
        }
    }
}

static void test_classes(void **state) {
    (void)state;
    assert_true(sfti_names_class(sft_span_cstr("{\"v\": [1], \"_type\": \"Tensor\"}")));
    assert_false(sfti_names_class(sft_span_cstr("{\"type\": \"Tensor\"}")));
    assert_false(sfti_names_class(sft_span_cstr("\"_type\"")));
    assert_false(sfti_names_class(sft_span_cstr("{\"v\":")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_joined),
        cmocka_unit_test(test_classes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
