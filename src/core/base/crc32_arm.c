/* CRC-32 and CRC-32C by instructions of 64-bit ARM. Tests: test_job.c. */
#include "base/cpu.h"
#include "base/crc32.h"

#if defined(SFTI_ARM)
#include <arm_acle.h>
#include <string.h>

SFTI_ARM_TARGET("crc") static uint32_t crc_words(uint32_t crc, const uint8_t *data, size_t len) {
    for (; len > 0; len -= 8, data += 8) {
        uint64_t word;
        memcpy(&word, data, sizeof word);
        crc = __crc32d(crc, word);
    }
    return crc;
}

SFTI_ARM_TARGET("crc") static uint32_t crc_words_castagnoli(uint32_t crc, const uint8_t *data,
                                                            size_t len) {
    for (; len > 0; len -= 8, data += 8) {
        uint64_t word;
        memcpy(&word, data, sizeof word);
        crc = __crc32cd(crc, word);
    }
    return crc;
}

sfti_crc32_words_fn sfti_crc32_words(void) {
    return sfti_cpu_has(SFTI_CPU_ARM_CRC32) ? crc_words : NULL;
}

sfti_crc32_words_fn sfti_crc32c_words(void) {
    return sfti_cpu_has(SFTI_CPU_ARM_CRC32) ? crc_words_castagnoli : NULL;
}

#else

sfti_crc32_words_fn sfti_crc32_words(void) {
    return NULL;
}

sfti_crc32_words_fn sfti_crc32c_words(void) {
    return NULL;
}

#endif
