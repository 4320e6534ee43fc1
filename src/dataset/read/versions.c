/* Versions: the manifests that commits have replaced, in files of their own. commit/swap.c writes
 * them, gc removes them. Tests: test_dataset_versions.c. */
#include "base/error.h"
#include "base/order.h"
#include "dataset/read/segment.h"

#include <string.h>

#define AT_TRIES 100

/* ── Which there are ── */

typedef struct version_names {
    const sfti_ds_manifest *now;
    sfti_ds_listing files;
    size_t count;
} version_names;

static bool version_each(void *ctx, const sft_stored *object) {
    version_names *v = ctx;
    uint64_t version;
    sft_span history;
    if (object->folder ||
        !sfti_ds_is_version(sft_span_cstr(object->name), &version, &history) ||
        version >= v->now->version || memcmp(history.data, v->now->history, history.len) != 0)
        return true;
    v->count++;
    return sfti_ds_listing_put(&v->files, "", object->name, 0);
}

static int version_order(const void *all, uint32_t a, uint32_t b) {
    const sfti_ds_version *versions = all;
    return versions[a].version < versions[b].version ? -1
           : versions[a].version > versions[b].version;
}

sft_code sfti_ds_versions_list(const sft_storage *storage, const sfti_ds_manifest *now,
                               sfti_arena *arena, sfti_ds_version **out, size_t *count,
                               sft_error *err) {
    version_names v = { now, { .arena = { .alloc = arena->alloc } }, 0 };
    sft_code code = SFT_OK;
    *out = NULL;
    *count = 0;
    if (!*now->history) return SFT_OK;
    code = sfti_ds_listing_fill(&v.files, storage, "", version_each, &v, err);
    sfti_ds_version *all = sfti_arena_array(arena, v.count, sizeof *all);
    sfti_ds_version *sorted = sfti_arena_array(arena, v.count, sizeof *all);
    size_t n = 0;
    for (const sfti_ds_listed *one = v.files.first; !code && all && one; one = one->next) {
        sft_span history, name = sft_span_cstr(one->name);
        if (!sfti_ds_is_version(name, &all[n].version, &history)) continue;
        memcpy(all[n++].name, name.data, name.len + 1);
    }
    uint32_t *order = code || !all ? NULL : sfti_arena_sorted(arena, n, version_order, all);
    if (!code && (!order || !sorted)) code = sfti_fail_memory(err, v.count * sizeof *all);
    for (size_t i = 0; !code && i < n; i++) sorted[i] = all[order[i]];
    sfti_arena_free(&v.files.arena);
    if (code) return code;
    *out = sorted;
    *count = n;
    return SFT_OK;
}

/* ── One of them ── */

sft_code sfti_ds_version_read(const sft_storage *storage, const sfti_ds_version *version,
                              sfti_arena *arena, sfti_ds_manifest *out, sft_error *err) {
    sft_error what = SFT_ERROR_INIT;
    sft_code code = sfti_ds_commit_read(storage, version->name, arena, out, &what);
    if (code == SFT_NOT_FOUND) return code;
    if (code)
        return sfti_fail(err, code, "%s: %s", version->name, what.message);
    if (out->version != version->version)
        return sfti_fail(err, SFT_MANIFEST_TYPE, "%s: expected version %llu, found %llu",
                         version->name, (unsigned long long)version->version,
                         (unsigned long long)out->version);
    return SFT_OK;
}

static sft_code at_none(const sfti_ds_manifest *now, uint64_t version, sft_error *err) {
    sft_code code =
        version ? sfti_fail(err, SFT_MANIFEST_MISSING,
                            "expected version %llu, which is not kept; the dataset is at version "
                            "%llu", (unsigned long long)version, (unsigned long long)now->version)
                : sfti_fail(err, SFT_MANIFEST_MISSING,
                            "expected a version that was committed by then, found none that is "
                            "kept; the dataset is at version %llu",
                            (unsigned long long)now->version);
    sfti_hint(err, SFT_HINT_VERSIONS);
    return code;
}

/* One that is not kept may have been in force then. */
static sft_code at_gap(uint64_t before, uint64_t after, sft_error *err) {
    sft_code code = sfti_fail(err, SFT_MANIFEST_MISSING,
                              "expected the version that was in force then, found versions %llu "
                              "and %llu, between which none is kept",
                              (unsigned long long)before, (unsigned long long)after);
    sfti_hint(err, SFT_HINT_VERSIONS);
    return code;
}

/* The last one that was committed by then. One of an unknown time is none. */
static sft_code at_time(const sft_storage *storage, const sfti_ds_manifest *now, uint64_t asof_s,
                        sfti_arena *arena, sfti_ds_manifest *out, sft_error *err) {
    sfti_ds_version *versions;
    size_t low = 0, high, count;
    sft_code code = sfti_ds_versions_list(storage, now, arena, &versions, &count, err);
    high = count;
    while (!code && low < high) { /* before low: by then; from high on: later */
        size_t middle = low + (high - low) / 2;
        code = sfti_ds_version_read(storage, &versions[middle], arena, out, err);
        if (!code && out->committed <= asof_s) low = middle + 1;
        else high = middle;
    }
    if (!code && low) code = sfti_ds_version_read(storage, &versions[low - 1], arena, out, err);
    if (!code && (!low || !out->committed)) return at_none(now, 0, err);
    if (code) return code;
    uint64_t last = versions[low - 1].version;
    uint64_t next = low < count ? versions[low].version : now->version;
    return last + 1 == next ? SFT_OK : at_gap(last, next, err);
}

static sft_code at_once(const sft_storage *storage, uint64_t version, uint64_t asof_s,
                        sfti_arena *arena, sfti_ds_manifest *out, bool *again, sft_error *err) {
    sfti_ds_manifest now;
    sft_code code = sfti_ds_manifest_read(storage, arena, &now, err);
    if (code) return code;
    bool current = asof_s ? now.committed && now.committed <= asof_s : now.version == version;
    if (current) { /* unless there is another by now */
        code = sfti_ds_manifest_read_all(storage, arena, out, err);
        *again = !code && out->version != now.version;
        return code;
    }
    if (asof_s) {
        code = at_time(storage, &now, asof_s, arena, out, err);
    } else {
        sfti_ds_version one = { version, { 0 } };
        if (!*now.history || version > now.version) return at_none(&now, version, err);
        sfti_ds_version_name(version, now.history, one.name);
        code = sfti_ds_version_read(storage, &one, arena, out, err);
    }
    if (code == SFT_NOT_FOUND) return at_none(&now, version, err);
    return code ? code : sfti_ds_manifest_load(storage, arena, out, err);
}

sft_code sfti_ds_manifest_at(const sft_storage *storage, uint64_t version, uint64_t asof_s,
                             sfti_arena *arena, sfti_ds_manifest *out, sft_error *err) {
    bool again = true;
    sft_code code = SFT_OK;
    if (!version && !asof_s) return sfti_ds_manifest_read_all(storage, arena, out, err);
    for (int i = 0; !code && again && i < AT_TRIES; i++) {
        again = false;
        code = at_once(storage, version, asof_s, arena, out, &again, err);
    }
    return code;
}
