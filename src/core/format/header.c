#include "format/header.h"

#include "base/endian.h"
#include "base/error.h"
#include "base/never.h"
#include "base/utf8.h"

#include <string.h>

/* ── The official writer's spelling, without white space or escapes ── */

static inline bool plain_word(const char **p, const char *end, const char *word, size_t len) {
    if ((size_t)(end - *p) < len || memcmp(*p, word, len) != 0) return false;
    *p += len;
    return true;
}

static const uint32_t power10[] = { 1,      10,      100,      1000,     10000,
                                    100000, 1000000, 10000000, 100000000 };

/* Up to 19 digits, see forbid_plain. */
static inline bool plain_uint(const char **p, const char *end, uint64_t *out) {
    const char *at = *p;
    uint64_t value = 0, more;
    unsigned count = 8;
    if (end - at >= 16) {
        at += count = sfti_lex_digits8(sfti_get_u64(at), &value);
        if (count == 8 && (count = sfti_lex_digits8(sfti_get_u64(at), &more)) > 0) {
            value = value * power10[count] + more;
            at += count;
        }
    }
    if (count == 8)
        while (sfti_lex_digit(*at)) value = value * 10 + (uint64_t)(*at++ - '0');
    if (at == *p || at - *p > 19 || (**p == '0' && at - *p > 1)) return false;
    *p = at;
    *out = value;
    return true;
}

/* Whether p begins with a word of 1 to 16 bytes; 16 bytes can be read at both, and p has
 * more than those. */
static inline bool plain_same(const char *p, const char *end, sft_span word) {
    if (word.len == 0 || word.len > 16 || end - p <= 16) return false;
#if defined(__SSE2__)
    __m128i a = _mm_loadu_si128((const __m128i *)(const void *)p);
    __m128i b = _mm_loadu_si128((const __m128i *)(const void *)word.data);
    unsigned unlike = ~(unsigned)_mm_movemask_epi8(_mm_cmpeq_epi8(a, b));
    return (unlike & ((1U << word.len) - 1)) == 0;
#else
    return memcmp(p, word.data, word.len) == 0;
#endif
}

/* The entry's begin is spelled like the end before it, as a rule. What was read before
 * stands before p, so 16 bytes can be read there too. */
static inline bool plain_begin(const sfti_parser *r, const char **p, const char *end,
                               uint64_t *out) {
    size_t len = r->last_end_text.len;
    if (plain_same(*p, end, r->last_end_text) && (*p)[len] == ',') {
        *p += len;
        *out = r->last_end;
        return true;
    }
    return plain_uint(p, end, out);
}

static inline bool plain_end(sfti_parser *r, const char **p, const char *end, uint64_t *out) {
    r->last_end_text.data = *p;
    r->last_end_text.len = 0;
    if (!plain_uint(p, end, out)) return false;
    r->last_end_text.len = (size_t)(*p - r->last_end_text.data);
    r->last_end = *out;
    return true;
}

static inline bool plain_dtype(sfti_parser *r, const char **p, const char *end) {
    if (plain_same(*p, end, r->last_dtype_text)) {
        *p += r->last_dtype_text.len;
        return true;
    }
    const char *quote = memchr(*p, '"', (size_t)(end - *p < 16 ? end - *p : 16));
    sft_span text = { *p, quote ? (size_t)(quote - *p) : 0 };
    if (!quote || !sft_dtype_parse(text, &r->last_dtype)) return false;
    r->last_dtype_text.data = *p;
    r->last_dtype_text.len = text.len + 1; /* with its quote */
    *p = quote + 1;
    return true;
}

/* "[1,2]" into dims; at most SFT_MAX_RANK of them. */
static inline bool plain_shape(const char **p, const char *end, uint64_t *dims,
                               uint32_t *rank) {
    *rank = 0;
    if (**p == ']') {
        ++*p;
        return true;
    }
    do {
        if (*rank == SFT_MAX_RANK || !plain_uint(p, end, &dims[*rank])) return false;
        ++*rank;
    } while (*(*p)++ == ',');
    return (*p)[-1] == ']';
}

