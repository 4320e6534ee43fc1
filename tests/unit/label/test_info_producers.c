/* Every producer's keys of __metadata__, each with a near miss beside it. */
#include "unit/header_case.h"

/* ── sd-scripts and musubi-tuner ── */

static const struct { const char *version, *architecture, *variant; } bases[] = {
    { "sd_v1", "sd-1", NULL }, { "sd_v2_v", "sd-2", NULL }, { "sdxl_base_v1-0", "sdxl", NULL },
    { "sdxl_", "sdxl", NULL }, { "medium", "sd-3-medium", NULL },
    { "5-large", "sd-3.5-large", NULL }, { "flux1", "flux.1", NULL },
    { "chroma", "chroma", NULL }, { "flux_2_klein_9b", "flux.2-klein-9b", NULL },
    { "qwen_image_edit", "qwen-image", "edit" }, { "wan", "wan", NULL },
    { "hunyuan_video_1_5", "hunyuan-video-1.5", NULL }, { "sd_1.5", "sd-1", NULL },
    { "wan_2.2_14b", "wan-2.2", NULL }, { "zimage", "z-image", NULL },
    { "unknown", NULL, NULL }, { "sd_v11", NULL, NULL }, { "fluxx", NULL, NULL },
    { "mediumx", NULL, NULL },
};

static void base_versions(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bases / sizeof *bases; i++) {
        model m;
        make(&m, "ss_base_model_version", bases[i].version, NULL);
        if (bases[i].architecture) FACT(&m, ARCHITECTURE, bases[i].architecture);
        else NO_FACT(&m, ARCHITECTURE);
        if (bases[i].variant) FACT(&m, VARIANT, bases[i].variant);
        else NO_FACT(&m, VARIANT);
        done(&m);
    }
}

static void kohya_details(void **state) {
    model m;
    (void)state;
    make(&m, "ss_base_model_version", "sd_v2_v", "ss_v2", "True", "ss_network_module",
         "networks.lora_flux", "ss_text_encoder_lr", "[1e-05, 2e-05]", "ss_network_dim",
         "Dynamic", "ss_sd_model_name", "/home/jane/models/x.safetensors", "ss_sd_model_hash",
         "NOFILE", "ss_new_sd_model_hash", "IsADirectory", "ss_training_comment",
         "trigger word is smart falcon \\(umamusume\\)", "ss_batch_size_per_device", "2",
         "ss_gradient_accumulation_steps", "4", "ss_sd_scripts_commit_hash", "(unknown)",
         "ss_network_args", "[1]", "ss_reg_dataset_dirs", "{}", "sshs_legacy_hash",
         "e3b0c442", "ss_training_started_at", "1690003600", "ss_training_finished_at",
         "1690000000", NULL);
    FACT(&m, PREDICTION_TYPE, "v");
    FACT(&m, ARCHITECTURE, "sd-2");
    for (const sfti_fact *f = m.info.facts[SFT_FACT_ARCHITECTURE]; f; f = f->next)
        SAME(f->value.text, "sd-2"); /* the module's is not asked where a version stands */
    assert_int_equal(m.info.training[TRAIN_TEXT_ENCODER_LR].count, 2);
    SAME(m.info.training[TRAIN_TEXT_ENCODER_LR].items[1], "2e-05");
    assert_null(m.info.declared_rank);
    FACT(&m, BASE_CHECKPOINT, "x.safetensors");
    NO_TRAIN(&m, BASE_AUTOV1);
    NO_TRAIN(&m, BASE_SHA256);
    NO_TRAIN(&m, DURATION_S);
    NO_TRAIN(&m, NETWORK_ARGS);
    TRAIN(&m, BATCH_SIZE, "8");
    TRAIN(&m, TOOL, "sd-scripts");
    assert_int_equal(triggers(&m, "smart falcon \\(umamusume\\)", 70), 1);
    assert_true(private_as(&m, "ss_sd_model_name", "path"));
    assert_true(private_as(&m, "ss_sd_model_name", "user"));
    assert_true(private_as(&m, "ss_training_comment", "comment"));
    assert_false(private_as(&m, "ss_reg_dataset_dirs", "folder-names"));
    assert_int_equal(m.info.claims.count, 0);
    done(&m);
}

