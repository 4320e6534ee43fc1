/* Shared libraries that are loaded when they are needed. Tests: test_os.c. */
#include "os/io.h"

#include <string.h>

bool sfti_library_load(const char *library, const sfti_symbol *symbols, size_t count, void *into) {
    for (size_t i = 0; i < count; i++) {
        os_function found = sfti_os_library_function(library, symbols[i].name);
        if (!found) return false;
        memcpy((char *)into + symbols[i].at, &found, sizeof found);
    }
    return true;
}
