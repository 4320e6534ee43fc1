/* A subset of YAML as model cards use it: maps, lists, scalars. Tests: test_text.c. */
#include "text/formats.h"
#include "text/text.h"

#include "base/json_lex.h"
#include "base/number.h"
#include "base/utf8.h"

#include <string.h>

#define YAML_DEPTH 16

/* An open map or list: where its items begin in their lines, its own place. */
typedef struct yaml_level {
    size_t indent;
    size_t pointer_len;
    int64_t index; /* of the last item */
    bool list;
    bool lost; /* its place does not fit a pointer */
    sft_span key; /* of the last item of a map */
} yaml_level;

typedef struct yaml_state {
    sfti_arena *arena;
    sfti_yaml_take *take;
    void *ctx;
    sft_code code;
    sfti_yaml_fault *fault; /* of what the subset lacks; NULL: it is passed over */
    sft_span rest;      /* lines not yet read */
    sfti_yaml_value value;      /* at hand */
    char pointer[SFTI_YAML_PLACE];
    size_t pointer_len; /* of the value at hand */
    bool too_long;      /* its place does not fit: not handed out */
    size_t depth;
    yaml_level levels[YAML_DEPTH];
} yaml_state;

/* What the subset lacks, instead of `expected`. */
static void yaml_lacks(yaml_state *y, const char *expected) {
    if (!y->fault || y->code) return;
    y->code = SFT_BAD_ARGUMENT;
    *y->fault = (sfti_yaml_fault){ y->value.line, expected };
}

/* ── Lines ── */

static sft_span yaml_next_line(yaml_state *y) {
    sft_span line = { "", 0 };
    (void)sfti_next_piece(&y->rest, '\n', &line);
    y->value.line++;
    if (line.len > 0 && line.data[line.len - 1] == '\r') line.len--;
    return line;
}

/* The next line, left to be read. */
static sft_span yaml_peek_line(const yaml_state *y) {
    yaml_state ahead;
    ahead.rest = y->rest;
    ahead.value.line = 0;
    return yaml_next_line(&ahead);
}

static size_t yaml_indent(sft_span line) {
    size_t n = 0;
    while (n < line.len && line.data[n] == ' ') n++;
    return n;
}

static bool yaml_blank(sft_span line) {
    return sfti_trim(line).len == 0;
}

/* Without " # comment" and blanks around. */
static sft_span yaml_plain(sft_span text) {
    for (size_t i = 0; i < text.len; i++)
        if (text.data[i] == '#' && (i == 0 || text.data[i - 1] == ' ')) text.len = i;
    return sfti_trim(text);
}

/* ── Places ── */

static void yaml_place(yaml_state *y, const yaml_level *level, sft_span key) {
    size_t base = level->pointer_len, cap = sizeof y->pointer - base;
    y->pointer_len = base;
    y->too_long = level->lost || key.len + 2 > cap || memchr(key.data, '/', key.len);
    if (y->too_long) yaml_lacks(y, "a shorter key, without a slash");
    if (y->too_long) return;
    y->pointer[base] = '/';
    memcpy(y->pointer + base + 1, key.data, key.len);
    y->pointer_len = base + 1 + key.len;
    y->pointer[y->pointer_len] = '\0';
    y->value.key = (sft_span){ y->pointer + base + 1, key.len };
}

static void yaml_place_index(yaml_state *y, yaml_level *level) {
    char digits[SFTI_UINT_SIZE];
    y->value.index = ++level->index;
    size_t len = sfti_uint_text((uint64_t)level->index, 1, digits);
    yaml_place(y, level, (sft_span){ digits, len });
}

static void yaml_emit(yaml_state *y, sft_span text) {
    if (y->too_long || y->code) return;
    y->value.text = text;
    y->code = y->take(y->ctx, &y->value);
}

static char *yaml_buffer(yaml_state *y, size_t size) {
    char *buffer = y->code ? NULL : sfti_arena_take(y->arena, size);
    if (!buffer && !y->code) y->code = SFT_OUT_OF_MEMORY;
    return buffer;
}

/* ── Scalars ── */

/* The next lines that are indented deeper; blank ones among them if asked for. They are
 * read. */
static sft_span yaml_deeper(yaml_state *y, size_t indent, bool blanks) {
    sft_span all = y->rest;
    while (y->rest.len > 0) {
        sft_span line = yaml_peek_line(y);
        bool blank = yaml_blank(line);
        if (blank ? !blanks : yaml_indent(line) <= indent) break;
        (void)yaml_next_line(y);
    }
    return (sft_span){ all.data, all.len - y->rest.len };
}

