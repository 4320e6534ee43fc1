/* dup --remove, --link, --reflink: one of each group stays. Tests: tests/cli/dup. */
#include "commands/dup/dup.h"

#include "base/foreign.h"
#include "commands/note/note.h"
#include "os/io.h"
#include "os/path.h"
#include "safetensors_diff.h"
#include "support/files.h"
#include "support/hints.h"
#include "support/raw.h"
#include "support/trash.h"
#include "support/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct dup_one {
    cli_unit unit;
    const char *link; /* that leads to it */
    os_info info;
    bool usable;
} dup_one;

/* --keep: a word, or the path of a folder, which begins at the root from here on. */
static sft_code find_kept(cli *c, sfti_arena *arena, sft_error *err) {
    static const char *const words[] = { "described", "oldest", "newest", "shortest" };
    const char *which = c->set.keep_which;
    char real[4096];
    os_info info;
    for (size_t i = 0; which && i < sizeof words / sizeof *words; i++)
        if (strcmp(which, words[i]) == 0) which = NULL;
    if (!which) return SFT_OK;
    int error = sfti_os_info_path(which, true, &info);
    if (!error && info.kind == OS_DIR) error = sfti_os_real_path(which, real, sizeof real);
    else if (!error || (error == ENOENT && sfti_folder_len(which) == 0))
        return cli_usage_error(err, "expected described, oldest, newest, shortest or a folder "
                               "after --keep, found \"%s\"", which);
    if (error == ENOENT)
        return sfti_fail(err, SFT_NOT_FOUND, "expected a folder after --keep, found nothing");
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "find the folder");
    c->set.keep_which = sfti_arena_copy(arena, real, strlen(real));
    return c->set.keep_which ? SFT_OK : sfti_fail_memory(err, strlen(real));
}

sft_code dup_end_check(cli *c, sfti_arena *arena, sft_error *err) {
    const cli_settings *set = &c->set;
    if (set->remove + set->link + set->reflink > 1)
        return cli_usage_error(err, "expected one of --remove, --link and --reflink, found more");
    if (!dup_ends(set) && (set->yes || set->erase || set->by_weights || set->keep_which))
        return cli_usage_error(err, "expected --remove, --link or --reflink with --yes, --keep, "
                               "--weights and --delete, found none");
    if (set->erase && !set->remove)
        return cli_usage_error(err, "expected --remove with --delete, found another");
    if (set->by_weights && !set->remove)
        return cli_usage_error(err, "expected --remove with --weights: files with different "
                               "metadata cannot be one");
    return find_kept(c, arena, err);
}

/* ── Which one stays ── */

static bool look_at(cli *c, const dup_path *from, sfti_arena *arena, dup_one *one) {
    const char *path = from->path;
    cli_told told;
    cli_input input = { .kind = CLI_FILE, .path = path };
    cli_model model = { .input = &input, .path = path };
    uint64_t n, of;
    sft_span base;
    *one = (dup_one){ .link = from->link };
    if (sfti_os_info_path(path, false, &one->info)) return true;
    cli_told_open(c, path, &told);
    model.set = told.set;
    model.import = told.import;
    model.tree = told.tree;
    bool fine = told.tree ? cli_unit_of(&model, arena, &one->unit)
              : told.err.code != SFT_OUT_OF_MEMORY && cli_unit_of_file(path, arena, &one->unit);
    /* An equal file tells nothing of the model's others. A whole GGUF may be called like a part. */
    const sfti_foreign *import = (const void *)told.import;
    bool part = cli_shard_of(path, &n, &of, &base) && of > 1
             && !(import && cli_ends_with(sft_span_cstr(path), ".gguf"));
    part |= cli_ends_with(sft_span_cstr(path), ".index.json")
         || (import && import->files(told.import, NULL) > 0);
    part |= c->set.remove && cli_is_component(path); /* without it the pipeline is none */
    part |= c->set.remove && cli_check_dataset(path, NULL);
    fine = fine && cli_unit_find_index(c, &one->unit, arena);
    one->usable = fine && one->info.kind == OS_FILE && one->unit.index.len == 0 && !part;
    cli_told_close(&told);
    return fine;
}

