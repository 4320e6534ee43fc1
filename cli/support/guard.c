/* Locks and inputs of a command that writes. Tests: tests/cli/general/busy-commands.txt. */
#include "support/guard.h"

#include "base/utf8.h"
#include "base/watch.h"
#include "bytes/hold.h"
#include "os/io.h"
#include "os/path.h"
#include "safetensors_io.h"

#include <string.h>

/* A file that was opened to be read. */
typedef struct cli_guarded {
    const char *path;
    os_info info;
    bool replaced; /* by this command: another file by now */
} cli_guarded;

struct cli_guard {
    cli *c;
    sfti_arena arena;
    cli_guarded *files;
    size_t count, capacity;
    sfti_file_lock *holds;
    size_t hold_count, hold_capacity;
    unsigned watching;
    bool lost; /* memory for what was opened: nothing may be published */
};

/* One command runs at a time. */
static struct cli_guard guard;

/* ── What was opened ── */

static void file_opened(const char *path, const os_info *info) {
    struct cli_guard *g = &guard;
    if (!g->c || !g->watching || info->kind != OS_FILE) return;
    cli_guarded *files = sfti_arena_grow(&g->arena, g->files, g->count, 1, &g->capacity,
                                         sizeof *files);
    const char *copy = sfti_arena_copy(&g->arena, path, strlen(path));
    if (files) g->files = files;
    if (!files || !copy) g->lost = true;
    else files[g->count++] = (cli_guarded){ copy, *info, false };
}

/* ── Before publishing ── */

/* An input that is not what is replaced is named: messages begin with the output's path. */
static sft_code busy_input(const char *path, const char *output, sft_error *err) {
    sft_error own = SFT_ERROR_INIT;
    if (strcmp(path, output) == 0) return sfti_fail_changed(err);
    char text[sizeof own.message];
    size_t used, at = sfti_path_escape(sft_span_cstr(path), text, sizeof text / 2, &used);
    sft_code code = sfti_fail_changed(&own);
    if (!err) return code;
    *err = own;
    size_t len = strlen(own.message), most = sizeof text - at - 3;
    if (len > most) len = sfti_utf8_cut((sft_span){ own.message, len }, most);
    memcpy(err->message, text, at);
    memcpy(err->message + at, ": ", 2);
    memcpy(err->message + at + 2, own.message, len);
    err->message[at + 2 + len] = '\0';
    err->path_len = at;
    return code;
}

/* Steps 6 and 7. */
static sft_code before_publishing(const char *path, sft_error *err) {
    struct cli_guard *g = &guard;
    os_info target, now;
    if (!g->c) return SFT_OK;
    if (g->lost) return sfti_fail_memory(err, g->count * sizeof *g->files);
    bool replaces = g->count > 0 && sfti_os_info_path(path, true, &target) == 0;
    for (size_t i = 0; i < g->count; i++) {
        cli_guarded *file = &g->files[i];
        if (file->replaced) continue;
        if (sfti_os_info_path(file->path, true, &now) || !sfti_is_same_file(&file->info, &now)
            || sft_edit_check(file->path, &g->c->alloc, NULL) == SFT_EDIT_INTERRUPTED)
            return busy_input(file->path, path, err);
        file->replaced = replaces && now.device == target.device && now.inode == target.inode;
    }
    return SFT_OK;
}

static const sfti_file_watch watch = { file_opened, before_publishing };
const sfti_file_watch *const sfti_hook_watch = &watch;

/* ── Locks ── */

sft_code cli_guard_lock(cli *c, const char *path, sft_error *err) {
    struct cli_guard *g = c->guard;
    os_info info;
    if (!g || c->set.dry_run || c->set.in_place_unsafe || sfti_os_info_path(path, true, &info))
        return SFT_OK;
    for (size_t i = 0; i < g->hold_count; i++)
        if (g->holds[i].info.device == info.device && g->holds[i].info.inode == info.inode)
            return SFT_OK;
    sfti_file_lock *holds = sfti_arena_grow(&g->arena, g->holds, g->hold_count, 1,
                                            &g->hold_capacity, sizeof *holds);
    if (!holds) return sfti_fail_memory(err, sizeof *holds);
    g->holds = holds;
    sft_code code = sfti_hold_take(path, &holds[g->hold_count], err);
    g->hold_count += !code && holds[g->hold_count].fd >= 0;
    return code;
}

/* ── From beginning to end ── */

void cli_guard_begin(cli *c) {
    guard = (struct cli_guard){ .c = c, .arena.alloc = c->alloc };
    c->guard = &guard;
}

void cli_guard_end(cli *c) {
    cli_guard_forget(c);
    c->guard = NULL;
    guard.c = NULL;
}

void cli_guard_watch(cli *c) {
    if (c->guard) c->guard->watching++;
}

void cli_guard_watched(cli *c) {
    if (c->guard) c->guard->watching--;
}

void cli_guard_forget(cli *c) {
    struct cli_guard *g = c->guard;
    if (!g) return;
    for (size_t i = g->hold_count; i > 0; i--) sfti_hold_end(&g->holds[i - 1]);
    sfti_arena_free(&g->arena);
    g->files = NULL;
    g->holds = NULL;
    g->count = g->capacity = g->hold_count = g->hold_capacity = 0;
    g->lost = false;
}
