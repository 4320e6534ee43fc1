/* Words that call a model, found in what it was trained on: the parts of sfti_info_words.
 * tagfreq.c reads ss_tag_frequency in order; tagwords.c judges tags, captions.c captions
 * that are sentences, both by names.c; vocabulary.c knows words that mean nothing special;
 * keys.c says when words are equal; triggers.c brings declared and inferred words together.
 */
#ifndef SFTI_TRIGGERS_H
#define SFTI_TRIGGERS_H

#include "base/names.h"
#include "label/cursor.h"

/* What one header may cost: pairs beyond, and folders beyond, are passed over. */
#define SFTI_TAG_PAIRS ((size_t)1 << 21)
#define SFTI_TAG_FOLDERS 4096
/* What is longer is a caption, no word. */
#define SFTI_WORD_MOST 200

typedef struct sfti_tag_folder {
    sft_span name, rest; /* rest: what follows "10_", or all of it */
    uint64_t repeats;    /* the number before, or 0 */
    uint64_t images;
    bool known;          /* images were recorded, not guessed */
    bool regularisation;
    uint32_t concept;    /* folders of the same rest are one concept */
    uint64_t most, sum;  /* of its counts */
    size_t tags;
} sfti_tag_folder;

typedef struct sfti_tag_pair {
    uint32_t tag, folder;
    uint64_t count;
} sfti_tag_pair;

typedef struct sfti_tag_row {
    sft_span text;  /* trimmed */
    uint64_t total; /* over folders that count */
} sfti_tag_row;

/* In the order of the text. */
typedef struct sfti_tags {
    sft_info *info;
    sfti_arena arena; /* freed by who read */
    sfti_tag_folder *folders;
    sfti_tag_pair *pairs;
    sfti_tag_row *rows;
    size_t folder_count, pair_count, row_count;
    size_t folder_cap, pair_cap;
    sfti_names folder_names, row_names;
    uint64_t seed[2];
    sft_span separator; /* keep_tokens_separator, or empty */
    bool separates[256]; /* bytes that begin a separator */
    uint64_t images; /* of all folders that count and have tags */
    bool known;      /* all of them recorded */
    bool small_letters; /* its captions are not all in capitals */
} sfti_tags;

/* Zeroed but for info. False when there are no tags, or memory ran out (info->code). */
bool sfti_tags_read(sfti_tags *tags);
/* Words for info->triggers and info->tags. */
void sfti_tag_words(sfti_tags *tags);
void sfti_sentence_words(sfti_tags *tags);

/* An inferred word; it is listed only if it is not declared. */
typedef struct sfti_candidate {
    sft_span text, folder;
    int trust;
    double coverage;
    size_t order; /* in the text */
    bool everywhere; /* in nearly all images of all folders */
    bool named;   /* declared, or part of a name: the others step back */
} sfti_candidate;

#define SFTI_INFERRED_MOST 10

/* The best ten: by trust, then in order. */
typedef struct sfti_candidates {
    sfti_candidate best[SFTI_INFERRED_MOST + 1];
    size_t count;
} sfti_candidates;
void sfti_candidate_put(sfti_candidates *all, const sfti_candidate *one);

/* How many of the images, 0 to 1. */
double sfti_share(uint64_t count, uint64_t images);
/* One more inferred word, as names spell it. */
void sfti_list_word(sfti_tags *tags, const sfti_candidate *one);

/* A text as it is pasted into a prompt: brackets escaped, unless they give a weight. */
sft_span sfti_prompt_of(sft_info *info, sft_span text);

/* Words below that trust are not listed. */
#define SFTI_WORD_TRUST 60
/* So many tags or words of captions are judged; real files have a handful. */
#define SFTI_JUDGED_MOST 1000
/* A backslash that frees the bracket after it. */
bool sfti_frees_bracket(sft_span text, size_t i);
/* Letters lower-cased, escaped brackets freed, '_' as a space: equal keys are one word.
 * Writes at most text.len bytes. */
size_t sfti_word_key(sft_span text, char *out);
bool sfti_same_word(sft_span a, sft_span b);
/* Whether a word is one of a list with commas. */
bool sfti_lists_word(sft_span text, sft_span word);
/* Whether a word is declared, alone or as one of a list: in the first 64 KB of what is. */
bool sfti_is_declared(sft_info *info, sft_span word);
/* Whether a word of it, of three letters or more and not everyone's, is a word of
 * ss_output_name or of a folder's name. */
bool sfti_has_name(const sfti_tags *tags, sft_span word);

/* vocabulary.c; words in any case. */
bool sfti_is_generic_tag(sft_span tag);    /* 1girl, solo, long hair, best quality */
bool sfti_is_common_word(sft_span word);   /* the, with, photo, wearing */
bool sfti_is_function_word(sft_span word); /* the, with, of: no phrase ends so */
bool sfti_is_class_noun(sft_span word);    /* man, woman, person, dog, style */
bool sfti_is_plain_word(sft_span word);    /* might be in a dictionary */
bool sfti_is_weak_name(sft_span word);     /* lora, style, girl, xl, v2: in anyone's name */

#endif
