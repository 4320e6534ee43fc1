/* NumPy's arrays: .npy, and .npz, a zip archive of them. */
#include "base/announce.h"
#include "base/crc32.h"
#include "base/endian.h"
#include "formats/arrays/npy_head.h"
#include "formats/zip/zip.h"

#include <string.h>

#define NPY_HEADER_MOST 65536
#define NPY_HEAD 256 /* bytes that are read first: of most arrays more than the header */

/* An array as its header describes it. */
typedef struct npy_array {
    sft_dtype dtype;
    bool opaque;
    uint8_t swap;
    bool fortran;
    uint32_t rank;
    uint64_t shape[SFT_MAX_RANK];
    sft_code refusal; /* SFT_OK, or why there is no dtype for it */
    const char *what; /* it is then */
    sft_span descr;
    bool records; /* the header was not read beyond its list of fields */
} npy_array;

/* ── The header: a Python dictionary of three things ── */

typedef struct npy_text {
    sft_error *err;
    const char *begin, *at, *end;
    uint64_t base; /* of `begin` in its source */
} npy_text;

static sft_code npy_expected(const npy_text *t, const char *what) {
    sft_span text = { t->begin, (size_t)(t->end - t->begin) };
    return sfti_fail_at(t->err, SFT_FOREIGN_SYNTAX, t->base, text, (size_t)(t->at - t->begin),
                        what);
}

static void npy_space(npy_text *t) {
    while (t->at < t->end && (*t->at == ' ' || *t->at == '\t' || *t->at == '\r' || *t->at == '\n'))
        t->at++;
}

static bool npy_take(npy_text *t, const char *word) {
    size_t len = strlen(word);
    npy_space(t);
    if ((size_t)(t->end - t->at) < len || memcmp(t->at, word, len) != 0) return false;
    t->at += len;
    return true;
}

/* Without escapes: neither keys nor types need them. */
static bool npy_string(npy_text *t, sft_span *out) {
    npy_space(t);
    if (t->at >= t->end || (*t->at != '\'' && *t->at != '"')) return false;
    const char *begin = t->at + 1, *quote = memchr(begin, *t->at, (size_t)(t->end - begin));
    if (!quote || memchr(begin, '\\', (size_t)(quote - begin))) return false;
    *out = (sft_span){ begin, (size_t)(quote - begin) };
    t->at = quote + 1;
    return true;
}

static bool npy_number(npy_text *t, uint64_t *out) {
    npy_space(t);
    const char *begin = t->at;
    *out = 0;
    for (; t->at < t->end && *t->at >= '0' && *t->at <= '9'; t->at++) {
        uint64_t digit = (uint64_t)(*t->at - '0');
        if (!sfti_mul(*out, 10, out) || !sfti_add(*out, digit, out)) return false;
    }
    size_t digits = (size_t)(t->at - begin);
    if (t->at < t->end && *t->at == 'L') t->at++; /* of Python 2 */
    return digits == 1 || (digits > 1 && *begin != '0');
}

static sft_code npy_shape(npy_text *t, npy_array *out) {
    if (!npy_take(t, "(")) return npy_expected(t, "a tuple of sizes");
    for (out->rank = 0; !npy_take(t, ")"); out->rank++) {
        if (out->rank == SFT_MAX_RANK) return npy_expected(t, "at most 64 dimensions");
        if (!npy_number(t, &out->shape[out->rank])) return npy_expected(t, "a size");
        bool comma = npy_take(t, ",");
        if (!comma && out->rank == 0) return npy_expected(t, "\",\"");
        npy_space(t);
        if (!comma && (t->at >= t->end || *t->at != ')')) return npy_expected(t, "\",\" or \")\"");
    }
    return SFT_OK;
}

/* ── The type: a byte order, a kind and a width ── */

typedef struct npy_refusal {
    char kind;
    sft_code code;
    const char *what;
} npy_refusal;

static const npy_refusal npy_refusals[] = {
    { 'O', SFT_FOREIGN_OBJECT, "Python objects (a pickle, which is not read)" },
    { 'U', SFT_FOREIGN_DTYPE, "text" },
    { 'S', SFT_FOREIGN_DTYPE, "text" },
    { 'a', SFT_FOREIGN_DTYPE, "text" },
    { 'M', SFT_FOREIGN_DTYPE, "dates" },
    { 'm', SFT_FOREIGN_DTYPE, "durations" },
    { 'V', SFT_FOREIGN_DTYPE, "bytes without a type" },
};

static void npy_refuse(npy_array *out, sft_code code, const char *what) {
    out->refusal = code;
    out->what = what;
}

