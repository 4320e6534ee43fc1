/* One model in several files: shards that an index.json names, or a list of files, seen as one
 * namespace of tensors. A single file is a set of one, so a program that takes "a model" handles
 * every case with this header alone.
 *
 * STABLE (docs/abi.md). Conventions as in safetensors.h. A set, an index and a comparison are
 * immutable once open: any number of threads may use them at once. */
#ifndef SFT_SAFETENSORS_SET_H
#define SFT_SAFETENSORS_SET_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sft_set sft_set;

#define SFT_MAX_INDEX_BYTES UINT64_C(1000000000)
#define SFT_MAX_SHARDS 100000

/* @since 0.1 */
typedef struct sft_set_options {
    size_t size;
    uint64_t max_index_bytes; /* 0 = SFT_MAX_INDEX_BYTES */
    uint32_t max_shards;      /* 0 = SFT_MAX_SHARDS */
    const sft_open_options *open; /* for each shard; its alloc serves the set too */
} sft_set_options;

#define SFT_SET_OPTIONS_INIT { sizeof(sft_set_options), 0, 0, NULL }

/* Open what path names: a .safetensors file (a set of one) or an index (named
 * `*.safetensors.index*.json`, or a JSON object with "weight_map"). On success close *out with
 * sft_set_close.
 *
 * Shards are opened beneath the index's folder only (sft_open_options.beneath): a name that
 * contains "..", a backslash or NUL, is absolute, or goes through a link that leads out of the
 * folder is SFT_INDEX_PATH; a pipe or a folder is SFT_IO_NOT_FILE. Every tensor that the index
 * names must be in the shard it names (SFT_INDEX_TENSOR_MISSING, _MISPLACED), and no tensor may
 * be in two shards (_DUPLICATE). An absent shard is SFT_INDEX_SHARD_MISSING. Tensors of a shard
 * that the index does not name belong to the set, too.
 *
 * The index must be a JSON object whose "weight_map" is an object of strings in which no tensor
 * is named twice (SFT_INDEX_TYPE); other keys are ignored. Invalid JSON has its own codes
 * (SFT_JSON_…). More than max_shards is SFT_TOO_MANY_TENSORS. If one shard fails, err->message
 * begins with its path; other formats are recognised as by sft_diagnose.
 *
 * With SFT_READ each shard keeps a descriptor open, so a process limited to 1024 descriptors
 * opens about a thousand shards; beyond that SFT_IO_OPEN (EMFILE), with a hint. A mapped shard
 * keeps none.
 *
 * Cost: linear in shards and names. A set of one adds nothing to sft_open, a larger one about 24
 * bytes of memory a tensor. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_set_open(const char *path, const sft_set_options *options,
                                            sft_set **out, sft_error *err);

/* Open shards by path, in the order given; no index is looked for. Otherwise as sft_set_open.
 * @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_set_open_list(const char *const *paths, size_t count,
                                                 const sft_set_options *options,
                                                 sft_set **out, sft_error *err);

/* A set of one over an open file, which it closes, and which is closed on failure, too. path is
 * for display and may be NULL. Allocates a few hundred bytes with the system's allocator.
 * @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_set_from_file(sft_file *file, const char *path,
                                                 sft_set **out, sft_error *err);

/* Close a set and its files. NULL is ignored. @since 0.1 */
SFT_API void sft_set_close(sft_set *set);

/* Whether path looks like that of an index, judging by the file name alone. @since 0.2 */
SFT_API bool sft_path_is_index(const char *path);

/* Read which shards an index names, as the index spells them, in natural order, without opening
 * them. Names are checked as by sft_set_open. Close with sft_index_close. @since 0.2 */
typedef struct sft_index sft_index;
SFT_API SFT_NODISCARD sft_code sft_index_open(const char *path, const sft_set_options *options,
                                              sft_index **out, sft_error *err);
/* Shards, by index; NULL if i is out of range. @since 0.1; sft_index_shard_at: @since 0.2 */
SFT_API size_t sft_index_shard_count(const sft_index *index);
SFT_API const char *sft_index_shard_at(const sft_index *index, size_t i);
/* The index's folder with its final slash, or "": the beginning of a shard's path, and the value
 * of sft_open_options.beneath for opening one. @since 0.2 */
SFT_API const char *sft_index_folder(const sft_index *index);
SFT_API void sft_index_close(sft_index *index);

