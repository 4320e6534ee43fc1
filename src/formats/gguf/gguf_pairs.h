/* The key-value pairs of a GGUF file. */
#ifndef SFTI_IMPORT_GGUF_PAIRS_H
#define SFTI_IMPORT_GGUF_PAIRS_H

#include "formats/gguf/gguf_cursor.h"

/* What the reader itself needs of them. */
typedef struct sfti_gguf_pairs {
    uint64_t alignment; /* of tensors' bytes, a power of two */
    bool is_model;      /* it names an architecture */
    /* Of a model in several files; 1, 0 and UINT64_MAX if the pairs do not tell. */
    uint64_t split_count, split_number, split_tensors;
} sfti_gguf_pairs;

/* Read `count` pairs. report: scalars become metadata, and what is left out is listed. */
sft_code sfti_gguf_read_pairs(sfti_gguf_cursor *c, uint64_t count, bool report,
                              sfti_gguf_pairs *out);

#endif
