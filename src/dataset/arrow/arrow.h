/* Reads the Arrow C Data Interface: the types of columns and the elements of their rows. */
#ifndef SFTI_DATASET_ARROW_H
#define SFTI_DATASET_ARROW_H

#include "base/mem.h"
#include "dataset/dataset.h"

typedef enum sfti_arrow_leaf {
    SFTI_LEAF_NUMBER, /* of a dtype, packed */
    SFTI_LEAF_BITS,   /* booleans, eight a byte */
    SFTI_LEAF_BYTES,  /* utf8 and binary */
    SFTI_LEAF_STRUCT  /* with any children; never inside lists */
} sfti_arrow_leaf;

typedef enum sfti_arrow_width { SFTI_ARROW_32, SFTI_ARROW_64, SFTI_ARROW_VIEW } sfti_arrow_width;

/* One list around the elements. */
typedef struct sfti_arrow_list {
    bool fixed, view, large; /* large: 64-bit offsets */
    uint64_t length;         /* of a fixed one */
} sfti_arrow_list;

typedef struct sfti_arrow_type {
    uint32_t depth; /* lists around the leaf */
    sfti_arrow_list list[SFT_MAX_RANK];
    sfti_arrow_leaf leaf;
    sft_dtype dtype;           /* NUMBER, BITS (SFT_BOOL) */
    uint32_t bytes;            /* NUMBER: of an element */
    bool opaque;               /* NUMBER: a value of `bytes` U8 (decimals, fixed-size bytes) */
    bool swapped;              /* opaque, and a number of the host's byte order */
    sfti_arrow_width width;    /* BYTES */
    bool dictionary;           /* values are keys of a dictionary */
    uint32_t key_bytes;        /* of a key: 1, 2, 4 or 8 */
    bool has_shape;            /* a fixed_shape_tensor with the shape of a row */
    uint32_t rank;
    const uint64_t *shape;
} sfti_arrow_type;

/* The type of a column. SFT_COLUMN_TYPE names what is not supported. The shape is from the
 * arena. */
sft_code sfti_arrow_type_read(const struct ArrowSchema *schema, sfti_arena *arena,
                              sfti_arrow_type *out, sft_error *err);

/* SFT_COLUMN_TYPE when a type, or lists in it, are a fixed_shape_tensor whose elements are not in
 * the order of its shape, or whose shape is none of theirs: as its storage it would lose both. */
sft_code sfti_arrow_shapes_check(const struct ArrowSchema *schema, sft_error *err);

/* Whether a schema, or what its dictionary has, is of one of these formats. */
bool sfti_arrow_has_format(const struct ArrowSchema *schema, const char *const formats[3]);
extern const char *const sfti_arrow_texts[3]; /* the formats of text */

/* Arrow's name of a type: "list<float>", "struct<a: int32, \"b c\": timestamp[us, tz=UTC]>".
 * dictionaries: "dictionary of string", else "string". leaf: in place of those that are no list and
 * no struct (NULL: their own). Cut to fit; the length of all of it. */
size_t sfti_arrow_type_put(const struct ArrowSchema *schema, bool dictionaries, const char *leaf,
                           char *buffer, size_t size);
/* For messages. */
#define SFTI_ARROW_TEXT 200
void sfti_arrow_type_text(const struct ArrowSchema *schema, char buffer[SFTI_ARROW_TEXT]);

/* SFT_BAD_ARGUMENT unless an array has the buffers and children of its type, which all calls below
 * rely on. */
sft_code sfti_arrow_check(const sfti_arrow_type *type, const struct ArrowArray *array,
                          sft_error *err);

/* The same of a list or a struct alone, without what is in it. */
sft_code sfti_arrow_check_list(const sfti_arrow_list *list, const struct ArrowArray *array,
                               sft_error *err);
sft_code sfti_arrow_check_struct(const struct ArrowArray *array, size_t children, sft_error *err);

/* Whether child i of a struct has all its rows. */
bool sfti_arrow_has_child(const struct ArrowArray *array, size_t i);
bool sfti_arrow_null(const struct ArrowArray *array, uint64_t i);
/* The same of a column's row: of a dictionary, the value may be null. False out of bounds. */
bool sfti_arrow_row_null(const sfti_arrow_type *type, const struct ArrowArray *array, uint64_t i);
/* Row i of a BYTES column without lists; false when it is null or out of bounds. */
bool sfti_arrow_bytes(const sfti_arrow_type *type, const struct ArrowArray *array, uint64_t i,
                      sft_span *out);

/* Rows of text, bytes, or lists of numbers that lie one behind the other in Arrow's memory: whether
 * the type has such, and of `most` rows from row `first` on, none of them null, the first so many.
 * Appends to `ends` where each ends, in elements after `from`, in the byte order of files. *rows 0:
 * the first one is none, or breaks a rule. False when out of memory. */