/* Shards, in natural order of their names, or in the order of the list. NULL if i is out of
 * range. @since 0.1; sft_set_shard_at: @since 0.2 */
SFT_API size_t sft_set_shard_count(const sft_set *set);
SFT_API const sft_file *sft_set_shard_at(const sft_set *set, size_t i);
/* The path a shard was opened by; NULL if i is out of range. @since 0.1 */
SFT_API const char *sft_set_shard_path(const sft_set *set, size_t i);
/* The path of the index; NULL if there was none. @since 0.1 */
SFT_API const char *sft_set_index_path(const sft_set *set);
/* The index's "metadata" object as JSON text (with total_size, for one); may be empty.
 * @since 0.1 */
SFT_API sft_span sft_set_index_metadata(const sft_set *set);

/* All tensors, shard by shard, in offset order within each. O(1); NULL if i is out of range.
 * @since 0.2 */
SFT_API size_t sft_set_tensor_count(const sft_set *set);
SFT_API const sft_tensor *sft_set_tensor_at(const sft_set *set, size_t i);
/* The shard that holds tensor i. @since 0.1 */
SFT_API size_t sft_set_tensor_shard(const sft_set *set, size_t i);
/* The tensor of exactly that name, or NULL. *shard, which may be NULL, becomes its shard. O(1).
 * @since 0.1 */
SFT_API const sft_tensor *sft_set_find(const sft_set *set, sft_span name, size_t *shard);

/* Fill out[sft_set_tensor_count(set)] with indexes in that order: names over the whole set,
 * other orders shard by shard. Allocates as much again while it sorts: O(n log n). @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_set_order(const sft_set *set, sft_order order,
                                             uint32_t *out, sft_error *err);

/* Sums over all shards, which saturate at 2^64 - 1: bytes of the files (SFT_SIZE_UNKNOWN if one
 * is unknown), of their headers (N of each) and of all tensors. sft_set_alignment is the least
 * alignment of a data region. Cost: linear in shards. @since 0.2 */
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
typedef bool (*sft_match_fn)(void *ctx, const sft_tensor *tensor);
SFT_API SFT_NODISCARD sft_code sft_set_ls_json(const sft_set *set, const char *path,
                                           sft_order order, sft_match_fn match, void *ctx,
                                           sft_sink *sink, sft_error *err);
/* The result of checking one file. deep is the result of sft_set_check_deep, or NULL. @since 0.2 */
typedef struct sft_deep_counts sft_deep_counts;
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

/* ── Writing a model in several files ────────────────────────────────────── */

/* Permission bits (sft_path_options.mode) for a file made from this model, so that nothing
 * becomes readable that was not: the bits common to its files, its index and, if path (may be
 * NULL) names an existing file, that file. 0600 if there are none, 0 if the model was not read
 * from a file. @since 0.2 */
SFT_API uint32_t sft_set_output_mode(const sft_set *set, const char *path);

/* Divide parts into shards, in the order given. shard_of[count] becomes the shard of each part,
 * from 0, and *shards the number of shards. If max_bytes is not 0, it limits the bytes of
 * tensors in a shard; a larger tensor gets a shard of its own. If it is 0, exactly *shards
 * shards are made, the largest of them as small as possible (SFT_BAD_ARGUMENT if there are fewer
 * parts). No parts make one shard. Tensors are never divided. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_cut_parts(const sft_part *parts, size_t count,
                                             uint64_t max_bytes, uint32_t *shard_of,
                                             uint32_t *shards, sft_error *err);

/* @since 0.1 */
typedef struct sft_save_set_options {
    size_t size;
    const char *stem; /* of the files' names; NULL = "model" */
    bool no_sync;     /* as in sft_path_options */
    bool in_place_unsafe; /* as in sft_path_options */
    /* A JSON object as text, whose members the index gets in its "metadata", spelled the same;
     * total_size is always that of what is written. May be empty. */
    sft_span index_metadata;
    /* NULL, or modification times, in nanoseconds since 1970, for each shard and then the
     * index: shards + 1 of them (one for a single file). */
    const int64_t *mtimes_ns;
    const sft_plan_options *plan; /* of each shard; its alloc serves all; NULL = defaults */
    uint32_t mode; /* of all files, as in sft_path_options; 0: by umask */
} sft_save_set_options;

#define SFT_SAVE_SET_OPTIONS_INIT \
    { sizeof(sft_save_set_options), NULL, false, false, { NULL, 0 }, NULL, NULL, 0 }

