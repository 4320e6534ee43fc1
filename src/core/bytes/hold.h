/* The lock on a file that is replaced, and whether a file is still the one that was opened.
 *
 * Whoever replaces a file by a new one that is made of it (a rewriting command, an index) does it
 * in these steps, so that no change of another process is lost and none is read half:
 *  1  the file that the path leads to is opened and locked with the lock that an edit takes
 *     (edit/target.c): on the file itself, by the system, so that it ends with the process and
 *     leaves no file behind. Held by another: SFT_EDIT_BUSY. A file system without locks, or one
 *     whose locks keep this process from reading by another descriptor: none
 *  2  the path is looked at again: whoever held the lock may have replaced the file before it let
 *     go. Another file: once more from 1
 *  3  the inputs are opened. What each is (device, inode, size, mtime, ctime) is kept from before
 *     its first byte is read; one with a journal is refused (file/edited.c)
 *  4  the new file is written and synced under another name (sink_path.c)
 *  5  of a model with an index, whose lock is on the index: the shards that go are locked too
 *  6  every input is compared with what was kept, and has no journal: else SFT_EDIT_BUSY, and the
 *     new file is removed. This finds whoever takes no lock, or changed an input without one
 *  7  the new file takes the path by a rename
 *  8  the lock is let go of. Of an index, the old shards, which no index names any more, are
 *     removed after that: as long as the old one is open, some systems list it under another name
 * A crash before 7 leaves the old file, after it the new one. An edit that was opened before 7 and
 * applied after it finds at its own lock that the path leads to another file: SFT_EDIT_BUSY. An
 * output that is not one of the inputs needs no lock for them: 3, 4, 6 and 7 are enough. */
#ifndef SFTI_HOLD_H
#define SFTI_HOLD_H

#include "os/io.h"

typedef struct sfti_file_lock {
    int fd; /* -1: there is no file, no lock, or none that this user can take */
    os_info info;
} sfti_file_lock;

/* Steps 1 and 2. Where a link leads counts. */
sft_code sfti_hold_take(const char *path, sfti_file_lock *out, sft_error *err);
/* Step 8; also of one whose taking failed. */
void sfti_hold_end(sfti_file_lock *hold);
/* Step 5: the file of a source, until that is closed. */
sft_code sfti_hold_source(const sft_source *source, sft_error *err);

/* Whether a look at a file finds what was kept of it. */
bool sfti_is_same_file(const os_info *then, const os_info *now);
/* The errors: another process holds the lock, and a file that is not what it was. */
SFTI_COLD sft_code sfti_fail_held(sft_error *err);
SFTI_COLD sft_code sfti_fail_changed(sft_error *err);

#endif
