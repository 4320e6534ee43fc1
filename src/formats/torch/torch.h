/* What the containers of PyTorch's files share once their pickle is read. */
#ifndef SFTI_TORCH_H
#define SFTI_TORCH_H

#include "formats/objects/rebuild.h"

/* Turn a pickle whose storages can be located into tensors of the import. */
sft_code sfti_torch_import(sfti_import *im, sfti_pickle *pickle, const sft_source *source,
                           sfti_storages *storages);

#endif
