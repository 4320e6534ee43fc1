/* What is computed and asked while models go by: --hash, --verify and --online; which files are
 * looked up, with which hashes, and what becomes of the answers. */
#ifndef CLI_INFO_ONLINE_H
#define CLI_INFO_ONLINE_H

#include "commands/info/civitai.h"
#include "support/models.h"
#include "support/where.h"

#define CLI_ONLINE_BATCH CLI_CIVITAI_HASHES /* models looked up together */
#define CLI_ONLINE_ALGOS (SFT_HASH_BIT(SFT_HASH_SHA256) | SFT_HASH_BIT(SFT_HASH_AUTOV3))

/* What is known of one model that is looked up: cli_model.found. */
typedef struct cli_lookup {
    cli_ask ask;
    sft_hashes hashes;   /* computed */
    bool is_skipped;     /* known to be unknown, since less than a week */
    bool is_claimed;     /* its SHA-256 is one that a sidecar records */
    bool is_pending;     /* to be hashed because the recorded digest is unknown */
    bool has_ids;        /* with --updates: a file beside it records its ids */
    struct cli_update *update; /* with --updates, once it was asked for; or NULL */
} cli_lookup;

typedef struct cli_online {
    cli *c;
    cli_civitai site;
    sft_hash_cache *cache; /* or NULL */
    char mark[SFT_HASH_MARK_SIZE]; /* what unknown files are remembered by; "": they are not */
    struct cli_have *have; /* have.c */
    bool again;            /* hashing those that are pending */
    /* --dry-run: */
    uint64_t files, remembered, claimed, hashed, skipped, bytes, posts, gets, pages, singles;
} cli_online;

/* False, after a complaint, when it cannot be; close it all the same. */
bool cli_online_open(cli_online *online, cli *c, sft_hash_cache *cache);
void cli_online_close(cli_online *online);

/* Begin the look-up of a model whose facts are there; not of one that is no single file. */
void cli_online_begin(cli_online *online, cli_model *model);
/* What is to be computed of it, where `others` is computed anyway. */
uint32_t cli_online_algos(const cli_online *online, const cli_model *model, uint32_t others);
/* For --dry-run: that would be computed of a file. */
void cli_online_count(cli_online *online, const cli_model *model, const char *path,
                      uint32_t algos);
void cli_online_learn(cli_model *model, const sft_hashes *hashes);
/* Look up a batch that is hashed, and add the answers to the facts of its models. */
void cli_online_ask(cli_online *online, cli_digests *digests, cli_model *models, size_t count);
/* What --dry-run tells. */
void cli_online_summary(const cli_online *online);

/* --save (save.c): the answer as a sidecar, and the first image. */
void cli_save_answer(cli_online *online, const cli_model *model, sft_span answer);

/* --updates (updates.c). Whether its ids are recorded: then it is not hashed. */
bool cli_update_ids(const cli_model *model, cli_ask *ask);
/* What the server says of a model, against what is recorded. model->err: no memory. */
void cli_update_learn(cli_online *online, cli_model *model, const cli_ask *ask);
typedef struct cli_update_counts {
    uint64_t models, newer, removed, deleted, changed, unknown, unanswered;
} cli_update_counts;
void cli_update_show(const cli_online *online, const cli_model *model,
                     cli_update_counts *counts);
void cli_update_total(cli *c, const cli_update_counts *counts);

extern const cli_option cli_online_options[];

/* ── Which versions the files of a folder are, for --updates: have.c ── */

/* The path of another file in the model's folder that is this version (as the server tells of it):
 * by the ids or the SHA-256 that a sidecar records, else, of one of its size, by its own SHA-256.
 * In the model's arena; empty: none is known, or there is no memory, which model->err says. */
sft_span cli_have_version(cli_online *online, cli_model *model, uint64_t id, sft_span version);
void cli_have_free(cli_online *online);

/* ── Models as they go by: compute.c ── */

/* Zeroed, it computes nothing. */
typedef struct cli_compute {
    cli *c;
    cli_wheres where; /* the caller's: only models that may match are hashed and looked up */
    uint32_t algos;   /* of --hash */
    cli_digests digests;
    cli_online online;
} cli_compute;

/* Read --hash and see what else is wanted. */
sft_code cli_compute_read(cli_compute *run, cli *c, sft_error *err);
/* Open the cache and the server; path is for the progress. False, after a complaint, if that
 * fails; end it all the same. */
bool cli_compute_begin(cli_compute *run, const char *path);
/* Whether a model that is delivered has its result object, with what was learned since; else its
 * err says why not. */
bool cli_compute_has_tree(const cli_compute *run, cli_model *model);
void cli_compute_end(cli_compute *run);
/* Whether nothing is computed or asked, only counted: --online --dry-run. */
bool cli_compute_only_counts(const cli *c);

#endif
