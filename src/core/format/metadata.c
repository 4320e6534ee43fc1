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
        sfti_report_at(r, code, json->begin + json->start, expected);
    }
    return false;
}

/* What a walk over the pairs counts, or where it puts them. */
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

/* Pairs up to the closing brace. A value that is no string is told once, by the counting
 * walk. */
static bool walk_pairs(sfti_parser *r, sfti_json *json, pair_walk *walk) {
    while (sfti_json_next(json) == SFTI_JSON_KEY) {
        sfti_pair pair;
        pair.key = place_string(r, json, walk);
        if (sfti_json_next(json) != SFTI_JSON_STRING) {
            if (!walk->pairs) metadata_fail(r, json, SFT_METADATA_VALUE, "a string");
            if (r->fatal) return false;
            sfti_json_skip(json);
            continue;
        }
        pair.value = place_string(r, json, walk);
        if (walk->pairs) walk->pairs[walk->count] = pair;
        walk->count++;
    }
    if (json->type == SFTI_JSON_OBJECT_END) return true;
    return metadata_fail(r, json, SFT_OK, NULL);
}

static bool too_many(sfti_parser *r, const sfti_json *json, size_t count) {
    uint64_t most = r->limits->max_metadata ? r->limits->max_metadata : UINT32_MAX - 1;
    if (count <= most) return false;
    metadata_fail(r, json, SFT_TOO_MANY_METADATA, "fewer pairs");
    return true;
}

/* Room for what the first walk counted. */
static bool take_pairs(sfti_parser *r, const pair_walk *counted, pair_walk *kept) {
    memset(kept, 0, sizeof *kept);
    kept->pairs = sfti_arena_array(r->arena, counted->count, sizeof *kept->pairs);
    if (!kept->pairs) return sfti_report_memory(r, counted->count * sizeof *kept->pairs);
    kept->decoded = sfti_arena_take(r->arena, counted->decoded_bytes);
    if (!kept->decoded) return sfti_report_memory(r, counted->decoded_bytes);
    return true;
}

static bool read_pairs(sfti_parser *r, sfti_json *json) {
    sfti_json place = *json;
    pair_walk counted = { NULL, NULL, 0, 0 }, kept;
    if (!walk_pairs(r, json, &counted)) return false;
    if (too_many(r, json, counted.count)) return false;
    if (!take_pairs(r, &counted, &kept)) return false;
    *json = place;
    (void)walk_pairs(r, json, &kept); /* which went well before */
    r->model->has_metadata = true;
    r->model->metadata = kept.pairs;
    r->model->decoded = kept.decoded;
    r->model->metadata_count = kept.count;
    return true;
}

static bool read_metadata_value(sfti_parser *r, sfti_json *json) {
    switch (sfti_json_next(json)) {
    case SFTI_JSON_OBJECT: return read_pairs(r, json);
    case SFTI_JSON_NULL:
        if (r->limits->level == SFT_LEVEL_STRICT)
            return metadata_fail(r, json, SFT_STRICT_METADATA, "an object");
        sfti_remark(r, "metadata_null", json->begin + json->start, NULL,
                    "__metadata__ is null");
        return true;
    default: return metadata_fail(r, json, SFT_METADATA_TYPE, "an object");
    }
}

bool sfti_metadata_read(sfti_parser *r) {
    sfti_json json;
    bool fine;
    sfti_value_begin(r, &json);
    if (r->seen_metadata) {
        json.start = (size_t)(r->lex.at - r->text.data);
        json.type = SFTI_JSON_KEY;
        fine = metadata_fail(r, &json, SFT_METADATA_DUPLICATE, "one __metadata__");
        if (!r->fatal) sfti_json_next(&json);
    } else {
        r->seen_metadata = true;
        fine = read_metadata_value(r, &json);
    }
    while (!r->fatal && json.depth > 1)
        if (sfti_json_next(&json) == SFTI_JSON_ERROR) metadata_fail(r, &json, SFT_OK, NULL);
    r->lex.at = json.at;
    return fine;
}
