/* JSON objects with known members, read by a table with one row a member: the manifest, its shards
 * and columns, and receipts. */
#ifndef SFTI_DATASET_FIELDS_H
#define SFTI_DATASET_FIELDS_H

#include "dataset/dataset.h"

typedef struct sfti_fields {
    sfti_json json;
    sfti_arena *arena; /* of texts and shapes */
    sft_code code;     /* of a failure */
    bool strict;       /* a member without a row is an error, not skipped */
    void *ctx;         /* the caller's */
    sft_error *err;
} sfti_fields;

typedef enum sfti_field_kind {
    SFTI_FIELD_TAKEN,     /* `take` reads the value */
    SFTI_FIELD_UINT,      /* uint64_t */
    SFTI_FIELD_UINT_NULL, /* the same; null leaves it unchanged */
    SFTI_FIELD_TEXT,      /* sft_span, with a NUL after it */
    SFTI_FIELD_TEXT_NULL, /* the same; null gives data NULL */
    SFTI_FIELD_UUID,      /* char[37] */
    SFTI_FIELD_SHA256,    /* char[65] */
    SFTI_FIELD_SHA256_NULL /* const char *; null gives NULL */
} sfti_field_kind;

typedef struct sfti_field {
    const char *name;
    sfti_field_kind kind;
    size_t offset; /* of the value in the struct */
    bool required;
    /* TAKEN: reads the value. Else checks or completes it after it was read; may be NULL. */
    sft_code (*take)(sfti_fields *r, void *out);
} sfti_field;

/* At most 64 rows. */
#define SFTI_FIELDS(rows) (rows), sizeof(rows) / sizeof *(rows)

/* Begin a text, which must be UTF-8. */
sft_code sfti_fields_begin(sfti_fields *r, sft_span text);
/* "expected <expected>, found …" at the last event, or the JSON reader's own failure. */
sft_code sfti_fields_wrong(const sfti_fields *r, const char *expected);
/* After OBJECT: its members, each at most once, to its end. Bit i of *seen (if not NULL): row i. */
sft_code sfti_fields_read(sfti_fields *r, const sfti_field *rows, size_t count, void *out,
                          uint64_t *seen);
/* Values for `take`, from the next event. */
sft_code sfti_fields_text(sfti_fields *r, bool or_null, sft_span *out);
/* After OBJECT: {name, dtype, shape} of a column. Null or absent: data or shape is NULL. */
sft_code sfti_fields_entry(sfti_fields *r, sfti_ds_entry *out);
/* The same with a parsed dtype. */
sft_code sfti_fields_column(sfti_fields *r, const sfti_ds_entry *entry, sfti_ds_column *out);

#endif
