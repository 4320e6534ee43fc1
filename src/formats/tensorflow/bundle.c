/* TensorFlow checkpoints: PREFIX.index, a table of names, and the bytes in PREFIX.data-00000-of-N
 * and so on. Messages and types: tensor_bundle.proto and types.proto of TensorFlow. */
#include "base/crc32.h"
#include "formats/tensorflow/table.h"
#include "formats/parts/wire.h"

#include <stdio.h>
#include <string.h>

#define SHARDS_MOST 100000
#define VARIABLE_SUFFIX "/.ATTRIBUTES/VARIABLE_VALUE"

typedef struct bundle_type {
    uint64_t number;
    sft_dtype dtype;
    uint8_t swap;
} bundle_type;

static const bundle_type bundle_types[] = {
    { 1, SFT_F32, 4 },  { 2, SFT_F64, 8 },  { 3, SFT_I32, 4 },      { 4, SFT_U8, 0 },
    { 5, SFT_I16, 2 },  { 6, SFT_I8, 0 },   { 8, SFT_C64, 4 },      { 9, SFT_I64, 8 },
    { 10, SFT_BOOL, 0 }, { 14, SFT_BF16, 2 }, { 17, SFT_U16, 2 },   { 19, SFT_F16, 2 },
    { 22, SFT_U32, 4 }, { 23, SFT_U64, 8 }, { 24, SFT_F8_E5M2, 0 }, { 25, SFT_F8_E4M3, 0 },
};

/* Where a variable belongs, by its key: the first row that fits. */
static const struct bundle_branch {
    const char *begin, *has; /* NULL: whatever it is */
    const char *branch;
} branches[] = {
    { NULL, "/.OPTIMIZER_SLOT/", "optimizer" }, { "optimizer/", NULL, "optimizer" },
    { "_optimizer/", NULL, "optimizer" },       { "keras_api/metrics/", NULL, "metrics" },
    { "save_counter", NULL, "counters" },       { NULL, NULL, "model" },
};
#define BRANCHES (sizeof branches / sizeof *branches)

typedef struct bundle_entry {
    uint64_t type, shard, offset, size, crc;
    uint64_t shape[SFT_MAX_RANK];
    uint32_t rank;
    bool has_crc, sliced, unknown_rank, too_many, negative;
} bundle_entry;

typedef struct bundle {
    sfti_import *im;
    sfti_wire wire;
    char prefix[512];
    bool has_header, big_endian;
    uint64_t shards;
    uint64_t tensors[BRANCHES], bytes[BRANCHES]; /* of each branch, at its first row */
    size_t chosen;                               /* SIZE_MAX: all */
} bundle;

/* ── Messages ── */

/* Dim { size = 1 } */
static sft_code read_dim(bundle *b, const sfti_wire_field *dim, bundle_entry *out) {
    sfti_wire wire = sfti_wire_inside(&b->wire, dim->begin, dim->end);
    sfti_wire_field field;
    uint64_t size = 0;
    bool more;
    for (;;) {
        sft_code code = sfti_wire_next(&wire, &field, &more);
        if (code) return code;
        if (!more) break;
        if (field.number == 1) size = field.value;
    }
    if (size >> 63) out->negative = true;
    if (out->rank == SFT_MAX_RANK) out->too_many = true;
    else out->shape[out->rank++] = size;
    return SFT_OK;
}

/* TensorShapeProto { dim = 2, unknown_rank = 3 } */
static sft_code bundle_shape(bundle *b, const sfti_wire_field *shape, bundle_entry *out) {
    sfti_wire_field field;
    bool more;
    for (uint64_t at = shape->begin;;) {
        sfti_wire wire = sfti_wire_inside(&b->wire, at, shape->end);
        sft_code code = sfti_wire_next(&wire, &field, &more);
        if (code || !more) return code;
        at = wire.at;
        if (field.number == 2 && field.type == SFTI_WIRE_BYTES) code = read_dim(b, &field, out);
        if (field.number == 3) out->unknown_rank = field.value != 0;
        if (code) return code;
    }
}

/* BundleEntryProto { dtype = 1, shape = 2, shard_id = 3, offset = 4, size = 5, crc32c = 6,
 * slices = 7 } at [begin, end) of the file. */
