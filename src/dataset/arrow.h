/* Reading the Arrow C Data Interface: types of columns, and the elements of their rows. */
#ifndef SFTI_DATASET_ARROW_H
#define SFTI_DATASET_ARROW_H

#include "base/mem.h"
#include "safetensors_dataset.h"

typedef enum sfti_arrow_leaf {
    SFTI_LEAF_NUMBER, /* of a dtype, packed */
    SFTI_LEAF_BITS,   /* booleans, eight a byte */
    SFTI_LEAF_BYTES,  /* utf8 and binary */
    SFTI_LEAF_STRUCT  /* of any children; only without lists around it */
} sfti_arrow_leaf;

typedef enum sfti_arrow_width { SFTI_ARROW_32, SFTI_ARROW_64, SFTI_ARROW_VIEW } sfti_arrow_width;

/* One list around the elements. */
typedef struct sfti_arrow_list {
    bool fixed, view, large; /* large: 64-bit offsets */
    uint64_t length;         /* of a fixed one */
} sfti_arrow_list;

typedef struct sfti_arrow_type {
    uint32_t depth; /* lists around the leaf, outermost first */
    sfti_arrow_list list[SFT_MAX_RANK];
    sfti_arrow_leaf leaf;
    sft_dtype dtype;           /* NUMBER, BITS (SFT_BOOL) */
    uint32_t bytes;            /* NUMBER: of an element */
    sfti_arrow_width width;    /* BYTES */
    bool dictionary;           /* the leaf is looked up by number */
    uint32_t key_bytes;        /* of the numbers: 1, 2, 4, 8 */
    bool has_shape;            /* fixed_shape_tensor tells the shape of a row */
    uint32_t rank;
    const uint64_t *shape;
} sfti_arrow_type;

/* The type of a column. SFT_COLUMN_TYPE names what is not taken. The shape is from the arena. */
sft_code sfti_arrow_type_read(const struct ArrowSchema *schema, sfti_arena *arena,
                              sfti_arrow_type *out, sft_error *err);
/* Whether extension types' name is this. */
bool sfti_arrow_is_extension(const struct ArrowSchema *schema, const char *name);

bool sfti_arrow_null(const struct ArrowArray *array, uint64_t i);
/* Row i of a BYTES column without lists; false when it is null or out of bounds. */
bool sfti_arrow_bytes(const sfti_arrow_type *type, const struct ArrowArray *array, uint64_t i,
                      sft_span *out);

/* Elements of one row, packed as in a file. */
typedef struct sfti_arrow_row {
    const void *bytes; /* Arrow's own memory, or that of the buffer */
    uint64_t elements;
    bool owned;        /* of the buffer: at this position of it (it may still move) */
    size_t at;
    uint32_t rank;     /* one dimension a list */
    uint64_t shape[SFT_MAX_RANK];
} sfti_arrow_row;

/* Elements of row i of a NUMBER or BITS column. What does not lie packed in Arrow's memory
 * (bits, dictionaries, views) is put behind what is in the buffer. SFT_ROW_NULL, SFT_ROW_SHAPE (lists of
 * unlike lengths), SFT_BAD_ARGUMENT (arrays that break Arrow's rules); the message has no
 * column and row yet. */
sft_code sfti_arrow_elements(const sfti_arrow_type *type, const struct ArrowArray *array,
                             uint64_t i, sft_buffer *buffer, sfti_arrow_row *out,
                             sft_error *err);

#endif
