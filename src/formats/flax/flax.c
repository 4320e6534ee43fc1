/* Flax checkpoints: MessagePack maps whose leaves are arrays, as flax.serialization writes them. */
#include "base/number.h"
#include "formats/flax/msgpack.h"
#include "formats/pickle/globals.h"

#include <string.h>

#define DEPTH_MOST 512
#define VALUES_MOST 10000000
#define TEXT_MOST ((uint64_t)1 << 20)

/* Types of extensions in flax.serialization. */
#define EXT_ARRAY 1
#define EXT_COMPLEX 2
#define EXT_SCALAR 3

/* A list or map that is being filled. */
typedef struct flax_frame {
    sfti_value *value;
    uint64_t left; /* values that it still lacks; a key and its value are two */
} flax_frame;

typedef struct flax_read {
    sfti_import *im;
    sfti_arena *arena;
    sfti_wire wire;
    flax_frame frames[DEPTH_MOST];
    size_t depth, lists; /* of the frames, and those of lists */
    uint64_t values;
    sfti_value *root;
} flax_read;

static sft_code flax_value(flax_read *r, sfti_value_kind kind, uint64_t at, sfti_value **out) {
    if (r->values++ == VALUES_MOST)
        return sfti_fail_byte(r->im->err, SFT_FOREIGN_TABLE, at,
                              "expected at most %d values, found more", VALUES_MOST);
    sfti_value *value = *out = sfti_arena_take(r->arena, sizeof *value);
    if (!value) return sfti_fail_memory(r->im->err, sizeof *value);
    memset(value, 0, sizeof *value);
    value->kind = (uint8_t)kind;
    value->at = at;
    return SFT_OK;
}

/* ── Arrays ── */

static sft_code array_fail(const flax_read *r, uint64_t at) {
    return sfti_fail_byte(r->im->err, SFT_FOREIGN_SYNTAX, at,
                          "expected an array as shape, dtype and bytes, found another form");
}

static sft_code flax_shape(flax_read *r, sfti_wire *wire, sfti_item *item, uint64_t at) {
    sfti_msgpack part;
    sft_code code = sfti_msgpack_next(wire, &part);
    if (code) return code;
    if (part.kind != SFTI_MSGPACK_LIST || part.len > SFT_MAX_RANK) return array_fail(r, at);
    uint64_t *shape = sfti_arena_array(r->arena, part.len, sizeof *shape);
    if (!shape) return sfti_fail_memory(r->im->err, part.len);
    item->rank = (uint32_t)part.len;
    item->shape = shape;
    for (uint32_t d = 0; d < item->rank; d++) {
        code = sfti_msgpack_next(wire, &part);
        if (code) return code;
        if (part.kind != SFTI_MSGPACK_INT || part.negative) return array_fail(r, at);
        shape[d] = part.number;
    }
    return SFT_OK;
}

/* [shape, dtype, bytes] in the bytes of an extension. Old files have the dtype as bytes. */
static sft_code flax_array(flax_read *r, const sfti_msgpack *ext, sfti_value *value) {
    sfti_wire wire = sfti_wire_inside(&r->wire, ext->begin, ext->begin + ext->len);
    sfti_item *item = sfti_arena_take(r->arena, sizeof *item);
    sfti_msgpack part;
    uint8_t *name = NULL;
    if (!item) return sfti_fail_memory(r->im->err, sizeof *item);
    *item = (sfti_item){ .source = r->wire.source, .at = ext->at };
    sft_code code = sfti_msgpack_next(&wire, &part);
    if (!code && (part.kind != SFTI_MSGPACK_LIST || part.len != 3)) return array_fail(r, ext->at);
    if (!code) code = flax_shape(r, &wire, item, ext->at);
    if (!code) code = sfti_msgpack_next(&wire, &part);
    if (code) return code;
    if ((part.kind != SFTI_MSGPACK_TEXT && part.kind != SFTI_MSGPACK_BYTES) || part.len > 64)
        return array_fail(r, ext->at);
    code = sfti_import_load(r->im, wire.source, part.begin, part.len, &name);
    sft_span dtype = { (const char *)name, (size_t)part.len };
    if (!code) code = sfti_msgpack_next(&wire, &part);
    if (code) return code;
    if ((part.kind != SFTI_MSGPACK_BYTES && part.kind != SFTI_MSGPACK_TEXT) || wire.at < wire.end)
        return array_fail(r, ext->at);
    item->begin = part.begin;
    item->stored = part.len;
    uint64_t need;
    const sfti_torch_dtype *row = sfti_torch_dtype_named(dtype); /* JAX's names are the same */
    if (row && row->kind == SFTI_TORCH_PLAIN) {
        item->dtype = row->dtype;
        if (!sft_shape_size(item->dtype, item->shape, item->rank, NULL, &need, NULL)
            && need < part.len)
            return sfti_fail_byte(r->im->err, SFT_FOREIGN_SIZE, ext->at,
                                  "expected %llu bytes for this shape, found %llu",
                                  (unsigned long long)need, (unsigned long long)part.len);
        value->kind = SFTI_VALUE_TENSOR;
        value->u.item = item;
        return SFT_OK;
    }

    sfti_refusal *refusal = sfti_arena_take(r->arena, sizeof *refusal);
    dtype.len = dtype.len < 60 ? dtype.len : 60;
    const char *text = sfti_arena_join(
        r->arena, sft_span_cstr("expected a dtype of safetensors, found "), dtype);
    if (!refusal || !text) return sfti_fail_memory(r->im->err, sizeof *refusal);
    *refusal = (sfti_refusal){ SFT_FOREIGN_DTYPE, SFT_HINT_NONE, part.len, text };
    value->kind = SFTI_VALUE_REFUSED;
    value->u.refusal = refusal;
    return SFT_OK;
}

