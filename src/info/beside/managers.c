/* Sidecars of the programs people keep their models with. */
#include "info/beside/beside.h"

#include <string.h>

#define MANAGER_COUNT(rows) (sizeof(rows) / sizeof *(rows))
#define SIDE_PROMPTS 10
#define SIDE_WORDS 64

/* ── Gathering ── */

typedef struct side_state {
    sfti_sidecar *sidecar;
    uint64_t model_id, version_id;
    sft_span id_source, origin; /* origin: "Civitai", … or empty */
    sfti_prompt *prompt;
    int64_t prompt_index;
    size_t prompts;
    sft_span word, word_source; /* rgthree: of the element at hand */
    int64_t word_index;
    int word_trust;
    bool raw;                   /* rgthree: CivitAI's own answer is in it */
} side_state;

static void side_take_id(sfti_walk *walk, const sfti_walk_row *row) {
    side_state *side = walk->ctx;
    uint64_t id = sfti_walk_uint(walk);
    if (id == 0) return;
    if (row->field == 0) side->model_id = id;
    else side->version_id = id;
    if (side->id_source.len == 0 || row->field == 1) side->id_source = sfti_walk_source(walk);
}

static void side_ids(sft_info *info, const side_state *side) {
    bool foreign = side->origin.len > 0 && !sfti_same_letters(side->origin, "Civitai");
    if (foreign || (side->model_id == 0 && side->version_id == 0)) return;
    sfti_civitai *claim = sfti_info_push(info, &info->civitai, sizeof *claim);
    if (!claim) return;
    claim->model_id = side->model_id;
    claim->version_id = side->version_id;
    claim->source = side->id_source;
    claim->trust = 90;
}

static void side_take_base(sfti_walk *walk, const sfti_walk_row *row) {
    (void)row;
    if (sfti_walk_is_text(walk)) sfti_side_base(walk->info, walk->text, sfti_walk_source(walk));
}

static void side_take_kind(sfti_walk *walk, const sfti_walk_row *row) {
    (void)row;
    if (sfti_walk_is_text(walk)) sfti_side_kind(walk->info, walk->text, sfti_walk_source(walk));
}

static void side_take_hash(sfti_walk *walk, const sfti_walk_row *row) {
    side_state *side = walk->ctx;
    if (!sfti_walk_is_text(walk)) return;
    sft_span source = sfti_walk_source(walk);
    sfti_info_claim(walk->info, row->word, walk->text, source, NULL);
    sfti_side_hash(walk->info, side->sidecar, row->word, walk->text, source);
}

static void side_take_size(sfti_walk *walk, const sfti_walk_row *row) {
    side_state *side = walk->ctx;
    (void)row;
    sfti_side_size(walk->info, side->sidecar, sfti_walk_uint(walk));
}

static void side_take_bool(sfti_walk *walk, const sfti_walk_row *row) {
    bool told = walk->json.type == SFTI_JSON_TRUE || walk->json.type == SFTI_JSON_FALSE;
    if (told) sfti_take_fact(walk, row);
}

/* A number that is a weight; 0 is none. */
static void side_take_weight(sfti_walk *walk, const sfti_walk_row *row) {
    double weight;
    sfti_value value = sfti_number_value(sfti_trim(walk->text));
    bool told = walk->json.type == SFTI_JSON_UINT || walk->json.type == SFTI_JSON_NUMBER
             || walk->json.type == SFTI_JSON_STRING;
    if (!told || !sfti_is_number(value.text)) return;
    if (!sfti_parse_double(value.text, &weight) || weight == 0) return;
    sfti_info_add(walk->info, (sft_fact)row->field, value, sfti_walk_source(walk), row->trust);
}

