/* Listing repositories of the Hub. */
#ifndef SFTI_REMOTE_HUB_LIST_H
#define SFTI_REMOTE_HUB_LIST_H

#include "remote/hub/hub_state.h"

/* Ask for all files of a repository, at the commit that it is read at, which is settled here if it
 * is not known yet. The target proves who asks; its URL is set here. *out stays valid until the
 * remote is closed. */
sft_code sfti_hub_list(sfti_target *target, sfti_hub_repo *repo, const sfti_hub_listing **out,
                       sft_error *err);

#endif
