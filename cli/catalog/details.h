/* Details of models: the result object of info, without what is null or empty, bounded, and with
 * sources as numbers (More of page/types.d.ts). */
#ifndef CATALOG_DETAILS_H
#define CATALOG_DETAILS_H

#include "catalog/html.h"
#include "catalog/pack.h"
#include "catalog/pictures.h"

#define DETAILS_MODELS 256 /* in one block */
#define DETAILS_TEXT 2048  /* bytes of the longest text */
#define DETAILS_CUTS 16

typedef struct catalog_details {
    html_page *page;
    json_pack pack;
    sfti_arena arena;     /* of this block */
    catalog_dict sources;
    size_t blocks;        /* before this one */
    uint64_t budget;      /* bytes that models so far have left */
    sft_error *err;
    /* About the model that is written: */
    sft_span stem;
    int level;            /* how short it is: 0 is as long as possible */
    sft_span cuts[DETAILS_CUTS];
    size_t cut_count;
    sft_buffer keys;      /* of the object that begins */
    sft_sink key_sink;
    sfti_json_writer key_writer;
    char buffer[DETAILS_TEXT + 8];
} catalog_details;

void details_begin(catalog_details *out, html_page *page, const sft_allocator *alloc,
                   sft_error *err);
/* One model more. path: from the page's folder on. row: bytes of its row. Writes the block once it
 * is full. */
sft_code details_add(catalog_details *out, const cli_model *model, sft_span path,
                     const catalog_picture *pictures, size_t count, size_t row);
/* Write the last block. */
sft_code details_end(catalog_details *out);
void details_free(catalog_details *out);

#endif
