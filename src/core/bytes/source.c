/* Sources: where bytes come from. Tests: test_source.c. */
#include "bytes/source.h"

#include "base/checked.h"
#include "base/files.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/watch.h"
#include "bytes/replaced.h"
#include "os/path.h"
#include "safetensors_io.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

/* ── Shared ── */

uint32_t sft_source_mode(const sft_source *source) {
    return SFTI_CAN(source, sft_source_vtable, mode) ? source->vtable->mode(source->ctx) : 0;
}

sft_code sft_source_read(const sft_source *source, uint64_t offset, void *into, size_t len,
                         size_t *got, sft_error *err) {
    *got = 0;
    if (source->size != SFT_SIZE_UNKNOWN) {
        if (offset >= source->size) return SFT_OK;
        if (len > source->size - offset) len = (size_t)(source->size - offset);
    }
    if (len == 0) return SFT_OK;
    if (!source->base || source->size == SFT_SIZE_UNKNOWN) {
        if (SFTI_CAN(source, sft_source_vtable, read))
            return source->vtable->read(source->ctx, offset, into, len, got, err);
        return sfti_misuse(err, "expected a source with read, found none");
    }
    memcpy(into, (const char *)source->base + offset, len);
    *got = len;
    return SFT_OK;
}

sft_code sfti_source_all(const sft_source *source, uint64_t offset, void *into, size_t len,
                         sft_error *err) {
    size_t got = 0;
    sft_code code = sft_source_read(source, offset, into, len, &got, err);
    if (code || got == len) return code;
    return sfti_fail_byte(err, SFT_IO_SHRUNK, offset + got,
                          "expected %llu bytes at offset %llu, found only %llu",
                          (unsigned long long)len, (unsigned long long)offset,
                          (unsigned long long)got);
}

void sft_source_expect(const sft_source *source, const sft_run *runs, size_t count) {
    if (count > 0 && SFTI_CAN(source, sft_source_vtable, expect))
        source->vtable->expect(source->ctx, runs, count);
}

void sft_source_close(sft_source *source) {
    if (!source) return;
    if (!source->borrowed && SFTI_CAN(source, sft_source_vtable, close))
        source->vtable->close(source->ctx);
    memset(source, 0, sizeof *source);
}

bool sfti_source_usable(const sft_source *source) {
    return SFTI_CAN(source, sft_source_vtable, read);
}

/* ── Memory and maps ── */

/* Nobody asks beyond the known size, so the first byte is all there is to know. */
static sft_code read_memory(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                            sft_error *err) {
    (void)err;
    if (len > 0) memcpy(into, (const char *)ctx + offset, len);
    *got = len;
    return SFT_OK;
}

static const sft_source_vtable memory_source_vtable = {
    sizeof(sft_source_vtable), read_memory, NULL, NULL, NULL
};

sft_source sft_source_memory(const void *bytes, size_t len) {
    const void *base = len > 0 ? bytes : "";
    sft_source source = { (void *)(uintptr_t)base, &memory_source_vtable, len, base, false };
    return source;
}

bool sfti_source_is_memory(const sft_source *source) {
    return source->vtable == &memory_source_vtable;
}

#if defined(__SSE2__)
/* `to` and len are multiples of 16 and 64. */
static void stream_lines(char *to, const char *from, size_t len) {
    for (size_t i = 0; i < len; i += 64) {
        __m128i a = _mm_loadu_si128((const __m128i *)(const void *)(from + i));
        __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(from + i + 16));
        __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(from + i + 32));
        __m128i d = _mm_loadu_si128((const __m128i *)(const void *)(from + i + 48));
        _mm_stream_si128((__m128i *)(void *)(to + i), a);
        _mm_stream_si128((__m128i *)(void *)(to + i + 16), b);
        _mm_stream_si128((__m128i *)(void *)(to + i + 32), c);
        _mm_stream_si128((__m128i *)(void *)(to + i + 48), d);
    }
    _mm_sfence();
}
#endif

bool sfti_source_stream(const sft_source *source, uint64_t offset, void *into, size_t len) {
#if defined(__SSE2__)
    if (!sfti_source_is_memory(source)) return false;
    if (len > source->size || offset > source->size - len) return false;
    const char *from = (const char *)source->ctx + offset;
    char *to = into;
    size_t head = (16 - (uintptr_t)to % 16) % 16;
    if (head > len) head = len;
    size_t lines = (len - head) & ~(size_t)63;
    memcpy(to, from, head);
    stream_lines(to + head, from + head, lines);
    memcpy(to + head + lines, from + head + lines, len - head - lines);
    return true;
#else
    (void)source, (void)offset, (void)into, (void)len;
    return false;
#endif
}

