/* JSON's grammar, and the only code that knows it (RFC 8259, as strict as the official
 * reader: no lone surrogates, no raw control characters, numbers within a double's range).
 * Inline pieces over a cursor; UTF-8 is checked elsewhere. Nothing recurses.
 */
#ifndef SFTI_JSON_LEX_H
#define SFTI_JSON_LEX_H

#include "safetensors.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define SFTI_LEX_DEPTH 127

/* at moves forward; on failure it stands on the guilty byte and code, why say what. */
typedef struct sfti_lex {
    const char *at, *end;
    sft_code code;
    const char *why;
} sfti_lex;

static inline bool sfti_lex_fail(sfti_lex *lex, sft_code code, const char *why) {
    lex->code = code;
    lex->why = why;
    return false;
}

#define sfti_lex_digit(c) ((unsigned char)((c) - '0') < 10)

/* Past white space: the byte there, or 0 at the end (0 is no JSON, so it fails alike). */
static inline char sfti_lex_space(sfti_lex *lex) {
    for (; lex->at < lex->end; lex->at++) {
        char c = *lex->at;
        if (c != ' ' && c != '\n' && c != '\t' && c != '\r') return c;
    }
    return '\0';
}

/* The byte at the cursor, or 0 at the end. */
static inline char sfti_lex_peek(const sfti_lex *lex) {
    return lex->at < lex->end ? *lex->at : '\0';
}

static inline bool sfti_lex_literal(sfti_lex *lex, const char *word, size_t len) {
    if ((size_t)(lex->end - lex->at) < len || memcmp(lex->at, word, len) != 0)
        return sfti_lex_fail(lex, SFT_JSON_SYNTAX, "a JSON value");
    lex->at += len;
    return true;
}

/* ── Strings ── */

