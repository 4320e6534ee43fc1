/* Trees: what is written into one is found again, and comes out as the same JSON. */
#include "base/json.h"
#include "base/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char sample[] =
    "{\"name\":{\"value\":\"a\\\"b\\u0085\",\"others\":[]},\"n\":[1,-2.50,18446744073709551615],"
    "\"yes\":true,\"no\":false,\"none\":null,\"deep\":{\"a\":{\"b\":{\"c\":\"\"}}},\"empty\":{}}";

static sft_tree *tree_of(const char *json) {
    sft_tree *tree;
    sfti_json_writer w;
    assert_int_equal(sft_tree_new(NULL, &tree, NULL), SFT_OK);
    assert_null(sft_tree_root(tree));
    sfti_json_write_tree(&w, tree, NULL);
    sfti_json_raw(&w, sft_span_cstr(json));
    assert_int_equal(sfti_json_done(&w), SFT_OK);
    return tree;
}

static void assert_json(const sft_node *node,
                        sft_node_keep (*keep)(void *, const sft_node *), void *ctx,
                        const char *want) {
    sft_buffer out = { 0 };
    sft_sink sink = sft_sink_memory(&out);
    uint64_t end = 0;
    assert_int_equal(sft_node_json(node, keep, ctx, &sink, 0, &end, NULL), SFT_OK);
    assert_int_equal(end, strlen(want));
    assert_int_equal(out.len, strlen(want));
    assert_memory_equal(out.data, want, out.len);
    sft_buffer_free(&out);
}

static void assert_text(const sft_node *node, const char *path, const char *want) {
    sft_span text = sft_node_text(node, path);
    assert_int_equal(text.len, strlen(want));
    assert_memory_equal(text.data, want, text.len);
}

static void comes_out_as_it_went_in(void **state) {
    (void)state;
    sft_tree *tree = tree_of(sample);
    assert_json(sft_tree_root(tree), NULL, NULL, sample);
    assert_json(sft_node_find(sft_tree_root(tree), "deep.a"), NULL, NULL, "{\"b\":{\"c\":\"\"}}");
    sft_tree_free(tree);
    tree = tree_of("[]");
    assert_json(sft_tree_root(tree), NULL, NULL, "[]");
    sft_tree_free(tree);
    sft_tree_free(NULL);
}

static void answers(void **state) {
    (void)state;
    uint64_t n;
    sft_tree *odd = tree_of("{\"a\":\"12:\",\"b\":\"1/\",\"c\":\"12\"}");
    assert_false(sft_node_uint(sft_tree_root(odd), "a", &n));
    assert_false(sft_node_uint(sft_tree_root(odd), "b", &n));
    assert_true(sft_node_uint(sft_tree_root(odd), "c", &n));
    assert_int_equal(n, 12);
    sft_tree_free(odd);
    sft_tree *tree = tree_of(sample);
    const sft_node *root = sft_tree_root(tree), *list = sft_node_get(root, "n");
    assert_text(root, "name", "a\"b\xC2\x85"); /* a fact stands for its value */
    assert_text(root, "n", "");
    assert_text(root, "none", "");
    assert_text(root, "gone.too", "");
    assert_text(root, "deep.a.b.c", "");
    assert_text(list->first->next, "", "-2.50");
    assert_true(sft_node_uint(list->first, "", &n));
    assert_int_equal(n, 1);
    assert_false(sft_node_uint(list->first->next, "", &n));
    assert_false(sft_node_uint(list->first->next->next, "", &n)); /* over 19 digits */
    assert_int_equal(n, 0);
    assert_true(sft_node_true(root, "yes"));
    assert_false(sft_node_true(root, "no"));
    assert_false(sft_node_true(root, "name"));
    assert_int_equal(sft_node_count(list), 3);
    assert_int_equal(sft_node_count(NULL), 0);
    assert_null(sft_node_get(list, "n"));
    assert_null(sft_node_get(NULL, "n"));
    assert_ptr_equal(list->parent, root);
    sft_tree_free(tree);
}

/* Keep what stands in ctx: a list of keys that ends with NULL. */
static sft_node_keep keep_named(void *ctx, const sft_node *node) {
    const char *const *keys = ctx;
    if (!node->parent) return SFT_NODE_SOME;
    for (; *keys; keys++)
        if (sft_span_equal(node->key, sft_span_cstr(*keys)))
            return strcmp(*keys, "a") == 0 ? SFT_NODE_ALL : SFT_NODE_SOME;
    return SFT_NODE_DROP;
}

static void keeps_what_is_wanted(void **state) {
    (void)state;
    const char *keys[] = { "deep", "a", "yes", "name", NULL };
    sft_tree *tree = tree_of(sample);
    assert_json(sft_tree_root(tree), keep_named, keys,
                "{\"name\":{},\"yes\":true,\"deep\":{\"a\":{\"b\":{\"c\":\"\"}}}}");
    assert_json(sft_tree_root(tree), keep_named, keys + 4, "{}");
    sft_tree_free(tree);
}

static void goes_on_in_what_was_closed(void **state) {
    (void)state;
    sfti_json_writer w;
    sft_tree *tree = tree_of("{\"a\":1}");
    sfti_tree_reopen(tree);
    sfti_json_write_tree(&w, tree, NULL);
    sfti_json_key(&w, "b");
    sfti_json_text(&w, sft_span_cstr(" [ 1 , {\"x\" : null} ] "));
    sfti_json_key(&w, "c");
    sfti_json_text(&w, sft_span_cstr("no JSON"));
    sfti_json_path(&w, "p\xFF");
    sfti_json_close(&w, '}');
    assert_int_equal(sfti_json_done(&w), SFT_OK);
    assert_json(sft_tree_root(tree), NULL, NULL,
                "{\"a\":1,\"b\":[1,{\"x\":null}],\"c\":null,\"path\":\"p\xEF\xBF\xBD\","
                "\"path_bytes\":\"p%FF\"}");
    sft_tree_free(tree);
}

