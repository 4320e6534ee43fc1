/* What the readers of ONNX share: a TensorProto, and the numbers that stand in its fields. */
#ifndef SFTI_ONNX_H
#define SFTI_ONNX_H

#include "formats/parts/wire.h"

/* Number of the field of an AttributeProto that has its name. */
#define SFTI_ONNX_ATTRIBUTE_NAME 1

/* Add the TensorProto of a field, under its own name or, if it has none or is in a node, this one
 * (data not NULL). */
sft_code sfti_onnx_tensor(sfti_import *im, const sfti_wire *wire, const sfti_wire_field *field,
                          sft_span name);

/* Whether the AttributeProto of a field, of a Constant, is its value as numbers or text. */
sft_code sfti_onnx_is_value(sfti_import *im, const sfti_wire *wire, const sfti_wire_field *field,
                            bool *out);
/* Add it as a tensor of this name. */
sft_code sfti_onnx_value(sfti_import *im, const sfti_wire *wire, const sfti_wire_field *field,
                         sft_span name);
/* Refuse the SparseTensorProto of a field, by this name or, if its data is NULL, its own. */
sft_code sfti_onnx_sparse(sfti_import *im, const sfti_wire *wire, const sfti_wire_field *field,
                          sft_span name);

/* The numbers in the fields `field` of the message at *message, of a type, as elements of `width`
 * bytes, little-endian: *count of them. At most `most` can be read. */
sft_code sfti_onnx_numbers(sfti_import *im, const sfti_wire *message, uint64_t field,
                           sfti_wire_type type, unsigned width, uint64_t most, uint64_t *count,
                           const sft_source **out);

#endif
