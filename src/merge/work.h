/* What is known of the tensor that is merged at the moment, and passes over it. */
#ifndef SFTI_MERGE_WORK_H
#define SFTI_MERGE_WORK_H

#include "text/text.h"
#include "merge/loops.h"
#include "merge/merge.h"
#include "os/io.h"

#define SFTI_MERGE_CHUNK ((uint64_t)1 << 14) /* elements that are summed alone: part of results */
#define SFTI_MERGE_PIECE ((uint64_t)1 << 11) /* that go through several loops while they are near */

/* The `top` largest of a tensor's numbers: those above key, and of those equal to it the first
 * `ties` in the order of the tensor. */
typedef struct sfti_merge_cut {
    uint64_t top;
    uint32_t key;
    bool none, all;         /* nothing, everything is among them */
    uint64_t ties;
    uint64_t *before;       /* equal ones before each chunk of the window, and behind the last, or
                               SFTI_NOT_COUNTED; NULL: all of them count */
} sfti_merge_cut;

#define SFTI_NOT_COUNTED UINT64_MAX
#define SFTI_RANK_BITS 11 /* of a digit, of three that sort */

/* What one thread works with. */
typedef struct sfti_merge_work {
    double **x;       /* values of the chunk, of each entry, then of the base */
    double *out;
    uint32_t *keys;   /* of one entry: the bits of magnitudes; of ranks, too: for sorting */
    uint32_t *order, *spare, *starts;
    uint8_t *kept;
    uint64_t *counts; /* histograms; NULL: none are counted */
    uint8_t *raw;
    float *floats;
    double *sums;     /* what a pass adds up, of this chunk */
    uint64_t chunk, first, count;
    uint64_t losses[2]; /* of the window: values that were not 0, and that rounding made 0 */
    struct sfti_merge_run *run; /* the pass it is in */
    uint32_t blame;   /* the model whose values cannot be read */
} sfti_merge_work;

typedef struct sfti_merge_op sfti_merge_op;
typedef sft_code sfti_merge_step(const sfti_merge_op *op, sfti_merge_work *work, sft_error *err);
/* Numbers of a stream in the chunk that are cut, as bits of F32 that are not negative. */
typedef void sfti_cut_keys(const sfti_merge_op *op, size_t stream, const sfti_merge_work *work,
                             uint32_t *keys);
/* Sets how many are to be in the cuts of a stream, of which `zeros` are 0. */
typedef void sfti_cut_tops(sfti_merge_op *op, size_t stream, uint64_t zeros);

struct sfti_merge_op {
    const sfti_merge_plan *plan;
    const sfti_merge_method *method;
    const sfti_merge_row *row;
    sfti_arena *arena;
    size_t count;                        /* entries: models that have it, but for the base */
    bool has_base;
    uint32_t model[SFTI_MERGE_MODELS];   /* of each entry; the base is behind them */
    double param[SFTI_MERGE_PARAMS];
    double each[SFTI_MERGE_EACH][SFTI_MERGE_MODELS];
    uint64_t line;                       /* elements that factors are of; 0: of all */
    uint64_t inner;                      /* of ranks: numbers of a line stand so far apart */
    bool by_column;                      /* factors are of columns */
    uint64_t chunk, chunks;              /* elements in one; how many */
    /* factors of the entries, then of the base */
    double *factors;                     /* of the tensor, or of each column */
    /* masks */
    uint64_t seeds[SFTI_MERGE_MODELS], chances[SFTI_MERGE_MODELS];
    sfti_merge_cut *cuts;                /* outer and inner of each stream; NULL: nothing is cut */
    size_t streams;                      /* numbers that are cut: of each entry, or one of all */
    size_t group, group_end;             /* streams that are counted now */
    sfti_cut_keys *keys;
    sfti_cut_tops *tops;
    uint64_t seen_at;                    /* the chunk behind the last window of which equal numbers
                                            are counted */
    bool sampled;                        /* a piece of each chunk is loaded */
    double *rescale;                     /* of each entry; NULL: none */
    double *shares;                      /* weights of SCE */
    /* threads */
    sfti_merge_work *works;
    size_t threads, sums;
    uint64_t window;                     /* chunks */
    uint64_t window_at;                  /* the first of the one at hand */
    double *window_sums;
    uint8_t *bytes;                      /* of the window, of the result */
    double tiny;                         /* the greatest number that becomes 0 in it */
};

/* ── The plan (rows.c) ── */

typedef struct sfti_merge_rows {
    sfti_merge_row *rows;
    size_t count;
    sfti_merge_notes notes;
} sfti_merge_rows;

/* All rows but `begin`, in the order of the reference. */
sft_code sfti_merge_rows_find(const sfti_merge_plan *plan, sfti_arena *arena, sfti_merge_rows *out,
                              size_t *blame, sft_error *err);
