/* Letters, parts, globs and words as people write them. */
#include "support/words.h"

#include "base/checked.h"
#include "base/order.h"

#include <string.h>

/* ── Parts between dots ── */

bool cli_next_part(sft_span *rest, char separator, sft_span *part) {
    if (!rest->data) return false;
    const char *at = rest->len ? memchr(rest->data, separator, rest->len) : NULL;
    size_t len = at ? (size_t)(at - rest->data) : rest->len;
    *part = (sft_span){ rest->data, len };
    *rest = at ? (sft_span){ at + 1, rest->len - len - 1 } : (sft_span){ NULL, 0 };
    return true;
}

int cli_dotted_compare(sft_span a, sft_span b) {
    sft_span whole_a = a, whole_b = b;
    while (a.len && b.len) {
        sft_span first, second;
        (void)cli_next_part(&a, '.', &first);
        (void)cli_next_part(&b, '.', &second);
        int way = sfti_natural_compare(first, second);
        if (way) return way;
    }
    if (a.len != b.len) return a.len ? 1 : -1;
    return sfti_bytes_compare(whole_a, whole_b);
}

/* ── Letters and digits ── */

char cli_lower(char c) {
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

char cli_upper(char c) {
    return c >= 'a' && c <= 'z' ? (char)(c - 'a' + 'A') : c;
}

bool cli_same_letters(sft_span a, sft_span b) {
    for (size_t i = 0; a.len == b.len && i < a.len; i++)
        if (cli_lower(a.data[i]) != cli_lower(b.data[i])) return false;
    return a.len == b.len;
}

bool cli_ends_with(sft_span text, const char *suffix) {
    sft_span want = sft_span_cstr(suffix), end = { text.data, want.len };
    if (text.len <= want.len) return false;
    end.data += text.len - want.len;
    return cli_same_letters(end, want);
}

bool cli_parse_number(const char *text, uint64_t most, uint64_t *out) {
    const char *at = text;
    for (*out = 0; *at >= '0' && *at <= '9' && *out <= most; at++)
        if (!sfti_mul(*out, 10, out) || !sfti_add(*out, (uint64_t)(*at - '0'), out)) return false;
    return at > text && !*at && *out <= most;
}

sft_span cli_cut(sft_span text, size_t most) {
    if (text.len <= most) return text;
    while (most > 0 && ((unsigned char)text.data[most] & 0xC0) == 0x80) most--;
    return (sft_span){ text.data, most };
}

/* ── Words as people write them ── */

static bool is_gap(char c) {
    return c == ' ' || c == '-' || c == '_' || c == '.';
}

static bool is_digit_at(sft_span text, size_t i) {
    return i < text.len && text.data[i] >= '0' && text.data[i] <= '9';
}

/* A gap that the other text does not have: "flux1" is "flux.1", but "15" is not "1.5". */
static bool can_skip(sft_span text, size_t i) {
    return is_gap(text.data[i]) && i > 0 && i + 1 < text.len
        && !(is_digit_at(text, i - 1) && is_digit_at(text, i + 1));
}

static bool loose_match(sft_span text, sft_span word) {
    size_t i = 0, j = 0;
    while (j < word.len) {
        bool same = i < text.len && (cli_lower(text.data[i]) == cli_lower(word.data[j])
                                     || (is_gap(text.data[i]) && is_gap(word.data[j])));
        if (same) i++, j++;
        else if (can_skip(word, j)) j++;
        else if (i < text.len && can_skip(text, i)) i++;
        else return false;
    }
    return true;
}

bool cli_loose_has(sft_span text, sft_span word) {
    for (size_t i = 0; i < text.len; i++) {
        if (i > 0 && is_gap(text.data[i]) && !is_gap(*word.data)) continue;
        if (loose_match((sft_span){ text.data + i, text.len - i }, word)) return true;
    }
    return false;
}
