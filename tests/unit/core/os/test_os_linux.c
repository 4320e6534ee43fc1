/* What os_linux*.c does beyond the contract of os.h. */
#define _GNU_SOURCE
#include "os/os.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* Large blocks begin where huge pages do, also after they have grown. */
static void test_huge_pages(void **state) {
    static const size_t sizes[] = { 1572864, 1572865, 4194304, 5242880, 6300000, 20000000 };
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        void *at = sfti_os_resize(NULL, NULL, 0, sizes[i]);
        assert_non_null(at);
        assert_int_equal((uintptr_t)at % (2u << 20), 0);
        at = sfti_os_resize(NULL, at, sizes[i], 2 * sizes[i]);
        assert_non_null(at);
        assert_int_equal((uintptr_t)at % (2u << 20), 0);
        assert_null(sfti_os_resize(NULL, at, 2 * sizes[i], 0));
    }
}

#define MIB ((size_t)1 << 20)

static bool is_mapped(const void *at) {
    unsigned char resident;
    return mincore((void *)(uintptr_t)at, 4096, &resident) == 0;
}

/* Blocks of up to 16 MiB are used again, and two of them kept meanwhile. */
static void test_kept_blocks(void **state) {
    (void)state;
    char *many[6], *at = sfti_os_resize(NULL, NULL, 0, 12 * MIB);
    assert_non_null(at);
    memset(at, 7, 12 * MIB);
    assert_null(sfti_os_resize(NULL, at, 12 * MIB, 0));
    assert_ptr_equal(sfti_os_resize(NULL, NULL, 0, 8 * MIB), at);
    assert_false(is_mapped(at + 8 * MIB)); /* its end is given back */
    memset(at, 8, 8 * MIB);
    char *other = sfti_os_resize(NULL, NULL, 0, 8 * MIB);
    assert_true(other && other != at);
    at = sfti_os_resize(NULL, at, 8 * MIB, 14 * MIB);
    assert_non_null(at);
    for (size_t i = 0; i < 8 * MIB; i++) assert_int_equal(at[i], 8);
    assert_null(sfti_os_resize(NULL, at, 14 * MIB, 0));
    assert_null(sfti_os_resize(NULL, other, 8 * MIB, 0));
    other = sfti_os_resize(NULL, NULL, 0, 2 * MIB); /* they are too long */
    assert_true(other && other != at);
    assert_null(sfti_os_resize(NULL, other, 2 * MIB, 0));
    at = sfti_os_resize(NULL, NULL, 0, 40 * MIB);
    assert_non_null(at);
    assert_null(sfti_os_resize(NULL, at, 40 * MIB, 0));
    assert_false(is_mapped(at));
    size_t left = 0;
    for (size_t i = 0; i < 6; i++)
        assert_non_null(many[i] = sfti_os_resize(NULL, NULL, 0, 15 * MIB));
    for (size_t i = 0; i < 6; i++) assert_null(sfti_os_resize(NULL, many[i], 15 * MIB, 0));
    for (size_t i = 0; i < 6; i++) left += is_mapped(many[i]);
    assert_int_equal(left, 2);
}

/* No block is given to two threads. */
static void take_blocks(void *ctx) {
    unsigned *wrong = ctx;
    for (int i = 0; i < 2000; i++) {
        size_t size = (size_t)(2 + i % 3) * MIB;
        void *block = sfti_os_resize(NULL, NULL, 0, size);
        volatile uintptr_t *at = block;
        if (!at) continue;
        at[0] = at[size / sizeof *at - 1] = (uintptr_t)&at ^ (uintptr_t)i;
        if (at[0] != ((uintptr_t)&at ^ (uintptr_t)i) || at[size / sizeof *at - 1] != at[0])
            ++*wrong;
        (void)sfti_os_resize(NULL, block, size, 0);
    }
}

static void test_kept_threads(void **state) {
    os_thread threads[3];
    unsigned wrong[3] = { 0 };
    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(sfti_os_thread_start(&threads[i], take_blocks, &wrong[i]), 0);
    for (int i = 0; i < 3; i++) sfti_os_thread_join(&threads[i]);
    for (int i = 0; i < 3; i++) assert_int_equal(wrong[i], 0);
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
    assert_int_equal(sfti_os_map(fileno(g.file), GATHER_FILE, false, &g.map), 0);
    return g;
}

