/* What the tensors are: kind, architecture, variant, components, sizes. */
#include "label/tensors/adapters.h"
#include "label/tensors/quantisation.h"

#include <string.h>

/* ── Components: the tensors that begin so are that part ── */

typedef enum component_rows { OF_NONE = 0, OF_VAE, OF_TEXT, OF_IMAGE } component_rows;

static const struct component_row {
    const char *prefix, *part;
    component_rows rows;
} component_table[] = {
    { "model_ema.", "ema", OF_NONE },
    { "first_stage_model.", "vae", OF_VAE },
    { "vae.", "vae", OF_VAE },
    { "pretransform.model.", "vae", OF_VAE },
    { "cond_stage_model.", "text_encoder", OF_TEXT },
    { "conditioner.embedders.0.open_clip.model.visual.", "image_encoder", OF_IMAGE },
    { "conditioner.embedders.0.", "text_encoder", OF_TEXT },
    { "conditioner.embedders.1.", "text_encoder_2", OF_TEXT },
    { "text_encoders.clip_l.", "text_encoder", OF_TEXT },
    { "text_encoders.clip_g.", "text_encoder_2", OF_TEXT },
    { "text_encoders.t5xxl.", "text_encoder_3", OF_TEXT },
    { "text_encoders.", "text_encoder", OF_TEXT },
    { "text_encoder_3.", "text_encoder_3", OF_TEXT },
    { "text_encoder_2.", "text_encoder_2", OF_TEXT },
    { "text_encoder.", "text_encoder", OF_TEXT },
    { "image_encoder.", "image_encoder", OF_IMAGE },
    { "clip_vision.", "image_encoder", OF_IMAGE },
    { "embedder.", "image_encoder", OF_IMAGE },
};
#define COMPONENT_ROWS (SFTI_COUNT(component_table))

static const sft_span none = { "", 0 };

/* Sums of each row, and of all else. */
typedef struct component_sums {
    sfti_sums rows[COMPONENT_ROWS], rest, all;
} component_sums;

/* ── What a component is ── */

/* Wrappers that stand between a component's prefix and the names of its tensors. */
static const char wrappers[] = "\"\" transformer. model. transformer.model. model.transformer.";

static bool match_wrapped(const sfti_view *view, sfti_table_id table, sfti_matched *out) {
    sfti_view at;
    return sfti_match_after(view, view->prefix, sft_span_cstr(wrappers), table, out, &at);
}

/* The component's own name may follow, text_encoders.qwen.transformer, of one that has no row of
 * its own before this. */
static sfti_view named_component(const sfti_view *view, const char *prefix) {
    static const char *const own[] = { "text_encoders.clip_l.", "text_encoders.clip_g.",
                                       "text_encoders.t5xxl." };
    char name[160];
    sfti_view at = sfti_view_after(view, prefix, none);
    size_t from, to, len = strlen(prefix);
    if (strcmp(prefix, "text_encoders.") != 0 || !sfti_view_range(&at, "", &from, &to)) return at;
    while (from + 1 < to && SFTI_ONE_OF(view->by_name[from]->name, own, sfti_begins)) from++;
    sft_span whole = view->by_name[from]->name;
    const char *dot = memchr(whole.data + len, '.', whole.len - len);
    if (!dot || (size_t)(dot - whole.data) + 1 >= sizeof name) return at;
    memcpy(name, whole.data, (size_t)(dot - whole.data) + 1);
    name[dot - whole.data + 1] = 0;
    return sfti_view_after(view, name, none);
}

static bool match_component(const sfti_view *view, const struct component_row *row,
                            sfti_matched *out) {
    sfti_view at = named_component(view, row->prefix), seen;
    if (row->rows == OF_VAE) return match_wrapped(&at, SFTI_VAE_TABLE, out);
    if (row->rows == OF_IMAGE) {
        const sfti_view clip = sfti_view_after(view, "conditioner.embedders.0.open_clip.model.",
                                               none);
        return match_wrapped(&at, SFTI_IMAGES, out) || match_wrapped(&clip, SFTI_IMAGES, out);
    }
    return row->rows == OF_TEXT
        && (match_wrapped(&at, SFTI_ENCODERS, out)
            || sfti_match_table(&at, at.prefix, SFTI_LANGUAGE, out, &seen));
}

