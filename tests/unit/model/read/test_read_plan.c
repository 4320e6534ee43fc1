/* Plans into memory: parts of every form against sft_read_into and sft_slice_read, what is read
 * for them, what is refused. */
#define _GNU_SOURCE
#include "os/os.h"
#include "unit/read_case.h"

#include <unistd.h>

static temp_folder folder;

static int folder_begin(void **state) {
    (void)state;
    temp_begin(&folder);
    return 0;
}

static int folder_end(void **state) {
    (void)state;
    temp_end(&folder);
    return 0;
}

static void run_in_memory(read_model *m, const sft_read_plan_options *options, uint32_t threads) {
    sft_read_plan *plan;
    sft_error err = SFT_ERROR_INIT;
    sft_job job = SFT_JOB_INIT;
    job.threads = threads;
    for (size_t b = 0; b < m->block_count; b++) m->blocks[b].base = m->found[b];
    read_wipe(m);
    assert_int_equal(sft_read_plan_new(m->parts, m->count, m->blocks, m->block_count, options,
                                       &plan, &err), SFT_OK);
    if (sft_read_plan_run(plan, &job, &err)) fail_msg("%s", err.message);
    for (size_t b = 0; b < m->block_count; b++)
        if (memcmp(m->found[b], m->expected[b], (size_t)m->blocks[b].bytes + 1) != 0)
            fail_msg("block %zu differs", b);
    sft_read_plan_free(plan);
    for (size_t b = 0; b < m->block_count; b++) m->blocks[b].base = NULL;
}

static void run_all_ways(read_model *m) {
    sft_read_plan_options options = SFT_READ_PLAN_OPTIONS_INIT;
    for (int direct = SFT_READ_DIRECT_AUTO; direct <= SFT_READ_DIRECT_ALWAYS; direct++)
        for (uint32_t threads = 1; threads <= 4; threads += 3) {
            options.direct = (sft_read_direct)direct;
            run_in_memory(m, &options, threads);
        }
    options.max_gap = 1;
    options.max_over_read = 100;
    run_in_memory(m, &options, 2);
}

/* The file's bytes in memory, from an odd address on. */
static sft_file *open_in_memory(const char *path, char **memory) {
    const size_t most = (size_t)64 << 20;
    sft_file *file = NULL;
    *memory = malloc(most + 1);
    FILE *stream = fopen(path, "rb");
    assert_true(*memory && stream);
    size_t len = fread(*memory + 1, 1, most, stream);
    assert_true(len > 0 && len < most && fclose(stream) == 0);
    assert_int_equal(sft_open_memory(*memory + 1, len, NULL, &file, NULL), SFT_OK);
    return file;
}

/* ── What is read ── */

static void test_whole(void **state) {
    static const read_shape shapes[] = { { 1, 1 }, { 100, 3 }, { 0, 5 }, { 3000, 4001 },
                                         { 7, 7 },  { 1, 70000 }, { 1, 0 }, { 9, 12345 } };
    read_model *m = read_model_new();
    const char *path = read_file_new(&folder, "whole", shapes, 8);
    sft_file *file = read_file_open(path, SFT_READ);
    (void)state;
    for (size_t i = 8; i-- > 0;) read_add(m, file, i, NULL, i % 3, i * 20000000);
    m->block_count = 3;
    read_finish(m);
    run_all_ways(m);
    read_model_free(m);
    sft_close(file);
}

/* So much that it is copied past the caches. */
static void test_large_memory(void **state) {
    static const read_shape shapes[] = { { 3000, 4001 }, { 1, 17001 }, { 33, 1 }, { 1, 3000000 },
                                         { 2501, 4000 }, { 1, 9 }, { 5000, 2003 } };
    char *memory;
    const char *path = read_file_new(&folder, "large", shapes, 7);
    sft_file *file = open_in_memory(path, &memory);
    read_model *m = read_model_new();
    uint64_t at = 3;
    (void)state;
    for (size_t i = 7; i-- > 0;) at += read_part_bytes(read_add(m, file, i, NULL, 0, at)) + i;
    at += read_part_bytes(read_add(m, file, 0, ":, 1:", 0, at));
    read_finish(m);
    assert_true(at > (uint64_t)32 << 20);
    run_in_memory(m, NULL, 1);
    run_in_memory(m, NULL, 4);
    read_model_free(m);
    sft_close(file);
    free(memory);
}

