/* Whether one model is used with another, and why. Tests: test_info_fits.c. */
#include "label/fits.h"

#include "base/error.h"
#include "base/utf8.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define SURE_LEAST 70  /* trust of an architecture that says no */
#define HINT_MOST 40  /* of what only names of files tell */
#define LABEL_MOST 48  /* bytes of a text of the files in a reason */
#define TEXT_SIZE (LABEL_MOST + 4)

static const char *const fit_names[] = { "none", "no", "unknown", "loads", "likely", "yes" };

const char *sft_fit_name(sft_fit fit) {
    return (unsigned)fit < SFTI_COUNT(fit_names) ? fit_names[fit] : NULL;
}

/* ── The verdict and its reason ── */

typedef struct fit_case {
    const sft_info *model, *part;
    sft_span kind; /* of the part */
    sft_fit fit;
    bool settled;  /* by what nothing else can outweigh */
    bool named;    /* the part says that it was trained on the model */
    char *reason;
    size_t len, cap;
} fit_case;

/* A text of a file, cut between characters. */
static const char *brief(sft_span text, char out[TEXT_SIZE]) {
    size_t len = sfti_utf8_cut(text, LABEL_MOST);
    memcpy(out, text.data, len);
    memcpy(out + len, len < text.len ? "..." : "", len < text.len ? 4 : 1);
    return out;
}

static void tell(fit_case *fit, const char *format, ...) SFTI_FORMAT(2, 3);

static void tell(fit_case *fit, const char *format, ...) {
    va_list args;
    if (fit->cap - fit->len <= 2) return;
    if (fit->len > 0) {
        memcpy(fit->reason + fit->len, "; ", 3);
        fit->len += 2;
    }
    va_start(args, format);
    int more = vsnprintf(fit->reason + fit->len, fit->cap - fit->len, format, args);
    va_end(args);
    if (more < 0) return;
    fit->len += (size_t)more;
    if (fit->len < fit->cap) return;
    fit->len = fit->cap - 1;
    size_t good = sfti_utf8_check(fit->reason, fit->len); /* where a character is cut */
    if (fit->len - good < 4) fit->len = good;
    fit->reason[fit->len] = '\0';
    fit->cap = fit->len; /* nothing more follows what was cut */
}

static void lower_to(fit_case *fit, sft_fit most) {
    if (fit->fit > most) fit->fit = most;
}

/* ── Facts ── */

static sft_span value_of(const sft_info *info, sft_fact fact) {
    const sfti_fact *best = sfti_info_best(info, fact);
    return best && best->value.type != SFTI_LIST ? best->value.text : (sft_span){ "", 0 };
}

static int trust_of(const sft_info *info, sft_fact fact) {
    const sfti_fact *best = sfti_info_best(info, fact);
    return best ? best->trust : 0;
}

/* Both known: writes them for a reason. */
static bool both_known(const fit_case *fit, sft_fact fact, char a[TEXT_SIZE], char b[TEXT_SIZE]) {
    sft_span x = value_of(fit->part, fact), y = value_of(fit->model, fact);
    brief(x, a);
    brief(y, b);
    return x.len > 0 && y.len > 0;
}

/* ── Kinds ── */

#define DENOISERS "checkpoint diffusion_model pipeline"

static const struct fit_row { const char *part, *models; } fit_rows[] = {
    { "adapter", DENOISERS " language_model audio_model vision_model detector text_encoder "
                 "image_encoder" },
    { "control_lora", DENOISERS }, { "controlnet", DENOISERS }, { "ip_adapter", DENOISERS },
    { "t2i_adapter", DENOISERS }, { "motion_module", DENOISERS }, { "embedding", DENOISERS },
    { "vae", DENOISERS }, { "text_encoder", DENOISERS },
};

static bool has_word(const char *words, sft_span word) {
    return sfti_number_among(words, word) >= 0;
}

static bool is_used_with(sft_span part, sft_span model) {
    for (size_t i = 0; i < SFTI_COUNT(fit_rows); i++)
        if (sfti_is(part, fit_rows[i].part)) return has_word(fit_rows[i].models, model);
    return false;
}

