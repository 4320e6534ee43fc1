#include "info/header/header.h"

#include <string.h>

static void train_cstr(sft_info *info, sfti_training_key key, const char *text) {
    sfti_info_train(info, key, sfti_text_value(sft_span_cstr(text)));
}

/* ── ai-toolkit ── */

static void software_name(sfti_walk *walk, const sfti_walk_row *row) {
    (void)row;
    if (walk->json.type != SFTI_JSON_STRING) return;
    if (sfti_same_letters(walk->text, "ai-toolkit"))
        train_cstr(walk->info, TRAIN_TOOL, "ai-toolkit");
    else sfti_info_train(walk->info, TRAIN_TOOL, sfti_text_value(walk->text));
}

static const sfti_walk_row software_rows[] = {
    { "/name", software_name, 0, 0, NULL },
    { "/version", sfti_take_train, TRAIN_TOOL_VERSION, 0, NULL },
};

static const sfti_walk_row training_info_rows[] = {
    { "/step", sfti_take_train, TRAIN_STEP, 0, NULL },
    { "/epoch", sfti_take_train, TRAIN_EPOCH, 0, NULL },
};

/* ── OneTrainer ── */

static void onetrainer(sfti_header *header, const sfti_header_row *row) {
    train_cstr(header->info, TRAIN_TOOL, "onetrainer");
    if (row->field == TRAIN_TOOL_VERSION) sfti_header_train(header, row);
}

static const struct ot_type { const char *type, *architecture, *variant; } ot_types[] = {
    { "STABLE_DIFFUSION_15", "sd-1", NULL },
    { "STABLE_DIFFUSION_15_INPAINTING", "sd-1", "inpaint" },
    { "STABLE_DIFFUSION_20", "sd-2", NULL }, { "STABLE_DIFFUSION_20_BASE", "sd-2", NULL },
    { "STABLE_DIFFUSION_20_INPAINTING", "sd-2", "inpaint" },
    { "STABLE_DIFFUSION_20_DEPTH", "sd-2", "depth" }, { "STABLE_DIFFUSION_21", "sd-2", NULL },
    { "STABLE_DIFFUSION_21_BASE", "sd-2", NULL }, { "STABLE_DIFFUSION_3", "sd-3", NULL },
    { "STABLE_DIFFUSION_35", "sd-3", NULL }, { "STABLE_DIFFUSION_XL_10_BASE", "sdxl", NULL },
    { "STABLE_DIFFUSION_XL_10_BASE_INPAINTING", "sdxl", "inpaint" },
    { "PIXART_ALPHA", "pixart-alpha", NULL }, { "PIXART_SIGMA", "pixart-sigma", NULL },
    { "FLUX_DEV_1", "flux.1-dev", NULL }, { "FLUX_FILL_DEV_1", "flux.1-dev", "fill" },
    { "FLUX_2", "flux.2", NULL }, { "SANA", "sana", NULL },
    { "HUNYUAN_VIDEO", "hunyuan-video", NULL }, { "HI_DREAM_FULL", "hidream-i1", NULL },
    { "CHROMA_1", "chroma", NULL }, { "QWEN", "qwen-image", NULL },
    { "Z_IMAGE", "z-image", NULL },
};

static void ot_type(sfti_walk *walk, const sfti_walk_row *row) {
    if (walk->json.type != SFTI_JSON_STRING) return;
    for (size_t i = 0; i < SFTI_COUNT(ot_types); i++) {
        if (!sfti_same_letters(walk->text, ot_types[i].type)) continue;
        sft_span source = sfti_walk_source(walk);
        sfti_info_add_text(walk->info, SFT_FACT_ARCHITECTURE,
                           sft_span_cstr(ot_types[i].architecture), source, row->trust);
        if (ot_types[i].variant)
            sfti_info_add_text(walk->info, SFT_FACT_VARIANT, sft_span_cstr(ot_types[i].variant),
                               source, row->trust);
    }
}

static void ot_base(sfti_walk *walk, const sfti_walk_row *row) {
    if (walk->json.type != SFTI_JSON_STRING) return;
    sft_span file = sfti_leaf_name(walk->text);
    sfti_info_train(walk->info, TRAIN_BASE_FILE, sfti_text_value(file));
    sfti_info_base_checkpoint(walk->info, walk->text, sfti_walk_source(walk), row->trust);
}

