/* What hangs beneath each value of a tree. */
#include "formats/parts/roots_sum.h"

#include "base/names.h"
#include "os/io.h"

#include <string.h>

/* ── Children ── */

static bool item_child(const sfti_value *list, uint64_t i, sfti_child *out) {
    if (i >= list->count) return false;
    *out = (sfti_child){ NULL, (uint32_t)i, list->u.items[i], false };
    return true;
}

static bool pair_child(const sfti_value *map, uint64_t i, bool module, sfti_child *out) {
    if (i >= map->count / 2) return false;
    const sfti_value *key = map->u.items[2 * i];
    /* How torch.nn.Module keeps what state_dict shows without a level of its own. */
    bool silent = module && (sfti_value_is(key, "_parameters") || sfti_value_is(key, "_buffers") ||
                             sfti_value_is(key, "_modules"));
    *out = (sfti_child){ key, 0, map->u.items[2 * i + 1], silent };
    return true;
}

static bool is_attributes(const sfti_value *state) {
    return state->kind == SFTI_VALUE_MAP || state->kind == SFTI_VALUE_NONE;
}

/* A state that sets attributes: a dict, or (dict or None, dict of slots or None). */
static bool sets_attributes(const sfti_value *state) {
    bool pair = state->kind == SFTI_VALUE_TUPLE && state->count == 2;
    return pair ? is_attributes(state->u.items[0]) && is_attributes(state->u.items[1])
                : is_attributes(state);
}

/* Attributes of an object, and its slots (slot 1); NULL: none. */
static sfti_value *object_attributes(const sfti_object *object, uint32_t slot) {
    sfti_value *state = object->state;
    if (!state || !sets_attributes(state)) return NULL;
    if (state->kind == SFTI_VALUE_TUPLE) state = state->u.items[slot];
    else if (slot > 0) return NULL;
    return state->kind == SFTI_VALUE_MAP ? state : NULL;
}

/* Items that were set in an object, those appended to it, its attributes. */
static bool object_child(const sfti_object *object, uint64_t i, sfti_child *out) {
    if (object->pairs) {
        if (pair_child(object->pairs, i, false, out)) return true;
        i -= object->pairs->count / 2;
    }
    if (object->list) {
        if (item_child(object->list, i, out)) return true;
        i -= object->list->count;
    }
    for (uint32_t slot = 0; slot < 2; slot++) {
        const sfti_value *attributes = object_attributes(object, slot);
        if (!attributes) continue;
        if (pair_child(attributes, i, true, out)) return true;
        i -= attributes->count / 2;
    }
    return false;
}

/* What no name leads to: part i of what an object was made of. NULL: none; false past the last. */
static bool object_part(const sfti_value *value, uint64_t i, sfti_value **out) {
    if (value->kind != SFTI_VALUE_OBJECT) return false;
    const sfti_object *object = value->u.object;
    sfti_value *state = object->state;
    sfti_value *const parts[] = { object->callee, object->args, object->keywords,
                                  state && !sets_attributes(state) ? state : NULL };
    *out = i < sizeof parts / sizeof *parts ? parts[i] : NULL;
    return i < sizeof parts / sizeof *parts;
}

bool sfti_value_child(const sfti_value *value, uint64_t i, sfti_child *out) {
    switch ((sfti_value_kind)value->kind) {
    case SFTI_VALUE_MAP: return pair_child(value, i, false, out);
    case SFTI_VALUE_LIST:
    case SFTI_VALUE_TUPLE:
    case SFTI_VALUE_SET: return item_child(value, i, out);
    case SFTI_VALUE_OBJECT: return object_child(value->u.object, i, out);
    default: return false;
    }
}

static const sfti_value *object_attribute(const sfti_value *object, const char *name) {
    const sfti_value *map = object->kind == SFTI_VALUE_OBJECT
                                ? object_attributes(object->u.object, 0) : NULL;
    for (uint32_t i = 0; map && i < map->count / 2; i++)
        if (sfti_value_is(map->u.items[2 * (size_t)i], name))
            return map->u.items[2 * (size_t)i + 1];
    return NULL;
}

static bool may_hold(const sfti_value *value) {
    return value->kind >= SFTI_VALUE_LIST && value->kind <= SFTI_VALUE_OBJECT;
}

/* Whether a part is looked into: most arguments are a few numbers and texts. */
static bool part_may_hold(const sfti_value *part) {
    bool few = part->kind == SFTI_VALUE_TUPLE && part->count <= 16;
    bool holds = !few && (may_hold(part) || sfti_value_is_tensor(part));
    for (uint32_t i = 0; few && i < part->count && !holds; i++)
        holds = may_hold(part->u.items[i]) || sfti_value_is_tensor(part->u.items[i]);
    return holds;
}

