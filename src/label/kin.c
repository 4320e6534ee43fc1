/* Which architecture descends from which, and which take each other's adapters, VAEs and text
 * encoders. */
#include "label/info.h"

#include "base/json_lex.h"
#include "label/records/read.h"

#include <string.h>

#define SIBLINGS_MOST 8 /* steps at most: siblings may be a ring, parents are none (read.c) */

/* ── Parents ── */

/* A name in full; "vit_*": what begins so and goes on; "resnet#*": and goes on with a digit. */
static bool is_member(sft_span name, sft_span pattern) {
    bool open = pattern.len > 1 && pattern.data[pattern.len - 1] == '*';
    if (!open) return sfti_same_id(name, pattern);
    pattern.len--;
    bool digit = pattern.data[pattern.len - 1] == '#';
    if (digit) pattern.len--;
    return name.len > pattern.len && memcmp(name.data, pattern.data, pattern.len) == 0
        && (!digit || sfti_lex_digit(name.data[pattern.len]));
}

/* What a name belongs to; NULL: nothing. *kin: how. */
static const sfti_record *parent_of(const sfti_records *records, sft_span name, sfti_kin *kin) {
    static const sfti_record_type types[] = { SFTI_MODEL, SFTI_QUANTISATION };
    *kin = SFTI_KIN_MEMBER;
    for (size_t i = 0; i < SFTI_COUNT(types); i++) {
        const sfti_record *record = sfti_record_find(records, types[i], name);
        if (!record) continue;
        *kin = record->kin;
        return record->parent;
    }
    static const sfti_word words[] = { SFTI_MEMBERS, SFTI_BRANCH };
    for (size_t i = 0; i < SFTI_COUNT(words); i++)
        for (const sfti_record_row *row = sfti_rows(records, words[i], 0); row;
             row = sfti_rows_next(records, row)) {
            sft_span rest = sfti_row_text(row), pattern;
            if (!sfti_row_may_say(row, name)) continue;
            while (sfti_next_said(&rest, &pattern)) {
                if (is_member(name, pattern)) return sfti_row_record(records, row);
                if (words[i] == SFTI_BRANCH) break; /* what follows is its label */
            }
        }
    return NULL;
}

bool sfti_record_within(const sfti_record *record, sft_span id) {
    for (; record; record = record->parent)
        if (sfti_same_id(sft_span_cstr(record->id), id)) return true;
    return false;
}

bool sfti_architecture_within(const sfti_records *records, sft_span a, sft_span b) {
    sfti_kin kin;
    return sfti_same_id(a, b) || sfti_record_within(parent_of(records, a, &kin), b);
}

bool sfti_record_over(const sfti_records *records, const sfti_record *a, const sfti_record *b) {
    for (const sfti_record *of = a; of; of = of->parent) {
        if (of == b) return a != b;
        for (const sfti_record_row *row = NULL;
             (row = sfti_record_row_of(records, of, SFTI_OVER, row));) {
            sft_span rest = sfti_row_text(row), id;
            while (sfti_next_said(&rest, &id)) {
                const sfti_record *under = sfti_record_find(records, of->type, id);
                for (; under; under = under->parent)
                    if (under == b) return true;
            }
        }
    }
    return false;
}

bool sfti_related_architectures(const sfti_records *records, sft_span a, sft_span b) {
    return sfti_architecture_within(records, a, b) || sfti_architecture_within(records, b, a);
}

const char *sfti_common_architecture(const sfti_records *records, const char *a, const char *b) {
    sfti_kin kin;
    if (!b) return NULL;
    while (a) {
        if (sfti_architecture_within(records, sft_span_cstr(b), sft_span_cstr(a))) return a;
        const sfti_record *parent = parent_of(records, sft_span_cstr(a), &kin);
        a = parent ? parent->id : NULL;
    }
    return NULL;
}

const sfti_record *sfti_record_with(const sfti_records *records, sft_span architecture, sfti_word a,
                                    sfti_word b) {
    sfti_kin kin;
    const sfti_record *record = sfti_record_find(records, SFTI_MODEL, architecture);
    if (!record) record = parent_of(records, architecture, &kin);
    for (; record; record = record->parent)
        if (sfti_record_row_of(records, record, a, NULL)
            || sfti_record_row_of(records, record, b, NULL))
            return record;
    return NULL;
}

