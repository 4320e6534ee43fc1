/* A shard writer over a folder of its own, and what its files hold. For tests that run between
 * set_up and tear_down. */
#ifndef SHARDS_CASE_H
#define SHARDS_CASE_H

#include "dataset/write/writer.h"
#include "safetensors_hash.h"
#include "unit/arrow_make.h"
#include "unit/temp_dir.h"

#define JOB "01234567-89ab-4cde-8f01-23456789abcd"
#define JOB_TEXT JOB ":7"
#define FOLDER "_job-" JOB

static sft_error err;
static sft_storage storage;
static sft_dataset_options *options;
static sft_shard_writer *writer;
static sfti_arena arena;
static sfti_ds_receipt *receipts;
static size_t receipt_count;
static sft_file *file;

static inline int set_up(void **state) {
    am_reset();
    arena = (sfti_arena){ .alloc = sfti_allocator(NULL) };
    writer = NULL;
    file = NULL;
    options = NULL;
    return temp_dir_make(state) ? -1 : (int)sft_storage_local(temp_dir, true, NULL, &storage, &err);
}

static inline int tear_down(void **state) {
    sft_close(file);
    sft_shard_writer_abandon(writer);
    sft_dataset_options_free(options);
    sfti_arena_free(&arena);
    int failed = (int)storage.vtable->remove(storage.ctx, FOLDER, true, &err);
    sft_storage_close(&storage);
    return temp_dir_remove(state) || failed || am_given != am_released;
}

/* ── Writing ── */

static inline void open_writer(const struct ArrowSchema *schema, const char *const *words) {
    sft_pair pairs[8];
    size_t count = 0;
    for (; words[count]; count++) {
        const char *mark = strchr(words[count], '=');
        pairs[count].key = (sft_span){ words[count], (size_t)(mark - words[count]) };
        pairs[count].value = sft_span_cstr(mark + 1);
    }
    if (sft_dataset_options_new(pairs, count, NULL, &options, &err)) fail_msg("%s", err.message);
    sft_code code = sft_shard_writer_begin(options, &storage, sft_span_cstr(JOB_TEXT), 3, schema,
                                           NULL, &writer, &err);
    if (code) fail_msg("%s", err.message);
}

#define OPEN(schema, ...) open_writer(schema, (const char *const[]){ __VA_ARGS__, NULL })

static inline sft_code give(struct ArrowArray *rows, const sft_job *job) {
    struct ArrowArray batch = am_give(rows);
    sft_code code = sft_shard_writer_append(writer, &batch, job, &err);
    assert_null(batch.release);
    return code;
}

static inline void append(struct ArrowArray *rows) {
    if (give(rows, NULL)) fail_msg("%s", err.message);
}

static inline void refuse(struct ArrowArray *rows, sft_code code, const char *why) {
    assert_int_equal(give(rows, NULL), code);
    assert_string_equal(err.message, why);
    assert_int_equal(sft_shard_writer_finish(writer, NULL, NULL, NULL), code);
    writer = NULL;
    assert_int_equal(am_given, am_released);
}

static inline void close_writer(const sft_job *job) {
    sft_buffer text;
    sft_code code = sft_shard_writer_finish(writer, &text, job, &err);
    writer = NULL;
    if (code) fail_msg("%s", err.message);
    sft_span span = { text.data, text.len };
    size_t cap = receipt_count = 0;
    sfti_ds_job of;
    assert_int_equal(sfti_ds_job_parse(sft_span_cstr(JOB_TEXT), &of, &err), SFT_OK);
    code = sfti_ds_receipts_read(span, &of, &arena, &receipts, &receipt_count, &cap, &err);
    if (code) fail_msg("%s\n%.*s", err.message, (int)text.len, text.data);
    sft_buffer_free(&text);
    assert_int_equal(am_given, am_released);
}

static inline void close_fails(sft_code code, const char *why) {
    sft_buffer text;
    assert_int_equal(sft_shard_writer_finish(writer, &text, NULL, &err), code);
    writer = NULL;
    assert_string_equal(err.message, why);
    assert_null(text.data);
    assert_int_equal(am_given, am_released);
}

/* ── Reading ── */

