/* Digests of many files at once, of different lengths and by any number of threads; one file by
 * many threads. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "safetensors_hash.h"
#include "unit/temp_model.h"

#include <sys/stat.h>

#define FILES 45
#define DATA ((size_t)9 << 20)

static temp_folder folder;
static unsigned char *data;

static int begin(void **state) {
    (void)state;
    temp_begin(&folder);
    data = malloc(DATA);
    temp_must(data != NULL, "malloc");
    for (size_t i = 0; i < DATA; i++) data[i] = (unsigned char)(i * i % 251 + i / 65536);
    return 0;
}

static int end(void **state) {
    (void)state;
    free(data);
    temp_end(&folder);
    return 0;
}

/* A model of n bytes from data + from on, in two tensors. */
static const char *model_of(const char *name, size_t from, size_t n) {
    char header[256];
    (void)snprintf(header, sizeof header,
                   "{\"a\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[0,%zu]},"
                   "\"b\":{\"dtype\":\"U8\",\"shape\":[%zu],\"data_offsets\":[%zu,%zu]}}",
                   n / 3, n / 3, n - n / 3, n / 3, n);
    return temp_model(&folder, name, header, data + from, n);
}

typedef struct answers {
    size_t count;
    sft_hashes hashes[FILES];
    sft_code codes[FILES];
    uint64_t done, total;
} answers;

static bool keep(void *ctx, const sft_hash_result *result) {
    answers *a = ctx;
    assert_int_equal(result->index, a->count);
    a->hashes[a->count] = result->hashes;
    a->codes[a->count++] = result->error ? result->error->code : SFT_OK;
    return true;
}

static bool note_progress(void *ctx, uint64_t done, uint64_t total) {
    answers *a = ctx;
    assert_true(done >= a->done && done <= total);
    a->done = done;
    a->total = total;
    return true;
}

static void ask_all(const sft_hash_request *asks, size_t count, uint32_t threads, answers *out) {
    sft_job job = { sizeof job, note_progress, out, threads };
    memset(out, 0, sizeof *out);
    assert_int_equal(sft_hash_paths(asks, count, NULL, keep, out, &job, NULL), SFT_OK);
    assert_int_equal(out->count, count);
}

/* Lengths from nothing to more than a megabyte, two paths that cannot be read among them. */
static void many_files_of_different_lengths(void **state) {
    static const char *const algos[] = { "sha256", "sha256,autov3", "all", "blake3,crc32" };
    static answers alone, found;
    sft_hash_request asks[FILES];
    uint32_t dice = 7;
    (void)state;
    for (size_t i = 0; i < FILES; i++) {
        char name[16];
        (void)snprintf(name, sizeof name, "m%zu", i);
        dice = dice * 1664525 + 1013904223;
        asks[i].path = model_of(name, i, (dice >> 8) % (i % 7 ? 300000 : 1300000));
        assert_int_equal(sft_hash_parse(sft_span_cstr(algos[i % 4]), &asks[i].algos, NULL),
                         SFT_OK);
    }
    asks[11].path = folder.path;
    asks[30].path = "/nowhere/at/all";
    for (size_t i = 0; i < FILES; i++) {
        answers one;
        ask_all(&asks[i], 1, 1, &one);
        alone.hashes[i] = one.hashes[0];
        alone.codes[i] = one.codes[0];
    }
    assert_int_equal(alone.codes[11], SFT_IO_NOT_FILE);
    assert_int_equal(alone.codes[30], SFT_NOT_FOUND);
    for (uint32_t threads = 1; threads <= 4; threads++) {
        ask_all(asks, FILES, threads, &found);
        assert_int_equal(found.done, found.total);
        for (size_t i = 0; i < FILES; i++) {
            assert_int_equal(found.codes[i], alone.codes[i]);
            assert_memory_equal(&found.hashes[i], &alone.hashes[i], sizeof *alone.hashes);
        }
    }
}

