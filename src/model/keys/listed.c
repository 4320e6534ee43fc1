/* torchao's list of tensors. Tests: test_listed.c. */
#include "keys/listed.h"

#include "base/json.h"
#include "base/order.h"
#include "base/splice.h"

#include <string.h>

bool sfti_names_class(sft_span value) {
    sfti_json json;
    bool named = false;
    sfti_json_begin(&json, value.data, value.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return false;
    while (!named && sfti_json_next(&json) == SFTI_JSON_KEY) {
        named = sfti_json_is(&json, "_type");
        (void)sfti_json_skip(&json);
    }
    return named;
}

/* How many texts a list has; false: it has something else, or is none. */
static bool count_texts(sft_span list, size_t *count) {
    sfti_json json;
    sfti_json_begin(&json, list.data, list.len);
    if (sfti_json_next(&json) != SFTI_JSON_ARRAY) return false;
    while (sfti_json_next(&json) == SFTI_JSON_STRING) ++*count;
    return json.type == SFTI_JSON_ARRAY_END && sfti_json_next(&json) == SFTI_JSON_END;
}

static int compare_texts(const void *ctx, uint32_t a, uint32_t b) {
    const sft_span *texts = ctx;
    return sfti_bytes_compare(texts[a], texts[b]);
}

/* The texts of all lists, of which `again` marks those that an earlier one is. False when out of
 * memory. */
static bool collect_texts(const sft_span *lists, size_t count, sfti_arena *arena, sft_span *texts,
                          bool *again) {
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        sfti_json json;
        sfti_json_begin(&json, lists[i].data, lists[i].len);
        (void)sfti_json_next(&json);
        while (sfti_json_next(&json) == SFTI_JSON_STRING) {
            sft_span text = texts[found++] = sfti_json_string(&json, arena);
            if (!text.data) return false;
        }
    }
    uint32_t *order = sfti_arena_sorted(arena, found, compare_texts, texts);
    for (size_t i = 0; order && i < found; i++)
        again[order[i]] = i > 0 && sft_span_equal(texts[order[i]], texts[order[i - 1]]);
    return order != NULL;
}

bool sfti_lists_joined(const sft_span *lists, size_t count, sfti_arena *arena, sft_span *out) {
    size_t most = 0, at = 0;
    *out = (sft_span){ NULL, 0 };
    for (size_t i = 0; i < count; i++)
        if (!count_texts(lists[i], &most)) return true;
    if (count == 0 || most >= UINT32_MAX) return true;
    sft_span *texts = sfti_arena_array(arena, most, sizeof *texts);
    bool *again = sfti_arena_array(arena, most, sizeof *again);
    if (!texts || !again || !collect_texts(lists, count, arena, texts, again)) return false;
    uint64_t len = 2; /* brackets */
    for (size_t i = 0; i < most; i++) len += again[i] ? 0 : sfti_spell(texts[i], NULL) + 2;
    char *text = sfti_arena_array(arena, len, 1);
    if (!text) return false;
    text[at++] = '[';
    for (size_t i = 0; i < most; i++) {
        if (again[i]) continue;
        if (at > 1) text[at++] = ',', text[at++] = ' ';
        at += (size_t)sfti_spell(texts[i], text + at);
    }
    text[at++] = ']';
    *out = (sft_span){ text, at };
    return true;
}
