/* Plans run in memory and through slots over a system of which the nth allocation or call fails;
 * through the page cache and past it. */
#include "faults.h"
#include "os/os.h"
#include "safetensors_read.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PARTS 320
#define BYTES (3 << 20)
#define SLOT ((size_t)64 << 10)

enum { IN_MEMORY, BY_SLOTS };

static char target[BYTES];
static _Alignas(4096) char slots[2][SLOT];
static sft_file *opened[3];
static sft_read_part parts[PARTS];
static sft_slice slices[2];
static size_t part_count;
static sft_read_block block;

static sft_code add_part(const sft_file *file, const sft_tensor *tensor, const char *text,
                         sft_slice *slice, sft_error *err) {
    uint64_t len = tensor->end - tensor->begin;
    fault_need(part_count < PARTS);
    parts[part_count] = (sft_read_part){ file, tensor, text ? slice : NULL, 0, block.bytes };
    if (text) {
        sft_code code = sft_slice_parse(tensor->shape, tensor->rank, sft_span_cstr(text), slice,
                                        err);
        if (!code) code = sft_slice_size(slice, tensor->dtype, NULL, &len, err);
        if (code) return code;
    }
    part_count++;
    block.bytes = (block.bytes + len + 63) / 64 * 64;
    fault_need(block.bytes <= BYTES);
    return SFT_OK;
}

static sft_code open_all(sft_error *err) {
    static const char *const paths[] = { "/m/big.safetensors", "/m/many.safetensors",
                                         "/m/a.safetensors" };
    sft_open_options options = SFT_OPEN_OPTIONS_INIT;
    sft_code code = SFT_OK;
    options.alloc = &fault_alloc;
    part_count = 0;
    block = (sft_read_block){ NULL, 0 };
    memset(opened, 0, sizeof opened);
    for (size_t f = 0; !code && f < 3; f++) {
        code = sft_open(paths[f], &options, &opened[f], err);
        for (size_t i = 0; !code && i < sft_file_tensor_count(opened[f]); i++)
            code = add_part(opened[f], sft_file_tensor_at(opened[f], i), NULL, NULL, err);
    }
    size_t sliced = 0;
    for (size_t i = 0; !code && i < sft_file_tensor_count(opened[2]) && sliced < 2; i++) {
        const sft_tensor *tensor = sft_file_tensor_at(opened[2], i);
        if (tensor->rank != 2 || tensor->begin == tensor->end) continue;
        code = add_part(opened[2], tensor, sliced ? "::-1" : ":, ::2", &slices[sliced], err);
        sliced++;
    }
    return code;
}

static sft_code load_slots(const sft_read_plan *plan, uint32_t threads, sft_error *err) {
    sft_reader *reader;
    sft_code code = sft_reader_start(plan, threads, &reader, err);
    if (code) return code;
    for (size_t i = 0; !code && i < 2; i++) code = sft_reader_add(reader, slots[i], err);
    while (!code) {
        sft_filled filled;
        code = sft_reader_next(reader, -1, &filled, err);
        if (code || filled.slot == SFT_SLOT_END) break;
        for (size_t i = 0; i < filled.copy_count; i++)
            memcpy(target + filled.copies[i].at, (char *)filled.memory + filled.copies[i].from,
                   filled.copies[i].len);
        memset(filled.memory, 0xDD, SLOT);
        sft_reader_give_back(reader, filled.slot);
    }
    sft_reader_close(reader);
    return code;
}

static sft_code load(const fault_scene *scene, sft_error *err) {
    sft_read_plan_options options = SFT_READ_PLAN_OPTIONS_INIT;
    sft_job job = SFT_JOB_INIT;
    sft_read_plan *plan;
    options.alloc = &fault_alloc;
    options.direct = (sft_read_direct)scene->mode;
    options.slot_bytes = SLOT;
    job.threads = 4;
    if (scene->way == IN_MEMORY) block.base = target;
    sft_code code = sft_read_plan_new(parts, part_count, &block, 1, &options, &plan, err);
    if (code) return code;
    code = scene->way == IN_MEMORY ? sft_read_plan_run(plan, &job, err) : load_slots(plan, 3, err);
    sft_read_plan_free(plan);
    return code;
}

