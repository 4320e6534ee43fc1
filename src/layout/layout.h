/* How one layout of a model names its tensors, and another: the text of data/layouts (read.c),
 * names by its patterns (match.c), tensors by its rules (apply.c), the components of a model
 * (split.c), one model with the names of another (like.c). Tests: test_layout.c.
 *
 * A part is one component of a pipeline (a denoiser, a VAE, a text encoder); its "original" names
 * are those of single files, the others those of diffusers. docs/layouts.md has the language. */
#ifndef SFTI_LAYOUT_H
#define SFTI_LAYOUT_H

#include "base/mem.h"
#include "base/names.h"
#include "safetensors_set.h"

/* ── The text (read.c) ── */

#define SFTI_LAYOUT_PIECES 8
#define SFTI_LAYOUT_COMPONENTS 8
#define SFTI_LAYOUT_CLASSES 2
#define SFTI_LAYOUT_VALUES 4 /* of a model */
#define SFTI_LAYOUT_NAME 512 /* bytes of a tensor's name at most */

typedef enum sfti_side { SFTI_ORIGINAL = 0, SFTI_DIFFUSERS } sfti_side;

typedef enum sfti_layout_op {
    SFTI_OP_SAME = 0,  /* the same bytes; rows, where there are several pieces */
    SFTI_OP_SWAP,      /* halves of the rows, exchanged */
    SFTI_OP_SWAP_PAIR, /* the same if there are twice as many rows as columns */
    SFTI_OP_TRANSPOSE,
    SFTI_OP_SQUEEZE,   /* [a, b, 1, 1] and [a, b] */
    SFTI_OP_FLAT,      /* [1, a, 1, 1] and [a] */
    SFTI_OP_FOLD       /* [number * a] and [number, a] */
} sfti_layout_op;

typedef struct sfti_layout_rule {
    sft_span original;                    /* '#' is a number, a last '*' any text */
    sft_span pieces[SFTI_LAYOUT_PIECES];  /* diffusers' names; "-": rows that have none */
    uint64_t sizes[SFTI_LAYOUT_PIECES];   /* rows of each, in columns; 0: an equal share */
    unsigned count;
    sfti_layout_op op;
    uint64_t number;
    sft_span when; /* on the way back: only if there is such a tensor; or empty */
    bool kept;     /* diffusers has no place for it, but we keep it */
    bool adapters; /* a name that only adapters have */
} sfti_layout_rule;

typedef struct sfti_naming_part {
    sft_span id, folder;     /* of diffusers */
    sft_span comfy;          /* folder of ComfyUI's models */
    sft_span marks[2];       /* by sfti_side: names that are all there, with sizes or without */
    sft_span class;          /* of config.json, or empty */
    sft_span classes[SFTI_LAYOUT_CLASSES]; /* others: a name, and marks of theirs behind it */
    unsigned class_count;
    size_t first, count;     /* of its rules */
    size_t first_value, value_count; /* of its config.json */
    size_t first_published, published_count; /* the models that these values are those of */
    sft_span adapters;       /* what adapters call it: te, te1, ...; empty: the main part */
    sft_span key;            /* what ComfyUI calls an encoder: clip_l, ... */
    sft_span seen;           /* a tensor of diffusers' layout that is enough to know it; "-": none
                                is needed; empty: its marks */
    bool old;                /* its original names are written no more */
    const struct sfti_naming_part *like; /* whose rules it has, too, or NULL */
} sfti_naming_part;

typedef struct sfti_layout_value {
    sft_span key, value; /* JSON, NAME[axis] or count(NAME); "model": the model has it */
    sft_span component;  /* of a value of a model */
    bool optional;       /* without its tensor there is none */
} sfti_layout_value;

/* A model whose configuration is known: how many elements a part has, and marks that hold. */
typedef struct sfti_layout_published {
    uint64_t elements;
    sft_span marks;
} sfti_layout_published;

typedef struct sfti_layout_component {
    sft_span name, prefix; /* in diffusers' folder; in single files */
    const sfti_naming_part *part;
} sfti_layout_component;

