/* One model in many files: shards named by an index.json, or given as a list, seen
 * as one namespace of tensors. A single file is a set of one, so that a program which
 * takes "a model" handles all cases with this header alone.
 *
 * STABLE (docs/abi.md). Conventions as in safetensors.h.
 */
#ifndef SAFETENSORS_SET_H
#define SAFETENSORS_SET_H

#include "safetensors.h"

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

/* Open what path names: a .safetensors file (a set of one), or an index
 * (`*.safetensors.index*.json` by name, or a JSON object with "weight_map"). Shards
 * are opened beneath the index's folder only, as sft_open_options.beneath has it: a name
 * with "..", an absolute one, a backslash or NUL, or one through a link that leads out is
 * SFT_INDEX_PATH, a pipe or folder SFT_IO_NOT_FILE. Every tensor the index names must be in the
 * shard it names (SFT_INDEX_TENSOR_MISSING, _MISPLACED), none may be in two shards
 * (_DUPLICATE); a shard that is not there is SFT_INDEX_SHARD_MISSING. Tensors that
 * stand in a shard but not in the index belong to the set.
 * The index must be a JSON object whose "weight_map" is an object of strings, with no
 * tensor named twice (SFT_INDEX_TYPE); other keys are ignored. Broken JSON has its own
 * codes (SFT_JSON_...), over max_shards is SFT_TOO_MANY_TENSORS.
 * err->message begins with the shard's path where the failure is one shard's; a file that
 * is something else is told for what it is, as by sft_diagnose.
 * Open files: each shard of SFT_READ keeps a descriptor, so a process whose limit is
 * 1024 opens about a thousand shards; beyond, SFT_IO_OPEN (EMFILE) says so and the hint
 * tells the limit to raise. A mapped shard (SFT_MAP, SFT_AUTO) keeps none.
 * Cost: linear in shards and names; a set of one adds nothing to sft_open, a larger one
 * about 24 bytes a tensor. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_set_open(const char *path, const sft_set_options *options,
                                            sft_set **out, sft_error *err);

/* Shards by path, in the order given; no index is looked for. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_set_open_list(const char *const *paths, size_t count,
                                                 const sft_set_options *options,
                                                 sft_set **out, sft_error *err);

/* A set of one over a file already open, which it closes, also on failure. path is
 * for display and may be NULL. Its own few hundred bytes come from the system's
 * allocator, for a file does not tell its own. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_set_from_file(sft_file *file, const char *path,
                                                 sft_set **out, sft_error *err);

SFT_API void sft_set_close(sft_set *set);

/* Whether path names an index by its file name. @since 0.1 */
SFT_API bool sft_path_is_index(const char *path);

/* Read only which shards an index names, each as the index spells it, in natural
 * order; for programs that must not open them. Checks names as sft_set_open does.
 * Freed with sft_index_close. @since 0.1 */
typedef struct sft_index sft_index;
SFT_API SFT_NODISCARD sft_code sft_index_open(const char *path, const sft_set_options *options,
                                              sft_index **out, sft_error *err);
SFT_API size_t sft_index_shard_count(const sft_index *index);
SFT_API const char *sft_index_shard_at(const sft_index *index, size_t i);
/* The index's folder, with its slash, or "": what the path of a shard begins with, and what
 * sft_open_options.beneath wants of whoever opens a shard by such a path. @since 0.1 */
SFT_API const char *sft_index_folder(const sft_index *index);
SFT_API void sft_index_close(sft_index *index);

/* Shards, in natural order of their names (list: as given). */
SFT_API size_t sft_set_shard_count(const sft_set *set);
SFT_API const sft_file *sft_set_shard_at(const sft_set *set, size_t i);
/* Path of a shard as it was opened; NULL past the end. */
SFT_API const char *sft_set_shard_path(const sft_set *set, size_t i);
/* Path of the index, or NULL when there was none. */
SFT_API const char *sft_set_index_path(const sft_set *set);
/* The index's "metadata" object as JSON text (total_size and others); may be empty. */
SFT_API sft_span sft_set_index_metadata(const sft_set *set);

/* All tensors: shard by shard, offset order within each. O(1). */
SFT_API size_t sft_set_tensor_count(const sft_set *set);
SFT_API const sft_tensor *sft_set_tensor_at(const sft_set *set, size_t i);
/* Which shard holds tensor i. */
SFT_API size_t sft_set_tensor_shard(const sft_set *set, size_t i);
/* By exact name; *shard (may be NULL) tells where. NULL when there is none. @since 0.1 */
SFT_API const sft_tensor *sft_set_find(const sft_set *set, sft_span name, size_t *shard);

