/* Sidecars that are named after the model: which reader seen_takes which suffix. */
#include "label/reads.h"
#include "label/sidecars/sidecars.h"

#include <string.h>

/* ── What a JSON file is, by its keys ── */

enum {
    SEEN_A1111 = 1 << 0,      /* a key only A1111, Forge and their helpers write */
    SEEN_ID = 1 << 1,         /* a number */
    SEEN_MODEL_ID = 1 << 2,   /* a number */
    SEEN_VERSIONS = 1 << 3,
    SEEN_SKELETON = 1 << 4,   /* it says so, or its id is an empty text */
    SEEN_CONTENT = 1 << 5,    /* something of a version other than ids */
    SEEN_SWARM = 1 << 6,
    SEEN_MATRIX = 1 << 7,
    SEEN_DESCRIPTION = 1 << 8,
    SEEN_CONFIG = 1 << 9,     /* a model's configuration */
    SEEN_LABEL = 1 << 10      /* info --json of ours */
};

static void see_keys(sfti_cursor *at) {
    int *seen = at->ctx;
    bool number = sfti_at_uint(at) > 0;
    switch (1 << at->row->field) {
    case SEEN_ID:
        if (at->json->type == SFTI_JSON_STRING && sfti_trim(at->text).len == 0)
            *seen |= SEEN_SKELETON;
        if (number) *seen |= SEEN_ID;
        break;
    case SEEN_MODEL_ID: *seen |= number ? SEEN_MODEL_ID : 0; break;
    case SEEN_SKELETON: *seen |= at->json->type == SFTI_JSON_TRUE ? SEEN_SKELETON : 0; break;
    case SEEN_LABEL: *seen |= sfti_is(at->text, "info") ? SEEN_LABEL : 0; break;
    case SEEN_CONTENT: *seen |= sfti_at_text(at) ? SEEN_CONTENT : 0; break;
    default: *seen |= 1 << at->row->field;
    }
}

static const sfti_key_take seen_takes[] = {
    { "see", see_keys,
      "a1111 id model_id versions skeleton content swarm matrix description config label", NULL },
};
SFTI_KEYS_OF(sfti_json_keys, "json", seen_takes);

static bool classify_keys(sft_info *info, sfti_sidecar *sidecar, sft_span text, int *seen) {
    sfti_derived derived = info->derived;
    *seen = 0;
    info->derived.count = 0; /* what it is does not depend on who wrote it */
    bool fine = sfti_sidecar_walk(info, sidecar, text, SFTI_KEY_ROWS(sfti_json_keys), seen);
    info->derived = derived;
    return fine;
}

static void read_civitai(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    int seen;
    if (!classify_keys(info, sidecar, text, &seen)) return;
    if (seen & SEEN_SKELETON || !(seen & (SEEN_ID | SEEN_MODEL_ID | SEEN_CONTENT | SEEN_VERSIONS)))
        sfti_sidecar_fail(info, sidecar, "a skeleton: its writer knew no such model");
    else if (seen & SEEN_VERSIONS) sfti_read_civitai_model(info, sidecar, text);
    else sfti_read_civitai_version(info, sidecar, text, "");
}

static void read_as(sft_info *info, sfti_sidecar *sidecar, sft_span text, const char *kind,
                    const sfti_keys *keys) {
    sidecar->kind = kind;
    if (keys) sfti_sidecar_read(info, sidecar, text, keys);
    else read_civitai(info, sidecar, text);
}

static void read_plain_json(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    int seen;
    if (!classify_keys(info, sidecar, text, &seen)) return;
    if (seen & SEEN_LABEL) return; /* all of it is derived */
    if (seen & SEEN_VERSIONS || (seen & SEEN_ID && seen & SEEN_MODEL_ID))
        read_as(info, sidecar, text, "civitai.json", NULL);
    else if (seen & SEEN_SWARM) read_as(info, sidecar, text, "swarm.json", &sfti_swarm_keys);
    else if (seen & SEEN_MATRIX)
        read_as(info, sidecar, text, "cm-info.json", &sfti_matrix_keys);
    else if (seen & SEEN_A1111 || (seen & SEEN_DESCRIPTION && !(seen & SEEN_CONFIG)))
        read_as(info, sidecar, text, "a1111.json", &sfti_a1111_keys);
    else sfti_sidecar_fail(info, sidecar, "expected keys of a sidecar, found none that is known");
}

/* ── Plain text ── */