static void run_load(const fault_scene *scene, fault_seen *seen) {
    sft_code code = load(scene, &seen->err);
    for (size_t i = 0; !code && i < part_count; i++) {
        uint64_t len = parts[i].tensor->end - parts[i].tensor->begin;
        if (parts[i].slice)
            code = sft_slice_size(parts[i].slice, parts[i].tensor->dtype, NULL, &len, &seen->err);
        fault_see_bytes(seen, target + parts[i].at, len);
    }
    seen->status = (int)code;
}

static void begin_load(const fault_scene *scene) {
    os_fake_can_direct(scene->mode == SFT_READ_DIRECT_ALWAYS);
    memset(target, 0, sizeof target);
    fault_need(!open_all(NULL));
}

static const char *end_load(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    (void)scene, (void)seen, (void)lasting;
    for (size_t f = 0; f < 3; f++) sft_close(opened[f]);
    return NULL;
}

#define LOAD(title, by, past, locks) \
    { .name = title, .run = run_load, .way = by, .mode = past, .set = begin_load, \
      .after = end_load, .imports = locks }

static const fault_scene loads[] = {
    LOAD("in memory", IN_MEMORY, SFT_READ_DIRECT_NEVER, false),
    LOAD("in memory, past the cache", IN_MEMORY, SFT_READ_DIRECT_ALWAYS, false),
    LOAD("by slots", BY_SLOTS, SFT_READ_DIRECT_NEVER, true),
    LOAD("by slots, past the cache", BY_SLOTS, SFT_READ_DIRECT_ALWAYS, true),
};

static void play_loads(void **state) {
    (void)state;
    assert_true(fault_play(loads, sizeof loads / sizeof *loads, 30, 70));
}

/* All ways give the same bytes, also where no thread can be started and where the system refuses
 * reads past the cache after all. */
static void same_bytes(void **state) {
    static char plain[BYTES];
    static const int refusals[] = { 0, EINVAL, EIO };
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    for (size_t i = 0; i < sizeof loads / sizeof *loads; i++)
        for (size_t r = 0; r < 3; r++)
            for (int threads = 0; threads < 2; threads++) {
                fault_world();
                begin_load(&loads[i]);
                if (threads) os_fake_fail_call("sfti_os_thread_start", 1, EAGAIN, true);
                else if (refusals[r]) os_fake_fail_call("sfti_os_pread", 3, refusals[r], false);
                sft_code code = load(&loads[i], &err);
                bool past = loads[i].mode == SFT_READ_DIRECT_ALWAYS;
                if (threads || !refusals[r] || past) assert_int_equal(code, SFT_OK);
                else assert_int_equal(code, SFT_IO_READ);
                if (i == 0 && r == 0 && threads == 0) memcpy(plain, target, sizeof plain);
                for (size_t p = 0; !code && p < part_count; p++)
                    if (!parts[p].slice)
                        assert_memory_equal(target + parts[p].at, plain + parts[p].at,
                                            parts[p].tensor->end - parts[p].tensor->begin);
                for (size_t f = 0; f < 3; f++) sft_close(opened[f]);
                os_fake_reset();
            }
}

/* Less than 64 MiB is read through the cache, however cold; the system is not even asked. */
static void small_is_not_asked(void **state) {
    sft_error err = SFT_ERROR_INIT;
    fault_scene scene = loads[0];
    (void)state;
    scene.mode = SFT_READ_DIRECT_AUTO;
    fault_world();
    os_fake_can_direct(true);
    os_fake_cold(true);
    assert_int_equal(open_all(&err), SFT_OK);
    os_fake_fail_call("sfti_os_cached", 1, EBADF, true);
    assert_int_equal(load(&scene, &err), SFT_OK);
    assert_int_equal(os_fake_failed(), 0);
    for (size_t f = 0; f < 3; f++) sft_close(opened[f]);
    os_fake_reset();
}

/* A file of one tensor of len bytes, of which byte i is i * 7 >> 3 in the file; freed by the
 * caller. */
static unsigned char *add_large(size_t len, size_t *whole) {
    char header[128];
    int text = snprintf(header, sizeof header, "{\"t\":{\"dtype\":\"U8\",\"shape\":[%zu],"
                        "\"data_offsets\":[0,%zu]}}", len, len);
    fault_need(text > 0 && text < 128);
    *whole = 8 + (size_t)text + len;
    unsigned char *bytes = calloc(1, *whole);
    fault_need(bytes != NULL);
    bytes[0] = (unsigned char)text;
    memcpy(bytes + 8, header, (size_t)text);
    for (size_t i = 8 + (size_t)text; i < *whole; i++) bytes[i] = (unsigned char)(i * 7 >> 3);
    return bytes;
}

