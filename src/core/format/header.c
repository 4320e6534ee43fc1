/* Reads a header's text: the official spelling directly, the rest through entry.c. Tests:
 * test_header.c. */
#include "format/header.h"

#include "base/checked.h"
#include "base/endian.h"
#include "base/error.h"
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

/* Up to 19 digits, see sfti_header_read. */
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

/* True when the value at the cursor has that spelling; nothing is kept otherwise. */
static bool plain_entry(sfti_parser *r, uint64_t *dims, sft_tensor *t) {
    const char *p = r->lex.at, *end = r->lex.end;
    uint32_t rank = 0;

    if (!plain_word(&p, end, "{\"dtype\":\"", 10)) return false;
    if (plain_same(p, end, r->last_dtype_text)) {
        p += r->last_dtype_text.len;
    } else {
        const char *quote = memchr(p, '"', (size_t)(end - p < 16 ? end - p : 16));
        sft_span text = { p, quote ? (size_t)(quote - p) : 0 };
        if (!quote || !sft_dtype_parse(text, &r->last_dtype)) return false;
        r->last_dtype_text = (sft_span){ p, text.len + 1 }; /* with its quote */
        p = quote + 1;
    }
    t->dtype = r->last_dtype;

    if (!plain_word(&p, end, ",\"shape\":[", 10)) return false;
    if (*p == ']') {
        p++;
    } else {
        do {
            if (rank == SFT_MAX_RANK || !plain_uint(&p, end, &dims[rank])) return false;
            rank++;
        } while (*p++ == ',');
        if (p[-1] != ']') return false;
    }
    t->rank = rank;

    /* The entry's begin is spelled like the end before it, as a rule. What was read before
     * stands before p, so 16 bytes can be read there too. */
    if (!plain_word(&p, end, ",\"data_offsets\":[", 17)) return false;
    size_t last = r->last_end_text.len;
    if (plain_same(p, end, r->last_end_text) && p[last] == ',') {
        p += last;
        t->begin = r->last_end;
    } else if (!plain_uint(&p, end, &t->begin)) {
        return false;
    }
    if (!plain_word(&p, end, ",", 1)) return false;
    r->last_end_text = (sft_span){ p, 0 };
    if (!plain_uint(&p, end, &t->end)) return false;
    r->last_end_text.len = (size_t)(p - r->last_end_text.data);
    r->last_end = t->end;
    if (!plain_word(&p, end, "]}", 2)) return false;
    r->lex.at = p;
    return true;
}

/* ── The top level ── */

/* SFT_OK: the lexer has said what is wrong. Always false. */
static bool lex_failed(sfti_parser *r, sft_code code, const char *expected) {
    if (code) sfti_lex_fail(&r->lex, code, expected);
    sfti_report_at(r, r->lex.code, r->lex.at, NULL, r->lex.why);
    r->fatal = true;
    return false;
}

static bool check_name(sfti_parser *r, sft_span name, const char *at) {
    uint64_t most = r->limits->max_name_bytes;
    if (most && name.len > most)
        return sfti_report_at(r, SFT_NAME_TOO_LONG, at, &name, "a shorter name");
    if (r->limits->level < SFT_LEVEL_STRICT && !r->watch) return true;
    if (!sfti_utf8_has_control(name)) return true;
    if (r->limits->level == SFT_LEVEL_STRICT)
        return sfti_report_at(r, SFT_STRICT_NAME, at, &name,
                              "a name without control characters");
    sfti_remark(r, "name_control", at, &name, "the name holds control characters");
    return true;
}

static bool read_tensor(sfti_parser *r, sft_span name, sft_span raw) {
    uint64_t dims[SFT_MAX_RANK];
    sft_tensor plain;
    if (!check_name(r, name, raw.data - 1)) return false;
    if (r->watch || r->limits->slow || !plain_entry(r, dims, &plain))
        return sfti_entry_read(r, name, raw);
    size_t bytes = plain.rank * sizeof *dims;
    uint64_t *shape = bytes ? sfti_arena_take(r->arena, bytes) : NULL;
    if (bytes && !shape) return sfti_report_memory(r, bytes);
    if (bytes) memcpy(shape, dims, bytes);
    plain.shape = shape;
    return sfti_keep(r, &plain, name);
}

