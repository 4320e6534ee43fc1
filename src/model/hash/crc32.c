/* CRC-32, by zlib where that is faster. Tests: test_hash_sums.c. */
#include "hash/hash.h"

#if defined(SFTI_FOUND_ZLIB)
#include <zlib.h>
#endif

uint32_t sfti_crc32(const sfti_hash_impl *impl, uint32_t crc, const uint8_t *data, size_t len) {
#if defined(SFTI_FOUND_ZLIB)
    if (impl->zlib && !impl->crc_table.folds && !impl->crc_table.words && len > 0)
        return (uint32_t)crc32_z(crc, data, len);
#endif
    return sfti_crc32_add(&impl->crc_table, crc, data, len);
}