typedef struct map_source {
    sft_allocator alloc;
    void *base;
    uint64_t size;
    uint32_t mode;
} map_source;

static sft_code read_map(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                         sft_error *err) {
    const map_source *map = ctx;
    return read_memory(map->base, offset, into, len, got, err);
}

static void close_map(void *ctx) {
    map_source *map = ctx;
    sft_allocator alloc = map->alloc;
    sfti_os_unmap(map->base, map->size);
    sfti_release(&alloc, map, sizeof *map);
}

static uint32_t mode_map(void *ctx) {
    return ((const map_source *)ctx)->mode;
}

static const sft_source_vtable map_source_vtable = {
    sizeof(sft_source_vtable), read_map, close_map, NULL, mode_map
};

sft_code sfti_source_map(int fd, uint64_t size, bool writable_private, uint32_t mode,
                         const sft_allocator *alloc, sft_source *out, sft_error *err) {
    memset(out, 0, sizeof *out);
    if (!sfti_fits_size(size))
        return sfti_fail(err, SFT_ADDRESS_SPACE,
                         "expected a file this host can address, found %llu bytes",
                         (unsigned long long)size);
    if (size == 0) {
        *out = sft_source_memory(NULL, 0);
        return SFT_OK;
    }
    sft_allocator a = sfti_allocator(alloc);
    map_source *map = sfti_take(&a, sizeof *map);
    if (!map) return sfti_fail_memory(err, sizeof *map);
    map->alloc = a;
    map->size = size;
    map->mode = mode;
    int error = sfti_os_map(fd, size, writable_private, &map->base);
    if (error) {
        sfti_release(&a, map, sizeof *map);
        return sfti_io_fail(err, SFT_IO_MAP, error, "map the file");
    }
    sft_source source = { map, &map_source_vtable, size, map->base, false };
    *out = source;
    return SFT_OK;
}

/* ── Descriptors ── */

void sft_on_wait(bool (*go_on)(void *ctx), void *ctx) {
    sfti_os_on_wait(go_on, ctx);
}

#define FIRST_PAGE 4096

/* What is to be read, and whether the system knows. */
typedef enum read_habit { READ_AHEAD, READ_APART_UNTOLD, READ_APART } read_habit;

typedef struct fd_source {
    sft_allocator alloc;
    int fd;
    bool owned;
    const sft_wait *wait; /* of a forward source, or NULL */
    uint64_t position;    /* of a forward source: bytes read so far */
    uint64_t size;     /* of a positioned one: that of the map */
    atomic_int habit;  /* of a positioned one: read_habit */
    _Atomic uint64_t next, run; /* while apart: the end of the last read, the bytes up to there */
    uint32_t mode;     /* when it was opened; not 0 */
    _Atomic(void *) map; /* NULL until something is gathered */
} fd_source;

static sft_code fd_read_failed(int error, uint64_t offset, sft_error *err) {
    sft_code code = sfti_io_fail(err, SFT_IO_READ, error, "read");
    if (err) err->offset = offset;
    return code;
}

static void ahead_again(fd_source *s) {
    if (atomic_exchange(&s->habit, READ_AHEAD) == READ_APART) sfti_os_read_apart(s->fd, false);
}

/* The system need not know of what is read to the end, as small files are. A header begins in the
 * first page, and is no run however long it is. Threads may mix up runs: they are a guess. */
static sft_code read_positioned(void *ctx, uint64_t offset, void *into, size_t len,
                                size_t *got, sft_error *err) {
    const memory_order any = memory_order_relaxed;
    fd_source *s = ctx;
    if (atomic_load_explicit(&s->habit, any) != READ_AHEAD) {
        int untold = READ_APART_UNTOLD;
        if (offset < s->size && len < s->size - offset
            && atomic_compare_exchange_strong(&s->habit, &untold, READ_APART))
            sfti_os_read_apart(s->fd, true);
        bool goes_on = offset == atomic_load_explicit(&s->next, any);
        uint64_t run = len + (goes_on ? atomic_load_explicit(&s->run, any) : 0);
        if (offset < FIRST_PAGE) run = 0;
        atomic_store_explicit(&s->next, offset + len, any);
        atomic_store_explicit(&s->run, run, any);
        if (run >= SFTI_READ_LONG) ahead_again(s);
    }
    int error = sfti_read_all(s->fd, into, len, offset, got);
    return error ? fd_read_failed(error, offset + *got, err) : SFT_OK;
}

