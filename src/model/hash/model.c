/* A model being hashed: its files, and the units that threads read. Tests: test_hash.c. */
#include "hash/model.h"

#include "base/announce.h"
#include "base/checked.h"
#include "base/error.h"
#include "base/files.h"
#include "bytes/source.h"
#include "os/io.h"
#include "os/os.h"
#include "safetensors_scan.h"

#include <string.h>

#define MODEL_SPLIT_LEAST (UINT64_C(8) << 20)
#define MODEL_CIVITAI_LEAST (UINT64_C(2) << 20)
#define MODEL_CONTENT SFT_HASH_BIT(SFT_HASH_CONTENT)

/* How the algorithms of one file are shared among threads: SHA-256 of the file and of its parts, of
 * the data, of the tensors; CRC-32; BLAKE3, of which each thread takes a range. */
#define MODEL_OF_DATA (SFT_HASH_BIT(SFT_HASH_AUTOV3) | SFT_HASH_BIT(SFT_HASH_SSHS_MODEL))
#define MODEL_CRC (SFT_HASH_BIT(SFT_HASH_CRC32) | SFT_HASH_BIT(SFT_HASH_CRC32_CIVITAI))
#define MODEL_BLAKE3 SFT_HASH_BIT(SFT_HASH_BLAKE3)
#define MODEL_SHARES 3
static const uint32_t model_shares[MODEL_SHARES] = {
    SFT_HASH_ALL & ~(MODEL_OF_DATA | MODEL_CONTENT | MODEL_CRC | MODEL_BLAKE3),
    MODEL_OF_DATA,
    MODEL_CONTENT,
};
#define MODEL_SEGMENT (UINT64_C(1) << 20) /* of BLAKE3, at least */
#define MODEL_SEGMENTS 4096

static void *model_take(sfti_hash_model *model, uint64_t count, size_t size) {
    uint64_t bytes;
    void *at = NULL;
    if (sfti_mul(count, size, &bytes) && sfti_fits_size(bytes))
        at = sfti_arena_take(&model->arena, (size_t)bytes);
    if (at) memset(at, 0, (size_t)bytes);
    else sfti_fail_memory(&model->error, count);
    return at;
}

/* What is still to be computed; a hash that is null because of the size never is. */
static uint32_t model_missing(const sft_hashes *hashes, uint64_t size) {
    uint32_t missing = hashes->asked & ~hashes->known;
    if (size < MODEL_CIVITAI_LEAST) missing &= ~SFT_HASH_BIT(SFT_HASH_AUTOV1_CIVITAI);
    return missing;
}

sfti_hash_key sfti_hash_key_of(const os_info *info) {
    return (sfti_hash_key){ info->device, info->inode, info->size, (uint64_t)info->mtime_ns,
                            (uint64_t)info->ctime_ns };
}

static bool is_same_key(const sfti_hash_key *a, const sfti_hash_key *b) {
    return a->device == b->device && a->inode == b->inode && a->size == b->size
           && a->mtime == b->mtime && a->ctime == b->ctime;
}

/* Notes the file for the cache and takes what the cache has. */
static void model_recall(sfti_hash_model *model, const sfti_hash_how *how,
                         const char *path, int fd, const sfti_hash_key *key,
                         sft_hashes *hashes) {
    if (!how->recall || !model->memos) return;
    model->memos[model->memo_count++] = (sfti_hash_memo){ path, fd, *key, hashes, true };
    how->recall(how->ctx, key, hashes);
}

/* ── One file ── */

/* Names, shapes and values of a model in another format; whatever the reason, without it content
 * stays unknown. */
static void model_open_import(sfti_hash_model *model, const sfti_hash_how *how) {
    sft_open_options options = *how->open;
    sft_error err = SFT_ERROR_INIT;
    options.alloc = how->alloc;
    if (!(model->request.algos & ~model->hashes.known & MODEL_CONTENT)) return;
    sft_code code = how->open_other(model->request.path, &options, &model->opened, &err);
    if (code == SFT_OUT_OF_MEMORY) model->error = err;
    else if (code && code != SFT_FOREIGN_KIND) model->model_error = err;
    if (!code) model->memo_count = 0; /* it may depend on other files than this one */
    if (!code && (model->request.algos & SFT_HASH_OF_MODEL) == MODEL_CONTENT)
        model->model_error = (sft_error)SFT_ERROR_INIT;
}

