/* Digests of files: the vectors of the definitions, sets, threads, the cache. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "safetensors_hash.h"
#include "unit/make_file.h"
#include "unit/stat_times.h"
#include "unit/temp_model.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/time.h>
#include <time.h>

static temp_folder folder;

static int begin(void **state) {
    (void)state;
    (void)umask(022);
    temp_begin(&folder);
    return 0;
}

static int end(void **state) {
    (void)state;
    temp_end(&folder);
    return 0;
}

/* ── The vectors: one tensor of n bytes, byte i is i * i mod 251 ── */

#define OTHER_KEYS "\"__metadata__\":{\"format\":\"pt\",\"ss_output_name\":\"demo\"," \
                   "\"modelspec.title\":\"Demo\"},"

static unsigned char *squares(size_t n) {
    unsigned char *data = malloc(n + 1);
    temp_must(data != NULL, "malloc");
    for (size_t i = 0; i < n; i++) data[i] = (unsigned char)(i * i % 251);
    return data;
}

/* The header is padded with spaces to a multiple of `align`. */
static const char *vector_file(const char *name, const char *before, size_t n, size_t align) {
    char *header = malloc(align + 1024);
    temp_must(header != NULL, "malloc");
    int len = snprintf(header, 1024,
                       "{%s\"a\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}",
                       before, n, n);
    size_t used = (size_t)len;
    while (used % align) header[used++] = ' ';
    header[used] = '\0';
    unsigned char *data = squares(n);
    const char *path = temp_model(&folder, name, header, data, n);
    free(header);
    free(data);
    return path;
}

static sft_hashes hash_one(const char *path, uint32_t algos, uint32_t threads) {
    sft_hashes found;
    sft_error err = SFT_ERROR_INIT;
    sft_job job = SFT_JOB_INIT;
    job.threads = threads;
    if (sft_hash_path(path, algos, NULL, &found, &job, &err)) fail_msg("%s", err.message);
    return found;
}

static const char *const v1[SFT_HASH_COUNT] = {
    "828de05c575b149095271ba9859e9d1f805a06364837209f24f5478d0338aa8f", "e3b0c442", "",
    "828de05c57", "455cf5fc5bd6",
    "455cf5fc5bd6c6f54676a2052bf9d30645d70370d3acfdb354b2b379703d8643", "e3b0c442", "9b34ae49",
    "49ae349b", "ddac3206a5d4c82b6f51a864b6f87bb3649185c4cd7a235b2ac6ff4da7e6d31b",
    "edc69b51e3a6b756d209bd182aec3067f168538676f5aef013be59414602504e",
};
static const char *const v2[SFT_HASH_COUNT] = {
    "4eb6f1ccc64e245df7aeda7199dabfecc5b8580505dca9929d411ad47ee207f2", "e3b0c442", "",
    "4eb6f1ccc6", "455cf5fc5bd6",
    "455cf5fc5bd6c6f54676a2052bf9d30645d70370d3acfdb354b2b379703d8643", "e3b0c442", "2e312ecc",
    "cc2e312e", "bba06825fe98dd0fb7a1193360d115b3c12198677ac8ac5bc8d769353447b0bd",
    "edc69b51e3a6b756d209bd182aec3067f168538676f5aef013be59414602504e",
};
static const char *const v3[SFT_HASH_COUNT] = {
    "0620185eba547298f495192e73d47ea171742baf447f83c78c87d3b91c2377d2", "cac931a0", "",
    "0620185eba", "6ba0b67666c1",
    "6ba0b67666c12868e9c23b1eb1e193c9e2c62eb5eba40386537389731c92e8f7", "ab516657", "25aea3dc",
    "dca3ae25", "f5655b5283bba5faf238697858c37d0a37222246985f3a7ea52166374c65a53c",
    "428a32ae425860671fa5a5167404ef521ded7de195a3737109e68e7f558ee8a1",
};
static const char *const v4[SFT_HASH_COUNT] = {
    "44349cf314b856eaac42ac46807df3da5fe8d8519ad6a3682f46ad0a8f2db6e8", "67ce82a9", "67ce82a9",
    "44349cf314", "6081a84ba410",
    "6081a84ba410f8a1dfd810e85dd20885a8047ce10633f57cc6be4bd01ebd83a7", "3b45b403", "6c30e932",
    "32e9306c", "4af010407ad12632e91cf3bdacdb9aad1ef350c49643710786c96eb6bab169d9",
    "585e54f56668b5ddd48f68292a019b9c2e4e4594722d2d065f388716754e17e5",
};

static void assert_hashes(const sft_hashes *found, const char *const want[SFT_HASH_COUNT]) {
    for (int i = 0; i < SFT_HASH_COUNT; i++) {
        bool known = (sft_hashes_known(found) & SFT_HASH_BIT(i)) != 0;
        const char *text = sft_hashes_get(found, (sft_hash_algo)i);
        assert_string_equal(text ? text : "",
                            sft_hashes_asked(found) & SFT_HASH_BIT(i) ? want[i] : "");
        assert_int_equal(known, text != NULL);
    }
}

