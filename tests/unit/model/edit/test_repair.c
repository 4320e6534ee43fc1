/* Bad files written anew: each thing that can be made right, and what cannot. */
#define _GNU_SOURCE
#include "safetensors.h"
#include "safetensors_edit.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/temp_model.h"

static temp_folder folder;

static const char bytes[] = "0123456789abcdef";

typedef struct outcome {
    sft_code code;
    sft_error err;
    size_t fixes;
    char names[256]; /* of the fixes, with blanks between */
    sft_buffer out;
    sft_file *file; /* what was written, at level strict; NULL on failure */
} outcome;

/* The repair tells what is in the file that it wrote. */
static void tensors_are_told(const sft_repair *repair, const sft_file *file) {
    assert_int_equal(sft_repair_tensor_count(repair), sft_file_tensor_count(file));
    for (size_t i = 0; i < sft_repair_tensor_count(repair); i++) {
        sft_spec told = sft_repair_tensor_at(repair, i);
        const sft_tensor *tensor = sft_file_find(file, told.name);
        assert_non_null(tensor);
        assert_int_equal(tensor->dtype, told.dtype);
        assert_int_equal(tensor->rank, told.rank);
        for (uint32_t d = 0; d < told.rank; d++)
            assert_int_equal(tensor->shape[d], told.shape[d]);
    }
}

static outcome repair_path(const char *path, sft_level level) {
    outcome o = { .err = SFT_ERROR_INIT };
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_repair *repair;
    options.level = level;
    o.code = sft_repair_open(path, &options, &repair, &o.err);
    if (o.code) {
        assert_null(repair);
        return o;
    }
    o.fixes = sft_repair_fix_count(repair);
    for (size_t i = 0; i < o.fixes; i++) {
        strcat(o.names, i ? " " : "");
        strcat(o.names, sft_repair_fix_at(repair, i)->name);
        assert_true(sft_repair_fix_at(repair, i)->done[0] != 0);
        assert_true(sft_repair_fix_at(repair, i)->found.message[0] != 0);
    }
    assert_null(sft_repair_fix_at(repair, o.fixes));
    assert_int_equal(sft_repair_write(repair, sft_sink_memory(&o.out), NULL, &o.err), SFT_OK);
    options.level = SFT_LEVEL_STRICT;
    assert_int_equal(sft_open_memory(o.out.data, o.out.len, &options, &o.file, &o.err), SFT_OK);
    tensors_are_told(repair, o.file);
    sft_repair_close(repair);
    return o;
}

static outcome repair_level(const char *header, size_t len, sft_level level) {
    static int number;
    char name[32];
    snprintf(name, sizeof name, "m%d", number++);
    return repair_path(temp_model(&folder, name, header, bytes, len), level);
}

static outcome repair(const char *header, size_t len) {
    return repair_level(header, len, SFT_LEVEL_DEFAULT);
}

static void end(outcome *o) {
    sft_close(o->file);
    sft_buffer_free(&o->out);
}

static void expect_tensor(const outcome *o, const char *name, sft_dtype dtype, const char *text) {
    char buffer[32];
    const sft_tensor *t = sft_file_find_cstr(o->file, name);
    assert_non_null(t);
    assert_int_equal(t->dtype, dtype);
    assert_int_equal(t->end - t->begin, strlen(text));
    assert_int_equal(sft_read_into(o->file, t, buffer, strlen(text), NULL), SFT_OK);
    assert_memory_equal(buffer, text, strlen(text));
}

static void expect_pair(const outcome *o, const char *key, const char *value) {
    sft_span found;
    assert_true(sft_file_metadata_get_cstr(o->file, key, &found));
    assert_true(sft_span_equal(found, sft_span_cstr(value)));
}

#define A(begin, end) "\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[" begin "," end "]}"
#define B(begin, end) "\"b\":{\"dtype\":\"I16\",\"shape\":[2],\"data_offsets\":[" begin "," end "]}"

static void test_nothing(void **state) {
    (void)state;
    outcome o = repair("{" B("0", "4") "," A("4", "8") "}      ", 8);
    assert_int_equal(o.code, SFT_OK);
    assert_string_equal(o.names, "");
    expect_tensor(&o, "a", SFT_U8, "4567");
    assert_false(sft_file_has_metadata(o.file));
    end(&o);
    o = repair("{\"__metadata__\":{}}     ", 0);
    assert_int_equal(o.code, SFT_OK);
    assert_true(sft_file_has_metadata(o.file));
    end(&o);
}

