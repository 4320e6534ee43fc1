/* Metadata that name tensors. Tests: tests/cli/rename/metadata.txt, tests/cli/select/alias.txt. */
#include "support/renamed.h"

#include "base/error.h"
#include "base/order.h"
#include "keys/digest_keys.h"
#include "keys/renamed.h"
#include "set/aliases.h"

#include <string.h>

/* ── Aliases ── */

static void take_aliases(const sft_file *file, const sft_set *set, uint32_t shard,
                         cli_aliases *out) {
    for (size_t i = 0; i < sft_file_metadata_count(file); i++) {
        sft_pair pair = sft_file_metadata_at(file, i);
        bool is = set ? sfti_set_is_alias(set, pair)
                      : sfti_may_be_alias(pair) && !sft_file_find(file, pair.key)
                        && sft_file_find(file, pair.value);
        if (!is) continue;
        out->shard[out->count] = shard;
        out->pairs[out->count++] = pair;
    }
}

static sft_code begin_aliases(sfti_arena *arena, uint64_t most, cli_aliases *out, sft_error *err) {
    *out = (cli_aliases){ .pairs = sfti_arena_array(arena, most, sizeof *out->pairs),
                          .shard = sfti_arena_array(arena, most, sizeof *out->shard) };
    return out->pairs && out->shard ? SFT_OK : sfti_fail_memory(err, most * sizeof *out->pairs);
}

static uint64_t count_pairs(const sft_set *set) {
    uint64_t count = 0;
    for (size_t s = 0; s < sft_set_shard_count(set); s++)
        count += sft_file_metadata_count(sft_set_shard_at(set, s));
    return count;
}

sft_code cli_aliases_of(const sft_set *set, sfti_arena *arena, cli_aliases *out, sft_error *err) {
    sft_code code = begin_aliases(arena, count_pairs(set), out, err);
    for (size_t s = 0; !code && s < sft_set_shard_count(set); s++)
        take_aliases(sft_set_shard_at(set, s), set, (uint32_t)s, out);
    return code;
}

sft_code cli_aliases_of_file(const sft_file *file, sfti_arena *arena, cli_aliases *out,
                             sft_error *err) {
    sft_code code = begin_aliases(arena, sft_file_metadata_count(file), out, err);
    if (!code) take_aliases(file, NULL, 0, out);
    return code;
}

static int compare_alias_keys(const void *ctx, uint32_t a, uint32_t b) {
    const sft_pair *pairs = ctx;
    return sfti_bytes_compare(pairs[a].key, pairs[b].key);
}

sft_code cli_aliases_once(cli_aliases *aliases, sfti_arena *arena, sft_error *err) {
    size_t all = aliases->count;
    cli_aliases once;
    uint32_t *order = sfti_arena_sorted(arena, all, compare_alias_keys, aliases->pairs);
    if (!order) return sfti_fail_memory(err, all * sizeof *order);
    sft_code code = begin_aliases(arena, all, &once, err);
    for (size_t i = 0; !code && i < all; i++) {
        sft_pair pair = aliases->pairs[order[i]];
        if (i > 0 && sft_span_equal(pair.key, once.pairs[once.count - 1].key)) continue;
        once.shard[once.count] = aliases->shard[order[i]];
        once.pairs[once.count++] = pair;
    }
    *aliases = once;
    return code;
}

static int compare_part_names(const void *ctx, uint32_t a, uint32_t b) {
    const sft_part *parts = ctx;
    return sfti_bytes_compare(parts[a].spec.name, parts[b].spec.name);
}

static const sft_part *find_part(const sft_part *parts, const uint32_t *order, size_t count,
                                 sft_span name) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int way = sfti_bytes_compare(parts[order[middle]].spec.name, name);
        if (way == 0) return &parts[order[middle]];
        if (way < 0) low = middle + 1;
        else high = middle;
    }
    return NULL;
}

