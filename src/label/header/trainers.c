/* Keys of other trainers and tools, as rows. */
#include "label/header/header.h"

#include <stddef.h>
#include <string.h>

static void software_name(sfti_cursor *at, const sfti_row *row) {
    bool known = sfti_same_letters(at->text, "ai-toolkit");
    sft_span name = known ? sft_span_cstr("ai-toolkit") : at->text;
    if (at->json.type == SFTI_JSON_STRING)
        sfti_info_train(at->info, (sfti_training_key)row->field, sfti_text_value(name));
}

/* ── OneTrainer ── */

static void ot_type(sfti_cursor *at, const sfti_row *row) {
    sft_span variant;
    if (!sfti_at_text(at)) return;
    const char *architecture = sfti_map_onetrainer(at->info->records, at->text, &variant,
                                                   &at->info->said);
    sfti_info_declared_base(at->info, architecture, sfti_trim(at->text), sfti_cursor_source(at),
                            row->trust);
    if (variant.len > 0)
        sfti_info_add_text(at->info, SFT_FACT_VARIANT, variant, sfti_cursor_source(at), row->trust);
}

static void ot_base(sfti_cursor *at, const sfti_row *row) {
    if (at->json.type == SFTI_JSON_STRING)
        sfti_info_train(at->info, (sfti_training_key)row->field,
                        sfti_text_value(sfti_leaf_name(at->text)));
}

/* ── diffusers and SimpleTuner: fields of PEFT, each under its component's name ── */

static void peft_field(sfti_cursor *at, const sfti_row *row) {
    static const struct { const char *name; sfti_row row; } fields[] = {
        { "use_dora", { "", sfti_take_switch, 0, 0, NULL } },
        { "use_rslora", { "", sfti_take_switch, 1, 0, NULL } },
        { "r", { "", sfti_take_declared, 0, 90, NULL } },
        { "lora_alpha", { "", sfti_take_declared, 1, 90, NULL } },
    };
    sft_span field = at->key, piece;
    (void)row;
    for (sft_span rest = at->key; sfti_next_piece(&rest, '.', &piece);) field = piece;
    for (size_t i = 0; i < SFTI_COUNT(fields); i++)
        if (sfti_same_letters(field, fields[i].name)) fields[i].row.take(at, &fields[i].row);
}

static void peft_kind(sfti_cursor *at, const sfti_row *row) {
    sfti_put_here(at, SFT_FACT_KIND, "adapter", row->trust);
}

/* ── Quantisation ── */

typedef struct quantization { sft_span method, dtype; uint64_t bits; } quantization;

#define QUANT(member) (int)offsetof(quantization, member)

static const sfti_row quantization_rows[] = {
    { "/method", sfti_take_slot, QUANT(method), 0, NULL },
    { "/quant_method", sfti_take_slot, QUANT(method), 0, NULL },
    { "/weight/dtype", sfti_take_slot, QUANT(dtype), 0, NULL },
    { "/bits", sfti_take_slot_uint, QUANT(bits), 0, NULL },
};

static void quantization_config(sfti_cursor *at, const sfti_row *row) {
    quantization quant = { { "", 0 }, { "", 0 }, 0 };
    if (!sfti_info_walk(at->info, at->text, at->source, SFTI_ROWS(quantization_rows), &quant))
        return;
    bool awq = sfti_same_letters(quant.method, "awq");
    bool gptq = sfti_same_letters(quant.method, "gptq");
    const char *name = NULL;
    if (sfti_same_letters(quant.method, "svdquant"))
        name = sfti_starts_with(quant.dtype, "fp4") ? "svdquant-fp4" : "svdquant-int4";
    else if ((awq || gptq) && quant.bits > 0 && quant.bits <= 16)
        name = sfti_info_text(at->info, "%s-%ubit", awq ? "awq" : "gptq",
                              (unsigned)quant.bits).data;
    sfti_put_here(at, SFT_FACT_QUANTIZATION, name, row->trust);
}

static const struct layer_format { const char *format, *quantization; } layer_formats[] = {
    { "float8_e4m3fn", "fp8-scaled" }, { "float8_e5m2", "fp8-scaled" }, { "nvfp4", "nvfp4" },
    { "mxfp8", "mxfp8" }, { "mxfp4", "mxfp4" }, { "int8_tensorwise", "int8" },
    { "int8", "int8" },
};

static void layer_format(sfti_cursor *at, const sfti_row *row) {
    uint64_t *counts = at->ctx;
    (void)row;
    for (size_t i = 0; i < SFTI_COUNT(layer_formats); i++)
        if (sfti_same_letters(at->text, layer_formats[i].format)) counts[i]++;
}

static const sfti_row layer_rows[] = { { "/layers/*/format", layer_format, 0, 0, NULL } };

/* The format that most layers have, where there are several. */
static void comfy_quantization(sfti_cursor *at, const sfti_row *row) {
    uint64_t counts[SFTI_COUNT(layer_formats)] = { 0 };
    size_t most = 0;
    sfti_info_walk(at->info, at->text, at->source, SFTI_ROWS(layer_rows), counts);
    for (size_t i = 0; i < SFTI_COUNT(layer_formats); i++)
        if (counts[i] > counts[most]) most = i;
    if (counts[most] > 0)
        sfti_put_here(at, SFT_FACT_QUANTIZATION, layer_formats[most].quantization, row->trust);
}

/* ── ai-toolkit, OneTrainer, diffusers, SimpleTuner, quantisers ── */

