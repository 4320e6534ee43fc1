/* os.h on Windows: sockets of libraries that connect by themselves. */
#include <winsock2.h>

#include "os/os_win32.h"

#include <errno.h>
#include <string.h>
#include <ws2tcpip.h>

typedef SOCKET(WSAAPI *socket_function)(int family, int type, int protocol,
                                        WSAPROTOCOL_INFOW *info, GROUP group, DWORD flags);

/* Whoever connects has loaded and begun the system's library; a program that does not, need not
 * have it. No handle of Windows has more than 32 bits. */
int sfti_os_socket_open(int family, int type, int protocol, int *fd) {
    os_function found = sfti_os_library_function("ws2_32.dll", "WSASocketW");
    socket_function open_socket = (socket_function)found;
    *fd = -1;
    if (!open_socket) return EOPNOTSUPP;
    SOCKET made = open_socket(family, type, protocol, NULL, 0,
                              WSA_FLAG_OVERLAPPED | WSA_FLAG_NO_HANDLE_INHERIT);
    if (made == INVALID_SOCKET) return sfti_os_win_last();
    *fd = (int)made;
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