static void test_data(void **state) {
    (void)state;
    outcome o = repair("{" B("0", "4") "," A("4", "8") "}      ", 11);
    assert_string_equal(o.names, "trailing_bytes");
    assert_int_equal(o.out.len, sft_file_data_offset(o.file) + 8);
    end(&o);
    o = repair("{" B("2", "6") "," A("8", "12") "}     ", 12);
    assert_string_equal(o.names, "hole hole");
    expect_tensor(&o, "b", SFT_I16, "2345");
    expect_tensor(&o, "a", SFT_U8, "89ab");
    end(&o);
    o = repair("{" B("0", "4") "," A("2", "6") "}      ", 6);
    assert_string_equal(o.names, "overlap");
    expect_tensor(&o, "b", SFT_I16, "0123");
    expect_tensor(&o, "a", SFT_U8, "2345");
    end(&o);
}

static void test_names(void **state) {
    (void)state;
    outcome o = repair("{" A("0", "4") "," "\"a\":{\"dtype\":\"I16\",\"shape\":[2],"
                       "\"data_offsets\":[4,8]}}     ", 8);
    assert_int_equal(o.code, SFT_OK);
    assert_true(strstr(o.names, "duplicate_name") != NULL);
    assert_int_equal(sft_file_tensor_count(o.file), 1);
    expect_tensor(&o, "a", SFT_I16, "4567");
    end(&o);
}

static void test_metadata(void **state) {
    (void)state;
    outcome o = repair("{\"__metadata__\":{\"k\":\"1\",\"n\":-1.5e3,\"l\":[1, \"x\"],\"k\":\"2\","
                       "\"o\":{\"p\":null},\"t\":true,\"\\u0065\":\"\\n\"}," A("0", "4") "}  ", 4);
    assert_int_equal(o.code, SFT_OK);
    expect_pair(&o, "k", "2");
    expect_pair(&o, "n", "-1.5e3");
    expect_pair(&o, "l", "[1, \"x\"]");
    expect_pair(&o, "o", "{\"p\":null}");
    expect_pair(&o, "t", "true");
    expect_pair(&o, "e", "\n");
    assert_int_equal(sft_file_metadata_count(o.file), 6);
    end(&o);
    o = repair("{\"__metadata__\":{\"k\":\"1\",\"j\":\"1\"},\"__metadata__\":{\"k\":\"2\"},"
               A("0", "4")
               "}", 4);
    assert_int_equal(o.code, SFT_OK);
    assert_true(strstr(o.names, "duplicate_metadata") != NULL);
    expect_pair(&o, "k", "2");
    expect_pair(&o, "j", "1");
    end(&o);
    o = repair("{\"__metadata__\":[1,[2]]," A("0", "4") "}", 4);
    assert_true(strstr(o.names, "metadata_type") != NULL);
    assert_false(sft_file_has_metadata(o.file));
    end(&o);
    o = repair("{\"__metadata__\":null," A("0", "4") "}", 4);
    assert_true(strstr(o.names, "metadata_null") != NULL);
    end(&o);
}

#define DIGESTS "\"__metadata__\":{\"sshs_model_hash\":\"1\",\"k\":\"v\"," \
                "\"modelspec.hash_sha256\":\"2\",\"sshs_legacy_hash\":\"3\"},"

/* Digests of data that is laid out differently afterwards are left out. */
static void test_digests(void **state) {
    (void)state;
    static const struct { const char *header; size_t len, pairs; } cases[] = {
        { "{" DIGESTS B("0", "4") "," A("4", "8") "}\n ", 8, 4 }, /* the same data */
        { "{" DIGESTS B("0", "4") "," A("4", "8") "}  ", 9, 1 },
        { "{" DIGESTS A("0", "4") "," B("4", "8") "}  ", 8, 1 },
        { "{" DIGESTS B("0", "4") "," A("6", "10") "} ", 10, 1 },
        { "{\"__metadata__\":{\"k\":\"v\",\"sshs_legacy_hash\":\"3\",\"ss_n\":1,"
          "\"sshs_model_hash\":\"1\"}," A("0", "4") "}", 4, 3 }, /* other metadata */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        sft_span value;
        outcome o = repair(cases[i].header, cases[i].len);
        assert_int_equal(o.code, SFT_OK);
        assert_int_equal(sft_file_metadata_count(o.file), cases[i].pairs);
        expect_pair(&o, "k", "v");
        assert_true(sft_file_metadata_get_cstr(o.file, "sshs_model_hash", &value)
                    == (cases[i].pairs > 1));
        assert_true(sft_file_metadata_get_cstr(o.file, "sshs_legacy_hash", &value)
                    == (cases[i].pairs == 4));
        end(&o);
    }
}