sft_span sfti_predicted(const sfti_records *records, sft_span architecture) {
    const sfti_record *of = sfti_record_with(records, architecture, SFTI_PREDICTS, SFTI_PREDICTS);
    if (of) return sfti_record_word(records, of, SFTI_PREDICTS);
    return sft_span_cstr(sfti_record_find(records, SFTI_MODEL, architecture) ? "flow" : "");
}

/* ── Layers ── */

/* A model is in any one of the families of a group. */
sft_span sfti_record_group(const sfti_records *records, sfti_record_type type, sft_span id) {
    return sfti_record_word(records, sfti_record_find(records, type, id), SFTI_GROUP);
}

enum { OF_WORDS = 1, OF_NOISE = 2, OF_LATENTS = 4, OF_SENSES = 8 };

static unsigned class_of_kind(sft_span kind) {
    static const struct { const char *kind; unsigned classes; } rows[] = {
        { "language_model", OF_WORDS },  { "text_encoder", OF_WORDS },
        { "diffusion_model", OF_NOISE }, { "checkpoint", OF_NOISE },
        { "controlnet", OF_NOISE },      { "control_lora", OF_NOISE },
        { "ip_adapter", OF_NOISE },      { "t2i_adapter", OF_NOISE },
        { "motion_module", OF_NOISE },   { "vae", OF_LATENTS },
        { "image_encoder", OF_SENSES },  { "vision_model", OF_SENSES },
        { "audio_model", OF_SENSES },    { "upscaler", OF_SENSES },
        { "detector", OF_SENSES },
    };
    for (size_t i = 0; i < SFTI_COUNT(rows); i++)
        if (sfti_is(kind, rows[i].kind)) return rows[i].classes;
    return 0;
}

unsigned sfti_record_classes(const sfti_records *records, const sfti_record *record) {
    unsigned all = 0;
    sft_span kind;
    for (; record; record = record->parent) {
        const sfti_record_row *row = NULL;
        while ((row = sfti_record_row_of(records, record, SFTI_TENSORS, row))) {
            const char *told = sfti_row_kind(records, row);
            if (told) all |= class_of_kind(sft_span_cstr(told));
        }
        while ((row = sfti_record_row_of(records, record, SFTI_MODEL_TYPE, row)))
            if (sfti_row_has(row, "kind", &kind)) all |= class_of_kind(kind);
        if (sfti_record_row_of(records, record, SFTI_DENOISER_PART, NULL)
            || sfti_record_row_of(records, record, SFTI_VAES, NULL))
            all |= OF_NOISE;
    }
    return all;
}

/* What models with tensors of that kind never are. Models of words may have towers that see and
 * hear, and those that see or hear an encoder of words; in a shard, either stands alone. */
static unsigned classes_without(sft_span kind) {
    const unsigned pictures = OF_NOISE | OF_LATENTS;
    switch (class_of_kind(kind)) {
    case OF_WORDS: return sfti_is(kind, "text_encoder") ? pictures : pictures | OF_SENSES;
    case OF_NOISE: return OF_WORDS | OF_LATENTS;
    case OF_LATENTS: return OF_WORDS | OF_NOISE;
    case OF_SENSES: return pictures;
    default: return 0;
    }
}

bool sfti_architecture_may_have(const sfti_records *records, sft_span name, sft_span family,
                                sft_span kind) {
    sfti_kin kin;
    const sfti_record *of = sfti_record_find(records, SFTI_MODEL, name);
    if (!of) of = parent_of(records, name, &kin);
    const sfti_record *told = sfti_record_with(records, name, SFTI_OF_FAMILY, SFTI_OF_FAMILY);
    sft_span found = sfti_record_group(records, SFTI_FAMILY, family);
    sft_span own = sfti_record_group(records, SFTI_FAMILY,
                                     sfti_record_word(records, told, SFTI_OF_FAMILY));
    unsigned classes = sfti_record_classes(records, of);
    if (own.len > 0 && found.len > 0) return sft_span_equal(own, found);
    bool denoises = sfti_is(kind, "diffusion_model") && classes & OF_NOISE;
    if (denoises && (sfti_is(found, "unet") || sfti_is(found, "transformer")))
        return sfti_is(found, sfti_denoiser_part(records, of));
    return classes == 0 || classes & ~classes_without(kind);
}

