/* Which files of which models go where, and whether they may. Tests: tests/cli/mv. */
#include "commands/mv/mv.h"

#include "base/splice.h"
#include "base/utf8.h"
#include "os/io.h"
#include "support/files.h"
#include "support/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define REAL_SIZE 4096
#define NUMBER_MOST 9999

char *mv_absolute(sfti_arena *arena, const char *path, int *error) {
    char folder[REAL_SIZE], real[REAL_SIZE];
    sft_span name = cli_name_of(path);
    *error = 0;
    if (!sfti_folder_copy(path, folder, sizeof folder)) *error = ENAMETOOLONG;
    if (!*error) *error = sfti_os_real_path(folder, real, sizeof real);
    return *error ? NULL : cli_join_path(arena, sft_span_cstr(real), name.data);
}

bool mv_plan_add(mv_plan *plan, const cli_unit *unit, const char *to) {
    mv_unit *units = sfti_arena_grow(&plan->arena, plan->units, plan->count, 1, &plan->capacity,
                                     sizeof *units);
    if (!units) return false;
    plan->units = units;
    units[plan->count++] = (mv_unit){ .unit = *unit, .to = to };
    return true;
}

/* ── What is taken ── */

/* Targets, letters of either case alike: systems differ in whether they are. */
typedef struct taken {
    mv_plan *plan;
    sft_span *paths;
    uint32_t count;
    sfti_names names;
} taken;

static sft_span path_of(const void *ctx, uint32_t entry) {
    return ((const taken *)ctx)->paths[entry];
}

static sft_span folded_path(sfti_arena *arena, const char *path) {
    size_t len = strlen(path);
    char *copy = sfti_arena_copy(arena, path, len);
    for (size_t i = 0; copy && i < len; i++) copy[i] = cli_lower(copy[i]);
    return (sft_span){ copy, len };
}

static sft_code taken_begin(taken *all, mv_plan *plan, sft_error *err) {
    uint64_t seed[2], most = 0;
    for (size_t i = 0; i < plan->count; i++) most += plan->units[i].unit.count;
    *all = (taken){ .plan = plan, .paths = sfti_arena_array(&plan->arena, most, sizeof(sft_span)) };
    sfti_seed_draw(all, seed);
    if (all->paths && most < UINT32_MAX
        && sfti_names_begin(&all->names, (size_t)most, seed, path_of, all, &plan->arena))
        return SFT_OK;
    return sfti_fail_memory(err, most);
}

/* Whether a move's target is free; a file may change the case of its own name. */
static bool is_free(const taken *all, const cli_move *move, sft_span folded, const char **why) {
    os_info there, own;
    *why = "already exists";
    if (sfti_names_find(&all->names, folded) != SFTI_NO_NAME) {
        *why = "expected a place of its own, found another model of this run in it";
        return false;
    }
    int error = sfti_os_info_path(move->to, false, &there);
    if (error == ENOENT || error == ENOTDIR) return true;
    return !error && !sfti_os_info_path(move->from, false, &own) && own.inode == there.inode
        && own.device == there.device && own.links == 1;
}

/* ── Sidecars that say where the model lies ── */

static bool same_path(sft_span said, const char *path) {
    size_t len = strlen(path);
    if (said.len != len) return false;
    for (size_t i = 0; i < len; i++) {
        char a = said.data[i], b = path[i];
        bool slashes = (a == '/' || a == '\\') && sfti_is_separator(b);
        if (a != b && !slashes) return false;
    }
    return true;
}

/* A path as a sidecar spells it: with the slashes that it had. */
static sft_span spelled_path(sfti_arena *arena, const char *path, sft_span like) {
    size_t len = strlen(path);
    char *copy = sfti_arena_copy(arena, path, len);
    bool forward = memchr(like.data, '/', like.len) != NULL;
    for (size_t i = 0; copy && i < len; i++)
        if (sfti_is_separator(copy[i])) copy[i] = forward ? '/' : '\\';
    return (sft_span){ copy, copy ? len : 0 };
}

static sft_span stem_of_path(const mv_unit *unit, const char *path) {
    sft_span name = cli_name_of(path);
    const cli_companion *first = &unit->unit.items[0];
    size_t ending = cli_name_of(first->path).len - unit->unit.stem.len;
    return (sft_span){ name.data, name.len > ending ? name.len - ending : name.len };
}

