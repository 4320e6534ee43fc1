/* Files that change their place together, and back. The steps are in moves.h. Tests: tests/cli/mv,
 * tests/move. */
#include "support/moves.h"

#include "os/io.h"
#include "os/path.h"
#include "support/files.h"
#include "support/hints.h"
#include "support/words.h"

#include <errno.h>
#include <string.h>

#define COMPARED ((size_t)256 << 10)

/* What became of one move. */
typedef enum moved {
    NOT_YET = 0,
    NAMED,   /* both names are there */
    BY_NAME, /* only the old one, which step 3 renames */
    DONE
} moved;

typedef struct moving {
    cli *c;
    const cli_moves *moves;
    cli_move_how how;
    moved *state;
    os_info *was; /* what the files were when they got their new names */
    sfti_arena arena;
    const char **made; /* folders, in the order in which they were made */
    size_t made_count, made_cap;
    const char *blame;
    sft_error *err;
} moving;

static sft_code fail_os(moving *m, const char *path, int error, const char *what) {
    m->blame = path;
    if (error == EEXIST)
        return cli_fail_hint(m->err, SFT_EXISTS, SFT_HINT_NONE, "already exists");
    return sfti_io_fail(m->err, SFT_IO_PUBLISH, error, what);
}

/* ── Names that differ by case ── */

typedef struct spellings {
    const char *names[2];
    int listed;
} spellings;

static int count_spelling(void *ctx, const char *name, os_kind kind) {
    spellings *two = ctx;
    (void)kind;
    two->listed += strcmp(name, two->names[0]) == 0 || strcmp(name, two->names[1]) == 0;
    return 0;
}

bool cli_is_one_name(const char *a, const char *b) {
    char folder[4096];
    os_info info;
    spellings two = { { cli_name_of(a).data, cli_name_of(b).data }, 0 };
    sft_span above = sfti_path_above(sft_span_cstr(a));
    if (strcmp(a, b) == 0 || !cli_same_letters(sft_span_cstr(a), sft_span_cstr(b))
        || above.len >= sizeof folder || sfti_os_info_path(a, false, &info)
        || sfti_os_info_path(b, false, &info))
        return false;
    memcpy(folder, above.data, above.len);
    folder[above.len] = '\0';
    return !sfti_os_list(folder, count_spelling, &two) && two.listed < 2;
}

/* ── Step 1: new names ── */

/* The mode of the folder that `len` bytes of `path` are, which is to be made: what others may not
 * do in the one that its files come from they may not do in it either. That is one that moves as
 * a whole, or any on the way back. */
static uint32_t folder_mode(moving *m, const char *path, size_t len, const char *from) {
    size_t rest = strlen(path) - len, from_len = strlen(from);
    os_info info;
    bool whole = m->moves->emptied_count == 0;
    if (from_len <= rest || memcmp(from + from_len - rest, path + len, rest) != 0) return 0777;
    const char *folder = sfti_arena_copy(&m->arena, from, from_len - rest);
    if (!folder) return 0700;
    for (size_t i = 0; i < m->moves->emptied_count && !whole; i++)
        whole = strcmp(m->moves->emptied[i], folder) == 0;
    bool found = whole && !sfti_os_info_path(folder, true, &info) && info.kind == OS_DIR;
    return found ? (info.mode & 0777) | 0700 : 0777;
}

/* The folders above a path that are not there yet, the highest first; `from`: where what goes there
 * is, or NULL. */
static sft_code make_folders(moving *m, const char *path, const char *from) {
    size_t root = sfti_root_len(path), end = sfti_folder_len(path);
    char *folder = sfti_arena_copy(&m->arena, path, end);
    if (!folder) return sfti_fail_memory(m->err, end);
    for (size_t at = root; at < end; at++) {
        if (!sfti_is_separator(folder[at]) || at == 0) continue;
        char separator = folder[at];
        os_info info;
        folder[at] = '\0';
        int error = sfti_os_info_path(folder, true, &info);
        if (error == ENOENT) {
            error = sfti_os_make_folder(folder, from ? folder_mode(m, path, at, from) : 0777);
            const char **made = error ? NULL
                                      : sfti_arena_grow(&m->arena, m->made, m->made_count, 1,
                                                        &m->made_cap, sizeof *made);
            char *copy = made ? sfti_arena_copy(&m->arena, folder, at) : NULL;
            if (made) m->made = made;
            if (copy) m->made[m->made_count++] = copy;
            else if (!error) (void)sfti_os_remove_folder(folder);
            if (!error && !copy) return sfti_fail_memory(m->err, at);
            if (error == EEXIST) error = 0; /* by somebody else, meanwhile */
        } else if (!error && info.kind != OS_DIR) {
            error = ENOTDIR;
        }
        if (error) return fail_os(m, path, error, "make the folder");
        folder[at] = separator;
    }
    return SFT_OK;
}

