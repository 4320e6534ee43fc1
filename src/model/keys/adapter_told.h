/* What PEFT's configuration of an adapter (adapter_config.json, diffusers' lora_adapter_metadata)
 * tells of its values. */
#ifndef SFTI_ADAPTER_TOLD_H
#define SFTI_ADAPTER_TOLD_H

#include "base/mem.h"

/* Whether a member says how tensors are read; all others are of training and of the base. */
bool sfti_adapter_tells(sft_span key);

typedef struct sfti_adapter_told {
    bool alpha;  /* it tells one, or a method that has one by default */
    bool counts; /* without it, factors would be read with other values, or as another method's */
} sfti_adapter_told;

/* By adapter_config.json. Text that is no object may tell anything; an empty one nothing. */
sfti_adapter_told sfti_adapter_told_of(sft_span text);
/* Whether two texts tell the same. The order of members, and those that are off, do not count. */
bool sfti_adapter_told_alike(sft_span a, sft_span b);

#endif