/* Text people wrote: plain, or HTML that a tool copied. */
static void side_take_prose(sfti_walk *walk, const sfti_walk_row *row) {
    if (!sfti_walk_is_text(walk)) return;
    sft_span source = sfti_walk_source(walk);
    sfti_info_scan_text(walk->info, walk->text, source, false);
    bool html = sfti_contains(walk->text, "</") || sfti_contains(walk->text, "<br");
    sft_span text = html ? sfti_plain_text(walk->info, walk->text) : walk->text;
    sfti_info_add_text(walk->info, (sft_fact)row->field, text, source, row->trust);
}

static void side_take_notes(sfti_walk *walk, const sfti_walk_row *row) {
    (void)row;
    if (!sfti_walk_is_text(walk)) return;
    sft_span source = sfti_walk_source(walk);
    sfti_info_note(walk->info, walk->text, source);
    sfti_info_scan_text(walk->info, walk->text, source, false);
}

/* Ids of the first link that has any. */
static void side_link_ids(side_state *side, sft_span link, sft_span source) {
    uint64_t model_id, version_id;
    if (side->model_id > 0 || !sfti_civitai_address(link, &model_id, &version_id)) return;
    side->model_id = model_id;
    side->version_id = version_id;
    side->id_source = source;
}

static void side_take_link(sfti_walk *walk, const sfti_walk_row *row) {
    (void)row;
    if (!sfti_walk_is_text(walk)) return;
    sft_span source = sfti_walk_source(walk);
    side_link_ids(walk->ctx, walk->text, source);
    sfti_info_scan_text(walk->info, walk->text, source, true);
}

/* Elements joined with "||", each a prompt of its own. */
static void side_take_activation(sfti_walk *walk, const sfti_walk_row *row) {
    sft_span rest = walk->text;
    if (!sfti_walk_is_text(walk)) return;
    sft_span source = sfti_walk_source(walk);
    for (int group = 0; group < SIDE_WORDS && rest.data; group++) {
        sft_span bar = sfti_find_letters(rest, "||");
        sft_span piece = { rest.data, rest.len - bar.len };
        sfti_info_trigger(walk->info, piece, source, row->trust, group);
        rest = bar.data ? (sft_span){ bar.data + 2, bar.len - 2 } : bar;
    }
}

/* ── A1111 and Forge ── */

static void side_take_sd_version(sfti_walk *walk, const sfti_walk_row *row) {
    static const struct { const char *text, *architecture; } versions[] = {
        { "SD1", "sd-1" }, { "SD2", "sd-2" }, { "SDXL", "sdxl" }, { "SD3", "sd-3" },
    };
    sft_span text = sfti_trim(walk->text);
    if (!sfti_walk_is_text(walk)) return;
    if (sfti_starts_with(text, "SdVersion.")) text = (sft_span){ text.data + 10, text.len - 10 };
    for (size_t i = 0; i < MANAGER_COUNT(versions); i++)
        if (sfti_same_letters(text, versions[i].text))
            sfti_info_add_text(walk->info, SFT_FACT_ARCHITECTURE,
                               sft_span_cstr(versions[i].architecture), sfti_walk_source(walk),
                               row->trust);
}

void sfti_read_a1111(sft_info *info, sfti_sidecar *sidecar, sft_span text, sft_span source) {
    static const sfti_walk_row rows[] = {
        { "/description", side_take_prose, SFT_FACT_DESCRIPTION, 100, NULL },
        { "/sd version", side_take_sd_version, 0, 70, NULL },
        { "/sd_version_str", side_take_sd_version, 0, 70, NULL },
        { "/activation text", side_take_activation, 0, 100, NULL },
        { "/preferred weight", side_take_weight, SFT_FACT_PREFERRED_WEIGHT, 100, NULL },
        { "/negative text", sfti_take_fact, SFT_FACT_NEGATIVE_PROMPT, 100, NULL },
        { "/notes", side_take_notes, 0, 0, NULL },
        { "/modelId", side_take_id, 0, 90, NULL },
        { "/modelVersionId", side_take_id, 1, 90, NULL },
        { "/sha256", side_take_hash, 0, 0, "sha256" },
    };
    side_state side = { .sidecar = sidecar };
    if (sfti_info_walk(info, text, source, rows, MANAGER_COUNT(rows), &side)) side_ids(info, &side);
}

