/* Sockets of libraries that connect by themselves. */
#include "os/os_posix.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>

int sfti_os_socket_open(int family, int type, int protocol, int *fd) {
    *fd = socket(family, type, protocol);
    if (*fd < 0) return errno;
    (void)fcntl(*fd, F_SETFD, FD_CLOEXEC);
    return 0;
}

size_t sfti_os_socket_address(const void *sockaddr, size_t len, uint8_t out[16]) {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    if (len < offsetof(struct sockaddr, sa_data)) return 0;
    memset(&any, 0, sizeof any);
    memcpy(&any, sockaddr, len < sizeof any ? len : sizeof any);
    if (any.sa_family == AF_INET && len >= sizeof v4) {
        memcpy(&v4, sockaddr, sizeof v4);
        memcpy(out, &v4.sin_addr, 4);
        return 4;
    }
    if (any.sa_family == AF_INET6 && len >= sizeof v6) {
        memcpy(&v6, sockaddr, sizeof v6);
        memcpy(out, &v6.sin6_addr, 16);
        return 16;
    }
    return 0;
}
