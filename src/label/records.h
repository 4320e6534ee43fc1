/* What is known of models: records, which are text (data/, docs/records.md). Everybody asks here;
 * nobody keeps a table of ids of his own. Tests: test_records.c.
 *
 * A record is a line that begins with its type and id, and its rows, which stand indented: each is
 * a word and what it says. A row that goes on is indented further. Clauses (tensors, variant,
 * adapter and others) stand one to a line, and all must hold:
 *   a | b           one of several; a line that begins with "|" goes on with the one above
 *   !a | b          none of them
 * What one says depends on the row: see label/tensors/match.c (names and shapes) and targets.c
 * (layers). */
#ifndef SFTI_RECORDS_H
#define SFTI_RECORDS_H

#include "base/mem.h"

#include <string.h>

typedef struct sfti_records sfti_records;

typedef enum sfti_record_type {
    SFTI_SEVERAL = 0, /* of no model in particular: no id */
    SFTI_MODEL, SFTI_KIND, SFTI_FAMILY, SFTI_VARIANT, SFTI_PREDICTION, SFTI_QUANTISATION,
    SFTI_METHOD,
    SFTI_KEYS, /* of a producer's metadata or file beside a model (label/keys.c) */
    SFTI_RECORD_TYPES
} sfti_record_type;

/* First words of rows (records/words.c). */
typedef enum sfti_word {
    SFTI_PARENT = 0, SFTI_OVER, SFTI_LIKE, SFTI_MEMBERS, SFTI_BRANCH, SFTI_OF_FAMILY, SFTI_GROUP,
    SFTI_VAES, SFTI_TEXT_ENCODERS, SFTI_DENOISER_PART, SFTI_WHOLE, SFTI_DECODER, SFTI_CLASS,
    SFTI_PIPELINE,
    SFTI_MODEL_TYPE, SFTI_SAYS, SFTI_FILE_WORDS, SFTI_TENSORS, SFTI_VARIANT_ROW, SFTI_ADAPTER_ROW,
    SFTI_ADAPTER_VARIANT, SFTI_STRUCTURE, SFTI_EXCESS, SFTI_SIZES, SFTI_HEAD, SFTI_MODULES,
    SFTI_SIBLING, SFTI_PREFIXES, SFTI_CONFIG, SFTI_TWINS, SFTI_PREDICTS, SFTI_SGM,
    SFTI_EMBEDDING, SFTI_END, SFTI_CODES, SFTI_MARKS, SFTI_LAYOUT, SFTI_SUFFIX, SFTI_LEAF,
    SFTI_PRECISION, SFTI_SPARE, SFTI_KEY, SFTI_VECTORS,
    SFTI_ROW_WORDS
} sfti_word;

/* Whose words a row "says" has. */
typedef enum sfti_producer {
    SFTI_SAYS_ANY = 0, SFTI_SAYS_BASE_VERSION, SFTI_SAYS_MODULE, SFTI_SAYS_ONETRAINER,
    SFTI_SAYS_USE, SFTI_SAYS_MODELSPEC, SFTI_SAYS_CIVITAI, SFTI_SAYS_TAG, SFTI_SAYS_A1111,
    SFTI_SAYS_NUNCHAKU, SFTI_SAYS_TASK, SFTI_SAYS_PEOPLE, SFTI_SAYS_BASE_MODEL, SFTI_SAYS_V2,
    SFTI_SAYS_GGUF, SFTI_SAYS_TITLE, SFTI_SAYS_REPOSITORY, SFTI_SAYS_GENERIC, SFTI_SAYS_FUNCTION,
    SFTI_SAYS_COMMON, SFTI_SAYS_NOUN, SFTI_SAYS_WEAK, SFTI_SAYS_QUANTISER, SFTI_SAYS_COMFY,
    SFTI_PRODUCERS
} sfti_producer;

/* Rows that are told apart by one another: all are tried, see label/tensors/choose.c. */
typedef enum sfti_table_id {
    SFTI_SPECIAL = 0, SFTI_DENOISERS, SFTI_VAE_TABLE, SFTI_IMAGES, SFTI_ENCODERS, SFTI_OTHERS,
    SFTI_LANGUAGE, SFTI_TENSOR_TABLES, SFTI_ADAPTERS = SFTI_TENSOR_TABLES, SFTI_STRUCTURES,
    SFTI_TABLES
} sfti_table_id;

extern const unsigned char sfti_built_in_text[]; /* made by cmake/records.cmake */

