/* mv: models to another place or name, with everything that is their own. Tests: tests/cli/mv,
 * tests/move. */
#include "commands/commands.h"
#include "commands/mv/mv.h"
#include "commands/note/note.h"
#include "os/io.h"
#include "support/adapters.h"
#include "support/files.h"
#include "support/hints.h"
#include "support/records.h"
#include "support/where.h"
#include "support/words.h"

#include <errno.h>
#include <string.h>

/* A symbolic link in a folder that is searched, and the file that it leads to. */
typedef struct mv_link {
    const char *path, *file;
} mv_link;

typedef struct mv_run {
    cli *c;
    mv_plan plan;
    mv_pattern pattern;
    cli_wheres where;
    cli_move_how how;
    char **operands;       /* without the target */
    size_t operand_count;
    const char *target;    /* absolute; NULL: by --to */
    bool into;             /* the target is a folder that they go into */
    size_t models, failed; /* failed: units that could not be planned */
    mv_link *links;
    size_t link_count, link_cap;
    bool out_of_memory;
} mv_run;

/* A model that was found stays where it is. False when out of memory. */
static bool add_other(mv_plan *plan, const char *path) {
    const char **others = sfti_arena_grow(&plan->arena, plan->others, plan->other_count, 1,
                                          &plan->other_cap, sizeof *others);
    if (others) plan->others = others;
    const char *copy = others ? sfti_arena_copy(&plan->arena, path, strlen(path)) : NULL;
    if (copy) others[plan->other_count++] = copy;
    return copy != NULL;
}

/* ── Where to ── */

/* The folder of --to: that of the operand that a model was found in; its own if it was named. */
static const char *base_of(mv_run *run, const char *path, bool is_found) {
    for (size_t i = 0; is_found && i < run->operand_count; i++) {
        sft_span operand = sfti_path_trimmed(sft_span_cstr(run->operands[i])), rest;
        if (strcmp(run->operands[i], path) == 0) break;
        if (sfti_path_below(sft_span_cstr(path), operand, &rest)
            || (cli_is(operand, ".") && sfti_root_len(path) == 0))
            return run->operands[i];
    }
    sft_span folder = sfti_path_above(sft_span_cstr(path));
    return folder.len ? sfti_arena_copy(&run->plan.arena, folder.data, folder.len) : ".";
}

/* folder/name, the folder with all links resolved; NULL: told. */
static char *below(mv_run *run, const char *folder, const char *name) {
    char real[4096];
    sft_error err = SFT_ERROR_INIT;
    int error = sfti_os_real_path(folder, real, sizeof real);
    char *path = error ? NULL : cli_join_path(&run->plan.arena, sft_span_cstr(real), name);
    if (error) (void)sfti_io_fail(&err, SFT_IO_OPEN, error, "find the folder");
    else if (!path) (void)sfti_fail_memory(&err, strlen(name));
    if (!path) cli_fail_input(run->c, folder, &err);
    return path;
}

/* Whether nothing between the folder and the path is a link: a name that a fact gave leads nowhere
 * else. */
static bool stays_below(mv_run *run, const char *folder, const char *path) {
    sft_error err = SFT_ERROR_INIT;
    char *copy = sfti_arena_copy(&run->plan.arena, path, strlen(path));
    os_info info;
    for (size_t at = strlen(folder) + 1; copy && copy[at]; at++) {
        if (copy[at] != '/') continue;
        copy[at] = '\0';
        int error = sfti_os_info_path(copy, false, &info);
        if (!error && info.kind != OS_DIR) {
            (void)sfti_fail(&err, SFT_IO_NOT_FILE, "expected a folder, found %s",
                            info.kind == OS_LINK ? "a symbolic link" : "a file");
            cli_fail_input(run->c, copy, &err);
            return false;
        }
        copy[at] = '/';
    }
    run->out_of_memory |= !copy;
    return copy != NULL;
}