/* ── lora-manager ── */

/* The name a tool gives before it knows better is the file's. */
static void side_take_name(sfti_walk *walk, const sfti_walk_row *row) {
    if (sfti_walk_is_text(walk) && !sft_span_equal(sfti_trim(walk->text), walk->info->stem))
        sfti_take_fact(walk, row);
}

/* usage_tips: JSON in a string. */
static void side_take_tips(sfti_walk *walk, const sfti_walk_row *row) {
    static const sfti_walk_row rows[] = {
        { "/strength", side_take_weight, SFT_FACT_PREFERRED_WEIGHT, 95, NULL },
        { "/clip_skip", side_take_weight, SFT_FACT_CLIP_SKIP, 95, NULL },
    };
    (void)row;
    if (!sfti_walk_is_text(walk)) return;
    sft_span text = sfti_info_copy(walk->info, walk->text);
    (void)sfti_info_walk(walk->info, text, sfti_walk_source(walk), rows, MANAGER_COUNT(rows),
                         walk->ctx);
}

void sfti_read_lora_manager(sft_info *info, sfti_sidecar *sidecar, sft_span text,
                              sft_span source) {
    static const sfti_walk_row rows[] = {
        { "/model_name", side_take_name, SFT_FACT_NAME, 95, NULL },
        { "/base_model", side_take_base, 0, 70, NULL },
        { "/sub_type", side_take_kind, 0, 70, NULL },
        { "/sha256", side_take_hash, 0, 0, "sha256" },
        { "/autov3", side_take_hash, 0, 0, "autov3" },
        { "/size", side_take_size, 0, 0, NULL },
        { "/notes", side_take_notes, 0, 0, NULL },
        { "/tags/*", sfti_take_side_item, SFT_FACT_TAGS, 95, NULL },
        { "/modelDescription", sfti_take_html, SFT_FACT_DESCRIPTION, 90, NULL },
        { "/trainedWords/*", sfti_take_side_word, 0, 100, NULL },
        { "/usage_tips", side_take_tips, 0, 95, NULL },
    };
    side_state side = { .sidecar = sidecar };
    if (!sfti_info_walk(info, text, source, rows, MANAGER_COUNT(rows), &side))
        sfti_side_not_json(info, sidecar);
    else sfti_read_civitai_version(info, sidecar, text, source, "/civitai");
}

/* ── Stability Matrix ── */

static void side_take_origin(sfti_walk *walk, const sfti_walk_row *row) {
    side_state *side = walk->ctx;
    (void)row;
    if (sfti_walk_is_text(walk)) side->origin = sfti_trim(walk->text);
}

