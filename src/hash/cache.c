#include "base/checked.h"
#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "hash/hash.h"
#include "os/os.h"

#include <errno.h>
#include <string.h>

/*   {"safetensors_hash_cache":1}
 *   {"device":1,"inode":2,"size":3,"mtime_ns":4,"hashes":{"sha256":"...","blake3":"..."},
 *    "mark":{"name":"...","time":5}}
 *   ... a line per file */

#define CACHE_MOST (UINT64_C(1) << 30)
static const char cache_first[] = "{\"safetensors_hash_cache\":1}\n";

typedef struct cache_mark {
    uint64_t time;
    char name[SFT_HASH_MARK_ROOM]; /* "": none */
} cache_mark;

typedef struct cache_entry {
    sfti_hash_key key;
    sft_hashes hashes; /* asked is not used */
    cache_mark mark;
} cache_entry;

struct sft_hash_cache {
    sft_allocator alloc;
    char *path;
    size_t path_size;
    cache_entry *entries;
    uint32_t *slots; /* entry + 1 by hash of its key; a power of two of them */
    size_t count, room; /* slots: 2 * room */
    bool changed;
    sft_error note; /* code SFT_OK: none */
};

/* ── Look-up ── */

static size_t cache_slot(const sft_hash_cache *cache, const sfti_hash_key *key) {
    uint64_t h = key->inode * UINT64_C(0x9e3779b97f4a7c15);
    h = (h ^ h >> 29 ^ key->mtime ^ key->device << 40) * UINT64_C(0xbf58476d1ce4e5b9);
    h = (h ^ h >> 32 ^ key->size) * UINT64_C(0x94d049bb133111eb);
    size_t mask = 2 * cache->room - 1, at = (size_t)(h >> 17) & mask;
    while (cache->slots[at]) {
        const sfti_hash_key *there = &cache->entries[cache->slots[at] - 1].key;
        if (there->inode == key->inode && there->device == key->device
            && there->size == key->size && there->mtime == key->mtime)
            break;
        at = (at + 1) & mask;
    }
    return at;
}

static void cache_drop(sft_hash_cache *cache) {
    sfti_release(&cache->alloc, cache->entries, cache->room * sizeof *cache->entries);
    sfti_release(&cache->alloc, cache->slots, 2 * cache->room * sizeof *cache->slots);
    cache->entries = NULL;
    cache->slots = NULL;
    cache->count = cache->room = 0;
}

static bool cache_grow(sft_hash_cache *cache) {
    size_t room = cache->room ? 2 * cache->room : 64;
    sft_hash_cache bigger = *cache;
    uint64_t bytes;
    if (room > UINT32_MAX / 4 || !sfti_mul(room, sizeof(cache_entry), &bytes)) return false;
    bigger.entries = sfti_take(&cache->alloc, (size_t)bytes);
    bigger.slots = sfti_take(&cache->alloc, 2 * room * sizeof *bigger.slots);
    bigger.room = room;
    if (!bigger.entries || !bigger.slots) {
        cache_drop(&bigger);
        return false;
    }
    memset(bigger.slots, 0, 2 * room * sizeof *bigger.slots);
    for (size_t i = 0; i < cache->count; i++) {
        bigger.entries[i] = cache->entries[i];
        bigger.slots[cache_slot(&bigger, &bigger.entries[i].key)] = (uint32_t)(i + 1);
    }
    bigger.count = cache->count;
    cache_drop(cache);
    *cache = bigger;
    return true;
}

/* The entry of a key, made if there is none; NULL when out of memory. */
static cache_entry *cache_entry_of(sft_hash_cache *cache, const sfti_hash_key *key) {
    if (cache->count == cache->room && !cache_grow(cache)) return NULL;
    size_t at = cache_slot(cache, key);
    if (!cache->slots[at]) {
        cache_entry *entry = &cache->entries[cache->count++];
        memset(entry, 0, sizeof *entry);
        entry->key = *key;
        entry->hashes.asked = SFT_HASH_ALL;
        cache->slots[at] = (uint32_t)cache->count;
    }
    return &cache->entries[cache->slots[at] - 1];
}

void sfti_hash_cache_get(const sft_hash_cache *cache, const sfti_hash_key *key,
                         sft_hashes *hashes) {
    if (cache->count == 0) return;
    uint32_t place = cache->slots[cache_slot(cache, key)];
    if (place) sfti_hashes_merge(hashes, &cache->entries[place - 1].hashes);
}

