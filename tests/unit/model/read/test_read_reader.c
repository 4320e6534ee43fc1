/* Readers: slots filled by threads for a device that copies late, in another order, and has its
 * slots overwritten as soon as they are given back. */
#define _GNU_SOURCE
#include "os/os.h"
#include "unit/read_case.h"

#include <sys/wait.h>
#include <unistd.h>

static temp_folder folder;
static sft_file *files[3];

#define SHAPES 900

static int folder_begin(void **state) {
    static read_shape shapes[SHAPES];
    (void)state;
    temp_begin(&folder);
    for (size_t f = 0; f < 3; f++) {
        char name[16];
        snprintf(name, sizeof name, "m%zu", f);
        for (size_t i = 0; i < SHAPES; i++)
            shapes[i] = i == 7 ? (read_shape){ 1100, 2003 }
                               : (read_shape){ 1 + read_below(3),
                                               read_below(i % 50 == 0 ? 200000 : 2000) };
        files[f] = read_file_open(read_file_new(&folder, name, shapes, SHAPES), SFT_READ);
    }
    return 0;
}

static int folder_end(void **state) {
    (void)state;
    for (size_t f = 0; f < 3; f++) sft_close(files[f]);
    temp_end(&folder);
    return 0;
}

/* Small tensors packed at steps of 512 into block 0, in the order of the files; large ones in
 * blocks of their own; slices. */
static read_model *packed_model(size_t step) {
    static const char *const slices[] = { ":, ::2", "::-1", ":, 5:1900", "::3, 7", ":, 100:300" };
    read_model *m = read_model_new();
    uint64_t at = 0;
    size_t block = 1;
    for (size_t f = 0; f < 3; f++)
        for (size_t i = 0; i < SHAPES; i++) {
            bool large = i % 50 == 0 || i == 7;
            uint64_t len = read_part_bytes(
                read_add(m, files[f], i, NULL, large ? block++ : 0, large ? 0 : at));
            if (!large) at = (at + len + step - 1) / step * step;
        }
    for (size_t s = 0; s < sizeof slices / sizeof *slices; s++)
        read_add(m, files[s % 3], 7, slices[s], block++, 0);
    read_finish(m);
    return m;
}

static sft_read_plan *plan_waiting(const read_model *m, uint64_t slot_bytes, sft_read_direct direct,
                                   const sft_wait *wait) {
    sft_read_plan_options options = SFT_READ_PLAN_OPTIONS_INIT;
    sft_read_plan *plan;
    sft_error err = SFT_ERROR_INIT;
    options.slot_bytes = slot_bytes;
    options.direct = direct;
    options.wait = wait;
    if (sft_read_plan_new(m->parts, m->count, m->blocks, m->block_count, &options, &plan, &err))
        fail_msg("%s", err.message);
    return plan;
}

static sft_read_plan *plan_of(const read_model *m, uint64_t slot_bytes, sft_read_direct direct) {
    return plan_waiting(m, slot_bytes, direct, NULL);
}

/* ── The device ──────────────────────────────────────────────────────────── */

#define SLOTS 6

/* Copies that were enqueued and not made yet: made in any order, from the slot as it is then. */
typedef struct device {
    read_model *model;
    sft_reader *reader;
    char *memory[SLOTS], *whole[SLOTS];
    size_t slot_bytes, added, held_count, most_held;
    sft_filled held[SLOTS];
    char *seen[READ_MOST]; /* 1 for a byte of a block that was copied to */
    uint64_t copied;
    size_t copies;
} device;

static char *slot_new(size_t bytes, char **whole) {
    *whole = malloc(bytes + 4096);
    temp_must(*whole != NULL, "slot");
    return *whole + (4096 - (uintptr_t)*whole % 4096) % 4096;
}

static device *device_new(read_model *m, const sft_read_plan *plan, size_t most_held) {
    device *d = calloc(1, sizeof *d);
    temp_must(d != NULL, "device");
    d->model = m;
    d->slot_bytes = sft_read_plan_slot_bytes(plan);
    d->most_held = most_held;
    read_wipe(m);
    for (size_t i = 0; i < SLOTS; i++) {
        d->memory[i] = slot_new(d->slot_bytes, &d->whole[i]);
        memset(d->memory[i], 0xDD, d->slot_bytes);
    }
    for (size_t b = 0; b < m->block_count; b++) {
        d->seen[b] = calloc(1, (size_t)m->blocks[b].bytes + 1);
        temp_must(d->seen[b] != NULL, "seen");
    }
    return d;
}

