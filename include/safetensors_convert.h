/* Conversion of models between dtypes, from file to file, by the casts of safetensors_cast.h, and
 * the values of quantised tensors (docs/convert.md).
 *
 * EXPERIMENTAL: may change incompatibly in any release (docs/abi.md). SFT_EXPERIMENTAL_CONVERT is
 * defined while that is so.
 *
 * Conventions as in safetensors.h. */
#ifndef SFT_SAFETENSORS_CONVERT_H
#define SFT_SAFETENSORS_CONVERT_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif
#include "safetensors_codes.h"
#include "safetensors_cast.h"
#include "safetensors_set.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SFT_EXPERIMENTAL_CONVERT 1

/* @since 0.1 */
typedef struct sft_convert_options {
    size_t size;
    bool saturate;
    /* Also cast tensors whose values are to be multiplied by a scale, and these scales. The
     * result is meaningless to a program that does not know of it. */
    bool scaled;
    /* Selects the tensors to be cast, whatever their kind. NULL: floats if the target is one,
     * integers if the target is one; others are left alone. */
    sft_match_fn match;
    void *match_ctx;
    uint32_t align; /* of the data's start, see sft_plan_options; 0 = 8 */
    const sft_allocator *alloc;
    /* Compute the values of quantised tensors, as docs/convert.md has it: they become tensors of
     * the target dtype, a float, and what they were computed from is not written. All others are
     * left alone; match selects among the quantised ones. @since 0.2 */
    bool dequantize;
    /* With dequantize: as in sft_open_options, for config.json beside the model. @since 0.2 */
    const sft_files *files;
    /* Cast an adapter's tensors to a float of at most 8 bits, too, in which many of its values
     * become zero, and also scalars that are matched. @since 0.3 */
    bool lossy;
    /* With dequantize: a quantised tensor whose values cannot be computed is no error of
     * sft_conversion_new, but of reading or saving that tensor: SFT_CONVERT_REFUSED. @since 0.2 */
    bool partial;
} sft_convert_options;

#define SFT_CONVERT_OPTIONS_INIT \
    { sizeof(sft_convert_options), false, false, NULL, NULL, 0, NULL, false, NULL, false, false }

/* What happens to a tensor, and why. @since 0.2 */
typedef enum sft_convert_action {
    SFT_CONVERT_CAST = 0,
    SFT_CONVERT_SAME = 1,   /* already has the dtype */
    SFT_CONVERT_OTHER = 2,  /* of another kind, or not matched */
    SFT_CONVERT_SCALED = 3, /* its values are to be multiplied by a scale */
    SFT_CONVERT_SCALE = 4,  /* is such a scale, or belongs to one */
    SFT_CONVERT_DEQUANTIZE = 5, /* its values are computed */
    SFT_CONVERT_DROP = 6,       /* is not written: those values were computed from it */
    /* A scalar that a float of no more bits could change: of rank 0, of rank 1 and at most 16
     * elements (into at most 8 bits), alpha, dora_scale or another magnitude of an adapter. */
    SFT_CONVERT_KEPT = 7,
    SFT_CONVERT_REFUSED = 8 /* its values cannot be computed: sft_conversion_refusal */
} sft_convert_action;

/* A conversion that has been planned. One thread at a time. @since 0.1 */
typedef struct sft_conversion sft_conversion;

/* Plan the conversion of every tensor of the set, which must outlive it. SFT_CAST_DTYPE names a
 * tensor that was requested and cannot be cast, or whose values cannot be computed because of how
 * it is stored or of what is declared of it; with the hint SFT_HINT_LOSSY the model is an adapter,
 * the dtype a float of at most 8 bits, and options.lossy not set. SFT_SIZE_PARTIAL_BYTE names one
 * whose elements would not fill whole bytes. Cost: linear in tensors; no data is read but, with
 * dequantize, the declarations: small tensors (NAME.comfy_quant, states, shapes, some zero points),
 * and config.json, quantize_config.json and hf_quant_config.json beside the model. Free with
 * sft_conversion_free. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_conversion_new(const sft_set *set, sft_dtype to,
                                                  const sft_convert_options *options,
                                                  sft_conversion **out, sft_error *err);
/* Free a conversion. NULL is ignored. @since 0.1 */
SFT_API void sft_conversion_free(sft_conversion *conversion);

/* What happens to tensor i of the set. *scale, which may be NULL, becomes the scale of a
 * SFT_CONVERT_SCALED tensor, or the tensor that a SFT_CONVERT_SCALE belongs to, else NULL.
 * @since 0.2 */
SFT_API sft_convert_action sft_conversion_action(const sft_conversion *conversion, size_t i,
                                             const sft_tensor **scale);
/* Bytes of tensor i after the conversion; 0 past the last, and for SFT_CONVERT_DROP.
 * @since 0.1 */
SFT_API uint64_t sft_conversion_bytes(const sft_conversion *conversion, size_t i);
/* Whether tensor i is cast only because options.scaled is set: it would be SCALED or SCALE.
 * @since 0.1 */
