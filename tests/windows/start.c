/* Starts a program with each word in quotes: start PROGRAM WORD... wine hands words on that have
 * no blanks without quotes, as if the user had typed them so, and patterns of file names would be
 * expanded. Its exit status is the program's. */
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

int main(void) {
    int count;
    wchar_t **words = CommandLineToArgvW(GetCommandLineW(), &count);
    STARTUPINFOW start = { .cb = sizeof start };
    PROCESS_INFORMATION child;
    DWORD status = 125;
    wchar_t *line = calloc(2 * wcslen(GetCommandLineW()) + 8 * (size_t)count + 8, sizeof *line);
    if (!words || !line || count < 2) return 125;
    wchar_t *at = line;
    for (int i = 1; i < count; i++) at = quote(at, words[i]);
    GetStartupInfoW(&start);
    if (!CreateProcessW(NULL, line, NULL, NULL, TRUE, 0, NULL, NULL, &start, &child)) {
        fprintf(stderr, "start: error %lu\n", GetLastError());
        return 125;
    }
    (void)WaitForSingleObject(child.hProcess, INFINITE);
    (void)GetExitCodeProcess(child.hProcess, &status);
    return (int)status;
}