/* The text of a file as it is to be when it has moved; back: when it moves back.
 * SFT_BAD_ARGUMENT if it is not the text that the edits are of. */
static sft_code edited_text(moving *m, const char *path, const cli_move *move, bool back,
                            sft_buffer *out) {
    sft_buffer now = { .alloc = m->c->alloc };
    uint64_t at = 0, shift = 0; /* what back has to skip more; wraps */
    m->blame = path;
    sft_code code = cli_read_file(m->c, path, CLI_MOVE_TEXT_MOST, &now, m->err);
    for (size_t i = 0; !code && i < move->edit_count; i++) {
        const cli_move_edit *edit = &move->edits[i];
        sft_span is = back ? edit->text : edit->old, becomes = back ? edit->old : edit->text;
        uint64_t begin = edit->at + shift;
        if (begin < at || begin > now.len || now.len - begin < is.len
            || memcmp(now.data + begin, is.data, is.len) != 0) {
            code = sfti_misuse(m->err, "expected the text that was there when the move was "
                                       "planned, found another");
        } else if (!sfti_buffer_put(out, now.data + at, (size_t)(begin - at))
                   || !sfti_buffer_put(out, becomes.data, becomes.len)) {
            code = sfti_fail_memory(m->err, now.len);
        }
        at = begin + is.len;
        if (back) shift += edit->text.len - (uint64_t)edit->old.len;
    }
    if (!code && !sfti_buffer_put(out, now.data + at, (size_t)(now.len - at)))
        code = sfti_fail_memory(m->err, now.len);
    sft_buffer_free(&now);
    return code;
}

/* A new file at `to` of the text at `from`; back: as it was. */
static sft_code write_edited(moving *m, const char *from, const char *to, const cli_move *move,
                             bool back) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_buffer text = { .alloc = m->c->alloc };
    os_info info;
    options.no_clobber = true;
    options.link = SFT_LINK_REFUSE;
    if (!sfti_os_info_path(from, false, &info)) {
        options.mode = info.mode & 0777;
        options.has_mtime = true;
        options.mtime_ns = info.mtime_ns;
    }
    sft_code code = edited_text(m, from, move, back, &text);
    if (!code) m->blame = to;
    if (!code)
        code = cli_write_bytes(m->c, to, options, (sft_span){ text.data, text.len }, m->err);
    sft_buffer_free(&text);
    return code;
}

sft_code cli_same_bytes(cli *c, const char *a, const char *b, bool *same, sft_error *err) {
    sft_source x = { 0 }, y = { 0 };
    uint8_t *bytes = sfti_take(&c->alloc, 2 * COMPARED);
    sft_code code = bytes ? SFT_OK : sfti_fail_memory(err, 2 * COMPARED);
    if (!code) code = sft_source_path(a, NULL, &x, err);
    if (!code) code = sft_source_path(b, NULL, &y, err);
    *same = !code && x.size == y.size;
    for (uint64_t at = 0; !code && *same && at < x.size; at += COMPARED) {
        size_t got = 0, other = 0;
        code = sft_source_read(&x, at, bytes, COMPARED, &got, err);
        if (!code) code = sft_source_read(&y, at, bytes + COMPARED, COMPARED, &other, err);
        *same = got == other && memcmp(bytes, bytes + COMPARED, got) == 0;
    }
    sft_source_close(&x);
    sft_source_close(&y);
    sfti_release(&c->alloc, bytes, 2 * COMPARED);
    return code;
}

