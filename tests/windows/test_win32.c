/* os.h on Windows: what no other host has. tests/unit/core/os/test_os_files.c has the rest. */
#include "os/io.h"
#include "os/os_win32.h"

#include "base/mem.h"
#include "journal/journal.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "unit/temp_dir.h"
#include "safetensors_io.h"

#include <errno.h>
#include <io.h>
#include <sddl.h>

/* ── Text ── */

static void test_errors(void **state) {
    static const struct {
        DWORD code;
        int error;
    } rows[] = {
        { ERROR_FILE_NOT_FOUND, ENOENT },    { ERROR_PATH_NOT_FOUND, ENOENT },
        { ERROR_ACCESS_DENIED, EACCES },     { ERROR_SHARING_VIOLATION, EBUSY },
        { ERROR_ALREADY_EXISTS, EEXIST },    { ERROR_DISK_FULL, ENOSPC },
        { ERROR_FILENAME_EXCED_RANGE, ENAMETOOLONG }, { ERROR_NOT_SUPPORTED, EOPNOTSUPP },
        { ERROR_USER_MAPPED_FILE, ETXTBSY }, { ERROR_COMMITMENT_LIMIT, ENOMEM },
        { ERROR_BROKEN_PIPE, EPIPE },        { ERROR_DIRECTORY, ENOTDIR },
        { ERROR_NOT_SAME_DEVICE, EXDEV },    { 225, 0x10000 + 225 },
    };
    char text[128], small[6];
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(sfti_os_win_errno(rows[i].code), rows[i].error);
        assert_true(strlen(sfti_os_error_text(rows[i].error, text, sizeof text)) > 5);
    }
    assert_string_equal(sfti_os_error_text(ENOENT, text, sizeof text), "No such file or directory");
    assert_string_equal(sfti_os_error_text(EOPNOTSUPP, text, sizeof text),
                        "Operation not supported");
    assert_string_equal(sfti_os_error_text(10061, text, sizeof text), "Connection refused");
    assert_string_equal(sfti_os_error_text(0x10000 + 60001, text, sizeof text),
                        "system error 60001");
    assert_true(strlen(sfti_os_error_text(0x10000 + 225, small, sizeof small)) < sizeof small);
}

static void test_text(void **state) {
    static const struct {
        const char *text;
        const wchar_t *wide;
    } rows[] = {
        { "", L"" },
        { "plain", L"plain" },
        { "\xc3\xa9\xe6\xa8\xa1", L"\u00e9\u6a21" },
        { "\xf0\x9f\x98\x80!", L"\xd83d\xde00!" },
        { "\xed\xa0\xbd.x", L"\xd83d.x" }, /* surrogates alone */
        { "\xed\xb8\x80", L"\xde00" },
    };
    static const char *const wrong[] = { "\x80", "a\xc3", "\xc0\x80", "\xe0\x80\x80", "\xff",
                                         "\xf4\x90\x80\x80", "\xf0\x80\x80\x80" };
    char back[64];
    wchar_t *wide;
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t len = strlen(rows[i].text);
        assert_int_equal(sfti_os_win_wide(rows[i].text, &wide), 0);
        assert_int_equal(wcscmp(wide, rows[i].wide), 0);
        assert_int_equal(sfti_os_win_narrow(wide, wcslen(wide), back, sizeof back), len);
        assert_string_equal(back, rows[i].text);
        assert_int_equal(sfti_os_win_narrow(wide, wcslen(wide), back, len), len);
        free(wide);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(sfti_os_win_wide(wrong[i], &wide), EILSEQ);
}

static void test_paths(void **state) {
    char text[512], name[301];
    wchar_t *wide;
    (void)state;
    assert_int_equal(sfti_os_win_path("a/b\\c", &wide), 0);
    assert_int_equal(wcscmp(wide, L"a\\b\\c"), 0);
    free(wide);
    memset(name, 'n', 300);
    name[300] = '\0';
    assert_int_equal(sfti_os_win_path(name, &wide), 0); /* relative, and long as a whole */
    assert_int_equal(wcsncmp(wide, L"\\\\?\\", 4), 0);
    assert_int_equal(wide[5], L':');
    free(wide);
    (void)snprintf(text, sizeof text, "//server/share/%s", name);
    assert_int_equal(sfti_os_win_path(text, &wide), 0);
    assert_int_equal(wcsncmp(wide, L"\\\\?\\UNC\\server\\share\\n", 22), 0);
    assert_int_equal(wcslen(wide), 8 + strlen(text) - 2);
    assert_int_equal(sfti_os_win_path_text(wide, wcslen(wide), name, sizeof name), ENAMETOOLONG);
    free(wide);
    assert_int_equal(sfti_os_win_path_text(L"\\\\?\\UNC\\s\\t\\u", 13, text, sizeof text), 0);
    assert_string_equal(text, "//s/t/u");
    assert_int_equal(sfti_os_win_path_text(L"\\\\?\\C:\\x", 8, text, sizeof text), 0);
    assert_string_equal(text, "C:/x");
}

