/* The index of names over commits, and its rows. */
#define _GNU_SOURCE
#include "unit/commit_case.h"
#include "unit/parquet_footer.h"

/* ── The index ── */

static void stay_indexed(void **state) {
    sft_dataset_options *with = ds_options("name_col=id", "generate_index=true", NULL);
    sft_dataset_options *without = ds_options("name_col=id", NULL);
    char index[200];
    (void)state;
    for (int i = 0; i < 3; i++) {
        sft_commit *c = ds_begin(i ? without : with, i < 2 ? SFT_COMMIT_APPEND
                                                           : SFT_COMMIT_OVERWRITE);
        ds_kv(c, 0, 0, i ? "b" : "a");
        assert_int_equal(prepare(c), SFT_OK);
        assert_int_equal(sft_commit_indexed(c), i < 2);
        if (i < 2) {
            (void)snprintf(index, sizeof index, "%s/x", sft_commit_job_folder(c));
            temp_write(index, i ? "two" : "one", 3);
        }
        assert_int_equal(publish(c, i < 2 ? "x" : NULL), SFT_OK);
        sft_commit_close(c);
        char text[8] = { 0 };
        assert_int_equal(temp_read(SFTI_DATASET_INDEX, text, 7), i < 2 ? 3 : -1);
        if (i < 2) assert_string_equal(text, i ? "two" : "one");
        text_has("\"index\":\"_tensor_index.parquet\"", i < 2);
        assert_int_equal(ds_count("_job-"), 0);
    }
    /* The caller writes none: the manifest says so. */
    sft_commit *c = ds_begin(with, SFT_COMMIT_OVERWRITE);
    ds_end(c);
    text_has("\"index\":null", true);
    /* It announced an index and did not write it. */
    c = ds_begin(with, SFT_COMMIT_OVERWRITE);
    assert_int_equal(prepare(c), SFT_OK);
    assert_int_equal(publish(c, "none"), SFT_NOT_FOUND);
    sft_commit_close(c);
    sft_dataset_options_free(with);
    sft_dataset_options_free(without);
}

/* Spark's index is a folder. */
static void index_folder(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", "generate_index=true", NULL);
    char index[200];
    (void)state;
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mkdir(temp_path(SFTI_DATASET_INDEX), 0777), 0);
        temp_write(SFTI_DATASET_INDEX "/part-0.parquet", "old", 3);
        temp_write(SFTI_DATASET_INDEX "/._SUCCESS.crc", "", 0);
        sft_commit *c = ds_begin(o, SFT_COMMIT_OVERWRITE);
        assert_int_equal(prepare(c), SFT_OK);
        (void)snprintf(index, sizeof index, "%s/i", sft_commit_job_folder(c));
        assert_int_equal(mkdir(temp_path(sft_commit_job_folder(c)), 0777), 0);
        temp_write(index, "new", 3);
        assert_int_equal(publish(c, i ? NULL : "i"), SFT_OK);
        sft_commit_close(c);
        char text[8];
        assert_int_equal(temp_read(SFTI_DATASET_INDEX, text, 7), i ? -1 : 3);
        assert_int_equal(ds_count("_job-"), 0);
        assert_int_equal(ds_warn_count, 0);
        if (!i) assert_int_equal(unlink(temp_path(SFTI_DATASET_INDEX)), 0);
    }
    sft_dataset_options_free(o);
}

