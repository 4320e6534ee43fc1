/* Merging models: which of their tensors belong together (rows.c), what is asked of each
 * (methods.c, settings.c), and the tensors of the result, computed as they are read (merged.c).
 *
 * All methods but one are sums of the inputs with factors. What a factor needs of a whole tensor
 * (norms, angles, thresholds) is found first, in passes over it by threads (passes.c), which add in
 * the same order whatever their number: factors from products of the inputs (mix.c), and masks of
 * differences to the base (sparse.c, select.c). Values are F64; the result is rounded once.
 * docs/merging.md has the formulas. */
#ifndef SFTI_MERGE_H
#define SFTI_MERGE_H

#include "base/json.h"
#include "base/mem.h"
#include "os/workers.h"
#include "safetensors_convert.h"
#include "safetensors_hash.h"
#include "safetensors_merge.h"
#include "safetensors_set.h"

#include <stdatomic.h>

#define SFTI_MERGE_MODELS 32

/* ── Methods and their parameters (methods.c) ── */

/* Names are mergekit's, but for alpha. */
typedef enum sfti_merge_param {
    SFTI_MERGE_WEIGHT, SFTI_MERGE_DENSITY, SFTI_MERGE_GAMMA, SFTI_MERGE_EPSILON, SFTI_MERGE_SCALE,
    SFTI_MERGE_EACH, /* those above may be told of each model */
    SFTI_MERGE_LAMBDA = SFTI_MERGE_EACH, SFTI_MERGE_NORMALIZE, SFTI_MERGE_RESCALE,
    SFTI_MERGE_INT8_MASK, SFTI_MERGE_T, SFTI_MERGE_FILTER_WISE, SFTI_MERGE_SELECT_TOPK,
    SFTI_MERGE_FLATTEN, SFTI_MERGE_ROW_WISE, SFTI_MERGE_NORMALIZE_WEIGHTS, SFTI_MERGE_EPS,
    SFTI_MERGE_MAX_ITER, SFTI_MERGE_TOL, SFTI_MERGE_ALPHA, SFTI_MERGE_PARAMS
} sfti_merge_param;

typedef enum sfti_merge_kind {
    SFTI_MERGE_LINEAR, SFTI_MERGE_TASK, SFTI_MERGE_ADD, SFTI_MERGE_PASS, SFTI_MERGE_SLERP,
    SFTI_MERGE_NUSLERP, SFTI_MERGE_MULTISLERP, SFTI_MERGE_KARCHER, SFTI_MERGE_STOCK,
    SFTI_MERGE_SPARSE, SFTI_MERGE_SCE, SFTI_MERGE_NEAR
} sfti_merge_kind;

/* Which differences are kept: all, the largest, random ones, the largest but for outliers, random
 * ones by rank. */
typedef enum sfti_merge_mask {
    SFTI_MASK_ALL, SFTI_MASK_LARGEST, SFTI_MASK_RANDOM, SFTI_MASK_INLIERS, SFTI_MASK_RANKED
} sfti_merge_mask;

typedef enum sfti_merge_base {
    SFTI_BASE_NONE,  /* there is none: all models are equals */
    SFTI_BASE_MAY,
    SFTI_BASE_MUST,
    SFTI_BASE_FIRST  /* the first of the models, where none is named */
} sfti_merge_base;

typedef struct sfti_merge_method {
    const char *name;
    uint8_t kind, mask, base;  /* of the enums above */
    bool signs;                /* of weighted differences, those of the lesser sum are left out */
    bool normalize, rescale;   /* by default */
    uint8_t least, most;       /* models beside the base; most 0: any number */
    uint32_t params;           /* a bit each */
} sfti_merge_method;

