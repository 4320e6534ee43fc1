/* What a pickle's objects stand for. Tests: test_import_pickle.c. */
#include "formats/objects/rebuild_parts.h"

#include <string.h>

static const sfti_value no_items = { .kind = SFTI_VALUE_LIST };

/* The value becomes a container of `kind` of the items of two, one behind the other. */
static sft_code become_both(sfti_rebuild *r, sfti_value *value, sfti_value_kind kind,
                            const sfti_value *first, const sfti_value *second) {
    const sfti_value *only = first->count == 0 ? second : first;
    uint64_t count = (uint64_t)first->count + second->count;
    sft_code code = only == value->u.object->pairs || only == value->u.object->list
                        ? SFT_OK : sfti_rebuild_copy(r, value, count);
    sfti_value **items = only->u.items;
    if (code) return code;
    if (first->count > 0 && second->count > 0) {
        if (count > UINT32_MAX || !(items = sfti_arena_array(&r->im->arena, count, sizeof *items)))
            return sfti_fail_memory(r->im->err, count);
        memcpy(items, first->u.items, first->count * sizeof *items);
        memcpy(items + first->count, second->u.items, second->count * sizeof *items);
    }
    value->kind = (uint8_t)kind;
    value->u.items = items;
    value->count = value->cap = (uint32_t)count;
    return SFT_OK;
}

static bool is_sequence(const sfti_value *value) {
    return value->kind == SFTI_VALUE_LIST || value->kind == SFTI_VALUE_TUPLE ||
           value->kind == SFTI_VALUE_SET;
}

/* The value becomes a list, tuple or set of the items of its argument, and what was appended.
 * A loader would take a dict's keys: then it stays an object. */
static sft_code become_items(sfti_rebuild *r, sfti_value *value, sfti_value_kind kind) {
    const sfti_object *object = value->u.object;
    const sfti_value *from = sfti_value_item(object->args, 0);
    if (!from || (value->raw && kind == SFTI_VALUE_LIST)) from = &no_items;
    if (!is_sequence(from)) return SFT_OK;
    return become_both(r, value, kind, from, object->list ? object->list : &no_items);
}

/* The pairs of a list, tuple or set, as a map in *out; false: they are others, or keys are such as
 * no dict has. */
static sft_code pairs_of(sfti_rebuild *r, const sfti_value *given, sfti_value *out, bool *are) {
    sft_code code = sfti_rebuild_copy(r, given, given->count);
    sfti_value **items = code ? NULL : sfti_arena_array(&r->im->arena,
                                                        2 * (uint64_t)given->count, sizeof *items);
    if (!items) return code ? code : sfti_fail_memory(r->im->err, given->count);
    *are = given->count <= UINT32_MAX / 2;
    for (uint32_t i = 0; *are && i < given->count; i++) {
        const sfti_value *pair = given->u.items[i];
        *are = (pair->kind == SFTI_VALUE_TUPLE || pair->kind == SFTI_VALUE_LIST) &&
               pair->count == 2 && (pair->u.items[0]->kind < SFTI_VALUE_LIST ||
                                    pair->u.items[0]->kind > SFTI_VALUE_MAP ||
                                    pair->u.items[0]->kind == SFTI_VALUE_TUPLE);
        if (!*are) break;
        items[2 * i] = pair->u.items[0];
        items[2 * i + 1] = pair->u.items[1];
    }
    *out = (sfti_value){ .kind = SFTI_VALUE_MAP, .u.items = items, .count = 2 * given->count };
    return SFT_OK;
}

/* What a dict's class is called with, as a map or pairs; NULL: nothing; no_items: it cannot be. */
static const sfti_value *given_items(const sfti_value *value, uint8_t meaning) {
    const sfti_object *object = value->u.object;
    uint32_t first = meaning == SFTI_MEANS_DEFAULT_MAP ? 1 : 0;
    const sfti_value *given = sfti_value_item(object->args, first);
    if (meaning == SFTI_MEANS_USER_MAP && object->state && object->state->kind == SFTI_VALUE_MAP)
        for (uint32_t i = 0; i + 1 < object->state->count; i += 2)
            if (sfti_value_is(object->state->u.items[i], "data"))
                given = object->state->u.items[i + 1];
    if (!given || (value->raw && meaning != SFTI_MEANS_USER_MAP)) return NULL;
    bool pairs = is_sequence(given) && (meaning != SFTI_MEANS_COUNTER || given->count == 0);
    return object->args->count > first + 1 || (given->kind != SFTI_VALUE_MAP && !pairs)
               ? &no_items : given;
}

/* A dict of some class: its items are pairs in the argument, or a dict, and were set behind it. Of
 * what no loader takes, or takes otherwise, it stays an object. */