typedef struct sfti_layout_model {
    sft_span id, pipeline, serves, lacks; /* architectures; what else a pipeline needs */
    sft_span only;  /* a component and marks that hold of it if it is that of this pipeline */
    sft_span alike; /* what has the same tensors, and another pipeline; or empty */
    sft_span markers; /* of v-prediction, and of schedules that end in pure noise; or empty */
    sft_span kohya; /* "diffusers": names that kohya's adapters have; else the original ones */
    sfti_layout_component components[SFTI_LAYOUT_COMPONENTS];
    unsigned count;
    sfti_layout_value values[SFTI_LAYOUT_VALUES]; /* of config.json of its components */
    unsigned value_count;
} sfti_layout_model;

/* How names of a model's tensors begin, and which parts adapters may call what follows. */
typedef struct sfti_layout_holds {
    sft_span prefix, parts; /* words: main te te1 te2 te3 */
} sfti_layout_holds;

typedef struct sfti_layout_text {
    sfti_layout_holds *holds;
    size_t hold_count, hold_room;
    sfti_layout_rule *rules;
    sfti_naming_part *parts;
    sfti_layout_model *models;
    sfti_layout_value *values;
    sfti_layout_published *published;
    sft_span *prefixes; /* of single files, the longest first */
    size_t rule_count, part_count, model_count, value_count, published_count, prefix_count;
    size_t rule_room, part_room, model_room, value_room, published_room, prefix_room;
    sft_span markers; /* names of tensors that belong to the denoiser, without a prefix */
    sft_span stray; /* names, with '*' for any text, of what only training needs */
} sfti_layout_text;

/* Reads a text, in memory of the arena; the text must live as long. *err names the line. */
sft_code sfti_layouts_of_text(sfti_arena *arena, sft_span text, sfti_layout_text *out,
                              sft_error *err);
/* That of the library. */
sft_code sfti_layouts_built_in(sfti_arena *arena, sfti_layout_text *out, sft_error *err);
const sfti_naming_part *sfti_layout_part_named(const sfti_layout_text *layouts, sft_span id);
/* The model of an architecture, or NULL. */
const sfti_layout_model *sfti_layout_model_of(const sfti_layout_text *layouts,
                                              sft_span architecture);
/* Whether only training needs a tensor of that name: EMA, losses, schedules. */
bool sfti_layout_is_stray(const sfti_layout_text *layouts, sft_span name);
/* The next word between blanks; false at the end. */
bool sfti_layout_next(sft_span *rest, sft_span *word);

/* ── Names (match.c) ── */

#define SFTI_LAYOUT_NUMBERS 4

typedef struct sfti_layout_match {
    sft_span numbers[SFTI_LAYOUT_NUMBERS], rest; /* rest: ".weight", or what '*' stands for */
    unsigned count;
} sfti_layout_match;

/* Whether a name is one of a pattern, or one with a last word such as ".weight" behind it; flat:
 * dots may be '_' in the name, which then has no such word. */
bool sfti_layout_matches(sft_span pattern, sft_span name, bool flat, sfti_layout_match *out);
/* What adapters call piece k of a rule: without ".weight", where the original tensor has none. */
sft_span sfti_layout_layer(const sfti_layout_rule *rule, unsigned k);
/* The name of another pattern with these numbers and rest; its length, 0 if it is too long. */
size_t sfti_layout_make(sft_span pattern, const sfti_layout_match *match, char *out, size_t cap);

/* Rules of a part, one after the other, and of what it is like. NULL: the end. */
const sfti_layout_rule *sfti_layout_next_rule(const sfti_layout_text *layouts,
                                              const sfti_naming_part **part, size_t *at);

/* ── Tensors (apply.c) ── */

/* Bytes made of those of others. */
typedef struct sfti_layout_segment {
    uint64_t at, len;
    const sft_source *source; /* NULL: zeros */
    uint64_t begin;
    uint64_t rows, cols, each; /* rows > 0: a matrix, of elements of `each` bytes, transposed */
} sfti_layout_segment;

