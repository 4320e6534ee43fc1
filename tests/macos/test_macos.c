/* src/core/os/os_macos.c over shim/: what it does when the calls of macOS work, and when they do
 * not. */
#define _GNU_SOURCE
#include "os/io.h"
#include "os/os_posix.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "shim/shim.h"
#include "unit/temp_dir.h"

#include <errno.h>
#include <fcntl.h>

enum { NOT_SUPPORTED = 45 }; /* ENOTSUP of macOS, which is not its EOPNOTSUPP */

static int shim_setup(void **state) {
    memset(&shim, 0, sizeof shim);
    return temp_dir_make(state);
}

static int new_file(const char *name) {
    int fd = -1;
    assert_int_equal(sfti_os_open_new(temp_path(name), 0644, &fd), 0);
    return fd;
}

/* ── Syncing ── */

static void test_sync(void **state) {
    int fd = new_file("a");
    (void)state;
    assert_int_equal(sfti_os_sync(fd), 0);
    assert_int_equal(shim.full_syncs, 1);
    assert_int_equal(shim.syncs, 0);
    assert_int_equal(sfti_os_sync_folder(temp_dir), 0);
    assert_int_equal(shim.full_syncs, 2);
    shim.interrupts = 3;
    assert_int_equal(sfti_os_sync(fd), 0);
    assert_int_equal(shim.full_syncs, 6);
    assert_int_equal(sfti_os_close(fd), 0);
}

/* Where there is no F_FULLFSYNC, fsync; a disk that fails is no such place. */
static void test_sync_plain(void **state) {
    static const int missing[] = { NOT_SUPPORTED, EOPNOTSUPP, EINVAL, ENOTTY, ENOSYS };
    static const int failing[] = { EIO, ENOSPC, EBADF };
    int fd = new_file("a");
    (void)state;
    for (size_t i = 0; i < sizeof missing / sizeof *missing; i++) {
        memset(&shim, 0, sizeof shim);
        shim.full_sync = missing[i];
        assert_int_equal(sfti_os_sync(fd), 0);
        assert_int_equal(shim.syncs, 1);
    }
    for (size_t i = 0; i < sizeof failing / sizeof *failing; i++) {
        memset(&shim, 0, sizeof shim);
        shim.full_sync = failing[i];
        assert_int_equal(sfti_os_sync(fd), failing[i]);
        assert_int_equal(shim.syncs, 0);
    }
    assert_int_equal(sfti_os_close(fd), 0);
}

/* ── Space ── */

static void test_preallocate(void **state) {
    os_info info;
    struct stat st;
    int fd = new_file("a");
    (void)state;
    assert_int_equal(sfti_os_preallocate(fd, 0), 0);
    assert_int_equal(shim.preallocate_tries, 0);
    shim.interrupts = 2;
    assert_int_equal(sfti_os_preallocate(fd, 100000), 0);
    assert_int_equal(shim.contiguous_tries, 3);
    assert_int_equal(shim.preallocate_tries, 3);
    assert_int_equal(sfti_os_info_fd(fd, &info), 0);
    assert_int_equal(info.size, 100000);
    assert_int_equal(fstat(fd, &st), 0);
    assert_true(st.st_blocks * 512 >= 100000);
    /* What is there already is not asked for again, and never cut. */
    assert_int_equal(sfti_os_preallocate(fd, 1000), 0);
    assert_int_equal(shim.preallocate_tries, 3);
    assert_int_equal(sfti_os_info_fd(fd, &info), 0);
    assert_int_equal(info.size, 100000);
    assert_int_equal(sfti_os_preallocate(fd, (uint64_t)INT64_MAX + 1), EFBIG);
    assert_int_equal(sfti_os_close(fd), 0);
}