/* ── Arrays of more than 2^30 bytes, in chunks ── */

static const char chunked[] = "__msgpack_chunked_array__";

static sfti_value *member(const sfti_value *map, const char *key) {
    for (uint32_t i = 0; map && map->kind == SFTI_VALUE_MAP && i + 1 < map->count; i += 2)
        if (sfti_value_is(map->u.items[i], key)) return map->u.items[i + 1];
    return NULL;
}

/* Keys are "0", "1" and so on, in this order. */
static sfti_value *numbered(const sfti_value *map, uint32_t i) {
    char digits[SFTI_UINT_SIZE + 1];
    digits[sfti_uint_text(i, 0, digits)] = '\0';
    return sfti_value_is(map->u.items[2 * i], digits) ? map->u.items[2 * i + 1] : NULL;
}

static sft_code chunks_fail(const flax_read *r, const sfti_value *map) {
    return sfti_fail_byte(r->im->err, SFT_FOREIGN_SYNTAX, map->at,
                          "expected an array in chunks, all of one dtype, found another form");
}

static sft_code join_chunks(flax_read *r, sfti_value *map) {
    const sfti_value *shape = member(map, "shape"), *chunks = member(map, "chunks");
    if (!shape || !chunks || map->count != 6 || shape->kind != SFTI_VALUE_MAP
        || chunks->kind != SFTI_VALUE_MAP
        || shape->count / 2 > SFT_MAX_RANK || chunks->count == 0)
        return chunks_fail(r, map);
    uint32_t rank = shape->count / 2, count = chunks->count / 2;
    uint64_t need;
    sfti_item *item = sfti_arena_take(r->arena, sizeof *item);
    uint64_t *sizes = sfti_arena_array(r->arena, rank, sizeof *sizes);
    sfti_piece *pieces = sfti_arena_array(r->arena, count, sizeof *pieces);
    if (!item || !sizes || !pieces) return sfti_fail_memory(r->im->err, count * sizeof *pieces);
    *item = (sfti_item){ .rank = rank, .shape = sizes, .at = map->at };
    for (uint32_t d = 0; d < rank; d++) {
        const sfti_value *size = numbered(shape, d);
        if (!size || size->kind != SFTI_VALUE_INT || size->u.integer < 0)
            return chunks_fail(r, map);
        sizes[d] = (uint64_t)size->u.integer;
    }
    for (uint32_t i = 0; i < count; i++) {
        const sfti_value *chunk = numbered(chunks, i);
        if (!chunk || chunk->kind != SFTI_VALUE_TENSOR || chunk->u.item->rank != 1
            || chunk->u.item->source != r->wire.source
            || (i > 0 && chunk->u.item->dtype != item->dtype)
            || sft_shape_size(chunk->u.item->dtype, chunk->u.item->shape, 1, NULL, &need, NULL)
            || need != chunk->u.item->stored)
            return chunks_fail(r, map);
        item->dtype = chunk->u.item->dtype;
        pieces[i] = (sfti_piece){ chunk->u.item->source, chunk->u.item->begin,
                                  chunk->u.item->stored };
    }
    sft_code code = sfti_import_joined(r->im, pieces, count, &item->source);
    if (code) return code;
    item->stored = item->source->size;
    if (sft_shape_size(item->dtype, sizes, rank, NULL, &need, NULL) || need != item->stored)
        return chunks_fail(r, map);
    map->kind = SFTI_VALUE_TENSOR;
    map->u.item = item;
    return SFT_OK;
}

