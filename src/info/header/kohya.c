#include "info/header/header.h"

#include <string.h>

/* ── Single keys ── */

static void kohya_time(sfti_header *header, const sfti_header_row *row) {
    double seconds;
    if (!sfti_parse_double(header->value, &seconds)) return;
    sft_span date = sfti_iso_of_epoch(header->info, seconds);
    sfti_info_train(header->info, (sfti_training_key)row->field, sfti_text_value(date));
    if (row->field == TRAIN_FINISHED_AT)
        sfti_info_add_text(header->info, SFT_FACT_DATE, date, header->source, row->trust);
}

static void kohya_base(sfti_header *header, const sfti_header_row *row) {
    sft_span text = sfti_trim(header->value);
    sfti_info_declared_base(header->info, sfti_map_base_version(text), text, header->source,
                            row->trust);
    if (sfti_same_letters(text, "sd_v1_v") || sfti_same_letters(text, "sd_v2_v"))
        sfti_info_add_text(header->info, SFT_FACT_PREDICTION_TYPE, sft_span_cstr("v"),
                           header->source, row->trust);
}

static void kohya_v2(sfti_header *header, const sfti_header_row *row) {
    if (!sfti_same_letters(sfti_trim(header->value), "true")) return;
    sfti_info_add_text(header->info, SFT_FACT_ARCHITECTURE, sft_span_cstr("sd-2"),
                       header->source, row->trust);
}

static const struct kohya_module { const char *name, *architecture; } kohya_modules[] = {
    { "networks.lora_flux", "flux.1" }, { "networks.oft_flux", "flux.1" },
    { "networks.lora_sd3", "sd-3" }, { "networks.lora_lumina", "lumina-2" },
    { "networks.lora_anima", "anima" }, { "networks.lora_wan", "wan" },
    { "networks.lora_hunyuan_image", "hunyuan-image-2.1" },
    { "networks.lora_framepack", "hunyuan-video" }, { "networks.lora_flux_2", "flux.2" },
    { "networks.lora_qwen_image", "qwen-image" }, { "networks.lora_zimage", "z-image" },
    { "networks.lora_kandinsky", "kandinsky-5" },
    { "networks.lora_hv_1_5", "hunyuan-video-1.5" },
};

static void kohya_module_name(sfti_header *header, const sfti_header_row *row) {
    sft_span module = sfti_trim(header->value), version;
    sft_info *info = header->info;
    sfti_info_train(info, TRAIN_NETWORK_MODULE, sfti_text_value(module));
    if (sfti_contains(module, "lllite") || sfti_contains(module, "control_net")) return;
    sfti_info_add_text(info, SFT_FACT_KIND, sft_span_cstr("adapter"), header->source,
                       row->trust);
    if (sfti_header_get(header, "ss_base_model_version", &version)) return;
    for (size_t i = 0; i < SFTI_COUNT(kohya_modules); i++)
        if (sfti_same_letters(module, kohya_modules[i].name))
            sfti_info_add_text(info, SFT_FACT_ARCHITECTURE,
                               sft_span_cstr(kohya_modules[i].architecture), header->source,
                               row->trust);
}

static void kohya_dim(sfti_header *header, const sfti_header_row *row) {
    sft_info *info = header->info;
    sfti_info_declare(info, row->field ? &info->declared_alpha : &info->declared_rank,
                      header->value, header->source, row->trust);
}

/* A number, or a list of numbers as Python spells it. */
static void kohya_rates(sfti_header *header, const sfti_header_row *row) {
    sft_span text = sfti_trim(header->value), piece;
    sft_info *info = header->info;
    sft_span items[8];
    size_t count = 0;
    if (text.len < 2 || (*text.data != '[' && *text.data != '(')) {
        sfti_header_train(header, row);
        return;
    }
    text.data++;
    text.len -= 2;
    while (count < SFTI_COUNT(items) && sfti_next_piece(&text, ',', &piece))
        if (sfti_is_number(sfti_trim(piece))) items[count++] = sfti_trim(piece);
    sft_span *kept = count ? sfti_arena_take(&info->arena, count * sizeof *kept) : NULL;
    if (count == 0) return;
    if (!kept) {
        info->code = SFT_OUT_OF_MEMORY;
        return;
    }
    memcpy(kept, items, count * sizeof *kept);
    sfti_info_train(info, (sfti_training_key)row->field,
                    (sfti_value){ SFTI_LIST, { "", 0 }, kept, count });
}

static void kohya_resolution(sfti_header *header, const sfti_header_row *row) {
    sft_span size = sfti_resolution(header->info, header->value);
    sfti_info_train(header->info, TRAIN_RESOLUTION, sfti_text_value(size));
    sfti_info_add_text(header->info, SFT_FACT_RESOLUTION, size, header->source, row->trust);
}

