/* os.h against real files, on every host: what its callers count on. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "os/io.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/temp_dir.h"

#include <errno.h>

static int make(const char *path, const char *bytes) {
    int fd = -1;
    assert_int_equal(sfti_os_open_new(path, 0644, &fd), 0);
    assert_int_equal(sfti_write_all(fd, bytes, strlen(bytes), 0), 0);
    return fd;
}

static void make_closed(const char *path, const char *bytes) {
    assert_int_equal(sfti_os_close(make(path, bytes)), 0);
}

static void check_bytes(int fd, const char *bytes) {
    char found[64];
    size_t got = 0;
    assert_int_equal(sfti_read_all(fd, found, sizeof found, 0, &got), 0);
    assert_int_equal(got, strlen(bytes));
    assert_memory_equal(found, bytes, got);
}

static void check_file(const char *path, const char *bytes) {
    int fd = -1;
    assert_int_equal(sfti_os_open_read(path, &fd), 0);
    check_bytes(fd, bytes);
    assert_int_equal(sfti_os_close(fd), 0);
}

/* ── Bytes ── */

static void test_positions(void **state) {
    const uint64_t far = UINT64_C(0x140000000);
    char buffer[16];
    size_t got;
    os_info info;
    int fd = make(temp_path("file"), "0123456789");
    (void)state;
    assert_int_equal(sfti_os_pread(fd, buffer, 4, 3, &got), 0);
    assert_int_equal(got, 4);
    assert_memory_equal(buffer, "3456", 4);
    assert_int_equal(sfti_os_pread(fd, buffer, sizeof buffer, 8, &got), 0);
    assert_int_equal(got, 2);
    assert_int_equal(sfti_os_pread(fd, buffer, 1, 10, &got), 0);
    assert_int_equal(got, 0);
    assert_int_equal(sfti_os_pread(fd, buffer, 1, far, &got), 0);
    assert_int_equal(got, 0);
    assert_int_equal(sfti_os_pread(fd, buffer, 1, UINT64_MAX, &got), EOVERFLOW);
    assert_int_equal(sfti_os_pwrite(fd, "x", 1, INT64_MAX, &got), EFBIG);
    assert_int_equal(sfti_os_truncate(fd, far), 0);
    assert_int_equal(sfti_write_all(fd, "far", 3, far), 0);
    assert_int_equal(sfti_os_info_fd(fd, &info), 0);
    assert_true(info.size == far + 3);
    assert_int_equal(sfti_read_all(fd, buffer, 5, far - 2, &got), 0);
    assert_int_equal(got, 5);
    assert_memory_equal(buffer, "\0\0far", 5);
    assert_int_equal(sfti_os_truncate(fd, 2), 0);
    check_bytes(fd, "01");
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_equal(sfti_os_info_fd(fd, &info), EBADF);
}

typedef struct read_part {
    os_thread thread;
    int fd;
    uint64_t at;
    size_t wrong;
} read_part;

#define PART ((size_t)1 << 16)

static void read_numbers(void *ctx) {
    read_part *part = ctx;
    uint64_t *numbers = sfti_os_resize(NULL, NULL, 0, PART);
    size_t got;
    for (int turn = 0; turn < 20; turn++) {
        part->wrong += sfti_read_all(part->fd, numbers, PART, part->at, &got) != 0;
        part->wrong += got != PART;
        for (size_t i = 0; i < PART / 8; i++) part->wrong += numbers[i] != part->at / 8 + i;
    }
    (void)sfti_os_resize(NULL, numbers, PART, 0);
}