static void device_free(device *d) {
    sft_reader_close(d->reader);
    for (size_t i = 0; i < SLOTS; i++) free(d->whole[i]);
    for (size_t b = 0; b < d->model->block_count; b++) free(d->seen[b]);
    free(d);
}

static void device_add(device *d) {
    assert_int_equal(sft_reader_add(d->reader, d->memory[d->added++], NULL), SFT_OK);
}

/* Makes the copies of one slot, wipes it, gives it back. */
static void device_complete(device *d, size_t i) {
    sft_filled filled = d->held[i];
    d->held[i] = d->held[--d->held_count];
    assert_ptr_equal(filled.memory, d->memory[filled.slot]);
    for (size_t c = 0; c < filled.copy_count; c++) {
        const sft_read_copy *copy = &filled.copies[c];
        assert_true(copy->len > 0 && copy->from + copy->len <= d->slot_bytes);
        assert_true(copy->at + copy->len <= d->model->blocks[copy->block].bytes);
        assert_true(copy->at % 64 == copy->from % 64);
        memcpy(d->model->found[copy->block] + copy->at, (char *)filled.memory + copy->from,
               copy->len);
        char *seen = d->seen[copy->block] + copy->at;
        assert_null(memchr(seen, 1, copy->len));
        memset(seen, 1, copy->len);
        d->copied += copy->len;
    }
    d->copies += filled.copy_count;
    memset(filled.memory, 0xDD, d->slot_bytes);
    sft_reader_give_back(d->reader, filled.slot);
}

/* Until the end or `stop` slots; returns what the last call said. */
static sft_code device_run(device *d, size_t stop, sft_error *err) {
    for (size_t slots = 0; slots < stop; slots++) {
        sft_filled filled;
        while (d->held_count >= d->most_held || (d->held_count > 0 && read_below(3) == 0))
            device_complete(d, read_below(d->held_count));
        if (d->added < SLOTS && sft_reader_starved(d->reader)) device_add(d);
        sft_code code = sft_reader_next(d->reader, -1, &filled, err);
        if (code || filled.slot == SFT_SLOT_END) return code;
        if (filled.slot == SFT_SLOT_NONE) continue;
        d->held[d->held_count++] = filled;
    }
    return SFT_OK;
}

static void device_drain(device *d) {
    while (d->held_count > 0) device_complete(d, read_below(d->held_count));
}

/* ── Everything arrives ──────────────────────────────────────────────────── */

static void load_all(read_model *m, const sft_read_plan *plan, uint32_t threads, size_t held) {
    device *d = device_new(m, plan, held);
    sft_error err = SFT_ERROR_INIT;
    sft_filled filled;
    assert_int_equal(sft_reader_start(plan, threads, &d->reader, NULL), SFT_OK);
    assert_int_equal(sft_reader_next(d->reader, -1, &filled, NULL), SFT_OK);
    assert_int_equal(filled.slot, SFT_SLOT_NONE); /* there are no slots */
    device_add(d);
    if (device_run(d, SIZE_MAX, &err)) fail_msg("%s", err.message);
    device_drain(d);
    assert_int_equal(sft_reader_next(d->reader, 0, &filled, NULL), SFT_OK);
    assert_int_equal(filled.slot, SFT_SLOT_END);
    assert_false(sft_reader_starved(d->reader));
    read_compare(m);
    assert_true(d->copied >= sft_read_plan_wanted(plan));
    device_free(d);
}

static void test_packed(void **state) {
    static const uint64_t slots[] = { 65536, 1 << 20, 0 };
    (void)state;
    for (size_t step = 1; step <= 512; step += 511) {
        read_model *m = packed_model(step);
        for (size_t s = 0; s < 3; s++)
            for (int direct = SFT_READ_DIRECT_NEVER; direct <= SFT_READ_DIRECT_ALWAYS; direct++) {
                sft_read_plan *plan = plan_of(m, slots[s], (sft_read_direct)direct);
                for (uint32_t threads = 1; threads <= 5; threads += 2)
                    load_all(m, plan, threads, 1 + read_below(SLOTS));
                load_all(m, plan, 0, SLOTS);
                sft_read_plan_free(plan);
            }
        read_model_free(m);
    }
}

