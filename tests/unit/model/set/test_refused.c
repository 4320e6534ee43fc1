/* Calls of public functions that are refused, with the words of the refusal: what is NULL, out of
 * range, or belongs to another way. Nothing is written, and places for results are NULL. */
#define _GNU_SOURCE
#include "safetensors.h"
#include "safetensors_diff.h"
#include "safetensors_edit.h"
#include "safetensors_hash.h"
#include "safetensors_index.h"
#include "safetensors_io.h"
#include "safetensors_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <math.h>

#include "unit/make_file.h"
#include "unit/temp_dir.h"

#define NAME "m.safetensors"
#define HEADER "{\"__metadata__\":{\"k\":\"v\"},\"a\":{\"dtype\":\"U8\",\"shape\":[4]," \
               "\"data_offsets\":[0,4]}}"

static sft_error err;

/* The call's code, and the words that its message has. */
#define REFUSED(call, wanted, words) do { \
        sft_code code_ = (call); \
        if (code_ != (wanted) || err.code != code_ || !strstr(err.message, words)) \
            fail_msg("line %d: %d, %s", __LINE__, (int)code_, err.message); \
    } while (0)
#define MISUSED(call, words) REFUSED(call, SFT_BAD_ARGUMENT, words)

static int set_up(void **state) {
    if (temp_dir_make(state)) return -1;
    test_file f = make_file(HEADER, "data", 4);
    temp_write(NAME, f.bytes, f.len);
    free_file(&f);
    return 0;
}

static void files(void **state) {
    test_file f = make_file(HEADER, "data", 4);
    test_source s = make_source(&f);
    sft_file *file = (sft_file *)1;
    char bytes[4];
    (void)state;
    MISUSED(sft_open(temp_path(NAME), NULL, NULL, &err), "NULL");
    MISUSED(sft_open_fd(0, NULL, NULL, &err), "NULL");
    MISUSED(sft_open_memory(f.bytes, f.len, NULL, NULL, &err), "NULL");
    MISUSED(sft_open_memory(NULL, 8, NULL, &file, &err), "expected 8 bytes of memory, found NULL");
    assert_null(file);
    MISUSED(sft_open_source(source_of(&s, f.len), NULL, NULL, &err), "NULL");
    assert_int_equal(s.closed, 1); /* the source is the callee's, whatever comes of it */
    assert_int_equal(sft_open_memory(f.bytes, f.len, NULL, &file, &err), SFT_OK);
    MISUSED(sft_read_bytes(NULL, 0, bytes, 4, &err), "");
    MISUSED(sft_read_bytes(file, 0, NULL, 4, &err), "");
    MISUSED(sft_read_bytes(file, UINT64_MAX, bytes, 4, &err), "an end of at most 2^64 - 1");
    assert_int_equal(sft_read_bytes(file, 0, NULL, 0, &err), SFT_OK);
    assert_int_equal(sft_read_bytes(file, f.data, bytes, 4, &err), SFT_OK);
    assert_memory_equal(bytes, "data", 4);
    sft_close(file);
    free_file(&f);
}

