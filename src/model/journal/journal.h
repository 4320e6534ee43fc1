/* The journal of an edit: .NAME.sft-journal beside the file, whole on the disk before the
 * first byte of the file changes, gone when the last one is there. It locks out other
 * editors, and holds what changes, before and after. write.c writes it, read.c reads
 * and verifies it, compare.c and apply.c relate it to the file. */
#ifndef SFTI_JOURNAL_H
#define SFTI_JOURNAL_H

#include "base/crc32.h"
#include "bytes/source.h"
#include "file/edited.h"

#define SFTI_JOURNAL_RANGES ((size_t)1 << 20) /* of the data, at most */

/* ── Its bytes: words, the ranges as (at, len), both heads, the old and the new bytes of each
 *    range, the checksum as a word. The first six words stay where they are for ever. ── */

typedef enum sfti_journal_word {
    SFTI_JW_MAGIC, SFTI_JW_VERSION, SFTI_JW_METHOD, SFTI_JW_DEVICE, SFTI_JW_INODE, SFTI_JW_SIZE,
    SFTI_JW_GROWN, SFTI_JW_BEFORE, SFTI_JW_AFTER, SFTI_JW_RANGES, SFTI_JW_DATA,
    SFTI_JW_COUNT
} sfti_journal_word;
#define SFTI_JOURNAL_FIXED ((size_t)SFTI_JW_COUNT * 8)
#define SFTI_JOURNAL_VERSION 2
extern const char sfti_journal_magic[8];

/* ── Writing ── */

/* Bytes [at, at + len) of the file become those of a source, len > 0. */
typedef struct sfti_patch {
    uint64_t at, len;
    sft_source source; /* not closed */
    sft_span tensor;
} sfti_patch;

/* Heads are a file's first bytes: 8 of length, then the header. The old one is `grown` bytes
 * shorter; before it are zeros once blocks have come in. */
typedef struct sfti_journal {
    uint32_t method; /* sft_edit_method */
    uint64_t device, inode;
    uint64_t size;  /* of the file before */
    uint64_t grown; /* bytes that come in before its first; 0: none */
    sft_span before, after;
    const sfti_patch *patches; /* ascending, apart from one another; none if grown */
    size_t patch_count;
    uint64_t patch_bytes;
    int fd; /* the file, for the old bytes */
} sfti_journal;

/* Make it, whole and on the disk; SFT_EDIT_BUSY if there is one. mode: the file's permission
 * bits; but others get to write only where all may write to the file. The sources of the patches
 * are read, and tick the job. */
sft_code sfti_journal_write(const char *path, const sfti_journal *journal, uint32_t mode,
                            bool no_sync, const sft_allocator *alloc, const sft_job *job,
                            sft_error *err);
/* Remove it; the errno. A journal that stays is no harm while the file is one of what it
 * says, and is the file that it says. */
int sfti_journal_remove(const char *path);

/* SFT_BUFFER_SIZE if the source is known to have more or fewer bytes than the patch. */
sft_code sfti_patch_check(const sfti_patch *patch, sft_error *err);
/* All bytes of a patch's source to a sink at `at`; SFT_BUFFER_SIZE if it has more or fewer. */
sft_code sfti_patch_write(const sfti_patch *patch, const sft_sink *sink, uint64_t at,
                          const sft_allocator *alloc, const sft_job *job, sft_error *err);

/* ── Reading ── */

typedef enum sfti_journal_state {
    SFTI_JOURNAL_NONE,  /* there is none */
    SFTI_JOURNAL_ALIEN, /* something else is there */
    SFTI_JOURNAL_ODD,   /* of another version or length, or a wrong checksum: device, inode
                           and size are known */
    SFTI_JOURNAL_SOUND
} sfti_journal_state;

/* A journal open for reading; it is never all in memory. */
typedef struct sfti_journal_file {
    sfti_journal_state state;
    const char *wrong; /* what it is, if neither NONE nor SOUND */
    const char *foreign; /* why nothing is written that it says, or NULL */
    bool stranger; /* foreign, and its owner cannot have edited the file: it is not opened */
    uint32_t owner;
    int fd;
    uint64_t len;
    uint64_t word[SFTI_JW_COUNT];
    struct sfti_journal_buffers *buffers;
    struct sfti_journal_seal *seal;
    sft_allocator alloc;
} sfti_journal_file;

/* Open the journal of the file at path, which is open as `model` says, and look at its owner and
 * its words. Fails when it cannot be read or memory runs out; close it in any case. */
sft_code sfti_journal_open(const char *path, const os_info *model, const sft_allocator *alloc,
                           sfti_journal_file *out, sft_error *err);
void sfti_journal_close(sfti_journal_file *j);
/* Read it all: a SOUND one with a wrong sum, ranges that cannot be, or heads that are none,
 * becomes ODD. to_apply: from now on nothing is read of it but what was verified. */
sft_code sfti_journal_verify(sfti_journal_file *j, bool to_apply, sft_error *err);
/* All of len bytes; EIO if it is shorter, or they are not those that were verified. */
int sfti_journal_read(const sfti_journal_file *j, void *into, size_t len, uint64_t at);
/* Whether it was removed since it was opened. */
bool sfti_journal_is_gone(const sfti_journal_file *j);

/* What the bytes of a file are, held against a journal. */
typedef struct sfti_journal_verdict {
    bool came_in;   /* by its length, blocks have come in */
    bool is_old;    /* as before, where they were */
    bool is_new;    /* as after */
    bool is_either; /* each byte one of them, at its place */
} sfti_journal_verdict;

/* fd is the file's, size its length. header: its text as it was read, or data NULL: the
 * file's own. The errno. */
int sfti_journal_compare(const sfti_journal_file *j, int fd, uint64_t size, sft_span header,
                         sfti_journal_verdict *out);
/* SFT_EDIT_INTERRUPTED: why nothing is done that it says. */
sft_code sfti_journal_refuse(const sfti_journal_file *j, sft_error *err);
/* Write the new head, or the new (else the old) bytes of the data, to the file. The errno. */
int sfti_journal_apply_head(const sfti_journal_file *j, int fd);
int sfti_journal_apply_data(const sfti_journal_file *j, int fd, bool old);

/* ── What the files of this folder share ── */

#define SFTI_JOURNAL_PIECE ((size_t)32 << 10)

struct sfti_journal_buffers {
    char piece[4][SFTI_JOURNAL_PIECE]; /* of the file, after, before, before where it was */
    sfti_crc32_table table;
};

/* Where in the journal the heads begin, and the ranges' bytes; the i-th range of the file. */
uint64_t sfti_journal_heads_at(const sfti_journal_file *j);
uint64_t sfti_journal_data_at(const sfti_journal_file *j);
int sfti_journal_range(const sfti_journal_file *j, uint64_t i, uint64_t *at, uint64_t *len);

/* Remember a tag of each block of an open journal until the closing, then insist on it. */
sft_code sfti_journal_seal_begin(sfti_journal_file *j, sft_error *err);
void sfti_journal_seal_close(sfti_journal_file *j);
void sfti_journal_seal_free(sfti_journal_file *j);

#endif
