/* Arrays that Paddle cut into slices are put together. */
#include "formats/objects/rebuild.h"

/* 2^30 bytes each: of all arrays together. */
#define MOST_SLICES 256

typedef struct paddle_join {
    sfti_import *im;
    sfti_value *root;
    uint32_t slices; /* seen */
} paddle_join;

static sft_code join_fail(const paddle_join *p, const sfti_value *at) {
    return sfti_fail_byte(p->im->err, SFT_FOREIGN_SYNTAX, at->at, "expected {name: "
                          "{\"OriginShape\": shape, \"slices\": names}} of arrays in slices, found "
                          "something else");
}

/* The place of a key's value in a map; NULL: it has none. */
static sfti_value **paddle_value(const sfti_value *map, sft_span key) {
    for (uint32_t i = 0; i + 1 < map->count; i += 2) {
        const sfti_value *other = map->u.items[i];
        if (other->kind == SFTI_VALUE_TEXT && other->u.text &&
            sft_span_equal((sft_span){ other->u.text, other->count }, key))
            return &map->u.items[i + 1];
    }
    return NULL;
}

/* The slices as pieces, in order; the first one's item becomes that of the whole. */
static sft_code join_pieces(paddle_join *p, const sfti_value *names, sfti_piece *pieces,
                            sfti_value **first) {
    uint64_t bytes;
    for (uint32_t i = 0; i < names->count; i++) {
        const sfti_value *name = names->u.items[i];
        bool text = name->kind == SFTI_VALUE_TEXT && name->u.text;
        sfti_value **place = text ? paddle_value(p->root, (sft_span){ name->u.text, name->count })
                                  : NULL;
        sfti_value *slice = place ? *place : NULL;
        if (!slice || slice->kind != SFTI_VALUE_TENSOR || slice == *first)
            return join_fail(p, name);
        const sfti_item *item = slice->u.item;
        if (i == 0) *first = slice;
        if (item->strides || item->rank != 1 || item->dtype != (*first)->u.item->dtype ||
            item->swap != (*first)->u.item->swap ||
            sft_shape_size(item->dtype, item->shape, 1, NULL, &bytes, NULL))
            return join_fail(p, name);
        pieces[i] = (sfti_piece){ item->source, item->begin, bytes };
        if (i > 0) slice->kind = SFTI_VALUE_NONE;
    }
    return SFT_OK;
}

static sft_code join_one(paddle_join *p, sfti_value *name, const sfti_value *facts) {
    sfti_value **shape = facts->kind == SFTI_VALUE_MAP
                             ? paddle_value(facts, sft_span_cstr("OriginShape")) : NULL;
    sfti_value **slices = shape ? paddle_value(facts, sft_span_cstr("slices")) : NULL;
    sfti_piece pieces[MOST_SLICES];
    sfti_value *whole = NULL;
    if (!slices || (*slices)->kind != SFTI_VALUE_LIST || (*slices)->count == 0 ||
        ((*shape)->kind != SFTI_VALUE_TUPLE && (*shape)->kind != SFTI_VALUE_LIST) ||
        name->kind != SFTI_VALUE_TEXT)
        return join_fail(p, facts);
    p->slices += (*slices)->count;
    if ((*slices)->count > MOST_SLICES || p->slices > MOST_SLICES)
        return sfti_fail_byte(p->im->err, SFT_FOREIGN_TABLE, facts->at,
                              "expected at most %d slices, found more", MOST_SLICES);
    uint64_t *sizes = sfti_arena_array(&p->im->arena, (*shape)->count, sizeof *sizes);
    if (!sizes) return sfti_fail_memory(p->im->err, (*shape)->count);
    for (uint32_t d = 0; d < (*shape)->count; d++) {
        const sfti_value *size = (*shape)->u.items[d];
        if (size->kind != SFTI_VALUE_INT || size->u.integer < 0) return join_fail(p, size);
        sizes[d] = (uint64_t)size->u.integer;
    }
    sft_code code = join_pieces(p, *slices, pieces, &whole);
    if (code) return code;
    sfti_item *item = whole->u.item;
    item->rank = (*shape)->count;
    item->shape = sizes;
    item->begin = 0;
    code = sfti_import_joined(p->im, pieces, (*slices)->count, &item->source);
    if (!code) item->stored = item->source->size;
    /* the first slice stands for the whole, under its name */
    for (uint32_t i = 0; i + 1 < p->root->count; i += 2)
        if (p->root->u.items[i + 1] == whole) p->root->u.items[i] = name;
    return code;
}

sft_code sfti_paddle_join(sfti_import *im, sfti_value *root) {
    paddle_join p = { .im = im, .root = root };
    sfti_value **facts = root->kind == SFTI_VALUE_MAP
                             ? paddle_value(root, sft_span_cstr("UnpackBigParamInfor@@")) : NULL;
    sft_code code = SFT_OK;
    if (!facts) return SFT_OK;
    if ((*facts)->kind != SFTI_VALUE_MAP) return join_fail(&p, *facts);
    for (uint32_t i = 0; i + 1 < (*facts)->count && !code; i += 2)
        code = join_one(&p, (*facts)->u.items[i], (*facts)->u.items[i + 1]);
    return code;
}
