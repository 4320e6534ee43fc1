/* The data of a page about one model: its tensors, in whatever number of files, their statistics,
 * and the norms of a LoRA's modules. */
#ifndef CATALOG_MODEL_PAGE_H
#define CATALOG_MODEL_PAGE_H

#include "base/json.h"
#include "support/models.h"

typedef struct model_file {
    const sft_file *file;
    sft_span name;
} model_file;

typedef struct model_tensor {
    const sft_tensor *tensor;
    sft_span name; /* with the folder of a pipeline's component */
    size_t file;
} model_tensor;

typedef struct model_tensors {
    sfti_arena arena;
    model_file *files;
    model_tensor *items; /* file by file, in the order of offsets */
    size_t file_count, count;
} model_tensors;

/* Those of a model whose sets are open, and stay so. Free with model_tensors_free, also after a
 * failure. */
sft_code model_tensors_list(model_tensors *all, const cli_model *model, const sft_allocator *alloc,
                            sft_error *err);
void model_tensors_free(model_tensors *all);
/* The columns of ModelPage but `stats`, into the object that is open. */
sft_code model_tensors_write(const model_tensors *all, sfti_json_writer *w, sft_error *err);

/* ── Statistics ── */

/* Reads all data in one pass, and writes the member `stats` of ModelPage into the object that is
 * open. path is what the progress names. Memory: 2 KiB for each of 4,096 tensors at a time, and
 * the text of the columns. */
sft_code model_stats_write(const model_tensors *all, cli *c, const char *path,
                           sfti_json_writer *w, sft_error *err);

/* ── Norms ── */

#define NORMS_RANK_MOST 1024 /* modules of a higher rank are left out */

/* Writes the member `norms` of ModelPage into the object that is open: of each plain LoRA pair
 * the Frobenius norm of up @ down, times alpha / rank. Nothing without such pairs. Memory: 4 MiB
 * for the data and 16 bytes for each element of a square of the highest rank. */
sft_code model_norms_write(const cli_model *model, cli *c, sfti_json_writer *w, sft_error *err);

#endif
