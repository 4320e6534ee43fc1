/* Which files of which models go where, and whether they may. Tests: tests/cli/mv. */
#include "commands/mv/mv.h"

#include "base/order.h"
#include "keys/adapter_told.h"
#include "os/io.h"
#include "support/adapters.h"
#include "support/beside.h"
#include "support/files.h"
#include "support/hints.h"
#include "support/words.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define REAL_SIZE 4096

bool mv_plan_add(mv_plan *plan, const cli_unit *unit, const char *to, const char *to_folder) {
    mv_unit *units = sfti_arena_grow(&plan->arena, plan->units, plan->count, 1, &plan->capacity,
                                     sizeof *units);
    if (!units) return false;
    plan->units = units;
    units[plan->count++] = (mv_unit){ .unit = *unit, .to = to, .to_folder = to_folder };
    return true;
}

/* ── What is taken ── */

/* Targets, letters of either case alike: systems differ in whether they are; and what moves there,
 * by the places that it comes from. */
typedef struct taken {
    mv_plan *plan;
    sft_span *targets;
    cli_move **moves; /* of the targets */
    uint32_t count, most;
    sfti_names by_target, by_origin;
    sft_span *bases; /* targets before they had a number */
    uint32_t *nexts; /* of each base the first number whose target may be free */
    uint32_t base_count;
    sfti_names by_base;
    int error; /* of the system, which does not say whether the last place is free, or ENOMEM */
} taken;

static sft_span target_at(const void *ctx, uint32_t entry) {
    return ((const taken *)ctx)->targets[entry];
}

static sft_span base_at(const void *ctx, uint32_t entry) {
    return ((const taken *)ctx)->bases[entry];
}

static sft_span origin_at(const void *ctx, uint32_t entry) {
    return sft_span_cstr(((const taken *)ctx)->moves[entry]->from);
}

static sft_span folded_path(taken *all, const char *path) {
    size_t len = strlen(path);
    char *copy = sfti_arena_copy(&all->plan->arena, path, len);
    if (!copy) all->error = ENOMEM;
    for (size_t i = 0; copy && i < len; i++) copy[i] = cli_lower(copy[i]);
    return (sft_span){ copy, len };
}

static sft_code taken_begin(taken *all, mv_plan *plan, sft_error *err) {
    uint64_t seed[2], most = 0;
    sfti_arena *arena = &plan->arena;
    for (size_t i = 0; i < plan->count; i++) most += plan->units[i].unit.count + 1;
    if (most < UINT32_MAX) {
        *all = (taken){ .plan = plan, .targets = sfti_arena_array(arena, most, sizeof(sft_span)),
                        .moves = sfti_arena_array(arena, most, sizeof(cli_move *)),
                        .bases = sfti_arena_array(arena, plan->count, sizeof(sft_span)),
                        .nexts = sfti_arena_array(arena, plan->count, sizeof(uint32_t)),
                        .most = (uint32_t)most };
        sfti_seed_draw(all, seed);
        if (all->targets && all->moves && all->bases && all->nexts
            && sfti_names_begin(&all->by_base, plan->count, seed, base_at, all, arena)
            && sfti_names_begin(&all->by_target, (size_t)most, seed, target_at, all, arena)
            && sfti_names_begin(&all->by_origin, (size_t)most, seed, origin_at, all, arena))
            return SFT_OK;
    }
    return sfti_fail_memory(err, most);
}

static const char too_long[] = "expected a name that the file system takes, found a longer one";
static const char inside[] = "expected a place outside of the folder that moves, found one in it";

/* Whether a move's target is free. A file may change the case of its own name; and where two
 * models have a sidecar together, it may go there with either. */
