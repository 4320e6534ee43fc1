/* Names of dtypes on the command line: those of the format and what other tools call them. */
#ifndef CLI_DTYPES_H
#define CLI_DTYPES_H

#include "safetensors.h"
#include "support/print.h"

/* Appended to the help of an option that takes such a name. */
#define CLI_DTYPE_HELP "in any case, or as other tools call them: fp16, bfloat16, e4m3fn, ..."

/* A dtype by any of its names. SFT_BAD_ARGUMENT suggests the nearest one. */
sft_code cli_dtype_read(sft_span name, sft_dtype *out, sft_error *err);

/* A line for each dtype of the format, with its other names. */
void cli_dtypes_print(cli_out *out);

/* A set of dtypes, a bit each. */
typedef uint32_t cli_dtypes;
static inline bool cli_dtypes_has(cli_dtypes set, sft_dtype dtype) {
    return (set >> dtype & 1) != 0;
}
/* "bf16,fp8": all of them; NULL: every dtype. */
sft_code cli_dtypes_read(const char *list, cli_dtypes *out, sft_error *err);

#endif
