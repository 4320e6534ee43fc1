/* The tensors of a model, in whatever number of files, and their columns in a page. */
#ifndef CATALOG_MODEL_TENSORS_H
#define CATALOG_MODEL_TENSORS_H

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

#endif
