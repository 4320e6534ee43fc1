/* The directory of a zip archive, read so strictly that no two readers can see two archives. */
#ifndef SFTI_ZIP_H
#define SFTI_ZIP_H

#include "base/names.h"
#include "formats/parts/state.h"

/* ── inflate.c: bytes that are stored deflated ── */

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

/* ── The archive ── */

typedef struct sfti_zip_entry {
    sft_span name;      /* UTF-8, as in the directory */
    uint64_t begin;     /* of its bytes in the archive */
    uint64_t stored;    /* bytes there */
    uint64_t size;      /* bytes once inflated; stored if not compressed */
    uint32_t crc32;
    bool deflated;
    sfti_inflater *inflater; /* the archive's, if deflated */
} sfti_zip_entry;

typedef struct sfti_zip {
    sfti_zip_entry *entries; /* in the order of their bytes; folders have none */
    size_t count;
    sft_span folder;         /* the one top folder of all entries, without its slash, or "" */
    uint64_t unused;         /* bytes between the entries */
    sfti_names names;
} sfti_zip;

#define SFTI_ZIP_MOST_ENTRIES (UINT64_C(4) << 20)
#define SFTI_ZIP_MOST_BYTES (UINT64_C(1) << 30) /* of the directory */

/* Read the central directory and compare every local header with it. SFT_FOREIGN_SYNTAX,
 * _TRUNCATED, _AMBIGUOUS (names twice; overlaps; headers that contradict one another; two ends),
 * _KIND (encrypted, several disks, other compression), _TABLE (the limits above), _SIZE (more
 * bytes declared than deflate can make). Names that differ in case only are two names of one
 * tensor for PyTorch and _AMBIGUOUS, too, unless all entries are .npy: NumPy tells them apart. */
sft_code sfti_zip_open(sfti_import *im, const sft_source *source, sfti_zip *out);
/* The entry of exactly that name, or NULL. O(1). */
const sfti_zip_entry *sfti_zip_find(const sfti_zip *zip, sft_span name);
/* A source of the entry's bytes, [0, size): the archive itself from *begin on if it is stored, else
 * one that inflates. */
sft_code sfti_zip_bytes(sfti_import *im, const sft_source *archive, const sfti_zip_entry *entry,
                        const sft_source **out, uint64_t *begin);
/* The same; tensors whose bytes begin in it compare its CRC. */
sft_code sfti_zip_source(sfti_import *im, const sft_source *archive, const sfti_zip_entry *entry,
                         const sft_source **out, uint64_t *begin);
/* All of an entry in memory, CRC compared. */
sft_code sfti_zip_load(sfti_import *im, const sft_source *archive, const sfti_zip_entry *entry,
                       uint8_t **out);

/* What an archive holds: SFT_IMPORT_TORCH_ZIP (a data.pkl under its one folder; TorchScript, too,
 * until that is read), SFT_IMPORT_NPZ (nothing but .npy) or SFT_IMPORT_NONE. Then *what, if not
 * NULL, is what it seems to be. */
sft_import_format sfti_zip_tell(const sfti_zip *zip, const char **what);
/* What an archive may be whose opening failed, by its first entry and the names that were read. */
sft_import_format sfti_zip_guess(sfti_import *im, const sfti_zip *zip);

/* What stands in an archive, once its directory is known. */
sft_code sfti_read_torch_zip(sfti_import *im, const sfti_zip *zip);
sft_code sfti_read_npz(sfti_import *im, const sfti_zip *zip);

#endif
