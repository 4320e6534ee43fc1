/* What the files of `merge` share. */
#ifndef CLI_MERGE_H
#define CLI_MERGE_H

#include "merge/merge.h"
#include "support/parts.h"

/* A model that is merged. */
typedef struct merge_input {
    const char *path;      /* of the file or index */
    cli_inputs inputs;
    sft_set *set;          /* with values where it is quantised */
    const sft_set *stored; /* as it is in the file; lives as long */
    sft_span name;         /* that the recipe has for it */
    const char *sha256, *autov1, *content; /* digests of a replay's, or NULL */
    bool exact;            /* the file that was merged, not only its tensors */
    struct sfti_merge_seen *seen; /* the files of a replay when they were hashed */
    size_t shards;
} merge_input;

typedef struct merge_run {
    cli *c;
    sfti_arena arena;
    sfti_merge_recipe recipe;
    char **paths;             /* of the recipe's models, or operands of a replay */
    size_t path_count;
    merge_input *inputs;      /* by the recipe's numbers */
    sfti_merge_model *models;
    cli_parts parts;          /* of the reference */
    sfti_merged *merged;
    uint32_t threads;         /* 0: one per processor */
    const char *blame;        /* path that an error is about */
    size_t changed;           /* the model that changed while it was read, and what is told of it */
    sft_error change;
    sft_buffer text;
    sfti_merge_origin origins[SFTI_MERGE_MODELS];
    sfti_merge_hashing hashing; /* while the result is written, if it is started */
    sfti_merge_record records[2]; /* as it was begun, and as it ends */
    sft_set *replayed;        /* the model of which a replay takes the recipe, or NULL */
    bool unlike;              /* that recipe does not make it */
} merge_run;

/* merge --method, --recipe, --replay. */
void merge_by_method(cli *c, char **operands, size_t count);

/* What options and operands ask for (asked.c): the recipe, and the paths of its models. */
sft_code merge_asked(merge_run *run, char **operands, size_t count, sft_error *err);

/* ── The header of the result (record.c) ── */

/* Digests of the models that have none yet, unless nothing is written; at_end: merge_record_end
 * may tell them. */
sft_code merge_hash(merge_run *run, bool at_end, sft_error *err);
/* Puts the recipe into the metadata of the parts. */
sft_code merge_record(merge_run *run, bool one_file, sft_error *err);
/* If digests are still to be told: once all parts are written. */
sft_code merge_record_end(merge_run *run, sft_error *err);
/* Takes the recipe of --replay, and finds its models among the operands. */
sft_code merge_replay(merge_run *run, char **operands, size_t count, sft_error *err);
/* In a replay, parts that are read fail where they are not those of the model replayed. The data
 * of one on a server are not fetched for that. */
sft_code merge_compared(merge_run *run, sft_error *err);

#endif
