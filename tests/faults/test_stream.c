/* The other ways to write, over a system of which the nth allocation or call fails: tensors
 * added one by one, bytes past the page cache, elements at distances. */
#include "faults.h"
#include "safetensors_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <string.h>

#define TARGET "/dir/target"

enum { ADDED, STRIDED, DIRECT, DIRECT_SHORT, DIRECT_ODD, DIRECT_REFUSED };

static size_t files_before;
static char data[30000];

static void set_target(const fault_scene *scene) {
    for (size_t i = 0; i < sizeof data; i++) data[i] = (char)(i * 7 + i / 100);
    if (scene->path) os_fake_add_file(TARGET, "old", 3);
    os_fake_can_direct(scene->way >= DIRECT && scene->way < DIRECT_REFUSED);
    os_fake_direct_unit(scene->way == DIRECT_ODD ? 1 << 20 : 0);
    os_fake_short_writes(scene->way == DIRECT_SHORT ? 5000 : 0);
    files_before = os_fake_count_files();
}

static sft_code open_target(const fault_scene *scene, sft_sink *sink, sft_error *err) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    options.alloc = &fault_alloc;
    options.direct = scene->way >= DIRECT;
    return sft_sink_path(TARGET, &options, sink, err);
}

static sft_code add_tensors(sft_writer *writer, sft_error *err) {
    char name[] = "tensor.000";
    const uint64_t shape[] = { 50 };
    sft_code code = SFT_OK;
    for (int n = 0; n < 70 && !code; n++) {
        size_t i;
        sft_spec spec = { { name, sizeof name - 1 }, SFT_U8, 1, shape };
        name[7] = (char)('0' + n / 10);
        name[8] = (char)('0' + n % 10);
        code = sft_writer_add(writer, &spec, &i, err);
        if (!code) code = sft_writer_put(writer, i, data + n, 50, err);
    }
    return code;
}

static sft_code run_added(sft_sink sink, sft_error *err) {
    static const sft_pair pair = { { "k", 1 }, { "v", 1 } };
    sft_writer_options options = SFT_WRITER_OPTIONS_INIT;
    sft_writer *writer;
    options.alloc = &fault_alloc;
    options.metadata = &pair;
    options.metadata_count = 1;
    options.header_bytes = 8000;
    sft_code code = sft_writer_begin_unplanned(&options, sink, &writer, err);
    if (code) return code;
    code = add_tensors(writer, err);
    if (!code) return sft_writer_finish(writer, err);
    sft_writer_abandon(writer);
    return code;
}

static sft_code run_part(const fault_scene *scene, sft_sink sink, sft_error *err) {
    static const uint64_t shape[] = { 100, 150 };
    static const int64_t turned[] = { 2, 200 }, plain[] = { 300, 2 };
    sft_plan_options options = SFT_PLAN_OPTIONS_INIT;
    sft_source source;
    options.alloc = &fault_alloc;
    options.spare = 500;
    const int64_t *strides = scene->way == STRIDED ? turned : plain;
    sft_code code = sft_source_strided(SFT_F16, shape, 2, data, strides, &fault_alloc, &source,
                                       err);
    if (code) {
        sft_sink_abandon(&sink);
        return code;
    }
    sft_part part = { { { "w", 1 }, SFT_F16, 2, shape }, &source, 0 };
    code = sft_save_parts(&part, 1, NULL, 0, &options, sink, NULL, err);
    sft_source_close(&source);
    return code;
}

static void run_stream(const fault_scene *scene, fault_seen *seen) {
    sft_sink sink;
    sft_code code = open_target(scene, &sink, &seen->err);
    if (!code)
        code = scene->way == ADDED ? run_added(sink, &seen->err)
                                   : run_part(scene, sink, &seen->err);
    seen->status = code;
    size_t len;
    const void *bytes = os_fake_file(TARGET, &len);
    if (!code && bytes) fault_see_bytes(seen, bytes, len);
}

static const char *judge_target(const fault_scene *scene, const fault_seen *seen, bool lasting) {
    size_t len;
    const char *bytes = os_fake_file(TARGET, &len);
    bool old = bytes && len == 3, fresh = bytes && !old;
    size_t most = files_before + (fresh && !scene->path);
    if (seen->status == SFT_OK && !fresh) return "success, and no file";
    if (seen->status != SFT_OK && fresh) return "failure, and a new file";
    if (scene->path && !bytes) return "the old file is gone";
    return os_fake_count_files() > most + lasting ? "a hidden file is left" : NULL;
}

#define STREAM(what, old) { .name = "stream " #what, .run = run_stream, .way = what, \
    .path = old, .writes = true, .set = set_target, .after = judge_target }

static const fault_scene streams[] = {
    STREAM(ADDED, NULL),   STREAM(ADDED, TARGET),  STREAM(STRIDED, TARGET),
    STREAM(DIRECT, NULL),  STREAM(DIRECT, TARGET), STREAM(DIRECT_SHORT, TARGET),
    STREAM(DIRECT_ODD, TARGET), STREAM(DIRECT_REFUSED, TARGET),
};

/* ── Past the page cache, and back ── */

#define LARGE ((size_t)20 << 20)
#define HEAD 80 /* the length, the text of 67 bytes, spaces */

static size_t count_calls(const char *name) {
    size_t count = 0;
    const char *call;
    for (size_t n = 1; (call = os_fake_call_name(n)); n++) count += strcmp(call, name) == 0;
    return count;
}

static char *large_bytes(void) {
    char *bytes = test_malloc(LARGE);
    for (size_t i = 0; i < LARGE; i++) bytes[i] = (char)(i * 13 + i / 4096);
    return bytes;
}

