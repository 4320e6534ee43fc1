/* PEFT's adapters: a file of a fixed name, and beside it the configuration that tells its alpha. */
#ifndef CLI_ADAPTERS_H
#define CLI_ADAPTERS_H

#include "safetensors_hash.h"
#include "support/cli.h"

#define CLI_ADAPTER_CONFIG "adapter_config.json"

/* Whether a file has the name beside which adapter_config.json is read: adapter_model.EXT, one of
 * its numbered shards, or their index. */
bool cli_is_adapter_model(const char *path);
/* The text of PEFT's adapter_config.json beside an adapter of a fixed name; empty where there is
 * none. *out is empty before. */
sft_code cli_read_adapter_config(cli *c, const char *model, sft_buffer *out, sft_error *err);

/* The SHA-256 of that text; empty where there is none. */
sft_code cli_digest_adapter_config(cli *c, const char *model, char hex[SFT_HASH_TEXT_SIZE],
                                   sft_error *err);

/* Before what is made of models goes to the file `to` (NULL: not to a file that is there, or to
 * standard output): refuses to put it beside the configuration of another adapter, unless --force
 * is given, and to lose different ones of several models. */
sft_code cli_check_adapter_config(cli *c, const char *const *models, size_t count, const char *to,
                                  sft_error *err);
/* With what was written: that it lacks what lies beside the model, or is read by others'. */
void cli_say_beside(cli *c);

#endif
