/* A model with adapters merged into it: what goes into its file. */
#ifndef SFTI_ADAPTER_MERGE_H
#define SFTI_ADAPTER_MERGE_H

#include "adapter/adapter.h"
#include "base/json.h"
#include "convert/again.h"
#include "safetensors_adapter.h"

typedef struct sfti_merge_input {
    const sft_set *set, *stored; /* what is read, and its files */
    sft_set *named;              /* `set`, if metadata record other names of tensors; or NULL */
    sfti_lora lora;
    sfti_lora_map map;
    double strength;
    double *strengths; /* of the map's targets, or NULL */
    sft_set *renamed;  /* what `lora` is of instead, with other names; or NULL */
    sft_span name, blocks, config;
} sfti_merge_input;

/* Options of one input, taken. */
sft_code sfti_merge_use(const sft_adapter_use *use, sft_adapter_use *out, sft_error *err);
/* An input in the arena: an adapter, which is read, or a model, of which only the name is taken.
 * To be closed, but not after a failure. */
sft_code sfti_merge_input_new(sfti_arena *arena, const sft_set *set, const sft_adapter_use *use,
                              bool adapter, sfti_merge_input **out, sft_error *err);
void sfti_merge_input_close(sfti_merge_input *input);

/* A quantised tensor of which the values change. */
typedef struct sfti_merge_again {
    sft_adapter_merge *of;
    sfti_again again;
    sft_span name;  /* of the values */
    uint64_t begin; /* of them in the source of what changes */
    sfti_stochastic stochastic;
    bool rounds;
} sfti_merge_again;

/* Bytes of one of its parts. */
typedef struct sfti_merge_output {
    sfti_merge_again *of;
    size_t part;
    sft_source source;
} sfti_merge_output;

struct sft_adapter_merge {
    sfti_arena arena;
    sft_allocator alloc;
    sft_adapter_merge_options options;
    const sft_set *model;
    sft_conversion *conversion; /* that `owned` owns */
    sft_set *owned;             /* the model by its values; NULL: nothing in it is quantised */
    const sft_set *values;      /* that, or the model */
    sfti_merge_input **inputs;
    size_t count, capacity;
    sfti_patched *patched; /* NULL: it is not planned */
    sft_source *files;     /* of the model's shards */
    sft_part *parts;       /* of its tensors */
    sfti_merge_again *agains;
    sfti_merge_output *outputs;
    sfti_encoder encoder;
    size_t blames;
    sft_buffer recipe, names;
};

/* The two values of the header that tell of the merge, into merge->recipe and ->names. model: the
 * name of its file. digests: those of the adapters, for which they are read; else null. */
sft_code sfti_adapter_recipe(sft_adapter_merge *merge, sft_span model, bool digests,
                             sft_error *err);

/* What every recipe tells of one adapter (blocks.data NULL: they are not told) and of one model,
 * whose recorded digests it takes. */
sft_code sfti_recipe_adapter(sfti_json_writer *w, const sfti_merge_input *input, bool digests,
                             sft_error *err);
void sfti_recipe_model(sfti_json_writer *w, const sft_set *set, sft_span name);
/* Metadata of all shards, the first of each key, but digests of the data and those keys; there is
 * room for 8 more. dropped: which recipes go, too. */
typedef enum sfti_recipe_drop {
    SFTI_KEEPS_RECIPES, SFTI_DROPS_LORA, SFTI_DROPS_ALL
} sfti_recipe_drop;
sft_code sfti_recipe_pairs(const sft_set *set, sfti_arena *work, const char *const *without,
                           size_t without_count, sfti_recipe_drop dropped, sft_pair **out,
                           size_t *count, sft_error *err);
/* The recipes that there were: of the same verb as the member "before", others, of lora or of all
 * kinds, by their keys in "before_others"; nothing if there were none. */
void sfti_recipe_before(sfti_json_writer *w, const sft_set *set, const char *verb, bool lora_alone);

/* Whether the bytes of tensor i are computed; else they are those of its file. */
bool sfti_merge_computes(const sft_adapter_merge *merge, size_t i);

#define SFTI_MERGE_RECIPE "sft_lora_merge"
#define SFTI_MERGE_NAMES "modelspec.merged_from"

#endif
