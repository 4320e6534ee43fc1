#include "format/header.h"

#include "base/checked.h"
#include "base/error.h"

#include <string.h>

static bool metadata_fail(sfti_reading *r, const sfti_json *json, sft_code code,
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

/* Pairs up to the closing brace: counted, and kept where there is room for them. A value
 * that is no string is told once, by the counting walk. */
static bool walk_pairs(sfti_reading *r, sfti_json *json, sft_pair *pairs, size_t *count) {
    for (*count = 0; sfti_json_next(json) == SFTI_JSON_KEY;) {
        sft_pair pair = { { NULL, 0 }, { NULL, 0 } };
        if (pairs) pair.key = sfti_decoded(r, json->text, json->escaped);
        if (sfti_json_next(json) != SFTI_JSON_STRING) {
            if (!pairs) metadata_fail(r, json, SFT_METADATA_VALUE, "a string");
            if (r->fatal) return false;
            sfti_json_skip(json);
            continue;
        }
        if (pairs) {
            pair.value = sfti_decoded(r, json->text, json->escaped);
            if (!pair.key.data || !pair.value.data) return false;
            pairs[*count] = pair;
        }
        ++*count;
    }
    return json->type == SFTI_JSON_OBJECT_END || metadata_fail(r, json, SFT_OK, NULL);
}

static bool too_many(sfti_reading *r, const sfti_json *json, size_t count) {
    uint64_t most = r->limits->max_metadata ? r->limits->max_metadata : UINT32_MAX - 1;
    if (count <= most) return false;
    metadata_fail(r, json, SFT_TOO_MANY_METADATA, "fewer pairs");
    return true;
}

static bool read_pairs(sfti_reading *r, sfti_json *json) {
    sfti_json place = *json;
    uint64_t bytes;
    size_t count;
    if (!walk_pairs(r, json, NULL, &count)) return false;
    if (too_many(r, json, count)) return false;
    if (!sfti_mul(count, sizeof(sft_pair), &bytes) || !sfti_fits_size(bytes))
        return sfti_report_memory(r, UINT64_MAX);
    sft_pair *pairs = sfti_arena_take(r->arena, (size_t)bytes + 1);
    if (!pairs) return sfti_report_memory(r, bytes);
    *json = place;
    r->model->metadata = pairs;
    r->model->has_metadata = true;
    return walk_pairs(r, json, pairs, &r->model->metadata_count);
}

static bool read_metadata_value(sfti_reading *r, sfti_json *json) {
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

bool sfti_metadata_read(sfti_reading *r) {
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
