/* Conventions of __metadata__: every producer's keys, each with a near miss beside it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "label/info.h"

#define SHA "1234567890abcdef1234567890abcdef1234567890abcdef1234567890abcdef"
#define SHB "abababababababababababababababababababababababababababababababab"
#define AAA "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"

/* ── A model of one tensor and this metadata ── */

typedef struct model {
    sft_info info;
    sft_set *set;
    char *bytes;
} model;

static sft_span s(const char *text) { return sft_span_cstr(text); }

static void open_pairs(model *m, const sft_pair *pairs, size_t count) {
    uint64_t shape[1] = { 1 };
    sft_spec spec = { s("a"), SFT_U8, 1, shape };
    sft_plan *plan;
    sft_file *file;
    memset(m, 0, sizeof *m);
    assert_int_equal(sft_plan_new(&spec, 1, pairs, count, NULL, &plan, NULL), SFT_OK);
    sft_span head = sft_plan_head(plan);
    m->bytes = calloc(1, head.len + 1);
    memcpy(m->bytes, head.data, head.len);
    assert_int_equal(sft_open_memory(m->bytes, head.len + 1, NULL, &file, NULL), SFT_OK);
    sft_plan_free(plan);
    assert_int_equal(sft_set_from_file(file, NULL, &m->set, NULL), SFT_OK);
    m->info.arena.alloc = sfti_allocator(NULL);
    m->info.set = m->set;
    m->info.negative = -1;
    m->info.rating = -1;
}

static void read_header(model *m) {
    sfti_info_header(&m->info);
    assert_int_equal(m->info.code, SFT_OK);
}

/* key, value, key, value, …, NULL */
static void make(model *m, ...) {
    sft_pair pairs[64];
    size_t count = 0;
    va_list args;
    va_start(args, m);
    for (const char *key = va_arg(args, const char *); key; key = va_arg(args, const char *))
        pairs[count++] = (sft_pair){ s(key), s(va_arg(args, const char *)) };
    va_end(args);
    open_pairs(m, pairs, count);
    read_header(m);
}

static void done(model *m) {
    sft_set_close(m->set);
    sfti_arena_free(&m->info.arena);
    free(m->bytes);
}

/* ── What is asked of it ── */

#define SAME(span, text) do { \
        sft_span got_ = (span); \
        if (!sft_span_equal(got_, s(text))) \
            fail_msg("line %d: expected \"%s\", got \"%.*s\"", __LINE__, text, \
                     (int)got_.len, got_.data ? got_.data : ""); \
    } while (0)

static sft_span best(const model *m, sft_fact field) {
    const sfti_fact *fact = sfti_info_best(&m->info, field);
    return fact ? fact->value.text : s("(none)");
}

#define FACT(m, field, text) SAME(best(m, SFT_FACT_##field), text)
#define NO_FACT(m, field) assert_null((m)->info.facts[SFT_FACT_##field])
#define TRAIN(m, key, value) SAME((m)->info.training[TRAIN_##key].text, value)
#define NO_TRAIN(m, key) assert_int_equal((m)->info.training[TRAIN_##key].text.len, 0)

static void fact_is(const model *m, sft_fact field, const char *text, const char *source,
                    int trust) {
    for (const sfti_fact *fact = m->info.facts[field]; fact; fact = fact->next)
        if (sft_span_equal(fact->value.text, s(text)) && sft_span_equal(fact->source, s(source))
            && fact->trust == trust)
            return;
    fail_msg("no %s \"%s\" of %s with trust %d", sft_fact_name(field), text, source, trust);
}

static size_t triggers(const model *m, const char *text, int trust) {
    size_t count = 0;
    for (const sfti_trigger *t = m->info.triggers.first; t; t = t->next)
        count += sft_span_equal(t->text, s(text)) && t->trust == trust;
    return count;
}

static bool private_as(const model *m, const char *key, const char *what) {
    for (const sfti_private *p = m->info.privates.first; p; p = p->next)
        if (sft_span_equal(p->key, s(key)) && strcmp(p->what, what) == 0) return true;
    return false;
}