/* Refuses alphas of adapters that differ, and notes the others in their rows (alphas.c). */
sft_code sfti_merge_alphas_check(const sfti_merge_plan *plan, sfti_merge_rows *rows, size_t *blame,
                                 sft_error *err);
#define SFTI_MERGE_NAME ((size_t)1088)
/* What a row's tensor, a reference of this name, is called in a model; false: the model is not in
 * the row's slice. */
bool sfti_merge_name_in(const sfti_merge_plan *plan, const sfti_merge_row *row, size_t model,
                        sft_span name, char *buffer, size_t cap, sft_span *out);
/* Whether values of the dtype are merged. */
bool sfti_merge_takes(sft_dtype dtype);
/* The stack that a tensor is in, "model.layers", and its number there; false: in none. */
bool sfti_merge_layer(sft_span name, sft_span *stack, uint64_t *layer);

/* The rows of a merge by slices, of which from, tensor, slice, offset, layers and the name are told
 * (slices.c). */
sft_code sfti_merge_slices_list(const sfti_merge_plan *plan, sfti_arena *arena,
                                sfti_merge_row **rows, size_t *count, size_t *blame,
                                sft_error *err);
/* The name in another layer; its length, 0 if there is no room or it is in none. */
size_t sfti_merge_layer_name(sft_span name, uint64_t layer, char *out, size_t cap);

/* ── Passes (passes.c) ── */

/* Sets chunks, and the threads' memory. histogram: the counters of each thread; sums: most numbers
 * that a pass adds up. */
sft_code sfti_merge_passes_begin(sfti_merge_op *op, uint64_t histogram, size_t sums,
                                 sft_error *err);
/* Calls step for `count` chunks from `first` on, with their values loaded. */
sft_code sfti_merge_pass(const sfti_merge_op *op, uint64_t first, uint64_t count,
                         sfti_merge_step *step, bool sums, sft_error *err);
/* Calls step for all chunks, and adds up `sums` numbers of each in their order. before: called for
 * the chunks of each window; may be NULL. */
typedef sft_code sfti_merge_before(sfti_merge_op *op, uint64_t first, uint64_t count,
                                   sft_error *err);
sft_code sfti_merge_sum(sfti_merge_op *op, sfti_merge_step *step, size_t sums,
                        sfti_merge_before *before, double *out, sft_error *err);
/* Puts *before + here into before[1], once *before, which a thread of the pass counts, is told:
 * returns *before. Chunks are taken in order, so that one waits only for those being computed. */
uint64_t sfti_merge_pass_chain(const sfti_merge_work *work, uint64_t *before, uint64_t here);
/* Values of a tensor as F64. SFT_CAST_VALUE: NaN or an infinity. */
sft_code sfti_merge_read(const sfti_merge_model *model, uint32_t tensor, uint64_t first,
                         uint64_t count, uint8_t *raw, float *floats, double *into, sft_error *err);

/* ── Factors (mix.c) ── */

/* Whether the method is a sum with factors, without masks. */
bool sfti_mix_is(const sfti_merge_method *method);
sft_code sfti_mix_prepare(sfti_merge_op *op, sft_error *err);
sft_code sfti_mix_step(const sfti_merge_op *op, sfti_merge_work *work, sft_error *err);

/* ── Masks (select.c, sparse.c) ── */

/* Finds the cuts of all streams, in one pass or two. */
sft_code sfti_select(sfti_merge_op *op, sfti_cut_keys *keys, sfti_cut_tops *tops, sft_error *err);
#define SFTI_SELECT_COUNTERS (((uint64_t)1 << 17) + 8) /* of each stream */
#define SFTI_SELECT_STREAMS 8 /* at once */
/* Before a pass that calls sfti_select_mark, over chunks [first, first + count). Counts equal
 * numbers of what is before them, unless that was the last such pass. */
sft_code sfti_select_window(sfti_merge_op *op, uint64_t first, uint64_t count, sft_error *err);
/* Which numbers of the chunk are in the outer cut of a stream and not in the inner one. */
void sfti_select_mark(const sfti_merge_op *op, size_t stream, const sfti_merge_work *work,
                      const uint32_t *keys, uint8_t *kept);

sft_code sfti_sparse_prepare(sfti_merge_op *op, sft_error *err);
sft_code sfti_sparse_step(const sfti_merge_op *op, sfti_merge_work *work, sft_error *err);

/* ── Arithmetic without the C library's (arithmetic.c): the same on every machine ── */

double sfti_merge_sine(double x);
double sfti_merge_cosine(double x);
/* For -1 to 1. */
double sfti_merge_arc_cosine(double x);
/* The products of all pairs of `count` vectors, row by row of the upper triangle. */
void sfti_merge_products(double *const *x, size_t count, uint64_t first, uint64_t n, double *sums);

#endif
