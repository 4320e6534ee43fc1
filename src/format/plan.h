/* What the writer needs of a plan beyond the public calls. */
#ifndef SFTI_PLAN_H
#define SFTI_PLAN_H

#include "safetensors.h"

/* What a plan is made of. Specs may stand within other structs, pairs may be stored smaller. */
typedef struct sfti_plan_of {
    const sft_spec *specs;
    size_t spec_stride; /* bytes from one to the next */
    size_t count;
    const void *pairs;
    sft_pair (*pair_at)(const void *pairs, size_t i);
    size_t pair_count;
} sfti_plan_of;

/* As sft_plan_new. */
sft_code sfti_plan_make(const sfti_plan_of *of, const sft_plan_options *options, sft_plan **out,
                        sft_error *err);
/* pair_at for an array of sft_pair. */
sft_pair sfti_plan_pair(const void *pairs, size_t i);

/* The allocator the plan was made with, for what is made for the plan. */
const sft_allocator *sfti_plan_allocator(const sft_plan *plan);
/* Bytes of a tensor's entry in the header's text, without a comma. */
uint64_t sfti_plan_entry(const sft_tensor *tensor);

#endif
