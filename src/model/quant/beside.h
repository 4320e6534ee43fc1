/* What declares quantised layers beside a model's tensors, in files of its folder. */
#ifndef SFTI_QUANT_BESIDE_H
#define SFTI_QUANT_BESIDE_H

#include "base/mem.h"
#include "safetensors_set.h"

/* Whether codes of quantised layers are stored in this dtype. */
bool sfti_may_hold_codes(sft_dtype dtype);
/* Whether any tensor has such a dtype. */
bool sfti_declared_may(const sft_set *set);
/* The objects of config.json and the like beside a model at that path, as they stand, one behind
 * another; empty where there are none. files: as in sft_open_options. */
sft_code sfti_declared_beside(const char *path, const sft_files *files, sfti_arena *arena,
                              sft_span *out, sft_error *err);
/* The first of these new names of tensors (keys: the old ones) of whose layer these objects tell
 * other sizes or groups of a quantization_config than they did; *out NULL: there is none. */
sft_code sfti_declared_follows(const char *path, const sft_files *files, const sft_pair *names,
                               size_t count, sfti_arena *arena, const sft_pair **out,
                               sft_error *err);

#endif