/* name: what the model is called where no fact says. NULL: told, or run->out_of_memory. */
static const char *target_of(mv_run *run, const cli_unit *unit, sft_span name, bool is_found,
                             const sft_node *root) {
    char *stem = sfti_arena_copy(&run->plan.arena, name.data, name.len);
    const char *there = !stem || !run->target ? NULL : !run->into ? run->target
                      : cli_join_path(&run->plan.arena, sft_span_cstr(run->target), stem);
    run->out_of_memory |= !stem || (run->target && !there);
    if (!stem || run->target) return there;
    const char *unknown = run->c->set.unknown ? run->c->set.unknown : "unknown";
    const char *base = base_of(run, unit->path, is_found);
    char *path = base ? mv_pattern_path(run->c, &run->pattern, root, name, unknown,
                                        &run->plan.arena) : NULL;
    run->out_of_memory |= !path;
    char *whole = path ? below(run, base, path) : NULL;
    char *folder = whole ? below(run, base, "") : NULL;
    if (!folder) return NULL;
    folder[strlen(folder) - 1] = '\0';
    return stays_below(run, folder, whole) ? whole : NULL;
}

/* ── Which models ── */

/* Whether a folder was named, or one in it was. */
static bool is_searched(const mv_run *run, const char *folder) {
    sft_span rest;
    for (size_t i = 0; i < run->operand_count; i++) {
        sft_span operand = sfti_path_trimmed(sft_span_cstr(run->operands[i]));
        if (cli_is(operand, folder) || sfti_path_below(operand, sft_span_cstr(folder), &rest))
            return true;
    }
    return false;
}

/* Whether one of its own files is a link: then it stays. One that was named is told; one that was
 * found is, once all is known, if what it leads to moves. */
static bool is_link(mv_run *run, const cli_unit *unit, bool is_found) {
    char file[4096];
    os_info info;
    sft_error err = SFT_ERROR_INIT;
    size_t i = 0;
    while (i < unit->count && unit->items[i].is_model
           && (sfti_os_info_path(unit->items[i].path, false, &info) || info.kind != OS_LINK))
        i++;
    if (i == unit->count || !unit->items[i].is_model) return false;
    const char *path = unit->items[i].path;
    if (!is_found) {
        (void)cli_fail_hint(&err, SFT_IS_LINK, SFT_HINT_NONE,
                            "expected a file, found a symbolic link: move what it leads to");
        cli_fail_input(run->c, path, &err);
    } else if (!sfti_os_real_path(path, file, sizeof file)) {
        mv_link *links = sfti_arena_grow(&run->plan.arena, run->links, run->link_count, 1,
                                         &run->link_cap, sizeof *links);
        char *copy = sfti_arena_copy(&run->plan.arena, file, strlen(file));
        run->out_of_memory |= !links || !copy;
        if (links) run->links = links;
        if (links && copy) links[run->link_count++] = (mv_link){ path, copy };
    }
    return true;
}

static void tell_links(mv_run *run) {
    for (size_t k = 0; run->how == CLI_MOVE && k < run->link_count; k++) {
        sft_error err = SFT_ERROR_INIT;
        sft_span file = sft_span_cstr(run->links[k].file), rest;
        bool moves = false;
        for (size_t u = 0; u < run->plan.count && !moves; u++) {
            const cli_moves *all = &run->plan.units[u].moves;
            for (size_t i = 0; i < all->count && !moves; i++)
                moves = cli_is(file, all->items[i].from)
                     || (all->items[i].is_folder
                         && sfti_path_below(file, sft_span_cstr(all->items[i].from), &rest));
        }
        if (!moves) continue;
        (void)cli_fail_hint(&err, SFT_IS_LINK, SFT_HINT_NONE,
                            "a symbolic link stays, and leads nowhere once %s moves",
                            run->links[k].file);
        cli_warn(run->c, run->links[k].path, &err);
    }
}