static bool is_free(taken *all, const cli_move *move, sft_span folded, const char **why) {
    os_info there;
    sft_span rest;
    *why = inside;
    all->error = 0;
    if (move->is_folder
        && sfti_path_below(sft_span_cstr(move->to), sft_span_cstr(move->from), &rest))
        return false;
    *why = "already exists";
    uint32_t other = sfti_names_find(&all->by_target, folded);
    if (other != SFTI_NO_NAME) {
        *why = "expected a place of its own, found another model of this run in it";
        return strcmp(all->moves[other]->from, move->from) == 0;
    }
    int error = sfti_os_info_path(move->to, false, &there);
    if (error == ENOENT || error == ENOTDIR) return true;
    if (error == ENAMETOOLONG) *why = too_long;
    else all->error = error;
    return !error && all->plan->how == CLI_MOVE && cli_is_one_name(move->from, move->to);
}

/* Whether all targets are free; then they are taken. What another model takes there already is no
 * move of this one's; what it takes elsewhere stays for this one. */
static bool take_all(taken *all, cli_moves *moves, const cli_move **in_the_way,
                     const char **why) {
    size_t kept = 0;
    for (size_t i = 0; i < moves->count; i++) {
        *in_the_way = &moves->items[i];
        sft_span folded = folded_path(all, moves->items[i].to);
        if (!folded.data || !is_free(all, &moves->items[i], folded, why)) return false;
    }
    for (size_t i = 0; i < moves->count && all->count < all->most; i++) {
        sft_span folded = folded_path(all, moves->items[i].to);
        if (!folded.data) return false;
        if (sfti_names_find(&all->by_target, folded) != SFTI_NO_NAME) continue;
        uint32_t other = sfti_names_find(&all->by_origin, sft_span_cstr(moves->items[i].from));
        if (other != SFTI_NO_NAME) all->moves[other]->stays = true;
        cli_move *move = &moves->items[kept++];
        *move = moves->items[i];
        all->targets[all->count] = folded;
        all->moves[all->count] = move;
        (void)sfti_names_add(&all->by_target, folded, all->count);
        if (other != SFTI_NO_NAME)
            sfti_names_replace(&all->by_origin, sft_span_cstr(move->from), all->count);
        else (void)sfti_names_add(&all->by_origin, sft_span_cstr(move->from), all->count);
        all->count++;
    }
    moves->count = kept;
    return true;
}

/* What stays where it is takes its own places, and moves nothing there. */
static sft_code take_own(taken *all, cli_moves *moves, sft_error *err) {
    for (size_t i = 0; i < moves->count && all->count < all->most; i++) {
        sft_span folded = folded_path(all, moves->items[i].to);
        if (!folded.data) return sfti_fail_memory(err, 1);
        if (sfti_names_find(&all->by_target, folded) != SFTI_NO_NAME) continue;
        all->targets[all->count] = folded;
        all->moves[all->count] = &moves->items[i];
        (void)sfti_names_add(&all->by_target, folded, all->count++);
    }
    moves->count = 0;
    return SFT_OK;
}

static bool index_stays(void *ctx, const char *index) {
    taken *all = ctx;
    int error;
    const char *path = cli_absolute(&all->plan->arena, index, &error);
    if (!path && !error) all->error = ENOMEM;
    return !path || sfti_names_find(&all->by_origin, sft_span_cstr(path)) == SFTI_NO_NAME;
}

/* Sidecars that a model which does not move has as well (NAME.ckpt beside NAME.safetensors) are
 * copied, and so are shards that an index which stays names: nobody loses them. False when out of
 * memory. */