static void read_text(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    text = sfti_trim(text);
    sfti_info_note(info, text, sidecar->source);
    sfti_info_scan_text(info, text, sidecar->source, false);
    bool line = !sfti_find_byte(text, '\n').data && !sfti_find_byte(text, '\r').data;
    if (line && text.len <= 300 && !sfti_contains(text, "://"))
        sfti_info_trigger(info, text, sidecar->source, 70, 0);
}

static void read_description(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    sfti_info_add_text(info, SFT_FACT_DESCRIPTION, sfti_plain_text(info, text), sidecar->source,
                       90);
    sfti_info_scan_text(info, text, sidecar->source, false);
}

static void read_sha256(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    sft_span hex;
    text = sfti_trim(text);
    for (size_t i = 0; i < text.len; i++)
        if (strchr(" \n\r\t", text.data[i])) text.len = i;
    if (!sfti_info_hash(info, text, 64, &hex)) {
        sfti_sidecar_fail(info, sidecar, "expected 64 hexadecimal digits");
        return;
    }
    sfti_info_claim(info, "sha256", hex, sidecar->source, NULL);
    sfti_sidecar_hash(info, sidecar, "sha256", hex, sidecar->source);
}

static void read_yaml(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    static const sfti_row rows[] = {
        { "/model/params/parameterization", sfti_take_prediction, 0, 90, NULL },
    };
    sfti_info_yaml(info, text, sidecar->source, SFTI_ROWS(rows), NULL);
}

/* ── Keys ── */

static void read_sidecar_keys(void) {
    static const sfti_keys *const all[] = {
        &sfti_own_keys, &sfti_a1111_keys, &sfti_tips_keys, &sfti_lora_manager_keys,
        &sfti_matrix_keys, &sfti_swarm_keys, &sfti_rgthree_keys, &sfti_recipe_file_keys,
        &sfti_civitai_model_keys, &sfti_civitai_version_keys, &sfti_civitai_choice_keys,
        &sfti_readme_keys, &sfti_json_keys, &sfti_adapter_config_keys, &sfti_quantiser_keys,
        &sfti_config_keys,
    };
    for (size_t i = 0; i < SFTI_COUNT(all); i++) sfti_keys_read(all[i], &sfti_common_takes);
}

void sfti_sidecar_keys_ready(void) {
    static bool ready;
    (void)sfti_records_built_in();
    sfti_os_once(&ready, read_sidecar_keys);
}

/* ── The table: what is read first tells the versions of what comes after ── */

const sfti_sidecar_row sfti_sidecar_rows[] = {
    { NULL, ".own.json", "own.json", NULL, &sfti_own_keys },
    { NULL, ".civitai.info", "civitai.info", read_civitai, NULL },
    { NULL, ".metadata.json", "metadata.json", sfti_read_lora_manager, NULL },
    { NULL, ".cm-info.json", "cm-info.json", NULL, &sfti_matrix_keys },
    { NULL, ".json", "json", read_plain_json, NULL },
    { NULL, ".api_info.json", "api_info.json", read_civitai, NULL },
    { NULL, ".swarm.json", "swarm.json", NULL, &sfti_swarm_keys },
    { NULL, ".safetensors.rgthree-info.json", "rgthree-info.json", sfti_read_rgthree, NULL },
    { NULL, ".sft.rgthree-info.json", "rgthree-info.json", sfti_read_rgthree, NULL },
    { NULL, ".recipe.json", "recipe.json", NULL, &sfti_recipe_file_keys },
    { NULL, ".txt", "txt", read_text, NULL },
    { NULL, ".description.txt", "description.txt", read_description, NULL },
    { NULL, ".sha256", "sha256", read_sha256, NULL },
    { NULL, ".yaml", "yaml", read_yaml, NULL },
};
const size_t sfti_sidecar_row_count = SFTI_COUNT(sfti_sidecar_rows);

const char *sfti_sidecar_ending(sft_span name, sft_span stem) {
    const char *found = NULL;
    for (size_t i = 0; i < sfti_hub_row_count; i++) { /* "config.json" is no stem's */
        const sfti_sidecar_row *row = &sfti_hub_rows[i];
        size_t stem = strlen(row->stem), len = strlen(row->suffix);
        if (name.len == stem + len && memcmp(name.data, row->stem, stem) == 0
            && sfti_ends_with(name, row->suffix))
            return NULL;
    }
    for (size_t i = 0; i < sfti_sidecar_row_count; i++) {
        const char *suffix = sfti_sidecar_rows[i].suffix;
        size_t len = strlen(suffix);
        if (name.len <= len || !sfti_ends_with(name, suffix)) continue;
        if (name.len == stem.len + len && memcmp(name.data, stem.data, stem.len) == 0)
            return suffix;
        if (!found || len > strlen(found)) found = suffix;
    }
    return found;
}
