/* Previews of models as a page shows them: links to files below the folders that were given, or
 * data: URLs in the page. */
#ifndef CATALOG_PICTURES_H
#define CATALOG_PICTURES_H

#include "base/json.h"
#include "support/models.h"

#define PICTURES_EMBED_KB 64 /* of --embed and of what is embedded in headers */

typedef struct catalog_picture {
    const char *href;     /* percent-encoded; NULL: embedded, or not shown */
    size_t number;        /* of one that is embedded: its place among all of the page */
    const char *why;      /* it is not shown, or NULL */
    bool is_video;
    uint32_t width, height, level; /* 0: unknown */
    uint64_t bytes;
} catalog_picture;

/* What the pictures of a page share. */
typedef struct catalog_pictures {
    cli *c;
    sfti_arena arena;
    bool embed;            /* files too, not only what is in headers */
    uint64_t most;         /* bytes of one that is embedded */
    const char *page;      /* folder of the page, its real path; NULL: unknown */
    const char **roots;    /* the folders, their real paths */
    size_t root_count;
    size_t count;          /* embedded ones so far */
    uint64_t bytes;        /* of them */
    /* Takes the next embedded picture: a data: URL. */
    sft_code (*put)(void *ctx, sft_span url, sft_error *err);
    void *ctx;
} catalog_pictures;

/* operands: what was given; a file stands for its folder. output: path of the page or "-". put and
 * ctx are the caller's to set. Free with pictures_free. */
sft_code pictures_begin(catalog_pictures *all, cli *c, char **operands, size_t count,
                        const char *output, sft_error *err);
void pictures_free(catalog_pictures *all);
/* The pictures of a model, best first, in the arena; those that are embedded are put. */
sft_code pictures_of(catalog_pictures *all, const cli_model *model, sfti_arena *arena,
                     catalog_picture **out, size_t *count, sft_error *err);
/* One, as a Picture of page/types.d.ts. */
void picture_json(sfti_json_writer *w, const catalog_picture *picture);

#endif
