/* JSON text looked at in place: members by their keys, objects merged, lines indented. */
#include "support/raw.h"

#include "base/utf8.h"
#include "os/os.h"

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

bool cli_raw_is_key(sft_span a, sft_span b) {
    char first[512], second[512];
    bool plain = !memchr(a.data, '\\', a.len) && !memchr(b.data, '\\', b.len);
    if (plain || a.len > sizeof first || b.len > sizeof second) return sft_span_equal(a, b);
    size_t len = sfti_json_decode(a, first);
    return sfti_json_decode(b, second) == len && memcmp(first, second, len) == 0;
}

bool cli_raw_member(sft_span object, const char *key, sft_span *value) {
    return object.len > 0 && *object.data == '{'
        && cli_raw_find(object, sft_span_cstr(key), value);
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

bool cli_raw_text(sft_span object, const char *key, sfti_arena *arena, sft_span *value) {
    sfti_json json;
    sft_span text;
    if (!cli_raw_member(object, key, &text)) return false;
    sfti_json_begin(&json, text.data, text.len);
    if (sfti_json_next(&json) != SFTI_JSON_STRING) return false;
    *value = sfti_json_string(&json, arena);
    return value->data != NULL;
}

static void write_key(sfti_json_writer *w, sft_span key) {
    sfti_json_raw(w, sft_span_cstr("\""));
    w->comma = false;
    sfti_json_raw(w, key);
    w->comma = false;
    sfti_json_raw(w, sft_span_cstr("\":"));
    w->comma = false;
}

void cli_raw_write(sfti_json_writer *w, sft_span key, sft_span value) {
    write_key(w, key);
    sfti_json_raw(w, value);
}

/* ── Merging ── */

#define KEYS_MOST 64

typedef struct merge_level {
    cli_raw at;
    sft_span under, over;
    bool is_rest; /* going through under */
    sft_span keys[KEYS_MOST]; /* of over: looking among them is fast however long the values are */
    size_t count;             /* more than KEYS_MOST: over itself is looked through */
} merge_level;

bool cli_raw_find(sft_span object, sft_span key, sft_span *value) {
    cli_raw raw;
    for (cli_raw_begin(&raw, object); cli_raw_next(&raw);) {
        if (!cli_raw_is_key(raw.key, key)) continue;
        *value = raw.value;
        return true;
    }
    return false;
}

bool cli_raw_has(sft_span object, sft_span key, sft_span value) {
    sft_span was;
    return cli_raw_find(object, key, &was) && sft_span_equal(was, value);
}

static bool are_objects(sft_span a, sft_span b) {
    return *a.data == '{' && *b.data == '{';
}

static void enter(merge_level *level, sft_span under, sft_span over) {
    *level = (merge_level){ .under = under, .over = over };
    cli_raw_begin(&level->at, over);
}

void cli_raw_merge(sfti_json_writer *w, sft_span under, sft_span over, cli_raw_keep *keep) {
    merge_level levels[CLI_RAW_LEVELS];
    size_t depth = 1;
    sft_span was;
    enter(&levels[0], under, over);
    sfti_json_open(w, '{');
    while (depth > 0) {
        merge_level *level = &levels[depth - 1];
        cli_raw *at = &level->at;
        if (level->is_rest) {
            if (!cli_raw_next(at)) {
                sfti_json_close(w, '}');
                depth--;
                continue;
            }
            bool known = level->count > KEYS_MOST && cli_raw_find(level->over, at->key, &was);
            for (size_t i = 0; level->count <= KEYS_MOST && i < level->count; i++)
                known = known || cli_raw_is_key(level->keys[i], at->key);
            if (!known && (!keep || keep(at->key, at->value)))
                cli_raw_write(w, at->key, at->value);
            continue;
        }
        if (!cli_raw_next(at)) {
            level->is_rest = true;
            cli_raw_begin(at, level->under);
            continue;
        }
        if (level->count < KEYS_MOST) level->keys[level->count] = at->key;
        level->count++;
        if (depth < CLI_RAW_LEVELS && cli_raw_find(level->under, at->key, &was)
                   && are_objects(was, at->value)) {
            write_key(w, at->key);
            sfti_json_open(w, '{');
            enter(&levels[depth++], was, at->value);
        } else {
            cli_raw_write(w, at->key, at->value);
        }
    }
}

bool cli_raw_covers(sft_span under, sft_span over) {
    merge_level levels[CLI_RAW_LEVELS];
    size_t depth = 1;
    sft_span was;
    enter(&levels[0], under, over);
    while (depth > 0) {
        merge_level *level = &levels[depth - 1];
        if (!cli_raw_next(&level->at)) depth--;
        else if (!cli_raw_find(level->under, level->at.key, &was)) return false;
        else if (sft_span_equal(was, level->at.value)) continue;
        else if (depth == CLI_RAW_LEVELS || !are_objects(was, level->at.value)) return false;
        else enter(&levels[depth++], was, level->at.value);
    }
    return true;
}

/* ── On indented lines ── */

#define STEP 2

static void new_line(cli_out *out, size_t spaces) {
    cli_text(out, "\n");
    cli_pad(out, spaces);
}

static size_t skip_space(sft_span text, size_t at) {
    while (at < text.len && strchr(" \t\r\n", text.data[at]) && text.data[at]) at++;
    return at;
}

void cli_pretty(cli_out *out, sft_span text, size_t indent) {
    bool seen = sfti_os_is_terminal(out->fd);
    size_t spaces = indent;
    for (size_t at = skip_space(text, 0); at < text.len; at = skip_space(text, at)) {
        char c = text.data[at];
        size_t next = skip_space(text, at + 1);
        bool opens = c == '{' || c == '[', closes = c == '}' || c == ']';
        bool empty = opens && next < text.len && (text.data[next] == '}' || text.data[next] == ']');
        if (closes) new_line(out, spaces -= STEP);
        if (empty) {
            cli_text(out, c == '{' ? "{}" : "[]");
            at = next + 1;
            continue;
        }
        sft_span piece = { text.data + at, 1 };
        if (c == '"') {
            size_t left = text.len - at, i = 1;
            while (i < left && piece.data[i] != '"') i += piece.data[i] == '\\' ? 2 : 1;
            piece.len = i < left ? i + 1 : left;
        } else if (!opens && !closes && c != ',' && c != ':') {
            while (at + piece.len < text.len && !strchr(" \t\r\n,:]}", piece.data[piece.len]))
                piece.len++;
        }
        if (seen) cli_escaped(out, piece);
        else cli_put(out, piece.data, piece.len);
        if (opens) new_line(out, spaces += STEP);
        else if (c == ',') new_line(out, spaces);
        else if (c == ':') cli_text(out, " ");
        at += piece.len;
    }
}

bool cli_is_pretty(sft_span text) {
    size_t at = skip_space(text, 0);
    return at < text.len && (text.data[at] == '{' || text.data[at] == '[') && cli_raw_check(text);
}
