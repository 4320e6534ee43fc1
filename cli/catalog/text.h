/* Texts, paths, ids and numbers as both kinds of page have them. */
#ifndef CATALOG_TEXT_H
#define CATALOG_TEXT_H

#include "base/json.h"
#include "catalog/places.h"

/* At most `most` bytes of a text, the last of them "…" if some are cut off, no character cut in
 * two: the text itself, or in buffer, which holds most. */
sft_span text_cut(sft_span text, size_t most, char *buffer);
/* A file's name without what follows its last dot. */
sft_span text_stem(sft_span name);

/* ── Paths, ids and numbers ── */

/* A path from the page's folder on, of a link its own; as it was given where that is not known. */
sft_code catalog_path(catalog_places *places, const char *path, sfti_arena *arena, sft_span *out,
                      sft_error *err);
/* "id", 16 digits that stay the same as long as title and folders do, and "generator". */
sft_code catalog_put_id(sfti_json_writer *w, const catalog_places *places, const char *title,
                        const sft_allocator *alloc, sft_error *err);
/* Nine digits, which tell any two F32 apart; what is not finite is "NaN", "Infinity" or
 * "-Infinity". */
void catalog_double(sfti_json_writer *w, double value);

#endif
