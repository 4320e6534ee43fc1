/* Writing what was collected: put.c writes records by tables of their members, sections.c the
 * parts of a label, render.c the whole, as JSON or as a tree. */
#ifndef SFTI_INFO_RENDER_H
#define SFTI_INFO_RENDER_H

#include "label/info.h"

/* How a member is written; what is said to be unknown is null. */
typedef enum sfti_put_as {
    AS_TEXT = 0, /* sft_span, unknown if empty */
    AS_SPAN,     /* sft_span as it is */
    AS_CSTR,     /* const char *, unknown if NULL */
    AS_NUMBER,   /* sft_span with a number as spelled, unknown if empty */
    AS_UINT,     /* uint64_t */
    AS_SOME,     /* uint64_t, unknown if 0 */
    AS_COUNT,    /* uint64_t, unknown if UINT64_MAX */
    AS_SOME32,   /* uint32_t, unknown if 0 */
    AS_INDEX,    /* int, unknown if negative */
    AS_TRUST,    /* int, 0 if negative */
    AS_BOOL,     /* bool */
    AS_ANSWER,   /* int: 1 true, 0 false, negative unknown */
    AS_DOUBLE,   /* double */
    AS_POSITIVE  /* double, unknown if negative */
} sfti_put_as;

typedef struct sfti_member {
    const char *key;
    sfti_put_as as;
    size_t at; /* in the record */
} sfti_member;

void sfti_put_members(sfti_json_writer *w, const sfti_member *members, size_t count,
                      const void *record);
/* The object of a record, and the list of the objects of records, under a key. */
void sfti_put_record(sfti_json_writer *w, const char *key, const sfti_member *members,
                     size_t count, const void *record);
void sfti_put_list(sfti_json_writer *w, const char *key, const sfti_list *list,
                   const sfti_member *members, size_t count);
/* Open an object or list under a key; if it is not known, write null and return false. */
bool sfti_put_open(sfti_json_writer *w, const char *key, char bracket, bool known);
void sfti_put_text(sfti_json_writer *w, const char *key, sft_span text); /* AS_TEXT */
/* null for what is no number a model can have, which a negative one may be. */
void sfti_put_double(sfti_json_writer *w, const char *key, double value, bool negative);
void sfti_put_value(sfti_json_writer *w, const sfti_fact_value *value);
/* {"value","source","trust"}: of one fact into an open object, of all in a list. */
void sfti_put_candidate(sfti_json_writer *w, const sfti_fact *fact);
void sfti_put_candidates(sfti_json_writer *w, const char *key, const sfti_fact *facts);
void sfti_put_texts(sfti_json_writer *w, const char *key, const sfti_list *notes);

/* All members of a label but those of the set. */
void sfti_render_sections(sfti_json_writer *w, const sft_info *info);

#endif