/* One descriptor, many threads: each reads what it asked for. */
static void test_threads_read(void **state) {
    read_part parts[4];
    uint64_t *numbers = sfti_os_resize(NULL, NULL, 0, 4 * PART);
    int fd = make(temp_path("file"), "");
    (void)state;
    for (size_t i = 0; i < 4 * PART / 8; i++) numbers[i] = i;
    assert_int_equal(sfti_write_all(fd, numbers, 4 * PART, 0), 0);
    for (size_t i = 0; i < 4; i++) {
        parts[i] = (read_part){ .fd = fd, .at = i * PART };
        assert_int_equal(sfti_os_thread_start(&parts[i].thread, read_numbers, &parts[i]), 0);
    }
    for (size_t i = 0; i < 4; i++) {
        sfti_os_thread_join(&parts[i].thread);
        assert_int_equal(parts[i].wrong, 0);
    }
    (void)sfti_os_resize(NULL, numbers, 4 * PART, 0);
    assert_int_equal(sfti_os_close(fd), 0);
}

static void test_stream(void **state) {
    char buffer[8];
    size_t put, got;
    int in, out = make(temp_path("file"), "");
    (void)state;
    assert_int_equal(sfti_os_write(out, "stre", 4, &put), 0);
    assert_int_equal(put, 4);
    assert_int_equal(sfti_os_write(out, "am", 2, &put), 0);
    assert_int_equal(sfti_os_open_read(temp_path("file"), &in), 0);
    assert_int_equal(sfti_os_read(in, buffer, 4, &got), 0);
    assert_int_equal(got, 4);
    assert_int_equal(sfti_os_read(in, buffer + 4, 4, &got), 0);
    assert_int_equal(got, 2);
    assert_memory_equal(buffer, "stream", 6);
    assert_int_equal(sfti_os_read(in, buffer, 4, &got), 0);
    assert_int_equal(got, 0);
    assert_false(sfti_os_is_append(out));
    assert_false(sfti_os_is_terminal(out));
    assert_int_equal(sfti_os_terminal_columns(out), 0);
    assert_int_equal(sfti_os_close(in), 0);
    assert_int_equal(sfti_os_close(out), 0);
}

static void test_map(void **state) {
    void *shared, *own;
    int fd = make(temp_path("file"), "mapped");
    (void)state;
    assert_int_equal(sfti_os_map(fd, 6, false, &shared), 0);
    assert_int_equal(sfti_os_map(fd, 6, true, &own), 0);
    assert_int_equal(sfti_os_map(fd, SIZE_MAX, false, &(void *){ NULL }), ENOMEM);
    assert_int_equal(sfti_os_close(fd), 0);
    memcpy(own, "MA", 2);
    assert_memory_equal(own, "MApped", 6);
    assert_memory_equal(shared, "mapped", 6);
    check_file(temp_path("file"), "mapped");
    sfti_os_unmap(own, 6);
    sfti_os_unmap(shared, 6);
    sfti_os_unmap(NULL, 6);
}

/* ── Space ── */

static void test_space(void **state) {
    os_info info;
    uint64_t hole = 0;
    int fd = make(temp_path("file"), "start");
    int error = sfti_os_preallocate(fd, 1 << 20);
    (void)state;
    assert_true(error == 0 || error == EOPNOTSUPP);
    assert_int_equal(sfti_os_info_fd(fd, &info), 0);
    assert_int_equal(info.size, error ? 5 : 1 << 20);
    int again = sfti_os_preallocate(fd, 2); /* makes no file shorter */
    assert_true(again == 0 || again == error);
    assert_int_equal(sfti_os_info_fd(fd, &info), 0);
    assert_true(info.size >= 5);
    assert_int_equal(sfti_os_truncate(fd, 5), 0);
    check_bytes(fd, "start");
    error = sfti_os_find_hole(fd, 0, &hole);
    if (error) assert_int_equal(error, EOPNOTSUPP);
    else assert_int_equal(hole, 5);
    assert_int_equal(sfti_os_sync(fd), 0);
    sfti_os_write_back(fd, 0, 5);
    assert_int_equal(sfti_os_close(fd), 0);
}

