/* A model with an index written back to where it is: new shards, then the index. */
#include "keys/digest_keys.h"
#include "support/fresh.h"
#include "support/output.h"

#include <string.h>

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
    plan.has_metadata = sft_file_has_metadata(file);
    plan.level = (sft_level)r->c->set.level;
    plan.alloc = &r->c->alloc;
    plan.pair_at = sfti_kept_pair;
    plan.pair_ctx = &kept;
    return sft_save_parts(r->some, count, NULL, kept.count, &plan, sink, job, err);
}

static sft_code write_shard(set_rewrite *r, size_t shard, char *path, size_t count,
                            const sft_job *job, sft_error *err) {
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
    if (code != SFT_EXISTS) cli_fresh_written(&r->fresh, path);
    for (size_t i = 0; i < count; i++) r->progress.before += cli_spec_bytes(&r->some[i].spec);
    return code;
}

static sft_code rewrite_shard(set_rewrite *r, size_t shard, const sft_job *job,
                              sft_error *err) {
    const char *name = cli_fresh_name(&r->fresh, sft_set_shard_path(r->set, shard));
    size_t count = 0;
    for (size_t i = 0; i < r->parts->count; i++)
        if (r->parts->shard[i] == shard) r->some[count++] = r->parts->parts[i];
    if (count == 0) {
        cli_fresh_drop(&r->fresh, name);
        return SFT_OK;
    }
    char *path = cli_fresh_next(&r->fresh, name);
    if (!path) return sfti_fail_memory(err, strlen(name));
    r->written[shard] = path;
    sft_span after = r->fresh.names[r->fresh.count - 1].value;
    for (size_t i = 0; i < count; i++)
        r->places[r->place_count++] = (sft_pair){ r->some[i].spec.name, after };
    return write_shard(r, shard, path, count, job, err);
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

static sft_code rewrite_index_of(set_rewrite *r, sft_error *err) {
    sft_index_changes changes = SFT_INDEX_CHANGES_INIT;
    sft_pair parameters = { { "total_parameters", 16 }, { NULL, 0 } };
    sft_path_options options;
    bool changed;
    sft_code code = cli_fresh_options(&r->fresh, r->fresh.index, &options, err);
    if (code) return code;
    options.no_clobber = false;
    options.link = r->c->set.follow ? SFT_LINK_FOLLOW : SFT_LINK_REFUSE;
    changes.places = r->places;
    changes.place_count = r->place_count;
    changes.has_total_size = true;
    changes.total_size = parts_bytes(r, true);
    changes.metadata = &parameters;
    changes.metadata_count = r->how->same_elements ? 0 : 1; /* it would be wrong now */
    return sft_index_rewrite(r->fresh.index, &changes, NULL, &options, &changed, err);
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
        code = rewrite_index_of(&r, err);
        cli_fresh_settle(&r.fresh, code);
    }
    if (!code) code = print_rewrite(&r, err);
    cli_fresh_end(&r.fresh);
    return code;
}
