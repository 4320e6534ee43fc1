/* Bytes of an import: the input, other files, pieces, the workspace. */
#include "base/announce.h"
#include "base/files.h"
#include "base/portable.h"
#include "formats/parts/state.h"

#include <string.h>

/* ── Reading ── */

sft_code sfti_import_exact(const sft_source *source, uint64_t offset, void *into, size_t len,
                           sft_error *err) {
    size_t got = 0;
    if (len == 0) return SFT_OK;
    if (offset <= source->size && len <= source->size - offset) {
        sft_code code = sft_source_read(source, offset, into, len, &got, err);
        if (code || got == len) return code;
    }
    return sfti_fail_byte(err, SFT_FOREIGN_TRUNCATED, offset,
                          "expected %zu bytes, found the end of the file at byte %llu", len,
                          (unsigned long long)source->size);
}

sft_code sfti_import_read(sfti_import *im, const sft_source *source, uint64_t offset, void *into,
                          size_t len) {
    return sfti_import_exact(source, offset, into, len, im->err);
}

sft_code sfti_import_load(sfti_import *im, const sft_source *source, uint64_t offset, uint64_t len,
                          uint8_t **out) {
    *out = NULL;
    if (offset > source->size || len > source->size - offset)
        return sfti_fail_byte(im->err, SFT_FOREIGN_TRUNCATED, offset,
                              "expected %llu bytes, found the end of the file at byte %llu",
                              (unsigned long long)len, (unsigned long long)source->size);
    if (!sfti_fits_size(len)) return sfti_fail_memory(im->err, len);
    uint8_t *bytes = sfti_arena_take(&im->arena, (size_t)len);
    if (!bytes) return sfti_fail_memory(im->err, len);
    sft_code code = sfti_import_exact(source, offset, bytes, (size_t)len, im->err);
    if (!code) *out = bytes;
    return code;
}

uint32_t sfti_import_mode(const sft_import *im) {
    uint32_t mode = 0;
    for (const sfti_held *held = im->held; held; held = held->next)
        sfti_mode_common(&mode, sft_source_mode(&held->source));
    return mode;
}

uint32_t sfti_mode_inner(void *ctx) { return sft_source_mode(*(const sft_source *const *)ctx); }

/* ── Sources that the import holds ── */

void sfti_import_allow(sfti_import *im) {
    uint64_t most;
    if (!sfti_mul(im->input_bytes, SFTI_MEMORY_TIMES, &most) ||
        !sfti_add(most, SFTI_MEMORY_BASE, &most))
        most = UINT64_MAX;
    im->budget.most = most;
}

static sft_code hold(sfti_import *im, sft_source source, sft_span name, const sft_source **out) {
    sfti_held *held = sfti_arena_take(&im->arena, sizeof *held);
    if (!held) {
        sft_source_close(&source);
        return sfti_fail_memory(im->err, sizeof *held);
    }
    *held = (sfti_held){ im->held, im->files, source, name };
    im->held = held;
    if (name.data) im->files = held;
    *out = &held->source;
    return SFT_OK;
}

sft_code sfti_import_own(sfti_import *im, const sft_source *made, const sft_source **out) {
    return hold(im, *made, (sft_span){ NULL, 0 }, out);
}

sft_code sfti_import_memory(sfti_import *im, const void *bytes, size_t len,
                            const sft_source **out) {
    return hold(im, sft_source_memory(bytes, len), (sft_span){ NULL, 0 }, out);
}

/* ── The workspace ── */

sft_code sfti_work_begin(sfti_import *im, sft_error *err) {
    sfti_workspace *work = &im->work;
    sfti_os_mutex_lock(&work->mutex);
    if (work->in) return SFT_OK;
    uint8_t *both = sfti_os_resize(NULL, NULL, 0, 2 * SFTI_WORK_BYTES);
    if (!both) {
        sfti_os_mutex_unlock(&work->mutex);
        return sfti_fail_memory(err, 2 * SFTI_WORK_BYTES);
    }
    work->in = both;
    work->out = both + SFTI_WORK_BYTES;
    return SFT_OK;
}