/* T5 with CLIP-L alone is the second encoder, as FLUX.1 has it. */
static const char *component_part(const component_sums *sums, size_t row) {
    const char *part = component_table[row].part;
    if (strcmp(component_table[row].prefix, "text_encoders.t5xxl.") != 0) return part;
    bool l = sums->rows[row - 2].tensors > 0, g = sums->rows[row - 1].tensors > 0;
    return g ? part : l ? "text_encoder_2" : "text_encoder";
}

/* The VAE that the denoiser uses, if several have the same layers. */
static const char *own_vae(const sfti_records *records, const char *denoiser, const char *vae) {
    const sfti_record *of = denoiser ? sfti_record_with(records, sft_span_cstr(denoiser), SFTI_VAES,
                                                        SFTI_VAES) : NULL;
    sft_span rest = sfti_row_text(sfti_record_row_of(records, of, SFTI_VAES, NULL)), id;
    while (sfti_next_said(&rest, &id))
        if (sfti_architecture_within(records, id, sft_span_cstr(vae)))
            return sfti_record_find(records, SFTI_MODEL, id)->id;
    return vae;
}

static void add_components(const sfti_view *view, const component_sums *sums,
                           const char *denoiser) {
    sft_info *info = view->info;
    for (size_t i = 0; i < COMPONENT_ROWS; i++) {
        sfti_matched matched = { 0 };
        if (sums->rows[i].tensors == 0) continue;
        (void)match_component(view, &component_table[i], &matched);
        if (component_table[i].rows == OF_VAE && matched.architecture
            && matched.trust <= SFTI_GUESS)
            matched.architecture = own_vae(info->records, denoiser, matched.architecture);
        sfti_add_component(info, &info->components, component_part(sums, i),
                           matched.architecture, matched.trust, &sums->rows[i]);
    }
}

/* ── Facts ── */

static void add_evidence_of(sft_info *info, const sfti_evidence *evidence) {
    for (size_t i = 0; i < evidence->count; i++) sfti_add_evidence(info, evidence->tensors[i]);
}

/* Strangers that fit alike: neither is told. */
static void add_rivals(sft_info *info, const sfti_matched *matched) {
    sfti_fact *facts = NULL;
    for (size_t i = 2; i-- > 0;) {
        sfti_fact *fact = matched->rivals[i] ? sfti_info_take_zeroed(info, sizeof *fact) : NULL;
        if (!fact) return;
        *fact = (sfti_fact){ .value = sfti_text_value(sft_span_cstr(matched->rivals[i])),
                             .source = sft_span_cstr("tensors"), .trust = SFTI_GUESS,
                             .next = facts };
        facts = fact;
    }
    SFTI_PUSH(info, &info->conflicts, sfti_conflict, .field = "architecture", .facts = facts);
}

static void add_matched(sft_info *info, const char *kind, const sfti_matched *matched) {
    sfti_add_row_fact(info, SFT_FACT_KIND, kind, 100, matched->row);
    sfti_add_row_fact(info, SFT_FACT_ARCHITECTURE, matched->architecture, matched->trust,
                      matched->row);
    add_evidence_of(info, &matched->evidence);
    add_rivals(info, matched);
}

/* Tensors that are there to say how the model was trained. */
static const struct { const char *name, *also, *prediction; } marker_rows[] = {
    { "v_pred", NULL, "v" },
    { "edm_vpred.sigma_max", NULL, "edm-v" },
    { "edm_mean", "edm_std", "edm" },
    { "__x0__", NULL, "x0" },
};

static void add_prediction(const sfti_view *view) {
    const sfti_view whole = sfti_view_after(view, "", none);
    for (size_t i = 0; i < SFTI_COUNT(marker_rows); i++) {
        const sft_tensor *marker = sfti_view_find(&whole, marker_rows[i].name);
        if (!marker) marker = sfti_view_find(view, marker_rows[i].name);
        if (!marker) continue;
        if (marker_rows[i].also && !sfti_view_find(&whole, marker_rows[i].also)
            && !sfti_view_find(view, marker_rows[i].also))
            continue;
        sfti_add_tensor_fact(view->info, SFT_FACT_PREDICTION_TYPE, marker_rows[i].prediction, 95);
        sfti_add_evidence(view->info, marker);
        return;
    }
}

/* ── Denoisers ── */

static bool has_part(const component_sums *sums, component_rows rows) {
    for (size_t i = 0; i < COMPONENT_ROWS; i++)
        if (component_table[i].rows == rows && sums->rows[i].tensors > 0) return true;
    return false;
}

