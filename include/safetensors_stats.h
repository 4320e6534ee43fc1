/* Statistics of tensors: extremes, mean, standard deviation, zeros, NaN and infinities.
 *
 * All sums are kept exactly, as integers of some thousand bits, so a result depends neither on
 * the order in which elements are read nor on the number of threads. It is rounded once:
 *   - min and max are exact;
 *   - mean and abs_mean are the true values rounded to the nearest double, ties to even;
 *   - std, that of the population (numpy.std), is within 0.51 units in the last place.
 * NaN and infinities are counted, and left out of everything else. Each half of a C64 counts as
 * a value. Integers of quantised tensors are integers; sft_conversion_set has their values.
 *
 * EXPERIMENTAL: may change incompatibly in any release (docs/abi.md). SFT_EXPERIMENTAL_STATS is
 * defined while that is so.
 *
 * Conventions as in safetensors.h. */
#ifndef SFT_SAFETENSORS_STATS_H
#define SFT_SAFETENSORS_STATS_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SFT_EXPERIMENTAL_STATS 1

/* Values by magnitude: bin i counts those with 2^(i - 64) <= |x| < 2^(i - 63). The first bin also
 * has what is smaller, the last what is larger; zeros, NaN and infinities are in none. 64-bit
 * integers are counted as doubles. Never grows. @since 0.2 */
#define SFT_HISTOGRAM_BINS 128
typedef struct sft_histogram {
    uint64_t negative[SFT_HISTOGRAM_BINS], positive[SFT_HISTOGRAM_BINS];
} sft_histogram;

/* Statistics of one tensor, or of several together. Allocated by the library only; lives as long
 * as its sft_statistics. Members may be appended. @since 0.2 */
typedef struct sft_stats {
    uint64_t values; /* elements; a C64 counts as two */
    uint64_t zeros;  /* of either sign */
    uint64_t nan, inf;
    /* For the finite values; NaN if there are none. */
    double min, max, mean, std, abs_mean;
    /* For BOOL and integers: min and max in 64 bits, in two's complement where the dtype has a
     * sign. 0 for everything else, and if there are no values. */
    uint64_t min_bits, max_bits;
    const sft_histogram *histogram; /* NULL if it was not requested */
} sft_stats;

/* @since 0.2 */
typedef struct sft_statistics_options {
    size_t size;
    bool histogram;
    const sft_allocator *alloc; /* NULL = libc */
} sft_statistics_options;

#define SFT_STATISTICS_OPTIONS_INIT { sizeof(sft_statistics_options), false, NULL }

typedef struct sft_statistics sft_statistics;

/* Compute the statistics of tensors in sources: those of a file (sft_part_of) in the order of
 * their offsets are read in one pass. Each byte is read once, by up to job->threads threads, or
 * from memory if the source is there; a source that is not thread-safe needs job->threads 1.
 * Ticks the job with bytes. Memory: 0.7 MiB a thread, 120 bytes a tensor, and 2 KiB a tensor for
 * histograms. Errors: SFT_BAD_ARGUMENT for a source that can only be read forward, and those of
 * the sources, with the tensor's name. Free with sft_statistics_free. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_statistics_new(const sft_part *parts, size_t count,
                                                  const sft_statistics_options *options,
                                                  const sft_job *job, sft_statistics **out,
                                                  sft_error *err);
/* Free statistics. NULL is ignored. @since 0.2 */
SFT_API void sft_statistics_free(sft_statistics *statistics);
/* The statistics of part i; NULL past the last. @since 0.2 */
SFT_API const sft_stats *sft_statistics_at(const sft_statistics *statistics, size_t i);
/* The statistics of all values of all parts. min_bits and max_bits are 0. @since 0.2 */
SFT_API const sft_stats *sft_statistics_all(const sft_statistics *statistics);

#ifdef __cplusplus
}
#endif
#endif