void sfti_work_end(sfti_import *im) {
    sfti_os_mutex_unlock(&im->work.mutex);
}

/* ── Other files ── */

/* As sfti_name_inside, but parts may be empty or "." here, as ONNX writes "./weights". */
static bool is_name_inside(sft_span name) {
    const bool windows = SFTI_OS_PATHS == SFTI_PATHS_WINDOWS;
    const char *why;
    if (name.len == 0 || name.data[0] == '/' || memchr(name.data, '\0', name.len)
        || memchr(name.data, '\\', name.len) || (name.len > 1 && name.data[1] == ':'))
        return false;
    for (size_t at = 0; at <= name.len;) {
        const char *slash = memchr(name.data + at, '/', name.len - at);
        size_t end = slash ? (size_t)(slash - name.data) : name.len;
        sft_span part = { name.data + at, end - at };
        bool dots = part.len <= 2 && memcmp(part.data, "..", part.len) == 0;
        if (dots && part.len == 2) return false;
        if (windows && !dots && !sfti_name_portable(part, &why)) return false;
        at += part.len + 1;
    }
    return true;
}

static sft_code fail_outside(sfti_import *im, sft_span name, const char *found) {
    return sfti_fail(im->err, SFT_FOREIGN_PATH,
                     "expected a file beneath the model's folder, found %s: %.*s", found,
                     SFTI_CLIP(name, 200));
}

sft_code sfti_import_path(sfti_import *im, const char *path, const char *beneath,
                          sft_source *out) {
    sft_open_options how = SFT_OPEN_OPTIONS_INIT;
    how.alloc = &im->alloc;
    how.files = im->options.files;
    how.wait = im->options.wait;
    how.beneath = beneath;
    return sft_source_path(path, &how, out, im->err);
}

/* A name that a file gave, in that file's folder. */
static sft_code open_named(sfti_import *im, sft_span name, sft_source *out) {
    const char *path = sfti_arena_join(&im->arena, sft_span_cstr(im->folder), name);
    if (!path) return sfti_fail_memory(im->err, name.len + 1);
    sft_code code = sfti_import_path(im, path, im->folder, out);
    if (code == SFT_INDEX_PATH) return fail_outside(im, name, "a link that leads out of it");
    if (code == SFT_NOT_FOUND && im->err) {
        int error = im->err->os_errno;
        (void)sfti_fail(im->err, code, "expected a file that the model names, found none: %.*s",
                        SFTI_CLIP(name, 200));
        im->err->os_errno = error;
    }
    return code;
}

sft_code sfti_import_file(sfti_import *im, sft_span name, const sft_source **out) {
    sft_source opened;
    *out = NULL;
    for (sfti_held *held = im->files; held; held = held->next_file) {
        if (!sft_span_equal(held->name, name)) continue;
        *out = &held->source;
        return SFT_OK;
    }
    if (!is_name_inside(name) || (im->is_claimed && !sfti_files_name_fits(name)))
        return fail_outside(im, name, "a path that is not");
    if (!im->folder)
        return sfti_fail(im->err, SFT_NOT_FOUND,
                         "expected a path, beside which to find %.*s, found bytes alone",
                         SFTI_CLIP(name, 200));
    sft_code code = open_named(im, name, &opened);
    if (code) return code;
    sfti_total_add(&im->input_bytes, opened.size);
    sfti_import_allow(im);
    char *kept = sfti_arena_copy(&im->arena, name.data, name.len);
    if (!kept) {
        sft_source_close(&opened);
        return sfti_fail_memory(im->err, name.len);
    }
    return hold(im, opened, (sft_span){ kept, name.len }, out);
}

