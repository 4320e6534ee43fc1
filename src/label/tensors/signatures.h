/* What tensor names and shapes tell: rows of records that describe a model, and how they are tried.
 *
 * What one clause asks of names and shapes:
 *   name            a tensor of that name, after the view's prefix
 *   name[3072,64]   of that shape; "*" is any size, "9|8" either; "[...,768]" looks at the
 *                   last dimension only
 *   layers.#.x      "#" is any number below 128
 *   body.*          some name begins so
 *   ^name           the prefix of the view is not put before it
 *   count(NAME.#) = N, @KEY = VALUE  see sfti_predicate
 * Where NAME.weight is missing, NAME.qweight, NAME.weight_packed or NAME.W_q stands for it. Shapes
 * are those that the model has (shapes.c); of a packed tensor they are not always to be seen.
 */
#ifndef SFTI_SIGNATURES_H
#define SFTI_SIGNATURES_H

#include "label/info.h"
#include "label/records.h"
#include "packed/shapes.h"

/* A model's names in order, seen after a prefix. */
typedef struct sfti_view {
    sft_info *info;
    const sft_tensor *const *by_name; /* count tensors of the set */
    size_t count;
    const uint64_t *tails; /* a bit for the end of each name (match.c) */
    char prefix[160];
} sfti_view;

#define SFTI_EVIDENCE 8
typedef struct sfti_evidence {
    const sft_tensor *tensors[SFTI_EVIDENCE];
    size_t count;
} sfti_evidence;

typedef struct sfti_matched {
    const char *kind, *architecture; /* kind NULL: nothing */
    int trust;
    sfti_evidence evidence;
    const sfti_record_row *row; /* that tells, or one of those that hold */
    const char *rivals[2]; /* what fits as well, where the architecture is NULL for that; or NULL */
} sfti_matched;

/* The trust of what tensors do not prove. */
#define SFTI_GUESS 60

/* Sort the names; false when out of memory (told in info->code). */
bool sfti_view_open(sft_info *info, sfti_view *view);
/* The same names after another prefix and more, cut to nothing that fits if too long. */
sfti_view sfti_view_after(const sfti_view *view, const char *prefix, sft_span more);
/* prefix + name, or prefix + NAME.qweight for NAME.weight; NULL when there is none. */
const sft_tensor *sfti_view_find(const sfti_view *view, const char *name);
/* Tensors, in order of name, whose names begin with prefix + begin: [*from, *to), if there are. */
bool sfti_view_range(const sfti_view *view, const char *begin, size_t *from, size_t *to);
bool sfti_view_any(const sfti_view *view, const char *begin);
/* begin + end, where the tensor at i begins so: most stand near it. */
const sft_tensor *sfti_view_near(const sfti_view *view, size_t i, sft_span begin, const char *end);
/* For each tensor, in order of name, the first row of a table, whose rows begin with a text, that
 * its name begins with: from 1 on, 0 for none. NULL when out of memory. */
uint8_t *sfti_view_rows(const sfti_view *view, const void *rows, size_t stride, size_t count);

/* Whether one alternative of a clause holds for what ctx is, and *found, the tensor that shows it.
 * SFTI_HIDDEN: a packed tensor lets nobody see. */
typedef enum sfti_truth { SFTI_FALSE = 0, SFTI_HIDDEN, SFTI_TRUE } sfti_truth;
typedef sfti_truth sfti_alternative(const void *ctx, sft_span text, const sft_tensor **found);

/* What a clause asks of the metadata (predicates.c). */
bool sfti_metadata_says(sft_info *info, const sfti_predicate *predicate);

/* Whether all clauses hold, each in a line; *packed (if not NULL) counts shapes that could not be
 * asked as held, and says so. */
bool sfti_hold(const void *ctx, sfti_alternative *fits, sft_span clauses,
               sfti_evidence *evidence, bool *packed);
/* The same of the names a view shows. */
bool sfti_clauses_hold(const sfti_view *view, sft_span clauses, sfti_evidence *evidence,
                       bool *packed);
/* Rows that hold (choose.c). */
#define SFTI_HELD 32
typedef struct sfti_held_rows {
    const sfti_record_row *rows[SFTI_HELD];
    bool hidden[SFTI_HELD]; /* it holds as far as packed tensors let one see */
    size_t count;           /* SFTI_HELD + 1: more */
} sfti_held_rows;
void sfti_held_add(sfti_held_rows *held, const sfti_record_row *row, bool hidden);
/* The kind that all of them tell, or NULL. */
const char *sfti_held_kind(const sfti_records *records, const sfti_held_rows *held);
typedef struct sfti_chosen {
    const sfti_record_row *row;    /* it is over all others; NULL: none is, or one may hide */
    const sfti_record *common;     /* then: what they have in common, or NULL */
    const sfti_record_row *tops[2]; /* two that none is over, if none hides; else NULL */
} sfti_chosen;
sfti_chosen sfti_held_choose(const sfti_records *records, const sfti_held_rows *held);