static sft_code bundle_entry_read(bundle *b, uint64_t begin, uint64_t end, bundle_entry *out) {
    sfti_wire_field field;
    bool more;
    *out = (bundle_entry){ .type = 0 };
    for (uint64_t at = begin;;) {
        sfti_wire wire = sfti_wire_inside(&b->wire, at, end);
        sft_code code = sfti_wire_next(&wire, &field, &more);
        if (code || !more) return code;
        at = wire.at;
        switch (field.number) {
        case 1: out->type = field.value; break;
        case 2: code = field.type == SFTI_WIRE_BYTES ? bundle_shape(b, &field, out) : SFT_OK; break;
        case 3: out->shard = field.value; break;
        case 4: out->offset = field.value; break;
        case 5: out->size = field.value; break;
        case 6: out->crc = field.value; out->has_crc = true; break;
        case 7: out->sliced = true; break;
        default: break;
        }
        if (code) return code;
    }
}

/* BundleHeaderProto { num_shards = 1, endianness = 2 } */
static sft_code bundle_header(bundle *b, uint64_t begin, uint64_t end) {
    sfti_wire wire = sfti_wire_inside(&b->wire, begin, end);
    sfti_wire_field field;
    bool more;
    b->has_header = true;
    for (;;) {
        sft_code code = sfti_wire_next(&wire, &field, &more);
        if (code) return code;
        if (!more) break;
        if (field.number == 1) b->shards = field.value;
        if (field.number == 2) b->big_endian = field.value == 1;
    }
    if (b->shards > 0 && b->shards <= SHARDS_MOST) return SFT_OK;
    return sfti_fail_byte(b->im->err, SFT_FOREIGN_SYNTAX, begin,
                          "expected 1 to %d files of data, found %llu", SHARDS_MOST,
                          (unsigned long long)b->shards);
}

/* ── Entries ── */

static bool has(sft_span key, const char *part) {
    size_t len = strlen(part);
    for (size_t i = 0; i + len <= key.len; i++)
        if (memcmp(key.data + i, part, len) == 0) return true;
    return false;
}

static sft_code entry_source(bundle *b, const bundle_entry *entry, uint64_t at,
                             const sft_source **out) {
    char name[600];
    if (entry->shard >= b->shards)
        return sfti_fail_byte(b->im->err, SFT_FOREIGN_SIZE, at,
                              "expected one of %llu files of data, found number %llu",
                              (unsigned long long)b->shards, (unsigned long long)entry->shard);
    (void)snprintf(name, sizeof name, "%s.data-%05llu-of-%05llu", b->prefix,
                   (unsigned long long)entry->shard, (unsigned long long)b->shards);
    return sfti_import_file(b->im, sft_span_cstr(name), out);
}

/* Whether an entry holds a slice of a variable: a zero, the variable's name up to 00 01, and which
 * part it is. *key becomes the name. */
static bool is_slice(sft_span *key) {
    size_t len = 1;
    if (key->len == 0 || key->data[0]) return false;
    while (len < key->len && (key->data[len] || len + 1 == key->len || key->data[len + 1] != 1))
        len++;
    *key = (sft_span){ key->data + 1, len - 1 };
    return true;
}

static sft_code take_variable(bundle *b, sft_span key, const bundle_entry *entry, uint64_t at) {
    const bool slice = is_slice(&key);
    const bundle_type *type = NULL;
    for (size_t i = 0; i < sizeof bundle_types / sizeof *bundle_types; i++)
        if (bundle_types[i].number == entry->type) type = &bundle_types[i];
    size_t row = 0, branch = 0, suffix = strlen(VARIABLE_SUFFIX);
    sft_span name = key;
    if (key.len > suffix && memcmp(key.data + key.len - suffix, VARIABLE_SUFFIX, suffix) == 0)
        name.len -= suffix;
    if (entry->type == 7)
        return sfti_import_leave(b->im, SFT_IMPORT_LEFT_VALUE, name, 1, entry->size, "text");

    /* The first row that the key fits, and the first one of the same branch. */
    for (;; row++) {
        sft_span begin = sft_span_cstr(branches[row].begin);
        if (begin.len > key.len || (begin.len && memcmp(key.data, begin.data, begin.len) != 0))
            continue;
        if (!branches[row].has || has(key, branches[row].has)) break;
    }
    while (strcmp(branches[branch].branch, branches[row].branch) != 0) branch++;
    b->tensors[branch]++;
    sfti_total_add(&b->bytes[branch], entry->size);
    if (b->chosen != SIZE_MAX && b->chosen != branch) return SFT_OK;

    const char *refused = slice             ? "a slice of a variable"
                          : !type           ? "an element type without a counterpart"
                          : entry->sliced   ? "a variable in slices"
                          : entry->too_many ? "more than 64 dimensions"
                          : entry->negative || entry->unknown_rank ? "a shape that is not known"
                                                                   : NULL;
    if (refused)
        return sfti_import_refuse(b->im, name, entry->size, SFT_FOREIGN_DTYPE, at,
                                  "expected a whole tensor of a dtype of safetensors, found %s",
                                  refused);

    sfti_item item = { .dtype = type->dtype, .rank = entry->rank, .begin = entry->offset,
                       .stored = entry->size, .swap = b->big_endian ? type->swap : 0, .at = at };
    uint64_t *shape = sfti_arena_array(&b->im->arena, entry->rank, sizeof *shape);
    char *kept = sfti_arena_copy(&b->im->arena, name.data, name.len);
    if (!shape || !kept) return sfti_fail_memory(b->im->err, name.len);
    memcpy(shape, entry->shape, entry->rank * sizeof *shape);
    item.shape = shape;
    item.name = (sft_span){ kept, name.len };
    uint64_t need; /* too few bytes are refused when it is added */
    if (!sft_shape_size(item.dtype, item.shape, item.rank, NULL, &need, NULL) && need < entry->size)
        return sfti_import_refuse(b->im, name, entry->size, SFT_FOREIGN_SIZE, at,
                                  "expected %llu bytes for this shape, found %llu",
                                  (unsigned long long)need, (unsigned long long)entry->size);
    sft_code code = entry_source(b, entry, at, &item.source);
    if (!code && entry->has_crc && entry->size > 0)
        code = sfti_import_crc32(b->im, item.source, entry->offset, entry->size,
                                 sfti_crc32c_unmask((uint32_t)entry->crc), true);
    return code ? code : sfti_import_add(b->im, &item);
}

