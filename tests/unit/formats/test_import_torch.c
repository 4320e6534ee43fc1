#include "safetensors_import.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TENSOR(size)                                                                        \
    "ctorch._utils\n_rebuild_tensor_v2\n((X\7\0\0\0storagectorch\nFloatStorage\n"           \
    "X\1\0\0\0" "0X\3\0\0\0cpuK\4NtQK\0" size "K\1K\2\x86\x89" "ccollections\nOrderedDict\n" \
    ")RtR"

/* A 2 by 2 tensor, transposed, a number, an optimizer, and what a loader would call. */
static const char legacy[] =
    "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
    "\x80\x02M\xe9\x03."
    "\x80\x02}."
    "\x80\x02}(X\5\0\0\0model}X\1\0\0\0w" TENSOR("K\2K\2\x86") "s"
    "X\1\0\0\0xcos\nsystem\n(X\1\0\0\0atRX\1\0\0\0nK\3"
    "X\5\0\0\0optim](" TENSOR("K\1K\2\x86") "eu."
    "\x80\x02](X\1\0\0\0" "0e."
    "\4\0\0\0\0\0\0\0"
    "\0\0\0\0\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40" "z";

static const char plain[] =
    "\x80\x02}X\1\0\0\0acnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\0\x85"
    "U\1b\x87R(K\1K\2\x85" "cnumpy\ndtype\nU\2i2K\0K\1\x87R(K\3U\1<NNNJ\xff\xff\xff\xff"
    "J\xff\xff\xff\xffK\0tb\x89U\4\1\0\2\0tbs.";

/* The same tensor under two names, beside another branch. */
static const char twice[] =
    "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19."
    "\x80\x02M\xe9\x03."
    "\x80\x02}."
    "\x80\x02}(X\1\0\0\0w" TENSOR("K\2K\2\x86") "X\1\0\0\0v" TENSOR("K\2K\2\x86") "u."
    "\x80\x02](X\1\0\0\0" "0e."
    "\4\0\0\0\0\0\0\0"
    "\0\0\0\0\0\0\x80\x3f\0\0\0\x40\0\0\x40\x40";

typedef struct failing {
    size_t left;
    int64_t held;
} failing;

static void *fail_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    failing *f = ctx;
    if (new_size == 0) {
        if (ptr) f->held -= (int64_t)old_size;
        free(ptr);
        return NULL;
    }
    if (f->left == 0) return NULL;
    f->left--;
    f->held += (int64_t)new_size - (ptr ? (int64_t)old_size : 0);
    return realloc(ptr, new_size);
}

static sft_import *open_bytes(const char *bytes, size_t len) {
    sft_error err = SFT_ERROR_INIT;
    sft_import *import;
    if (sft_import_open_source(sft_source_memory(bytes, len), NULL, &import, &err))
        fail_msg("%s", err.message);
    return import;
}

static bool is_span(sft_span span, const char *text) {
    return sft_span_equal(span, sft_span_cstr(text));
}

static void a_legacy_file_is_read(void **state) {
    (void)state;
    sft_import *import = open_bytes(legacy, sizeof legacy - 1);
    assert_int_equal(sft_import_format_of(import), SFT_IMPORT_TORCH_LEGACY);
    assert_int_equal(sft_import_tensor_count(import), 1);
    sft_part part = sft_import_part(import, 0);
    assert_true(is_span(part.spec.name, "w"));
    assert_int_equal(part.spec.dtype, SFT_F32);
    float values[4];
    size_t got;
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(sft_source_read(part.source, part.begin, values, sizeof values, &got,
                                     &err), SFT_OK);
    assert_int_equal(got, sizeof values);
    static const float expected[] = { 0, 2, 1, 3 };
    assert_memory_equal(values, expected, sizeof expected);
    assert_int_equal(sft_import_global_count(import), 1);
    assert_true(is_span(sft_import_global_at(import, 0)->name, "system"));
    assert_int_equal(sft_import_global_at(import, 0)->calls, 1);
    unsigned branches = 0, records = 0;
    const sft_import_left *left;
    for (size_t i = 0; (left = sft_import_left_at(import, i)) != NULL; i++) {
        if (left->reason == SFT_IMPORT_LEFT_BRANCH && is_span(left->path, "optim")) branches++;
        if (left->reason == SFT_IMPORT_LEFT_RECORD && left->bytes == 1) records++;
    }
    assert_int_equal(branches, 1);
    assert_int_equal(records, 1);
    const sft_import_branch *branch;
    size_t chosen = 0, n = 0;
    for (; (branch = sft_import_branch_at(import, n)) != NULL; n++)
        chosen += branch->chosen && branch->tensors == 1 && branch->bytes == 16;
    assert_int_equal(n, sft_import_branch_count(import));
    assert_int_equal(chosen, 1);
    sft_import_close(import);
}

