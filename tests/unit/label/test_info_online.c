/* Answers of a server as facts: their source, trust and match, beside a sidecar and digests;
 * recorded digests with a size that fits; what a cache remembers of a file. */
#define _GNU_SOURCE
#include "label/sidecars/sidecars.h"
#include "safetensors_hash.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "unit/digests.h"
#include "unit/temp_model.h"

#define SHA_A "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa1"
#define SHA_B "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb2"
#define HEADER "{\"a\":{\"dtype\":\"U8\",\"shape\":[8],\"data_offsets\":[0,8]}}"
#define ANSWER \
    "{\"id\":2,\"modelId\":1,\"name\":\"v1\",\"nsfwLevel\":3,\"trainedWords\":[\"w\"]," \
    "\"model\":{\"name\":\"New\",\"tags\":[\"t\",\"u\"],\"allowNoCredit\":true}," \
    "\"images\":[{\"meta\":{\"prompt\":\"p\"}}]," \
    "\"files\":[{\"sizeKB\":0.07,\"hashes\":{\"SHA256\":\"" SHA_A "\"," \
    "\"AutoV3\":\"22D8CB95B807\"}}]}"

static temp_folder temp;
static sft_set *set;
static sft_info *info;
static sft_buffer json;

static void open_with(const char *sidecar, const sft_info_options *options) {
    temp_begin(&temp);
    const char *path = temp_model(&temp, "x.safetensors", HEADER, "12345678", 8);
    (void)temp_model(&temp, "y.safetensors", HEADER, "12345678", 8); /* no folder's name */
    if (sidecar) (void)temp_text(&temp, "x.civitai.info", sidecar);
    memset(&json, 0, sizeof json);
    assert_int_equal(sft_set_open(path, NULL, &set, NULL), SFT_OK);
    assert_int_equal(sft_info_open(set, path, NULL, options, &info, NULL), SFT_OK);
}

static void close_all(void) {
    sft_info_close(info);
    sft_set_close(set);
    sft_buffer_free(&json);
    temp_end(&temp);
}

static void add(const char *answer) {
    assert_int_equal(sft_info_add_civitai(info, sft_span_cstr(answer), NULL), SFT_OK);
}

static void set_digests(const char *computed) {
    sft_hashes hashes = digests_of(computed);
    assert_int_equal(sft_info_set_computed(info, hashes.asked, &hashes, NULL), SFT_OK);
}

static bool is_told(const char *part) {
    sft_buffer_free(&json);
    memset(&json, 0, sizeof json);
    sft_sink sink = sft_sink_memory(&json);
    assert_int_equal(sft_info_json(info, "x", false, &sink, NULL), SFT_OK);
    assert_int_equal(sft_sink_write(&sink, json.len, "", 1, NULL), SFT_OK);
    return strstr(json.data, part) != NULL;
}

static void has(const char *part) {
    if (is_told(part)) return;
    print_error("not there: %s\nin: %s\n", part, json.data);
    fail();
}

static void has_fact(sft_fact fact, const char *value, const char *source, int trust) {
    sft_span found, where;
    int how;
    assert_true(sft_info_fact(info, fact, &found, &where, &how));
    assert_true(sft_span_equal(found, sft_span_cstr(value)));
    assert_true(sft_span_equal(where, sft_span_cstr(source)));
    assert_int_equal(how, trust);
}

/* ── Facts ── */

static void answers_are_facts(void **state) {
    (void)state;
    open_with(NULL, NULL);
    has_fact(SFT_FACT_NAME, "x", "filename", 30);
    add(ANSWER);
    has_fact(SFT_FACT_NAME, "New", "online:civitai", 95);
    has_fact(SFT_FACT_TAGS, "t, u", "online:civitai", 95);
    assert_int_equal(sft_info_trigger_count(info), 1);
    has("\"source\":\"online:civitai\",\"trust\":90,\"match\":\"size\",\"matches_file\":null");
    has("\"permissions\":{\"credit\":false,\"commercial\":[],\"derivatives\":null");
    has("\"cfg\":null,\"source\":\"online:civitai\"}");
    has("\"recorded\":[]");
    has("\"sidecars\":[]");
    add("{\"id\":3,\"model\":{\"name\":\"Newer\"}}");
    has_fact(SFT_FACT_NAME, "Newer", "online:civitai", 95);
    assert_int_equal(sft_info_trigger_count(info), 0);
    add("");
    has_fact(SFT_FACT_NAME, "x", "filename", 30);
    close_all();
}

/* Trusted alike, the server's word stands before the file's. */
static void answers_stand_beside_sidecars(void **state) {
    (void)state;
    open_with("{\"id\":2,\"modelId\":1,\"name\":\"v0\",\"model\":{\"name\":\"Old\"}}", NULL);
    has_fact(SFT_FACT_NAME, "Old", "sidecar:x.civitai.info:/model/name", 95);
    add(ANSWER);
    has_fact(SFT_FACT_NAME, "New", "online:civitai", 95);
    has("\"others\":[{\"value\":\"Old\",\"source\":\"sidecar:x.civitai.info:/model/name\"");
    close_all();
}