static void declared_number(sfti_walk *walk, const sfti_walk_row *row) {
    sft_info *info = walk->info;
    if (walk->json.type != SFTI_JSON_UINT && walk->json.type != SFTI_JSON_NUMBER) return;
    sfti_info_declare(info, row->field ? &info->declared_alpha : &info->declared_rank,
                      walk->text, sfti_walk_source(walk), row->trust);
}

static void ot_resolution(sfti_walk *walk, const sfti_walk_row *row) {
    sft_span size = sfti_resolution(walk->info, walk->text);
    sfti_info_train(walk->info, TRAIN_RESOLUTION, sfti_text_value(size));
    sfti_info_add_text(walk->info, SFT_FACT_RESOLUTION, size, sfti_walk_source(walk),
                       row->trust);
}

static const sfti_walk_row ot_rows[] = {
    { "/model_type", ot_type, 0, 75, NULL },
    { "/base_model_name", ot_base, 0, 75, NULL },
    { "/lora_rank", declared_number, 0, 75, NULL },
    { "/lora_alpha", declared_number, 1, 75, NULL },
    { "/learning_rate", sfti_take_train, TRAIN_LEARNING_RATE, 0, NULL },
    { "/learning_rate_scheduler", sfti_take_train, TRAIN_SCHEDULER, 0, NULL },
    { "/unet/learning_rate", sfti_take_train, TRAIN_UNET_LR, 0, NULL },
    { "/prior/learning_rate", sfti_take_train, TRAIN_UNET_LR, 0, NULL },
    { "/text_encoder/learning_rate", sfti_take_train, TRAIN_TEXT_ENCODER_LR, 0, NULL },
    { "/epochs", sfti_take_train, TRAIN_EPOCHS, 0, NULL },
    { "/batch_size", sfti_take_train, TRAIN_BATCH_SIZE, 0, NULL },
    { "/optimizer/optimizer", sfti_take_train, TRAIN_OPTIMIZER, 0, NULL },
    { "/seed", sfti_take_train, TRAIN_SEED, 0, NULL },
    { "/resolution", ot_resolution, 0, 70, NULL },
    { "/train_dtype", sfti_take_train, TRAIN_MIXED_PRECISION, 0, NULL },
};

static void ot_config(sfti_header *header, const sfti_header_row *row) {
    train_cstr(header->info, TRAIN_TOOL, "onetrainer");
    sfti_info_private(header->info, header->key, "config");
    sfti_info_scan_text(header->info, header->value, header->source, true);
    sfti_header_walk(header, row);
}

/* ── diffusers and SimpleTuner: fields of PEFT, each under its component's name ── */

static void peft_field(sfti_walk *walk, const sfti_walk_row *row) {
    sfti_walk_row number = *row;
    sft_span field = walk->key;
    bool yes = walk->json.type == SFTI_JSON_TRUE;
    for (size_t i = field.len; i-- > 0;) {
        if (field.data[i] != '.') continue;
        field = (sft_span){ field.data + i + 1, field.len - i - 1 };
        break;
    }
    if (sfti_same_letters(field, "use_dora") && yes) walk->info->adapter.dora = true;
    if (sfti_same_letters(field, "use_rslora") && yes) walk->info->adapter.rslora = true;
    number.field = sfti_same_letters(field, "lora_alpha");
    if (number.field || sfti_same_letters(field, "r")) declared_number(walk, &number);
}

static const sfti_walk_row peft_rows[] = { { "/*", peft_field, 0, 90, NULL } };

static void peft_metadata(sfti_header *header, const sfti_header_row *row) {
    sfti_info_add_text(header->info, SFT_FACT_KIND, sft_span_cstr("adapter"), header->source,
                       row->trust);
    sfti_header_walk(header, row);
}

/* ── Objects that describe the model ── */

static void class_name(sft_info *info, sft_span name, sft_span source, int trust, bool whole) {
    const char *kind, *architecture = sfti_map_class_name(name, &kind);
    if (architecture)
        sfti_info_add_text(info, SFT_FACT_ARCHITECTURE, sft_span_cstr(architecture), source,
                           trust);
    if (kind && whole)
        sfti_info_add_text(info, SFT_FACT_KIND, sft_span_cstr(kind), source, trust);
}