static bool keep_shared(taken *all, mv_unit *unit) {
    cli_moves *moves = &unit->moves;
    char path[REAL_SIZE];
    os_info info;
    bool shared = false;
    if (moves->count < 2 || unit->unit.is_folder) return true;
    int folder = (int)sfti_folder_len(moves->items[0].from);
    for (size_t i = 0; cli_model_ends[i] && !shared; i++) {
        int len = snprintf(path, sizeof path, "%.*s%.*s%s", folder, moves->items[0].from,
                           (int)unit->unit.stem.len, unit->unit.stem.data, cli_model_ends[i]);
        shared = len > 0 && (size_t)len < sizeof path && !sfti_os_info_path(path, true, &info)
              && sfti_names_find(&all->by_origin, sft_span_cstr(path)) == SFTI_NO_NAME;
    }
    all->error = 0;
    if (!cli_unit_find_shared(all->plan->c, &unit->unit, index_stays, all) || all->error)
        return false;
    /* Moves are those of the items, in their order, without some. */
    for (size_t i = 0, k = 0; i < moves->count && k < unit->unit.count; k++) {
        const cli_companion *item = &unit->unit.items[k];
        if (!sft_span_equal(cli_name_of(item->path), cli_name_of(moves->items[i].from))) continue;
        moves->items[i++].stays |= item->is_model ? item->is_shared : shared;
    }
    return true;
}

/* ── Configurations of adapters ── */

static void refuse(mv_plan *plan, mv_unit *unit, const char *blame, size_t *refused,
                   sft_error *err) {
    cli_fail_input(plan->c, blame, err);
    *err = (sft_error)SFT_ERROR_INIT;
    unit->moves.count = 0;
    ++*refused;
}

typedef struct adapter_walk {
    mv_plan *plan;
    const char *folder;
    const taken *moved; /* those do not count; or NULL */
    bool found;
} adapter_walk;

static int find_adapter(void *ctx, const char *name, os_kind kind) {
    adapter_walk *walk = ctx;
    if (kind == OS_DIR || !cli_is_adapter_model(name)) return 0;
    char *path = cli_join_path(&walk->plan->arena, sft_span_cstr(walk->folder), name);
    if (!path) return ENOMEM;
    bool moves = walk->moved && sfti_names_find(&walk->moved->by_origin, sft_span_cstr(path))
                                    != SFTI_NO_NAME;
    for (size_t i = 0; cli_model_ends[i] && !moves; i++)
        walk->found |= cli_ends_with(sft_span_cstr(name), cli_model_ends[i]);
    return 0;
}

/* Whether the folder of a path has a file that adapter_config.json beside it is of. */
static sft_code has_adapter(mv_plan *plan, const char *path, const taken *moved, bool *out,
                            sft_error *err) {
    sft_span folder = cli_folder_of(path);
    adapter_walk walk = { plan, sfti_arena_copy(&plan->arena, folder.data, folder.len), moved,
                          false };
    int error = walk.folder ? sfti_os_list(walk.folder, find_adapter, &walk) : ENOMEM;
    *out = walk.found;
    if (error == ENOMEM) return sfti_fail_memory(err, folder.len);
    return error && error != ENOENT ? sfti_io_fail(err, SFT_IO_OPEN, error, "list the folder")
                                    : SFT_OK;
}

static sft_code fail_config(sft_error *err) {
    return cli_fail_hint(err, SFT_BAD_ARGUMENT, SFT_HINT_NONE,
                         "expected a name and a folder in which " CLI_ADAPTER_CONFIG " tells of "
                         "this adapter what it did, found others: move its whole folder, or this "
                         "file under its name into a folder of its own");
}

/* adapter_config.json tells the alpha of the adapter_model beside it, and goes with that. What
 * stays where it is, and what would be read in the same way, loses nothing. */
