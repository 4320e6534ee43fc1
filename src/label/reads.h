/* Which keys of __metadata__ tell facts of a model; header/header.c. */
#ifndef SFTI_INFO_READS_H
#define SFTI_INFO_READS_H

#include "safetensors.h"

#include <stdbool.h>

/* Whether a fact's source may be the pair with this key; few that are none are taken for one. */
bool sfti_header_reads(sft_span key);

#endif