static sft_code read_next(fd_source *s, void *into, size_t len, size_t *got, sft_error *err) {
    *got = 0;
    while (*got < len) {
        size_t piece = 0;
        const sft_wait *before = sfti_os_wait_as(s->wait);
        int error = sfti_os_read(s->fd, (char *)into + *got, len - *got, &piece);
        (void)sfti_os_wait_as(before);
        if (error) return fd_read_failed(error, s->position, err);
        if (piece == 0) break;
        *got += piece;
        s->position += piece;
    }
    return SFT_OK;
}

static sft_code read_forward(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                             sft_error *err) {
    fd_source *s = ctx;
    char skipped[8192];
    *got = 0;
    if (offset < s->position)
        return sfti_fail_byte(err, SFT_OUT_OF_ORDER, offset, "expected a read at offset %llu or "
                              "later of what is read forward, found offset %llu",
                              (unsigned long long)s->position, (unsigned long long)offset);
    while (s->position < offset) {
        uint64_t left = offset - s->position;
        size_t piece = left < sizeof skipped ? (size_t)left : sizeof skipped;
        size_t read = 0;
        sft_code code = read_next(s, skipped, piece, &read, err);
        if (code) return code;
        if (read < piece) return SFT_OK;
    }
    return read_next(s, into, len, got, err);
}

static void close_fd_source(void *ctx) {
    fd_source *s = ctx;
    sft_allocator alloc = s->alloc;
    if (s->map) sfti_os_unmap(s->map, s->size);
    if (s->owned) (void)sfti_os_close(s->fd);
    sfti_release(&alloc, s, sizeof *s);
}

/* named: by the caller, not by an index. */
static sft_code not_a_file(os_kind kind, bool named, sft_error *err) {
    static const char *const found[] = { "a file", "a folder", "a link", "a pipe", "a device" };
    sfti_fail(err, SFT_IO_NOT_FILE, "expected a file, found %s", found[kind]);
    if (kind == OS_DIR && named) sfti_hint(err, SFT_HINT_FOLDER);
    return SFT_IO_NOT_FILE;
}

static uint32_t mode_fd_source(void *ctx) {
    return ((const fd_source *)ctx)->mode;
}

static const sft_source_vtable positioned_source_vtable = {
    sizeof(sft_source_vtable), read_positioned, close_fd_source, NULL, mode_fd_source
};

static const sft_source_vtable forward_source_vtable = {
    sizeof(sft_source_vtable), read_forward, close_fd_source, NULL, NULL
};

int sfti_source_descriptor(const sft_source *source) {
    return source->vtable != &positioned_source_vtable ? -1 : ((const fd_source *)source->ctx)->fd;
}

int sfti_source_streamed(const sft_source *source) {
    int fd = sfti_source_descriptor(source);
    if (fd >= 0) ahead_again(source->ctx);
    return fd;
}

void sfti_source_apart(const sft_source *source) {
    if (sfti_source_descriptor(source) < 0) return;
    fd_source *s = source->ctx;
    atomic_store_explicit(&s->run, 0, memory_order_relaxed);
    int ahead = READ_AHEAD;
    if (s->owned) (void)atomic_compare_exchange_strong(&s->habit, &ahead, READ_APART_UNTOLD);
}

/* A descriptor of the caller's keeps what he told the system of his reads. */
static sft_code wrap_fd(int fd, bool owned, bool beneath, const sft_allocator *a,
                        const sft_wait *wait, sft_source *out, const os_info *info,
                        sft_error *err) {
    /* A device named by a path may never end; a pipe that a file names may never begin. */
    bool endless = (owned && info->kind == OS_OTHER) || (beneath && info->kind != OS_FILE);
    if (info->kind == OS_DIR || endless) return not_a_file(info->kind, !beneath, err);
    fd_source *s = sfti_take(a, sizeof *s);
    if (!s) return sfti_fail_memory(err, sizeof *s);
    s->alloc = *a;
    bool regular = info->kind == OS_FILE;
    s->fd = regular && !owned ? sfti_os_positioned(fd) : fd;
    s->owned = owned || s->fd != fd;
    s->wait = wait;
    s->position = 0;
    s->size = info->size;
    s->mode = info->mode & 0777 ? info->mode & 0777 : 0600;
    atomic_init(&s->map, NULL);
    atomic_init(&s->next, 0);
    atomic_init(&s->run, 0);
    atomic_init(&s->habit, owned && regular ? READ_APART_UNTOLD : READ_AHEAD);
    sft_source source = { s, regular ? &positioned_source_vtable : &forward_source_vtable,
                          regular ? info->size : SFT_SIZE_UNKNOWN, NULL, false };
    *out = source;
    return SFT_OK;
}

