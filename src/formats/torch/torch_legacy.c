/* PyTorch before 1.6: pickles, then storages. Tests: test_import_torch.c. */
#include "base/announce.h"
#include "base/endian.h"
#include "formats/torch/torch.h"

#include <string.h>

/* The number that begins such a file, as a pickle of its own. It is compared byte by byte: what
 * only computes it is none. */
bool sfti_is_torch_legacy(sfti_import *im, const uint8_t *head, size_t len) {
    static const uint8_t magic[] = { 0x8a, 0x0a, 0x6c, 0xfc, 0x9c, 0x46, 0xf9,
                                     0x20, 0x6a, 0xa8, 0x50, 0x19, 0x2e };
    size_t at = 2;
    (void)im;
    if (len < 2 || head[0] != 0x80 || head[1] > 5) return false;
    if (len > 2 && head[2] == 0x95) at += 9; /* a frame */
    return len >= at + sizeof magic && memcmp(head + at, magic, sizeof magic) == 0;
}

static sft_code declare_storage(sfti_storages *storages, sfti_storage *storage) {
    storage->source = storages->im->input;
    return SFT_OK;
}

/* Types and sizes of all storages; where they are is known once their list is read. */
static sft_code declare_all(sfti_storages *storages, const sfti_pickle *pickle) {
    sft_code code = SFT_OK;
    for (size_t i = 0; i < pickle->outside_count && !code; i++) {
        const sfti_value *id = pickle->outside[i]->u.outside;
        const sfti_storage *storage;
        if (id->kind == SFTI_VALUE_TUPLE && id->count > 0 &&
            sfti_value_is(id->u.items[0], "module"))
            continue;
        code = sfti_storages_get(storages, id, &storage);
    }
    return code;
}

static sft_code place_storage(sfti_storages *storages, const sfti_value *key, bool *placed,
                              uint64_t *at) {
    sfti_import *im = storages->im;
    const sft_source *input = im->input;
    uint8_t count[8];
    bool text = key->kind == SFTI_VALUE_TEXT && key->u.text;
    uint32_t entry = text ? sfti_names_find(&storages->names,
                                            (sft_span){ key->u.text, key->count })
                          : SFTI_NO_NAME;
    if (entry == SFTI_NO_NAME)
        return sfti_fail_byte(im->err, SFT_FOREIGN_SYNTAX, key->at,
                              "expected the key of a storage that the pickle names, found another");
    if (placed[entry])
        return sfti_fail_byte(im->err, SFT_FOREIGN_AMBIGUOUS, key->at,
                              "expected every storage once, found \"%.*s\" twice",
                              SFTI_CLIP(storages->all[entry].key, 40));
    placed[entry] = true;
    sfti_storage *storage = &storages->all[entry];
    sft_code code = sfti_import_read(im, input, *at, count, sizeof count);
    if (code) return code;
    uint64_t elements = sfti_get_u64(count), bytes;
    if (!sfti_mul(elements, storage->dtype->size, &bytes) || bytes != storage->bytes)
        return sfti_fail_byte(im->err, SFT_FOREIGN_SIZE, *at,
                              "expected storage \"%.*s\" to have %llu elements, found %llu",
                              SFTI_CLIP(storage->key, 40),
                              (unsigned long long)(storage->bytes / storage->dtype->size),
                              (unsigned long long)elements);
    if (bytes > input->size - *at - 8)
        return sfti_fail_byte(im->err, SFT_FOREIGN_TRUNCATED, *at + 8,
                              "expected %llu bytes of data, found the end of the file at byte %llu",
                              (unsigned long long)bytes, (unsigned long long)input->size);
    storage->begin = *at + 8;
    *at += 8 + bytes;
    return SFT_OK;
}