static void model_open_header(sfti_hash_model *model, const sfti_hash_how *how) {
    sft_open_options options = *how->open;
    sft_source borrowed = model->source;
    sft_error err = SFT_ERROR_INIT;
    borrowed.borrowed = true;
    options.mode = SFT_READ;
    options.header_only = false;
    options.alloc = how->alloc;
    if (model->source.size == SFT_SIZE_UNKNOWN) {
        sfti_fail(&model->model_error, SFT_IO_NOT_FILE,
                  "expected a file, found a pipe, which can be read once only");
        return;
    }
    sft_code code = sft_open_source(borrowed, &options, &model->file, &err);
    if (!code) return;
    sft_class class = sft_code_describe(code)->cls;
    if (class == SFT_CLASS_INVALID || class == SFT_CLASS_UNSUPPORTED
        || (class == SFT_CLASS_LIMIT && code != SFT_OUT_OF_MEMORY)) {
        model->model_error = err;
        if (how->open_other) model_open_import(model, how);
    } else {
        model->error = err;
    }
}

static void model_add_unit(sfti_hash_model *model, const sft_source *source, uint64_t size,
                           const sft_file *file, uint32_t algos, uint8_t (*digests)[32],
                           sft_hashes *into) {
    if (algos == 0) return;
    model->units[model->unit_count++] =
        (sfti_hash_unit){ *source, size, file, algos, digests, into, false, NULL, 0, size };
}

/* The units of one file's algorithms, of which the first alone counts as progress. */
typedef struct model_split {
    sfti_hash_model *model;
    const sft_source *source;
    const sft_file *file;
    size_t count;
} model_split;

static sfti_hash_unit *split_add(model_split *split, uint32_t algos) {
    sfti_hash_model *model = split->model;
    model_add_unit(model, split->source, model->bytes, split->file, algos, model->digests,
                   &model->hashes);
    sfti_hash_unit *unit = &model->units[model->unit_count - 1];
    unit->is_uncounted = split->count++ > 0;
    return unit;
}

/* A range of BLAKE3's segments for each thread; ranges count where nothing is read before them. */
static void split_blake3(model_split *split, size_t threads) {
    sfti_hash_model *model = split->model;
    bool is_counted = split->count == 0;
    sfti_blake3_segments *segments = model_take(model, 1, sizeof *segments);
    if (!segments) return;
    segments->bytes = MODEL_SEGMENT;
    while (model->bytes / segments->bytes > MODEL_SEGMENTS) segments->bytes *= 2;
    segments->count = (size_t)(model->bytes / segments->bytes);
    segments->values = model_take(model, segments->count, sizeof *segments->values);
    model->segments = segments;
    for (size_t i = 0; i < threads; i++) {
        sfti_hash_unit *unit = split_add(split, MODEL_BLAKE3);
        unit->segments = segments;
        unit->begin = segments->count * i / threads * segments->bytes;
        unit->end = i + 1 == threads ? model->bytes
                                     : segments->count * (i + 1) / threads * segments->bytes;
        unit->is_uncounted = !is_counted;
    }
}

/* On one thread SHA-256 streams are interleaved: two cost 1.3 times as much as one. So they share
 * one of two threads where the other has something else to do. */
static void model_split_units(model_split *split, uint32_t missing, size_t threads) {
    uint32_t other = missing & (MODEL_CRC | MODEL_BLAKE3), sha = missing & ~other;
    if (threads == 1) {
        if (missing) (void)split_add(split, missing);
        return;
    }
    size_t most = other ? threads - 1 : threads;
    for (int i = 0; i < MODEL_SHARES && sha; i++) {
        uint32_t share = sha & model_shares[i];
        if (share == 0) continue;
        if (split->count + 1 >= most) share = sha; /* the last thread gets all that are left */
        (void)split_add(split, share);
        sha &= ~share;
    }
    threads -= split->count;
    if (threads > 1 && other & MODEL_BLAKE3 && other & MODEL_CRC) {
        (void)split_add(split, MODEL_CRC & other);
        other = MODEL_BLAKE3;
        threads--;
    }
    if (threads > 1 && other == MODEL_BLAKE3) split_blake3(split, threads);
    else if (other) (void)split_add(split, other);
}

