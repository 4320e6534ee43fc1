/* What a model says itself of how its tensors are quantised: ComfyUI's "NAME.comfy_quant" tensors
 * and metadata key "_quantization_metadata", and the quantization_config of transformers, in
 * config.json or in the metadata. It counts before names and shapes do. */
#ifndef SFTI_DECLARED_H
#define SFTI_DECLARED_H

#include "base/mem.h"
#include "base/names.h"
#include "quant/beside.h"
#include "quant/layouts.h"
#include "safetensors_set.h"

#include <string.h>

static inline bool sfti_name_ends(sft_span name, const char *end) {
    size_t len = strlen(end);
    return name.len >= len && memcmp(name.data + name.len - len, end, len) == 0;
}

/* What may share a scale, a bit each. */
enum { SFTI_SHARE_ALL = 1, SFTI_SHARE_ROW = 2, SFTI_SHARE_GROUP = 4, SFTI_SHARE_BLOCK = 8 };

/* A format as ComfyUI spells it. */
typedef struct sfti_declared_format {
    sft_span name;    /* "float8_e4m3fn"; empty: none is told */
    sft_span unknown; /* what is told besides and may change values; empty: nothing */
    uint64_t group, rotated; /* sizes of groups; 0: nothing is told */
    uint64_t shape[2];       /* before padding; 0: nothing is told */
    bool rotates, rotates_not;
    uint32_t shares; /* 0: not told */
} sfti_declared_format;

/* Tensors NAME.weight, NAME.weight_scale, ... */
typedef struct sfti_declared_layer {
    sft_span name;
    const sft_tensor *weight; /* NULL: there is none */
    const sft_tensor *marker; /* NAME.comfy_quant, or NULL */
    const sft_file *file;     /* that the marker is in */
    size_t tensors;           /* of it */
    bool told;                /* by the metadata, in `format` */
    bool twice;               /* there, in two ways */
    bool taken;               /* its values are computed, so that its declaration ends */
    sfti_declared_format format;
} sfti_declared_layer;

/* What a quantization_config tells of some modules (scopes.c); members as of sfti_declared. */
typedef struct sfti_declared_target sfti_declared_target;
typedef struct sfti_declared_scope {
    sfti_declared_target *targets; /* "re:.*_proj", "Linear" or a module's name */
    size_t count;                  /* of them; of an ordered list none: all modules */
    uint32_t widths, kinds, shares;
    uint64_t group, blocks[2];
    bool asymmetric, disordered;
    bool strategy; /* it is what `shares` is told by */
    bool excludes; /* their weights are not quantised */
    bool meant;    /* may be that of the module last looked for */
} sfti_declared_scope;

typedef struct sfti_scopes_matching {
    sfti_arena *arena;
    uint64_t work, memory; /* that it may still take; memory 0: no more expressions are read */
    sft_span module; /* the last looked for; no data: none */
    bool sure;       /* a scope is that module's for certain */
} sfti_scopes_matching;

/* MLX's object: sizes of all layers, 0 where none is told, and those of single ones. */
typedef struct sfti_mlx_layer {
    sft_span name;
    uint64_t sizes[2]; /* bits, group_size */
    const char *why;   /* it has none */
} sfti_mlx_layer;
typedef struct sfti_mlx {
    sfti_mlx_layer *layers;
    size_t count;
    sfti_names names;
    uint64_t sizes[2];
    const char *why; /* the object tells none */
} sfti_mlx;

typedef struct sfti_declared {
    sfti_layouts layouts;
    sfti_declared_layer *layers;
    size_t count;
    sfti_names names;
    sft_span method;  /* of a quantization_config; empty: nothing is told */
    uint64_t allowed; /* bits of layouts that it stores */
    uint32_t widths;  /* bits of the numbers of bits that it tells */
    uint32_t shares;  /* 0: not told */
    uint32_t kinds;   /* of codes: a bit each of sft_kind; 0: not told */
    uint64_t group;   /* columns that share a number; 0: not told, or several */
    uint64_t blocks[2]; /* rows and columns that share a number; 0: not told, or several */
    bool disordered;  /* groups of columns may be in any order */
    bool asymmetric;  /* integers have zero points */
    sft_span *plain;      /* names of modules that it leaves as they were */
    size_t plain_count;
    sfti_names plain_names;
    sft_span told;    /* objects of files as they stand, one behind another; empty: none */
    sft_span object;  /* MLX's; no data: there is none */
    sfti_mlx mlx;
    sft_span stray;   /* a layer that it names and there is not; empty: none */
    sfti_declared_scope *scopes;
    size_t scope_count;
    sfti_scopes_matching *matching; /* of scopes */
    bool ordered;     /* the first that a module is in counts */
} sfti_declared;

