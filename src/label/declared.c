/* What producers declare a model to be, in words of their own. */
#include "label/info.h"

#include <string.h>

#define SURE 80 /* a guess of the tensors is worth less than the class */

static const char *const base_labels[][2] = {
    { "pony", "Pony" }, { "illustrious", "Illustrious" }, { "noobai", "NoobAI" },
};

/* A repo keeps its slash; of a path on somebody's machine only the file's name is told. */
void sfti_info_base_checkpoint(sft_info *info, sft_span text, sft_span source, int trust) {
    sft_span path = sfti_trim(text);
    bool local = path.len > 2 && (*path.data == '/' || *path.data == '\\' || path.data[1] == ':');
    if (local) path = sfti_leaf_name(path);
    if (sfti_is_placeholder(path)) return;
    sfti_info_add_text(info, SFT_FACT_BASE_CHECKPOINT, path, source, trust);
    sfti_info_add_cstr(info, SFT_FACT_BASE_MODEL, SFTI_MAPPED(path, base_labels, sfti_contains),
                       source, 40);
}

void sfti_info_declare(sft_info *info, sfti_fact **list, sft_span number, sft_span source,
                       int trust) {
    size_t count = 0;
    number = sfti_trim(number);
    if (!sfti_is_number(number)) return;
    for (; *list; list = &(*list)->next)
        if (++count > 16) return;
    sfti_fact *fact = sfti_info_take(info, sizeof *fact);
    if (!fact) return;
    *fact = (sfti_fact){ sfti_number_value(number), source, trust, NULL, false, false };
    *list = fact;
}

void sfti_info_declared_base(sft_info *info, const char *architecture, sft_span text,
                             sft_span source, int trust) {
    const char *label = NULL, *variant = sfti_map_derivative(text, &label);
    sfti_info_add_cstr(info, SFT_FACT_ARCHITECTURE, architecture, source, trust);
    if (!architecture && !variant && !sfti_same_letters(text, "unknown"))
        sfti_info_add_text(info, SFT_FACT_BASE_MODEL, text, source, trust);
    if (!variant) return;
    sfti_info_add_cstr(info, SFT_FACT_VARIANT, variant, source, trust);
    sfti_info_add_text(info, SFT_FACT_BASE_MODEL, label ? sft_span_cstr(label) : text, source,
                       trust);
}

void sfti_info_declared_class(sft_info *info, sft_span name, sft_span source, int trust) {
    const char *architecture, *kind;
    bool known = sfti_map_class_name(name, &architecture, &kind);
    bool many = known && !architecture;
    bool pipeline = kind && strcmp(kind, "pipeline") == 0;
    const sfti_fact *best = sfti_info_best(info, SFT_FACT_ARCHITECTURE);
    if (many && (pipeline || (best && best->trust >= SURE))) return;
    if (architecture)
        sfti_info_add_cstr(info, SFT_FACT_ARCHITECTURE, architecture, source, trust);
    else sfti_info_add_written(info, name, source, trust);
}

/* ── CivitAI's labels of base models and its types ── */

/* Labels that say more than an architecture. */
static const char *const civitai_labels[][2] = {
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

/* Whether the model is of a kind whose base model says what it is used with, not what it is. */
static bool is_part(const sft_info *info) {
    static const char *const parts[] = { "text_encoder", "language_model", "image_encoder", "vae",
                                         "upscaler", "detector", "vision_model", "audio_model" };
    const sfti_fact *kind = sfti_info_best(info, SFT_FACT_KIND);
    return kind && SFTI_ONE_OF(kind->value.text, parts, sfti_is);
}

void sfti_info_declared_label(sft_info *info, sft_span label, sft_span source, int trust) {
    static const char *const nothing[] = { "unknown", "other", "odor", "upscaler" };
    label = sfti_trim(label);
    if (SFTI_ONE_OF(label, nothing, sfti_same_letters)) return;
    sfti_info_add_text(info, SFT_FACT_BASE_MODEL, label, source, trust);
    if (is_part(info)) return;
    sfti_info_add_cstr(info, SFT_FACT_ARCHITECTURE, sfti_map_civitai_base(label), source, trust);
    sfti_info_add_cstr(info, SFT_FACT_VARIANT,
                       SFTI_MAPPED(label, civitai_labels, sfti_same_letters), source, trust);
}

/* covers: a kind of ours that the declared word is used for, too. */
static const struct civitai_type { const char *type, *kind, *covers; } civitai_types[] = {
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

void sfti_info_declared_kind(sft_info *info, sft_span type, sft_span source, int trust) {
    const sfti_fact *best = sfti_info_best(info, SFT_FACT_KIND);
    type = sfti_trim(type);
    for (size_t i = 0; i < SFTI_COUNT(civitai_types); i++) {
        const char *kind = civitai_types[i].kind, *covers = civitai_types[i].covers;
        if (!sfti_same_letters(type, civitai_types[i].type)) continue;
        if (covers && best && sft_span_equal(best->value.text, sft_span_cstr(covers)))
            kind = covers;
        sfti_info_add_cstr(info, SFT_FACT_KIND, kind, source, trust);
    }
}
