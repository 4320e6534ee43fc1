/* Opening a model: one file, an index, a list of shards. Tests: test_set.c. */
#include "set/set.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/files.h"
#include "base/utf8.h"
#include "bytes/replaced.h"
#include "os/path.h"

#include <errno.h>
#include <string.h>

/* ── One file ── */

static void set_explain_shard(sft_error *error, const char *path, bool indexed) {
    if (indexed && error->code == SFT_NOT_FOUND) {
        bool here = error->os_errno == ENOENT && sfti_old_fail(path, error);
        error->code = SFT_INDEX_SHARD_MISSING;
        if (!here) error->hint = SFT_HINT_DOWNLOAD_SHARD;
    }
    /* The message, which is escaped already, gets "path: " before it. */
    char text[sizeof error->message];
    size_t used, most = sizeof text / 2, len = strlen(error->message);
    size_t at = sfti_path_escape(sft_span_cstr(path), text, most, &used);
    error->path_len = at;
    memcpy(text + at, ": ", 2);
    at += 2;
    len = sfti_utf8_cut((sft_span){ error->message, len }, sizeof text - 1 - at);
    memcpy(text + at, error->message, len);
    text[at + len] = '\0';
    memcpy(error->message, text, at + len + 1);
}

static sft_code set_give(sft_error *err, const sft_error *error) {
    if (err) *err = *error;
    return error->code;
}

/* ── Making a set ── */

static sft_code set_new(const sft_allocator *from, size_t shards, sft_set **out,
                        sft_error *err) {
    sft_allocator alloc = sfti_set_allocator(from);
    uint64_t bytes;
    *out = NULL;
    if (!sfti_mul(shards, sizeof(sft_file *), &bytes) || !sfti_fits_size(bytes))
        return sfti_fail_memory(err, UINT64_MAX);
    sft_set *set = sfti_take(&alloc, sizeof *set);
    if (!set) return sfti_fail_memory(err, sizeof *set);
    memset(set, 0, sizeof *set);
    set->arena.alloc = alloc;
    set->files = sfti_arena_take(&set->arena, (size_t)bytes);
    set->paths = sfti_arena_take(&set->arena, (size_t)bytes);
    if (!set->files || !set->paths) {
        sft_set_close(set);
        return sfti_fail_memory(err, bytes);
    }
    memset(set->files, 0, (size_t)bytes);
    memset(set->paths, 0, (size_t)bytes);
    set->shard_count = shards;
    *out = set;
    return SFT_OK;
}

static sft_code set_keep_path(sft_set *set, size_t i, const char *path, sft_error *err) {
    if (!path) return sfti_set_path_fail(err);
    set->paths[i] = sfti_arena_copy(&set->arena, path, strlen(path));
    return set->paths[i] ? SFT_OK : sfti_fail_memory(err, strlen(path) + 1);
}

static sft_code set_open_shards(sft_set *set, const sft_open_options *options, sft_error *err) {
    set->from = options->files;
    if (set->shard_count > 1)
        sfti_files_expect(options->files, set->paths, set->shard_count, options->beneath);
    for (size_t i = 0; i < set->shard_count; i++) {
        sft_error error = SFT_ERROR_INIT;
        if (!sft_open(set->paths[i], options, &set->files[i], &error)) continue;
        set_explain_shard(&error, set->paths[i], set->index_path != NULL);
        return set_give(err, &error);
    }
    return SFT_OK;
}

/* ── One namespace ── */

static sft_span set_name_at(const void *ctx, uint32_t entry) {
    return ((const sft_set *)ctx)->tensors[entry]->name;
}

/* Tables of all tensors by number and by name; a set of one file uses the file's. */
static sft_code set_join_names(sft_set *set, sft_error *err) {
    uint64_t count = 0, bytes;
    uint32_t at = 0;
    for (size_t i = 0; i < set->shard_count; i++) count += sft_file_tensor_count(set->files[i]);
    set->count = (size_t)count;
    if (set->shard_count == 1) return SFT_OK;
    if (count >= SFTI_NO_NAME)
        return sfti_fail(err, SFT_TOO_MANY_TENSORS,
                         "expected fewer than 4294967295 tensors, found %llu",
                         (unsigned long long)count);
    bytes = (count + 1) * sizeof *set->tensors;
    set->tensors = sfti_arena_array(&set->arena, count + 1, sizeof *set->tensors);
    set->shard_of = sfti_arena_array(&set->arena, count + 1, sizeof *set->shard_of);
    if (!set->tensors || !set->shard_of) return sfti_fail_memory(err, bytes);
    sft_code code =
        sfti_set_names(&set->names, set->count, set_name_at, set, &set->arena, err);
    for (size_t s = 0; !code && s < set->shard_count; s++) {
        for (size_t i = 0; !code && i < sft_file_tensor_count(set->files[s]); i++, at++) {
            const sft_tensor *tensor = sft_file_tensor_at(set->files[s], i);
            set->tensors[at] = tensor;
            set->shard_of[at] = (uint32_t)s;
            uint32_t found = sfti_names_add(&set->names, tensor->name, at);
            if (found == at) continue;
            code = sfti_fail_tensor(err, SFT_INDEX_TENSOR_DUPLICATE, SFT_NO_OFFSET, tensor->name,
                                    "expected each tensor in one shard, found this one in %s "
                                    "and %s",
                                    set->paths[set->shard_of[found]], set->paths[s]);
        }
    }
    return code;
}