/* values: they are to be computed, and a declaration that cannot be read, or of a method that is
 * not known, is an error; else only the layers are found. files: as in sft_open_options. */
sft_code sfti_declared_read(const sft_set *set, bool values, const sft_files *files,
                            sfti_arena *arena, sfti_declared *out, sft_error *err);
/* The layer that a tensor of this name is in, or NULL; *leaf (may be NULL): the rest of its
 * name. */
sfti_declared_layer *sfti_declared_of(const sfti_declared *declared, sft_span tensor,
                                      sft_span *leaf);
/* The format of a layer, from wherever it is told, and its layout. SFT_CAST_DTYPE: it is not known,
 * or is told in two ways. */
sft_code sfti_declared_find(const sfti_declared *declared, const sfti_declared_layer *layer,
                            sfti_arena *arena, sfti_declared_format *out,
                            const sfti_quant_layout **layout, sft_error *err);
/* A value of SFTI_DECLARED_KEY without the layers that are taken, and then also without those that
 * are not there unless `lost` stay; *out empty: none is left. False when out of memory. */
bool sfti_declared_rest(const sfti_declared *declared, const sft_set *set, sft_span value,
                        bool lost, sfti_arena *arena, sft_span *out);

/* ── torchao (torchao.c) ── */

/* Whether the metadata name a class for tensor i, "M._weight_qdata": the name "M.weight" of the
 * whole, and the object that tells its class. */
bool sfti_declared_torchao(const sft_set *set, size_t i, sfti_arena *arena, sft_span *name,
                           sft_span *object);
/* Whether the object is that of the layout. */
bool sfti_torchao_has(const sfti_quant_layout *layout, sft_span object, sfti_arena *arena);

/* ── Some modules' own (scopes.c) ── */

/* Those of config_groups, unless there is only one, and of "dynamic", whose entries change what
 * `all` tells. False when out of memory. */
bool sfti_scopes_groups(sfti_declared *d, sft_span groups, sfti_arena *arena);
bool sfti_scopes_dynamic(sfti_declared *d, sft_span dynamic, const sfti_declared_scope *all,
                         sfti_arena *arena);
/* The name of a tensor's module. */
sft_span sfti_declared_module(sft_span tensor);
/* Marks those that may be a tensor's module's, as `meant`: of an ordered list the first that
 * matches, and those before it that may; else those that match by name, by expression, or may by
 * class; else all. Those that exclude it only where nothing else may be meant: its tensors are
 * there. There are some scopes. SFT_CAST_DTYPE: it takes too long. */
sft_code sfti_scopes_choose(const sfti_declared *declared, sft_span tensor, sft_error *err);
/* Whether two declarations have the same ones. */
bool sfti_scopes_alike(const sfti_declared *a, const sfti_declared *b);
/* The one size of groups of columns that those tell that are meant and make `numbers` of them; or
 * 0. */
uint64_t sfti_scopes_group(const sfti_declared *declared, uint64_t columns, uint64_t numbers);

/* ── quantization_config (method.c) ── */

/* The bits, 1 to 8, and the group size (0: none is told) of a layer by MLX's object. NULL, or what
 * is told of it instead. */
const char *sfti_declared_mlx(const sfti_declared *declared, sft_span layer, sfti_arena *arena,
                              uint64_t *bits, uint64_t *group);
/* Whether the object names the module that "M.weight" is of as one that is not quantised. Patterns
 * are not looked at. */
bool sfti_declared_plain(const sfti_declared *declared, sft_span weight);
/* What files beside a model at that path say. */
sft_code sfti_declared_files(const char *path, const sft_files *files, sfti_arena *arena,
                             sfti_declared *out, sft_error *err);
/* Beside the model, and in its metadata. */
sft_code sfti_declared_config(const sft_set *set, const sft_files *files, sfti_arena *arena,
                              sfti_declared *out, sft_error *err);

#endif