bool dup_keeps(const cli *c, const char *path) {
    const char *kept = c->set.keep_which;
    char folder[4096], real[4096];
    sft_span rest;
    if (!path || !kept || sfti_root_len(kept) == 0) return false;
    if (!sfti_folder_copy(path, folder, sizeof folder)
        || sfti_os_real_path(folder, real, sizeof real))
        return false;
    return strcmp(real, kept) == 0
           || sfti_path_below(sft_span_cstr(real), sft_span_cstr(kept), &rest);
}

/* Whether a is rather kept than b. */
static bool is_better(const cli *c, const dup_one *a, const dup_one *b) {
    const char *which = c->set.keep_which ? c->set.keep_which : "described";
    size_t x = strlen(a->unit.path), y = strlen(b->unit.path);
    if (!c->set.keep_which && !a->link != !b->link) return a->link != NULL;
    if (strcmp(which, "oldest") == 0 && a->info.mtime_ns != b->info.mtime_ns)
        return a->info.mtime_ns < b->info.mtime_ns;
    if (strcmp(which, "newest") == 0 && a->info.mtime_ns != b->info.mtime_ns)
        return a->info.mtime_ns > b->info.mtime_ns;
    if (strcmp(which, "described") == 0 && a->unit.count != b->unit.count)
        return a->unit.count > b->unit.count;
    bool one = dup_keeps(c, a->unit.path) || dup_keeps(c, a->link);
    if (one != (dup_keeps(c, b->unit.path) || dup_keeps(c, b->link))) return one;
    return x < y;
}

/* ── Comparing once more ── */

/* Names, dtypes, shapes and values of all tensors. */
static sft_code same_tensors(cli *c, const char *a, const char *b, bool *same, sft_error *err) {
    sft_set_options options = cli_set_options(c);
    sft_diff_options compare = SFT_DIFF_OPTIONS_INIT;
    sft_set *x = NULL, *y = NULL;
    sft_diff *diff = NULL;
    *same = false;
    compare.no_metadata = true;
    sft_code code = sft_set_open(a, &options, &x, err);
    if (!code) code = sft_set_open(b, &options, &y, err);
    if (!code) code = sft_diff_new(x, y, &compare, NULL, &diff, err);
    if (!code) *same = sft_diff_same(diff);
    sft_diff_free(diff);
    sft_set_close(x);
    sft_set_close(y);
    return code;
}

/* ── What becomes of one that goes ── */

typedef struct dup_end_run {
    cli *c;
    sfti_arena *arena;
    sfti_json_writer *w; /* of the group; NULL: people read it */
    const dup_one *stays, *goes;
    const char *blame;
} dup_end_run;

/* The name that a companion of the one that goes has beside the one that stays. */
static char *name_beside(const dup_end_run *run, const cli_companion *item) {
    const cli_unit *to = &run->stays->unit;
    sft_span name = cli_name_of(item->path);
    size_t stem = run->goes->unit.stem.len, folder = sfti_folder_len(to->path);
    size_t size = folder + to->stem.len + name.len - stem + 1;
    char *path = sfti_arena_take(run->arena, size);
    if (path)
        snprintf(path, size, "%.*s%.*s%.*s", (int)folder, to->path, (int)to->stem.len,
                 to->stem.data, (int)(name.len - stem), name.data + stem);
    return path;
}

/* What is handed to the one that stays. */
typedef struct handover {
    cli_unit rest;   /* is not handed over */
    cli_moves moves; /* what it has not is its own from now on */
    const char *note; /* its note, if that was changed; before and after */
    sft_buffer before, after;
} handover;

static sft_code write_note(const dup_end_run *run, const char *path, const sft_buffer *text,
                           sft_error *err) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    os_info info;
    options.link = SFT_LINK_REFUSE;
    if (!sfti_os_info_path(path, false, &info)) options.mode = info.mode & 0777;
    return cli_write_bytes(run->c, path, options, (sft_span){ text->data, text->len }, err);
}

/* The note of the one that stays has what only the other says, from now on. What is no note stays
 * as it is. */
