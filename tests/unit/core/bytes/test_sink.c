/* Sinks, copying, and the file that appears whole or not at all. */
#define _GNU_SOURCE
#include "safetensors.h"
#include "safetensors_io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/temp_dir.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>

static sft_code put(sft_sink *sink, uint64_t at, const char *text, sft_error *err) {
    return sft_sink_write(sink, at, text, strlen(text), err);
}

/* ── Memory, descriptor, callback, tee ── */

static void test_memory(void **state) {
    sft_buffer buffer = { 0 };
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    sft_sink sink = sft_sink_memory(&buffer);
    assert_true(sink.seekable);
    assert_int_equal(sft_sink_expect(&sink, 12, &err), SFT_OK);
    assert_true(buffer.cap >= 12);
    assert_int_equal(put(&sink, 6, "world!", &err), SFT_OK);
    assert_int_equal(buffer.len, 12);
    assert_memory_equal(buffer.data, "\0\0\0\0\0\0world!", 12);
    assert_int_equal(put(&sink, 0, "hello ", &err), SFT_OK);
    assert_int_equal(sft_sink_write(&sink, 99, NULL, 0, &err), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    assert_int_equal(buffer.len, 12);
    assert_memory_equal(buffer.data, "hello world!", 12);
    sink = sft_sink_memory(&buffer);
    assert_int_equal(buffer.len, 0);
    assert_int_equal(put(&sink, 3, "x", &err), SFT_OK);
    assert_memory_equal(buffer.data, "\0\0\0x", 4);
    assert_int_equal(put(&sink, UINT64_MAX - 2, "xxxxxx", &err), SFT_OUT_OF_MEMORY);
    assert_int_equal(put(&sink, UINT64_MAX / 2, "x", &err), SFT_OUT_OF_MEMORY);
    sft_sink_abandon(&sink);
    assert_null(buffer.data);
    assert_int_equal(buffer.len, 0);
    sft_buffer_free(&buffer);
    sft_buffer_free(NULL);
}

static void test_fd(void **state) {
    sft_error err = SFT_ERROR_INIT;
    sft_sink sink;
    char buffer[16];
    int pipes[2];
    (void)state;
    int fd = open(temp_path("file"), O_RDWR | O_CREAT, 0644);
    assert_int_equal(sft_sink_fd(fd, NULL, &sink, &err), SFT_OK);
    assert_true(sink.seekable);
    assert_int_equal(put(&sink, 3, "def", &err), SFT_OK);
    assert_int_equal(put(&sink, 0, "abc", &err), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    assert_int_equal(close(fd), 0);
    assert_int_equal(temp_read("file", buffer, sizeof buffer), 6);
    assert_memory_equal(buffer, "abcdef", 6);

    fd = open(temp_path("file"), O_WRONLY | O_APPEND);
    assert_int_equal(sft_sink_fd(fd, NULL, &sink, &err), SFT_OK);
    assert_false(sink.seekable);
    assert_int_equal(put(&sink, 0, "gh", &err), SFT_OK);
    sft_sink_abandon(&sink);
    assert_int_equal(close(fd), 0);
    assert_int_equal(temp_read("file", buffer, sizeof buffer), 8);

    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(sft_sink_fd(pipes[1], NULL, &sink, &err), SFT_OK);
    assert_false(sink.seekable);
    assert_int_equal(put(&sink, 0, "ab", &err), SFT_OK);
    assert_int_equal(put(&sink, 3, "c", &err), SFT_OUT_OF_ORDER);
    assert_int_equal(err.offset, 3);
    assert_int_equal(put(&sink, 2, "c", &err), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    assert_int_equal(read(pipes[0], buffer, sizeof buffer), 3);
    assert_memory_equal(buffer, "abc", 3);
    close(pipes[0]);
    (void)signal(SIGPIPE, SIG_IGN);
    assert_int_equal(sft_sink_fd(pipes[1], NULL, &sink, &err), SFT_OK);
    assert_int_equal(put(&sink, 0, "x", &err), SFT_IO_WRITE);
    assert_int_equal(err.os_errno, EPIPE);
    sft_sink_abandon(&sink);
    close(pipes[1]);

    assert_int_equal(sft_sink_fd(0, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_sink_fd(-1, NULL, &sink, &err), SFT_IO_OPEN);
    assert_int_equal(err.os_errno, EBADF);
    fd = open(temp_dir, O_RDONLY);
    assert_int_equal(sft_sink_fd(fd, NULL, &sink, &err), SFT_IO_NOT_FILE);
    close(fd);
}

typedef struct heard {
    char text[64];
    size_t len, calls;
    sft_code answer;
} heard;

static sft_code hear(void *ctx, const void *bytes, size_t len, sft_error *err) {
    heard *h = ctx;
    h->calls++;
    if (h->answer != SFT_OK) return sft_error_set(err, h->answer, 5, "the caller says no");
    memcpy(h->text + h->len, bytes, len);
    h->len += len;
    return SFT_OK;
}

static void test_callback(void **state) {
    sft_error err = SFT_ERROR_INIT;
    heard h = { { 0 }, 0, 0, SFT_OK };
    sft_sink sink;
    (void)state;
    assert_int_equal(sft_sink_callback(hear, &h, NULL, &sink, &err), SFT_OK);
    assert_false(sink.seekable);
    assert_int_equal(put(&sink, 0, "ab", &err), SFT_OK);
    assert_int_equal(put(&sink, 1, "x", &err), SFT_OUT_OF_ORDER);
    assert_int_equal(put(&sink, 2, "", &err), SFT_OK);
    h.answer = SFT_CANCELLED;
    assert_int_equal(put(&sink, 2, "c", &err), SFT_CANCELLED);
    assert_string_equal(err.message, "the caller says no");
    assert_int_equal(err.os_errno, 5);
    h.answer = SFT_OK;
    assert_int_equal(put(&sink, 2, "c", &err), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    assert_int_equal(h.calls, 3);
    assert_memory_equal(h.text, "abc", 3);
    assert_int_equal(sft_sink_callback(NULL, &h, NULL, &sink, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_sink_callback(hear, &h, NULL, NULL, &err), SFT_BAD_ARGUMENT);
}

static void *no_memory(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    (void)ctx;
    (void)ptr;
    (void)old_size;
    (void)new_size;
    return NULL;
}

static void test_tee(void **state) {
    sft_allocator none = { no_memory, NULL };
    sft_buffer buffer = { 0 };
    heard h = { { 0 }, 0, 0, SFT_OK };
    sft_sink first, sink;
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    assert_int_equal(sft_sink_callback(hear, &h, NULL, &first, NULL), SFT_OK);
    assert_int_equal(sft_sink_tee(first, sft_sink_memory(&buffer), NULL, &sink, &err), SFT_OK);
    assert_false(sink.seekable);
    assert_int_equal(sft_sink_expect(&sink, 3, &err), SFT_OK);
    assert_int_equal(put(&sink, 0, "abc", &err), SFT_OK);
    assert_int_equal(put(&sink, 0, "abc", &err), SFT_OUT_OF_ORDER);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    assert_memory_equal(h.text, "abc", 3);
    assert_int_equal(buffer.len, 3);

    assert_int_equal(sft_sink_path(temp_path("file"), NULL, &first, NULL), SFT_OK);
    assert_int_equal(sft_sink_tee(first, sft_sink_memory(&buffer), &none, &sink, &err),
                     SFT_OUT_OF_MEMORY);
    assert_int_equal(temp_dir_count(), 0);

    assert_int_equal(sft_sink_path(temp_path("file"), NULL, &first, NULL), SFT_OK);
    assert_int_equal(sft_sink_tee(first, sft_sink_memory(&buffer), NULL, &sink, &err), SFT_OK);
    assert_int_equal(put(&sink, 0, "abc", &err), SFT_OK);
    sft_sink_abandon(&sink);
    assert_int_equal(buffer.len, 0);
    assert_int_equal(temp_dir_count(), 0);
    assert_int_equal(sft_sink_tee(sft_sink_memory(&buffer), sft_sink_memory(&buffer), NULL, NULL,
                                  &err), SFT_BAD_ARGUMENT);
    sft_buffer_free(&buffer);
}

/* What a tee's first half refuses, its second never sees. */
static void test_tee_fails(void **state) {
    sft_buffer buffer = { 0 }, other = { 0 };
    heard h = { { 0 }, 0, 0, SFT_IO_WRITE };
    sft_sink first, sink;
    sft_error err = SFT_ERROR_INIT;
    (void)state;
    assert_int_equal(sft_sink_callback(hear, &h, NULL, &first, NULL), SFT_OK);
    assert_int_equal(sft_sink_tee(first, sft_sink_memory(&buffer), NULL, &sink, &err), SFT_OK);
    assert_int_equal(put(&sink, 0, "abc", &err), SFT_IO_WRITE);
    assert_int_equal(buffer.len, 0);
    sft_sink_abandon(&sink);
    /* finish: the first fails, as its folder is gone; the second is abandoned */
    assert_int_equal(mkdir(temp_path("d"), 0755), 0);
    assert_int_equal(sft_sink_path(temp_path("d/file"), NULL, &first, NULL), SFT_OK);
    assert_int_equal(sft_sink_tee(first, sft_sink_memory(&buffer), NULL, &sink, &err), SFT_OK);
    assert_int_equal(put(&sink, 0, "abc", &err), SFT_OK);
    assert_int_equal(mkdir(temp_path("d/file"), 0755), 0);
    assert_int_not_equal(sft_sink_finish(&sink, &err), SFT_OK);
    assert_null(buffer.data);
    assert_int_equal(rmdir(temp_path("d/file")), 0);
    /* expect: neither half can hold so much */
    assert_int_equal(sft_sink_tee(sft_sink_memory(&other), sft_sink_memory(&buffer), NULL, &sink,
                                  &err), SFT_OK);
    assert_int_equal(sft_sink_expect(&sink, UINT64_MAX, &err), SFT_OUT_OF_MEMORY);
    sft_sink_abandon(&sink);
    h.answer = SFT_OK;
    assert_int_equal(sft_sink_callback(hear, &h, NULL, &first, NULL), SFT_OK);
    assert_int_equal(sft_sink_tee(sft_sink_memory(&buffer), first, NULL, &sink, &err), SFT_OK);
    assert_int_equal(sft_sink_expect(&sink, 3, &err), SFT_OK);
    sft_sink_abandon(&sink);
}

/* ── Copy ── */

static void test_copy(void **state) {
    size_t len = 3000001;
    char *big = malloc(len);
    sft_buffer buffer = { 0 };
    sft_error err = SFT_ERROR_INIT;
    sft_source file;
    (void)state;
    for (size_t i = 0; i < len; i++) big[i] = (char)(i % 253);
    temp_write("big", big, len);
    sft_source memory = sft_source_memory(big, len);
    int fd = open(temp_path("big"), O_RDONLY);
    assert_int_equal(sft_source_fd(fd, NULL, &file, &err), SFT_OK);
    const sft_source *both[] = { &memory, &file };
    for (int i = 0; i < 2; i++) {
        assert_int_equal(sft_copy(both[i], 7, SFT_SIZE_UNKNOWN, sft_sink_memory(&buffer),
                                  NULL, &err), SFT_OK);
        assert_int_equal(buffer.len, len - 7);
        assert_memory_equal(buffer.data, big + 7, len - 7);
        assert_int_equal(sft_copy(both[i], 5, 15, sft_sink_memory(&buffer), NULL, &err),
                         SFT_OK);
        assert_int_equal(buffer.len, 10);
        assert_memory_equal(buffer.data, big + 5, 10);
        assert_int_equal(sft_copy(both[i], len, SFT_SIZE_UNKNOWN, sft_sink_memory(&buffer),
                                  NULL, &err), SFT_OK);
        assert_int_equal(buffer.len, 0);
        assert_int_equal(sft_copy(both[i], 0, len + 1, sft_sink_memory(&buffer), NULL, &err),
                         both[i] == &memory ? SFT_BUFFER_SIZE : SFT_IO_SHRUNK);
        assert_int_equal(sft_copy(both[i], 9, 8, sft_sink_memory(&buffer), NULL, &err),
                         SFT_BAD_ARGUMENT);
        assert_int_equal(sft_copy(both[i], len + 1, SFT_SIZE_UNKNOWN,
                                  sft_sink_memory(&buffer), NULL, &err), SFT_BAD_ARGUMENT);
    }
    assert_int_equal(truncate(temp_path("big"), 1000), 0);
    assert_int_equal(sft_copy(&file, 0, len, sft_sink_memory(&buffer), NULL, &err),
                     SFT_IO_SHRUNK);
    assert_int_equal(err.offset, 1000);
    assert_null(buffer.data);
    sft_source_close(&file);
    close(fd);
    free(big);
}

static void test_copy_pipe(void **state) {
    sft_buffer buffer = { 0 };
    sft_source source;
    int pipes[2];
    (void)state;
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(write(pipes[1], "0123456789", 10), 10);
    close(pipes[1]);
    assert_int_equal(sft_source_fd(pipes[0], NULL, &source, NULL), SFT_OK);
    assert_int_equal(sft_copy(&source, 3, SFT_SIZE_UNKNOWN, sft_sink_memory(&buffer), NULL,
                              NULL), SFT_OK);
    assert_int_equal(buffer.len, 7);
    assert_memory_equal(buffer.data, "3456789", 7);
    sft_source_close(&source);
    close(pipes[0]);
    sft_buffer_free(&buffer);
}

typedef struct ticks {
    uint64_t last, total, most;
    int count, stop_at;
} ticks;

static bool tick(void *ctx, uint64_t done, uint64_t total) {
    ticks *t = ctx;
    if (done - t->last > t->most) t->most = done - t->last;
    t->last = done;
    t->total = total;
    return ++t->count != t->stop_at;
}

static void test_copy_job(void **state) {
    size_t len = 20000000;
    char *big = calloc(1, len);
    ticks t = { 0, 0, 0, 0, 0 };
    sft_job job = SFT_JOB_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_sink sink;
    (void)state;
    job.tick = tick;
    job.ctx = &t;
    sft_source source = sft_source_memory(big, len);
    assert_int_equal(sft_sink_path(temp_path("out"), NULL, &sink, NULL), SFT_OK);
    assert_int_equal(sft_copy(&source, 0, SFT_SIZE_UNKNOWN, sink, &job, &err), SFT_OK);
    assert_int_equal(t.last, len);
    assert_int_equal(t.total, len);
    assert_true(t.most <= 8u << 20);
    assert_int_equal(unlink(temp_path("out")), 0);
    t.count = 0;
    t.stop_at = 2;
    assert_int_equal(sft_sink_path(temp_path("out"), NULL, &sink, NULL), SFT_OK);
    assert_int_equal(sft_copy(&source, 0, SFT_SIZE_UNKNOWN, sink, &job, &err), SFT_CANCELLED);
    assert_int_equal(err.code, SFT_CANCELLED);
    assert_int_equal(temp_dir_count(), 0);
    free(big);
}

/* ── A path ── */

static void expect_file(const char *name, const char *text) {
    char buffer[64];
    long len = temp_read(name, buffer, sizeof buffer);
    assert_int_equal(len, strlen(text));
    assert_memory_equal(buffer, text, strlen(text));
}

static void publish(const char *name, const sft_path_options *options, const char *text) {
    sft_error err = SFT_ERROR_INIT;
    sft_sink sink;
    assert_int_equal(sft_sink_path(temp_path(name), options, &sink, &err), SFT_OK);
    assert_true(sink.seekable);
    assert_int_equal(sft_sink_expect(&sink, strlen(text), &err), SFT_OK);
    assert_int_equal(put(&sink, 0, text, &err), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    expect_file(name, text);
}

static void test_path(void **state) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    (void)state;
    mode_t mask = umask(022);
    publish("new", NULL, "one");
    assert_int_equal(temp_mode("new"), 0644);
    publish("new", NULL, "two, longer");
    assert_int_equal(temp_mode("new"), 0644);
    assert_int_equal(chmod(temp_path("new"), 0600), 0);
    options.no_sync = true;
    publish("new", &options, "three");
    assert_int_equal(temp_mode("new"), 0600);
    assert_int_equal(chmod(temp_path("new"), 0467), 0);
    publish("new", &options, "four");
    assert_int_equal(temp_mode("new"), 0467);
    options.mode = 0640;
    publish("new", &options, "five");
    assert_int_equal(temp_mode("new"), 0640);
    umask(077);
    publish("private", NULL, "six");
    assert_int_equal(temp_mode("private"), 0600);
    umask(mask);
    assert_int_equal(temp_dir_count(), 2);
}

static void test_path_untouched(void **state) {
    sft_error err = SFT_ERROR_INIT;
    sft_sink sink;
    (void)state;
    temp_write("file", "old", 3);
    assert_int_equal(sft_sink_path(temp_path("file"), NULL, &sink, &err), SFT_OK);
    assert_int_equal(put(&sink, 0, "new", &err), SFT_OK);
    expect_file("file", "old");
    sft_sink_abandon(&sink);
    expect_file("file", "old");
    assert_int_equal(temp_dir_count(), 1);
    /* Fewer bytes than expected: the file has those that came. */
    assert_int_equal(sft_sink_path(temp_path("file"), NULL, &sink, &err), SFT_OK);
    assert_int_equal(sft_sink_expect(&sink, 100000, &err), SFT_OK);
    assert_int_equal(put(&sink, 0, "new", &err), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    expect_file("file", "new");
    assert_int_equal(temp_dir_count(), 1);
}

static void test_path_no_clobber(void **state) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_sink sink;
    (void)state;
    options.no_clobber = true;
    publish("file", &options, "one");
    assert_int_equal(sft_sink_path(temp_path("file"), &options, &sink, &err), SFT_OK);
    assert_int_equal(put(&sink, 0, "two", &err), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_EXISTS);
    assert_int_equal(err.code, SFT_EXISTS);
    assert_int_equal(err.os_errno, EEXIST);
    expect_file("file", "one");
    /* What appears while we write is not ours to replace either. */
    assert_int_equal(sft_sink_path(temp_path("late"), &options, &sink, &err), SFT_OK);
    temp_write("late", "first", 5);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_EXISTS);
    expect_file("late", "first");
    /* Without no_clobber it is. */
    assert_int_equal(sft_sink_path(temp_path("late2"), NULL, &sink, &err), SFT_OK);
    temp_write("late2", "first", 5);
    assert_int_equal(put(&sink, 0, "second", &err), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, &err), SFT_OK);
    expect_file("late2", "second");
    assert_int_equal(temp_dir_count(), 3);
}

static void test_path_links(void **state) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_sink sink;
    struct stat st;
    char real[4096], text[4200];
    (void)state;
    temp_write("real", "old", 3);
    assert_int_equal(chmod(temp_path("real"), 0640), 0);
    assert_int_equal(symlink("real", temp_path("link")), 0);
    options.link = SFT_LINK_REFUSE;
    assert_int_equal(sft_sink_path(temp_path("link"), &options, &sink, &err), SFT_IS_LINK);
    assert_non_null(realpath(temp_path("real"), real));
    (void)snprintf(text, sizeof text,
                   "expected a file, found a symbolic link to %s", real);
    assert_string_equal(err.message, text);
    options.link = SFT_LINK_FOLLOW;
    publish("link", &options, "followed");
    expect_file("real", "followed");
    assert_int_equal(lstat(temp_path("link"), &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    options.link = SFT_LINK_REPLACE;
    publish("link", &options, "replaced");
    expect_file("real", "followed");
    assert_int_equal(lstat(temp_path("link"), &st), 0);
    assert_true(S_ISREG(st.st_mode));
    assert_int_equal(temp_mode("link"), 0640);
    assert_int_equal(symlink("nowhere", temp_path("dangling")), 0);
    options.link = SFT_LINK_FOLLOW;
    assert_int_equal(sft_sink_path(temp_path("dangling"), &options, &sink, &err),
                     SFT_NOT_FOUND);
    options.link = SFT_LINK_REFUSE;
    assert_int_equal(sft_sink_path(temp_path("dangling"), &options, &sink, &err), SFT_IS_LINK);
    options.link = SFT_LINK_REPLACE;
    publish("dangling", &options, "own");
    assert_int_equal(temp_dir_count(), 3);
}

static void test_path_refused(void **state) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_error err = SFT_ERROR_INIT;
    sft_sink sink;
    (void)state;
    assert_int_equal(mkdir(temp_path("dir"), 0755), 0);
    assert_int_equal(mkfifo(temp_path("fifo"), 0600), 0);
    temp_write("file", "", 0);
    assert_int_equal(sft_sink_path(temp_path("dir"), NULL, &sink, &err), SFT_IO_NOT_FILE);
    assert_string_equal(err.message, "expected a file or nothing at the path, found a folder");
    assert_int_equal(sft_sink_path(temp_path("fifo"), NULL, &sink, &err), SFT_IO_NOT_FILE);
    assert_int_equal(sft_sink_path("/dev/null", NULL, &sink, &err), SFT_IO_NOT_FILE);
    assert_int_equal(sft_sink_path(temp_path("no/file"), NULL, &sink, &err), SFT_NOT_FOUND);
    assert_int_equal(sft_sink_path(temp_path("file/x"), NULL, &sink, &err), SFT_IO_OPEN);
    assert_int_equal(err.os_errno, ENOTDIR);
    assert_int_equal(sft_sink_path(temp_path("dir/"), NULL, &sink, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_sink_path("", NULL, &sink, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_sink_path(NULL, NULL, &sink, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_sink_path(temp_path("x"), NULL, NULL, &err), SFT_BAD_ARGUMENT);
    options.link = (sft_link_policy)3;
    assert_int_equal(sft_sink_path(temp_path("x"), &options, &sink, &err), SFT_BAD_ARGUMENT);
    options.link = SFT_LINK_REPLACE;
    options.mode = 01000;
    assert_int_equal(sft_sink_path(temp_path("x"), &options, &sink, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(temp_dir_count(), 3);
}

static void test_path_names(void **state) {
    char name[256], here[4096];
    (void)state;
    memset(name, 'n', 255);
    name[255] = '\0';
    publish(name, NULL, "one");
    publish(name, NULL, "two");
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(temp_dir), 0);
    sft_sink sink;
    assert_int_equal(sft_sink_path("plain", NULL, &sink, NULL), SFT_OK);
    assert_int_equal(sft_sink_finish(&sink, NULL), SFT_OK);
    assert_int_equal(chdir(here), 0);
    expect_file("plain", "");
    assert_int_equal(temp_dir_count(), 2);
}

/* The system's own limit on file sizes makes a real failing write. */
static void test_path_full(void **state) {
    struct rlimit old, small;
    sft_error err = SFT_ERROR_INIT;
    sft_sink sink;
    char block[4096] = { 0 };
    (void)state;
    temp_write("file", "old", 3);
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small = old;
    small.rlim_cur = 6000;
    assert_int_equal(sft_sink_path(temp_path("file"), NULL, &sink, &err), SFT_OK);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    sft_code first = sft_sink_write(&sink, 0, block, sizeof block, &err);
    sft_code second = sft_sink_write(&sink, sizeof block, block, sizeof block, &err);
    int error = err.os_errno;
    uint64_t offset = err.offset;
    sft_code last = sft_sink_finish(&sink, &err);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
    assert_int_equal(first, SFT_OK);
    assert_int_equal(second, SFT_IO_WRITE);
    assert_int_equal(error, EFBIG);
    assert_int_equal(offset, 6000);
    assert_int_equal(last, SFT_WRITER_FAILED);
    expect_file("file", "old");
    assert_int_equal(temp_dir_count(), 1);
}

/* Killed in the middle: the old file, and nothing else. */
static void test_path_killed(void **state) {
    int ready[2], status = 0;
    char byte;
    (void)state;
    temp_write("file", "old", 3);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        sft_sink sink;
        if (sft_sink_path(temp_path("file"), NULL, &sink, NULL) != SFT_OK) _exit(1);
        if (put(&sink, 0, "half", NULL) != SFT_OK) _exit(2);
        if (write(ready[1], "r", 1) != 1) _exit(3);
        for (;;) pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    int entries = temp_dir_count();
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    close(ready[0]);
    close(ready[1]);
    expect_file("file", "old");
    if (entries > 1) skip(); /* no unnamed files here: the hidden one stays behind */
    assert_int_equal(temp_dir_count(), 1);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, temp_dir_make, temp_dir_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory), IN_DIR(test_fd), cmocka_unit_test(test_callback),
        IN_DIR(test_tee), IN_DIR(test_tee_fails), IN_DIR(test_copy),
        cmocka_unit_test(test_copy_pipe),
        IN_DIR(test_copy_job), IN_DIR(test_path), IN_DIR(test_path_untouched),
        IN_DIR(test_path_no_clobber), IN_DIR(test_path_links), IN_DIR(test_path_refused),
        IN_DIR(test_path_names), IN_DIR(test_path_full), IN_DIR(test_path_killed),
    };
    return cmocka_run_group_tests_name("sink", tests, NULL, NULL);
}
