/* What a file that failed to open really is. Tests: test_diagnose.c. */
#include "base/checked.h"
#include "base/endian.h"
#include "base/json.h"
#include "file/file.h"

#include <string.h>

/* ── Looking at the first bytes ──────────────────────────────────────────── */

static bool head_has_at(const sfti_evidence *e, size_t at, const char *bytes, size_t len) {
    return at <= e->head_len && len <= e->head_len - at && memcmp(e->head + at, bytes, len) == 0;
}

/* at is inside the head, or its end. */
static bool head_word_at(const sfti_evidence *e, size_t at, const char *word) {
    size_t len = strlen(word);
    if (len > e->head_len - at) return false;
    for (size_t i = 0; i < len; i++) {
        uint8_t c = e->head[at + i];
        if ((char)(c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c) != word[i]) return false;
    }
    return true;
}

/* Where a word (lower case) first stands, or SIZE_MAX. */
static size_t head_find(const sfti_evidence *e, const char *word) {
    for (size_t at = 0; at < e->head_len; at++)
        if (head_word_at(e, at, word)) return at;
    return SIZE_MAX;
}

static bool is_blank_byte(uint8_t c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

/* First byte that is no white space; a byte order mark counts as such. */
static size_t head_text_at(const sfti_evidence *e) {
    size_t at = head_has_at(e, 0, "\xEF\xBB\xBF", 3) ? 3 : 0;
    while (at < e->head_len && is_blank_byte(e->head[at])) at++;
    return at;
}

/* Digits after a word, 0 if there are none. */
static uint64_t head_number_after(const sfti_evidence *e, const char *word) {
    size_t at = head_find(e, word);
    uint64_t value = 0;
    if (at == SIZE_MAX) return 0;
    at += strlen(word);
    for (; at < e->head_len && e->head[at] >= '0' && e->head[at] <= '9'; at++)
        if (!sfti_mul(value, 10, &value) || !sfti_add(value, e->head[at] - '0', &value))
            return 0;
    return value;
}

/* ── Other formats, most telling first ───────────────────────────────────── */

static bool looks_like_xet(const sfti_evidence *e) {
    return head_word_at(e, 0, "# xet version");
}

static bool looks_like_html(const sfti_evidence *e) {
    size_t at = head_text_at(e);
    if (head_word_at(e, at, "<!doctype html") || head_word_at(e, at, "<html")) return true;
    if (head_word_at(e, at, "<head") || head_word_at(e, at, "<body")) return true;
    return (head_word_at(e, at, "<!--") || head_word_at(e, at, "<?xml")) &&
           head_find(e, "<html") != SIZE_MAX;
}

/* The name in the first local header, or another near it: torch writes data.pkl first. */
static bool looks_like_torch_zip(const sfti_evidence *e) {
    return head_has_at(e, 0, "PK\x03\x04", 4) && head_find(e, "data.pkl") != SIZE_MAX;
}

/* The name in the first local header is that of an array: NumPy writes nothing else. */
static bool looks_like_npz(const sfti_evidence *e) {
    if (!head_has_at(e, 0, "PK\x03\x04", 4) || e->head_len < 30) return false;
    size_t len = (size_t)e->head[26] | (size_t)e->head[27] << 8;
    return len > 4 && head_has_at(e, 30 + len - 4, ".npy", 4);
}

static bool looks_like_pickle(const sfti_evidence *e) {
    return e->head_len >= 2 && e->head[0] == 0x80 && e->head[1] >= 2 && e->head[1] <= 5;
}

static bool looks_like_index(const sfti_evidence *e) {
    size_t at = head_text_at(e);
    return head_has_at(e, at, "{", 1) && head_find(e, "\"weight_map\"") != SIZE_MAX;
}

/* A row matches by its bytes at `at`, or by its function. */
static const struct foreign_row {
    sft_code code;
    const char *found;
    size_t at, len;
    const char *magic;
    bool (*matches)(const sfti_evidence *e);
} foreign_rows[] = {
    { SFT_FOUND_GIT_LFS, "text", 0, 23, "version https://git-lfs", NULL },
    { SFT_FOUND_XET, "text", 0, 0, NULL, looks_like_xet },
    { SFT_FOUND_HTML, "text", 0, 0, NULL, looks_like_html },
    { SFT_FOUND_TORCH, "\"PK\"", 0, 0, NULL, looks_like_torch_zip },
    { SFT_FOUND_NPY, "\"PK\"", 0, 0, NULL, looks_like_npz },
    { SFT_FOUND_ZIP, "\"PK\"", 0, 4, "PK\x03\x04", NULL },
    { SFT_FOUND_ZIP, "\"PK\"", 0, 4, "PK\x05\x06", NULL },
    { SFT_FOUND_ZIP, "\"PK\"", 0, 4, "PK\x07\x08", NULL },
    { SFT_FOUND_TORCH, "bytes 80 02 8a 0a", 0, 14,
      "\x80\x02\x8A\x0A\x6C\xFC\x9C\x46\xF9\x20\x6A\xA8\x50\x19", NULL },
    { SFT_FOUND_NPY, "byte 0x93 and \"NUMPY\"", 0, 6, "\x93NUMPY", NULL },
    { SFT_FOUND_GGUF, "\"GGUF\"", 0, 4, "GGUF", NULL },
    { SFT_FOUND_HDF5, "byte 0x89 and \"HDF\"", 0, 8, "\x89HDF\r\n\x1A\n", NULL },
    { SFT_FOUND_HDF5, "byte 0x89 and \"HDF\" at 512", 512, 8, "\x89HDF\r\n\x1A\n", NULL },
    { SFT_FOUND_HDF5, "byte 0x89 and \"HDF\" at 1024", 1024, 8, "\x89HDF\r\n\x1A\n", NULL },
    { SFT_FOUND_HDF5, "byte 0x89 and \"HDF\" at 2048", 2048, 8, "\x89HDF\r\n\x1A\n", NULL },
    { SFT_FOUND_ZSTD, "bytes 28 b5 2f fd", 0, 4, "\x28\xB5\x2F\xFD", NULL },
    { SFT_FOUND_GZIP, "bytes 1f 8b", 0, 3, "\x1F\x8B\x08", NULL },
    { SFT_FOUND_INDEX, "JSON text", 0, 0, NULL, looks_like_index },
    { SFT_FOUND_PICKLE, "a pickle's protocol byte", 0, 0, NULL, looks_like_pickle },
};

/* ── Words ───────────────────────────────────────────────────────────────── */

static void say_foreign(const sfti_evidence *e, const struct foreign_row *row,
                        sft_error *error) {
    static const char *const units[] = { "bytes", "KB", "MB", "GB", "TB", "PB", "EB" };
    const char *what = sft_code_describe(row->code)->sentence;
    uint64_t elsewhere = 0;
    if (row->code == SFT_FOUND_GIT_LFS) elsewhere = head_number_after(e, "\nsize ");
    if (row->code == SFT_FOUND_XET) elsewhere = head_number_after(e, "filesize = ");
    /* 4.2 GB, without floating point. */
    size_t unit = 0;
    uint64_t step = 1;
    while (elsewhere / step >= 1000) { /* 2^64 are 18 EB */
        step *= 1000;
        unit++;
    }
    unsigned long long whole = elsewhere / step, tenth = unit ? elsewhere % step / (step / 10) : 0;
    if (elsewhere == 0)
        sfti_fail_byte(error, row->code, 0, "expected a header length, found %s: %s", row->found,
                       what);
    else if (elsewhere < 1000)
        sfti_fail_byte(error, row->code, 0,
                       "expected a header length, found %s: %s (%llu bytes elsewhere)", row->found,
                       what, whole);
    else
        sfti_fail_byte(error, row->code, 0,
                       "expected a header length, found %s: %s (%llu.%llu %s elsewhere)",
                       row->found, what, whole, tenth, units[unit]);
}

/* Nothing known: still say what kind of bytes these are. The code stays. */
static void say_unknown(const sfti_evidence *e, sft_error *error) {
    size_t text = 0, zeros = 0;
    while (text < e->head_len && text < 40 && e->head[text] < 0x7F &&
           (e->head[text] >= 0x20 || is_blank_byte(e->head[text])))
        text++;
    while (zeros < e->head_len && e->head[zeros] == 0) zeros++;
    if (e->size == 0) {
        sfti_error_text(error, "expected a header length, found an empty file");
        error->hint = SFT_HINT_DOWNLOAD_AGAIN;
    } else if (zeros == e->head_len && zeros >= SFTI_PREFIX) {
        sfti_error_text(error, "expected a header length, found %zu zero bytes: space was "
                        "allocated for this file but nothing was written", e->head_len);
        error->hint = SFT_HINT_DOWNLOAD_AGAIN;
    } else if (text >= SFTI_PREFIX) {
        sfti_error_text(error, "expected a header length, found text: %.*s%s", (int)text,
                        (const char *)e->head, text < e->head_len ? "..." : "");
        error->hint = SFT_HINT_READ_AS_TEXT;
    }
}

/* ── A safetensors file that is damaged ──────────────────────────────────── */

static void say_cut(sft_error *error, uint64_t size, uint64_t expected, const char *least) {
    if (size == SFT_SIZE_UNKNOWN || size >= expected) return;
    uint64_t missing = expected - size;
    uint64_t part = missing, whole = expected;
    while (whole > UINT64_MAX / 1000) {
        part /= 2;
        whole /= 2;
    }
    unsigned long long share = part * 1000 / whole; /* tenths of a percent */
    sfti_error_text(error,
                    "expected %s%llu bytes, found %llu: the download is cut short by %s%llu "
                    "byte%s (%s%llu.%llu %%)",
                    least, (unsigned long long)expected, (unsigned long long)size, least,
                    (unsigned long long)missing, missing == 1 ? "" : "s", share ? "" : "under ",
                    share ? share / 10 : 0, share ? share % 10 : 1);
}

/* Where the object that begins at byte `at` of the head ends, if it does and something other than
 * white space follows it; else 0. A header cut short has no such end. */
static size_t object_end(const sfti_evidence *e, size_t at) {
    sfti_json json;
    sfti_json_begin(&json, (const char *)e->head + at, e->head_len - at);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT || sfti_json_skip(&json) != SFTI_JSON_OBJECT_END)
        return 0;
    size_t end = at + json.start + 1;
    for (at = end; at < e->head_len; at++)
        if (!is_blank_byte(e->head[at])) return end;
    return 0;
}