/* *at: the view that sees it. */
static bool info_denoiser(const sfti_view *view, const component_sums *sums, sfti_view *at) {
    static const char *const called[] = { "model.diffusion_model.", "diffusion_model." };
    sft_info *info = view->info;
    sfti_matched matched = { .kind = NULL };
    bool found = sfti_match_table(view, "", SFTI_DENOISERS, &matched, at);
    for (size_t i = 0; i < SFTI_COUNT(called) && !found; i++) { /* not known, but called so */
        matched = (sfti_matched){ .kind = "diffusion_model" };
        *at = sfti_view_after(view, called[i], none);
        found = sfti_view_any(at, "");
    }
    if (!found) return false;
    bool unet = !matched.architecture
             && (sfti_view_any(at, "input_blocks.") || sfti_view_any(at, "down_blocks."));
    if (matched.architecture && matched.trust > SFTI_GUESS
        && sfti_model_has_others(at, matched.architecture))
        matched.trust = SFTI_GUESS;
    bool whole = has_part(sums, OF_TEXT) || has_part(sums, OF_VAE);
    add_matched(info, whole ? "checkpoint" : matched.kind, &matched);
    sfti_match_variants(at, matched.architecture, matched.trust);
    add_prediction(at);
    const sfti_record *of = sfti_model_record(info->records, matched.architecture);
    sfti_add_component(info, &info->components,
                       unet ? "unet" : sfti_denoiser_part(info->records, of),
                       matched.architecture, matched.trust, &sums->rest);
    add_components(view, sums, matched.architecture);
    if (sums->rows[0].tensors > 0) info->size = "full";
    else if (whole && strcmp(at->prefix, "model.diffusion_model.") == 0) info->size = "pruned";
    return true;
}

/* ── Everything that stands alone ── */

/* Both towers of CLIP and its kin, each with its bytes. */
static void add_towers(const sfti_view *at, const sfti_quant *quant, const sfti_matched *is) {
    sft_info *info = at->info;
    sfti_sums text = { 0 }, image = { 0 };
    size_t from, to;
    bool towers = sfti_view_range(at, "text_model.", &from, &to);
    for (size_t i = 0; i < at->count; i++) {
        bool in_text = towers && i >= from && i < to;
        sfti_sum(in_text ? &text : &image, quant, i);
    }
    sfti_add_component(info, &info->components, "image_encoder", is->architecture, is->trust,
                       &image);
    sfti_add_component(info, &info->components, "text_encoder", is->architecture, is->trust,
                       &text);
}

static bool info_alone(const sfti_view *view, const component_sums *sums,
                       const sfti_quant *quant, const sfti_forms *forms) {
    static const sfti_table_id tables[] = { SFTI_VAE_TABLE, SFTI_IMAGES, SFTI_ENCODERS,
                                            SFTI_OTHERS };
    static const char *const parts[] = { "vae", "text_encoder", "image_encoder" };
    sft_info *info = view->info;
    sfti_matched matched;
    sfti_view at;
    for (size_t i = 0; i < SFTI_COUNT(tables); i++) {
        if (!sfti_match_table(view, "", tables[i], &matched, &at)
            || sfti_forms_exceed(forms, matched.kind))
            continue;
        bool part = SFTI_ONE_OF(sft_span_cstr(matched.kind), parts, sfti_is);
        add_matched(info, matched.kind, &matched);
        if (tables[i] == SFTI_IMAGES) add_towers(&at, quant, &matched);
        else if (part)
            sfti_add_component(info, &info->components, matched.kind, matched.architecture,
                               matched.trust, &sums->all);
        if (tables[i] == SFTI_ENCODERS && strcmp(matched.kind, "language_model") == 0)
            sfti_language_sizes(&at, matched.architecture);
        return true;
    }
    return false;
}

/* Parts of a checkpoint without its denoiser: text encoders, say, as one file. */
static bool info_parts(const sfti_view *view, const component_sums *sums,
                       const sfti_forms *forms) {
    sft_info *info = view->info;
    const char *kind = NULL;
    sfti_matched matched = { 0 };
    size_t known = 0, parts = 0;
    for (size_t i = 0; i < COMPONENT_ROWS; i++) {
        if (sums->rows[i].tensors == 0 || component_table[i].rows == OF_NONE) continue;
        parts++;
        if (!match_component(view, &component_table[i], &matched)) continue;
        const char *is = component_table[i].rows == OF_VAE    ? "vae"
                       : component_table[i].rows == OF_IMAGE ? "image_encoder"
                                                             : "text_encoder";
        if ((kind && strcmp(kind, is) != 0) || sfti_forms_exceed(forms, is)) return false;
        kind = is;
        known++;
        add_evidence_of(info, &matched.evidence);
    }
    if (!kind || known < parts || sums->rest.tensors > sums->all.tensors / 2) return false;
    sfti_add_tensor_fact(info, SFT_FACT_KIND, kind, 100);
    if (parts == 1)
        sfti_add_row_fact(info, SFT_FACT_ARCHITECTURE, matched.architecture, matched.trust,
                          matched.row);
    add_components(view, sums, NULL);
    return true;
}

