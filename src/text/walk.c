/* Walks a JSON text once and hands each value to the rows whose pattern fits. Tests:
 * test_info_walk.c. */
#include "text/walk.h"
#include "text/text.h"

#include "base/names.h"
#include "base/number.h"
#include "base/utf8.h"

#include <stddef.h>
#include <string.h>

#define WALK_MOST ((size_t)512 << 20)

/* One open object or array, or the root: which rows' patterns its path still fits. */
typedef struct walk_place {
    uint64_t alive[SFTI_WALK_ROWS / 64];
    int64_t index;      /* of the element last begun; -1 in an object */
    size_t pointer_len; /* of the container itself */
} walk_place;

typedef struct walk_state {
    sfti_walk *walk;
    sft_code code;
    size_t pointer_len; /* of the current value */
    bool pointer_full;
    size_t level;       /* components of the current value's path */
    char digits[SFTI_UINT_SIZE]; /* of an index, while it is the key */
    walk_place places[SFTI_JSON_DEPTH + 1]; /* places[n]: the container with n components */
} walk_state;

/* ── Literals of Python ── */

static size_t python_literal(const char *p, size_t len) {
    static const char *const words[] = { "NaN", "Infinity", "-Infinity" };
    for (size_t i = 0; i < SFTI_COUNT(words); i++) {
        size_t size = strlen(words[i]);
        if (len >= size && memcmp(p, words[i], size) == 0) return size;
    }
    return 0;
}

/* Past the string that begins at p. */
static const char *past_string(const char *p, const char *end) {
    for (p++; p < end && *p != '"'; p++)
        if (*p == '\\' && end - p > 1) p++;
    return p < end ? p + 1 : end;
}

/* Copy with the literals outside strings replaced, or only count them (to NULL). */
static size_t without_literals(sft_span text, char *to, size_t *count) {
    const char *p = text.data, *end = p + text.len;
    char *start = to;
    while (p < end) {
        const char *from = p;
        size_t size = *p == 'N' || *p == 'I' || *p == '-' ? python_literal(p, (size_t)(end - p))
                                                          : 0;
        p = *p == '"' ? past_string(p, end) : p + (size ? size : 1);
        *count += size > 0;
        if (!to) continue;
        size_t len = size ? 4 : (size_t)(p - from);
        memcpy(to, size ? "null" : from, len);
        to += len;
    }
    return to ? (size_t)(to - start) : 0;
}

static bool mentions(sft_span text, char first, const char *word) {
    size_t len = strlen(word);
    for (sft_span at = sfti_find_byte(text, first); at.data; at = sfti_find_byte(at, first)) {
        if (at.len >= len && memcmp(at.data, word, len) == 0) return true;
        at.data++;
        at.len--;
    }
    return false;
}

/* JSON text as Python reads it; data NULL when out of memory. */
static sft_span python_json(sfti_arena *arena, sft_span text) {
    size_t count = 0;
    if (!mentions(text, 'N', "NaN") && !mentions(text, 'I', "Infinity")) return text;
    without_literals(text, NULL, &count);
    if (count == 0) return text;
    char *copy = sfti_arena_array(arena, (uint64_t)text.len + count, 1);
    if (!copy) return (sft_span){ NULL, 0 };
    return (sft_span){ copy, without_literals(text, copy, &count) };
}

/* ── Patterns ── */

static const char *pattern_of(const sfti_walk *walk, size_t row) {
    const void *at = (const char *)walk->rows + row * walk->stride;
    return *(const char *const *)at;
}

/* Component n of a pattern, after its slash; NULL past the last. */
static const char *component(const char *pattern, size_t n) {
    for (;; n--) {
        pattern = strchr(pattern, '/');
        if (!pattern) return NULL;
        pattern++;
        if (n == 0) return pattern;
    }
}

static bool component_fits(const char *pattern, sft_span key) {
    size_t len = strcspn(pattern, "/");
    if (len == 1 && *pattern == '*') return true;
    return len == key.len && memcmp(pattern, key.data, len) == 0;
}

/* The rows among from's whose component fits the key; false when there is none. */
static bool narrow(const walk_state *state, const uint64_t *from, size_t level, sft_span key,
                   uint64_t *to) {
    uint64_t any = 0;
    for (size_t i = 0; i < state->walk->count; i++) {
        uint64_t bit = UINT64_C(1) << (i % 64);
        if (!(from[i / 64] & bit)) continue;
        const char *at = component(pattern_of(state->walk, i), level);
        if (at && component_fits(at, key)) any |= to[i / 64] |= bit;
    }
    return any != 0;
}

/* Whether any of the rows wants something inside this value. */
static bool wanted_inside(const walk_state *state, const uint64_t *alive) {
    for (size_t i = 0; i < state->walk->count; i++)
        if (alive[i / 64] >> (i % 64) & 1
            && component(pattern_of(state->walk, i), state->level))
            return true;
    return false;
}

/* ── Pointer ── */