/* The counts in front of the storages, by the sizes that the pickle says. */
static void announce_counts(const sfti_storages *storages, const sfti_value *keys, uint64_t at) {
    const sft_source *input = storages->im->input;
    sfti_announcement all = { .count = 0 };
    for (uint32_t i = 0; i < keys->count && at < input->size; i++) {
        const sfti_value *key = keys->u.items[i];
        bool text = key->kind == SFTI_VALUE_TEXT && key->u.text;
        uint32_t entry = text ? sfti_names_find(&storages->names,
                                                (sft_span){ key->u.text, key->count })
                              : SFTI_NO_NAME;
        if (entry == SFTI_NO_NAME) break;
        sfti_announce(&all, input, at, 8);
        if (!sfti_add(at, 8, &at) || !sfti_add(at, storages->all[entry].bytes, &at)) break;
    }
    sfti_announce_end(&all);
}

/* The storages follow one another in the order of their list. */
static sft_code place_all(sfti_storages *storages, const sfti_value *keys, uint64_t at) {
    sfti_import *im = storages->im;
    if (keys->kind != SFTI_VALUE_LIST)
        return sfti_fail_byte(im->err, SFT_FOREIGN_SYNTAX, at,
                              "expected a list of storages, found %s",
                              sfti_value_kind_name(keys->kind));
    bool *placed = sfti_arena_array(&im->arena, storages->count, sizeof *placed);
    if (!placed) return sfti_fail_memory(im->err, storages->count);
    memset(placed, 0, storages->count * sizeof *placed);
    announce_counts(storages, keys, at);
    sft_code code = SFT_OK;
    for (uint32_t i = 0; i < keys->count && !code; i++)
        code = place_storage(storages, keys->u.items[i], placed, &at);
    if (code) return code;
    for (size_t i = 0; i < storages->count; i++)
        if (!placed[i] && storages->all[i].bytes > 0)
            return sfti_fail_byte(im->err, SFT_FOREIGN_SYNTAX, storages->all[i].at,
                                  "expected storage \"%.*s\" in the list of storages, found it "
                                  "missing", SFTI_CLIP(storages->all[i].key, 40));
    uint64_t rest = im->input->size - at;
    return rest == 0 ? SFT_OK
                     : sfti_import_leave(im, SFT_IMPORT_LEFT_RECORD, (sft_span){ "", 0 }, 1, rest,
                                         "bytes after the last storage");
}

static sft_code next_pickle(sfti_import *im, sfti_arena *values, uint64_t *at,
                            sfti_pickle *out) {
    const sft_source *source = im->input;
    sfti_pickle_input input = { source, *at, source->size, NULL };
    *out = (sfti_pickle){ 0 };
    sft_code code = sfti_pickle_read(&input, values, out, im->err);
    if (!code) *at = out->end;
    return code;
}

/* Five pickles, of which the fourth is what was saved: the magic number, the version of the
 * format, facts of the machine, the object, the list of storages. Bytes are little-endian,
 * whatever the facts say: the writer converts them. */
sft_code sfti_read_torch_legacy(sfti_import *im) {
    sfti_pickle magic, version, facts, object, keys;
    sfti_storages storages = { .locate = declare_storage, .views = true };
    sfti_arena values = { .alloc = im->arena.alloc };
    uint64_t at = 0;
    sft_code code = next_pickle(im, &values, &at, &magic);
    if (!code) code = next_pickle(im, &values, &at, &version);
    if (!code && (version.root->kind != SFTI_VALUE_INT || version.root->u.integer != 1001))
        code = sfti_fail_byte(im->err, SFT_FOREIGN_KIND, magic.end,
                              "expected version 1001 of the format, found another");
    if (!code) code = next_pickle(im, &values, &at, &facts);
    if (!code) code = next_pickle(im, &values, &at, &object);
    if (!code) code = next_pickle(im, &values, &at, &keys);
    if (!code) code = sfti_storages_begin(&storages, im, object.outside_count);
    if (code) goto done;
    code = declare_all(&storages, &object);
    if (!code) code = place_all(&storages, keys.root, at);
    if (!code) code = sfti_torch_import(im, &object, im->input, &storages);
done:
    sfti_arena_free(&values);
    return code;
}