static const char *const *const vectors[] = { v1, v2, v3, v4 };

static const char *nth_vector(int i) {
    static const size_t sizes[] = { 1000, 1000, 1100000, 2200000 };
    char name[8];
    (void)snprintf(name, sizeof name, "v%d", i + 1);
    return vector_file(name, i ? OTHER_KEYS : "", sizes[i], 8);
}

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

static const char three_in_one[] =
    "{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
    "\"b\":{\"dtype\":\"F16\",\"shape\":[2,1],\"data_offsets\":[3,7]},"
    "\"c\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[7,7]}}";
static const char three_turned[] =
    "{\"__metadata__\":{\"x\":\"y\"},"
    "\"c\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},"
    "\"b\":{\"dtype\":\"F16\",\"shape\":[2,1],\"data_offsets\":[0,4]},"
    "\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[4,7]}}";

#define CONTENT SFT_HASH_BIT(SFT_HASH_CONTENT)

static const char *content_of(const char *header, const char *data, size_t len) {
    static char text[SFT_HASH_TEXT_SIZE];
    sft_hashes found = hash_one(temp_model(&folder, "c", header, data, len), CONTENT, 1);
    assert_int_equal(sft_hashes_known(&found), CONTENT);
    memcpy(text, sft_hashes_get(&found, SFT_HASH_CONTENT), 65);
    return text;
}

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

static const char *make_set(void) {
    (void)temp_model(&folder, "m-1.safetensors",
                     "{\"b\":{\"dtype\":\"F16\",\"shape\":[2,1],\"data_offsets\":[0,4]}}", "abcd",
                     4);
    (void)temp_model(&folder, "m-2.safetensors",
                     "{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
                     "\"c\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[3,3]}}", "123", 3);
    return temp_text(&folder, "m.safetensors.index.json",
                     "{\"weight_map\":{\"a\":\"m-2.safetensors\",\"b\":\"m-1.safetensors\","
                     "\"c\":\"m-2.safetensors\"}}");
}

typedef struct seen {
    size_t count, stop_at;
    sft_hash_result last;
    char text[8][SFT_HASH_TEXT_SIZE];
    char shards[8][SFT_HASH_TEXT_SIZE];
    sft_code codes[8];
} seen;

static void take_sha256(const sft_hashes *hashes, char out[SFT_HASH_TEXT_SIZE]) {
    const char *text = sft_hashes_get(hashes, SFT_HASH_SHA256);
    memcpy(out, text ? text : "", text ? 65 : 1);
}

static bool keep(void *ctx, const sft_hash_result *result) {
    seen *s = ctx;
    assert_int_equal(result->index, s->count);
    s->last = *result;
    s->codes[s->count] = result->error ? result->error->code : SFT_OK;
    take_sha256(&result->hashes, s->text[s->count]);
    for (size_t i = 0; i < result->shard_count; i++)
        take_sha256(&result->shards[i], s->shards[i]);
    return ++s->count != s->stop_at;
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

/* ── Threads, progress, stopping ── */

typedef struct ticking {
    unsigned ticks, stop_at;
    uint64_t last, total;
} ticking;

static bool tick(void *ctx, uint64_t done, uint64_t total) {
    ticking *t = ctx;
    assert_true(done >= t->last);
    t->last = done;
    t->total = total;
    return ++t->ticks != t->stop_at;
}

static void one_large_file_by_many_threads(void **state) {
    const char *path = vector_file("large", OTHER_KEYS, 20000000, 8);
    sft_hashes alone = hash_one(path, SFT_HASH_ALL, 1);
    (void)state;
    assert_int_equal(sft_hashes_known(&alone), SFT_HASH_ALL);
    for (uint32_t threads = 2; threads <= 6; threads++) {
        sft_hashes found = hash_one(path, SFT_HASH_ALL, threads);
        assert_memory_equal(&found, &alone, sizeof found);
    }
}

static void many_files_by_many_threads(void **state) {
    sft_hash_request asks[8];
    seen alone = { 0 };
    (void)state;
    for (int i = 0; i < 8; i++)
        asks[i] = (sft_hash_request){ nth_vector(i % 4), SFT_HASH_BIT(SFT_HASH_SHA256) };
    assert_int_equal(sft_hash_paths(asks, 8, NULL, keep, &alone, NULL, NULL), SFT_OK);
    for (uint32_t threads = 0; threads <= 5; threads++) {
        ticking t = { 0 };
        sft_job job = { sizeof job, tick, &t, threads };
        seen s = { 0 };
        assert_int_equal(sft_hash_paths(asks, 8, NULL, keep, &s, &job, NULL), SFT_OK);
        assert_int_equal(s.count, 8);
        for (int i = 0; i < 8; i++) assert_string_equal(s.text[i], vectors[i % 4][0]);
        assert_int_equal(t.last, t.total);
        assert_int_equal(t.total, 2 * (1072 + 1152 + 1100160 + 2200160));
    }
}

static void ticks_come_often(void **state) {
    const char *path = vector_file("large", "", 40000000, 8);
    ticking t = { 0 };
    sft_job job = { sizeof job, tick, &t, 1 };
    sft_hashes found;
    (void)state;
    assert_int_equal(sft_hash_path(path, SFT_HASH_BIT(SFT_HASH_BLAKE3), NULL, &found, &job, NULL),
                     SFT_OK);
    assert_true(t.ticks >= 5);
    assert_int_equal(t.last, t.total);
}

static void a_tick_stops(void **state) {
    const char *path = vector_file("large", "", 20000000, 8);
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads++) {
        ticking t = { .stop_at = 3 };
        sft_job job = { sizeof job, tick, &t, threads };
        sft_hashes found;
        assert_int_equal(sft_hash_path(path, SFT_HASH_ALL, NULL, &found, &job, NULL),
                         SFT_CANCELLED);
        assert_int_equal(sft_hashes_known(&found), 0);
        assert_int_equal(t.ticks, 3);
    }
}

