/* Marks of quantised weights: what their own names and dtypes say, and the names of the tensors
 * beside them (rows "end" and "codes" of data/quantisation.txt). */
#ifndef SFTI_QUANTISATION_H
#define SFTI_QUANTISATION_H

#include "label/tensors/signatures.h"

/* Marks of weights themselves, in the order of their names in rows "marks"; those of tensors that
 * accompany them follow, in the order of the rows "end". */
enum {
    SFTI_MARK_QWEIGHT = 1u << 0, SFTI_MARK_WEIGHT_PACKED = 1u << 1, SFTI_MARK_F4 = 1u << 2,
    SFTI_MARK_F8 = 1u << 3, SFTI_MARK_I8 = 1u << 4, SFTI_MARK_U8 = 1u << 5,
    SFTI_MARK_U32 = 1u << 6, SFTI_MARK_MX_BLOCKS = 1u << 7,
    SFTI_MARK_SCALE_BYTES = 1u << 8, /* scales are exponents or bytes: U8 or F8_E8M0 */
    SFTI_MARK_SCALE_ROWS = 1u << 9,  /* weight_scale in one dimension */
    SFTI_MARK_ROWS_PACKED = 1u << 10, /* qweight has as many columns as its scales */
    SFTI_MARK_SCALE_FOURS = 1u << 11, /* weight_scale for each 16 columns, two of them a byte */
    SFTI_MARK_WORDS = SFTI_MARK_QWEIGHT | SFTI_MARK_WEIGHT_PACKED | SFTI_MARK_U32
};

/* Rows "codes": ".qweight", ".codes:codebooks" beside that one, "*:scal|zero" any whole numbers in
 * a layer with a name that has one of these texts. */
#define SFTI_CODES_MOST 32
typedef struct sfti_codes {
    const char *ends[SFTI_CODES_MOST];
    const char *beside[SFTI_CODES_MOST]; /* NULL: whatever is */
    size_t count;
    const char *texts[SFTI_CODES_MOST + 1]; /* up to NULL */
} sfti_codes;

/* The mark of a tensor that accompanies weights, or 0. */
uint32_t sfti_mark_beside(const sfti_quant *quant, const sft_tensor *tensor);
/* Whether a tensor may hold codes: no floats of at least 16 bits, counts or masks. */
bool sfti_may_be_codes(const sft_tensor *tensor);
/* The mark of weights themselves, or 0. */
uint32_t sfti_mark_weight(const sft_tensor *tensor);
/* The tensor of the same layer whose name has another last part, or NULL. */
const sft_tensor *sfti_layer_tensor(const sft_info *info, const sft_tensor *tensor,
                                    const char *last);
/* What that holds, if it has no more than `room` bytes; else 0. */
size_t sfti_read_of_layer(const sft_info *info, const sft_tensor *tensor, const char *last,
                          char *bytes, size_t room);
/* Bits of the codes of a packed weight, as far as what stands beside it proves them; else 0. */
uint32_t sfti_bits_proved(const sfti_quant *quant, const sft_tensor *packed);

#endif
