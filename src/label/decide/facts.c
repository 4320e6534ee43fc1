/* Which candidate is a fact: by trust, by what excludes it, with the conflicts that are left. */
#include "label/info.h"

#include "label/tensors/fitting.h"

#include "base/checked.h"

#include <string.h>

#define OTHERS_MOST 16
#define VARIANTS_MOST 16
#define CHILD_LEAST 41 /* a hint is no declaration */
#define CLAIM_LEAST 11 /* below it stands what was found to be another file's */
#define GUESS_MOST 79  /* what tensors show of several models contradicts none of them */

/* ── Order ── */

/* Architectures that are trusted alike: ours go before what is told as written, and children
 * before their parents. */
static bool says_more(const sfti_records *records, const sfti_fact *a, const sfti_fact *b) {
    if (a->as_written != b->as_written) return b->as_written;
    return !sft_span_equal(a->value.text, b->value.text)
        && sfti_architecture_within(records, a->value.text, b->value.text);
}

/* One's own facts go before all that others say. */
static int rank_of(const sfti_fact *fact) {
    return fact->trust * 2 + sfti_starts_with(fact->source, "own:");
}

/* Best first; of equals the one collected first, but of architectures (records not NULL) what says
 * more. */
static sfti_fact *sorted_facts(const sfti_records *records, sfti_fact *list) {
    sfti_fact *sorted = NULL;
    while (list) {
        sfti_fact *one = list, **link = &sorted;
        list = list->next;
        while (*link && (rank_of(*link) > rank_of(one)
                         || (rank_of(*link) == rank_of(one)
                             && !(records && says_more(records, one, *link)))))
            link = &(*link)->next;
        one->next = *link;
        *link = one;
    }
    return sorted;
}

static void cut_facts(sfti_fact *list) {
    for (size_t n = 0; list; list = list->next)
        if (n++ == OTHERS_MOST) list->next = NULL;
}

static sfti_fact *new_fact(sft_info *info, sfti_fact_value value, sft_span source, int trust) {
    sfti_fact *fact = sfti_info_take(info, sizeof *fact);
    if (fact) *fact = (sfti_fact){ value, source, trust, NULL, false, false, NULL };
    return fact;
}

/* ── Children ── */

/* What tensors show is true of the parent's children too, and a guess of siblings. */
static bool may_be(const sfti_records *records, sft_span told, sft_span shown, int trust) {
    return sfti_architecture_within(records, told, shown)
        || (trust <= GUESS_MOST && sfti_are_siblings(records, told, shown));
}

/* Such a child stands first if it is declared, with that trust. A file's name declares nothing. */
static void prefer_child(const sfti_records *records, sfti_fact **first) {
    sfti_fact *measured = *first;
    if (!measured || measured->value.type != SFTI_TEXT || !sfti_is(measured->source, "tensors"))
        return;
    for (sfti_fact **link = &measured->next; *link; link = &(*link)->next) {
        sfti_fact *child = *link;
        if (child->value.type != SFTI_TEXT || child->excluded || child->trust < CHILD_LEAST
            || sfti_is(child->source, "tensors")
            || sft_span_equal(child->value.text, measured->value.text)
            || !may_be(records, child->value.text, measured->value.text, measured->trust))
            continue;
        *link = child->next;
        child->next = measured;
        *first = child;
        return;
    }
}

/* The component that the model is named after is what the model is. */
static void settle_components(sft_info *info) {
    const sfti_fact *told = info->facts[SFT_FACT_ARCHITECTURE];
    sfti_component *at = info->components.first;
    if (!told || told->trust < CHILD_LEAST) return;
    for (at = at ? at : info->adapter.components.first; at; at = at->next) {
        const char *is = at->architecture;
        if (!is || !may_be(info->records, told->value.text, sft_span_cstr(is), at->trust)) continue;
        at->architecture = sfti_info_cstr(info, told->value.text);
        at->trust = told->trust;
    }
}

/* ── Variants ── */

typedef struct variants {
    sft_span words[VARIANTS_MOST];
    size_t count;
    const sfti_fact *weakest;
    bool lost; /* some are of another architecture, or tensors disprove them */
} variants;

