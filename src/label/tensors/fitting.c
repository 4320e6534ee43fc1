/* Which models have the modules that an adapter adapts, and which of them it is for.
 *
 * A module is known if any model has it, by name, number and sizes as far as these are to be seen.
 * The models that have every known module are left: one, several that have an ancestor or a
 * sibling in common, or several of which one is adapted as a whole. */
#include "label/tensors/fitting.h"

#include <string.h>

#define FIT_STACK 16 /* modules that show how many blocks are adapted */

/* ── Sets of models ── */

static bool has_model(const uint64_t set[SFTI_FIT_WORDS], size_t i) {
    return set[i / 64] >> i % 64 & 1;
}

static bool is_empty(const uint64_t set[SFTI_FIT_WORDS]) {
    uint64_t any = 0;
    for (size_t i = 0; i < SFTI_FIT_WORDS; i++) any |= set[i];
    return any == 0;
}

/* ── Answers ── */

typedef struct fit_answer { const sfti_record *record; bool sure; } fit_answer;

/* What all of a set are or descend from; siblings are what one of them is a sibling of. */
static const sfti_record *common_of(const sfti_records *records, const sfti_fitting *out,
                                    const uint64_t set[SFTI_FIT_WORDS], bool siblings) {
    const char *common = NULL;
    bool any = false, itself = false;
    for (size_t i = 0; i < out->count; i++) {
        if (!has_model(set, i)) continue;
        const sfti_record *record = out->models[i].record;
        if (siblings) record = sfti_sibling_root(records, record);
        common = any ? sfti_common_architecture(records, common, record->id) : record->id;
        if (!common) return NULL;
        any = true;
    }
    const sfti_record *found = sfti_model_record(records, common);
    for (size_t i = 0; i < out->count && !itself; i++)
        itself = has_model(set, i) && out->models[i].record == found;
    return itself || !siblings ? found : NULL;
}

/* Modules in places of rows that are adapted as a whole: trainers mostly take all of a kind. stacks
 * takes bits of how their names begin. */
static uint64_t covered_by(const sfti_fitting *out, size_t i, uint64_t *stacks) {
    uint64_t all = 0;
    for (int n = 0; n < 3 && i < out->count; n++, i = out->models[i].of) {
        all += out->models[i].covered;
        *stacks |= out->models[i].stacks;
    }
    return all;
}

/* The model of a set, or what all of it descend from, or a sibling; sure unless another of it has
 * layers of its own, which are not seen. */
static fit_answer common_answer(const sfti_records *records, const sfti_fitting *out,
                                const uint64_t set[SFTI_FIT_WORDS]) {
    const sfti_record *common = common_of(records, out, set, false);
    bool itself = false, others = false;
    if (!common) common = common_of(records, out, set, true);
    for (size_t i = 0; common && i < out->count; i++) {
        const sfti_record *record = out->models[i].record;
        if (!has_model(set, i)) continue;
        itself = itself || record == common;
        others = others || (record != common
                            && sfti_architecture_kin(records, sft_span_cstr(common->id),
                                                     sft_span_cstr(record->id))
                                   <= SFTI_KIN_UNSURE);
    }
    return (fit_answer){ common, common && !(itself && others) };
}

/* Trainers mostly adapt all layers of a kind: of models that have every module, the one that is
 * adapted as a whole is meant, and a stack of blocks that is not may be another model's. One stack
 * that is proves nothing: it may be the first blocks of a deeper one. */
static fit_answer answer_of(const sfti_records *records, const sfti_fitting *out,
                            const uint64_t set[SFTI_FIT_WORDS]) {
    uint64_t best[SFTI_FIT_WORDS] = { 0 }, most = 0, least = 0, any = 0, stacks = 0;
    fit_answer answer = common_answer(records, out, set);
    for (size_t i = 0; i < out->count; i++)
        if (has_model(set, i) && covered_by(out, i, &any) > most) most = covered_by(out, i, &any);
    if (answer.sure) {
        answer.sure = out->known < FIT_STACK || most >= out->known / 4;
        return answer;
    }
    /* The models of which most is adapted as a whole, if that is half of the modules. */
    const uint64_t half = (out->known + 1) / 2;
    for (size_t i = 0; i < out->count && most >= half && most > 0; i++)
        if (has_model(set, i) && covered_by(out, i, &any) == most)
            best[i / 64] |= UINT64_C(1) << i % 64;
    bool complete = most == out->known && most >= 4 * FIT_STACK;
    if (is_empty(best) || (answer.record && !complete)) return answer;
    for (size_t i = 0; i < out->count; i++) {
        const uint64_t covered = has_model(set, i)
                               ? covered_by(out, i, has_model(best, i) ? &stacks : &any) : 0;
        if (!has_model(best, i) && covered > least) least = covered;
    }
    fit_answer whole = common_answer(records, out, best);
    if (!whole.record) return answer;
    whole.sure = whole.sure && complete && least <= most / 8 && (stacks & (stacks - 1)) != 0;
    return whole;
}

