/* Words that most captions of a training share. */
#include "label/words/triggers.h"

#include <string.h>

#define PHRASE_TRUST 70
#define WORD_TRUST 65
#define PHRASE_SHARE 0.6
#define WORD_SHARE 0.9
#define PHRASE_WORDS 12
#define PHRASE_TRIES 16
#define VOCABULARY ((size_t)1 << 20)

/* ── Words of a caption ── */

static bool word_byte(char c) {
    return sfti_word_byte(c) || c == '_' || c == '\'' || c == '-';
}

#define NEXT_WORD(rest, word) sfti_next_word(rest, word, word_byte)

/* "IT", "HER": where captions have small letters, too, a word in capitals is no function word. */
static bool is_spelled_out(const sfti_tags *tags, sft_span word) {
    return tags->small_letters && word.len > 1 && word.data[1] >= 'A' && word.data[1] <= 'Z';
}

static bool says_nothing(const sfti_tags *tags, sft_span word) {
    return sfti_is_common_word(word) && !is_spelled_out(tags, word);
}

/* ── How many captions have a word ── */

typedef struct word_row {
    sft_span text;
    uint64_t count;
    uint32_t seen; /* the caption that counted last, and one */
} word_row;

typedef struct word_count {
    word_row *rows;
    size_t count, cap;
    sfti_names names;
    const uint64_t *seed;
} word_count;

static sft_span word_text_at(const void *ctx, uint32_t entry) {
    return ((const word_count *)ctx)->rows[entry].text;
}

static bool begin_words(word_count *words, sfti_tags *tags) {
    size_t bytes = 0;
    memset(words, 0, sizeof *words);
    for (size_t i = 0; i < tags->row_count; i++) bytes += tags->rows[i].text.len / 4 + 1;
    words->cap = bytes < VOCABULARY ? bytes : VOCABULARY;
    words->seed = tags->seed;
    words->rows = sfti_arena_take(&tags->arena, words->cap * sizeof *words->rows);
    if (words->rows
        && sfti_names_begin(&words->names, words->cap, tags->seed, word_text_at, words,
                            &tags->arena))
        return true;
    tags->info->code = SFT_OUT_OF_MEMORY;
    return false;
}

static void count_word(word_count *words, sft_span text, uint64_t count, uint32_t caption) {
    uint32_t row = sfti_names_find(&words->names, text);
    if (row == SFTI_NO_NAME) {
        if (words->count == words->cap) return;
        row = (uint32_t)words->count++;
        words->rows[row] = (word_row){ text, 0, 0 };
        sfti_names_put(&words->names, text, sfti_names_hash(text, words->seed), row);
    }
    if (words->rows[row].seen == caption + 1) return;
    words->rows[row].seen = caption + 1;
    words->rows[row].count += count;
}

static void count_words(word_count *words, const sfti_tags *tags) {
    for (size_t i = 0; i < tags->row_count; i++) {
        sft_span rest = tags->rows[i].text, word;
        if (tags->rows[i].total == 0) continue;
        while (NEXT_WORD(&rest, &word))
            if (word.len >= 3 && word.len <= SFTI_WORD_MOST)
                count_word(words, word, tags->rows[i].total, (uint32_t)i);
    }
}

/* ── The words most captions begin with ── */

/* How many leading words two texts share, at most `most`. */
static size_t shared_words(sft_span a, sft_span b, size_t most) {
    size_t count = 0;
    sft_span x, y;
    while (count < most && NEXT_WORD(&a, &x) && NEXT_WORD(&b, &y) && sft_span_equal(x, y))
        count++;
    return count;
}

/* Leading words of `first` that enough captions share; at least two, or 0. */
static size_t phrase_length(const sfti_tags *tags, sft_span first, uint64_t captions) {
    uint64_t shared[PHRASE_WORDS + 1] = { 0 };
    size_t words = 0;
    for (size_t i = 0; i < tags->row_count; i++) {
        uint64_t total = tags->rows[i].total;
        size_t n = total ? shared_words(first, tags->rows[i].text, PHRASE_WORDS) : 0;
        for (size_t k = 1; k <= n; k++) shared[k] += total;
    }
    for (size_t k = 2; k <= PHRASE_WORDS; k++)
        if ((double)shared[k] >= PHRASE_SHARE * (double)captions && shared[k] > 1) words = k;
    return words;
}