static void each_model(void *ctx, cli_model *model) {
    mv_run *run = ctx;
    cli_unit unit;
    if (run->out_of_memory) return;
    if (!model->tree || model->err.code) {
        cli_fail_model(run->c, model);
        if (model->input->kind != CLI_EMPTY)
            run->out_of_memory |= !add_other(&run->plan, model->path);
        return;
    }
    const sft_node *root = sft_tree_root(model->tree);
    if (!cli_unit_of(model, &run->plan.arena, &unit)) {
        run->out_of_memory = true;
        return;
    }
    sft_error err = SFT_ERROR_INIT;
    bool is_found = model->input->is_found, fits = cli_wheres_fit(run->c, &run->where, root);
    if (((fits || is_found) && is_link(run, &unit, is_found)) || !fits) {
        run->out_of_memory |= !add_other(&run->plan, model->path);
        return;
    }
    if (run->how == CLI_MOVE && !is_found
        && !cli_unit_find_index(run->c, &unit, &run->plan.arena)) {
        run->out_of_memory = true;
        return;
    }
    if (run->how == CLI_MOVE && cli_unit_check(&unit, &err)) {
        cli_fail_input(run->c, model->path, &err);
        run->failed++;
        return;
    }
    sft_span above = sfti_path_above(sft_span_cstr(unit.path));
    const char *folder = sfti_arena_copy(&run->plan.arena, above.data, above.len);
    run->out_of_memory |= !folder;
    sft_span name = unit.is_folder ? cli_name_of(unit.path) : unit.stem;
    const char *to = target_of(run, &unit, name, is_found, root), *to_folder = NULL;
    bool may_fill = is_found && !unit.is_folder && run->c->set.place && above.len > 0;
    if (to && folder && may_fill && !is_searched(run, folder))
        to_folder = target_of(run, &unit, cli_name_of(folder), true, root);
    if (!to) run->failed++;
    else if (!mv_plan_add(&run->plan, &unit, to, to_folder)) run->out_of_memory = true;
}

/* A folder that is named without --to moves whole, if a model is in it. */
static bool take_folder(mv_run *run, const char *operand) {
    os_info info;
    cli *c = run->c;
    sft_error err = SFT_ERROR_INIT;
    cli_inputs inputs;
    if (!run->target || sfti_os_info_path(operand, false, &info) || info.kind != OS_DIR)
        return false;
    sft_span trimmed = sfti_path_trimmed(sft_span_cstr(operand));
    cli_companion *item = sfti_arena_take(&run->plan.arena, sizeof *item);
    char *path = sfti_arena_copy(&run->plan.arena, trimmed.data, trimmed.len);
    sft_code code = cli_inputs_expand(path ? path : "", CLI_ALL_LEVELS | CLI_AND_OTHERS, NULL,
                                      &c->open, &inputs, &err);
    bool any = !code && inputs.count > 0 && inputs.items[0]->kind != CLI_EMPTY;
    cli_inputs_free(&inputs);
    if (!code && !any) code = sfti_fail(&err, SFT_NOT_FOUND, "expected a model in this folder, "
                                                             "found none");
    run->models++;
    if (code || !item || !path) {
        if (code) cli_fail_input(c, operand, &err);
        run->out_of_memory |= !item || !path;
        run->failed += code != SFT_OK;
        return true;
    }
    *item = (cli_companion){ .path = path, .is_model = true };
    cli_unit unit = { .path = path, .is_folder = true, .items = item, .count = 1 };
    const char *to = target_of(run, &unit, cli_name_of(path), false, NULL);
    if (!to) run->failed++;
    else if (!mv_plan_add(&run->plan, &unit, to, NULL)) run->out_of_memory = true;
    return true;
}

static void collect(mv_run *run) {
    size_t count, files = 0;
    for (size_t i = 0; i < run->operand_count; i++)
        if (!take_folder(run, run->operands[i])) run->operands[files++] = run->operands[i];
    run->operand_count = files;
    if (files > 0) cli_each_model(run->c, run->operands, files, &count, NULL, each_model, run);
}

/* ── Telling ── */

/* back: from where it is to where it was. */
static void tell_json(mv_run *run, const char *path, const char *output, const cli_moves *moves,
                      bool back) {
    cli_object object;
    sfti_json_writer *w = cli_object_begin(&object, run->c, path);
    sfti_json_put_cstr(w, "output", output);
    sfti_json_put_bool(w, "changed", moves->count > 0);
    sfti_json_put_bool(w, "dry_run", run->c->set.dry_run != 0);
    sfti_json_put_open(w, "files", '[');
    for (size_t i = 0; i < moves->count; i++) {
        sfti_json_open(w, '{');
        sfti_json_put_cstr(w, "from", back ? moves->items[i].to : moves->items[i].from);
        sfti_json_put_cstr(w, "to", back ? moves->items[i].from : moves->items[i].to);
        sfti_json_put_bool(w, "edited", moves->items[i].edit_count > 0);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, ']');
    cli_object_end(&object);
}