/* ── From an index ── */

/* 1. The shards' paths, in the index's folder.
 * 2. Each shard is opened beneath that folder: a link cannot lead out of it.
 * 3. All tensors form one table of names.
 * 4. Every entry of the index is compared with that table. */
static sft_code set_from_index(const char *path, const sfti_index *index,
                               const sfti_set_how *options, sft_set **out, sft_error *err) {
    sft_set *set;
    sft_open_options beneath = options->open;
    size_t folder_len = sfti_folder_len(path);
    sft_code code = set_new(options->open.alloc, index->shard_count, &set, err);
    if (code) return code;
    char *folder = sfti_arena_copy(&set->arena, path, folder_len);
    char *metadata =
        sfti_arena_copy(&set->arena, index->metadata.data, index->metadata.len);
    set->index_path = sfti_arena_copy(&set->arena, path, strlen(path));
    bool all = folder && metadata && set->index_path;
    for (size_t i = 0; all && i < set->shard_count; i++) {
        set->paths[i] = sfti_arena_join(&set->arena, (sft_span){ path, folder_len },
                                        index->shards[i]);
        all = set->paths[i] != NULL;
    }
    if (!all) {
        code = sfti_fail_memory(err, strlen(path));
        goto done;
    }
    set->index_metadata = (sft_span){ metadata, index->metadata.len };
    beneath.beneath = folder;
    code = set_open_shards(set, &beneath, err);
    if (!code) code = set_join_names(set, err);
    for (size_t i = 0; !code && i < index->count; i++) {
        const sfti_index_entry *entry = &index->entries[i];
        const char *want = index->shards[entry->shard].data;
        size_t found;
        if (sft_file_find(set->files[entry->shard], entry->tensor)) continue;
        if (!sft_set_find(set, entry->tensor, &found))
            code = sfti_fail_tensor(err, SFT_INDEX_TENSOR_MISSING, entry->at, entry->tensor,
                                    "expected this tensor in shard %s, found it in none", want);
        else
            code = sfti_fail_tensor(err, SFT_INDEX_TENSOR_MISPLACED, entry->at, entry->tensor,
                                    "expected this tensor in shard %s, found it in %s", want,
                                    index->shards[found].data);
    }
done:
    if (code) sft_set_close(set);
    else *out = set;
    return code;
}

bool sft_path_is_index(const char *path) {
    static const char middle[] = ".safetensors.index", end[] = ".json";
    if (!path) return false;
    const char *at = strstr(path + sfti_folder_len(path), middle);
    if (!at) return false;
    at += sizeof middle - 1;
    size_t len = strlen(at);
    return *at == '.' && len >= sizeof end - 1
           && memcmp(at + len - (sizeof end - 1), end, sizeof end) == 0;
}

/* ── Opening ── */

sft_code sft_set_open_list(const char *const *paths, size_t count,
                           const sft_set_options *options, sft_set **out, sft_error *err) {
    sfti_set_how all;
    sft_set *set;
    *out = NULL;
    sft_code code = sfti_set_settle(options, &all, err);
    if (code) return code;
    if (count == 0 || count > all.max_shards)
        return sfti_misuse(err, "expected 1 to %llu shards, found %llu",
                           (unsigned long long)all.max_shards, (unsigned long long)count);
    code = set_new(all.open.alloc, count, &set, err);
    if (code) return code;
    for (size_t i = 0; !code && i < count; i++) code = set_keep_path(set, i, paths[i], err);
    if (!code) code = set_open_shards(set, &all.open, err);
    if (!code) code = set_join_names(set, err);
    if (code) sft_set_close(set);
    else *out = set;
    return code;
}

