/* Sidecars of the programs people keep their models with: a table a program. */
#include "label/sidecars/sidecars.h"

#include <string.h>

#define SIDECAR_WORDS 64

/* ── Takes ── */

/* Ids of the first link that has any. */
static void take_link(sfti_cursor *at, const sfti_row *row) {
    sfti_sidecar_walked *side = at->ctx;
    uint64_t model_id, version_id;
    (void)row;
    if (!sfti_at_text(at)) return;
    sft_span source = sfti_cursor_source(at);
    sfti_info_scan_text(at->info, at->text, source, true);
    if (side->model_id > 0 || !sfti_civitai_address(at->text, &model_id, &version_id)) return;
    side->model_id = model_id;
    side->version_id = version_id;
    side->id_source = source;
}

/* Elements joined with "||", each a prompt of its own. */
static void take_activation(sfti_cursor *at, const sfti_row *row) {
    sft_span rest = at->text;
    if (!sfti_at_text(at)) return;
    sft_span source = sfti_cursor_source(at);
    for (int group = 0; group < SIDECAR_WORDS && rest.data; group++) {
        sft_span bar = sfti_find_letters(rest, "||");
        sft_span piece = { rest.data, rest.len - bar.len };
        sfti_info_trigger(at->info, piece, source, row->trust, group);
        rest = bar.data ? sfti_from(bar, 2) : bar;
    }
}

/* The name a tool gives before it knows better is the file's. */
static void take_name(sfti_cursor *at, const sfti_row *row) {
    if (sfti_at_text(at) && !sft_span_equal(sfti_trim(at->text), at->info->stem))
        sfti_take_fact(at, row);
}

/* field: 0 the least weight, 1 the most. */
static void take_bound(sfti_cursor *at, const sfti_row *row) {
    double weight;
    if ((sfti_at_number(at) || sfti_at_text(at)) && sfti_parse_double(at->text, &weight))
        sfti_info_declare(at->info, &at->info->weight_bounds[row->field], at->text,
                          sfti_cursor_source(at), row->trust);
}

/* ── A1111 and Forge ── */

static void take_sd_version(sfti_cursor *at, const sfti_row *row) {
    sft_span text = sfti_trim(at->text);
    if (!sfti_at_text(at)) return;
    (void)sfti_skip(&text, "SdVersion.");
    sfti_put_here(at, SFT_FACT_ARCHITECTURE,
                  sfti_said_model(at->info->records, SFTI_SAYS_A1111, text, &at->info->said),
                  row->trust);
}

void sfti_read_a1111(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    static const sfti_row rows[] = {
        { "/description", sfti_take_prose, SFT_FACT_DESCRIPTION, 100, "plain" },
        { "/sd version", take_sd_version, 0, 70, NULL },
        { "/sd_version_str", take_sd_version, 0, 70, NULL },
        { "/activation text", take_activation, 0, 100, NULL },
        { "/preferred weight", sfti_take_weight, SFT_FACT_PREFERRED_WEIGHT, 100, NULL },
        { "/negative text", sfti_take_fact, SFT_FACT_NEGATIVE_PROMPT, 100, NULL },
        { "/notes", sfti_take_note, 0, 0, NULL },
        { "/notes", sfti_take_links, 0, 0, NULL },
        { "/modelId", sfti_sidecar_take_id, 0, 90, NULL },
        { "/modelVersionId", sfti_sidecar_take_id, 1, 90, NULL },
        { "/sha256", sfti_sidecar_take_hash, 0, 0, "sha256" },
    };
    sfti_sidecar_walked side = { .sidecar = sidecar };
    if (sfti_sidecar_walk(info, sidecar, text, SFTI_ROWS(rows), &side))
        sfti_sidecar_ids(info, &side);
}

/* ── lora-manager ── */

/* usage_tips: JSON in a string. */
static void take_tips(sfti_cursor *at, const sfti_row *row) {
    static const sfti_row rows[] = {
        { "/strength", sfti_take_weight, SFT_FACT_PREFERRED_WEIGHT, 95, NULL },
        { "/strength_min", take_bound, 0, 95, NULL },
        { "/strength_max", take_bound, 1, 95, NULL },
        { "/clip_skip", sfti_take_weight, SFT_FACT_CLIP_SKIP, 95, NULL },
    };
    (void)row;
    if (sfti_at_text(at))
        (void)sfti_info_walk(at->info, sfti_info_copy(at->info, at->text), sfti_cursor_source(at),
                             SFTI_ROWS(rows), at->ctx);
}

