#include "info/beside/beside.h"

#include <string.h>

#define SIDE_COUNT(rows) (sizeof(rows) / sizeof *(rows))
#define SIDE_ELEMENTS 500

void sfti_side_fail(sft_info *info, sfti_sidecar *sidecar, const char *why) {
    if (!info->code && sidecar->error.len == 0) sidecar->error = sft_span_cstr(why);
}

void sfti_side_not_json(sft_info *info, sfti_sidecar *sidecar) {
    sfti_side_fail(info, sidecar, "expected JSON, found text that is none");
}

uint64_t sfti_walk_uint(const sfti_walk *walk) {
    uint64_t value = 0;
    bool told = walk->json.type == SFTI_JSON_UINT || walk->json.type == SFTI_JSON_STRING;
    return told && sfti_parse_uint(walk->text, &value) ? value : 0;
}

bool sfti_walk_is_text(const sfti_walk *walk) {
    return walk->json.type == SFTI_JSON_STRING && !sfti_is_placeholder(walk->text);
}

void sfti_take_side_word(sfti_walk *walk, const sfti_walk_row *row) {
    if (walk->index < SIDE_ELEMENTS && sfti_walk_is_text(walk)) sfti_take_trigger(walk, row);
}

void sfti_take_side_item(sfti_walk *walk, const sfti_walk_row *row) {
    if (walk->index < SIDE_ELEMENTS && sfti_walk_is_text(walk)) sfti_take_item(walk, row);
}

/* ── Labels of base models and kinds ── */

/* Labels that say more than an architecture. */
static const struct side_label { const char *label, *variant; } side_labels[] = {
    { "Flux.1 Kontext", "kontext" },
    { "SD 2.1 Unclip", "unclip" },
    { "Wan Video 1.3B t2v", "1.3b+t2v" },
    { "Wan Video 14B t2v", "14b+t2v" },
    { "Wan Video 14B i2v 480p", "14b+i2v" },
    { "Wan Video 14B i2v 720p", "14b+i2v" },
    { "Wan Video 2.2 TI2V-5B", "5b+ti2v" },
    { "Wan Video 2.2 I2V-A14B", "14b+i2v" },
    { "Wan Video 2.2 T2V-A14B", "14b+t2v" },
};

void sfti_side_base(sft_info *info, sft_span label, sft_span source) {
    static const char *const nothing[] = { "unknown", "other", "odor", "upscaler" };
    label = sfti_trim(label);
    for (size_t i = 0; i < SIDE_COUNT(nothing); i++)
        if (sfti_same_letters(label, nothing[i])) return;
    const char *architecture = sfti_map_civitai_base(label);
    sfti_info_add_text(info, SFT_FACT_BASE_MODEL, label, source, 70);
    if (architecture)
        sfti_info_add_text(info, SFT_FACT_ARCHITECTURE, sft_span_cstr(architecture), source, 70);
    for (size_t i = 0; i < SIDE_COUNT(side_labels); i++)
        if (sfti_same_letters(label, side_labels[i].label))
            sfti_info_add_text(info, SFT_FACT_VARIANT, sft_span_cstr(side_labels[i].variant),
                               source, 70);
}

/* own: kinds of ours that the declared word covers too. */
static const struct side_type { const char *type, *kind, *covers; } side_types[] = {
    { "LORA", "adapter", "control_lora" }, { "LoCon", "adapter", NULL },
    { "LyCORIS", "adapter", NULL }, { "DoRA", "adapter", NULL },
    { "Checkpoint", "checkpoint", "diffusion_model" },
    { "diffusion_model", "diffusion_model", "checkpoint" },
    { "TextualInversion", "embedding", NULL }, { "embedding", "embedding", NULL },
    { "Controlnet", "controlnet", "control_lora" }, { "VAE", "vae", NULL },
    { "Upscaler", "upscaler", NULL }, { "MotionModule", "motion_module", NULL },
    { "TextEncoder", "text_encoder", "language_model" },
    { "CLIP", "text_encoder", "image_encoder" }, { "CLIPVision", "image_encoder", NULL },
    { "UNet", "diffusion_model", "checkpoint" }, { "Detection", "detector", NULL },
    { "LLM", "language_model", NULL },
};

