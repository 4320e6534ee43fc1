/* Journals of mv: what a run moves, written before its first move, so that `mv --undo` can take it
 * back, also after a crash. A journal is a file mv-SECONDS-NUMBER of the user's state folder: texts
 * that end with NUL, first FORMAT, then records of a letter and texts:
 *
 *   D folder             a folder that the run makes
 *   U path               a model; its moves follow
 *   M from to            a file; C from to: one that stays where it is, too; F from to: a folder
 *   E at old text        of the file before it: bytes that change, at a decimal offset
 *   Z                    the end
 *
 * It appears whole or not at all. Tests: tests/cli/mv. */
#include "commands/mv/mv.h"

#include "os/io.h"
#include "support/files.h"
#include "support/words.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define FORMAT "safetensors mv 1"
#define JOURNAL_MOST ((uint64_t)1 << 30)
#define JOURNALS_KEPT 20
#define NAME_SIZE 64
#define NUMBERS 1000 /* of journals of one second */

/* ── The folder ── */

/* $XDG_STATE_HOME/safetensors, %LOCALAPPDATA%\safetensors; made if asked. It must be the user's:
 * who could write there would say what is moved where. */
static sft_code state_folder(bool make, char *folder, size_t size, sft_error *err) {
    bool windows = SFTI_OS_PATHS == SFTI_PATHS_WINDOWS;
    const char *base = sfti_os_env(windows ? "LOCALAPPDATA" : "XDG_STATE_HOME");
    const char *parts[] = { "/.local", "/state", "", "/safetensors" };
    size_t first = 2; /* "": XDG_STATE_HOME itself is made too */
    os_info info;
    if (!windows && (!base || *base != '/')) {
        base = sfti_os_env("HOME");
        first = 0;
    }
    if (!base || !*base)
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected %s, where mv keeps what --undo needs, "
                         "found no such variable", windows ? "LOCALAPPDATA"
                                                           : "HOME or XDG_STATE_HOME");
    int len = snprintf(folder, size, "%s", base);
    for (size_t i = first; i < 4; i++) {
        int more = len < 0 || (size_t)len >= size
                     ? -1 : snprintf(folder + len, size - (size_t)len, "%s", parts[i]);
        if (more < 0 || (size_t)(len + more) >= size)
            return sfti_io_fail(err, SFT_IO_OPEN, ENAMETOOLONG, "open the folder of journals");
        len += more;
        int error = make ? sfti_os_make_folder(folder, 0700) : 0;
        if (error && error != EEXIST)
            return sfti_io_fail(err, SFT_IO_OPEN, error, "make the folder of journals");
    }
    int error = sfti_os_info_path(folder, false, &info);
    if (error == ENOENT) return sfti_fail(err, SFT_NOT_FOUND, "expected a run of mv to take back, "
                                                              "found none");
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open the folder of journals");
    if (info.kind != OS_DIR || info.owner != sfti_os_user() || info.mode & 022)
        return sfti_fail(err, SFT_BAD_ARGUMENT, "expected a folder of yours, no link, that nobody "
                                                "else may write to, found %s", folder);
    return SFT_OK;
}

typedef struct journals {
    char names[JOURNALS_KEPT][NAME_SIZE]; /* the newest, in order */
    size_t count;
    char oldest[NAME_SIZE]; /* one that is too many, or empty */
} journals;

static int take_journal(void *ctx, const char *name, os_kind kind) {
    journals *all = ctx;
    char moved[NAME_SIZE];
    if (kind != OS_FILE || strncmp(name, "mv-", 3) != 0 || strlen(name) >= NAME_SIZE) return 0;
    memcpy(moved, name, strlen(name) + 1);
    size_t at = all->count;
    while (at > 0 && strcmp(all->names[at - 1], moved) > 0) at--;
    if (all->count == JOURNALS_KEPT) {
        if (at == 0) {
            memcpy(all->oldest, moved, NAME_SIZE);
            return 0;
        }
        memcpy(all->oldest, all->names[0], NAME_SIZE);
        memmove(all->names[0], all->names[1], (at - 1) * NAME_SIZE);
        at--;
    } else {
        memmove(all->names[at + 1], all->names[at], (all->count - at) * NAME_SIZE);
        all->count++;
    }
    memcpy(all->names[at], moved, NAME_SIZE);
    return 0;
}