static void musubi(void **state) {
    model m;
    const sfti_dataset *set;
    (void)state;
    make(&m, "ss_base_model_version", "qwen_image_layered", "ss_network_module",
         "networks.lora_qwen_image", "ss_num_train_items", "120", "ss_epoch", "3",
         "ss_datasets", "[{\"resolution\": [960, 544], \"num_repeats\": 2, "
         "\"batch_size_per_device\": 1, \"image_directory\": \"C:\\\\data\\\\set a\"}, "
         "{\"resolution\": 512, \"num_repeats\": 1, \"video_directory\": \"vids\"}]", NULL);
    TRAIN(&m, TOOL, "musubi-tuner");
    TRAIN(&m, IMAGES_WITH_REPEATS, "120");
    TRAIN(&m, RESOLUTION, "960x544");
    FACT(&m, VARIANT, "layered");
    FACT(&m, BASE_MODEL, "qwen_image_layered");
    assert_int_equal(m.info.datasets.count, 2);
    set = m.info.datasets.first;
    SAME(set->folder, "set a");
    SAME(set->resolution, "960x544");
    assert_int_equal(set->repeats, 2);
    assert_true(set->images == UINT64_MAX && set->regularisation == -1);
    SAME(set->next->resolution, "512x512");
    assert_true(private_as(&m, "ss_datasets", "path"));
    assert_false(private_as(&m, "ss_datasets", "user"));
    done(&m);
}

static void subsets(void **state) {
    model m;
    (void)state;
    make(&m, "ss_datasets",
         "[{\"subsets\": [{\"class_tokens\": \"ohwx man\", \"is_reg\": false, \"img_count\": 7,"
         "\"image_dir\": \"a\"}, {\"class_tokens\": \"man\", \"img_count\": 90, "
         "\"image_dir\": \"reg\", \"is_reg\": true}], \"resolution\": [512, 768]},"
         "{\"resolution\": [1024, 1024], \"subsets\": [{\"image_dir\": \"a\", \"img_count\": 7,"
         "\"caption_prefix\": \"zkz, \", \"class_tokens\": null}]}]", NULL);
    assert_int_equal(triggers(&m, "ohwx man", 80), 1);
    assert_int_equal(triggers(&m, "man", 80), 0);
    assert_int_equal(triggers(&m, "zkz", 75), 1);
    TRAIN(&m, IMAGES, "7"); /* the same folder at two resolutions, regularisation apart */
    TRAIN(&m, RESOLUTION, "1024x1024");
    const sfti_dataset *set = m.info.datasets.first;
    SAME(set->resolution, "512x768");
    done(&m);
}

static void hashes_of_tools(void **state) {
    model m;
    (void)state;
    make(&m, "ss_network_module", "lycoris.kohya", "sshs_model_hash", "0x" AAA, NULL);
    assert_string_equal(claim_of(&m, "sshs_model")->known, "LyCORIS module order");
    SAME(claim_of(&m, "sshs_model")->value, AAA);
    done(&m);
    make(&m, "software", "{\"name\":\"ai-toolkit\"}", "sshs_model_hash", AAA, NULL);
    assert_string_equal(claim_of(&m, "sshs_model")->known, "ai-toolkit before conversion");
    done(&m);
    make(&m, "ot_branch", "master", "ot_revision", "abc123", "modelspec.hash_sha256",
         "0x" AAA, "modelspec.title", "FluxDev 1.0 LoRA", "ss_base_model_version", "sdxl_",
         NULL);
    assert_string_equal(claim_of(&m, "sshs_model")->known, "OneTrainer name order");
    fact_is(&m, SFT_FACT_NAME, "FluxDev 1.0 LoRA", "header:modelspec.title", 40);
    TRAIN(&m, TOOL, "onetrainer");
    TRAIN(&m, TOOL_VERSION, "abc123");
    done(&m);
    make(&m, "modelspec.hash_sha256", "0x" AAA "0", NULL);
    assert_int_equal(m.info.claims.count, 0);
    done(&m);
}

/* ── ModelSpec ── */

