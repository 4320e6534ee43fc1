/* A tree of values becomes tensors, and a report of the rest. */
#include "base/endian.h"
#include "formats/parts/roots_sum.h"

#include <stdio.h>
#include <string.h>

/* Limits: of a name, of all names, of tensors, of containers that are entered, and of what is in
 * them: what stands in many places is visited in each. */
#define NAME_BYTES ((size_t)1 << 16)
#define ALL_NAME_BYTES ((uint64_t)100 << 20)
#define MOST_TENSORS ((uint64_t)1 << 24)
#define ENTERED ((uint64_t)1 << 25)
#define REPORTED ((uint64_t)1 << 24) /* values looked at for the list of branches */
/* What is left out is listed up to here, and so are branches. */
#define LISTED 1000

typedef struct roots_frame {
    sfti_value *value;
    uint64_t next;   /* child */
    size_t name_len; /* of the container's own name */
    sfti_saved saved;
} roots_frame;

typedef struct roots_walk {
    sfti_import *im;
    sfti_subtrees sums;
    sfti_choice choice;
    roots_frame *at;
    size_t depth, cap;
    char *name;
    size_t name_len, name_cap;
    uint64_t names, entered, looked;
    uint64_t numbers, texts, others; /* values that are no tensors */
    sft_span separator;
} roots_walk;

/* ── Names ── */

static sft_code name_append(roots_walk *w, sft_span text) {
    const sft_allocator *alloc = &w->im->arena.alloc;
    if (text.len == 0) return SFT_OK;
    if (text.len > NAME_BYTES - w->name_len)
        return sfti_fail(w->im->err, SFT_NAME_TOO_LONG,
                         "expected names of at most %zu bytes, found a longer one", NAME_BYTES);
    char *grown = sfti_grow(alloc, w->name, w->name_len, text.len, &w->name_cap, 1);
    if (!grown) return sfti_fail_memory(w->im->err, text.len);
    w->name = grown;
    memcpy(w->name + w->name_len, text.data, text.len);
    w->name_len += text.len;
    return SFT_OK;
}

/* The name of a child behind its container's; *has false: its key can be part of none. */
static sft_code name_child(roots_walk *w, const sfti_child *child, bool *has) {
    char digits[SFTI_KEY_DIGITS];
    sft_span key;
    *has = true;
    if (child->silent) return SFT_OK;
    *has = sfti_child_key(child, digits, &key);
    if (!*has) return SFT_OK;
    sft_code code = w->name_len > 0 ? name_append(w, w->separator) : SFT_OK;
    return code ? code : name_append(w, key);
}

/* ── Tensors ── */

static sft_code add_scalar(roots_walk *w, const sfti_value *value, sft_span name) {
    static const uint64_t no_shape[1] = { 0 };
    uint64_t bits = (uint64_t)value->u.integer;
    size_t len = value->kind == SFTI_VALUE_BOOL ? 1 : 8;
    uint8_t *bytes = sfti_arena_take(&w->im->arena, 8);
    if (!bytes) return sfti_fail_memory(w->im->err, 8);
    if (value->kind == SFTI_VALUE_FLOAT) memcpy(&bits, &value->u.real, 8);
    if (value->kind == SFTI_VALUE_BOOL) bits = value->u.truth;
    sfti_put_u64(bytes, bits);
    sfti_item item = { .name = name, .shape = no_shape, .stored = len, .at = value->at };
    item.dtype = value->kind == SFTI_VALUE_BOOL    ? SFT_BOOL
                 : value->kind == SFTI_VALUE_FLOAT ? SFT_F64 : SFT_I64;
    sft_code code = sfti_import_memory(w->im, bytes, len, &item.source);
    return code ? code : sfti_import_add(w->im, &item);
}

/* Whether it is entered, for what it holds. */
static bool is_entered(const roots_walk *w, const sfti_value *value) {
    return value->sum != 0 && !sfti_subtree_of(&w->sums, value).is_unread;
}

