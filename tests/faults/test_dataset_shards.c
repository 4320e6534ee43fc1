/* Rows become shards on a system whose nth allocation or call fails: the call reports it, no file
 * of this writer is left, and every batch was released once. */
#include "faults.h"
#include "safetensors_dataset.h"
#include "unit/arrow_make.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define JOB "01234567-89ab-4cde-8f01-23456789abcd"
#define JOB_TEXT JOB ":0"

enum { LARGE = 900000 };
static int16_t large[LARGE];

/* ── Batches: a number, bits, a list, a tensor, a key ── */

static struct ArrowSchema *rows_type(void) {
    struct ArrowSchema *schema = am_of(am_type("+s", ""), am_type("u", "id"));
    am_of(am_of(schema, am_type("l", "n")), am_type("b", "b"));
    am_of(schema, am_list("+w:2", "v", am_type("s", "item")));
    return am_of(schema, am_tensor_type("t"));
}

static struct ArrowArray *rows_tensors(void) {
    static const int32_t data_at[] = { 0, 4, 8, 12, 16 }, dims_at[] = { 0, 1, 2, 3, 4 };
    static const int32_t name_at[] = { 0, 3, 6, 9, 12 }, dims[] = { 2, 2, 2, 2 };
    struct ArrowArray *column = am_make(4, 0, NULL);
    am_with(column, am_make(4, 0, NULL, data_at, "\1\0\2\0\3\0\4\0\5\0\6\0\7\0\10"));
    am_with(column, am_with(am_make(4, 0, NULL, dims_at), am_make(4, 0, NULL, dims)));
    return am_with(column, am_make(4, 0, NULL, name_at, "I16I16I16I16"));
}

static struct ArrowArray *rows_of(const char *letters) {
    static const int32_t key_at[] = { 0, 1, 2, 3, 4 };
    static const int64_t numbers[] = { 1, 2, -3, 4, 5, 6 };
    static const uint8_t bits[] = { 0x5a };
    static const int16_t shorts[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 };
    struct ArrowArray *top = am_make(4, 0, NULL);
    am_with(top, am_make(4, 0, NULL, key_at, letters));
    am_with(top, am_make(4, 1, NULL, numbers));
    am_with(top, am_make(4, 2, NULL, bits));
    am_with(top, am_with(am_make(4, 1, NULL), am_make(12, 0, NULL, shorts)));
    return am_with(top, rows_tensors());
}

static struct ArrowSchema *large_type(void) {
    return am_of(am_type("+s", ""), am_type("s", "x"));
}

static struct ArrowArray *large_rows(void) {
    return am_with(am_make(LARGE, 0, NULL), am_make(LARGE, 0, NULL, large));
}

/* ── A scene ── */

enum { ROWS, BIG };

static const struct {
    const char *options[4][2];
} ways[] = {
    { { { "batch_size", "3" }, { "columns", "n,b,v,t" }, { "tail_strategy", "pad" } } },
    { { { "batch_size", "9" }, { "columns", "v,n,t" }, { "dtype", "F64" } } },
    { { { "name_col", "id" }, { "duplicatesStrategy", "lastWin" }, { "dtype", "BF16" },
        { "rounding", "truncate" } } },
    { { { "name_col", "id" } } },
    { { { "batch_size", "850000" } } },
    { { { "batch_size", "900000" }, { "dtype", "I8" } } },
};

static sft_code make_options(const fault_scene *scene, sft_dataset_options **out, sft_error *err) {
    sft_pair pairs[4];
    size_t count = 0;
    for (; count < 4 && ways[scene->way].options[count][0]; count++)
        pairs[count] = (sft_pair){ sft_span_cstr(ways[scene->way].options[count][0]),
                                   sft_span_cstr(ways[scene->way].options[count][1]) };
    return sft_dataset_options_new(pairs, count, &fault_alloc, out, err);
}

static sft_code give_all(const fault_scene *scene, sft_shard_writer *writer, const sft_job *job,
                         sft_error *err) {
    static const char *const letters[] = { "abcd", "efgh", "ifai" };
    sft_code code = SFT_OK;
    for (int i = 0; code == SFT_OK && i < (scene->mode == BIG ? 1 : 3); i++) {
        struct ArrowArray *rows = scene->mode == BIG ? large_rows() : rows_of(letters[i]);
        struct ArrowArray batch = am_give(rows);
        code = sft_shard_writer_append(writer, &batch, job, err);
    }
    return code;
}