/* The file ends before the header that its first 8 bytes announce: it is cut short, unless what
 * is there shows that they announce none. */
static void say_short_header(const sfti_evidence *e, sft_error *error) {
    unsigned long long n = sfti_get_u64(e->head);
    size_t at = SFTI_PREFIX;
    if (e->size == SFT_SIZE_UNKNOWN || n <= e->size - SFTI_PREFIX) return;
    while (at < e->head_len && is_blank_byte(e->head[at])) at++;
    if (at < e->head_len && e->head[at] != '{') {
        sfti_error_text(error, "expected a header of %llu bytes that begins with \"{\", found byte "
                        "0x%02x", n, e->head[at]);
        error->offset = at;
        return;
    }
    size_t end = object_end(e, at);
    if (end == 0) {
        say_cut(error, e->size, SFTI_PREFIX + n, "at least ");
        return;
    }
    sfti_error_text(error, "expected a header of %llu bytes, found its end after %zu: the header "
                    "length is wrong", n, end - SFTI_PREFIX);
    error->offset = end;
}

/* How many of the bytes from `at` on are zero; `most` are looked at, *looked says how many. */
static size_t count_zeros(const sfti_evidence *e, uint64_t at, uint64_t most, size_t *looked) {
    uint8_t bytes[1024];
    size_t zeros = 0;
    *looked = 0;
    size_t want = most < sizeof bytes ? (size_t)most : sizeof bytes;
    if (sft_source_read(e->source, at, bytes, want, looked, NULL)) *looked = 0;
    while (zeros < *looked && bytes[zeros] == 0) zeros++;
    return zeros;
}

