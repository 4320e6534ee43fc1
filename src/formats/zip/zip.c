/* A zip archive's directory and local headers. Tests: test_import_zip.c. */
#include "formats/zip/zip.h"

#include "base/announce.h"
#include "base/endian.h"
#include "base/order.h"
#include "base/utf8.h"
#include "formats/zip/zip_format.h"
#include "os/io.h"

#include <string.h>

/* The archive's bytes; local headers that are near one another come in one read. */
#define ZIP_WINDOW ((size_t)192 << 10)
#define ZIP_WINDOW_FEW ((size_t)512)

typedef struct zip_reader {
    sfti_import *im;
    const sft_source *source;
    sfti_zip_directory dir;
    uint8_t *rows; /* of the directory */
    bool ascending, has_deflated, all_npy, has_capitals;
    uint8_t *window; /* ZIP_WINDOW bytes, of which window_len from window_at on are there */
    uint64_t window_at;
    size_t window_len;
} zip_reader;

/* While the directory is read, an entry's begin is that of its local header. */

static const uint8_t *zip_row_of(const sfti_zip_entry *e) {
    return (const uint8_t *)e->name.data - ZIP_CENTRAL_LEN;
}

static uint64_t zip_row_at(const zip_reader *z, const sfti_zip_entry *e) {
    return z->dir.at + (uint64_t)(zip_row_of(e) - z->rows);
}

SFTI_COLD static sft_code zip_fail(zip_reader *z, sft_code code, uint64_t at,
                                   const sfti_zip_entry *e, const char *rule) {
    return sfti_fail_byte(z->im->err, code, at, "%s, in the zip entry \"%.*s\"", rule,
                          SFTI_CLIP(e->name, 200));
}

/* ── The directory ── */

/* The ZIP64 field of a header, of which values are taken in order. */
typedef struct zip_wide {
    const uint8_t *at;
    size_t left;
} zip_wide;

static bool take_wide(zip_wide *w, uint32_t narrow, uint64_t *out) {
    *out = narrow;
    if (narrow != ZIP_WIDE) return true;
    if (w->left < 8) return false;
    *out = sfti_get_u64(w->at);
    w->at += 8;
    w->left -= 8;
    return true;
}

/* Find the ZIP64 field among the extra fields; the rule that they break, or NULL. */
static const char *read_extra(const uint8_t *extra, size_t len, sft_span name, zip_wide *out) {
    bool seen = false;
    *out = (zip_wide){ NULL, 0 };
    for (size_t at = 0; at < len;) {
        if (len - at < 4 || sfti_get_u16(extra + at + 2) > len - at - 4)
            return "expected extra fields of their declared lengths, found them cut";
        const uint8_t *field = extra + at + 4;
        size_t size = sfti_get_u16(extra + at + 2);
        uint16_t id = sfti_get_u16(extra + at);
        /* Info-ZIP's Unicode name: a byte of version, a checksum, the name. */
        if (id == 0x7075 && (size != name.len + 5 || memcmp(field + 5, name.data, name.len) != 0))
            return "expected one name, found another in an extra field";
        if (id == 1 && seen) return "expected one ZIP64 field, found two";
        if (id == 1) *out = (zip_wide){ field, size };
        seen = seen || id == 1;
        at += 4 + size;
    }
    return NULL;
}

static sft_code zip_check_name(zip_reader *z, const sfti_zip_entry *e, uint16_t flags) {
    uint64_t at = zip_row_at(z, e) + ZIP_CENTRAL_LEN;
    size_t good = sfti_utf8_check(e->name.data, e->name.len);
    if (e->name.len == 0)
        return zip_fail(z, SFT_FOREIGN_SYNTAX, at, e, "expected a name, found none");
    if (good < e->name.len)
        return zip_fail(z, SFT_FOREIGN_NAME, at + good, e, "expected a name in UTF-8");
    if (memchr(e->name.data, '\0', e->name.len))
        return zip_fail(z, SFT_FOREIGN_AMBIGUOUS, at, e, "expected a name without NUL bytes, at "
                        "which some readers cut it");
    for (size_t i = 0; i < e->name.len; i++) {
        if ((e->name.data[i] & 0x80) && !(flags & ZIP_UTF8))
            return zip_fail(z, SFT_FOREIGN_AMBIGUOUS, at + i, e, "expected a name marked as "
                            "UTF-8, found one that other readers take for code page 437");
        if (e->name.data[i] >= 'A' && e->name.data[i] <= 'Z') z->has_capitals = true;
    }
    return SFT_OK;
}

