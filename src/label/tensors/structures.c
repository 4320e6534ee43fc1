/* How a model is built, where several models are built so: its family. Clauses as in
 * targets.c; a model's tensors are looked at by their names without ".weight". */
#include "label/tensors/adapters.h"

const char *sfti_forms_family(const sfti_forms *forms, bool adapter) {
    const sfti_records *records = forms->info->records;
    const unsigned of = adapter ? SFTI_OF_ADAPTERS : SFTI_OF_MODELS;
    const sfti_record_row *row;
    sfti_held_rows held = { .count = 0 };
    for (size_t i = 0; (row = sfti_table_row(records, SFTI_STRUCTURES, i)); i++)
        if (row->sub & of && sfti_forms_hold(forms, sfti_row_text(row)))
            sfti_held_add(&held, row, false);
    row = held.count > 0 ? sfti_held_choose(records, &held).row : NULL;
    if (!row) return NULL;
    const char *kind = sfti_row_kind(records, row);
    sfti_add_row_fact(forms->info, SFT_FACT_FAMILY, sfti_row_record(records, row)->id, row->trust,
                      row);
    return kind && !sfti_forms_exceed(forms, kind) ? kind : NULL;
}

bool sfti_forms_exceed(const sfti_forms *forms, const char *kind) {
    const sfti_records *records = forms->info->records;
    const sfti_record *of = sfti_record_find(records, SFTI_KIND, sft_span_cstr(kind));
    const sfti_record_row *row = NULL;
    while (of && (row = sfti_record_row_of(records, of, SFTI_EXCESS, row)))
        if (sfti_forms_hold(forms, sfti_row_text(row))) return true;
    return false;
}