/* True when the value at the cursor has that spelling; nothing is kept otherwise. */
static bool plain_entry(sfti_parser *r, uint64_t *dims, sft_tensor *t) {
    const char *p = r->lex.at, *end = r->lex.end;
    if (!plain_word(&p, end, "{\"dtype\":\"", 10) || !plain_dtype(r, &p, end)) return false;
    t->dtype = r->last_dtype;
    if (!plain_word(&p, end, ",\"shape\":[", 10) || !plain_shape(&p, end, dims, &t->rank))
        return false;
    if (!plain_word(&p, end, ",\"data_offsets\":[", 17) || !plain_begin(r, &p, end, &t->begin))
        return false;
    if (!plain_word(&p, end, ",", 1) || !plain_end(r, &p, end, &t->end)) return false;
    if (!plain_word(&p, end, "]}", 2)) return false;
    r->lex.at = p;
    return true;
}

static bool keep_plain(sfti_parser *r, sft_span name, const sft_tensor *t,
                       const uint64_t *dims) {
    sft_tensor *out = sfti_new_tensor(r);
    size_t bytes = t->rank * sizeof *dims;
    if (!out) return false;
    uint64_t *shape = bytes ? sfti_arena_take(r->arena, bytes) : NULL;
    if (bytes && !shape) return sfti_report_memory(r, bytes);
    if (bytes) memcpy(shape, dims, bytes);
    *out = *t;
    out->shape = shape;
    sfti_keep(r, out, name);
    return true;
}

/* ── The top level ── */

static bool lex_failed(sfti_parser *r) {
    sfti_report_at(r, r->lex.code, r->lex.at, r->lex.why);
    r->fatal = true;
    return false;
}

/* C0, DEL, and C1: 0xC2 and a byte under 0xA0. */
static bool name_has_control(sft_span name) {
    uint8_t before = 0;
    for (size_t i = 0; i < name.len; i++) {
        uint8_t b = (uint8_t)name.data[i];
        if (b < 0x20 || b == 0x7F || (before == 0xC2 && b < 0xA0)) return true;
        before = b;
    }
    return false;
}

static bool check_name(sfti_parser *r, sft_span name, const char *at) {
    uint64_t most = r->limits->max_name_bytes;
    if (most && name.len > most)
        return sfti_report_entry(r, SFT_NAME_TOO_LONG, at, name, "a shorter name");
    if (r->limits->level < SFT_LEVEL_STRICT && !r->watch) return true;
    if (!name_has_control(name)) return true;
    if (r->limits->level == SFT_LEVEL_STRICT)
        return sfti_report_entry(r, SFT_STRICT_NAME, at, name,
                                 "a name without control characters");
    sfti_remark(r, "name_control", at, &name, "the name holds control characters");
    return true;
}

static bool read_tensor(sfti_parser *r, sft_span name, sft_span raw) {
    uint64_t dims[SFT_MAX_RANK];
    sft_tensor plain;
    if (!check_name(r, name, raw.data - 1)) return false;
    if (!r->watch && !r->limits->slow && plain_entry(r, dims, &plain))
        return keep_plain(r, name, &plain, dims);
    return sfti_entry_read(r, name, raw);
}

static bool is_metadata(sft_span name) {
    return name.len == 12 && memcmp(name.data, "__metadata__", 12) == 0;
}

/* "key": value, the cursor on the key. */
static bool read_member(sfti_parser *r) {
    sft_span raw, name;
    bool escaped;
    if (sfti_lex_peek(&r->lex) != '"') {
        sfti_lex_fail(&r->lex, SFT_JSON_SYNTAX, "a name in quotes");
        return lex_failed(r);
    }
    if (!sfti_lex_string(&r->lex, &raw, &escaped)) return lex_failed(r);
    name = sfti_decoded(r, raw, escaped);
    if (!name.data) return false;
    sfti_lex_space(&r->lex);
    if (sfti_lex_peek(&r->lex) != ':') {
        sfti_lex_fail(&r->lex, SFT_JSON_SYNTAX, "':' after a name");
        return lex_failed(r);
    }
    r->lex.at++;
    sfti_lex_space(&r->lex);
    return is_metadata(name) ? sfti_metadata_read(r) : read_tensor(r, name, raw);
}

