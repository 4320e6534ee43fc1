/* CivitAI's links in a model's texts: the addresses of its pages and the ids in them. */
#include "label/info.h"
#include "text/links.h"

#define SCAN_LINKS_MOST 256
#define CLAIMS_MOST 256
#define TRUST_DEMOTED 10 /* of a file found to be another model's */
#define SCAN_MOST ((size_t)8 << 20)

/* ── Claims ── */

sfti_civitai *sfti_info_civitai(sft_info *info, uint64_t model_id, uint64_t version_id,
                                sft_span source, int trust) {
    if ((model_id == 0 && version_id == 0) || info->civitai.count >= CLAIMS_MOST) return NULL;
    for (const sfti_civitai *old = info->civitai.first; old; old = old->next)
        if (old->model_id == model_id && old->version_id == version_id
            && sft_span_equal(old->source, source))
            return NULL;
    return SFTI_PUSH(info, &info->civitai, sfti_civitai, .model_id = model_id,
                     .version_id = version_id, .source = source, .trust = trust);
}

/* ── Links ── */

static const struct air_kind { const char *type, *kind; } air_kinds[] = {
    { "checkpoint", "checkpoint" }, { "checkpoint", "diffusion_model" },
    { "checkpoint", "pipeline" }, { "embedding", "embedding" }, { "motion", "motion_module" },
    { "upscaler", "upscaler" }, { "vae", "vae" }, { "lora", "adapter" }, { "dora", "adapter" },
    { "lycoris", "adapter" }, { "controlnet", "controlnet" }, { "controlnet", "control_lora" },
    { "text_encoders", "text_encoder" }, { "unet", "diffusion_model" },
    { "clipvision", "image_encoder" }, { "clip", "text_encoder" },
    { "visionlanguage", "language_model" }, { "diffusionmodel", "diffusion_model" },
    { "controlnet", "ip_adapter" }, { "controlnet", "t2i_adapter" },
};

/* Whether an AIR's type may be of a model of this kind; unknown ones may. */
static bool air_fits(const sft_info *info, sft_span type) {
    const sfti_fact *kind = sfti_info_best(info, SFT_FACT_KIND);
    bool known = false;
    if (!kind || sft_span_equal(kind->value.text, sft_span_cstr("unknown"))) return true;
    for (size_t i = 0; i < SFTI_COUNT(air_kinds); i++) {
        if (!sfti_same_letters(type, air_kinds[i].type)) continue;
        known = true;
        if (sft_span_equal(kind->value.text, sft_span_cstr(air_kinds[i].kind))) return true;
    }
    return !known;
}

void sfti_info_scan_text(sft_info *info, sft_span text, sft_span source, bool only_link) {
    sfti_text_link found;
    size_t at = 0;
    if (text.len > SCAN_MOST) text.len = SCAN_MOST;
    while (info->links.count < SCAN_LINKS_MOST && !info->code
           && sfti_next_link(text, &at, &found)) {
        sft_span url = found.bare ? sfti_info_join(info, "https://", found.text) : found.text;
        const sfti_link *old = info->links.first;
        while (old && !(sft_span_equal(old->url, url) && sft_span_equal(old->source, source)))
            old = old->next;
        if (old) continue;
        bool fits = found.type.len == 0 || air_fits(info, found.type);
        SFTI_PUSH(info, &info->links, sfti_link, .url = url, .source = source,
                  .model_id = found.model_id, .version_id = found.version_id,
                  .only_link = only_link || !fits || found.of_another);
    }
}

/* Two links agree unless both tell an id and tell it differently. */
static bool links_agree(uint64_t a, uint64_t b) {
    return a == 0 || b == 0 || a == b;
}

/* Where a sidecar states the ids, links in its prose are to other models. */
static bool may_claim(const sft_info *info, const sfti_link *link) {
    if (link->only_link || (link->model_id == 0 && link->version_id == 0)) return false;
    if (!sfti_starts_with(link->source, "sidecar:")) return true;
    for (const sfti_civitai *claim = info->civitai.first; claim; claim = claim->next)
        if (claim->trust > TRUST_DEMOTED && sfti_starts_with(claim->source, "sidecar:"))
            return false;
    return true;
}

void sfti_info_civitai_links(sft_info *info) {
    uint64_t model = 0, version = 0;
    bool one_version = true;
    const sfti_link *first = NULL;
    for (const sfti_link *link = info->links.first; link; link = link->next) {
        if (!may_claim(info, link)) continue;
        if (!links_agree(model, link->model_id)) return;
        one_version = one_version && links_agree(version, link->version_id);
        if (!first || (first->model_id == 0 && link->model_id)) first = link;
        if (link->model_id) model = link->model_id;
        if (link->version_id) version = link->version_id;
    }
    if (!first || (model == 0 && !one_version)) return;
    (void)sfti_info_civitai(info, model, one_version ? version : 0, first->source, 50);
}