static void an_answer_stops(void **state) {
    sft_hash_request asks[4];
    (void)state;
    for (int i = 0; i < 4; i++)
        asks[i] = (sft_hash_request){ nth_vector(i), SFT_HASH_BIT(SFT_HASH_SHA256) };
    for (uint32_t threads = 1; threads <= 3; threads++) {
        sft_job job = SFT_JOB_INIT;
        seen s = { .stop_at = 2 };
        job.threads = threads;
        assert_int_equal(sft_hash_paths(asks, 4, NULL, keep, &s, &job, NULL), SFT_CANCELLED);
        assert_int_equal(s.count, 2);
    }
}

/* Memory that runs out anywhere is told, and nothing stays. */
static void memory_runs_out(void **state) {
    const char *paths[] = { nth_vector(1), make_set() };
    (void)state;
    for (int p = 0; p < 2; p++) {
        sft_code code = SFT_OUT_OF_MEMORY;
        for (size_t n = 1; code != SFT_OK; n++) {
            test_memory memory = { .fail_on = n };
            sft_allocator alloc = { resize_test_memory, &memory };
            sft_hash_options options = SFT_HASH_OPTIONS_INIT;
            sft_open_options open = SFT_OPEN_OPTIONS_INIT;
            sft_hashes found;
            options.open = &open;
            open.alloc = &alloc;
            code = sft_hash_path(paths[p], SFT_HASH_ALL, &options, &found, NULL, NULL);
            assert_true(code == SFT_OK || code == SFT_OUT_OF_MEMORY);
            assert_int_equal(memory.held, 0);
            assert_true(n < 200);
        }
    }
}

/* ── Small stacks ── */

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || defined(__clang__)
#define SMALL_STACK ((size_t)1 << 20) /* sanitizers widen frames */
#else
#define SMALL_STACK ((size_t)72 << 10)
#endif

static void *hash_on_small_stack(void *ctx) {
    sft_hashes *out = ctx;
    sft_job job = SFT_JOB_INIT;
    for (uint32_t threads = 1; threads <= 4; threads += 3) {
        job.threads = threads;
        if (sft_hash_path(nth_vector(3), SFT_HASH_ALL, NULL, &out[threads > 1], &job, NULL))
            return NULL;
    }
    return ctx;
}

static void a_small_stack_does(void **state) {
    static sft_hashes found[2];
    pthread_attr_t attr;
    pthread_t thread;
    void *done = NULL;
    (void)state;
    assert_int_equal(pthread_attr_init(&attr), 0);
    if (pthread_attr_setstacksize(&attr, SMALL_STACK)) /* the system's least is more, on ARM */
        assert_int_equal(pthread_attr_setstacksize(&attr, (size_t)128 << 10), 0);
    assert_int_equal(pthread_create(&thread, &attr, hash_on_small_stack, found), 0);
    assert_int_equal(pthread_join(thread, &done), 0);
    assert_int_equal(pthread_attr_destroy(&attr), 0);
    assert_non_null(done);
    for (int i = 0; i < 2; i++) assert_hashes(&found[i], v4);
}

/* ── The cache ── */

#define CACHE_HEAD "{\"safetensors_hash_cache\":2}\n"
#define CACHE_TIMES "\"mtime_ns\":4,\"ctime_ns\":5,"
#define CACHE_LINE "{\"device\":1,\"inode\":2,\"size\":3," CACHE_TIMES "\"hashes\":"

static unsigned long long ns_of(struct timespec time) {
    return (unsigned long long)time.tv_sec * 1000000000ull + (unsigned long long)time.tv_nsec;
}