static sft_code take_config(mv_plan *plan, mv_unit *unit, const char **blame, sft_error *err) {
    cli_moves *moves = &unit->moves;
    const char *from = moves->items[0].from, *to = moves->items[0].to;
    bool was = cli_is_adapter_model(from), is = cli_is_adapter_model(to), others = false;
    sft_buffer own = { .alloc = plan->c->alloc }, there = { .alloc = plan->c->alloc };
    os_info old, new;
    unit->left = false;
    bool one_folder = sft_span_equal(cli_folder_of(from), cli_folder_of(to));
    if ((!was && !is) || (was && is && one_folder)) return SFT_OK;
    char *config = cli_join_path(&plan->arena, cli_folder_of(from), CLI_ADAPTER_CONFIG);
    char *target = cli_join_path(&plan->arena, cli_folder_of(to), CLI_ADAPTER_CONFIG);
    if (!config || !target) return sfti_fail_memory(err, strlen(to));
    bool has = was && !sfti_os_info_path(config, false, &old);
    bool gets = is && !sfti_os_info_path(target, true, &new);
    *blame = from;
    sft_code code = has ? cli_read_adapter_config(plan->c, from, &own, err) : SFT_OK;
    if (!code && gets) code = cli_read_adapter_config(plan->c, to, &there, err);
    sfti_adapter_told told = sfti_adapter_told_of(cli_read_text(&own));
    bool counts = sfti_adapter_told_of(cli_read_text(&there)).counts;
    bool same = sfti_adapter_told_alike(cli_read_text(&own), cli_read_text(&there));
    sft_buffer_free(&own);
    sft_buffer_free(&there);
    if (!code && has && is && !gets) code = has_adapter(plan, to, NULL, &others, err);
    if (code || (has == gets && same)) return code;
    if (gets && !has && !counts) return SFT_OK;
    bool follows = has && is && !gets && !others, stays = plan->how != CLI_MOVE;
    if (follows && old.kind == OS_FILE) {
        moves->items[moves->count++] = (cli_move){ .from = config, .to = target };
        return SFT_OK;
    }
    if (has && !gets && (stays || !told.counts)) {
        unit->left = told.alpha;
        return SFT_OK;
    }
    if (!follows) return fail_config(err);
    *blame = config;
    return cli_fail_hint(err, SFT_IS_LINK, SFT_HINT_NONE, "expected a file that goes with the "
                         "adapter, found a symbolic link: move its whole folder");
}

/* When all is taken: a configuration of what stays, too, is copied, and no other arrives. */
static sft_code settle_config(taken *all, mv_unit *unit, size_t *refused, sft_error *err) {
    mv_plan *plan = all->plan;
    cli_moves *moves = &unit->moves;
    if (moves->count == 0 || unit->unit.is_folder) return SFT_OK;
    cli_move *first = moves->items, *last = &moves->items[moves->count - 1];
    if (cli_is(cli_name_of(last->from), CLI_ADAPTER_CONFIG)) {
        bool others = false;
        sft_code code = has_adapter(plan, last->from, all, &others, err);
        last->stays |= others;
        return code;
    }
    if (!cli_is_adapter_model(first->to)) return SFT_OK;
    char *config = cli_join_path(&plan->arena, cli_folder_of(first->from), CLI_ADAPTER_CONFIG);
    char *target = cli_join_path(&plan->arena, cli_folder_of(first->to), CLI_ADAPTER_CONFIG);
    sft_span folded = config && target ? folded_path(all, target) : (sft_span){ NULL, 0 };
    if (!folded.data) return sfti_fail_memory(err, strlen(first->to));
    uint32_t comes = sfti_names_find(&all->by_target, folded);
    uint32_t goes = sfti_names_find(&all->by_origin, sft_span_cstr(target));
    if (goes != SFTI_NO_NAME) all->moves[goes]->stays = true;
    if (comes == SFTI_NO_NAME || strcmp(all->moves[comes]->from, config) == 0) return SFT_OK;
    (void)fail_config(err);
    refuse(plan, unit, unit->unit.path, refused, err);
    return SFT_OK;
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
        moves->items = sfti_arena_array(&plan->arena, (uint64_t)from->count + 1,
                                        sizeof *moves->items);
    if (!moves->items) return sfti_fail_memory(err, from->count);
    for (size_t i = 0; i < from->count; i++) {
        const char *path = from->items[i].path, *place = *number ? number : "";
        int error;
        os_info info;
        *blame = path;
        char *absolute = cli_absolute(&plan->arena, path, &error);
        if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "find the folder");
        error = sfti_os_info_path(path, false, &info);
        if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
        if (info.kind == OS_LINK)
            return cli_fail_hint(err, SFT_IS_LINK, SFT_HINT_NONE,
                                 "expected a file, found a symbolic link: move what it leads to");
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
    if (from->is_folder) return SFT_OK;
    *blame = from->path;
    plan->c->beside.bare = NULL;
    sft_code code = cli_check_moved_quantiser(plan->c, from->path, moves->items[0].to, err);
    unit->bare = plan->c->beside.bare && plan->how == CLI_MOVE;
    return code ? code : take_config(plan, unit, blame, err);
}