typedef struct sfti_layout_out {
    sfti_arena arena;
    sft_part *parts;
    size_t count, room;
    sfti_layout_segment *segments;
    size_t segment_count, segment_room;
    uint64_t bytes;   /* of the segments */
    sft_source source; /* of parts that are made of segments */
    uint8_t *turned;  /* the transposed matrix that was read last */
    const sfti_layout_segment *turned_of;
    size_t turned_size;
    size_t kept; /* tensors for which diffusers has no place */
} sfti_layout_out;

/* Empty, in memory of the allocator. */
void sfti_layout_out_begin(sfti_layout_out *out, const sft_allocator *alloc);
void sfti_layout_out_free(sfti_layout_out *out);
/* Adds a part of which `segments` more are told; shape is copied, the name as well. */
sft_code sfti_layout_out_add(sfti_layout_out *out, sft_span prefix, sft_span name,
                         const sft_spec *spec, const sft_part *from, sft_error *err);
sft_code sfti_layout_segment_add(sfti_layout_out *out, sfti_layout_segment segment,
                                 sft_error *err);
/* The segment that has a byte of the source; NULL past the last. */
const sfti_layout_segment *sfti_layout_segment_at(const sfti_layout_out *out, uint64_t offset);
uint64_t sfti_layout_bytes(const sft_spec *spec);

/* Whether all of these marks hold. */
bool sfti_layout_marks_hold(sft_span marks, const sfti_names *names, const sft_part *parts);
/* Whether all marks of a side are there. */
bool sfti_layout_has_marks(const sfti_naming_part *part, sfti_side side, const sfti_names *names,
                           const sft_part *parts);

/* One component's tensors, whose names have no prefix, as the other side has them: all that a rule
 * knows are added to `out`, behind the prefix. unmatched[count] tells which no rule knows. from ==
 * to: those that a rule knows, as they are. An error names a tensor whose shape is not what a rule
 * asks, or one of several that belong together and are not all there. */
sft_code sfti_layout_apply(const sfti_layout_text *layouts, const sfti_naming_part *part,
                           sfti_side from, sfti_side to, const sft_part *parts, size_t count,
                           sft_span prefix, sfti_layout_out *out, bool *unmatched,
                           sft_error *err);

/* ── Components of a model (split.c) ── */

#define SFTI_LAYOUT_GROUPS 32

/* Tensors of one file or set of shards. */
typedef struct sfti_layout_input {
    const sft_part *parts;
    size_t count;
    sft_span folder; /* the name of the folder that it lies in: of diffusers, its component */
    sft_span part;   /* that it was written from (SFTI_LAYOUT_PART_KEY), or empty */
} sfti_layout_input;

/* Keys of the header: how names began in the single file, and which part it was, where diffusers
 * has one class for several. */
#define SFTI_LAYOUT_PREFIX_KEY "sft_layout_prefix"
#define SFTI_LAYOUT_PART_KEY "sft_layout_part"
/* Whether another part, above this one, has its class: the one that is taken for it by default. */
bool sfti_layout_is_variant(const sfti_layout_text *layouts, const sfti_naming_part *part);

/* Those of them whose names begin alike: a component. */
typedef struct sfti_layout_group {
    size_t input;
    sft_span prefix;  /* of their names there */
    sft_part *parts;  /* whose names lack it */
    size_t count;
    const sfti_naming_part *part; /* NULL: not known */
    sfti_side side;
    sft_span name, target; /* of diffusers' component; the prefix in single files */
    bool *unmatched;
    size_t first, made, kept; /* among the parts that are made of it */
    bool has_config; /* its config.json can be written */
} sfti_layout_group;

typedef struct sfti_layout_groups {
    sfti_layout_group items[SFTI_LAYOUT_GROUPS];
    size_t count;
    size_t stray; /* tensors that only training needs: in none of them */
    const sft_part **markers; /* v_pred, ztsnr, ...: neither */
    size_t marker_count;
} sfti_layout_groups;