static void writers(void **state) {
    static const uint64_t four[] = { 4 };
    sft_spec spec = { sft_span_cstr("a"), SFT_U8, 1, four };
    sft_source from = sft_source_memory("12345678", 8);
    sft_plan *plan = NULL;
    sft_writer *w = NULL;
    size_t i;
    (void)state;
    assert_int_equal(sft_plan_new(&spec, 1, NULL, 0, NULL, &plan, NULL), SFT_OK);
    for (int row = 0; row < 4; row++) {
        sft_buffer out = { .alloc = { NULL, NULL } };
        assert_int_equal(sft_writer_begin(plan, sft_sink_memory(&out), &w, NULL), SFT_OK);
        const char *why = row ? "found none" : "found a number past the last";
        if (row == 0) MISUSED(sft_writer_copy(w, 1, &from, 0, 4, NULL, &err), why);
        if (row == 1) MISUSED(sft_writer_copy(w, 0, NULL, 0, 4, NULL, &err), why);
        if (row == 2) MISUSED(sft_writer_copy(w, 0, &from, UINT64_MAX, 4, NULL, &err), why);
        if (row == 3) {
            MISUSED(sft_writer_add(w, &spec, &i, &err), "found one with a plan");
            assert_int_equal(sft_writer_copy(w, 0, &from, 2, 0, NULL, &err), SFT_OK);
            assert_int_equal(sft_writer_copy(w, 0, &from, 2, 4, NULL, &err), SFT_OK);
            assert_int_equal(sft_writer_finish(w, &err), SFT_OK);
            assert_int_equal(out.len, sft_plan_total(plan));
            assert_memory_equal(out.data + out.len - 4, "3456", 4);
        } else { /* the first failure is that of all that follows */
            MISUSED(sft_writer_copy(w, 0, &from, 2, 4, NULL, &err), why);
            MISUSED(sft_writer_put(w, 0, "1234", 4, &err), why);
            sft_writer_abandon(w);
        }
        sft_buffer_free(&out);
    }
    sft_plan_free(plan);
    sft_buffer out = { .alloc = { NULL, NULL } };
    assert_int_equal(sft_writer_begin_unplanned(NULL, sft_sink_memory(&out), &w, NULL), SFT_OK);
    MISUSED(sft_writer_add(w, NULL, &i, &err), "found NULL");
    MISUSED(sft_writer_add(w, &spec, NULL, &err), "found NULL");
    assert_int_equal(sft_writer_add(w, &spec, &i, &err), SFT_OK);
    sft_writer_abandon(w);
    sft_buffer_free(&out);
}

static void edits(void **state) {
    static char path[5000];
    sft_edit_options options = SFT_EDIT_OPTIONS_INIT;
    sft_edit *edit = (sft_edit *)1;
    const sft_span none = { NULL, 0 }, missing = { NULL, 3 }, bad = { "x\xff", 2 };
    (void)state;
    MISUSED(sft_edit_open(NULL, NULL, &edit, &err), "found NULL");
    assert_null(edit);
    MISUSED(sft_edit_open(temp_path(NAME), NULL, NULL, &err), "found NULL");
    options.link = (sft_link_policy)3;
    MISUSED(sft_edit_open(temp_path(NAME), &options, &edit, &err), "policy up to 2, found 3");
    MISUSED(sft_edit_recover(temp_path(NAME), &options, NULL, &err), "a link policy up to 2");
    memset(path, 'd', sizeof path - 1);
    REFUSED(sft_edit_open(path, NULL, &edit, &err), SFT_IO_OPEN, "at most 4095 bytes, found 4999");
    REFUSED(sft_edit_recover(path, NULL, NULL, &err), SFT_IO_OPEN, "at most 4095 bytes");
    assert_int_equal(sft_edit_open(temp_path(NAME), NULL, &edit, &err), SFT_OK);
    MISUSED(sft_edit_set(edit, missing, none, &err), "expected a metadata key, found NULL");
    MISUSED(sft_edit_set(edit, none, missing, &err), "expected a metadata value, found NULL");
    MISUSED(sft_edit_remove(edit, missing, &err), "expected a metadata key, found NULL");
    MISUSED(sft_edit_rename(edit, sft_span_cstr("a"), missing, &err), "name, found NULL");
    REFUSED(sft_edit_set(edit, bad, none, &err), SFT_HEADER_UTF8, "from byte 1 on");
    REFUSED(sft_edit_remove(edit, bad, &err), SFT_HEADER_UTF8, "from byte 1 on");
    MISUSED(sft_edit_save(edit, NULL, NULL, NULL, NULL, &err), "expected a path");
    assert_int_equal(sft_edit_set(edit, none, none, &err), SFT_OK); /* both empty, which may be */
    assert_int_equal(sft_edit_rename(edit, sft_span_cstr("a"), none, &err), SFT_OK);
    assert_int_equal(sft_edit_apply(edit, NULL, NULL, &err), SFT_OK);
    MISUSED(sft_edit_save(edit, temp_path("x"), NULL, NULL, NULL, &err), "not applied yet");
    sft_edit_close(edit);
    sft_file *file = NULL;
    assert_int_equal(sft_open(temp_path(NAME), NULL, &file, &err), SFT_OK);
    assert_int_equal(sft_file_metadata_count(file), 2);
    assert_non_null(sft_file_find(file, none));
    sft_close(file);
    sft_repair *repair = (sft_repair *)1;
    MISUSED(sft_repair_open(NULL, NULL, &repair, &err), "found NULL");
    MISUSED(sft_repair_open(temp_path(NAME), NULL, NULL, &err), "found NULL");
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    open.level = (sft_level)9;
    MISUSED(sft_repair_open(temp_path(NAME), &open, &repair, &err), "");
    assert_null(repair);
}

