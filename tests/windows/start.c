/* Starts a program with each word in quotes: start PROGRAM WORD... wine hands words on that have
 * no blanks without quotes, as if the user had typed them so, and patterns of file names would be
 * expanded. Its exit status is the program's.
 *
 *   start --console COLUMNS PROGRAM WORD...
 *
 * gives the program a console of that width as its standard output, and copies what the console
 * holds at the end. It has no window: wine shows one that has in a terminal of Linux, by sequences
 * of its own.
 *
 *   start --ctrl-c FILE PROGRAM WORD...
 *
 * gives it a console, too, and types Ctrl-C there once FILE exists.
 *
 *   start --alone PROGRAM WORD...
 *
 * gives it a console of its own, as Explorer does, types Enter when it waits there for input,
 * and copies what it holds then. */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <wchar.h>
#include <windows.h>
#include <shellapi.h>

/* As CommandLineToArgvW takes it apart. */
static wchar_t *quote(wchar_t *at, const wchar_t *word) {
    size_t slashes = 0; /* before this character: doubled where a quotation mark follows */
    *at++ = L'"';
    for (;; word++) {
        bool mark = *word == L'"' || !*word;
        for (; mark && slashes > 0; slashes--) *at++ = L'\\';
        if (!*word) break;
        if (mark) *at++ = L'\\';
        *at++ = *word;
        slashes = *word == L'\\' ? slashes + 1 : 0;
    }
    *at++ = L'"';
    *at++ = L' ';
    return at;
}

/* The command line of these words. */
static wchar_t *line_of(wchar_t **words, int count) {
    wchar_t *line = calloc(2 * wcslen(GetCommandLineW()) + 8 * (size_t)count + 8, sizeof *line);
    wchar_t *at = line;
    for (int i = 0; line && i < count; i++) at = quote(at, words[i]);
    return line;
}

static int fails(const char *what) {
    fprintf(stderr, "start: %s: error %lu\n", what, GetLastError());
    return 125;
}

/* Now and then, of thousands of starts on a busy machine, wine has none to give: an internal error
 * before the program runs. */
static bool create(wchar_t *line, DWORD flags, STARTUPINFOW *start, PROCESS_INFORMATION *child) {
    for (int tries = 0; tries < 5; tries++) {
        if (CreateProcessW(NULL, line, NULL, NULL, TRUE, flags, NULL, NULL, start, child))
            return true;
        if (GetLastError() != ERROR_INTERNAL_ERROR) return false;
        Sleep(200);
    }
    return false;
}

static bool begin(wchar_t *line, DWORD flags, HANDLE out, PROCESS_INFORMATION *child) {
    STARTUPINFOW start;
    GetStartupInfoW(&start);
    if (out) {
        start.dwFlags = STARTF_USESTDHANDLES;
        start.hStdInput = GetStdHandle(STD_INPUT_HANDLE);
        start.hStdOutput = out;
        start.hStdError = GetStdHandle(STD_ERROR_HANDLE);
    }
    return line && create(line, flags, &start, child);
}

/* Of what the system ended, the test shall know why: a shell sees eight bits of it. */
static void tell_end(DWORD status) {
    if (status < 0xC0000000 || status == (DWORD)STATUS_CONTROL_C_EXIT) return;
    fprintf(stderr, "start: the program was ended, status %08lx\n", status);
}

static DWORD status_of(const PROCESS_INFORMATION *child) {
    DWORD status = 125;
    (void)WaitForSingleObject(child->hProcess, INFINITE);
    (void)GetExitCodeProcess(child->hProcess, &status);
    tell_end(status);
    return status;
}

static int run(wchar_t *line, DWORD flags, HANDLE out) {
    PROCESS_INFORMATION child;
    return begin(line, flags, out, &child) ? (int)status_of(&child) : fails("CreateProcess");
}

/* ── A console ── */

enum { CELLS = 1000, ROWS = 3000 }; /* of its buffer: no line is wrapped, nothing scrolls away */

/* A row without the blanks behind it, in UTF-8. */
static void print_row(HANDLE console, SHORT row, SHORT width) {
    wchar_t cells[CELLS];
    char text[3 * CELLS];
    DWORD count = (DWORD)(width < CELLS ? width : CELLS);
    if (!ReadConsoleOutputCharacterW(console, cells, count, (COORD){ 0, row }, &count)) return;
    while (count > 0 && (cells[count - 1] == L' ' || !cells[count - 1])) count--;
    int size = count == 0 ? 0
                          : WideCharToMultiByte(CP_UTF8, 0, cells, (int)count, text, sizeof text,
                                                NULL, NULL);
    printf("%.*s", size, text);
}

static HANDLE open_console(const wchar_t *name, SECURITY_ATTRIBUTES *inherited) {
    return CreateFileW(name, GENERIC_READ | GENERIC_WRITE, FILE_SHARE_READ | FILE_SHARE_WRITE,
                       inherited, OPEN_EXISTING, 0, NULL);
}

