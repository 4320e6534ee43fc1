/* What meta, rename and put share: open a file to change it, change it in place or write a changed
 * copy with -o, and print what was done. */
#ifndef CLI_EDIT_H
#define CLI_EDIT_H

#include "support/cli.h"
#include "safetensors_edit.h"
#include "safetensors_index.h"

extern const cli_option cli_editing_options[]; /* --safe --copy */

/* By the options. With --dry-run nothing is recovered either. */
sft_edit_options cli_edit_options(const cli *c);

/* Apply it, or write it to -o, or with --dry-run only plan it. */
sft_code cli_edit_finish(cli *c, const char *path, sft_edit *edit, sft_edit_report *report,
                         sft_error *err);

/* A key that was set, of which info shows another value. */
typedef struct cli_edit_still {
    sft_span key, field, value, source;
} cli_edit_still;

/* What a change came to. */
typedef struct cli_edit_result {
    const char *path;
    const sft_edit_report *report; /* NULL: of an index, which changed or did not */
    bool changed;           /* or written with -o all the same: c->same */
    bool same_header;       /* its spare bytes are not printed */
    const char *what;       /* "removed", for the list; NULL: no list */
    const sft_span *listed; /* keys or names */
    size_t listed_count;
    const char *const *reasons; /* of each, or NULL */
    const sft_span *rewritten;  /* keys whose values have lost something; NULL: no list */
    size_t rewritten_count;
    const char *const *rewritten_reasons;
    const sft_pair *renamed;    /* old and new names; NULL: no list */
    size_t renamed_count;
    size_t renamed_aliases;     /* the last of them, which are not counted in text */
    const char *sha256; /* of the file, NULL when it was not computed */
    const cli_edit_still *still; /* NULL: not asked */
    size_t still_count;
    const sft_span *kept; /* keys that may tell of people and stay; NULL: no list */
    size_t kept_count;
    const char *const *kept_reasons;
    const sft_span *beside; /* paths of files that were not looked into; NULL: no list */
    size_t beside_count;
} cli_edit_result;

/* "PATH: updated in place; ...", or the result object of --json. */
void cli_edit_say(cli *c, const cli_edit_result *result);

/* From here on files are opened to be changed as shards of this index: beneath its folder,
 * through no link. Until c->edit_open.beneath is NULL again; memory from the arena. */
sft_code cli_edit_beneath(cli *c, sfti_arena *arena, const char *index, sft_error *err);

/* An index among the operands, unless --each-shard goes to its files. */
/* Write the index, in place or to -o. changes->dry_run: with --dry-run. */
sft_code cli_edit_index(cli *c, const char *path, const sft_index_changes *changes,
                        bool *changed, sft_error *err);

/* SFT_TENSOR_DUPLICATE: two tensors of the set, listed in its index or not, would have one name.
 * SFT_NAME_RESERVED: one is "__metadata__". names: old and new, in the set's order. */
sft_code cli_edit_names_free(const sft_set *set, const sft_pair *names, size_t count,
                             sfti_arena *arena, sft_error *err);

/* cli_fail_input, of the input or of -o. */
void cli_edit_fail(cli *c, const char *path, const sft_error *err);

/* The path of the one model in a folder, else the operand itself; the path is in the arena. */
sft_code cli_edit_operand(cli *c, sfti_arena *arena, const char *operand, const char **path,
                          sft_error *err);
/* Before a command changes a model in place: recover an interrupted edit of one of its files. Not
 * with --dry-run or -o. */
sft_code cli_edit_recover(cli *c, const char *path, sft_error *err);

typedef sft_code (*cli_edit_fn)(cli *c, const char *path, void *ctx, sft_error *err);
/* For each shard of an index. Fails before the first file; a failure of a file is reported here and
 * ends it: those before are changed. */
sft_code cli_edit_each_shard(cli *c, const char *path, cli_edit_fn each, void *ctx,
                             sft_error *err);
/* For each file an index names; of those that are not there, the first few. */
sft_code cli_edit_each_named(cli *c, const char *index, cli_edit_fn each, void *ctx,
                             sft_error *err);

#endif