/* In one piece, or else in several; a full disk is an error, a system without the call none. */
static void test_preallocate_fails(void **state) {
    os_info info;
    int fd = new_file("a");
    (void)state;
    shim.contiguous = ENOSPC;
    assert_int_equal(sfti_os_preallocate(fd, 50000), 0);
    assert_int_equal(shim.contiguous_tries, 1);
    assert_int_equal(shim.preallocate_tries, 2);
    assert_int_equal(sfti_os_info_fd(fd, &info), 0);
    assert_int_equal(info.size, 50000);
    shim.preallocate = ENOSPC;
    assert_int_equal(sfti_os_preallocate(fd, 500000), ENOSPC);
    shim.preallocate = NOT_SUPPORTED;
    assert_int_equal(sfti_os_preallocate(fd, 500000), EOPNOTSUPP);
    assert_int_equal(sfti_os_info_fd(fd, &info), 0);
    assert_int_equal(info.size, 50000);
    assert_int_equal(sfti_os_close(fd), 0);
}

/* ── Names ── */

static void test_rename_new(void **state) {
    char text[4];
    (void)state;
    temp_write("a", "A", 1);
    temp_write("b", "B", 1);
    assert_int_equal(sfti_os_rename(temp_path("a"), temp_path("b"), true), EEXIST);
    assert_int_equal(sfti_os_rename(temp_path("a"), temp_path("c"), true), 0);
    /* Without RENAME_EXCL, by a second name. */
    shim.rename_new = NOT_SUPPORTED;
    assert_int_equal(sfti_os_rename(temp_path("c"), temp_path("b"), true), EEXIST);
    assert_int_equal(sfti_os_rename(temp_path("c"), temp_path("d"), true), 0);
    assert_int_equal(temp_read("d", text, sizeof text), 1);
    assert_int_equal(text[0], 'A');
    assert_int_equal(temp_dir_count(), 2);
    shim.rename_new = EACCES;
    assert_int_equal(sfti_os_rename(temp_path("d"), temp_path("e"), true), EACCES);
    assert_int_equal(temp_dir_count(), 2);
}

static void test_path_in(void **state) {
    char path[256], text[4];
    int folder = -1;
    (void)state;
    assert_int_equal(mkdir(temp_path("folder"), 0755), 0);
    assert_int_equal(sfti_os_open_folder(temp_path("folder"), &folder), 0);
    assert_int_equal(sfti_os_path_in(folder, "name", path, sizeof path), EOPNOTSUPP);
    shim.volumes = true;
    assert_int_equal(sfti_os_path_in(folder, "name", path, sizeof path), 0);
    assert_int_equal(strncmp(path, "/.vol/", 6), 0);
    assert_string_equal(strrchr(path, '/'), "/name");
    assert_int_equal(sfti_os_path_in(folder, "name", path, 12), ENAMETOOLONG);
    assert_int_equal(sfti_os_path_in(folder, "name", text, 0), ENAMETOOLONG);
    assert_int_equal(sfti_os_close(folder), 0);
    assert_int_equal(sfti_os_path_in(folder, "name", path, sizeof path), EBADF);
    assert_int_equal(rmdir(temp_path("folder")), 0);
}

/* Parts of the name are opened one after another: the system has no call that all versions know. */
static void test_beneath(void **state) {
    int fd = -1;
    (void)state;
    temp_write("file", "x", 1);
    assert_int_equal(symlink("/etc/passwd", temp_path("out")), 0);
    assert_int_equal(symlink("file", temp_path("in")), 0);
    assert_int_equal(sfti_os_kernel_beneath(AT_FDCWD, "file", O_RDONLY, true, &fd), ENOSYS);
    assert_int_equal(sfti_os_open_beneath(temp_dir, "out", OS_BENEATH_READ, &fd), EXDEV);
    assert_int_equal(sfti_os_open_beneath(temp_dir, "../x", OS_BENEATH_READ, &fd), EXDEV);
    assert_int_equal(sfti_os_open_beneath(temp_dir, "in", OS_BENEATH_OWN, &fd), ELOOP);
    assert_int_equal(sfti_os_open_beneath(temp_dir, "in", OS_BENEATH_READ, &fd), 0);
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_equal(sfti_os_open_beneath(temp_dir, "", OS_BENEATH_FOLDER, &fd), 0);
    assert_int_equal(sfti_os_close(fd), 0);
}

/* ── Ranges, leases, caches ── */

