/* Models as commands see them: opened in whatever format, in one file or several, and for info and
 * find each with its facts, read by several threads, delivered in the order of the inputs. */
#ifndef CLI_MODELS_H
#define CLI_MODELS_H

#include "safetensors_import.h"
#include "safetensors_info.h"
#include "safetensors_tree.h"
#include "support/hash.h"
#include "support/shards.h"

typedef struct cli_member {
    const char *path, *name; /* name: of the component's folder */
    sft_set *set;
    sft_info *info;
    sft_info_folder *folder; /* of one that is remote */
} cli_member;

/* One result to be. */
typedef struct cli_model {
    const cli_input *input; /* the first, of several */
    const char *path;       /* as it is shown */
    const cli_input *const *inputs; /* shards without an index, or components */
    size_t count;
    bool is_pipeline;
    bool is_dataset;        /* path is the folder; no set, no info */
    const sft_info_folder *folder;  /* NULL: standard input */
    /* set while its batch is processed: */
    sft_set *set;           /* NULL of a pipeline */
    sft_import *import;     /* what the set is of; NULL: safetensors */
    sft_info *info;
    cli_member *members;    /* of a pipeline, count of them */
    sft_info_component *parts;
    sft_tree *tree;         /* its result object; NULL: none */
    sft_error err;          /* code not 0: what went wrong */
    const char *const *missing; /* shards that are not there */
    size_t missing_count;
    sfti_arena arena;       /* for what lives as long as its batch */
    void *found;            /* the command's own */
} cli_model;

/* What info says of one more model, while another is worked on. */
typedef struct cli_told {
    sft_set *set;
    sft_import *import; /* of another format; the set's */
    sft_info *info;
    sft_tree *tree; /* NULL: it cannot be told; info is NULL too, then */
    sft_error err;  /* why not */
} cli_told;

void cli_told_open(cli *c, const char *path, cli_told *out);
void cli_told_close(cli_told *label);

/* What digests are of: a file, an index, each component of a pipeline, each shard of a set
 * without an index and the set itself. */
size_t cli_unit_count(const cli_model *model);
/* NULL: the set itself. */
const char *cli_unit_path(const cli_model *model, size_t unit);
/* The facts of a unit; NULL for one shard of several. */
sft_info *cli_unit_info(const cli_model *model, size_t unit);
/* Whether the unit is more than one file. */
bool cli_unit_is_set(const cli_model *model, size_t unit);

/* Digests that are computed while models go by. */
typedef struct cli_digests {
    cli_hash_run hashing;
    /* Algorithms to be computed of a unit (bits) of a model whose facts are there; NULL: no
     * digest is wanted of any. */
    uint32_t (*wanted)(void *ctx, cli_model *model, size_t unit);
    /* An answer; where there is none, model->err says why. */
    void (*answer)(void *ctx, cli_model *model, size_t unit, const sft_hash_result *result);
    void *ctx;
    /* Called when the digests of so many models are there, before any of them is delivered;
     * NULL: each is delivered as soon as it can be. */
    void (*batch)(void *ctx, cli_model *models, size_t count);
    size_t batch_size;
    uint64_t before, after, total; /* bytes: of batches done, to come; of this one */
} cli_digests;

/* Call each() for every model the operands name; those that cannot be read too (err says
 * why). count is told before the first: how many models there are. digests may be NULL.
 * Wraps nothing. */
typedef void (*cli_model_fn)(void *ctx, cli_model *model);
void cli_each_model(cli *c, char **operands, size_t operand_count, size_t *count,
                    cli_digests *digests, cli_model_fn each, void *ctx);

/* Leaves out operands that are given twice, or that lie in another one, a folder that is searched
 * with all folders in it. */
sft_code cli_distinct_operands(cli *c, char **operands, size_t *count, sfti_arena *arena,
                               sft_error *err);

/* All models that will be delivered, for the progress. */
void cli_digests_count(cli_digests *digests, const cli_model *models, size_t count);
/* Compute what is wanted of these models, then call each() for all of them, in order, unless it is
 * NULL (digests.c). */
void cli_digest_models(cli *c, cli_digests *digests, cli_model *models, size_t count,
                       cli_model_fn each, void *ctx);

/* Its result object again, after its info has learned something. */
sft_code cli_render_model(cli *c, cli_model *model);
/* All of the result object as JSON, metadata included, to the output. */
void cli_print_model_json(cli *c, cli_model *model);

/* The result object of a model that could not be read, after a complaint. */
void cli_fail_model(cli *c, const cli_model *model);

/* ── Which inputs are one model ── */

typedef struct cli_models {
    sfti_arena arena;
    cli_model *items;
    size_t count, capacity;
} cli_models;

/* Append the models of one operand's inputs; found: by looking into a folder, so that
 * shards and components belong together. A folder without models may be an empty
 * dataset. False when memory ran out. */
bool cli_group_inputs(cli_models *models, const cli_inputs *inputs, bool found);
/* Shards of a model that are not there, by name; false when memory ran out. */
bool cli_find_missing(cli_model *model, const sft_open_options *open, sfti_arena *arena);

/* ── One model ── */

/* Open the one model that an operand names, a folder with one too, in whatever format, with
 * --values its values. The inputs are to be freed, also after a failure. */
sft_code cli_open_operand(cli *c, const char *operand, cli_inputs *inputs, const cli_input **input,
                          sft_set **out, sft_error *err);

/* Cuts the number off an operand PATH:NUMBER, unless a file has the whole name, or it is a URL's
 * port. *number: its text, within the operand; NULL: there is none, and *out is 1. */
sft_code cli_cut_number(cli *c, char *operand, const char **number, double *out, sft_error *err);

/* ── Models in other formats ── */

/* The options of convert that say what is imported. */
extern const cli_option cli_import_options_table[];

/* Open a path: safetensors, or else whatever format it is in. *import is what the set is of, NULL
 * for safetensors; it lives as long as the set. When it is neither, err says why it is not
 * safetensors. */
sft_code cli_open_path(cli *c, const char *path, const sft_set_options *options, sft_set **out,
                       sft_import **import, sft_error *err);

/* The same of numbered shards, as one model. */
sft_code cli_open_shards(cli *c, const char *const *paths, size_t count,
                         const sft_set_options *options, sft_set **out, sft_import **import,
                         sft_error *err);

/* Whether convert casts values of this name to --dtype that were computed from codes of another
 * format. */
bool cli_casts_computed(const cli *c, sft_span name);

/* Lines about an import: aliases, what was left out, globals that a pickle loader would have
 * called; in the conditional unless the command writes. */
void cli_say_import(cli *c, const char *path, const sft_import *import, bool writes);
/* A line for each branch that was left out, or for what safetensors cannot hold: the first few.
 * For commands that say no more of an import; on standard error. */
void cli_say_left(cli *c, const char *path, const sft_import *import, bool branches);
/* "a, b and 3 more": globals with calls, or nothing; whether there are any. */
bool cli_say_globals(cli_out *out, const sft_import *import, size_t most);
/* The member "import" of a result. */
void cli_put_import(cli *c, sfti_json_writer *w, const char *path, const sft_import *import);

/* ── Trees of facts ── */

/* The first item of the list or object at a path; NULL when there is none. */
static inline const sft_node *cli_first(const sft_node *root, const char *path) {
    const sft_node *node = sft_node_find(root, path);
    return node ? node->first : NULL;
}

/* Bytes of the files that the model is in, in whatever format. */
static inline bool cli_model_bytes(const sft_node *root, uint64_t *out) {
    return sft_node_uint(root, "import.input_bytes", out) || sft_node_uint(root, "file.bytes", out);
}

#endif