/* A plain scalar goes on in lines indented deeper. */
static sft_span yaml_continued(yaml_state *y, sft_span first, size_t indent) {
    sft_span more = yaml_deeper(y, indent, false), line;
    size_t used = first.len;
    if (more.len == 0) return first;
    char *buffer = yaml_buffer(y, first.len + more.len + 2);
    if (!buffer) return first;
    memcpy(buffer, first.data, first.len);
    while (sfti_next_piece(&more, '\n', &line)) {
        line = yaml_plain(line);
        if (line.len == 0) continue;
        buffer[used++] = ' ';
        memcpy(buffer + used, line.data, line.len);
        used += line.len;
    }
    return (sft_span){ buffer, used };
}

/* Behind '|' or '>': the lines indented deeper, as they stand or as one. */
static sft_span yaml_block(yaml_state *y, char style, size_t indent) {
    sft_span all = yaml_deeper(y, indent, true), line;
    char *buffer = yaml_buffer(y, all.len + 2);
    size_t used = 0, own = SIZE_MAX;
    if (!buffer) return (sft_span){ "", 0 };
    while (sfti_next_piece(&all, '\n', &line)) {
        bool blank = yaml_blank(line);
        if (own == SIZE_MAX && !blank) own = yaml_indent(line);
        if (blank) line.len = 0;
        else line = sfti_from(line, yaml_indent(line) < own ? yaml_indent(line) : own);
        if (line.len > 0 && line.data[line.len - 1] == '\r') line.len--;
        memcpy(buffer + used, line.data, line.len);
        used += line.len;
        buffer[used++] = style == '|' || blank ? '\n' : ' ';
    }
    while (used > 0 && (buffer[used - 1] == '\n' || buffer[used - 1] == ' ')) used--;
    return (sft_span){ buffer, used };
}

/* The character of so many hex digits at p, or -1. */
static int32_t yaml_code(const char *p, const char *end, int digits) {
    uint32_t code = 0;
    for (int i = 0; i < digits; i++) {
        int digit = p + i < end ? sfti_lex_hex_digit(p[i]) : -1;
        if (digit < 0 || code > 0x10FFFF) return -1;
        code = code << 4 | (uint32_t)digit;
    }
    return code > 0x10FFFF || (code >= 0xD800 && code < 0xE000) ? -1 : (int32_t)code;
}

/* One escape behind a backslash at p, which is before end; bytes read, *len written to out. */
static size_t yaml_escape(const char *p, const char *end, char *out, size_t *len) {
    static const char from[] = "ntr0_", to[] = "\n\t\r  ";
    const char *found = *p ? strchr(from, *p) : NULL, *past = p + (*p == 'x' ? 3 : 9);
    int32_t code = *p == 'u' ? sfti_lex_unicode(p + 1, end, &past)
        : *p == 'x' || *p == 'U' ? yaml_code(p + 1, end, *p == 'x' ? 2 : 8) : -1;
    *len = 0;
    if (code >= 0) {
        *len = sfti_utf8_encode((uint32_t)code, out);
        return (size_t)(past - p);
    }
    if (*p == '\n' || (*p == '\r' && end - p > 1 && p[1] == '\n')) {
        /* a line that goes on in the next, without the blanks before that */
        size_t blanks = *p == '\r' ? 2 : 1;
        while (p + blanks < end && p[blanks] == ' ') blanks++;
        return blanks;
    }
    *out = found ? to[found - from] : *p;
    *len = 1;
    return 1;
}

/* Where the quoted text that begins at text ends: behind its quote, or 0. */
static size_t yaml_quote_end(sft_span text) {
    char quote = text.data[0];
    for (size_t i = 1; i < text.len; i++) {
        if (quote == '"' && text.data[i] == '\\') i++;
        else if (text.data[i] != quote) continue;
        else if (quote == '\'' && i + 1 < text.len && text.data[i + 1] == quote) i++;
        else return i + 1;
    }
    return 0;
}

/* Quotes and escapes undone; a line's end is a blank. text: with its quotes. */
static sft_span yaml_unquote(yaml_state *y, sft_span text) {
    char *buffer = yaml_buffer(y, text.len + 1), quote = text.data[0];
    const char *p = text.data + 1, *end = text.data + text.len - 1;
    size_t used = 0, len;
    if (!buffer) return (sft_span){ "", 0 };
    while (p < end) {
        if (quote == '"' && *p == '\\') {
            p++; /* not the end: yaml_quote_end passes over what is escaped */
            p += yaml_escape(p, end, buffer + used, &len);
            used += len;
        } else if (*p == '\n') {
            while (used > 0 && (buffer[used - 1] == ' ' || buffer[used - 1] == '\r')) used--;
            while (p < end && (*p == '\n' || *p == ' ' || *p == '\r')) p++;
            buffer[used++] = ' ';
        } else {
            if (quote == '\'' && *p == quote) p++;
            buffer[used++] = *p++;
        }
    }
    return (sft_span){ buffer, used };
}

