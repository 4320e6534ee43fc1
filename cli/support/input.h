/* What PATH... names: files, folders, indexes, standard input; one input per model. Models in other
 * formats (safetensors_import.h) are found in a folder by their names, then by their contents. */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H

#include "base/mem.h"
#include "safetensors_set.h"

/* ── Other formats by name ── */

/* Ends of their files' names. A single array (.npy) is no model, unless it is named. */
#define CLI_OTHER_FORMATS 14
extern const char *const cli_other_formats[CLI_OTHER_FORMATS];

/* The row of a file's name, or CLI_OTHER_FORMATS. */
size_t cli_other_format(sft_span name);
/* Whether a file of such a name is a model, or was to be one: what only models are called is told
 * by its name, however broken, unless it is a sound file of another kind (a pickle or an archive
 * without tensors); any other name by the contents. open: for its files and limits. */
bool cli_is_other_model(const char *path, const sft_open_options *open);
/* Whether the name is one that only models have. */
bool cli_is_model_name(sft_span name);
/* A part of a GGUF model after the first, which stands for all where it is there; by its name and,
 * of a local one, by its contents: a whole model may be called so. */
bool cli_is_later_part(const char *path, const sft_open_options *open);

/* ── Inputs ── */

typedef enum cli_input_kind {
    CLI_FILE,
    CLI_INDEX,   /* an index by its name; its shards are not listed again */
    CLI_STDIN,   /* "-" */
    CLI_EMPTY,   /* a folder without models */
    CLI_BLOCKED  /* a folder or index that could not be read: err says why */
} cli_input_kind;

typedef struct cli_input {
    cli_input_kind kind;
    const char *path;
    const sft_error *err; /* CLI_BLOCKED; of CLI_TELL_MISSING also CLI_FILE; else NULL */
    bool is_found;        /* in a folder; else its path is what was named */
    /* CLI_FILE: this numbered shard and all others of its model, whose paths these are; or NULL */
    const char *const *shards;
    size_t shard_count;
} cli_input;

/* Whether it is a path that was not looked into yet. */
static inline bool cli_input_is_path(const cli_input *input) {
    return input->kind == CLI_FILE || input->kind == CLI_INDEX;
}

/* A remote folder that was listed. */
typedef struct cli_listed {
    struct cli_listed *next;
    sft_span path; /* without a slash at its end */
    bool is_pipeline, is_saved_model;
} cli_listed;

typedef struct cli_inputs {
    sfti_arena arena;
    const sft_files *files; /* of the options; or NULL */
    cli_listed *listed;
    cli_input **items; /* natural order */
    size_t count;
    size_t passed[CLI_OTHER_FORMATS]; /* files of other formats in the folder */
} cli_inputs;

/* How deep a folder is entered: itself, all of it, itself and the components of a pipeline (a
 * folder with a model_index.json). */
typedef enum cli_depth { CLI_ONE_LEVEL = 0, CLI_ALL_LEVELS = 1, CLI_WITH_PARTS = 2 } cli_depth;

/* Added to a depth: models in other formats count too, broken ones as well; or sound
 * ones, only where no model in safetensors was found. */
#define CLI_AND_OTHERS 4
#define CLI_ELSE_OTHERS 8
/* And: numbered shards without an index, found in a folder, are one input, at the place of the
 * first; CLI_BLOCKED if one of them is missing. */
#define CLI_JOIN_SHARDS 16
/* Or: they stay inputs of their own, and the first says which other is missing. */
#define CLI_TELL_MISSING 32
/* And: a pipe or device that is named is CLI_BLOCKED, too. */
#define CLI_FILES_ONLY 64

/* Expand one operand. A folder, which may be remote (open->files), gives the models in
 * it (and, by depth, below it): files *.safetensors and *.sft in any case,
 * *.safetensors.index*.json; not `._*`, not hidden folders; links to files are followed, links to
 * folders are not; a pipe or device of such a name is CLI_BLOCKED. A shard that an index found on
 * the way names is left out. Any other path is an input as it is; whether it can be opened is
 * found out later. A folder that is `except` (NULL: none) is not entered from the one that it lies
 * in. open serves reading the indexes. Fails only when memory runs out. Free with cli_inputs_free,
 * also after a failure. */
sft_code cli_inputs_expand(const char *operand, cli_depth depth, const char *except,
                           const sft_open_options *open, cli_inputs *out, sft_error *err);
void cli_inputs_free(cli_inputs *inputs);

/* The only model among the inputs of an operand. SFT_BAD_ARGUMENT for another number; what made an
 * input CLI_BLOCKED. */
sft_code cli_inputs_one(const cli_inputs *inputs, const cli_input **out, sft_error *err);
/* Fails for a folder that does not hold one model but `count`. */
sft_code cli_not_one(size_t count, sft_error *err);

/* Whether the folder (without a slash at its end; empty: here) is a pipeline's. Of one that is
 * remote: as it was listed; what was not is none. */
bool cli_is_pipeline(const cli_inputs *inputs, sft_span folder);
/* Whether a file lies in a folder of a pipeline's. */
bool cli_is_component(const char *path);
/* The same of a dataset, which is never remote. */
bool cli_is_dataset(const cli_inputs *inputs, sft_span folder);
/* The folder of the dataset whose shard, or whose column beside one, is called so, or was to be:
 * what lies in a job's folder belongs to no dataset yet, and to nobody else. False: it has no such
 * name. */
bool cli_dataset_folder(const char *path, sft_span *folder);
/* SFT_BAD_ARGUMENT: the file is a dataset's, whose manifest tells its length and digest. */
sft_code cli_check_dataset(const char *path, sft_error *err);
/* Whether a remote path is taken for a folder's. */
bool cli_is_folder_url(const char *name);
/* Whether a remote folder was listed. */
bool cli_was_listed(const cli_inputs *inputs, sft_span folder);

#endif
