/* What values become: tensors, refusals, maps. Tests: test_import_pickle.c. */
#include "formats/objects/rebuild_parts.h"

#include <stdio.h>
#include <string.h>

sft_code sfti_rebuild_copy(sfti_rebuild *r, const sfti_value *value, uint64_t count) {
    sfti_total_add(&r->copied, count);
    if (r->copied <= r->most) return SFT_OK;
    return sfti_fail_byte(r->im->err, SFT_FOREIGN_TABLE, value->at, "expected at most %llu values "
                          "in copies of what the pickle has once, found more",
                          (unsigned long long)r->most);
}

sfti_item *sfti_rebuild_tensor(sfti_rebuild *r, sfti_value *value) {
    sfti_item *item = sfti_arena_take(&r->im->arena, sizeof *item);
    if (!item) {
        (void)sfti_fail_memory(r->im->err, sizeof *item);
        return NULL;
    }
    *item = (sfti_item){ .at = value->at };
    value->kind = SFTI_VALUE_TENSOR;
    value->u.item = item;
    return item;
}

sft_code sfti_rebuild_refuse(sfti_rebuild *r, sfti_value *value, sft_code code, sft_hint hint,
                             uint64_t bytes, const char *format, ...) {
    char text[240];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    sfti_refusal *refusal = sfti_arena_take(&r->im->arena, sizeof *refusal);
    char *kept = sfti_arena_copy(&r->im->arena, text, strlen(text));
    if (!refusal || !kept) return sfti_fail_memory(r->im->err, sizeof *refusal);
    *refusal = (sfti_refusal){ code, hint, bytes, kept };
    value->kind = SFTI_VALUE_REFUSED;
    value->u.refusal = refusal;
    return SFT_OK;
}

sft_code sfti_rebuild_memory(sfti_rebuild *r, sfti_value *value, sft_dtype dtype,
                             const uint64_t *shape, uint32_t rank, const void *bytes,
                             size_t len) {
    sfti_item *item = sfti_rebuild_tensor(r, value);
    if (!item) return SFT_OUT_OF_MEMORY;
    item->dtype = dtype;
    item->shape = shape;
    item->rank = rank;
    item->stored = len;
    return sfti_import_memory(r->im, bytes, len, &item->source);
}

bool sfti_rebuild_sizes(sfti_rebuild *r, const sfti_value *list, uint64_t **out) {
    *out = NULL;
    if (list->kind != SFTI_VALUE_TUPLE && list->kind != SFTI_VALUE_LIST) return false;
    for (uint32_t i = 0; i < list->count; i++)
        if (list->u.items[i]->kind != SFTI_VALUE_INT || list->u.items[i]->u.integer < 0)
            return false;
    if (list->count > SFT_MAX_RANK && sfti_rebuild_copy(r, list, list->count)) return true;
    *out = sfti_arena_array(&r->im->arena, list->count, sizeof **out);
    if (!*out) {
        (void)sfti_fail_memory(r->im->err, list->count);
        return true;
    }
    for (uint32_t i = 0; i < list->count; i++)
        (*out)[i] = (uint64_t)list->u.items[i]->u.integer;
    return true;
}

sft_code sfti_rebuild_attributes(sfti_rebuild *r, sfti_value *state) {
    sfti_value *list = &r->states;
    bool whole = state->kind == SFTI_VALUE_OBJECT || sfti_value_is_tensor(state);
    bool items = state->kind >= SFTI_VALUE_LIST && state->kind <= SFTI_VALUE_MAP;
    if (!whole && (!items || state->count == 0)) return SFT_OK;
    sfti_value **more = sfti_arena_grow(&r->im->arena, list->u.items, list->count, 1,
                                        &r->states_cap, sizeof *more);
    if (!more) return sfti_fail_memory(r->im->err, sizeof *more);
    list->u.items = more;
    more[list->count++] = state;
    return SFT_OK;
}

sfti_value *sfti_rebuild_value(sfti_rebuild *r, sfti_value_kind kind, uint64_t at) {
    sfti_value *value = sfti_arena_take(&r->im->arena, sizeof *value);
    if (value) *value = (sfti_value){ .kind = (uint8_t)kind, .at = at };
    else (void)sfti_fail_memory(r->im->err, sizeof *value);
    return value;
}

sft_code sfti_rebuild_map(sfti_rebuild *r, sfti_value *value, const char *const *names,
                          sfti_value *const *values, uint32_t count) {
    sfti_value **items = sfti_arena_array(&r->im->arena, 2 * (uint64_t)count, sizeof *items);
    if (!items) return sfti_fail_memory(r->im->err, count);
    for (uint32_t i = 0; i < count; i++) {
        sfti_value *name = sfti_rebuild_value(r, SFTI_VALUE_TEXT, value->at);
        if (!name) return SFT_OUT_OF_MEMORY;
        name->u.text = names[i];
        name->count = (uint32_t)strlen(names[i]);
        items[2 * i] = name;
        items[2 * i + 1] = values[i];
    }
    value->kind = SFTI_VALUE_MAP;
    value->u.items = items;
    value->count = value->cap = 2 * count;
    return SFT_OK;
}
