/* Quantising a model: parts to be written in place of its matrices, and their declarations. */
#ifndef SFTI_QUANTISE_H
#define SFTI_QUANTISE_H

#include "base/mem.h"
#include "safetensors_convert.h"

/* A format in a layout, with scales of a kind: lines "write" of data/quantised.layouts. */
typedef struct sfti_quant_target sfti_quant_target;

/* The one of these names, in the arena; scale NULL: the usual one. SFT_BAD_ARGUMENT tells what
 * there is. */
sft_code sfti_quant_target_find(const char *layout, const char *format, const char *scale,
                                sfti_arena *arena, const sfti_quant_target **out, sft_error *err);
sft_span sfti_quant_target_format(const sfti_quant_target *target);
sft_span sfti_quant_target_layout(const sfti_quant_target *target);
sft_span sfti_quant_target_scale(const sfti_quant_target *target);

typedef struct sfti_quantising sfti_quantising;

/* What becomes of a tensor of the set. */
typedef enum sfti_quantise_action {
    SFTI_QUANTISE_CODES,  /* is quantised */
    SFTI_QUANTISE_LEFT,   /* is written as it is */
    SFTI_QUANTISE_VALUES, /* was quantised and is spared: its values, as BF16 */
    SFTI_QUANTISE_GONE    /* belongs to a tensor that was quantised */
} sfti_quantise_action;

typedef struct sfti_quantise_options {
    const sfti_quant_target *target;
    bool from_quantised; /* through values of quantised tensors; else such a model is refused */
    /* Why the tensor, of this shape once its values are known, is left as it is, for a list; NULL:
     * it is quantised; "": no matrix of a layer, and not worth telling. */
    const char *(*spares)(void *ctx, size_t i, const sft_spec *values);
    void *ctx;
    const bool *computed; /* sfti_conversion_new: their values are written where they are spared */
    const uint32_t *shard_of; /* the file of each tensor; NULL: that of the set */
    const sft_files *files;
    const sft_allocator *alloc;
} sfti_quantise_options;

/* Plans; the set must outlive it. SFT_CAST_DTYPE: the model is quantised and options say nothing of
 * that (then without a hint), or what quantises it is not known. Free with sfti_quantising_free. */
sft_code sfti_quantising_new(const sft_set *set, const sfti_quantise_options *options,
                               sfti_quantising **out, sft_error *err);
void sfti_quantising_free(sfti_quantising *q);

/* Tensors to be written, `shard` says in which file of the model. One thread at a time reads from
 * their sources. */
const sft_part *sfti_quantising_parts(const sfti_quantising *q, size_t *count,
                                        const uint32_t **shard);
/* Metadata to be written: without digests of the old data and declarations that have ended. */
const sft_pair *sfti_quantising_pairs(const sfti_quantising *q, size_t *count);
/* The digests that are left out (keys/digest_keys.h). */
unsigned sfti_quantising_dropped(const sfti_quantising *q);
/* The quantization_config, JSON text; empty: the layout has none. */
sft_span sfti_quantising_config(const sfti_quantising *q);

/* What becomes of tensor i, and why it is spared (NULL: it is not). */
sfti_quantise_action sfti_quantising_action(const sfti_quantising *q, size_t i,
                                              const char **why);
/* Once its codes are written or read: sums of squares of errors and of values. */
void sfti_quantising_squares(const sfti_quantising *q, size_t i, double *error, double *power);
/* Bytes of all tensors before and after. */
uint64_t sfti_quantising_before(const sfti_quantising *q);
uint64_t sfti_quantising_after(const sfti_quantising *q);
/* Reads all codes and drops them: afterwards the errors are known. */
sft_code sfti_quantising_try(sfti_quantising *q, const sft_job *job, sft_error *err);

#endif
