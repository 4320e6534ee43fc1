/* Models in another layout: folders of diffusers, single files, folders of ComfyUI's models.
 * docs/layouts.md says what is known of which models.
 *
 * EXPERIMENTAL: may change incompatibly in any release (docs/abi.md). SFT_EXPERIMENTAL_LAYOUT is
 * defined while that is so.
 *
 * Conventions as in safetensors.h. */
#ifndef SFT_SAFETENSORS_LAYOUT_H
#define SFT_SAFETENSORS_LAYOUT_H

#include "safetensors.h"
#ifndef SFT_SAFETENSORS_H
#error "the safetensors.h found first is another library's: put libsafetensors' folder before it"
#endif
#include "safetensors_set.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SFT_EXPERIMENTAL_LAYOUT 1

/* @since 0.3 */
typedef enum sft_layout {
    SFT_LAYOUT_DIFFUSERS = 0, /* a folder for each component, config.json, model_index.json */
    SFT_LAYOUT_SINGLE = 1,    /* one file, with prefixes if it has several components */
    SFT_LAYOUT_COMFY = 2      /* a file for each component: vae/vae.safetensors */
} sft_layout;

/* @since 0.3 */
typedef struct sft_layout_options {
    size_t size;
    uint32_t to;              /* sft_layout */
    const char *architecture; /* the model's id; NULL: as its header and tensors tell */
    bool ignore_unmatched;    /* leave out tensors whose place is not known */
    uint64_t max_bytes;       /* of a shard of diffusers' folders; 0: 10 GB */
    const struct sft_records *records; /* safetensors_info.h; NULL: what comes with the library */
    const sft_files *files;   /* as in sft_open_options, for JSON files beside the model */
    const sft_allocator *alloc; /* NULL = libc */
} sft_layout_options;

#define SFT_LAYOUT_OPTIONS_INIT \
    { sizeof(sft_layout_options), SFT_LAYOUT_DIFFUSERS, NULL, false, 0, NULL, NULL, NULL }

/* A model on its way to another layout. Immutable but for what its last error is about: one thread
 * at a time. @since 0.3 */
typedef struct sft_layout_conversion sft_layout_conversion;

/* Plan the conversion of one model: of one set, or of the components of a folder of diffusers or
 * ComfyUI, each a set. The sets must outlive the conversion; what diffusers calls a component is
 * told by its tensors, and by the folder in its path. Reads headers, and of a folder of diffusers
 * the JSON files beside it that can be read; no data. Linear in tensors times rules. *blames, which
 * may be NULL, becomes the set that an error is about; SIZE_MAX: none.
 *
 * SFT_BAD_ARGUMENT: no sets, a layout or an architecture that is not known, more than 32
 * components. SFT_TENSOR_NOT_FOUND: a model whose layouts are not known, or that may be one of
 * several. SFT_SIZE_MISMATCH, SFT_INCOMPLETE, SFT_TENSOR_DUPLICATE, SFT_EXISTS, SFT_CAST_DTYPE:
 * tensors, components or metadata that do not go together. Free with sft_layout_conversion_free.
 * @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_layout_conversion_new(const sft_set *const *sets, size_t count,
                                                         const sft_layout_options *options,
                                                         sft_layout_conversion **out,
                                                         size_t *blames, sft_error *err);
/* NULL is ignored. @since 0.3 */
SFT_API void sft_layout_conversion_free(sft_layout_conversion *conversion);

/* Allocated by the library only; members may be appended. @since 0.3 */
typedef struct sft_layout_facts {
    sft_span architecture; /* whose layouts were used; empty: none is known */
    sft_span pipeline;     /* its class in diffusers; likewise */
    size_t left_out;       /* tensors that only training needs */
    size_t unmatched;      /* tensors whose place is not known */
    sft_span index;        /* the text of model_index.json; empty: there will be none */
} sft_layout_facts;

/* Lives as long as the conversion; NULL of NULL. @since 0.3 */
SFT_API const sft_layout_facts *sft_layout_conversion_told(const sft_layout_conversion *conversion);
/* Tensor i of those whose place is not known, by its name in the model; empty past the last. *set,
 * which may be NULL, becomes the number of its set. O(1). @since 0.3 */