/* field 1: the class of all that the file holds, not of a part. */
static void take_class(sfti_walk *walk, const sfti_walk_row *row) {
    if (walk->json.type != SFTI_JSON_STRING) return;
    class_name(walk->info, walk->text, sfti_walk_source(walk), row->trust, row->field == 1);
}

static void take_prediction(sfti_walk *walk, const sfti_walk_row *row) {
    const char *ours = NULL;
    if (walk->json.type == SFTI_JSON_STRING) ours = sfti_map_prediction(walk->text);
    if (ours)
        sfti_info_add_text(walk->info, SFT_FACT_PREDICTION_TYPE, sft_span_cstr(ours),
                           sfti_walk_source(walk), row->trust);
}

static const sfti_walk_row config_rows[] = {
    { "/_class_name", take_class, 1, 90, NULL },
    { "/architectures/0", take_class, 1, 90, NULL },
    { "/transformer/_class_name", take_class, 0, 90, NULL },
    { "/unet/_class_name", take_class, 0, 90, NULL },
    { "/scheduler/prediction_type", take_prediction, 0, 90, NULL },
};

static void model_class(sfti_header *header, const sfti_header_row *row) {
    class_name(header->info, header->value, header->source, row->trust, true);
}

/* ── Quantisation ── */

typedef struct quantization_walk { sft_span method, dtype; uint64_t bits; } quantization_walk;

static void take_quant(sfti_walk *walk, const sfti_walk_row *row) {
    quantization_walk *quant = walk->ctx;
    bool text = walk->json.type == SFTI_JSON_STRING;
    if (row->field == 0 && text && quant->method.len == 0) quant->method = walk->text;
    if (row->field == 1 && text) quant->dtype = walk->text;
    if (row->field == 2 && walk->json.type == SFTI_JSON_UINT) quant->bits = walk->json.value;
}

static const sfti_walk_row quantization_rows[] = {
    { "/method", take_quant, 0, 0, NULL },
    { "/quant_method", take_quant, 0, 0, NULL },
    { "/weight/dtype", take_quant, 1, 0, NULL },
    { "/bits", take_quant, 2, 0, NULL },
};

static void quantization_config(sfti_header *header, const sfti_header_row *row) {
    quantization_walk quant = { { "", 0 }, { "", 0 }, 0 };
    sft_info *info = header->info;
    sft_span name = { "", 0 };
    if (!sfti_info_walk(info, header->value, header->source, SFTI_WALK(quantization_rows), &quant))
        return;
    if (sfti_same_letters(quant.method, "svdquant"))
        name = sft_span_cstr(sfti_starts_with(quant.dtype, "fp4") ? "svdquant-fp4"
                                                                  : "svdquant-int4");
    else if (quant.bits > 0 && quant.bits <= 16 && (sfti_same_letters(quant.method, "gptq")
                                                    || sfti_same_letters(quant.method, "awq")))
        name = sfti_info_text(info, "%s-%ubit",
                              sfti_same_letters(quant.method, "awq") ? "awq" : "gptq",
                              (unsigned)quant.bits);
    sfti_info_add_text(info, SFT_FACT_QUANTIZATION, name, header->source, row->trust);
}

static const struct layer_format { const char *format, *quantization; } layer_formats[] = {
    { "float8_e4m3fn", "fp8-scaled" }, { "float8_e5m2", "fp8-scaled" }, { "nvfp4", "nvfp4" },
    { "mxfp8", "mxfp8" }, { "mxfp4", "mxfp4" }, { "int8_tensorwise", "int8" },
    { "int8", "int8" },
};

typedef struct layer_walk { uint64_t counts[SFTI_COUNT(layer_formats)]; } layer_walk;

static void take_layer(sfti_walk *walk, const sfti_walk_row *row) {
    layer_walk *layers = walk->ctx;
    (void)row;
    for (size_t i = 0; i < SFTI_COUNT(layer_formats); i++)
        if (sfti_same_letters(walk->text, layer_formats[i].format)) layers->counts[i]++;
}