static const char *method_name(uint16_t method) {
    static const struct { uint16_t method; const char *name; } names[] = {
        { 1, "shrunk" }, { 6, "imploded" }, { 9, "compressed with Deflate64" },
        { 12, "compressed with bzip2" }, { 14, "compressed with LZMA" },
        { 93, "compressed with zstd" }, { 95, "compressed with xz" },
        { 99, "encrypted with AES" },
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].method == method) return names[i].name;
    return "compressed with a method that is not known";
}

static sft_code zip_check_method(zip_reader *z, const sfti_zip_entry *e, uint16_t flags,
                             uint16_t method) {
    uint64_t at = zip_row_at(z, e);
    sft_error *err = z->im->err;
    if (flags & ZIP_ENCRYPTED)
        return zip_fail(z, SFT_FOREIGN_KIND, at + 8, e, "expected bytes as they are, found them "
                        "encrypted");
    if (flags & ~ZIP_FLAGS)
        return sfti_fail_byte(err, SFT_FOREIGN_SYNTAX, at + 8,
                              "expected no flags but those of APPNOTE bits 1, 2, 3 and 11, found "
                              "0x%04x, in the zip entry \"%.*s\"", flags, SFTI_CLIP(e->name, 200));
    if (method == 0 || method == 8) return SFT_OK;
    return sfti_fail_byte(err, SFT_FOREIGN_KIND, at + 10, "expected an entry that is stored or "
                          "deflated, found it %s (method %u), in the zip entry \"%.*s\"",
                          method_name(method), method, SFTI_CLIP(e->name, 200));
}

static bool is_folder(sft_span name) {
    return name.len > 0 && name.data[name.len - 1] == '/';
}

static sft_code zip_check_sizes(zip_reader *z, const sfti_zip_entry *e) {
    uint64_t at = zip_row_at(z, e), most;
    if (is_folder(e->name) && (e->stored > 0 || e->size > 0))
        return zip_fail(z, SFT_FOREIGN_AMBIGUOUS, at + 20, e, "expected a folder without bytes, "
                        "found some");
    if (!e->deflated && e->stored != e->size)
        return zip_fail(z, SFT_FOREIGN_AMBIGUOUS, at + 20, e, "expected one size of stored "
                        "bytes, found two");
    if (sfti_mul(e->stored, SFTI_INFLATE_RATIO, &most) && e->deflated && e->size > most)
        return zip_fail(z, SFT_FOREIGN_SIZE, at + 24, e, "expected at most 1032 bytes for each "
                        "deflated one, found more declared");
    return SFT_OK;
}

/* The row at *offset of the directory. */
static sft_code zip_read_row(zip_reader *z, size_t *offset, sfti_zip_entry *e) {
    const uint8_t *row = z->rows + *offset;
    size_t left = (size_t)z->dir.size - *offset;
    uint64_t at = z->dir.at + *offset;
    sft_error *err = z->im->err;
    *e = (sfti_zip_entry){ .name = { "", 0 } }; /* which the caller sees on failure, too */
    if (left < ZIP_CENTRAL_LEN || sfti_get_u32(row) != ZIP_CENTRAL)
        return sfti_fail_byte(err, SFT_FOREIGN_AMBIGUOUS, at,
                              "expected %llu entries in the zip archive's directory, found fewer",
                              (unsigned long long)z->dir.count);
    uint16_t flags = sfti_get_u16(row + 8), method = sfti_get_u16(row + 10);
    size_t name = sfti_get_u16(row + 28), extra = sfti_get_u16(row + 30);
    size_t whole = ZIP_CENTRAL_LEN + name + extra + sfti_get_u16(row + 32);
    if (left < whole)
        return sfti_fail_byte(err, SFT_FOREIGN_SYNTAX, at, "expected an entry of %zu bytes in the "
                              "zip archive's directory, found %zu", whole, left);
    *e = (sfti_zip_entry){ .name = { (const char *)row + ZIP_CENTRAL_LEN, name },
                           .crc32 = sfti_get_u32(row + 16), .deflated = method == 8 };
    zip_wide wide;
    const char *broken = read_extra(row + ZIP_CENTRAL_LEN + name, extra, e->name, &wide);
    if (broken) return zip_fail(z, SFT_FOREIGN_AMBIGUOUS, at + ZIP_CENTRAL_LEN + name, e, broken);
    if (sfti_get_u16(row + 34) != 0)
        return zip_fail(z, SFT_FOREIGN_KIND, at + 34, e, "expected an archive of one disk");
    if (!take_wide(&wide, sfti_get_u32(row + 24), &e->size)
        || !take_wide(&wide, sfti_get_u32(row + 20), &e->stored)
        || !take_wide(&wide, sfti_get_u32(row + 42), &e->begin) || wide.left > 0)
        return zip_fail(z, SFT_FOREIGN_AMBIGUOUS, at + ZIP_CENTRAL_LEN + name, e, "expected a "
                        "ZIP64 field of just those values that do not fit");
    if (sfti_get_u32(row + 38) & ZIP_FOLDER && e->size > 0) /* of which PyTorch reads no bytes */
        return zip_fail(z, SFT_FOREIGN_AMBIGUOUS, at + 38, e, "expected a folder without bytes");
    sft_code code = zip_check_name(z, e, flags);
    if (!code) code = zip_check_method(z, e, flags, method);
    if (!code) code = zip_check_sizes(z, e);
    *offset += whole;
    return code;
}

