/* What os_linux*.c does beyond the contract of os.h. */
#define _GNU_SOURCE
#include "os/os.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* Large blocks begin where huge pages do, also after they have grown. */
static void test_huge_pages(void **state) {
    static const size_t sizes[] = { 1572864, 1572865, 4194304, 5242880, 6300000, 20000000 };
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *at = os_resize(NULL, NULL, 0, sizes[i]);
        assert_non_null(at);
        assert_int_equal((uintptr_t)at % (2u << 20), 0);
        at = os_resize(NULL, at, sizes[i], 2 * sizes[i]);
        assert_non_null(at);
        assert_int_equal((uintptr_t)at % (2u << 20), 0);
        assert_null(os_resize(NULL, at, 2 * sizes[i], 0));
    }
}

#define GATHER_FILE ((size_t)1000000)

typedef struct gathered {
    FILE *file;
    unsigned char *bytes, *out;
    uint64_t offsets[300];
    void *map;
} gathered;

static gathered gather_file(void) {
    gathered g = { .file = tmpfile(), .bytes = malloc(GATHER_FILE), .out = malloc(30000000) };
    assert_true(g.file && g.bytes && g.out);
    for (size_t i = 0; i < GATHER_FILE; i++) g.bytes[i] = (unsigned char)(i * 2654435761u >> 11);
    assert_int_equal(fwrite(g.bytes, 1, GATHER_FILE, g.file), GATHER_FILE);
    assert_int_equal(fflush(g.file), 0);
    assert_int_equal(os_map(fileno(g.file), GATHER_FILE, false, &g.map), 0);
    return g;
}

static void gather_end(gathered *g) {
    os_unmap(g->map, GATHER_FILE);
    (void)fclose(g->file);
    free(g->bytes);
    free(g->out);
}

/* Runs that a pipe holds many of, and runs that are longer than a pipe. */
static void test_gather(void **state) {
    static const size_t lengths[] = { 1, 3, 16, 255, 4096, 5000, 65536, 100000 };
    (void)state;
    gathered g = gather_file();
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        size_t len = lengths[k], got = 0;
        for (size_t i = 0; i < 300; i++) g.offsets[i] = i * 999331 % (GATHER_FILE - len + 1);
        g.offsets[7] = GATHER_FILE - len;
        assert_int_equal(os_gather(g.map, g.offsets, 300, len, g.out, &got), 0);
        assert_int_equal(got, 300 * len);
        for (size_t i = 0; i < 300; i++)
            assert_memory_equal(g.out + i * len, g.bytes + g.offsets[i], len);
    }
    gather_end(&g);
}

/* What the file has no more ends it, where it would have raised a signal. */
static void test_gather_beyond(void **state) {
    (void)state;
    gathered g = gather_file();
    size_t got = 99;
    assert_int_equal(ftruncate(fileno(g.file), 409600), 0);
    for (size_t i = 0; i < 300; i++) g.offsets[i] = 3000 * i + 7;
    assert_int_equal(os_gather(g.map, g.offsets, 300, 100, g.out, &got), EFAULT);
    assert_true(got <= 137 * 100); /* the last of them ends at byte 408,107 */
    for (size_t i = 0; i < got / 100; i++)
        assert_memory_equal(g.out + i * 100, g.bytes + g.offsets[i], 100);
    gather_end(&g);
}

static void test_gather_without(void **state) {
    struct rlimit before, none;
    size_t got = 99;
    (void)state;
    gathered g = gather_file();
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    none = before;
    none.rlim_cur = 3;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    int error = os_gather(g.map, g.offsets, 300, 10, g.out, &got);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(error, EMFILE);
    assert_int_equal(got, 0);
    assert_int_equal(os_gather(g.map, g.offsets, SIZE_MAX, 10, g.out, &got), EINVAL);
    gather_end(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_huge_pages),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_gather_beyond),
        cmocka_unit_test(test_gather_without),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
