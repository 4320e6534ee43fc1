/* mv --to: a path of facts. Tests: tests/cli/mv. */
#include "commands/mv/mv.h"

#include "base/mem.h"
#include "safetensors_info.h"
#include "support/fields.h"
#include "support/files.h"
#include "support/words.h"

#include <stdio.h>
#include <string.h>

#define PARTS_MOST 64
#define NAME_MOST 150 /* bytes: endings of sidecars and numbers are added */
#define VALUE_MOST 400
#define TRUST_LEAST 60 /* as for --save-as */

/* ── Reading ── */

static bool is_field_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '|';
}

/* Only ".stem", the name that the file has, is no field of info. */
static sft_code read_field(mv_part *part, sft_span name, sft_error *err) {
    cli_field_place place;
    if (part->count == MV_FIELDS_MOST)
        return cli_usage_error(err, "expected at most %d names between braces, found more",
                               MV_FIELDS_MOST);
    if (!cli_is(name, "stem") && !cli_field_place_of(name, &place))
        return cli_field_unknown(name, err);
    part->fields[part->count++] = name;
    return SFT_OK;
}

/* What is between braces: literal text, names with '|' between them, literal text. */
static sft_code read_braces(sft_span text, mv_part *part, sft_error *err) {
    size_t begin = 0, end;
    while (begin < text.len && !is_field_letter(text.data[begin])) begin++;
    for (end = begin; end < text.len && is_field_letter(text.data[end]);) end++;
    part->before = (sft_span){ text.data, begin };
    part->after = (sft_span){ text.data + end, text.len - end };
    for (size_t i = 0; i < part->after.len; i++)
        if (is_field_letter(part->after.data[i]))
            return cli_usage_error(err, "expected one name, or several with | between them, in "
                                   "{%.*s}", SFTI_CLIP(text, (size_t)80));
    if (memchr(text.data, '/', text.len))
        return cli_usage_error(err, "expected no / between braces, found one in {%.*s}",
                               SFTI_CLIP(text, (size_t)80));
    sft_span rest = { text.data + begin, end - begin }, name;
    if (rest.len == 0) return cli_usage_error(err, "expected a name between braces, found none");
    while (cli_next_part(&rest, '|', &name)) {
        sft_code code = read_field(part, name, err);
        if (code) return code;
    }
    return SFT_OK;
}

/* Folders that would leave the one that the path is relative to. */
static sft_code check_folders(sft_span text, sft_error *err) {
    sft_span part;
    if (text.len == 0 || text.data[0] == '/' || sfti_root_len(text.data) > 0)
        return cli_usage_error(err, "expected a path within the folder after --to, found %s",
                               text.len ? "one from the root on" : "none");
    while (cli_next_part(&text, '/', &part))
        if (cli_is(part, "..") || cli_is(part, ".") || (part.len == 0 && text.len))
            return cli_usage_error(err, "expected a path within the folder after --to, found a "
                                   "part \"%.*s\"", SFTI_CLIP(part, (size_t)8));
    return SFT_OK;
}

sft_code mv_pattern_read(const char *text, sfti_arena *arena, mv_pattern *out, sft_error *err) {
    mv_part *parts = sfti_arena_array(arena, PARTS_MOST, sizeof *parts);
    sft_span all = sft_span_cstr(text);
    size_t count = 0, at = 0;
    if (!parts) return sfti_fail_memory(err, PARTS_MOST * sizeof *parts);
    sft_code code = check_folders(all, err);
    while (!code && at < all.len) {
        mv_part *part = &parts[count];
        if (count++ == PARTS_MOST)
            return cli_usage_error(err, "expected at most %d pieces after --to, found more",
                                   PARTS_MOST);
        memset(part, 0, sizeof *part);
        size_t end = at;
        if (all.data[at] == '}') {
            return cli_usage_error(err, "expected { before } after --to");
        } else if (all.data[at] != '{') {
            while (end < all.len && all.data[end] != '{' && all.data[end] != '}') end++;
            part->before = (sft_span){ all.data + at, end - at };
            at = end;
        } else {
            while (end < all.len && all.data[end] != '}') end++;
            if (end == all.len) return cli_usage_error(err, "expected } behind { after --to");
            code = read_braces((sft_span){ all.data + at + 1, end - at - 1 }, part, err);
            at = end + 1;
        }
    }
    *out = (mv_pattern){ parts, count, all.len > 0 && all.data[all.len - 1] == '/' };
    return code;
}

/* ── Writing ── */

typedef struct value_at {
    char *bytes;
    size_t len;
} value_at;

