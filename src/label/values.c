/* The vocabularies of docs/json-vocabularies.md, as the records have them. */
#include "label/info.h"

static const struct value_row {
    sft_fact fact;
    bool closed;
    sfti_record_type type;
} value_rows[] = {
    { SFT_FACT_KIND, true, SFTI_KIND },
    { SFT_FACT_ARCHITECTURE, false, SFTI_MODEL },
    { SFT_FACT_VARIANT, false, SFTI_VARIANT },
    { SFT_FACT_PREDICTION_TYPE, true, SFTI_PREDICTION },
    { SFT_FACT_QUANTIZATION, false, SFTI_QUANTISATION },
    { SFT_FACT_FAMILY, false, SFTI_FAMILY },
};

bool sft_fact_values(sft_fact fact, bool (*take)(void *ctx, const char *value), void *ctx) {
    for (size_t i = 0; i < SFTI_COUNT(value_rows); i++) {
        if (value_rows[i].fact != fact) continue;
        const sfti_records *records = sfti_records_built_in();
        for (size_t n = 0; n < sfti_record_count(records); n++) {
            const sfti_record *record = sfti_record_at(records, n);
            if (record->type == value_rows[i].type && !take(ctx, record->id)) break;
        }
        return value_rows[i].closed;
    }
    return false;
}