static int zip_compare_begin(const void *ctx, uint32_t a, uint32_t b) {
    const sfti_zip_entry *entries = ctx;
    return (entries[a].begin > entries[b].begin) - (entries[a].begin < entries[b].begin);
}

static sft_code zip_read_rows(zip_reader *z, sfti_zip *zip) {
    sft_error *err = z->im->err;
    if (z->dir.count > SFTI_ZIP_MOST_ENTRIES || z->dir.size > SFTI_ZIP_MOST_BYTES)
        return sfti_fail_byte(err, SFT_FOREIGN_TABLE, z->dir.at, "expected a directory of at most "
                              "%llu entries and %llu bytes, found %llu and %llu",
                              (unsigned long long)SFTI_ZIP_MOST_ENTRIES,
                              (unsigned long long)SFTI_ZIP_MOST_BYTES,
                              (unsigned long long)z->dir.count, (unsigned long long)z->dir.size);
    if (z->dir.size / ZIP_CENTRAL_LEN < z->dir.count)
        return sfti_fail_byte(err, SFT_FOREIGN_AMBIGUOUS, z->dir.at,
                              "expected a directory of %llu entries, found only %llu bytes",
                              (unsigned long long)z->dir.count, (unsigned long long)z->dir.size);
    sft_code code = sfti_import_expect(z->im, z->dir.count);
    if (code) return code;
    zip->entries = sfti_arena_array(&z->im->arena, z->dir.count, sizeof *zip->entries);
    if (!zip->entries) return sfti_fail_memory(err, z->dir.count * sizeof *zip->entries);
    code = sfti_import_load(z->im, z->source, z->dir.at, z->dir.size, &z->rows);
    size_t offset = 0;
    uint64_t before = 0;
    z->ascending = z->all_npy = true;
    for (; !code && zip->count < z->dir.count; zip->count++) {
        sfti_zip_entry *e = &zip->entries[zip->count];
        code = zip_read_row(z, &offset, e);
        if (e->begin < before) z->ascending = false;
        before = e->begin;
        const char *end = e->name.data + e->name.len;
        if (e->name.len < 4 || memcmp(end - 4, ".npy", 4) != 0) z->all_npy = false;
        if (e->deflated) z->has_deflated = true;
    }
    if (code) return code;
    if (offset != z->dir.size)
        return sfti_fail_byte(err, SFT_FOREIGN_AMBIGUOUS, z->dir.at + offset,
                              "expected %llu entries in the zip archive's directory, found more "
                              "bytes after them", (unsigned long long)z->dir.count);
    if (z->ascending) return SFT_OK;
    /* Entries in the order of their bytes. */
    sfti_zip_entry *sorted = sfti_arena_array(&z->im->arena, z->dir.count, sizeof *sorted);
    uint32_t *order = sfti_arena_sorted(&z->im->arena, zip->count, zip_compare_begin, zip->entries);
    if (!sorted || !order) return sfti_fail_memory(err, z->dir.count);
    for (size_t i = 0; i < zip->count; i++) sorted[i] = zip->entries[order[i]];
    zip->entries = sorted;
    return SFT_OK;
}

/* ── Local headers ── */

