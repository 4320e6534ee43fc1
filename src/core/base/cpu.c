/* Which instructions the processor has and the system lets a program use. Tests: test_cpu.c. */
#include "base/cpu.h"

#include "os/cpu.h"

/* Not by __builtin_cpu_supports: it needs libgcc or compiler-rt, and zig's compiler has neither. */
#if defined(__x86_64__) && defined(__GNUC__)
#include <cpuid.h>
#include <stddef.h>
#include <stdint.h>

enum { CPU_OSXSAVE = 27, CPU_AVX_STATE = 0x06, CPU_AVX512_STATE = 0xe6, CPU_ASKED = 1 << 30 };

/* Register 0: ecx of leaf 1; 1 and 2: ebx and ecx of leaf 7. state: bits of XCR0 that the system
 * must have set, since it saves these registers when it switches threads. */
static const struct {
    unsigned feature, word, bit, state;
} cpu_rows[] = {
    { SFTI_CPU_SSSE3, 0, 9, 0 },
    { SFTI_CPU_SSE41, 0, 19, 0 },
    { SFTI_CPU_PCLMUL, 0, 1, 0 },
    { SFTI_CPU_SHA, 1, 29, 0 },
    { SFTI_CPU_FMA, 0, 12, CPU_AVX_STATE },
    { SFTI_CPU_AVX2, 1, 5, CPU_AVX_STATE },
    { SFTI_CPU_AVX512F, 1, 16, CPU_AVX512_STATE },
    { SFTI_CPU_AVX512BW, 1, 30, CPU_AVX512_STATE },
    { SFTI_CPU_AVX512DQ, 1, 17, CPU_AVX512_STATE },
    { SFTI_CPU_AVX512VL, 1, 31, CPU_AVX512_STATE },
    { SFTI_CPU_AVX512VBMI, 2, 1, CPU_AVX512_STATE },
};

bool sfti_cpu_has(unsigned wanted) {
    /* Asking takes microseconds in a virtual machine. The answer is the same for every thread. */
    static _Atomic unsigned cpu_answer;
    unsigned answer = cpu_answer, words[3] = { 0 }, state = 0, high, found = CPU_ASKED, a, b, c, d;
    if (answer) return (answer & wanted) == wanted;
    __cpuid(0, a, b, c, d);
    unsigned leaves = a;
    if (leaves >= 1) {
        __cpuid(1, a, b, c, d);
        words[0] = c;
    }
    if (leaves >= 7) {
        __cpuid_count(7, 0, a, b, c, d);
        words[1] = b;
        words[2] = c;
    }
    if (words[0] >> CPU_OSXSAVE & 1) __asm__("xgetbv" : "=a"(state), "=d"(high) : "c"(0));
    for (size_t i = 0; i < sizeof cpu_rows / sizeof *cpu_rows; i++) {
        if (words[cpu_rows[i].word] >> cpu_rows[i].bit & 1
            && (state & cpu_rows[i].state) == cpu_rows[i].state)
            found |= cpu_rows[i].feature;
    }
    cpu_answer = found;
    return (found & wanted) == wanted;
}

#elif defined(__aarch64__)

bool sfti_cpu_has(unsigned wanted) {
    unsigned has = sfti_os_arm_instructions(), found = 0;
    if (has & OS_ARM_SHA2) found |= SFTI_CPU_ARM_SHA2;
    if (has & OS_ARM_CRC32) found |= SFTI_CPU_ARM_CRC32;
    return (found & wanted) == wanted;
}

#else

bool sfti_cpu_has(unsigned wanted) {
    return wanted == 0;
}

#endif
