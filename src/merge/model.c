/* Models to be merged, with the values of quantised tensors. Tests: tests/merge. */
#include "merge/work.h"

#include "base/error.h"
#include "bytes/source.h"
#include "layout/layout.h"
#include "safetensors_hash.h"
#include "safetensors_report.h"
#include "set/aliases.h"
#include "set/image.h"

#include <string.h>

/* ── Whether files change meanwhile ── */

struct sfti_merge_seen {
    bool known; /* a file of this system */
    os_info info;
};

static struct sfti_merge_seen look_at(const sft_set *set, size_t shard) {
    const sft_source source = sft_file_source(sft_set_shard_at(set, shard));
    int fd = sfti_source_descriptor(&source);
    struct sfti_merge_seen seen;
    memset(&seen, 0, sizeof seen);
    seen.known = fd >= 0 && sfti_os_info_fd(fd, &seen.info) == 0;
    return seen;
}

struct sfti_merge_seen *sfti_merge_look(const sft_set *set, sfti_arena *arena) {
    size_t shards = sft_set_shard_count(set);
    struct sfti_merge_seen *seen = sfti_arena_array(arena, shards, sizeof *seen);
    for (size_t s = 0; seen && s < shards; s++) seen[s] = look_at(set, s);
    return seen;
}

bool sfti_merge_seen_again(const struct sfti_merge_seen *was, size_t shards,
                           const sfti_merge_model *model) {
    bool same = sft_set_shard_count(model->stored) == shards;
    for (size_t s = 0; same && s < shards; s++) {
        const os_info *a = &was[s].info, *b = &model->seen[s].info;
        same = was[s].known && model->seen[s].known && a->device == b->device
            && a->inode == b->inode && a->size == b->size && a->mtime_ns == b->mtime_ns
            && a->ctime_ns == b->ctime_ns;
    }
    return same;
}

bool sfti_merge_is_local(const sfti_merge_model *model) {
    size_t count = sft_set_shard_count(model->stored), s = 0;
    while (s < count && model->seen[s].known) s++;
    return s == count;
}

sft_code sfti_merge_models_check(const sfti_merge_model *models, size_t count, size_t *blame,
                                 sft_error *err) {
    for (size_t m = 0; m < count; m++)
        for (size_t s = 0; s < sft_set_shard_count(models[m].stored); s++) {
            struct sfti_merge_seen was = models[m].seen[s], is = look_at(models[m].stored, s);
            if (was.known == is.known && was.info.size == is.info.size
                && was.info.mtime_ns == is.info.mtime_ns)
                continue;
            *blame = m;
            return sfti_fail(err, SFT_IO_READ, "expected models that stay as they are while they "
                             "are merged, found that this one changed: nothing was written");
        }
    return SFT_OK;
}

/* ── Other names ── */

static bool has_record(const sft_set *set, sft_pair pair) {
    sft_span of = { "", 0 };
    for (size_t s = 0; s < sft_set_shard_count(set); s++)
        if (sft_file_metadata_get(sft_set_shard_at(set, s), pair.key, &of)
            && sft_span_equal(of, pair.value))
            return true;
    return false;
}

/* One tensor of a model by two names must not be two of another, or have the other name there: one
 * of them would be left as it is. */
static sft_code check_other_name(const sft_set *other, sft_pair pair, sft_error *err) {
    if (!sft_set_find(other, pair.key, NULL)) return SFT_OK;
    bool both = sft_set_find(other, pair.value, NULL) != NULL;
    sfti_fail_tensor(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET, pair.key,
                     "expected only \"%.*s\", whose other name this is by the metadata of another "
                     "model, found a tensor of this name%s", SFTI_CLIP(pair.value, 200),
                     both ? ", too" : " alone: rename it to that");
    if (both) sfti_hint(err, SFT_HINT_IMPORT_SHARED);
    return SFT_BAD_ARGUMENT;
}

