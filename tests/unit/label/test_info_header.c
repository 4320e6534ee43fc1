/* Conventions of __metadata__: worked examples, links and ids, maps, times, hostile ones. */
#include "unit/header_case.h"

#include "label/tensors/signatures.h"

#define RECORDS sfti_records_built_in()

/* ── What is asked of it ── */

static uint64_t nth_images(const model *m, size_t n) {
    const sfti_dataset *d = m->info.datasets.first;
    while (n-- > 0) d = d->next;
    return d->images;
}

/* ── The worked examples ── */

static void example_a(void **state) {
    model m;
    (void)state;
    make(&m, "ss_session_id", "1234567890", "ss_training_started_at", "1690000000.123456",
         "ss_training_finished_at", "1690003600.5", "ss_output_name", "mikumo_v2",
         "ss_learning_rate", "0.0001", "ss_text_encoder_lr", "5e-05", "ss_unet_lr", "0.0001",
         "ss_num_train_images", "350", "ss_num_reg_images", "20", "ss_num_epochs", "10",
         "ss_epoch", "10", "ss_steps", "1750", "ss_max_train_steps", "1750",
         "ss_network_module", "networks.lora", "ss_network_dim", "32", "ss_network_alpha",
         "16.0", "ss_keep_tokens", "1", "ss_v2", "False", "ss_base_model_version", "sd_v1",
         "ss_clip_skip", "2", "ss_resolution", "(512, 512)", "ss_seed", "42",
         "ss_noise_offset", "None", "ss_optimizer",
         "bitsandbytes.optim.adamw.AdamW8bit(weight_decay=0.1)", "ss_training_comment", "None",
         "ss_sd_model_name", "animefull-final-pruned.safetensors", "ss_sd_model_hash",
         "89d59c3d", "ss_new_sd_model_hash", SHA, "ss_vae_name", "None", "ss_dataset_dirs",
         "{\"10_mikumo style\": {\"n_repeats\": 10, \"img_count\": 30}, \"5_mikumo chibi\": "
         "{\"n_repeats\": 5, \"img_count\": 10}}", "ss_reg_dataset_dirs",
         "{\"1_girl\": {\"n_repeats\": 1, \"img_count\": 20}}", "ss_tag_frequency",
         "{\"10_mikumo style\": {\"mikumo\": 30}}", "ss_bucket_info",
         "{\"buckets\": {\"0\": {\"resolution\": [512, 512], \"count\": 300}, \"1\": "
         "{\"resolution\": [448, 576], \"count\": 50}}, \"mean_img_ar_error\": NaN}",
         "sshs_model_hash", AAA, "sshs_legacy_hash", "deadbeef", NULL);
    fact_is(&m, SFT_FACT_KIND, "adapter", "header:ss_network_module", 75);
    fact_is(&m, SFT_FACT_ARCHITECTURE, "sd-1", "header:ss_base_model_version", 75);
    fact_is(&m, SFT_FACT_NAME, "mikumo_v2", "header:ss_output_name", 70);
    fact_is(&m, SFT_FACT_DATE, "2023-07-22T05:26:40Z", "header:ss_training_finished_at", 80);
    fact_is(&m, SFT_FACT_BASE_CHECKPOINT, "animefull-final-pruned.safetensors",
            "header:ss_sd_model_name", 75);
    NO_FACT(&m, BASE_MODEL);
    NO_FACT(&m, PREDICTION_TYPE);
    FACT(&m, RESOLUTION, "512x512");
    FACT(&m, CLIP_SKIP, "2");
    TRAIN(&m, STARTED_AT, "2023-07-22T04:26:40Z");
    TRAIN(&m, DURATION_S, "3600");
    TRAIN(&m, EPOCH, "10");
    TRAIN(&m, EPOCHS, "10");
    TRAIN(&m, STEP, "1750");
    TRAIN(&m, STEPS, "1750");
    TRAIN(&m, IMAGES, "40");
    TRAIN(&m, IMAGES_WITH_REPEATS, "350");
    TRAIN(&m, REGULARISATION_IMAGES, "20");
    TRAIN(&m, TEXT_ENCODER_LR, "5e-05");
    TRAIN(&m, BASE_SHA256, SHA);
    TRAIN(&m, BASE_AUTOV1, "89d59c3d");
    TRAIN(&m, TOOL, "sd-scripts");
    NO_TRAIN(&m, NOISE_OFFSET);
    NO_TRAIN(&m, COMMENT);
    NO_TRAIN(&m, VAE_FILE);
    assert_int_equal(m.info.datasets.count, 3);
    assert_int_equal(nth_images(&m, 0), 30);
    const sfti_dataset *last = m.info.datasets.last;
    SAME(last->folder, "1_girl");
    assert_int_equal(last->regularisation, 1);
    assert_int_equal(m.info.buckets.count, 2);
    const sfti_bucket *bucket = m.info.buckets.last;
    SAME(bucket->resolution, "448x576");
    assert_int_equal(bucket->count, 50);
    SAME(m.info.declared_rank->value.text, "32");
    SAME(m.info.declared_alpha->value.text, "16.0");
    SAME(claim_of(&m, "sshs_model")->value, AAA);
    assert_null(claim_of(&m, "sshs_model")->known);
    SAME(claim_of(&m, "sshs_legacy")->value, "deadbeef");
    assert_int_equal(m.info.civitai.count + m.info.links.count, 0);
    assert_true(private_as(&m, "ss_session_id", "session"));
    assert_true(private_as(&m, "ss_tag_frequency", "folder-names"));
    assert_false(private_as(&m, "ss_training_comment", "comment"));
    done(&m);
}

