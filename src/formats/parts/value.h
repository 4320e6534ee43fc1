/* What a file says, as a tree of values, whatever it is written in. Nothing is called to make one:
 * an object is the name of what a loader would call, and its arguments. Values hang together as a
 * graph: one may stand in many places, and in itself. */
#ifndef SFTI_VALUE_H
#define SFTI_VALUE_H

#include "formats/parts/state.h"

typedef enum sfti_value_kind {
    SFTI_VALUE_NONE = 0,
    SFTI_VALUE_BOOL,
    SFTI_VALUE_INT,
    SFTI_VALUE_NUMBER, /* one that is not kept: wider than 64 bits, or decimal text */
    SFTI_VALUE_FLOAT,
    SFTI_VALUE_TEXT,
    SFTI_VALUE_BYTES,
    SFTI_VALUE_LIST,
    SFTI_VALUE_TUPLE,
    SFTI_VALUE_SET,
    SFTI_VALUE_MAP,
    SFTI_VALUE_OBJECT,  /* something called, as yet, or for ever, without a meaning */
    SFTI_VALUE_GLOBAL,  /* a name of Python */
    SFTI_VALUE_OUTSIDE, /* of a pickle: something that its writer keeps elsewhere */
    SFTI_VALUE_TENSOR,
    SFTI_VALUE_REFUSED  /* a tensor that cannot be carried */
} sfti_value_kind;

typedef struct sfti_value sfti_value;
typedef struct sfti_object sfti_object;
typedef struct sfti_global sfti_global;
typedef struct sfti_refusal sfti_refusal;

struct sfti_value {
    uint8_t kind; /* sfti_value_kind */
    bool raw : 1; /* of a text: bytes of Python 2, which need not be text; of bytes: they were
                     text and are in memory, as u.item says; of an object: NEWOBJ made it, by
                     the class's __new__ alone */
    bool escaped : 1;  /* of a text: `at` is no place of its bytes */
    bool distinct : 1; /* of a map: roots_sum.c has found no key twice */
    uint8_t held; /* of a container: a call took its contents, to that many levels; the pickle
                     may not change it any more, which loaders would see or not see */
    uint32_t count; /* items; of a map keys and values; of a text bytes */
    uint64_t at;    /* byte of the file: of a text or bytes its first one */
    union {
        bool truth;
        int64_t integer;
        double real;
        const char *text; /* NULL: too long to be kept in memory */
        uint64_t length;  /* of bytes, which stay in the file */
        sfti_value **items;
        sfti_object *object;
        sfti_global *global;
        sfti_value *outside;
        sfti_item *item; /* without a name */
        const sfti_refusal *refusal;
    } u;
    uint32_t cap; /* of items */
    uint32_t sum; /* roots.c: which of its sums; 0: none yet */
};

/* What a loader would make by a call. Subclasses of dict and list get items afterwards. */
struct sfti_object {
    sfti_value *callee, *args;
    sfti_value *keywords;     /* NULL: none */
    sfti_value *state;        /* NULL: none */
    sfti_value *pairs, *list; /* a map and a list; NULL: none */
    sfti_value *value;        /* that it was made for, and may not be any more */
    sfti_object *next;        /* that was made next */
};

struct sfti_global {
    sft_span module, name;
    uint64_t named, calls;
    uint8_t meaning;                      /* sfti_meaning of globals.h; 0: foreign */
    const struct sfti_torch_dtype *dtype; /* of a storage or dtype */
    sfti_value value;                     /* itself, as a value */
};

struct sfti_refusal {
    sft_code code;
    sft_hint hint;  /* SFT_HINT_NONE: the code's */
    uint64_t bytes; /* that the tensor would have; 0: not known */
    const char *text;
};

static inline bool sfti_span_is(sft_span span, const char *text) {
    return sft_span_equal(span, sft_span_cstr(text));
}

/* A value that is exactly this text. */
static inline bool sfti_value_is(const sfti_value *value, const char *text) {
    return value->kind == SFTI_VALUE_TEXT && value->u.text &&
           sfti_span_is((sft_span){ value->u.text, value->count }, text);
}

/* Item i of a list or tuple; NULL past the last. */
static inline sfti_value *sfti_value_item(const sfti_value *list, uint32_t i) {
    return i < list->count ? list->u.items[i] : NULL;
}

static inline bool sfti_value_is_tensor(const sfti_value *value) {
    return value->kind == SFTI_VALUE_TENSOR || value->kind == SFTI_VALUE_REFUSED;
}

/* Why an object that is made of tensors is refused, into text. */
const char *sfti_object_unread(const sfti_object *object, char *text, size_t size);
/* What a kind of value is called in messages: "a list". */
const char *sfti_value_kind_name(uint8_t kind);

/* ── roots.c: which branch is imported, under which names, and what is left out ── */

/* Add the tensors of a tree to the import, and report its branches and all else. The values need
 * not be a tree: what stands in many places is imported from each, and from within itself not at
 * all. Tensors beneath `hidden` (NULL: none), which no name leads to, are only reported.
 * SFT_FOREIGN_BRANCH: options.root names none; SFT_FOREIGN_NAME: keys that cannot be part of
 * a name; SFT_FOREIGN_AMBIGUOUS: a key twice in a map, tensors in a set; SFT_TOO_MANY_TENSORS.
 * Cost: linear in values and in the names' bytes. */
sft_code sfti_roots_import(sfti_import *im, sfti_value *root, sfti_value *hidden);

#endif
