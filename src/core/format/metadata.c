/* Reads __metadata__. Tests: test_header.c. */
#include "format/header.h"

#include "base/error.h"

#include <string.h>

static bool metadata_fail(sfti_parser *r, const sfti_json *json, sft_code code,
                          const char *expected) {
    if (json->type == SFTI_JSON_ERROR) {
        sft_error error;
        sfti_json_fail(json, SFTI_PREFIX, &error);
        sfti_report(r, &error);
        r->fatal = true;
    } else {
        sfti_report_at(r, code, json->begin + json->start, NULL, expected);
    }
    return false;
}

/* What the first walk over the pairs counts, and where the second puts them. */
typedef struct pair_walk {
    sfti_pair *pairs; /* NULL: only count */
    char *decoded;
    size_t count, decoded_bytes;
} pair_walk;

/* The place of the last event's string, decoded if it has escapes. An escape is longer than
 * what it stands for, so that places of decoded strings stay below 2^31, lengths and all. */
static uint32_t place_string(sfti_parser *r, const sfti_json *json, pair_walk *walk) {
    if (!json->escaped) return (uint32_t)(json->text.data - r->text.data);
    uint32_t place = (uint32_t)walk->decoded_bytes, len = (uint32_t)json->text.len;
    if (walk->decoded) {
        char *at = walk->decoded + place;
        len = (uint32_t)sfti_json_decode(json->text, at + sizeof len);
        memcpy(at, &len, sizeof len);
    }
    walk->decoded_bytes += sizeof len + len;
    return place | SFTI_DECODED;
}

/* Pairs up to the closing brace. A value that is no string is told once, by the counting walk; the
 * second walk fails nowhere. */
static bool read_pairs(sfti_parser *r, sfti_json *json) {
    uint64_t most = r->limits->max_metadata ? r->limits->max_metadata : UINT32_MAX - 1;
    sfti_json begin = *json;
    pair_walk walk = { NULL, NULL, 0, 0 };
    for (;;) {
        while (sfti_json_next(json) == SFTI_JSON_KEY) {
            sfti_pair pair;
            pair.key = place_string(r, json, &walk);
            if (sfti_json_next(json) != SFTI_JSON_STRING) {
                if (!walk.pairs) metadata_fail(r, json, SFT_METADATA_VALUE, "a string");
                if (r->fatal) return false;
                sfti_json_skip(json);
                continue;
            }
            pair.value = place_string(r, json, &walk);
            if (walk.pairs) walk.pairs[walk.count] = pair;
            walk.count++;
        }
        if (json->type != SFTI_JSON_OBJECT_END) return metadata_fail(r, json, SFT_OK, NULL);
        if (walk.pairs) break;
        if (walk.count > most)
            return metadata_fail(r, json, SFT_TOO_MANY_METADATA, "fewer pairs");
        walk.pairs = sfti_arena_array(r->arena, walk.count, sizeof *walk.pairs);
        if (!walk.pairs) return sfti_report_memory(r, walk.count * sizeof *walk.pairs);
        walk.decoded = sfti_arena_array(r->arena, walk.decoded_bytes, 1);
        if (!walk.decoded) return sfti_report_memory(r, walk.decoded_bytes);
        walk.count = walk.decoded_bytes = 0;
        *json = begin;
    }
    r->model->has_metadata = true;
    r->model->metadata = walk.pairs;
    r->model->decoded = walk.decoded;
    r->model->metadata_count = walk.count;
    return true;
}

bool sfti_metadata_read(sfti_parser *r) {
    sfti_json json;
    bool fine = true;
    sfti_value_begin(r, &json);
    if (r->seen_metadata) {
        json.start = (size_t)(r->lex.at - r->text.data);
        json.type = SFTI_JSON_KEY;
        fine = metadata_fail(r, &json, SFT_METADATA_DUPLICATE, "one __metadata__");
        if (!r->fatal) sfti_json_next(&json);
    } else {
        r->seen_metadata = true;
        sfti_json_type type = sfti_json_next(&json);
        if (type == SFTI_JSON_OBJECT)
            fine = read_pairs(r, &json);
        else if (type != SFTI_JSON_NULL)
            fine = metadata_fail(r, &json, SFT_METADATA_TYPE, "an object");
        else if (r->limits->level == SFT_LEVEL_STRICT)
            fine = metadata_fail(r, &json, SFT_STRICT_METADATA, "an object");
        else
            sfti_remark(r, "metadata_null", json.begin + json.start, NULL,
                        "__metadata__ is null");
    }
    while (!r->fatal && json.depth > 1)
        if (sfti_json_next(&json) == SFTI_JSON_ERROR) metadata_fail(r, &json, SFT_OK, NULL);
    r->lex.at = json.at;
    return fine;
}