/* A file of 80 MiB: past the cache if that has less than 90 % of it. */
static void cold_is_read_directly(void **state) {
    enum { LEN = 83886080 };
    size_t whole;
    unsigned char *bytes = add_large(LEN, &whole), *into = malloc(LEN);
    (void)state;
    fault_need(into != NULL);
    for (int way = 0; way < 4; way++) { /* cold; to any address */
        sft_file *file;
        sft_read_plan *plan;
        sft_job job = SFT_JOB_INIT;
        size_t direct = 0;
        bool cold = way > 0;
        os_fake_reset();
        os_fake_direct_anywhere(way == 2);
        os_fake_short_reads(way == 3 ? 300000 : 0);
        os_fake_add_file("/t", bytes, whole);
        os_fake_can_direct(true);
        os_fake_cold(cold);
        assert_int_equal(sft_open("/t", NULL, &file, NULL), SFT_OK);
        sft_read_part part = { file, sft_file_tensor_at(file, 0), NULL, 0, 0 };
        sft_read_block memory = { into, LEN };
        memset(into, 0, LEN);
        if (way == 2) os_fake_fail_call("sfti_os_pread", 4, EIO, false);
        else os_fake_fail(0, 0, false);
        assert_int_equal(sft_read_plan_new(&part, 1, &memory, 1, NULL, &plan, NULL), SFT_OK);
        assert_int_equal(sft_read_plan_run(plan, &job, NULL), SFT_OK);
        if (way == 2) assert_true(os_fake_calls() < 60); /* 8 MiB at once */
        for (size_t n = 1; os_fake_call_name(n); n++)
            direct += strcmp(os_fake_call_name(n), "sfti_os_open_direct") == 0;
        assert_int_equal(direct, cold);
        assert_memory_equal(into, bytes + whole - LEN, LEN);
        sft_read_plan_free(plan);
        sft_close(file);
        assert_int_equal(os_fake_open_fds(), 0);
    }
    os_fake_reset();
    free(into);
    free(bytes);
}

/* Loads one tensor of 64 MiB to that distance from a huge page; how many huge pages were asked
 * for. */
static size_t pages_asked(const unsigned char *bytes, size_t whole, size_t past, bool fresh) {
    enum { LEN = 64 << 20 };
    char *memory = malloc(LEN + 2 * OS_HUGE_PAGE);
    char *page = memory + (OS_HUGE_PAGE - (uintptr_t)memory % OS_HUGE_PAGE) % OS_HUGE_PAGE;
    sft_read_plan_options options = SFT_READ_PLAN_OPTIONS_INIT;
    sft_read_plan *plan;
    sft_file *file;
    fault_need(memory != NULL);
    options.fresh = fresh;
    os_fake_add_file("/t", bytes, whole);
    assert_int_equal(sft_open("/t", NULL, &file, NULL), SFT_OK);
    sft_read_part part = { file, sft_file_tensor_at(file, 0), NULL, 0, 0 };
    sft_read_block block_of = { page + past, LEN };
    assert_int_equal(sft_read_plan_new(&part, 1, &block_of, 1, &options, &plan, NULL), SFT_OK);
    assert_int_equal(sft_read_plan_run(plan, NULL, NULL), SFT_OK);
    assert_memory_equal(page + past, bytes + whole - LEN, LEN);
    sft_read_plan_free(plan);
    sft_close(file);
    free(memory);
    return os_fake_huge_bytes() / OS_HUGE_PAGE;
}

/* Fresh memory is asked for in huge pages: all of it while they are quick, now and then while they
 * are slow. */
static void huge_pages_while_quick(void **state) {
    static const struct {
        bool quick;
        size_t past;
        bool fresh;
        size_t least, most;
    } rows[] = {
        { true, 0, true, 32, 32 }, { true, 4096 * 5, true, 31, 31 }, { true, 0, false, 0, 0 },
        { false, 0, true, 2, 6 },  { false, 1 << 20, true, 2, 6 },
    };
    size_t whole;
    unsigned char *bytes = add_large(64 << 20, &whole);
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        os_fake_reset();
        os_fake_huge(rows[i].quick);
        size_t asked = pages_asked(bytes, whole, rows[i].past, rows[i].fresh);
        assert_in_range(asked, rows[i].least, rows[i].most);
    }
    os_fake_reset();
    free(bytes);
}