static const struct { const char *id, *architecture, *kind, *variant; } specs[] = {
    { "stable-diffusion-v1/lora", "sd-1", "adapter", NULL },
    { "Stable-Diffusion-V1-inpainting", "sd-1", NULL, "inpaint" },
    { "stable-diffusion-v2-768-v/lora", "sd-2", "adapter", NULL },
    { "stable-diffusion-v2-depth", "sd-2", NULL, "depth" },
    { "stable-diffusion-xl-v1-refiner", "sdxl-refiner", NULL, NULL },
    { "stable-diffusion-xl-v1/vae", "vae-sd", "vae", NULL },
    { "stable-diffusion-xl-v1-base/textual-inversion", "sdxl", "embedding", NULL },
    { "stable-diffusion-xl-v1-base/control-lora", "sdxl", "control_lora", NULL },
    { "stable-diffusion-3-5-large/lora", "sd-3.5-large", "adapter", NULL },
    { "flux-1-dev/lora", "flux.1-dev", "adapter", NULL },
    { "Flux.1-dev/lora", "flux.1-dev", "adapter", NULL },
    { "Flux.2-klein-4b/lora", "flux.2-klein-4b", "adapter", NULL },
    { "Qwen-Image-Edit-2511/lora", "qwen-image", "adapter", "edit" },
    { "Qwen-Image/lora", "qwen-image", "adapter", NULL },
    { "wan-22-5b", "wan-2.2", NULL, "5b" }, { "hunyuan-video-1.5", "hunyuan-video-1.5", NULL,
                                              NULL },
    { "flux-10", "flux-10", NULL, NULL }, { "my-model/lora", "my-model", "adapter", NULL },
    { "stable-diffusion-v12", "stable-diffusion-v12", NULL, NULL },
    { "flux-1-dev/vae", NULL, "vae", NULL },
};

static void spec_architectures(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof specs / sizeof *specs; i++) {
        model m;
        make(&m, "modelspec.architecture", specs[i].id, NULL);
        SAME(best(&m, SFT_FACT_ARCHITECTURE),
             specs[i].architecture ? specs[i].architecture : "(none)");
        SAME(best(&m, SFT_FACT_KIND), specs[i].kind ? specs[i].kind : "(none)");
        SAME(best(&m, SFT_FACT_VARIANT), specs[i].variant ? specs[i].variant : "(none)");
        done(&m);
    }
}

static void spec_keys(void **state) {
    model m;
    (void)state;
    make(&m, "modelspec.title", "LoRA@1690000000", "modelspec.date",
         "2024-05-01T23:30:00.5+02:00", "modelspec.predict_key", "v", "modelspec.encoder_layer",
         "2", "modelspec.is_negative_embedding", "true", "modelspec.lora_default_weight", "0.8",
         "modelspec.data_format", "gptq-4bit-gr128", "modelspec.merged_from", "One, Two",
         "modelspec.description", "<p>Hi</p><p>Trigger words: fuji, kodak. Have fun</p>",
         "modelspec.language", "en/US, ja/JP", "modelspec.usage_hint",
         "Trigger word: mypetcat", NULL);
    NO_FACT(&m, NAME);
    FACT(&m, DATE, "2024-05-01T21:30:00Z");
    FACT(&m, PREDICTION_TYPE, "v");
    FACT(&m, CLIP_SKIP, "2");
    fact_is(&m, SFT_FACT_PREFERRED_WEIGHT, "0.8", "header:modelspec.lora_default_weight", 80);
    FACT(&m, QUANTIZATION, "gptq-4bit");
    FACT(&m, DESCRIPTION, "Hi\n\nTrigger words: fuji, kodak. Have fun");
    assert_int_equal(m.info.negative, 1);
    assert_int_equal(m.info.merge_sources.count, 2);
    assert_true(m.info.has_merge);
    assert_int_equal(triggers(&m, "fuji, kodak", 70), 1);
    assert_int_equal(triggers(&m, "mypetcat", 70), 1);
    assert_int_equal(m.info.facts[SFT_FACT_LANGUAGE]->value.count, 2);
    done(&m);
    make(&m, "modelspec.title", "LoRA@home", "modelspec.data_format", "fp16",
         "modelspec.lora_default_weight", "0", "modelspec.date", "yesterday", NULL);
    FACT(&m, NAME, "LoRA@home");
    NO_FACT(&m, QUANTIZATION);
    NO_FACT(&m, PREFERRED_WEIGHT);
    NO_FACT(&m, DATE);
    assert_int_equal(m.info.negative, -1);
    done(&m);
}

