/* A model with an index written back to where it is: new shards beside the old ones, then the
 * index; and new folders. Tests: tests/cli/add, tests/cli/select, tests/cli/rename. */
#include "support/fresh.h"

#include "base/number.h"
#include "bytes/hold.h"
#include "keys/digest_keys.h"
#include "os/io.h"
#include "set/index_edit.h"
#include "support/files.h"
#include "support/guard.h"
#include "support/hints.h"
#include "support/indexes.h"
#include "support/output.h"
#include "safetensors_index.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

typedef struct fresh_folder {
    struct fresh_folder *before;
    char path[];
} fresh_folder;

/* The index's folder, with its slash. */
static sft_span fresh_folder_of(const cli_fresh *fresh) {
    return (sft_span){ fresh->index, sfti_folder_len(fresh->index) };
}

sft_code cli_fresh_begin(cli_fresh *fresh, cli *c, const char *index, size_t most,
                         sft_error *err) {
    memset(fresh, 0, sizeof *fresh);
    fresh->c = c;
    fresh->index = index;
    fresh->arena.alloc = c->alloc;
    fresh->most = most;
    fresh->folder = cli_join_path(&fresh->arena, fresh_folder_of(fresh), "");
    fresh->names = sfti_arena_array(&fresh->arena, most, sizeof *fresh->names);
    fresh->written = sfti_arena_array(&fresh->arena, most, sizeof *fresh->written);
    if (fresh->folder && fresh->names && fresh->written) return SFT_OK;
    return sfti_fail_memory(err, most * sizeof *fresh->names);
}

sft_code cli_fresh_own_index(const char *index, sft_error *err) {
    char real[4096], beside[4096], folder[4096];
    os_info info;
    if (sfti_os_info_path(index, false, &info) || info.kind != OS_LINK) return SFT_OK;
    if (!sfti_folder_copy(index, beside, sizeof beside)) return SFT_OK;
    int error = sfti_os_real_path(index, real, sizeof real);
    if (!error) error = sfti_os_real_path(beside, folder, sizeof folder);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "follow the symbolic link");
    size_t where = sfti_folder_len(real);
    if (where > 1) where--; /* its slash */
    if (strlen(folder) == where && memcmp(folder, real, where) == 0) return SFT_OK;
    return cli_fail_hint(err, SFT_IS_LINK, CLI_HINT_NEW_FOLDER, "expected an index in the folder "
                         "of its shards, found a symbolic link to %s", real);
}

static void fresh_let_go(cli_fresh *fresh) {
    if (fresh->holds) (void)sfti_os_close(fresh->held);
    fresh->holds = false;
}

void cli_fresh_end(cli_fresh *fresh) {
    fresh_let_go(fresh);
    sfti_arena_free(&fresh->arena);
}

/* ── Names ── */

const char *cli_fresh_name(const cli_fresh *fresh, const char *shard_path) {
    return shard_path + sfti_folder_len(fresh->index);
}

/* NAME-<8 hex>.safetensors; the digits of an earlier time are replaced. */
char *cli_fresh_next(cli_fresh *fresh, const char *name) {
    uint32_t bits;
    char tail[24];
    const char *dot = strrchr(name, '.'), *slash = strrchr(name, '/');
    size_t stem = dot && (!slash || dot > slash) ? (size_t)(dot - name) : strlen(name);
    if (sfti_os_random(&bits, sizeof bits)) return NULL;
    if (stem > 9 && name[stem - 9] == '-' && strspn(name + stem - 8, "0123456789abcdef") == 8)
        stem -= 9;
    tail[0] = '-';
    sfti_hex_text(bits, 8, tail + 1);
    memcpy(tail + 9, ".safetensors", 13);
    char *made = sfti_arena_join(&fresh->arena, (sft_span){ name, stem }, sft_span_cstr(tail));
    char *path = made ? cli_join_path(&fresh->arena, fresh_folder_of(fresh), made) : NULL;
    if (!path) return NULL;
    fresh->names[fresh->count++] = (sft_pair){ sft_span_cstr(name), sft_span_cstr(made) };
    return path;
}

