/* PyTorch's storages by their keys. Tests: test_import_torch.c. */
#include "formats/objects/storages.h"

#include "os/io.h"

static sft_span storage_key(const void *ctx, uint32_t entry) {
    return ((const sfti_storages *)ctx)->all[entry].key;
}

sft_code sfti_storages_begin(sfti_storages *storages, sfti_import *im, uint64_t most) {
    storages->im = im;
    bool has = most < UINT32_MAX - 1 &&
               sfti_names_draw(&storages->names, most + 1, storage_key, storages, &im->arena);
    if (has) storages->all = sfti_arena_array(&im->arena, most + 1, sizeof *storages->all);
    if (has && storages->all) return sfti_import_expect(im, most);
    return sfti_fail_memory(im->err, most);
}

static sft_code bad_id(const sfti_storages *storages, const sfti_value *id, const char *found) {
    return sfti_fail_byte(storages->im->err, SFT_FOREIGN_SYNTAX, id->at, "expected a persistent id "
                          "(\"storage\", type, key, location, elements), found %s", found);
}

/* The members of an id, in a storage that is not yet located. */
static sft_code storage_parse(const sfti_storages *storages, const sfti_value *id,
                              sfti_storage *out) {
    if (id->kind != SFTI_VALUE_TUPLE || id->count < 5 || id->count > (storages->views ? 6 : 5))
        return bad_id(storages, id, sfti_value_kind_name(id->kind));
    sfti_value **items = id->u.items;
    if (!sfti_value_is(items[0], "storage")) return bad_id(storages, id, "another kind of id");
    if (sfti_value_meaning(items[1]) != SFTI_MEANS_STORAGE ||
        items[1]->kind != SFTI_VALUE_GLOBAL)
        return bad_id(storages, id, "another type than those of storages");
    if (items[2]->kind != SFTI_VALUE_TEXT || !items[2]->u.text)
        return bad_id(storages, id, "a key that is no text");
    if (items[4]->kind != SFTI_VALUE_INT || items[4]->u.integer < 0)
        return bad_id(storages, id, "a number of elements that is none");
    out->key = (sft_span){ items[2]->u.text, items[2]->count };
    out->dtype = items[1]->u.global->dtype;
    out->at = id->at;
    if (!sfti_mul((uint64_t)items[4]->u.integer, out->dtype->size, &out->bytes))
        return bad_id(storages, id, "more than 2^64 bytes");
    return SFT_OK;
}

/* An id is put in the table as if it were new; if it is not, its place is used again. There is one
 * more place than ids, so the last has one, too. */
sft_code sfti_storages_get(sfti_storages *storages, const sfti_value *id,
                           const sfti_storage **out) {
    sfti_storage *parsed = &storages->all[storages->count];
    *parsed = (sfti_storage){ .id = (uint32_t)storages->count + 1 };
    sft_code code = storage_parse(storages, id, parsed);
    if (code) return code;
    uint32_t entry = sfti_names_add(&storages->names, parsed->key, (uint32_t)storages->count);
    sfti_storage *storage = &storages->all[entry];
    if (storage == parsed) {
        storages->count++;
        code = storages->locate(storages, storage);
        if (code) return code;
    } else if (storage->dtype != parsed->dtype || storage->bytes != parsed->bytes) {
        return sfti_fail_byte(storages->im->err, SFT_FOREIGN_AMBIGUOUS, id->at,
                              "expected storage %.*s to be %llu bytes of %s as at byte %llu, found "
                              "%llu of %s", SFTI_CLIP(storage->key, 40),
                              (unsigned long long)storage->bytes, storage->dtype->name,
                              (unsigned long long)storage->at, (unsigned long long)parsed->bytes,
                              parsed->dtype->name);
    }
    *out = storage;
    const sfti_value *view = sfti_value_item(id, 5);
    if (!view || view->kind == SFTI_VALUE_NONE) return SFT_OK;
    sfti_storage *part = sfti_arena_take(&storages->im->arena, sizeof *part);
    if (!part) return sfti_fail_memory(storages->im->err, sizeof *part);
    *out = part;

    /* PyTorch before 1.6: (key, first element, elements) of a storage that lies within this one. */
    uint64_t offset = 0, bytes = 0;
    const sfti_value *first = sfti_value_item(view, 1), *count = sfti_value_item(view, 2);
    if (view->kind != SFTI_VALUE_TUPLE || view->count != 3 || first->kind != SFTI_VALUE_INT ||
        count->kind != SFTI_VALUE_INT || first->u.integer < 0 || count->u.integer < 0 ||
        !sfti_mul((uint64_t)first->u.integer, storage->dtype->size, &offset) ||
        !sfti_mul((uint64_t)count->u.integer, storage->dtype->size, &bytes))
        return bad_id(storages, view, "a view of another form");
    if (offset > storage->bytes || bytes > storage->bytes - offset)
        return sfti_fail_byte(storages->im->err, SFT_FOREIGN_SIZE, view->at,
                              "expected a view within its storage, found one that goes beyond");
    *part = *storage;
    part->begin += offset;
    part->bytes = bytes;
    return SFT_OK;
}
