/* The one question that whatever opens a model by its path asks: is it in the middle of an edit? */
#ifndef SFTI_JOURNAL_CHECK_H
#define SFTI_JOURNAL_CHECK_H

#include "os/os.h"
#include "safetensors.h"

/* Whether a file that was just opened (as fd_info says) is in the middle of an edit: then
 * SFT_EDIT_INTERRUPTED. header is its text as read, or of data NULL where reading failed.
 * Costs a look at a name where there is no journal, and one more, for a link, unless fd_info is
 * from sfti_os_open_look. Whatever opens
 * a model by its path asks this. *foreign (or NULL): a journal was passed over, for its owner
 * cannot have edited the file. */
sft_code sfti_journal_check(const char *path, const os_info *fd_info, sft_span header,
                            const sft_allocator *alloc, bool *foreign, sft_error *err);

#endif