static void example_b(void **state) {
    model m;
    (void)state;
    make(&m, "ss_base_model_version", "sdxl_base_v1-0", "ss_network_module", "lycoris.kohya",
         "ss_network_dim", "16", "ss_network_alpha", "8", "ss_network_args",
         "{\"algo\": \"lokr\", \"factor\": \"8\"}", "ss_output_name", "neonscape_xl",
         "ss_sd_model_name", "ponyDiffusionV6XL.safetensors", "ss_v2", "False", "ss_epoch", "8",
         "ss_datasets", "[{\"is_dreambooth\": true, \"batch_size_per_device\": 4, "
         "\"num_train_images\": 240, \"num_reg_images\": 0, \"resolution\": [1024, 1024], "
         "\"tag_frequency\": {\"neon\": {\"x\": 60}}, \"bucket_info\": null, \"subsets\": "
         "[{\"img_count\": 60, \"num_repeats\": 4, \"keep_tokens\": 2, \"class_tokens\": "
         "\"neonscape city\", \"is_reg\": false, \"image_dir\": \"neon\", "
         "\"caption_prefix\": null}]}]", "ss_dataset_dirs",
         "{\"neon\": {\"n_repeats\": 4, \"img_count\": 60}}", "modelspec.sai_model_spec",
         "1.0.1", "modelspec.architecture", "stable-diffusion-xl-v1-base/lora",
         "modelspec.title", "Neonscape XL", "modelspec.author", "examplecreator",
         "modelspec.description",
         "City style. https://civitai.com/models/123456?modelVersionId=234567",
         "modelspec.date", "2024-05-01T12:30:00", "modelspec.resolution", "1024x1024",
         "modelspec.prediction_type", "epsilon", "modelspec.trigger_phrase", "neonscape",
         "modelspec.usage_hint", "Weight 0.7-0.9", "modelspec.tags", "style,city,cyberpunk",
         "modelspec.license", "CC-BY-SA-4.0", "modelspec.thumbnail",
         "data:image/jpeg;base64,/9j/4AAQSkZJRg==", "modelspec.implementation_version",
         "sd-scripts/48d368fa00000000000000000000000000000000", NULL);
    fact_is(&m, SFT_FACT_ARCHITECTURE, "sdxl", "header:modelspec.architecture", 80);
    fact_is(&m, SFT_FACT_ARCHITECTURE, "sdxl", "header:ss_base_model_version", 75);
    fact_is(&m, SFT_FACT_KIND, "adapter", "header:modelspec.architecture", 80);
    fact_is(&m, SFT_FACT_BASE_MODEL, "Pony", "header:ss_sd_model_name", 40);
    fact_is(&m, SFT_FACT_NAME, "Neonscape XL", "header:modelspec.title", 85);
    FACT(&m, AUTHOR, "examplecreator");
    FACT(&m, LICENSE, "CC-BY-SA-4.0");
    FACT(&m, DATE, "2024-05-01T12:30:00");
    FACT(&m, RESOLUTION, "1024x1024");
    FACT(&m, PREDICTION_TYPE, "epsilon");
    FACT(&m, USAGE_HINT, "Weight 0.7-0.9");
    assert_int_equal(m.info.facts[SFT_FACT_TAGS]->value.count, 3);
    assert_int_equal(triggers(&m, "neonscape", 90), 1);
    assert_int_equal(triggers(&m, "neonscape city", 80), 1);
    assert_int_equal(m.info.triggers.count, 2);
    const sfti_trigger *words = NULL;
    for (const sfti_trigger *t = m.info.triggers.first; t; t = t->next)
        if (t->trust == 80) words = t;
    SAME(words->source, "header:ss_datasets:/0/subsets/0/class_tokens");
    SAME(words->folder, "neon");
    TRAIN(&m, TOOL, "sd-scripts");
    TRAIN(&m, TOOL_VERSION, "48d368fa00000000000000000000000000000000");
    TRAIN(&m, IMAGES, "60");
    TRAIN(&m, IMAGES_WITH_REPEATS, "240");
    TRAIN(&m, BATCH_SIZE, "4");
    TRAIN(&m, RESOLUTION, "1024x1024");
    TRAIN(&m, NETWORK_ARGS, "{\"algo\": \"lokr\", \"factor\": \"8\"}");
    assert_int_equal(m.info.datasets.count, 1);
    const sfti_preview *preview = m.info.previews.first;
    assert_string_equal(preview->media_type, "image/jpeg");
    assert_int_equal(preview->bytes, 10);
    SAME(preview->source, "header:modelspec.thumbnail");
    sft_preview shown;
    assert_int_equal(sft_info_preview_count(&m.info), 1);
    assert_true(sft_info_preview_at(&m.info, 0, &shown));
    assert_string_equal(shown.media_type, "image/jpeg");
    SAME(shown.source, "header:modelspec.thumbnail");
    assert_int_equal(shown.data.len, 10);
    assert_false(sft_info_preview_at(&m.info, 1, &shown));
    sfti_info_civitai_links(&m.info);
    const sfti_civitai *ids = m.info.civitai.first;
    assert_int_equal(m.info.civitai.count, 1);
    assert_int_equal(ids->model_id, 123456);
    assert_int_equal(ids->version_id, 234567);
    assert_int_equal(ids->trust, 50);
    SAME(ids->source, "header:modelspec.description");
    done(&m);
}

