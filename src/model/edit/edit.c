/* Opening a file to edit it, and what is asked for. Tests: test_edit.c. */
#include "edit/edit.h"

#include "bytes/replaced.h"

#include "base/files.h"
#include "base/options.h"
#include "base/utf8.h"
#include "os/path.h"

#include <errno.h>
#include <string.h>

const char *sft_edit_method_name(sft_edit_method method) {
    static const char *const names[] = { "none", "in place", "reflink", "insert", "copy" };
    return (unsigned)method <= SFT_EDIT_COPY ? names[method] : "unknown";
}

/* ── Options and path ── */

static SFTI_OPTIONS_TAKE(edit_take, sft_edit_options, SFT_EDIT_OPTIONS_INIT, open)

static sft_code edit_settle(const sft_edit_options *options, sft_edit_options *own,
                            sfti_open *how, sft_error *err) {
    sft_code code = edit_take(options, own, err);
    if (!code && (unsigned)own->link > SFT_LINK_REFUSE)
        return sfti_misuse(err, "expected a link policy up to 2, found %d", (int)own->link);
    sft_open_options open;
    if (!code) code = sfti_take_open(own->open, &open, err);
    own->open = NULL;
    if (code) return code;
    open.mode = SFT_READ;
    open.header_only = false;
    return sfti_open_settle(NULL, &open, how, err);
}

/* Where the Hugging Face cache keeps files under names that are their digests. */
static bool is_cache_blob(const char *path) {
    sft_span whole = sft_span_cstr(path), name = sfti_path_name(whole);
    if (name.len != 40 && name.len != 64) return false;
    for (size_t i = 0; i < name.len; i++)
        if (!memchr("0123456789abcdef", name.data[i], 16)) return false;
    return sft_span_equal(sfti_path_name(sfti_path_above(whole)), sft_span_cstr("blobs"));
}

static sft_code edit_take_path(const char *path, const sft_open_options *open,
                               char buffer[4096], sft_error *err) {
    size_t len = strlen(path);
    if (sfti_files_claim(open->files, path))
        return sfti_misuse(err, "expected a file of the system's folders to change, found a path "
                           "that is only read");
    if (len >= 4096)
        return sfti_fail(err, SFT_IO_OPEN, "expected a path of at most 4095 bytes, found %zu", len);
    memcpy(buffer, path, len + 1);
    return SFT_OK;
}

/* The folder that path lies in. Of what was named by a file, no part of it is a link. */
static sft_code edit_open_folder(const char *path, const char *beneath, int *fd, sft_error *err) {
    char folder[4096];
    size_t len = sfti_folder_len(path);
    memcpy(folder, path, len);
    folder[len] = '\0';
    if (beneath && len > strlen(beneath)) {
        folder[len - 1] = '\0';
        return sfti_open_beneath(folder, beneath, OS_BENEATH_FOLDER, fd, NULL, err);
    }
    int error = sfti_os_open_beneath(folder, "", OS_BENEATH_FOLDER, fd);
    return error ? sfti_io_fail(err, SFT_IO_OPEN, error, "open") : SFT_OK;
}

/* A file whose folder stays the same one, whoever renames it or one above it: what is looked at,
 * changed, replaced and removed is all in there. Where the system cannot name a file so, path and
 * beneath stay. */
static sft_code edit_hold(char path[4096], const char **beneath, int *folder, sft_error *err) {
    char held[4096];
    sft_code code = edit_open_folder(path, *beneath, folder, err);
    if (code) return code;
    if (sfti_os_path_in(*folder, path + sfti_folder_len(path), held, sizeof held) == 0) {
        memcpy(path, held, strlen(held) + 1);
        *beneath = NULL;
    } else {
        (void)sfti_os_close(*folder);
        *folder = -1;
    }
    return SFT_OK;
}

/* path, as the caller named it, becomes that of what is to be changed. With state, for recovery: a
 * file that a replacement has left under another name gets its own back; an edit refuses instead,
 * for the file may have been removed since. */
static sft_code edit_resolve(char path[4096], const char **beneath, const sft_edit_options *o,
                             int *folder, bool *is_link, sft_edit_found *state, sft_error *err) {
    char real[4096];
    os_info info;
    bool follows = o->link == SFT_LINK_FOLLOW && !*beneath;
    *is_link = false;
    sft_code code = edit_hold(path, beneath, folder, err);
    if (!code && state) code = sfti_replaced_recover(path, o->no_sync, state, err);
    if (code) return code;
    int error = sfti_os_info_path(path, false, &info);
    if (error == ENOENT && sfti_old_fail(path, err)) return SFT_NOT_FOUND;
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    if (info.kind != OS_LINK) return SFT_OK;
    *is_link = o->link == SFT_LINK_REPLACE;
    if (*is_link) return SFT_OK;
    error = sfti_os_real_path(path, real, sizeof real);
    if (!follows) {
        const char *target = error ? "what cannot be reached" : real;
        sfti_fail(err, SFT_IS_LINK, "expected a file, found a symbolic link to %s", target);
        if (is_cache_blob(target)) sfti_hint(err, SFT_HINT_HUB_CACHE);
        return SFT_IS_LINK;
    }
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "follow the symbolic link");
    memcpy(path, real, strlen(real) + 1);
    if (*folder >= 0) (void)sfti_os_close(*folder);
    *folder = -1;
    return edit_hold(path, beneath, folder, err);
}