/* Behind a quote or bracket there is nothing but a comment. */
static void yaml_check_end(yaml_state *y, sft_span rest) {
    sft_span line;
    if (sfti_next_piece(&rest, '\n', &line) && yaml_plain(line).len > 0)
        yaml_lacks(y, "nothing behind a quote or bracket that ends");
}

/* A text that begins with `first` and may go on in the next lines until `end` tells; the
 * lines it takes are read. When it never ends it is empty, and so is what is left. */
static sft_span yaml_until(yaml_state *y, sft_span first, size_t (*end)(sft_span text)) {
    const char *stop = y->rest.data + y->rest.len;
    size_t len = end(first);
    if (len > 0) yaml_check_end(y, sfti_from(first, len));
    if (len > 0) return (sft_span){ first.data, len };
    if (y->rest.len == 0) yaml_lacks(y, "the end of what a quote or bracket begins");
    if (y->rest.len == 0) return (sft_span){ "", 0 };
    sft_span all = { first.data, (size_t)(stop - first.data) };
    len = end(all);
    if (len == 0) {
        yaml_lacks(y, "the end of what a quote or bracket begins");
        y->rest.len = 0;
        return (sft_span){ "", 0 };
    }
    yaml_check_end(y, sfti_from(all, len));
    while (y->rest.len > 0 && y->rest.data < first.data + len) (void)yaml_next_line(y);
    return (sft_span){ first.data, len };
}

/* ── Lists in brackets ── */

static size_t yaml_bracket_end(sft_span text) {
    size_t depth = 0;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        bool opens = i > 0 && strchr("[, {:", text.data[i - 1]);
        if ((c == '"' || c == '\'') && opens) {
            size_t len = yaml_quote_end(sfti_from(text, i));
            if (len == 0) return 0;
            i += len - 1;
        } else if (c == '[' || c == '{') {
            depth++;
        } else if ((c == ']' || c == '}') && --depth == 0) {
            return i + 1;
        }
    }
    return 0;
}

/* Behind the item that begins at text: its comma or the end. */
static size_t yaml_item_end(sft_span text) {
    size_t i = 0;
    if (text.len > 0 && (*text.data == '"' || *text.data == '\'')) i = yaml_quote_end(text);
    while (i < text.len && text.data[i] != ',') i++;
    return i;
}

static void yaml_emit_scalar(yaml_state *y, sft_span text, bool in_list) {
    if (text.len >= 2 && (*text.data == '"' || *text.data == '\'')) {
        size_t end = yaml_quote_end(text);
        if (end > 0) yaml_emit(y, yaml_unquote(y, (sft_span){ text.data, end }));
        return;
    }
    if (text.len == 0) return;
    if (strchr("&*!{}[]|>%@`", *text.data)) {
        yaml_lacks(y, "a plain value (anchors, tags, braces and lists in lists are not read)");
        return;
    }
    if (!sfti_is(text, "~") && !sfti_same_letters(text, "null")) yaml_emit(y, text);
    else if (in_list) yaml_lacks(y, "a value for each item of a list");
}

/* text: from '[' to ']'. */
static void yaml_list(yaml_state *y, sft_span text) {
    yaml_level level = { .pointer_len = y->pointer_len, .index = -1, .list = true };
    if (y->too_long || text.len < 2) return;
    if (text.data[text.len - 1] != ']') yaml_lacks(y, "] at the end of a list");
    text = (sft_span){ text.data + 1, text.len - 2 };
    while (text.len > 0 && !y->code) {
        text = sfti_trim(text);
        size_t len = yaml_item_end(text);
        if (text.len == 0) break;
        yaml_place_index(y, &level);
        yaml_emit_scalar(y, sfti_trim((sft_span){ text.data, len }), true);
        text = sfti_from(text, len < text.len ? len + 1 : len);
    }
    y->pointer_len = level.pointer_len;
    y->pointer[y->pointer_len] = '\0';
}

/* ── Nodes ── */

/* A value that begins in its key's or its item's (in_list) line; indent is that of the map or
 * list. */
static void yaml_value(yaml_state *y, sft_span text, size_t indent, bool in_list) {
    text = sfti_trim(text);
    if (text.len == 0 || *text.data == '#') return;
    switch (*text.data) {
    case '|':
    case '>': yaml_emit(y, yaml_block(y, *text.data, indent)); return;
    case '"':
    case '\'': yaml_emit_scalar(y, yaml_until(y, text, yaml_quote_end), in_list); return;
    case '[': yaml_list(y, yaml_until(y, text, yaml_bracket_end)); return;
    case '{':
        yaml_lacks(y, "a map with a line for each key (braces are not read)");
        (void)yaml_until(y, text, yaml_bracket_end);
        return;
    default:
        text = yaml_continued(y, yaml_plain(text), indent);
        yaml_emit_scalar(y, text, in_list);
    }
}