typedef struct sfti_record_row {
    const char *at;  /* behind the word and what is told below, to the row's end; private */
    uint32_t made;   /* where at is NULL, of the records that were read when the library was built:
                        its place in their text */
    uint32_t len;
    uint16_t record;
    uint16_t next;   /* private */
    uint16_t kind;   /* SFTI_TENSORS, SFTI_STRUCTURE: a record, or UINT16_MAX */
    uint8_t word, sub; /* sub: the sfti_producer, sfti_table_id, or SFTI_OF_… */
    uint8_t trust;
    uint8_t text;    /* which of the texts it is from */
    uint32_t firsts; /* sfti_first_bit of its words, where they are compared with texts */
} sfti_record_row;

#define SFTI_OF_MODELS 1u
#define SFTI_OF_ADAPTERS 2u

/* How a child is related to its parent. */
typedef enum sfti_kin {
    SFTI_KIN_NONE,    /* different models */
    SFTI_KIN_UNSURE,  /* one name stands for several, which differ in their layers */
    SFTI_KIN_DERIVED, /* the same layers, trained to other ends */
    SFTI_KIN_MEMBER,  /* one name stands for the other too */
    SFTI_KIN_SAME
} sfti_kin;

typedef struct sfti_record {
    const char *id; /* NULL of SFTI_SEVERAL */
    sft_span label; /* empty: the id */
    const struct sfti_record *parent; /* NULL: none */
    sfti_kin kin;   /* to the parent */
    sfti_record_type type;
    uint8_t text;          /* which of the texts it begins in */
    uint16_t first, count; /* its rows */
} sfti_record;

/* ── Reading (read.c) ── */

typedef struct sfti_records_text {
    sft_span text;
    const char *name; /* for errors and sources */
    size_t lines;     /* of the text that cmake/records.cmake makes; 0: it is a user's */
} sfti_records_text;

/* Limits of all texts of a user together, and of a row. */
#define SFTI_RECORDS_BYTES ((size_t)4 << 20)
#define SFTI_RECORDS_LINES 20000
#define SFTI_RECORDS_WORDS 50000 /* and alternatives */
#define SFTI_RECORDS_TEXTS 255
#define SFTI_RECORDS_CLAUSES 64
#define SFTI_RECORDS_PARENTS 8 /* one above the other */
#define SFTI_RECORDS_FITTING 512 /* models with modules or siblings, and rows that name others */

/* What comes with the library: read when it is first asked for. */
const sfti_records *sfti_records_built_in(void);
/* Its text, joined by cmake/records.cmake. */
sfti_records_text sfti_records_built_in_text(void);
/* Whether a row "key" of it may begin with that key of metadata, in whatever case; false where
 * surely none does. */
bool sfti_records_may_have_key(sft_span key);
/* Texts, in memory of the arena; the one that comes with the library must live as long. A record of
 * a user's may add rows to one of a text before it. *err names the text, the line and the column of
 * what is wrong. */
sft_code sfti_records_read(sfti_arena *arena, const sfti_records_text *texts, size_t count,
                           const sfti_records **out, sft_error *err);

/* One thing that is wrong. */
#define SFTI_RECORDS_NAME 200 /* of a text: bytes that *err names */
#define SFTI_FAULT_FOUND 120
#define SFTI_FAULT_MORE 240
typedef struct sfti_records_fault {
    size_t text; /* which of the texts */
    size_t line, column;
    const char *expected;
    char found[SFTI_FAULT_FOUND + 8];
    char more[SFTI_FAULT_MORE]; /* ", …" or ": …", to follow that, or "" */
} sfti_records_fault;
typedef struct sfti_records_faults {
    sfti_records_fault *items; /* the first `room` of them; each row and line has one at most */
    size_t room, count;        /* count: of all */
} sfti_records_faults;
/* The same, which goes on behind what is wrong: what stands in *err is the first. */
sft_code sfti_records_read_all(sfti_arena *arena, const sfti_records_text *texts, size_t count,
                               sfti_records_faults *faults, const sfti_records **out,
                               sft_error *err);

/* What sft_records_open read; with all that is wrong, whose texts are counted from 0 (open.c). */
typedef struct sft_records sft_records;
typedef struct sft_records_text sft_records_text;
const sfti_records *sfti_records_of(const sft_records *opened);
sft_code sfti_records_open_all(const sft_records_text *texts, size_t count,
                               const sft_allocator *alloc, sfti_records_faults *faults,
                               sft_records **out, sft_error *err);

/* ── Asking (ask.c) ── */

size_t sfti_record_count(const sfti_records *records);
const sfti_record *sfti_record_at(const sfti_records *records, size_t i);
/* "_" is as good as "-"; NULL: there is none. */
const sfti_record *sfti_record_find(const sfti_records *records, sfti_record_type type,
                                    sft_span id);
