/* Reading and checking an index. Tests: test_set.c. */

#include "base/checked.h"
#include "base/error.h"
#include "base/files.h"
#include "base/json.h"
#include "base/order.h"
#include "base/portable.h"
#include "base/utf8.h"
#include "os/path.h"
#include "set/set.h"
#include "safetensors_index.h"

#include <string.h>

/* ── The file ── */

static sft_code index_text(const char *path, const sfti_set_how *how, sfti_arena *arena,
                           sft_span *out, sft_error *err) {
    sft_open_options open = how->open;
    sft_source source;
    size_t got = 0;
    char *text = NULL;
    open.beneath = NULL; /* it is the caller's path */
    sft_code code = sft_source_path(path, &open, &source, err);
    if (code) return code;
    uint64_t size = source.size, most = how->max_index_bytes;
    if (size == SFT_SIZE_UNKNOWN)
        code = sfti_fail(err, SFT_IO_NOT_FILE, "expected an index file, found a pipe");
    else if (size > most)
        code = sfti_fail(err, SFT_FILE_TOO_LARGE,
                         "expected an index of at most %llu bytes, found %llu",
                         (unsigned long long)most, (unsigned long long)size);
    else if (!sfti_fits_size(size))
        code = sfti_fail(err, SFT_ADDRESS_SPACE,
                         "expected an index that fits into memory, found %llu bytes",
                         (unsigned long long)size);
    if (code) goto done;
    text = sfti_arena_take(arena, (size_t)size + 1);
    if (text) code = sft_source_read(&source, 0, text, (size_t)size, &got, err);
    else code = sfti_fail_memory(err, size);
    if (!code && got < size)
        code = sfti_fail_byte(err, SFT_IO_SHRUNK, got, "expected %llu bytes, found %llu",
                              (unsigned long long)size, (unsigned long long)got);
done:
    sft_source_close(&source);
    *out = (sft_span){ text, (size_t)size };
    return code;
}

/* ── The top level ── */

typedef struct index_reader {
    sfti_index *index;
    const sfti_set_how *options;
    sfti_json json;
    sfti_json map; /* as it stood after the key weight_map */
    bool has_map, has_metadata;
    bool is_claimed; /* its path is not the system's, and may be a URL */
    sft_error *err;
} index_reader;

static sft_code index_wrong(const index_reader *r, const sfti_json *json, const char *want) {
    sft_span text = { json->begin, (size_t)(json->end - json->begin) };
    return sfti_fail_at(r->err, SFT_INDEX_TYPE, 0, text, json->start, want);
}

static sft_code index_once(const index_reader *r, bool *seen, const char *key) {
    if (*seen)
        return sfti_fail_byte(r->err, SFT_INDEX_TYPE, r->json.start,
                              "expected \"%s\" once, found it again", key);
    *seen = true;
    return SFT_OK;
}

/* Checks the grammar of the whole text before any of it is used. */
static sft_code index_top(index_reader *r) {
    sfti_json *json = &r->json;
    sft_code code = SFT_OK;
    if (sfti_json_next(json) != SFTI_JSON_OBJECT && json->type != SFTI_JSON_ERROR)
        return index_wrong(r, json, "an object");
    while (!code && sfti_json_next(json) == SFTI_JSON_KEY) {
        sft_span key = sfti_json_string(json, &r->index->arena);
        if (!key.data) return sfti_fail_memory(r->err, json->text.len);
        if (sft_span_equal(key, sft_span_cstr("weight_map"))) {
            code = index_once(r, &r->has_map, "weight_map");
            r->map = *json;
        } else if (sft_span_equal(key, sft_span_cstr("metadata"))) {
            code = index_once(r, &r->has_metadata, "metadata");
            if (sfti_json_next(json) == SFTI_JSON_OBJECT) {
                const char *from = json->text.data;
                if (sfti_json_skip(json) == SFTI_JSON_OBJECT_END)
                    r->index->metadata = (sft_span){ from, (size_t)(json->at - from) };
                continue;
            }
        }
        sfti_json_skip(json);
    }
    if (!code && json->type == SFTI_JSON_OBJECT_END) sfti_json_next(json);
    if (json->type == SFTI_JSON_ERROR) return sfti_json_fail(json, 0, r->err);
    if (!code && !r->has_map)
        return sfti_fail(r->err, SFT_INDEX_TYPE, "expected the key \"weight_map\", found none");
    return code;
}

