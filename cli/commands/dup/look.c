/* dup: keys of a model from its size, its tensors' names and a few samples; only models with equal
 * keys are hashed. */
#include "base/checked.h"
#include "base/endian.h"
#include "base/foreign.h"
#include "commands/dup/dup.h"
#include "os/io.h"
#include "os/path.h"
#include "support/adapters.h"
#include "support/models.h"
#include "support/only_tensors.h"
#include "support/renamed.h"

#include <string.h>

#define DUP_SAMPLE 4096
#define DUP_SAMPLES 8

static void put_number(sft_hasher *hasher, uint64_t value) {
    uint8_t bytes[8];
    sfti_put_u64(bytes, value);
    sft_hasher_update(hasher, bytes, sizeof bytes);
}

/* The first failure stays in err. */
static void put_sample(sft_hasher *hasher, const sft_file *file, uint64_t at, uint64_t len,
                       sft_error *err) {
    uint8_t bytes[DUP_SAMPLE];
    size_t part = len < DUP_SAMPLE ? (size_t)len : DUP_SAMPLE;
    if (err->code || sft_read_bytes(file, at, bytes, part, err)) return;
    sft_hasher_update(hasher, bytes, part);
}

typedef void (*dup_put_fn)(sft_hasher *hasher, const void *what, sft_error *err);

/* Nothing after a failure. */
static void make_key(cli *c, char key[SFT_HASH_TEXT_SIZE], dup_put_fn put, const void *what,
                     sft_error *err) {
    sft_hasher *hasher = NULL;
    sft_hashes hashes;
    if (err->code) return;
    if (sft_hasher_new(SFT_HASH_BIT(SFT_HASH_SHA256), &c->alloc, &hasher, err)) return;
    put(hasher, what, err);
    if (!err->code) {
        sft_hasher_result(hasher, &hashes);
        memcpy(key, sft_hashes_get(&hashes, SFT_HASH_SHA256), 65);
    }
    sft_hasher_free(hasher);
}

/* Length of the data and some of its bytes. */
static void put_weights(sft_hasher *hasher, const void *what, sft_error *err) {
    const sft_file *file = what;
    uint64_t data = sft_file_data_offset(file), len = sft_file_data_bytes(file);
    put_number(hasher, len);
    for (uint64_t i = 0; i < DUP_SAMPLES; i++)
        put_sample(hasher, file, data + len / DUP_SAMPLES * i, len / DUP_SAMPLES, err);
}

typedef struct dup_named {
    const sft_set *set;
    const uint32_t *order; /* by name */
} dup_named;

static void put_tensor(sft_hasher *hasher, const sft_tensor *tensor) {
    put_number(hasher, tensor->name.len);
    sft_hasher_update(hasher, tensor->name.data, tensor->name.len);
    put_number(hasher, tensor->dtype);
    put_number(hasher, tensor->rank);
    for (uint32_t d = 0; d < tensor->rank; d++) put_number(hasher, tensor->shape[d]);
}

/* Which part of the data is which tensor. */
static void put_layout(sft_hasher *hasher, const void *what, sft_error *err) {
    const dup_named *named = what;
    (void)err;
    for (size_t i = 0; i < sft_set_tensor_count(named->set); i++) {
        const sft_tensor *tensor = sft_set_tensor_at(named->set, named->order[i]);
        put_tensor(hasher, tensor);
        put_number(hasher, tensor->begin);
        put_number(hasher, tensor->end);
    }
}

/* Names, dtypes and shapes of all tensors and some bytes of some. */
static void put_content(sft_hasher *hasher, const void *what, sft_error *err) {
    const dup_named *named = what;
    size_t count = sft_set_tensor_count(named->set), step = count / DUP_SAMPLES + 1;
    for (size_t i = 0; i < count; i++) {
        const sft_tensor *tensor = sft_set_tensor_at(named->set, named->order[i]);
        const sft_file *file =
            sft_set_shard_at(named->set, sft_set_tensor_shard(named->set, named->order[i]));
        put_tensor(hasher, tensor);
        if (i % step == 0)
            put_sample(hasher, file, tensor->offset, tensor->end - tensor->begin, err);
    }
}

static void put_pair(sft_hasher *hasher, sft_pair pair) {
    put_number(hasher, pair.key.len);
    sft_hasher_update(hasher, pair.key.data, pair.key.len);
    put_number(hasher, pair.value.len);
    sft_hasher_update(hasher, pair.value.data, pair.value.len);
}

typedef struct dup_meant {
    const sft_set *set; /* NULL: not all of it is read */
    cli_aliases aliases;
    char config[SFT_HASH_TEXT_SIZE]; /* digest of an adapter's, beside it; or empty */
} dup_meant;

/* Other names of tensors, and what says how they are read. */
static void put_meant(sft_hasher *hasher, const void *what, sft_error *err) {
    const dup_meant *meant = what;
    sft_pair reading;
    (void)err;
    for (size_t i = 0; i < meant->aliases.count; i++) put_pair(hasher, meant->aliases.pairs[i]);
    for (size_t i = 0; meant->set && cli_reading_at(meant->set, i, &reading); i++)
        put_pair(hasher, reading);
    sft_hasher_update(hasher, meant->config, strlen(meant->config));
}

