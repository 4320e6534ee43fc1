/* One model in several files: shards that an index.json names, or a list of files, seen as one
 * namespace of tensors. A single file is a set of one, so a program that takes "a model" handles
 * every case with this header alone.
 *
 * STABLE (docs/abi.md). Conventions as in safetensors.h. A set is immutable once open: any number
 * of threads may use it at once. */
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

/* ── Writing a model in several files ────────────────────────────────────── */

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

#ifdef __cplusplus
}
#endif
#endif