static void test_slices(void **state) {
    static const char *const slices[] = {
        "::2", "::-1", ":, ::2", ":, ::-3", "5:900:7, 10:2000:19", ":, 100:600", ":, -1",
        "::-1, ::-1", "3", "500:, :1", "::400, ::1000", ":, :1990", "10:10", "::-7, 3:1900:2",
        "1:3, 5:9", ":, 4:2000:1999" };
    static const read_shape shapes[] = { { 1000, 2001 }, { 3, 700001 } };
    const char *path = read_file_new(&folder, "slices", shapes, 2);
    static const sft_mode modes[] = { SFT_READ, SFT_MAP, SFT_MAP_COW };
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        sft_file *file = read_file_open(path, modes[i]);
        read_model *m = read_model_new();
        uint64_t at = 5;
        for (size_t s = 0; s < sizeof slices / sizeof *slices; s++)
            at += read_part_bytes(read_add(m, file, 0, slices[s], 0, at)) + s;
        at += read_part_bytes(read_add(m, file, 1, "::2, 1:", 0, at));
        at += read_part_bytes(read_add(m, file, 1, "::-1, :699000", 0, at));
        read_finish(m);
        run_all_ways(m);
        read_model_free(m);
        sft_close(file);
    }
}

/* Many tensors of all sizes from three files, in blocks in another order than in the files, the
 * same tensor twice. */
static void test_many(void **state) {
    enum { COUNT = 1500 };
    static read_shape shapes[COUNT];
    sft_file *files[3];
    read_model *m = read_model_new();
    uint64_t at[5] = { 0 };
    (void)state;
    for (size_t f = 0; f < 3; f++) {
        char name[16];
        snprintf(name, sizeof name, "many%zu", f);
        for (size_t i = 0; i < COUNT; i++)
            shapes[i] = (read_shape){ 1, read_below(i % 100 == 0 ? 300000 : 3000) };
        files[f] = read_file_open(read_file_new(&folder, name, shapes, COUNT), SFT_READ);
    }
    for (size_t i = 0; i < 4000; i++) {
        size_t block = read_below(5), f = read_below(3);
        at[block] += read_below(3) ? 0 : read_below(1000);
        at[block] += read_part_bytes(read_add(m, files[f], read_below(COUNT), NULL, block,
                                              at[block]));
    }
    read_finish(m);
    run_all_ways(m);
    read_model_free(m);
    for (size_t f = 0; f < 3; f++) sft_close(files[f]);
}

/* ── How much memory plans take ── */

typedef struct memory_count {
    size_t now, most, calls;
} memory_count;

static void *count_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    memory_count *count = ctx;
    count->calls++;
    count->now += new_size - (ptr ? old_size : 0);
    if (count->now > count->most) count->most = count->now;
    if (new_size > 0) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

/* 700,000 parts of whole tensors and of slices, in no order: bytes in proportion, and no
 * allocation for each. */
static void test_count(void **state) {
    enum { COUNT = 700000 };
    static const read_shape shapes[] = { { 30, 4 }, { 5, 5 }, { 1, 3 } };
    sft_file *file = read_file_open(read_file_new(&folder, "count", shapes, 3), SFT_READ);
    sft_read_part *parts = calloc(COUNT, sizeof *parts);
    sft_read_plan_options options = SFT_READ_PLAN_OPTIONS_INIT;
    memory_count count = { 0 };
    sft_allocator alloc = { count_resize, &count };
    sft_read_block block = { NULL, (COUNT + 1) * (uint64_t)120 };
    sft_slice slice;
    sft_read_plan *plan;
    uint64_t wanted = 0;
    (void)state;
    temp_must(parts != NULL, "parts");
    assert_int_equal(sft_slice_parse((const uint64_t[]){ 5, 5 }, 2, sft_span_cstr("::2, 1:3"),
                                     &slice, NULL), SFT_OK);
    for (size_t i = 0; i < COUNT; i++) {
        size_t t = i % 3;
        parts[i] = (sft_read_part){ file, sft_file_tensor_at(file, t), t == 1 ? &slice : NULL, 0,
                                    (COUNT - i) * (uint64_t)120 };
        wanted += read_part_bytes(&parts[i]);
    }
    options.alloc = &alloc;
    assert_int_equal(sft_read_plan_new(parts, COUNT, &block, 1, &options, &plan, NULL), SFT_OK);
    assert_true(sft_read_plan_wanted(plan) == wanted);
    assert_true(count.most < COUNT * (size_t)220);
    assert_true(count.calls < 1000);
    sft_read_plan_free(plan);
    assert_int_equal(count.now, 0);
    free(parts);
    sft_close(file);
}

