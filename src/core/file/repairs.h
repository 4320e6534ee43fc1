/* What sft_repair can correct: the table that a scan asks before a hint offers a repair, and that
 * the repair works by. */
#ifndef SFTI_FILE_REPAIRS_H
#define SFTI_FILE_REPAIRS_H

#include "format/format.h"
#include "safetensors.h"

#define SFTI_FINDINGS_MANY 1000 /* a scan stops there: there may be more */

typedef struct sfti_repair_row {
    sft_code code;    /* of a finding, or SFT_OK: */
    const char *note; /* name of a note */
    const char *name, *done;
} sfti_repair_row;

/* NULL: cannot be repaired. */
const sfti_repair_row *sfti_repair_of_code(sft_code code);
const sfti_repair_row *sfti_repair_of_note(const char *note);
const sfti_repair_row *sfti_repair_of_finding(const sfti_model *model, const sft_error *found);

/* Whatever was found: a tensor is written only if dtype and shape agree with its offsets, and
 * its bytes are in a file of this size. */
sft_code sfti_repair_check(const sfti_model *model, uint64_t size, const sft_tensor *t,
                           sft_error *err);

/* Whether a repair corrects all findings of a scan. verdict: its error, or NULL. */
bool sfti_repairs_all(const sfti_model *model, const sft_error *verdict,
                      const sft_finding *findings, size_t count, uint64_t size);

#endif