/* len bytes (at most 30 + 2 * 65535) at offset, which lie before the directory. */
static sft_code look(zip_reader *z, uint64_t offset, size_t len, size_t ahead,
                     const uint8_t **out) {
    if (offset < z->window_at || offset - z->window_at > z->window_len
        || z->window_len - (size_t)(offset - z->window_at) < len) {
        size_t some = len > ahead ? len : ahead;
        if (some > z->dir.at - offset) some = (size_t)(z->dir.at - offset);
        z->window_len = 0;
        sft_code code = sfti_import_read(z->im, z->source, offset, z->window, some);
        if (code) return code;
        z->window_at = offset;
        z->window_len = some;
    }
    *out = z->window + (size_t)(offset - z->window_at);
    return SFT_OK;
}

/* How far to read ahead for entry i: over the next ones, if they are small. */
static size_t zip_reach(const zip_reader *z, const sfti_zip *zip, size_t i) {
    size_t far = i + 16 < zip->count ? i + 16 : zip->count - 1;
    if (far - i < 2 || zip->entries[far].begin > z->dir.at) return ZIP_WINDOW_FEW;
    uint64_t span = zip->entries[far].begin - zip->entries[i].begin;
    return span / (far - i) < 4096 ? (size_t)128 << 10 : ZIP_WINDOW_FEW;
}

/* A value of a local header: the directory's, or 0 where it is told behind the data. */
static bool local_agrees(uint64_t local, uint64_t central, uint16_t flags) {
    return local == central || (local == 0 && (flags & ZIP_DESCRIBED));
}

static const char *compare_local(const uint8_t *local, const sfti_zip_entry *e) {
    const uint8_t *row = zip_row_of(e);
    uint16_t flags = sfti_get_u16(row + 8);
    zip_wide wide;
    uint64_t size, stored;
    if (memcmp(local + ZIP_LOCAL_LEN, e->name.data, e->name.len) != 0)
        return "expected the name of the directory, found another in the local header";
    if (sfti_get_u16(local + 6) != flags || sfti_get_u16(local + 8) != sfti_get_u16(row + 10))
        return "expected the flags and method of the directory, found others in the local header";
    const char *broken = read_extra(local + ZIP_LOCAL_LEN + e->name.len, sfti_get_u16(local + 28),
                                    e->name, &wide);
    if (broken) return broken;
    if (!take_wide(&wide, sfti_get_u32(local + 22), &size)
        || !take_wide(&wide, sfti_get_u32(local + 18), &stored))
        return "expected the sizes in a ZIP64 field of the local header, found none";
    if (!local_agrees(sfti_get_u32(local + 14), e->crc32, flags)
        || !local_agrees(size, e->size, flags) || !local_agrees(stored, e->stored, flags))
        return "expected the checksum and sizes of the directory, found others in the local header";
    return NULL;
}

/* Whether checksum and sizes stand at `at`, sizes of `width` bytes each. */
static bool is_descriptor(const uint8_t *at, size_t width, const sfti_zip_entry *e) {
    uint64_t stored = width == 8 ? sfti_get_u64(at + 4) : sfti_get_u32(at + 4);
    uint64_t size = width == 8 ? sfti_get_u64(at + 12) : sfti_get_u32(at + 8);
    return sfti_get_u32(at) == e->crc32 && stored == e->stored && size == e->size;
}

/* The length of what follows an entry's data, in `room` bytes: the longest of the four ways to
 * write it; 0 if it is none of them. */
static size_t descriptor_len(const uint8_t *at, uint64_t room, const sfti_zip_entry *e) {
    bool marked = room >= 4 && sfti_get_u32(at) == ZIP_DESCRIPTOR;
    if (marked && room >= 24 && is_descriptor(at + 4, 8, e)) return 24;
    if (room >= 20 && is_descriptor(at, 8, e)) return 20;
    if (marked && room >= 16 && is_descriptor(at + 4, 4, e)) return 16;
    return room >= 12 && is_descriptor(at, 4, e) ? 12 : 0;
}

/* Compare an entry with its local header, which must end before `limit`; begin becomes that of the
 * data. */