/* A variant belongs to the architecture that its source tells: "13b" of LTX-Video is none of LTX-2,
 * which is declared. A task or a change may be both's. */
static bool is_of_told(const sft_info *info, const sfti_fact *variant, sft_span word) {
    const sfti_fact *told = info->facts[SFT_FACT_ARCHITECTURE], *own = told;
    while (own && !sft_span_equal(own->source, variant->source)) own = own->next;
    if (!own) return true;
    sfti_kin kin = sfti_architecture_kin(info->records, told->value.text, own->value.text);
    if (kin != SFTI_KIN_UNSURE) return kin != SFTI_KIN_NONE;
    return !sfti_is(sfti_record_group(info->records, SFTI_VARIANT, word), "size");
}

/* Variants of one group exclude one another, and the best candidate tells which is true; what only
 * changes a model may be several. */
static bool excluded(const sfti_records *records, const variants *all, sft_span word) {
    sft_span group = sfti_record_group(records, SFTI_VARIANT, word);
    bool alone = group.len > 0 && !sfti_is(group, "change");
    for (size_t i = 0; alone && i < all->count; i++)
        if (sft_span_equal(sfti_record_group(records, SFTI_VARIANT, all->words[i]), group))
            return true;
    return false;
}

static void add_variants(const sft_info *info, variants *all, const sfti_fact *fact) {
    sft_span rest = fact->value.text, word;
    if (fact->value.type != SFTI_TEXT || fact->trust < CLAIM_LEAST) return;
    while (sfti_next_piece(&rest, '+', &word)) {
        word = sfti_trim(word);
        if (word.len == 0) continue;
        bool told = is_of_told(info, fact, word) && !sft_span_equal(word, info->no_variant);
        all->lost = all->lost || !told;
        if (told && !excluded(info->records, all, word)
            && sfti_put_sorted(all->words, &all->count, VARIANTS_MOST, word))
            all->weakest = fact;
    }
}

/* "14b+i2v": one value of all that can be true together, as sure as its weakest part. */
static void join_variants(sft_info *info) {
    sfti_fact **first = &info->facts[SFT_FACT_VARIANT];
    variants all = { .count = 0 };
    for (const sfti_fact *fact = *first; fact; fact = fact->next)
        add_variants(info, &all, fact);
    if (all.lost && all.count == 0) *first = NULL;
    if (all.count < (all.lost ? 1u : 2u)) return;
    sft_span text = sfti_info_joined(info, all.words, all.count, "+");
    if (sft_span_equal(text, (*first)->value.text)) return;
    sfti_fact *fact = new_fact(info, sfti_text_value(text), all.weakest->source,
                               all.weakest->trust);
    if (!fact) return;
    fact->by = all.weakest->by;
    fact->next = *first;
    *first = fact;
}

/* What tensors show of another architecture than the one that is told is no variant of it; of one
 * that is not sure, it is no surer. */
static void drop_variants(sft_info *info) {
    const sfti_fact *told = info->facts[SFT_FACT_ARCHITECTURE], *measured = told;
    while (measured && !sfti_is(measured->source, "tensors")) measured = measured->next;
    for (sfti_fact *fact = info->facts[SFT_FACT_VARIANT]; measured && fact; fact = fact->next)
        if (sfti_is(fact->source, "tensors") && fact->trust > measured->trust)
            fact->trust = measured->trust;
    if (!measured || told->as_written
        || sfti_related_architectures(info->records, told->value.text, measured->value.text))
        return;
    sfti_drop_facts(&info->facts[SFT_FACT_VARIANT], measured->source);
}

/* ── Conflicts ── */

typedef bool (*agree_fn)(const sfti_records *records, sft_span a, sft_span b);

static bool equal_values(const sfti_records *records, sft_span a, sft_span b) {
    (void)records;
    return sft_span_equal(a, b);
}

static const char *label_base(const sfti_records *records, sft_span label) {
    const char *architecture = sfti_map_civitai_base(records, label, NULL);
    return architecture ? architecture
                        : sfti_said_model(records, SFTI_SAYS_BASE_VERSION, label, NULL);
}