static void test_none(void **state) {
    uint64_t done = 1;
    int fd = new_file("a"), none = 0;
    (void)state;
    assert_int_equal(sfti_os_open_unnamed(temp_dir, 0644, &none), EOPNOTSUPP);
    assert_int_equal(none, -1);
    assert_int_equal(sfti_os_link_unnamed(fd, temp_path("b")), EOPNOTSUPP);
    assert_int_equal(sfti_os_copy_range(fd, 0, fd, 10, 5, &done), EOPNOTSUPP);
    assert_int_equal(done, 0);
    assert_int_equal(sfti_os_clone_range(fd, 0, fd, 4096, 4096), EOPNOTSUPP);
    assert_int_equal(sfti_os_insert_range(fd, 0, 4096), EOPNOTSUPP);
    assert_int_equal(sfti_os_collapse_range(fd, 0, 4096), EOPNOTSUPP);
    assert_int_equal(sfti_os_lease(fd, true), EOPNOTSUPP);
    assert_int_equal(sfti_os_lease(fd, false), EOPNOTSUPP);
    sfti_os_write_back(fd, 0, 10);
    assert_int_equal(sfti_os_lock(fd), 0);
    sfti_os_unlock(fd);
    assert_int_equal(sfti_os_close(fd), 0);
}

static void test_direct(void **state) {
    int fd = new_file("a");
    (void)state;
    assert_int_equal(sfti_os_set_direct(fd, true), 0);
    assert_int_equal(shim.no_cache_now, 1);
    assert_int_equal(sfti_os_set_direct(fd, false), 0);
    assert_int_equal(shim.no_cache_now, 0);
    shim.no_cache = NOT_SUPPORTED;
    assert_int_equal(sfti_os_set_direct(fd, true), EOPNOTSUPP);
    shim.no_cache = EBADF;
    assert_int_equal(sfti_os_set_direct(fd, true), EBADF);
    assert_int_equal(sfti_os_close(fd), 0);
}

static void test_advice(void **state) {
    int fd = new_file("a");
    (void)state;
    shim.read_ahead_now = 7;
    sfti_os_read_apart(fd, true);
    assert_int_equal(shim.read_ahead_now, 0);
    sfti_os_read_apart(fd, false);
    assert_int_equal(shim.read_ahead_now, 1);
    sfti_os_read_soon(fd, 12288, 8);
    assert_int_equal(shim.advised, 12288);
    sfti_os_read_soon(fd, 4096, UINT64_MAX);
    sfti_os_read_soon(fd, UINT64_MAX, 8);
    assert_int_equal(shim.advised, 12288);
    assert_int_equal(sfti_os_close(fd), 0);
}

/* By its number; what is cached nobody tells. */
static void test_open_direct(void **state) {
    int fd = new_file("a"), direct = 7;
    uint64_t bytes = 7;
    (void)state;
    assert_int_equal(sfti_os_open_direct(fd, &direct), EOPNOTSUPP); /* there is no /.vol here */
    assert_int_equal(direct, -1);
    assert_int_equal(sfti_os_open_direct(-1, &direct), EBADF);
    assert_int_equal(sfti_os_cached(fd, 0, 1, &bytes), EOPNOTSUPP);
    assert_int_equal(bytes, 0);
    assert_int_equal(sfti_os_close(fd), 0);
}

static void test_hole(void **state) {
    uint64_t hole = 0;
    size_t put = 0;
    int fd = new_file("a");
    (void)state;
    assert_int_equal(sfti_os_pwrite(fd, "x", 1, 0, &put), 0);
    assert_int_equal(sfti_os_find_hole(fd, 0, &hole), 0);
    assert_true(hole >= 1);
    assert_int_equal(sfti_os_find_hole(fd, 100, &hole), ENXIO);
    shim.seek_hole = NOT_SUPPORTED;
    assert_int_equal(sfti_os_find_hole(fd, 0, &hole), EOPNOTSUPP);
    shim.seek_hole = ENOTTY;
    assert_int_equal(sfti_os_find_hole(fd, 0, &hole), EOPNOTSUPP);
    assert_int_equal(sfti_os_close(fd), 0);
}

/* ── Saving ── */

