/* Results of inspecting and maintaining a dataset, as trees that also render as JSON. */
#ifndef SFTI_DATASET_RESULTS_H
#define SFTI_DATASET_RESULTS_H

#include "base/result.h"
#include "base/tree.h"
#include "dataset/read/manifest.h"

/* Begin a result object in an empty tree, up to "ok"; sfti_result_end ends it. */
void sfti_ds_result_begin(sfti_json_writer *w, sft_tree *tree, const char *path, bool ok,
                          sft_error *err);
/* Write the tree as JSON if code is SFT_OK. Always frees the tree. */
sft_code sfti_ds_result_render(sft_tree *tree, sft_code code, sft_sink *sink, sft_error *err);

/* verify_rows.c: whether a file's columns of varying length, or with nulls, are what the manifest
 * says; deep: also whether text is UTF-8. SFT_DATASET_SHARD names the first tensor that is not. */
sft_code sfti_verify_rows(const sft_file *file, const sfti_ds_column *columns, size_t count,
                          uint64_t samples, bool deep, const sft_allocator *alloc,
                          sft_error *err);

#endif
