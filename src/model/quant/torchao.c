/* Tensors of torchao's classes, which are stored as several: metadata has a key for each.
 * Tests: test_quant.c. */
#include "quant/quant.h"

#include "base/checked.h"
#include "base/error.h"
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

/* The bit of the part, that the values are computed from, which a tensor is; or 0. */
static uint32_t part_named(const sft_set *set, sft_span name, const sfti_quant *quant) {
    const sft_tensor *tensor = sft_set_find(set, name, NULL);
    for (size_t k = 0; tensor && k < quant->count; k++)
        if (quant->parts[k].tensor == tensor) return 1u << k;
    return 0;
}

/* Whether a size of groups, or a pair of sizes of blocks, is that of the scales. */
static bool has_blocks(sfti_json *json, const sfti_quant *quant) {
    const sfti_quant_part *scale = &quant->parts[1];
    if (json->type == SFTI_JSON_UINT)
        return scale->row_block == 1 && scale->column_block == json->value;
    if (json->type != SFTI_JSON_ARRAY || quant->spec.rank != 2) return false;
    const uint64_t sizes[2] = { quant->rows, quant->columns };
    const uint64_t numbers[2] = { scale->rows, scale->columns };
    for (size_t d = 0; d < 2; d++) {
        uint64_t all;
        if (sfti_json_next(json) != SFTI_JSON_UINT || !sfti_mul(json->value, numbers[d], &all)
            || all != sizes[d])
            return false;
    }
    return sfti_json_next(json) == SFTI_JSON_ARRAY_END;
}

sft_code sfti_torchao_check(const sft_set *set, size_t i, sft_span object, const sfti_quant *quant,
                            sfti_arena *arena, sft_error *err) {
    const sft_tensor *tensor = sft_set_tensor_at(set, i);
    size_t stem = tensor->name.len - strlen("qdata");
    uint32_t listed = 0, all = (1u << quant->count) - 1;
    bool lists = false, blocks = true;
    sfti_json json;
    sfti_json_begin(&json, object.data, object.len);
    while (sfti_json_next(&json) != SFTI_JSON_END && json.type != SFTI_JSON_ERROR) {
        if (json.type != SFTI_JSON_KEY) continue;
        sft_span key = sfti_json_string(&json, arena);
        sfti_json_type type = sfti_json_next(&json);
        if (type == SFTI_JSON_OBJECT && sft_span_equal(key, sft_span_cstr("_data"))) continue;
        if (sft_span_equal(key, sft_span_cstr("block_size")))
            blocks = blocks && has_blocks(&json, quant);
        if (type != SFTI_JSON_ARRAY || !sft_span_equal(key, sft_span_cstr("_tensor_data_names"))) {
            (void)sfti_json_skip(&json);
            continue;
        }
        for (lists = true; sfti_json_next(&json) == SFTI_JSON_STRING;) {
            sft_span leaf = sfti_json_string(&json, arena);
            char *name = leaf.data ? sfti_arena_take(arena, stem + leaf.len) : NULL;
            if (!name) return sfti_fail_memory(err, stem + leaf.len);
            memcpy(name, tensor->name.data, stem);
            if (leaf.len > 0) memcpy(name + stem, leaf.data, leaf.len);
            uint32_t part = part_named(set, (sft_span){ name, stem + leaf.len }, quant);
            listed |= part;
            if (part == 0)
                return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, tensor->name,
                                        "expected its \"%.*s\" too, as the metadata says, found "
                                        "none that belongs to %.*s", SFTI_CLIP(leaf, 100),
                                        SFTI_CLIP(quant->layout->id, 60));
        }
    }
    if (lists && listed != all)
        return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, tensor->name,
                                "expected the tensors that the metadata lists "
                                "(_tensor_data_names), found others beside it");
    if (blocks) return SFT_OK;
    return sfti_fail_tensor(err, SFT_CAST_DTYPE, SFT_NO_OFFSET, tensor->name,
                            "expected a factor for each of the blocks that the metadata gives "
                            "(block_size), found another number");
}

/* Whether the value that was just read, or the "_data" of an object, is one of the words. */
static bool is_said(sfti_json *json, sft_span words, sfti_arena *arena) {
    bool object = json->type == SFTI_JSON_OBJECT, said = false;
    uint32_t depth = (uint32_t)json->depth;
    sft_span word, value = sfti_json_string(json, arena);
    if (object) value = (sft_span){ "", 0 };
    while (object && sfti_json_next(json) == SFTI_JSON_KEY) {
        sft_span key = sfti_json_string(json, arena);
        (void)sfti_json_next(json);
        if (sft_span_equal(key, sft_span_cstr("_data"))) value = sfti_json_string(json, arena);
        if (sfti_json_skip(json) == SFTI_JSON_ERROR) return false;
    }
    if (object && json->depth >= depth) return false;
    while (sfti_layout_word(&words, '|', &word)) said = said || sft_span_equal(value, word);
    return said;
}

/* Whether a member of the object or of its "_data" is one of the words, and no other. */
static bool object_says(sft_span object, const char *key, size_t len, sft_span words,
                        sfti_arena *arena) {
    sfti_json json;
    size_t said = 0;
    sfti_json_begin(&json, object.data, object.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return false;
    while (sfti_json_next(&json) != SFTI_JSON_END && json.type != SFTI_JSON_ERROR) {
        if (json.type != SFTI_JSON_KEY) continue;
        sft_span name = sfti_json_string(&json, arena);
        sfti_json_type type = sfti_json_next(&json);
        bool within = type == SFTI_JSON_OBJECT && json.depth == 2
                   && sft_span_equal(name, sft_span_cstr("_data"));
        if (within) continue;
        if (!sft_span_equal(name, (sft_span){ key, len })) {
            (void)sfti_json_skip(&json);
        } else {
            if (!is_said(&json, words, arena)) return false;
            said++;
        }
    }
    return said > 0 && json.type == SFTI_JSON_END;
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