static void answers_are_matched(void **state) {
    (void)state;
    open_with(NULL, NULL);
    set_digests("{\"sha256\":\"" SHA_A "\",\"autov3\":\"22d8cb95b807\"}");
    add(ANSWER);
    has("\"match\":\"sha256\",\"matches_file\":true");
    has("\"mismatches\":[]");
    set_digests("{\"sha256\":\"" SHA_B "\",\"autov3\":\"22d8cb95b807\"}");
    has("\"match\":\"weights\",\"matches_file\":true");
    has_fact(SFT_FACT_NAME, "New", "online:civitai", 95);
    set_digests("{\"sha256\":\"" SHA_B "\",\"autov3\":\"000000000001\"}");
    has("\"match\":\"differs\",\"matches_file\":false");
    has_fact(SFT_FACT_NAME, "x", "filename", 30);
    close_all();
}

static void other_answers_tell_nothing(void **state) {
    static const char *const answers[] = {
        "", "x", "[1]", "null", "{", "{\"id\":\"\"}", "{\"model\":7,\"files\":{},\"images\":[1]}",
        "\xff", "{\"trainedWords\":{\"a\":1},\"id\":-2}",
    };
    (void)state;
    open_with(NULL, NULL);
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        add(answers[i]);
        has_fact(SFT_FACT_NAME, "x", "filename", 30);
        has("\"civitai\":null");
    }
    assert_int_equal(sft_info_add_civitai(info, (sft_span){ NULL, 0 }, NULL), SFT_OK);
    close_all();
}

/* ── Recorded digests ── */

static const struct sized_case { const char *sidecar, *sha256; } sized[] = {
    { "{\"id\":2,\"files\":[{\"sizeKB\":0.07,\"hashes\":{\"SHA256\":\"" SHA_A "\"}}]}", SHA_A },
    { "{\"id\":2,\"files\":[{\"sizeKB\":1.9,\"hashes\":{\"SHA256\":\"" SHA_A "\"}}]}", NULL },
    { "{\"id\":2,\"files\":[{\"hashes\":{\"SHA256\":\"" SHA_A "\"}}]}", NULL },
    { "{\"id\":2,\"files\":[{\"sizeKB\":0.07,\"hashes\":{\"AutoV3\":\"22D8CB95B807\"}}]}", NULL },
    { NULL, NULL },
};

static void sized_hashes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof sized / sizeof *sized; i++) {
        sft_span found = { "", 0 };
        open_with(sized[i].sidecar, NULL);
        assert_int_equal(sft_info_sized_hash(info, "sha256", &found), sized[i].sha256 != NULL);
        if (sized[i].sha256) assert_true(sft_span_equal(found, sft_span_cstr(sized[i].sha256)));
        assert_false(sft_info_sized_hash(info, "blake3", &found));
        close_all();
    }
}

/* ── Memory ── */

typedef struct failing { size_t calls, fail_on, held; } failing;

static void *resize_failing(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    failing *f = ctx;
    if (new_size == 0) {
        f->held -= old_size;
        free(ptr);
        return NULL;
    }
    if (++f->calls == f->fail_on) return NULL;
    f->held += new_size - old_size;
    return realloc(ptr, new_size);
}

static void memory_may_run_out(void **state) {
    sft_code code = SFT_OUT_OF_MEMORY;
    size_t failures = 0;
    (void)state;
    for (size_t n = 1; code == SFT_OUT_OF_MEMORY; n++) {
        failing f = { 0, 0, 0 };
        sft_allocator alloc = { resize_failing, &f };
        sft_info_options options = SFT_INFO_OPTIONS_INIT;
        options.alloc = &alloc;
        open_with("{\"id\":2,\"modelId\":1,\"model\":{\"name\":\"Old\"}}", &options);
        f.fail_on = f.calls + n;
        code = sft_info_add_civitai(info, sft_span_cstr(ANSWER), NULL);
        f.fail_on = 0;
        failures += code == SFT_OUT_OF_MEMORY;
        if (code)
            has_fact(SFT_FACT_NAME, "Old", "sidecar:x.civitai.info:/model/name", 95);
        else has_fact(SFT_FACT_NAME, "New", "online:civitai", 95);
        close_all();
        assert_int_equal(f.held, 0);
    }
    assert_int_equal(code, SFT_OK);
    assert_true(failures > 0);
}

/* ── The cache's marks ── */

static sft_hash_cache *open_cache(const char *path) {
    sft_hash_cache *cache;
    assert_int_equal(sft_hash_cache_open(path, NULL, &cache, NULL), SFT_OK);
    assert_null(sft_hash_cache_note(cache));
    return cache;
}

