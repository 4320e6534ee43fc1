/* Adapters (LoRA and the like): what their tensors are (read.c, config.c), which tensors of a model
 * each module changes (map.c, names.c), and the changed tensors (delta.c, rotate.c, patched.c).
 *
 * A module is all that an adapter has for one layer. Matrices are seen flat: a tensor of rank 2 and
 * more is [its first dimension, the product of all others]. */
#ifndef SFTI_ADAPTER_H
#define SFTI_ADAPTER_H

#include "base/mem.h"
#include "keys/digest_keys.h"
#include "label/tensors/adapters.h"
#include "layout/layout.h"
#include "safetensors_set.h"

/* What PEFT's adapter_config.json, or diffusers' "lora_adapter_metadata", says. */
typedef struct sfti_lora_pattern {
    sft_span name;
    double alpha;
} sfti_lora_pattern;

typedef struct sfti_lora_alpha {
    double value;
    bool told, none; /* it is a number; it is null */
} sfti_lora_alpha;

typedef struct sfti_lora_config {
    sft_span prefix; /* modules that begin so, with a dot behind it; empty: all */
    bool beside;     /* of adapter_config.json, not of metadata */
    bool rslora, fan_in_fan_out, dora, ranks; /* ranks: there is a "rank_pattern" */
    bool has_rank; /* there is an "r" */
    uint64_t rank; /* 0: not told */
    sfti_adapter_type type; /* SFTI_ADAPTER_TYPES: not told */
    sft_span unlike;    /* the member that makes it a method whose tensors look like another's */
    bool cayley;        /* OFT: the exact rotation rather than a series */
    uint64_t terms;     /* of the series */
    sfti_lora_alpha alphas[2]; /* "lora_alpha" and "alpha", of which the method reads one */
    sfti_lora_pattern *patterns;
    size_t pattern_count, pattern_capacity;
    sft_span *inputs;  /* (IA)³: ends of the names of modules whose factors are of inputs */
    size_t input_count, input_capacity;
    bool tells_inputs; /* those are all of them */
    size_t dotted; /* patterns with a dot, which stands for any character */
    sfti_names names; /* of the patterns */
} sfti_lora_config;

#define SFTI_LORA_CONFIGS 8

typedef struct sfti_lora_module {
    sft_span name;             /* of its tensors, without what tells them apart */
    uint32_t slot[SFTI_SLOTS]; /* number of the tensor in the set + 1, by sfti_adapter_slot */
    sfti_adapter_type type;    /* FULL: of DIFF and DIFF_BIAS alone */
    uint64_t rank;             /* 0: it has none */
    uint64_t out, in;          /* of the layer, flat; 0: not to be seen */
    uint64_t kernel;           /* columns for each input channel, where a core tells; else 1 */
    double alpha, scale;       /* what the product is multiplied with; 0: no effect */
    bool has_alpha, tucker;
    uint32_t targets;          /* the first of them + 1, in the map */
    uint32_t codes;            /* of a layer without weights: a tensor that may be codes, + 1 */
} sfti_lora_module;

/* A tensor of the base model in the adapter: of a layer that a module changes. */
typedef struct sfti_lora_base {
    uint32_t tensor, module;
    bool bias;
} sfti_lora_base;

typedef struct sfti_lora {
    sfti_arena arena;
    const sft_set *set;        /* what was opened, or `named` */
    sft_set *named;            /* that with other names of tensors as tensors; NULL: it has none */
    sfti_lora_module *modules; /* in the order of their first tensors */
    size_t count;
    sfti_lora_base *bases;
    size_t base_count;
    uint32_t *unread; /* all other tensors, that nothing is computed from */
    size_t unread_count;
    sfti_lora_config configs[SFTI_LORA_CONFIGS];
    size_t config_count;
    bool describes; /* set before opening: components are not checked */
} sfti_lora;

/* Reads all names, shapes and alphas. config: the text of adapter_config.json, or empty. The set
 * must outlive it. Errors name the tensor. Free with sfti_lora_close, after a failure too. */
