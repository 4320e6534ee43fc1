/* os.h on Windows: what is tried again when the system refuses it, as it does for a moment while
 * others hold a file, and what is not. */
#include "os/io.h"
#include "os/os_win32.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/temp_dir.h"
#include "windows/import_call.h"

#include <errno.h>

#define DENIED ((NTSTATUS)0xC0000022)
#define LOCKED ((NTSTATUS)0xC0000054)
#define CRC_ERROR ((NTSTATUS)0xC000003F)
#define FOR_GOOD UINT32_MAX
#define DISPOSITION_EX ((FILE_INFO_BY_HANDLE_CLASS)21)

typedef __typeof__(&CreateFileW) create_file;
typedef __typeof__(&NtCreateFile) nt_create_file;
typedef __typeof__(&ReadFile) read_file;
typedef __typeof__(&WriteFile) write_file;
typedef __typeof__(&SetFileInformationByHandle) set_information;
typedef __typeof__(&ReOpenFile) reopen_file;

extern create_file __imp_CreateFileW;
extern nt_create_file __imp_NtCreateFile;
extern read_file __imp_ReadFile;
extern write_file __imp_WriteFile;
extern set_information __imp_SetFileInformationByHandle;
extern reopen_file __imp_ReOpenFile;

/* ── Calls that are refused ── */

static struct {
    create_file create;
    nt_create_file nt_create;
    read_file read;
    write_file write;
    set_information set;
    reopen_file reopen;
} real;

static struct {
    uint32_t left; /* refusals to come */
    DWORD access;  /* which opens are refused */
    NTSTATUS status;
    bool later; /* also the removal once all have closed the file */
} refuse;

static bool is_refused(void) {
    if (refuse.left == 0) return false;
    if (refuse.left != FOR_GOOD) refuse.left--;
    SetLastError(RtlNtStatusToDosError(refuse.status));
    return true;
}

static HANDLE WINAPI own_create(const wchar_t *path, DWORD access, DWORD share,
                                SECURITY_ATTRIBUTES *security, DWORD how, DWORD flags,
                                HANDLE like) {
    if ((access & refuse.access) && is_refused()) return INVALID_HANDLE_VALUE;
    return real.create(path, access, share, security, how, flags, like);
}

static NTSTATUS NTAPI own_nt_create(HANDLE *out, ACCESS_MASK access, OBJECT_ATTRIBUTES *what,
                                    IO_STATUS_BLOCK *io, LARGE_INTEGER *size, ULONG attributes,
                                    ULONG share, ULONG how, ULONG options, void *more,
                                    ULONG more_len) {
    if ((access & refuse.access) && is_refused()) return refuse.status;
    return real.nt_create(out, access, what, io, size, attributes, share, how, options, more,
                          more_len);
}

static BOOL WINAPI own_read(HANDLE file, void *into, DWORD len, DWORD *got, OVERLAPPED *o) {
    return !is_refused() && real.read(file, into, len, got, o);
}

static BOOL WINAPI own_write(HANDLE file, const void *from, DWORD len, DWORD *put,
                             OVERLAPPED *o) {
    return !is_refused() && real.write(file, from, len, put, o);
}

static BOOL WINAPI own_set(HANDLE file, FILE_INFO_BY_HANDLE_CLASS kind, void *info, DWORD len) {
    bool removes = kind == DISPOSITION_EX || (kind == FileDispositionInfo && refuse.later);
    if (removes && is_refused()) return FALSE;
    return real.set(file, kind, info, len);
}

static HANDLE WINAPI own_reopen(HANDLE file, DWORD access, DWORD share, DWORD flags) {
    bool removes = (flags & FILE_FLAG_DELETE_ON_CLOSE) && refuse.later;
    if (removes && is_refused()) return INVALID_HANDLE_VALUE;
    return real.reopen(file, access, share, flags);
}

