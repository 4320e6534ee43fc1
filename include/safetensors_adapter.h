/* Adapters (LoRA and the like): what they hold, and models with adapters merged into them.
 * docs/adapters.md has the formulas and their sources, docs/disagreements.md where programs differ.
 *
 * EXPERIMENTAL: may change incompatibly in any release (docs/abi.md). SFT_EXPERIMENTAL_ADAPTER is
 * defined while that is so.
 *
 * Conventions as in safetensors.h. */
#ifndef SFT_SAFETENSORS_ADAPTER_H
#define SFT_SAFETENSORS_ADAPTER_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif
#include "safetensors_set.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SFT_EXPERIMENTAL_ADAPTER 1

/* ── What an adapter holds ───────────────────────────────────────────────── */

/* @since 0.3 */
typedef struct sft_adapter_options {
    size_t size;
    /* The text of PEFT's adapter_config.json, or empty: alpha, rsLoRA and patterns of most of its
     * files stand only there. What diffusers writes into the metadata is read without it. */
    sft_span config;
    const sft_allocator *alloc; /* NULL = libc */
} sft_adapter_options;

#define SFT_ADAPTER_OPTIONS_INIT { sizeof(sft_adapter_options), { NULL, 0 }, NULL }

/* All that an adapter has for one layer. Allocated by the library only; members may be appended.
 * @since 0.3 */
typedef struct sft_adapter_module {
    sft_span name;       /* of its tensors, without what tells them apart */
    const char *method;  /* "lora", "locon", "loha", "lokr", "glora", "ia3", "oft", "boft" or
                            "full" */
    bool dora;           /* with a magnitude beside it */
    bool has_alpha;      /* told by a tensor or the configuration */
    double alpha;        /* 0 if it has none */
    double scale;        /* what its product is multiplied with: alpha / rank, or as told */
    uint64_t rank;       /* 0: it has none */
    uint64_t out, in;    /* of the layer's matrix, a convolution's flat; 0: not told by it */
} sft_adapter_module;

typedef struct sft_adapter sft_adapter;

/* Read names, shapes and alphas of an adapter, in one file or several; the set must outlive it.
 * Immutable: any number of threads. Linear in tensors; of the data, alphas are read.
 * SFT_TENSOR_NOT_FOUND: the set has no tensors of an adapter. SFT_SIZE_MISMATCH, SFT_INCOMPLETE,
 * SFT_CAST_DTYPE name a tensor that does not go with its module's others. Free with
 * sft_adapter_close. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_adapter_open(const sft_set *set,
                                                const sft_adapter_options *options,
                                                sft_adapter **out, sft_error *err);
/* NULL is ignored. @since 0.3 */
SFT_API void sft_adapter_close(sft_adapter *adapter);
/* Modules, in the order of their first tensors. @since 0.3 */
SFT_API size_t sft_adapter_module_count(const sft_adapter *adapter);
/* NULL past the last. Lives as long as the adapter. @since 0.3 */
SFT_API const sft_adapter_module *sft_adapter_module_at(const sft_adapter *adapter, size_t i);
/* The Frobenius norm of what module i adds to a weight at strength 1, computed from its factors in
 * F64, of LoHa of high ranks by rows. -1: it depends on the model's weight, adds nothing to one,
 * would take too long, or exceeds F64. Reads the module's data; memory for its matrices.
 * @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_adapter_module_norm(const sft_adapter *adapter, size_t i,
                                                       double *out, sft_error *err);
/* Tensors that belong to no module that is known. @since 0.3 */
SFT_API size_t sft_adapter_other_count(const sft_adapter *adapter);
/* Its name; empty past the last. @since 0.3 */
SFT_API sft_span sft_adapter_other_at(const sft_adapter *adapter, size_t i);

/* ── Merging ─────────────────────────────────────────────────────────────── */

/* The norm that DoRA divides by: of the changed weight, or, for magnitudes of rows, of the model's,
 * as ComfyUI does. @since 0.3 */
