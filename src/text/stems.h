/* Names of files and folders of models (stems.c). */
#ifndef SFTI_TEXT_STEMS_H
#define SFTI_TEXT_STEMS_H

#include "base/mem.h"
#include "text/text.h"

/* A file name without .safetensors or .sft (else its last suffix). */
sft_span sfti_stem(sft_span name);
/* Where "-00001-of-00003" stands in a name: *begin its hyphen, *total behind the first number,
 * *end behind it all. */
bool sfti_shard_number(sft_span name, size_t *begin, size_t *total, size_t *end);
/* A name that programs give to any model: "model", "adapter_model.fp16",
 * "pytorch_lora_weights_rank4", "checkpoint-500", "model-00001-of-00003". */
bool sfti_generic_stem(sft_span stem);
/* Whether a stem may be called a name: "x" and "model" may not. */
bool sfti_telling_stem(sft_span stem);

/* "ORG/NAME" from "…/models--ORG--NAME/snapshots/REV…", a Hub cache; empty if it is no such path,
 * or out of memory. */
sft_span sfti_repo_of_cache(sfti_arena *arena, sft_span path);
/* "ORG/NAME" from "hf://[models/]ORG/NAME[@REV]…"; empty if it is no such path. *inner: whether
 * more follows. */
sft_span sfti_repo_of_url(sft_span path, bool *inner);

#endif