static sft_code save(const char *name, bool no_clobber) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_sink sink;
    options.no_clobber = no_clobber;
    sft_code code = sft_sink_path(temp_path(name), &options, &sink, NULL);
    if (code) return code;
    code = sft_sink_expect(&sink, 20000, NULL);
    if (!code) code = sft_sink_write(&sink, 0, "bytes", 5, NULL);
    if (!code) return sft_sink_finish(&sink, NULL);
    sft_sink_abandon(&sink);
    return code;
}

/* The bytes are synced before the name, and the folder after it. */
static void test_save(void **state) {
    (void)state;
    assert_int_equal(save("a", false), SFT_OK);
    assert_int_equal(shim.full_syncs, 2);
    assert_int_equal(save("a", false), SFT_OK);
    assert_int_equal(save("a", true), SFT_EXISTS);
    assert_int_equal(temp_dir_count(), 1);
    shim.full_sync = EIO;
    assert_int_equal(save("b", false), SFT_IO_SYNC);
    assert_int_equal(temp_dir_count(), 1);
    shim.full_sync = 0;
    shim.preallocate = ENOSPC;
    assert_int_equal(save("b", false), SFT_IO_WRITE);
    assert_int_equal(temp_dir_count(), 1);
}

/* A stick with exFAT: no RENAME_EXCL, no F_PREALLOCATE, no F_FULLFSYNC. */
static void test_save_plain(void **state) {
    (void)state;
    shim.full_sync = shim.preallocate = shim.rename_new = NOT_SUPPORTED;
    assert_int_equal(save("a", true), SFT_OK);
    assert_int_equal(save("a", true), SFT_EXISTS);
    assert_int_equal(save("a", false), SFT_OK);
    assert_int_equal(temp_dir_count(), 1);
}

/* ── The rest ── */

static void test_rest(void **state) {
    unsigned char bytes[1000] = { 0 };
    size_t zeros = 0;
    os_mutex mutex;
    os_cond cond;
    (void)state;
    assert_int_equal(sfti_os_random(bytes, sizeof bytes), 0);
    assert_int_equal(shim.longest_random, 256); /* more is EIO there */
    for (size_t i = 0; i < sizeof bytes; i++) zeros += bytes[i] == 0;
    assert_true(zeros < 50);
    assert_true(sfti_os_cpu_count() >= 1);
    assert_int_equal(sfti_os_mutex_init(&mutex), 0);
    assert_int_equal(sfti_os_cond_init(&cond), 0);
    sfti_os_mutex_lock(&mutex);
    uint64_t begin = sfti_os_now_ns();
    sfti_os_cond_wait_for(&cond, &mutex, 30);
    uint64_t waited = sfti_os_now_ns() - begin;
    sfti_os_mutex_unlock(&mutex);
    assert_true(waited > 20000000 && waited < 20000000000);
    sfti_os_cond_free(&cond);
    sfti_os_mutex_free(&mutex);
}

static void test_resize(void **state) {
    (void)state;
    char *at = sfti_os_resize(NULL, NULL, 0, 100);
    assert_non_null(at);
    at[99] = 'x';
    at = sfti_os_resize(NULL, at, 100, (size_t)4 << 20);
    assert_non_null(at);
    assert_int_equal(at[99], 'x');
    assert_null(sfti_os_resize(NULL, at, (size_t)4 << 20, 0));
    assert_null(sfti_os_resize(NULL, NULL, 0, 0));
}

#define IN_DIR(test) cmocka_unit_test_setup_teardown(test, shim_setup, temp_dir_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        IN_DIR(test_sync), IN_DIR(test_sync_plain), IN_DIR(test_preallocate),
        IN_DIR(test_preallocate_fails), IN_DIR(test_rename_new), IN_DIR(test_path_in),
        IN_DIR(test_beneath), IN_DIR(test_none), IN_DIR(test_direct), IN_DIR(test_advice),
        IN_DIR(test_open_direct),
        IN_DIR(test_hole),
        IN_DIR(test_save), IN_DIR(test_save_plain), IN_DIR(test_rest), IN_DIR(test_resize),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
