/* Reads JSON as events with positions, over json_lex.h. Tests: test_json.c. */
#include "base/json.h"

#include "base/error.h"
#include "base/json_lex.h"
#include "base/utf8.h"

#include <string.h>

/* ── Reader: states ── */

enum {
    JSON_AT_VALUE,  /* a value must come */
    JSON_AT_ARRAY,  /* after '[' */
    JSON_AT_OBJECT, /* after '{' */
    JSON_AT_COLON,  /* after a key */
    JSON_AFTER,     /* after a value */
    JSON_STOPPED    /* at the end, or failed */
};

static sfti_json_type json_stop(sfti_json *json, const sfti_lex *lex) {
    json->state = JSON_STOPPED;
    json->type = SFTI_JSON_ERROR;
    json->code = lex->code;
    json->why = lex->why;
    json->error_at = (size_t)(lex->at - json->begin);
    return json->type;
}

static sfti_json_type json_wrong(sfti_json *json, sfti_lex *lex, sft_code code,
                                 const char *why) {
    sfti_lex_fail(lex, code, why);
    return json_stop(json, lex);
}

static sfti_json_type json_event(sfti_json *json, const sfti_lex *lex, sfti_json_type type,
                                 const char *from, uint8_t state) {
    json->at = lex->at;
    json->type = type;
    json->start = (size_t)(from - json->begin);
    json->text.data = from;
    json->text.len = (size_t)(lex->at - from);
    json->escaped = false;
    json->state = state;
    return type;
}

#define json_in_object(json) \
    ((json)->stack[((json)->depth - 1) / 8] >> (((json)->depth - 1) % 8) & 1)

static bool json_push(sfti_json *json, sfti_lex *lex, bool object) {
    uint32_t level = json->depth;
    if (level == SFTI_JSON_DEPTH)
        return sfti_lex_fail(lex, SFT_JSON_DEPTH, "nesting at most 127 deep");
    uint8_t bit = (uint8_t)(1u << (level % 8));
    uint8_t *byte = &json->stack[level / 8];
    *byte = (uint8_t)(object ? *byte | bit : *byte & ~bit);
    json->depth++;
    lex->at++;
    return true;
}

/* ── Reader: public to the library ── */

void sfti_json_begin(sfti_json *json, const char *text, size_t len) {
    memset(json, 0, sizeof *json);
    json->begin = json->at = text;
    json->end = len > 0 ? text + len : text; /* NULL is no text at all */
    json->type = SFTI_JSON_NULL;
    json->state = JSON_AT_VALUE;
}

sfti_json_type sfti_json_next(sfti_json *json) {
    if (json->state == JSON_STOPPED) return json->type;
    sfti_lex lex = { json->at, json->end, SFT_OK, NULL };
    char c = sfti_lex_space(&lex);
    bool object = json->state == JSON_AT_OBJECT, key = object;
    bool closes = json->state == JSON_AT_ARRAY && c == ']';
    if (json->state == JSON_AT_COLON) {
        if (c != ':') return json_wrong(json, &lex, SFT_JSON_SYNTAX, "':'");
        lex.at++;
        c = sfti_lex_space(&lex);
    } else if (json->state == JSON_AFTER) {
        if (json->depth == 0 && lex.at == lex.end)
            return json_event(json, &lex, SFTI_JSON_END, lex.at, JSON_STOPPED);
        if (json->depth == 0)
            return json_wrong(json, &lex, SFT_JSON_TRAILING,
                              "nothing but white space after the value");
        object = json_in_object(json);
        closes = c == (object ? '}' : ']');
        if (c != ',' && !closes)
            return json_wrong(json, &lex, SFT_JSON_SYNTAX, object ? "',' or '}'" : "',' or ']'");
        key = object;
        if (!closes) {
            lex.at++;
            c = sfti_lex_space(&lex);
        }
    } else if (object) {
        closes = c == '}';
    }
    if (closes) {
        json->depth--;
        lex.at++;
        return json_event(json, &lex, object ? SFTI_JSON_OBJECT_END : SFTI_JSON_ARRAY_END,
                          lex.at - 1, JSON_AFTER);
    }
    if (key && c != '"') return json_wrong(json, &lex, SFT_JSON_SYNTAX, "a key in quotes");

    /* A key or a value. */
    const char *from = lex.at;
    sft_span text;
    bool fine, escaped, is_uint = false;
    uint64_t value = 0;
    sfti_json_type type = c == 't' ? SFTI_JSON_TRUE : c == 'f' ? SFTI_JSON_FALSE : SFTI_JSON_NULL;
    switch (c) {
    case '"':
        if (!sfti_lex_string(&lex, &text, &escaped)) return json_stop(json, &lex);
        json_event(json, &lex, key ? SFTI_JSON_KEY : SFTI_JSON_STRING, from,
                   key ? JSON_AT_COLON : JSON_AFTER);
        json->text = text;
        json->escaped = escaped;
        return json->type;
    case '{':
    case '[':
        if (!json_push(json, &lex, c == '{')) return json_stop(json, &lex);
        return json_event(json, &lex, c == '{' ? SFTI_JSON_OBJECT : SFTI_JSON_ARRAY, from,
                          c == '{' ? JSON_AT_OBJECT : JSON_AT_ARRAY);
    case 't': fine = sfti_lex_literal(&lex, "true", 4); break;
    case 'f': fine = sfti_lex_literal(&lex, "false", 5); break;
    case 'n': fine = sfti_lex_literal(&lex, "null", 4); break;
    default:
        if (!sfti_lex_digit(c) && c != '-')
            return json_wrong(json, &lex, SFT_JSON_SYNTAX, "a JSON value");
        fine = sfti_lex_number(&lex, &is_uint, &value);
        if (fine) json->value = is_uint ? value : 0;
        type = is_uint ? SFTI_JSON_UINT : SFTI_JSON_NUMBER;
    }
    return fine ? json_event(json, &lex, type, from, JSON_AFTER) : json_stop(json, &lex);
}