static bool is_container(const sfti_value *value) {
    sfti_child child;
    sfti_value *part;
    bool is = sfti_value_child(value, 0, &child);
    for (uint64_t i = 0; !is && object_part(value, i, &part); i++) is = part && part_may_hold(part);
    return is;
}

/* ── Counting ── */

static uint64_t sum_item_bytes(const sfti_item *item) {
    uint64_t bytes = 0;
    if (item->codec) return item->stored;
    return sft_shape_size(item->dtype, item->shape, item->rank, NULL, &bytes, NULL)
               ? UINT64_MAX : bytes;
}

bool sfti_value_scalar(const sfti_import *im, const sfti_value *value) {
    return im->options.scalars &&
           (value->kind == SFTI_VALUE_BOOL || value->kind == SFTI_VALUE_INT ||
            value->kind == SFTI_VALUE_FLOAT);
}

sfti_subtree sfti_subtree_of(const sfti_subtrees *sums, const sfti_value *value) {
    if (value->sum != 0) return sums->all[value->sum - 1];
    uint64_t number = value->kind == SFTI_VALUE_BOOL ? 1 : 8;
    if (sfti_value_scalar(sums->im, value))
        return (sfti_subtree){ .tensors = 1, .bytes = number,
                               .scalars = 1, .scalar_bytes = number };
    if (value->kind == SFTI_VALUE_TENSOR)
        return (sfti_subtree){ .tensors = 1, .bytes = sum_item_bytes(value->u.item) };
    if (value->kind == SFTI_VALUE_REFUSED)
        return (sfti_subtree){ .tensors = 1, .bytes = value->u.refusal->bytes };
    return (sfti_subtree){ .values = 1 };
}

bool sfti_subtree_enters(const sfti_subtrees *sums, const sfti_value *from,
                         const sfti_value *child) {
    if (child->sum == 0 || from->sum == 0) return true;
    return sums->all[child->sum - 1].finished < sums->all[from->sum - 1].finished;
}

/* ── Keys ── */

/* Numbers that Python takes for one key: 1, 1.0 and True. */
static bool number_of_key(const sfti_value *key, int64_t *out) {
    double real = key->kind == SFTI_VALUE_FLOAT ? key->u.real : 0.5;
    if (key->kind == SFTI_VALUE_INT) *out = key->u.integer;
    else if (key->kind == SFTI_VALUE_BOOL) *out = key->u.truth;
    else if (real >= -0x1p62 && real <= 0x1p62 && (double)(int64_t)real == real)
        *out = (int64_t)real;
    else return false;
    return true;
}

static bool same_key(const sfti_value *a, const sfti_value *b) {
    int64_t x, y;
    if (a->kind == SFTI_VALUE_TEXT && b->kind == SFTI_VALUE_TEXT)
        return a->u.text && b->u.text && a->count == b->count &&
               memcmp(a->u.text, b->u.text, a->count) == 0;
    return number_of_key(a, &x) && number_of_key(b, &y) && x == y;
}

static size_t key_hash(const sfti_subtrees *sums, const sfti_value *key) {
    int64_t number;
    if (key->kind == SFTI_VALUE_TEXT)
        return key->u.text ? (size_t)sfti_names_hash((sft_span){ key->u.text, key->count },
                                                     sums->seed) : 0;
    if (!number_of_key(key, &number)) return 0;
    return (size_t)sfti_names_hash((sft_span){ (const char *)&number, sizeof number }, sums->seed);
}

/* Tensors that a key is, or that are among the first items of one. */
static uint32_t key_tensors(const sfti_value *key) {
    uint32_t count = sfti_value_is_tensor(key);
    bool items = key->kind == SFTI_VALUE_TUPLE || key->kind == SFTI_VALUE_SET;
    for (uint32_t i = 0; items && i < key->count && i < 16; i++)
        count += sfti_value_is_tensor(key->u.items[i]);
    return count;
}

