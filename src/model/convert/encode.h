/* Matrices into quantised parts, by the rows of data/quantised.layouts: what quant/decode.c reads.
 * Values are F32. The parts' bytes are made as they are asked for, some rows at a time. */
#ifndef SFTI_ENCODE_H
#define SFTI_ENCODE_H

#include "convert/convert.h"
#include "convert/encode_loops.h"
#include "quant/layouts.h"

#define SFTI_ENCODE_COLUMNS ((uint64_t)1 << 19) /* of a matrix, at most: rows are held in memory */
#define SFTI_ENCODE_PARTS 3

/* How matrices are encoded. */
typedef struct sfti_encoding {
    const sfti_quant_layout *layout;
    sft_dtype codes, scale; /* as they are stored */
    uint32_t rows, columns; /* of values that share a scale; 0: all */
    uint32_t rotate;        /* columns that are rotated together; 0: not */
    bool reciprocal;        /* values are multiplied by 1 / scale, else divided by it */
    bool listed;            /* single numbers have the shape [1], else [] */
    bool flat;              /* a scale for each row has the shape [rows], else [rows, 1] */
} sfti_encoding;

/* A matrix, and what is known of it. */
typedef struct sfti_encoded {
    uint64_t rows, columns;         /* of values */
    uint64_t all_rows, all_columns; /* padded */
    uint64_t row_block, column_block;
    uint64_t scale_rows, scale_columns;
    uint32_t rotate;
    uint64_t checked; /* rows, from the first on, whose values are known to be finite */
    bool measured;    /* `most` is known */
    float most;       /* the greatest magnitude */
    uint64_t counted; /* rows, from the first on, of which the sums tell */
    double error, power; /* sums of squares: of values as read back less values, and of values */
} sfti_encoded;

/* Why a matrix of this shape cannot be encoded so, in words that end "found ..."; NULL: it can,
 * and *out is filled in. */
const char *sfti_encoded_begin(const sfti_encoding *how, uint64_t rows, uint64_t columns,
                               sfti_encoded *out);
/* How many parts there are: the codes, the scales, and where the layout has it one factor more. */
size_t sfti_encoded_parts(const sfti_encoding *how);
/* Dtype and shape of part k; shape has room for two. */
void sfti_encoded_spec(const sfti_encoding *how, const sfti_encoded *matrix, size_t k,
                       sft_dtype *dtype, uint64_t *shape, uint32_t *rank);

/* What is kept while a matrix is encoded. All zero but alloc: empty. */
typedef struct sfti_encoder {
    sft_allocator alloc;
    const sfti_encoding *how;
    sfti_encoded *matrix;
    const sft_source *source; /* of values as F32, from `begin` on */
    uint64_t begin;
    sft_span name;
    const sfti_encode_loops *loops;
    sfti_cast cast; /* F32 to the codes */
    /* Rounds values that were divided by their scale, elements [first, first + count) of the padded
     * matrix, before they become codes. Or NULL: the nearest code counts. Set after begin; errors
     * are not summed then. */
    void (*round)(const void *ctx, uint64_t first, float *values, size_t count);
    const void *round_ctx;
    size_t part;                /* that `unit` is of */
    uint64_t unit, unit_bytes;
    bool has_unit;
    float *values;             /* of some rows */
    float *numbers, *factors;  /* of the blocks of a row: magnitudes, and what codes stand for */
    uint64_t block_row;        /* that the magnitudes are of */
    bool has_numbers;
    uint8_t *line;             /* scales of a row */
    uint8_t *out;              /* bytes of the unit */
    size_t values_size, numbers_size, line_size, out_size;
} sfti_encoder;

/* Begins another matrix. What the encoder had for the last one is forgotten. */
void sfti_encoder_begin(sfti_encoder *e, const sfti_encoding *how, sfti_encoded *matrix,
                        sft_span name, const sft_source *source, uint64_t begin);
/* Bytes [offset, offset + len) of part k. SFT_CAST_VALUE: a value is infinite or NaN, or zeros
 * would be as near to the values as the codes are (not where `round` is set). */
sft_code sfti_encoder_read(sfti_encoder *e, size_t k, uint64_t offset, uint8_t *into, size_t len,
                           sft_error *err);
void sfti_encoder_end(sfti_encoder *e);
/* The error of a matrix of whose values nothing is left. */
sft_code sfti_encoded_lost(sft_span name, sft_error *err);

#endif
