/* A model with each other name of a tensor, which only metadata record, as a tensor of its own.
 * Tests: tests/cli/convert/aliases.txt, tests/cli/lora/aliases.txt. */
#include "convert/named.h"

#include "base/error.h"
#include "base/names.h"
#include "keys/digest_keys.h"
#include "keys/listed.h"
#include "os/io.h"
#include "safetensors_report.h"
#include "set/aliases.h"
#include "set/image.h"

#include <string.h>

/* The owner of its image. */
typedef struct named_set {
    sfti_arena arena;
    const sft_set *set;
    sft_set *owned;
    sft_plan_options plan;
    sft_source *files;
    sft_part *parts;
    sft_pair *pairs;
    size_t pair_count, count;
} named_set;

static void close_named(void *owner) {
    named_set own = *(named_set *)owner; /* which its arena holds */
    sfti_arena_free(&own.arena);
    sft_set_close(own.owned);
}

static uint32_t named_mode(const void *owner) {
    return sft_set_output_mode(((const named_set *)owner)->set, NULL);
}

static sft_span key_of_seen(const void *pairs, uint32_t i) {
    return ((const sft_pair *)pairs)[i].key;
}

bool sfti_set_listed(const sft_set *set, sfti_arena *arena, sft_span *out) {
    size_t shards = sft_set_shard_count(set), count = 0;
    sft_span *lists = sfti_arena_array(arena, shards, sizeof *lists);
    *out = (sft_span){ NULL, 0 };
    if (!lists) return false;
    for (size_t s = 0; s < shards; s++)
        count += sft_file_metadata_get(sft_set_shard_at(set, s), sft_span_cstr(SFTI_LISTED_KEY),
                                       &lists[count]);
    return count < 2 || sfti_lists_joined(lists, count, arena, out);
}

/* The first of pairs with one key counts, as everywhere; but of what says how tensors are read,
 * none is left out of a model that comes in the place of another. */
static sft_code list_named_pairs(named_set *a, uint64_t most, bool replaces, sft_error *err) {
    sfti_names keys;
    sft_span listed;
    size_t seen = 0;
    sft_pair *all = sfti_arena_array(&a->arena, most, sizeof *all);
    a->pairs = sfti_arena_array(&a->arena, most, sizeof *a->pairs);
    if (!all || !a->pairs || !sfti_set_listed(a->set, &a->arena, &listed)
        || !sfti_names_draw(&keys, most, key_of_seen, all, &a->arena))
        return sfti_fail_memory(err, most * sizeof *all);
    for (size_t s = 0; s < sft_set_shard_count(a->set); s++) {
        const sft_file *file = sft_set_shard_at(a->set, s);
        for (size_t i = 0; i < sft_file_metadata_count(file); i++) {
            sft_pair pair = all[seen] = sft_file_metadata_at(file, i);
            size_t shard;
            uint32_t first = sfti_names_add(&keys, pair.key, (uint32_t)seen);
            if (replaces && sfti_is_reading_key(pair.key)
                && !sft_span_equal(all[first].value, pair.value))
                return sfti_fail(err, SFT_CAST_DTYPE, "expected one %.*s, which says how tensors "
                                 "are read, in all shards, found different ones",
                                 SFTI_CLIP(pair.key, 40));
            if (first != seen) continue;
            seen++;
            if (listed.data && sft_span_equal(pair.key, sft_span_cstr(SFTI_LISTED_KEY)))
                pair.value = listed;
            if (sfti_digest_key_of(pair.key) & SFTI_DIGESTS_OF_DATA) continue;
            if (!sfti_set_is_alias(a->set, pair)) {
                a->pairs[a->pair_count++] = pair;
                continue;
            }
            const sft_tensor *of = sft_set_find(a->set, pair.value, &shard);
            a->parts[a->count] = sft_part_of(of, &a->files[shard]);
            a->parts[a->count++].spec.name = pair.key;
        }
    }
    return SFT_OK;
}

sft_code sfti_set_named(const sft_set *set, sft_set *owned, const sft_allocator *alloc,
                        sft_set **out, sft_error *err) {
    sfti_arena arena = { .alloc = sfti_allocator(alloc) };
    size_t shards = sft_set_shard_count(set), tensors = sft_set_tensor_count(set);
    uint64_t pairs = 0, aliases = 0;
    *out = NULL;
    for (size_t s = 0; s < shards; s++) {
        const sft_file *file = sft_set_shard_at(set, s);
        pairs += sft_file_metadata_count(file);
        for (size_t i = 0; i < sft_file_metadata_count(file); i++)
            aliases += sfti_set_is_alias(set, sft_file_metadata_at(file, i));
    }
    if (aliases == 0) return SFT_OK;
    named_set *a = sfti_arena_take(&arena, sizeof *a);
    if (!a) return sfti_fail_memory(err, sizeof *a);
    *a = (named_set){ .arena = arena, .set = set, .plan = SFT_PLAN_OPTIONS_INIT };
    a->files = sfti_arena_array(&a->arena, shards, sizeof *a->files);
    a->parts = sfti_arena_array(&a->arena, tensors + aliases, sizeof *a->parts);
    bool room = a->files && a->parts;
    for (size_t s = 0; room && s < shards; s++)
        a->files[s] = sft_file_source(sft_set_shard_at(set, s));
    for (; room && a->count < tensors; a->count++)
        a->parts[a->count] = sft_part_of(sft_set_tensor_at(set, a->count),
                                         &a->files[sft_set_tensor_shard(set, a->count)]);
    sft_code code = room ? list_named_pairs(a, pairs, owned != NULL, err)
                         : sfti_fail_memory(err, (tensors + aliases) * sizeof *a->parts);
    if (code) {
        close_named(a);
        return code;
    }
    a->plan.level = SFT_LEVEL_COMPAT; /* whatever could be read */
    a->plan.alloc = &a->arena.alloc;
    sfti_image_of of = { .parts = a->parts, .count = a->count, .metadata = a->pairs,
                         .metadata_count = a->pair_count, .plan = &a->plan, .arena = &a->arena,
                         .owner = a, .close = close_named, .mode = named_mode,
                         .input_bytes = sft_set_file_bytes(set),
                         .is_partial = sfti_set_is_partial(set) };
    code = sfti_image_set(&of, sft_set_shard_path(set, 0), out, err);
    if (!code) a->owned = owned;
    return code;
}
