/* Digests of files: the vectors of the definitions, sets, files that are none, JSON. */
#define _GNU_SOURCE
#include "unit/hash_case.h"

/* ── The vectors: one tensor of n bytes, byte i is i * i mod 251 ── */

static void vectors_all_at_once(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        sft_hashes found = hash_one(nth_vector(i), SFT_HASH_ALL, 1);
        assert_int_equal(sft_hashes_asked(&found), SFT_HASH_ALL);
        assert_hashes(&found, vectors[i]);
    }
}

static void vectors_one_by_one(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        const char *path = nth_vector(i);
        for (int a = 0; a < SFT_HASH_COUNT; a++) {
            sft_hashes found = hash_one(path, SFT_HASH_BIT(a), 1);
            assert_hashes(&found, vectors[i]);
        }
    }
}

static void vectors_of_open_sets(void **state) {
    (void)state;
    for (int i = 0; i < 4; i++) {
        for (int mode = SFT_READ; mode <= SFT_MAP; mode++) {
            sft_set_options options = SFT_SET_OPTIONS_INIT;
            sft_open_options open = SFT_OPEN_OPTIONS_INIT;
            sft_hashes found;
            sft_set *set;
            options.open = &open;
            open.mode = (sft_mode)mode;
            assert_int_equal(sft_set_open(nth_vector(i), &options, &set, NULL), SFT_OK);
            assert_int_equal(sft_hash_set(set, SFT_HASH_ALL, &found, NULL, NULL), SFT_OK);
            assert_hashes(&found, vectors[i]);
            sft_set_close(set);
        }
    }
}

/* ── AutoV3 of long headers ── */

static void autov3_of_a_header_of_16_mib(void **state) {
    uint32_t both = SFT_HASH_BIT(SFT_HASH_AUTOV3) | SFT_HASH_BIT(SFT_HASH_SSHS_MODEL);
    (void)state;
    sft_hashes found = hash_one(vector_file("long", "", 1000, 16 << 20), both, 1);
    assert_string_equal(sft_hashes_get(&found, SFT_HASH_SSHS_MODEL), v1[SFT_HASH_SSHS_MODEL]);
    assert_string_equal(sft_hashes_get(&found, SFT_HASH_AUTOV3), "fd6ce04f8e6d");
    found = hash_one(vector_file("shorter", "", 1000, (16 << 20) - 8), both, 1);
    assert_string_equal(sft_hashes_get(&found, SFT_HASH_AUTOV3), "455cf5fc5bd6");
}

/* ── sshs_legacy ── */

#define LEGACY SFT_HASH_BIT(SFT_HASH_SSHS_LEGACY)

static const char *two_tensors(const char *name, const char *keys, bool swapped) {
    char header[512];
    unsigned char *data = squares(1200000);
    (void)snprintf(header, sizeof header,
                   "{%s\"%s\":{\"dtype\":\"U8\",\"shape\":[600000],\"data_offsets\":[0,600000]},"
                   "\"%s\":{\"dtype\":\"U8\",\"shape\":[600000],"
                   "\"data_offsets\":[600000,1200000]}}",
                   keys, swapped ? "b" : "a", swapped ? "a" : "b");
    const char *path = temp_model(&folder, name, header, data, 1200000);
    free(data);
    return path;
}

static void legacy_needs_the_writers_order(void **state) {
    (void)state;
    sft_hashes found = hash_one(two_tensors("ordered", OTHER_KEYS, false), LEGACY, 1);
    assert_int_equal(sft_hashes_known(&found), LEGACY);
    found = hash_one(two_tensors("swapped", OTHER_KEYS, true), LEGACY, 1);
    assert_int_equal(sft_hashes_asked(&found), LEGACY);
    assert_int_equal(sft_hashes_known(&found), 0);
}

/* Only keys of training, or none: the file as it is. */
static void legacy_is_autov1_without_other_keys(void **state) {
    static const char *const keys[] = { "", "\"__metadata__\":{},",
                                        "\"__metadata__\":{\"ss_a\":\"b\"}," };
    (void)state;
    for (int i = 0; i < 3; i++) {
        sft_hashes found = hash_one(two_tensors("plain", keys[i], true), SFT_HASH_ALL, 1);
        assert_int_equal(sft_hashes_known(&found) & LEGACY, LEGACY);
        assert_string_equal(sft_hashes_get(&found, SFT_HASH_SSHS_LEGACY),
                            sft_hashes_get(&found, SFT_HASH_AUTOV1));
    }
}

/* The same as the file that really is without the other keys. */
static void legacy_is_that_of_the_shorter_file(void **state) {
    (void)state;
    const char *bare = vector_file("bare", "\"__metadata__\":{\"ss_output_name\":\"demo\"},",
                                   1100000, 8);
    sft_hashes found = hash_one(bare, SFT_HASH_BIT(SFT_HASH_AUTOV1), 1);
    assert_string_equal(sft_hashes_get(&found, SFT_HASH_AUTOV1), v3[SFT_HASH_SSHS_LEGACY]);
}