/* One run at a time moves what a journal names, or takes it back. */
static sft_code lock_journal(mv_journal *journal, sft_error *err) {
    os_info info;
    int error = sfti_os_open_read(journal->path, &journal->fd);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open the journal");
    error = sfti_os_lock(journal->fd);
    /* One without a name was taken back and removed before the lock. */
    if (error != EAGAIN && (sfti_os_info_fd(journal->fd, &info) || info.links > 0)) return SFT_OK;
    return sfti_fail(err, SFT_EDIT_BUSY, "expected a run of mv that is over, found one that still "
                                         "moves files, or is being taken back");
}

int mv_journal_close(mv_journal *journal, bool is_over) {
    int error = journal->fd >= 0 && is_over ? sfti_os_unlink(journal->path) : 0;
    if (journal->fd >= 0) (void)sfti_os_close(journal->fd);
    sft_buffer_free(&journal->text);
    return error;
}

/* ── Writing ── */

typedef struct journal_text {
    sft_buffer *bytes;
    bool failed;
} journal_text;

static void put_text(journal_text *to, sft_span text) {
    to->failed |= !sfti_buffer_put(to->bytes, text.data, text.len)
               || !sfti_buffer_put(to->bytes, "", 1);
}

static void put_record(journal_text *to, const char *letter, const char *a, const char *b) {
    to->failed |= !sfti_buffer_put(to->bytes, letter, 1);
    put_text(to, sft_span_cstr(a));
    if (b) put_text(to, sft_span_cstr(b));
}

/* The folders above a target that are not there. */
static void put_folders(journal_text *to, const char *path, sfti_arena *arena) {
    size_t root = sfti_root_len(path), end = sfti_folder_len(path);
    char *folder = sfti_arena_copy(arena, path, end);
    os_info info;
    to->failed |= !folder;
    for (size_t at = root; folder && at < end; at++) {
        if (at == 0 || !sfti_is_separator(folder[at])) continue;
        char separator = folder[at];
        folder[at] = '\0';
        if (sfti_os_info_path(folder, true, &info) == ENOENT) put_record(to, "D", folder, NULL);
        folder[at] = separator;
    }
}

static void put_unit(journal_text *to, const cli_moves *moves, bool stays, sfti_arena *arena) {
    sft_span last = { "", 0 };
    for (size_t i = 0; i < moves->count; i++) {
        sft_span folder = sfti_path_above(sft_span_cstr(moves->items[i].to));
        if (!sft_span_equal(folder, last)) put_folders(to, moves->items[i].to, arena);
        last = folder;
    }
    put_record(to, "U", moves->path, NULL);
    for (size_t i = 0; i < moves->count; i++) {
        const cli_move *move = &moves->items[i];
        const char *letter = move->is_folder ? "F" : stays || move->stays ? "C" : "M";
        put_record(to, letter, move->from, move->to);
        for (size_t k = 0; k < move->edit_count; k++) {
            char at[CLI_NUMBER_SIZE];
            snprintf(at, sizeof at, "%" PRIu64, move->edits[k].at);
            put_record(to, "E", at, NULL);
            put_text(to, move->edits[k].old);
            put_text(to, move->edits[k].text);
        }
    }
}

static sft_code write_file(cli *c, const char *path, bool is_new, const sft_buffer *text,
                           sft_error *err) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    options.no_clobber = is_new;
    options.mode = 0600;
    return cli_write_bytes(c, path, options, (sft_span){ text->data, text->len }, err);
}