static void example_c(void **state) {
    model m;
    (void)state;
    make(&m, "format", "pt", "software",
         "{\"name\": \"ai-toolkit\", \"repo\": \"https://github.com/ostris/ai-toolkit\", "
         "\"version\": \"0.7.2\"}", "training_info", "{\"step\": 2000, \"epoch\": 44}", "name",
         "p3rs0n_flux", "version", "1.0", "ss_base_model_version", "flux.1_kontext",
         "ss_output_name", "p3rs0n_flux", "ss_tag_frequency",
         "{\"1_p3rs0n\": {\"p3rs0n\": 1}}", NULL);
    TRAIN(&m, TOOL, "ai-toolkit");
    TRAIN(&m, TOOL_VERSION, "0.7.2");
    TRAIN(&m, STEP, "2000");
    TRAIN(&m, EPOCH, "44");
    fact_is(&m, SFT_FACT_NAME, "p3rs0n_flux", "header:name", 75);
    fact_is(&m, SFT_FACT_NAME, "p3rs0n_flux", "header:ss_output_name", 70);
    fact_is(&m, SFT_FACT_ARCHITECTURE, "flux.1", "header:ss_base_model_version", 75);
    fact_is(&m, SFT_FACT_VARIANT, "kontext", "header:ss_base_model_version", 75);
    fact_is(&m, SFT_FACT_BASE_MODEL, "Flux.1 Kontext", "header:ss_base_model_version", 75);
    NO_FACT(&m, VERSION_NAME);
    NO_FACT(&m, KIND);
    done(&m);
}

static void example_d(void **state) {
    model m;
    (void)state;
    make(&m, "format", "pt", NULL);
    for (int i = 0; i < SFT_FACT_COUNT; i++) assert_null(m.info.facts[i]);
    assert_false(m.info.has_training || m.info.has_merge || m.info.has_provenance);
    assert_int_equal(m.info.triggers.count + m.info.privates.count, 0);
    done(&m);
    memset(&m, 0, sizeof m);
    open_pairs(&m, NULL, 0);
    read_header(&m);
    done(&m);
}

/* ── Links and ids ── */

