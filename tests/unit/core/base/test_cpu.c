#include "base/cpu.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#if defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

#define CPU_SAME(feature, name) \
    if (sfti_cpu_has(feature) != !!__builtin_cpu_supports(name)) fail_msg("%s", name)

/* The compiler's own runtime library is the oracle. */
static void features_are_those_of_the_compiler(void **state) {
    (void)state;
#ifdef __x86_64__
    __builtin_cpu_init();
    CPU_SAME(SFTI_CPU_SSSE3, "ssse3");
    CPU_SAME(SFTI_CPU_SSE41, "sse4.1");
    CPU_SAME(SFTI_CPU_PCLMUL, "pclmul");
    CPU_SAME(SFTI_CPU_FMA, "fma");
    CPU_SAME(SFTI_CPU_AVX2, "avx2");
    CPU_SAME(SFTI_CPU_AVX512F, "avx512f");
    CPU_SAME(SFTI_CPU_AVX512BW, "avx512bw");
    CPU_SAME(SFTI_CPU_AVX512DQ, "avx512dq");
    CPU_SAME(SFTI_CPU_AVX512VL, "avx512vl");
    CPU_SAME(SFTI_CPU_AVX512VBMI, "avx512vbmi");
#else
    assert_false(sfti_cpu_has(SFTI_CPU_SSSE3));
#endif
#if defined(__aarch64__) && defined(__linux__)
    unsigned long has = getauxval(AT_HWCAP);
    assert_int_equal(sfti_cpu_has(SFTI_CPU_ARM_SHA2), (has & HWCAP_SHA2) != 0);
    assert_int_equal(sfti_cpu_has(SFTI_CPU_ARM_CRC32), (has & HWCAP_CRC32) != 0);
#elif !defined(__aarch64__)
    assert_false(sfti_cpu_has(SFTI_CPU_ARM_SHA2));
    assert_false(sfti_cpu_has(SFTI_CPU_ARM_CRC32));
#endif
    assert_true(sfti_cpu_has(0));
}

int main(void) {
    const struct CMUnitTest tests[] = { cmocka_unit_test(features_are_those_of_the_compiler) };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