static void put_size(sft_hasher *hasher, const void *what, sft_error *err) {
    (void)err;
    put_number(hasher, *(const uint64_t *)what);
}

/* Bytes of the files that were opened beside a model's own: shards, parts, external data. */
static uint64_t bytes_of_others(sfti_arena *arena, const char *path, const sft_import *import,
                                size_t count) {
    sft_span *names = sfti_arena_array(arena, count, sizeof *names);
    uint64_t sum = 0;
    os_info info;
    if (names) (void)((const sfti_foreign *)(const void *)import)->files(import, names);
    for (size_t i = 0; names && i < count; i++) {
        char *file = sfti_arena_join(arena, (sft_span){ path, sfti_folder_len(path) },
                                     names[i]);
        if (file && !sfti_os_info_path(file, true, &info)) sfti_total_add(&sum, info.size);
    }
    return sum;
}

/* Keys of what the tensors of a model mean and, unless set is NULL, of these. */
static void make_content_keys(cli *c, dup_model *model, const sft_set *set, sft_error *err) {
    sfti_arena arena = { .alloc = c->alloc };
    size_t bytes = set ? (sft_set_tensor_count(set) + 1) * sizeof(uint32_t) : 1;
    uint32_t *order = sfti_take(&c->alloc, bytes);
    dup_named named = { set, order };
    dup_meant meant = { set, { .count = 0 }, "" };
    sft_pair reading;
    if (!order) sfti_fail_memory(err, bytes);
    else if (set && !sft_set_order(set, SFT_ORDER_NAME, order, err)) {
        if (*model->key[DUP_WEIGHTS]) make_key(c, model->layout, put_layout, &named, err);
        if (!err->code && !cli_aliases_of(set, &arena, &meant.aliases, err)
            && !cli_aliases_once(&meant.aliases, &arena, err))
            make_key(c, model->key[DUP_TENSORS], put_content, &named, err);
    }
    /* Values that no one can tell are compared as the bytes of their file. */
    if (err->code == SFT_CAST_DTYPE) *err = (sft_error)SFT_ERROR_INIT;
    if (!err->code) (void)cli_digest_adapter_config(c, model->at.path, meant.config, err);
    if (meant.aliases.count > 0 || *meant.config || (set && cli_reading_at(set, 0, &reading)))
        make_key(c, model->meant, put_meant, &meant, err);
    if (set && !model->holds_more)
        memcpy(model->key[DUP_CONTENT], model->key[DUP_TENSORS], SFT_HASH_TEXT_SIZE);
    sfti_release(&c->alloc, order, bytes);
    sfti_arena_free(&arena);
}

bool dup_look_at(cli *c, sfti_arena *arena, dup_model *model, const cli_input *input) {
    sft_set_options options = cli_set_options(c);
    sft_error err = SFT_ERROR_INIT;
    sft_set *set = NULL;
    sft_import *import;
    os_info info;
    bool is_partial;
    model->at.path = input->path;
    sft_code code = cli_open_path(c, input->path, &options, &set, &import, &err);
    sft_class cls = sft_code_describe(code)->cls;
    bool is_none = cls == SFT_CLASS_INVALID || cls == SFT_CLASS_UNSUPPORTED
                   || (cls == SFT_CLASS_LIMIT && code != SFT_OUT_OF_MEMORY);
    if (!code && !import) {
        model->bytes = sft_set_file_bytes(set);
        if (!sft_set_index_path(set)) {
            make_key(c, model->key[DUP_FILE], put_size, &model->bytes, &err);
            make_key(c, model->key[DUP_WEIGHTS], put_weights, sft_set_shard_at(set, 0), &err);
            memcpy(model->key[DUP_DATA], model->key[DUP_WEIGHTS], SFT_HASH_TEXT_SIZE);
        }
    } else if ((!code || (is_none && input->kind == CLI_FILE))
               && sfti_os_info_path(input->path, true, &info) == 0 && info.kind == OS_FILE) {
        /* another format has the bytes of its file; what is no model can be a copy all the same */
        const sfti_foreign *foreign = code ? NULL : (const void *)import;
        err = (sft_error)SFT_ERROR_INIT;
        model->bytes = info.size;
        size_t others = foreign ? foreign->files(import, NULL) : 0;
        if (others == 0) /* else the others may differ */
            make_key(c, model->key[DUP_FILE], put_size, &info.size, &err);
        else model->bytes += bytes_of_others(arena, input->path, import, others);
    }
    cli_find_left(import, &is_partial, &model->holds_more);
    if (!err.code) /* compares the import's result */
        make_content_keys(c, model, code || is_partial ? NULL : set, &err);
    sft_set_close(set);
    if (err.code) cli_fail_found(c, input, input->path, &err);
    return !err.code;
}
