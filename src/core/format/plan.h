/* What the writer needs of a plan beyond the public calls. */
#ifndef SFTI_PLAN_H
#define SFTI_PLAN_H

#include "safetensors.h"

/* As sft_plan_new for the specs of parts, which outlive the plan: nothing of them is copied. */
sft_code sfti_plan_parts(const sft_part *parts, size_t count, const sft_pair *metadata,
                         size_t metadata_count, const sft_plan_options *options, sft_plan **out,
                         sft_error *err);

/* The allocator the plan was made with, for what is made for the plan. */
const sft_allocator *sfti_plan_allocator(const sft_plan *plan);
/* Bytes of a tensor's entry in the header's text, without a comma. */
uint64_t sfti_plan_entry(const sft_tensor *tensor);

#endif