static sft_code become_map(sfti_rebuild *r, sfti_value *value, uint8_t meaning) {
    const sfti_object *object = value->u.object;
    const sfti_value *given = given_items(value, meaning);
    sfti_value pairs;
    bool are = given != &no_items;
    if (given && are && given->kind != SFTI_VALUE_MAP) {
        sft_code code = pairs_of(r, given, &pairs, &are);
        if (code) return code;
        given = &pairs;
    }
    if (!are) return SFT_OK;
    sfti_value *factory = sfti_value_item(object->args, 0);
    if (meaning == SFTI_MEANS_DEFAULT_MAP && factory) {
        sft_code code = sfti_rebuild_attributes(r, factory);
        if (code) return code;
    }
    return become_both(r, value, SFTI_VALUE_MAP, given ? given : &no_items,
                       object->pairs ? object->pairs : &no_items);
}

/* Paddle's tensors: tuple((name, array)). A torch.Size is of integers. */
static sft_code become_tuple(sfti_rebuild *r, sfti_value *value) {
    const sfti_value *pair = sfti_object_arg(value, 0);
    if (sfti_span_is(value->u.object->callee->u.global->name, "Size")) {
        for (uint32_t i = 0; pair && i < pair->count; i++)
            if (!is_sequence(pair) || pair->u.items[i]->kind != SFTI_VALUE_INT) return SFT_OK;
    } else if (pair && pair->kind == SFTI_VALUE_TUPLE && pair->count == 2 &&
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

/* A storage among the first arguments of something unknown, which makes a tensor of it. */
static bool has_storage(const sfti_value *args) {
    bool has = false;
    for (uint32_t i = 0; i < args->count && i < 16 && !has; i++) {
        const sfti_value *item = args->u.items[i];
        const sfti_value *id = item->kind == SFTI_VALUE_OUTSIDE ? item->u.outside : NULL;
        has = id && id->kind == SFTI_VALUE_TUPLE && id->count > 0 &&
              sfti_value_is(id->u.items[0], "storage");
    }
    return has;
}

/* What stays an object, but stands for tensors, cannot be left out in silence. Of those that hold
 * others, the walk from the root finds which are made of tensors. */
static sft_code refuse_object(sfti_rebuild *r, sfti_value *value, uint8_t meaning) {
    const sfti_object *object = value->u.object;
    bool tensor = meaning == SFTI_MEANS_ARRAY || meaning == SFTI_MEANS_BUFFER ||
                  (meaning >= SFTI_MEANS_TENSOR && meaning <= SFTI_MEANS_TENSOR_CLASS);
    bool items = object->pairs || object->list;
    bool container = meaning >= SFTI_MEANS_MAP && meaning <= SFTI_MEANS_TAGGED &&
                     (items || object->state);
    bool known = meaning != SFTI_FOREIGN && meaning != SFTI_MEANS_CLASS; /* and has no items */
    if (!tensor && !container && !(known && items) && !has_storage(object->args)) return SFT_OK;
    char text[240];
    return sfti_rebuild_refuse(r, value, SFT_FOREIGN_OBJECT, SFT_HINT_NONE, 0, "%s",
                               sfti_object_unread(object, text, sizeof text));
}

static sft_code rebuild_meaning(sfti_rebuild *r, sfti_value *value, uint8_t meaning) {
    sfti_object *object = value->u.object;
    sfti_value *first = sfti_object_arg(value, 0);
    switch ((sfti_meaning)meaning) {
    case SFTI_FOREIGN:
    case SFTI_MEANS_VALUE:
    case SFTI_MEANS_LAYOUT:
    case SFTI_MEANS_STORAGE:
    case SFTI_MEANS_TORCH_DTYPE:
    case SFTI_MEANS_ENCODE:
    case SFTI_MEANS_BYTES:
    case SFTI_MEANS_NUMPY_DTYPE: return SFT_OK;
    case SFTI_MEANS_MAP:
    case SFTI_MEANS_COUNTER:
    case SFTI_MEANS_DEFAULT_MAP:
    case SFTI_MEANS_USER_MAP: return become_map(r, value, meaning);
    case SFTI_MEANS_TAGGED:
        if (first && first->kind == SFTI_VALUE_MAP)
            return become_both(r, value, SFTI_VALUE_MAP, first,
                               object->pairs ? object->pairs : &no_items);
        return become_items(r, value, SFTI_VALUE_LIST);
    case SFTI_MEANS_LIST: return become_items(r, value, SFTI_VALUE_LIST);
    case SFTI_MEANS_SET: return become_items(r, value, SFTI_VALUE_SET);
    case SFTI_MEANS_TUPLE: return become_tuple(r, value);
    case SFTI_MEANS_CLASS: /* copyreg._reconstructor(class, object, None): one of the class */
        if (!first || first->kind != SFTI_VALUE_GLOBAL) return SFT_OK;
        first->u.global->calls++;
        object->callee = first;
        return SFT_OK;
    case SFTI_MEANS_EVAL: recognise_eval(value); return SFT_OK;
    case SFTI_MEANS_ARRAY: return sfti_rebuild_array(r, value);
    case SFTI_MEANS_BUFFER: return sfti_rebuild_buffer(r, value);
    case SFTI_MEANS_SCALAR: return sfti_rebuild_scalar(r, value);
    default: return sfti_rebuild_torch(r, value, object->args, meaning);
    }
}

/* What is set in a value behind the call that made it: items, in dicts, lists and objects of
 * unknown classes; attributes, which are kept for the report. A pickle that sets items in a tensor,
 * or by number in a list, was not made by a writer, and a state may replace a tensor's contents:
 * only (requires_grad, …, hooks) of a parameter is known to do nothing. */
static sft_code check_set(sfti_rebuild *r, sfti_value *value, const sfti_object *object,
                          uint8_t meaning) {
    bool tensor = value->kind == SFTI_VALUE_TENSOR;
    bool items = value->kind >= SFTI_VALUE_LIST && value->kind <= SFTI_VALUE_MAP;
    bool sets = object->pairs && value->kind != SFTI_VALUE_MAP;
    bool appends = object->list && value->kind != SFTI_VALUE_LIST;
    if ((tensor || items) && (sets || appends))
        return sfti_fail_byte(r->im->err, SFT_FOREIGN_OPCODE, value->at,
                              "expected %s, found one in which the pickle %s",
                              sfti_value_kind_name(value->kind),
                              sets ? "sets items" : "appends items");
    const sfti_value *state = object->state;
    if (!state || value->kind == SFTI_VALUE_OBJECT) return SFT_OK;
    bool plain = meaning == SFTI_MEANS_PARAMETER && state->kind == SFTI_VALUE_TUPLE &&
                 state->count == 3 && state->u.items[0]->kind == SFTI_VALUE_BOOL;
    if (meaning >= SFTI_MEANS_TENSOR && meaning <= SFTI_MEANS_NO_BYTES && !plain && tensor)
        return sfti_rebuild_refuse(r, value, SFT_FOREIGN_OBJECT, SFT_HINT_NONE, 0,
                                   "expected a tensor, found one whose contents a state sets");
    if (meaning == SFTI_MEANS_ARRAY) return SFT_OK;
    if (meaning != SFTI_MEANS_USER_MAP || state->kind != SFTI_VALUE_MAP)
        return sfti_rebuild_attributes(r, object->state);
    sft_code code = SFT_OK; /* of a user dict, all attributes but its items */
    for (uint32_t i = 0; i + 1 < state->count && !code; i += 2)
        if (!sfti_value_is(state->u.items[i], "data"))
            code = sfti_rebuild_attributes(r, state->u.items[i + 1]);
    return code;
}

sft_code sfti_rebuild_all(sfti_rebuild *r, sfti_pickle *pickle) {
    sft_code code = SFT_OK;
    r->states = (sfti_value){ .kind = SFTI_VALUE_LIST };
    r->most = r->im->input->size;
    sfti_total_add(&r->most, pickle->end);
    /* arguments are made before what is called with them */
    for (sfti_object *object = pickle->first; object && !code; object = object->next) {
        sfti_value *value = object->value;
        if (value->kind != SFTI_VALUE_OBJECT) continue; /* another needed it before */
        if (object->callee->kind == SFTI_VALUE_OUTSIDE) take_class(object);
        uint8_t meaning = sfti_value_meaning(object->callee);
        if (meaning != SFTI_FOREIGN) code = rebuild_meaning(r, value, meaning);
        if (!code && value->kind == SFTI_VALUE_OBJECT) code = refuse_object(r, value, meaning);
        if (!code) code = check_set(r, value, object, meaning);
    }

    if (code) return code;
    /* How often each is named and called; what is known, and was used as it is meant, not at
     * all. */
    code = SFT_OK;
    for (size_t i = 0; i < pickle->global_count && !code; i++) {
        const sfti_global *global = pickle->globals[i];
        if (global->meaning != SFTI_FOREIGN && global->meaning != SFTI_MEANS_EVAL) continue;
        uint64_t named = global->named > global->calls ? global->named : global->calls;
        if (named > 0)
            code = sfti_import_global(r->im, global->module, global->name, named, global->calls);
    }
    return code;
}
