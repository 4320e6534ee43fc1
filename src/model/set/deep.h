/* What check --deep tells of values, in its JSON. */
#ifndef SFTI_SET_DEEP_H
#define SFTI_SET_DEEP_H

#include "base/json.h"
#include "safetensors_report.h"

/* "deep": the counts, or null for NULL. */
void sfti_put_deep(sfti_json_writer *w, const sft_deep_counts *deep);

#endif