/* Members until the closing brace, the cursor after the opening one. */
static bool read_members(sfti_parser *r) {
    sfti_lex_space(&r->lex);
    if (sfti_lex_peek(&r->lex) == '}') {
        r->lex.at++;
        return true;
    }
    for (;;) {
        if (!read_member(r) && r->fatal) return false;
        sfti_lex_space(&r->lex);
        char c = sfti_lex_peek(&r->lex);
        if (c != ',' && c != '}') {
            sfti_lex_fail(&r->lex, SFT_JSON_SYNTAX, "',' or '}'");
            return lex_failed(r);
        }
        r->lex.at++;
        if (c == '}') return true;
        sfti_lex_space(&r->lex);
    }
}

static bool only_spaces(const char *p, const char *end) {
    while (p < end && *p == ' ') p++;
    return p == end;
}

/* NULs and white space alone are what a repair takes for padding. */
static bool only_padding(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n' || *p == '\0')) p++;
    return p == end;
}

static bool report_trailing(sfti_parser *r) {
    sft_error error;
    sfti_fail_at(&error, SFT_JSON_TRAILING, SFTI_PREFIX, r->text,
                 (size_t)(r->lex.at - r->text.data), "the end of the header");
    if (only_padding(r->lex.at, r->lex.end))
        error.hint = SFT_HINT_REPAIR_PADDING;
    return sfti_report(r, &error);
}

static bool read_rest(sfti_parser *r) {
    const char *at = r->lex.at;
    sfti_lex_space(&r->lex);
    if (r->lex.at < r->lex.end) return report_trailing(r);
    if (r->limits->level == SFT_LEVEL_STRICT && !only_spaces(at, r->lex.end))
        return sfti_report_at(r, SFT_STRICT_PADDING, at, "spaces only");
    return true;
}

static bool read_object(sfti_parser *r) {
    sfti_lex_space(&r->lex);
    if (r->lex.at > r->text.data && r->limits->level == SFT_LEVEL_STRICT
        && !sfti_report_at(r, SFT_STRICT_FIRST_BYTE, r->text.data, "'{'"))
        return false;
    char c = sfti_lex_peek(&r->lex);
    if (c == '{') {
        r->lex.at++;
        return read_members(r) && read_rest(r);
    }
    /* Another JSON value is the wrong thing; anything else is no JSON. */
    bool value = c == '[' || c == '"' || c == '-' || sfti_lex_digit(c) || c == 't' || c == 'f'
                 || c == 'n';
    return sfti_report_at(r, value ? SFT_HEADER_NOT_OBJECT : SFT_JSON_SYNTAX, r->lex.at,
                          "a JSON object");
}

/* `"":["U8",[],[0,0]],` is the shortest entry there is. */
#define SHORTEST_ENTRY 19

static bool make_chunks(sfti_parser *r) {
    size_t count;
    r->cap = r->text.len / SHORTEST_ENTRY + 1;
    count = r->cap / SFTI_CHUNK + 1;
    r->model->tensors.chunk = sfti_arena_take(r->arena, count * sizeof(sft_tensor *));
    if (!r->model->tensors.chunk) return sfti_report_memory(r, count * sizeof(sft_tensor *));
    return true;
}

/* The official spelling is read without a bound at each digit: none is read past the last
 * byte if that is a brace or white space. A header that ends otherwise is broken anyway. */
static void forbid_plain(sfti_parser *r, sfti_limits *limits) {
    char last = r->text.len > 0 ? r->text.data[r->text.len - 1] : '\0';
    if (last == '}' || last == ' ' || last == '\n' || last == '\t' || last == '\r') return;
    *limits = *r->limits;
    limits->slow = true;
    r->limits = limits;
}

sft_code sfti_header_read(sfti_parser *r) {
    sfti_limits limits;
    size_t bad = sfti_utf8_check(r->text.data, r->text.len);
    if (bad < r->text.len) {
        sft_error error;
        sfti_fail(&error, SFT_HEADER_UTF8, SFTI_PREFIX + bad, "expected UTF-8, found byte 0x%02x",
                  (unsigned char)r->text.data[bad]);
        sfti_report(r, &error);
        return r->first;
    }
    forbid_plain(r, &limits);
    r->lex.at = r->text.data;
    r->lex.end = r->text.data + r->text.len;
    if (make_chunks(r)) read_object(r);
    return r->first;
}
