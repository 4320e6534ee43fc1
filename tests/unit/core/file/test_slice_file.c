/* Slices of a file that is read by position: whatever way their bytes come, they are the same, and
 * a file that has become shorter gives an error. */
#define _GNU_SOURCE
#include "bytes/source.h"
#include "safetensors_io.h"
#include "unit/make_file.h"
#include "os/os.h"
#include "unit/temp_dir.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define ROWS 300
#define COLUMNS 5000
#define BYTES ((size_t)ROWS * COLUMNS)

static const char matrix[] =
    "{\"t\":{\"dtype\":\"U8\",\"shape\":[300,5000],\"data_offsets\":[0,1500000]}}";

static test_file matrix_file(void) {
    test_file f = make_file(matrix, NULL, BYTES);
    for (size_t i = 0; i < BYTES; i++) f.bytes[f.data + i] = (unsigned char)(i * 2654435761u >> 9);
    temp_write("m", f.bytes, f.len);
    return f;
}

static sft_file *open_matrix(bool header_only) {
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_file *file = NULL;
    options.header_only = header_only;
    assert_int_equal(sft_open(temp_path("m"), &options, &file, NULL), SFT_OK);
    assert_false(sft_file_is_mapped(file));
    return file;
}

static void cut_matrix(uint64_t size) {
    int fd;
    assert_int_equal(sfti_os_open_write(temp_path("m"), &fd), 0);
    assert_int_equal(sfti_os_truncate(fd, size), 0);
    assert_int_equal(sfti_os_close(fd), 0);
}

/* On Windows a file cannot be cut while it is mapped, which it is from the first mapped read on. */
#ifdef _WIN32
#define CUT_WHILE_MAPPED false
#else
#define CUT_WHILE_MAPPED true
#endif
static bool read_mapped = true;

/* Reads the slice and compares it with the definition, run by run. *end: of its last byte in the
 * file. */
static sft_code read_text(const test_file *f, const sft_file *file, const char *text, uint64_t *end,
                          sft_error *err) {
    static unsigned char out[BYTES + 1], mapped[BYTES + 1];
    const sft_tensor *t = sft_file_tensor_at(file, 0);
    sft_slice slice;
    sft_runs runs;
    sft_run run;
    uint64_t len;
    size_t at = 0;
    *end = 0;
    assert_int_equal(sft_slice_parse(t->shape, 2, sft_span_cstr(text), &slice, NULL), SFT_OK);
    assert_int_equal(sft_slice_size(&slice, SFT_U8, NULL, &len, NULL), SFT_OK);
    memset(out, 0xA5, sizeof out);
    sft_code code = sft_slice_read(file, t, &slice, out, (size_t)len, err);
    assert_int_equal(out[len], 0xA5);
    memset(mapped, 0xA5, sizeof mapped);
    if (read_mapped) {
        assert_int_equal(sft_slice_read_mapped(file, t, &slice, mapped, (size_t)len, NULL), code);
        if (code == SFT_OK) assert_memory_equal(mapped, out, (size_t)len + 1);
    }
    assert_int_equal(mapped[len], 0xA5);
    assert_int_equal(sft_runs_begin(t, &slice, &runs, NULL), SFT_OK);
    while (sft_runs_next(&runs, &run)) {
        const unsigned char *from = f->bytes + t->offset + run.offset;
        if (code == SFT_OK && memcmp(out + at, from, (size_t)run.len) != 0)
            fail_msg("%s: wrong bytes from %zu on", text, at);
        at += (size_t)run.len;
        if (t->offset + run.offset + run.len > *end) *end = t->offset + run.offset + run.len;
    }
    return code;
}

static const char *const texts[] = {
    "[:, 17:29]",      "[::-1, 17:29]",   "[:, 4999]",       "[:, 0]",       "[::2, ::1000]",
    "[::-3, ::-1700]", "[:, 100:2200]",   "[:, ::2500]",     "[5:36, 7]",    "[5:37, 7]",
    "[::7, 0:2600]",   "[::3, 0:4700]",   "[::-4, 50:4950]",
    "[:, 10:4990:9]",  "[40:80, 4000:]",  "[:, 40:72]",      "[:, :]",          "[1:, 1:4999]",
};
#define TEXTS (sizeof texts / sizeof *texts)

