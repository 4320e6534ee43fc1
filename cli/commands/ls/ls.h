/* ls: what its parts share. */
#ifndef CLI_LS_H
#define CLI_LS_H

#include "safetensors_stats.h"
#include "support/cli.h"
#include "support/values.h"

/* A number in the name of a row that stands for several: name[from, to) runs to that of `last`. */
typedef struct ls_fold {
    uint32_t from, to, last;
} ls_fold;

/* What one row stands for. */
typedef struct ls_folds {
    uint32_t count, times;
    ls_fold *items;
} ls_folds;

/* The tensors to show, in order. */
typedef struct ls_listing {
    cli *c;
    const sft_set *set;
    const char *path;
    sfti_arena arena;
    uint32_t *order; /* indices in the set */
    size_t count, total;
    int key;
    cli_dtypes dtypes;
    ls_folds *folds;       /* of each row, or NULL */
    sft_statistics *stats; /* NULL without --stats */
    uint32_t *part;        /* of a tensor of the set in stats */
    sft_span *layouts;     /* with --values: of each tensor of the set, or empty; else NULL */
} ls_listing;

#define LS_TREE_DEPTH 16 /* what lies deeper stays one name */

static inline const sft_tensor *ls_listed(const ls_listing *l, size_t i) {
    return sft_set_tensor_at(l->set, l->order[i]);
}
/* Whether --match and --dtype select it. */
static inline bool ls_is_wanted(const ls_listing *l, const sft_tensor *tensor) {
    return cli_is_matched(&l->c->set, tensor->name) && cli_dtypes_has(l->dtypes, tensor->dtype);
}
/* How many tensors row i stands for. */
static inline uint32_t ls_times(const ls_listing *l, size_t i) {
    return l->folds ? l->folds[i].times : 1;
}

/* ── Columns ── */

static inline void ls_widen(size_t *width, size_t other, size_t most) {
    if (other > most) other = most;
    if (other > *width) *width = other;
}
/* After `shown` columns: up to the column's width, and two spaces. */
static inline void ls_pad(cli_out *out, size_t shown, size_t width) {
    cli_pad(out, (shown < width ? width - shown : 0) + 2);
}

/* Keep one row for layers (parts of names that are consecutive numbers) with equal tensors. */
sft_code ls_fold_rows(ls_listing *l, sft_error *err);
/* Names as a tree, split at dots, with totals; a table in Markdown. */
void ls_tree(const ls_listing *l);
void ls_markdown(const ls_listing *l);

/* ── Statistics ── */

/* Reads the listed tensors. */
sft_code ls_stats_read(ls_listing *l, uint32_t threads, sft_error *err);
void ls_stats_table(const ls_listing *l);
/* More cells of a TSV line: their names, and those of row i. */
extern const char ls_stats_tsv_head[];
void ls_stats_tsv(const ls_listing *l, size_t i);
/* The same for Markdown. */
extern const char ls_stats_md_head[], ls_stats_md_rule[];
void ls_stats_md(const ls_listing *l, size_t i);
/* The member "stats" of row i, or of all with SIZE_MAX. */
void ls_stats_json(const ls_listing *l, sfti_json_writer *w, size_t i);

#endif
