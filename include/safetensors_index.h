/* The index of a model in several files, model.safetensors.index.json: which shards it names, and
 * changing it. An index is immutable once open.
 *
 * EXPERIMENTAL: may change incompatibly in any release (docs/abi.md). SFT_EXPERIMENTAL_INDEX is
 * defined while that is so.
 *
 * Conventions as in safetensors.h. */
#ifndef SFT_SAFETENSORS_INDEX_H
#define SFT_SAFETENSORS_INDEX_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif
#include "safetensors_set.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SFT_EXPERIMENTAL_INDEX 1

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
 * SFT_TENSOR_DUPLICATE: a new name is in use. SFT_EDIT_BUSY: another program is replacing the
 * index, or has changed it since it was read. Whether the shards match the index is the caller's
 * responsibility. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_index_rewrite(const char *path,
                                                 const sft_index_changes *changes,
                                                 const char *to,
                                                 const sft_path_options *options,
                                                 bool *changed, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
