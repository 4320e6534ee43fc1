/* Writes compact JSON into a sink, or the same values into a tree. Tests: test_json.c,
 * test_tree.c. */
#include "base/json.h"

#include "base/error.h"
#include "base/number.h"
#include "base/tree.h"
#include "base/utf8.h"

#include <string.h>

/* ── Writer: bytes ── */

void sfti_json_write(sfti_json_writer *w, sft_sink *sink, uint64_t offset, sft_error *err) {
    w->sink = sink;
    w->tree = NULL;
    w->err = err;
    w->code = SFT_OK;
    w->offset = offset;
    w->depth = 0;
    w->comma = false;
    w->used = 0;
}

void sfti_json_write_tree(sfti_json_writer *w, sft_tree *tree, sft_error *err) {
    sfti_json_write(w, NULL, 0, err);
    w->tree = tree;
}

/* What became of a value given to the tree. */
static void json_noted(sfti_json_writer *w, bool ok) {
    if (!ok && !w->code) w->code = sfti_fail_memory(w->err, 1);
}

static void json_flush(sfti_json_writer *w) {
    if (!w->code && w->used)
        w->code = sft_sink_write(w->sink, w->offset, w->buffer, w->used, w->err);
    w->offset += w->used;
    w->used = 0;
}

static void json_put(sfti_json_writer *w, const char *bytes, size_t len) {
    while (len > 0) {
        size_t part = sizeof w->buffer - w->used;
        if (part > len) part = len;
        memcpy(w->buffer + w->used, bytes, part);
        w->used += part;
        bytes += part;
        len -= part;
        if (w->used == sizeof w->buffer) json_flush(w);
    }
}

/* ── Writer: strings ── */

static void json_unit(uint32_t unit, char out[6]) {
    out[0] = '\\';
    out[1] = 'u';
    sfti_hex_text(unit, 4, out + 2);
}

/* A character as one \uXXXX, or as a pair of them. */
static void json_put_hex(sfti_json_writer *w, uint32_t c) {
    char out[12];
    bool pair = c >= 0x10000;
    json_unit(pair ? 0xD800 + ((c - 0x10000) >> 10) : c, out);
    if (pair) json_unit(0xDC00 + ((c - 0x10000) & 0x3FF), out + 6);
    json_put(w, out, pair ? 12 : 6);
}

/* A character that is not plain ASCII, as it must stand between quotes. */
static void json_put_special(sfti_json_writer *w, uint32_t c, const char *bytes, size_t len) {
    static const char named[] = "\b\t\n\f\r\"\\", letter[] = "btnfr\"\\";
    const char *at = c && c < 0x80 ? strchr(named, (int)c) : NULL;
    if (at) {
        json_put(w, "\\", 1);
        json_put(w, &letter[at - named], 1);
    } else if (sfti_utf8_unsafe(c)) {
        json_put_hex(w, c);
    } else {
        json_put(w, bytes, len);
    }
}

static void json_put_string(sfti_json_writer *w, sft_span text) {
    const char *p = text.len ? text.data : "", *end = p + text.len;
    json_put(w, "\"", 1);
    while (p < end && !w->code) {
        const char *run = p;
        while (p < end && (uint8_t)*p >= 0x20 && (uint8_t)*p < 0x7F && *p != '"' && *p != '\\') p++;
        json_put(w, run, (size_t)(p - run));
        if (p == end) break;
        uint32_t c;
        size_t len = sfti_utf8_decode((const uint8_t *)p, (const uint8_t *)end, &c);
        if (len > 0) json_put_special(w, c, p, len);
        else json_put(w, "\xEF\xBF\xBD", 3);
        p += len ? len : 1;
    }
    json_put(w, "\"", 1);
}

/* ── Writer: values ── */

static void json_before(sfti_json_writer *w) {
    if (w->comma) json_put(w, ",", 1);
    w->comma = true;
}