/* More bytes than a trial of kernels waits for. */
static void digests_stay_after_the_trial(void **state) {
    static answers found;
    sft_hash_request asks[FILES];
    answers one;
    (void)state;
    const char *path = model_of("large", 0, 4000000), *other = model_of("other", 77, 3900000);
    for (size_t i = 0; i < FILES; i++)
        asks[i] = (sft_hash_request){ i % 2 ? other : path,
                                      SFT_HASH_BIT(SFT_HASH_SHA256) };
    for (uint32_t threads = 1; threads <= 2; threads++) {
        ask_all(asks, FILES, threads, &found);
        for (size_t i = 0; i < 2; i++) {
            ask_all(&asks[i], 1, 1, &one);
            for (size_t f = i; f < FILES; f += 2)
                assert_memory_equal(&found.hashes[f], &one.hashes[0], sizeof *one.hashes);
        }
    }
}

/* Every way to share one file's algorithms among threads, at the borders of BLAKE3's segments. */
static void one_file_by_any_threads(void **state) {
    static const char *const algos[] = { "blake3", "blake3,crc32", "sha256,autov3",
                                         "sha256,autov2,autov3,crc32,blake3", "all" };
    static const size_t sizes[] = { (size_t)8 << 20, ((size_t)8 << 20) + 1, 8900000,
                                    ((size_t)9 << 20) - 1 };
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        answers alone, found;
        /* the file, not its data, has this size */
        const char *path = model_of("one", 0, sizes[s] - 1000);
        struct stat st;
        temp_must(stat(path, &st) == 0, "stat");
        path = model_of("one", 0, sizes[s] - 1000 + (sizes[s] - (size_t)st.st_size));
        temp_must(stat(path, &st) == 0 && (size_t)st.st_size == sizes[s], "size");
        for (size_t a = 0; a < sizeof algos / sizeof *algos; a++) {
            sft_hash_request ask = { path, 0 };
            assert_int_equal(sft_hash_parse(sft_span_cstr(algos[a]), &ask.algos, NULL), SFT_OK);
            ask_all(&ask, 1, 1, &alone);
            assert_int_equal(alone.done, sizes[s]);
            for (uint32_t threads = 2; threads <= 9; threads++) {
                ask_all(&ask, 1, threads, &found);
                assert_memory_equal(&found.hashes[0], &alone.hashes[0], sizeof *alone.hashes);
                assert_int_equal(found.total, sizes[s]);
                assert_int_equal(found.done, sizes[s]);
            }
        }
    }
}

/* Files long enough to be shared among threads, with threads for some of them, or for one. */
static void long_files_by_fewer_threads(void **state) {
    sft_hash_request asks[5];
    answers found, one;
    (void)state;
    for (size_t i = 0; i < 5; i++)
        asks[i] = (sft_hash_request){ model_of("long", i, ((size_t)9 << 20) + i), SFT_HASH_ALL };
    for (uint32_t threads = 1; threads <= 7; threads++) {
        ask_all(asks, 5, threads, &found);
        for (size_t i = 0; i < 5; i++) {
            ask_all(&asks[i], 1, 1, &one);
            assert_memory_equal(&found.hashes[i], &one.hashes[0], sizeof *one.hashes);
        }
    }
}

/* One range of a file cannot be read: the answer is that error, and no digest of the rest. */
static void a_range_that_ends_early(void **state) {
    const char *path = model_of("cut", 0, (size_t)9 << 20);
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    (void)state;
    options.open = &open;
    open.mode = SFT_READ;
    for (uint32_t threads = 1; threads <= 5; threads++) {
        sft_job job = SFT_JOB_INIT;
        sft_error err = SFT_ERROR_INIT;
        sft_hashes found;
        sft_set *set;
        job.threads = threads;
        path = model_of("cut", 0, (size_t)9 << 20);
        assert_int_equal(sft_set_open(path, &options, &set, NULL), SFT_OK);
        temp_must(truncate(path, (off_t)6 << 20) == 0, "truncate");
        assert_int_equal(sft_hash_set(set, SFT_HASH_BIT(SFT_HASH_BLAKE3), &found, &job, &err),
                         SFT_IO_SHRUNK);
        assert_int_equal(sft_hashes_known(&found), 0);
        sft_set_close(set);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(many_files_of_different_lengths, begin, end),
        cmocka_unit_test_setup_teardown(digests_stay_after_the_trial, begin, end),
        cmocka_unit_test_setup_teardown(one_file_by_any_threads, begin, end),
        cmocka_unit_test_setup_teardown(long_files_by_fewer_threads, begin, end),
        cmocka_unit_test_setup_teardown(a_range_that_ends_early, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
