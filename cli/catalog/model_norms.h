/* Norms of a LoRA's modules in a page. */
#ifndef CATALOG_MODEL_NORMS_H
#define CATALOG_MODEL_NORMS_H

#include "base/json.h"
#include "support/models.h"

#define NORMS_RANK_MOST 1024 /* modules of a higher rank are left out */

/* Writes the member `norms` of ModelPage into the object that is open: of each plain LoRA pair
 * the Frobenius norm of up @ down, times alpha / rank. Nothing without such pairs. Memory: 4 MiB
 * for the data and 16 bytes for each element of a square of the highest rank. */
sft_code model_norms_write(const cli_model *model, cli *c, sfti_json_writer *w, sft_error *err);

#endif
