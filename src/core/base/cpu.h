/* Instructions that the processor has and the system lets a program use. */
#ifndef SFTI_BASE_CPU_H
#define SFTI_BASE_CPU_H

#include <stdbool.h>

enum {
    SFTI_CPU_SSSE3 = 1,
    SFTI_CPU_SSE41 = 2,
    SFTI_CPU_PCLMUL = 4,
    SFTI_CPU_SHA = 8,
    SFTI_CPU_FMA = 16,
    SFTI_CPU_AVX2 = 32,
    SFTI_CPU_AVX512F = 64,
    SFTI_CPU_AVX512BW = 128,
    SFTI_CPU_AVX512DQ = 256,
    SFTI_CPU_AVX512VL = 512,
    SFTI_CPU_AVX512VBMI = 1024,
    /* of 64-bit ARM */
    SFTI_CPU_ARM_SHA2 = 2048,
    SFTI_CPU_ARM_CRC32 = 4096
};

/* Whether all of them are there; on another kind of processor, none is. Any thread. */
bool sfti_cpu_has(unsigned wanted);

/* Where code for 64-bit ARM can be compiled: little-endian, by a compiler that can be told the
 * instructions of one function. */
#if defined(__aarch64__) && defined(__GNUC__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#if defined(__clang__) && __clang_major__ >= 16
#define SFTI_ARM
#define SFTI_ARM_TARGET(feature) __attribute__((target(feature)))
#elif !defined(__clang__)
#define SFTI_ARM
#define SFTI_ARM_TARGET(feature) __attribute__((target("+" feature)))
#endif
#endif

#endif
