/* What of a model's metadata may be private. */
#ifndef CLI_SCRUB_H
#define CLI_SCRUB_H

#include "safetensors.h"

/* Why a pair may tell of somebody or his machine: "a session id", "an absolute path"; NULL
 * when it does not seem to. */
const char *cli_scrub_reason(sft_span key, sft_span value);

#endif
