/* A scan collects every error in a file (findings) and every oddity (notes). Tests: test_scan.c. */
#include "base/announce.h"
#include "base/endian.h"
#include "base/order.h"
#include "file/edited.h"
#include "file/file.h"

#include <string.h>

#define TAIL_BYTES 65557 /* a ZIP end record with the longest comment */
#define DRAIN_BYTES ((size_t)64 << 10)

/* A growing array of at most `most` items; more are dropped. */
typedef struct scan_list {
    void *items;
    size_t count, cap, most, item_size;
} scan_list;

struct sft_scan {
    sft_allocator alloc;
    sfti_arena arena;
    sfti_model model;
    sfti_header header;
    sft_level level;
    bool out_of_memory;
    sft_error error; /* the first error; code SFT_OK: the file is valid */
    scan_list findings, notes, entries;
    uint32_t *order; /* of findings, then scratch for sorting: SFTI_FINDINGS_MANY each */
};

/* ── Findings, notes and entries ─────────────────────────────────────────── */

static void list_put(sft_scan *scan, scan_list *list, const void *item) {
    if (list->count == list->most) return;
    char *items =
        sfti_grow(&scan->alloc, list->items, list->count, 1, &list->cap, list->item_size);
    if (!items) {
        scan->out_of_memory = true;
        return;
    }
    list->items = items;
    memcpy(items + list->count++ * list->item_size, item, list->item_size);
}

static const void *list_at(const scan_list *list, size_t i) {
    return i < list->count ? (const char *)list->items + i * list->item_size : NULL;
}

static void list_free(sft_scan *scan, scan_list *list) {
    sfti_release(&scan->alloc, list->items, list->cap * list->item_size);
}

static void scan_put_finding(void *ctx, const sft_error *error) {
    sft_scan *scan = ctx;
    sft_finding finding = { *error };
    list_put(scan, &scan->findings, &finding);
}

static void scan_put_note(void *ctx, const char *name, const sft_error *error) {
    sft_scan *scan = ctx;
    sft_note note = { name, *error };
    note.error.code = SFT_OK;
    list_put(scan, &scan->notes, &note);
}

static void scan_put_entry(void *ctx, const sft_scan_entry *entry) {
    sft_scan *scan = ctx;
    uint32_t at = (uint32_t)(entry->name_begin - SFTI_PREFIX); /* headers are under 2 GiB */
    list_put(scan, &scan->entries, &at);
}

/* ── A source that keeps its beginning ───────────────────────────────────── */

/* Bytes already read come from memory, so that a pipe's beginning can be read again. */
typedef struct scan_bytes {
    sft_source inner;
    uint8_t head[SFTI_HEAD_BYTES];
    size_t head_len;
    const sfti_header *header; /* the source's bytes from SFTI_PREFIX on */
} scan_bytes;

static size_t copy_overlap(const void *from, uint64_t begin, size_t from_len, uint64_t offset,
                           void *into, size_t len) {
    if (offset < begin || offset - begin >= from_len) return 0;
    size_t at = (size_t)(offset - begin), n = from_len - at < len ? from_len - at : len;
    memcpy(into, (const char *)from + at, n);
    return n;
}

static sft_code read_scan_bytes(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                                sft_error *err) {
    scan_bytes *b = ctx;
    const sfti_header *h = b->header;
    *got = copy_overlap(b->head, 0, b->head_len, offset, into, len);
    *got += copy_overlap(h->data, SFTI_PREFIX, h->len, offset + *got, (char *)into + *got,
                         len - *got);
    if (*got == len) return SFT_OK;
    size_t more = 0, want = len - *got;
    sft_code code =
        sft_source_read(&b->inner, offset + *got, (char *)into + *got, want, &more, err);
    *got += more;
    return code;
}

static const sft_source_vtable scan_bytes_source_vtable = {
    sizeof(sft_source_vtable), read_scan_bytes, NULL, NULL, NULL
};

/* A source that ends within the head has a known size, even if it is a pipe. */
static sft_code scan_bytes_begin(scan_bytes *b, sft_source inner, const sfti_header *header,
                                 sft_source *out, sft_error *err) {
    size_t want = inner.size < sizeof b->head ? (size_t)inner.size : sizeof b->head;
    b->inner = inner;
    b->header = header;
    sft_code code = sft_source_read(&inner, 0, b->head, want, &b->head_len, err);
    *out = (sft_source){ b, &scan_bytes_source_vtable, inner.size, NULL, false };
    if (b->head_len < want) out->size = b->head_len;
    return code;
}

/* ── The end of the file ─────────────────────────────────────────────────── */