void sfti_side_kind(sft_info *info, sft_span type, sft_span source) {
    const sfti_fact *best = sfti_info_best(info, SFT_FACT_KIND);
    type = sfti_trim(type);
    for (size_t i = 0; i < SIDE_COUNT(side_types); i++) {
        const char *kind = side_types[i].kind, *covers = side_types[i].covers;
        if (!sfti_same_letters(type, side_types[i].type)) continue;
        if (covers && best && sft_span_equal(best->value.text, sft_span_cstr(covers)))
            kind = covers;
        sfti_info_add_text(info, SFT_FACT_KIND, sft_span_cstr(kind), source, 70);
    }
}

/* ── What a JSON file is, by its keys ── */

enum {
    SEEN_A1111 = 1,      /* a key only A1111, Forge and their helpers write */
    SEEN_ID = 2,         /* a number */
    SEEN_MODEL_ID = 4,   /* a number */
    SEEN_VERSIONS = 8,
    SEEN_SKELETON = 16,  /* it says so, or its id is an empty text */
    SEEN_CONTENT = 32,   /* something a version tells beside ids */
    SEEN_SWARM = 64,
    SEEN_MATRIX = 128,
    SEEN_DESCRIPTION = 256,
    SEEN_CONFIG = 512    /* a model's configuration */
};

static void side_see(sfti_walk *walk, const sfti_walk_row *row) {
    int *seen = walk->ctx;
    bool number = sfti_walk_uint(walk) > 0;
    switch (row->field) {
    case SEEN_ID:
        if (walk->json.type == SFTI_JSON_STRING && sfti_trim(walk->text).len == 0)
            *seen |= SEEN_SKELETON;
        if (number) *seen |= SEEN_ID;
        break;
    case SEEN_MODEL_ID: *seen |= number ? SEEN_MODEL_ID : 0; break;
    case SEEN_SKELETON: *seen |= walk->json.type == SFTI_JSON_TRUE ? SEEN_SKELETON : 0; break;
    case SEEN_CONTENT: *seen |= sfti_walk_is_text(walk) ? SEEN_CONTENT : 0; break;
    default: *seen |= row->field;
    }
}

static bool side_classify(sft_info *info, sft_span text, sft_span source, int *seen) {
    static const sfti_walk_row rows[] = {
        { "/activation text", side_see, SEEN_A1111, 0, NULL },
        { "/preferred weight", side_see, SEEN_A1111, 0, NULL },
        { "/negative text", side_see, SEEN_A1111, 0, NULL },
        { "/sd version", side_see, SEEN_A1111, 0, NULL },
        { "/sd_version_str", side_see, SEEN_A1111, 0, NULL },
        { "/notes", side_see, SEEN_A1111, 0, NULL },
        { "/modelVersionId", side_see, SEEN_A1111, 0, NULL },
        { "/vae_te", side_see, SEEN_A1111, 0, NULL },
        { "/description", side_see, SEEN_DESCRIPTION, 0, NULL },
        { "/id", side_see, SEEN_ID, 0, NULL },
        { "/modelId", side_see, SEEN_MODEL_ID, 0, NULL },
        { "/modelVersions", side_see, SEEN_VERSIONS, 0, NULL },
        { "/skeleton_file", side_see, SEEN_SKELETON, 0, NULL },
        { "/trainedWords/*", side_see, SEEN_CONTENT, 0, NULL },
        { "/baseModel", side_see, SEEN_CONTENT, 0, NULL },
        { "/model/name", side_see, SEEN_CONTENT, 0, NULL },
        { "/modelspec.title", side_see, SEEN_SWARM, 0, NULL },
        { "/modelspec.architecture", side_see, SEEN_SWARM, 0, NULL },
        { "/modelspec.trigger_phrase", side_see, SEEN_SWARM, 0, NULL },
        { "/ModelName", side_see, SEEN_MATRIX, 0, NULL },
        { "/_class_name", side_see, SEEN_CONFIG, 0, NULL },
        { "/architectures", side_see, SEEN_CONFIG, 0, NULL },
        { "/model_type", side_see, SEEN_CONFIG, 0, NULL },
        { "/peft_type", side_see, SEEN_CONFIG, 0, NULL },
    };
    *seen = 0;
    return sfti_info_walk(info, text, source, rows, SIDE_COUNT(rows), seen);
}

static void read_civitai(sft_info *info, sfti_sidecar *sidecar, sft_span text, sft_span source) {
    int seen;
    if (!side_classify(info, text, source, &seen)) sfti_side_not_json(info, sidecar);
    else if (seen & SEEN_SKELETON || !(seen & (SEEN_ID | SEEN_MODEL_ID | SEEN_CONTENT
                                               | SEEN_VERSIONS)))
        sfti_side_fail(info, sidecar, "a skeleton: its writer knew no such model");
    else if (seen & SEEN_VERSIONS) sfti_read_civitai_model(info, sidecar, text, source);
    else sfti_read_civitai_version(info, sidecar, text, source, "");
}