static bool take_first(void *ctx, sft_span text) {
    value_at *to = ctx;
    text = cli_cut(text, VALUE_MOST);
    while (text.len && strchr(" \t\r\n", *text.data)) text.data++, text.len--;
    memcpy(to->bytes, text.data ? text.data : "", text.len);
    to->len = text.len;
    return text.len == 0;
}

/* The first name of the braces of which a value is known, and sure enough. */
static sft_span value_of(cli *c, const mv_part *part, const sft_node *root, sft_span stem,
                         char buffer[VALUE_MOST]) {
    value_at value = { buffer, 0 };
    for (size_t i = 0; i < part->count && value.len == 0; i++) {
        cli_field_place place;
        uint64_t trust = 100;
        if (cli_is(part->fields[i], "stem")) return stem;
        (void)cli_field_place_of(part->fields[i], &place); /* as when it was read */
        if (place.fact < SFT_FACT_COUNT) {
            const sft_node *fact = sft_node_get(sft_node_get(root, "model"),
                                                sft_fact_name((sft_fact)place.fact));
            if (!sft_node_uint(fact, "trust", &trust)) trust = 0;
        }
        if (trust >= TRUST_LEAST) cli_field_values(c, root, part->fields[i], take_first, &value);
    }
    return (sft_span){ value.bytes, value.len };
}

typedef struct path_at {
    sfti_arena *arena;
    sft_buffer path;
    char name[1024]; /* the part at hand, as it is known */
    size_t len, begin, end; /* [begin, end): from its first value to its last; end 0: none */
    bool failed;
} path_at;

static void put_text(path_at *to, sft_span text, bool is_value) {
    if (is_value && text.len && to->end == 0) to->begin = to->len;
    for (size_t i = 0; i < text.len && to->len < sizeof to->name; i++)
        to->name[to->len++] = is_value && text.data[i] == '/' ? '_' : text.data[i];
    if (is_value && text.len) to->end = to->len;
}

/* The part at hand ends: what joins its values to something unknown is cut off. */
static void end_part(path_at *to, const char *fallback) {
    char safe[NAME_MOST + 2];
    sft_span name = { to->name, to->len };
    size_t begin = 0;
    while (name.len > to->end && strchr(" -_.", name.data[name.len - 1])) name.len--;
    while (begin < name.len && begin < to->begin && strchr(" -_.", name.data[begin])) begin++;
    name = (sft_span){ name.data + begin, name.len - begin };
    if (name.len == 0) name = sft_span_cstr(fallback);
    cli_safe_name(name, NAME_MOST, safe);
    to->failed |= !sfti_buffer_put(&to->path, safe, strlen(safe));
    to->len = to->begin = to->end = 0;
}

char *mv_pattern_path(cli *c, const mv_pattern *pattern, const sft_node *root, sft_span stem,
                      const char *unknown, sfti_arena *arena) {
    path_at to = { .arena = arena, .path = { .alloc = c->alloc } };
    char buffer[VALUE_MOST];
    for (size_t i = 0; i < pattern->count; i++) {
        const mv_part *part = &pattern->parts[i];
        if (part->count > 0) {
            sft_span value = value_of(c, part, root, stem, buffer);
            if (value.len) put_text(&to, part->before, false);
            put_text(&to, value, true);
            if (value.len) put_text(&to, part->after, false);
            continue;
        }
        sft_span rest = part->before, folder;
        for (bool first = true; cli_next_part(&rest, '/', &folder); first = false) {
            if (!first) {
                end_part(&to, unknown);
                to.failed |= !sfti_buffer_put(&to.path, "/", 1);
            }
            put_text(&to, folder, false);
        }
    }
    char *name = sfti_arena_copy(arena, stem.data, stem.len);
    if (pattern->is_folder) to.failed |= !name || !sfti_buffer_put(&to.path, stem.data, stem.len);
    else if (name) end_part(&to, name);
    char *path = !name || to.failed ? NULL : sfti_arena_copy(arena, to.path.data, to.path.len);
    sft_buffer_free(&to.path);
    return path;
}

/* ── Numbers ── */

uint64_t mv_number_of(const mv_unit *unit) {
    sft_span name = unit->unit.is_folder ? cli_name_of(unit->unit.path) : unit->unit.stem;
    char text[8];
    uint64_t n;
    size_t at = name.len;
    while (at > 0 && name.data[at - 1] != '(') at--;
    size_t digits = at ? name.len - at : 0;
    if (at < 2 || name.data[at - 2] != ' ' || digits < 2 || digits > sizeof text) return UINT64_MAX;
    memcpy(text, name.data + at, digits);
    bool closed = text[--digits] == ')';
    text[digits] = '\0';
    return closed && cli_parse_number(text, MV_NUMBER_MOST, &n) ? n : UINT64_MAX;
}
