/* What readers add to an import: tensors, notes, names, checksums. */
#include "base/names.h"
#include "base/utf8.h"
#include "formats/parts/state.h"
#include "os/io.h"

#include <stdio.h>
#include <string.h>

void sfti_import_begin_shard(sfti_import *im, uint32_t shard) {
    im->shard = shard;
    if (im->shards <= shard) im->shards = shard + 1;
}

/* All lists begin as SFTI_IMPORT_LIST(char) does. */
typedef struct any_list {
    void *at;
    size_t count, cap;
} any_list;

void *sfti_list_more(sfti_import *im, void *list, size_t each) {
    any_list *l = list;
    void *at = sfti_arena_grow(&im->arena, l->at, l->count, 1, &l->cap, each);
    if (!at) {
        (void)sfti_fail_memory(im->err, each);
        return NULL;
    }
    l->at = at;
    return (char *)at + l->count++ * each;
}

static bool keep_span(sfti_import *im, sft_span *span) {
    char *copy = sfti_arena_copy(&im->arena, span->data, span->len);
    span->data = copy;
    return copy || !sfti_fail_memory(im->err, span->len);
}

/* ── Tensors ── */

sft_span sfti_item_name(const void *ctx, uint32_t entry) {
    return ((const sfti_item *)ctx)[entry].name;
}

bool sfti_item_reach(const sfti_item *item, uint64_t *out) {
    uint64_t elements = 1, last = 0, far;
    for (uint32_t d = 0; d < item->rank; d++) {
        if (item->shape[d] == 0) return *out = 0, true;
        if (!sfti_mul(elements, item->shape[d], &elements)) return false;
        if (!item->strides) continue;
        if (!sfti_mul(item->shape[d] - 1, item->strides[d], &far)) return false;
        if (!sfti_add(last, far, &last)) return false;
    }
    /* Never: gguf.c, which alone sets codecs, wants rows of whole blocks. */
    if (item->codec && sfti_never(elements % item->codec->elements != 0)) return false;
    if (item->codec) return sfti_mul(elements / item->codec->elements, item->codec->stored, out);
    uint64_t bits = sft_dtype_describe(item->dtype)->bits;
    if (item->strides) elements = last + 1;
    if (elements == 0 || !sfti_mul(elements, bits, &bits)) return false;
    *out = bits / 8 + (bits % 8 != 0);
    return true;
}

static sft_code item_check_name(sfti_import *im, const sfti_item *item) {
    const char *wrong = NULL;
    if (item->name.len == 0) wrong = "an empty one";
    else if (sfti_utf8_check(item->name.data, item->name.len) < item->name.len)
        wrong = "bytes that are not UTF-8";
    else if (sft_span_equal(item->name, sft_span_cstr("__metadata__")))
        wrong = "the reserved name __metadata__";
    if (!wrong) return SFT_OK;
    return sfti_import_refuse(im, item->name, item->stored, SFT_FOREIGN_NAME, item->at,
                              "expected a name for a tensor, found %s", wrong);
}

static sft_code item_check_shape(sfti_import *im, const sfti_item *item) {
    uint64_t need;
    if (item->rank > SFT_MAX_RANK)
        return sfti_import_refuse(im, item->name, item->stored, SFT_RANK_TOO_LARGE, item->at,
                                  "expected at most %d dimensions, found %u", SFT_MAX_RANK,
                                  item->rank);
    if (!sfti_item_reach(item, &need))
        return sfti_import_refuse(im, item->name, item->stored, SFT_SIZE_OVERFLOW, item->at,
                                  "expected a tensor of less than 2^64 bits, found a larger one");
    uint64_t size = item->source->size, room = item->begin <= size ? size - item->begin : 0;
    if (need > item->stored)
        return sfti_import_refuse(im, item->name, item->stored, SFT_FOREIGN_SIZE, item->at,
                                  "expected %llu bytes for this shape, found %llu",
                                  (unsigned long long)need, (unsigned long long)item->stored);
    if (need <= room) return SFT_OK;
    return sfti_fail_tensor(im->err, SFT_FOREIGN_TRUNCATED, item->begin, item->name,
                            "expected %llu bytes of data, found the end of the file at byte %llu",
                            (unsigned long long)need, (unsigned long long)size);
}

/* Room for `more` in a list of the import. */
static bool list_reserve(sfti_import *im, void *list, size_t more, size_t each) {
    any_list *l = list;
    void *at = sfti_arena_grow(&im->arena, l->at, l->count, more, &l->cap, each);
    if (at) l->at = at;
    return at || more == 0;
}

/* One block for what many tensors take, names included, and what lists them in the file, in large
 * pages (torch_zip.c says why). */
#define MANY_TENSORS 8192
#define TENSOR_BYTES ((size_t)1200)

sft_code sfti_import_expect(sfti_import *im, uint64_t tensors) {
    size_t more = tensors < (1 << 18) ? (size_t)tensors : 1 << 18; /* the rest as they come */
    if (more <= im->items.cap - im->items.count) return SFT_OK;
    if (more > MANY_TENSORS && more * TENSOR_BYTES < (im->budget.most - im->budget.used) / 2)
        (void)sfti_arena_reserve(&im->arena, more * TENSOR_BYTES);
    bool has = list_reserve(im, &im->items, more, sizeof *im->items.at) &&
               list_reserve(im, &im->records, more, sizeof *im->records.at) &&
               list_reserve(im, &im->parts, more, sizeof *im->parts.at);
    return has ? SFT_OK : sfti_fail_memory(im->err, more * sizeof *im->items.at);
}