typedef struct scan_tail {
    char *bytes; /* TAIL_BYTES + DRAIN_BYTES */
    size_t len;
    uint64_t begin; /* offset of bytes in the file */
} scan_tail;

/* A source of unknown size is read to its end, and its size set. */
static sft_code tail_read(sft_scan *scan, sft_source *source, scan_tail *tail, sft_error *err) {
    const sfti_header *h = &scan->header;
    if (source->size != SFT_SIZE_UNKNOWN) {
        tail->len = source->size < TAIL_BYTES ? (size_t)source->size : TAIL_BYTES;
        tail->begin = source->size - tail->len;
        return sfti_source_all(source, tail->begin, tail->bytes, tail->len, err);
    }
    size_t kept = h->len < TAIL_BYTES ? h->len : TAIL_BYTES, got;
    if (kept > 0) memcpy(tail->bytes, h->data + (h->len - kept), kept);
    tail->len = kept;
    tail->begin = SFTI_PREFIX + (h->len - kept);
    do {
        uint64_t at = tail->begin + tail->len;
        sft_code code =
            sft_source_read(source, at, tail->bytes + tail->len, DRAIN_BYTES, &got, err);
        if (code) return code;
        tail->len += got;
        if (tail->len > TAIL_BYTES) {
            size_t extra = tail->len - TAIL_BYTES;
            memmove(tail->bytes, tail->bytes + extra, TAIL_BYTES);
            tail->len = TAIL_BYTES;
            tail->begin += extra;
        }
    } while (got == DRAIN_BYTES);
    source->size = tail->begin + tail->len;
    return SFT_OK;
}

/* ── Notes ───────────────────────────────────────────────────────────────── */

static void note_at(sft_scan *scan, const char *name, uint64_t offset, const char *text) {
    sft_error error;
    sfti_error_clear(&error);
    error.offset = offset;
    sfti_error_text(&error, "%s", text);
    scan_put_note(scan, name, &error);
}

static void note_unaligned(sft_scan *scan) {
    const sft_tensor *first = NULL;
    size_t count = 0, all = scan->model.tensors.count;
    for (size_t i = 0; i < all; i++) {
        const sft_tensor *t = sfti_model_tensor(&scan->model, i);
        if (t->begin == t->end || sft_tensor_aligned(t)) continue;
        if (!first) first = t;
        count++;
    }
    if (!first) return;
    sft_error error;
    sfti_error_clear(&error);
    error.offset = first->offset;
    sfti_error_tensor(&error, first->name);
    sfti_error_text(&error, "expected data aligned for its dtype, found %zu of %zu tensors that "
                    "are not; the first is %s at offset %llu", count, all,
                    sft_dtype_describe(first->dtype)->name, (unsigned long long)first->offset);
    scan_put_note(scan, "unaligned", &error);
}

/* Header lengths within the limit whose bytes are the magic of another format. goes_on: the magic
 * counts only if a byte other than 0 follows, as pickle and zlib require. */
static const struct polyglot_row {
    const char *magic;
    size_t len;
    bool goes_on;
    const char *text;
} polyglot_rows[] = {
    { "PK\x03\x04", 4, false, "the header length is also the magic of ZIP" },
    { "\x1F\x8B\x08", 3, false, "the header length is also the magic of gzip" },
    { "\xFF\xD8\xFF", 3, false, "the header length is also the magic of JPEG" },
    { "MZ", 2, false, "the header length is also the magic of a Windows program" },
    { "BM", 2, false, "the header length is also the magic of a BMP image" },
    { "#!", 2, false, "the header length is also the first line of a script" },
    { "BZh", 3, false, "the header length is also the magic of bzip2" },
    { "GIF", 3, false, "the header length is also the magic of GIF" },
    { "\x78\x9C", 2, true, "the header length is also the magic of zlib" },
    { "\x78\xDA", 2, true, "the header length is also the magic of zlib" },
    { "\x80\x02", 2, true, "the header length is also the magic of a pickle" },
    { "\x80\x03", 2, true, "the header length is also the magic of a pickle" },
    { "\x80\x04", 2, true, "the header length is also the magic of a pickle" },
    { "\x80\x05", 2, true, "the header length is also the magic of a pickle" },
};