static sft_code zip_check_header(zip_reader *z, sfti_zip_entry *e, uint64_t limit, size_t ahead) {
    uint64_t at = e->begin;
    size_t len = ZIP_LOCAL_LEN + e->name.len;
    const uint8_t *local;
    if (at > z->dir.at || limit > z->dir.at || limit - at < len)
        return zip_fail(z, SFT_FOREIGN_AMBIGUOUS, zip_row_at(z, e) + 42, e, "expected bytes that "
                        "overlap neither another entry nor the directory");
    sft_code code = look(z, at, len, ahead, &local);
    if (code) return code;
    if (sfti_get_u32(local) != ZIP_LOCAL)
        return zip_fail(z, SFT_FOREIGN_AMBIGUOUS, at, e, "expected a local header");
    if (sfti_get_u16(local + 26) != e->name.len)
        return zip_fail(z, SFT_FOREIGN_AMBIGUOUS, at + 26, e, "expected the name of the "
                        "directory, found one of another length in the local header");
    len += sfti_get_u16(local + 28);
    if (limit - at < len)
        return zip_fail(z, SFT_FOREIGN_AMBIGUOUS, at + 28, e, "expected a local header that ends "
                        "before the next one, found them to overlap");
    code = look(z, at, len, ahead, &local);
    if (code) return code;
    const char *broken = compare_local(local, e);
    if (broken) return zip_fail(z, SFT_FOREIGN_AMBIGUOUS, at, e, broken);
    e->begin = at + len;
    return SFT_OK;
}

/* What follows an entry's data, up to the next header. */
static sft_code zip_check_end(zip_reader *z, sfti_zip_entry *e, uint64_t limit, size_t ahead,
                          uint64_t *unused) {
    uint64_t end;
    bool described = sfti_get_u16(zip_row_of(e) + 8) & ZIP_DESCRIBED;
    const uint8_t *after;
    if (!sfti_add(e->begin, e->stored, &end) || end > limit)
        return zip_fail(z, SFT_FOREIGN_AMBIGUOUS, e->begin, e, "expected data that ends before "
                        "the next entry and the directory, found them to overlap");
    if (limit == end && !described) return SFT_OK;
    size_t room = limit - end < 28 ? (size_t)(limit - end) : 28, skip = 0;
    sft_code code = look(z, end, room, ahead, &after);
    if (code) return code;
    if (described) skip = descriptor_len(after, room, e);
    if (described && skip == 0)
        return zip_fail(z, SFT_FOREIGN_AMBIGUOUS, end, e, "expected the directory's checksum "
                        "and sizes behind the data, found others");
    if (room - skip >= 4 && sfti_get_u32(after + skip) == ZIP_LOCAL)
        return zip_fail(z, SFT_FOREIGN_AMBIGUOUS, end + skip, e, "expected no entry that is not "
                        "in the directory, found one behind this");
    *unused += limit - end - skip;
    return SFT_OK;
}

#define ZIP_AHEAD 1024 /* entries of which local headers are announced at once */
#define ZIP_DESCRIPTOR_MOST 64

/* The reads of entries [i, end), each that of a header and of what precedes it: look() reads over
 * the next header with what follows an entry's data. */
static void announce_locals(const zip_reader *z, const sfti_zip *zip, size_t i) {
    sfti_announcement all = { .count = 0 };
    size_t end = zip->count - i < ZIP_AHEAD ? zip->count : i + ZIP_AHEAD;
    uint64_t done = i > 0 ? zip->entries[i].begin : 0;
    for (; i < end; i++) {
        uint64_t at = zip->entries[i].begin;
        if (at > z->dir.at) break;
        uint64_t begin = at > done + ZIP_DESCRIPTOR_MOST ? at - ZIP_DESCRIPTOR_MOST : done;
        uint64_t until = at + zip_reach(z, zip, i);
        if (until > z->dir.at) until = z->dir.at;
        if (until <= begin) continue;
        sfti_announce(&all, z->source, begin, until - begin);
        done = until;
    }
    sfti_announce_end(&all);
}

static sft_code zip_check_locals(zip_reader *z, sfti_zip *zip) {
    z->window_len = 0;
    if (zip->count > 0 && zip->entries[0].begin != 0)
        return zip_fail(z, SFT_FOREIGN_AMBIGUOUS, zip_row_at(z, zip->entries) + 42, zip->entries,
                        "expected the file to begin with the first entry of its directory");
    for (size_t i = 0; i < zip->count; i++) {
        sfti_zip_entry *e = &zip->entries[i];
        uint64_t limit = i + 1 < zip->count ? e[1].begin : z->dir.at;
        size_t ahead = zip_reach(z, zip, i);
        if (i % ZIP_AHEAD == 0 && sfti_source_expects(z->source)) announce_locals(z, zip, i);
        sft_code code = zip_check_header(z, e, limit, ahead);
        if (!code) code = zip_check_end(z, e, limit, ahead, &zip->unused);
        if (code) return code;
    }
    return SFT_OK;
}

/* ── Names ── */