static const struct { const char *text; uint64_t model, version; } texts[] = {
    { "https://civitai.com/models/12/x?modelVersionId=34", 12, 34 },
    { "see civitai.com/models/12.", 12, 0 },
    { "(https://www.civitai.com/en/models/12)", 12, 0 },
    { "https://civitai.green/models/12, https://civitai.com/models/12?modelVersionId=3", 12, 3 },
    { "https://civitai.com/api/download/models/34", 0, 34 },
    { "urn:air:sdxl:lora:civitai:827184@2514310", 827184, 2514310 },
    { "https://civitai.com/models/12 or https://civitai.com/models/13", 0, 0 },
    { "https://civitai.com/models/12?modelVersionId=3 https://civitai.com/models/12?"
      "modelVersionId=4", 12, 0 },
    { "Trained on https://civitai.com/models/12", 0, 0 },
    { "The base is https://civitai.com/models/12", 0, 0 },
    { "Merged with x. Page: https://civitai.com/models/12", 12, 0 },
    { "requires https://civitai.com/models/5. Mine: https://civitai.com/models/12", 12, 0 },
    { "Database at https://civitai.com/models/12", 12, 0 },
    { "https://notcivitai.com/models/12", 0, 0 },
    { "https://civitai.com.evil.org/models/12", 0, 0 },
    { "https://evil.org/civitai.com/models/12", 0, 0 },
    { "https://civitai.com/images/12", 0, 0 },
    { "https://civitai.com/models/12abc", 0, 0 },
    { "https://civitai.com/user/models/12", 0, 0 },
    { "urn:air:sdxl:lora:huggingface:827184@2514310", 0, 0 },
    { "sdxl:lora:civitai:827184", 0, 0 },
    { "fair:sdxl:lora:civitai:827184", 0, 0 },
    { "https://civitai.com/models/99999999999999999999999", 0, 0 },
};

static void links_of_texts(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        model m;
        make(&m, "description", texts[i].text, NULL);
        sfti_info_civitai_links(&m.info);
        const sfti_civitai *ids = m.info.civitai.first;
        uint64_t found = ids ? ids->model_id : 0, version = ids ? ids->version_id : 0;
        if (found != texts[i].model || version != texts[i].version)
            fail_msg("%s: %llu %llu", texts[i].text, (unsigned long long)found,
                     (unsigned long long)version);
        done(&m);
    }
}

static void air_of_another_kind(void **state) {
    static const char *const kinds[] = { "adapter", "checkpoint" };
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        model m;
        sft_pair pair = { s("air"), s("urn:air:sdxl:lora:civitai:7@8") };
        open_pairs(&m, &pair, 1);
        sfti_info_add_text(&m.info, SFT_FACT_KIND, s(kinds[i]), s("tensors"), 100);
        read_header(&m);
        sfti_info_civitai_links(&m.info);
        assert_int_equal(m.info.links.count, 1);
        assert_int_equal(m.info.civitai.count, i == 0);
        done(&m);
    }
}

static void generic_keys(void **state) {
    model m;
    (void)state;
    make(&m, "Trigger_Word", "zwx", "instance_prompt", "photo of zwx", "baseModel", "Pony",
         "modelId", "5", "modelVersionId", "6", "model_name", "N", "tags", "a,b", "epoch", "5",
         NULL);
    assert_int_equal(triggers(&m, "zwx", 90), 1);
    assert_int_equal(triggers(&m, "photo of zwx", 90), 1);
    fact_is(&m, SFT_FACT_BASE_MODEL, "Pony", "header:baseModel", 60);
    NO_FACT(&m, BASE_CHECKPOINT);
    const sfti_civitai *ids = m.info.civitai.first;
    assert_int_equal(m.info.civitai.count, 1);
    assert_int_equal(ids->model_id, 5);
    assert_int_equal(ids->version_id, 6);
    assert_int_equal(ids->trust, 60);
    done(&m);
    make(&m, "base_model", "org/some-illustrious-base", "trigger_word", "None",
         "my_trigger_word", "x", "modelId", "5a", NULL);
    FACT(&m, BASE_CHECKPOINT, "org/some-illustrious-base");
    FACT(&m, BASE_MODEL, "Illustrious");
    assert_int_equal(m.info.triggers.count, 0);
    assert_int_equal(m.info.civitai.count, 0);
    done(&m);
}

