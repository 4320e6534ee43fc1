/* Between os_posix*.c, the part of os.h that POSIX hosts share, and what completes it:
 * os_linux*.c or os_macos*.c. */
#ifndef SFTI_OS_POSIX_H
#define SFTI_OS_POSIX_H

/* Before the first header of the system: sources of POSIX hosts include this first. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#ifndef _FILE_OFFSET_BITS
#define _FILE_OFFSET_BITS 64
#endif

#include "os/os.h"

#ifdef __APPLE__ /* which has names of its own for these members of struct stat */
#define st_mtim st_mtimespec
#define st_atim st_atimespec
#define st_ctim st_ctimespec
#endif

#define SFTI_POSIX_AT_ONCE ((size_t)1 << 30) /* bytes of one call */

/* openat(), not inherited by other programs, and again after signals that nobody watches. */
int sfti_os_posix_open(int at, const char *path, int flags, uint32_t mode, int *fd);
/* sfti_os_open_beneath in an open folder with the flags of open(), by one call of the system; links
 * are followed or ELOOP. ENOSYS where the system has no such call. */
int sfti_os_kernel_beneath(int root, const char *name, int flags, bool links, int *fd);
/* Rename to a name that nothing has; EEXIST. EOPNOTSUPP where the system or the file system has no
 * such call. */
int sfti_os_kernel_rename_new(const char *from, const char *to);

#endif