static void spec_without_prefix(void **state) {
    model m;
    (void)state;
    make(&m, "sai_model_spec", "1.0.0", "title", "Bare", "architecture",
         "stable-diffusion-xl-v1-base", "date", "2024-01-02", NULL);
    fact_is(&m, SFT_FACT_NAME, "Bare", "header:title", 85);
    FACT(&m, ARCHITECTURE, "sdxl");
    FACT(&m, DATE, "2024-01-02");
    done(&m);
    make(&m, "title", "Bare", "architecture", "stable-diffusion-xl-v1-base", "Description",
         "Words", "CREATOR", "jane", "Thumbnail", "data:image/png;base64,AAAA", NULL);
    fact_is(&m, SFT_FACT_NAME, "Bare", "header:title", 75);
    fact_is(&m, SFT_FACT_DESCRIPTION, "Words", "header:Description", 60);
    fact_is(&m, SFT_FACT_AUTHOR, "jane", "header:CREATOR", 60);
    NO_FACT(&m, ARCHITECTURE);
    assert_int_equal(m.info.previews.count, 0);
    done(&m);
}

/* ── Other producers ── */

static void additional_networks(void **state) {
    model m;
    (void)state;
    make(&m, "ssmd_display_name", "Shown", "ssmd_version", "v3", "ssmd_author", "me",
         "ssmd_source", "https://civitai.com/models/77/name", "ssmd_keywords", "a, b",
         "ssmd_rating", "4", "ssmd_tags", "x,y", "ssmd_cover_images",
         "[\"/9j/4AAQSkZJRg==\", \"data:image/gif;base64,R0lGODlhAwAFAA==\", \"nonsense!\"]",
         NULL);
    fact_is(&m, SFT_FACT_NAME, "Shown", "header:ssmd_display_name", 90);
    FACT(&m, VERSION_NAME, "v3");
    FACT(&m, AUTHOR, "me");
    assert_true(m.info.rating == 2); /* of ten */
    assert_int_equal(triggers(&m, "a, b", 90), 1);
    const sfti_civitai *ids = m.info.civitai.first;
    assert_int_equal(ids->model_id, 77);
    assert_int_equal(ids->version_id, 0);
    assert_int_equal(ids->trust, 60);
    assert_int_equal(m.info.previews.count, 2);
    const sfti_preview *gif = m.info.previews.last;
    SAME(gif->source, "header:ssmd_cover_images:/1");
    assert_int_equal(gif->width, 3);
    assert_int_equal(gif->height, 5);
    done(&m);
    make(&m, "ssmd_source", "https://example.org/models/77", "ssmd_rating", "0",
         "ssmd_cover_images", "[]", NULL);
    assert_int_equal(m.info.civitai.count, 0);
    assert_int_equal(m.info.links.count, 1);
    assert_true(m.info.rating < 0);
    done(&m);
}

static void peft(void **state) {
    model m;
    (void)state;
    make(&m, "format", "pt", "lora_adapter_metadata",
         "{\"transformer.r\": 16, \"transformer.lora_alpha\": 32, \"transformer.use_dora\": "
         "true, \"transformer.use_rslora\": false, \"transformer.target_modules\": [\"to_k\"],"
         "\"transformer.rank_pattern\": {\"r\": 4}}", NULL);
    SAME(m.info.declared_rank->value.text, "16");
    assert_null(m.info.declared_rank->next);
    SAME(m.info.declared_alpha->value.text, "32");
    SAME(m.info.declared_alpha->source,
         "header:lora_adapter_metadata:/transformer.lora_alpha");
    assert_true(m.info.adapter.dora);
    assert_false(m.info.adapter.rslora);
    FACT(&m, KIND, "adapter");
    done(&m);
}