static void gather_end(gathered *g) {
    sfti_os_unmap(g->map, GATHER_FILE);
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
        assert_int_equal(sfti_os_gather(g.map, g.offsets, 300, len, g.out, &got), 0);
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
    assert_int_equal(sfti_os_gather(g.map, g.offsets, 300, 100, g.out, &got), EFAULT);
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
    int error = sfti_os_gather(g.map, g.offsets, 300, 10, g.out, &got);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(error, EMFILE);
    assert_int_equal(got, 0);
    assert_int_equal(sfti_os_gather(g.map, g.offsets, SIZE_MAX, 10, g.out, &got), EINVAL);
    gather_end(&g);
}

/* Of less than a page nothing is cached, either, if nothing of the file is. */
static void test_cached(void **state) {
    uint64_t all, part, page = (uint64_t)sysconf(_SC_PAGESIZE);
    (void)state;
    gathered g = gather_file();
    sfti_os_unmap(g.map, GATHER_FILE);
    g.map = NULL;
    assert_int_equal(fsync(fileno(g.file)), 0);
    (void)posix_fadvise(fileno(g.file), 0, 0, POSIX_FADV_DONTNEED);
    int error = sfti_os_cached(fileno(g.file), 0, page, &all);
    assert_int_equal(error, sfti_os_cached(fileno(g.file), 0, 100, &part));
    if (error) assert_int_equal(error, EOPNOTSUPP);
    else if (all == 0) assert_int_equal(part, 0);
    else assert_int_equal(part, 100);
    gather_end(&g);
}

/* Places that no file has, refused before the system is asked, which would take them as negative;
 * and what a descriptor that is none, or a pipe, is told. */
static void test_places(void **state) {
    const uint64_t beyond = (uint64_t)INT64_MAX + 1, all = UINT64_MAX;
    uint64_t done = 9, hole = 7;
    int ends[2];
    (void)state;
    gathered g = gather_file();
    int fd = fileno(g.file);
    assert_int_equal(sfti_os_copy_range(fd, INT64_MAX, fd, 0, 1, &done), EFBIG);
    assert_int_equal(sfti_os_copy_range(fd, 0, fd, INT64_MAX, 1, &done), EFBIG);
    assert_int_equal(sfti_os_copy_range(fd, all, fd, 0, all, &done), EFBIG);
    assert_int_equal(done, 0);
    assert_int_equal(sfti_os_insert_range(fd, beyond, 4096), EFBIG);
    assert_int_equal(sfti_os_insert_range(fd, 0, beyond), EFBIG);
    assert_int_equal(sfti_os_collapse_range(fd, 0, all), EFBIG);
    assert_int_equal(sfti_os_collapse_range(fd, 1, 3), EOPNOTSUPP); /* no whole blocks */
    assert_int_equal(sfti_os_find_hole(fd, GATHER_FILE, &hole), ENXIO);
    assert_int_equal(sfti_os_find_hole(fd, 0, &hole), 0);
    assert_int_equal(hole, GATHER_FILE);
    assert_int_equal(sfti_os_cached(fd, 0, 0, &done), 0);
    assert_int_equal(done, 0);
    assert_int_equal(sfti_os_cached(-1, 0, 1, &done), EOPNOTSUPP);
    sfti_os_write_back(fd, beyond, 1);
    sfti_os_write_back(fd, 1, INT64_MAX);
    sfti_os_read_soon(fd, beyond, 1);
    sfti_os_read_soon(fd, 1, INT64_MAX);
    assert_int_equal(sfti_os_gather(g.map, g.offsets, 1, 0, g.out, &(size_t){ 0 }), EINVAL);
    assert_int_equal(sfti_os_set_direct(-1, true), EBADF);
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(sfti_os_copy_range(ends[0], 0, fd, 0, 10, &done), EOPNOTSUPP);
    assert_int_equal(sfti_os_find_hole(ends[0], 0, &hole), ESPIPE);
    assert_int_equal(sfti_os_lease(ends[0], true), EOPNOTSUPP);
    close(ends[0]);
    close(ends[1]);
    for (int64_t ns = -2500000000; ns <= 2500000000; ns += 500000000) { /* before 1970, too */
        os_info info;
        assert_int_equal(sfti_os_set_mtime(fd, ns), 0);
        assert_int_equal(sfti_os_info_fd(fd, &info), 0);
        assert_int_equal(info.mtime_ns, ns);
    }
    assert_int_equal(sfti_os_set_mtime(-1, 0), EBADF);
    gather_end(&g);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kept_blocks),
        cmocka_unit_test(test_kept_threads),
        cmocka_unit_test(test_huge_pages),
        cmocka_unit_test(test_gather),
        cmocka_unit_test(test_gather_beyond),
        cmocka_unit_test(test_gather_without),
        cmocka_unit_test(test_cached), cmocka_unit_test(test_places),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
