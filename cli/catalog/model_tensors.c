/* The tensors of a model in columns. */
#include "catalog/model_page.h"

#include "base/checked.h"
#include "base/error.h"
#include "base/number.h"
#include "base/utf8.h"
#include "catalog/dict.h"
#include "support/files.h"

#include <string.h>

#define SHAPE_TEXT ((SFTI_UINT_SIZE + 1) * (size_t)SFT_MAX_RANK)

/* ── The list ── */

/* "folder/name" of a component, the name itself of any other. */
static bool with_folder(sfti_arena *arena, const char *folder, sft_span *name) {
    size_t head = folder ? strlen(folder) + 1 : 0;
    uint64_t size;
    if (!folder) return true;
    char *whole = sfti_add(head, name->len, &size) && sfti_fits_size(size)
                ? sfti_arena_take(arena, (size_t)size) : NULL;
    if (!whole) return false;
    memcpy(whole, folder, head - 1);
    whole[head - 1] = '/';
    if (name->len) memcpy(whole + head, name->data, name->len);
    *name = (sft_span){ whole, (size_t)size };
    return true;
}

static bool list_set(model_tensors *all, const sft_set *set, const char *folder) {
    size_t shards = sft_set_shard_count(set), count = sft_set_tensor_count(set);
    for (size_t s = 0; s < shards; s++) {
        const char *path = sft_set_shard_path(set, s);
        model_file *file = &all->files[all->file_count + s];
        *file = (model_file){ sft_set_shard_at(set, s), cli_name_of(path ? path : "-") };
        if (!with_folder(&all->arena, folder, &file->name)) return false;
    }
    for (size_t i = 0; i < count; i++) {
        const sft_tensor *tensor = sft_set_tensor_at(set, i);
        model_tensor *item = &all->items[all->count++];
        *item = (model_tensor){ tensor, tensor->name, all->file_count
                                                          + sft_set_tensor_shard(set, i) };
        if (!with_folder(&all->arena, folder, &item->name)) return false;
    }
    all->file_count += shards;
    return true;
}

sft_code model_tensors_list(model_tensors *all, const cli_model *model, const sft_allocator *alloc,
                            sft_error *err) {
    size_t sets = model->set ? 1 : model->members ? model->count : 0;
    uint64_t files = 0, count = 0;
    *all = (model_tensors){ .arena.alloc = *alloc };
    for (size_t i = 0; i < sets; i++) {
        const sft_set *set = model->set ? model->set : model->members[i].set;
        sfti_total_add(&files, sft_set_shard_count(set));
        sfti_total_add(&count, sft_set_tensor_count(set));
    }
    all->files = sfti_arena_array(&all->arena, files, sizeof *all->files);
    all->items = sfti_arena_array(&all->arena, count, sizeof *all->items);
    bool ok = all->files && all->items;
    for (size_t i = 0; ok && i < sets; i++)
        ok = model->set ? list_set(all, model->set, NULL)
                        : list_set(all, model->members[i].set, model->members[i].name);
    return ok ? SFT_OK : sfti_fail_memory(err, (size_t)count * sizeof *all->items);
}

void model_tensors_free(model_tensors *all) { sfti_arena_free(&all->arena); }

/* ── Names ── */

typedef struct shared_part {
    size_t bytes, units; /* of UTF-16 */
} shared_part;

/* Whole characters that both begin with. */
static shared_part shared_of(sft_span before, sft_span name) {
    const uint8_t *at = (const uint8_t *)name.data, *end = at + name.len;
    size_t same = 0, most = before.len < name.len ? before.len : name.len;
    shared_part part = { 0, 0 };
    while (same < most && before.data[same] == name.data[same]) same++;
    while (part.bytes < same) {
        uint32_t code;
        size_t len = sfti_utf8_decode(at + part.bytes, end, &code);
        if (!len || len > same - part.bytes) break;
        part.bytes += len;
        part.units += code > 0xFFFF ? 2 : 1;
    }
    return part;
}