void sfti_hash_cache_put(sft_hash_cache *cache, const sfti_hash_key *key,
                         const sft_hashes *hashes) {
    cache_entry *entry = cache_entry_of(cache, key);
    if (!entry) return;
    uint32_t before = entry->hashes.known;
    sfti_hashes_merge(&entry->hashes, hashes);
    if (entry->hashes.known != before) cache->changed = true;
}

/* ── By path ── */

static bool cache_key_of(const char *path, sfti_hash_key *key) {
    os_info info;
    if (os_info_path(path, true, &info) || info.kind != OS_FILE) return false;
    *key = (sfti_hash_key){ info.device, info.inode, info.size, (uint64_t)info.mtime_ns };
    return true;
}

static cache_entry *cache_known(const sft_hash_cache *cache, const char *path) {
    sfti_hash_key key;
    if (cache->count == 0 || !cache_key_of(path, &key)) return NULL;
    uint32_t place = cache->slots[cache_slot(cache, &key)];
    return place ? &cache->entries[place - 1] : NULL;
}

void sft_hash_cache_find(const sft_hash_cache *cache, const char *path, sft_hashes *hashes) {
    const cache_entry *entry = cache_known(cache, path);
    if (entry) sfti_hashes_merge(hashes, &entry->hashes);
}

void sft_hash_cache_mark(sft_hash_cache *cache, const char *path, const char *name,
                         uint64_t time) {
    sfti_hash_key key;
    if (strlen(name) >= SFT_HASH_MARK_ROOM || !cache_key_of(path, &key)) return;
    cache_entry *entry = cache_entry_of(cache, &key);
    if (!entry) return;
    entry->mark.time = time;
    memcpy(entry->mark.name, name, strlen(name) + 1);
    cache->changed = true;
}

bool sft_hash_cache_marked(const sft_hash_cache *cache, const char *path, const char *name,
                           uint64_t *time) {
    const cache_entry *entry = cache_known(cache, path);
    if (!entry || !*name || strcmp(entry->mark.name, name) != 0) return false;
    *time = entry->mark.time;
    return true;
}

/* ── Reading ── */

/* Whether these are the hex digits of such a digest. */
static bool is_cache_digest(sft_span text, sft_hash_algo algo) {
    if (text.len != sft_hash_digits(algo)) return false;
    for (size_t i = 0; i < text.len; i++) {
        char c = text.data[i];
        if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'f'))) return false;
    }
    return true;
}

static bool read_cache_hashes(sfti_json *json, sft_hashes *out) {
    uint32_t bit;
    if (sfti_json_next(json) != SFTI_JSON_OBJECT) return false;
    while (sfti_json_next(json) == SFTI_JSON_KEY) {
        bool known = sft_hash_parse(json->text, &bit, NULL) == SFT_OK && bit != SFT_HASH_ALL;
        sft_hash_algo algo = SFT_HASH_SHA256;
        while (known && bit >> (algo + 1)) algo++;
        if (sfti_json_next(json) != SFTI_JSON_STRING) return false;
        if (!known) continue; /* of a later version */
        if (bit != SFT_HASH_BIT(algo) || !is_cache_digest(json->text, algo)) return false;
        memcpy(out->text[algo], json->text.data, json->text.len);
        out->known |= bit;
    }
    return json->type == SFTI_JSON_OBJECT_END;
}

typedef struct cache_field {
    const char *name;
    size_t at;
} cache_field;

static const cache_field cache_fields[] = {
    { "device", offsetof(sfti_hash_key, device) },
    { "inode", offsetof(sfti_hash_key, inode) },
    { "size", offsetof(sfti_hash_key, size) },
    { "mtime_ns", offsetof(sfti_hash_key, mtime) },
};

static bool read_cache_number(sfti_json *json, sfti_hash_key *key, unsigned *seen) {
    for (unsigned i = 0; i < 4; i++) {
        if (!sft_span_equal(json->text, sft_span_cstr(cache_fields[i].name))) continue;
        if (sfti_json_next(json) != SFTI_JSON_UINT) return false;
        memcpy((char *)key + cache_fields[i].at, &json->value, sizeof json->value);
        *seen |= 1u << i;
        return true;
    }
    sfti_json_next(json);
    sfti_json_skip(json);
    return json->type != SFTI_JSON_ERROR;
}

