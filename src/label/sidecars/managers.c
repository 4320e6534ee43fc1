/* Sidecars of the programs people keep their models with. */
#include "label/sidecars/sidecars.h"
#include "text/links.h"

#include <string.h>

#define SIDECAR_WORDS 64

/* ── Takes ── */

/* Ids of the first link that has any. */
static void take_link(sfti_cursor *at) {
    sfti_sidecar_walked *side = at->ctx;
    uint64_t model_id, version_id;
    if (!sfti_at_text(at)) return;
    sft_span source = sfti_cursor_source(at);
    sfti_info_scan_text(at->info, at->text, source, true);
    if (side->model_id > 0 || !sfti_civitai_address(at->text, &model_id, &version_id)) return;
    side->model_id = model_id;
    side->version_id = version_id;
    side->id_source = source;
}

/* Elements joined with "||", each a prompt of its own. */
static void take_activation(sfti_cursor *at) {
    sft_span rest = at->text;
    if (!sfti_at_text(at)) return;
    sft_span source = sfti_cursor_source(at);
    for (int group = 0; group < SIDECAR_WORDS && rest.data; group++) {
        sft_span bar = sfti_find_letters(rest, "||");
        sft_span piece = { rest.data, rest.len - bar.len };
        sfti_info_trigger(at->info, piece, source, at->row->trust, group);
        rest = bar.data ? sfti_from(bar, 2) : bar;
    }
}

/* The name a tool gives before it knows better is the file's. */
static void take_name(sfti_cursor *at) {
    if (sfti_at_text(at) && !sft_span_equal(sfti_trim(at->text), at->info->stem))
        sfti_take_fact(at);
}

/* field: 0 the least weight, 1 the most. */
static void take_bound(sfti_cursor *at) {
    double weight;
    if ((sfti_at_number(at) || sfti_at_text(at)) && sfti_parse_double(at->text, &weight))
        sfti_info_declare(at->info, &at->info->weight_bounds[at->row->field], at->text,
                          sfti_cursor_source(at), at->row->trust);
}

/* ── One's own ── */

static void take_stars(sfti_cursor *at) {
    double stars;
    if (sfti_at_number(at) && sfti_parse_double(at->text, &stars) && stars >= 0 && stars <= 5)
        at->info->rating = stars;
}

/* Who says so first is heard. */
static void take_favourite(sfti_cursor *at) {
    if (sfti_at_bool(at) >= 0 && at->info->favourite < 0)
        at->info->favourite = sfti_at_bool(at);
}

/* ── A1111 and Forge ── */

static void take_sd_version(sfti_cursor *at) {
    sft_span text = sfti_trim(at->text);
    if (!sfti_at_text(at)) return;
    (void)sfti_skip(&text, "SdVersion.");
    sfti_put_here(at, SFT_FACT_ARCHITECTURE,
                  sfti_said_model(at->info->records, SFTI_SAYS_A1111, text, &at->info->said));
}

/* ── lora-manager ── */

/* usage_tips: JSON in a string. */
static void take_tips(sfti_cursor *at) {
    if (sfti_at_text(at))
        (void)sfti_info_walk(at->info, sfti_info_copy(at->info, at->text), sfti_cursor_source(at),
                             SFTI_KEY_ROWS(sfti_tips_keys), at->ctx);
}

void sfti_read_lora_manager(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    sfti_sidecar_walked side = { .sidecar = sidecar };
    if (sfti_sidecar_walk(info, sidecar, text, SFTI_KEY_ROWS(sfti_lora_manager_keys), &side))
        sfti_read_civitai_version(info, sidecar, text, "/civitai");
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

static void rgthree_begin(sfti_cursor *at) {
    rgthree *side = at->ctx;
    end_word(at->info, side);
    side->word_index = at->index;
}

static void rgthree_word(sfti_cursor *at) {
    rgthree *side = at->ctx;
    if (!sfti_at_text(at)) return;
    side->word = at->text;
    side->word_source = sfti_cursor_source(at);
}

static void rgthree_flag(sfti_cursor *at) {
    rgthree *side = at->ctx;
    int trust = at->row->trust;
    if (sfti_at_bool(at) == 1 && side->word_trust < trust) side->word_trust = trust;
}

void sfti_read_rgthree(sft_info *info, sfti_sidecar *sidecar, sft_span text) {
    static const sfti_row seen[] = {
        { "/raw/civitai/id", sfti_take_slot_uint, (int)offsetof(rgthree, raw), 0, NULL },
    };
    rgthree side = { .side = { .sidecar = sidecar } };
    if (!sfti_sidecar_walk(info, sidecar, text, SFTI_ROWS(seen), &side)) return;
    /* CivitAI's answer tells the model's own name: "Model - Version" is not needed then. */
    const sfti_keys *keys = &sfti_rgthree_keys;
    size_t count = keys->made->row_count - (side.raw && keys->made->row_count ? 1 : 0);
    if (!sfti_sidecar_walk(info, sidecar, text, keys->made->rows, count, &side)) return;
    end_word(info, &side);
    if (!side.raw) sfti_sidecar_ids(info, &side.side);
    else sfti_read_civitai_version(info, sidecar, text, "/raw/civitai");
}

/* ── Keys ── */

static const sfti_key_take manager_takes[] = {
    { "link", take_link, NULL, NULL },
    { "activation", take_activation, NULL, NULL },
    { "title", take_name, SFTI_TAKES_FACT, NULL },
    { "bound", take_bound, "least most", NULL },
    { "sd_version", take_sd_version, NULL, NULL },
    { "tips", take_tips, NULL, NULL },
    { "stars", take_stars, NULL, NULL },
    { "favourite", take_favourite, NULL, NULL },
};
static const sfti_key_take rgthree_takes[] = {
    { "begin", rgthree_begin, NULL, NULL },
    { "word", rgthree_word, NULL, NULL },
    { "flag", rgthree_flag, NULL, NULL },
    { "link", take_link, NULL, NULL }, { "title", take_name, SFTI_TAKES_FACT, NULL },
    { "bound", take_bound, "least most", NULL },
};

SFTI_SIDECAR_KEYS(sfti_own_keys, "own", manager_takes);
SFTI_SIDECAR_KEYS(sfti_a1111_keys, "a1111", manager_takes);
SFTI_SIDECAR_KEYS(sfti_tips_keys, "lora-manager-tips", manager_takes);
SFTI_SIDECAR_KEYS(sfti_lora_manager_keys, "lora-manager", manager_takes);
SFTI_SIDECAR_KEYS(sfti_matrix_keys, "stability-matrix", manager_takes);
SFTI_SIDECAR_KEYS(sfti_swarm_keys, "swarm", manager_takes);
SFTI_SIDECAR_KEYS(sfti_recipe_file_keys, "lora-manager-recipe", manager_takes);
SFTI_SIDECAR_KEYS(sfti_rgthree_keys, "rgthree", rgthree_takes);
