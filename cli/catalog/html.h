/* A page as it is written: a shell whose policy allows its own script and style only, and blocks of
 * JSON in which nothing can end the block. */
#ifndef CATALOG_HTML_H
#define CATALOG_HTML_H

#include "base/json.h"

typedef enum html_kind { HTML_CATALOG, HTML_MODEL } html_kind;

typedef struct html_page {
    sft_sink sink;
    const sft_allocator *alloc;
    html_kind kind;
    uint64_t at;    /* bytes written, those in the buffer included */
    sft_code code;  /* the first failure; what follows does nothing */
    sft_error *err;
    sft_sink block;         /* escapes what is written to it */
    sfti_json_writer json;  /* of the block that is open */
    size_t used;            /* of the buffer */
    char buffer[16384];
} html_page;

/* All up to the first block. The sink stays open; err must outlive the page. */
void html_begin(html_page *page, html_kind kind, sft_sink sink, const char *title,
                const sft_allocator *alloc, sft_error *err);
/* A block of JSON with that id ("rows", "more-3"): what is written to the writer has < > & as
 * \u003c \u003e \u0026. One at a time. */
sfti_json_writer *html_block_begin(html_page *page, const char *id);
void html_block_end(html_page *page);
/* Markup of ours, and text of others, escaped. */
void html_markup(html_page *page, const char *markup);
void html_text(html_page *page, sft_span text);
/* The script and the end. Returns the first failure; the sink is still to be finished. */
sft_code html_end(html_page *page);

/* ── Scripts and styles, joined from page/ by cmake/page.cmake ── */

typedef struct page_text {
    const unsigned char *bytes;
    size_t len;
} page_text;

extern const page_text page_shared, page_catalog, page_model, page_style, page_style_catalog,
    page_style_model;

#endif
