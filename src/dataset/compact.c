#include "base/checked.h"
#include "base/error.h"
#include "base/options.h"
#include "base/order.h"
#include "dataset/care.h"
#include "dataset/compact.h"

#include <stdio.h>
#include <string.h>

#define COMPACT_WAIT_MS 60000
/* Of a group: a file has at most 100 MB, with the order of the rows. */
#define COMPACT_HEADER (UINT64_C(88) << 20)

/* ── What is to be done ── */

static sft_code lost_put(compacting *c, compact_lost *lost, sft_span key) {
    if (lost->count == lost->room) {
        size_t room = lost->room ? 2 * lost->room : 16;
        sft_span *all = sfti_arena_array(&c->arena, room, sizeof *all);
        if (!all) return sfti_fail_memory(c->err, room * sizeof *all);
        if (lost->count) memcpy(all, lost->keys, lost->count * sizeof *all);
        lost->keys = all;
        lost->room = room;
    }
    char *copy = sfti_arena_take(&c->arena, key.len + 1);
    if (!copy) return sfti_fail_memory(c->err, key.len + 1);
    if (key.len) memcpy(copy, key.data, key.len);
    lost->keys[lost->count++] = (sft_span){ copy, key.len };
    return SFT_OK;
}

static sft_code lost_rows(compacting *c, sfti_ds_merge *merge) {
    for (;;) {
        const sfti_ds_row *row;
        sft_code code = sfti_ds_merge_next(merge, &row, c->err);
        if (code || !row) return code;
        if (row->shadowed) code = lost_put(c, &c->lost[row->source], row->key);
        if (code) return code;
    }
}

static sft_code compact_find(compacting *c) {
    size_t n = sft_dataset_shard_count(c->dataset);
    sfti_ds_merge *merge = NULL;
    sfti_ds_source *sources = sfti_arena_array(&c->arena, n, sizeof *sources);
    c->lost = sfti_arena_array(&c->arena, n, sizeof *c->lost);
    c->groups = sfti_arena_array(&c->arena, n, sizeof *c->groups);
    if (!sources || !c->lost || !c->groups) return sfti_fail_memory(c->err, n * sizeof *sources);
    memset(c->lost, 0, n * sizeof *c->lost);
    for (size_t i = 0; i < n; i++) {
        const char *name = sft_dataset_shard_at(c->dataset, i)->name;
        sources[i] = (sfti_ds_source){ name, name };
    }
    sft_code code =
        sfti_ds_merge_open(c->storage, sources, n, &c->alloc, NULL, &merge, c->err);
    if (code == SFT_OK) code = lost_rows(c, merge);
    sfti_ds_merge_close(merge);
    return code;
}

static sft_code compact_header(compacting *c, size_t i, uint64_t *bytes) {
    sft_source source;
    const char *name = sft_dataset_shard_at(c->dataset, i)->name;
    sft_code code = sfti_call(c->storage, open, name, &source, c->err);
    if (code) return code;
    code = sfti_ds_header_bytes(&source, bytes, c->err);
    sft_source_close(&source);
    return code;
}

/* End of the group that begins with shard i: small neighbours go together as long as they stay
 * within the target, so that the order of rows is kept. */
static sft_code plan_group(compacting *c, size_t i, uint64_t target, size_t *end) {
    uint64_t bytes = sft_dataset_shard_at(c->dataset, i)->bytes, header = 0, more = 0;
    *end = i + 1;
    if (bytes >= target) return SFT_OK;
    sft_code code = compact_header(c, i, &header);
    for (; code == SFT_OK && *end < sft_dataset_shard_count(c->dataset); ++*end) {
        uint64_t next = sft_dataset_shard_at(c->dataset, *end)->bytes;
        if (next >= target || next > target - bytes) break;
        code = compact_header(c, *end, &more);
        if (code || more > COMPACT_HEADER - header) break;
        bytes += next;
        header += more;
    }
    return code;
}