static sft_code add_leaf(roots_walk *w, const sfti_value *value) {
    bool scalar = sfti_value_scalar(w->im, value);
    bool unread = value->sum != 0; /* an object, which is not entered */
    if (!scalar && !sfti_value_is_tensor(value) && !unread) {
        if (value->kind == SFTI_VALUE_TEXT) w->texts++;
        else if (value->kind >= SFTI_VALUE_BOOL && value->kind <= SFTI_VALUE_FLOAT) w->numbers++;
        else if (value->kind != SFTI_VALUE_NONE) w->others++;
        return SFT_OK;
    }
    w->names += w->name_len;
    if (w->names > ALL_NAME_BYTES)
        return sfti_fail(w->im->err, SFT_FOREIGN_TABLE,
                         "expected names of at most 100 MiB together, found more");
    sft_span name = { sfti_arena_copy(&w->im->arena, w->name, w->name_len), w->name_len };
    if (!name.data) return sfti_fail_memory(w->im->err, w->name_len);
    if (scalar) return add_scalar(w, value, name);
    if (unread) {
        char text[240];
        return sfti_import_refuse(w->im, name, 0, SFT_FOREIGN_OBJECT, value->at, "%s",
                                  sfti_object_unread(value->u.object, text, sizeof text));
    }
    if (value->kind == SFTI_VALUE_REFUSED) {
        const sfti_refusal *why = value->u.refusal;
        sft_code code =
            sfti_import_refuse(w->im, name, why->bytes, why->code, value->at, "%s", why->text);
        if (code && why->hint != SFT_HINT_NONE) sfti_hint(w->im->err, why->hint);
        return code;
    }
    sfti_item item = *value->u.item;
    item.name = name;
    return sfti_import_add(w->im, &item);
}

/* ── The walk ── */

static sft_code enter_container(roots_walk *w, sfti_value *value, const sfti_value *from,
                                const sfti_child *child) {
    const sft_allocator *alloc = &w->im->arena.alloc;
    if (++w->entered > ENTERED)
        return sfti_fail_byte(w->im->err, SFT_FOREIGN_TABLE, value->at,
                              "expected at most %llu nested containers, found more",
                              (unsigned long long)ENTERED);
    roots_frame *frames = sfti_grow(alloc, w->at, w->depth, 1, &w->cap, sizeof *frames);
    if (!frames) return sfti_fail_memory(w->im->err, sizeof *frames);
    w->at = frames;
    frames[w->depth++] = (roots_frame){ value, 0, w->name_len,
                                        sfti_saved_of(w->im, value, from, child) };
    return SFT_OK;
}

static bool is_left_out(const roots_walk *w, const sfti_value *from, const sfti_child *child) {
    return w->choice.only_model && from == w->choice.root && child->value->sum != 0 &&
           sfti_branch_is_other(child);
}

/* Tensors of a module that its state_dict leaves out are told, and not imported. */
static sft_code leave_unsaved(roots_walk *w, const roots_frame *frame, const sfti_child *child,
                              bool *is_left) {
    sfti_subtree sum = sfti_subtree_of(&w->sums, child->value);
    bool has;
    *is_left = false;
    if (sum.tensors == 0) return SFT_OK;
    sft_code code = sfti_child_unsaved(w->im, frame->saved, child, &w->looked, is_left);
    if (code || !*is_left) return code;
    code = name_child(w, child, &has);
    if (code) return code;
    return sfti_import_leave(w->im, SFT_IMPORT_LEFT_BRANCH, (sft_span){ w->name, w->name_len },
                             sum.tensors, sum.bytes,
                             frame->saved.unsaved ? "a buffer that is not persistent"
                                                  : "an attribute, which state_dict leaves "
                                                    "out");
}

static sft_code visit(roots_walk *w, const roots_frame *frame, const sfti_child *child) {
    const sfti_value *from = frame->value;
    bool is_left;
    sft_code code = leave_unsaved(w, frame, child, &is_left);
    if (code || is_left) return code;
    sfti_subtree sum = sfti_subtree_of(&w->sums, child->value);
    if (sum.tensors == 0 && child->value->sum == 0) return add_leaf(w, child->value);
    if (!sfti_subtree_enters(&w->sums, from, child->value) || is_left_out(w, from, child))
        return SFT_OK;
    if (sum.tensors == 0) {
        sfti_total_add(&w->others, sum.values);
        return SFT_OK;
    }
    if (from->kind == SFTI_VALUE_SET)
        return sfti_import_refuse(w->im, (sft_span){ w->name, w->name_len }, sum.bytes,
                                  SFT_FOREIGN_AMBIGUOUS, from->at,
                                  "expected tensors in a list or dict, found them in a set, which "
                                  "has no order");
    bool has;
    code = name_child(w, child, &has);
    if (code) return code;
    if (!has)
        return sfti_import_refuse(w->im, (sft_span){ w->name, w->name_len }, sum.bytes,
                                  SFT_FOREIGN_NAME, child->key->at,
                                  "expected text or an integer as key of a tensor, found %s",
                                  sfti_value_kind_name(child->key->kind));
    return is_entered(w, child->value) ? enter_container(w, child->value, from, child)
                                       : add_leaf(w, child->value);
}