sft_code cli_aliases_add(const cli_aliases *aliases, sfti_arena *arena, const sft_part **parts,
                         size_t *count, sft_error *err) {
    uint64_t most = (uint64_t)*count + aliases->count;
    size_t all = *count;
    if (aliases->count == 0) return SFT_OK;
    sft_part *more = sfti_arena_array(arena, most, sizeof *more);
    uint32_t *order = sfti_arena_sorted(arena, all, compare_part_names, *parts);
    if (!more || !order) return sfti_fail_memory(err, most * sizeof *more);
    if (all > 0) memcpy(more, *parts, all * sizeof *more);
    for (size_t i = 0; i < aliases->count; i++) {
        const sft_part *of = find_part(more, order, *count, aliases->pairs[i].value);
        if (!of) continue;
        more[all] = *of;
        more[all++].spec.name = aliases->pairs[i].key;
    }
    *parts = more;
    *count = all;
    return SFT_OK;
}

/* ── Other names ── */

sft_code cli_renamed_pairs(const sft_set *set, const sft_pair *names, size_t count,
                           const sft_pair *aliases, size_t alias_count, sfti_arena *arena,
                           cli_changed_pair **out, size_t *out_count, sft_error *err) {
    size_t all = sft_set_tensor_count(set);
    sfti_renamed renamed;
    sft_pair *pairs = sfti_arena_array(arena, all, sizeof *pairs);
    *out = sfti_arena_array(arena, count_pairs(set), sizeof **out);
    *out_count = 0;
    if (count == 0 && alias_count == 0) return SFT_OK;
    for (size_t i = 0, at = 0; pairs && i < all; i++) {
        sft_span name = sft_set_tensor_at(set, i)->name;
        bool changes = at < count && sft_span_equal(names[at].key, name);
        pairs[i] = changes ? names[at++] : (sft_pair){ name, name };
    }
    if (!pairs || !*out
        || !sfti_renamed_begin(&renamed, pairs, all, aliases, alias_count, arena))
        return sfti_fail_memory(err, all * sizeof *pairs);
    for (size_t s = 0; s < sft_set_shard_count(set); s++) {
        const sft_file *file = sft_set_shard_at(set, s);
        for (size_t i = 0; i < sft_file_metadata_count(file); i++) {
            cli_changed_pair *one = &(*out)[*out_count];
            *one = (cli_changed_pair){ .shard = (uint32_t)s, .old = sft_file_metadata_at(file, i) };
            sft_code code = sfti_renamed_pair(&renamed, one->old, &one->now, err);
            if (code) return code;
            *out_count += !sft_span_equal(one->old.key, one->now.key)
                       || !sft_span_equal(one->old.value, one->now.value);
        }
    }
    return SFT_OK;
}

/* ── Metadata of parts ── */

static int compare_changed(const void *ctx, uint32_t a, uint32_t b) {
    const cli_changed_pair *changed = ctx;
    return sfti_bytes_compare(changed[a].old.key, changed[b].old.key);
}

/* The change of a key, or NULL. */
static const cli_changed_pair *find_changed(const cli_changed_pair *changed, const uint32_t *order,
                                            size_t count, sft_span key) {
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int way = sfti_bytes_compare(changed[order[middle]].old.key, key);
        if (way == 0) return &changed[order[middle]];
        if (way < 0) low = middle + 1;
        else high = middle;
    }
    return NULL;
}

sft_code cli_parts_change(cli *c, cli_parts *parts, bool one_file, const cli_changed_pair *changed,
                          size_t count, sft_error *err) {
    if (count == 0) return SFT_OK;
    sft_code code = cli_parts_drop_digests(c, parts, one_file, err);
    if (code) return code;
    size_t kept = 0, all = parts->metadata_count;
    uint32_t *order = sfti_arena_sorted(&parts->arena, count, compare_changed, changed);
    sft_pair *pairs = sfti_arena_array(&parts->arena, all, sizeof *pairs);
    if (!order || !pairs) return sfti_fail_memory(err, all * sizeof *pairs);
    for (size_t i = 0; i < all; i++) {
        sft_pair pair = cli_parts_pair(parts, i);
        const cli_changed_pair *one = find_changed(changed, order, count, pair.key);
        if (one) pair = one->now;
        if (pair.key.data) pairs[kept++] = pair;
    }
    parts->pairs = pairs;
    parts->metadata_count = kept;
    return SFT_OK;
}
