/* Values as text and text as values: elements, names of dtypes, sizes, base64. */
#ifndef CLI_VALUES_H
#define CLI_VALUES_H

#include "base/mem.h"
#include "support/print.h"

/* ── Elements: what cat --as text and --as json show ── */

#define CLI_VALUE_SIZE 80

/* Element i of packed little-endian bytes into buffer; returns the length. Floats have the
 * fewest digits that give the same value back. json: NaN and infinities are strings, a
 * complex number is a pair. Elements under 8 bits are packed from
 * the low bits of a byte up. */
size_t cli_value_text(sft_dtype dtype, const void *bytes, uint64_t i, bool json,
                      char buffer[CLI_VALUE_SIZE]);

/* ── Dtypes by name ── */

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

/* ── Sizes and counts ── */

/* "5GB", "4.5 GiB", "1000": bytes, K M G T as powers of 1000, Ki Mi Gi Ti of 1024; at most six
 * digits after the point. */
sft_code cli_parse_size(const char *text, uint64_t *out, sft_error *err);
/* Digits only. what: "shards", for the message. */
sft_code cli_parse_count(const char *text, const char *what, uint32_t *out, sft_error *err);

/* ── Base64 ── */

/* Bytes that it takes. */
static inline size_t cli_base64_size(size_t bytes) { return (bytes + 2) / 3 * 4; }
/* With `=` at the end; to out, which holds cli_base64_size bytes. */
size_t cli_base64(sft_span bytes, char *out);
/* "data:image/png;base64,…" in the arena; data NULL when out of memory. */
sft_span cli_data_url(const char *media_type, sft_span bytes, sfti_arena *arena);

#endif