/* Labels that are the architecture itself: every other label of it is its child. */
static bool is_root_label(const sfti_records *records, sft_span label) {
    const sfti_record_row *row;
    return sfti_said(records, SFTI_MODEL, SFTI_SAYS_CIVITAI, label, true, &row)
        && sfti_row_has(row, "plain", NULL);
}

/* What says nothing that is known does not contradict either. */
static bool labels_agree(const sfti_records *records, sft_span a, sft_span b) {
    const char *x = label_base(records, a), *y = label_base(records, b);
    if (sft_span_equal(a, b) || !x || !y) return true;
    if (!sfti_related_architectures(records, sft_span_cstr(x), sft_span_cstr(y))) return false;
    return strcmp(x, y) != 0 || is_root_label(records, a) || is_root_label(records, b);
}

static bool kinds_agree(const sfti_records *records, sft_span a, sft_span b) {
    (void)records;
    static const char *const families[][2] = {
        { "checkpoint", "diffusion_model" }, { "checkpoint", "pipeline" },
        { "adapter", "control_lora" }, { "controlnet", "control_lora" },
        { "language_model", "text_encoder" }, { "vision_model", "image_encoder" },
        { "vision_model", "detector" },
    };
    if (sft_span_equal(a, b) || sfti_is(a, "unknown") || sfti_is(b, "unknown")) return true;
    for (size_t i = 0; i < 2 * SFTI_COUNT(families); i++)
        if (sfti_is(a, families[i / 2][i % 2]) && sfti_is(b, families[i / 2][1 - i % 2]))
            return true;
    return false;
}

static bool is_claim(const sfti_fact *fact) {
    int least = sfti_is(fact->source, "tensors") ? GUESS_MOST + 1 : CLAIM_LEAST;
    return fact->trust >= least && fact->value.type != SFTI_LIST
        && !sfti_is(fact->source, "filename");
}

static bool has_conflict(const sft_info *info, const char *field) {
    const sfti_conflict *one = info->conflicts.first;
    while (one && strcmp(one->field, field) != 0) one = one->next;
    return one != NULL;
}

static void find_conflict(sft_info *info, const char *field, const sfti_fact *facts,
                          agree_fn agree) {
    if (has_conflict(info, field)) return;
    for (const sfti_fact *a = facts; a; a = a->next)
        for (const sfti_fact *b = a->next; b; b = b->next) {
            if (!is_claim(a) || !is_claim(b)
                || agree(info->records, a->value.text, b->value.text))
                continue;
            SFTI_PUSH(info, &info->conflicts, sfti_conflict, .field = field, .facts = facts);
            return;
        }
}

static const struct conflict_row { sft_fact field; agree_fn agree; } conflict_rows[] = {
    { SFT_FACT_ARCHITECTURE, sfti_related_architectures },
    { SFT_FACT_KIND, kinds_agree },
    { SFT_FACT_BASE_MODEL, labels_agree },
    { SFT_FACT_PREDICTION_TYPE, equal_values },
};

/* ── Conflicts with the family of the tensors ── */

#define DOUBTED 50 /* what tensors contradict is less than what they make guess */

/* What tensors show beside an architecture; empty: nothing sure. */
typedef struct shown {
    const sfti_fact *family;
    sft_span kind;
} shown;

static shown what_is_shown(const sft_info *info) {
    const sfti_fact *family = info->facts[SFT_FACT_FAMILY], *kind = info->facts[SFT_FACT_KIND];
    while (family && (family->trust < 100 || !sfti_is(family->source, "tensors")))
        family = family->next;
    while (kind && !sfti_is(kind->source, "tensors")) kind = kind->next;
    bool sure = kind && (family || kind->trust > GUESS_MOST);
    return (shown){ family, sure ? kind->value.text : (sft_span){ "", 0 } };
}

static bool is_of_others(const sft_info *info, const sfti_fact *fact, const shown *seen) {
    static const sft_span none = { "", 0 };
    return fact->value.type == SFTI_TEXT && is_claim(fact) && !sfti_is(fact->source, "tensors")
        && !sfti_architecture_may_have(info->records, fact->value.text,
                                       seen->family ? seen->family->value.text : none, seen->kind);
}