sft_code sfti_import_add(sfti_import *im, const sfti_item *item) {
    size_t left = im->left.count;
    sft_code code = item_check_name(im, item);
    if (!code && im->left.count == left) code = item_check_shape(im, item);
    if (code || im->left.count != left) return code;
    sfti_item *kept = sfti_list_more(im, &im->items, sizeof *kept);
    if (!kept) return SFT_OUT_OF_MEMORY;
    *kept = *item;
    kept->shard = im->shard;
    return SFT_OK;
}

sft_code sfti_import_refuse(sfti_import *im, sft_span name, uint64_t bytes, sft_code code,
                            uint64_t offset, const char *format, ...) {
    char text[400];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (!im->options.skip) return sfti_fail_tensor(im->err, code, offset, name, "%s", text);
    return sfti_import_leave(im, SFT_IMPORT_LEFT_SKIPPED, name, 1, bytes, text);
}

/* ── What is not a tensor ── */

sft_code sfti_import_leave(sfti_import *im, sft_import_reason reason, sft_span path,
                           uint64_t count, uint64_t bytes, const char *text) {
    char *kept = sfti_arena_copy(&im->arena, text, strlen(text));
    if (!kept || !keep_span(im, &path)) return sfti_fail_memory(im->err, strlen(text));
    sft_import_left *left = sfti_list_more(im, &im->left, sizeof *left);
    if (!left) return SFT_OUT_OF_MEMORY;
    *left = (sft_import_left){ reason, path, kept, count, bytes };
    return SFT_OK;
}

/* The table's key: module, newline, name, in one piece of memory. */
static sft_span global_key(const void *ctx, uint32_t entry) {
    const sft_import_global *global = &((const sfti_import *)ctx)->globals.at[entry];
    return (sft_span){ global->module.data, global->module.len + 1 + global->name.len };
}

sft_code sfti_import_global(sfti_import *im, sft_span module, sft_span name, uint64_t named,
                            uint64_t calls) {
    char buffer[512];
    sft_span key = { buffer, module.len + 1 + name.len };
    if (!im->global_names.slots &&
        !sfti_names_draw(&im->global_names, SFTI_MOST_GLOBALS, global_key, im, &im->arena))
        return sfti_fail_memory(im->err, SFTI_MOST_GLOBALS);
    if (module.len > 200) module.len = 200;
    if (name.len > 200) name.len = 200;
    key.len = module.len + 1 + name.len;
    memcpy(buffer, module.data, module.len);
    buffer[module.len] = '\n';
    memcpy(buffer + module.len + 1, name.data, name.len);
    uint32_t entry = sfti_names_find(&im->global_names, key);
    if (entry == SFTI_NO_NAME) {
        if (im->globals.count == SFTI_MOST_GLOBALS) {
            im->more_globals++;
            return SFT_OK;
        }
        entry = (uint32_t)im->globals.count;
        sft_import_global *global =
            keep_span(im, &key) ? sfti_list_more(im, &im->globals, sizeof *global) : NULL;
        if (!global) return SFT_OUT_OF_MEMORY;
        *global = (sft_import_global){ { key.data, module.len },
                                       { key.data + module.len + 1, name.len }, 0, 0 };
        (void)sfti_names_add(&im->global_names, key, entry);
    }
    im->globals.at[entry].named += named;
    im->globals.at[entry].calls += calls;
    return SFT_OK;
}

sft_code sfti_import_branch(sfti_import *im, sft_span path, uint64_t tensors, uint64_t bytes,
                            bool chosen) {
    for (size_t i = 0; i < im->branches.count; i++) { /* of a shard before */
        sft_import_branch *known = &im->branches.at[i];
        if (!sft_span_equal(known->path, path)) continue;
        known->tensors += tensors;
        known->chosen |= chosen;
        sfti_total_add(&known->bytes, bytes);
        return SFT_OK;
    }
    if (!keep_span(im, &path)) return SFT_OUT_OF_MEMORY;
    sft_import_branch *branch = sfti_list_more(im, &im->branches, sizeof *branch);
    if (!branch) return SFT_OUT_OF_MEMORY;
    *branch = (sft_import_branch){ path, tensors, bytes, chosen };
    return SFT_OK;
}

sft_code sfti_import_meta(sfti_import *im, const char *key, sft_span value) {
    sft_span name = sft_span_cstr(key);
    if (!keep_span(im, &name) || !keep_span(im, &value)) return SFT_OUT_OF_MEMORY;
    sft_pair *pair = sfti_list_more(im, &im->metadata, sizeof *pair);
    if (!pair) return SFT_OUT_OF_MEMORY;
    *pair = (sft_pair){ name, value };
    return SFT_OK;
}

sft_code sfti_import_crc32(sfti_import *im, const sft_source *source, uint64_t begin,
                           uint64_t len, uint32_t crc32, bool castagnoli) {
    sfti_checksum *record = sfti_list_more(im, &im->records, sizeof *record);
    if (!record) return SFT_OUT_OF_MEMORY;
    *record = (sfti_checksum){ source, begin, len, crc32, castagnoli };
    return SFT_OK;
}