static void legacy_is_unknown_past_1_mib(void **state) {
    static const char before[] = "{\"__metadata__\":{\"format\":\"pt\",\"ss_tags\":\"";
    static const char after[] = "\"},\"a\":{\"dtype\":\"U8\",\"shape\":[9],"
                                "\"data_offsets\":[0,9]}}";
    size_t tags = 1 << 20, len = sizeof before - 1;
    char *header = malloc(len + tags + sizeof after);
    (void)state;
    temp_must(header != NULL, "malloc");
    memcpy(header, before, len);
    memset(header + len, 'x', tags);
    memcpy(header + len + tags, after, sizeof after);
    sft_hashes found =
        hash_one(temp_model(&folder, "tags", header, "123456789", 9), LEGACY, 1);
    assert_int_equal(sft_hashes_known(&found), 0);
    free(header);
}

/* ── content ── */

static void content_is_of_names_and_values(void **state) {
    static const char digest[] =
        "3ca3abbb32a1ac07fee6b49535bcd04d7a85d882db9d1fa4f0a4ec165d44e54d";
    (void)state;
    assert_string_equal(content_of(three_in_one, "123abcd", 7), digest);
    assert_string_equal(content_of(three_turned, "abcd123", 7), digest);
    assert_string_not_equal(content_of(three_turned, "abcd124", 7), digest);
    assert_string_equal(content_of("{\"e\":{\"dtype\":\"U8\",\"shape\":[0],"
                                   "\"data_offsets\":[0,0]}}", "", 0),
                        "7f5fe81013bf3db6b312ff3fcd5f4e0ca3794bf2657e435534de46c152426b8c");
}

static void sets_have_content_and_shards(void **state) {
    sft_hash_request ask = { make_set(), CONTENT | SFT_HASH_BIT(SFT_HASH_SHA256) };
    (void)state;
    for (uint32_t threads = 1; threads <= 3; threads++) {
        sft_job job = SFT_JOB_INIT;
        seen s = { 0 };
        job.threads = threads;
        assert_int_equal(sft_hash_paths(&ask, 1, NULL, keep, &s, &job, NULL), SFT_OK);
        assert_int_equal(sft_hashes_asked(&s.last.hashes), ask.algos);
        assert_int_equal(sft_hashes_known(&s.last.hashes), CONTENT);
        assert_string_equal(sft_hashes_get(&s.last.hashes, SFT_HASH_CONTENT),
                            content_of(three_in_one, "123abcd", 7));
        assert_int_equal(s.last.shard_count, 2);
        for (int i = 0; i < 2; i++) {
            sft_hashes alone = hash_one(temp_path(&folder, i ? "m-2.safetensors"
                                                             : "m-1.safetensors"),
                                        SFT_HASH_BIT(SFT_HASH_SHA256), 1);
            assert_string_equal(s.shards[i], sft_hashes_get(&alone, SFT_HASH_SHA256));
        }
    }
}

static void open_sets_have_content(void **state) {
    sft_hashes found;
    sft_set *set;
    (void)state;
    assert_int_equal(sft_set_open(make_set(), NULL, &set, NULL), SFT_OK);
    assert_int_equal(sft_hash_set(set, SFT_HASH_ALL, &found, NULL, NULL), SFT_OK);
    assert_int_equal(sft_hashes_asked(&found), SFT_HASH_ALL);
    assert_int_equal(sft_hashes_known(&found), CONTENT);
    assert_string_equal(sft_hashes_get(&found, SFT_HASH_CONTENT),
                        content_of(three_in_one, "123abcd", 7));
    sft_set_close(set);
}

/* ── Files that are none ── */

static void other_files_have_whole_digests(void **state) {
    const char *path = temp_text(&folder, "text", "hello world");
    sft_hash_request ask = { path, SFT_HASH_ALL };
    seen s = { 0 };
    (void)state;
    assert_int_equal(sft_hash_paths(&ask, 1, NULL, keep, &s, NULL, NULL), SFT_OK);
    assert_int_equal(s.codes[0], SFT_OK);
    assert_non_null(s.last.model_error);
    assert_int_equal(s.last.bytes, 11);
    assert_int_equal(sft_hashes_known(&s.last.hashes) & SFT_HASH_OF_MODEL, 0);
    assert_string_equal(sft_hashes_get(&s.last.hashes, SFT_HASH_CRC32), "0d4a1185");
}