/* The first so many words of a text, without function words at their end; empty unless one
 * of them says something. */
static sft_span leading(const sfti_tags *tags, sft_span text, size_t words) {
    sft_span rest = text, word, phrase = { text.data, 0 };
    const char *begin = NULL;
    bool telling = false;
    for (size_t i = 0; i < words && NEXT_WORD(&rest, &word); i++) {
        if (!begin) begin = word.data;
        bool own = is_spelled_out(tags, word);
        if (!own && sfti_is_function_word(word)) continue;
        telling = telling || own || (!sfti_is_common_word(word) && !sfti_is_class_noun(word));
        phrase = (sft_span){ begin, (size_t)(word.data + word.len - begin) };
    }
    if (!telling || phrase.len > SFTI_WORD_MOST) phrase.len = 0;
    return phrase;
}

/* Captions are cut at commas: a part that goes on with a sentence begins no caption. Where captions
 * begin with a capital, as the first row does, that is any with a small function word. */
static sft_span shared_phrase(const sfti_tags *tags, uint64_t captions) {
    sft_span best = { "", 0 }, rest, word;
    bool capital = false;
    size_t tries = 0;
    for (size_t i = 0; i < tags->row_count && tries < PHRASE_TRIES; i++) {
        sft_span text = tags->rows[i].text;
        if (tags->rows[i].total == 0) continue;
        rest = text;
        if (!NEXT_WORD(&rest, &word)) continue;
        if (tries == 0) capital = *word.data >= 'A' && *word.data <= 'Z';
        if (sfti_number_among("and but or which while", word) >= 0
            || (capital && *word.data >= 'a' && sfti_is_function_word(word)))
            continue;
        tries++;
        sft_span phrase = leading(tags, text, phrase_length(tags, text, captions));
        if (phrase.len > best.len) best = phrase;
    }
    return best;
}

/* ── What comes of it ── */

static void frequent_words(sfti_tags *tags, const word_count *words, uint64_t captions) {
    sfti_candidates named = { .count = 0 }, all = { .count = 0 };
    for (size_t i = 0, judged = 0; i < words->count && judged < SFTI_JUDGED_MOST; i++) {
        const word_row *row = &words->rows[i];
        sfti_candidate one = { row->text, { "", 0 }, WORD_TRUST,
                               sfti_share(row->count, captions), i, true, false };
        if (one.coverage < WORD_SHARE || captions < 3) continue;
        if (says_nothing(tags, row->text) || sfti_is_generic_tag(row->text)) continue;
        judged++;
        bool has_name = sfti_is_declared(tags->info, row->text) || sfti_has_name(tags, row->text);
        sfti_candidate_put(has_name ? &named : &all, &one);
    }
    const sfti_candidates *list = named.count > 0 ? &named : &all;
    for (size_t i = 0; i < list->count && i < SFTI_INFERRED_MOST - 1; i++)
        sfti_list_word(tags, &list->best[i]);
}

/* The words instead of the sentences, for the list of frequent ones. */
static void keep_words(sfti_tags *tags, const word_count *words) {
    size_t count = 0;
    for (size_t i = 0; i < words->count && count < tags->pair_cap; i++)
        if (!says_nothing(tags, words->rows[i].text))
            tags->rows[count++] = (sfti_tag_row){ words->rows[i].text, words->rows[i].count };
    tags->row_count = count;
}

void sfti_sentence_words(sfti_tags *tags) {
    word_count words;
    uint64_t sum = 0;
    for (size_t i = 0; i < tags->row_count; i++) {
        sft_span text = tags->rows[i].text;
        sum += tags->rows[i].total;
        for (size_t k = 0; k < text.len && !tags->small_letters; k++) /* and letters beyond ASCII */
            tags->small_letters = (unsigned char)text.data[k] >= 'a';
    }
    uint64_t captions = tags->known ? tags->images : sum;
    sft_span phrase = shared_phrase(tags, captions);
    sfti_candidate begin = { phrase, { "", 0 }, PHRASE_TRUST, -1, 0, false, false };
    if (phrase.len > 0 && captions >= 3) sfti_list_word(tags, &begin);
    if (!begin_words(&words, tags)) return;
    count_words(&words, tags);
    frequent_words(tags, &words, captions);
    keep_words(tags, &words);
    tags->images = captions;
}