#define SET_IMPORT(name, function) \
    set_import(&__imp_##name, &(__typeof__(&name)){ function }, sizeof(__typeof__(&name)))

static int end(void **state) {
    if (real.create) SET_IMPORT(CreateFileW, real.create);
    if (real.nt_create) SET_IMPORT(NtCreateFile, real.nt_create);
    if (real.read) SET_IMPORT(ReadFile, real.read);
    if (real.write) SET_IMPORT(WriteFile, real.write);
    if (real.set) SET_IMPORT(SetFileInformationByHandle, real.set);
    if (real.reopen) SET_IMPORT(ReOpenFile, real.reopen);
    memset(&real, 0, sizeof real);
    memset(&refuse, 0, sizeof refuse);
    return temp_dir_remove(state);
}

static void refuse_opens(void) {
    real.create = __imp_CreateFileW;
    real.nt_create = __imp_NtCreateFile;
    SET_IMPORT(CreateFileW, own_create);
    SET_IMPORT(NtCreateFile, own_nt_create);
}

static void refuse_bytes(void) {
    real.read = __imp_ReadFile;
    real.write = __imp_WriteFile;
    SET_IMPORT(ReadFile, own_read);
    SET_IMPORT(WriteFile, own_write);
}

static void refuse_removals(void) {
    real.set = __imp_SetFileInformationByHandle;
    real.reopen = __imp_ReOpenFile;
    SET_IMPORT(SetFileInformationByHandle, own_set);
    SET_IMPORT(ReOpenFile, own_reopen);
}

static void refuse_next(uint32_t count, DWORD access, NTSTATUS status) {
    refuse.left = count;
    refuse.access = access;
    refuse.status = status;
}

/* ── Opening ── */

static void put(const char *name, uint32_t mode) {
    int fd;
    assert_int_equal(sfti_os_open_new(temp_path(name), mode, &fd), 0);
    assert_int_equal(sfti_write_all(fd, "bytes", 5, 0), 0);
    assert_int_equal(sfti_os_close(fd), 0);
}

static int open_to_write(const char *name) {
    int fd;
    int error = sfti_os_open_write(temp_path(name), &fd);
    if (!error) assert_int_equal(sfti_os_close(fd), 0);
    return error;
}

static int open_beneath(const char *name) {
    int fd;
    int error = sfti_os_open_beneath(temp_dir, name, OS_BENEATH_WRITE, &fd);
    if (!error) assert_int_equal(sfti_os_close(fd), 0);
    return error;
}

static int unlink_path(const char *name) {
    return sfti_os_unlink(temp_path(name));
}

static int unlink_beneath(const char *name) {
    return sfti_os_unlink_beneath(temp_dir, name);
}

static int (*const changes[])(const char *name) = { open_to_write, open_beneath, unlink_path,
                                                    unlink_beneath };
#define CHANGES (sizeof changes / sizeof *changes)

static void check_refused(int (*change)(const char *name), const char *name, int error,
                          uint64_t least, uint64_t most) {
    uint64_t before = sfti_os_win_retries();
    assert_int_equal(change(name), error);
    uint64_t tries = sfti_os_win_retries() - before;
    if (tries < least || tries > most) fail_msg("%s: tried %u times more", name, (unsigned)tries);
}

static void test_denied_a_while(void **state) {
    (void)state;
    refuse_opens();
    for (size_t i = 0; i < CHANGES; i++) {
        refuse_next(0, 0, 0);
        put("file", 0644);
        refuse_next(3, GENERIC_WRITE | DELETE, DENIED);
        check_refused(changes[i], "file", 0, 3, 3);
        (void)sfti_os_unlink(temp_path("file"));
    }
    assert_int_equal(temp_dir_count(), 0);
}

static void test_denied_for_good(void **state) {
    (void)state;
    put("file", 0644);
    refuse_opens();
    refuse_next(FOR_GOOD, GENERIC_WRITE | DELETE, DENIED);
    for (size_t i = 0; i < CHANGES; i++) check_refused(changes[i], "file", EACCES, 2, 64);
    assert_int_equal(temp_dir_count(), 1);
}

/* What will not change is told at once. */
static void test_denied_at_once(void **state) {
    int fd;
    (void)state;
    put("file", 0644);
    put("read-only", 0444);
    assert_int_equal(sfti_os_make_folder(temp_path("folder"), 0755), 0);
    refuse_opens();
    refuse_next(FOR_GOOD, GENERIC_WRITE | DELETE, DENIED);
    for (size_t i = 0; i < CHANGES; i++) {
        check_refused(changes[i], "folder", EACCES, 0, 0);
        check_refused(changes[i], "read-only", EACCES, 0, 0);
        check_refused(changes[i], "no-file", EACCES, 0, 0);
    }
    refuse_next(FOR_GOOD, GENERIC_READ, DENIED);
    uint64_t before = sfti_os_win_retries();
    assert_int_equal(sfti_os_open_read(temp_path("file"), &fd), EACCES);
    assert_int_equal(sfti_os_open_beneath(temp_dir, "file", OS_BENEATH_READ, &fd), EACCES);
    assert_int_equal(sfti_os_win_retries(), before);
}

/* The file is open, and its removal is refused. */
static void test_removal(void **state) {
    (void)state;
    put("file", 0644);
    refuse_removals();
    refuse_next(FOR_GOOD, 0, DENIED);
    check_refused(unlink_path, "file", EACCES, 2, 64);
    refuse_next(1, 0, CRC_ERROR);
    check_refused(unlink_path, "file", EIO, 0, 0);
    refuse_next(2, 0, DENIED);
    check_refused(unlink_path, "file", 0, 2, 2);
    assert_int_equal(temp_dir_count(), 0);
}

/* It goes once it is unmapped, and its name at once. */
static void test_removal_of_mapped(void **state) {
    os_info info;
    void *map;
    int fd;
    (void)state;
    put("file", 0644);
    assert_int_equal(sfti_os_open_read(temp_path("file"), &fd), 0);
    assert_int_equal(sfti_os_map(fd, 5, false, &map), 0);
    refuse_removals();
    refuse_next(FOR_GOOD, 0, WIN_STATUS_IN_USE);
    check_refused(unlink_path, "file", 0, 0, 0);
    assert_int_equal(sfti_os_info_path(temp_path("file"), false, &info), ENOENT);
    sfti_os_unmap(map, 5);
    assert_int_equal(sfti_os_close(fd), 0);
    refuse_next(0, 0, 0);
    put("read-only", 0444);
    refuse_next(FOR_GOOD, 0, WIN_STATUS_IN_USE);
    check_refused(unlink_path, "read-only", 0, 0, 0);
    assert_int_equal(temp_dir_count(), 0);
}

/* What is not removed keeps its name. */
static void test_removal_in_vain(void **state) {
    os_info info;
    (void)state;
    put("file", 0644);
    refuse_removals();
    refuse.later = true;
    refuse_next(FOR_GOOD, 0, WIN_STATUS_IN_USE);
    check_refused(unlink_path, "file", EACCES, 2, 64);
    assert_int_equal(sfti_os_info_path(temp_path("file"), false, &info), 0);
    assert_int_equal(temp_dir_count(), 1);
    refuse_next(1, 0, WIN_STATUS_GONE);
    check_refused(unlink_path, "file", ENOENT, 0, 0);
}

/* ── Bytes ── */

static void test_locked_bytes(void **state) {
    char found[8] = "";
    size_t done;
    int fd;
    (void)state;
    put("file", 0644);
    assert_int_equal(sfti_os_open_write(temp_path("file"), &fd), 0);
    refuse_bytes();
    uint64_t before = sfti_os_win_retries();
    refuse_next(3, 0, LOCKED);
    assert_int_equal(sfti_os_pread(fd, found, sizeof found, 1, &done), 0);
    assert_int_equal(done, 4);
    assert_memory_equal(found, "ytes", 4);
    refuse_next(2, 0, LOCKED);
    assert_int_equal(sfti_os_pwrite(fd, "B", 1, 0, &done), 0);
    assert_int_equal(done, 1);
    assert_int_equal(sfti_os_win_retries(), before + 5);
    refuse_next(1, 0, CRC_ERROR);
    assert_int_equal(sfti_os_pread(fd, found, 1, 0, &done), EIO);
    refuse_next(1, 0, DENIED);
    assert_int_equal(sfti_os_pwrite(fd, "C", 1, 0, &done), EACCES);
    assert_int_equal(sfti_os_win_retries(), before + 5);
    assert_int_equal(sfti_os_pread(fd, found, sizeof found, 0, &done), 0);
    assert_memory_equal(found, "Bytes", 5);
    assert_int_equal(sfti_os_close(fd), 0);
}

static bool stop_at_once(void *ctx) {
    ++*(int *)ctx;
    return false;
}

static void test_locked_for_good(void **state) {
    char found[8];
    size_t done;
    int fd, calls = 0;
    (void)state;
    put("file", 0644);
    assert_int_equal(sfti_os_open_write(temp_path("file"), &fd), 0);
    refuse_bytes();
    refuse_next(FOR_GOOD, 0, LOCKED);
    uint64_t before = sfti_os_win_retries();
    assert_int_equal(sfti_os_pread(fd, found, 1, 0, &done), EBUSY);
    assert_true(sfti_os_win_retries() - before >= 2 && sfti_os_win_retries() - before <= 64);
    assert_int_equal(done, 0);
    sfti_os_on_wait(stop_at_once, &calls);
    assert_int_equal(sfti_os_pread(fd, found, 1, 0, &done), EINTR);
    assert_int_equal(sfti_os_pwrite(fd, "x", 1, 0, &done), EINTR);
    sfti_os_on_wait(NULL, NULL);
    assert_int_equal(calls, 2);
    refuse_next(0, 0, 0);
    assert_int_equal(sfti_os_close(fd), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, temp_dir_make, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_denied_a_while), CASE(test_denied_for_good), CASE(test_denied_at_once),
        CASE(test_removal),        CASE(test_removal_of_mapped), CASE(test_removal_in_vain),
        CASE(test_locked_bytes),   CASE(test_locked_for_good),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
