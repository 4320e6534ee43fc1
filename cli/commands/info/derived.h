/* Marking what info --save-as writes as derived (base/derived.h), and taking it back. */
#ifndef CLI_INFO_DERIVED_H
#define CLI_INFO_DERIVED_H

#include "commands/info/facts.h"

/* Renders what is known; twice the same of the same facts. */
typedef sft_code cli_derived_render(cli_saving *saving, void *ctx, sft_buffer *out,
                                    sft_error *err);

/* The object of origins of what render writes: each value under the names of all files beside the
 * model that it would not be known without, joined by '/'. all: its digests. */
sft_code cli_derive(cli_saving *saving, cli_derived_render *render, void *ctx, sft_buffer *origins,
                    sfti_derived *all, sft_error *err);
/* A JSON object without its mark and without values that the mark has, all of it in the arena; of a
 * list that others added to, all stays. An object without a mark as it is. */
sft_code cli_underive(cli_saving *saving, sft_span object, sfti_derived *marked, sft_span *out,
                      sft_error *err);

#endif