static const struct { const char *text, *word; } sentences[] = {
    { "Trigger word: mypetcat", "mypetcat" },
    { "**Trigger Words:** `foo bar`, more", "foo bar" },
    { "The trigger word is \"a, b\" and so on", "a, b" },
    { "activation text = zkz style.\nNext", "zkz style" },
    { "trigger: abc; weight 1", "abc" },
    { "You should use `TOK` to trigger the image generation.", "TOK" },
    { "Trigger words(s): x", NULL }, { "No trigger word needed", NULL },
    { "Trigger words: none", NULL }, { "trigger word is not needed", NULL },
    { "triggers happiness", NULL }, { "a hair trigger for fun", NULL },
    { "retrigger: abc", NULL }, { "trigger word", NULL }, { "use `x` to draw", NULL },
    { "Trigger words: see https://x.org", NULL },
};

static void trigger_sentences(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof sentences / sizeof *sentences; i++) {
        model m;
        make(&m, "modelspec.usage_hint", sentences[i].text, NULL);
        const sfti_trigger *word = m.info.triggers.first;
        if (sentences[i].word && !word) fail_msg("%s: nothing", sentences[i].text);
        SAME(word ? word->text : s("(none)"), sentences[i].word ? sentences[i].word : "(none)");
        done(&m);
    }
}

static const struct { const char *text; bool path, user; } places[] = {
    { "/home/jane/x", true, true }, { "{\"a\": \"/Users/jane\"}", true, true },
    { "C:\\Users\\bob\\x", true, true }, { "{\"a\":\"D:\\\\sets\\\\x\"}", true, false },
    { "/workspace/x", true, false }, { "D:/sets/x", true, false },
    { "https://x.org/home/jane", false, false }, { "a/home/jane", false, false },
    { "http://c:80/x", false, false }, { "/Users/Shared/x", true, false },
    { "ratio 3:/4", false, false }, { "and/or", false, false },
};

static void private_places(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        model m;
        make(&m, "k", places[i].text, NULL);
        if (private_as(&m, "k", "path") != places[i].path
            || private_as(&m, "k", "user") != places[i].user)
            fail_msg("%s", places[i].text);
        done(&m);
    }
}

static void learned_words(void **state) {
    model m;
    (void)state;
    make(&m, "<s1>", "<embed>", "<s2>", "else", "s3>", "<embed>", "unet:0:rank", "1", NULL);
    assert_int_equal(m.info.triggers.count, 1);
    assert_int_equal(triggers(&m, "<s1>", 90), 1);
    done(&m);
}

/* ── Maps and times ── */

static void maps(void **state) {
    const sfti_record_row *row;
    const char *architecture, *kind;
    (void)state;
    assert_string_equal(sfti_map_civitai_base(RECORDS, s("Pony"), NULL), "sdxl");
    assert_string_equal(sfti_map_civitai_base(RECORDS, s("Pony V7"), NULL), "auraflow");
    assert_string_equal(sfti_map_civitai_base(RECORDS, s("SD 1.5 LCM"), NULL), "sd-1");
    assert_string_equal(sfti_map_civitai_base(RECORDS, s("SD 3.5 Large Turbo"), NULL),
                        "sd-3.5-large");
    assert_string_equal(sfti_map_civitai_base(RECORDS, s("Flux.1 Kontext"), NULL), "flux.1");
    assert_string_equal(sfti_map_civitai_base(RECORDS, s("Wan Video 2.2 I2V-A14B"), NULL),
                        "wan-2.2");
    assert_string_equal(sfti_map_civitai_base(RECORDS, s("LTXV2"), NULL), "ltx-2");
    assert_null(sfti_map_civitai_base(RECORDS, s("Other"), NULL));
    assert_null(sfti_map_civitai_base(RECORDS, s("SD 15"), NULL));
    assert_true(sfti_map_class_name(RECORDS, s("LlamaForCausalLM"), &architecture, &kind, &row));
    assert_string_equal(architecture, "llama");
    assert_string_equal(kind, "language_model");
    assert_false(sfti_map_class_name(RECORDS, s("NemotronHForCausalLM"),
                                     &architecture, &kind, &row));
    assert_null(architecture);
    assert_true(sfti_map_class_name(RECORDS, s("GPTNeoXForCausalLM"), &architecture, &kind, &row));
    assert_string_equal(architecture, "gpt-neox");
    assert_true(sfti_map_class_name(RECORDS, s("FluxControlNetImg2ImgPipeline"), &architecture,
                                    &kind, &row));
    assert_string_equal(architecture, "flux.1");
    assert_string_equal(kind, "pipeline");
    assert_false(sfti_map_class_name(RECORDS, s("Flux3Pipeline"), &architecture, &kind, &row));
    assert_false(sfti_map_class_name(RECORDS, s("FluxSomething"), &architecture, &kind, &row));
    assert_null(kind);
    assert_true(sfti_map_class_name(RECORDS, s("AutoencoderKL"), &architecture, &kind, &row));
    assert_null(architecture);
    assert_string_equal(kind, "vae");
    assert_true(sfti_map_class_name(RECORDS, s("AutoencoderKLQwenImage21"),
                                    &architecture, &kind, &row));
    assert_string_equal(architecture, "vae-qwen-image-2.1");
    assert_true(sfti_related_architectures(RECORDS, s("flux.1"), s("flux.1-dev")));
    assert_true(sfti_related_architectures(RECORDS, s("wan-2.2"), s("wan")));
    assert_false(sfti_related_architectures(RECORDS, s("hunyuan-video"), s("hunyuan-video-1.5")));
    assert_false(sfti_related_architectures(RECORDS, s("sdxl"), s("sdxl-refiner")));
    assert_string_equal(sfti_map_prediction(RECORDS, s("v_prediction"), NULL), "v");
    assert_null(sfti_map_prediction(RECORDS, s("raw"), NULL));
}