/* A copy with the mode and time of the original, read back and compared with it. */
static sft_code copy_file(moving *m, const cli_move *move) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_source source;
    sft_sink sink;
    os_info info;
    bool same = false;
    cli_progress progress;
    int error = sfti_os_info_path(move->from, false, &info);
    if (error) return fail_os(m, move->from, error, "open");
    options.no_clobber = true;
    options.link = SFT_LINK_REFUSE;
    options.alloc = &m->c->alloc;
    options.mode = info.mode & 0777;
    options.has_mtime = true;
    options.mtime_ns = info.mtime_ns;
    m->blame = move->from;
    sft_code code = sft_source_path(move->from, NULL, &source, m->err);
    if (code) return code;
    m->blame = move->to;
    code = sft_sink_path(move->to, &options, &sink, m->err);
    if (!code) {
        sft_job job = cli_progress_begin(&progress, m->c, move->from);
        code = sft_copy(&source, 0, SFT_SIZE_UNKNOWN, sink, &job, m->err);
        cli_progress_end(&progress);
    }
    sft_source_close(&source);
    if (code) return code;
    code = cli_same_bytes(m->c, move->from, move->to, &same, m->err);
    if (!code && same) return SFT_OK;
    m->blame = move->to;
    (void)sfti_os_unlink(move->to);
    return code ? code : sfti_fail(m->err, SFT_IO_WRITE, "expected the bytes that were copied, "
                                                         "found others: the original stays");
}

static sft_code give_name(moving *m, size_t i) {
    const cli_move *move = &m->moves->items[i];
    os_info info;
    bool whole = m->moves->emptied_count > 0; /* a folder, file by file */
    sft_code code = move->to ? make_folders(m, move->to, whole ? move->from : NULL) : SFT_OK;
    if (code) return code;
    int error = sfti_os_info_path(move->from, false, &info);
    if (error) return fail_os(m, move->from, error, "open");
    m->was[i] = info;
    m->state[i] = BY_NAME;
    if (!move->to) return SFT_OK;
    m->state[i] = NOT_YET;
    bool one_name = cli_is_one_name(move->from, move->to);
    error = one_name ? ENOENT : sfti_os_info_path(move->to, false, &info);
    if (error != ENOENT)
        return fail_os(m, move->to, error ? error : EEXIST, "check whether it exists");
    if (move->is_folder || (one_name && m->how == CLI_MOVE)) {
        m->state[i] = BY_NAME;
        return SFT_OK;
    }
    if (move->edit_count > 0) {
        code = write_edited(m, move->from, move->to, move, false);
    } else {
        error = m->how == CLI_MOVE_COPY ? EXDEV : sfti_os_link(move->from, move->to);
        one_name = error == EPERM || error == EOPNOTSUPP || error == EMLINK;
        if (one_name && m->how == CLI_MOVE && !move->stays) {
            m->state[i] = BY_NAME;
            return SFT_OK;
        }
        if ((error == EXDEV || one_name) && m->how != CLI_MOVE_LINK) code = copy_file(m, move);
        else if (error) code = fail_os(m, move->to, error, "link");
    }
    if (!code) m->state[i] = NAMED;
    return code;
}

/* ── Step 3: old names ── */

static int rename_one(const char *from, const char *to, bool is_folder) {
    return is_folder || cli_is_one_name(from, to) ? sfti_os_rename(from, to, false)
                                                  : sfti_rename_new(from, to);
}

/* Whether both names are there, and the file is what it was when it got the new one. */
static sft_code check_names(moving *m, size_t i) {
    const cli_move *move = &m->moves->items[i];
    os_info info;
    if (m->state[i] != NAMED || move->stays) return SFT_OK;
    int error = sfti_os_info_path(move->to, false, &info);
    if (error) return fail_os(m, move->to, error, "open"); /* taken by somebody meanwhile */
    error = sfti_os_info_path(move->from, false, &info);
    if (error) return fail_os(m, move->from, error, "remove");
    if (info.size == m->was[i].size && info.mtime_ns == m->was[i].mtime_ns) return SFT_OK;
    m->blame = move->from;
    return sfti_fail(m->err, SFT_EDIT_BUSY, "expected a file that nobody writes to, found one that "
                                            "changed meanwhile: nothing moved");
}