/* Adapters and denoisers: nothing else is declared of what holds them. */
static bool holds_denoiser(const sft_info *info) {
    const sfti_fact *kind = info->facts[SFT_FACT_KIND];
    while (kind && !sfti_is(kind->source, "tensors")) kind = kind->next;
    return info->fitting || (kind && (sfti_is(kind->value.text, "checkpoint")
                                      || sfti_is(kind->value.text, "diffusion_model")));
}

/* What the modules of an adapter exclude, or what is no relation of what the tensors surely are. */
static bool is_excluded(const sft_info *info, const sfti_fact *measured, sft_span name) {
    if (name.len == 0) return false;
    return sfti_fitting_excludes(info, name)
        || (measured && holds_denoiser(info)
            && !sfti_related_architectures(info->records, measured->value.text, name));
}

/* What is excluded stands below a guess; a base model that says the same, with what was found to be
 * another file's, unless it is only of another kind (VAEs and text encoders are for some base); a
 * variant from the same source is gone. */
static void exclude_architectures(sft_info *info, const shown *seen) {
    const int least = CLAIM_LEAST - 1;
    const sfti_fact *measured = info->facts[SFT_FACT_ARCHITECTURE];
    while (measured && !(sfti_is(measured->source, "tensors") && is_claim(measured)))
        measured = measured->next;
    for (sfti_fact *fact = info->facts[SFT_FACT_ARCHITECTURE]; fact; fact = fact->next) {
        if (fact->as_written || !is_claim(fact) || sfti_is(fact->source, "tensors")) continue;
        bool others = is_of_others(info, fact, seen);
        bool no = is_excluded(info, measured, fact->value.text);
        fact->excluded = others || no;
        if (!fact->excluded) continue;
        bool first = !measured || fact->trust >= measured->trust;
        if (first && fact->trust > DOUBTED) fact->trust = DOUBTED;
        sfti_drop_facts(&info->facts[SFT_FACT_VARIANT], fact->source);
        for (sfti_fact *base = info->facts[SFT_FACT_BASE_MODEL]; no && base; base = base->next)
            if (sft_span_equal(base->source, fact->source) && is_claim(base)) base->trust = least;
    }
    for (sfti_fact *base = info->facts[SFT_FACT_BASE_MODEL]; base; base = base->next) {
        const char *meant = is_claim(base) ? label_base(info->records, base->value.text) : NULL;
        if (is_excluded(info, measured, sft_span_cstr(meant ? meant : ""))) base->trust = least;
    }
}

/* An architecture that is excluded is not told: rather none at all. */
static void find_excluded_conflict(sft_info *info) {
    sfti_fact **first = &info->facts[SFT_FACT_ARCHITECTURE], *told = *first;
    while (told && !told->excluded) told = told->next;
    if (!told) return;
    if (!has_conflict(info, "architecture"))
        SFTI_PUSH(info, &info->conflicts, sfti_conflict, .field = "architecture", .facts = *first);
    if ((*first)->excluded) *first = NULL;
}

/* An adapter with modules of two models that have nothing in common is of neither. */
static void find_bases_conflict(sft_info *info) {
    sfti_fact **first = &info->facts[SFT_FACT_ARCHITECTURE];
    for (size_t i = 0; i < SFTI_COUNT(info->fitting->bases); i++) {
        sft_span id = sft_span_cstr(info->fitting->bases[i]->id);
        sfti_fact *fact = new_fact(info, sfti_text_value(id), sft_span_cstr("tensors"), 100);
        if (!fact) return;
        fact->next = *first;
        *first = fact;
    }
    SFTI_PUSH(info, &info->conflicts, sfti_conflict, .field = "architecture", .facts = *first);
    *first = info->facts[SFT_FACT_VARIANT] = NULL;
}

/* Not where tensors show the architecture: it is compared itself. */
static void find_family_conflict(sft_info *info, const shown *by) {
    const sfti_fact *family = by->family;
    sfti_fact *told = info->facts[SFT_FACT_ARCHITECTURE], *seen;
    bool any = false;
    for (const sfti_fact *fact = told; fact; fact = fact->next) {
        if (is_claim(fact) && sfti_is(fact->source, "tensors")) return;
        any |= is_of_others(info, fact, by);
    }
    if (!any) return;
    seen = new_fact(info, family->value, family->source, family->trust);
    if (!seen) return;
    seen->next = told;
    SFTI_PUSH(info, &info->conflicts, sfti_conflict, .field = "architecture", .facts = seen);
}