static sft_code fresh_no_folder(int error, sft_error *err) {
    if (error != ELOOP && error != EXDEV)
        return sfti_io_fail(err, SFT_IO_OPEN, error, "open the folder of a shard");
    return cli_fail_hint(err, SFT_IS_LINK, SFT_HINT_LINK_NAMED,
                         "expected a folder for the shard, found a symbolic link in its path");
}

sft_code cli_fresh_check(cli_fresh *fresh, const char *path, const char **at, sft_error *err) {
    char above[4096], held[4096];
    const char *name = path + strlen(fresh->folder), *slash = strrchr(name, '/');
    size_t len = slash ? (size_t)(slash - name) : 0;
    *at = path;
    fresh_let_go(fresh);
    if (len == 0) return SFT_OK;
    if (len >= sizeof above) return fresh_no_folder(ENAMETOOLONG, err);
    memcpy(above, name, len);
    above[len] = '\0';
    int error = sfti_os_open_beneath(fresh->folder, above, OS_BENEATH_FOLDER, &fresh->held);
    fresh->holds = error == 0;
    if (error) return fresh_no_folder(error, err);
    if (sfti_os_path_in(fresh->held, slash + 1, held, sizeof held)) return SFT_OK;
    *at = cli_join_path(&fresh->arena, sft_span_cstr(""), held);
    return *at ? SFT_OK : sfti_fail_memory(err, strlen(held));
}

void cli_fresh_written(cli_fresh *fresh, char *path) {
    fresh->written[fresh->written_count++] = path;
}

sft_code cli_fresh_options(const cli_fresh *fresh, const char *old, sft_path_options *out,
                           sft_error *err) {
    const cli_settings *set = &fresh->c->set;
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    os_info info;
    int error = sfti_os_info_path(old, true, &info);
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "open");
    options.no_sync = set->no_sync != 0;
    options.in_place_unsafe = set->in_place_unsafe != 0;
    options.no_clobber = true;
    options.mode = info.mode & 0777;
    options.has_mtime = set->keep_mtime != 0;
    options.mtime_ns = info.mtime_ns;
    options.alloc = &fresh->c->alloc;
    *out = options;
    return SFT_OK;
}

/* ── What is no longer named ── */

/* Whether the index at the path names a shard; true also if it cannot be read. */
static bool index_has_shard(const cli_fresh *f, const char *shard) {
    sft_set_options options = cli_set_options(f->c);
    sft_error ignored = SFT_ERROR_INIT;
    sft_index *names = NULL;
    if (sft_index_open(f->index, &options, &names, &ignored)) return true;
    bool named = false;
    for (size_t i = 0; !named && i < sft_index_shard_count(names); i++)
        named = strcmp(sft_index_shard_at(names, i), shard) == 0;
    sft_index_close(names);
    return named;
}

/* The old shards, some of which other indexes of the folder name. */
typedef struct old_shards {
    cli_fresh *f;
    bool *is_named, *is_there;
    os_info *files;  /* what they lead to */
    char last[4096]; /* the path that a name was last looked for at */
} old_shards;

/* A name may lead to a shard by a link, of its own or of a folder in it. */
static bool mark_shards(void *ctx, const char *index, sft_span name) {
    old_shards *old = ctx;
    char path[sizeof old->last];
    os_info info;
    const cli_fresh *f = old->f;
    int len = name.len > sizeof path ? -1
            : snprintf(path, sizeof path, "%s%.*s", f->folder, (int)name.len, name.data);
    (void)index;
    if (len < 0 || (size_t)len >= sizeof path || strcmp(path, old->last) == 0) return true;
    memcpy(old->last, path, (size_t)len + 1);
    bool known = sfti_os_info_path(path, true, &info) == 0;
    for (size_t i = 0; i < f->count; i++)
        old->is_named[i] |= sft_span_equal(name, f->names[i].key)
                         || (known && old->is_there[i] && info.device == old->files[i].device
                             && info.inode == old->files[i].inode);
    return true;
}

