/* A folder's listing, sorted, in which the files of one model are found by its stem. */
#include "label/sidecars/sidecars.h"

#include "base/error.h"
#include "base/files.h"
#include "base/order.h"
#include "base/portable.h"
#include "os/io.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define FOLDER_PATH_SIZE 4096

/* ── Names ── */

/* Whether two model files are shards of one model, by their names. */
static bool same_model(sft_span a, sft_span b) {
    size_t a_begin, a_total, a_end, b_begin, b_total, b_end;
    if (sft_span_equal(a, b)) return true;
    if (!sfti_shard_number(a, &a_begin, &a_total, &a_end)) return false;
    if (!sfti_shard_number(b, &b_begin, &b_total, &b_end)) return false;
    if (a_begin != b_begin || memcmp(a.data, b.data, a_begin) != 0) return false;
    return sft_span_equal(sfti_from(a, a_total), sfti_from(b, b_total));
}

/* ── Listing ── */

typedef struct folder_listing {
    sfti_arena *arena;
    sfti_entry *entries;
    size_t count, cap;
    bool full; /* memory ran out */
    bool journals; /* an edit is being made, or was interrupted */
} folder_listing;

static int keep_listed(void *ctx, const char *name, os_kind kind) {
    folder_listing *listing = ctx;
    size_t len = strlen(name);
    if (name[0] == '.' && sfti_ends_with((sft_span){ name, len }, ".sft-journal"))
        listing->journals = true;
    if (name[0] == '.' && name[1] == '_') return 0;
    if (kind != OS_FILE && kind != OS_LINK && kind != OS_DIR) return 0;
    sfti_entry *entries = sfti_arena_grow(listing->arena, listing->entries, listing->count, 1,
                                          &listing->cap, sizeof *entries);
    if (entries) listing->entries = entries;
    char *copy = sfti_arena_copy(listing->arena, name, len);
    if (!entries || !copy || listing->count == UINT32_MAX) {
        listing->full = true;
        return ENOMEM;
    }
    entries[listing->count++] = (sfti_entry){ { copy, len }, kind };
    return 0;
}

/* 0: one name, to the file system. */
static int entry_order(const sft_info_folder *folder, sft_span a, sft_span b) {
    return folder->folds ? sfti_name_compare_folded(a, b) : sfti_bytes_compare(a, b);
}

static int compare_entries(const void *ctx, uint32_t a, uint32_t b) {
    const sfti_entry *entries = ctx;
    return sfti_bytes_compare(entries[a].name, entries[b].name);
}

static int compare_folded_entries(const void *ctx, uint32_t a, uint32_t b) {
    const sfti_entry *entries = ctx;
    int order = sfti_name_compare_folded(entries[a].name, entries[b].name);
    return order != 0 ? order : sfti_bytes_compare(entries[a].name, entries[b].name);
}

/* ── Opening ── */

static sft_code folder_keep(sft_info_folder *folder, const folder_listing *listing,
                            sft_error *err) {
    /* SVDQuant's old way: one model in two files and a config. */
    static const char *const pair[] = { "comfy_config.json", "transformer_blocks.safetensors",
                                        "unquantized_layers.safetensors" };
    const uint32_t *order = sfti_arena_sorted(
        &folder->arena, listing->count, folder->folds ? compare_folded_entries : compare_entries,
        listing->entries);
    sfti_entry *sorted = sfti_arena_array(&folder->arena, listing->count, sizeof *sorted);
    if (listing->full || !order || !sorted) return sfti_fail_memory(err, folder->arena.bytes);
    for (size_t i = 0; i < listing->count; i++) sorted[i] = listing->entries[order[i]];
    folder->entries = sorted;
    folder->count = listing->count;

    const sfti_entry *first = NULL;
    for (size_t i = 0; i < folder->count; i++) {
        const sfti_entry *entry = &folder->entries[i];
        if (entry->kind == OS_DIR || (!sfti_ends_with(entry->name, ".safetensors")
                                      && !sfti_ends_with(entry->name, ".sft")))
            continue;
        folder->files++;
        if (!first) first = entry;
        else if (!same_model(first->name, entry->name)) folder->many = true;
    }
    size_t have = 0;
    while (folder->many && folder->files == 2 && have < SFTI_COUNT(pair)
           && sfti_folder_at(folder, sft_span_cstr(pair[have])))
        have++;
    if (have == SFTI_COUNT(pair)) folder->many = false;
    return SFT_OK;
}

