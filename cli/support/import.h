/* Models in other formats than safetensors: opened as sets, so that commands need not know, and
 * what there is to say of them. */
#ifndef CLI_IMPORT_H
#define CLI_IMPORT_H

#include "safetensors_import.h"
#include "support/cli.h"

/* The options of convert that say what is imported. */
extern const cli_option cli_import_options_table[];

/* By the settings; of commands that only read, tensors that cannot be carried are left out.
 * SFT_BAD_ARGUMENT. */
sft_code cli_import_options(const cli *c, sft_import_options *out, sft_error *err);

/* Open a path: safetensors, or else whatever format it is in. *import is what the set is of, NULL
 * for safetensors; it lives as long as the set. When it is neither, err says why it is not
 * safetensors. */
sft_code cli_open_path(cli *c, const char *path, const sft_set_options *options, sft_set **out,
                       sft_import **import, sft_error *err);

/* Lines about an import: aliases, what was left out, globals that a pickle loader would have
 * called. */
void cli_say_import(cli *c, const char *path, const sft_import *import);
/* "a, b and 3 more": globals with calls, or nothing; whether there are any. */
bool cli_say_globals(cli_out *out, const sft_import *import, size_t most);
/* The member "import" of a result. */
void cli_put_import(cli *c, sfti_json_writer *w, const char *path, const sft_import *import);

#endif
