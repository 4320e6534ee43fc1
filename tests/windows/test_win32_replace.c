/* sfti_os_rename on Windows, step 3: what is left when the new file does not get the name. A call
 * that fails there is one of SetFileInformationByHandle, which this program has its own of. */
#include "os/io.h"
#include "os/os_win32.h"

#include "bytes/replaced.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/temp_dir.h"
#include "windows/import_call.h"

#include <errno.h>

/* ── Renames that fail ── */

typedef BOOL(WINAPI *set_information)(HANDLE, FILE_INFO_BY_HANDLE_CLASS, void *, DWORD);

/* Where calls of the DLL go through. */
extern set_information __imp_SetFileInformationByHandle;

#define RENAME_EX ((FILE_INFO_BY_HANDLE_CLASS)22)

static set_information real_call;
static struct {
    unsigned count; /* of renames, so far */
    struct {
        unsigned at; /* 0: none */
        DWORD code;
    } fail[2];
} renames;

/* Step 1 is what wine 8 lacks: nor does it succeed here on Windows. */
static BOOL WINAPI call(HANDLE handle, FILE_INFO_BY_HANDLE_CLASS kind, void *info, DWORD bytes) {
    DWORD code = kind == RENAME_EX ? ERROR_INVALID_PARAMETER : ERROR_SUCCESS;
    renames.count += kind == FileRenameInfo;
    for (size_t i = 0; i < 2 && kind == FileRenameInfo; i++)
        if (renames.fail[i].at == renames.count) code = renames.fail[i].code;
    if (code == ERROR_SUCCESS) return real_call(handle, kind, info, bytes);
    SetLastError(code);
    return FALSE;
}

static void set_call(set_information function) {
    set_import(&__imp_SetFileInformationByHandle, &function, sizeof function);
}

/* ── A file that is mapped, and one to replace it ── */

static struct {
    void *map;
    int fd;
    os_info info;
} old;

static void put(const char *path, const char *content) {
    int fd;
    assert_int_equal(sfti_os_open_new(path, 0644, &fd), 0);
    assert_int_equal(sfti_write_all(fd, content, strlen(content), 0), 0);
    assert_int_equal(sfti_os_close(fd), 0);
}

static void check(const char *path, const char *content) {
    char found[16] = "";
    size_t got;
    int fd;
    assert_int_equal(sfti_os_open_read(path, &fd), 0);
    assert_int_equal(sfti_read_all(fd, found, sizeof found - 1, 0, &got), 0);
    assert_int_equal(sfti_os_close(fd), 0);
    assert_string_equal(found, content);
}

static int begin(void **state) {
    if (temp_dir_make(state)) return 1;
    memset(&renames, 0, sizeof renames);
    put(temp_path("file"), "old");
    put(temp_path("fresh"), "fresh");
    assert_int_equal(sfti_os_open_read(temp_path("file"), &old.fd), 0);
    assert_int_equal(sfti_os_map(old.fd, 3, false, &old.map), 0);
    assert_int_equal(sfti_os_info_fd(old.fd, &old.info), 0);
    real_call = __imp_SetFileInformationByHandle;
    set_call(call);
    return 0;
}

static int end(void **state) {
    set_call(real_call);
    sfti_os_unmap(old.map, 3);
    assert_int_equal(sfti_os_close(old.fd), 0);
    return temp_dir_remove(state);
}

static void fail_at(size_t i, unsigned at, DWORD code) {
    renames.fail[i].at = at;
    renames.fail[i].code = code;
}

static int replace(void) {
    return sfti_os_rename(temp_path("fresh"), temp_path("file"), false);
}

static void check_as_before(void) {
    os_info now;
    assert_int_equal(sfti_os_info_path(temp_path("file"), false, &now), 0);
    assert_true(now.inode == old.info.inode && now.device == old.info.device);
    check(temp_path("file"), "old");
    check(temp_path("fresh"), "fresh");
    assert_int_equal(temp_dir_count(), 2);
}

/* ── Cases ── */

/* 3a, 3b fails, the name is given back. */
static void test_put_back(void **state) {
    (void)state;
    fail_at(0, 2, ERROR_DISK_FULL);
    assert_int_equal(replace(), ENOSPC);
    assert_int_equal(renames.count, 3);
    check_as_before();
    assert_memory_equal(old.map, "old", 3);
}

/* The same, and all of it once more: what holds the new file passes. */
static void test_put_back_and_again(void **state) {
    uint64_t before = sfti_os_win_retries();
    (void)state;
    fail_at(0, 2, ERROR_ACCESS_DENIED);
    assert_int_equal(replace(), 0);
    assert_int_equal(sfti_os_win_retries(), before + 1);
    assert_int_equal(renames.count, 5);
    check(temp_path("file"), "fresh");
    assert_memory_equal(old.map, "old", 3);
}

/* 3a fails: nothing has moved. */
static void test_step_out_fails(void **state) {
    (void)state;
    fail_at(0, 1, ERROR_DISK_FULL);
    assert_int_equal(replace(), ENOSPC);
    assert_int_equal(renames.count, 1);
    check_as_before();
}

/* What a crash would leave: both files are there, and a later replacement ends it. */
static void test_not_put_back(void **state) {
    char left[SFTI_OLD_PATH];
    int fd;
    (void)state;
    fail_at(0, 2, ERROR_DISK_FULL);
    fail_at(1, 3, ERROR_DISK_FULL);
    assert_int_equal(replace(), ENOSPC);
    assert_int_equal(sfti_os_open_read(temp_path("file"), &fd), ENOENT);
    check(temp_path("fresh"), "fresh");
    assert_memory_equal(old.map, "old", 3);
    assert_int_equal(temp_dir_count(), 2);
    assert_int_equal(sfti_old_find(temp_path("file"), left), 1);
    check(left, "old");
    assert_int_equal(replace(), 0);
    check(temp_path("file"), "fresh");
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)

int main(void) {
    const struct CMUnitTest tests[] = {
        CASE(test_put_back),
        CASE(test_put_back_and_again),
        CASE(test_step_out_fails),
        CASE(test_not_put_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
