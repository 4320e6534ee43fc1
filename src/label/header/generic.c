/* Keys without a convention, and what no key should tell. */
#include "label/header/header.h"

/* ── Keys ── */

/* The first of two spellings of a key that holds a number; 0 when there is none. */
static uint64_t number_of(const sft_info *info, const char *a, const char *b) {
    sft_span text;
    uint64_t id = 0;
    bool told = sfti_info_metadata(info, a, &text) || sfti_info_metadata(info, b, &text);
    return told && sfti_parse_uint(text, &id) ? id : 0;
}

/* Model and version are one claim, the model key's. */
static void take_id(sfti_cursor *at) {
    uint64_t model = number_of(at->info, "civitai_model_id", "modelId");
    uint64_t version = number_of(at->info, "civitai_version_id", "modelVersionId");
    if (at->row->field == 0 || model == 0)
        (void)sfti_info_civitai(at->info, model, version, at->source, at->row->trust);
}

static void take_base_model(sfti_cursor *at) {
    if (sfti_map_civitai_base(at->info->records, at->text, NULL)) sfti_take_fact(at);
    else sfti_take_base_file(at);
}

static const sfti_key_take generic_takes[] = {
    { "civitai_id", take_id, "model version", NULL },
    { "base_model", take_base_model, SFTI_TAKES_FACT, NULL },
};
SFTI_KEYS_OF(sfti_generic_keys, "generic", generic_takes);
