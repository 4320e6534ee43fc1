/* What rows see of a value, and walks of JSON and YAML texts (text/walk.h, text/formats.h). Tests:
 * test_info_walk.c. */
#include "label/cursor.h"

#include "os/io.h"
#include "text/formats.h"
#include "text/walk.h"

#include <string.h>

/* ── Walks ── */

/* The value at hand of a walk, to the row of that number. */
static sft_code hand_value(sfti_walk *walk, size_t row) {
    sfti_cursor *at = walk->ctx;
    at->json = &walk->json;
    at->text = walk->text;
    at->key = walk->key;
    at->member = walk->member;
    at->index = walk->index;
    at->pointer = walk->pointer;
    at->info->said = NULL;
    at->row = &at->rows[row];
    at->row->take(at);
    return at->info->code;
}

/* Whether it is as an export wrote it. */
static bool is_derived(const sfti_walk *walk) {
    const sfti_derived *derived = &((const sfti_cursor *)walk->ctx)->info->derived;
    sfti_json_type type = walk->json.type;
    if (derived->count == 0 || type == SFTI_JSON_OBJECT || type == SFTI_JSON_ARRAY) return false;
    sft_span pointer = sft_span_cstr(walk->pointer);
    return sfti_derived_may(pointer)
        && sfti_derived_has(derived, sfti_derived_digest(pointer, type, walk->text));
}

bool sfti_info_walk(sft_info *info, sft_span text, sft_span source, const sfti_row *rows,
                    size_t row_count, void *ctx) {
    sfti_cursor at = { .info = info, .source = source, .rows = rows, .ctx = ctx };
    sfti_walk walk = { .arena = &info->arena, .rows = rows, .stride = sizeof *rows,
                       .count = row_count, .ctx = &at, .take = hand_value,
                       .passes_over = is_derived };
    sfti_seed_draw(&walk, walk.seed);
    return sfti_walk_json(&walk, text, &info->code);
}

bool sfti_walk_key(sft_info *info, const char *key, const sfti_row *rows, size_t row_count,
                   void *ctx) {
    sft_span text;
    if (!sfti_info_metadata(info, key, &text)) return false;
    sft_span source = sfti_info_join(info, "header:", sft_span_cstr(key));
    return sfti_info_walk(info, text, source, rows, row_count, ctx);
}

/* ── YAML ── */

typedef struct yaml_walk {
    sfti_cursor at;
    size_t count;
    sfti_json scalar; /* the event of each */
} yaml_walk;

/* Whether the place fits a pattern: "*" is any component. */
static bool place_fits(const char *pattern, const char *pointer) {
    while (*pattern && *pointer) {
        size_t a = strcspn(pattern + 1, "/"), b = strcspn(pointer + 1, "/");
        bool any = a == 1 && pattern[1] == '*';
        if (!any && (a != b || memcmp(pattern + 1, pointer + 1, a) != 0)) return false;
        pattern += a + 1;
        pointer += b + 1;
    }
    return !*pattern && !*pointer;
}

static sft_code take_scalar(void *ctx, const sfti_yaml_value *value) {
    yaml_walk *walk = ctx;
    sfti_cursor *at = &walk->at;
    at->text = walk->scalar.text = value->text;
    at->key = value->key;
    at->index = value->index;
    at->pointer = value->place;
    for (size_t i = 0; i < walk->count && !at->info->code; i++)
        if (place_fits(at->rows[i].pattern, at->pointer)) {
            at->info->said = NULL;
            at->row = &at->rows[i];
            at->row->take(at);
        }
    return at->info->code;
}

void sfti_info_yaml(sft_info *info, sft_span text, sft_span source, const sfti_row *rows,
                    size_t row_count, void *ctx) {
    yaml_walk walk = { { .info = info, .source = source, .rows = rows, .ctx = ctx }, row_count,
                       { .type = SFTI_JSON_STRING } };
    walk.at.json = &walk.scalar;
    if (!info->code) info->code = sfti_yaml_read(&info->arena, text, take_scalar, &walk);
}

/* ── Places ── */

sft_span sfti_cursor_source_above(sfti_cursor *at, int steps) {
    size_t len = strlen(at->pointer);
    for (; steps > 0; steps--)
        while (len > 0 && at->pointer[--len] != '/') {}
    if (*at->pointer == '\0' || sfti_starts_with(at->source, "online:")) return at->source;
    return sfti_info_text(at->info, "%.*s:%.*s", (int)at->source.len, at->source.data, (int)len,
                          at->pointer);
}

sft_span sfti_cursor_source(sfti_cursor *at) {
    return sfti_cursor_source_above(at, 0);
}

/* ── What is there ── */

bool sfti_at_text(const sfti_cursor *at) {
    return at->json->type == SFTI_JSON_STRING && !sfti_is_placeholder(at->text);
}

bool sfti_at_number(const sfti_cursor *at) {
    return at->json->type == SFTI_JSON_UINT || at->json->type == SFTI_JSON_NUMBER;
}

uint64_t sfti_at_uint(const sfti_cursor *at) {
    uint64_t value = 0;
    bool told = at->json->type == SFTI_JSON_UINT || at->json->type == SFTI_JSON_STRING;
    return told && sfti_parse_uint(at->text, &value) ? value : 0;
}

int sfti_at_bool(const sfti_cursor *at) {
    return at->json->type == SFTI_JSON_TRUE ? 1 : at->json->type == SFTI_JSON_FALSE ? 0 : -1;
}

void sfti_put_span(sfti_cursor *at, sft_fact field, sft_span text) {
    sfti_info_add_text(at->info, field, text, sfti_cursor_source(at), at->row->trust);
}

void sfti_put_here(sfti_cursor *at, sft_fact field, const char *text) {
    if (text) sfti_put_span(at, field, sft_span_cstr(text));
}