static sft_hash_cache *open_cache(const char *path) {
    sft_hash_cache *cache;
    sft_error err = SFT_ERROR_INIT;
    if (sft_hash_cache_open(path, NULL, &cache, &err)) fail_msg("%s", err.message);
    return cache;
}

static seen hash_cached(sft_hash_cache *cache, const char *path, uint32_t algos) {
    sft_hash_options options = SFT_HASH_OPTIONS_INIT;
    sft_hash_request ask = { path, algos };
    seen s = { 0 };
    options.cache = cache;
    assert_int_equal(sft_hash_paths(&ask, 1, &options, keep, &s, NULL, NULL), SFT_OK);
    return s;
}

static void cache_remembers(void **state) {
    const char *path = temp_path(&folder, "cache"), *model = nth_vector(3);
    (void)state;
    sft_hash_cache *cache = open_cache(path);
    assert_null(sft_hash_cache_note(cache));
    seen s = hash_cached(cache, model, SFT_HASH_ALL);
    assert_false(s.last.is_remembered);
    assert_int_equal(sft_hash_cache_save(cache, NULL), SFT_OK);
    sft_hash_cache_close(cache);
    cache = open_cache(path);
    assert_int_equal(sft_hash_cache_count(cache), 1);
    s = hash_cached(cache, model, SFT_HASH_ALL);
    assert_true(s.last.is_remembered);
    assert_hashes(&s.last.hashes, v4);
    sft_hash_cache_close(cache);
}

static void change_byte(const char *path, off_t at) {
    int fd = open(path, O_WRONLY);
    temp_must(fd >= 0 && pwrite(fd, "!", 1, at) == 1 && close(fd) == 0, "change");
}

