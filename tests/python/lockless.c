/* LD_PRELOAD: a file system without locks. */
#include <errno.h>
#include <stdlib.h>

int flock(int fd, int operation) {
    const char *error = getenv("LOCKLESS_ERRNO");
    (void)fd, (void)operation;
    errno = error ? atoi(error) : ENOLCK;
    return -1;
}
