/* What Linux does by way of /proc: names for unnamed files, paths in open folders. */
#include "os/os_posix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define PROC_NAME "/proc/self/fd/%d" /* what a descriptor leads to */

/* Without /proc an unnamed file could never get its name, so there is none then. */
int sfti_os_open_unnamed(const char *folder, uint32_t mode, int *fd) {
#ifdef O_TMPFILE
    char name[40];
    int error = sfti_os_posix_open(AT_FDCWD, folder, O_TMPFILE | O_RDWR, mode, fd);
    if (error == EISDIR || error == ENOSYS || error == EINVAL) return EOPNOTSUPP;
    if (error) return error;
    (void)snprintf(name, sizeof name, PROC_NAME, *fd);
    if (access(name, F_OK) == 0) return 0;
    (void)close(*fd);
#else
    (void)folder;
    (void)mode;
#endif
    *fd = -1;
    return EOPNOTSUPP;
}

int sfti_os_link_unnamed(int fd, const char *path) {
    char name[40];
    (void)snprintf(name, sizeof name, PROC_NAME, fd);
    return linkat(AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

int sfti_os_path_in(int folder, const char *name, char *out, size_t cap) {
    struct stat open_one, there;
    char name_of[40];
    (void)snprintf(name_of, sizeof name_of, PROC_NAME, folder);
    int len = snprintf(out, cap, "%s/%s", name_of, name);
    if (len < 0 || (size_t)len >= cap) return ENAMETOOLONG;
    if (fstat(folder, &open_one) != 0) return errno;
    bool same = stat(name_of, &there) == 0 && there.st_dev == open_one.st_dev &&
                there.st_ino == open_one.st_ino;
    return same ? 0 : EOPNOTSUPP;
}