static void verify_is(bool deep, bool whole, const char *says) {
    sft_buffer out = { 0 };
    sft_sink sink = sft_sink_memory(&out);
    bool found = !whole;
    assert_int_equal(sft_dataset_verify_json(&ds_storage, deep, NULL, "d", &sink, &found, NULL,
                                             &err), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    assert_true(sfti_buffer_put(&out, "", 1));
    if (found != whole || !strstr(out.data, says)) fail_msg("expected %s\nin %s", says, out.data);
    sft_buffer_free(&out);
}

/* The manifest has the digest of the index, which verify compares. */
static void index_digest(void **state) {
    static const char other[] = "00000000-0000-4000-8000-000000000000";
    sft_dataset_options *o = ds_options("name_col=id", "generate_index=true", NULL);
    char name[200];
    (void)state;
    sft_commit *c = ds_begin(o, SFT_COMMIT_NEW);
    ds_kv(c, 0, 0, "a,b");
    assert_int_equal(prepare(c), SFT_OK);
    const char *file = c->shards[0].shard.facts.name;
    (void)snprintf(name, sizeof name, "%s/x", sft_commit_job_folder(c));
    pf_file index = pf_index(2, file, file, c->next.commit, "dtype");
    pf_file stale = pf_index(2, file, file, other, "dtype");
    temp_write(name, index.bytes, index.len);
    assert_int_equal(publish(c, "x"), SFT_OK);
    sft_commit_close(c);
    sft_dataset_options_free(o);
    text_has("\"index_sha256\":\"", true);
    verify_is(true, true, "\"digests\":2,");
    index.bytes[0] ^= 1; /* no reader of the footer looks there */
    temp_write(SFTI_DATASET_INDEX, index.bytes, index.len);
    verify_is(false, true, "\"findings\":[]");
    verify_is(true, false, "\"shard\":\"_tensor_index.parquet\",\"message\":\"sha256: expected ");
    temp_write(SFTI_DATASET_INDEX, stale.bytes, stale.len);
    verify_is(true, true, "an index of another commit; readers ignore it");
    index.bytes[0] ^= 1;
    temp_write(SFTI_DATASET_INDEX, index.bytes, index.len);
    /* Deletions leave it as it is. */
    const sft_span key = { "a", 1 };
    sft_delete_options delete = SFT_DELETE_OPTIONS_INIT;
    delete.keys = &key;
    delete.key_count = 1;
    sft_buffer out = { 0 };
    sft_sink sink = sft_sink_memory(&out);
    assert_int_equal(sft_dataset_delete_json(&ds_storage, &delete, "d", &sink, NULL, &err),
                     SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    sft_buffer_free(&out);
    verify_is(true, true, "\"digests\":2,");
}

/* ── The index's rows ── */

static int32_t offset_at(const struct ArrowArray *a, int64_t i) {
    return ((const int32_t *)a->buffers[1])[i];
}

static bool text_at(const struct ArrowArray *a, int64_t i, const char *text) {
    int32_t from = offset_at(a, i), to = offset_at(a, i + 1);
    return (size_t)(to - from) == strlen(text) &&
           memcmp((const char *)a->buffers[2] + from, text, strlen(text)) == 0;
}

static void schema_is(const struct ArrowSchema *s, int64_t fields, const char *element) {
    static const char *const names[] = { "tensor_key", "file_name", "shape", "dtype", "begin",
                                         "end", "shadowed" };
    static const char *const formats[] = { "u", "u", "+l", "u", "l", "l", "b" };
    assert_string_equal(s->format, "+s");
    assert_int_equal(s->n_children, fields);
    for (int64_t i = 0; i < fields; i++) {
        assert_string_equal(s->children[i]->name, names[i]);
        assert_string_equal(s->children[i]->format, formats[i]);
    }
    assert_int_equal(s->children[2]->n_children, 1);
    assert_string_equal(s->children[2]->children[0]->format, element);
}

static void index_rows(void **state) {
    static const uint64_t two[] = { 2 };
    static const sfti_ds_column column = { .name = { "v", 1 }, .has_dtype = true,
                                           .dtype = SFT_F32, .has_shape = true, .rank = 1,
                                           .shape = two };
    sft_dataset_options *o = ds_options("name_col=id", "duplicatesStrategy=lastWin", NULL);
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray batch;
    (void)state;
    (void)column;
    sft_commit *c = ds_begin(o, SFT_COMMIT_NEW);
    ds_kv(c, 0, 0, "b,a");
    ds_kv(c, 1, 0, "c,b");
    assert_int_equal(prepare(c), SFT_OK);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(sft_commit_index(c, &stream, &err), SFT_OK);
        assert_int_equal(stream.get_schema(&stream, &schema), 0);
        schema_is(&schema, 7, "i");
        assert_int_equal(stream.get_next(&stream, &batch), 0);
        assert_int_equal(batch.length, 4);
        assert_int_equal(batch.n_children, 7);
        assert_int_equal(batch.null_count, 0);
        static const char *const keys[] = { "a__v", "b__v", "b__v", "c__v" };
        static const int files[] = { 0, 0, 1, 1 };
        static const bool shadowed[] = { false, true, false, false };
        for (int64_t i = 0; i < 4; i++) {
            assert_true(text_at(batch.children[0], i, keys[i]));
            assert_true(text_at(batch.children[1], i, c->shards[files[i]].shard.facts.name));
            assert_true(text_at(batch.children[3], i, "F32"));
            assert_int_equal(offset_at(batch.children[2], i), i);
            assert_int_equal(((const int32_t *)batch.children[2]->children[0]->buffers[1])[i], 2);
            int64_t begin = ((const int64_t *)batch.children[4]->buffers[1])[i];
            int64_t end = ((const int64_t *)batch.children[5]->buffers[1])[i];
            assert_int_equal(end - begin, 8);
            assert_int_equal(((const uint8_t *)batch.children[6]->buffers[1])[0] >> i & 1,
                             shadowed[i]);
        }
        assert_int_equal(batch.children[2]->children[0]->length, 4);
        /* A child may be taken out and outlive its parent. */
        struct ArrowArray moved = *batch.children[0];
        batch.children[0]->release = NULL;
        moved.release(&moved);
        batch.release(&batch);
        schema.release(&schema);
        assert_int_equal(stream.get_next(&stream, &batch), 0);
        assert_null(batch.release);
        stream.release(&stream);
    }
    sft_commit_close(c);
    sft_dataset_options_free(o);
}

/* More rows than a batch has, and a dimension that needs 64 bits. */
static void index_large(void **state) {
    sft_dataset_options *o = ds_options("name_col=id", "generate_index=true", NULL);
    enum { ROWS = 70000 };
    ds_tensor *tensors = calloc(ROWS, sizeof *tensors);
    char(*keys)[24] = calloc(ROWS, sizeof *keys);
    struct ArrowArrayStream stream;
    struct ArrowSchema schema;
    struct ArrowArray batch;
    sft_buffer receipts = { .alloc = sfti_allocator(NULL) };
    sfti_ds_column column = { .name = { "v", 1 } };
    (void)state;
    assert_non_null(tensors);
    assert_non_null(keys);
    for (size_t i = 0; i < ROWS; i++) {
        (void)snprintf(keys[i], sizeof keys[0], "%08zu__v", i);
        tensors[i] = (ds_tensor){ keys[i], SFT_F32, 2, { i == 5 ? UINT64_C(1) << 33 : 1, 0 }, 1 };
    }
    sft_commit *c = ds_begin(o, SFT_COMMIT_NEW);
    ds_task(c, &ds_storage, 0, 0, tensors, ROWS, ROWS, ROWS, true, &column, 1, &receipts);
    assert_int_equal(sft_commit_add(c, (sft_span){ receipts.data, receipts.len }, &err), SFT_OK);
    assert_int_equal(prepare(c), SFT_OK);
    assert_int_equal(sft_commit_index(c, &stream, &err), SFT_OK);
    assert_int_equal(stream.get_schema(&stream, &schema), 0);
    schema_is(&schema, 6, "l");
    schema.release(&schema);
    int64_t total = 0;
    assert_null(stream.get_last_error(&stream)); /* there was none */
    while (stream.get_next(&stream, &batch) == 0 && batch.release) {
        assert_true(batch.length <= 65536);
        if (total == 0)
            assert_int_equal(((const int64_t *)batch.children[2]->children[0]->buffers[1])[10],
                             INT64_C(1) << 33);
        total += batch.length;
        batch.release(&batch);
    }
    assert_int_equal(total, ROWS);
    stream.release(&stream);
    assert_int_equal(publish(c, NULL), SFT_OK);
    sft_commit_close(c);
    text_has("\"schema\":", false); /* more keys than it lists */
    text_has("\"tensors\":70000", true);
    sft_buffer_free(&receipts);
    free(tensors);
    free(keys);
    sft_dataset_options_free(o);
}

int main(void) {
    static const struct CMUnitTest tests[] = {
        FOLDER_TEST(stay_indexed), FOLDER_TEST(index_folder), FOLDER_TEST(index_rows),
        FOLDER_TEST(index_large), FOLDER_TEST(index_digest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