void sfti_read_lora_manager(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    static const sfti_row rows[] = {
        { "/model_name", take_name, SFT_FACT_NAME, 95, NULL },
        { "/base_model", sfti_sidecar_take_base, 0, 70, NULL },
        { "/sub_type", sfti_sidecar_take_kind, 0, 70, NULL },
        { "/sha256", sfti_sidecar_take_hash, 0, 0, "sha256" },
        { "/autov3", sfti_sidecar_take_hash, 0, 0, "autov3" },
        { "/size", sfti_sidecar_take_size, 0, 0, NULL },
        { "/notes", sfti_take_note, 0, 0, NULL },
        { "/notes", sfti_take_links, 0, 0, NULL },
        { "/tags/*", sfti_take_item, SFT_FACT_TAGS, 95, NULL },
        { "/modelDescription", sfti_take_html, SFT_FACT_DESCRIPTION, 90, NULL },
        { "/trainedWords/*", sfti_take_trigger, 0, 100, NULL },
        { "/usage_tips", take_tips, 0, 95, NULL },
        { "/preview_url", sfti_sidecar_take_preview, SFTI_IMAGE_TYPE, 0, NULL },
        { "/preview_nsfw_level", sfti_sidecar_take_preview, SFTI_IMAGE_LEVEL, 0, NULL },
    };
    sfti_sidecar_walked side = { .sidecar = sidecar };
    if (sfti_sidecar_walk(info, sidecar, text, SFTI_ROWS(rows), &side))
        sfti_read_civitai_version(info, sidecar, text, "/civitai");
}

/* ── Stability Matrix ── */

void sfti_read_stability_matrix(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    static const sfti_row rows[] = {
        { "/ModelId", sfti_sidecar_take_id, 0, 90, NULL },
        { "/VersionId", sfti_sidecar_take_id, 1, 90, NULL },
        { "/Source", sfti_take_slot, (int)offsetof(sfti_sidecar_walked, origin), 0, NULL },
        { "/SourceUrl", take_link, 0, 0, NULL },
        { "/UserTitle", sfti_take_fact, SFT_FACT_NAME, 100, NULL },
        { "/ModelName", sfti_take_fact, SFT_FACT_NAME, 95, NULL },
        { "/ModelDescription", sfti_take_html, SFT_FACT_DESCRIPTION, 90, NULL },
        { "/Nsfw", sfti_take_bool, SFT_FACT_NSFW, 95, NULL },
        { "/Tags/*", sfti_take_item, SFT_FACT_TAGS, 95, NULL },
        { "/ModelType", sfti_sidecar_take_kind, 0, 70, NULL },
        { "/VersionName", sfti_take_fact, SFT_FACT_VERSION_NAME, 95, NULL },
        { "/VersionDescription", sfti_take_html, SFT_FACT_VERSION_DESCRIPTION, 90, NULL },
        { "/AuthorUsername", sfti_take_fact, SFT_FACT_AUTHOR, 95, NULL },
        { "/BaseModel", sfti_sidecar_take_base, 0, 70, NULL },
        { "/Hashes/SHA256", sfti_sidecar_take_hash, 0, 0, "sha256" },
        { "/Hashes/AutoV2", sfti_sidecar_take_hash, 0, 0, "autov2" },
        { "/Hashes/AutoV3", sfti_sidecar_take_hash, 0, 0, "autov3" },
        { "/Hashes/CRC32", sfti_sidecar_take_hash, 0, 0, "crc32_civitai" },
        { "/Hashes/BLAKE3", sfti_sidecar_take_hash, 0, 0, "blake3" },
        { "/TrainedWords/*", sfti_take_trigger, 0, 95, NULL },
    };
    sfti_sidecar_walked side = { .sidecar = sidecar };
    if (sfti_sidecar_walk(info, sidecar, text, SFTI_ROWS(rows), &side))
        sfti_sidecar_ids(info, &side);
}

/* ── SwarmUI ── */

/* With "modelspec." before the key and without. */
#define SWARM_ROW(key, take, field, trust, word) \
    { "/modelspec." key, take, field, trust, word }, { "/" key, take, field, trust, word }

void sfti_read_swarm(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    static const sfti_row rows[] = {
        SWARM_ROW("title", sfti_take_fact, SFT_FACT_NAME, 85, NULL),
        SWARM_ROW("description", sfti_take_prose, SFT_FACT_DESCRIPTION, 85, "plain"),
        SWARM_ROW("author", sfti_take_fact, SFT_FACT_AUTHOR, 85, NULL),
        SWARM_ROW("date", sfti_take_fact, SFT_FACT_DATE, 85, NULL),
        SWARM_ROW("license", sfti_take_fact, SFT_FACT_LICENSE, 95, NULL),
        SWARM_ROW("usage_hint", sfti_take_fact, SFT_FACT_USAGE_HINT, 95, NULL),
        SWARM_ROW("trigger_phrase", take_activation, 0, 100, NULL),
        SWARM_ROW("tags", sfti_take_commas, SFT_FACT_TAGS, 95, NULL),
        SWARM_ROW("tags/*", sfti_take_item, SFT_FACT_TAGS, 95, NULL),
        SWARM_ROW("architecture", sfti_take_spec, 0, 80, NULL),
        SWARM_ROW("resolution", sfti_take_fact, SFT_FACT_RESOLUTION, 95, NULL),
        SWARM_ROW("prediction_type", sfti_take_prediction, 0, 85, NULL),
        SWARM_ROW("lora_default_weight", sfti_take_weight, SFT_FACT_PREFERRED_WEIGHT, 80, NULL),
        SWARM_ROW("is_negative_embedding", sfti_take_negative, 0, 0, NULL),
        SWARM_ROW("hash_sha256", sfti_sidecar_take_hash, 0, 0, "sshs_model"),
        SWARM_ROW("thumbnail", sfti_take_preview, 0, 0, NULL),
        SWARM_ROW("preview_image", sfti_take_preview, 0, 0, NULL),
    };
    sfti_sidecar_walked side = { .sidecar = sidecar };
    (void)sfti_sidecar_walk(info, sidecar, text, SFTI_ROWS(rows), &side);
}