/* ── The report ── */

static sft_span report_path(sfti_import *im, sft_span above, const sfti_child *child) {
    char digits[SFTI_KEY_DIGITS];
    sft_span key;
    if (!sfti_child_key(child, digits, &key)) key = (sft_span){ "?", 1 };
    char *path = sfti_arena_array(&im->arena, above.len + key.len + 1, 1);
    if (!path) return (sft_span){ NULL, 0 };
    size_t len = above.len;
    if (len > 0) memcpy(path, above.data, len);
    if (len > 0) path[len++] = '.';
    if (key.len > 0) memcpy(path + len, key.data, key.len);
    return (sft_span){ path, len + key.len };
}

/* Containers with tensors: the children of one, and theirs. */
static sft_code list_branches(roots_walk *w, const sfti_value *from, sft_span above,
                                unsigned level, unsigned *listed) {
    sfti_child child;
    sft_code code = SFT_OK;
    for (uint64_t i = 0; !code && *listed < LISTED && sfti_value_child(from, i, &child); i++) {
        if (++w->looked > REPORTED) return SFT_OK; /* one container in many places */
        sfti_subtree sum = sfti_subtree_of(&w->sums, child.value);
        if (child.value->sum == 0 || sum.tensors == sum.unsaved) continue;
        if (!sfti_subtree_enters(&w->sums, from, child.value)) continue;
        sft_span path = report_path(w->im, above, &child);
        if (!path.data) return sfti_fail_memory(w->im->err, above.len);
        ++*listed;
        code = sfti_import_branch(w->im, path, sum.tensors - sum.unsaved,
                                  sum.bytes - sum.unsaved_bytes, child.value == w->choice.root);
        if (!code && level < 2 && w->choice.depth > 0 && child.value != w->choice.root)
            code = list_branches(w, child.value, path, level + 1, listed);
    }
    return code;
}

static const char *describe(const sfti_value *value, const sfti_subtree *sum, char *text,
                            size_t size) {
    sfti_child child;
    if (value->kind == SFTI_VALUE_INT)
        (void)snprintf(text, size, "the integer %lld", (long long)value->u.integer);
    else if (value->sum != 0 && sfti_value_child(value, 0, &child))
        (void)snprintf(text, size, "%s of %llu values", sfti_value_kind_name(value->kind),
                       (unsigned long long)sum->values);
    else (void)snprintf(text, size, "%s", sfti_value_kind_name(value->kind));
    return text;
}

/* What stands beside the chosen branch, or was left out of the whole. */
static sft_code report_beside(roots_walk *w, const sfti_value *from, sft_span above,
                              const sfti_value *chosen) {
    sfti_child child;
    sft_code code = SFT_OK;
    unsigned listed = 0;
    for (uint64_t i = 0; !code && sfti_value_child(from, i, &child); i++) {
        char text[64];
        sfti_subtree sum = sfti_subtree_of(&w->sums, child.value);
        if (child.value == chosen || !sfti_subtree_enters(&w->sums, from, child.value)) continue;
        if (!chosen && !is_left_out(w, from, &child)) continue;
        if (listed++ >= LISTED) continue;
        sft_span path = report_path(w->im, above, &child);
        if (!path.data) return sfti_fail_memory(w->im->err, above.len);
        bool tensors = sum.tensors > sum.unsaved;
        code = sfti_import_leave(w->im, tensors ? SFT_IMPORT_LEFT_BRANCH : SFT_IMPORT_LEFT_VALUE,
                                 path, tensors ? sum.tensors - sum.unsaved
                                               : sum.values ? sum.values : 1,
                                 tensors ? sum.bytes - sum.unsaved_bytes : 0,
                                 tensors ? "tensors of another branch"
                                         : describe(child.value, &sum, text, sizeof text));
    }
    if (listed <= LISTED || code) return code;
    return sfti_import_leave(w->im, SFT_IMPORT_LEFT_NOTE, above, listed - LISTED, 0,
                             "more that is not listed");
}