static void bad_paths_are_answers(void **state) {
    const char *good = temp_text(&folder, "text", "hello world");
    uint32_t sha = SFT_HASH_BIT(SFT_HASH_SHA256);
    sft_hash_request asks[] = { { "/nowhere/at/all", sha }, { good, sha }, { folder.path, sha },
                            { "/nowhere/x.safetensors.index.json", sha } };
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads++) {
        sft_job job = SFT_JOB_INIT;
        seen s = { 0 };
        job.threads = threads;
        assert_int_equal(sft_hash_paths(asks, 4, NULL, keep, &s, &job, NULL), SFT_OK);
        assert_int_equal(s.count, 4);
        assert_int_equal(s.codes[0], SFT_NOT_FOUND);
        assert_int_equal(s.codes[1], SFT_OK);
        assert_string_equal(s.text[1], "b94d27b9934d3e08a52e52d7da7dabfac484efe37a5380ee9088f7ac"
                                       "e2efcde9");
        assert_int_equal(s.codes[2], SFT_IO_NOT_FILE);
        assert_int_equal(s.codes[3], SFT_NOT_FOUND);
    }
}

static void bad_calls_are_refused(void **state) {
    sft_hash_request none = { NULL, 1 }, bits = { "x", SFT_HASH_ALL + 1 };
    sft_hashes found;
    seen s = { 0 };
    (void)state;
    assert_int_equal(sft_hash_paths(&none, 1, NULL, keep, &s, NULL, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_hash_paths(&bits, 1, NULL, keep, &s, NULL, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_hash_paths(NULL, 1, NULL, keep, &s, NULL, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_hash_paths(NULL, 0, NULL, keep, &s, NULL, NULL), SFT_OK);
    assert_int_equal(sft_hash_set(NULL, 1, &found, NULL, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_hash_path("/nowhere", 1, NULL, &found, NULL, NULL), SFT_NOT_FOUND);
    assert_int_equal(sft_hashes_known(&found), 0);
    assert_int_equal(s.count, 0);
}

/* ── JSON ── */

static char *json_of(const sft_hash_result *result, const sft_hash_claim *claims, size_t count) {
    static char text[4096];
    sft_buffer buffer = { 0 };
    sft_sink sink = sft_sink_memory(&buffer);
    assert_int_equal(sft_hash_json(result, "m", claims, count, &sink, NULL), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, NULL), SFT_OK);
    assert_true(buffer.len < sizeof text);
    memcpy(text, buffer.data, buffer.len);
    text[buffer.len] = '\0';
    sft_buffer_free(&buffer);
    return text;
}

static void results_are_json(void **state) {
    sft_hash_claim claims[] = { { SFT_HASH_CRC32, { "0D4A1185", 8 } },
                                { SFT_HASH_CONTENT, { "\x1b", 1 } } };
    sft_hash_result result = { .bytes = 11 };
    sft_hasher *hasher;
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    assert_int_equal(sft_hasher_new(SFT_HASH_BIT(SFT_HASH_CRC32) | CONTENT, NULL, &hasher, NULL),
                     SFT_OK);
    sft_hasher_update(hasher, "hello world", 11);
    sft_hasher_result(hasher, &result.hashes);
    sft_hasher_free(hasher);
    assert_string_equal(json_of(&result, NULL, 0),
                        "{\"path\":\"m\",\"ok\":true,"
                        "\"bytes\":11,\"remembered\":false,\"computed\":{\"crc32\":\"0d4a1185\","
                        "\"content\":null},\"model_error\":null}");
    assert_non_null(strstr(json_of(&result, claims, 2),
                           "\"verified\":[{\"algo\":\"crc32\",\"claimed\":\"0D4A1185\","
                           "\"computed\":\"0d4a1185\",\"agrees\":true},{\"algo\":\"content\","
                           "\"claimed\":\"\\u001b\",\"computed\":null,\"agrees\":false}]}"));
    sft_error_set(&err, SFT_NOT_FOUND, 2, "gone");
    result.error = &err;
    assert_non_null(strstr(json_of(&result, NULL, 0), "\"ok\":false,\"error\":{\"code\":"
                                                      "\"not_found\""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(vectors_all_at_once, begin, end),
        cmocka_unit_test_setup_teardown(vectors_one_by_one, begin, end),
        cmocka_unit_test_setup_teardown(vectors_of_open_sets, begin, end),
        cmocka_unit_test_setup_teardown(autov3_of_a_header_of_16_mib, begin, end),
        cmocka_unit_test_setup_teardown(legacy_needs_the_writers_order, begin, end),
        cmocka_unit_test_setup_teardown(legacy_is_autov1_without_other_keys, begin, end),
        cmocka_unit_test_setup_teardown(legacy_is_that_of_the_shorter_file, begin, end),
        cmocka_unit_test_setup_teardown(legacy_is_unknown_past_1_mib, begin, end),
        cmocka_unit_test_setup_teardown(content_is_of_names_and_values, begin, end),
        cmocka_unit_test_setup_teardown(sets_have_content_and_shards, begin, end),
        cmocka_unit_test_setup_teardown(open_sets_have_content, begin, end),
        cmocka_unit_test_setup_teardown(other_files_have_whole_digests, begin, end),
        cmocka_unit_test_setup_teardown(bad_paths_are_answers, begin, end),
        cmocka_unit_test_setup_teardown(bad_calls_are_refused, begin, end),
        cmocka_unit_test_setup_teardown(results_are_json, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