static sft_code find_named(old_shards *old, sft_error *err) {
    cli_fresh *f = old->f;
    cli_indexes look = { .c = f->c, .folder = sft_span_cstr(f->folder), .strict = true,
                         .each = mark_shards, .ctx = old };
    old->is_named = sfti_arena_array(&f->arena, f->count, 1);
    old->is_there = sfti_arena_array(&f->arena, f->count, 1);
    old->files = sfti_arena_array(&f->arena, f->count, sizeof *old->files);
    if (!old->is_named || !old->is_there || !old->files) return sfti_fail_memory(err, f->count);
    for (size_t i = 0; i < f->count; i++) {
        const char *path = cli_join_path(&f->arena, fresh_folder_of(f), f->names[i].key.data);
        if (!path) return sfti_fail_memory(err, f->names[i].key.len);
        old->is_named[i] = false;
        old->is_there[i] = sfti_os_info_path(path, true, &old->files[i]) == 0;
    }
    return cli_indexes_each(&look, err);
}

static void remove_old_shards(cli_fresh *f) {
    old_shards old = { .f = f };
    sft_error found = SFT_ERROR_INIT;
    sft_code code = f->count ? find_named(&old, &found) : SFT_OK;
    for (size_t i = 0; i < f->count; i++) {
        const char *shard = f->names[i].key.data;
        sft_error err = found;
        if (!code && old.is_named[i]) continue;
        int error = code ? 0 : sfti_os_unlink_beneath(f->folder, shard);
        if (error) (void)sfti_io_fail(&err, SFT_IO_WRITE, error, "remove the old shard");
        if (code || error) cli_complain(f->c, shard, &err);
    }
}

sft_code cli_fresh_hold(const sft_set *set, size_t shard, sft_error *err) {
    sft_source source = sft_file_source(sft_set_shard_at(set, shard));
    return sfti_hold_source(&source, err);
}

void cli_fresh_undo(const cli_fresh *fresh) {
    for (size_t i = fresh->written_count; i-- > 0;) (void)sfti_os_unlink(fresh->written[i]);
    for (fresh_folder *f = fresh->made; f; f = f->before) (void)sfti_os_remove_folder(f->path);
}

void cli_fresh_settle(cli_fresh *fresh, sft_code code) {
    const char *after = NULL;
    if (!code) {
        cli_guard_forget(fresh->c); /* its lock would keep the replaced index where it is listed */
        remove_old_shards(fresh);
        return;
    }
    /* The new index may be there, only not synced: it may be the old one tomorrow, so that all
     * shards stay. */
    for (size_t i = 0; !after && i < fresh->count; i++) after = fresh->names[i].value.data;
    if (code != SFT_IO_SYNC || !after || !index_has_shard(fresh, after)) cli_fresh_undo(fresh);
}

/* ── A new folder ── */

sft_code cli_make_folder(const cli *c, const char *path, bool *made, sft_error *err) {
    int error = sfti_os_make_folder(path, 0777);
    *made = error == 0;
    if (error == EEXIST) return cli_check_folder(c, path, err);
    return error ? sfti_io_fail(err, SFT_IO_OPEN, error, "make the folder") : SFT_OK;
}

sft_code cli_settle_folder(const cli *c, const char *path, bool made, sft_error *err) {
    int error = made && !c->set.no_sync ? sfti_sync_parent(path) : 0;
    return error ? sfti_io_fail(err, SFT_IO_SYNC, error, "sync the folder") : SFT_OK;
}