static void note_polyglots(sft_scan *scan, const scan_bytes *b, const scan_tail *tail) {
    static const char pdf[] = "%PDF-";
    for (size_t i = 0; i < sizeof polyglot_rows / sizeof *polyglot_rows; i++) {
        const struct polyglot_row *row = &polyglot_rows[i];
        if (memcmp(b->head, row->magic, row->len) != 0) continue;
        if (row->goes_on && b->head[row->len] == 0) continue;
        note_at(scan, "polyglot_magic", 0, row->text);
    }
    size_t at = 0, end = b->head_len < 1024 ? b->head_len : 1024;
    while (at + 5 <= end && memcmp(b->head + at, pdf, 5) != 0) at++;
    if (at + 5 <= end)
        note_at(scan, "polyglot_pdf", at, "the file may be opened as a PDF document");
    if (b->head_len >= 262 && memcmp(b->head + 257, "ustar", 5) == 0)
        note_at(scan, "polyglot_tar", 257, "the file may be unpacked as a tar archive");
    /* A ZIP end record is real if its comment and its directory lie inside the file. */
    for (at = tail->len; at-- > 0;) {
        const char *p = tail->bytes + at;
        if (tail->len - at < 22 || memcmp(p, "PK\x05\x06", 4) != 0) continue;
        uint32_t directory = sfti_get_u32(p + 12);
        if (sfti_get_u16(p + 20) > tail->len - at - 22) continue;
        if (directory != UINT32_MAX && directory > tail->begin + at) continue;
        note_at(scan, "polyglot_zip", tail->begin + at,
                "the file ends like a ZIP archive and may be unpacked as one");
        return;
    }
}

/* ── Scanning ────────────────────────────────────────────────────────────── */

/* Reads the header's length and its text. An error in either is a finding: *framed is then false
 * and the code SFT_OK. */
static sft_code scan_header(sft_scan *scan, sft_source *source, const sfti_open *how,
                            bool *framed, sft_error *err) {
    sft_error *verdict = &scan->error;
    sft_code code = sfti_header_load(source, how, false, &scan->header, verdict);
    if (code == SFT_HEADER_TRUNCATED && source->size == SFT_SIZE_UNKNOWN)
        source->size = SFTI_PREFIX + scan->header.len;
    *framed = !code;
    if (!code) return SFT_OK;
    /* Is it a failure of the scan itself, rather than an error in the file? */
    sft_class cls = sft_code_describe(code)->cls;
    bool of_file = cls == SFT_CLASS_INVALID || cls == SFT_CLASS_UNSUPPORTED ||
                   cls == SFT_CLASS_LIMIT;
    if (!of_file || code == SFT_OUT_OF_MEMORY) {
        if (err) *err = *verdict;
        return code;
    }
    scan_put_finding(scan, verdict);
    return SFT_OK;
}

static sft_code scan_model(sft_scan *scan, const sft_source *source, const sfti_open *how,
                           sft_error *err) {
    sfti_watch watch = { scan, scan_put_finding, scan_put_note, scan_put_entry };
    sft_span text = { scan->header.data ? scan->header.data : "", scan->header.len };
    uint64_t size = how->options.header_only ? SFT_SIZE_UNKNOWN : source->size, seed[2];
    sfti_seed_draw(scan, seed);
    sft_code code = sfti_model_read(text, size, &how->limits, seed, &watch, &scan->arena,
                                    &scan->model, &scan->error);
    if (code == SFT_OUT_OF_MEMORY) {
        if (err) *err = scan->error;
        return code;
    }
    if (!code) note_unaligned(scan);
    return SFT_OK;
}

/* Names the format the file really has, in the verdict and in the finding behind it. */
static void scan_refine(sft_scan *scan, const scan_bytes *b, const sft_source *source) {
    sft_error *verdict = &scan->error;
    sft_code code = verdict->code;
    uint64_t offset = verdict->offset;
    sfti_evidence evidence = { b->head, b->head_len, source->size, source };
    if (!code) return;
    sfti_diagnose(&evidence, verdict);
    for (size_t i = 0; i < scan->findings.count; i++) {
        sft_finding *finding = (sft_finding *)scan->findings.items + i;
        if (finding->error.code != code || finding->error.offset != offset) continue;
        finding->error = *verdict;
        return;
    }
}

static int by_finding_offset(const void *ctx, uint32_t a, uint32_t b) {
    const sft_finding *findings = ctx;
    uint64_t left = findings[a].error.offset, right = findings[b].error.offset;
    return (left > right) - (left < right);
}

static sft_level level_of(const sft_error *error) {
    return sft_code_describe(error->code)->level;
}

static void drop_level(sft_error *error) {
    if (error->hint == SFT_HINT_LEVEL_COMPAT) error->hint = SFT_HINT_BROKEN_WRITER;
}

