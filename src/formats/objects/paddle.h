/* Arrays that Paddle cuts into slices, since pickles before protocol 4 cannot hold them. */
#ifndef SFTI_PADDLE_H
#define SFTI_PADDLE_H

#include "formats/parts/value.h"

/* Put the slices of a map of arrays together, if it says that it has some. SFT_FOREIGN_SYNTAX: what
 * it says does not fit its arrays. */
sft_code sfti_paddle_join(sfti_import *im, sfti_value *root);

#endif