/* Whole units go past the cache, the end goes plainly; both are seen by all. */
static void test_direct(void **state) {
    int fd = make(temp_path("file"), "");
    size_t room = 3 * 4096, put = 0, got;
    char *block = sfti_os_resize(NULL, NULL, 0, room), back[8];
    char *aligned = block + (4096 - (uintptr_t)block % 4096) % 4096;
    (void)state;
    memset(block, 'd', room);
    int error = sfti_os_set_direct(fd, true);
    if (!error) error = sfti_os_pwrite(fd, aligned, 4096, 0, &put);
    if (!error) assert_int_equal(put, 4096);
    else assert_true(error == EOPNOTSUPP || error == EINVAL);
    assert_int_equal(sfti_os_set_direct(fd, false), 0);
    assert_int_equal(sfti_write_all(fd, "end", 3, 4096), 0);
    assert_int_equal(sfti_read_all(fd, back, 8, 4094, &got), 0);
    assert_int_equal(got, 5);
    assert_memory_equal(back, error ? "\0\0end" : "ddend", 5);
    (void)sfti_os_resize(NULL, block, room, 0);
    assert_int_equal(sfti_os_close(fd), 0);
}

/* Whole units are read past the cache, the last of them as far as the file goes. */
static void test_open_direct(void **state) {
    int fd = make(temp_path("file"), ""), direct;
    size_t room = 3 * 4096, got = 0;
    char *block = sfti_os_resize(NULL, NULL, 0, room);
    char *aligned = block + (4096 - (uintptr_t)block % 4096) % 4096;
    uint64_t cached = 7;
    (void)state;
    memset(block, 'd', room);
    assert_int_equal(sfti_write_all(fd, block, 4096 + 5, 0), 0);
    assert_int_equal(sfti_os_sync(fd), 0);
    int error = sfti_os_open_direct(fd, &direct);
    if (!error) {
        memset(aligned, 0, 8192);
        error = sfti_os_pread(direct, aligned, 8192, 0, &got);
        assert_int_equal(sfti_os_close(direct), 0);
    }
    if (error) assert_true(error == EOPNOTSUPP || error == EINVAL);
    else assert_true(got == 4096 + 5 && aligned[0] == 'd' && aligned[got - 1] == 'd');
    assert_int_equal(sfti_read_all(fd, block, 3, 1, &got), 0); /* the first one is as before */
    assert_int_equal(got, 3);
    error = sfti_os_cached(fd, 0, 4096 + 5, &cached);
    if (error) assert_int_equal(error, EOPNOTSUPP);
    else assert_true(cached <= 4096 + 5);
    (void)sfti_os_resize(NULL, block, room, 0);
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_not_equal(sfti_os_open_direct(-1, &direct), 0);
}

/* ── Names ── */

static void test_opening(void **state) {
    int fd = 7;
    (void)state;
    assert_int_equal(sfti_os_open_read(temp_path("none"), &fd), ENOENT);
    assert_int_equal(sfti_os_open_read(temp_path("none/file"), &fd), ENOENT);
    assert_int_equal(sfti_os_open_read("", &fd), ENOENT);
    make_closed(temp_path("file"), "bytes");
    assert_int_equal(sfti_os_open_new(temp_path("file"), 0644, &fd), EEXIST);
    assert_int_equal(sfti_os_make_folder(temp_path("folder"), 0755), 0);
    assert_int_equal(sfti_os_make_folder(temp_path("folder"), 0755), EEXIST);
    assert_int_equal(sfti_os_open_new(temp_path("folder"), 0644, &fd), EEXIST);
    assert_int_equal(sfti_os_open_write(temp_path("folder"), &fd), EISDIR);
    assert_int_equal(sfti_os_open_write(temp_path("file"), &fd), 0);
    assert_int_equal(sfti_write_all(fd, "BY", 2, 0), 0);
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_equal(sfti_os_open_no_link(temp_path("file"), true, &fd), 0);
    check_bytes(fd, "BYtes");
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_equal(sfti_os_open_folder(temp_path("file"), &fd), ENOTDIR);
    assert_int_equal(sfti_os_open_folder(temp_path("folder"), &fd), 0);
    int error = sfti_os_sync(fd);
    assert_true(error == 0 || sfti_no_folder_sync(error));
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_equal(sfti_sync_parent(temp_path("file")), 0);
}

