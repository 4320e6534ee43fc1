#ifndef SFTI_ONNX_H
#define SFTI_ONNX_H

#include "import/wire.h"

/* Add the TensorProto of a field, under its own name or, if it has none or is in a node, this one
 * (data not NULL). */
sft_code sfti_onnx_tensor(sfti_import *im, const sfti_wire *wire, const sfti_wire_field *field,
                          sft_span name);

#endif