static void pointer_put(walk_state *state, const char *bytes, size_t len) {
    sfti_walk *walk = state->walk;
    if (state->pointer_full || len >= sizeof walk->pointer - state->pointer_len) {
        state->pointer_full = true;
        return;
    }
    memcpy(walk->pointer + state->pointer_len, bytes, len);
    state->pointer_len += len;
    walk->pointer[state->pointer_len] = '\0';
}

static void pointer_set(walk_state *state, size_t len, sft_span key) {
    const uint8_t *p = (const uint8_t *)key.data, *end = p + key.len;
    state->pointer_len = len;
    state->pointer_full = false;
    state->walk->pointer[len] = '\0';
    pointer_put(state, "/", 1);
    while (p < end && !state->pointer_full) {
        uint32_t code;
        size_t size = sfti_utf8_decode(p, end, &code);
        if (*p == '~') pointer_put(state, "~0", 2);
        else if (*p == '/') pointer_put(state, "~1", 2);
        else if (*p == '\0') pointer_put(state, "?", 1);
        else pointer_put(state, (const char *)p, size ? size : 1);
        p += size ? size : 1;
    }
}

/* ── The walk ── */

static bool text_of_event(walk_state *state) {
    sfti_walk *walk = state->walk;
    walk->text = walk->json.text;
    if (walk->json.type != SFTI_JSON_STRING) return true;
    walk->text = sfti_json_string(&walk->json, walk->arena);
    if (!walk->text.data) state->code = SFT_OUT_OF_MEMORY;
    return walk->text.data != NULL;
}

/* Hand the value to every row whose pattern ends here; a row that read a container on
 * ends that. */
static void take_value(walk_state *state, const uint64_t *alive) {
    sfti_walk *walk = state->walk;
    const char *at = walk->json.at;
    bool ready = false;
    for (size_t i = 0; i < walk->count && walk->json.at == at; i++) {
        if (!(alive[i / 64] >> (i % 64) & 1)) continue;
        if (component(pattern_of(walk, i), state->level)) continue;
        if (!ready && !text_of_event(state)) return;
        if (!ready && walk->passes_over && walk->passes_over(walk)) return;
        ready = true;
        state->code = walk->take(walk, i);
        if (state->code) return;
    }
}

/* The value whose first event is the last one: taken, then entered or passed over. */
static void visit_value(walk_state *state, const uint64_t *alive) {
    sfti_json *json = &state->walk->json;
    const char *at = json->at;
    bool open = json->type == SFTI_JSON_OBJECT || json->type == SFTI_JSON_ARRAY;
    bool object = json->type == SFTI_JSON_OBJECT;
    uint32_t depth = json->depth;
    take_value(state, alive);
    if (!open) return;
    if (json->at != at) { /* what a row left of the container it read on */
        while (json->depth >= depth && json->type != SFTI_JSON_ERROR) sfti_json_next(json);
    } else if (!wanted_inside(state, alive)) {
        sfti_json_skip(json);
    } else {
        walk_place *place = &state->places[state->level];
        memmove(place->alive, alive, sizeof place->alive);
        place->index = object ? -1 : 0;
        place->pointer_len = state->pointer_len;
        state->level++;
    }
}

static void visit_member(walk_state *state, sft_span key) {
    uint64_t alive[SFTI_WALK_ROWS / 64] = { 0 };
    walk_place *place = &state->places[state->level - 1];
    bool any = narrow(state, place->alive, state->level - 1, key, alive);
    bool member = state->walk->json.type == SFTI_JSON_KEY;
    if (member && any) sfti_json_next(&state->walk->json);
    if (!any) {
        sfti_json_skip(&state->walk->json);
        return;
    }
    pointer_set(state, place->pointer_len, key);
    state->walk->key = key;
    state->walk->member = member;
    visit_value(state, alive);
}

static void visit_key(walk_state *state) {
    sfti_walk *walk = state->walk;
    sft_span key = sfti_json_string(&walk->json, walk->arena);
    if (!key.data) state->code = SFT_OUT_OF_MEMORY;
    else visit_member(state, key);
}

static void visit_element(walk_state *state) {
    walk_place *place = &state->places[state->level - 1];
    size_t len = sfti_uint_text((uint64_t)place->index, 1, state->digits);
    state->walk->index = place->index++;
    visit_member(state, (sft_span){ state->digits, len });
}

/* The innermost array index of the container that is now current. */
static void leave(walk_state *state) {
    state->walk->index = -1;
    if (--state->level == 0) return;
    for (size_t i = state->level; i-- > 0;) {
        if (state->places[i].index < 0) continue;
        state->walk->index = state->places[i].index - 1;
        return;
    }
}

static void walk_all(walk_state *state) {
    sfti_walk *walk = state->walk;
    uint64_t alive[SFTI_WALK_ROWS / 64];
    memset(alive, 0xFF, sizeof alive);
    sfti_json_next(&walk->json);
    visit_value(state, alive);
    while (state->level > 0 && !state->code) {
        switch (sfti_json_next(&walk->json)) {
        case SFTI_JSON_ERROR:
        case SFTI_JSON_END: return;
        case SFTI_JSON_KEY: visit_key(state); break;
        case SFTI_JSON_OBJECT_END:
        case SFTI_JSON_ARRAY_END: leave(state); break;
        default: visit_element(state);
        }
    }
}