/* ── Names of shards ── */

/* Whether a name is to be one that every system takes. */
static bool is_portable_wanted(const index_reader *r) {
    bool here = !r->is_claimed && SFTI_OS_PATHS == SFTI_PATHS_WINDOWS;
    return here || r->options->open.level == SFT_LEVEL_STRICT;
}

static sft_code shard_fail(const index_reader *r, uint64_t at, const char *expected, sft_span name,
                           const char *why) {
    sfti_fail_byte(r->err, SFT_INDEX_PATH, at, "expected %s, found '%.*s'%s%s", expected,
                   SFTI_CLIP(name, 200), *why ? ": " : "", why);
    if (*why && SFTI_OS_PATHS != SFTI_PATHS_WINDOWS) sfti_hint(r->err, SFT_HINT_LEVEL_STRICT);
    return SFT_INDEX_PATH;
}

typedef struct index_shards {
    sfti_names names;
    sft_span *list;
    size_t count, cap;
    sft_span last_text; /* the name as spelled in the previous entry */
    uint32_t last;
} index_shards;

static sft_span shard_name_at(const void *ctx, uint32_t entry) {
    return ((const index_shards *)ctx)->list[entry];
}

/* Checks the name of a new shard and keeps it as a C string. */
static sft_code shards_new(index_shards *shards, const index_reader *r, sft_span name,
                           uint64_t at) {
    const char *why;
    if (!sfti_name_inside(name) || (r->is_claimed && !sfti_files_name_fits(name)))
        return shard_fail(r, at, "a plain path beneath the index's folder", name, "");
    if (is_portable_wanted(r) && !sfti_name_portable(name, &why))
        return shard_fail(r, at, "a name that every system takes", name, why);
    if (shards->count == shards->cap)
        return sfti_fail_byte(r->err, SFT_TOO_MANY_TENSORS, at,
                              "expected at most %llu shards, found more",
                              (unsigned long long)r->options->max_shards);
    char *copy = sfti_arena_copy(&r->index->arena, name.data, name.len);
    if (!copy) return sfti_fail_memory(r->err, name.len + 1);
    shards->list[shards->count] = (sft_span){ copy, name.len };
    sfti_names_add(&shards->names, shards->list[shards->count], (uint32_t)shards->count);
    shards->count++;
    return SFT_OK;
}

static sft_code shards_number(index_shards *shards, const index_reader *r,
                              const sfti_json *json, uint32_t *out) {
    if (shards->count > 0 && sft_span_equal(shards->last_text, json->text)) {
        *out = shards->last;
        return SFT_OK;
    }
    sft_span name = sfti_json_string(json, &r->index->arena);
    if (!name.data) return sfti_fail_memory(r->err, json->text.len);
    *out = sfti_names_find(&shards->names, name);
    if (*out == SFTI_NO_NAME) {
        sft_code code = shards_new(shards, r, name, json->start);
        if (code) return code;
        *out = (uint32_t)shards->count - 1;
    }
    shards->last_text = json->text;
    shards->last = *out;
    return SFT_OK;
}

static int shard_natural_order(const void *ctx, uint32_t a, uint32_t b) {
    const sft_span *list = ctx;
    return sfti_natural_compare(list[a], list[b]);
}

static int shard_folded_order(const void *ctx, uint32_t a, uint32_t b) {
    const sft_span *list = ctx;
    return sfti_name_compare_folded(list[a], list[b]);
}

