/* What read.c, which reads records, words.c and ask.c share. */
#ifndef SFTI_RECORDS_READ_H
#define SFTI_RECORDS_READ_H

#include "base/guess.h"
#include "label/records.h"

typedef enum sfti_word_how {
    SFTI_READ_WORDS = 0, /* words, then NAME=VALUE */
    SFTI_READ_CLAUSES,   /* in the lines below */
    SFTI_READ_NAMED,     /* [TRUST] NAME: and clauses */
    SFTI_READ_TRUST,     /* trust, and clauses below */
    SFTI_READ_TENSORS,   /* kind, trust, and clauses below */
    SFTI_READ_PRODUCER,  /* a producer, then words */
    SFTI_READ_TABLE      /* a table, then words */
} sfti_word_how;

/* What the words of a row are, or its clauses about. */
typedef enum sfti_value_of {
    SFTI_VALUE_ANY = 0,
    SFTI_VALUE_EMPTY,      /* any, also "" */
    SFTI_VALUE_MODELS,     /* ids, or none */
    SFTI_VALUE_FAMILIES, SFTI_VALUE_KINDS, SFTI_VALUE_PREDICTIONS,
    SFTI_VALUE_PATTERNS,   /* of a kind: "*Model", "!UNet*" */
    SFTI_VALUE_FILE_WORDS, /* "~" at their ends */
    SFTI_VALUE_HEADS,      /* 64, 2304:256 */
    SFTI_VALUE_ENCODERS,   /* the first word of a row "vectors", or a width */
    SFTI_VALUE_MODULES,    /* img_mlp.{0,2}[12288,3072], blocks.{0-5}. */
    SFTI_VALUE_SPARED,     /* *norm*, final_layer.* */
    SFTI_VALUE_NAMES,      /* clauses: names and shapes of tensors */
    SFTI_VALUE_LAYERS      /* clauses: layers */
} sfti_value_of;

#define SFTI_REPEATS 1u
#define SFTI_OURS 2u /* in no file of a user: what the engine is built on */
#define SFTI_MANY 255

typedef struct sfti_word_row {
    sft_span word;
    uint8_t how;
    uint16_t where;      /* bits of sfti_record_type */
    uint8_t flags;
    uint8_t least, most; /* words */
    uint8_t values;      /* sfti_value_of */
    const char *marks;   /* "write write= kind=": what may follow them, or NULL */
    const char *about;   /* for people */
} sfti_word_row;

extern const sft_span sfti_record_types[SFTI_RECORD_TYPES];
extern const sfti_word_row sfti_word_rows[SFTI_ROW_WORDS];
extern const sft_span sfti_producers[SFTI_PRODUCERS];
extern const sft_span sfti_tensor_tables[SFTI_TENSOR_TABLES];

#define SFTI_ROW_LISTS ((int)SFTI_ROW_WORDS + (int)SFTI_PRODUCERS + (int)SFTI_TENSOR_TABLES)

struct sfti_records {
    sfti_record *records;
    sfti_record_row *rows;
    uint16_t record_count, row_count;
    const uint32_t *slots; /* by the hash of type and id: its upper half, and an index + 1 */
    uint32_t slot_mask;
    uint16_t heads[SFTI_ROW_LISTS], tails[SFTI_ROW_LISTS];
    const uint16_t *tables[SFTI_TABLES];
    uint16_t table_counts[SFTI_TABLES];
    const sft_span *sources; /* of each text: "records:NAME", or empty */
    const sfti_records_text *texts; /* those of a user copied, without comments */
    size_t text_count;
};

/* What is wrong with a row, where it stands in its text; expected NULL: nothing. */
typedef struct sfti_wrong {
    sft_span found;
    const char *expected;
    sfti_record_type type; /* of the record whose id was expected, or SFTI_SEVERAL */
} sfti_wrong;

/* ── What is wrong with texts (refuse.c) ── */

typedef struct sfti_refusals {
    const sfti_records *records;
    sfti_records_faults *faults; /* NULL: the first ends it all */
    bool refused;                /* the line or row at hand: it is told once */
    size_t guesses;              /* ids that were compared with what is none */
    sft_error *err;
    sft_code code;
} sfti_refusals;

void sfti_refuse(sfti_refusals *r, const char *at, const char *expected, sft_span found);
/* more: what follows what was found: ", …" or ": …". */
void sfti_refuse_more(sfti_refusals *r, const char *at, const char *expected, sft_span found,
                      const char *more);
/* With the likely meaning of what was found. */
void sfti_refuse_guess(sfti_refusals *r, const char *expected, sft_span found, sfti_guess *guess);
void sfti_refuse_word(sfti_refusals *r, const char *expected, sft_span found,
                      const sft_span *known, size_t count);
void sfti_refuse_id(sfti_refusals *r, const char *expected, sft_span found, sfti_record_type type);
/* Rows of a record stand together: of those that may stand once, and of words that are the
 * library's alone, what says the same as one before it is left out, so that a copy of a record is
 * right; else it is refused. */
void sfti_drop_repeated(sfti_refusals *r, sfti_records *out);

static inline bool sfti_row_blank(char c) {
    return (uint8_t)c <= ' ';
}

/* The next word of a text, up to a blank; empty: there is none. */
static inline sft_span sfti_cut_word(sft_span *text) {
    const char *at = text->data, *end = at + text->len;
    while (at < end && sfti_row_blank(*at)) at++;
    const char *begin = at;
    while (at < end && !sfti_row_blank(*at)) at++;
    *text = (sft_span){ at, (size_t)(end - at) };
    return (sft_span){ begin, (size_t)(at - begin) };
}

/* Whether a row says what such a row may say (grammar.c). *left: words and alternatives that may
 * still follow in all texts. */
bool sfti_row_is_right(const sfti_records *records, const sfti_record_row *row, size_t *left,
                       sfti_wrong *wrong);

/* Where the rows of a word are listed; of two words they are, for each sub, apart. */
static inline size_t sfti_row_list(unsigned word, unsigned sub) {
    return word == SFTI_SAYS       ? SFTI_ROW_WORDS + sub
         : word == SFTI_PREFIXES ? (int)SFTI_ROW_WORDS + (int)SFTI_PRODUCERS + sub
                                 : word;
}
/* What a row's firsts are. "_" may stand for "-", or for nothing. */
uint32_t sfti_row_firsts(const sfti_record_row *row);
/* Libraries write "qwen3_next", we write "qwen3-next": both are one id. */
uint32_t sfti_record_hash(sfti_record_type type, sft_span id);
bool sfti_same_id(sft_span a, sft_span b);

#endif
