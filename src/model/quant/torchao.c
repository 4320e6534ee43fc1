/* Tensors of torchao's classes, which are stored as several: metadata have a key for each.
 * Tests: test_quant.c. */
#include "quant/declared.h"

#include "base/json.h"

bool sfti_declared_torchao(const sft_set *set, size_t i, sfti_arena *arena, sft_span *name,
                           sft_span *object) {
    sft_span codes = sft_set_tensor_at(set, i)->name;
    if (!sfti_name_ends(codes, "_qdata")) return false;
    size_t len = codes.len - strlen("_qdata"), dot = len;
    while (dot > 0 && codes.data[dot - 1] != '.') dot--;
    if (dot == 0 || dot == len || codes.data[dot] != '_') return false;
    char *text = sfti_arena_take(arena, len);
    if (!text) return false;
    memcpy(text, codes.data, dot);
    memcpy(text + dot, codes.data + dot + 1, len - dot - 1);
    *name = (sft_span){ text, len - 1 };
    return sft_file_metadata_get(sft_set_shard_at(set, sft_set_tensor_shard(set, i)), *name,
                                 object);
}

sft_span sfti_torchao_lacks(const sft_set *set, size_t i, sft_span object, sfti_arena *arena) {
    sft_span codes = sft_set_tensor_at(set, i)->name, none = { "", 0 };
    size_t stem = codes.len - strlen("qdata");
    sfti_json json;
    sfti_json_begin(&json, object.data, object.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return none;
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        sft_span key = sfti_json_string(&json, arena);
        bool ours = sft_span_equal(key, sft_span_cstr("_tensor_data_names"));
        if (sfti_json_next(&json) != SFTI_JSON_ARRAY || !ours) {
            (void)sfti_json_skip(&json);
            continue;
        }
        while (sfti_json_next(&json) == SFTI_JSON_STRING) {
            sft_span leaf = sfti_json_string(&json, arena);
            char *name = leaf.data ? sfti_arena_take(arena, stem + leaf.len) : NULL;
            if (!name) return none;
            memcpy(name, codes.data, stem);
            if (leaf.len > 0) memcpy(name + stem, leaf.data, leaf.len);
            if (!sft_set_find(set, (sft_span){ name, stem + leaf.len }, NULL)) return leaf;
        }
    }
    return none;
}

/* Whether a member of the object or of its "_data" is that word. */
static bool object_says(sft_span object, const char *key, size_t len, sft_span value,
                        sfti_arena *arena) {
    sfti_json json;
    sfti_json_begin(&json, object.data, object.len);
    while (sfti_json_next(&json) != SFTI_JSON_END && json.type != SFTI_JSON_ERROR) {
        if (json.type != SFTI_JSON_KEY) continue;
        sft_span name = sfti_json_string(&json, arena);
        sfti_json_type type = sfti_json_next(&json);
        bool within = type == SFTI_JSON_OBJECT && json.depth == 2
                   && sft_span_equal(name, sft_span_cstr("_data"));
        if (sft_span_equal(name, (sft_span){ key, len }) && sft_span_equal(json.text, value)
            && type != SFTI_JSON_OBJECT)
            return true;
        if (!within) (void)sfti_json_skip(&json);
    }
    return false;
}

bool sfti_torchao_has(const sfti_quant_layout *layout, sft_span object, sfti_arena *arena) {
    sft_span lines = layout->torchao, type, rest, word;
    while (sfti_layout_line(&lines, "torchao", &type, &rest)) {
        bool says = object_says(object, "_type", strlen("_type"), type, arena);
        while (says && sfti_layout_word(&rest, ' ', &word)) {
            const char *equals = memchr(word.data, '=', word.len);
            size_t len = equals ? (size_t)(equals - word.data) : word.len;
            sft_span value = { word.data + len + (equals != NULL),
                               word.len - len - (equals != NULL) };
            says = object_says(object, word.data, len, value, arena);
        }
        if (says) return true;
    }
    return false;
}