static sft_code compact_plan(compacting *c, uint64_t target) {
    size_t n = sft_dataset_shard_count(c->dataset), end = 0;
    for (size_t i = 0; i < n; i = end) {
        sft_code code = plan_group(c, i, target, &end);
        if (code) return code;
        bool anew = end > i + 1;
        for (size_t k = i; k < end; k++) anew = anew || c->lost[k].count;
        if (anew) c->groups[c->group_count++] = (compact_group){ i, end, 0 };
    }
    return SFT_OK;
}

/* ── One group ── */

typedef struct compact_open {
    sft_file **files;
    sft_source *sources;
    sft_part *parts;
    size_t files_count, part_count;
    compact_order order;
} compact_open;

static bool lost_has(const void *ctx, sft_span key) {
    const compact_lost *lost = ctx;
    size_t low = 0, high = lost->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = sfti_bytes_compare(lost->keys[middle], key);
        if (order == 0) return true;
        if (order < 0) low = middle + 1;
        else high = middle;
    }
    return false;
}

static sft_code open_parts(compacting *c, const compact_group *g, compact_open *o,
                           sfti_arena *arena) {
    size_t most = 0;
    for (size_t i = 0; i < o->files_count; i++) most += sft_file_count(o->files[i]);
    o->parts = sfti_arena_array(arena, most, sizeof *o->parts);
    if (!o->parts) return sfti_fail_memory(c->err, most * sizeof *o->parts);
    for (size_t i = 0; i < o->files_count; i++)
        for (size_t k = 0; k < sft_file_count(o->files[i]); k++) {
            const sft_tensor *t = sft_file_tensor(o->files[i], k);
            if (!lost_has(&c->lost[g->first + i], t->name))
                o->parts[o->part_count++] = sft_part_of(t, &o->sources[i]);
        }
    return SFT_OK;
}

/* Rows stay in the order in which readers number them. */
static sft_code open_order(compacting *c, const compact_group *g, compact_open *o,
                           sfti_arena *arena) {
    const sfti_ds_manifest *m = sfti_ds_manifest_of(c->dataset);
    sft_span column = m->column_count ? m->columns[0].name : (sft_span){ NULL, 0 };
    size_t len = m->separator.len + column.len;
    char *suffix = sfti_arena_take(arena, len + 1);
    if (!suffix) return sfti_fail_memory(c->err, len + 1);
    if (m->separator.len) memcpy(suffix, m->separator.data, m->separator.len);
    if (column.len) memcpy(suffix + m->separator.len, column.data, column.len);
    o->order = (compact_order){ .alloc = c->alloc, .suffix = { suffix, len }, .err = c->err };
    sft_code code = SFT_OK;
    for (size_t i = 0; code == SFT_OK && i < o->files_count; i++)
        code = sfti_compact_order_add(&o->order, o->files[i], lost_has, &c->lost[g->first + i]);
    return code ? code : sfti_compact_order_end(&o->order);
}

static sft_code open_group(compacting *c, const compact_group *g, compact_open *o,
                           sfti_arena *arena) {
    size_t n = g->end - g->first;
    o->files = sfti_arena_array(arena, n, sizeof *o->files);
    o->sources = sfti_arena_array(arena, n, sizeof *o->sources);
    if (!o->files || !o->sources) return sfti_fail_memory(c->err, n * sizeof *o->sources);
    for (size_t i = 0; i < n; i++) {
        sft_code code =
            sft_dataset_shard_open(c->dataset, g->first + i, NULL, &o->files[i], c->err);
        if (code) return code;
        o->sources[i] = sft_file_source(o->files[i]);
        o->files_count++;
    }
    sft_code code = open_parts(c, g, o, arena);
    return code ? code : open_order(c, g, o, arena);
}

static void close_group(compact_open *o) {
    for (size_t i = 0; i < o->files_count; i++) sft_close(o->files[i]);
    sfti_compact_order_free(&o->order);
}

static sft_code sum_write(void *ctx, const void *bytes, size_t len, sft_error *err) {
    compact_sum *sum = ctx;
    (void)err;
    sft_hasher_update(sum->hasher, bytes, len);
    sum->bytes += len;
    return SFT_OK;
}

