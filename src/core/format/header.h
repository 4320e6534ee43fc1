/* Step 2: the header's text to entries. Inside format/ only. */
#ifndef SFTI_HEADER_H
#define SFTI_HEADER_H

#include "base/checked.h"
#include "base/json.h"
#include "base/json_lex.h"
#include "format/format.h"

/* One header being read. */
typedef struct sfti_parser {
    sfti_lex lex; /* over the top level; values are read by the parts below */
    sft_span text;
    const sfti_limits *limits;
    const sfti_watch *watch;
    const uint64_t *seed;
    sfti_arena *arena;
    sfti_model *model;
    sft_error *err;
    sft_code first; /* failure to be returned */
    bool fatal;     /* no sense in going on */
    bool seen_metadata;
    size_t cap;          /* no more entries than this fit in the text */
    /* The dtype of the entry before is the likeliest of this one, and its end, as spelled, the
     * likeliest begin. */
    sft_dtype last_dtype;
    sft_span last_dtype_text, last_end_text;
    uint64_t last_end;
    bool unsorted; /* an entry's offsets lie before those of the entry before it */
    bool apart;    /* unsorted, or an entry does not begin where the one before it ends, or has not
                      as many bytes as its shape asks for */
    bool lost;     /* an entry was refused, and with it what is known of its bytes */
    struct {
        uint64_t begin, end;
    } before;
} sfti_parser;

/* Tell of a failure: kept if it is the first, told to the watch. True: go on, which only
 * a watched reading ever does. */
bool sfti_report(sfti_parser *r, const sft_error *error);
/* The same about a place in the text, of the tensor of that name unless it is NULL. */
bool sfti_report_at(sfti_parser *r, sft_code code, const char *at, const sft_span *name,
                    const char *expected);
/* The same about a limit of the options that is exceeded. */
bool sfti_report_limit(sfti_parser *r, sft_code code, const char *at, const sft_span *name,
                       const char *what, uint64_t most, uint64_t found);
/* Memory ran out: ends the reading. Always false. */
bool sfti_report_memory(sfti_parser *r, uint64_t bytes);
void sfti_remark(sfti_parser *r, const char *note, const char *at, const sft_span *name,
                 const char *text);

/* Whether shape and dtype ask for the bytes there are; false also for what only the general check
 * can tell. */
static inline bool sfti_plain_size(const sft_tensor *t) {
    uint64_t bits = sft_dtype_describe(t->dtype)->bits;
    for (uint32_t d = 0; d < t->rank && bits > 0; d++)
        if (!sfti_mul(bits, t->shape[d], &bits)) return false;
    return bits % 8 == 0 && bits / 8 == t->end - t->begin;
}

/* Put a record whose dtype, shape and offsets are set at the end of the tensors; false:
 * reported. */
bool sfti_keep(sfti_parser *r, const sft_tensor *tensor, sft_span name);

/* A reader of the value at the cursor, in one or two open objects. */
void sfti_value_begin(const sfti_parser *r, uint32_t depth, sfti_json *json);

/* The value of one tensor entry, by the general path: any order, white space, escapes.
 * The cursor moves past it. False: reported; the cursor is past it if r->fatal is not set. */
bool sfti_entry_read(sfti_parser *r, sft_span name, sft_span raw_name);

/* The whole text. */
void sfti_header_read(sfti_parser *r);

#endif