/* ── Conflicts with what tensors show of an adapter ── */

/* Several ranks in one file are told as the commonest; a declared one within them agrees. */
static void find_range_conflict(sft_info *info, const char *field, const sfti_bounds *range,
                                sfti_fact *told, uint64_t also) {
    static const char *const types[] = { "lora", "locon", "loha", "glora", "mixed" };
    const char *type = info->adapter.type;
    if (!range->known || !type || !SFTI_ONE_OF(sft_span_cstr(type), types, sfti_is)) return;
    for (const sfti_fact *fact = told; fact; fact = fact->next) {
        double value;
        if (fact->trust < CLAIM_LEAST || !sfti_parse_double(fact->value.text, &value) || value <= 0
            || (value >= range->min && value <= range->max) || (also && value == (double)also))
            continue;
        char digits[SFTI_DECIMALS_SIZE];
        sft_span mode = { digits, sfti_decimals(range->mode > 0 ? range->mode : 0, digits) };
        sfti_fact *seen = new_fact(info, sfti_number_value(sfti_info_copy(info, mode)),
                                   sft_span_cstr("tensors"), 100);
        if (!seen) return;
        seen->next = told;
        SFTI_PUSH(info, &info->conflicts, sfti_conflict, .field = field, .facts = seen);
        return;
    }
}

/* ── Alpha that no tensor holds ── */

/* How well an alpha goes with the commonest rank: whether its component ("transformer" of
 * "transformer.lora_alpha") has that, and is no text encoder. */
static int fits_mode(const sft_info *info, const sfti_fact *alpha) {
    const size_t field = strlen("lora_alpha");
    sft_span place = { alpha->source.data, alpha->source.len - field };
    int fits = !sfti_contains(place, "text_encoder");
    double rank;
    for (const sfti_fact *fact = info->declared_rank; fact; fact = fact->next)
        if (fact->source.len == place.len + 1
            && memcmp(fact->source.data, place.data, place.len) == 0
            && sfti_parse_double(fact->value.text, &rank) && rank == info->adapter.rank.mode)
            return fits + 2;
    return fits;
}

/* PEFT writes it into its configuration; what other trainers tell of it is no part of how
 * a file without alpha tensors is used. */
static void take_alpha(sft_info *info) {
    sfti_adapter *adapter = &info->adapter;
    sfti_bounds told = { .known = false };
    const double *pattern = adapter->alpha_pattern;
    bool components = false;
    int best = 0;
    if (!adapter->rank.known || (adapter->alpha.known && !adapter->alpha_assumed)) return;
    for (const sfti_fact *fact = info->declared_alpha; fact; fact = fact->next) {
        double alpha;
        bool component = sfti_starts_with(fact->source, "header:lora_adapter_metadata");
        if (!component && !sfti_starts_with(fact->source, "sidecar:")) continue;
        if (!sfti_parse_double(fact->value.text, &alpha) || !(alpha > 0)) continue;
        if (told.known && !(component && components)) break;
        int fits = component ? fits_mode(info, fact) : 0;
        if (!told.known || fits > best) told.mode = alpha, best = fits;
        if (!told.known || alpha < told.min) told.min = alpha;
        if (alpha > told.max) told.max = alpha;
        told.known = true;
        components = component;
    }
    if (!told.known) return;
    if (pattern[0] > 0 && pattern[0] < told.min) told.min = pattern[0];
    if (pattern[1] > told.max) told.max = pattern[1];
    adapter->alpha = told;
    adapter->alpha_assumed = false;
    sfti_adapter_scale(info);
}

/* ── CivitAI ── */