static void test_info(void **state) {
    os_info by_fd, by_path, other;
    int fd = make(temp_path("file"), "bytes");
    (void)state;
    assert_int_equal(sfti_os_info_fd(fd, &by_fd), 0);
    assert_int_equal(sfti_os_info_path(temp_path("file"), false, &by_path), 0);
    assert_int_equal(by_fd.kind, OS_FILE);
    assert_int_equal(by_fd.size, 5);
    assert_int_equal(by_fd.links, 1);
    assert_int_equal(by_fd.owner, sfti_os_user());
    assert_int_equal(by_fd.mode & 0422, 0400); /* nobody else may write */
    assert_true(by_fd.mtime_ns > INT64_C(1000000000000000000));
    assert_true(by_fd.device == by_path.device && by_fd.inode == by_path.inode);
    make_closed(temp_path("other"), "");
    assert_int_equal(sfti_os_info_path(temp_path("other"), true, &other), 0);
    assert_true(other.inode != by_fd.inode && other.device == by_fd.device);
    assert_int_equal(sfti_os_rename(temp_path("file"), temp_path("renamed"), true), 0);
    assert_int_equal(sfti_os_info_path(temp_path("renamed"), false, &by_path), 0);
    assert_true(by_fd.inode == by_path.inode);
    assert_int_equal(sfti_os_info_path(temp_path("file"), false, &by_path), ENOENT);
    assert_int_equal(sfti_os_info_path(temp_dir, false, &other), 0);
    assert_int_equal(other.kind, OS_DIR);
    assert_int_equal(sfti_os_set_mtime(fd, INT64_C(1234567890123456700)), 0);
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_equal(sfti_os_info_path(temp_path("renamed"), true, &by_path), 0);
    assert_true(by_path.mtime_ns == INT64_C(1234567890123456700));
}

/* Who has a file open that was removed, or replaced, can tell that it has no name. */
static void test_nameless(void **state) {
    os_info info;
    int fd = make(temp_path("file"), "old");
    (void)state;
    make_closed(temp_path("fresh"), "fresh");
    assert_int_equal(sfti_os_rename(temp_path("fresh"), temp_path("file"), false), 0);
    assert_int_equal(sfti_os_info_fd(fd, &info), 0);
    assert_int_equal(info.links, 0);
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_equal(sfti_os_open_read(temp_path("file"), &fd), 0);
    assert_int_equal(sfti_os_unlink(temp_path("file")), 0);
    assert_int_equal(sfti_os_info_fd(fd, &info), 0);
    assert_int_equal(info.links, 0);
    assert_int_equal(sfti_os_close(fd), 0);
}

static void test_unlinking(void **state) {
    os_info info;
    int again, fd = make(temp_path("file"), "bytes");
    (void)state;
    assert_int_equal(sfti_os_unlink(temp_path("file")), 0);
    assert_int_equal(sfti_os_info_path(temp_path("file"), false, &info), ENOENT);
    assert_int_equal(sfti_os_open_read(temp_path("file"), &again), ENOENT);
    check_bytes(fd, "bytes");
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_equal(sfti_os_unlink(temp_path("file")), ENOENT);
    make_closed(temp_path("file"), "");
    assert_int_equal(sfti_os_make_folder(temp_path("folder"), 0755), 0);
    make_closed(temp_path("folder/file"), "");
    assert_int_equal(sfti_os_unlink(temp_path("folder")), EISDIR);
    assert_int_equal(sfti_os_remove_folder(temp_path("file")), ENOTDIR);
    assert_int_equal(sfti_os_remove_folder(temp_path("folder")), ENOTEMPTY);
    assert_int_equal(sfti_os_unlink(temp_path("folder/file")), 0);
    assert_int_equal(sfti_os_remove_folder(temp_path("folder")), 0);
}

