/* Texts as pages have them. */
#ifndef CATALOG_TEXT_H
#define CATALOG_TEXT_H

#include "safetensors.h"

/* At most `most` bytes of a text, the last of them "…" if some are cut off, no character cut in
 * two: the text itself, or in buffer, which holds most. */
sft_span text_cut(sft_span text, size_t most, char *buffer);
/* A file's name without what follows its last dot. */
sft_span text_stem(sft_span name);

#endif
