/* Folders of object stores: keys up to the next slash. */
#ifndef SFTI_REMOTE_LISTING_H
#define SFTI_REMOTE_LISTING_H

#include "remote/stores/bucket.h"

/* As sfti_scheme.list. SFT_NOT_FOUND: no key begins with the folder's. */
sft_code sfti_store_list(sft_remote *remote, sfti_store *store, const char *folder,
                         sft_listed_fn each, void *each_ctx, sft_error *err);

#endif