bool sfti_arrow_has_runs(const sfti_arrow_type *type);
bool sfti_arrow_run(const sfti_arrow_type *type, const struct ArrowArray *array, uint64_t first,
                    uint64_t most, uint64_t from, sft_buffer *ends, uint64_t *rows, sft_span *out);

/* What list i has: [*begin, *end) of the child. SFT_ROW_NULL, SFT_BAD_ARGUMENT. */
sft_code sfti_arrow_list_range(const sfti_arrow_list *list, const struct ArrowArray *array,
                               uint64_t i, uint64_t *begin, uint64_t *end, sft_error *err);
/* A list's own format: a list of any kind. */
bool sfti_arrow_list_read(const char *format, sfti_arrow_list *out);

/* Elements of consecutive rows, packed as in a file. */
typedef struct sfti_arrow_rows {
    uint64_t rows;
    const char *bytes; /* in Arrow's memory; NULL: at `at` of the buffer */
    size_t at;
    uint64_t elements; /* of all rows */
    uint32_t rank;     /* one dimension a list */
    uint64_t shape[SFT_MAX_RANK]; /* of one row */
} sfti_arrow_rows;

/* Elements of a NUMBER or BITS column from row `first` on: of at most `most` (1 or more) rows, as
 * many as have one shape and are contiguous. What is not packed in Arrow's memory (bits,
 * dictionaries, views) is appended to the buffer. An invalid later row only ends the rows:
 * SFT_ROW_NULL, SFT_ROW_SHAPE (lists of different lengths) and SFT_BAD_ARGUMENT (arrays that break
 * Arrow's rules) concern the first one. The message names no column and row yet. */
sft_code sfti_arrow_elements(const sfti_arrow_type *type, const struct ArrowArray *array,
                             uint64_t first, uint64_t most, sft_buffer *buffer,
                             sfti_arrow_rows *out, sft_error *err);

/* ── struct<data: binary, shape: list<int>, dtype: string> ── */

typedef struct sfti_arrow_tensor {
    size_t data, shape, dtype; /* numbers of the children */
    sfti_arrow_type data_type, shape_type, dtype_type;
} sfti_arrow_tensor;

/* SFT_COLUMN_TYPE for any other struct. */
sft_code sfti_arrow_tensor_read(const struct ArrowSchema *schema, sfti_arena *arena,
                                sfti_arrow_tensor *out, sft_error *err);
sft_code sfti_arrow_tensor_check(const sfti_arrow_tensor *type, const struct ArrowArray *array,
                                 sft_error *err);
/* Row i, whose data must have the size of its dtype and shape. Errors as sfti_arrow_elements, and
 * SFT_ROW_VALUE for an unknown dtype. scratch is emptied. */
sft_code sfti_arrow_tensor_row(const sfti_arrow_tensor *type, const struct ArrowArray *array,
                               uint64_t i, sft_buffer *scratch, sft_dtype *dtype,
                               sfti_arrow_rows *out, sft_error *err);

/* ── nodes.c: columns in columns ── */

#define SFTI_NO_NODE SIZE_MAX

/* A column, or one in it: a field of a struct, the elements of a list. In preorder. */
typedef struct sfti_ds_node {
    sfti_ds_column column; /* name: that of its tensors; child: of the node around it */
    const struct ArrowSchema *schema;
    size_t parent; /* SFTI_NO_NODE of a column */
    size_t end;    /* behind the last node in it */
    size_t fields; /* of a struct */
    sfti_arrow_list list; /* LIST, and ARRAY with a chain */
    uint32_t depth; /* nodes around it */
    /* The nodes of the lists in an ARRAY, which follow it and are in a file if rows differ in shape
     * or have nulls in them. spare: such a node. */
    uint32_t chain;
    bool spare;
} sfti_ds_node;

/* What a row of a type holds: form, encoding, dtype and shape of *c. top: not in another. */
sft_code sfti_ds_column_form(const struct ArrowSchema *schema, sft_dataset_mode mode, bool top,
                             sfti_arena *arena, sfti_ds_column *c, sft_error *err);
/* Append a column's nodes. Names and shapes are from the arena. */
sft_code sfti_ds_nodes_add(sfti_ds_columns *columns, size_t *cap, const sfti_ds_column *column,
                           const struct ArrowSchema *schema, sfti_arena *arena, sft_error *err);
/* SFT_COLUMN_TYPE when two tensors would have one name. */
sft_code sfti_ds_nodes_check(const sfti_ds_columns *columns, sfti_arena *arena, sft_error *err);

#endif
