/* Sources, sinks and the writer over a system of which the nth call fails, for every n,
 * once and from then on: no crash, no leak, the old file or the new one, and no leftover files. */
#include "bytes/source.h"
#include "os_fake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const int errnos[] = { EIO, ENOSPC, EACCES, ENOMEM, ENOENT, EEXIST, EINVAL, EOPNOTSUPP,
                              EMFILE, EINTR };
#define ERRNOS (sizeof errnos / sizeof *errnos)

/* An allocator that counts, and fails the nth. */
typedef struct fault_memory {
    size_t calls, fail_at;
    int64_t held;
} fault_memory;

static void *fault_resize(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    fault_memory *m = ctx;
    if (new_size > 0 && ++m->calls == m->fail_at) return NULL;
    m->held += (int64_t)new_size - (int64_t)old_size;
    if (new_size > 0) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

static fault_memory memory;
static const sft_allocator alloc = { fault_resize, &memory };

static void expect_nothing_left(void) {
    assert_int_equal(os_fake_open_fds(), 0);
    assert_int_equal(os_fake_maps(), 0);
    assert_int_equal(os_fake_blocks(), 0);
    assert_int_equal(memory.held, 0);
}

static void expect_family(sft_code code, const sft_error *err) {
    assert_int_equal(err->code, code);
    assert_true(strlen(err->message) > 0);
    sft_class cls = sft_code_describe(code)->cls;
    assert_true(cls == SFT_CLASS_IO || cls == SFT_CLASS_STATE || cls == SFT_CLASS_LIMIT);
}

/* ── Writing one file ── */

typedef struct scene {
    const char *name;
    bool old_file, unnamed, link;
    sft_path_options options;
} scene;

static const scene scenes[] = {
    { "new, unnamed", false, true, false, SFT_PATH_OPTIONS_INIT },
    { "new, named", false, false, false, SFT_PATH_OPTIONS_INIT },
    { "replaced, unnamed", true, true, false, SFT_PATH_OPTIONS_INIT },
    { "replaced, named", true, false, false, SFT_PATH_OPTIONS_INIT },
    { "link followed", true, true, true,
      { sizeof(sft_path_options), false, false, SFT_LINK_FOLLOW, 0, NULL, false,
        0, false, false, false } },
    { "link replaced", true, false, true, SFT_PATH_OPTIONS_INIT },
    { "no_clobber, unnamed", false, true, false,
      { sizeof(sft_path_options), false, true, SFT_LINK_REPLACE, 0600, NULL, false,
        0, false, false, false } },
    { "no_clobber, named", false, false, false,
      { sizeof(sft_path_options), true, true, SFT_LINK_REPLACE, 0600, NULL, false,
        0, false, false, false } },
};
#define SCENES (sizeof scenes / sizeof *scenes)

static void set_scene(const scene *s) {
    os_fake_reset();
    memset(&memory, 0, sizeof memory);
    os_fake_add_dir("/dir");
    os_fake_no_unnamed(!s->unnamed);
    os_fake_short_writes(3);
    if (s->link) os_fake_add_link("/dir/target", "real");
    if (!s->old_file) return;
    os_fake_add_file(s->link ? "/dir/real" : "/dir/target", "old", 3);
    os_fake_set_mode(s->link ? "/dir/real" : "/dir/target", 0640);
}

static sft_code write_file(const scene *s, sft_error *err) {
    sft_path_options options = s->options;
    sft_sink sink;
    options.alloc = &alloc;
    sft_code code = sft_sink_path("/dir/target", &options, &sink, err);
    if (code != SFT_OK) return code;
    code = sft_sink_expect(&sink, 8, err);
    if (code == SFT_OK) code = sft_sink_write(&sink, 4, "file", 4, err);
    if (code == SFT_OK) code = sft_sink_write(&sink, 0, "new ", 4, err);
    if (code == SFT_OK) return sft_sink_finish(&sink, err);
    sft_sink_abandon(&sink);
    return code;
}

static bool holds(const char *path, const char *text) {
    size_t len;
    const void *bytes = os_fake_file(path, &len);
    return bytes && len == strlen(text) && memcmp(bytes, text, len) == 0;
}

/* The old state, or the new one; returns whether it is the new one. */
static bool expect_old_or_new(const scene *s) {
    const char *path = s->options.link == SFT_LINK_FOLLOW && s->link ? "/dir/real"
                                                                     : "/dir/target";
    if (holds(path, "new file")) return true;
    if (s->link) {
        assert_true(holds("/dir/real", "old"));
        assert_true(os_fake_exists("/dir/target"));
        assert_null(os_fake_file("/dir/target", NULL));
    } else if (s->old_file) {
        assert_true(holds(path, "old"));
    } else {
        assert_false(os_fake_exists(path));
    }
    return false;
}

static void test_write_works(void **state) {
    (void)state;
    for (size_t i = 0; i < SCENES; i++) {
        const scene *s = &scenes[i];
        sft_error err = SFT_ERROR_INIT;
        set_scene(s);
        size_t before = os_fake_count_files();
        os_fake_fail(0, 0, false);
        sft_code code = write_file(s, &err);
        if (code != SFT_OK) print_error("%s: %s\n", s->name, err.message);
        assert_int_equal(code, SFT_OK);
        assert_true(expect_old_or_new(s));
        assert_int_equal(os_fake_count_files(), before + !s->old_file);
        assert_int_equal(os_fake_syncs(), s->options.no_sync ? 0 : 2);
        expect_nothing_left();
        os_info info;
        const char *path = s->link && s->options.link == SFT_LINK_FOLLOW ? "/dir/real"
                                                                         : "/dir/target";
        assert_int_equal(sfti_os_info_path(path, false, &info), 0);
        assert_int_equal(info.mode, s->options.mode ? 0600 : s->old_file ? 0640 : 0644);
    }
}

static void fail_write(const scene *s, size_t nth, int error, bool forever) {
    sft_error err = SFT_ERROR_INIT;
    set_scene(s);
    size_t before = os_fake_count_files();
    os_fake_fail(nth, error, forever);
    sft_code code = write_file(s, &err);
    os_fake_fail(0, 0, false);
    bool fresh = expect_old_or_new(s);
    if (code == SFT_OK) {
        assert_true(fresh);
    } else {
        expect_family(code, &err);
        assert_false(fresh); /* after publication nothing fails */
    }
    /* Only where not even removing works may the hidden file stay. */
    size_t most = before + (fresh && !s->old_file) + forever;
    if (os_fake_count_files() > most) {
        print_error("%s: call %zu, errno %d, forever %d: leftovers\n", s->name, nth, error,
                    forever);
    }
    assert_true(os_fake_count_files() <= most);
    if (!forever) assert_true(os_fake_count_files() == before + (fresh && !s->old_file));
    expect_nothing_left();
}

static void test_write_fails(void **state) {
    (void)state;
    for (size_t i = 0; i < SCENES; i++) {
        set_scene(&scenes[i]);
        os_fake_fail(0, 0, false);
        assert_int_equal(write_file(&scenes[i], NULL), SFT_OK);
        size_t calls = os_fake_calls();
        assert_true(calls > 5);
        for (size_t n = 1; n <= calls; n++) {
            for (size_t e = 0; e < ERRNOS; e++) {
                /* A link that is said not to be there cannot be followed. */
                if (n == 1 && scenes[i].link && errnos[e] == ENOENT) continue;
                fail_write(&scenes[i], n, errnos[e], false);
                fail_write(&scenes[i], n, errnos[e], true);
            }
        }
    }
}

static void test_write_no_memory(void **state) {
    (void)state;
    for (size_t i = 0; i < SCENES; i++) {
        sft_error err = SFT_ERROR_INIT;
        set_scene(&scenes[i]);
        memory.fail_at = 1;
        assert_int_equal(write_file(&scenes[i], &err), SFT_OUT_OF_MEMORY);
        assert_false(expect_old_or_new(&scenes[i]));
        expect_nothing_left();
    }
}

/* A disk that fills up while there is no preallocation, and while there is. */
static void test_disk_full(void **state) {
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    for (size_t cap = 0; cap < 8; cap++) {
        for (size_t i = 0; i < SCENES; i++) {
            set_scene(&scenes[i]);
            os_fake_disk_space(cap);
            if (cap % 2) os_fake_fail_call("sfti_os_preallocate", 1, EOPNOTSUPP, false);
            assert_int_equal(write_file(&scenes[i], &err), SFT_IO_WRITE);
            assert_int_equal(err.os_errno, ENOSPC);
            assert_false(expect_old_or_new(&scenes[i]));
            expect_nothing_left();
        }
    }
}

/* A file system that has no folders to sync is no failure; one that fails at it is, where the
 * name can be given back: what replaced another file stays, and then is none. */
static void test_folder_sync(void **state) {
    (void)state;
    for (size_t i = 0; i < SCENES; i++) {
        sft_error err = SFT_ERROR_INIT;
        const scene *s = &scenes[i];
        if (s->options.no_sync) continue;
        set_scene(s);
        os_fake_fail_call("sfti_os_sync", 2, EINVAL, false);
        assert_int_equal(write_file(s, &err), SFT_OK);
        assert_true(expect_old_or_new(s));
        set_scene(s);
        os_fake_fail_call("sfti_os_sync", 2, EIO, false);
        assert_int_equal(write_file(s, &err), s->old_file || s->link ? SFT_OK : SFT_IO_SYNC);
        assert_int_equal(expect_old_or_new(s), s->old_file || s->link);
    }
}

/* No descriptor for the folder: it is told before the name is given. */
static void test_folder_unopened(void **state) {
    (void)state;
    for (size_t i = 0; i < SCENES; i++) {
        sft_error err = SFT_ERROR_INIT;
        if (scenes[i].options.no_sync) continue;
        set_scene(&scenes[i]);
        size_t before = os_fake_count_files();
        os_fake_fail_call("sfti_os_open_folder", 1, EMFILE, false);
        assert_int_equal(write_file(&scenes[i], &err), SFT_IO_OPEN);
        assert_int_equal(err.os_errno, EMFILE);
        assert_false(expect_old_or_new(&scenes[i]));
        assert_int_equal(os_fake_count_files(), before);
        expect_nothing_left();
    }
}

/* ── A whole safetensors file ── */

static sft_code write_tensors(sft_error *err) {
    static const uint64_t shape[] = { 4 };
    const sft_spec specs[] = { { { "a", 1 }, SFT_U8, 1, shape },
                               { { "b", 1 }, SFT_F32, 1, shape } };
    sft_plan_options plan_options = SFT_PLAN_OPTIONS_INIT;
    sft_path_options path_options = SFT_PATH_OPTIONS_INIT;
    sft_plan *plan = NULL;
    sft_writer *writer = NULL;
    sft_sink sink;
    plan_options.alloc = path_options.alloc = &alloc;
    sft_code code = sft_plan_new(specs, 2, NULL, 0, &plan_options, &plan, err);
    if (code == SFT_OK) code = sft_sink_path("/dir/target", &path_options, &sink, err);
    if (code == SFT_OK) code = sft_writer_begin(plan, sink, &writer, err);
    if (code == SFT_OK) code = sft_writer_put(writer, 1, "aaaa", 4, err);
    if (code == SFT_OK) code = sft_writer_put(writer, 0, "bbbbbbbbbbbbbbbb", 16, err);
    if (code == SFT_OK) {
        code = sft_writer_finish(writer, err);
    } else {
        sft_writer_abandon(writer);
    }
    sft_plan_free(plan);
    return code;
}

static bool tensors_written(void) {
    size_t len;
    const char *bytes = os_fake_file("/dir/target", &len);
    return bytes && len > 20 && memcmp(bytes + len - 20, "bbbbbbbbbbbbbbbbaaaa", 20) == 0;
}

static void test_writer_fails(void **state) {
    (void)state;
    set_scene(&scenes[0]);
    os_fake_fail(0, 0, false);
    assert_int_equal(write_tensors(NULL), SFT_OK);
    assert_true(tensors_written());
    size_t calls = os_fake_calls(), allocations = memory.calls;
    for (size_t n = 1; n <= calls; n++) {
        for (int forever = 0; forever < 2; forever++) {
            sft_error err = SFT_ERROR_INIT;
            set_scene(&scenes[0]);
            os_fake_fail(n, EIO, forever);
            sft_code code = write_tensors(&err);
            if (code != SFT_OK) expect_family(code, &err);
            if (code == SFT_OK) continue;
            assert_false(os_fake_exists("/dir/target"));
            expect_nothing_left();
        }
    }
    for (size_t n = 1; n <= allocations; n++) {
        sft_error err = SFT_ERROR_INIT;
        set_scene(&scenes[0]);
        memory.fail_at = n;
        assert_int_equal(write_tensors(&err), SFT_OUT_OF_MEMORY);
        assert_int_equal(os_fake_count_files(), 0);
        expect_nothing_left();
    }
}

/* ── Reading ── */

static sft_code read_all(const char *path, bool map, sft_error *err) {
    sft_open_options how = SFT_OPEN_OPTIONS_INIT;
    sft_source source, mapped;
    char buffer[10];
    int fd;
    os_info info;
    how.alloc = &alloc;
    sft_code code = sfti_source_open(path, &how, &source, &fd, &info, err);
    if (code != SFT_OK) return code;
    code = sfti_source_all(&source, 0, buffer, sizeof buffer, err);
    if (code == SFT_OK) assert_memory_equal(buffer, "0123456789", 10);
    if (code == SFT_OK && map) {
        code = sfti_source_map(fd, source.size, true, 0, &alloc, &mapped, err);
        if (code == SFT_OK) assert_memory_equal(mapped.base, "0123456789", 10);
        if (code == SFT_OK) sft_source_close(&mapped);
    }
    sft_source_close(&source);
    return code;
}

static void set_reading(void) {
    os_fake_reset();
    memset(&memory, 0, sizeof memory);
    os_fake_add_file("/dir/file", "0123456789", 10);
    os_fake_add_pipe("/dir/pipe", "0123456789", 10);
    os_fake_short_reads(3);
}

static void test_read_fails(void **state) {
    static const char *const paths[] = { "/dir/file", "/dir/pipe" };
    (void)state;
    for (int p = 0; p < 2; p++) {
        set_reading();
        os_fake_fail(0, 0, false);
        assert_int_equal(read_all(paths[p], p == 0, NULL), SFT_OK);
        size_t calls = os_fake_calls(), allocations = memory.calls;
        assert_int_equal(os_fake_reads(), 4);
        for (size_t n = 1; n < calls; n++) { /* the last is the close, which tells nobody */
            for (size_t e = 0; e < ERRNOS; e++) {
                sft_error err = SFT_ERROR_INIT;
                set_reading();
                os_fake_fail(n, errnos[e], e % 2);
                sft_code code = read_all(paths[p], p == 0, &err);
                assert_true(code != SFT_OK);
                expect_family(code, &err);
                assert_int_equal(err.os_errno, errnos[e]);
                expect_nothing_left();
            }
        }
        for (size_t n = 1; n <= allocations; n++) {
            set_reading();
            memory.fail_at = n;
            assert_int_equal(read_all(paths[p], p == 0, NULL), SFT_OUT_OF_MEMORY);
            expect_nothing_left();
        }
    }
}

static void test_shrunk(void **state) {
    sft_open_options how = SFT_OPEN_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_source source;
    char buffer[10];
    (void)state;
    how.alloc = &alloc;
    set_reading();
    assert_int_equal(sfti_source_open("/dir/file", &how, &source, NULL, NULL, &err), SFT_OK);
    os_fake_set_size("/dir/file", 7);
    assert_int_equal(sfti_source_all(&source, 0, buffer, 10, &err), SFT_IO_SHRUNK);
    assert_int_equal(err.offset, 7);
    sft_source_close(&source);
    expect_nothing_left();
}

/* ── The fake itself: what the tests of others stand on ── */

static void test_fake(void **state) {
    char buffer[64];
    int fd;
    size_t len;
    os_info info;
    (void)state;
    os_fake_reset();
    os_fake_add_file("/a/b/../c/./file", "x", 1);
    os_fake_add_link("/a/up", "c");
    os_fake_add_link("/a/loop", "loop");
    os_fake_add_link("abs", "/a/c");
    assert_true(os_fake_exists("/a/c/file"));
    assert_int_equal(sfti_os_info_path("a/up/file", false, &info), 0);
    assert_int_equal(sfti_os_info_path("abs/../up/file", false, &info), 0);
    assert_int_equal(info.kind, OS_FILE);
    assert_int_equal(sfti_os_info_path("/a/up", false, &info), 0);
    assert_int_equal(info.kind, OS_LINK);
    assert_int_equal(sfti_os_info_path("/a/up/", false, &info), 0);
    assert_int_equal(info.kind, OS_DIR);
    assert_int_equal(sfti_os_info_path("/a/loop", true, &info), ELOOP);
    assert_int_equal(sfti_os_info_path("/a/c/file/x", true, &info), ENOTDIR);
    assert_int_equal(sfti_os_info_path("/none/x", true, &info), ENOENT);
    assert_int_equal(sfti_os_info_path("", true, &info), ENOENT);
    assert_int_equal(sfti_os_info_path(".", true, &info), 0);
    assert_int_equal(info.kind, OS_DIR);
    assert_int_equal(sfti_os_real_path("abs/file", buffer, sizeof buffer), 0);
    assert_string_equal(buffer, "/a/c/file");
    assert_int_equal(sfti_os_read_link("abs", buffer, sizeof buffer), 0);
    assert_string_equal(buffer, "/a/c");
    assert_int_equal(sfti_os_read_link("abs", buffer, 4), ENAMETOOLONG);
    assert_int_equal(sfti_os_read_link("/a/c/file", buffer, sizeof buffer), EINVAL);
    assert_int_equal(sfti_os_read_link("none", buffer, sizeof buffer), ENOENT);
    assert_int_equal(sfti_os_open_read("/a", &fd), 0);
    assert_int_equal(sfti_os_pread(fd, buffer, 1, 0, &len), EISDIR);
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_equal(sfti_os_open_read("/", &fd), 0);
    assert_int_equal(os_fake_open_fds(), 1);
    assert_int_equal(sfti_os_close(fd), 0);
    os_fake_fail_call("sfti_os_write", 2, EPIPE, true);
    assert_int_equal(sfti_os_write(1, "ab", 2, &len), 0);
    assert_int_equal(sfti_os_write(1, "cd", 2, &len), EPIPE);
    assert_int_equal(sfti_os_write(1, "cd", 2, &len), EPIPE);
    assert_int_equal(os_fake_calls(), 3);
    assert_string_equal(os_fake_call_name(3), "sfti_os_write");
    assert_null(os_fake_call_name(4));
    assert_memory_equal(os_fake_output(1, &len), "ab", 2);
    assert_int_equal(len, 2);
    os_fake_fail(0, 0, false);
    os_fake_set_input(OS_FILE, "12345", 5);
    assert_int_equal(sfti_os_pread(0, buffer, 9, 3, &len), 0);
    assert_int_equal(len, 2);
    os_fake_set_input(OS_PIPE, "12345", 5);
    assert_int_equal(sfti_os_pread(0, buffer, 9, 3, &len), ESPIPE);
    assert_int_equal(sfti_os_read(0, buffer, 9, &len), 0);
    assert_int_equal(len, 5);
    os_fake_reset();
    assert_int_equal(os_fake_count_files(), 0);
}

static int clean(void **state) {
    (void)state;
    os_fake_reset();
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fake), cmocka_unit_test(test_write_works),
        cmocka_unit_test(test_write_fails), cmocka_unit_test(test_write_no_memory),
        cmocka_unit_test(test_disk_full), cmocka_unit_test(test_folder_sync),
        cmocka_unit_test(test_folder_unopened),
        cmocka_unit_test(test_writer_fails), cmocka_unit_test(test_read_fails),
        cmocka_unit_test(test_shrunk),
    };
    return cmocka_run_group_tests_name("bytes over a failing system", tests, NULL, clean);
}