static void ways_agree(void **state) {
    (void)state;
    uint64_t end;
    test_file f = matrix_file();
    sft_file *file = open_matrix(false);
    for (int again = 0; again < 2; again++)
        for (size_t i = 0; i < TEXTS; i++)
            assert_int_equal(read_text(&f, file, texts[i], &end, NULL), SFT_OK);
    sft_close(file);
    free_file(&f);
}

/* Cut at, before and behind where runs and pages end; what lies before the cut is still read. */
static void a_cut_is_an_error(void **state) {
    (void)state;
    uint64_t end;
    read_mapped = CUT_WHILE_MAPPED;
    for (size_t i = 0; i < TEXTS; i++) {
        test_file f = matrix_file();
        sft_file *file = open_matrix(false);
        assert_int_equal(read_text(&f, file, texts[i], &end, NULL), SFT_OK);
        const uint64_t last = end, cuts[] = { last + 1, last, last - 1, last - last % 4096 + 1,
                                              last - last % 4096, last - 5000, 700001, 4096, 100 };
        for (size_t k = 0; k < sizeof cuts / sizeof *cuts; k++) {
            sft_error err = SFT_ERROR_INIT;
            if (cuts[k] > f.len) continue;
            temp_write("m", f.bytes, f.len);
            cut_matrix(cuts[k]);
            sft_code code = read_text(&f, file, texts[i], &end, &err);
            assert_int_equal(code, cuts[k] < last ? SFT_IO_SHRUNK : SFT_OK);
            if (code) assert_int_equal(err.tensor_len, 1);
        }
        sft_close(file);
        free_file(&f);
    }
    read_mapped = true;
}

/* Opened when the end was missing already. */
static void an_end_may_be_missing(void **state) {
    (void)state;
    uint64_t end;
    test_file f = matrix_file();
    cut_matrix(f.data + 100 * COLUMNS + 50);
    sft_file *file = open_matrix(true);
    assert_int_equal(read_text(&f, file, "[:101, 17:29]", &end, NULL), SFT_OK);
    assert_int_equal(read_text(&f, file, "[:101, 40:60]", &end, NULL), SFT_DATA_TRUNCATED);
    assert_int_equal(read_text(&f, file, "[:, 17:29]", &end, NULL), SFT_DATA_TRUNCATED);
    assert_int_equal(read_text(&f, file, "[::-1, 17:29]", &end, NULL), SFT_DATA_TRUNCATED);
    sft_close(file);
    free_file(&f);
}

static void only_files_gather(void **state) {
    (void)state;
    unsigned char out[64];
    sft_source source;
    test_file f = matrix_file();
    const uint64_t offsets[] = { 100, 5, f.len - 8, 100000 }, beyond[] = { 5, f.len - 7 };
    assert_int_equal(sft_source_path(temp_path("m"), NULL, &source, NULL), SFT_OK);
    size_t got = sfti_source_gather(&source, offsets, 4, 8, out);
    assert_true(got == 4 || got == 0); /* not every system can */
    for (size_t i = 0; i < got; i++) assert_memory_equal(out + 8 * i, f.bytes + offsets[i], 8);
    assert_int_equal(sfti_source_gather(&source, beyond, 2, 8, out), 0);
    assert_int_equal(sfti_source_gather(&source, offsets, 1, SIZE_MAX, out), 0);
    cut_matrix(f.len - 1);
    assert_int_equal(sfti_source_gather(&source, offsets, 4, 8, out), 0);
    assert_int_equal(sfti_source_gather(&source, offsets, 2, 8, out), got ? 2 : 0);
    sft_source_close(&source);
    source = sft_source_memory(f.bytes, f.len);
    assert_int_equal(sfti_source_gather(&source, offsets, 4, 8, out), 0);
    free_file(&f);
}

/* Threads that slice one file, none of which has a map yet. */
typedef struct slicer {
    const sft_file *file;
    const unsigned char *data;
    size_t column;
    unsigned wrong;
} slicer;

static void slice_columns(void *ctx) {
    slicer *s = ctx;
    unsigned char out[ROWS];
    const sft_tensor *t = sft_file_tensor_at(s->file, 0);
    for (size_t column = s->column; column < COLUMNS; column += 400) {
        sft_slice slice = { 2, 2, { { 0, ROWS, 1 }, { column, 1, 1 } } };
        sft_code code = column % 2 ? sft_slice_read(s->file, t, &slice, out, ROWS, NULL)
                                   : sft_slice_read_mapped(s->file, t, &slice, out, ROWS, NULL);
        if (code != SFT_OK) s->wrong++;
        for (size_t row = 0; row < ROWS; row++)
            if (out[row] != s->data[row * COLUMNS + column]) s->wrong++;
    }
}

