/* Opening a file to edit it, and what is asked for. Tests: test_edit.c. */
#include "edit/edit.h"

#include "bytes/replaced.h"

#include "base/files.h"
#include "base/options.h"
#include "base/utf8.h"
#include "keys/renamed.h"
#include "os/path.h"

#include <errno.h>
#include <string.h>

const char *sft_edit_method_name(sft_edit_method method) {
    static const char *const names[] = { "none", "in place", "reflink", "insert", "copy" };
    return (unsigned)method <= SFT_EDIT_COPY ? names[method] : "unknown";
}

/* ── Options and path ── */

static SFTI_OPTIONS_TAKE(edit_take, sft_edit_options, SFT_EDIT_OPTIONS_INIT, open)

/* Options and path of an edit that is empty otherwise; nothing of it is opened yet. */
static sft_code edit_settle(const char *path, const sft_edit_options *options, sft_edit *out,
                            sft_error *err) {
    sfti_open how;
    sft_open_options open;
    memset(out, 0, sizeof *out);
    out->fd = out->folder = -1;
    out->named = path;
    sft_code code = edit_take(options, &out->options, err);
    if (!code && (unsigned)out->options.link > SFT_LINK_REFUSE)
        return sfti_misuse(err, "expected a link policy up to 2, found %d",
                           (int)out->options.link);
    if (!code) code = sfti_take_open(out->options.open, &open, err);
    out->options.open = NULL;
    if (code) return code;
    open.mode = SFT_READ;
    open.header_only = false;
    code = sfti_open_settle(NULL, &open, &how, err);
    if (code) return code;
    out->alloc = how.alloc;
    out->open = how.options;
    out->open.alloc = NULL; /* it lies in how */
    out->limits = how.limits;
    out->beneath = how.options.beneath;
    return SFT_OK;
}

/* Where the Hugging Face cache keeps files under names that are their digests. */
static bool is_cache_blob(const char *path) {
    sft_span whole = sft_span_cstr(path), name = sfti_path_name(whole);
    if (name.len != 40 && name.len != 64) return false;
    for (size_t i = 0; i < name.len; i++)
        if (!memchr("0123456789abcdef", name.data[i], 16)) return false;
    return sft_span_equal(sfti_path_name(sfti_path_above(whole)), sft_span_cstr("blobs"));
}

/* The folder that the file lies in is opened: whoever renames it or one above it, what is looked
 * at, changed, replaced and removed is all in there. Of what was named by a file, no part of it is
 * a link. Where the system cannot name a file so, path and beneath stay. */
static sft_code edit_hold(sft_edit *edit, sft_error *err) {
    char folder[4096], held[4096];
    const char *beneath = edit->beneath;
    size_t len = sfti_folder_len(edit->path);
    memcpy(folder, edit->path, len);
    folder[len] = '\0';
    if (beneath && len > strlen(beneath)) {
        folder[len - 1] = '\0';
        sft_code code = sfti_open_beneath(folder, beneath, OS_BENEATH_FOLDER, &edit->folder, NULL,
                                          err);
        if (code) return code;
    } else {
        int error = sfti_os_open_beneath(folder, "", OS_BENEATH_FOLDER, &edit->folder);
        if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    }
    if (sfti_os_path_in(edit->folder, edit->path + len, held, sizeof held) == 0) {
        memcpy(edit->path, held, strlen(held) + 1);
        edit->beneath = NULL;
    } else {
        (void)sfti_os_close(edit->folder);
        edit->folder = -1;
    }
    return SFT_OK;
}

/* The path, as the caller named it, becomes that of what is to be changed. With state, for
 * recovery: a file that a replacement has left under another name gets its own back; an edit
 * refuses instead, for the file may have been removed since. */
static sft_code edit_resolve(sft_edit *edit, sft_edit_found *state, sft_error *err) {
    char real[4096], *path = edit->path;
    os_info info;
    size_t len = strlen(edit->named);
    bool follows = edit->options.link == SFT_LINK_FOLLOW && !edit->beneath;
    if (sfti_files_claim(edit->open.files, edit->named, NULL))
        return sfti_misuse(err, "expected a file of the system's folders to change, found a path "
                           "that is only read");
    if (len >= sizeof edit->path)
        return sfti_fail(err, SFT_IO_OPEN, "expected a path of at most 4095 bytes, found %zu", len);
    memcpy(path, edit->named, len + 1);
    sft_code code = edit_hold(edit, err);
    if (!code && state) code = sfti_replaced_recover(path, edit->options.no_sync, state, err);
    if (code) return code;
    int error = sfti_os_info_path(path, false, &info);
    if (error == ENOENT && sfti_old_fail(path, err)) return SFT_NOT_FOUND;
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    if (info.kind != OS_LINK) return SFT_OK;
    edit->is_link = edit->options.link == SFT_LINK_REPLACE;
    if (edit->is_link) return SFT_OK;
    error = sfti_os_real_path(path, real, sizeof real);
    if (!follows) {
        const char *target = error ? "what cannot be reached" : real;
        sfti_fail(err, SFT_IS_LINK, "expected a file, found a symbolic link to %s", target);
        if (is_cache_blob(target)) sfti_hint(err, SFT_HINT_HUB_CACHE);
        return SFT_IS_LINK;
    }
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "follow the symbolic link");
    memcpy(path, real, strlen(real) + 1);
    if (edit->folder >= 0) (void)sfti_os_close(edit->folder);
    edit->folder = -1;
    return edit_hold(edit, err);
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