/* ── How much is read ── */

static size_t source_reads;
static uint64_t source_bytes;

static sft_code counting_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                              sft_error *err) {
    source_reads++;
    source_bytes += len;
    return sft_source_read(ctx, offset, into, len, got, err);
}

static const sft_source_vtable counting_vtable = {
    .size = sizeof(sft_source_vtable), .read = counting_read
};

/* ── What is announced ── */

static sft_run announced[4096];
static size_t announced_count;

static void remember_runs(void *ctx, const sft_run *runs, size_t count) {
    (void)ctx;
    for (size_t i = 0; i < count; i++) announced[announced_count++] = runs[i];
    assert_true(announced_count < 4096);
}

static sft_code announced_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                               sft_error *err) {
    bool inside = announced_count == 0; /* the header, before any plan */
    for (size_t i = 0; i < announced_count; i++)
        inside |= announced[i].offset <= offset
                  && offset + len <= announced[i].offset + announced[i].len;
    assert_true(inside);
    return sft_source_read(ctx, offset, into, len, got, err);
}

/* Sources are told of every byte that is read of tensors and slices, before it is read. */
static void test_announced(void **state) {
    static const sft_source_vtable vtable = {
    .size = sizeof vtable, .read = announced_read, .expect = remember_runs
};
    static const read_shape shapes[] = { { 300, 20000 }, { 1, 50000 } };
    static const char *const slices[] = { NULL, "::-2", ":, 30:900", ":, ::-3", "7:9, 5", NULL };
    sft_file *file, *plain;
    plain = read_file_open(read_file_new(&folder, "announced", shapes, 2), SFT_READ);
    sft_source whole = sft_file_source(plain);
    (void)state;
    for (size_t s = 0; s < 6; s++) {
        sft_source source = { &whole, &vtable, sft_file_size(plain), NULL, false };
        announced_count = 0;
        assert_int_equal(sft_open_source(source, NULL, &file, NULL), SFT_OK);
        read_model *m = read_model_new();
        read_add(m, plain, s == 5, slices[s], 0, 0);
        read_finish(m);
        m->parts[0].file = file;
        m->parts[0].tensor = sft_file_tensor_at(file, s == 5);
        run_in_memory(m, NULL, 1);
        assert_true(announced_count > 0);
        read_model_free(m);
        sft_close(file);
    }
    sft_close(plain);
}

/* Total is an upper bound, and within the limit. */
static void bounds_of(const char *slice, uint64_t most, size_t reads) {
    static const read_shape shapes[] = { { 400, 40000 } };
    sft_read_plan *plan;
    sft_file *file, *plain = read_file_open(read_file_new(&folder, "bounds", shapes, 1), SFT_READ);
    sft_source whole = sft_file_source(plain);
    sft_source source = { &whole, &counting_vtable, sft_file_size(plain), NULL, false };
    assert_int_equal(sft_open_source(source, NULL, &file, NULL), SFT_OK);
    read_model *m = read_model_new();
    read_add(m, file, 0, slice, 0, 0);
    read_finish(m);
    m->blocks[0].base = m->found[0];
    assert_int_equal(sft_read_plan_new(m->parts, 1, m->blocks, 1, NULL, &plan, NULL), SFT_OK);
    source_reads = 0;
    source_bytes = 0;
    assert_int_equal(sft_read_plan_run(plan, NULL, NULL), SFT_OK);
    assert_true(sft_read_plan_wanted(plan) == m->blocks[0].bytes);
    assert_true(source_bytes <= sft_read_plan_total(plan));
    assert_true(sft_read_plan_total(plan) <= most);
    assert_true(source_reads <= reads);
    read_compare(m);
    sft_read_plan_free(plan);
    read_model_free(m);
    sft_close(file);
    sft_close(plain);
}

