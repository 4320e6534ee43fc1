/* The trash, where programs keep it themselves (Trash specification of freedesktop.org, 1.0):
 * FOLDER/info/NAME.trashinfo says where NAME in FOLDER/files came from, and is there first. Tests:
 * tests/cli/trash. */
#include "support/trash.h"

#include "base/calendar.h"
#include "os/io.h"
#include "os/path.h"
#include "support/files.h"
#include "support/hints.h"
#include "support/words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PATH_SIZE 4096
#define NUMBER_MOST 9999
#define NAME_MOST ((size_t)220) /* bytes: a number and .trashinfo are added */

typedef struct trash {
    cli *c;
    sfti_arena arena;
    char folder[PATH_SIZE]; /* with files and info in it */
    size_t top;             /* bytes of the folder's top, which paths are relative to; 0: none */
    cli_moves moves;
    const char **infos;     /* written */
    size_t info_count;
    const char *blame;
} trash;

/* ── The folder ── */

static bool is_own_folder(const char *path) {
    os_info info;
    return !sfti_os_info_path(path, false, &info) && info.kind == OS_DIR
        && info.owner == sfti_os_user();
}

/* EPERM: there is another's, or no folder. */
static int make_own(const char *path) {
    int error = sfti_os_make_folder(path, 0700);
    if (error && error != EEXIST) return error;
    return is_own_folder(path) ? 0 : EPERM;
}

static uint64_t device_of(const char *path) {
    os_info info;
    return sfti_os_info_path(path, true, &info) ? UINT64_MAX : info.device;
}

/* $XDG_DATA_HOME/Trash, made if it is not there. */
static bool home_folder(char *folder, uint64_t device) {
    static const char *const more[] = { "/.local", "/share", "", "/Trash" };
    const char *base = sfti_os_env("XDG_DATA_HOME");
    size_t i = 2;
    if (!base || *base != '/') {
        base = sfti_os_env("HOME");
        i = 0;
    }
    int len = base && *base == '/' ? snprintf(folder, PATH_SIZE, "%s", base) : -1;
    if (len < 0 || len > PATH_SIZE - 64 || (i == 0 && device_of(folder) != device)) return false;
    for (; i < 4; i++) {
        len += snprintf(folder + len, PATH_SIZE - (size_t)len, "%s", more[i]);
        int error = sfti_os_make_folder(folder, 0700);
        if (error && error != EEXIST) return false;
    }
    return is_own_folder(folder) && device_of(folder) == device;
}

/* The trash at the top of the file system that a path is on. */
static int top_folder(trash *t, const char *path, uint64_t device) {
    os_info info;
    char top[PATH_SIZE];
    sft_span above = sfti_path_above(sft_span_cstr(path));
    if (above.len >= PATH_SIZE - 64) return ENAMETOOLONG;
    memcpy(top, above.data, above.len);
    top[above.len] = '\0';
    for (;;) {
        sft_span next = sfti_path_above(sft_span_cstr(top));
        char kept = top[next.len];
        if (next.len == strlen(top)) break;
        top[next.len] = '\0';
        if (device_of(top) == device) continue;
        top[next.len] = kept;
        break;
    }
    t->top = strlen(top);
    if (t->top == 1) t->top = 0; /* "/" */
    /* One for all users counts only as the specification says. */
    snprintf(t->folder, PATH_SIZE, "%.*s/.Trash", (int)t->top, top);
    if (!sfti_os_info_path(t->folder, false, &info) && info.kind == OS_DIR
        && info.mode & OS_MODE_STICKY) {
        snprintf(t->folder, PATH_SIZE, "%.*s/.Trash/%u", (int)t->top, top,
                 (unsigned)sfti_os_user());
        if (!make_own(t->folder)) return 0;
    }
    snprintf(t->folder, PATH_SIZE, "%.*s/.Trash-%u", (int)t->top, top, (unsigned)sfti_os_user());
    return make_own(t->folder);
}

/* device: that the path itself is on, not what it leads to if it is a link. */
static sft_code find_folder(trash *t, const char *path, uint64_t device, sft_error *err) {
    int error = home_folder(t->folder, device) ? 0 : top_folder(t, path, device);
    size_t len = strlen(t->folder);
    static const char *const parts[] = { "/files", "/info" };
    for (size_t i = 0; !error && i < 2; i++) {
        snprintf(t->folder + len, PATH_SIZE - len, "%s", parts[i]);
        error = make_own(t->folder);
        t->folder[len] = '\0';
    }
    if (!error) return SFT_OK;
    bool none = error == EPERM || error == EACCES || error == ENOENT || error == ENOSYS
             || error == EOPNOTSUPP;
    if (!none)
        return sfti_io_fail(err, SFT_IO_PUBLISH, error, "make a trash on this file system");
    return cli_fail_hint(err, SFT_IO_PUBLISH, CLI_HINT_NO_TRASH,
                         "expected a trash on this file system, found none that is yours");
}

/* ── What is known of a file there ── */

static void put_escaped(sft_buffer *out, sft_span path, bool *fine) {
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < path.len; i++) {
        unsigned char c = (unsigned char)path.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')
                  || strchr("/-_.~", c);
        char shown[3] = { '%', digits[c >> 4], digits[c & 15] };
        *fine &= plain ? sfti_buffer_put(out, path.data + i, 1) : sfti_buffer_put(out, shown, 3);
    }
}

