/* What model an adapter is for, by the names and sizes of the layers it adapts.
 *
 * Clauses of rows "adapter" and "structure" are about forms:
 * "^double_blocks_#_img_mlp_0$[in=3072|4096]" is text between optional anchors, "#" any number but
 * at the end of a name; with a '.' it is looked for in the name as it is. "te2:" asks the second
 * text encoder, "te:" the only one; else the main part. Conditions, separated by ',': in=, out=
 * (sizes, 0 = not to be seen), in>=1, n>= (first number), t>= (number after transformer_blocks),
 * each (of each number from the first to the last, and so of every form that the pattern fits). */
#include "label/tensors/fitting.h"

#include "base/json_lex.h"

#include <string.h>

/* ── Clauses ── */

static bool condition_holds(sft_span condition, const sfti_form *form) {
    if (sfti_is(condition, "each")) return form->times == form->highest - form->lowest + 1;
    static const char *const names[] = { "in=", "out=", "in>=", "n>=", "t>=" };
    uint64_t least = 0;
    for (int i = 0; i < 5; i++) {
        if (!sfti_begins(condition, names[i])) continue;
        sft_span value = sfti_from(condition, strlen(names[i]));
        if (i == 0) return sfti_size_fits(value, form->in);
        if (i == 1) return sfti_size_fits(value, form->out);
        uint64_t has = i == 2 ? form->in : i == 3 ? form->highest : form->inner;
        return sfti_parse_uint(value, &least) && has >= least;
    }
    return false;
}

/* "#" in the pattern stands for the digits of a raw name. */
static bool pattern_at(sft_span pattern, sft_span text, size_t at, size_t *end) {
    size_t i = at;
    for (size_t k = 0; k < pattern.len; k++) {
        if (i >= text.len) return false;
        if (pattern.data[k] == '#' && sfti_lex_digit(text.data[i])) {
            while (i < text.len && sfti_lex_digit(text.data[i])) i++;
            continue;
        }
        if (text.data[i++] != pattern.data[k]) return false;
    }
    *end = i;
    return true;
}

uint64_t sfti_letter_pairs(sft_span text) {
    uint64_t pairs = 0;
    unsigned before = 0;
    for (size_t i = 0; i < text.len; i++) {
        const char c = text.data[i];
        unsigned letter = (c | 0x20) >= 'a' && (c | 0x20) <= 'z' ? (unsigned)(uint8_t)c : 0;
        if (letter && before) pairs |= UINT64_C(1) << (before * 31 + letter * 7) % 64;
        before = letter;
    }
    return pairs;
}

static bool pattern_fits(sft_span pattern, const sfti_form *form) {
    sft_span text = memchr(pattern.data, '.', pattern.len) ? form->raw : form->text;
    bool at_start = pattern.len > 0 && *pattern.data == '^', at_end;
    if (at_start) pattern.data++, pattern.len--;
    at_end = pattern.len > 0 && pattern.data[pattern.len - 1] == '$';
    if (at_end) pattern.len--;
    for (size_t i = 0; i + pattern.len <= text.len || i == 0; i++) {
        size_t end;
        /* to where it may begin */
        if (!at_start && i < text.len && pattern.len > 0 && *pattern.data != '#') {
            const char *next = memchr(text.data + i, *pattern.data, text.len - i);
            if (!next) return false;
            i = (size_t)(next - text.data);
        }
        if (pattern_at(pattern, text, i, &end) && (!at_end || end == text.len)) return true;
        if (at_start) return false;
    }
    return false;
}