static sft_code merge_notes(dup_end_run *run, handover *hand, const char *from, const char *to,
                            sft_error *err) {
    sft_buffer other = { .alloc = run->c->alloc }, *own = &hand->before, *text = &hand->after;
    sft_sink sink = sft_sink_memory(text);
    sfti_json_writer w;
    cli_lock lock = { .fd = -1 };
    run->blame = to;
    sft_code code = cli_lock_beside(to, &lock, err);
    if (!code) run->blame = from;
    if (!code) code = cli_read_file(run->c, from, NOTE_TEXT_MOST, &other, err);
    if (!code) run->blame = to;
    if (!code) code = cli_read_file(run->c, to, NOTE_TEXT_MOST, own, err);
    sft_span theirs = cli_read_text(&other), ours = cli_read_text(own);
    if (!code && cli_raw_check(theirs) && cli_raw_check(ours) && *theirs.data == '{'
        && *ours.data == '{') {
        sfti_json_write(&w, &sink, 0, err);
        cli_raw_merge(&w, theirs, ours, NULL);
        code = sfti_json_done(&w);
        if (!code && !sfti_buffer_put(text, "\n", 1)) code = sfti_fail_memory(err, text->len);
        if (!code) code = write_note(run, to, text, err);
        if (!code) hand->note = to;
    }
    cli_lock_end(&lock);
    sft_buffer_free(&other);
    return code;
}

/* The note as it was, unless somebody wrote it since. */
static void restore_note(const dup_end_run *run, const handover *hand) {
    sft_buffer now = { .alloc = run->c->alloc };
    sft_error ignored = SFT_ERROR_INIT;
    cli_lock lock = { .fd = -1 };
    if (!cli_lock_beside(hand->note, &lock, &ignored)
        && !cli_read_file(run->c, hand->note, NOTE_TEXT_MOST, &now, &ignored)
        && now.len == hand->after.len && memcmp(now.data, hand->after.data, now.len) == 0)
        (void)write_note(run, hand->note, &hand->before, &ignored);
    cli_lock_end(&lock);
    sft_buffer_free(&now);
}

static sft_code plan_handover(dup_end_run *run, handover *hand, sft_error *err) {
    const cli_unit *goes = &run->goes->unit;
    cli_moves *moves = &hand->moves;
    os_info there;
    int error = 0;
    hand->rest.count = 0;
    hand->rest.items = sfti_arena_array(run->arena, goes->count, sizeof *hand->rest.items);
    moves->items = sfti_arena_array(run->arena, goes->count, sizeof *moves->items);
    if (!hand->rest.items || !moves->items) return sfti_fail_memory(err, goes->count);
    for (size_t i = 0; i < goes->count; i++) {
        const char *path = goes->items[i].path, *from = NULL, *to = NULL;
        if (!goes->items[i].is_model) {
            to = name_beside(run, &goes->items[i]);
            from = to ? cli_absolute(run->arena, path, &error) : NULL;
            to = from ? cli_absolute(run->arena, to, &error) : NULL;
            if (!to) run->blame = path;
            if (!to && error) return sfti_io_fail(err, SFT_IO_OPEN, error, "find the folder");
            if (!to) return sfti_fail_memory(err, strlen(path));
        }
        if (to && sfti_os_info_path(to, false, &there) == ENOENT) {
            moves->items[moves->count++] = (cli_move){ .from = from, .to = to };
            continue;
        }
        hand->rest.items[hand->rest.count++] = goes->items[i];
        bool is_note = to && cli_ends_with(sft_span_cstr(to), NOTE_SUFFIX);
        sft_code code = is_note ? merge_notes(run, hand, from, to, err) : SFT_OK;
        if (code) return code;
    }
    cli_move model = { .from = cli_absolute(run->arena, goes->path, &error),
                       .to = cli_absolute(run->arena, run->stays->unit.path, &error) };
    bool fine = model.from && model.to;
    for (size_t i = 0; fine && i < moves->count; i++)
        fine = cli_follow(run->c, run->arena, goes->stem, &model, moves, &moves->items[i]);
    return fine ? SFT_OK : sfti_fail_memory(err, CLI_MOVE_TEXT_MOST);
}