void sfti_json_open(sfti_json_writer *w, char bracket) {
    if (w->tree) {
        if (!w->code) json_noted(w, sfti_tree_open(w->tree, bracket == '{'));
        return;
    }
    json_before(w);
    json_put(w, &bracket, 1);
    w->depth++;
    w->comma = false;
}

void sfti_json_close(sfti_json_writer *w, char bracket) {
    if (w->tree) {
        if (!w->code) sfti_tree_close(w->tree);
        return;
    }
    json_put(w, &bracket, 1);
    w->depth--;
    w->comma = true;
}

void sfti_json_key_span(sfti_json_writer *w, sft_span key) {
    if (w->tree) {
        if (!w->code) json_noted(w, sfti_tree_key(w->tree, key));
        return;
    }
    json_before(w);
    json_put_string(w, key);
    json_put(w, ":", 1);
    w->comma = false;
}

void sfti_json_key(sfti_json_writer *w, const char *key) {
    sfti_json_key_span(w, sft_span_cstr(key));
}

void sfti_json_raw(sfti_json_writer *w, sft_span text) {
    if (w->tree) {
        if (!w->code) json_noted(w, sfti_tree_raw(w->tree, text));
        return;
    }
    json_before(w);
    json_put(w, text.data, text.len);
}

/* A text, or a value as it is spelled. */
static void json_value(sfti_json_writer *w, sft_node_type type, sft_span text) {
    if (w->tree) {
        if (!w->code) json_noted(w, sfti_tree_put(w->tree, type, text));
        return;
    }
    json_before(w);
    if (type == SFT_NODE_TEXT) json_put_string(w, text);
    else json_put(w, text.data, text.len);
}

void sfti_json_span(sfti_json_writer *w, sft_span text) {
    json_value(w, SFT_NODE_TEXT, text);
}

void sfti_json_cstr(sfti_json_writer *w, const char *text) {
    if (text) json_value(w, SFT_NODE_TEXT, sft_span_cstr(text));
    else sfti_json_null(w);
}

void sfti_json_uint(sfti_json_writer *w, uint64_t value) {
    char digits[SFTI_UINT_SIZE];
    json_value(w, SFT_NODE_NUMBER, (sft_span){ digits, sfti_uint_text(value, 0, digits) });
}

void sfti_json_null(sfti_json_writer *w) {
    json_value(w, SFT_NODE_NULL, sft_span_cstr("null"));
}

/* ── Writer: a key and its value ── */

void sfti_json_put_text(sfti_json_writer *w, const char *key, sft_span text) {
    sfti_json_key_span(w, sft_span_cstr(key));
    json_value(w, text.data ? SFT_NODE_TEXT : SFT_NODE_NULL,
               text.data ? text : sft_span_cstr("null"));
}

void sfti_json_put_cstr(sfti_json_writer *w, const char *key, const char *text) {
    sfti_json_put_text(w, key, sft_span_cstr(text));
}

void sfti_json_put_uint(sfti_json_writer *w, const char *key, uint64_t value) {
    sfti_json_key_span(w, sft_span_cstr(key));
    sfti_json_uint(w, value);
}

void sfti_json_put_known(sfti_json_writer *w, const char *key, uint64_t value) {
    if (value == UINT64_MAX) sfti_json_put_null(w, key);
    else sfti_json_put_uint(w, key, value);
}

void sfti_json_double(sfti_json_writer *w, double value) {
    char digits[SFTI_DOUBLE_SIZE];
    sfti_json_raw(w, (sft_span){ digits, sfti_double_text(value, digits) });
}

void sfti_json_put_double(sfti_json_writer *w, const char *key, double value) {
    sfti_json_key_span(w, sft_span_cstr(key));
    sfti_json_double(w, value);
}