static void say_padding(const sfti_evidence *e, uint64_t n, sft_error *error) {
    size_t looked;
    uint64_t end = SFTI_PREFIX + n;
    if (error->offset >= end) return;
    uint64_t left = end - error->offset;
    size_t zeros = count_zeros(e, error->offset, left, &looked);
    if (zeros == 0) return;
    sfti_error_text(error, "expected spaces after the header object, found %llu bytes%s of NUL "
                    "padding", (unsigned long long)(zeros == looked ? left : zeros),
                    zeros == looked && looked < left ? " that begin with 1024" : "");
}

static void say_trailing(const sfti_evidence *e, sft_error *error) {
    size_t looked;
    if (e->size == SFT_SIZE_UNKNOWN || error->offset >= e->size) return;
    uint64_t extra = e->size - error->offset;
    size_t zeros = count_zeros(e, error->offset, extra, &looked);
    const char *kind = looked == 0       ? ""
                       : zeros == extra  ? ", all zero"
                       : zeros == looked ? ", the first 1024 of them zero"
                                         : ", not all zero";
    sfti_error_text(error, "expected the end of the file at byte %llu, found %llu more byte%s%s",
                    (unsigned long long)error->offset, (unsigned long long)extra,
                    extra == 1 ? "" : "s", kind);
}