/* Whether the original of a file that was to be moved stays, for another model. */
static bool is_copied(const mv_run *run, const cli_move *move) {
    return run->how == CLI_MOVE && move->stays;
}

static void tell(mv_run *run, const mv_unit *unit) {
    static const char *const did[] = { "moved", "copied", "linked" };
    cli *c = run->c;
    const cli_moves *moves = &unit->moves;
    const char *to = moves->count == 0    ? unit->unit.path
                   : unit->unit.is_folder ? unit->to
                                          : moves->items[0].to;
    c->beside.left = unit->left && moves->count > 0 ? unit->unit.path : NULL;
    c->beside.bare = unit->bare && moves->count > 0 ? unit->unit.path : NULL;
    cli_say_beside(c);
    if (cli_is_json(c)) {
        tell_json(run, unit->unit.path, to, moves, false);
        return;
    }
    if (moves->count == 0) {
        if (c->set.verbose) cli_path(&c->out, unit->unit.path, ": already there\n");
        return;
    }
    cli_path(&c->out, unit->unit.path, ": %s%s to ", c->set.dry_run ? "would be " : "",
             did[run->how]);
    cli_path_text(&c->out, sft_span_cstr(to));
    if (moves->count > 1 && !unit->unit.is_folder)
        cli_printf(&c->out, ", with %zu file%s", moves->count - 1, moves->count == 2 ? "" : "s");
    size_t copied = 0;
    for (size_t i = 0; i < moves->count; i++) copied += is_copied(run, &moves->items[i]);
    if (copied && c->set.dry_run)
        cli_printf(&c->out, " (%zu would be copied: the original%s would stay)", copied,
                   copied == 1 ? "" : "s");
    else if (copied)
        cli_printf(&c->out, " (%zu copied: the original%s)", copied,
                   copied == 1 ? " stays" : "s stay");
    cli_text(&c->out, "\n");
    bool spread = unit->unit.is_folder && !moves->items[0].is_folder;
    for (size_t i = spread ? 0 : 1; c->set.verbose && i < moves->count; i++) {
        cli_text(&c->out, "  ");
        cli_path_text(&c->out, cli_name_of(moves->items[i].from));
        cli_text(&c->out, " -> ");
        cli_path_text(&c->out, cli_name_of(moves->items[i].to));
        if (is_copied(run, &moves->items[i]))
            cli_text(&c->out, c->set.dry_run ? " (would be copied)" : " (copied)");
        cli_text(&c->out, moves->items[i].edit_count ? " (paths in it follow)\n" : "\n");
    }
}

/* ── The command ── */

static void perform(mv_run *run) {
    cli *c = run->c;
    mv_plan *plan = &run->plan;
    sft_error err = SFT_ERROR_INIT;
    const char *blame = NULL;
    size_t moves = 0, made = 0;
    mv_journal journal = { .fd = -1, .text = { .alloc = c->alloc } };
    sft_code code = mv_plan_end(plan, &run->failed, &blame, &err);
    for (size_t i = 0; i < plan->count; i++) moves += plan->units[i].moves.count > 0;
    if (!code && run->failed > 0 && !c->set.dry_run) {
        cli_flush(&c->out);
        cli_text(&c->err, "safetensors: nothing was moved\n");
        cli_flush(&c->err);
        cli_status(c, CLI_FAILED);
        return;
    }
    if (!code) tell_links(run);
    if (!code && moves > 0 && !c->set.dry_run) {
        code = mv_journal_write(c, plan, &journal, &err);
        blame = *journal.path ? journal.path : NULL;
    }
    if (code) cli_fail_input(c, blame, &err);
    for (size_t i = 0, count = code ? 0 : plan->count; i < count && !cli_is_over(c); i++) {
        mv_unit *unit = &plan->units[i];
        code = SFT_OK;
        err = (sft_error)SFT_ERROR_INIT;
        if (unit->moves.count > 0 && !c->set.dry_run) {
            code = cli_moves_make(c, &unit->moves, run->how, &blame, &err);
            unit->made = !code || unit->moves.is_torn;
            made += unit->made;
        }
        if (code) cli_fail_input(c, blame, &err);
        else tell(run, unit);
    }
    if (made > 0) mv_journal_settle(c, plan, &journal);
    (void)mv_journal_close(&journal, made == 0);
    if (plan->count == 0 && run->failed == 0 && c->status == CLI_OK) cli_status(c, CLI_NO);
}

