/* Reads options structs of older and newer callers. Tests: test_options.c. */
#include "base/options.h"

#include "base/error.h"

#include <string.h>

sft_code sfti_options_take(const void *from, void *to, size_t known, size_t least,
                           const char *name, sft_error *err) {
    size_t size;
    if (!from) return SFT_OK;
    memcpy(&size, from, sizeof size);
    if (size < least || size > SFTI_OPTIONS_MOST || size % sizeof size)
        return sfti_misuse(err, "expected %s.size as its _INIT sets it (%zu to %zu, a multiple of "
                           "%zu), found %zu", name, least, SFTI_OPTIONS_MOST, sizeof size, size);
    size_t unknown = known;
    while (unknown < size && ((const unsigned char *)from)[unknown] == 0) unknown++;
    if (unknown < size)
        return sfti_misuse(err, "expected %s to be zero behind the %zu bytes that libsafetensors "
                           "%s knows, found an option of a newer version at byte %zu",
                           name, known, sft_version(), unknown);
    size_t end = size < known ? size : known;
    memcpy((char *)to + sizeof size, (const char *)from + sizeof size, end - sizeof size);
    return SFT_OK;
}

SFTI_OPTIONS_TAKE(sfti_take_job, sft_job, SFT_JOB_INIT, threads)
SFTI_OPTIONS_TAKE(sfti_take_path, sft_path_options, SFT_PATH_OPTIONS_INIT, alloc)
SFTI_OPTIONS_TAKE(sfti_take_open, sft_open_options, SFT_OPEN_OPTIONS_INIT, alloc)
SFTI_OPTIONS_TAKE(sfti_take_plan, sft_plan_options, SFT_PLAN_OPTIONS_INIT, alloc)