/* ── Values ── */

static sft_code flax_text(flax_read *r, const sfti_msgpack *part, sfti_value *value) {
    uint8_t *text;
    value->at = part->begin;
    if (part->len > TEXT_MOST)
        return sfti_fail_byte(r->im->err, SFT_FOREIGN_TABLE, part->at,
                              "expected text of at most 1 MiB, found %llu bytes",
                              (unsigned long long)part->len);
    sft_code code = sfti_import_load(r->im, r->wire.source, part->begin, part->len, &text);
    value->count = (uint32_t)part->len;
    value->u.text = (const char *)text;
    return code;
}

static void flax_float(const sfti_msgpack *part, sfti_value *value) {
    uint32_t bits = (uint32_t)part->number;
    float real;
    memcpy(&value->u.real, &part->number, sizeof value->u.real);
    if (part->begin - part->at != 1 + sizeof bits) return;
    memcpy(&real, &bits, sizeof real);
    value->u.real = (double)real;
}

static sft_code fill_value(flax_read *r, const sfti_msgpack *part, sfti_value *value) {
    switch (part->kind) {
    case SFTI_MSGPACK_BOOL: value->u.truth = part->number != 0; return SFT_OK;
    case SFTI_MSGPACK_INT:
        value->u.integer = (int64_t)part->number;
        if (!part->negative && part->number >> 63) value->kind = SFTI_VALUE_NUMBER;
        return SFT_OK;
    case SFTI_MSGPACK_FLOAT: flax_float(part, value); return SFT_OK;
    case SFTI_MSGPACK_TEXT: return flax_text(r, part, value);
    case SFTI_MSGPACK_BYTES: value->u.length = part->len; return SFT_OK;
    case SFTI_MSGPACK_EXT:
        if (part->ext == EXT_ARRAY || part->ext == EXT_SCALAR) return flax_array(r, part, value);
        value->u.length = part->len; /* a complex number, or unknown: bytes */
        return SFT_OK;
    default: return SFT_OK;
    }
}

static const uint8_t flax_kinds[] = {
    [SFTI_MSGPACK_NIL] = SFTI_VALUE_NONE,    [SFTI_MSGPACK_BOOL] = SFTI_VALUE_BOOL,
    [SFTI_MSGPACK_INT] = SFTI_VALUE_INT,     [SFTI_MSGPACK_FLOAT] = SFTI_VALUE_FLOAT,
    [SFTI_MSGPACK_TEXT] = SFTI_VALUE_TEXT,   [SFTI_MSGPACK_BYTES] = SFTI_VALUE_BYTES,
    [SFTI_MSGPACK_EXT] = SFTI_VALUE_BYTES,   [SFTI_MSGPACK_LIST] = SFTI_VALUE_LIST,
    [SFTI_MSGPACK_MAP] = SFTI_VALUE_MAP,
};

static sft_code put_value(flax_read *r, sfti_value *value) {
    if (r->depth == 0) {
        r->root = value;
        return SFT_OK;
    }
    flax_frame *frame = &r->frames[r->depth - 1];
    sfti_value *in = frame->value;
    size_t cap = in->cap;
    in->u.items = sfti_arena_grow(r->arena, in->u.items, in->count, 1, &cap,
                                  sizeof *in->u.items);
    if (!in->u.items) return sfti_fail_memory(r->im->err, sizeof *in->u.items);
    in->cap = (uint32_t)cap;
    in->u.items[in->count++] = value;
    frame->left--;
    return SFT_OK;
}

