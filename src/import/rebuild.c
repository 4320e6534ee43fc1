#include "import/rebuild_parts.h"

/* The value becomes a list, tuple or set of the items of its argument. */
static sft_code become_items(sfti_rebuild *r, sfti_value *value, sfti_value_kind kind) {
    const sfti_object *object = value->u.object;
    const sfti_value *from = object->list ? object->list : sfti_value_item(object->args, 0);
    static const sfti_value none = { .kind = SFTI_VALUE_LIST };
    if (!from) from = &none;
    if (from->kind == SFTI_VALUE_MAP) kind = SFTI_VALUE_MAP;
    else if (from->kind != SFTI_VALUE_LIST && from->kind != SFTI_VALUE_TUPLE &&
             from->kind != SFTI_VALUE_SET)
        return SFT_OK;
    if (from != object->list) {
        sft_code code = sfti_rebuild_copy(r, value, from->count);
        if (code) return code;
    }
    value->kind = (uint8_t)kind;
    value->u.items = from->u.items;
    value->count = from->count;
    value->cap = from->cap;
    return SFT_OK;
}

/* A dict of some class: its items were set one after another, or are pairs in the argument. */
static sft_code become_map(sfti_rebuild *r, sfti_value *value) {
    const sfti_object *object = value->u.object;
    const sfti_value *from = object->pairs, *given = sfti_value_item(object->args, 0);
    static const sfti_value none = { .kind = SFTI_VALUE_MAP };
    if (!from && given && (given->kind == SFTI_VALUE_MAP || given->kind == SFTI_VALUE_LIST)) {
        sft_code code = sfti_rebuild_copy(r, value, given->count);
        if (code) return code;
    }
    if (!from && given && given->kind == SFTI_VALUE_MAP) from = given;
    if (!from && given && given->kind == SFTI_VALUE_LIST && given->count > 0) {
        sfti_value **items = sfti_arena_array(sfti_import_arena(r->im),
                                              2 * (uint64_t)given->count, sizeof *items);
        if (!items) return sfti_fail_memory(sfti_import_error(r->im), given->count);
        for (uint32_t i = 0; i < given->count; i++) {
            const sfti_value *pair = given->u.items[i];
            if ((pair->kind != SFTI_VALUE_TUPLE && pair->kind != SFTI_VALUE_LIST) ||
                pair->count != 2)
                return SFT_OK;
            items[2 * i] = pair->u.items[0];
            items[2 * i + 1] = pair->u.items[1];
        }
        value->u.items = items;
        value->count = value->cap = 2 * given->count;
        value->kind = SFTI_VALUE_MAP;
        return SFT_OK;
    }
    if (!from) from = &none;
    value->kind = SFTI_VALUE_MAP;
    value->u.items = from->u.items;
    value->count = from->count;
    value->cap = from->cap;
    return SFT_OK;
}

/* Paddle's tensors: tuple((name, array)). */
static sft_code become_tuple(sfti_rebuild *r, sfti_value *value) {
    const sfti_value *pair = sfti_object_arg(value, 0);
    if (pair && pair->kind == SFTI_VALUE_TUPLE && pair->count == 2 &&
        pair->u.items[0]->kind == SFTI_VALUE_TEXT &&
        pair->u.items[1]->kind == SFTI_VALUE_TENSOR) {
        value->kind = SFTI_VALUE_TENSOR;
        value->u.item = pair->u.items[1]->u.item;
        return SFT_OK;
    }
    return become_items(r, value, SFTI_VALUE_TUPLE);
}

/* Paddle's other tensors: eval("data", {"data": array}). Anything else stays an object, whose
 * call the report counts. */
static void recognise_eval(sfti_value *value) {
    const sfti_value *args = value->u.object->args;
    if (args->count != 2 || !sfti_value_is(args->u.items[0], "data")) return;
    const sfti_value *names = args->u.items[1];
    if (names->kind != SFTI_VALUE_MAP || names->count != 2) return;
    if (!sfti_value_is(names->u.items[0], "data")) return;
    const sfti_value *array = names->u.items[1];
    if (array->kind != SFTI_VALUE_TENSOR && array->kind != SFTI_VALUE_REFUSED) return;
    sfti_global *eval = value->u.object->callee->u.global;
    eval->named = --eval->calls; /* of those that are left */
    value->kind = array->kind;
    value->u = array->u;
}

/* copyreg._reconstructor(class, object, None): an object of the class. */
static void become_class(sfti_value *value) {
    sfti_value *of = sfti_object_arg(value, 0);
    if (!of || of->kind != SFTI_VALUE_GLOBAL) return;
    of->u.global->calls++;
    value->u.object->callee = of;
}

/* PyTorch before 1.6: ("module", class, file, source text) stands for the class, and before that
 * (class, file, source text). */
static void take_class(sfti_object *object) {
    const sfti_value *id = object->callee->u.outside;
    if (id->kind != SFTI_VALUE_TUPLE || id->count < 3 || id->count > 4) return;
    if (id->count == 4 && !sfti_value_is(id->u.items[0], "module")) return;
    if (id->u.items[id->count - 3]->kind != SFTI_VALUE_GLOBAL) return;
    object->callee = id->u.items[id->count - 3];
    object->callee->u.global->calls++;
}