static const sfti_claim *claim_of(const model *m, const char *algo) {
    for (const sfti_claim *c = m->info.claims.first; c; c = c->next)
        if (strcmp(c->algo, algo) == 0) return c;
    return NULL;
}

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
    assert_true(m.info.rating == 4);
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
    const char *architecture, *kind;
    (void)state;
    assert_string_equal(sfti_map_civitai_base(s("Pony")), "sdxl");
    assert_string_equal(sfti_map_civitai_base(s("Pony V7")), "auraflow");
    assert_string_equal(sfti_map_civitai_base(s("SD 1.5 LCM")), "sd-1");
    assert_string_equal(sfti_map_civitai_base(s("SD 3.5 Large Turbo")), "sd-3.5-large");
    assert_string_equal(sfti_map_civitai_base(s("Flux.1 Kontext")), "flux.1");
    assert_string_equal(sfti_map_civitai_base(s("Wan Video 2.2 I2V-A14B")), "wan-2.2");
    assert_string_equal(sfti_map_civitai_base(s("LTXV2")), "ltx-2");
    assert_null(sfti_map_civitai_base(s("Other")));
    assert_null(sfti_map_civitai_base(s("SD 15")));
    assert_true(sfti_map_class_name(s("LlamaForCausalLM"), &architecture, &kind));
    assert_string_equal(architecture, "llama");
    assert_string_equal(kind, "language_model");
    assert_false(sfti_map_class_name(s("NemotronHForCausalLM"), &architecture, &kind));
    assert_null(architecture);
    assert_true(sfti_map_class_name(s("GPTNeoXForCausalLM"), &architecture, &kind));
    assert_string_equal(architecture, "gpt-neox");
    assert_true(sfti_map_class_name(s("FluxControlNetImg2ImgPipeline"), &architecture, &kind));
    assert_string_equal(architecture, "flux.1");
    assert_string_equal(kind, "pipeline");
    assert_false(sfti_map_class_name(s("Flux3Pipeline"), &architecture, &kind));
    assert_false(sfti_map_class_name(s("FluxSomething"), &architecture, &kind));
    assert_null(kind);
    assert_true(sfti_map_class_name(s("AutoencoderKL"), &architecture, &kind));
    assert_null(architecture);
    assert_string_equal(kind, "vae");
    assert_true(sfti_map_class_name(s("AutoencoderKLQwenImage21"), &architecture, &kind));
    assert_string_equal(architecture, "vae-qwen-image-2.1");
    assert_true(sfti_related_architectures(s("flux.1"), s("flux.1-dev")));
    assert_true(sfti_related_architectures(s("wan-2.2"), s("wan")));
    assert_false(sfti_related_architectures(s("hunyuan-video"), s("hunyuan-video-1.5")));
    assert_false(sfti_related_architectures(s("sdxl"), s("sdxl-refiner")));
    assert_string_equal(sfti_map_prediction(s("v_prediction")), "v");
    assert_null(sfti_map_prediction(s("raw")));
}

static const struct { const char *text, *date; } dates[] = {
    { "2023-07-16", "2023-07-16" }, { "2023-07-16T18:13:38Z", "2023-07-16T18:13:38Z" },
    { "2023-07-16 18:13", "2023-07-16T18:13:00" },
    { "2023-12-31T23:30:00.123456-01:00", "2024-01-01T00:30:00Z" },
    { "2024-02-29T12:00:00+0530", "2024-02-29T06:30:00Z" },
    { "2023-13-01", "" }, { "2023-07-16T25:00:00Z", "" }, { "16.07.2023", "" },
    { "2023-07-16T18:13:38Zulu", "" }, { "", "" },
};

static void times(void **state) {
    model m;
    (void)state;
    make(&m, "k", "v", NULL);
    for (size_t i = 0; i < sizeof dates / sizeof *dates; i++)
        SAME(sfti_iso_date(&m.info, s(dates[i].text)), dates[i].date);
    SAME(sfti_iso_of_epoch(&m.info, 951782400), "2000-02-29T00:00:00Z");
    SAME(sfti_iso_of_epoch(&m.info, 4102444799.9), "2099-12-31T23:59:59Z");
    SAME(sfti_iso_of_epoch(&m.info, 1e30), "");
    SAME(sfti_resolution(&m.info, s("(512, 768)")), "512x768");
    SAME(sfti_resolution(&m.info, s("1024")), "1024x1024");
    SAME(sfti_resolution(&m.info, s("[512,768,9]")), "");
    SAME(sfti_resolution(&m.info, s("0x5")), "");
    SAME(sfti_resolution(&m.info, s("99999999999999999999x5")), "");
    done(&m);
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(example_a), cmocka_unit_test(example_b), cmocka_unit_test(example_c),
        cmocka_unit_test(example_d), cmocka_unit_test(base_versions),
        cmocka_unit_test(kohya_details), cmocka_unit_test(musubi), cmocka_unit_test(subsets),
        cmocka_unit_test(hashes_of_tools), cmocka_unit_test(spec_architectures),
        cmocka_unit_test(spec_keys), cmocka_unit_test(spec_without_prefix),
        cmocka_unit_test(additional_networks), cmocka_unit_test(peft),
        cmocka_unit_test(onetrainer_config), cmocka_unit_test(described_by_config),
        cmocka_unit_test(merges), cmocka_unit_test(comfyui), cmocka_unit_test(links_of_texts),
        cmocka_unit_test(air_of_another_kind), cmocka_unit_test(generic_keys),
        cmocka_unit_test(trigger_sentences), cmocka_unit_test(private_places),
        cmocka_unit_test(learned_words),
        cmocka_unit_test(maps), cmocka_unit_test(times), cmocka_unit_test(many_and_long),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