static sft_code report(roots_walk *w, const sfti_value *whole) {
    sfti_subtree sum = sfti_subtree_of(&w->sums, whole);
    sft_span path = { "", 0 };
    unsigned listed = 0;
    sft_code code = SFT_OK;
    if (sum.tensors > 0)
        code = sfti_import_branch(w->im, path, sum.tensors - sum.unsaved,
                                  sum.bytes - sum.unsaved_bytes, whole == w->choice.root);
    if (!code) code = list_branches(w, whole, path, 1, &listed);
    for (size_t i = 0; i < w->choice.depth && !code; i++) {
        const sfti_value *next = i + 1 < w->choice.depth ? w->choice.above[i + 1] : w->choice.root;
        code = report_beside(w, w->choice.above[i], path, next);
        sfti_child child;
        for (uint64_t n = 0; sfti_value_child(w->choice.above[i], n, &child); n++)
            if (child.value == next) break;
        path = report_path(w->im, path, &child);
        if (!path.data) return sfti_fail_memory(w->im->err, 1);
    }
    if (!code && w->choice.only_model)
        code = report_beside(w, w->choice.root, w->choice.path, NULL);

    if (code) return code;
    char text[128];
    uint64_t all = w->numbers;
    sfti_total_add(&all, w->texts);
    sfti_total_add(&all, w->others);
    if (all == 0) return SFT_OK;
    (void)snprintf(text, sizeof text, "numbers: %llu, texts: %llu, other values: %llu",
                   (unsigned long long)w->numbers, (unsigned long long)w->texts,
                   (unsigned long long)w->others);
    return sfti_import_leave(w->im, SFT_IMPORT_LEFT_VALUE, w->choice.path, all, 0, text);
}

static sft_code report_hidden(roots_walk *w, sfti_value *hidden) {
    sft_code code = sfti_subtrees_count(&w->sums, hidden);
    if (!code && w->sums.keys > 0)
        code = sfti_import_leave(w->im, SFT_IMPORT_LEFT_BRANCH, (sft_span){ "", 0 }, w->sums.keys,
                                 0, "tensors that are keys of dicts");
    sfti_subtree sum = sfti_subtree_of(&w->sums, hidden);
    if (code || hidden->sum == 0 || sum.tensors == 0) return code;
    return sfti_import_leave(w->im, SFT_IMPORT_LEFT_BRANCH, (sft_span){ "", 0 }, sum.tensors,
                             sum.bytes, "tensors in attributes of dicts and tensors");
}

sft_code sfti_roots_import(sfti_import *im, sfti_value *root, sfti_value *hidden) {
    const char *separator = im->options.separator;
    roots_walk w = { .im = im, .sums = { .im = im },
                     .separator = sft_span_cstr(separator ? separator : ".") };
    sft_code code = sfti_subtrees_count(&w.sums, root);
    if (!code) code = sfti_roots_choose(&w.sums, root, &w.choice);
    uint64_t tensors = code ? 0 : sfti_subtree_of(&w.sums, w.choice.root).tensors;
    if (tensors > MOST_TENSORS)
        code = sfti_fail_byte(im->err, SFT_TOO_MANY_TENSORS, w.choice.root->at,
                              "expected at most %llu tensors, found %llu",
                              (unsigned long long)MOST_TENSORS, (unsigned long long)tensors);
    if (!code && is_entered(&w, w.choice.root)) {
        size_t depth = w.choice.depth;
        const sfti_child chosen = { w.choice.key, 0, w.choice.root, true };
        code = enter_container(&w, w.choice.root, depth ? w.choice.above[depth - 1] : NULL,
                               depth && w.choice.key ? &chosen : NULL);
        while (w.depth > 0 && !code) {
            roots_frame *frame = &w.at[w.depth - 1];
            sfti_child child;
            w.name_len = frame->name_len;
            code = sfti_subtree_look(im, frame->value, &w.looked);
            if (code) break;
            if (sfti_value_child(frame->value, frame->next++, &child))
                code = visit(&w, frame, &child);
            else w.depth--;
        }
    } else if (!code) { /* the chosen branch is a tensor itself: it has the name of its key */
        sfti_child child = { w.choice.key, 0, w.choice.root, false };
        char digits[SFTI_KEY_DIGITS];
        sft_span name = { "tensor", 6 };
        if (w.choice.key) (void)sfti_child_key(&child, digits, &name);
        code = name_append(&w, name);
        if (!code) code = add_leaf(&w, w.choice.root);
    }
    w.looked = 0;
    if (!code) code = report(&w, root);
    if (!code && hidden) code = report_hidden(&w, hidden);
    const sft_allocator *alloc = &im->arena.alloc;
    sfti_release(alloc, w.at, w.cap * sizeof *w.at);
    sfti_release(alloc, w.name, w.name_cap);
    return code;
}