/* A tensor that is among the first arguments of something unknown, or among theirs. */
static bool holds_tensor(const sfti_value *args, unsigned level) {
    for (uint32_t i = 0; i < args->count && i < 16; i++) {
        const sfti_value *item = args->u.items[i];
        if (item->kind == SFTI_VALUE_TENSOR || item->kind == SFTI_VALUE_REFUSED) return true;
        bool list = item->kind == SFTI_VALUE_TUPLE || item->kind == SFTI_VALUE_LIST;
        if (list && level < 2 && holds_tensor(item, level + 1)) return true;
    }
    return false;
}

/* What stays an object, but is made of tensors, cannot be left out in silence. */
static sft_code refuse_object(sfti_rebuild *r, sfti_value *value, uint8_t meaning) {
    const sfti_object *object = value->u.object;
    bool tensor = meaning == SFTI_MEANS_ARRAY || meaning == SFTI_MEANS_BUFFER ||
                  (meaning >= SFTI_MEANS_TENSOR && meaning <= SFTI_MEANS_NO_BYTES);
    if (object->callee->kind != SFTI_VALUE_GLOBAL || object->pairs || object->list) return SFT_OK;
    if (!tensor && (object->state || !holds_tensor(object->args, 0))) return SFT_OK;
    const sfti_global *global = object->callee->u.global;
    return sfti_rebuild_refuse(r, value, SFT_FOREIGN_OBJECT, SFT_HINT_NONE, 0,
                               "expected a tensor, found an object of %.*s.%.*s that is not read",
                               SFTI_CLIP(global->module, 80), SFTI_CLIP(global->name, 80));
}

static sft_code rebuild_meaning(sfti_rebuild *r, sfti_value *value, uint8_t meaning) {
    sfti_object *object = value->u.object;
    switch ((sfti_meaning)meaning) {
    case SFTI_FOREIGN:
    case SFTI_MEANS_VALUE:
    case SFTI_MEANS_LAYOUT:
    case SFTI_MEANS_STORAGE:
    case SFTI_MEANS_TORCH_DTYPE:
    case SFTI_MEANS_ENCODE:
    case SFTI_MEANS_BYTES:
    case SFTI_MEANS_NUMPY_DTYPE: return SFT_OK;
    case SFTI_MEANS_MAP: return become_map(r, value);
    case SFTI_MEANS_LIST: return become_items(r, value, SFTI_VALUE_LIST);
    case SFTI_MEANS_SET: return become_items(r, value, SFTI_VALUE_SET);
    case SFTI_MEANS_TUPLE: return become_tuple(r, value);
    case SFTI_MEANS_CLASS: become_class(value); return SFT_OK;
    case SFTI_MEANS_EVAL: recognise_eval(value); return SFT_OK;
    case SFTI_MEANS_ARRAY: return sfti_rebuild_array(r, value);
    case SFTI_MEANS_BUFFER: return sfti_rebuild_buffer(r, value);
    case SFTI_MEANS_SCALAR: return sfti_rebuild_scalar(r, value);
    default: return sfti_rebuild_torch(r, value, object->args, meaning);
    }
}

/* Items can be set in dicts and lists, and in objects of unknown classes. A pickle that sets some
 * in a tensor was not made by a writer. */
static sft_code check_items_set(sfti_rebuild *r, const sfti_value *value,
                            const sfti_object *object) {
    if (value->kind != SFTI_VALUE_TENSOR || (!object->pairs && !object->list)) return SFT_OK;
    return sfti_fail(sfti_import_error(r->im), SFT_FOREIGN_OPCODE, value->at,
                     "expected a tensor, found one in which the pickle sets items");
}

/* How often each is named and called; what is known, and was used as it is meant, not at all. */
static sft_code report_foreign(sfti_rebuild *r, const sfti_pickle *pickle) {
    sft_code code = SFT_OK;
    for (size_t i = 0; i < pickle->global_count && !code; i++) {
        const sfti_global *global = pickle->globals[i];
        if (global->meaning != SFTI_FOREIGN && global->meaning != SFTI_MEANS_EVAL) continue;
        uint64_t named = global->named > global->calls ? global->named : global->calls;
        if (named > 0)
            code = sfti_import_global(r->im, global->module, global->name, named, global->calls);
    }
    return code;
}

void sfti_rebuild_globals(sfti_pickle *pickle) {
    for (size_t i = 0; i < pickle->global_count; i++) sfti_global_settle(pickle->globals[i]);
}

sft_code sfti_rebuild_all(sfti_rebuild *r, sfti_pickle *pickle) {
    sft_code code = SFT_OK;
    sfti_rebuild_globals(pickle);
    r->most = sfti_import_input(r->im)->size;
    sfti_total_add(&r->most, pickle->end);
    /* arguments are made before what is called with them */
    for (sfti_object *object = pickle->first; object && !code; object = object->next) {
        sfti_value *value = object->value;
        if (value->kind != SFTI_VALUE_OBJECT) continue; /* another needed it before */
        if (object->callee->kind == SFTI_VALUE_OUTSIDE) take_class(object);
        uint8_t meaning = sfti_value_meaning(object->callee);
        if (meaning != SFTI_FOREIGN) code = rebuild_meaning(r, value, meaning);
        if (!code && value->kind == SFTI_VALUE_OBJECT) code = refuse_object(r, value, meaning);
        if (!code) code = check_items_set(r, value, object);
    }
    return code ? code : report_foreign(r, pickle);
}