sft_code sfti_lora_open(const sft_set *set, sft_span config, sfti_lora *out, sft_error *err);
void sfti_lora_close(sfti_lora *lora);
/* What was said, without the hints of codes that are about single files. */
sft_code sfti_lora_told(sft_code code, sft_error *err);
/* A failure, with what to try next. */
sft_code sfti_lora_hint(sft_code code, sft_hint hint, sft_error *err);
/* The modules by their names. */
sft_code sfti_lora_names(const sfti_lora *lora, sfti_arena *arena, sfti_names *out,
                         sft_error *err);
/* Refuses factors that are codes of other values. */
sft_code sfti_lora_check_codes(const sfti_lora *lora, sft_error *err);
/* Refuses a module of which a configuration tells another method or rank than its tensors. */
sft_code sfti_lora_alike(const sfti_lora *lora, const sfti_lora_module *m, sft_error *err);
/* Whether both factors of a LoKr are whole, and PEFT's configuration tells their scale. */
bool sfti_lora_is_whole(const sfti_lora *lora, const sfti_lora_module *m);
/* "lora", "loha", … */
const char *sfti_lora_method(const sfti_lora *lora, const sfti_lora_module *module);
/* The tensor in that slot, or NULL. */
const sft_tensor *sfti_lora_tensor(const sfti_lora *lora, const sfti_lora_module *module,
                                   sfti_adapter_slot slot);
/* The first of its tensors but alpha. */
const sft_tensor *sfti_lora_first(const sfti_lora *lora, const sfti_lora_module *module);
/* Frobenius norm of what a module adds at strength 1, without the product being formed where its
 * factors are small. -1: it depends on the model's weight, adds nothing to one, takes too long, or
 * is no finite number. */
sft_code sfti_lora_norm(const sfti_lora *lora, const sfti_lora_module *module, double *out,
                        sft_error *err);

/* ── Configuration (config.c) ── */

/* Adds what the text, a JSON object, says. by_component: keys are "transformer.lora_alpha". */
sft_code sfti_lora_config_read(sfti_lora *lora, sft_span text, bool by_component, sft_error *err);
/* Refuses one that `count` modules would be compared with for too long. */
sft_code sfti_lora_config_work(const sfti_lora *lora, size_t count, sft_error *err);
/* Whether a configuration is about a module. Those that are about one agree. */
bool sfti_lora_config_covers(const sfti_lora_config *config, sft_span module);
/* Refuses metadata of which no component has a module, and that would change the modules. */
sft_code sfti_lora_check_components(const sfti_lora *lora, sft_error *err);
/* The configuration of a module, or NULL. */
const sfti_lora_config *sfti_lora_config_of(const sfti_lora *lora, sft_span module);
/* Whether factors of a module by (IA)³ are of its inputs, by its configuration; -1: not told. */
int sfti_lora_on_inputs(const sfti_lora *lora, sft_span module);
/* Alpha of a module by its configuration, which is PEFT's default if it tells the method and no
 * alpha; false if it tells neither. */
bool sfti_lora_config_alpha(const sfti_lora_config *config, sft_span module, double *out);

/* ── Conversion (convert_names.c) ── */

/* Fails: neither the adapter (or NULL) nor a model tells which layouts. more: the end of the
 * message. */
sft_code sfti_lora_no_model(const sft_set *adapter, const char *more, sft_error *err);

/* ── Files (open.c) ── */

/* Saves at the level where whatever could be read can be written; the sink is finished or
 * abandoned. */
sft_code sfti_lora_save(const sft_part *parts, size_t count, const sft_pair *pairs,
                        size_t pair_count, const sft_allocator *alloc, sft_sink sink,
                        const sft_job *job, sft_error *err);
/* The same as the options of a plan. */
sft_plan_options sfti_lora_plan(const sft_allocator *alloc);

/* ── Matrices in memory (factors.c) ── */

typedef struct sfti_matrix {
    uint64_t rows, cols;
    float *at; /* row by row; NULL: there is none */
} sfti_matrix;

#define SFTI_LORA_ELEMENTS (UINT64_C(1) << 28) /* of one matrix in memory, at most */

