/* The file of the cache of digests. Tests: test_hash.c. */
#include "base/error.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/sink.h"
#include "hash/cache.h"
#include "os/io.h"
#include "os/os.h"

#include <errno.h>
#include <string.h>

/*   {"safetensors_hash_cache":2}
 *   {"device":1,"inode":2,"size":3,"mtime_ns":4,"ctime_ns":5,
 *    "hashes":{"sha256":"...","blake3":"..."},"mark":{"name":"...","time":6}}
 *   ... a line per file, the one used longest ago first
 *
 * Version 1 had no ctime_ns: it is recognised as a cache, but its entries are ignored. */

#define CACHE_MOST (UINT64_C(256) << 20) /* bytes that are read, from the end of the file */
static const char cache_first[] = "{\"safetensors_hash_cache\":2}\n";
static const char cache_older[] = "{\"safetensors_hash_cache\":1}\n";
#define CACHE_FIRST (sizeof cache_first - 1)
#define CACHE_LINE 64 /* least bytes of a line with an entry */

/* ── Reading ── */

static bool read_cache_hashes(sfti_json *json, sfti_cache_entry *out) {
    uint32_t bit;
    if (sfti_json_next(json) != SFTI_JSON_OBJECT) return false;
    while (sfti_json_next(json) == SFTI_JSON_KEY) {
        bool known = sft_hash_parse(json->text, &bit, NULL) == SFT_OK && bit != SFT_HASH_ALL;
        sft_hash_algo algo = SFT_HASH_SHA256;
        while (known && bit >> (algo + 1)) algo++;
        if (sfti_json_next(json) != SFTI_JSON_STRING) return false;
        if (!known) continue; /* of a later version */
        sft_span digits = json->text;
        if (bit != SFT_HASH_BIT(algo) || digits.len != sft_hash_digits(algo)) return false;
        for (size_t i = 0; i < digits.len; i++)
            if (!memchr("0123456789abcdef", digits.data[i], 16)) return false;
        sfti_cache_put_digest(out, algo, json->text.data);
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
    { "ctime_ns", offsetof(sfti_hash_key, ctime) },
};
#define CACHE_FIELDS (sizeof cache_fields / sizeof *cache_fields)

static bool read_cache_number(sfti_json *json, sfti_hash_key *key, unsigned *seen) {
    for (unsigned i = 0; i < CACHE_FIELDS; i++) {
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

static bool read_cache_mark(sfti_json *json, sfti_cache_mark *out) {
    if (sfti_json_next(json) != SFTI_JSON_OBJECT) return false;
    while (sfti_json_next(json) == SFTI_JSON_KEY) {
        bool name = sft_span_equal(json->text, sft_span_cstr("name"));
        bool time = sft_span_equal(json->text, sft_span_cstr("time"));
        sfti_json_next(json);
        if (name) {
            if (json->type != SFTI_JSON_STRING || json->text.len >= SFT_HASH_MARK_SIZE)
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

/* Reads one line; false if it is damaged or memory ran out. */
static bool read_cache_line(sft_hash_cache *cache, sft_span line) {
    sfti_cache_entry found = { .known = 0 };
    unsigned seen = 0;
    sfti_json json;
    sfti_json_begin(&json, line.data, line.len);
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT) return false;
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        bool read;
        if (sft_span_equal(json.text, sft_span_cstr("hashes")))
            read = read_cache_hashes(&json, &found);
        else if (sft_span_equal(json.text, sft_span_cstr("mark")))
            read = read_cache_mark(&json, &found.mark);
        else read = read_cache_number(&json, &found.key, &seen);
        if (!read) return false;
    }
    if (json.type != SFTI_JSON_OBJECT_END || sfti_json_next(&json) != SFTI_JSON_END) return false;
    if (seen != (1u << CACHE_FIELDS) - 1) return false;
    if (!found.known && !*found.mark.name) return true; /* an empty entry */
    sfti_cache_entry *entry = sfti_cache_entry_of(cache, &found.key);
    if (!entry) return false;
    found.used = entry->used;
    *entry = found;
    return true;
}

/* text: the lines at `offset` of the file. Skips the oldest if there are more than can be kept. */
static void read_cache_text(sft_hash_cache *cache, sft_span text, uint64_t offset) {
    size_t lines = 0, at = 0;
    for (const char *line = text.data, *end = line + text.len; line < end; lines++) {
        const char *next = memchr(line, '\n', (size_t)(end - line));
        line = next ? next + 1 : end;
    }
    size_t skip = lines > SFTI_CACHE_ENTRIES ? lines - SFTI_CACHE_ENTRIES : 0;
    size_t cap = lines - skip < text.len / CACHE_LINE ? lines - skip : text.len / CACHE_LINE;
    if (cap > 0) (void)sfti_cache_reserve(cache, cap);
    while (at < text.len) {
        const char *end = memchr(text.data + at, '\n', text.len - at);
        sft_span line = { text.data + at, end ? (size_t)(end - text.data) - at : 0 };
        if (skip > 0 && end) skip--;
        else if (!end || !read_cache_line(cache, line)) {
            sfti_cache_drop(cache);
            sfti_fail_byte(&cache->note, SFT_JSON_SYNTAX, offset + at, "expected a cache of "
                           "digests, found a damaged line: the cache is ignored and rewritten");
            cache->note.hint = SFT_HINT_NONE;
            return;
        }
        at += line.len + 1;
    }
}

static sft_code cache_read_bytes(int fd, uint64_t offset, char *bytes, size_t *len,
                                 sft_error *err) {
    int error = sfti_read_all(fd, bytes, *len, offset, len);
    return error ? sfti_io_fail(err, SFT_IO_READ, error, "read the cache") : SFT_OK;
}

/* ── Which file may be a cache ── */

static sft_code cache_refuse(sft_error *err, sft_code code, const char *found,
                             sft_hint hint) {
    sfti_fail(err, code, "expected a cache of digests, or nothing, at this path, found %s", found);
    sfti_hint(err, hint);
    return code;
}

typedef struct cache_file {
    int fd; /* -1: there is none */
    uint64_t size;
    bool older;
} cache_file;

static sft_code cache_check_first(cache_file *file, sft_error *err) {
    char first[CACHE_FIRST];
    size_t len = CACHE_FIRST;
    sft_code code = file->size ? cache_read_bytes(file->fd, 0, first, &len, err) : SFT_OK;
    if (code || file->size == 0) return code;
    file->older = len == CACHE_FIRST && memcmp(first, cache_older, len) == 0;
    if (file->older || (len == CACHE_FIRST && memcmp(first, cache_first, len) == 0))
        return SFT_OK;
    return cache_refuse(err, SFT_EXISTS, "a file of another kind",
                        SFT_HINT_CACHE_KEPT);
}

/* Opens the file at path if it may be read as a cache and replaced by one: a regular file owned by
 * the caller or root, not a link, empty or beginning with our first line. The path is checked
 * before it is opened, and the opened file must be the one that was checked. */
static sft_code cache_open_file(const char *path, cache_file *out, sft_error *err) {
    os_info seen, info;
    *out = (cache_file){ .fd = -1 };
    int error = sfti_os_info_path(path, false, &seen);
    if (error == ENOENT) return SFT_OK;
    if (error) return sfti_io_fail(err, SFT_IO_OPEN, error, "look at the cache");
    sft_hint hint = SFT_HINT_CACHE_OTHER_FILE;
    if (seen.kind == OS_LINK) return cache_refuse(err, SFT_IS_LINK, "a symbolic link", hint);
    if (seen.kind != OS_FILE)
        return cache_refuse(err, SFT_IO_NOT_FILE,
                            seen.kind == OS_DIR ? "a folder" : "no regular file", hint);
    sft_code code = SFT_OK;
    error = sfti_os_open_read(path, &out->fd);
    if (error) {
        out->fd = -1;
        return sfti_io_fail(err, SFT_IO_OPEN, error, "open the cache");
    }
    error = sfti_os_info_fd(out->fd, &info);
    if (error) code = sfti_io_fail(err, SFT_IO_OPEN, error, "look at the cache");
    else if (info.device != seen.device || info.inode != seen.inode)
        code = cache_refuse(err, SFT_IO_OPEN, "one file, then another", SFT_HINT_NONE);
    /* Whoever can write to a cache decides which digests are trusted. */
    else if (info.owner != sfti_os_user() && info.owner != 0)
        code = cache_refuse(err, SFT_IO_OPEN, "a file that belongs to another user",
                            SFT_HINT_CACHE_OWNER);
    else if (info.mode & 022)
        code = cache_refuse(err, SFT_IO_OPEN, "a file that others may write",
                            SFT_HINT_CACHE_MODE);
    out->size = error ? 0 : info.size;
    if (!code) code = cache_check_first(out, err);
    if (!code) return SFT_OK;
    sfti_os_close(out->fd);
    out->fd = -1;
    return code;
}

/* Reads only the end of a cache beyond CACHE_MOST, from the first whole line on. */
static sft_code cache_read_lines(sft_hash_cache *cache, const cache_file *file, sft_error *err) {
    bool cut = file->size - CACHE_FIRST > CACHE_MOST;
    uint64_t from = cut ? file->size - CACHE_MOST : CACHE_FIRST;
    size_t cap = (size_t)(file->size - from), len = cap;
    if (cap == 0) return SFT_OK;
    char *bytes = sfti_take(&cache->alloc, cap);
    if (!bytes) return sfti_fail_memory(err, cap);
    sft_code code = cache_read_bytes(file->fd, from, bytes, &len, err);
    const char *line = !code && cut ? memchr(bytes, '\n', len) : NULL;
    size_t skip = line ? (size_t)(line - bytes) + 1 : 0;
    if (!code) read_cache_text(cache, (sft_span){ bytes + skip, len - skip }, from + skip);
    sfti_release(&cache->alloc, bytes, cap);
    return code;
}

sft_code sft_hash_cache_open(const char *path, const sft_allocator *alloc,
                             sft_hash_cache **out, sft_error *err) {
    sft_allocator own = sfti_allocator(alloc);
    *out = NULL;
    if (!path)
        return sfti_misuse(err, "expected a path, found NULL");
    sft_hash_cache *cache = sfti_take(&own, sizeof *cache);
    if (!cache) return sfti_fail_memory(err, sizeof *cache);
    memset(cache, 0, sizeof *cache);
    cache->alloc = own;
    sfti_seed_draw(cache, cache->seed);
    cache->path_size = strlen(path) + 1;
    cache->path = sfti_take(&own, cache->path_size);
    sft_code code = cache->path ? SFT_OK : sfti_fail_memory(err, cache->path_size);
    if (!code) {
        cache_file file;
        memcpy(cache->path, path, cache->path_size);
        code = cache_open_file(cache->path, &file, err);
        if (!code && file.size > 0 && !file.older) code = cache_read_lines(cache, &file, err);
        if (file.fd >= 0) sfti_os_close(file.fd);
    }
    if (!code) *out = cache;
    else sft_hash_cache_close(cache);
    return code;
}

/* ── Writing ── */

static void write_cache_entry(sfti_json_writer *w, const sfti_cache_entry *entry) {
    sft_hashes hashes;
    sfti_cache_hashes(entry, &hashes);
    sfti_json_open(w, '{');
    for (unsigned i = 0; i < CACHE_FIELDS; i++) {
        uint64_t value;
        memcpy(&value, (const char *)&entry->key + cache_fields[i].at, sizeof value);
        sfti_json_put_uint(w, cache_fields[i].name, value);
    }
    sfti_json_put_open(w, "hashes", '{');
    for (unsigned i = 0; i < SFT_HASH_COUNT; i++) {
        const char *digest = sft_hashes_get(&hashes, (sft_hash_algo)i);
        if (digest) sfti_json_put_cstr(w, sft_hash_name((sft_hash_algo)i), digest);
    }
    sfti_json_close(w, '}');
    if (*entry->mark.name) {
        sfti_json_put_open(w, "mark", '{');
        sfti_json_put_cstr(w, "name", entry->mark.name);
        sfti_json_put_uint(w, "time", entry->mark.time);
        sfti_json_close(w, '}');
    }
    sfti_json_close(w, '}');
    w->comma = false;
    sfti_json_raw(w, sft_span_cstr("\n"));
    w->comma = false;
}

/* Checks the path again before it is replaced: another file may be there by now. */
sft_code sft_hash_cache_save(sft_hash_cache *cache, sft_error *err) {
    sft_path_options options = SFT_PATH_OPTIONS_INIT;
    cache_file file;
    if (!cache->changed) return SFT_OK;
    sft_code code = cache_open_file(cache->path, &file, err);
    if (code) return code;
    options.no_sync = true; /* hashes that are lost are computed again */
    options.no_clobber = file.fd < 0;
    options.mode = file.fd < 0 ? 0600 : 0;
    options.link = SFT_LINK_REFUSE;
    options.alloc = &cache->alloc;
    if (file.fd >= 0) sfti_os_close(file.fd);
    sft_sink sink;
    sfti_json_writer w;
    code = sft_sink_path(cache->path, &options, &sink, err);
    if (code) return code;
    sfti_json_write(&w, &sink, 0, err);
    sfti_json_raw(&w, sft_span_cstr(cache_first));
    w.comma = false;
    /* If there is no memory for sorting, in any order. */
    uint32_t *order = cache->count ? sfti_cache_order(cache) : NULL;
    for (size_t i = 0; i < cache->count; i++)
        write_cache_entry(&w, &cache->entries[order ? order[i] : i]);
    sfti_release(&cache->alloc, order, 2 * cache->count * sizeof *order);
    code = sfti_sink_end(&sink, sfti_json_done(&w), err);
    if (!code) cache->changed = false;
    return code;
}