/* Seconds and number of a journal that comes behind all others, whatever became of the clock. */
static void number_journal(const char *folder, uint64_t *seconds, uint64_t *number) {
    journals all = { .count = 0 };
    char text[NAME_SIZE];
    uint64_t last, n;
    *seconds = sfti_os_time_s();
    *number = 0;
    if (sfti_os_list(folder, take_journal, &all) || all.count == 0) return;
    memcpy(text, all.names[all.count - 1] + 3, NAME_SIZE - 3);
    char *dash = strchr(text, '-');
    if (!dash) return;
    *dash = '\0';
    if (!cli_parse_number(text, UINT64_MAX, &last) || last < *seconds
        || !cli_parse_number(dash + 1, NUMBERS - 1, &n))
        return;
    *seconds = last + (n == NUMBERS - 1);
    *number = (n + 1) % NUMBERS;
}

sft_code mv_journal_write(cli *c, const mv_plan *plan, mv_journal *out, sft_error *err) {
    char folder[4096], old[sizeof out->path];
    journal_text text = { .bytes = &out->text };
    sfti_arena arena = { .alloc = c->alloc };
    journals all = { .count = 0 };
    *out = (mv_journal){ .fd = -1, .text = { .alloc = c->alloc } };
    sft_code code = state_folder(true, folder, sizeof folder, err);
    if (code == SFT_IO_OPEN || code == SFT_NOT_FOUND) /* the error is about the folder */
        snprintf(out->path, sizeof out->path, "%s", folder);
    if (code) return code;
    put_text(&text, sft_span_cstr(FORMAT));
    for (size_t i = 0; i < plan->count; i++) {
        mv_unit *unit = &plan->units[i];
        unit->record = out->text.len;
        if (unit->moves.count > 0)
            put_unit(&text, &unit->moves, plan->how != CLI_MOVE, &arena);
        unit->record_len = out->text.len - unit->record;
    }
    put_record(&text, "Z", "", NULL);
    code = text.failed ? sfti_fail_memory(err, out->text.len) : SFT_EXISTS;
    for (int again = 0; code == SFT_EXISTS && again < 100; again++) {
        uint64_t seconds, number;
        number_journal(folder, &seconds, &number);
        snprintf(out->path, sizeof out->path, "%s/mv-%012" PRIu64 "-%03" PRIu64, folder, seconds,
                 number);
        code = write_file(c, out->path, true, &out->text, err);
    }
    if (!code) code = lock_journal(out, err);
    for (int again = 1; !code && again;) {
        all = (journals){ .count = 0 };
        again = !sfti_os_list(folder, take_journal, &all) && *all.oldest;
        snprintf(old, sizeof old, "%s/%s", folder, all.oldest);
        if (again && sfti_os_unlink(old)) break;
    }
    sfti_arena_free(&arena);
    return code;
}

void mv_journal_settle(cli *c, const mv_plan *plan, mv_journal *journal) {
    sft_buffer kept = { .alloc = c->alloc };
    journal_text text = { .bytes = &kept };
    sft_error ignored = SFT_ERROR_INIT;
    bool all = true;
    put_text(&text, sft_span_cstr(FORMAT));
    for (size_t i = 0; i < plan->count; i++) {
        const mv_unit *unit = &plan->units[i];
        all &= unit->made || unit->record_len == 0;
        if (unit->made)
            text.failed |= !sfti_buffer_put(&kept, journal->text.data + unit->record,
                                            unit->record_len);
    }
    put_record(&text, "Z", "", NULL);
    /* One that cannot be written has more than it needs: mv --undo tells of that. */
    if (!all && !text.failed) (void)write_file(c, journal->path, false, &kept, &ignored);
    sft_buffer_free(&kept);
}

/* ── Reading ── */

