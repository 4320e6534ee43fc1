/* How keys of other trainers and tools are read. */
#include "label/header/header.h"
#include "text/formats.h"

#include <stddef.h>
#include <string.h>

static void software_name(sfti_cursor *at) {
    bool known = sfti_same_letters(at->text, "ai-toolkit");
    sft_span name = known ? sft_span_cstr("ai-toolkit") : at->text;
    if (at->json->type == SFTI_JSON_STRING)
        sfti_info_train(at->info, (sfti_training_key)at->row->field, sfti_text_value(name));
}

/* ── OneTrainer ── */

static void ot_type(sfti_cursor *at) {
    sft_span variant;
    if (!sfti_at_text(at)) return;
    const char *architecture = sfti_map_onetrainer(at->info->records, at->text, &variant,
                                                   &at->info->said);
    sfti_info_declared_base(at->info, architecture, sfti_trim(at->text), sfti_cursor_source(at),
                            at->row->trust);
    if (variant.len > 0)
        sfti_put_span(at, SFT_FACT_VARIANT, variant);
}

/* "512,768": squares of either size, of which the largest is told; "1024x832": that alone. */
static void ot_size(sfti_cursor *at) {
    char size[SFTI_DATE_SIZE], best[SFTI_DATE_SIZE];
    sft_span rest = at->text, piece, text = { best, 0 };
    double side, most = 0;
    while (sfti_next_piece(&rest, ',', &piece)) {
        size_t len = sfti_resolution(piece, size);
        if (len == 0) return;
        sft_span height = sfti_from(sfti_find_byte((sft_span){ size, len }, 'x'), 1);
        sft_span width = { size, len - height.len - 1 };
        double area = sfti_parse_double(width, &side) ? side : 0;
        area *= sfti_parse_double(height, &side) ? side : 0;
        if (area <= most) continue;
        most = area;
        memcpy(best, size, len);
        text.len = len;
    }
    text = sfti_info_copy(at->info, text);
    sfti_info_train(at->info, TRAIN_RESOLUTION, sfti_text_value(text));
    sfti_put_span(at, SFT_FACT_RESOLUTION, text);
}

typedef struct ot_batch { uint64_t size, steps; } ot_batch;

/* With the steps that are accumulated. */
static void ot_take_batch(sfti_cursor *at) {
    static const sfti_row rows[] = {
        { "/batch_size", sfti_take_slot_uint, (int)offsetof(ot_batch, size), 0, NULL },
        { "/gradient_accumulation_steps", sfti_take_slot_uint, (int)offsetof(ot_batch, steps), 0,
          NULL },
    };
    ot_batch batch = { 0, 1 };
    if (!sfti_info_walk(at->info, at->text, at->source, SFTI_ROWS(rows), &batch)) return;
    if (batch.size > 0 && batch.size <= 1000000 && batch.steps > 0 && batch.steps <= 1000000)
        sfti_info_train_uint(at->info, TRAIN_BATCH_SIZE, batch.size * batch.steps);
}

static void ot_base(sfti_cursor *at) {
    if (at->json->type == SFTI_JSON_STRING)
        sfti_info_train(at->info, (sfti_training_key)at->row->field,
                        sfti_text_value(sfti_leaf_name(at->text)));
}

/* ── diffusers and SimpleTuner: fields of PEFT, each under its component's name ── */

static void peft_field(sfti_cursor *at) {
    static const struct { const char *name; sfti_row row; } fields[] = {
        { "use_dora", { "", sfti_take_switch, 0, 0, NULL } },
        { "use_rslora", { "", sfti_take_switch, 1, 0, NULL } },
        { "r", { "", sfti_take_declared, 0, 90, NULL } },
        { "lora_alpha", { "", sfti_take_declared, 1, 90, NULL } },
    };
    sft_span field = at->key, piece;
    for (sft_span rest = at->key; sfti_next_piece(&rest, '.', &piece);) field = piece;
    for (size_t i = 0; i < SFTI_COUNT(fields); i++)
        if (sfti_same_letters(field, fields[i].name)) {
            at->row = &fields[i].row;
            at->row->take(at);
        }
}

