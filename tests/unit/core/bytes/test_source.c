/* Sources over memory, maps and descriptors. */
#define _GNU_SOURCE
#include "bytes/source.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/temp_dir.h"

#include <errno.h>
#include <fcntl.h>

/* An allocator that has nothing. */
static void *nothing(void *ctx, void *ptr, size_t old_size, size_t new_size) {
    (void)ctx;
    (void)ptr;
    (void)old_size;
    (void)new_size;
    return NULL;
}

static void test_memory(void **state) {
    sft_error err = SFT_ERROR_INIT;
    char buffer[8];
    size_t got = 9;
    (void)state;
    sft_source source = sft_source_memory("0123456789", 10);
    assert_int_equal(source.size, 10);
    assert_memory_equal(source.base, "0123456789", 10);
    assert_null((void *)(uintptr_t)source.vtable->close);
    assert_int_equal(sft_source_read(&source, 4, buffer, 3, &got, &err), SFT_OK);
    assert_int_equal(got, 3);
    assert_memory_equal(buffer, "456", 3);
    assert_int_equal(sft_source_read(&source, 8, buffer, 8, &got, &err), SFT_OK);
    assert_int_equal(got, 2);
    assert_int_equal(sft_source_read(&source, 10, buffer, 8, &got, &err), SFT_OK);
    assert_int_equal(got, 0);
    assert_int_equal(sft_source_read(&source, UINT64_MAX, buffer, 8, &got, &err), SFT_OK);
    assert_int_equal(got, 0);
    assert_int_equal(sfti_source_all(&source, 2, buffer, 8, &err), SFT_OK);
    assert_memory_equal(buffer, "23456789", 8);
    assert_int_equal(sfti_source_all(&source, 3, buffer, 8, &err), SFT_IO_SHRUNK);
    assert_int_equal(err.code, SFT_IO_SHRUNK);
    assert_int_equal(err.offset, 10);
    assert_string_equal(err.message, "expected 8 bytes at offset 3, found only 7");
    source = sft_source_memory(NULL, 0);
    assert_int_equal(source.size, 0);
    assert_non_null(source.base);
    sft_source_close(&source);
    sft_source_close(NULL);
}

static const sft_allocator plain = { sfti_os_resize, NULL };
static const sft_open_options plain_how = { .size = sizeof plain_how, .alloc = &plain };

static void test_file(void **state) {
    sft_error err = SFT_ERROR_INIT;
    sft_source source;
    os_info info;
    char buffer[8];
    size_t got;
    int fd = -1;
    (void)state;
    temp_write("file", "0123456789", 10);
    const char *path = temp_path("file");
    assert_int_equal(sfti_source_open(path, &plain_how, &source, &fd, &info, &err), SFT_OK);
    assert_true(fd >= 0);
    assert_int_equal(info.kind, OS_FILE);
    assert_int_equal(source.size, 10);
    assert_null(source.base);
    assert_int_equal(sfti_source_all(&source, 6, buffer, 4, &err), SFT_OK);
    assert_memory_equal(buffer, "6789", 4);
    assert_int_equal(sfti_source_all(&source, 0, buffer, 4, &err), SFT_OK);
    assert_memory_equal(buffer, "0123", 4);
    assert_int_equal(truncate(path, 5), 0);
    assert_int_equal(sft_source_read(&source, 3, buffer, 8, &got, &err), SFT_OK);
    assert_int_equal(got, 2);
    assert_int_equal(sfti_source_all(&source, 3, buffer, 4, &err), SFT_IO_SHRUNK);
    assert_int_equal(err.offset, 5);
    sft_source_close(&source);
    assert_null(source.vtable);
    assert_int_equal(fcntl(fd, F_GETFD), -1);
}