static sft_code drop_name(moving *m, size_t i) {
    const cli_move *move = &m->moves->items[i];
    bool renames = m->state[i] == BY_NAME && move->to;
    if (move->stays && m->state[i] == NAMED) return SFT_OK;
    sft_code code = check_names(m, i);
    int error = code      ? 0
                : renames ? rename_one(move->from, move->to, move->is_folder)
                          : sfti_os_unlink(move->from);
    if (error && renames) code = fail_os(m, move->to, error, "rename");
    else if (error) code = fail_os(m, move->from, error, "remove");
    if (!code) m->state[i] = DONE;
    return code;
}

/* To its old name, from another file system as a copy. */
static sft_code bring_back(moving *m, const cli_move *move) {
    int error = rename_one(move->to, move->from, move->is_folder);
    if (error != EXDEV || move->is_folder)
        return error ? fail_os(m, move->from, error, "rename") : SFT_OK;
    sft_code code = copy_file(m, &(cli_move){ .from = move->to, .to = move->from });
    error = code ? 0 : sfti_os_unlink(move->to);
    return error ? fail_os(m, move->to, error, "remove") : code;
}

/* Each folder once in a row: moves of a model are mostly from one folder to one. */
static sft_code sync_folders(moving *m, bool new_names) {
    const char *last = NULL;
    if (m->c->set.no_sync) return SFT_OK;
    for (size_t i = 0; i < m->moves->count; i++) {
        const cli_move *move = &m->moves->items[i];
        const char *path = new_names ? move->to : move->from;
        size_t len = path ? sfti_folder_len(path) : 0;
        if (!path || (last && sfti_folder_len(last) == len && memcmp(last, path, len) == 0))
            continue;
        int error = sfti_sync_parent(path);
        last = path;
        if (error) {
            m->blame = path;
            return sfti_io_fail(m->err, SFT_IO_SYNC, error, "sync the folder");
        }
    }
    return SFT_OK;
}

/* After a failure: the old names again, then no new ones. False: not of all. */
static bool take_back(moving *m) {
    sft_error ignored = SFT_ERROR_INIT, *err = m->err;
    const char *blame = m->blame;
    bool all = true;
    m->err = &ignored;
    for (size_t i = m->moves->count; i-- > 0;) {
        const cli_move *move = &m->moves->items[i];
        bool edited = move->edit_count > 0, back = true;
        if (m->state[i] == DONE)
            back = !(edited ? write_edited(m, move->to, move->from, move, true)
                            : bring_back(m, move));
        if (back && (m->state[i] == NAMED || (m->state[i] == DONE && edited)))
            (void)sfti_os_unlink(move->to);
        all &= back;
    }
    m->err = err;
    m->blame = blame;
    for (size_t i = m->made_count; i-- > 0;) (void)sfti_os_remove_folder(m->made[i]);
    return all;
}

sft_code cli_moves_make(cli *c, cli_moves *moves, cli_move_how how, const char **blame,
                        sft_error *err) {
    moving m = { .c = c, .moves = moves, .how = how, .blame = moves->path, .err = err };
    cli_lock lock = { .fd = -1 };
    m.arena.alloc = c->alloc;
    m.state = sfti_arena_array(&m.arena, moves->count, sizeof *m.state);
    m.was = sfti_arena_array(&m.arena, moves->count, sizeof *m.was);
    sft_code code = m.state && m.was ? SFT_OK : sfti_fail_memory(err, moves->count);
    if (m.state) memset(m.state, 0, moves->count * sizeof *m.state);
    for (size_t i = 0; !code && i < moves->count; i++) code = give_name(&m, i);
    if (!code) code = sync_folders(&m, true);
    if (!code && how == CLI_MOVE) code = cli_lock_beside(moves->items[0].from, &lock, err);
    for (size_t i = 0; !code && how == CLI_MOVE && i < moves->count; i++) code = check_names(&m, i);
    for (size_t i = 0; !code && how == CLI_MOVE && i < moves->count; i++) code = drop_name(&m, i);
    cli_lock_end(&lock);
    moves->is_torn = code && m.state && !take_back(&m);
    for (size_t i = 0; !code && how == CLI_MOVE && i < moves->emptied_count; i++)
        (void)sfti_os_remove_folder(moves->emptied[i]);
    /* All is in its place by now: a folder that cannot be synced is no reason to go back. */
    if (!code && how == CLI_MOVE) {
        sft_error ignored = SFT_ERROR_INIT;
        m.err = &ignored;
        (void)sync_folders(&m, false);
    }
    *blame = m.blame;
    sfti_arena_free(&m.arena);
    return code;
}

