/* Result objects of `dataset` commands. */
#ifndef SFTI_DATASET_CARE_H
#define SFTI_DATASET_CARE_H

#include "base/json.h"
#include "dataset/dataset.h"

void sfti_ds_put_begin(sfti_json_writer *w, const char *path, bool ok, sft_sink *sink,
                       sft_error *err);
sft_code sfti_ds_put_end(sfti_json_writer *w);
void sfti_ds_put_uint(sfti_json_writer *w, const char *key, uint64_t value);
void sfti_ds_put_text(sfti_json_writer *w, const char *key, sft_span text); /* data NULL: null */
void sfti_ds_put_shape(sfti_json_writer *w, uint32_t rank, const uint64_t *shape);
/* "key":{"column":{"dtype","shape"},…} */
void sfti_ds_put_columns(sfti_json_writer *w, const char *key, const sfti_ds_column *columns,
                         size_t count);

/* Whether a listed object is a shard that we wrote: name and __metadata__. */
bool sfti_ds_is_ours(const sft_storage *storage, const char *name);

#endif