static void npy_dtype(sft_span descr, npy_array *out) {
    out->descr = descr;
    npy_refuse(out, SFT_FOREIGN_DTYPE, "elements of another type");
    if (descr.len < 2 || !memchr("<>=|", descr.data[0], 4)) return;
    sft_span code = { descr.data + 1, descr.len - 1 };
    /* "f1" is float8_e5m2 of ml_dtypes. */
    bool f1 = sft_span_equal(code, sft_span_cstr("f1"));
    const sfti_npy_type *type = sfti_npy_type_named(f1 ? sft_span_cstr("V1") : code);
    if (type) {
        bool big = descr.data[0] == '>' && type->swap > 0;
        if (big && type->opaque) return;
        out->dtype = type->dtype;
        out->opaque = type->opaque;
        out->swap = big ? type->swap : 0;
        npy_refuse(out, SFT_OK, NULL);
        return;
    }
    for (size_t i = 0; i < sizeof npy_refusals / sizeof *npy_refusals; i++)
        if (npy_refusals[i].kind == code.data[0])
            npy_refuse(out, npy_refusals[i].code, npy_refusals[i].what);
}

/* One member; *seen gets its bit. After a list of fields nothing more is read. */
static sft_code npy_member(npy_text *t, npy_array *out, unsigned *seen) {
    static const char *const keys[] = { "descr", "fortran_order", "shape" };
    sft_span key, descr;
    unsigned which = 0;
    npy_space(t);
    const char *at = t->at;
    if (!npy_string(t, &key)) return npy_expected(t, "a key");
    while (which < 3 && !sft_span_equal(key, sft_span_cstr(keys[which]))) which++;
    if (which == 3 || (*seen & 1u << which)) {
        t->at = at;
        return npy_expected(t, "the keys descr, fortran_order and shape, each once");
    }
    *seen |= 1u << which;
    if (!npy_take(t, ":")) return npy_expected(t, "\":\"");
    if (which == 2) return npy_shape(t, out);
    if (which == 1) {
        out->fortran = npy_take(t, "True");
        return out->fortran || npy_take(t, "False") ? SFT_OK : npy_expected(t, "True or False");
    }
    if (npy_string(t, &descr)) {
        npy_dtype(descr, out);
        return SFT_OK;
    }
    if (t->at >= t->end || (*t->at != '[' && *t->at != '('))
        return npy_expected(t, "a type as text");
    npy_refuse(out, SFT_FOREIGN_DTYPE, "records of several fields");
    out->records = true;
    out->descr = (sft_span){ t->at, (size_t)(t->end - t->at) };
    return SFT_OK;
}

static sft_code npy_header(npy_text *t, npy_array *out) {
    unsigned seen = 0;
    memset(out, 0, sizeof *out);
    if (!npy_take(t, "{")) return npy_expected(t, "\"{\"");
    while (!npy_take(t, "}")) {
        sft_code code = npy_member(t, out, &seen);
        if (code || out->records) return code;
        npy_space(t);
        if (!npy_take(t, ",") && (t->at >= t->end || *t->at != '}'))
            return npy_expected(t, "\",\" or \"}\"");
    }
    npy_space(t);
    if (t->at < t->end) return npy_expected(t, "spaces up to the end of the header");
    return seen == 7 ? SFT_OK : npy_expected(t, "descr, fortran_order and shape before the end");
}

/* ── The array ── */

/* Where an array's bytes are. */
typedef struct npy_place {
    const sft_source *source;
    uint64_t begin, len;
    const uint32_t *crc32; /* of all of it; or NULL */
    const sfti_crc32_table *table;
    const char *note;
} npy_place;

/* The bytes up to the data: head holds the first NPY_HEAD of them. */
static sft_code npy_load(sfti_import *im, const npy_place *p, uint8_t *head, const uint8_t **out,
                         uint64_t *text, uint64_t *data) {
    size_t len = p->len < NPY_HEAD ? (size_t)p->len : NPY_HEAD;
    sft_error *err = im->err;
    memset(head, 0, NPY_HEAD);
    sft_code code = sfti_import_read(im, p->source, p->begin, head, len);
    if (code) return code;
    if (memcmp(head, "\x93NUMPY", 6) != 0)
        return sfti_fail_byte(err, SFT_FOREIGN_SYNTAX, p->begin,
                              "expected an array that begins with \\x93NUMPY, found other bytes");
    if (head[6] < 1 || head[6] > 3)
        return sfti_fail_byte(err, SFT_FOREIGN_KIND, p->begin + 6,
                              "expected version 1, 2 or 3 of the .npy format, found %u", head[6]);
    *text = head[6] == 1 ? 10 : 12;
    *data = *text + (head[6] == 1 ? sfti_get_u16(head + 8) : sfti_get_u32(head + 8));
    if (*data > p->len)
        return sfti_fail_byte(err, SFT_FOREIGN_TRUNCATED, p->begin + p->len,
                              "expected a header of %llu bytes, found the end after %llu",
                              (unsigned long long)*data, (unsigned long long)p->len);
    if (*data > NPY_HEADER_MOST)
        return sfti_fail_byte(err, SFT_FOREIGN_TABLE, p->begin + 8,
                              "expected a header of at most 64 KiB, found %llu bytes",
                              (unsigned long long)*data);
    *out = head;
    if (*data <= NPY_HEAD) return SFT_OK;
    uint8_t *whole;
    code = sfti_import_load(im, p->source, p->begin, *data, &whole);
    *out = whole;
    return code;
}

