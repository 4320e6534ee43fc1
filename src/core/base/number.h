/* Elements as numbers: how each floating dtype is made, in one table, and what follows from
 * it. */
#ifndef SFTI_NUMBER_H
#define SFTI_NUMBER_H

#include "safetensors.h"

typedef enum sfti_specials {
    SFTI_WITH_INF,    /* IEEE: the highest exponent is infinity or NaN */
    SFTI_NAN_ONLY,    /* fn: all ones is NaN, no infinity */
    SFTI_NAN_IS_NEG0, /* fnuz: minus zero is NaN */
    SFTI_NO_SPECIALS  /* every pattern is a number */
} sfti_specials;

/* sign and exponent in the high bits, then the mantissa; exponent 0: no floating dtype. */
typedef struct sfti_float_form {
    uint8_t sign, exponent, mantissa; /* bits */
    uint8_t specials;                 /* sfti_specials */
    int16_t bias;
} sfti_float_form;

/* The form of a dtype; for C64 that of its halves. All zero for integers and BOOL. */
const sfti_float_form *sfti_float_form_of(sft_dtype dtype);
/* Bits of one value: sign, exponent and mantissa. */
static inline unsigned sfti_float_bits(const sfti_float_form *f) {
    return (unsigned)f->sign + f->exponent + f->mantissa;
}

/* Value of the bits of one element (half of a C64) of a floating dtype. Exact. */
double sfti_float_value(const sfti_float_form *form, uint64_t bits);

/* Bits of element i of packed elements; of a C64 both halves, the first one low. */
uint64_t sfti_element_bits(sft_dtype dtype, const void *bytes, uint64_t i);

/* count elements of any dtype from element `first` on (of a C64 2 * count halves from half
 * 2 * first on) as doubles: exact, but for I64 and U64 beyond 2^53. BOOL gives 0 and 1. */
void sfti_to_doubles(sft_dtype dtype, const void *bytes, size_t first, size_t count,
                     double *out);

/* The square root, rounded to nearest, without libm: the same on every processor. Negative numbers
 * and what is not finite come back as they are. */
double sfti_root(double value);
/* For processors without an instruction that does it. */
double sfti_root_portable(double value);

/* Decimal digits, zeros before them up to `width`; no NUL. Returns the length. */
#define SFTI_UINT_SIZE 20
size_t sfti_uint_text(uint64_t value, size_t width, char buffer[SFTI_UINT_SIZE]);

/* A text's leading decimal digits, at least `least` of them: their value, and the rest of the
 * text. False also past 64 bits. */
bool sfti_text_digits(sft_span *text, size_t least, uint64_t *out);
/* Whether a text is all digits, at least one, and their value. */
bool sfti_text_uint(sft_span text, uint64_t *out);

/* The lowest `digits` hexadecimal digits, in lower case; no NUL. */
void sfti_hex_text(uint64_t value, size_t digits, char *out);

/* Digits that give the same value back, as JSON: NaN and infinities are strings. Returns the
 * length. */
#define SFTI_DOUBLE_SIZE 40
size_t sfti_double_text(double value, char buffer[SFTI_DOUBLE_SIZE]);

#endif