enum { CUT_LEN = 8 << 20, CUT_BEFORE = (512 << 10) - 50, CUT_SMALL = 100, CUT_OTHER = 2 << 20 };

/* Fills the block: CUT_BEFORE bytes of /large, CUT_SMALL of /other, the rest of /large, the rest of
 * /other. What is of /other is read first, by tasks of its own. */
static void load_cut(char *base) {
    static const char *const paths[] = { "/other", "/large", "/large", "/other" };
    static const char *const texts[] = { "0:100", "0:524238", "524238:", "100:" };
    static const uint64_t places[] = { CUT_BEFORE, 0, CUT_BEFORE + CUT_SMALL, CUT_LEN + CUT_SMALL };
    sft_read_plan_options options = SFT_READ_PLAN_OPTIONS_INIT;
    sft_job job = SFT_JOB_INIT;
    sft_read_block cut = { base, CUT_LEN + CUT_OTHER };
    sft_read_part cuts[4];
    sft_slice of[4];
    sft_file *files[2];
    sft_read_plan *plan;
    options.fresh = true;
    job.threads = 1;
    for (size_t i = 0; i < 2; i++) fault_need(!sft_open(paths[i], NULL, &files[i], NULL));
    for (size_t i = 0; i < 4; i++) {
        const sft_file *file = files[i == 1 || i == 2];
        const sft_tensor *tensor = sft_file_tensor_at(file, 0);
        sft_span text = sft_span_cstr(texts[i]);
        assert_int_equal(sft_slice_parse(tensor->shape, 1, text, &of[i], NULL), SFT_OK);
        cuts[i] = (sft_read_part){ file, tensor, &of[i], 0, places[i] };
    }
    assert_int_equal(sft_read_plan_new(cuts, 4, &cut, 1, &options, &plan, NULL), SFT_OK);
    assert_int_equal(sft_read_plan_run(plan, &job, NULL), SFT_OK);
    sft_read_plan_free(plan);
    for (size_t i = 0; i < 2; i++) sft_close(files[i]);
}

/* A huge page begins in the midst of the small part of /other, which is filled by then: the page
 * that is tried loses a byte, and that must be one of the task's own. */
static void tried_page_keeps_others_bytes(void **state) {
    size_t whole, other_whole;
    unsigned char *bytes = add_large(CUT_LEN, &whole);
    unsigned char *other = add_large(CUT_OTHER, &other_whole);
    char *memory = malloc(CUT_LEN + CUT_OTHER + 2 * OS_HUGE_PAGE);
    (void)state;
    fault_need(memory != NULL);
    char *page = memory + (2 * OS_HUGE_PAGE - (uintptr_t)memory % OS_HUGE_PAGE);
    char *base = page - CUT_BEFORE - CUT_SMALL / 2;
    const unsigned char *data = bytes + whole - CUT_LEN, *small = other + other_whole - CUT_OTHER;
    assert_int_not_equal(small[CUT_SMALL / 2], 0);
    os_fake_reset();
    os_fake_huge(true);
    os_fake_add_file("/large", bytes, whole);
    os_fake_add_file("/other", other, other_whole);
    load_cut(base);
    assert_true(os_fake_huge_bytes() > 0);
    assert_memory_equal(base, data, CUT_BEFORE);
    assert_memory_equal(base + CUT_BEFORE, small, CUT_SMALL);
    assert_memory_equal(base + CUT_BEFORE + CUT_SMALL, data + CUT_BEFORE, CUT_LEN - CUT_BEFORE);
    assert_memory_equal(base + CUT_LEN + CUT_SMALL, small + CUT_SMALL, CUT_OTHER - CUT_SMALL);
    os_fake_reset();
    free(memory);
    free(other);
    free(bytes);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(play_loads),
        cmocka_unit_test(same_bytes),
        cmocka_unit_test(small_is_not_asked),
        cmocka_unit_test(cold_is_read_directly),
        cmocka_unit_test(huge_pages_while_quick),
        cmocka_unit_test(tried_page_keeps_others_bytes),
    };
    return cmocka_run_group_tests_name("plans over a failing system", tests, NULL, NULL);
}