static bool is_unknown(sft_span kind) {
    return kind.len == 0 || sfti_is(kind, "unknown");
}

/* False for two that are not used together. */
static bool take_roles(fit_case *fit, const sft_info *a, const sft_info *b) {
    sft_span x = value_of(a, SFT_FACT_KIND), y = value_of(b, SFT_FACT_KIND);
    bool turned = is_used_with(x, y);
    fit->model = turned ? b : a;
    fit->part = turned ? a : b;
    fit->kind = turned ? x : y;
    if (turned || is_used_with(y, x)) return true;
    if (!is_unknown(x) && !is_unknown(y)) return false;
    tell(fit, "the kind of %s is not known", is_unknown(x) && is_unknown(y) ? "both" : "one");
    fit->fit = SFT_FIT_UNKNOWN;
    fit->settled = true;
    return true;
}

/* ── Architecture ── */

static void tell_unknown(fit_case *fit, const char *what, bool part, bool model) {
    char kind[TEXT_SIZE];
    tell(fit, "the %s of the %s is not known", what, part ? "model" : brief(fit->kind, kind));
    if (!part && !model) tell(fit, "nor that of the model");
}

static bool are_known(fit_case *fit, char part[TEXT_SIZE], char model[TEXT_SIZE]) {
    if (both_known(fit, SFT_FACT_ARCHITECTURE, part, model)) return true;
    tell_unknown(fit, "architecture", *part != 0, *model != 0);
    return false;
}

static const sft_fit fits_of_kin[] = {
    [SFTI_KIN_NONE] = SFT_FIT_NO, [SFTI_KIN_UNSURE] = SFT_FIT_UNKNOWN,
    [SFTI_KIN_DERIVED] = SFT_FIT_LOADS, [SFTI_KIN_MEMBER] = SFT_FIT_LIKELY,
    [SFTI_KIN_SAME] = SFT_FIT_YES,
};

/* Whether another candidate for one of the architectures would agree. */
static bool is_disputed(const fit_case *fit) {
    const sfti_fact *part = fit->part->facts[SFT_FACT_ARCHITECTURE];
    for (; part; part = part->next) {
        const sfti_fact *model = fit->model->facts[SFT_FACT_ARCHITECTURE];
        for (; model; model = model->next)
            if (sfti_architecture_kin(fit->model->records, part->value.text,
                                      model->value.text) != SFTI_KIN_NONE)
                return true;
    }
    return false;
}

static void tell_kin(fit_case *fit, sfti_kin kin, const char *part, const char *model) {
    switch (kin) {
    case SFTI_KIN_SAME: tell(fit, "same architecture, %s", model); break;
    case SFTI_KIN_MEMBER: tell(fit, "for %s, this is %s", part, model); break;
    case SFTI_KIN_DERIVED:
        tell(fit, "for %s; %s is another model with the same layers", part, model);
        break;
    case SFTI_KIN_UNSURE: tell(fit, "for %s; whether it fits %s is not known", part, model); break;
    case SFTI_KIN_NONE: tell(fit, "for %s, not for %s", part, model); break;
    }
}

static void judge_architecture(fit_case *fit) {
    char part[TEXT_SIZE], model[TEXT_SIZE];
    int a = trust_of(fit->part, SFT_FACT_ARCHITECTURE);
    int b = trust_of(fit->model, SFT_FACT_ARCHITECTURE), trust = a < b ? a : b;
    fit->fit = SFT_FIT_UNKNOWN;
    if (!are_known(fit, part, model)) return;
    sfti_kin kin = sfti_architecture_kin(fit->model->records,
                                         value_of(fit->part, SFT_FACT_ARCHITECTURE),
                                         value_of(fit->model, SFT_FACT_ARCHITECTURE));
    fit->fit = fits_of_kin[kin];
    tell_kin(fit, kin, part, model);
    bool unsure = trust < SURE_LEAST, disputed = kin == SFTI_KIN_NONE && is_disputed(fit);
    if (kin == SFTI_KIN_NONE && (unsure || disputed)) fit->fit = SFT_FIT_UNKNOWN;
    lower_to(fit, trust <= HINT_MOST ? SFT_FIT_UNKNOWN : unsure ? SFT_FIT_LIKELY : SFT_FIT_YES);
    if (unsure) tell(fit, "which is not sure");
    if (disputed) tell(fit, "other sources disagree");
}

