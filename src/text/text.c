/* Words in texts, compared without regard to case. Tests: test_text.c. */
#include "text/text.h"

#include "base/json_lex.h"
#include "base/number.h"
#include "base/order.h"

#include <string.h>

#define IS_BLANK(c) ((c) == ' ' || ((c) >= '\t' && (c) <= '\r'))

bool sfti_word_byte(char c) {
    return sfti_lex_digit(c) || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z')
        || (unsigned char)c >= 0x80;
}

char sfti_lower_case(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

sft_span sfti_trim(sft_span text) {
    while (text.len > 0 && IS_BLANK(*text.data)) text.data++, text.len--;
    while (text.len > 0 && IS_BLANK(text.data[text.len - 1])) text.len--;
    return text;
}

/* Whether the bytes at p are those of a word, in either case. */
static bool letters_at(const char *p, const char *word, size_t len) {
    for (size_t i = 0; i < len; i++) {
        const char x = p[i], y = word[i];
        if (x != y && ((x ^ y) != 0x20 || (x | 0x20) < 'a' || (x | 0x20) > 'z')) return false;
    }
    return true;
}

bool sfti_same_letters(sft_span a, const char *b) {
    return a.len == strlen(b) && letters_at(a.data, b, a.len);
}

bool sfti_same_text(sft_span a, sft_span b) {
    return a.len == b.len && letters_at(a.data, b.data, a.len);
}

bool sfti_one_of(sft_span text, const char *const *list, size_t count, sfti_text_fits *fits) {
    for (size_t i = 0; i < count; i++)
        if (fits(text, list[i])) return true;
    return false;
}

int sfti_number_among(const char *words, sft_span word) {
    sft_span rest = sft_span_cstr(words), one;
    for (int i = 0; sfti_next_piece(&rest, ' ', &one); i++)
        if (sft_span_equal(one, word)) return i;
    return -1;
}

bool sfti_put_sorted(sft_span *words, size_t *count, size_t most, sft_span word) {
    size_t at = *count;
    while (at > 0 && sfti_bytes_compare(words[at - 1], word) > 0) at--;
    if (*count == most || (at > 0 && sft_span_equal(words[at - 1], word))) return false;
    memmove(words + at + 1, words + at, (*count - at) * sizeof *words);
    words[at] = word;
    ++*count;
    return true;
}

bool sfti_next_word(sft_span *rest, sft_span *word, bool (*in_word)(char c)) {
    size_t begin = 0;
    while (begin < rest->len && !in_word(rest->data[begin])) begin++;
    *word = *rest = sfti_from(*rest, begin);
    for (word->len = 0; word->len < rest->len && in_word(rest->data[word->len]);) word->len++;
    *rest = sfti_from(*rest, word->len);
    return word->len > 0;
}

sft_span sfti_find_letters(sft_span text, const char *lower_case) {
    size_t len = strlen(lower_case);
    sft_span none = { NULL, 0 };
    for (; text.len >= len; text.data++, text.len--)
        if (letters_at(text.data, lower_case, len)) return text;
    return none;
}

bool sfti_contains(sft_span text, const char *lower_case) {
    return sfti_find_letters(text, lower_case).data != NULL;
}

bool sfti_starts_with(sft_span text, const char *prefix) {
    size_t len = 0;
    while (prefix[len] && len < text.len && letters_at(text.data + len, prefix + len, 1)) len++;
    return !prefix[len];
}

bool sfti_ends_with(sft_span text, const char *suffix) {
    size_t len = strlen(suffix);
    return text.len >= len && (len == 0 || letters_at(text.data + text.len - len, suffix, len));
}

sft_span sfti_from(sft_span text, size_t n) {
    return (sft_span){ text.data + n, text.len - n };
}

bool sfti_skip(sft_span *text, const char *prefix) {
    bool found = sfti_starts_with(*text, prefix);
    if (found) *text = sfti_from(*text, strlen(prefix));
    return found;
}

sft_span sfti_leaf_name(sft_span text) {
    text = sfti_trim(text);
    for (size_t i = text.len; i-- > 0;)
        if (text.data[i] == '/' || text.data[i] == '\\') return sfti_from(text, i + 1);
    return text;
}

bool sfti_next_piece(sft_span *rest, char separator, sft_span *piece) {
    if (rest->len == 0) return false;
    const char *end = memchr(rest->data, separator, rest->len);
    piece->data = rest->data;
    piece->len = end ? (size_t)(end - rest->data) : rest->len;
    *rest = sfti_from(*rest, end ? piece->len + 1 : piece->len);
    return true;
}

/* ── Numbers ── */

bool sfti_parse_uint(sft_span text, uint64_t *out) {
    uint64_t value = 0;
    text = sfti_trim(text);
    if (text.len == 0) return false;
    for (size_t i = 0; i < text.len; i++)
        if (!sfti_lex_digit(text.data[i]) || !sfti_lex_digit_add(&value, text.data[i]))
            return false;
    *out = value;
    return true;
}

bool sfti_is_number(sft_span text) {
    sfti_lex lex = { text.data, text.data + text.len, SFT_OK, NULL };
    bool is_uint;
    uint64_t value;
    char c = text.len > 0 ? *text.data : '\0';
    if (!sfti_lex_digit(c) && c != '-') return false;
    return sfti_lex_number(&lex, &is_uint, &value) && lex.at == lex.end;
}

static double scaled(uint64_t digits, int64_t exponent) {
    double value = (double)digits;
    if (exponent < -640 || digits == 0) return 0;
    for (; exponent < -300; exponent += 300) value /= 1e300;
    return exponent < 0 ? value / sfti_lex_power10(-exponent)
                        : value * sfti_lex_power10(exponent);
}

/* Digits with at most one point among them; false when there is no digit. */
static bool mantissa(sfti_lex *lex, uint64_t *digits, int64_t *exponent) {
    bool point = false, any = false;
    for (; lex->at < lex->end; lex->at++) {
        char c = *lex->at;
        if (c == '.' && !point) {
            point = true;
            continue;
        }
        if (!sfti_lex_digit(c)) break;
        any = true;
        if (!sfti_lex_digit_add(digits, c)) *exponent += !point;
        else *exponent -= point;
    }
    return any;
}

bool sfti_parse_double(sft_span text, double *out) {
    text = sfti_trim(text);
    sfti_lex lex = { text.data, text.data + text.len, SFT_OK, NULL };
    uint64_t digits = 0;
    int64_t exponent = 0;
    char sign = sfti_lex_peek(&lex);
    if (sign == '-' || sign == '+') lex.at++;
    if (!mantissa(&lex, &digits, &exponent)) return false;
    if (sfti_lex_peek(&lex) == 'e' || sfti_lex_peek(&lex) == 'E') {
        lex.at++;
        if (!sfti_lex_exponent(&lex, &exponent)) return false;
    }
    if (lex.at != lex.end || !sfti_lex_finite(digits, exponent)) return false;
    double value = scaled(digits, exponent);
    *out = sign == '-' ? -value : value;
    return true;
}

size_t sfti_decimals(double value, char buffer[SFTI_DECIMALS_SIZE]) {
    char fraction[SFTI_UINT_SIZE];
    size_t len = 0, digits = 6;
    if (!(value < 1e12 && value > -1e12)) return 0;
    if (value < 0) buffer[len++] = '-', value = -value;
    uint64_t millionths = (uint64_t)(value * 1e6 + 0.5);
    len += sfti_uint_text(millionths / 1000000, 1, buffer + len);
    (void)sfti_uint_text(millionths % 1000000, digits, fraction);
    while (digits > 0 && fraction[digits - 1] == '0') digits--;
    if (digits > 0) buffer[len++] = '.';
    memcpy(buffer + len, fraction, digits);
    return len + digits;
}

sft_span sfti_find_byte(sft_span text, char byte) {
    const char *at = text.len > 0 ? memchr(text.data, byte, text.len) : NULL;
    if (!at) return (sft_span){ NULL, 0 };
    return (sft_span){ at, text.len - (size_t)(at - text.data) };
}