static void onetrainer_config(void **state) {
    model m;
    (void)state;
    make(&m, "ot_config", "{\"model_type\": \"STABLE_DIFFUSION_XL_10_BASE\", "
         "\"base_model_name\": \"C:/Users/bob/noobaiXL.safetensors\", \"lora_rank\": 16, "
         "\"lora_alpha\": 1.0, \"learning_rate\": 0.0003, \"epochs\": 100, \"optimizer\": "
         "{\"optimizer\": \"ADAMW\"}, \"resolution\": \"1024\", \"concepts\": "
         "[{\"about\": \"https://civitai.com/models/5\"}]}", NULL);
    FACT(&m, ARCHITECTURE, "sdxl");
    FACT(&m, BASE_CHECKPOINT, "noobaiXL.safetensors");
    fact_is(&m, SFT_FACT_BASE_MODEL, "NoobAI", "header:ot_config:/base_model_name", 40);
    SAME(m.info.declared_alpha->value.text, "1.0");
    TRAIN(&m, OPTIMIZER, "ADAMW");
    TRAIN(&m, LEARNING_RATE, "0.0003");
    TRAIN(&m, RESOLUTION, "1024x1024");
    assert_true(private_as(&m, "ot_config", "config"));
    assert_true(private_as(&m, "ot_config", "user"));
    sfti_info_civitai_links(&m.info);
    assert_int_equal(m.info.links.count, 1);
    assert_int_equal(m.info.civitai.count, 0);
    done(&m);
}

static void described_by_config(void **state) {
    model m;
    (void)state;
    make(&m, "config", "{\"transformer\": {\"_class_name\": \"LTXVideoTransformer3DModel\"},"
         "\"scheduler\": {\"prediction_type\": \"flow_prediction\"}}", NULL);
    fact_is(&m, SFT_FACT_ARCHITECTURE, "ltx-video", "header:config:/transformer/_class_name",
            90);
    FACT(&m, PREDICTION_TYPE, "flow");
    NO_FACT(&m, KIND);
    done(&m);
    make(&m, "model_class", "NunchakuFluxTransformer2dModel", "quantization_config",
         "{\"method\":\"svdquant\",\"weight\":{\"dtype\":\"fp4_e2m1_all\"},\"rank\":32}",
         NULL);
    FACT(&m, ARCHITECTURE, "flux.1");
    FACT(&m, KIND, "diffusion_model");
    fact_is(&m, SFT_FACT_QUANTIZATION, "svdquant-fp4", "header:quantization_config", 90);
    done(&m);
    make(&m, "config", "{\"_class_name\": \"NoSuchThing\"}", NULL);
    fact_is(&m, SFT_FACT_ARCHITECTURE, "NoSuchThing", "header:config:/_class_name", 90);
    NO_FACT(&m, KIND);
    done(&m);
    make(&m, "_quantization_metadata", "{\"layers\":{\"a\":{\"format\":\"nvfp4\"},\"b\":"
         "{\"format\":\"float8_e4m3fn\"},\"c\":{\"format\":\"nvfp4\"}}}", NULL);
    FACT(&m, QUANTIZATION, "nvfp4");
    done(&m);
    make(&m, "_quantization_metadata", "{\"layers\":{\"a\":{\"format\":\"new\"}}}", "config",
         "not json", "quantization_config", "{\"quant_method\":\"gptq\",\"bits\":4}", NULL);
    FACT(&m, QUANTIZATION, "gptq-4bit");
    NO_FACT(&m, ARCHITECTURE);
    done(&m);
}