/* "transformer.alpha_pattern": alphas by names of modules. */
static void peft_pattern(sfti_cursor *at) {
    sft_span field = { at->pointer + 1, strcspn(at->pointer + 1, "/") };
    if (sfti_ends_with(field, "alpha_pattern")) sfti_take_alpha_pattern(at);
}

static void peft_kind(sfti_cursor *at) {
    sfti_put_here(at, SFT_FACT_KIND, "adapter");
}

/* ── Quantisation ── */

static void quantization_config(sfti_cursor *at) {
    (void)sfti_quantiser_declared(at->info, at->text, at->source, &sfti_header_quantiser_keys,
                                  SFTI_SAYS_NUNCHAKU, at->row->trust);
}

/* mflux's, of all layers. */
static void quantization_level(sfti_cursor *at) {
    sft_span level = sfti_trim(at->text);
    bool bits = level.len == 1 && *level.data >= '1' && *level.data <= '8';
    if (bits)
        sfti_info_add_text(at->info, SFT_FACT_QUANTIZATION,
                           sfti_info_text(at->info, "%s-%cbit", at->row->word, *level.data),
                           at->source, at->row->trust);
}

#define LAYER_FORMATS 16

typedef struct layer_formats {
    const sfti_record *of[LAYER_FORMATS];
    uint64_t layers[LAYER_FORMATS];
} layer_formats;

static void layer_format(sfti_cursor *at) {
    layer_formats *all = at->ctx;
    const sfti_record *of = sfti_said(at->info->records, SFTI_QUANTISATION, SFTI_SAYS_COMFY,
                                      at->text, true, NULL);
    for (size_t i = 0; of && i < LAYER_FORMATS; i++) {
        if (all->of[i] && all->of[i] != of) continue;
        all->of[i] = of;
        all->layers[i]++;
        return;
    }
}

static const sfti_row layer_rows[] = { { "/layers/*/format", layer_format, 0, 0, NULL } };

/* The format that most layers have, the first of those that as many have. */
static void comfy_quantization(sfti_cursor *at) {
    layer_formats all = { .of = { NULL } };
    size_t most = 0;
    sfti_info_walk(at->info, at->text, at->source, SFTI_ROWS(layer_rows), &all);
    for (size_t i = 0; i < LAYER_FORMATS; i++)
        if (all.layers[i] > all.layers[most]) most = i;
    if (all.of[most]) sfti_put_here(at, SFT_FACT_QUANTIZATION, all.of[most]->id);
}

static const sfti_key_take trainer_takes[] = {
    { "software", software_name, SFTI_TAKES_TRAINING, NULL },
    { "onetrainer_type", ot_type, NULL, NULL },
    { "onetrainer_size", ot_size, NULL, NULL },
    { "onetrainer_batch", ot_take_batch, NULL, NULL },
    { "leaf", ot_base, SFTI_TAKES_TRAINING, NULL },
    { "adapter", peft_kind, NULL, NULL },
    { "peft", peft_field, NULL, NULL },
    { "peft_pattern", peft_pattern, NULL, NULL },
    { "quantization", quantization_config, NULL, NULL },
    { "layers", comfy_quantization, NULL, NULL },
    { "level", quantization_level, NULL, NULL },
};
SFTI_KEYS_OF(sfti_trainer_keys, "trainers", trainer_takes);

/* ── The metadata editor of additional-networks ── */

/* Ten are five stars. */
static void ssmd_rating(sfti_cursor *at) {
    double rating;
    if (sfti_parse_double(at->text, &rating) && rating > 0 && rating <= 10)
        at->info->rating = rating / 2;
}

static void ssmd_source(sfti_cursor *at) {
    sft_info *info = at->info;
    sfti_info_scan_text(info, at->text, at->source, false);
    for (const sfti_link *link = info->links.first; link; link = link->next)
        if (!link->only_link && sft_span_equal(link->source, at->source))
            (void)sfti_info_civitai(info, link->model_id, link->version_id, at->source,
                                    at->row->trust);
}

static const sfti_key_take ssmd_takes[] = {
    { "rating", ssmd_rating, NULL, NULL },
    { "source", ssmd_source, NULL, NULL },
};
SFTI_KEYS_OF(sfti_ssmd_keys, "ssmd", ssmd_takes);
