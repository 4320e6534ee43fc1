/* CRC-32 and CRC-32C by tables of eight bytes. Tests: test_job.c. */
#include "base/crc32.h"

#include "base/cpu.h"
#include "base/endian.h"

#define CRC_POLYNOMIAL UINT32_C(0xedb88320)
#define CRC_CASTAGNOLI UINT32_C(0x82f63b78)

void sfti_crc32_begin(sfti_crc32_table *table, bool castagnoli) {
    const uint32_t polynomial = castagnoli ? CRC_CASTAGNOLI : CRC_POLYNOMIAL;
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++) crc = crc >> 1 ^ (polynomial & (0 - (crc & 1)));
        table->at[0][b] = crc;
    }
    for (int k = 1; k < 8; k++)
        for (uint32_t b = 0; b < 256; b++)
            table->at[k][b] =
                table->at[k - 1][b] >> 8 ^ table->at[0][table->at[k - 1][b] & 0xff];
    table->folds = !castagnoli && sfti_cpu_has(SFTI_CPU_PCLMUL | SFTI_CPU_SSE41);
    table->words = NULL;
    if (!table->folds) table->words = castagnoli ? sfti_crc32c_words() : sfti_crc32_words();
}

static uint32_t crc_bytes(const sfti_crc32_table *table, uint32_t crc, const uint8_t *p,
                          size_t len) {
    const uint32_t(*t)[256] = table->at;
    crc = ~crc;
    for (; len >= 8; len -= 8, p += 8) {
        uint32_t low = sfti_get_u32(p) ^ crc, high = sfti_get_u32(p + 4);
        crc = t[7][low & 0xff] ^ t[6][low >> 8 & 0xff] ^ t[5][low >> 16 & 0xff] ^ t[4][low >> 24]
              ^ t[3][high & 0xff] ^ t[2][high >> 8 & 0xff] ^ t[1][high >> 16 & 0xff]
              ^ t[0][high >> 24];
    }
    for (; len > 0; len--) crc = t[0][(crc ^ *p++) & 0xff] ^ crc >> 8;
    return ~crc;
}

uint32_t sfti_crc32_add(const sfti_crc32_table *table, uint32_t crc, const void *bytes,
                        size_t len) {
    uint8_t folded[16];
    const uint8_t *p = bytes;
    if (table->words) {
        size_t whole = len & ~(size_t)7;
        crc = ~table->words(~crc, p, whole);
        p += whole;
        len -= whole;
    }
    if (table->folds && len >= 64) {
        size_t whole = len & ~(size_t)63;
        sfti_crc32_fold(~crc, p, whole, folded);
        crc = crc_bytes(table, ~UINT32_C(0), folded, sizeof folded);
        p += whole;
        len -= whole;
    }
    return crc_bytes(table, crc, p, len);
}

/* The product of two polynomials, highest power first, modulo CRC's. */
static uint32_t crc_multiply(uint32_t a, uint32_t b) {
    uint32_t product = 0;
    for (; a != 0; a <<= 1) {
        if (a >> 31) product ^= b;
        b = b >> 1 ^ (CRC_POLYNOMIAL & (0 - (b & 1)));
    }
    return product;
}

uint32_t sfti_crc32_shift(uint32_t crc, uint64_t len) {
    uint32_t power = UINT32_C(1) << 23; /* x^8: of one byte, then of 2, 4, 8 … */
    for (; len > 0; len >>= 1) {
        if (len & 1) crc = crc_multiply(power, crc);
        power = crc_multiply(power, power);
    }
    return crc;
}

uint32_t sfti_crc32c_unmask(uint32_t masked) {
    uint32_t rotated = masked - UINT32_C(0xa282ead8);
    return rotated >> 17 | rotated << 15;
}
