/* PyTorch from 1.6 on: a zip archive. Tests: test_import_torch.c. */
#include "base/announce.h"
#include "formats/torch/torch.h"
#include "formats/zip/zip.h"

#include <string.h>

#define NAME_SIZE 1024
/* A deflated pickle may have these bytes, or that many times its own: deflate can make 1,032 bytes
 * of one, each of them an opcode that makes a value. */
#define INFLATED_BYTES ((uint64_t)16 << 20)
#define INFLATED_TIMES 64

/* "FOLDER/name", or NULL: there is no such entry. */
static const sfti_zip_entry *torch_entry(const sfti_zip *zip, const char *name, sft_span key) {
    char text[NAME_SIZE];
    size_t len = zip->folder.len, more = strlen(name);
    if (len + 1 + more + key.len > sizeof text) return NULL;
    memcpy(text, zip->folder.data, len);
    if (len > 0) text[len++] = '/';
    memcpy(text + len, name, more);
    memcpy(text + len + more, key.data, key.len);
    return sfti_zip_find(zip, (sft_span){ text, len + more + key.len });
}

static const sfti_zip_entry *torch_record(const sfti_zip *zip, const char *name) {
    return torch_entry(zip, name, (sft_span){ "", 0 });
}

/* ── What it is ── */

/* Small records of text. */
static sft_code torch_text(sfti_import *im, const sfti_zip_entry *entry, sft_span *out) {
    uint8_t *bytes;
    if (entry->size > 64)
        return sfti_fail_byte(im->err, SFT_FOREIGN_SYNTAX, entry->begin,
                              "expected at most 64 bytes of %.*s, found %llu",
                              SFTI_CLIP(entry->name, 100), (unsigned long long)entry->size);
    sft_code code = sfti_zip_load(im, im->input, entry, &bytes);
    if (code) return code;
    *out = (sft_span){ (const char *)bytes, (size_t)entry->size };
    return SFT_OK;
}

/* PyTorch reads 1 to 10, and nothing without a version. */
static sft_code check_version(sfti_import *im, const sfti_zip *zip) {
    const sfti_zip_entry *entry = torch_record(zip, "version");
    sft_span text = { "", 0 };
    if (!entry)
        return sfti_fail_byte(im->err, SFT_FOREIGN_SYNTAX, 0,
                              "expected a record \"version\", found none");
    sft_code code = torch_text(im, entry, &text);
    if (code) return code;
    unsigned version = 0;
    if (text.len > 0 && text.data[text.len - 1] == '\n') text.len--;
    for (size_t i = 0; i < text.len; i++) {
        unsigned digit = (unsigned char)text.data[i] - (unsigned)'0';
        version = digit > 9 || version > 1000 ? 10000 : version * 10 + digit;
    }
    if (version >= 1 && version <= 10) return SFT_OK;
    return sfti_fail_byte(im->err, SFT_FOREIGN_KIND, entry->begin,
                          "expected version 1 to 10 of the format, found \"%.*s\"",
                          SFTI_CLIP(text, 20));
}

static sft_code read_byteorder(sfti_import *im, const sfti_zip *zip, bool *big) {
    const sfti_zip_entry *entry = torch_record(zip, "byteorder");
    sft_span text = { "little", 6 };
    sft_code code = entry ? torch_text(im, entry, &text) : SFT_OK;
    if (code) return code;
    *big = sfti_span_is(text, "big");
    if (*big || sfti_span_is(text, "little")) return SFT_OK;
    return sfti_fail_byte(im->err, SFT_FOREIGN_SYNTAX, entry->begin,
                          "expected \"little\" or \"big\" as byte order, found \"%.*s\"",
                          SFTI_CLIP(text, 20));
}

/* ── Records ── */

/* An archive, and those of its records that are storages. */
typedef struct torch_archive {
    const sfti_zip *zip;
    uint64_t used, used_bytes;
} torch_archive;

static sft_code locate_record(sfti_storages *storages, sfti_storage *storage) {
    sfti_import *im = storages->im;
    torch_archive *archive = storages->ctx;
    const sfti_zip_entry *entry = torch_entry(archive->zip, "data/", storage->key);
    storage->source = im->input;
    if (!entry && storage->bytes == 0) return SFT_OK;
    if (!entry)
        return sfti_fail_byte(im->err, SFT_FOREIGN_SYNTAX, storage->at,
                              "expected a record \"data/%.*s\", found none",
                              SFTI_CLIP(storage->key, 100));
    if (entry->size != storage->bytes)
        return sfti_fail_byte(im->err, SFT_FOREIGN_SIZE, entry->begin,
                              "expected %llu bytes in \"%.*s\", found %llu",
                              (unsigned long long)storage->bytes, SFTI_CLIP(entry->name, 100),
                              (unsigned long long)entry->size);
    archive->used++;
    archive->used_bytes += entry->size;
    return sfti_zip_source(im, im->input, entry, &storage->source, &storage->begin);
}