/* Names that are one file where case does not count. */
static sft_code shards_check_case(const index_shards *shards, const index_reader *r) {
    sfti_arena work = { .alloc = r->index->arena.alloc };
    size_t n = shards->count;
    uint32_t *order = sfti_arena_sorted(&work, n, shard_folded_order, shards->list);
    sft_code code = order ? SFT_OK : sfti_fail_memory(r->err, n * 2 * sizeof *order);
    for (size_t i = 1; !code && i < n; i++) {
        sft_span a = shards->list[order[i - 1]], b = shards->list[order[i]];
        if (sfti_name_compare_folded(a, b) == 0)
            code = shard_fail(r, SFT_NO_OFFSET, "names that differ by more than case", b, a.data);
    }
    sfti_arena_free(&work);
    return code;
}

/* Sorts the shards in natural order and renumbers them in every entry. */
static sft_code shards_sort(const index_shards *shards, const index_reader *r) {
    sfti_index *index = r->index;
    size_t n = shards->count;
    uint32_t *order = sfti_arena_sorted(&index->arena, n, shard_natural_order, shards->list);
    sft_span *sorted = sfti_arena_take(&index->arena, n * sizeof *sorted);
    if (!order || !sorted) return sfti_fail_memory(r->err, n * sizeof *sorted);
    uint32_t *place = order + n;
    for (size_t i = 0; i < n; i++) {
        sorted[i] = shards->list[order[i]];
        place[order[i]] = (uint32_t)i;
    }
    for (size_t i = 0; i < index->count; i++)
        index->entries[i].shard = place[index->entries[i].shard];
    index->shards = sorted;
    index->shard_count = n;
    return SFT_OK;
}

/* ── The weight map ── */

/* Counts the entries; each value must be a string. */
static sft_code map_count(const index_reader *r) {
    sfti_json json = r->map;
    size_t count = 0;
    if (sfti_json_next(&json) != SFTI_JSON_OBJECT)
        return index_wrong(r, &json, "\"weight_map\" to be an object");
    while (sfti_json_next(&json) == SFTI_JSON_KEY) {
        if (sfti_json_next(&json) != SFTI_JSON_STRING)
            return index_wrong(r, &json, "a shard's name as a string");
        count++;
    }
    if (count >= SFTI_NO_NAME)
        return sfti_fail_byte(r->err, SFT_TOO_MANY_TENSORS, r->map.start,
                              "expected fewer than 4294967295 tensors, found %zu", count);
    if (count == 0)
        return sfti_fail_byte(r->err, SFT_INDEX_TYPE, r->map.start,
                              "expected \"weight_map\" to name tensors, found none");
    r->index->count = count;
    return SFT_OK;
}

static sft_span entry_name_at(const void *ctx, uint32_t entry) {
    return ((const sfti_index *)ctx)->entries[entry].tensor;
}

static sft_code map_fill(const index_reader *r, sfti_names *names, index_shards *shards) {
    sfti_json json = r->map;
    sfti_index *index = r->index;
    sfti_json_next(&json);
    for (uint32_t i = 0; sfti_json_next(&json) == SFTI_JSON_KEY; i++) {
        sfti_index_entry *entry = &index->entries[i];
        entry->at = json.start;
        entry->tensor = sfti_json_string(&json, &index->arena);
        if (!entry->tensor.data) return sfti_fail_memory(r->err, json.text.len);
        sfti_json_next(&json);
        if (sfti_names_add(names, entry->tensor, i) != i)
            return sfti_fail_tensor(r->err, SFT_INDEX_TYPE, entry->at, entry->tensor,
                                    "expected each tensor once in \"weight_map\", "
                                    "found one again");
        sft_code code = shards_number(shards, r, &json, &entry->shard);
        if (code) return code;
    }
    return SFT_OK;
}