/* The model of that id, which may be NULL: then NULL. */
const sfti_record *sfti_model_record(const sfti_records *records, const char *id);
/* The record of a row. */
const sfti_record *sfti_row_record(const sfti_records *records, const sfti_record_row *row);
/* "records:FILE" of a row or record of a user's text; NULL: it came with the library. */
const sft_span *sfti_row_source(const sfti_records *records, const sfti_record_row *row);
const sft_span *sfti_record_source(const sfti_records *records, const sfti_record *record);
/* The line and column, from 1 on, of a place in one of the texts; the text's name, or NULL. */
const char *sfti_records_place(const sfti_records *records, const char *at, size_t *line,
                               size_t *column);
/* A row as it is written, from its word on. */
sft_span sfti_row_written(const sfti_records *records, const sfti_record_row *row);
/* First words of rows, in the order of sfti_word; what one says, for people. */
sft_span sfti_row_word_name(sfti_word word, const char **about);
/* "model", "kind", … */
sft_span sfti_record_type_name(sfti_record_type type);
/* The id of the kind that a row tells, or NULL. */
const char *sfti_row_kind(const sfti_records *records, const sfti_record_row *row);
/* Rows of a word (of SFTI_SAYS and a producer, of SFTI_PREFIXES and a table; else 0): the first,
 * the next, then NULL. */
const sfti_record_row *sfti_rows(const sfti_records *records, sfti_word word, unsigned sub);
const sfti_record_row *sfti_rows_next(const sfti_records *records, const sfti_record_row *row);
#define SFTI_EACH_ROW(row, records, word, sub) \
    for (const sfti_record_row *row = sfti_rows(records, word, sub); row; \
         row = sfti_rows_next(records, row))
/* The first row of a word that a record has, behind one of its own (NULL: of all); NULL: none, or
 * no record. */
const sfti_record_row *sfti_record_row_of(const sfti_records *records, const sfti_record *record,
                                          sfti_word word, const sfti_record_row *after);
/* The rows of a table, in the order of the texts; NULL behind the last. */
const sfti_record_row *sfti_table_row(const sfti_records *records, sfti_table_id table, size_t i);

/* Where a line within a row ends, or NULL: texts that come with the library have a vertical tab. */
static inline const char *sfti_row_line_end(const char *at, size_t len) {
    const char *end = len ? memchr(at, '\v', len) : NULL;
    return end || len == 0 ? end : memchr(at, '\n', len);
}

/* The first word of the first row of that word that a record has, or empty. */
sft_span sfti_record_word(const sfti_records *records, const sfti_record *record, sfti_word word);
/* What a row says: words, between quotes where they have blanks, then NAME=VALUE and flags. */
typedef struct sfti_record_item {
    sft_span name;  /* empty: a word */
    sft_span value; /* of a flag empty */
} sfti_record_item;
bool sfti_next_item(sft_span *rest, sfti_record_item *item);
/* The next word; false at the first that is none. */
bool sfti_next_said(sft_span *rest, sft_span *word);
/* A bit for a first letter, in whatever case, and whether a row may have a word that begins as the
 * text: of many rows few are read. */
static inline uint32_t sfti_first_bit(char c) {
    return UINT32_C(1) << ((uint8_t)c & 31);
}
static inline bool sfti_row_may_say(const sfti_record_row *row, sft_span text) {
    return text.len == 0 || row->firsts & sfti_first_bit(*text.data);
}
/* The first word; empty of NULL. */
sft_span sfti_row_word(const sfti_record_row *row);
bool sfti_row_has(const sfti_record_row *row, const char *name, sft_span *value);
/* Behind its word; empty of NULL. */
static inline sft_span sfti_row_text(const sfti_record_row *row) {
    if (!row) return (sft_span){ "", 0 };
    return (sft_span){ row->at ? row->at : (const char *)sfti_built_in_text + row->made, row->len };
}
/* "variant NAME: clauses" */
sft_span sfti_row_name(const sfti_record_row *row, sft_span *clauses);
/* The next clause: a line, and those that go on with "|"; empty at the end. */
sft_span sfti_next_clause(sft_span *rest);
/* The next alternative of a clause, which is not empty: up to a "|" between blanks. */
sft_span sfti_next_alternative(sft_span *rest);
/* What an alternative asks beside names: "count(blocks.#) >= 19", how many numbers stand in the
 * place of "#"; "@ss_base_model_version = newbie", what __metadata__ says, or, with a JSON pointer
 * behind the key (@config:/transformer/model_type), what a text in it does. */