/* The key that begins a line, and where its value begins; false if there is none. */
static bool yaml_key(sft_span text, sft_span *key, size_t *value) {
    size_t i = 0;
    bool quoted = text.len > 0 && (*text.data == '"' || *text.data == '\'');
    if (quoted) i = yaml_quote_end(text);
    if (quoted && i == 0) return false;
    *key = quoted ? (sft_span){ text.data + 1, i - 2 } : (sft_span){ text.data, 0 };
    for (; i < text.len; i++) {
        if (text.data[i] != ':') continue;
        if (i + 1 < text.len && text.data[i + 1] != ' ' && text.data[i + 1] != '\t') continue;
        if (!quoted) *key = sfti_trim((sft_span){ text.data, i });
        *value = i + 1;
        return key->len > 0;
    }
    return false;
}

static yaml_level *yaml_top(yaml_state *y) {
    return y->depth > 0 ? &y->levels[y->depth - 1] : NULL;
}

/* The level items at this indent belong to: found again, or opened as the value at hand. */
static yaml_level *yaml_level_at(yaml_state *y, size_t indent, bool list) {
    yaml_level *top = yaml_top(y);
    while (top && (top->indent > indent || (top->indent == indent && top->list && !list))) {
        y->depth--;
        top = yaml_top(y);
    }
    if (top && top->indent == indent && top->list == list) return top;
    if (y->depth == YAML_DEPTH) yaml_lacks(y, "at most 16 levels");
    if (y->depth == YAML_DEPTH) return NULL;
    y->levels[y->depth] = (yaml_level){ .indent = indent, .pointer_len = y->pointer_len,
                                        .index = -1, .list = list, .lost = y->too_long };
    return &y->levels[y->depth++];
}

/* One line: dashes, then a key, then a value. */
static void yaml_line(yaml_state *y, sft_span line) {
    size_t indent = yaml_indent(line), value;
    sft_span text = sfti_trim(sfti_from(line, indent)), key;
    bool dashes = false;
    while (text.len > 0 && *text.data == '-' && (text.len == 1 || text.data[1] == ' ')) {
        yaml_level *list = yaml_level_at(y, indent, true);
        if (!list) return;
        yaml_place_index(y, list);
        dashes = true;
        size_t step = 1 + yaml_indent(sfti_from(text, 1));
        text = sfti_from(text, step);
        if (text.len > 0) indent += step;
    }
    bool keyed = yaml_key(text, &key, &value), nobodys = false;
    if (keyed) {
        yaml_level *map = yaml_level_at(y, indent, false);
        if (!map) return;
        if (sft_span_equal(map->key, key)) yaml_lacks(y, "each key once");
        map->key = key;
        yaml_place(y, map, key);
        text = sfti_from(text, value);
    } else {
        if (text.len == 0 || *text.data == '#') yaml_lacks(y, "a value behind the dash");
        if (!dashes) yaml_lacks(y, "a key and a colon, or a dash");
        nobodys = !dashes && (!yaml_top(y) || indent <= yaml_top(y)->indent);
        indent -= indent > 0;
    }
    bool lost = y->too_long;
    y->too_long = lost || nobodys; /* read, for what it opens may go on for lines */
    yaml_value(y, text, indent, !keyed);
    y->too_long = lost;
}

static sft_code yaml_run(yaml_state *y, sfti_arena *arena, sft_span text, sfti_yaml_take *take,
                         void *ctx) {
    y->arena = arena;
    y->take = take;
    y->ctx = ctx;
    y->rest = text;
    y->value.index = -1;
    y->value.place = y->pointer;
    while (y->rest.len > 0 && !y->code) {
        sft_span line = yaml_next_line(y);
        bool mark = y->fault && y->depth == 0 && sfti_is(line, "---");
        if (yaml_blank(line) || *sfti_trim(line).data == '#' || mark) continue;
        size_t indent = yaml_indent(line);
        if (line.data[indent] == '\t') yaml_lacks(y, "blanks, no tab, before a line");
        if (!y->code) yaml_line(y, line);
    }
    return y->code;
}

sft_code sfti_yaml_read(sfti_arena *arena, sft_span text, sfti_yaml_take *take, void *ctx) {
    yaml_state y;
    memset(&y, 0, sizeof y);
    return yaml_run(&y, arena, text, take, ctx);
}

sft_code sfti_yaml_read_all(sfti_arena *arena, sft_span text, sfti_yaml_take *take, void *ctx,
                            sfti_yaml_fault *fault) {
    yaml_state y;
    memset(&y, 0, sizeof y);
    y.fault = fault;
    return yaml_run(&y, arena, text, take, ctx);
}
