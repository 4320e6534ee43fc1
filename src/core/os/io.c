/* What every folder does with the functions of os.h. Tests: test_os.c. */
#include "os/io.h"
#include "os/path.h"

#include <errno.h>

sft_code sfti_io_fail(sft_error *err, sft_code code, int os_errno, const char *what) {
    char buffer[128];
    if (code == SFT_IO_OPEN && os_errno == ENOENT) code = SFT_NOT_FOUND;
    if (code == SFT_IO_OPEN && os_errno == ENOMEM) code = SFT_OUT_OF_MEMORY;
    if (!err) return code;
    sfti_fail(err, code, "cannot %s: %s", what,
              sfti_os_error_text(os_errno, buffer, sizeof buffer));
    err->os_errno = os_errno;
    if (os_errno == EMFILE) sfti_hint(err, SFT_HINT_OPEN_FILES);
    return code;
}

int sfti_read_all(int fd, void *into, size_t len, uint64_t offset, size_t *got) {
    *got = 0;
    while (*got < len) {
        size_t piece = 0;
        int error = sfti_os_pread(fd, (char *)into + *got, len - *got, offset + *got, &piece);
        if (error || piece == 0) return error;
        *got += piece;
    }
    return 0;
}

int sfti_write_all(int fd, const void *bytes, size_t len, uint64_t offset) {
    for (size_t done = 0; done < len;) {
        size_t put = 0;
        int error = sfti_os_pwrite(fd, (const char *)bytes + done, len - done, offset + done, &put);
        if (error || put == 0) return error ? error : EIO;
        done += put;
    }
    return 0;
}

bool sfti_no_renaming(int error) {
    return error == ENOSYS || error == EPERM || error == EOPNOTSUPP || error == EXDEV;
}

int sfti_rename_new(const char *from, const char *to) {
    os_info info;
    int error = sfti_os_rename(from, to, true);
    if (!sfti_no_renaming(error)) return error;
    int there = sfti_os_info_path(to, false, &info);
    if (!there) return EEXIST;
    return there == ENOENT ? sfti_os_rename(from, to, false) : error;
}

bool sfti_no_folder_sync(int error) {
    return error == EINVAL || error == EOPNOTSUPP || error == ENOSYS;
}

int sfti_sync_parent(const char *path) {
    char folder[4608];
    sft_span whole = sfti_path_trimmed(sft_span_cstr(path));
    size_t len = sfti_rule_folder(SFTI_OS_PATHS, whole);
    if (len == 0) path = "./", len = 2;
    if (len >= sizeof folder) return 0;
    memcpy(folder, path, len);
    folder[len] = '\0';
    int error = sfti_os_sync_folder(folder);
    return sfti_no_folder_sync(error) ? 0 : error;
}

bool sfti_wait_over(const sft_wait *wait) {
    const sft_wait *before = sfti_os_wait_as(wait);
    bool over = sfti_os_wait_over();
    (void)sfti_os_wait_as(before);
    return over;
}

void sfti_seed_draw(const void *here, uint64_t seed[2]) {
    if (sfti_os_random(seed, 2 * sizeof *seed) == 0) return;
    seed[0] = sfti_os_now_ns() ^ (uint64_t)(uintptr_t)here;
    seed[1] = sfti_os_now_ns() * UINT64_C(0x9E3779B97F4A7C15) ^ (uint64_t)(uintptr_t)seed;
}

size_t sfti_path_escape(sft_span path, char *into, size_t cap, size_t *used) {
    size_t put = 0, read = 0;
    bool whole = SFTI_OS_PATHS != SFTI_PATHS_WINDOWS;
    for (*used = 0; *used < path.len && put < cap; *used += read) {
        sft_span rest = { path.data + *used, path.len - *used };
        const char *slash = whole ? NULL : memchr(rest.data, '\\', rest.len);
        if (slash == rest.data) {
            into[put++] = '\\';
            read = 1;
            continue;
        }
        if (slash) rest.len = (size_t)(slash - rest.data);
        size_t len = sfti_escape(rest.data, rest.len, into + put, cap - put, &read);
        if (!read) break;
        put += len;
    }
    return put;
}

bool sfti_names_draw(sfti_names *names, uint64_t count, sfti_name_fn name, const void *ctx,
                     sfti_arena *arena) {
    uint64_t seed[2];
    sfti_seed_draw(names, seed);
    return count < SFTI_NO_NAME &&
           sfti_names_begin(names, (size_t)count, seed, name, ctx, arena);
}