/* ── rgthree ── */

typedef struct rgthree {
    sfti_sidecar_walked side;
    uint64_t raw;       /* not 0: CivitAI's own answer is in it */
    sft_span word, word_source; /* of the element at hand */
    int64_t word_index;
    int word_trust;
} rgthree;

/* Words count by who told them; those of data sets do not, those of CivitAI only where its
 * answer does not tell them itself. */
static void end_word(sft_info *info, rgthree *side) {
    if (side->word_trust >= (side->raw ? 100 : 95))
        sfti_info_trigger(info, side->word, side->word_source, side->word_trust,
                          side->word_index > INT32_MAX ? -1 : (int)side->word_index);
    side->word = (sft_span){ "", 0 };
    side->word_trust = 0;
}

static void rgthree_begin(sfti_cursor *at, const sfti_row *row) {
    rgthree *side = at->ctx;
    (void)row;
    end_word(at->info, side);
    side->word_index = at->index;
}

static void rgthree_word(sfti_cursor *at, const sfti_row *row) {
    rgthree *side = at->ctx;
    (void)row;
    if (!sfti_at_text(at)) return;
    side->word = at->text;
    side->word_source = sfti_cursor_source(at);
}

static void rgthree_flag(sfti_cursor *at, const sfti_row *row) {
    rgthree *side = at->ctx;
    if (sfti_at_bool(at) == 1 && side->word_trust < row->trust) side->word_trust = row->trust;
}

void sfti_read_rgthree(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    static const sfti_row seen[] = {
        { "/raw/civitai/id", sfti_take_slot_uint, (int)offsetof(rgthree, raw), 0, NULL },
    };
    static const sfti_row rows[] = {
        { "/type", sfti_sidecar_take_kind, 0, 70, NULL },
        { "/baseModel", sfti_sidecar_take_base, 0, 70, NULL },
        { "/sha256", sfti_sidecar_take_hash, 0, 0, "sha256" },
        { "/strengthMin", take_bound, 0, 95, NULL },
        { "/strengthMax", take_bound, 1, 95, NULL },
        { "/userNote", sfti_take_note, 0, 0, NULL },
        { "/userNote", sfti_take_links, 0, 0, NULL },
        { "/links/*", take_link, 0, 0, NULL },
        { "/trainedWords/*", rgthree_begin, 0, 0, NULL },
        { "/trainedWords/*/word", rgthree_word, 0, 0, NULL },
        { "/trainedWords/*/civitai", rgthree_flag, 0, 95, NULL },
        { "/trainedWords/*/user", rgthree_flag, 0, 100, NULL },
        SFTI_PROMPT_ROW("/images/*/positive", positive, 1),
        SFTI_PROMPT_ROW("/images/*/negative", negative, 1),
        SFTI_PROMPT_ROW("/images/*/seed", seed, 1),
        SFTI_PROMPT_ROW("/images/*/steps", steps, 1),
        SFTI_PROMPT_ROW("/images/*/sampler", sampler, 1),
        SFTI_PROMPT_ROW("/images/*/cfg", cfg, 1),
        SFTI_IMAGE_ROWS,
        { "/name", take_name, SFT_FACT_NAME, 85, NULL },
    };
    rgthree side = { .side = { .sidecar = sidecar } };
    if (!sfti_sidecar_walk(info, sidecar, text, SFTI_ROWS(seen), &side)) return;
    /* CivitAI's answer tells the model's own name: "Model - Version" is not needed then. */
    size_t count = SFTI_COUNT(rows) - (side.raw ? 1 : 0);
    if (!sfti_sidecar_walk(info, sidecar, text, rows, count, &side)) return;
    end_word(info, &side);
    if (!side.raw) sfti_sidecar_ids(info, &side.side);
    else sfti_read_civitai_version(info, sidecar, text, "/raw/civitai");
}

/* ── Recipes of lora-manager ── */

void sfti_read_recipe(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    static const sfti_row rows[] = {
        SFTI_PROMPT_ROW("/gen_params/prompt", positive, 1),
        SFTI_PROMPT_ROW("/gen_params/negative_prompt", negative, 1),
        SFTI_PROMPT_ROW("/gen_params/seed", seed, 1),
        SFTI_PROMPT_ROW("/gen_params/steps", steps, 1),
        SFTI_PROMPT_ROW("/gen_params/sampler", sampler, 1),
        SFTI_PROMPT_ROW("/gen_params/cfg_scale", cfg, 1),
    };
    sfti_sidecar_walked side = { .sidecar = sidecar };
    (void)sfti_sidecar_walk(info, sidecar, text, SFTI_ROWS(rows), &side);
}