static void test_plain_names(void **state) {
    static const wchar_t *const plain[] = { L"a", L".a", L"con1", L"COM", L"lpt", L"auxiliary",
                                            L"com10", L"nul_", L"m.safetensors" };
    static const wchar_t *const others[] = { L"", L"nul", L"NUL.safetensors", L"con", L"Aux.x.y",
                                             L"COM1", L"lpt9.txt", L"com\u00b2", L"CONIN$",
                                             L"nul .x", L"a.", L"a ", L"..", L".", L"a:b", L"a*",
                                             L"a?", L"a\\b", L"a/b", L"a\x01", L"\"", L"a|b" };
    (void)state;
    for (size_t i = 0; i < sizeof plain / sizeof *plain; i++)
        assert_true(sfti_os_win_name_is_plain(plain[i], wcslen(plain[i])));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(sfti_os_win_name_is_plain(others[i], wcslen(others[i])));
}

/* ── Files ── */

static void put(const char *path, const char *bytes) {
    int fd = -1;
    assert_int_equal(sfti_os_open_new(path, 0644, &fd), 0);
    assert_int_equal(sfti_write_all(fd, bytes, strlen(bytes), 0), 0);
    assert_int_equal(sfti_os_close(fd), 0);
}

static void check(const char *path, const char *bytes) {
    char found[64];
    size_t got = 0;
    int fd = -1;
    assert_int_equal(sfti_os_open_read(path, &fd), 0);
    assert_int_equal(sfti_read_all(fd, found, sizeof found, 0, &got), 0);
    assert_int_equal(got, strlen(bytes));
    assert_memory_equal(found, bytes, got);
    assert_int_equal(sfti_os_close(fd), 0);
}

static HANDLE hold(const char *path, DWORD share) {
    wchar_t *wide;
    assert_int_equal(sfti_os_win_path(path, &wide), 0);
    HANDLE handle = CreateFileW(wide, GENERIC_READ, share, NULL, OPEN_EXISTING, 0, NULL);
    free(wide);
    assert_true(handle != INVALID_HANDLE_VALUE);
    return handle;
}

typedef struct held_file {
    os_thread thread;
    HANDLE handle;
} held_file;

static void release_later(void *ctx) {
    sfti_os_sleep_ms(200);
    (void)CloseHandle(((held_file *)ctx)->handle);
}

static void hold_a_while(held_file *held, const char *path, DWORD share) {
    held->handle = hold(path, share);
    assert_int_equal(sfti_os_thread_start(&held->thread, release_later, held), 0);
}

/* What goes on for good ends soon; what passes is waited for. */
static void check_retries(uint64_t began, uint64_t before, bool for_good) {
    double seconds = (double)(sfti_os_now_ns() - began) / 1e9;
    assert_true(sfti_os_win_retries() > before);
    assert_true(seconds < 2.5);
    assert_true(seconds > (for_good ? 1.5 : 0.05));
}