void sfti_read_stability_matrix(sft_info *info, sfti_sidecar *sidecar, sft_span text,
                                  sft_span source) {
    static const sfti_walk_row rows[] = {
        { "/ModelId", side_take_id, 0, 90, NULL },
        { "/VersionId", side_take_id, 1, 90, NULL },
        { "/Source", side_take_origin, 0, 0, NULL },
        { "/SourceUrl", side_take_link, 0, 0, NULL },
        { "/UserTitle", sfti_take_fact, SFT_FACT_NAME, 100, NULL },
        { "/ModelName", sfti_take_fact, SFT_FACT_NAME, 95, NULL },
        { "/ModelDescription", sfti_take_html, SFT_FACT_DESCRIPTION, 90, NULL },
        { "/Nsfw", side_take_bool, SFT_FACT_NSFW, 95, NULL },
        { "/Tags/*", sfti_take_side_item, SFT_FACT_TAGS, 95, NULL },
        { "/ModelType", side_take_kind, 0, 70, NULL },
        { "/VersionName", sfti_take_fact, SFT_FACT_VERSION_NAME, 95, NULL },
        { "/VersionDescription", sfti_take_html, SFT_FACT_VERSION_DESCRIPTION, 90, NULL },
        { "/AuthorUsername", sfti_take_fact, SFT_FACT_AUTHOR, 95, NULL },
        { "/BaseModel", side_take_base, 0, 70, NULL },
        { "/Hashes/SHA256", side_take_hash, 0, 0, "sha256" },
        { "/Hashes/AutoV2", side_take_hash, 0, 0, "autov2" },
        { "/Hashes/AutoV3", side_take_hash, 0, 0, "autov3" },
        { "/Hashes/CRC32", side_take_hash, 0, 0, "crc32_civitai" },
        { "/Hashes/BLAKE3", side_take_hash, 0, 0, "blake3" },
        { "/TrainedWords/*", sfti_take_side_word, 0, 95, NULL },
    };
    side_state side = { .sidecar = sidecar };
    if (!sfti_info_walk(info, text, source, rows, MANAGER_COUNT(rows), &side))
        sfti_side_not_json(info, sidecar);
    else side_ids(info, &side);
}

/* ── SwarmUI ── */

static void side_take_spec(sfti_walk *walk, const sfti_walk_row *row) {
    const char *kind, *variant;
    if (!sfti_walk_is_text(walk)) return;
    const char *architecture = sfti_map_modelspec(walk->text, &kind, &variant);
    const char *const texts[] = { architecture, kind, variant };
    static const sft_fact facts[] = { SFT_FACT_ARCHITECTURE, SFT_FACT_KIND, SFT_FACT_VARIANT };
    for (size_t i = 0; i < MANAGER_COUNT(facts); i++)
        if (texts[i])
            sfti_info_add_text(walk->info, facts[i], sft_span_cstr(texts[i]),
                               sfti_walk_source(walk), row->trust);
}

void sfti_take_prediction(sfti_walk *walk, const sfti_walk_row *row) {
    const char *type = sfti_walk_is_text(walk) ? sfti_map_prediction(walk->text) : NULL;
    if (type)
        sfti_info_add_text(walk->info, SFT_FACT_PREDICTION_TYPE, sft_span_cstr(type),
                           sfti_walk_source(walk), row->trust);
}

static void side_take_commas(sfti_walk *walk, const sfti_walk_row *row) {
    if (sfti_walk_is_text(walk))
        sfti_info_add_commas(walk->info, (sft_fact)row->field, walk->text,
                             sfti_walk_source(walk), row->trust);
}

static void side_take_negative(sfti_walk *walk, const sfti_walk_row *row) {
    bool text = walk->json.type == SFTI_JSON_STRING;
    (void)row;
    if (walk->json.type == SFTI_JSON_TRUE || (text && sfti_same_letters(walk->text, "true")))
        walk->info->negative = 1;
    if (walk->json.type == SFTI_JSON_FALSE || (text && sfti_same_letters(walk->text, "false")))
        walk->info->negative = 0;
}

static void side_take_thumbnail(sfti_walk *walk, const sfti_walk_row *row) {
    sft_info *info = walk->info;
    uint32_t width = 0, height = 0;
    sft_span bytes;
    (void)row;
    if (!sfti_walk_is_text(walk)) return;
    if (!sfti_base64(info, walk->text, &bytes, (uint64_t)16 << 20)) return;
    const char *type = sfti_image_type(bytes, &width, &height);
    sfti_preview *preview = type ? sfti_info_push(info, &info->previews, sizeof *preview) : NULL;
    if (!preview) return;
    preview->source = sfti_walk_source(walk);
    preview->path = (sft_span){ "", 0 };
    preview->media_type = type;
    preview->bytes = bytes.len;
    preview->width = width;
    preview->height = height;
    preview->data = bytes;
}