/* NULL: no such method; past the last. */
const sfti_merge_method *sfti_merge_method_of(sft_span name);
const sfti_merge_method *sfti_merge_method_at(size_t i);
/* SFT_BAD_ARGUMENT, with all methods and the nearest. */
sft_code sfti_merge_method_unknown(sft_span name, sft_error *err);
const char *sfti_merge_param_name(sfti_merge_param param);
/* SFTI_MERGE_PARAMS: no such parameter. */
sfti_merge_param sfti_merge_param_of(sft_span name);
/* "true" and "false", as 1 and 0, of those that are switches; a number of all others. */
bool sfti_merge_param_value(sfti_merge_param param, sft_span text, double *out);
bool sfti_merge_param_is_switch(sfti_merge_param param);

/* ── What was asked (settings.c) ── */

typedef enum sfti_merge_filter { SFTI_FILTER_NONE, SFTI_FILTER_PART, SFTI_FILTER_GLOB }
    sfti_merge_filter;

/* One value of a parameter, or several for the layers from the first to the last. */
typedef struct sfti_merge_setting {
    sfti_merge_param param;
    uint32_t model;   /* SFTI_MERGE_ALL: of all */
    uint32_t slice;   /* + 1; 0: of all */
    uint8_t filter;   /* names with this text in them, or that this pattern fits */
    sft_span text;
    const double *values;
    size_t count;
} sfti_merge_setting;

#define SFTI_MERGE_ALL UINT32_MAX
#define SFTI_MERGE_SETTINGS 1024
#define SFTI_MERGE_VALUES 1024 /* of one setting */

typedef struct sfti_merge_settings {
    sfti_merge_setting *items; /* the first that fits counts, those of a slice before all others,
                                  of each those of a model first */
    size_t count, capacity;
    bool (*glob)(sft_span pattern, sft_span text); /* of SFTI_FILTER_GLOB */
} sfti_merge_settings;

sft_code sfti_merge_setting_add(sfti_merge_settings *settings, sfti_arena *arena,
                                const sfti_merge_setting *setting, sft_error *err);
/* The value for a row of the result, of a model or of all, and for a tensor of this name; false:
 * none was told. */
struct sfti_merge_row;
bool sfti_merge_setting_find(const sfti_merge_settings *settings, sfti_merge_param param,
                             uint32_t model, const struct sfti_merge_row *row, sft_span name,
                             double *out);
/* "0.3", "[0, 0.5, 1]" or "0,0.5,1"; the values in the arena. SFT_BAD_ARGUMENT: it is none of
 * them. */
sft_code sfti_merge_values_read(sfti_merge_param param, sft_span text, sfti_arena *arena,
                                const double **values, size_t *count);

/* ── Recipes (recipe.c) ── */

typedef struct sfti_slice_source {
    uint32_t model;
    uint64_t first; /* layer */
} sfti_slice_source;

/* Layers of the result, from as many layers of each source. */
typedef struct sfti_merge_slice {
    uint64_t layers;
    sfti_slice_source *sources;
    size_t count;
} sfti_merge_slice;

#define SFTI_MERGE_SLICES 1024

/* A merge as it is told: by options, by a recipe, by the header of a result. */
typedef struct sfti_merge_recipe {
    const sfti_merge_method *method;
    size_t count;
    sft_span models[SFTI_MERGE_MODELS];  /* paths or names, the base among them */
    sft_span content[SFTI_MERGE_MODELS]; /* digests of those that were merged, or empty */
    sft_span sha256[SFTI_MERGE_MODELS];
    sft_span values[SFTI_MERGE_MODELS];  /* digests of what quantised ones stood for, or empty */
    size_t base;      /* number of a model; SIZE_MAX: it has none */
    size_t reference; /* the base, or the first; of add_difference the first */
    size_t dtype_of;
    sfti_merge_settings settings;
    sft_span dtype;   /* as it was told, or empty */
    uint64_t seed;
    sfti_merge_slice *slices; /* that it is put together of; NULL: layers as the models have them */
    size_t slice_count;
    bool ignore_missing, weights_required;
} sfti_merge_recipe;

#define SFTI_MERGE_RECIPE_MOST ((size_t)1 << 20) /* bytes */

/* Reads mergekit's YAML, or JSON of the same form, which sfti_merge_recipe_write writes. The text
 * must outlive the recipe. SFT_BAD_ARGUMENT names the line. */