static void test_held(void **state) {
    held_file held;
    int fd;
    (void)state;
    put(temp_path("file"), "old");
    put(temp_path("fresh"), "fresh");
    HANDLE handle = hold(temp_path("file"), FILE_SHARE_READ); /* and nobody may remove it */
    uint64_t before = sfti_os_win_retries(), began = sfti_os_now_ns();
    assert_int_equal(sfti_os_rename(temp_path("fresh"), temp_path("file"), false), EBUSY);
    check_retries(began, before, true);
    check(temp_path("file"), "old");
    check(temp_path("fresh"), "fresh");
    assert_int_equal(temp_dir_count(), 2);
    before = sfti_os_win_retries(), began = sfti_os_now_ns();
    assert_int_equal(sfti_os_unlink(temp_path("file")), EBUSY);
    check_retries(began, before, true);
    (void)CloseHandle(handle);
    handle = hold(temp_path("file"), 0);
    before = sfti_os_win_retries(), began = sfti_os_now_ns();
    assert_int_equal(sfti_os_open_read(temp_path("file"), &fd), EBUSY);
    check_retries(began, before, true);
    before = sfti_os_win_retries(), began = sfti_os_now_ns();
    assert_int_equal(sfti_os_open_beneath(temp_dir, "file", OS_BENEATH_READ, &fd), EBUSY);
    check_retries(began, before, true);
    (void)CloseHandle(handle);

    hold_a_while(&held, temp_path("file"), 0);
    before = sfti_os_win_retries(), began = sfti_os_now_ns();
    assert_int_equal(sfti_os_open_read(temp_path("file"), &fd), 0);
    check_retries(began, before, false);
    assert_int_equal(sfti_os_close(fd), 0);
    sfti_os_thread_join(&held.thread);
    hold_a_while(&held, temp_path("file"), FILE_SHARE_READ);
    before = sfti_os_win_retries(), began = sfti_os_now_ns();
    assert_int_equal(sfti_os_rename(temp_path("fresh"), temp_path("file"), false), 0);
    check_retries(began, before, false);
    sfti_os_thread_join(&held.thread);
    check(temp_path("file"), "fresh");
    assert_int_equal(temp_dir_count(), 1);
}

static bool stop_at_once(void *ctx) {
    ++*(int *)ctx;
    return false;
}

static void test_held_and_stopped(void **state) {
    int calls = 0, fd;
    (void)state;
    put(temp_path("file"), "old");
    put(temp_path("fresh"), "fresh");
    HANDLE handle = hold(temp_path("file"), 0);
    uint64_t began = sfti_os_now_ns();
    sfti_os_on_wait(stop_at_once, &calls);
    assert_int_equal(sfti_os_open_read(temp_path("file"), &fd), EINTR);
    assert_int_equal(sfti_os_rename(temp_path("fresh"), temp_path("file"), false), EINTR);
    sfti_os_on_wait(NULL, NULL);
    assert_true(sfti_os_now_ns() - began < 1000000000);
    assert_int_equal(calls, 2);
    (void)CloseHandle(handle);
    assert_int_equal(temp_dir_count(), 2);
}

/* The old file does not step out of the way for a new one that is held. */
static void test_held_fresh(void **state) {
    os_info before, after;
    wchar_t *folder;
    void *map;
    int fd;
    (void)state;
    put(temp_path("file"), "old");
    put(temp_path("fresh"), "fresh");
    assert_int_equal(sfti_os_open_read(temp_path("file"), &fd), 0);
    assert_int_equal(sfti_os_map(fd, 3, false, &map), 0);
    assert_int_equal(sfti_os_info_fd(fd, &before), 0);
    HANDLE handle = hold(temp_path("fresh"), FILE_SHARE_READ);
    assert_int_equal(sfti_os_win_path(temp_dir, &folder), 0);
    HANDLE changes = FindFirstChangeNotificationW(folder, FALSE, FILE_NOTIFY_CHANGE_FILE_NAME);
    free(folder);
    assert_true(changes != INVALID_HANDLE_VALUE);
    assert_int_equal(sfti_os_rename(temp_path("fresh"), temp_path("file"), false), EBUSY);
    assert_int_equal(WaitForSingleObject(changes, 100), WAIT_TIMEOUT);
    assert_true(FindCloseChangeNotification(changes));
    assert_int_equal(sfti_os_info_path(temp_path("file"), false, &after), 0);
    assert_true(before.inode == after.inode);
    assert_int_equal(temp_dir_count(), 2);
    (void)CloseHandle(handle);
    sfti_os_unmap(map, 3);
    assert_int_equal(sfti_os_close(fd), 0);
}

/* Old files that somebody had mapped go with the next replacement; other names are left alone. */
static void test_left_behind(void **state) {
    void *map;
    int fd;
    (void)state;
    put(temp_path("file"), "old");
    put(temp_path(".file.sft-0123abcd.old"), "older");
    put(temp_path(".file.sft-0123abcde.old"), "own");
    put(temp_path(".other.sft-0123abcd.old"), "own");
    put(temp_path("fresh"), "fresh");
    assert_int_equal(sfti_os_open_read(temp_path("file"), &fd), 0);
    assert_int_equal(sfti_os_map(fd, 3, false, &map), 0);
    assert_int_equal(sfti_os_rename(temp_path("fresh"), temp_path("file"), false), 0);
    sfti_os_unmap(map, 3);
    assert_int_equal(sfti_os_close(fd), 0);
    check(temp_path("file"), "fresh");
    assert_int_equal(temp_dir_count(), 3);
    check(temp_path(".file.sft-0123abcde.old"), "own");
    check(temp_path(".other.sft-0123abcd.old"), "own");
}