/* ── All ── */

typedef struct fit_covers {
    uint64_t bits[SFTI_FIT_MODELS][2], any[2];
} fit_covers;

/* What each model has of modules of a size: its own and those of what it is an heir of. */
static void sum_covers(const sfti_fitting *out, const sfti_sized *sized, fit_covers *covers) {
    memset(covers->bits, 0, out->count * sizeof *covers->bits);
    memset(covers->any, 0, sizeof covers->any);
    for (const sfti_cover *one = sized->covers; one; one = one->next)
        for (int i = 0; i < 2; i++) {
            covers->bits[one->model][i] |= one->bits[i];
            covers->any[i] |= one->bits[i];
        }
    for (int round = 0; round < 2; round++)
        for (size_t h = 0; h < out->heir_count; h++)
            for (int i = 0; i < 2; i++)
                covers->bits[out->heirs[h]][i] |=
                    covers->bits[out->models[out->heirs[h]].of][i];
}

/* Leaves in a set the models that have every one of the modules that any model has; false, and
 * nothing is done, if that is none. */
static bool keep_fitting(const sfti_fitting *out, const fit_covers *covers,
                         uint64_t set[SFTI_FIT_WORDS]) {
    uint64_t left[SFTI_FIT_WORDS] = { 0 };
    for (size_t m = 0; m < out->count; m++) {
        if (set[m / 64] == 0) m |= 63; /* none of these */
        else if (has_model(set, m) && !(covers->any[0] & ~covers->bits[m][0])
                 && !(covers->any[1] & ~covers->bits[m][1]))
            left[m / 64] |= UINT64_C(1) << m % 64;
    }
    if (is_empty(left)) return false;
    memcpy(set, left, sizeof left);
    return true;
}

/* Models that have every module that any has; those that have what the first have not, and how many
 * modules that is. False: what neither have. */
static bool join_modules(const sfti_forms *forms, sfti_fitting *out, fit_covers *covers,
                         uint64_t second[SFTI_FIT_WORDS], uint64_t *torn) {
    bool all = true;
    for (size_t m = 0; m < out->count; m++) {
        out->fits[m / 64] |= UINT64_C(1) << m % 64;
        second[m / 64] |= UINT64_C(1) << m % 64;
    }
    for (size_t i = 0; i < forms->count; i++)
        for (const sfti_sized *sized = forms->forms[i].sized; sized; sized = sized->next) {
            bool both = sized->in > 0 && sized->out > 0;
            sum_covers(out, sized, covers);
            uint64_t known = sfti_count_bits(covers->any), had = sfti_count_bits(sized->have);
            if (both) out->unknown += had - known;
            if (known == 0) continue;
            out->known += known;
            out->sized = out->sized || both;
            out->inside = out->inside || forms->forms[i].numbers.count > 0;
            if (!out->first) out->first = forms->forms[i].tensor;
            if (keep_fitting(out, covers, out->fits)) continue;
            *torn += known;
            all = keep_fitting(out, covers, second) && all;
        }
    return all;
}

/* Layers around the blocks are called alike in many models: whether no other has such names, of
 * whatever sizes. */
static bool has_own_names(const sfti_forms *forms, const sfti_record *record) {
    const sfti_records *records = forms->info->records;
    sfti_fitting *all = sfti_info_take_zeroed(forms->info, sizeof *all);
    for (size_t i = 0; i < forms->count; i++)
        for (sfti_sized *sized = forms->forms[i].sized; sized; sized = sized->next)
            sized->covers = NULL;
    if (all) sfti_fitting_read(forms, true, NULL, all);
    for (size_t i = 0; all && i < forms->count; i++)
        for (const sfti_sized *sized = forms->forms[i].sized; sized; sized = sized->next)
            for (const sfti_cover *one = sized->covers; one; one = one->next)
                if (!sfti_related_architectures(records, sft_span_cstr(record->id),
                                                sft_span_cstr(all->models[one->model].record->id)))
                    return false;
    return all != NULL;
}

