/* Quantised tensors of which the values change and everything else stays: their parts are written
 * again, each under its name, with its dtype and shape. */
#ifndef SFTI_QUANTISE_AGAIN_H
#define SFTI_QUANTISE_AGAIN_H

#include "convert/encode.h"
#include "safetensors_convert.h"

typedef struct sfti_again {
    sfti_encoding how;
    sfti_encoded matrix;
    sft_dtype codes; /* what they hold: F4, F8, I8 */
    size_t count;
    const sft_tensor *parts[SFTI_ENCODE_PARTS]; /* of the set, as sfti_encoder_read numbers them */
} sfti_again;

/* How tensor i of the set, a SFT_CONVERT_DEQUANTIZE, is quantised once more: by the line "write" of
 * data/quantised.layouts whose numbers are stored as those of the tensor are. SFT_CAST_DTYPE: there
 * is none. */
sft_code sfti_quantise_again(const sft_conversion *conversion, size_t i, sfti_again *out,
                             sft_error *err);

#endif