static void marks_are_kept(void **state) {
    static const char name[] = "unknown to \"\\u\xc3\xa9\" \n";
    char full[SFT_HASH_MARK_SIZE], more[SFT_HASH_MARK_SIZE + 1];
    uint64_t time = 9;
    (void)state;
    memset(full, 'x', sizeof full);
    memset(more, 'x', sizeof more);
    full[sizeof full - 1] = more[sizeof more - 1] = 0;
    temp_begin(&temp);
    const char *a = temp_text(&temp, "a", "1"), *b = temp_text(&temp, "b", "2");
    const char *path = temp_path(&temp, "cache");
    sft_hash_cache *cache = open_cache(path);
    assert_false(sft_hash_cache_marked(cache, a, name, &time));
    sft_hash_cache_mark(cache, a, name, 5);
    sft_hash_cache_mark(cache, a, more, 6); /* too long */
    sft_hash_cache_mark(cache, "/nowhere", name, 6);
    sft_hash_cache_mark(cache, b, name, 6);
    sft_hash_cache_mark(cache, b, full, UINT64_MAX);
    assert_int_equal(sft_hash_cache_save(cache, NULL), SFT_OK);
    sft_hash_cache_close(cache);
    cache = open_cache(path);
    assert_int_equal(sft_hash_cache_count(cache), 2);
    assert_true(sft_hash_cache_marked(cache, a, name, &time));
    assert_int_equal(time, 5);
    assert_false(sft_hash_cache_marked(cache, b, name, &time));
    assert_true(sft_hash_cache_marked(cache, b, full, &time));
    assert_true(time == UINT64_MAX);
    assert_false(sft_hash_cache_marked(cache, a, "", &time));
    (void)temp_text(&temp, "a", "12");
    assert_false(sft_hash_cache_marked(cache, a, name, &time));
    sft_hash_cache_close(cache);
    temp_end(&temp);
}

/* Digests and marks of one file live on one line. */
static void found_without_reading(void **state) {
    sft_hash_options options = SFT_HASH_OPTIONS_INIT;
    sft_hashes hashes, found = SFT_HASHES_INIT(SFT_HASH_BIT(SFT_HASH_CRC32));
    (void)state;
    temp_begin(&temp);
    const char *a = temp_text(&temp, "a", "123456789"), *path = temp_path(&temp, "cache");
    sft_hash_cache *cache = options.cache = open_cache(path);
    sft_hash_cache_mark(cache, a, "m", 1);
    assert_int_equal(sft_hash_path(a, SFT_HASH_BIT(SFT_HASH_CRC32) | 1, &options, &hashes, NULL,
                                   NULL), SFT_OK);
    sft_hash_cache_find(cache, a, &found);
    assert_int_equal(sft_hashes_known(&found), SFT_HASH_BIT(SFT_HASH_CRC32));
    assert_string_equal(sft_hashes_get(&found, SFT_HASH_CRC32), "cbf43926");
    sft_hash_cache_find(cache, "/nowhere", &found);
    assert_int_equal(sft_hash_cache_count(cache), 1);
    sft_hash_cache_close(cache);
    temp_end(&temp);
}

static void damaged_marks(void **state) {
    static const char *const marks[] = {
        "7", "[]", "{\"name\":7}", "{\"time\":\"x\"}", "{\"time\":-1}",
        "{\"name\":\"0123456789012345678901234567890123456789012345678901234567890123\"}",
    };
    char text[512];
    (void)state;
    for (size_t i = 0; i < sizeof marks / sizeof *marks; i++) {
        sft_hash_cache *cache;
        snprintf(text, sizeof text,
                 "{\"safetensors_hash_cache\":2}\n{\"device\":1,\"inode\":2,\"size\":3,"
                 "\"mtime_ns\":4,\"ctime_ns\":5,\"hashes\":{},\"mark\":%s}\n", marks[i]);
        temp_begin(&temp);
        const char *path = temp_text(&temp, "cache", text);
        assert_int_equal(sft_hash_cache_open(path, NULL, &cache, NULL), SFT_OK);
        assert_non_null(sft_hash_cache_note(cache));
        assert_int_equal(sft_hash_cache_count(cache), 0);
        sft_hash_cache_close(cache);
        temp_end(&temp);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_are_facts),
        cmocka_unit_test(answers_stand_beside_sidecars),
        cmocka_unit_test(answers_are_matched),
        cmocka_unit_test(other_answers_tell_nothing),
        cmocka_unit_test(sized_hashes),
        cmocka_unit_test(memory_may_run_out),
        cmocka_unit_test(marks_are_kept),
        cmocka_unit_test(found_without_reading),
        cmocka_unit_test(damaged_marks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
