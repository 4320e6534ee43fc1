/* Instructions of an ARM processor on Linux. */
#include "os/cpu.h"

#if defined(__aarch64__)
#include <sys/auxv.h>

/* Bits of AT_HWCAP: a part of the kernel's interface, but not in every libc's headers. */
enum { LINUX_ARM_SHA2 = 1 << 6, LINUX_ARM_CRC32 = 1 << 7 };

unsigned sfti_os_arm_instructions(void) {
    unsigned long has = getauxval(AT_HWCAP);
    unsigned found = 0;
    if (has & LINUX_ARM_SHA2) found |= OS_ARM_SHA2;
    if (has & LINUX_ARM_CRC32) found |= OS_ARM_CRC32;
    return found;
}

#else

unsigned sfti_os_arm_instructions(void) {
    return 0;
}

#endif