typedef struct sfti_predicate {
    sft_span begin;        /* "blocks.", or empty */
    sft_span key, pointer; /* of metadata */
    sft_span value;        /* that is asked */
    uint64_t number;
    char compare;          /* '=', '<' (or equal), '>' (or equal) */
} sfti_predicate;
#define SFTI_PREDICATE_STEPS 8 /* of a pointer */
/* Whether it is no name but that; *right: it is as above. */
bool sfti_predicate_of(sft_span alternative, sfti_predicate *out, bool *right);
/* Whether a size is one of "9|8", or any for "*". */
bool sfti_size_fits(sft_span wanted, uint64_t size);

/* The model, or the record of another type, that a producer's word stands for; *row says more.
 * whole: the text is the word, else it begins with it, the longest of several. NULL: nobody
 * says so. A word that ends in "*" is how a text begins. */
const sfti_record *sfti_said(const sfti_records *records, sfti_record_type type,
                             sfti_producer producer, sft_span text, bool whole,
                             const sfti_record_row **row);
/* The id of that model, or NULL; row may be NULL. */
const char *sfti_said_model(const sfti_records *records, sfti_producer producer, sft_span text,
                            const sfti_record_row **row);

/* What is written for a record and that producer: of rows "says" with "write", the one of that
 * variant, else one of any; of that prediction, where it says one. Empty: nothing. */
sft_span sfti_written(const sfti_records *records, const sfti_record *of, sfti_producer producer,
                      sft_span variant, sft_span prediction);

/* The row "spare" by which a tensor is left as it is where a model of that architecture is
 * quantised, and which of its patterns; NULL: nothing says so (spare.c). The rows are those of
 * "several", and of the architecture or the nearest of its parents that has any. An architecture
 * that is not known, or empty, has those of "several". */
const sfti_record_row *sfti_spared(const sfti_records *records, sft_span architecture,
                                   sft_span name, sft_span *pattern);

/* ── Relations (kin.c) ── */

/* Parents. A name need be no record: "vit_base_patch16" is a member of vit. */
bool sfti_record_within(const sfti_record *record, sft_span id);
bool sfti_architecture_within(const sfti_records *records, sft_span child, sft_span parent);
/* Whether a record is more particular than another whose rows hold, too: its child, or said to be
 * over it or over a child of it. */
bool sfti_record_over(const sfti_records *records, const sfti_record *a, const sfti_record *b);
bool sfti_related_architectures(const sfti_records *records, sft_span a, sft_span b);
/* The nearest that both are or belong to, NULL if there is none, or one is. */
const char *sfti_common_architecture(const sfti_records *records, const char *a, const char *b);
/* What models of it are, by the kinds that its rows and those of its parents tell: bits, private to
 * kin.c; 0: nothing tells. */
unsigned sfti_record_classes(const sfti_records *records, const sfti_record *record);
/* Whether a model of it can have tensors of this family and kind (either may be empty), as far as
 * is known. */
bool sfti_architecture_may_have(const sfti_records *records, sft_span name, sft_span family,
                                sft_span kind);
/* "unet" or "transformer"; the record may be NULL. */
const char *sfti_denoiser_part(const sfti_records *records, const sfti_record *of);
sfti_kin sfti_architecture_kin(const sfti_records *records, sft_span a, sft_span b);
/* The record whose layers it has by its rows "sibling", or itself: layers that siblings have prove
 * the group only. */
const sfti_record *sfti_sibling_root(const sfti_records *records, const sfti_record *record);
bool sfti_are_siblings(const sfti_records *records, sft_span a, sft_span b);
/* Whether a model of that architecture uses that VAE or text encoder. UNSURE: it is not known what
 * the model uses; DERIVED: what has the same layers. */
sfti_kin sfti_kin_of_part(const sfti_records *records, sft_span architecture, sfti_word parts,
                          sft_span part);
/* The group of a variant or a family, or empty. */
sft_span sfti_record_group(const sfti_records *records, sfti_record_type type, sft_span id);
/* The nearest of an architecture and its parents that has rows of one of two words, or NULL. */
const sfti_record *sfti_record_with(const sfti_records *records, sft_span architecture, sfti_word a,
                                    sfti_word b);
/* What a model of that architecture predicts where nobody says otherwise; empty: no record is of
 * it. */
sft_span sfti_predicted(const sfti_records *records, sft_span architecture);
/* The branch of an architecture that the name of a base model or checkpoint tells ("PonyXL v6"), or
 * NULL. */
const sfti_record_row *sfti_branch(const sfti_records *records, sft_span label);

#endif