static inline void open_shard(size_t i) {
    sft_open_options strict = SFT_OPEN_OPTIONS_INIT;
    sft_hashes hashes;
    const char *path = temp_path(receipts[i].stored.data);
    assert_true(i < receipt_count);
    sft_close(file);
    strict.level = SFT_LEVEL_STRICT;
    strict.mode = SFT_MAP;
    if (sft_open(path, &strict, &file, &err)) fail_msg("%s", err.message);
    assert_int_equal(sft_file_size(file), receipts[i].bytes);
    assert_int_equal(sft_file_header_bytes(file), receipts[i].header_bytes);
    assert_int_equal(sft_file_tensor_count(file), receipts[i].tensors);
    assert_int_equal(receipts[i].partition, 3);
    assert_int_equal(receipts[i].shard, i);
    assert_int_equal(
        sft_hash_path(path, SFT_HASH_BIT(SFT_HASH_SHA256), NULL, &hashes, NULL, &err), SFT_OK);
    assert_string_equal(sft_hashes_get(&hashes, SFT_HASH_SHA256), receipts[i].sha256);
}

static inline void metadata_is(const char *key, const char *value) {
    sft_span found;
    assert_int_equal(sft_file_metadata_get_cstr(file, key, &found), value != NULL);
    if (value) assert_true(sft_span_equal(found, sft_span_cstr(value)));
}

/* A tensor's bytes; shape as "[2, 3]". */
static inline void tensor_is(const char *name, sft_dtype dtype, const char *shape,
                             const void *bytes, size_t len) {
    char text[SFTI_SHAPE_TEXT];
    const void *data = NULL;
    const sft_tensor *t = sft_file_find_cstr(file, name);
    if (!t) fail_msg("there is no %s", name);
    assert_int_equal(t->dtype, dtype);
    sfti_ds_shape_text(t->shape, t->rank, text);
    assert_string_equal(text, shape);
    assert_int_equal(t->end - t->begin, len);
    assert_int_equal(sft_view(file, t, &data, &err), SFT_OK);
    if (len) assert_memory_equal(data, bytes, len);
}

#define TENSOR(name, dtype, shape, type, ...)                           \
    tensor_is(name, dtype, shape, (const type[]){ __VA_ARGS__ },        \
              sizeof((const type[]){ __VA_ARGS__ }))

/* ── Tables ── */

static const int16_t shorts[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 };
static const int64_t longs[] = { 9, (INT64_C(1) << 53) + 1, INT64_MIN, INT64_MAX, -1, 5, 6, 7 };

/* n: int64, v: list<int16>[2], both sliced, and the batch itself. */
static inline struct ArrowSchema *pair_type(void) {
    return am_of(am_of(am_type("+s", ""), am_type("l", "n")),
                 am_list("+w:2", "v", am_type("s", "item")));
}

/* Rows from..from+length of seven. */
static inline struct ArrowArray *pair_rows(int64_t from, int64_t length) {
    struct ArrowArray *top = am_make(length, from, NULL);
    am_with(top, am_make(7, 1, NULL, longs));
    return am_with(top, am_with(am_make(7, 0, NULL), am_make(14, 2, NULL, shorts)));
}

static inline struct ArrowSchema *one_type(const char *format) {
    return am_of(am_type("+s", ""), am_type(format, "x"));
}

static inline struct ArrowArray *one_rows(int64_t length, const void *values) {
    return am_with(am_make(length, 0, NULL), am_make(length, 0, NULL, values));
}

/* ── Tensors ── */

static const int32_t data_at[] = { 0, 4, 8, 16 }, dims_at[] = { 0, 2, 3, 4 };
static const int32_t name_at[] = { 0, 3, 6, 9 };
static const int32_t dims[] = { 1, 2, 2, 2 };

static inline struct ArrowArray *tensor_rows(int64_t from, int64_t length) {
    struct ArrowArray *column = am_make(3, 0, NULL);
    am_with(column, am_make(3, 0, NULL, data_at, "\1\0\2\0\3\0\4\0\0\0\200?\0\0\0@"));
    am_with(column, am_with(am_make(3, 0, NULL, dims_at), am_make(4, 0, NULL, dims)));
    am_with(column, am_make(3, 0, NULL, name_at, "I16I16F32"));
    return am_with(am_make(length, from, NULL), column);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
