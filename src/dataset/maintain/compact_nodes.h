/* Rows of a group of shards in batch mode, as a compaction sees them: compact_nodes.c finds them in
 * the old shards, compact_rows.c makes the tensors of new ones. */
#ifndef SFTI_DATASET_COMPACT_NODES_H
#define SFTI_DATASET_COMPACT_NODES_H

#include "dataset/maintain/compact.h"
#include "dataset/read/places.h"

#define NODES_OPEN 64 /* shards open at the same time */

/* A column is a tree of nodes, in preorder: structs, lists, bytes, values. In each file a list has
 * one of three forms (dataset.h): stacked, with the values in it as one tensor; numbers end to end;
 * or its elements as a node of their own. A node's rows are runs of rows of the shards; those in
 * a list are where its runs begin and end. A new shard has a list stacked if all have it of one
 * shape, else end to end if none has elements of their own, else as a node. */

typedef enum list_form { ROWS_STACKED, ROWS_FLAT, ROWS_ITEMS } list_form;

/* A node in one shard. */
typedef struct node_part {
    const sfti_ds_place *place; /* where its column is; NULL: in the shard */
    bool absent;                /* its rows are zeros, or have nothing in them */
    bool null;                  /* and are null */
    uint64_t rows, data, ends, valid; /* number; offsets of tensors in the file */
    uint64_t elements;                /* in all rows of a list, or of bytes */
    list_form form;                   /* of a list */
    bool marked;                      /* has `valid` */
    uint32_t rank;                    /* of a row: of values, or of a stacked list */
    const uint64_t *shape;
} node_part;

typedef struct compact_node {
    sfti_ds_form form;
    sft_span name;
    size_t parent; /* SIZE_MAX: a column */
    sft_dtype dtype;
    bool typed;      /* dtype is known */
    uint32_t rank;   /* of a row, where it is absent */
    const uint64_t *shape;
    bool covered;    /* in a stacked list */
    list_form out;   /* of a list */
    bool padded;     /* padding has rows of it */
    node_part *part; /* of each shard; behind them that of no rows of any (NODES_FILLER) */
} compact_node;

typedef struct node_run {
    uint64_t before, begin, count; /* before: rows in earlier runs */
    size_t shard;
} node_run;

typedef struct node_runs {
    node_run *all;
    size_t count, cap;
    uint64_t rows;
} node_runs;

/* The shard of runs that have no rows of any: zeros, and not null. */
#define NODES_FILLER(rows) ((rows)->shards)

/* Some bytes of a file of a shard. */
typedef struct node_window {
    size_t shard;
    uint64_t begin;
    size_t len;
    char *bytes;
    sfti_arena *arena; /* NULL: only what is wanted is read */
} node_window;

struct sfti_compact_rows {
    compaction *c;
    const compact_group *g;
    sfti_arena *arena;
    size_t shards;
    compact_node *nodes;
    size_t count, cap;
    node_runs live; /* all rows of the group */
    bool whole;     /* its columns are all that there are */
    uint32_t mode;  /* common to the files of all shards; 0: not known */
    struct node_file {
        bool open;
        size_t shard;
        const sfti_ds_place *place;
        sft_source source;
    } files[NODES_OPEN];
};

/* SFT_DATASET_SHARD: a column is not as the manifest says. */
sft_code sfti_node_wrong(const sfti_compact_rows *r, size_t shard, sft_span name);
/* The part that a node's values in a new shard are like: one that is not absent, if there is. */
const node_part *sfti_node_like(const sfti_compact_rows *rows, const compact_node *node);
/* Put rows behind others, with which they are one run if they follow them in the shard. */
sft_code sfti_runs_put(const sfti_compact_rows *r, node_runs *to, sfti_arena *arena, size_t shard,
                       uint64_t begin, uint64_t count);
/* Bytes of a file of a shard; w is of one of them. */
sft_code sfti_node_read(sfti_compact_rows *r, node_window *w, size_t shard,
                        const sfti_ds_place *place, uint64_t offset, void *into, size_t len,
                        sft_error *err);

#endif