/* ── Replacing ── */

static void test_replace_open(void **state) {
    int old = make(temp_path("file"), "old");
    int fresh = make(temp_path("fresh"), "fresh");
    (void)state;
    assert_int_equal(sfti_os_rename(temp_path("fresh"), temp_path("file"), false), 0);
    check_bytes(old, "old");
    check_bytes(fresh, "fresh");
    check_file(temp_path("file"), "fresh");
    assert_int_equal(sfti_os_close(old), 0);
    assert_int_equal(sfti_os_close(fresh), 0);
    assert_int_equal(temp_dir_count(), 1);
}

static void test_replace_mapped(void **state) {
    void *map;
    int old = make(temp_path("file"), "old");
    (void)state;
    assert_int_equal(sfti_os_map(old, 3, false, &map), 0);
    assert_int_equal(sfti_os_close(old), 0);
    for (int i = 0; i < 3; i++) {
        make_closed(temp_path("fresh"), i == 2 ? "last" : "fresh");
        assert_int_equal(sfti_os_rename(temp_path("fresh"), temp_path("file"), false), 0);
    }
    assert_memory_equal(map, "old", 3);
    check_file(temp_path("file"), "last");
    sfti_os_unmap(map, 3);
    make_closed(temp_path("fresh"), "fresh");
    assert_int_equal(sfti_os_rename(temp_path("fresh"), temp_path("file"), false), 0);
    assert_int_equal(temp_dir_count(), 1);
}

static void test_replace_not(void **state) {
    (void)state;
    make_closed(temp_path("file"), "old");
    make_closed(temp_path("fresh"), "fresh");
    assert_int_equal(sfti_os_rename(temp_path("fresh"), temp_path("file"), true), EEXIST);
    check_file(temp_path("file"), "old");
    check_file(temp_path("fresh"), "fresh");
    assert_int_equal(sfti_os_rename(temp_path("none"), temp_path("file"), false), ENOENT);
    assert_int_equal(sfti_os_make_folder(temp_path("folder"), 0755), 0);
    assert_int_equal(sfti_os_rename(temp_path("fresh"), temp_path("folder"), false), EISDIR);
    assert_int_equal(sfti_os_rename(temp_path("fresh"), temp_path("free"), true), 0);
    check_file(temp_path("free"), "fresh");
    assert_int_equal(sfti_os_rename(temp_path("free"), temp_path("none/file"), false), ENOENT);
    assert_int_equal(temp_dir_count(), 3);
}

/* What may not be written to is replaced and removed nonetheless: that is the folder's. */
static void test_replace_readonly(void **state) {
    os_info info;
    int fd = make(temp_path("file"), "old");
    (void)state;
    assert_int_equal(sfti_os_set_mode(fd, 0444), 0);
    assert_int_equal(sfti_os_info_fd(fd, &info), 0);
    assert_int_equal(info.mode & 0222, 0);
    assert_int_equal(sfti_os_close(fd), 0);
    fd = make(temp_path("fresh"), "fresh");
    assert_int_equal(sfti_os_set_mode(fd, 0444), 0);
    assert_int_equal(sfti_os_rename(temp_path("fresh"), temp_path("file"), false), 0);
    assert_int_equal(sfti_os_info_fd(fd, &info), 0);
    assert_int_equal(info.mode & 0222, 0);
    check_file(temp_path("file"), "fresh");
    assert_int_equal(sfti_os_set_mode(fd, 0644), 0);
    assert_int_equal(sfti_os_info_fd(fd, &info), 0);
    assert_int_equal(info.mode & 0200, 0200);
    assert_int_equal(sfti_os_set_mode(fd, 0444), 0);
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_equal(sfti_os_unlink(temp_path("file")), 0);
    assert_int_equal(temp_dir_count(), 0);
}