/* Files that are open somewhere are removed, and do not hold up the others, nor go on for ever. */
static void test_sweep_open(void **state) {
    HANDLE held[2];
    size_t count = 0;
    (void)state;
    put(temp_path(".a.sft-000001"), "a");
    put(temp_path(".b.sft-000002"), "b");
    put(temp_path(".c.sft-000003"), "c");
    put(temp_path("own"), "own");
    held[0] = hold(temp_path(".a.sft-000001"), WIN_SHARE_ALL);
    held[1] = hold(temp_path(".b.sft-000002"), WIN_SHARE_ALL);
    assert_int_equal(sft_sweep(temp_dir, false, NULL, NULL, &count, NULL), SFT_OK);
    assert_true(count >= 3);
    (void)CloseHandle(held[0]);
    (void)CloseHandle(held[1]);
    assert_int_equal(temp_dir_count(), 1);
    check(temp_path("own"), "own");
}

static void test_readonly(void **state) {
    int fd;
    (void)state;
    assert_int_equal(sfti_os_open_new(temp_path("file"), 0444, &fd), 0);
    assert_int_equal(sfti_write_all(fd, "new", 3, 0), 0); /* who makes it may write to it */
    assert_int_equal(sfti_os_close(fd), 0);
    check(temp_path("file"), "new");
    assert_int_equal(sfti_os_unlink(temp_path("file")), 0);
    assert_int_equal(temp_dir_count(), 0);
}

/* No name leads to a device, a stream, or a file of another name. */
static void test_beneath(void **state) {
    static const char *const names[] = { "nul", "NUL.txt", "folder/con", "file:stream", "file.",
                                         "file ", "folder./in", "folder\\in", "fil?", "c:file" };
    int fd;
    (void)state;
    assert_int_equal(sfti_os_make_folder(temp_path("folder"), 0755), 0);
    put(temp_path("file"), "file");
    put(temp_path("folder/in"), "in");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int error = sfti_os_open_beneath(temp_dir, names[i], OS_BENEATH_READ, &fd);
        if (error != EINVAL && error != EXDEV)
            fail_msg("%s: expected it to be refused, found %d", names[i], error);
    }
    assert_int_equal(sfti_os_open_beneath(temp_dir, "folder/in", OS_BENEATH_READ, &fd), 0);
    assert_int_equal(sfti_os_close(fd), 0);
    assert_int_equal(sfti_os_unlink_beneath(temp_dir, "file:stream"), EINVAL);
    assert_int_equal(sfti_os_unlink_beneath(temp_dir, "folder/in"), 0);
}

/* Descriptors of the C library are taken as they are, and not closed. */
static void test_descriptors(void **state) {
    char buffer[8];
    os_info info;
    size_t got;
    (void)state;
    put(temp_path("file"), "0123456789");
    int crt = posix_open(temp_path("file"), O_RDWR | O_BINARY);
    assert_true(crt >= 0 && crt < WIN_FIRST_FD);
    assert_int_equal(sfti_os_info_fd(crt, &info), 0);
    assert_int_equal(info.size, 10);
    assert_int_equal(sfti_os_pread(crt, buffer, 4, 3, &got), 0);
    assert_memory_equal(buffer, "3456", 4);
    assert_int_equal(lseek(crt, 1, SEEK_SET), 1);
    int own = sfti_os_positioned(crt);
    assert_true(own >= WIN_FIRST_FD);
    assert_int_equal(sfti_os_pread(own, buffer, 4, 5, &got), 0);
    assert_memory_equal(buffer, "5678", 4);
    assert_int_equal(lseek(crt, 0, SEEK_CUR), 1);
    assert_int_equal(sfti_os_positioned(own), own);
    assert_int_equal(sfti_os_close(own), 0);
    assert_int_equal(lseek(crt, 0, SEEK_SET), 0);
    assert_false(sfti_os_is_append(crt));
    assert_int_equal(sfti_os_read(crt, buffer, 2, &got), 0);
    assert_memory_equal(buffer, "01", 2);
    assert_true(sfti_os_is_append(crt)); /* it does not stand at its beginning, as after >> */
    assert_int_equal(close(crt), 0);
    assert_int_equal(sfti_os_info_fd(-1, &info), EBADF);
    assert_int_equal(sfti_os_info_fd(1500, &info), EBADF);
    assert_int_equal(sfti_os_close(1500), EBADF);
    assert_int_equal(sfti_os_info_fd(WIN_FIRST_FD + 70000, &info), EBADF);
}