static void date_text(int64_t time_s, char out[32]) {
    int64_t year, rest = time_s % 86400;
    unsigned month, day;
    sfti_date_of_days(time_s / 86400, &year, &month, &day);
    snprintf(out, 32, "%04d-%02u-%02uT%02d:%02d:%02d", (int)year % 10000, month, day,
             (int)(rest / 3600), (int)(rest / 60 % 60), (int)(rest % 60));
}

static sft_code write_info(trash *t, const char *path, const char *info, sft_error *err) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_buffer text = { .alloc = t->c->alloc };
    sft_span place = sft_span_cstr(path), rest;
    char date[32];
    uint64_t now = sfti_os_time_s();
    bool fine = sfti_buffer_put(&text, "[Trash Info]\nPath=", 18);
    if (t->top && sfti_path_below(place, (sft_span){ t->folder, t->top }, &rest)) place = rest;
    put_escaped(&text, place, &fine);
    date_text((int64_t)now + sfti_os_zone_s(now), date);
    fine &= sfti_buffer_put(&text, "\nDeletionDate=", 14)
         && sfti_buffer_put(&text, date, strlen(date)) && sfti_buffer_put(&text, "\n", 1);
    options.no_clobber = true;
    options.mode = 0600;
    sft_code code = fine ? cli_write_bytes(t->c, info, options, (sft_span){ text.data, text.len },
                                          err)
                         : sfti_fail_memory(err, text.len);
    sft_buffer_free(&text);
    return code;
}

/* A name that is free in both folders, under which the file's place is written down. A long one is
 * cut: the place has it. */
static sft_code take_name(trash *t, const char *path, cli_move *move, sft_error *err) {
    sft_span name = cli_cut(cli_name_of(path), NAME_MOST);
    size_t size = strlen(t->folder) + name.len + 64;
    char *to = sfti_arena_take(&t->arena, size), *info = sfti_arena_take(&t->arena, size);
    sft_code code = SFT_EXISTS;
    os_info there;
    if (!to || !info) return sfti_fail_memory(err, size);
    for (unsigned n = 1; code == SFT_EXISTS && n <= NUMBER_MOST; n++) {
        char number[16] = "";
        if (n > 1) snprintf(number, sizeof number, " (%u)", n);
        snprintf(to, size, "%s/files/%.*s%s", t->folder, (int)name.len, name.data, number);
        snprintf(info, size, "%s/info/%.*s%s.trashinfo", t->folder, (int)name.len, name.data,
                 number);
        if (!sfti_os_info_path(to, false, &there)) continue;
        code = write_info(t, path, info, err);
    }
    t->blame = info;
    if (code) return code;
    t->infos[t->info_count++] = info;
    move->to = to;
    return SFT_OK;
}

/* ── A unit ── */

static sft_code to_system_bin(trash *t, const cli_unit *unit, bool *done, sft_error *err) {
    for (size_t i = 0; i < unit->count; i++) {
        int error = sfti_os_trash(unit->items[i].path);
        if (error == EOPNOTSUPP && i == 0) return SFT_OK;
        t->blame = unit->items[i].path;
        if (error) return sfti_io_fail(err, SFT_IO_PUBLISH, error, "move to the bin");
        *done = true;
    }
    return SFT_OK;
}

sft_code cli_trash_unit(cli *c, const cli_unit *unit, const cli_moves *also, const char **blame,
                        sft_error *err) {
    trash t = { .c = c, .blame = unit->path };
    bool done = false;
    size_t more = also ? also->count : 0, count = unit->count + more;
    t.arena.alloc = c->alloc;
    sft_code code = to_system_bin(&t, unit, &done, err);
    cli_move *items = sfti_arena_array(&t.arena, count, sizeof *items);
    t.infos = sfti_arena_array(&t.arena, unit->count, sizeof *t.infos);
    if (!code && (!items || !t.infos)) code = sfti_fail_memory(err, count);
    for (size_t i = 0; !code && !done && i < unit->count; i++) {
        int error;
        os_info info = { 0 };
        t.blame = unit->items[i].path;
        char *path = cli_absolute(&t.arena, unit->items[i].path, &error);
        if (!error) error = sfti_os_info_path(unit->items[i].path, false, &info);
        if (error) code = sfti_io_fail(err, SFT_IO_OPEN, error, "open");
        else if (!path) code = sfti_fail_memory(err, 1);
        if (!code && i == 0) code = find_folder(&t, path, info.device, err);
        items[i] = (cli_move){ .from = path, .is_folder = info.kind == OS_DIR };
        if (!code) code = take_name(&t, path, &items[i], err);
    }
    size_t ours = done ? 0 : unit->count;
    for (size_t i = 0; !code && i < more; i++) items[ours + i] = also->items[i];
    if (!code && ours + more > 0) {
        t.moves = (cli_moves){ .path = unit->path, .items = items, .count = ours + more };
        code = cli_moves_make(c, &t.moves, CLI_MOVE, &t.blame, err);
    }
    for (size_t i = 0; code && !t.moves.is_torn && i < t.info_count; i++)
        (void)sfti_os_unlink(t.infos[i]);
    /* What is in the arena is not named any more. */
    *blame = unit->path;
    for (size_t i = 0; i < unit->count; i++)
        if (strcmp(t.blame, unit->items[i].path) == 0) *blame = unit->items[i].path;
    for (size_t i = 0; i < more; i++) {
        const cli_move *move = &also->items[i];
        if (strcmp(t.blame, move->from) == 0) *blame = move->from;
        if (move->to && strcmp(t.blame, move->to) == 0) *blame = move->to;
    }
    sfti_arena_free(&t.arena);
    return code;
}
