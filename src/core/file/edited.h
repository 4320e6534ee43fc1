/* The one question that whatever opens a model by its path asks: is it in the middle of an edit? */
#ifndef SFTI_FILE_EDITED_H
#define SFTI_FILE_EDITED_H

#include "os/os.h"
#include "safetensors.h"

#define SFTI_JOURNAL_PATH 4600

/* Path of a file's journal into out; false if it does not fit. A long NAME is cut, and a hash of
 * all of it put behind. */
bool sfti_journal_path(const char *path, char out[SFTI_JOURNAL_PATH]);

/* Whether a file that was just opened (as fd_info says) is in the middle of an edit: then
 * SFT_EDIT_INTERRUPTED. header is its text as read, or of data NULL: the file's own, which is
 * looked at where needed. is_broken: it could not be read as a model. Costs a look at a name where
 * there is no journal, and one more, for a link, unless fd_info is from sfti_os_open_look. *foreign
 * (or NULL): a journal was passed over, for its owner cannot have edited the file. */
sft_code sfti_file_edited(const char *path, const os_info *fd_info, sft_span header,
                          bool is_broken, const sft_allocator *alloc, bool *foreign,
                          sft_error *err);

/* The same of a file beside which something stands that may be its journal: reads and judges it.
 * It is of model/journal/, or NULL where the library was built without (src/without/edit.c): then
 * whatever stands there is taken for the journal of an interrupted edit. */
typedef sft_code sfti_journal_judge(const char *path, const os_info *fd_info, sft_span header,
                                    bool is_broken, const sft_allocator *alloc, bool *foreign,
                                    sft_error *err);
extern sfti_journal_judge *const sfti_hook_journal;

#endif