sft_code cli_fresh_folders(cli_fresh *fresh, const char *folder, const char *name,
                           sft_error *err) {
    sft_code code = SFT_OK;
    const char *path = cli_join_path(&fresh->arena, sft_span_cstr(folder), name);
    if (!path) return sfti_fail_memory(err, strlen(name));
    const char *at = path + strlen(path) - strlen(name);
    for (const char *slash = strchr(at, '/'); !code && slash; slash = strchr(slash + 1, '/')) {
        size_t len = (size_t)(slash - path);
        fresh_folder *above = sfti_arena_take(&fresh->arena, sizeof *above + len + 1);
        if (!above) return sfti_fail_memory(err, len);
        memcpy(above->path, path, len);
        above->path[len] = '\0';
        int error = sfti_os_make_folder(above->path, 0777);
        if (error == EEXIST) continue;
        if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "create the folder of a shard");
        above->before = fresh->made;
        fresh->made = above;
        code = cli_settle_folder(fresh->c, above->path, true, err);
    }
    return code;
}

/* ── A model written back ── */

/* A model with an index whose tensors change. */
typedef struct set_rewrite {
    cli *c;
    const cli_parts *parts;
    const sft_set *set;
    const cli_rewrite *how;
    cli_fresh fresh;
    sft_part *some;   /* of the current shard */
    sft_pair *places; /* what changes in the index */
    size_t place_count;
    char **written;   /* by shard: its fresh path, or NULL */
    cli_progress progress;
} set_rewrite;

static uint64_t parts_bytes(const set_rewrite *r, bool all) {
    uint64_t total = 0;
    for (size_t i = 0; i < r->parts->count; i++)
        if (all || r->how->touched[r->parts->shard[i]])
            total += cli_spec_bytes(&r->parts->parts[i].spec);
    return total;
}

/* ── Shards ── */

/* Whether the pair is left out; asked in the order of files, *gone goes along. */
static bool goes_anyway(const set_rewrite *r, size_t shard, sft_span key, size_t *gone) {
    const cli_rewrite *how = r->how;
    while (*gone < how->gone_count && how->gone[*gone].shard < shard) ++*gone;
    bool goes = *gone < how->gone_count && how->gone[*gone].shard == shard
             && sft_span_equal(key, how->gone[*gone].old.key);
    *gone += goes;
    return goes;
}

/* The collected parts, with the shard's metadata. */
static sft_code save_collected(set_rewrite *r, size_t shard, size_t count, sft_sink sink,
                              const sft_job *job, sft_error *err) {
    const sft_file *file = sft_set_shard_at(r->set, shard);
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    sfti_kept_pairs kept;
    sft_code code = sfti_kept_pairs_of(file, SFTI_DIGESTS_OF_DATA, &r->fresh.arena, &kept, err);
    if (code) {
        sft_sink_abandon(&sink);
        return code;
    }
    size_t gone = 0, all = kept.count;
    kept.count = 0;
    for (size_t i = 0; i < all; i++) { /* both are in the file's order */
        if (!goes_anyway(r, shard, sfti_kept_pair(&kept, i).key, &gone))
            kept.at[kept.count++] = kept.at[i];
    }
    plan.has_metadata = sft_file_has_metadata(file);
    plan.level = (sft_level)r->c->set.level;
    plan.alloc = &r->c->alloc;
    plan.pair_at = sfti_kept_pair;
    plan.pair_ctx = &kept;
    return sft_save_parts(r->some, count, NULL, kept.count, &plan, sink, job, err);
}

/* Whether a shard that stays has the pair, too. */
static bool is_kept(const set_rewrite *r, const bool *stays, sft_pair pair) {
    sft_span value;
    for (size_t s = 0; s < sft_set_shard_count(r->set); s++)
        if (stays[s] && sft_file_metadata_get(sft_set_shard_at(r->set, s), pair.key, &value)
            && sft_span_equal(value, pair.value))
            return true;
    return false;
}