typedef enum sft_adapter_dora {
    SFT_ADAPTER_DORA_EXACT = 0,
    SFT_ADAPTER_DORA_COMFY = 1
} sft_adapter_dora;

/* @since 0.3 */
typedef struct sft_adapter_merge_options {
    size_t size;
    uint32_t dora; /* sft_adapter_dora */
    /* Round up or down at random, by the seed, so that small changes are not lost on average: the
     * same bytes on every machine and for any number of threads. Else to nearest. */
    bool stochastic;
    uint64_t seed;
    bool ignore_unmatched; /* leave out what the model has no tensor for */
    uint32_t threads; /* that compute while the caller writes; 0 = one per processor */
    const sft_files *files; /* as in sft_open_options, for config.json beside the model */
    const sft_allocator *alloc; /* NULL = libc */
} sft_adapter_merge_options;

#define SFT_ADAPTER_MERGE_OPTIONS_INIT \
    { sizeof(sft_adapter_merge_options), 0, false, 0, false, 1, NULL, NULL }

/* How an adapter is merged. @since 0.3 */
typedef struct sft_adapter_use {
    size_t size;
    double strength;
    sft_span config;    /* as in sft_adapter_options */
    const char *blocks; /* strengths by block (docs/adapters.md), or NULL */
    const char *name;   /* for the recipe in the header; NULL: the name of its file */
} sft_adapter_use;

#define SFT_ADAPTER_USE_INIT { sizeof(sft_adapter_use), 1, { NULL, 0 }, NULL, NULL }

/* A model with adapters to be merged into it. One thread at a time. @since 0.3 */
typedef struct sft_adapter_merge sft_adapter_merge;

/* Begin a merge into a model, which must outlive it. Quantised tensors are found, no data is read.
 * Free with sft_adapter_merge_free. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_adapter_merge_new(const sft_set *model,
                                                     const sft_adapter_merge_options *options,
                                                     sft_adapter_merge **out, sft_error *err);
/* NULL is ignored. @since 0.3 */
SFT_API void sft_adapter_merge_free(sft_adapter_merge *merge);

/* Add one more adapter, which must outlive the merge; they are applied in this order. Finds the
 * tensors of the model that it changes. SFT_SIZE_MISMATCH names a tensor whose layer has another
 * shape; SFT_BAD_ARGUMENT: blocks that say nothing of this model, a strength that is not finite, or
 * a merge that has been planned. Otherwise as sft_adapter_open. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_adapter_merge_add(sft_adapter_merge *merge,
                                                     const sft_set *adapter,
                                                     const sft_adapter_use *use, sft_error *err);
/* How many modules adapter k has, and how many of them the model has tensors for. 0 past the
 * last. @since 0.3 */
SFT_API size_t sft_adapter_merge_modules(const sft_adapter_merge *merge, size_t k);
SFT_API size_t sft_adapter_merge_matched(const sft_adapter_merge *merge, size_t k);
/* Its modules and tensors that the model has nothing for, and their names. @since 0.3 */
SFT_API size_t sft_adapter_merge_unmatched(const sft_adapter_merge *merge, size_t k);
SFT_API sft_span sft_adapter_merge_unmatched_at(const sft_adapter_merge *merge, size_t k,
                                                size_t i);

/* Decide what changes; saving does it, too. SFT_TENSOR_NOT_FOUND: an adapter has no module of this
 * model, or something that it has nothing for, and options do not ignore that. SFT_CAST_DTYPE names
 * a tensor that cannot be merged into: of integers, of a layout of quantised values that can only
 * be read, or a module of a method that is not known. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_adapter_merge_plan(sft_adapter_merge *merge, sft_error *err);
/* Tensors that change, once it is planned: of a quantised one all parts together count as one.
 * @since 0.3 */
