/* Where code for 64-bit ARM can be compiled: little-endian, by a compiler that can be told the
 * instructions of one function. */
#ifndef SFTI_BASE_ARM_H
#define SFTI_BASE_ARM_H

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