static const sfti_row trainer_rows[] = {
    { "software:/name", software_name, TRAIN_TOOL, 0, NULL },
    { "software:/version", sfti_take_train, TRAIN_TOOL_VERSION, 0, NULL },
    { "training_info:/step", sfti_take_train, TRAIN_STEP, 0, NULL },
    { "training_info:/epoch", sfti_take_train, TRAIN_EPOCH, 0, NULL },
    { "ot_branch", sfti_take_train_word, TRAIN_TOOL, 0, "onetrainer" },
    { "ot_revision", sfti_take_train_word, TRAIN_TOOL, 0, "onetrainer" },
    { "ot_revision", sfti_take_train, TRAIN_TOOL_VERSION, 0, NULL },
    { "ot_config", sfti_take_train_word, TRAIN_TOOL, 0, "onetrainer" },
    { "ot_config", sfti_take_private, 0, 0, "config" },
    { "ot_config", sfti_take_links, 1, 0, NULL },
    { "ot_config:/model_type", ot_type, 0, 75, NULL },
    { "ot_config:/base_model_name", ot_base, TRAIN_BASE_FILE, 0, NULL },
    { "ot_config:/base_model_name", sfti_take_base_file, 0, 75, NULL },
    { "ot_config:/lora_rank", sfti_take_declared, 0, 75, NULL },
    { "ot_config:/lora_alpha", sfti_take_declared, 1, 75, NULL },
    { "ot_config:/learning_rate", sfti_take_train, TRAIN_LEARNING_RATE, 0, NULL },
    { "ot_config:/learning_rate_scheduler", sfti_take_train, TRAIN_SCHEDULER, 0, NULL },
    { "ot_config:/unet/learning_rate", sfti_take_train, TRAIN_UNET_LR, 0, NULL },
    { "ot_config:/prior/learning_rate", sfti_take_train, TRAIN_UNET_LR, 0, NULL },
    { "ot_config:/text_encoder/learning_rate", sfti_take_train, TRAIN_TEXT_ENCODER_LR, 0, NULL },
    { "ot_config:/epochs", sfti_take_train, TRAIN_EPOCHS, 0, NULL },
    { "ot_config:/batch_size", sfti_take_train, TRAIN_BATCH_SIZE, 0, NULL },
    { "ot_config:/optimizer/optimizer", sfti_take_train, TRAIN_OPTIMIZER, 0, NULL },
    { "ot_config:/seed", sfti_take_train, TRAIN_SEED, 0, NULL },
    { "ot_config:/resolution", sfti_take_train_size, TRAIN_RESOLUTION, 0, NULL },
    { "ot_config:/resolution", sfti_take_size, SFT_FACT_RESOLUTION, 70, NULL },
    { "ot_config:/train_dtype", sfti_take_train, TRAIN_MIXED_PRECISION, 0, NULL },
    { "lora_adapter_metadata", peft_kind, 0, 90, NULL },
    { "lora_adapter_metadata:/*", peft_field, 0, 0, NULL },
    { "config:/_class_name", sfti_take_class, 1, 90, NULL },
    { "config:/architectures/0", sfti_take_class, 1, 90, NULL },
    { "config:/model_type", sfti_take_type, 1, 90, NULL },
    { "config:/transformer/model_type", sfti_take_type, 0, 90, NULL },
    { "config:/transformer/_class_name", sfti_take_class, 0, 90, NULL },
    { "config:/transformer/image_model", sfti_take_type, 0, 90, NULL },
    { "config:/unet/_class_name", sfti_take_class, 0, 90, NULL },
    { "config:/scheduler/prediction_type", sfti_take_prediction, 0, 90, NULL },
    { "model_class", sfti_take_class, 1, 90, NULL },
    { "quantization_config", quantization_config, 0, 90, NULL },
    { "_quantization_metadata", comfy_quantization, 0, 90, NULL },
};
const sfti_key_table sfti_trainer_keys = { "", SFTI_ROWS(trainer_rows), false };

/* ── The metadata editor of additional-networks ── */

static void ssmd_rating(sfti_cursor *at, const sfti_row *row) {
    double rating;
    (void)row;
    if (sfti_parse_double(at->text, &rating) && rating > 0) at->info->rating = rating;
}

static void ssmd_source(sfti_cursor *at, const sfti_row *row) {
    sft_info *info = at->info;
    sfti_info_scan_text(info, at->text, at->source, false);
    for (const sfti_link *link = info->links.first; link; link = link->next)
        if (!link->only_link && sft_span_equal(link->source, at->source))
            (void)sfti_info_civitai(info, link->model_id, link->version_id, at->source,
                                    row->trust);
}

static const sfti_row ssmd_rows[] = {
    { "display_name", sfti_take_fact, SFT_FACT_NAME, 90, NULL },
    { "version", sfti_take_fact, SFT_FACT_VERSION_NAME, 90, NULL },
    { "author", sfti_take_prose, SFT_FACT_AUTHOR, 90, NULL },
    { "source", ssmd_source, 0, 60, NULL },
    { "keywords", sfti_take_trigger, 0, 90, NULL },
    { "description", sfti_take_prose, SFT_FACT_DESCRIPTION, 88, "words" },
    { "rating", ssmd_rating, 0, 0, NULL },
    { "tags", sfti_take_commas, SFT_FACT_TAGS, 90, NULL },
    { "cover_images:/*", sfti_take_preview, 0, 0, NULL },
};
const sfti_key_table sfti_ssmd_keys = { "ssmd_", SFTI_ROWS(ssmd_rows), false };