/* All that can fail fails while the model is there: it goes last, but for copies of what lies
 * beside the one that stays. */
static sft_code erase_rest(dup_end_run *run, const handover *hand, sft_error *err) {
    const cli_unit *rest = &hand->rest;
    cli_unit differ = *rest; /* what differs is nobody's copy: that goes to the trash */
    cli_moves moves = hand->moves;
    size_t most = moves.count + rest->count;
    sft_code code = SFT_OK;
    differ.count = 0;
    differ.items = sfti_arena_array(run->arena, rest->count, sizeof *differ.items);
    moves.items = sfti_arena_array(run->arena, most, sizeof *moves.items);
    if (!differ.items || !moves.items) return sfti_fail_memory(err, most);
    for (size_t i = 0; i < moves.count; i++) moves.items[i] = hand->moves.items[i];
    for (size_t i = 0; !code && i < rest->count; i++) {
        bool same = rest->items[i].is_model;
        const char *path = rest->items[i].path;
        const char *beside = same ? NULL : name_beside(run, &rest->items[i]);
        if (same) moves.items[moves.count++] = (cli_move){ .from = path };
        if (beside) code = cli_same_bytes(run->c, path, beside, &same, err);
        if (!code && !same) differ.items[differ.count++] = rest->items[i];
    }
    if (!code)
        code = differ.count ? cli_trash_unit(run->c, &differ, &moves, &run->blame, err)
                            : cli_moves_make(run->c, &moves, CLI_MOVE, &run->blame, err);
    for (size_t i = 0; !code && i < rest->count; i++) {
        int error = rest->items[i].is_model ? 0 : sfti_os_unlink(rest->items[i].path);
        run->blame = rest->items[i].path;
        if (error && error != ENOENT) code = sfti_io_fail(err, SFT_IO_PUBLISH, error, "remove");
    }
    if (!code) (void)sfti_sync_parent(rest->path);
    return code;
}

/* 1. The note of the one that stays is written.
 * 2. What else is handed over moves, and the model goes to the trash or is removed: all of that or
 *    nothing (moves.h), and after nothing the note is as it was.
 * A crash between leaves the model, and what was its own beside one of the two. */
static sft_code remove_one(dup_end_run *run, sft_error *err) {
    handover hand = { .rest = run->goes->unit, .moves = { .path = run->goes->unit.path } };
    sft_code code = SFT_OK;
    os_info info;
    hand.before.alloc = hand.after.alloc = run->c->alloc;
    if (cli_unit_alone(&run->goes->unit)) code = plan_handover(run, &hand, err);
    else (void)cli_unit_keep_shared(&hand.rest, false, NULL);
    if (!code && run->c->set.erase) code = erase_rest(run, &hand, err);
    else if (!code) code = cli_trash_unit(run->c, &hand.rest, &hand.moves, &run->blame, err);
    if (code && hand.note && !sfti_os_info_path(run->goes->unit.path, false, &info))
        restore_note(run, &hand);
    sft_buffer_free(&hand.before);
    sft_buffer_free(&hand.after);
    return code;
}

/* A new name in the folder, for a file that then takes the place of another. */
static sft_code fresh_name(const char *path, sfti_arena *arena, char **out, sft_error *err) {
    uint8_t random[6];
    size_t folder = sfti_folder_len(path), size = folder + 40;
    char *name = sfti_arena_take(arena, size);
    if (!name) return sfti_fail_memory(err, size);
    int error = sfti_os_random(random, sizeof random);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "draw a name");
    snprintf(name, size, "%.*s.dup.sft-%02x%02x%02x%02x%02x%02x", (int)folder, path, random[0],
             random[1], random[2], random[3], random[4], random[5]);
    *out = name;
    return SFT_OK;
}