/* ── Locks ── */

static void test_lock(void **state) {
    int other, fd = make(temp_path("file"), "bytes");
    (void)state;
    assert_int_equal(sfti_os_open_write(temp_path("file"), &other), 0);
    assert_int_equal(sfti_os_lock(fd), 0);
    assert_int_equal(sfti_os_lock(fd), 0);
    assert_int_equal(sfti_os_lock(other), EAGAIN);
    check_bytes(other, "bytes");
    assert_int_equal(sfti_write_all(other, "BYTES", 5, 0), 0);
    sfti_os_unlock(fd);
    assert_int_equal(sfti_os_lock(other), 0);
    assert_int_equal(sfti_os_lock(fd), EAGAIN);
    assert_int_equal(sfti_os_close(other), 0);
    assert_int_equal(sfti_os_lock(fd), 0);
    assert_int_equal(sfti_os_close(fd), 0);
}

/* ── Folders and odd paths ── */

typedef struct names_seen {
    size_t files, folders;
    const char *wanted;
    bool found;
} names_seen;

static int see_name(void *ctx, const char *name, os_kind kind) {
    names_seen *seen = ctx;
    seen->files += kind == OS_FILE;
    seen->folders += kind == OS_DIR;
    seen->found |= strcmp(name, seen->wanted) == 0;
    return 0;
}

static int stop_at_once(void *ctx, const char *name, os_kind kind) {
    (void)name, (void)kind;
    ++*(int *)ctx;
    return -5;
}

static void test_names(void **state) {
    static const char odd[] = "m\xc3\xb6""del \xe6\xa8\xa1\xe5\x9e\x8b \xf0\x9f\x98\x80.bin";
    names_seen seen = { .wanted = odd };
    char real[1024];
    int calls = 0;
    (void)state;
    make_closed(temp_path(odd), "odd");
    make_closed(temp_path("plain"), "");
    assert_int_equal(sfti_os_make_folder(temp_path("folder"), 0755), 0);
    assert_int_equal(sfti_os_list(temp_dir, see_name, &seen), 0);
    assert_int_equal(seen.files, 2);
    assert_int_equal(seen.folders, 1);
    assert_true(seen.found);
    assert_int_equal(sfti_os_list(temp_dir, stop_at_once, &calls), -5);
    assert_int_equal(calls, 1);
    assert_int_equal(sfti_os_list(temp_path("folder"), stop_at_once, &calls), 0);
    assert_int_equal(sfti_os_list(temp_path("plain"), stop_at_once, &calls), ENOTDIR);
    assert_int_equal(sfti_os_list(temp_path("none"), stop_at_once, &calls), ENOENT);
    assert_int_equal(sfti_os_real_path(temp_path("folder/../plain"), real, sizeof real), 0);
    assert_string_equal(strrchr(real, '/'), "/plain");
    assert_null(strstr(real, ".."));
    check_file(real, "");
    assert_int_equal(sfti_os_real_path(temp_path("plain"), real, 4), ENAMETOOLONG);
    assert_int_equal(sfti_os_real_path(temp_path("none"), real, sizeof real), ENOENT);
    assert_int_equal(sfti_os_read_link(temp_path("plain"), real, sizeof real), EINVAL);
    check_file(temp_path(odd), "odd");
    assert_int_equal(sfti_os_unlink(temp_path(odd)), 0);
}

#define DEEP 12

static size_t deep_path(char *out, size_t cap, int levels) {
    int len = snprintf(out, cap, "%s", temp_dir);
    for (int i = 0; i < levels; i++)
        len += snprintf(out + len, cap - (size_t)len,
                        "/a_folder_with_a_name_of_fifty_characters_%08d", i);
    return (size_t)len;
}