/* ── Opening ── */

static sft_code edit_open_model(sft_edit *edit, sft_error *err) {
    sft_span header = { NULL, 0 };
    sft_code code;
    if (edit->is_link) { /* what it leads to is read only, for a file of its own */
        const char *beneath = edit->open.beneath, *path = beneath ? edit->named : edit->path;
        code = sfti_open_beneath(path, beneath, OS_BENEATH_READ, &edit->fd, NULL, err);
        int error = code ? 0 : sfti_os_info_fd(edit->fd, &edit->info);
        if (error) code = sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    } else {
        code = sfti_edit_open_file(edit->path, edit->beneath, false, &edit->fd, &edit->info, err);
    }
    if (code) return code;
    if (edit->info.kind != OS_FILE)
        return sfti_fail(err, SFT_IO_NOT_FILE, "expected a file, found %s",
                         edit->info.kind == OS_DIR ? "a folder" : "a pipe or device");
    code = sft_open_fd(edit->fd, &edit->open, &edit->file, err);
    if (code && (code < 100 || code >= 300)) return code;
    /* Why its header was refused may be an edit, too. */
    if (!code) header = sft_file_header(edit->file);
    sft_code told = sfti_file_edited(edit->path, &edit->info, header, code != SFT_OK, &edit->alloc,
                                     NULL, err);
    return told ? told : code;
}

static void edit_shut(sft_edit *edit) {
    sft_close(edit->file);
    if (edit->fd >= 0) (void)sfti_os_close(edit->fd);
    edit->file = NULL;
    edit->fd = -1;
}

/* An interrupted edit is completed first. A file that is torn, though it was just seen to be whole,
 * is being changed now, or was until now: it is opened once more when nobody holds its lock. */
static sft_code edit_open_whole(sft_edit *edit, sft_error *err) {
    const sft_edit_options *o = &edit->options;
    for (bool again = false;; again = true) {
        sft_code code = sfti_journal_recover(edit->path, edit->beneath, o->force, o->no_sync,
                                             &edit->alloc, NULL, err);
        if (!code) code = edit_open_model(edit, err);
        bool torn = code == SFT_EDIT_INTERRUPTED || (code >= 100 && code < 180);
        if (again || !torn || edit->fd < 0) return code;
        int error = sfti_os_lock(edit->fd);
        edit_shut(edit);
        if (error != EAGAIN) continue;
        sfti_fail(err, SFT_EDIT_BUSY, "expected no other program to change the file, found one");
        if (err) err->os_errno = error;
        return SFT_EDIT_BUSY;
    }
}

sft_code sft_edit_open(const char *path, const sft_edit_options *options, sft_edit **out,
                       sft_error *err) {
    sft_edit_options own;
    sfti_open how;
    if (out) *out = NULL;
    if (!out || !path)
        return sfti_misuse(err, "expected a path and a place for the edit, found NULL");
    sft_code code = edit_settle(options, &own, &how, err);
    if (code) return code;
    sft_edit *edit = sfti_take(&how.alloc, sizeof *edit);
    if (!edit) return sfti_fail_memory(err, sizeof *edit);
    memset(edit, 0, sizeof *edit);
    edit->alloc = edit->arena.alloc = how.alloc;
    edit->options = own;
    edit->open = how.options;
    edit->open.alloc = &edit->alloc;
    edit->limits = how.limits;
    edit->metadata.last = &edit->metadata.first;
    edit->names.last = &edit->names.first;
    edit->fd = edit->folder = -1;
    sfti_seed_draw(edit, edit->seed);
    edit->named = path;
    edit->beneath = edit->open.beneath;
    code = edit_take_path(path, &edit->open, edit->path, err);
    if (!code)
        code = edit_resolve(edit->path, &edit->beneath, &own, &edit->folder, &edit->is_link, NULL,
                            err);
    if (!code)
        code = own.no_recover || edit->is_link ? edit_open_model(edit, err)
                                               : edit_open_whole(edit, err);
    if (!code) *out = edit;
    else sft_edit_close(edit);
    return code;
}