/* ── Folders ── */

/* Names of files that tell nothing: such a model is called as its folder is. */
static bool is_generic(sft_span stem) {
    static const char *const names[] = { "model", "pytorch_model", "adapter_model",
                                         "diffusion_pytorch_model", "adapter" };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (cli_is(stem, names[i])) return true;
    return false;
}

/* A model of several files, or of a generic name, moves with the folder that it alone fills: what
 * speaks of it there (config.json, tokenizer) is its own. The folder that was searched stays. */
static bool fill_folders(mv_plan *plan) {
    for (size_t u = 0; u < plan->count; u++) {
        mv_unit *unit = &plan->units[u];
        size_t own = 0, models = 0;
        sft_span folder = sfti_path_above(sft_span_cstr(unit->unit.path)), rest;
        while (own < unit->unit.count && unit->unit.items[own].is_model) own++;
        if (!unit->to_folder || folder.len == 0 || (own < 2 && !is_generic(unit->unit.stem)))
            continue;
        for (size_t i = 0; i < plan->count && models < 2; i++)
            models += sfti_path_below(sft_span_cstr(plan->units[i].unit.path), folder, &rest);
        for (size_t i = 0; i < plan->other_count && models < 2; i++)
            models += sfti_path_below(sft_span_cstr(plan->others[i]), folder, &rest);
        if (models != 1) continue;
        cli_companion *item = sfti_arena_take(&plan->arena, sizeof *item);
        char *path = sfti_arena_copy(&plan->arena, folder.data, folder.len);
        if (!item || !path) return false;
        *item = (cli_companion){ .path = path, .is_model = true };
        unit->unit = (cli_unit){ .path = path, .is_folder = true, .items = item, .count = 1 };
        unit->to = unit->to_folder;
    }
    return true;
}

typedef struct folder_walk {
    mv_plan *plan;
    cli_moves *moves;
    const char *from, *to; /* the folder at hand */
    const char **todo[2];  /* folders to come: from, to */
    size_t count, caps[2];
    const char *refused; /* what is neither file nor folder */
} folder_walk;

static int take_entry(void *ctx, const char *name, os_kind kind) {
    folder_walk *walk = ctx;
    sfti_arena *arena = &walk->plan->arena;
    char *from = cli_join_path(arena, sft_span_cstr(walk->from), name);
    char *to = cli_join_path(arena, sft_span_cstr(walk->to), name);
    if (!from || !to) return ENOMEM;
    if (kind == OS_DIR) {
        for (int i = 0; i < 2; i++) {
            const char **grown = sfti_arena_grow(arena, walk->todo[i], walk->count, 1,
                                                 &walk->caps[i], sizeof *grown);
            if (!grown) return ENOMEM;
            walk->todo[i] = grown;
            grown[walk->count] = i ? to : from;
        }
        walk->count++;
        return 0;
    }
    if (kind != OS_FILE) {
        walk->refused = from;
        return EINVAL;
    }
    cli_move *items = sfti_arena_grow(arena, walk->moves->items, walk->moves->count, 1,
                                      &walk->moves->capacity, sizeof *items);
    if (!items) return ENOMEM;
    walk->moves->items = items;
    items[walk->moves->count++] = (cli_move){ .from = from, .to = to };
    return 0;
}