static void sets(void **state) {
    static char long_folder[5000];
    static const uint64_t one[] = { 1 };
    sft_source from = sft_source_memory("x", 1);
    sft_part part = { .spec = { sft_span_cstr("a"), SFT_U8, 1, one }, .source = &from };
    uint32_t first = 0, past = 1;
    sft_save_set_options options = SFT_SAVE_SET_OPTIONS_INIT;
    (void)state;
    memset(long_folder, 'd', sizeof long_folder - 1);
    const struct {
        const char *folder, *stem;
        const sft_part *parts;
        const uint32_t *shard_of;
        uint32_t shards;
        const char *words;
    } rows[] = {
        { NULL, NULL, &part, &first, 1, "expected a folder and parts" },
        { "s", NULL, &part, &first, 0, "expected a folder and parts" },
        { "s", NULL, NULL, &first, 1, "expected a folder and parts" },
        { "s", NULL, &part, NULL, 1, "expected a folder and parts" },
        { "s", NULL, &part, &past, 1, "expected a folder and parts" },
        { "s", "", &part, &first, 1, "the beginning of file names" },
        { "s", "a/b", &part, &first, 1, "the beginning of file names" },
        { "s", "a\xff", &part, &first, 1, "the beginning of file names" },
        { "s", "con", &part, &first, 1, "a file name that every system takes" },
        { long_folder, NULL, &part, &first, 1, "a path of at most " },
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *folder = rows[i].folder && strlen(rows[i].folder) == 1 ? temp_path("s")
                                                                           : rows[i].folder;
        options.stem = rows[i].stem;
        MISUSED(sft_save_set(folder, rows[i].parts, rows[i].shard_of, 1, rows[i].shards, NULL, 0,
                             &options, NULL, &err), rows[i].words);
    }
    assert_int_equal(temp_dir_count(), 1);
    /* Parts whose sizes are together beyond all numbers: eight are not; or one that has no size. */
    static const uint64_t eighth[] = { (UINT64_C(1) << 61) - 1 }, odd[] = { 3 };
    static const sft_code codes[] = { SFT_OK, SFT_SIZE_OVERFLOW, SFT_SIZE_PARTIAL_BYTE };
    uint32_t shard_of[9], count;
    sft_part cut[9];
    for (size_t i = 0; i < 9; i++)
        cut[i] = (sft_part){ .spec = { sft_span_cstr("x"), SFT_U8, 1, eighth }, .source = &from };
    for (size_t i = 0; i < 3; i++) {
        cut[8].spec = (sft_spec){ sft_span_cstr("y"), i == 2 ? SFT_F4 : SFT_U8, 1,
                                  i == 2 ? odd : eighth };
        sft_code code = sft_cut_parts(cut, i ? 9 : 8, UINT64_MAX, shard_of, &count, &err);
        assert_int_equal(code, codes[i]);
        if (code) assert_string_equal(err.tensor, "y");
        else assert_int_equal(count, 1);
    }
    /* Differences: tolerances that are none. */
    static const double bad[] = { -1, NAN, -INFINITY };
    sft_set *set = NULL;
    assert_int_equal(sft_set_open(temp_path(NAME), NULL, &set, &err), SFT_OK);
    for (size_t i = 0; i < 6; i++) {
        sft_diff_options how = SFT_DIFF_OPTIONS_INIT;
        sft_diff *diff = (sft_diff *)1;
        *(i % 2 ? &how.atol : &how.rtol) = bad[i / 2];
        MISUSED(sft_diff_new(set, set, &how, NULL, &diff, &err), "tolerances of 0 or more");
        assert_null(diff);
    }
    sft_hashes hashes;
    MISUSED(sft_hash_set(NULL, SFT_HASH_BIT(SFT_HASH_SHA256), &hashes, NULL, &err), "found NULL");
    MISUSED(sft_hash_set(set, ~0u, &hashes, NULL, &err), "found other bits");
    assert_int_equal(hashes.known, 0);
    sft_set_close(set);
}

