/* What the verbs of `lora` share. */
#ifndef CLI_LORA_H
#define CLI_LORA_H

#include "adapter/adapter.h"
#include "safetensors_info.h"
#include "support/cli.h"

/* An adapter that an operand names. */
typedef struct lora_adapter {
    const char *operand; /* as it was given */
    double strength;
    cli_inputs inputs;
    const char *path; /* of the file or index */
    sft_set *set;
    bool borrowed; /* the set */
    bool describes; /* set before opening: metadata of other names do no harm */
    sft_buffer config; /* adapter_config.json beside it, or empty */
    sfti_lora lora;
    sfti_lora_map map;
} lora_adapter;

/* Open one: with `strength` the operand is ADAPTER[:STRENGTH], of which the number is cut off
 * unless there is a file of the whole name. Zeroed before, and to be closed after a failure too. */
sft_code lora_open(cli *c, char *operand, bool strength, lora_adapter *out, sft_error *err);
/* The same of a set that is open already, at this path, and outlives it: what it holds is not read,
 * out->lora stays empty. */
sft_code lora_borrow(cli *c, sft_set *set, const char *path, lora_adapter *out, sft_error *err);
void lora_close(lora_adapter *adapter);
/* PEFT keeps alpha out of the file, and nothing beside it tells one. */
void lora_warn_of_alpha(cli *c, const lora_adapter *adapter);

/* Report an error: the files were read and do not go together, or hold what nobody can merge (the
 * status is 1), or could not be read (2). */
void lora_fail(cli *c, const char *path, sft_error *err);

/* The id of the model whose layouts are used, as --architecture, --model or, by the records that
 * the command uses, the adapter tells it. */
sft_code lora_architecture(cli *c, sfti_arena *arena, const sft_set *adapter, const char **blame,
                           const char **out, sft_error *err);

void lora_merge(cli *c, char **operands, size_t count);
void lora_convert(cli *c, char **operands, size_t count);
void lora_info(cli *c, char **operands, size_t count);
void lora_resize(cli *c, char **operands, size_t count);
void lora_stack(cli *c, char **operands, size_t count);
void lora_extract(cli *c, char **operands, size_t count);
void lora_simplify(cli *c, char **operands, size_t count);

#endif
