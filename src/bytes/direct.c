#include "bytes/direct.h"

#include <errno.h>
#include <string.h>

#define DIRECT_UNIT ((size_t)4096)
#define DIRECT_SIZE ((size_t)8 << 20)

bool sfti_direct_begin(sfti_direct *d, int fd, const sft_allocator *alloc) {
    memset(d, 0, sizeof *d);
    if (os_set_direct(fd, true)) return false;
    d->buffer = sfti_take(alloc, DIRECT_SIZE + DIRECT_UNIT);
    if (!d->buffer) {
        (void)os_set_direct(fd, false);
        return false;
    }
    d->alloc = *alloc;
    d->fd = fd;
    d->at = d->buffer + (DIRECT_UNIT - (uintptr_t)d->buffer % DIRECT_UNIT) % DIRECT_UNIT;
    return true;
}

void sfti_direct_free(sfti_direct *d) {
    sfti_release(&d->alloc, d->buffer, DIRECT_SIZE + DIRECT_UNIT);
    d->buffer = NULL;
}

static int direct_plain(sfti_direct *d) {
    d->plain = true;
    return os_set_direct(d->fd, false);
}

/* The first len bytes of the block. Where one is refused, or taken in part only, the rest of
 * the file goes on plainly from that byte. */
static int direct_flush(sfti_direct *d, size_t len) {
    for (size_t done = 0; done < len;) {
        size_t put = 0;
        int error = os_pwrite(d->fd, d->at + done, len - done, d->begin + done, &put);
        if (!error && put == 0) error = EIO;
        if (error && (error != EINVAL || d->plain)) return error;
        done += put;
        if (!d->plain && (error || done < len)) error = direct_plain(d);
        if (error && error != EINVAL) return error;
    }
    d->begin += len;
    memmove(d->at, d->at + len, d->used - len);
    d->used -= len;
    return 0;
}

int sfti_direct_write(sfti_direct *d, const void *bytes, size_t len) {
    for (size_t done = 0; done < len;) {
        size_t left = DIRECT_SIZE - d->used, piece = len - done < left ? len - done : left;
        memcpy(d->at + d->used, (const char *)bytes + done, piece);
        d->used += piece;
        done += piece;
        int error = d->used == DIRECT_SIZE ? direct_flush(d, DIRECT_SIZE) : 0;
        if (error) return error;
    }
    return 0;
}

int sfti_direct_end(sfti_direct *d) {
    int error = direct_flush(d, d->used - d->used % DIRECT_UNIT);
    if (!error && !d->plain) error = direct_plain(d);
    return error ? error : direct_flush(d, d->used);
}
