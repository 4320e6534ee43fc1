/* os.h on Windows: terminals; the start of a program, and its end by a signal. */
#include "os/args.h"
#include "os/os_win32.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define VIRTUAL_TERMINAL 0x4u /* ENABLE_VIRTUAL_TERMINAL_PROCESSING, which older headers lack */

/* ── Terminals ── */

/* A terminal of MSYS or Cygwin is a pipe called \msys-XXXX-ptyN-from-master. */
static bool is_pty_pipe(HANDLE handle) {
    union {
        FILE_NAME_INFO info;
        wchar_t room[MAX_PATH];
    } name;
    if (GetFileType(handle) != FILE_TYPE_PIPE) return false;
    memset(&name, 0, sizeof name);
    if (!GetFileInformationByHandleEx(handle, FileNameInfo, &name, sizeof name - sizeof(wchar_t)))
        return false;
    const wchar_t *text = name.info.FileName;
    bool ours = wcsncmp(text, L"\\msys-", 6) == 0 || wcsncmp(text, L"\\cygwin-", 8) == 0;
    return ours && wcsstr(text, L"-pty");
}

bool sfti_os_is_terminal(int fd) {
    DWORD mode;
    HANDLE handle = sfti_os_win_handle(fd);
    return GetConsoleMode(handle, &mode) || is_pty_pipe(handle);
}

uint32_t sfti_os_terminal_columns(int fd) {
    CONSOLE_SCREEN_BUFFER_INFO screen;
    if (!GetConsoleScreenBufferInfo(sfti_os_win_handle(fd), &screen)) return 0;
    int columns = screen.srWindow.Right - screen.srWindow.Left + 1;
    return columns > 0 ? (uint32_t)columns : 0;
}

/* ── The console ── */

static struct {
    DWORD modes[2]; /* of standard output and standard error */
    bool changed[2];
    UINT page;
} console_before;

static HANDLE console_handle(int i) {
    return GetStdHandle(i == 0 ? STD_OUTPUT_HANDLE : STD_ERROR_HANDLE);
}

/* It belongs to the shell, too. */
static void console_restore(void) {
    for (int i = 0; i < 2; i++)
        if (console_before.changed[i]) SetConsoleMode(console_handle(i), console_before.modes[i]);
    if (console_before.page) SetConsoleOutputCP(console_before.page);
    memset(&console_before, 0, sizeof console_before);
}

/* UTF-8, and colours by escape sequences where it knows them: Windows 10 and later. */
static void console_begin(void) {
    bool any = false;
    for (int i = 0; i < 2; i++) {
        DWORD *mode = &console_before.modes[i];
        if (!GetConsoleMode(console_handle(i), mode)) continue;
        any = true;
        console_before.changed[i] = !(*mode & VIRTUAL_TERMINAL)
                                    && SetConsoleMode(console_handle(i), *mode | VIRTUAL_TERMINAL);
    }
    UINT page = any ? GetConsoleOutputCP() : CP_UTF8;
    if (page != CP_UTF8 && SetConsoleOutputCP(CP_UTF8)) console_before.page = page;
    (void)atexit(console_restore);
}

/* A double click, or files dropped on the program: the window is its own and closes with it, so
 * that nobody could read what it says. Explorer gives no word, or whole paths. A planned task may
 * have a window, too, but names a command, and is not to wait for anybody. */
static bool is_from_explorer(int argc, char **argv) {
    DWORD mode, processes[2];
    bool whole_path = argc > 1 && argv[1][0] && argv[1][1] == ':';
    return (argc == 1 || whole_path) && GetConsoleProcessList(processes, 2) == 1
        && GetConsoleMode(GetStdHandle(STD_INPUT_HANDLE), &mode)
        && GetConsoleMode(GetStdHandle(STD_OUTPUT_HANDLE), &mode);
}

static void wait_for_enter(void) {
    static const wchar_t words[] = L"\r\n(Enter closes this window.)";
    wchar_t key;
    DWORD count;
    (void)WriteConsoleW(console_handle(0), words, sizeof words / sizeof *words - 1, &count, NULL);
    (void)ReadConsoleW(GetStdHandle(STD_INPUT_HANDLE), &key, 1, &count, NULL);
}

bool sfti_os_terminal_escapes(int fd) {
    DWORD mode;
    return GetConsoleMode(sfti_os_win_handle(fd), &mode) ? (mode & VIRTUAL_TERMINAL) != 0
                                                    : sfti_os_is_terminal(fd);
}

/* What shells know as ended by Ctrl-C. */
void sfti_os_raise(int signal_number) {
    (void)signal_number;
    console_restore();
    ExitProcess(0xC000013Au);
}

/* ── Words ── */

/* They last as long as the program. */
static int words_take(int *argc, char ***argv) {
    static sfti_arena arena;
    sfti_args args = { .arena = &arena };
    const wchar_t *wide = GetCommandLineW();
    arena.alloc = sfti_allocator(NULL);
    size_t count = wcslen(wide), cap = 3 * count + 1; /* bytes of a code unit in UTF-8 */
    char *line = sfti_arena_take(&arena, cap);
    if (!line) return ENOMEM;
    (void)sfti_os_win_narrow(wide, count, line, cap);
    if (!sfti_args_split(&args, line) || !sfti_args_expand(&args)) return ENOMEM;
    *argc = (int)args.count;
    *argv = args.words;
    return 0;
}

int sfti_os_program_begin(int *argc, char ***argv) {
    console_begin();
    int code = words_take(argc, argv);
    if (code == 0 && is_from_explorer(*argc, *argv)) (void)atexit(wait_for_enter);
    return code;
}