SFT_API sft_span sft_layout_conversion_unmatched_at(const sft_layout_conversion *conversion,
                                                    size_t i, size_t *set);

/* Allocated by the library only; members may be appended. @since 0.3 */
typedef struct sft_layout_component {
    sft_span name;    /* "unet", "text_encoder_2": its folder in diffusers' layout */
    sft_span layout;  /* the part of data/layouts whose rules it follows */
    bool diffusers;   /* the layout that it is in now: diffusers', or that of single files */
    size_t set;       /* which it stands in */
    size_t tensors_before, tensors; /* in the model, and in the result */
    size_t kept;      /* of the result: diffusers has no place for them, but the way back needs
                         them */
    sft_span config;  /* the text of config.json; empty: not all of it is certain, or the layout has
                         none */
} sft_layout_component;

/* Components that are known. NULL past the last. They live as long as the conversion. @since 0.3 */
SFT_API size_t sft_layout_conversion_components(const sft_layout_conversion *conversion);
SFT_API const sft_layout_component *sft_layout_conversion_component_at(
    const sft_layout_conversion *conversion, size_t i);

/* A sentence for the user: what the other layout has no place for (*lost becomes true), or what a
 * pipeline needs besides. Empty past the last. lost may be NULL. It lives as long as the
 * conversion. @since 0.3 */
SFT_API sft_span sft_layout_conversion_note_at(const sft_layout_conversion *conversion, size_t i,
                                               bool *lost);

/* A file of the folder. Allocated by the library only; members may be appended. @since 0.3 */
typedef struct sft_layout_file {
    const char *path; /* in the folder, with '/': "vae/config.json" */
    size_t tensors;   /* 0: it is JSON */
    uint64_t bytes;   /* of its tensors, or its text */
} sft_layout_file;

/* The files that are to be written, but for the indexes of shards; of SFT_LAYOUT_SINGLE none. NULL
 * past the last. They live as long as the conversion. @since 0.3 */
SFT_API const sft_layout_file *sft_layout_conversion_file_at(
    const sft_layout_conversion *conversion, size_t i);
/* All tensors of the result, component by component, without what is unmatched. Metadata: those of
 * all files, of a key in several the first, without digests. *count becomes their number; 0 and
 * NULL of NULL. They live as long as the conversion, and are read by one thread at a time.
 * @since 0.3 */
SFT_API const sft_part *sft_layout_conversion_parts(const sft_layout_conversion *conversion,
                                                    size_t *count);
SFT_API const sft_pair *sft_layout_conversion_pairs(const sft_layout_conversion *conversion,
                                                    size_t *count);

/* Write one file; the sink is finished, or abandoned on failure. job may be NULL; it is ticked with
 * bytes of tensors. What is only renamed is copied by the system; a matrix to be transposed is read
 * whole. SFT_TENSOR_NOT_FOUND: something is unmatched, and options do not ignore it.
 * SFT_BAD_ARGUMENT: of a layout of folders. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_layout_conversion_save(sft_layout_conversion *conversion,
                                                          sft_sink sink, const sft_job *job,
                                                          sft_error *err);
/* Write a folder, which must be new or empty (SFT_EXISTS), component by component, and last
 * model_index.json, which marks it as complete. On failure all that was written is removed; a
 * process that is killed may leave components. Of the options no_sync, in_place_unsafe, mtimes_ns
 * (one time, of every file) and mode are used, whose 0 means: readable by those who may read all of
 * the model. NULL: the defaults.
 * Otherwise as sft_layout_conversion_save. SFT_BAD_ARGUMENT: of a single file. @since 0.3 */
SFT_API SFT_NODISCARD sft_code sft_layout_conversion_save_folder(
    sft_layout_conversion *conversion, const char *folder, const sft_save_set_options *options,
    const sft_job *job, sft_error *err);

#ifdef __cplusplus
}
#endif
#endif
