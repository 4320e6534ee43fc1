/* PyTorch before 0.1.10: a tar archive of three members that matter.
 *   storages  a pickled count; for each (key, location, type) pickled, an i64 of elements and
 *             their bytes; then a pickled list of (key, key of the whole, first element, elements)
 *   tensors   a pickled count; for each (key, key of its storage, type) pickled, i32 dimensions,
 *             4 bytes, i64 sizes, i64 strides, i64 offset
 *   pickle    the object, whose persistent ids are keys of tensors and storages
 * Tests: test_import_torch.c. */
#include "base/endian.h"
#include "base/number.h"
#include "formats/torch/torch.h"
#include "os/io.h"

#include <string.h>

#define TAR_BLOCK 512
#define TAR_MOST 262144 /* storages and tensors */

typedef struct tar_member {
    uint64_t begin, end;
} tar_member;

/* A storage, or a tensor in one, by the number that the file has for it. */
typedef struct tar_entry {
    uint8_t key[8];
    const sfti_torch_dtype *dtype;
    uint64_t begin, bytes;
    uint32_t storage; /* id */
    sfti_item *item;  /* NULL: a storage */
} tar_entry;

typedef struct tar_reader {
    sfti_import *im;
    uint64_t at, end; /* of the member being read */
    tar_entry *all;
    size_t count;
    sfti_names names;
} tar_reader;

/* ── The archive ── */

static bool octal(const uint8_t *text, size_t len, uint64_t *out) {
    size_t i = 0;
    *out = 0;
    while (i < len && text[i] == ' ') i++;
    for (; i < len && text[i] >= '0' && text[i] <= '7'; i++) *out = *out * 8 + (text[i] - '0');
    return i > 0 && (i == len || text[i] == ' ' || text[i] == '\0');
}

/* A header whose checksum is right: that of its bytes, with spaces for itself. */
static bool tar_header(const uint8_t *block, uint64_t *size) {
    uint64_t told, sum = 8 * ' ';
    for (size_t i = 0; i < TAR_BLOCK; i++)
        if (i < 148 || i >= 156) sum += block[i];
    return octal(block + 148, 8, &told) && told == sum && octal(block + 124, 12, size) &&
           memchr(block, '\0', 100);
}

static const char *const member_names[] = { "storages", "tensors", "pickle" };

bool sfti_is_torch_tar(sfti_import *im, const uint8_t *head, size_t len) {
    uint8_t block[TAR_BLOCK];
    uint64_t size;
    bool named = len >= 9 && memcmp(head, "sys_info", 9) == 0;
    for (size_t i = 0; i < 3; i++)
        named = named || (len >= 10 && memcmp(head, member_names[i],
                                              strlen(member_names[i]) + 1) == 0);
    return named && !sfti_import_read(im, im->input, 0, block, sizeof block) &&
           tar_header(block, &size);
}

static sft_code tar_members(sfti_import *im, tar_member members[3]) {
    const sft_source *input = im->input;
    uint8_t block[TAR_BLOCK];
    uint64_t size, at = 0;
    while (at < input->size) {
        sft_code code = sfti_import_read(im, input, at, block, sizeof block);
        if (code) return code;
        if (block[0] == '\0') break;
        if (!tar_header(block, &size) || size > input->size - at - TAR_BLOCK)
            return sfti_fail_byte(im->err, SFT_FOREIGN_SYNTAX, at, "expected the header of a "
                                  "member of a tar archive, found other bytes");
        for (size_t i = 0; i < 3; i++) {
            if (strcmp((const char *)block, member_names[i]) != 0) continue;
            if (members[i].end > 0)
                return sfti_fail_byte(im->err, SFT_FOREIGN_AMBIGUOUS, at,
                                      "expected one member \"%s\", found two", member_names[i]);
            members[i] = (tar_member){ at + TAR_BLOCK, at + TAR_BLOCK + size };
        }
        if (!sfti_align_up(size, TAR_BLOCK, &size) || size > input->size - at - TAR_BLOCK) break;
        at += TAR_BLOCK + size;
    }
    for (size_t i = 0; i < 3; i++)
        if (members[i].end == 0)
            return sfti_fail_byte(im->err, SFT_FOREIGN_SYNTAX, at,
                                  "expected a member \"%s\", found none", member_names[i]);
    return SFT_OK;
}

/* ── Its members ── */

static sft_code tar_fail(const tar_reader *t, const char *expected) {
    return sfti_fail_byte(t->im->err, SFT_FOREIGN_SYNTAX, t->at,
                          "expected %s, found something else", expected);
}

static sft_code tar_pickle(tar_reader *t, sfti_pickle *out) {
    sfti_pickle_input input = { t->im->input, t->at, t->end, NULL };
    *out = (sfti_pickle){ 0 };
    sft_code code = sfti_pickle_read(&input, &t->im->arena, out, t->im->err);
    if (code) return code;
    t->at = out->end;
    return SFT_OK;
}