static const sfti_walk_row layer_rows[] = { { "/layers/*/format", take_layer, 0, 0, NULL } };

/* Of several formats, what most layers have. */
static void comfy_quantization(sfti_header *header, const sfti_header_row *row) {
    layer_walk layers;
    size_t most = 0;
    memset(&layers, 0, sizeof layers);
    sfti_info_walk(header->info, header->value, header->source, SFTI_WALK(layer_rows), &layers);
    for (size_t i = 0; i < SFTI_COUNT(layer_formats); i++)
        if (layers.counts[i] > layers.counts[most]) most = i;
    if (layers.counts[most] == 0) return;
    sfti_info_add_text(header->info, SFT_FACT_QUANTIZATION,
                       sft_span_cstr(layer_formats[most].quantization), header->source,
                       row->trust);
}

static const sfti_header_row trainer_rows[] = {
    { "software", sfti_header_walk, 0, 0, NULL, SFTI_WALK(software_rows) },
    { "training_info", sfti_header_walk, 0, 0, NULL, SFTI_WALK(training_info_rows) },
    { "ot_branch", onetrainer, TRAIN_TOOL, 0, NULL, NULL, 0 },
    { "ot_revision", onetrainer, TRAIN_TOOL_VERSION, 0, NULL, NULL, 0 },
    { "ot_config", ot_config, 0, 0, NULL, SFTI_WALK(ot_rows) },
    { "lora_adapter_metadata", peft_metadata, 0, 90, NULL, SFTI_WALK(peft_rows) },
    { "config", sfti_header_walk, 0, 0, NULL, SFTI_WALK(config_rows) },
    { "model_class", model_class, 0, 90, NULL, NULL, 0 },
    { "quantization_config", quantization_config, 0, 90, NULL, NULL, 0 },
    { "_quantization_metadata", comfy_quantization, 0, 90, NULL, NULL, 0 },
};

sfti_header_family sfti_trainers_family(void) {
    return (sfti_header_family){ "", trainer_rows, SFTI_COUNT(trainer_rows), false };
}

/* ── The metadata editor of additional-networks ── */

static void ssmd_rating(sfti_header *header, const sfti_header_row *row) {
    double rating;
    (void)row;
    if (sfti_parse_double(header->value, &rating) && rating > 0) header->info->rating = rating;
}

static void ssmd_source(sfti_header *header, const sfti_header_row *row) {
    sft_info *info = header->info;
    sfti_info_scan_text(info, header->value, header->source, false);
    for (const sfti_link *link = info->links.first; link; link = link->next)
        if (!link->only_link && sft_span_equal(link->source, header->source))
            sfti_info_civitai(info, link->model_id, link->version_id, header->source,
                              row->trust);
}

static void cover(sfti_walk *walk, const sfti_walk_row *row) {
    (void)row;
    if (walk->json.type == SFTI_JSON_STRING)
        sfti_info_preview(walk->info, walk->text, sfti_walk_source(walk));
}

static const sfti_walk_row cover_rows[] = { { "/*", cover, 0, 0, NULL } };

static const sfti_header_row ssmd_rows[] = {
    { "display_name", sfti_header_fact, SFT_FACT_NAME, 90, NULL, NULL, 0 },
    { "version", sfti_header_fact, SFT_FACT_VERSION_NAME, 90, NULL, NULL, 0 },
    { "author", sfti_header_prose, SFT_FACT_AUTHOR, 90, NULL, NULL, 0 },
    { "source", ssmd_source, 0, 60, NULL, NULL, 0 },
    { "keywords", sfti_header_trigger, 0, 90, NULL, NULL, 0 },
    { "description", sfti_header_prose, SFT_FACT_DESCRIPTION, 88, NULL, NULL, 0 },
    { "rating", ssmd_rating, 0, 0, NULL, NULL, 0 },
    { "tags", sfti_header_commas, SFT_FACT_TAGS, 90, NULL, NULL, 0 },
    { "cover_images", sfti_header_walk, 0, 0, NULL, SFTI_WALK(cover_rows) },
};

sfti_header_family sfti_ssmd_family(void) {
    return (sfti_header_family){ "ssmd_", ssmd_rows, SFTI_COUNT(ssmd_rows), false };
}