static void merges(void **state) {
    model m;
    const sfti_merge_source *source;
    (void)state;
    make(&m, "sd_merge_models", "{\"" SHA "\":{\"name\":\"a.safetensors\",\"legacy_hash\":"
         "\"89d59c3d\",\"sd_merge_recipe\":null},\"sd_merge_recipe\":{\"name\":\"x\"}}",
         "sd_merge_recipe", "{\"type\":\"webui\",\"primary_model_hash\":\"" SHA "\","
         "\"secondary_model_hash\":\"" SHB "\",\"tertiary_model_hash\":null,\"interp_method\":"
         "\"Weighted sum\",\"multiplier\":0.3,\"custom_name\":\"mix\"}", NULL);
    SAME(m.info.merge_tool, "webui");
    SAME(m.info.merge_method, "Weighted sum");
    fact_is(&m, SFT_FACT_NAME, "mix", "header:sd_merge_recipe:/custom_name", 85);
    assert_int_equal(m.info.merge_sources.count, 2);
    source = m.info.merge_sources.first;
    SAME(source->name, "a.safetensors");
    SAME(source->sha256, SHA);
    SAME(source->autov1, "89d59c3d");
    SAME(source->weight, "");
    SAME(source->next->sha256, SHB);
    SAME(source->next->weight, "0.3");
    done(&m);
    make(&m, "sd_merge_recipe", "{\"type\":\"sd-webui-supermerger\",\"mode\":\"Weight sum\","
         "\"model_a\":null,\"custom_name\":\"\"}", NULL);
    SAME(m.info.merge_tool, "supermerger");
    NO_FACT(&m, NAME);
    assert_int_equal(m.info.merge_sources.count, 0);
    done(&m);
    make(&m, "sd_merge_recipe", "webui", "sd_merge_models", "[]", NULL);
    assert_false(m.info.has_merge);
    done(&m);
    make(&m, "sshs_cp0", "{\"ss_output_name\":\"one\"}", "sshs_cp1", "{}", "sshs_ratio",
         "[0.5, 1.0]", "sshs_cp3", "{}", NULL);
    assert_int_equal(m.info.merge_sources.count, 2);
    source = m.info.merge_sources.first;
    SAME(source->name, "one");
    SAME(source->weight, "0.5");
    SAME(source->next->weight, "1.0");
    SAME(m.info.merge_tool, "supermerger");
    done(&m);
}

static void comfyui(void **state) {
    model m;
    const sfti_loader *loader;
    (void)state;
    make(&m, "prompt", "{\"4\":{\"inputs\":{\"ckpt_name\":\"sd/base.safetensors\"},"
         "\"class_type\":\"CheckpointLoaderSimple\"},\"5\":{\"class_type\":\"LoraLoader\","
         "\"inputs\":{\"lora_name\":\"x.safetensors\",\"strength_model\":0.8,\"strength_clip\":"
         "1,\"model\":[\"4\",0]}},\"6\":{\"class_type\":\"CLIPTextEncode\",\"inputs\":{\"text\":"
         "\"see https://civitai.com/models/9\"}}}", "workflow", "{\"nodes\":[]}",
         "modelspec.title", "mymerge 1", "modelspec.predict_key", "epsilon", NULL);
    assert_true(m.info.has_provenance && m.info.has_prompt_graph && m.info.has_workflow);
    assert_int_equal(m.info.loaders.count, 2);
    loader = m.info.loaders.first;
    SAME(loader->type, "CheckpointLoaderSimple");
    SAME(loader->name, "sd/base.safetensors");
    SAME(loader->strength_model, "");
    SAME(loader->next->strength_model, "0.8");
    SAME(loader->next->strength_clip, "1");
    fact_is(&m, SFT_FACT_NAME, "mymerge 1", "header:modelspec.title", 40);
    sfti_info_civitai_links(&m.info);
    assert_int_equal(m.info.links.count, 1);
    assert_int_equal(m.info.civitai.count, 0);
    assert_int_equal(m.info.prompts.count, 0);
    assert_true(private_as(&m, "prompt", "workflow"));
    done(&m);
    make(&m, "workflow", "{\"nodes\":[{\"type\":\"LoraLoader\",\"widgets_values\":"
         "[\"y.safetensors\",0.5,0.6]}]}", "modelspec.title", "Version 1", NULL);
    loader = m.info.loaders.first;
    SAME(loader->name, "y.safetensors");
    SAME(loader->strength_clip, "0.6");
    assert_false(m.info.has_prompt_graph);
    done(&m);
    make(&m, "prompt", "a photo of a cat", "modelspec.title", "Version 1", NULL);
    assert_false(m.info.has_provenance);
    fact_is(&m, SFT_FACT_NAME, "Version 1", "header:modelspec.title", 85);
    done(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(base_versions), cmocka_unit_test(kohya_details),
        cmocka_unit_test(musubi), cmocka_unit_test(subsets), cmocka_unit_test(hashes_of_tools),
        cmocka_unit_test(spec_architectures), cmocka_unit_test(spec_keys),
        cmocka_unit_test(spec_without_prefix), cmocka_unit_test(additional_networks),
        cmocka_unit_test(peft), cmocka_unit_test(onetrainer_config),
        cmocka_unit_test(described_by_config), cmocka_unit_test(merges),
        cmocka_unit_test(comfyui),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