/* ── Variants ── */

/* Groups of variants of which a model has one, and what another makes of an adapter; alone: if the
 * model has none, too. */
static const struct fit_variants {
    sft_fit fit;
    bool alone;
    const char *group;
} fit_variants[] = {
    { SFT_FIT_NO, false, "size" },
    { SFT_FIT_LOADS, false, "noise" },
    { SFT_FIT_LOADS, false, "task" },
    { SFT_FIT_LOADS, true, "change" },
};

static sft_span word_among(const sfti_records *records, sft_span variant, const char *group) {
    sft_span word;
    while (sfti_next_piece(&variant, '+', &word))
        if (sfti_is(sfti_record_group(records, SFTI_VARIANT, word), group)) return word;
    return (sft_span){ "", 0 };
}

static void judge_variants(fit_case *fit) {
    sft_span part = value_of(fit->part, SFT_FACT_VARIANT);
    sft_span model = value_of(fit->model, SFT_FACT_VARIANT);
    for (size_t i = 0; i < SFTI_COUNT(fit_variants); i++) {
        char a[TEXT_SIZE], b[TEXT_SIZE];
        sft_span x = word_among(fit->model->records, part, fit_variants[i].group);
        sft_span y = word_among(fit->model->records, model, fit_variants[i].group);
        if (x.len > 0 && y.len == 0 && fit_variants[i].alone) {
            lower_to(fit, fit_variants[i].fit);
            tell(fit, "for %s", brief(x, a));
        }
        if (x.len == 0 || y.len == 0 || sft_span_equal(x, y)) continue;
        bool sure = trust_of(fit->part, SFT_FACT_VARIANT) >= SURE_LEAST
                 && trust_of(fit->model, SFT_FACT_VARIANT) >= SURE_LEAST;
        bool no = fit_variants[i].fit == SFT_FIT_NO;
        lower_to(fit, no && !sure ? SFT_FIT_UNKNOWN : fit_variants[i].fit);
        tell(fit, "for %s, this is %s", brief(x, a), brief(y, b));
    }
}

/* ── Prediction and base ── */

static void judge_prediction(fit_case *fit) {
    char part[TEXT_SIZE], model[TEXT_SIZE];
    if (!both_known(fit, SFT_FACT_PREDICTION_TYPE, part, model) || strcmp(part, model) == 0) return;
    lower_to(fit, SFT_FIT_LOADS);
    tell(fit, "prediction %s differs from %s", part, model);
}

static void judge_base(fit_case *fit) {
    char part[TEXT_SIZE], model[TEXT_SIZE];
    bool known = both_known(fit, SFT_FACT_BASE_MODEL, part, model);
    const sfti_records *records = fit->model->records;
    const sfti_record *of = sfti_record_find(records, SFTI_MODEL,
                                             value_of(fit->model, SFT_FACT_ARCHITECTURE));
    if (!sfti_record_row_of(records, of, SFTI_BRANCH, NULL)) return;
    if (!known) {
        lower_to(fit, SFT_FIT_LIKELY);
        tell_unknown(fit, "base model", *part != 0, *model != 0);
        return;
    }
    if (sfti_branch(records, value_of(fit->part, SFT_FACT_BASE_MODEL))
        == sfti_branch(records, value_of(fit->model, SFT_FACT_BASE_MODEL))) {
        int a = trust_of(fit->part, SFT_FACT_BASE_MODEL);
        int b = trust_of(fit->model, SFT_FACT_BASE_MODEL);
        bool guess = (a < b ? a : b) <= HINT_MOST;
        if (guess) lower_to(fit, SFT_FIT_LIKELY);
        tell(fit, "base %s%s", part, guess ? ", by its name" : "");
        return;
    }
    lower_to(fit, SFT_FIT_LOADS);
    tell(fit, "base %s differs from %s: may look off", part, model);
}