/* Fill out[sft_set_tensor_count] with indexes in that order: names over the whole set, the
 * others shard by shard. Needs scratch of the same size. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_set_order(const sft_set *set, sft_order order,
                                             uint32_t *out, sft_error *err);

/* Sums over all shards; they stop at 2^64 - 1. Bytes of the files (SFT_SIZE_UNKNOWN if one is
 * unknown), of their headers (N of each) and of all tensors; the least alignment of a data
 * region. Cost: linear in shards. @since 0.2 */
SFT_API uint64_t sft_set_file_bytes(const sft_set *set);
SFT_API uint64_t sft_set_header_bytes(const sft_set *set);
SFT_API uint64_t sft_set_data_bytes(const sft_set *set);
SFT_API uint32_t sft_set_alignment(const sft_set *set);
/* Elements of all tensors, and how many tensors are not aligned for their dtype. Cost: linear
 * in tensors. @since 0.2 */
SFT_API uint64_t sft_set_parameters(const sft_set *set);
SFT_API uint64_t sft_set_unaligned_count(const sft_set *set);

/* Sums over the tensors of one dtype. Never grows. @since 0.2 */
typedef struct sft_dtype_sum {
    sft_dtype dtype;
    uint64_t tensors, parameters, bytes;
} sft_dtype_sum;

/* The dtypes of the set's tensors, in the official order: the first cap of them into out
 * (which may be NULL if that is 0). Returns how many there are, which may be more. Cost: linear
 * in tensors. @since 0.2 */
SFT_API size_t sft_set_dtypes(const sft_set *set, sft_dtype_sum *out, size_t cap);

/* ── Results as JSON (docs/json.md) ──────────────────────────────────────── */

/* Each writes one result object, `{"path":…,"ok":true,…}`, from offset 0 to a sink the caller
 * finishes. path is shown as given (bytes that are not UTF-8 become U+FFFD, and path_bytes is
 * added). When memory runs out nothing has been written. cut: at most so many bytes of a metadata
 * value are shown, and of pictures in base64 none, and "metadata_cut" tells the length of what was
 * cut; 0 shows all. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_set_json(const sft_set *set, const char *path, uint64_t cut,
                                             sft_sink *sink, sft_error *err);
/* The same of several sets seen as one, as the components of a pipeline are: sums, no
 * metadata. count is at least 1. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_sets_json(const sft_set *const *sets, size_t count,
                                                  const char *path, sft_sink *sink,
                                                  sft_error *err);
/* match, or NULL for all, is called per tensor: false leaves it out. order as in
 * sft_file_order, over the set. */
typedef bool (*sft_match_fn)(void *ctx, const sft_tensor *tensor);
SFT_API SFT_NODISCARD sft_code sft_set_ls_json(const sft_set *set, const char *path,
                                           sft_order order, sft_match_fn match, void *ctx,
                                           sft_sink *sink, sft_error *err);
/* deep: the result of sft_set_check_deep to be shown too, or NULL. */
typedef struct sft_deep_counts sft_deep_counts;
SFT_API SFT_NODISCARD sft_code sft_scan_json(const sft_scan *scan, const char *path,
                                              const sft_deep_counts *deep, sft_sink *sink,
                                              sft_error *err);
/* The same for a model with an index: the verdict on the whole (NULL: valid) and, as JSON
 * text with commas between, the results of its shards as sft_scan_json or
 * sft_error_json wrote them; they become "shards". @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_set_check_json(const sft_error *verdict, sft_level level,
                                                  sft_span shards, const char *path,
                                                  const sft_deep_counts *deep, sft_sink *sink,
                                                  sft_error *err);
/* `{"path":…,"ok":false,"error":{…}}` for anything that failed. */
SFT_API SFT_NODISCARD sft_code sft_error_json(const sft_error *error, const char *path,
                                              sft_sink *sink, sft_error *err);

/* ── Writing a model in several files ────────────────────────────────────── */

/* Permission bits for a file that is made from this model (sft_path_options.mode): those that
 * its files, its index and, where path (may be NULL) names a file already, that file have in
 * common, so that nothing becomes readable that was not; 0600 if that is none of them, 0 if the
 * model was read from no file. @since 0.1 */
SFT_API uint32_t sft_set_output_mode(const sft_set *set, const char *path);