/* What a value at the top of a sidecar is to become; data NULL: it stays. */
static sft_span new_value(const mv_unit *unit, sft_span key, sft_span value, sfti_arena *arena) {
    const cli_moves *moves = &unit->moves;
    if (cli_is(key, "file_name") && sft_span_equal(value, unit->unit.stem))
        return stem_of_path(unit, moves->items[0].to);
    if (!cli_is(key, "file_path") && !cli_is(key, "preview_url")) return (sft_span){ NULL, 0 };
    for (size_t i = 0; i < moves->count; i++)
        if (same_path(value, moves->items[i].from))
            return spelled_path(arena, moves->items[i].to, value);
    return (sft_span){ NULL, 0 };
}

static bool put_edit(sfti_arena *arena, cli_move *move, size_t *cap, const cli_move_edit *edit) {
    cli_move_edit *edits = sfti_arena_grow(arena, move->edits, move->edit_count, 1, cap,
                                           sizeof *edits);
    if (!edits) return false;
    edits[move->edit_count++] = *edit;
    move->edits = edits;
    return true;
}

/* The edits of a JSON sidecar that a manager of models keeps (LoRA Manager: file_path, file_name,
 * preview_url). What is no JSON object moves as it is. */
static bool plan_edits(mv_plan *plan, const mv_unit *unit, cli_move *move) {
    sft_buffer bytes;
    sft_error ignored = SFT_ERROR_INIT;
    sfti_json json;
    size_t cap = 0;
    bool fine = true;
    sft_code code = cli_read_file(plan->c, move->from, CLI_MOVE_TEXT_MOST, &bytes, &ignored);
    sft_span text = { code ? "" : bytes.data, code ? 0 : bytes.len };
    size_t mark = text.len > 3 && memcmp(text.data, "\xEF\xBB\xBF", 3) == 0 ? 3 : 0;
    if (text.len == mark || !sfti_utf8_check(text.data, text.len)) {
        sft_buffer_free(&bytes);
        return code != SFT_OUT_OF_MEMORY;
    }
    sfti_json_begin(&json, text.data + mark, text.len - mark);
    bool is_object = sfti_json_next(&json) == SFTI_JSON_OBJECT;
    while (fine && is_object && sfti_json_next(&json) == SFTI_JSON_KEY) {
        sft_span key = sfti_json_string(&json, &plan->arena);
        sfti_json_type type = sfti_json_next(&json);
        size_t begin = json.start;
        if (type == SFTI_JSON_ERROR) break;
        if (type != SFTI_JSON_STRING) {
            (void)sfti_json_skip(&json);
            continue;
        }
        sft_span value = sfti_json_string(&json, &plan->arena);
        fine = key.data && value.data;
        sft_span after = fine ? new_value(unit, key, value, &plan->arena) : value;
        if (!fine || !after.data || !sfti_utf8_check(after.data, after.len)) continue;
        uint64_t len = sfti_spell(after, NULL);
        char *spelled = sfti_arena_take(&plan->arena, (size_t)len + 1);
        char *was = sfti_arena_copy(&plan->arena, text.data + mark + begin, json.text.len + 2);
        fine = spelled && was;
        if (fine) (void)sfti_spell(after, spelled);
        fine = fine && put_edit(&plan->arena, move, &cap,
                                &(cli_move_edit){ mark + begin, { was, json.text.len + 2 },
                                                  { spelled, (size_t)len } });
    }
    if (json.type == SFTI_JSON_ERROR) move->edit_count = 0;
    sft_buffer_free(&bytes);
    return fine;
}

/* ── Where the files of a unit go ── */

/* A unit of one model file takes the name of `to`; the files of one that has several keep theirs,
 * in the folder that `to` is, or with the same name lies in. n: 1, or the number of the name. */
