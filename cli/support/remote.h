/* URLs where commands take paths: operands become names that may be shown, and what is opened by
 * such a name is read through sft_remote. Nothing is sent unless an operand is a URL. */
#ifndef CLI_REMOTE_H
#define CLI_REMOTE_H

#include "base/json.h"
#include "support/cli.h"

extern const cli_option cli_remote_options[];  /* of commands that read: --offline ... */
extern const cli_option cli_network_options[]; /* of these and of --online: --timeout ... */

/* Whether a word is a URL rather than a path: of a scheme that is read, or "word://" if no file
 * is called so. */
bool cli_is_url(const char *word);
/* What may be shown of a path: of a URL that has no name, because a file was expected, without user
 * and query. NULL for NULL. */
#define CLI_SHOWN_SIZE 2048
const char *cli_path_shown(const char *path, char out[CLI_SHOWN_SIZE]);
/* The hint of a path that does not exist, if it was meant as a URL: "owner/name", "hf:owner/name",
 * "huggingface.co/owner/name". */
void cli_remote_guess(const char *path, sft_error *err);
/* Whether a path is what a URL became. */
bool cli_is_remote(const cli *c, const char *path);
/* Whether it is that of a folder. */
bool cli_is_remote_folder(const cli *c, const char *path);

#define CLI_SECONDS_MOST 86400
#define CLI_RETRIES_MOST 10
/* The value of an option, if it was given. SFT_BAD_ARGUMENT. */
sft_code cli_read_number(const char *option, const char *text, uint64_t least, uint64_t most,
                         uint64_t *out, sft_error *err);

/* on_exchange of --log-requests: a line on standard error. */
void cli_remote_log(void *ctx, const sft_exchange *exchange);
/* Requests of another remote, which is closed now: they count below. */
void cli_remote_add(cli *c, sft_remote_sums sums);
/* What was received, with --verbose and --log-requests; and c->remote, which is open, is closed. */
void cli_remote_close(cli *c);

/* Make operands that are URLs their names, and open files so from now on. What is wrong with a URL
 * is the failure of opening it. Fails if `what` ("meta recover") takes none, or only for a copy
 * that is written with -o. */
sft_code cli_remote_take(cli *c, char **operands, size_t count, cli_urls urls, const char *what,
                         sft_error *err);

/* Whether a failure is a server's, and so about what is read, not about what is written. */
bool cli_is_remote_error(sft_code code);

/* What servers claim of a file that was opened; false: nothing, or it is not remote. */
bool cli_remote_claim(const cli *c, const char *path, sft_remote_claim *out);
/* Member "remote" of a result, if its path is remote and was opened. */
void cli_put_remote(const cli *c, sfti_json_writer *w, const char *path);

/* All bytes of a remote file that a model's folder names; at most `most`. out->alloc is set. */
sft_code cli_remote_read(const cli *c, const char *path, uint64_t most, sft_buffer *out,
                         sft_error *err);

#endif