/* A note that was written since goes back with its model. False when out of memory. */
static bool take_note(mv_plan *plan, cli_moves *moves) {
    const cli_move *model = moves->items;
    sfti_arena *arena = &plan->arena;
    os_info info;
    for (size_t i = 0; cli_model_ends[i] && !model->is_folder && !model->stays; i++) {
        sft_span end = sft_span_cstr(cli_model_ends[i]), note = sft_span_cstr(NOTE_SUFFIX);
        sft_span from = sft_span_cstr(model->from), to = sft_span_cstr(model->to);
        if (!cli_ends_with(from, end.data) || !cli_ends_with(to, end.data)) continue;
        char *old = sfti_arena_join(arena, (sft_span){ from.data, from.len - end.len }, note);
        char *new = sfti_arena_join(arena, (sft_span){ to.data, to.len - end.len }, note);
        if (!old || !new) return false;
        if (sfti_os_info_path(old, false, &info) != ENOENT || sfti_os_info_path(new, false, &info))
            return true;
        for (size_t k = 0; k < moves->count; k++)
            if (strcmp(moves->items[k].to, new) == 0) return true;
        cli_move *items = sfti_arena_grow(arena, moves->items, moves->count, 1, &moves->capacity,
                                          sizeof *items);
        if (!items) return false;
        moves->items = items;
        items[moves->count++] = (cli_move){ .from = old, .to = new };
        return true;
    }
    return true;
}

static void undo(mv_run *run) {
    cli *c = run->c;
    mv_plan *plan = &run->plan;
    sft_error err = SFT_ERROR_INIT;
    mv_journal journal;
    size_t left = 0;
    sft_code code = mv_journal_read(c, plan, &journal, &err);
    const char *path = *journal.path ? journal.path : NULL;
    if (code == SFT_NOT_FOUND && !path) cli_refuse(c, path, &err);
    else if (code) cli_fail_input(c, path, &err);
    for (size_t i = code ? 0 : plan->count; i-- > 0;) {
        mv_unit *unit = &plan->units[i];
        size_t before = left, moved = unit->moves.count;
        if (moved > 0 && !take_note(plan, &unit->moves)) {
            cli_complain_memory(c, sizeof(cli_move));
            left++;
            continue;
        }
        if (moved > 0 && !c->set.dry_run) moved = cli_moves_undo(c, &unit->moves, &left);
        if (left > before || moved == 0) continue;
        if (cli_is_json(c)) {
            tell_json(run, unit->moves.items[0].to, unit->moves.items[0].from, &unit->moves, true);
            continue;
        }
        cli_path(&c->out, unit->moves.items[0].to, ": %staken back to ",
                 c->set.dry_run ? "would be " : "");
        cli_path_text(&c->out, sft_span_cstr(unit->moves.items[0].from));
        cli_text(&c->out, "\n");
    }
    bool is_over = !code && !c->set.dry_run && left == 0;
    for (size_t i = code || c->set.dry_run ? 0 : plan->made_count; i-- > 0;)
        (void)sfti_os_remove_folder(plan->made[i]);
    if (left > 0) {
        cli_flush(&c->out);
        cli_path(&c->err, path, ": stays, for another mv --undo; remove it to give that up\n");
        cli_flush(&c->err);
    }
    int error = mv_journal_close(&journal, is_over);
    if (!error) return;
    (void)sfti_io_fail(&err, SFT_IO_WRITE, error, "remove the journal");
    cli_fail_input(c, path, &err);
}

/* A path from the root on, of which the last folders need not be there. */
static char *absolute_new(sfti_arena *arena, const char *path, int *error) {
    size_t len = strlen(path), end = len;
    char *copy = sfti_arena_copy(arena, path, len), *whole = NULL;
    *error = copy ? ENOENT : 0;
    while (*error == ENOENT) {
        whole = cli_absolute(arena, copy, error);
        size_t above = sfti_path_above((sft_span){ path, end }).len;
        if (*error != ENOENT || above == 0 || above == end) break;
        end = above;
        copy[end] = '\0';
    }
    size_t used = copy ? strlen(copy) : 0;
    if (!whole || used == len) return whole;
    return sfti_arena_join(arena, sft_span_cstr(whole), (sft_span){ path + used, len - used });
}

