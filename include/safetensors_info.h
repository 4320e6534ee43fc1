/* What is this model? Facts for people, from its header, its tensors' names and shapes and
 * the small files beside it, each with its source and how far it can be trusted. Offline:
 * no byte of tensor data is read but at most eight alpha scalars.
 *
 * EXPERIMENTAL: may change incompatibly in any release (docs/abi.md).
 * SFT_EXPERIMENTAL_INFO is defined while that is so.
 *
 * Conventions as in safetensors.h.
 */
#ifndef SFT_SAFETENSORS_INFO_H
#define SFT_SAFETENSORS_INFO_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif
#include "safetensors_set.h"
#include "safetensors_tree.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SFT_EXPERIMENTAL_INFO 1

typedef struct sft_info sft_info;
typedef struct sft_hashes sft_hashes; /* safetensors_hash.h */

/* Facts that have a value, a source, a degree of trust and other candidates: `model` in
 * docs/json-info.md, in its order. @since 0.1 */
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
    SFT_FACT_QUANTIZATION,
    SFT_FACT_FAMILY
} sft_fact;
#define SFT_FACT_COUNT 24

/* The name of a fact, as in JSON; NULL for a value outside the enum. Static. @since 0.1 */
SFT_API const char *sft_fact_name(sft_fact fact);

/* Call take for every value that a fact is known to have, if it has a vocabulary
 * (docs/json-vocabularies.md), until take returns false. Returns whether the fact
 * has no other values. @since 0.2 */
SFT_API bool sft_fact_values(sft_fact fact, bool (*take)(void *ctx, const char *value), void *ctx);

/* A folder, listed once for all models in it. @since 0.1 */
typedef struct sft_info_folder sft_info_folder;

/* List a folder ("." for the current one) without reading any file. files: NULL, or as in
 * sft_open_options; a folder that it claims but cannot list has no entries. Close it with
 * sft_info_folder_close after the last sft_info that uses it. Threads may share it. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_info_folder_open(const char *path, const sft_files *files,
                                                    const sft_allocator *alloc,
                                                    sft_info_folder **out, sft_error *err);
SFT_API void sft_info_folder_close(sft_info_folder *folder);
/* The seconds of SFT_OPEN_LISTED (safetensors_io.h) for path: when the folder was listed, since
 * 1970, if the listing has path's last part as a file and no edit had left a journal; else 0.
 * Saves sft_open the lookup of a journal. @since 0.1 */
SFT_API uint64_t sft_info_folder_listed(const sft_info_folder *folder, const char *path);

/* What is known of models: the records that come with the library, and those of texts
 * (docs/records.md). @since 0.3 */
typedef struct sft_records sft_records;

/* One text of records. name, which is part of the sources of what it tells ("records:NAME") and of
 * errors, ends with a NUL. @since 0.3 */
typedef struct sft_records_text {
    sft_span text;
    const char *name;
} sft_records_text;

/* Read texts of records, after those of the library: once for all models. Both texts and names are
 * copied. At most 4 MiB, 20,000 lines and 254 texts together; at what is wrong SFT_BAD_ARGUMENT,
 * with name, line and column in err->message, so that sft_error_text needs no path: give it NULL.
 * count may be 0. Threads may share what was opened.
 * Close it with sft_records_close after the last sft_info that uses it. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_records_open(const sft_records_text *texts, size_t count,
                                                const sft_allocator *alloc, sft_records **out,
                                                sft_error *err);
/* NULL is none. @since 0.3 */
SFT_API void sft_records_close(sft_records *records);

