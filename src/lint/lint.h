/* Records judged for the people who write them, above the label: what rows say of one another, what
 * is surely not meant, and how rows hold on a model. `safetensors records check` asks; nothing that
 * makes a label does. Tests: test_records_own.c, tests/cli/records. */
#ifndef SFTI_LINT_H
#define SFTI_LINT_H

#include "label/records.h"
#include "safetensors_info.h"

/* ── What rows say of one another (compare.c) ── */

/* *left: steps of about 20 ns, which each comparison takes from; at 0 no more is proved. */
#define SFTI_COMPARE_STEPS UINT64_C(250000000)

/* Whether the clauses of a row contradict each other; *why: the one that cannot hold. */
bool sfti_row_never_holds(const sfti_record_row *row, uint64_t *left, sft_span *why);

typedef enum sfti_overlap {
    SFTI_OVERLAP_NONE = 0, /* or none that is proved */
    SFTI_OVERLAP_SAME,     /* one holds exactly where the other does */
    SFTI_OVERLAP_WITHIN,   /* where the first holds the second does */
    SFTI_OVERLAP_AROUND,   /* where the second holds the first does */
    SFTI_OVERLAP_WORD      /* both claim a word */
} sfti_overlap;
/* Whether rows of a word are compared at all. */
bool sfti_rows_may_overlap(sfti_word word);
/* Two rows of records of which neither descends from the other; *why: a place in the first. */
sfti_overlap sfti_rows_overlap(const sfti_records *records, const sfti_record_row *a,
                               const sfti_record_row *b, uint64_t *left, sft_span *why);

/* What a row says that can be read but is surely not meant (slips.c). */
typedef enum sfti_slip_kind {
    SFTI_SLIP_PREFIX = 0, /* a name begins with what is taken off: detail */
    SFTI_SLIP_WEIGHT,     /* a module or layer ends in .weight */
    SFTI_SLIP_LAYOUT,     /* a layer begins with what only one layout has: detail */
    SFTI_SLIP_EXTENSION,  /* a word of files' names has an extension: detail */
    SFTI_SLIP_VARIANT     /* no slip: a variant that is new */
} sfti_slip_kind;
typedef struct sfti_slip {
    sfti_slip_kind kind;
    sft_span at, detail;
} sfti_slip;
/* At most so many; how many. */
size_t sfti_row_slips(const sfti_records *records, const sfti_record_row *row, sfti_slip *slips,
                      size_t most);

/* ── Rows tried on a model (trial.c) ── */

typedef enum sfti_holds {
    SFTI_HOLDS_NO = 0,
    SFTI_HOLDS_HIDDEN, /* as far as packed tensors let one see; a module that is not adapted */
    SFTI_HOLDS_YES
} sfti_holds;

/* A clause, or of modules a word behind one of its beginnings. */
typedef struct sfti_tried {
    sft_span text, begin;
    sfti_holds holds;
    const struct sft_tensor *tensor; /* that shows it, or whose shape or size differs, or NULL */
    uint64_t in, out; /* of a layer, 0 = not to be seen */
    uint64_t had, of; /* modules that are there, of those it stands for */
    char missing[256]; /* the first module that is not there, or "" */
} sfti_tried;
typedef struct sfti_row_tried {
    sfti_holds holds;
    uint64_t others; /* layers of an adapter that no module is, */
    sft_span other;  /* and one of them */
} sfti_row_tried;
typedef void sfti_tried_fn(void *ctx, const sfti_tried *tried);

/* In the memory of the model, with which it ends; records are those that the info was opened
 * with. NULL: out of memory, or the model has no tensors. */
typedef struct sfti_trial sfti_trial;
sfti_trial *sfti_trial_new(sft_info *info);
/* Tells each clause of a row. False, and nothing is told, if such a row is not about such a model:
 * rows "tensors" and "variant" are about models, "adapter" and "adapter-variant" about adapters,
 * "modules" about both: of an adapter, modules may be missing, but all its layers must be among
 * them. */
bool sfti_trial_row(sfti_trial *trial, const sfti_record_row *row, sfti_tried_fn *each, void *ctx,
                    sfti_row_tried *out);

#endif