/* The last operand, unless --to says where: a folder, or a new name for the one model. */
static sft_code read_target(mv_run *run, char **operands, size_t count, sft_error *err) {
    os_info info;
    int error;
    if (count < 2)
        return cli_usage_error(err, "expected MODEL... and a folder or a new name, found %s",
                               count ? "one path" : "none");
    const char *last = operands[count - 1];
    size_t len = strlen(last);
    if (len == 0) return cli_usage_error(err, "expected a folder or a new name, found \"\"");
    bool is_folder = !sfti_os_info_path(last, true, &info) && info.kind == OS_DIR;
    run->into = is_folder || (len > 0 && sfti_is_separator(last[len - 1]));
    if (!run->into && count > 2)
        return cli_usage_error(err, "expected a folder behind several models, found \"%s\"", last);
    sft_span name = sft_span_cstr(last);
    static const char *const ends[] = { ".safetensors", ".sft", ".ckpt", ".pt", ".pth", ".gguf" };
    for (size_t i = 0; !run->into && i < sizeof ends / sizeof *ends; i++) {
        if (!cli_ends_with(name, ends[i])) continue;
        if (!cli_ends_with(sft_span_cstr(operands[0]), ends[i]))
            return cli_usage_error(err, "expected a name that ends as the model's does, found "
                                   "\"%s\"", last);
        name.len -= strlen(ends[i]);
    }
    sft_span model = cli_name_of(operands[0]), stem = cli_stem_of(model);
    const char *end = stem.data + stem.len; /* of any other format */
    bool is_file = !sfti_os_info_path(operands[0], true, &info) && info.kind == OS_FILE;
    if (!run->into && is_file && name.len == len && *end && cli_ends_with(name, end))
        name.len -= strlen(end);
    if (run->into) name = sfti_path_trimmed(name);
    char *path = sfti_arena_copy(&run->plan.arena, name.data, name.len);
    run->target = !path ? NULL : run->into ? absolute_new(&run->plan.arena, path, &error)
                                           : cli_absolute(&run->plan.arena, path, &error);
    if (path && error == ENOENT)
        return sfti_fail(err, SFT_NOT_FOUND, "expected a folder that is there for it, found none");
    if (path && error) return sfti_io_fail(err, SFT_IO_OPEN, error, "find the folder");
    if (!run->target) return sfti_fail_memory(err, len);
    run->operand_count = count - 1;
    return SFT_OK;
}

static void run_mv(cli *c, char **operands, size_t count) {
    sft_error err = SFT_ERROR_INIT;
    mv_run run = { .c = c, .operands = operands, .operand_count = count };
    sft_code code = SFT_OK;
    run.plan.c = c;
    run.plan.arena.alloc = c->alloc;
    run.plan.how = run.how = c->set.copy ? CLI_MOVE_COPY : c->set.link ? CLI_MOVE_LINK : CLI_MOVE;
    c->others = CLI_AND_OTHERS | CLI_FILES_ONLY;
    c->counts_unread = true;
    bool told = count > 0 || c->set.place || c->set.where.count > 0 || c->set.copy || c->set.link
             || c->set.number || c->set.unknown;
    if (c->set.undo && told)
        code = cli_usage_error(&err, "expected --undo alone, found more");
    else if (c->set.copy && c->set.link)
        code = cli_usage_error(&err, "expected --copy or --link, found both");
    else if (!c->set.undo && c->set.where.count > 0 && !c->set.place)
        code = cli_usage_error(&err, "expected --to with --where, found none");
    if (!code) code = cli_where_read(c, &run.where, &err);
    if (!code && c->set.place)
        code = mv_pattern_read(c->set.place, &run.plan.arena, &run.pattern, &err);
    if (!code && c->set.place && count == 0)
        code = cli_usage_error(&err, "expected models or folders with --to, found none");
    if (!code && !c->set.place && !c->set.undo) code = read_target(&run, operands, count, &err);
    if (code == SFT_BAD_ARGUMENT) {
        cli_fail_usage(c, &err);
    } else if (code) {
        cli_fail_input(c, count > 0 ? operands[count - 1] : NULL, &err);
    } else if (c->set.undo) {
        undo(&run);
    } else {
        collect(&run);
        if (run.out_of_memory) cli_complain_memory(c, sizeof(mv_unit));
        else perform(&run);
    }
    sfti_arena_free(&run.plan.arena);
}