static sft_code group_sink(compacting *c, const char *name, compact_sum *sum, sft_sink *out) {
    sft_sink file, hash;
    sft_code code = sfti_call(c->storage, create, name, false, &file, c->err);
    if (code) return code;
    code = sft_sink_callback(sum_write, sum, &c->alloc, &hash, c->err);
    if (code == SFT_OK) return sft_sink_tee(file, hash, &c->alloc, out, c->err);
    sft_sink_abandon(&file);
    return code;
}

sft_code sfti_compact_save(compacting *c, const sft_part *parts, size_t count, const char *mode,
                           uint64_t samples, uint64_t valid, sft_span order, const char *stored,
                           compact_sum *sum) {
    char number[24], whole[24];
    sft_sink sink;
    (void)snprintf(number, sizeof number, "%llu", (unsigned long long)samples);
    (void)snprintf(whole, sizeof whole, "%llu", (unsigned long long)valid);
    sft_pair metadata[5] = {
        { sft_span_cstr(SFTI_DATASET_MARK), sft_span_cstr("1") },
        { sft_span_cstr("mode"), sft_span_cstr(mode) },
        { sft_span_cstr("samples"), sft_span_cstr(number) },
    };
    sum->bytes = 0;
    sft_code code =
        sft_hasher_new(SFT_HASH_BIT(SFT_HASH_SHA256), &c->alloc, &sum->hasher, c->err);
    if (code == SFT_OK) code = group_sink(c, stored, sum, &sink);
    if (code) return code;
    size_t pairs = 3;
    if (samples != valid)
        metadata[pairs++] = (sft_pair){ sft_span_cstr("valid_samples"), sft_span_cstr(whole) };
    if (order.len > 0) metadata[pairs++] = (sft_pair){ sft_span_cstr(SFTI_DATASET_ORDER), order };
    return sft_save_parts(parts, count, metadata, pairs, NULL, sink, c->job, c->err);
}

sft_code sfti_compact_name(compacting *c, const sft_dataset_shard *first, char **name,
                           char stored[COMPACT_STORED]) {
    uint64_t file = 0, shard = 0;
    if (!sfti_ds_shard_parse(sft_span_cstr(first->name), &file, &shard))
        return sfti_fail(c->err, SFT_MANIFEST_TYPE, SFT_NO_OFFSET,
                         "expected names of shards as docs/dataset.md has them, found %s",
                         first->name);
    *name = sfti_arena_take(&c->arena, SFTI_DATASET_NAME);
    if (!*name) return sfti_fail_memory(c->err, SFTI_DATASET_NAME);
    sfti_ds_shard_name(file, shard, c->uuid, *name);
    (void)snprintf(stored, COMPACT_STORED, "%s%s%s", c->folder, *c->folder ? "/" : "", *name);
    return SFT_OK;
}

static void group_samples(const compacting *c, const compact_group *g, uint64_t *samples) {
    uint64_t columns = sfti_ds_manifest_of(c->dataset)->column_count;
    *samples = 0;
    for (size_t i = g->first; i < g->end; i++) {
        uint64_t lost = c->lost[i].count / (columns ? columns : 1);
        uint64_t had = sft_dataset_shard_at(c->dataset, i)->samples;
        *samples += had - (lost < had ? lost : had);
    }
}

sft_code sfti_compact_facts(compacting *c, char *name, size_t tensors, uint64_t samples,
                            uint64_t valid, const compact_sum *sum) {
    sft_hashes hashes;
    char *digest = sfti_arena_take(&c->arena, 65);
    if (!digest) return sfti_fail_memory(c->err, 65);
    sft_hasher_result(sum->hasher, &hashes);
    memcpy(digest, sft_hashes_get(&hashes, SFT_HASH_SHA256), 65);
    sfti_ds_shard *to = &c->shards[c->count++];
    to->known = true;
    to->facts = (sft_dataset_shard){ name, sum->bytes, samples, valid, 0, tensors, 0, digest };
    return SFT_OK;
}

