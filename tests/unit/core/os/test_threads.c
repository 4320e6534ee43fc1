/* Eight threads on one open file: every kind of read at once. ThreadSanitizer's case. */
#define _GNU_SOURCE
#include "os/os.h"
#include "safetensors.h"
#include "unit/temp_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define THREADS 8
#define TENSORS 64
#define SIDE 32
#define TENSOR_BYTES (SIDE * SIDE)

static unsigned char wanted[TENSORS][TENSOR_BYTES];

static const char *make_file(void) {
    const char *path = temp_path("threads.safetensors");
    static const uint64_t shape[] = {SIDE, SIDE};
    sft_spec specs[TENSORS];
    char names[TENSORS][8];
    sft_plan *plan;
    sft_sink sink;
    sft_writer *writer;
    for (size_t i = 0; i < TENSORS; i++) {
        (void)snprintf(names[i], sizeof names[i], "t%03zu", i);
        specs[i] = (sft_spec){sft_span_cstr(names[i]), SFT_U8, 2, shape};
        for (size_t b = 0; b < TENSOR_BYTES; b++) wanted[i][b] = (unsigned char)(i * 7 + b * 13);
    }
    assert_int_equal(sft_plan_new(specs, TENSORS, NULL, 0, NULL, &plan, NULL), SFT_OK);
    assert_int_equal(sft_sink_path(path, NULL, &sink, NULL), SFT_OK);
    assert_int_equal(sft_writer_begin(plan, sink, &writer, NULL), SFT_OK);
    for (size_t i = 0; i < TENSORS; i++)
        assert_int_equal(sft_writer_put(writer, i, wanted[i], TENSOR_BYTES, NULL), SFT_OK);
    assert_int_equal(sft_writer_finish(writer, NULL), SFT_OK);
    sft_plan_free(plan);
    return path;
}

typedef struct reader {
    const sft_file *file;
    size_t first;
    unsigned wrong;
} reader;

/* cmocka's assertions belong to the main thread: count instead. */
static void read_one(reader *r, size_t i) {
    char name[8];
    unsigned char bytes[TENSOR_BYTES], column[SIDE];
    sft_loan loan;
    sft_slice slice;
    (void)snprintf(name, sizeof name, "t%03zu", i);
    const sft_tensor *t = sft_file_find_cstr(r->file, name);
    if (!t || t != sft_file_tensor_at(r->file, i)) {
        r->wrong++;
        return;
    }
    if (sft_read_into(r->file, t, bytes, sizeof bytes, NULL) != SFT_OK ||
        memcmp(bytes, wanted[i], sizeof bytes) != 0)
        r->wrong++;
    if (sft_borrow(r->file, t, &loan, NULL) != SFT_OK)
        r->wrong++;
    else {
        if (memcmp(loan.data, wanted[i], TENSOR_BYTES) != 0) r->wrong++;
        sft_return(r->file, &loan);
    }
    if (sft_slice_parse(t->shape, t->rank, sft_span_cstr("[:, 3]"), &slice, NULL) != SFT_OK ||
        sft_slice_read(r->file, t, &slice, column, sizeof column, NULL) != SFT_OK)
        r->wrong++;
    for (size_t row = 0; row < SIDE; row++)
        if (column[row] != wanted[i][row * SIDE + 3]) r->wrong++;
}

static void read_all(void *ctx) {
    reader *r = ctx;
    uint32_t order[TENSORS];
    for (size_t k = 0; k < TENSORS; k++) read_one(r, (r->first + k) % TENSORS);
    if (sft_file_order(r->file, SFT_ORDER_NATURAL, order, NULL) != SFT_OK || order[5] != 5)
        r->wrong++;
}

static void share(sft_mode mode) {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    options.mode = mode;
    sft_file *file;
    os_thread threads[THREADS];
    reader readers[THREADS];
    assert_int_equal(sft_open(make_file(), &options, &file, NULL), SFT_OK);
    for (size_t i = 0; i < THREADS; i++) {
        readers[i] = (reader){file, i * TENSORS / THREADS, 0};
        assert_int_equal(sfti_os_thread_start(&threads[i], read_all, &readers[i]), 0);
    }
    for (size_t i = 0; i < THREADS; i++) sfti_os_thread_join(&threads[i]);
    for (size_t i = 0; i < THREADS; i++) assert_int_equal(readers[i].wrong, 0);
    sft_close(file);
}

static void test_shared_read(void **state) {
    (void)state;
    share(SFT_READ);
}

static void test_shared_map(void **state) {
    (void)state;
    share(SFT_AUTO);
}

static void test_read_many(void **state) {
    sft_file *file;
    sft_read reads[TENSORS];
    static unsigned char buffer[TENSORS][TENSOR_BYTES];
    sft_job job = SFT_JOB_INIT;
    (void)state;
    job.threads = THREADS;
    assert_int_equal(sft_open(make_file(), NULL, &file, NULL), SFT_OK);
    for (size_t i = 0; i < TENSORS; i++)
        reads[i] = (sft_read){sft_file_tensor_at(file, i), buffer[i], TENSOR_BYTES};
    assert_int_equal(sft_read_many(file, reads, TENSORS, &job, NULL), SFT_OK);
    assert_memory_equal(buffer, wanted, sizeof buffer);
    sft_close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_shared_read, temp_dir_make, temp_dir_remove),
        cmocka_unit_test_setup_teardown(test_shared_map, temp_dir_make, temp_dir_remove),
        cmocka_unit_test_setup_teardown(test_read_many, temp_dir_make, temp_dir_remove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