/* Whether the text begins as an index does: a file that is no safetensors file may be one. */
static sft_code set_look_at_text(const char *path, const sft_open_options *options,
                                 bool *is_index, sft_error *err) {
    char text[16];
    size_t len = 0;
    sft_source source;
    sft_code code = sft_source_path(path, options, &source, err);
    if (code) return code;
    if (source.size != SFT_SIZE_UNKNOWN)
        code = sft_source_read(&source, 0, text, sizeof text, &len, err);
    sft_source_close(&source);
    size_t i = 0;
    while (i < len && memchr(" \t\r\n", text[i], 4)) i++;
    *is_index = i < len && text[i] == '{';
    for (; i < len; i++)
        if ((uint8_t)text[i] < 0x20 && !memchr("\t\r\n", text[i], 3)) *is_index = false;
    return code;
}

/* Tries in turn: an index, if it is named as one; a model; an index under another name. If the file
 * is neither, the error is the model's, unless memory or I/O failed on reading it as an index. */
sft_code sft_set_open(const char *path, const sft_set_options *options, sft_set **out,
                      sft_error *err) {
    sfti_set_how all;
    sfti_index index;
    sft_error refused = SFT_ERROR_INIT, tried = SFT_ERROR_INIT;
    sft_file *file;
    bool is_index = false;
    *out = NULL;
    if (!path) return sfti_set_path_fail(err);
    sft_code code = sfti_set_settle(options, &all, err);
    if (code) return code;

    if (sft_path_is_index(path)) {
        code = sfti_index_load(path, &all, &index, err);
        if (!code) code = set_from_index(path, &index, &all, out, err);
        sfti_index_release(&index);
        return code;
    }
    code = sft_open(path, &all.open, &file, &refused);
    if (!code) return sft_set_from_file(file, path, out, err);

    sft_class class = sft_code_describe(code)->cls;
    bool is_contents = class == SFT_CLASS_INVALID || class == SFT_CLASS_UNSUPPORTED ||
                       code == SFT_HEADER_TOO_LARGE;
    if (!is_contents) return set_give(err, &refused);
    if (set_look_at_text(path, &all.open, &is_index, &tried)) return set_give(err, &tried);
    if (!is_index) return set_give(err, &refused);
    code = sfti_index_load(path, &all, &index, &tried);
    bool kept = code == SFT_OUT_OF_MEMORY || sft_code_describe(code)->cls == SFT_CLASS_IO;
    if (!code) code = set_from_index(path, &index, &all, out, err);
    else code = set_give(err, kept ? &tried : &refused);
    sfti_index_release(&index);
    return code;
}

sft_code sft_set_from_file(sft_file *file, const char *path, sft_set **out, sft_error *err) {
    sft_set *set;
    sft_code code = set_new(NULL, 1, &set, err);
    if (code) {
        sft_close(file);
        return code;
    }
    set->files[0] = file;
    if (path) code = set_keep_path(set, 0, path, err);
    if (!code) code = set_join_names(set, err);
    if (code) sft_set_close(set);
    else *out = set;
    return code;
}

void sft_set_close(sft_set *set) {
    if (!set) return;
    sft_allocator alloc = set->arena.alloc;
    for (size_t i = 0; i < set->shard_count; i++) sft_close(set->files[i]);
    sfti_arena_free(&set->arena);
    sfti_release(&alloc, set, sizeof *set);
}

/* ── Facts ── */

size_t sft_set_shard_count(const sft_set *set) { return set->shard_count; }

const sft_file *sft_set_shard_at(const sft_set *set, size_t i) {
    return i < set->shard_count ? set->files[i] : NULL;
}

const char *sft_set_shard_path(const sft_set *set, size_t i) {
    return i < set->shard_count ? set->paths[i] : NULL;
}

const char *sft_set_index_path(const sft_set *set) { return set->index_path; }

sft_span sft_set_index_metadata(const sft_set *set) { return set->index_metadata; }

size_t sft_set_tensor_count(const sft_set *set) { return set->count; }

const sft_tensor *sft_set_tensor_at(const sft_set *set, size_t i) {
    if (i >= set->count) return NULL;
    return set->tensors ? set->tensors[i] : sft_file_tensor_at(set->files[0], i);
}

size_t sft_set_tensor_shard(const sft_set *set, size_t i) {
    return set->shard_of && i < set->count ? set->shard_of[i] : 0;
}

const sft_tensor *sft_set_find(const sft_set *set, sft_span name, size_t *shard) {
    if (!set->tensors) {
        if (shard) *shard = 0;
        return sft_file_find(set->files[0], name);
    }
    uint32_t at = sfti_names_find(&set->names, name);
    if (at == SFTI_NO_NAME) return NULL;
    if (shard) *shard = set->shard_of[at];
    return set->tensors[at];
}