static void test_long_paths(void **state) {
    char path[1024], other[1024];
    names_seen seen = { .wanted = "second" };
    os_info info;
    (void)state;
    for (int i = 1; i <= DEEP; i++) {
        (void)deep_path(path, sizeof path, i);
        assert_int_equal(sfti_os_make_folder(path, 0755), 0);
    }
    size_t len = deep_path(path, sizeof path, DEEP);
    memcpy(other, path, len);
    memcpy(path + len, "/first", 7);
    memcpy(other + len, "/second", 8);
    make_closed(path, "deep");
    assert_int_equal(sfti_os_rename(path, other, true), 0);
    make_closed(path, "deeper");
    assert_int_equal(sfti_os_rename(path, other, false), 0);
    check_file(other, "deeper");
    assert_int_equal(sfti_os_info_path(other, false, &info), 0);
    assert_int_equal(sfti_os_real_path(other, path, sizeof path), 0);
    assert_true(strlen(path) > 500);
    check_file(path, "deeper");
    path[strlen(path) - strlen("/second")] = '\0';
    assert_int_equal(sfti_os_list(path, see_name, &seen), 0);
    assert_true(seen.found && seen.files == 1);
    int fd = -1;
    assert_int_equal(sfti_os_open_beneath(path, "second", OS_BENEATH_READ, &fd), 0);
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_equal(sfti_os_unlink(other), 0);
    for (int i = DEEP; i >= 1; i--) {
        (void)deep_path(path, sizeof path, i);
        assert_int_equal(sfti_os_remove_folder(path), 0);
    }
}

/* ── Beneath ── */

typedef struct beneath_row {
    const char *name;
    os_beneath how;
    int error;
} beneath_row;

static const beneath_row beneath_rows[] = {
    { "file", OS_BENEATH_READ, 0 },          { "file", OS_BENEATH_OWN, 0 },
    { "file", OS_BENEATH_WRITE, 0 },         { "in/deep", OS_BENEATH_READ, 0 },
    { "in/./deep", OS_BENEATH_READ, 0 },     { "in/../file", OS_BENEATH_READ, 0 },
    { "in//deep", OS_BENEATH_WRITE, 0 },     { "none", OS_BENEATH_READ, ENOENT },
    { "in/none", OS_BENEATH_WRITE, ENOENT }, { "none/deep", OS_BENEATH_READ, ENOENT },
    { "file/deep", OS_BENEATH_READ, ENOTDIR }, { "in", OS_BENEATH_WRITE, EISDIR },
    { "in", OS_BENEATH_FOLDER, 0 },          { "", OS_BENEATH_FOLDER, 0 },
    { "file", OS_BENEATH_FOLDER, ENOTDIR },  { "../file", OS_BENEATH_READ, EXDEV },
    { "in/../../file", OS_BENEATH_READ, EXDEV }, { "/file", OS_BENEATH_READ, EXDEV },
    { "", OS_BENEATH_READ, ENOENT },
};