/* The name of shard i of n, from 0, as transformers spells it:
 * "model-00001-of-00003.safetensors", or "model.safetensors" if there is only one; with i == n,
 * the name of the index. Writes at most cap bytes, including the NUL, and returns the length,
 * which may be larger. @since 0.1 */
SFT_API size_t sft_shard_name(const char *stem, uint32_t i, uint32_t n, char *out, size_t cap);

/* Write parts as shards, and then the index, which marks the set as complete. shard_of tells the
 * shard of each part; every shard from 0 to shards - 1 needs a part, unless it is the only one.
 * Each shard has the same metadata. A single shard is a plain file without an index. folder is
 * created if it does not exist and must be empty if it does (SFT_EXISTS). Each file appears
 * complete or not at all. On failure all of them are removed, and the folder if it was created
 * here; a process that is killed may leave shards, but no index. Ticks the job with the bytes of
 * all tensors. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_save_set(const char *folder, const sft_part *parts,
                                            const uint32_t *shard_of, size_t count,
                                            uint32_t shards, const sft_pair *metadata,
                                            size_t metadata_count,
                                            const sft_save_set_options *options,
                                            const sft_job *job, sft_error *err);

/* ── Changing an index ───────────────────────────────────────────────────── */

/* Changes of an index; what is NULL or 0 stays. metadata: in "metadata", the key is set to that
 * string, or removed if the value's data is NULL. tensors, shards: names in "weight_map" are
 * replaced, key by value. Instead of these two, places: tensors (key) move to another shard
 * (value), are added, or removed if the value's data is NULL. @since 0.1 */
typedef struct sft_index_changes {
    size_t size;
    const sft_pair *metadata;
    size_t metadata_count;
    const sft_pair *tensors;
    size_t tensor_count;
    const sft_pair *shards;
    size_t shard_count;
    bool dry_run; /* write nothing, only tell whether anything would change */
    const sft_pair *places;
    size_t place_count;
    bool has_total_size; /* "total_size" of "metadata" becomes total_size */
    uint64_t total_size;
} sft_index_changes;

#define SFT_INDEX_CHANGES_INIT \
    { sizeof(sft_index_changes), NULL, 0, NULL, 0, NULL, 0, false, NULL, 0, false, 0 }

/* Write the index at path, changed, to `to` (NULL: path), complete or not at all. Text that does
 * not change keeps its spelling. *changed, which may be NULL, tells whether anything did; if
 * nothing did, path itself is not written. A new file gets the mode of the one at path.
 * SFT_TENSOR_DUPLICATE: a new name is in use. Whether the shards match the index is the caller's
 * responsibility. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_index_rewrite(const char *path,
                                                 const sft_index_changes *changes,
                                                 const char *to,
                                                 const sft_path_options *options,
                                                 bool *changed, sft_error *err);

/* ── Comparing two models ────────────────────────────────────────────────── */

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
} sft_diff_options;

#define SFT_DIFF_OPTIONS_INIT \
    { sizeof(sft_diff_options), false, false, false, 0, 0, NULL, NULL, NULL }

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
    double max_rel;          /* greatest |a - b| / |b| where b is not 0 */
    /* If compared, over the values that are finite in both models and whose difference is: the
     * root of the mean square of a - b, and the cosine of the angle between the two as vectors;
     * NaN if there are none, or for the cosine if a vector is zero. Summed up as doubles.
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
/* Whether there are no differences. @since 0.1 */
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

/* ── Counting NaN and infinities ─────────────────────────────────────────── */

/* What sft_set_check_deep counted. Never grows. @since 0.2 */
struct sft_deep_counts {
    uint64_t tensors;          /* floating-point tensors read */
    uint64_t values;           /* their elements */
    uint64_t nan, inf;         /* among the values */
    uint64_t tensors_with_nan; /* and how many tensors hold them */
    uint64_t tensors_with_inf;
    uint64_t first_nan_tensor; /* index in the set, or UINT64_MAX */
    uint64_t first_inf_tensor;
};

/* Read every byte of every tensor and count NaN and infinities of floating-point dtypes. F4, F6
 * and integers have neither; F8_E4M3, the FNUZ dtypes and F8_E8M0 have NaN only; a C64 is NaN or
 * infinite if one of its halves is. Reads 1 MiB at a time, on the calling thread. On failure
 * *out counts nothing. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_set_check_deep(const sft_set *set, sft_deep_counts *out,
                                              const sft_job *job, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