/* ── All together ────────────────────────────────────────────────────────── */

/* Errors about the bytes of the file; others tell their own story. */
static bool worth_diagnosis(sft_code code) {
    return code >= SFT_HEADER_TOO_SMALL && code <= SFT_DATA_TRAILING;
}

void sfti_diagnose(const sfti_evidence *evidence, sft_error *error) {
    const uint8_t *head = evidence->head;
    size_t len = evidence->head_len, at = SFTI_PREFIX;
    if (!worth_diagnosis(error->code)) return;
    /* A damaged safetensors file: the first 8 bytes are a length and an object follows. */
    uint64_t n = len > SFTI_PREFIX ? sfti_get_u64(head) : 0;
    while (at < len && is_blank_byte(head[at])) at++;
    if (n >= 2 && n <= SFT_MAX_HEADER_BYTES && at < len && at - SFTI_PREFIX < n
        && head[at] == '{') {
        if (error->code == SFT_HEADER_TRUNCATED) say_short_header(evidence, error);
        if (error->code == SFT_DATA_TRUNCATED) say_cut(error, evidence->size, error->needed, "");
        if (error->code == SFT_JSON_TRAILING) say_padding(evidence, n, error);
        if (error->code == SFT_DATA_TRAILING) say_trailing(evidence, error);
        return;
    }
    const struct foreign_row *row = NULL;
    for (size_t i = 0; i < sizeof foreign_rows / sizeof *foreign_rows && !row; i++) {
        const struct foreign_row *one = &foreign_rows[i];
        if (one->matches ? one->matches(evidence)
                         : head_has_at(evidence, one->at, one->magic, one->len))
            row = one;
    }
    /* The frame may be a plausible length that no object confirms. */
    if (row) say_foreign(evidence, row, error);
    else if (error->code == SFT_HEADER_TRUNCATED && len >= SFTI_PREFIX)
        say_short_header(evidence, error);
    else if (error->code <= SFT_HEADER_NOT_OBJECT) say_unknown(evidence, error);
}

void sft_diagnose(const sft_source *source, sft_error *error) {
    uint8_t head[SFTI_HEAD_BYTES];
    size_t want = sizeof head, got = 0;
    if (!source || !sfti_source_usable(source) || !error || !worth_diagnosis(error->code)) return;
    if (source->size < want) want = (size_t)source->size;
    if (sft_source_read(source, 0, head, want, &got, NULL)) return;
    sfti_evidence evidence = { head, got, source->size, source };
    sfti_diagnose(&evidence, error);
}