/* The bytes of an import, of which only content is wanted. */
static void model_list_import(sfti_hash_model *model) {
    const sft_file *file = sft_set_shard_at(model->opened, 0);
    sft_source source = sft_file_source(file);
    model->digests = model_take(model, sft_file_tensor_count(file) + 1, sizeof *model->digests);
    if (model->error.code) return;
    model_add_unit(model, &source, sft_file_size(file), file, MODEL_CONTENT, model->digests,
                   &model->hashes);
    model->units[model->unit_count - 1].is_uncounted = true;
}

/* The units of one file; file NULL if it is no model. */
static void model_list_one(sfti_hash_model *model, const sft_source *source,
                           const sft_file *file, const sfti_hash_how *how) {
    uint32_t missing = model_missing(&model->hashes, model->bytes);
    size_t threads = how->split;
    if (model->bytes == SFT_SIZE_UNKNOWN || model->bytes < MODEL_SPLIT_LEAST) threads = 1;
    if (sfti_source_expects(source)) threads = 1; /* it is slow: its bytes are read once */
    if (!file) missing &= ~SFT_HASH_OF_MODEL;
    model->units = model_take(model, MODEL_SHARES + 2 + threads, sizeof *model->units);
    if (model->opened && !model->error.code) model_list_import(model);
    if (missing & MODEL_CONTENT)
        model->digests = model_take(model, sft_file_tensor_count(file) + 1, sizeof *model->digests);
    model_split split = { model, source, file, 0 };
    if (!model->error.code) model_split_units(&split, missing, threads);
}

/* Lists the units of model->source. */
static void model_use_source(sfti_hash_model *model, const sfti_hash_how *how) {
    model->bytes = model->source.size;
    if (model->request.algos & ~model->hashes.known & SFT_HASH_OF_MODEL)
        model_open_header(model, how);
    if (!model->error.code)
        model_list_one(model, &model->source, model->file, how);
}

static void model_open_fd(sfti_hash_model *model, const sfti_hash_how *how) {
    const sft_wait *wait = how->open ? how->open->wait : NULL, *before = sfti_os_wait_as(wait);
    int error = sfti_os_open_read(model->request.path, &model->fd);
    os_info info;
    (void)sfti_os_wait_as(before);
    if (error) {
        model->fd = -1;
        sfti_io_fail(&model->error, SFT_IO_OPEN, error, "open this file");
        return;
    }
    error = sfti_os_info_fd(model->fd, &info);
    if (error) {
        sfti_io_fail(&model->error, SFT_IO_OPEN, error, "look at this file");
        return;
    }
    if (info.kind == OS_FILE && sft_edit_check(model->request.path, how->alloc, &model->error))
        return;
    if (model->memo_count > 0) { /* the path may lead to another file since the lookup */
        sfti_hash_key key = sfti_hash_key_of(&info);
        if (!is_same_key(&key, &model->memos[0].key)) {
            model->memos[0].valid = false;
            model->hashes.known = 0;
        }
    }
    if (!sfti_source_fd(model->fd, how->alloc, wait, &model->source, &model->error))
        model_use_source(model, how);
}

static void model_open_file(sfti_hash_model *model, const sfti_hash_how *how) {
    os_info info;
    int error = sfti_os_info_path(model->request.path, true, &info);
    if (error) {
        sfti_io_fail(&model->error, SFT_IO_OPEN, error, "open this file");
        return;
    }
    if (info.kind == OS_DIR) {
        sfti_fail(&model->error, SFT_IO_NOT_FILE, "expected a file, found a folder");
        return;
    }
    model->bytes = info.size;
    if (info.kind == OS_FILE) {
        sfti_hash_key key = sfti_hash_key_of(&info);
        model_recall(model, how, model->request.path, -1, &key, &model->hashes);
    }
    if (how->only_cached) return;
    if (info.kind != OS_FILE || model_missing(&model->hashes, info.size))
        model_open_fd(model, how);
}

/* ── Many ── */

/* Looks up each shard in the cache, then the set. By descriptor: the path may lead to another file
 * by now. */
