/* What declares quantised layers beside a model's tensors, in files of its folder. */
#ifndef SFTI_QUANT_BESIDE_H
#define SFTI_QUANT_BESIDE_H

#include "base/mem.h"
#include "safetensors_set.h"

/* Whether codes of quantised layers are stored in this dtype. */
bool sfti_may_hold_codes(sft_dtype dtype);
/* Whether any tensor has such a dtype. */
bool sfti_declared_may(const sft_set *set);

typedef enum sfti_beside {
    SFTI_BESIDE_SAME,
    SFTI_BESIDE_NONE, /* what is beside the first tells something, and there is nothing */
    SFTI_BESIDE_OTHER,
} sfti_beside;

/* What config.json and the like beside a model at `to` (NULL: in a new folder) say of quantised
 * layers, seen from what those at `from` say (NULL: there are none). Links that lead elsewhere, and
 * what is no file, say nothing. files: as in sft_open_options. */
sft_code sfti_beside_compare(const char *from, const char *to, const sft_files *files,
                             sfti_arena *arena, sfti_beside *out, sft_error *err);
/* The first of these new names of tensors (keys: the old ones) of whose layer these files tell
 * other sizes or groups than they did; *out NULL: there is none. Names of a layer stand
 * together. */
sft_code sfti_beside_follows(const char *path, const sft_files *files, const sft_pair *names,
                             size_t count, sfti_arena *arena, const sft_pair **out,
                             sft_error *err);

/* What the metadata of each shard declare of quantised layers (SFTI_DECLARED_KEY), as key and,
 * without layers of which only other tensors than these parts are there, as value: empty if none is
 * left; the same text if nothing changes. */
sft_code sfti_declared_left(const sft_set *set, const sft_part *parts, size_t count,
                            sfti_arena *arena, sft_pair *out, sft_error *err);

#endif
