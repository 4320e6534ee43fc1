/* Details of models: the result object of info, without what is null or empty, bounded, and with
 * sources as numbers (More of page/types.d.ts). */
#ifndef CATALOG_MORE_H
#define CATALOG_MORE_H

#include "catalog/html.h"
#include "catalog/pack.h"
#include "catalog/pictures.h"

#define MORE_MODELS 256 /* in one block */
#define MORE_TEXT 2048  /* bytes of the longest text */
#define MORE_CUTS 16

typedef struct catalog_more {
    html_page *page;
    json_pack pack;
    sfti_arena arena;     /* of this block */
    catalog_dict sources;
    size_t blocks;        /* before this one */
    uint64_t budget;      /* bytes that models so far have left */
    sft_error *err;
    /* Of the model that is written: */
    sft_span stem;
    int level;            /* how short it is: 0 is as long as possible */
    sft_span cuts[MORE_CUTS];
    size_t cut_count;
    sft_buffer keys;      /* of the object that begins */
    sft_sink key_sink;
    sfti_json_writer key_writer;
    char buffer[MORE_TEXT + 8];
} catalog_more;

void more_begin(catalog_more *more, html_page *page, const sft_allocator *alloc,
                sft_error *err);
/* One model more. path: from the page's folder on. row: bytes of its row. Writes the block once it
 * is full. */
sft_code more_add(catalog_more *more, const cli_model *model, sft_span path,
                  const catalog_picture *pictures, size_t count, size_t row);
/* Write the last block. */
sft_code more_end(catalog_more *more);
void more_free(catalog_more *more);

#endif
