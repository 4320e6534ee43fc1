/* Where the page, the folders that were given and the files below them are; texts, ids and numbers
 * as both kinds of page have them. */
#ifndef CATALOG_PLACES_H
#define CATALOG_PLACES_H

#include "base/json.h"
#include "support/cli.h"
#include "support/output.h"

typedef struct catalog_root {
    const char *given;  /* the operand, or the folder that it is in */
    sft_span folder;    /* the folder that it is or lies in, as given; empty: the current one */
    const char *real;   /* its real path */
    sft_span label;     /* what its models' folders begin with if there are several roots */
} catalog_root;

typedef struct catalog_places {
    sfti_arena arena;
    const char *page; /* real path of the page's folder; NULL: unknown */
    catalog_root *roots;
    size_t count;     /* of roots, without URLs */
    size_t labels;    /* how many different ones there are */
    char folder[CLI_REAL_SIZE], real[CLI_REAL_SIZE]; /* a folder of before, and its real path */
} catalog_places;

/* operands: files, folders and URLs. output: path of the page, "-" for the current folder. Free
 * with places_free. */
sft_code places_begin(catalog_places *places, cli *c, char **operands, size_t count,
                      const char *output, sft_error *err);
void places_free(catalog_places *places);
/* The i-th of the different labels, i < labels. */
sft_span places_label(const catalog_places *places, size_t i);
/* The real path of a file; false if it cannot be told, or is too long. */
bool places_real(catalog_places *places, const char *path, char out[CLI_REAL_SIZE]);
/* Whether a real path lies below one of the folders. */
bool places_has(const catalog_places *places, const char *real);
/* The root of a model by its path, NULL of a URL; *folder is the model's folder below it. */
const catalog_root *places_root(const catalog_places *places, const char *path, sft_span *folder);

/* ── Texts, ids and numbers ── */

/* At most `most` bytes of a text, the last of them "…" if some are cut off, no character cut in
 * two: the text itself, or in buffer, which holds most. */
sft_span text_cut(sft_span text, size_t most, char *buffer);
/* A file's name without what follows its last dot. */
sft_span text_stem(sft_span name);

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