static sft_code write_all(const fault_scene *scene, const sft_dataset_options *options,
                          const sft_storage *storage, sft_buffer *receipts, sft_error *err) {
    sft_job job = { sizeof job, NULL, NULL, scene->mode == BIG ? 2 : 1 };
    sft_shard_writer *writer = NULL;
    sft_code code = sft_dataset_check_schema(options, scene->mode == BIG ? large_type()
                                                                         : rows_type(), NULL, err);
    if (code == SFT_OK)
        code = sft_shard_writer_begin(options, storage, sft_span_cstr(JOB_TEXT), 2,
                                      scene->mode == BIG ? large_type() : rows_type(),
                                      &fault_alloc, &writer, err);
    if (code) return code;
    code = give_all(scene, writer, &job, err);
    if (code == SFT_OK) return sft_shard_writer_finish(writer, receipts, &job, err);
    sft_shard_writer_abandon(writer);
    return code;
}

static void run_shards(const fault_scene *scene, fault_seen *seen) {
    sft_dataset_options *options = NULL;
    sft_storage storage = { 0 };
    sft_buffer receipts = { 0 };
    am_reset();
    sft_code code = make_options(scene, &options, &seen->err);
    if (code == SFT_OK)
        code = sft_storage_local("/out", false, &fault_alloc, &storage, &seen->err);
    if (code == SFT_OK) code = write_all(scene, options, &storage, &receipts, &seen->err);
    if (code == SFT_OK) fault_see(seen, "%.*s\n", (int)receipts.len, receipts.data);
    seen->status = (int)code;
    sft_buffer_free(&receipts);
    sft_storage_close(&storage);
    sft_dataset_options_free(options);
}

/* ── What is left ── */

static size_t files_before, files_most;
static const fault_scene *learned;

static void set_shards(const fault_scene *scene) {
    os_fake_add_dir("/out/_job-" JOB);
    os_fake_short_writes(scene->mode == BIG ? 0 : 300);
    os_fake_no_unnamed(scene->way % 2);
    files_before = os_fake_count_files();
}

static const char *judge_shards(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    size_t files = os_fake_count_files() - files_before;
    if (am_given != am_released) return "a batch was not released once";
    if (learned != scene && seen->status == 0) {
        learned = scene;
        files_most = files;
        return files ? NULL : "success, and no file";
    }
    if (seen->status == 0) return files == files_most ? NULL : "success, and other files";
    /* Removing needs memory for a path. */
    lasting = lasting || (seen->status == SFT_OUT_OF_MEMORY && os_fake_failed() > 1);
    return files && !lasting ? "a file is left" : NULL;
}

#define SCENE(title, rows, which) \
    { .name = title, .run = run_shards, .mode = rows, .way = which, .writes = true, \
      .set = set_shards, .after = judge_shards }

static const fault_scene scenes[] = {
    SCENE("batches, padded", ROWS, 0),
    SCENE("batches, cast", ROWS, 1),
    SCENE("keys, the last wins, cast", ROWS, 2),
    SCENE("large, a thread hashes", BIG, 4),
};

/* Errors: a name twice; a value that does not fit the dtype. */
static const fault_scene refusals[] = {
    SCENE("keys, one twice", ROWS, 3),
    SCENE("large, a value too large", BIG, 5),
};

static int fill_large(void **unused) {
    (void)unused;
    for (int i = 0; i < LARGE; i++) large[i] = (int16_t)(i % 128);
    large[LARGE - 5] = 128;
    return 0;
}

static void play_scenes(void **unused) {
    (void)unused;
    assert_true(fault_play(scenes, sizeof scenes / sizeof *scenes, 150, 100));
}

static void play_refusals(void **unused) {
    (void)unused;
    assert_true(fault_play(refusals, sizeof refusals / sizeof *refusals, 25, 10));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_scenes),
        cmocka_unit_test(play_refusals),
    };
    return cmocka_run_group_tests(tests, fill_large, NULL);
}
