/* Shared libraries that are loaded only when they are needed. */
#include "os/os.h"

#if defined(SFTI_FOUND_CRYPTO) || defined(SFTI_FOUND_CURL)
#include <dlfcn.h>
#include <string.h>

os_function sfti_os_library_function(const char *library, const char *name) {
    os_function function = NULL;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    void *found = handle ? dlsym(handle, name) : NULL;
    _Static_assert(sizeof function == sizeof found, "POSIX: a function's address fits a pointer");
    if (found) memcpy(&function, &found, sizeof found);
    else if (handle) (void)dlclose(handle);
    return function;
}

#else

os_function sfti_os_library_function(const char *library, const char *name) {
    (void)library, (void)name;
    return NULL;
}

#endif
