/* The state of a verification. verify.c runs it; verify_index.c compares the index;
 * verify_schema.c the schema; verify_findings.c keeps what they find. */
#ifndef SFTI_DATASET_VERIFY_H
#define SFTI_DATASET_VERIFY_H

#include "base/error.h"
#include "base/job.h"
#include "dataset/read/merge.h"
#include "dataset/read/stream.h"

typedef struct verify_finding {
    struct verify_finding *next;
    sft_code code;
    const char *shard; /* or another file, or a folder */
    const char *message;
} verify_finding;

typedef struct verify_list {
    verify_finding *first, *last;
    size_t count; /* of all, listed or not */
} verify_list;

typedef struct verification {
    const sft_storage *storage;
    const sft_job *job;
    bool deep;
    sft_open_options open;
    sft_allocator alloc;
    sfti_arena arena;
    sfti_ds_manifest manifest; /* without shards that are in segments */
    const sfti_ds_manifest *m; /* that one; NULL: it is the finding */
    uint64_t masked;           /* shards with a mask */
    uint64_t placed;           /* columns of shards that are elsewhere */
    sfti_ds_names names;       /* of its shards */
    sfti_ds_manifest *versions; /* that are kept and not damaged */
    size_t version_count;
    sfti_ds_names kept; /* the shards that they name and the manifest does not */
    uint64_t bytes;            /* of the shards, by the manifest */
    bool listed;               /* all shards were listed */
    sfti_ds_column *columns;   /* room for the manifest's */
    verify_list findings, orphans;
    uint64_t done, total; /* bytes */
    uint64_t samples, valid, shadowed, digests, tensors;
    bool opened_all;
    bool index, index_folder; /* an index exists; as a folder: Spark's */
    sft_code code; /* ends the work: out of memory, cancelled */
    sft_error *err;
} verification;

/* ── verify_findings.c ── */

/* Put a finding, or one of another list, which lists at most so many and counts all. */
void sfti_verify_put(verification *v, verify_list *to, const char *shard, const sft_error *what);
/* Out of memory and cancelled end the work instead. */
void sfti_verify_find(verification *v, const char *shard, const sft_error *what);
/* A finding of SFT_DATASET_SHARD. */
SFTI_FORMAT(3, 4)
void sfti_verify_tell(verification *v, const char *shard, const char *format, ...);
/* Whether the manifest names such a shard, or file of columns; also if there is no memory, which
 * ends the work. */
bool sfti_verify_names(verification *v, const char *name);

/* ── verify_index.c ── */

/* Compares the index with the manifest and the shards; true: it is one file, and can be read. */
bool sfti_verify_index(verification *v);

/* ── verify_schema.c ── */

/* Batch mode: compares the schema with the columns. */
void sfti_verify_columns(verification *v);

/* KV mode: the schema's names, ascending, of which those before `at` have been found. */
typedef struct verify_keys {
    const uint32_t *order;
    size_t count, at;
    bool has;
} verify_keys;

/* False: no memory, which ends the work. */
bool sfti_verify_keys_begin(verification *v, verify_keys *k);
/* Compares the schema with the next row of all headers; row NULL: there is none. */
void sfti_verify_keys_next(verification *v, verify_keys *k, const sfti_ds_row *row);

#endif