/* The bytes of one file under a new name, shared by the file system. */
static int clone_file(const char *from, const char *to, const os_info *like) {
    int in, out = -1;
    int error = sfti_os_open_read(from, &in);
    if (error) return error;
    error = sfti_os_open_new(to, like->mode & 0777, &out);
    if (!error) {
        error = sfti_os_clone_range(in, 0, out, 0, like->size);
        if (!error) error = sfti_os_set_mode(out, like->mode & 0777);
        if (!error) error = sfti_os_set_mtime(out, like->mtime_ns);
        if (!error) error = sfti_os_sync(out);
        (void)sfti_os_close(out);
    }
    (void)sfti_os_close(in);
    return error;
}

static sft_code join_one(dup_end_run *run, sft_error *err) {
    const char *from = run->stays->unit.path, *path = run->goes->unit.path;
    char *fresh = NULL;
    sft_code code = fresh_name(path, run->arena, &fresh, err);
    if (code) return code;
    bool link = run->c->set.link;
    int error = link ? sfti_os_link(from, fresh) : clone_file(from, fresh, &run->goes->info);
    if (!error) error = sfti_os_rename(fresh, path, false);
    run->blame = path;
    if (error) {
        (void)sfti_os_unlink(fresh);
        return sfti_io_fail(err, SFT_IO_PUBLISH, error, link ? "link" : "share its bytes");
    }
    (void)sfti_sync_parent(path);
    return SFT_OK;
}

/* ── A group ── */

static void tell(const dup_end_run *run) {
    cli *c = run->c;
    const char *what = c->set.link    ? "linked"
                     : c->set.reflink ? "made to share"
                     : c->set.erase   ? "deleted"
                                       : "moved to the trash";
    if (run->w) {
        sfti_json_cstr(run->w, run->goes->unit.path);
        return;
    }
    cli_out *out = dup_says(c);
    cli_path(out, run->goes->unit.path, ": %s%s, as ", c->set.yes ? "" : "would be ", what);
    cli_path_text(out, sft_span_cstr(run->stays->unit.path));
    cli_text(out, c->set.remove ? " stays\n" : " is\n");
}

static sft_code end_one(dup_end_run *run, bool same_file, sft_error *err) {
    bool same = false;
    const char *a = run->stays->unit.path, *b = run->goes->unit.path;
    run->blame = b;
    sft_code code = same_file ? cli_same_bytes(run->c, a, b, &same, err)
                              : same_tensors(run->c, a, b, &same, err);
    if (!code && !same)
        code = cli_fail_hint(err, SFT_EXISTS, SFT_HINT_NONE,
                             "expected what was there when it was hashed, found a file that "
                             "differs: it stays");
    if (code) return code;
    return run->c->set.remove ? remove_one(run, err) : join_one(run, err);
}

bool dup_end(cli *c, const dup_path *paths, size_t count, bool same_file, sfti_arena *arena,
             sfti_json_writer *w) {
    dup_one *all = sfti_arena_array(arena, count, sizeof *all);
    size_t best = count;
    if (!all) return false;
    for (size_t i = 0; i < count; i++) {
        if (!look_at(c, &paths[i], arena, &all[i])) return false;
        if (all[i].usable && (best == count || is_better(c, &all[i], &all[best]))) best = i;
    }
    if (w && best < count) sfti_json_put_cstr(w, "stays", paths[best].path);
    if (w) sfti_json_put_open(w, "ended", '[');
    for (size_t i = 0; i < count && !cli_is_over(c); i++) {
        dup_end_run run = { c, arena, w, best < count ? &all[best] : NULL, &all[i], paths[i].path };
        sft_error err = SFT_ERROR_INIT;
        sft_code code = SFT_OK;
        if (i == best) continue;
        if (!all[i].usable)
            code = cli_fail_hint(&err, SFT_IO_NOT_FILE, SFT_HINT_NONE,
                                 "expected one file, found a model of several, one of "
                                 "them, or a link: it stays");
        else if (c->set.remove && all[i].link)
            code = cli_fail_hint(&err, SFT_IS_LINK, SFT_HINT_NONE,
                                 "expected a file that no link leads to, found one that %s leads "
                                 "to: it stays", all[i].link);
        else if (c->set.yes) code = end_one(&run, same_file, &err);
        if (code) cli_complain(c, run.blame, &err);
        else tell(&run);
    }
    if (w) sfti_json_close(w, ']');
    return true;
}