/* Whether letters of the other case lead to an entry, and are none themselves. */
static bool folds_case(const folder_listing *listing, const char *path) {
    char other[FOLDER_PATH_SIZE];
    os_info info;
    for (size_t i = 0; i < listing->count; i++) {
        sft_span name = listing->entries[i].name;
        int len = snprintf(other, sizeof other, "%s/%.*s", path, (int)name.len, name.data);
        char *at = other + strlen(other) - name.len;
        bool letters = false;
        if (len < 0 || (size_t)len >= sizeof other) continue;
        for (char *c = at; *c; c++) {
            if ((*c | 0x20) < 'a' || (*c | 0x20) > 'z') continue;
            *c ^= 0x20;
            letters = true;
        }
        if (!letters) continue;
        bool folds = !sfti_os_info_path(other, false, &info);
        for (size_t k = 0; folds && k < listing->count; k++)
            folds = !sft_span_equal(listing->entries[k].name, sft_span_cstr(at));
        return folds;
    }
    return false;
}

static sft_code folder_fill(sft_info_folder *folder, const char *path, sft_error *err) {
    char buffer[FOLDER_PATH_SIZE];
    folder_listing listing = { .arena = &folder->arena };
    uint64_t now = sfti_os_time_s();
    int error = sfti_os_list(path, keep_listed, &listing);
    if (error && !listing.full) return sfti_io_fail(err, SFT_IO_OPEN, error, "list the folder");
    sft_span real = sft_span_cstr(sfti_os_real_path(path, buffer, sizeof buffer) ? path : buffer);
    sft_span name = sfti_path_name(real);
    folder->repo = sfti_repo_of_cache(&folder->arena, real);
    if (folder->repo.len == 0)
        folder->repo = sfti_repo_of_cache(&folder->arena, sft_span_cstr(path));
    folder->name = (sft_span){ sfti_arena_copy(&folder->arena, name.data, name.len), name.len };
    if (!folder->name.data) return sfti_fail_memory(err, folder->arena.bytes);
    folder->listed_s = listing.journals ? 0 : now;
    folder->folds = folds_case(&listing, path);
    return folder_keep(folder, &listing, err);
}

static bool keep_claimed(void *ctx, const sft_listed *entry) {
    return keep_listed(ctx, entry->name, entry->folder ? OS_DIR : OS_FILE) == 0;
}

/* A folder that files claim. Not listed, it may hold any number of models. */
static sft_code folder_fill_claimed(sft_info_folder *folder, const char *path,
                                    const sft_files *files, bool list, sft_error *err) {
    folder_listing listing = { .arena = &folder->arena };
    sft_span name = sft_span_cstr(path);
    while (name.len > 0 && name.data[name.len - 1] == '/') name.len--;
    folder->many = true;
    bool inner;
    sft_span repo = sfti_repo_of_url(name, &inner);
    if (repo.len > 0)
        folder->repo = (sft_span){ sfti_arena_copy(&folder->arena, repo.data, repo.len), repo.len };
    if (!folder->repo.data) return sfti_fail_memory(err, folder->arena.bytes);
    if (!list || !sfti_files_can_list(files)) return SFT_OK;
    folder->inner = inner;
    name = sfti_path_name(name);
    folder->name = (sft_span){ sfti_arena_copy(&folder->arena, name.data, name.len), name.len };
    if (!folder->name.data) return sfti_fail_memory(err, folder->arena.bytes);
    sft_code code = sfti_files_list(files, path, keep_claimed, &listing, err);
    if (code) return code;
    folder->many = false;
    return folder_keep(folder, &listing, err);
}

sft_code sfti_folder_open(const char *path, const sft_files *files, bool list,
                          const sft_allocator *alloc, sft_info_folder **out, sft_error *err) {
    sft_allocator from = sfti_allocator(alloc);
    *out = NULL;
    if (!path || !*path) path = ".";
    sft_info_folder *folder = sfti_take(&from, sizeof *folder);
    if (!folder) return sfti_fail_memory(err, sizeof *folder);
    memset(folder, 0, sizeof *folder);
    folder->alloc = from;
    folder->arena.alloc = from;
    folder->repo = folder->name = (sft_span){ "", 0 };
    sft_code code = sfti_files_claim(files, path, NULL)
                        ? folder_fill_claimed(folder, path, files, list, err)
                        : folder_fill(folder, path, err);
    if (code) sft_info_folder_close(folder);
    else *out = folder;
    return code;
}