/* A loader keeps the last value of a key, and other readers the first. */
static sft_code check_keys(sfti_subtrees *sums, sfti_value *map) {
    if (map->distinct) return SFT_OK;
    const sft_allocator *alloc = &sums->im->arena.alloc;
    size_t pairs = map->count / 2, slots = 16;
    uint32_t few[64], *table = few;
    int64_t number;
    while (slots < 2 * pairs) slots *= 2;
    if (slots > 64 && !(table = sfti_take(alloc, slots * sizeof *table)))
        return sfti_fail_memory(sums->im->err, slots * sizeof *table);
    memset(table, 0, slots * sizeof *table);
    sft_code code = SFT_OK;
    for (uint32_t i = 0; i < pairs && !code; i++) {
        const sfti_value *key = map->u.items[2 * (size_t)i];
        sums->keys += key_tensors(key);
        bool text = key->kind == SFTI_VALUE_TEXT;
        if (text ? !key->u.text : !number_of_key(key, &number)) continue;
        size_t slot = key_hash(sums, key) & (slots - 1);
        for (; table[slot] != 0 && !code; slot = (slot + 1) & (slots - 1))
            if (same_key(map->u.items[2 * (size_t)(table[slot] - 1)], key))
                code = sfti_fail_byte(sums->im->err, SFT_FOREIGN_AMBIGUOUS, key->at,
                                      "expected every key of a dict once, found \"%.*s\" twice",
                                      text ? (int)(key->count < 200 ? key->count : 200) : 11,
                                      text ? key->u.text : "of a number");
        table[slot] = i + 1;
    }
    if (table != few) sfti_release(alloc, table, slots * sizeof *table);
    map->distinct = !code;
    return code;
}

sft_code sfti_subtree_look(sfti_import *im, const sfti_value *container, uint64_t *looked) {
    uint64_t most = SFTI_SUBTREE_AGAIN;
    sfti_total_add(&most, im->input->size);
    if (most > SFTI_SUBTREE_CHILDREN) most = SFTI_SUBTREE_CHILDREN;
    if (++*looked <= most) return SFT_OK;
    return sfti_fail_byte(im->err, SFT_FOREIGN_TABLE, container->at,
                          "expected at most %llu values in containers, found more",
                          (unsigned long long)most);
}

/* ── What state_dict shows ── */

static bool is_torch_module(const sfti_import *im, const sfti_value *value) {
    return !im->options.all && object_attribute(value, "_parameters") &&
           object_attribute(value, "_buffers") && object_attribute(value, "_modules");
}

/* Whether a set of texts has the child's key. */
static sft_code find_key(sfti_import *im, const sfti_value *set, const sfti_child *child,
                         uint64_t *looked, bool *found) {
    sfti_child item;
    *found = false;
    if (child->key->kind != SFTI_VALUE_TEXT || !child->key->u.text) return SFT_OK;
    sft_span key = { child->key->u.text, child->key->count };
    for (uint64_t i = 0; !*found && sfti_value_child(set, i, &item); i++) {
        const sfti_value *text = item.value;
        sft_code code = sfti_subtree_look(im, set, looked);
        if (code) return code;
        *found = text->kind == SFTI_VALUE_TEXT && text->u.text &&
                 sft_span_equal((sft_span){ text->u.text, text->count }, key);
    }
    return SFT_OK;
}

sfti_saved sfti_saved_of(const sfti_import *im, const sfti_value *value, const sfti_value *from,
                         const sfti_child *child) {
    bool buffers = child && child->silent && sfti_value_is(child->key, "_buffers");
    sfti_saved saved = { is_torch_module(im, value), NULL };
    if (buffers && is_torch_module(im, from))
        saved.unsaved = object_attribute(from, "_non_persistent_buffers_set");
    return saved;
}

/* Packed weights of a quantised layer, an attribute that its state_dict shows. */
static bool is_packed(const sfti_value *value) {
    const sfti_value *callee = value->kind == SFTI_VALUE_OBJECT ? value->u.object->callee : NULL;
    return callee && callee->kind == SFTI_VALUE_GLOBAL &&
           sfti_span_is(callee->u.global->module, "torch") &&
           sfti_span_is(callee->u.global->name, "ScriptObject");
}

sft_code sfti_child_unsaved(sfti_import *im, sfti_saved saved, const sfti_child *child,
                            uint64_t *looked, bool *out) {
    *out = saved.is_module && !saved.unsaved && child->key && !child->silent &&
           !is_packed(child->value);
    return saved.unsaved && child->key ? find_key(im, saved.unsaved, child, looked, out) : SFT_OK;
}

/* ── The walk ── */

typedef struct sum_frame {
    sfti_value *value;
    uint64_t next;  /* child */
    uint64_t parts; /* of an object, that were looked at behind its children */
    sfti_saved saved;
    bool is_unsaved; /* its tensors are not shown */
    bool is_part;    /* of the object above */
} sum_frame;

typedef struct sum_walk {
    sum_frame *at;
    size_t depth, cap;
} sum_walk;

