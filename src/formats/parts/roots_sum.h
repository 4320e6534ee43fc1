/* What hangs beneath each value of a tree, counted once for each. */
#ifndef SFTI_ROOTS_SUM_H
#define SFTI_ROOTS_SUM_H

#include "formats/parts/value.h"

/* Values that are looked at in containers: so many more than the file has bytes, and at most
 * SFTI_SUBTREE_CHILDREN; SFT_FOREIGN_TABLE beyond. A pickle can put one list of millions, or one
 * state of objects, into millions of places. */
#define SFTI_SUBTREE_AGAIN ((uint64_t)1 << 24)
#define SFTI_SUBTREE_CHILDREN ((uint64_t)1 << 26)

typedef struct sfti_subtree {
    uint64_t tensors, bytes, values; /* saturating; every place counts */
    uint64_t unsaved, unsaved_bytes; /* of these tensors, those that no state_dict shows */
    uint64_t scalars, scalar_bytes; /* and those that are numbers */
    uint32_t finished; /* as how manieth: 0 while its parts are being counted */
    bool is_unread; /* an object made of tensors: of its own, no name leads to some of them */
} sfti_subtree;

typedef struct sfti_subtrees {
    sfti_import *im;
    uint64_t seed[2]; /* of keys' hashes */
    uint64_t keys;    /* that are tensors themselves */
    sfti_subtree *all; /* by value->sum - 1 */
    size_t count, cap;
    uint32_t finished;
} sfti_subtrees;

/* One thing within a container: its key (NULL: an index), and the value. */
typedef struct sfti_child {
    const sfti_value *key;
    uint32_t index;
    sfti_value *value;
    bool silent; /* a level that names do not show: _parameters and _modules of a module */
} sfti_child;

/* Child i of a container, in file order; false past the last, and of what is none. What an object
 * was called with is none of its children, nor is a state other than its attributes. */
bool sfti_value_child(const sfti_value *value, uint64_t i, sfti_child *out);

/* What a container's state_dict shows, if it is a module of torch.nn or its buffers. */
typedef struct sfti_saved {
    bool is_module; /* parameters, buffers and modules alone */
    const sfti_value *unsaved; /* of buffers: the set of the names of those that are left out */
} sfti_saved;

/* The same of value, which is a child of `from` or, child NULL, a root. */
sfti_saved sfti_saved_of(const sfti_import *im, const sfti_value *value, const sfti_value *from,
                         const sfti_child *child);
/* Whether a child is left out. */
sft_code sfti_child_unsaved(sfti_import *im, sfti_saved saved, const sfti_child *child,
                            uint64_t *looked, bool *out);

/* Counts one more look into a container; SFT_FOREIGN_TABLE for one too many in all. */
sft_code sfti_subtree_look(sfti_import *im, const sfti_value *container, uint64_t *looked);
/* Count all that hangs beneath a value. SFT_FOREIGN_AMBIGUOUS: a map has a key twice. */
sft_code sfti_subtrees_count(sfti_subtrees *sums, sfti_value *root);
/* The sums of any value that was reached then. */
sfti_subtree sfti_subtree_of(const sfti_subtrees *sums, const sfti_value *value);
/* Whether a child may be entered from its container: not if it contains that in turn. */
bool sfti_subtree_enters(const sfti_subtrees *sums, const sfti_value *from,
                         const sfti_value *child);
/* Whether it is a number that is wanted as a tensor. */
bool sfti_value_scalar(const sfti_import *im, const sfti_value *value);

/* ── roots_choose.c: which branch of a tree is the model's ── */

typedef struct sfti_choice {
    sfti_value *root;      /* whose tensors are imported */
    sfti_value **above;    /* containers on the way to it, the whole first */
    size_t depth, cap;     /* how many */
    sft_span path;         /* to it, as options.root spells it */
    const sfti_value *key; /* its last level; NULL: the whole, or an index */
    bool only_model;       /* of the whole: without the branches that sfti_branch_is_other names */
} sfti_choice;

/* SFT_FOREIGN_BRANCH: options.root names no branch with tensors. */
sft_code sfti_roots_choose(sfti_subtrees *sums, sfti_value *whole, sfti_choice *out);

/* Optimizer states, averages and the like, by the key that they have in the whole. */
bool sfti_branch_is_other(const sfti_child *child);

/* Text of a key into a buffer: its bytes, or the digits of a number. False: it is neither. */
#define SFTI_KEY_DIGITS 24
bool sfti_child_key(const sfti_child *child, char digits[SFTI_KEY_DIGITS], sft_span *out);

#endif
