/* Bytes are bytes on standard streams, as elsewhere: linked to what tests start. */
#include <fcntl.h>
#include <io.h>

__attribute__((constructor)) static void be_binary(void) {
    for (int fd = 0; fd < 3; fd++) (void)_setmode(fd, _O_BINARY);
}
