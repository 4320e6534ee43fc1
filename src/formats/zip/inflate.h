/* Bytes that are stored deflated. */
#ifndef SFTI_INFLATE_H
#define SFTI_INFLATE_H

#include "formats/parts/state.h"

/* No deflated byte becomes more than these. */
#define SFTI_INFLATE_RATIO 1032

/* The decompressors of one archive's entries: a few, of which each remembers where it stands in the
 * entry that it was last used for. Lives as long as the import. */
typedef struct sfti_inflater sfti_inflater;
sft_code sfti_inflater_new(sfti_import *im, const sft_source *archive, sfti_inflater **out);

/* Bytes [begin, begin + stored) of the archive, which inflate to `size` bytes of this CRC-32. */
typedef struct sfti_deflated {
    uint64_t begin, stored, size;
    uint32_t crc32;
} sfti_deflated;

/* A source of the `size` bytes: thread-safe, fast if read forward, inflated from the start again if
 * read backward. Whoever reads the last byte is told if the checksum is wrong
 * (SFT_FOREIGN_CHECKSUM) or the data go on (SFT_FOREIGN_SIZE). SFT_FOREIGN_KIND in a build without
 * zlib. */
sft_code sfti_inflate_source(sfti_import *im, sfti_inflater *inflater, const sfti_deflated *bytes,
                             const sft_source **out);

#endif