static void find_id_conflict(sft_info *info, const char *field, bool version) {
    sfti_fact *facts = NULL;
    for (const sfti_civitai *one = info->civitai.first; one; one = one->next) {
        uint64_t id = version ? one->version_id : one->model_id;
        if (id == 0) continue;
        sft_span text = sfti_info_text(info, "%llu", (unsigned long long)id);
        sfti_fact *fact = new_fact(info, sfti_number_value(text), one->source, one->trust);
        if (!fact) return;
        fact->next = facts;
        facts = fact;
    }
    facts = sorted_facts(NULL, facts);
    cut_facts(facts);
    find_conflict(info, field, facts, equal_values);
}

/* Best first; the best takes what it lacks from others that mean the same model. */
static void order_civitai(sft_info *info) {
    sfti_civitai *list = info->civitai.first, *sorted = NULL;
    for (size_t n = 0; list && n < OTHERS_MOST * 4; n++) {
        sfti_civitai *one = list, **link = &sorted;
        list = list->next;
        while (*link && (*link)->trust >= one->trust) link = &(*link)->next;
        one->next = *link;
        *link = one;
    }
    info->civitai.first = sorted;
    for (sfti_civitai *other = sorted ? sorted->next : NULL; other; other = other->next) {
        bool same = sorted->model_id == other->model_id
                 || (sorted->version_id && sorted->version_id == other->version_id);
        if (!same && sorted->model_id && other->model_id) continue;
        if (!same || other->trust < CLAIM_LEAST) continue;
        if (sorted->model_id == 0) sorted->model_id = other->model_id;
        if (sorted->version_id == 0) sorted->version_id = other->version_id;
        if (sorted->air.len == 0 && sorted->version_id == other->version_id)
            sorted->air = other->air;
        bool date_fits = other->version_id == 0 || sorted->version_id == other->version_id;
        if (sorted->published_at.len == 0 && date_fits)
            sorted->published_at = other->published_at;
    }
}

/* ── Predictions of no such model ── */

/* sd-scripts writes "epsilon" of all that is not FLUX. */
static void drop_epsilon(sft_info *info) {
    const sfti_fact *told = info->facts[SFT_FACT_ARCHITECTURE];
    sfti_fact **link = &info->facts[SFT_FACT_PREDICTION_TYPE];
    if (!told) return;
    sft_span predicted = sfti_predicted(info->records, told->value.text);
    if (predicted.len == 0 || sfti_is(predicted, "epsilon")) return;
    while (*link) {
        const sfti_fact *fact = *link;
        bool spec = sfti_is(fact->source, "header:modelspec.prediction_type")
                 || sfti_is(fact->source, "header:prediction_type");
        if (spec && sfti_is(fact->value.text, "epsilon")) *link = fact->next;
        else link = &(*link)->next;
    }
}

/* ── All ── */

/* "fp4" of a declared format, "int8" of "compressed-tensors-w8a16", "int4" of "mlx-4bit", where it
 * is no guess; NULL: nothing tells. */
static const char *declared_precision(sft_info *info) {
    const sfti_fact *best = info->facts[SFT_FACT_QUANTIZATION];
    if (!best) return NULL;
    sft_span name = best->value.text, whole = sft_span_cstr("compressed-tensors-w");
    if (best->trust <= 60) return NULL;
    const char *told = sfti_told_precision(info, name);
    if (told) return told;
    bool digit = name.len > whole.len + 1 && memcmp(name.data, whole.data, whole.len) == 0
              && name.data[whole.len + 1] == 'a';
    if (digit) return sfti_info_text(info, "int%c", name.data[whole.len]).data;
    if (name.len < 5) return NULL;
    const char *last = name.data + name.len - 5; /* "-4bit" */
    bool bits = last[0] == '-' && last[1] >= '1' && last[1] <= '8' && last[2] == 'b';
    return bits ? sfti_info_text(info, "int%c", last[1]).data : NULL;
}

/* Codes whose width only declarations tell are as many as that says. */
static void settle_weights(sfti_weights *weights, uint32_t bits) {
    bool fits = weights->undecided == 0
             || (bits > 0 && sfti_add(weights->known, weights->undecided / bits, &weights->known));
    if (weights->hidden || !fits) weights->known = SFTI_WEIGHTS_HIDDEN;
    weights->hidden = false;
    weights->undecided = 0;
}