SFT_API size_t sft_adapter_merge_changed(const sft_adapter_merge *merge);
/* Tensor i of the model as it will be written, once it is planned: from its file, or computed as it
 * is read, best in the order of the model's file. Dtype, shape and name are the same. Lives as long
 * as the merge. With source NULL past the last. @since 0.3 */
SFT_API sft_part sft_adapter_merge_part(sft_adapter_merge *merge, size_t i);
/* Values of tensors of at most 8 bits without scales that adapters changed, and how many of them
 * were rounded to what they had been, of what was read so far. @since 0.3 */
SFT_API void sft_adapter_merge_lost(const sft_adapter_merge *merge, uint64_t *changed,
                                    uint64_t *lost);
/* The adapter whose tensor the last error names, also one that could not be added; SIZE_MAX: it is
 * the model's. @since 0.3 */
SFT_API size_t sft_adapter_merge_blames(const sft_adapter_merge *merge);

/* Write the model as one file; the sink is finished, or abandoned on failure. Metadata is kept, of
 * several shards the first value of each key, but for digests of the old data; "sft_lora_merge" and
 * "modelspec.merged_from" get the recipe with the adapters' digests, for which they are read once.
 * Tensors that do not change are copied by the system where it can. Sums are computed in F32 and
 * rounded once; a quantised tensor's values are quantised again in its own layout, with new scales.
 * Memory: one module's matrices and 2 MiB, and as much for each thread; rotations of rows and
 * magnitudes by column need the whole tensor as F32. SFT_CAST_VALUE: NaN, an infinity, or a sum
 * that the dtype has no room for. Ticks the job with bytes written. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_adapter_merge_save(sft_adapter_merge *merge, sft_sink sink,
                                                      const sft_job *job, sft_error *err);
/* Write it shard by shard into a folder, new or empty, as sft_save_set does. Of the options, all
 * but plan and index_metadata are used. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_adapter_merge_save_set(sft_adapter_merge *merge,
                                                          const char *folder,
                                                          const sft_save_set_options *options,
                                                          const sft_job *job, sft_error *err);

/* ── Factors of another rank ─────────────────────────────────────────────── */

/* What becomes of the inputs: a new adapter of pairs of factors. @since 0.3 */
typedef enum sft_adapter_verb {
    SFT_ADAPTER_RESIZE = 0,  /* one adapter: the best factors of a lower rank */
    SFT_ADAPTER_STACK = 1,   /* adapters, added up by their strengths: exactly, or by a rule */
    SFT_ADAPTER_EXTRACT = 2, /* a fine-tuned model and its base: factors of the difference */
    SFT_ADAPTER_SIMPLIFY = 3 /* an adapter, and a model if it is needed: a plain LoRA */
} sft_adapter_verb;

/* How many singular values S0 >= S1 >= ... of a layer are kept, at least one. @since 0.3 */
typedef enum sft_adapter_rule {
    SFT_ADAPTER_RANK = 0,       /* as many as `rank` allows */
    SFT_ADAPTER_RATIO = 1,      /* those above S0 / value */
    SFT_ADAPTER_FRO = 2,        /* the fewest that have `value` of the Frobenius norm */
    SFT_ADAPTER_CUMULATIVE = 3, /* the fewest that have `value` of the sum of all */
    SFT_ADAPTER_ERROR = 4,      /* the fewest that leave out at most `value` of that norm */
    SFT_ADAPTER_EXACT = 5       /* all that F32 holds; of stack and simplify */
} sft_adapter_rule;

/* Whose names an adapter has. @since 0.3 */
typedef enum sft_adapter_format {
    SFT_ADAPTER_USUAL = 0,    /* extract: of PEFT for language models, else of kohya */
    SFT_ADAPTER_KOHYA = 1,
    SFT_ADAPTER_PEFT = 2,
    SFT_ADAPTER_COMFY = 3,
    SFT_ADAPTER_DIFFUSERS = 4 /* not of extract */
} sft_adapter_format;

