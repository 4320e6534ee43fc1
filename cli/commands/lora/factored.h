/* What the verbs of `lora` share that write factors of another rank: resize, stack, extract,
 * simplify. */
#ifndef CLI_LORA_FACTORED_H
#define CLI_LORA_FACTORED_H

#include "adapter/lowrank.h"
#include "commands/lora/lora.h"
#include "safetensors_convert.h"
#include "support/output.h"
#include "support/parts.h"

#define LORA_DIMS 8

/* One pair of factors of OUT. */
typedef struct lora_layer {
    sft_span name;                 /* of the module */
    const char *up, *down, *alpha; /* names of its tensors; alpha NULL: none, the scale is folded */
    uint64_t up_shape[LORA_DIMS], down_shape[LORA_DIMS]; /* but for the rank */
    uint32_t up_dims, down_dims;
    bool turned; /* PEFT's embeddings: the factors are stored the other way round */
    bool conv;   /* with a kernel */
    sft_dtype dtype, alpha_dtype;
    double scale;         /* what the product is multiplied with */
    uint64_t rank_before; /* 0: it had none */
    size_t number;        /* the verb's own */
    /* what became of it */
    bool left_out;        /* it adds nothing */
    uint64_t rank, begin; /* begin: in the spool */
    double alpha_value, norm, lost; /* norms at strength 1; norm -1: not computed */
} lora_layer;

typedef struct lora_factoring lora_factoring;
/* One layer's factors without its scale. May be called by several threads at once. */
typedef sft_code (*lora_compute_fn)(lora_factoring *f, lora_layer *layer,
                                    const sfti_rank_rule *rule, sfti_arena *arena,
                                    sfti_lowrank *out, sft_error *err);

struct lora_factoring {
    cli *c;
    const char *verb, *input;
    const char *blame; /* path that an error is about */
    sfti_rank_rule rule;
    bool has_rule, exact; /* exact: --rank exact */
    lora_layer *layers;
    size_t count, capacity;
    lora_compute_fn compute;
    void *ctx;
    sfti_arena arena;  /* has all that is named here */
    cli_parts parts;   /* of the inputs */
    sft_part *kept;    /* tensors that are written as they are */
    size_t kept_count, kept_capacity;
    bool keeps_metadata; /* those of the first adapter */
    bool is_network;     /* a new adapter as kohya's scripts name and label them */
    /* the recipe: inputs that are hashed, and models, of which recorded digests are told */
    lora_adapter *adapters;
    size_t adapter_count;
    const sft_set *models[2];
    const char *model_paths[2];
    /* the spool */
    int fd;
    sft_buffer memory;
    uint64_t size;
    sft_source source;
    /* private */
    size_t next;
    sft_buffer recipe, texts;
};

/* Reads the options. SFT_BAD_ARGUMENT names the one that is wrong. needs: one of them must be
 * given. */
sft_code lora_factoring_begin(lora_factoring *f, cli *c, const char *verb, bool needs,
                              sft_error *err);
void lora_factoring_end(lora_factoring *f);
/* A new layer, zeroed but for dtypes (F32) and scale (1); NULL when out of memory. */
lora_layer *lora_layer_add(lora_factoring *f);
/* The shapes of a layer's factors as those of a module's tensors; its names as they have them. */
sft_code lora_layer_like(lora_factoring *f, lora_layer *layer, const sfti_lora *lora,
                         const sfti_lora_module *module, sft_error *err);
/* New names and shapes: up [out, rank, 1...], down [rank, in, kernel...] for `kernel` of that many
 * dimensions; peft: "lora_B.weight", "lora_A.weight" without alpha. False when out of memory. */
bool lora_layer_named(lora_factoring *f, lora_layer *layer, sft_span name, bool peft, uint64_t out,
                      uint64_t in, const uint64_t *kernel, uint32_t dims);
/* A tensor that is written as it is; false when out of memory. */
bool lora_keep(lora_factoring *f, sft_part part);
/* The dtype that factors have which come from one of this dtype, by --dtype. */
sft_dtype lora_dtype(const lora_factoring *f, sft_dtype of);
/* Scales of a model, for lora_readable; to be freed. */
sft_code lora_scales(const lora_factoring *f, const sft_set *model, sft_conversion **out,
                     sft_error *err);
/* Whether a tensor of a model holds its values: floats without a scale. */
bool lora_readable(const sft_set *model, const sft_conversion *scales, size_t tensor);
sft_code lora_not_readable(const sft_tensor *tensor, sft_error *err);
/* Compute all layers, with --threads, and write OUT, with what is told of it. */
sft_code lora_factor(lora_factoring *f, sft_error *err);
/* Report how it ended, and free all. */
void lora_factoring_finish(lora_factoring *f, sft_code code, sft_error *err);

/* A positive number; SFT_BAD_ARGUMENT names the option. */
sft_code lora_number(const char *text, const char *option, double *out, sft_error *err);

void lora_resize(cli *c, char **operands, size_t count);
void lora_stack(cli *c, char **operands, size_t count);
void lora_extract(cli *c, char **operands, size_t count);
void lora_simplify(cli *c, char **operands, size_t count);

#endif