SFT_API bool sft_conversion_overrules(const sft_conversion *conversion, size_t i);

/* Tensor i as it would be written, with its bytes from the conversion or from its file: to read it
 * without saving. Of SFT_CONVERT_DROP, and past the last, with source NULL. The part lives as long
 * as the conversion; only one thread may read from it, and not while the conversion is saved.
 * @since 0.2 */
SFT_API sft_part sft_conversion_part(sft_conversion *conversion, size_t i);
/* The layout of a SFT_CONVERT_DEQUANTIZE, by its id in data/quantised.layouts ("nvfp4", "gptq");
 * empty for every other tensor. Lives as long as the conversion. @since 0.3 */
SFT_API sft_span sft_conversion_layout(const sft_conversion *conversion, size_t i);
/* Why the values of a SFT_CONVERT_REFUSED cannot be computed: SFT_CAST_DTYPE, or what reading its
 * declarations fails with; SFT_OK for every other tensor. *unfit, which may be NULL: its layout is
 * declared and known, and one of its tensors is not there, or has another dtype or shape than the
 * layout has. Looks at the declarations again: costs as sft_conversion_new does for one tensor. One
 * thread at a time. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_conversion_refusal(const sft_conversion *conversion, size_t i,
                                                      bool *unfit, sft_error *err);
/* The file that sft_conversion_save would write, as a set of one, whose bytes are computed when
 * they are read: whatever reads models sees values so. *out owns the conversion and `set`, which
 * is the one that it was planned for, or NULL if that outlives *out: both are closed with it, and
 * on failure, too; the conversion may be asked until then, but no more be saved or read from. path
 * is for display and may be NULL. Any number of threads may read; one at a time does. A slice of a
 * quantised tensor costs least in the order of its rows. Memory: as for saving. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_conversion_set(sft_conversion *conversion, sft_set *set,
                                                  const char *path, sft_set **out, sft_error *err);
/* Number of tensors with this action; 0 for a value outside the enum. @since 0.2 */
SFT_API uint64_t sft_conversion_count(const sft_conversion *conversion, sft_convert_action action);
/* Bytes of all tensors before and after the conversion. @since 0.2 */
SFT_API uint64_t sft_conversion_bytes_before(const sft_conversion *conversion);
SFT_API uint64_t sft_conversion_bytes_after(const sft_conversion *conversion);

/* What a cast to fewer bits lost. Only finite values that were not zero before count. */
typedef enum sft_convert_loss {
    SFT_LOSS_ZERO = 0,      /* became zero */
    SFT_LOSS_INFINITE = 1,  /* became an infinity or NaN */
    SFT_LOSS_SATURATED = 2, /* became the greatest (or least) value, being beyond it */
    SFT_LOSS_OF = 3         /* all that were not zero; 0 also where a cast can lose nothing */
} sft_convert_loss;

/* How many values of tensor i, or of all for SIZE_MAX, the conversion has lost so far: exact once
 * it is saved, and each value counts once, however often it is saved or read. 0 past the last, for
 * a value outside the enum, and for elements that a part was read from out of order. Infinities
 * that become the greatest value count as saturated. Costs O(1), of all O(tensors). @since 0.3 */
SFT_API uint64_t sft_conversion_lost(const sft_conversion *conversion, size_t i,
                                     sft_convert_loss what);

/* Write all tensors as one file. The sink is finished, or abandoned on failure. Metadata is
 * kept (of several shards: all keys, the first value of each), except for digests of the old
 * data: sshs_model_hash, sshs_legacy_hash and modelspec.hash_* are kept only if the output has
 * exactly the data of one file. Tensors are in the official order of their new dtypes. Memory:
 * about 2 MiB, whatever the size of the tensors, and with job->threads over 1 another 2.5 MiB a
 * thread: those read and cast while the calling thread writes, which helps only if writing is
 * not the bottleneck. With dequantize up to 12 MiB more; values are computed on the calling
 * thread. SFT_CAST_VALUE names tensor and
 * element; err->offset is its offset in the file it comes from. Ticks the job with bytes
 * written. May be called again. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_conversion_save(sft_conversion *conversion, sft_sink sink,
                                                   const sft_job *job, sft_error *err);

/* Write the set shard by shard into a folder, new or empty, and then its index, as sft_save_set
 * does; every tensor stays in its shard. Of the options, all but plan and index_metadata are
 * used. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_conversion_save_set(sft_conversion *conversion,
                                                       const char *folder,
                                                       const sft_save_set_options *options,
                                                       const sft_job *job, sft_error *err);

/* Write one shard of the set, with its own metadata; otherwise as sft_conversion_save. To
 * convert a set in place, write the shards that change under new names and then change the index
 * with sft_index_rewrite. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_conversion_save_shard(sft_conversion *conversion, size_t shard,
                                                         sft_sink sink, const sft_job *job,
                                                         sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
