/* Reading and writing JSON over json_lex.h: the only reader and writer there are.
 * The reader pulls events with positions, keeps integers integers and fractions text,
 * and builds no tree. Depth is limited to 127; nothing recurses. */
#ifndef SFTI_JSON_H
#define SFTI_JSON_H

#include "base/mem.h"
#include "safetensors.h"

/* ── Reader ── */

typedef enum sfti_json_type {
    SFTI_JSON_ERROR = 0, /* see code, why, error_at; every later call says so again */
    SFTI_JSON_END,       /* the one value and the white space after it are read */
    SFTI_JSON_OBJECT,
    SFTI_JSON_OBJECT_END,
    SFTI_JSON_ARRAY,
    SFTI_JSON_ARRAY_END,
    SFTI_JSON_KEY,
    SFTI_JSON_STRING,
    SFTI_JSON_UINT,   /* value holds it: digits only, up to 2^64 - 1 */
    SFTI_JSON_NUMBER, /* any other legal number: see text */
    SFTI_JSON_TRUE,
    SFTI_JSON_FALSE,
    SFTI_JSON_NULL
} sfti_json_type;

#define SFTI_JSON_DEPTH 127

typedef struct sfti_json {
    const char *begin, *at, *end;
    /* of the last event: */
    sfti_json_type type;
    size_t start;    /* position of its first byte (a string's: the opening quote) */
    sft_span text;   /* as spelled; strings and keys without their quotes */
    bool escaped;    /* text holds escapes: use sfti_json_decode */
    uint64_t value;  /* UINT */
    uint32_t depth;  /* open objects and arrays, after this event */
    /* of a failure: */
    sft_code code;
    const char *why; /* what was expected: "',' or '}'" */
    size_t error_at;
    /* private: */
    uint8_t state;
    uint8_t stack[SFTI_JSON_DEPTH / 8 + 1]; /* a bit a level: 1 = object */
} sfti_json;

/* Text is not checked for UTF-8 here: check it first with sfti_utf8_check. */
void sfti_json_begin(sfti_json *json, const char *text, size_t len);
sfti_json_type sfti_json_next(sfti_json *json);
/* After KEY: skip its value. After OBJECT or ARRAY: skip to its end, whose event
 * becomes the last one. Elsewhere nothing. Returns json->type. */
sfti_json_type sfti_json_skip(sfti_json *json);
/* After ARRAY: take plain integers without events, all but the last at most. The first cap
 * of them go to out; how many there were. Then go on with sfti_json_next. */
uint64_t sfti_json_uints(sfti_json *json, uint64_t *out, uint64_t cap);
/* Whether text is an object, and nothing behind it, whose keys are 1, 2, 3 and so on, as a scrub
 * puts them in the place of names, or that has none. */
bool sfti_json_is_numbered(sft_span text);
/* Unescape text into out (at least text.len bytes); returns the bytes written. */
size_t sfti_json_decode(sft_span text, char *out);
/* The key or string of the last event, in place or decoded into room; as it is spelled if that is
 * longer than room, and so no word that is known. */
#define SFTI_JSON_WORD 240
sft_span sfti_json_word(const sfti_json *json, char room[SFTI_JSON_WORD]);
/* Whether the key or string of the last event is this word, of at most 40 bytes, spelled with
 * escapes or without. */
bool sfti_json_is(const sfti_json *json, const char *word);
/* The string of the last event, in place when it has no escapes, else decoded into
 * the arena. data NULL when out of memory. */
sft_span sfti_json_string(const sfti_json *json, sfti_arena *arena);
/* Whether two texts are the same JSON, however they are spaced; members have an order, and 8.0 is
 * 8. */
bool sfti_json_alike(sft_span a, sft_span b);
/* sfti_fail from the reader's failure; base is added to the position. */
sft_code sfti_json_fail(const sfti_json *json, uint64_t base, sft_error *err);

/* ── Writer ── */

/* Compact JSON into a sink, or values into a tree. The first failure is kept in code and err;
 * what follows does nothing. Commas are the writer's business. */
typedef struct sfti_json_writer {
    sft_sink *sink;
    struct sft_tree *tree; /* not NULL: values go there, and the sink is not used */
    sft_error *err;
    sft_code code;
    uint64_t offset; /* bytes handed to the sink */
    uint32_t depth;
    bool comma;
    size_t used;
    char buffer[4096];
} sfti_json_writer;

void sfti_json_write(sfti_json_writer *w, sft_sink *sink, uint64_t offset, sft_error *err);
/* Into a tree (base/tree.h), texts copied; SFT_OUT_OF_MEMORY is the only failure. */
void sfti_json_write_tree(sfti_json_writer *w, struct sft_tree *tree, sft_error *err);
void sfti_json_open(sfti_json_writer *w, char bracket);  /* '{' or '[' */
void sfti_json_close(sfti_json_writer *w, char bracket); /* '}' or ']' */
void sfti_json_key(sfti_json_writer *w, const char *key);
void sfti_json_key_span(sfti_json_writer *w, sft_span key);
/* A key, and the object or array that is its value, open. */
void sfti_json_put_open(sfti_json_writer *w, const char *key, char bracket);
/* Escapes by JSON's rules, and what sfti_utf8_unsafe tells of as \uXXXX; bytes that are not
 * UTF-8 become U+FFFD. */
void sfti_json_span(sfti_json_writer *w, sft_span text);
void sfti_json_cstr(sfti_json_writer *w, const char *text); /* NULL writes null */
void sfti_json_uint(sfti_json_writer *w, uint64_t value);
void sfti_json_double(sfti_json_writer *w, double value);
void sfti_json_null(sfti_json_writer *w);
/* A key and its value; a span of data NULL and a NULL text write null, and so does
 * _known for UINT64_MAX. */
void sfti_json_put_text(sfti_json_writer *w, const char *key, sft_span text);
void sfti_json_put_cstr(sfti_json_writer *w, const char *key, const char *text);
void sfti_json_put_uint(sfti_json_writer *w, const char *key, uint64_t value);
void sfti_json_put_known(sfti_json_writer *w, const char *key, uint64_t value);
void sfti_json_put_double(sfti_json_writer *w, const char *key, double value);
void sfti_json_put_bool(sfti_json_writer *w, const char *key, bool value);
void sfti_json_put_null(sfti_json_writer *w, const char *key);
void sfti_json_put_shape(sfti_json_writer *w, const char *key, const uint64_t *shape, size_t rank);
/* "path" and, where its bytes are not UTF-8, "path_bytes" with all but RFC 3986's
 * unreserved characters and '/' as %XX. NULL writes null. */
void sfti_json_path(sfti_json_writer *w, const char *path);
/* JSON text of one value, as it is. */
void sfti_json_raw(sfti_json_writer *w, sft_span text);
/* JSON text from a file: without white space, unsafe characters as \uXXXX; null if it is not
 * one JSON value. */
void sfti_json_text(sfti_json_writer *w, sft_span text);
/* Flush to the sink (which stays open) and tell the first failure. */
sft_code sfti_json_done(sfti_json_writer *w);

#endif