sft_code sft_info_folder_open(const char *path, const sft_files *files,
                              const sft_allocator *alloc, sft_info_folder **out, sft_error *err) {
    return sfti_folder_open(path, files, true, alloc, out, err);
}

void sft_info_folder_close(sft_info_folder *folder) {
    if (!folder) return;
    sft_allocator from = folder->alloc;
    sfti_arena_free(&folder->arena);
    sfti_release(&from, folder, sizeof *folder);
}

uint64_t sft_info_folder_listed(const sft_info_folder *folder, const char *path) {
    const sfti_entry *entry = sfti_folder_at(folder, sfti_path_name(sft_span_cstr(path)));
    return entry && entry->kind == OS_FILE ? folder->listed_s : 0;
}

/* ── Finding ── */

/* Order of a name against stem + first. */
static int compare_begin(const sft_info_folder *folder, sft_span name, sft_span stem,
                         char first) {
    sft_span begin = { name.data, name.len < stem.len ? name.len : stem.len };
    int order = entry_order(folder, begin, stem);
    if (order != 0) return order;
    if (name.len == stem.len) return -1;
    return entry_order(folder, (sft_span){ name.data + stem.len, 1 }, (sft_span){ &first, 1 });
}

/* The first entry that is not before stem + first. */
static size_t lower_bound(const sft_info_folder *folder, sft_span stem, char first) {
    size_t low = 0, high = folder->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (compare_begin(folder, folder->entries[middle].name, stem, first) < 0) low = middle + 1;
        else high = middle;
    }
    return low;
}

const sfti_entry *sfti_folder_at(const sft_info_folder *folder, sft_span name) {
    if (name.len == 0) return NULL;
    sft_span begin = { name.data, name.len - 1 };
    char last = name.data[name.len - 1];
    const sfti_entry *found = NULL;
    for (size_t i = lower_bound(folder, begin, last); i < folder->count; i++) {
        const sfti_entry *entry = &folder->entries[i];
        if (entry_order(folder, entry->name, name) != 0) break;
        if (!found || sft_span_equal(entry->name, name)) found = entry;
    }
    return found;
}

sft_span sfti_folder_stem(const sft_info_folder *folder, sft_info *info) {
    char real[FOLDER_PATH_SIZE];
    if (!sft_span_equal(sfti_stem(sfti_path_name(info->path)), info->stem)) return info->stem;
    sft_span path = sfti_info_text(info, "%.*s", (int)info->path.len, info->path.data);
    if (info->code || sfti_os_real_path(path.data, real, sizeof real)) return info->stem;
    const sfti_entry *entry = sfti_folder_at(folder, sfti_path_name(sft_span_cstr(real)));
    return entry ? sfti_stem(entry->name) : info->stem;
}

const sfti_entry *sfti_folder_find(const sft_info_folder *folder, sft_span stem,
                                   const char *suffix) {
    const sfti_entry *found = NULL;
    size_t len = strlen(suffix), i = lower_bound(folder, stem, *suffix);
    for (; i < folder->count; i++) {
        const sfti_entry *entry = &folder->entries[i];
        if (compare_begin(folder, entry->name, stem, *suffix) != 0) break;
        if (entry->kind == OS_DIR || entry->name.len != stem.len + len) continue;
        if (!sfti_ends_with(entry->name, suffix)) continue;
        if (memcmp(entry->name.data + stem.len, suffix, len) == 0) return entry;
        if (!found) found = entry; /* but for the suffix's case */
    }
    return found;
}

/* ── Rule 7 ── */

bool sfti_folder_speaks(const sft_info_folder *folder, const sft_info *info, sft_span stem) {
    static const char *const generic[] = { "model", "adapter_model", "pytorch_lora_weights",
                                           "diffusion_pytorch_model", "pytorch_model",
                                           "consolidated", "ip_adapter", "adapters" };
    size_t count = info->set ? sft_set_shard_count(info->set) : 0, found = 0;
    if (SFTI_ONE_OF(stem, generic, sfti_starts_with) || !folder->many) return true;
    /* Whether every model file of the folder is a shard of this set. */
    if (count < 2 || count < folder->files) return false;
    for (size_t i = 0; i < count; i++) {
        const char *path = sft_set_shard_path(info->set, i);
        found += path && sfti_folder_at(folder, sfti_path_name(sft_span_cstr(path)));
    }
    return found == folder->files;
}