static sft_code index_map(const index_reader *r) {
    sfti_index *index = r->index;
    sfti_names names;
    index_shards shards;
    uint64_t bytes;
    sft_code code = map_count(r);
    if (code) return code;
    if (!sfti_mul(index->count, sizeof *index->entries, &bytes) || !sfti_fits_size(bytes))
        return sfti_fail_memory(r->err, UINT64_MAX);
    index->entries = sfti_arena_take(&index->arena, (size_t)bytes);
    if (!index->entries) return sfti_fail_memory(r->err, bytes);
    code = sfti_set_names(&names, index->count, entry_name_at, index, &index->arena, r->err);
    memset(&shards, 0, sizeof shards);
    shards.cap = index->count;
    if (shards.cap > r->options->max_shards) shards.cap = r->options->max_shards;
    size_t room = shards.cap + 1;
    shards.list = sfti_arena_take(&index->arena, room * sizeof *shards.list);
    if (!code && !shards.list) code = sfti_fail_memory(r->err, room * sizeof *shards.list);
    if (!code)
        code = sfti_set_names(&shards.names, room, shard_name_at, &shards, &index->arena, r->err);
    if (!code) code = map_fill(r, &names, &shards);
    if (!code && is_portable_wanted(r)) code = shards_check_case(&shards, r);
    return code ? code : shards_sort(&shards, r);
}

/* ── Whole ── */

sft_code sfti_index_load(const char *path, const sfti_set_how *options, sfti_index *out,
                         sft_error *err) {
    index_reader r = { .index = out, .options = options, .err = err };
    sft_span text = { NULL, 0 };
    memset(out, 0, sizeof *out);
    out->arena.alloc = sfti_set_allocator(options->open.alloc);
    r.is_claimed = sfti_files_claim(options->open.files, path, NULL);
    sft_code code = index_text(path, options, &out->arena, &text, err);
    if (code) return code;
    size_t bad = sfti_utf8_check(text.data, text.len);
    if (bad < text.len)
        return sfti_fail_byte(err, SFT_JSON_STRING, bad, "expected UTF-8, found byte 0x%02x",
                              (unsigned)(uint8_t)text.data[bad]);
    out->text = text;
    sfti_json_begin(&r.json, text.data, text.len);
    code = index_top(&r);
    return code ? code : index_map(&r);
}

void sfti_index_release(sfti_index *index) {
    sfti_arena_free(&index->arena);
}

/* ── Which shards an index names ── */

struct sft_index {
    sfti_index index;
    char *folder; /* in the index's arena */
};

sft_code sft_index_open(const char *path, const sft_set_options *options,
                        sft_index **out, sft_error *err) {
    sfti_set_how all;
    *out = NULL;
    if (!path) return sfti_set_path_fail(err);
    sft_code code = sfti_set_settle(options, &all, err);
    if (code) return code;
    sft_allocator alloc = sfti_set_allocator(all.open.alloc);
    sft_index *names = sfti_take(&alloc, sizeof *names);
    if (!names) return sfti_fail_memory(err, sizeof *names);
    code = sfti_index_load(path, &all, &names->index, err);
    if (!code) {
        size_t len = sfti_folder_len(path);
        names->folder = sfti_arena_copy(&names->index.arena, path, len);
        if (!names->folder) code = sfti_fail_memory(err, len + 1);
    }
    if (code) sft_index_close(names);
    else *out = names;
    return code;
}

size_t sft_index_shard_count(const sft_index *index) {
    return index->index.shard_count;
}

const char *sft_index_shard_at(const sft_index *index, size_t i) {
    return i < index->index.shard_count ? index->index.shards[i].data : NULL;
}

const char *sft_index_folder(const sft_index *index) {
    return index->folder;
}

void sft_index_close(sft_index *index) {
    if (!index) return;
    sft_allocator alloc = index->index.arena.alloc;
    sfti_index_release(&index->index);
    sfti_release(&alloc, index, sizeof *index);
}
