/* Tensor bytes by every way, compared with the bytes of the file. */
#define _GNU_SOURCE
#include "file/file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/make_file.h"
#include "unit/temp_dir.h"

#define THREE                                                          \
    "{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"  \
    "\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[3,3]},"   \
    "\"c\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[3,11]}}"

static sft_file *open_mode(const test_file *f, sft_mode mode) {
    sft_open_options o = SFT_OPEN_OPTIONS_INIT;
    sft_file *file = NULL;
    o.mode = mode;
    temp_write("file", f->bytes, f->len);
    assert_int_equal(sft_open(temp_path("file"), &o, &file, NULL), SFT_OK);
    return file;
}

static void views(void **state) {
    (void)state;
    test_file f = make_file(THREE, NULL, 11);
    for (int mode = SFT_READ; mode <= SFT_AUTO; mode++) {
        sft_file *file = open_mode(&f, (sft_mode)mode);
        for (size_t i = 0; i < 3; i++) {
            const sft_tensor *t = sft_file_tensor_at(file, i);
            const void *view = NULL;
            void *writable = NULL;
            sft_error err = SFT_ERROR_INIT;
            sft_code code = sft_view(file, t, &view, &err);
            assert_int_equal(code, mode == SFT_READ ? SFT_NOT_MAPPED : SFT_OK);
            if (code == SFT_OK) assert_memory_equal(view, f.bytes + t->offset, t->end - t->begin);
            else assert_memory_equal(err.tensor, t->name.data, 1);
            code = sft_view_writable(file, t, &writable, NULL);
            assert_int_equal(code, mode == SFT_MAP_COW ? SFT_OK : SFT_NOT_MAPPED);
            assert_int_equal(writable != NULL, mode == SFT_MAP_COW);
        }
        sft_close(file);
    }
    free_file(&f);
}

static void private_changes_stay_private(void **state) {
    (void)state;
    test_file f = make_file(THREE, NULL, 11);
    sft_file *file = open_mode(&f, SFT_MAP_COW);
    const sft_tensor *t = sft_file_find_cstr(file, "c");
    void *writable;
    unsigned char seen[8], whole[512];
    assert_int_equal(sft_view_writable(file, t, &writable, NULL), SFT_OK);
    memset(writable, 0xEE, 8);
    assert_int_equal(sft_read_into(file, t, seen, 8, NULL), SFT_OK);
    assert_int_equal(seen[7], 0xEE);
    sft_close(file);
    assert_int_equal(temp_read("file", whole, sizeof whole), f.len);
    assert_memory_equal(whole, f.bytes, f.len);
    free_file(&f);
}

static void loans(void **state) {
    (void)state;
    test_file f = make_file(THREE, NULL, 11);
    for (int mode = SFT_READ; mode <= SFT_AUTO; mode++) {
        sft_file *file = open_mode(&f, (sft_mode)mode);
        for (size_t i = 0; i < 3; i++) {
            const sft_tensor *t = sft_file_tensor_at(file, i);
            sft_loan loan;
            assert_int_equal(sft_borrow(file, t, &loan, NULL), SFT_OK);
            assert_int_equal(loan.len, t->end - t->begin);
            assert_non_null(loan.data);
            assert_memory_equal(loan.data, f.bytes + t->offset, loan.len);
            assert_int_equal(loan.owned != NULL, mode == SFT_READ && loan.len > 0);
            sft_return(file, &loan);
            assert_null(loan.data);
        }
        sft_close(file);
    }
    sft_return(NULL, NULL);
    free_file(&f);
}

/* Another file of the same tensors, as a shard may be: every way refuses what is not its own. One
 * name has an escape, so that it is not the header's text. */
