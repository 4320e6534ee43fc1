/* Adapters of factors of another rank: resize.c (resize, stack), extract.c, simplify.c say which
 * layers there are; factored.c computes them, factored_save.c makes a file of them. */
#ifndef SFTI_FACTORED_H
#define SFTI_FACTORED_H

#include "adapter/lowrank.h"
#include "adapter/merge.h"

#define SFTI_FACTORED_DIMS 8

/* One pair of factors. */
typedef struct sfti_factor {
    sft_adapter_factor told;
    const char *up, *down, *alpha; /* names of its tensors; alpha NULL: none, the scale is folded */
    uint64_t up_shape[SFTI_FACTORED_DIMS], down_shape[SFTI_FACTORED_DIMS]; /* but for the rank */
    uint32_t up_dims, down_dims;
    bool turned; /* PEFT's embeddings: the factors are stored the other way round */
    bool conv;   /* with a kernel */
    sft_dtype dtype, alpha_dtype;
    double scale;   /* what the product is multiplied with */
    size_t number;  /* the verb's own */
    size_t blames;  /* the input that an error of it is about */
    uint64_t begin; /* of its alpha, then up and down, among all factors */
} sfti_factor;

/* One layer's factors without its scale. May be called by several threads at once. */
typedef sft_code (*sfti_factor_fn)(sft_adapter_factors *f, sfti_factor *layer,
                                   const sfti_rank_rule *rule, sfti_arena *arena,
                                   sfti_lowrank *out, sft_error *err);

struct sft_adapter_factors {
    sft_allocator alloc;
    sfti_arena arena; /* has all that is named here */
    sft_adapter_verb verb;
    sft_adapter_factors_options options;
    sfti_rank_rule rule;
    bool has_rule, planned, computed;
    sfti_merge_input **inputs;
    size_t input_count, input_capacity;
    size_t adapters; /* of the inputs, from the first on; the others are models */
    sfti_factor *layers;
    size_t count, capacity;
    sfti_factor_fn compute;
    void *ctx;
    sft_source **sources; /* of the shards of each input */
    sft_part *kept;       /* tensors that are written as they are */
    size_t kept_count, kept_capacity;
    const sfti_lora_module **plain; /* modules that are written as they are, of keeps_metadata */
    size_t plain_count;
    bool keeps_metadata;  /* those of the first input */
    bool is_network;      /* a new adapter as kohya's scripts name and label them */
    sft_span *unmatched;
    size_t unmatched_count, unmatched_capacity;
    size_t notes[SFT_ADAPTER_LEFT_BASES + 1];
    size_t blames;
    sft_conversion *scales[2]; /* of models */
    /* the factors that are computed */
    size_t next;
    int fd;
    sft_buffer memory, recipe, args;
    uint64_t size;
    sft_source source;
    sft_part *parts;
    sft_pair *pairs;
    size_t part_count, pair_count;
};

/* ── Layers (factored.c) ── */

/* A new layer, zeroed but for dtypes (F32) and scale (1); NULL when out of memory. */
sfti_factor *sfti_factor_add(sft_adapter_factors *f);
/* The shapes of a layer's factors as those of a module's tensors; its names as they have them. */
sft_code sfti_factor_like(sft_adapter_factors *f, sfti_factor *layer, const sfti_lora *lora,
                          const sfti_lora_module *module, sft_error *err);
/* New names and shapes: up [out, rank, 1...], down [rank, in, kernel...] for `kernel` of that many
 * dimensions; peft: "lora_B.weight", "lora_A.weight" without alpha. False when out of memory. */
bool sfti_factor_named(sft_adapter_factors *f, sfti_factor *layer, sft_span name, bool peft,
                       uint64_t out, uint64_t in, const uint64_t *kernel, uint32_t dims);
/* Tensor i of an input, which is written as it is. */
sft_code sfti_factored_keep(sft_adapter_factors *f, size_t input, size_t i, sft_error *err);
/* Another part that is. */
sft_code sfti_factored_keep_part(sft_adapter_factors *f, sft_part part, sft_error *err);
sft_code sfti_factored_unmatched(sft_adapter_factors *f, sft_span name, sft_error *err);
/* The dtype that factors have which come from one of this dtype. */
sft_dtype sfti_factored_dtype(const sft_adapter_factors *f, sft_dtype of);
/* Finds the scales of a model: number 0 or 1 of those that the verb has. */
sft_code sfti_factored_scales(sft_adapter_factors *f, size_t number, const sft_set *model,
                              sft_error *err);
/* Whether a tensor of a model holds its values: floats without a scale. */
bool sfti_factored_readable(const sft_adapter_factors *f, size_t number, const sft_set *model,
                            size_t tensor);
sft_code sfti_factored_not_readable(const sft_tensor *tensor, sft_error *err);
/* "expected WHAT, found METHOD". */
sft_code sfti_factored_refuse(const sfti_lora *lora, const sfti_lora_module *m, const char *what,
                              sft_error *err);

/* Gives all adapters the names that the options ask for (renamed.c). */
sft_code sfti_factored_rename(sft_adapter_factors *f, sft_error *err);

/* ── The file (factored_save.c) ── */

void sfti_factored_open_store(sft_adapter_factors *f);
/* With the lock held. */
sft_code sfti_factored_store(sft_adapter_factors *f, uint64_t at, const void *bytes, uint64_t len,
                             sft_error *err);
void sfti_factored_close_store(sft_adapter_factors *f);
/* Parts and pairs, by what the layers became. */
sft_code sfti_factored_finish(sft_adapter_factors *f, sft_error *err);

/* ── What each verb plans ── */

sft_code sfti_plan_resize(sft_adapter_factors *f, sft_error *err);
sft_code sfti_plan_stack(sft_adapter_factors *f, sft_error *err);
sft_code sfti_plan_extract(sft_adapter_factors *f, sft_error *err);
sft_code sfti_plan_simplify(sft_adapter_factors *f, sft_error *err);

#endif
