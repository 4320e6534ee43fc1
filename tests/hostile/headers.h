/* Hostile headers, built in memory. */
#ifndef HOSTILE_HEADERS_H
#define HOSTILE_HEADERS_H

#include <stddef.h>
#include <stdint.h>

/* Growing text of a header; out of memory ends the program. data is the bytes of tensors
 * that the header claims. */
typedef struct text {
    char *at;
    size_t len, cap;
    uint64_t data;
} text;

void text_put(text *t, const void *bytes, size_t len);
void text_str(text *t, const char *string);
void text_number(text *t, uint64_t value);
/* Space for len more bytes, which the caller fills. */
char *text_more(text *t, size_t len);
void text_free(text *t);

/* Fills a header of about `bytes` bytes. */
typedef void (*header_maker)(text *t, size_t bytes);

void make_zeros(text *t, size_t bytes);            /* an ignored field [0,0,0,…] */
void make_fields(text *t, size_t bytes);           /* millions of ignored fields */
void make_dims(text *t, size_t bytes);             /* a shape of half as many dimensions */
void make_empty_arrays(text *t, size_t bytes);     /* tensors without elements, as arrays */
void make_empty_objects(text *t, size_t bytes);    /* the same as objects */
void make_same_name(text *t, size_t bytes);        /* one name, millions of times */
void make_escaped_names(text *t, size_t bytes);    /* names that are all \u escapes */
void make_reversed(text *t, size_t bytes);         /* one-byte tensors, last first */
void make_pairs(text *t, size_t bytes);            /* metadata of short pairs */
void make_same_key(text *t, size_t bytes);         /* metadata, one key */
void make_value(text *t, size_t bytes);            /* metadata, one value of escapes */
void make_brackets(text *t, size_t bytes);         /* [[[[… in an ignored field */
void make_deep(text *t, size_t depth);             /* nesting to that depth in all */
void make_digits(text *t, size_t bytes);           /* one integer of that many digits */
void make_blank(text *t, size_t bytes);            /* {} and white space */
void make_backslashes(text *t, size_t bytes);      /* a string that never ends */
void make_quotes(text *t, size_t bytes);           /* """"""… */
void make_modules(text *t, size_t bytes);          /* LoRA modules without elements */
void make_long_names(text *t, size_t bytes);       /* names of 1,600 levels */
void make_tag_counts(text *t, size_t bytes);             /* kohya's tag frequencies */
void make_no_entries(text *t, size_t bytes);       /* "name":[], no tensor at all */
void make_real(text *t, size_t tensors);           /* names and sizes of a large MoE model */

#endif
