/* What the files of lora convert share (convert.c, convert_names.c, convert_tensors.c,
 * convert_fused.c, convert_rows.c). */
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
    sft_span *written; /* names of modules */
    uint32_t written_count;
    sfti_names names; /* of those */
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

/* ── Tensors that are written (convert_tensors.c) ── */

/* sfti_convert_name of a module that is written now, which no other module has. */
sft_code sfti_convert_take_name(sfti_convert_run *run, const sfti_convert_layer *layer,
                                sft_span pattern, sft_span *out);
typedef enum sfti_convert_end_kind {
    SFTI_END_UP, SFTI_END_DOWN, SFTI_END_MID, SFTI_END_ALPHA, SFTI_END_MAGNITUDE, SFTI_END_BIAS
} sfti_convert_end_kind;

/* How the other format calls that tensor of a module; NULL: it has none. */
const char *sfti_convert_ending(const sfti_convert_run *run, sfti_convert_end_kind kind);
/* Refuses the module with SFT_CAST_DTYPE: what was expected of it. */
sft_code sfti_convert_refuse(const sfti_convert_run *run, const sfti_lora_module *m,
                             const char *what);
/* To PEFT's or diffusers' format, which take LoRA alone. */
bool sfti_convert_is_peft(const sfti_convert_run *run);
sft_part sfti_convert_part(const sfti_convert_run *run, uint32_t slot);
/* What stands behind the module's name in the other format; NULL: it has no place for the tensor.
 * */
const char *sfti_convert_leaf(const sfti_convert_run *run, const sfti_lora_module *m,
                              sfti_adapter_slot slot);
/* composed: of segments that the caller adds; otherwise of the bytes of `from`. */
sft_code sfti_convert_add(sfti_convert_run *run, sft_span module, const char *end,
                          const sft_part *from, bool composed, uint32_t rank,
                          const uint64_t *shape);
/* Alpha, and what the configuration says of the module. */
sft_code sfti_convert_add_scale(sfti_convert_run *run, sft_span name,
                                const sfti_convert_layer *layer, uint64_t rank, double alpha);

/* ── Fused layers (convert_fused.c, convert_rows.c) ── */

/* The pieces of a fused layer, by their places in it. */
typedef struct sfti_convert_fused {
    const sfti_convert_layer *at[SFTI_LAYOUT_PIECES]; /* NULL: the adapter has none */
    uint64_t rows[SFTI_LAYOUT_PIECES], total, cols;
    bool same; /* one down serves all */
} sfti_convert_fused;

/* The layer becomes those that it stands for, or all pieces of one become it. Both refuse by name
 * what would not be exact. */
sft_code sfti_convert_split(sfti_convert_run *run, const sfti_convert_layer *layer);
sft_code sfti_convert_stack(sfti_convert_run *run, sfti_convert_layer *const *pieces,
                            unsigned count);
/* The same of modules that are no pairs of factors. */
sft_code sfti_convert_split_rows(sfti_convert_run *run, const sfti_convert_layer *layer);
sft_code sfti_convert_join_rows(sfti_convert_run *run, sfti_convert_layer *const *pieces,
                                unsigned count, sfti_convert_fused *f);
/* All bytes, in memory of `work`. */
sft_code sfti_convert_load(sfti_convert_run *run, const sft_part *part, sfti_arena *work,
                           uint8_t **out);
bool sfti_convert_is_zero(const uint8_t *bytes, uint64_t len);
/* Whether all pieces have the same tensor in a slot, or none. */
sft_code sfti_convert_same_tensors(sfti_convert_run *run, sfti_convert_layer *const *pieces,
                                   unsigned count, sfti_adapter_slot slot, bool *out);
bool sfti_convert_same_scales(sfti_convert_layer *const *pieces, unsigned count);
/* Rows of the pieces that are there are known; those of others follow by the rule. */
sft_code sfti_convert_settle_rows(const sfti_convert_run *run, const sfti_layout_rule *rule,
                                  const sfti_lora_module *m, sfti_convert_fused *f);

#endif