/* Depth is what the reader allows, and needs no stack. */
static void is_as_deep_as_json(void **state) {
    (void)state;
    char text[2 * SFTI_JSON_DEPTH + 1];
    memset(text, '[', SFTI_JSON_DEPTH);
    memset(text + SFTI_JSON_DEPTH, ']', SFTI_JSON_DEPTH);
    text[2 * SFTI_JSON_DEPTH] = 0;
    sft_tree *tree = tree_of(text);
    assert_json(sft_tree_root(tree), NULL, NULL, text);
    sft_tree_free(tree);
}

typedef struct full_sink {
    unsigned left, calls; /* writes that succeed; all of them */
} full_sink;

static sft_code write_until(void *ctx, uint64_t offset, const void *bytes, size_t len,
                            sft_error *err) {
    full_sink *s = ctx;
    (void)offset, (void)bytes, (void)len;
    s->calls++;
    if (s->left == 0) return sft_error_set(err, SFT_IO_WRITE, 28, "full");
    s->left--;
    return SFT_OK;
}

/* After the first failure nothing more is written, and it is what is returned. */
static void stops_where_the_sink_fails(void **state) {
    static const sft_sink_vtable vtable = { .size = sizeof vtable, .write = write_until };
    static char text[1 << 17];
    size_t len = 0;
    (void)state;
    text[len++] = '[';
    for (int i = 0; i < 9000; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%s{\"n\":%d}", i ? "," : "", i);
    memcpy(text + len, "]", 2);
    sft_tree *tree = tree_of(text);
    for (unsigned left = 0; left < 3; left++) {
        full_sink s = { left, 0 };
        sft_sink sink = { &s, &vtable, false };
        sft_error err = SFT_ERROR_INIT;
        sfti_json_writer w;
        assert_int_equal(sft_node_json(sft_tree_root(tree), NULL, NULL, &sink, 0, NULL, &err),
                         SFT_IO_WRITE);
        assert_string_equal(err.message, "full");
        assert_int_equal(s.calls, left + 1);
        s = (full_sink){ left, 0 };
        sfti_json_write(&w, &sink, 0, &err);
        sfti_json_text(&w, sft_span_cstr(text));
        assert_int_equal(sfti_json_done(&w), SFT_IO_WRITE);
        assert_int_equal(s.calls, left + 1);
    }
    sft_tree_free(tree);
}

/* JSON of a file goes on without its blanks; what must not stand in strings is escaped. */
static void texts_become_compact(void **state) {
    static const char *const rows[][2] = {
        { "\t[ 1\r\n,\t\" a\\\"\\\\ \" ]\r", "[1,\" a\\\"\\\\ \"]" },
        { "[\"\xc3\xa9\x7f\xc2\x85\xe2\x80\xae\"]", "[\"\xc3\xa9\\u007f\\u0085\\u202e\"]" },
        { "{\"a\" : {\t} }", "{\"a\":{}}" },
        { "", "null" }, { "[\"\xff\"]", "null" }, { "[1] 2", "null" }, { "[1", "null" },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_buffer out = { 0 };
        sft_sink sink = sft_sink_memory(&out);
        sfti_json_writer w;
        sfti_json_write(&w, &sink, 0, NULL);
        sfti_json_text(&w, sft_span_cstr(rows[i][0]));
        assert_int_equal(sfti_json_done(&w), SFT_OK);
        if (!sft_span_equal((sft_span){ out.data, out.len }, sft_span_cstr(rows[i][1])))
            fail_msg("row %zu: %.*s", i, (int)out.len, out.data);
        sft_buffer_free(&out);
    }
}

typedef struct scarce {
    size_t left;
    int64_t live;
} scarce;

static void *scarce_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    scarce *s = ctx;
    if (new_size == 0) {
        s->live -= (int64_t)old_size;
        free(ptr);
        return NULL;
    }
    if (s->left == 0) return NULL;
    s->left--;
    s->live += (int64_t)new_size - (int64_t)old_size;
    return realloc(ptr, new_size);
}

static void says_when_memory_runs_out(void **state) {
    (void)state;
    char *big = malloc(1 << 16);
    assert_non_null(big);
    memset(big, 'x', 1 << 16);
    for (size_t left = 0; left < 3; left++) {
        scarce s = { left, 0 };
        sft_allocator alloc = { scarce_resize, &s };
        sft_error err = SFT_ERROR_INIT;
        sft_tree *tree = NULL;
        sfti_json_writer w;
        sft_code code = sft_tree_new(&alloc, &tree, &err);
        if (!code) {
            sfti_json_write_tree(&w, tree, &err);
            sfti_json_open(&w, '[');
            for (int i = 0; i < 4; i++) sfti_json_span(&w, (sft_span){ big, 1 << 16 });
            sfti_json_close(&w, ']');
            code = sfti_json_done(&w);
        }
        assert_int_equal(code, SFT_OUT_OF_MEMORY);
        assert_int_equal(err.code, SFT_OUT_OF_MEMORY);
        sft_tree_free(tree);
        assert_int_equal(s.live, 0);
    }
    free(big);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comes_out_as_it_went_in),  cmocka_unit_test(answers),
        cmocka_unit_test(keeps_what_is_wanted),     cmocka_unit_test(goes_on_in_what_was_closed),
        cmocka_unit_test(stops_where_the_sink_fails), cmocka_unit_test(texts_become_compact),
        cmocka_unit_test(is_as_deep_as_json),       cmocka_unit_test(says_when_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