static void test_not_a_file(void **state) {
    sft_error err = SFT_ERROR_INIT;
    sft_source source;
    (void)state;
    memset(&source, 1, sizeof source);
    assert_int_equal(sfti_source_open(temp_path("none"), &plain_how, &source, NULL, NULL, &err),
                     SFT_NOT_FOUND);
    assert_int_equal(err.code, SFT_NOT_FOUND);
    assert_int_equal(err.os_errno, ENOENT);
    assert_null(source.vtable);
    assert_int_equal(sfti_source_open(temp_dir, &plain_how, &source, NULL, NULL, &err),
                     SFT_IO_NOT_FILE);
    assert_string_equal(err.message, "expected a file, found a folder");
    temp_write("file", "", 0);
    assert_int_equal(sfti_source_open(temp_path("file/x"), &plain_how, &source, NULL, NULL, &err),
                     SFT_IO_OPEN);
    assert_int_equal(err.os_errno, ENOTDIR);
    assert_int_equal(sft_source_fd(-1, NULL, &source, &err), SFT_IO_OPEN);
    assert_int_equal(err.os_errno, EBADF);
    assert_int_equal(sft_source_fd(0, NULL, NULL, &err), SFT_BAD_ARGUMENT);
    assert_int_equal(sft_source_fd(-1, NULL, &source, NULL), SFT_IO_OPEN);
}

static void test_fd_stays(void **state) {
    sft_source source;
    char buffer[4];
    (void)state;
    temp_write("file", "0123456789", 10);
    int fd = open(temp_path("file"), O_RDONLY);
    assert_int_equal(lseek(fd, 7, SEEK_SET), 7);
    assert_int_equal(sft_source_fd(fd, NULL, &source, NULL), SFT_OK);
    assert_int_equal(source.size, 10);
    assert_int_equal(sfti_source_all(&source, 0, buffer, 4, NULL), SFT_OK);
    assert_memory_equal(buffer, "0123", 4);
    sft_source_close(&source);
    assert_int_equal(lseek(fd, 0, SEEK_CUR), 7);
    assert_int_equal(close(fd), 0);
}

static void test_pipe(void **state) {
    static char big[20000];
    sft_error err = SFT_ERROR_INIT;
    sft_source source;
    char buffer[8];
    size_t got;
    int pipes[2];
    (void)state;
    for (size_t i = 0; i < sizeof big; i++) big[i] = (char)(i % 251);
    assert_int_equal(pipe(pipes), 0);
    assert_int_equal(write(pipes[1], big, sizeof big), sizeof big);
    assert_int_equal(close(pipes[1]), 0);
    assert_int_equal(sft_source_fd(pipes[0], NULL, &source, &err), SFT_OK);
    assert_true(source.size == SFT_SIZE_UNKNOWN);
    assert_int_equal(sfti_source_all(&source, 0, buffer, 8, &err), SFT_OK);
    assert_memory_equal(buffer, big, 8);
    assert_int_equal(sfti_source_all(&source, 19000, buffer, 8, &err), SFT_OK);
    assert_memory_equal(buffer, big + 19000, 8);
    assert_int_equal(sft_source_read(&source, 18000, buffer, 8, &got, &err), SFT_OUT_OF_ORDER);
    assert_int_equal(err.offset, 18000);
    assert_int_equal(sft_source_read(&source, 19998, buffer, 8, &got, &err), SFT_OK);
    assert_int_equal(got, 2);
    assert_int_equal(sft_source_read(&source, 30000, buffer, 8, &got, &err), SFT_OK);
    assert_int_equal(got, 0);
    sft_source_close(&source);
    assert_int_equal(close(pipes[0]), 0);
}

static void test_map(void **state) {
    sft_error err = SFT_ERROR_INIT;
    sft_source source;
    char buffer[8];
    (void)state;
    temp_write("file", "0123456789", 10);
    int fd = open(temp_path("file"), O_RDONLY);
    assert_int_equal(sfti_source_map(fd, 10, false, 0, NULL, &source, &err), SFT_OK);
    assert_memory_equal(source.base, "0123456789", 10);
    assert_int_equal(source.size, 10);
    sft_source_close(&source);
    assert_int_equal(sfti_source_map(fd, 10, true, 0, NULL, &source, &err), SFT_OK);
    assert_int_equal(close(fd), 0);
    ((char *)(uintptr_t)source.base)[0] = 'X';
    assert_int_equal(sfti_source_all(&source, 0, buffer, 2, &err), SFT_OK);
    assert_memory_equal(buffer, "X1", 2);
    sft_source_close(&source);
    assert_int_equal(temp_read("file", buffer, sizeof buffer), 8);
    assert_memory_equal(buffer, "01234567", 8);
    assert_int_equal(sfti_source_map(-1, 0, false, 0, NULL, &source, &err), SFT_OK);
    assert_non_null(source.base);
    sft_source_close(&source);
    assert_int_equal(sfti_source_map(-1, 10, false, 0, NULL, &source, &err), SFT_IO_MAP);
    assert_int_equal(err.os_errno, EBADF);
    assert_int_equal(sfti_source_map(-1, UINT64_MAX, false, 0, NULL, &source, &err),
                     SFT_ADDRESS_SPACE);
}