static void a_second_name_is_told(void **state) {
    (void)state;
    sft_import *import = open_bytes(twice, sizeof twice - 1);
    assert_int_equal(sft_import_alias_count(import), 1);
    sft_import_alias alias = sft_import_alias_at(import, 0);
    assert_int_equal(alias.name.len, 1);
    assert_int_equal(alias.of.len, 1);
    assert_true(alias.name.data[0] != alias.of.data[0]);
    assert_false(alias.partial);
    assert_null(sft_import_alias_at(import, 1).name.data);
    sft_import_close(import);
}

static void formats_are_described(void **state) {
    (void)state;
    const sft_import_format_info *row = sft_import_format_describe(SFT_IMPORT_TORCH_LEGACY);
    assert_int_equal(row->format, SFT_IMPORT_TORCH_LEGACY);
    assert_true(row->is_pickle);
    assert_false(sft_import_format_describe(SFT_IMPORT_GGUF)->is_pickle);
    assert_null(sft_import_format_describe(SFT_IMPORT_NONE));
    assert_null(sft_import_format_describe((sft_import_format)1000));
}

/* The report as JSON is what its tree says. */
static void the_report_is_a_tree(void **state) {
    (void)state;
    sft_import *import = open_bytes(twice, sizeof twice - 1);
    sft_buffer json = { 0 }, again = { 0 };
    sft_sink sink = sft_sink_memory(&json), second = sft_sink_memory(&again);
    sft_tree *tree;
    assert_int_equal(sft_import_json(import, "m.pt", &sink, NULL), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, NULL), SFT_OK);
    assert_int_equal(sft_tree_new(NULL, &tree, NULL), SFT_OK);
    assert_int_equal(sft_import_tree(import, "m.pt", tree, NULL), SFT_OK);
    sft_import_close(import); /* the tree does not refer to it */
    assert_int_equal(sft_node_json(sft_tree_root(tree), NULL, NULL, &second, 0, NULL, NULL),
                     SFT_OK);
    assert_int_equal(sft_sink_finish(&second, NULL), SFT_OK);
    assert_true(is_span(sft_node_text(sft_tree_root(tree), "path"), "m.pt"));
    assert_int_equal(json.len, again.len);
    assert_memory_equal(json.data, again.data, json.len);
    sft_tree_free(tree);
    sft_buffer_free(&json);
    sft_buffer_free(&again);
}

static void a_pickle_of_python_2_is_read(void **state) {
    (void)state;
    sft_import *import = open_bytes(plain, sizeof plain - 1);
    assert_int_equal(sft_import_format_of(import), SFT_IMPORT_PICKLE);
    assert_int_equal(sft_import_tensor_count(import), 1);
    sft_part part = sft_import_part(import, 0);
    uint8_t values[4];
    size_t got;
    assert_int_equal(part.spec.dtype, SFT_I16);
    assert_int_equal(sft_source_read(part.source, part.begin, values, 4, &got, NULL), SFT_OK);
    assert_memory_equal(values, "\1\0\2\0", 4);
    assert_int_equal(sft_import_global_count(import), 0);
    sft_import_close(import);
}

/* Every allocation fails once: a code, and nothing is leaked. */
static void allocations_may_fail(void **state) {
    (void)state;
    static const struct { const char *bytes; size_t len; } files[] = {
        { legacy, sizeof legacy - 1 }, { plain, sizeof plain - 1 },
    };
    for (size_t i = 0; i < 2; i++) {
        size_t tries = 0;
        for (bool done = false; !done; tries++) {
            failing f = { tries, 0 };
            sft_allocator alloc = { fail_resize, &f };
            sft_import_options options = SFT_IMPORT_OPTIONS_INIT;
            sft_import *import;
            options.alloc = &alloc;
            sft_source source = sft_source_memory(files[i].bytes, files[i].len);
            sft_code code = sft_import_open_source(source, &options, &import, NULL);
            done = code == SFT_OK;
            if (!done && code != SFT_OUT_OF_MEMORY) fail_msg("try %zu: code %d", tries, code);
            sft_import_close(import);
            assert_int_equal(f.held, 0);
        }
        assert_true(tries > 5);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_legacy_file_is_read),
        cmocka_unit_test(a_second_name_is_told),
        cmocka_unit_test(formats_are_described),
        cmocka_unit_test(the_report_is_a_tree),
        cmocka_unit_test(a_pickle_of_python_2_is_read),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