uint64_t sfti_json_uints(sfti_json *json, uint64_t *out, uint64_t cap) {
    if (json->state != JSON_AT_ARRAY) return 0;
    sfti_lex lex = { json->at, json->end, SFT_OK, NULL };
    uint64_t count = sfti_lex_integers(&lex, out, cap);
    if (count > 0) {
        json->at = lex.at;
        json->state = JSON_AT_VALUE;
    }
    return count;
}

/* ── Reader: passing over values without events ── */

static bool pass_string(sfti_lex *lex) {
    sft_span text;
    bool escaped;
    return sfti_lex_string(lex, &text, &escaped);
}

static bool pass_scalar(sfti_lex *lex, char c) {
    bool is_uint;
    uint64_t value;
    if (sfti_lex_short_integer(lex)) return true;
    if (sfti_lex_digit(c) || c == '-') return sfti_lex_number(lex, &is_uint, &value);
    switch (c) {
    case '"': return pass_string(lex);
    case 't': return sfti_lex_literal(lex, "true", 4);
    case 'f': return sfti_lex_literal(lex, "false", 5);
    case 'n': return sfti_lex_literal(lex, "null", 4);
    default: return sfti_lex_fail(lex, SFT_JSON_SYNTAX, "a JSON value");
    }
}

static bool pass_key(sfti_lex *lex) {
    if (sfti_lex_peek(lex) != '"')
        return sfti_lex_fail(lex, SFT_JSON_SYNTAX, "a key in quotes");
    if (!pass_string(lex)) return false;
    if (sfti_lex_space(lex) != ':') return sfti_lex_fail(lex, SFT_JSON_SYNTAX, "':'");
    lex->at++;
    sfti_lex_space(lex);
    return true;
}

/* From after an opening bracket to after the bracket that closes it. */
static bool pass_container(sfti_json *json, sfti_lex *lex) {
    uint32_t outside = json->depth - 1;
    bool object = json_in_object(json), fresh = true;
    for (;;) {
        char c = sfti_lex_space(lex);
        if (c == (object ? '}' : ']')) {
            lex->at++;
            if (--json->depth == outside) return true;
            object = json_in_object(json);
            fresh = false;
            continue;
        }
        if (!fresh) {
            if (c != ',')
                return sfti_lex_fail(lex, SFT_JSON_SYNTAX, object ? "',' or '}'" : "',' or ']'");
            lex->at++;
            sfti_lex_space(lex);
        }
        if (object && !pass_key(lex)) return false;
        if (!object) (void)sfti_lex_integers(lex, NULL, 0);
        c = sfti_lex_peek(lex);
        fresh = c == '{' || c == '[';
        if (fresh) object = c == '{';
        if (fresh ? !json_push(json, lex, object) : !pass_scalar(lex, c)) return false;
    }
}