const cli_command cli_mv_command = {
    "mv", "MODEL... FOLDER|NAME", "move or rename models with everything that is their own",
    "A model moves with what info reads as its own: all shards and the index, sidecars and "
    "pictures that begin with its name (NAME.civitai.info, NAME.preview.png, NAME.sha256), and "
    "adapter_config.json with PEFT's adapter_model, whose alpha it tells (a name or a folder in "
    "which another would be read is refused). What is shared stays, such as the README of a "
    "folder with other models; sidecars and shards that another model has as well, and external "
    "data of ONNX that are not called like the model, are copied. Sidecars of LoRA Manager say "
    "where the model lies; these paths follow. A folder that is named, and a pipeline, moves as a "
    "whole. A symbolic link stays. A model in several files (shards, GGUF in parts, external data "
    "of ONNX) is not renamed: NAME becomes a folder, without the extension, in which the files "
    "keep their names.\n"
    "With --to, each model that is named or found goes to a path made of its facts, below the "
    "folder that was searched; one that is named, below the folder that it lies in: {base_model}, "
    "{kind}, {name} and all other fields of info -f; {name|stem} is the first that is known, stem "
    "being the name that the file has, and {base_model|architecture} what tensors tell where "
    "nobody says the base model. Text between braces is written only beside a value: {name}{ - "
    "version_name}. Facts that are not sure (trust below 60) count as unknown. A folder of which "
    "nothing is known is named by --unknown; a file of which nothing is known keeps its name. "
    "Names are made such that every system takes them.\n"
    "Nothing is overwritten: what is in the way is listed and nothing moves, or with --number a "
    "model gets a number behind its name. Each model moves whole or not at all: it gets its new "
    "names before the old ones are removed; on another file system it is copied, compared with the "
    "original, and removed. What moves is written down first, so that mv --undo takes the last run "
    "back, one that was killed too; the last 20 can be taken back one by one.",
    CLI_EXAMPLES(
        { "safetensors mv neon.safetensors ~/models/loras/", "with sidecars and pictures" },
        { "safetensors mv neon.safetensors 'Neon City.safetensors'", "a new name for all of them" },
        { "safetensors mv -r ~/models/loras --to "
          "'{base_model|architecture}/{name|stem}{ - version_name}' --dry-run",
          "what would sorting by base model do?" }),
    { CLI_OPTIONS(
        CLI_TAKES(0, "to", "PATTERN", place,
          "a path for each model, of facts in braces, below the folder that was searched"),
        CLI_TAKES_MANY(0, "where", "FIELD=VALUE", where, CLI_WHERE_HELP),
        CLI_TAKES(0, "unknown", "NAME", unknown,
          "with --to: the name of folders of which nothing is known (default: unknown)"),
        CLI_ON(0, "number", number, "put a number behind names that are taken"),
        CLI_ON(0, "copy", copy, "copy instead"),
        CLI_ON(0, "link", link, "give the files a second name instead (hard links)"),
        CLI_ON(0, "undo", undo, "take the last run back"),
        CLI_ON(0, "dry-run", dry_run, "print what would be done; change nothing"),
        CLI_ON(0, "no-sync", no_sync, "do not fsync; a power failure may then lose the result"),
        CLI_ON('v', "verbose", verbose,
          "name every file, and models in folders that cannot be read")),
      cli_input_options, cli_json_options, cli_reading_options, cli_records_options,
      cli_common_options },
    { "all models were moved, or are where they belong",
      "no model matches --where; with --undo: no run can be taken back",
      "something is in the way, " CLI_UNREAD_STATUS ", or not moved, or a usage error" },
    0, SIZE_MAX, run_mv, CLI_URLS_NONE,
};
