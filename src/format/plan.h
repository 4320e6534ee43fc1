/* What the writer needs of a plan beyond the public calls. */
#ifndef SFTI_PLAN_H
#define SFTI_PLAN_H

#include "safetensors.h"

/* The allocator the plan was made with, for what is made for the plan. */
const sft_allocator *sfti_plan_allocator(const sft_plan *plan);
/* Bytes of a tensor's entry in the header's text, without a comma. */
uint64_t sfti_plan_entry(const sft_tensor *tensor);

#endif
