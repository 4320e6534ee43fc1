/* What is this model? Facts for people, from its header, its tensors' names and shapes and
 * the small files beside it, each with its source and how far it can be trusted. Offline:
 * no byte of tensor data is read but at most eight alpha scalars.
 *
 * EXPERIMENTAL: may change incompatibly in any release (docs/abi.md).
 * SFT_EXPERIMENTAL_INFO is defined while that is so.
 *
 * Conventions as in safetensors.h.
 */
#ifndef SAFETENSORS_INFO_H
#define SAFETENSORS_INFO_H

#include "safetensors.h"
#include "safetensors_set.h"
#include "safetensors_tree.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SFT_EXPERIMENTAL_INFO 1

typedef struct sft_info sft_info;
typedef struct sft_hashes sft_hashes; /* safetensors_hash.h */

/* Facts that have a value, a source, a trust and other candidates: `model` in docs/json.md,
 * in its order. @since 0.1 */
typedef enum sft_fact {
    SFT_FACT_KIND = 0,
    SFT_FACT_ARCHITECTURE,
    SFT_FACT_VARIANT,
    SFT_FACT_BASE_MODEL,
    SFT_FACT_BASE_CHECKPOINT,
    SFT_FACT_REPO,
    SFT_FACT_NAME,
    SFT_FACT_VERSION_NAME,
    SFT_FACT_DESCRIPTION,
    SFT_FACT_VERSION_DESCRIPTION,
    SFT_FACT_AUTHOR,
    SFT_FACT_LICENSE,
    SFT_FACT_TAGS,
    SFT_FACT_DATE,
    SFT_FACT_USAGE_HINT,
    SFT_FACT_PREDICTION_TYPE,
    SFT_FACT_RESOLUTION,
    SFT_FACT_CLIP_SKIP,
    SFT_FACT_PREFERRED_WEIGHT,
    SFT_FACT_NEGATIVE_PROMPT,
    SFT_FACT_NSFW,
    SFT_FACT_LANGUAGE,
    SFT_FACT_QUANTIZATION
} sft_fact;
#define SFT_FACT_COUNT 23

/* Name of a fact as in JSON; NULL outside the enum. Static. @since 0.1 */
SFT_API const char *sft_fact_name(sft_fact fact);

/* A folder listed once, for all models in it. @since 0.1 */
typedef struct sft_info_folder sft_info_folder;

/* List a folder ("." for none). Reads no file. Free with sft_info_folder_close after the
 * last sft_info made with it. Threads may share it. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_info_folder_open(const char *path, const sft_allocator *alloc,
                                                    sft_info_folder **out, sft_error *err);
SFT_API void sft_info_folder_close(sft_info_folder *folder);
/* When the folder was listed, if the name that path ends in was a file there and no edit had
 * left its journal; else 0. It is what sft_open_options.listed_s wants. @since 0.1 */
SFT_API uint64_t sft_info_folder_listed(const sft_info_folder *folder, const char *path);

/* @since 0.1 */
typedef struct sft_info_options {
    size_t size;
    bool deep;              /* read every alpha scalar */
    bool header_only;       /* nothing but the header: no alpha, no file beside the model */
    uint64_t max_file_bytes; /* of a file beside the model; 0 = 64 MiB */
    const sft_allocator *alloc;
} sft_info_options;
#define SFT_INFO_OPTIONS_INIT { sizeof(sft_info_options), false, false, 0, NULL }

/* Collect the facts of one model. path is how the model is called (it names the files
 * looked for beside it); NULL for none. folder: its folder, listed before, or NULL to list
 * it here. The set must outlive the info. What cannot be read beside the model is told in
 * `sidecars`, not an error. Fails when memory runs out only. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_info_open(const sft_set *set, const char *path,
                                             const sft_info_folder *folder,
                                             const sft_info_options *options, sft_info **out,
                                             sft_error *err);
SFT_API void sft_info_close(sft_info *info);

/* Best value of a fact as text (a list joined by ", "); false when unknown. source and trust
 * may be NULL. Valid until sft_info_close. @since 0.1 */
SFT_API bool sft_info_fact(const sft_info *info, sft_fact fact, sft_span *value,
                           sft_span *source, int *trust);

