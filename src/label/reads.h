/* Which keys of __metadata__ (header/header.c) and which files beside a model (sidecars/by_stem.c)
 * tell facts of it. */
#ifndef SFTI_INFO_READS_H
#define SFTI_INFO_READS_H

#include "safetensors_info.h"

#include <stdbool.h>

/* Whether a fact's source may be the pair with this key; few that are none are taken for one. */
bool sfti_header_reads(sft_span key);
/* What follows the stem of a model in this name of a sidecar; that of this model, if it may be its:
 * "a.swarm.json" ends in ".json" beside "a.swarm". NULL if none is named so. */
const char *sfti_sidecar_ending(sft_span name, sft_span stem);

/* What the mark (text/derived.h) of the sidecar that the label has under this path (empty: of the
 * header) says: whether it names this file as an origin, under this name or one of an older stem;
 * and whether this file, or "model", is apart from it. */
bool sfti_label_names(sft_info *info, sft_span path, sft_span file);
bool sfti_label_is_apart(sft_info *info, sft_span path, sft_span file);

#endif