static bool read_cache_mark(sfti_json *json, cache_mark *out) {
    if (sfti_json_next(json) != SFTI_JSON_OBJECT) return false;
    while (sfti_json_next(json) == SFTI_JSON_KEY) {
        bool name = sft_span_equal(json->text, sft_span_cstr("name"));
        bool time = sft_span_equal(json->text, sft_span_cstr("time"));
        sfti_json_next(json);
        if (name) {
            if (json->type != SFTI_JSON_STRING || json->text.len >= SFT_HASH_MARK_ROOM)
                return false;
            out->name[sfti_json_decode(json->text, out->name)] = 0;
        } else if (time) {
            if (json->type != SFTI_JSON_UINT) return false;
            out->time = json->value;
        } else {
            sfti_json_skip(json);
        }
    }
    return json->type == SFTI_JSON_OBJECT_END;
}

/* One line; damage is false, memory running out too. */
static bool read_cache_line(sft_hash_cache *cache, sft_span line) {
    cache_entry found = { .hashes = { .asked = SFT_HASH_ALL } };
    unsigned seen = 0;
    sfti_json json;
    sfti_json_begin(&json, line.data, line.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return false;
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        bool read;
        if (sft_span_equal(json.text, sft_span_cstr("hashes")))
            read = read_cache_hashes(&json, &found.hashes);
        else if (sft_span_equal(json.text, sft_span_cstr("mark")))
            read = read_cache_mark(&json, &found.mark);
        else read = read_cache_number(&json, &found.key, &seen);
        if (!read) return false;
    }
    if (json.type != SFTI_JSON_OBJECT_END || sfti_json_next(&json) != SFTI_JSON_END) return false;
    if (seen != 15) return false;
    cache_entry *entry = cache_entry_of(cache, &found.key);
    if (!entry) return false;
    entry->hashes = found.hashes;
    entry->mark = found.mark;
    return true;
}

static void cache_note(sft_hash_cache *cache, const char *found, uint64_t offset) {
    cache_drop(cache);
    sfti_fail(&cache->note, SFT_JSON_SYNTAX, offset,
              "expected a cache of digests, found %s: it is ignored, and written anew", found);
    cache->note.hint = NULL;
}

static void read_cache_text(sft_hash_cache *cache, sft_span text) {
    size_t first = sizeof cache_first - 1, at = first;
    if (text.len < first || memcmp(text.data, cache_first, first) != 0) {
        cache_note(cache, "something else", 0);
        return;
    }
    while (at < text.len) {
        const char *end = memchr(text.data + at, '\n', text.len - at);
        sft_span line = { text.data + at, end ? (size_t)(end - text.data) - at : 0 };
        if (!end || !read_cache_line(cache, line)) {
            cache_note(cache, "a damaged line", at);
            return;
        }
        at += line.len + 1;
    }
}

static sft_code cache_os_fail(sft_error *err, sft_code code, int error, const char *what) {
    char room[128];
    return sfti_fail_os(err, code, error, os_error_text(error, room, sizeof room), what);
}

static sft_code cache_read_bytes(int fd, char *bytes, size_t *len, sft_error *err) {
    size_t have = 0, got = 1;
    while (have < *len && got > 0) {
        int error = os_pread(fd, bytes + have, *len - have, have, &got);
        if (error) return cache_os_fail(err, SFT_IO_READ, error, "read the cache");
        have += got;
    }
    *len = have;
    return SFT_OK;
}

static sft_code cache_read_fd(sft_hash_cache *cache, int fd, sft_error *err) {
    os_info info;
    int error = os_info_fd(fd, &info);
    if (error) return cache_os_fail(err, SFT_IO_OPEN, error, "look at the cache");
    if (info.kind != OS_FILE)
        return sfti_fail(err, SFT_IO_NOT_FILE, SFT_NO_OFFSET,
                         "expected a file for the cache, found something else");
    if (info.size == 0) return SFT_OK;
    if (info.size > CACHE_MOST) {
        cache_note(cache, "more than 1 GiB", SFT_NO_OFFSET);
        return SFT_OK;
    }
    size_t room = (size_t)info.size, len = room;
    char *bytes = sfti_take(&cache->alloc, room);
    if (!bytes) return sfti_fail_memory(err, room);
    sft_code code = cache_read_bytes(fd, bytes, &len, err);
    if (code == SFT_OK) read_cache_text(cache, (sft_span){ bytes, len });
    sfti_release(&cache->alloc, bytes, room);
    return code;
}

