/* What adapters.c, which reads the tensors of an adapter, and targets.c, which tells what
 * model it is for, share. */
#ifndef SFTI_ADAPTERS_H
#define SFTI_ADAPTERS_H

#include "base/names.h"
#include "label/layouts.h"
#include "label/tensors/signatures.h"

/* Values and how often each occurs. */
#define SFTI_TALLY 256
typedef struct sfti_tally {
    size_t count;
    struct { double value; uint64_t times; } rows[SFTI_TALLY];
    double min, max;
    bool any;
} sfti_tally;
void sfti_tally_put(sfti_tally *tally, double value);
/* mode: the most frequent; of several the lowest. */
sfti_bounds sfti_tally_range(const sfti_tally *tally);
/* Read alpha scalars (most of them at most) into info->adapter: those of the first file that has
 * any, and also these of modules that have none. What cannot be read stays unknown. */
void sfti_adapter_alphas(sft_info *info, uint64_t most, const sfti_tally *also);

/* One adapted layer. */
typedef struct sfti_module {
    sft_span name;            /* tensor name without its suffix */
    const sft_tensor *tensor; /* the first of it */
    const sft_tensor *pair;   /* of a LoRA: the other one */
    uint64_t in, out;         /* sizes of the layer, 0 = not to be seen */
    uint64_t rank;            /* 0 = none */
    bool conv;                /* a kernel larger than 1 */
    bool folded;              /* in: those of a convolution times the size of its kernel */
    size_t at;                /* the tensor, in order of name */
    uint8_t prefix;           /* of the tensor's name: its row of sfti_layout_rows + 1, or 0 */
} sfti_module;

/* Layers by their names, in which a dot is as good as '_' (layer_table.c). */
typedef struct sfti_layer {
    sft_span name;    /* as the table has it */
    sft_span written;
    const sft_tensor *tensor;
    uint64_t in, out; /* 0: not to be seen */
    bool folded, named; /* named: the caller's */
} sfti_layer;
typedef struct sfti_layers {
    sfti_arena *arena;
    sfti_layer *at;
    size_t count;
    sfti_names names; /* private */
} sfti_layers;
/* Room for so many; the table stays where it is. False when out of memory, as of the next. */
bool sfti_layers_open(sfti_layers *table, sfti_arena *arena, size_t most);
/* By its name; of those that are called alike the first stays. */
bool sfti_layers_put(sfti_layers *table, const sfti_layer *layer);
/* The one called before + name, or NULL. */
sfti_layer *sfti_layers_find(const sfti_layers *table, sft_span before, sft_span name);

/* Where the numbers of a layer's name stand. */
#define SFTI_NUMBERS 8
typedef struct sfti_numbers {
    struct { uint32_t at, len; } places[SFTI_NUMBERS];
    uint32_t count; /* SFTI_NUMBERS + 1: more */
    uint32_t inner; /* that after transformer_blocks, from 1 on, or 0 */
} sfti_numbers;

/* Layers that differ in their numbers only. */
typedef struct sfti_form {
    sft_span text;    /* "double_blocks_#_img_attn_qkv": without prefix, dots as '_' */
    sft_span raw;     /* the name of one, without prefix */
    sfti_part part;
    uint64_t in, out; /* of the first */
    uint64_t highest; /* first number in the names, the largest */
    uint64_t lowest;  /* and the smallest */
    uint64_t times;   /* tensors */
    uint64_t inner;   /* the number after transformer_blocks, the largest */
    const sft_tensor *tensor;
    uint64_t letters; /* pairs of letters that text or raw have: what a pattern needs */
    sfti_numbers numbers; /* of raw */
    struct sfti_sized *sized; /* of the main part of an adapter */
    uint16_t next;    /* index + 1 of the form that was met after it, the last time */
} sfti_form;

#define SFTI_FORMS 1024
#define SFTI_FAMILIES 32
#define SFTI_FAMILY_NUMBERS 512

/* Which blocks of a name are adapted: "double_blocks", and a bit a number. */
typedef struct sfti_blocks {
    sft_span name;
    uint64_t bits[SFTI_FAMILY_NUMBERS / 64];
    bool numbered;
} sfti_blocks;

