/* Digests of the values of a JSON text, by which values that were derived are known again. Tests:
 * test_derived.c. */
#include "text/derived.h"

#include "base/json_lex.h"
#include "base/order.h"

#include <string.h>

/* ── Digests ── */

static uint64_t fnv(uint64_t hash, const char *bytes, size_t len) {
    for (size_t i = 0; i < len; i++) hash = (hash ^ (uint8_t)bytes[i]) * UINT64_C(0x100000001B3);
    return hash;
}

uint64_t sfti_derived_digest(sft_span pointer, sfti_json_type type, sft_span text) {
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    bool number = type == SFTI_JSON_UINT || type == SFTI_JSON_NUMBER;
    const char kind = type == SFTI_JSON_STRING ? 's' : number ? 'n' : 'l';
    /* 1.50 and 1.5 are one number: other writers spell them so. */
    if (number && text.len > 0 && memchr(text.data, '.', text.len)
        && !memchr(text.data, 'e', text.len) && !memchr(text.data, 'E', text.len)) {
        while (text.len > 1 && text.data[text.len - 1] == '0') text.len--;
        if (text.data[text.len - 1] == '.') text.len--;
    }
    for (size_t i = 0; i < pointer.len;) {
        size_t end = i + 1, digits = 0;
        for (; end < pointer.len && pointer.data[end] != '/'; end++)
            digits += sfti_lex_digit(pointer.data[end]);
        bool index = digits > 0 && digits == end - i - 1;
        hash = index ? fnv(hash, "/*", 2) : fnv(hash, pointer.data + i, end - i);
        i = end;
    }
    hash = fnv(hash, &kind, 1);
    return fnv(hash, text.data ? text.data : "", text.len);
}

static int digest_order(const void *ctx, uint32_t a, uint32_t b) {
    const uint64_t *digests = ctx;
    return (digests[a] > digests[b]) - (digests[a] < digests[b]);
}

bool sfti_derived_has(const sfti_derived *set, uint64_t digest) {
    size_t low = 0, high = set->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (set->digests[middle] < digest) low = middle + 1;
        else high = middle;
    }
    return low < set->count && set->digests[low] == digest;
}

bool sfti_derived_may(sft_span pointer) {
    static const char *const unmarked[] = {
        "/sha256", "/autov3", "/size", "/nsfw", "/nsfwLevel", "/preview_nsfw_level",
    };
    size_t skip = pointer.len > 8 && memcmp(pointer.data, "/civitai", 8) == 0 ? 8 : 0;
    if (pointer.len > skip + 7 && memcmp(pointer.data + skip, "/files/", 7) == 0) return false;
    for (size_t i = 0; i < sizeof unmarked / sizeof *unmarked; i++) {
        size_t len = strlen(unmarked[i]);
        if (pointer.len >= len
            && memcmp(pointer.data + pointer.len - len, unmarked[i], len) == 0)
            return false;
    }
    return true;
}

bool sfti_derived_sort(sfti_derived *set, sfti_arena *arena) {
    const uint32_t *order = sfti_arena_sorted(arena, set->count, digest_order, set->digests);
    uint64_t *sorted = sfti_arena_array(arena, set->count + 1, sizeof *sorted);
    if (!order || !sorted) return false;
    for (size_t i = 0; i < set->count; i++) sorted[i] = set->digests[order[i]];
    set->digests = sorted;
    return true;
}

/* ── Leaves ── */

void sfti_leaves_begin(sfti_leaves *leaves, sft_span text, sfti_arena *arena) {
    memset(leaves, 0, sizeof *leaves);
    leaves->arena = arena;
    sfti_json_begin(&leaves->json, text.data, text.len);
}

/* Elements have no name here: whatever index stands for all. A name too long for the buffer ends
 * the pointer: such values are as good as unmarked. */
static void leaf_name(sfti_leaves *leaves, size_t from, sft_span name) {
    size_t room = sizeof leaves->pointer - from;
    size_t len = name.len + 1 < room ? name.len + 1 : 0;
    if (len) {
        leaves->pointer[from] = '/';
        memcpy(leaves->pointer + from + 1, name.data, name.len);
    }
    leaves->lens[leaves->json.depth] = from + len;
}