static void threads_share_a_file(void **state) {
    (void)state;
    test_file f = matrix_file();
    for (int round = 0; round < 20; round++) {
        sft_file *file = open_matrix(false);
        os_thread threads[3];
        slicer slicers[3];
        for (size_t i = 0; i < 3; i++) {
            slicers[i] = (slicer){ file, f.bytes + f.data, i * 131 + (size_t)round, 0 };
            assert_int_equal(sfti_os_thread_start(&threads[i], slice_columns, &slicers[i]), 0);
        }
        for (size_t i = 0; i < 3; i++) {
            sfti_os_thread_join(&threads[i]);
            assert_int_equal(slicers[i].wrong, 0);
        }
        sft_close(file);
    }
    free_file(&f);
}

/* ── What a source is told ── */

#define PITCH UINT64_C(300000) /* runs so far apart are windows of their own */

typedef struct far_rows {
    test_file head;
    size_t calls, runs;
    uint64_t low, high;
} far_rows;

static sft_code read_far(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                         sft_error *err) {
    const far_rows *f = ctx;
    unsigned char *to = into;
    (void)err;
    for (size_t i = 0; i < len; i++) {
        uint64_t at = offset + i;
        to[i] = at < f->head.len ? f->head.bytes[at]
                                 : (unsigned char)((at - f->head.len) / PITCH * 7);
    }
    *got = len;
    return SFT_OK;
}

static void hear_far(void *ctx, const sft_run *runs, size_t count) {
    far_rows *f = ctx;
    f->calls++;
    f->runs += count;
    for (size_t i = 0; i < count; i++) {
        if (runs[i].offset < f->low) f->low = runs[i].offset;
        if (runs[i].offset + runs[i].len > f->high) f->high = runs[i].offset + runs[i].len;
    }
}

/* Ten thousand windows are told one by one, some ahead; more as one, from the first to the last,
 * whichever way they go. */
static void many_windows_are_one(void **state) {
    static const sft_source_vtable vtable = { sizeof vtable, read_far, NULL, hear_far, NULL };
    static unsigned char out[10001];
    (void)state;
    for (uint64_t way = 0; way < 3; way++) {
        uint64_t rows = way ? 10001 : 10000;
        bool back = way == 2;
        char header[128];
        far_rows f = { .low = UINT64_MAX };
        sft_file *file = NULL;
        (void)snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"U8\",\"shape\":[%d,300000],"
                       "\"data_offsets\":[0,%llu]}}", (int)rows,
                       (unsigned long long)(rows * PITCH));
        f.head = make_file(header, NULL, 0);
        sft_source source = { &f, &vtable, f.head.len + rows * PITCH, NULL, false };
        assert_int_equal(sft_open_source(source, NULL, &file, NULL), SFT_OK);
        const sft_tensor *t = sft_file_tensor_at(file, 0);
        const sft_slice slice = { 2, 0, { { back ? rows - 1 : 0, rows, back ? -1 : 1 },
                                          { 7, 1, 1 } } };
        f.calls = f.runs = 0;
        f.low = UINT64_MAX, f.high = 0;
        assert_int_equal(sft_slice_read(file, t, &slice, out, (size_t)rows, NULL), SFT_OK);
        for (uint64_t i = 0; i < rows; i++)
            assert_int_equal(out[i], (unsigned char)((back ? rows - 1 - i : i) * 7));
        assert_int_equal(f.low, f.head.len + 7);
        assert_int_equal(f.high, f.head.len + (rows - 1) * PITCH + 8);
        assert_int_equal(f.runs, way ? 1 : rows);
        assert_true(way ? f.calls == 1 : f.calls > 10);
        sft_close(file);
        free_file(&f.head);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, temp_dir_make, temp_dir_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(ways_agree),        TEST(a_cut_is_an_error),    TEST(an_end_may_be_missing),
        TEST(only_files_gather), TEST(threads_share_a_file), TEST(many_windows_are_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