/* Rows and columns of a tensor, flat; those of embeddings' factors, which are stored the other way,
 * exchanged. False: it has no elements. */
bool sfti_lora_shape(const sft_tensor *tensor, uint64_t *rows, uint64_t *cols);
/* Bytes of an element as it is read: those of F32, or of the tensor's dtype. */
uint64_t sfti_lora_width(const sft_tensor *tensor);
/* count elements of a tensor, from `first` on, as F32; values that the tensor's are rounded from
 * are read instead. file: of the set, with the tensor. raw: count * sfti_lora_width bytes. */
sft_code sfti_lora_elements(const sft_set *set, const sft_file *file, const sft_tensor *tensor,
                            uint64_t first, uint64_t count, uint8_t *raw, float *into,
                            sft_error *err);
/* The same, of finite values. SFT_CAST_VALUE: NaN or an infinity. */
sft_code sfti_lora_read(const sft_set *set, const sft_tensor *tensor, uint64_t first,
                        uint64_t count, float *into, sft_error *err);
/* Between F32 in the order of files, as casts have them, and in the host's. */
void sfti_floats_turn(float *values, uint64_t count);
/* The bits of the greatest magnitude, NaN being above all. */
uint32_t sfti_floats_greatest(const float *values, uint64_t count);
/* A whole tensor as sfti_lora_shape has it. */
sft_code sfti_lora_load(const sft_set *set, const sft_tensor *tensor, sfti_arena *arena,
                        sfti_matrix *out, sft_error *err);
/* Its values are not set. SFT_ADDRESS_SPACE: more than SFTI_LORA_ELEMENTS. */
sft_code sfti_matrix_take(sfti_arena *arena, uint64_t rows, uint64_t cols, sfti_matrix *out,
                          sft_error *err);
/* Zeros. */
sft_code sfti_matrix_new(sfti_arena *arena, uint64_t rows, uint64_t cols, sfti_matrix *out,
                         sft_error *err);
/* into[rows, cols] += factor * (a[rows, inner] * b[inner, cols]); each element is a sum in order,
 * added once. Rows of `a` are `stride` apart. Results are the same on every processor. */
void sfti_matrix_add_product(const float *a, uint64_t stride, const float *b, uint64_t rows,
                             uint64_t inner, uint64_t cols, float factor, float *into);

/* ── Which tensors of a model (map.c, names.c, stored.c) ── */

/* Rows of a module's change that go to rows of a tensor. */
typedef struct sfti_lora_target {
    uint32_t next;   /* the module's next one + 1 */
    uint32_t module;
    uint32_t tensor; /* of the model */
    uint64_t row, from, rows; /* [row, row + rows) of the tensor is [from, from + rows) */
    bool bias;       /* the module's bias, not its matrix */
    bool turned;     /* the tensor is stored the other way round, where its shape fits so */
    bool transposed; /* the tensor is the transpose of the layer that has these rows */
} sfti_lora_target;

typedef struct sfti_lora_map {
    sfti_lora_target *targets;
    size_t count, capacity;
    size_t matched; /* modules */
} sfti_lora_map;

/* Fills the map, in the adapter's arena: each tensor of the model is asked which modules' names
 * may mean it. An error if one module means two tensors, two modules mean one, or one does not
 * fit. */
sft_code sfti_lora_map_model(sfti_lora *lora, const sft_set *model, sfti_lora_map *out,
                             sft_error *err);

/* The part of a model that a module is of, by how its name begins; the only text encoder is the
 * first one. */
sfti_part sfti_lora_part(sft_span name);

/* The name before the last dot: of the layer. */
sft_span sfti_lora_layer(sft_span name);

/* Whether a tensor has a row for each output, or for each input, as layers of GPT-2 and its kin do
 * (transformers' Conv1D, for which PEFT turns factors whatever its configuration says). */
typedef enum sfti_stored { SFTI_STORED_PLAIN, SFTI_STORED_TURNED, SFTI_STORED_UNKNOWN } sfti_stored;
sfti_stored sfti_lora_stored(const sft_set *model, const sft_tensor *tensor);
/* Whether the last part of a layer's name is one of theirs. */
bool sfti_lora_is_conv1d(sft_span last_part);