void sft_edit_close(sft_edit *edit) {
    if (!edit) return;
    sft_allocator alloc = edit->alloc;
    edit_shut(edit);
    if (edit->folder >= 0) (void)sfti_os_close(edit->folder);
    sfti_arena_free(&edit->arena);
    sfti_release(&alloc, edit, sizeof *edit);
}

const sft_file *sft_edit_file(const sft_edit *edit) {
    return edit->file;
}

/* ── Asking ── */

static bool request_copy(sft_edit *edit, sft_span from, sft_span *to) {
    *to = from;
    if (!from.data) return true;
    char *copy = sfti_arena_take(&edit->arena, from.len);
    if (!copy) return false;
    if (from.len > 0) memcpy(copy, from.data, from.len);
    to->data = copy;
    return true;
}

static sft_code request_add(sft_edit *edit, sfti_requests *to, sft_span key, sft_span value,
                            sft_error *err) {
    sfti_request *request = sfti_arena_take(&edit->arena, sizeof *request);
    if (!request || !request_copy(edit, value, &request->value))
        return sfti_fail_memory(err, value.len);
    request->key = key;
    request->next = NULL;
    *to->last = request;
    to->last = &request->next;
    to->count++;
    return SFT_OK;
}

static sft_code request_check(sft_span text, const char *what, sft_error *err) {
    if (text.len == 0) return SFT_OK;
    if (!text.data)
        return sfti_misuse(err, "expected %s, found NULL", what);
    size_t good = sfti_utf8_check(text.data, text.len);
    if (good == text.len) return SFT_OK;
    return sfti_fail(err, SFT_HEADER_UTF8,
                     "expected %s in UTF-8, found other bytes from byte %zu on", what, good);
}

static sft_code request_pair(sft_edit *edit, sft_span key, sft_span value, sft_error *err) {
    sft_span copy;
    if (!key.data) key.data = "";
    if (!request_copy(edit, key, &copy)) return sfti_fail_memory(err, key.len);
    return request_add(edit, &edit->metadata, copy, value, err);
}

sft_code sft_edit_set(sft_edit *edit, sft_span key, sft_span value, sft_error *err) {
    sft_code code = request_check(key, "a metadata key", err);
    if (!code) code = request_check(value, "a metadata value", err);
    if (code) return code;
    if (!value.data) value.data = ""; /* an empty value is not a missing one */
    return request_pair(edit, key, value, err);
}

sft_code sft_edit_remove(sft_edit *edit, sft_span key, sft_error *err) {
    static const sft_span none = { NULL, 0 };
    sft_code code = request_check(key, "a metadata key", err);
    if (code) return code;
    return request_pair(edit, key, none, err);
}

sft_code sft_edit_rename(sft_edit *edit, sft_span from, sft_span to, sft_error *err) {
    sft_code code = request_check(to, "a tensor's name", err);
    if (code) return code;
    if (sft_span_equal(to, sft_span_cstr("__metadata__")))
        return sfti_fail_tensor(err, SFT_NAME_RESERVED, SFT_NO_OFFSET, from,
                                "expected a new name, found the reserved __metadata__");
    const sft_tensor *tensor = sft_file_find(edit->file, from);
    if (!tensor)
        return sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET, from,
                                "expected a tensor of this name, found none");
    sft_span name = tensor->name, empty = { "", 0 };
    return request_add(edit, &edit->names, name.data ? name : empty, to.data ? to : empty, err);
}

/* ── Recovery ── */

sft_code sft_edit_recover(const char *path, const sft_edit_options *options,
                          sft_edit_found *found, sft_error *err) {
    char own_path[4096];
    bool is_link = false;
    int folder = -1;
    sft_edit_options own;
    sfti_open how;
    if (found) *found = SFT_EDIT_CLEAN;
    if (!path)
        return sfti_misuse(err, "expected a path, found NULL");
    sft_code code = edit_settle(options, &own, &how, err);
    const char *beneath = how.options.beneath;
    if (!code && own.link == SFT_LINK_REPLACE && !beneath) own.link = SFT_LINK_FOLLOW;
    if (!code) code = edit_take_path(path, &how.options, own_path, err);
    sft_edit_found state = SFT_EDIT_CLEAN;
    if (!code)
        code = edit_resolve(own_path, &beneath, &own, &folder, &is_link, &state, err);
    if (!code && found) *found = state;
    if (state == SFT_EDIT_OLD) found = NULL; /* told */
    if (!code && !is_link) /* no edit of it went through a link */
        code = sfti_journal_recover(own_path, beneath, own.force, own.no_sync, &how.alloc, found,
                                    err);
    if (folder >= 0) (void)sfti_os_close(folder);
    return code;
}
