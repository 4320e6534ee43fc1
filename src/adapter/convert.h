/* Adapters under other names: of kohya, PEFT, diffusers, ComfyUI (convert.c). Tests:
 * tests/layout/run.py. */
#ifndef SFTI_ADAPTER_CONVERT_H
#define SFTI_ADAPTER_CONVERT_H

#include "adapter/adapter.h"
#include "safetensors_adapter.h"

/* A module as it is written: for the configuration of PEFT. */
typedef struct sfti_lora_written {
    sft_span name, component; /* without and the component's name */
    uint64_t rank;
    double alpha;
    bool dora, bias; /* with magnitudes, a bias of the up matrix */
} sfti_lora_written;

typedef struct sfti_lora_converted {
    sfti_layout_out out;     /* the tensors */
    sfti_lora_written *modules;
    size_t count, room;
    size_t split, joined;    /* modules of fused layers that were divided, and made */
    size_t folded;           /* of which alpha went into the up matrix: the way back is not exact */
    bool resized;            /* modules have another rank or alpha than before */
    size_t *unmatched, unmatched_count; /* modules that the layout does not know */
    sft_source *sources;     /* of the shards */
} sfti_lora_converted;

/* Plans it, in the memory of `out`, to be freed with sfti_lora_converted_free after a failure,
 * too.
 * The adapter must outlive it. alpha_form: how alphas that are not in tensors were stored before,
 * or empty. SFT_CAST_DTYPE names what the other format has no place for. */
sft_code sfti_lora_convert(const sfti_lora *lora, const sfti_layout_text *layouts,
                           const sfti_layout_model *model, sft_adapter_format to,
                           sft_span alpha_form, const sft_allocator *alloc,
                           sfti_lora_converted *out, sft_error *err);
/* Whether an adapter is of text encoders alone, by its names. */
bool sfti_convert_is_of_encoders(const sft_set *adapter);
void sfti_lora_converted_free(sfti_lora_converted *converted);

#endif
