/* Values that casts to fewer bits have lost: a warning, and a member of a result. */
#ifndef CLI_CONVERT_LOST_H
#define CLI_CONVERT_LOST_H

#include "base/json.h"
#include "safetensors_convert.h"
#include "support/cli.h"

/* Names the worst of the tensors that lost more than a hundredth of their values, if there are
 * any. */
void convert_warn_lost(cli *c, const char *input, const sft_set *set,
                       const sft_conversion *conversion, sft_dtype to);
/* The member "lost". */
void convert_put_lost(const sft_set *set, const sft_conversion *conversion, sfti_json_writer *w);

#endif