static sft_code sum_enter(sfti_subtrees *sums, sum_walk *walk, sfti_value *value,
                          const sfti_value *from, const sfti_child *child, bool is_unsaved,
                          bool is_part) {
    const sft_allocator *alloc = &sums->im->arena.alloc;
    bool object = value->kind == SFTI_VALUE_OBJECT;
    sfti_value *pairs = object ? value->u.object->pairs : NULL;
    sft_code code = value->kind == SFTI_VALUE_MAP ? check_keys(sums, value) : SFT_OK;
    if (!code && pairs) code = check_keys(sums, pairs);
    for (uint32_t slot = 0; object && slot < 2 && !code; slot++) {
        sfti_value *attributes = object_attributes(value->u.object, slot);
        if (attributes) code = check_keys(sums, attributes);
    }
    if (code) return code;
    sum_frame *frames = sfti_grow(alloc, walk->at, walk->depth, 1, &walk->cap, sizeof *frames);
    if (!frames) return sfti_fail_memory(sums->im->err, sizeof *frames);
    walk->at = frames;
    sfti_subtree *all = sfti_arena_grow(&sums->im->arena, sums->all, sums->count, 1,
                                    &sums->cap, sizeof *all);
    if (!all) return sfti_fail_memory(sums->im->err, sizeof *all);
    sums->all = all;
    sums->all[sums->count++] = (sfti_subtree){ 0 };
    value->sum = (uint32_t)sums->count;
    frames[walk->depth++] = (sum_frame){ .value = value, .is_unsaved = is_unsaved,
                                         .is_part = is_part,
                                         .saved = sfti_saved_of(sums->im, value, from, child) };
    return SFT_OK;
}

/* The next child, then the parts of an object that may hold tensors; false: there is no more. */
static bool sum_next(sum_frame *frame, sfti_child *out, bool *is_part) {
    sfti_value *part;
    *is_part = !sfti_value_child(frame->value, frame->next, out);
    frame->next += !*is_part;
    bool found = !*is_part;
    while (!found && object_part(frame->value, frame->parts, &part)) {
        frame->parts++;
        found = part && part_may_hold(part);
        if (found) *out = (sfti_child){ NULL, 0, part, false };
    }
    return found;
}

/* Parts add tensors alone: numbers in arguments are wanted by nobody. */
static void sum_add(sfti_subtree *to, const sfti_subtree *more, bool is_unsaved, bool is_part) {
    uint64_t tensors = more->tensors - more->scalars;
    if (is_part) {
        to->is_unread = to->is_unread || tensors > 0;
        sfti_total_add(&to->tensors, tensors);
        sfti_total_add(&to->bytes, more->bytes - more->scalar_bytes);
        return;
    }
    sfti_total_add(&to->scalars, more->scalars);
    sfti_total_add(&to->scalar_bytes, more->scalar_bytes);
    sfti_total_add(&to->tensors, more->tensors);
    sfti_total_add(&to->bytes, more->bytes);
    sfti_total_add(&to->unsaved, is_unsaved ? more->tensors : more->unsaved);
    sfti_total_add(&to->unsaved_bytes, is_unsaved ? more->bytes : more->unsaved_bytes);
    sfti_total_add(&to->values, more->values);
}

/* Depth first. A container whose parts are being counted already contains itself: it adds
 * nothing to what is within it, and finishes later, which is how sfti_subtree_enters knows. */
sft_code sfti_subtrees_count(sfti_subtrees *sums, sfti_value *root) {
    sum_walk walk = { 0 };
    uint64_t looked = 0;
    if (sums->count == 0) sfti_seed_draw(sums, sums->seed);
    sft_code code = SFT_OK;
    if (is_container(root) && root->sum == 0)
        code = sum_enter(sums, &walk, root, NULL, NULL, false, false);
    while (walk.depth > 0 && !code) {
        sum_frame *frame = &walk.at[walk.depth - 1];
        sfti_subtree *own = &sums->all[frame->value->sum - 1];
        sfti_child child;
        bool is_unsaved, is_part;
        code = sfti_subtree_look(sums->im, frame->value, &looked);
        if (code) break;
        if (!sum_next(frame, &child, &is_part)) {
            own->finished = ++sums->finished;
            if (frame->next == 0) own->values = 1; /* an object of parts alone */
            if (--walk.depth > 0)
                sum_add(&sums->all[walk.at[walk.depth - 1].value->sum - 1], own,
                        frame->is_unsaved, frame->is_part);
            continue;
        }
        code = sfti_child_unsaved(sums->im, frame->saved, &child, &looked, &is_unsaved);
        if (code) break;
        if (child.value->sum == 0 && is_container(child.value)) {
            code = sum_enter(sums, &walk, child.value, frame->value, &child, is_unsaved, is_part);
        } else {
            sfti_subtree of = sfti_subtree_of(sums, child.value);
            if (child.value->sum == 0 || of.finished > 0)
                sum_add(own, &of, is_unsaved, is_part);
        }
    }
    sfti_release(&sums->im->arena.alloc, walk.at, walk.cap * sizeof *walk.at);
    return code;
}