static void test_beneath(void **state) {
    char folder[512], path[1024];
    int fd;
    (void)state;
    memcpy(folder, temp_path("folder"), strlen(temp_path("folder")) + 1);
    assert_int_equal(sfti_os_make_folder(folder, 0755), 0);
    assert_int_equal(sfti_os_make_folder(temp_path("folder/in"), 0755), 0);
    make_closed(temp_path("file"), "outside");
    make_closed(temp_path("folder/file"), "file");
    make_closed(temp_path("folder/in/deep"), "deep");
    for (size_t i = 0; i < sizeof beneath_rows / sizeof *beneath_rows; i++) {
        const beneath_row *row = &beneath_rows[i];
        int error = sfti_os_open_beneath(folder, row->name, row->how, &fd);
        if (error != row->error)
            fail_msg("\"%s\" (%d): expected %d, found %d", row->name, (int)row->how, row->error,
                     error);
        if (error) assert_int_equal(fd, -1);
        else if (row->how != OS_BENEATH_FOLDER)
            check_bytes(fd, strstr(row->name, "deep") ? "deep" : "file");
        if (!error) assert_int_equal(sfti_os_close(fd), 0);
    }
    assert_int_equal(sfti_os_open_beneath(temp_path("none"), "file", OS_BENEATH_READ, &fd), ENOENT);
    assert_int_equal(sfti_os_open_beneath(temp_path("file"), "file", OS_BENEATH_READ, &fd),
                     ENOTDIR);
    assert_int_equal(sfti_os_open_beneath(folder, "in", OS_BENEATH_FOLDER, &fd), 0);
    int error = sfti_os_path_in(fd, "deep", path, sizeof path);
    if (error) assert_int_equal(error, EOPNOTSUPP);
    else check_file(path, "deep");
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_equal(sfti_os_unlink_beneath(folder, "in/deep"), 0);
    assert_int_equal(sfti_os_unlink_beneath(folder, "in/deep"), ENOENT);
    assert_int_equal(sfti_os_unlink_beneath(folder, "in"), EISDIR);
    assert_int_equal(sfti_os_unlink_beneath(folder, "file"), 0);
    assert_int_equal(sfti_os_remove_folder(temp_path("folder/in")), 0);
}

/* ── Memory ── */

/* Blocks keep what is in them, whichever way they come to their size. */
static void test_resize(void **state) {
    size_t size = 0;
    unsigned char *block = NULL;
    (void)state;
    for (size_t next = 4000; next < (size_t)40 << 20; next += next / 2) {
        block = sfti_os_resize(NULL, block, size, next);
        assert_non_null(block);
        for (size_t i = 0; i < size; i += 4093) assert_int_equal(block[i], i / 4093 % 251);
        for (size_t i = 0; i < next; i += 4093) block[i] = (unsigned char)(i / 4093 % 251);
        size = next;
    }
    for (; size > 1000; size /= 3) {
        block = sfti_os_resize(NULL, block, size, size / 3);
        assert_non_null(block);
        for (size_t i = 0; i < size / 3; i += 4093) assert_int_equal(block[i], i / 4093 % 251);
    }
    block = sfti_os_resize(NULL, block, size, (size_t)8 << 20);
    assert_non_null(block);
    assert_int_equal(block[0], 0);
    assert_null(sfti_os_resize(NULL, block, (size_t)8 << 20, 0));
    assert_null(sfti_os_resize(NULL, NULL, 0, SIZE_MAX / 2));
}

static void test_environment(void **state) {
    unsigned char bits[2][32];
    (void)state;
    assert_non_null(sfti_os_env("PATH"));
    assert_null(sfti_os_env("SFT_NO_SUCH_VARIABLE"));
    assert_int_equal(sfti_os_random(bits[0], 32), 0);
    assert_int_equal(sfti_os_random(bits[1], 32), 0);
    assert_memory_not_equal(bits[0], bits[1], 32);
    assert_true(sfti_os_cpu_count() >= 1);
    assert_true(sfti_os_process() > 0);
    assert_true(sfti_os_time_s() > 1600000000);
    uint64_t now = sfti_os_now_ns();
    sfti_os_sleep_ms(20);
    assert_true(sfti_os_now_ns() - now >= 15000000);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, temp_dir_make, temp_dir_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_positions),     CASE(test_threads_read),     CASE(test_stream),
        CASE(test_map),           CASE(test_space),            CASE(test_direct),
        CASE(test_open_direct),
        CASE(test_opening),       CASE(test_info),             CASE(test_unlinking),
        CASE(test_nameless),
        CASE(test_replace_open),  CASE(test_replace_mapped),   CASE(test_replace_not),
        CASE(test_replace_readonly), CASE(test_lock),          CASE(test_names),
        CASE(test_long_paths),    CASE(test_beneath),
        cmocka_unit_test(test_resize), cmocka_unit_test(test_environment),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
