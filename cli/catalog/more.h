/* Details of models: the result object of info, without what is null or empty, bounded, and with
 * sources as numbers (CompactInfo of page/types.d.ts). */
#ifndef CATALOG_MORE_H
#define CATALOG_MORE_H

#include "catalog/dict.h"
#include "catalog/html.h"
#include "catalog/pictures.h"

#define MORE_MODELS 256 /* in one block */
#define MORE_TEXT 2048  /* bytes of the longest text */
#define MORE_CUTS 8

typedef struct catalog_more {
    html_page *page;
    sfti_arena arena;      /* of this block */
    catalog_dict sources;
    sft_buffer text;       /* of its models, a JSON array */
    sft_sink sink;
    sfti_json_writer w;
    size_t count, blocks;  /* models in it; blocks before it */
    sft_error *err;
    /* of the model that is written: */
    sft_span stem;
    const char *cuts[MORE_CUTS];
    size_t cut_count;
    char buffer[MORE_TEXT + 4];
} catalog_more;

void more_begin(catalog_more *more, html_page *page, const sft_allocator *alloc,
                sft_error *err);
/* One model more. path: from the page's folder on. Writes the block once it is full. */
sft_code more_add(catalog_more *more, const cli_model *model, sft_span path,
                  const catalog_picture *pictures, size_t count);
/* Write the last block. */
sft_code more_end(catalog_more *more);
void more_free(catalog_more *more);

#endif
