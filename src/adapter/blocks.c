/* Strengths by block: vectors for U-Nets, and patterns. Tests: tests/adapter/options.py. */
#include "adapter/adapter.h"

#include "base/error.h"
#include "base/glob.h"
#include "base/json_lex.h"

#include <string.h>

/* Blocks of a U-Net: the text encoders, IN00 to IN11, M00, OUT00 to OUT11. */
#define SLOT_COUNT 26
#define SLOT_IN 1
#define SLOT_MIDDLE 13
#define SLOT_OUT 14
#define SLOT_OTHER 26

/* Bits of the slots that a vector of so many numbers has. */
typedef struct block_vector {
    size_t count;
    uint32_t slots;
} block_vector;

static const block_vector vectors[] = {
    { 12, 0x000fe361 }, /* LoRA of SDXL: IN04 05 07 08, M00, OUT00 to 05 */
    { 17, 0x03fe236d }, /* LoRA of SD 1 and 2: IN01 02 04 05 07 08, M00, OUT03 to 11 */
    { 20, 0x007fe3ff }, /* LoCon of SDXL: IN00 to 08, M00, OUT00 to 08 */
    { 26, 0x03ffffff },
};

/* What is told: patterns with a number each, or numbers alone. */
typedef struct block_rule {
    sft_span pattern;
    double by;
    bool used;
} block_rule;

#define RULES_MOST 64

static sft_code read_rules(sft_span text, block_rule *rules, size_t *count, bool *named,
                           sft_error *err) {
    *count = 0;
    for (size_t at = 0; at <= text.len && text.len > 0; ) {
        size_t end = at, equals = SIZE_MAX;
        for (; end < text.len && text.data[end] != ','; end++)
            if (text.data[end] == '=') equals = end;
        bool has = equals != SIZE_MAX;
        sft_span number = { text.data + at, end - at };
        block_rule *rule = &rules[*count];
        if (*count == RULES_MOST)
            return sfti_misuse(err, "expected at most %d strengths of blocks, found more",
                               RULES_MOST);
        *rule = (block_rule){ .pattern = { text.data + at, has ? equals - at : 0 } };
        if (has) number = (sft_span){ text.data + equals + 1, end - equals - 1 };
        if (*count == 0) *named = has;
        if (!sfti_parse_double(number, &rule->by) || has != *named
            || (has && rule->pattern.len == 0))
            return sfti_misuse(err, "expected numbers, or GLOB=NUMBER, with commas between as "
                               "strengths of blocks, found \"%.*s\"",
                               SFTI_CLIP(((sft_span){ text.data + at, end - at }), 100));
        ++*count;
        at = end + 1;
    }
    return SFT_OK;
}

static bool read_block_number(sft_span text, const char *before, uint32_t *out) {
    size_t len = strlen(before), i = len;
    if (!sfti_begins(text, before)) return false;
    for (*out = 0; i < text.len && i < len + 2 && sfti_lex_digit(text.data[i]); i++)
        *out = *out * 10 + (uint32_t)(text.data[i] - '0');
    return i > len && i < text.len && text.data[i] == '.' && *out < 12;
}

/* The slot of a tensor, by the names that it has in the original code. */
static uint32_t slot_in_net(const sfti_lora_naming *naming, const sft_set *model,
                            const sft_tensor *tensor) {
    sfti_lora_ways ways;
    sft_span name = tensor->name;
    bool fused = sfti_ends(name, ".in_proj_bias");
    if (fused || sfti_ends(name, ".bias")) { /* goes with its weight */
        name.len -= strlen(fused ? ".in_proj_bias" : ".bias");
        tensor = sfti_set_sibling(model, name, fused ? ".in_proj_weight" : ".weight");
        if (!tensor) return SLOT_OTHER;
    }
    sfti_lora_ways_of(naming, tensor, &ways);
    for (size_t i = 0; i < ways.count; i++) {
        const sfti_lora_way *way = &ways.ways[i];
        uint32_t number;
        if (way->parts & ~(1u << SFTI_PART_MAIN)) return 0;
        if (read_block_number(way->path, "input_blocks.", &number)) return SLOT_IN + number;
        if (sfti_begins(way->path, "middle_block.")) return SLOT_MIDDLE;
        if (read_block_number(way->path, "output_blocks.", &number)) return SLOT_OUT + number;
    }
    return SLOT_OTHER;
}

static sft_code apply_vector(sfti_arena *arena, const block_rule *rules, size_t count,
                             const sfti_lora_map *map, const sft_set *model, double *strengths,
                             sft_error *err) {
    sfti_lora_naming naming;
    const block_vector *vector = NULL;
    double by[SLOT_COUNT + 1];
    bool any = false;
    size_t next = 0;
    for (size_t i = 0; i < SFTI_COUNT(vectors); i++)
        if (vectors[i].count == count) vector = &vectors[i];
    if (!vector)
        return sfti_misuse(err, "expected 12, 17, 20 or 26 strengths of blocks, found %zu", count);
    sft_code code = sfti_lora_naming_open(arena, model, &naming, err);
    if (code) return code;
    for (uint32_t slot = 0; slot <= SLOT_COUNT; slot++)
        by[slot] = vector->slots >> slot & 1 ? rules[next++].by : 1;
    for (size_t i = 0; i < map->count; i++) {
        uint32_t slot = slot_in_net(&naming, model, sft_set_tensor_at(model,
                                    map->targets[i].tensor));
        any = any || (slot != SLOT_OTHER && slot > 0);
        strengths[i] *= by[slot];
    }
    if (any || map->count == 0) return SFT_OK;
    return sfti_misuse(err, "expected blocks of a U-Net for %zu strengths, found none that the "
                       "adapter changes: patterns of names serve other models", count);
}

sft_code sfti_lora_blocks(sfti_lora *lora, const sfti_lora_map *map, const sft_set *model,
                          sft_span text, double strength, double **out, sft_error *err) {
    block_rule rules[RULES_MOST + 1];
    size_t count;
    bool named = false;
    sft_code code = read_rules(text, rules, &count, &named, err);
    double *strengths = sfti_arena_array(&lora->arena, map->count, sizeof *strengths);
    if (code) return code;
    if (!strengths) return sfti_fail_memory(err, map->count * sizeof *strengths);
    for (size_t i = 0; i < map->count; i++) strengths[i] = strength;
    *out = strengths;
    if (!named) return apply_vector(&lora->arena, rules, count, map, model, strengths, err);
    for (size_t i = 0; i < map->count; i++) {
        sft_span name = sft_set_tensor_at(model, map->targets[i].tensor)->name;
        bool found = false;
        for (size_t k = 0; k < count; k++) {
            if (!sfti_glob_match(rules[k].pattern, name)) continue;
            rules[k].used = true;
            if (!found) strengths[i] *= rules[k].by; /* the first counts */
            found = true;
        }
    }
    for (size_t k = 0; k < count; k++)
        if (!rules[k].used)
            return sfti_misuse(err, "expected a pattern of tensors that the adapter changes, found "
                               "\"%.*s\"", SFTI_CLIP(rules[k].pattern, 100));
    return SFT_OK;
}