static shared_part shared_at(const model_tensors *all, size_t i) {
    return shared_of(i ? all->items[i - 1].name : (sft_span){ "", 0 }, all->items[i].name);
}

/* ── Dictionaries ── */

/* A text that stands for the shape: a comma before each dimension, or one for a scalar. */
static sft_span shape_key(const sft_tensor *tensor, char buffer[SHAPE_TEXT + 1]) {
    size_t len = 0;
    buffer[len++] = ',';
    for (uint32_t d = 0; d < tensor->rank && d < SFT_MAX_RANK; d++) {
        if (d > 0) buffer[len++] = ',';
        len += sfti_uint_text(tensor->shape[d], 0, buffer + len);
    }
    return (sft_span){ buffer, len };
}

static sft_span dtype_key(const sft_tensor *tensor, char buffer[SHAPE_TEXT + 1]) {
    (void)buffer;
    return sft_span_cstr(sft_dtype_describe(tensor->dtype)->name);
}

/* A dictionary and the column that uses it; `skip` bytes of each key are not of its text. */
static bool put_coded(const model_tensors *all, sfti_json_writer *w, const char *keys,
                      const char *column, size_t skip,
                      sft_span (*key)(const sft_tensor *, char *)) {
    char buffer[SHAPE_TEXT + 1];
    sfti_arena arena = { .alloc = all->arena.alloc };
    catalog_dict dict;
    bool ok = true;
    dict_begin(&dict, &arena);
    sfti_json_put_open(w, column, '[');
    for (size_t i = 0; ok && i < all->count; i++) {
        uint32_t number = 0;
        ok = dict_put(&dict, key(all->items[i].tensor, buffer), (sft_span){ "", 0 }, &number);
        sfti_json_uint(w, number);
    }
    sfti_json_close(w, ']');
    sfti_json_put_open(w, keys, '[');
    for (size_t i = 0; i < dict.count; i++) {
        sft_span text = dict.entries[i].text;
        sfti_json_span(w, (sft_span){ text.data + skip, text.len - skip });
    }
    sfti_json_close(w, ']');
    dict_free(&dict);
    sfti_arena_free(&arena);
    return ok;
}

/* ── Columns ── */

sft_code model_tensors_write(const model_tensors *all, sfti_json_writer *w, sft_error *err) {
    sfti_json_put_uint(w, "count", all->count);
    sfti_json_put_open(w, "shared", '[');
    for (size_t i = 0; i < all->count; i++) sfti_json_uint(w, shared_at(all, i).units);
    sfti_json_close(w, ']');
    sfti_json_put_open(w, "rest", '[');
    for (size_t i = 0; i < all->count; i++) {
        sft_span name = all->items[i].name;
        size_t skip = shared_at(all, i).bytes;
        sfti_json_span(w, (sft_span){ name.data + skip, name.len - skip });
    }
    sfti_json_close(w, ']');
    if (!put_coded(all, w, "dtypes", "dtype", 0, dtype_key)
        || !put_coded(all, w, "shapes", "shape", 1, shape_key))
        return sfti_fail_memory(err, all->count);
    sfti_json_put_open(w, "bytes", '[');
    for (size_t i = 0; i < all->count; i++)
        sfti_json_uint(w, all->items[i].tensor->end - all->items[i].tensor->begin);
    sfti_json_close(w, ']');
    sfti_json_put_open(w, "offset", '[');
    for (size_t i = 0; i < all->count; i++) sfti_json_uint(w, all->items[i].tensor->offset);
    sfti_json_close(w, ']');
    if (all->file_count < 2) return w->code;
    sfti_json_put_open(w, "files", '[');
    for (size_t i = 0; i < all->file_count; i++) sfti_json_span(w, all->files[i].name);
    sfti_json_close(w, ']');
    sfti_json_put_open(w, "shard", '[');
    for (size_t i = 0; i < all->count; i++) sfti_json_uint(w, all->items[i].file);
    sfti_json_close(w, ']');
    return w->code;
}