static void set_recall(sfti_hash_model *model, const sfti_hash_how *how) {
    sfti_sha256 sum;
    os_info info;
    bool all = true;
    sfti_sha256_begin(&sum);
    for (size_t i = 0; i < model->shard_count; i++) {
        sft_source source = sft_file_source(sft_set_shard_at(model->set, i));
        int fd = sfti_source_descriptor(&source);
        if (fd < 0 || sfti_os_info_fd(fd, &info) != 0) {
            all = false;
            continue;
        }
        sfti_hash_key key = sfti_hash_key_of(&info);
        sfti_sha256_update(how->impl, &sum, &key, sizeof key);
        model_recall(model, how, NULL, fd, &key, &model->shards[i]);
    }
    if (!all || !(model->request.algos & MODEL_CONTENT)) return;
    /* A key of all shards, for what depends on all of them: from the sum of theirs. */
    sfti_hash_key key = { .size = model->bytes };
    uint8_t digest[32];
    sfti_sha256_end(how->impl, &sum, digest);
    memcpy(&key.device, digest, 8);
    memcpy(&key.inode, digest + 8, 8);
    memcpy(&key.mtime, digest + 16, 8);
    memcpy(&key.ctime, digest + 24, 8);
    model_recall(model, how, NULL, -1, &key, &model->hashes);
}

static bool set_add_sizes(sfti_hash_model *model) {
    model->bytes = 0;
    for (size_t i = 0; i < sft_set_shard_count(model->set); i++) {
        const sft_file *file = sft_set_shard_at(model->set, i);
        if (!sft_file_complete(file)
            || !sfti_add(model->bytes, sft_file_size(file), &model->bytes)) {
            sfti_fail(&model->error, SFT_INCOMPLETE,
                      "expected files of known size with all their data, found another");
            return false;
        }
    }
    return true;
}

static bool set_take_memory(sfti_hash_model *model) {
    size_t count = sft_set_shard_count(model->set);
    model->shard_count = count;
    model->units = model_take(model, count + 1, sizeof *model->units);
    model->memos = model_take(model, count + 1, sizeof *model->memos);
    model->shards = model_take(model, count + 1, sizeof *model->shards);
    model->shard_paths = model_take(model, count + 1, sizeof *model->shard_paths);
    if (model->error.code) return false;
    for (size_t i = 0; i < count; i++) {
        const char *path = sft_set_shard_path(model->set, i);
        size_t size = path ? strlen(path) + 1 : 1;
        char *copy = model_take(model, size, 1);
        if (!copy) return false;
        if (path) memcpy(copy, path, size);
        model->shard_paths[i] = copy;
        model->shards[i].asked = model->request.algos & ~MODEL_CONTENT;
    }
    return true;
}

static void set_list_units(sfti_hash_model *model) {
    bool content = model->request.algos & MODEL_CONTENT
                   && !(model->hashes.known & MODEL_CONTENT);
    size_t first = 0;
    if (content)
        model->digests = model_take(model, sft_set_tensor_count(model->set) + 1,
                                    sizeof *model->digests);
    if (model->error.code) return;
    for (size_t i = 0; i < model->shard_count; i++) {
        const sft_file *file = sft_set_shard_at(model->set, i);
        const sft_hashes *have = &model->shards[i];
        sft_source source = sft_file_source(file);
        uint32_t algos = model_missing(have, sft_file_size(file))
                         | (content ? MODEL_CONTENT : 0);
        model_add_unit(model, &source, sft_file_size(file), file, algos,
                       content ? model->digests + first : NULL, &model->shards[i]);
        first += sft_file_tensor_count(file);
    }
}

static void model_open_set(sfti_hash_model *model, const sfti_hash_how *how) {
    sft_set_options options = SFT_SET_OPTIONS_INIT;
    sft_open_options open = *how->open;
    open.mode = SFT_READ;
    open.header_only = false;
    open.alloc = how->alloc;
    options.open = &open;
    model->is_many = true;
    if (sft_set_open(model->request.path, &options, &model->opened, &model->error)) return;
    model->set = model->opened;
    if (!set_add_sizes(model) || !set_take_memory(model)) return;
    set_recall(model, how);
    if (!how->only_cached) set_list_units(model);
}

/* ── All ── */

static void model_begin_answer(sfti_hash_model *model, sft_hash_request request,
                               const sft_allocator *alloc) {
    static const sft_error none = SFT_ERROR_INIT;
    memset(model, 0, sizeof *model);
    model->request = request;
    model->arena.alloc = *alloc;
    model->fd = -1;
    model->error = model->model_error = none;
    model->hashes.asked = request.algos;
    model->bytes = SFT_SIZE_UNKNOWN;
}