/* ── What it was trained on ── */

static bool is_claimed(const sft_info *model, const char *algo, sft_span digest) {
    for (const sfti_claim *one = model->claims.first; one; one = one->next)
        if (strcmp(one->algo, algo) == 0 && sft_span_equal(one->value, digest)) return true;
    for (unsigned i = 0; i < SFT_HASH_COUNT; i++)
        if (strcmp(sft_hash_name((sft_hash_algo)i), algo) == 0
            && sft_span_equal(model->computed.text[i], digest))
            return true;
    return false;
}

static bool is_trained_on(const fit_case *fit) {
    static const struct { sfti_training_key key; const char *algo; } digests[] = {
        { TRAIN_BASE_SHA256, "sha256" }, { TRAIN_BASE_AUTOV1, "autov1" },
    };
    for (size_t i = 0; i < SFTI_COUNT(digests); i++) {
        sft_span digest = fit->part->training[digests[i].key].text;
        if (digest.len > 0 && is_claimed(fit->model, digests[i].algo, digest)) return true;
    }
    return false;
}

static sft_span stem_of(sft_span name) {
    static const char *const ends[] = { ".safetensors", ".sft", ".ckpt", ".pt" };
    name = sfti_leaf_name(sfti_trim(name));
    for (size_t i = 0; i < SFTI_COUNT(ends); i++)
        if (sfti_ends_with(name, ends[i]))
            return (sft_span){ name.data, name.len - strlen(ends[i]) };
    return name;
}

/* By the name of its file, its repository or its name: no name that all files have. */
static bool is_named(const fit_case *fit, sft_span told) {
    static const char *const generic[] = { "model", "pytorch_model", "adapter_model",
                                           "diffusion_pytorch_model", "checkpoint", "lora" };
    sft_span name = stem_of(told);
    if (name.len == 0 || SFTI_ONE_OF(name, generic, sfti_starts_with)) return false;
    return sfti_same_text(name, fit->model->stem)
        || sfti_same_text(name, stem_of(value_of(fit->model, SFT_FACT_REPO)))
        || sfti_same_text(name, stem_of(value_of(fit->model, SFT_FACT_NAME)));
}

static void judge_origin(fit_case *fit) {
    char text[TEXT_SIZE];
    sft_span told = value_of(fit->part, SFT_FACT_BASE_CHECKPOINT);
    if (is_trained_on(fit)) {
        fit->fit = SFT_FIT_YES;
        fit->settled = true;
        tell(fit, "trained on this very file");
    } else if (fit->fit >= SFT_FIT_UNKNOWN && is_named(fit, told)) {
        fit->fit = fit->fit == SFT_FIT_UNKNOWN ? SFT_FIT_LIKELY : SFT_FIT_YES;
        fit->named = true;
        tell(fit, "trained on %s", brief(stem_of(told), text));
    }
}

/* ── Layers ── */

static void judge_layers(fit_case *fit) {
    sfti_layer_match match = sfti_match_layers(fit->model, fit->part);
    char name[TEXT_SIZE];
    if (match.other.len > 0) {
        fit->fit = SFT_FIT_NO;
        tell(fit, "%s is %llu x %llu, in the model %llu x %llu", brief(match.other, name),
             (unsigned long long)match.out, (unsigned long long)match.in,
             (unsigned long long)match.model_out, (unsigned long long)match.model_in);
    } else if (match.same > 0) {
        if (fit->fit == SFT_FIT_UNKNOWN) fit->fit = SFT_FIT_LIKELY;
        tell(fit, "%llu layer%s of the same size", (unsigned long long)match.same,
             match.same == 1 ? "" : "s");
        if (match.missing == 0) return;
        lower_to(fit, SFT_FIT_LOADS);
        tell(fit, "%llu that the model lacks", (unsigned long long)match.missing);
    } else if (!fit->named && !has_word(DENOISERS, value_of(fit->model, SFT_FACT_KIND))) {
        /* one architecture in many sizes */
        lower_to(fit, SFT_FIT_UNKNOWN);
        tell(fit, "sizes of layers cannot be compared");
    }
}

