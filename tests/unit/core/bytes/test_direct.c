/* Files written past the page cache, by a thread while the next block is filled. */
#define _GNU_SOURCE
#include "safetensors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/temp_dir.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

#define MOST (((size_t)28 << 20) + 777)
#define BLOCK ((size_t)8 << 20)

#ifdef __has_feature
#if __has_feature(thread_sanitizer)
/* A child of fork() has no threads: the one that its parent had ended counts as lost there. */
const char *__tsan_default_options(void);
const char *__tsan_default_options(void) {
    return "report_thread_leaks=0";
}

/* Nor can it wait for that thread, whose writes are from before the fork. */
void AnnotateIgnoreWritesBegin(const char *file, int line);
#define IGNORE_PARENTS_THREAD() AnnotateIgnoreWritesBegin(__FILE__, __LINE__)
#endif
#endif
#ifndef IGNORE_PARENTS_THREAD
#define IGNORE_PARENTS_THREAD() ((void)0)
#endif

static unsigned char *bytes;

/* Before anything is open. */
static void need_fork(void) {
#ifdef _WIN32
    skip();
#endif
}

static int make_bytes(void **state) {
    (void)state;
    bytes = malloc(MOST);
    for (size_t i = 0; bytes && i < MOST; i++) bytes[i] = (unsigned char)(i * 31 + i / 4093);
    return bytes ? temp_dir_make(state) : -1;
}

static int free_bytes(void **state) {
    free(bytes);
    return temp_dir_remove(state);
}

static sft_sink open_direct(const char *name) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_sink sink;
    options.direct = true;
    assert_int_equal(sft_sink_path(temp_path(name), &options, &sink, NULL), SFT_OK);
    return sink;
}

static void write_pieces(sft_sink *sink, size_t from, size_t to, size_t piece) {
    for (size_t at = from; at < to; at += piece) {
        size_t len = to - at < piece ? to - at : piece;
        assert_int_equal(sft_sink_write(sink, at, bytes + at, len, NULL), SFT_OK);
    }
}

static void expect_file(const char *name, size_t len) {
    unsigned char *found = malloc(len + 1);
    FILE *file = fopen(temp_path(name), "rb");
    assert_non_null(file);
    assert_int_equal(fread(found, 1, len + 1, file), len);
    assert_int_equal(memcmp(found, bytes, len), 0);
    (void)fclose(file);
    free(found);
}

/* ── Whole files ── */

static void test_sizes(void **state) {
    static const size_t sizes[] = { 0, 1, 4096, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK,
                                    3 * BLOCK + 4096, MOST };
    static const size_t pieces[] = { 1000003, BLOCK, MOST };
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t k = 0; k < sizeof pieces / sizeof *pieces; k++) {
            sft_sink sink = open_direct("file");
            write_pieces(&sink, 0, sizes[i], pieces[k]);
            assert_int_equal(sft_sink_finish(&sink, NULL), SFT_OK);
            expect_file("file", sizes[i]);
        }
    }
}

static void test_abandoned(void **state) {
    (void)state;
    sft_sink sink = open_direct("gone");
    write_pieces(&sink, 0, 3 * BLOCK, BLOCK);
    sft_sink_abandon(&sink);
    assert_int_equal(access(temp_path("gone"), F_OK), -1);
}

/* ── A disk that is full ── */

/* The file must not grow past byte `most`: errors name that byte, at the latest when finished, and
 * no file is there. */
static int fail_at(size_t most) {
    sft_error err = SFT_ERROR_INIT;
    struct rlimit limit = { most, most };
    sft_sink sink = open_direct("full");
    sft_code code = SFT_OK;
    (void)signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit)) return 2;
    for (size_t at = 0; at < MOST && !code; at += 1 << 20)
        code = sft_sink_write(&sink, at, bytes + at, MOST - at < 1 << 20 ? MOST - at : 1 << 20,
                              &err);
    if (code) sft_sink_abandon(&sink);
    else code = sft_sink_finish(&sink, &err);
    if (code != SFT_IO_WRITE || err.os_errno != EFBIG) return 3;
    if (access(temp_path("full"), F_OK) == 0) return 4;
    return err.offset == most ? 0 : 5;
}

static void test_full(void **state) {
    static const size_t ends[] = { 4096, BLOCK, BLOCK + 4096, 2 * BLOCK + 100, MOST - 1 };
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        int status = -1;
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            _exit(fail_at(ends[i]));
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
    }
}

/* ── fork() ── */

/* The child has neither the thread nor anything to wait for; the parent goes on. */
static void test_forked(void **state) {
    (void)state;
    need_fork();
    for (int i = 0; i < 3; i++) {
        int status = -1;
        sft_sink sink = open_direct("file");
        write_pieces(&sink, 0, 2 * BLOCK, BLOCK);
        pid_t child = fork();
        if (child == 0) {
            alarm(20);
            sft_sink_abandon(&sink);
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        assert_int_equal(status, 0);
        write_pieces(&sink, 2 * BLOCK, MOST, 100000);
        assert_int_equal(sft_sink_finish(&sink, NULL), SFT_OK);
        expect_file("file", MOST);
    }
}

/* A child that goes on writes what its thread would have written. (It starts none of its own:
 * ThreadSanitizer does not allow that.) */
static void test_child_finishes(void **state) {
    int status = -1;
    (void)state;
    need_fork();
    sft_sink sink = open_direct("child");
    write_pieces(&sink, 0, 2 * BLOCK, BLOCK);
    pid_t child = fork();
    if (child == 0) {
        IGNORE_PARENTS_THREAD();
        alarm(20);
        if (sft_sink_write(&sink, 2 * BLOCK, bytes + 2 * BLOCK, 1000, NULL)) _exit(2);
        _exit(sft_sink_finish(&sink, NULL) ? 3 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    sft_sink_abandon(&sink);
    expect_file("child", 2 * BLOCK + 1000);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),  cmocka_unit_test(test_abandoned),
        cmocka_unit_test(test_full),   cmocka_unit_test(test_forked),
        cmocka_unit_test(test_child_finishes),
    };
    return cmocka_run_group_tests(tests, make_bytes, free_bytes);
}