/* If every level refuses one finding, no hint offers another level. */
static void scan_levels(sft_scan *scan) {
    sft_finding *findings = scan->findings.items;
    bool never = scan->error.code && level_of(&scan->error) == SFT_LEVEL_COMPAT;
    for (size_t i = 0; i < scan->findings.count; i++)
        never = never || level_of(&findings[i].error) == SFT_LEVEL_COMPAT;
    if (!never) return;
    drop_level(&scan->error);
    for (size_t i = 0; i < scan->findings.count; i++) drop_level(&findings[i].error);
}

static bool promises_repair(sft_hint hint) {
    return hint == SFT_HINT_REPAIR || hint == SFT_HINT_REPAIR_PADDING;
}

static void drop_promise(sft_error *error) {
    if (!promises_repair(error->hint)) return;
    error->hint = sft_code_describe(error->code)->hint;
    if (promises_repair(error->hint)) error->hint = SFT_HINT_NONE;
}

/* Repair rewrites the whole file: if one finding cannot be repaired, no hint offers a repair. */
static void scan_promise(sft_scan *scan, uint64_t size) {
    if (!scan->error.code) return;
    if (sfti_repairs_all(sfti_scan_model(scan), &scan->error, scan->findings.items,
                         scan->findings.count, size)) {
        /* A hint that names another remedy stays. */
        sft_hint *hint = &scan->error.hint;
        if (*hint == SFT_HINT_NONE || *hint == SFT_HINT_BROKEN_WRITER) *hint = SFT_HINT_REPAIR;
        return;
    }
    drop_promise(&scan->error);
    for (size_t i = 0; i < scan->findings.count; i++)
        drop_promise(&((sft_finding *)scan->findings.items + i)->error);
}

static sft_code scan_inside(sft_scan *scan, sft_source *source, scan_bytes *b, scan_tail *tail,
                            const sfti_open *how, sft_error *err) {
    bool framed;
    sft_code code = scan_header(scan, source, how, &framed, err);
    bool is_slow = sfti_source_expects(&b->inner); /* its end is not worth another read */
    if (!code && framed && !is_slow) code = tail_read(scan, source, tail, err);
    if (!code && framed) code = scan_model(scan, source, how, err);
    if (code) return code;
    scan_refine(scan, b, source);
    bool foreign = scan->error.code >= SFT_FOUND_GIT_LFS && scan->error.code <= SFT_FOUND_INDEX;
    if (framed && !foreign) {
        if (scan->header.len % 8 != 0) {
            sft_error error;
            sfti_error_clear(&error);
            error.offset = 0;
            sfti_error_text(&error, "expected a header length that is a multiple of 8, found %zu",
                            scan->header.len);
            scan_put_note(scan, "header_unpadded", &error);
        }
        note_polyglots(scan, b, tail);
    }

    /* By offset; findings without one (SFT_NO_OFFSET) come last. */
    size_t count = scan->findings.count;
    scan->order = sfti_take(&scan->alloc, 2 * SFTI_FINDINGS_MANY * sizeof *scan->order);
    if (!scan->order || scan->out_of_memory) return sfti_fail_memory(err, sizeof *scan);
    for (uint32_t i = 0; i < count; i++) scan->order[i] = i;
    sfti_sort(scan->order, scan->order + SFTI_FINDINGS_MANY, count, by_finding_offset,
              scan->findings.items);
    scan_levels(scan);
    scan_promise(scan, source->size);
    return SFT_OK;
}

static sft_code scan_settled(sft_source inner, const sfti_open *how, sft_scan **out,
                             sft_error *err) {
    const sft_allocator *alloc = &how->alloc;
    size_t cap = sizeof(scan_bytes) + TAIL_BYTES + DRAIN_BYTES;
    sft_code code = SFT_OK;
    sft_source source;
    scan_bytes *b = NULL;
    sft_scan *scan = sfti_take(alloc, sizeof *scan);
    if (!scan) {
        code = sfti_fail_memory(err, sizeof *scan);
    } else {
        *scan = (sft_scan){ .alloc = *alloc, .arena = { .alloc = *alloc },
                            .level = how->limits.level,
                            .findings = { NULL, 0, 0, SFTI_FINDINGS_MANY, sizeof(sft_finding) },
                            .notes = { NULL, 0, 0, SFTI_FINDINGS_MANY, sizeof(sft_note) },
                            .entries = { NULL, 0, 0, SIZE_MAX, sizeof(uint32_t) } };
        b = sfti_take(alloc, cap);
        if (!b) code = sfti_fail_memory(err, cap);
    }
    if (!code) {
        memset(b, 0, sizeof *b);
        scan_tail tail = { (char *)(b + 1), 0, 0 };
        code = scan_bytes_begin(b, inner, &scan->header, &source, err);
        if (!code) code = scan_inside(scan, &source, b, &tail, how, err);
    }
    sfti_release(alloc, b, cap);
    sft_source_close(&inner);
    if (code) sft_scan_close(scan);
    else *out = scan;
    return code;
}