/* Cut parts into shards, in the order given: shard_of[count] gets the shard of each, from 0,
 * *shards how many there are. By max_bytes (of tensors in a shard; one that is larger gets a
 * shard of its own) or, where max_bytes is 0, into exactly *shards of them, the largest as
 * small as can be (SFT_BAD_ARGUMENT if there are fewer parts than that). No parts are one
 * shard. Tensors are never cut. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_cut_parts(const sft_part *parts, size_t count,
                                             uint64_t max_bytes, uint32_t *shard_of,
                                             uint32_t *shards, sft_error *err);

/* @since 0.1 */
typedef struct sft_save_set_options {
    size_t size;
    const char *stem; /* NULL = "model" */
    bool no_sync;     /* as in sft_path_options */
    bool in_place_unsafe; /* as in sft_path_options */
    /* Text of a JSON object whose members the index keeps in its "metadata", each as it is
     * spelled; total_size is always that of what is written. May be empty. */
    sft_span index_metadata;
    /* NULL, or times of the last change, since 1970, for each shard and then the index:
     * shards + 1 of them (one for a single file). */
    const int64_t *mtimes_ns;
    const sft_plan_options *plan; /* of each shard; its alloc serves all; NULL = defaults */
    uint32_t mode; /* of all files, as in sft_path_options; 0: by umask */
} sft_save_set_options;

#define SFT_SAVE_SET_OPTIONS_INIT \
    { sizeof(sft_save_set_options), NULL, false, false, { NULL, 0 }, NULL, NULL, 0 }

/* Name of shard i of n, from 0, as transformers gives it: "model-00001-of-00003.safetensors",
 * or "model.safetensors" where it is the only one. Writes at most cap bytes with the NUL;
 * returns the length, which may be more. i == n: the index. @since 0.1 */
SFT_API size_t sft_shard_name(const char *stem, uint32_t i, uint32_t n, char *out, size_t cap);

/* Write parts as the shards that shard_of tells (each of 0 to shards - 1 has one at least,
 * unless it is the only one), each with the same metadata, and after them, as the sign that
 * all are there, the index. One shard is a plain file without an index. folder is made if it
 * is not there, and must be empty if it is (SFT_EXISTS). Each file appears whole or not at
 * all; on failure all of them are removed, and the folder if it was made here. A process that
 * is killed may leave shards, and no index. Ticks the job with the bytes of all tensors.
 * @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_save_set(const char *folder, const sft_part *parts,
                                            const uint32_t *shard_of, size_t count,
                                            uint32_t shards, const sft_pair *metadata,
                                            size_t metadata_count,
                                            const sft_save_set_options *options,
                                            const sft_job *job, sft_error *err);

/* ── Changing an index ───────────────────────────────────────────────────── */

/* What is to change; what is NULL or 0 stays. In "metadata", the value of a key is set as a
 * string, or with data NULL the key goes; the tensors and the shards of "weight_map" get other
 * names: value in place of key. Or, instead of these two, tensors of "weight_map" (key) get
 * another shard (value), come in, or with data NULL go. @since 0.1 */
typedef struct sft_index_changes {
    size_t size;
    const sft_pair *metadata;
    size_t metadata_count;
    const sft_pair *tensors;
    size_t tensor_count;
    const sft_pair *shards;
    size_t shard_count;
    bool dry_run; /* write nothing: find out whether anything would change */
    const sft_pair *places;
    size_t place_count;
    bool has_total_size; /* "total_size" of "metadata" becomes total_size */
    uint64_t total_size;
} sft_index_changes;

#define SFT_INDEX_CHANGES_INIT \
    { sizeof(sft_index_changes), NULL, 0, NULL, 0, NULL, 0, false, NULL, 0, false, 0 }

/* Write the index at path, changed, to `to` (NULL: path), whole or not at all. All text but
 * what changes stays as it is spelled. *changed (or NULL) says whether anything did; if not,
 * path itself is not written again. A new file has the mode of the one at path. Names of tensors
 * must be free (SFT_TENSOR_DUPLICATE); that the shards are what the index says is for the
 * caller. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_index_rewrite(const char *path,
                                                 const sft_index_changes *changes,
                                                 const char *to,
                                                 const sft_path_options *options,
                                                 bool *changed, sft_error *err);

/* ── Comparing two models ────────────────────────────────────────────────── */

/* @since 0.1 */
typedef struct sft_diff_options {
    size_t size;
    bool header_only; /* names, dtypes, shapes and metadata; not a byte of data is read */
    bool no_metadata; /* leave it out */
    /* With a tolerance, values are alike while |a - b| <= atol + rtol * |b|, as numpy.allclose
     * has it, and bytes do not matter. Without one, bytes must be the same. */
    bool has_tolerance;
    double atol, rtol;
    const sft_allocator *alloc; /* NULL = libc */
} sft_diff_options;