/* ── Gathering ── */

/* Several threads may come here at once: one of their maps is kept. */
static void *kept_map(fd_source *s) {
    void *map = s->map, *fresh;
    if (map || sizeof map < 8 || s->size == 0) return map;
    if (sfti_os_map(s->fd, s->size, false, &fresh)) return NULL;
    if (atomic_compare_exchange_strong(&s->map, &map, fresh)) return fresh;
    sfti_os_unmap(fresh, s->size);
    return map;
}

/* None is made where the system cannot gather: on Windows nobody could cut or replace the file
 * then. */
static void *gather_map(fd_source *s) {
    size_t none;
    return sfti_os_gather(NULL, NULL, 0, 1, NULL, &none) ? NULL : kept_map(s);
}

const char *sfti_source_mapped(const sft_source *source, uint64_t end) {
    os_info now;
    if (sfti_source_descriptor(source) < 0) return NULL;
    fd_source *s = source->ctx;
    if (end > s->size || sfti_os_info_fd(s->fd, &now) || now.size < end) return NULL;
    return kept_map(s);
}

/* 1. Nothing beyond the size at opening is asked for: beyond a map lies other memory.
 * 2. Only the system reads the map, and knows when the file has no such page any more.
 * 3. Of the last page that it has, the part behind its end reads as zeros: whether the file was
 *    long enough is looked at after copying. */
size_t sfti_source_gather(const sft_source *source, const uint64_t *offsets, size_t count,
                          size_t len, void *into) {
    if (sfti_source_descriptor(source) < 0) return 0;
    fd_source *s = source->ctx;
    uint64_t end = 0;
    size_t got = 0;
    os_info now;
    for (size_t i = 0; i < count; i++) {
        if (len > s->size || offsets[i] > s->size - len) return 0;
        if (offsets[i] + len > end) end = offsets[i] + len;
    }
    const void *map = gather_map(s);
    if (!map) return 0;
    (void)sfti_os_gather(map, offsets, count, len, into, &got);
    if (sfti_os_info_fd(s->fd, &now) || now.size < end) return 0;
    return got / len;
}

/* Unless as many pages are in memory already, as after the last time. */
void sfti_source_soon(const sft_source *source, const uint64_t *offsets, size_t count, size_t len) {
    uint64_t cached, span = count ? offsets[count - 1] + len - offsets[0] : 0;
    int fd = sfti_source_descriptor(source);
    if (fd < 0 || count == 0) return;
    if (sfti_os_cached(fd, offsets[0], span, &cached) == 0 && cached / FIRST_PAGE >= count) return;
    for (size_t i = 0; i < count; i++) sfti_os_read_soon(fd, offsets[i], len);
}

sft_code sfti_source_fd(int fd, const sft_allocator *alloc, const sft_wait *wait, sft_source *out,
                        sft_error *err) {
    os_info info;
    if (!out) return sfti_misuse(err, "expected a place for the source, found NULL");
    memset(out, 0, sizeof *out);
    int error = sfti_os_info_fd(fd, &info);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "look at the open file");
    sft_allocator own = sfti_allocator(alloc);
    return wrap_fd(fd, false, false, &own, wait, out, &info, err);
}

sft_code sft_source_fd(int fd, const sft_allocator *alloc, sft_source *out, sft_error *err) {
    return sfti_source_fd(fd, alloc, NULL, out, err);
}

/* ── Paths ── */

static sft_code beneath_fail(int error, sft_error *err) {
    bool leads_out = error == EXDEV;
    if (leads_out)
        sfti_fail(err, SFT_INDEX_PATH,
                  "expected a file beneath the folder, found a link that leads out of it");
    else
        sfti_fail(err, SFT_IS_LINK, "expected a file, found a symbolic link in its path");
    if (!err) return leads_out ? SFT_INDEX_PATH : SFT_IS_LINK;
    err->os_errno = error;
    err->hint = leads_out ? SFT_HINT_LINK_LEAVES : SFT_HINT_LINK_NAMED;
    return err->code;
}