/* ── Streams ── */

static void make_pipe(int *in, int *out) {
    HANDLE read_end, write_end;
    assert_true(CreatePipe(&read_end, &write_end, NULL, 0));
    *in = _open_osfhandle((intptr_t)read_end, O_RDONLY | O_BINARY);
    *out = _open_osfhandle((intptr_t)write_end, O_BINARY);
}

static bool stop_at_third(void *ctx) {
    return ++*(int *)ctx < 3;
}

static void test_pipe(void **state) {
    char buffer[16];
    os_info info;
    size_t got, put_bytes;
    int in, out, calls = 0;
    (void)state;
    make_pipe(&in, &out);
    assert_int_equal(sfti_os_info_fd(in, &info), 0);
    assert_int_equal(info.kind, OS_PIPE);
    assert_false(sfti_os_is_terminal(in));
    assert_int_equal(sfti_os_write(out, "bytes", 5, &put_bytes), 0);
    assert_int_equal(put_bytes, 5);
    assert_int_equal(sfti_os_read(in, buffer, sizeof buffer, &got), 0);
    assert_int_equal(got, 5);
    uint64_t began = sfti_os_now_ns();
    sfti_os_on_wait(stop_at_third, &calls);
    assert_int_equal(sfti_os_read(in, buffer, sizeof buffer, &got), EINTR);
    sfti_os_on_wait(NULL, NULL);
    assert_true(sfti_os_now_ns() - began < 1000000000);
    assert_int_equal(calls, 3);
    assert_int_equal(sfti_os_write(out, "more", 4, &put_bytes), 0);
    assert_int_equal(sfti_os_read(in, buffer, sizeof buffer, &got), 0);
    assert_int_equal(got, 4);
    assert_int_equal(close(out), 0);
    assert_int_equal(sfti_os_read(in, buffer, sizeof buffer, &got), 0);
    assert_int_equal(got, 0);
    assert_int_equal(close(in), 0);
    make_pipe(&in, &out);
    assert_int_equal(close(in), 0);
    assert_int_equal(sfti_os_write(out, "lost", 4, &put_bytes), EPIPE);
    assert_int_equal(close(out), 0);
}

typedef struct late_writer {
    os_thread thread;
    int out;
} late_writer;

static void write_later(void *ctx) {
    size_t put_bytes;
    sfti_os_sleep_ms(250);
    (void)sfti_os_write(((late_writer *)ctx)->out, "late", 4, &put_bytes);
}

/* The timer that looks whether to go on takes nothing away. */
static void test_late_bytes(void **state) {
    char buffer[16];
    size_t got;
    late_writer writer;
    int in;
    (void)state;
    make_pipe(&in, &writer.out);
    assert_int_equal(sfti_os_thread_start(&writer.thread, write_later, &writer), 0);
    assert_int_equal(sfti_os_read(in, buffer, sizeof buffer, &got), 0);
    sfti_os_thread_join(&writer.thread);
    assert_int_equal(got, 4);
    assert_memory_equal(buffer, "late", 4);
    assert_int_equal(close(in), 0);
    assert_int_equal(close(writer.out), 0);
}

/* ── The rest ── */

static void test_system_owners(void **state) {
    static const struct {
        const wchar_t *sid;
        bool is_system;
    } rows[] = {
        { L"S-1-5-18", true },      { L"S-1-5-32-544", true },  { L"S-1-5-19", false },
        { L"S-1-5-32-545", false }, { L"S-1-1-0", false },      { L"S-1-5-80", false },
        { L"S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478464", true },
        { L"S-1-5-80-956008885-3418522649-1831038044-1853292631-2271478465", false },
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        PSID sid;
        assert_true(ConvertStringSidToSidW(rows[i].sid, &sid));
        assert_int_equal(sfti_os_win_is_system(sid), rows[i].is_system);
        assert_null(LocalFree(sid));
    }
}