/* @since 0.3 */
typedef struct sft_adapter_factors_options {
    size_t size;
    uint64_t rank;      /* at most, up to 65536; 0: no limit, or 128 beside a rule where layers have
                           no rank of their own */
    uint64_t conv_rank; /* the same of convolutions with a kernel; 0: as `rank`, but extract then
                           leaves them out */
    uint32_t rule;      /* sft_adapter_rule */
    uint32_t dtype;     /* sft_dtype of the factors: F32, F16, BF16; SFT_DTYPE_COUNT: as before */
    double value;       /* of the rule: above 0, and at most 1 but for SFT_ADAPTER_RATIO */
    bool kohya;         /* one more than the rule says, and all of S in the up matrix, as kohya's
                           scripts do it */
    bool ignore_unmatched; /* leave out what cannot be matched (sft_adapter_factors_unmatched) */
    bool norms;         /* extract: differences of norms and biases, too */
    bool measure;       /* tell ranks and errors, keep no factors: there is nothing to be saved */
    uint32_t names;     /* extract: sft_adapter_format. stack: what all adapters get first, fused
                           layers divided or joined; SFT_ADAPTER_USUAL: they keep theirs */
    double min_diff;    /* extract: leave out layers without a greater difference */
    double clamp_quantile; /* extract: clamp factors at that quantile, up to 1; 0: do not */
    const char *scratch;   /* folder of an unnamed temporary file for factors; NULL: memory */
    const char *architecture; /* stack with names: the id of the model; NULL: as the first adapter
                                 tells */
    const sft_allocator *alloc; /* NULL = libc */
} sft_adapter_factors_options;

#define SFT_ADAPTER_FACTORS_OPTIONS_INIT \
    { sizeof(sft_adapter_factors_options), 0, 0, 0, SFT_DTYPE_COUNT, 0, false, false, false, \
      false, 0, 0, 0, NULL, NULL, NULL }

/* One pair of factors. Allocated by the library only; members may be appended. @since 0.3 */
typedef struct sft_adapter_factor {
    sft_span name;        /* of the module */
    uint64_t rank_before; /* 0: it had none */
    uint64_t rank;        /* what follows is known once it is computed */
    bool has_alpha;       /* false: the scale is in the up matrix; known once it is planned */
    bool left_out;        /* it adds nothing, and is not written */
    double alpha;
    double norm; /* Frobenius, of the change at strength 1; -1: not computed */
    double lost; /* of what the factors leave out, before they are rounded to their dtype */
} sft_adapter_factor;

/* What a user should be told of. @since 0.3 */
typedef enum sft_adapter_note {
    SFT_ADAPTER_KEPT_WHOLE = 0,  /* modules of differences, or without a rank: kept as they are */
    SFT_ADAPTER_KEPT_DORA = 1,   /* magnitudes that are kept; errors are those of the products */
    SFT_ADAPTER_FOLDED = 2,      /* alphas of a configuration that are in the factors now: a new
                                    file for PEFT needs one whose lora_alpha is its r */
    SFT_ADAPTER_UNTOLD = 3,      /* modules of PEFT whose alpha nothing tells */
    SFT_ADAPTER_LEFT_CONVS = 4,  /* extract: convolutions that differ, without conv_rank */
    SFT_ADAPTER_LEFT_OTHERS = 5, /* extract: other tensors that differ and are not extracted */
    SFT_ADAPTER_LEFT_BASES = 6   /* stack: tensors of the base model that are left out */
} sft_adapter_note;

/* Factors on their way to a new adapter. One thread at a time; computing uses more by itself. */
typedef struct sft_adapter_factors sft_adapter_factors;

