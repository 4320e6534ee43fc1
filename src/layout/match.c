/* Names by the patterns of layouts. Tests: test_layout.c. */
#include "layout/layout.h"

#include "os/io.h"
#include "text/text.h"

#include <string.h>

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/* What may follow a layer's name: one word that is no number, or a weight's companion. */
static bool is_leaf(sft_span rest) {
    if (rest.len < 2 || *rest.data != '.' || is_digit(rest.data[1])) return false;
    bool weight = rest.len > 8 && memcmp(rest.data, ".weight.", 8) == 0;
    return weight || !memchr(rest.data + 1, '.', rest.len - 1);
}

bool sfti_layout_matches(sft_span pattern, sft_span name, bool flat, sfti_layout_match *out) {
    size_t at = 0;
    out->count = 0;
    for (size_t i = 0; i < pattern.len; i++) {
        char c = pattern.data[i];
        if (c == '*' && i + 1 == pattern.len) {
            out->rest = (sft_span){ name.data + at, name.len - at };
            return at < name.len;
        }
        if (c == '#') {
            size_t begin = at;
            while (at < name.len && at - begin < 6 && is_digit(name.data[at])) at++;
            if (at == begin || out->count == SFTI_LAYOUT_NUMBERS) return false;
            out->numbers[out->count++] = (sft_span){ name.data + begin, at - begin };
            continue;
        }
        if (at == name.len) return false;
        char n = name.data[at++];
        if (n != c && !(flat && c == '.' && n == '_')) return false;
    }
    out->rest = (sft_span){ name.data + at, name.len - at };
    if (at == name.len) return true;
    return !flat && is_leaf(out->rest);
}

sft_span sfti_layout_layer(const sfti_layout_rule *rule, unsigned k) {
    sft_span piece = rule->pieces[k];
    if (sfti_ends(piece, ".weight") && !sfti_ends(rule->original, ".weight"))
        piece.len -= strlen(".weight");
    return piece;
}

size_t sfti_layout_make(sft_span pattern, const sfti_layout_match *match, char *out, size_t cap) {
    size_t len = 0, number = 0;
    for (size_t i = 0; i < pattern.len; i++) {
        sft_span text = { pattern.data + i, 1 };
        if (pattern.data[i] == '*' && i + 1 == pattern.len) break;
        if (pattern.data[i] == '#') {
            if (number == match->count) return 0;
            text = match->numbers[number++];
        }
        if (text.len > cap - len) return 0;
        memcpy(out + len, text.data, text.len);
        len += text.len;
    }
    if (match->rest.len > cap - len) return 0;
    memcpy(out + len, match->rest.data, match->rest.len);
    return len + match->rest.len;
}

const sfti_layout_rule *sfti_layout_next_rule(const sfti_layout_text *layouts,
                                              const sfti_naming_part **part, size_t *at) {
    while (*part && *at == (*part)->count) {
        *part = (*part)->like;
        *at = 0;
    }
    return *part ? &layouts->rules[(*part)->first + (*at)++] : NULL;
}

bool sfti_layout_is_stray(const sfti_layout_text *layouts, sft_span name) {
    sfti_layout_match match;
    sft_span pattern;
    for (sft_span rest = layouts->stray; sfti_layout_next(&rest, &pattern);)
        if (sfti_layout_matches(pattern, name, true, &match)) return true;
    return false;
}

static sft_span layout_part_name(const void *parts, uint32_t i) {
    return ((const sft_part *)parts)[i].spec.name;
}

bool sfti_layout_names(const sft_part *parts, size_t count, sfti_arena *arena, sfti_names *out) {
    if (!sfti_names_draw(out, count, layout_part_name, parts, arena)) return false;
    for (uint32_t i = 0; i < count; i++) (void)sfti_names_add(out, parts[i].spec.name, i);
    return true;
}
