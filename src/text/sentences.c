/* Words that a sentence of a description or a card introduces. Tests: test_links.c. */
#include "text/links.h"

#define WORDS_MOST 200

/* What introduces trigger words in prose; the longest of those that begin alike first. */
static const char *const introductions[] = {
    "trigger words", "trigger word(s)", "trigger word", "triggerwords", "triggerword",
    "trigger phrases", "trigger phrase", "trigger tokens", "trigger token", "trigger tags",
    "trigger tag", "trigger prompt", "triggers", "trigger", "activation words",
    "activation word", "activation tokens", "activation token", "activation tags",
    "activation tag", "activation text", "activation phrase", "activation keyword",
};

static const char *const refusals[] = {
    "no ", "not ", "none", "n/a", "nothing", "needed", "required", "optional", "unnecessary",
    "unknown", "in the ", "use the ", "check the ", "see ", "below", "above", "listed",
};

static bool letter(char c) {
    return ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') || (unsigned char)c >= 0x80;
}

static sft_span skip_marks(sft_span text, const char *marks) {
    while (text.len > 0 && *text.data != '\0' && strchr(marks, *text.data))
        text = sfti_from(text, 1);
    return text;
}

static bool skip_word(sft_span *text, const char *word) {
    size_t len = strlen(word);
    if (!sfti_starts_with(*text, word) || (text->len > len && letter(text->data[len])))
        return false;
    *text = sfti_from(*text, len);
    return true;
}

static const char wide_colon[] = "\xEF\xBC\x9A"; /* "：" */

/* After an introduction: ":", "=", "is", "are"; then the words begin. */
static bool skip_verb(sft_span *text) {
    static const char *const verbs[] = { "is", "are" };
    bool verb = false;
    *text = skip_marks(*text, " \t*_`)");
    for (size_t i = 0; i < 2 && !verb; i++) verb = skip_word(text, verbs[i]);
    *text = skip_marks(*text, " \t*_)");
    if (text->len > 0 && (*text->data == ':' || *text->data == '=')) {
        verb = true;
        *text = skip_marks(*text, ":=");
    } else if (sfti_skip(text, wide_colon)) {
        verb = true;
    }
    *text = skip_marks(*text, " \t*_");
    return verb;
}

/* Up to the closing quote, if the text begins with an opening one. */
static bool quoted_words(sft_span *text) {
    static const char *const quotes[] = { "\"", "`", "'", "\xE2\x80\x9C", NULL };
    static const char *const ends[] = { "\"", "`", "'", "\xE2\x80\x9D" };
    for (size_t i = 0; quotes[i]; i++) {
        if (!sfti_starts_with(*text, quotes[i])) continue;
        sft_span inside = { text->data + strlen(quotes[i]), text->len - strlen(quotes[i]) };
        if (inside.len > WORDS_MOST + 4) inside.len = WORDS_MOST + 4;
        sft_span end = sfti_find_letters(inside, ends[i]);
        if (!end.data) return false;
        *text = (sft_span){ inside.data, inside.len - end.len };
        return true;
    }
    return false;
}

/* "。", "；", "）", "！" */
static const char *const wide_stops[] = { "\xE3\x80\x82", "\xEF\xBC\x9B", "\xEF\xBC\x89",
                                          "\xEF\xBC\x81" };

/* Up to the end of the line or sentence; empty where that is too far for words, so that the
 * search costs the same at each introduction. */
static sft_span plain_words(sft_span text) {
    size_t end = 0;
    for (; end < text.len; end++) {
        char c = text.data[end];
        bool last = end + 1 == text.len || strchr(" \t\r\n", text.data[end + 1]) != NULL;
        if (c == '\n' || c == '\r' || c == ';' || c == '<' || (c == '.' && last)
            || SFTI_ONE_OF(sfti_from(text, end), wide_stops, sfti_starts_with))
            break;
        if (end > 2 * WORDS_MOST) return (sft_span){ text.data, 0 };
    }
    text.len = end;
    while (text.len > 0 && strchr(" \t.,*_`\"'", text.data[text.len - 1])) text.len--;
    return text;
}

/* The words that follow an introduction; empty if they are none. */
static sft_span words_behind(sft_span text) {
    bool quoted = quoted_words(&text);
    if (!quoted) text = plain_words(text);
    if (text.len > WORDS_MOST || sfti_contains(text, "http")
        || (!quoted && SFTI_ONE_OF(text, refusals, sfti_starts_with)))
        text.len = 0;
    return text;
}

/* At a "t" or "a": the bytes of an introduction with its verb, or 0; *words what follows. */
static size_t introduction(sft_span rest, sft_span *words) {
    for (size_t i = 0; i < SFTI_COUNT(introductions); i++) {
        size_t len = strlen(introductions[i]);
        if (!sfti_starts_with(rest, introductions[i])) continue;
        if (rest.len > len && letter(rest.data[len])
            && !sfti_starts_with(sfti_from(rest, len), wide_colon))
            continue;
        *words = (sft_span){ rest.data + len, rest.len - len };
        return skip_verb(words) ? len : 0;
    }
    return 0;
}

/* "use `x` to trigger": the words, data NULL when it is not that. */
static sft_span used_to_trigger(sft_span rest) {
    sft_span none = { NULL, 0 }, words;
    if (!skip_word(&rest, "use")) return none;
    words = rest = skip_marks(rest, " ");
    if (!quoted_words(&words)) return none;
    size_t past = (size_t)(words.data + words.len - rest.data);
    rest = (sft_span){ rest.data + past, rest.len - past };
    rest = skip_marks(rest, " `\"'\xE2\x80\x9D");
    return sfti_starts_with(rest, "to trigger") ? words : none;
}

/* "No trigger word: works by itself", "without any trigger word" */
static bool follows_denial(sft_span text, size_t at) {
    static const char *const before[] = { "no", "any", "without" };
    while (at > 0 && strchr(" \t*_", text.data[at - 1]) && text.data[at - 1]) at--;
    size_t begin = at;
    while (begin > 0 && at - begin < 8 && letter(text.data[begin - 1])) begin--;
    sft_span word = { text.data + begin, at - begin };
    return SFTI_ONE_OF(word, before, sfti_same_letters);
}

bool sfti_next_introduced(sft_span text, size_t *at, sft_span *words) {
    for (size_t i = *at; i + 4 < text.len; i++) {
        sft_span rest = sfti_from(text, i);
        char c = (char)(*rest.data | 0x20);
        if ((c != 't' && c != 'a' && c != 'u')
            || (i > 0 && letter(rest.data[-1]) && (unsigned char)rest.data[-1] < 0x80))
            continue;
        if (c == 'u') {
            *words = used_to_trigger(rest);
        } else {
            size_t len = introduction(rest, words);
            if (len == 0 || follows_denial(text, i)) continue;
            *words = words_behind(*words);
            i += len - 1;
        }
        if (words->len == 0) continue;
        *at = i + 1;
        return true;
    }
    return false;
}
