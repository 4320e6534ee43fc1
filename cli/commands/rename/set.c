/* rename of a model with an index. */
#include "commands/rename/rename.h"
#include "base/files.h"
#include "base/order.h"
#include "os/os.h"
#include "keys/digest_keys.h"
#include "set/index_edit.h"
#include "support/adapters.h"
#include "support/beside.h"
#include "support/edit.h"
#include "support/files.h"
#include "support/fresh.h"
#include "support/output.h"
#include "support/renamed.h"

#include <string.h>

typedef struct set_rename {
    cli *c;
    const char *index;
    const sft_set *set;
    const sft_pair *names; /* of tensors */
    size_t count;
    cli_changed_pair *pairs; /* of the shards' metadata */
    size_t pair_count;
    cli_fresh fresh;
    uint32_t *shard_of; /* of each name */
    cli_progress progress;
} set_rename;

/* ── Shards ── */

static bool is_touched(const set_rename *r, size_t shard) {
    for (size_t i = 0; i < r->count; i++)
        if (r->shard_of[i] == shard) return true;
    for (size_t i = 0; i < r->pair_count; i++)
        if (r->pairs[i].shard == shard) return true;
    return false;
}

/* Names of tensors, and metadata: keys that go before those that come, which may be the same. */
static sft_code change_shard(const set_rename *r, size_t shard, sft_edit *edit, sft_error *err) {
    sft_code code = SFT_OK;
    for (size_t i = 0; !code && i < r->count; i++)
        if (r->shard_of[i] == shard)
            code = sft_edit_rename(edit, r->names[i].key, r->names[i].value, err);
    for (int sets = 0; sets < 2; sets++)
        for (size_t i = 0; !code && i < r->pair_count; i++) {
            const cli_changed_pair *pair = &r->pairs[i];
            if (pair->shard != shard) continue;
            if (sets && pair->now.key.data)
                code = sft_edit_set(edit, pair->now.key, pair->now.value, err);
            else if (!sets && !sft_span_equal(pair->old.key, pair->now.key))
                code = sft_edit_remove(edit, pair->old.key, err);
        }
    return code;
}

/* At `at`, which leads to the path. */
static sft_code save_shard(set_rename *r, size_t shard, char *path, const char *at,
                           const sft_job *job, sft_error *err) {
    const char *old = sft_set_shard_path(r->set, shard);
    sft_edit_options options = cli_edit_options(r->c);
    sft_open_options open = r->c->open;
    sft_path_options to;
    sft_edit *edit = NULL;
    options.link = SFT_LINK_REPLACE; /* it is only read */
    options.force = true;
    open.beneath = r->fresh.folder;
    options.open = &open;
    sft_code code = cli_fresh_options(&r->fresh, old, &to, err);
    if (r->c->set.output) sfti_mode_common(&to.mode, sft_set_output_mode(r->set, NULL));
    if (!code) code = sft_edit_open(old, &options, &edit, err);
    if (!code) code = change_shard(r, shard, edit, err);
    if (!code) code = sft_edit_save(edit, at, &to, job, NULL, err);
    if (code != SFT_EXISTS) cli_fresh_written(&r->fresh, path);
    r->progress.before += sft_file_data_bytes(sft_set_shard_at(r->set, shard));
    sft_edit_close(edit);
    return code;
}

/* Those that are to be written. */
static sft_job begin_shards(set_rename *r, const char *shown, bool all) {
    sft_job job = cli_progress_begin(&r->progress, r->c, shown);
    for (size_t i = 0; i < sft_set_shard_count(r->set); i++)
        if (all || is_touched(r, i))
            r->progress.all += sft_file_data_bytes(sft_set_shard_at(r->set, i));
    return job;
}

/* ── In place ── */

static sft_code rewrite_index(const set_rename *r, const char *to, bool dry_run,
                              bool *changed, sft_error *err) {
    sft_index_changes changes = SFT_INDEX_CHANGES_INIT;
    sft_path_options options;
    sft_code code = cli_fresh_options(&r->fresh, r->index, &options, err);
    if (code) return code;
    changes.tensors = r->names;
    changes.tensor_count = r->count;
    changes.shards = to ? NULL : r->fresh.names;
    changes.shard_count = to ? 0 : r->fresh.count;
    changes.dry_run = dry_run;
    options.no_clobber = to != NULL;
    options.link = r->c->set.follow ? SFT_LINK_FOLLOW : SFT_LINK_REFUSE;
    if (to) options.mode = sft_set_output_mode(r->set, NULL);
    return sfti_index_rewrite_held(r->index, &changes, to, &options, changed, err);
}