sft_code sfti_merge_recipe_read(sft_span text, sfti_arena *arena, sfti_merge_recipe *out,
                                sft_error *err);
/* Once method, models and base (SIZE_MAX: none was named) are told: whether they go together. */
sft_code sfti_merge_recipe_settle(sfti_merge_recipe *recipe, sft_error *err);
/* names: of the models, as they are to be known. */
void sfti_merge_recipe_write(const sfti_merge_recipe *recipe, const sft_span *names,
                             sfti_json_writer *w);

/* Adds "density=0.5", "t=0,0.5,1" or "t@PATTERN=0.3" of the method's parameters. Those with a
 * pattern are to come before the others: which of the two are taken `patterns` says. */
sft_code sfti_merge_param_add(sfti_merge_recipe *recipe, sfti_arena *arena, const char *word,
                              bool patterns, sft_error *err);
/* The weight of a model, or of all that have none (SFTI_MERGE_ALL). */
sft_code sfti_merge_weight_add(sfti_merge_recipe *recipe, sfti_arena *arena, uint32_t model,
                               const char *text, sft_error *err);

/* ── The header of a result (record.c) ── */

#define SFTI_MERGE_KEY "sft_merge"
#define SFTI_MERGE_FROM_KEY "modelspec.merged_from"
#define SFTI_MERGE_MODELS_KEY "sd_merge_models"
#define SFTI_MERGE_RECIPE_KEY "sd_merge_recipe"
#define SFTI_MERGE_PAIRS 4

typedef struct sfti_merge_origin {
    const sft_set *stored;
    sft_span name;
    const char *content, *sha256, *autov1; /* digests, or NULL */
} sfti_merge_origin;

typedef struct sfti_merge_record {
    sft_pair pairs[SFTI_MERGE_PAIRS];
    sft_buffer texts[SFTI_MERGE_PAIRS];
} sfti_merge_record;

/* What a model is called: its file, or the folder of a model.safetensors. */
sft_span sfti_merge_called(const char *path);
/* The name, with a number where it is one of `count` others. */
sft_code sfti_merge_name(sft_span name, const sft_span *names, size_t count, sfti_arena *arena,
                         sft_span *out, sft_error *err);

/* origins: of the recipe's models, whose digests it has. Free it, after a failure, too. */
sft_code sfti_merge_record_make(const sfti_merge_recipe *recipe, const sfti_merge_origin *origins,
                                sfti_arena *arena, sfti_merge_record *out, sft_error *err);
void sfti_merge_record_free(sfti_merge_record *record);
/* Writes the header again, with a record as long as the one before it. */
sft_code sfti_merge_record_put(const sfti_merge_record *before, const sfti_merge_record *now,
                               const sft_part *parts, size_t count, const sft_pair *pairs,
                               size_t pair_count, const sft_plan_options *plan,
                               const sft_sink *sink, sfti_arena *arena, sft_error *err);

/* ── Models (model.c) ── */

typedef struct sfti_merge_model {
    const sft_set *set;
    const uint8_t *computed; /* of each tensor: a quantised one, whose values these are; or NULL */
    const sft_set *stored;   /* as it is in its files, with its own names */
    struct sfti_merge_seen *seen; /* what its files were when it was opened */
} sfti_merge_model;

/* What the files of a set are now; in the arena. */
struct sfti_merge_seen *sfti_merge_look(const sft_set *set, sfti_arena *arena);
/* Whether the model has these files, all of this system, and nothing was written to them since. */
bool sfti_merge_seen_again(const struct sfti_merge_seen *was, size_t shards,
                           const sfti_merge_model *model);

/* For a set whose quantised tensors are to be values: *set becomes one that has them, if there are
 * any; it takes over the other. computed: in the arena. stored: as it is in its files; NULL: *set.
 * On failure *set is NULL, and closed. */
sft_code sfti_merge_model_open(sft_set **set, const sft_set *stored, const char *path,
                               const sft_files *files, sfti_arena *arena, sfti_merge_model *out,
                               sft_error *err);

