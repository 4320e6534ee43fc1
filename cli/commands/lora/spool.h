/* Factors on their way to OUT, whose header needs all ranks: an unnamed file in its folder, or
 * memory where the system has none; and OUT itself. */
#ifndef CLI_LORA_SPOOL_H
#define CLI_LORA_SPOOL_H

#include "commands/lora/factored.h"

/* path NULL: memory. */
void lora_spool_open(lora_factoring *f, const char *path);
/* With the lock held. Nothing with --dry-run. */
sft_code lora_spool_put(lora_factoring *f, uint64_t at, const void *bytes, uint64_t len,
                        sft_error *err);
void lora_spool_close(lora_factoring *f);
/* Write OUT by what the layers became, and tell of it. */
sft_code lora_write(lora_factoring *f, cli_output *out, sft_error *err);

#endif
