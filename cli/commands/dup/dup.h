/* dup: models that are compared, and what becomes of duplicates that are found. */
#ifndef CLI_DUP_H
#define CLI_DUP_H

#include "base/mem.h"
#include "safetensors_hash.h"
#include "support/cli.h"
#include "support/input.h"

/* Whether anything is to become of them; else they are listed. */
static inline bool dup_ends(const cli_settings *set) {
    return set->remove || set->link || set->reflink;
}

/* For people only; rows of --tsv and --json stand alone. */
static inline cli_out *dup_says(cli *c) {
    return c->set.format == CLI_TSV ? &c->err : &c->out;
}

/* Whether the options agree; the folder of --keep becomes its real path, in the arena.
 * SFT_BAD_ARGUMENT: they do not; another code is about that folder. */
sft_code dup_end_check(cli *c, sfti_arena *arena, sft_error *err);
/* Whether the path, not what it leads to, lies in the folder of --keep. */
bool dup_keeps(const cli *c, const char *path);

typedef struct dup_path {
    const char *path;
    const char *link; /* a symbolic link to it that was found, too; NULL: none */
} dup_path;

/* In the order of the output. */
typedef enum dup_by {
    DUP_FILE,
    DUP_WEIGHTS,
    DUP_CONTENT,
    DUP_TENSORS, /* from here on they may be no duplicates */
    DUP_DATA,
    DUP_KINDS
} dup_by;

/* key[k], 64 hex digits: equal for models that are alike by k; at first of sizes, names and
 * samples, later the digest itself; empty: alike to none. */
typedef struct dup_model {
    dup_path at;
    uint64_t bytes;
    char key[DUP_KINDS][SFT_HASH_TEXT_SIZE];
    char layout[SFT_HASH_TEXT_SIZE]; /* what a header of one file says of its tensors, or empty */
    char meant[SFT_HASH_TEXT_SIZE];  /* other names of tensors and how these are read, or empty */
    bool holds_more;                 /* than tensors: its content is alike to none */
} dup_model;

/* The first keys of an input. False if it cannot be read, which is told. */
bool dup_look_at(cli *c, sfti_arena *arena, dup_model *model, const cli_input *input);

/* Models that were found to be the same file, or else to have the same weights: one stays, and so
 * does what a link leads to. With --yes; else it is told what would be done, by w as members of the
 * group (NULL: to people). False when out of memory. */
bool dup_end(cli *c, const dup_path *paths, size_t count, bool same_file, sfti_arena *arena,
             sfti_json_writer *w);

#endif