/* ── Back ── */

/* What is at `to` goes, if it is what was put there: another name of the file at `from`, or its
 * bytes, edited. */
static sft_code undo_second(moving *m, const cli_move *move, bool same) {
    sft_code code = SFT_OK;
    m->blame = move->to;
    if (!same && move->edit_count == 0) {
        code = cli_same_bytes(m->c, move->from, move->to, &same, m->err);
    } else if (!same) {
        sft_buffer ours = { .alloc = m->c->alloc }, now = { .alloc = m->c->alloc };
        code = edited_text(m, move->from, move, false, &ours);
        if (!code) m->blame = move->to;
        if (!code) code = cli_read_file(m->c, move->to, CLI_MOVE_TEXT_MOST, &now, m->err);
        same = !code && now.len == ours.len
            && memcmp(now.data ? now.data : "", ours.data ? ours.data : "", now.len) == 0;
        sft_buffer_free(&ours);
        sft_buffer_free(&now);
    }
    if (code) return code;
    if (!same && !move->stays) return fail_os(m, move->from, EEXIST, "");
    if (!same)
        return cli_fail_hint(m->err, SFT_EXISTS, SFT_HINT_NONE,
                             "expected what mv put there, found another file: it stays");
    int error = sfti_os_unlink(move->to);
    return error ? fail_os(m, move->to, error, "remove") : SFT_OK;
}

/* The old name again. A text that was changed since moves as it is. */
static sft_code undo_move(moving *m, const cli_move *move) {
    sft_code code = make_folders(m, move->from, move->to);
    if (code) return code;
    if (move->edit_count > 0) {
        code = write_edited(m, move->to, move->from, move, true);
        int error = code ? 0 : sfti_os_unlink(move->to);
        if (error) return fail_os(m, move->to, error, "remove");
        if (code != SFT_BAD_ARGUMENT) return code;
        cli_warn(m->c, move->to, m->err);
    }
    return bring_back(m, move);
}

static bool undo_one(moving *m, const cli_move *move, size_t *left) {
    os_info from, to;
    int old = sfti_os_info_path(move->from, false, &from);
    int new = sfti_os_info_path(move->to, false, &to);
    sft_code code;
    bool same = !old && !new && from.inode == to.inode && from.device == to.device;
    if (new == ENOENT && !old) return false; /* it is where it was */
    if (strcmp(move->from, move->to) == 0) return false;
    /* One name that two paths lead to, where letters of either case are alike. */
    if ((same && from.links < 2) || cli_is_one_name(move->from, move->to)) {
        int error = sfti_os_rename(move->to, move->from, false);
        code = error ? fail_os(m, move->from, error, "rename") : SFT_OK;
    } else if (new) code = fail_os(m, move->to, new, "open");
    else if (old == ENOENT) code = undo_move(m, move);
    else if (old) code = fail_os(m, move->from, old, "open");
    else if (move->is_folder) code = fail_os(m, move->from, EEXIST, "");
    else code = undo_second(m, move, same);
    if (!code) return true;
    cli_fail_input(m->c, m->blame, m->err);
    ++*left;
    return false;
}

size_t cli_moves_undo(cli *c, const cli_moves *moves, size_t *left) {
    sft_error err = SFT_ERROR_INIT;
    moving m = { .c = c, .moves = moves, .blame = moves->path, .err = &err };
    size_t back = 0;
    cli_lock lock;
    m.arena.alloc = c->alloc;
    if (cli_lock_beside(moves->items[0].to, &lock, &err)) {
        cli_fail_input(c, moves->items[0].to, &err);
        *left += moves->count;
        return 0;
    }
    /* The model first: where it stays, so does what is its own, which another may be called like at
     * the old place by now. */
    for (size_t n = 0, before = *left; n < moves->count; n++) {
        err = (sft_error)SFT_ERROR_INIT;
        back += undo_one(&m, &moves->items[n ? moves->count - n : 0], left);
        if (n == 0 && *left > before) break;
    }
    cli_lock_end(&lock);
    (void)sync_folders(&m, false);
    sfti_arena_free(&m.arena);
    return back;
}