/* ── Hostile ── */

static void many_and_long(void **state) {
    size_t len = (size_t)30 << 20;
    char *big = malloc(len);
    static const char bit[] = "https://civitai.com/models/1 trigger word: /home/x ";
    model m;
    (void)state;
    assert_non_null(big);
    for (size_t i = 0; i < len; i++) big[i] = bit[i % (sizeof bit - 1)];
    sft_pair pairs[3] = { { s("description"), { big, len } },
                          { s("modelspec.usage_hint"), { big, len } },
                          { s("ss_training_comment"), { big, len } } };
    open_pairs(&m, pairs, 3);
    read_header(&m);
    assert_true(m.info.links.count <= 256);
    done(&m);
    free(big);
}

/* ── What clauses of records ask ── */

static bool says(model *m, const char *alternative) {
    sfti_predicate predicate;
    bool right;
    assert_true(sfti_predicate_of(s(alternative), &predicate, &right));
    assert_true(right);
    return sfti_metadata_says(&m->info, &predicate);
}

/* A text of the metadata is read once, however often it is asked: NaN makes each reading a copy. */
static void clauses_ask(void **state) {
    static const char *const true_ones[] = {
        "@kind = Fine", "@kind = FINE", "@config:/a/b = X", "@config:/n = 1", "@config:/t = true",
        "@config:/l/1/c = y z", "@config:/1/2/3/4/5/6/7/8 = deep", "@config:/k~1e = 7",
    };
    static const char *const false_ones[] = {
        "@kind = fin", "@none = x", "@config:/a = x", "@config:/a/b = xy", "@config:/a/bx = x",
        "@config:/l/0/c = y z", "@config:/n/a = 1", "@config = x", "@kind:/a = x",
        "@config:/A/b = x", "@broken:/a = x",
    };
    model m;
    (void)state;
    make(&m, "kind", "fine", "broken", "{\"a\":\"x\"", "config",
         "{\"a\":{\"b\":\"x\"},\"n\":1,\"t\":true,\"l\":[NaN,{\"c\":\"Y z\"}],\"k/e\":7,"
         "\"1\":{\"2\":{\"3\":{\"4\":{\"5\":{\"6\":{\"7\":{\"8\":\"deep\"}}}}}}}}", NULL);
    for (size_t i = 0; i < SFTI_COUNT(true_ones); i++)
        if (!says(&m, true_ones[i])) fail_msg("%s", true_ones[i]);
    for (size_t i = 0; i < SFTI_COUNT(false_ones); i++)
        if (says(&m, false_ones[i])) fail_msg("%s", false_ones[i]);
    const char *taken = m.info.arena.at;
    for (int i = 0; i < 1000; i++) {
        char text[64];
        snprintf(text, sizeof text, "@config:/a/b%d = x", i);
        assert_false(says(&m, text));
    }
    assert_ptr_equal(m.info.arena.at, taken);
    assert_int_equal(m.info.code, SFT_OK);
    done(&m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(example_a), cmocka_unit_test(example_b), cmocka_unit_test(example_c),
        cmocka_unit_test(example_d), cmocka_unit_test(links_of_texts),
        cmocka_unit_test(air_of_another_kind), cmocka_unit_test(generic_keys),
        cmocka_unit_test(trigger_sentences), cmocka_unit_test(private_places),
        cmocka_unit_test(learned_words), cmocka_unit_test(maps),
        cmocka_unit_test(many_and_long), cmocka_unit_test(clauses_ask),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