static void test_bounds(void **state) {
    (void)state;
    bounds_of("100:200", 100 * 40000, 4);
    bounds_of(":, :20000", 400 * 20000, 400);     /* gaps of 20,000 for 20,000: one read a row */
    bounds_of(":, :36000", 400 * 40000, 80);      /* gaps of 4,000: read along */
    bounds_of(":, :34000", 400 * 40000, 80);      /* 40,000 for 34,000 is within 1.25 */
    bounds_of(":, ::2", 400 * 40000, 80);
    bounds_of(":, :10", 400 * 10, 400);
    bounds_of("::2, 1000:2000", 200 * 1000, 200);
}

/* ── What is refused ── */

static void expect_refusal(const sft_read_part *parts, size_t count, const sft_read_block *blocks,
                           size_t block_count, const sft_read_plan_options *options,
                           sft_code want) {
    sft_read_plan *plan = (sft_read_plan *)&plan;
    sft_error err = SFT_ERROR_INIT;
    assert_int_equal(sft_read_plan_new(parts, count, blocks, block_count, options, &plan, &err),
                     want);
    assert_null(plan);
    assert_true(err.code == want && err.message[0]);
}

static void test_refused(void **state) {
    static const read_shape shapes[] = { { 2, 3 }, { 4, 5 } };
    const char *path = read_file_new(&folder, "refused", shapes, 2);
    sft_file *file = read_file_open(path, SFT_READ), *other = read_file_open(path, SFT_READ);
    sft_read_block block = { NULL, 26 };
    sft_read_part parts[] = { { file, sft_file_tensor_at(file, 0), NULL, 0, 20 },
                              { file, sft_file_tensor_at(file, 1), NULL, 0, 0 } };
    sft_read_plan_options options = SFT_READ_PLAN_OPTIONS_INIT;
    sft_slice slice = { .rank = 1 };
    (void)state;
    sft_read_plan *plan;
    assert_int_equal(sft_read_plan_new(parts, 2, &block, 1, NULL, &plan, NULL), SFT_OK);
    assert_int_equal(sft_read_plan_run(plan, NULL, NULL), SFT_BAD_ARGUMENT);
    sft_read_plan_free(plan);
    parts[1].at = 1; /* overlaps */
    expect_refusal(parts, 2, &block, 1, NULL, SFT_BAD_ARGUMENT);
    parts[1].at = 0;
    parts[0].at = 21; /* leaves the block */
    expect_refusal(parts, 2, &block, 1, NULL, SFT_BAD_ARGUMENT);
    parts[0].at = UINT64_MAX;
    expect_refusal(parts, 2, &block, 1, NULL, SFT_BAD_ARGUMENT);
    parts[0].at = 20;
    parts[0].block = 1;
    expect_refusal(parts, 2, &block, 1, NULL, SFT_BAD_ARGUMENT);
    parts[0].block = 0;
    parts[0].file = other; /* whose tensor it is not */
    expect_refusal(parts, 2, &block, 1, NULL, SFT_BAD_ARGUMENT);
    parts[0].file = NULL;
    expect_refusal(parts, 2, &block, 1, NULL, SFT_BAD_ARGUMENT);
    parts[0].file = file;
    parts[0].slice = &slice;
    expect_refusal(parts, 2, &block, 1, NULL, SFT_SLICE_RANK);
    parts[0].slice = NULL;
    expect_refusal(NULL, 2, &block, 1, NULL, SFT_BAD_ARGUMENT);
    expect_refusal(parts, 2, NULL, 1, NULL, SFT_BAD_ARGUMENT);
    options.slot_bytes = 65536 + 1;
    expect_refusal(parts, 2, &block, 1, &options, SFT_BAD_ARGUMENT);
    options.slot_bytes = 4096;
    expect_refusal(parts, 2, &block, 1, &options, SFT_BAD_ARGUMENT);
    options.slot_bytes = 0;
    options.max_over_read = 99;
    expect_refusal(parts, 2, &block, 1, &options, SFT_BAD_ARGUMENT);
    options.max_over_read = 0;
    options.direct = (sft_read_direct)3;
    expect_refusal(parts, 2, &block, 1, &options, SFT_BAD_ARGUMENT);
    assert_int_equal(sft_read_plan_new(parts, 2, &block, 1, NULL, NULL, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_read_plan_run(NULL, NULL, NULL), SFT_BAD_ARGUMENT);
    sft_close(other);
    sft_close(file);
}

static void test_empty(void **state) {
    static const read_shape shapes[] = { { 0, 3 } };
    sft_file *file = read_file_open(read_file_new(&folder, "empty", shapes, 1), SFT_READ);
    sft_read_block block = { NULL, 0 };
    sft_read_part part = { file, sft_file_tensor_at(file, 0), NULL, 0, 0 };
    sft_read_plan *plan;
    (void)state;
    assert_int_equal(sft_read_plan_new(NULL, 0, NULL, 0, NULL, &plan, NULL), SFT_OK);
    assert_int_equal(sft_read_plan_run(plan, NULL, NULL), SFT_OK);
    assert_true(sft_read_plan_wanted(plan) == 0 && sft_read_plan_total(plan) == 0);
    assert_int_equal(sft_read_plan_slot_bytes(plan), 8 << 20);
    sft_read_plan_free(plan);
    assert_int_equal(sft_read_plan_new(&part, 1, &block, 1, NULL, &plan, NULL), SFT_OK);
    sft_read_plan_free(plan);
    sft_read_plan_free(NULL);
    sft_close(file);
}

/* ── Failures ── */

static void test_shrunk(void **state) {
    static const read_shape shapes[] = { { 1, 100 }, { 1, 500 }, { 1, 900000 }, { 1, 300 },
                                         { 1, 300 } };
    (void)state;
    for (int direct = 0; direct <= SFT_READ_DIRECT_ALWAYS; direct++)
        for (size_t t = 0; t < 5; t++) {
            sft_read_plan_options options = SFT_READ_PLAN_OPTIONS_INIT;
            sft_error err = SFT_ERROR_INIT;
            sft_read_plan *plan;
            const char *path = read_file_new(&folder, "shrunk", shapes, 5);
            sft_file *file = read_file_open(path, SFT_READ);
            read_model *m = read_model_new();
            for (size_t i = 0; i < 5; i++) read_add(m, file, i, NULL, i % 2, i * 1000000);
            read_finish(m);
            for (size_t b = 0; b < 2; b++) m->blocks[b].base = m->found[b];
            uint64_t end = sft_file_tensor_at(file, t)->offset + 37;
            options.direct = (sft_read_direct)direct;
            assert_int_equal(sft_read_plan_new(m->parts, m->count, m->blocks, 2, &options, &plan,
                                               NULL), SFT_OK);
            assert_int_equal(truncate(path, (off_t)end), 0);
            assert_int_equal(sft_read_plan_run(plan, NULL, &err), SFT_IO_SHRUNK);
            assert_true(err.offset == end);
            assert_true(err.tensor_len == 2 && err.tensor[1] == (char)('0' + t));
            sft_read_plan_free(plan);
            read_model_free(m);
            sft_close(file);
        }
}

static bool tick_once(void *ctx, uint64_t done, uint64_t total) {
    size_t *left = ctx;
    assert_true(done <= total);
    return (*left)-- > 0;
}

static void test_cancelled(void **state) {
    static const read_shape shapes[] = { { 1, 9000000 } };
    sft_file *file = read_file_open(read_file_new(&folder, "cancelled", shapes, 1), SFT_READ);
    read_model *m = read_model_new();
    sft_read_plan *plan;
    (void)state;
    read_add(m, file, 0, NULL, 0, 0);
    read_finish(m);
    m->blocks[0].base = m->found[0];
    assert_int_equal(sft_read_plan_new(m->parts, 1, m->blocks, 1, NULL, &plan, NULL), SFT_OK);
    for (size_t left = 0; left < 3; left++) {
        size_t ticks = left;
        sft_job job = { sizeof job, tick_once, &ticks, 1 };
        assert_int_equal(sft_read_plan_run(plan, &job, NULL), SFT_CANCELLED);
    }
    size_t many = 1000;
    sft_job job = { sizeof job, tick_once, &many, 3 };
    assert_int_equal(sft_read_plan_run(plan, &job, NULL), SFT_OK);
    assert_true(many < 1000);
    read_compare(m);
    sft_read_plan_free(plan);
    read_model_free(m);
    sft_close(file);
}

typedef struct pipe_writer {
    int fd;
    const char *bytes;
    size_t len;
} pipe_writer;

static void write_pipe(void *ctx) {
    const pipe_writer *w = ctx;
    for (size_t at = 0, put = 1; at < w->len && put > 0; at += put)
        if (sfti_os_write(w->fd, w->bytes + at, w->len - at, &put)) break;
    close(w->fd);
}

/* A pipe is read forward, by one thread, whatever is asked. */
static void test_pipe(void **state) {
    static const read_shape shapes[] = { { 1, 10000 }, { 300, 100 }, { 1, 70000 }, { 1, 3 } };
    sft_file *whole = read_file_open(read_file_new(&folder, "piped", shapes, 4), SFT_READ), *file;
    size_t len = (size_t)sft_file_size(whole);
    char *bytes = malloc(len);
    os_thread thread;
    int ends[2];
    (void)state;
    temp_must(bytes && pipe(ends) == 0, "pipe");
    assert_int_equal(sft_read_bytes(whole, 0, bytes, len, NULL), SFT_OK);
    pipe_writer writer = { ends[1], bytes, len };
    assert_int_equal(sfti_os_thread_start(&thread, write_pipe, &writer), 0);
    assert_int_equal(sft_open_fd(ends[0], NULL, &file, NULL), SFT_OK);
    read_model *m = read_model_new();
    read_add(m, whole, 3, NULL, 0, 0);
    read_add(m, whole, 0, NULL, 0, 1000);
    read_add(m, whole, 1, "::2, 5:60", 0, 500000);
    read_add(m, whole, 2, NULL, 1, 7);
    read_finish(m);
    for (size_t i = 0; i < m->count; i++) {
        m->parts[i].tensor = sft_file_find(file, m->parts[i].tensor->name);
        m->parts[i].file = file;
    }
    run_in_memory(m, NULL, 4);
    read_model_free(m);
    sfti_os_thread_join(&thread);
    free(bytes);
    sft_close(file);
    sft_close(whole);
    assert_int_equal(close(ends[0]), 0);
}

/* A file opened without a look at its end. */
static void test_incomplete(void **state) {
    static const read_shape shapes[] = { { 10, 10 }, { 10, 10 } };
    const char *path = read_file_new(&folder, "incomplete", shapes, 2);
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_file *file;
    sft_slice slice;
    char bytes[100];
    sft_read_block block = { bytes, 100 };
    (void)state;
    sft_file *whole = read_file_open(path, SFT_READ);
    assert_int_equal(truncate(path, (off_t)sft_file_tensor_at(whole, 1)->offset + 50), 0);
    sft_close(whole);
    options.header_only = true;
    assert_int_equal(sft_open(path, &options, &file, NULL), SFT_OK);
    sft_read_part part = { file, sft_file_tensor_at(file, 1), NULL, 0, 0 };
    expect_refusal(&part, 1, &block, 1, NULL, SFT_DATA_TRUNCATED);
    assert_int_equal(sft_slice_parse(part.tensor->shape, 2, sft_span_cstr("4::-1"), &slice, NULL),
                     SFT_OK);
    part.slice = &slice;
    sft_read_plan *plan;
    assert_int_equal(sft_read_plan_new(&part, 1, &block, 1, NULL, &plan, NULL), SFT_OK);
    assert_int_equal(sft_read_plan_run(plan, NULL, NULL), SFT_OK);
    for (size_t i = 0; i < 50; i++)
        assert_int_equal((unsigned char)bytes[i], read_byte(100 + (4 - i / 10) * 10 + i % 10));
    sft_read_plan_free(plan);
    sft_close(file);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole),     cmocka_unit_test(test_slices),
        cmocka_unit_test(test_many),      cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_refused),   cmocka_unit_test(test_empty),
        cmocka_unit_test(test_shrunk),    cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_incomplete), cmocka_unit_test(test_count),
        cmocka_unit_test(test_pipe), cmocka_unit_test(test_announced),
        cmocka_unit_test(test_large_memory),
    };
    return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