void sfti_json_put_bool(sfti_json_writer *w, const char *key, bool value) {
    sfti_json_key_span(w, sft_span_cstr(key));
    json_value(w, SFT_NODE_BOOL, sft_span_cstr(value ? "true" : "false"));
}

void sfti_json_put_null(sfti_json_writer *w, const char *key) {
    sfti_json_key_span(w, sft_span_cstr(key));
    sfti_json_null(w);
}

void sfti_json_put_shape(sfti_json_writer *w, const char *key, const uint64_t *shape,
                         size_t rank) {
    sfti_json_key_span(w, sft_span_cstr(key));
    sfti_json_open(w, '[');
    for (size_t d = 0; d < rank; d++) sfti_json_uint(w, shape[d]);
    sfti_json_close(w, ']');
}

void sfti_json_put_open(sfti_json_writer *w, const char *key, char bracket) {
    sfti_json_key_span(w, sft_span_cstr(key));
    sfti_json_open(w, bracket);
}

/* ── Writer: paths ── */

/* Byte as it stands in a percent-encoded path: at most 3 bytes to out. */
static size_t json_percent(uint8_t byte, char out[3]) {
    static const char digits[] = "0123456789ABCDEF";
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
                                "-._~/";
    out[0] = (char)byte;
    if (strchr(plain, (char)byte)) return 1; /* no NUL is in a path */
    out[0] = '%';
    out[1] = digits[byte >> 4];
    out[2] = digits[byte & 15];
    return 3;
}

void sfti_json_path(sfti_json_writer *w, const char *path) {
    sfti_json_put_cstr(w, "path", path);
    if (!path || sfti_utf8_check(path, strlen(path)) == strlen(path)) return;
    sfti_json_key_span(w, sft_span_cstr("path_bytes"));
    if (!w->tree) {
        char piece[3];
        json_before(w);
        json_put(w, "\"", 1);
        for (; *path; path++) json_put(w, piece, json_percent((uint8_t)*path, piece));
        json_put(w, "\"", 1);
    } else if (!w->code) {
        size_t cap = strlen(path), len = 0;
        char *text = sfti_arena_array(&w->tree->arena, cap, 3);
        for (; text && *path; path++) len += json_percent((uint8_t)*path, text + len);
        json_noted(w, text && sfti_tree_put(w->tree, SFT_NODE_TEXT, (sft_span){ text, len }));
    }
}

/* ── JSON from a file ── */

/* Without white space, and with \uXXXX for what must not stand in strings as it is. */
static void json_put_compact(sfti_json_writer *w, sft_span text) {
    bool string = false;
    const char *p = text.data, *end = p + text.len;
    while (p < end && !w->code) {
        uint32_t c = (uint8_t)*p;
        size_t len = c < 0x80 ? 1 : sfti_utf8_decode((const uint8_t *)p, (const uint8_t *)end, &c);
        bool blank = !string && (c == ' ' || c == '\n' || c == '\r' || c == '\t');
        if (string && c == '\\') len = 2;
        else if (c == '"') string = !string;
        if (c >= 0x7F && sfti_utf8_unsafe(c)) json_put_hex(w, c);
        else if (!blank) json_put(w, p, len);
        p += len;
    }
}

void sfti_json_text(sfti_json_writer *w, sft_span text) {
    sfti_json json;
    bool whole = text.len > 0 && sfti_utf8_check(text.data, text.len) == text.len;
    if (whole) {
        sfti_json_begin(&json, text.data, text.len);
        sfti_json_next(&json);
        sfti_json_skip(&json);
        whole = json.type != SFTI_JSON_ERROR && sfti_json_next(&json) == SFTI_JSON_END;
    }
    if (!whole) {
        sfti_json_null(w);
    } else if (w->tree) {
        sfti_json_raw(w, text);
    } else {
        json_before(w);
        json_put_compact(w, text);
    }
}

sft_code sfti_json_done(sfti_json_writer *w) {
    if (!w->tree) json_flush(w);
    return w->code;
}