static sft_code bundle_pair(void *ctx, sft_span key, sft_span value, uint64_t at) {
    bundle *b = ctx;
    bundle_entry entry;
    if (key.len == 0) return bundle_header(b, at, at + value.len);
    if (!b->has_header)
        return sfti_fail_byte(b->im->err, SFT_FOREIGN_KIND, at, "expected a checkpoint's table, "
                              "which begins with an empty key, found \"%.*s\"",
                              SFTI_CLIP(key, 100));
    sft_code code = bundle_entry_read(b, at, at + value.len, &entry);
    return code ? code : take_variable(b, key, &entry, at);
}

/* ── Branches ── */

static sft_code choose_branch(bundle *b) {
    const sft_import_options *options = &b->im->options;
    b->chosen = BRANCHES - 1;
    if (options->all) b->chosen = SIZE_MAX;
    if (!options->root) return SFT_OK;
    for (size_t i = 0; i < BRANCHES; i++) {
        if (strcmp(branches[i].branch, options->root) != 0) continue;
        b->chosen = i;
        return SFT_OK;
    }
    return sfti_fail(b->im->err, SFT_FOREIGN_BRANCH, "expected one of the branches model, "
                     "optimizer, metrics and counters, found %s", options->root);
}

/* ── The format ── */

bool sfti_is_tf_bundle(sfti_import *im, const uint8_t *head, size_t len) {
    (void)head, (void)len;
    return sfti_is_table(im);
}

sft_code sfti_read_tf_bundle(sfti_import *im) {
    sft_span name = im->name;
    bundle *b = sfti_arena_take(&im->arena, sizeof *b);
    if (!b) return sfti_fail_memory(im->err, sizeof *b);
    memset(b, 0, sizeof *b);
    b->im = im;
    if (name.len >= 6 && memcmp(name.data + name.len - 6, ".index", 6) == 0) name.len -= 6;
    if (name.len >= sizeof b->prefix)
        return sfti_fail(b->im->err, SFT_FOREIGN_NAME,
                         "expected a file name of less than %zu bytes, found a longer one",
                         sizeof b->prefix);
    if (name.len) memcpy(b->prefix, name.data, name.len);
    const sft_source *source = im->input;
    sft_code code = sfti_wire_open(im, source, 0, source->size, &b->wire);
    if (!code) code = choose_branch(b);
    if (!code) code = sfti_table_read(im, bundle_pair, b);

    if (code) return code;
    for (size_t i = BRANCHES; i-- > 0;) {
        bool chosen = b->chosen == SIZE_MAX || b->chosen == i;
        sft_span name = sft_span_cstr(branches[i].branch);
        if (b->tensors[i] == 0) continue;
        sft_code code = sfti_import_branch(b->im, name, b->tensors[i], b->bytes[i], chosen);
        if (!code && !chosen)
            code = sfti_import_leave(b->im, SFT_IMPORT_LEFT_BRANCH, name, b->tensors[i],
                                     b->bytes[i], "another branch");
        if (code) return code;
    }
    return SFT_OK;
}