/* With "modelspec." before the key and without. */
#define SWARM_ROW(key, take, field, trust, word) \
    { "/modelspec." key, take, field, trust, word }, { "/" key, take, field, trust, word }

void sfti_read_swarm(sft_info *info, sfti_sidecar *sidecar, sft_span text, sft_span source) {
    static const sfti_walk_row rows[] = {
        SWARM_ROW("title", sfti_take_fact, SFT_FACT_NAME, 85, NULL),
        SWARM_ROW("description", side_take_prose, SFT_FACT_DESCRIPTION, 85, NULL),
        SWARM_ROW("author", sfti_take_fact, SFT_FACT_AUTHOR, 85, NULL),
        SWARM_ROW("date", sfti_take_fact, SFT_FACT_DATE, 85, NULL),
        SWARM_ROW("license", sfti_take_fact, SFT_FACT_LICENSE, 95, NULL),
        SWARM_ROW("usage_hint", sfti_take_fact, SFT_FACT_USAGE_HINT, 95, NULL),
        SWARM_ROW("trigger_phrase", side_take_activation, 0, 100, NULL),
        SWARM_ROW("tags", side_take_commas, SFT_FACT_TAGS, 95, NULL),
        SWARM_ROW("tags/*", sfti_take_side_item, SFT_FACT_TAGS, 95, NULL),
        SWARM_ROW("architecture", side_take_spec, 0, 80, NULL),
        SWARM_ROW("resolution", sfti_take_fact, SFT_FACT_RESOLUTION, 95, NULL),
        SWARM_ROW("prediction_type", sfti_take_prediction, 0, 85, NULL),
        SWARM_ROW("lora_default_weight", side_take_weight, SFT_FACT_PREFERRED_WEIGHT, 80, NULL),
        SWARM_ROW("is_negative_embedding", side_take_negative, 0, 0, NULL),
        SWARM_ROW("hash_sha256", side_take_hash, 0, 0, "sshs_model"),
        SWARM_ROW("thumbnail", side_take_thumbnail, 0, 0, NULL),
        SWARM_ROW("preview_image", side_take_thumbnail, 0, 0, NULL),
    };
    side_state side = { .sidecar = sidecar };
    if (!sfti_info_walk(info, text, source, rows, MANAGER_COUNT(rows), &side))
        sfti_side_not_json(info, sidecar);
}

/* ── rgthree ── */

/* Words count by who told them; those of data sets do not, those of CivitAI only where its
 * answer does not tell them itself. */
static void side_end_word(sft_info *info, side_state *side) {
    int least = side->raw ? 100 : 95;
    int group = side->word_index > INT32_MAX ? -1 : (int)side->word_index;
    if (side->word_trust >= least)
        sfti_info_trigger(info, side->word, side->word_source, side->word_trust, group);
    side->word = (sft_span){ "", 0 };
    side->word_trust = 0;
}

static void side_take_element(sfti_walk *walk, const sfti_walk_row *row) {
    side_state *side = walk->ctx;
    (void)row;
    side_end_word(walk->info, side);
    side->word_index = walk->index;
}

static void side_take_word(sfti_walk *walk, const sfti_walk_row *row) {
    side_state *side = walk->ctx;
    (void)row;
    if (!sfti_walk_is_text(walk)) return;
    side->word = walk->text;
    side->word_source = sfti_walk_source(walk);
}

static void side_take_flag(sfti_walk *walk, const sfti_walk_row *row) {
    side_state *side = walk->ctx;
    if (walk->json.type == SFTI_JSON_TRUE && side->word_trust < row->trust)
        side->word_trust = row->trust;
}

static void side_take_raw(sfti_walk *walk, const sfti_walk_row *row) {
    side_state *side = walk->ctx;
    (void)row;
    if (sfti_walk_uint(walk) > 0) side->raw = true;
}

