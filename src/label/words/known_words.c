/* What words are held against, and what becomes of those that are found. */
#include "label/words/triggers.h"

#include <string.h>

#define NAME_WORDS 64

/* ── Names ── */

/* "mikumoV2", "mikumo2": without the version. */
static sft_span without_version(sft_span word) {
    size_t len = word.len;
    while (len > 0 && word.data[len - 1] >= '0' && word.data[len - 1] <= '9') len--;
    if (len == word.len) return word;
    if (len > 0 && (word.data[len - 1] | 0x20) == 'v') len--;
    return (sft_span){ word.data, len };
}

/* Whether two names share a word that is not everyone's. */
static bool share_word(sft_span a, sft_span b) {
    sft_span word, other, rest;
    while (sfti_next_word(&a, &word, sfti_word_byte)) {
        if (word.len < 3 || word.len > SFTI_WORD_MOST || sfti_is_weak_name(word)
            || sfti_is_function_word(word))
            continue;
        rest = b;
        for (size_t n = 0; n < NAME_WORDS && sfti_next_word(&rest, &other, sfti_word_byte); n++)
            if (sfti_same_word(word, other) || sfti_same_word(word, without_version(other)))
                return true;
    }
    return false;
}

bool sfti_has_name(const sfti_tags *tags, sft_span word) {
    sft_span name;
    if (sfti_info_metadata(tags->info, "ss_output_name", &name) && share_word(word, name))
        return true;
    for (size_t i = 0; i < tags->folder_count && i < NAME_WORDS; i++)
        if (!tags->folders[i].regularisation && share_word(word, tags->folders[i].rest))
            return true;
    return false;
}

/* Where `name` has the word with other capitals, as a word of its own; else empty. */
static sft_span spelled_in(sft_span name, sft_span word) {
    for (size_t i = 0; i + word.len <= name.len && i < 1024; i++) {
        size_t n = 0, end = i + word.len;
        while (n < word.len && (name.data[i + n] == word.data[n]
                                || (name.data[i + n] >= 'A' && name.data[i + n] <= 'Z'
                                    && (name.data[i + n] | 0x20) == word.data[n])))
            n++;
        if (n < word.len) continue;
        if (i > 0 && sfti_word_byte(name.data[i - 1])) continue;
        if (end < name.len && sfti_word_byte(name.data[end])) continue;
        return (sft_span){ name.data + i, word.len };
    }
    return (sft_span){ "", 0 };
}

/* The word as title, output name or folder spell it, else itself. */
static sft_span spelling(const sfti_tags *tags, sft_span word) {
    static const char *const keys[] = { "modelspec.title", "ss_output_name" };
    sft_span name, found;
    if (word.len == 0 || word.len > SFTI_WORD_MOST) return word;
    for (size_t i = 0; i < tags->folder_count && i < NAME_WORDS; i++) {
        found = spelled_in(tags->folders[i].rest, word);
        if (found.len > 0) return found;
    }
    for (size_t i = 0; i < SFTI_COUNT(keys); i++) {
        if (!sfti_info_metadata(tags->info, keys[i], &name)) continue;
        found = spelled_in(name, word);
        if (found.len > 0) return found;
    }
    return word;
}

/* ── Declared words ── */

bool sfti_lists_word(sft_span text, sft_span word) {
    sft_span piece;
    while (sfti_next_piece(&text, ',', &piece))
        if (sfti_same_word(sfti_trim(piece), word)) return true;
    return false;
}

#define DECLARED_READ_MOST ((size_t)64 << 10) /* bytes compared with one word */

bool sfti_is_declared(sft_info *info, sft_span word) {
    size_t left = DECLARED_READ_MOST;
    for (const sfti_trigger *trigger = info->triggers.first; trigger; trigger = trigger->next) {
        if (trigger->trust < SFTI_WORD_TRUST || trigger->text.len > left) continue;
        left -= trigger->text.len;
        if (sfti_same_word(trigger->text, word) || sfti_lists_word(trigger->text, word))
            return true;
    }
    return false;
}

/* ── Inferred words ── */

void sfti_candidate_put(sfti_candidates *all, const sfti_candidate *one) {
    size_t at = all->count;
    while (at > 0 && all->best[at - 1].trust < one->trust) at--;
    if (at >= SFTI_INFERRED_MOST) return;
    memmove(&all->best[at + 1], &all->best[at], (all->count - at) * sizeof *all->best);
    all->best[at] = *one;
    if (all->count < SFTI_INFERRED_MOST) all->count++;
}

double sfti_share(uint64_t count, uint64_t images) {
    double p = images ? (double)count / (double)images : 0;
    return p > 1 ? 1 : p;
}

void sfti_list_word(sfti_tags *tags, const sfti_candidate *one) {
    sft_info *info = tags->info;
    sft_span text = sfti_info_copy(info, spelling(tags, one->text));
    sft_span folder = sfti_info_copy(info, one->folder);
    if (info->code) return;
    sfti_trigger *word = sfti_info_trigger_in(info, text, sft_span_cstr("header:ss_tag_frequency"),
                                              one->trust, -1, folder);
    if (word) word->coverage = one->coverage;
}
