/* Values of quantised tensors: how each layout stores them, and reading them as F32.
 * docs/convert.md has the formulas. */
#ifndef SFTI_DEQUANT_H
#define SFTI_DEQUANT_H

#include "convert/declared.h"

typedef enum sfti_quant_kind {
    SFTI_QUANT_SCALED, /* each block of elements has a factor */
    SFTI_QUANT_MXFP4,  /* gpt-oss: two F4 a byte, an E8M0 for 32 of them */
    SFTI_QUANT_GPTQ,   /* words of elements along the input */
    SFTI_QUANT_AWQ     /* words of elements along the output, interleaved */
} sfti_quant_kind;

/* One of the tensors that values are computed from. */
typedef struct sfti_quant_part {
    const sft_tensor *tensor; /* NULL: there is none */
    const sft_file *file;
} sfti_quant_part;

/* Values form `matrices` matrices of rows x columns, in the order of the result. In all kinds but
 * SCALED the stored matrix is the other way round, so that a row of the result is a column there:
 * stored_rows rows of `units`, each of unit_bytes. */
typedef struct sfti_quant {
    sfti_quant_kind kind;
    sfti_quant_part packed, scales, zeros, order;
    sft_spec spec; /* of the result but for its dtype */
    uint64_t shape[SFT_MAX_RANK];
    uint64_t matrices, rows, columns, elements;
    uint64_t block[SFT_MAX_RANK]; /* SCALED: of each dimension, the elements with one factor */
    uint64_t stored_rows, units;
    uint32_t unit_bytes, bits, per_word; /* of an element; elements in a word */
    uint64_t groups;                     /* rows of scales */
} sfti_quant;

/* Whether a tensor with a scale can be quantised at all, by its dtype: floats of more than 8 bits
 * only have a neighbour of such a name. */
bool sfti_quant_has(const sft_tensor *tensor);
/* Recognises tensor i of the set, by what is declared before its name and shape, and checks that
 * everything it needs has the right shape. *out is NULL if it is not quantised. SFT_CAST_DTYPE: it
 * is, in an unknown layout. */
sft_code sfti_quant_find(const sft_set *set, const sfti_declared *declared, size_t i,
                         sfti_arena *arena, sfti_quant **out, sft_error *err);

/* What is kept while one tensor is read. All zero but alloc: empty. */
typedef struct sfti_dequant {
    sft_allocator alloc;
    const sfti_quant *quant;
    uint64_t matrix;          /* of which there are scales; UINT64_MAX: none */
    float *scales;            /* groups x rows; of SCALED all there are */
    uint8_t *zeros;           /* the same for zero points */
    uint32_t *group_of;       /* of a column; NULL: groups of equal size */
    size_t scales_size, zeros_size, group_of_size, panel_size;
    uint8_t *panel;           /* units [unit, unit + panel_units) of all stored rows */
    uint64_t unit, panel_units;
} sfti_dequant;

void sfti_dequant_begin(sfti_dequant *d, const sfti_quant *quant);
/* Writes values [first, first + count) as packed F32 in little-endian order. */
sft_code sfti_dequant_read(sfti_dequant *d, uint64_t first, size_t count, uint8_t *out,
                           sft_error *err);
void sfti_dequant_end(sfti_dequant *d);

#endif