static bool is_under(const sfti_zip *zip, const sfti_zip_entry *entry, const char *folder) {
    size_t at = zip->folder.len + (zip->folder.len > 0), len = strlen(folder);
    return entry->name.len > at + len && memcmp(entry->name.data + at, folder, len) == 0;
}

static uint64_t count_records(const sfti_zip *zip, const char *folder, uint64_t *bytes) {
    uint64_t count = 0;
    *bytes = 0;
    for (size_t i = 0; i < zip->count; i++) {
        const sfti_zip_entry *entry = &zip->entries[i];
        if (!is_under(zip, entry, folder)) continue;
        count++;
        *bytes += entry->size;
    }
    return count;
}

/* Tensors that TorchScript's code has as constants: those of a frozen model are all there. What
 * is left in the other records are storages of tensors that are refused, or of none. */
static sft_code report_records(sfti_import *im, const torch_archive *archive) {
    uint64_t bytes, count = count_records(archive->zip, "constants/", &bytes);
    sft_code code = SFT_OK;
    if (count > 0)
        code = sfti_import_leave(im, SFT_IMPORT_LEFT_BRANCH, sft_span_cstr("constants"), count,
                                 bytes, "tensors that are constants of the code");
    count = count_records(archive->zip, "data/", &bytes) - archive->used;
    bytes -= archive->used_bytes;
    if (count == 0 || code) return code;
    return sfti_import_leave(im, SFT_IMPORT_LEFT_RECORD, (sft_span){ "", 0 }, count, bytes,
                             "records that no tensor that is read refers to");
}

#define LARGE_PICKLE ((uint64_t)1 << 20)
#define RESERVE_TIMES 7 /* bytes of values for one of a pickle of names and small tuples */
#define RESERVE_MOST ((uint64_t)48 << 20)

static sft_code read_pickle_entry(sfti_import *im, const sfti_zip_entry *entry,
                                  sfti_arena *values, const sft_source **source,
                                  sfti_pickle *out) {
    sfti_pickle_input input = { 0 };
    uint8_t *bytes;
    if (entry->deflated && entry->size > INFLATED_BYTES
        && entry->size / INFLATED_TIMES > entry->stored)
        return sfti_fail_byte(im->err, SFT_FOREIGN_TABLE, entry->begin, "expected a data.pkl of at "
                              "most %d times its %llu deflated bytes, found %llu", INFLATED_TIMES,
                              (unsigned long long)entry->stored, (unsigned long long)entry->size);
    sft_code code = sfti_zip_load(im, im->input, entry, &bytes);
    if (!code) code = sfti_zip_source(im, im->input, entry, source, &input.begin);
    if (code) return code;
    input.source = *source;
    input.end = input.begin + entry->size;
    input.bytes = bytes;
    /* One block for the values of a large pickle: the system gives large blocks in large pages, and
     * a fault for each small one takes longer than the values. What is not used is not there. */
    uint64_t room = RESERVE_MOST;
    if (entry->size < RESERVE_MOST / RESERVE_TIMES) room = entry->size * RESERVE_TIMES;
    if (entry->size >= LARGE_PICKLE) (void)sfti_arena_reserve(values, (size_t)room);
    code = sfti_pickle_read(&input, values, out, im->err);
    if (code || out->end == input.end) return code;
    return sfti_import_leave(im, SFT_IMPORT_LEFT_NOTE, (sft_span){ "", 0 }, 1,
                             input.end - out->end, "bytes after the end of data.pkl's pickle");
}

sft_code sfti_read_torch_zip(sfti_import *im, const sfti_zip *zip) {
    const sfti_zip_entry *entry = torch_record(zip, "data.pkl");
    const sft_source *source;
    sfti_pickle pickle;
    sfti_arena values = { .alloc = im->arena.alloc };
    torch_archive archive = { .zip = zip };
    sfti_storages storages = { .locate = locate_record, .ctx = &archive };
    if (!entry)
        return sfti_fail_byte(im->err, SFT_FOREIGN_KIND, 0,
                              "expected a record \"data.pkl\", found none");
    if (torch_record(zip, "constants.pkl")) im->format = SFT_IMPORT_TORCHSCRIPT;
    static const char *const names[] = { "version", "byteorder", "data.pkl" };
    sfti_announcement all = { .count = 0 }; /* the small records, which are read at once */
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const sfti_zip_entry *small = torch_record(zip, names[i]);
        if (small) sfti_announce(&all, im->input, small->begin, small->stored);
    }
    sfti_announce_end(&all);
    sft_code code = check_version(im, zip);
    if (!code) code = read_byteorder(im, zip, &storages.big_endian);
    if (!code) code = read_pickle_entry(im, entry, &values, &source, &pickle);
    if (!code) code = sfti_storages_begin(&storages, im, pickle.outside_count);
    if (!code) code = sfti_torch_import(im, &pickle, source, &storages);
    if (!code) code = report_records(im, &archive);
    sfti_arena_free(&values);
    return code;
}