static sft_code compact_write(compacting *c, const compact_group *g) {
    sfti_arena arena = { .alloc = c->alloc };
    compact_open o = { .order = { .alloc = c->alloc } };
    compact_sum sum = { NULL, 0 };
    char *name = NULL, stored[COMPACT_STORED];
    uint64_t samples;
    group_samples(c, g, &samples);
    sft_code code =
        sfti_compact_name(c, sft_dataset_shard_at(c->dataset, g->first), &name, stored);
    if (code == SFT_OK) code = open_group(c, g, &o, &arena);
    sft_span order = { o.order.text.data, o.order.text.len };
    if (code == SFT_OK && o.part_count)
        code = sfti_compact_save(c, o.parts, o.part_count, "kv", samples, samples, order, stored,
                                 &sum);
    if (code == SFT_OK && o.part_count)
        code = sfti_compact_facts(c, name, o.part_count, samples, samples, &sum);
    for (size_t i = g->first; i < g->end; i++) c->dropped += c->lost[i].count;
    sft_hasher_free(sum.hasher);
    close_group(&o);
    sfti_arena_free(&arena);
    return code;
}

/* ── The new manifest ── */

static sft_code compact_shards(compacting *c) {
    size_t n = sft_dataset_shard_count(c->dataset), group = 0;
    bool batch = sft_dataset_kind(c->dataset) == SFT_DATASET_BATCH;
    sft_code code;
    c->shards = sfti_arena_array(&c->arena, n, sizeof *c->shards);
    if (!c->shards) return sfti_fail_memory(c->err, n * sizeof *c->shards);
    for (size_t i = 0; i < n;) {
        if (group < c->group_count && c->groups[group].first == i) {
            const compact_group *g = &c->groups[group];
            code = batch ? sfti_compact_batch_write(c, g) : compact_write(c, g);
            if (code) return code;
            c->rewritten += g->end - g->first;
            i = c->groups[group++].end;
            continue;
        }
        c->shards[c->count].known = true;
        c->shards[c->count++].facts = *sft_dataset_shard_at(c->dataset, i++);
    }
    return SFT_OK;
}

static sft_code compact_sums(compacting *c) {
    sfti_ds_manifest *m = &c->next;
    m->total_samples = m->total_valid = m->total_bytes = 0;
    for (size_t i = 0; i < c->count; i++) {
        sft_dataset_shard *s = &c->shards[i].facts;
        s->first_sample = m->total_samples;
        s->shadowed = 0;
        if (!sfti_add(m->total_samples, s->samples, &m->total_samples) ||
            !sfti_add(m->total_valid, s->valid_samples, &m->total_valid) ||
            !sfti_add(m->total_bytes, s->bytes, &m->total_bytes))
            return sfti_fail(c->err, SFT_SIZE_OVERFLOW, SFT_NO_OFFSET,
                             "expected totals within 64 bits, found more");
    }
    return SFT_OK;
}

static sft_code compact_manifest(compacting *c) {
    sfti_ds_manifest *m = &c->next;
    size_t n = c->count;
    uint32_t *order = sfti_arena_array(&c->arena, 2 * (uint64_t)n, sizeof *order);
    sfti_ds_shard *sorted = sfti_arena_array(&c->arena, n, sizeof *sorted);
    if (!order || !sorted) return sfti_fail_memory(c->err, n * sizeof *sorted);
    *m = *sfti_ds_manifest_of(c->dataset);
    sft_code code = compact_sums(c);
    if (code == SFT_OK && m->mode == SFT_DATASET_BATCH) code = sfti_compact_batch_schema(c);
    if (code) return code;
    for (size_t i = 0; i < n; i++) order[i] = (uint32_t)i;
    sfti_sort(order, order + n, n, sfti_ds_by_name, c->shards);
    for (size_t i = 0; i < n; i++) sorted[i] = c->shards[order[i]];
    m->shards = sorted;
    m->shard_count = n;
    m->index = (sft_span){ NULL, 0 };
    if (!*m->row_order) memcpy(m->row_order, m->commit, sizeof m->row_order);
    if (!sfti_add(m->version, 1, &m->version))
        return sfti_fail(c->err, SFT_SIZE_OVERFLOW, SFT_NO_OFFSET,
                         "expected a version within 64 bits, found more");
    m->generator = sft_span_cstr(SFTI_DATASET_GENERATOR);
    memcpy(m->commit, c->uuid, sizeof m->commit);
    return SFT_OK;
}