static void kohya_clip_skip(sfti_header *header, const sfti_header_row *row) {
    sfti_header_train(header, row);
    sfti_header_row fact = *row;
    fact.field = SFT_FACT_CLIP_SKIP;
    sfti_header_number(header, &fact);
}

static void kohya_hash(sfti_header *header, const sfti_header_row *row) {
    sft_span hex;
    bool old = row->field == TRAIN_BASE_AUTOV1 || row->field == TRAIN_VAE_AUTOV1;
    if (sfti_info_hash(header->info, header->value, old ? 8 : 64, &hex))
        sfti_info_train(header->info, (sfti_training_key)row->field, sfti_text_value(hex));
}

static void kohya_base_file(sfti_header *header, const sfti_header_row *row) {
    sfti_header_train(header, row);
    sfti_info_base_checkpoint(header->info, header->value, header->source, row->trust);
}

static void kohya_comment(sfti_header *header, const sfti_header_row *row) {
    sfti_header_train(header, row);
    sfti_info_private(header->info, header->key, "comment");
    sfti_info_scan_text(header->info, header->value, header->source, false);
    sfti_info_trigger_sentence(header->info, header->value, header->source, row->trust);
}

static void kohya_session(sfti_header *header, const sfti_header_row *row) {
    sfti_header_train(header, row);
    sfti_info_private(header->info, header->key, "session");
}

static void kohya_commit(sfti_header *header, const sfti_header_row *row) {
    sfti_info_train(header->info, TRAIN_TOOL, sfti_text_value(sft_span_cstr("sd-scripts")));
    sfti_header_train(header, row);
}

/* The arguments as they stand, if they are an object. */
static void args_object(sfti_walk *walk, const sfti_walk_row *row) {
    (void)row;
    if (walk->json.type != SFTI_JSON_OBJECT) return;
    sft_span text = { walk->json.begin, (size_t)(walk->json.end - walk->json.begin) };
    sfti_info_train(walk->info, TRAIN_NETWORK_ARGS, sfti_text_value(text));
    sfti_json_skip(&walk->json);
}

static const sfti_walk_row args_rows[] = { { "", args_object, 0, 0, NULL } };

static void kohya_tensor_hash(sfti_header *header, const sfti_header_row *row) {
    sft_span text;
    const char *known = NULL;
    if (sfti_header_get(header, "ss_network_module", &text) && sfti_starts_with(text, "lycoris"))
        known = "LyCORIS module order";
    if (sfti_header_get(header, "software", &text) && sfti_contains(text, "ai-toolkit"))
        known = "ai-toolkit before conversion";
    sfti_info_claim(header->info, row->word, header->value, header->source, known);
}

#define KOHYA_TRAIN(key, slot) { "ss_" key, sfti_header_train, slot, 0, NULL, NULL, 0 }
#define KOHYA_FOLDERS(key) { "ss_" key, sfti_header_private, 0, 0, "folder-names", NULL, 0 }