static void print_rows(HANDLE console) {
    CONSOLE_SCREEN_BUFFER_INFO info;
    if (!GetConsoleScreenBufferInfo(console, &info)) return;
    for (SHORT row = 0; row <= info.dwCursorPosition.Y; row++) {
        print_row(console, row, info.dwSize.X);
        if (row < info.dwCursorPosition.Y) putchar('\n');
    }
}

static int in_console(int columns, wchar_t **words, int count) {
    SECURITY_ATTRIBUTES inherited = { sizeof inherited, NULL, TRUE };
    SMALL_RECT window = { 0, 0, (SHORT)(columns - 1), 23 };
    HANDLE console = open_console(L"CONOUT$", &inherited);
    if (console == INVALID_HANDLE_VALUE) return fails("CONOUT$");
    if (!SetConsoleScreenBufferSize(console, (COORD){ CELLS, ROWS })) return fails("buffer");
    if (!SetConsoleWindowInfo(console, TRUE, &window)) return fails("window");
    int status = run(line_of(words, count), 0, console);
    print_rows(console);
    return fflush(stdout) == 0 ? status : 125;
}

static BOOL WINAPI pass_by(DWORD event) {
    (void)event;
    return TRUE;
}

/* The event is for all that the console belongs to, this program included. */
static int in_ctrl_c(const wchar_t *sign, wchar_t **words, int count) {
    PROCESS_INFORMATION child;
    bool typed = false;
    if (!begin(line_of(words, count), 0, NULL, &child)) return fails("CreateProcess");
    if (!SetConsoleCtrlHandler(pass_by, TRUE)) return fails("SetConsoleCtrlHandler");
    while (WaitForSingleObject(child.hProcess, 1) == WAIT_TIMEOUT) {
        if (typed || GetFileAttributesW(sign) == INVALID_FILE_ATTRIBUTES) continue;
        typed = GenerateConsoleCtrlEvent(CTRL_C_EVENT, 0);
        if (!typed) return fails("GenerateConsoleCtrlEvent");
    }
    return (int)status_of(&child);
}

/* While this program is there, the console is not the other's own: it looks after a while. */
static int alone(wchar_t **words, int count) {
    PROCESS_INFORMATION child;
    STARTUPINFOW start = { .cb = sizeof start };
    wchar_t *line = line_of(words, count);
    if (!line || !create(line, CREATE_NO_WINDOW, &start, &child)) return fails("CreateProcess");
    if (WaitForSingleObject(child.hProcess, 5000) == WAIT_OBJECT_0) return (int)status_of(&child);
    (void)FreeConsole();
    if (!AttachConsole(child.dwProcessId)) return fails("AttachConsole");
    HANDLE in = open_console(L"CONIN$", NULL), out = open_console(L"CONOUT$", NULL);
    INPUT_RECORD enter = { .EventType = KEY_EVENT };
    enter.Event.KeyEvent = (KEY_EVENT_RECORD){ .bKeyDown = TRUE, .wRepeatCount = 1,
                                               .wVirtualKeyCode = VK_RETURN,
                                               .uChar.UnicodeChar = L'\r' };
    DWORD typed;
    print_rows(out);
    if (!WriteConsoleInputW(in, &enter, 1, &typed)) return fails("WriteConsoleInput");
    return fflush(stdout) == 0 ? (int)status_of(&child) : 125;
}

/* Starts this program again, with a console without a window. */
static int with_console(wchar_t *inside, wchar_t **words, int count) {
    words[1] = inside;
    return run(line_of(words, count), CREATE_NO_WINDOW, GetStdHandle(STD_OUTPUT_HANDLE));
}

/* Journals of mv are where a case on Linux wants them. */
static void set_folder(const wchar_t *from, const wchar_t *to) {
    wchar_t path[1024] = L"Z:";
    DWORD len = GetEnvironmentVariableW(from, path + 2, 1000);
    if (len > 0 && len < 1000) (void)SetEnvironmentVariableW(to, path);
}

int main(void) {
    int count;
    set_folder(L"XDG_STATE_HOME", L"LOCALAPPDATA");
    wchar_t **words = CommandLineToArgvW(GetCommandLineW(), &count);
    if (!words || count < 2) return 125;
    wchar_t console[] = L"--in-console", ctrl_c[] = L"--in-ctrl-c";
    if (count > 2 && wcscmp(words[1], L"--alone") == 0) return alone(words + 2, count - 2);
    if (count > 3 && wcscmp(words[1], L"--console") == 0)
        return with_console(console, words, count);
    if (count > 3 && wcscmp(words[1], L"--ctrl-c") == 0)
        return with_console(ctrl_c, words, count);
    if (count > 3 && wcscmp(words[1], ctrl_c) == 0)
        return in_ctrl_c(words[2], words + 3, count - 3);
    if (count > 3 && wcscmp(words[1], L"--in-console") == 0)
        return in_console(_wtoi(words[2]), words + 3, count - 3);
    return run(line_of(words + 1, count - 1), 0, NULL);
}