/* The digest of a quantised model's values, which hang on what declares them, too: into the arena.
 * One that is there must be the same, else SFT_TENSOR_NOT_FOUND. Nothing of other models. */
sft_code sfti_merge_values_hash(const sfti_merge_model *model, sfti_arena *arena,
                                const sft_job *job, sft_span *digest, sft_error *err);

/* Whether all its files are this system's. */
bool sfti_merge_is_local(const sfti_merge_model *model);

/* A set that reads another one, which must outlive it, so that it can be taken over. */
sft_code sfti_merge_model_lend(const sft_set *set, const sft_allocator *alloc, sft_set **out,
                               sft_error *err);
/* Once all are open: *set, of another layout than the reference, becomes one with its names, and
 * takes over the other. On failure *set is NULL, and closed. */
sft_code sfti_merge_model_rename(sft_set **set, const sft_set *reference, sfti_arena *arena,
                                 sfti_merge_model *model, sft_error *err);
/* SFT_IO_READ: a file of a model is not as it was when the model was opened, so that what was
 * read is of two states of it. *blame: which model. */
sft_code sfti_merge_models_check(const sfti_merge_model *models, size_t count, size_t *blame,
                                 sft_error *err);
/* A name that only metadata give to a tensor: an error if it is a tensor's own name in another
 * model, or, of an alpha, whose module has another one then, if a model lacks that record. */
sft_code sfti_merge_models_alike(const sfti_merge_model *models, size_t count, size_t *blame,
                                 sft_error *err);

/* ── Digests of the models (digests.c) ── */

typedef struct sfti_merge_hashing {
    sfti_workers workers;
    sfti_merge_origin *origins;
    size_t count, next, threads, blames;
    sft_hashes *hashes;
    sft_job job;
    atomic_bool stop;
    bool apart, started; /* in a thread of its own, which is to be joined */
    os_thread thread;
    sft_code code;
    sft_error err;
} sfti_merge_hashing;

/* Computes those that are not known yet, and puts all into the recipe. again: a replay's, which
 * must be those of the recipe, else SFT_IO_READ. *blame: the model that an error is about. */
sft_code sfti_merge_hash(const sfti_merge_model *models, sfti_merge_origin *origins,
                         sfti_merge_recipe *recipe, bool again, sfti_arena *arena,
                         const sft_job *job, size_t *blame, sft_error *err);
/* Begins that in a thread, while the recipe has digits in place of the digests. False: it is to be
 * done before, for there is one thread, a model is quantised or at a URL, or the record would be of
 * another length. Else it must be ended or stopped; nothing it was given may be touched till
 * then. */
bool sfti_merge_hash_meanwhile(sfti_merge_hashing *h, const sfti_merge_model *models,
                               sfti_merge_origin *origins, sfti_merge_recipe *recipe,
                               sfti_arena *arena, const sft_job *job);
sft_code sfti_merge_hash_end(sfti_merge_hashing *h, sfti_merge_recipe *recipe, size_t *blame,
                             sft_error *err);
void sfti_merge_hash_stop(sfti_merge_hashing *h);

/* ── A merge (merged.c) ── */

typedef struct sfti_merge_plan {
    const sfti_merge_method *method;
    const sfti_merge_model *models;
    size_t count;
    size_t base;               /* number of a model; SIZE_MAX: none */
    size_t reference;          /* that gives names, shapes and order */
    size_t dtype_of;           /* that gives dtypes where it has the tensor */
    const sfti_merge_settings *settings;
    const sfti_merge_slice *slices; /* or NULL */
    size_t slice_count;
    uint64_t seed;
    uint32_t dtype;            /* of all floats; SFT_DTYPE_COUNT: not told */
    bool ignore_missing, weights_required;
    uint32_t threads;          /* 0: one per processor */
    const sft_allocator *alloc;
} sfti_merge_plan;

/* The plan of a recipe that is settled; it must outlive the merge. */
sfti_merge_plan sfti_merge_plan_of(const sfti_merge_recipe *recipe, const sfti_merge_model *models,
                                   sft_dtype dtype, uint32_t threads, const sft_allocator *alloc);