static sft_code plan_targets(mv_plan *plan, mv_unit *unit, uint32_t n, const char **blame,
                             sft_error *err) {
    const cli_unit *from = &unit->unit;
    cli_moves *moves = &unit->moves;
    sft_span to = sft_span_cstr(unit->to), name = cli_name_of(unit->to), rest;
    size_t own = 0, folder = sfti_folder_len(from->path);
    char number[16] = "";
    while (own < from->count && from->items[own].is_model) own++;
    if (n > 1) snprintf(number, sizeof number, " (%u)", (unsigned)n);
    if (own > 1 && sft_span_equal(name, from->stem) && n == 1)
        to = sfti_path_above(to); /* among others there */
    moves->count = 0;
    if (!moves->items)
        moves->items = sfti_arena_array(&plan->arena, from->count, sizeof *moves->items);
    if (!moves->items) return sfti_fail_memory(err, from->count);
    for (size_t i = 0; i < from->count; i++) {
        const char *path = from->items[i].path, *place = *number ? number : "";
        int error;
        os_info info;
        *blame = path;
        char *absolute = mv_absolute(&plan->arena, path, &error);
        if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "find the folder");
        error = sfti_os_info_path(path, false, &info);
        if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
        if (info.kind == OS_LINK)
            return sfti_fail(err, SFT_IS_LINK, "expected a file, found a symbolic link: move what "
                                               "it leads to");
        if (own > 1)
            rest = sfti_path_below(sft_span_cstr(path), (sft_span){ path, folder }, &rest)
                     ? rest : cli_name_of(path);
        else if (from->is_folder) rest = (sft_span){ "", 0 };
        else rest = (sft_span){ cli_name_of(path).data + from->stem.len,
                                cli_name_of(path).len - from->stem.len };
        size_t size = to.len + strlen(place) + rest.len + 2;
        char *target = sfti_arena_take(&plan->arena, size);
        if (!absolute || !target) return sfti_fail_memory(err, size);
        snprintf(target, size, "%.*s%s%s%.*s", (int)to.len, to.data, place,
                 own > 1 ? "/" : "", (int)rest.len, rest.data);
        moves->items[moves->count++] = (cli_move){ .from = absolute, .to = target,
                                                   .is_folder = from->is_folder };
    }
    return SFT_OK;
}

/* Whether all of its targets are free; then they are taken. */
static bool take_all(taken *all, const cli_moves *moves, const cli_move **in_the_way,
                     const char **why) {
    uint32_t count = all->count;
    for (size_t i = 0; i < moves->count; i++) {
        *in_the_way = &moves->items[i];
        all->paths[count] = folded_path(&all->plan->arena, moves->items[i].to);
        if (!all->paths[count].data) return false;
        if (!is_free(all, &moves->items[i], all->paths[count], why)) return false;
        count++;
    }
    for (; all->count < count; all->count++)
        (void)sfti_names_add(&all->names, all->paths[all->count], all->count);
    return true;
}

sft_code mv_plan_end(mv_plan *plan, size_t *refused, const char **blame, sft_error *err) {
    taken all;
    sft_code code = taken_begin(&all, plan, err);
    for (size_t u = 0; !code && u < plan->count; u++) {
        mv_unit *unit = &plan->units[u];
        const cli_move *in_the_way = NULL;
        const char *why = NULL;
        unit->moves.path = unit->unit.path;
        code = plan_targets(plan, unit, 1, blame, err);
        if (code == SFT_IS_LINK || (code && code != SFT_OUT_OF_MEMORY)) {
            cli_complain(plan->c, *blame, err);
            *err = (sft_error)SFT_ERROR_INIT;
            code = SFT_OK;
            unit->moves.count = 0;
            ++*refused;
            continue;
        }
        if (!code && strcmp(unit->moves.items[0].from, unit->moves.items[0].to) == 0) {
            unit->moves.count = 0; /* it is there */
            continue;
        }
        bool fits = !code && take_all(&all, &unit->moves, &in_the_way, &why);
        for (uint32_t n = 2; !code && !fits && plan->c->set.number && n <= NUMBER_MOST; n++) {
            code = plan_targets(plan, unit, n, blame, err);
            fits = !code && take_all(&all, &unit->moves, &in_the_way, &why);
        }
        if (!code && !fits) {
            (void)sfti_fail(err, SFT_EXISTS, "%s: %s is to go there", why, unit->unit.path);
            cli_complain(plan->c, in_the_way->to, err);
            *err = (sft_error)SFT_ERROR_INIT;
            unit->moves.count = 0;
            ++*refused;
        }
        for (size_t i = 0; !code && i < unit->moves.count; i++)
            if (unit->unit.items[i].is_json && !plan_edits(plan, unit, &unit->moves.items[i]))
                code = sfti_fail_memory(err, CLI_MOVE_TEXT_MOST);
    }
    return code;
}
