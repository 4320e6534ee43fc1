/* Casts: elements in memory from one dtype to another, and models from file to file.
 *
 * docs/convert.md has a table for every target. In short:
 *   - to a float: the nearest value, ties to the even one, subnormals kept, rounded once.
 *     What is too large becomes an infinity (F64, F32, F16, BF16, F8_E5M2), NaN (F8_E4M3,
 *     the FNUZ ones, F8_E8M0) or the greatest value (F6, F4). A NaN keeps its sign where the
 *     target has NaN with signs, and becomes a quiet one; into F6 and F4 it is an error.
 *   - to an integer: the part before the point; NaN and what is out of range is an error.
 *     Integers go to integers without rounding, whatever their width.
 *   - to BOOL: whether it is not zero (NaN is not zero). From BOOL: 0 or 1.
 *   - C64 goes to C64 only. The same dtype is a copy, bit for bit.
 * With `saturate` what is too large for the target becomes its greatest (or least) value,
 * and a NaN that must become an integer 0; into F6 and F4 it is an error all the same. An
 * infinity stays one where the target has it.
 *
 * Elements under 8 bits are packed from the low bits of the bytes up: F4 has its first
 * element in the low nibble, F6 is a little-endian stream of bits.
 *
 * STABLE (docs/abi.md). Conventions as in safetensors.h.
 */
#ifndef SAFETENSORS_CONVERT_H
#define SAFETENSORS_CONVERT_H

#include "safetensors.h"
#include "safetensors_set.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ── Elements ────────────────────────────────────────────────────────────── */

/* Whether there is a cast: between all dtypes but C64, and from each to itself.
 * @since 0.1 */
SFT_API bool sft_cast_exists(sft_dtype from, sft_dtype to);

/* @since 0.1 */
typedef struct sft_cast_options {
    size_t size;
    bool saturate;
} sft_cast_options;

#define SFT_CAST_OPTIONS_INIT { sizeof(sft_cast_options), false }

/* Cast count elements, packed and little-endian as in a file, from `in` to `out`, which must
 * not overlap and need no alignment. The results are the same on every machine, whatever the
 * processor has and however its floating-point unit is set. SFT_CAST_VALUE: an element has no
 * place in the target; *element (may be NULL) tells which, and err what it was; what is in
 * `out` is then unspecified. SFT_CAST_DTYPE: there is no such cast. SFT_SIZE_PARTIAL_BYTE: count
 * elements of one of the dtypes do not end with a byte. No allocation. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_cast(sft_dtype from, const void *in, sft_dtype to, void *out,
                                        uint64_t count, const sft_cast_options *options,
                                        uint64_t *element, sft_error *err);

/* ── Models ──────────────────────────────────────────────────────────────── */

/* @since 0.1 */
typedef struct sft_convert_options {
    size_t size;
    bool saturate;
    /* Also cast tensors whose values are to be multiplied by a scale beside them, and these
     * scales: what comes out has lost its meaning unless a program knows of it. */
    bool scaled;
    /* Which tensors; with it they are cast whatever their kind is. NULL: floats if the target
     * is one, integers if the target is one; others stay as they are. */
    sft_match_fn match;
    void *match_ctx;
    uint32_t align; /* of the data's start, see sft_plan_options; 0 = 8 */
    const sft_allocator *alloc;
} sft_convert_options;

#define SFT_CONVERT_OPTIONS_INIT \
    { sizeof(sft_convert_options), false, false, NULL, NULL, 0, NULL }

/* What becomes of a tensor, and why. */
typedef enum sft_convert_action {
    SFT_CONVERT_CAST = 0,
    SFT_CONVERT_SAME = 1,   /* has the dtype already */
    SFT_CONVERT_OTHER = 2,  /* of another kind, or not matched */
    SFT_CONVERT_SCALED = 3, /* its values want the scale beside it */
    SFT_CONVERT_SCALE = 4   /* is such a scale, or belongs to one */
} sft_convert_action;

/* A conversion that is decided upon and not yet begun. Used by one thread. @since 0.1 */
typedef struct sft_conversion sft_conversion;

/* Decide for every tensor of the set, which must outlive the conversion. SFT_CAST_DTYPE names
 * a tensor that was asked for and cannot be cast, SFT_SIZE_PARTIAL_BYTE one whose elements
 * would not fill whole bytes. Cost: linear in tensors, no data is read. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_conversion_new(const sft_set *set, sft_dtype to,
                                                  const sft_convert_options *options,
                                                  sft_conversion **out, sft_error *err);
/* NULL is ignored. */
SFT_API void sft_conversion_free(sft_conversion *conversion);

/* Of tensor i of the set. *scale (may be NULL): for SFT_CONVERT_SCALED the scale, for
 * SFT_CONVERT_SCALE the tensor it belongs to, else NULL. @since 0.1 */
SFT_API sft_convert_action sft_conversion_action(const sft_conversion *conversion, size_t i,
                                             const sft_tensor **scale);
/* Bytes tensor i has afterwards; 0 past the last. @since 0.1 */
SFT_API uint64_t sft_conversion_bytes(const sft_conversion *conversion, size_t i);
/* Whether `i` would have been SCALED or SCALE, had not options.scaled been set. */
SFT_API bool sft_conversion_overrules(const sft_conversion *conversion, size_t i);

/* Tensors of the set that take this action; 0 for a value outside the enum. @since 0.2 */
SFT_API uint64_t sft_conversion_count(const sft_conversion *conversion, sft_convert_action action);
/* Bytes of the data of all tensors, before and after. @since 0.2 */
SFT_API uint64_t sft_conversion_bytes_before(const sft_conversion *conversion);
SFT_API uint64_t sft_conversion_bytes_after(const sft_conversion *conversion);

/* Write all tensors as one file into the sink, which is finished, or abandoned on a failure.
 * Metadata are kept (of several shards: all keys, the first value of each), the tensors stand
 * in the official order of their new dtypes. Streams: about 2 MiB of memory whatever the tensors
 * are. With job->threads over 1 so many read and cast while the calling thread writes, with
 * 2.5 MiB for each; as a rule writing is what takes the time, and they gain nothing.
 * SFT_CAST_VALUE names tensor and element, err->offset is its byte in the file it comes from.
 * The job ticks with the bytes of tensors written. Can be called again.
 * @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_conversion_save(sft_conversion *conversion, sft_sink sink,
                                                   const sft_job *job, sft_error *err);

/* Write the set shard by shard into a folder, new or empty, and then its index, as
 * sft_save_set does; every tensor stays in its shard. Of options (may be NULL) stem and no_sync
 * are looked at. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_conversion_save_set(sft_conversion *conversion,
                                                       const char *folder,
                                                       const sft_save_set_options *options,
                                                       const sft_job *job, sft_error *err);

/* Write one shard of the set, with its own metadata, into the sink; else as
 * sft_conversion_save. For who changes a set in place: write the shards that change under fresh
 * names, then the index (sft_index_rewrite). @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_conversion_save_shard(sft_conversion *conversion, size_t shard,
                                                         sft_sink sink, const sft_job *job,
                                                         sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
