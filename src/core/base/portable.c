/* Which names of files every system takes. Tests: test_portable.c. */
#include "base/portable.h"
#include "base/utf8.h"

#include <string.h>

#define PART_MOST 255 /* bytes */

static char folded(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c;
}

int sfti_name_compare_folded(sft_span a, sft_span b) {
    for (size_t i = 0; i < a.len && i < b.len; i++) {
        int difference = (uint8_t)folded(a.data[i]) - (uint8_t)folded(b.data[i]);
        if (difference) return difference;
    }
    return (a.len > b.len) - (a.len < b.len);
}

/* The next part of a name, which it is taken off; false: there is none. */
static bool next_name_part(sft_span *name, sft_span *part) {
    if (!name->data) return false;
    const char *slash = memchr(name->data, '/', name->len);
    part->data = name->data;
    part->len = slash ? (size_t)(slash - name->data) : name->len;
    *name = slash ? (sft_span){ slash + 1, name->len - part->len - 1 } : (sft_span){ NULL, 0 };
    return true;
}

bool sfti_name_inside(sft_span name) {
    sft_span part;
    if (!name.data || memchr(name.data, '\0', name.len) || memchr(name.data, '\\', name.len))
        return false;
    if (name.len >= 2 && name.data[1] == ':') return false;
    while (next_name_part(&name, &part)) {
        if (part.len == 0 || (part.len <= 2 && memcmp(part.data, "..", part.len) == 0))
            return false;
    }
    return true;
}

static bool is_device_name(sft_span part) {
    static const char *const devices[] = { "con", "prn", "aux", "nul", "conin$", "conout$" };
    static const char *const ports[] = { "com", "lpt" };
    /* Superscript digits are digits there. */
    static const char *const digits[] = { "\xc2\xb9", "\xc2\xb2", "\xc2\xb3" };
    const char *dot = memchr(part.data, '.', part.len);
    sft_span stem = { part.data, dot ? (size_t)(dot - part.data) : part.len };
    while (stem.len > 0 && stem.data[stem.len - 1] == ' ') stem.len--;
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++)
        if (sfti_name_compare_folded(stem, sft_span_cstr(devices[i])) == 0) return true;
    if (stem.len < 4) return false;
    sft_span port = { stem.data, 3 }, digit = { stem.data + 3, stem.len - 3 };
    bool named = false, numbered = digit.len == 1 && digit.data[0] >= '0' && digit.data[0] <= '9';
    for (size_t i = 0; i < sizeof ports / sizeof *ports; i++)
        named |= sfti_name_compare_folded(port, sft_span_cstr(ports[i])) == 0;
    for (size_t i = 0; i < sizeof digits / sizeof *digits; i++)
        numbered |= sft_span_equal(digit, sft_span_cstr(digits[i]));
    return named && numbered;
}

static const char *part_fault(sft_span part) {
    char last = part.data[part.len - 1];
    if (part.len > PART_MOST) return "a part is longer than 255 bytes";
    if (sfti_utf8_check(part.data, part.len) < part.len) return "it is not UTF-8";
    for (size_t i = 0; i < part.len; i++) {
        uint8_t c = (uint8_t)part.data[i];
        if (c < 0x20 || c == 0x7f) return "it holds a control character";
        if (strchr(":*?\"<>|", c)) return "it holds one of : * ? \" < > |";
    }
    if (last == '.' || last == ' ') return "a part ends with a dot or a blank";
    return is_device_name(part) ? "it names a device of Windows" : NULL;
}

bool sfti_name_portable(sft_span name, const char **why) {
    sft_span part;
    *why = "it leads out of its folder, or holds a drive or a backslash";
    if (!sfti_name_inside(name)) return false;
    for (*why = NULL; !*why && next_name_part(&name, &part);) *why = part_fault(part);
    return !*why;
}
