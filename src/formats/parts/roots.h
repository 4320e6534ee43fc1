/* From a tree of values to tensors: which branch is imported, under which names, and what is left
 * out. Of any format whose contents are nested. */
#ifndef SFTI_ROOTS_H
#define SFTI_ROOTS_H

#include "formats/parts/value.h"

/* Add the tensors of a tree to the import, and report its branches and all else. The values need
 * not be a tree: what stands in many places is imported from each, and from within itself not at
 * all. Tensors beneath `hidden` (NULL: none), which no name leads to, are only reported.
 * SFT_FOREIGN_BRANCH: options.root names none; SFT_FOREIGN_NAME: keys that cannot be part of
 * a name; SFT_FOREIGN_AMBIGUOUS: a key twice in a map, tensors in a set; SFT_TOO_MANY_TENSORS.
 * Cost: linear in values and in the names' bytes. */
sft_code sfti_roots_import(sfti_import *im, sfti_value *root, sfti_value *hidden);

#endif
