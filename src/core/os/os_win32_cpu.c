/* Instructions of an ARM processor on Windows. */
#include "os/cpu.h"

#include <windows.h>

/* Not in every version of the headers. The first stands for AES, SHA-1 and SHA-2. */
enum { WIN32_ARM_CRYPTO = 30, WIN32_ARM_CRC32 = 31 };

unsigned sfti_os_arm_instructions(void) {
    unsigned found = 0;
#if defined(__aarch64__)
    if (IsProcessorFeaturePresent(WIN32_ARM_CRYPTO)) found |= OS_ARM_SHA2;
    if (IsProcessorFeaturePresent(WIN32_ARM_CRC32)) found |= OS_ARM_CRC32;
#endif
    return found;
}