/* Who holds a file is waited for once, whatever opens it. */
static void test_held_journal(void **state) {
    static const unsigned char bytes[] = "journal";
    char name[SFTI_JOURNAL_PATH];
    sfti_journal_file journal;
    sft_allocator alloc = sfti_allocator(NULL);
    sft_error err = SFT_ERROR_INIT;
    wchar_t *wide;
    os_info info;
    DWORD put_count;
    (void)state;
    put(temp_path("model"), "model");
    assert_int_equal(sfti_os_info_path(temp_path("model"), true, &info), 0);
    assert_true(sfti_journal_path(temp_path("model"), name));
    assert_int_equal(sfti_os_win_path(name, &wide), 0);
    HANDLE held = CreateFileW(wide, GENERIC_WRITE, 0, NULL, CREATE_NEW, 0, NULL);
    free(wide);
    assert_true(held != INVALID_HANDLE_VALUE);
    assert_true(WriteFile(held, bytes, sizeof bytes, &put_count, NULL));
    uint64_t begin = sfti_os_now_ns();
    assert_int_equal(sfti_journal_open(temp_path("model"), &info, &alloc, &journal, &err),
                     SFT_IO_READ);
    assert_int_equal(err.os_errno, EBUSY);
    assert_true(sfti_os_now_ns() - begin < UINT64_C(2000000) * WIN_RETRY_MS);
    sfti_journal_close(&journal);
    assert_true(CloseHandle(held));
}

/* A library of another system's path would be looked for on the current drive. */
static void test_library_paths(void **state) {
    wchar_t before[MAX_PATH], folder[MAX_PATH];
    char path[MAX_PATH + 20];
    (void)state;
    assert_true(GetCurrentDirectoryW(MAX_PATH, before) > 0);
    assert_true(GetSystemDirectoryW(folder, MAX_PATH) > 0);
    assert_int_equal(sfti_os_win_path_text(folder, wcslen(folder), path, MAX_PATH), 0);
    strcat(path, "/version.dll");
    assert_true(SetCurrentDirectoryW(folder));
    assert_non_null(sfti_os_library_function(path, "GetFileVersionInfoW"));
    assert_null(sfti_os_library_function(path + 2, "GetFileVersionInfoW"));
    assert_null(sfti_os_library_function("./version.dll", "GetFileVersionInfoW"));
    assert_true(SetCurrentDirectoryW(before));
}

static void test_rest(void **state) {
    (void)state;
    assert_non_null(sfti_os_library_function("kernel32.dll", "GetTickCount"));
    assert_null(sfti_os_library_function("kernel32.dll", "NoSuchFunction"));
    assert_null(sfti_os_library_function("no_such_library.dll", "GetTickCount"));
    assert_true(SetEnvironmentVariableW(L"SFT_TEST", L"w\u00e9rt"));
    const char *first = sfti_os_env("SFT_TEST");
    assert_string_equal(first, "w\xc3\xa9rt");
    assert_ptr_equal(sfti_os_env("SFT_TEST"), first);
    assert_true(SetEnvironmentVariableW(L"SFT_TEST", L"other"));
    assert_string_equal(sfti_os_env("SFT_TEST"), "other");
    assert_string_equal(first, "w\xc3\xa9rt");
    assert_true(sfti_os_user() != 0);
    uint8_t address[16];
    static const unsigned char v4[16] = { 2, 0, 0, 80, 127, 0, 0, 1 };
    assert_int_equal(sfti_os_socket_address(v4, sizeof v4, address), 4);
    assert_memory_equal(address, "\x7f\0\0\1", 4);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, temp_dir_make, temp_dir_remove)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_text),
        cmocka_unit_test(test_paths),
        cmocka_unit_test(test_plain_names),
        CASE(test_held),
        CASE(test_held_and_stopped),
        CASE(test_held_fresh),
        CASE(test_left_behind),
        CASE(test_sweep_open),
        CASE(test_readonly),
        CASE(test_beneath),
        CASE(test_descriptors),
        cmocka_unit_test(test_pipe),
        cmocka_unit_test(test_late_bytes),
        CASE(test_held_journal),
        cmocka_unit_test(test_system_owners),
        cmocka_unit_test(test_library_paths),
        cmocka_unit_test(test_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
