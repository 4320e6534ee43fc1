/* What info says of a model whose metadata were changed, and what stands beside its file. */
#ifndef CLI_META_LABEL_H
#define CLI_META_LABEL_H

#include "support/edit.h"

/* Of pairs that are set now: each fact of which info shows another value than the pair tells, into
 * the result, texts in the arena. A file that cannot be looked at has none. */
void meta_still_shown(cli *c, const char *path, const sft_pair *pairs, size_t count,
                      sfti_arena *arena, cli_edit_result *result);
/* The sidecars and previews beside the file, likewise. */
void meta_beside(cli *c, const char *path, sfti_arena *arena, cli_edit_result *result);
/* What a key that scrub keeps may tell of people, or NULL. */
const char *meta_kept_reason(sft_span key, sft_span value);

#endif