static bool never_told(void *ctx, const sft_hash_result *result) {
    (void)ctx, (void)result;
    fail_msg("a result of a call that is refused");
    return false;
}

static void others(void **state) {
    const sft_hash_request good = { NAME, SFT_HASH_BIT(SFT_HASH_SHA256) };
    const sft_hash_request bits = { NAME, ~0u }, nowhere = { NULL, good.algos };
    (void)state;
    MISUSED(sft_hash_paths(NULL, 1, NULL, never_told, NULL, NULL, &err), "found NULL");
    MISUSED(sft_hash_paths(&good, 1, NULL, NULL, NULL, NULL, &err), "found NULL");
    MISUSED(sft_hash_paths(&bits, 1, NULL, never_told, NULL, NULL, &err), "found other bits");
    MISUSED(sft_hash_paths(&nowhere, 1, NULL, never_told, NULL, NULL, &err), "a path that is NULL");
    assert_int_equal(sft_hash_paths(NULL, 0, NULL, never_told, NULL, NULL, &err), SFT_OK);

    sft_index_changes changes = SFT_INDEX_CHANGES_INIT;
    sft_pair pair = { sft_span_cstr("a"), sft_span_cstr("b") };
    bool changed = true;
    MISUSED(sft_index_rewrite(NULL, NULL, NULL, NULL, &changed, &err), "found NULL");
    assert_false(changed);
    changes.places = &pair;
    changes.place_count = 1;
    for (int row = 0; row < 2; row++) {
        changes.tensors = changes.shards = &pair;
        changes.tensor_count = row == 0;
        changes.shard_count = row == 1;
        MISUSED(sft_index_rewrite("none.json", &changes, NULL, NULL, NULL, &err), "found both");
    }

    static const uint64_t two[] = { 2, 2 }, huge[] = { UINT64_C(1) << 40, 2 };
    static const int64_t strides[] = { 2, 1 }, far[] = { INT64_MAX, 1 };
    sft_source source;
    uint64_t many[SFT_MAX_RANK + 1] = { 0 };
    int64_t steps[SFT_MAX_RANK + 1] = { 0 };
    MISUSED(sft_source_strided(SFT_U8, many, SFT_MAX_RANK + 1, "x", steps, NULL, &source, &err),
            "found more");
    MISUSED(sft_source_strided(SFT_U8, NULL, 2, "abcd", strides, NULL, &source, &err), "NULL");
    MISUSED(sft_source_strided(SFT_U8, two, 2, "abcd", NULL, NULL, &source, &err), "found NULL");
    MISUSED(sft_source_strided(SFT_F4, two, 2, "abcd", strides, NULL, &source, &err), "");
    assert_true(sft_source_strided(SFT_U8, huge, 2, "abcd", far, NULL, &source, &err) != SFT_OK);

    static char folder[5000];
    size_t count = 9;
    memset(folder, 'd', sizeof folder - 1);
    MISUSED(sft_sweep(NULL, true, NULL, NULL, &count, &err), "found NULL");
    assert_int_equal(count, 0);
    MISUSED(sft_sweep(folder, true, NULL, NULL, NULL, &err), "too long a one");
    assert_int_equal(sft_sweep(temp_path(""), true, NULL, NULL, &count, &err), SFT_OK);
}

