/* Instructions of an ARM processor on macOS. */
#include "os/cpu.h"

unsigned sfti_os_arm_instructions(void) {
#if defined(__aarch64__)
    return OS_ARM_SHA2 | OS_ARM_CRC32; /* every processor that macOS runs on */
#else
    return 0;
#endif
}
