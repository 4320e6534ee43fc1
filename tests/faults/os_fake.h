/* A platform in memory: all of os.h, and the strings to pull on it. Folders "/" and the
 * working folder (which is "/") exist from the start. One thread only: what is started as
 * a thread runs to its end at once. */
#ifndef OS_FAKE_H
#define OS_FAKE_H

#include "os/os.h"

/* Forget everything; stdin is an empty pipe, stdout and stderr are pipes kept for
 * os_fake_output. */
void os_fake_reset(void);

/* ── What is there ── */
/* Parents are made. An existing name is replaced. */
void os_fake_add_file(const char *path, const void *bytes, size_t len);
void os_fake_add_dir(const char *path);
void os_fake_add_link(const char *path, const char *target);
/* A FIFO that gives these bytes once, then its end. */
void os_fake_add_pipe(const char *path, const void *bytes, size_t len);
void os_fake_set_mode(const char *path, uint32_t mode);
void os_fake_set_owner(const char *path, uint32_t user);
/* Who calls from now on (sfti_os_user), and owns what is made; 1000 after a reset. */
void os_fake_set_user(uint32_t user);
/* Cut or lengthen (with zeros) a file, as another process would. */
void os_fake_set_size(const char *path, size_t len);
/* Bytes of a file (not following a link at the end); NULL when there is none. Valid until
 * the next call. An empty file gives a non-NULL pointer. */
const void *os_fake_file(const char *path, size_t *len);
bool os_fake_exists(const char *path);
/* Names in the whole system that are files or links, to look for leftovers. */
size_t os_fake_count_files(void);

/* ── Standard streams ── */
/* Kind OS_FILE (read by position) or OS_PIPE. */
void os_fake_set_input(os_kind kind, const void *bytes, size_t len);
const void *os_fake_output(int fd, size_t *len); /* 1 or 2 */
void os_fake_set_terminal(int fd, uint32_t columns); /* columns 0: no terminal */
void os_fake_set_env(const char *name, const char *value); /* pointers are kept */

/* What every name in every shared library is; NULL, as at first: there are no libraries. */
void os_fake_set_library(os_function function);

/* ── What goes wrong ── */
/* Every call that can fail is counted from 1. The nth from now on fails with error (and
 * all later ones if forever); nth 0 turns it off. */
void os_fake_fail(size_t nth, int error, bool forever);
/* Nothing fails any more; what was counted stays. */
void os_fake_heal(void);
/* The same among the calls of one name ("sfti_os_pread") only. */
void os_fake_fail_call(const char *name, size_t nth, int error, bool forever);
/* The same among the allocations only, and among all calls but those. */
void os_fake_fail_memory(size_t nth, bool forever);
void os_fake_fail_system(size_t nth, int error, bool forever);
/* Count an allocation that goes past sfti_os_resize (malloc's family, when a test catches it);
 * false when it is to fail. name is kept. */
bool os_fake_allocate(const char *name);
/* Calls since the last os_fake_reset or os_fake_fail, how many of them were allocations,
 * and how many were made to fail. */
size_t os_fake_calls(void);
size_t os_fake_allocations(void);
size_t os_fake_failed(void);
bool os_fake_failed_memory(void); /* whether they were allocations */
/* Name of the nth of them, from 1; NULL past the last (or past the 65,536th). */
const char *os_fake_call_name(size_t n);
/* At most k bytes a read or write; 0 = no limit. */
void os_fake_short_reads(size_t k);
void os_fake_short_writes(size_t k);
void os_fake_one_name(bool one); /* as FAT: no second names, no renaming that never replaces */
void os_fake_no_unnamed(bool none); /* EOPNOTSUPP for unnamed files */
/* As a mounted object store: renaming and giving names fail with this; 0: they work. */
void os_fake_no_rename(int error);
/* What the file system can beyond the usual, nothing at first: share blocks, take blocks in.
 * Its blocks are of 64 bytes then. */
void os_fake_can(bool clone, bool insert);
/* Names that differ by case alone, or by how an "é" is composed, are one, kept as first spelled. */
void os_fake_folds_case(bool folds);
/* Read and write past the page cache: then offset and length in units of 4096. */
void os_fake_can_direct(bool can);
/* Whether huge pages are quick; after a reset they are not. */
void os_fake_huge(bool quick);
void os_fake_direct_anywhere(bool any); /* read to any address; else, and at first, to units */
void os_fake_cold(bool cold); /* nothing is in the page cache; else, and at first, everything */
void os_fake_direct_unit(size_t unit); /* instead of 4096, but for the memory; 0: 4096 */
/* Bytes of file contents that fit on the disk: then ENOSPC. SIZE_MAX at first. */
void os_fake_disk_space(size_t cap);
/* sfti_os_stop_signal answers `signal` from the nth counted call on. */
void os_fake_stop_at(size_t nth, int signal);

/* ── What is done to the disk ── */
typedef enum os_fake_did {
    OS_DID_WRITE,   /* bytes[len] at `at` of inode */
    OS_DID_RESIZE,  /* inode is len bytes long */
    OS_DID_INSERT,  /* len zeros at `at` of inode */
    OS_DID_COLLAPSE, /* len bytes at `at` of inode are gone */
    OS_DID_MODE,    /* of inode: at */
    OS_DID_NAME,    /* path is inode */
    OS_DID_UNNAME,  /* path is no more */
    OS_DID_RENAME,  /* path is now to, which is inode */
    OS_DID_FOLDER,  /* path is a folder */
    OS_DID_UNFOLDER, /* path is no more */
    OS_DID_SYNC,    /* inode */
    OS_DID_SYNC_FOLDER /* path */
} os_fake_did;
typedef struct os_fake_op {
    os_fake_did did;
    uint64_t inode, at;
    const void *bytes;
    size_t len;
    const char *path, *to; /* absolute; the root is "" */
} os_fake_op;
/* Called for each, once it succeeded, until os_fake_reset; NULL turns it off. */
void os_fake_watch(void (*watch)(const os_fake_op *op));
/* A file of a given inode number; names of one number are hard links. */
void os_fake_add_inode(const char *path, uint64_t inode, const void *bytes, size_t len);
uint64_t os_fake_inode(const char *path); /* 0 when there is none */
/* Calls each(ctx, path, inode) for every file, in no order. */
void os_fake_each(void (*each)(void *ctx, const char *path, uint64_t inode), void *ctx);
/* Folders alike; the root is none. */
void os_fake_each_folder(void (*each)(void *ctx, const char *path), void *ctx);

/* ── What is left ── */
size_t os_fake_open_fds(void); /* without 0, 1, 2 */
size_t os_fake_maps(void);
size_t os_fake_blocks(void); /* of sfti_os_resize */
size_t os_fake_mutexes(void);
int os_fake_raised(void);    /* signal of the last sfti_os_raise, 0 without one */
size_t os_fake_syncs(void);  /* files and folders synced */
size_t os_fake_reads(void);  /* sfti_os_pread and sfti_os_read calls */
size_t os_fake_huge_bytes(void); /* asked for in huge pages */

#endif
