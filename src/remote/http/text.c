#include "remote/http/text.h"

#include "base/checked.h"

#include <string.h>

bool sfti_text_same(sft_span a, sft_span b) {
    if (a.len != b.len) return false;
    for (size_t i = 0; i < a.len; i++)
        if (sfti_lower(a.data[i]) != sfti_lower(b.data[i])) return false;
    return true;
}

bool sfti_text_is(sft_span text, const char *word) {
    return sfti_text_same(text, sft_span_cstr(word));
}

bool sfti_text_begins(sft_span text, const char *word) {
    size_t len = strlen(word);
    return text.len >= len && sfti_text_is((sft_span){ text.data, len }, word);
}

sft_span sfti_text_trim(sft_span text) {
    while (text.len > 0 && (*text.data == ' ' || *text.data == '\t'))
        text = sfti_span_from(text, 1);
    while (text.len > 0 && (text.data[text.len - 1] == ' ' || text.data[text.len - 1] == '\t'))
        text.len--;
    return text;
}

size_t sfti_text_find(sft_span text, char c) {
    const char *found = text.len > 0 ? memchr(text.data, c, text.len) : NULL;
    return found ? (size_t)(found - text.data) : text.len;
}

bool sfti_text_uint(sft_span text, uint64_t *out) {
    uint64_t value = 0;
    for (size_t i = 0; i < text.len; i++)
        if (!sfti_is_digit(text.data[i]) || !sfti_mul(value, 10, &value)
            || !sfti_add(value, (uint64_t)(text.data[i] - '0'), &value))
            return false;
    if (text.len == 0) return false;
    *out = value;
    return true;
}

bool sfti_text_split(sft_span *rest, char by, sft_span *out) {
    if (!rest->data) return false;
    size_t at = sfti_text_find(*rest, by);
    *out = sfti_text_trim((sft_span){ rest->data, at });
    *rest = at < rest->len ? sfti_span_from(*rest, at + 1) : (sft_span){ NULL, 0 };
    return true;
}
