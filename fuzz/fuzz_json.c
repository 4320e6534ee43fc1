/* The JSON reader: event by event, and jumping over values (a different walk of the same
 * grammar) must agree; what is read and written again reads the same. */
#include "base/json.h"
#include "base/utf8.h"
#include "fuzz.h"

#include <string.h>

static void skip_all(const char *text, size_t size, sfti_json *json) {
    sfti_json_begin(json, text, size);
    while (sfti_json_next(json) > SFTI_JSON_END) {
        if (json->type == SFTI_JSON_OBJECT || json->type == SFTI_JSON_ARRAY) sfti_json_skip(json);
        if (json->type == SFTI_JSON_ERROR) return;
    }
}

/* Enter the outermost value only, and jump over each member's value. */
static void skip_members(const char *text, size_t size, sfti_json *json) {
    sfti_json_begin(json, text, size);
    while (sfti_json_next(json) > SFTI_JSON_END)
        if (json->type == SFTI_JSON_KEY && sfti_json_skip(json) == SFTI_JSON_ERROR) return;
}

/* Copy the event to the writer; false at the end. */
static bool copy_event(const sfti_json *json, sfti_json_writer *w, char *buffer) {
    sft_span s = { buffer, 0 };
    if (json->type == SFTI_JSON_KEY || json->type == SFTI_JSON_STRING) {
        s.len = sfti_json_decode(json->text, buffer);
        FUZZ_CHECK(s.len <= json->text.len && sfti_utf8_check(buffer, s.len) == s.len);
        FUZZ_CHECK(json->escaped || sft_span_equal(s, json->text));
    }
    switch (json->type) {
    case SFTI_JSON_OBJECT: sfti_json_open(w, '{'); return true;
    case SFTI_JSON_OBJECT_END: sfti_json_close(w, '}'); return true;
    case SFTI_JSON_ARRAY: sfti_json_open(w, '['); return true;
    case SFTI_JSON_ARRAY_END: sfti_json_close(w, ']'); return true;
    case SFTI_JSON_KEY: sfti_json_key_span(w, s); return true;
    case SFTI_JSON_STRING: sfti_json_span(w, s); return true;
    case SFTI_JSON_UINT: sfti_json_uint(w, json->value); return true;
    case SFTI_JSON_NUMBER: sfti_json_raw(w, json->text); return true;
    case SFTI_JSON_TRUE: sfti_json_raw(w, sft_span_cstr("true")); return true;
    case SFTI_JSON_FALSE: sfti_json_raw(w, sft_span_cstr("false")); return true;
    case SFTI_JSON_NULL: sfti_json_null(w); return true;
    case SFTI_JSON_END:
    case SFTI_JSON_ERROR: return false;
    }
    return false;
}

/* Reads all; what was read is in *out, compact. */
static void copy_all(const char *text, size_t size, sfti_json *json, sft_buffer *out) {
    char *buffer = malloc(size + 1);
    sfti_json_writer w;
    sft_sink sink = sft_sink_memory(out);
    sfti_json_write(&w, &sink, 0, NULL);
    sfti_json_begin(json, text, size);
    while (buffer && sfti_json_next(json) && copy_event(json, &w, buffer))
        FUZZ_CHECK(json->depth <= SFTI_JSON_DEPTH && json->start < size);
    FUZZ_CHECK(buffer && !sfti_json_done(&w) && !sft_sink_finish(&sink, NULL));
    free(buffer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    const char *text = (const char *)data;
    if (sfti_utf8_check(text, size) != size) return 0;
    sfti_json each, other;
    sft_buffer once = { 0 }, twice = { 0 };
    copy_all(text, size, &each, &once);
    for (int i = 0; i < 2; i++) {
        (i ? skip_members : skip_all)(text, size, &other);
        FUZZ_CHECK(each.type == other.type && each.code == other.code);
        FUZZ_CHECK(each.type || (each.error_at <= size && each.error_at == other.error_at));
        FUZZ_CHECK(each.type || sfti_json_next(&other) == SFTI_JSON_ERROR);
    }
    if (each.type) {
        copy_all(once.data, once.len, &other, &twice);
        FUZZ_CHECK(other.type == SFTI_JSON_END && once.len == twice.len);
        FUZZ_CHECK(!memcmp(once.data, twice.data, once.len));
    }
    sft_buffer_free(&once);
    sft_buffer_free(&twice);
    return 0;
}