/* A folder that cannot be renamed to its new place: file by file. */
static sft_code spread_folder(mv_plan *plan, cli_moves *moves, const char **blame,
                              sft_error *err) {
    const cli_move whole = moves->items[0];
    folder_walk walk = { .plan = plan, .moves = moves };
    int error = 0;
    moves->items = NULL;
    moves->count = moves->capacity = 0;
    walk.from = whole.from;
    walk.to = whole.to;
    for (;;) {
        const char **emptied = sfti_arena_grow(&plan->arena, moves->emptied, moves->emptied_count,
                                               1, &moves->emptied_cap, sizeof *emptied);
        if (!emptied) return sfti_fail_memory(err, 1);
        moves->emptied = emptied;
        emptied[moves->emptied_count++] = walk.from;
        error = sfti_os_list(walk.from, take_entry, &walk);
        if (error || walk.count == 0) break;
        walk.count--;
        walk.from = walk.todo[0][walk.count];
        walk.to = walk.todo[1][walk.count];
    }
    for (size_t i = 0, n = moves->emptied_count; i < n / 2; i++) {
        const char *other = moves->emptied[i];
        moves->emptied[i] = moves->emptied[n - 1 - i];
        moves->emptied[n - 1 - i] = other;
    }
    *blame = walk.refused ? walk.refused : walk.from;
    if (walk.refused)
        return sfti_fail(err, SFT_IO_NOT_FILE, "expected files and folders in a folder that is "
                                               "copied, found something else");
    return error ? sfti_io_fail(err, SFT_IO_OPEN, error, "list the folder") : SFT_OK;
}

/* Whether a rename leads there: the folder above it that is there is on the same file system. */
static bool on_one_device(sfti_arena *arena, const char *from, const char *to) {
    os_info a, b;
    char *path = sfti_arena_copy(arena, to, strlen(to));
    int error = path ? ENOENT : ENOMEM;
    while (error == ENOENT && path[0]) {
        size_t above = sfti_path_above(sft_span_cstr(path)).len;
        if (above == strlen(path)) break;
        path[above] = '\0';
        error = sfti_os_info_path(path, true, &b);
    }
    return !error && !sfti_os_info_path(from, false, &a) && a.device == b.device;
}

static bool is_there(const mv_unit *unit) {
    return unit->moves.count > 0
        && strcmp(unit->moves.items[0].from, unit->moves.items[0].to) == 0;
}

/* Whether a place is taken for all: by a model that has its place, or what is none of this run. */
static bool stays(taken *all, const char *path) {
    const mv_plan *plan = all->plan;
    sft_span folded = folded_path(all, path);
    if (!folded.data || sfti_names_find(&all->by_target, folded) != SFTI_NO_NAME) return true;
    size_t u = 0;
    while (u < plan->count
           && (plan->units[u].moves.count == 0
               || !cli_same_letters(sft_span_cstr(plan->units[u].moves.items[0].from), folded)))
        u++;
    return u == plan->count;
}

/* NULL: no memory. */
static uint32_t *next_of(taken *all, const char *base) {
    sft_span folded = folded_path(all, base);
    if (!folded.data) return NULL;
    uint32_t entry = sfti_names_find(&all->by_base, folded);
    if (entry != SFTI_NO_NAME) return &all->nexts[entry];
    all->bases[all->base_count] = folded;
    all->nexts[all->base_count] = 2;
    (void)sfti_names_add(&all->by_base, folded, all->base_count);
    return &all->nexts[all->base_count++];
}

