/* Parts to whole files: copies inside the system and through memory, order, times; cutting
 * into shards; sets as they are written; what interrupted writers left. */
#define _GNU_SOURCE
#include "safetensors_index.h"
#include "safetensors_io.h"
#include "safetensors_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/make_file.h"
#include "unit/stat_times.h"
#include "unit/temp_dir.h"

#include <fcntl.h>
#include <sys/stat.h>

static const uint64_t side[] = { 6 }, big[] = { 9u << 20 }, none[] = { 0 };
static char data[64];

static sft_part part_of(const char *name, sft_dtype dtype, const uint64_t *shape,
                        const sft_source *source, uint64_t begin) {
    sft_part part = { { sft_span_cstr(name), dtype, shape ? 1u : 0u, shape }, source, begin };
    return part;
}

static void fill(void) {
    for (size_t i = 0; i < sizeof data; i++) data[i] = (char)(i + 'A');
}

/* ── One file ── */

typedef struct ticks {
    uint64_t calls, last, total, most_step, stop_at;
} ticks;

static bool on_tick(void *ctx, uint64_t done, uint64_t total) {
    ticks *t = ctx;
    if (done - t->last > t->most_step) t->most_step = done - t->last;
    t->calls++;
    t->last = done;
    t->total = total;
    return !t->stop_at || done < t->stop_at;
}

