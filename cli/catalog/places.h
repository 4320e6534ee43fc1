/* Where the page, the folders that were given and the files below them are. */
#ifndef CATALOG_PLACES_H
#define CATALOG_PLACES_H

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
/* The path of a file in the real path of its folder: it may be a link; false if it cannot be told,
 * or is too long. */
bool places_named(catalog_places *places, const char *path, char out[CLI_REAL_SIZE]);
/* The i-th of the different labels, i < labels. */
sft_span places_label(const catalog_places *places, size_t i);
/* The real path of a file; false if it cannot be told, or is too long. */
bool places_real(catalog_places *places, const char *path, char out[CLI_REAL_SIZE]);
/* Whether a real path lies below one of the folders. */
bool places_has(const catalog_places *places, const char *real);
/* A real path from the page's folder on, in the arena; data NULL when memory ran out. */
sft_span places_relative(const catalog_places *places, const char *real, sfti_arena *arena);
/* A relative path as a reference: with %XX for all but RFC 3986's unreserved characters and '/'.
 * NULL when memory ran out. */
char *places_href(sft_span relative, sfti_arena *arena);
/* The root of a model by its path, NULL of a URL; *folder is the model's folder below it. */
const catalog_root *places_root(const catalog_places *places, const char *path, sft_span *folder);

#endif