/* Packed tensors of a dense file are few copies, whatever their number. */
static void test_few_copies(void **state) {
    enum { COUNT = 4000 };
    static read_shape shapes[COUNT];
    read_model *m = read_model_new();
    (void)state;
    for (size_t i = 0; i < COUNT; i++) shapes[i] = (read_shape){ 1, 1 + i % 700 };
    sft_file *file = read_file_open(read_file_new(&folder, "few", shapes, COUNT), SFT_READ);
    uint64_t at = 0;
    for (size_t i = 0; i < COUNT; i++) {
        uint64_t len = read_part_bytes(read_add(m, file, i, NULL, 0, at));
        at = (at + len + 511) / 512 * 512;
    }
    read_finish(m);
    sft_read_plan *plan = plan_of(m, 1 << 20, SFT_READ_DIRECT_AUTO);
    device *d = device_new(m, plan, 1);
    assert_int_equal(sft_reader_start(plan, 2, &d->reader, NULL), SFT_OK);
    device_add(d);
    assert_int_equal(device_run(d, SIZE_MAX, NULL), SFT_OK);
    device_drain(d);
    read_compare(m);
    assert_true(d->copies <= 1 + m->blocks[0].bytes / (1 << 20) + 1);
    device_free(d);
    sft_read_plan_free(plan);
    read_model_free(m);
    sft_close(file);
}

/* A part that lies in the block between two others, but elsewhere in the file, is no gap. */
static void test_no_false_gap(void **state) {
    static const read_shape shapes[] = { { 1, 10 }, { 1, 10 }, { 1, 3000000 }, { 1, 100 } };
    sft_file *file = read_file_open(read_file_new(&folder, "gap", shapes, 4), SFT_READ);
    read_model *m = read_model_new();
    (void)state;
    read_add(m, file, 0, NULL, 0, 0);
    read_add(m, file, 1, NULL, 0, 200);
    read_add(m, file, 2, NULL, 1, 0);
    read_add(m, file, 3, NULL, 0, 50);
    read_finish(m);
    sft_read_plan *plan = plan_of(m, 65536, SFT_READ_DIRECT_AUTO);
    for (int i = 0; i < 10; i++) load_all(m, plan, 3, 2);
    sft_read_plan_free(plan);
    read_model_free(m);
    sft_close(file);
}

typedef struct thread_load {
    const sft_read_plan *plan;
    os_thread thread;
    uint64_t bytes;
    sft_code code;
} thread_load;

static void load_in_thread(void *ctx) {
    thread_load *load = ctx;
    sft_reader *reader;
    sft_filled filled;
    char *whole, *slot = slot_new(sft_read_plan_slot_bytes(load->plan), &whole);
    load->code = sft_reader_start(load->plan, 2, &reader, NULL);
    if (!load->code) load->code = sft_reader_add(reader, slot, NULL);
    while (!load->code) {
        load->code = sft_reader_next(reader, 1000, &filled, NULL);
        if (load->code || filled.slot == SFT_SLOT_END) break;
        for (size_t c = 0; c < filled.copy_count; c++) load->bytes += filled.copies[c].len;
        if (filled.slot != SFT_SLOT_NONE) sft_reader_give_back(reader, filled.slot);
    }
    sft_reader_close(reader);
    free(whole);
}