static void tensors_of_another_file(void **state) {
    (void)state;
    test_file f = make_file("{\"a\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
                            "\"\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[3,3]},"
                            "\"\\u0063\":{\"dtype\":\"F32\",\"shape\":[2],"
                            "\"data_offsets\":[3,11]}}", NULL, 11);
    for (int mode = SFT_READ; mode <= SFT_AUTO; mode++) {
        sft_file *file = open_mode(&f, (sft_mode)mode), *other;
        assert_int_equal(sft_open_memory(f.bytes, f.len, NULL, &other, NULL), SFT_OK);
        for (size_t i = 0; i < 3; i++) {
            const sft_tensor *t = sft_file_tensor_at(other, i);
            size_t len = (size_t)(t->end - t->begin);
            char into[8];
            sft_slice slice;
            sft_loan loan;
            void *view = &loan;
            sft_error errs[6];
            const sft_read reads[] = { { sft_file_tensor_at(file, 0), into, 3 }, { t, into, len } };
            assert_int_equal(sft_slice_parse(t->shape, t->rank, sft_span_cstr("..."), &slice, NULL),
                             SFT_OK);
            assert_int_equal(sft_read_into(file, t, into, len, &errs[0]), SFT_BAD_ARGUMENT);
            assert_int_equal(sft_borrow(file, t, &loan, &errs[1]), SFT_BAD_ARGUMENT);
            assert_null(loan.data);
            assert_int_equal(sft_view(file, t, (const void **)&view, &errs[2]), SFT_BAD_ARGUMENT);
            assert_null(view);
            assert_int_equal(sft_view_writable(file, t, &view, &errs[3]), SFT_BAD_ARGUMENT);
            assert_int_equal(sft_slice_read(file, t, &slice, into, len, &errs[4]),
                             SFT_BAD_ARGUMENT);
            assert_int_equal(sft_read_many(file, reads, 2, NULL, &errs[5]), SFT_BAD_ARGUMENT);
            for (size_t e = 0; e < 6; e++) {
                assert_string_equal(errs[e].message,
                                    "expected a tensor of this file, found one of another");
                assert_int_equal(errs[e].hint, SFT_HINT_TENSOR_SHARD);
                assert_int_equal(errs[e].tensor_len, t->name.len);
                assert_memory_equal(errs[e].tensor, t->name.data, t->name.len);
                assert_true(errs[e].offset == SFT_NO_OFFSET);
            }
            const sft_tensor *own = sft_file_tensor_at(file, i);
            assert_int_equal(sft_read_into(file, own, into, len, NULL), SFT_OK);
            assert_memory_equal(into, f.bytes + own->offset, len);
        }
        sft_close(other);
        sft_close(file);
    }
    free_file(&f);
}

