/* Headers that are lists with parameters. Tests: test_remote_answer.c. */
#include "remote/http/answer.h"

#include "base/utf8.h"
#include "remote/http/text.h"

#include <string.h>

#define LIMIT_MOST_S 1000000000

/* ── Lists: items apart by commas, their parameters by semicolons ── */

/* Take the text before one of `ends` that stands outside of quotes and <>, trimmed; *end is what
 * stood there, or NUL. False: *rest is used up. */
static bool take_list_text(sft_span *rest, const char *ends, sft_span *out, char *end) {
    size_t at = 0;
    char until = '\0';
    if (!rest->data) return false;
    for (; at < rest->len; at++) {
        char c = rest->data[at];
        if (until == '"' && c == '\\') at++;
        else if (until) until = c == until ? '\0' : until;
        else if (c == '"') until = '"';
        else if (c == '<') until = '>';
        else if (c && strchr(ends, c)) break;
    }
    if (at > rest->len) at = rest->len;
    *out = sfti_text_trim((sft_span){ rest->data, at });
    *end = at < rest->len ? rest->data[at] : '\0';
    *rest = at < rest->len ? sfti_span_from(*rest, at + 1) : (sft_span){ NULL, 0 };
    return true;
}

/* "name=value", blanks around the sign allowed; the quotes stay. */
static bool split_parameter(sft_span text, sft_span *name, sft_span *value) {
    size_t sign = sfti_text_find(text, '=');
    if (sign == text.len) return false;
    *name = sfti_text_trim((sft_span){ text.data, sign });
    *value = sfti_text_trim(sfti_span_from(text, sign + 1));
    return true;
}

static sft_span unquoted(sft_span text) {
    if (text.len >= 2 && *text.data == '"' && text.data[text.len - 1] == '"')
        return (sft_span){ text.data + 1, text.len - 2 };
    return text;
}

/* ── RateLimit ── */

int64_t sfti_rate_limit_wait(sft_span value) {
    uint64_t left = UINT64_MAX, seconds = UINT64_MAX;
    int64_t wait = -1;
    bool items = sfti_text_find(value, ';') < value.len;
    sft_span text, name, number;
    char end;
    while (take_list_text(&value, ",;", &text, &end)) {
        if (split_parameter(text, &name, &number)) {
            if (sfti_text_is(name, items ? "r" : "remaining")) sfti_text_uint(number, &left);
            if (sfti_text_is(name, items ? "t" : "reset")) sfti_text_uint(number, &seconds);
        }
        if (items ? end == ';' : end != '\0') continue;
        if (seconds > LIMIT_MOST_S && seconds != UINT64_MAX) seconds = LIMIT_MOST_S;
        if (left == 0 && seconds != UINT64_MAX && (int64_t)seconds + 1 > wait)
            wait = (int64_t)seconds + 1;
        left = seconds = UINT64_MAX;
    }
    return wait;
}

/* ── Link ── */

sft_span sfti_link_next(sft_span value) {
    const sft_span none = { NULL, 0 };
    sft_span text, name, relations, relation, target = none;
    bool next = false;
    char end;
    while (take_list_text(&value, ",;", &text, &end)) {
        if (!target.data && text.len > 2 && *text.data == '<' && text.data[text.len - 1] == '>') {
            target = (sft_span){ text.data + 1, text.len - 2 };
        } else if (split_parameter(text, &name, &relations) && sfti_text_is(name, "rel")) {
            relations = unquoted(relations);
            while (sfti_text_split(&relations, ' ', &relation))
                next = next || sfti_text_is(relation, "next");
        }
        if (end == ';') continue;
        if (next && target.data) return target;
        target = none;
        next = false;
    }
    return none;
}

/* ── Content-Disposition ── */

/* A file name that is being taken down. */
typedef struct filename_buffer {
    char *text;
    size_t len;
    bool full;
} filename_buffer;

/* After a slash of either kind it begins anew. */
static void filename_put(filename_buffer *to, char c) {
    if (c == '/' || c == '\\') {
        to->len = 0;
        to->full = false;
    } else if (to->len + 1 < SFTI_FILE_NAME_SIZE) {
        to->text[to->len++] = c;
    } else {
        to->full = true;
    }
}

static void put_quoted_name(filename_buffer *to, sft_span value) {
    bool quoted = value.len > 0 && *value.data == '"';
    value = unquoted(value);
    for (size_t i = 0; i < value.len; i++) {
        /* "C:\dir\file" is sent, too: only quotes and backslashes are taken for escaped. */
        bool escape = quoted && value.data[i] == '\\' && i + 1 < value.len
                   && (value.data[i + 1] == '"' || value.data[i + 1] == '\\');
        if (escape && value.data[i + 1] == '"') i++;
        filename_put(to, value.data[i]);
    }
}

/* UTF-8'en'%e2%82%ac.bin; false for other character sets, and for what is malformed. */
static bool put_encoded_name(filename_buffer *to, sft_span value) {
    size_t set = sfti_text_find(value, '\'');
    if (!sfti_text_is((sft_span){ value.data, set }, "UTF-8") || set == value.len) return false;
    value = sfti_span_from(value, set + 1);
    size_t language = sfti_text_find(value, '\'');
    if (language == value.len) return false;
    for (size_t i = language + 1; i < value.len; i++) {
        char c = value.data[i];
        if (c == '%') {
            int byte = sfti_percent_byte(value, i);
            if (byte < 0) return false;
            c = (char)byte;
            i += 2;
        }
        filename_put(to, c);
    }
    return true;
}

static bool is_file_name(const filename_buffer *name) {
    sft_span text = { name->text, name->len };
    return text.len > 0 && !name->full && !sfti_text_has_control(text)
        && !sft_span_equal(text, sft_span_cstr(".")) && !sft_span_equal(text, sft_span_cstr(".."))
        && sfti_utf8_check(text.data, text.len) == text.len;
}

bool sfti_disposition_name(sft_span value, char out[SFTI_FILE_NAME_SIZE]) {
    char plain[SFTI_FILE_NAME_SIZE], coded[SFTI_FILE_NAME_SIZE];
    filename_buffer by_plain = { plain, 0, false }, by_coded = { coded, 0, false };
    sft_span text, name, spelt;
    char end;
    while (take_list_text(&value, ";", &text, &end)) {
        if (!split_parameter(text, &name, &spelt)) continue;
        if (sfti_text_is(name, "filename") && by_plain.len == 0)
            put_quoted_name(&by_plain, spelt);
        else if (sfti_text_is(name, "filename*") && !put_encoded_name(&by_coded, spelt))
            by_coded.len = 0;
    }
    const filename_buffer *found = is_file_name(&by_coded) ? &by_coded : &by_plain;
    if (!is_file_name(found)) return false;
    memcpy(out, found->text, found->len);
    out[found->len] = '\0';
    return true;
}
