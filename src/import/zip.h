/* The directory of a zip archive, read so strictly that no two readers can see two archives. */
#ifndef SFTI_ZIP_H
#define SFTI_ZIP_H

#include "import/import.h"

typedef struct sfti_zip_entry {
    sft_span name;      /* UTF-8, as in the directory */
    uint64_t begin;     /* of its bytes in the archive */
    uint64_t stored;    /* bytes there */
    uint64_t size;      /* bytes once inflated; stored if not compressed */
    uint32_t crc32;
    bool deflated;
} sfti_zip_entry;

typedef struct sfti_zip {
    sfti_zip_entry *entries; /* in the order of their bytes */
    size_t count;
    sft_span folder;         /* the one top folder of all entries, without its slash, or "" */
} sfti_zip;

/* Read the central directory and compare every local header with it. SFT_FOREIGN_SYNTAX,
 * _AMBIGUOUS (names twice, also by case folding; overlaps; headers that contradict one another; two
 * ends), _KIND (encrypted, several disks, other compression), SFT_FOREIGN_ENTRIES. */
sft_code sfti_zip_open(sfti_import *im, const sft_source *source, sfti_zip *out);
/* The entry of exactly that name, or NULL. O(log n). */
const sfti_zip_entry *sfti_zip_find(const sfti_zip *zip, sft_span name);
/* A source of the entry's bytes, [0, size): the archive itself from *begin on if it is stored, else
 * one that inflates. Its CRC is compared when it is read as a whole. */
sft_code sfti_zip_source(sfti_import *im, const sft_source *archive, const sfti_zip_entry *entry,
                         const sft_source **out, uint64_t *begin);
/* All of an entry in memory, CRC compared. */
sft_code sfti_zip_load(sfti_import *im, const sft_source *archive, const sfti_zip_entry *entry,
                       uint8_t **out);

/* What stands in an archive, once its directory is known. */
sft_code sfti_read_torch_zip(sfti_import *im, const sfti_zip *zip);
sft_code sfti_read_npz(sfti_import *im, const sfti_zip *zip);

#endif