/* Metadata say of a whole model what they say: none may go with a shard. */
static sft_code check_metadata(set_rewrite *r, sft_error *err) {
    size_t shards = sft_set_shard_count(r->set);
    bool *stays = sfti_arena_array(&r->fresh.arena, shards, sizeof *stays);
    if (!stays) return sfti_fail_memory(err, shards);
    for (size_t s = 0; s < shards; s++) stays[s] = !r->how->touched[s];
    for (size_t i = 0; i < r->parts->count; i++) stays[r->parts->shard[i]] = true;
    for (size_t s = 0, gone = 0; s < shards; s++) {
        const sft_file *file = sft_set_shard_at(r->set, s);
        for (size_t i = 0; !stays[s] && i < sft_file_metadata_count(file); i++) {
            sft_pair pair = sft_file_metadata_at(file, i);
            if (goes_anyway(r, s, pair.key, &gone) || sfti_digest_key_of(pair.key)
                || is_kept(r, stays, pair))
                continue;
            return cli_fail_hint(err, SFT_BAD_ARGUMENT, CLI_HINT_COPY, "expected metadata that "
                                 "other shards have, too, in a shard that goes with its last "
                                 "tensor, found \"%.*s\" in %s only", SFTI_CLIP(pair.key, 100),
                                 cli_fresh_name(&r->fresh, sft_set_shard_path(r->set, s)));
        }
    }
    return SFT_OK;
}

static sft_code rewrite_shard(set_rewrite *r, size_t shard, const sft_job *job,
                              sft_error *err) {
    const char *name = cli_fresh_name(&r->fresh, sft_set_shard_path(r->set, shard));
    size_t count = 0;
    for (size_t i = 0; i < r->parts->count; i++)
        if (r->parts->shard[i] == shard) r->some[count++] = r->parts->parts[i];
    if (count == 0) { /* the shard goes */
        r->fresh.names[r->fresh.count++] = (sft_pair){ sft_span_cstr(name), { NULL, 0 } };
        return SFT_OK;
    }
    char *path = cli_fresh_next(&r->fresh, name);
    if (!path) return sfti_fail_memory(err, strlen(name));
    r->written[shard] = path;
    sft_span after = r->fresh.names[r->fresh.count - 1].value;
    for (size_t i = 0; i < count; i++)
        r->places[r->place_count++] = (sft_pair){ r->some[i].spec.name, after };
    sft_path_options options;
    sft_sink sink;
    const char *at;
    sft_code code = cli_fresh_options(&r->fresh, sft_set_shard_path(r->set, shard), &options,
                                      err);
    if (!code) code = cli_fresh_check(&r->fresh, path, &at, err);
    if (!code) code = sft_sink_path(at, &options, &sink, err);
    if (code) return code;
    code = r->how->save ? r->how->save(r->how->ctx, shard, sink, job, err)
                        : save_collected(r, shard, count, sink, job, err);
    if (!code) cli_fresh_written(&r->fresh, path);
    for (size_t i = 0; i < count; i++) r->progress.before += cli_spec_bytes(&r->some[i].spec);
    return code;
}

/* ── The index ── */

/* What a touched shard had goes, unless a later place says where it is. */
static sft_code take_places(set_rewrite *r, sft_error *err) {
    static const sft_span gone = { NULL, 0 };
    uint64_t most = (uint64_t)sft_set_tensor_count(r->set) + r->parts->count;
    r->places = sfti_arena_array(&r->fresh.arena, most, sizeof *r->places);
    r->some = sfti_arena_array(&r->fresh.arena, r->parts->count, sizeof *r->some);
    r->written = sfti_arena_array(&r->fresh.arena, sft_set_shard_count(r->set), sizeof(char *));
    if (!r->places || !r->some || !r->written)
        return sfti_fail_memory(err, most * sizeof *r->places);
    for (size_t s = 0; s < sft_set_shard_count(r->set); s++) r->written[s] = NULL;
    for (size_t i = 0; i < sft_set_tensor_count(r->set); i++) {
        if (!r->how->touched[sft_set_tensor_shard(r->set, i)]) continue;
        r->places[r->place_count++] = (sft_pair){ sft_set_tensor_at(r->set, i)->name, gone };
    }
    return SFT_OK;
}