static sft_code tar_count(tar_reader *t, uint64_t *out) {
    sfti_pickle pickle;
    sft_code code = tar_pickle(t, &pickle);
    if (code) return code;
    if (pickle.root->kind != SFTI_VALUE_INT || pickle.root->u.integer < 0)
        return tar_fail(t, "a number of objects");
    *out = (uint64_t)pickle.root->u.integer;
    return SFT_OK;
}

static sft_code tar_bytes(tar_reader *t, void *into, size_t len) {
    if (len > t->end - t->at) return tar_fail(t, "more bytes of the member");
    sft_code code = sfti_import_read(t->im, t->im->input, t->at, into, len);
    t->at += len;
    return code;
}

/* Keys are integers, or their digits. */
static bool tar_key(const sfti_value *value, uint8_t key[8]) {
    uint64_t number = 0;
    if (value->kind == SFTI_VALUE_INT) {
        sfti_put_u64(key, (uint64_t)value->u.integer);
        return true;
    }
    if (value->kind != SFTI_VALUE_TEXT || !value->u.text) return false;
    if (!sfti_text_uint((sft_span){ value->u.text, value->count }, &number)) return false;
    sfti_put_u64(key, number);
    return true;
}

static sft_span tar_name(const void *ctx, uint32_t entry) {
    return (sft_span){ (const char *)((const tar_reader *)ctx)->all[entry].key, 8 };
}

static const tar_entry *tar_find(const tar_reader *t, const sfti_value *key) {
    uint8_t bytes[8];
    if (!key || !tar_key(key, bytes)) return NULL;
    uint32_t entry = sfti_names_find(&t->names, (sft_span){ (const char *)bytes, 8 });
    return entry == SFTI_NO_NAME ? NULL : &t->all[entry];
}

static sft_code tar_add(tar_reader *t, const sfti_value *key, tar_entry entry) {
    sft_error *err = t->im->err;
    if (!tar_key(key, entry.key)) return tar_fail(t, "a number as key");
    if (t->count == TAR_MOST)
        return sfti_fail_byte(err, SFT_FOREIGN_TABLE, t->at,
                              "expected at most %d storages and tensors, found more", TAR_MOST);
    t->all[t->count] = entry;
    sft_span name = tar_name(t, (uint32_t)t->count);
    uint32_t now = sfti_names_add(&t->names, name, (uint32_t)t->count);
    if (now == t->count++) return SFT_OK;
    return sfti_fail_byte(err, SFT_FOREIGN_AMBIGUOUS, key->at,
                          "expected every key once, found one twice");
}

static sft_code tar_storage(tar_reader *t) {
    sfti_pickle pickle;
    uint8_t count[8];
    uint64_t bytes;
    sft_code code = tar_pickle(t, &pickle);
    if (code) return code;
    const sfti_value *root = pickle.root;
    if (root->kind != SFTI_VALUE_TUPLE || root->count != 3 ||
        root->u.items[2]->kind != SFTI_VALUE_GLOBAL ||
        root->u.items[2]->u.global->meaning != SFTI_MEANS_STORAGE)
        return tar_fail(t, "(key, location, type) of a storage");
    const sfti_torch_dtype *dtype = root->u.items[2]->u.global->dtype;
    code = tar_bytes(t, count, sizeof count);
    if (code) return code;
    if (!sfti_mul(sfti_get_u64(count), dtype->size, &bytes) || bytes > t->end - t->at)
        return tar_fail(t, "as many elements as the member has");
    tar_entry entry = { .dtype = dtype, .begin = t->at, .bytes = bytes,
                        .storage = (uint32_t)t->count + 1 };
    t->at += bytes;
    return tar_add(t, root->u.items[0], entry);
}

static sft_code tar_view(tar_reader *t, const sfti_value *view) {
    uint64_t offset, bytes;
    const tar_entry *whole = view->kind == SFTI_VALUE_TUPLE && view->count == 4
                                 ? tar_find(t, view->u.items[1]) : NULL;
    if (!whole || view->u.items[2]->kind != SFTI_VALUE_INT ||
        view->u.items[3]->kind != SFTI_VALUE_INT || view->u.items[2]->u.integer < 0 ||
        view->u.items[3]->u.integer < 0 ||
        !sfti_mul((uint64_t)view->u.items[2]->u.integer, whole->dtype->size, &offset) ||
        !sfti_mul((uint64_t)view->u.items[3]->u.integer, whole->dtype->size, &bytes) ||
        offset > whole->bytes || bytes > whole->bytes - offset)
        return tar_fail(t, "(key, key, offset, elements) within a storage");
    tar_entry entry = *whole;
    entry.begin += offset;
    entry.bytes = bytes;
    return tar_add(t, view->u.items[0], entry);
}