void sfti_fitting_find(sfti_forms *forms) {
    sft_info *info = forms->info;
    const sfti_records *records = info->records;
    uint64_t second[SFTI_FIT_WORDS] = { 0 };
    uint64_t torn = 0;
    sfti_fitting *out = sfti_info_take(info, sizeof *out);
    fit_covers *covers = sfti_info_take(info, sizeof *covers);
    if (!out || !covers) return;
    memset(out, 0, offsetof(sfti_fitting, models));
    out->unknown = forms->beyond;
    sfti_fitting_read(forms, false, NULL, out);
    bool all = join_modules(forms, out, covers, second, &torn);
    info->fitting = out;
    if (out->known == 0) memset(out->fits, 0, sizeof out->fits);
    if (out->known == 0 || out->unknown > out->known) return;
    uint64_t known = out->known;
    out->known = known - torn;
    fit_answer answer = answer_of(records, out, out->fits);
    if (torn > 0) {
        out->known = torn;
        fit_answer other = answer_of(records, out, second);
        out->known = known;
        if (!all || !answer.record || !other.record) return;
        const char *common = sfti_common_architecture(
            records, sfti_sibling_root(records, answer.record)->id,
            sfti_sibling_root(records, other.record)->id);
        if (!common && out->unknown > 0) return; /* more likely of a model that is not known */
        if (!common) {
            out->bases[0] = answer.record;
            out->bases[1] = other.record;
            return;
        }
        answer = (fit_answer){ sfti_model_record(records, common),
                               false };
        for (size_t i = 0; i < SFTI_FIT_WORDS; i++) out->fits[i] |= second[i];
    }
    out->base = answer.record;
    bool sure = answer.sure && out->sized && out->unknown == 0
             && (out->inside || has_own_names(forms, answer.record));
    out->trust = sure ? 100 : SFTI_GUESS;
}

const sfti_record_row *sfti_fitting_row(const sfti_records *records, const sfti_fitting *fitting) {
    const sfti_record_row *own = sfti_record_row_of(records, fitting->base, SFTI_MODULES, NULL);
    const sfti_record_row *said = NULL;
    for (size_t i = 0; i < fitting->count; i++) {
        const sfti_record_row *one = NULL;
        if (!has_model(fitting->fits, i)) continue;
        for (size_t n = 0, m = i; n < 3 && m < fitting->count && !one; n++) {
            one = fitting->models[m].said;
            m = fitting->models[m].of;
        }
        if (fitting->models[i].record == fitting->base) return one ? one : own;
        if (one) said = one;
    }
    return said ? said : own;
}

/* ── What is declared ── */

/* Whether a model whose modules are not known is no denoiser at all. */
static bool is_other_kind(const sfti_records *records, const sfti_record *of) {
    const sfti_record_row *row = NULL;
    bool any = false;
    while ((row = sfti_record_row_of(records, of, SFTI_TENSORS, row))) {
        if (strcmp(sfti_row_kind(records, row), "diffusion_model") == 0) return false;
        any = true;
    }
    return any;
}

/* The text encoders of a model, where they are known. */
static sft_span encoders_of(const sfti_records *records, sft_span architecture) {
    const sfti_record *of = sfti_record_with(records, architecture, SFTI_VAES, SFTI_TEXT_ENCODERS);
    const sfti_record_row *row = sfti_record_row_of(records, of, SFTI_TEXT_ENCODERS, NULL);
    return sfti_row_text(row);
}

/* Whether a model lacks a text encoder of the one that an adapter of encoders alone is told for. */
static bool lacks_encoder(const sfti_records *records, sft_span told, sft_span named) {
    sft_span all = encoders_of(records, told), one, other;
    if (encoders_of(records, named).len == 0) return false;
    while (sfti_next_said(&all, &one)) {
        sft_span rest = encoders_of(records, named);
        bool has = false;
        while (!has && sfti_next_said(&rest, &other)) has = sft_span_equal(one, other);
        if (!has) return true;
    }
    return false;
}

bool sfti_fitting_excludes(const sft_info *info, sft_span architecture) {
    const sfti_fitting *fitting = info->fitting;
    const sfti_records *records = info->records;
    if (!fitting || fitting->unknown > fitting->known + fitting->told) return false;
    const sfti_record *of = sfti_record_with(records, architecture, SFTI_MODULES, SFTI_SIBLING);
    sft_span id = of ? sft_span_cstr(of->id) : architecture;
    bool any = false;
    for (size_t i = 0; i < fitting->count; i++) {
        if (!sfti_record_within(fitting->models[i].record, id)) continue;
        if (has_model(fitting->fits, i)) return false;
        any = true;
    }
    if (fitting->encoders)
        return lacks_encoder(records, sft_span_cstr(fitting->base->id), architecture);
    if (fitting->known == 0)
        return any && fitting->base && is_other_kind(records, fitting->base);
    const sfti_record *named = sfti_record_find(records, SFTI_MODEL, architecture);
    return any || (named && is_other_kind(records, named));
}
