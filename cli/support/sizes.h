/* Sizes and counts on the command line. */
#ifndef CLI_SIZES_H
#define CLI_SIZES_H

#include "safetensors.h"

/* "5GB", "4.5 GiB", "1000": bytes, K M G T as powers of 1000, Ki Mi Gi Ti of 1024; at most six
 * digits after the point. */
sft_code cli_parse_size(const char *text, uint64_t *out, sft_error *err);
/* Digits only. what: "shards", for the message. */
sft_code cli_parse_count(const char *text, const char *what, uint32_t *out, sft_error *err);

#endif