#define SFT_DIFF_OPTIONS_INIT { sizeof(sft_diff_options), false, false, false, 0, 0, NULL }

/* What sets a tensor apart, as bits. */
#define SFT_DIFF_ADDED 1u   /* only the second model has it */
#define SFT_DIFF_REMOVED 2u /* only the first has it */
#define SFT_DIFF_DTYPE 4u
#define SFT_DIFF_SHAPE 8u
#define SFT_DIFF_DATA 16u   /* bytes differ; with a tolerance: values beyond it */

/* One tensor that is not the same. Allocated by the library only; fields are only ever
 * appended. @since 0.1 */
typedef struct sft_diff_tensor {
    sft_span name;
    const sft_tensor *a, *b; /* NULL where it is not */
    uint32_t what;           /* SFT_DIFF_ bits */
    bool compared;           /* value by value: same shape, data read, bytes not the same */
    uint64_t values;         /* compared; a C64 counts as two */
    uint64_t differing;      /* not equal; NaN equals NaN, and 0 equals -0 */
    uint64_t beyond;         /* not alike within the tolerance */
    uint64_t nan;            /* differing because one of the two is NaN */
    uint64_t first;          /* of the differing (or, if none, UINT64_MAX) */
    double max_abs;          /* greatest |a - b| of numbers; may be infinite */
    double max_rel;          /* greatest |a - b| / |b| where b is not 0 */
} sft_diff_tensor;

/* One metadata key that has not the same value; span.data NULL where it is not. */
typedef struct sft_diff_pair {
    sft_span key, a, b;
} sft_diff_pair;

typedef struct sft_diff sft_diff;

/* Compare model a with model b, tensor by tensor whatever files they stand in; metadata of
 * several shards are one, of a key in several the first shard's value counts. Both models
 * must outlive the result, which is freed with sft_diff_free. 64-bit integers are compared as
 * integers, all else as doubles, which hold every other dtype exactly; unlike dtypes of one
 * shape are compared by value too. Ticks the job with the bytes of both models. Memory: 3 MiB,
 * about 130 bytes a tensor and 24 a metadata pair. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_diff_new(const sft_set *a, const sft_set *b,
                                             const sft_diff_options *options, const sft_job *job,
                                             sft_diff **out, sft_error *err);
/* NULL is ignored. */
SFT_API void sft_diff_free(sft_diff *diff);
/* Nothing below is there. */
SFT_API bool sft_diff_same(const sft_diff *diff);
/* Tensors that are not the same, in natural order of their names. NULL past the last. */
SFT_API size_t sft_diff_tensor_count(const sft_diff *diff);
SFT_API const sft_diff_tensor *sft_diff_tensor_at(const sft_diff *diff, size_t i);
/* Tensors of one dtype and shape whose bytes are the same (or were not to be read), and those
 * whose values are only alike within the tolerance. */
SFT_API uint64_t sft_diff_equal_count(const sft_diff *diff);
SFT_API uint64_t sft_diff_within_tolerance_count(const sft_diff *diff);
/* Greatest of all tensors compared, those within the tolerance included. */
SFT_API double sft_diff_max_abs(const sft_diff *diff);
SFT_API double sft_diff_max_rel(const sft_diff *diff);
/* In byte order of the keys. */
SFT_API size_t sft_diff_pair_count(const sft_diff *diff);
SFT_API sft_diff_pair sft_diff_pair_at(const sft_diff *diff, size_t i);

/* One result object, as the other sft_..._json write it: path is of a, other of b. */
SFT_API SFT_NODISCARD sft_code sft_diff_json(const sft_diff *diff, const char *path,
                                             const char *other, sft_sink *sink, sft_error *err);

/* ── Looking at every value ──────────────────────────────────────────────── */

/* What sft_set_check_deep counted. @since 0.1 */
struct sft_deep_counts {
    uint64_t tensors;          /* floating tensors looked at */
    uint64_t values;           /* their elements */
    uint64_t nan, inf;         /* among the values */
    uint64_t tensors_with_nan; /* and how many tensors hold them */
    uint64_t tensors_with_inf;
    uint64_t first_nan_tensor; /* index in the set, or UINT64_MAX */
    uint64_t first_inf_tensor;
};

/* Read every byte of every tensor and count NaN and infinities of the floating dtypes
 * (F4, F6 and the integers have none; F8_E4M3, the FNUZ ones and F8_E8M0 have NaN only).
 * A C64 is NaN, or infinite, where one of its halves is. Streams by 1 MiB, on the calling
 * thread only. *out counts nothing on failure. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_set_check_deep(const sft_set *set, sft_deep_counts *out,
                                              const sft_job *job, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
