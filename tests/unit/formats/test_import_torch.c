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

/* ── Options, and questions that have no answer ── */

static void nothing_is_beyond_the_last(void **state) {
    (void)state;
    sft_import *import = open_bytes(plain, sizeof plain - 1);
    assert_null(sft_import_part(import, 1).source);
    assert_null(sft_import_note(import, 0));
    assert_null(sft_import_note(import, 1));
    assert_int_equal(sft_import_shard(import, 0), 0);
    assert_int_equal(sft_import_shard(import, 1), 0);
    assert_null(sft_import_branch_at(import, 9));
    assert_null(sft_import_left_at(import, 9));
    assert_null(sft_import_global_at(import, 9));
    assert_null(sft_import_alias_at(import, 9).name.data);
    sft_import_close(import);
}

/* A dtype of its bits for "a"; nothing for others. ctx: that dtype. */
static bool as_told(void *ctx, const sft_spec *spec, sft_dtype *dtype) {
    *dtype = *(const sft_dtype *)ctx;
    return is_span(spec->name, "a");
}

static void options_are_checked(void **state) {
    (void)state;
    static const char opaque[] = "\x93NUMPY\1\0\x3a\0{'descr': '|V2', 'fortran_order': False, "
                                 "'shape': (2,), }\nabcd";
    static const struct {
        sft_dtype dequantised, as;
        bool is_told, is_opaque;
        sft_code code;
        const char *words; /* of the message, or the dtype and note */
    } rows[] = {
        { SFT_F16, SFT_BF16, true, false, SFT_OK, "BF16" },
        { SFT_BF16, SFT_BF16, false, false, SFT_OK, "I16" },
        { SFT_F32, SFT_F32, true, false, SFT_CAST_DTYPE, "a dtype of 16 bits, found F32" },
        { SFT_F32, (sft_dtype)99, true, false, SFT_CAST_DTYPE, "of 16 bits, found none" },
        { SFT_I8, SFT_BF16, false, false, SFT_BAD_ARGUMENT, "F16, BF16 or F32" },
        { SFT_F64, SFT_BF16, false, false, SFT_BAD_ARGUMENT, "F16, BF16 or F32" },
        { SFT_F16, SFT_BF16, false, true, SFT_FOREIGN_OPAQUE, "only the width is known" },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_error err = SFT_ERROR_INIT;
        sft_import_options options = SFT_IMPORT_OPTIONS_INIT;
        sft_dtype dtype = rows[i].as;
        sft_import *import;
        options.dequantised = rows[i].dequantised;
        if (rows[i].is_told) options.as = as_told;
        options.as_ctx = &dtype;
        sft_source source = rows[i].is_opaque ? sft_source_memory(opaque, sizeof opaque - 1)
                                              : sft_source_memory(plain, sizeof plain - 1);
        sft_code code = sft_import_open_source(source, &options, &import, &err);
        if (code != rows[i].code) fail_msg("row %zu: %d %s", i, code, err.message);
        if (code && !strstr(err.message, rows[i].words)) fail_msg("row %zu: %s", i, err.message);
        if (code) continue;
        sft_part part = sft_import_part(import, 0);
        assert_string_equal(sft_dtype_describe(part.spec.dtype)->name, rows[i].words);
        sft_import_close(import);
    }
    sft_import *import;
    assert_int_equal(sft_import_open(NULL, NULL, &import, NULL), SFT_BAD_ARGUMENT);
    assert_null(import);
}

/* What is taken for an index of shards: it names one, beside which there is no folder here. */
static void indexes_are_recognised(void **state) {
    (void)state;
    static const struct { const char *text; bool is; } rows[] = {
        { "{\"weight_map\":{\"a\":\"b\"}}", true },
        { " \r\n\t{\"weight_map\" :\t{ \n\"a\": \"b\"}}", true },
        { "{\"a\":\"weight_map\",\"weight_map\":{\"a\":\"b\"}}", true },
        { "{\"weight_map\":{\"a\":\"b.safetensors\"}}", false },
        { "{\"weight_map\":{}}              ", false }, { "{\"weight_map\"", false },
        { "{\"weight_map\" x {\"a\":\"b\"}}", false }, { "{\"weight_map\":{  ", false },
        { "{\"weight_map\":[\"a\",\"b\"]}", false }, { "    \n      \t       ", false },
        { "[\"weight_map\",{\"a\":\"b\"}]", false }, { "{\"weight_maps\":{\"a\":\"b\"}}", false },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        sft_error err = SFT_ERROR_INIT;
        sft_import *import;
        sft_source source = sft_source_memory(rows[i].text, strlen(rows[i].text));
        sft_code code = sft_import_open_source(source, NULL, &import, &err);
        if (code != (rows[i].is ? SFT_NOT_FOUND : SFT_FOREIGN_KIND))
            fail_msg("row %zu: %d %s", i, code, err.message);
        assert_non_null(strstr(err.message, rows[i].is ? "beside which to find b, found bytes alone"
                                                       : "a format of tensors that is read here"));
    }
    static const char nul[] = "{\"weight_map\":\0{\"a\":\"b\"}}";
    sft_import *import;
    assert_int_equal(sft_import_open_source(sft_source_memory(nul, sizeof nul - 1), NULL, &import,
                                            NULL), SFT_FOREIGN_KIND);
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
        cmocka_unit_test(nothing_is_beyond_the_last),
        cmocka_unit_test(options_are_checked),
        cmocka_unit_test(indexes_are_recognised),
        cmocka_unit_test(allocations_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
