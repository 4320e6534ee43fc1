/* A plugin with a copy of the library of its own: opens a file and tells which version did it.
 * UNIT is the two-file form's source where it is a part of this file. */
#ifdef UNIT
#define SFT_STATIC_API
#include UNIT
#else
#include "safetensors.h"
#endif
#include <stdio.h>

#ifdef _WIN32
__declspec(dllexport)
#elif defined(__GNUC__)
__attribute__((visibility("default")))
#endif
int PLUGIN(const char *path, char *said, size_t cap);

int PLUGIN(const char *path, char *said, size_t cap) {
    sft_error e = SFT_ERROR_INIT;
    sft_file *file;
    if (sft_open(path, NULL, &file, &e)) {
        snprintf(said, cap, "%s", e.message);
        return 1;
    }
    const sft_tensor *first = sft_file_tensor_at(file, 0);
    snprintf(said, cap, "%s %s %.*s", SFT_VERSION_STRING, sft_version(), (int)first->name.len,
             first->name.data);
    sft_close(file);
    return 0;
}