/* @since 0.1 */
typedef struct sft_info_options {
    size_t size;
    bool deep;              /* read every alpha scalar */
    bool header_only;       /* nothing but the header: no alpha, no file beside the model */
    uint64_t max_file_bytes; /* of a file beside the model; 0 = 64 MiB */
    const sft_allocator *alloc;
    /* What the set was made of (sft_import_set), which adds `import` to the result; NULL: it is
     * of safetensors files. @since 0.2 */
    const struct sft_import *import;
    const sft_files *files; /* as in sft_open_options, for files beside the model. @since 0.2 */
    bool no_data;           /* no tensor data: no alpha, which then stays unknown. @since 0.2 */
    /* Digests of this file that somebody else claims, such as the server it is on; they are
     * recorded with their sources, and outlive the info. @since 0.2 */
    const struct sft_info_claim *claims;
    size_t claim_count;
    /* What is known of models; NULL: what comes with the library. It must outlive the info.
     * @since 0.2 */
    const sft_records *records;
} sft_info_options;
#define SFT_INFO_OPTIONS_INIT \
    { sizeof(sft_info_options), false, false, 0, NULL, NULL, NULL, false, NULL, 0, NULL }

/* Collect the facts of a model. path is the model's name, from which the names of files in the
 * same folder follow; NULL for none. folder is its folder, or NULL to list it here, which is not
 * done for a path that options.files claims: no other file is read then. The set must
 * outlive the info. Files in the folder that cannot be read are reported in `sidecars`, not as
 * an error; the only error is SFT_OUT_OF_MEMORY. Close with sft_info_close. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_info_open(const sft_set *set, const char *path,
                                             const sft_info_folder *folder,
                                             const sft_info_options *options, sft_info **out,
                                             sft_error *err);
SFT_API void sft_info_close(sft_info *info);

/* The best value of a fact as text (a list joined by ", "); false if unknown. source and trust
 * may be NULL. Valid until sft_info_close. @since 0.1 */
SFT_API bool sft_info_fact(const sft_info *info, sft_fact fact, sft_span *value,
                           sft_span *source, int *trust);

/* A trigger word, best first: as plain text, and as it is written in a prompt. @since 0.1 */
typedef struct sft_trigger_word {
    sft_span text, prompt, source;
    int trust;
} sft_trigger_word;
SFT_API size_t sft_info_trigger_count(const sft_info *info);
SFT_API bool sft_info_trigger_at(const sft_info *info, size_t i, sft_trigger_word *out);

/* A digest of this file that its header or a file in its folder states: a claim, nothing is
 * computed. algo is static and spelled as by sft_hash_name; value is lower-case hexadecimal.
 * known says why such a claim is expected to be wrong ("LyCORIS module order"), or is NULL.
 * @since 0.1 */
typedef struct sft_info_claim {
    const char *algo;
    sft_span value, source;
    const char *known;
} sft_info_claim;
SFT_API size_t sft_info_claim_count(const sft_info *info);
SFT_API bool sft_info_claim_at(const sft_info *info, size_t i, sft_info_claim *out);

/* Supply digests of the file that were computed, of these algorithms (bits); they become
 * `hashes.computed`, with null for what hashes (may be NULL) does not know. Files in the model's
 * folder are compared with them, and those that turn out to describe another model are no longer
 * believed; if that changes anything they are read again. Text obtained before stays valid; on
 * failure nothing changes. Nothing else may use info meanwhile. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_info_set_computed(sft_info *info, uint32_t asked,
                                                     const sft_hashes *hashes, sft_error *err);

/* Supply what CivitAI answered about this file: the JSON of a model version, with the model's
 * description, tags and permissions in "model", as in `.civitai.info` files. Its facts get the
 * source "online:civitai" and the trust of such a file. The library itself makes no requests.
 * Text that is not such JSON adds nothing. Text obtained before stays valid; on failure nothing
 * changes. Nothing else may use info meanwhile. @since 0.1 */
SFT_API SFT_NODISCARD sft_code sft_info_add_civitai(sft_info *info, sft_span answer,
                                                    sft_error *err);

/* An image that belongs to the model. An embedded one has its decoded bytes in data, a file in
 * the model's folder its path; the other is empty. media_type follows from the first bytes
 * ("image/png") and is static. width and height are 0 if unknown. nsfw_level (@since 0.2) is
 * CivitAI's classification of this image, as bits (1 PG, 2 PG-13, 4 R, 8 X, 16 triple X,
 * 32 blocked), 0 if unknown. @since 0.1 */
