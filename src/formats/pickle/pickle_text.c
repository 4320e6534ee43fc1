/* Numbers and escapes in lines of a pickle. Tests: test_import_pickle.c. */
#include "formats/pickle/pickle_stack.h"

#include "base/utf8.h"

#include <string.h>

int sfti_pickle_decimal(sft_span text, int64_t *out) {
    size_t i = 0;
    bool negative = text.len > 0 && text.data[0] == '-', wide = false;
    if (text.len > 0 && text.data[text.len - 1] == 'L') text.len--;
    if (text.len > 0 && (negative || text.data[0] == '+')) i++;
    if (i == text.len) return -1;
    uint64_t value = 0;
    for (; i < text.len; i++) {
        unsigned digit = (unsigned char)text.data[i] - (unsigned)'0';
        if (digit > 9) return -1;
        wide = wide || !sfti_mul(value, 10, &value) || !sfti_add(value, digit, &value);
    }
    if (wide || value > (uint64_t)INT64_MAX + negative) return 0;
    *out = negative ? (int64_t)(0 - value) : (int64_t)value;
    return 1;
}

bool sfti_pickle_long(const uint8_t *bytes, size_t len, int64_t *out) {
    uint8_t fill = len > 0 && bytes[len - 1] >= 0x80 ? 0xff : 0;
    uint64_t value = 0;
    for (size_t i = 0; i < 8; i++) value |= (uint64_t)(i < len ? bytes[i] : fill) << (8 * i);
    for (size_t i = 8; i < len; i++)
        if (bytes[i] != fill) return false;
    if (len > 8 && (value >> 63 != 0) != (fill != 0)) return false;
    *out = (int64_t)value;
    return true;
}

/* `digits` hexadecimal digits at text[at]; false if they are not there. */
static bool hex_at(sft_span text, size_t at, size_t digits, uint32_t *out) {
    if (digits > text.len - at) return false;
    uint32_t value = 0;
    for (size_t i = at; i < at + digits; i++) {
        static const char all[] = "0123456789abcdef";
        char c = text.data[i] >= 'A' && text.data[i] <= 'F' ? (char)(text.data[i] + 32)
                                                            : text.data[i];
        const char *found = c != '\0' ? strchr(all, c) : NULL;
        if (!found) return false;
        value = value << 4 | (uint32_t)(found - all);
    }
    *out = value;
    return true;
}

/* One escape of a string, from the byte behind its backslash; the bytes that it has, or 0. */
static size_t escape_at(sft_span text, size_t at, char *out) {
    static const char from[] = "\\'\"abfnrtv", to[] = "\\'\"\a\b\f\n\r\t\v";
    uint32_t value;
    const char *found = text.data[at] != '\0' ? strchr(from, text.data[at]) : NULL;
    if (found) {
        *out = to[found - from];
        return 1;
    }
    if (text.data[at] != 'x' || !hex_at(text, at + 1, 2, &value)) return 0;
    *out = (char)(unsigned char)value;
    return 3;
}

bool sfti_pickle_quoted(sft_span text, char *into, size_t *len) {
    char quote = text.len >= 2 ? text.data[0] : '\0';
    if ((quote != '\'' && quote != '"') || text.data[text.len - 1] != quote) return false;
    sft_span inner = { text.data + 1, text.len - 2 };
    size_t n = 0;
    for (size_t i = 0; i < inner.len; n++) {
        if (inner.data[i] == quote) return false;
        if (inner.data[i] != '\\') {
            into[n] = inner.data[i++];
            continue;
        }
        size_t used = i + 1 < inner.len ? escape_at(inner, i + 1, &into[n]) : 0;
        if (used == 0) return false;
        i += 1 + used;
    }
    *len = n;
    return true;
}

bool sfti_pickle_unicode(sft_span text, char *into, size_t *len) {
    size_t n = 0;
    for (size_t i = 0; i < text.len;) {
        uint32_t code = (unsigned char)text.data[i];
        size_t used = 1;
        char kind = code == '\\' && i + 1 < text.len ? text.data[i + 1] : '\0';
        if (kind == 'u' || kind == 'U') {
            size_t digits = kind == 'u' ? 4 : 8;
            if (!hex_at(text, i + 2, digits, &code)) return false;
            if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000)) return false;
            used = 2 + digits;
        }
        n += sfti_utf8_encode(code, into + n);
        i += used;
    }
    *len = n;
    return true;
}