/* What a server sends in place of a file: one is to log in, or there is nothing. */
static bool is_web_page(sfti_hash_model *model) {
    sft_error found = SFT_ERROR_INIT;
    found.code = SFT_HEADER_TOO_SMALL;
    sft_diagnose(&model->source, &found);
    if (found.code == SFT_FOUND_HTML) model->error = found;
    return found.code == SFT_FOUND_HTML;
}

void sfti_hash_model_open(sfti_hash_model *model, sft_hash_request request,
                          const sfti_hash_how *how) {
    model_begin_answer(model, request, how->alloc);
    if (sft_path_is_index(request.path)) {
        model_open_set(model, how);
        return;
    }
    if (sfti_files_claim(how->open->files, request.path, NULL)) {
        /* There is no cache for files that are not the system's. */
        sft_open_options options = *how->open;
        options.alloc = how->alloc;
        if (!how->only_cached
            && !sft_source_path(request.path, &options, &model->source, &model->error)
            && !is_web_page(model))
            model_use_source(model, how);
        return;
    }
    if (how->recall) model->memos = model_take(model, 1, sizeof *model->memos);
    if (!model->error.code) model_open_file(model, how);
}

void sfti_hash_model_borrow(sfti_hash_model *model, const sft_set *set, uint32_t algos,
                            const sfti_hash_how *how) {
    model_begin_answer(model, (sft_hash_request){ NULL, algos }, how->alloc);
    model->set = set;
    model->is_borrowed = true;
    if (!set_add_sizes(model)) return;
    if (sft_set_shard_count(set) == 1 && !sft_set_index_path(set)) {
        sft_source source = sft_file_source(sft_set_shard_at(set, 0));
        model_list_one(model, &source, sft_set_shard_at(set, 0), how);
        return;
    }
    model->is_many = true;
    model->request.algos &= MODEL_CONTENT;
    if (set_take_memory(model)) set_list_units(model);
}

void sfti_hash_model_finish(sfti_hash_model *model, const sfti_hash_how *how) {
    if (!model->error.code && model->digests) {
        const sft_file *file = model->units[0].file;
        (void)sfti_hash_content(how->impl, model->set, file, model->digests, how->alloc,
                                &model->hashes, &model->error);
    }
    if (!model->error.code && model->segments) {
        uint8_t digest[32];
        sfti_segments_end(model->segments, digest);
        sfti_hashes_put(&model->hashes, SFT_HASH_BLAKE3, digest);
    }
    if (model->error.code) return;
    bool all = true;
    for (size_t i = 0; i < model->memo_count; i++) {
        sfti_hash_memo *memo = &model->memos[i];
        os_info info;
        if (!memo->path && memo->fd < 0) {
            memo->valid = all; /* the set's own, which is the last */
            continue;
        }
        bool there = (memo->path ? sfti_os_info_path(memo->path, true, &info)
                                 : sfti_os_info_fd(memo->fd, &info)) == 0;
        sfti_hash_key key = there ? sfti_hash_key_of(&info) : memo->key;
        memo->valid = memo->valid && there && is_same_key(&key, &memo->key);
        all = all && memo->valid;
    }
}

void sfti_hash_model_close(sfti_hash_model *model) {
    sft_source_close(&model->source);
    sft_close(model->file);
    sft_set_close(model->opened);
    if (model->fd >= 0) sfti_os_close(model->fd);
    memset(&model->source, 0, sizeof model->source);
    model->file = NULL;
    model->opened = NULL;
    model->fd = -1;
}

void sfti_hash_model_free(sfti_hash_model *model) {
    sft_allocator alloc = model->arena.alloc;
    sfti_hash_model_close(model);
    sfti_arena_free(&model->arena);
    sfti_release(&alloc, model, sizeof *model);
}

void sfti_hash_model_result(const sfti_hash_model *model, sft_hash_result *out) {
    memset(out, 0, sizeof *out);
    out->path = model->request.path;
    out->error = model->error.code ? &model->error : NULL;
    out->model_error = model->model_error.code ? &model->model_error : NULL;
    out->bytes = model->bytes;
    out->hashes = model->hashes;
    out->is_remembered = model->unit_count == 0
                         && (model->hashes.known || (model->shards && model->shards[0].known));
    if (!model->is_many || out->error) return;
    out->shard_count = model->shard_count;
    out->shard_paths = model->shard_paths;
    out->shards = model->shards;
}
