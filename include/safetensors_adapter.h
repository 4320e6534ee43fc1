/* Adapters (LoRA and its kin): what they hold, and models with adapters merged into them.
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

/* @since 0.2 */
typedef struct sft_adapter_options {
    size_t size;
    /* The text of PEFT's adapter_config.json, or empty: alpha, rsLoRA and patterns of most of its
     * files stand only there. What diffusers writes into the metadata is read without it. */
    sft_span config;
    const sft_allocator *alloc; /* NULL = libc */
} sft_adapter_options;

#define SFT_ADAPTER_OPTIONS_INIT { sizeof(sft_adapter_options), { NULL, 0 }, NULL }

/* All that an adapter has for one layer. Allocated by the library only; members may be appended.
 * @since 0.2 */
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
 * sft_adapter_close. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_adapter_open(const sft_set *set,
                                                const sft_adapter_options *options,
                                                sft_adapter **out, sft_error *err);
/* NULL is ignored. @since 0.2 */
SFT_API void sft_adapter_close(sft_adapter *adapter);
/* Modules, in the order of their first tensors. @since 0.2 */
SFT_API size_t sft_adapter_module_count(const sft_adapter *adapter);
/* NULL past the last. Lives as long as the adapter. @since 0.2 */
SFT_API const sft_adapter_module *sft_adapter_module_at(const sft_adapter *adapter, size_t i);
/* The Frobenius norm of what module i adds to a weight at strength 1, computed from its factors in
 * F64, of LoHa by rows. -1: it depends on the model's weight, or adds nothing to one. Reads the
 * module's data; memory for its matrices. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_adapter_module_norm(const sft_adapter *adapter, size_t i,
                                                       double *out, sft_error *err);
/* Tensors that belong to no module that is known. @since 0.2 */
SFT_API size_t sft_adapter_other_count(const sft_adapter *adapter);
/* Its name; empty past the last. @since 0.2 */
SFT_API sft_span sft_adapter_other_at(const sft_adapter *adapter, size_t i);

/* ── Merging ─────────────────────────────────────────────────────────────── */

/* The norm that DoRA divides by: of the changed weight, or, for magnitudes of rows, of the model's,
 * as ComfyUI does. @since 0.2 */
typedef enum sft_adapter_dora {
    SFT_ADAPTER_DORA_EXACT = 0,
    SFT_ADAPTER_DORA_COMFY = 1
} sft_adapter_dora;

/* @since 0.2 */
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

/* How an adapter is merged. @since 0.2 */
typedef struct sft_adapter_use {
    size_t size;
    double strength;
    sft_span config;    /* as in sft_adapter_options */
    const char *blocks; /* strengths by block (docs/adapters.md), or NULL */
    const char *name;   /* for the recipe in the header; NULL: the name of its file */
} sft_adapter_use;

#define SFT_ADAPTER_USE_INIT { sizeof(sft_adapter_use), 1, { NULL, 0 }, NULL, NULL }

/* A model with adapters to be merged into it. One thread at a time. @since 0.2 */
typedef struct sft_adapter_merge sft_adapter_merge;

/* Begin a merge into a model, which must outlive it. Quantised tensors are found, no data are read.
 * Free with sft_adapter_merge_free. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_adapter_merge_new(const sft_set *model,
                                                     const sft_adapter_merge_options *options,
                                                     sft_adapter_merge **out, sft_error *err);
/* NULL is ignored. @since 0.2 */
SFT_API void sft_adapter_merge_free(sft_adapter_merge *merge);

/* Add one more adapter, which must outlive the merge; they are applied in this order. Finds the
 * tensors of the model that it changes. SFT_SIZE_MISMATCH names a tensor whose layer has another
 * shape; SFT_BAD_ARGUMENT: blocks that say nothing of this model, a strength that is not finite, or
 * a merge that has been planned. Otherwise as sft_adapter_open. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_adapter_merge_add(sft_adapter_merge *merge,
                                                     const sft_set *adapter,
                                                     const sft_adapter_use *use, sft_error *err);
/* How many modules adapter k has, and how many of them the model has tensors for. 0 past the
 * last. @since 0.2 */
SFT_API size_t sft_adapter_merge_modules(const sft_adapter_merge *merge, size_t k);
SFT_API size_t sft_adapter_merge_matched(const sft_adapter_merge *merge, size_t k);
/* Its modules and tensors that the model has nothing for, and their names. @since 0.2 */
SFT_API size_t sft_adapter_merge_unmatched(const sft_adapter_merge *merge, size_t k);
SFT_API sft_span sft_adapter_merge_unmatched_at(const sft_adapter_merge *merge, size_t k,
                                                size_t i);

/* Decide what changes; saving does it, too. SFT_TENSOR_NOT_FOUND: an adapter has no module of this
 * model, or something that it has nothing for, and options do not ignore that. SFT_CAST_DTYPE names
 * a tensor that cannot be merged into: of integers, of a layout of quantised values that can only
 * be read, or a module of a method that is not known. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_adapter_merge_plan(sft_adapter_merge *merge, sft_error *err);
/* Tensors that change, once it is planned: of a quantised one all parts together count as one.
 * @since 0.2 */
SFT_API size_t sft_adapter_merge_changed(const sft_adapter_merge *merge);
/* Tensor i of the model as it will be written, once it is planned: from its file, or computed as it
 * is read, best in the order of the model's file. Dtype, shape and name are the same. Lives as long
 * as the merge. With source NULL past the last. @since 0.2 */
SFT_API sft_part sft_adapter_merge_part(sft_adapter_merge *merge, size_t i);
/* Values of tensors of at most 8 bits without scales that adapters changed, and how many of them
 * were rounded to what they had been, of what was read so far. @since 0.2 */
SFT_API void sft_adapter_merge_lost(const sft_adapter_merge *merge, uint64_t *changed,
                                    uint64_t *lost);
/* The adapter whose tensor the last error names, also one that could not be added; SIZE_MAX: it is
 * the model's. @since 0.2 */
SFT_API size_t sft_adapter_merge_blames(const sft_adapter_merge *merge);

/* Write the model as one file; the sink is finished, or abandoned on failure. Metadata are kept, of
 * several shards the first value of each key, but for digests of the old data; "sft_lora_merge" and
 * "modelspec.merged_from" get the recipe with the adapters' digests, for which they are read once.
 * Tensors that do not change are copied by the system where it can. Sums are computed in F32 and
 * rounded once; a quantised tensor's values are quantised again in its own layout, with new scales.
 * Memory: one module's matrices and 2 MiB, and as much for each thread; rotations of rows and
 * magnitudes by column need the whole tensor as F32. SFT_CAST_VALUE: NaN, an infinity, or a sum
 * that the dtype has no room for. Ticks the job with bytes written. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_adapter_merge_save(sft_adapter_merge *merge, sft_sink sink,
                                                      const sft_job *job, sft_error *err);
/* Write it shard by shard into a folder, new or empty, as sft_save_set does. Of the options, all
 * but plan and index_metadata are used. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_adapter_merge_save_set(sft_adapter_merge *merge,
                                                          const char *folder,
                                                          const sft_save_set_options *options,
                                                          const sft_job *job, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
