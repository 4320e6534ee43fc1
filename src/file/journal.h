/* The journal of an edit: .NAME.sft-journal beside the file, whole on the disk before the
 * first byte of the file changes, gone when the last one is there. It locks out other
 * editors, and holds the header before and after. */
#ifndef SFTI_JOURNAL_H
#define SFTI_JOURNAL_H

#include "bytes/source.h"
#include "os/os.h"

#define SFTI_JOURNAL_PATH 4600

/* Heads are a file's first bytes: 8 of length, then the header. The old one is `grown` bytes
 * shorter; before it are zeros once blocks have come in. */
typedef struct sfti_journal {
    uint32_t method; /* sft_edit_method */
    uint64_t device, inode;
    uint64_t size;  /* of the file before */
    uint64_t grown; /* bytes that come in before its first; 0: none */
    sft_span before, after;
} sfti_journal;

/* Path of a file's journal into out; false if it does not fit. */
bool sfti_journal_path(const char *path, char out[SFTI_JOURNAL_PATH]);

/* Make it, whole and on the disk; SFT_EDIT_BUSY if there is one. mode: permission bits. */
sft_code sfti_journal_write(const char *path, const sfti_journal *journal, uint32_t mode,
                            bool no_sync, const sft_allocator *alloc, sft_error *err);
/* Remove it; the errno. A journal that stays is no harm while the file is one of what it
 * says, and is the file that it says. */
int sfti_journal_remove(const char *path);
/* Wait until the disk knows that it is removed; the errno. */
int sfti_journal_settle(const char *path);

/* Whether a file that was just opened (as fd_info says) is in the middle of an edit: then
 * SFT_EDIT_INTERRUPTED. head is its header's text as read, or of data NULL where reading
 * failed. Costs one look at the folder where there is no journal. */
sft_code sfti_journal_check(const char *path, const os_info *fd_info, sft_span header,
                            const sft_allocator *alloc, sft_error *err);

/* sft_edit_recover of a path that is no link. */
sft_code sfti_journal_recover(const char *path, bool force, bool no_sync,
                              const sft_allocator *alloc, sft_edit_found *found,
                              sft_error *err);

/* Write all, and read all: the errno. */
int sfti_write_all(int fd, const void *bytes, size_t len, uint64_t offset);

#endif