/* Begin. SFT_BAD_ARGUMENT: options that say nothing, or a verb without a rank or rule that needs
 * one (all but stack). Free with sft_adapter_factors_free. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_adapter_factors_new(sft_adapter_verb verb,
                                                       const sft_adapter_factors_options *options,
                                                       sft_adapter_factors **out, sft_error *err);
/* NULL is ignored. @since 0.3 */
SFT_API void sft_adapter_factors_free(sft_adapter_factors *factors);
/* Add an input, which must outlive the factors: of resize one adapter; of stack adapters; of
 * extract the fine-tuned model, then its base; of simplify an adapter, then, if its methods need
 * it, the model. use: as of a merge, but without blocks; its strength is read by stack only. NULL:
 * the defaults. Errors as of sft_adapter_open. SFT_BAD_ARGUMENT: an input too many, or after
 * planning. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_adapter_factors_add(sft_adapter_factors *factors,
                                                       const sft_set *set,
                                                       const sft_adapter_use *use,
                                                       sft_error *err);
/* Decide which layers there will be; computing does it, too. Reads names and shapes; extract reads
 * the data of tensors that it does not extract, to count those that differ. SFT_CAST_DTYPE names a
 * module of a method that the verb does not take, or a tensor that holds no plain floats;
 * SFT_SIZE_MISMATCH one that does not go with another input's; SFT_TENSOR_NOT_FOUND: nothing to be
 * done, a module without a tensor of the model, or names of adapters that may be two for one layer.
 * @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_adapter_factors_plan(sft_adapter_factors *factors,
                                                        sft_error *err);
/* Compute all layers, by job->threads; results are the same bytes for any number of them. Once: a
 * second call does nothing. SFT_TENSOR_NOT_FOUND: no layer changes anything, or something is
 * unmatched and options do not ignore it. SFT_CAST_VALUE names a layer with a NaN or an infinity,
 * whose factors the dtype cannot hold, or of which a rule asks for more than 1024 singular values.
 * Memory: one layer for each thread (docs/adapters.md), and the factors unless they have a folder.
 * Ticks the job with elements of layers. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_adapter_factors_compute(sft_adapter_factors *factors,
                                                           const sft_job *job, sft_error *err);
/* Pairs of factors, once planned. 0 before. @since 0.3 */
SFT_API size_t sft_adapter_factors_count(const sft_adapter_factors *factors);
/* NULL past the last. Lives as long as the factors. @since 0.3 */
SFT_API const sft_adapter_factor *sft_adapter_factors_at(const sft_adapter_factors *factors,
                                                         size_t i);
/* How many there are of what a note tells of, once planned. @since 0.3 */
SFT_API size_t sft_adapter_factors_note(const sft_adapter_factors *factors, sft_adapter_note note);
/* Layers of the fine-tuned model that its base lacks, or has in another shape (extract); tensors of
 * an adapter of no method that is known (simplify); once planned. @since 0.3 */
SFT_API size_t sft_adapter_factors_unmatched(const sft_adapter_factors *factors);
/* Its name; empty past the last. @since 0.3 */
SFT_API sft_span sft_adapter_factors_unmatched_at(const sft_adapter_factors *factors, size_t i);
/* The input, by its number, that the last error is about; SIZE_MAX: none. @since 0.3 */
SFT_API size_t sft_adapter_factors_blames(const sft_adapter_factors *factors);
/* Tensors and metadata of the new adapter, once computed; NULL before. With `measure` the data of
 * factors, and the adapters' digests, are not there. They live as long as the factors.
 * @since 0.3 */
SFT_API const sft_part *sft_adapter_factors_parts(const sft_adapter_factors *factors,
                                                  size_t *count);
SFT_API const sft_pair *sft_adapter_factors_pairs(const sft_adapter_factors *factors,
                                                  size_t *count);
/* Compute what is not computed, and write the new adapter; the sink is finished, or abandoned on
 * failure. Resize and simplify, and stack of one adapter, keep its metadata but for digests; the
 * recipe, with the adapters' digests, is "sft_lora_resize" and so on. Errors as of computing and of
 * the sink. SFT_BAD_ARGUMENT: with `measure`. Ticks the job as computing does, then with bytes.
 * @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_adapter_factors_save(sft_adapter_factors *factors,
                                                        sft_sink sink, const sft_job *job,
                                                        sft_error *err);

/* ── Other names ─────────────────────────────────────────────────────────── */

