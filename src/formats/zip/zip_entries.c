/* The bytes of a zip archive's entries. */
#include "base/crc32.h"
#include "formats/zip/zip.h"

const sfti_zip_entry *sfti_zip_find(const sfti_zip *zip, sft_span name) {
    uint32_t i = sfti_names_find(&zip->names, name);
    return i == SFTI_NO_NAME ? NULL : &zip->entries[i];
}

sft_code sfti_zip_bytes(sfti_import *im, const sft_source *archive, const sfti_zip_entry *entry,
                        const sft_source **out, uint64_t *begin) {
    sfti_deflated bytes = { entry->begin, entry->stored, entry->size, entry->crc32 };
    *begin = 0;
    if (entry->deflated) return sfti_inflate_source(im, entry->inflater, &bytes, out);
    *out = archive;
    *begin = entry->begin;
    return SFT_OK;
}

sft_code sfti_zip_source(sfti_import *im, const sft_source *archive, const sfti_zip_entry *entry,
                         const sft_source **out, uint64_t *begin) {
    sft_code code = sfti_zip_bytes(im, archive, entry, out, begin);
    if (code) return code;
    return sfti_import_crc32(im, *out, *begin, entry->size, entry->crc32, false);
}

static sft_code load_stored(sfti_import *im, const sft_source *archive,
                            const sfti_zip_entry *entry, uint8_t **out) {
    sfti_crc32_table table;
    sft_code code = sfti_import_load(im, archive, entry->begin, entry->size, out);
    if (code) return code;
    sfti_crc32_begin(&table, false);
    uint32_t found = sfti_crc32_add(&table, 0, *out, (size_t)entry->size);
    if (found == entry->crc32) return SFT_OK;
    return sfti_fail_byte(im->err, SFT_FOREIGN_CHECKSUM, entry->begin,
                          "expected bytes of CRC-32 %08x, found %08x, in the zip entry \"%.*s\"",
                          (unsigned)entry->crc32, (unsigned)found, SFTI_CLIP(entry->name, 200));
}

sft_code sfti_zip_load(sfti_import *im, const sft_source *archive, const sfti_zip_entry *entry,
                       uint8_t **out) {
    const sft_source *source;
    uint64_t begin;
    if (!entry->deflated) return load_stored(im, archive, entry, out);
    sft_code code = sfti_zip_bytes(im, archive, entry, &source, &begin);
    return code ? code : sfti_import_load(im, source, begin, entry->size, out);
}
