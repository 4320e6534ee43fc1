/* Tensors out of a pickle of PyTorch. */
#include "formats/torch/torch.h"


sft_code sfti_torch_import(sfti_import *im, sfti_pickle *pickle, const sft_source *source,
                           sfti_storages *storages) {
    sfti_rebuild rebuild = { .im = im, .source = source, .storages = storages };
    sft_code code = sfti_rebuild_all(&rebuild, pickle);
    if (!code) code = sfti_roots_import(im, pickle->root, &rebuild.states);
    return code ? code : sfti_import_meta(im, "format", (sft_span){ "pt", 2 });
}