/* Members until the closing brace, the cursor after the opening one. */
static bool read_members(sfti_parser *r) {
    sfti_lex *lex = &r->lex;
    sft_span raw, name;
    bool escaped;
    sfti_lex_space(lex);
    if (sfti_lex_peek(lex) == '}') {
        lex->at++;
        return true;
    }
    for (;;) {
        if (sfti_lex_peek(lex) != '"') return lex_failed(r, SFT_JSON_SYNTAX, "a name in quotes");
        if (!sfti_lex_string(lex, &raw, &escaped)) return lex_failed(r, SFT_OK, NULL);
        name = escaped ? sfti_decoded(r, raw) : raw;
        if (!name.data) return false;
        sfti_lex_space(lex);
        if (sfti_lex_peek(lex) != ':')
            return lex_failed(r, SFT_JSON_SYNTAX, "':' after a name");
        lex->at++;
        sfti_lex_space(lex);
        bool is_metadata = name.len == 12 && memcmp(name.data, "__metadata__", 12) == 0;
        bool fine = is_metadata ? sfti_metadata_read(r) : read_tensor(r, name, raw);
        if (!fine && r->fatal) return false;
        sfti_lex_space(lex);
        char c = sfti_lex_peek(lex);
        if (c != ',' && c != '}') return lex_failed(r, SFT_JSON_SYNTAX, "',' or '}'");
        lex->at++;
        if (c == '}') return true;
        sfti_lex_space(lex);
    }
}

/* NULs and white space alone are what a repair takes for padding. */
static bool report_trailing(sfti_parser *r) {
    const char *p = r->lex.at, *end = r->lex.end;
    sft_error error;
    sfti_fail_at(&error, SFT_JSON_TRAILING, SFTI_PREFIX, r->text, (size_t)(p - r->text.data),
                 "the end of the header");
    while (p < end && (*p == ' ' || *p == '\t' || *p == '\r' || *p == '\n' || *p == '\0')) p++;
    if (p == end) error.hint = SFT_HINT_REPAIR_PADDING;
    return sfti_report(r, &error);
}

/* `"":["U8",[],[0,0]],` is the shortest entry there is. */
#define SHORTEST_ENTRY 19

sft_code sfti_header_read(sfti_parser *r) {
    sfti_lex *lex = &r->lex;
    const char *text = r->text.data;
    size_t len = r->text.len, bad = sfti_utf8_check(text, len);
    bool strict = r->limits->level == SFT_LEVEL_STRICT;
    if (bad < len) {
        sft_error error;
        sfti_fail_byte(&error, SFT_HEADER_UTF8, SFTI_PREFIX + bad,
                       "expected UTF-8, found byte 0x%02x", (unsigned char)text[bad]);
        sfti_report(r, &error);
        return r->first;
    }

    /* The official spelling is read without a bound at each digit: none is read past the last
     * byte if that is a brace or white space. A header that ends otherwise is broken anyway. */
    char last = len > 0 ? text[len - 1] : '\0';
    sfti_limits slow = *r->limits;
    slow.slow = true;
    if (last != '}' && last != ' ' && last != '\n' && last != '\t' && last != '\r')
        r->limits = &slow;

    r->cap = len / SHORTEST_ENTRY + 1;
    size_t chunks = r->cap / SFTI_CHUNK + 1;
    r->model->tensors.chunk = sfti_arena_array(r->arena, chunks, sizeof(sft_tensor *));
    if (!r->model->tensors.chunk) {
        sfti_report_memory(r, chunks * sizeof(sft_tensor *));
        return r->first;
    }

    lex->at = text;
    lex->end = text + len;
    sfti_lex_space(lex);
    if (lex->at > text && strict && !sfti_report_at(r, SFT_STRICT_FIRST_BYTE, text, NULL, "'{'"))
        return r->first;
    char c = sfti_lex_peek(lex);
    if (c != '{') {
        /* Another JSON value is the wrong thing; anything else is no JSON. */
        bool value = c == '[' || c == '"' || c == '-' || sfti_lex_digit(c) || c == 't'
                     || c == 'f' || c == 'n';
        sfti_report_at(r, value ? SFT_HEADER_NOT_OBJECT : SFT_JSON_SYNTAX, lex->at, NULL,
                       "a JSON object");
        return r->first;
    }
    lex->at++;
    if (!read_members(r)) return r->first;

    const char *rest = lex->at, *p = rest;
    sfti_lex_space(lex);
    while (p < lex->end && *p == ' ') p++;
    if (lex->at < lex->end) report_trailing(r);
    else if (strict && p < lex->end)
        sfti_report_at(r, SFT_STRICT_PADDING, rest, NULL, "spaces only");
    return r->first;
}
