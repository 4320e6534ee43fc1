/* How the tensors of adapters are called: rows "layout", "suffix" and "leaf" of the library's
 * records, read once a process. */
#ifndef SFTI_LAYOUTS_H
#define SFTI_LAYOUTS_H

#include "label/info.h"

typedef enum sfti_part {
    SFTI_PART_MAIN = 0, /* the denoiser, or the language model */
    SFTI_PART_TE,       /* lora_te_: the one encoder of SD 1 and 2 */
    SFTI_PART_TE1,
    SFTI_PART_TE2,
    SFTI_PART_TE3,
    SFTI_ADAPTER_PARTS
} sfti_part;

typedef enum sfti_adapter_format {
    SFTI_FORMAT_CLONEOFSIMO = 0, SFTI_FORMAT_XLABS, SFTI_FORMAT_ONETRAINER, SFTI_FORMAT_KOHYA,
    SFTI_FORMAT_LYCORIS, SFTI_FORMAT_MLX, SFTI_FORMAT_BFL, SFTI_FORMAT_DIFFUSERS,
    SFTI_FORMAT_PEFT, SFTI_FORMATS
} sfti_adapter_format;
extern const char *const sfti_format_names[SFTI_FORMATS];

#define SFTI_ADAPTER_NAME 40

/* What stands before the names of layers. */
typedef struct sfti_name_layout {
    const char *prefix;
    sfti_part part;
    sfti_adapter_format format;
    bool own; /* the prefix belongs to the layer's name */
    char text[SFTI_ADAPTER_NAME]; /* the prefix */
} sfti_name_layout;
const sfti_name_layout *sfti_layout_rows(size_t *count);
/* The one that the name of a tensor begins with, or NULL. */
const sfti_name_layout *sfti_layout_of(sft_span name);
/* What is taken off the name of a layer of the main part; "": nothing. */
const char *sfti_layout_cut(sft_span name);

/* What stands behind the name of a layer. FIRST: each module has one, so it is the one to count. */
typedef enum sfti_role {
    SFTI_ROLE_PART = 0, SFTI_ROLE_FIRST, SFTI_ROLE_ALPHA, SFTI_ROLE_DORA, SFTI_ROLE_SHARED
} sfti_role;
typedef enum sfti_adapter_type {
    SFTI_TYPE_LORA = 0, SFTI_TYPE_LOHA, SFTI_TYPE_LOKR, SFTI_TYPE_GLORA, SFTI_TYPE_IA3,
    SFTI_TYPE_OFT, SFTI_TYPE_BOFT, SFTI_TYPE_FULL,
    SFTI_TYPE_OTHER, /* another PEFT type: see its name */
    SFTI_ADAPTER_TYPES
} sfti_adapter_type;
#define SFTI_ADAPTER_TYPE_NAMES "lora loha lokr glora ia3 oft boft full peft"

/* Which matrix of its module a tensor is. Numbers below SFTI_SLOT_ALPHA mean something else in each
 * type. */
typedef enum sfti_adapter_slot {
    SFTI_SLOT_NONE = 0, /* one that nothing is computed from */
    SFTI_SLOT_UP = 1, SFTI_SLOT_DOWN, SFTI_SLOT_MID, SFTI_SLOT_BIAS,
    SFTI_SLOT_HADA_1A = 1, SFTI_SLOT_HADA_1B, SFTI_SLOT_HADA_2A, SFTI_SLOT_HADA_2B,
    SFTI_SLOT_HADA_T1, SFTI_SLOT_HADA_T2,
    SFTI_SLOT_KRON_1 = 1, SFTI_SLOT_KRON_1A, SFTI_SLOT_KRON_1B, SFTI_SLOT_KRON_2,
    SFTI_SLOT_KRON_2A, SFTI_SLOT_KRON_2B, SFTI_SLOT_KRON_T2,
    SFTI_SLOT_GLORA_A1 = 1, SFTI_SLOT_GLORA_A2, SFTI_SLOT_GLORA_B1, SFTI_SLOT_GLORA_B2,
    SFTI_SLOT_OFT_BLOCKS = 1, SFTI_SLOT_OFT_PACKED, SFTI_SLOT_OFT_RESCALE,
    SFTI_SLOT_IA3_FACTOR = 1, SFTI_SLOT_IA3_ON_INPUT, SFTI_SLOT_IA3_WEIGHT,
    SFTI_SLOT_ALPHA = 8, SFTI_SLOT_MAGNITUDE, SFTI_SLOT_DIFF, SFTI_SLOT_DIFF_BIAS,
    SFTI_SLOTS
} sfti_adapter_slot;

typedef struct sfti_suffix {
    sft_span end;
    int type;          /* an sfti_adapter_type */
    sfti_role role;
    sfti_adapter_slot slot;
    char other[SFTI_ADAPTER_NAME]; /* the other of a pair; the name of a PEFT method */
    uint8_t rank, in;  /* of a PEFT method, which axis, from 1; 0: none */
} sfti_suffix;
const sfti_suffix *sfti_suffix_rows(size_t *count);

/* The leaf that a name whose dots became '_' ends with, or empty. */
sft_span sfti_flat_leaf(sft_span name);

#endif
