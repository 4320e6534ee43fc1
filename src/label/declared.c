/* What producers declare a model to be, in words of their own. */
#include "label/info.h"

#include <string.h>

#define SURE 80 /* a guess of the tensors is worth less than the class */
#define NAMED 75

/* A repo keeps its slash; of a path on somebody's machine only the file's name is told. */
void sfti_info_base_checkpoint(sft_info *info, sft_span text, sft_span source, int trust) {
    sft_span path = sfti_trim(text);
    bool local = path.len > 2 && (*path.data == '/' || *path.data == '\\' || path.data[1] == ':');
    if (local) path = sfti_leaf_name(path);
    if (sfti_is_placeholder(path)) return;
    sfti_info_add_text(info, SFT_FACT_BASE_CHECKPOINT, path, source, trust);
    const sfti_record_row *branch = info->said = sfti_branch(info->records, path);
    sft_span rest = sfti_row_text(branch), label;
    if (sfti_next_said(&rest, &label) && sfti_next_said(&rest, &label))
        sfti_info_add_text(info, SFT_FACT_BASE_MODEL, label, source, 40);
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
    *fact = (sfti_fact){ sfti_number_value(number), source, trust, NULL, false, false, NULL };
    *list = fact;
}

void sfti_info_declared_base(sft_info *info, const char *architecture, sft_span text,
                             sft_span source, int trust) {
    const sfti_record_row *use;
    sft_span variant, label;
    bool derived = sfti_map_derivative(info->records, text, &variant, &label, &use);
    sfti_info_add_cstr(info, SFT_FACT_ARCHITECTURE, architecture, source, trust);
    if (!architecture && !derived && !sfti_same_letters(text, "unknown"))
        sfti_info_add_text(info, SFT_FACT_BASE_MODEL, text, source, trust);
    if (!derived) return;
    info->said = use;
    sfti_info_add_text(info, SFT_FACT_VARIANT, variant, source, trust);
    sfti_info_add_text(info, SFT_FACT_BASE_MODEL, label.len > 0 ? label : text, source, trust);
}

void sfti_info_declared_class(sft_info *info, sft_span name, sft_span source, int trust) {
    const char *architecture, *kind;
    bool known = sfti_map_class_name(info->records, name, &architecture, &kind, &info->said);
    bool many = known && !architecture;
    bool pipeline = kind && strcmp(kind, "pipeline") == 0;
    const sfti_fact *best = sfti_info_best(info, SFT_FACT_ARCHITECTURE);
    if (many && (pipeline || (best && best->trust >= SURE))) return;
    if (architecture)
        sfti_info_add_cstr(info, SFT_FACT_ARCHITECTURE, architecture, source, trust);
    else sfti_info_add_written(info, name, source, trust);
}

/* ── CivitAI's labels of base models and its types, and names of repositories ── */

/* Whether the model is of a kind whose base model says what it is used with, not what it is. */
static bool is_part(const sft_info *info) {
    static const char *const parts[] = { "text_encoder", "language_model", "image_encoder", "vae",
                                         "upscaler", "detector", "vision_model", "audio_model" };
    const sfti_fact *kind = sfti_info_best(info, SFT_FACT_KIND);
    return kind && SFTI_ONE_OF(kind->value.text, parts, sfti_is);
}

/* An owner ("Qwen/…") is no model. What is known better is told again of adapters only, whose base
 * it contradicts; a denoiser may have been made from a language model. */
void sfti_info_declared_repository(sft_info *info, sft_span text, sft_span source) {
    const sfti_fact *best = sfti_info_best(info, SFT_FACT_ARCHITECTURE);
    const sfti_fact *kind = sfti_info_best(info, SFT_FACT_KIND);
    const sfti_record *of = sfti_said(info->records, SFTI_MODEL, SFTI_SAYS_REPOSITORY,
                                      sfti_leaf_name(sfti_trim(text)), false, NULL);
    if (!of || is_part(info)) return;
    if (!best || best->trust < NAMED
        || (kind && sfti_is(kind->value.text, "adapter")
            && !sfti_related_architectures(info->records, best->value.text,
                                           sft_span_cstr(of->id))))
        sfti_info_add_cstr(info, SFT_FACT_ARCHITECTURE, of->id, source, NAMED);
}

void sfti_info_declared_label(sft_info *info, sft_span label, sft_span source, int trust) {
    static const char *const nothing[] = { "unknown", "other", "odor", "upscaler" };
    label = sfti_trim(label);
    if (SFTI_ONE_OF(label, nothing, sfti_same_letters)) return;
    sfti_info_add_text(info, SFT_FACT_BASE_MODEL, label, source, trust);
    if (is_part(info)) return;
    sfti_info_add_cstr(info, SFT_FACT_ARCHITECTURE,
                       sfti_map_civitai_base(info->records, label, &info->said), source, trust);
    sft_span variant;
    if (sfti_said(info->records, SFTI_MODEL, SFTI_SAYS_CIVITAI, label, true, &info->said)
        && sfti_row_has(info->said, "variant", &variant)) /* it says more than an architecture */
        sfti_info_add_text(info, SFT_FACT_VARIANT, variant, source, trust);
}

void sfti_info_declared_kind(sft_info *info, sft_span type, sft_span source, int trust) {
    const sfti_fact *best = sfti_info_best(info, SFT_FACT_KIND);
    sft_span covers;
    const sfti_record *of = sfti_said(info->records, SFTI_KIND, SFTI_SAYS_CIVITAI, type, true,
                                      &info->said);
    if (!of) return;
    const char *kind = of->id;
    if (sfti_row_has(info->said, "covers", &covers) && best
        && sft_span_equal(best->value.text, covers)) {
        of = sfti_record_find(info->records, SFTI_KIND, covers); /* the word is used for it, too */
        kind = of ? of->id : kind;
    }
    sfti_info_add_cstr(info, SFT_FACT_KIND, kind, source, trust);
}
