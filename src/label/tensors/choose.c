/* Which of the rows that hold tells what a model is. Rows have no order: one is over another if its
 * record is over the other's, if it is a model's and the other of several, or, between strangers,
 * if it is surer, counting what it is over. Tests: test_choose.c. */
#include "label/tensors/signatures.h"

/* However many rows a user has, those of the library have places. */
void sfti_held_add(sfti_held_rows *held, const sfti_record_row *row, bool hidden) {
    size_t users = 0;
    for (size_t i = 0; row->text > 0 && i < held->count && i < SFTI_HELD; i++)
        users += held->rows[i]->text > 0;
    if (users == SFTI_HELD / 2) return;
    if (held->count < SFTI_HELD) {
        held->rows[held->count] = row;
        held->hidden[held->count] = hidden;
    }
    if (held->count <= SFTI_HELD) held->count++;
}

/* By what records say, not by trust. */
static bool row_over(const sfti_records *records, const sfti_record_row *a,
                     const sfti_record_row *b) {
    const sfti_record *of_a = sfti_row_record(records, a), *of_b = sfti_row_record(records, b);
    if (a->record == b->record) return a->trust > b->trust || (a->trust == b->trust && a < b);
    if (of_a->type == SFTI_SEVERAL || of_b->type == SFTI_SEVERAL)
        return of_a->type != SFTI_SEVERAL || (of_b->type == SFTI_SEVERAL && a->trust > b->trust);
    return sfti_record_over(records, of_a, of_b);
}

/* The nearest that two records are or descend from. */
static const sfti_record *common_record(const sfti_records *records, const sfti_record *a,
                                        const sfti_record *b) {
    if (!a || !b || !a->id || !b->id) return NULL;
    const char *id = sfti_common_architecture(records, a->id, b->id);
    return id ? sfti_record_find(records, a->type, sft_span_cstr(id)) : NULL;
}

sfti_chosen sfti_held_choose(const sfti_records *records, const sfti_held_rows *held) {
    sfti_chosen chosen = { NULL, NULL, { NULL, NULL } };
    bool under[SFTI_HELD] = { false }, passed[SFTI_HELD] = { false }, hidden = false;
    int sure[SFTI_HELD];
    size_t tops = 0;
    if (held->count == 0 || held->count > SFTI_HELD) return chosen;
    for (size_t i = 0; i < held->count; i++) { /* the trust of each row, or of what it is over */
        sure[i] = held->rows[i]->trust;
        for (size_t j = 0; j < held->count; j++)
            if (held->rows[j]->trust > sure[i] && row_over(records, held->rows[i], held->rows[j]))
                sure[i] = held->rows[j]->trust;
    }
    for (size_t i = 0; i < held->count; i++) {
        for (size_t j = 0; j < held->count && !passed[i]; j++) {
            const sfti_record_row *a = held->rows[i], *b = held->rows[j];
            if (i == j || row_over(records, a, b)) continue;
            bool over = row_over(records, b, a);
            passed[i] = (over || sure[j] > sure[i]) && !held->hidden[j];
            under[i] = under[i] || over || passed[i];
        }
        if (under[i]) continue;
        if (tops < 2) chosen.tops[tops] = held->rows[i];
        hidden = hidden || held->hidden[i];
        tops++;
    }
    if (tops == 1 && !hidden) chosen.row = chosen.tops[0];
    bool first = true; /* what hides may be any of what it is over, but what is seen is over */
    for (size_t i = 0; i < held->count && !chosen.row; i++) {
        if (hidden ? passed[i] : under[i]) continue;
        const sfti_record *of = sfti_row_record(records, held->rows[i]);
        chosen.common = first ? of : common_record(records, chosen.common, of);
        first = false;
    }
    if (tops < 2 || hidden) chosen.tops[0] = chosen.tops[1] = NULL;
    return chosen;
}

const char *sfti_held_kind(const sfti_records *records, const sfti_held_rows *held) {
    const char *kind = held->count > 0 ? sfti_row_kind(records, held->rows[0]) : NULL;
    for (size_t i = 1; kind && i < held->count && i < SFTI_HELD; i++) {
        const char *other = sfti_row_kind(records, held->rows[i]);
        if (!other || strcmp(kind, other) != 0) return NULL;
    }
    return held->count > SFTI_HELD ? NULL : kind;
}