/* One way that an adapter may name a tensor of a model, or rows of it. */
typedef struct sfti_lora_way {
    unsigned parts; /* bits of sfti_part */
    sft_span path;  /* the layer, with dots */
    bool transposed; /* the tensor is the transpose of the layer */
    uint64_t row, from, rows; /* rows 0: all */
} sfti_lora_way;

#define SFTI_LORA_WAYS 24
#define SFTI_LORA_NAME 512

typedef struct sfti_lora_ways {
    size_t count;
    sfti_lora_way ways[SFTI_LORA_WAYS];
    size_t used;
    char text[SFTI_LORA_NAME * 8];
} sfti_lora_ways;

/* The layouts of data/layouts, and which of diffusers' are a model's. */
typedef struct sfti_lora_naming {
    sfti_layout_text layouts;
    bool *diffusers; /* by beginning of names, then part */
    unsigned lone;   /* parts of an encoder in a file of its own */
} sfti_lora_naming;

sft_code sfti_lora_naming_open(sfti_arena *arena, const sft_set *model, sfti_lora_naming *out,
                               sft_error *err);
/* All of them of one tensor; none for biases, which go with their weights. */
void sfti_lora_ways_of(const sfti_lora_naming *naming, const sft_tensor *tensor,
                       sfti_lora_ways *out);

/* ── Tensors of the base model (carried.c, base.c) ── */

/* Finds them among those that are not read. */
sft_code sfti_lora_take_bases(sfti_lora *lora, sft_error *err);
/* Reads them, and the model's: refuses others than it has, of modules that are matched.
 * SFT_CAST_VALUE or SFT_SIZE_MISMATCH names the adapter's tensor. */
sft_code sfti_lora_check_bases(const sfti_lora *lora, const sfti_lora_map *map,
                               const sft_set *model, sft_error *err);
/* The same of tensor i of them, if the other adapter *has one of the same name. */
sft_code sfti_lora_same_bases(const sfti_lora *lora, const sfti_lora *before, size_t i, bool *has,
                              sft_error *err);

/* ── Strengths by block (blocks.c) ── */

/* The strength of each target of the map, in the adapter's arena, by what `text` says: numbers for
 * the blocks of a U-Net, or "PATTERN=NUMBER, ..." for tensors of the model (docs/adapters.md); each
 * is times the strength. SFT_BAD_ARGUMENT: it says neither, or nothing of this model. */
sft_code sfti_lora_blocks(sfti_lora *lora, const sfti_lora_map *map, const sft_set *model,
                          sft_span text, double strength, double **out, sft_error *err);

/* ── Rounding at random (stochastic.c) ── */

/* To multiples of a step: 2^(exponent - mantissa) of values in [2^exponent, 2^(exponent + 1)), and
 * of those below 2^least as of 2^least. */
typedef struct sfti_stochastic {
    uint64_t key;
    int mantissa, least;
    float greatest; /* what rounds beyond it is left to the cast */
} sfti_stochastic;

/* False: the dtype is F32, which is not rounded. F4 and I8 are those of quantised tensors. */
bool sfti_stochastic_begin(sfti_stochastic *how, uint64_t seed, sft_span tensor, sft_dtype dtype);
/* Elements [first, first + count) of the tensor. Each goes up or down with the probability that
 * keeps its mean, by the bits of a counter: the same on every machine, in any order. */
void sfti_stochastic_round(const sfti_stochastic *how, uint64_t first, float *values, size_t count);

/* ── Changed tensors (patched.c) ── */

typedef enum sfti_dora { SFTI_DORA_EXACT = 0, SFTI_DORA_COMFY } sfti_dora;

typedef struct sfti_patched_input {
    sfti_lora *lora;
    const sfti_lora_map *map;
    double strength;
    const double *strengths; /* of the map's targets, or NULL: that one for all */
} sfti_patched_input;

