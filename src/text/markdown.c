/* Markdown, as far as model cards are read: front matter, sections, lists. Tests: test_text.c. */
#include "text/formats.h"
#include "text/text.h"

#define FRONT_MOST ((size_t)1 << 20)

static bool fence(sft_span line) {
    if (line.len > 0 && line.data[line.len - 1] == '\r') line.len--;
    while (line.len > 3 && line.data[line.len - 1] == ' ') line.len--;
    return line.len == 3 && memcmp(line.data, "---", 3) == 0;
}

sft_span sfti_front_matter(sft_span text, sft_span *body) {
    sft_span none = { "", 0 }, rest = text, line;
    *body = text;
    if (!sfti_next_piece(&rest, '\n', &line) || !fence(line)) return none;
    const char *begin = rest.data;
    while (sfti_next_piece(&rest, '\n', &line)) {
        if (!fence(line)) continue;
        *body = rest;
        size_t len = (size_t)(line.data - begin);
        return (sft_span){ begin, len < FRONT_MOST ? len : FRONT_MOST };
    }
    return none;
}

/* A heading's text; empty for other lines. */
static sft_span heading_of(sft_span line) {
    size_t n = 0;
    line = sfti_trim(line);
    while (n < line.len && line.data[n] == '#') n++;
    if (n == 0 || n > 6 || n == line.len || line.data[n] != ' ') return (sft_span){ "", 0 };
    sft_span text = sfti_trim((sft_span){ line.data + n, line.len - n });
    while (text.len > 0 && (text.data[text.len - 1] == ':' || text.data[text.len - 1] == '#'))
        text.len--;
    return sfti_trim(text);
}

sft_span sfti_markdown_section(sft_span body, const char *const *names, size_t count) {
    sft_span line, found = { "", 0 };
    bool in = false;
    while (sfti_next_piece(&body, '\n', &line)) {
        sft_span title = heading_of(line);
        if (in && title.len > 0) {
            found.len = (size_t)(line.data - found.data);
            return found;
        }
        for (size_t i = 0; i < count && !in && title.len > 0; i++)
            in = sfti_same_letters(title, names[i]);
        if (in && title.len > 0) found.data = body.data;
    }
    if (in) found.len = (size_t)(body.data + body.len - found.data);
    return found;
}

bool sfti_list_item(sft_span line, sft_span *text) {
    line = sfti_trim(line);
    if (line.len < 3 || !strchr("-*+", *line.data) || line.data[1] != ' ') return false;
    *text = (sft_span){ line.data + 2, line.len - 2 };
    return true;
}