/* A place for a unit that does not stay: the one that it is to have, or a numbered one. */
static sft_code find_place(taken *all, mv_unit *unit, size_t *refused, const char **blame,
                           sft_error *err) {
    mv_plan *plan = all->plan;
    const cli_move *in_the_way = NULL;
    const char *why = NULL;
    uint32_t *next = plan->c->set.number ? next_of(all, unit->moves.items[0].to) : NULL;
    if (plan->c->set.number && !next) return sfti_fail_memory(err, 1);
    bool fits = take_all(all, &unit->moves, &in_the_way, &why);
    for (uint32_t n = next ? *next : 2; !fits && !all->error && next && n <= MV_NUMBER_MOST; n++) {
        if (cli_is_over(plan->c)) return sfti_fail_cancelled(err);
        sft_code code = plan_targets(plan, unit, n, blame, err);
        if (code == SFT_OUT_OF_MEMORY) return code;
        if (code) {
            refuse(plan, unit, *blame, refused, err);
            return SFT_OK;
        }
        if (is_there(unit)) return take_own(all, &unit->moves, err);
        fits = take_all(all, &unit->moves, &in_the_way, &why);
        bool passed = fits || (in_the_way == unit->moves.items && stays(all, in_the_way->to));
        if (*next == n && passed) *next = n + 1;
    }
    if (fits) return SFT_OK;
    if (all->error == ENOMEM) return sfti_fail_memory(err, 1);
    if (all->error) (void)sfti_io_fail(err, SFT_IO_PUBLISH, all->error, "check whether it exists");
    else (void)sfti_fail(err, SFT_EXISTS, "%s: %s is to go there", why, unit->unit.path);
    bool may_number = !all->error && !plan->c->set.number && why != too_long && why != inside;
    cli_hint(err, may_number ? CLI_HINT_NUMBERED : SFT_HINT_NONE);
    refuse(plan, unit, in_the_way->to, refused, err);
    return SFT_OK;
}

static int compare_numbers(const void *ctx, uint32_t a, uint32_t b) {
    const mv_unit *units = ctx;
    uint64_t x = mv_number_of(&units[a]), y = mv_number_of(&units[b]);
    return x < y ? -1 : x > y;
}

sft_code mv_plan_end(mv_plan *plan, size_t *refused, const char **blame, sft_error *err) {
    taken all;
    sft_code code = fill_folders(plan) ? taken_begin(&all, plan, err) : sfti_fail_memory(err, 1);
    for (size_t u = 0; !code && u < plan->count; u++) { /* those that stay first */
        mv_unit *unit = &plan->units[u];
        unit->moves.path = unit->unit.path;
        code = cli_is_over(plan->c) ? sfti_fail_cancelled(err)
                                    : plan_targets(plan, unit, 1, blame, err);
        if (code && code != SFT_OUT_OF_MEMORY && code != SFT_CANCELLED) {
            refuse(plan, unit, *blame, refused, err);
            code = SFT_OK;
        } else if (!code && is_there(unit)) {
            code = take_own(&all, &unit->moves, err);
        }
    }
    uint32_t *order = sfti_arena_sorted(&plan->arena, plan->count, compare_numbers, plan->units);
    if (!code && !order) code = sfti_fail_memory(err, plan->count);
    for (size_t u = 0; !code && u < plan->count; u++) { /* lower numbers are taken first */
        mv_unit *unit = &plan->units[order[u]];
        if (unit->moves.count > 0) code = find_place(&all, unit, refused, blame, err);
        for (size_t i = 0; !code && i < unit->moves.count; i++)
            if (i > 0 && !unit->unit.is_folder
                && !cli_follow(plan->c, &plan->arena, unit->unit.stem, unit->moves.items,
                               &unit->moves, &unit->moves.items[i]))
                code = sfti_fail_memory(err, CLI_MOVE_TEXT_MOST);
        if (unit->moves.count > 0 && unit->unit.is_folder) unit->to = unit->moves.items[0].to;
        if (!code && unit->moves.count == 1 && unit->unit.is_folder
            && (plan->how != CLI_MOVE
                || !on_one_device(&plan->arena, unit->moves.items[0].from,
                                  unit->moves.items[0].to)))
            code = spread_folder(plan, &unit->moves, blame, err);
    }
    for (size_t u = 0; !code && plan->how == CLI_MOVE && u < plan->count; u++)
        if (!keep_shared(&all, &plan->units[u])) code = sfti_fail_memory(err, 1);
    for (size_t u = 0; !code && u < plan->count; u++)
        code = settle_config(&all, &plan->units[u], refused, err);
    return code;
}