/* Without a place for the error the code is the same. */
static void no_error_places(void **state) {
    static const uint64_t four[] = { 4 };
    sft_spec spec = { sft_span_cstr("a"), SFT_U8, 1, four };
    sft_open_options open = SFT_OPEN_OPTIONS_INIT;
    sft_buffer out = { .alloc = { NULL, NULL } };
    sft_repair *repair = NULL;
    sft_file *file = NULL;
    sft_writer *w = NULL;
    char bytes[4];
    size_t i;
    (void)state;
    test_file f = make_file(HEADER, "data", 2);
    temp_write("cut", f.bytes, f.len);
    assert_int_equal(sft_repair_open(temp_path("cut"), NULL, &repair, NULL), SFT_DATA_TRUNCATED);
    assert_null(repair);
    open.header_only = true;
    for (int place = 0; place < 2; place++) {
        sft_error *to = place ? &err : NULL;
        err = (sft_error)SFT_ERROR_INIT;
        assert_int_equal(sft_open(temp_path("cut"), &open, &file, to), SFT_OK);
        assert_int_equal(sft_read_into(file, sft_file_tensor_at(file, 0), bytes, 4, to),
                         SFT_DATA_TRUNCATED);
        if (place) assert_string_equal(err.tensor, "a");
        sft_close(file);
        assert_int_equal(sft_writer_begin_unplanned(NULL, sft_sink_memory(&out), &w, to), SFT_OK);
        assert_int_equal(sft_writer_add(w, &spec, &i, to), SFT_OK);
        assert_int_equal(sft_writer_put(w, 7, "x", 1, to), SFT_BAD_ARGUMENT);
        assert_int_equal(sft_writer_add(w, &spec, &i, to), SFT_BAD_ARGUMENT);
        sft_writer_abandon(w);
        sft_buffer_free(&out);
    }
    free_file(&f);
    char text[64];
    assert_int_equal(sft_error_text(NULL, NULL, text, sizeof text), strlen("no error"));
    assert_string_equal(text, "no error");
}

/* What is no file has no digests in a cache, and gets none. */
static void caches(void **state) {
    char name[SFT_HASH_MARK_SIZE + 1];
    sft_hash_cache *cache = NULL;
    uint64_t time = 7;
    (void)state;
    memset(name, 'n', sizeof name);
    name[SFT_HASH_MARK_SIZE] = '\0';
    assert_int_equal(sft_hash_cache_open(temp_path("cache"), NULL, &cache, &err), SFT_OK);
    static const char *const paths[] = { "", "none", NAME };
    for (size_t i = 0; i < 3; i++) {
        sft_hashes hashes = SFT_HASHES_INIT(SFT_HASH_ALL);
        sft_hash_cache_find(cache, temp_path(paths[i]), &hashes);
        assert_int_equal(hashes.known, 0);
        sft_hash_cache_mark(cache, temp_path(paths[i]), name, 9); /* too long a name */
        assert_false(sft_hash_cache_marked(cache, temp_path(paths[i]), name, &time));
        sft_hash_cache_mark(cache, temp_path(paths[i]), "seen", 9);
        assert_int_equal(sft_hash_cache_marked(cache, temp_path(paths[i]), "seen", &time), i == 2);
        assert_false(sft_hash_cache_marked(cache, temp_path(paths[i]), "", &time));
        assert_false(sft_hash_cache_marked(cache, temp_path(paths[i]), "other", &time));
        assert_int_equal(time, i == 2 ? 9 : 7);
    }
    assert_int_equal(sft_hash_cache_count(cache), 1);
    sft_hash_cache_close(cache);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, temp_dir_remove)

int main(void) {
    const struct CMUnitTest tests[] = { TEST(files), TEST(writers), TEST(edits), TEST(sets),
                                        TEST(others), TEST(no_error_places), TEST(caches) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