/* The rows of a table after each of the prefixes, which are words and follow one more; *at is the
 * view that saw it. */
bool sfti_match_after(const sfti_view *view, const char *before, sft_span prefixes,
                      sfti_table_id table, sfti_matched *out, sfti_view *at);
/* All variants of an architecture that hold as one fact, joined by "+" in order of letters, by its
 * rows of that word; the same for the names a view shows. */
void sfti_add_variants(sft_info *info, const void *ctx, sfti_alternative *fits, sfti_word word,
                       const char *architecture, int trust);
void sfti_match_variants(const sfti_view *view, const char *architecture, int trust);
/* Whether a denoiser has matrices that no model of this architecture, or kin of it, has by its rows
 * "modules" (strangers.c). False where these have none, or few of its names. */
bool sfti_model_has_others(const sfti_view *at, const char *architecture);

/* "double_blocks.0.img_attn.proj.weight [3072,3072]" to info->evidence, at most 8. */
void sfti_add_evidence(sft_info *info, const sft_tensor *tensor);
/* A fact with the source "tensors". */
void sfti_add_tensor_fact(sft_info *info, sft_fact fact, const char *value, int trust);
/* The same of a row's, or NULL. */
void sfti_add_row_fact(sft_info *info, sft_fact fact, const char *value, int trust,
                       const sfti_record_row *row);

/* Tries a table's rows after before and each of its prefixes; *at is the view that saw it. */
bool sfti_match_table(const sfti_view *view, const char *before, sfti_table_id id,
                      sfti_matched *out, sfti_view *at);
/* Layers, hidden size and the like into info->llm, as far as shapes tell them. */
void sfti_language_sizes(const sfti_view *at, const char *architecture);

/* ── Rows by the end of a name (suffixes.c) ── */

#define SFTI_SUFFIXES 255

/* A table whose rows have their end at the same place: two bytes at least, and no end of
 * ".weight" nor that and one byte. */
typedef struct sfti_suffixes {
    const sft_span *end; /* of the first row */
    size_t stride;
    uint8_t first[512];      /* private */
    uint8_t next[SFTI_SUFFIXES]; /* private */
} sfti_suffixes;

void sfti_suffixes_open(sfti_suffixes *suffixes, const sft_span *end, size_t stride, size_t count);
/* The first row whose end the name has: its number from 1 on, or 0. */
size_t sfti_suffixes_find(const sfti_suffixes *suffixes, sft_span name);

/* ── Sizes of components (quantisation.c) ── */

typedef struct sfti_quant {
    const char *id;      /* "gptq-4bit", …, or NULL */
    uint32_t marks, scale, declared; /* private */
    sft_info *info;      /* private */
    const sfti_view *view; /* private; lives as long */
    const void *ends;    /* private */
    const struct sfti_codes *codes; /* private */
    const struct quant_bits *by; /* private; NULL: all layers have the same bits */
    uint64_t group;      /* private: of columns */
    uint32_t bits;       /* of packed weights; 0: there are none, or layers differ */
    bool guessed;        /* the bits */
    bool id_guessed;     /* they are part of the id, or the row is a guess */
    bool floats;         /* packed weights are, in bytes */
    bool of_row;         /* private: the row says the bits */
    bool first_read;     /* private: of layers whose shape is in the file */
    sfti_suffixes suffixes;      /* private */
} sfti_quant;

/* Sums of some tensors. */
typedef struct sfti_sums {
    uint64_t tensors, bytes, packed; /* packed: bytes of whole numbers and what accompanies codes */
    sfti_weights weights;
    uint64_t by_dtype[SFT_DTYPE_COUNT]; /* bytes */
} sfti_sums;

sfti_quant sfti_quantisation(const sfti_view *view);
const char *sfti_precision(sft_info *info, const sfti_sums *sums, const sfti_quant *quant);
/* The dtype that holds nine tenths of the bytes, or SFT_DTYPE_COUNT. */
int sfti_main_dtype(const sfti_sums *sums);

/* ── Numbers of weights (counts.c) ── */

/* Adds the tensor at i of the view, in order of name. */
void sfti_sum(sfti_sums *sums, const sfti_quant *quant, size_t i);
void sfti_sum_all(sfti_sums *sums, const sfti_sums *more);

/* Push a component with the sums; the trust is the architecture's. */
void sfti_add_component(sft_info *info, sfti_list *list, const char *part,
                        const char *architecture, int trust, const sfti_sums *sums);

/* ── Other kinds (adapters.c, embeddings.c); false if it is none ── */

bool sfti_info_adapter(const sfti_view *view, const sfti_quant *quant);
bool sfti_info_embedding(const sfti_view *view);
/* A learned token, once, at 90. */
void sfti_add_token(sft_info *info, sft_span token, sft_span source);

#endif