sfti_json_type sfti_json_skip(sfti_json *json) {
    if (json->type == SFTI_JSON_KEY) sfti_json_next(json);
    bool object = json->type == SFTI_JSON_OBJECT;
    if (!object && json->type != SFTI_JSON_ARRAY) return json->type;
    sfti_lex lex = { json->at, json->end, SFT_OK, NULL };
    if (!pass_container(json, &lex)) return json_stop(json, &lex);
    return json_event(json, &lex, object ? SFTI_JSON_OBJECT_END : SFTI_JSON_ARRAY_END,
                      lex.at - 1, JSON_AFTER);
}

/* ── Reader: strings ── */

static char json_escape_char(char c) {
    switch (c) {
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return c;
    }
}

bool sfti_json_is_numbered(sft_span text) {
    sfti_json json;
    uint64_t number = 0;
    sfti_json_begin(&json, text.data, text.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return false;
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        uint64_t value = 0;
        for (size_t i = 0; i < json.text.len; i++) {
            char c = json.text.data[i];
            if (c < '0' || c > '9' || i > 8) return false;
            value = value * 10 + (uint64_t)(c - '0');
        }
        if (value != ++number) return false;
        (void)sfti_json_skip(&json);
    }
    return json.type == SFTI_JSON_OBJECT_END && sfti_json_next(&json) == SFTI_JSON_END;
}

size_t sfti_json_decode(sft_span text, char *out) {
    const char *p = text.data, *end = p + text.len;
    char *to = out;
    while (p < end) {
        if (*p != '\\') {
            *to++ = *p++;
        } else if (p[1] != 'u') {
            *to++ = json_escape_char(p[1]);
            p += 2;
        } else {
            to += sfti_utf8_encode((uint32_t)sfti_lex_unicode(p + 2, end, &p), to);
        }
    }
    return (size_t)(to - out);
}

/* An escape is of six bytes at most for each that it stands for. */
sft_span sfti_json_word(const sfti_json *json, char room[SFTI_JSON_WORD]) {
    if (!json->escaped || json->text.len > SFTI_JSON_WORD) return json->text;
    return (sft_span){ room, sfti_json_decode(json->text, room) };
}

bool sfti_json_is(const sfti_json *json, const char *word) {
    char room[SFTI_JSON_WORD];
    if (json->type != SFTI_JSON_KEY && json->type != SFTI_JSON_STRING) return false;
    return sft_span_equal(sfti_json_word(json, room), sft_span_cstr(word));
}

sft_span sfti_json_string(const sfti_json *json, sfti_arena *arena) {
    if (!json->escaped) return json->text;
    char *out = sfti_arena_take(arena, json->text.len);
    if (!out) return (sft_span){ NULL, 0 };
    return (sft_span){ out, sfti_json_decode(json->text, out) };
}

/* "8.0" is 8. */
static sft_span token_of(const sfti_json *json) {
    sft_span text = json->text;
    bool zero = json->type == SFTI_JSON_NUMBER && text.len > 2
             && memcmp(text.data + text.len - 2, ".0", 2) == 0;
    if (zero) text.len -= 2;
    return text;
}

bool sfti_json_alike(sft_span a, sft_span b) {
    sfti_json x, y;
    sfti_json_begin(&x, a.data, a.len);
    sfti_json_begin(&y, b.data, b.len);
    do {
        sfti_json_next(&x);
        sfti_json_next(&y);
        bool numbers = (x.type == SFTI_JSON_UINT || x.type == SFTI_JSON_NUMBER)
                    && (y.type == SFTI_JSON_UINT || y.type == SFTI_JSON_NUMBER);
        if ((x.type != y.type && !numbers) || x.type == SFTI_JSON_ERROR
            || !sft_span_equal(token_of(&x), token_of(&y)))
            return false;
    } while (x.type != SFTI_JSON_END);
    return true;
}

sft_code sfti_json_fail(const sfti_json *json, uint64_t base, sft_error *err) {
    sft_span text = { json->begin, (size_t)(json->end - json->begin) };
    return sfti_fail_at(err, json->code, base, text, json->error_at, json->why);
}