static sft_code tar_tensor(tar_reader *t) {
    sfti_pickle pickle;
    uint8_t rank[8], offset[8];
    uint64_t skip;
    sft_code code = tar_pickle(t, &pickle);
    if (code) return code;
    const sfti_value *root = pickle.root;
    const tar_entry *storage = root->kind == SFTI_VALUE_TUPLE && root->count == 3
                                   ? tar_find(t, root->u.items[1]) : NULL;
    if (!storage || storage->item) return tar_fail(t, "(key, storage, type) of a tensor");
    code = tar_bytes(t, rank, sizeof rank);
    if (code) return code;
    uint32_t dimensions = sfti_get_u32(rank);
    if (dimensions > (t->end - t->at) / 16) return tar_fail(t, "as many dimensions as bytes");
    uint64_t *sizes = sfti_arena_array(&t->im->arena, 2 * (uint64_t)dimensions, 8);
    sfti_item *item = sfti_arena_take(&t->im->arena, sizeof *item);
    if (!sizes || !item) return sfti_fail_memory(t->im->err, dimensions);
    code = tar_bytes(t, sizes, 16 * (size_t)dimensions);
    if (!code) code = tar_bytes(t, offset, sizeof offset);
    if (code) return code;
    for (uint32_t d = 0; d < 2 * dimensions; d++) {
        sizes[d] = sfti_get_u64(&sizes[d]);
        if (sizes[d] > INT64_MAX) return tar_fail(t, "sizes and strides from 0 on");
    }
    if (!sfti_mul(sfti_get_u64(offset), storage->dtype->size, &skip) || skip > storage->bytes)
        return tar_fail(t, "a tensor within its storage");
    *item = (sfti_item){ .dtype = storage->dtype->dtype, .rank = dimensions, .shape = sizes,
                         .strides = sizes + dimensions, .source = t->im->input,
                         .begin = storage->begin + skip, .stored = storage->bytes - skip,
                         .storage = storage->storage, .at = t->at };
    tar_entry entry = *storage;
    entry.item = item;
    return tar_add(t, root->u.items[0], entry);
}

static sft_code tar_storages(tar_reader *t) {
    sfti_pickle views;
    uint64_t count = 0;
    sft_code code = tar_count(t, &count);
    for (uint64_t i = 0; !code && i < count; i++) code = tar_storage(t);
    if (!code) code = tar_pickle(t, &views);
    if (code) return code;
    if (views.root->kind != SFTI_VALUE_LIST) return tar_fail(t, "a list of views");
    for (uint32_t i = 0; i < views.root->count && !code; i++)
        code = tar_view(t, views.root->u.items[i]);
    return code;
}

/* ── The object ── */

sft_code sfti_read_torch_tar(sfti_import *im) {
    tar_member members[3] = { { 0, 0 } };
    tar_reader t = { .im = im };
    sfti_pickle pickle;
    uint64_t count = 0;
    sft_code code = tar_members(im, members);
    if (code) return code;
    t.all = sfti_arena_array(&im->arena, TAR_MOST, sizeof *t.all);
    if (!t.all || !sfti_names_draw(&t.names, TAR_MOST, tar_name, &t, &im->arena))
        return sfti_fail_memory(im->err, TAR_MOST * sizeof *t.all);
    t.at = members[0].begin;
    t.end = members[0].end;
    code = tar_storages(&t);
    t.at = members[1].begin;
    t.end = members[1].end;
    if (!code) code = tar_count(&t, &count);
    for (uint64_t i = 0; !code && i < count; i++) code = tar_tensor(&t);
    t.at = members[2].begin;
    t.end = members[2].end;
    if (!code) code = tar_pickle(&t, &pickle);

    if (code) return code;
    /* Keys of tensors become those. */
    for (size_t i = 0; i < pickle.outside_count; i++) {
        sfti_value *value = pickle.outside[i];
        if (value->u.outside->kind == SFTI_VALUE_TUPLE) continue; /* a class */
        const tar_entry *entry = tar_find(&t, value->u.outside);
        if (!entry)
            return sfti_fail_byte(t.im->err, SFT_FOREIGN_SYNTAX, value->at,
                                  "expected the key of a tensor or storage, found another");
        if (!entry->item) continue;
        if (entry->dtype->kind != SFTI_TORCH_PLAIN)
            return sfti_fail_byte(t.im->err, SFT_FOREIGN_DTYPE, value->at,
                                  "expected elements that have a dtype, found torch.%s",
                                  entry->dtype->name);
        value->kind = SFTI_VALUE_TENSOR;
        value->u.item = entry->item;
    }

    return sfti_torch_import(im, &pickle, im->input, NULL);
}