sft_code sfti_merge_models_alike(const sfti_merge_model *models, size_t count, size_t *blame,
                                 sft_error *err) {
    for (size_t i = 0; i < count; i++) {
        const sft_set *set = models[i].stored;
        for (size_t s = 0; s < sft_set_shard_count(set); s++)
            for (size_t k = 0; k < sft_file_metadata_count(sft_set_shard_at(set, s)); k++) {
                sft_pair pair = sft_file_metadata_at(sft_set_shard_at(set, s), k);
                if (!sfti_set_is_alias(set, pair)) continue;
                bool alpha = sfti_ends(pair.key, ".alpha");
                sft_code code = SFT_OK;
                for (size_t j = 0; !code && !alpha && j < count; j++) {
                    code = check_other_name(models[j].stored, pair, err);
                    *blame = code ? j : *blame;
                }
                if (code) return code;
                for (size_t j = 0; alpha && j < count; j++)
                    if (!has_record(models[j].stored, pair)) {
                        *blame = j;
                        sfti_fail_tensor(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET, pair.key,
                                         "expected metadata of all models to say that it is "
                                         "\"%.*s\", found one whose do not",
                                         SFTI_CLIP(pair.value, 200));
                        sfti_hint(err, SFT_HINT_IMPORT_SHARED);
                        return SFT_BAD_ARGUMENT;
                    }
            }
    }
    return SFT_OK;
}

/* ── Values ── */

/* Scales that nothing was computed with: values without them mean nothing. */
static sft_code check_scales(const sft_set *set, const sft_convert_options *options,
                             sft_error *err) {
    sft_convert_options plain = SFT_CONVERT_OPTIONS_INIT;
    sft_conversion *scales = NULL;
    plain.alloc = options->alloc;
    sft_code code = sft_conversion_new(set, SFT_F32, &plain, &scales, err);
    for (size_t i = 0; !code && i < sft_set_tensor_count(set); i++) {
        const sft_tensor *tensor = sft_set_tensor_at(set, i);
        sft_convert_action action = sft_conversion_action(scales, i, NULL);
        if (action == SFT_CONVERT_SCALED || action == SFT_CONVERT_SCALE)
            code = sfti_fail_tensor(err, SFT_CAST_DTYPE, tensor->offset, tensor->name,
                                    "expected values that can be computed, found a tensor %s in a "
                                    "layout that is not known", action == SFT_CONVERT_SCALED
                                    ? "with a scale" : "that is one's scale");
    }
    sft_conversion_free(scales);
    return code;
}

/* Which tensors of the set have these names. */
static sft_code mark_computed(const sft_set *set, const sft_span *names, size_t count,
                              sfti_arena *arena, const uint8_t **out, sft_error *err) {
    size_t tensors = sft_set_tensor_count(set);
    uint8_t *marks = sfti_arena_array(arena, tensors, 1);
    if (!marks) return sfti_fail_memory(err, tensors);
    memset(marks, 0, tensors);
    for (size_t i = 0; i < count; i++) {
        const sft_tensor *found = sft_set_find(set, names[i], NULL);
        if (found) marks[sft_file_tensor_index(sft_set_shard_at(set, 0), found)] = 1;
    }
    *out = marks;
    return SFT_OK;
}

sft_code sfti_merge_model_open(sft_set **set, const sft_set *stored, const char *path,
                               const sft_files *files, sfti_arena *arena, sfti_merge_model *out,
                               sft_error *err) {
    sft_convert_options options = SFT_CONVERT_OPTIONS_INIT;
    sft_conversion *values = NULL;
    sft_set *whole = *set;
    size_t tensors = sft_set_tensor_count(whole), count = 0;
    if (!stored) stored = whole;
    options.dequantize = true;
    options.files = files;
    options.alloc = &arena->alloc;
    *out = (sfti_merge_model){ .set = whole, .stored = stored,
                               .seen = sfti_merge_look(stored, arena) };
    sft_code code = out->seen ? SFT_OK : sfti_fail_memory(err, sizeof *out->seen);
    if (!code) code = sft_conversion_new(whole, SFT_F32, &options, &values, err);
    if (!code && sft_conversion_count(values, SFT_CONVERT_DEQUANTIZE) > 0) {
        sft_span *names = sfti_arena_array(arena, tensors, sizeof *names);
        if (!names) code = sfti_fail_memory(err, tensors * sizeof *names);
        for (size_t i = 0; !code && i < tensors; i++)
            if (sft_conversion_action(values, i, NULL) == SFT_CONVERT_DEQUANTIZE)
                names[count++] = sft_conversion_part(values, i).spec.name;
        if (!code) {
            *set = NULL; /* closed with the other, or on failure */
            code = sft_conversion_set(values, whole, path, set, err);
            values = NULL;
        }
        if (!code) code = mark_computed(*set, names, count, arena, &out->computed, err);
        out->set = *set;
    }
    sft_conversion_free(values);
    if (!code) code = check_scales(*set, &options, err);
    if (!code) return SFT_OK;
    sft_set_close(*set);
    *set = NULL;
    return code;
}