static sft_code rename_here(set_rename *r, sft_error *err) {
    cli_output out;
    bool changed; /* the index: it may not list the tensors */
    sft_code code = SFT_OK;
    if (!r->c->set.output) code = cli_fresh_own_index(r->index, err);
    if (!code && !r->c->set.output)
        code = cli_output_begin(&out, r->c, r->index, CLI_TARGET_EDIT, err);
    if (!code) code = rewrite_index(r, NULL, true, &changed, err); /* can it have them? */
    if (code || r->c->set.dry_run || (r->count == 0 && r->pair_count == 0)) return code;
    sft_job job = begin_shards(r, r->index, false);
    for (size_t i = 0; !code && i < sft_set_shard_count(r->set); i++) {
        if (!is_touched(r, i)) continue;
        const char *name = cli_fresh_name(&r->fresh, sft_set_shard_path(r->set, i));
        char *path = cli_fresh_next(&r->fresh, name);
        const char *at;
        code = path ? cli_fresh_check(&r->fresh, path, &at, err)
                    : sfti_fail_memory(err, strlen(name));
        if (!code) code = save_shard(r, i, path, at, &job, err);
    }
    cli_progress_end(&r->progress);
    for (size_t i = 0; !code && i < sft_set_shard_count(r->set); i++)
        if (is_touched(r, i)) code = cli_fresh_hold(r->set, i, err);
    if (code) {
        cli_fresh_undo(&r->fresh);
        return code;
    }
    code = rewrite_index(r, NULL, false, &changed, err);
    cli_fresh_settle(&r->fresh, code);
    return code;
}

/* ── To a new folder ── */

static sft_code rename_to_folder(set_rename *r, const char *folder, sft_error *err) {
    bool made, changed;
    char *index = cli_join_path(&r->fresh.arena, sft_span_cstr(folder),
                                cli_fresh_name(&r->fresh, r->index));
    if (!index) return sfti_fail_memory(err, strlen(folder));
    sft_code code = cli_make_folder(r->c, folder, &made, err);
    if (code) return code;
    sft_job job = begin_shards(r, folder, true);
    for (size_t i = 0; !code && i < sft_set_shard_count(r->set); i++) {
        const char *name = cli_fresh_name(&r->fresh, sft_set_shard_path(r->set, i));
        char *path = cli_join_path(&r->fresh.arena, sft_span_cstr(folder), name);
        code = cli_fresh_folders(&r->fresh, folder, name, err);
        if (!code && !path) code = sfti_fail_memory(err, strlen(name));
        if (!code) code = save_shard(r, i, path, path, &job, err);
    }
    cli_progress_end(&r->progress);
    if (!code) code = rewrite_index(r, index, false, &changed, err);
    if (!code) code = cli_settle_folder(r->c, folder, made, err);
    if (!code) return code;
    (void)sfti_os_unlink(index);
    cli_fresh_undo(&r->fresh);
    if (made) (void)sfti_os_remove_folder(folder);
    return code;
}

sft_code cli_rename_set(cli *c, const char *index, const sft_set *set,
                        const cli_rename_names *names, sft_error *err) {
    size_t count = names->tensors, all = count + names->aliases;
    set_rename r = { .c = c, .index = index, .set = set, .names = names->pairs, .count = count };
    sft_code code = cli_output_is_folder(c, err);
    if (!code && c->set.output) code = cli_check_adapter_config(c, &index, 1, NULL, err);
    size_t shards = c->set.output ? sft_set_shard_count(set) : 0;
    for (size_t s = 0; !code && s < shards && !c->beside.bare; s++)
        code = cli_check_file_quantiser(c, sft_set_shard_at(set, s), index, NULL, err);
    if (!code) code = cli_fresh_begin(&r.fresh, c, index, sft_set_shard_count(set), err);
    if (!code) r.shard_of = sfti_arena_array(&r.fresh.arena, count, sizeof *r.shard_of);
    if (!code && !r.shard_of) code = sfti_fail_memory(err, count * sizeof *r.shard_of);
    for (size_t i = 0, at = 0; !code && i < count; i++) {
        (void)sft_set_find(set, r.names[i].key, &at);
        r.shard_of[i] = (uint32_t)at;
    }
    if (!code) code = cli_edit_names_free(set, r.names, count, &r.fresh.arena, err);
    if (!code)
        code = cli_renamed_pairs(set, r.names, count, r.names + count, names->aliases,
                                 &r.fresh.arena, &r.pairs, &r.pair_count, err);
    if (!code && c->set.output && !c->set.dry_run && (all > 0 || c->set.copy))
        code = rename_to_folder(&r, c->set.output, err);
    else if (!code)
        code = rename_here(&r, err);
    if (c->set.output && cli_output_failed(code)) c->blame = c->set.output;
    if (!code) {
        for (size_t i = 0; i < sft_set_shard_count(set); i++)
            if (is_touched(&r, i))
                c->dropped |= sfti_digests_in(sft_set_shard_at(set, i), SFTI_DIGESTS_OF_NAMES);
        c->same = all == 0;
        cli_edit_result result = { .path = index, .renamed = names->pairs, .renamed_count = all,
                                   .renamed_aliases = names->aliases,
                                   .changed = all > 0 || cli_output_copies(c, index) };
        cli_edit_say(c, &result);
    }
    cli_fresh_end(&r.fresh);
    return code;
}