void sfti_import_announce(sfti_import *im, const sft_span *names, size_t count) {
    sfti_arena arena = { .alloc = im->alloc };
    const char **paths = im->is_claimed ? sfti_arena_array(&arena, count, sizeof *paths) : NULL;
    size_t kept = 0;
    for (size_t i = 0; paths && i < count; i++) {
        bool there = is_name_inside(names[i]) && sfti_files_name_fits(names[i]);
        const char *path =
            there ? sfti_arena_join(&im->arena, sft_span_cstr(im->folder), names[i]) : NULL;
        if (path) paths[kept++] = path;
    }
    if (kept > 1) sfti_files_expect(im->options.files, paths, kept, im->folder);
    sfti_arena_free(&arena);
}

/* ── Pieces as one ── */

typedef struct joined_pieces {
    size_t count;
    uint64_t *ends; /* of each piece in the whole */
    sfti_piece *pieces;
} joined_pieces;

static size_t joined_find(const joined_pieces *j, uint64_t offset) {
    size_t low = 0, high = j->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (j->ends[middle] <= offset) low = middle + 1;
        else high = middle;
    }
    return low;
}

static sft_code read_joined(void *ctx, uint64_t offset, void *into, size_t len, size_t *got,
                            sft_error *err) {
    const joined_pieces *j = ctx;
    *got = 0;
    for (size_t i = joined_find(j, offset); i < j->count && *got < len; i++) {
        const sfti_piece *piece = &j->pieces[i];
        uint64_t inside = offset + *got - (j->ends[i] - piece->len), left = piece->len - inside;
        size_t some = left < len - *got ? (size_t)left : len - *got;
        sft_code code = sfti_import_exact(piece->source, piece->begin + inside,
                                          (char *)into + *got, some, err);
        if (code) return code;
        *got += some;
    }
    return SFT_OK;
}

static void expect_joined(void *ctx, const sft_run *runs, size_t count) {
    const joined_pieces *j = ctx;
    sfti_announcement all = { .count = 0 };
    for (size_t n = 0; n < count; n++) {
        uint64_t at = runs[n].offset, end = at + runs[n].len;
        for (size_t i = joined_find(j, at); i < j->count && at < end; i++) {
            const sfti_piece *piece = &j->pieces[i];
            uint64_t inside = at - (j->ends[i] - piece->len), left = piece->len - inside;
            if (left > end - at) left = end - at;
            sfti_announce(&all, piece->source, piece->begin + inside, left);
            at += left;
        }
    }
    sfti_announce_end(&all);
}

static uint32_t mode_joined(void *ctx) {
    const joined_pieces *j = ctx;
    uint32_t mode = 0;
    for (size_t i = 0; i < j->count; i++)
        sfti_mode_common(&mode, sft_source_mode(j->pieces[i].source));
    return mode;
}

static const sft_source_vtable joined_source_vtable = {
    sizeof(sft_source_vtable), read_joined, NULL, expect_joined, mode_joined
};

sft_code sfti_import_joined(sfti_import *im, const sfti_piece *pieces, size_t count,
                            const sft_source **out) {
    joined_pieces *j = sfti_arena_take(&im->arena, sizeof *j);
    uint64_t *ends = sfti_arena_array(&im->arena, count, sizeof *ends), end = 0;
    sfti_piece *kept = sfti_arena_array(&im->arena, count, sizeof *kept);
    if (!j || !ends || !kept) return sfti_fail_memory(im->err, count * sizeof *kept);
    for (size_t i = 0; i < count; i++) {
        kept[i] = pieces[i];
        if (!sfti_add(end, pieces[i].len, &end))
            return sfti_fail_byte(im->err, SFT_SIZE_OVERFLOW, pieces[i].begin,
                                  "expected pieces of less than 2^64 bytes, found more");
        ends[i] = end;
    }
    *j = (joined_pieces){ count, ends, kept };
    sft_source source = { j, &joined_source_vtable, end, NULL, false };
    return sfti_import_own(im, &source, out);
}
