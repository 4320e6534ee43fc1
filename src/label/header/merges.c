/* Models that a merge was made of: sd_merge_models, sd_merge_recipe and their like. */
#include "label/header/header.h"

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
    info->has_merge = true;
    return SFTI_PUSH(info, &info->merge_sources, sfti_merge_source, .sha256 = sha256);
}

/* ── sd_merge_models: {sha256: {name, legacy_hash, …}}, ancestors among them ── */

static void model_open(sfti_cursor *at) {
    sfti_merge_source **current = at->ctx;
    sft_span hex;
    *current = NULL;
    if (at->json->type == SFTI_JSON_OBJECT && sfti_info_hash(at->info, at->key, 64, &hex))
        *current = merge_source(at->info, hex);
}

static void model_name(sfti_cursor *at) {
    sfti_merge_source *model = *(sfti_merge_source **)at->ctx;
    if (model && sfti_at_text(at)) model->name = sfti_leaf_name(at->text);
}

static void model_hash(sfti_cursor *at) {
    sfti_merge_source *model = *(sfti_merge_source **)at->ctx;
    sft_span hex;
    if (model && sfti_at_text(at) && sfti_info_hash(at->info, at->text, 8, &hex))
        model->autov1 = hex;
}

/* The text of its recipe. */
static void model_made(sfti_cursor *at) {
    sfti_merge_source *model = *(sfti_merge_source **)at->ctx;
    sfti_json json = *at->json;
    if (!model || json.type != SFTI_JSON_OBJECT) return;
    (void)sfti_json_skip(&json);
    model->recipe = (sft_span){ json.begin + at->json->start,
                                (size_t)(json.at - json.begin) - at->json->start };
}

static const sfti_key_take model_takes[] = {
    { "model", model_open, NULL, NULL }, { "name", model_name, NULL, NULL },
    { "hash", model_hash, NULL, NULL }, { "made", model_made, NULL, NULL },
};
SFTI_KEYS_OF(sfti_merge_model_keys, "merge-models", model_takes);

static void merge_models(sfti_cursor *at) {
    sfti_merge_source *current = NULL;
    sfti_info_walk(at->info, at->text, at->source, SFTI_KEY_ROWS(sfti_merge_model_keys), &current);
}

/* ── sd_merge_recipe ── */

typedef struct recipe {
    sft_span models[3]; /* hashes of A, B and C */
    sft_span weight;    /* of B */
    bool by_block;      /* that is the weight of a few tensors alone */
    sfti_merge_source *current; /* of a list of models */
} recipe;

static const char *const recipe_types[][2] = {
    { "webui", "webui" }, { "sd-webui-supermerger", "supermerger" }, { "SDNext", "sdnext" },
    { "Neo", "forge-neo" }, { "merge-models-chattiori", "chattiori" },
};

static void recipe_whole(sfti_cursor *at) {
    if (at->json->type != SFTI_JSON_OBJECT) return;
    at->info->merge_recipe = (sft_span){ at->json->begin,
                                         (size_t)(at->json->end - at->json->begin) };
    at->info->has_merge = true;
}

static void recipe_tool(sfti_cursor *at) {
    if (!sfti_at_text(at)) return;
    at->info->merge_tool = at->text;
    for (size_t i = 0; i < SFTI_COUNT(recipe_types); i++)
        if (sfti_same_letters(at->text, recipe_types[i][0]))
            at->info->merge_tool = sft_span_cstr(recipe_types[i][1]);
}

static void recipe_method(sfti_cursor *at) {
    if (sfti_at_text(at) && at->info->merge_method.len == 0) at->info->merge_method = at->text;
}

/* row->field: which of the models */
static void recipe_model(sfti_cursor *at) {
    recipe *told = at->ctx;
    if (sfti_at_text(at)) sfti_info_hash(at->info, at->text, 64, &told->models[at->row->field]);
}

static void recipe_weight(sfti_cursor *at) {
    if (sfti_at_number(at)) ((recipe *)at->ctx)->weight = at->text;
}

static void recipe_by_block(sfti_cursor *at) {
    if (sfti_at_bool(at) == 1) ((recipe *)at->ctx)->by_block = true;
}

static void recipe_source(sfti_cursor *at) {
    recipe *told = at->ctx;
    sft_span hex;
    told->current = NULL;
    if (!sfti_at_text(at) || !sfti_info_hash(at->info, at->text, 64, &hex)) return;
    told->current = merge_source(at->info, hex);
    if (told->current) told->current->direct = true;
}

static void recipe_share(sfti_cursor *at) {
    recipe *told = at->ctx;
    if (told->current && sfti_at_number(at)) told->current->weight = at->text;
}

static const sfti_key_take recipe_takes[] = {
    { "whole", recipe_whole, NULL, NULL },
    { "tool", recipe_tool, NULL, NULL },
    { "method", recipe_method, NULL, NULL },
    { "model", recipe_model, "a b c", NULL },
    { "weight", recipe_weight, NULL, NULL },
    { "by_block", recipe_by_block, NULL, NULL },
    { "source", recipe_source, NULL, NULL },
    { "share", recipe_share, NULL, NULL },
};
SFTI_KEYS_OF(sfti_recipe_keys, "recipe", recipe_takes);

