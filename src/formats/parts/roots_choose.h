/* Which branch of a tree is the model's. */
#ifndef SFTI_ROOTS_CHOOSE_H
#define SFTI_ROOTS_CHOOSE_H

#include "formats/parts/roots_sum.h"

typedef struct sfti_choice {
    sfti_value *root;      /* whose tensors are imported */
    sfti_value *above[8];  /* containers on the way to it, the whole first */
    uint32_t depth;        /* how many */
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