static void test_spelling(void **state) {
    (void)state;
    outcome o = repair("{\"a\":[\"U8\",[4],[0,4]],\"b\":{\"dtype\":{\"I16\":null},\"shape\":[2],"
                       "\"data_offsets\":[4,8]}}", 8);
    assert_int_equal(o.code, SFT_OK);
    assert_true(strstr(o.names, "entry_spelling dtype_spelling") != NULL);
    expect_tensor(&o, "a", SFT_U8, "0123");
    expect_tensor(&o, "b", SFT_I16, "4567");
    end(&o);
    o = repair_level(" {\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4],"
                     "\"x\":[{}]}}\n", 4,
                     SFT_LEVEL_STRICT);
    assert_int_equal(o.code, SFT_OK);
    assert_true(strstr(o.names, "first_byte") && strstr(o.names, "unknown_field"));
    end(&o);
}

/* The order of 2022, NULs behind the object, and both. */
static void test_old(void **state) {
    (void)state;
    outcome o = repair("{\"a\":{\"dtype\":\"uint8\",\"shape\":[4],\"offsets\":[0,4]}}", 6);
    assert_int_equal(o.code, SFT_OK);
    assert_true(strncmp(o.names, "legacy_layout trailing_bytes", 28) == 0);
    expect_tensor(&o, "a", SFT_U8, "0123");
    end(&o);
    static const char header[] = "{" A("0", "4") "}\0\0\0\0\0";
    char file[8 + sizeof header - 1 + 4] = { sizeof header - 1 };
    memcpy(file + 8, header, sizeof header - 1);
    memcpy(file + 8 + sizeof header - 1, "wxyz", 4);
    o = repair_path(temp_file(&folder, "zeros", file, sizeof file), SFT_LEVEL_DEFAULT);
    assert_int_equal(o.code, SFT_OK);
    assert_true(strstr(o.names, "header_nul") != NULL);
    expect_tensor(&o, "a", SFT_U8, "wxyz");
    end(&o);
}

static void refuse(const char *header, size_t len, sft_code code) {
    outcome o = repair(header, len);
    assert_int_equal(o.code, code);
    assert_int_equal(o.err.code, code);
    assert_true(o.err.message[0] != 0);
    assert_int_not_equal(o.err.hint, SFT_HINT_REPAIR);
    assert_int_not_equal(o.err.hint, SFT_HINT_REPAIR_PADDING);
}

static void test_refused(void **state) {
    sft_repair *r;
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    refuse("{" A("0", "4") "}", 3, SFT_DATA_TRUNCATED);
    refuse("{" A("0", "3") "}", 3, SFT_SIZE_MISMATCH);
    refuse("{" B("0", "4") "," A("4", "0") "}", 4, SFT_OFFSETS_REVERSED);
    refuse("{" A("4", "0") "}", 4, SFT_OFFSETS_REVERSED);
    refuse("{" A("0", "4") "}{}", 4, SFT_JSON_TRAILING);
    refuse("{" A("0", "4") "", 4, SFT_JSON_SYNTAX);
    refuse("{\"a\":{\"dtype\":\"U9\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4, SFT_DTYPE_UNKNOWN);
    refuse("{\"a\":{\"shape\":[4],\"data_offsets\":[0,4]}}", 4, SFT_FIELD_MISSING);
    refuse("{\"a\":{\"dtype\":\"uint9\",\"shape\":[4],\"offsets\":[0,4]}}", 4, SFT_DTYPE_UNKNOWN);
    refuse("{\"a\":{\"dtype\":\"uint8\",\"shape\":[4],\"offsets\":[0,9]}}", 4, SFT_SIZE_MISMATCH);
    assert_int_equal(sft_repair_open("/nowhere/x", NULL, &r, &err), SFT_NOT_FOUND);
    assert_int_equal(sft_repair_open(NULL, NULL, &r, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_repair_open("/tmp", NULL, &r, &err), SFT_IO_NOT_FILE);
    assert_int_equal(sft_repair_open(temp_text(&folder, "page", "<!DOCTYPE html><html>"), NULL, &r,
                                     &err), SFT_FOUND_HTML);
    sft_repair_close(NULL);
}

/* So many things are wrong that not all of them are known. */
static void test_too_many(void **state) {
    char *header = malloc(400000), *at = header;
    (void)state;
    for (int i = 0; i < 1200; i++)
        at += sprintf(at, "%s\"t%d\":[\"U8\",[0],[0,0]]", i ? "," : "{", i);
    strcpy(at, "}");
    outcome o = repair(header, 0);
    assert_int_equal(o.code, SFT_ENTRY_NOT_OBJECT);
    free(header);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing),  cmocka_unit_test(test_data),
        cmocka_unit_test(test_digests),
        cmocka_unit_test(test_names),    cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_spelling), cmocka_unit_test(test_old),
        cmocka_unit_test(test_refused),  cmocka_unit_test(test_too_many),
    };
    temp_begin(&folder);
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    temp_end(&folder);
    return failed;
}