/* ── VAEs and text encoders ── */

/* Latents of SD 1 and 2 differ from those of SDXL, of FLUX from SD 3, and the layers do not. */
static bool has_twins(const sfti_records *records, sft_span vae, sft_span model) {
    const sfti_record *of = sfti_record_find(records, SFTI_MODEL, vae);
    return (of && sfti_record_row_of(records, of, SFTI_TWINS, NULL))
        || sfti_record_with(records, model, SFTI_TWINS, SFTI_TWINS);
}

static void judge_label(fit_case *fit) {
    char text[TEXT_SIZE];
    const sfti_records *records = fit->model->records;
    sft_span label = value_of(fit->part, SFT_FACT_BASE_MODEL);
    const char *for_base = label.len ? sfti_map_civitai_base(records, label, NULL) : NULL;
    sft_span model = value_of(fit->model, SFT_FACT_ARCHITECTURE);
    if (for_base) {
        bool akin = sfti_architecture_kin(records, sft_span_cstr(for_base), model)
                 >= SFTI_KIN_DERIVED;
        if (!akin) lower_to(fit, SFT_FIT_LOADS);
        tell(fit, "made for %s", brief(label, text));
    } else if (has_twins(records, value_of(fit->part, SFT_FACT_ARCHITECTURE), model)) {
        lower_to(fit, SFT_FIT_LOADS);
        tell(fit, "others have the same layers: which it was made for is not known");
    }
}

static void judge_component(fit_case *fit) {
    bool vae = sfti_is(fit->kind, "vae");
    char part[TEXT_SIZE], model[TEXT_SIZE];
    int a = trust_of(fit->part, SFT_FACT_ARCHITECTURE);
    int b = trust_of(fit->model, SFT_FACT_ARCHITECTURE);
    fit->fit = SFT_FIT_UNKNOWN;
    if (!are_known(fit, part, model)) return;
    sft_span architecture = value_of(fit->model, SFT_FACT_ARCHITECTURE);
    sft_span own = value_of(fit->part, SFT_FACT_ARCHITECTURE);
    sfti_kin kin = sfti_kin_of_part(fit->model->records, architecture,
                                    vae ? SFTI_VAES : SFTI_TEXT_ENCODERS, own);
    fit->fit = fits_of_kin[kin];
    lower_to(fit, SFT_FIT_LIKELY);
    bool no = kin == SFTI_KIN_NONE, unsure = kin == SFTI_KIN_UNSURE;
    if (no && (a < SURE_LEAST || b < SURE_LEAST)) fit->fit = SFT_FIT_UNKNOWN;
    tell(fit, unsure ? "whether %s uses %s is not known" : no ? "%s does not use %s"
                                                              : "%s uses %s", model, part);
    if (vae && fit->fit >= SFT_FIT_LOADS) judge_label(fit);
}

/* ── All ── */

static void judge_adapter(fit_case *fit) {
    judge_architecture(fit);
    if (fit->fit >= SFT_FIT_LOADS) {
        judge_variants(fit);
        judge_prediction(fit);
        judge_base(fit);
    }
    judge_origin(fit);
    if (!fit->settled && fit->fit >= SFT_FIT_UNKNOWN) judge_layers(fit);
}

sft_fit sft_info_fits(const sft_info *a, const sft_info *b, char *reason, size_t cap) {
    char unseen[8];
    fit_case fit = { .fit = SFT_FIT_NONE, .reason = reason && cap ? reason : unseen,
                     .cap = reason && cap ? cap : sizeof unseen };
    fit.reason[0] = '\0';
    if (!take_roles(&fit, a, b) || fit.settled) return fit.fit;
    if (sfti_is(fit.kind, "vae") || sfti_is(fit.kind, "text_encoder")) judge_component(&fit);
    else judge_adapter(&fit);
    return fit.fit;
}
