/* The cache of digests as programs use it. Tests: test_hash.c. */
#include "hash/cache.h"

#include "base/mem.h"

#include <string.h>

/* ── By path ── */

static const sfti_cache_entry *cache_known(const sft_hash_cache *cache, const char *path) {
    os_info info;
    if (sfti_os_info_path(path, true, &info) || info.kind != OS_FILE) return NULL;
    sfti_hash_key key = sfti_hash_key_of(&info);
    return sfti_cache_find(cache, &key);
}

void sft_hash_cache_find(const sft_hash_cache *cache, const char *path, sft_hashes *hashes) {
    const sfti_cache_entry *entry = cache_known(cache, path);
    sft_hashes known;
    if (!entry) return;
    sfti_cache_hashes(entry, &known);
    sfti_hashes_merge(hashes, &known);
}

void sft_hash_cache_mark(sft_hash_cache *cache, const char *path, const char *name,
                         uint64_t time) {
    os_info info;
    if (strlen(name) >= SFT_HASH_MARK_SIZE) return;
    if (sfti_os_info_path(path, true, &info) || info.kind != OS_FILE) return;
    sfti_hash_key key = sfti_hash_key_of(&info);
    sfti_cache_entry *entry = sfti_cache_entry_of(cache, &key);
    if (!entry) return;
    entry->mark.time = time;
    memcpy(entry->mark.name, name, strlen(name) + 1);
    cache->changed = true;
}

bool sft_hash_cache_marked(const sft_hash_cache *cache, const char *path, const char *name,
                           uint64_t *time) {
    const sfti_cache_entry *entry = cache_known(cache, path);
    if (!entry || !*name || strcmp(entry->mark.name, name) != 0) return false;
    *time = entry->mark.time;
    return true;
}

/* ── Closing ── */

const sft_error *sft_hash_cache_note(const sft_hash_cache *cache) {
    return cache->note.code ? &cache->note : NULL;
}

size_t sft_hash_cache_count(const sft_hash_cache *cache) {
    return cache->count;
}

void sft_hash_cache_close(sft_hash_cache *cache) {
    if (!cache) return;
    sft_allocator alloc = cache->alloc;
    sfti_cache_drop(cache);
    sfti_release(&alloc, cache->path, cache->path_size);
    sfti_release(&alloc, cache, sizeof *cache);
}