static void test_parts(void **state) {
    sft_source source = sft_source_memory(data, sizeof data);
    sft_part parts[] = { part_of("b", SFT_U8, side, &source, 3),
                         part_of("a", SFT_U8, side, &source, 0),
                         part_of("n", SFT_F32, none, &source, 64),
                         part_of("w", SFT_I64, NULL, &source, 16) };
    sft_pair pair = { sft_span_cstr("k"), sft_span_cstr("v") };
    ticks t = { 0 };
    sft_job job = SFT_JOB_INIT;
    sft_buffer buffer = { 0 };
    sft_file *file;
    char read[8];
    (void)state;
    job.tick = on_tick;
    job.ctx = &t;
    assert_int_equal(sft_save_parts(parts, 4, &pair, 1, NULL, sft_sink_memory(&buffer), &job, NULL),
                     SFT_OK);
    assert_int_equal(t.total, 20);
    assert_int_equal(t.last, 20);
    assert_int_equal(sft_open_memory(buffer.data, buffer.len, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_file_tensor_count(file), 4);
    assert_string_equal(sft_file_tensor_at(file, 0)->name.data[0] == 'w' ? "w" : "?", "w");
    const sft_tensor *b = sft_file_find_cstr(file, "b");
    assert_int_equal(sft_read_into(file, b, read, 6, NULL), SFT_OK);
    assert_memory_equal(read, "DEFGHI", 6);
    assert_int_equal(sft_read_into(file, sft_file_find_cstr(file, "w"), read, 8, NULL), SFT_OK);
    assert_memory_equal(read, data + 16, 8);
    assert_int_equal(sft_file_metadata_count(file), 1);
    sft_close(file);
    sft_buffer_free(&buffer);
}

static sft_pair letter_pair(const void *ctx, size_t i) {
    const char *letters = ctx;
    return (sft_pair){ { letters + i, 1 }, { letters, i } };
}

/* Metadata that no array holds. */
static void test_pairs_by_call(void **state) {
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    sft_buffer buffer = { 0 };
    sft_file *file;
    sft_span value;
    (void)state;
    options.pair_at = letter_pair;
    options.pair_ctx = "cab\n";
    assert_int_equal(sft_save_parts(NULL, 0, NULL, 4, &options, sft_sink_memory(&buffer), NULL,
                                    NULL), SFT_OK);
    assert_int_equal(sft_open_memory(buffer.data, buffer.len, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_file_metadata_count(file), 4);
    assert_true(sft_span_equal(sft_file_metadata_at(file, 1).key, sft_span_cstr("a")));
    assert_true(sft_file_metadata_get(file, sft_span_cstr("\n"), &value));
    assert_true(sft_span_equal(value, sft_span_cstr("cab")));
    sft_close(file);
    sft_buffer_free(&buffer);
}

/* ── From memory ── */

static void test_arrays(void **state) {
    (void)state;
    const uint64_t shape[] = { 2, 3 };
    const float w[6] = { 1, 2, 3, 4, 5, 6 };
    const sft_array all[] = { { { SFT_SPAN_INIT("w"), SFT_F32, 2, shape }, w, sizeof w },
                              { { SFT_SPAN_INIT("none"), SFT_U8, 1, none }, NULL, 0 },
                              { { SFT_SPAN_INIT("one"), SFT_U8, 0, NULL }, "x", 1 } };
    const sft_pair format = { SFT_SPAN_INIT("format"), SFT_SPAN_INIT("pt") };
    const char *path = temp_path("arrays");
    sft_error err = SFT_ERROR_INIT;
    sft_file *file;
    sft_span value;
    float back[6];
    assert_int_equal(sft_save_arrays(path, all, 3, &format, 1, NULL, NULL, &err), SFT_OK);
    assert_int_equal(sft_open(path, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_file_tensor_count(file), 3);
    const sft_tensor *t = sft_file_find_cstr(file, "w");
    assert_int_equal(sft_read_into(file, t, back, sizeof back, NULL), SFT_OK);
    assert_memory_equal(back, w, sizeof w);
    assert_int_equal(sft_tensor_elements(sft_file_find_cstr(file, "none")), 0);
    assert_int_equal(sft_tensor_elements(sft_file_find_cstr(file, "one")), 1);
    assert_true(sft_file_metadata_get_cstr(file, "format", &value));
    sft_close(file);
    /* Nothing is written of arrays that are wrong, and the old file stays. */
    sft_array wrong = all[0];
    wrong.len = 20;
    assert_int_equal(sft_save_arrays(path, &wrong, 1, NULL, 0, NULL, NULL, &err), SFT_BUFFER_SIZE);
    assert_string_equal(err.message, "expected 24 bytes, found 20");
    assert_int_equal(err.tensor_len, 1);
    wrong = all[0];
    wrong.data = NULL;
    assert_int_equal(sft_save_arrays(path, &wrong, 1, NULL, 0, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    wrong.spec.dtype = (sft_dtype)99;
    assert_int_equal(sft_save_arrays(path, &wrong, 1, NULL, 0, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_save_arrays(path, NULL, 1, NULL, 0, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_save_arrays(NULL, all, 3, NULL, 0, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    sft_array twice[] = { all[0], all[0] };
    assert_int_equal(sft_save_arrays(path, twice, 2, NULL, 0, NULL, NULL, &err),
                     SFT_TENSOR_DUPLICATE);
    assert_int_equal(sft_open(path, NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_file_tensor_count(file), 3);
    sft_close(file);
    assert_int_equal(sft_save_arrays(path, NULL, 0, NULL, 0, NULL, NULL, &err), SFT_OK);
    assert_int_equal(temp_dir_count(), 1);
    unlink(path);
}

/* The n-th allocation fails, for every n: nothing is kept, in memory or in the folder. */
static void test_arrays_memory(void **state) {
    (void)state;
    const uint64_t shape[] = { 4 };
    const sft_array all[] = { { { SFT_SPAN_INIT("b"), SFT_U8, 1, shape }, "0123", 4 },
                              { { SFT_SPAN_INIT("a"), SFT_U8, 1, shape }, "4567", 4 } };
    test_memory m = { 0 };
    sft_allocator alloc = { resize_test_memory, &m };
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_code code = SFT_OUT_OF_MEMORY;
    options.alloc = &alloc;
    for (m.fail_on = 1; m.fail_on < 100 && code; m.fail_on++) {
        m.calls = 0;
        code = sft_save_arrays(temp_path("memory"), all, 2, NULL, 0, &options, NULL, NULL);
        assert_int_equal(m.held, 0);
        assert_int_equal(temp_dir_count(), code ? 0 : 1);
        if (code) assert_int_equal(code, SFT_OUT_OF_MEMORY);
    }
    assert_int_equal(code, SFT_OK);
    assert_true(m.fail_on > 4);
    unlink(temp_path("memory"));
}

static void test_parts_refused(void **state) {
    sft_source source = sft_source_memory(data, 8), nothing = { 0 };
    sft_part twice[] = { part_of("a", SFT_U8, side, &source, 0),
                         part_of("a", SFT_U8, side, &source, 0) };
    sft_part past = part_of("p", SFT_U8, side, &source, 3),
             odd = part_of("o", SFT_U8, side, &nothing, 0);
    sft_part far = part_of("f", SFT_U8, side, &source, UINT64_MAX - 2);
    sft_buffer buffer = { 0 };
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    assert_int_equal(sft_save_parts(twice, 2, NULL, 0, NULL, sft_sink_memory(&buffer), NULL, &err),
                     SFT_TENSOR_DUPLICATE);
    assert_int_equal(sft_save_parts(&past, 1, NULL, 0, NULL, sft_sink_memory(&buffer), NULL, &err),
                     SFT_BUFFER_SIZE);
    assert_int_equal(err.tensor_len, 1);
    assert_int_equal(err.tensor[0], 'p');
    assert_int_equal(sft_save_parts(&odd, 1, NULL, 0, NULL, sft_sink_memory(&buffer), NULL, &err),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(sft_save_parts(&far, 1, NULL, 0, NULL, sft_sink_memory(&buffer), NULL, &err),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(sft_save_parts(NULL, 1, NULL, 0, NULL, sft_sink_memory(&buffer), NULL, NULL),
                     SFT_BAD_ARGUMENT);
    assert_null(buffer.data);
}

/* A source of which bytes can only be read: its descriptor is not known. */
static sft_code read_plain(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                           sft_error *err) {
    (void)err, (void)ctx;
    for (size_t i = 0; i < len; i++) ((char *)into)[i] = (char)((offset + i) * 31 >> 7);
    *got = len;
    return SFT_OK;
}

static const sft_source_vtable plain_source_vtable = {
    sizeof(sft_source_vtable), read_plain, NULL, NULL, NULL
};

/* Through memory and within the system: the same bytes, ticked often enough. */
static void test_large(void **state) {
    sft_source plain = { NULL, &plain_source_vtable, 9u << 20, NULL, false };
    sft_part part = part_of("x", SFT_U8, big, &plain, 0), again;
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    ticks t = { 0 };
    sft_job job = SFT_JOB_INIT;
    sft_sink sink;
    sft_file *file;
    (void)state;
    job.tick = on_tick;
    job.ctx = &t;
    options.no_sync = true;
    assert_int_equal(sft_sink_path(temp_path("one"), &options, &sink, NULL), SFT_OK);
    assert_int_equal(sft_save_parts(&part, 1, NULL, 0, NULL, sink, &job, NULL), SFT_OK);
    assert_true(t.most_step <= 8u << 20 && t.total == 9u << 20);
    assert_int_equal(sft_open(temp_path("one"), NULL, &file, NULL), SFT_OK);
    sft_source source = sft_file_source(file);
    again = sft_part_of(sft_file_tensor_at(file, 0), &source);
    t = (ticks){ 0 };
    assert_int_equal(sft_sink_path(temp_path("two"), &options, &sink, NULL), SFT_OK);
    assert_int_equal(sft_save_parts(&again, 1, NULL, 0, NULL, sink, &job, NULL), SFT_OK);
    assert_true(t.most_step <= 8u << 20 && t.last == 9u << 20);
    sft_close(file);
    char *left = malloc(10u << 20), *right = malloc(10u << 20);
    long len = temp_read("one", left, 10u << 20);
    assert_int_equal(temp_read("two", right, 10u << 20), len);
    assert_memory_equal(left, right, (size_t)len);
    free(left);
    free(right);
}

static void test_stopped(void **state) {
    sft_source plain = { NULL, &plain_source_vtable, 9u << 20, NULL, false };
    sft_part part = part_of("x", SFT_U8, big, &plain, 0);
    ticks t = { .stop_at = 3u << 20 };
    sft_job job = SFT_JOB_INIT;
    sft_sink sink;
    (void)state;
    job.tick = on_tick;
    job.ctx = &t;
    temp_write("old", "old", 3);
    int files = temp_dir_count();
    assert_int_equal(sft_sink_path(temp_path("old"), NULL, &sink, NULL), SFT_OK);
    assert_int_equal(sft_save_parts(&part, 1, NULL, 0, NULL, sink, &job, NULL), SFT_CANCELLED);
    assert_int_equal(temp_dir_count(), files);
    assert_int_equal(temp_read("old", data, 8), 3);
    fill();
}

/* Parts from a pipe, in file order. */
static void test_pipe(void **state) {
    sft_source source = { 0 };
    sft_part parts[] = { part_of("a", SFT_U8, side, &source, 0),
                         part_of("b", SFT_U8, side, &source, 6) };
    sft_buffer buffer = { 0 };
    int ends[2];
    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(write(ends[1], data, 12), 12);
    close(ends[1]);
    assert_int_equal(sft_source_fd(ends[0], NULL, &source, NULL), SFT_OK);
    assert_int_equal(sft_save_parts(parts, 2, NULL, 0, NULL, sft_sink_memory(&buffer), NULL, NULL),
                     SFT_OK);
    assert_memory_equal(buffer.data + buffer.len - 12, data, 12);
    sft_source_close(&source);
    close(ends[0]);
    sft_buffer_free(&buffer);
}

static void test_mtime(void **state) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_sink sink;
    struct stat st;
    (void)state;
    options.has_mtime = true;
    options.mtime_ns = INT64_C(1234567890123456700);
    assert_int_equal(sft_sink_path(temp_path("timed"), &options, &sink, NULL), SFT_OK);
    assert_int_equal(sft_save_parts(NULL, 0, NULL, 0, NULL, sink, NULL, NULL), SFT_OK);
    assert_int_equal(stat(temp_path("timed"), &st), 0);
    assert_int_equal(st.st_mtim.tv_sec, 1234567890);
    assert_int_equal(st.st_mtim.tv_nsec, 123456700);
}

/* ── Shards ── */

static void sizes_to_parts(const uint64_t *sizes, size_t count, sft_part *parts) {
    static sft_source source = { NULL, &plain_source_vtable, 0, NULL, false };
    static char names[64][8];
    source.size = UINT64_MAX - 1;
    for (size_t i = 0; i < count; i++) {
        snprintf(names[i], sizeof names[i], "t%zu", i);
        parts[i] = part_of(names[i], SFT_U8, &sizes[i], &source, 0);
    }
}

static void cut(const uint64_t *sizes, size_t count, uint64_t most, uint32_t shards,
                const char *expected) {
    sft_part parts[64] = { 0 };
    uint32_t shard_of[64];
    char found[65];
    sizes_to_parts(sizes, count, parts);
    assert_int_equal(sft_cut_parts(parts, count, most, shard_of, &shards, NULL), SFT_OK);
    for (size_t i = 0; i < count; i++) found[i] = (char)('0' + shard_of[i]);
    found[count] = 0;
    assert_string_equal(found, expected);
    assert_int_equal(shards, count ? shard_of[count - 1] + 1 : 1);
}

static void test_cut(void **state) {
    static const uint64_t even[] = { 5, 5, 5, 5, 5, 5 }, odd[] = { 100, 1, 1, 1, 0, 60, 0, 60 };
    static const uint64_t zeros[] = { 0, 0, 0, 0 };
    uint32_t shard_of[8], shards = 9;
    sft_part parts[8];
    (void)state;
    cut(even, 6, 10, 0, "001122");
    cut(even, 6, 14, 0, "001122");
    cut(even, 6, 1, 0, "012345");
    cut(even, 6, 1000, 0, "000000");
    cut(odd, 8, 60, 0, "01111223");
    cut(odd, 0, 60, 0, "");
    cut(even, 6, 0, 1, "000000");
    cut(even, 6, 0, 4, "001123");
    cut(even, 6, 0, 6, "012345");
    cut(odd, 8, 0, 2, "00000111");
    cut(odd, 8, 0, 3, "01111112");
    cut(zeros, 4, 0, 4, "0123");
    cut(zeros, 4, 0, 2, "0001");
    cut(zeros, 0, 0, 1, "");
    sizes_to_parts(even, 6, parts);
    assert_int_equal(sft_cut_parts(parts, 6, 0, shard_of, &shards, NULL), SFT_BAD_ARGUMENT);
    shards = 0;
    assert_int_equal(sft_cut_parts(parts, 6, 0, shard_of, &shards, NULL), SFT_BAD_ARGUMENT);
    static const uint64_t huge[] = { UINT64_MAX / 8 - 8, UINT64_MAX / 8 - 8 };
    parts[0].spec.dtype = parts[1].spec.dtype = SFT_I64;
    parts[0].spec.shape = &huge[0];
    assert_int_equal(sft_cut_parts(parts, 2, 100, shard_of, &shards, NULL), SFT_SIZE_OVERFLOW);
}

static void test_names(void **state) {
    char buffer[64];
    (void)state;
    assert_int_equal(sft_shard_name(NULL, 0, 3, buffer, sizeof buffer), 32);
    assert_string_equal(buffer, "model-00001-of-00003.safetensors");
    (void)sft_shard_name("x", 99999, 123456, buffer, sizeof buffer);
    assert_string_equal(buffer, "x-100000-of-123456.safetensors");
    (void)sft_shard_name("x", 0, 1, buffer, sizeof buffer);
    assert_string_equal(buffer, "x.safetensors");
    (void)sft_shard_name("x", 1, 1, buffer, sizeof buffer);
    assert_string_equal(buffer, "x.safetensors.index.json");
    assert_int_equal(sft_shard_name("x", 0, 1, buffer, 4), 13);
    assert_string_equal(buffer, "x.s");
    assert_int_equal(sft_shard_name("x", 0, 1, NULL, 0), 13);
}

static void remove_set(const char *folder, uint32_t shards) {
    char path[1024], name[128];
    for (uint32_t i = 0; i <= shards; i++) {
        (void)sft_shard_name(NULL, i, shards, name, sizeof name);
        snprintf(path, sizeof path, "%s/%s", folder, name);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
}

static void test_set(void **state) {
    static const uint32_t shard_of[] = { 1, 0, 1 };
    sft_source source = sft_source_memory(data, sizeof data);
    sft_part parts[] = { part_of("b", SFT_U8, side, &source, 3),
                         part_of("\"a", SFT_U8, side, &source, 0),
                         part_of("c", SFT_I64, NULL, &source, 8) };
    sft_pair pair = { sft_span_cstr("format"), sft_span_cstr("pt") };
    char folder[512], path[600], text[512];
    sft_set *set;
    (void)state;
    snprintf(folder, sizeof folder, "%s", temp_path("set"));
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
    assert_int_equal(sft_save_set(folder, parts, shard_of, 3, 2, &pair, 1, NULL, NULL, NULL),
                     SFT_OK);
    FILE *index = fopen(path, "rb");
    text[fread(text, 1, sizeof text - 1, index)] = 0;
    fclose(index);
    assert_string_equal(text, "{\n  \"metadata\": {\n    \"total_size\": 20\n  },\n"
                              "  \"weight_map\": {\n"
                              "    \"\\\"a\": \"model-00001-of-00002.safetensors\",\n"
                              "    \"b\": \"model-00002-of-00002.safetensors\",\n"
                              "    \"c\": \"model-00002-of-00002.safetensors\"\n  }\n}\n");
    assert_int_equal(sft_set_open(path, NULL, &set, NULL), SFT_OK);
    assert_int_equal(sft_set_tensor_count(set), 3);
    assert_int_equal(sft_file_metadata_count(sft_set_shard_at(set, 0)), 1);
    assert_int_equal(sft_file_metadata_count(sft_set_shard_at(set, 1)), 1);
    sft_set_close(set);
    assert_int_equal(sft_save_set(folder, parts, shard_of, 3, 2, NULL, 0, NULL, NULL, NULL),
                     SFT_EXISTS);
    remove_set(folder, 2);
}

static void expect_text(const char *path, const char *want) {
    char text[1024];
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    text[fread(text, 1, sizeof text - 1, file)] = 0;
    fclose(file);
    assert_string_equal(text, want);
}

/* What an index keeps of another; the times of the files. */
static void test_set_kept(void **state) {
    static const char *const kept[][2] = {
        { "{}", "\n    \"total_size\": 14" },
        { "{\"a\":[1, {\"b\":null}] , \"total_size\":\"x\",\"z\\u0061\":1.50}",
          "\n    \"a\": [1, {\"b\":null}],\n    \"total_size\": 14,\n    \"z\\u0061\": 1.50" },
        { " {\"total_size\": 1, \"total_size\": 2}", "\n    \"total_size\": 14" },
        { "{\"total\\u005fsize\":1,\"b\":2}", "\n    \"total_size\": 14,\n    \"b\": 2" },
        { "[1]", "\n    \"total_size\": 14" },
        { "{\"b\":\"c\"}", "\n    \"b\": \"c\",\n    \"total_size\": 14" },
    };
    static const uint32_t shard_of[] = { 0, 1 };
    static const int64_t times[] = { 1000000000, 2000000000, 3000000000 };
    sft_source source = sft_source_memory(data, sizeof data);
    sft_part parts[] = { part_of("b", SFT_U8, side, &source, 3),
                         part_of("c", SFT_I64, NULL, &source, 8) };
    sft_save_set_options options = SFT_SAVE_SET_OPTIONS_INIT;
    char folder[512], path[600], name[64], want[512];
    (void)state;
    options.mtimes_ns = times;
    snprintf(folder, sizeof folder, "%s", temp_path("kept"));
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        struct stat st;
        options.index_metadata = sft_span_cstr(kept[i][0]);
        assert_int_equal(sft_save_set(folder, parts, shard_of, 2, 2, NULL, 0, &options, NULL, NULL),
                         SFT_OK);
        for (uint32_t s = 0; s < 3; s++) {
            (void)sft_shard_name(NULL, s, 2, name, sizeof name);
            snprintf(path, sizeof path, "%s/%s", folder, name);
            assert_int_equal(stat(path, &st), 0);
            assert_int_equal(st.st_mtim.tv_sec, s + 1);
        }
        snprintf(want, sizeof want, "{\n  \"metadata\": {%s\n  },\n  \"weight_map\": {\n"
                 "    \"b\": \"model-00001-of-00002.safetensors\",\n"
                 "    \"c\": \"model-00002-of-00002.safetensors\"\n  }\n}\n", kept[i][1]);
        expect_text(path, want);
        remove_set(folder, 2);
    }
}

/* Places of tensors in an index: another, new ones, none; and the total. */
static void test_index_places(void **state) {
    static const char text[] = "{\"x\": 1, \"metadata\": {\"total_size\": 5, \"k\": \"v\"},\n"
                               " \"weight_map\": {\"a\": \"1\", \"b\":\"1\", \"c\": \"2\"}}";
    const sft_pair places[] = { { sft_span_cstr("a"), { NULL, 0 } },
                                { sft_span_cstr("b"), { NULL, 0 } },
                                { sft_span_cstr("d\"e"), sft_span_cstr("1-f") },
                                { sft_span_cstr("b"), sft_span_cstr("1-f") },
                                { sft_span_cstr("never"), { NULL, 0 } } };
    sft_index_changes changes = SFT_INDEX_CHANGES_INIT;
    const char *path = temp_path("p.safetensors.index.json");
    bool changed = false;
    (void)state;
    temp_write("p.safetensors.index.json", text, sizeof text - 1);
    changes.places = places;
    changes.place_count = 5;
    changes.has_total_size = true;
    changes.total_size = UINT64_MAX;
    changes.dry_run = true;
    assert_int_equal(sft_index_rewrite(path, &changes, NULL, NULL, &changed, NULL), SFT_OK);
    assert_true(changed);
    expect_text(path, text);
    changes.dry_run = false;
    assert_int_equal(sft_index_rewrite(path, &changes, NULL, NULL, &changed, NULL), SFT_OK);
    expect_text(path, "{\"x\": 1, \"metadata\": {\"total_size\": 18446744073709551615, "
                      "\"k\": \"v\"},\n \"weight_map\": {\"b\":\"1-f\", \"c\": \"2\","
                      "\"d\\\"e\":\"1-f\"}}");
    changes.shards = places;
    changes.shard_count = 1;
    assert_int_equal(sft_index_rewrite(path, &changes, NULL, NULL, &changed, NULL),
                     SFT_BAD_ARGUMENT);
}

/* New names of shards that some system would take for something else. */
static void test_index_names(void **state) {
    static const char text[] = "{\"weight_map\": {\"a\": \"sub/nul\", \"b\": \"One\"}}";
    static const char *const bad[] = { "nul.safetensors", "x:y", "one", "sub/NUL", "../x", "a." };
    static const char *const good[] = { "two", "One" };
    const char *path = temp_path("n.safetensors.index.json");
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        sft_pair pair = { sft_span_cstr("b"), sft_span_cstr(bad[i]) };
        sft_index_changes places = SFT_INDEX_CHANGES_INIT, shards = SFT_INDEX_CHANGES_INIT;
        places.places = &pair, places.place_count = 1;
        temp_write("n.safetensors.index.json", text, sizeof text - 1);
        assert_int_equal(sft_index_rewrite(path, &places, NULL, NULL, NULL, &err), SFT_INDEX_PATH);
        assert_non_null(strstr(err.message, bad[i]));
        pair.key = sft_span_cstr("One");
        shards.shards = &pair, shards.shard_count = 1;
        assert_int_equal(sft_index_rewrite(path, &shards, NULL, NULL, NULL, &err), SFT_INDEX_PATH);
        expect_text(path, text);
    }
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        sft_pair pair = { sft_span_cstr("b"), sft_span_cstr(good[i]) };
        sft_index_changes places = SFT_INDEX_CHANGES_INIT;
        places.places = &pair, places.place_count = 1;
        assert_int_equal(sft_index_rewrite(path, &places, NULL, NULL, NULL, &err), SFT_OK);
    }
}

/* What is written beside an index, or over a file, is no more open than either. */
static void test_index_modes(void **state) {
    static const char text[] = "{\"weight_map\": {\"a\": \"1\"}}";
    static const struct mode_row { mode_t from, to; int made; } rows[] = {
        { 0600, 0644, 0600 }, { 0644, 0600, 0600 }, { 0644, 0666, 0644 }, { 0600, 0, 0600 },
        { 0400, 0200, 0600 },
    };
    sft_index_changes changes = SFT_INDEX_CHANGES_INIT;
    char to[512];
    (void)state;
    snprintf(to, sizeof to, "%s", temp_path("to.index"));
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        temp_write("from.index", text, sizeof text - 1);
        temp_write("to.index", "", 0);
        assert_int_equal(chmod(temp_path("from.index"), rows[i].from), 0);
        assert_int_equal(rows[i].to ? chmod(to, rows[i].to) : unlink(to), 0);
        assert_int_equal(sft_index_rewrite(temp_path("from.index"), &changes, to, NULL, NULL, NULL),
                         SFT_OK);
        assert_int_equal(temp_mode("to.index"), rows[i].made);
        assert_int_equal(unlink(to), 0);
        assert_int_equal(unlink(temp_path("from.index")), 0);
    }
}

/* One shard is a file without an index; an empty folder may be there. */
static void test_set_of_one(void **state) {
    static const uint32_t shard_of[] = { 0 };
    sft_source source = sft_source_memory(data, sizeof data);
    sft_part part = part_of("b", SFT_U8, side, &source, 3);
    char folder[512], path[600];
    (void)state;
    snprintf(folder, sizeof folder, "%s", temp_path("set1"));
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(sft_save_set(folder, &part, shard_of, 1, 1, NULL, 0, NULL, NULL, NULL),
                     SFT_OK);
    snprintf(path, sizeof path, "%s/model.safetensors.index.json", folder);
    assert_int_equal(access(path, F_OK), -1);
    snprintf(path, sizeof path, "%s/model.safetensors", folder);
    assert_int_equal(access(path, F_OK), 0);
    remove_set(folder, 1);
    assert_int_equal(sft_save_set(folder, NULL, NULL, 0, 1, NULL, 0, NULL, NULL, NULL), SFT_OK);
    remove_set(folder, 1);
}

static void test_set_refused(void **state) {
    static const uint32_t shard_of[] = { 0, 1 }, beyond[] = { 0, 2 };
    sft_source source = sft_source_memory(data, 8);
    sft_part parts[] = { part_of("a", SFT_U8, side, &source, 0),
                         part_of("a", SFT_U8, side, &source, 0) };
    sft_save_set_options options = SFT_SAVE_SET_OPTIONS_INIT;
    const char *folder = temp_path("set2");
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    assert_int_equal(sft_save_set(folder, parts, shard_of, 2, 2, NULL, 0, NULL, NULL, &err),
                     SFT_TENSOR_DUPLICATE);
    assert_int_equal(sft_save_set(folder, parts, beyond, 2, 2, NULL, 0, NULL, NULL, &err),
                     SFT_BAD_ARGUMENT);
    options.stem = "a/b";
    assert_int_equal(sft_save_set(folder, parts, shard_of, 2, 2, NULL, 0, &options, NULL, &err),
                     SFT_BAD_ARGUMENT);
    assert_int_equal(sft_save_set(NULL, parts, shard_of, 2, 2, NULL, 0, NULL, NULL, &err),
                     SFT_BAD_ARGUMENT);
    /* The second shard fails: the first, and the folder, are gone again. */
    parts[1] = part_of("z", SFT_U8, side, &source, 5);
    assert_int_equal(sft_save_set(folder, parts, shard_of, 2, 2, NULL, 0, NULL, NULL, &err),
                     SFT_BUFFER_SIZE);
    assert_int_equal(access(folder, F_OK), -1);
    temp_write("plain", "x", 1);
    assert_int_equal(sft_save_set(temp_path("plain"), parts, shard_of, 2, 2, NULL, 0, NULL, NULL,
                     &err),
                     SFT_EXISTS);
}

/* A caller whose struct ended before the mode: what its padding holds is none. */
static void test_set_of_older(void **state) {
    static const uint32_t shard_of[] = { 0 };
    sft_source source = sft_source_memory(data, 8);
    sft_part part = part_of("a", SFT_U8, side, &source, 0);
    sft_save_set_options options, defaults = SFT_SAVE_SET_OPTIONS_INIT;
    const size_t members[][2] = {
        { offsetof(sft_save_set_options, stem), sizeof options.stem },
        { offsetof(sft_save_set_options, no_sync), sizeof options.no_sync },
        { offsetof(sft_save_set_options, in_place_unsafe), sizeof options.in_place_unsafe },
        { offsetof(sft_save_set_options, index_metadata), sizeof options.index_metadata },
        { offsetof(sft_save_set_options, mtimes_ns), sizeof options.mtimes_ns },
        { offsetof(sft_save_set_options, plan), sizeof options.plan },
    };
    mode_t mask = umask(022);
    char folder[512];
    (void)state;
    memset(&options, 0x81, sizeof options);
    for (size_t i = 0; i < sizeof members / sizeof *members; i++)
        memcpy((char *)&options + members[i][0], (char *)&defaults + members[i][0], members[i][1]);
    options.size = offsetof(sft_save_set_options, plan) + sizeof options.plan;
    snprintf(folder, sizeof folder, "%s", temp_path("older"));
    assert_int_equal(sft_save_set(folder, &part, shard_of, 1, 1, NULL, 0, &options, NULL, NULL),
                     SFT_OK);
    umask(mask);
    assert_int_equal(temp_mode("older/model.safetensors"), 0644);
    remove_set(folder, 1);
}

/* ── What interrupted writers left ── */

static bool count_name(void *ctx, const char *name) {
    size_t *left = ctx;
    (void)name;
    return --*left > 0;
}

static void leftover_file(const char *name) {
    char path[64];
    snprintf(path, sizeof path, "leftovers/%s", name);
    temp_write(path, "x", 1);
}

static void test_sweep(void **state) {
    static const char *const leftovers[] = { ".m.safetensors.sft-0a9v1b", ".x.sft-abcdef" };
    static const char *const others[] = { "m.sft-abcdef", ".sft-abcdef", ".x.sft-abcdeg",
                                          ".x.sft-ABCDEF", ".x.sft-abcde", ".x.sft-wxyzab" };
    size_t count, left = 1;
    (void)state;
    char folder[512];
    snprintf(folder, sizeof folder, "%s", temp_path("leftovers"));
    assert_int_equal(mkdir(folder, 0700), 0);
    char path[600];
    for (size_t i = 0; i < 2; i++) leftover_file(leftovers[i]);
    for (size_t i = 0; i < 6; i++) leftover_file(others[i]);
    assert_int_equal(sft_sweep(folder, true, NULL, NULL, &count, NULL), SFT_OK);
    assert_int_equal(count, 3); /* g is one of the letters, too */
    assert_int_equal(sft_sweep(folder, true, count_name, &left, &count, NULL), SFT_CANCELLED);
    left = 1;
    assert_int_equal(sft_sweep(folder, false, count_name, &left, &count, NULL), SFT_CANCELLED);
    assert_int_equal(count, 1);
    assert_int_equal(sft_sweep(folder, false, NULL, NULL, &count, NULL), SFT_OK);
    assert_int_equal(count, 2);
    for (size_t i = 0; i < 6; i++) {
        snprintf(path, sizeof path, "%s/%s", folder, others[i]);
        assert_int_equal(access(path, F_OK), i == 2 ? -1 : 0);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(folder), 0);
    assert_int_equal(sft_sweep(folder, false, NULL, NULL, NULL, NULL), SFT_NOT_FOUND);
    assert_int_equal(sft_sweep(NULL, false, NULL, NULL, NULL, NULL), SFT_BAD_ARGUMENT);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs_by_call),
        cmocka_unit_test(test_arrays),
        cmocka_unit_test(test_arrays_memory),
        cmocka_unit_test(test_parts),       cmocka_unit_test(test_parts_refused),
        cmocka_unit_test(test_large),       cmocka_unit_test(test_stopped),
        cmocka_unit_test(test_pipe),        cmocka_unit_test(test_mtime),
        cmocka_unit_test(test_cut),         cmocka_unit_test(test_names),
        cmocka_unit_test(test_set),         cmocka_unit_test(test_set_of_one),
        cmocka_unit_test(test_set_refused), cmocka_unit_test(test_sweep),
        cmocka_unit_test(test_set_of_older), cmocka_unit_test(test_index_modes),
        cmocka_unit_test(test_set_kept),    cmocka_unit_test(test_index_places),
    cmocka_unit_test(test_index_names),
    };
    fill();
    return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
