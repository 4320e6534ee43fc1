/* How the tensors of a layout fit together. */
#ifndef SFTI_QUANT_FIT_H
#define SFTI_QUANT_FIT_H

#include "quant/quant.h"

#define NONE SFTI_NO_NAME

/* The tensors of a layout, in the order of its parts; NONE: it is not there. */
typedef struct sfti_match {
    const sfti_quant_layout *layout;
    sft_span stem, result; /* result: the name, where it is declared */
    uint32_t at[SFTI_LAYOUT_PARTS];
    sft_span lacks; /* the names of a part that should be there, where another is */
    uint32_t alien; /* the part of which the tensor has another dtype; NONE: none */
    bool told;
} sfti_match;

/* Where one is fitted. */
typedef struct sfti_quant_fit {
    const sfti_quant_search *search;
    const sfti_match *match;
    const sfti_declared_format *format; /* NULL: not declared by ComfyUI */
    sfti_quant *q;
    uint64_t outer, inner;         /* the last two dimensions of the codes */
    uint64_t group;                /* told; 0: not */
    bool scoped;                   /* what is told of its module alone counts */
    bool strict;                   /* no other size will do */
    bool first_rows;               /* all dimensions but the first are columns */
    uint64_t *shape;               /* of the result */
} sfti_quant_fit;

/* The number of the tensor of one of the names, or NONE. */
uint32_t sfti_quant_named(const sfti_quant_search *search, sft_span names, sft_span stem);
/* The tensor and the file of part k of the layout; NULL: it is not there. */
const sft_tensor *sfti_fit_tensor(const sfti_quant_fit *f, size_t k);
const sft_file *sfti_fit_file(const sfti_quant_fit *f, size_t k);
/* The first part of that role, or NULL; file may be NULL. */
const sft_tensor *sfti_fit_role(const sfti_quant_fit *f, uint8_t role, const sft_file **file);

static inline uint64_t sfti_divide_up(uint64_t a, uint64_t b) { return a / b + (a % b != 0); }
static inline uint32_t sfti_tensor_bits(const sft_tensor *tensor) {
    return sft_dtype_describe(tensor->dtype)->bits;
}

/* SFT_CAST_DTYPE, about a tensor of another shape. */
sft_code sfti_fit_shape(const sft_tensor *tensor, const uint64_t *expected, uint32_t rank,
                             sft_error *err);
sft_code sfti_fit_fail(const sft_tensor *tensor, const char *expected, const char *found,
                       sft_error *err);

/* Whether what may be told of the tensor's module alone is so (fit_scopes.c). */
sft_code sfti_scopes_check(const sfti_quant_fit *f, sft_error *err);

/* What the part "shape" tells. */
sft_code sfti_fit_told_shape(const sfti_quant_fit *f, uint64_t shape[2], sft_error *err);
/* Shapes of all parts (fit.c), of those of bitsandbytes, and of HQQ (fit_flat.c). */
sft_code sfti_fit_parts(sfti_quant_fit *f, sft_error *err);
sft_code sfti_fit_flat(sfti_quant_fit *f, sft_error *err);
sft_code sfti_fit_planes(sfti_quant_fit *f, sft_error *err);

/* Whether codes have one of the numbers of bits that are told, a bit of `widths` each (0: any). */
bool sfti_fit_width(const sfti_quant_part *codes, uint32_t widths);

#endif
