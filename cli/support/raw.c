#include "support/raw.h"

#include "base/utf8.h"
#include "support/words.h"

#include <string.h>

bool cli_raw_check(sft_span text) {
    sfti_json json;
    if (sfti_utf8_check(text.data, text.len) != text.len) return false;
    sfti_json_begin(&json, text.data, text.len);
    sfti_json_next(&json);
    sfti_json_skip(&json);
    return json.type != SFTI_JSON_ERROR && sfti_json_next(&json) == SFTI_JSON_END;
}

void cli_raw_begin(cli_raw *raw, sft_span text) {
    memset(raw, 0, sizeof *raw);
    raw->key = raw->value = (sft_span){ "", 0 };
    sfti_json_begin(&raw->json, text.data, text.len);
    sfti_json_next(&raw->json);
}

bool cli_raw_next(cli_raw *raw) {
    sfti_json *json = &raw->json;
    if (json->depth == 0) return false;
    sfti_json_next(json);
    if (json->type == SFTI_JSON_KEY) {
        raw->key = json->text;
        sfti_json_next(json);
    }
    if (json->type <= SFTI_JSON_END || json->depth == 0) return false;
    const char *start = json->begin + json->start;
    sfti_json_skip(json);
    if (json->type == SFTI_JSON_ERROR) return false;
    raw->value = (sft_span){ start, (size_t)(json->at - start) };
    return true;
}

bool cli_raw_member(sft_span object, const char *key, sft_span *value) {
    cli_raw raw;
    if (object.len == 0 || *object.data != '{') return false;
    for (cli_raw_begin(&raw, object); cli_raw_next(&raw);) {
        if (!cli_is(raw.key, key)) continue;
        *value = raw.value;
        return true;
    }
    return false;
}

bool cli_raw_uint(sft_span object, const char *key, uint64_t *value) {
    sfti_json json;
    sft_span text;
    if (!cli_raw_member(object, key, &text)) return false;
    sfti_json_begin(&json, text.data, text.len);
    if (sfti_json_next(&json) != SFTI_JSON_UINT) return false;
    *value = json.value;
    return true;
}

bool cli_raw_string(sft_span object, const char *key, sft_span *value) {
    sft_span text;
    if (!cli_raw_member(object, key, &text) || text.len < 2 || *text.data != '"') return false;
    if (memchr(text.data, '\\', text.len)) return false;
    *value = (sft_span){ text.data + 1, text.len - 2 };
    return true;
}

void cli_raw_write(sfti_json_writer *w, sft_span key, sft_span value) {
    sfti_json_raw(w, sft_span_cstr("\""));
    w->comma = false;
    sfti_json_raw(w, key);
    w->comma = false;
    sfti_json_raw(w, sft_span_cstr("\":"));
    w->comma = false;
    sfti_json_raw(w, value);
}