/* ── Members that a later one of their object replaces ── */

#define FEW_MEMBERS 12
#define OPEN_KEYS_MOST ((size_t)1 << 17) /* of open objects: behind them no member is replaced */

typedef struct walk_key { sft_span text; size_t start; } walk_key;

/* Keys of the objects that are open, the innermost last. */
typedef struct open_keys {
    sfti_arena *arena;
    const uint64_t *seed;
    sft_span text;
    char *copy; /* of the text, without what is replaced; NULL: nothing is */
    walk_key *keys;
    size_t count, room;
    bool failed; /* out of memory */
} open_keys;

static sft_span open_key_at(const void *ctx, uint32_t entry) {
    return ((const walk_key *)ctx)[entry].text;
}

static void keep_key(open_keys *open, const sfti_json *json) {
    if (open->count == OPEN_KEYS_MOST) return;
    if (open->count == open->room) {
        size_t room = open->room ? 2 * open->room : 64;
        walk_key *keys = sfti_arena_array(open->arena, room, sizeof *keys);
        if (!keys) open->failed = true;
        if (!keys) return;
        if (open->count > 0) memcpy(keys, open->keys, open->count * sizeof *keys);
        open->keys = keys;
        open->room = room;
    }
    walk_key key = { sfti_json_string(json, open->arena), json->start };
    open->failed = open->failed || !key.text.data;
    open->keys[open->count++] = key;
}

/* From its key to the next key of the object, which has one more: a comma goes with it. */
static void drop_member(open_keys *open, const walk_key *key) {
    if (!open->copy) {
        open->copy = sfti_arena_array(open->arena, open->text.len, 1);
        if (!open->copy) open->failed = true;
        if (!open->copy) return;
        memcpy(open->copy, open->text.data, open->text.len);
    }
    memset(open->copy + key->start, ' ', key[1].start - key->start);
}

static void drop_replaced(open_keys *open, size_t from) {
    walk_key *keys = open->keys + from;
    const size_t count = open->count - from;
    sfti_names names;
    bool few = count <= FEW_MEMBERS;
    if (!few && !sfti_names_begin(&names, count, open->seed, open_key_at, keys, open->arena))
        open->failed = true;
    for (uint32_t i = 0; i < count && !open->failed; i++) {
        uint32_t first = few ? 0 : sfti_names_add(&names, keys[i].text, i);
        while (few && first < i && !sft_span_equal(keys[first].text, keys[i].text)) first++;
        if (first == i) continue;
        drop_member(open, &keys[first]);
        if (few) keys[first].text.data = "\xFF", keys[first].text.len = 1; /* no key's */
        else sfti_names_replace(&names, keys[i].text, i);
    }
    open->count = from;
}

/* The last of members with one key alone, as Python reads them. Data NULL if the text is no JSON,
 * or when out of memory. */
static sft_span last_members(const sfti_walk *walk, sft_span text, bool *failed) {
    open_keys open = { .arena = walk->arena, .seed = walk->seed, .text = text };
    size_t from[SFTI_JSON_DEPTH + 1];
    const sft_span none = { NULL, 0 };
    sfti_json json;
    sfti_json_begin(&json, text.data, text.len);
    while (!open.failed && sfti_json_next(&json) != SFTI_JSON_END) {
        switch ((int)json.type) {
        case SFTI_JSON_ERROR: return none;
        case SFTI_JSON_OBJECT: from[json.depth] = open.count; break;
        case SFTI_JSON_KEY: keep_key(&open, &json); break;
        case SFTI_JSON_OBJECT_END: drop_replaced(&open, from[json.depth + 1]); break;
        case SFTI_JSON_ARRAY: (void)sfti_json_uints(&json, NULL, 0); break;
        default: break;
        }
    }
    *failed = open.failed;
    if (open.failed) return none;
    return open.copy ? (sft_span){ open.copy, text.len } : text;
}

bool sfti_walk_json(sfti_walk *walk, sft_span text, sft_code *code) {
    walk_state state;
    if (*code || text.len == 0 || text.len > WALK_MOST || walk->count > SFTI_WALK_ROWS)
        return false;
    if (sfti_begins(text, "\xEF\xBB\xBF")) text = sfti_from(text, 3);
    if (sfti_utf8_check(text.data, text.len) != text.len) return false;
    text = python_json(walk->arena, text);
    bool failed = !text.data;
    if (!failed) text = last_members(walk, text, &failed);
    if (failed) *code = SFT_OUT_OF_MEMORY;
    if (!text.data) return false;
    memset(&state, 0, offsetof(walk_state, places));
    state.walk = walk;
    walk->index = -1;
    walk->pointer[0] = '\0';
    sfti_json_begin(&walk->json, text.data, text.len);
    walk_all(&state);
    *code = state.code;
    return state.code == SFT_OK;
}