/* ── Whole ── */

static sft_code print_rewrite(set_rewrite *r, sft_error *err) {
    size_t shards = sft_set_shard_count(r->set), count = 0;
    cli_written written = CLI_WRITTEN_INIT;
    cli_written_file *files = sfti_arena_array(&r->fresh.arena, shards, sizeof *files);
    if (!files) return sfti_fail_memory(err, shards * sizeof *files);
    for (size_t s = 0; s < shards; s++) {
        const char *path = sft_set_shard_path(r->set, s);
        if (!r->how->touched[s]) continue;
        files[count] = cli_written_parts(path, r->parts->parts, r->parts->count, r->parts->shard,
                                         (uint32_t)s);
        if (r->written[s]) files[count].path = r->written[s];
        if (files[count].tensors > 0)
            r->c->dropped |= sfti_digests_in(sft_set_shard_at(r->set, s), SFTI_DIGESTS_OF_DATA);
        count++;
    }
    written.input = written.output = r->fresh.index;
    written.files = files;
    written.file_count = count;
    written.is_set = written.fresh = true;
    written.dtype = r->how->dtype;
    written.cast = r->how->cast;
    written.bytes_before = r->how->bytes_before;
    written.more = r->how->more;
    written.ctx = r->how->ctx;
    cli_say_written(r->c, &written);
    return SFT_OK;
}

sft_code cli_rewrite_set(cli *c, cli_parts *parts, const cli_rewrite *how, sft_error *err) {
    const sft_set *set = parts->sets[0];
    set_rewrite r = { .c = c, .parts = parts, .set = set, .how = how };
    cli_output out;
    sft_code code = cli_fresh_own_index(sft_set_index_path(set), err);
    if (!code) code = cli_output_begin(&out, c, sft_set_index_path(set), CLI_TARGET_EDIT, err);
    if (code) return code; /* before anything is written */
    code = cli_fresh_begin(&r.fresh, c, sft_set_index_path(set), sft_set_shard_count(set), err);
    if (!code) code = take_places(&r, err);
    if (!code) code = check_metadata(&r, err);
    size_t shards = sft_set_shard_count(set), any = 0;
    for (size_t s = 0; s < shards; s++) any += how->touched[s];
    bool writes = !code && any > 0 && !c->set.dry_run;
    if (writes) {
        sft_job job = cli_progress_begin(&r.progress, c, r.fresh.index);
        r.progress.all = parts_bytes(&r, false);
        for (size_t s = 0; !code && s < shards; s++)
            if (how->touched[s]) code = rewrite_shard(&r, s, &job, err);
        cli_progress_end(&r.progress);
    }
    if (writes && code) {
        cli_fresh_undo(&r.fresh);
    } else if (writes) {
        sft_index_changes changes = SFT_INDEX_CHANGES_INIT;
        sft_pair parameters = { { "total_parameters", 16 }, { NULL, 0 } };
        sft_path_options options;
        bool changed;
        code = cli_fresh_options(&r.fresh, r.fresh.index, &options, err);
        options.no_clobber = false;
        options.link = c->set.follow ? SFT_LINK_FOLLOW : SFT_LINK_REFUSE;
        changes.places = r.places;
        changes.place_count = r.place_count;
        changes.has_total_size = true;
        changes.total_size = parts_bytes(&r, true);
        changes.metadata = &parameters;
        changes.metadata_count = how->same_elements ? 0 : 1; /* it would be wrong now */
        for (size_t s = 0; !code && s < shards; s++)
            if (how->touched[s]) code = cli_fresh_hold(set, s, err);
        if (!code)
            code = sfti_index_rewrite_held(r.fresh.index, &changes, NULL, &options, &changed,
                                           err);
        cli_fresh_settle(&r.fresh, code);
    }
    if (!code) code = print_rewrite(&r, err);
    cli_fresh_end(&r.fresh);
    return code;
}