static sft_code not_beneath(sft_error *err) {
    return sfti_misuse(err, "expected a path that begins with the folder it lies beneath, "
                       "found another");
}

sft_code sfti_open_beneath(const char *path, const char *beneath, os_beneath how, int *fd,
                           os_info *info, sft_error *err) {
    size_t len = beneath ? strlen(beneath) : 0;
    int error;
    *fd = -1;
    if (len > 0 && strncmp(path, beneath, len) != 0) return not_beneath(err);
    const char *name = path + len;
    if (!beneath && how == OS_BENEATH_READ) {
        error = info ? sfti_os_open_look(path, fd, info) : sfti_os_open_read(path, fd);
        info = NULL;
    } else if (!beneath) {
        error = sfti_os_open_no_link(path, how == OS_BENEATH_WRITE, fd);
    } else {
        while (len > 0 && sfti_is_separator(*name)) name++;
        error = sfti_os_open_beneath(beneath, name, how, fd);
    }
    if (error == 0 && info) {
        error = sfti_os_info_fd(*fd, info);
        if (error) (void)sfti_os_close(*fd);
        if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "look at the open file");
    }
    if (error == 0) return SFT_OK;
    if (beneath && (error == EXDEV || (error == ELOOP && how != OS_BENEATH_READ)))
        return beneath_fail(error, err);
    if (error == EISDIR || error == ENXIO) {
        not_a_file(error == EISDIR ? OS_DIR : OS_OTHER, !beneath, err);
        if (err) err->os_errno = error;
        return SFT_IO_NOT_FILE;
    }
    /* An index may name many files: whoever opens them looks for such a file once. */
    if (error == ENOENT && !beneath && sfti_old_fail(path, err)) return SFT_NOT_FOUND;
    return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
}

/* The file of sft_files, whose table is the program's: what it opens is checked. */
static sft_code open_claimed(const char *path, const sft_open_options *how, sft_source *out,
                             sft_error *err) {
    const sft_files *files = how->files;
    const char *beneath = how->beneath, *found = NULL;
    if (!SFTI_CAN(files, sft_files_vtable, open))
        return sfti_misuse(err, "expected files with open, found none");
    if (beneath && strncmp(path, beneath, strlen(beneath)) != 0) return not_beneath(err);
    sft_code code = files->vtable->open(files->ctx, path, beneath, out, err);
    if (code) {
        memset(out, 0, sizeof *out);
        return code;
    }
    if (!sfti_source_usable(out)) found = "one without read";
    else if (out->size == SFT_SIZE_UNKNOWN) found = "one of unknown size";
    if (!found) return SFT_OK;
    sft_source_close(out);
    return sfti_misuse(err, "expected files that open a source, found %s", found);
}

sft_code sfti_source_open(const char *path, const sft_open_options *how, sft_source *out, int *fd,
                          os_info *info, sft_error *err) {
    os_info here = { .kind = OS_OTHER };
    int opened = -1;
    memset(out, 0, sizeof *out);
    if (fd) *fd = -1;
    if (how->files && sfti_files_claim(how->files, path, how->beneath)) {
        sft_code code = open_claimed(path, how, out, err);
        here.size = out->size;
        if (info) *info = here;
        return code;
    }
    const sft_wait *before = sfti_os_wait_as(how->wait);
    sft_code code = sfti_open_beneath(path, how->beneath, OS_BENEATH_READ, &opened, &here, err);
    (void)sfti_os_wait_as(before);
    if (code) return code;
    code = wrap_fd(opened, true, how->beneath != NULL, how->alloc, how->wait, out, &here, err);
    if (code) {
        (void)sfti_os_close(opened);
        return code;
    }
    if (sfti_hook_watch) sfti_hook_watch->opened(path, &here);
    if (fd) *fd = opened;
    if (info) *info = here;
    return SFT_OK;
}

sft_code sft_source_path(const char *path, const sft_open_options *options, sft_source *out,
                         sft_error *err) {
    sft_open_options own;
    if (out) memset(out, 0, sizeof *out);
    if (!path || !out)
        return sfti_misuse(err, "expected a path and a place for the source, found NULL");
    sft_code code = sfti_take_open(options, &own, err);
    sft_allocator alloc = sfti_allocator(own.alloc);
    own.alloc = &alloc;
    return code ? code : sfti_source_open(path, &own, out, NULL, NULL, err);
}