typedef struct sfti_patched_options {
    sfti_dora dora;
    bool stochastic;
    uint64_t seed;
    uint32_t threads; /* that compute ahead of who reads; at most one: none */
    sft_allocator alloc;
} sfti_patched_options;

typedef struct sfti_patched sfti_patched;

/* Plans the merge of adapters, in this order, into a model; both outlive it, and the inputs. Reads
 * no data but shapes. SFT_CAST_DTYPE names a tensor of the model that holds no floats, or a module
 * of a method that cannot be merged. */
sft_code sfti_patched_new(const sft_set *model, const sfti_patched_input *inputs, size_t count,
                          const sfti_patched_options *options, sfti_patched **out,
                          sft_error *err);
void sfti_patched_free(sfti_patched *merge);
/* How many tensors change. */
size_t sfti_patched_count(const sfti_patched *merge);
/* Whether tensor i of the model changes; then *begin is where its bytes begin in the source. */
bool sfti_patched_changes(const sfti_patched *merge, size_t i, uint64_t *begin);
/* All changed tensors. Read in order they are computed once, a block of rows at a time, in memory
 * for one module's matrices and 2 MiB, and as much for each thread; rotations of rows and
 * magnitudes by column need memory for the whole tensor as F32. One thread at a time. */
const sft_source *sfti_patched_source(sfti_patched *merge);
/* The adapter, by its number among the inputs, whose tensor the last error names; SIZE_MAX: it is
 * the model's. */
size_t sfti_patched_blames(const sfti_patched *merge);
/* In tensors of at most 8 bits read so far: values that adapters changed, and how many of
 * these were rounded to what they had been. */
void sfti_patched_lost(const sfti_patched *merge, uint64_t *changed, uint64_t *lost);

/* ── One module's change of one tensor (delta.c, rotate.c) ── */

typedef struct sfti_lora_op {
    const sfti_lora_module *module;
    const sfti_lora *lora;
    const sft_tensor *tensor; /* of the model */
    sfti_dora dora;
    double strength;
    bool bias, turned, transposed; /* as in sfti_lora_target */
    uint64_t row, from, rows;
    uint64_t cols;            /* of the tensor, or of the layer that is transposed */
    uint64_t channels, kernel; /* of its columns */
    sfti_matrix a, b, c, d;   /* by method */
    sfti_matrix magnitude;
    bool by_column;           /* the magnitude is of columns */
    bool old_glora;
    double scale;
} sfti_lora_op;

/* Whether all rows of the tensor are needed at once. */
bool sfti_lora_needs_all(const sfti_lora *lora, const sfti_lora_module *module, bool bias);
/* Whether applying it takes no memory, and reads nothing. */
bool sfti_lora_is_light(const sfti_lora_module *module, bool bias);
/* Loads the matrices. */
sft_code sfti_lora_op_open(sfti_lora_op *op, sfti_arena *arena, sft_error *err);
/* Factors of w1 or w2 of LoKr, a core put in; b->at is NULL: a is all of it. */
sft_code sfti_lora_kron(const sfti_lora_op *op, bool second, sfti_arena *arena, sfti_matrix *a,
                        sfti_matrix *b, sft_error *err);
/* Changes rows [begin, begin + count) of the tensor: all of one that is transposed. */
sft_code sfti_lora_op_apply(const sfti_lora_op *op, uint64_t begin, uint64_t count, float *w,
                            sft_error *err);
/* Adds rows [from, from + rows) of the change at strength 1 to `into`, which has op->cols columns;
 * w: the model's own rows. */
sft_code sfti_lora_op_delta(const sfti_lora_op *op, uint64_t from, uint64_t rows, const float *w,
                            float *into, sft_error *err);

/* Rotations: of LyCORIS and kohya over rows, of PEFT over columns. w: all rows of the tensor, or of
 * a module over columns `rows` of them. */
sft_code sfti_rotation_load(sfti_lora_op *op, sfti_arena *arena, sft_error *err);
sft_code sfti_rotation_apply(const sfti_lora_op *op, uint64_t rows, float *w, sft_error *err);

#endif