/* ── Publishing ── */

static sft_code compact_move(compacting *c) {
    const sft_storage *s = c->storage;
    for (size_t i = 0; *c->folder && i < c->count; i++) {
        const char *name = c->shards[i].facts.name;
        char from[160];
        if (!strstr(name, c->uuid)) continue;
        (void)snprintf(from, sizeof from, "%s/%s", c->folder, name);
        sft_code code = sfti_call(s, move, from, name, c->err);
        if (code) return code;
    }
    return sfti_can(s, settle) ? sfti_call(s, settle, "", c->err) : SFT_OK;
}

static void compact_drop(const compacting *c, const char *name, bool folder) {
    sft_error what;
    if (sfti_call(c->storage, remove, name, folder, &what) && c->warn)
        c->warn(c->warn_ctx, &what);
}

/* After the commit point: nothing fails. */
static void compact_clean(const compacting *c) {
    for (size_t g = 0; g < c->group_count; g++)
        for (size_t i = c->groups[g].first; i < c->groups[g].end; i++)
            compact_drop(c, sft_dataset_shard_at(c->dataset, i)->name, false);
    if (sfti_ds_swap_last(&c->swap)) compact_drop(c, SFTI_DATASET_INDEX, true);
    if (*c->folder) compact_drop(c, c->folder, true);
}

static void compact_undo(const compacting *c) {
    sft_error ignored;
    for (size_t i = 0; i < c->count; i++)
        if (strstr(c->shards[i].facts.name, c->uuid))
            (void)sfti_call(c->storage, remove, c->shards[i].facts.name, false, &ignored);
    if (*c->folder) (void)sfti_call(c->storage, remove, c->folder, true, &ignored);
}

static void compact_swap(compacting *c, sft_span text) {
    sfti_ds_swap *w = &c->swap;
    w->old = sft_dataset_manifest(c->dataset);
    w->old_version = sfti_ds_manifest_of(c->dataset)->version;
    w->text = text;
    w->commit = c->uuid;
    w->folder = c->folder;
    for (size_t i = 0; i < c->count && !w->shard; i++)
        if (strstr(c->shards[i].facts.name, c->uuid)) w->shard = c->shards[i].facts.name;
}

/* As a commit does it: what failed may have been done all the same. */
static sft_code compact_put(compacting *c) {
    sft_error what, first;
    sfti_ds_outcome outcome, put;
    sft_code code = sfti_ds_swap_claim(&c->swap, &outcome, &first), after = code;
    bool done = outcome == SFTI_SWAP_DONE;
    if (code == SFT_OK || done) {
        after = sfti_ds_swap_put(&c->swap, &put, &what);
        if (!done) outcome = put;
        if (code == SFT_OK) first = what;
    }
    if (after == SFT_OK) compact_clean(c);
    if (after == SFT_OK) after = sfti_ds_swap_clean(&c->swap, c->next.version, &first);
    if (code == SFT_OK) code = after;
    c->unknown = outcome == SFTI_SWAP_UNKNOWN;
    if (code && outcome == SFTI_SWAP_DONE && c->warn) c->warn(c->warn_ctx, &first);
    if (outcome == SFTI_SWAP_DONE) return SFT_OK;
    if (c->err) *c->err = first;
    return code;
}

static sft_code compact_publish(compacting *c) {
    sft_buffer text = { .alloc = c->alloc };
    sft_sink sink = sft_sink_memory(&text);
    sft_code code = sfti_ds_manifest_write(&c->next, &sink, c->err);
    if (code == SFT_OK) code = sft_sink_finish(&sink, c->err);
    else sft_sink_abandon(&sink);
    if (code == SFT_OK) code = sfti_ds_guard_take(&c->swap, COMPACT_WAIT_MS, c->err);
    compact_swap(c, (sft_span){ text.data, text.len });
    if (code == SFT_OK) code = compact_move(c);
    if (code == SFT_OK) code = compact_put(c);
    if (code && !c->unknown) compact_undo(c);
    sfti_ds_guard_drop(&c->swap);
    sft_buffer_free(&text);
    return code;
}

