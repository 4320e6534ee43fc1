/* What the body of a failure says, in a line. */
#include "remote/http/answer.h"
#include "remote/http/text.h"

#include <string.h>

#define BODY_LOOKED_AT 4096

/* Position of `word` in any case from `at` on, or the length. */
static size_t find_word(sft_span body, size_t at, const char *word) {
    while (at < body.len && !sfti_text_begins(sfti_span_from(body, at), word)) at++;
    return at;
}

/* The text of an XML element without children; empty if there is none. `<` and > included in the
 * names. */
static sft_span element_text(sft_span body, const char *begin, const char *end) {
    size_t from = find_word(body, 0, begin);
    if (from == body.len) return (sft_span){ "", 0 };
    from += strlen(begin);
    size_t to = find_word(body, from, end);
    return to < body.len ? (sft_span){ body.data + from, to - from } : (sft_span){ "", 0 };
}

static bool is_blank(char c) {
    return (unsigned char)c <= ' ' || c == 0x7f;
}

/* Append in one line: controls and runs of blanks become one blank. */
static void line_put(sfti_answer *answer, sft_span text) {
    size_t len = strlen(answer->line);
    for (size_t i = 0; i < text.len && len + 1 < sizeof answer->line; i++) {
        bool blank = is_blank(text.data[i]);
        if (blank && (len == 0 || answer->line[len - 1] == ' ')) continue;
        answer->line[len++] = blank ? ' ' : text.data[i];
    }
    answer->line[len] = '\0';
}

static sft_span first_line(sft_span body) {
    while (body.len > 0 && is_blank(*body.data)) body = sfti_span_from(body, 1);
    size_t len = 0;
    while (len < body.len && body.data[len] != '\n' && body.data[len] != '\r') len++;
    return (sft_span){ body.data, len };
}

void sfti_answer_body(sfti_answer *answer, sft_span body) {
    answer->line[0] = '\0';
    if (body.len > BODY_LOOKED_AT) body.len = BODY_LOOKED_AT;
    sft_span code = element_text(body, "<Code>", "</Code>");
    sft_span message = element_text(body, "<Message>", "</Message>");
    sft_span title = element_text(body, "<title>", "</title>");
    sft_span first = first_line(body);
    if (code.len > 0 || message.len > 0) {
        line_put(answer, code);
        if (code.len > 0 && message.len > 0) line_put(answer, sft_span_cstr(": "));
        line_put(answer, message);
    } else if (first.len > 0 && *first.data == '<') {
        line_put(answer, title); /* tags say nothing */
    } else {
        line_put(answer, first);
    }
    size_t len = strlen(answer->line);
    if (len > 0 && answer->line[len - 1] == ' ') answer->line[len - 1] = '\0';
}