/* What is remembered is not read: the file may have become unreadable. */
static void cache_reads_no_data(void **state) {
    const char *model = nth_vector(1), *line = temp_path(&folder, "cache");
    struct stat st;
    char text[512];
    (void)state;
    temp_must(stat(model, &st) == 0, "stat");
    (void)snprintf(text, sizeof text,
                   CACHE_HEAD "{\"device\":%llu,\"inode\":%llu,\"size\":%llu,\"mtime_ns\":%llu,"
                              "\"ctime_ns\":%llu,\"hashes\":{\"crc32\":\"00c0ffee\"}}\n",
                   (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
                   (unsigned long long)st.st_size, ns_of(st.st_mtim), ns_of(st.st_ctim));
    line = temp_text(&folder, "cache", text);
    sft_hash_cache *cache = open_cache(line);
    seen s = hash_cached(cache, model, SFT_HASH_BIT(SFT_HASH_CRC32));
    assert_true(s.last.is_remembered);
    assert_string_equal(sft_hashes_get(&s.last.hashes, SFT_HASH_CRC32), "00c0ffee");
    sft_hash_cache_close(cache);
}

/* Bytes change and the time of the last change is set back, as --keep-mtime and touch do: ctime
 * tells. */
static void cache_notices_what_mtime_hides(void **state) {
    const char *model = nth_vector(1);
    struct stat before;
    struct timespec times[2];
    (void)state;
    sft_hash_cache *cache = open_cache(temp_path(&folder, "cache"));
    (void)hash_cached(cache, model, SFT_HASH_BIT(SFT_HASH_SHA256));
    temp_must(stat(model, &before) == 0, "stat");
    (void)usleep(20000); /* more than the clock of file systems ticks in */
    change_byte(model, 500);
    times[0] = before.st_atim;
    times[1] = before.st_mtim;
    temp_must(utimensat(AT_FDCWD, model, times, 0) == 0, "utimensat");
    seen s = hash_cached(cache, model, SFT_HASH_BIT(SFT_HASH_SHA256));
    assert_false(s.last.is_remembered);
    assert_string_not_equal(s.text[0], v2[0]);
    sft_hash_cache_close(cache);
}

/* What is missing is added to what is known. */
static void cache_grows(void **state) {
    const char *path = temp_path(&folder, "cache"), *model = nth_vector(1);
    (void)state;
    sft_hash_cache *cache = open_cache(path);
    (void)hash_cached(cache, model, SFT_HASH_BIT(SFT_HASH_SHA256));
    seen s = hash_cached(cache, model, SFT_HASH_BIT(SFT_HASH_CRC32));
    assert_false(s.last.is_remembered);
    s = hash_cached(cache, model, SFT_HASH_BIT(SFT_HASH_CRC32) | SFT_HASH_BIT(SFT_HASH_SHA256));
    assert_true(s.last.is_remembered);
    assert_hashes(&s.last.hashes, v2);
    assert_int_equal(sft_hash_cache_count(cache), 1);
    sft_hash_cache_close(cache);
}

static void cache_knows_sets(void **state) {
    const char *index = make_set();
    uint32_t algos = CONTENT | SFT_HASH_BIT(SFT_HASH_SHA256);
    (void)state;
    sft_hash_cache *cache = open_cache(temp_path(&folder, "cache"));
    seen s = hash_cached(cache, index, algos);
    assert_false(s.last.is_remembered);
    assert_int_equal(sft_hash_cache_count(cache), 3);
    s = hash_cached(cache, index, algos);
    assert_true(s.last.is_remembered);
    assert_string_equal(sft_hashes_get(&s.last.hashes, SFT_HASH_CONTENT),
                        content_of(three_in_one, "123abcd", 7));
    sft_hash_cache_close(cache);
}

/* only_cached: what the cache does not know is not computed, of files and sets alike. */
static void only_the_cache_is_asked(void **state) {
    sft_hash_options options = SFT_HASH_OPTIONS_INIT;
    const char *index = make_set();
    (void)state;
    options.cache = open_cache(temp_path(&folder, "cache"));
    options.only_cached = true;
    const sft_hash_request asks[] = { { index, CONTENT }, { nth_vector(1), SFT_HASH_ALL } };
    for (size_t i = 0; i < 2; i++) {
        seen s = { 0 };
        assert_int_equal(sft_hash_paths(&asks[i], 1, &options, keep, &s, NULL, NULL), SFT_OK);
        assert_null(s.last.error);
        assert_int_equal(sft_hashes_known(&s.last.hashes), 0);
        assert_int_equal(sft_hashes_asked(&s.last.hashes), asks[i].algos);
        (void)hash_cached(options.cache, asks[i].path, CONTENT);
        s = (seen){ 0 };
        assert_int_equal(sft_hash_paths(&asks[i], 1, &options, keep, &s, NULL, NULL), SFT_OK);
        assert_int_equal(sft_hashes_known(&s.last.hashes), CONTENT);
    }
    sft_hash_cache_close(options.cache);
}

static void many_are_remembered(void **state) {
    char name[16];
    (void)state;
    const char *path = temp_path(&folder, "cache");
    sft_hash_cache *cache = open_cache(path);
    for (int i = 0; i < 300; i++) {
        (void)snprintf(name, sizeof name, "n%d", i);
        (void)hash_cached(cache, temp_text(&folder, name, name), SFT_HASH_BIT(SFT_HASH_CRC32));
    }
    assert_int_equal(sft_hash_cache_save(cache, NULL), SFT_OK);
    sft_hash_cache_close(cache);
    cache = open_cache(path);
    assert_int_equal(sft_hash_cache_count(cache), 300);
    for (int i = 0; i < 300; i++) {
        (void)snprintf(name, sizeof name, "%s/n%d", "", i);
        char whole[128];
        (void)snprintf(whole, sizeof whole, "%s%s", folder.path, name);
        seen s = hash_cached(cache, whole, SFT_HASH_BIT(SFT_HASH_CRC32));
        assert_true(s.last.is_remembered);
    }
    sft_hash_cache_close(cache);
}

static bool count_remembered(void *ctx, const sft_hash_result *result) {
    size_t *count = ctx;
    assert_true(result->is_remembered);
    assert_int_equal(result->index, (*count)++);
    return true;
}

static size_t peak_of_remembered(sft_hash_cache *cache, const sft_hash_request *asks,
                                 size_t count) {
    test_memory memory = { 0 };
    sft_allocator alloc = { resize_test_memory, &memory };
    sft_hash_options options = SFT_HASH_OPTIONS_INIT;
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    sft_job job = SFT_JOB_INIT;
    size_t found = 0;
    job.threads = 1;
    open.alloc = &alloc;
    options.open = &open;
    options.cache = cache;
    assert_int_equal(sft_hash_paths(asks, count, &options, count_remembered, &found, &job, NULL),
                     SFT_OK);
    assert_int_equal(found, count);
    return memory.peak;
}

/* Their results are delivered as they come, not kept until a file must be read. */
static void remembered_results_take_no_memory(void **state) {
    enum { FEW = 100, MANY = 5000 };
    static sft_hash_request asks[MANY];
    const char *model = nth_vector(1);
    (void)state;
    for (size_t i = 0; i < MANY; i++)
        asks[i] = (sft_hash_request){ model, SFT_HASH_BIT(SFT_HASH_CRC32) };
    sft_hash_cache *cache = open_cache(temp_path(&folder, "cache"));
    (void)hash_cached(cache, model, SFT_HASH_BIT(SFT_HASH_CRC32));
    size_t few = peak_of_remembered(cache, asks, FEW);
    assert_in_range(peak_of_remembered(cache, asks, MANY), few, few + (1u << 20));
    sft_hash_cache_close(cache);
}

static void damage_is_noted(void **state) {
    static const char *const bad[] = {
        CACHE_HEAD "x\n", CACHE_HEAD "{}\n", CACHE_HEAD "\n",
        CACHE_HEAD CACHE_LINE "{\"crc32\":\"0d4a1185\"}}", /* no newline: cut */
        CACHE_HEAD CACHE_LINE "{\"crc32\":\"0d4a118\"}}\n",
        CACHE_HEAD CACHE_LINE "{\"crc32\":\"0D4A1185\"}}\n",
        CACHE_HEAD CACHE_LINE "{\"crc32\":7}}\n",
        CACHE_HEAD CACHE_LINE "{\"crc32,autov1\":\"0d4a1185\"}}x\n",
        CACHE_HEAD CACHE_LINE "[]}\n",
        CACHE_HEAD "{\"device\":1,\"inode\":2,\"size\":3,\"hashes\":{}}\n",
        CACHE_HEAD "{\"device\":1,\"inode\":2,\"size\":3,\"mtime_ns\":4,\"hashes\":{}}\n",
        CACHE_HEAD "{\"device\":1,\"inode\":-2,\"size\":3," CACHE_TIMES "\"hashes\":{}}\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *path = temp_text(&folder, "cache", bad[i]);
        sft_hash_cache *cache = open_cache(path);
        assert_non_null(sft_hash_cache_note(cache));
        assert_int_equal(sft_hash_cache_count(cache), 0);
        (void)hash_cached(cache, nth_vector(0), SFT_HASH_BIT(SFT_HASH_SHA256));
        assert_int_equal(sft_hash_cache_save(cache, NULL), SFT_OK);
        sft_hash_cache_close(cache);
        cache = open_cache(path);
        assert_null(sft_hash_cache_note(cache));
        assert_int_equal(sft_hash_cache_count(cache), 1);
        sft_hash_cache_close(cache);
    }
}

/* Fields and algorithms of a later version are passed over. */
static void later_caches_are_read(void **state) {
    (void)state;
    sft_hash_cache *cache = open_cache(temp_text(
        &folder, "cache",
        CACHE_HEAD "{\"new\":[{}],\"device\":1,\"inode\":2,\"size\":3," CACHE_TIMES
                   "\"hashes\":{\"sha3\":\"00\",\"crc32\":\"0d4a1185\"}}\n"));
    assert_null(sft_hash_cache_note(cache));
    assert_int_equal(sft_hash_cache_count(cache), 1);
    sft_hash_cache_close(cache);
}

/* A cache of the version without ctime is a cache; nothing of it is believed. */
static void older_caches_begin_anew(void **state) {
    (void)state;
    const char *path = temp_text(&folder, "cache",
                                 "{\"safetensors_hash_cache\":1}\n"
                                 "{\"device\":1,\"inode\":2,\"size\":3,\"mtime_ns\":4,"
                                 "\"hashes\":{\"crc32\":\"0d4a1185\"}}\n");
    sft_hash_cache *cache = open_cache(path);
    assert_null(sft_hash_cache_note(cache));
    assert_int_equal(sft_hash_cache_count(cache), 0);
    (void)hash_cached(cache, nth_vector(0), SFT_HASH_BIT(SFT_HASH_SHA256));
    assert_int_equal(sft_hash_cache_save(cache, NULL), SFT_OK);
    sft_hash_cache_close(cache);
    cache = open_cache(path);
    assert_int_equal(sft_hash_cache_count(cache), 1);
    sft_hash_cache_close(cache);
}

static void refuses_cache(const char *path, sft_code want) {
    sft_hash_cache *cache = (sft_hash_cache *)1;
    sft_error err = SFT_ERROR_INIT;
    sft_code code = sft_hash_cache_open(path, NULL, &cache, &err);
    if (code != want) fail_msg("%s: %d, %s", path, code, err.message);
    assert_null(cache);
}

static void unusable_caches_are_errors(void **state) {
    (void)state;
    refuses_cache(folder.path, SFT_IO_NOT_FILE);
    refuses_cache(NULL, SFT_BAD_ARGUMENT);
    sft_hash_cache_close(NULL);
}

/* Whatever is no cache is neither read nor replaced. */
static void other_files_are_no_caches(void **state) {
    static const char *const texts[] = {
        "\n", "hello\n", "{}\n", "{\"safetensors_hash_cache\":2}", "{\"safetensors_hash_cache\"",
        "{\"safetensors_hash_cache\":3}\n", "{\"safetensors_hash_cache\":20}\n",
        " {\"safetensors_hash_cache\":2}\n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        refuses_cache(temp_text(&folder, "cache", texts[i]), SFT_EXISTS);
    refuses_cache(nth_vector(3), SFT_EXISTS);
    const char *good = temp_text(&folder, "good", CACHE_HEAD);
    const char *link = temp_path(&folder, "link"), *fifo = temp_path(&folder, "fifo");
    temp_must(symlink(good, link) == 0, "symlink");
    temp_must(mkfifo(fifo, 0600) == 0, "mkfifo");
    refuses_cache(link, SFT_IS_LINK);
    refuses_cache(fifo, SFT_IO_NOT_FILE);
    temp_must(unlink(good) == 0, "unlink"); /* the link leads nowhere now */
    refuses_cache(link, SFT_IS_LINK);
    temp_must(unlink(link) == 0 && unlink(fifo) == 0, "unlink");
}

/* Who may write a cache says which digests are believed. */
static void caches_of_others_are_not_believed(void **state) {
    (void)state;
    const char *path = temp_text(&folder, "cache", CACHE_HEAD);
    for (int mode = 0; mode <= 0777; mode++) {
        if (mode & ~0666 || (mode & 0600) != 0600) continue;
        temp_must(chmod(path, (mode_t)mode) == 0, "chmod");
        if (mode & 022) refuses_cache(path, SFT_IO_OPEN);
        else sft_hash_cache_close(open_cache(path));
    }
    if (geteuid() != 0) skip(); /* only root gives files away */
    temp_must(chmod(path, 0600) == 0 && chown(path, 12345, (gid_t)-1) == 0, "chown");
    refuses_cache(path, SFT_IO_OPEN);
    temp_must(chown(path, 0, (gid_t)-1) == 0, "chown");
    sft_hash_cache_close(open_cache(path));
}

/* Between opening and saving another file came to stand there: it stays. */
static void saving_replaces_caches_only(void **state) {
    struct stat st;
    (void)state;
    for (int there = 0; there < 2; there++) {
        const char *path = temp_path(&folder, "cache");
        if (there) path = temp_text(&folder, "cache", CACHE_HEAD);
        sft_hash_cache *cache = open_cache(path);
        (void)hash_cached(cache, nth_vector(0), SFT_HASH_BIT(SFT_HASH_SHA256));
        (void)temp_text(&folder, "cache", "mine");
        assert_int_equal(sft_hash_cache_save(cache, NULL), SFT_EXISTS);
        temp_must(stat(path, &st) == 0 && st.st_size == 4, "stat");
        temp_must(unlink(path) == 0, "unlink");
        assert_int_equal(sft_hash_cache_save(cache, NULL), SFT_OK);
        temp_must(stat(path, &st) == 0, "stat");
        assert_int_equal(st.st_mode & 0777, 0600);
        sft_hash_cache_close(cache);
        temp_must(unlink(path) == 0, "unlink");
    }
}

/* ── The cache: large and hostile ones ── */

typedef struct counted {
    size_t now, most;
} counted;

static void *count_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    counted *c = ctx;
    if (new_size == 0) {
        c->now -= ptr ? old_size : 0;
        free(ptr);
        return NULL;
    }
    void *at = realloc(ptr, new_size);
    if (!at) return NULL;
    c->now += new_size - (ptr ? old_size : 0);
    if (c->now > c->most) c->most = c->now;
    return at;
}

typedef void (*line_fn)(FILE *file, uint64_t i);

static const char *write_lines(uint64_t count, line_fn line) {
    const char *path = temp_path(&folder, "large");
    FILE *file = fopen(path, "w");
    temp_must(file != NULL, "fopen");
    (void)fputs(CACHE_HEAD, file);
    for (uint64_t i = 0; i < count; i++) line(file, i);
    temp_must(fclose(file) == 0, "write");
    return path;
}

static void put_key(FILE *file, uint64_t inode, uint64_t size, uint64_t mtime) {
    (void)fprintf(file, "{\"device\":1,\"inode\":%llu,\"size\":%llu,\"mtime_ns\":%llu,"
                        "\"ctime_ns\":5,\"hashes\":{\"crc32\":\"0d4a1185\"}}\n",
                  (unsigned long long)inode, (unsigned long long)size, (unsigned long long)mtime);
}

static void line_ascending(FILE *file, uint64_t i) {
    put_key(file, i, 3, 4);
}

/* Keys that all fell into one place of a table without a seed. */
static void line_colliding(FILE *file, uint64_t i) {
    uint64_t h = 2 * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 29 ^ i ^ UINT64_C(1) << 40) * UINT64_C(0xbf58476d1ce4e5b9);
    put_key(file, 2, h ^ h >> 32 ^ 77, i);
}

