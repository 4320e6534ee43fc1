#include "info/header/header.h"

#include <string.h>

#define MERGE_SOURCES 64

/* ── Sources ── */

static sfti_merge_source *find_source(const sft_info *info, sft_span sha256) {
    sfti_merge_source *source = info->merge_sources.first;
    while (source && !sft_span_equal(source->sha256, sha256)) source = source->next;
    return source;
}

static sfti_merge_source *merge_source(sft_info *info, sft_span sha256) {
    sfti_merge_source *source = sha256.len > 0 ? find_source(info, sha256) : NULL;
    if (source || info->merge_sources.count >= MERGE_SOURCES) return source;
    source = sfti_info_push(info, &info->merge_sources, sizeof *source);
    if (!source) return NULL;
    source->sha256 = sha256;
    info->has_merge = true;
    return source;
}

/* ── sd_merge_models: {sha256: {name, legacy_hash, …}}, ancestors among them ── */

static void take_model(sfti_walk *walk, const sfti_walk_row *row) {
    sfti_merge_source **current = walk->ctx;
    sft_span hex;
    if (row->field == 0) {
        *current = NULL;
        if (walk->json.type == SFTI_JSON_OBJECT
            && sfti_info_hash(walk->info, walk->key, 64, &hex))
            *current = merge_source(walk->info, hex);
    } else if (*current && walk->json.type == SFTI_JSON_STRING
               && !sfti_is_placeholder(walk->text)) {
        if (row->field == 1) (*current)->name = sfti_leaf_name(walk->text);
        else if (sfti_info_hash(walk->info, walk->text, 8, &hex)) (*current)->autov1 = hex;
    }
}

static const sfti_walk_row model_rows[] = {
    { "/*", take_model, 0, 0, NULL },
    { "/*/name", take_model, 1, 0, NULL },
    { "/*/legacy_hash", take_model, 2, 0, NULL },
};

static void merge_models(sfti_header *header, const sfti_header_row *row) {
    sfti_merge_source *current = NULL;
    (void)row;
    sfti_info_walk(header->info, header->value, header->source, SFTI_WALK(model_rows), &current);
}

/* ── sd_merge_recipe ── */

typedef enum recipe_field { RECIPE_ROOT, RECIPE_TYPE, RECIPE_METHOD, RECIPE_NAME,
                            RECIPE_MODEL, RECIPE_WEIGHT } recipe_field;

typedef struct recipe_walk {
    sft_span models[3]; /* hashes of A, B and C */
    sft_span weight;    /* of B */
} recipe_walk;

static const struct recipe_type { const char *type, *tool; } recipe_types[] = {
    { "webui", "webui" }, { "sd-webui-supermerger", "supermerger" }, { "SDNext", "sdnext" },
    { "Neo", "forge-neo" }, { "merge-models-chattiori", "chattiori" },
};

static sft_span recipe_tool(sft_span type) {
    for (size_t i = 0; i < SFTI_COUNT(recipe_types); i++)
        if (sfti_same_letters(type, recipe_types[i].type))
            return sft_span_cstr(recipe_types[i].tool);
    return type;
}

static void recipe_text(sfti_walk *walk, const sfti_walk_row *row) {
    recipe_walk *recipe = walk->ctx;
    sft_info *info = walk->info;
    if (walk->json.type != SFTI_JSON_STRING || sfti_is_placeholder(walk->text)) return;
    switch (row->field) {
    case RECIPE_TYPE: info->merge_tool = recipe_tool(walk->text); break;
    case RECIPE_METHOD:
        if (info->merge_method.len == 0) info->merge_method = walk->text;
        break;
    case RECIPE_NAME:
        sfti_info_add_text(info, SFT_FACT_NAME, walk->text, sfti_walk_source(walk), row->trust);
        break;
    default: sfti_info_hash(info, walk->text, 64, &recipe->models[row->trust]);
    }
}

static void take_recipe(sfti_walk *walk, const sfti_walk_row *row) {
    recipe_walk *recipe = walk->ctx;
    bool number = walk->json.type == SFTI_JSON_UINT || walk->json.type == SFTI_JSON_NUMBER;
    if (row->field == RECIPE_ROOT) {
        if (walk->json.type != SFTI_JSON_OBJECT) return;
        walk->info->merge_recipe = (sft_span){ walk->json.begin,
                                               (size_t)(walk->json.end - walk->json.begin) };
        walk->info->has_merge = true;
    } else if (row->field == RECIPE_WEIGHT) {
        if (number) recipe->weight = walk->text;
    } else {
        recipe_text(walk, row);
    }
}