/* Trigger words, best first: the word as text and as it is pasted into a prompt. @since 0.1 */
typedef struct sft_trigger_word {
    sft_span text, prompt, source;
    int trust;
} sft_trigger_word;
SFT_API size_t sft_info_trigger_count(const sft_info *info);
SFT_API bool sft_info_trigger_at(const sft_info *info, size_t i, sft_trigger_word *out);

/* A digest of this file that its header or a file beside it records: claims, nothing is
 * computed. algo is static, spelled as sft_hash_name does; value lower-case hex. known says
 * why such a claim is expected to be wrong ("LyCORIS module order"), or is NULL. @since 0.1 */
typedef struct sft_info_claim {
    const char *algo;
    sft_span value, source;
    const char *known;
} sft_info_claim;
SFT_API size_t sft_info_claim_count(const sft_info *info);
SFT_API bool sft_info_claim_at(const sft_info *info, size_t i, sft_info_claim *out);

/* Digests of the file were computed, of these algorithms (bits): `hashes.computed` in JSON, null
 * where hashes does not know them, or is NULL. Files beside the model are held against them,
 * and what those tell that are another model's is no longer believed; where that changes
 * something they are read again. Texts got before stay valid; on failure all stays as it was.
 * Nobody may use info meanwhile. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_info_set_computed(sft_info *info, uint32_t asked,
                                                     const sft_hashes *hashes, sft_error *err);

/* What CivitAI answered about this file: JSON of a model version, with the description, tags
 * and permissions of the model in its "model", as `.civitai.info` files have it. Its facts
 * have the source "online:civitai" and the trust of such a file. The library itself asks
 * nobody. Text that is no such JSON tells nothing. Texts got before stay valid; on failure all
 * stays as it was. Nobody may use info meanwhile. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_info_add_civitai(sft_info *info, sft_span answer,
                                                    sft_error *err);

/* Pictures that belong to the model: embedded ones have their decoded bytes in data (empty
 * otherwise), files beside it their path (empty otherwise). media_type is told by the first
 * bytes ("image/png"), static. width and height are 0 where unknown. @since 0.1 */
typedef struct sft_preview {
    sft_span path, source, data;
    const char *media_type;
    uint64_t bytes;
    uint32_t width, height;
} sft_preview;
SFT_API size_t sft_info_preview_count(const sft_info *info);
SFT_API bool sft_info_preview_at(const sft_info *info, size_t i, sft_preview *out);

/* A digest ("sha256", "autov3", ...) of this file that a file beside it records together with
 * a size that fits: lower-case hex, valid until sft_info_close. False when none does.
 * @since 0.1 */
SFT_API bool sft_info_sized_hash(const sft_info *info, const char *algo, sft_span *value);

/* An image's or film's media type by its first bytes ("image/png", static); NULL if it is
 * none that is known. width and height may be NULL; 0 where unknown. @since 0.1 */
SFT_API const char *sft_info_image_type(sft_span bytes, uint32_t *width, uint32_t *height);

/* One component of a folder with a model_index.json: its folder's name and its facts.
 * @since 0.1 */
typedef struct sft_info_component {
    const char *name;
    const sft_set *set;
    const sft_info *info;
    const char *path;
} sft_info_component;

/* The facts of such a folder as one model of kind "pipeline": its model_index.json, README
 * and what the parts told. path is that of model_index.json; folder as for sft_info_open.
 * The parts must outlive the info; there is at least one. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_info_open_components(const sft_info_component *components,
                                                        size_t count, const char *path,
                                                        const sft_info_folder *folder,
                                                        const sft_info_options *options,
                                                        sft_info **out, sft_error *err);

/* The whole result object of `info --json` (docs/json.md): the header's facts of
 * sft_set_json and everything collected. full: metadata values are not cut at 4,096 bytes.
 * @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_info_json(const sft_info *info, const char *path,
                                             bool full, sft_sink *sink, sft_error *err);

/* The same as a tree, which must be empty; cut as for sft_sets_tree (sft_info_json has
 * 4,096, or with full SFT_SIZE_UNKNOWN). Texts are copied: the tree may outlive the info.
 * After a failure the tree can only be freed. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_info_tree(const sft_info *info, const char *path,
                                             uint64_t cut, sft_tree *tree, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
