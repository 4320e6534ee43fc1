/* Values of quantised tensors: finding how one is stored, and reading it as F32. docs/convert.md
 * has the formulas. */
#ifndef SFTI_QUANT_H
#define SFTI_QUANT_H

#include "quant/declared.h"
#include "quant/layouts.h"

/* A matrix of numbers, each of which is for a block of values. */
typedef struct sfti_quant_part {
    const sfti_layout_part *how;
    const sft_tensor *tensor;
    const sft_file *file;
    uint64_t rows, columns;
    uint64_t row_block, column_block;
    uint64_t lines, line_bytes; /* as they are stored */
    uint64_t matrix_bytes;      /* from one matrix to the next; 0: all have the same */
    uint32_t bits, planes;      /* of an element; rows in a unit */
} sfti_quant_part;

/* Values form `matrices` matrices of rows x columns. */
typedef struct sfti_quant {
    const sfti_quant_layout *layout;
    sft_spec spec; /* of the result but for its dtype */
    uint64_t matrices, rows, columns;
    sfti_quant_part *parts; /* the codes first */
    size_t count;
    sfti_quant_part group, book, nested_book; /* of a tensor and a file; tensor NULL: none */
    uint32_t rotate;                           /* 0: not */
    float nested_offset;
} sfti_quant;

#define SFTI_ROTATE_MOST 1024
#define SFTI_GROUPED_MOST ((uint64_t)256 << 10) /* columns of a tensor whose groups are told */

/* Where tensors are looked up. */
typedef struct sfti_quant_search {
    const sft_set *set;
    const sfti_declared *declared;
    sfti_names names;       /* to numbers of tensors */
    sfti_arena *arena;
    uint8_t *taken;         /* of each tensor, one of those below or 0 */
    uint8_t *codes;         /* of each: it is a quantised one */
    /* For each, NULL where no tensor can be one: the number of a tensor that rows say is beside it,
     * or SFTI_NO_NAME; one that no row knows, whose name says that it changes this one's codes; and
     * whether it is the codes, not what belongs to them: one of those below, or 0. */
    uint32_t *near, *odd;
    uint8_t *scaled;
    bool unfit; /* of those of a layout that is declared and known, one has another shape or dtype,
                 * or is not there */
} sfti_quant_search;

enum {
    SFTI_QUANT_TAKEN = 1,  /* it belongs to a quantised one */
    SFTI_QUANT_REFUSED = 2 /* its values cannot be computed; for those who search */
};

enum {
    SFTI_NEAR_SCALED = 1,
    SFTI_NEAR_FLAT = 2 /* in a layout that stores codes in any dtype */
};

sft_code sfti_quant_begin(sfti_quant_search *search, const sft_set *set,
                          const sfti_declared *declared, sfti_arena *arena, sft_error *err);
/* Whether a tensor's dtype can hold codes: floats of more than 8 bits only have a neighbour of the
 * name of a scale. */
bool sfti_quant_has(const sft_tensor *tensor);
/* Whether what a torchao object says of tensor i's parts and blocks is so (torchao.c). */
sft_code sfti_torchao_check(const sft_set *set, size_t i, sft_span object, const sfti_quant *quant,
                            sfti_arena *arena, sft_error *err);
/* What is near to each tensor, by names (near.c). */
sft_code sfti_quant_look(sfti_quant_search *search, sft_error *err);
/* Recognises tensor i, by what is declared before its name and shape, and checks that everything it
 * needs has the right shape; what belongs to it is marked as taken. *out is NULL if it is in no
 * layout. SFT_CAST_DTYPE: it cannot be read. */
sft_code sfti_quant_find(sfti_quant_search *search, size_t i, sfti_quant **out, sft_error *err);

/* ── Reading (decode.c) ── */

/* Numbers of a part, of a region of its matrix. */
typedef struct sfti_quant_region {
    float *values;
    size_t values_size, window_size;
    bool loaded;
    uint64_t matrix, row, rows, column, columns;
    uint8_t *window; /* bytes of the file */
    uint64_t window_at, window_len;
    float table[256];
} sfti_quant_region;

/* Bytes of a part whose stored rows are columns of values, or have words of them: of `lines` stored
 * rows from `line` on the units [first, first + units), which fill `run` bytes. */
typedef struct sfti_quant_panel {
    const sfti_quant_part *of; /* NULL: none are there */
    uint64_t matrix, line, lines, first, units, run;
    uint8_t *bytes;
    size_t size;
} sfti_quant_panel;

/* What is kept while one tensor is read. All zero but alloc: empty. */
typedef struct sfti_dequant {
    sft_allocator alloc;
    const sfti_quant *quant;
    sfti_quant_region *regions; /* SFTI_LAYOUT_PARTS */
    uint32_t *group_of;         /* of each column */
    size_t group_of_size;
    sfti_quant_panel panel;
    bool ready;                 /* tables are read */
} sfti_dequant;

void sfti_dequant_begin(sfti_dequant *d, const sfti_quant *quant);
/* Writes values [first, first + count) as packed F32 in little-endian order. */
sft_code sfti_dequant_read(sfti_dequant *d, uint64_t first, size_t count, uint8_t *out,
                           sft_error *err);
void sfti_dequant_end(sfti_dequant *d);

/* Rotates groups of n values, a power of 4 up to SFTI_ROTATE_MOST, which undoes itself: by the
 * symmetric matrix H4 x ... x H4 / sqrt(n), where H4 has the rows 1 1 1 -1, 1 1 -1 1, 1 -1 1 1,
 * -1 1 1 1 (rotate.c). */
void sfti_quant_rotate(float *values, size_t count, uint32_t n);
/* The same in portable C, bit for bit. */
void sfti_quant_rotate_portable(float *values, size_t count, uint32_t n);

/* ── Formulas (combine.c) ── */

/* Codes of a row from `column` on become values: the regions hold the numbers for them. */
void sfti_quant_combine(const sfti_dequant *d, uint64_t row, uint64_t column, size_t count,
                        float *values);

#endif
