/* The tensors of models on the command line, as parts to be written: what split, merge,
 * select and add share. */
#ifndef CLI_PARTS_H
#define CLI_PARTS_H

#include "support/cli.h"

#include <stdatomic.h>

/* Metadata pair `pair` of file `file`. */
typedef struct cli_pick {
    uint32_t file, pair;
} cli_pick;

typedef struct cli_parts {
    sfti_arena arena;
    sfti_arena lists; /* of parts, shards, files and picks */
    cli_inputs inputs; /* of the operand read last */
    sft_set **sets;
    size_t set_count, set_capacity;
    const char **opened; /* path of each, of the file or index */
    size_t opened_capacity;
    sft_part *parts;   /* model by model, each in natural order of names */
    uint32_t *shard;   /* which file of its model each stands in */
    uint32_t *file;    /* and which of all files */
    const char **paths; /* of all files, model by model */
    const sft_file **files;
    size_t path_count;
    size_t count;
    /* Pairs of all files; of a key in several the first counts. NULL: those of the only file that
     * has any, number `only`. */
    cli_pick *picks;
    size_t only;
    sft_span listed;    /* of several files that have one, torchao's list; data NULL: as it is */
    const sft_pair *pairs; /* instead of those of the files; no stale digests. Or NULL */
    size_t metadata_count;
    bool has_metadata;  /* even if there are no pairs */
    size_t conflicts;   /* keys of which a later value was not taken */
    sft_span two;       /* the key by which tensors are read otherwise in some models; data NULL */
    bool imported;      /* a model is in another format */
    bool as_matched;    /* --as named a tensor of one */
    bool changed;       /* some parts come from elsewhere */
    bool configured;    /* the command itself reads adapter_config.json of the models */
    bool untold;        /* the command itself says what was written */
    /* Asked while they are written, `last` when all are, before the result is published: false
     * stops that. Or NULL. */
    bool (*holds)(void *ctx, bool last);
    void *ctx;
    const sft_sink *sink; /* while one file is written: where to */
    const char *path;   /* of the model that failed, or NULL */
    /* Path of the file of which a read failed, or NULL; watched are remote files, and all if any
     * is in another format. */
    _Atomic(const char *) unread;
} cli_parts;

/* Open all models the operands name and list their tensors. NULL-safe to free afterwards
 * with cli_parts_free, also after a failure. */
sft_code cli_parts_open(cli *c, const char *const *operands, size_t count, cli_parts *out,
                        sft_error *err);
/* The same of operands that must be one model each. */
sft_code cli_parts_open_each(cli *c, const char *const *operands, size_t count, cli_parts *out,
                             sft_error *err);
/* The same of one operand that must be one model. Where the command changes that where it is
 * (in_place), an interrupted edit of it is recovered first. */
sft_code cli_parts_open_one(cli *c, const char *operand, bool in_place, cli_parts *out,
                            sft_error *err);
void cli_parts_free(cli_parts *parts);
/* For who takes tensors and metadata from elsewhere: only models and files are left. */
void cli_parts_drop(cli_parts *parts);
/* Pair i of the metadata; parts is a cli_parts. */
sft_pair cli_parts_pair(const void *parts, size_t i);
/* The path that a failure is about: the file of which a read failed; input, which may be NULL, if
 * it is remote; else the other one. */
const char *cli_parts_blame(const cli_parts *parts, sft_code code, const char *input,
                            const char *otherwise);
/* Digests (keys/digest_keys.h) that do not hold for the parts, written as one file or several:
 * all, unless they are the data of one file as it is. */
unsigned cli_parts_stale(const cli_parts *parts, bool one_file);
/* Leave them out of the metadata before the parts are written; c->dropped tells which. */
sft_code cli_parts_drop_digests(cli *c, cli_parts *parts, bool one_file, sft_error *err);
/* All pairs but digests of the old data and those of the keys of `more`, then those: what the
 * metadata are from here on. */
sft_code cli_parts_record(cli *c, cli_parts *parts, bool one_file, const sft_pair *more,
                          size_t count, sft_error *err);
/* How the parts are written: at the level asked for, with the metadata. */
sft_plan_options cli_parts_plan(const cli *c, const cli_parts *parts);
/* Bytes of a tensor; 0 where its shape asks for more than there can be. */
uint64_t cli_spec_bytes(const sft_spec *spec);
/* Number those of `shards` shards from 0 on that have one of the tensors, whose shards shard_of
 * names; *used: how many. False when out of memory. */
bool cli_renumber(sfti_arena *arena, uint32_t *shard_of, size_t count, size_t shards,
                  uint32_t *used);
/* Tell on stderr of metadata that were not taken. An error if they say how tensors are read. */
sft_code cli_parts_tell(cli *c, const cli_parts *parts, sft_error *err);
/* Only tells of metadata that were not taken, as cli_parts_tell does. */
void cli_parts_note(cli *c, const cli_parts *parts);

#endif