static sft_code npy_item(sfti_import *im, const npy_array *a, sfti_item *item) {
    sfti_arena *arena = &im->arena;
    uint64_t *sizes = sfti_arena_array(arena, a->rank * (a->fortran ? 2 : 1), sizeof *sizes);
    uint64_t stride = 1;
    if (!sizes) return sfti_fail_memory(im->err, a->rank);
    memcpy(sizes, a->shape, a->rank * sizeof *sizes);
    item->shape = sizes;
    item->rank = a->rank;
    item->dtype = a->dtype;
    item->swap = a->swap;
    item->opaque = a->opaque;
    if (!a->fortran) return SFT_OK;
    item->strides = sizes + a->rank;
    for (uint32_t d = 0; d < a->rank; d++) {
        sizes[a->rank + d] = stride;
        if (!sfti_mul(stride, a->shape[d], &stride)) stride = UINT64_MAX; /* and is refused */
    }
    return SFT_OK;
}

static sft_code npy_add(sfti_import *im, const npy_place *p, sft_span name) {
    uint8_t buffer[NPY_HEAD];
    const uint8_t *head = buffer;
    uint64_t text = 0, data = 0, bytes;
    npy_array array;
    sft_code code = npy_load(im, p, buffer, &head, &text, &data);
    if (!code) {
        npy_text t = { im->err, (const char *)head + text, (const char *)head + text,
                       (const char *)head + data, p->begin + text };
        code = npy_header(&t, &array);
    }
    if (code) {
        if (im->err) sfti_error_tensor(im->err, name);
        return code;
    }
    if (array.refusal)
        return sfti_import_refuse(im, name, p->len - data, array.refusal, p->begin + text,
                                  "expected an array of numbers that safetensors has, found %s "
                                  "\"%.*s\"", array.what, SFTI_CLIP(array.descr, 40));
    sfti_item item = { .name = name, .source = p->source, .begin = p->begin + data,
                       .stored = p->len - data, .at = p->begin, .note = p->note };
    code = npy_item(im, &array, &item);
    if (!code && p->crc32) {
        /* The checksum of the data follows from that of the whole and that of what precedes it. */
        uint32_t before = sfti_crc32_add(p->table, 0, head, (size_t)data);
        code = sfti_import_crc32(im, p->source, item.begin, item.stored,
                                 *p->crc32 ^ sfti_crc32_shift(before, item.stored), false);
    }
    if (!code) code = sfti_import_add(im, &item);
    if (code || sft_shape_size(item.dtype, item.shape, item.rank, NULL, &bytes, NULL)) return code;
    if (bytes >= item.stored) return SFT_OK;
    return sfti_import_leave(im, SFT_IMPORT_LEFT_RECORD, name, 1, item.stored - bytes,
                             "bytes after the array"); /* which numpy does not read */
}

/* ── The formats ── */

static sft_span without_npy(sft_span name) {
    if (name.len >= 4 && memcmp(name.data + name.len - 4, ".npy", 4) == 0) name.len -= 4;
    return name;
}

bool sfti_is_npy(sfti_import *im, const uint8_t *head, size_t len) {
    (void)im;
    return len >= 6 && memcmp(head, "\x93NUMPY", 6) == 0;
}

sft_code sfti_read_npy(sfti_import *im) {
    const sft_source *source = im->input;
    npy_place place = { .source = source, .len = source->size };
    sft_span name = without_npy(im->name);
    return npy_add(im, &place, name.len > 0 ? name : sft_span_cstr("array"));
}

sft_code sfti_read_npz(sfti_import *im, const sfti_zip *zip) {
    const sft_source *archive = im->input;
    sfti_crc32_table table;
    sfti_crc32_begin(&table, false);
    /* Where the arrays' headers are; of deflated ones, what has to be inflated for them. */
    sfti_announcement all = { .count = 0 };
    for (size_t i = 0; i < zip->count; i++) {
        const sfti_zip_entry *entry = &zip->entries[i];
        uint64_t most = entry->deflated ? (uint64_t)64 << 10 : NPY_HEAD;
        sfti_announce(&all, archive, entry->begin, entry->stored < most ? entry->stored : most);
    }
    sfti_announce_end(&all);
    for (size_t i = 0; i < zip->count; i++) {
        const sfti_zip_entry *entry = &zip->entries[i];
        npy_place place = { NULL, 0, entry->size, &entry->crc32, &table,
                            entry->deflated ? "deflated" : NULL };
        sft_code code = sfti_zip_bytes(im, archive, entry, &place.source, &place.begin);
        if (!code) code = npy_add(im, &place, without_npy(entry->name));
        if (code) return code;
    }
    return SFT_OK;
}