typedef struct sft_preview {
    sft_span path, source, data;
    const char *media_type;
    uint64_t bytes;
    uint32_t width, height;
    uint32_t nsfw_level;
} sft_preview;
SFT_API size_t sft_info_preview_count(const sft_info *info);
SFT_API bool sft_info_preview_at(const sft_info *info, size_t i, sft_preview *out);

/* A digest ("sha256", "autov3", …) of this file that a file in its folder states together with a
 * size that matches, or that sft_info_options.claims has: lower-case hexadecimal, valid until
 * sft_info_close. False if there is none. @since 0.1 */
SFT_API bool sft_info_sized_hash(const sft_info *info, const char *algo, sft_span *value);

/* The media type of an image or video by its first bytes ("image/png", static); NULL if it is
 * not recognised. width and height may be NULL; they are 0 if unknown. @since 0.1 */
SFT_API const char *sft_info_image_type(sft_span bytes, uint32_t *width, uint32_t *height);

/* A component of a folder with a model_index.json: the name of its folder, and its facts.
 * @since 0.2 */
typedef struct sft_info_component {
    const char *name;
    const sft_set *set;
    const sft_info *info;
    const char *path;
} sft_info_component;

/* The facts of such a folder as one model of kind "pipeline": from its model_index.json, README
 * and components. path is that of model_index.json; folder as for sft_info_open. There is at
 * least one component; all must outlive the info. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_info_open_components(const sft_info_component *components,
                                                        size_t count, const char *path,
                                                        const sft_info_folder *folder,
                                                        const sft_info_options *options,
                                                        sft_info **out, sft_error *err);

/* Permission bits (sft_path_options.mode, sft_sink_limit_mode) for a file made of what the info
 * tells, so that nothing becomes readable that was not: those common to the model's files
 * (sft_set_output_mode), its components' and every file beside them that was read. 0600 if there
 * are none, 0 if none of them is a file. @since 0.3 */
SFT_API uint32_t sft_info_output_mode(const sft_info *info);

/* Whether two models are used together, one of them a checkpoint or another whole model, the other
 * an adapter, embedding, ControlNet, VAE or the like: by architecture, base model, prediction, the
 * file it was trained on, and the sizes of layers. @since 0.2 */
typedef enum sft_fit {
    SFT_FIT_NONE = 0, /* two models of kinds that are not used together */
    SFT_FIT_NO,
    SFT_FIT_UNKNOWN,
    SFT_FIT_LOADS,  /* it can be loaded, and was made for another base */
    SFT_FIT_LIKELY, /* nothing speaks against it, and not all is known */
    SFT_FIT_YES
} sft_fit;
/* "none", "no", "unknown", "loads", "likely", "yes"; NULL for a value outside the enum. Static.
 * @since 0.2 */
SFT_API const char *sft_fit_name(sft_fit fit);
/* Which of the two comes first does not matter. reason, if not NULL, takes the facts that decide,
 * cut at cap bytes with the NUL: text for people that may hold what the files hold. @since 0.2 */
SFT_API sft_fit sft_info_fits(const sft_info *a, const sft_info *b, char *reason, size_t cap);

/* Write the whole result object of `info --json` (docs/json-info.md): the facts of sft_set_json and
 * everything collected. full: do not cut metadata values at 4,096 bytes. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_info_json(const sft_info *info, const char *path,
                                             bool full, sft_sink *sink, sft_error *err);

/* The same as a tree, which must be empty; cut as for sft_sets_tree (sft_info_json uses 4,096,
 * or with full SFT_SIZE_UNKNOWN). Text is copied: the tree may outlive the info. After a failure
 * the tree can only be freed. @since 0.2 */
SFT_API SFT_NODISCARD sft_code sft_info_tree(const sft_info *info, const char *path,
                                             uint64_t cut, sft_tree *tree, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