sft_code sft_edit_open(const char *path, const sft_edit_options *options, sft_edit **out,
                       sft_error *err) {
    sft_edit own, *edit;
    if (out) *out = NULL;
    if (!out || !path)
        return sfti_misuse(err, "expected a path and a place for the edit, found NULL");
    sft_code code = edit_settle(path, options, &own, err);
    if (code) return code;
    edit = sfti_take(&own.alloc, sizeof *edit);
    if (!edit) return sfti_fail_memory(err, sizeof *edit);
    *edit = own;
    edit->arena.alloc = edit->alloc;
    edit->open.alloc = &edit->alloc;
    edit->metadata.last = &edit->metadata.first;
    edit->names.last = &edit->names.first;
    sfti_seed_draw(edit, edit->seed);
    const sft_wait *before = sfti_os_wait_as(edit->open.wait);
    code = edit_resolve(edit, NULL, err);
    /* An interrupted edit is completed first. A file that is torn, though it was just seen to be
     * whole, is being changed now, or was until now: it is opened once more when nobody holds its
     * lock. */
    const sft_edit_options *o = &edit->options;
    bool recovers = !o->no_recover && !edit->is_link;
    for (bool again = false; !code; again = true) {
        if (recovers)
            code = sfti_journal_recover(edit->path, edit->beneath, o->force, o->no_sync,
                                        &edit->alloc, NULL, err);
        if (!code) code = edit_open_model(edit, err);
        bool torn = code == SFT_EDIT_INTERRUPTED || (code >= 100 && code < 180);
        if (!recovers || again || !torn || edit->fd < 0) break;
        int error = sfti_os_lock(edit->fd);
        edit_shut(edit);
        code = SFT_OK;
        if (error != EAGAIN) continue;
        code = sfti_fail(err, SFT_EDIT_BUSY,
                         "expected no other program to change the file, found one");
        if (err) err->os_errno = error;
    }
    (void)sfti_os_wait_as(before);
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

/* A value of data NULL removes the key. */
static sft_code request_add(sft_edit *edit, sfti_requests *to, sft_span key, sft_span value,
                            sft_error *err) {
    sfti_request *request = sfti_arena_take(&edit->arena, sizeof *request);
    char *name = sfti_arena_copy(&edit->arena, key.data, key.len);
    char *copy = value.data ? sfti_arena_copy(&edit->arena, value.data, value.len) : NULL;
    if (!request || !name || (value.data && !copy))
        return sfti_fail_memory(err, key.len > value.len ? key.len : value.len);
    *request = (sfti_request){ NULL, { name, key.len }, { copy, value.len } };
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

sft_code sft_edit_set(sft_edit *edit, sft_span key, sft_span value, sft_error *err) {
    if (!value.data && value.len == 0) value.data = ""; /* an empty value is not a missing one */
    sft_code code = request_check(key, "a metadata key", err);
    if (!code) code = request_check(value, "a metadata value", err);
    return code ? code : request_add(edit, &edit->metadata, key, value, err);
}

sft_code sft_edit_remove(sft_edit *edit, sft_span key, sft_error *err) {
    sft_code code = request_check(key, "a metadata key", err);
    if (code) return code;
    return request_add(edit, &edit->metadata, key, (sft_span){ NULL, 0 }, err);
}

sft_code sft_edit_rename(sft_edit *edit, sft_span from, sft_span to, sft_error *err) {
    sft_code code = request_check(to, "a tensor's name", err);
    if (code) return code;
    if (sft_span_equal(to, sft_span_cstr("__metadata__")))
        return sfti_fail_tensor(err, SFT_NAME_RESERVED, SFT_NO_OFFSET, from,
                                "expected a new name, found the reserved __metadata__");
    sft_pair alias = { from, { NULL, 0 } };
    const sft_tensor *tensor = sft_file_find(edit->file, from);
    bool other = !tensor && sft_file_metadata_get(edit->file, from, &alias.value)
              && sfti_may_be_alias(alias) && sft_file_find(edit->file, alias.value);
    if (!tensor && !other)
        return sfti_fail_tensor(err, SFT_TENSOR_NOT_FOUND, SFT_NO_OFFSET, from,
                                "expected a tensor of this name, found none");
    if (!to.data) to.data = "";
    return request_add(edit, &edit->names, from, to, err);
}

/* ── Recovery ── */

sft_code sft_edit_recover(const char *path, const sft_edit_options *options,
                          sft_edit_found *found, sft_error *err) {
    sft_edit edit;
    sft_edit_found state = SFT_EDIT_CLEAN;
    if (found) *found = SFT_EDIT_CLEAN;
    if (!path)
        return sfti_misuse(err, "expected a path, found NULL");
    sft_code code = edit_settle(path, options, &edit, err);
    if (!code && edit.options.link == SFT_LINK_REPLACE && !edit.beneath)
        edit.options.link = SFT_LINK_FOLLOW;
    if (!code) code = edit_resolve(&edit, &state, err);
    if (!code && found) *found = state;
    if (state == SFT_EDIT_OLD) found = NULL; /* told */
    if (!code && !edit.is_link) /* no edit of it went through a link */
        code = sfti_journal_recover(edit.path, edit.beneath, edit.options.force,
                                    edit.options.no_sync, &edit.alloc, found, err);
    if (edit.folder >= 0) (void)sfti_os_close(edit.folder);
    return code;
}