/* ── All of it ── */

static sft_code compact_begin(compacting *c) {
    sft_code code = sfti_ds_guard_check(c->storage, false, c->err);
    if (code == SFT_OK)
        code = sft_dataset_open(c->storage, &c->alloc, NULL, NULL, &c->dataset, c->err);
    if (code) return code;
    const sfti_ds_manifest *m = sfti_ds_manifest_of(c->dataset);
    if (!m->ours)
        return sfti_fail(c->err, SFT_MANIFEST_TYPE, SFT_NO_OFFSET,
                         "expected a dataset that libsafetensors wrote, found another's; an "
                         "append takes it over");
    c->before = m->total_bytes;
    code = sfti_ds_uuid(c->uuid, c->err);
    if (sfti_can(c->storage, move)) (void)snprintf(c->folder, sizeof c->folder, "_job-%s", c->uuid);
    return code;
}

static sft_code compact_run(compacting *c, uint64_t target) {
    sft_code code = compact_begin(c);
    bool keyed = code == SFT_OK && sft_dataset_kind(c->dataset) == SFT_DATASET_KV;
    if (keyed) code = compact_find(c);
    if (keyed && code == SFT_OK) code = compact_plan(c, target);
    if (!keyed && code == SFT_OK) code = sfti_compact_batch_plan(c, target);
    if (code || c->group_count == 0) return code;
    code = compact_shards(c);
    if (code == SFT_OK) code = compact_manifest(c);
    if (code) {
        compact_undo(c);
        return code;
    }
    return compact_publish(c);
}

static sft_code compact_result(const compacting *c, const char *path, sft_sink *sink,
                               sft_error *err) {
    sfti_json_writer w;
    bool changed = c->group_count != 0;
    sfti_ds_put_begin(&w, path, true, sink, err);
    sfti_ds_put_uint(&w, "shards_before", sft_dataset_shard_count(c->dataset));
    sfti_ds_put_uint(&w, "shards_after",
                     changed ? c->next.shard_count : sft_dataset_shard_count(c->dataset));
    sfti_ds_put_uint(&w, "rewritten", c->rewritten);
    sfti_ds_put_uint(&w, "tensors_dropped", c->dropped);
    sfti_ds_put_uint(&w, "bytes_before", c->before);
    sfti_ds_put_uint(&w, "bytes_after", changed ? c->next.total_bytes : c->before);
    sfti_json_key(&w, "index_removed");
    sfti_json_bool(&w, changed && sfti_ds_manifest_of(c->dataset)->index.data);
    sfti_ds_put_text(&w, "left", c->why ? sft_span_cstr(c->why) : (sft_span){ NULL, 0 });
    return sfti_ds_put_end(&w);
}

sft_code sft_dataset_compact(const sft_storage *storage, uint64_t target_bytes,
                             const char *path, sft_sink *sink, sft_warn_fn warn, void *warn_ctx,
                             const sft_job *job, sft_error *err) {
    sft_job own;
    compacting c = { .storage = storage, .job = &own, .alloc = sfti_allocator(NULL),
                     .warn = warn, .warn_ctx = warn_ctx, .err = err };
    c.arena.alloc = c.alloc;
    c.swap = (sfti_ds_swap){ .storage = storage, .alloc = c.alloc };
    sft_code code = sfti_ds_storage_check(storage, err);
    if (code == SFT_OK) code = sfti_take_job(job, &own, err);
    if (code == SFT_OK) code = compact_run(&c, target_bytes);
    if (code == SFT_OK) code = compact_result(&c, path, sink, err);
    sft_dataset_close(c.dataset);
    sfti_arena_free(&c.arena);
    return code;
}