sfti_json_type sfti_leaves_event(sfti_leaves *leaves, uint64_t *digest) {
    sfti_json *json = &leaves->json;
    uint32_t before = json->depth;
    sfti_json_type type = sfti_json_next(json);
    bool text = type == SFTI_JSON_STRING || type == SFTI_JSON_KEY;
    sft_span value = text ? sfti_json_string(json, leaves->arena) : json->text;
    if (text && !value.data) return SFTI_JSON_ERROR;
    if (type == SFTI_JSON_KEY)
        leaf_name(leaves, json->depth > 1 ? leaves->lens[json->depth - 1] : 0, value);
    else if (type == SFTI_JSON_ARRAY)
        leaf_name(leaves, before > 0 ? leaves->lens[before] : 0, sft_span_cstr("0"));
    else if (type >= SFTI_JSON_STRING)
        *digest = sfti_derived_digest((sft_span){ leaves->pointer, leaves->lens[json->depth] },
                                      type, value);
    return type;
}

bool sfti_leaves_next(sfti_leaves *leaves, uint64_t *digest) {
    for (;;) {
        sfti_json_type type = sfti_leaves_event(leaves, digest);
        if (type == SFTI_JSON_ERROR || type == SFTI_JSON_END) return false;
        if (type >= SFTI_JSON_STRING) return true;
    }
}

bool sfti_derived_of(sft_span text, sfti_arena *arena, sfti_derived *out) {
    sfti_leaves leaves;
    uint64_t digest;
    size_t count = 0;
    sfti_leaves_begin(&leaves, text, arena);
    while (count < SFTI_DERIVED_MOST && sfti_leaves_next(&leaves, &digest)) count++;
    uint64_t *digests = sfti_arena_array(arena, count + 1, sizeof *digests);
    if (!digests) return false;
    sfti_leaves_begin(&leaves, text, arena);
    for (size_t i = 0; i < count && sfti_leaves_next(&leaves, &digest); i++) digests[i] = digest;
    *out = (sfti_derived){ digests, count };
    return sfti_derived_sort(out, arena);
}

/* ── Marks ── */

static bool parse_digest(sft_span text, uint64_t *out) {
    *out = 0;
    for (size_t i = 0; i < text.len; i++) {
        int digit = sfti_lex_hex_digit(text.data[i]);
        if (digit < 0) return false;
        *out = *out << 4 | (uint64_t)digit;
    }
    return text.len == 16;
}

static bool all_there(sft_span origin, sfti_derived_there *is_there, void *ctx) {
    if (!is_there || sft_span_equal(origin, sft_span_cstr(SFTI_DERIVED_MODEL))) return true;
    for (size_t i = 0, from = 0; i <= origin.len; i++) {
        if (i < origin.len && origin.data[i] != '/') continue;
        if (!is_there(ctx, (sft_span){ origin.data + from, i - from })) return false;
        from = i + 1;
    }
    return true;
}

bool sfti_derived_read(sft_span origins, sfti_arena *arena, sfti_derived_there *is_there, void *ctx,
                       sfti_derived *out) {
    sfti_json json;
    size_t most = origins.len / 19 + 1, count = 0;
    if (most > SFTI_DERIVED_MOST) most = SFTI_DERIVED_MOST;
    uint64_t *digests = sfti_arena_array(arena, most, sizeof *digests);
    bool counts = false;
    if (!digests) return false;
    sfti_json_begin(&json, origins.data, origins.len);
    for (sfti_json_type type = sfti_json_next(&json);
         type != SFTI_JSON_END && type != SFTI_JSON_ERROR; type = sfti_json_next(&json)) {
        if (type == SFTI_JSON_KEY && json.depth == 1) {
            sft_span origin = sfti_json_string(&json, arena);
            if (!origin.data) return false;
            counts = all_there(origin, is_there, ctx);
        } else if (type == SFTI_JSON_STRING && json.depth == 2 && counts && count < most
                   && parse_digest(json.text, &digests[count])) {
            count++;
        }
    }
    *out = (sfti_derived){ digests, count };
    return sfti_derived_sort(out, arena);
}

bool sfti_derived_member(sft_span text, const char *key, sft_span *value) {
    sfti_json json;
    sfti_json_begin(&json, text.data, text.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return false;
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        bool found = sfti_json_is(&json, key);
        if (!found) {
            sfti_json_skip(&json);
            continue;
        }
        sfti_json_next(&json);
        const char *start = json.begin + json.start;
        sfti_json_skip(&json);
        *value = (sft_span){ start, (size_t)(json.at - start) };
        return json.type != SFTI_JSON_ERROR;
    }
    return false;
}

bool sfti_derived_find(sft_span text, sft_span *origins) {
    sft_span mark;
    return sfti_derived_member(text, SFTI_DERIVED, &mark)
        && sfti_derived_member(mark, "derived", origins);
}
