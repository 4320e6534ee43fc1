/* os.h on Windows: shared libraries that are loaded only when they are needed. */
#include "os/os_win32.h"
#include "os/path.h"

#include <stdlib.h>
#include <string.h>

/* A name alone is looked for in the system's folder, the program's own and those that the program
 * has added (AddDllDirectory), never in the current one or along PATH. A path without a drive is
 * refused: it depends on the current one, in whose topmost folder anybody may make folders. */
os_function sfti_os_library_function(const char *library, const char *name) {
    DWORD where = LOAD_LIBRARY_SEARCH_DEFAULT_DIRS;
    bool path = strchr(library, '/') || strchr(library, '\\');
    os_function function = NULL;
    wchar_t *wide;
    if (path) {
        size_t root = sfti_root_len(library); /* "C:/" or "//server/share/" */
        if (root < 3 || !sfti_is_separator(library[root - 1])) return NULL;
    }
    if (path ? sfti_os_win_path(library, &wide) : sfti_os_win_wide(library, &wide)) return NULL;
    if (path) where = LOAD_LIBRARY_SEARCH_SYSTEM32 | LOAD_LIBRARY_SEARCH_DLL_LOAD_DIR;
    HMODULE module = LoadLibraryExW(wide, NULL, where);
    free(wide);
    FARPROC found = module ? GetProcAddress(module, name) : NULL;
    _Static_assert(sizeof function == sizeof found, "both are functions");
    if (found) memcpy(&function, &found, sizeof found);
    else if (module) (void)FreeLibrary(module);
    return function;
}