static void test_no_memory(void **state) {
    sft_allocator none = { nothing, NULL };
    sft_error err = SFT_ERROR_INIT;
    sft_open_options how = SFT_OPEN_OPTIONS_INIT;
    sft_source source;
    (void)state;
    how.alloc = &none;
    temp_write("file", "0123456789", 10);
    assert_int_equal(sfti_source_open(temp_path("file"), &how, &source, NULL, NULL, &err),
                     SFT_OUT_OF_MEMORY);
    assert_null(source.vtable);
    int fd = open(temp_path("file"), O_RDONLY);
    assert_int_equal(sft_source_fd(fd, &none, &source, &err), SFT_OUT_OF_MEMORY);
    assert_int_equal(sfti_source_map(fd, 10, false, 0, &none, &source, &err), SFT_OUT_OF_MEMORY);
    assert_int_equal(close(fd), 0);
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, temp_dir_make, temp_dir_remove)

/* Every byte of the span is copied and no other, wherever the two begin. */
static void test_streamed_memory(void **state) {
    enum { LEN = 700, MOST = 64 };
    char from[LEN], to[LEN + 2 * MOST], same[LEN + 2 * MOST];
    (void)state;
    for (size_t i = 0; i < LEN; i++) from[i] = (char)(i * 7 + i / 256);
    sft_source source = sft_source_memory(from, LEN), other = source;
#if !defined(__SSE2__)
    skip();
#endif
    for (size_t i = 0; i < MOST * MOST; i++) {
        size_t at = i % MOST, begin = i / MOST;
        for (size_t len = 0; len <= LEN - MOST; len += 1 + len) {
            memset(to, 1, sizeof to);
            memset(same, 1, sizeof same);
            memcpy(same + at, from + begin, len);
            assert_true(sfti_source_stream(&source, begin, to + at, len));
            assert_memory_equal(to, same, sizeof to);
        }
    }
    assert_false(sfti_source_stream(&source, 1, to, LEN));
    assert_false(sfti_source_stream(&source, LEN + 1, to, 0));
    assert_false(sfti_source_stream(&source, UINT64_MAX, to, 2));
    other.vtable = NULL;
    assert_false(sfti_source_stream(&other, 0, to, 1));
}

/* What a map ends before has been cut off from a file; memory ends where its owner says. */
static void test_short(void **state) {
    sft_buffer buffer = { 0 };
    sft_source map, memory = sft_source_memory("0123456789", 10);
    sft_error err;
    (void)state;
    temp_write("short", "0123456789", 10);
    int fd = open(temp_path("short"), O_RDONLY);
    assert_int_equal(sfti_source_map(fd, 10, false, 0, NULL, &map, &err), SFT_OK);
    assert_int_equal(sft_copy(&map, 0, 11, sft_sink_memory(&buffer), NULL, &err), SFT_IO_SHRUNK);
    assert_int_equal(sft_copy(&memory, 0, 11, sft_sink_memory(&buffer), NULL, &err),
                     SFT_BUFFER_SIZE);
    sft_source_close(&map);
    close(fd);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_memory), cmocka_unit_test(test_streamed_memory),
        IN_DIR(test_file), IN_DIR(test_not_a_file), IN_DIR(test_fd_stays),
        cmocka_unit_test(test_pipe), IN_DIR(test_map), IN_DIR(test_no_memory), IN_DIR(test_short),
    };
    return cmocka_run_group_tests_name("source", tests, NULL, NULL);
}
