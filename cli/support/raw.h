/* JSON text looked at in place: members and elements as they are spelled. Nothing is built,
 * so a text of any size costs its length. */
#ifndef CLI_RAW_H
#define CLI_RAW_H

#include "base/json.h"
#include "support/print.h"

/* Whether the text is one JSON value in UTF-8. All else here takes such a text or a part. */
bool cli_raw_check(sft_span text);

typedef struct cli_raw {
    sfti_json json;
    sft_span key;   /* of a member, as spelled without quotes; else empty */
    sft_span value; /* as spelled, strings with their quotes */
} cli_raw;

/* Go through an object or array; of anything else there is nothing in it. */
void cli_raw_begin(cli_raw *raw, sft_span text);
bool cli_raw_next(cli_raw *raw);

/* The first member of that name; false when there is none or the text is no object. */
bool cli_raw_member(sft_span object, const char *key, sft_span *value);
/* The same of a member that is a whole number, or a string without escapes. */
bool cli_raw_uint(sft_span object, const char *key, uint64_t *value);
bool cli_raw_string(sft_span object, const char *key, sft_span *value);

/* The same of any string, unescaped; one with escapes is in the arena. */
bool cli_raw_text(sft_span object, const char *key, sfti_arena *arena, sft_span *value);

/* Objects within one another that the two functions below tell apart; what is deeper is one
 * value. */
#define CLI_RAW_LEVELS 4
/* Write `over`, then those members of `under` that it lacks and keep() allows (NULL: all); where
 * both have an object under the same key, likewise with these. */
typedef bool cli_raw_keep(sft_span key, sft_span value);
void cli_raw_merge(sfti_json_writer *w, sft_span under, sft_span over, cli_raw_keep *keep);
/* Whether two keys are the same, whichever way they are spelled (those of more than 512 bytes: if
 * they are spelled alike). */
bool cli_raw_is_key(sft_span a, sft_span b);
/* A member by its key; whether it has that value. */
bool cli_raw_find(sft_span object, sft_span key, sft_span *value);
bool cli_raw_has(sft_span object, sft_span key, sft_span value);
/* Whether cli_raw_merge would change nothing of `under` but its order. */
bool cli_raw_covers(sft_span under, sft_span over);

/* A member as it was found, into an object that is being written. */
void cli_raw_write(sfti_json_writer *w, sft_span key, sft_span value);

/* ── On indented lines ── */

/* Write a JSON text as it is spelled but for white space: members and elements on lines of their
 * own, `indent` spaces before the first level; escaped for a terminal. text must be valid
 * (cli_raw_check). */
void cli_pretty(cli_out *out, sft_span text, size_t indent);
/* Whether a text is an object or array worth that. */
bool cli_is_pretty(sft_span text);

#endif