const sfti_form *sfti_forms_find(const sfti_forms *forms, sft_span clause) {
    static const char *const encoders[] = { "te:", "te1:", "te2:", "te3:" };
    unsigned part = SFTI_PART_MAIN;
    for (unsigned i = 0; i < SFTI_COUNT(encoders) && part == SFTI_PART_MAIN; i++)
        if (sfti_begins(clause, encoders[i])) part = SFTI_PART_TE + i;
    if (part != SFTI_PART_MAIN)
        clause = sfti_from(clause, strlen(encoders[part - SFTI_PART_TE]));
    sft_span conditions = { NULL, 0 };
    const char *bracket = clause.len > 0 ? memchr(clause.data, '[', clause.len) : NULL;
    if (bracket) {
        conditions = (sft_span){ bracket + 1, clause.len - (size_t)(bracket - clause.data) - 2 };
        clause.len = (size_t)(bracket - clause.data);
    }
    uint64_t pairs = sfti_letter_pairs(clause);
    bool each = sfti_is(conditions, "each");
    const sfti_form *found = NULL;
    for (size_t i = 0; i < forms->count && (each || !found); i++) {
        const sfti_form *form = &forms->forms[i];
        if (pairs & ~form->letters || form->part != (sfti_part)part || !pattern_fits(clause, form))
            continue;
        bool holds = true;
        for (sft_span rest = conditions, one; holds && sfti_next_piece(&rest, ',', &one);)
            holds = condition_holds(one, form);
        if (each && !holds) return NULL;
        if (holds && !found) found = form;
    }
    return found;
}

static sfti_truth form_fits(const void *ctx, sft_span text, const sft_tensor **found) {
    const sfti_form *form = sfti_forms_find(ctx, text);
    if (form) *found = form->tensor;
    return form ? SFTI_TRUE : SFTI_FALSE;
}

bool sfti_forms_hold(const sfti_forms *forms, sft_span clauses) {
    return sfti_hold(forms, form_fits, clauses, NULL, NULL);
}

/* ── Telling ── */

const char *sfti_forms_target(const sfti_forms *forms, int *sure) {
    sft_info *info = forms->info;
    const sfti_records *records = info->records;
    sfti_fitting *fitting = info->fitting;
    sfti_evidence evidence = { { NULL }, 0 };
    const sfti_record *base = fitting ? fitting->base : NULL;
    const sfti_record_row *row = NULL;
    int trust = base ? fitting->trust : 0;
    if (base) row = sfti_fitting_row(records, fitting);
    if (!base || trust < 100) { /* what rows say of models that the modules do not exclude */
        sfti_held_rows held = { .count = 0 };
        const sfti_record_row *one;
        for (size_t i = 0; (one = sfti_table_row(records, SFTI_ADAPTERS, i)); i++) {
            sft_span id = sft_span_cstr(sfti_row_record(records, one)->id);
            if (sfti_forms_hold(forms, sfti_row_text(one)) && !sfti_fitting_excludes(info, id))
                sfti_held_add(&held, one, false);
        }
        const sfti_chosen chosen = sfti_held_choose(records, &held);
        if (chosen.row && chosen.row->trust > trust) {
            row = chosen.row;
            base = sfti_row_record(records, row);
            trust = row->trust;
            (void)sfti_hold(forms, form_fits, sfti_row_text(row), &evidence, NULL);
        } else if (!base && chosen.common && (!fitting || fitting->known == 0)) {
            base = chosen.common;
            trust = SFTI_GUESS;
        }
    }
    if (base && evidence.count == 0 && fitting && fitting->first)
        sfti_add_evidence(info, fitting->first);
    for (size_t i = 0; i < evidence.count; i++) sfti_add_evidence(info, evidence.tensors[i]);
    if (info->evidence.count == 0) sfti_add_evidence(info, forms->first);
    *sure = trust;
    if (!base || (fitting && fitting->bases[0])) return NULL;
    if (fitting && fitting->known == 0) {
        fitting->base = base;
        fitting->told = fitting->unknown;
        fitting->encoders = true;
        for (size_t i = 0; i < forms->count; i++)
            fitting->encoders = fitting->encoders && forms->forms[i].part != SFTI_PART_MAIN;
    }
    if (!sfti_info_best(info, SFT_FACT_ARCHITECTURE))
        sfti_add_row_fact(info, SFT_FACT_ARCHITECTURE, base->id, trust, row);
    sfti_add_variants(info, forms, form_fits, SFTI_ADAPTER_VARIANT, base->id, trust);
    return base->id;
}
