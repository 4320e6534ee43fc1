/* Comparing two models tensor by tensor, by bytes or by value, however they are divided into files.
 * A comparison is immutable: any number of threads may use it at once.
 *
 * EXPERIMENTAL: may change incompatibly in any release (docs/abi.md). SFT_EXPERIMENTAL_DIFF is
 * defined while that is so.
 *
 * Conventions as in safetensors.h. */
#ifndef SFT_SAFETENSORS_DIFF_H
#define SFT_SAFETENSORS_DIFF_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif
#include "safetensors_set.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SFT_EXPERIMENTAL_DIFF 1

/* @since 0.1 */
typedef struct sft_diff_options {
    size_t size;
    bool header_only; /* compare names, dtypes, shapes and metadata; read no tensor data */
    bool no_metadata; /* do not compare metadata */
    /* With a tolerance, values are equal if |a - b| <= atol + rtol * |b|, as in numpy.allclose;
     * without one, bytes must be equal. */
    bool has_tolerance;
    double atol, rtol;
    const sft_allocator *alloc; /* NULL = libc */
    /* Selects the tensors to compare, in both models; NULL: all. @since 0.2 */
    sft_match_fn match;
    void *match_ctx;
    /* Tensors of one shape and different dtypes do not differ if their values do not. With
     * header_only dtypes differ. @since 0.3 */
    bool by_value;
} sft_diff_options;

#define SFT_DIFF_OPTIONS_INIT \
    { sizeof(sft_diff_options), false, false, false, 0, 0, NULL, NULL, NULL, false }

/* How a tensor differs, as bits. @since 0.1 */
#define SFT_DIFF_ADDED 1u   /* only the second model has it */
#define SFT_DIFF_REMOVED 2u /* only the first has it */
#define SFT_DIFF_DTYPE 4u
#define SFT_DIFF_SHAPE 8u
#define SFT_DIFF_DATA 16u   /* bytes differ; with a tolerance: values beyond it */

/* A tensor that differs. Allocated by the library only. @since 0.1 */
typedef struct sft_diff_tensor {
    sft_span name;
    const sft_tensor *a, *b; /* NULL in the model that lacks it */
    uint32_t what;           /* SFT_DIFF_ bits */
    bool compared;           /* by value: same shape, data read, bytes differ */
    uint64_t values;         /* compared; a C64 counts as two */
    uint64_t differing;      /* not equal; NaN equals NaN, and 0 equals -0 */
    uint64_t beyond;         /* not equal within the tolerance */
    uint64_t nan;            /* differing because one of the two is NaN */
    uint64_t first;          /* index of the first that differs, or UINT64_MAX */
    double max_abs;          /* greatest |a - b|, NaN aside; may be infinite */
    double max_rel;          /* greatest |a - b| / |b|, b finite and not 0; may be infinite */
    /* If compared, over the values that are finite in both models: the root of the mean square of
     * a - b, and the cosine of the angle between the two as vectors; NaN if there are none, for the
     * cosine if a vector is zero, and where a double cannot hold the sum of the squares. Summed up
     * as doubles.
     * @since 0.2 */
    double rms, cosine;
} sft_diff_tensor;

/* A metadata key whose values differ; data is NULL in the model that lacks it. Never grows.
 * @since 0.1 */
typedef struct sft_diff_pair {
    sft_span key, a, b;
} sft_diff_pair;

typedef struct sft_diff sft_diff;

/* Compare model a with model b tensor by tensor, however they are divided into files. Metadata
 * of several shards are merged; the first value of a key counts. Both models must outlive the
 * result. 64-bit integers are compared as integers, everything else as doubles, which hold all
 * other dtypes exactly; tensors of one shape but different dtypes are compared by value, too.
 * Ticks the job with the bytes of both models. Memory: 3 MiB, and about 130 bytes a tensor and
 * 24 a metadata pair. Free with sft_diff_free. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_diff_new(const sft_set *a, const sft_set *b,
                                             const sft_diff_options *options, const sft_job *job,
                                             sft_diff **out, sft_error *err);
/* Free a comparison. NULL is ignored. @since 0.1 */
SFT_API void sft_diff_free(sft_diff *diff);
/* Whether there are no differences among the tensors that are read. @since 0.1 */
SFT_API bool sft_diff_same(const sft_diff *diff);
/* Tensors that differ, in natural order of their names. NULL if i is out of range. @since 0.2 */
SFT_API size_t sft_diff_tensor_count(const sft_diff *diff);
SFT_API const sft_diff_tensor *sft_diff_tensor_at(const sft_diff *diff, size_t i);
/* Number of tensors with the same dtype, shape and bytes (or bytes that were not to be read),
 * and of those whose values are equal only within the tolerance. @since 0.2 */
SFT_API uint64_t sft_diff_equal_count(const sft_diff *diff);
SFT_API uint64_t sft_diff_within_tolerance_count(const sft_diff *diff);
/* Tensors compared, or only in one model; those that are in both and differ; those only in the
 * first; those only in the second. @since 0.2 */
SFT_API uint64_t sft_diff_compared_count(const sft_diff *diff);
SFT_API uint64_t sft_diff_changed_count(const sft_diff *diff);
SFT_API uint64_t sft_diff_removed_count(const sft_diff *diff);
SFT_API uint64_t sft_diff_added_count(const sft_diff *diff);
/* Elements of tensors that are changed, removed or added, as a share of all: 0 to 1; 0 if there
 * are no elements. @since 0.2 */
SFT_API double sft_diff_share(const sft_diff *diff);
/* The greatest difference of all tensors compared, including those within the tolerance.
 * @since 0.1 */
SFT_API double sft_diff_max_abs(const sft_diff *diff);
SFT_API double sft_diff_max_rel(const sft_diff *diff);
/* Metadata keys whose values differ, in byte order. @since 0.1 */
SFT_API size_t sft_diff_pair_count(const sft_diff *diff);
SFT_API sft_diff_pair sft_diff_pair_at(const sft_diff *diff, size_t i);

/* Write the result object, as the other sft_…_json functions do; path is that of a, other that
 * of b. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_diff_json(const sft_diff *diff, const char *path,
                                             const char *other, sft_sink *sink, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
