/* What there is to tell of a model: sums over its tensors, NaN and infinities, permission bits, and
 * results as JSON.
 *
 * EXPERIMENTAL: may change incompatibly in any release (docs/abi.md). SFT_EXPERIMENTAL_REPORT is
 * defined while that is so.
 *
 * Conventions as in safetensors.h. */
#ifndef SFT_SAFETENSORS_REPORT_H
#define SFT_SAFETENSORS_REPORT_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif
#include "safetensors_scan.h"
#include "safetensors_set.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SFT_EXPERIMENTAL_REPORT 1

/* ── Sums ───────────────────────────────────────────────────────────────── */

/* Sums over all shards, which saturate at 2^64 - 1: bytes of the files (SFT_SIZE_UNKNOWN if one
 * is unknown; those of the input for a set of sft_import_set), of their headers (N of each) and of
 * all tensors. sft_set_alignment is the least alignment of a data region. Cost: linear in shards.
 * @since 0.2 */
SFT_API uint64_t sft_set_file_bytes(const sft_set *set);
SFT_API uint64_t sft_set_header_bytes(const sft_set *set);
SFT_API uint64_t sft_set_data_bytes(const sft_set *set);
SFT_API uint32_t sft_set_alignment(const sft_set *set);
/* Number of elements of all tensors, and number of tensors that are not aligned for their dtype.
 * Cost: linear in tensors. @since 0.2 */
SFT_API uint64_t sft_set_parameters(const sft_set *set);
SFT_API uint64_t sft_set_unaligned_count(const sft_set *set);

/* Sums over the tensors of one dtype. Never grows. @since 0.2 */
typedef struct sft_dtype_sum {
    sft_dtype dtype;
    uint64_t tensors, parameters, bytes;
} sft_dtype_sum;

/* Store the sums of the first cap dtypes that occur, in the official order, in out, which may be
 * NULL if cap is 0. Returns the number of dtypes, which may be larger than cap. Cost: linear in
 * tensors. @since 0.2 */
SFT_API size_t sft_set_dtypes(const sft_set *set, sft_dtype_sum *out, size_t cap);

/* Permission bits (sft_path_options.mode) for a file made from this model, so that nothing
 * becomes readable that was not: the bits common to its files, its index and, if path (may be
 * NULL) names an existing file, that file. 0600 if there are none, 0 if the model was not read
 * from a file. @since 0.2 */
SFT_API uint32_t sft_set_output_mode(const sft_set *set, const char *path);

/* ── Counting NaN and infinities ─────────────────────────────────────────── */

/* What sft_set_check_deep counted. Never grows. @since 0.2 */
typedef struct sft_deep_counts {
    uint64_t tensors;          /* floating-point tensors read */
    uint64_t values;           /* their elements */
    uint64_t nan, inf;         /* among the values */
    uint64_t tensors_with_nan; /* and how many tensors hold them */
    uint64_t tensors_with_inf;
    uint64_t first_nan_tensor; /* index in the set, or UINT64_MAX */
    uint64_t first_inf_tensor;
} sft_deep_counts;

/* Read every byte of every tensor and count NaN and infinities of floating-point dtypes. F4, F6
 * and integers have neither; F8_E4M3, the FNUZ dtypes and F8_E8M0 have NaN only; a C64 is NaN or
 * infinite if one of its halves is. Reads 1 MiB at a time, on the calling thread. On failure
 * *out counts nothing. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_set_check_deep(const sft_set *set, sft_deep_counts *out,
                                              const sft_job *job, sft_error *err);

/* ── Results as JSON (docs/json.md) ──────────────────────────────────────── */

/* Each of these writes one result object, `{"path":…,"ok":true,…}`, to a sink, from offset 0.
 * The caller finishes the sink. path is shown as given; bytes that are not UTF-8 become U+FFFD,
 * and "path_bytes" is added. If memory runs out, nothing has been written. At most cut bytes of
 * a metadata value are shown, and none of images in base64; "metadata_cut" then tells the length
 * of what was left out. 0 shows everything. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_set_json(const sft_set *set, const char *path, uint64_t cut,
                                             sft_sink *sink, sft_error *err);
/* The same for several sets seen as one, such as the components of a pipeline: sums, without
 * metadata. count is at least 1. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_sets_json(const sft_set *const *sets, size_t count,
                                                  const char *path, sft_sink *sink,
                                                  sft_error *err);
/* A list of tensors in an order (see sft_set_order). match is called for each tensor and omits
 * it by returning false; NULL lists all. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_set_ls_json(const sft_set *set, const char *path,
                                           sft_order order, sft_match_fn match, void *ctx,
                                           sft_sink *sink, sft_error *err);
/* The result of checking one file. deep is the result of sft_set_check_deep, or NULL. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_scan_json(const sft_scan *scan, const char *path,
                                              const sft_deep_counts *deep, sft_sink *sink,
                                              sft_error *err);
/* The same for a model with an index. verdict concerns the whole (NULL: valid). shards is JSON
 * text, the results of the shards separated by commas as sft_scan_json or sft_error_json wrote
 * them; they become "shards". @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_set_check_json(const sft_error *verdict, sft_level level,
                                                  sft_span shards, const char *path,
                                                  const sft_deep_counts *deep, sft_sink *sink,
                                                  sft_error *err);
/* `{"path":…,"ok":false,"error":{…}}`, for anything that failed. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_error_json(const sft_error *error, const char *path,
                                              sft_sink *sink, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