static void copies(void **state) {
    (void)state;
    test_file f = make_file(THREE, NULL, 11);
    sft_file *file = open_mode(&f, SFT_READ);
    const sft_tensor *a = sft_file_find_cstr(file, "a");
    unsigned char buffer[512];
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(sft_read_into(file, a, buffer, 3, NULL), SFT_OK);
    assert_memory_equal(buffer, f.bytes + f.data, 3);
    assert_int_equal(sft_read_into(file, a, buffer, 2, NULL), SFT_BUFFER_SIZE);
    assert_int_equal(sft_read_into(file, a, buffer, 4, &err), SFT_BUFFER_SIZE);
    assert_string_equal(err.message, "expected a buffer of 3 bytes, found 4");
    assert_int_equal(sft_read_into(file, a, NULL, 3, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_read_into(file, sft_file_find_cstr(file, "b"), NULL, 0, NULL), SFT_OK);
    assert_int_equal(sft_read_bytes(file, 0, buffer, f.len, NULL), SFT_OK);
    assert_memory_equal(buffer, f.bytes, f.len);
    assert_int_equal(sft_read_bytes(file, f.len, buffer, 0, NULL), SFT_OK);
    assert_int_equal(sft_read_bytes(file, 1, buffer, f.len, NULL), SFT_IO_SHRUNK);
    assert_int_equal(sft_read_bytes(file, UINT64_MAX, buffer, 2, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(truncate(temp_path("file"), (off_t)f.data + 2), 0);
    assert_int_equal(sft_read_into(file, a, buffer, 3, &err), SFT_IO_SHRUNK);
    assert_int_equal(err.offset, f.data + 2);
    assert_int_equal(err.tensor_len, 1);
    sft_close(file);
    free_file(&f);
}

/* ── Many ── */

#define MANY 200

typedef struct many {
    test_file f;
    sft_read reads[MANY];
    unsigned char *dst;
    uint64_t total;
} many;

/* Tensors of growing sizes; with apart set the destinations leave a byte between them. */
static void many_make(many *m, sft_file **file, test_source *s, size_t unit, bool apart) {
    static char header[MANY * 80];
    size_t n = 0, at = 0;
    n += (size_t)snprintf(header, sizeof header, "{");
    for (size_t i = 0; i < MANY; i++) {
        size_t len = i % 7 * unit;
        n += (size_t)snprintf(header + n, sizeof header - n,
                              "%s\"t%zu\":{\"dtype\":\"U8\",\"shape\":[%zu],"
                              "\"data_offsets\":[%zu,%zu]}",
                              i ? "," : "", i, len, at, at + len);
        at += len;
    }
    snprintf(header + n, sizeof header - n, "}");
    m->f = make_file(header, NULL, at);
    m->total = at;
    m->dst = calloc(at + MANY, 1);
    *s = make_source(&m->f);
    assert_int_equal(sft_open_source(source_of(s, m->f.len), NULL, file, NULL), SFT_OK);
    size_t to = 0;
    for (size_t i = 0; i < MANY; i++) {
        const sft_tensor *t = sft_file_tensor_at(*file, i);
        m->reads[(i * 77) % MANY] = (sft_read){ t, m->dst + to, (size_t)(t->end - t->begin) };
        to += (size_t)(t->end - t->begin) + apart;
    }
    s->reads = 0;
    s->read_bytes = 0;
}

static void many_check(const many *m) {
    for (size_t i = 0; i < MANY; i++)
        assert_memory_equal(m->reads[i].dst, m->f.bytes + m->reads[i].tensor->offset,
                            m->reads[i].len);
}

static void many_free(many *m, sft_file *file) {
    sft_close(file);
    free_file(&m->f);
    free(m->dst);
}

static void neighbours_are_one_read(void **state) {
    (void)state;
    many m;
    test_source s;
    sft_file *file;
    many_make(&m, &file, &s, 10, false);
    assert_int_equal(sft_read_many(file, m.reads, MANY, NULL, NULL), SFT_OK);
    many_check(&m);
    assert_int_equal(s.reads, 1);
    assert_int_equal(s.read_bytes, m.total);
    many_free(&m, file);
    many_make(&m, &file, &s, 10, true);
    assert_int_equal(sft_read_many(file, m.reads, MANY, NULL, NULL), SFT_OK);
    many_check(&m);
    assert_int_equal(s.reads, MANY - (MANY + 6) / 7); /* all but those without bytes */
    assert_int_equal(s.read_bytes, m.total);
    many_free(&m, file);
}

typedef struct ticks {
    unsigned calls, stop_on;
    uint64_t last, total, widest;
} ticks;

static bool tick(void *ctx, uint64_t done, uint64_t total) {
    ticks *t = ctx;
    assert_true(done >= t->last);
    if (done - t->last > t->widest) t->widest = done - t->last;
    t->last = done;
    t->total = total;
    return ++t->calls != t->stop_on;
}

static void threads_and_ticks(void **state) {
    (void)state;
    for (uint32_t threads = 0; threads <= 9; threads++) {
        many m;
        test_source s;
        sft_file *file;
        ticks t = { 0 };
        sft_job job = { sizeof job, tick, &t, threads };
        many_make(&m, &file, &s, 100000, threads % 2);
        assert_int_equal(sft_read_many(file, m.reads, MANY, &job, NULL), SFT_OK);
        many_check(&m);
        assert_int_equal(t.last, m.total);
        assert_int_equal(t.total, m.total);
        assert_true(t.calls >= (threads == 1 ? m.total >> 23 : 2));
        if (threads == 1) assert_true(t.widest <= 8 << 20);
        assert_int_equal(s.read_bytes, m.total);
        many_free(&m, file);
    }
}

static void a_tick_stops_all(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads += 3)
        for (unsigned stop = 1; stop <= (threads == 1 ? 3 : 2); stop++) {
            many m;
            test_source s;
            sft_file *file;
            ticks t = { 0, stop, 0, 0, 0 };
            sft_job job = { sizeof job, tick, &t, threads };
            sft_error err = SFT_ERROR_INIT;
            many_make(&m, &file, &s, 100000, true);
            assert_int_equal(sft_read_many(file, m.reads, MANY, &job, &err), SFT_CANCELLED);
            assert_int_equal(err.code, SFT_CANCELLED);
            assert_int_equal(t.calls, stop);
            if (threads == 1) assert_int_equal(s.reads, stop - 1);
            many_free(&m, file);
        }
}

static void a_failed_read_stops_all(void **state) {
    (void)state;
    for (uint32_t threads = 1; threads <= 4; threads++) {
        many m;
        test_source s;
        sft_file *file;
        sft_job job = SFT_JOB_INIT;
        sft_error err = SFT_ERROR_INIT;
        job.threads = threads;
        many_make(&m, &file, &s, 50000, true);
        s.fail_at = sft_file_tensor_at(file, 9)->offset + 3;
        assert_int_equal(sft_read_many(file, m.reads, MANY, &job, &err), SFT_IO_READ);
        assert_int_equal(err.os_errno, 5);
        assert_int_equal(err.tensor_len, 2);
        assert_memory_equal(err.tensor, "t9", 2);
        many_free(&m, file);
    }
}

static void bad_reads(void **state) {
    (void)state;
    test_file f = make_file(THREE, NULL, 11);
    sft_file *file = open_mode(&f, SFT_READ);
    unsigned char buffer[8];
    sft_read reads[] = { { sft_file_tensor_at(file, 2), buffer, 8 }, { NULL, buffer, 3 } };
    assert_int_equal(sft_read_many(file, reads, 2, NULL, NULL), SFT_BAD_ARGUMENT);
    reads[1] = (sft_read){ sft_file_tensor_at(file, 0), buffer, 4 };
    assert_int_equal(sft_read_many(file, reads, 2, NULL, NULL), SFT_BUFFER_SIZE);
    assert_int_equal(sft_read_many(file, NULL, 0, NULL, NULL), SFT_OK);
    assert_int_equal(sft_read_many(file, NULL, 1, NULL, NULL), SFT_BAD_ARGUMENT);
    sft_close(file);
    free_file(&f);
}

/* ── Slices ── */

static uint64_t view_lcg = 99;
static uint64_t below(uint64_t n) {
    view_lcg = view_lcg * 6364136223846793005u + 1442695040888963407u;
    return (view_lcg >> 33) % n;
}

/* Packed runs, one memcpy each: the definition. */
static size_t slice_slowly(const test_file *f, const sft_tensor *t, const sft_slice *slice,
                           unsigned char *out) {
    sft_runs runs;
    sft_run run;
    size_t n = 0;
    assert_int_equal(sft_runs_begin(t, slice, &runs, NULL), SFT_OK);
    while (sft_runs_next(&runs, &run)) {
        memcpy(out + n, f->bytes + t->offset + run.offset, (size_t)run.len);
        n += (size_t)run.len;
    }
    return n;
}

static sft_slice_part slice_part(uint64_t dim) {
    sft_slice_part p = { .kind = SFT_SLICE_PART_RANGE };
    if (below(4) == 0) return p;
    if (below(4) == 0) {
        p.kind = SFT_SLICE_PART_INDEX;
        p.value = (int64_t)below(dim);
        return p;
    }
    p.has_start = p.has_stop = p.has_step = true;
    p.start = (int64_t)below(dim);
    p.stop = (int64_t)below(dim + 1);
    p.step = 1 + (int64_t)below(dim / 4 + 2);
    if (p.start > p.stop) p.step = -p.step;
    return p;
}

static void slices_everywhere(void **state) {
    (void)state;
    static const struct {
        const char *dtype;
        uint64_t bytes, dims[3];
    } rows[] = { { "U8", 1, { 50, 70, 300 } }, { "F16", 2, { 3, 900, 200 } },
                 { "F32", 4, { 2, 3, 60000 } }, { "F64", 8, { 7, 11, 3000 } },
                 { "U8", 1, { 1000, 1000, 1 } }, { "F64", 8, { 30, 500, 2 } },
                 { "C64", 8, { 40, 1, 2000 } }, { "F32", 4, { 40, 30, 700 } },
                 { "U16", 2, { 2, 70, 4000 } } };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        char header[256];
        uint64_t size = rows[r].bytes * rows[r].dims[0] * rows[r].dims[1] * rows[r].dims[2];
        snprintf(header, sizeof header,
                 "{\"pad\":{\"dtype\":\"U8\",\"shape\":[3],\"data_offsets\":[0,3]},"
                 "\"t\":{\"dtype\":\"%s\",\"shape\":[%d,%d,%d],\"data_offsets\":[3,%d]}}",
                 rows[r].dtype, (int)rows[r].dims[0], (int)rows[r].dims[1],
                 (int)rows[r].dims[2], (int)(3 + size));
        test_file f = make_file(header, NULL, 3 + size);
        for (size_t i = 0; i < f.len - f.data; i++)
            f.bytes[f.data + i] = (unsigned char)(i * 2654435761u >> 13);
        test_source s = make_source(&f);
        sft_file *memory, *source, *disk;
        temp_write("slices", f.bytes, f.len);
        assert_int_equal(sft_open_memory(f.bytes, f.len, NULL, &memory, NULL), SFT_OK);
        assert_int_equal(sft_open_source(source_of(&s, f.len), NULL, &source, NULL), SFT_OK);
        assert_int_equal(sft_open(temp_path("slices"), NULL, &disk, NULL), SFT_OK);
        const sft_tensor *t = sft_file_find_cstr(memory, "t");
        const sft_tensor *u = sft_file_find_cstr(source, "t");
        unsigned char *slow = malloc(size + 1), *fast = malloc(size + 1);
        for (int i = 0; i < 60; i++) {
            sft_slice_part parts[3];
            sft_slice slice;
            for (int d = 0; d < 3; d++) parts[d] = slice_part(rows[r].dims[d]);
            assert_int_equal(sft_slice_resolve(t->shape, 3, parts, 3, &slice, NULL), SFT_OK);
            size_t n = slice_slowly(&f, t, &slice, slow);
            memset(fast, 0xA5, size + 1);
            assert_int_equal(sft_slice_read(memory, t, &slice, fast, n, NULL), SFT_OK);
            assert_memory_equal(fast, slow, n);
            assert_int_equal(fast[n], 0xA5);
            memset(fast, 0xA5, size + 1);
            assert_int_equal(sft_slice_read(source, u, &slice, fast, n, NULL), SFT_OK);
            assert_memory_equal(fast, slow, n);
            assert_int_equal(fast[n], 0xA5);
            memset(fast, 0xA5, size + 1);
            assert_int_equal(
                sft_slice_read(disk, sft_file_find_cstr(disk, "t"), &slice, fast, n, NULL), SFT_OK);
            assert_memory_equal(fast, slow, n);
            assert_int_equal(fast[n], 0xA5);
            assert_int_equal(sft_slice_read(source, u, &slice, fast, n + 1, NULL),
                             SFT_BUFFER_SIZE);
        }
        free(slow);
        free(fast);
        sft_close(memory);
        sft_close(source);
        sft_close(disk);
        free_file(&f);
    }
}

/* Text of a slice, the reads it takes, and the most bytes they may move. */
static const struct {
    const char *text;
    unsigned reads;
    uint64_t bytes;
} cost_rows[] = {
    { "[:]", 1, 1000000 },
    { "[10:20]", 1, 10000 },
    { "[5, 7:9]", 1, 2 },
    { "[0:4, ::2]", 1, 4000 },
    { "[::-1, 0]", 4, 999001 },           /* one byte a kilobyte: windows of 256 KiB */
    { "[0:1000:100, 0:10]", 10, 100 },    /* far apart: nothing between is read */
    { "[0:1000:10, 0:10]", 100, 1000 },
    { "[0:3, 998:]", 1, 2002 },           /* near: one read over the gaps */
    { "[3:3]", 0, 0 },
};

static void reads_are_few_and_small(void **state) {
    (void)state;
    test_file f = make_file("{\"t\":{\"dtype\":\"U8\",\"shape\":[1000,1000],"
                            "\"data_offsets\":[0,1000000]}}", NULL, 1000000);
    test_source s = make_source(&f);
    sft_file *file;
    assert_int_equal(sft_open_source(source_of(&s, f.len), NULL, &file, NULL), SFT_OK);
    const sft_tensor *t = sft_file_tensor_at(file, 0);
    unsigned char *out = malloc(1000000), *slow = malloc(1000000);
    for (size_t i = 0; i < sizeof cost_rows / sizeof *cost_rows; i++) {
        sft_slice slice;
        uint64_t n;
        sft_span text = sft_span_cstr(cost_rows[i].text);
        assert_int_equal(sft_slice_parse(t->shape, 2, text, &slice, NULL), SFT_OK);
        assert_int_equal(sft_slice_size(&slice, SFT_U8, NULL, &n, NULL), SFT_OK);
        s.reads = 0;
        s.read_bytes = 0;
        assert_int_equal(sft_slice_read(file, t, &slice, out, n, NULL), SFT_OK);
        assert_int_equal(slice_slowly(&f, t, &slice, slow), n);
        assert_memory_equal(out, slow, n);
        if (s.reads != cost_rows[i].reads || s.read_bytes > cost_rows[i].bytes)
            fail_msg("%s: %u reads of %llu bytes", cost_rows[i].text, s.reads,
                     (unsigned long long)s.read_bytes);
    }
    free(out);
    free(slow);
    sft_close(file);
    free_file(&f);
}

/* Runs of 16 bytes, and of 24: one width with a loop of its own and one without. */
static void wide_elements(void **state) {
    (void)state;
    for (size_t width = 2; width <= 3; width++) {
        char header[128];
        size_t bytes = 8 * width * 40;
        snprintf(header, sizeof header,
                 "{\"t\":{\"dtype\":\"I64\",\"shape\":[40,%zu],\"data_offsets\":[0,%zu]}}",
                 width, bytes);
        test_file f = make_file(header, NULL, bytes);
        sft_file *file;
        sft_slice slice;
        unsigned char fast[8 * 3 * 40], slow[8 * 3 * 40];
        assert_int_equal(sft_open_memory(f.bytes, f.len, NULL, &file, NULL), SFT_OK);
        const sft_tensor *t = sft_file_tensor_at(file, 0);
        assert_int_equal(sft_slice_parse(t->shape, 2, sft_span_cstr("::-3"), &slice, NULL), SFT_OK);
        size_t n = slice_slowly(&f, t, &slice, slow);
        assert_int_equal(n, 14 * 8 * width);
        assert_int_equal(sft_slice_read(file, t, &slice, fast, n, NULL), SFT_OK);
        assert_memory_equal(fast, slow, n);
        sft_close(file);
        free_file(&f);
    }
}

static void a_pipe_may_lack_data(void **state) {
    (void)state;
    test_file f = make_file(THREE, NULL, 11);
    test_source s = make_source(&f);
    sft_file *file;
    sft_error err = SFT_ERROR_INIT;
    unsigned char buffer[8];
    s.forward_only = true;
    s.ends_at = f.len - 1;
    assert_int_equal(sft_open_source(source_of(&s, SFT_SIZE_UNKNOWN), NULL, &file, NULL), SFT_OK);
    assert_int_equal(sft_read_into(file, sft_file_tensor_at(file, 0), buffer, 3, NULL), SFT_OK);
    assert_int_equal(sft_read_into(file, sft_file_tensor_at(file, 2), buffer, 8, &err),
                     SFT_DATA_TRUNCATED);
    assert_int_equal(err.code, SFT_DATA_TRUNCATED);
    assert_int_equal(err.hint, SFT_HINT_DOWNLOAD_AGAIN);
    assert_int_equal(err.offset, f.len - 1);
    assert_int_equal(err.tensor[0], 'c');
    sft_close(file);
    free_file(&f);
}

static void sub_byte_slices(void **state) {
    (void)state;
    test_file f = make_file("{\"t\":{\"dtype\":\"F4\",\"shape\":[3,4],\"data_offsets\":[0,6]}}",
                            "\x10\x32\x54\x76\x98\xBA", 6);
    sft_file *file;
    sft_slice slice;
    unsigned char out[4];
    assert_int_equal(sft_open_memory(f.bytes, f.len, NULL, &file, NULL), SFT_OK);
    const sft_tensor *t = sft_file_tensor_at(file, 0);
    assert_int_equal(sft_slice_parse(t->shape, 2, sft_span_cstr("::2, 2:"), &slice, NULL), SFT_OK);
    assert_int_equal(sft_slice_read(file, t, &slice, out, 2, NULL), SFT_OK);
    assert_memory_equal(out, "\x32\xBA", 2);
    assert_int_equal(sft_slice_parse(t->shape, 2, sft_span_cstr(":, 1:3"), &slice, NULL), SFT_OK);
    assert_int_equal(sft_slice_read(file, t, &slice, out, 3, NULL), SFT_SLICE_PARTIAL_BYTE);
    sft_close(file);
    free_file(&f);
}

/* The n-th allocation after opening fails, for every n. */
static void every_allocation_of_a_read_fails(void **state) {
    (void)state;
    test_file f = make_file(THREE, NULL, 11);
    test_source s = make_source(&f);
    test_memory m = { 0 };
    sft_allocator alloc = { resize_test_memory, &m };
    sft_open_options o = SFT_OPEN_OPTIONS_INIT;
    sft_file *file;
    o.alloc = &alloc;
    assert_int_equal(sft_open_source(source_of(&s, f.len), &o, &file, NULL), SFT_OK);
    size_t held = m.held;
    const sft_tensor *t = sft_file_find_cstr(file, "a");
    unsigned char buffer[8];
    sft_loan loan;
    sft_slice slice;
    sft_read read = { t, buffer, 3 };
    assert_int_equal(sft_slice_parse(t->shape, 1, sft_span_cstr("::2"), &slice, NULL), SFT_OK);
    m.calls = 0;
    m.fail_on = 1;
    assert_int_equal(sft_borrow(file, t, &loan, NULL), SFT_OUT_OF_MEMORY);
    assert_null(loan.data);
    m.calls = 0;
    assert_int_equal(sft_read_many(file, &read, 1, NULL, NULL), SFT_OUT_OF_MEMORY);
    m.calls = 0;
    assert_int_equal(sft_slice_read(file, t, &slice, buffer, 2, NULL), SFT_OUT_OF_MEMORY);
    m.fail_on = 0;
    assert_int_equal(sft_slice_read(file, t, &slice, buffer, 2, NULL), SFT_OK);
    s.fail_at = t->offset;
    assert_int_equal(sft_borrow(file, t, &loan, NULL), SFT_IO_READ);
    assert_int_equal(sft_slice_read(file, t, &slice, buffer, 2, NULL), SFT_IO_READ);
    assert_int_equal(m.held, held);
    sft_close(file);
    assert_int_equal(m.held, 0);
    free_file(&f);
}

/* Opened for its header alone, a file may lack the data: by every way the same answer. */
static void absent_data(void **state) {
    (void)state;
    test_file f = make_file(THREE, NULL, 11);
    for (int mode = SFT_READ; mode <= SFT_MAP; mode++) {
        sft_open_options o = SFT_OPEN_OPTIONS_INIT;
        sft_file *file;
        sft_loan loan;
        sft_slice slice;
        const void *view;
        unsigned char buffer[8];
        o.header_only = true;
        o.mode = (sft_mode)mode;
        temp_write("cut", f.bytes, f.data + 3);
        assert_int_equal(sft_open(temp_path("cut"), &o, &file, NULL), SFT_OK);
        const sft_tensor *a = sft_file_find_cstr(file, "a"), *c = sft_file_find_cstr(file, "c");
        sft_error err = SFT_ERROR_INIT;
        assert_int_equal(sft_read_into(file, a, buffer, 3, NULL), SFT_OK);
        assert_int_equal(sft_read_into(file, c, buffer, 8, &err), SFT_DATA_TRUNCATED);
        assert_int_equal(err.offset, c->offset);
        assert_memory_equal(err.tensor, "c", 1);
        assert_int_equal(sft_borrow(file, c, &loan, NULL), SFT_DATA_TRUNCATED);
        assert_null(loan.data);
        assert_int_equal(sft_view(file, c, &view, NULL),
                         mode == SFT_READ ? SFT_NOT_MAPPED : SFT_DATA_TRUNCATED);
        assert_int_equal(sft_slice_parse(c->shape, 1, sft_span_cstr("1"), &slice, NULL), SFT_OK);
        assert_int_equal(sft_slice_read(file, c, &slice, buffer, 4, NULL), SFT_DATA_TRUNCATED);
        assert_int_equal(sft_read_bytes(file, c->offset - 1, buffer, 1, NULL), SFT_OK);
        assert_int_equal(sft_read_bytes(file, c->offset - 1, buffer, 2, NULL), SFT_IO_SHRUNK);
        sft_close(file);
        /* The very first byte of the data lies beyond the end. */
        temp_write("cut", f.bytes, f.data);
        assert_int_equal(sft_open(temp_path("cut"), &o, &file, NULL), SFT_OK);
        c = sft_file_find_cstr(file, "c");
        assert_int_equal(sft_read_into(file, c, buffer, 8, NULL), SFT_DATA_TRUNCATED);
        sft_close(file);
    }
    free_file(&f);
}

static void nothing_given(void **state) {
    (void)state;
    test_file f = make_file(THREE, NULL, 11);
    sft_file *file = open_mode(&f, SFT_MAP_COW);
    const sft_tensor *a = sft_file_find_cstr(file, "a");
    const void *view;
    void *writable;
    char buffer[3];
    sft_loan loan = { buffer, 3, NULL };
    sft_slice slice = { 1, 0, { { 0, 3, 1 } } };
    const sft_code bad = SFT_BAD_ARGUMENT;
    assert_int_equal(sft_view(NULL, a, &view, NULL), bad);
    assert_int_equal(sft_view(file, NULL, &view, NULL), bad);
    assert_int_equal(sft_view(file, a, NULL, NULL), bad);
    assert_int_equal(sft_view_writable(NULL, a, &writable, NULL), bad);
    assert_int_equal(sft_view_writable(file, NULL, &writable, NULL), bad);
    assert_int_equal(sft_view_writable(file, a, NULL, NULL), bad);
    assert_int_equal(sft_borrow(NULL, a, &loan, NULL), bad);
    assert_int_equal(sft_borrow(file, NULL, &loan, NULL), bad);
    assert_int_equal(sft_borrow(file, a, NULL, NULL), bad);
    sft_return(file, NULL);
    sft_return(NULL, &loan);
    assert_int_equal(sft_read_into(NULL, a, buffer, 3, NULL), bad);
    assert_int_equal(sft_read_into(file, NULL, buffer, 3, NULL), bad);
    assert_int_equal(sft_read_bytes(NULL, 0, buffer, 3, NULL), bad);
    assert_int_equal(sft_read_bytes(file, 0, NULL, 3, NULL), bad);
    assert_int_equal(sft_read_many(NULL, NULL, 0, NULL, NULL), bad);
    assert_int_equal(sft_slice_read(NULL, a, &slice, buffer, 3, NULL), bad);
    assert_int_equal(sft_slice_read(file, NULL, &slice, buffer, 3, NULL), bad);
    assert_int_equal(sft_slice_read(file, a, NULL, buffer, 3, NULL), bad);
    assert_int_equal(sft_slice_read(file, a, &slice, NULL, 3, NULL), bad);
    slice.range[0].count = 0;
    assert_int_equal(sft_slice_read(file, a, &slice, NULL, 0, NULL), SFT_OK);
    sft_close(file);
    free_file(&f);
}

/* More threads than there may be; and one alone where the source only goes forward. */
static void too_many_threads(void **state) {
    (void)state;
    test_file f = make_file(THREE, NULL, 11);
    test_source s = make_source(&f);
    sft_job job = SFT_JOB_INIT;
    sft_file *file;
    unsigned char buffer[11];
    job.threads = 1000;
    s.forward_only = true;
    assert_int_equal(sft_open_source(source_of(&s, SFT_SIZE_UNKNOWN), NULL, &file, NULL), SFT_OK);
    const sft_tensor *a = sft_file_find_cstr(file, "a"), *c = sft_file_find_cstr(file, "c");
    const sft_read reads[] = { { c, buffer + 3, 8 }, { a, buffer, 3 } };
    assert_int_equal(sft_read_many(file, reads, 2, &job, NULL), SFT_OK);
    assert_memory_equal(buffer, f.bytes + f.data, 11);
    memset(buffer, 0, sizeof buffer);
    sft_close(file);
    file = open_mode(&f, SFT_READ);
    const sft_read again[] = { { sft_file_find_cstr(file, "c"), buffer + 3, 8 },
                               { sft_file_find_cstr(file, "a"), buffer, 3 } };
    assert_int_equal(sft_read_many(file, again, 2, &job, NULL), SFT_OK);
    assert_memory_equal(buffer, f.bytes + f.data, 11);
    sft_close(file);
    free_file(&f);
}

/* Sums that no memory holds are refused before a byte is read. */
static void impossible_reads(void **state) {
    (void)state;
    test_file f = make_file("{\"a\":{\"dtype\":\"U8\",\"shape\":[2305843009213693951],"
                            "\"data_offsets\":[0,2305843009213693951]}}", NULL, 0);
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_file *file;
    sft_read reads[9];
    char byte;
    options.header_only = true;
    assert_int_equal(sft_open_memory(f.bytes, f.len, &options, &file, NULL), SFT_OK);
    for (size_t i = 0; i < 9; i++)
        reads[i] = (sft_read){ sft_file_tensor_at(file, 0), &byte, (size_t)2305843009213693951 };
    if (sizeof(size_t) > sizeof(uint32_t)) {
        assert_int_equal(sft_read_many(file, reads, 9, NULL, NULL), SFT_SIZE_OVERFLOW);
        assert_int_equal(sft_read_many(file, reads, SIZE_MAX, NULL, NULL), SFT_BAD_ARGUMENT);
    }
    sft_close(file);
    free_file(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(views),
        cmocka_unit_test(private_changes_stay_private),
        cmocka_unit_test(loans),
        cmocka_unit_test(tensors_of_another_file),
        cmocka_unit_test(copies),
        cmocka_unit_test(neighbours_are_one_read),
        cmocka_unit_test(threads_and_ticks),
        cmocka_unit_test(a_tick_stops_all),
        cmocka_unit_test(a_failed_read_stops_all),
        cmocka_unit_test(bad_reads),
        cmocka_unit_test(slices_everywhere),
        cmocka_unit_test(reads_are_few_and_small),
        cmocka_unit_test(wide_elements),
        cmocka_unit_test(a_pipe_may_lack_data),
        cmocka_unit_test(sub_byte_slices),
        cmocka_unit_test(every_allocation_of_a_read_fails),
        cmocka_unit_test(absent_data),
        cmocka_unit_test(nothing_given),
        cmocka_unit_test(too_many_threads),
        cmocka_unit_test(impossible_reads),
    };
    return cmocka_run_group_tests(tests, temp_dir_make, temp_dir_remove);
}