static sft_code cache_read(sft_hash_cache *cache, sft_error *err) {
    int fd;
    int error = os_open_read(cache->path, &fd);
    if (error == ENOENT) return SFT_OK;
    if (error) return cache_os_fail(err, SFT_IO_OPEN, error, "open the cache");
    sft_code code = cache_read_fd(cache, fd, err);
    os_close(fd);
    return code;
}

sft_code sft_hash_cache_open(const char *path, const sft_allocator *alloc,
                             sft_hash_cache **out, sft_error *err) {
    sft_allocator own = sfti_allocator(alloc);
    *out = NULL;
    if (!path)
        return sfti_fail(err, SFT_BAD_ARGUMENT, SFT_NO_OFFSET, "expected a path, found NULL");
    sft_hash_cache *cache = sfti_take(&own, sizeof *cache);
    if (!cache) return sfti_fail_memory(err, sizeof *cache);
    memset(cache, 0, sizeof *cache);
    cache->alloc = own;
    cache->path_size = strlen(path) + 1;
    cache->path = sfti_take(&own, cache->path_size);
    sft_code code = cache->path ? SFT_OK : sfti_fail_memory(err, cache->path_size);
    if (code == SFT_OK) {
        memcpy(cache->path, path, cache->path_size);
        code = cache_read(cache, err);
    }
    if (code == SFT_OK) *out = cache;
    else sft_hash_cache_close(cache);
    return code;
}

const sft_error *sft_hash_cache_note(const sft_hash_cache *cache) {
    return cache->note.code ? &cache->note : NULL;
}

size_t sft_hash_cache_count(const sft_hash_cache *cache) {
    return cache->count;
}

/* ── Writing ── */

static void write_cache_mark(sfti_json_writer *w, const cache_mark *mark) {
    sfti_json_key(w, "mark");
    sfti_json_open(w, '{');
    sfti_json_key(w, "name");
    sfti_json_cstr(w, mark->name);
    sfti_json_key(w, "time");
    sfti_json_uint(w, mark->time);
    sfti_json_close(w, '}');
}

static void write_cache_entry(sfti_json_writer *w, const cache_entry *entry) {
    sfti_json_open(w, '{');
    for (unsigned i = 0; i < 4; i++) {
        uint64_t value;
        memcpy(&value, (const char *)&entry->key + cache_fields[i].at, sizeof value);
        sfti_json_key(w, cache_fields[i].name);
        sfti_json_uint(w, value);
    }
    sfti_json_key(w, "hashes");
    sfti_json_open(w, '{');
    for (unsigned i = 0; i < SFT_HASH_COUNT; i++) {
        if (!(entry->hashes.known & SFT_HASH_BIT(i))) continue;
        sfti_json_key(w, sft_hash_name((sft_hash_algo)i));
        sfti_json_cstr(w, entry->hashes.text[i]);
    }
    sfti_json_close(w, '}');
    if (*entry->mark.name) write_cache_mark(w, &entry->mark);
    sfti_json_close(w, '}');
    w->comma = false;
    sfti_json_raw(w, sft_span_cstr("\n"));
    w->comma = false;
}

sft_code sft_hash_cache_save(sft_hash_cache *cache, sft_error *err) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    sft_sink sink;
    sfti_json_writer w;
    if (!cache->changed) return SFT_OK;
    options.no_sync = true; /* what is lost is computed again */
    options.link = SFT_LINK_FOLLOW;
    options.alloc = &cache->alloc;
    sft_code code = sft_sink_path(cache->path, &options, &sink, err);
    if (code != SFT_OK) return code;
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_raw(&w, sft_span_cstr(cache_first));
    w.comma = false;
    for (size_t i = 0; i < cache->count; i++) write_cache_entry(&w, &cache->entries[i]);
    code = sfti_json_done(&w);
    if (code != SFT_OK) {
        sink.abandon(sink.ctx);
        return code;
    }
    code = sink.finish(sink.ctx, err);
    if (code == SFT_OK) cache->changed = false;
    return code;
}

void sft_hash_cache_close(sft_hash_cache *cache) {
    if (!cache) return;
    sft_allocator alloc = cache->alloc;
    cache_drop(cache);
    sfti_release(&alloc, cache->path, cache->path_size);
    sfti_release(&alloc, cache, sizeof *cache);
}