/* The tensors of a set, in natural order of names, over sources of its shards, all in memory of the
 * arena. */
sft_code sfti_layout_input_of(const sft_set *set, sfti_arena *arena, sft_source **sources,
                              sfti_layout_input *out, sft_error *err);
/* How a name begins in single files; may be empty. */
sft_span sfti_layout_prefix_of(const sfti_layout_text *layouts, sft_span name);
/* The groups of all inputs, in memory of the arena; of no part as yet. */
sft_code sfti_layout_split(const sfti_layout_text *layouts, const sfti_layout_input *inputs,
                           size_t count, sfti_arena *arena, sfti_layout_groups *out,
                           sft_error *err);
/* Finds the part of each group, by its tensors and its place: among those of the model first, if
 * that is not NULL. to: the side that is asked for, for groups that may be of both. An error if it
 * may be one of several, or two groups are one component. */
sft_code sfti_layout_settle(const sfti_layout_text *layouts, const sfti_layout_input *inputs,
                            const sfti_layout_model *model, sfti_side to, sfti_arena *arena,
                            sfti_layout_groups *groups, sft_error *err);
/* Names of parts, to find them by. False when out of memory. */
bool sfti_layout_names(const sft_part *parts, size_t count, sfti_arena *arena, sfti_names *out);

/* ── What else a folder of diffusers has (config.c) ── */

/* config.json of a component that was made. Not certain: the tensors do not prove all of it and are
 * not exactly those of a published model, or the model, which may be NULL, has no factors for
 * it. */
sft_code sfti_layout_config(const sfti_layout_text *layouts, const sfti_layout_model *model,
                            const sfti_layout_group *one, const sfti_layout_out *out,
                            sft_buffer *text, bool *certain, sft_error *err);
/* Whether tensors, as `out` has them or in diffusers' layout already, are those of the model's
 * pipeline. */
sft_code sfti_layout_proves_pipeline(const sfti_layout_text *layouts,
                                     const sfti_layout_model *model,
                                     const sfti_layout_groups *groups, sfti_side to,
                                     const sfti_layout_out *out, bool *proved, sft_error *err);
/* model_index.json, with the components that are there. */
sft_code sfti_layout_index(const sfti_layout_text *layouts, const sfti_layout_model *model,
                           const sfti_layout_groups *groups, const sfti_layout_out *out,
                           sft_buffer *text, sft_error *err);

/* ── One model as another (like.c) ── */

/* Where a tensor of the result comes from: the first of those that it is made of. */
typedef struct sfti_layout_origin {
    size_t set;
    uint32_t tensor;
} sfti_layout_origin;

/* Reads a model through the layout of another: *out has its tensors under the reference's names,
 * with its prefixes, shapes and order of rows (fused rows joined or cut, halves swapped, matrices
 * turned), so that tensors of one name in both are the same layer. Tensors that no layout knows
 * keep their names; so do all of them if the reference is in no layout that this model has too.
 * sets: the one set of a single file, or the components of a folder of diffusers, each known by its
 * tensors; they are taken over: closed with *out, and on failure, too. Of one set that needs no
 * change *out is that set itself. origins, if not NULL, is filled for each tensor of *out, in
 * memory of its own arena `work`. Data are read as *out is read, by one thread at a time.
 *
 * reference NULL: as a single file has them, with the prefixes of all-in-one files if there are
 * several components. Linear in tensors times rules of the parts whose marks they have.
 * SFT_SIZE_MISMATCH, SFT_INCOMPLETE: as sfti_layout_apply; SFT_TENSOR_DUPLICATE: two tensors would
 * have one name. */
sft_code sfti_layout_like(const sft_set *reference, sft_set *const *sets, size_t count,
                          const sft_allocator *alloc, sfti_arena *work,
                          sfti_layout_origin **origins, sft_set **out, sft_error *err);

/* Rows of each piece of a rule, for a whole of so many rows and columns; false if they do not
 * divide so. */
bool sfti_layout_divide(const sfti_layout_rule *rule, uint64_t rows, uint64_t cols, uint64_t *out);

#endif