static void line_empty(FILE *file, uint64_t i) {
    (void)i;
    (void)fputs("\n", file);
}

static void line_says_nothing(FILE *file, uint64_t i) {
    (void)fprintf(file, "{\"inode\":%llu,\"device\":1,\"size\":3,\"mtime_ns\":4,\"ctime_ns\":5}\n",
                  (unsigned long long)i);
}

/* What opening costs: memory by the file's bytes, and time that does not go with the square. */
static size_t open_costs(uint64_t count, line_fn line, double *factor, double *seconds) {
    counted c = { 0, 0 };
    sft_allocator alloc = { .ctx = &c, .resize = count_resize };
    sft_hash_cache *cache;
    struct stat st;
    const char *path = write_lines(count, line);
    temp_must(stat(path, &st) == 0, "stat");
    clock_t begin = clock();
    assert_int_equal(sft_hash_cache_open(path, &alloc, &cache, NULL), SFT_OK);
    *seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    *factor = (double)c.most / (double)(st.st_size + 4096);
    size_t kept = sft_hash_cache_count(cache);
    sft_hash_cache_close(cache);
    assert_int_equal(c.now, 0);
    return kept;
}

static void hostile_caches_cost_little(void **state) {
    static const struct {
        uint64_t count;
        line_fn line;
        size_t kept;
    } rows[] = {
        { 40000, line_ascending, 40000 }, { 40000, line_colliding, 40000 },
        { 100000, line_empty, 0 },        { 40000, line_says_nothing, 0 },
        { 1, line_ascending, 1 },
    };
    double factor, seconds;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(open_costs(rows[i].count, rows[i].line, &factor, &seconds),
                         rows[i].kept);
        if (factor > 6) fail_msg("row %zu: %.1f bytes of memory for one of the file", i, factor);
        if (seconds > 5) fail_msg("row %zu: %.1f s", i, seconds);
    }
}