/* One block of 8 MiB at a time, and no other. */
static void *resize_once(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    size_t *large = ctx;
    bool counts = new_size > (size_t)8 << 20;
    if (counts && *large > 0) return NULL;
    *large += counts;
    *large -= old_size > (size_t)8 << 20;
    return fault_alloc.resize(fault_alloc.ctx, ptr, old_size, new_size);
}

static void save_large(const char *bytes, bool one_block) {
    static const uint64_t shape[] = { LARGE };
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_sink sink;
    sft_source source = sft_source_memory(bytes, LARGE);
    sft_part part = { { { "w", 1 }, SFT_U8, 1, shape }, &source, 0 };
    size_t large = 0;
    const sft_allocator small = { resize_once, &large };
    options.direct = true;
    if (one_block) options.alloc = &small;
    assert_int_equal(sft_sink_path(TARGET, &options, &sink, &err), SFT_OK);
    assert_int_equal(sft_save_parts(&part, 1, NULL, 0, NULL, sink, NULL, &err), SFT_OK);
}

/* 20 MiB and a head: two blocks of 8 MiB, what is whole of the rest, and the last bytes. */
static const struct large_case {
    const char *what;
    bool can;
    size_t most, unit, flags, writes;
} large_cases[] = {
    { "taken", true, 0, 0, 2, 4 },
    { "the file system has no such thing", false, 0, 0, 1, 4 },
    { "refused from the first byte", true, 0, (size_t)16 << 20, 2, 5 },
    { "refused from byte 16 Mi", true, 0, (size_t)8 << 20, 2, 5 },
    { "taken in part, no whole units", true, ((size_t)8 << 20) - 5000, 0, 2, 6 },
    { "taken in part, whole units", true, ((size_t)8 << 20) - 8192, 0, 2, 6 },
};

static void play_large(void **state) {
    (void)state;
    char *bytes = large_bytes();
    for (size_t i = 0; i < sizeof large_cases / sizeof *large_cases; i++) {
        const struct large_case *c = &large_cases[i];
        size_t len;
        os_fake_reset();
        fault_world();
        os_fake_can_direct(c->can);
        os_fake_short_writes(c->most);
        os_fake_direct_unit(c->unit);
        os_fake_fail(0, 0, false);
        save_large(bytes, false);
        const char *found = os_fake_file(TARGET, &len);
        if (!found || len != HEAD + LARGE || memcmp(found + HEAD, bytes, LARGE) != 0)
            fail_msg("%s: the bytes are not those that were given", c->what);
        if (count_calls("sfti_os_set_direct") != c->flags ||
            count_calls("sfti_os_pwrite") != c->writes)
            fail_msg("%s: %zu times set, %zu writes", c->what, count_calls("sfti_os_set_direct"),
                     count_calls("sfti_os_pwrite"));
    }
    os_fake_reset();
    test_free(bytes);
}

/* Block 2 of 3 is refused: its byte is named, by a later call, and nothing else is written. */
static void play_refused(void **state) {
    (void)state;
    char *bytes = large_bytes();
    for (int threads = 0; threads < 2; threads++) {
        sft_path_options options = SFT_PATH_OPTIONS_INIT;
        sft_error err = SFT_ERROR_INIT;
        sft_sink sink;
        options.direct = true;
        os_fake_reset();
        fault_world();
        os_fake_can_direct(true);
        os_fake_fail(0, 0, false);
        if (!threads) os_fake_fail_call("sfti_os_thread_start", 1, EAGAIN, true);
        assert_int_equal(sft_sink_path(TARGET, &options, &sink, &err), SFT_OK);
        assert_int_equal(sft_sink_write(&sink, 0, bytes, (size_t)8 << 20, &err), SFT_OK);
        os_fake_fail_call("sfti_os_pwrite", 1, ENOSPC, false);
        assert_int_equal(sft_sink_write(&sink, 8 << 20, bytes, (size_t)8 << 20, &err), SFT_OK);
        assert_int_equal(sft_sink_write(&sink, 16 << 20, bytes, (size_t)1 << 20, &err), SFT_OK);
        assert_int_equal(sft_sink_finish(&sink, &err), SFT_IO_WRITE);
        assert_int_equal(err.os_errno, ENOSPC);
        assert_int_equal(err.offset, 8 << 20);
        assert_int_equal(count_calls("sfti_os_pwrite"), 1);
        assert_null(os_fake_file(TARGET, &(size_t){ 0 }));
    }
    os_fake_reset();
    test_free(bytes);
}

/* Neither threads nor a second block change the bytes. */
static void play_alone(void **state) {
    (void)state;
    char *bytes = large_bytes();
    for (int way = 0; way < 3; way++) {
        size_t len;
        os_fake_reset();
        fault_world();
        os_fake_can_direct(true);
        os_fake_fail(0, 0, false);
        if (way == 1) os_fake_fail_call("sfti_os_thread_start", 1, EAGAIN, true);
        save_large(bytes, way == 2);
        const char *found = os_fake_file(TARGET, &len);
        assert_non_null(found);
        assert_int_equal(len, HEAD + LARGE);
        assert_memory_equal(found + HEAD, bytes, LARGE);
        assert_int_equal(count_calls("sfti_os_thread_start"), way == 2 ? 0 : 2);
        assert_int_equal(count_calls("sfti_os_pwrite"), 4);
    }
    os_fake_reset();
    test_free(bytes);
}

static void play_streams(void **state) {
    (void)state;
    assert_true(fault_play(streams, sizeof streams / sizeof *streams, 400, 200));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(play_streams),
                                        cmocka_unit_test(play_large),
                                        cmocka_unit_test(play_refused),
                                        cmocka_unit_test(play_alone) };
    return cmocka_run_group_tests_name("streams over a failing system", tests, NULL, NULL);
}
