/* Which tensors are left as they are where a model is quantised: rows "spare". Tests:
 * test_records.c. */
#include "label/info.h"

#include <string.h>

/* "*" is any bytes, none too. Only the last star ever needs to take more. */
static bool fits(sft_span pattern, sft_span text) {
    size_t p = 0, t = 0, star = SIZE_MAX, taken = 0;
    for (;;) {
        if (p < pattern.len && pattern.data[p] == '*') {
            star = ++p;
            taken = t;
        } else if (p == pattern.len && t == text.len) {
            return true;
        } else if (p < pattern.len && t < text.len && pattern.data[p] == text.data[t]) {
            p++, t++;
        } else {
            if (star == SIZE_MAX || taken >= text.len) return false;
            t = ++taken;
            p = star;
        }
    }
}

/* Whether a pattern is the name's, or of what stands behind a prefix of a denoiser. */
static bool fits_name(const sfti_records *records, sft_span pattern, sft_span name) {
    if (fits(pattern, name)) return true;
    SFTI_EACH_ROW(row, records, SFTI_PREFIXES, SFTI_DENOISERS) {
        sft_span rest = sfti_row_text(row), prefix;
        while (sfti_next_said(&rest, &prefix))
            if (prefix.len > 0 && name.len > prefix.len
                && memcmp(name.data, prefix.data, prefix.len) == 0
                && fits(pattern, sfti_from(name, prefix.len)))
                return true;
    }
    return false;
}

const sfti_record_row *sfti_spared(const sfti_records *records, sft_span architecture,
                                   sft_span name, sft_span *pattern) {
    const sfti_record *of = sfti_record_with(records, architecture, SFTI_SPARE, SFTI_SPARE);
    SFTI_EACH_ROW(row, records, SFTI_SPARE, 0) {
        const sfti_record *record = sfti_row_record(records, row);
        sft_span rest = sfti_row_text(row);
        if (record != of && record->type != SFTI_SEVERAL) continue;
        while (sfti_next_said(&rest, pattern))
            if (fits_name(records, *pattern, name)) return row;
    }
    *pattern = (sft_span){ "", 0 };
    return NULL;
}
