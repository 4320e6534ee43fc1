/* Entries of the cache of digests, by file. Tests: test_hash.c. */
#include "base/mem.h"
#include "base/names.h"
#include "base/order.h"
#include "hash/cache.h"

#include <string.h>

/* ── Digests of an entry ── */

static size_t digest_place(sft_hash_algo algo) {
    size_t at = 0;
    for (unsigned i = 0; i < (unsigned)algo; i++) at += sft_hash_digits((sft_hash_algo)i) / 2;
    return at;
}

void sfti_cache_hashes(const sfti_cache_entry *entry, sft_hashes *out) {
    memset(out, 0, sizeof *out);
    for (unsigned i = 0; i < SFT_HASH_COUNT; i++) {
        sft_hash_algo algo = (sft_hash_algo)i;
        if (entry->known & SFT_HASH_BIT(i))
            sfti_hashes_put(out, algo, entry->digests + digest_place(algo));
    }
}

static uint8_t cache_nibble(char c) {
    return (uint8_t)(c <= '9' ? c - '0' : c - 'a' + 10);
}

void sfti_cache_put_digest(sfti_cache_entry *entry, sft_hash_algo algo, const char *text) {
    uint8_t *out = entry->digests + digest_place(algo);
    for (size_t i = 0; i < sft_hash_digits(algo); i += 2)
        *out++ = (uint8_t)(cache_nibble(text[i]) << 4 | cache_nibble(text[i + 1]));
    entry->known |= SFT_HASH_BIT(algo);
}

/* ── Look-up ── */

static size_t cache_slot(const sft_hash_cache *cache, const sfti_hash_key *key) {
    sft_span bytes = { (const char *)key, sizeof *key };
    size_t mask = cache->slot_count - 1;
    size_t at = (size_t)sfti_names_hash(bytes, cache->seed) & mask;
    while (cache->slots[at]
           && memcmp(&cache->entries[cache->slots[at] - 1].key, key, sizeof *key) != 0)
        at = (at + 1) & mask;
    return at;
}

void sfti_cache_drop(sft_hash_cache *cache) {
    sfti_release(&cache->alloc, cache->entries, cache->cap * sizeof *cache->entries);
    sfti_release(&cache->alloc, cache->slots, cache->slot_count * sizeof *cache->slots);
    cache->entries = NULL;
    cache->slots = NULL;
    cache->count = cache->cap = cache->slot_count = 0;
}

static void cache_fill_slots(sft_hash_cache *cache) {
    memset(cache->slots, 0, cache->slot_count * sizeof *cache->slots);
    for (size_t i = 0; i < cache->count; i++)
        cache->slots[cache_slot(cache, &cache->entries[i].key)] = (uint32_t)(i + 1);
}

bool sfti_cache_reserve(sft_hash_cache *cache, size_t cap) {
    sft_hash_cache bigger = *cache;
    bigger.cap = cap;
    for (bigger.slot_count = 128; bigger.slot_count < 2 * cap;) bigger.slot_count *= 2;
    bigger.entries = sfti_take(&cache->alloc, cap * sizeof *bigger.entries);
    bigger.slots = sfti_take(&cache->alloc, bigger.slot_count * sizeof *bigger.slots);
    if (!bigger.entries || !bigger.slots) {
        sfti_cache_drop(&bigger);
        return false;
    }
    if (cache->count)
        memcpy(bigger.entries, cache->entries, cache->count * sizeof *cache->entries);
    sfti_cache_drop(cache);
    *cache = bigger;
    cache_fill_slots(cache);
    return true;
}

static int compare_used(const void *ctx, uint32_t a, uint32_t b) {
    const sfti_cache_entry *entries = ctx;
    return entries[a].used < entries[b].used ? -1 : entries[a].used > entries[b].used;
}

uint32_t *sfti_cache_order(const sft_hash_cache *cache) {
    uint32_t *order = sfti_take(&cache->alloc, 2 * cache->count * sizeof *order);
    for (size_t i = 0; order && i < cache->count; i++) order[i] = (uint32_t)i;
    if (order)
        sfti_sort(order, order + cache->count, cache->count, compare_used, cache->entries);
    return order;
}

/* Drops the least recently used quarter. */
static bool cache_evict(sft_hash_cache *cache) {
    size_t count = cache->count, gone = count / 4, kept = 0;
    uint32_t *order = sfti_cache_order(cache);
    if (!order) return false;
    uint64_t least = cache->entries[order[gone]].used;
    for (size_t i = 0; i < count; i++)
        if (cache->entries[i].used >= least) cache->entries[kept++] = cache->entries[i];
    sfti_release(&cache->alloc, order, 2 * count * sizeof *order);
    cache->count = kept;
    cache_fill_slots(cache);
    return true;
}

sfti_cache_entry *sfti_cache_find(const sft_hash_cache *cache, const sfti_hash_key *key) {
    uint32_t place = cache->count ? cache->slots[cache_slot(cache, key)] : 0;
    return place ? &cache->entries[place - 1] : NULL;
}

sfti_cache_entry *sfti_cache_entry_of(sft_hash_cache *cache, const sfti_hash_key *key) {
    sfti_cache_entry *entry = sfti_cache_find(cache, key);
    if (!entry) {
        size_t cap = cache->cap ? 2 * cache->cap : 64;
        if (cap > SFTI_CACHE_ENTRIES) cap = SFTI_CACHE_ENTRIES;
        if (cache->count == cache->cap
            && !(cache->cap < cap ? sfti_cache_reserve(cache, cap) : cache_evict(cache)))
            return NULL;
        cache->slots[cache_slot(cache, key)] = (uint32_t)(cache->count + 1);
        entry = &cache->entries[cache->count++];
        memset(entry, 0, sizeof *entry);
        entry->key = *key;
    }
    entry->used = ++cache->clock;
    return entry;
}

void sfti_hash_cache_get(sft_hash_cache *cache, const sfti_hash_key *key, sft_hashes *hashes) {
    sfti_cache_entry *entry = sfti_cache_find(cache, key);
    sft_hashes known;
    if (!entry) return;
    entry->used = ++cache->clock;
    sfti_cache_hashes(entry, &known);
    sfti_hashes_merge(hashes, &known);
}

void sfti_hash_cache_put(sft_hash_cache *cache, const sfti_hash_key *key,
                         const sft_hashes *hashes) {
    if (hashes->known == 0) return;
    sfti_cache_entry *entry = sfti_cache_entry_of(cache, key);
    if (!entry) return;
    for (unsigned i = 0; i < SFT_HASH_COUNT; i++) {
        if (!(hashes->known & ~entry->known & SFT_HASH_BIT(i))) continue;
        sfti_cache_put_digest(entry, (sft_hash_algo)i,
                              sft_hashes_get(hashes, (sft_hash_algo)i));
        cache->changed = true;
    }
}