static sft_code open_frame(flax_read *r, sfti_value *value, uint64_t items) {
    if (items > r->wire.end - r->wire.at)
        return sfti_fail_byte(r->im->err, SFT_FOREIGN_SYNTAX, value->at,
                              "expected %llu values before the end of the file, found fewer bytes",
                              (unsigned long long)items);
    if (r->depth == DEPTH_MOST)
        return sfti_fail_byte(r->im->err, SFT_FOREIGN_NESTING, value->at,
                              "expected at most %d levels, found more", DEPTH_MOST);
    r->frames[r->depth++] = (flax_frame){ value, items };
    r->lists += value->kind == SFTI_VALUE_LIST;
    return SFT_OK;
}

/* Other keys than these may be equal without being the same: 1, 1.0 and true are one in Python. */
static sft_code check_key_kinds(flax_read *r, const sfti_value *map) {
    for (uint32_t i = 0; i < map->count; i += 2) {
        const sfti_value *key = map->u.items[i];
        if (key->kind != SFTI_VALUE_TEXT && key->kind != SFTI_VALUE_INT)
            return sfti_fail_byte(r->im->err, SFT_FOREIGN_SYNTAX, key->at,
                                  "expected text or a whole number as key, found %s",
                                  sfti_value_kind_name(key->kind));
    }
    return SFT_OK;
}

static sft_code flax_read_value(flax_read *r) {
    sfti_msgpack part;
    sfti_value *value;
    sft_code code = sfti_msgpack_next(&r->wire, &part);
    if (!code) code = flax_value(r, (sfti_value_kind)flax_kinds[part.kind], part.at, &value);
    if (!code) code = fill_value(r, &part, value);
    if (!code) code = put_value(r, value);
    if (code) return code;
    if (part.kind == SFTI_MSGPACK_LIST) code = open_frame(r, value, part.len);
    if (part.kind == SFTI_MSGPACK_MAP) code = open_frame(r, value, 2 * part.len);

    if (code) return code;
    /* Those that are full. Chunks are only joined in maps of maps, as flax.serialization does. */
    while (r->depth > 0 && r->frames[r->depth - 1].left == 0) {
        sfti_value *value = r->frames[--r->depth].value;
        bool is_map = value->kind == SFTI_VALUE_MAP;
        if (!is_map) r->lists--;
        sft_code code = is_map ? check_key_kinds(r, value) : SFT_OK;
        if (!code && is_map && r->lists == 0 && member(value, chunked))
            code = join_chunks(r, value);
        if (code) return code;
    }
    return SFT_OK;
}

sft_code sfti_read_msgpack(sfti_import *im) {
    const sft_source *source = im->input;
    flax_read *r = sfti_arena_take(&im->arena, sizeof *r);
    if (!r) return sfti_fail_memory(im->err, sizeof *r);
    memset(r, 0, sizeof *r);
    r->im = im;
    r->arena = &im->arena;
    sft_code code = sfti_wire_open(im, source, 0, source->size, &r->wire);
    if (!code) code = flax_read_value(r);
    while (!code && r->depth > 0) code = flax_read_value(r);
    if (code) return code;
    if (r->wire.at < r->wire.end)
        return sfti_fail_byte(im->err, SFT_FOREIGN_SYNTAX, r->wire.at,
                              "expected the end of the file behind the value, found more");
    return sfti_roots_import(im, r->root, NULL);
}

/* ── Recognition: there is no magic number. A map whose first key is a name, and a value ── */

bool sfti_is_msgpack(sfti_import *im, const uint8_t *head, size_t len) {
    sfti_wire wire;
    sfti_msgpack map, key, value;
    if (len < 3 || head[0] == 0x80 || (head[0] >= 0x90 && head[0] < 0xde) || head[0] < 0x80
        || head[0] > 0xdf)
        return false;
    const sft_source *source = im->input;
    if (sfti_wire_open(im, source, 0, source->size, &wire)) return false;
    if (sfti_msgpack_next(&wire, &map) || map.kind != SFTI_MSGPACK_MAP || map.len == 0)
        return false;
    if (sfti_msgpack_next(&wire, &key) || key.kind != SFTI_MSGPACK_TEXT || key.len == 0
        || key.len > 1024 || key.begin + key.len > len)
        return false;
    for (uint64_t i = key.begin; i < key.begin + key.len; i++)
        if (head[i] < 0x20 || head[i] == 0x7f) return false;
    /* A training state may begin with its step. */
    return !sfti_msgpack_next(&wire, &value)
           && (value.kind == SFTI_MSGPACK_MAP || value.kind == SFTI_MSGPACK_EXT
               || value.kind == SFTI_MSGPACK_INT);
}