static void read_plain_json(sft_info *info, sfti_sidecar *sidecar, sft_span text,
                            sft_span source) {
    int seen;
    if (!side_classify(info, text, source, &seen)) {
        sfti_side_not_json(info, sidecar);
    } else if (seen & SEEN_VERSIONS || (seen & SEEN_ID && seen & SEEN_MODEL_ID)) {
        sidecar->kind = "civitai.json";
        read_civitai(info, sidecar, text, source);
    } else if (seen & SEEN_SWARM) {
        sidecar->kind = "swarm.json";
        sfti_read_swarm(info, sidecar, text, source);
    } else if (seen & SEEN_MATRIX) {
        sidecar->kind = "cm-info.json";
        sfti_read_stability_matrix(info, sidecar, text, source);
    } else if (seen & SEEN_A1111 || (seen & SEEN_DESCRIPTION && !(seen & SEEN_CONFIG))) {
        sidecar->kind = "a1111.json";
        sfti_read_a1111(info, sidecar, text, source);
    } else {
        sfti_side_fail(info, sidecar, "expected keys of a sidecar, found none that is known");
    }
}

/* ── Plain text ── */

static void read_text(sft_info *info, sfti_sidecar *sidecar, sft_span text, sft_span source) {
    (void)sidecar;
    text = sfti_trim(text);
    sfti_info_note(info, text, source);
    sfti_info_scan_text(info, text, source, false);
    bool line = !sfti_find_byte(text, '\n').data && !sfti_find_byte(text, '\r').data;
    if (line && text.len <= 300 && !sfti_contains(text, "://"))
        sfti_info_trigger(info, text, source, 70, 0);
}

static void read_description(sft_info *info, sfti_sidecar *sidecar, sft_span text,
                             sft_span source) {
    (void)sidecar;
    sfti_info_add_text(info, SFT_FACT_DESCRIPTION, sfti_plain_text(info, text), source, 90);
    sfti_info_scan_text(info, text, source, false);
}

static void read_sha256(sft_info *info, sfti_sidecar *sidecar, sft_span text, sft_span source) {
    sft_span hex;
    text = sfti_trim(text);
    size_t len = 0;
    while (len < text.len && text.data[len] != ' ' && text.data[len] != '\n'
           && text.data[len] != '\r' && text.data[len] != '\t')
        len++;
    text.len = len;
    if (!sfti_info_hash(info, text, 64, &hex)) {
        sfti_side_fail(info, sidecar, "expected 64 hexadecimal digits");
        return;
    }
    sfti_info_claim(info, "sha256", hex, source, NULL);
    sfti_side_hash(info, sidecar, "sha256", hex, source);
}

static void read_yaml(sft_info *info, sfti_sidecar *sidecar, sft_span text, sft_span source) {
    static const sfti_walk_row rows[] = {
        { "/model/params/parameterization", sfti_take_prediction, 0, 90, NULL },
    };
    (void)sidecar;
    sfti_info_yaml(info, text, source, rows, SIDE_COUNT(rows), NULL);
}

/* ── The table: what is read first tells the versions of what comes after ── */

const sfti_side_row sfti_sidecar_rows[] = {
    { NULL, ".civitai.info", "civitai.info", read_civitai },
    { NULL, ".metadata.json", "metadata.json", sfti_read_lora_manager },
    { NULL, ".cm-info.json", "cm-info.json", sfti_read_stability_matrix },
    { NULL, ".json", "json", read_plain_json },
    { NULL, ".api_info.json", "api_info.json", read_civitai },
    { NULL, ".swarm.json", "swarm.json", sfti_read_swarm },
    { NULL, ".safetensors.rgthree-info.json", "rgthree-info.json", sfti_read_rgthree },
    { NULL, ".sft.rgthree-info.json", "rgthree-info.json", sfti_read_rgthree },
    { NULL, ".recipe.json", "recipe.json", sfti_read_recipe },
    { NULL, ".txt", "txt", read_text },
    { NULL, ".description.txt", "description.txt", read_description },
    { NULL, ".sha256", "sha256", read_sha256 },
    { NULL, ".yaml", "yaml", read_yaml },
};
const size_t sfti_sidecar_row_count = SIDE_COUNT(sfti_sidecar_rows);