sft_code sfti_merge_model_rename(sft_set **set, const sft_set *reference, sfti_arena *arena,
                                 sfti_merge_model *model, sft_error *err) {
    const sft_set *before = *set;
    const uint8_t *computed = model->computed;
    sfti_layout_origin *origins = NULL;
    sft_set *taken = *set;
    sft_code code = sfti_layout_like(reference, &taken, 1, &arena->alloc, arena, &origins, set,
                                     err);
    if (code || *set == before) return code;
    size_t count = sft_set_tensor_count(*set);
    uint8_t *marks = computed ? sfti_arena_array(arena, count, 1) : NULL;
    if (computed && !marks) return sfti_fail_memory(err, count);
    for (size_t i = 0; computed && i < count; i++)
        marks[i] = origins[i].set == 0 && computed[origins[i].tensor];
    model->set = *set;
    model->computed = marks;
    return SFT_OK;
}

sft_code sfti_merge_values_hash(const sfti_merge_model *model, sfti_arena *arena,
                                const sft_job *job, sft_span *digest, sft_error *err) {
    if (!model->computed) return SFT_OK;
    sft_hashes *hashes = sfti_arena_take(arena, sizeof *hashes);
    if (!hashes) return sfti_fail_memory(err, sizeof *hashes);
    *hashes = (sft_hashes)SFT_HASHES_INIT(0);
    sft_code code = sft_hash_set(model->set, SFT_HASH_BIT(SFT_HASH_CONTENT), hashes, job, err);
    sft_span found = code ? *digest : sft_span_cstr(sft_hashes_get(hashes, SFT_HASH_CONTENT));
    if (digest->len > 0 && !sft_span_equal(*digest, found))
        return sfti_fail(err, SFT_TENSOR_NOT_FOUND, "expected the same quantised model to stand "
                         "for the values that it had, found others: does its config.json or header "
                         "tell other layouts?");
    *digest = found;
    return code;
}

/* ── Models that stay the caller's ── */

typedef struct lent_model {
    sfti_arena arena;
    const sft_set *set;
} lent_model;

static void close_lent(void *owner) {
    sfti_arena arena = ((lent_model *)owner)->arena; /* which holds the owner */
    sfti_arena_free(&arena);
}

static uint32_t lent_mode(const void *owner) {
    return sft_set_output_mode(((const lent_model *)owner)->set, NULL);
}

sft_code sfti_merge_model_lend(const sft_set *set, const sft_allocator *alloc, sft_set **out,
                               sft_error *err) {
    sfti_arena arena = { .alloc = sfti_allocator(alloc) };
    const sft_file *first = sft_set_shard_at(set, 0);
    size_t count = sft_set_tensor_count(set), shards = sft_set_shard_count(set);
    size_t pairs = sft_file_metadata_count(first);
    sft_plan_options plan = SFT_PLAN_OPTIONS_INIT;
    lent_model *owner = sfti_arena_take(&arena, sizeof *owner);
    sft_source *sources = sfti_arena_array(&arena, shards, sizeof *sources);
    sft_part *parts = sfti_arena_array(&arena, count, sizeof *parts);
    sft_pair *metadata = sfti_arena_array(&arena, pairs, sizeof *metadata);
    *out = NULL;
    if (!owner || !sources || !parts || !metadata) {
        sfti_arena_free(&arena);
        return sfti_fail_memory(err, count * sizeof *parts);
    }
    for (size_t s = 0; s < shards; s++) sources[s] = sft_file_source(sft_set_shard_at(set, s));
    for (size_t i = 0; i < count; i++)
        parts[i] = sft_part_of(sft_set_tensor_at(set, i), &sources[sft_set_tensor_shard(set, i)]);
    for (size_t i = 0; i < pairs; i++) metadata[i] = sft_file_metadata_at(first, i);
    *owner = (lent_model){ arena, set };
    plan.alloc = &owner->arena.alloc;
    sfti_image_of of = { .parts = parts, .count = count, .metadata = metadata,
                         .metadata_count = pairs, .plan = &plan, .arena = &owner->arena,
                         .owner = owner, .close = close_lent, .mode = lent_mode };
    return sfti_image_set(&of, sft_set_shard_path(set, 0), out, err);
}