static inline int sfti_lex_hex_digit(char c) {
    if (sfti_lex_digit(c)) return c - '0';
    char lower = (char)(c | 0x20);
    return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

/* Four hex digits at p, or -1. */
static inline int32_t sfti_lex_hex4(const char *p, const char *end) {
    int32_t value = 0;
    if (end - p < 4) return -1;
    for (int i = 0; i < 4; i++) {
        int digit = sfti_lex_hex_digit(p[i]);
        if (digit < 0) return -1;
        value = value << 4 | digit;
    }
    return value;
}

/* \uXXXX at p (past the u): the code point, joined with its pair; *past moves. */
static inline int32_t sfti_lex_unicode(const char *p, const char *end, const char **past) {
    int32_t high = sfti_lex_hex4(p, end);
    *past = p + 4;
    if (high < 0xD800 || high > 0xDFFF) return high;
    if (high > 0xDBFF || end - p < 10 || p[4] != '\\' || p[5] != 'u') return -1;
    int32_t low = sfti_lex_hex4(p + 6, end);
    if (low < 0xDC00 || low > 0xDFFF) return -1;
    *past = p + 10;
    return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

static inline bool sfti_lex_escape(sfti_lex *lex) {
    const char *p = lex->at + 1;
    if (p >= lex->end) return sfti_lex_fail(lex, SFT_JSON_SYNTAX, "the end of a string");
    switch (*p) {
    case '"': case '\\': case '/': case 'b': case 'f': case 'n': case 'r': case 't':
        lex->at = p + 1;
        return true;
    case 'u':
        if (sfti_lex_unicode(p + 1, lex->end, &p) >= 0) {
            lex->at = p;
            return true;
        }
        return sfti_lex_fail(lex, SFT_JSON_STRING, "four hex digits, no lone surrogate");
    default:
        return sfti_lex_fail(lex, SFT_JSON_STRING, "an escape of JSON");
    }
}

/* Cursor on the opening quote: text becomes what stands between the quotes. */
static inline bool sfti_lex_string(sfti_lex *lex, sft_span *text, bool *escaped) {
    const char *begin = ++lex->at, *p, *end = lex->end;
    *escaped = false;
    for (;;) {
        /* To the next quote, backslash or control character. */
        p = lex->at;
#if defined(__SSE2__)
        const __m128i quote = _mm_set1_epi8('"'), slash = _mm_set1_epi8('\\');
        const __m128i control = _mm_set1_epi8(0x1F);
        for (int mask = 0; !mask && end - p >= 16; p += mask ? __builtin_ctz((unsigned)mask) : 16) {
            __m128i next = _mm_loadu_si128((const __m128i *)(const void *)p);
            __m128i stop = _mm_cmpeq_epi8(_mm_min_epu8(next, control), next);
            stop = _mm_or_si128(stop, _mm_cmpeq_epi8(next, quote));
            mask = _mm_movemask_epi8(_mm_or_si128(stop, _mm_cmpeq_epi8(next, slash)));
        }
#endif
        while (p < end && *p != '"' && *p != '\\' && (unsigned char)*p >= 0x20) p++;
        lex->at = p;
        if (p >= end) return sfti_lex_fail(lex, SFT_JSON_SYNTAX, "the end of a string");
        if (*lex->at == '"') break;
        if (*lex->at != '\\')
            return sfti_lex_fail(lex, SFT_JSON_STRING, "an escaped control character");
        *escaped = true;
        if (!sfti_lex_escape(lex)) return false;
    }
    text->data = begin;
    text->len = (size_t)(lex->at++ - begin);
    return true;
}

/* ── Numbers ── */

double sfti_lex_power10(int64_t exponent); /* 0 to 308 */

/* Whether significand * 10^exponent is finite, computed as the official reader does (a
 * double and one multiplication), for its verdict hangs on that rounding. */
static inline bool sfti_lex_finite(uint64_t significand, int64_t exponent) {
    volatile double value = (double)significand; /* no excess precision */
    if (significand == 0 || exponent <= 0) return true;
    if (exponent > 308) return false;
    value = value * sfti_lex_power10(exponent);
    return value <= 1.7976931348623157e308;
}

/* One more digit of a significand; false, and *value as it was, past 64 bits. */
static inline bool sfti_lex_digit_add(uint64_t *value, char c) {
    uint64_t digit = (uint64_t)(c - '0');
    if (*value > UINT64_MAX / 10 || (*value == UINT64_MAX / 10 && digit > UINT64_MAX % 10))
        return false;
    *value = *value * 10 + digit;
    return true;
}

/* Digits after the point; those that no longer fit are dropped. */
static inline bool sfti_lex_fraction(sfti_lex *lex, uint64_t *value, int64_t *exponent) {
    if (!sfti_lex_digit(sfti_lex_peek(lex)))
        return sfti_lex_fail(lex, SFT_JSON_NUMBER, "a digit after the point");
    for (; sfti_lex_digit(sfti_lex_peek(lex)) && sfti_lex_digit_add(value, *lex->at); lex->at++)
        --*exponent;
    while (sfti_lex_digit(sfti_lex_peek(lex))) lex->at++;
    return true;
}

static inline bool sfti_lex_exponent(sfti_lex *lex, int64_t *exponent) {
    bool negative = false;
    int64_t value = 0;
    if (sfti_lex_peek(lex) == '+' || sfti_lex_peek(lex) == '-') negative = *lex->at++ == '-';
    if (!sfti_lex_digit(sfti_lex_peek(lex)))
        return sfti_lex_fail(lex, SFT_JSON_NUMBER, "a digit in the exponent");
    for (; sfti_lex_digit(sfti_lex_peek(lex)); lex->at++)
        if (value < INT64_C(100000000000)) value = value * 10 + (*lex->at - '0');
    *exponent += negative ? -value : value;
    return true;
}

/* Pass a plain integer of at most 18 digits; false, the cursor where it was, for all else. */
static inline bool sfti_lex_short_integer(sfti_lex *lex) {
    const char *p = lex->at, *end = lex->end - p > 19 ? p + 19 : lex->end;
    while (p < end && sfti_lex_digit(*p)) p++;
    if (p == end || p == lex->at || (*lex->at == '0' && p - lex->at > 1)) return false;
    if (*p == '.' || *p == 'e' || *p == 'E') return false;
    lex->at = p;
    return true;
}

/* Integers of an array spelled without blanks, up to the last but one: the cursor ends on a
 * digit. The first cap of them go to out; how many there were. */
static inline uint64_t sfti_lex_integers(sfti_lex *lex, uint64_t *out, uint64_t cap) {
    uint64_t count = 0;
    const char *p = lex->at;
    while (lex->end - p > 22) { /* 20 digits, a comma and a digit */
        const char *q = p;
        uint64_t value = 0;
        while (q - p < 20 && sfti_lex_digit(*q)) value = value * 10 + (uint64_t)(*q++ - '0');
        if (q == p || q - p > 19 || (*p == '0' && q - p > 1)) break;
        if (q[0] != ',' || !sfti_lex_digit(q[1])) break;
        if (count < cap) out[count] = value;
        count++;
        p = q + 1;
    }
    lex->at = p;
    return count;
}

/* Cursor on '-' or a digit. *is_uint: digits alone and at most 2^64 - 1, in *value. */
static inline bool sfti_lex_number(sfti_lex *lex, bool *is_uint, uint64_t *value) {
    const char *begin = lex->at, *at = begin, *end = lex->end;
    int64_t exponent = 0;
    bool whole = *at != '-';
    *value = 0;
    if (!whole) lex->at = ++at;
    if (at == end || !sfti_lex_digit(*at))
        return sfti_lex_fail(lex, SFT_JSON_NUMBER, "a digit");
    if (*at == '0' && end - at > 1 && sfti_lex_digit(at[1]))
        return sfti_lex_fail(lex, SFT_JSON_NUMBER, "no leading zero");
    /* Digits that no longer fit count into the exponent. */
    while (at < end && sfti_lex_digit(*at) && sfti_lex_digit_add(value, *at)) at++;
    for (; at < end && sfti_lex_digit(*at); at++) ++exponent;
    whole = whole && exponent == 0;
    lex->at = at;
    if (at < end && *at == '.') {
        whole = false;
        lex->at++;
        if (!sfti_lex_fraction(lex, value, &exponent)) return false;
    }
    if (lex->at < end && (*lex->at == 'e' || *lex->at == 'E')) {
        whole = false;
        lex->at++;
        if (!sfti_lex_exponent(lex, &exponent)) return false;
    }
    *is_uint = whole;
    if (whole || sfti_lex_finite(*value, exponent)) return true;
    lex->at = begin;
    return sfti_lex_fail(lex, SFT_JSON_NUMBER, "a number a double can hold");
}

#endif
