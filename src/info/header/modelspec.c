#include "info/header/header.h"

#include <string.h>

static bool present(const sfti_header *header, const char *key) {
    sft_span value;
    return sfti_header_get(header, key, &value);
}

/* ── Titles ── */

/* "LoRA@1690000000": a title for want of one. */
static bool stamped(sft_span title) {
    static const char *const marks[] = { "LoRA@", "TextualInversion@", "Checkpoint@" };
    for (size_t i = 0; i < SFTI_COUNT(marks); i++) {
        size_t len = strlen(marks[i]);
        if (title.len > len && memcmp(title.data, marks[i], len) == 0)
            return title.data[len] >= '0' && title.data[len] <= '9';
    }
    return false;
}

/* "prefix_00001_" and "prefix 1": how ComfyUI calls what it saves. */
static bool counted_title(sft_span title) {
    size_t digits = 0;
    if (sfti_ends_with(title, "_")) title.len--;
    while (digits < title.len && title.data[title.len - 1 - digits] >= '0'
           && title.data[title.len - 1 - digits] <= '9')
        digits++;
    return digits > 0 && digits < title.len
        && strchr(" _", title.data[title.len - 1 - digits]) != NULL;
}

static bool by_onetrainer(const sfti_header *header) {
    return present(header, "ot_branch") || present(header, "ot_revision")
        || present(header, "ot_config");
}

static bool graph_under(const sfti_header *header, const char *key) {
    sft_span value;
    return sfti_header_get(header, key, &value) && sfti_starts_with(sfti_trim(value), "{");
}

static bool by_comfyui(const sfti_header *header) {
    return graph_under(header, "prompt") || graph_under(header, "workflow")
        || present(header, "modelspec.predict_key");
}

static void spec_title(sfti_header *header, const sfti_header_row *row) {
    sft_span title = sfti_trim(header->value);
    bool weak = by_onetrainer(header) || (by_comfyui(header) && counted_title(title));
    if (stamped(title)) return;
    sfti_info_add_text(header->info, SFT_FACT_NAME, title, header->source,
                       weak ? 40 : row->trust);
}

/* ── Others ── */

static void spec_hash(sfti_header *header, const sfti_header_row *row) {
    sfti_info_claim(header->info, row->word, header->value, header->source,
                    by_onetrainer(header) ? "OneTrainer name order" : NULL);
}

static const struct spec_format { const char *text, *quantization; } spec_formats[] = {
    { "gptq-4bit", "gptq-4bit" }, { "gptq-8bit", "gptq-8bit" }, { "gptq-3bit", "gptq-3bit" },
    { "gptq-2bit", "gptq-2bit" }, { "awq-4bit", "awq-4bit" }, { "bnb-nf4", "bnb-nf4" },
    { "bnb-fp4", "bnb-fp4" }, { "bnb-int8", "bnb-int8" }, { "bnb_nf4", "bnb-nf4" },
    { "bnb_fp4", "bnb-fp4" }, { "fp8_scaled", "fp8-scaled" }, { "nunchaku-fp4", "svdquant-fp4" },
    { "nunchaku", "svdquant-int4" }, { "nvfp4", "nvfp4" }, { "mxfp8", "mxfp8" },
};

static void spec_format(sfti_header *header, const sfti_header_row *row) {
    sft_span text = sfti_trim(header->value);
    for (size_t i = 0; i < SFTI_COUNT(spec_formats); i++) {
        if (!sfti_starts_with(text, spec_formats[i].text)) continue;
        sfti_info_add_text(header->info, SFT_FACT_QUANTIZATION,
                           sft_span_cstr(spec_formats[i].quantization), header->source,
                           row->trust);
        return;
    }
}

/* "sd-scripts/48d368fa…" */
static void spec_tool(sfti_header *header, const sfti_header_row *row) {
    static const char *const tools[] = { "sd-scripts", "musubi-tuner", "ai-toolkit",
                                         "onetrainer", "simpletuner" };
    sft_span name = sfti_trim(header->value), version = sfti_find_byte(name, '/');
    (void)row;
    if (!version.data) return;
    name.len -= version.len;
    version.data++;
    version.len--;
    for (size_t i = 0; i < SFTI_COUNT(tools); i++) {
        if (!sfti_same_letters(name, tools[i])) continue;
        sfti_info_train(header->info, TRAIN_TOOL, sfti_text_value(sft_span_cstr(tools[i])));
        if (!sfti_same_letters(version, "unknown"))
            sfti_info_train(header->info, TRAIN_TOOL_VERSION, sfti_text_value(version));
    }
}

