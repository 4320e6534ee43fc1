/* Merging models by value: one model computed from several, block by block, in a few megabytes and
 * reproducibly. docs/merging.md has methods, parameters and recipes.
 *
 * EXPERIMENTAL: may change incompatibly in any release (docs/abi.md). SFT_EXPERIMENTAL_MERGE is
 * defined while that is so.
 *
 * Conventions as in safetensors.h. */
#ifndef SFT_SAFETENSORS_MERGE_H
#define SFT_SAFETENSORS_MERGE_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif
#include "safetensors_set.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SFT_EXPERIMENTAL_MERGE 1

/* How models are merged: by a method with parameters, or by a recipe. @since 0.3 */
typedef struct sft_merge_options {
    size_t size;
    const char *method;        /* "linear", "ties", ...; NULL: there is a recipe */
    size_t base;               /* which of the models added is the base; SIZE_MAX: none */
    const char *const *params; /* "density=0.5", "t@PATTERN=0,1"; may be NULL if there are none */
    size_t param_count;
    sft_span recipe;           /* mergekit's YAML, or JSON, instead of the four above; or empty */
    bool has_seed;             /* else the recipe's seed, or 0 */
    uint64_t seed;
    uint32_t dtype;            /* sft_dtype of all floats: F64, F32, F16, BF16; SFT_DTYPE_COUNT: as
                                  the recipe says, else each that of the base or first model */
    bool ignore_missing;       /* merge tensors without the models that lack them */
    uint32_t threads;          /* that compute while the caller writes; 0 = one per processor */
    const sft_files *files;    /* as in sft_open_options, for config.json beside models */
    const sft_allocator *alloc; /* NULL = libc */
} sft_merge_options;

#define SFT_MERGE_OPTIONS_INIT \
    { sizeof(sft_merge_options), NULL, SIZE_MAX, NULL, 0, { NULL, 0 }, false, 0, SFT_DTYPE_COUNT, \
      false, 0, NULL, NULL }

/* A merge of several models. One thread at a time. @since 0.3 */
typedef struct sft_merge sft_merge;

/* Begin a merge. Texts are copied. SFT_BAD_ARGUMENT: no such method or parameter; of a recipe the
 * error names the line. Free with sft_merge_free. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_merge_new(const sft_merge_options *options, sft_merge **out,
                                             sft_error *err);
/* NULL is ignored. @since 0.3 */
SFT_API void sft_merge_free(sft_merge *merge);

/* The models that the recipe names, in the order in which they are to be added; none without a
 * recipe. The name is empty past the last, and lives as long as the merge. @since 0.3 */
SFT_API size_t sft_merge_named(const sft_merge *merge);
SFT_API sft_span sft_merge_named_at(const sft_merge *merge, size_t i);

/* Add the next model, which must outlive the merge. name: what the header of the result calls it;
 * NULL: its file's, of a model.safetensors its folder's. Where another model has it, a number
 * follows it. weight: "0.5" or a list for the layers; NULL: 1, or the recipe's. SFT_BAD_ARGUMENT:
 * more models than the recipe names or than 32, a weight that is no number, that the method has
 * none of or that stands beside a recipe, or a planned merge. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_merge_add(sft_merge *merge, const sft_set *model,
                                             const char *name, const char *weight,
                                             sft_error *err);

/* Find which tensors belong together, and what is computed; saving does it, too. Reads no data but
 * integers that are compared. SFT_TENSOR_NOT_FOUND: a model lacks a tensor, or has none in common.
 * SFT_TENSOR_DUPLICATE: several tensors of a model may be the same one of another.
 * SFT_SIZE_MISMATCH: shapes differ. SFT_CAST_DTYPE: a tensor that cannot be merged.
 * SFT_BAD_ARGUMENT: models that the method cannot have, or parameters. After a failure models may
 * be added, and it may be called again. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_merge_plan(sft_merge *merge, sft_error *err);

/* What was done so that models fit, once it is planned. Allocated by the library only; members may
 * be appended. @since 0.3 */
typedef struct sft_merge_told {
    size_t computed, copied; /* tensors of the result */
    size_t renamed;          /* found under another name, or in another layout */
    size_t cut;              /* vocabularies of which only the rows that all models have are left */
    size_t missing;          /* not in all models */
    size_t left_out;         /* of other models only */
    size_t unlike;           /* small tensors of integers that are not the same; copied */
} sft_merge_told;

/* NULL: it is not planned. Lives as long as the merge. @since 0.3 */
SFT_API const sft_merge_told *sft_merge_notes(const sft_merge *merge);
/* Tensor i of the result, once it is planned: computed as it is read, best in this order, or as it
 * is in its file. Lives as long as the merge. With source NULL past the last. @since 0.3 */
SFT_API sft_part sft_merge_part(sft_merge *merge, size_t i);

/* Write the result as one file; the sink is finished, or abandoned on failure. Its header has the
 * metadata of the model that gives names, and the recipe with digests of all models, which are read
 * for them: "safetensors merge --replay" repeats it. SFT_CAST_VALUE: NaN, infinities, or values
 * that the dtype cannot hold. SFT_IO_READ: a model has changed meanwhile. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_merge_save(sft_merge *merge, sft_sink sink, const sft_job *job,
                                              sft_error *err);
/* The model that the last error is about, also one that could not be added; SIZE_MAX: it is about
 * none. @since 0.3 */
SFT_API size_t sft_merge_blames(const sft_merge *merge);

/* ── Which mixture a model is ────────────────────────────────────────────── */

/* Tensors of one layer, or of none, or all. Allocated by the library only; members may be appended.
 * @since 0.3 */
typedef struct sft_mixture_block {
    sft_span name;         /* "model.layers.3"; data NULL: all tensors; empty: those in no layer */
    size_t tensors;
    uint64_t elements;
    const double *weights; /* of each model; NaN: it cannot be told from the others */
    double residual;       /* root of the mean square of what the sum leaves */
    double rounding;       /* the same of rounding to the result's dtype: what is to be expected */
    double change;         /* the same of the result less the first model */
    bool fits;             /* no more is left than rounding explains */
} sft_mixture_block;

/* What was estimated. Immutable: any number of threads. @since 0.3 */
typedef struct sft_mixture sft_mixture;

/* Estimate by least squares which weighted sum of `count` models (1 to 31) the result is, in each
 * block and overall. Sets need not outlive the call. Reads all data once. job may be NULL. *blames,
 * which may be NULL, becomes the model that an error is about: 0 is the result, 1 the first model;
 * SIZE_MAX: none. Free with sft_mixture_free. Any thread. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_mixture_new(const sft_set *result, const sft_set *const *models,
                                               size_t count, const sft_job *job,
                                               const sft_allocator *alloc, sft_mixture **out,
                                               size_t *blames, sft_error *err);
/* NULL is ignored. @since 0.3 */
SFT_API void sft_mixture_free(sft_mixture *mixture);
/* Blocks in the order of their first tensors; the last is of all. NULL past it. Lives as long as
 * the mixture. @since 0.3 */
SFT_API size_t sft_mixture_count(const sft_mixture *mixture);
SFT_API const sft_mixture_block *sft_mixture_at(const sft_mixture *mixture, size_t i);
/* Tensors that not all models have. @since 0.3 */
SFT_API size_t sft_mixture_left_out(const sft_mixture *mixture);

#ifdef __cplusplus
}
#endif

#endif
