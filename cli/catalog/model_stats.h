/* Statistics of a model's tensors in a page. */
#ifndef CATALOG_MODEL_STATS_H
#define CATALOG_MODEL_STATS_H

#include "catalog/model_tensors.h"

/* Reads all data in one pass, and writes the member `stats` of ModelPage into the object that is
 * open. path is what the progress names. Memory: 2 KiB for each of 4,096 tensors at a time, and
 * the text of the columns. */
sft_code model_stats_write(const model_tensors *all, cli *c, const char *path,
                           sfti_json_writer *w, sft_error *err);

#endif