static sft_code read_records(mv_plan *plan, sft_span rest, sft_error *err) {
    static const char letters[] = "DUMCFEZ";
    static const unsigned char texts[] = { 1, 1, 2, 2, 2, 3, 1 };
    mv_unit *unit = NULL;
    size_t edit_cap = 0;
    while (rest.len > 0) {
        const char *letter = strchr(letters, *rest.data);
        sft_span text[3] = { { NULL, 0 }, { NULL, 0 }, { NULL, 0 } };
        if (!*rest.data || !letter) break;
        rest.data++, rest.len--;
        for (size_t i = 0; i < texts[letter - letters]; i++) {
            const char *end = rest.len ? memchr(rest.data, '\0', rest.len) : NULL;
            if (!end) return sfti_misuse(err, "expected a journal of mv, found a cut one");
            text[i] = (sft_span){ rest.data, (size_t)(end - rest.data) };
            rest = (sft_span){ end + 1, rest.len - text[i].len - 1 };
        }
        cli_moves *moves = unit ? &unit->moves : NULL;
        cli_move *last = moves && moves->count ? &moves->items[moves->count - 1] : NULL;
        if (*letter == 'Z') {
            return SFT_OK;
        } else if (*letter == 'D') {
            const char **made = sfti_arena_grow(&plan->arena, plan->made, plan->made_count, 1,
                                                &plan->made_cap, sizeof *made);
            if (!made) return sfti_fail_memory(err, text[0].len);
            plan->made = made;
            made[plan->made_count++] = text[0].data;
        } else if (*letter == 'U') {
            if (!mv_plan_add(plan, &(cli_unit){ .path = text[0].data }, NULL, NULL))
                return sfti_fail_memory(err, text[0].len);
            unit = &plan->units[plan->count - 1];
            unit->moves.path = text[0].data;
        } else if (moves && memchr("MCF", *letter, 3)) {
            if (!sfti_root_len(text[0].data) || !sfti_root_len(text[1].data)) break;
            cli_move *items = sfti_arena_grow(&plan->arena, moves->items, moves->count, 1,
                                              &moves->capacity, sizeof *items);
            if (!items) return sfti_fail_memory(err, text[0].len);
            moves->items = items;
            items[moves->count++] = (cli_move){ .from = text[0].data, .to = text[1].data,
                                                .is_folder = *letter == 'F',
                                                .stays = *letter == 'C' };
            edit_cap = 0;
        } else if (last && *letter == 'E') {
            uint64_t at;
            cli_move_edit *edits = sfti_arena_grow(&plan->arena, last->edits, last->edit_count, 1,
                                                   &edit_cap, sizeof *edits);
            if (!edits) return sfti_fail_memory(err, text[1].len);
            last->edits = edits;
            if (!cli_parse_number(text[0].data, CLI_MOVE_TEXT_MOST, &at)) break;
            edits[last->edit_count++] = (cli_move_edit){ at, text[1], text[2] };
        } else {
            break;
        }
    }
    return sfti_misuse(err, "expected a journal of mv, found something else");
}

sft_code mv_journal_read(cli *c, mv_plan *plan, mv_journal *out, sft_error *err) {
    char folder[4096];
    journals all = { .count = 0 };
    sft_buffer bytes;
    *out = (mv_journal){ .fd = -1, .text = { .alloc = c->alloc } };
    sft_code code = state_folder(false, folder, sizeof folder, err);
    if (code == SFT_IO_OPEN) snprintf(out->path, sizeof out->path, "%s", folder);
    if (code) return code;
    int error = sfti_os_list(folder, take_journal, &all);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "list the folder of journals");
    if (all.count == 0)
        return sfti_fail(err, SFT_NOT_FOUND, "expected a run of mv to take back, found none");
    snprintf(out->path, sizeof out->path, "%s/%s", folder, all.names[all.count - 1]);
    code = lock_journal(out, err);
    if (!code) code = cli_read_file(c, out->path, JOURNAL_MOST, &bytes, err);
    if (code) return code;
    /* What is read lives as long as the plan. */
    char *copy = sfti_arena_copy(&plan->arena, bytes.data, bytes.len);
    sft_span text = { copy, bytes.len };
    sft_buffer_free(&bytes);
    if (!copy) return sfti_fail_memory(err, text.len);
    if (text.len <= sizeof FORMAT || memcmp(text.data, FORMAT, sizeof FORMAT) != 0)
        return sfti_misuse(err, "expected a journal of mv, found something else");
    return read_records(plan, (sft_span){ text.data + sizeof FORMAT, text.len - sizeof FORMAT },
                        err);
}