/* ── Language models, and those that serve as encoders of text ── */

static bool info_language(const sfti_view *view, const component_sums *sums,
                          const sfti_forms *forms) {
    sft_info *info = view->info;
    sfti_matched matched;
    sfti_view at;
    if (!sfti_match_table(view, view->prefix, SFTI_LANGUAGE, &matched, &at)
        || sfti_forms_exceed(forms, matched.kind))
        return false;
    sft_span folder = sfti_leaf_name(info->folder);
    bool encoder = sfti_begins(folder, "text_encoder") || sfti_is(folder, "clip");
    bool head = sfti_view_any(view, "lm_head.") || sfti_view_any(view, "language_model.lm_head.")
             || sfti_view_any(view, "embed_out.");
    if (encoder) sfti_add_tensor_fact(info, SFT_FACT_KIND, "text_encoder", 100);
    sfti_add_row_fact(info, SFT_FACT_KIND, "language_model", head && !encoder ? 100 : 70,
                      matched.row);
    sfti_add_row_fact(info, SFT_FACT_ARCHITECTURE, matched.architecture, matched.trust,
                      matched.row);
    add_evidence_of(info, &matched.evidence);
    if (encoder)
        sfti_add_component(info, &info->components, "text_encoder", matched.architecture,
                           matched.trust, &sums->all);
    sfti_language_sizes(&at, matched.architecture);
    return true;
}

/* ── All kinds ── */

void sfti_info_tensors(sft_info *info) {
    sfti_matched matched;
    sfti_view view, at;
    component_sums *sums = sfti_info_take_zeroed(info, sizeof *sums);
    if (!sums || !sfti_view_open(info, &view)) return;
    sfti_quant quant = sfti_quantisation(&view);
    const uint8_t *row_of = sfti_view_rows(&view, component_table, sizeof component_table[0],
                                           COMPONENT_ROWS);
    info->is_plain = view.count > 0;
    for (size_t i = 0; row_of && i < view.count; i++) {
        sfti_sum(row_of[i] ? &sums->rows[row_of[i] - 1] : &sums->rest, &quant, i);
        if (sfti_may_be_codes(view.by_name[i])) info->is_plain = false;
    }
    sums->all = sums->rest;
    for (size_t i = 0; i < COMPONENT_ROWS; i++)
        if (sums->rows[i].tensors > 0) sfti_sum_all(&sums->all, &sums->rows[i]);
    info->weights = sums->all.weights;
    info->precision = sfti_precision(info, &sums->all, &quant);
    sfti_add_tensor_fact(info, SFT_FACT_QUANTIZATION, quant.id, quant.id_guessed ? 60 : 100);
    /* Controls, IP-Adapters and the like. */
    if (sfti_match_table(&view, "", SFTI_SPECIAL, &matched, &at)) {
        add_matched(info, matched.kind, &matched);
        if (strcmp(matched.kind, "control_lora") == 0) (void)sfti_info_adapter(&view, &quant);
        return;
    }
    if (sfti_info_adapter(&view, &quant) || sfti_info_embedding(&view)) return;
    bool known = info_denoiser(&view, sums, &at);
    const sfti_forms *forms = known ? sfti_forms_of(&at, row_of) : sfti_forms_of(&view, NULL);
    if (!forms) return;
    known = known || info_alone(&view, sums, &quant, forms)
              || (sums->all.tensors > sums->rest.tensors && info_parts(&view, sums, forms))
              || info_language(&view, sums, forms);
    const char *kind = sfti_forms_family(forms, false);
    if (known) return;
    /* What is none of all this is unknown: below every other reading. */
    sfti_add_tensor_fact(info, SFT_FACT_KIND, kind, 60);
    sfti_add_tensor_fact(info, SFT_FACT_KIND, "unknown", 0);
}