const char *sfti_denoiser_part(const sfti_records *records, const sfti_record *of) {
    while (of && !sfti_record_row_of(records, of, SFTI_DENOISER_PART, NULL)) of = of->parent;
    return of ? "unet" : "transformer";
}

/* ── Adapters ── */

static sfti_kin kin_of_child(const sfti_records *records, sft_span child) {
    sfti_kin kin;
    (void)parent_of(records, child, &kin);
    return kin;
}

static bool has_common_parent(const sfti_records *records, sft_span a, sft_span b) {
    sfti_kin kin;
    const sfti_record *parent = parent_of(records, a, &kin);
    for (; parent; parent = parent->parent)
        if (sfti_architecture_within(records, b, sft_span_cstr(parent->id))) return true;
    return false;
}

const sfti_record *sfti_sibling_root(const sfti_records *records, const sfti_record *record) {
    for (int i = 0; i < SIBLINGS_MOST; i++) {
        sft_span sibling = sfti_record_word(records, record, SFTI_SIBLING);
        const sfti_record *of = sfti_record_find(records, record->type, sibling);
        if (!of) break;
        record = of;
    }
    return record;
}

bool sfti_are_siblings(const sfti_records *records, sft_span a, sft_span b) {
    const sfti_record *x = sfti_record_find(records, SFTI_MODEL, a);
    const sfti_record *y = sfti_record_find(records, SFTI_MODEL, b);
    return x && y && sfti_sibling_root(records, x) == sfti_sibling_root(records, y);
}

/* Two children of one parent are never the same. */
sfti_kin sfti_architecture_kin(const sfti_records *records, sft_span a, sft_span b) {
    if (sfti_same_id(a, b)) return SFTI_KIN_SAME;
    if (sfti_are_siblings(records, a, b)) return SFTI_KIN_UNSURE;
    if (sfti_architecture_within(records, a, b)) return kin_of_child(records, a);
    if (sfti_architecture_within(records, b, a)) return kin_of_child(records, b);
    if (!has_common_parent(records, a, b)) return SFTI_KIN_NONE;
    bool unsure = kin_of_child(records, a) == SFTI_KIN_UNSURE
               || kin_of_child(records, b) == SFTI_KIN_UNSURE;
    return unsure ? SFTI_KIN_NONE : SFTI_KIN_DERIVED;
}

/* ── VAEs and text encoders ── */

sfti_kin sfti_kin_of_part(const sfti_records *records, sft_span architecture, sfti_word parts,
                          sft_span part) {
    const sfti_record *record = sfti_record_with(records, architecture, SFTI_VAES,
                                                 SFTI_TEXT_ENCODERS);
    const sfti_record_row *row = sfti_record_row_of(records, record, parts, NULL);
    sfti_kin best = row ? SFTI_KIN_NONE : SFTI_KIN_UNSURE;
    sft_span rest = sfti_row_text(row), word;
    while (sfti_next_said(&rest, &word)) {
        sfti_kin kin = sfti_architecture_kin(records, word, part);
        if (kin > best) best = kin;
    }
    /* VAEs: trained anew, all of them */
    return parts == SFTI_VAES && best == SFTI_KIN_MEMBER ? SFTI_KIN_DERIVED : best;
}

/* ── Branches ── */

const sfti_record_row *sfti_branch(const sfti_records *records, sft_span label) {
    char word[64];
    SFTI_EACH_ROW(row, records, SFTI_BRANCH, 0) {
        sft_span rest = sfti_row_text(row), branch;
        if (!sfti_next_said(&rest, &branch) || branch.len >= sizeof word) continue;
        memcpy(word, branch.data, branch.len);
        word[branch.len] = 0;
        if (sfti_contains(label, word)) return row;
    }
    return NULL;
}