static void merge_recipe(sfti_cursor *at) {
    recipe told;
    memset(&told, 0, sizeof told);
    sfti_info_walk(at->info, at->text, at->source, SFTI_KEY_ROWS(sfti_recipe_keys), &told);
    for (size_t i = 0; i < SFTI_COUNT(told.models); i++) {
        if (told.models[i].len == 0) continue;
        sfti_merge_source *source = merge_source(at->info, told.models[i]);
        if (source && i == 1 && !told.by_block) source->weight = told.weight;
        if (source) source->direct = true;
    }
}

static const sfti_key_take merge_takes[] = {
    { "models", merge_models, NULL, NULL },
    { "recipe", merge_recipe, NULL, NULL },
};
SFTI_KEYS_OF(sfti_merge_keys, "merges", merge_takes);

/* ── supermerger's LoRAs: sshs_cp0 and so on, sshs_ratio ── */

static const sfti_row merged_rows[] = { { "/ss_output_name", sfti_take_slot, 0, 0, NULL } };

/* Number n of a list in Python's or any other spelling of numbers between commas. */
static sft_span nth_number(sft_span text, size_t n) {
    sft_span none = { "", 0 }, piece;
    for (size_t i = 0; sfti_next_piece(&text, ',', &piece); i++) {
        if (i != n) continue;
        while (piece.len > 0 && strchr("[( \"'", *piece.data)) piece = sfti_from(piece, 1);
        while (piece.len > 0 && strchr("]) \"'", piece.data[piece.len - 1])) piece.len--;
        return sfti_is_number(piece) ? piece : none;
    }
    return none;
}

/* ── The tree: what those were made of ── */

#define MADE_FROM_MOST 512

typedef struct made {
    sft_span method;
    char names[MADE_FROM_MOST];
    size_t len;
} made;

static void add_made(made *m, sft_span name) {
    if (m->len + name.len + 2 > MADE_FROM_MOST) return;
    if (m->len > 0) m->names[m->len++] = ',', m->names[m->len++] = ' ';
    memcpy(m->names + m->len, name.data, name.len);
    m->len += name.len;
}

static void made_method(sfti_cursor *at) {
    made *m = at->ctx;
    if (sfti_at_text(at) && m->method.len == 0) m->method = at->text;
}

static void made_name(sfti_cursor *at) {
    if (sfti_at_text(at)) add_made(at->ctx, sfti_leaf_name(at->text));
}

static void made_hash(sfti_cursor *at) {
    sft_span hex;
    if (!sfti_at_text(at) || !sfti_info_hash(at->info, at->text, 64, &hex)) return;
    const sfti_merge_source *source = find_source(at->info, hex);
    add_made(at->ctx, source && source->name.len ? source->name : (sft_span){ hex.data, 10 });
}

static const sfti_key_take made_takes[] = {
    { "method", made_method, NULL, NULL }, { "name", made_name, NULL, NULL },
    { "hash", made_hash, NULL, NULL },
};
SFTI_KEYS_OF(sfti_merge_made_keys, "merge-made", made_takes);

/* Names alone, of modelspec.merged_from, that others have with their digests go, and all of them
 * beside another program's recipe, which may have copied them from one of its models; those that no
 * recipe names are what the others were made of. */
static void settle_sources(sft_info *info) {
    sfti_merge_source *first = info->merge_sources.first, *kept = NULL;
    bool direct = false, own = sfti_is(info->merge_tool, "libsafetensors");
    for (sfti_merge_source *s = first; s; s = s->next) direct = direct || s->direct;
    info->merge_sources = (sfti_list){ NULL, NULL, 0 };
    for (sfti_merge_source *s = first, *next; s; s = next) {
        bool again = direct && !own && s->sha256.len == 0;
        next = s->next;
        for (sfti_merge_source *o = first; o && s->sha256.len == 0; o = o->next)
            again = again || (o->sha256.len > 0 && sft_span_equal(o->name, s->name));
        if (again) continue;
        s->ancestor = direct && !s->direct && s->sha256.len > 0;
        if (kept) kept->next = s;
        else info->merge_sources.first = s;
        kept = s;
        info->merge_sources.last = s;
        info->merge_sources.count++;
    }
    if (kept) kept->next = NULL;
    for (sfti_merge_source *s = info->merge_sources.first; s && !info->code; s = s->next) {
        made m = { .len = 0 };
        if (s->recipe.len == 0) continue;
        (void)sfti_info_walk(info, s->recipe, sft_span_cstr("header:sd_merge_models"),
                             SFTI_KEY_ROWS(sfti_merge_made_keys), &m);
        char *names = sfti_info_take(info, m.len);
        if (!names) return;
        memcpy(names, m.names, m.len);
        s->made_from = (sft_span){ names, m.len };
        s->method = m.method;
    }
}

void sfti_merges_finish(sft_info *info) {
    settle_sources(info);
    for (unsigned n = 0; n < MERGE_SOURCES && !info->code; n++) {
        sft_span name = { "", 0 }, none = { "", 0 }, text;
        sft_span key = sfti_info_text(info, "sshs_cp%u", n);
        if (key.len == 0 || !sfti_info_metadata(info, key.data, &text)) return;
        (void)sfti_walk_key(info, key.data, SFTI_ROWS(merged_rows), &name);
        sfti_merge_source *source = merge_source(info, none);
        if (!source) continue;
        source->name = name;
        if (sfti_info_metadata(info, "sshs_ratio", &text)) source->weight = nth_number(text, n);
        info->merge_tool = sft_span_cstr("supermerger");
    }
}
