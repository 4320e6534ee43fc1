/* What the files of an edit share: opening and requests (edit.c, put.c), the new header (head.c),
 * writing it (apply.c, in_place.c, grow.c). */
#ifndef SFTI_EDIT_H
#define SFTI_EDIT_H

#include "base/splice.h"
#include "file/file.h"
#include "journal/journal.h"
#include "safetensors_edit.h"

#define SFTI_EDIT_SPARE UINT64_C(4096)
#define SFTI_EDIT_INSERT_FROM (UINT64_C(16) << 20)
#define SFTI_EDIT_PLACE_MOST (UINT64_C(64) << 20)

/* One thing asked for: a metadata key's value (data NULL: none), or a tensor's name. */
typedef struct sfti_request {
    struct sfti_request *next;
    sft_span key, value;
} sfti_request;

typedef struct sfti_requests {
    sfti_request *first, **last;
    size_t count;
} sfti_requests;

/* Other bytes for a tensor. */
typedef struct sfti_put {
    struct sfti_put *next; /* the one asked for before */
    sfti_patch patch;
} sfti_put;

struct sft_edit {
    sft_allocator alloc;
    sfti_arena arena; /* requests and what they hold */
    sft_edit_options options;
    sft_open_options open;
    sfti_limits limits;
    uint64_t seed[2];
    sfti_requests metadata, names;
    sfti_put *puts;
    size_t put_count;
    /* The same in file order, each tensor once; made of so many puts. */
    sfti_patch *patches;
    size_t patch_count, patches_of;
    uint64_t patch_bytes;
    int fd; /* for reading; -1 once it had to be closed */
    os_info info;
    uint32_t limit; /* bits that the result may have; 0: all */
    sft_file *file;
    bool is_link; /* path is a link, to become a file of its own */
    bool applied;
    unsigned dropped; /* digests that the header made last leaves out */
    const char *named;   /* as the caller names it, while it is being opened */
    const char *beneath; /* NULL once the folder is open */
    int folder;          /* that the file lies in, or -1 */
    char path[4096];     /* in that folder, whatever becomes of the folder's name */
};

/* The unit in which blocks are shared and inserted. */
static inline uint64_t sfti_edit_block(const sft_edit *edit) {
    uint64_t block = edit->info.block;
    return block < 4096 || (block & (block - 1)) != 0 ? 4096 : block;
}

/* Whether blocks may be inserted before the header. */
static inline bool sfti_edit_inserts(const sft_edit *edit) {
    uint64_t from = edit->options.min_insert_bytes;
    if (from == 0) from = SFTI_EDIT_INSERT_FROM;
    return !edit->options.safe && !edit->is_link && edit->info.size >= from &&
           edit->patch_count == 0;
}

/* The new head (length and header), and where it differs. */
typedef struct sfti_new_head {
    char *data; /* of the edit's allocator */
    size_t len, cap;
    uint64_t grown; /* bytes longer than the old one: 0 or whole blocks */
    uint64_t spare;
    size_t first, last; /* grown 0: bytes [first, last) differ; equal: none do */
} sfti_new_head;

sft_code sfti_edit_patches(sft_edit *edit, sft_error *err);
sft_code sfti_edit_head(sft_edit *edit, sfti_new_head *out, sft_error *err);
void sfti_edit_head_free(sft_edit *edit, sfti_new_head *head);
void sfti_edit_tell(const sft_edit *edit, const sfti_new_head *head, sft_edit_method method,
                    sft_edit_report *out);

/* The file to be changed, locked, and found to be what was opened. */
typedef struct sfti_target {
    int fd;
    char *old_head; /* 8 + N */
    size_t old_len;
} sfti_target;

sft_code sfti_target_open(sft_edit *edit, sfti_target *target, sft_error *err);

/* By shared blocks, blocks that come in, or a copy. */
sft_code sfti_edit_grow(sft_edit *edit, const sfti_target *target, const sfti_new_head *head,
                        const sft_job *job, sft_edit_method *method, sft_error *err);
/* A new file at path with the head and the data of descriptor fd. */
sft_code sfti_edit_new_file(sft_edit *edit, const char *path, const sft_path_options *options,
                            int fd, const sfti_new_head *head, const sft_job *job,
                            sft_edit_method *method, sft_error *err);
/* Make sure that the path, and fd unless it is -1, still lead to what was opened. */
sft_code sfti_edit_same(const sft_edit *edit, int fd, sft_error *err);
/* Put the head's bytes and the patches there under a journal, after blocks have come in if the
 * head is longer. *unable: they cannot; the file is as it was. Ticks the job for the patches,
 * before anything changes. */
sft_code sfti_edit_journalled(sft_edit *edit, const sfti_target *target,
                              const sfti_new_head *head, const sft_job *job, bool *unable,
                              sft_error *err);

/* A file that is no link, opened (beneath as in sfti_open_beneath), and the look at its name
 * held against what is open: *info. SFT_EDIT_BUSY if the name has come to lead elsewhere between
 * the two. */
sft_code sfti_edit_open_file(const char *path, const char *beneath, bool writable, int *fd,
                             os_info *info, sft_error *err);

/* sft_edit_recover of a path that is no link. */
sft_code sfti_journal_recover(const char *path, const char *beneath, bool force, bool no_sync,
                              const sft_allocator *alloc, sft_edit_found *found,
                              sft_error *err);

/* If nothing is at path, and an interrupted replacement has left the file that was there under a
 * name of its own (bytes/replaced.h), it gets its name back: *found becomes SFT_EDIT_OLD. */
sft_code sfti_replaced_recover(const char *path, bool no_sync, sft_edit_found *found,
                               sft_error *err);

#endif