static void settle_all_weights(sft_info *info) {
    const char *told = info->weights.undecided > 0 ? declared_precision(info) : NULL;
    size_t len = told ? strlen(told) : 0;
    uint32_t bits = len > 0 && told[len - 1] >= '1' && told[len - 1] <= '8'
                  ? (uint32_t)(told[len - 1] - '0') : 0;
    settle_weights(&info->weights, bits);
    if (info->weights.known == 0) info->weights.known = SFTI_WEIGHTS_HIDDEN;
    for (sfti_component *part = info->components.first; part; part = part->next)
        settle_weights(&part->weights, bits);
}

/* A configuration that outlived the codes that it is about. What a GGUF says is of blocks that are
 * given as values. */
static void drop_undone(sft_info *info) {
    sfti_fact **link = &info->facts[SFT_FACT_QUANTIZATION];
    while (*link) {
        bool blocks = sfti_starts_with((*link)->source, "header:gguf.");
        if (blocks) link = &(*link)->next;
        else *link = (*link)->next;
    }
}

void sfti_info_resolve(sft_info *info) {
    if (info->is_plain) drop_undone(info);
    const shown seen = what_is_shown(info);
    if (info->facts[SFT_FACT_ARCHITECTURE] || info->facts[SFT_FACT_BASE_MODEL])
        exclude_architectures(info, &seen);
    for (int i = 0; i < SFT_FACT_COUNT; i++) {
        if (i == SFT_FACT_PREDICTION_TYPE) drop_epsilon(info);
        if (!info->facts[i]) continue;
        info->facts[i] = sorted_facts(i == SFT_FACT_ARCHITECTURE ? info->records : NULL,
                                      info->facts[i]);
        if (i == SFT_FACT_VARIANT) {
            drop_variants(info);
            join_variants(info);
        }
        if (i == SFT_FACT_ARCHITECTURE || i == SFT_FACT_QUANTIZATION)
            prefer_child(info->records, &info->facts[i]);
        cut_facts(info->facts[i]);
        sfti_fact *best = info->facts[i];
        if (best && best->value.type == SFTI_LIST) /* its text is for sft_info_fact */
            best->value.text = sfti_info_joined(info, best->value.items, best->value.count, ", ");
    }
    if (info->guesses_bits) info->precision = declared_precision(info);
    settle_all_weights(info);
    /* What is declared an adapter is one, whatever its tensors are called. */
    const sfti_fact *kind = info->facts[SFT_FACT_KIND];
    if (kind && (sfti_is(kind->value.text, "adapter") || sfti_is(kind->value.text, "control_lora")))
        info->adapter.present = true;
    info->declared_rank = sorted_facts(NULL, info->declared_rank);
    info->declared_alpha = sorted_facts(NULL, info->declared_alpha);
    if (info->declared_alpha) take_alpha(info);
    if (info->fitting && info->fitting->bases[0]) find_bases_conflict(info);
    if (seen.family) find_family_conflict(info, &seen);
    if (info->facts[SFT_FACT_ARCHITECTURE]) find_excluded_conflict(info);
    settle_components(info);
    for (size_t i = 0; i < SFTI_COUNT(conflict_rows); i++) {
        const sfti_fact *facts = info->facts[conflict_rows[i].field];
        if (facts && facts->next)
            find_conflict(info, sft_fact_name(conflict_rows[i].field), facts,
                          conflict_rows[i].agree);
    }
    if (info->declared_rank)
        find_range_conflict(info, "adapter.rank", &info->adapter.rank, info->declared_rank,
                            info->adapter.conv_rank);
    if (info->declared_alpha && !info->adapter.root_in_alpha)
        find_range_conflict(info, "adapter.alpha", &info->adapter.alpha, info->declared_alpha, 0);
    if (info->links.first) sfti_info_civitai_links(info);
    if (info->civitai.first) {
        find_id_conflict(info, "civitai.model_id", false);
        find_id_conflict(info, "civitai.version_id", true);
        order_civitai(info);
    }
    for (size_t i = 0; i < SFTI_COUNT(info->weight_bounds); i++)
        info->weight_bounds[i] = sorted_facts(NULL, info->weight_bounds[i]);
    sfti_info_words(info);
    if (!info->code) sfti_info_prompts(info);
}
