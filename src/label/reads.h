/* Which keys of __metadata__ (header/header.c) and which files beside a model (sidecars/by_stem.c)
 * tell facts of it. */
#ifndef SFTI_INFO_READS_H
#define SFTI_INFO_READS_H

#include "safetensors.h"

#include <stdbool.h>

/* Whether a fact's source may be the pair with this key; few that are none are taken for one. */
bool sfti_header_reads(sft_span key);
/* What follows the model's stem in this name of a sidecar; NULL if none is named so. */
const char *sfti_sidecar_ending(sft_span name);

#endif
