/* What a writer copied from another file, or fills in for want of better, is not surely this
 * model's. Tests: test_info_header.c. */
#include "label/header/header.h"

#include <string.h>

#define COPIED_TRUST 40
#define DEFAULT_TRUST 60 /* below what data sets tell */

bool sfti_by_onetrainer(const sft_info *info) {
    sft_span value;
    return sfti_info_metadata(info, "ot_branch", &value)
        || sfti_info_metadata(info, "ot_revision", &value)
        || sfti_info_metadata(info, "ot_config", &value);
}

/* A1111 and its like put all pairs of the sources into the merge. */
static bool by_merger(const sft_info *info) {
    sft_span models;
    return info->merge_recipe.len > 0
        || (sfti_info_metadata(info, "sd_merge_models", &models)
            && sfti_begins(sfti_trim(models), "{"));
}

/* All but the recipe may be told of a source. */
static bool of_sources(sft_span source) {
    return sfti_starts_with(source, "header:") && !sfti_starts_with(source, "header:sd_merge_");
}

/* OneTrainer has a template for each kind of model; title, date and digest are its own. */
static bool of_template(sft_span source) {
    return sfti_starts_with(source, "header:modelspec.")
        && !sfti_starts_with(source, "header:modelspec.trigger_phrase");
}

static void lower_facts(sft_info *info, bool (*copied)(sft_span source), bool date) {
    static const sft_fact seen[] = { SFT_FACT_KIND, SFT_FACT_ARCHITECTURE, SFT_FACT_VARIANT,
                                     SFT_FACT_BASE_MODEL, SFT_FACT_QUANTIZATION, SFT_FACT_FAMILY };
    for (int i = 0; i < SFT_FACT_COUNT; i++) {
        bool skip = i == SFT_FACT_DATE && !date;
        for (size_t k = 0; k < SFTI_COUNT(seen) && !skip; k++) skip = (int)seen[k] == i;
        for (sfti_fact *fact = skip ? NULL : info->facts[i]; fact; fact = fact->next)
            if (copied(fact->source) && fact->trust > COPIED_TRUST) fact->trust = COPIED_TRUST;
    }
    for (sfti_trigger *word = info->triggers.first; word; word = word->next)
        if (copied(word->source) && word->trust > COPIED_TRUST) word->trust = COPIED_TRUST;
    for (sfti_link *link = info->links.first; link; link = link->next)
        link->only_link |= copied(link->source);
    for (sfti_civitai *one = info->civitai.first; one; one = one->next)
        if (copied(one->source) && one->trust > COPIED_TRUST) one->trust = COPIED_TRUST;
}

/* Without the training of one of the sources; digests are theirs, too. */
static void lower_merge(sft_info *info) {
    static const sfti_list none = { NULL, NULL, 0 };
    lower_facts(info, of_sources, true);
    for (sfti_claim *claim = info->claims.first; claim; claim = claim->next)
        if (of_sources(claim->source)) claim->known = "copied from a merged model";
    memset(info->training, 0, sizeof info->training);
    info->datasets = info->buckets = none;
    info->has_training = false;
    info->of_sources = true;
}

/* A picture that may be another model's comes after those beside the file. */
void sfti_copied_previews_last(sft_info *info) {
    sfti_preview *first = info->previews.first, *others = NULL, **kept = &first, **end = &others;
    if (!by_merger(info) && !sfti_by_onetrainer(info)) return;
    while (*kept) {
        sfti_preview *one = *kept;
        if (!sfti_starts_with(one->source, "header:")) {
            kept = &one->next;
            continue;
        }
        *kept = one->next;
        one->next = NULL;
        *end = one;
        end = &one->next;
    }
    *kept = others;
    info->previews.first = first;
    while (first && first->next) first = first->next;
    info->previews.last = first;
}

void sfti_header_copied(sft_info *info) {
    if (by_merger(info)) lower_merge(info);
    else if (sfti_by_onetrainer(info)) lower_facts(info, of_template, false);
    /* sd-scripts writes a size that goes with the architecture if it was told data sets,
     * musubi-tuner always. Where the data sets have that size, it is no mere default. */
    bool musubi = sfti_is(info->training[TRAIN_TOOL].text, "musubi-tuner");
    const int most = musubi ? COPIED_TRUST : DEFAULT_TRUST;
    for (sfti_fact *fact = info->facts[SFT_FACT_RESOLUTION]; fact; fact = fact->next) {
        bool told = false, same = false;
        if (sfti_starts_with(fact->source, "header:ss_")) continue;
        for (const sfti_fact *of = info->facts[SFT_FACT_RESOLUTION]; of; of = of->next) {
            if (!sfti_starts_with(of->source, "header:ss_")) continue;
            told = true;
            same = same || sft_span_equal(of->value.text, fact->value.text);
        }
        if ((musubi || told) && !same && fact->trust > most) fact->trust = most;
    }
}
