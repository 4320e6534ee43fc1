/* What every folder does with the functions of os.h: tell their errors, read and write all. */
#ifndef SFTI_IO_H
#define SFTI_IO_H

#include "base/error.h"
#include "base/names.h"
#include "os/os.h"
#include "safetensors.h"

/* "cannot <what>: <the system's text of the errno>"; SFT_IO_OPEN becomes SFT_NOT_FOUND for ENOENT
 * and SFT_OUT_OF_MEMORY for ENOMEM. */
SFTI_COLD sft_code sfti_io_fail(sft_error *err, sft_code code, int os_errno,
                                const char *what);

/* Up to len bytes, *got fewer only at the end of the file or on an error; the errno. */
int sfti_read_all(int fd, void *into, size_t len, uint64_t offset, size_t *got);
/* All of len bytes; the errno, EIO where the system takes none. */
int sfti_write_all(int fd, const void *bytes, size_t len, uint64_t offset);

/* Whether an errno says that the file system has no other names for a file. */
bool sfti_no_renaming(int error);
/* Rename without replacing, EEXIST if the name is taken; where the file system can do that neither
 * by itself nor by hard links (FAT), after a look, which is the best there is. */
int sfti_rename_new(const char *from, const char *to);

/* Sync the folder that the last part of a path lies in; the errno, 0 also where folders cannot be
 * synced. */
int sfti_sync_parent(const char *path);
/* Whether this errno says that the file system syncs no folders. */
bool sfti_no_folder_sync(int error);

/* sfti_os_wait_over, by options.wait. */
bool sfti_wait_over(const sft_wait *wait);

/* Functions of a shared library, and where in a struct each belongs. False, and nobody knows what
 * the struct holds, if one is not there. */
typedef struct sfti_symbol {
    const char *name;
    size_t at;
} sfti_symbol;
bool sfti_library_load(const char *library, const sfti_symbol *symbols, size_t count, void *into);

/* Keys of tables of names: from the system, or where it has none from the clock and the address
 * of something. */
void sfti_seed_draw(const void *here, uint64_t seed[2]);
/* sfti_names_begin with a key of its own; false also for more names than a table can have. */
bool sfti_names_draw(sfti_names *names, uint64_t count, sfti_name_fn name, const void *ctx,
                     sfti_arena *arena);

#endif
