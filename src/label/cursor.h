/* Rows over a cursor: how every convention of producers is read. A table has one row a value; the
 * cursor stands on one value after the other of a JSON or YAML text, or on one pair of
 * __metadata__, and hands it to the rows whose pattern fits its place.
 *
 *   "/files/ * /name"  a JSON pointer without blanks; "*" is any index or key
 *   "ss_seed"         the value of a key of __metadata__
 *   "ot_config:/seed" a place in the JSON text that is the value of a key
 */
#ifndef SFTI_CURSOR_H
#define SFTI_CURSOR_H

#include "label/info.h"

typedef struct sfti_cursor sfti_cursor;
typedef struct sfti_row {
    const char *pattern;
    void (*take)(sfti_cursor *at);
    int field; /* an sft_fact, an sfti_training_key or what take makes of it */
    int trust;
    const char *word; /* for take */
} sfti_row;

#define SFTI_ROWS(table) (table), SFTI_COUNT(table)

struct sfti_cursor {
    sft_info *info;
    sft_span source;     /* "sidecar:x.json" or "header:KEY" */
    const sfti_row *rows;
    const sfti_row *row; /* that takes */
    void *ctx;           /* the caller's */
    sfti_json *json;     /* its last event is the value's first; of a pair and of YAML: STRING */
    sft_span text;       /* STRING: unescaped; else as spelled */
    sft_span key;        /* an array's index lives as long as the visit only */
    bool member;         /* key is of an object, not an index */
    int64_t index;       /* the innermost array index, or -1; 0 for a pair */
    const char *pointer; /* of the value, JSON pointer; "" for a pair */
};

/* Walk a JSON text, which must live as long as info; false if it is not JSON (then nothing
 * is taken) or larger than limits allow. NaN and Infinity, which Python writes, are read as
 * null. At an object or array a row may read on in at->json, or return: the walk goes on. */
bool sfti_info_walk(sft_info *info, sft_span text, sft_span source, const sfti_row *rows,
                    size_t row_count, void *ctx);
/* The same of a YAML text, of which every scalar is a string. */
void sfti_info_yaml(sft_info *info, sft_span text, sft_span source, const sfti_row *rows,
                    size_t row_count, void *ctx);
/* The same of the value of a key of __metadata__; false too if it is not there. */
bool sfti_walk_key(sft_info *info, const char *key, const sfti_row *rows, size_t row_count,
                   void *ctx);
/* "sidecar:x.json:/model/name": the current place as a source; of a pair "header:KEY", of what
 * was asked online "online:civitai" alone. */
sft_span sfti_cursor_source(sfti_cursor *at);
/* The same of what it stands in, so many steps up. */
sft_span sfti_cursor_source_above(sfti_cursor *at, int steps);
/* A string that is no placeholder; a number; a number above 0, also one in a string, else 0;
 * 1 for true, 0 for false, -1 for anything else. */
bool sfti_at_text(const sfti_cursor *at);
bool sfti_at_number(const sfti_cursor *at);
uint64_t sfti_at_uint(const sfti_cursor *at);
int sfti_at_bool(const sfti_cursor *at);
/* A fact told here, with the trust of the row that takes; NULL is none. */
void sfti_put_here(sfti_cursor *at, sft_fact field, const char *text);
void sfti_put_span(sfti_cursor *at, sft_fact field, sft_span text);

/* ── Keys of producers (keys.c) ── */

/* How a value is read, by the name that rows "key" have for it. names: what the word behind it may
 * be, between blanks: field is its number, or, where there are places, that one. Of FACT and
 * TRAINING the word is one of those; of NULL it is none. */
#define SFTI_TAKES_FACT "\1"
#define SFTI_TAKES_TRAINING "\2"
typedef struct sfti_key_take {
    const char *name;
    void (*take)(sfti_cursor *at);
    const char *names;
    const size_t *places;
} sfti_key_take;
typedef struct sfti_key_takes {
    const sfti_key_take *at;
    size_t count;
} sfti_key_takes;
extern const sfti_key_takes sfti_common_takes; /* row_takes.c */

typedef struct sfti_key_rows {
    const sfti_row *rows;
    size_t row_count;
} sfti_key_rows;

/* A record "keys" of data/keys. */
typedef struct sfti_keys {
    const char *id;
    const sfti_key_take *own, *shared; /* takes of this reader alone, and of such readers */
    size_t own_count, shared_count;
    sfti_key_rows *made;
} sfti_keys;
extern const sfti_keys sfti_png_keys; /* png.c */
/* Its rows have a name: of a compound literal clang 22 takes what it began with for constant. */
#define SFTI_KEYS_OF(name, id_, takes) \
    static sfti_key_rows name##_made; \
    const sfti_keys name = { .id = id_, .own = (takes), .own_count = SFTI_COUNT(takes), \
                             .made = &name##_made }
#define SFTI_KEY_ROWS(keys) (keys).made->rows, (keys).made->row_count
/* Fill in its rows: once a process, while nobody reads them. sfti_records_built_in was called.
 * common: further takes, or NULL. */
void sfti_keys_read(const sfti_keys *keys, const sfti_key_takes *common);

/* ── Quantisers (quantisers.c) ── */

/* The quantisation that a configuration declares, a JSON text of those keys, by rows "says" of that
 * producer: with= what must be told beside the word, by= what its name goes on with. What no row
 * has is given as written, if the producer is "quantiser". False if it is no JSON. */
extern const sfti_keys sfti_quantiser_keys, sfti_header_quantiser_keys;
bool sfti_quantiser_declared(sft_info *info, sft_span text, sft_span source,
                             const sfti_keys *keys, sfti_producer producer, int trust);
/* That of modelspec's data_format and special_format, or NULL. */
const char *sfti_map_format(sft_info *info, sft_span text);

/* ── Takes (row_takes.c) ── */

/* Those that other takes are made of; docs/records.md tells of all. */
void sfti_take_fact(sfti_cursor *at);
void sfti_take_item(sfti_cursor *at); /* of the first few hundred elements */
void sfti_take_html(sfti_cursor *at);
void sfti_take_prose(sfti_cursor *at);
void sfti_take_prediction(sfti_cursor *at);
void sfti_take_base_file(sfti_cursor *at);
void sfti_take_declared(sfti_cursor *at); /* field 0: rank, 1: alpha */
void sfti_take_alpha_pattern(sfti_cursor *at); /* alpha of some modules */
void sfti_take_train(sfti_cursor *at);
void sfti_take_trigger(sfti_cursor *at); /* group = index */
void sfti_take_claim(sfti_cursor *at);   /* word: algo */
void sfti_take_note(sfti_cursor *at);
void sfti_take_switch(sfti_cursor *at);  /* field 0: DoRA, 1: rsLoRA */

/* Into the struct that ctx points to; field: offset of a sft_span (the first one stays), of a
 * uint64_t, of an int as sfti_at_bool. */
void sfti_take_slot(sfti_cursor *at);
void sfti_take_slot_uint(sfti_cursor *at);
void sfti_take_slot_bool(sfti_cursor *at);

#endif