static void test_several_readers(void **state) {
    read_model *m = packed_model(512);
    sft_read_plan *plan = plan_of(m, 1 << 18, SFT_READ_DIRECT_AUTO);
    thread_load loads[4];
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        loads[i] = (thread_load){ .plan = plan };
        assert_int_equal(sfti_os_thread_start(&loads[i].thread, load_in_thread, &loads[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        sfti_os_thread_join(&loads[i].thread);
        assert_int_equal(loads[i].code, SFT_OK);
        assert_true(loads[i].bytes >= sft_read_plan_wanted(plan));
    }
    sft_read_plan_free(plan);
    read_model_free(m);
}

/* ── Slots ───────────────────────────────────────────────────────────────── */

static void test_slots(void **state) {
    read_model *m = packed_model(512);
    sft_read_plan *plan = plan_of(m, 65536, SFT_READ_DIRECT_AUTO);
    device *d = device_new(m, plan, 1);
    sft_filled filled, second;
    sft_read_block block = { m->found[0], m->blocks[0].bytes };
    sft_read_plan *based;
    (void)state;
    assert_int_equal(sft_reader_start(plan, 2, &d->reader, NULL), SFT_OK);
    assert_true(sft_reader_starved(d->reader));
    assert_int_equal(sft_reader_add(d->reader, d->memory[0] + 64, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_reader_add(d->reader, NULL, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_reader_add(NULL, d->memory[0], NULL), SFT_BAD_ARGUMENT);
    device_add(d);
    assert_int_equal(sft_reader_next(d->reader, -1, NULL, NULL), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_reader_next(d->reader, -1, &filled, NULL), SFT_OK);
    assert_int_equal(filled.slot, 0);
    assert_true(sft_reader_starved(d->reader)); /* the caller has the only one */
    assert_int_equal(sft_reader_next(d->reader, -1, &second, NULL), SFT_OK);
    assert_int_equal(second.slot, SFT_SLOT_NONE);
    sft_reader_give_back(d->reader, 7);
    device_add(d);
    assert_int_equal(sft_reader_next(d->reader, -1, &second, NULL), SFT_OK);
    assert_int_equal(second.slot, 1);
    sft_reader_give_back(d->reader, 1);
    sft_reader_give_back(d->reader, 1); /* no longer the caller's */
    assert_int_equal(sft_reader_next(d->reader, 60000, &second, NULL), SFT_OK);
    assert_int_equal(second.slot, 1);
    device_free(d);
    assert_int_equal(sft_read_plan_new(&m->parts[1], 1, &block, 1, NULL, &based, NULL), SFT_OK);
    sft_reader *reader;
    assert_int_equal(sft_reader_start(based, 0, &reader, NULL), SFT_BAD_ARGUMENT);
    assert_null(reader);
    assert_int_equal(sft_reader_start(NULL, 0, &reader, NULL), SFT_BAD_ARGUMENT);
    sft_reader_close(NULL);
    sft_read_plan_free(based);
    sft_read_plan_free(plan);
    read_model_free(m);
}

static void test_nothing(void **state) {
    sft_read_plan *plan;
    sft_reader *reader;
    sft_filled filled;
    (void)state;
    assert_int_equal(sft_read_plan_new(NULL, 0, NULL, 0, NULL, &plan, NULL), SFT_OK);
    assert_int_equal(sft_reader_start(plan, 0, &reader, NULL), SFT_OK);
    assert_int_equal(sft_reader_next(reader, -1, &filled, NULL), SFT_OK);
    assert_int_equal(filled.slot, SFT_SLOT_END);
    sft_reader_close(reader);
    sft_read_plan_free(plan);
}

/* ── Closed early ────────────────────────────────────────────────────────── */

static void test_closed(void **state) {
    read_model *m = packed_model(512);
    sft_read_plan *plan = plan_of(m, 65536, SFT_READ_DIRECT_AUTO);
    (void)state;
    for (size_t stop = 0; stop < 60; stop++) {
        device *d = device_new(m, plan, 1 + stop % SLOTS);
        assert_int_equal(sft_reader_start(plan, 1 + (uint32_t)(stop % 4), &d->reader, NULL),
                         SFT_OK);
        for (size_t i = 0; i < stop % SLOTS; i++) device_add(d);
        assert_int_equal(device_run(d, stop, NULL), SFT_OK);
        sft_reader_close(d->reader);
        d->reader = NULL;
        for (size_t i = 0; i < SLOTS; i++) memset(d->memory[i], 0, d->slot_bytes);
        device_free(d);
    }
    sft_read_plan_free(plan);
    read_model_free(m);
}

/* ── Sources that fail or wait ───────────────────────────────────────────── */

typedef struct gate {
    sft_source whole;
    os_mutex mutex;
    os_cond opened;
    size_t reads, fail_at;
    bool closed; /* reads wait */
} gate;

static sft_code gate_read(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                          sft_error *err) {
    gate *g = ctx;
    sfti_os_mutex_lock(&g->mutex);
    size_t read = ++g->reads;
    while (g->closed) sfti_os_cond_wait(&g->opened, &g->mutex);
    sfti_os_mutex_unlock(&g->mutex);
    if (read >= g->fail_at) return sft_error_set(err, SFT_IO_READ, 5, "the source says no");
    return sft_source_read(&g->whole, offset, into, len, got, err);
}

static const sft_source_vtable gate_vtable = { .size = sizeof(sft_source_vtable),
    .read = gate_read };

static sft_file *gate_file(gate *g, const sft_file *file) {
    sft_file *out;
    *g = (gate){ .whole = sft_file_source(file), .fail_at = SIZE_MAX };
    assert_int_equal(sfti_os_mutex_init(&g->mutex), 0);
    assert_int_equal(sfti_os_cond_init(&g->opened), 0);
    sft_source source = { g, &gate_vtable, sft_file_size(file), NULL, false };
    assert_int_equal(sft_open_source(source, NULL, &out, NULL), SFT_OK);
    return out;
}

static void gate_set(gate *g, bool closed) {
    sfti_os_mutex_lock(&g->mutex);
    g->closed = closed;
    sfti_os_cond_wake(&g->opened);
    sfti_os_mutex_unlock(&g->mutex);
}

static read_model *gate_model(const sft_file *file) {
    read_model *m = read_model_new();
    uint64_t at = 0;
    for (size_t i = 0; i < sft_file_tensor_count(file); i++) {
        const sft_tensor *tensor = sft_file_tensor_at(file, i);
        if (tensor->end == tensor->begin) continue;
        read_add(m, file, i, NULL, 0, at);
        at = (at + tensor->end - tensor->begin + 511) / 512 * 512;
    }
    read_finish(m);
    return m;
}

static void test_failing(void **state) {
    static const uint32_t thread_counts[] = { 1, 4 };
    gate g;
    sft_file *file = gate_file(&g, files[0]);
    read_model *m = gate_model(file);
    sft_read_plan *plan = plan_of(m, 65536, SFT_READ_DIRECT_AUTO);
    (void)state;
    for (size_t fail_at = 1; fail_at < 60; fail_at += 1 + fail_at / 8)
        for (size_t t = 0; t < 2; t++) {
            device *d = device_new(m, plan, 2);
            sft_error err = SFT_ERROR_INIT, again = SFT_ERROR_INIT;
            sft_filled filled;
            sfti_os_mutex_lock(&g.mutex);
            g.reads = 0;
            g.fail_at = fail_at;
            sfti_os_mutex_unlock(&g.mutex);
            assert_int_equal(sft_reader_start(plan, thread_counts[t], &d->reader, NULL), SFT_OK);
            for (int i = 0; i < 3; i++) device_add(d);
            assert_int_equal(device_run(d, SIZE_MAX, &err), SFT_IO_READ);
            assert_true(err.offset != SFT_NO_OFFSET && err.tensor_len != SFT_NO_TENSOR);
            assert_int_equal(err.tensor[0], 't');
            device_drain(d); /* what was handed out before is whole */
            for (size_t i = 0; i < m->blocks[0].bytes; i++)
                if (d->seen[0][i] && m->expected[0][i] != (char)0xEE)
                    assert_int_equal(m->found[0][i], m->expected[0][i]);
            assert_int_equal(sft_reader_next(d->reader, -1, &filled, &again), SFT_IO_READ);
            assert_memory_equal(&err, &again, sizeof err);
            assert_false(sft_reader_starved(d->reader));
            device_free(d);
        }
    sft_read_plan_free(plan);
    read_model_free(m);
    sft_close(file);
}

static bool waits_end;

static bool go_on(void *ctx) {
    (void)ctx;
    return !waits_end;
}

static void open_later(void *ctx) {
    sfti_os_sleep_ms(20);
    gate_set(ctx, false);
}

static void test_waits(void **state) {
    gate g;
    sft_file *file = gate_file(&g, files[0]);
    read_model *m = gate_model(file);
    const sft_wait wait = { go_on, NULL };
    sft_read_plan *plan = plan_waiting(m, 65536, SFT_READ_DIRECT_AUTO, &wait);
    device *d = device_new(m, plan, 2);
    sft_filled filled;
    os_thread opener;
    (void)state;
    gate_set(&g, true);
    assert_int_equal(sft_reader_start(plan, 2, &d->reader, NULL), SFT_OK);
    device_add(d);
    assert_int_equal(sft_reader_next(d->reader, 0, &filled, NULL), SFT_OK);
    assert_int_equal(filled.slot, SFT_SLOT_NONE);
    /* The second thread has no slot, once it gets to run. */
    for (int i = 0; i < 1000 && (i == 0 || !sft_reader_starved(d->reader)); i++) {
        assert_int_equal(sft_reader_next(d->reader, 30, &filled, NULL), SFT_OK);
        assert_int_equal(filled.slot, SFT_SLOT_NONE);
    }
    assert_true(sft_reader_starved(d->reader));
    device_add(d);
    assert_false(sft_reader_starved(d->reader));
    waits_end = true;
    assert_int_equal(sft_reader_next(d->reader, -1, &filled, NULL), SFT_OK);
    assert_int_equal(filled.slot, SFT_SLOT_NONE);
    waits_end = false;
    assert_int_equal(sfti_os_thread_start(&opener, open_later, &g), 0);
    assert_int_equal(device_run(d, SIZE_MAX, NULL), SFT_OK);
    device_drain(d);
    read_compare(m);
    sfti_os_thread_join(&opener);
    /* Closing waits for a read that is under way. */
    device_free(d);
    d = device_new(m, plan, 2);
    gate_set(&g, true);
    assert_int_equal(sft_reader_start(plan, 2, &d->reader, NULL), SFT_OK);
    device_add(d);
    assert_int_equal(sfti_os_thread_start(&opener, open_later, &g), 0);
    device_free(d);
    sfti_os_thread_join(&opener);
    sft_read_plan_free(plan);
    read_model_free(m);
    sft_close(file);
}

/* The file is cut while it is read: some slots come, then the error, and nothing half filled. */
static void test_truncated(void **state) {
    static const read_shape shapes[] = { { 1, 3000000 } };
    (void)state;
    for (size_t after = 0; after < 8; after++) {
        const char *path = read_file_new(&folder, "truncated", shapes, 1);
        sft_file *file = read_file_open(path, SFT_READ);
        read_model *m = read_model_new();
        sft_error err = SFT_ERROR_INIT;
        read_add(m, file, 0, NULL, 0, 3);
        read_finish(m);
        sft_read_plan *plan = plan_of(m, 65536, SFT_READ_DIRECT_ALWAYS);
        device *d = device_new(m, plan, 1);
        assert_int_equal(sft_reader_start(plan, 3, &d->reader, NULL), SFT_OK);
        device_add(d);
        assert_int_equal(device_run(d, after, &err), SFT_OK);
        assert_int_equal(truncate(path, 1000000), 0);
        assert_int_equal(device_run(d, SIZE_MAX, &err), SFT_IO_SHRUNK);
        assert_true(err.offset >= 1000000 && err.tensor_len == 2 && err.tensor[1] == '0');
        device_drain(d);
        for (size_t i = 0; i < m->blocks[0].bytes; i++)
            if (d->seen[0][i]) assert_int_equal(m->found[0][i], m->expected[0][i]);
        device_free(d);
        sft_read_plan_free(plan);
        read_model_free(m);
        sft_close(file);
    }
}

/* In a child of fork() there are no threads to wait for. */
static void test_forked(void **state) {
    (void)state;
    read_model *m = packed_model(512);
    sft_read_plan *plan = plan_of(m, 65536, SFT_READ_DIRECT_NEVER);
    device *d = device_new(m, plan, 1);
    assert_int_equal(sft_reader_start(plan, 3, &d->reader, NULL), SFT_OK);
    device_add(d);
    pid_t child = fork();
    if (child == 0) {
        sft_error err = SFT_ERROR_INIT;
        sft_filled filled;
        alarm(20);
        bool refused = sft_reader_next(d->reader, -1, &filled, &err) == SFT_BAD_ARGUMENT &&
                       strstr(err.message, "found one from before fork()") &&
                       !sft_reader_starved(d->reader);
        sft_reader_give_back(d->reader, 0);
        sft_reader_close(d->reader);
        _exit(refused ? 0 : 1);
    }
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_int_equal(device_run(d, SIZE_MAX, NULL), SFT_OK);
    device_drain(d);
    device_free(d);
    sft_read_plan_free(plan);
    read_model_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_packed),       cmocka_unit_test(test_few_copies),
        cmocka_unit_test(test_no_false_gap), cmocka_unit_test(test_several_readers),
        cmocka_unit_test(test_slots),        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_closed),       cmocka_unit_test(test_failing),
        cmocka_unit_test(test_waits),        cmocka_unit_test(test_truncated),
        cmocka_unit_test(test_forked),
    };
    return cmocka_run_group_tests(tests, folder_begin, folder_end);
}