static const sfti_header_row kohya_rows[] = {
    { "ss_session_id", kohya_session, TRAIN_SESSION_ID, 0, NULL, NULL, 0 },
    { "ss_training_started_at", kohya_time, TRAIN_STARTED_AT, 0, NULL, NULL, 0 },
    { "ss_training_finished_at", kohya_time, TRAIN_FINISHED_AT, 80, NULL, NULL, 0 },
    { "ss_output_name", sfti_header_fact, SFT_FACT_NAME, 70, NULL, NULL, 0 },
    { "ss_training_comment", kohya_comment, TRAIN_COMMENT, 70, NULL, NULL, 0 },
    KOHYA_TRAIN("learning_rate", TRAIN_LEARNING_RATE),
    KOHYA_TRAIN("unet_lr", TRAIN_UNET_LR),
    { "ss_text_encoder_lr", kohya_rates, TRAIN_TEXT_ENCODER_LR, 0, NULL, NULL, 0 },
    KOHYA_TRAIN("num_train_images", TRAIN_IMAGES_WITH_REPEATS),
    KOHYA_TRAIN("num_train_items", TRAIN_IMAGES_WITH_REPEATS),
    KOHYA_TRAIN("num_reg_images", TRAIN_REGULARISATION_IMAGES),
    KOHYA_TRAIN("num_epochs", TRAIN_EPOCHS),
    KOHYA_TRAIN("epoch", TRAIN_EPOCH),
    KOHYA_TRAIN("steps", TRAIN_STEP),
    KOHYA_TRAIN("max_train_steps", TRAIN_STEPS),
    KOHYA_TRAIN("total_batch_size", TRAIN_BATCH_SIZE),
    KOHYA_TRAIN("lr_scheduler", TRAIN_SCHEDULER),
    KOHYA_TRAIN("mixed_precision", TRAIN_MIXED_PRECISION),
    KOHYA_TRAIN("optimizer", TRAIN_OPTIMIZER),
    KOHYA_TRAIN("seed", TRAIN_SEED),
    KOHYA_TRAIN("noise_offset", TRAIN_NOISE_OFFSET),
    { "ss_clip_skip", kohya_clip_skip, TRAIN_CLIP_SKIP, 70, NULL, NULL, 0 },
    { "ss_resolution", kohya_resolution, 0, 70, NULL, NULL, 0 },
    { "ss_v2", kohya_v2, 0, 75, NULL, NULL, 0 },
    { "ss_base_model_version", kohya_base, 0, 75, NULL, NULL, 0 },
    { "ss_network_module", kohya_module_name, 0, 75, NULL, NULL, 0 },
    { "ss_network_dim", kohya_dim, 0, 75, NULL, NULL, 0 },
    { "ss_network_alpha", kohya_dim, 1, 75, NULL, NULL, 0 },
    { "ss_network_args", sfti_header_walk, 0, 0, NULL, SFTI_WALK(args_rows) },
    { "ss_sd_model_name", kohya_base_file, TRAIN_BASE_FILE, 75, NULL, NULL, 0 },
    { "ss_sd_model_hash", kohya_hash, TRAIN_BASE_AUTOV1, 0, NULL, NULL, 0 },
    { "ss_new_sd_model_hash", kohya_hash, TRAIN_BASE_SHA256, 0, NULL, NULL, 0 },
    KOHYA_TRAIN("vae_name", TRAIN_VAE_FILE),
    { "ss_vae_hash", kohya_hash, TRAIN_VAE_AUTOV1, 0, NULL, NULL, 0 },
    { "ss_new_vae_hash", kohya_hash, TRAIN_VAE_SHA256, 0, NULL, NULL, 0 },
    { "ss_sd_scripts_commit_hash", kohya_commit, TRAIN_TOOL_VERSION, 0, NULL, NULL, 0 },
    KOHYA_FOLDERS("tag_frequency"),
    KOHYA_FOLDERS("dataset_dirs"),
    KOHYA_FOLDERS("reg_dataset_dirs"),
    KOHYA_FOLDERS("datasets"),
    { "sshs_model_hash", kohya_tensor_hash, 0, 0, "sshs_model", NULL, 0 },
    { "sshs_legacy_hash", kohya_tensor_hash, 0, 0, "sshs_legacy", NULL, 0 },
};

sfti_header_family sfti_kohya_family(void) {
    return (sfti_header_family){ "", kohya_rows, SFTI_COUNT(kohya_rows), false };
}

/* ── What needs several keys ── */

static void duration(sfti_header *header) {
    sft_span from, to;
    double started, finished;
    if (!sfti_header_get(header, "ss_training_started_at", &from)
        || !sfti_header_get(header, "ss_training_finished_at", &to)
        || !sfti_parse_double(from, &started) || !sfti_parse_double(to, &finished)
        || started < 1 || finished < started || finished - started > 1e10)
        return;
    sft_span text = sfti_info_text(header->info, "%llu",
                                   (unsigned long long)(finished - started));
    sfti_info_train(header->info, TRAIN_DURATION_S, sfti_number_value(text));
}

static void batch_size(sfti_header *header) {
    sft_span text;
    uint64_t device, steps = 1;
    if (!sfti_header_get(header, "ss_batch_size_per_device", &text)
        || !sfti_parse_uint(text, &device))
        return;
    if (sfti_header_get(header, "ss_gradient_accumulation_steps", &text))
        sfti_parse_uint(text, &steps);
    if (device > 1000000 || steps > 1000000) return;
    text = sfti_info_text(header->info, "%llu", (unsigned long long)(device * steps));
    sfti_info_train(header->info, TRAIN_BATCH_SIZE, sfti_number_value(text));
}

/* Only sd-scripts and musubi-tuner write ss_network_module while they train; musubi-tuner
 * counts items, and its base versions have names of their own. */
static void tool(sfti_header *header) {
    sft_span text;
    const char *name = "sd-scripts";
    if (header->info->training[TRAIN_TOOL].text.len > 0) return;
    if (!sfti_header_get(header, "ss_network_module", &text)) return;
    if (!sfti_header_get(header, "ss_training_started_at", &text)
        && !sfti_header_get(header, "ss_epoch", &text)
        && !sfti_header_get(header, "ss_session_id", &text)
        && !sfti_header_get(header, "ss_datasets", &text))
        return;
    if (sfti_header_get(header, "ss_num_train_items", &text)) name = "musubi-tuner";
    sfti_info_train(header->info, TRAIN_TOOL, sfti_text_value(sft_span_cstr(name)));
}

void sfti_kohya_finish(sfti_header *header) {
    duration(header);
    batch_size(header);
    tool(header);
    sfti_kohya_datasets(header);
}