/* @since 0.3 */
typedef struct sft_adapter_conversion_options {
    size_t size;
    uint32_t to; /* sft_adapter_format, but SFT_ADAPTER_USUAL; by default of kohya */
    /* What model the adapter is for: the id of an architecture, or a model. NULL, both: as the
     * adapter tells. */
    const char *architecture;
    const sft_set *model;
    sft_span config;       /* as in sft_adapter_options */
    bool ignore_unmatched; /* leave out what has no name that is known */
    const sft_allocator *alloc; /* NULL = libc */
} sft_adapter_conversion_options;

#define SFT_ADAPTER_CONVERSION_OPTIONS_INIT \
    { sizeof(sft_adapter_conversion_options), SFT_ADAPTER_KOHYA, NULL, NULL, { NULL, 0 }, false, \
      NULL }

/* An adapter under the names of another program. Immutable: any number of threads. */
typedef struct sft_adapter_conversion sft_adapter_conversion;

/* What a conversion did. Members may be appended. @since 0.3 */
typedef struct sft_adapter_conversion_facts {
    const char *architecture; /* whose layouts were used; lives as long as the conversion */
    size_t modules; /* that are written */
    size_t split;   /* modules of fused layers that were divided, */
    size_t joined;  /* and that were made of several */
    size_t folded;  /* modules whose alphas went into their matrices: the way back is not exact */
} sft_adapter_conversion_facts;

/* Plan the conversion of an adapter, which must outlive it. Reads names, shapes, and what is
 * joined. SFT_BAD_ARGUMENT: a format or an architecture that is not known. SFT_TENSOR_NOT_FOUND:
 * nothing tells the model, or no module has a name that is known. SFT_CAST_DTYPE names what the
 * other format has no place for. Linear in tensors. Free with sft_adapter_conversion_free.
 * @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_adapter_conversion_new(
    const sft_set *adapter, const sft_adapter_conversion_options *options,
    sft_adapter_conversion **out, sft_error *err);
/* NULL is ignored. @since 0.3 */
SFT_API void sft_adapter_conversion_free(sft_adapter_conversion *conversion);
/* Lives as long as the conversion. @since 0.3 */
SFT_API const sft_adapter_conversion_facts *sft_adapter_conversion_told(
    const sft_adapter_conversion *conversion);
/* Modules and tensors that have no name that is known. @since 0.3 */
SFT_API size_t sft_adapter_conversion_unmatched(const sft_adapter_conversion *conversion);
/* Its name; empty past the last. @since 0.3 */
SFT_API sft_span sft_adapter_conversion_unmatched_at(const sft_adapter_conversion *conversion,
                                                     size_t i);
/* The text of adapter_config.json, which belongs beside a file for PEFT; empty for other formats.
 * @since 0.3 */
SFT_API sft_span sft_adapter_conversion_config(const sft_adapter_conversion *conversion);
/* Tensors and metadata of the new file, without what is unmatched. They live as long as the
 * conversion. @since 0.3 */
SFT_API const sft_part *sft_adapter_conversion_parts(const sft_adapter_conversion *conversion,
                                                     size_t *count);
SFT_API const sft_pair *sft_adapter_conversion_pairs(const sft_adapter_conversion *conversion,
                                                     size_t *count);
/* Write it; the sink is finished, or abandoned on failure. Metadata is kept but for digests.
 * SFT_TENSOR_NOT_FOUND: something is unmatched, and options do not ignore it. SFT_TENSOR_DUPLICATE:
 * two modules would have one name. Ticks the job with bytes written. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_adapter_conversion_save(const sft_adapter_conversion *conversion,
                                                           sft_sink sink, const sft_job *job,
                                                           sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
