/* Words that are never a model's own: common tags, nouns of classes, versions. */
#include "label/words/triggers.h"

#include "base/order.h"
#include "label/records.h"

#include <string.h>

/* The word of a list, between commas, that holds a byte. */
static sft_span word_around(sft_span list, size_t at) {
    size_t end = at;
    while (at > 0 && list.data[at - 1] != ',') at--;
    while (end < list.len && list.data[end] != ',') end++;
    return (sft_span){ list.data + at, end - at };
}

/* Each row of data/words.txt is sorted by bytes, and has words as sfti_word_key spells them. */
static bool is_among(sfti_producer list, sft_span text) {
    const sfti_records *records = sfti_records_built_in();
    char key[SFTI_WORD_MOST];
    if (text.len > sizeof key) return false;
    sft_span word = { key, sfti_word_key(text, key) };
    SFTI_EACH_ROW(row, records, SFTI_SAYS, list) {
        sft_span rest = sfti_row_text(row);
        while (rest.len > 0) {
            size_t middle = rest.len / 2;
            if (middle && rest.data[middle] == ',') middle--;
            sft_span one = word_around(rest, middle);
            size_t begin = (size_t)(one.data - rest.data), end = begin + one.len;
            int order = sfti_bytes_compare(sfti_trim(one), word);
            if (order == 0) return true;
            if (order > 0) rest.len = begin ? begin - 1 : 0;
            else rest = sfti_from(rest, end < rest.len ? end + 1 : end);
        }
    }
    return false;
}

/* "blue hair", "2 girls", "4koma": tags that stand on pictures of anything. */
static bool generic_shape(sft_span tag) {
    static const char *const ends[] = {
        " hair", " eyes", " background", "girl", "girls", "boy", "boys", " breasts", " quality",
        " sleeves", " skirt", " shirt", " dress", " legwear", " footwear", " commentary",
        " username", " sample", " id",
    };
    bool counted = tag.data[0] >= '0' && tag.data[0] <= '9';
    for (size_t i = 0; i < SFTI_COUNT(ends); i++)
        if (sfti_ends_with(tag, ends[i]) && (ends[i][0] == ' ' || counted)) return true;
    return false;
}

/* "year 2024", "year2024", "2024" */
static bool is_year(sft_span plain) {
    uint64_t year;
    bool said = sfti_skip(&plain, "year");
    return sfti_parse_uint(sfti_trim(plain), &year)
        && (said || (plain.len == 4 && year >= 1900 && year < 2100));
}

bool sfti_is_generic_tag(sft_span tag) {
    char key[SFTI_WORD_MOST];
    if (tag.len == 0 || tag.len > sizeof key) return false;
    sft_span plain = { key, sfti_word_key(tag, key) };
    return sfti_begins(plain, "rating ") || sfti_begins(plain, "rating:") || is_year(plain)
        || is_among(SFTI_SAYS_GENERIC, plain) || is_among(SFTI_SAYS_NOUN, plain)
        || generic_shape(plain);
}

bool sfti_is_function_word(sft_span word) {
    return is_among(SFTI_SAYS_FUNCTION, word);
}

bool sfti_is_common_word(sft_span word) {
    return is_among(SFTI_SAYS_FUNCTION, word) || is_among(SFTI_SAYS_COMMON, word);
}

bool sfti_is_class_noun(sft_span word) {
    return is_among(SFTI_SAYS_NOUN, word);
}

static bool is_version(sft_span word) {
    size_t i = word.len > 1 && (word.data[0] | 0x20) == 'v';
    for (size_t j = i; j < word.len; j++)
        if (word.data[j] < '0' || word.data[j] > '9') return false;
    return word.len > i;
}

bool sfti_is_weak_name(sft_span word) {
    return is_version(word) || is_among(SFTI_SAYS_WEAK, word);
}

bool sfti_is_plain_word(sft_span word) {
    bool vowel = false;
    for (size_t i = 0; i < word.len; i++) {
        char c = word.data[i];
        if ((c >= '0' && c <= '9') || c == '_') return false;
        vowel = vowel || memchr("aeiouyAEIOUY", c, 12) || (unsigned char)c >= 0x80;
    }
    return vowel;
}
