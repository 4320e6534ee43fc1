/* Previews of models as a page shows them: links to files below the folders that were given, or
 * data: URLs in the page. */
#ifndef CATALOG_PICTURES_H
#define CATALOG_PICTURES_H

#include "catalog/html.h"
#include "catalog/places.h"
#include "support/models.h"

#define PICTURES_EMBED ((uint64_t)64 << 10) /* bytes, of --embed and of what is in headers */
#define PICTURES_MOST 16                    /* of a model */

typedef struct catalog_picture {
    const char *href;     /* percent-encoded; NULL: embedded, or not shown */
    size_t number;        /* of one that is embedded: its place among all of the page */
    const char *why;      /* it is not shown, or NULL */
    bool is_video;
    uint64_t width, height, level, bytes; /* 0: unknown */
} catalog_picture;

/* What the pictures of a page share. */
typedef struct catalog_pictures {
    cli *c;
    catalog_places *places;
    bool embeds;    /* files too, not only what is in headers */
    uint64_t most;  /* bytes of one that is embedded; 0: none is */
    size_t count;   /* embedded ones so far */
    uint64_t bytes; /* of them */
    html_page *page;
} catalog_pictures;

/* --embed[=KB]. SFT_BAD_ARGUMENT. places and page are the caller's to set. */
sft_code pictures_begin(catalog_pictures *all, cli *c, sft_error *err);
/* The pictures of a model, in the arena: at most PICTURES_MOST, in the order of `previews`. Those
 * that are embedded are written to the page, a block each. */
sft_code pictures_of(catalog_pictures *all, const cli_model *model, sfti_arena *arena,
                     catalog_picture **out, size_t *count, sft_error *err);
/* One, as a Picture of page/types.d.ts. */
void picture_json(sfti_json_writer *w, const catalog_picture *picture);

#endif