typedef struct sfti_merged sfti_merged;

/* A tensor of the result. */
typedef struct sfti_merge_row {
    sft_spec spec;
    uint64_t begin;           /* in the source; SFTI_MERGE_COPIED: it is that of `from` as it is */
    uint64_t elements;
    uint64_t layer, layers;   /* 0 layers: it is in none */
    uint32_t from, tensor;    /* the model that gives its shape, and its number there */
    uint32_t slice;           /* + 1; 0: none */
    uint64_t offset;          /* layers from the slice's first one */
    uint32_t *of;             /* numbers of the tensors of each model, or SFTI_MERGE_ALL */
    uint64_t counted;         /* elements, from the first on, of which `losses` tells */
    uint64_t losses[2];       /* computed values that were not 0, and that rounding made 0 */
    bool is_mixed;            /* of floats in `from`, of integers in another model: it is copied */
    bool is_alpha;            /* of factors of an adapter, the same in all models: it is copied */
} sfti_merge_row;

#define SFTI_MERGE_COPIED UINT64_MAX

/* What was done so that models fit. */
typedef struct sfti_merge_notes {
    size_t renamed;      /* found under another name than the reference's */
    size_t cut;          /* of unlike numbers of rows */
    sft_span cut_name;   /* the first, and its rows: least and most */
    uint64_t cut_rows[2];
    size_t missing, extra; /* not in all models; not in the reference */
    sft_span missing_name, extra_name;
    size_t unlike;       /* small tensors, of integers in some model, that are not the same */
    sft_span unlike_name;
} sfti_merge_notes;

/* Plans a merge; the models must outlive it. Tensors of other kinds than floats are copied from the
 * reference. Reads nothing but integers that are compared. SFT_TENSOR_NOT_FOUND: a model lacks a
 * tensor. SFT_SIZE_MISMATCH: shapes differ. SFT_CAST_DTYPE: one cannot be merged. SFT_BAD_ARGUMENT:
 * a parameter. *blame: the model that the error is about, or SIZE_MAX. */
sft_code sfti_merged_new(const sfti_merge_plan *plan, sfti_merged **out, size_t *blame,
                         sft_error *err);
void sfti_merged_free(sfti_merged *merged);
size_t sfti_merged_count(const sfti_merged *merged);
const sfti_merge_row *sfti_merged_row(const sfti_merged *merged, size_t i);
/* Tensor i as it is to be written: computed, or a copy from a shard of a model. */
sft_part sfti_merged_part(const sfti_merged *merged, size_t i);
/* How many are computed. */
size_t sfti_merged_computed(const sfti_merged *merged);
const sfti_merge_notes *sfti_merged_notes(const sfti_merged *merged);
/* All tensors of the result, computed as they are read: best in order. Memory: 2 MiB, with masks
 * 1 MiB more for each model and thread, of long rows 8 bytes for each element, model and thread;
 * 48 MiB at most, for otherwise threads are fewer, or rows too long (SFT_ADDRESS_SPACE). One thread
 * at a time. */
const sft_source *sfti_merged_source(sfti_merged *merged);
/* The model that the last error of the source is about, or SIZE_MAX. */
size_t sfti_merged_blames(const sfti_merged *merged);

/* ── Which mixture a model is (estimate.c) ── */

typedef struct sfti_mixture {
    sfti_arena arena;
    size_t models;
    sft_mixture_block *blocks; /* the last is of all */
    size_t count;
    size_t left_out; /* tensors that not all have */
} sfti_mixture;

/* Estimates by least squares which sum of `count` models another one is, in each block and overall.
 * Free with sfti_mixture_free, after a failure too. */
sft_code sfti_mixture_new(const sfti_merge_model *result, const sfti_merge_model *models,
                          size_t count, const sft_job *job, const sft_allocator *alloc,
                          sfti_mixture *out, size_t *blame, sft_error *err);
void sfti_mixture_free(sfti_mixture *mixture);

#endif
