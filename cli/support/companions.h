/* What belongs to one model alone: its files, and those beside it that info reads as its own. */
#ifndef CLI_COMPANIONS_H
#define CLI_COMPANIONS_H

#include "support/models.h"

typedef struct cli_companion {
    const char *path;
    bool is_model;  /* one of its own files; the others lie beside it */
    bool is_shared; /* a shard that another index names, too: cli_unit_find_shared; or a file that
                       another ONNX model may name */
} cli_companion;

typedef struct cli_unit {
    const char *path;  /* as it was named; a folder's of a model that is one */
    sft_span stem;     /* what names of companions begin with; empty of a folder */
    sft_span index;    /* the file that says which shards are a model with this one, or empty */
    bool is_folder;    /* a pipeline, or shards that fill a folder: moves as a whole */
    cli_companion *items; /* own files first */
    size_t count, capacity;
} cli_unit;

/* How names of models' files end; NULL ends it. */
extern const char *const cli_model_ends[];

/* What names of files beside a model of that name begin with, as info reads them. */
sft_span cli_stem_of(sft_span name);

/* The companions of a model whose tree is there. Everything is copied into the arena. False when
 * out of memory. Links are among the files as they are. */
bool cli_unit_of(const cli_model *model, sfti_arena *arena, cli_unit *out);
/* The same for a file that is not a readable model: it stands alone. */
bool cli_unit_of_file(const char *path, sfti_arena *arena, cli_unit *out);
/* Whether no other model of its folder has the same stem (NAME.ckpt beside NAME.safetensors), for
 * which the files beside it stand, too; and without these. */
bool cli_unit_alone(const cli_unit *unit);
/* Looks for the index of a file that is named, whatever shards are called: it reads those of the
 * folder. False when out of memory. */
bool cli_unit_find_index(cli *c, cli_unit *unit, sfti_arena *arena);
/* Fails for one of a model's shards, or a dataset's, which would be missing there. */
sft_code cli_unit_check(const cli_unit *unit, sft_error *err);
/* Marks the shards that another index of the folder names, of those that `counts` lets count (NULL:
 * all). False when out of memory. */
bool cli_unit_find_shared(cli *c, cli_unit *unit, bool (*counts)(void *ctx, const char *index),
                          void *ctx);
/* Leaves these out, and unless it is alone what lies beside it. stays: gets their paths, with room
 * for all; or NULL. How many paths that are. */
size_t cli_unit_keep_shared(cli_unit *unit, bool alone, const char **stays);

#endif