/* A full cache lets the oldest go, not all. */
static void the_oldest_are_evicted(void **state) {
    static char text[256];
    const size_t most = 1 << 18;
    (void)state;
    const char *path = write_lines(most + 500, line_ascending), *model = nth_vector(0);
    sft_hash_cache *cache = open_cache(path);
    assert_null(sft_hash_cache_note(cache));
    assert_int_equal(sft_hash_cache_count(cache), most);
    (void)hash_cached(cache, model, SFT_HASH_BIT(SFT_HASH_CRC32)); /* one too many */
    assert_true(sft_hash_cache_count(cache) >= most / 2 && sft_hash_cache_count(cache) < most);
    seen s = hash_cached(cache, model, SFT_HASH_BIT(SFT_HASH_CRC32));
    assert_true(s.last.is_remembered);
    assert_int_equal(sft_hash_cache_save(cache, NULL), SFT_OK);
    size_t kept = sft_hash_cache_count(cache);
    sft_hash_cache_close(cache);
    FILE *file = fopen(path, "r");
    temp_must(file && fgets(text, sizeof text, file) && fgets(text, sizeof text, file), "read");
    unsigned long long oldest = strtoull(strstr(text, "\"inode\":") + 8, NULL, 10);
    assert_int_equal(oldest, most + 500 - (kept - 1));
    for (size_t i = 1; i + 1 < kept; i++) temp_must(fgets(text, sizeof text, file) != NULL, "read");
    assert_int_equal(strtoull(strstr(text, "\"inode\":") + 8, NULL, 10), most + 499);
    (void)fclose(file);
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
        cmocka_unit_test_setup_teardown(one_large_file_by_many_threads, begin, end),
        cmocka_unit_test_setup_teardown(many_files_by_many_threads, begin, end),
        cmocka_unit_test_setup_teardown(ticks_come_often, begin, end),
        cmocka_unit_test_setup_teardown(a_tick_stops, begin, end),
        cmocka_unit_test_setup_teardown(an_answer_stops, begin, end),
        cmocka_unit_test_setup_teardown(memory_runs_out, begin, end),
        cmocka_unit_test_setup_teardown(cache_remembers, begin, end),
        cmocka_unit_test_setup_teardown(cache_reads_no_data, begin, end),
        cmocka_unit_test_setup_teardown(cache_grows, begin, end),
        cmocka_unit_test_setup_teardown(cache_knows_sets, begin, end),
        cmocka_unit_test_setup_teardown(only_the_cache_is_asked, begin, end),
        cmocka_unit_test_setup_teardown(many_are_remembered, begin, end),
        cmocka_unit_test_setup_teardown(remembered_results_take_no_memory, begin, end),
        cmocka_unit_test_setup_teardown(damage_is_noted, begin, end),
        cmocka_unit_test_setup_teardown(a_small_stack_does, begin, end),
        cmocka_unit_test_setup_teardown(later_caches_are_read, begin, end),
        cmocka_unit_test_setup_teardown(cache_notices_what_mtime_hides, begin, end),
        cmocka_unit_test_setup_teardown(older_caches_begin_anew, begin, end),
        cmocka_unit_test_setup_teardown(other_files_are_no_caches, begin, end),
        cmocka_unit_test_setup_teardown(caches_of_others_are_not_believed, begin, end),
        cmocka_unit_test_setup_teardown(saving_replaces_caches_only, begin, end),
        cmocka_unit_test_setup_teardown(hostile_caches_cost_little, begin, end),
        cmocka_unit_test_setup_teardown(the_oldest_are_evicted, begin, end),
        cmocka_unit_test_setup_teardown(unusable_caches_are_errors, begin, end),
        cmocka_unit_test_setup_teardown(results_are_json, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
