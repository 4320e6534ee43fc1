/* Texts of protocols: compared, cut, joined. Tests: test_remote_url.c. */
#include "remote/http/text.h"


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

bool sfti_text_has_control(sft_span text) {
    for (size_t i = 0; i < text.len; i++)
        if ((unsigned char)text.data[i] < ' ' || text.data[i] == 0x7f) return true;
    return false;
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

bool sfti_text_split(sft_span *rest, char by, sft_span *out) {
    if (!rest->data) return false;
    size_t at = sfti_text_find(*rest, by);
    *out = sfti_text_trim((sft_span){ rest->data, at });
    *rest = at < rest->len ? sfti_span_from(*rest, at + 1) : (sft_span){ NULL, 0 };
    return true;
}

char *sfti_text_join(sfti_arena *arena, const char *const *texts) {
    size_t len = 0, at = 0;
    for (size_t i = 0; texts[i]; i++) len += strlen(texts[i]);
    char *joined = sfti_arena_take(arena, len + 1);
    for (size_t i = 0; joined && texts[i]; i++) {
        size_t n = strlen(texts[i]);
        memcpy(joined + at, texts[i], n);
        at += n;
    }
    if (joined) joined[len] = '\0';
    return joined;
}

bool sfti_put_word(sft_buffer *out, const char *word) {
    return sfti_buffer_put(out, word, strlen(word));
}
