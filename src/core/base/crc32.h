/* CRC-32 as of gzip and zlib, eight bytes at a step. */
#ifndef SFTI_CRC32_H
#define SFTI_CRC32_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The remainder, not inverted, after crc and `len` bytes, a multiple of 8. */
typedef uint32_t (*sfti_crc32_words_fn)(uint32_t crc, const uint8_t *data, size_t len);

/* table[k][b]: the remainder of byte b and k zero bytes after it. */
typedef struct sfti_crc32_table {
    uint32_t at[8][256];
    bool folds; /* of CRC-32 alone: by carry-less multiplication, where the processor has it */
    sfti_crc32_words_fn words; /* instructions for it, or NULL */
} sfti_crc32_table;

/* castagnoli: for CRC-32C, of iSCSI, LevelDB and TensorFlow; sfti_crc32_add serves both. */
void sfti_crc32_begin(sfti_crc32_table *table, bool castagnoli);
/* The sum of what crc is the sum of (0: of nothing) and these bytes. */
uint32_t sfti_crc32_add(const sfti_crc32_table *table, uint32_t crc, const void *bytes,
                        size_t len);
/* Where this processor folds: len bytes (a multiple of 64, at least 64) into the 16 that have the
 * same remainder. */
void sfti_crc32_fold(uint32_t crc, const uint8_t *data, size_t len, uint8_t out[16]);
/* NULL if the processor has no instructions for these sums. */
sfti_crc32_words_fn sfti_crc32_words(void);
sfti_crc32_words_fn sfti_crc32c_words(void);
/* What the sum of some bytes adds to the sum of these and `len` more: the sum of all is this xor
 * the sum of the others. */
uint32_t sfti_crc32_shift(uint32_t crc, uint64_t len);
/* A CRC-32C as LevelDB stores it: rotated, plus a constant. */
uint32_t sfti_crc32c_unmask(uint32_t masked);

#endif