static sft_span entry_name(const void *ctx, uint32_t i) {
    return ((const sfti_zip_entry *)ctx)[i].name;
}

static sft_code fail_twice(zip_reader *z, const sfti_zip_entry *e, const sfti_zip_entry *other) {
    return sfti_fail_byte(z->im->err, SFT_FOREIGN_AMBIGUOUS, zip_row_at(z, e) + ZIP_CENTRAL_LEN,
                          "expected each name once in the zip archive, found \"%.*s\" and \"%.*s\"",
                          SFTI_CLIP(other->name, 100), SFTI_CLIP(e->name, 100));
}

static sft_code zip_index_names(zip_reader *z, sfti_zip *zip) {
    if (!sfti_names_draw(&zip->names, zip->count, entry_name, zip->entries, &z->im->arena))
        return sfti_fail_memory(z->im->err, zip->count * sizeof(sfti_slot));
    for (uint32_t i = 0; i < zip->count; i++) {
        uint32_t first = sfti_names_add(&zip->names, zip->entries[i].name, i);
        if (first != i) return fail_twice(z, &zip->entries[i], &zip->entries[first]);
    }
    return SFT_OK;
}

static sft_span folded_name(const void *ctx, uint32_t i) {
    return ((const sft_span *)ctx)[i];
}

/* No two names that are one for who does not tell A from a. */
static sft_code check_folded(zip_reader *z, const sfti_zip *zip) {
    sfti_arena arena = { .alloc = z->im->arena.alloc };
    sfti_names names;
    sft_code code = SFT_OK;
    sft_span *folded = sfti_arena_array(&arena, zip->count, sizeof *folded);
    char *text = sfti_arena_array(&arena, z->dir.size, 1);
    if (!folded || !text
        || !sfti_names_begin(&names, zip->count, zip->names.seed, folded_name, folded, &arena))
        code = sfti_fail_memory(z->im->err, z->dir.size);
    for (uint32_t i = 0; !code && i < zip->count; i++) {
        sft_span name = zip->entries[i].name;
        for (size_t k = 0; k < name.len; k++) {
            char c = name.data[k];
            text[k] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
        }
        folded[i] = (sft_span){ text, name.len };
        text += name.len;
        uint32_t first = sfti_names_add(&names, folded[i], i);
        if (first != i) code = fail_twice(z, &zip->entries[i], &zip->entries[first]);
    }
    sfti_arena_free(&arena);
    return code;
}

/* The folder that all entries are in, if it is one. */
static sft_span top_folder(const sfti_zip *zip) {
    static const sft_span none = { "", 0 };
    sft_span first = zip->count > 0 ? zip->entries[0].name : none;
    const char *slash = first.len > 0 ? memchr(first.data, '/', first.len) : NULL;
    size_t len = slash ? (size_t)(slash - first.data) : 0;
    for (size_t i = 0; i < zip->count && len > 0; i++) {
        sft_span name = zip->entries[i].name;
        if (name.len <= len || memcmp(name.data, first.data, len + 1) != 0) return none;
    }
    return (sft_span){ first.data, len };
}

sft_code sfti_zip_open(sfti_import *im, const sft_source *source, sfti_zip *out) {
    sfti_arena *arena = &im->arena;
    sfti_inflater *inflater = NULL;
    zip_reader z = { .im = im, .source = source };
    memset(out, 0, sizeof *out);
    z.window = sfti_take(&arena->alloc, ZIP_WINDOW);
    if (!z.window) return sfti_fail_memory(im->err, ZIP_WINDOW);
    sft_code code = sfti_zip_find_directory(im, source, z.window, &z.dir);
    if (!code) code = zip_read_rows(&z, out);
    if (!code) code = zip_check_locals(&z, out);
    sfti_release(&arena->alloc, z.window, ZIP_WINDOW);
    if (code) return code;
    size_t kept = 0; /* folders have no bytes; nothing asks for them */
    for (size_t i = 0; i < out->count; i++)
        if (!is_folder(out->entries[i].name)) out->entries[kept++] = out->entries[i];
    out->count = kept;
    code = zip_index_names(&z, out);
    if (!code && z.has_capitals && !z.all_npy) code = check_folded(&z, out);
    if (!code && z.has_deflated) code = sfti_inflater_new(im, source, &inflater);
    for (size_t i = 0; i < out->count; i++)
        if (out->entries[i].deflated) out->entries[i].inflater = inflater;
    out->folder = top_folder(out);
    return code;
}
