/* What the two files of lora convert share (convert.c, convert_names.c). */
#ifndef SFTI_CONVERT_NAMES_H
#define SFTI_CONVERT_NAMES_H

#include "adapter/convert.h"

/* A module, and which layer of the model it is. */
typedef struct sfti_convert_layer {
    const sfti_lora_module *module;
    const sfti_layout_component *component;
    const sfti_layout_rule *rule;
    sfti_side side;  /* of its name */
    unsigned piece;  /* of the rule, if side is DIFFUSERS */
    sfti_layout_match match;
    bool done;
    sft_span joined;   /* what it is fused into; empty: it is not */
    size_t next, last; /* in the list of these pieces, numbers + 1; last: of the first one */
} sfti_convert_layer;

typedef struct sfti_convert_run {
    const sfti_lora *lora;
    const sfti_layout_text *layouts;
    const sfti_layout_model *model;
    sft_adapter_format to;
    sft_span alpha_form;
    sfti_lora_converted *out;
    sfti_convert_layer *layers;
    sft_error *err;
} sfti_convert_run;

/* Which layer the module is; layer->rule is NULL where no name fits. */
sft_code sfti_convert_layer_of(sfti_convert_run *run, const sfti_lora_module *m,
                               sfti_convert_layer *layer);
/* The side whose names the other program has. */
sfti_side sfti_convert_side(const sfti_convert_run *run, const sfti_convert_layer *layer);
/* What stands before a layer's name; text: room for 96 bytes. */
sft_span sfti_convert_prefix(const sfti_convert_run *run, const sfti_convert_layer *layer,
                             char *text);
/* The name of a module, of one of the patterns of its rule; empty when out of memory or too
 * long. */
sft_span sfti_convert_name(sfti_convert_run *run, const sfti_convert_layer *layer,
                           sft_span pattern);

#endif