static void spec_merged(sfti_header *header, const sfti_header_row *row) {
    sft_span rest = header->value, piece;
    sft_info *info = header->info;
    (void)row;
    while (info->merge_sources.count < 64 && sfti_next_piece(&rest, ',', &piece)) {
        piece = sfti_trim(piece);
        if (sfti_is_placeholder(piece)) continue;
        sfti_merge_source *source = sfti_info_push(info, &info->merge_sources, sizeof *source);
        if (!source) return;
        source->name = piece;
        info->has_merge = true;
    }
}

static void spec_negative(sfti_header *header, const sfti_header_row *row) {
    sft_span text = sfti_trim(header->value);
    (void)row;
    if (sfti_same_letters(text, "true")) header->info->negative = 1;
    if (sfti_same_letters(text, "false")) header->info->negative = 0;
}

static void spec_weight(sfti_header *header, const sfti_header_row *row) {
    double weight;
    if (sfti_parse_double(header->value, &weight) && weight != 0)
        sfti_header_number(header, row);
}

static const sfti_header_row spec_rows[] = {
    { "architecture", sfti_header_spec, 0, 80, NULL, NULL, 0 },
    { "title", spec_title, 0, 85, NULL, NULL, 0 },
    { "resolution", sfti_header_size, SFT_FACT_RESOLUTION, 85, NULL, NULL, 0 },
    { "data_format", spec_format, 0, 80, NULL, NULL, 0 },
    { "special_format", spec_format, 0, 80, NULL, NULL, 0 },
    { "description", sfti_header_prose, SFT_FACT_DESCRIPTION, 85, NULL, NULL, 0 },
    { "author", sfti_header_prose, SFT_FACT_AUTHOR, 85, NULL, NULL, 0 },
    { "date", sfti_header_date, SFT_FACT_DATE, 85, NULL, NULL, 0 },
    { "hash_sha256", spec_hash, 0, 0, "sshs_model", NULL, 0 },
    { "implementation_version", spec_tool, 0, 0, NULL, NULL, 0 },
    { "license", sfti_header_prose, SFT_FACT_LICENSE, 85, NULL, NULL, 0 },
    { "usage_hint", sfti_header_prose, SFT_FACT_USAGE_HINT, 85, NULL, NULL, 0 },
    { "thumbnail", sfti_header_preview, 0, 0, NULL, NULL, 0 },
    { "preview_image", sfti_header_preview, 0, 0, NULL, NULL, 0 },
    { "tags", sfti_header_commas, SFT_FACT_TAGS, 85, NULL, NULL, 0 },
    { "merged_from", spec_merged, 0, 0, NULL, NULL, 0 },
    { "trigger_phrase", sfti_header_trigger, 0, 90, NULL, NULL, 0 },
    { "prediction_type", sfti_header_prediction, 0, 85, NULL, NULL, 0 },
    { "predict_key", sfti_header_prediction, 0, 85, NULL, NULL, 0 },
    { "encoder_layer", sfti_header_number, SFT_FACT_CLIP_SKIP, 85, NULL, NULL, 0 },
    { "is_negative_embedding", spec_negative, 0, 0, NULL, NULL, 0 },
    { "language", sfti_header_commas, SFT_FACT_LANGUAGE, 85, NULL, NULL, 0 },
    { "lora_default_weight", spec_weight, SFT_FACT_PREFERRED_WEIGHT, 80, NULL, NULL, 0 },
};

sfti_header_family sfti_modelspec_family(void) {
    return (sfti_header_family){ "modelspec.", spec_rows, SFTI_COUNT(spec_rows), false };
}

sfti_header_family sfti_bare_family(void) {
    return (sfti_header_family){ "", spec_rows, SFTI_COUNT(spec_rows), false };
}
