/* Labels of hostile metadata. */
#ifndef HOSTILE_LABELS_H
#define HOSTILE_LABELS_H

#include "headers.h"

typedef struct label_case {
    const char *name;
    void (*make)(text *t, size_t bytes); /* the value as it stands in the header */
    const char *key;
} label_case;

typedef struct label_measure {
    int code; /* sft_code */
    size_t peak, left, json; /* bytes: most held at once, never released, of the answer */
    double seconds;
    size_t words; /* that trigger */
} label_measure;

extern const label_case label_cases[];
extern const size_t label_case_count;

/* The label of a file that has only that metadata, made and written. */
label_measure label_once(const label_case *one, size_t bytes);

#endif
