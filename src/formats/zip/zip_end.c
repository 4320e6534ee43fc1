/* The end of a zip archive, which tells where its directory is. */
#include "base/endian.h"
#include "formats/zip/zip_format.h"

/* Position of the last end record in the tail, SIZE_MAX if there is none; *whole: of the last that
 * ends, with its comment, where the file does. */
static size_t find_end(const uint8_t *tail, size_t len, size_t *whole) {
    size_t last = SIZE_MAX;
    *whole = SIZE_MAX;
    for (size_t i = len < 4 ? 0 : len - 3; i-- > 0;) {
        if (tail[i] != 'P' || sfti_get_u32(tail + i) != ZIP_END) continue;
        if (last == SIZE_MAX) last = i;
        if (len - i < ZIP_END_LEN) continue;
        if (i + ZIP_END_LEN + sfti_get_u16(tail + i + 20) != len) continue;
        *whole = i;
        break;
    }
    return last;
}

/* A field of the end record, and the one of ZIP64 that may stand for it. */
static bool ends_agree(uint64_t narrow, uint64_t wide, uint64_t all_ones) {
    return narrow == all_ones || narrow == wide;
}

/* The ZIP64 end record, which stands before the end record and its own locator. */
static sft_code read_end64(sfti_import *im, const sft_source *source, const uint8_t *end,
                           uint64_t end_at, sfti_zip_directory *out, uint64_t *dir_end) {
    uint8_t wide[ZIP_END64_LEN + ZIP_LOCATOR64_LEN];
    const uint8_t *locator = wide + ZIP_END64_LEN;
    sft_error *err = im->err;
    if (end_at < sizeof wide)
        return sfti_fail_byte(err, SFT_FOREIGN_SYNTAX, end_at, "expected a ZIP64 end record before "
                              "its locator, found the start of the file");
    uint64_t at = *dir_end = end_at - sizeof wide;
    sft_code code = sfti_import_read(im, source, at, wide, sizeof wide);
    if (code) return code;
    if (sfti_get_u32(wide) != ZIP_END64 || sfti_get_u64(locator + 8) != at
        || sfti_get_u64(wide + 4) != ZIP_END64_LEN - 12)
        return sfti_fail_byte(err, SFT_FOREIGN_AMBIGUOUS, at,
                              "expected the ZIP64 end record at byte %llu, directly before its "
                              "locator, found none of 56 bytes there", (unsigned long long)at);
    if (sfti_get_u32(locator + 4) != 0 || sfti_get_u32(locator + 16) != 1
        || sfti_get_u32(wide + 16) != 0 || sfti_get_u32(wide + 20) != 0)
        return sfti_fail_byte(err, SFT_FOREIGN_KIND, at,
                              "expected a zip archive in one file, found one of several disks");
    *out = (sfti_zip_directory){ sfti_get_u64(wide + 48), sfti_get_u64(wide + 40),
                                 sfti_get_u64(wide + 32) };
    if (sfti_get_u64(wide + 24) != out->count
        || !ends_agree(sfti_get_u16(end + 8), out->count, 0xffff)
        || !ends_agree(sfti_get_u16(end + 10), out->count, 0xffff)
        || !ends_agree(sfti_get_u32(end + 12), out->size, ZIP_WIDE)
        || !ends_agree(sfti_get_u32(end + 16), out->at, ZIP_WIDE))
        return sfti_fail_byte(err, SFT_FOREIGN_AMBIGUOUS, end_at, "expected the end record and "
                              "that of ZIP64 to tell of one directory, found two");
    return SFT_OK;
}

static sft_code read_end_record(sfti_import *im, const sft_source *source, const uint8_t *end,
                                uint64_t end_at, sfti_zip_directory *out) {
    uint8_t mark[4] = { 0 };
    uint64_t dir_end = end_at, sum;
    sft_error *err = im->err;
    uint16_t disk = sfti_get_u16(end + 4), first = sfti_get_u16(end + 6);
    sft_code code = SFT_OK;
    *out = (sfti_zip_directory){ sfti_get_u32(end + 16), sfti_get_u32(end + 12),
                                 sfti_get_u16(end + 10) };
    if (end_at >= ZIP_LOCATOR64_LEN)
        code = sfti_import_read(im, source, end_at - ZIP_LOCATOR64_LEN, mark, sizeof mark);
    if (code) return code;
    bool wide = sfti_get_u32(mark) == ZIP_LOCATOR64;
    if ((disk != 0 || first != 0) && !(wide && disk == 0xffff && first == 0xffff))
        return sfti_fail_byte(err, SFT_FOREIGN_KIND, end_at + 4,
                              "expected a zip archive in one file, found disk %u of several",
                              (unsigned)disk + 1);
    if (wide) code = read_end64(im, source, end, end_at, out, &dir_end);
    else if (sfti_get_u16(end + 8) != out->count)
        code = sfti_fail_byte(err, SFT_FOREIGN_AMBIGUOUS, end_at + 8,
                              "expected one count of entries, found %u and %llu",
                              sfti_get_u16(end + 8), (unsigned long long)out->count);
    if (code || (sfti_add(out->at, out->size, &sum) && sum == dir_end)) return code;
    return sfti_fail_byte(err, SFT_FOREIGN_AMBIGUOUS, end_at, "expected the directory (%llu bytes "
                          "from byte %llu on) to end at byte %llu, where the end record begins",
                          (unsigned long long)out->size, (unsigned long long)out->at,
                          (unsigned long long)dir_end);
}

sft_code sfti_zip_find_directory(sfti_import *im, const sft_source *source, uint8_t *tail,
                                 sfti_zip_directory *out) {
    sft_error *err = im->err;
    uint64_t size = source->size;
    size_t len = size < ZIP_TAIL ? (size_t)size : ZIP_TAIL, whole;
    sft_code code = sfti_import_read(im, source, size - len, tail, len);
    if (code) return code;
    size_t last = find_end(tail, len, &whole);
    if (last == SIZE_MAX)
        return sfti_fail_byte(err, SFT_FOREIGN_TRUNCATED, size, "expected a zip archive to end "
                              "with its directory, found the end of the file");
    if (whole == SIZE_MAX)
        return sfti_fail_byte(err, SFT_FOREIGN_SYNTAX, size - len + last, "expected the zip "
                              "archive's end record and its comment to end the file, found other "
                              "bytes");
    if (whole != last)
        return sfti_fail_byte(err, SFT_FOREIGN_AMBIGUOUS, size - len + last, "expected one end "
                              "record, found another in the comment of that at byte %llu",
                              (unsigned long long)(size - len + whole));
    return read_end_record(im, source, tail + whole, size - len + whole, out);
}