sft_code sfti_scan_check(const sft_scan *scan, const char *path, const os_info *info,
                         bool *foreign, sft_error *err) {
    static const sft_span none = { NULL, 0 };
    const sfti_header *h = &scan->header;
    bool valid = !scan->error.code;
    sft_span header = { h->data ? h->data : "", h->len };
    return sfti_file_edited(path, info, valid ? header : none, !valid, &scan->alloc, foreign,
                            err);
}

/* If an edit of the file was interrupted, that is the verdict. */
static sft_code scan_edited(const char *path, const os_info *info, sft_scan **scan,
                            sft_error *err) {
    sft_error found;
    bool foreign = false;
    sft_code code = sfti_scan_check(*scan, path, info, &foreign, &found);
    if (foreign)
        note_at(*scan, "foreign_journal", SFT_NO_OFFSET,
                "expected a journal of the file's owner or none, found one of a user who may not "
                "write to the file; it is no evidence of an edit");
    if (!code) return SFT_OK;
    if (code == SFT_EDIT_INTERRUPTED) {
        (*scan)->error = found;
        return SFT_OK;
    }
    if (err) *err = found;
    sft_scan_close(*scan);
    *scan = NULL;
    return code;
}

sft_code sft_scan_open(const char *path, const sft_open_options *options, sft_scan **out,
                       sft_error *err) {
    sfti_open how;
    os_info info;
    sft_source source;
    if (!path || !out)
        return sfti_misuse(err, "expected a path and a place for the scan, found NULL");
    *out = NULL;
    sft_code code = sfti_open_settle(path, options, &how, err);
    if (!code) code = sfti_source_open(path, &how.options, &source, NULL, &info, err);
    if (code) return code;
    code = scan_settled(source, &how, out, err);
    return !code && info.kind == OS_FILE ? scan_edited(path, &info, out, err) : code;
}

sft_code sft_scan_open_source(sft_source source, const sft_open_options *options, sft_scan **out,
                              sft_error *err) {
    sfti_open how;
    sft_code code = SFT_OK;
    if (out) *out = NULL;
    if (!out || !sfti_source_usable(&source))
        code = sfti_misuse(err, "expected a source and a place for the scan, found NULL");
    if (!code) code = sfti_open_settle(NULL, options, &how, err);
    if (!code) return scan_settled(source, &how, out, err);
    sft_source_close(&source);
    return code;
}

void sft_scan_close(sft_scan *scan) {
    if (!scan) return;
    sft_allocator alloc = scan->alloc;
    list_free(scan, &scan->findings);
    list_free(scan, &scan->notes);
    list_free(scan, &scan->entries);
    sfti_release(&alloc, scan->order, 2 * SFTI_FINDINGS_MANY * sizeof *scan->order);
    sfti_release(&alloc, scan->header.data, scan->header.cap);
    sfti_arena_free(&scan->arena);
    sfti_release(&alloc, scan, sizeof *scan);
}

/* ── Results ─────────────────────────────────────────────────────────────── */

const sft_error *sft_scan_error(const sft_scan *scan) {
    return scan->error.code ? &scan->error : NULL;
}

size_t sft_scan_finding_count(const sft_scan *scan) {
    return scan->findings.count;
}

const sft_finding *sft_scan_finding_at(const sft_scan *scan, size_t i) {
    return i < scan->findings.count ? list_at(&scan->findings, scan->order[i]) : NULL;
}

size_t sft_scan_note_count(const sft_scan *scan) {
    return scan->notes.count;
}

const sft_note *sft_scan_note_at(const sft_scan *scan, size_t i) {
    return list_at(&scan->notes, i);
}

size_t sft_scan_entry_count(const sft_scan *scan) {
    return scan->entries.count;
}

sft_scan_entry sft_scan_entry_at(const sft_scan *scan, size_t i) {
    static const sft_scan_entry none = { .name = { NULL, 0 } };
    const uint32_t *at = list_at(&scan->entries, i);
    return at ? sfti_entry_spelled(scan->model.text, *at) : none;
}

const sfti_model *sfti_scan_model(const sft_scan *scan) {
    return &scan->model;
}

sft_level sft_scan_level(const sft_scan *scan) {
    return scan->level;
}