static const sfti_walk_row recipe_rows[] = {
    { "", take_recipe, RECIPE_ROOT, 0, NULL },
    { "/type", take_recipe, RECIPE_TYPE, 0, NULL },
    { "/interp_method", take_recipe, RECIPE_METHOD, 0, NULL },
    { "/merge_mode", take_recipe, RECIPE_METHOD, 0, NULL },
    { "/merge_method", take_recipe, RECIPE_METHOD, 0, NULL },
    { "/mode", take_recipe, RECIPE_METHOD, 0, NULL },
    { "/custom_name", take_recipe, RECIPE_NAME, 85, NULL },
    { "/primary_model_hash", take_recipe, RECIPE_MODEL, 0, NULL },
    { "/secondary_model_hash", take_recipe, RECIPE_MODEL, 1, NULL },
    { "/tertiary_model_hash", take_recipe, RECIPE_MODEL, 2, NULL },
    { "/model_a", take_recipe, RECIPE_MODEL, 0, NULL },
    { "/model_b", take_recipe, RECIPE_MODEL, 1, NULL },
    { "/model_c", take_recipe, RECIPE_MODEL, 2, NULL },
    { "/multiplier", take_recipe, RECIPE_WEIGHT, 0, NULL },
    { "/base_alpha", take_recipe, RECIPE_WEIGHT, 0, NULL },
    { "/alpha", take_recipe, RECIPE_WEIGHT, 0, NULL },
};

static void merge_recipe(sfti_header *header, const sfti_header_row *row) {
    recipe_walk recipe;
    (void)row;
    memset(&recipe, 0, sizeof recipe);
    sfti_info_walk(header->info, header->value, header->source, SFTI_WALK(recipe_rows), &recipe);
    for (size_t i = 0; i < SFTI_COUNT(recipe.models); i++) {
        if (recipe.models[i].len == 0) continue;
        sfti_merge_source *source = merge_source(header->info, recipe.models[i]);
        if (source && i == 1) source->weight = recipe.weight;
    }
}

/* ── supermerger's LoRAs: sshs_cp0 and so on, sshs_ratio ── */

static void take_part_name(sfti_walk *walk, const sfti_walk_row *row) {
    sft_span *name = walk->ctx;
    (void)row;
    if (walk->json.type == SFTI_JSON_STRING && !sfti_is_placeholder(walk->text))
        *name = walk->text;
}

static const sfti_walk_row merged_rows[] = {
    { "/ss_output_name", take_part_name, 0, 0, NULL },
};

/* Number n of a list in Python's or any other spelling of numbers between commas. */
static sft_span nth_number(sft_span text, size_t n) {
    sft_span none = { "", 0 }, piece;
    for (size_t i = 0; sfti_next_piece(&text, ',', &piece); i++) {
        if (i != n) continue;
        while (piece.len > 0 && strchr("[( \"'", *piece.data)) piece.data++, piece.len--;
        while (piece.len > 0 && strchr("]) \"'", piece.data[piece.len - 1])) piece.len--;
        return sfti_is_number(piece) ? piece : none;
    }
    return none;
}

static void merged_part(sfti_header *header, size_t n) {
    sft_span name = { "", 0 }, none = { "", 0 }, ratio;
    sfti_info_walk(header->info, header->value, header->source, SFTI_WALK(merged_rows), &name);
    sfti_merge_source *source = merge_source(header->info, none);
    if (!source) return;
    source->name = name;
    if (sfti_header_get(header, "sshs_ratio", &ratio)) source->weight = nth_number(ratio, n);
    header->info->merge_tool = sft_span_cstr("supermerger");
}

void sfti_merges_finish(sfti_header *header) {
    for (unsigned n = 0; n < MERGE_SOURCES && !header->info->code; n++) {
        sft_span key = sfti_info_text(header->info, "sshs_cp%u", n);
        if (key.len == 0 || !sfti_header_at(header, key.data)) return;
        merged_part(header, n);
    }
}

static const sfti_header_row merge_rows[] = {
    { "sd_merge_models", merge_models, 0, 0, NULL, NULL, 0 },
    { "sd_merge_recipe", merge_recipe, 0, 0, NULL, NULL, 0 },
};

sfti_header_family sfti_merges_family(void) {
    return (sfti_header_family){ "", merge_rows, SFTI_COUNT(merge_rows), false };
}
