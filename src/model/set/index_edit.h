/* sft_index_rewrite for who holds the lock on the index already (bytes/hold.h). */
#ifndef SFTI_INDEX_EDIT_H
#define SFTI_INDEX_EDIT_H

#include "safetensors_index.h"

sft_code sfti_index_rewrite_held(const char *path, const sft_index_changes *changes,
                                 const char *to, const sft_path_options *options, bool *changed,
                                 sft_error *err);

#endif
