/* What Linux does by way of /proc: names for unnamed files, paths in open folders. */
#include "os/os_posix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void proc_name(int fd, char *out, size_t cap) {
    (void)snprintf(out, cap, "/proc/self/fd/%d", fd);
}

/* Without /proc an unnamed file could never get its name, so there is none then. */
int sfti_os_open_unnamed(const char *folder, uint32_t mode, int *fd) {
#ifdef O_TMPFILE
    char name[40];
    int error = sfti_os_posix_open(folder, O_TMPFILE | O_RDWR, mode, fd);
    if (error == EISDIR || error == ENOSYS || error == EINVAL) return EOPNOTSUPP;
    if (error) return error;
    proc_name(*fd, name, sizeof name);
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
    proc_name(fd, name, sizeof name);
    return linkat(AT_FDCWD, name, AT_FDCWD, path, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
}

int sfti_os_path_in(int folder, const char *name, char *out, size_t cap) {
    struct stat open_one, there;
    char name_of[40];
    proc_name(folder, name_of, sizeof name_of);
    int len = snprintf(out, cap, "%s/%s", name_of, name);
    if (len < 0 || (size_t)len >= cap) return ENAMETOOLONG;
    if (fstat(folder, &open_one) != 0) return errno;
    bool same = stat(name_of, &there) == 0 && there.st_dev == open_one.st_dev &&
                there.st_ino == open_one.st_ino;
    return same ? 0 : EOPNOTSUPP;
}
