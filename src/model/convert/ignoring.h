/* Which modules a quantization_config names as those that are not quantised, in "ignore". */
#ifndef SFTI_IGNORING_H
#define SFTI_IGNORING_H

#include "base/json.h"
#include "quant/layouts.h"

typedef struct sfti_ignoring_module {
    sft_span name;
    bool codes, spared; /* quantised; a matrix of a layer that stays */
} sfti_ignoring_module;

typedef struct sfti_ignoring {
    sft_span layout; /* that is written */
    sft_allocator alloc;
    sfti_ignoring_module *modules;
    size_t count;
} sfti_ignoring;

/* Elements of the list: spared modules, those that may use the weights of an embedding, and
 * patterns for those that programs call otherwise than the file does. any: the row of
 * data/quantised.layouts that is of all layouts. */
sft_code sfti_ignoring_write(const sfti_ignoring *of, const sfti_quant_layout *any,
                             sfti_json_writer *w, sft_error *err);

#endif
