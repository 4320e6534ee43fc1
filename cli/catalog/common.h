/* What both kinds of page say. */
#ifndef CATALOG_COMMON_H
#define CATALOG_COMMON_H

#include "base/json.h"
#include "catalog/places.h"

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