typedef struct sfti_forms {
    sft_info *info;
    size_t count;
    size_t families;
    size_t beyond; /* modules of the main part, with sizes, that no row can have */
    const sft_tensor *first;
    uint32_t formats; /* bits of prefixes seen, private to forms.c */
    sfti_form *last;  /* the last that was met */
    uint16_t slots[SFTI_FORMS * 2]; /* index + 1 */
    /* those counted: memory that is not used is not touched */
    sfti_blocks family[SFTI_FAMILIES];
    sfti_form forms[SFTI_FORMS];
} sfti_forms;

/* Empty; NULL when out of memory. */
sfti_forms *sfti_forms_new(sft_info *info);
/* Note the format that a tensor's name shows. */
void sfti_forms_begin(sfti_forms *forms, const sft_tensor *tensor);
/* A bit for each pair of bytes that follow one another in a text, of letters alone: a text that
 * another is part of has its bits. */
uint64_t sfti_letter_pairs(sft_span text);
/* Take a module in; what is beyond the tables is left out. */
void sfti_forms_put(sfti_forms *forms, const sfti_module *module);
/* Every tensor of a model, by its name without the view's prefix and ".weight", but biases and what
 * others (if not NULL) has a number for; NULL when out of memory. */
sfti_forms *sfti_forms_of(const sfti_view *view, const uint8_t *others);
/* "kohya", …, or NULL. */
const char *sfti_forms_format(const sfti_forms *forms);
/* Architecture, variant and evidence as facts; returns the architecture or NULL, and its trust. */
const char *sfti_forms_target(const sfti_forms *forms, int *sure);
/* Whether clauses like those of rows "adapter" hold; the first form that one alternative fits. */
bool sfti_forms_hold(const sfti_forms *forms, sft_span clauses);
const sfti_form *sfti_forms_find(const sfti_forms *forms, sft_span clause);
/* The family as a fact, by the first row that holds (structures.c); the kind that such models
 * mostly are, or NULL. */
const char *sfti_forms_family(const sfti_forms *forms, bool adapter);
/* Whether the names show more than a model of that kind has: another tower, another head. */
bool sfti_forms_exceed(const sfti_forms *forms, const char *kind);
/* Leaf names and blocks into info->adapter. */
void sfti_forms_lists(const sfti_forms *forms);

/* ── Tensors of an adapter, by the ends of their names (modules.c) ── */

/* A tensor's name taken apart. */
typedef struct sfti_adapter_name {
    sft_span module, end;
    sfti_adapter_type type;
    sfti_adapter_slot slot;
} sfti_adapter_name;

typedef struct sfti_adapter_scan {
    const sfti_view *view;
    const sfti_quant *quant;
    sfti_forms *forms;        /* once there is a module */
    sfti_suffixes suffixes;   /* private */
    const uint8_t *prefix_of; /* of each tensor, once there is a module */
    uint64_t of_type[SFTI_ADAPTER_TYPES];
    uint64_t modules, tensors, alphas, shared;
    bool dora, first_scripts; /* the ":down" of the first LoRA scripts */
    const char *lora, *other; /* a kind of LoRA; a PEFT method */
    sfti_tally ranks, conv_ranks;
    sfti_sums parts[SFTI_ADAPTER_PARTS];
} sfti_adapter_scan;

/* Takes every tensor in; NULL when it is no adapter or memory is out. named: it is called one. */
sfti_adapter_scan *sfti_adapter_scan_of(const sfti_view *view, const sfti_quant *quant,
                                        bool named);
/* Fills parts. */
void sfti_adapter_sum(sfti_adapter_scan *scan);
/* Ends of the names of an adapter's tensors. */
void sfti_adapter_suffixes(sfti_suffixes *suffixes);
/* By the end of a tensor's name; false if none of these ends is its. */
bool sfti_adapter_name_of(const sfti_suffixes *suffixes, sft_span name, sfti_adapter_name *out);
/* The layer that a tensor is the first of; false if it is none. The view may be without names. */
bool sfti_adapter_layer(const sfti_view *view, const sfti_suffixes *suffixes,
                        const sft_tensor *tensor, sfti_module *out);

#endif