/* row->field: where in an sfti_prompt. */
static void side_take_prompt(sfti_walk *walk, const sfti_walk_row *row) {
    side_state *side = walk->ctx;
    bool number = walk->json.type == SFTI_JSON_UINT || walk->json.type == SFTI_JSON_NUMBER;
    if (!number && !sfti_walk_is_text(walk)) return;
    if (!side->prompt || side->prompt_index != walk->index) {
        if (side->prompts == SIDE_PROMPTS) return;
        side->prompt = sfti_info_push(walk->info, &walk->info->prompts, sizeof *side->prompt);
        if (!side->prompt) return;
        const char *slash = strrchr(walk->pointer, '/');
        side->prompt->source =
            sfti_info_text(walk->info, "%.*s:%.*s", (int)walk->source.len, walk->source.data,
                           slash ? (int)(slash - walk->pointer) : 0, walk->pointer);
        side->prompt_index = walk->index;
        side->prompts++;
    }
    *(sft_span *)(void *)((char *)side->prompt + row->field) = walk->text;
}

#define SIDE_PROMPT(pattern, member) \
    { pattern, side_take_prompt, (int)offsetof(sfti_prompt, member), 0, NULL }

void sfti_read_rgthree(sft_info *info, sfti_sidecar *sidecar, sft_span text, sft_span source) {
    static const sfti_walk_row seen[] = { { "/raw/civitai/id", side_take_raw, 0, 0, NULL } };
    static const sfti_walk_row rows[] = {
        { "/type", side_take_kind, 0, 70, NULL },
        { "/baseModel", side_take_base, 0, 70, NULL },
        { "/sha256", side_take_hash, 0, 0, "sha256" },
        { "/userNote", side_take_notes, 0, 0, NULL },
        { "/links/*", side_take_link, 0, 0, NULL },
        { "/trainedWords/*", side_take_element, 0, 0, NULL },
        { "/trainedWords/*/word", side_take_word, 0, 0, NULL },
        { "/trainedWords/*/civitai", side_take_flag, 0, 95, NULL },
        { "/trainedWords/*/user", side_take_flag, 0, 100, NULL },
        SIDE_PROMPT("/images/*/positive", positive),
        SIDE_PROMPT("/images/*/negative", negative),
        SIDE_PROMPT("/images/*/seed", seed),
        SIDE_PROMPT("/images/*/steps", steps),
        SIDE_PROMPT("/images/*/sampler", sampler),
        SIDE_PROMPT("/images/*/cfg", cfg),
        { "/name", side_take_name, SFT_FACT_NAME, 85, NULL },
    };
    side_state side = { .sidecar = sidecar };
    if (!sfti_info_walk(info, text, source, seen, MANAGER_COUNT(seen), &side)) {
        sfti_side_not_json(info, sidecar);
        return;
    }
    /* CivitAI's answer tells the model's own name: "Model - Version" is not needed then. */
    size_t count = MANAGER_COUNT(rows) - (side.raw ? 1 : 0);
    if (!sfti_info_walk(info, text, source, rows, count, &side)) return;
    side_end_word(info, &side);
    if (!side.raw) side_ids(info, &side);
    else sfti_read_civitai_version(info, sidecar, text, source, "/raw/civitai");
}

void sfti_read_recipe(sft_info *info, sfti_sidecar *sidecar, sft_span text, sft_span source) {
    static const sfti_walk_row rows[] = {
        SIDE_PROMPT("/gen_params/prompt", positive),
        SIDE_PROMPT("/gen_params/negative_prompt", negative),
        SIDE_PROMPT("/gen_params/seed", seed),
        SIDE_PROMPT("/gen_params/steps", steps),
        SIDE_PROMPT("/gen_params/sampler", sampler),
        SIDE_PROMPT("/gen_params/cfg_scale", cfg),
    };
    side_state side = { .sidecar = sidecar };
    if (!sfti_info_walk(info, text, source, rows, MANAGER_COUNT(rows), &side))
        sfti_side_not_json(info, sidecar);
}
